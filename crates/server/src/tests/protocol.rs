//! Messages after the start, by bytes.

use super::script::*;

fn ready() -> String {
    "Z I".to_owned()
}

#[test]
fn a_text_of_statements_gives_each_result_and_stops_at_an_error() {
    assert_eq!(
        replies(&[query("select 1 2;;begin;wrong;select 3"), query("select 4"), query("rollback")]),
        [
            "T",
            "D \"1\"",
            "D \"2\"",
            "C SELECT 2",
            "I",
            "C BEGIN",
            "E ERROR 42601",
            "Z E",
            "E ERROR 25P02",
            "Z E",
            "C ROLLBACK",
            "Z I"
        ]
    );
}

#[test]
fn a_pipeline_is_answered_in_order_and_skips_from_an_error_to_sync() {
    let messages = [
        parse("a", "select $ $"),
        bind("", "a", &[b"5", b"6"], &[]),
        describe('P', ""),
        execute("", 0),
        parse("b", "wrong"),
        bind("", "a", &[b"7", b"8"], &[]),
        execute("", 0),
        query("select 9"),
        sync(),
        describe('S', "a"),
        bind("", "a", &[b"7", b"x"], &[]),
        execute("", 0),
        sync(),
        describe('S', "b"),
        sync(),
    ];
    assert_eq!(
        replies(&messages),
        [
            "1",
            "2",
            "T",
            "D \"5\"",
            "D \"6\"",
            "C SELECT 2",
            "E ERROR 42601",
            "Z I",
            "t",
            "T",
            "E ERROR 22P02",
            "Z I",
            "E ERROR 26000",
            "Z I"
        ]
    );
}

#[test]
fn a_pipeline_is_written_at_its_sync_in_one_piece() {
    let pipeline: Vec<u8> = (0..50)
        .flat_map(|_| [parse("", "select 1"), bind("", "", &[], &[]), execute("", 0)])
        .flatten()
        .collect();
    let script = [hello(), pipeline, sync()].concat();
    let mut script = Script::new(&script, usize::MAX);
    run(&service(), &mut script);
    assert_eq!(script.writes, 2, "one for the start, one for the pipeline");
}

#[test]
fn much_that_waits_is_written_before_the_end() {
    let script = [hello(), query("many;many")].concat();
    let mut script = Script::new(&script, usize::MAX);
    let (_, output) = run(&service(), &mut script);
    assert!(script.writes > 4 && output < 256 * 1024, "{} writes, {output} bytes kept", script.writes);
}

#[test]
fn portals_are_suspended_closed_and_gone_after_their_transaction() {
    let messages = [
        parse("s", "select 1 2 3"),
        bind("p", "s", &[], &[]),
        execute("p", 2),
        execute("p", 2),
        message(b'C', b"Pp\0"),
        execute("p", 0),
        sync(),
        message(b'C', b"Ss\0"),
        message(b'C', b"Snone\0"),
        bind("", "s", &[], &[]),
        sync(),
    ];
    assert_eq!(
        replies(&messages),
        [
            "1",
            "2",
            "D \"1\"",
            "D \"2\"",
            "s",
            "D \"3\"",
            "C SELECT 1",
            "3",
            "E ERROR 34000",
            "Z I",
            "3",
            "3",
            "E ERROR 26000",
            "Z I"
        ]
    );
}

#[test]
fn formats_are_none_one_or_one_for_each_column() {
    let run = |formats| replies(&[parse("", "select 1"), bind("", "", &[], formats), execute("", 0), sync()]);
    let text = ["1", "2", "D \"1\"", "C SELECT 1", "Z I"];
    assert_eq!(run(&[]), text);
    assert_eq!(run(&[0]), text);
    assert_eq!(run(&[1]), ["1", "2", "D \"\\0\\0\\0\\u{1}\"", "C SELECT 1", "Z I"]);
    assert_eq!(run(&[0, 1]), ["1", "E ERROR 08P01", "Z I"]);
    assert_eq!(run(&[7]), ["1", "E ERROR 22023", "Z I"]);
    // A later bind of the same portal does not keep the formats of the one before.
    let twice =
        [parse("", "select 1"), bind("", "", &[], &[1]), bind("", "", &[], &[]), execute("", 0), sync()];
    assert_eq!(replies(&twice), ["1", "2", "2", "D \"1\"", "C SELECT 1", "Z I"]);
}

#[test]
fn an_error_of_the_servers_own_fails_the_block() {
    let messages = [
        query("begin"),
        parse("", "select $"),
        bind("", "", &[b"x"], &[]),
        sync(),
        bind("", "", &[b"x"], &[]),
        sync(),
    ];
    assert_eq!(replies(&messages), ["C BEGIN", "Z T", "1", "E ERROR 22P02", "Z E", "E ERROR 25P02", "Z E"]);
    assert_eq!(
        replies(&[query("begin"), bind("", "none", &[], &[]), sync()]),
        ["C BEGIN", "Z T", "E ERROR 26000", "Z E"]
    );
    assert_eq!(replies(&[query("begin"), message(b'F', b"")]), ["C BEGIN", "Z T", "E ERROR 0A000", "Z E"]);
}

#[test]
fn statements_without_a_result_are_described_as_such() {
    let messages = [
        parse("", "begin"),
        describe('S', ""),
        bind("", "", &[], &[]),
        describe('P', ""),
        parse("", ""),
        bind("", "", &[], &[]),
        execute("", 0),
        sync(),
    ];
    assert_eq!(replies(&messages), ["1", "t", "n", "2", "n", "1", "2", "I", "Z I"]);
}

#[test]
fn data_are_copied_in_and_out() {
    let data = message(b'd', b"1\t2\n");
    let copied =
        replies(&[query("copyin"), data.clone(), data.clone(), message(b'c', b""), query("copyout")]);
    assert_eq!(copied, ["G", "C COPY 8", "Z I", "H", "d 1\n", "d 2\n", "c", "C COPY 2", "Z I"]);
    // Data behind an error are passed over until the client is done.
    let failed = replies(&[
        query("copyin"),
        message(b'd', b"bad"),
        data.clone(),
        message(b'c', b""),
        query("select 1"),
    ]);
    assert_eq!(failed, ["G", "E ERROR 22P04", "Z I", "T", "D \"1\"", "C SELECT 1", "Z I"]);
    let given_up = replies(&[query("copyin"), data.clone(), message(b'f', b"why\0"), query("select 1")]);
    assert_eq!(given_up, ["G", "E ERROR 57014", "Z I", "T", "D \"1\"", "C SELECT 1", "Z I"]);
    // A message that is no data ends the connection: nobody knows what the client is about.
    assert_eq!(replies(&[query("copyin"), query("select 1"), query("select 1")]), ["G", "E FATAL 08P01"]);
}

#[test]
fn data_are_copied_in_the_extended_protocol_too() {
    let begin = || [parse("", "copyin"), bind("", "", &[], &[]), execute("", 0)].concat();
    let data = message(b'd', b"1\n");
    let copied = replies(&[begin(), sync(), data.clone(), message(b'H', b""), message(b'c', b""), sync()]);
    assert_eq!(copied, ["1", "2", "G", "C COPY 2", "Z I"]);
    let failed =
        replies(&[begin(), message(b'd', b"bad"), data, message(b'c', b""), sync(), query("select 1")]);
    assert_eq!(failed, ["1", "2", "G", "E ERROR 22P04", "Z I", "T", "D \"1\"", "C SELECT 1", "Z I"]);
}

#[test]
fn a_client_that_goes_within_a_copy_ends_its_connection() {
    assert_eq!(replies(&[query("copyin"), message(b'd', b"1\n")]), ["G"]);
}

#[test]
fn notices_parameters_and_notifications_come_before_ready() {
    assert_eq!(replies(&[query("notice")]), ["N NOTICE 00000", "S TimeZone=UTC", "C DO", "Z I"]);
    assert_eq!(
        replies(&[query("notify")]),
        ["C NOTIFY", "A =\0\0\u{7}news=told".replace('\0', "=").as_str(), "Z I"]
    );
    // Within a block they wait for its end.
    let told = replies(&[query("begin;notify"), query("commit")]);
    assert_eq!(told.iter().position(|message| message.starts_with('A')), Some(4));
}

#[test]
fn messages_that_break_the_protocol_end_the_connection() {
    let long = [&[b'Q'][..], &(MESSAGE_BYTES_MAX as u32 + 1).to_be_bytes()].concat();
    for broken in [
        message(b'z', b""),
        message(b'p', b"x\0"),
        message(b'Q', b"x"),
        message(b'Q', b"x\0y"),
        message(b'S', b"x"),
        message(b'D', b"Xx\0"),
        message(b'B', b"\0\0\0\x05"),
        b"Q\0\0\0\x03".to_vec(),
        b"X\xff\xff\xff\xff".to_vec(),
        long,
    ] {
        assert_eq!(replies(&[broken.clone(), query("select 1")]), ["E FATAL 08P01"], "{broken:?}");
    }
}

#[test]
fn text_that_is_not_utf8_is_an_error_of_the_statement() {
    let messages = [message(b'Q', b"\xff\0"), message(b'P', b"\xff\0\0\0\0"), execute("", 0), sync()];
    assert_eq!(replies(&messages), ["E ERROR 22021", "Z I", "E ERROR 22021", "Z I"]);
}

#[test]
fn a_client_that_says_good_bye_is_not_answered() {
    assert_eq!(replies(&[message(b'X', b""), query("select 1")]), Vec::<String>::new());
    assert_eq!(replies(&[sync(), message(b'X', b"")]), [ready()]);
}

use super::*;

/// A client that sends these data in pieces of a few bytes.
fn sender(data: &[u8]) -> Recorder {
    Recorder { copy: data.chunks(3).map(<[u8]>::to_vec).collect(), ..Recorder::default() }
}

/// A table `c` with two texts, of which the first is its key.
fn with_texts(instance: &Instance) -> Connection {
    let mut connection = connect(instance);
    run(&mut connection, "CREATE TABLE c (a text PRIMARY KEY, b text)");
    connection
}

#[test]
fn text_comes_in_and_goes_out() {
    let mut connection = with_texts(&instance());
    let data = b"a\\tb\tline\\\nend\nx\\x41\\101\t\\N\n\\N0\t\n";
    let copied = run_with(&mut connection, "COPY c FROM STDIN WITH (FREEZE ON)", &mut sender(data));
    assert_eq!(copied, ["COPY 3"]);
    let out = run(&mut connection, "COPY (SELECT a, b FROM c ORDER BY a) TO STDOUT");
    assert_eq!(out, ["N0\t\na\\tb\tline\\nend\nxAA\t\\N\n"]);
}

#[test]
fn csv_comes_in_and_goes_out() {
    let mut connection = with_texts(&instance());
    let data = b"a,b\r\n1,\"two, \"\"quoted\"\"\nlines\"\r\n2,\r\n3,\"\"\r\n";
    let copied =
        run_with(&mut connection, "COPY c (a, b) FROM STDIN (FORMAT csv, HEADER)", &mut sender(data));
    assert_eq!(copied, ["COPY 3"]);
    let out = run(&mut connection, "COPY (SELECT a, b FROM c ORDER BY a) TO STDOUT WITH CSV HEADER");
    assert_eq!(out, ["a,b\n1,\"two, \"\"quoted\"\"\nlines\"\n2,\n3,\"\"\n"]);
    let wrong = "COPY c FROM STDIN (FORMAT csv, HEADER match)";
    assert_eq!(run_with(&mut connection, wrong, &mut sender(b"a,c\n")), ["22P04"]);
}

#[test]
fn binary_data_come_back() {
    let instance = instance();
    let mut connection = with_table(&instance);
    run(&mut connection, "INSERT INTO t VALUES (3, NULL)");
    let mut client = Recorder::default();
    connection.query("COPY t TO STDOUT (FORMAT binary)", &mut client).unwrap();
    let Some(Outcome::CopyOut { data, is_binary: true, .. }) = client.outcomes.pop() else { panic!() };
    // Rows and trailer; the header is no chunk of its own.
    assert_eq!(data.iter().map(Vec::len).collect::<Vec<_>>(), [19 + 18, 18, 14, 2]);
    run(&mut connection, "CREATE TABLE u (k int, v int)");
    let copied = run_with(&mut connection, "COPY u FROM STDIN BINARY", &mut sender(&data.concat()));
    assert_eq!(copied, ["COPY 3"]);
    assert_eq!(run(&mut connection, "SELECT k, v FROM u ORDER BY k"), ["1,10;2,20;3,null"]);
    let cut = &data.concat()[..25];
    assert_eq!(run_with(&mut connection, "COPY u FROM STDIN BINARY", &mut sender(cut)), ["22P04"]);
}

#[test]
fn errors_name_the_line() {
    let mut connection = with_table(&instance());
    for (data, code, message, detail) in [
        ("3\t4\n5\n", "22P04", "missing data for column \"v\"", "COPY t, line 2: \"5\""),
        ("3\t4\t5\n", "22P04", "extra data after last expected column", "COPY t, line 1: \"3\t4\t5\""),
        (
            "3\t4\nx\t4\n",
            "22P02",
            "invalid input syntax for type integer: \"x\"",
            "COPY t, line 2, column k: \"x\"",
        ),
    ] {
        let error = connection.query("COPY t FROM STDIN", &mut sender(data.as_bytes())).unwrap_err();
        assert_eq!((error.code, &*error.message, error.detail.as_deref()), (code, message, Some(detail)));
    }
    assert_eq!(run(&mut connection, "SELECT k FROM t ORDER BY k"), ["1;2"]);
}

#[test]
fn more_data_than_are_collected_are_one_transaction() {
    let mut connection = with_table(&instance());
    let lines = |last: &str| {
        let lines: Vec<_> = (10..2_010).map(|key| format!("{key}\t{key}")).collect();
        Recorder {
            copy: format!("{}\n{last}", lines.join("\n"))
                .into_bytes()
                .chunks(100)
                .map(<[u8]>::to_vec)
                .collect(),
            ..Recorder::default()
        }
    };
    assert_eq!(run_with(&mut connection, "COPY t FROM STDIN", &mut lines("1\t1\n")), ["23505"]);
    assert_eq!(run(&mut connection, "SELECT count(*) FROM t"), ["2"]);
    assert_eq!(run_with(&mut connection, "COPY t FROM STDIN", &mut lines("")), ["COPY 2000"]);
    run(&mut connection, "BEGIN; DELETE FROM t");
    assert_eq!(run_with(&mut connection, "COPY t FROM STDIN", &mut lines("3\t")), ["22P02"]);
    run(&mut connection, "ROLLBACK");
    assert_eq!(run(&mut connection, "SELECT count(*) FROM t"), ["2002"]);
}

#[test]
fn copies_of_files_are_refused() {
    let mut connection = with_table(&instance());
    assert_eq!(run(&mut connection, "COPY t FROM '/etc/passwd'"), ["0A000"]);
    assert_eq!(run(&mut connection, "COPY t FROM STDIN (FORMAT binary, DELIMITER ',')"), ["42601"]);
    assert_eq!(run(&mut connection, "COPY t FROM STDIN (NOTHING 1)"), ["42601"]);
}

use super::*;

#[test]
fn a_statement_alone_runs_again_until_it_commits() {
    let instance = instance();
    let mut connection = with_table(&instance);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut own = connect(&instance);
                for _ in 0..50 {
                    assert_eq!(run(&mut own, "UPDATE t SET v = v * 1 + 1 WHERE k = 1"), ["UPDATE 1"]);
                    let text =
                        "BEGIN; UPDATE t SET v = v * 1 + 1 WHERE k = 2; SELECT v FROM t WHERE k = 1; END";
                    assert_eq!(run(&mut own, text).len(), 4);
                }
            });
        }
    });
    assert_eq!(run(&mut connection, "SELECT v FROM t ORDER BY k"), ["210;220"]);
}

#[test]
fn a_block_that_has_lost_says_so() {
    let instance = instance();
    let mut one = with_table(&instance);
    run(&mut one, "BEGIN");
    assert_eq!(run(&mut one, "SELECT v FROM t WHERE k = 1"), ["10"]);
    assert_eq!(elsewhere(&instance, "UPDATE t SET v = 11 WHERE k = 1"), ["UPDATE 1"]);
    run(&mut one, "UPDATE t SET v = 12 WHERE k = 2");
    assert_eq!(run(&mut one, "COMMIT"), ["40001"]);
    assert_eq!(run(&mut one, "SELECT v FROM t ORDER BY k"), ["11;20"]);
}

#[test]
fn a_table_may_change_under_a_statement() {
    let instance = instance();
    let (mut one, mut other) = (with_table(&instance), connect(&instance));
    assert_eq!(run(&mut other, "SELECT * FROM t WHERE k = 1"), ["1,10"]);
    run(&mut one, "DROP TABLE t");
    assert_eq!(run(&mut other, "SELECT * FROM t WHERE k = 1"), ["42P01"]);
    run(&mut one, "CREATE TABLE t (k int PRIMARY KEY)");
    assert_eq!(run(&mut other, "SELECT * FROM t WHERE k = 1"), [""]);
    // A definition is part of its transaction.
    run(&mut one, "BEGIN; CREATE TABLE u (a int); INSERT INTO u VALUES (1)");
    assert_eq!(elsewhere(&instance, "SELECT * FROM u"), ["42P01"]);
    run(&mut one, "ROLLBACK");
    assert_eq!(run(&mut one, "SELECT * FROM u"), ["42P01"]);
}

#[test]
fn a_statement_is_cancelled_by_another_thread() {
    let instance = instance();
    let mut connection = connect(&instance);
    let canceller = connection.canceller();
    // Nothing runs: nothing happens.
    canceller.cancel();
    assert_eq!(run(&mut connection, "SELECT 1"), ["1"]);
    for begin in ["SELECT 1", "BEGIN"] {
        run(&mut connection, begin);
        assert_eq!(run_cancelled(&mut connection, LONG), ["57014"]);
    }
    assert_eq!(run(&mut connection, "ROLLBACK"), ["ROLLBACK"]);
    assert_eq!(run(&mut connection, "SELECT 1"), ["1"]);
}

/// The end of an update of a row that an open block has updated, behind these statements. It is cancelled all the time if it
/// `is_cancelled`.
fn blocked(protocol: &str, before: &[&str], is_cancelled: bool) -> Vec<String> {
    let options = InstanceOptions { protocol: protocol.to_owned(), ..InstanceOptions::default() };
    let instance = Instance::open(options).unwrap();
    let mut holder = connect(&instance);
    run(&mut holder, "CREATE TABLE t (k int PRIMARY KEY, v int)");
    run(&mut holder, "INSERT INTO t VALUES (1, 0)");
    run(&mut holder, "BEGIN");
    run(&mut holder, "UPDATE t SET v = v * 3 + 1 WHERE k = 1");
    // This thread is inside the holder's transaction.
    let update = || {
        let mut connection = connect(&instance);
        before.iter().for_each(|text| drop(run(&mut connection, text)));
        let text = "UPDATE t SET v = v * 2 + 1 WHERE k = 1";
        let run_it = if is_cancelled { run_cancelled } else { run };
        let ended = run_it(&mut connection, text);
        run(&mut connection, "ROLLBACK");
        assert_eq!(run(&mut connection, "SELECT v FROM t"), ["0"], "{protocol}");
        ended
    };
    thread::scope(|scope| scope.spawn(update).join().unwrap())
}

#[test]
fn a_statement_that_waits_for_a_lock_ends_when_it_is_told_or_late() {
    // A block of the others loses at once instead.
    let waiting = ["2pl-mcs", "plor"].map(|protocol| (protocol, "BEGIN"));
    let alone = ["no-wait", "wait-die", "2pl-mcs", "plor"].map(|protocol| (protocol, "SELECT 1"));
    for (protocol, begin) in alone.into_iter().chain(waiting) {
        assert_eq!(blocked(protocol, &[begin], true), ["57014"], "{protocol} {begin}");
        let timeout = ["SET statement_timeout = '30ms'", begin];
        assert_eq!(blocked(protocol, &timeout, false), ["57014"], "{protocol} {begin}");
        let timeout = ["SET lock_timeout = '30ms'", begin];
        assert_eq!(blocked(protocol, &timeout, false), ["55P03"], "{protocol} {begin}");
    }
}

#[test]
fn a_statement_that_notices_a_cancel_leaves_its_block_a_way_back() {
    let instance = instance();
    let mut connection = with_table(&instance);
    run(&mut connection, "BEGIN");
    run(&mut connection, "UPDATE t SET v = 11 WHERE k = 1");
    run(&mut connection, "SAVEPOINT s");
    assert_eq!(run_cancelled(&mut connection, LONG), ["57014"]);
    assert_eq!(run(&mut connection, "ROLLBACK TO s"), ["ROLLBACK"]);
    assert_eq!(run(&mut connection, "SELECT v FROM t WHERE k = 1"), ["11"]);
    assert_eq!(run(&mut connection, "COMMIT"), ["COMMIT"]);
    assert_eq!(run(&mut connection, "SELECT v FROM t WHERE k = 1"), ["11"]);
}

#[test]
fn a_cancel_that_comes_while_a_result_is_sent_ends_nothing() {
    let instance = instance();
    let mut connection = with_table(&instance);
    let mut late = Recorder { cancels: Some(connection.canceller()), ..Recorder::default() };
    run(&mut connection, "BEGIN");
    run(&mut connection, "UPDATE t SET v = 11 WHERE k = 1");
    for text in ["SELECT * FROM t", "COPY t TO STDOUT", "SAVEPOINT s", "SHOW ALL"] {
        assert!(connection.query(text, &mut late).is_ok(), "{text}");
    }
    assert_eq!(run(&mut connection, "COMMIT"), ["COMMIT"]);
    assert_eq!(run(&mut connection, "SELECT v FROM t WHERE k = 1"), ["11"]);
}

#[test]
fn each_statement_of_a_text_has_the_timeout_that_is_set_then() {
    let mut connection = connect(&instance());
    run(&mut connection, "SET statement_timeout = '250ms'");
    let three = "SELECT count(pg_sleep(0.1)); SELECT count(pg_sleep(0.1)); SELECT count(pg_sleep(0.1))";
    assert_eq!(run(&mut connection, three), ["1", "1", "1"]);
    let own = "SET statement_timeout = '50ms'; SELECT pg_sleep(10)";
    assert_eq!(run(&mut connection, own), ["SET", "57014"]);
    let none = "SET statement_timeout = 0; SELECT count(pg_sleep(0.1))";
    assert_eq!(run(&mut connection, none), ["SET", "1"]);
    let local = "BEGIN; SET LOCAL statement_timeout = '50ms'; SELECT pg_sleep(10); COMMIT";
    assert_eq!(run(&mut connection, local).last().map(String::as_str), Some("57014"));
}

#[test]
fn nobody_waits_for_a_definition_of_an_open_block_to_plan_or_to_tell_of_an_error() {
    for protocol in ["no-wait", "wait-die", "2pl-mcs", "wound-wait", "plor"] {
        let options = InstanceOptions { protocol: protocol.to_owned(), ..InstanceOptions::default() };
        let instance = Instance::open(options).unwrap();
        let mut definer = with_table(&instance);
        run(&mut definer, "BEGIN");
        assert_eq!(run(&mut definer, "CREATE TABLE other (k int)"), ["CREATE TABLE"]);
        // Each would last for ever.
        assert_eq!(elsewhere(&instance, "SELECT v FROM t WHERE k = 1"), ["10"], "{protocol}");
        let parse = || connect(&instance).parse("", "SELECT v FROM t WHERE k = $1", &[]).is_ok();
        assert!(thread::scope(|scope| scope.spawn(parse).join().unwrap()), "{protocol}");
        // An optimistic reader of the catalog waits for nobody.
        if protocol != "plor" {
            let update = || {
                let mut own = connect(&instance);
                run(&mut own, "SET lock_timeout = '30ms'");
                run(&mut own, "UPDATE t SET v = v * 2 WHERE k = 1")
            };
            let late = thread::scope(|scope| scope.spawn(update).join().unwrap());
            assert_eq!(late, ["55P03"], "{protocol}");
        }
        assert_eq!(run(&mut definer, "COMMIT"), ["COMMIT"], "{protocol}");
    }
}

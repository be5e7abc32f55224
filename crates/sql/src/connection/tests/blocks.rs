use super::*;
use crate::outcome::BlockState;

#[test]
fn blocks_commit_or_roll_back() {
    let instance = instance();
    let (mut one, mut other) = (with_table(&instance), connect(&instance));
    assert_eq!(run(&mut one, "BEGIN"), ["BEGIN"]);
    assert_eq!(one.state(), BlockState::Open);
    assert_eq!(run(&mut one, "INSERT INTO t VALUES (3, 30)"), ["INSERT 0 1"]);
    assert_eq!(run(&mut one, "COMMIT"), ["COMMIT"]);
    assert_eq!(one.state(), BlockState::Idle);
    assert_eq!(run(&mut other, "SELECT k FROM t ORDER BY k"), ["1;2;3"]);
    run(&mut one, "BEGIN");
    run(&mut one, "DELETE FROM t");
    assert_eq!(run(&mut one, "SELECT k FROM t"), [""]);
    assert_eq!(run(&mut one, "ROLLBACK"), ["ROLLBACK"]);
    assert_eq!(run(&mut one, "SELECT k FROM t ORDER BY k"), ["1;2;3"]);
}

#[test]
fn a_failed_block_waits_for_its_end() {
    let mut connection = with_table(&instance());
    run(&mut connection, "BEGIN");
    run(&mut connection, "INSERT INTO t VALUES (3, 30)");
    assert_eq!(run(&mut connection, "SELECT 1/0"), ["22012"]);
    assert_eq!(connection.state(), BlockState::Failed);
    for text in ["SELECT 1", "SAVEPOINT a", "BEGIN", "SHOW timezone", "SET application_name = 'x'"] {
        assert_eq!(run(&mut connection, text), ["25P02"], "{text}");
    }
    assert_eq!(run(&mut connection, "COMMIT"), ["ROLLBACK"]);
    assert_eq!(run(&mut connection, "SELECT k FROM t ORDER BY k"), ["1;2"]);
}

#[test]
fn savepoints_are_ways_back() {
    let mut connection = with_table(&instance());
    run(&mut connection, "BEGIN; INSERT INTO t VALUES (3, 30)");
    assert_eq!(run(&mut connection, "SAVEPOINT a"), ["SAVEPOINT"]);
    run(&mut connection, "INSERT INTO t VALUES (4, 40)");
    // A second one of the same name hides the first.
    run(&mut connection, "SAVEPOINT a");
    run(&mut connection, "INSERT INTO t VALUES (5, 50)");
    assert_eq!(run(&mut connection, "INSERT INTO t VALUES (1, 10)"), ["23505"]);
    assert_eq!(run(&mut connection, "ROLLBACK TO b"), ["3B001"]);
    assert_eq!(run(&mut connection, "ROLLBACK TO SAVEPOINT a"), ["ROLLBACK"]);
    assert_eq!(connection.state(), BlockState::Open);
    assert_eq!(run(&mut connection, "SELECT k FROM t ORDER BY k"), ["1;2;3;4"]);
    assert_eq!(run(&mut connection, "RELEASE a"), ["RELEASE"]);
    assert_eq!(run(&mut connection, "ROLLBACK TO a"), ["ROLLBACK"]);
    assert_eq!(run(&mut connection, "COMMIT"), ["COMMIT"]);
    assert_eq!(run(&mut connection, "SELECT k FROM t ORDER BY k"), ["1;2;3"]);
}

#[test]
fn statements_at_the_wrong_place_warn_or_fail() {
    let mut connection = connect(&instance());
    let client = &mut Recorder::default();
    assert_eq!(run_with(&mut connection, "COMMIT", client), ["COMMIT"]);
    assert_eq!(run_with(&mut connection, "ROLLBACK", client), ["ROLLBACK"]);
    run_with(&mut connection, "BEGIN", client);
    assert_eq!(run_with(&mut connection, "BEGIN", client), ["BEGIN"]);
    let codes: Vec<_> = client.notices.iter().map(|notice| notice.content.code).collect();
    assert_eq!(codes, ["25P01", "25P01", "25001"]);
    assert_eq!(run(&mut connection, "VACUUM"), ["25001"]);
    run(&mut connection, "ROLLBACK");
    for text in ["SAVEPOINT a", "RELEASE a", "ROLLBACK TO a", "LOCK TABLE t"] {
        assert_eq!(run(&mut connection, text), ["25P01"], "{text}");
    }
}

#[test]
fn a_block_that_reads_only_does_not_write() {
    let instance = instance();
    let mut connection = with_table(&instance);
    run(&mut connection, "BEGIN READ ONLY");
    assert_eq!(run(&mut connection, "SELECT k FROM t ORDER BY k"), ["1;2"]);
    assert_eq!(elsewhere(&instance, "INSERT INTO t VALUES (3, 30)"), ["INSERT 0 1"]);
    assert_eq!(run(&mut connection, "SELECT k FROM t ORDER BY k"), ["1;2"]);
    assert_eq!(run(&mut connection, "SHOW transaction_read_only"), ["on"]);
    assert_eq!(run(&mut connection, "INSERT INTO t VALUES (4, 40)"), ["25006"]);
    run(&mut connection, "ROLLBACK");
    assert_eq!(run(&mut connection, "INSERT INTO t VALUES (4, 40)"), ["INSERT 0 1"]);
    run(&mut connection, "SET default_transaction_read_only = on");
    assert_eq!(run(&mut connection, "DELETE FROM t"), ["25006"]);
}

#[test]
fn a_text_may_be_a_whole_block() {
    let mut connection = with_table(&instance());
    let whole = "BEGIN; INSERT INTO t VALUES (3, 30); SELECT k FROM t ORDER BY k; END; SELECT 5";
    assert_eq!(run(&mut connection, whole), ["BEGIN", "INSERT 0 1", "1;2;3", "COMMIT", "5"]);
    // An error leaves the block open, and failed.
    let failing = "BEGIN; INSERT INTO t VALUES (4, 40); SELECT 1/0; COMMIT";
    assert_eq!(run(&mut connection, failing), ["BEGIN", "INSERT 0 1", "22012"]);
    assert_eq!(connection.state(), BlockState::Failed);
    assert_eq!(run(&mut connection, "COMMIT"), ["ROLLBACK"]);
    // Statements before a commit without a block are committed by it.
    let mixed = "INSERT INTO t VALUES (4, 40); COMMIT; SELECT 1/0";
    assert_eq!(run(&mut connection, mixed), ["INSERT 0 1", "COMMIT", "22012"]);
    assert_eq!(run(&mut connection, "SELECT k FROM t ORDER BY k"), ["1;2;3;4"]);
}

#[test]
fn statements_of_sql_can_be_prepared() {
    let mut connection = with_table(&instance());
    assert_eq!(run(&mut connection, "PREPARE a (int) AS SELECT v FROM t WHERE k = $1"), ["PREPARE"]);
    assert_eq!(run(&mut connection, "PREPARE a AS SELECT 1"), ["42P05"]);
    assert_eq!(run(&mut connection, "EXECUTE a (1 + 1)"), ["20"]);
    assert_eq!(run(&mut connection, "EXECUTE a"), ["42601"]);
    assert_eq!(run(&mut connection, "DEALLOCATE a"), ["DEALLOCATE"]);
    assert_eq!(run(&mut connection, "EXECUTE a (1)"), ["26000"]);
}

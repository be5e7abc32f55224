use super::*;
use crate::outcome::BlockState;

/// Prepares, binds and executes a statement without parameters.
fn execute(connection: &mut Connection, text: &str, is_last: bool) -> Result<String, &'static str> {
    let mut all = || {
        connection.parse("", text, &[])?;
        connection.bind("", "", Vec::new())?;
        connection.describe_portal("")?;
        connection.execute("", 0, is_last, &mut Recorder::default())
    };
    all().map(|(outcome, _)| shown(&outcome)).map_err(|error: SqlError| error.code)
}

#[test]
fn a_statement_with_parameters_runs_again_and_again() {
    let mut connection = with_table(&instance());
    connection.parse("a", "SELECT v FROM t WHERE k = $1", &[23]).unwrap();
    assert_eq!(connection.parse("a", "SELECT 1", &[]).unwrap_err().code, "42P05");
    assert_eq!(&*connection.parameter_types("a").unwrap(), [crate::values::Type::Int4]);
    let fields = connection.describe_statement("a").unwrap().unwrap();
    assert_eq!(&*fields[0].name, "v");
    for (key, value) in [(1, "10"), (2, "20"), (3, "")] {
        connection.bind("", "a", vec![Datum::Int4(key)]).unwrap();
        let (outcome, _) = connection.execute("", 0, true, &mut Recorder::default()).unwrap();
        assert_eq!(shown(&outcome), value);
        connection.sync().unwrap();
    }
    assert_eq!(connection.bind("", "a", Vec::new()).unwrap_err().code, "08P01");
    assert_eq!(connection.bind("", "b", Vec::new()).unwrap_err().code, "26000");
    connection.close_statement("a");
    assert_eq!(connection.parameter_types("a").unwrap_err().code, "26000");
}

#[test]
fn a_pipeline_is_one_transaction() {
    let mut connection = with_table(&instance());
    assert_eq!(execute(&mut connection, "INSERT INTO t VALUES (3, 30)", false), Ok("INSERT 0 1".into()));
    assert_eq!(connection.state(), BlockState::Idle);
    assert_eq!(execute(&mut connection, "INSERT INTO t VALUES (1, 10)", true), Err("23505"));
    connection.sync().unwrap();
    assert_eq!(run(&mut connection, "SELECT k FROM t ORDER BY k"), ["1;2"]);
    assert_eq!(execute(&mut connection, "INSERT INTO t VALUES (3, 30)", false), Ok("INSERT 0 1".into()));
    assert_eq!(execute(&mut connection, "INSERT INTO t VALUES (4, 40)", true), Ok("INSERT 0 1".into()));
    connection.sync().unwrap();
    assert_eq!(run(&mut connection, "SELECT k FROM t ORDER BY k"), ["1;2;3;4"]);
}

#[test]
fn blocks_work_by_messages_too() {
    let mut connection = with_table(&instance());
    assert_eq!(execute(&mut connection, "BEGIN", true), Ok("BEGIN".into()));
    connection.sync().unwrap();
    assert_eq!(connection.state(), BlockState::Open);
    assert_eq!(execute(&mut connection, "SELECT 1/0", true), Err("22012"));
    connection.sync().unwrap();
    assert_eq!(connection.state(), BlockState::Failed);
    assert_eq!(execute(&mut connection, "SELECT 1", true), Err("25P02"));
    assert_eq!(execute(&mut connection, "ROLLBACK", true), Ok("ROLLBACK".into()));
    assert_eq!(connection.state(), BlockState::Idle);
}

#[test]
fn a_portal_gives_its_rows_in_parts() {
    let mut connection = with_table(&instance());
    let client = &mut Recorder::default();
    run(&mut connection, "INSERT INTO t VALUES (3, 30)");
    run(&mut connection, "BEGIN");
    connection.parse("", "SELECT k FROM t ORDER BY k", &[]).unwrap();
    connection.bind("p", "", Vec::new()).unwrap();
    assert_eq!(connection.bind("p", "", Vec::new()).unwrap_err().code, "42P03");
    run(&mut connection, "ROLLBACK");
    run(&mut connection, "BEGIN");
    connection.parse("", "SELECT k FROM t ORDER BY k", &[]).unwrap();
    connection.bind("p", "", Vec::new()).unwrap();
    let part = |connection: &mut Connection, client: &mut Recorder| {
        let (outcome, is_suspended) = connection.execute("p", 2, false, client).unwrap();
        (shown(&outcome), is_suspended)
    };
    assert_eq!(part(&mut connection, client), ("1;2".into(), true));
    connection.sync().unwrap();
    assert_eq!(part(&mut connection, client), ("3".into(), false));
    assert_eq!(part(&mut connection, client), ("".into(), false));
    run(&mut connection, "COMMIT");
    assert_eq!(connection.execute("p", 2, true, client).unwrap_err().code, "34000");
}

#[test]
fn a_prepared_statement_keeps_its_shape() {
    let instance = instance();
    let mut connection = with_table(&instance);
    let client = &mut Recorder::default();
    connection.parse("a", "SELECT * FROM t", &[]).unwrap();
    run(&mut connection, "CREATE TABLE other (x int)");
    connection.bind("", "a", Vec::new()).unwrap();
    assert!(connection.execute("", 0, true, client).is_ok());
    run(&mut connection, "DROP TABLE t; CREATE TABLE t (k text)");
    connection.bind("", "a", Vec::new()).unwrap();
    assert_eq!(connection.execute("", 0, true, client).unwrap_err().code, "0A000");
    // The text can be prepared anew.
    connection.parse("", "SELECT * FROM t", &[]).unwrap();
    connection.bind("", "", Vec::new()).unwrap();
    assert!(connection.execute("", 0, true, client).is_ok());
}

#[test]
fn a_prepared_statement_has_one_statement() {
    let mut connection = connect(&instance());
    assert_eq!(connection.parse("", "SELECT 1; SELECT 2", &[]).unwrap_err().code, "42601");
    assert_eq!(connection.parse("", "SELECT $1", &[999_999]).unwrap_err().code, "42704");
    assert_eq!(execute(&mut connection, "", true), Ok("empty".into()));
}

#[test]
fn cursors_give_their_rows_in_parts() {
    let mut connection = with_table(&instance());
    assert_eq!(run(&mut connection, "DECLARE c CURSOR FOR SELECT k FROM t"), ["25P01"]);
    run(&mut connection, "INSERT INTO t VALUES (3, 30)");
    run(&mut connection, "BEGIN");
    assert_eq!(run(&mut connection, "DECLARE c CURSOR FOR SELECT k FROM t ORDER BY k"), ["DECLARE CURSOR"]);
    for (text, rows) in [
        ("FETCH c", "1"),
        ("FETCH FORWARD 5 FROM c", "2;3"),
        ("FETCH NEXT FROM c", ""),
        ("FETCH BACKWARD 2 IN c", "3;2"),
        ("MOVE ABSOLUTE 1 FROM c", "MOVE 1"),
        ("FETCH ALL c", "2;3"),
        ("FETCH LAST c", "3"),
        ("FETCH RELATIVE -2 c", "1"),
    ] {
        assert_eq!(run(&mut connection, text), [rows], "{text}");
    }
    run(&mut connection, "DECLARE h NO SCROLL CURSOR WITH HOLD FOR SELECT k FROM t ORDER BY k; COMMIT");
    assert_eq!(run(&mut connection, "FETCH c"), ["34000"]);
    assert_eq!(run(&mut connection, "FETCH 2 h"), ["1;2"]);
    assert_eq!(run(&mut connection, "FETCH PRIOR h"), ["55000"]);
    assert_eq!(run(&mut connection, "CLOSE h; FETCH h"), ["CLOSE CURSOR", "34000"]);
}

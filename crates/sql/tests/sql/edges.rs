//! Statements whose results are easily wrong. Each has the result that PostgreSQL 15 gives.

use crate::support::{connect, instance, run};
use hotrow_sql::Connection;

/// A statement, and its results.
type Expected = (&'static str, &'static [&'static str]);

fn expect(connection: &mut Connection, all: &[Expected]) {
    for (text, expected) in all {
        assert_eq!(run(connection, text), *expected, "{text}");
    }
}

/// A connection to an empty database in which these statements have run.
fn after(texts: &[&str]) -> Connection {
    let mut connection = connect(&instance("occ"));
    for text in texts {
        let result = run(&mut connection, text);
        let has_failed =
            result.iter().any(|one| one.len() == 5 && one.starts_with(|first: char| first.is_ascii_digit()));
        assert!(!has_failed, "{text}: {result:?}");
    }
    connection
}

fn with_nulls() -> Connection {
    after(&[
        "CREATE TABLE t (id int PRIMARY KEY, a int, b text, g int)",
        "CREATE TABLE u (id int, b int, c text)",
        "CREATE TABLE v (a int, x numeric(6,2), s char(5))",
        "INSERT INTO t VALUES (1,10,'x',1),(2,null,'y',1),(3,30,null,2),(4,10,'x',2),(5,null,null,null)",
        "INSERT INTO u VALUES (1,10,'a'),(2,20,'b'),(null,30,'c'),(3,null,null),(1,11,'a'),(7,null,'z')",
        "INSERT INTO v VALUES (10,1.5,'ab'),(30,2.25,'x'),(null,null,null),(10,3,'x ')",
    ])
}

#[test]
fn joins_keep_rows_without_partners() {
    let mut connection = with_nulls();
    expect(
        &mut connection,
        &[
            (
                "SELECT t.id, u.b FROM t LEFT JOIN u ON t.id = u.id ORDER BY 1, 2",
                &["1,10;1,11;2,20;3,null;4,null;5,null"],
            ),
            (
                "SELECT u.id, t.a FROM t RIGHT JOIN u ON t.id = u.id AND t.a > 10 ORDER BY 1, 2",
                &["1,null;1,null;2,null;3,30;7,null;null,null"],
            ),
            (
                "SELECT t.id, u.id FROM t FULL JOIN u ON t.id = u.id AND t.a > 10 WHERE t.a > 10 OR t.id IS NULL ORDER BY 1, 2",
                &["3,3;null,1;null,1;null,2;null,7;null,null"],
            ),
            ("SELECT t.id FROM t LEFT JOIN u ON t.id = u.id WHERE u.id IS NULL ORDER BY 1", &["4;5"]),
            (
                "SELECT t.id, v.x FROM t LEFT JOIN (u JOIN v ON u.b = v.a) ON t.id = u.id WHERE t.id < 3 ORDER BY 1, 2",
                &["1,1.50;1,3.00;2,null"],
            ),
        ],
    );
}

#[test]
fn a_full_join_merges_the_columns_of_using() {
    let mut connection = with_nulls();
    expect(
        &mut connection,
        &[
            ("SELECT id FROM t FULL JOIN u USING (id) ORDER BY id", &["1;1;2;3;4;5;7;null"]),
            (
                "SELECT id, count(*) FROM t FULL JOIN u USING (id) GROUP BY id ORDER BY id LIMIT 2",
                &["1,2;2,1"],
            ),
            (
                "SELECT id FROM t FULL JOIN (SELECT 9 id) a USING (id) FULL JOIN (SELECT 8 id) b USING (id) ORDER BY id",
                &["1;2;3;4;5;8;9"],
            ),
            (
                "SELECT * FROM (SELECT 1 id) a FULL JOIN (SELECT 2 id, 3 z) b USING (id) ORDER BY id",
                &["1,null;2,3"],
            ),
        ],
    );
}

#[test]
fn queries_inside_of_others_run_for_each_row_around_them() {
    let mut connection = with_nulls();
    expect(
        &mut connection,
        &[
            // A hash table is made once; its keys must not depend on the row around the query.
            (
                "SELECT t.id, (SELECT count(*) FROM u JOIN v ON v.a + t.id = u.b + 1) FROM t ORDER BY 1",
                &["1,3;2,2;3,0;4,0;5,0"],
            ),
            (
                "SELECT t.id, (WITH c AS (SELECT t.a AS x) SELECT (SELECT max(x) FROM c)) FROM t ORDER BY 1",
                &["1,10;2,null;3,30;4,10;5,null"],
            ),
            (
                "SELECT t.id, (WITH c AS (SELECT t.a AS x) SELECT count(*) FROM u JOIN c ON c.x = u.b) FROM t ORDER BY 1",
                &["1,1;2,0;3,1;4,1;5,0"],
            ),
            (
                "SELECT t.id, (WITH c AS (SELECT t.a AS x) SELECT count(*) FROM c WHERE x IN (SELECT x FROM c)) FROM t ORDER BY 1",
                &["1,1;2,0;3,1;4,1;5,0"],
            ),
            (
                "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.id = t.id AND EXISTS (SELECT 1 FROM v WHERE v.a = u.b AND v.a = t.a))",
                &["1"],
            ),
            (
                "SELECT g, (SELECT sum(u.b + t.g) FROM u) FROM t GROUP BY g ORDER BY g",
                &["1,75;2,79;null,null"],
            ),
            // It is an aggregate of the outer query, and must not be one of the inner.
            ("SELECT (SELECT sum(t.a)) FROM t", &["0A000"]),
        ],
    );
}

#[test]
fn nulls_make_in_any_and_all_unknown() {
    let mut connection = with_nulls();
    expect(
        &mut connection,
        &[
            ("SELECT id FROM t WHERE a IN (10, null) ORDER BY id", &["1;4"]),
            ("SELECT id FROM t WHERE a NOT IN (10, null)", &[""]),
            ("SELECT id FROM t WHERE a NOT IN (SELECT b FROM u)", &[""]),
            ("SELECT id FROM t WHERE a NOT IN (SELECT b FROM u WHERE false) ORDER BY id", &["1;2;3;4;5"]),
            ("SELECT id FROM t WHERE a <> ALL (ARRAY[11]) ORDER BY id", &["1;3;4"]),
            ("SELECT 1 = ANY (ARRAY[]::int[]), 1 = ALL (ARRAY[]::int[]), ARRAY[]::text[]", &["f,t,{}"]),
            (
                "SELECT null IN (SELECT 1 WHERE false), null IN (SELECT 1), 1 IN (SELECT null::int)",
                &["f,null,null"],
            ),
            ("SELECT (null, 1) = (null, 2), (1, null) < (2, null), (1, null) < (1, 2)", &["f,t,null"]),
        ],
    );
}

#[test]
fn rows_are_compared_by_their_first_difference() {
    let mut connection = after(&[
        "CREATE TABLE p (a int, b int, PRIMARY KEY (a, b))",
        "INSERT INTO p SELECT x, y FROM generate_series(1, 3) x, generate_series(1, 3) y",
    ]);
    expect(
        &mut connection,
        &[
            ("SELECT a, b FROM p WHERE (a, b) = (2, 3)", &["2,3"]),
            ("SELECT a, b FROM p WHERE (a, b) > (2, 2) ORDER BY 1, 2", &["2,3;3,1;3,2;3,3"]),
            ("SELECT a, b FROM p WHERE (a, b) <= (1, 2) ORDER BY 1, 2", &["1,1;1,2"]),
            ("SELECT a, b FROM p WHERE (a, b) IN ((1, 1), (3, 3), (4, 4)) ORDER BY 1", &["1,1;3,3"]),
            ("SELECT count(*) FROM p WHERE (a, b) <> (1, 1)", &["8"]),
            ("SELECT 1 FROM p WHERE (a, b) = (1, 2, 3)", &["42601"]),
        ],
    );
}

#[test]
fn sets_and_distinct_take_nulls_for_equal() {
    let mut connection = with_nulls();
    expect(
        &mut connection,
        &[
            ("SELECT a FROM t UNION SELECT b FROM u ORDER BY 1", &["10;11;20;30;null"]),
            ("SELECT a FROM t EXCEPT ALL SELECT b FROM u ORDER BY 1", &["10"]),
            ("SELECT a FROM t INTERSECT ALL SELECT b FROM u ORDER BY 1 DESC", &["null;null;30;10"]),
            ("SELECT null UNION ALL SELECT 1 ORDER BY 1", &["1;null"]),
            ("SELECT '1' UNION SELECT 2 ORDER BY 1", &["1;2"]),
            ("SELECT 1 UNION SELECT 'a'", &["22P02"]),
            ("SELECT DISTINCT ON (g) g, id FROM t ORDER BY g, id DESC", &["1,2;2,4;null,5"]),
            ("SELECT DISTINCT ON (g) id FROM t ORDER BY id", &["42P10"]),
            ("SELECT string_agg(DISTINCT c, ',') FROM u", &["a,b,c,z"]),
        ],
    );
}

#[test]
fn a_statement_does_not_see_its_own_changes() {
    let mut connection = with_nulls();
    expect(
        &mut connection,
        &[
            (
                "UPDATE t SET a = (SELECT max(x.a) FROM t x WHERE x.g = t.g) + 1 WHERE g IS NOT NULL RETURNING id, a",
                &["1,11;2,11;3,31;4,31"],
            ),
            ("DELETE FROM t WHERE id = 5 RETURNING (SELECT count(*) FROM t)", &["5"]),
            ("INSERT INTO t VALUES (5) RETURNING (SELECT count(*) FROM t)", &["4"]),
            (
                "WITH d AS (DELETE FROM u WHERE id = 1 RETURNING *) SELECT count(*), (SELECT count(*) FROM u) FROM d",
                &["2,6"],
            ),
            ("SELECT count(*) FROM u", &["4"]),
            ("WITH i AS (INSERT INTO v VALUES (99)) SELECT count(*) FROM v", &["4"]),
            ("SELECT count(*) FROM v", &["5"]),
            // A row that one part deletes is no obstacle for another part that inserts it.
            (
                "WITH d AS (DELETE FROM t WHERE id = 1 RETURNING *) INSERT INTO t SELECT * FROM d",
                &["INSERT 0 1"],
            ),
            ("WITH d AS (SELECT 1) UPDATE t SET b = 'q' WHERE id < 3", &["UPDATE 2"]),
            ("WITH d AS (SELECT 1 AS id) DELETE FROM t USING d WHERE t.id = d.id", &["DELETE 1"]),
            ("WITH i AS (INSERT INTO t VALUES (2) RETURNING id) SELECT * FROM i", &["23505"]),
            ("SELECT id FROM t ORDER BY id", &["2;3;4;5"]),
        ],
    );
}

#[test]
fn numbers_outside_of_a_column_s_range_bound_all_of_its_values() {
    let mut connection = after(&[
        "CREATE TABLE k (i int PRIMARY KEY, s smallint, n numeric(6,1), f float8)",
        "CREATE INDEX ON k (s)",
        "CREATE INDEX ON k (n)",
        "CREATE UNIQUE INDEX ON k (f)",
        "INSERT INTO k VALUES (-2147483648,-32768,'NaN','NaN'),(1,1,1.5,'-0'),(2147483647,32767,9,'Infinity'),(3,null,null,null)",
    ]);
    expect(
        &mut connection,
        &[
            ("SELECT count(*) FROM k WHERE i < 2147483648", &["4"]),
            ("SELECT count(*) FROM k WHERE i >= -99999999999", &["4"]),
            ("SELECT count(*) FROM k WHERE i BETWEEN -99999999999 AND 99999999999", &["4"]),
            ("SELECT count(*) FROM k WHERE i > 2147483648", &["0"]),
            ("SELECT count(*) FROM k WHERE s < 40000", &["3"]),
            ("SELECT i FROM k WHERE s > 0 AND s < 40000 ORDER BY i", &["1;2147483647"]),
            ("SELECT count(*) FROM k WHERE i = 1.5", &["0"]),
            ("SELECT count(*) FROM k WHERE i = 1.0", &["1"]),
            ("SELECT i FROM k WHERE i IN (1, 2.5, 99999999999)", &["1"]),
            ("SELECT i FROM k WHERE n = 1.50", &["1"]),
            ("SELECT i FROM k WHERE n = 'NaN'", &["-2147483648"]),
            ("SELECT i FROM k WHERE f = 0", &["1"]),
            ("SELECT i FROM k WHERE f > 1 ORDER BY f", &["2147483647;-2147483648"]),
            ("INSERT INTO k VALUES (5, 1, 1, 0)", &["23505"]),
            ("INSERT INTO k VALUES (5, 1, 1, 'nan')", &["23505"]),
            ("INSERT INTO k VALUES (5, 32768, 1, 2)", &["22003"]),
            ("INSERT INTO k VALUES (5, 1, 99999.95, 2)", &["22003"]),
            ("UPDATE k SET i = i + 1 WHERE i = 2147483647", &["22003"]),
            ("UPDATE k SET s = s + 1 WHERE i = 2147483647", &["22003"]),
            ("UPDATE k SET s = s - 1 WHERE i = -2147483648", &["22003"]),
            ("SELECT s / -1 FROM k WHERE i = -2147483648", &["32768"]),
            ("SELECT i / -1 FROM k WHERE i = -2147483648", &["22003"]),
        ],
    );
}

#[test]
fn texts_have_their_columns_lengths() {
    let mut connection = after(&[
        "CREATE TABLE c (a char(4) UNIQUE, v varchar(3))",
        "INSERT INTO c VALUES ('a', 'abc   '), ('', '')",
    ]);
    let long = "x".repeat(3_000);
    expect(
        &mut connection,
        &[
            ("SELECT v || '|', a || '|', octet_length(a) FROM c WHERE a = 'a      '", &["abc|,a|,4"]),
            ("SELECT count(*) FROM c WHERE a = 'a  '::text", &["0"]),
            ("INSERT INTO c VALUES ('a   ', 'x')", &["23505"]),
            ("INSERT INTO c VALUES ('abcde', 'x')", &["22001"]),
            ("INSERT INTO c VALUES ('b', 'abcd')", &["22001"]),
            ("SELECT 'abcd'::varchar(2), 'abcd'::char(2)", &["ab,ab"]),
            ("CREATE TABLE l (s text PRIMARY KEY)", &["CREATE TABLE"]),
        ],
    );
    assert_eq!(run(&mut connection, &format!("INSERT INTO l VALUES ('{long}')")), ["INSERT 0 1"]);
    assert_eq!(run(&mut connection, &format!("SELECT length(s) FROM l WHERE s = '{long}'")), ["3000"]);
    assert_eq!(run(&mut connection, "SELECT 'a\0b'").len(), 1);
}

#[test]
fn upserts_ask_the_index_that_they_name() {
    let mut connection = after(&[
        "CREATE TABLE a (id int PRIMARY KEY, v int CHECK (v > 0), u int UNIQUE)",
        "INSERT INTO a VALUES (1, 1, 10), (2, 2, 20), (3, 3, null)",
    ]);
    expect(
        &mut connection,
        &[
            ("INSERT INTO a VALUES (9, 9, 10) ON CONFLICT DO NOTHING", &["INSERT 0 0"]),
            (
                "INSERT INTO a VALUES (1, 9, 99) ON CONFLICT (id) DO UPDATE SET v = excluded.v + a.v RETURNING *",
                &["1,10,10"],
            ),
            ("INSERT INTO a VALUES (9, 9, 10) ON CONFLICT (id) DO UPDATE SET v = 1", &["23505"]),
            (
                "INSERT INTO a VALUES (9, 9, 10) ON CONFLICT (u) DO UPDATE SET u = 11 RETURNING *",
                &["1,10,11"],
            ),
            ("INSERT INTO a VALUES (8, 1), (8, 2) ON CONFLICT (id) DO UPDATE SET v = 5", &["21000"]),
            ("INSERT INTO a VALUES (1, 1) ON CONFLICT (id) DO UPDATE SET v = -1", &["23514"]),
            ("INSERT INTO a VALUES (4, 4, null), (5, 5, null)", &["INSERT 0 2"]),
            ("SELECT * FROM a ORDER BY id", &["1,10,11;2,2,20;3,3,null;4,4,null;5,5,null"]),
        ],
    );
}

#[test]
fn assignments_that_cannot_be_are_refused() {
    let mut connection = after(&[
        "CREATE TABLE s (id serial PRIMARY KEY, x int GENERATED ALWAYS AS IDENTITY, z int DEFAULT 7)",
        "INSERT INTO s VALUES (DEFAULT, DEFAULT, DEFAULT)",
    ]);
    expect(
        &mut connection,
        &[
            // DEFAULT has drawn one number.
            ("INSERT INTO s DEFAULT VALUES RETURNING *", &["2,2,7"]),
            ("UPDATE s SET x = 1", &["428C9"]),
            ("INSERT INTO s (x) VALUES (5)", &["428C9"]),
            ("UPDATE s SET x = DEFAULT WHERE id = 1 RETURNING x", &["3"]),
            ("UPDATE s SET s.z = 1", &["42703"]),
            ("UPDATE s SET z = 1, z = 2", &["42601"]),
        ],
    );
}

#[test]
fn definitions_are_rolled_back() {
    let mut connection = after(&["CREATE TABLE k (x int)", "INSERT INTO k VALUES (1), (1), (3)"]);
    expect(
        &mut connection,
        &[
            (
                "BEGIN; CREATE TABLE b (x int); INSERT INTO b VALUES (1), (2); ALTER TABLE b ADD PRIMARY KEY (x)",
                &["BEGIN", "CREATE TABLE", "INSERT 0 2", "ALTER TABLE"],
            ),
            ("INSERT INTO b VALUES (2)", &["23505"]),
            ("ROLLBACK", &["ROLLBACK"]),
            ("SELECT * FROM b", &["42P01"]),
            ("BEGIN; SAVEPOINT s", &["BEGIN", "SAVEPOINT"]),
            ("ALTER TABLE k ADD PRIMARY KEY (x)", &["23505"]),
            (
                "ROLLBACK TO s; CREATE INDEX kx ON k (x); SELECT count(*) FROM k WHERE x = 1",
                &["ROLLBACK", "CREATE INDEX", "2"],
            ),
            (
                "SAVEPOINT t; TRUNCATE k; INSERT INTO k VALUES (7); DROP TABLE k; SELECT 1 FROM k",
                &["SAVEPOINT", "TRUNCATE TABLE", "INSERT 0 1", "DROP TABLE", "42P01"],
            ),
            ("ROLLBACK TO t; SELECT x FROM k WHERE x < 5 ORDER BY x", &["ROLLBACK", "1;1;3"]),
            ("ROLLBACK", &["ROLLBACK"]),
            (
                "BEGIN; DROP TABLE k; CREATE TABLE k (y text); INSERT INTO k VALUES ('q'); SELECT * FROM k; ROLLBACK",
                &["BEGIN", "DROP TABLE", "CREATE TABLE", "INSERT 0 1", "q", "ROLLBACK"],
            ),
            ("SELECT x FROM k ORDER BY x", &["1;1;3"]),
        ],
    );
}

#[test]
fn prepared_statements_follow_their_tables() {
    let mut connection = after(&[
        "CREATE TABLE t (id int PRIMARY KEY, v int)",
        "INSERT INTO t VALUES (1, 2)",
        "PREPARE p AS SELECT v FROM t WHERE id = $1",
        "PREPARE q AS SELECT * FROM t",
        "ALTER TABLE t ADD COLUMN w int DEFAULT 5",
    ]);
    expect(
        &mut connection,
        &[
            ("EXECUTE p(1)", &["2"]),
            ("EXECUTE q", &["0A000"]),
            ("EXECUTE p('x')", &["22P02"]),
            ("EXECUTE p", &["42601"]),
            (
                "DROP TABLE t; CREATE TABLE t (id int, v int); INSERT INTO t VALUES (1, 3), (1, 4)",
                &["DROP TABLE", "CREATE TABLE", "INSERT 0 2"],
            ),
            ("EXECUTE p(1)", &["3;4"]),
            ("PREPARE r AS SELECT $1 = $2", &["PREPARE"]),
        ],
    );
}

#[test]
fn a_definition_waits_for_open_transactions_without_using_up_storages() {
    let instance = instance("occ");
    let mut connection = connect(&instance);
    run(&mut connection, "CREATE TABLE d (id int, v int)");
    run(&mut connection, "INSERT INTO d VALUES (1, 1)");
    run(&mut connection, "BEGIN");
    assert_eq!(run(&mut connection, "INSERT INTO d VALUES (2, 2)"), ["INSERT 0 1"]);
    let before = instance.database().names().len();
    let (altered, during) = hotrow::sync::thread::scope(|scope| {
        let other = scope.spawn(|| {
            let mut other = connect(&instance);
            run(&mut other, "SET statement_timeout = '100ms'");
            run(&mut other, "ALTER TABLE d ADD PRIMARY KEY (id)")
        });
        hotrow::sync::thread::sleep(std::time::Duration::from_millis(60));
        let during = instance.database().names().len();
        (other.join().unwrap(), during)
    });
    // It ends by its timeout, or has won against the transaction that is open.
    assert!(altered == ["57014"] || altered == ["ALTER TABLE"], "{altered:?}");
    assert!(during <= before + 1, "{before} {during}");
    assert_eq!(instance.database().names().len(), before);
    let committed = run(&mut connection, "COMMIT");
    assert_eq!(committed == ["COMMIT"], altered == ["57014"], "{committed:?}");
}

#[test]
fn an_addition_that_fails_at_the_commit_is_an_error_alone() {
    let mut connection = after(&[
        "CREATE TABLE hot (id int PRIMARY KEY, n int, s smallint)",
        "INSERT INTO hot VALUES (1, 2147483647, 32760)",
    ]);
    expect(
        &mut connection,
        &[
            ("UPDATE hot SET s = s + 10 WHERE id = 1", &["22003"]),
            ("UPDATE hot SET n = n + 1 WHERE id = 1", &["22003"]),
            (
                "UPDATE hot SET n = n - 1 WHERE id = 1; UPDATE hot SET s = s + 10 WHERE id = 1",
                &["UPDATE 1", "22003"],
            ),
            ("SELECT * FROM hot", &["1,2147483647,32760"]),
        ],
    );
}

#[test]
fn a_query_may_use_its_own_name() {
    let mut connection = after(&[
        "CREATE TABLE part (id int PRIMARY KEY, parent int)",
        "INSERT INTO part VALUES (1, null), (2, 1), (3, 1), (4, 2), (5, 4), (6, 9)",
    ]);
    expect(
        &mut connection,
        &[
            (
                "WITH RECURSIVE t(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM t WHERE n < 5) SELECT sum(n), count(*) FROM t",
                &["15,5"],
            ),
            (
                "WITH RECURSIVE below AS (SELECT id, 0 AS depth FROM part WHERE id = 1 UNION ALL \
                 SELECT p.id, b.depth + 1 FROM part p JOIN below b ON p.parent = b.id) \
                 SELECT id, depth FROM below ORDER BY 1",
                &["1,0;2,1;3,1;4,2;5,3"],
            ),
            // Without ALL a circle ends.
            (
                "WITH RECURSIVE round(n) AS (SELECT 0 UNION SELECT (n + 1) % 3 FROM round) SELECT n FROM round ORDER BY 1",
                &["0;1;2"],
            ),
            (
                "WITH RECURSIVE plain AS (SELECT 1 AS x UNION SELECT 2), other AS (SELECT x + 10 AS y FROM plain) \
                 SELECT y FROM other ORDER BY 1",
                &["11;12"],
            ),
        ],
    );
}

#[test]
fn no_bound_holds_for_nulls_and_none_is_computed_once_that_may_change() {
    let mut connection = after(&[
        "CREATE TABLE n (k int PRIMARY KEY, n int, a int)",
        "CREATE INDEX ON n (n)",
        "CREATE INDEX ON n (a, n)",
        "INSERT INTO n VALUES (1, 5, 1), (2, NULL, 1), (3, 7, 1), (4, NULL, 2), (5, 9, 2)",
        "CREATE SEQUENCE q",
    ]);
    expect(
        &mut connection,
        &[
            ("SELECT k FROM n WHERE n > 6 ORDER BY k", &["3;5"]),
            ("SELECT k FROM n WHERE n >= 7 ORDER BY k", &["3;5"]),
            ("SELECT k FROM n WHERE n < 8 ORDER BY k", &["1;3"]),
            ("SELECT k FROM n WHERE a = 1 AND n > 6 ORDER BY k", &["3"]),
            (
                "SELECT s.k, t.k FROM n s LEFT JOIN n t ON t.n > s.n ORDER BY 1, 2",
                &["1,3;1,5;2,null;3,5;4,null;5,null"],
            ),
            ("SELECT count(*) FROM n WHERE k < nextval('q') + 1", &["5"]),
            ("DELETE FROM n WHERE n > 6 RETURNING k", &["3;5"]),
        ],
    );
}

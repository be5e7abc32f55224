//! Definitions as a client sees them. The expected texts and codes are PostgreSQL 15's.

use crate::virtual_tables::transcript::{ask, ask_elsewhere, connect};
use crate::{Instance, InstanceOptions};
use std::path::Path;
use std::process::{Command, Stdio};

fn check(script: &[(&str, &str)]) {
    let instance = Instance::open(InstanceOptions::default()).unwrap();
    let mut connection = connect(&instance);
    for (text, expected) in script {
        assert_eq!(ask(&mut connection, text), *expected, "{text}");
    }
}

#[test]
fn a_table_gets_postgresqls_names_and_defaults() {
    check(&[
        (
            "create table t (id serial primary key, v varchar(5) default 'x' unique, n numeric(5,2) default 1,
             o int default -1, at timestamptz default now(), check (o < 5), check (o < n and n > 0))",
            "CREATE TABLE",
        ),
        (
            "select column_name, column_default from information_schema.columns where table_name = 't' order by ordinal_position",
            "id|nextval('t_id_seq'::regclass); v|'x'::character varying; n|1; o|'-1'::integer; at|now()",
        ),
        (
            "select conname, pg_get_constraintdef(oid, true) from pg_constraint order by 1",
            "t_check|CHECK (o::numeric < n AND n > 0::numeric); t_o_check|CHECK (o < 5); \
             t_pkey|PRIMARY KEY (id); t_v_key|UNIQUE (v)",
        ),
        ("insert into t (n) values (2) returning id, v, n, o", "1|x|2.00|-1"),
    ]);
}

#[test]
fn definitions_that_cannot_be_are_refused() {
    check(&[
        ("create table t (a int, a int)", "42701: column \"a\" specified more than once"),
        (
            "create table t (a int primary key, primary key (a))",
            "42P16: multiple primary keys for table \"t\" are not allowed",
        ),
        ("create table t (a int, unique (b))", "42703: column \"b\" named in key does not exist"),
        (
            "create table t (a int null not null)",
            "42601: conflicting NULL/NOT NULL declarations for column \"a\" of table \"t\"",
        ),
        ("create table t (a int default b)", "0A000: cannot use column reference in DEFAULT expression"),
        (
            "create table t (a int default true)",
            "42804: column \"a\" is of type integer but default expression is of type boolean",
        ),
        ("create table t (a int check (a > (select 1)))", "0A000: cannot use subquery in check constraint"),
        ("create table t (a nosuch)", "42704: type \"nosuch\" does not exist"),
        ("create table t (a int references u)", "0A000: REFERENCES is not supported"),
        ("create table nowhere.t (a int)", "3F000: schema \"nowhere\" does not exist"),
        (
            "create table t (a int); create table t (a int)",
            "CREATE TABLE; 42P07: relation \"t\" already exists",
        ),
        ("create table if not exists t (a int)", "CREATE TABLE"),
        (
            "create table if not exists t (a int)",
            "NOTICE: relation \"t\" already exists, skipping; CREATE TABLE",
        ),
        ("create sequence s increment 0", "22023: INCREMENT must not be zero"),
        ("drop table nope", "42P01: table \"nope\" does not exist"),
        ("drop table if exists nope", "NOTICE: table \"nope\" does not exist, skipping; DROP TABLE"),
    ]);
}

#[test]
fn a_key_is_made_for_rows_that_are_there() {
    check(&[
        ("create table t (a int, b text)", "CREATE TABLE"),
        ("insert into t select g, 'r' || g / 2 from generate_series(1, 1000) g", "INSERT 0 1000"),
        ("create index on t (b)", "CREATE INDEX"),
        (
            "create unique index u on t (b)",
            "23505: could not create unique index \"u\"; Key (b)=(r1) is duplicated.",
        ),
        (
            "alter table t add primary key (b)",
            "23505: could not create unique index \"t_pkey\"; Key (b)=(r1) is duplicated.",
        ),
        ("alter table t add primary key (a)", "ALTER TABLE"),
        ("select a from t where b = 'r77' order by a", "154; 155"),
        (
            "insert into t values (77, 'x')",
            "23505: duplicate key value violates unique constraint \"t_pkey\"; Key (a)=(77) already exists.",
        ),
        (
            "drop index t_pkey",
            "2BP01: cannot drop index t_pkey because constraint t_pkey on table t requires it",
        ),
        ("alter table t drop constraint t_pkey", "ALTER TABLE"),
        ("insert into t values (77, 'r77')", "INSERT 0 1"),
        ("select a from t where b = 'r77' order by a", "77; 154; 155"),
    ]);
}

#[test]
fn columns_come_and_go() {
    check(&[
        ("create table t (a int primary key, b text unique, c serial, check (b <> 'b'))", "CREATE TABLE"),
        ("insert into t values (1, 'x'), (2, 'y')", "INSERT 0 2"),
        ("alter table t add d int default 7, add e text not null default 'q'", "ALTER TABLE"),
        ("alter table t add f int not null", "23502: column \"f\" of relation \"t\" contains null values"),
        (
            "alter table t add f int check (f > 0) default 0",
            "23514: check constraint \"t_f_check\" of relation \"t\" is violated by some row",
        ),
        ("alter table t rename b to bb", "ALTER TABLE"),
        (
            "select pg_get_constraintdef(oid) from pg_constraint where contype = 'c'",
            "CHECK (bb <> 'b'::text)",
        ),
        ("alter table t drop a, drop d", "ALTER TABLE"),
        ("select * from t order by c", "x|1|q; y|2|q"),
        (
            "insert into t (bb) values ('x')",
            "23505: duplicate key value violates unique constraint \"t_b_key\"; Key (bb)=(x) already exists.",
        ),
        ("insert into t (bb) values ('z') returning c", "4"),
        ("alter table t drop c", "ALTER TABLE"),
        ("select relname from pg_class where relnamespace = 2200 order by 1", "t; t_b_key"),
    ]);
}

#[test]
fn what_a_transaction_has_defined_goes_with_it() {
    let instance = Instance::open(InstanceOptions::default()).unwrap();
    let mut one = connect(&instance);
    ask(&mut one, "create table t (a int primary key); insert into t values (1), (2)");
    ask(
        &mut one,
        "begin; truncate t; insert into t values (3); alter table t add b int; create table u (a int)",
    );
    assert_eq!(ask(&mut one, "select * from t"), "3|");
    assert_eq!(ask_elsewhere(&instance, "select * from t"), "1; 2");
    assert_eq!(ask_elsewhere(&instance, "select 1 from u"), "42P01: relation \"u\" does not exist");
    ask(&mut one, "rollback");
    assert_eq!(ask(&mut one, "select * from t"), "1; 2");
    assert_eq!(
        ask(&mut one, "begin; drop table t; create table t (b text); commit"),
        "BEGIN; DROP TABLE; CREATE TABLE; COMMIT"
    );
    assert_eq!(ask_elsewhere(&instance, "select count(*) from t"), "0");
}

#[test]
fn definitions_survive_the_process() {
    // The test runs itself as another process, which makes the database.
    const DIRECTORY: &str = "HOTROW_TEST_DIRECTORY";
    let open = |directory: &Path| {
        let directory = Some(directory.to_owned());
        Instance::open(InstanceOptions { directory, ..InstanceOptions::default() }).unwrap()
    };
    if let Some(directory) = std::env::var_os(DIRECTORY) {
        let mut connection = connect(&open(Path::new(&directory)));
        ask(
            &mut connection,
            "create table t (a int, b text unique); insert into t values (1, 'x'), (2, 'y')",
        );
        ask(
            &mut connection,
            "begin; alter table t add primary key (a); truncate t; insert into t values (7, 'z'); commit",
        );
        return;
    }
    let directory = std::env::temp_dir().join(format!("hotrow-define-{}", std::process::id()));
    let mut other = Command::new(std::env::current_exe().unwrap());
    let name = concat!(module_path!(), "::definitions_survive_the_process");
    let name = name.split_once("::").unwrap().1;
    let status =
        other.args(["--exact", name]).env(DIRECTORY, &directory).stdout(Stdio::null()).status().unwrap();
    assert!(status.success());
    let mut connection = connect(&open(&directory));
    assert_eq!(ask(&mut connection, "select * from t where b = 'z'"), "7|z");
    let again = ask(&mut connection, "insert into t values (7, 'y')");
    assert!(again.starts_with("23505") && again.contains("t_pkey"), "{again}");
    std::fs::remove_dir_all(&directory).unwrap();
}

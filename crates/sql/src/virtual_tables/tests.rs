//! The common properties of the system's tables, and the names of things.

use super::transcript::{ask, ask_elsewhere, connect};
use super::{find, name_of, number_of, schema};
use crate::catalog::Catalog;
use crate::values::Type;
use crate::{Instance, InstanceOptions};
use std::collections::HashSet;

#[test]
fn tables_have_numbers_and_names_of_their_own() {
    let mut numbers = HashSet::new();
    for table in schema::tables() {
        assert!(numbers.insert(table.oid), "{table:?}");
        assert!(std::ptr::eq(find(Some(table.schema), table.name).unwrap(), table), "{table:?}");
        let columns: HashSet<&str> = table.columns.iter().map(|(name, _)| *name).collect();
        assert_eq!(columns.len(), table.columns.len(), "{table:?}");
    }
    assert!(find(None, "tables").is_none());
    assert_eq!(find(None, "pg_class").unwrap().oid, 1259);
}

#[test]
fn names_of_types_functions_and_schemas_lead_to_numbers_and_back() {
    let catalog = Catalog::new(Vec::new());
    for (name, ty, number, shown) in [
        ("pg_class", Type::Regclass, 1259, "pg_class"),
        ("Pg_Catalog.PG_CLASS", Type::Regclass, 1259, "pg_class"),
        ("information_schema.tables", Type::Regclass, 13425, "information_schema.tables"),
        ("Character Varying(10)", Type::Regtype, 1043, "character varying"),
        ("int4[]", Type::Regtype, 1007, "integer[]"),
        ("array_in", Type::Regproc, 750, "array_in"),
        ("public", Type::Regnamespace, 2200, "public"),
        ("77", Type::Regclass, 77, ""),
        ("-", Type::Regclass, 0, "-"),
    ] {
        assert_eq!(number_of(name, ty, &catalog), Ok(number), "{name}");
        assert_eq!(name_of(number, ty, &catalog).unwrap_or_default(), shown, "{name}");
    }
    for (name, ty, code) in [
        ("nothing", Type::Regclass, "42P01"),
        ("nowhere.pg_class", Type::Regclass, "3F000"),
        ("a.\"b", Type::Regclass, "42602"),
        ("nothing", Type::Regtype, "42704"),
        ("nothing", Type::Regproc, "42883"),
        ("abs", Type::Regproc, "42725"),
        ("nowhere", Type::Regnamespace, "3F000"),
        ("99999999999", Type::Regclass, "22003"),
    ] {
        assert_eq!(number_of(name, ty, &catalog).unwrap_err().code, code, "{name}");
    }
}

#[test]
fn every_table_can_be_read() {
    let instance = Instance::open(InstanceOptions::default()).unwrap();
    let mut connection = connect(&instance);
    let made = "create table t (id serial primary key, a int[] unique, b numeric(5,2) default 1, check (b > 0)); \
                create index on t (b); create sequence s; create table u (a int generated always as identity)";
    assert_eq!(ask(&mut connection, made), "CREATE TABLE; CREATE INDEX; CREATE SEQUENCE; CREATE TABLE");
    for table in schema::tables() {
        // A row that is not as wide as its table stops a debug build.
        let read = ask(&mut connection, &format!("select * from {}.{}", table.schema, table.name));
        assert!(!read.contains(" does not exist") && !read.contains("XX000"), "{table:?}: {read}");
    }
}

#[test]
fn psql_shows_a_table() {
    let instance = Instance::open(InstanceOptions::default()).unwrap();
    let mut connection = connect(&instance);
    ask(
        &mut connection,
        "create table t (id serial primary key, v varchar(20) not null, n numeric default 0)",
    );
    let columns = "SELECT a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod), \
        (SELECT pg_catalog.pg_get_expr(d.adbin, d.adrelid, true) FROM pg_catalog.pg_attrdef d \
         WHERE d.adrelid = a.attrelid AND d.adnum = a.attnum AND a.atthasdef), a.attnotnull \
        FROM pg_catalog.pg_attribute a \
        WHERE a.attrelid = 't'::regclass AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum";
    assert_eq!(
        ask(&mut connection, columns),
        "id|integer|nextval('t_id_seq'::regclass)|t; v|character varying(20)||t; n|numeric|0|f"
    );
    let indexes = "SELECT c2.relname, i.indisprimary, pg_catalog.pg_get_indexdef(i.indexrelid, 0, true), \
        pg_catalog.pg_get_constraintdef(con.oid, true), contype \
        FROM pg_catalog.pg_class c, pg_catalog.pg_class c2, pg_catalog.pg_index i \
        LEFT JOIN pg_catalog.pg_constraint con ON (conrelid = i.indrelid AND conindid = i.indexrelid AND contype IN ('p','u','x')) \
        WHERE c.oid = 't'::regclass AND c.oid = i.indrelid AND i.indexrelid = c2.oid";
    assert_eq!(
        ask(&mut connection, indexes),
        "t_pkey|t|CREATE UNIQUE INDEX t_pkey ON public.t USING btree (id)|PRIMARY KEY (id)|p"
    );
}

#[test]
fn a_lost_conflict_is_shown_by_its_table_and_key() {
    let instance = Instance::open(InstanceOptions::default()).unwrap();
    let mut one = connect(&instance);
    ask(
        &mut one,
        "create table t (a int, b text, c int, primary key (a, b)); insert into t values (1, 'x', 0)",
    );
    ask(&mut one, "begin; select c from t where a = 1 and b = 'x'");
    ask_elsewhere(&instance, "update t set c = 5 where a = 1 and b = 'x'");
    let lost = ask(&mut one, "update t set c = 6 where a = 1 and b = 'x'; commit");
    assert!(lost.contains("40001"), "{lost}");
    let shown = ask_elsewhere(
        &instance,
        "select table_name, key from hotrow_hot_rows order by conflicts desc limit 1",
    );
    assert_eq!(shown, "t|(a, b)=(1, x)");
}

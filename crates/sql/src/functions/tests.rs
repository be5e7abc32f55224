//! Results of functions, as PostgreSQL 15 gives them.

use super::{CatalogNames, Environment, SessionSettings, lookup};
use crate::error::SqlError;
use crate::values::{Datum, Type, cast};
use std::time::Duration;

struct Surroundings;

impl CatalogNames for Surroundings {
    fn relation_name(&self, oid: u32) -> Option<String> {
        (oid == 16_384).then(|| "accounts".to_owned())
    }

    fn relation_oid(&self, name: &str) -> Option<u32> {
        (name == "accounts").then_some(16_384)
    }

    fn index_definition(&self, index: u32, column: Option<i32>) -> Option<String> {
        (index == 16_385)
            .then(|| column.map_or("CREATE INDEX".to_owned(), |column| format!("column {column}")))
    }

    fn constraint_definition(&self, _: u32) -> Option<String> {
        None
    }
}

impl SessionSettings for Surroundings {
    fn setting(&self, name: &str) -> Option<String> {
        (name == "TimeZone").then(|| "UTC".to_owned())
    }

    fn set(&self, name: &str, _: Option<&str>, _: bool) -> Result<(), SqlError> {
        if name == "TimeZone" { Ok(()) } else { Err(SqlError::new("42704", "unknown")) }
    }

    fn notify(&self, channel: &str, _: &str) -> Result<(), SqlError> {
        if channel.is_empty() { Err(SqlError::new("22023", "empty")) } else { Ok(()) }
    }

    fn clock(&self) -> i64 {
        2_000_000
    }

    fn sleep(&self, time: Duration) -> Result<(), SqlError> {
        if time > Duration::from_secs(1) { Err(SqlError::new("57014", "canceled")) } else { Ok(()) }
    }
}

/// The text of a call's result, or the code of its error. Arguments are `type:text`, a text alone is a literal.
fn call(name: &str, arguments: &[&str]) -> String {
    let result = || {
        let (mut types, mut values) = (Vec::new(), Vec::new());
        for argument in arguments {
            let typed = argument.split_once(':').and_then(|(ty, text)| Some((Type::of_name(ty)?, text)));
            let (ty, text) = typed.unwrap_or((Type::Unknown, argument));
            types.push(ty);
            values.push(if text == "NULL" { Datum::Null } else { Datum::parse(text, ty)? });
        }
        let function = lookup(name, &types)?;
        let wanted = function.argument_types(&types);
        for ((value, from), to) in values.iter_mut().zip(&types).zip(wanted) {
            *value = cast(value.clone(), *from, to, -1)?;
        }
        let environment = Environment {
            now: 1_000_000,
            statement_time: 1_000_000,
            user: "ada",
            database: "bank",
            process: 7,
            names: &Surroundings,
            settings: &Surroundings,
        };
        let value = function.call(&values, &environment)?;
        let text = value.to_text(function.result(&types));
        Ok::<_, SqlError>(if value.is_null() { "NULL".to_owned() } else { text })
    };
    result().unwrap_or_else(|error| error.code.to_owned())
}

fn check(cases: &[(&str, &[&str], &str)]) {
    for (name, arguments, expected) in cases {
        assert_eq!(call(name, arguments), *expected, "{name} {arguments:?}");
    }
}

#[test]
fn functions_of_numbers() {
    check(&[
        ("abs", &["int4:-2147483648"], "22003"),
        ("round", &["numeric:2.5"], "3"),
        ("round", &["float8:2.5"], "2"),
        ("round", &["numeric:155", "int4:-1"], "160"),
        ("sqrt", &["numeric:2"], "1.414213562373095"),
        ("power", &["float8:-8", "float8:0.5"], "2201F"),
        ("log", &["numeric:2", "numeric:8"], "3.0000000000000000"),
        ("mod", &["int4:-7", "int4:3"], "-1"),
        ("gcd", &["int4:12", "int4:-18"], "6"),
        ("factorial", &["int8:21"], "51090942171709440000"),
        ("to_char", &["numeric:-1234.5", "FM9,999.00"], "-1,234.50"),
        ("to_char", &["int4:5", "000"], " 005"),
        ("to_number", &["-1,234.5", "9,999.9"], "-1234.5"),
    ]);
}

#[test]
fn functions_of_texts() {
    check(&[
        ("length", &["bpchar:ab  "], "2"),
        ("upper", &["äß"], "Äß"),
        ("initcap", &["hello wOrld"], "Hello World"),
        ("substring", &["abcdef", "int4:-1", "int4:4"], "ab"),
        ("substr", &["abc", "int4:1", "int4:-1"], "22011"),
        ("left", &["äbc", "int4:-1"], "äb"),
        ("right", &["äbc", "int4:2"], "bc"),
        ("lpad", &["7", "int4:3", "0"], "007"),
        ("repeat", &["ab", "int4:2147483647"], "54000"),
        ("split_part", &["a,b,c", ",", "int4:-1"], "c"),
        ("translate", &["abc", "ab", "x"], "xc"),
        ("concat_ws", &["-", "int4:1", "text:NULL", "bool:t"], "1-t"),
        ("format", &["%I: %L %-3s|", "Ab", "it's", "x"], "\"Ab\": 'it''s' x  |"),
        ("format", &["%s"], "22023"),
        ("quote_ident", &["select"], "\"select\""),
        ("quote_literal", &["a\\b"], "E'a\\\\b'"),
        ("md5", &["abc"], "900150983cd24fb0d6963f7d28e17f72"),
        ("encode", &["bytea:\\x616263", "base64"], "YWJj"),
        ("decode", &["YQ=", "base64"], "22023"),
        ("chr", &["int4:55296"], "54000"),
        ("regexp_replace", &["abcabc", "(a)(b)?", "[\\2\\&]", "g"], "[bab]c[bab]c"),
        ("regexp_match", &["abc", "b(.)"], "{c}"),
        ("regexp_like", &["abc", "("], "2201B"),
        ("string_to_array", &["a,b,", ",", "a"], "{NULL,b,\"\"}"),
        ("array_to_string", &["_int4:{1,NULL,2}", "-", "*"], "1-*-2"),
        ("array_position", &["_int4:{1,2}", "2"], "2"),
        ("array_append", &["_int4:{1}", "x"], "22P02"),
    ]);
}

#[test]
fn functions_of_times() {
    check(&[
        ("now", &[], "2000-01-01 00:00:01+00"),
        ("clock_timestamp", &[], "2000-01-01 00:00:02+00"),
        ("current_date", &[], "2000-01-01"),
        ("extract", &["second", "timestamp:2024-02-29 12:34:56.5"], "56.500000"),
        ("extract", &["hour", "date:2024-02-29"], "0A000"),
        ("extract", &["nonsense", "date:2024-02-29"], "22023"),
        ("date_part", &["week", "date:2021-01-03"], "53"),
        ("extract", &["epoch", "interval:1 year 1 day"], "31644000.000000"),
        ("date_trunc", &["quarter", "timestamp:2024-05-06 07:08"], "2024-04-01 00:00:00"),
        ("date_trunc", &["century", "timestamp:0001-05-06"], "0001-01-01 00:00:00"),
        ("age", &["timestamp:2024-03-01", "timestamp:2024-01-31"], "1 mon 1 day"),
        (
            "age",
            &["timestamp:1999-12-31 23:59:59", "timestamp:2020-06-15"],
            "-20 years -5 mons -14 days -00:00:01",
        ),
        ("make_date", &["int4:2023", "int4:2", "int4:29"], "22008"),
        (
            "make_timestamp",
            &["int4:-44", "int4:3", "int4:15", "int4:1", "int4:2", "float8:3.5"],
            "0044-03-15 01:02:03.5 BC",
        ),
        ("to_timestamp", &["float8:1e300"], "22008"),
        (
            "to_char",
            &["timestamp:2024-02-09 15:06:07.25", "FMDay, DDth Mon YYYY HH12:MI:SS.MS PM"],
            "Friday, 09th Feb 2024 03:06:07.250 PM",
        ),
        ("to_char", &["interval:-1 day 02:03", "DD HH24:MI"], "-1 02:03"),
        ("to_char", &["interval:1 day", "Day"], "22007"),
        ("to_date", &["29 Feb 2024", "DD Mon YYYY"], "2024-02-29"),
        ("to_date", &["2023-02-29", "YYYY-MM-DD"], "22008"),
        ("justify_interval", &["interval:1 mon -1 hour"], "29 days 23:00:00"),
    ]);
}

#[test]
fn functions_of_the_catalog_and_the_session() {
    check(&[
        ("format_type", &["oid:1043", "int4:14"], "character varying(10)"),
        ("format_type", &["oid:1042", "int4:NULL"], "character"),
        ("pg_table_is_visible", &["oid:16384"], "t"),
        ("pg_table_is_visible", &["oid:1"], "NULL"),
        ("pg_get_indexdef", &["oid:16385", "int4:2", "bool:t"], "column 2"),
        ("pg_get_userbyid", &["oid:9"], "unknown (OID=9)"),
        ("to_regclass", &["public.Accounts"], "16384"),
        ("pg_size_pretty", &["int8:10240"], "10 kB"),
        ("has_table_privilege", &["accounts", "select"], "t"),
        ("current_user", &[], "ada"),
        ("current_database", &[], "bank"),
        ("current_schemas", &["bool:t"], "{pg_catalog,public}"),
        ("current_setting", &["TimeZone"], "UTC"),
        ("current_setting", &["nothing"], "42704"),
        ("current_setting", &["nothing", "bool:t"], "NULL"),
        ("set_config", &["NULL", "x", "bool:f"], "22004"),
        ("set_config", &["nothing", "x", "bool:f"], "42704"),
        ("set_config", &["TimeZone", "Etc/UTC", "bool:f"], "UTC"),
        ("pg_notify", &["NULL", "x"], "22023"),
        ("pg_notify", &["news", "NULL"], ""),
        ("pg_advisory_unlock_all", &[], ""),
        ("pg_backend_pid", &[], "7"),
        ("pg_sleep", &["float8:0.1"], ""),
        ("pg_sleep", &["float8:1e300"], "57014"),
        ("lower", &["text:NULL"], "NULL"),
    ]);
    let uuid = call("gen_random_uuid", &[]);
    assert_eq!((uuid.len(), uuid.as_bytes()[14]), (36, b'4'));
    let random: f64 = call("random", &[]).parse().unwrap();
    assert!((0.0..1.0).contains(&random));
}

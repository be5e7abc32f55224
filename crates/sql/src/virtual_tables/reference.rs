//! Rows that are the same in every database: about types, operators, functions and languages, as PostgreSQL 15 has them.
//!
//! They are kept as texts in the form of `COPY`, and are parsed when they are read first. Of functions and operators there are those
//! that this server has, and those to which the rows of `pg_type` refer.

use super::{
    DATABASE_OWNER, INFORMATION_SCHEMA, OWNER, PG_CATALOG, PUBLIC, VirtualTable, find, letter, oid, text,
    truth,
};
use crate::row::Row;
use crate::run::Run;
use crate::values::{Datum, Type};
use std::collections::HashMap;
use std::sync::OnceLock;

/// A value in the form of `COPY`.
fn value(text: &str, ty: Type) -> Datum {
    if text == "\\N" { Datum::Null } else { Datum::parse(text, ty).unwrap_or(Datum::Null) }
}

fn parse(content: &str, columns: &[(&str, Type)]) -> Vec<Row> {
    let row = |line: &str| {
        line.split('\t').zip(columns).map(|(text, (_, ty))| value(text, *ty)).collect::<Vec<_>>()
    };
    content.lines().map(|line| Row::new(row(line))).collect()
}

/// The columns of one of the system's tables.
fn columns_of(name: &str) -> &'static [(&'static str, Type)] {
    find(None, name).map_or(&[], |table: &VirtualTable| table.columns)
}

macro_rules! kept {
    ($(#[$attribute:meta])* $function:ident, $rows:ident, $table:literal, $file:literal) => {
        $(#[$attribute])*
        pub(super) fn $function(_: &Run<'_, '_>) -> Vec<Row> {
            $rows().to_vec()
        }

        fn $rows() -> &'static [Row] {
            static ROWS: OnceLock<Vec<Row>> = OnceLock::new();
            ROWS.get_or_init(|| parse(include_str!(concat!("data/", $file)), columns_of($table)))
        }
    };
}

kept!(
    /// `pg_type`.
    types, type_rows, "pg_type", "types.tsv"
);
kept!(
    /// `pg_cast`.
    casts, cast_rows, "pg_cast", "casts.tsv"
);
kept!(
    /// `pg_opclass`.
    operator_classes, operator_class_rows, "pg_opclass", "operator_classes.tsv"
);
kept!(
    /// `pg_opfamily`.
    operator_families, operator_family_rows, "pg_opfamily", "operator_families.tsv"
);
kept!(
    /// `pg_operator`.
    operators, operator_rows, "pg_operator", "operators.tsv"
);

/// The facts that `pg_type` and `pg_opclass` have of a type.
#[derive(Debug, Clone)]
pub(super) struct TypeFacts {
    pub(super) is_by_value: Datum,
    pub(super) alignment: Datum,
    pub(super) storage: Datum,
    pub(super) collation: u32,
    /// The number of the class by which a B-tree sorts it.
    pub(super) operator_class: u32,
}

/// The facts about a type.
pub(super) fn type_facts(ty: Type) -> TypeFacts {
    static FACTS: OnceLock<HashMap<u32, TypeFacts>> = OnceLock::new();
    let unknown = || TypeFacts {
        is_by_value: truth(false),
        alignment: letter('i'),
        storage: letter('x'),
        collation: 0,
        operator_class: 0,
    };
    let facts = FACTS.get_or_init(|| {
        let place =
            |table: &str, name: &str| columns_of(table).iter().position(|(column, _)| *column == name);
        let get =
            |row: &Row, table: &str, name: &str| place(table, name).map_or(Datum::Null, |at| row[at].clone());
        let number = |row: &Row, table: &str, name: &str| match get(row, table, name) {
            Datum::Oid(oid) => oid,
            _ => 0,
        };
        let class_of = |ty: u32| {
            let is_default = |row: &&Row| {
                number(row, "pg_opclass", "opcmethod") == 403
                    && number(row, "pg_opclass", "opcintype") == ty
                    && get(row, "pg_opclass", "opcdefault") == Datum::Bool(true)
            };
            operator_class_rows().iter().find(is_default).map(|row| number(row, "pg_opclass", "oid"))
        };
        let all = type_rows().iter().map(|row| {
            let ty = number(row, "pg_type", "oid");
            // Arrays have one class, and what is cast to text without a function has that of text.
            let is_array = Type::of_oid(ty).is_some_and(|ty| ty.element().is_some());
            let instead = if is_array { 2277 } else { Type::Text.oid() };
            let facts = TypeFacts {
                is_by_value: get(row, "pg_type", "typbyval"),
                alignment: get(row, "pg_type", "typalign"),
                storage: get(row, "pg_type", "typstorage"),
                collation: number(row, "pg_type", "typcollation"),
                operator_class: class_of(ty).or_else(|| class_of(instead)).unwrap_or(0),
            };
            (ty, facts)
        });
        all.collect()
    });
    facts.get(&ty.oid()).cloned().unwrap_or_else(unknown)
}

/// `pg_proc`.
pub(super) fn procedures(_: &Run<'_, '_>) -> Vec<Row> {
    procedure_rows().to_vec()
}

/// The numbers and names of the functions in `pg_proc`.
pub(super) fn procedure_names() -> impl Iterator<Item = (u32, &'static str)> {
    procedure_rows().iter().filter_map(|row| match (&row[0], row[1].as_text()) {
        (Datum::Oid(oid), Some(name)) => Some((*oid, name)),
        _ => None,
    })
}

fn procedure_rows() -> &'static [Row] {
    static ROWS: OnceLock<Vec<Row>> = OnceLock::new();
    const COLUMNS: &[(&str, Type)] = &[
        ("oid", Type::Oid),
        ("proname", Type::Name),
        ("prolang", Type::Oid),
        ("provariadic", Type::Oid),
        ("prokind", Type::Letter),
        ("proisstrict", Type::Bool),
        ("proretset", Type::Bool),
        ("provolatile", Type::Letter),
        ("pronargs", Type::Int2),
        ("prorettype", Type::Oid),
        ("proargtypes", Type::OidVector),
    ];
    ROWS.get_or_init(|| {
        let kept = parse(include_str!("data/procedures.tsv"), COLUMNS);
        let row = |kept: Row| {
            let of = |name: &str| {
                let place = COLUMNS.iter().position(|(column, _)| *column == name);
                place.map(|place| kept[place].clone())
            };
            let value = |(name, ty): &(&str, Type)| {
                of(name).unwrap_or_else(|| match *name {
                    "pronamespace" => oid(PG_CATALOG),
                    "proowner" => oid(OWNER),
                    "procost" => Datum::Float4(1.0),
                    "prorows" => Datum::Float4(0.0),
                    "prosupport" => oid(0),
                    "prosecdef" | "proleakproof" => truth(false),
                    "proparallel" => letter('s'),
                    "pronargdefaults" => Datum::Int2(0),
                    "prosrc" => kept[1].clone(),
                    _ => {
                        debug_assert!(*ty != Type::Bool, "the column {name} has a value");
                        Datum::Null
                    }
                })
            };
            Row::new(columns_of("pg_proc").iter().map(value).collect())
        };
        kept.into_iter().map(row).collect()
    })
}

/// `pg_am`.
pub(super) fn methods(_: &Run<'_, '_>) -> Vec<Row> {
    let method = |(number, name, handler, kind): (u32, &'static str, u32, char)| {
        Row::new(vec![oid(number), text(name), oid(handler), letter(kind)])
    };
    [(2, "heap", 3, 't'), (403, "btree", 330, 'i'), (405, "hash", 331, 'i')].map(method).to_vec()
}

/// `pg_collation`.
pub(super) fn collations(_: &Run<'_, '_>) -> Vec<Row> {
    let collation = |(number, name, provider): (u32, &'static str, char)| {
        let locale = || if provider == 'd' { Datum::Null } else { text(name) };
        Row::new(vec![
            oid(number),
            text(name),
            oid(PG_CATALOG),
            oid(OWNER),
            letter(provider),
            truth(true),
            Datum::Int4(-1),
            locale(),
            locale(),
            Datum::Null,
            Datum::Null,
        ])
    };
    [(100, "default", 'd'), (950, "C", 'c'), (951, "POSIX", 'c')].map(collation).to_vec()
}

/// `pg_language`.
pub(super) fn languages(_: &Run<'_, '_>) -> Vec<Row> {
    let language = |(number, name, validator, is_trusted): (u32, &'static str, u32, bool)| {
        Row::new(vec![
            oid(number),
            text(name),
            oid(OWNER),
            truth(false),
            truth(is_trusted),
            oid(0),
            oid(0),
            oid(validator),
            Datum::Null,
        ])
    };
    [(12, "internal", 2246, false), (13, "c", 2247, false), (14, "sql", 2248, true)].map(language).to_vec()
}

/// The schemas: number, name, owner.
pub(super) const NAMESPACES: [(u32, &str, u32); 3] = [
    (PG_CATALOG, "pg_catalog", OWNER),
    (PUBLIC, "public", DATABASE_OWNER),
    (INFORMATION_SCHEMA, "information_schema", OWNER),
];

/// `pg_namespace`.
pub(super) fn namespaces(_: &Run<'_, '_>) -> Vec<Row> {
    let row = |(number, name, owner)| Row::new(vec![oid(number), text(name), oid(owner), Datum::Null]);
    NAMESPACES.map(row).to_vec()
}

/// `pg_description`: of the schemas only.
pub(super) fn descriptions(_: &Run<'_, '_>) -> Vec<Row> {
    let row = |(number, description): (u32, &'static str)| {
        Row::new(vec![oid(number), oid(2615), Datum::Int4(0), text(description)])
    };
    [(PG_CATALOG, "system catalog schema"), (PUBLIC, "standard public schema")].map(row).to_vec()
}

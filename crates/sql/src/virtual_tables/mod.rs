//! The system's tables: those of `pg_catalog` and of `information_schema`, whose rows are made when a query reads them.
//!
//! Their names, numbers and columns are PostgreSQL 15's ([`schema`]), and so are the rows about types, operators and functions
//! ([`reference`]). The rows about users' tables come from the catalog that the transaction sees.

mod classes;
pub(crate) mod conflicts;
mod constraints;
mod definitions;
mod information;
mod names;
mod parentheses;
mod reference;
mod schema;
mod server;
#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) mod transcript;

pub(crate) use names::{name_of, number_of, quoted};

use crate::row::Row;
use crate::run::Run;
use crate::values::{Datum, Type};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::OnceLock;

/// The number of the user who owns everything.
const OWNER: u32 = 10;

/// The number of the role to which the schema `public` belongs.
const DATABASE_OWNER: u32 = 6171;

/// The numbers of the schemas.
const PG_CATALOG: u32 = 11;
const PUBLIC: u32 = 2200;
const INFORMATION_SCHEMA: u32 = 13_207;

/// A table of the system's.
pub(crate) struct VirtualTable {
    /// Its number in `pg_class`.
    pub(crate) oid: u32,
    /// Its schema.
    pub(crate) schema: &'static str,
    /// Its name.
    pub(crate) name: &'static str,
    /// The names and types of its columns.
    pub(crate) columns: &'static [(&'static str, Type)],
    /// `r` if PostgreSQL has a table, `v` if it has a view.
    kind: char,
    make: fn(&Run<'_, '_>) -> Vec<Row>,
}

impl VirtualTable {
    /// Its rows as a statement sees them.
    pub(crate) fn rows(&self, run: &Run<'_, '_>) -> Vec<Row> {
        let rows = (self.make)(run);
        debug_assert!(rows.iter().all(|row| row.len() == self.columns.len()), "{} has wide rows", self.name);
        rows
    }

    /// The number of its schema.
    fn schema_oid(&self) -> u32 {
        if self.schema == "pg_catalog" { PG_CATALOG } else { INFORMATION_SCHEMA }
    }
}

impl std::fmt::Debug for VirtualTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.schema, self.name)
    }
}

/// The table of this name: of `pg_catalog`, if no schema is given.
pub(crate) fn find(schema: Option<&str>, name: &str) -> Option<&'static VirtualTable> {
    type Tables = HashMap<(&'static str, &'static str), &'static VirtualTable>;
    static TABLES: OnceLock<Tables> = OnceLock::new();
    let tables =
        TABLES.get_or_init(|| schema::tables().map(|table| ((table.schema, table.name), table)).collect());
    tables.get(&(schema.unwrap_or("pg_catalog"), name)).copied()
}

/// A text, or a name.
fn text(text: impl Into<Arc<str>>) -> Datum {
    Datum::Text(text.into())
}

/// A value of `"char"`.
fn letter(letter: char) -> Datum {
    Datum::Text(letter.to_string().into())
}

/// The empty value of `"char"`.
fn no_letter() -> Datum {
    Datum::Text(Arc::default())
}

/// A number of the catalog.
fn oid(oid: u32) -> Datum {
    Datum::Oid(oid)
}

/// A truth value.
fn truth(truth: bool) -> Datum {
    Datum::Bool(truth)
}

/// `YES` or `NO`, as `information_schema` has it.
fn yes_or_no(truth: bool) -> Datum {
    text(if truth { "YES" } else { "NO" })
}

/// Several numbers, as `int2vector` or `int2[]`.
fn shorts(numbers: impl IntoIterator<Item = i16>) -> Datum {
    Datum::array(numbers.into_iter().map(Datum::Int2).collect())
}

/// Several numbers of the catalog.
fn oids(numbers: impl IntoIterator<Item = u32>) -> Datum {
    Datum::array(numbers.into_iter().map(Datum::Oid).collect())
}

/// The number of a column from 1 on, by its place.
fn column_number(place: usize) -> i16 {
    i16::try_from(place + 1).unwrap_or(i16::MAX)
}

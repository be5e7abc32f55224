//! Names and columns of the system's tables, with the numbers that PostgreSQL 15 has for them.
//!
//! All columns of PostgreSQL's tables are there and in its order, so that a query that binds there binds here. Columns of types that
//! are missing here have one that shows the same text: `xid` is `oid`, `inet`, `pg_lsn` and statistics are `text`, `aclitem[]` is
//! `text[]`, and a domain of `information_schema` is the type beneath it.

use super::VirtualTable;
use crate::row::Row;
use crate::run::Run;

/// Defines `TABLES`: for each table its schema, name, number, kind as `relkind`, the function that gives its rows, and its columns.
macro_rules! tables {
    ($($schema:ident $name:ident $oid:literal $kind:literal $rows:path { $($column:ident $ty:ident,)* })*) => {
        pub(super) static TABLES: &[$crate::virtual_tables::VirtualTable] = &[$(
            $crate::virtual_tables::VirtualTable {
                oid: $oid,
                schema: stringify!($schema),
                name: stringify!($name),
                columns: &[$((stringify!($column), $crate::values::Type::$ty),)*],
                kind: $kind,
                make: $rows,
            },
        )*];
    };
}

mod absent;
mod catalog;
mod information;

/// The rows of a table about what there is not.
fn none(_: &Run<'_, '_>) -> Vec<Row> {
    Vec::new()
}

/// All tables of the system's.
pub(super) fn tables() -> impl Iterator<Item = &'static VirtualTable> {
    [catalog::TABLES, information::TABLES, absent::TABLES].into_iter().flatten()
}

//! Definitions of tables, indexes and sequences.

use crate::values::Type;
use hotrow::{Stored, Value};
use std::sync::Arc;

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Stored)]
pub(crate) struct Column {
    /// Its name.
    pub(crate) name: String,
    /// The type of its values.
    pub(crate) ty: Type,
    /// The type's modifier, as `atttypmod`; -1 if it has none.
    pub(crate) modifier: i32,
    /// True if it must have a value.
    pub(crate) not_null: bool,
    /// The expression that gives its value if an insertion names none, as SQL.
    pub(crate) default: Option<String>,
    /// `a` if it is generated always as identity, `d` if by default.
    pub(crate) identity: Option<char>,
    /// The number of the sequence that it owns.
    pub(crate) sequence: Option<u32>,
}

/// An index of a table. The rows of its storage are keys of columns (and of the primary key, unless it is unique) and primary keys.
#[derive(Debug, Clone, PartialEq, Stored)]
pub(crate) struct Index {
    /// Its number in `pg_class`.
    pub(crate) oid: u32,
    /// Its name.
    pub(crate) name: String,
    /// The places of its columns in the table.
    pub(crate) columns: Vec<u32>,
    /// True if no two rows have the same values, but for nulls.
    pub(crate) is_unique: bool,
    /// The number of the constraint that it enforces, if it does.
    pub(crate) constraint: Option<u32>,
    /// The number of its storage.
    pub(crate) storage: u32,
}

/// The primary key of a table.
#[derive(Debug, Clone, PartialEq, Stored)]
pub(crate) struct PrimaryKey {
    /// The number of its index in `pg_class`. There is none but the table itself.
    pub(crate) oid: u32,
    /// The number of the constraint.
    pub(crate) constraint: u32,
    /// Its name.
    pub(crate) name: String,
    /// The places of its columns in the table.
    pub(crate) columns: Vec<u32>,
}

/// A condition on a table's rows.
#[derive(Debug, Clone, PartialEq, Stored)]
pub(crate) struct Check {
    /// The number of the constraint.
    pub(crate) oid: u32,
    /// Its name.
    pub(crate) name: String,
    /// The condition, as SQL.
    pub(crate) text: String,
}

/// A table.
#[derive(Debug, Clone, PartialEq, Stored)]
pub(crate) struct Relation {
    /// Its number in `pg_class`.
    pub(crate) oid: u32,
    /// Its name.
    pub(crate) name: String,
    /// Its columns.
    pub(crate) columns: Vec<Column>,
    /// Its primary key. Rows of a table without one are found by a number of their own, drawn when they are inserted.
    pub(crate) primary_key: Option<PrimaryKey>,
    /// Its other indexes.
    pub(crate) indexes: Vec<Index>,
    /// The conditions on its rows.
    pub(crate) checks: Vec<Check>,
    /// The number of its storage.
    pub(crate) storage: u32,
}

impl Relation {
    /// A table without name and columns.
    pub(crate) fn nameless() -> Self {
        Self {
            oid: 0,
            name: String::new(),
            columns: Vec::new(),
            primary_key: None,
            indexes: Vec::new(),
            checks: Vec::new(),
            storage: 0,
        }
    }

    /// The place of the column of this name.
    pub(crate) fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }

    /// The names and numbers of its indexes, that of the primary key included.
    pub(crate) fn index_names(&self) -> impl Iterator<Item = (&str, u32)> {
        let primary = self.primary_key.iter().map(|key| (key.name.as_str(), key.oid));
        primary.chain(self.indexes.iter().map(|index| (index.name.as_str(), index.oid)))
    }

    /// True if rows are found by a number of their own.
    pub(crate) fn has_hidden_key(&self) -> bool {
        self.primary_key.is_none()
    }

    /// The largest number in it.
    fn last_oid(&self) -> u32 {
        let primary = self.primary_key.iter().flat_map(|key| [key.oid, key.constraint]);
        let indexes = self.indexes.iter().flat_map(|index| [index.oid, index.constraint.unwrap_or(0)]);
        let checks = self.checks.iter().map(|check| check.oid);
        primary.chain(indexes).chain(checks).chain([self.oid]).max().unwrap_or(0)
    }
}

/// A sequence. Its next value is no part of transactions, as in PostgreSQL.
#[derive(Debug, Clone, PartialEq, Stored)]
pub(crate) struct Sequence {
    /// Its number in `pg_class`.
    pub(crate) oid: u32,
    /// Its name.
    pub(crate) name: String,
    /// The type of its values.
    pub(crate) ty: Type,
    /// The first value.
    pub(crate) start: i64,
    /// The value of the first draw from its storage.
    pub(crate) base: i64,
    /// The number of its storage.
    pub(crate) storage: u32,
    /// The difference of two values.
    pub(crate) increment: i64,
    /// The least value.
    pub(crate) min: i64,
    /// The largest value.
    pub(crate) max: i64,
    /// The table and the place of the column that own it.
    pub(crate) owner: Option<(u32, u32)>,
}

/// Something with a name of its own in `pg_class`.
#[derive(Debug, Clone, PartialEq, Stored, Value)]
pub(crate) enum Entry {
    /// A table.
    Relation(Arc<Relation>),
    /// A sequence.
    Sequence(Arc<Sequence>),
}

impl Entry {
    /// Its number.
    pub(crate) fn oid(&self) -> u32 {
        match self {
            Self::Relation(relation) => relation.oid,
            Self::Sequence(sequence) => sequence.oid,
        }
    }

    /// Its name.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Relation(relation) => &relation.name,
            Self::Sequence(sequence) => &sequence.name,
        }
    }

    /// The largest number in it.
    pub(crate) fn last_oid(&self) -> u32 {
        match self {
            Self::Relation(relation) => relation.last_oid(),
            Self::Sequence(sequence) => sequence.oid,
        }
    }
}

//! Errors with which operations on rows roll a transaction back.
//!
//! Each becomes the reason of an [`Abort`](hotrow_core::Abort). So a body passes it up with `?`, catches it behind a
//! [savepoint](hotrow_core::Transaction::savepoint), or finds it in the transaction's error with
//! [`Error::downcast_ref`](hotrow_core::Error::downcast_ref). All are made out of line: an operation that succeeds
//! formats nothing.

use std::fmt::Debug;

/// There is no row with this key, and the operation needs one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{table} has no row with key {key}")]
#[non_exhaustive]
pub struct MissingRow {
    /// The table's name.
    pub table: String,
    /// The key, as its [`Debug`](std::fmt::Debug) shows it.
    pub key: String,
}

impl MissingRow {
    /// The error of an operation on a table that is kept elsewhere.
    #[cold]
    pub fn of(table: &str, key: &(impl Debug + ?Sized)) -> Self {
        Self { table: table.to_owned(), key: format!("{key:?}") }
    }
}

/// There is a row with this key already, and the operation would insert one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{table} has a row with key {key} already")]
#[non_exhaustive]
pub struct KeyExists {
    /// The table's name.
    pub table: String,
    /// The key, as its [`Debug`](std::fmt::Debug) shows it.
    pub key: String,
}

impl KeyExists {
    /// The error of an operation on a table that is kept elsewhere.
    #[cold]
    pub fn of(table: &str, key: &(impl Debug + ?Sized)) -> Self {
        Self { table: table.to_owned(), key: format!("{key:?}") }
    }
}

/// Another row has this key of a [unique index](crate::UniqueIndex) already.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{index} has another row with key {key} already")]
#[non_exhaustive]
pub struct DuplicateKey {
    /// The index's name, which begins with that of its table.
    pub index: String,
    /// The secondary key, as its [`Debug`](std::fmt::Debug) shows it.
    pub key: String,
}

impl DuplicateKey {
    /// The error of an operation on an index of this full name.
    #[cold]
    pub fn of(index: &str, key: &(impl Debug + ?Sized)) -> Self {
        Self { index: index.to_owned(), key: format!("{key:?}") }
    }
}

/// A row would break a [constraint](crate::TableBuilder::check) of its table.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{table}[{key}] breaks the constraint: {constraint}")]
#[non_exhaustive]
pub struct ConstraintViolated {
    /// The table's name.
    pub table: String,
    /// The row's key, as its [`Debug`](std::fmt::Debug) shows it.
    pub key: String,
    /// The constraint's name.
    pub constraint: String,
}

/// The reason for which a row cannot be [loaded](crate::Loading::insert).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(transparent)]
#[non_exhaustive]
pub enum LoadError {
    /// There is a row with this key.
    KeyExists(#[from] KeyExists),
    /// Another row has the same key of a unique index.
    DuplicateKey(#[from] DuplicateKey),
    /// The row breaks a constraint.
    ConstraintViolated(#[from] ConstraintViolated),
    /// The table was recovered with the rows that it had: others are inserted by transactions.
    #[error(
        "table {0} has recovered rows, and only a new table can be loaded: insert further rows by transactions"
    )]
    Recovered(String),
}

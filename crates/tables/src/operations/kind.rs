//! The kinds of operations.

use std::fmt;

/// The kind of an operation on a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OperationKind {
    /// Reads one row.
    Read,
    /// Changes one row, depending on its old value.
    Write,
    /// Replaces one row without reading it.
    Replace,
    /// Inserts one row.
    Insert,
    /// Deletes one row.
    Delete,
    /// Reads a range of rows, or of a secondary index.
    Scan,
    /// Changes one row in a way that commutes with other commutative changes.
    Commutative,
}

impl OperationKind {
    /// True if an operation of this kind changes nothing.
    pub fn is_read(self) -> bool {
        matches!(self, Self::Read | Self::Scan)
    }
}

impl fmt::Display for OperationKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Read => "read",
            Self::Write => "update",
            Self::Replace => "replace",
            Self::Insert => "insert",
            Self::Delete => "delete",
            Self::Scan => "scan",
            Self::Commutative => "add to",
        })
    }
}

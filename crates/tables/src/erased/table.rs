//! Tables of an erased database: their handles, and the properties with which they are made.

use crate::catalog::PartId;
use std::fmt;

/// The type by which a table holds its keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyKind {
    Word,
    Bytes,
}

/// A table of a [`Database`](super::Database): rows of bytes under keys of bytes.
///
/// It is a small copyable handle. Its operations are methods of [`Transaction`](super::Transaction).
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Table {
    /// Invariant: the part is a typed table whose keys are of the type that `keys` tells, and whose rows are of type
    /// `Row`.
    pub(super) part: PartId,
    pub(super) keys: KeyKind,
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Table({})", self.part.number())
    }
}

/// The properties with which a table is made.
#[derive(Debug, Clone, Copy)]
pub(super) struct Properties {
    /// The expected number of rows of a hash index; `None` for an ordered index.
    pub(super) capacity: Option<usize>,
    pub(super) immutable: bool,
    pub(super) rank: u16,
    pub(super) keys: KeyKind,
}

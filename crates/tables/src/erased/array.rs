//! Arrays of an erased database.

use crate::catalog::PartId;
use std::fmt;

/// An array of a [`Database`](super::Database): words that are numbers, or eight bytes each.
///
/// It is a small copyable handle. Its operations are methods of [`Transaction`](super::Transaction). An element takes
/// little more memory than its word, and is found without an index: where numbers from 0 on are keys and eight bytes are
/// rows, an array is several times faster than a table.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Array {
    /// Invariant: the part is a `TArray<u64, P>`.
    pub(super) part: PartId,
    pub(super) length: usize,
}

impl fmt::Debug for Array {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Array({})", self.part.number())
    }
}

impl Array {
    /// The number of elements.
    pub fn len(&self) -> usize {
        self.length
    }

    /// True if the array has no elements.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }
}

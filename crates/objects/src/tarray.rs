//! A fixed-size array: one segment per element (sto §4.2, `TArray`).

use crate::segment_operations::segment_operations;
use hotrow_core::operations::Operand;
use hotrow_core::{
    Abort, Addend, Addition, Applied, Column, Deferred, Engine, Input, LogSegment, Protocol, SegmentArray,
    Transaction, Value,
};
use hotrow_protocols::Occ;
use std::fmt;

/// A transactional array of fixed length. Operations on different elements never conflict.
///
/// The elements lie side by side, each with its protocol's header: 16 bytes for an integer under `occ`. An index out of bounds ends the
/// transaction with [`Misuse::OutOfBounds`](hotrow_core::Misuse::OutOfBounds).
pub struct TArray<T: Value, P: Protocol = Occ> {
    elements: SegmentArray<T, P>,
}

impl<T: Value, P: Protocol> fmt::Debug for TArray<T, P> {
    /// Shows the name only: the content is for transactions.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TArray")
            .field("name", &self.elements.name())
            .field("length", &self.len())
            .finish_non_exhaustive()
    }
}

impl<T: Value, P: Protocol> TArray<T, P> {
    /// An array of `length` elements, made by `element` from their indexes.
    pub fn new(engine: &Engine<P>, length: usize, element: impl FnMut(usize) -> T) -> Self {
        Self::named(engine, "array", length, element)
    }

    /// An array with a name, for errors and conflict reports.
    pub fn named(
        engine: &Engine<P>,
        name: impl Into<String>,
        length: usize,
        element: impl FnMut(usize) -> T,
    ) -> Self {
        Self { elements: SegmentArray::new(engine, name, (0..length).map(element)) }
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.elements.len()
    }

    /// True if the array has no elements.
    pub fn is_empty(&self) -> bool {
        self.elements.is_empty()
    }
}

segment_operations!(TArray, elements, index);

//! A fixed-size array: one segment per element (sto §4.2, `TArray`).

use crate::segment_operations::segment_operations;
use hotrow_core::operations::Operand;
use hotrow_core::{
    Abort, Addend, Addition, Applied, Column, Deferred, Engine, Input, LogSegment, Protocol, SegmentArray,
    Transaction, Value,
};
use hotrow_protocols::Occ;
use std::fmt;
use std::ops::Range;

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

    /// An array of these elements.
    pub fn with_elements(engine: &Engine<P>, elements: impl IntoIterator<Item = T>) -> Self {
        Self { elements: SegmentArray::new(engine, "array", elements) }
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

    /// Reads the elements of a range in their order: `look` gets the index of each, and the element. It may run for elements of an attempt that
    /// ends with an error.
    ///
    /// Cheaper than a call of [`read`](Self::read) for each; in an [untracked](Transaction::untracked) part, under `occ` and other protocols
    /// that check reads at commit, little dearer than copying the elements.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get). A range that ends behind the array is out of bounds.
    pub fn read_each(
        &self,
        tx: &mut Transaction<'_, P>,
        range: Range<usize>,
        look: impl FnMut(usize, &T),
    ) -> Result<(), Abort> {
        self.elements.read_each(tx, range, look)
    }
}

segment_operations!(TArray, elements, index);

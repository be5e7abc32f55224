//! A fixed-size array: one segment per element (sto §4.2, `TArray`).

use hotrow_core::operations::Operand;
use hotrow_core::{
    Abort, Addend, Deferred, Engine, Input, LogSegment, Protocol, SegmentArray, Transaction, Value,
};
use hotrow_protocols::Occ;
use std::fmt;

/// A transactional array of fixed length. Operations on different elements never conflict.
///
/// The elements lie side by side, each with its protocol's header: 16 bytes for an integer under `occ`.
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

    /// Logs all that commits change from now on, as [`SegmentObject::logged`](hotrow_core::SegmentObject::logged) does. A database makes its objects
    /// so.
    ///
    /// # Panics
    ///
    /// If it is logged.
    #[must_use]
    pub fn logged(self, log: LogSegment<T>) -> Self {
        Self { elements: self.elements.logged(log) }
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.elements.len()
    }

    /// True if the array has no elements.
    pub fn is_empty(&self) -> bool {
        self.elements.is_empty()
    }

    /// Returns a copy of an element.
    ///
    /// # Errors
    ///
    /// [`Abort`] when the attempt cannot go on; pass it up with `?`. An index out of bounds ends the
    /// transaction with [`Misuse::OutOfBounds`](hotrow_core::Misuse::OutOfBounds).
    #[inline]
    pub fn get(&self, tx: &mut Transaction<'_, P>, index: usize) -> Result<T, Abort> {
        self.read(tx, index, T::clone)
    }

    /// Reads an element without copying it.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    #[inline]
    pub fn read<R>(
        &self,
        tx: &mut Transaction<'_, P>,
        index: usize,
        look: impl FnOnce(&T) -> R,
    ) -> Result<R, Abort> {
        self.elements.enter(tx, index)?.read(look)
    }

    /// Replaces an element without reading it.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    #[inline]
    pub fn set(&self, tx: &mut Transaction<'_, P>, index: usize, value: T) -> Result<(), Abort> {
        self.elements.enter(tx, index)?.write(value)
    }

    /// Changes an element.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    #[inline]
    pub fn update<R>(
        &self,
        tx: &mut Transaction<'_, P>,
        index: usize,
        change: impl FnOnce(&mut T) -> R,
    ) -> Result<R, Abort> {
        self.elements.enter(tx, index)?.update(change)
    }

    /// Changes the element at the commit, without reading it: what `change` does to the element that the commit finds. It gives
    /// nothing back, and two transactions that only make such changes never abort each other.
    ///
    /// `change` runs while the element is locked: it should be short, and use nothing but what it has captured. It runs
    /// once at the commit, and on another copy of the element if an operation of the same transaction needs it before. If it panics, the
    /// transaction rolls back with [`Error::Panicked`](hotrow_core::Error::Panicked).
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    #[inline]
    pub fn apply(
        &self,
        tx: &mut Transaction<'_, P>,
        index: usize,
        change: impl Fn(&mut T) + Send + 'static,
    ) -> Result<(), Abort> {
        self.elements.enter(tx, index)?.apply_at_commit(change)
    }

    /// Adds an amount (which may be negative) [at the commit](Self::apply).
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get). If the sum is not in the type's range, the transaction rolls back with
    /// [`Overflow`](hotrow_core::Overflow), here or at its commit; [`wrapping_add`](Self::wrapping_add) wraps around.
    #[inline]
    pub fn add(&self, tx: &mut Transaction<'_, P>, index: usize, amount: T) -> Result<(), Abort>
    where
        T: Addend,
    {
        self.elements.enter(tx, index)?.add_at_commit(amount)
    }

    /// As [`add`](Self::add), but the sum wraps around at the ends of the type's range.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    #[inline]
    pub fn wrapping_add(&self, tx: &mut Transaction<'_, P>, index: usize, amount: T) -> Result<(), Abort>
    where
        T: Addend,
    {
        self.elements.enter(tx, index)?.wrapping_add_at_commit(amount)
    }

    /// Subtracts an amount at the commit if the element is at least the amount, and tells whether it was.
    ///
    /// If it is enough, the transaction depends on that alone: others may add and subtract meanwhile, as long as enough is
    /// left for this one. If it is not, the transaction depends on the element, and so it does within a part of a body that may be
    /// undone alone.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    #[inline]
    pub fn subtract_if_enough(
        &self,
        tx: &mut Transaction<'_, P>,
        index: usize,
        amount: T,
    ) -> Result<bool, Abort>
    where
        T: Addend,
    {
        self.elements.enter(tx, index)?.subtract_if_enough(amount)
    }

    /// Raises the element to another one [at the commit](Self::apply), if it is less than that.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn max(&self, tx: &mut Transaction<'_, P>, index: usize, value: T) -> Result<(), Abort>
    where
        T: Ord,
    {
        self.elements.enter(tx, index)?.raise_at_commit(value)
    }

    /// Lowers the element to another one [at the commit](Self::apply), if it is greater than that.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn min(&self, tx: &mut Transaction<'_, P>, index: usize, value: T) -> Result<(), Abort>
    where
        T: Ord,
    {
        self.elements.enter(tx, index)?.lower_at_commit(value)
    }

    /// Appends elements to a collection or a text [at the commit](Self::apply).
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn append<E, I>(&self, tx: &mut Transaction<'_, P>, index: usize, elements: I) -> Result<(), Abort>
    where
        T: Extend<E>,
        I: IntoIterator<Item = E> + Clone + Send + 'static,
    {
        self.elements.enter(tx, index)?.append_at_commit(elements)
    }

    /// Reads an element when the transaction commits. The result may be an input of operations deferred later.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    #[inline]
    pub fn defer_read<R: 'static>(
        &self,
        tx: &mut Transaction<'_, P>,
        index: usize,
        look: impl FnOnce(&T) -> R + 'static,
    ) -> Result<Deferred<R>, Abort> {
        self.elements.enter(tx, index)?.defer_read(look)
    }

    /// Changes an element when the transaction commits. The inputs may become known only then.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    #[inline]
    pub fn defer_update<I: Input, R: 'static>(
        &self,
        tx: &mut Transaction<'_, P>,
        index: usize,
        inputs: I,
        change: impl FnOnce(&mut T, I::Value) -> R + 'static,
    ) -> Result<Deferred<R>, Abort> {
        self.elements.enter(tx, index)?.defer_update(inputs, change)
    }

    /// Replaces an element when the transaction commits. The new value may become known only then.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    #[inline]
    pub fn defer_set(
        &self,
        tx: &mut Transaction<'_, P>,
        index: usize,
        value: impl Operand<T>,
    ) -> Result<(), Abort> {
        self.elements.enter(tx, index)?.defer_write(value.into_input())
    }

    /// Sets the array's rank: its position in the order in which transactions acquire the segments of their deferred
    /// operations (*line up*; [`ObjectMeta::set_rank`](hotrow_core::ObjectMeta::set_rank)).
    pub fn set_rank(&mut self, rank: u16) {
        self.elements.set_rank(rank);
    }
}

//! Counters side by side. As an object of its own each lies in memory of its own.

use crate::counting::{Counter, add, get, is_between, set};
use hotrow_core::operations::Operand;
use hotrow_core::{Abort, Access, CommutingArray, Engine, Protocol, Transaction};
use hotrow_protocols::Occ;
use std::fmt;

/// An array of [counters](crate::TCounter), which conflict each on its own. They lie side by side, so that those that are used together
/// are found together. An index out of bounds ends the transaction with `Misuse::OutOfBounds`.
///
/// ```
/// use hotrow_core::Engine;
/// use hotrow_objects::TCounters;
/// use hotrow_protocols::Occ;
///
/// let engine = Engine::<Occ>::new();
/// let free = TCounters::new(&engine, [3, 0]);
/// let is_reserved = engine.transact(|tx| {
///     let is_free = free.is_at_least(tx, 0, 1)?;
///     if is_free {
///         free.add(tx, 0, -1)?;
///     }
///     Ok(is_free && !free.is_at_least(tx, 1, 1)?)
/// })?;
/// assert!(is_reserved);
/// # Ok::<(), hotrow_core::Error>(())
/// ```
pub struct TCounters<P: Protocol = Occ> {
    segments: CommutingArray<Counter, P>,
}

impl<P: Protocol> fmt::Debug for TCounters<P> {
    /// Shows the name and the length only: the content is for transactions.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, length) = (self.segments.name(), self.len());
        f.debug_struct("TCounters").field("name", &name).field("len", &length).finish_non_exhaustive()
    }
}

impl<P: Protocol> TCounters<P> {
    /// Counters that start at `values`.
    pub fn new(engine: &Engine<P>, values: impl IntoIterator<Item = i64>) -> Self {
        Self::named(engine, "counters", values)
    }

    /// Counters with a name, for errors and conflict reports.
    pub fn named(engine: &Engine<P>, name: impl Into<String>, values: impl IntoIterator<Item = i64>) -> Self {
        Self { segments: CommutingArray::new(engine, name, Counter, values) }
    }

    /// The number of counters.
    pub fn len(&self) -> usize {
        self.segments.len()
    }

    /// True if there are no counters.
    pub fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// Adds `amount` to a counter, as [`TCounter::add`](crate::TCounter::add).
    ///
    /// # Errors
    ///
    /// [`Abort`] when the attempt cannot go on; pass it up with `?`.
    #[inline]
    pub fn add(&self, tx: &mut Transaction<'_, P>, index: usize, amount: i64) -> Result<(), Abort> {
        add(self.segments.enter(tx, index)?, amount)
    }

    /// Sets a counter without reading it.
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add).
    pub fn set(&self, tx: &mut Transaction<'_, P>, index: usize, value: i64) -> Result<(), Abort> {
        set(self.segments.enter(tx, index)?, value)
    }

    /// Returns the exact value of a counter. Any concurrent change of it is then a conflict: prefer a test.
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add).
    #[inline]
    pub fn get(&self, tx: &mut Transaction<'_, P>, index: usize) -> Result<i64, Abort> {
        get(self.segments.enter(tx, index)?)
    }

    /// True if a counter is at least `bound`.
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add).
    #[inline]
    pub fn is_at_least(&self, tx: &mut Transaction<'_, P>, index: usize, bound: i64) -> Result<bool, Abort> {
        self.is_between(tx, index, bound, i64::MAX)
    }

    /// True if a counter is in `low..=high`.
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add).
    #[inline]
    pub fn is_between(
        &self,
        tx: &mut Transaction<'_, P>,
        index: usize,
        low: i64,
        high: i64,
    ) -> Result<bool, Abort> {
        is_between(self.segments.enter(tx, index)?, low, high)
    }

    /// Adds an amount to a counter when the transaction commits, as [`TCounter::defer_add`](crate::TCounter::defer_add).
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add).
    #[inline]
    pub fn defer_add(
        &self,
        tx: &mut Transaction<'_, P>,
        index: usize,
        amount: impl Operand<i64>,
    ) -> Result<(), Abort> {
        self.segments.enter(tx, index)?.defer(Access::Write, amount.into_input(), add)?;
        Ok(())
    }

    /// Sets the rank of the counters, as [`TCounter::set_rank`](crate::TCounter::set_rank). Among each other they go by their index.
    pub fn set_rank(&mut self, rank: u16) {
        self.segments.set_rank(rank);
    }
}

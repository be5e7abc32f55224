//! A box: one value, one segment. The worked example for authors of datatypes (sto §3.4, Figure 2).
//!
//! The box is a datatype over one segment, so it has nothing but its operations: each enters the segment and then works
//! on it. [`SingleSegment`] does the rest. A datatype with state or conflicts of its own does it itself:
//! [`TCounter`](crate::TCounter) shows how.

use hotrow_core::operations::Operand;
use hotrow_core::{
    Abort, Addend, Addition, Applied, Column, Deferred, Engine, Input, LogSegment, Protocol, SingleSegment,
    Transaction, Value,
};
use hotrow_protocols::Occ;
use std::fmt;

/// A transactional box around a value of any type that is [`Value`].
///
/// Reads and writes conflict on the whole value. For parts that change independently, use several boxes, a
/// [`TArray`](crate::TArray) or a table.
///
/// ```
/// use hotrow_core::Engine;
/// use hotrow_objects::TBox;
/// use hotrow_protocols::Occ;
///
/// let engine = Engine::<Occ>::new();
/// let (from, to) = (TBox::new(&engine, 100), TBox::new(&engine, 0));
/// let moved = engine.transact(|tx| {
///     let amount = from.get(tx)?.min(30);
///     from.update(tx, |balance| *balance -= amount)?;
///     to.update(tx, |balance| *balance += amount)?;
///     Ok(amount)
/// })?;
/// assert_eq!(moved, 30);
/// # Ok::<(), hotrow_core::Error>(())
/// ```
pub struct TBox<T: Value, P: Protocol = Occ> {
    value: SingleSegment<T, P>,
}

impl<T: Value, P: Protocol> fmt::Debug for TBox<T, P> {
    /// Shows the name only: the content is for transactions.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TBox").field("name", &self.value.name()).finish_non_exhaustive()
    }
}

impl<T: Value, P: Protocol> TBox<T, P> {
    /// A box that holds `value`.
    pub fn new(engine: &Engine<P>, value: T) -> Self {
        Self::named(engine, "box", value)
    }

    /// A box with a name, for errors and conflict reports.
    pub fn named(engine: &Engine<P>, name: impl Into<String>, value: T) -> Self {
        Self { value: SingleSegment::new(engine, name, value) }
    }

    /// Logs all that commits change from now on, as [`SegmentObject::logged`](hotrow_core::SegmentObject::logged) does. A database makes its objects
    /// so.
    ///
    /// # Panics
    ///
    /// If it is logged.
    #[must_use]
    pub fn logged(self, log: LogSegment<T>) -> Self {
        Self { value: self.value.logged(log) }
    }

    /// Returns a copy of the value.
    ///
    /// # Errors
    ///
    /// [`Abort`] when the attempt cannot go on; pass it up with `?`.
    #[inline]
    pub fn get(&self, tx: &mut Transaction<'_, P>) -> Result<T, Abort> {
        self.read(tx, T::clone)
    }

    /// Reads the value without copying it. `look` never sees a torn value.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    #[inline]
    pub fn read<R>(&self, tx: &mut Transaction<'_, P>, look: impl FnOnce(&T) -> R) -> Result<R, Abort> {
        self.value.enter(tx)?.read(look)
    }

    /// Replaces the value without reading it.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    #[inline]
    pub fn set(&self, tx: &mut Transaction<'_, P>, value: T) -> Result<(), Abort> {
        self.value.enter(tx)?.write(value)
    }

    /// Changes the value.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    #[inline]
    pub fn update<R>(
        &self,
        tx: &mut Transaction<'_, P>,
        change: impl FnOnce(&mut T) -> R,
    ) -> Result<R, Abort> {
        self.value.enter(tx)?.update(change)
    }

    /// Changes the value at the commit, without reading it: what `change` does to the value that the commit finds. It gives
    /// nothing back, and two transactions that only make such changes never abort each other.
    ///
    /// `change` runs while the value is locked: it should be short, and use nothing but what it has captured. It runs
    /// once at the commit, and on another copy of the value if an operation of the same transaction needs it before. If it panics, the
    /// transaction rolls back with [`Error::Panicked`](hotrow_core::Error::Panicked).
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    #[inline]
    pub fn apply(
        &self,
        tx: &mut Transaction<'_, P>,
        change: impl Fn(&mut T) + Send + 'static,
    ) -> Result<(), Abort> {
        self.value.enter(tx)?.change_at_commit(Applied(change))
    }

    /// Adds an amount (which may be negative) [at the commit](Self::apply).
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get). If the sum is not in the type's range, the transaction rolls back with
    /// [`Overflow`](hotrow_core::Overflow), here or at its commit; [`wrapping_add`](Self::wrapping_add) wraps around.
    #[inline]
    pub fn add(&self, tx: &mut Transaction<'_, P>, amount: T) -> Result<(), Abort>
    where
        T: Addend,
    {
        self.value.enter(tx)?.change_at_commit(Addition::new(Column::whole(), amount))
    }

    /// As [`add`](Self::add), but the sum wraps around at the ends of the type's range.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    #[inline]
    pub fn wrapping_add(&self, tx: &mut Transaction<'_, P>, amount: T) -> Result<(), Abort>
    where
        T: Addend,
    {
        self.value.enter(tx)?.change_at_commit(Addition::new(Column::whole(), amount).wrapping())
    }

    /// Subtracts an amount at the commit if the value is at least the amount, and tells whether it was.
    ///
    /// If it is enough, the transaction depends on that alone: others may add and subtract meanwhile, as long as enough is
    /// left for this one. If it is not, the transaction depends on the value, and so it does within a part of a body that may be
    /// undone alone.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    #[inline]
    pub fn subtract_if_enough(&self, tx: &mut Transaction<'_, P>, amount: T) -> Result<bool, Abort>
    where
        T: Addend,
    {
        self.value.enter(tx)?.subtract_if_enough(amount)
    }

    /// Raises the value to another one [at the commit](Self::apply), if it is less than that.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn max(&self, tx: &mut Transaction<'_, P>, value: T) -> Result<(), Abort>
    where
        T: Ord,
    {
        self.apply(tx, move |present| {
            if *present < value {
                *present = value.clone();
            }
        })
    }

    /// Lowers the value to another one [at the commit](Self::apply), if it is greater than that.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn min(&self, tx: &mut Transaction<'_, P>, value: T) -> Result<(), Abort>
    where
        T: Ord,
    {
        self.apply(tx, move |present| {
            if *present > value {
                *present = value.clone();
            }
        })
    }

    /// Appends elements to a collection or a text [at the commit](Self::apply).
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn append<E, I>(&self, tx: &mut Transaction<'_, P>, elements: I) -> Result<(), Abort>
    where
        T: Extend<E>,
        I: IntoIterator<Item = E> + Clone + Send + 'static,
    {
        self.apply(tx, move |present| present.extend(elements.clone()))
    }

    /// Reads the value when the transaction commits. The result may be an input of operations deferred later.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    #[inline]
    pub fn defer_read<R: 'static>(
        &self,
        tx: &mut Transaction<'_, P>,
        look: impl FnOnce(&T) -> R + 'static,
    ) -> Result<Deferred<R>, Abort> {
        self.value.enter(tx)?.defer_read(look)
    }

    /// Changes the value when the transaction commits. The inputs may become known only then.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    #[inline]
    pub fn defer_update<I: Input, R: 'static>(
        &self,
        tx: &mut Transaction<'_, P>,
        inputs: I,
        change: impl FnOnce(&mut T, I::Value) -> R + 'static,
    ) -> Result<Deferred<R>, Abort> {
        self.value.enter(tx)?.defer_update(inputs, change)
    }

    /// Replaces the value when the transaction commits. The new value may become known only then.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    #[inline]
    pub fn defer_set(&self, tx: &mut Transaction<'_, P>, value: impl Operand<T>) -> Result<(), Abort> {
        self.value.enter(tx)?.defer_write(value.into_input())
    }

    /// Sets the box's rank: its position in the order in which transactions acquire the segments of their deferred
    /// operations (*line up*; [`ObjectMeta::set_rank`](hotrow_core::ObjectMeta::set_rank)).
    pub fn set_rank(&mut self, rank: u16) {
        self.value.set_rank(rank);
    }
}

//! A box: one value, one segment. The worked example for authors of datatypes (sto §3.4, Figure 2).
//!
//! It shows all the parts of a datatype:
//!
//! 1. shared state made of segments, in an [`EpochBox`], so that dropping the object cannot free memory that a
//!    transaction's items still point to;
//! 2. operations, each of which enters the transaction and then works on a segment;
//! 3. an [`Object`] implementation that installs or drops pending writes and names keys.

use hotrow_core::operations::Operand;
use hotrow_core::{
    Abort, Deferred, Engine, EpochBox, Input, Item, Object, ObjectMeta, Pin, Protocol, SavedWrite, Saver,
    Segment, Transaction, Value,
};
use std::fmt;
use std::ptr::NonNull;

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
/// let moved = engine.run(|tx| {
///     let amount = from.get(tx)?.min(30);
///     from.update(tx, |balance| *balance -= amount)?;
///     to.update(tx, |balance| *balance += amount)?;
///     Ok(amount)
/// })?;
/// assert_eq!(moved, 30);
/// # Ok::<(), hotrow_core::Error>(())
/// ```
pub struct TBox<T: Value, P: Protocol> {
    shared: EpochBox<Shared<T, P>>,
}

/// The segment is the first field, so that even a segment of size zero has an address of its own. Otherwise it could
/// lie at the end of the allocation, where another object may begin.
#[repr(C)]
struct Shared<T: Value, P: Protocol> {
    segment: Segment<T, P>,
    meta: ObjectMeta,
}

impl<T: Value, P: Protocol> fmt::Debug for TBox<T, P> {
    /// Shows the name only: the content is for transactions.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TBox").field("name", &self.shared.meta.name()).finish_non_exhaustive()
    }
}

impl<T: Value, P: Protocol> TBox<T, P> {
    /// A box that holds `value`.
    pub fn new(engine: &Engine<P>, value: T) -> Self {
        Self::named(engine, "box", value)
    }

    /// A box with a name, for errors and conflict reports.
    pub fn named(engine: &Engine<P>, name: impl Into<String>, value: T) -> Self {
        let shared = Shared { meta: ObjectMeta::new(engine.id(), name), segment: Segment::new(value) };
        Self { shared: EpochBox::new(shared) }
    }

    /// Returns a copy of the value.
    ///
    /// # Errors
    ///
    /// [`Abort`] when the attempt cannot go on; pass it up with `?`.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn get(&self, tx: &mut Transaction<'_, P>) -> Result<T, Abort> {
        self.read(tx, T::clone)
    }

    /// Reads the value without copying it. `look` never sees a torn value.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn read<R>(&self, tx: &mut Transaction<'_, P>, look: impl FnOnce(&T) -> R) -> Result<R, Abort> {
        let tx = tx.enter(&self.shared.meta)?;
        // SAFETY: the segment is this object's, which passes `install` and `undo` on to `Segment`; both live
        // in an `EpochBox`; `enter` was called.
        unsafe { self.shared.segment.read(tx, &*self.shared, look) }
    }

    /// Replaces the value without reading it.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn set(&self, tx: &mut Transaction<'_, P>, value: T) -> Result<(), Abort> {
        let tx = tx.enter(&self.shared.meta)?;
        // SAFETY: as in `read`.
        unsafe { self.shared.segment.write(tx, &*self.shared, value) }
    }

    /// Changes the value.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn update<R>(
        &self,
        tx: &mut Transaction<'_, P>,
        change: impl FnOnce(&mut T) -> R,
    ) -> Result<R, Abort> {
        let tx = tx.enter(&self.shared.meta)?;
        // SAFETY: as in `read`.
        unsafe { self.shared.segment.update(tx, &*self.shared, change) }
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
        let tx = tx.enter(&self.shared.meta)?;
        // SAFETY: as in `read`.
        unsafe { self.shared.segment.defer_read(tx, &*self.shared, (), |value, ()| look(value)) }
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
        let tx = tx.enter(&self.shared.meta)?;
        // SAFETY: as in `read`.
        unsafe { self.shared.segment.defer_update(tx, &*self.shared, inputs, change) }
    }

    /// Replaces the value when the transaction commits. The new value may become known only then.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    #[inline]
    pub fn defer_set(&self, tx: &mut Transaction<'_, P>, value: impl Operand<T>) -> Result<(), Abort> {
        let tx = tx.enter(&self.shared.meta)?;
        // SAFETY: as in `read`.
        unsafe { self.shared.segment.defer_write(tx, &*self.shared, value.into_input()) }
    }

    /// Sets the box's rank: its position in the order in which transactions acquire the segments of their deferred
    /// operations (*line up*; [`ObjectMeta::set_rank`]).
    pub fn set_rank(&mut self, rank: u16) {
        self.shared.meta.set_rank(rank);
    }
}

// SAFETY: all items of the box are for its one segment and were made by `Segment`'s operations, whose
// `install` and `undo` consume the payload; the shared state is in an `EpochBox`; operations enter with `meta`.
unsafe impl<T: Value, P: Protocol> Object<P> for Shared<T, P> {
    fn meta(&self) -> &ObjectMeta {
        &self.meta
    }

    unsafe fn describe(&self, _: NonNull<P::Header>) -> String {
        String::from("value")
    }

    unsafe fn identify(&self, _: NonNull<P::Header>) -> u64 {
        0
    }

    #[inline]
    unsafe fn install(&self, item: &mut Item<P>, pin: &Pin) {
        // SAFETY: the caller's promise, passed on.
        unsafe { Segment::<T, P>::install(item, pin) };
    }

    unsafe fn undo(&self, item: &mut Item<P>, pin: &Pin) {
        // SAFETY: the caller's promise, passed on.
        unsafe { Segment::<T, P>::undo(item, pin) };
    }

    unsafe fn save(&self, item: &Item<P>, saver: &Saver<'_, P>) -> SavedWrite {
        // SAFETY: the caller's promise, passed on.
        unsafe { Segment::<T, P>::save(item, saver) }
    }

    unsafe fn restore(&self, item: &mut Item<P>, saved: Option<SavedWrite>, pin: &Pin) {
        // SAFETY: the caller's promise, passed on.
        unsafe { Segment::<T, P>::restore(item, saved, pin) };
    }
}

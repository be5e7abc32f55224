//! A fixed-size array: one segment per element (sto §4.2, `TArray`).

use hotrow_core::operations::Operand;
use hotrow_core::{
    Abort, Deferred, Engine, EpochBox, Input, Item, Misuse, Object, ObjectAccess, ObjectMeta, Pin, Protocol,
    SavedWrite, Saver, Segment, Transaction, Value, contained,
};
use std::fmt;
use std::ptr::NonNull;

/// A transactional array of fixed length. Operations on different elements never conflict.
///
/// The elements lie side by side, each with its protocol's header: 16 bytes for an integer under `occ`.
pub struct TArray<T: Value, P: Protocol> {
    shared: EpochBox<Shared<T, P>>,
}

struct Shared<T: Value, P: Protocol> {
    meta: ObjectMeta,
    segments: Box<[Segment<T, P>]>,
}

impl<T: Value, P: Protocol> Drop for Shared<T, P> {
    /// Drops the elements one by one and contains each panic, so that a panic in one element's `Drop` neither stops
    /// the others from being dropped nor, with a second one, ends the process.
    fn drop(&mut self) {
        if std::mem::needs_drop::<Segment<T, P>>() {
            for segment in std::mem::take(&mut self.segments).into_vec() {
                contained(|| drop(segment));
            }
        }
    }
}

impl<T: Value, P: Protocol> fmt::Debug for TArray<T, P> {
    /// Shows the name only: the content is for transactions.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TArray")
            .field("name", &self.shared.meta.name())
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
        mut element: impl FnMut(usize) -> T,
    ) -> Self {
        let segments = (0..length).map(|index| Segment::new(element(index))).collect();
        let shared = Shared { meta: ObjectMeta::new(engine.id(), name), segments };
        Self { shared: EpochBox::bulky(shared) }
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.shared.segments.len()
    }

    /// True if the array has no elements.
    pub fn is_empty(&self) -> bool {
        self.shared.segments.is_empty()
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn segment<'s, 't, 'w>(
        &'s self,
        tx: &'t mut Transaction<'w, P>,
        index: usize,
    ) -> Result<(&'t mut ObjectAccess<'w, P>, &'s Segment<T, P>), Abort> {
        let shared = &*self.shared;
        let tx = tx.enter(&shared.meta)?;
        match shared.segments.get(index) {
            Some(segment) => Ok((tx, segment)),
            None => Err(self.out_of_bounds(tx, index)),
        }
    }

    #[cold]
    fn out_of_bounds(&self, tx: &mut ObjectAccess<'_, P>, index: usize) -> Abort {
        let Shared { meta, segments, .. } = &*self.shared;
        tx.misuse(Misuse::OutOfBounds { object: meta.name().to_owned(), index, length: segments.len() })
    }

    /// Returns a copy of an element.
    ///
    /// # Errors
    ///
    /// [`Abort`] when the attempt cannot go on; pass it up with `?`. An index out of bounds ends the
    /// transaction with [`Misuse::OutOfBounds`].
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn get(&self, tx: &mut Transaction<'_, P>, index: usize) -> Result<T, Abort> {
        self.read(tx, index, T::clone)
    }

    /// Reads an element without copying it.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn read<R>(
        &self,
        tx: &mut Transaction<'_, P>,
        index: usize,
        look: impl FnOnce(&T) -> R,
    ) -> Result<R, Abort> {
        let (tx, segment) = self.segment(tx, index)?;
        // SAFETY: the segment is this object's, which passes `install` and `undo` on to `Segment`; both live
        // in an `EpochBox`; `enter` was called.
        unsafe { segment.read(tx, &*self.shared, look) }
    }

    /// Replaces an element without reading it.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn set(&self, tx: &mut Transaction<'_, P>, index: usize, value: T) -> Result<(), Abort> {
        let (tx, segment) = self.segment(tx, index)?;
        // SAFETY: as in `read`.
        unsafe { segment.write(tx, &*self.shared, value) }
    }

    /// Changes an element.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn update<R>(
        &self,
        tx: &mut Transaction<'_, P>,
        index: usize,
        change: impl FnOnce(&mut T) -> R,
    ) -> Result<R, Abort> {
        let (tx, segment) = self.segment(tx, index)?;
        // SAFETY: as in `read`.
        unsafe { segment.update(tx, &*self.shared, change) }
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
        let (tx, segment) = self.segment(tx, index)?;
        // SAFETY: as in `read`.
        unsafe { segment.defer_read(tx, &*self.shared, (), |value, ()| look(value)) }
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
        let (tx, segment) = self.segment(tx, index)?;
        // SAFETY: as in `read`.
        unsafe { segment.defer_update(tx, &*self.shared, inputs, change) }
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
        let (tx, segment) = self.segment(tx, index)?;
        // SAFETY: as in `read`.
        unsafe { segment.defer_write(tx, &*self.shared, value.into_input()) }
    }

    /// Sets the array's rank: its position in the order in which transactions acquire the segments of their deferred
    /// operations (*line up*; [`ObjectMeta::set_rank`]).
    pub fn set_rank(&mut self, rank: u16) {
        self.shared.meta.set_rank(rank);
    }
}

impl<T: Value, P: Protocol> Shared<T, P> {
    #[inline]
    fn index(&self, segment: NonNull<P::Header>) -> usize {
        let base = self.segments.as_ptr().addr();
        (segment.addr().get() - base) / size_of::<Segment<T, P>>().max(1)
    }
}

// SAFETY: all items of the array are for its segments and were made by `Segment`'s operations, whose
// `install` and `undo` consume the payload; the shared state is in an `EpochBox`; operations enter with `meta`.
unsafe impl<T: Value, P: Protocol> Object<P> for Shared<T, P> {
    fn meta(&self) -> &ObjectMeta {
        &self.meta
    }

    unsafe fn describe(&self, segment: NonNull<P::Header>) -> String {
        self.index(segment).to_string()
    }

    #[inline]
    unsafe fn identify(&self, segment: NonNull<P::Header>) -> u64 {
        self.index(segment) as u64
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

//! Objects made of segments, for authors of datatypes: everything that is unsafe about one, once.
//!
//! A [`SegmentObject`] owns its segments and alone gives access to them. So the promises of
//! [`ObjectAccess::read`] hold by construction, and a datatype made of such objects needs no `unsafe`:
//!
//! - *The segment is the object's*: a [`SegmentAccess`] is made here only, for a segment of the object that was entered.
//!   Nobody else has a reference to a segment, and so none can become a part of a second object, perhaps of another engine.
//! - *Both stay in memory*: the segments are in the object's [`EpochBox`], and no function takes one out or replaces one.
//! - *The operation has entered*: each operation consumes the access. The next one enters again, and fails if this one
//!   has failed.
//! - *Payloads*: items of these segments are made by the operations of [`Segment`] only, whose `install`, `save` and
//!   `restore` serve them; those of a [commuting](crate::Commuting) datatype by its operations.

use crate::features::operations::{Deferred, Input};
use crate::kernel::abort::{Abort, Misuse};
use crate::kernel::capabilities::Access;
use crate::kernel::engine::Engine;
use crate::kernel::item::{Item, ItemId};
use crate::kernel::object::Object;
use crate::kernel::object::OutOfRange;
use crate::kernel::object::{SavedWrite, Saver};
use crate::kernel::object_access::ObjectAccess;
use crate::kernel::protocol::Protocol;
use crate::kernel::transaction::Transaction;
use crate::kit::segment::Segment;
use crate::memory::cell::{Cell, Value};
use crate::memory::identity::ObjectMeta;
use crate::memory::pin::{EpochBox, Pin};
use crate::memory::users_code::contained;
use crate::memory::versions::Keeper;
use hotrow_sync::OnceLock;
use hotrow_sync::prefetch::prefetch;
use std::fmt;
use std::ops::Range;
use std::ptr::NonNull;

mod at_commit;

/// An object that consists of segments: of one ([`SingleSegment`]), of a fixed number ([`SegmentArray`]), or of a changing
/// one ([`SegmentSlots`](crate::SegmentSlots)). They are registers, or of a datatype whose changes commute
/// ([`CommutingSegment`](crate::CommutingSegment), [`CommutingArray`](crate::CommutingArray)).
///
/// ```
/// # use hotrow_core::{Abort, Engine, Protocol, SingleSegment, Transaction};
/// struct Register<P: Protocol>(SingleSegment<u64, P>);
///
/// impl<P: Protocol> Register<P> {
///     fn new(engine: &Engine<P>) -> Self {
///         Self(SingleSegment::new(engine, "register", 0))
///     }
///
///     fn get(&self, tx: &mut Transaction<'_, P>) -> Result<u64, Abort> {
///         self.0.enter(tx)?.read(|value| *value)
///     }
/// }
/// ```
pub struct SegmentObject<S: Valued, D: Send + Sync + 'static = Register> {
    pub(crate) shared: EpochBox<Shared<S, D>>,
}

/// The datatype of segments whose values transactions read and write.
#[derive(Debug, Clone, Copy)]
pub struct Register;

/// An object that consists of one segment.
pub type SingleSegment<T, P> = SegmentObject<Segment<T, P>>;

/// An object that consists of a fixed number of segments, which conflict each on its own.
///
/// They lie side by side, each with its protocol's header.
pub type SegmentArray<T, P> = SegmentObject<Elements<T, P>>;

/// The segments come first, so that even a single one of size zero has an address of its own. Otherwise it could lie at
/// the end of the allocation, where another object may begin.
#[repr(C)]
pub(crate) struct Shared<S: Valued, D = Register> {
    pub(crate) segments: S,
    pub(crate) datatype: D,
    pub(crate) meta: ObjectMeta,
    pub(crate) log: OnceLock<LogSegment<S::Value>>,
}

impl<S: Valued, D> Shared<S, D> {
    pub(crate) fn new(meta: ObjectMeta, datatype: D, segments: S) -> Self {
        Self { segments, datatype, meta, log: OnceLock::new() }
    }
}

/// Appends the new value of a segment, of which it gets the number, to a commit's record of the log. It fails with the reason for which
/// the value cannot be written. See [`Object::log`].
pub type LogSegment<T> = Box<dyn Fn(usize, &T, &mut Vec<u8>) -> Result<(), String> + Send + Sync>;

pub(crate) mod sealed {
    use super::NonNull;
    use crate::kernel::protocol::Protocol;

    pub trait Sealed<P: Protocol> {
        /// The number of one of these segments.
        fn index(&self, segment: NonNull<P::Header>) -> usize;

        /// Describes one of these segments.
        fn describe(&self, segment: NonNull<P::Header>) -> String;
    }
}

/// Segments whose values are of one type.
pub trait Valued: Send + Sync + 'static {
    /// The type of each segment's value.
    type Value: Value;
}

/// The segments of a [`SegmentObject`]: one [`Segment`], [`Elements`], or [`Slots`](crate::Slots).
pub trait Segments<P: Protocol>: sealed::Sealed<P> + Valued {}

impl<T: Value, P: Protocol> Valued for Segment<T, P> {
    type Value = T;
}

impl<T: Value, P: Protocol> Segments<P> for Segment<T, P> {}

impl<T: Value, P: Protocol> sealed::Sealed<P> for Segment<T, P> {
    #[inline]
    fn index(&self, _: NonNull<P::Header>) -> usize {
        0
    }

    fn describe(&self, _: NonNull<P::Header>) -> String {
        String::from("value")
    }
}

/// The segments of a [`SegmentArray`], or of a [`CommutingArray`](crate::CommutingArray).
pub struct Elements<T: Value, P: Protocol>(pub(crate) Box<[Segment<T, P>]>);

impl<T: Value, P: Protocol> Valued for Elements<T, P> {
    type Value = T;
}

impl<T: Value, P: Protocol> Segments<P> for Elements<T, P> {}

impl<T: Value, P: Protocol> sealed::Sealed<P> for Elements<T, P> {
    #[inline]
    fn index(&self, segment: NonNull<P::Header>) -> usize {
        let base = self.0.as_ptr().addr();
        (segment.addr().get() - base) / size_of::<Segment<T, P>>().max(1)
    }

    fn describe(&self, segment: NonNull<P::Header>) -> String {
        self.index(segment).to_string()
    }
}

impl<T: Value, P: Protocol> Drop for Elements<T, P> {
    /// Drops the elements one by one and contains each panic, so that a panic in one element's `Drop` neither stops
    /// the others from being dropped nor, with a second one, ends the process.
    fn drop(&mut self) {
        if std::mem::needs_drop::<Segment<T, P>>() {
            for segment in std::mem::take(&mut self.0).into_vec() {
                contained(|| drop(segment));
            }
        }
    }
}

impl<S: Valued, D: Send + Sync + 'static> fmt::Debug for SegmentObject<S, D> {
    /// Shows the name only: the content is for transactions.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SegmentObject").field("name", &self.name()).finish_non_exhaustive()
    }
}

impl<T: Value, P: Protocol> fmt::Debug for Elements<T, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Elements").field("length", &self.0.len()).finish_non_exhaustive()
    }
}

impl<S: Valued, D: Send + Sync + 'static> SegmentObject<S, D> {
    /// The name, for errors and conflict reports.
    pub fn name(&self) -> &str {
        self.shared.meta.name()
    }

    /// Logs all that commits change from now on: the object becomes durable.
    ///
    /// # Panics
    ///
    /// If it is logged.
    #[must_use]
    pub fn logged(self, log: LogSegment<S::Value>) -> Self {
        assert!(self.shared.log.set(log).is_ok(), "an object has one log");
        self
    }

    /// Sets the object's rank: its position in the order in which transactions acquire the segments of their deferred
    /// operations (*line up*; [`ObjectMeta::set_rank`]). Its segments go by their index.
    pub fn set_rank(&mut self, rank: u16) {
        self.shared.meta.set_rank(rank);
    }
}

impl<T: Value, P: Protocol> SingleSegment<T, P> {
    /// Makes an object whose segment holds `value`.
    pub fn new(engine: &Engine<P>, name: impl Into<String>, value: T) -> Self {
        Self::with(engine, name, Register, value)
    }
}

impl<T: Value, P: Protocol, D: Send + Sync + 'static> SegmentObject<Segment<T, P>, D> {
    pub(crate) fn with(engine: &Engine<P>, name: impl Into<String>, datatype: D, value: T) -> Self {
        let meta = ObjectMeta::new(engine.id(), name);
        Self { shared: EpochBox::new(Shared::new(meta, datatype, Segment::new(value))) }
    }

    /// Begins an operation on the segment.
    ///
    /// # Errors
    ///
    /// As [`Transaction::enter`].
    #[inline]
    pub fn enter<'t, 'w>(
        &'t self,
        tx: &'t mut Transaction<'w, P>,
    ) -> Result<SegmentAccess<'t, 'w, Segment<T, P>, P, D>, Abort> {
        let object = &*self.shared;
        Ok(SegmentAccess { tx: tx.enter(&object.meta)?, object, segment: &object.segments })
    }
}

impl<T: Value, P: Protocol> SegmentArray<T, P> {
    /// Makes an object with a segment for each value. They are numbered from 0.
    pub fn new(engine: &Engine<P>, name: impl Into<String>, values: impl IntoIterator<Item = T>) -> Self {
        Self::with(engine, name, Register, values)
    }
}

impl<T: Value, P: Protocol, D: Send + Sync + 'static> SegmentObject<Elements<T, P>, D> {
    pub(crate) fn with(
        engine: &Engine<P>,
        name: impl Into<String>,
        datatype: D,
        values: impl IntoIterator<Item = T>,
    ) -> Self {
        let segments = Elements(values.into_iter().map(Segment::new).collect());
        let meta = ObjectMeta::new(engine.id(), name);
        Self { shared: EpochBox::bulky(Shared::new(meta, datatype, segments)) }
    }

    /// The number of segments.
    pub fn len(&self) -> usize {
        self.shared.segments.0.len()
    }

    /// True if there are no segments.
    pub fn is_empty(&self) -> bool {
        self.shared.segments.0.is_empty()
    }

    /// Begins an operation on one of the segments.
    ///
    /// # Errors
    ///
    /// As [`Transaction::enter`]. An index out of bounds ends the transaction with [`Misuse::OutOfBounds`].
    #[inline]
    pub fn enter<'t, 'w>(
        &'t self,
        tx: &'t mut Transaction<'w, P>,
        index: usize,
    ) -> Result<SegmentAccess<'t, 'w, Elements<T, P>, P, D>, Abort> {
        let object = &*self.shared;
        let tx = tx.enter(&object.meta)?;
        match object.segments.0.get(index) {
            Some(segment) => Ok(SegmentAccess { tx, object, segment }),
            None => Err(self.out_of_bounds(tx, index)),
        }
    }

    #[cold]
    fn out_of_bounds(&self, tx: &mut ObjectAccess<'_, P>, index: usize) -> Abort {
        let object = self.name().to_owned();
        tx.misuse(Misuse::OutOfBounds { object, index, length: self.len() })
    }
}

impl<T: Value, P: Protocol> SegmentArray<T, P> {
    /// Reads the segments of a range in their order, as [`SegmentAccess::read`] does: `look` gets the number of each and its value.
    ///
    /// # Errors
    ///
    /// As [`enter`](Self::enter).
    pub fn read_each(
        &self,
        tx: &mut Transaction<'_, P>,
        range: Range<usize>,
        mut look: impl FnMut(usize, &T),
    ) -> Result<(), Abort> {
        let object = &*self.shared;
        let tx = tx.enter(&object.meta)?;
        if range.is_empty() {
            return Ok(());
        }
        let Some(segments) = object.segments.0.get(range.clone()) else {
            return Err(self.out_of_bounds(tx, range.end - 1));
        };
        let (mut at, mut segments) = (range.start, segments.iter());
        while let Some(segment) = segments.next() {
            // SAFETY: as in `SegmentAccess::read`.
            unsafe { segment.read(tx, object, |value| look(at, value)) }?;
            at += 1;
            if tx.may_glance() {
                at += glance_each(tx, object, &mut segments, |offset, value| look(at + offset, value));
            }
        }
        Ok(())
    }
}

/// Reads segments as long as no writer is in the way, for an attempt that [may](ObjectAccess::may_glance) glance at them. Returns their
/// number.
#[inline]
fn glance_each<T: Value, P: Protocol>(
    tx: &ObjectAccess<'_, P>,
    object: &Shared<Elements<T, P>>,
    segments: &mut std::slice::Iter<'_, Segment<T, P>>,
    mut look: impl FnMut(usize, &T),
) -> usize {
    let (pin, mut number) = (tx.pin(), 0);
    while let Some(segment) = segments.as_slice().first() {
        // SAFETY: as in `SegmentAccess::read`; the segments are the object's. The attempt, which is pinned, has written none of them.
        let Some(snapshot) = (unsafe { segment.glance(tx, object) }) else { break };
        // SAFETY: stable.
        look(number, unsafe { T::Cell::view(&snapshot, pin) });
        segments.next();
        number += 1;
    }
    number
}

/// A segment of an object that a transaction has entered, for one operation.
#[must_use]
pub struct SegmentAccess<'t, 'w, S: Segments<P>, P: Protocol, D = Register> {
    pub(crate) tx: &'t mut ObjectAccess<'w, P>,
    /// In an `EpochBox`.
    pub(crate) object: &'t Shared<S, D>,
    /// One of the object's.
    pub(crate) segment: &'t Segment<S::Value, P>,
}

impl<S: Segments<P>, P: Protocol, D> fmt::Debug for SegmentAccess<'_, '_, S, P, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SegmentAccess")
            .field("object", &self.object.meta.name())
            .field("segment", &self.object.segments.index(self.segment.address()))
            .finish_non_exhaustive()
    }
}

impl<S: Segments<P>, P: Protocol, D: 'static> SegmentAccess<'_, '_, S, P, D> {
    /// Defers what `work` does to the access until the transaction commits, and prefetches the value, which may be in another cache
    /// line than the header.
    #[inline]
    pub(crate) fn defer_work<I: Input, R: 'static>(
        self,
        access: Access,
        inputs: I,
        work: impl FnOnce(SegmentAccess<'_, '_, S, P, D>, I::Value) -> Result<R, Abort> + 'static,
    ) -> Result<Deferred<R>, Abort>
    where
        Shared<S, D>: Object<P>,
    {
        let Self { tx, object, segment } = self;
        if P::DEFERS {
            prefetch(&raw const segment.cell);
        }
        let (shared, own) = (NonNull::from(object), NonNull::from(segment));
        // SAFETY: the segment is this object's, which has been entered, and both are in an `EpochBox`, so they stay in
        // memory until the attempt ends.
        unsafe {
            tx.defer(object, segment.address(), access, inputs, move |tx, inputs| {
                work(SegmentAccess { tx, object: shared.as_ref(), segment: own.as_ref() }, inputs)
            })
        }
    }
}

impl<S: Segments<P>, P: Protocol> SegmentAccess<'_, '_, S, P> {
    /// Reads the value without copying it, or the attempt's own pending one if it has written the segment. `look` never
    /// sees a torn value.
    ///
    /// # Errors
    ///
    /// [`Abort`] when the attempt cannot go on; pass it up with `?`.
    #[inline]
    pub fn read<R>(self, look: impl FnOnce(&S::Value) -> R) -> Result<R, Abort> {
        // SAFETY: the segment is the object's, whose `Object` functions pass on to `Segment`'s; both are in an `EpochBox`;
        // `tx` is of an operation of the object (module documentation).
        unsafe { self.segment.read(self.tx, self.object, look) }
    }

    /// Replaces the value without reading it.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    #[inline]
    pub fn write(self, value: S::Value) -> Result<(), Abort> {
        // SAFETY: as in `read`.
        unsafe { self.segment.write(self.tx, self.object, value) }
    }

    /// Changes the value.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    #[inline]
    pub fn update<R>(self, change: impl FnOnce(&mut S::Value) -> R) -> Result<R, Abort> {
        // SAFETY: as in `read`.
        unsafe { self.segment.update(self.tx, self.object, change) }
    }
}

// SAFETY: all items of the object are for its segments and were made by `Segment`'s operations, whose `install`,
// `save` and `restore` work with their payloads; the shared state is in an `EpochBox`; operations enter with `meta`.
unsafe impl<S: Segments<P>, P: Protocol> Object<P> for Shared<S, Register> {
    fn meta(&self) -> &ObjectMeta {
        &self.meta
    }

    unsafe fn describe(&self, segment: NonNull<P::Header>) -> String {
        self.segments.describe(segment)
    }

    #[inline]
    unsafe fn identify(&self, segment: NonNull<P::Header>) -> u64 {
        self.segments.index(segment) as u64
    }

    #[inline]
    unsafe fn install(&self, item: &mut Item<P>, pin: &Pin) {
        // SAFETY: the caller's promise, passed on.
        unsafe { Segment::<S::Value, P>::install(item, pin) };
    }

    fn installs_in_regions(&self, item: &Item<P>) -> bool {
        // SAFETY: items of this object are for its segments. It is asked of pending writes.
        unsafe { Segment::<S::Value, P>::installs_in_regions(item) }
    }

    unsafe fn settle(&self, item: ItemId, tx: &mut ObjectAccess<'_, P>) -> Result<(), OutOfRange> {
        // SAFETY: the caller's promise, passed on.
        unsafe { Segment::<S::Value, P>::settle(item, tx) }
    }

    unsafe fn changes_fit(&self, item: &Item<P>, _: &Pin) -> bool {
        // SAFETY: the caller's promise, passed on.
        unsafe { Segment::<S::Value, P>::changes_fit(item) }
    }

    unsafe fn keep(&self, item: &Item<P>, keeper: &mut Keeper<'_>) {
        // SAFETY: the caller's promise, passed on.
        unsafe { Segment::<S::Value, P>::keep(item, keeper) };
    }

    unsafe fn log(&self, item: &Item<P>, pin: &Pin, entries: &mut Vec<u8>) -> Result<(), String> {
        let Some(log) = self.log.get() else { return Ok(()) };
        // SAFETY: the caller's promise, passed on.
        let value = unsafe { Segment::<S::Value, P>::pending_value(item, pin) };
        log(self.segments.index(item.segment()), &value, entries)
    }

    unsafe fn save(&self, item: &Item<P>, saver: &Saver<'_, P>) -> SavedWrite {
        // SAFETY: the caller's promise, passed on.
        unsafe { Segment::<S::Value, P>::save(item, saver) }
    }

    unsafe fn restore(&self, item: &mut Item<P>, saved: Option<SavedWrite>, pin: &Pin) {
        // SAFETY: the caller's promise, passed on.
        unsafe { Segment::<S::Value, P>::restore(item, saved, pin) };
    }

    unsafe fn predicate_holds(&self, item: &Item<P>) -> bool {
        // SAFETY: the caller's promise, passed on.
        unsafe { Segment::<S::Value, P>::predicate_holds(item) }
    }
}

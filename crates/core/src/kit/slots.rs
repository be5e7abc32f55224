//! Segments in a row whose number changes: the elements of a growing collection.
//!
//! A [`SegmentSlots`] has places, numbered from 0, of which each is empty or has a segment. Segments never move, and places are
//! found without a lock. A collection puts segments into places and takes them out when a commit installs its change of
//! some other segment, which covers the places (the length of a vector). So whoever depends on a place depends on that segment,
//! too; [`SegmentSlots::enter`] adds that the place still has the segment found there.
//!
//! # A segment that is taken out
//!
//! Its place is emptied first. Then its structure version is retired, so that an attempt that has found the segment earlier
//! fails, unless it has already checked the covering segment, which the commit that takes it out has locked. Last it goes to
//! the epoch.

use crate::features::snapshot::KeptSegments;
use crate::kernel::abort::Abort;
use crate::kernel::engine::Engine;
use crate::kernel::object_access::ObjectAccess;
use crate::kernel::protocol::Protocol;
use crate::kernel::transaction::Transaction;
use crate::kit::segment::Segment;
use crate::kit::segment_object::{Register, SegmentAccess, SegmentObject, Segments, Shared, Valued, sealed};
use crate::memory::cell::Value;
use crate::memory::identity::ObjectMeta;
use crate::memory::pin::{EpochBox, Pin};
use crate::memory::structure::{Observed, StructureVersion};
use crate::memory::users_code::contained;
use hotrow_sync::OnceLock;
use hotrow_sync::atomic::{AtomicPtr, Ordering};
use std::fmt;
use std::ptr::{NonNull, null_mut};

/// An object that consists of segments in numbered places, which come and go.
pub type SegmentSlots<T, P> = SegmentObject<Slots<T, P>>;

/// The number of places in the first chunk. Each further chunk has as many as all before it and these.
const FIRST: usize = if cfg!(test) { 2 } else { 8 };

/// The number of chunks, enough for more segments than memory can hold.
const CHUNKS: usize = 44;

/// The places of a [`SegmentSlots`].
pub struct Slots<T: Value, P: Protocol> {
    chunks: [OnceLock<Chunk<T, P>>; CHUNKS],
    snapshots: KeptSegments,
}

/// The slot, or none, that was in a place before a commit, for snapshots.
struct KeptSlot<T: Value, P: Protocol>(*mut Slot<T, P>);

// SAFETY: it owns the slot, which is `Send`.
unsafe impl<T: Value, P: Protocol> Send for KeptSlot<T, P> {}

impl<T: Value, P: Protocol> Drop for KeptSlot<T, P> {
    fn drop(&mut self) {
        if !self.0.is_null() {
            // SAFETY: made with `Box`, taken out of its place, and dropped through the epoch, when no snapshot needs it any more.
            let slot = unsafe { Box::from_raw(self.0) };
            contained(|| drop(slot));
        }
    }
}

type Chunk<T, P> = Box<[AtomicPtr<Slot<T, P>>]>;

/// A segment in a place. The segment comes first, so that its address is the slot's.
#[repr(C)]
struct Slot<T: Value, P: Protocol> {
    segment: Segment<T, P>,
    /// Never changes until the segment is taken out, and is retired then.
    version: StructureVersion,
    index: usize,
}

impl<T: Value, P: Protocol> fmt::Debug for Slots<T, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slots").finish_non_exhaustive()
    }
}

impl<T: Value, P: Protocol> Slots<T, P> {
    /// Returns the chunk of a place, and the place's position in it; `None` if there can be no such place.
    fn position(index: usize) -> Option<(usize, usize)> {
        let from_first = index.checked_add(FIRST)?;
        let chunk = (from_first / FIRST).ilog2() as usize;
        Some((chunk, from_first - (FIRST << chunk)))
    }

    fn place(&self, index: usize) -> Option<&AtomicPtr<Slot<T, P>>> {
        let (chunk, at) = Self::position(index)?;
        self.chunks.get(chunk)?.get().map(|places| &places[at])
    }

    /// Returns the place, and makes its chunk first if it is the first one in it.
    fn place_or_new(&self, index: usize) -> &AtomicPtr<Slot<T, P>> {
        let (chunk, at) = Self::position(index).expect("memory has no room for so many segments");
        let make = || (0..FIRST << chunk).map(|_| AtomicPtr::new(null_mut())).collect();
        &self.chunks[chunk].get_or_init(make)[at]
    }

    /// Puts a slot into a place, or empties it, and retires the one that was there, or keeps it for snapshots.
    fn replace(&self, meta: &ObjectMeta, place: &AtomicPtr<Slot<T, P>>, slot: *mut Slot<T, P>) {
        let pin = Pin::new();
        // Before it is replaced. Only the commit that is installing here replaces it.
        let kept = || KeptSlot(place.load(Ordering::Acquire));
        let is_kept =
            self.snapshots.keep_in_place(meta, (&raw const *place).addr(), kept, size_of::<Slot<T, P>>());
        // Release: pairs with the acquire in `enter`, so that the slot's content is visible. Acquire: the content of the old
        // one is.
        let old = place.swap(slot, Ordering::AcqRel);
        // SAFETY: a slot that was in its place when the pin was pinned is in memory.
        if let Some(replaced) = unsafe { old.as_ref() } {
            // Only the thread that has swapped it out comes here, so it is not retired yet.
            if replaced.version.lock().is_some() {
                replaced.version.unlock_retired();
            }
            if is_kept {
                return;
            }
            // SAFETY: made with `Box`, and taken out of its place by this thread alone.
            unsafe { pin.retire(old) };
        }
    }
}

impl<T: Value, P: Protocol> Valued for Slots<T, P> {
    type Value = T;
}

impl<T: Value, P: Protocol> Segments<P> for Slots<T, P> {}

impl<T: Value, P: Protocol> sealed::Sealed<P> for Slots<T, P> {
    #[inline]
    fn index(&self, segment: NonNull<P::Header>) -> usize {
        // SAFETY: segments of this object are the first fields of slots, which are in memory as long as they are.
        unsafe { segment.cast::<Slot<T, P>>().as_ref() }.index
    }

    fn describe(&self, segment: NonNull<P::Header>) -> String {
        self.index(segment).to_string()
    }
}

impl<T: Value, P: Protocol> Drop for Slots<T, P> {
    fn drop(&mut self) {
        for place in self.chunks.iter().filter_map(OnceLock::get).flatten() {
            // Relaxed: `&mut self` proves that no other thread uses the places.
            let slot = place.load(Ordering::Relaxed);
            if !slot.is_null() {
                // SAFETY: made with `Box`, and still in its place, so nobody has taken it out.
                let slot = unsafe { Box::from_raw(slot) };
                contained(|| drop(slot));
            }
        }
    }
}

impl<T: Value, P: Protocol> SegmentSlots<T, P> {
    /// Makes an object with empty places.
    pub fn new(engine: &Engine<P>, name: impl Into<String>) -> Self {
        let segments =
            Slots { chunks: [const { OnceLock::new() }; CHUNKS], snapshots: engine.kept_segments() };
        let meta = ObjectMeta::new(engine.id(), name);
        Self { shared: EpochBox::bulky(Shared::new(meta, Register, segments)) }
    }

    /// Puts a new segment with this value into a place, and takes out the one that was there.
    ///
    /// Transactions that depend on the place learn it only if the caller has locked a segment on which they depend, too: call it
    /// in [`Commuting::apply`](crate::Commuting::apply), or before transactions use the object.
    pub fn put(&self, index: usize, value: T) {
        let slot = Slot { segment: Segment::new(value), version: StructureVersion::new(), index };
        let Shared { segments, meta, .. } = &*self.shared;
        segments.replace(meta, segments.place_or_new(index), Box::into_raw(Box::new(slot)));
    }

    /// Empties a place.
    ///
    /// As for [`put`](Self::put).
    pub fn take_out(&self, index: usize) {
        let Shared { segments, meta, .. } = &*self.shared;
        if let Some(place) = segments.place(index) {
            segments.replace(meta, place, null_mut());
        }
    }

    /// Begins an operation on the segment in a place, which is `None` if the place is empty.
    ///
    /// `cover` makes the transaction depend on the segment that covers the places, as far as it has to. It is called when the
    /// place has been looked at, and before its value is: so whatever version the covering segment has, the segment found is
    /// not newer. Its second result is true if the place cannot be empty: if it was, a commit has just filled it, and both
    /// look again. The transaction also depends on it that the segment stays there until it commits.
    ///
    /// # Errors
    ///
    /// As [`Transaction::enter`]; the error of `cover`.
    #[inline]
    pub fn enter<'t, 'w, R>(
        &'t self,
        tx: &'t mut Transaction<'w, P>,
        index: usize,
        mut cover: impl FnMut(&mut Transaction<'w, P>) -> Result<(R, bool), Abort>,
    ) -> Result<(R, Option<SegmentAccess<'t, 'w, Slots<T, P>, P>>), Abort> {
        let object = &*self.shared;
        if tx.enter(&object.meta)?.is_on_snapshot() {
            let (covered, _) = cover(tx)?;
            let tx = tx.enter(&object.meta)?;
            let segment = object.find_on_snapshot(tx, index).map(|segment| {
                // SAFETY: found just now under the attempt's pin.
                unsafe { segment.as_ref() }
            });
            return Ok((covered, segment.map(|segment| SegmentAccess { tx, object, segment })));
        }
        loop {
            // Entered each time, because `cover` may have ended the attempt or exchanged the transaction.
            let segment = object.find(tx.enter(&object.meta)?, index)?;
            let (covered, is_filled) = cover(tx)?;
            if segment.is_none() && is_filled {
                continue;
            }
            let tx = tx.enter(&object.meta)?;
            // SAFETY: it was found under the attempt's pin. (If `cover` has exchanged the transaction, that one's attempt was
            // pinned by this thread too before the first one's could be unpinned.)
            let segment = segment.map(|segment| unsafe { segment.as_ref() });
            return Ok((covered, segment.map(|segment| SegmentAccess { tx, object, segment })));
        }
    }
}

impl<T: Value, P: Protocol> Shared<Slots<T, P>> {
    /// Finds the segment that was in a place for the transaction's snapshot. It is in memory until the attempt ends.
    #[cold]
    fn find_on_snapshot(&self, tx: &ObjectAccess<'_, P>, index: usize) -> Option<NonNull<Segment<T, P>>> {
        let place = self.segments.place(index)?;
        // Acquire: as in `find`.
        let now = place.load(Ordering::Acquire);
        // SAFETY: kept slots are of this type.
        let kept = unsafe { tx.find_in_place::<KeptSlot<T, P>>(&self.meta, (&raw const *place).addr()) };
        let slot = NonNull::new(kept.map_or(now, |kept| kept.0))?;
        // SAFETY: found in its place, or kept, under the attempt's pin.
        Some(NonNull::from(unsafe { &slot.as_ref().segment }))
    }

    /// Finds the segment in a place, and observes that it is there. It is in memory until the attempt ends.
    fn find(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        index: usize,
    ) -> Result<Option<NonNull<Segment<T, P>>>, Abort> {
        loop {
            let Some(place) = self.segments.place(index) else { return Ok(None) };
            // Acquire: pairs with the release in `replace`.
            // SAFETY: a slot found in its place is freed through the epoch, and the attempt is pinned.
            let Some(slot) = (unsafe { place.load(Ordering::Acquire).as_ref() }) else { return Ok(None) };
            // A retired one is not in its place any more.
            let Some(version) = slot.version.stable() else { continue };
            let observed = Observed { node: NonNull::from(&slot.version), version };
            // SAFETY: the slot is this object's, which is in an `EpochBox`, and which the operation has entered.
            if unsafe { tx.observe(self, observed) }? {
                return Ok(Some(NonNull::from(&slot.segment)));
            }
        }
    }
}

//! A bucket: one cache line of tagged record pointers, and a chain of more of them when it is full.

use super::hashing::Hash64;
use crate::index::free_made;
use crate::index::tagged::{Entry, tag_of, untagged};
use hotrow_core::StructureVersion;
use hotrow_core::epoch::Guard;
use hotrow_core::region::made_in_region;
use hotrow_sync::atomic::{AtomicPtr, Ordering, fence};
use hotrow_sync::prefetch::prefetch_bytes;
use std::ptr::NonNull;

/// The number of entries in a bucket, which fills a cache line together with the version and the overflow pointer.
///
/// It is two in a model, so that few entries make a chain of several buckets.
pub(super) const SLOTS: usize = if cfg!(loom) { 2 } else { 6 };

/// A bucket of the array, or an overflow bucket chained to one.
///
/// The all-zero bucket is valid: unlatched, empty and *not ready* (see [`is_ready`](Self::is_ready)), so an
/// array of them is memory fresh from the operating system.
///
/// # Invariants
///
/// - Entries are dense: in the order of the chain, no slot before the last entry is empty.
/// - An overflow bucket in a chain is not empty.
/// - Slots and overflow pointers change only under the latch of the chain's first bucket. The versions of
///   overflow buckets are unused.
#[repr(C, align(64))]
pub(super) struct Bucket<T> {
    /// Latch and version of the whole chain.
    pub(super) version: StructureVersion,
    /// Null, or a record's address below its key's tag.
    slots: [AtomicPtr<T>; SLOTS],
    /// Null if the bucket is not ready; [`end`] if there is no further bucket.
    overflow: AtomicPtr<Bucket<T>>,
}

/// The overflow pointer of a chain's last bucket. Never followed.
fn end<T>() -> *mut Bucket<T> {
    NonNull::dangling().as_ptr()
}

/// The space that [`Bucket::push`] used.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Pushed {
    /// A free slot.
    Slot,
    /// A new overflow bucket.
    Bucket,
}

/// The result of [`Bucket::take`].
pub(super) enum Taken<T> {
    /// The record is not in this chain.
    Nothing,
    /// The record was removed.
    Entry,
    /// The record was removed, and so was this overflow bucket, which the caller frees when no reader is in it any
    /// more.
    EntryAndBucket(NonNull<Bucket<T>>),
}

impl<T> Bucket<T> {
    fn overflow_bucket(first: *mut T) -> NonNull<Self> {
        let bucket = Self {
            version: StructureVersion::new(),
            slots: Default::default(),
            overflow: AtomicPtr::new(end()),
        };
        // Relaxed: no other thread sees the bucket yet.
        bucket.slots[0].store(first, Ordering::Relaxed);
        let bucket = NonNull::from(Box::leak(Box::new(bucket)));
        // SAFETY: from a box; nodes are retired.
        unsafe { made_in_region(bucket.as_ptr().cast(), free_made::<Self>) };
        bucket
    }

    /// Makes the counterpart of the all-zero bucket of a real build.
    #[cfg(loom)]
    pub(super) fn unready() -> Self {
        Self {
            version: StructureVersion::new(),
            slots: Default::default(),
            overflow: AtomicPtr::new(std::ptr::null_mut()),
        }
    }

    /// Returns the version word, by which transactions identify the bucket. The pointer is valid for the whole
    /// bucket.
    #[inline]
    pub(super) fn word(&self) -> NonNull<StructureVersion> {
        // The version is the first field; a pointer made from it alone could not be used for the others.
        NonNull::from(self).cast()
    }

    /// True if the bucket has received its entries from its parent.
    #[inline]
    pub(super) fn is_ready(&self) -> bool {
        // Acquire: pairs with the release in `make_ready` and `push`, so that a thread that sees the bucket ready
        // also sees the latch under which it was filled.
        !self.overflow.load(Ordering::Acquire).is_null()
    }

    /// Makes a bucket of the array ready. The caller holds its latch, or owns it.
    pub(super) fn make_ready(&self) {
        if self.overflow.load(Ordering::Relaxed).is_null() {
            // Release: pairs with the acquire in `is_ready`.
            self.overflow.store(end(), Ordering::Release);
        }
    }

    /// Returns the next bucket of the chain. The caller has pinned the epoch, or owns the chain.
    #[inline]
    fn next(&self) -> Option<&Self> {
        // Acquire: pairs with the release in `push`, so that the bucket's content is visible.
        let next = self.overflow.load(Ordering::Acquire);
        if next == end() || next.is_null() {
            return None;
        }
        // SAFETY: `push` stored the pointer. It leads to a bucket that is freed only after it has left the chain and
        // every epoch pinned before then has ended.
        Some(unsafe { &*next })
    }

    /// Finds the first record whose tag matches and for which `wanted` is true.
    ///
    /// Without the latch it may miss an entry that is being moved, so a `None` counts only if the version is
    /// unchanged. A record found was in the chain at some moment since the version was last stable.
    #[inline]
    pub(super) fn find(
        &self,
        hash: Hash64,
        mut wanted: impl FnMut(NonNull<T>) -> bool,
        _guard: &Guard,
    ) -> Option<NonNull<T>> {
        let tag = hash.tag();
        let mut bucket = self;
        loop {
            // Compare all six tags before one branch, because it cannot be predicted which of them matches.
            let mut matching = 0u32;
            for (at, slot) in bucket.slots.iter().enumerate() {
                // Relaxed: the fence below orders the record's content, and the version orders an entry's absence.
                let entry = slot.load(Ordering::Relaxed);
                matching |= u32::from(tag_of(entry) == tag) << at;
            }
            while matching != 0 {
                let entry = bucket.slots[matching.trailing_zeros() as usize].load(Ordering::Relaxed);
                // Pairs with the release stores in `push` and `take`, so that the record's content is visible.
                fence(Ordering::Acquire);
                if let Some(record) = NonNull::new(untagged(entry))
                    && wanted(record)
                {
                    return Some(record);
                }
                matching &= matching - 1;
            }
            bucket = bucket.next()?;
        }
    }

    /// Visits every record of the chain. Without the latch the visit counts only if the version is unchanged.
    pub(super) fn for_each(&self, mut visit: impl FnMut(NonNull<T>)) {
        let mut bucket = Some(self);
        while let Some(here) = bucket {
            for slot in &here.slots {
                // Acquire: pairs with the release stores in `push` and `take`.
                if let Some(record) = NonNull::new(untagged(slot.load(Ordering::Acquire))) {
                    visit(record);
                }
            }
            bucket = here.next();
        }
    }

    /// Prefetches the first bytes of the records in the chain's first bucket: of all, or of those whose tag matches.
    #[inline]
    pub(super) fn prefetch_records(&self, hash: Option<Hash64>, bytes: usize) {
        for slot in &self.slots {
            let entry = slot.load(Ordering::Relaxed);
            if hash.is_none_or(|hash| tag_of(entry) == hash.tag()) {
                prefetch_bytes(untagged(entry), bytes);
            }
        }
    }

    /// Adds an entry. The caller holds the latch.
    pub(super) fn push(&self, Entry(entry): Entry<T>) -> Pushed {
        let mut bucket = self;
        loop {
            // Relaxed: the latch orders all changes.
            let free = bucket.slots.iter().find(|slot| slot.load(Ordering::Relaxed).is_null());
            if let Some(slot) = free {
                // Release: pairs with the acquire fence in `find`.
                slot.store(entry, Ordering::Release);
                return Pushed::Slot;
            }
            let Some(next) = bucket.next() else { break };
            bucket = next;
        }
        // Release: pairs with the acquire in `next`.
        bucket.overflow.store(Self::overflow_bucket(entry).as_ptr(), Ordering::Release);
        Pushed::Bucket
    }

    /// Removes the entry of exactly this record; the chain's last entry takes its place. The caller holds the latch.
    #[inline]
    pub(super) fn take(&self, record: NonNull<T>) -> Taken<T> {
        // Relaxed throughout: the latch orders all changes.
        let points_here = |slot: &&AtomicPtr<T>| untagged(slot.load(Ordering::Relaxed)) == record.as_ptr();
        let (mut hole, mut before, mut bucket) = (None, None, self);
        loop {
            hole = hole.or_else(|| bucket.slots.iter().find(points_here));
            let Some(next) = bucket.next() else { break };
            (before, bucket) = (Some(bucket), next);
        }
        let Some(hole) = hole else { return Taken::Nothing };
        let taken = bucket.slots.iter().take_while(|slot| !slot.load(Ordering::Relaxed).is_null()).count();
        let last = &bucket.slots[taken - 1];
        // Release: pairs with the acquire fence in `find`, for the entry that moves.
        hole.store(last.load(Ordering::Relaxed), Ordering::Release);
        last.store(std::ptr::null_mut(), Ordering::Relaxed);
        match before.and_then(|before| if taken == 1 { before.take_overflow() } else { None }) {
            Some(emptied) => Taken::EntryAndBucket(emptied),
            None => Taken::Entry,
        }
    }

    /// Detaches the overflow chain, which the caller frees with [`free_chain`]. The caller holds the latch of a ready
    /// bucket, or owns it.
    pub(super) fn take_overflow(&self) -> Option<NonNull<Self>> {
        let chain = self.overflow.load(Ordering::Relaxed);
        if chain == end() {
            return None;
        }
        let chain = NonNull::new(chain)?;
        self.overflow.store(end(), Ordering::Release);
        Some(chain)
    }

    /// Returns the number of overflow buckets chained to this one.
    pub(super) fn overflows(&self) -> usize {
        std::iter::successors(self.next(), |bucket| bucket.next()).count()
    }

    /// Empties the slots of the chain's first bucket.
    pub(super) fn clear(&mut self) {
        self.slots = Default::default();
    }
}

/// Frees overflow buckets; the records stay.
///
/// # Safety
///
/// The chain came from [`Bucket::take_overflow`] or [`Taken::EntryAndBucket`], is freed once, and no other
/// thread can still be reading it.
pub(super) unsafe fn free_chain<T>(chain: NonNull<Bucket<T>>) {
    let mut rest = Some(chain);
    while let Some(bucket) = rest {
        // SAFETY: `overflow_bucket` made it with `Box`, and the caller has taken it out of use.
        let bucket = unsafe { Box::from_raw(bucket.as_ptr()) };
        rest = bucket.take_overflow();
    }
}

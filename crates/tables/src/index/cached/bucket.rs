//! A bucket of a cache: a latch with a version, and slots for a few records.

use crate::index::tagged::{Entry, tag_of, untagged};
use hotrow_core::{Observed, StructureVersion};
use hotrow_sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use hotrow_sync::region;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;

/// The number of slots of a bucket, which takes two cache lines together with the version and the number of removals.
pub(super) const SLOTS: usize = if cfg!(loom) || cfg!(test) { 2 } else { 14 };

/// A bucket. Slots and the number of removals change only under the latch, and the version changes with them.
#[repr(C, align(64))]
pub(super) struct Bucket<T> {
    pub(super) version: StructureVersion,
    /// The number of records removed, from the cache or from the main index, that a commit had made present.
    removals: AtomicU64,
    /// Null, or a record's address below its key's tag.
    slots: [AtomicPtr<T>; SLOTS],
}

/// The record of an entry; `None` if the slot is empty.
fn record_of<T>(entry: *mut T) -> Option<NonNull<T>> {
    NonNull::new(untagged(entry))
}

impl<T> Bucket<T> {
    pub(super) fn new(number: usize) -> Self {
        Self {
            version: StructureVersion::numbered(number),
            removals: AtomicU64::new(0),
            slots: std::array::from_fn(|_| AtomicPtr::default()),
        }
    }

    /// The bucket as transactions observe it at a version. The pointer is valid for the whole bucket.
    pub(super) fn observed(&self, version: u64) -> Observed {
        // The version is the first field; a pointer made from it alone could not be used for the others.
        Observed { node: NonNull::from(self).cast(), version }
    }

    /// Waits until the bucket is not being changed, and returns its version. Buckets are never retired.
    #[inline]
    pub(super) fn stable(&self) -> u64 {
        self.version.stable().expect("a bucket of a cache is never retired")
    }

    /// Finds the first record whose tag matches and for which `wanted` is true. It was in the bucket at some moment since
    /// the caller pinned the epoch. `None` counts only if the version is unchanged.
    #[inline]
    pub(super) fn find(&self, tag: usize, mut wanted: impl FnMut(NonNull<T>) -> bool) -> Option<NonNull<T>> {
        self.slots.iter().find_map(|slot| {
            // Acquire: pairs with the release in `push`, so that the record's content is visible.
            let entry = slot.load(Ordering::Acquire);
            if tag_of(entry) != tag {
                return None;
            }
            record_of(entry).filter(|record| wanted(*record))
        })
    }

    /// Returns the records in the bucket. Without the latch they count only if the version is unchanged.
    pub(super) fn records(&self) -> impl Iterator<Item = NonNull<T>> {
        // Acquire: pairs with the release in `push`.
        self.slots.iter().filter_map(|slot| record_of(slot.load(Ordering::Acquire)))
    }

    /// The number of removals. Without the latch it counts only if the version is unchanged.
    pub(super) fn removals(&self) -> u64 {
        // Relaxed: ordered by the version.
        self.removals.load(Ordering::Relaxed)
    }

    /// True if a slot holds this record at this moment.
    pub(super) fn holds(&self, record: NonNull<T>) -> bool {
        self.records().any(|other| other == record)
    }

    /// Waits for the latch and takes it.
    pub(super) fn latch(&self) -> Latched<'_, T> {
        let before = self.version.lock().expect("a bucket of a cache is never retired");
        Latched { bucket: self, before }
    }

    /// Takes the latch if the version is still `seen`.
    #[inline]
    pub(super) fn latch_at(&self, seen: u64) -> Option<Latched<'_, T>> {
        // Made only if the latch is taken, as its drop releases it.
        self.version.try_lock_at(seen).then(|| Latched { bucket: self, before: seen })
    }

    /// Empties the bucket, and returns its records.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = NonNull<T>> {
        // Relaxed: `&mut self` proves that no other thread uses the bucket.
        self.slots.iter().filter_map(|slot| {
            let entry = slot.load(Ordering::Relaxed);
            slot.store(std::ptr::null_mut(), Ordering::Relaxed);
            record_of(entry)
        })
    }
}

/// A bucket whose latch the thread holds. A drop releases it, and the version stays: nothing has changed.
pub(super) struct Latched<'b, T> {
    bucket: &'b Bucket<T>,
    /// The version at which the latch was taken.
    pub(super) before: u64,
}

impl<T> Latched<'_, T> {
    /// Puts an entry into a free slot. False if there is none.
    pub(super) fn push(&self, Entry(entry): &Entry<T>) -> bool {
        // Relaxed: the latch orders all changes.
        let free = self.bucket.slots.iter().find(|slot| slot.load(Ordering::Relaxed).is_null());
        // Release: pairs with the acquire in `find` and `records`.
        free.map(|slot| slot.store(*entry, Ordering::Release)).is_some()
    }

    /// Takes a record out of its slot, and returns its entry; `None` if no slot holds it.
    pub(super) fn take(&self, record: NonNull<T>) -> Option<Entry<T>> {
        self.bucket.slots.iter().find_map(|slot| {
            // Relaxed: the latch orders all changes.
            let entry = slot.load(Ordering::Relaxed);
            if record_of(entry) != Some(record) {
                return None;
            }
            slot.store(std::ptr::null_mut(), Ordering::Relaxed);
            Some(Entry(entry))
        })
    }

    /// Counts a removal.
    pub(super) fn count_removal(&self) {
        // Relaxed: the latch orders all changes.
        self.bucket.removals.store(self.bucket.removals.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    /// Releases the latch after a change, and returns the new version.
    pub(super) fn release_changed(self) -> u64 {
        ManuallyDrop::new(self).bucket.version.unlock_changed()
    }
}

impl<T> Drop for Latched<'_, T> {
    fn drop(&mut self) {
        // The abort of a region releases it.
        if !region::is_leaving() {
            self.bucket.version.unlock_unchanged();
        }
    }
}

//! The hash index: cache-line buckets with optimistic readers, which grows without blocking any thread.
//!
//! # Buckets
//!
//! The index is an [array](array) of [buckets](bucket), one cache line each: a version word, six slots of a 16-bit
//! tag and a 48-bit record pointer, and a pointer to an overflow bucket of the same shape. The tag is a part of the
//! key's hash, so that a lookup follows few pointers to other keys. The version word of the first bucket is the latch
//! of the whole chain. A transaction that finds nothing observes it: sto §4.1 keeps a version per bucket of its
//! hashtable for absent elements, Silo one per tree node.
//!
//! # Lookups
//!
//! A reader takes no latch. It reads the version, the slots, and the keys of the records whose tags match.
//!
//! - *Found* needs no second look at the version. A pointer read from a slot after the version was stable
//!   was in the slot then or was stored later. Either way the record was in the index at some moment during
//!   the lookup, and its key never changes.
//! - *Absent* counts only if the version has not changed from before the first slot was read until after
//!   the last one; an entry that is being moved can be missed otherwise.
//!
//! A reader may follow a pointer from a slot even if the entry has just been removed, because it has pinned the
//! epoch, and records are freed through the epoch.
//!
//! # Insertions and removals
//!
//! Both first search like readers, and then take the latch only at the version that they read. So keys are compared
//! and hashed (by user code, which may panic) only while no latch is held.
//!
//! # Growth
//!
//! An array with a quarter as many overflow buckets as buckets has about five entries in a bucket. The insertion that
//! detects this installs an array of twice the size, with every bucket *unready*. From then on
//!
//! - a thread that meets an unready bucket migrates its parent: it latches the parent in the old array, moves its
//!   entries to its two children, makes the children ready, and retires the parent;
//! - a thread that (late) meets a retired bucket of the old array starts over in the new one;
//! - every insertion also migrates a few parents, so that the migration ends; the thread that migrates the last
//!   parent hands the old array to the epoch;
//! - the next growth begins only after that.
//!
//! This invariant excludes phantoms: *a bucket of the old array and its children are never both unlatched and in
//! use*. The children become ready while the parent is latched, and then the parent is retired. So an observed
//! version of the parent never stays unchanged once a key can be inserted elsewhere. A transaction that observed a
//! parent fails its validation even if the key is still absent. That is rare, and its next attempt observes a child.

mod array;
mod bucket;
mod growth;
mod hashing;
#[cfg(all(test, loom))]
mod models;
#[cfg(all(test, not(loom)))]
mod tests;

use super::interleaving::interleaving_point;
use super::{Insertion, Keyed, Lookup, MayChange, is_forbidden};
use crate::index::tagged::Entry;
use array::Array;
use bucket::{Bucket, Pushed, Taken, free_chain};
use crossbeam_utils::CachePadded;
use hashing::Hash64;
use hotrow_core::epoch::{self, Guard};
use hotrow_core::{Observed, StructureChange, StructureVersion, WatchedNodes, retire_with};
use hotrow_sync::atomic::{AtomicPtr, Ordering};
use hotrow_sync::hashing::KeyHashing;
use hotrow_sync::prefetch::prefetch;
use std::hash::Hash;
use std::ptr::NonNull;

/// The number of entries in a bucket for which [`HashIndex::with_capacity`] plans.
const AIM: usize = 4;
/// The greatest number of records for which buckets are reserved (256 MiB of them). A larger index grows, so that a
/// far too large estimate costs no more than that.
const RESERVED_MAX: usize = if cfg!(test) { 1 << 17 } else { 1 << 24 };
/// The least number of buckets.
const BUCKETS_MIN: usize = if cfg!(test) { 2 } else { 16 };

/// A concurrent map from keys to records, without an order.
///
/// Lookups take no latch and write nothing. Insertions and removals in different buckets do not conflict.
pub(crate) struct HashIndex<T> {
    /// The newest array. Padded: every operation reads it.
    current: CachePadded<AtomicPtr<Array<T>>>,
    /// Its own, so that keys that collide here do so nowhere else.
    hashing: KeyHashing,
    /// Those that wait for a change of a bucket.
    watched: WatchedNodes,
}

impl<T> HashIndex<T>
where
    T: Keyed,
    T::Key: Hash + Eq,
{
    /// An index with room for `expected` records, or for [`RESERVED_MAX`]; it grows beyond that by itself.
    pub(crate) fn with_capacity(expected: usize) -> Self {
        let array = Array::ready(expected.min(RESERVED_MAX).div_ceil(AIM).max(BUCKETS_MIN));
        let current = CachePadded::new(AtomicPtr::new(Box::into_raw(Box::new(array))));
        Self { current, hashing: KeyHashing::new(), watched: WatchedNodes::default() }
    }

    /// Has those told that watch a bucket when it is retired.
    pub(crate) fn set_watched(&mut self, watched: WatchedNodes) {
        self.watched = watched;
    }

    #[inline]
    fn current<'g>(&self, _guard: &'g Guard) -> &'g Array<T> {
        // Acquire: pairs with the release in `grow`, so that the array's fields are visible.
        // SAFETY: the array was current after the guard was pinned, and an array is freed through the epoch
        // after it has ceased to be current.
        unsafe { &*self.current.load(Ordering::Acquire) }
    }

    /// Returns the bucket of a key in the newest array, and makes it ready first if it was not.
    #[inline]
    fn bucket_of<'g>(&self, hash: Hash64, guard: &'g Guard) -> (&'g Array<T>, usize, &'g Bucket<T>) {
        let array = self.current(guard);
        let at = array.position(hash);
        let bucket = &array.buckets()[at];
        if !bucket.is_ready() {
            self.make_ready(array, at, guard);
        }
        (array, at, bucket)
    }

    /// Returns the bucket that covers a key's absence.
    pub(crate) fn node_of(&self, key: &T::Key, guard: &Guard) -> Observed {
        let hash = Hash64::of(key, &self.hashing);
        loop {
            let (_, _, bucket) = self.bucket_of(hash, guard);
            if let Some(version) = bucket.version.stable() {
                return Observed { node: bucket.word(), version };
            }
        }
    }

    /// Looks up a key.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn get(&self, key: &T::Key, guard: &Guard) -> Lookup<T> {
        self.get_by(key, |other: &T| other.key() == key, guard)
    }

    /// Looks up the key for which `is_wanted` is true, by something that has its hash.
    #[inline]
    pub(crate) fn get_by(
        &self,
        key: &(impl Hash + ?Sized),
        is_wanted: impl Fn(&T) -> bool + Copy,
        guard: &Guard,
    ) -> Lookup<T> {
        let hash = Hash64::of(key, &self.hashing);
        loop {
            let (_, _, bucket) = self.bucket_of(hash, guard);
            interleaving_point();
            let Some(version) = bucket.version.stable() else { continue };
            interleaving_point();
            if let Some(record) = Self::find(bucket, hash, is_wanted, guard) {
                return Lookup::Found(record);
            }
            interleaving_point();
            if bucket.version.unchanged(version) {
                return Lookup::Absent(Observed { node: bucket.word(), version });
            }
        }
    }

    /// Prefetches the cache line with which a lookup of `key` begins.
    #[inline]
    pub(crate) fn prefetch_bucket(&self, key: &T::Key, guard: &Guard) {
        let array = self.current(guard);
        prefetch(&raw const array.buckets()[array.position(Hash64::of(key, &self.hashing))]);
    }

    /// Prefetches the first bytes of the record of `key`. Call it some time after
    /// [`prefetch_bucket`](Self::prefetch_bucket), because it waits for the bucket.
    #[inline]
    pub(crate) fn prefetch_record(&self, key: &T::Key, bytes: usize, guard: &Guard) {
        let hash = Hash64::of(key, &self.hashing);
        let array = self.current(guard);
        array.buckets()[array.position(hash)].prefetch_records(Some(hash), bytes);
    }

    #[inline]
    fn find(
        bucket: &Bucket<T>,
        hash: Hash64,
        is_wanted: impl Fn(&T) -> bool,
        guard: &Guard,
    ) -> Option<NonNull<T>> {
        // SAFETY: a record found in a chain under a pinned epoch has not been freed (`insert`'s contract).
        bucket.find(hash, |record| is_wanted(unsafe { record.as_ref() }), guard)
    }

    /// Adds a record under its key, unless there is one with this key or the bucket must not be changed.
    ///
    /// Calls `changed` with the bucket's change after the latch is released.
    ///
    /// `may_change` returns true if the bucket may be changed at this version. The latch is then taken at the same
    /// version.
    ///
    /// # Safety
    ///
    /// The record is valid, and stays so until it has been removed from this index (or the index has been
    /// drained or dropped) and after that every epoch pinned before has ended.
    #[inline(never)]
    pub(crate) unsafe fn insert(
        &self,
        record: NonNull<T>,
        guard: &Guard,
        changed: &mut dyn FnMut(StructureChange),
        may_change: MayChange<'_>,
    ) -> Insertion<T> {
        // SAFETY: the caller's promise.
        let key = unsafe { record.as_ref() }.key();
        let hash = Hash64::of(key, &self.hashing);
        self.help_to_grow(guard);
        loop {
            let (array, at, bucket) = self.bucket_of(hash, guard);
            interleaving_point();
            let Some(before) = bucket.version.stable() else { continue };
            if let Some(existing) = Self::find(bucket, hash, |other| other.key() == key, guard) {
                return Insertion::Exists(existing);
            }
            let observed = Observed { node: bucket.word(), version: before };
            if is_forbidden(may_change, observed) {
                return Insertion::Refused(observed);
            }
            interleaving_point();
            let entry = Entry::new(record, hash.tag());
            // INVARIANT 35: No key's own code runs while a latch of the hash index or of the ordered index is held.
            if !bucket.version.try_lock_at(before) {
                continue;
            }
            let full = bucket.push(entry) == Pushed::Bucket && array.overflow_added(at);
            let after = bucket.version.unlock_changed();
            changed(StructureChange::Bumped { node: bucket.word(), before, after });
            if full {
                self.grow(array);
            }
            return Insertion::Inserted;
        }
    }

    /// Removes exactly this record. False if the index does not hold it.
    ///
    /// Calls `changed` with the bucket's change after the latch is released.
    #[inline(never)]
    pub(crate) fn remove(
        &self,
        record: NonNull<T>,
        guard: &Guard,
        changed: &mut dyn FnMut(StructureChange),
    ) -> bool {
        // SAFETY: the caller has the record, so it is in memory.
        let hash = Hash64::of(unsafe { record.as_ref() }.key(), &self.hashing);
        loop {
            let (array, at, bucket) = self.bucket_of(hash, guard);
            interleaving_point();
            let Some(before) = bucket.version.lock() else { continue };
            let emptied = match bucket.take(record) {
                Taken::Nothing => {
                    bucket.version.unlock_unchanged();
                    return false;
                }
                Taken::Entry => None,
                Taken::EntryAndBucket(emptied) => {
                    array.overflows_removed(at, 1);
                    Some(emptied)
                }
            };
            let after = bucket.version.unlock_changed();
            if let Some(emptied) = emptied {
                // SAFETY: `take` took the bucket out of the chain, and it is deferred once.
                unsafe { retire_with(guard, size_of::<Bucket<T>>(), move || free_chain(emptied)) };
            }
            changed(StructureChange::Bumped { node: bucket.word(), before, after });
            return true;
        }
    }

    /// Visits the records bucket by bucket, each bucket in the state of one moment.
    ///
    /// A record that stays in the index throughout is visited exactly once, even if the index grows meanwhile. A
    /// record inserted or removed meanwhile may or may not be visited.
    ///
    /// Begins behind the part `from` of the buckets, a number of how many (0 of 1: nothing), and ends behind the bucket where `visit`
    /// returns false. Returns the part visited then, behind which another call goes on, under another pin and in an index that has
    /// grown since.
    pub(crate) fn for_each_bucket(
        &self,
        guard: &Guard,
        from: (usize, usize),
        visit: &mut dyn FnMut(&[NonNull<T>]) -> bool,
    ) -> Option<(usize, usize)> {
        let array = self.current(guard);
        let mut records = Vec::new();
        let buckets = array.buckets().len();
        // An array has twice the buckets of the one before it, in the same order.
        let first = (from.0 as u128 * buckets as u128 / from.1 as u128) as usize;
        for at in first..buckets {
            let mut goes_on = true;
            self.for_each_from(array, at, guard, &mut records, &mut |records| goes_on &= visit(records));
            if !goes_on {
                return Some((at + 1, buckets));
            }
        }
        None
    }

    fn for_each_from(
        &self,
        array: &Array<T>,
        at: usize,
        guard: &Guard,
        records: &mut Vec<NonNull<T>>,
        visit: &mut dyn FnMut(&[NonNull<T>]),
    ) {
        let bucket = &array.buckets()[at];
        if !bucket.is_ready() {
            self.make_ready(array, at, guard);
        }
        while let Some(version) = bucket.version.stable() {
            records.clear();
            bucket.for_each(|record| records.push(record));
            if bucket.version.unchanged(version) {
                visit(records);
                return;
            }
        }
        // The bucket is retired: its children have the entries.
        // SAFETY: acquire pairs with the release in `grow`; the child was installed while the guard was
        // pinned or is current still, so it has not been freed.
        let child = unsafe { &*array.child.load(Ordering::Acquire) };
        self.for_each_from(child, 2 * at, guard, records, visit);
        self.for_each_from(child, 2 * at + 1, guard, records, visit);
    }

    /// Returns any record in an observed bucket, by which to describe it. `None` if the bucket is empty or retired.
    ///
    /// # Safety
    ///
    /// The node is a bucket of this index, observed since the guard was pinned.
    pub(crate) unsafe fn record_at(
        &self,
        node: NonNull<StructureVersion>,
        _guard: &Guard,
    ) -> Option<NonNull<T>> {
        // SAFETY: the bucket is in memory as long as the epoch is pinned, and an observation leads to all of it.
        let bucket = unsafe { node.cast::<Bucket<T>>().as_ref() };
        bucket.version.stable()?;
        let mut found = None;
        bucket.for_each(|record| found = found.or(Some(record)));
        found
    }

    /// Bytes of memory that the index itself takes: buckets, not records.
    pub(crate) fn memory_bytes(&self) -> usize {
        let guard = &epoch::pin();
        let array = self.current(guard);
        let parent = array.parent.load(Ordering::Acquire);
        // SAFETY: a parent is freed through the epoch after this pointer has become null.
        let parent = unsafe { parent.as_ref() };
        size_of::<Self>() + array.memory_bytes() + parent.map_or(0, Array::memory_bytes)
    }
}

impl<T> HashIndex<T> {
    /// Removes all records and passes each to `visit`, for the owner to free.
    #[inline(never)]
    pub(crate) fn drain(&mut self, visit: &mut dyn FnMut(NonNull<T>)) {
        // Relaxed, here and below: `&mut self` proves that no other thread uses the index.
        // SAFETY: the index owns its arrays, and no other thread uses them.
        let array = unsafe { &mut *self.current.load(Ordering::Relaxed) };
        array.drain(visit);
        // SAFETY: as above.
        if let Some(parent) = unsafe { array.parent.load(Ordering::Relaxed).as_mut() } {
            parent.drain(visit);
        }
    }
}

impl<T> Drop for HashIndex<T> {
    fn drop(&mut self) {
        // SAFETY: made with `Box`. No other thread uses it, and the epoch owns arrays older than its parent.
        let array = unsafe { Box::from_raw(self.current.load(Ordering::Relaxed)) };
        let parent = array.parent.load(Ordering::Relaxed);
        if !parent.is_null() {
            // SAFETY: the index owns a parent that is still linked.
            drop(unsafe { Box::from_raw(parent) });
        }
    }
}

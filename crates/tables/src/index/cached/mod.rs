//! An index with a database cache in front of it (dbx-tc §3.3): new records stay in a small place until they are written
//! back to the index proper, the *main index*.
//!
//! A transaction that is one hardware transaction from its first operation to its last change has few cache lines to spare, and
//! loses when another thread wants one of them. An insertion into a tree or a large hash table writes several lines
//! there, which hold other keys, too. Into a cache it writes two. The rest is done afterwards, outside of the hardware transaction.
//!
//! # Buckets
//!
//! A cache is a fixed array of [buckets](bucket), each with a version, which is also its latch, and slots for a few records. A
//! key's bucket follows from the *head* of its image (its first 64 bits) without the last few bits, of which the table's maker says
//! how many: keys that differ only there are in one bucket. So the lines of one order are in one bucket, those of orders made at the
//! same time in others, and a scan of few orders looks at few buckets.
//!
//! Nothing here grows, so nothing is ever retired. If a bucket is full, a record goes to the main index at once.
//!
//! # The version stands for the keys
//!
//! In an index without a cache, the version of a bucket or leaf tells of every key that comes or goes there. Here the version of the
//! cache's bucket tells of every key *of the bucket*, whether its record is in the bucket or in the main index:
//!
//! 1. An insertion reads the version, looks for the key in both places, and latches the bucket at that version. Then it puts the
//!    record into the bucket, or into the main index if the bucket is full, before it releases the latch with a new version.
//! 2. A removal from the bucket does the same. A removal from the main index first changes the version, and then removes.
//!
//! So transactions observe nothing but buckets of the cache, and versions in the main index concern nobody beside itself. By 1, of two
//! insertions of one key the second finds the bucket at another version than it has read, and looks again.
//!
//! # Write-back
//!
//! The thread that writes a record back holds the bucket's latch. It takes the record out of its slot, inserts it
//! into the main index, and releases the latch with a new version. So:
//!
//! 3. A record is in one of the two places, except for a time in which the bucket is latched. It never comes back from the main
//!    index into the bucket.
//!
//! A lookup notes the version, looks into the bucket, then into the main index, and finds the key absent only if the version is
//! unchanged. If the record was in its slot when the lookup came there, it is found there. If it was in the main index, it is found there.
//! If it was written back in between, the version has changed. A record that was found was in the index at some moment of the
//! lookup, and needs no check. The same holds for a removal, which looks for its record in both places.
//!
//! A record may be written back at any time, whether its transaction has committed or not: it is its state that says whether
//! there is a row. It is done after the commit by those who insert (`Shared::write_back`), for all records of the bucket.
//!
//! # Scans
//!
//! A [scan](scan) copies the buckets of its range, then reads a leaf of the main index, and merges the two. It has observed the buckets at
//! the versions of the copies. If these are unchanged, no key has come or gone, and each record was found: if it was not in the
//! copy, then it was in the main index before. A record that was written back in between is found twice, and delivered once.
//!
//! A transaction whose bucket has changed may [look again](part) at what it has observed, as it does with a part of a leaf.
//!
//! # Users' code
//!
//! Keys are compared and images made while a bucket is latched, when a record goes to the main index. A panic there releases the latch, and
//! the record stays where it was. Such code must not use the table, as everywhere.
//!
//! # Deviations from the paper
//!
//! - Its lookups look into the cache and then into the table; whether insertions look for their key in the table, it does not say. Here
//!   they do, because keys are unique. So they read the path to the leaf that will hold the key, and the leaf, but write to none.
//! - It writes back in hardware transactions of their own; here it is done under latches.

mod bucket;
mod main_index;
#[cfg(all(test, loom))]
mod models;
mod part;
mod scan;
#[cfg(all(test, not(loom)))]
mod tests;

pub(crate) use main_index::MainIndex;
pub(crate) use part::CachedPart;
pub(crate) use scan::CachedCursor;

use super::interleaving::{interleaving_point, undisturbed};
use super::tagged::Entry;
use super::{Insertion, Keyed, Lookup, sort};
use crate::key::{Image, ImageOf, Key};
use bucket::{Bucket, Latched};
use hotrow_core::epoch::Guard;
use hotrow_core::{Observed, Pin, StructureChange, StructureVersion, WatchedNodes};
use std::hash::Hash;
use std::ops::Bound;
use std::ptr::NonNull;

/// The number of buckets: a power of two. Transactions that run at the same time seldom meet in one of so many; a scan of all keys
/// reads them all.
const BUCKETS: usize = if cfg!(loom) {
    1
} else if cfg!(test) {
    4
} else {
    256
};

/// An index with a cache in front of it.
pub(crate) struct CachedIndex<T>
where
    T: Keyed,
    T::Key: Key,
{
    buckets: Box<[Bucket<T>]>,
    /// The number of last bits of the heads of images that do not count.
    tail_bits: u32,
    main: MainIndex<T>,
}

impl<T> CachedIndex<T>
where
    T: Keyed,
    T::Key: Key,
{
    /// A cache in front of an empty index. Keys whose images' first 64 bits differ in the last `tail_bits` only have one bucket.
    pub(crate) fn new(main: MainIndex<T>, tail_bits: u32) -> Self {
        Self { buckets: (0..BUCKETS).map(Bucket::new).collect(), tail_bits, main }
    }

    /// The index behind the cache.
    pub(crate) fn main(&self) -> &MainIndex<T> {
        &self.main
    }

    /// Has those told that wait for a change of a bucket or leaf of the main index.
    pub(crate) fn set_watched(&mut self, watched: WatchedNodes) {
        self.main.set_watched(watched);
    }

    /// The number of a key's group: keys of one group have one bucket. A greater key has no lesser group.
    fn group(&self, head: u64) -> u64 {
        head.checked_shr(self.tail_bits).unwrap_or(0)
    }

    /// The position of a group's bucket. Neighbours are apart, so that groups in use at the same time are, too.
    fn position_of(group: u64) -> usize {
        (mixed(group) >> 32) as usize % BUCKETS
    }

    /// The bucket and the tag of an image.
    #[inline]
    fn place(&self, image: &ImageOf<'_, T::Key>) -> (&Bucket<T>, usize) {
        let head = <T::Key as Key>::Image::head(image);
        (&self.buckets[Self::position_of(self.group(head))], usize::from((mixed(head) >> 16) as u16).max(1))
    }

    /// The buckets that may have keys between two bounds.
    fn buckets_of(
        &self,
        low: &Bound<ImageOf<'_, T::Key>>,
        high: &Bound<ImageOf<'_, T::Key>>,
    ) -> Vec<&Bucket<T>> {
        let (first, last) = (self.group_of_bound(low, 0), self.group_of_bound(high, u64::MAX));
        if last.saturating_sub(first) >= BUCKETS as u64 {
            return self.buckets.iter().collect();
        }
        let mut positions: Vec<_> = (first..=last).map(Self::position_of).collect();
        positions.sort_unstable();
        positions.dedup();
        positions.into_iter().map(|at| &self.buckets[at]).collect()
    }

    fn group_of_bound(&self, bound: &Bound<ImageOf<'_, T::Key>>, unbounded: u64) -> u64 {
        self.group(match bound {
            Bound::Included(image) | Bound::Excluded(image) => <T::Key as Key>::Image::head(image),
            Bound::Unbounded => unbounded,
        })
    }

    /// The bucket that stands for a key's absence.
    pub(crate) fn node_of(&self, key: &T::Key) -> Observed {
        let (bucket, _) = self.place(&key.image());
        bucket.observed(bucket.stable())
    }

    /// Looks up the key that has an image, and for which `is_wanted` is true; `key` has its hash.
    #[inline]
    pub(crate) fn get(
        &self,
        key: &(impl Hash + ?Sized),
        image: &ImageOf<'_, T::Key>,
        is_wanted: impl Fn(&T) -> bool + Copy,
        guard: &Guard,
    ) -> Lookup<T> {
        let (bucket, tag) = self.place(image);
        loop {
            let version = bucket.stable();
            interleaving_point();
            // SAFETY: a record found in a bucket under a pinned epoch has not been freed (`insert`'s contract).
            if let Some(record) = bucket.find(tag, |record| is_wanted(unsafe { record.as_ref() })) {
                return Lookup::Found(record);
            }
            interleaving_point();
            if let Some(record) = self.main.get(key, image, is_wanted, guard) {
                return Lookup::Found(record);
            }
            interleaving_point();
            if bucket.version.unchanged(version) {
                return Lookup::Absent(bucket.observed(version));
            }
        }
    }

    /// Adds a record under its key, unless there is one with this key.
    ///
    /// Calls `changed` with the bucket's change after the latch is released.
    ///
    /// # Safety
    ///
    /// The record is valid, and is freed only through the epoch after its removal. The index is reached under the pin, does
    /// not move, and is freed through the epoch.
    #[inline(never)]
    pub(crate) unsafe fn insert(
        &self,
        record: NonNull<T>,
        pin: &Pin,
        changed: &mut dyn FnMut(StructureChange),
    ) -> Insertion<T> {
        // SAFETY: the caller's promise.
        let new = unsafe { record.as_ref() };
        let (key, image) = (new.key(), new.image());
        let (bucket, tag) = self.place(&image);
        let entry = Entry::new(record, tag);
        loop {
            let observed = match self.get(key, &image, |other: &T| other.key() == key, pin.guard()) {
                Lookup::Found(existing) => return Insertion::Exists(existing),
                Lookup::Absent(observed) => observed,
            };
            interleaving_point();
            // At the version at which the key was absent: every insertion of a key of this bucket changes the version.
            let Some(latched) = bucket.latch_at(observed.version) else { continue };
            if !latched.push(&entry)
                // SAFETY: the caller's promise.
                && let Some(existing) = undisturbed(|| unsafe { self.main.insert(record, pin) })
            {
                return Insertion::Exists(existing);
            }
            changed(bumped(bucket, latched));
            return Insertion::Inserted;
        }
    }

    /// Writes back the records in a bucket: that of this record, which was inserted.
    ///
    /// # Safety
    ///
    /// The index is reached under the pin, does not move, and is freed through the epoch. The record is in memory.
    #[inline(never)]
    pub(crate) unsafe fn write_back(&self, record: NonNull<T>, pin: &Pin) {
        // SAFETY: the caller's promise.
        let (bucket, _) = self.place(&unsafe { record.as_ref() }.image());
        let mut records: Vec<_> = bucket.records().map(NonNull::cast).collect();
        // In the order of keys, so that each insertion into a tree finds its place behind the last one.
        sort(&mut records, &|one, other| {
            // SAFETY: found in a bucket under the pin, as in `get`.
            let image_of = |record: NonNull<()>| unsafe { record.cast::<T>().as_ref() }.image();
            <T::Key as Key>::Image::compare(&image_of(one), &image_of(other))
        });
        for record in records.into_iter().map(NonNull::cast) {
            let latched = bucket.latch();
            let Some(entry) = latched.take(record) else { continue };
            let mut moving = Moving { latched: Some(latched), entry: Some(entry) };
            // SAFETY: it was in its slot, so it is in memory as long as the pin; the rest is the caller's promise.
            if undisturbed(|| unsafe { self.main.insert(record, pin) }).is_none() {
                moving.entry = None;
            }
        }
    }

    /// Removes exactly this record. False if the index does not hold it. `was_present`: some commit had made the record
    /// present, so others may have seen it.
    ///
    /// Calls `changed` with the bucket's change after the latch is released.
    #[inline(never)]
    pub(crate) fn remove(
        &self,
        record: NonNull<T>,
        was_present: bool,
        guard: &Guard,
        changed: &mut dyn FnMut(StructureChange),
    ) -> bool {
        // SAFETY: the caller has the record, so it is in memory.
        let (bucket, _) = self.place(&unsafe { record.as_ref() }.image());
        loop {
            let version = bucket.stable();
            interleaving_point();
            if bucket.holds(record) {
                let latched = bucket.latch();
                if latched.take(record).is_none() {
                    continue;
                }
                if was_present {
                    latched.count_removal();
                }
                changed(bumped(bucket, latched));
                return true;
            }
            interleaving_point();
            if bucket.version.unchanged(version) {
                break;
            }
        }
        // It is in the main index, or nowhere any more.
        if was_present {
            let latched = bucket.latch();
            latched.count_removal();
            changed(bumped(bucket, latched));
        }
        interleaving_point();
        self.main.remove(record, guard)
    }

    /// Returns the records in the cache. A record that has been in the index since before the call, and is not among them, is in
    /// the main index when it returns.
    pub(crate) fn cached_records(&self, _guard: &Guard) -> Vec<NonNull<T>> {
        let mut all = Vec::new();
        for bucket in &self.buckets {
            copy_of(bucket, &mut all);
        }
        all
    }

    /// Returns any record in an observed bucket, by which to describe it. `None` if the bucket is empty.
    ///
    /// # Safety
    ///
    /// The node is a bucket of this index.
    pub(crate) unsafe fn record_at(
        &self,
        node: NonNull<StructureVersion>,
        _guard: &Guard,
    ) -> Option<NonNull<T>> {
        // SAFETY: the bucket is in memory as long as the index, and an observation leads to all of it.
        unsafe { node.cast::<Bucket<T>>().as_ref() }.records().next()
    }

    /// Bytes of memory that cache and index take, without records.
    pub(crate) fn memory_bytes(&self) -> usize {
        size_of::<Self>() + size_of_val(&*self.buckets) + self.main.memory_bytes()
    }

    /// Removes all records and passes each to `visit`, for the owner to free.
    pub(crate) fn drain(&mut self, visit: &mut dyn FnMut(NonNull<T>)) {
        for bucket in &mut self.buckets {
            bucket.drain().for_each(&mut *visit);
        }
        self.main.drain(visit);
    }
}

/// Adds the records of a bucket at one version, which it returns.
fn copy_of<T>(bucket: &Bucket<T>, records: &mut Vec<NonNull<T>>) -> u64 {
    let before = records.len();
    loop {
        let version = bucket.stable();
        interleaving_point();
        records.extend(bucket.records());
        if bucket.version.unchanged(version) {
            return version;
        }
        records.truncate(before);
    }
}

/// Releases a latch after a change.
fn bumped<T>(bucket: &Bucket<T>, latched: Latched<'_, T>) -> StructureChange {
    let before = latched.before;
    let after = latched.release_changed();
    StructureChange::Bumped { node: bucket.observed(after).node, before, after }
}

/// Mixes a number's bits.
fn mixed(number: u64) -> u64 {
    // Multiplication carries bits up only, so those above come down before.
    (number ^ number >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// A record on its way into the main index. A drop puts it back unless it has arrived, and releases the latch.
struct Moving<'b, T> {
    latched: Option<Latched<'b, T>>,
    entry: Option<Entry<T>>,
}

impl<T> Drop for Moving<'_, T> {
    fn drop(&mut self) {
        if let Some(latched) = self.latched.take() {
            if let Some(entry) = &self.entry {
                let is_back = latched.push(entry);
                debug_assert!(is_back, "its slot is free");
            }
            latched.release_changed();
        }
    }
}

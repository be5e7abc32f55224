//! An array of buckets, and the memory it lies in.

use super::bucket::{Bucket, free_chain};
use super::hashing::Hash64;
use crossbeam_utils::CachePadded;
use hotrow_sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::{NonNull, null_mut};

/// The number of counters over which the count of overflow buckets is spread.
const SHARDS: usize = 8;

/// An array of buckets. While entries migrate to it from a smaller array, it also links to that array.
pub(super) struct Array<T> {
    first: NonNull<Bucket<T>>,
    len: usize,
    allocation: NonNull<u8>,
    layout: Layout,
    /// The array of half the size, until all its buckets have been migrated; then null.
    pub(super) parent: AtomicPtr<Array<T>>,
    /// The array twice as large, once the index has begun to grow; else null.
    pub(super) child: AtomicPtr<Array<T>>,
    /// The next bucket of the parent that an insertion helps to migrate.
    pub(super) next_to_migrate: CachePadded<AtomicUsize>,
    /// The number of buckets of the parent that have been migrated.
    pub(super) migrated: CachePadded<AtomicUsize>,
    /// The number of overflow buckets; each shard counts those of every eighth bucket.
    overflows: [CachePadded<AtomicUsize>; SHARDS],
}

// SAFETY: an array is plain memory that any thread may free, and the records it points to may be shared and
// sent (`T: Send + Sync`).
unsafe impl<T: Send + Sync> Send for Array<T> {}
// SAFETY: all shared changes go through atomic words. For the records, see above.
unsafe impl<T: Send + Sync> Sync for Array<T> {}

impl<T> Array<T> {
    /// An array of `len` buckets, none of them ready, that will take over the entries of `parent`.
    ///
    /// The constructor does not write to a large array. The operating system delivers its zeroed pages one by one on
    /// later use, so that no insertion has to wait for all of them.
    pub(super) fn unready(len: usize, parent: *mut Array<T>) -> Self {
        // The allocator zeroes an over-aligned block by writing all of it, but takes a normally aligned
        // one fresh from the system. Hence the alignment by hand.
        let bytes = (len + 1).checked_mul(size_of::<Bucket<T>>()).expect("an array beyond the address space");
        let layout =
            Layout::from_size_align(bytes, align_of::<u128>()).expect("an array beyond the address space");
        // SAFETY: the layout's size is not zero.
        let Some(allocation) = NonNull::new(unsafe { alloc_zeroed(layout) }) else {
            handle_alloc_error(layout)
        };
        let skip = allocation.align_offset(align_of::<Bucket<T>>());
        // The all-zero bucket is valid only as long as a bucket consists of exactly these words.
        #[cfg(not(loom))]
        const {
            assert!(size_of::<Bucket<T>>() == 64 && align_of::<Bucket<T>>() == 64)
        };
        // SAFETY: less than one bucket is skipped, and the block is one bucket longer than the array.
        let first = unsafe { allocation.add(skip) }.cast();
        // In a model, atomic words hold more than their values, so zeroed memory is not enough.
        #[cfg(loom)]
        for at in 0..len {
            // SAFETY: the block holds `len` buckets from `first` on, and no other thread has it yet.
            unsafe { first.add(at).write(Bucket::unready()) };
        }
        Self {
            first,
            len,
            allocation,
            layout,
            parent: AtomicPtr::new(parent),
            child: AtomicPtr::new(null_mut()),
            next_to_migrate: CachePadded::default(),
            migrated: CachePadded::default(),
            overflows: Default::default(),
        }
    }

    /// An array of `len` empty, ready buckets.
    pub(super) fn ready(len: usize) -> Self {
        let array = Self::unready(len, null_mut());
        for (at, bucket) in array.buckets().iter().enumerate() {
            bucket.version.set_number(at);
            bucket.make_ready();
        }
        array
    }

    #[inline(always)]
    pub(super) fn buckets(&self) -> &[Bucket<T>] {
        // SAFETY: the block holds `len` buckets from `first` on; the all-zero bucket is valid.
        unsafe { std::slice::from_raw_parts(self.first.as_ptr(), self.len) }
    }

    fn buckets_mut(&mut self) -> &mut [Bucket<T>] {
        // SAFETY: as above, and only the caller has the array.
        unsafe { std::slice::from_raw_parts_mut(self.first.as_ptr(), self.len) }
    }

    /// The position of the bucket that `hash` belongs in.
    #[inline(always)]
    pub(super) fn position(&self, hash: Hash64) -> usize {
        hash.bucket(self.len)
    }

    /// Counts an overflow bucket added to bucket `at`. True if the array is now so full that it should grow.
    pub(super) fn overflow_added(&self, at: usize) -> bool {
        // Relaxed: a statistic. It never falls below zero, as both sides run under the bucket's latch.
        let shard = self.overflows[at % SHARDS].fetch_add(1, Ordering::Relaxed) + 1;
        // A quarter as many overflow buckets as buckets: about five entries in each, for evenly spread keys.
        shard > 1 + self.len / (4 * SHARDS)
    }

    /// Subtracts `count` overflow buckets removed from bucket `at`.
    pub(super) fn overflows_removed(&self, at: usize, count: usize) {
        self.overflows[at % SHARDS].fetch_sub(count, Ordering::Relaxed);
    }

    pub(super) fn memory_bytes(&self) -> usize {
        let overflows: usize = self.overflows.iter().map(|shard| shard.load(Ordering::Relaxed)).sum();
        size_of::<Self>() + self.layout.size() + overflows * size_of::<Bucket<T>>()
    }

    /// Removes all entries from the buckets that hold them now (not from their children).
    pub(super) fn drain(&mut self, visit: &mut dyn FnMut(NonNull<T>)) {
        for at in 0..self.len {
            let bucket = &mut self.buckets_mut()[at];
            // A retired bucket's entries have moved on.
            if bucket.version.stable().is_none() {
                continue;
            }
            bucket.for_each(&mut *visit);
            bucket.clear();
            let overflows = bucket.overflows();
            if let Some(chain) = bucket.take_overflow() {
                // SAFETY: just taken out of the bucket, and no other thread has the array.
                unsafe { free_chain(chain) };
            }
            self.overflows_removed(at, overflows);
        }
    }
}

impl<T> Drop for Array<T> {
    fn drop(&mut self) {
        for bucket in self.buckets() {
            if let Some(chain) = bucket.take_overflow() {
                // SAFETY: just taken out of the bucket, and only the dropping thread still has the array.
                unsafe { free_chain(chain) };
            }
        }
        // SAFETY: allocated in `unready` with this layout. Buckets have nothing to drop.
        unsafe { dealloc(self.allocation.as_ptr(), self.layout) };
    }
}

//! Asking the processor for rows ahead of their being looked up.
//!
//! A lookup waits for two cache lines one after the other: the bucket's, then the record's. Who knows several
//! keys beforehand can have all the buckets fetched at once, then all the records, and wait for two lines in
//! all instead of two for each key.

use super::HashIndex;
use super::bucket::Bucket;
use super::hashing::Hash64;
use crate::index::Keyed;
use crate::index::prefetch::prefetch;
use hotrow_core::StructureVersion;
use hotrow_core::epoch::Guard;
use std::hash::Hash;
use std::ptr::NonNull;

/// Bytes of a record that are asked for: what a processor can have under way without stalling, about.
const RECORD_BYTES_MAX: usize = 512;

impl<T> HashIndex<T>
where
    T: Keyed,
    T::Key: Hash + Eq,
{
    /// Some record of an observed bucket, if there is one: for saying where the bucket is.
    ///
    /// # Safety
    ///
    /// `node` is of a bucket of this index, observed under the guard.
    pub(crate) unsafe fn record_at(
        &self,
        node: NonNull<StructureVersion>,
        _guard: &Guard,
    ) -> Option<NonNull<T>> {
        // SAFETY: the caller's promise.
        unsafe { Bucket::record_at(node) }
    }

    /// Asks for a key's bucket.
    #[inline]
    pub(crate) fn prefetch_bucket(&self, key: &T::Key, guard: &Guard) {
        let array = self.current(guard);
        prefetch(&raw const array.buckets()[array.position(Hash64::of(key))]);
    }

    /// Asks for the record that probably is a key's. Looks into the bucket, so that should be there already.
    #[inline]
    pub(crate) fn prefetch_record(&self, key: &T::Key, guard: &Guard) {
        let array = self.current(guard);
        let hash = Hash64::of(key);
        let bucket = &array.buckets()[array.position(hash)];
        // The first record whose tag fits, its key unseen: seeing it would be the wait that is to be saved.
        if let Some(record) = bucket.find(hash, |_| true, guard) {
            let first = record.as_ptr().cast::<u8>();
            for offset in (0..size_of::<T>().min(RECORD_BYTES_MAX)).step_by(64) {
                prefetch(first.wrapping_add(offset));
            }
        }
    }
}

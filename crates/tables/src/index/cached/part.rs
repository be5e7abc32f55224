//! Looking again at a part of a cached index whose bucket has changed.
//!
//! A transaction that has observed a bucket keeps what it saw of the bucket's keys between two bounds ([`CachedPart`]). It may look
//! again when the version differs. As with [parts of leaves](crate::index::LeafPart), a second look must find that no key has come
//! or gone there that any commit had made present. So it must find
//!
//! 1. the same records, in the bucket and in the main index together, of those that count. A record that was written back is the same;
//! 2. the same number of removals. Every removal of a record of the bucket that some commit had made present is counted, also one
//!    from the main index, and before it is removed.
//!
//! A record that has come since the observation, and that any commit has made present, is found or counted. One that has gone is
//! missing. The look counts only if the bucket does not change meanwhile. A scan reads a leaf later than the bucket whose version it
//! observes. It keeps of that part what it saw in the leaf: the fact that holds from then on.

use super::bucket::Bucket;
use super::{CachedIndex, MainIndex, copy_of};
use crate::index::{Direction, Keyed};
use crate::key::{Image, Key};
use hotrow_core::Observed;
use hotrow_core::epoch::Guard;
use std::ops::Bound;
use std::ptr::NonNull;

/// The number of times that a bucket is read again because it changes meanwhile.
const LOOKS_MAX: u32 = 4;

/// A part of a bucket's keys, as a transaction has observed it.
#[derive(Debug)]
pub(crate) struct CachedPart<I: Image, T> {
    low: Bound<I::Kept>,
    high: Bound<I::Kept>,
    direction: Direction,
    bucket: NonNull<()>,
    removals: u64,
    /// The bucket's records within the bounds, in this direction, wherever they are.
    records: NonNull<[NonNull<T>]>,
}

impl<I: Image, T> Clone for CachedPart<I, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<I: Image, T> Copy for CachedPart<I, T> {}

impl<I: Image, T> CachedPart<I, T> {
    /// `removals` were counted in the observed bucket at the version observed.
    pub(crate) fn new(
        (low, high): (Bound<I::Kept>, Bound<I::Kept>),
        direction: Direction,
        observed: Observed,
        removals: u64,
        records: NonNull<[NonNull<T>]>,
    ) -> Self {
        Self { low, high, direction, bucket: observed.node.cast(), removals, records }
    }

    /// The bounds of the keys.
    pub(crate) fn bounds(&self) -> (Bound<I::Kept>, Bound<I::Kept>) {
        (self.low, self.high)
    }
}

impl<T> CachedIndex<T>
where
    T: Keyed,
    T::Key: Key,
{
    /// Returns the number of removals in an observed bucket at the version observed; `None` if it has changed, or if the main index
    /// has no order, so that nobody can look again.
    ///
    /// # Safety
    ///
    /// The node is a bucket of this index, which was observed.
    pub(crate) unsafe fn removals(&self, observed: Observed) -> Option<u64> {
        if matches!(self.main, MainIndex::Hash(_)) {
            return None;
        }
        // SAFETY: the bucket is in memory as long as the index, and an observation leads to all of it.
        let bucket = unsafe { observed.node.cast::<Bucket<T>>().as_ref() };
        let removals = bucket.removals();
        bucket.version.unchanged(observed.version).then_some(removals)
    }

    /// Looks again at a part. True if no key has come or gone there since it was observed, of records that count: those that are
    /// not `void`. A record that is void stays so.
    ///
    /// # Safety
    ///
    /// The part was observed in this index since the guard was pinned, and its records and what its bounds keep are still
    /// in memory.
    pub(crate) unsafe fn still_holds(
        &self,
        part: &CachedPart<<T::Key as Key>::Image, T>,
        is_void: &dyn Fn(NonNull<T>) -> bool,
        guard: &Guard,
    ) -> bool {
        // SAFETY: the bucket is in memory as long as the index.
        let bucket = unsafe { part.bucket.cast::<Bucket<T>>().as_ref() };
        (0..LOOKS_MAX)
            // SAFETY: the caller's promise.
            .find_map(|_| unsafe { self.holds_at_one_version(part, bucket, is_void, guard) })
            .unwrap_or(false)
    }

    /// As [`still_holds`](Self::still_holds); `None` if the bucket has changed meanwhile.
    ///
    /// # Safety
    ///
    /// As for `still_holds`; the bucket is the part's.
    unsafe fn holds_at_one_version(
        &self,
        part: &CachedPart<<T::Key as Key>::Image, T>,
        bucket: &Bucket<T>,
        is_void: &dyn Fn(NonNull<T>) -> bool,
        guard: &Guard,
    ) -> Option<bool> {
        // SAFETY: the caller's promise.
        let before = unsafe { part.records.as_ref() };
        let mut before = before.iter().filter(|record| !is_void(**record));
        // SAFETY: the caller's promise.
        let image = |kept| unsafe { <T::Key as Key>::Image::kept(kept) };
        let (low, high) = (part.low.map(image), part.high.map(image));
        let mut copied = Vec::new();
        let version = copy_of(bucket, &mut copied);
        // SAFETY: this index's bucket.
        if unsafe { self.removals(bucket.observed(version)) }? != part.removals {
            return Some(false);
        }
        let mut cursor = self.cursor_with(vec![(bucket, version, copied)], low, high, part.direction)?;
        while let Some(found) = cursor.next_unrefreshed(guard) {
            let is_same = |record: &NonNull<T>| {
                // SAFETY: found in the index under the guard.
                let (of, _) = self.place(&unsafe { record.as_ref() }.image());
                !std::ptr::eq(of, bucket) || is_void(*record) || before.next() == Some(record)
            };
            if !found.records.iter().all(is_same) {
                return Some(false);
            }
        }
        // A removal from the main index is counted before it is made. So whatever is missing above, and has not been
        // counted, has been there at no time since the observation.
        bucket.version.unchanged(version).then_some(before.next().is_none())
    }
}

//! Scans of a cached index whose main index is ordered: a cursor over the leaves of the main index, with what the cache has in between.

use super::bucket::Bucket;
use super::{CachedIndex, MainIndex, copy_of};
use crate::index::ordered::CursorPosition;
use crate::index::{Cursor, Direction, Keyed};
use crate::key::{Image, ImageOf, Key};
use hotrow_core::epoch::Guard;
use hotrow_core::{Observed, StructureVersion};
use std::cmp::Ordering;
use std::ops::Bound;
use std::ptr::NonNull;

/// A version that no bucket has: it must be copied.
const NOT_COPIED: u64 = u64::MAX;

/// The images between which a scan goes.
type Bounds<'k, T> = (Bound<ImageOf<'k, <T as Keyed>::Key>>, Bound<ImageOf<'k, <T as Keyed>::Key>>);

/// A bucket, and its records at a version.
struct Copied<'i, T> {
    bucket: &'i Bucket<T>,
    version: u64,
    records: Vec<NonNull<T>>,
}

/// A scan under way. See [`CachedIndex::cursor`].
pub(crate) struct CachedCursor<'i, 'k, T>
where
    T: Keyed,
    T::Key: Key,
{
    index: &'i CachedIndex<T>,
    main: Cursor<'i, 'k, T>,
    /// The position before the last step.
    before: CursorPosition<ImageOf<'k, T::Key>>,
    direction: Direction,
    copies: Vec<Copied<'i, T>>,
    /// The records of the last step.
    records: Vec<NonNull<T>>,
}

/// One step of a scan: the range of a leaf of the main index.
pub(crate) struct ScannedPart<'c, 'k, T>
where
    T: Keyed,
    T::Key: Key,
{
    /// The records in the step's range, in the scan's direction.
    pub(crate) records: &'c [NonNull<T>],
    /// The part of the scan's range that the step covers.
    pub(crate) bounds: Bounds<'k, T>,
    buckets: Buckets<'c, T>,
}

/// The buckets of a scan.
pub(crate) struct Buckets<'c, T>
where
    T: Keyed,
    T::Key: Key,
{
    index: &'c CachedIndex<T>,
    copies: &'c [Copied<'c, T>],
}

impl<T> Clone for Buckets<'_, T>
where
    T: Keyed,
    T::Key: Key,
{
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Buckets<'_, T>
where
    T: Keyed,
    T::Key: Key,
{
}

impl<T> CachedIndex<T>
where
    T: Keyed,
    T::Key: Key,
{
    /// Begins a scan of the images between two bounds. It reads nothing yet. `None` if the main index has no order.
    pub(crate) fn cursor<'k>(
        &self,
        low: Bound<ImageOf<'k, T::Key>>,
        high: Bound<ImageOf<'k, T::Key>>,
        direction: Direction,
    ) -> Option<CachedCursor<'_, 'k, T>> {
        let buckets = self.buckets_of(&low, &high);
        let copies = buckets.into_iter().map(|bucket| (bucket, NOT_COPIED, Vec::new())).collect();
        self.cursor_with(copies, low, high, direction)
    }

    /// As [`cursor`](Self::cursor), with these buckets and what they have at these versions.
    pub(super) fn cursor_with<'i, 'k>(
        &'i self,
        copies: Vec<(&'i Bucket<T>, u64, Vec<NonNull<T>>)>,
        low: Bound<ImageOf<'k, T::Key>>,
        high: Bound<ImageOf<'k, T::Key>>,
        direction: Direction,
    ) -> Option<CachedCursor<'i, 'k, T>> {
        let MainIndex::Ordered(index) = &self.main else { return None };
        let main = index.cursor(low, high, direction);
        let copies = copies.into_iter().map(|(bucket, version, records)| Copied { bucket, version, records });
        Some(CachedCursor {
            index: self,
            before: main.position(),
            main,
            direction,
            copies: copies.collect(),
            records: Vec::new(),
        })
    }
}

impl<'k, T> CachedCursor<'_, 'k, T>
where
    T: Keyed,
    T::Key: Key,
{
    /// Returns the next part of the range; `None` when the range has been covered.
    pub(crate) fn next(&mut self, guard: &Guard) -> Option<ScannedPart<'_, 'k, T>> {
        // Before the leaf is read: what is written back afterwards is in the copy, and what was written back before is in the leaf.
        for Copied { bucket, version, records } in &mut self.copies {
            if *version == NOT_COPIED || !bucket.version.unchanged(*version) {
                records.clear();
                *version = copy_of(*bucket, records);
            }
        }
        self.next_unrefreshed(guard)
    }

    /// As [`next`](Self::next), with what is known of the buckets.
    #[inline(never)]
    pub(crate) fn next_unrefreshed(&mut self, guard: &Guard) -> Option<ScannedPart<'_, 'k, T>> {
        self.before = self.main.position();
        let leaf = self.main.next(guard)?;
        self.records.clear();
        self.records.extend_from_slice(leaf.records);
        let bounds = leaf.bounds;
        let compare = |one: &ImageOf<'_, T::Key>, other: &ImageOf<'_, T::Key>| {
            let order = <T::Key as Key>::Image::compare(one, other);
            if self.direction == Direction::Ascending { order } else { order.reverse() }
        };
        // SAFETY: found in the index under the guard.
        let image_of = |record: NonNull<T>| unsafe { record.as_ref() }.image();
        for &record in self.copies.iter().flat_map(|copied| &copied.records) {
            let image = image_of(record);
            if !is_within::<<T::Key as Key>::Image>(&image, &bounds.0, &bounds.1) {
                continue;
            }
            let at = self.records.partition_point(|other| compare(&image_of(*other), &image).is_lt());
            // It may be there, because it was written back.
            if self.records.get(at) != Some(&record) {
                self.records.insert(at, record);
            }
        }
        let buckets = Buckets { index: self.index, copies: &self.copies };
        Some(ScannedPart { records: &self.records, bounds, buckets })
    }

    /// Returns to the position before the last step.
    pub(crate) fn go_back(&mut self) {
        let position = std::mem::replace(&mut self.before, self.main.position());
        self.main.go_back(position);
    }
}

impl<'c, T> ScannedPart<'c, '_, T>
where
    T: Keyed,
    T::Key: Key,
{
    /// The buckets that may have keys of the range.
    pub(crate) fn buckets(&self) -> Buckets<'c, T> {
        self.buckets
    }
}

impl<'c, T> Buckets<'c, T>
where
    T: Keyed,
    T::Key: Key,
{
    /// The number of buckets.
    pub(crate) fn len(self) -> usize {
        self.copies.len()
    }

    /// True if all are still as they were read: then the leaf, which was read later, was so at the same moment.
    pub(crate) fn are_unchanged(self) -> bool {
        self.copies.iter().all(|Copied { bucket, version, .. }| bucket.version.unchanged(*version))
    }

    /// The buckets at the versions at which they were read.
    pub(crate) fn observed(self) -> impl Iterator<Item = Observed> + use<'c, T> {
        self.copies.iter().map(|Copied { bucket, version, .. }| bucket.observed(*version))
    }

    /// The buckets to which records belong, as observations name them.
    pub(crate) fn nodes_of(self, records: &[NonNull<T>]) -> Vec<NonNull<StructureVersion>> {
        let node_of = |record: &NonNull<T>| {
            // SAFETY: found by the scan under the guard, which is still pinned.
            let (bucket, _) = self.index.place(&unsafe { record.as_ref() }.image());
            bucket.observed(0).node
        };
        records.iter().map(node_of).collect()
    }

    /// The records among these that belong to a bucket. `nodes` are [those of all](Self::nodes_of).
    pub(crate) fn records_of(
        self,
        observed: Observed,
        records: &[NonNull<T>],
        nodes: &[NonNull<StructureVersion>],
    ) -> Vec<NonNull<T>> {
        let of_bucket = records.iter().zip(nodes).filter(|(_, node)| **node == observed.node);
        of_bucket.map(|(record, _)| *record).collect()
    }
}

/// True if an image is between two bounds.
fn is_within<I: Image>(image: &I::Of<'_>, low: &Bound<I::Of<'_>>, high: &Bound<I::Of<'_>>) -> bool {
    let is_above = match low {
        Bound::Included(low) => I::compare(image, low) != Ordering::Less,
        Bound::Excluded(low) => I::compare(image, low) == Ordering::Greater,
        Bound::Unbounded => true,
    };
    is_above
        && match high {
            Bound::Included(high) => I::compare(image, high) != Ordering::Greater,
            Bound::Excluded(high) => I::compare(image, high) == Ordering::Less,
            Bound::Unbounded => true,
        }
}

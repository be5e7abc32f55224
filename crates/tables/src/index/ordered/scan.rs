//! Scans: a cursor that moves from leaf to leaf.
//!
//! There are no pointers between leaves. The descent to a leaf gives the leaf's range, and the cursor finds the next
//! leaf by another descent to the end of that range. So the leaves delivered cover the range without a gap, whatever
//! happens between two steps. If a delivered leaf has changed since, its version shows it.

use super::inner::Inner;
use super::leaf::Leaf;
use super::node::LEAF_ENTRIES;
use super::{ImageOf, Keyed, Landing, OrderedIndex, Probe};
use crate::index::interleaving::interleaving_point;
use crate::key::{Image, Key};
use hotrow_core::Observed;
use hotrow_core::epoch::Guard;
use hotrow_sync::prefetch::prefetch;
use std::cmp::Ordering;
use std::ops::Bound;
use std::ptr::NonNull;

/// The number of records of a leaf that the cursor prefetches before they are read.
const PREFETCHED: usize = 4;

/// The direction of a scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From the low bound up.
    Ascending,
    /// From the high bound down.
    Descending,
}

/// A scan under way. See [`OrderedIndex::cursor`].
pub(crate) struct Cursor<'i, 'k, T>
where
    T: Keyed,
    T::Key: Key,
{
    index: &'i OrderedIndex<T>,
    /// The rest of the range.
    low: Bound<Probe<'k, T>>,
    high: Bound<Probe<'k, T>>,
    direction: Direction,
    done: bool,
    /// The records of the last leaf delivered. Only the first ones, up to its count, are valid; these are not null.
    records: [*mut T; LEAF_ENTRIES],
}

/// The rest of a scan, to which a cursor can return.
pub(crate) struct CursorPosition<I> {
    low: Bound<I>,
    high: Bound<I>,
    done: bool,
}

/// One leaf of a scan, in the state of one moment.
pub(crate) struct ScannedLeaf<'c, 'k, T>
where
    T: Keyed,
    T::Key: Key,
{
    /// The leaf and its version. It is delivered even if no record of the leaf is in the scan's range, because its
    /// version then covers their absence.
    pub(crate) observed: Observed,
    /// The leaf's records in the scan's range, in the scan's direction.
    pub(crate) records: &'c [NonNull<T>],
    /// The part of the scan's range that the leaf covers.
    pub(crate) bounds: (Bound<Probe<'k, T>>, Bound<Probe<'k, T>>),
}

impl<'i, 'k, T> Cursor<'i, 'k, T>
where
    T: Keyed,
    T::Key: Key,
{
    #[inline(always)]
    pub(super) fn new(
        index: &'i OrderedIndex<T>,
        low: Bound<Probe<'k, T>>,
        high: Bound<Probe<'k, T>>,
        direction: Direction,
    ) -> Self {
        Self {
            index,
            done: is_empty::<ImageOf<T>>(&low, &high),
            low,
            high,
            direction,
            records: [std::ptr::null_mut(); LEAF_ENTRIES],
        }
    }

    /// Returns the next leaf of the range; `None` when the range has been covered.
    ///
    /// The leaves delivered so far cover the range from its beginning to the end of the last leaf, so that a scan
    /// that stops early has observed all that it has read. Complexity: one descent from the root.
    #[inline]
    pub(crate) fn next(&mut self, guard: &Guard) -> Option<ScannedLeaf<'_, 'k, T>> {
        if self.done {
            return None;
        }
        let (mut low, mut high) = (self.low.clone(), self.high.clone());
        let (observed, count) = loop {
            let step = match self.direction {
                Direction::Ascending => self.ascend(guard),
                Direction::Descending => self.descend(guard),
            };
            if let Some(step) = step {
                break step;
            }
        };
        match (self.direction, &self.low, &self.high) {
            _ if self.done => {}
            (Direction::Ascending, Bound::Included(border), _) => high = Bound::Excluded(border.clone()),
            (Direction::Descending, _, Bound::Excluded(border)) => low = Bound::Included(border.clone()),
            _ => unreachable!("a scan goes on from a border"),
        }
        let records = &self.records[..count];
        for &record in &records[..count.min(PREFETCHED)] {
            prefetch(record);
        }
        // SAFETY: these pointers were read from positions within the count of a leaf whose version was then found
        // unchanged. So they are records', and `NonNull` has the layout of a pointer.
        let records = unsafe { std::slice::from_raw_parts(records.as_ptr().cast(), count) };
        Some(ScannedLeaf { observed, records, bounds: (low, high) })
    }

    /// Returns the position of the cursor.
    pub(crate) fn position(&self) -> CursorPosition<Probe<'k, T>> {
        CursorPosition { low: self.low.clone(), high: self.high.clone(), done: self.done }
    }

    /// Returns to an earlier position.
    pub(crate) fn go_back(&mut self, position: CursorPosition<Probe<'k, T>>) {
        CursorPosition { low: self.low, high: self.high, done: self.done } = position;
    }

    /// Delivers the next leaf upwards. `None`: a node changed; start over.
    #[inline(never)]
    pub(crate) fn ascend(&mut self, guard: &Guard) -> Option<(Observed, usize)> {
        let choose = |inner: &Inner<ImageOf<T>>, version| match &self.low {
            Bound::Included(image) | Bound::Excluded(image) => inner.child_of(image, version),
            Bound::Unbounded => Some(0),
        };
        // The leaf's border is that of the lowest node that has one on this side.
        let mut border = None;
        let Landing { leaf, version, .. } = self.index.descend(guard, choose, |step| {
            border = step.inner.borders(step.child).1.or(border);
        })?;
        // SAFETY: the landing shows that the nodes above the leaf were unchanged after their separators were loaded. These
        // were in the tree since the guard was pinned, and are freed through the epoch.
        let border = border.map(|border| unsafe { ImageOf::<T>::image_of(border) });
        let (from, mut to) = self.positions(leaf, version)?;
        // If the leaf has taken over a neighbour's range meanwhile, it may hold keys beyond the border. They
        // belong to the next step; otherwise they would be delivered twice.
        if let Some(border) = &border {
            while from < to && !ImageOf::<T>::compare(&leaf.image(to - 1, version)?, border).is_lt() {
                to -= 1;
            }
        }
        interleaving_point();
        for at in from..to {
            self.records[at - from] = leaf.record_pointer(at);
        }
        interleaving_point();
        if !leaf.node.version.unchanged(version) {
            return None;
        }
        match border {
            Some(border) if leads_on::<ImageOf<T>>(&self.low, &border, Ordering::Greater) => {
                self.low = Bound::Included(ImageOf::<T>::own(&border));
            }
            _ => self.done = true,
        }
        self.done |= is_empty::<ImageOf<T>>(&self.low, &self.high);
        Some((Observed { node: leaf.word(), version }, to.saturating_sub(from)))
    }

    /// As [`ascend`](Self::ascend), downwards.
    #[inline(never)]
    pub(crate) fn descend(&mut self, guard: &Guard) -> Option<(Observed, usize)> {
        let choose = |inner: &Inner<ImageOf<T>>, version| match &self.high {
            Bound::Included(image) => inner.child_of(image, version),
            Bound::Excluded(image) => inner.child_before(image, version),
            Bound::Unbounded => Some(inner.last_child()),
        };
        let mut border = None;
        let Landing { leaf, version, .. } = self.index.descend(guard, choose, |step| {
            border = step.inner.borders(step.child).0.or(border);
        })?;
        // SAFETY: as in `ascend`.
        let border = border.map(|border| unsafe { ImageOf::<T>::image_of(border) });
        let (mut from, to) = self.positions(leaf, version)?;
        // As in `ascend`.
        if let Some(border) = &border {
            while from < to && ImageOf::<T>::compare(&leaf.image(from, version)?, border).is_lt() {
                from += 1;
            }
        }
        interleaving_point();
        for at in from..to {
            self.records[to - 1 - at] = leaf.record_pointer(at);
        }
        interleaving_point();
        if !leaf.node.version.unchanged(version) {
            return None;
        }
        match border {
            Some(border) if leads_on::<ImageOf<T>>(&self.high, &border, Ordering::Less) => {
                self.high = Bound::Excluded(ImageOf::<T>::own(&border));
            }
            _ => self.done = true,
        }
        self.done |= is_empty::<ImageOf<T>>(&self.low, &self.high);
        Some((Observed { node: leaf.word(), version }, to.saturating_sub(from)))
    }

    /// Returns the positions of the range in a leaf; `None` if it is not at `version`. If the leaf is being changed, they
    /// may be wrong, but they are within the capacity.
    #[inline(always)]
    fn positions(&self, leaf: &Leaf<ImageOf<T>, T>, version: u64) -> Option<(usize, usize)> {
        let from = match &self.low {
            Bound::Included(image) => leaf.lower_bound(image, version)?,
            Bound::Excluded(image) => leaf.upper_bound(image, version)?,
            Bound::Unbounded => 0,
        };
        let to = match &self.high {
            Bound::Included(image) => leaf.upper_bound(image, version)?,
            Bound::Excluded(image) => leaf.lower_bound(image, version)?,
            Bound::Unbounded => leaf.node.count(),
        };
        Some((from, to))
    }
}

/// True if a scan that goes on from this border covers less than one from the bound before, as in every tree that is sorted.
#[inline(always)]
fn leads_on<I: Image>(bound: &Bound<I::Of<'_>>, border: &I::Of<'_>, side: Ordering) -> bool {
    !I::MADE_ANEW
        || match bound {
            // A leaf that begins with the upper bound itself has this as its border.
            Bound::Included(from) if side.is_lt() => I::compare(border, from).is_le(),
            Bound::Included(from) | Bound::Excluded(from) => I::compare(border, from) == side,
            Bound::Unbounded => true,
        }
}

fn is_empty<I: Image>(low: &Bound<I::Of<'_>>, high: &Bound<I::Of<'_>>) -> bool {
    match (low, high) {
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
        (Bound::Included(low), Bound::Included(high)) => I::compare(low, high).is_gt(),
        (Bound::Included(low) | Bound::Excluded(low), Bound::Included(high) | Bound::Excluded(high)) => {
            I::compare(low, high).is_ge()
        }
    }
}

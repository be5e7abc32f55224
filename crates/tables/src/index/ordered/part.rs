//! Parts of leaves: looking again at a range whose leaf has changed.
//!
//! A transaction that has observed a leaf loses if the leaf's version changes, whichever key has come or gone. If it has
//! read a part of the leaf only, it keeps what it saw there ([`LeafPart`]) and looks again when the version differs. It
//! must find out that no key that any commit had made present or absent has come or gone *within the part since the
//! observation*. It is not enough that the same records are there: one that was inserted, committed, deleted and removed
//! meanwhile would be overlooked.
//!
//! So a second scan of the part must find
//!
//! 1. the same records. Records inserted by the transaction itself, and *withdrawn* ones (of insertions rolled back), do
//!    not count. The epoch is pinned since the observation, so no record has got the address of another one. A record that
//!    came since the observation, and is still there, is found, whatever its state;
//! 2. in leaves with the number of removals that the observed leaf had. Each removal of a record that some commit had made
//!    present increases its leaf's number, under the latch. A leaf that is split off takes the number over. So an equal
//!    number says that nothing of the kind was removed from the leaf, nor from those of which it was split off, since the
//!    observation;
//! 3. in the same *era*. When an empty leaf is unlinked, its neighbour covers its range and knows nothing of its removals, and a leaf to
//!    which two are merged knows nothing of theirs; and a number may come back to 0 after 2^32 removals. Either begins a new era, before the latch is given back. So in
//!    the same era the leaf that covers a key is the one that covered it at the observation, or was split off it.
//!
//! By 1 and 2, each record that came since the observation and that any commit has made present is either found or counted.
//! The same holds for records that went.
//!
//! The numbers are read together with a leaf's content, before the check of its version. The era of an observation is read
//! before that check, too. When looking again, it is read after the check: an unlinking that the scan has noticed is
//! ordered before that, because the scan has read the version of the node above.
//!
//! This costs nothing while versions are unchanged but the copy of the records' addresses, and bounds. A removal elsewhere
//! in the same leaf, and an unlinking or merge elsewhere in the tree, make a transaction lose as before.

use super::leaf::Leaf;
use super::{Direction, ImageOf, Keyed, OrderedIndex};
use crate::key::{Image, Key};
use hotrow_core::Observed;
use hotrow_core::epoch::Guard;
use hotrow_sync::atomic::Ordering;
use std::ops::Bound;
use std::ptr::NonNull;

/// The numbers that tell of removals, at an observation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Marks {
    era: u64,
    removals: u32,
}

/// A part of a leaf, as a transaction has observed it.
#[derive(Debug)]
pub(crate) struct LeafPart<I: Image, T> {
    pub(crate) low: Bound<I::Kept>,
    pub(crate) high: Bound<I::Kept>,
    pub(crate) direction: Direction,
    pub(crate) marks: Marks,
    /// The records within the bounds, in this direction.
    pub(crate) records: NonNull<[NonNull<T>]>,
}

impl<I: Image, T> Clone for LeafPart<I, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<I: Image, T> Copy for LeafPart<I, T> {}

impl<T> OrderedIndex<T>
where
    T: Keyed,
    T::Key: Key,
{
    /// Begins another era. The caller holds the latch of a leaf, or of a node above it, that it has changed.
    #[cold]
    pub(super) fn begin_era(&self) {
        // Relaxed: made visible with the latch's release.
        self.top.era.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the marks of a leaf at the version observed; `None` if it has changed.
    ///
    /// # Safety
    ///
    /// The node is a leaf of this index, observed since the guard was pinned.
    #[inline]
    pub(crate) unsafe fn marks(&self, observed: Observed, _guard: &Guard) -> Option<Marks> {
        // SAFETY: the leaf is in memory as long as the epoch is pinned, and an observation leads to all of it.
        let leaf = unsafe { observed.node.cast::<Leaf<ImageOf<T>, T>>().as_ref() };
        // Relaxed: both are ordered before the check of the version.
        let marks = Marks { era: self.top.era.load(Ordering::Relaxed), removals: leaf.node.removals() };
        leaf.node.version.unchanged(observed.version).then_some(marks)
    }

    /// Looks again at a part of a leaf. True if no key has come or gone there since it was observed, of records that count:
    /// those that are not `void`. A record that is void stays so.
    ///
    /// # Safety
    ///
    /// The part was observed in this index since the guard was pinned, and its records and what its bounds keep are still
    /// in memory.
    pub(crate) unsafe fn still_holds(
        &self,
        part: &LeafPart<ImageOf<T>, T>,
        is_void: &dyn Fn(NonNull<T>) -> bool,
        guard: &Guard,
    ) -> bool {
        // SAFETY: the caller's promise.
        let before = unsafe { part.records.as_ref() };
        let mut before = before.iter().filter(|record| !is_void(**record));
        // SAFETY: the caller's promise.
        let image = |kept| unsafe { ImageOf::<T>::kept(kept) };
        let mut cursor = self.cursor(part.low.map(image), part.high.map(image), part.direction);
        while let Some(leaf) = cursor.next(guard) {
            // SAFETY: the leaf is this index's.
            let marks = unsafe { self.marks(leaf.observed, guard) };
            if marks != Some(part.marks) {
                return false;
            }
            if !leaf
                .records
                .iter()
                .filter(|record| !is_void(**record))
                .all(|record| before.next() == Some(record))
            {
                return false;
            }
        }
        before.next().is_none()
    }
}

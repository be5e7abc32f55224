//! The merging of nodes that have become nearly empty.
//!
//! After a mass deletion most leaves would have a few entries left, and an index would stay as large as it was, and scans as slow. So a
//! removal that leaves a leaf sparse looks at its neighbours under the same node. If two together are at most half full, they become one.
//! Then the nodes above, which have lost children, are looked at in the same way.
//!
//! # Leaves
//!
//! The entries of both go to a *new* leaf, which is made before anything is latched, because the images of records come from code of
//! the user's. Then the node above and both leaves are latched at the versions read. The new leaf takes the place of the left one, the
//! separator between the two leaves the node above, and both old leaves are retired. So the range of no leaf shrinks without a change of
//! its version, and everybody who has observed one of the two finds it retired. Whoever looks again at a part of one finds the records
//! in the new leaf, but not how many were removed before: a merge begins a new era, as unlinking does (the head of `part.rs`).
//!
//! # Inner nodes
//!
//! Their separators belong to the tree and run no code of users', so the right one's children move to the left one under latches. The left
//! one changes, and the right one is retired.
//!
//! # Bounds
//!
//! One thread at a time merges or unlinks. A merge is never needed: it gives up if another thread has changed one of the nodes.

use super::kind::{Kind, Reached, retire_node};
use super::leaf::Leaf;
use super::node::{CHILDREN, LEAF_ENTRIES};
use super::remove::Latches;
use super::{ImageOf, Keyed, Landing, OrderedIndex, Probe, Step};
use crate::index::interleaving::interleaving_point;
use crate::key::{Image, Key};
use hotrow_core::epoch::Guard;
use hotrow_sync::atomic::Ordering;
use hotrow_sync::{lock, region};
use std::ptr::NonNull;

/// The number of entries up to which a leaf is sparse.
const SPARSE_LEAF: usize = if cfg!(test) { 1 } else { LEAF_ENTRIES / 4 };
/// The most entries of a leaf that two are merged to.
const MERGED_LEAF: usize = if cfg!(test) { 3 } else { LEAF_ENTRIES / 2 };
/// The most children of an inner node that two are merged to.
const MERGED_INNER: usize = if cfg!(test) { 3 } else { CHILDREN / 2 };

/// True if a removal that leaves so many entries in a leaf should look at its neighbour. A leaf that empties is so looked at a few times.
#[inline]
pub(super) fn should_look(count: usize) -> bool {
    count <= SPARSE_LEAF && (count + 1).is_power_of_two()
}

/// A child of a node and its neighbour, in their order, at the versions at which both were children of the node.
struct Pair<'g, I: Image, T> {
    /// The position of the left one.
    left_at: usize,
    left: (Reached<'g, I, T>, u64),
    right: (Reached<'g, I, T>, u64),
}

/// The leaf that two are merged to, which no other thread has. If it is not used, it is retired.
struct NewLeaf<'g, I: Image, T> {
    pointer: NonNull<Leaf<I, T>>,
    guard: &'g Guard,
}

impl<I: Image, T> Drop for NewLeaf<'_, I, T> {
    fn drop(&mut self) {
        if !region::is_leaving() {
            // SAFETY: no other thread has it, and it is retired once.
            unsafe { retire_node::<I, T>(self.pointer.cast(), self.guard) };
        }
    }
}

impl<T> OrderedIndex<T>
where
    T: Keyed,
    T::Key: Key,
{
    /// Merges the leaf that covers `image` with a neighbour if both are nearly empty, and then the nodes above it.
    #[cold]
    #[inline(never)]
    pub(super) fn merge_sparse(&self, image: &Probe<'_, T>, guard: &Guard) {
        let _one_at_a_time = lock(&self.unlinking);
        let mut path = Vec::new();
        // Each turn makes a node less, or is the last one.
        loop {
            path.clear();
            let choose = |inner: &super::Inner<ImageOf<T>>, version| inner.child_of(image, version);
            let Some(landing) = self.descend(guard, choose, |step| path.push(step)) else { continue };
            if self.merge_leaf(&path, &landing, guard).is_none() && self.merge_inner(&path, guard).is_none() {
                return self.shrink_root(guard);
            }
        }
    }

    /// Merges the leaf at the end of `path` with a neighbour. `None`: there is nothing to merge, or a node has changed.
    fn merge_leaf(
        &self,
        path: &[Step<'_, ImageOf<T>>],
        landing: &Landing<'_, T>,
        guard: &Guard,
    ) -> Option<()> {
        let parent = path.last()?;
        let count = landing.leaf.node.count();
        let pair = self.pair(parent, guard, |other| count + other <= MERGED_LEAF)?;
        let (Kind::Leaf(left), Kind::Leaf(right)) = (pair.left.0.kind(), pair.right.0.kind()) else {
            return None;
        };
        let number = self.leaves.load(Ordering::Relaxed);
        let merged = NewLeaf { pointer: Leaf::<ImageOf<T>, T>::allocate(number), guard };
        // SAFETY: just allocated.
        let leaf = unsafe { merged.pointer.as_ref() };
        leaf.append(left, pair.left.1)?;
        leaf.append(right, pair.right.1)?;
        interleaving_point();

        let mut latches = Latches::default();
        latches.take(&parent.inner.node, parent.version)?;
        latches.take(&left.node, pair.left.1)?;
        latches.take(&right.node, pair.right.1)?;
        let pointer = merged.pointer;
        std::mem::forget(merged);
        parent.inner.set_child(pair.left_at, pointer.cast());
        let separator = parent.inner.remove_child(pair.left_at + 1);
        self.begin_era();
        latches.finish();
        self.watched.changed(left.word());
        self.watched.changed(right.word());
        self.leaves.fetch_sub(1, Ordering::Relaxed);
        // SAFETY: no node of the tree holds it or links to the leaves any more, and each is retired once.
        unsafe {
            ImageOf::<T>::retire_separator(separator, guard);
            retire_node::<ImageOf<T>, T>(pair.left.0.pointer(), guard);
            retire_node::<ImageOf<T>, T>(pair.right.0.pointer(), guard);
        }
        Some(())
    }

    /// Merges the lowest inner node on `path` for which that can be done with a neighbour. `None`: as for [`merge_leaf`](Self::merge_leaf).
    fn merge_inner(&self, path: &[Step<'_, ImageOf<T>>], guard: &Guard) -> Option<()> {
        path.windows(2).rev().find_map(|steps| {
            let [parent, step] = steps else { return None };
            let count = step.inner.node.count();
            let pair = self.pair(parent, guard, |other| count + other <= MERGED_INNER)?;
            let (Kind::Inner(left), Kind::Inner(right)) = (pair.left.0.kind(), pair.right.0.kind()) else {
                return None;
            };
            let mut latches = Latches::default();
            latches.take(&parent.inner.node, parent.version)?;
            latches.take(&left.node, pair.left.1)?;
            latches.take(&right.node, pair.right.1)?;
            // The separator goes to the left node.
            let separator = parent.inner.remove_child(pair.left_at + 1);
            left.append(separator, right);
            latches.finish_changing(2);
            self.inners.fetch_sub(1, Ordering::Relaxed);
            // SAFETY: the tree does not contain it any more, and it is retired once.
            unsafe { retire_node::<ImageOf<T>, T>(pair.right.0.pointer(), guard) };
            Some(())
        })
    }

    /// Returns the chosen child of a step and a neighbour that has a number of entries or children which `fits`.
    fn pair<'g>(
        &self,
        step: &Step<'g, ImageOf<T>>,
        guard: &'g Guard,
        fits: impl Fn(usize) -> bool,
    ) -> Option<Pair<'g, ImageOf<T>, T>> {
        let child = |at: usize| {
            let pointer = NonNull::new(step.inner.child(at))?;
            if !step.inner.node.version.unchanged(step.version) {
                return None;
            }
            // SAFETY: unchanged, so it was a child of a node of the tree while the epoch was pinned.
            let reached = unsafe { Reached::<ImageOf<T>, T>::new(pointer, guard) };
            interleaving_point();
            // The latch of the node above, at the same version, shows that it is the child at this version, too.
            Some((reached, reached.node().version.stable()?))
        };
        let own = child(step.child)?;
        let last = step.inner.last_child();
        if step.child < last {
            let right = child(step.child + 1)?;
            if fits(right.0.node().count()) {
                return Some(Pair { left_at: step.child, left: own, right });
            }
        }
        let left_at = step.child.checked_sub(1)?;
        let left = child(left_at)?;
        fits(left.0.node().count()).then_some(Pair { left_at, left, right: own })
    }
}

impl<I: Image, T> Leaf<I, T>
where
    T: Keyed,
    T::Key: Key<Image = I>,
{
    /// Appends the entries of another leaf to this one, which no other thread has. `None` if the other one is not at `version`.
    fn append(&self, other: &Self, version: u64) -> Option<()> {
        let own = self.node.version.stable()?;
        for at in 0..other.node.count() {
            let (image, record) = (other.image(at, version)?, other.record(at)?);
            // Before the record is followed: it was in the other leaf since the epoch was pinned.
            if self.is_full() || !other.node.version.unchanged(version) {
                return None;
            }
            let (found, _) = self.search(&image, own)?;
            let slots = self.slots_to_insert(found.shared, own)?;
            self.set_slots(slots);
            self.insert_at(self.node.count(), &image, record);
        }
        Some(())
    }
}

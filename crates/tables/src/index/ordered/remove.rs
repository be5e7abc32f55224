//! Removal, and the unlinking of leaves that have become empty. (Leaves that are nearly empty: [`merge`](super::merge).)
//!
//! # Unlinking
//!
//! One thread at a time unlinks leaves, under a mutex that no other operation takes. So no empty leaf stays for ever,
//! and other operations pay nothing for it. The thread descends to the empty leaf and notes the path. The *anchor* is
//! the lowest inner node on the path with a second child. The thread latches, at the versions noted, the anchor, the
//! chain of inner nodes with one child below it, and the leaf. If any of them has changed, it releases the latches
//! and descends again, for as long as the leaf is empty. Then it removes the chain from the anchor, retires it, and
//! hands it to the epoch.
//!
//! The separator that leaves the anchor with the chain was the border to the neighbour before (or after, if the leaf
//! is the first). So the neighbour covers the range from now on. Nothing else records this, and nothing in the
//! neighbour changes, not even its version. That is sound: an observer of the neighbour at this version knows its
//! content. No key of the added range was present when the range was added, and none can come without a change of the
//! version. An observer of the empty leaf finds it retired.

use super::insert::bumped;
use super::kind::{Kind, retire_node};
use super::node::Node;
use super::{ImageOf, Keyed, Landing, OrderedIndex, Probe, Step, merge};
use crate::index::interleaving::interleaving_point;
use crate::key::{Image, Key};
use hotrow_core::epoch::Guard;
use hotrow_core::{StructureChange, StructureVersion};
use hotrow_sync::atomic::Ordering;
use hotrow_sync::{lock, region};
use std::ptr::NonNull;

impl<T> OrderedIndex<T>
where
    T: Keyed,
    T::Key: Key,
{
    /// Removes exactly this record. False if the index does not hold it. `was_present`: some commit had made the record
    /// present, so others may have seen it.
    ///
    /// Calls `changed` with the leaf's change after the latch is released. A leaf that becomes empty is also retired,
    /// so that every attempt that has observed it fails validation, the caller's included.
    #[inline(never)]
    pub(crate) fn remove(
        &self,
        record: NonNull<T>,
        was_present: bool,
        guard: &Guard,
        changed: &mut dyn FnMut(StructureChange),
    ) -> bool {
        // SAFETY: the caller has the record, so it is in memory.
        let image = unsafe { record.as_ref() }.key().image();
        loop {
            let Some(Landing { leaf, version, .. }) = self.leaf_of(&image, guard) else { continue };
            let Some((found, existing)) = leaf.search(&image, version) else { continue };
            interleaving_point();
            if existing != Some(record) {
                if leaf.node.version.unchanged(version) {
                    return false;
                }
                continue;
            }
            // INVARIANT 35: No key's own code runs while a latch of the hash index or of the ordered index is held.
            // The latch is taken at the version read, so earlier reads are as good as reads under the latch.
            if !leaf.node.version.try_lock_at(version) {
                continue;
            }
            leaf.remove_at(found.position);
            if was_present && leaf.node.count_removal() {
                self.begin_era();
            }
            let left = leaf.node.count();
            let after = leaf.node.version.unlock_changed();
            changed(bumped(leaf, version, after));
            if left == 0 {
                interleaving_point();
                self.unlink_empty(&image, guard);
            }
            // An insertion that is rolled back leaves the leaf to those who have observed it.
            if was_present && merge::should_look(left) {
                interleaving_point();
                self.merge_sparse(&image, guard);
            }
            return true;
        }
    }

    /// Unlinks the leaf that covers `image` if it is empty and not the root.
    #[cold]
    pub(super) fn unlink_empty(&self, image: &Probe<'_, T>, guard: &Guard) {
        let _one_at_a_time = lock(&self.unlinking);
        let mut path = Vec::new();
        loop {
            path.clear();
            let found =
                self.descend(guard, |inner, version| inner.child_of(image, version), |step| path.push(step));
            let Some(landing) = found else { continue };
            let empty = landing.leaf.node.count() == 0;
            if !landing.leaf.node.version.unchanged(landing.version) {
                continue;
            }
            if !empty || path.is_empty() {
                return;
            }
            if self.unlink(&path, &landing, guard).is_some() {
                return self.shrink_root(guard);
            }
        }
    }

    /// Unlinks the empty leaf at the end of `path`. `None`: start over.
    fn unlink(&self, path: &[Step<'_, ImageOf<T>>], landing: &Landing<'_, T>, guard: &Guard) -> Option<()> {
        let anchor_at = path.iter().rposition(|step| step.inner.node.count() > 1)?;
        let (anchor, chain) = path[anchor_at..].split_first()?;
        let mut latches = Latches::default();
        latches.take(&anchor.inner.node, anchor.version)?;
        for step in chain {
            latches.take(&step.inner.node, step.version)?;
        }
        latches.take(&landing.leaf.node, landing.version)?;

        let separator = anchor.inner.remove_child(anchor.child);
        self.begin_era();
        latches.finish();
        self.watched.changed(landing.leaf.word());
        // SAFETY: no node of the tree holds it any more, and it is retired once.
        unsafe { ImageOf::<T>::retire_separator(separator, guard) };
        self.leaves.fetch_sub(1, Ordering::Relaxed);
        self.inners.fetch_sub(chain.len(), Ordering::Relaxed);
        for pointer in chain.iter().map(|step| step.pointer).chain([landing.pointer]) {
            // SAFETY: no node of the tree links to it any more, and it is deferred once.
            unsafe { retire_node::<ImageOf<T>, T>(pointer, guard) };
        }
        Some(())
    }

    /// Replaces the root by its child while that is the only one. The caller holds the mutex.
    pub(super) fn shrink_root(&self, guard: &Guard) {
        loop {
            let root = self.root(guard);
            let Kind::Inner(inner) = root.kind() else { return };
            if inner.node.count() > 1 {
                return;
            }
            // A root is replaced before it is retired, so the next look finds the new root.
            if inner.node.version.lock().is_none() {
                continue;
            }
            if self.top.root.load(Ordering::Relaxed) != root.pointer().as_ptr() || inner.node.count() > 1 {
                inner.node.version.unlock_unchanged();
                continue;
            }
            // Release: pairs with the acquire in `OrderedIndex::root`.
            self.top.root.store(inner.child(0), Ordering::Release);
            inner.node.version.unlock_retired();
            self.inners.fetch_sub(1, Ordering::Relaxed);
            let pointer = root.pointer();
            // SAFETY: the tree does not contain it any more, and it is deferred once.
            unsafe { retire_node::<ImageOf<T>, T>(pointer, guard) };
        }
    }
}

/// Latches that are released without a change on drop, unless [`finish`](Self::finish) is called.
#[derive(Default)]
pub(super) struct Latches<'g> {
    held: Vec<&'g StructureVersion>,
}

impl<'g> Latches<'g> {
    /// Takes a node's latch if it is at `version`.
    pub(super) fn take(&mut self, node: &'g Node, version: u64) -> Option<()> {
        node.version.try_lock_at(version).then(|| self.held.push(&node.version))
    }

    /// Releases all latches: the first node has changed, and the others are retired.
    pub(super) fn finish(self) {
        self.finish_changing(1);
    }

    /// Releases all latches: the first nodes, so many, have changed, and the others are retired.
    pub(super) fn finish_changing(mut self, changed: usize) {
        for (at, version) in std::mem::take(&mut self.held).into_iter().enumerate() {
            if at < changed {
                version.unlock_changed();
            } else {
                version.unlock_retired();
            }
        }
    }
}

impl Drop for Latches<'_> {
    fn drop(&mut self) {
        if region::is_leaving() {
            // Released by the abort of the region.
            return;
        }
        for version in &self.held {
            version.unlock_unchanged();
        }
    }
}

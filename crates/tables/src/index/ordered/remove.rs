//! Removal, and the unlinking of leaves that have become empty.
//!
//! # Unlinking
//!
//! One thread at a time, under a mutex that nobody else takes; so nothing empty is kept for ever, and nobody
//! else pays for it. It goes down to the empty leaf, noting the way. The *anchor* is the lowest inner node on
//! it with a second child. It latches, at the versions noted, the anchor, the chain of inner nodes with one
//! child below it, and the leaf. If any of them has changed it lets go and goes down again, for as long as the
//! leaf is empty. Then the chain leaves the anchor and is retired and handed to the epoch.
//!
//! The separator that leaves the anchor with it was the border to the neighbour before (or after, if the leaf
//! is the first): the neighbour covers the range from now on. Nothing else says so, and nothing in the
//! neighbour changes, its version included. That is sound: who observed the neighbour at this version knows
//! what is in it, and no key of the range taken over was there when it was taken over, nor can one come
//! without changing the version. Who observed the empty leaf finds it retired.

use super::insert::bumped;
use super::node::{Kind, Node, retire_node};
use super::{ImageOf, Keyed, Landing, OrderedIndex, Step};
use crate::index::moment::moment;
use crate::key::Key;
use hotrow_core::epoch::Guard;
use hotrow_core::{StructureChange, StructureVersion};
use hotrow_sync::atomic::Ordering;
use hotrow_sync::lock;
use std::ptr::NonNull;

impl<T> OrderedIndex<T>
where
    T: Keyed,
    T::Key: Key,
{
    /// Removes this very record. False if the index does not hold it.
    ///
    /// `changed` is told the leaf's change after the latch is released. If the leaf becomes empty it is also
    /// retired, and whoever has observed it fails validation, the caller included.
    pub(crate) fn remove(
        &self,
        record: NonNull<T>,
        guard: &Guard,
        changed: &mut dyn FnMut(StructureChange),
    ) -> bool {
        // SAFETY: whoever asks to remove a record has it.
        let image = unsafe { record.as_ref() }.key().image();
        loop {
            let Some(Landing { leaf, version, .. }) = self.leaf_of(&image, guard) else { continue };
            let (position, existing) = leaf.search(&image);
            moment();
            if existing != Some(record) {
                if leaf.node.version.unchanged(version) {
                    return false;
                }
                continue;
            }
            // What was read before the latch was taken at the same version is as if read under it.
            if !leaf.node.version.try_lock_at(version) {
                continue;
            }
            leaf.remove_at(position);
            let emptied = leaf.node.count() == 0;
            let after = leaf.node.version.unlock_changed();
            changed(bumped(leaf, version, after));
            if emptied {
                moment();
                self.unlink_empty(&image, guard);
            }
            return true;
        }
    }

    /// Takes the leaf that covers `image` out of the tree if it is empty and not the root.
    #[cold]
    pub(super) fn unlink_empty(&self, image: &ImageOf<T>, guard: &Guard) {
        let _one_at_a_time = lock(&self.unlinking);
        let mut path = Vec::new();
        loop {
            path.clear();
            let found = self.descend(guard, |inner| inner.child_of(image), |step| path.push(step));
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

        anchor.inner.remove_child(anchor.child);
        latches.finish();
        self.leaves.fetch_sub(1, Ordering::Relaxed);
        self.inners.fetch_sub(chain.len(), Ordering::Relaxed);
        for pointer in chain.iter().map(|step| step.pointer).chain([landing.pointer]) {
            // SAFETY: no node of the tree leads to it any more, and it is deferred once.
            unsafe { retire_node::<ImageOf<T>, T>(pointer, guard) };
        }
        Some(())
    }

    /// Makes the root's child the root while it is the only one. The caller holds the mutex.
    pub(super) fn shrink_root(&self, guard: &Guard) {
        loop {
            let root = self.root(guard);
            let Kind::Inner(inner) = root.kind() else { return };
            if inner.node.count() > 1 {
                return;
            }
            // Retired roots are replaced before they are retired, so another look finds the new one.
            if inner.node.version.lock().is_none() {
                continue;
            }
            if self.root.load(Ordering::Relaxed) != root.pointer().as_ptr() || inner.node.count() > 1 {
                inner.node.version.unlock_unchanged();
                continue;
            }
            // Release: pairs with the acquire in `OrderedIndex::root`.
            self.root.store(inner.child(0), Ordering::Release);
            inner.node.version.unlock_retired();
            self.inners.fetch_sub(1, Ordering::Relaxed);
            let pointer = root.pointer();
            // SAFETY: the tree does not contain it any more, and it is deferred once.
            unsafe { retire_node::<ImageOf<T>, T>(pointer, guard) };
        }
    }
}

/// Latches that are given back, nothing changed, unless all goes well.
#[derive(Default)]
struct Latches<'g> {
    held: Vec<&'g StructureVersion>,
}

impl<'g> Latches<'g> {
    /// Takes a node's latch if it is at `version`.
    fn take(&mut self, node: &'g Node, version: u64) -> Option<()> {
        node.version.try_lock_at(version).then(|| self.held.push(&node.version))
    }

    /// Gives all latches back: the first node has changed, and the others are retired.
    fn finish(mut self) {
        let mut held = std::mem::take(&mut self.held).into_iter();
        if let Some(first) = held.next() {
            first.unlock_changed();
        }
        held.for_each(StructureVersion::unlock_retired);
    }
}

impl Drop for Latches<'_> {
    fn drop(&mut self) {
        for version in &self.held {
            version.unlock_unchanged();
        }
    }
}

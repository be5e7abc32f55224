//! Removal, and the unlinking of leaves that have become empty.
//!
//! # Unlinking
//!
//! One thread at a time, under a mutex that nobody else takes, so nothing empty is kept for ever and nobody
//! else pays for it. It goes down to the empty leaf, noting the way; the *anchor* is the lowest inner node on it
//! with a second child. It latches, at the versions noted, the anchor, the chain of inner nodes with one child
//! below it, and the leaf; if any has changed it lets go and goes down again, for as long as the leaf is empty.
//! Then it latches the neighbour: the last leaf under the child before (or the first leaf under the child after,
//! if the leaf is first). It gets there latch by latch, and what it holds keeps the neighbour where it is: to
//! change the range of either, somebody would have to latch the anchor or the leaf in question.
//!
//! Then the chain leaves the anchor, whose separators now give the range to the neighbour; the neighbour is
//! bumped, because its range has grown; and the chain is retired and handed to the epoch.
//!
//! Waiting for a latch while holding others is safe here: whoever else holds a latch waits for none.

use super::insert::bumped;
use super::node::{Inner, Kind, Leaf, Node, Reached, free};
use super::{ImageOf, Keyed, Landing, OrderedIndex, Step};
use crate::key::{Image, Key};
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
    /// `changed` is told every change of a leaf after the latches are released. If the leaf becomes empty it is
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
            changed(bumped(leaf.word(), version, after));
            if emptied {
                self.unlink_empty(&image, guard, changed);
            }
            return true;
        }
    }

    /// Takes the leaf that covers `image` out of the tree if it is empty and not the root.
    #[cold]
    fn unlink_empty(&self, image: &ImageOf<T>, guard: &Guard, changed: &mut dyn FnMut(StructureChange)) {
        let change = {
            let _one_at_a_time = lock(&self.unlinking);
            loop {
                let mut path = Vec::new();
                let Some(landing) =
                    self.descend(guard, |inner| inner.child_of(image), |step| path.push(step))
                else {
                    continue;
                };
                let empty = landing.leaf.node.count() == 0;
                if !landing.leaf.node.version.unchanged(landing.version) {
                    continue;
                }
                if !empty || path.is_empty() {
                    return;
                }
                if let Some(change) = self.unlink(&path, &landing, guard) {
                    self.shrink_root(guard);
                    break change;
                }
            }
        };
        changed(change);
    }

    /// Unlinks the empty leaf at the end of `path`; returns the neighbour's change. `None`: start over.
    fn unlink(
        &self,
        path: &[Step<'_, ImageOf<T>>],
        landing: &Landing<'_, T>,
        guard: &Guard,
    ) -> Option<StructureChange> {
        let anchor_at = path.iter().rposition(|step| step.inner.node.count() > 1)?;
        let (anchor, chain) = path[anchor_at..].split_first()?;
        let mut latches = Latches::default();
        latches.take(&anchor.inner.node, anchor.version)?;
        for step in chain {
            latches.take(&step.inner.node, step.version)?;
        }
        latches.take(&landing.leaf.node, landing.version)?;
        let (neighbour, before) = self.latch_neighbour(anchor, guard)?;

        anchor.inner.remove_child(anchor.child);
        let after = neighbour.node.version.unlock_changed();
        latches.keep_none();
        anchor.inner.node.version.unlock_changed();
        landing.leaf.node.version.unlock_retired();
        for step in chain {
            step.inner.node.version.unlock_retired();
        }
        self.leaves.fetch_sub(1, Ordering::Relaxed);
        self.inners.fetch_sub(chain.len(), Ordering::Relaxed);
        for pointer in chain.iter().map(|step| step.pointer).chain([landing.pointer]) {
            // SAFETY: no node of the tree leads to it any more, and it is deferred once.
            unsafe { guard.defer_unchecked(move || free::<ImageOf<T>, T>(pointer)) };
        }
        Some(bumped(neighbour.word(), before, after))
    }

    /// Latches the leaf next to the anchor's child on the way: before it, or after it if it is the first.
    /// Returns the leaf and its version. The caller holds the anchor's latch.
    fn latch_neighbour<'g>(
        &self,
        anchor: &Step<'g, ImageOf<T>>,
        guard: &'g Guard,
    ) -> Option<(&'g Leaf<ImageOf<T>, T>, u64)> {
        let is_before = anchor.child > 0;
        let mut here = child(anchor.inner, if is_before { anchor.child - 1 } else { 1 }, guard)?;
        let mut before = here.node().version.lock()?;
        loop {
            match here.kind() {
                Kind::Leaf(leaf) => return Some((leaf, before)),
                Kind::Inner(inner) => {
                    let below = child(inner, if is_before { inner.last_child() } else { 0 }, guard);
                    let next = below.and_then(|below| Some((below, below.node().version.lock()?)));
                    inner.node.version.unlock_unchanged();
                    (here, before) = next?;
                }
            }
        }
    }

    /// Makes the root's child the root while it is the only one. The caller holds the mutex.
    fn shrink_root(&self, guard: &Guard) {
        loop {
            let root = self.root(guard);
            let Kind::Inner(inner) = root.kind() else { return };
            if inner.node.count() > 1 {
                return;
            }
            // Retired roots are replaced before they are retired, so another look finds the new one.
            let Some(version) = inner.node.version.lock() else { continue };
            let _ = version;
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
            unsafe { guard.defer_unchecked(move || free::<ImageOf<T>, T>(pointer)) };
        }
    }
}

/// A child of a latched node.
fn child<'g, I: Image, T>(inner: &Inner<I>, at: usize, guard: &'g Guard) -> Option<Reached<'g, I, T>> {
    // SAFETY: the parent's latch is held, so this is a part of the tree, and the epoch is pinned.
    NonNull::new(inner.child(at)).map(|child| unsafe { Reached::new(child, guard) })
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

    /// Leaves it to the caller to give them back.
    fn keep_none(&mut self) {
        self.held.clear();
    }
}

impl Drop for Latches<'_> {
    fn drop(&mut self) {
        for version in &self.held {
            version.unlock_unchanged();
        }
    }
}

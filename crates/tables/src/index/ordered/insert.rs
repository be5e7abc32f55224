//! Insertion, and the splitting of full nodes.

use super::inner::Inner;
use super::leaf::Leaf;
use super::node::{CHILDREN, LEAF_ENTRIES, Node};
use super::{Finger, ImageOf, Keyed, Landing, OrderedIndex, Probe, Step};
use crate::index::interleaving::interleaving_point;
use crate::index::{Insertion, MayChange, is_forbidden};
use crate::key::{Image, Key};
use hotrow_core::epoch::Guard;
use hotrow_core::{Observed, StructureChange};
use hotrow_sync::atomic::Ordering;
use std::ptr::NonNull;

/// The position of an image in a leaf, present or absent. It is valid only if the leaf's version turns out unchanged.
pub(super) struct LeafPosition<'g, T>
where
    T: Keyed,
    T::Key: Key,
{
    leaf: &'g Leaf<ImageOf<T>, T>,
    version: u64,
    /// The node above the leaf, and the leaf's position among its children.
    parent: Option<(Observed, u32)>,
    position: usize,
    existing: Option<NonNull<T>>,
    /// The number of leading bytes that the image shares with the leaf's, of those that these share.
    shared: usize,
}

impl<T> OrderedIndex<T>
where
    T: Keyed,
    T::Key: Key,
{
    /// Adds a record under its key, unless there is one with this key or the leaf must not be changed.
    ///
    /// Calls `changed` with every change of a leaf after the latches are released.
    ///
    /// `may_change` returns true if the leaf may be changed at this version. The leaf is then latched at the same
    /// version.
    ///
    /// `near` is the finger of an earlier insertion, which may save the descent from the root. The finger of this
    /// insertion is returned, for the next one.
    ///
    /// # Safety
    ///
    /// The record is valid, and stays so until it has been removed from this index (or the index has been drained or
    /// dropped) and after that every epoch pinned before has ended. If the finger is one of this tree, it was
    /// returned under this guard.
    #[inline(never)]
    pub(crate) unsafe fn insert(
        &self,
        record: NonNull<T>,
        guard: &Guard,
        near: Option<Finger>,
        changed: &mut dyn FnMut(StructureChange),
        may_change: MayChange<'_>,
    ) -> (Insertion<T>, Option<Finger>) {
        // SAFETY: the caller's promise.
        let image = unsafe { record.as_ref() }.key().image();
        let tree = NonNull::from(self).cast();
        let mut near = near.filter(|near| near.tree == tree);
        loop {
            // SAFETY: the caller's promise.
            let behind = near.take().and_then(|near| unsafe { self.behind(near, &image, guard) });
            let Some(found) = behind.or_else(|| self.find(&image, guard)) else { continue };
            let LeafPosition { leaf, version, parent, position, existing, shared } = found;
            let full = leaf.is_full();
            let observed = Observed { node: leaf.word(), version };
            let refused = existing.is_none() && is_forbidden(may_change, observed);
            interleaving_point();
            if existing.is_none() && !full && !refused {
                let Some(slots) = leaf.slots_to_insert(shared, version) else { continue };
                // INVARIANT 35: No key's own code runs while a latch of the hash index or of the ordered index is held.
                // The latch is taken at the version read, so earlier reads are as good as reads under the latch.
                if leaf.node.version.try_lock_at(version) {
                    leaf.set_slots(slots);
                    leaf.insert_at(position, &image, record);
                    let after = leaf.node.version.unlock_changed();
                    changed(bumped(leaf, version, after));
                    let finger = parent.map(|(parent, child)| Finger {
                        tree,
                        leaf: Observed { node: leaf.word(), version: after },
                        parent,
                        child,
                        position: position as u32 + 1,
                    });
                    return (Insertion::Inserted, finger);
                }
                continue;
            }
            if !leaf.node.version.unchanged(version) {
                continue;
            }
            if let Some(existing) = existing {
                return (Insertion::Exists(existing), None);
            }
            if refused {
                return (Insertion::Refused(observed), None);
            }
            if self.insert_splitting(&image, record, guard, changed, may_change).is_some() {
                return (Insertion::Inserted, None);
            }
        }
    }

    /// Finds the position of an image by a descent from the root. `None`: start over.
    #[inline(always)]
    fn find<'g>(&self, image: &Probe<'_, T>, guard: &'g Guard) -> Option<LeafPosition<'g, T>> {
        let mut parent = None;
        let choose = |inner: &Inner<ImageOf<T>>, version| inner.child_of(image, version);
        let Landing { leaf, version, .. } = self.descend(guard, choose, |step| {
            let node = step.pointer.cast();
            parent = Some((Observed { node, version: step.version }, step.child as u32));
        })?;
        let (found, existing) = leaf.search(image, version)?;
        Some(LeafPosition { leaf, version, parent, position: found.position, existing, shared: found.shared })
    }

    /// Finds the position of an image if that is right behind the previous insertion.
    ///
    /// A leaf's range shrinks only by a split, which changes the leaf's version. The node above tells the range that
    /// the leaf covered when it was reached, provided that this node is unchanged after its border was read. This
    /// node does not know the border of its last child.
    ///
    /// `None` for images that are not in their slots.
    ///
    /// # Safety
    ///
    /// The finger is one of this tree, and was returned under this guard.
    pub(super) unsafe fn behind<'g>(
        &self,
        near: Finger,
        image: &Probe<'_, T>,
        _guard: &'g Guard,
    ) -> Option<LeafPosition<'g, T>> {
        // SAFETY: the caller's promise: the nodes are in memory while the epoch is pinned, and have these types.
        let (leaf, parent) = unsafe {
            let leaf: &'g Leaf<ImageOf<T>, T> = near.leaf.node.cast().as_ref();
            let parent: &'g Inner<ImageOf<T>> = near.parent.node.cast().as_ref();
            (leaf, parent)
        };
        interleaving_point();
        let position = near.position as usize;
        let is_below = |a: &Probe<'_, T>, b: &Probe<'_, T>| ImageOf::<T>::compare(a, b).is_lt();
        let next = match position < leaf.node.count() {
            true => leaf.whole_image(position),
            false => parent.whole_border(near.child as usize),
        };
        let is_below_next = next.is_some_and(|next| is_below(image, &next));
        interleaving_point();
        let is_behind = is_below_next
            && leaf.whole_image(position - 1).is_some_and(|last| is_below(&last, image))
            && parent.node.version.unchanged(near.parent.version);
        is_behind.then_some(LeafPosition {
            leaf,
            version: near.leaf.version,
            parent: Some((near.parent, near.child)),
            position,
            existing: None,
            shared: 0,
        })
    }

    /// Splits one full node on the path to `image`. If it is the leaf, this also inserts the record. `None`: start over.
    #[cold]
    fn insert_splitting(
        &self,
        image: &Probe<'_, T>,
        record: NonNull<T>,
        guard: &Guard,
        changed: &mut dyn FnMut(StructureChange),
        may_change: MayChange<'_>,
    ) -> Option<()> {
        let mut above: Option<Step<'_, _>> = None;
        let mut below: Option<Step<'_, _>> = None;
        let mut full_inner = false;
        let Landing { leaf, pointer, version } = self.descend(
            guard,
            |inner, version| inner.child_of(image, version),
            |step| {
                // The highest full inner node is split first, so that every other has room above it.
                if !full_inner {
                    full_inner = step.inner.is_full();
                    above = below.replace(step);
                }
            },
        )?;
        interleaving_point();
        if full_inner {
            if let Some(step) = below {
                self.split_inner(above.as_ref(), &step);
            }
            return None;
        }
        let (found, existing) = leaf.search(image, version)?;
        interleaving_point();
        // The latches are taken at the versions read, so earlier reads are as good as reads under them. So the parent
        // has room.
        let observed = Observed { node: leaf.word(), version };
        if existing.is_some() || !leaf.is_full() || is_forbidden(may_change, observed) {
            return None;
        }
        let split = LeafSplit::new(leaf, version, found.position, image)?;
        if !latch(below.as_ref(), &leaf.node, version) {
            return None;
        }
        let number = self.leaves.fetch_add(1, Ordering::Relaxed);
        let right_pointer = Leaf::<ImageOf<T>, T>::allocate(number);
        // SAFETY: just allocated, soon a part of the tree, and the epoch is pinned.
        let right = unsafe { right_pointer.as_ref() };
        let separator = split.carry_out(leaf, right, image, record);
        let right_version = right.node.version.stable().unwrap_or_default();
        self.attach(below.as_ref(), pointer, separator, right_pointer.cast());
        let after = leaf.node.version.unlock_changed();
        changed(StructureChange::Split {
            from: leaf.word(),
            before: version,
            node: right.word(),
            version: right_version,
        });
        changed(bumped(leaf, version, after));
        Some(())
    }

    /// Splits a full inner node whose parent is not full, if both are still as they were read.
    fn split_inner(&self, above: Option<&Step<'_, ImageOf<T>>>, step: &Step<'_, ImageOf<T>>) {
        let node = &step.inner.node;
        if !latch(above, node, step.version) {
            return;
        }
        // As in a leaf: if keys ascend at the right end, leave a full node behind.
        let cut = if step.child + 1 == CHILDREN { CHILDREN - 1 } else { CHILDREN / 2 };
        let (separator, right) = step.inner.move_tail(cut);
        self.inners.fetch_add(1, Ordering::Relaxed);
        self.attach(above, step.pointer, separator, right.cast());
        node.version.unlock_changed();
    }

    /// Links `right`, which was split off `left`, into the parent, and releases the parent's latch. Without a parent
    /// it makes a new root above both. The caller holds the latch of `left` and of its parent, if any.
    fn attach(
        &self,
        parent: Option<&Step<'_, ImageOf<T>>>,
        left: NonNull<Node>,
        separator: <ImageOf<T> as Image>::Separator,
        right: NonNull<Node>,
    ) {
        if let Some(parent) = parent {
            parent.inner.insert_after(parent.child, separator, right);
            parent.inner.node.version.unlock_changed();
            return;
        }
        // `left` was the root when its version was read, and a root that is replaced changes its version.
        debug_assert_eq!(self.top.root.load(Ordering::Relaxed), left.as_ptr());
        let root = Inner::<ImageOf<T>>::allocate(left);
        // SAFETY: just allocated, and no other thread has it.
        unsafe { root.as_ref() }.insert_after(0, separator, right);
        self.inners.fetch_add(1, Ordering::Relaxed);
        // Release: pairs with the acquire in `OrderedIndex::root`.
        self.top.root.store(root.cast().as_ptr(), Ordering::Release);
    }
}

pub(super) fn bumped<I: Image, T>(leaf: &Leaf<I, T>, before: u64, after: u64) -> StructureChange {
    StructureChange::Bumped { node: leaf.word(), before, after }
}

/// Latches a node and its parent, if both are at the versions read.
fn latch<I: Image>(parent: Option<&Step<'_, I>>, node: &Node, version: u64) -> bool {
    if let Some(parent) = parent
        && !parent.inner.node.version.try_lock_at(parent.version)
    {
        return false;
    }
    let latched = node.version.try_lock_at(version);
    if let Some(parent) = parent
        && !latched
    {
        parent.inner.node.version.unlock_unchanged();
    }
    latched
}

/// The plan to split a full leaf for a new entry. It is made before the leaf is latched at the version that was read,
/// because the images of records come from code of the user's.
///
/// In an ascending run the cut is at the insertion, so that the run continues in a leaf of its own and leaves full
/// leaves behind: at the end of the key space, or in the midst of it, like the orders of one district among others.
/// Elsewhere the cut is in the middle.
struct LeafSplit<'k, I: Image> {
    /// The position of the new entry.
    position: usize,
    /// The number of old entries that stay.
    cut: usize,
    /// True if the new entry joins those.
    stays: bool,
    /// The image between the two leaves.
    separator: I::Of<'k>,
    slots: I::Slots,
}

impl<I: Image> LeafSplit<'_, I> {
    /// `None` if the leaf is not at `version`.
    fn new<T>(leaf: &Leaf<I, T>, version: u64, position: usize, image: &I::Of<'_>) -> Option<Self>
    where
        T: Keyed,
        T::Key: Key<Image = I>,
    {
        const MIDDLE: usize = LEAF_ENTRIES.div_ceil(2);
        let (cut, stays) = if leaf.continues_run(position) {
            (position, position < LEAF_ENTRIES)
        } else if position < MIDDLE {
            (MIDDLE - 1, true)
        } else {
            (MIDDLE, false)
        };
        // The last image of the left leaf and the first one of the right leaf: old ones, or one of them is new.
        let separator = if position == cut && stays {
            I::between(image, &leaf.image(cut, version)?)
        } else if position == cut {
            I::between(&leaf.image(cut - 1, version)?, image)
        } else {
            I::between(&leaf.image(cut - 1, version)?, &leaf.image(cut, version)?)
        };
        let slots = leaf.slots_to_split(image, position, version)?;
        Some(Self { position, cut, stays, separator, slots })
    }

    /// Moves a part of the leaf to `right`, which is new and empty, and inserts the entry into one of the two. Returns
    /// the separator. The caller holds the leaf's latch, at the version for which the plan was made.
    fn carry_out<T>(
        self,
        leaf: &Leaf<I, T>,
        right: &Leaf<I, T>,
        image: &I::Of<'_>,
        record: NonNull<T>,
    ) -> I::Separator
    where
        T: Keyed,
        T::Key: Key<Image = I>,
    {
        let Self { position, cut, stays, separator, slots } = self;
        leaf.set_slots(slots);
        leaf.move_tail(cut, right);
        if stays {
            leaf.insert_at(position, image, record);
        } else {
            right.insert_at(position - cut, image, record);
        }
        I::separator(&separator)
    }
}

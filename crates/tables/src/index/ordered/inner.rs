//! Inner nodes of the tree.

use super::node::{CHILDREN, Node, copy_pointer, empty, shift_down, shift_up};
use crate::index::free_made;
use crate::key::{Image, NodeSlots};
use hotrow_core::region::made_in_region;
use hotrow_sync::atomic::{AtomicPtr, Ordering};
use hotrow_sync::work::{Work, charge};
use std::ptr::NonNull;

/// An inner node: child `i` covers the images from separator `i - 1` (inclusive) to separator `i` (exclusive).
#[repr(C, align(64))]
pub(super) struct Inner<I: Image> {
    pub(super) node: Node,
    begin: I::Begin,
    separators: [I::Slot; CHILDREN - 1],
    /// The parts of separators that are not in their slots.
    rests: [I::Rest; CHILDREN - 1],
    children: [AtomicPtr<Node>; CHILDREN],
}

impl<I: Image> Inner<I> {
    /// A new node with one child.
    pub(super) fn allocate(child: NonNull<Node>) -> NonNull<Self> {
        let inner = Self {
            node: Node::new(false, 0),
            begin: I::Begin::default(),
            separators: empty(),
            children: empty(),
            rests: empty(),
        };
        inner.children[0].store(child.as_ptr(), Ordering::Relaxed);
        inner.node.set_count(1);
        let inner = NonNull::from(Box::leak(Box::new(inner)));
        // SAFETY: from a box; nodes are retired.
        unsafe { made_in_region(inner.as_ptr().cast(), free_made::<Self>) };
        inner
    }

    #[inline]
    pub(super) fn separators(&self) -> NodeSlots<'_, I> {
        // The subtraction saturates only for the compiler: no reader sees a count of zero.
        let slots = &self.separators[..self.node.count().saturating_sub(1)];
        NodeSlots { slots, shared: &self.node.shared, begin: Some(&self.begin) }
    }

    #[inline]
    pub(super) fn separator(&self, at: usize) -> I::Separator {
        I::load_separator(&self.separators[at], &self.rests[at])
    }

    /// Returns the image of the separator at `at`, which is below the count of separators; `None` if the node is not at
    /// `version`.
    #[inline]
    fn separator_image(&self, at: usize, version: u64) -> Option<I::Of<'_>> {
        let separator = self.separator(at);
        if !self.node.version.unchanged(version) {
            return None;
        }
        // SAFETY: the node is unchanged since the caller began to read it, so the separator was loaded whole and was in the
        // tree at a moment since the epoch was pinned, which outlives the borrow of the node. Separators are freed through
        // the epoch.
        Some(unsafe { I::image_of(separator) })
    }

    /// Returns the position of the child that covers `image`; `None` if the node is not at `version`.
    #[inline]
    pub(super) fn child_of(&self, image: &I::Of<'_>, version: u64) -> Option<usize> {
        charge(Work::NodeSearch);
        I::upper_bound(self.separators(), image, |at| self.separator_image(at, version))
    }

    /// Returns the position of the child that covers the range right before `image`; `None` if the node is not at
    /// `version`.
    pub(super) fn child_before(&self, image: &I::Of<'_>, version: u64) -> Option<usize> {
        charge(Work::NodeSearch);
        I::lower_bound(self.separators(), image, |at| self.separator_image(at, version))
    }

    /// Returns the position of the last child.
    pub(super) fn last_child(&self) -> usize {
        self.node.count().saturating_sub(1)
    }

    /// Returns the child at `at`. The caller may follow it only after it has found the node's version unchanged.
    #[inline]
    pub(super) fn child(&self, at: usize) -> *mut Node {
        self.children[at].load(Ordering::Relaxed)
    }

    /// Replaces the child at `at`. The caller holds the latch.
    pub(super) fn set_child(&self, at: usize, child: NonNull<Node>) {
        self.children[at].store(child.as_ptr(), Ordering::Relaxed);
    }

    /// Moves the children of `right`, the neighbour behind `separator`, to the end of this node, with the separators, which are this node's
    /// from now on. The caller holds both latches, and there is room.
    pub(super) fn append(&self, separator: I::Separator, right: &Self) {
        let mut separator = separator;
        let count = right.node.count();
        for at in 0..count {
            let child = NonNull::new(right.child(at)).expect("a child within the count");
            self.insert_after(self.node.count() - 1, separator, child);
            if at + 1 < count {
                separator = right.separator(at);
            }
        }
        // None of them is freed with the node.
        right.node.set_count(1);
    }

    /// Returns the separators before and after child `at`; `None` at the node's own border. They are valid only if the
    /// node's version turns out unchanged.
    pub(super) fn borders(&self, at: usize) -> (Option<I::Separator>, Option<I::Separator>) {
        let count = self.separators().slots.len();
        let load = |at: usize| (at < count).then(|| self.separator(at));
        (at.checked_sub(1).and_then(load), load(at))
    }

    /// Returns the separator after child `at`, as [`borders`](Self::borders) does, if it is in its slot.
    pub(super) fn whole_border<'k>(&self, at: usize) -> Option<I::Of<'k>> {
        self.separators().slots.get(at).and_then(I::whole)
    }

    pub(super) fn is_full(&self) -> bool {
        self.node.count() == CHILDREN
    }

    /// Adds `child`, which takes over the range of child `at` from `separator` on. The caller holds the latch, and
    /// the node is not full. The separator becomes the node's.
    pub(super) fn insert_after(&self, at: usize, separator: I::Separator, child: NonNull<Node>) {
        let count = self.node.count();
        shift_up(&self.separators, at, count - 1, I::copy_slot);
        shift_up(&self.rests, at, count - 1, I::copy_rest);
        shift_up(&self.children, at + 1, count, copy_pointer);
        // SAFETY: the caller holds the latch; the node owns its separators.
        unsafe {
            I::store_separator(
                separator,
                at,
                &self.separators[..count],
                &self.rests[..count],
                &self.node.shared,
                &self.begin,
            );
        }
        self.children[at + 1].store(child.as_ptr(), Ordering::Relaxed);
        self.node.set_count(count + 1);
    }

    /// Removes child `at`. The neighbour before it (after it, if it is the first) covers its range from now on. The
    /// caller holds the latch, and there are at least two children. Returns the separator between the two, which the
    /// caller retires.
    #[must_use]
    pub(super) fn remove_child(&self, at: usize) -> I::Separator {
        let count = self.node.count();
        let border = at.saturating_sub(1);
        let separator = self.separator(border);
        shift_down(&self.separators, border, count - 1, I::copy_slot);
        shift_down(&self.rests, border, count - 1, I::copy_rest);
        shift_down(&self.children, at, count, copy_pointer);
        self.node.set_count(count - 1);
        separator
    }

    /// Moves the children from `cut` (at least 1) on to a new node, and returns it with the separator between
    /// the two, which belongs to neither. The caller holds the latch.
    pub(super) fn move_tail(&self, cut: usize) -> (I::Separator, NonNull<Self>) {
        let count = self.node.count();
        let separator = self.separator(cut - 1);
        let first = NonNull::new(self.child(cut)).expect("a child within the count");
        let right = Self::allocate(first);
        // SAFETY: just allocated, and no other thread has it.
        let tail = unsafe { right.as_ref() };
        for from in cut + 1..count {
            I::copy_slot(&self.separators[from - 1], &tail.separators[from - 1 - cut]);
            I::copy_rest(&self.rests[from - 1], &tail.rests[from - 1 - cut]);
            copy_pointer(&self.children[from], &tail.children[from - cut]);
        }
        tail.node.set_count(count - cut);
        self.node.set_count(cut);
        tail.adapt_slots();
        self.adapt_slots();
        (separator, right)
    }

    /// Adapts the slots to the separators that are left. The caller holds the latch.
    fn adapt_slots(&self) {
        let count = self.node.count() - 1;
        // SAFETY: as in `insert_after`.
        unsafe {
            I::adapt_slots(&self.separators[..count], &self.rests[..count], &self.node.shared, &self.begin)
        };
    }
}

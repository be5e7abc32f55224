//! The head that all nodes of the tree have, and their slots.

use hotrow_core::StructureVersion;
use hotrow_sync::atomic::{AtomicPtr, AtomicU8, AtomicU32, Ordering};

/// The number of entries in a leaf. With a one-word image a leaf takes eight cache lines.
pub(super) const LEAF_ENTRIES: usize = if cfg!(test) { 4 } else { 31 };
/// The number of children of an inner node. With a one-word image an inner node takes sixteen cache lines.
pub(super) const CHILDREN: usize = if cfg!(test) { 4 } else { 63 };

/// The value of [`Node::run`] when the position of the last insertion is not known.
pub(super) const NO_RUN: u8 = u8::MAX;
const _: () = assert!(LEAF_ENTRIES < NO_RUN as usize && CHILDREN <= u8::MAX as usize);

/// The head of every node.
#[repr(C)]
pub(super) struct Node {
    /// Latch and version.
    pub(super) version: StructureVersion,
    /// The number of records that were removed from a leaf, modulo 2^32, those of the leaves that it was split off
    /// included. Only records that some commit had made present count.
    removals: AtomicU32,
    /// The number of entries of a leaf, or of children of an inner node. It never exceeds the capacity, at whatever
    /// moment it is read.
    count: AtomicU8,
    pub(super) is_leaf: bool,
    /// In a leaf, the position after the last insertion, where the next key of an ascending run goes.
    pub(super) run: AtomicU8,
    /// The number of leading bytes that all images of a node share, if they are long.
    pub(super) shared: AtomicU8,
}

impl Node {
    pub(super) fn new(is_leaf: bool, number: usize) -> Self {
        Self {
            version: StructureVersion::numbered(number),
            removals: AtomicU32::new(0),
            count: AtomicU8::new(0),
            is_leaf,
            run: AtomicU8::new(NO_RUN),
            shared: AtomicU8::new(0),
        }
    }

    // All accesses to the content are relaxed: `version` orders them (`StructureVersion`).

    #[inline]
    pub(super) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed) as usize
    }

    pub(super) fn set_count(&self, count: usize) {
        self.count.store(count as u8, Ordering::Relaxed);
    }

    pub(super) fn removals(&self) -> u32 {
        self.removals.load(Ordering::Relaxed)
    }

    pub(super) fn set_removals(&self, removals: u32) {
        self.removals.store(removals, Ordering::Relaxed);
    }

    /// Counts a removal. True if the number has come back to 0. The caller holds the latch.
    #[must_use]
    pub(super) fn count_removal(&self) -> bool {
        let removals = self.removals().wrapping_add(1);
        self.set_removals(removals);
        removals == 0
    }
}

#[inline(always)]
pub(super) fn empty<S: Default, const N: usize>() -> [S; N] {
    std::array::from_fn(
        #[inline(always)]
        |_| S::default(),
    )
}

/// Moves `slots[at..count]` one place up.
#[inline]
pub(super) fn shift_up<S>(slots: &[S], at: usize, count: usize, copy: impl Fn(&S, &S)) {
    if size_of::<S>() == 0 {
        return;
    }
    for to in (at + 1..=count).rev() {
        copy(&slots[to - 1], &slots[to]);
    }
}

/// Moves `slots[at + 1..count]` one place down.
#[inline]
pub(super) fn shift_down<S>(slots: &[S], at: usize, count: usize, copy: impl Fn(&S, &S)) {
    if size_of::<S>() == 0 {
        return;
    }
    for to in at..count - 1 {
        copy(&slots[to + 1], &slots[to]);
    }
}

#[inline]
pub(super) fn copy_pointer<P>(from: &AtomicPtr<P>, to: &AtomicPtr<P>) {
    to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
}

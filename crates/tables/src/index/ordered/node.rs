//! The head that all nodes of the tree have, and the two kinds of nodes told apart.

use super::inner::Inner;
use super::leaf::Leaf;
use crate::key::Image;
use hotrow_core::epoch::Guard;
use hotrow_core::{StructureVersion, retire_with};
use hotrow_sync::atomic::{AtomicPtr, AtomicU8, AtomicU32, Ordering};
use hotrow_sync::prefetch::prefetch;
use std::marker::PhantomData;
use std::ptr::NonNull;

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
    is_leaf: bool,
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
pub(super) fn shift_up<S>(slots: &[S], at: usize, count: usize, copy: impl Fn(&S, &S)) {
    if size_of::<S>() == 0 {
        return;
    }
    for to in (at + 1..=count).rev() {
        copy(&slots[to - 1], &slots[to]);
    }
}

/// Moves `slots[at + 1..count]` one place down.
pub(super) fn shift_down<S>(slots: &[S], at: usize, count: usize, copy: impl Fn(&S, &S)) {
    if size_of::<S>() == 0 {
        return;
    }
    for to in at..count - 1 {
        copy(&slots[to + 1], &slots[to]);
    }
}

pub(super) fn copy_pointer<P>(from: &AtomicPtr<P>, to: &AtomicPtr<P>) {
    to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
}

/// A node that is in memory as long as `'g`, the pinned epoch: a witness that the path to it was validated.
pub(super) struct Reached<'g, I, T> {
    node: NonNull<Node>,
    _guard: PhantomData<(&'g Guard, fn(I) -> T)>,
}

impl<I, T> Clone for Reached<'_, I, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<I, T> Copy for Reached<'_, I, T> {}

/// A node by its kind.
pub(super) enum Kind<'g, I: Image, T> {
    Leaf(&'g Leaf<I, T>),
    Inner(&'g Inner<I>),
}

impl<'g, I: Image, T> Reached<'g, I, T> {
    /// # Safety
    ///
    /// The node belongs to a tree of `I` and `T`, and was part of it at some moment since the guard was pinned; or no
    /// thread frees it during `'g`.
    #[inline]
    pub(super) unsafe fn new(node: NonNull<Node>, _guard: &'g Guard) -> Self {
        Self { node, _guard: PhantomData }
    }

    #[inline]
    pub(super) fn pointer(self) -> NonNull<Node> {
        self.node
    }

    #[inline]
    pub(super) fn node(self) -> &'g Node {
        // SAFETY: the witness proves that the node is in memory.
        unsafe { self.node.as_ref() }
    }

    #[inline]
    pub(super) fn kind(self) -> Kind<'g, I, T> {
        if self.node().is_leaf {
            // SAFETY: as above; a node with this mark was allocated as a leaf of this tree's types.
            Kind::Leaf(unsafe { self.node.cast().as_ref() })
        } else {
            // SAFETY: as above; every other node was allocated as an inner node.
            Kind::Inner(unsafe { self.node.cast().as_ref() })
        }
    }
}

/// Frees a node, but not the nodes or records to which it points.
///
/// # Safety
///
/// The node belongs to a tree of `I` and `T`, and no thread can reach it any more.
pub(super) unsafe fn free<I: Image, T>(node: NonNull<Node>) {
    // SAFETY: the caller's promise: it is still valid here.
    if unsafe { node.as_ref() }.is_leaf {
        // SAFETY: allocated as a boxed leaf of these types.
        drop(unsafe { Box::from_raw(node.cast::<Leaf<I, T>>().as_ptr()) });
    } else {
        // SAFETY: allocated as a boxed inner node.
        let inner = unsafe { Box::from_raw(node.cast::<Inner<I>>().as_ptr()) };
        for at in 0..inner.separators().slots.len() {
            // SAFETY: the node's own, and no thread can reach the node.
            unsafe { I::free_separator(inner.separator(at)) };
        }
    }
}

/// Frees a node when no thread can read it any more.
///
/// # Safety
///
/// As for [`free`], after all threads that are pinned now have unpinned.
pub(super) unsafe fn retire_node<I: Image, T>(node: NonNull<Node>, guard: &Guard) {
    // SAFETY: the caller's promise: it is still valid here.
    let is_leaf = unsafe { node.as_ref() }.is_leaf;
    let bytes = if is_leaf { size_of::<Leaf<I, T>>() } else { size_of::<Inner<I>>() };
    // SAFETY: the caller's promise.
    unsafe { retire_with(guard, bytes, move || free::<I, T>(node)) };
}

/// Prefetches the cache lines of a node that a search reads.
#[inline]
pub(super) fn prefetch_node<I: Image>(node: *mut Node) {
    // The images of a leaf, and the separators of an inner node behind the beginning of these.
    let images = LEAF_ENTRIES * (8 + size_of::<I::Slot>());
    let bytes = (size_of::<Node>() + images + size_of::<I::Begin>()).min(16 * 64);
    for line in 0..bytes.div_ceil(64) {
        prefetch(node.cast::<u8>().wrapping_add(64 * line));
    }
}

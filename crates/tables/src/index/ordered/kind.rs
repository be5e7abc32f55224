//! The two kinds of nodes told apart: to reach them, to fetch them, and to free them.

use super::inner::Inner;
use super::leaf::Leaf;
use super::node::{LEAF_ENTRIES, Node};
use crate::key::Image;
use hotrow_core::epoch::Guard;
use hotrow_core::retire_with;
use hotrow_sync::prefetch::prefetch;
use std::marker::PhantomData;
use std::ptr::NonNull;

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

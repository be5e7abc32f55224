//! Nodes of the tree: leaves, inner nodes, and their common head.

use crate::key::Image;
use hotrow_core::epoch::Guard;
use hotrow_core::{StructureVersion, retire_with};
use hotrow_sync::atomic::{AtomicPtr, AtomicU8, AtomicU32, Ordering};
use hotrow_sync::prefetch::prefetch;
use std::hint::select_unpredictable;
use std::marker::PhantomData;
use std::ptr::NonNull;

/// The number of entries in a leaf. With a one-word image a leaf takes eight cache lines.
pub(super) const LEAF_ENTRIES: usize = if cfg!(test) { 4 } else { 31 };
/// The number of children of an inner node. With a one-word image an inner node takes sixteen cache lines.
pub(super) const CHILDREN: usize = if cfg!(test) { 4 } else { 63 };

/// The value of [`Node::run`] when the position of the last insertion is not known.
const NO_RUN: u8 = u8::MAX;
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
    run: AtomicU8,
}

impl Node {
    fn new(is_leaf: bool, number: usize) -> Self {
        Self {
            version: StructureVersion::numbered(number),
            removals: AtomicU32::new(0),
            count: AtomicU8::new(0),
            is_leaf,
            run: AtomicU8::new(NO_RUN),
        }
    }

    // All accesses to the content are relaxed: `version` orders them (`StructureVersion`).

    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed) as usize
    }

    fn set_count(&self, count: usize) {
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

/// A leaf: sorted images, and the records of these images.
#[repr(C, align(64))]
pub(super) struct Leaf<I: Image, T> {
    pub(super) node: Node,
    images: [I::Atomic; LEAF_ENTRIES],
    records: [AtomicPtr<T>; LEAF_ENTRIES],
}

/// An inner node: child `i` covers the images from separator `i - 1` (inclusive) to separator `i` (exclusive).
#[repr(C, align(64))]
pub(super) struct Inner<I: Image> {
    pub(super) node: Node,
    separators: [I::Atomic; CHILDREN - 1],
    children: [AtomicPtr<Node>; CHILDREN],
}

/// Returns the number of the sorted `slots` before the first one for which `before` is false.
///
/// The comparisons do not branch, because their outcomes cannot be predicted.
#[cfg_attr(not(debug_assertions), inline(always))]
fn partition_point<I: Image>(slots: &[I::Atomic], before: impl Fn(I) -> bool) -> usize {
    let mut base = 0;
    let mut len = slots.len();
    if len == 0 {
        return 0;
    }
    while len > 1 {
        let half = len / 2;
        base = select_unpredictable(before(I::load(&slots[base + half - 1])), base + half, base);
        len -= half;
    }
    base + usize::from(before(I::load(&slots[base])))
}

/// Moves `slots[at..count]` one place up.
fn shift_up<S>(slots: &[S], at: usize, count: usize, copy: impl Fn(&S, &S)) {
    for to in (at + 1..=count).rev() {
        copy(&slots[to - 1], &slots[to]);
    }
}

/// Moves `slots[at + 1..count]` one place down.
fn shift_down<S>(slots: &[S], at: usize, count: usize, copy: impl Fn(&S, &S)) {
    for to in at..count - 1 {
        copy(&slots[to + 1], &slots[to]);
    }
}

fn copy_image<I: Image>(from: &I::Atomic, to: &I::Atomic) {
    I::load(from).store(to);
}

fn copy_pointer<P>(from: &AtomicPtr<P>, to: &AtomicPtr<P>) {
    to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
}

impl<I: Image, T> Leaf<I, T> {
    /// A new, empty leaf with this number.
    pub(super) fn allocate(number: usize) -> NonNull<Self> {
        let leaf = Self {
            node: Node::new(true, number),
            images: std::array::from_fn(|_| I::Atomic::default()),
            records: std::array::from_fn(|_| AtomicPtr::default()),
        };
        NonNull::from(Box::leak(Box::new(leaf)))
    }

    /// Returns the version word, by which transactions identify the leaf. The pointer is valid for the whole leaf.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn word(&self) -> NonNull<StructureVersion> {
        // The version is the first field; a pointer made from it alone could not be used for the others.
        NonNull::from(self).cast()
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn images(&self) -> &[I::Atomic] {
        &self.images[..self.node.count()]
    }

    /// Returns the number of images below `image`.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn lower_bound(&self, image: &I) -> usize {
        partition_point(self.images(), |other: I| other.is_below(image))
    }

    /// Returns the number of images not above `image`.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn upper_bound(&self, image: &I) -> usize {
        partition_point(self.images(), |other: I| !image.is_below(&other))
    }

    /// Returns the pointer at `position`, which is below the capacity. It is a record's if the position is below the
    /// count and the version turns out unchanged.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn record_pointer(&self, position: usize) -> *mut T {
        self.records[position].load(Ordering::Relaxed)
    }

    /// Returns the same pointer; `None` if it is null.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn record(&self, position: usize) -> Option<NonNull<T>> {
        NonNull::new(self.record_pointer(position))
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn image(&self, position: usize) -> I {
        I::load(&self.images[position])
    }

    /// Returns the position of `image`, present or absent, and its record.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn search(&self, image: &I) -> (usize, Option<NonNull<T>>) {
        let position = self.lower_bound(image);
        if position < self.node.count() && self.image(position) == *image {
            return (position, self.record(position));
        }
        (position, None)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn is_full(&self) -> bool {
        self.node.count() == LEAF_ENTRIES
    }

    /// Adds an entry at `position`. The caller holds the latch, and the leaf is not full.
    pub(super) fn insert_at(&self, position: usize, image: I, record: NonNull<T>) {
        let count = self.node.count();
        shift_up(&self.images, position, count, copy_image::<I>);
        shift_up(&self.records, position, count, copy_pointer);
        image.store(&self.images[position]);
        self.records[position].store(record.as_ptr(), Ordering::Relaxed);
        self.node.set_count(count + 1);
        self.node.run.store(position as u8 + 1, Ordering::Relaxed);
    }

    /// Removes the entry at `position`. The caller holds the latch.
    pub(super) fn remove_at(&self, position: usize) {
        let count = self.node.count();
        shift_down(&self.images, position, count, copy_image::<I>);
        shift_down(&self.records, position, count, copy_pointer);
        self.node.set_count(count - 1);
    }

    /// True if an insertion at `position` continues an ascending run.
    pub(super) fn continues_run(&self, position: usize) -> bool {
        usize::from(self.node.run.load(Ordering::Relaxed)) == position
    }

    /// Moves the entries from `cut` on to `right`, an empty leaf that no other thread has. The caller holds the
    /// latch.
    pub(super) fn move_tail(&self, cut: usize, right: &Self) {
        let count = self.node.count();
        for from in cut..count {
            copy_image::<I>(&self.images[from], &right.images[from - cut]);
            copy_pointer(&self.records[from], &right.records[from - cut]);
        }
        right.node.set_count(count - cut);
        right.node.set_removals(self.node.removals());
        self.node.set_count(cut);
        self.node.run.store(NO_RUN, Ordering::Relaxed);
    }
}

impl<I: Image> Inner<I> {
    /// A new node with one child.
    pub(super) fn allocate(child: NonNull<Node>) -> NonNull<Self> {
        let inner = Self {
            node: Node::new(false, 0),
            separators: std::array::from_fn(|_| I::Atomic::default()),
            children: std::array::from_fn(|_| AtomicPtr::default()),
        };
        inner.children[0].store(child.as_ptr(), Ordering::Relaxed);
        inner.node.set_count(1);
        NonNull::from(Box::leak(Box::new(inner)))
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn separators(&self) -> &[I::Atomic] {
        // The subtraction saturates only for the compiler: no reader sees a count of zero.
        &self.separators[..self.node.count().saturating_sub(1)]
    }

    /// Returns the position of the child that covers `image`.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn child_of(&self, image: &I) -> usize {
        partition_point(self.separators(), |separator: I| !image.is_below(&separator))
    }

    /// Returns the position of the child that covers the range right before `image`.
    pub(super) fn child_before(&self, image: &I) -> usize {
        partition_point(self.separators(), |separator: I| separator.is_below(image))
    }

    /// Returns the position of the last child.
    pub(super) fn last_child(&self) -> usize {
        self.node.count().saturating_sub(1)
    }

    /// Returns the child at `at`. The caller may follow it only after it has found the node's version unchanged.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn child(&self, at: usize) -> *mut Node {
        self.children[at].load(Ordering::Relaxed)
    }

    /// Returns the separators before and after child `at`; `None` at the node's own border.
    pub(super) fn borders(&self, at: usize) -> (Option<I>, Option<I>) {
        let separators = self.separators();
        let load = |at: usize| separators.get(at).map(I::load);
        (at.checked_sub(1).and_then(load), load(at))
    }

    pub(super) fn is_full(&self) -> bool {
        self.node.count() == CHILDREN
    }

    /// Adds `child`, which takes over the range of child `at` from `separator` on. The caller holds the latch, and
    /// the node is not full.
    pub(super) fn insert_after(&self, at: usize, separator: I, child: NonNull<Node>) {
        let count = self.node.count();
        shift_up(&self.separators, at, count - 1, copy_image::<I>);
        shift_up(&self.children, at + 1, count, copy_pointer);
        separator.store(&self.separators[at]);
        self.children[at + 1].store(child.as_ptr(), Ordering::Relaxed);
        self.node.set_count(count + 1);
    }

    /// Removes child `at`. The neighbour before it (after it, if it is the first) covers its range from now on. The
    /// caller holds the latch, and there are at least two children.
    pub(super) fn remove_child(&self, at: usize) {
        let count = self.node.count();
        shift_down(&self.separators, at.saturating_sub(1), count - 1, copy_image::<I>);
        shift_down(&self.children, at, count, copy_pointer);
        self.node.set_count(count - 1);
    }

    /// Moves the children from `cut` (at least 1) on to a new node, and returns it with the separator between
    /// the two. The caller holds the latch.
    pub(super) fn move_tail(&self, cut: usize) -> (I, NonNull<Self>) {
        let count = self.node.count();
        let separator = I::load(&self.separators[cut - 1]);
        let first = NonNull::new(self.child(cut)).expect("a child within the count");
        let right = Self::allocate(first);
        // SAFETY: just allocated, and no other thread has it.
        let tail = unsafe { right.as_ref() };
        for from in cut + 1..count {
            copy_image::<I>(&self.separators[from - 1], &tail.separators[from - 1 - cut]);
            copy_pointer(&self.children[from], &tail.children[from - cut]);
        }
        tail.node.set_count(count - cut);
        self.node.set_count(cut);
        (separator, right)
    }
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
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) unsafe fn new(node: NonNull<Node>, _guard: &'g Guard) -> Self {
        Self { node, _guard: PhantomData }
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn pointer(self) -> NonNull<Node> {
        self.node
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn node(self) -> &'g Node {
        // SAFETY: the witness proves that the node is in memory.
        unsafe { self.node.as_ref() }
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
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
        drop(unsafe { Box::from_raw(node.cast::<Inner<I>>().as_ptr()) });
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
#[cfg_attr(not(debug_assertions), inline(always))]
pub(super) fn prefetch_node<I: Image>(node: *mut Node) {
    // The images of a leaf and the separators of an inner node begin at the same place.
    let bytes = (size_of::<Node>() + LEAF_ENTRIES * (8 + size_of::<I::Atomic>())).min(16 * 64);
    for line in 0..bytes.div_ceil(64) {
        prefetch(node.cast::<u8>().wrapping_add(64 * line));
    }
}

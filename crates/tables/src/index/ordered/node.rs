//! Nodes of the tree: leaves, inner nodes, and their common head.

use crate::index::Keyed;
use crate::key::{Found, Image, Key, NodeSlots};
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
    /// The number of leading bytes that all images of a node share, if they are long.
    shared: AtomicU8,
}

impl Node {
    fn new(is_leaf: bool, number: usize) -> Self {
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
    images: [I::Slot; LEAF_ENTRIES],
    records: [AtomicPtr<T>; LEAF_ENTRIES],
}

/// An inner node: child `i` covers the images from separator `i - 1` (inclusive) to separator `i` (exclusive).
#[repr(C, align(64))]
pub(super) struct Inner<I: Image> {
    pub(super) node: Node,
    separators: [I::Slot; CHILDREN - 1],
    /// The parts of separators that are not in their slots. Searches read the first one in most cases.
    rests: [I::Rest; CHILDREN - 1],
    children: [AtomicPtr<Node>; CHILDREN],
}

#[inline(always)]
fn empty<S: Default, const N: usize>() -> [S; N] {
    std::array::from_fn(
        #[inline(always)]
        |_| S::default(),
    )
}

/// Moves `slots[at..count]` one place up.
fn shift_up<S>(slots: &[S], at: usize, count: usize, copy: impl Fn(&S, &S)) {
    if size_of::<S>() == 0 {
        return;
    }
    for to in (at + 1..=count).rev() {
        copy(&slots[to - 1], &slots[to]);
    }
}

/// Moves `slots[at + 1..count]` one place down.
fn shift_down<S>(slots: &[S], at: usize, count: usize, copy: impl Fn(&S, &S)) {
    if size_of::<S>() == 0 {
        return;
    }
    for to in at..count - 1 {
        copy(&slots[to + 1], &slots[to]);
    }
}

fn copy_pointer<P>(from: &AtomicPtr<P>, to: &AtomicPtr<P>) {
    to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
}

impl<I: Image, T> Leaf<I, T> {
    /// A new, empty leaf with this number.
    pub(super) fn allocate(number: usize) -> NonNull<Self> {
        let leaf = Self { node: Node::new(true, number), images: empty(), records: empty() };
        NonNull::from(Box::leak(Box::new(leaf)))
    }

    /// Returns the version word, by which transactions identify the leaf. The pointer is valid for the whole leaf.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn word(&self) -> NonNull<StructureVersion> {
        // The version is the first field; a pointer made from it alone could not be used for the others.
        NonNull::from(self).cast()
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn images(&self) -> NodeSlots<'_, I> {
        let slots = &self.images[..self.node.count()];
        NodeSlots { slots, shared: &self.node.shared, is_inner: false }
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

    /// Returns the image at `position` if it is in its slot.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn whole_image<'k>(&self, position: usize) -> Option<I::Of<'k>> {
        I::whole(&self.images[position])
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn is_full(&self) -> bool {
        self.node.count() == LEAF_ENTRIES
    }

    /// Adds an entry at `position`. The caller holds the latch, and the leaf is not full.
    ///
    /// The image has the leading bytes that all images of the leaf share.
    pub(super) fn insert_at(&self, position: usize, image: &I::Of<'_>, record: NonNull<T>) {
        let count = self.node.count();
        shift_up(&self.images, position, count, I::copy_slot);
        shift_up(&self.records, position, count, copy_pointer);
        I::store(image, &self.node.shared, &self.images[position]);
        self.records[position].store(record.as_ptr(), Ordering::Relaxed);
        self.node.set_count(count + 1);
        self.node.run.store(position as u8 + 1, Ordering::Relaxed);
    }

    /// Removes the entry at `position`. The caller holds the latch.
    pub(super) fn remove_at(&self, position: usize) {
        let count = self.node.count();
        shift_down(&self.images, position, count, I::copy_slot);
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
            I::copy_slot(&self.images[from], &right.images[from - cut]);
            copy_pointer(&self.records[from], &right.records[from - cut]);
        }
        right.node.set_count(count - cut);
        right.node.set_removals(self.node.removals());
        right.node.shared.store(self.node.shared.load(Ordering::Relaxed), Ordering::Relaxed);
        self.node.set_count(cut);
        self.node.run.store(NO_RUN, Ordering::Relaxed);
    }
}

/// The images of a leaf, which may have to be made from the keys of records.
impl<I: Image, T> Leaf<I, T>
where
    T: Keyed,
    T::Key: Key<Image = I>,
{
    /// Returns the image at `position`; `None` if the leaf is not at `version`.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn image(&self, position: usize, version: u64) -> Option<I::Of<'_>> {
        self.whole_image(position).or_else(|| self.image_of_record(position, version))
    }

    /// Returns the image of the record at `position`, which is below the count; `None` if the leaf is not at `version`.
    #[inline]
    fn image_of_record(&self, position: usize, version: u64) -> Option<I::Of<'_>> {
        let record = self.record(position)?;
        if !self.node.version.unchanged(version) {
            return None;
        }
        // SAFETY: the leaf is unchanged since the caller began to read it, so it held this record at a moment since the
        // epoch was pinned, which outlives the borrow of the leaf. Records are freed through the epoch after their removal
        // (`insert`'s contract), and their keys never change.
        Some(unsafe { record.as_ref() }.key().image())
    }

    /// Returns the number of images below `image`; `None` if the leaf is not at `version`.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn lower_bound(&self, image: &I::Of<'_>, version: u64) -> Option<usize> {
        I::lower_bound(self.images(), image, |at| self.image_of_record(at, version))
    }

    /// Returns the number of images not above `image`; `None` if the leaf is not at `version`.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn upper_bound(&self, image: &I::Of<'_>, version: u64) -> Option<usize> {
        I::upper_bound(self.images(), image, |at| self.image_of_record(at, version))
    }

    /// Returns the place of `image`, present or absent, and its record; `None` if the leaf is not at `version`.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn search(&self, image: &I::Of<'_>, version: u64) -> Option<(Found, Option<NonNull<T>>)> {
        let found = I::find(self.images(), image, |at| self.image_of_record(at, version))?;
        Some((found, if found.is_equal { self.record(found.position) } else { None }))
    }

    /// Makes the slots that the leaf needs before an image gets in that shares `shared` bytes with the others. `None` if
    /// the leaf is not at `version`.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn slots_to_insert(&self, shared: usize, version: u64) -> Option<I::Slots> {
        let image = |at| self.image_of_record(at, version);
        I::slots_to_insert(self.node.count(), &self.node.shared, shared, image)
    }

    /// Makes the slots that the leaf needs before it is split. `None` if the leaf is not at `version`.
    pub(super) fn slots_to_split(
        &self,
        image: &I::Of<'_>,
        position: usize,
        version: u64,
    ) -> Option<I::Slots> {
        let image_at = |at| self.image_of_record(at, version);
        I::slots_to_split(self.node.count(), image, position, image_at)
    }

    /// Takes new slots. The caller holds the latch, at the version for which they were made.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn set_slots(&self, slots: I::Slots) {
        I::set_slots(slots, &self.images, &self.node.shared);
    }
}

impl<I: Image> Inner<I> {
    /// A new node with one child.
    pub(super) fn allocate(child: NonNull<Node>) -> NonNull<Self> {
        let inner =
            Self { node: Node::new(false, 0), separators: empty(), children: empty(), rests: empty() };
        inner.children[0].store(child.as_ptr(), Ordering::Relaxed);
        inner.node.set_count(1);
        NonNull::from(Box::leak(Box::new(inner)))
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn separators(&self) -> NodeSlots<'_, I> {
        // The subtraction saturates only for the compiler: no reader sees a count of zero.
        let slots = &self.separators[..self.node.count().saturating_sub(1)];
        NodeSlots { slots, shared: &self.node.shared, is_inner: true }
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn separator(&self, at: usize) -> I::Separator {
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
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn child_of(&self, image: &I::Of<'_>, version: u64) -> Option<usize> {
        I::upper_bound(self.separators(), image, |at| self.separator_image(at, version))
    }

    /// Returns the position of the child that covers the range right before `image`; `None` if the node is not at
    /// `version`.
    pub(super) fn child_before(&self, image: &I::Of<'_>, version: u64) -> Option<usize> {
        I::lower_bound(self.separators(), image, |at| self.separator_image(at, version))
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
        unsafe { I::adapt_slots(&self.separators[..count], &self.rests[..count], &self.node.shared) };
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
#[cfg_attr(not(debug_assertions), inline(always))]
pub(super) fn prefetch_node<I: Image>(node: *mut Node) {
    // The images of a leaf and the separators of an inner node begin at the same place. What is not in the slot of the first
    // separator comes right behind them.
    let images = LEAF_ENTRIES * (8 + size_of::<I::Slot>());
    let bytes = (size_of::<Node>() + images + size_of::<I::Rest>()).min(16 * 64);
    for line in 0..bytes.div_ceil(64) {
        prefetch(node.cast::<u8>().wrapping_add(64 * line));
    }
}

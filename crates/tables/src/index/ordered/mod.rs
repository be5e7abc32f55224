//! The ordered index: a B+-tree with optimistic readers.
//!
//! # Nodes
//!
//! Every [node](node) begins with a version word: latch, sequence number and retirement mark in one. A leaf holds up
//! to 31 images of keys, sorted, and the pointers to their records. An inner node separates up to 63 children by
//! images. Records belong to the table. The index compares images. A node holds images of fixed size, and parts of
//! [long](crate::key::Bytes) ones (the head of `key/long.rs`). The index follows a pointer to a record only for its key: when
//! that record is inserted or removed, and where the part of a long image does not tell enough.
//!
//! # Readers
//!
//! Readers take no latch and write nothing (optimistic lock coupling: Leis et al., "The ART of practical
//! synchronization"). A reader waits until a node is unlatched, notes its version, reads, and uses the result only if
//! the version is unchanged. On the way down it
//! 1. reads the pointer to a child and checks that the parent is unchanged. So the pointer was a child's, and the
//!    child is in memory as long as the epoch is pinned;
//! 2. notes the child's version and checks once more that the parent is unchanged. So there was a moment at which the
//!    child, at that version, covered the range that the parent gives it.
//!
//! If a check fails, the reader starts over from the root. Images read during a write are wrong numbers, which no
//! check accepts.
//!
//! # The range of a leaf
//!
//! No node stores the borders of its range. The separators along the descent give them, and by point 2 they are the
//! borders of the leaf at the version noted. Scans and transactions depend on this invariant:
//!
//! *The range of a leaf shrinks only when its version changes.*
//!
//! A split changes the version. A range grows without a change of the version when an empty neighbour is unlinked and
//! its range falls to this leaf. An observer of the leaf then knows only its smaller, earlier range, and is still
//! right about that. (A reader on the way down at that moment may also see the smaller range, and so reach the same
//! leaf twice.)
//!
//! So a transaction that has observed all leaves of a range detects at commit every key inserted or removed within
//! it: Silo's node set, and the leaf versions that a scan keeps in sto §4.1.
//!
//! A changed version does not tell which keys have come or gone. A transaction that observes [a part](part) of a leaf only
//! may look again at that part.
//!
//! # Writers
//!
//! An insertion or removal finds its leaf like a reader and latches it only at the version read. So the earlier reads
//! are as good as reads under the latch.
//!
//! Keys that one transaction inserts often follow each other, like the lines of an order. So an insertion leaves a
//! [*finger*](Finger) in the transaction's pin: the leaf at its new version, the node above it, and the position of the next
//! key. The next insertion starts there. Its key belongs into this leaf if it comes right behind the last one, and
//! below the next key of the leaf or, at its end, below the border from the unchanged node above. The latch checks
//! the leaf's version as usual. There is no finger after a split. At the last child of a node it is of no use behind
//! the last key, because the border is further up.
//!
//! A full leaf is [split](insert) under its latch and its parent's, after a descent that split the full inner nodes,
//! so that the parent has room. A leaf that becomes empty is [unlinked](remove), together with the inner nodes that
//! have no other child. One that becomes nearly empty is [merged](merge) with a neighbour.
//!
//! No thread waits for a latch while it holds one: a second latch is taken at the version read or not at all. So
//! there is no deadlock.
//!
//! The pointer `root` defines the root. It is replaced only under the latch of the old root, whose version then
//! changes or which is retired. So a reader that finds the pointer still in place after noting the version holds a
//! root.
//!
//! # Omissions
//!
//! Leaves are not linked to each other, unlike in the tree that sto uses (TMasstree): a scan descends again for each
//! leaf. That costs a few cached lines for thirty entries, and splits and removals need not touch the neighbour.
//! Nodes are merged only with neighbours under the same node, and only if both together are at most half full.

mod finger;
mod inner;
mod insert;
mod kind;
mod leaf;
mod merge;
mod node;
mod part;
mod remove;
mod scan;
#[cfg(all(test, not(loom)))]
mod tests;

use finger::Finger;
pub(crate) use part::{LeafPart, Marks};
pub use scan::Direction;
pub(crate) use scan::{Cursor, CursorPosition};

use super::interleaving::interleaving_point;
use super::{Keyed, Lookup};
use crate::key::{Image, ImageOf as KeyImage, Key};
use crossbeam_utils::CachePadded;
use hotrow_core::epoch::Guard;
use hotrow_core::{Observed, StructureVersion, WatchedNodes};
use hotrow_sync::Mutex;
use hotrow_sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use inner::Inner;
use kind::{Kind, Reached};
use leaf::Leaf;
use node::Node;
use std::marker::PhantomData;
use std::ptr::NonNull;

/// The kind of the images of a record's keys.
type ImageOf<T> = <<T as Keyed>::Key as Key>::Image;
/// An image of a record's key that is borrowed for `'k`.
type Probe<'k, T> = KeyImage<'k, <T as Keyed>::Key>;

/// A concurrent map from keys to records, in the order of the keys.
///
/// Lookups and scans take no latch and write nothing. Insertions and removals latch one leaf; those that
/// split or empty a leaf (one in thirty, for an ascending run) also its parent.
pub(crate) struct OrderedIndex<T>
where
    T: Keyed,
    T::Key: Key,
{
    /// Padded: every operation reads it.
    top: CachePadded<Top>,
    /// Held while an empty leaf is unlinked, or nodes are merged.
    unlinking: CachePadded<Mutex<()>>,
    leaves: AtomicUsize,
    inners: AtomicUsize,
    /// Those that wait for a change of a leaf.
    watched: WatchedNodes,
    _records: PhantomData<T>,
}

/// The root, and what scans and failed lookups read besides.
struct Top {
    root: AtomicPtr<Node>,
    /// The number of times that leaves' numbers of removals have ceased to tell of earlier removals; see [`part`].
    era: AtomicU64,
}

/// One inner node on the path to a leaf, as it was read.
struct Step<'g, I: Image> {
    inner: &'g Inner<I>,
    pointer: NonNull<Node>,
    version: u64,
    /// The child that was chosen.
    child: usize,
}

/// The leaf at the end of the path, at the version at which it was reached.
struct Landing<'g, T>
where
    T: Keyed,
    T::Key: Key,
{
    leaf: &'g Leaf<ImageOf<T>, T>,
    pointer: NonNull<Node>,
    version: u64,
}

impl<T> OrderedIndex<T>
where
    T: Keyed,
    T::Key: Key,
{
    /// An empty index.
    pub(crate) fn new() -> Self {
        let root = Leaf::<ImageOf<T>, T>::allocate(0).cast();
        Self {
            top: CachePadded::new(Top { root: AtomicPtr::new(root.as_ptr()), era: AtomicU64::new(0) }),
            unlinking: CachePadded::default(),
            leaves: AtomicUsize::new(1),
            inners: AtomicUsize::new(0),
            watched: WatchedNodes::default(),
            _records: PhantomData,
        }
    }

    /// Has those told that watch a leaf when it is retired.
    pub(crate) fn set_watched(&mut self, watched: WatchedNodes) {
        self.watched = watched;
    }

    #[inline]
    fn root<'g>(&self, guard: &'g Guard) -> Reached<'g, ImageOf<T>, T> {
        // Acquire: pairs with the release in `insert` and `remove`, so that the node's kind is visible.
        let root = self.top.root.load(Ordering::Acquire);
        // SAFETY: never null; the root is part of the tree.
        unsafe { Reached::new(NonNull::new_unchecked(root), guard) }
    }

    /// Descends to a leaf by the children that `choose` selects in nodes at their versions. `None`: a node changed; start
    /// over.
    ///
    /// Each inner node is passed to `passing` before its version is checked, so the data that `passing` keeps are
    /// valid only if a leaf is returned.
    #[inline(always)]
    fn descend<'g>(
        &self,
        guard: &'g Guard,
        choose: impl Fn(&Inner<ImageOf<T>>, u64) -> Option<usize>,
        mut passing: impl FnMut(Step<'g, ImageOf<T>>),
    ) -> Option<Landing<'g, T>> {
        let mut here = self.root(guard);
        interleaving_point();
        let mut version = here.node().version.stable()?;
        interleaving_point();
        // Relaxed: ordered after the acquire in `stable`.
        if self.top.root.load(Ordering::Relaxed) != here.pointer().as_ptr() {
            return None;
        }
        loop {
            match here.kind() {
                Kind::Leaf(leaf) => return Some(Landing { leaf, pointer: here.pointer(), version }),
                Kind::Inner(inner) => {
                    let at = choose(inner, version)?;
                    let child = inner.child(at);
                    kind::prefetch_node::<ImageOf<T>>(child);
                    interleaving_point();
                    passing(Step { inner, pointer: here.pointer(), version, child: at });
                    if !inner.node.version.unchanged(version) {
                        return None;
                    }
                    // SAFETY: unchanged, so it was a child of a node of the tree while the epoch was pinned.
                    here = unsafe { Reached::new(NonNull::new_unchecked(child), guard) };
                    interleaving_point();
                    let child_version = here.node().version.stable()?;
                    interleaving_point();
                    if !inner.node.version.unchanged(version) {
                        return None;
                    }
                    version = child_version;
                }
            }
        }
    }

    /// Finds the leaf that covers `image`. `None`: start over.
    #[inline(always)]
    fn leaf_of<'g>(&self, image: &Probe<'_, T>, guard: &'g Guard) -> Option<Landing<'g, T>> {
        self.descend(guard, |inner, version| inner.child_of(image, version), |_| ())
    }

    /// Returns the leaf that covers a key's absence.
    pub(crate) fn node_of(&self, key: &T::Key, guard: &Guard) -> Observed {
        let image = key.image();
        loop {
            if let Some(Landing { leaf, version, .. }) = self.leaf_of(&image, guard) {
                return Observed { node: leaf.word(), version };
            }
        }
    }

    /// Looks up the key that has an image.
    #[inline]
    pub(crate) fn get(&self, image: &Probe<'_, T>, guard: &Guard) -> Lookup<T> {
        loop {
            let Some(Landing { leaf, version, .. }) = self.leaf_of(image, guard) else { continue };
            let Some((_, record)) = leaf.search(image, version) else { continue };
            interleaving_point();
            if leaf.node.version.unchanged(version) {
                return match record {
                    Some(record) => Lookup::Found(record),
                    None => Lookup::Absent(Observed { node: leaf.word(), version }),
                };
            }
        }
    }

    /// Begins a scan of the images between two bounds. It reads nothing yet.
    #[inline]
    pub(crate) fn cursor<'k>(
        &self,
        low: std::ops::Bound<Probe<'k, T>>,
        high: std::ops::Bound<Probe<'k, T>>,
        direction: Direction,
    ) -> Cursor<'_, 'k, T> {
        Cursor::new(self, low, high, direction)
    }

    /// Returns the first record in an observed leaf, by which to describe it. `None` if the leaf is empty.
    ///
    /// # Safety
    ///
    /// The node is a leaf of this index, observed since the guard was pinned.
    pub(crate) unsafe fn record_at(
        &self,
        node: NonNull<StructureVersion>,
        _guard: &Guard,
    ) -> Option<NonNull<T>> {
        // SAFETY: the leaf is in memory as long as the epoch is pinned, and an observation leads to all of it.
        let leaf = unsafe { node.cast::<Leaf<ImageOf<T>, T>>().as_ref() };
        loop {
            // A retired leaf is empty.
            let version = leaf.node.version.stable()?;
            let first = if leaf.node.count() > 0 { leaf.record(0) } else { None };
            if leaf.node.version.unchanged(version) {
                return first;
            }
        }
    }

    /// Bytes of memory that the index itself takes: nodes, not records.
    pub(crate) fn memory_bytes(&self) -> usize {
        // Relaxed: statistics.
        let leaves = self.leaves.load(Ordering::Relaxed);
        let inners = self.inners.load(Ordering::Relaxed);
        size_of::<Self>()
            + leaves * size_of::<Leaf<ImageOf<T>, T>>()
            + inners * size_of::<Inner<ImageOf<T>>>()
    }

    /// Removes all records and passes each to `visit`, in order, for the owner to free.
    #[inline(never)]
    pub(crate) fn drain(&mut self, visit: &mut dyn FnMut(NonNull<T>)) {
        let empty = Leaf::<ImageOf<T>, T>::allocate(0).cast();
        // Relaxed: `&mut self` proves that no other thread uses the tree.
        let root = self.top.root.load(Ordering::Relaxed);
        self.top.root.store(empty.as_ptr(), Ordering::Relaxed);
        self.leaves.store(1, Ordering::Relaxed);
        self.inners.store(0, Ordering::Relaxed);
        // SAFETY: the tree is cut off, and `&mut self` proves that no other thread is in it.
        unsafe { free_below(NonNull::new_unchecked(root), visit) };
    }
}

/// Passes the records below a node to `visit`, and frees the nodes.
///
/// # Safety
///
/// The node belongs to a tree of `T`, and no other thread can reach it.
unsafe fn free_below<T>(root: NonNull<Node>, visit: &mut dyn FnMut(NonNull<T>))
where
    T: Keyed,
    T::Key: Key,
{
    // SAFETY: no other thread can reach the nodes, and nothing here is freed through the epoch. (A pin could collect
    // garbage, and free the next table inside this one.)
    let guard = unsafe { hotrow_core::epoch::unprotected() };
    // An explicit stack: the last node pushed is the first in order.
    let mut rest = vec![root];
    while let Some(node) = rest.pop() {
        // SAFETY: every node below the root is in memory until it is freed here.
        match unsafe { Reached::<ImageOf<T>, T>::new(node, guard) }.kind() {
            Kind::Leaf(leaf) => (0..leaf.node.count()).filter_map(|at| leaf.record(at)).for_each(&mut *visit),
            Kind::Inner(inner) => {
                rest.extend((0..inner.node.count()).rev().filter_map(|at| NonNull::new(inner.child(at))));
            }
        }
        // SAFETY: its children are on the stack, and no other thread can reach it.
        unsafe { kind::free::<ImageOf<T>, T>(node) };
    }
}

impl<T> Drop for OrderedIndex<T>
where
    T: Keyed,
    T::Key: Key,
{
    fn drop(&mut self) {
        // Relaxed: `&mut self` proves that no other thread uses the tree.
        // SAFETY: never null, and no other thread can reach it.
        unsafe {
            free_below::<T>(NonNull::new_unchecked(self.top.root.load(Ordering::Relaxed)), &mut |_| ())
        };
    }
}

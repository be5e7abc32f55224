//! Leaves of the tree.

use super::node::{LEAF_ENTRIES, NO_RUN, Node, copy_pointer, empty, shift_down, shift_up};
use crate::index::Keyed;
use crate::index::free_made;
use crate::key::{Found, Image, Key, NodeSlots};
use hotrow_core::StructureVersion;
use hotrow_core::region::made_in_region;
use hotrow_sync::atomic::{AtomicPtr, Ordering};
use hotrow_sync::work::{Work, charge};
use std::ptr::NonNull;

/// A leaf: sorted images, and the records of these images.
#[repr(C, align(64))]
pub(super) struct Leaf<I: Image, T> {
    pub(super) node: Node,
    images: [I::Slot; LEAF_ENTRIES],
    records: [AtomicPtr<T>; LEAF_ENTRIES],
}

impl<I: Image, T> Leaf<I, T> {
    /// A new, empty leaf with this number.
    pub(super) fn allocate(number: usize) -> NonNull<Self> {
        let leaf = Self { node: Node::new(true, number), images: empty(), records: empty() };
        let leaf = NonNull::from(Box::leak(Box::new(leaf)));
        // SAFETY: from a box; nodes are retired.
        unsafe { made_in_region(leaf.as_ptr().cast(), free_made::<Self>) };
        leaf
    }

    /// Returns the version word, by which transactions identify the leaf. The pointer is valid for the whole leaf.
    #[inline]
    pub(super) fn word(&self) -> NonNull<StructureVersion> {
        // The version is the first field; a pointer made from it alone could not be used for the others.
        NonNull::from(self).cast()
    }

    #[inline]
    fn images(&self) -> NodeSlots<'_, I> {
        let slots = &self.images[..self.node.count()];
        NodeSlots { slots, shared: &self.node.shared, begin: None }
    }

    /// Returns the pointer at `position`, which is below the capacity. It is a record's if the position is below the
    /// count and the version turns out unchanged.
    #[inline]
    pub(super) fn record_pointer(&self, position: usize) -> *mut T {
        self.records[position].load(Ordering::Relaxed)
    }

    /// Returns the same pointer; `None` if it is null.
    #[inline]
    pub(super) fn record(&self, position: usize) -> Option<NonNull<T>> {
        NonNull::new(self.record_pointer(position))
    }

    /// Returns the image at `position` if it is in its slot.
    #[inline]
    pub(super) fn whole_image<'k>(&self, position: usize) -> Option<I::Of<'k>> {
        I::whole(&self.images[position])
    }

    #[inline]
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
    #[inline]
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
        Some(unsafe { record.as_ref() }.image())
    }

    /// Returns the number of images below `image`; `None` if the leaf is not at `version`.
    #[inline]
    pub(super) fn lower_bound(&self, image: &I::Of<'_>, version: u64) -> Option<usize> {
        charge(Work::NodeSearch);
        I::lower_bound(self.images(), image, |at| self.image_of_record(at, version))
    }

    /// Returns the number of images not above `image`; `None` if the leaf is not at `version`.
    #[inline]
    pub(super) fn upper_bound(&self, image: &I::Of<'_>, version: u64) -> Option<usize> {
        charge(Work::NodeSearch);
        I::upper_bound(self.images(), image, |at| self.image_of_record(at, version))
    }

    /// Returns the place of `image`, present or absent, and its record; `None` if the leaf is not at `version`.
    #[inline(always)]
    pub(super) fn search(&self, image: &I::Of<'_>, version: u64) -> Option<(Found, Option<NonNull<T>>)> {
        charge(Work::NodeSearch);
        let found = I::find(self.images(), image, |at| self.image_of_record(at, version))?;
        Some((found, if found.is_equal { self.record(found.position) } else { None }))
    }

    /// Makes the slots that the leaf needs before an image gets in that shares `shared` bytes with the others. `None` if
    /// the leaf is not at `version`.
    #[inline]
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
    #[inline]
    pub(super) fn set_slots(&self, slots: I::Slots) {
        I::set_slots(slots, &self.images, &self.node.shared);
    }
}

//! Images of keys: what an ordered index compares.
//!
//! An image has the order of its key. There are two kinds. A [`Fixed`] image is a few words, and the nodes of an index
//! hold it whole. The image of a [long](super::Bytes) key is a string of bytes of any length. A node holds eight of its bytes,
//! and finds the rest with the record's key or beside the separator ([`index::ordered`](crate::index)).

use super::bytes::Encoder;
use super::fixed::Fixed;
use hotrow_core::epoch::Guard;
use hotrow_sync::atomic::AtomicU8;
use std::fmt::Debug;
use std::ptr::NonNull;

pub(super) mod sealed {
    /// Nodes of an index are latched while images are loaded and stored. The seal keeps user code out of latches.
    pub trait Sealed {}
}

/// A kind of images: a word, several words, or a pair of such kinds, which are images themselves; or [`Bytes`](super::Bytes).
///
/// Sealed: no other type can implement it. What is hidden here serves the nodes of the ordered index.
///
/// ```compile_fail,E0277
/// # use hotrow_tables::key::Fixed;
/// #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
/// struct Mine;
/// impl Fixed for Mine {
///     const LEAST: Self = Mine;
///     const GREATEST: Self = Mine;
///     type Atomic = ();
///     fn load((): &()) -> Self {
///         Mine
///     }
///     fn store(self, (): &()) {}
///     fn each_word(&self, _: &mut impl FnMut(u64)) {}
///     fn first_word(&self) -> u64 {
///         0
///     }
///     fn compare(&self, _: &Self) -> std::cmp::Ordering {
///         std::cmp::Ordering::Equal
///     }
/// }
/// ```
pub trait Image: sealed::Sealed + Sized + 'static {
    /// The image of a key that is borrowed for `'k`.
    type Of<'k>: Clone + Ord + Debug;
    /// The kind of the images of pairs whose second part is of kind `B`.
    type With<B: Image>: Image;
    /// The kind of the images of pairs whose first part is of kind `A`.
    #[doc(hidden)]
    type After<A: Fixed>: Image;

    /// Makes the image of a pair.
    fn pair<'k, B: Image>(first: Self::Of<'k>, second: B::Of<'k>) -> <Self::With<B> as Image>::Of<'k>;
    #[doc(hidden)]
    fn after<'k, A: Fixed>(first: A, second: Self::Of<'k>) -> <Self::After<A> as Image>::Of<'k>;
    /// Makes an image that is above all pairs with this first part (`behind`), or not above any of them.
    #[doc(hidden)]
    fn edge<'k, B: Image>(first: Self::Of<'k>, behind: bool) -> <Self::With<B> as Image>::Of<'k>;
    #[doc(hidden)]
    fn edge_after<'k, A: Fixed>(first: A, behind: bool) -> <Self::After<A> as Image>::Of<'k>;
    /// The least image.
    fn least<'k>() -> Self::Of<'k>;
    /// Copies what the image borrows.
    fn own<'k>(image: &Self::Of<'_>) -> Self::Of<'k>;
    /// Compares two images.
    fn compare(a: &Self::Of<'_>, b: &Self::Of<'_>) -> std::cmp::Ordering;
    /// Appends the image as bytes, whose order is the order of images. No image's bytes begin another one's.
    fn put_bytes(image: &Self::Of<'_>, bytes: &mut Vec<u8>);
    /// The image's first 64 bits. A greater image has no lesser ones.
    #[doc(hidden)]
    fn head(image: &Self::Of<'_>) -> u64;
    /// Appends the image as a part of another one.
    #[doc(hidden)]
    fn encode(image: &Self::Of<'_>, encoder: &mut Encoder);

    /// True if images are made anew from keys while a tree is searched. A `Key` whose images change may then leave the tree
    /// unsorted.
    #[doc(hidden)]
    const MADE_ANEW: bool;
    /// What a node holds of an image.
    #[doc(hidden)]
    type Slot: Default + Debug + Send + Sync;
    /// What an inner node holds of a separator besides.
    #[doc(hidden)]
    type Rest: Default + Send + Sync;
    /// The part that an inner node holds of the bytes that its separators share.
    #[doc(hidden)]
    type Begin: Default + Debug + Send + Sync;
    /// A separator as it was read from a node, or one that a node is to get. It need not be valid before the node's
    /// version is checked.
    #[doc(hidden)]
    type Separator: Copy;
    /// An image whose bytes, if any, lie in an attempt's arena.
    #[doc(hidden)]
    type Kept: Copy + Debug;
    /// The copy of a long key's first bytes that a record holds beside the key.
    #[doc(hidden)]
    type Start: Default + Send + Sync;
    /// New slots of a leaf, if it needs them.
    #[doc(hidden)]
    type Slots;

    /// Returns the image that a slot holds whole; `None` for a long one.
    #[doc(hidden)]
    fn whole<'k>(slot: &Self::Slot) -> Option<Self::Of<'k>>;
    #[doc(hidden)]
    fn copy_slot(from: &Self::Slot, to: &Self::Slot);
    #[doc(hidden)]
    fn copy_rest(from: &Self::Rest, to: &Self::Rest);
    /// Stores an image that has the leading bytes that the node's images share.
    #[doc(hidden)]
    fn store(image: &Self::Of<'_>, shared: &AtomicU8, slot: &Self::Slot);
    /// True if a slot whose node shares no leading bytes tells that its image is below another one.
    #[doc(hidden)]
    fn is_surely_below(slot: &Self::Slot, image: &Self::Of<'_>) -> bool;

    /// Finds the number of a node's images below `image`, and if the next one is equal. `full` returns the whole image at a
    /// position; `None` if the node has changed, which is then the result.
    #[doc(hidden)]
    fn find<'n>(
        node: NodeSlots<'_, Self>,
        image: &Self::Of<'_>,
        full: impl Fn(usize) -> Option<Self::Of<'n>>,
    ) -> Option<Found>;
    /// Finds the number of a node's images below `image`.
    #[doc(hidden)]
    fn lower_bound<'n>(
        node: NodeSlots<'_, Self>,
        image: &Self::Of<'_>,
        full: impl Fn(usize) -> Option<Self::Of<'n>>,
    ) -> Option<usize>;
    /// Finds the number of a node's images not above `image`.
    #[doc(hidden)]
    fn upper_bound<'n>(
        node: NodeSlots<'_, Self>,
        image: &Self::Of<'_>,
        full: impl Fn(usize) -> Option<Self::Of<'n>>,
    ) -> Option<usize>;

    /// Makes the slots that a leaf of `count` images needs before it can take one that shares `shared` bytes with them.
    #[doc(hidden)]
    fn slots_to_insert<'n>(
        count: usize,
        node_shares: &AtomicU8,
        shared: usize,
        full: impl Fn(usize) -> Option<Self::Of<'n>>,
    ) -> Option<Self::Slots>;
    /// Makes the slots that a leaf of `count` images needs before `image` comes to `position` and it is split.
    #[doc(hidden)]
    fn slots_to_split<'n>(
        count: usize,
        image: &Self::Of<'_>,
        position: usize,
        full: impl Fn(usize) -> Option<Self::Of<'n>>,
    ) -> Option<Self::Slots>;
    #[doc(hidden)]
    fn set_slots(slots: Self::Slots, to: &[Self::Slot], node_shares: &AtomicU8);

    /// Returns an image above `left` and not above `right`.
    #[doc(hidden)]
    fn between<'k>(left: &Self::Of<'_>, right: &Self::Of<'_>) -> Self::Of<'k>;
    /// Makes a separator, which belongs to the node that gets it.
    #[doc(hidden)]
    fn separator(image: &Self::Of<'_>) -> Self::Separator;
    #[doc(hidden)]
    fn load_separator(slot: &Self::Slot, rest: &Self::Rest) -> Self::Separator;
    /// Puts a separator in the place for it among the others of a node.
    ///
    /// # Safety
    ///
    /// The caller holds the node's latch, or nobody else has the node. The other rests hold separators that it owns.
    #[doc(hidden)]
    unsafe fn store_separator(
        separator: Self::Separator,
        at: usize,
        slots: &[Self::Slot],
        rests: &[Self::Rest],
        node_shares: &AtomicU8,
        begin: &Self::Begin,
    );
    /// Adapts the slots of a node to its separators.
    ///
    /// # Safety
    ///
    /// As for [`store_separator`](Self::store_separator).
    #[doc(hidden)]
    unsafe fn adapt_slots(
        slots: &[Self::Slot],
        rests: &[Self::Rest],
        node_shares: &AtomicU8,
        begin: &Self::Begin,
    );
    /// Returns a separator's image.
    ///
    /// # Safety
    ///
    /// The separator was loaded from a node of which the version was then found unchanged, and it is freed neither
    /// before `'g` ends nor before the epoch is unpinned.
    #[doc(hidden)]
    unsafe fn image_of<'g>(separator: Self::Separator) -> Self::Of<'g>;
    /// Frees a separator when no thread that is pinned now can read it any more.
    ///
    /// # Safety
    ///
    /// No node holds it, and it is retired once.
    #[doc(hidden)]
    unsafe fn retire_separator(separator: Self::Separator, guard: &Guard);
    /// Frees a separator.
    ///
    /// # Safety
    ///
    /// It belongs to a node that is being freed.
    #[doc(hidden)]
    unsafe fn free_separator(separator: Self::Separator);

    /// Keeps an image. `copy` copies bytes to where they stay as long as what is kept is used.
    #[doc(hidden)]
    fn keep(image: &Self::Of<'_>, copy: &mut dyn FnMut(&[u8]) -> NonNull<[u8]>) -> Self::Kept;
    /// # Safety
    ///
    /// The bytes that [`keep`](Self::keep) copied stay for `'k`.
    #[doc(hidden)]
    unsafe fn kept<'k>(kept: Self::Kept) -> Self::Of<'k>;
}

/// The slots of a node in use.
#[doc(hidden)]
#[derive(Debug)]
pub struct NodeSlots<'n, I: Image> {
    pub(crate) slots: &'n [I::Slot],
    /// The number of leading bytes that all long images of the node share.
    pub(crate) shared: &'n AtomicU8,
    /// The first ones of these bytes, in an inner node. It is checked with them, or with the node's first image, that an image
    /// shares them. In a leaf it is checked with an image nearby, which the caller will need anyway.
    pub(crate) begin: Option<&'n I::Begin>,
}

/// The place of an image in a node.
#[doc(hidden)]
#[derive(Debug, Clone, Copy)]
pub struct Found {
    /// The number of images below it.
    pub(crate) position: usize,
    /// True if the next image is equal.
    pub(crate) is_equal: bool,
    /// The number of leading bytes that it shares with the long images of the node, of those that these share.
    pub(crate) shared: usize,
}

/// Returns the number of the sorted `slots` before the first one for which `before` is false.
///
/// The comparisons do not branch, because their outcomes cannot be predicted.
#[inline(always)]
pub(super) fn partition_point<S>(slots: &[S], before: impl Fn(&S) -> bool) -> usize {
    let mut base = 0;
    let mut len = slots.len();
    if len == 0 {
        return 0;
    }
    while len > 1 {
        let half = len / 2;
        base = std::hint::select_unpredictable(before(&slots[base + half - 1]), base + half, base);
        len -= half;
    }
    base + usize::from(before(&slots[base]))
}

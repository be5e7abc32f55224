//! Images of keys: what an ordered index compares.
//!
//! An image has the order of its key. There are two kinds. A [`Fixed`] image is a few words, and the nodes of an index
//! hold it whole. The image of a [long](super::Bytes) key is a string of bytes of any length. A node holds eight of its bytes,
//! and finds the rest with the record's key or beside the separator ([`index::ordered`](crate::index)).

use super::bytes::Encoder;
use hotrow_core::epoch::Guard;
use hotrow_sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::fmt::Debug;
use std::ptr::NonNull;

pub(super) mod sealed {
    /// Nodes of an index are latched while images are loaded and stored. The seal keeps user code out of latches.
    pub trait Sealed {}
    impl Sealed for u64 {}
    impl<const N: usize> Sealed for [u64; N] {}
    impl<A: Sealed, B: Sealed> Sealed for (A, B) {}
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
    /// Appends the image as a part of another one.
    #[doc(hidden)]
    fn encode(image: &Self::Of<'_>, encoder: &mut Encoder);

    /// What a node holds of an image.
    #[doc(hidden)]
    type Slot: Default + Debug + Send + Sync;
    /// What an inner node holds of a separator besides.
    #[doc(hidden)]
    type Rest: Default + Send + Sync;
    /// A separator as it was read from a node, or one that a node is to get. It need not be valid before the node's
    /// version is checked.
    #[doc(hidden)]
    type Separator: Copy;
    /// An image whose bytes, if any, lie in an attempt's arena.
    #[doc(hidden)]
    type Kept: Copy + Debug;
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
    /// Puts a separator in the place for it among the others of a node. The caller holds the latch.
    #[doc(hidden)]
    fn store_separator(
        separator: Self::Separator,
        at: usize,
        slots: &[Self::Slot],
        rests: &[Self::Rest],
        node_shares: &AtomicU8,
    );
    /// Adapts the slots of a node to its separators. The caller holds the latch.
    #[doc(hidden)]
    fn adapt_slots(slots: &[Self::Slot], rests: &[Self::Rest], node_shares: &AtomicU8);
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
    /// True if it is checked with the node's first image that an image shares these bytes. It is checked with one
    /// nearby otherwise, which the caller will need anyway.
    pub(crate) is_inner: bool,
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
#[cfg_attr(not(debug_assertions), inline(always))]
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

/// An image of fixed size, and its form in shared memory: a word, several words, or a pair of images.
///
/// Sealed, as [`Image`] is.
pub trait Fixed: sealed::Sealed + Copy + Ord + Debug + Send + Sync + 'static {
    /// The least image.
    const LEAST: Self;
    /// The greatest image.
    const GREATEST: Self;
    /// The image as atomic words.
    type Atomic: Default + Debug + Send + Sync;
    /// Reads the words one by one. The result may be torn while another thread writes them; the caller excludes this
    /// by the node's version.
    fn load(slot: &Self::Atomic) -> Self;
    /// Writes the words one by one.
    fn store(self, slot: &Self::Atomic);
    /// Passes the words one by one, the most significant first.
    fn each_word(&self, visit: &mut impl FnMut(u64));
    /// Compares as `cmp` does, but is inlined into its caller, because a search does little else.
    fn compare(&self, other: &Self) -> std::cmp::Ordering;
    /// True if the image is less than the other one.
    #[inline(always)]
    fn is_below(&self, other: &Self) -> bool {
        Fixed::compare(self, other).is_lt()
    }
}

impl Fixed for u64 {
    const LEAST: Self = 0;
    const GREATEST: Self = u64::MAX;
    type Atomic = AtomicU64;
    #[inline]
    fn load(slot: &AtomicU64) -> Self {
        // Relaxed: the version word of the node that holds the slot orders it (`StructureVersion`).
        slot.load(Ordering::Relaxed)
    }
    #[inline]
    fn store(self, slot: &AtomicU64) {
        slot.store(self, Ordering::Relaxed);
    }
    #[inline(always)]
    fn each_word(&self, visit: &mut impl FnMut(u64)) {
        visit(*self);
    }
    #[inline(always)]
    fn compare(&self, other: &Self) -> std::cmp::Ordering {
        self.cmp(other)
    }
}

/// The words of an image of `N` words in shared memory.
#[derive(Debug)]
pub struct Words<const N: usize>([AtomicU64; N]);

impl<const N: usize> Default for Words<N> {
    fn default() -> Self {
        Self(std::array::from_fn(|_| AtomicU64::new(0)))
    }
}

impl<const N: usize> Fixed for [u64; N] {
    const LEAST: Self = [0; N];
    const GREATEST: Self = [u64::MAX; N];
    type Atomic = Words<N>;
    #[inline]
    fn load(slot: &Words<N>) -> Self {
        std::array::from_fn(|at| slot.0[at].load(Ordering::Relaxed))
    }
    #[inline]
    fn store(self, slot: &Words<N>) {
        for (word, value) in slot.0.iter().zip(self) {
            word.store(value, Ordering::Relaxed);
        }
    }
    fn each_word(&self, visit: &mut impl FnMut(u64)) {
        self.iter().for_each(|word| visit(*word));
    }
    #[inline(always)]
    fn compare(&self, other: &Self) -> std::cmp::Ordering {
        for at in 0..N {
            if self[at] != other[at] {
                return self[at].cmp(&other[at]);
            }
        }
        std::cmp::Ordering::Equal
    }
}

impl<A: Fixed, B: Fixed> Fixed for (A, B) {
    const LEAST: Self = (A::LEAST, B::LEAST);
    const GREATEST: Self = (A::GREATEST, B::GREATEST);
    type Atomic = (A::Atomic, B::Atomic);
    #[inline]
    fn load(slot: &Self::Atomic) -> Self {
        (A::load(&slot.0), B::load(&slot.1))
    }
    #[inline]
    fn store(self, slot: &Self::Atomic) {
        self.0.store(&slot.0);
        self.1.store(&slot.1);
    }
    fn each_word(&self, visit: &mut impl FnMut(u64)) {
        self.0.each_word(visit);
        self.1.each_word(visit);
    }
    #[inline(always)]
    fn compare(&self, other: &Self) -> std::cmp::Ordering {
        Fixed::compare(&self.0, &other.0).then_with(|| Fixed::compare(&self.1, &other.1))
    }
}

/// Fixed images are whole in their slots, so a node needs nothing else.
impl<F: Fixed> Image for F {
    type Of<'k> = F;
    type With<B: Image> = B::After<F>;
    type After<A: Fixed> = (A, F);

    #[inline(always)]
    fn pair<'k, B: Image>(first: Self::Of<'k>, second: B::Of<'k>) -> <Self::With<B> as Image>::Of<'k> {
        B::after(first, second)
    }
    #[inline(always)]
    fn after<'k, A: Fixed>(first: A, second: Self::Of<'k>) -> <Self::After<A> as Image>::Of<'k> {
        (first, second)
    }
    fn edge<'k, B: Image>(first: Self::Of<'k>, behind: bool) -> <Self::With<B> as Image>::Of<'k> {
        B::edge_after(first, behind)
    }
    fn edge_after<'k, A: Fixed>(first: A, behind: bool) -> <Self::After<A> as Image>::Of<'k> {
        (first, if behind { F::GREATEST } else { F::LEAST })
    }
    #[inline(always)]
    fn least<'k>() -> Self::Of<'k> {
        F::LEAST
    }
    #[inline(always)]
    fn own<'k>(image: &Self::Of<'_>) -> Self::Of<'k> {
        *image
    }
    #[inline(always)]
    fn compare(a: &Self::Of<'_>, b: &Self::Of<'_>) -> std::cmp::Ordering {
        Fixed::compare(a, b)
    }
    fn put_bytes(image: &Self::Of<'_>, bytes: &mut Vec<u8>) {
        image.each_word(&mut |word| bytes.extend_from_slice(&word.to_be_bytes()));
    }
    fn encode(image: &Self::Of<'_>, encoder: &mut Encoder) {
        image.each_word(&mut |word| encoder.push(&word.to_be_bytes()));
    }

    type Slot = F::Atomic;
    type Rest = ();
    type Separator = F;
    type Kept = F;
    type Slots = ();

    #[inline(always)]
    fn whole<'k>(slot: &F::Atomic) -> Option<Self::Of<'k>> {
        Some(F::load(slot))
    }
    #[inline]
    fn copy_slot(from: &F::Atomic, to: &F::Atomic) {
        F::load(from).store(to);
    }
    #[inline(always)]
    fn copy_rest((): &(), (): &()) {}
    #[inline]
    fn store(image: &Self::Of<'_>, _: &AtomicU8, slot: &F::Atomic) {
        Fixed::store(*image, slot);
    }
    #[inline]
    fn is_surely_below(slot: &F::Atomic, image: &Self::Of<'_>) -> bool {
        F::load(slot) < *image
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn find<'n>(
        node: NodeSlots<'_, Self>,
        image: &Self::Of<'_>,
        _: impl Fn(usize) -> Option<Self::Of<'n>>,
    ) -> Option<Found> {
        let position = partition_point(node.slots, |slot| F::load(slot).is_below(image));
        let is_equal = node.slots.get(position).is_some_and(|slot| F::load(slot) == *image);
        Some(Found { position, is_equal, shared: 0 })
    }
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn lower_bound<'n>(
        node: NodeSlots<'_, Self>,
        image: &Self::Of<'_>,
        _: impl Fn(usize) -> Option<Self::Of<'n>>,
    ) -> Option<usize> {
        Some(partition_point(node.slots, |slot| F::load(slot).is_below(image)))
    }
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn upper_bound<'n>(
        node: NodeSlots<'_, Self>,
        image: &Self::Of<'_>,
        _: impl Fn(usize) -> Option<Self::Of<'n>>,
    ) -> Option<usize> {
        Some(partition_point(node.slots, |slot| !image.is_below(&F::load(slot))))
    }

    #[inline(always)]
    fn slots_to_insert<'n>(
        _: usize,
        _: &AtomicU8,
        _: usize,
        _: impl Fn(usize) -> Option<Self::Of<'n>>,
    ) -> Option<()> {
        Some(())
    }
    #[inline(always)]
    fn slots_to_split<'n>(
        _: usize,
        _: &Self::Of<'_>,
        _: usize,
        _: impl Fn(usize) -> Option<Self::Of<'n>>,
    ) -> Option<()> {
        Some(())
    }
    #[inline(always)]
    fn set_slots((): (), _: &[F::Atomic], _: &AtomicU8) {}

    #[inline]
    fn between<'k>(_: &Self::Of<'_>, right: &Self::Of<'_>) -> Self::Of<'k> {
        *right
    }
    #[inline]
    fn separator(image: &Self::Of<'_>) -> F {
        *image
    }
    #[inline(always)]
    fn load_separator(slot: &F::Atomic, (): &()) -> F {
        F::load(slot)
    }
    #[inline]
    fn store_separator(separator: F, at: usize, slots: &[F::Atomic], _: &[()], _: &AtomicU8) {
        separator.store(&slots[at]);
    }
    #[inline(always)]
    fn adapt_slots(_: &[F::Atomic], _: &[()], _: &AtomicU8) {}
    #[inline(always)]
    unsafe fn image_of<'g>(separator: F) -> Self::Of<'g> {
        separator
    }
    #[inline(always)]
    unsafe fn retire_separator(_: F, _: &Guard) {}
    #[inline(always)]
    unsafe fn free_separator(_: F) {}

    #[inline(always)]
    fn keep(image: &Self::Of<'_>, _: &mut dyn FnMut(&[u8]) -> NonNull<[u8]>) -> F {
        *image
    }
    #[inline(always)]
    unsafe fn kept<'k>(kept: F) -> Self::Of<'k> {
        kept
    }
}

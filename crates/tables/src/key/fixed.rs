//! Images of fixed size, which nodes of an index hold whole.

use super::bytes::Encoder;
use super::image::{Found, Image, NodeSlots, partition_point, sealed::Sealed};
use hotrow_core::epoch::Guard;
use hotrow_sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::fmt::Debug;
use std::ptr::NonNull;

impl Sealed for u64 {}
impl<const N: usize> Sealed for [u64; N] {}
impl<A: Sealed, B: Sealed> Sealed for (A, B) {}

/// An image of fixed size, and its form in shared memory: a word, several words, or a pair of images.
///
/// Sealed, as [`Image`] is.
pub trait Fixed: Sealed + Copy + Ord + Debug + Send + Sync + 'static {
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
    /// The most significant word.
    fn first_word(&self) -> u64;
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
    #[inline(always)]
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
    fn first_word(&self) -> u64 {
        *self
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
    #[inline(always)]
    fn load(slot: &Words<N>) -> Self {
        // No `array::from_fn`, nor `zip`: not all functions that they are made of can be inlined from another unit of code, and this
        // is in the middle of every search.
        let mut words = [0; N];
        for (at, word) in words.iter_mut().enumerate() {
            *word = slot.0[at].load(Ordering::Relaxed);
        }
        words
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
    fn first_word(&self) -> u64 {
        self.first().copied().unwrap_or_default()
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
    #[inline(always)]
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
    fn first_word(&self) -> u64 {
        self.0.first_word()
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
    #[inline(always)]
    fn head(image: &Self::Of<'_>) -> u64 {
        image.first_word()
    }
    fn encode(image: &Self::Of<'_>, encoder: &mut Encoder) {
        image.each_word(&mut |word| encoder.push(&word.to_be_bytes()));
    }

    const MADE_ANEW: bool = false;
    type Slot = F::Atomic;
    type Rest = ();
    type Begin = ();
    type Separator = F;
    type Kept = F;
    type Slots = ();
    type Start = ();
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

    #[inline(always)]
    fn find<'n>(
        node: NodeSlots<'_, Self>,
        image: &Self::Of<'_>,
        _: impl Fn(usize) -> Option<Self::Of<'n>>,
    ) -> Option<Found> {
        let position = partition_point(node.slots, |slot| F::load(slot).is_below(image));
        let is_equal = node.slots.get(position).is_some_and(|slot| F::load(slot) == *image);
        Some(Found { position, is_equal, shared: 0 })
    }
    #[inline(always)]
    fn lower_bound<'n>(
        node: NodeSlots<'_, Self>,
        image: &Self::Of<'_>,
        _: impl Fn(usize) -> Option<Self::Of<'n>>,
    ) -> Option<usize> {
        Some(partition_point(node.slots, |slot| F::load(slot).is_below(image)))
    }
    #[inline(always)]
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
    unsafe fn store_separator(separator: F, at: usize, slots: &[F::Atomic], _: &[()], _: &AtomicU8, (): &()) {
        separator.store(&slots[at]);
    }
    #[inline(always)]
    unsafe fn adapt_slots(_: &[F::Atomic], _: &[()], _: &AtomicU8, (): &()) {}
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

//! Keys of tables.

use hotrow_sync::atomic::{AtomicU64, Ordering};
use std::fmt::Debug;
use std::hash::Hash;

/// A key: a plain value with an order-preserving image of fixed size.
///
/// Derive it for a struct whose fields are integers, `bool`, `char`, byte arrays or [`Text`](crate::Text). The macro
/// packs the fields, first field most significant, into as few 64-bit words as they need. Integers, byte arrays,
/// texts and tuples of up to four keys are keys already.
///
/// # Contract
///
/// For any two keys `a` and `b`, `a.cmp(b) == a.image().cmp(b.image())`. An ordered index compares images
/// only. (A wrong image makes an index misplace keys; it cannot break memory safety.)
pub trait Key: Clone + Eq + Ord + Hash + Debug + Send + Sync + 'static {
    /// The image's type.
    type Image: Image;
    /// The key's image.
    fn image(&self) -> Self::Image;
}

mod sealed {
    /// Nodes of an index are latched while images are compared, loaded and stored. The seal keeps user code out of
    /// latches.
    pub trait Sealed {}
    impl Sealed for u64 {}
    impl<const N: usize> Sealed for [u64; N] {}
    impl<A: Sealed, B: Sealed> Sealed for (A, B) {}
}

/// A key's fixed-size, order-preserving image, and its form in shared memory: a word, several words, or a pair of
/// images.
///
/// Sealed: no other type can implement it.
///
/// ```compile_fail,E0277
/// # use hotrow_tables::key::Image;
/// #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
/// struct Mine;
/// impl Image for Mine {
///     const LEAST: Self = Mine;
///     const GREATEST: Self = Mine;
///     type Atomic = ();
///     fn load((): &()) -> Self {
///         Mine
///     }
///     fn store(self, (): &()) {}
///     fn put_bytes(&self, _: &mut Vec<u8>) {}
///     fn compare(&self, _: &Self) -> std::cmp::Ordering {
///         std::cmp::Ordering::Equal
///     }
/// }
/// ```
pub trait Image: sealed::Sealed + Copy + Ord + Debug + Send + Sync + 'static {
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
    /// Appends the image as bytes, whose order is the order of images.
    fn put_bytes(&self, bytes: &mut Vec<u8>);
    /// Compares as `cmp` does, but is inlined into its caller, because a search does little else.
    fn compare(&self, other: &Self) -> std::cmp::Ordering;
    /// True if the image is less than the other one.
    #[inline(always)]
    fn is_below(&self, other: &Self) -> bool {
        self.compare(other).is_lt()
    }
}

impl Image for u64 {
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
    fn put_bytes(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.to_be_bytes());
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

impl<const N: usize> Image for [u64; N] {
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
    fn put_bytes(&self, bytes: &mut Vec<u8>) {
        self.iter().for_each(|word| word.put_bytes(bytes));
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

impl<A: Image, B: Image> Image for (A, B) {
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
    fn put_bytes(&self, bytes: &mut Vec<u8>) {
        self.0.put_bytes(bytes);
        self.1.put_bytes(bytes);
    }
    #[inline(always)]
    fn compare(&self, other: &Self) -> std::cmp::Ordering {
        self.0.compare(&other.0).then_with(|| self.1.compare(&other.1))
    }
}

/// A part of a derived key: the number of its bits, and their values.
pub trait KeyPart {
    /// The number of bits in the image.
    const BITS: usize;
    /// Appends the part's bits, most significant first, such that their order is the part's order.
    fn pack(&self, packer: &mut Packer<'_>);
}

/// The number of 64-bit words in an image of `bits` bits.
pub const fn words(bits: usize) -> usize {
    if bits == 0 { 1 } else { bits.div_ceil(64) }
}

/// Appends bits to an image, most significant first.
#[derive(Debug)]
pub struct Packer<'a> {
    words: &'a mut [u64],
    used: usize,
}

impl<'a> Packer<'a> {
    /// A packer that fills `words`, which must be zero.
    pub fn new(words: &'a mut [u64]) -> Self {
        Self { words, used: 0 }
    }

    /// Appends the low `bits` (1 to 64) bits of `value`.
    ///
    /// # Panics
    ///
    /// If the words are full: a [`KeyPart`] packs more than its `BITS`.
    #[inline]
    pub fn push(&mut self, value: u64, bits: usize) {
        let word = self.used / 64;
        let free = 64 - self.used % 64;
        if bits <= free {
            self.words[word] |= value << (free - bits);
        } else {
            let rest = bits - free;
            self.words[word] |= value >> rest;
            self.words[word + 1] |= value << (64 - rest);
        }
        self.used += bits;
    }
}

macro_rules! integer_keys {
    ($($unsigned:ident $signed:ident),*) => {$(
        impl KeyPart for $unsigned {
            const BITS: usize = $unsigned::BITS as usize;
            #[inline]
            fn pack(&self, packer: &mut Packer<'_>) {
                packer.push(*self as u64, Self::BITS as usize);
            }
        }
        impl KeyPart for $signed {
            const BITS: usize = $signed::BITS as usize;
            #[inline]
            fn pack(&self, packer: &mut Packer<'_>) {
                // Flipping the sign bit puts negative numbers before the others.
                let flipped = (*self as $unsigned) ^ (1 << ($signed::BITS - 1));
                packer.push(flipped as u64, Self::BITS as usize);
            }
        }
        impl Key for $unsigned {
            type Image = u64;
            #[inline]
            fn image(&self) -> u64 {
                *self as u64
            }
        }
        impl Key for $signed {
            type Image = u64;
            #[inline]
            fn image(&self) -> u64 {
                (i64::from(*self) as u64) ^ (1 << 63)
            }
        }
    )*};
}
integer_keys!(u8 i8, u16 i16, u32 i32, u64 i64);

impl KeyPart for bool {
    const BITS: usize = 1;
    #[inline]
    fn pack(&self, packer: &mut Packer<'_>) {
        packer.push(u64::from(*self), 1);
    }
}

impl KeyPart for char {
    const BITS: usize = 21;
    #[inline]
    fn pack(&self, packer: &mut Packer<'_>) {
        packer.push(u64::from(u32::from(*self)), 21);
    }
}

impl<const N: usize> KeyPart for [u8; N] {
    const BITS: usize = 8 * N;
    #[inline]
    fn pack(&self, packer: &mut Packer<'_>) {
        for byte in self {
            packer.push(u64::from(*byte), 8);
        }
    }
}

impl Key for () {
    type Image = u64;
    fn image(&self) -> u64 {
        0
    }
}

impl<A: Key, B: Key> Key for (A, B) {
    type Image = (A::Image, B::Image);
    #[inline]
    fn image(&self) -> Self::Image {
        (self.0.image(), self.1.image())
    }
}

impl<A: Key, B: Key, C: Key> Key for (A, B, C) {
    type Image = (A::Image, (B::Image, C::Image));
    #[inline]
    fn image(&self) -> Self::Image {
        (self.0.image(), (self.1.image(), self.2.image()))
    }
}

impl<A: Key, B: Key, C: Key, D: Key> Key for (A, B, C, D) {
    type Image = (A::Image, (B::Image, (C::Image, D::Image)));
    #[inline]
    fn image(&self) -> Self::Image {
        (self.0.image(), (self.1.image(), (self.2.image(), self.3.image())))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn assert_ordered<K: Key>(keys: impl IntoIterator<Item = K>) {
        let keys: Vec<K> = keys.into_iter().collect();
        for a in &keys {
            for b in &keys {
                assert_eq!(a.cmp(b), a.image().cmp(&b.image()), "{a:?} {b:?}");
                assert_eq!(a < b, a.image().is_below(&b.image()), "{a:?} {b:?}");
            }
        }
    }

    #[test]
    fn images_keep_the_order_of_keys() {
        assert_ordered([i64::MIN, -5, -1, 0, 1, 7, i64::MAX]);
        assert_ordered([i8::MIN, -1, 0, 1, i8::MAX]);
        assert_ordered([0u32, 1, 255, 256, u32::MAX]);
        assert_ordered([(1u8, -1i32), (1, 0), (0, 5), (2, i32::MIN)]);
        assert_ordered([(1u64, 2u8, 3u16), (1, 2, 2), (0, 9, 9)]);
        assert_ordered([(1u64, 2u64, 3u64, 4u64), (1, 2, 4, 0), (1, 1, 9, 9), (0, 9, 9, 9), (1, 2, 3, 5)]);
    }

    #[test]
    fn parts_are_packed_across_word_borders() {
        let mut image = [0u64; 2];
        let mut packer = Packer::new(&mut image);
        0x11u8.pack(&mut packer);
        0x2233_4455_6677_8899u64.pack(&mut packer);
        true.pack(&mut packer);
        assert_eq!(image, [0x1122_3344_5566_7788, 0x9980_0000_0000_0000]);
        assert_eq!(words(8 + 64 + 1), 2);
        assert_eq!(words(64), 1);
    }

    #[test]
    fn an_image_survives_shared_memory() {
        let slot = <(u64, [u64; 2]) as Image>::Atomic::default();
        (7, [1, 2]).store(&slot);
        assert_eq!(<(u64, [u64; 2])>::load(&slot), (7, [1, 2]));
    }
}

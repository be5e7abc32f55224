//! Parts of derived keys: packed into words if all have a fixed size, or put one after the other.

use super::bytes::{Bytes, Encoded, Encoder};
use super::image::Image;

/// The number of bits of a part that has no fixed size.
pub const LONG: usize = usize::MAX;

/// A part of a derived key: the number of its bits, and their values.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a part of a key",
    label = "not a part of a key",
    note = "parts of keys are integers, `bool`, `char`, strings, vectors and arrays of bytes, options and tuples of parts, and types that derive `Key`",
    note = "floating-point numbers have no total order: use an integer, or the bits of the number"
)]
pub trait KeyPart {
    /// The number of bits in the image, or [`LONG`].
    const BITS: usize;
    /// Appends the part's bits, most significant first, such that their order is the part's order. It is called only if
    /// the part has a fixed size.
    fn pack(&self, packer: &mut Packer<'_>);
    /// Appends the part to an image that has no fixed size. The bytes must tell their own end.
    fn encode(&self, encoder: &mut Encoder) {
        const { assert!(Self::BITS != LONG, "a part without a fixed size implements `encode`") };
        let mut packed = vec![0; words(Self::BITS)];
        self.pack(&mut Packer::new(&mut packed));
        packed.iter().for_each(|word| encoder.push(&word.to_be_bytes()));
    }
    /// The number of bytes that the part owns on the heap.
    fn heap_bytes(&self) -> usize {
        0
    }
}

/// The number of 64-bit words in an image of `bits` bits.
pub const fn words(bits: usize) -> usize {
    if bits == 0 { 1 } else { bits.div_ceil(64) }
}

/// The number of bits that tell `variants` variants apart.
pub const fn variant_bits(variants: usize) -> usize {
    (usize::BITS - variants.saturating_sub(1).leading_zeros()) as usize
}

/// The greatest of several numbers of bits.
pub const fn most_bits(bits: &[usize]) -> usize {
    let (mut most, mut at) = (0, 0);
    while at < bits.len() {
        if bits[at] > most {
            most = bits[at];
        }
        at += 1;
    }
    most
}

/// The kind of a derived key's images: `WORDS` words, or bytes if it is `LONG`.
#[derive(Debug)]
pub struct DerivedImage<const LONG: bool, const WORDS: usize>;

/// Makes the image of a derived key.
pub trait MakeImage {
    /// The image's kind.
    type Image: Image;
    /// Makes the image of a key that is a part itself.
    fn image<P: KeyPart>(key: &P) -> <Self::Image as Image>::Of<'_>;
}

impl<const WORDS: usize> MakeImage for DerivedImage<false, WORDS> {
    type Image = [u64; WORDS];
    #[inline(always)]
    fn image<P: KeyPart>(key: &P) -> [u64; WORDS] {
        let mut image = [0; WORDS];
        key.pack(&mut Packer::new(&mut image));
        image
    }
}

impl<const WORDS: usize> MakeImage for DerivedImage<true, WORDS> {
    type Image = Bytes;
    #[inline]
    fn image<P: KeyPart>(key: &P) -> Encoded<'_> {
        let mut encoder = Encoder::new();
        key.encode(&mut encoder);
        encoder.finish()
    }
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

    /// Appends the number of one of `bits` bits, which tell variants apart.
    #[inline]
    pub fn push_variant(&mut self, number: usize, bits: usize) {
        if bits > 0 {
            self.push(number as u64, bits);
        }
    }

    /// Leaves bits zero until there are `end`, those of `start` included: the parts of a variant have fewer bits than those
    /// of another one.
    #[inline]
    pub fn skip(&mut self, bits: usize) {
        self.used += bits;
    }
}

/// Message of a panic that cannot happen.
const NO_BITS: &str = "a part without a fixed size is not packed";

macro_rules! integer_parts {
    ($($unsigned:ident $signed:ident),*) => {$(
        impl KeyPart for $unsigned {
            const BITS: usize = $unsigned::BITS as usize;
            #[inline]
            fn pack(&self, packer: &mut Packer<'_>) {
                packer.push(*self as u64, <Self as KeyPart>::BITS);
            }
            #[inline]
            fn encode(&self, encoder: &mut Encoder) {
                encoder.push(&self.to_be_bytes());
            }
        }
        signed_part!($unsigned $signed);
    )*};
}

macro_rules! signed_part {
    ($unsigned:ident $signed:ident) => {
        impl KeyPart for $signed {
            const BITS: usize = $signed::BITS as usize;
            #[inline]
            fn pack(&self, packer: &mut Packer<'_>) {
                // Flipping the sign bit puts negative numbers before the others.
                ((*self as $unsigned) ^ (1 << ($signed::BITS - 1))).pack(packer);
            }
            #[inline]
            fn encode(&self, encoder: &mut Encoder) {
                ((*self as $unsigned) ^ (1 << ($signed::BITS - 1))).encode(encoder);
            }
        }
    };
}

integer_parts!(u8 i8, u16 i16, u32 i32, u64 i64);

impl KeyPart for u128 {
    const BITS: usize = 128;
    #[inline]
    fn pack(&self, packer: &mut Packer<'_>) {
        packer.push((self >> 64) as u64, 64);
        packer.push(*self as u64, 64);
    }
    #[inline]
    fn encode(&self, encoder: &mut Encoder) {
        encoder.push(&self.to_be_bytes());
    }
}
signed_part!(u128 i128);

impl KeyPart for bool {
    const BITS: usize = 1;
    #[inline]
    fn pack(&self, packer: &mut Packer<'_>) {
        packer.push(u64::from(*self), 1);
    }
    #[inline]
    fn encode(&self, encoder: &mut Encoder) {
        encoder.push(&[u8::from(*self)]);
    }
}

impl KeyPart for char {
    const BITS: usize = 21;
    #[inline]
    fn pack(&self, packer: &mut Packer<'_>) {
        packer.push(u64::from(u32::from(*self)), 21);
    }
    #[inline]
    fn encode(&self, encoder: &mut Encoder) {
        u32::from(*self).encode(encoder);
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
    #[inline]
    fn encode(&self, encoder: &mut Encoder) {
        encoder.push(self);
    }
}

impl<P: KeyPart> KeyPart for Option<P> {
    const BITS: usize = P::BITS.saturating_add(1);
    #[inline]
    fn pack(&self, packer: &mut Packer<'_>) {
        self.is_some().pack(packer);
        match self {
            Some(part) => part.pack(packer),
            None => packer.skip(P::BITS),
        }
    }
    #[inline]
    fn encode(&self, encoder: &mut Encoder) {
        self.is_some().encode(encoder);
        if let Some(part) = self {
            part.encode(encoder);
        }
    }
    fn heap_bytes(&self) -> usize {
        self.as_ref().map_or(0, P::heap_bytes)
    }
}

macro_rules! tuple_parts {
    ($($part:ident $at:tt),*) => {
        impl<$($part: KeyPart),*> KeyPart for ($($part,)*) {
            const BITS: usize = 0usize$(.saturating_add($part::BITS))*;
            #[inline]
            fn pack(&self, packer: &mut Packer<'_>) {
                $(self.$at.pack(packer);)*
            }
            #[inline]
            fn encode(&self, encoder: &mut Encoder) {
                $(self.$at.encode(encoder);)*
            }
            fn heap_bytes(&self) -> usize {
                0usize$(.wrapping_add(self.$at.heap_bytes()))*
            }
        }
    };
}
tuple_parts!(A 0, B 1);
tuple_parts!(A 0, B 1, C 2);
tuple_parts!(A 0, B 1, C 2, D 3);

/// Parts of any length: owner, its bytes, and the number of bytes it has on the heap.
macro_rules! parts_of_any_length {
    ($($owner:ty: $bytes:ident $size:ident),*) => {$(
        impl KeyPart for $owner {
            const BITS: usize = LONG;
            fn pack(&self, _: &mut Packer<'_>) {
                unreachable!("{NO_BITS}");
            }
            #[inline]
            fn encode(&self, encoder: &mut Encoder) {
                encoder.push_delimited(self.$bytes());
            }
            fn heap_bytes(&self) -> usize {
                self.$size()
            }
        }
    )*};
}
parts_of_any_length!(
    String: as_bytes capacity,
    Box<str>: as_bytes len,
    Vec<u8>: as_slice capacity,
    Box<[u8]>: as_ref len
);

#[cfg(feature = "uuid")]
impl KeyPart for uuid::Uuid {
    const BITS: usize = 128;
    #[inline]
    fn pack(&self, packer: &mut Packer<'_>) {
        self.as_u128().pack(packer);
    }
    #[inline]
    fn encode(&self, encoder: &mut Encoder) {
        encoder.push(self.as_bytes());
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

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
    fn variants_take_as_few_bits_as_they_need() {
        assert_eq!([0, 1, 2, 3, 4, 5, 256, 257].map(variant_bits), [0, 0, 1, 2, 2, 3, 8, 9]);
        assert_eq!(most_bits(&[]), 0);
        assert_eq!(most_bits(&[3, LONG, 5]), LONG);
    }

    #[test]
    fn what_follows_an_absent_part_is_where_it_is_behind_a_present_one() {
        let pack = |part: (Option<u16>, u8)| {
            let mut image = [0];
            part.pack(&mut Packer::new(&mut image));
            image[0] >> (64 - <(Option<u16>, u8)>::BITS)
        };
        assert_eq!(pack((None, 0x33)), 0x33);
        assert_eq!(pack((Some(0x1122), 0x33)), 0x0111_2233);
        assert_eq!(<(Option<String>, u8)>::BITS, LONG);
    }
}

//! The types that are keys.

use super::{Bytes, Encoded, Image, ImageOf, Key};
use hotrow_stored::{
    Codec, Malformed, OptionalOf, PairOf, QuadrupleOf, Reader, SchemaBuilder, StoredForm, TripleOf, Type,
    Writer,
};

/// The way to store the parts of a key, of which it is not known when compiling if they can be stored. It is used for those that can.
struct OfParts;

impl OfParts {
    #[inline]
    fn form<K: Key>() -> StoredForm<K> {
        K::stored().expect("asked before")
    }
}

impl<K: Key> Codec<K> for OfParts {
    fn schema(types: &mut SchemaBuilder) -> Type {
        (Self::form::<K>().schema)(types)
    }

    #[inline]
    fn put(key: &K, to: &mut Writer<'_>) {
        (Self::form::<K>().put)(key, to);
    }

    #[inline]
    fn get(from: &mut Reader<'_>) -> Result<K, Malformed> {
        (Self::form::<K>().get)(from)
    }
}

macro_rules! integer_keys {
    ($($unsigned:ident $signed:ident),*) => {$(
        impl Key for $unsigned {
            type Image = u64;
            fn stored() -> Option<StoredForm<Self>> {
                Some(StoredForm::of())
            }
            #[inline]
            fn image(&self) -> u64 {
                *self as u64
            }
        }
        impl Key for $signed {
            type Image = u64;
            fn stored() -> Option<StoredForm<Self>> {
                Some(StoredForm::of())
            }
            #[inline]
            fn image(&self) -> u64 {
                (i64::from(*self) as u64) ^ (1 << 63)
            }
        }
    )*};
}
integer_keys!(u8 i8, u16 i16, u32 i32, u64 i64);

impl Key for u128 {
    type Image = [u64; 2];
    fn stored() -> Option<StoredForm<Self>> {
        Some(StoredForm::of())
    }
    #[inline]
    fn image(&self) -> [u64; 2] {
        [(self >> 64) as u64, *self as u64]
    }
}

impl Key for i128 {
    type Image = [u64; 2];
    fn stored() -> Option<StoredForm<Self>> {
        Some(StoredForm::of())
    }
    #[inline]
    fn image(&self) -> [u64; 2] {
        ((*self as u128) ^ (1 << 127)).image()
    }
}

impl Key for bool {
    type Image = u64;
    fn stored() -> Option<StoredForm<Self>> {
        Some(StoredForm::of())
    }
    #[inline]
    fn image(&self) -> u64 {
        u64::from(*self)
    }
}

impl Key for char {
    type Image = u64;
    fn stored() -> Option<StoredForm<Self>> {
        Some(StoredForm::of())
    }
    #[inline]
    fn image(&self) -> u64 {
        u64::from(u32::from(*self))
    }
}

impl Key for () {
    type Image = u64;
    fn stored() -> Option<StoredForm<Self>> {
        Some(StoredForm::of())
    }
    fn image(&self) -> u64 {
        0
    }
}

#[cfg(feature = "uuid")]
impl Key for uuid::Uuid {
    type Image = [u64; 2];
    fn stored() -> Option<StoredForm<Self>> {
        Some(StoredForm::of())
    }
    #[inline]
    fn image(&self) -> [u64; 2] {
        self.as_u64_pair().into()
    }
}

macro_rules! keys_of_any_length {
    ($($owner:ty: $bytes:ident $size:ident),*) => {$(
        impl Key for $owner {
            type Image = Bytes;
            fn stored() -> Option<StoredForm<Self>> {
                Some(StoredForm::of())
            }
            #[inline(always)]
            fn image(&self) -> Encoded<'_> {
                Encoded::new(self.$bytes())
            }
            fn heap_bytes(&self) -> usize {
                self.$size()
            }
            crate::key::start_of_bytes!($bytes);
        }
    )*};
}
keys_of_any_length!(
    String: as_bytes capacity,
    Box<str>: as_bytes len,
    Vec<u8>: as_slice capacity,
    Box<[u8]>: as_ref len
);

/// `None` comes first.
impl<K: Key> Key for Option<K> {
    type Image = <u64 as Image>::With<K::Image>;
    fn stored() -> Option<StoredForm<Self>> {
        K::stored().map(|_| StoredForm::by::<OptionalOf<OfParts>>())
    }
    #[inline]
    fn image(&self) -> ImageOf<'_, Self> {
        match self {
            None => u64::pair::<K::Image>(0, K::Image::least()),
            Some(key) => u64::pair::<K::Image>(1, key.image()),
        }
    }
    fn heap_bytes(&self) -> usize {
        self.as_ref().map_or(0, K::heap_bytes)
    }
}

impl<A: Key, B: Key> Key for (A, B) {
    type Image = <A::Image as Image>::With<B::Image>;
    fn stored() -> Option<StoredForm<Self>> {
        (A::stored().is_some() && B::stored().is_some()).then(StoredForm::by::<PairOf<OfParts, OfParts>>)
    }
    #[inline]
    fn image(&self) -> ImageOf<'_, Self> {
        A::Image::pair::<B::Image>(self.0.image(), self.1.image())
    }
    fn heap_bytes(&self) -> usize {
        self.0.heap_bytes().wrapping_add(self.1.heap_bytes())
    }
}

/// The kind of the images of pairs of keys.
type Pair<A, B> = <<A as Key>::Image as Image>::With<<B as Key>::Image>;

impl<A: Key, B: Key, C: Key> Key for (A, B, C) {
    type Image = <A::Image as Image>::With<Pair<B, C>>;
    fn stored() -> Option<StoredForm<Self>> {
        (A::stored().is_some() && B::stored().is_some() && C::stored().is_some())
            .then(StoredForm::by::<TripleOf<OfParts, OfParts, OfParts>>)
    }
    #[inline]
    fn image(&self) -> ImageOf<'_, Self> {
        let rest = B::Image::pair::<C::Image>(self.1.image(), self.2.image());
        A::Image::pair::<Pair<B, C>>(self.0.image(), rest)
    }
    fn heap_bytes(&self) -> usize {
        self.0.heap_bytes().wrapping_add(self.1.heap_bytes()).wrapping_add(self.2.heap_bytes())
    }
}

impl<A: Key, B: Key, C: Key, D: Key> Key for (A, B, C, D) {
    type Image = <A::Image as Image>::With<<B::Image as Image>::With<Pair<C, D>>>;
    fn stored() -> Option<StoredForm<Self>> {
        (A::stored().is_some() && B::stored().is_some() && C::stored().is_some() && D::stored().is_some())
            .then(StoredForm::by::<QuadrupleOf<OfParts, OfParts, OfParts, OfParts>>)
    }
    #[inline]
    fn image(&self) -> ImageOf<'_, Self> {
        let rest = C::Image::pair::<D::Image>(self.2.image(), self.3.image());
        let rest = B::Image::pair::<Pair<C, D>>(self.1.image(), rest);
        A::Image::pair::<<B::Image as Image>::With<Pair<C, D>>>(self.0.image(), rest)
    }
    fn heap_bytes(&self) -> usize {
        let (a, b, c, d) = self;
        let rest = c.heap_bytes().wrapping_add(d.heap_bytes());
        a.heap_bytes().wrapping_add(b.heap_bytes()).wrapping_add(rest)
    }
}

//! Short strings in place.

use crate::key::{Encoder, Key, KeyPart, Packer, words};
use hotrow_core::{Inline, Plain, Value};
use hotrow_stored::{Malformed, Reader, SchemaBuilder, Stored, StoredForm, Type, Writer};
use std::fmt;
use std::str;

/// A string of at most `N` bytes, stored in place: `Copy`, without a pointer, exactly `N` bytes large.
///
/// Zero bytes follow the string, and the string itself holds none. So the text needs no separate length, and its
/// bytes have the order of its string.
///
/// ```
/// use hotrow_tables::Text;
///
/// let name: Text<16> = "BARBARBAR".try_into()?;
/// assert_eq!(name, "BARBARBAR");
/// assert_eq!(name.len(), 9);
/// assert!(Text::<4>::try_from("too long").is_err());
/// # Ok::<(), hotrow_tables::TextError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(C)]
pub struct Text<const N: usize> {
    /// Valid UTF-8 without NUL, then zeros.
    bytes: [u8; N],
}

/// The reason that a string cannot be a [`Text`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TextError {
    /// The string is longer than the text's capacity.
    #[error("a string of {length} bytes does not fit into a text of at most {capacity} bytes")]
    TooLong {
        /// The string's length in bytes.
        length: usize,
        /// The most bytes the text can hold.
        capacity: usize,
    },
    /// The string contains a NUL character, which a text cannot hold.
    #[error("a text cannot hold the NUL character, which the string has at byte {position}")]
    ContainsNul {
        /// The position of the first NUL, in bytes.
        position: usize,
    },
}

impl<const N: usize> Text<N> {
    /// The empty text, below all others.
    pub const EMPTY: Self = Self { bytes: [0; N] };

    /// The greatest text: the upper end of a range of keys.
    pub const MAX: Self = Self { bytes: greatest() };

    /// The longest prefix of `string` that is a text: it ends before the first NUL, and at a character's border, so
    /// that at most `N` bytes remain.
    ///
    /// Different strings may have the same prefix, so do not make keys from it: a row would be found under another name, or
    /// two names share one row. [`try_from`](Self::try_from) refuses what does not fit; a `String` key takes any length.
    pub fn prefix_of(string: &str) -> Self {
        let end = string.bytes().position(|byte| byte == 0).unwrap_or(string.len());
        let mut end = end.min(N);
        while !string.is_char_boundary(end) {
            end -= 1;
        }
        let mut text = Self::EMPTY;
        text.bytes[..end].copy_from_slice(&string.as_bytes()[..end]);
        text
    }

    /// The string.
    pub fn as_str(&self) -> &str {
        str::from_utf8(self.as_bytes()).expect("a text is made from strings only")
    }

    /// The string's bytes, without the zeros after it.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len()]
    }

    /// The string's length in bytes. Takes logarithmic time.
    pub fn len(&self) -> usize {
        self.bytes.partition_point(|byte| *byte != 0)
    }

    /// True if the string is empty.
    pub fn is_empty(&self) -> bool {
        self.bytes.first().is_none_or(|byte| *byte == 0)
    }
}

/// The greatest valid UTF-8 string of `N` bytes: greatest four-byte characters, then the greatest one of the
/// remaining length.
const fn greatest<const N: usize>() -> [u8; N] {
    const BY_LENGTH: [&[u8]; 5] =
        [b"", "\u{7f}".as_bytes(), "\u{7ff}".as_bytes(), "\u{ffff}".as_bytes(), "\u{10ffff}".as_bytes()];
    let mut bytes = [0; N];
    let mut at = 0;
    while at < N {
        let length = if N - at < 4 { N - at } else { 4 };
        let mut byte = 0;
        while byte < length {
            bytes[at + byte] = BY_LENGTH[length][byte];
            byte += 1;
        }
        at += length;
    }
    bytes
}

impl<const N: usize> Stored for Text<N> {
    fn schema(types: &mut SchemaBuilder) -> Type {
        Type::checked(format!("up to {N} bytes of"), String::schema(types))
    }

    #[inline]
    fn put(&self, to: &mut Writer<'_>) {
        to.text_bytes(self.as_bytes());
    }

    fn get(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        from.text()?.try_into().map_err(|error: TextError| Malformed::new(error.to_string()))
    }
}

impl<const N: usize> TryFrom<&str> for Text<N> {
    type Error = TextError;

    fn try_from(string: &str) -> Result<Self, TextError> {
        if let Some(position) = string.bytes().position(|byte| byte == 0) {
            return Err(TextError::ContainsNul { position });
        }
        if string.len() > N {
            return Err(TextError::TooLong { length: string.len(), capacity: N });
        }
        Ok(Self::prefix_of(string))
    }
}

impl<const N: usize> str::FromStr for Text<N> {
    type Err = TextError;

    fn from_str(string: &str) -> Result<Self, TextError> {
        Self::try_from(string)
    }
}

impl<const N: usize> Default for Text<N> {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl<const N: usize> fmt::Debug for Text<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl<const N: usize> fmt::Display for Text<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.as_str(), f)
    }
}

impl<const N: usize> PartialEq<str> for Text<N> {
    fn eq(&self, other: &str) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl<const N: usize> PartialEq<&str> for Text<N> {
    fn eq(&self, other: &&str) -> bool {
        *self == **other
    }
}

/// Packs bytes into an image, eight at a time.
fn pack_bytes(bytes: &[u8], packer: &mut Packer<'_>) {
    let (whole, rest) = bytes.as_chunks::<8>();
    for word in whole {
        packer.push(u64::from_be_bytes(*word), 64);
    }
    for byte in rest {
        packer.push(u64::from(*byte), 8);
    }
}

/// The image of `N` bytes, in the `WORDS` words that they need.
fn image<const N: usize, const WORDS: usize>(bytes: &[u8; N]) -> [u64; WORDS] {
    let mut image = [0; WORDS];
    pack_bytes(bytes, &mut Packer::new(&mut image));
    image
}

impl<const N: usize> KeyPart for Text<N> {
    const BITS: usize = 8 * N;
    #[inline]
    fn pack(&self, packer: &mut Packer<'_>) {
        pack_bytes(&self.bytes, packer);
    }
    #[inline]
    fn encode(&self, encoder: &mut Encoder) {
        encoder.push(&self.bytes);
    }
}

// The number of words of an image cannot be computed from a generic `N`, so each length has an implementation of its
// own.
macro_rules! keys_of_bytes {
    ($($length:literal)*) => {$(
        impl Key for Text<$length> {
            type Image = [u64; words(8 * $length)];
            fn stored() -> Option<StoredForm<Self>> {
                Some(StoredForm::of())
            }
            #[inline]
            fn image(&self) -> [u64; words(8 * $length)] {
                image(&self.bytes)
            }
        }
        impl Key for [u8; $length] {
            type Image = [u64; words(8 * $length)];
            fn stored() -> Option<StoredForm<Self>> {
                Some(StoredForm::of())
            }
            #[inline]
            fn image(&self) -> [u64; words(8 * $length)] {
                image(self)
            }
        }
    )*};
}
keys_of_bytes! {
    1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32
    33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63 64
}

// SAFETY: a text is an array of bytes: all of them are initialised, none is padding, none is a pointer.
unsafe impl<const N: usize> Plain for Text<N> {}

impl<const N: usize> Value for Text<N> {
    type Cell = Inline<Self>;
    fn stored() -> Option<StoredForm<Self>> {
        Some(StoredForm::of())
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_text_holds_the_string_it_was_made_from() {
        for string in ["", "a", "ab", "éa", "12345678"] {
            let text = Text::<8>::try_from(string).unwrap();
            assert_eq!(text.as_str(), string);
            assert_eq!(text.len(), string.len());
            assert_eq!(text.is_empty(), string.is_empty());
            assert_eq!(format!("{text} {text:?}"), format!("{string} {string:?}"));
            assert_eq!(text, string);
            assert_eq!(string.parse(), Ok(text));
        }
        assert_eq!(Text::<8>::default(), "");
        assert_eq!(size_of::<Text<9>>(), 9);
        assert!(Text::<0>::EMPTY.is_empty());
    }

    #[test]
    fn a_text_that_does_not_fit_is_an_error_that_says_why() {
        let too_long = Text::<4>::try_from("12345").unwrap_err();
        assert_eq!(too_long, TextError::TooLong { length: 5, capacity: 4 });
        assert_eq!(too_long.to_string(), "a string of 5 bytes does not fit into a text of at most 4 bytes");
        let nul = Text::<4>::try_from("a\0b").unwrap_err();
        assert_eq!(nul, TextError::ContainsNul { position: 1 });
        assert!(nul.to_string().contains("at byte 1"));
    }

    #[test]
    fn a_prefix_keeps_whole_characters() {
        assert_eq!(Text::<4>::prefix_of("abcdef"), "abcd");
        assert_eq!(Text::<4>::prefix_of("abcé"), "abc");
        assert_eq!(Text::<4>::prefix_of("ab\0d"), "ab");
        assert_eq!(Text::<3>::prefix_of("\u{10ffff}"), "");
    }

    #[test]
    fn order_and_image_are_those_of_the_string() {
        let strings = ["", "A", "AB", "ABBA", "B", "\u{1}", "z", "é", "ééé", "\u{10ffff}a"];
        for a in strings {
            for b in strings {
                let (x, y) = (Text::<9>::prefix_of(a), Text::<9>::prefix_of(b));
                assert_eq!(x.cmp(&y), a.cmp(b));
                assert_eq!(x.image().cmp(&y.image()), a.cmp(b), "{a:?} {b:?}");
            }
        }
        let _: [u64; 2] = Text::<9>::EMPTY.image();
        assert_eq!([1u8, 2, 3].image(), [0x0102_0300_0000_0000]);
    }

    #[test]
    fn the_greatest_text_is_a_string_above_all_others() {
        fn check<const N: usize>() {
            assert_eq!(Text::<N>::MAX.as_str().len(), N);
            assert!(Text::<N>::MAX >= Text::prefix_of("\u{10ffff}\u{10ffff}"));
            assert!(Text::<N>::MAX >= Text::prefix_of("\u{ffff}"));
            assert!(Text::<N>::MAX >= Text::prefix_of("\u{7ff}"));
        }
        check::<1>();
        check::<2>();
        check::<3>();
        check::<4>();
        check::<5>();
        check::<7>();
        check::<8>();
    }

    #[test]
    fn a_text_is_packed_into_a_derived_key_behind_other_parts() {
        let mut words = [0; 2];
        let mut packer = Packer::new(&mut words);
        7u8.pack(&mut packer);
        Text::<9>::prefix_of("abcdefghi").pack(&mut packer);
        assert_eq!(words, [0x0761_6263_6465_6667, 0x6869_0000_0000_0000]);
    }
}

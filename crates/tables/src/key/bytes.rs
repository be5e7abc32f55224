//! The images of long keys: strings of bytes.
//!
//! # Composite keys
//!
//! The image of a composite key is the images of its parts, one after the other. So that a part's end is where it must be
//! for the order, a part of any length is *delimited*: each zero byte in it is followed by `0xff`, and the part is followed
//! by `0x00 0x01`. The end is then below everything that a longer part may have there, as `Ord` of tuples demands, and no
//! delimited image begins another one. Parts of fixed size are what they are, most significant byte first.
//!
//! # Edges
//!
//! A range of the first parts of pairs ends behind all pairs with the same first part. There is no greatest string of
//! bytes that begins with given ones. So an image may be *behind*: it is above all that begins with its bytes. No key has
//! such an image; it is the bound of a range.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;

/// The kind of images of [long](Encoded) keys.
#[derive(Debug)]
pub enum Bytes {}

/// The number of bytes that an image holds in place.
const SHORT: usize = 46;

/// The image of a key of any length: bytes, whose order is the order of keys.
///
/// The image of a string is its bytes. An [`Encoder`] makes images of several parts.
#[derive(Clone)]
pub struct Encoded<'k> {
    bytes: Content<'k>,
    /// True if no other image of the same type begins with these bytes.
    is_delimited: bool,
    /// True if the image is above all that begin with its bytes.
    is_behind: bool,
}

#[derive(Clone)]
enum Content<'k> {
    Borrowed(&'k [u8]),
    Short { length: u8, bytes: [u8; SHORT] },
    Long(Vec<u8>),
}

impl Content<'_> {
    #[inline(always)]
    fn as_slice(&self) -> &[u8] {
        match self {
            Content::Borrowed(bytes) => bytes,
            Content::Short { length, bytes } => &bytes[..usize::from(*length).min(SHORT)],
            Content::Long(bytes) => bytes,
        }
    }

    fn copied<'k>(bytes: &[u8]) -> Content<'k> {
        if bytes.len() > SHORT {
            return Content::Long(bytes.to_vec());
        }
        let mut short = [0; SHORT];
        short[..bytes.len()].copy_from_slice(bytes);
        Content::Short { length: bytes.len() as u8, bytes: short }
    }
}

impl<'k> Encoded<'k> {
    /// The image of a key that consists of these bytes.
    #[inline(always)]
    pub fn new(bytes: &'k [u8]) -> Self {
        Self { bytes: Content::Borrowed(bytes), is_delimited: false, is_behind: false }
    }

    /// The image's bytes.
    #[inline(always)]
    pub fn bytes(&self) -> &[u8] {
        self.bytes.as_slice()
    }

    /// True if the image is above all that begin with its bytes: the bound of a range.
    #[inline]
    pub(crate) fn is_behind(&self) -> bool {
        self.is_behind
    }

    /// An image that is the bound of a range, or a copy of another one.
    #[inline]
    pub(crate) fn bound(bytes: &'k [u8], is_behind: bool) -> Self {
        Self { bytes: Content::Borrowed(bytes), is_delimited: false, is_behind }
    }

    /// A copy that borrows nothing.
    pub(crate) fn copied(bytes: &[u8]) -> Self {
        Self { bytes: Content::copied(bytes), is_delimited: false, is_behind: false }
    }

    pub(super) fn to_owned<'l>(&self) -> Encoded<'l> {
        let Self { is_delimited, is_behind, .. } = *self;
        Encoded { bytes: Content::copied(self.bytes()), is_delimited, is_behind }
    }

    /// Makes the image behind all that begin with these bytes.
    pub(super) fn behind(self, is_behind: bool) -> Self {
        Self { is_behind, ..self }
    }

    /// Compares two images.
    #[inline(always)]
    pub(crate) fn compare(&self, other: &Encoded<'_>) -> Ordering {
        if self.is_behind | other.is_behind {
            return self.compare_edges(other);
        }
        self.bytes().cmp(other.bytes())
    }

    #[cold]
    fn compare_edges(&self, other: &Encoded<'_>) -> Ordering {
        let (a, b) = (self.bytes(), other.bytes());
        let common = a.len().min(b.len());
        a[..common].cmp(&b[..common]).then_with(|| match a.len().cmp(&b.len()) {
            Ordering::Equal => self.is_behind.cmp(&other.is_behind),
            Ordering::Less if self.is_behind => Ordering::Greater,
            Ordering::Greater if other.is_behind => Ordering::Less,
            order => order,
        })
    }

    /// Compares the image with others that all have the same first `count` bytes, of which `other` is one. `Equal`: it has
    /// these bytes, too.
    #[inline(always)]
    pub(super) fn compare_start(&self, other: &[u8], count: usize) -> Ordering {
        let other = &other[..count.min(other.len())];
        let start = &self.bytes()[..self.bytes().len().min(other.len())];
        match start.cmp(&other[..start.len()]) {
            Ordering::Equal if start.len() == other.len() => Ordering::Equal,
            Ordering::Equal if self.is_behind => Ordering::Greater,
            Ordering::Equal => Ordering::Less,
            order => order,
        }
    }

    /// Returns the eight bytes behind the first `from` ones as a number. Images that have the same first `from` bytes have
    /// the order of these numbers, as far as the numbers differ.
    #[inline(always)]
    pub(super) fn word(&self, from: usize) -> u64 {
        let bytes = self.bytes();
        if let Some(word) = bytes.get(from..).and_then(|rest| rest.first_chunk()) {
            return u64::from_be_bytes(*word);
        }
        // The bytes that are left become the highest ones. No copy: it would be read back before it is written.
        let rest = bytes.len().saturating_sub(from);
        let word = match bytes.last_chunk() {
            Some(last) => u64::from_be_bytes(*last),
            None => bytes.iter().fold(0, |word, byte| word << 8 | u64::from(*byte)),
        };
        let free = 64 - 8 * rest as u32;
        let above = word.checked_shl(free).unwrap_or(0);
        if self.is_behind { above | u64::MAX.checked_shr(64 - free).unwrap_or(0) } else { above }
    }

    /// Appends bytes that have the order of images, none of which begins with another one.
    pub(super) fn put_name(&self, name: &mut Vec<u8>) {
        for &byte in self.bytes() {
            match byte {
                0 => name.extend([0, 0xff]),
                0xff => name.extend([0xff, 0]),
                _ => name.push(byte),
            }
        }
        // Below any byte that may come here, or above all.
        name.extend(if self.is_behind { [0xff, 0xff] } else { [0, 1] });
    }
}

impl PartialEq for Encoded<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Encoded<'_> {}

impl PartialOrd for Encoded<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Encoded<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.compare(other)
    }
}

impl fmt::Debug for Encoded<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = if self.is_behind { "..." } else { "" };
        write!(f, "\"{}\"{end}", self.bytes().escape_ascii())
    }
}

/// Returns the number of leading bytes that are the same.
pub(super) fn common(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// Makes the image of a composite key, part by part.
#[derive(Debug, Clone)]
pub struct Encoder {
    /// The first bytes, until there are more than these.
    short: [u8; SHORT],
    length: usize,
    /// All bytes, if they are more.
    long: Vec<u8>,
}

impl Default for Encoder {
    fn default() -> Self {
        Self { short: [0; SHORT], length: 0, long: Vec::new() }
    }
}

impl Encoder {
    /// An encoder without parts.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a part whose length depends on its type only, or that is delimited already.
    #[inline]
    pub fn push(&mut self, bytes: &[u8]) {
        let length = self.length + bytes.len();
        match self.short.get_mut(self.length..length) {
            Some(room) => room.copy_from_slice(bytes),
            None => self.push_long(bytes),
        }
        self.length = length;
    }

    #[cold]
    fn push_long(&mut self, bytes: &[u8]) {
        if self.long.is_empty() {
            self.long.reserve(self.length + bytes.len());
            self.long.extend_from_slice(&self.short[..self.length]);
        }
        self.long.extend_from_slice(bytes);
    }

    /// Appends a part of any length, and its end.
    pub fn push_delimited(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while let Some(zero) = rest.iter().position(|byte| *byte == 0) {
            self.push(&rest[..=zero]);
            self.push(&[0xff]);
            rest = &rest[zero + 1..];
        }
        self.push(rest);
        self.push(&[0, 1]);
    }

    /// Appends an image as a part.
    pub(super) fn push_image(&mut self, image: &Encoded<'_>) {
        debug_assert!(!image.is_behind, "the bound of a range is no part of a key");
        if image.is_delimited { self.push(image.bytes()) } else { self.push_delimited(image.bytes()) }
    }

    /// The image of the parts.
    pub fn finish<'k>(self) -> Encoded<'k> {
        let bytes = if self.length > SHORT {
            Content::Long(self.long)
        } else {
            Content::Short { length: self.length as u8, bytes: self.short }
        };
        Encoded { bytes, is_delimited: true, is_behind: false }
    }
}

impl<'k> From<Cow<'k, [u8]>> for Encoded<'k> {
    /// The image of a key that consists of these bytes.
    fn from(bytes: Cow<'k, [u8]>) -> Self {
        let bytes = match bytes {
            Cow::Borrowed(bytes) => Content::Borrowed(bytes),
            Cow::Owned(bytes) => Content::Long(bytes),
        };
        Self { bytes, is_delimited: false, is_behind: false }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const SAMPLES: [&[u8]; 14] = [
        b"",
        b"\0",
        b"\0\0",
        b"\0\x01",
        b"\0\xff",
        b"\x01",
        b"a",
        b"a\0",
        b"a\0b",
        b"a\xff",
        b"ab",
        b"\xff",
        b"\xff\0",
        b"\xff\xff",
    ];

    /// All images of samples: of their bytes, and behind all that begin with these.
    fn images() -> Vec<Encoded<'static>> {
        let mut images: Vec<_> = SAMPLES.into_iter().map(Encoded::new).collect();
        images.extend(SAMPLES.map(|bytes| Encoded::new(bytes).behind(true)));
        images
    }

    #[test]
    fn an_image_that_is_behind_is_above_all_that_begin_with_its_bytes_and_no_others() {
        for a in SAMPLES {
            for b in SAMPLES {
                assert_eq!(Encoded::new(a).compare(&Encoded::new(b)), a.cmp(b));
                let is_above = b.starts_with(a) || b < a;
                assert_eq!(Encoded::new(b) < Encoded::new(a).behind(true), is_above, "{a:?} {b:?}");
            }
        }
    }

    #[test]
    fn names_have_the_order_of_images_and_none_begins_another() {
        for a in images() {
            for b in images() {
                let (mut x, mut y) = (Vec::new(), Vec::new());
                a.put_name(&mut x);
                b.put_name(&mut y);
                assert_eq!(x.cmp(&y), a.cmp(&b), "{a:?} {b:?}");
                assert!(a == b || !x.starts_with(&y), "{a:?} {b:?}");
            }
        }
    }

    #[test]
    fn words_have_the_order_of_images_as_far_as_they_differ() {
        for a in images() {
            for b in images() {
                for from in 0..3 {
                    if a.compare_start(b.bytes(), from).is_eq() && b.bytes().len() >= from {
                        let words = a.word(from).cmp(&b.word(from));
                        assert!(words.is_eq() || words == a.cmp(&b), "{a:?} {b:?} {from}");
                    } else if b.bytes().len() >= from {
                        assert_eq!(a.compare_start(b.bytes(), from), a.cmp(&b), "{a:?} {b:?} {from}");
                    }
                }
            }
        }
    }

    #[test]
    fn parts_are_delimited_so_that_the_whole_has_the_order_of_tuples() {
        let encode = |parts: [&[u8]; 2]| {
            let mut encoder = Encoder::new();
            parts.into_iter().for_each(|part| encoder.push_delimited(part));
            encoder.finish()
        };
        for a in SAMPLES {
            for b in SAMPLES {
                for x in SAMPLES {
                    for y in SAMPLES {
                        assert_eq!(encode([a, x]).cmp(&encode([b, y])), (a, x).cmp(&(b, y)));
                    }
                }
            }
        }
    }

    #[test]
    fn an_encoder_takes_any_number_of_bytes() {
        let all: Vec<u8> = (1..=200).collect();
        for step in [1, 7, SHORT - 1, SHORT, SHORT + 1] {
            for length in [0, 1, SHORT - 1, SHORT, SHORT + 1, 200] {
                let mut encoder = Encoder::new();
                all[..length].chunks(step).for_each(|part| encoder.push(part));
                let image = encoder.finish();
                assert_eq!(image.bytes(), &all[..length]);
                assert_eq!(image.to_owned().bytes(), image.bytes());
            }
        }
        assert_eq!(
            format!("{:?} {:?}", Encoded::new(b"a\0"), Encoded::new(b"b").behind(true)),
            r#""a\x00" "b"..."#
        );
    }
}

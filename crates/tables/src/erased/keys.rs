//! Keys of bytes, and the two types by which tables hold them.

use super::row::Row;
use crate::key::{Bytes, Encoded, Key};
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Bound;

/// A key of eight bytes: a word with the order of its bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct WordKey(u64);

/// A key of any length. Up to 24 bytes are held in place.
#[derive(Clone)]
pub(crate) struct BytesKey(Row);

/// The borrowed form of a [`BytesKey`].
#[derive(PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct BorrowedKey([u8]);

fn write_escaped(bytes: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(f, "\"{}\"", bytes.escape_ascii())
}

impl WordKey {
    /// The number of bytes of each key.
    pub(super) const BYTES: usize = size_of::<u64>();

    #[inline(always)]
    pub(super) fn new(bytes: &[u8]) -> Option<Self> {
        Some(Self(u64::from_be_bytes(bytes.try_into().ok()?)))
    }

    /// The key's bytes.
    #[inline(always)]
    pub(super) fn bytes(self) -> [u8; Self::BYTES] {
        self.0.to_be_bytes()
    }

    /// The bound of the words that corresponds to a bound of bytes, which may be of any length. `is_low` is true for the
    /// lower end of a range.
    fn bound(bound: Bound<&[u8]>, is_low: bool) -> Bound<Self> {
        let (bytes, included) = match bound {
            Bound::Unbounded => return Bound::Unbounded,
            Bound::Included(bytes) => (bytes, true),
            Bound::Excluded(bytes) => (bytes, false),
        };
        let mut word = [0; Self::BYTES];
        let common = bytes.len().min(Self::BYTES);
        word[..common].copy_from_slice(&bytes[..common]);
        let included = match bytes.len().cmp(&Self::BYTES) {
            // The word is above the bytes, and all words below it are below the bytes.
            Ordering::Less => is_low,
            Ordering::Equal => included,
            // The word is below the bytes, and all words above it are above the bytes.
            Ordering::Greater => !is_low,
        };
        let word = Self(u64::from_be_bytes(word));
        if included { Bound::Included(word) } else { Bound::Excluded(word) }
    }

    /// The range of words that lie between two bounds of bytes.
    pub(super) fn range(low: Bound<&[u8]>, high: Bound<&[u8]>) -> (Bound<Self>, Bound<Self>) {
        (Self::bound(low, true), Self::bound(high, false))
    }
}

impl fmt::Debug for WordKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_escaped(&self.bytes(), f)
    }
}

impl Key for WordKey {
    type Image = u64;
    #[inline(always)]
    fn image(&self) -> u64 {
        self.0
    }
}

impl BytesKey {
    #[inline(always)]
    pub(super) fn new(bytes: &[u8]) -> Self {
        Self(Row::new(bytes))
    }
}

impl AsRef<[u8]> for BytesKey {
    #[inline(always)]
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl PartialEq for BytesKey {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.as_ref() == other.as_ref()
    }
}

impl Eq for BytesKey {}

impl PartialOrd for BytesKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for BytesKey {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_ref().cmp(other.as_ref())
    }
}

impl Hash for BytesKey {
    #[inline(always)]
    fn hash<H: Hasher>(&self, state: &mut H) {
        BorrowedKey::new(self.as_ref()).hash(state);
    }
}

impl fmt::Debug for BytesKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_escaped(self.as_ref(), f)
    }
}

impl Key for BytesKey {
    type Image = Bytes;
    #[inline(always)]
    fn image(&self) -> Encoded<'_> {
        Encoded::new(self.as_ref())
    }
    fn heap_bytes(&self) -> usize {
        hotrow_core::Value::heap_bytes(&self.0)
    }
    crate::key::start_of_bytes!(as_ref);
}

impl BorrowedKey {
    #[inline(always)]
    pub(super) fn new(bytes: &[u8]) -> &Self {
        // SAFETY: the type is transparent around a slice of bytes.
        unsafe { &*(std::ptr::from_ref(bytes) as *const Self) }
    }
}

impl AsRef<[u8]> for BorrowedKey {
    #[inline(always)]
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl From<&BorrowedKey> for BytesKey {
    fn from(key: &BorrowedKey) -> Self {
        Self::new(&key.0)
    }
}

/// Without the length that slices hash first: a table hashes one key at a time.
impl Hash for BorrowedKey {
    #[inline(always)]
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write(&self.0);
    }
}

impl fmt::Debug for BorrowedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_escaped(&self.0, f)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::ops::RangeBounds;

    fn bounds(bytes: &[u8]) -> [Bound<&[u8]>; 3] {
        [Bound::Included(bytes), Bound::Excluded(bytes), Bound::Unbounded]
    }

    #[test]
    fn words_lie_between_two_bounds_of_bytes_if_their_bytes_do() {
        let words: [u64; 9] = [0, 1, 2, 255, 256, 257, u64::MAX / 2, u64::MAX - 1, u64::MAX];
        let whole = words.map(|word| word.to_be_bytes().to_vec());
        let mut bytes = whole.to_vec();
        bytes.extend([0, 3, 7].iter().flat_map(|length| whole.iter().map(|word| word[..*length].to_vec())));
        bytes
            .extend([0, 255].iter().flat_map(|tail| whole.iter().map(|word| [&word[..], &[*tail]].concat())));
        for (low, high) in bytes.iter().flat_map(|low| bytes.iter().map(move |high| (low, high))) {
            for (low, high) in bounds(low).iter().flat_map(|low| bounds(high).map(|high| (*low, high))) {
                let range = WordKey::range(low, high);
                for word in words {
                    let expected = RangeBounds::<[u8]>::contains(&(low, high), &word.to_be_bytes()[..]);
                    assert_eq!(range.contains(&WordKey(word)), expected, "{word} in {low:?} {high:?}");
                }
            }
        }
    }

    #[test]
    fn keys_are_shown_as_their_bytes() {
        assert_eq!(format!("{:?} {:?}", BytesKey::new(b"a\0"), BorrowedKey::new(b"b")), r#""a\x00" "b""#);
        assert_eq!(format!("{:?}", WordKey(7)), r#""\x00\x00\x00\x00\x00\x00\x00\x07""#);
        assert_eq!(WordKey::new(b"12345678").map(WordKey::bytes), Some(*b"12345678"));
        assert_eq!(WordKey::new(b"1234567"), None);
    }
}

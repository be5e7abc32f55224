//! Images of eight bytes or more, which are searched for without a branch for each case.

use super::bytes::Encoded;

/// The bytes of a key's image, eight or more: the common case, in which a search needs no branches.
#[derive(Debug, Clone, Copy)]
pub(super) struct LongEnough<'k>(&'k [u8]);

impl<'k> LongEnough<'k> {
    #[inline(always)]
    pub(super) fn new(image: &'k Encoded<'_>) -> Option<Self> {
        let bytes = image.bytes();
        (bytes.len() >= 8 && !image.is_behind()).then_some(Self(bytes))
    }

    /// Returns the eight bytes from here on, the first of them as the lowest one.
    #[inline(always)]
    pub(super) fn chunk(self, from: usize) -> Option<u64> {
        self.0.get(from..from + 8)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
    }

    /// Returns the first chunk.
    #[inline(always)]
    pub(super) fn first(self) -> u64 {
        self.0.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
    }

    /// As [`Encoded::word`].
    #[inline(always)]
    pub(super) fn word(self, from: usize) -> u64 {
        // The eight bytes from here on, or the last ones without those before.
        let last = self.0.len() - 8;
        let start = from.min(last);
        let word = self.0[start..].first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes));
        let before = 8 * (from - start);
        if before < 64 { word << before } else { 0 }
    }

    /// True if the image is equal to another one. Up to 32 bytes are compared without a call.
    #[inline(always)]
    pub(super) fn is(self, other: &Encoded<'_>) -> bool {
        let (a, b) = (self.0, other.bytes());
        if a.len() != b.len() || other.is_behind() {
            return false;
        }
        match (a.first_chunk::<16>(), b.first_chunk::<16>(), a.last_chunk::<16>(), b.last_chunk::<16>()) {
            (Some(first), Some(other_first), Some(last), Some(other_last)) if a.len() <= 32 => {
                (first == other_first) & (last == other_last)
            }
            _ => a == b,
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn images_that_are_long_enough_have_the_same_words_and_are_equal_to_themselves_only() {
        for length in 0..50 {
            let mut bytes: Vec<u8> = (1..=length).collect();
            let copy = bytes.clone();
            let image = Encoded::new(&copy);
            let Some(enough) = LongEnough::new(&image) else {
                assert!(length < 8);
                continue;
            };
            (0..300).for_each(|from| assert_eq!(enough.word(from), image.word(from), "{length} {from}"));
            assert!(enough.is(&Encoded::new(&bytes)));
            assert!(!enough.is(&Encoded::new(&bytes).behind(true)));
            assert!(!enough.is(&Encoded::new(&bytes[1..])));
            for at in 0..bytes.len() {
                bytes[at] ^= 1;
                assert!(!enough.is(&Encoded::new(&bytes)), "{length} {at}");
                bytes[at] ^= 1;
            }
        }
        assert!(LongEnough::new(&Encoded::new(b"12345678").behind(true)).is_none());
    }
}

//! The starts of long keys, which records hold beside them.

use super::bytes::Encoded;

/// The number of a key's bytes that its record copies. With these the record of a string and of a row of one word takes 64
/// bytes.
const START: usize = 20;

/// The first bytes of a key that consists of bytes, in the key's record, and zeros behind them if there are fewer.
#[derive(Debug, Default)]
pub struct KeyStart([u8; START]);

impl KeyStart {
    /// The start of a key.
    pub(crate) fn new(key: &[u8]) -> Self {
        let mut start = [0; START];
        start.iter_mut().zip(key).for_each(|(to, from)| *to = *from);
        Self(start)
    }

    /// Returns the image of `key`, the bytes of which this is the start. A key that is not longer than its start is read from
    /// here, so that the memory that it owns is not touched.
    #[inline(always)]
    pub(crate) fn image<'k>(&'k self, key: &'k [u8]) -> Encoded<'k> {
        Encoded::new(self.0.get(..key.len()).unwrap_or(key))
    }

    /// True if `bytes` are equal to `key`, the bytes of which this is the start. The rest is read only if the start is equal.
    #[inline(always)]
    pub(crate) fn is_of(&self, key: &[u8], bytes: &[u8]) -> bool {
        if bytes.len() != key.len() {
            return false;
        }
        match bytes.split_first_chunk() {
            Some((first, rest)) => *first == self.0 && (rest.is_empty() || *rest == key[START..]),
            None => self.0[..bytes.len()] == *bytes,
        }
    }
}

/// The methods of a key by which its record's copy of its first bytes is made and used. `$bytes` names the method that returns
/// the bytes of which the key, and its image, consist.
macro_rules! start_of_bytes {
    ($bytes:ident) => {
        fn record_start(&self) -> $crate::key::StartOf<Self> {
            $crate::key::KeyStart::new(self.$bytes())
        }
        #[inline(always)]
        fn image_by_start<'k>(&'k self, start: &'k $crate::key::StartOf<Self>) -> $crate::key::Encoded<'k> {
            start.image(self.$bytes())
        }
        #[inline(always)]
        fn is_by_start(&self, other: &Self, start: &$crate::key::StartOf<Self>) -> bool {
            start.is_of(other.$bytes(), self.$bytes())
        }
    };
}
pub(crate) use start_of_bytes;

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_start_tells_keys_of_any_length_apart() {
        for length in 0..50 {
            let key: Vec<u8> = (1..=length).collect();
            let start = KeyStart::new(&key);
            assert_eq!(start.image(&key).bytes(), key);
            assert!(start.is_of(&key, &key.clone()));
            assert!(!start.is_of(&key, &[&key[..], b"\0"].concat()));
            for at in 0..key.len() {
                let mut other = key.clone();
                other[at] ^= 1;
                assert!(!start.is_of(&key, &other), "{length} {at}");
                assert!(!start.is_of(&key, &key[1..]));
            }
        }
    }

    #[test]
    fn a_short_key_is_read_from_its_start() {
        for length in 0..50 {
            let key = vec![7; length];
            let start = KeyStart::new(&key);
            let image = start.image(&key);
            assert_eq!(image.bytes().as_ptr() == start.0.as_ptr(), length <= START);
        }
    }
}

//! Elements as words of memory, for stores that have nothing else.

use hotrow_sync::Arc;

/// A value that can be written as 64-bit words and read back.
///
/// Each number takes a word of its own. All values of a type take the same number of words, except sequences, which begin
/// with their length.
pub trait Encode: Sized {
    /// Appends the value's words.
    fn encode(&self, words: &mut Vec<u64>);

    /// Reads a value from the words that `next` returns.
    ///
    /// The words may be those of no value, in an attempt that cannot commit. Any value is right then.
    ///
    /// # Errors
    ///
    /// The first error of `next`.
    fn decode<E>(next: &mut impl FnMut() -> Result<u64, E>) -> Result<Self, E>;
}

/// The longest sequence that is read. A longer one comes from words that are those of no value.
const LENGTH_MAX: u64 = 1 << 24;

macro_rules! numbers {
    ($($number:ty: $word:ident => $to:expr, $from:expr;)*) => {$(
        impl Encode for $number {
            #[inline]
            fn encode(&self, words: &mut Vec<u64>) {
                let $word = *self;
                words.push($to);
            }

            #[inline]
            fn decode<E>(next: &mut impl FnMut() -> Result<u64, E>) -> Result<Self, E> {
                let $word = next()?;
                Ok($from)
            }
        }
    )*};
}

numbers! {
    u32: word => u64::from(word), word as u32;
    u64: word => word, word;
    usize: word => word as u64, word as usize;
    i32: word => word as u32 as u64, word as i32;
    f32: word => u64::from(word.to_bits()), f32::from_bits(word as u32);
    f64: word => word.to_bits(), f64::from_bits(word);
    bool: word => u64::from(word), word == 1;
}

impl Encode for () {
    #[inline]
    fn encode(&self, _: &mut Vec<u64>) {}

    #[inline]
    fn decode<E>(_: &mut impl FnMut() -> Result<u64, E>) -> Result<Self, E> {
        Ok(())
    }
}

impl<A: Encode, B: Encode> Encode for (A, B) {
    #[inline]
    fn encode(&self, words: &mut Vec<u64>) {
        self.0.encode(words);
        self.1.encode(words);
    }

    #[inline]
    fn decode<E>(next: &mut impl FnMut() -> Result<u64, E>) -> Result<Self, E> {
        Ok((A::decode(next)?, B::decode(next)?))
    }
}

impl<T: Encode + Copy + Default, const N: usize> Encode for [T; N] {
    #[inline]
    fn encode(&self, words: &mut Vec<u64>) {
        self.iter().for_each(|element| element.encode(words));
    }

    #[inline]
    fn decode<E>(next: &mut impl FnMut() -> Result<u64, E>) -> Result<Self, E> {
        let mut elements = [T::default(); N];
        for element in &mut elements {
            *element = T::decode(next)?;
        }
        Ok(elements)
    }
}

impl<T: Encode> Encode for Vec<T> {
    fn encode(&self, words: &mut Vec<u64>) {
        words.push(self.len() as u64);
        self.iter().for_each(|element| element.encode(words));
    }

    fn decode<E>(next: &mut impl FnMut() -> Result<u64, E>) -> Result<Self, E> {
        let length = next()?.min(LENGTH_MAX);
        (0..length).map(|_| T::decode(next)).collect()
    }
}

/// Bytes take a word for eight of them.
impl Encode for Arc<[u8]> {
    fn encode(&self, words: &mut Vec<u64>) {
        words.push(self.len() as u64);
        for bytes in self.chunks(8) {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            words.push(u64::from_le_bytes(word));
        }
    }

    fn decode<E>(next: &mut impl FnMut() -> Result<u64, E>) -> Result<Self, E> {
        let length = next()?.min(LENGTH_MAX) as usize;
        let mut bytes = Vec::with_capacity(length.next_multiple_of(8));
        while bytes.len() < length {
            bytes.extend_from_slice(&next()?.to_le_bytes());
        }
        bytes.truncate(length);
        Ok(bytes.into())
    }
}

/// Implements [`Encode`] for a struct, field by field.
macro_rules! encode {
    ($struct:ident { $($field:ident),* $(,)? }) => {
        impl $crate::encode::Encode for $struct {
            #[inline]
            fn encode(&self, words: &mut Vec<u64>) {
                $($crate::encode::Encode::encode(&self.$field, words);)*
            }

            #[inline]
            fn decode<E>(next: &mut impl FnMut() -> Result<u64, E>) -> Result<Self, E> {
                Ok(Self { $($field: $crate::encode::Encode::decode(next)?,)* })
            }
        }
    };
}

pub(crate) use encode;

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;
    use std::fmt::Debug;

    fn assert_comes_back<T: Encode + PartialEq + Debug>(value: T, length: usize) {
        let mut words = Vec::new();
        value.encode(&mut words);
        assert_eq!(words.len(), length);
        let mut words = words.into_iter();
        let Ok(decoded) = T::decode::<Infallible>(&mut || Ok(words.next().unwrap()));
        assert_eq!(decoded, value);
    }

    #[test]
    fn values_come_back_from_their_words() {
        assert_comes_back((7_u32, -2_i32), 2);
        assert_comes_back([true, false], 2);
        assert_comes_back(vec![0.5_f32, -1.0], 3);
        assert_comes_back((usize::MAX, (-0.25_f64, ())), 2);
        for length in [0_usize, 1, 8, 9] {
            let bytes: Arc<[u8]> = (0..length as u8).collect();
            assert_comes_back(bytes, 1 + length.div_ceil(8));
        }
    }
}

//! Rows of bytes.
//!
//! # Layout
//!
//! A row is four words: its length, and three words that hold up to [`IN_PLACE_MAX`] bytes. The first of these three
//! holds a pointer to the bytes if there are more. So a short row is copied without an allocation, and a long one is
//! treated as a boxed value is: it never changes once it is in a cell, and is freed through the epoch.

use super::cell::RowCell;
use hotrow_core::Value;
use std::fmt;
use std::mem::offset_of;
use std::ops::{Deref, DerefMut};
use std::ptr::{null_mut, slice_from_raw_parts_mut};

/// The maximum number of bytes that a row holds in place.
pub(super) const IN_PLACE_MAX: usize = 24;

/// The bytes of a row. Up to 24 bytes are held in place; a longer row is allocated.
///
/// It dereferences to `[u8]`, so its bytes are changed in place. [`set`](Self::set) and [`resize`](Self::resize) change
/// its length.
///
/// ```
/// use hotrow_tables::erased::Row;
///
/// let mut row = Row::from(b"abc");
/// row[0] = b'A';
/// assert_eq!(row, b"Abc");
/// row.set(b"something else");
/// assert_eq!(&row[..4], b"some");
/// ```
#[repr(C)]
pub struct Row {
    pub(super) length: u64,
    /// The address of the bytes, if there are more than fit in place. Else the first of the words with the bytes.
    pub(super) first: *mut u8,
    pub(super) rest: [u64; 2],
}

// SAFETY: it owns its bytes, as a vector does.
unsafe impl Send for Row {}
// SAFETY: as above.
unsafe impl Sync for Row {}

impl Row {
    /// A row without bytes.
    pub const EMPTY: Self = Self { length: 0, first: null_mut(), rest: [0; 2] };

    #[inline(always)]
    pub(super) fn is_in_place(&self) -> bool {
        self.length <= IN_PLACE_MAX as u64
    }

    /// The address of the bytes in place. All words are initialised, and may be read and written as bytes.
    #[inline(always)]
    fn place(&mut self) -> *mut u8 {
        // SAFETY: the field lies within the row.
        unsafe { (&raw mut *self).cast::<u8>().add(offset_of!(Self, first)) }
    }

    /// A row with a copy of these bytes.
    #[inline]
    pub fn new(bytes: &[u8]) -> Self {
        if bytes.len() > IN_PLACE_MAX {
            return Self::allocated(bytes.into());
        }
        let mut row = Self { length: bytes.len() as u64, ..Self::EMPTY };
        // SAFETY: there is room for so many bytes, and they do not overlap.
        unsafe { row.place().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        row
    }

    /// Takes bytes that do not fit in place.
    #[inline]
    fn allocated(bytes: Box<[u8]>) -> Self {
        debug_assert!(bytes.len() > IN_PLACE_MAX);
        let length = bytes.len() as u64;
        Self { length, first: Box::into_raw(bytes).cast(), ..Self::EMPTY }
    }

    /// Replaces all bytes. Bytes of the same length are copied into the present place.
    #[inline]
    pub fn set(&mut self, bytes: &[u8]) {
        if self.len() == bytes.len() {
            self.copy_from_slice(bytes);
        } else {
            *self = Self::new(bytes);
        }
    }

    /// Changes the length: removes bytes from the end, or adds copies of `byte`.
    pub fn resize(&mut self, length: usize, byte: u8) {
        if length <= self.len() {
            *self = Self::new(&self[..length]);
        } else {
            let mut bytes = self.to_vec();
            bytes.resize(length, byte);
            *self = bytes.into();
        }
    }

    /// The allocated bytes, if the row is not in place.
    #[inline(always)]
    fn heap(&self) -> Option<*mut [u8]> {
        if self.is_in_place() {
            None
        } else {
            Some(slice_from_raw_parts_mut(self.first, self.length as usize))
        }
    }
}

impl Deref for Row {
    type Target = [u8];
    #[inline(always)]
    fn deref(&self) -> &[u8] {
        let bytes = if self.is_in_place() {
            // SAFETY: the field lies within the row.
            unsafe { (&raw const *self).cast::<u8>().add(offset_of!(Self, first)) }
        } else {
            self.first
        };
        // SAFETY: the row has so many initialised bytes there.
        unsafe { std::slice::from_raw_parts(bytes, self.length as usize) }
    }
}

impl DerefMut for Row {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [u8] {
        let bytes = if self.is_in_place() { self.place() } else { self.first };
        // SAFETY: the row owns so many initialised bytes there.
        unsafe { std::slice::from_raw_parts_mut(bytes, self.length as usize) }
    }
}

impl Clone for Row {
    #[inline]
    fn clone(&self) -> Self {
        if self.is_in_place() {
            Self { length: self.length, first: self.first, rest: self.rest }
        } else {
            Self::allocated(Box::from(&**self))
        }
    }
}

impl Drop for Row {
    #[inline]
    fn drop(&mut self) {
        if let Some(bytes) = self.heap() {
            // SAFETY: from a box, and the row owns it.
            drop(unsafe { Box::from_raw(bytes) });
        }
    }
}

impl Default for Row {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl fmt::Debug for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.escape_ascii())
    }
}

impl AsRef<[u8]> for Row {
    #[inline(always)]
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl<T: AsRef<[u8]> + ?Sized> PartialEq<T> for Row {
    #[inline]
    fn eq(&self, other: &T) -> bool {
        **self == *other.as_ref()
    }
}

impl Eq for Row {}

impl From<&[u8]> for Row {
    #[inline]
    fn from(bytes: &[u8]) -> Self {
        Self::new(bytes)
    }
}

impl<const N: usize> From<&[u8; N]> for Row {
    #[inline]
    fn from(bytes: &[u8; N]) -> Self {
        Self::new(bytes)
    }
}

impl<const N: usize> From<[u8; N]> for Row {
    #[inline]
    fn from(bytes: [u8; N]) -> Self {
        Self::new(&bytes)
    }
}

impl From<&str> for Row {
    #[inline]
    fn from(text: &str) -> Self {
        Self::new(text.as_bytes())
    }
}

impl From<Box<[u8]>> for Row {
    #[inline]
    fn from(bytes: Box<[u8]>) -> Self {
        if bytes.len() > IN_PLACE_MAX { Self::allocated(bytes) } else { Self::new(&bytes) }
    }
}

impl From<Vec<u8>> for Row {
    #[inline]
    fn from(bytes: Vec<u8>) -> Self {
        if bytes.len() > IN_PLACE_MAX { Self::allocated(bytes.into()) } else { Self::new(&bytes) }
    }
}

impl From<String> for Row {
    #[inline]
    fn from(text: String) -> Self {
        text.into_bytes().into()
    }
}

impl Value for Row {
    type Cell = RowCell;

    #[inline]
    fn heap_bytes(&self) -> usize {
        self.heap().map_or(0, <*mut [u8]>::len)
    }
}

#[cfg(all(test, not(loom)))]
pub(super) mod tests {
    use super::*;

    /// Rows of all kinds of lengths.
    pub(in crate::erased) fn samples() -> Vec<Vec<u8>> {
        [0, 1, 7, 8, 9, 16, 17, 23, 24, 25, 100, 1_000]
            .map(|length: usize| (0..length).map(|at| (at * 7 + length) as u8).collect())
            .to_vec()
    }

    #[test]
    fn a_row_has_the_bytes_from_which_it_was_made() {
        for bytes in samples() {
            let row = Row::from(bytes.clone());
            assert_eq!(row, bytes);
            assert_eq!((row.clone(), Row::new(&bytes), Row::from(bytes.clone().into_boxed_slice())), {
                let row = || Row::from(&bytes[..]);
                (row(), row(), row())
            });
            assert_eq!(row.heap_bytes(), if bytes.len() > 24 { bytes.len() } else { 0 });
        }
        assert_eq!(format!("{:?}", Row::from(b"a\0\xff")), r#""a\x00\xff""#);
    }

    #[test]
    fn a_row_is_changed_in_place_and_in_length() {
        for bytes in samples() {
            for other in samples() {
                let mut row = Row::new(&bytes);
                row.iter_mut().for_each(|byte| *byte ^= 1);
                assert!(row.iter().zip(&bytes).all(|(new, old)| *new == old ^ 1));
                row.set(&other);
                assert_eq!(row, other);
                row.resize(bytes.len(), 3);
                let mut expected = other.clone();
                expected.resize(bytes.len(), 3);
                assert_eq!(row, expected);
            }
        }
    }
}

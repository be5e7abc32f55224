//! Rows of bytes, and the cell that keeps short ones in their record.
//!
//! # Layout
//!
//! A row is four words: its length, and three words that hold up to [`IN_PLACE_MAX`] bytes. The first of these three
//! holds a pointer to the bytes if there are more. So a short row is copied without an allocation, and a long one is
//! treated as a boxed value is: it never changes once it is in a cell, and is freed through the epoch.
//!
//! # Shared words
//!
//! A snapshot copies the words one by one, those behind a short row's end excepted. It may be torn: the length is
//! another row's than the pointer. Nobody looks into it before the protocol has found that no row was installed
//! meanwhile. The orderings are those of inline words and of boxed pointers (`docs/memory-model.md`, C1 and C2).

use hotrow_core::{Cell, Pin, Value};
use hotrow_sync::atomic::unfollowed::AtomicU64;
use hotrow_sync::atomic::{AtomicPtr, Ordering};
use std::fmt;
use std::mem::{ManuallyDrop, MaybeUninit, offset_of};
use std::ops::{Deref, DerefMut, Range};
use std::ptr::{null_mut, slice_from_raw_parts_mut};

/// The maximum number of bytes that a row holds in place.
pub(super) const IN_PLACE_MAX: usize = 24;

const WORD: usize = size_of::<u64>();

// The words of a cell are those of a row.
const _: () = assert!(size_of::<*mut u8>() == WORD && size_of::<RowCell>() == size_of::<Row>());
const _: () = assert!(offset_of!(Row, first) == WORD && offset_of!(RowCell, first) == WORD);

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
    length: u64,
    /// The address of the bytes, if there are more than fit in place. Else the first of the words with the bytes.
    first: *mut u8,
    rest: [u64; 2],
}

// SAFETY: it owns its bytes, as a vector does.
unsafe impl Send for Row {}
// SAFETY: as above.
unsafe impl Sync for Row {}

impl Row {
    /// A row without bytes.
    pub const EMPTY: Self = Self { length: 0, first: null_mut(), rest: [0; 2] };

    #[inline(always)]
    fn is_in_place(&self) -> bool {
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

/// The cell of a [`Row`]: its words.
#[repr(C)]
pub struct RowCell {
    length: AtomicU64,
    first: AtomicPtr<u8>,
    rest: [AtomicU64; 2],
}

/// A raw copy of a row's words.
#[repr(transparent)]
pub struct RowSnapshot(MaybeUninit<Row>);

impl RowCell {
    /// Copies the words that hold bytes of the row.
    #[inline(always)]
    fn load_words(&self) -> (u64, *mut u8, [u64; 2]) {
        // Relaxed: ordered by the header, as all inline words are (C1).
        let length = self.length.load(Ordering::Relaxed);
        // Acquire: pairs with the release in `install`, which publishes the bytes behind the pointer (C2).
        let first = self.first.load(Ordering::Acquire);
        let rest = if (WORD as u64 + 1..=IN_PLACE_MAX as u64).contains(&length) {
            [self.rest[0].load(Ordering::Relaxed), self.rest[1].load(Ordering::Relaxed)]
        } else {
            [0; 2]
        };
        (length, first, rest)
    }
}

// SAFETY: all words are read and written by atomic accesses while the cell is shared. A snapshot without a concurrent
// install has the words of the last row, but for those that hold nothing of it. The bytes behind a pointer never change
// while it is in the cell, and are freed only through the epoch after it was replaced.
unsafe impl Cell<Row> for RowCell {
    const COPIES: bool = false;

    type Snapshot = RowSnapshot;
    type Pending = Row;

    #[inline]
    fn new(row: Row) -> Self {
        let row = ManuallyDrop::new(row);
        let rest = row.rest.map(AtomicU64::new);
        Self { length: AtomicU64::new(row.length), first: AtomicPtr::new(row.first), rest }
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn load(&self) -> RowSnapshot {
        let (length, first, rest) = self.load_words();
        RowSnapshot(MaybeUninit::new(Row { length, first, rest }))
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    unsafe fn view<'a>(snapshot: &'a RowSnapshot, _pin: &'a Pin) -> &'a Row {
        // SAFETY: the caller promises that the snapshot is not torn. So the pointer, if it is one, was the row's when the
        // epoch was pinned already, and what it points to is freed through the epoch.
        unsafe { snapshot.0.assume_init_ref() }
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    unsafe fn in_place(&self) -> &Row {
        // SAFETY: the same words in the same order; the caller promises that nothing is installed meanwhile.
        unsafe { &*std::ptr::from_ref(self).cast::<Row>() }
    }

    unsafe fn heap_bytes(&self) -> usize {
        // SAFETY: the caller's promise.
        unsafe { self.in_place() }.heap_bytes()
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    unsafe fn load_bytes(&self, _: Range<usize>, snapshot: *mut RowSnapshot) {
        // SAFETY: the caller's promise.
        unsafe { snapshot.write(self.load()) };
    }

    #[inline(always)]
    unsafe fn value_in(snapshot: *const RowSnapshot) -> *const Row {
        snapshot.cast()
    }

    #[inline(always)]
    fn pend(row: Row) -> Row {
        row
    }

    unsafe fn load_pending(&self, _: *mut Row) {
        unreachable!("the words of a long row are not another row");
    }

    #[inline(always)]
    fn pending(pending: &Row) -> &Row {
        pending
    }

    #[inline(always)]
    fn pending_mut(pending: &mut Row) -> &mut Row {
        pending
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    unsafe fn install(&self, pending: Row, pin: &Pin) {
        let row = ManuallyDrop::new(pending);
        // Relaxed: only the holder of the segment's lock changes the words (V2).
        let length = self.length.load(Ordering::Relaxed);
        let first = self.first.load(Ordering::Relaxed);
        // Relaxed, but for the pointer: as in `load_words`.
        self.length.store(row.length, Ordering::Relaxed);
        self.first.store(row.first, Ordering::Release);
        if !row.is_in_place() || row.length > WORD as u64 {
            self.rest.iter().zip(row.rest).for_each(|(word, value)| word.store(value, Ordering::Relaxed));
        }
        if length > IN_PLACE_MAX as u64 {
            let old = slice_from_raw_parts_mut(first, length as usize);
            // SAFETY: from a box. Threads that pin from now on find the new row.
            unsafe { pin.retire_bytes(old) };
        }
    }

    #[inline]
    fn discard(pending: Row, _pin: &Pin) {
        // No reader has seen it, and freeing bytes runs no users' code.
        drop(pending);
    }
}

impl Drop for RowCell {
    fn drop(&mut self) {
        // SAFETY: nothing else looks at the cell, and it owns the row. Rows replaced earlier were retired by `install`.
        unsafe { std::ptr::from_mut(self).cast::<Row>().drop_in_place() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of all kinds of lengths.
    fn samples() -> Vec<Vec<u8>> {
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

    #[test]
    fn a_snapshot_outlives_the_install_that_replaces_its_row() {
        let pin = Pin::new();
        for first in samples() {
            for second in samples() {
                let cell = RowCell::new(Row::new(&first));
                let before = cell.load();
                // SAFETY: the epoch is pinned since before the load, and nobody else installs.
                unsafe {
                    cell.install(Row::new(&second), &pin);
                    assert_eq!(*RowCell::view(&before, &pin), first);
                    assert_eq!(*RowCell::view(&cell.load(), &pin), second);
                    assert_eq!(*cell.in_place(), second);
                    assert_eq!(cell.heap_bytes(), cell.in_place().heap_bytes());
                }
                RowCell::discard(Row::new(&first), &pin);
            }
        }
    }
}

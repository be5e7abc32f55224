//! The cell of a row, which keeps short rows in their record.
//!
//! A snapshot copies the words of the row one by one, those behind a short row's end excepted. It may be torn: the length
//! is another row's than the pointer. Nobody looks into it before the protocol has found that no row was installed
//! meanwhile. The bytes of a long row never change once it is in a cell, and are freed through the epoch. The orderings
//! are those of inline words and of boxed pointers (`docs/memory-model.md`, C1 and C2).

use super::row::{IN_PLACE_MAX, Row};
use hotrow_core::region::holds_back;
use hotrow_core::{Cell, Pin, Value};
use hotrow_sync::atomic::unfollowed::AtomicU64;
use hotrow_sync::atomic::{AtomicPtr, Ordering};
use std::mem::{ManuallyDrop, MaybeUninit, offset_of};
use std::ops::Range;
use std::ptr::slice_from_raw_parts_mut;

const WORD: usize = size_of::<u64>();

// The words of a cell are those of a row.
const _: () = assert!(size_of::<*mut u8>() == WORD && size_of::<RowCell>() == size_of::<Row>());
const _: () = assert!(offset_of!(Row, first) == WORD && offset_of!(RowCell, first) == WORD);

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

    /// Replaces the row, and returns the bytes that it had outside of the cell.
    #[inline]
    fn exchange(&self, row: Row) -> Option<*mut [u8]> {
        let row = ManuallyDrop::new(row);
        // Relaxed: only the holder of the segment's lock changes the words (V2).
        let length = self.length.load(Ordering::Relaxed);
        let first = self.first.load(Ordering::Relaxed);
        // Relaxed, but for the pointer: as in `load_words`.
        self.length.store(row.length, Ordering::Relaxed);
        self.first.store(row.first, Ordering::Release);
        if !row.is_in_place() || row.length > WORD as u64 {
            self.rest.iter().zip(row.rest).for_each(|(word, value)| word.store(value, Ordering::Relaxed));
        }
        (length > IN_PLACE_MAX as u64).then(|| slice_from_raw_parts_mut(first, length as usize))
    }
}

// SAFETY: all words are read and written by atomic accesses while the cell is shared. A snapshot without a concurrent
// install has the words of the last row, but for those that hold nothing of it. The bytes behind a pointer never change
// while it is in the cell, and are freed only through the epoch after it was replaced.
unsafe impl Cell<Row> for RowCell {
    const COPIES: bool = false;
    const NEVER_TORN: bool = false;

    type Groups = ();
    type Snapshot = RowSnapshot;
    type Pending = Row;

    #[inline]
    fn new(row: Row) -> Self {
        let row = ManuallyDrop::new(row);
        let rest = row.rest.map(AtomicU64::new);
        Self { length: AtomicU64::new(row.length), first: AtomicPtr::new(row.first), rest }
    }

    #[inline]
    fn load(&self) -> RowSnapshot {
        let (length, first, rest) = self.load_words();
        RowSnapshot(MaybeUninit::new(Row { length, first, rest }))
    }

    #[inline]
    unsafe fn view<'a>(snapshot: &'a RowSnapshot, _pin: &'a Pin) -> &'a Row {
        // SAFETY: the caller promises that the snapshot is not torn. So the pointer, if it is one, was the row's when the
        // epoch was pinned already, and what it points to is freed through the epoch.
        unsafe { snapshot.0.assume_init_ref() }
    }

    #[inline]
    unsafe fn in_place(&self) -> &Row {
        // SAFETY: the same words in the same order; the caller promises that nothing is installed meanwhile.
        unsafe { &*std::ptr::from_ref(self).cast::<Row>() }
    }

    unsafe fn heap_bytes(&self) -> usize {
        // SAFETY: the caller's promise.
        unsafe { self.in_place() }.heap_bytes()
    }

    #[inline]
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

    #[inline]
    unsafe fn install(&self, pending: Row, pin: &Pin) {
        if let Some(old) = self.exchange(pending) {
            // SAFETY: from a box. Threads that pin from now on find the new row.
            unsafe { pin.retire_bytes(old) };
        }
    }

    #[inline]
    unsafe fn replace(&self, pending: Row, _: &Pin) {
        // The old row is the copy's.
        let _ = self.exchange(pending);
    }

    #[inline]
    unsafe fn share(&self) -> Self {
        let (length, first, rest) = self.load_words();
        Self { length: AtomicU64::new(length), first: AtomicPtr::new(first), rest: rest.map(AtomicU64::new) }
    }

    #[inline]
    fn discard(pending: Row, pin: &Pin) {
        if holds_back() {
            return pin.drop_later(pending);
        }
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

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::row::tests::samples;
    use super::*;

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

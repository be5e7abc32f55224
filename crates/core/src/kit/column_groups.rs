//! Column groups: columns of a row that conflict apart from the others.
//!
//! The columns of a row change at different rates: a warehouse's yearly total with each payment, its tax never. If the row is one
//! segment, each payment is a conflict with everybody who reads the tax. So a row's type may split its columns into groups
//! (`#[value(group = "...")]`; the timestamp splitting of STOv2, Huang et al., VLDB 2020). Columns that are in no group are the
//! row's *main* columns. Each group has a segment of its own, a [`PartSegment`], with the columns of the group, packed: a
//! [`Part`].
//!
//! A part says if its row is there. Whoever inserts or deletes a row writes all its segments, so whoever reads or changes a part
//! alone depends on the row's existence as one does who reads the whole row: by the part's own segment.
//!
//! A type whose columns are not split has the groups `()`: then there is nothing of this, neither in memory nor in code.

use crate::kernel::protocol::Protocol;
use crate::kit::segment::Segment;
use crate::memory::cell::{Inline, Plain, Value};
use crate::memory::column::{Column, Fields, Whole};
pub use crate::memory::column_groups::{ColumnGroups, Each, GROUPS_MAX, GroupColumn, Words};
use hotrow_sync::atomic::AtomicU64;
use std::mem::offset_of;
use std::ops::Range;
use std::ptr::NonNull;

/// The columns of a group of one row, and a word that tells if the row is there.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Part<W> {
    present: u64,
    words: W,
}

// SAFETY: words only, behind each other, without padding.
unsafe impl<W: Words> Plain for Part<W> {}

impl<W: Words> Value for Part<W> {
    type Cell = Inline<Self>;
    const MAY_BE_ABSENT: bool = true;

    #[inline(always)]
    fn says_present(&self) -> bool {
        self.is_present()
    }
}

impl<W: Words> Part<W> {
    /// The part of a row that is not there.
    pub const ABSENT: Self = Self { present: 0, words: W::ZERO };

    /// True if the row is there.
    #[inline(always)]
    pub fn is_present(&self) -> bool {
        self.present != 0
    }

    /// Returns the part of a row.
    #[inline]
    pub fn of<R, G: ColumnGroups<R, Words = W>>(row: &R, group: usize) -> Self {
        let mut part = Self { present: 1, words: W::ZERO };
        // SAFETY: it is a row.
        unsafe { part.take::<R, G, Whole>(Whole, row, Some(group)) };
        part
    }

    /// Copies those of some fields that are a group's, whose part it is, from a row. `None`: the group has them all.
    ///
    /// # Safety
    ///
    /// The fields' bytes behind `row` are those of a row.
    #[inline(always)]
    pub unsafe fn take<R, G: ColumnGroups<R, Words = W>, F: Fields<R>>(
        &mut self,
        fields: F,
        row: *const R,
        group: Option<usize>,
    ) {
        let (row, words) = (row.cast::<u8>(), (&raw mut self.words).cast::<u8>());
        each_shared::<R, G>(fields, group, |in_row, in_part, bytes| {
            // SAFETY: both places lie within the row and the words, as the trait promises, and the row is plain data.
            unsafe { words.add(in_part).copy_from_nonoverlapping(row.add(in_row), bytes) };
        });
    }

    /// Copies those of some fields that are a group's, whose part it is, to a row. `None`: the group has them all.
    ///
    /// # Safety
    ///
    /// There is room for a row behind `row`.
    #[inline(always)]
    pub unsafe fn put<R, G: ColumnGroups<R, Words = W>, F: Fields<R>>(
        &self,
        fields: F,
        row: *mut R,
        group: Option<usize>,
    ) {
        let (row, words) = (row.cast::<u8>(), (&raw const self.words).cast::<u8>());
        each_shared::<R, G>(fields, group, |in_row, in_part, bytes| {
            // SAFETY: as in `take`.
            unsafe { row.add(in_row).copy_from_nonoverlapping(words.add(in_part), bytes) };
        });
    }

    /// True if both have the same columns.
    #[inline]
    pub fn is_same(&self, other: &Self) -> bool {
        bytes_of(self) == bytes_of(other)
    }

    /// True if both have the same in a column of theirs.
    #[inline]
    pub fn has_same_bytes(&self, other: &Self, column: &GroupColumn) -> bool {
        let place = column.part..column.part + column.bytes;
        bytes_of(&self.words)[place.clone()] == bytes_of(&other.words)[place]
    }

    /// Marks the row as deleted.
    #[inline]
    pub fn set_absent(&mut self) {
        self.present = 0;
    }
}

/// The bytes of plain data.
#[inline(always)]
pub fn bytes_of<T: Plain>(value: &T) -> &[u8] {
    // SAFETY: plain data has no uninitialised bytes.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(value).cast(), size_of::<T>()) }
}

/// Visits the bytes of fields that are in a group, or all of them: the first one's place in the row, that in the group's part, and their
/// number.
#[inline(always)]
fn each_shared<R, G: ColumnGroups<R>>(
    fields: impl Fields<R>,
    group: Option<usize>,
    mut visit: impl FnMut(usize, usize, usize),
) {
    fields.each_place(|bytes| {
        let Some(group) = group else {
            // So the compiler knows the number of bytes, where it does not know the place.
            return visit(bytes.start, place_in_part::<R, G>(&bytes), bytes.end - bytes.start);
        };
        for column in G::COLUMNS.iter().filter(|column| column.group == group) {
            let (first, past) = (bytes.start.max(column.row), bytes.end.min(column.row + column.bytes));
            if first < past {
                visit(first, column.part + (first - column.row), past - first);
            }
        }
    });
}

/// The place of a column's bytes in the words of its group's part.
#[inline(always)]
fn place_in_part<R, G: ColumnGroups<R>>(bytes: &Range<usize>) -> usize {
    for column in G::COLUMNS {
        if column.row <= bytes.start && bytes.end <= column.row + column.bytes {
            return column.part + (bytes.start - column.row);
        }
    }
    unreachable!("the caller has looked in which group the column is")
}

impl<R, F: Plain> Column<R, F> {
    /// Returns the column as one of the part of its group.
    ///
    /// # Panics
    ///
    /// If the column is in no group.
    #[inline(always)]
    pub fn in_part<G: ColumnGroups<R>>(self) -> Column<Part<G::Words>, F> {
        let mut place = 0;
        self.each_place(|bytes| place = place_in_part::<R, G>(&bytes));
        // SAFETY: the part has the column there, as the trait promises.
        unsafe { Column::at(offset_of!(Part<G::Words>, words) + place) }
    }
}

/// Returns the groups of fields: the lowest bit stands for the main columns, the next for the first group.
#[inline(always)]
pub fn groups_of<R, G: ColumnGroups<R>>(fields: impl Fields<R>) -> u32 {
    let mut groups = 0;
    fields.each_place(|bytes| {
        let mut in_groups = 0;
        for column in G::COLUMNS {
            let (first, past) = (bytes.start.max(column.row), bytes.end.min(column.row + column.bytes));
            if first < past {
                groups |= 2 << column.group;
                in_groups = in_groups.max(past - first);
            }
        }
        // Of a column that is more than one of a group's, the rest may be a main one.
        if in_groups < bytes.len() || bytes.is_empty() {
            groups |= 1;
        }
    });
    groups
}

/// The segment of one group of a row. It has cache lines of its own, because others change at the same time what is beside it.
#[repr(C, align(64))]
pub struct PartSegment<W: Words, P: Protocol> {
    segment: Segment<Part<W>, P>,
    /// The epoch of the newest commit: see [`ObjectMeta::noting_commits`](crate::ObjectMeta::noting_commits).
    newest_commit: AtomicU64,
    /// Where the row's key is; its owner knows its type.
    key: NonNull<u8>,
    group: u32,
    /// Distinguishes the rows that have the same key one after the other.
    incarnation: u32,
}

// SAFETY: the pointer is never followed here.
unsafe impl<W: Words, P: Protocol> Send for PartSegment<W, P> {}
// SAFETY: as above.
unsafe impl<W: Words, P: Protocol> Sync for PartSegment<W, P> {}

impl<W: Words, P: Protocol> std::fmt::Debug for PartSegment<W, P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PartSegment").field("group", &self.group).finish_non_exhaustive()
    }
}

impl<W: Words, P: Protocol> PartSegment<W, P> {
    /// The bytes from the beginning of the segment to the epoch of its newest commit.
    pub const NEWEST_COMMIT: usize = offset_of!(Self, newest_commit);

    /// The segment itself.
    #[inline(always)]
    pub fn segment(&self) -> &Segment<Part<W>, P> {
        &self.segment
    }

    /// Returns the part that has a segment.
    ///
    /// # Safety
    ///
    /// `address` is that of the [segment](Self::segment) of a part of this type that is still in memory.
    #[inline(always)]
    pub unsafe fn at<'a>(address: NonNull<P::Header>) -> &'a Self {
        // SAFETY: the segment is the first field of a `repr(C)` struct.
        unsafe { address.cast::<Self>().as_ref() }
    }

    /// Where the row's key is.
    pub fn key(&self) -> NonNull<u8> {
        self.key
    }

    /// The number of the group.
    pub fn group(&self) -> usize {
        self.group as usize
    }

    /// A number that distinguishes the rows that have the same key one after the other.
    pub fn incarnation(&self) -> u32 {
        self.incarnation
    }
}

/// The parts of a row: an array, or nothing.
pub trait Parts<W: Words, P: Protocol>: Send + Sync + Sized + 'static {
    /// Makes the parts of a row.
    fn new(header: impl FnMut() -> P::Header, part: impl FnMut(usize) -> Part<W>, incarnation: u32) -> Self;

    /// Notes where the row's key is.
    fn set_key(&mut self, key: NonNull<u8>);

    /// The parts.
    fn parts(&self) -> &[PartSegment<W, P>];
}

impl<W: Words, P: Protocol, S: Each<PartSegment<W, P>>> Parts<W, P> for S {
    #[inline]
    fn new(
        mut header: impl FnMut() -> P::Header,
        mut part: impl FnMut(usize) -> Part<W>,
        incarnation: u32,
    ) -> Self {
        Self::from_fn(|group| PartSegment {
            segment: Segment::with_header(header(), part(group)),
            newest_commit: AtomicU64::new(0),
            key: NonNull::dangling(),
            group: group as u32,
            incarnation,
        })
    }

    #[inline]
    fn set_key(&mut self, key: NonNull<u8>) {
        self.values_mut().iter_mut().for_each(|part| part.key = key);
    }

    #[inline(always)]
    fn parts(&self) -> &[PartSegment<W, P>] {
        self.values()
    }
}

//! The groups into which the columns of a row's type are split, as its cell knows them. The kit has their segments.

use crate::memory::cell::Plain;

/// A column of a group: its places in the row and in the group's part.
#[derive(Debug, Clone, Copy)]
pub struct GroupColumn {
    /// The number of the group.
    pub group: usize,
    /// The first byte in the row.
    pub row: usize,
    /// The number of bytes.
    pub bytes: usize,
    /// The first byte in the part's words.
    pub part: usize,
}

impl GroupColumn {
    const NONE: Self = Self { group: 0, row: 0, bytes: 0, part: 0 };

    /// Gives each column, of which group, first byte in the row, size and alignment are given, a place in its group's part.
    #[must_use]
    pub const fn place<const N: usize>(columns: [(usize, usize, usize, usize); N]) -> [Self; N] {
        let mut placed = [Self::NONE; N];
        let mut at = 0;
        while at < N {
            let (group, row, bytes, align) = columns[at];
            let part = end_of(&placed, at, group).next_multiple_of(align);
            placed[at] = Self { group, row, bytes, part };
            at += 1;
        }
        placed
    }

    /// Returns the number of words that the largest part needs.
    #[must_use]
    pub const fn words(columns: &[Self]) -> usize {
        let mut most = 0;
        let mut at = 0;
        while at < columns.len() {
            let end = columns[at].part + columns[at].bytes;
            if end > most {
                most = end;
            }
            at += 1;
        }
        most.div_ceil(size_of::<u64>())
    }
}

/// The end of a group's last column among the first `count`.
const fn end_of(columns: &[GroupColumn], count: usize, group: usize) -> usize {
    let mut end = 0;
    let mut at = 0;
    while at < count {
        if columns[at].group == group {
            end = columns[at].part + columns[at].bytes;
        }
        at += 1;
    }
    end
}

/// The column groups of a row's type, which the derive macro makes. `()`: the row is not split.
///
/// # Safety
///
/// If there are columns, `R` is [plain](Plain), and they are fields of it that do not overlap. Their places in the words of a part are as
/// aligned as in the row, within the words, and do not overlap for columns of one group. There are as many parts as groups, and
/// at most [`GROUPS_MAX`].
pub unsafe trait ColumnGroups<R>: Sized + 'static {
    /// The columns of the groups.
    const COLUMNS: &'static [GroupColumn];
    /// The names of the groups.
    const NAMES: &'static [&'static str];
    /// The words that hold the columns of a group.
    type Words: Words;
    /// One value for each group.
    type Each<S: Send + Sync + 'static>: Each<S>;
}

/// The most groups that a row may have.
pub const GROUPS_MAX: usize = 31;

// SAFETY: no columns.
unsafe impl<R> ColumnGroups<R> for () {
    const COLUMNS: &'static [GroupColumn] = &[];
    const NAMES: &'static [&'static str] = &[];
    type Words = [u64; 0];
    type Each<S: Send + Sync + 'static> = ();
}

mod sealed {
    pub trait Sealed {}
}
impl<const N: usize> sealed::Sealed for [u64; N] {}

/// The words of a part.
pub trait Words: Plain + sealed::Sealed {
    #[doc(hidden)]
    const ZERO: Self;
}

impl<const N: usize> Words for [u64; N] {
    const ZERO: Self = [0; N];
}

/// One value for each group: an array, or nothing.
pub trait Each<S>: Send + Sync + Sized + 'static {
    /// Makes the values, by the numbers of their groups.
    fn from_fn(value: impl FnMut(usize) -> S) -> Self;

    /// The values.
    fn values(&self) -> &[S];

    /// The values, to be changed.
    fn values_mut(&mut self) -> &mut [S];
}

impl<S> Each<S> for () {
    #[inline(always)]
    fn from_fn(_: impl FnMut(usize) -> S) -> Self {}

    #[inline(always)]
    fn values(&self) -> &[S] {
        &[]
    }

    #[inline(always)]
    fn values_mut(&mut self) -> &mut [S] {
        &mut []
    }
}

impl<S: Send + Sync + 'static, const N: usize> Each<S> for [S; N] {
    #[inline(always)]
    fn from_fn(value: impl FnMut(usize) -> S) -> Self {
        std::array::from_fn(value)
    }

    #[inline(always)]
    fn values(&self) -> &[S] {
        self
    }

    #[inline(always)]
    fn values_mut(&mut self) -> &mut [S] {
        self
    }
}

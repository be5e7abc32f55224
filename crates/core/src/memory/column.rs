//! Columns: fields of a row that can be read without the rest of it.

use crate::memory::cell::Plain;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;

/// A field of a row type: `column_of!(Stock, quantity)`.
pub struct Column<R, F> {
    offset: usize,
    _field: PhantomData<fn(&R) -> &F>,
}

impl<R, F> Clone for Column<R, F> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<R, F> Copy for Column<R, F> {}

impl<R, F> fmt::Debug for Column<R, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Column").field("offset", &self.offset).finish()
    }
}

impl<R, F: Plain> Column<R, F> {
    /// For the macro [`column_of!`](crate::memory::column), which knows both.
    ///
    /// # Safety
    ///
    /// At this offset every `R` has the field to which `_project` leads, and it may be borrowed.
    #[doc(hidden)]
    #[inline(always)]
    pub const unsafe fn new(offset: usize, _project: fn(&R) -> *const F) -> Self {
        Self { offset, _field: PhantomData }
    }

    /// The column at this offset.
    ///
    /// # Safety
    ///
    /// As for [`new`](Self::new).
    #[inline(always)]
    pub(crate) unsafe fn at(offset: usize) -> Self {
        Self { offset, _field: PhantomData }
    }

    /// Returns the column in a row, to be changed.
    #[inline(always)]
    pub fn of_mut(self, row: &mut R) -> &mut F {
        // SAFETY: the row has the field there, which may be borrowed, as the maker promised.
        unsafe { &mut *std::ptr::from_mut(row).byte_add(self.offset).cast() }
    }
}

impl<R: Plain> Column<R, R> {
    /// A row as its only column.
    #[inline(always)]
    pub const fn whole() -> Self {
        Self { offset: 0, _field: PhantomData }
    }
}

/// Names a field of a row, for reads of [some columns only](Columns): `column_of!(Stock, quantity)`. A field of a field is
/// named like `column_of!(Stock, place.shelf)`. The field's type is [`Plain`].
///
/// ```
/// # use hotrow_core::{Column, column_of};
/// # #[derive(Clone, Copy)]
/// struct Stock {
///     quantity: u32,
///     name: [u8; 60],
/// }
/// let quantity: Column<Stock, u32> = column_of!(Stock, quantity);
/// ```
///
/// The content of a box is not a field, and neither is a member of a union:
///
/// ```compile_fail,E0308
/// # use hotrow_core::{Column, column_of};
/// struct Row {
///     boxed: Box<u64>,
/// }
/// let of_the_box: Column<Row, u64> = column_of!(Row, boxed);
/// ```
///
/// ```compile_fail,E0133
/// # use hotrow_core::column_of;
/// union Either {
///     number: u8,
///     truth: bool,
/// }
/// let truth = column_of!(Either, truth);
/// ```
///
/// ```compile_fail,E0793
/// # use hotrow_core::column_of;
/// #[repr(C, packed)]
/// struct Packed {
///     byte: u8,
///     number: u64,
/// }
/// let number = column_of!(Packed, number);
/// ```
#[macro_export]
macro_rules! column_of {
    ($row:ty, $($field:tt).+) => {
        {
            // The raw pointer is of the field's own type: a reference could be coerced to one of what the field leads to.
            // The reference beside it does not compile for a field of a union, or of a packed row.
            let project = |row: &$row| {
                let _: &_ = &row.$($field).+;
                &raw const row.$($field).+
            };
            // SAFETY: both name the same field.
            unsafe { $crate::Column::new(::core::mem::offset_of!($row, $($field).+), project) }
        }
    };
}

/// One or several columns of a row type: a [`Column`], or a tuple of up to six.
pub trait Columns<R>: Copy + sealed::Sealed {
    /// The columns' values.
    type Values;

    /// Calls `visit` with the place of each column's bytes in the row.
    #[doc(hidden)]
    fn for_each(self, visit: impl FnMut(Range<usize>));

    /// Returns the columns' values.
    ///
    /// # Safety
    ///
    /// The columns' bytes behind `row` are those of a row.
    #[doc(hidden)]
    unsafe fn read(self, row: *const R) -> Self::Values;

    /// Returns the columns' values, each from the address that `find` returns for its bytes in a row.
    ///
    /// # Safety
    ///
    /// The columns' bytes there are those of a row, and as aligned.
    #[doc(hidden)]
    unsafe fn read_from(self, find: &impl Fn(Range<usize>) -> *const u8) -> Self::Values;

    /// Writes the columns' values, each to the address that `find` returns for its bytes in a row.
    ///
    /// # Safety
    ///
    /// There is room for the columns, and it is as aligned as in a row.
    #[doc(hidden)]
    unsafe fn write_to(self, values: Self::Values, find: &impl Fn(Range<usize>) -> *mut u8);

    /// Sets the columns of a row.
    #[inline(always)]
    fn set(self, row: &mut R, values: Self::Values) {
        let row = std::ptr::from_mut(row).cast::<u8>();
        // SAFETY: it is a row.
        unsafe { self.write_to(values, &|bytes| row.add(bytes.start)) };
    }

    /// Returns the columns' values in a row.
    #[inline(always)]
    fn of(self, row: &R) -> Self::Values {
        // SAFETY: it is a row.
        unsafe { self.read(row) }
    }
}

mod sealed {
    pub trait Sealed {}
}

impl<R, F> sealed::Sealed for Column<R, F> {}

impl<R, F: Plain> Columns<R> for Column<R, F> {
    type Values = F;

    #[inline(always)]
    fn for_each(self, mut visit: impl FnMut(Range<usize>)) {
        visit(self.offset..self.offset + size_of::<F>());
    }

    #[inline(always)]
    unsafe fn read(self, row: *const R) -> F {
        // SAFETY: the field lies within the row, as the maker promised, and its bytes are a row's.
        unsafe { row.byte_add(self.offset).cast::<F>().read() }
    }

    #[inline(always)]
    unsafe fn read_from(self, find: &impl Fn(Range<usize>) -> *const u8) -> F {
        // SAFETY: the caller's promise.
        unsafe { find(self.offset..self.offset + size_of::<F>()).cast::<F>().read() }
    }

    #[inline(always)]
    unsafe fn write_to(self, value: F, find: &impl Fn(Range<usize>) -> *mut u8) {
        // SAFETY: the caller's promise.
        unsafe { find(self.offset..self.offset + size_of::<F>()).cast::<F>().write(value) };
    }
}

macro_rules! tuples {
    ($(($($column:ident $at:tt),+))+) => {$(
        impl<$($column: sealed::Sealed),+> sealed::Sealed for ($($column,)+) {}

        impl<R, $($column: Columns<R>),+> Columns<R> for ($($column,)+) {
            type Values = ($($column::Values,)+);

            #[inline(always)]
            fn for_each(self, mut visit: impl FnMut(Range<usize>)) {
                $(self.$at.for_each(&mut visit);)+
            }

            #[inline(always)]
            unsafe fn read(self, row: *const R) -> Self::Values {
                // SAFETY: the caller's promise.
                unsafe { ($(self.$at.read(row),)+) }
            }

            #[inline(always)]
            unsafe fn read_from(self, find: &impl Fn(Range<usize>) -> *const u8) -> Self::Values {
                // SAFETY: the caller's promise.
                unsafe { ($(self.$at.read_from(find),)+) }
            }

            #[inline(always)]
            unsafe fn write_to(self, values: Self::Values, find: &impl Fn(Range<usize>) -> *mut u8) {
                // SAFETY: the caller's promise.
                unsafe { $(self.$at.write_to(values.$at, find);)+ }
            }
        }
    )+};
}
tuples! {
    (A 0, B 1)
    (A 0, B 1, C 2)
    (A 0, B 1, C 2, D 3)
    (A 0, B 1, C 2, D 3, E 4)
    (A 0, B 1, C 2, D 3, E 4, F 5)
}

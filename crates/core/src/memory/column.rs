//! Columns: fields of a row that can be read without the rest of it.

use crate::memory::cell::{Cell, Plain, Value};
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
pub trait Columns<R>: Fields<R, Values: Copy> {
    /// Returns the columns' values.
    ///
    /// # Safety
    ///
    /// The columns' bytes behind `row` are those of a row.
    #[doc(hidden)]
    unsafe fn read(self, row: *const R) -> Self::Values;

    /// Writes the columns' values to their places.
    ///
    /// # Safety
    ///
    /// There is room for a row behind `row`.
    #[doc(hidden)]
    unsafe fn write(self, row: *mut R, values: Self::Values);

    /// Sets the columns of a row.
    #[inline(always)]
    fn set(self, row: &mut R, values: Self::Values) {
        // SAFETY: it is a row.
        unsafe { self.write(row, values) };
    }

    /// Returns the columns' values in a row.
    #[inline(always)]
    fn of(self, row: &R) -> Self::Values {
        // SAFETY: it is a row.
        unsafe { self.read(row) }
    }
}

/// The fields that an operation uses of a row: [all](Whole), or some [columns](Columns).
pub trait Fields<R>: Copy + sealed::Sealed {
    /// The row, or the columns' values.
    type Values;

    /// Calls `visit` with the places of the fields' bytes in the row.
    #[doc(hidden)]
    fn each_place(self, visit: impl FnMut(Range<usize>));

    /// Loads the fields of a cell's value to their places in a snapshot.
    ///
    /// # Safety
    ///
    /// `snapshot` has room for one.
    #[doc(hidden)]
    unsafe fn load(self, cell: &R::Cell, snapshot: *mut <R::Cell as Cell<R>>::Snapshot)
    where
        R: Value;

    /// Looks at the fields of a row.
    ///
    /// # Safety
    ///
    /// The fields' bytes behind `row` are those of a row, and nobody changes them meanwhile.
    #[doc(hidden)]
    unsafe fn look<O>(self, row: *const R, look: impl FnOnce(&Self::Values) -> O) -> O;

    /// Changes the fields of a row.
    ///
    /// # Safety
    ///
    /// As for [`look`](Self::look), and nobody looks at them meanwhile.
    #[doc(hidden)]
    unsafe fn change<O>(self, row: *mut R, change: impl FnOnce(&mut Self::Values) -> O) -> O;

    /// Looks at the fields of a row that is at hand.
    #[inline]
    fn look_at<O>(self, row: &R, look: impl FnOnce(&Self::Values) -> O) -> O {
        // SAFETY: it is a row, and borrowed.
        unsafe { self.look(row, look) }
    }

    /// Changes the fields of a row that is at hand.
    #[inline]
    fn change_in<O>(self, row: &mut R, change: impl FnOnce(&mut Self::Values) -> O) -> O {
        // SAFETY: it is a row, and borrowed by nobody else.
        unsafe { self.change(row, change) }
    }
}

/// All of a row.
#[derive(Debug, Clone, Copy)]
pub struct Whole;

impl<R> Fields<R> for Whole {
    type Values = R;

    #[inline(always)]
    fn each_place(self, mut visit: impl FnMut(Range<usize>)) {
        visit(0..size_of::<R>());
    }

    #[inline(always)]
    unsafe fn load(self, cell: &R::Cell, snapshot: *mut <R::Cell as Cell<R>>::Snapshot)
    where
        R: Value,
    {
        // SAFETY: the caller's promise.
        unsafe { snapshot.write(cell.load()) };
    }

    #[inline(always)]
    unsafe fn look<O>(self, row: *const R, look: impl FnOnce(&R) -> O) -> O {
        // SAFETY: the caller's promise.
        look(unsafe { &*row })
    }

    #[inline(always)]
    unsafe fn change<O>(self, row: *mut R, change: impl FnOnce(&mut R) -> O) -> O {
        // SAFETY: the caller's promise.
        change(unsafe { &mut *row })
    }
}

mod sealed {
    pub trait Sealed {}
}

impl sealed::Sealed for Whole {}

impl<R, F> sealed::Sealed for Column<R, F> {}

/// The functions of [`Fields`] that columns have in common.
macro_rules! fields_by_values {
    () => {
        #[inline(always)]
        unsafe fn load(self, cell: &R::Cell, snapshot: *mut <R::Cell as Cell<R>>::Snapshot)
        where
            R: Value,
        {
            // SAFETY: the caller's promise; columns lie within the row.
            self.each_place(|bytes| unsafe { cell.load_bytes(bytes, snapshot) });
        }

        #[inline(always)]
        unsafe fn look<O>(self, row: *const R, look: impl FnOnce(&Self::Values) -> O) -> O {
            // SAFETY: the caller's promise.
            look(&unsafe { self.read(row) })
        }

        #[inline(always)]
        unsafe fn change<O>(self, row: *mut R, change: impl FnOnce(&mut Self::Values) -> O) -> O {
            // SAFETY: the caller's promise.
            unsafe {
                let mut values = self.read(row);
                let output = change(&mut values);
                self.write(row, values);
                output
            }
        }
    };
}

impl<R, F: Plain> Fields<R> for Column<R, F> {
    type Values = F;

    #[inline(always)]
    fn each_place(self, mut visit: impl FnMut(Range<usize>)) {
        visit(self.offset..self.offset + size_of::<F>());
    }

    fields_by_values!();
}

impl<R, F: Plain> Columns<R> for Column<R, F> {
    #[inline(always)]
    unsafe fn read(self, row: *const R) -> F {
        // SAFETY: the field lies within the row, as the maker promised, and its bytes are a row's.
        unsafe { row.byte_add(self.offset).cast::<F>().read() }
    }

    #[inline(always)]
    unsafe fn write(self, row: *mut R, value: F) {
        // SAFETY: the field lies within the row, as the maker promised.
        unsafe { row.byte_add(self.offset).cast::<F>().write(value) };
    }
}

macro_rules! tuples {
    ($(($($column:ident $at:tt),+))+) => {$(
        impl<$($column: sealed::Sealed),+> sealed::Sealed for ($($column,)+) {}

        impl<R, $($column: Columns<R>),+> Fields<R> for ($($column,)+) {
            type Values = ($($column::Values,)+);

            #[inline(always)]
            fn each_place(self, mut visit: impl FnMut(Range<usize>)) {
                $(self.$at.each_place(&mut visit);)+
            }

            fields_by_values!();
        }

        impl<R, $($column: Columns<R>),+> Columns<R> for ($($column,)+) {
            #[inline(always)]
            unsafe fn read(self, row: *const R) -> Self::Values {
                // SAFETY: the caller's promise.
                unsafe { ($(self.$at.read(row),)+) }
            }

            #[inline(always)]
            unsafe fn write(self, row: *mut R, values: Self::Values) {
                // SAFETY: the caller's promise.
                unsafe { $(self.$at.write(row, values.$at);)+ }
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

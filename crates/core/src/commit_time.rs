//! Commit-time changes: what a transaction will do to a value that it has not read.
//!
//! Most hot rows are only added to. A transaction that adds to a value need not know it: the commit applies the change to the
//! value that it finds then, under the segment's lock (the commit-time updates of STOv2, Huang et al., VLDB 2020). So two
//! transactions that only make such changes serialize on that lock and never abort each other. A pending write of this kind
//! is a list of changes instead of a value.
//!
//! An operation that needs the value turns the list into an ordinary pending value first: it reads the segment, which is a
//! conflict with other writers from then on.
//!
//! # Conditions
//!
//! A subtraction that is made only if there is enough notes what it depends on: that the number is large enough, and not
//! which one it is (an optimistic transactional predicate, sto §3.5). The commit judges it again, on the value that it is going
//! to change. Conditions are in the list, too, each with the sum of the changes before it.
//!
//! # Savepoints
//!
//! The links of a list never change once they are made, so that a savepoint saves the list by copying a pointer. A condition
//! that is noted within a part of the body that may be undone alone would be lost with the part, although the body goes on as
//! it does because of it. So there is none in such a part: the number itself is read there.
//!
//! The list is in the attempt's arena.

use crate::cell::Plain;
use crate::column::{Column, Columns};
use crate::pin::Pin;
use crate::protocol::Protocol;
use crate::transaction::ObjectAccess;
use crate::users_code::contained;
use std::mem::ManuallyDrop;
use std::ops::Range;
use std::ptr::{NonNull, null};

mod sealed {
    pub trait Sealed: Copy + Ord {
        /// The value, or one that agrees with it in the lower bits.
        fn widen(self) -> u64;

        /// The value of the lower bits.
        fn narrow(bits: u64) -> Self;
    }
}

/// A type of a number that can be added to at the commit: an integer. Additions wrap around at the ends of its range.
pub trait Addend: Plain + sealed::Sealed {}

macro_rules! addends {
    ($($integer:ty)+) => {$(
        impl sealed::Sealed for $integer {
            #[inline(always)]
            fn widen(self) -> u64 {
                self as u64
            }

            #[inline(always)]
            fn narrow(bits: u64) -> Self {
                bits as Self
            }
        }
        impl Addend for $integer {}
    )+};
}
addends!(i8 i16 i32 i64 u8 u16 u32 u64);

/// A change that needs no value but the one that it finds at the commit.
///
/// It is plain data, or users' code. Users' code may run several times, each time on another copy of the value: once at the
/// commit, and whenever an operation of the same transaction needs the value before.
pub trait CommitTimeChange<R>: Sized {
    /// Changes a value.
    fn change(&self, value: &mut R);

    /// Appends itself to a list. `Err` with the change itself if the attempt cannot keep it: then the caller reads the value
    /// and changes it.
    ///
    /// # Errors
    ///
    /// See above.
    fn append<P: Protocol>(
        self,
        changes: CommitTimeChanges<R>,
        tx: &mut ObjectAccess<'_, P>,
    ) -> Result<CommitTimeChanges<R>, Self>;
}

/// An amount to be added to a column.
#[derive(Debug)]
pub struct Addition<R, F> {
    column: Column<R, F>,
    amount: F,
}

impl<R, F: Addend> Addition<R, F> {
    /// Adds `amount`, which may be negative.
    #[inline(always)]
    pub fn new(column: Column<R, F>, amount: F) -> Self {
        Self { column, amount }
    }

    /// Subtracts `amount`.
    #[inline(always)]
    pub fn negative(column: Column<R, F>, amount: F) -> Self {
        Self { column, amount: F::narrow(amount.widen().wrapping_neg()) }
    }
}

impl<R: 'static, F: Addend> CommitTimeChange<R> for Addition<R, F> {
    #[inline(always)]
    fn change(&self, row: &mut R) {
        let column = self.column.of_mut(row);
        *column = F::narrow(column.widen().wrapping_add(self.amount.widen()));
    }

    #[inline]
    fn append<P: Protocol>(
        self,
        changes: CommitTimeChanges<R>,
        tx: &mut ObjectAccess<'_, P>,
    ) -> Result<CommitTimeChanges<R>, Self> {
        let place = Place::of(self.column);
        let (mut amount, mut before) = (self.amount.widen(), changes);
        // One amount for both, so that the list stays as short as the columns are few, mostly.
        if let Some(Change { kind: Kind::Add { place: last, amount: more }, before: earlier }) =
            changes.last()
            && *last == place
        {
            amount = amount.wrapping_add(*more);
            before = *earlier;
        }
        Ok(before.with(Kind::Add { place, amount }, tx))
    }
}

/// A change by users' code.
#[derive(Debug)]
pub struct Applied<C>(pub C);

impl<R: 'static, C: Fn(&mut R) + Send + 'static> CommitTimeChange<R> for Applied<C> {
    #[inline(always)]
    fn change(&self, value: &mut R) {
        (self.0)(value);
    }

    #[inline]
    fn append<P: Protocol>(
        self,
        changes: CommitTimeChanges<R>,
        tx: &mut ObjectAccess<'_, P>,
    ) -> Result<CommitTimeChanges<R>, Self> {
        // The memory of a thief's attempt is dropped before its writes are installed.
        if tx.attempt.graph.is_thief {
            return Err(self);
        }
        let code: NonNull<dyn Fn(&mut R) + Send> = tx.keep(self.0);
        Ok(changes.with(Kind::Apply(code), tx))
    }
}

/// The place of a column in its row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    offset: u32,
    bytes: u32,
}

impl Place {
    fn of<R, F: Plain>(column: Column<R, F>) -> Self {
        let mut place = Self { offset: 0, bytes: 0 };
        column.for_each(|range| {
            place = Self { offset: range.start as u32, bytes: range.len() as u32 };
        });
        place
    }

    fn range(self) -> Range<usize> {
        let start = self.offset as usize;
        start..start + self.bytes as usize
    }

    /// Adds an amount to the column. An addition that wraps around is the same for all integers of a size.
    ///
    /// # Safety
    ///
    /// It is the place of an integer in a row of this type.
    #[inline]
    unsafe fn add<R>(self, row: *mut R, amount: u64) {
        macro_rules! add {
            ($integer:ty) => {{
                // SAFETY: the caller's promise: the column lies within the row, is aligned there, and is an integer of
                // this size.
                unsafe {
                    let column = row.byte_add(self.offset as usize).cast::<$integer>();
                    column.write(column.read().wrapping_add(amount as $integer));
                }
            }};
        }
        match self.bytes {
            1 => add!(u8),
            2 => add!(u16),
            4 => add!(u32),
            _ => add!(u64),
        }
    }

    /// Returns the bits of the column.
    ///
    /// # Safety
    ///
    /// As for [`add`](Self::add); the column is initialised.
    unsafe fn bits<R>(self, row: *const R) -> u64 {
        macro_rules! bits {
            ($integer:ty) => {
                // SAFETY: as in `add`.
                u64::from(unsafe { row.byte_add(self.offset as usize).cast::<$integer>().read() })
            };
        }
        match self.bytes {
            1 => bits!(u8),
            2 => bits!(u16),
            4 => bits!(u32),
            _ => bits!(u64),
        }
    }
}

/// The changes that a transaction will make to one value when it commits: the payload of a pending write.
pub struct CommitTimeChanges<R>(*const Change<R>);

impl<R> Clone for CommitTimeChanges<R> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<R> Copy for CommitTimeChanges<R> {}

impl<R> std::fmt::Debug for CommitTimeChanges<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CommitTimeChanges").finish_non_exhaustive()
    }
}

/// A change, and the ones before it.
struct Change<R> {
    kind: Kind<R>,
    before: CommitTimeChanges<R>,
}

#[derive(Clone, Copy)]
enum Kind<R> {
    /// Adds to a column.
    Add { place: Place, amount: u64 },
    /// Runs users' code, which is in the attempt's arena.
    Apply(NonNull<dyn Fn(&mut R) + Send>),
    /// Changes nothing: a condition. `holds` gets the column's bits, `sum` and `bound`.
    Least { place: Place, sum: u64, bound: u64, holds: fn(u64, u64, u64) -> bool },
}

fn is_at_least<F: Addend>(bits: u64, sum: u64, bound: u64) -> bool {
    F::narrow(bits.wrapping_add(sum)) >= F::narrow(bound)
}

/// A column on which a list's condition depends.
#[derive(Debug)]
pub struct Needed(Place);

impl Needed {
    /// The place of the column's bytes in the row.
    pub fn bytes(&self) -> Range<usize> {
        self.0.range()
    }

    /// Returns the column's bits.
    ///
    /// # Safety
    ///
    /// `row` points to a row of the list's type, whose [bytes](Self::bytes) of the column are initialised. They are in one
    /// word, so that they were loaded at once.
    pub unsafe fn bits<R>(&self, row: *const R) -> u64 {
        // SAFETY: the caller's promise; places of conditions are those of integers.
        unsafe { self.0.bits(row) }
    }
}

impl<R> CommitTimeChanges<R> {
    /// No changes.
    pub const NONE: Self = Self(null());

    fn last(&self) -> Option<&Change<R>> {
        // SAFETY: in the attempt's arena, which is not cleared as long as the attempt has this payload.
        unsafe { self.0.as_ref() }
    }

    fn iter(&self) -> impl Iterator<Item = &Kind<R>> {
        std::iter::successors(self.last(), |change| {
            // SAFETY: as in `last`.
            unsafe { change.before.0.as_ref() }
        })
        .map(|change| &change.kind)
    }

    fn with<P: Protocol>(self, kind: Kind<R>, tx: &mut ObjectAccess<'_, P>) -> Self {
        let place = tx.reserve::<Change<R>>();
        // SAFETY: room for one, which nobody else has.
        unsafe { place.write(Change { kind, before: self }) };
        Self(place)
    }

    /// True if there is a condition among them.
    pub fn has_conditions(self) -> bool {
        self.iter().any(|kind| matches!(kind, Kind::Least { .. }))
    }

    /// True if users' code is among them.
    pub fn runs_code(self) -> bool {
        self.iter().any(|kind| matches!(kind, Kind::Apply(_)))
    }

    /// Makes all changes to a value, the first one first.
    ///
    /// # Safety
    ///
    /// The changes were made for values of this type by the attempt in progress.
    pub unsafe fn apply(self, value: &mut R) {
        // The order of additions does not matter, and one change has none.
        if self.runs_code() && self.iter().nth(1).is_some() {
            let mut all: Vec<_> = self.iter().collect();
            while let Some(kind) = all.pop() {
                // SAFETY: the caller's promise.
                unsafe { kind.apply(value) };
            }
        } else {
            // SAFETY: the caller's promise.
            self.iter().for_each(|kind| unsafe { kind.apply(value) });
        }
    }

    /// Makes all changes to a copy of the value, and returns it. `None` if users' code panics: then nothing is to be changed, and
    /// what there is of the copy is dropped when the pin's epoch has ended, because a panic in its `Drop` would be a second one.
    ///
    /// # Safety
    ///
    /// As for [`apply`](Self::apply).
    pub unsafe fn applied(self, copy: impl FnOnce() -> R, pin: &Pin) -> Option<R>
    where
        R: Send + 'static,
    {
        let mut value = ManuallyDrop::new(contained(copy)?);
        // SAFETY: the caller's promise.
        let has_changed = contained(|| unsafe { self.apply(&mut value) }).is_some();
        let value = ManuallyDrop::into_inner(value);
        if !has_changed {
            pin.drop_later(value);
            return None;
        }
        Some(value)
    }

    /// Subtracts an amount, if there is enough: `base` is the column's value without these changes. `None` if there is not.
    ///
    /// No users' code may be among the changes: what it does to the column is unknown.
    pub fn subtract_if_enough<F: Addend, P: Protocol>(
        self,
        tx: &mut ObjectAccess<'_, P>,
        column: Column<R, F>,
        amount: F,
        base: F,
    ) -> Option<Self>
    where
        R: 'static,
    {
        debug_assert!(!self.runs_code());
        let place = Place::of(column);
        let sum = self.iter().fold(0u64, |sum, kind| match kind {
            Kind::Add { place: to, amount } if *to == place => sum.wrapping_add(*amount),
            _ => sum,
        });
        if !is_at_least::<F>(base.widen(), sum, amount.widen()) {
            return None;
        }
        let condition = Kind::Least { place, sum, bound: amount.widen(), holds: is_at_least::<F> };
        Addition::negative(column, amount).append(self.with(condition, tx), tx).ok()
    }

    /// True if all conditions hold of a value, whose columns `load` returns.
    pub fn hold(self, mut load: impl FnMut(Needed) -> u64) -> bool {
        self.iter().all(|kind| match kind {
            Kind::Least { place, sum, bound, holds } => holds(load(Needed(*place)), *sum, *bound),
            _ => true,
        })
    }

    /// True if all conditions hold of a value.
    ///
    /// # Safety
    ///
    /// As for [`apply`](Self::apply).
    pub unsafe fn hold_of(self, value: &R) -> bool {
        // SAFETY: the caller's promise.
        self.hold(|needed| unsafe { needed.bits(value) })
    }
}

impl<R> Kind<R> {
    /// # Safety
    ///
    /// As for [`CommitTimeChanges::apply`].
    #[inline]
    unsafe fn apply(&self, value: &mut R) {
        match self {
            // SAFETY: the caller's promise.
            Self::Add { place, amount } => unsafe { place.add(value, *amount) },
            // SAFETY: in the attempt's arena, which drops it when the attempt ends.
            Self::Apply(code) => unsafe { (code.as_ref())(value) },
            Self::Least { .. } => {}
        }
    }
}

impl<P: Protocol> ObjectAccess<'_, P> {
    /// Moves a value to the attempt's memory, which drops it when the attempt ends.
    fn keep<T: Send + 'static>(&mut self, value: T) -> NonNull<T> {
        let place = self.reserve::<T>();
        // SAFETY: room for one, which nobody else has and nobody else drops.
        unsafe {
            place.write(value);
            self.attempt.operations.drop_later(place);
            NonNull::new_unchecked(place)
        }
    }

    /// True if a part of the body is running that can be undone alone.
    pub fn is_in_part(&self) -> bool {
        self.attempt.savepoints.is_open()
    }
}

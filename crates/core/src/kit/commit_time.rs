//! Commit-time changes: what a transaction will do to a value that it has not read.
//!
//! Most hot rows are only added to. A transaction that adds to a value need not know it: the commit applies the change to the
//! value that it finds then, under the segment's lock (the commit-time updates of STOv2, Huang et al., VLDB 2020). So two
//! transactions that only make such changes serialize on that lock and never abort each other. A pending write of this kind
//! is a list of changes instead of a value.
//!
//! At the commit, while everything to be written is locked and nothing is logged or installed, each list is judged: do the sums stay in
//! range? Users' code runs then, once, and what it has made of the value is what the log and memory get. So an overflow or a panic rolls the
//! transaction back, and nobody has seen anything.
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

use crate::kernel::abort::Abort;
use crate::kernel::item::ItemId;
use crate::kernel::object::Object;
use crate::kernel::object::OutOfRange;
use crate::kernel::object_access::ObjectAccess;
use crate::kernel::protocol::Protocol;
use crate::kernel::slots::Moments;
use crate::memory::cell::{Cell as _, Plain, Value};
use crate::memory::column::{Column, Fields};
use crate::memory::pin::Pin;
use std::fmt;
use std::mem::ManuallyDrop;
use std::ops::Range;
use std::ptr::{NonNull, null};

mod sealed {
    pub trait Sealed: Copy + Ord {
        /// The value, or one that agrees with it in the lower bits.
        fn widen(self) -> u64;

        /// The value of the lower bits.
        fn narrow(bits: u64) -> Self;

        /// The number itself.
        fn wide(self) -> i128;

        /// True if the number of these bits, and an amount, are together in the type's range.
        fn fits(bits: u64, amount: i128) -> bool;
    }
}

/// A type of a number that can be added to at the commit: an integer.
pub trait Addend: Plain + sealed::Sealed {
    /// The least number of the type.
    const LEAST: i128;
    /// The greatest number of the type.
    const GREATEST: i128;

    /// The number.
    #[inline]
    fn number(self) -> i128 {
        self.wide()
    }
}

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

            #[inline(always)]
            fn wide(self) -> i128 {
                self as i128
            }

            fn fits(bits: u64, amount: i128) -> bool {
                let sum = (bits as Self as i128).saturating_add(amount);
                sum as Self as i128 == sum
            }
        }
        impl Addend for $integer {
            const LEAST: i128 = <$integer>::MIN as i128;
            const GREATEST: i128 = <$integer>::MAX as i128;
        }
    )+};
}
addends!(i8 i16 i32 i64 u8 u16 u32 u64);

/// A change that needs no value but the one that it finds at the commit.
///
/// It is plain data, or users' code. At the commit users' code runs once, and the log and memory get the same value. It also runs on another
/// copy of the value whenever an operation of the same transaction needs that before.
pub trait CommitTimeChange<R>: Sized {
    /// Changes a value.
    ///
    /// # Errors
    ///
    /// [`OutOfRange`]: then the value is as it was.
    fn change(&self, value: &mut R) -> Result<(), OutOfRange>;

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

/// An addition would leave the range of a number. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Overflow {
    /// The name of the table or object.
    pub object: String,
    /// The row's key, or the element's index; `value` for an object of one value.
    pub key: String,
}

impl Overflow {
    /// Makes the error.
    pub fn new(object: impl Into<String>, key: impl Into<String>) -> Self {
        Self { object: object.into(), key: key.into() }
    }
}

impl fmt::Display for Overflow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { object, key } = self;
        let key = if key.is_empty() { String::new() } else { format!("[{key}]") };
        write!(f, "an addition to {object}{key} leaves the range of the number")
    }
}

impl std::error::Error for Overflow {}

/// An amount to be added to a column.
#[derive(Debug)]
pub struct Addition<R, F> {
    column: Column<R, F>,
    amount: i128,
    wraps: bool,
}

impl<R, F: Addend> Addition<R, F> {
    /// Adds `amount`, which may be negative. A sum that leaves the column's range is an error.
    #[inline(always)]
    pub fn new(column: Column<R, F>, amount: F) -> Self {
        Self { column, amount: amount.wide(), wraps: false }
    }

    /// Subtracts `amount`, as [`new`](Self::new) adds it.
    #[inline(always)]
    pub fn negative(column: Column<R, F>, amount: F) -> Self {
        Self { column, amount: -amount.wide(), wraps: false }
    }

    /// Lets the sum wrap around at the ends of the column's range.
    #[must_use]
    pub fn wrapping(self) -> Self {
        Self { wraps: true, ..self }
    }

    /// The same addition to a column of another type of row.
    pub fn to<S>(self, column: Column<S, F>) -> Addition<S, F> {
        Addition { column, amount: self.amount, wraps: self.wraps }
    }

    /// The column.
    pub fn column(&self) -> Column<R, F> {
        self.column
    }
}

impl<R: 'static, F: Addend> CommitTimeChange<R> for Addition<R, F> {
    #[inline(always)]
    fn change(&self, row: &mut R) -> Result<(), OutOfRange> {
        let column = self.column.of_mut(row);
        if !self.wraps && !F::fits(column.widen(), self.amount) {
            return Err(OutOfRange);
        }
        *column = F::narrow(column.widen().wrapping_add(self.amount as u64));
        Ok(())
    }

    #[inline]
    fn append<P: Protocol>(
        self,
        changes: CommitTimeChanges<R>,
        tx: &mut ObjectAccess<'_, P>,
    ) -> Result<CommitTimeChanges<R>, Self> {
        let (place, range) = (Place::of(self.column), (!self.wraps).then_some(F::fits as Fits));
        let mut addition = AddTo { place, amount: self.amount, range };
        let mut before = changes;
        // One amount for both, so that the list stays as short as the columns are few, mostly.
        if let Some(Change { kind: Kind::Add(last), before: earlier }) = changes.last()
            && last.place == place
            && last.range.is_some() == range.is_some()
        {
            addition.amount = addition.amount.saturating_add(last.amount);
            before = *earlier;
        }
        Ok(before.with(Kind::Add(addition), tx))
    }
}

/// A change by users' code.
#[derive(Debug)]
pub struct Applied<C>(pub C);

/// Users' code that cannot fail, as a change.
#[inline(always)]
pub fn always<V>(
    change: impl Fn(&mut V) + Send + 'static,
) -> impl Fn(&mut V) -> Result<(), OutOfRange> + Send + 'static {
    move |value| {
        change(value);
        Ok(())
    }
}

impl<R: 'static, C: Fn(&mut R) -> Result<(), OutOfRange> + Send + 'static> CommitTimeChange<R>
    for Applied<C>
{
    #[inline(always)]
    fn change(&self, value: &mut R) -> Result<(), OutOfRange> {
        (self.0)(value)
    }

    #[inline]
    fn append<P: Protocol>(
        self,
        changes: CommitTimeChanges<R>,
        tx: &mut ObjectAccess<'_, P>,
    ) -> Result<CommitTimeChanges<R>, Self> {
        // The memory of a thief's attempt is dropped before its writes are installed.
        if tx.attempt.features.graph.is_thief {
            return Err(self);
        }
        let code: NonNull<UsersChange<R>> = tx.keep(self.0);
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
        column.each_place(|range| {
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

/// Users' code that changes a value.
type UsersChange<R> = dyn Fn(&mut R) -> Result<(), OutOfRange> + Send;

/// Tells if a column's bits, and an amount, are together in the range of its type.
type Fits = fn(u64, i128) -> bool;

/// An amount for a column. It wraps around if there is no range.
#[derive(Clone, Copy)]
struct AddTo {
    place: Place,
    amount: i128,
    range: Option<Fits>,
}

/// The additions to each column, together. Most transactions add once, which needs no memory.
#[derive(Default)]
struct Sums {
    first: Option<AddTo>,
    /// All, once there are several; of each column also what wraps around, which is added before.
    several: Vec<(AddTo, u64)>,
}

impl Sums {
    fn add(&mut self, addition: AddTo) {
        match self.first {
            None => self.first = Some(addition),
            Some(first) => {
                if self.several.is_empty() {
                    self.add_to_sum(first);
                }
                self.add_to_sum(addition);
            }
        }
    }

    fn add_to_sum(&mut self, AddTo { place, amount, range }: AddTo) {
        let known = self.several.iter().position(|(sum, _)| sum.place == place);
        let at = known.unwrap_or_else(|| {
            self.several.push((AddTo { place, amount: 0, range: None }, 0));
            self.several.len() - 1
        });
        let (sum, wrapping) = &mut self.several[at];
        match range {
            None => *wrapping = wrapping.wrapping_add(amount as u64),
            Some(_) => (sum.amount, sum.range) = (sum.amount.saturating_add(amount), range),
        }
    }

    /// True if all stay in their ranges. `load` returns the bits of a column.
    fn fit(&self, load: &mut dyn FnMut(Needed) -> u64) -> bool {
        let mut fits = |&AddTo { place, amount, range }: &AddTo, wrapping: u64| {
            range.is_none_or(|fits| fits(load(Needed(place)).wrapping_add(wrapping), amount))
        };
        match &self.first {
            Some(first) if self.several.is_empty() => fits(first, 0),
            _ => self.several.iter().all(|(sum, wrapping)| fits(sum, *wrapping)),
        }
    }
}

#[derive(Clone, Copy)]
enum Kind<R> {
    /// Adds to a column.
    Add(AddTo),
    /// Runs users' code, which is in the attempt's arena.
    Apply(NonNull<UsersChange<R>>),
    /// Changes nothing: a condition. `holds` gets the column's bits, `sum` and `bound`.
    Least { place: Place, sum: i128, bound: i128, holds: fn(u64, i128, i128) -> bool },
    /// Changes nothing: the value that the commit has made of all changes before, in the attempt's arena, until it is installed.
    Result(NonNull<Option<R>>),
}

fn is_at_least<F: Addend>(bits: u64, sum: i128, bound: i128) -> bool {
    F::narrow(bits).wide().saturating_add(sum) >= bound
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
        tx.attempt.hears.add(Moments::SETTLE);
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

    /// True if the changes are made to a copy of the value, once and for all, before anything is logged or installed: they run users' code,
    /// or the copy itself does. Others are made when the value is installed, in a [region](crate::features::region) as well.
    #[inline]
    pub fn need_copy(self) -> bool
    where
        R: Value,
    {
        !R::Cell::COPIES || self.runs_code()
    }

    /// Makes all changes to a value, the first one first.
    ///
    /// # Errors
    ///
    /// [`OutOfRange`]: then the value is not to be used.
    ///
    /// # Safety
    ///
    /// The changes were made for values of this type by the attempt in progress.
    pub unsafe fn apply(self, value: &mut R) -> Result<(), OutOfRange> {
        if self.runs_code() {
            let mut all: Vec<_> = self.iter().collect();
            while let Some(kind) = all.pop() {
                // SAFETY: the caller's promise.
                unsafe { kind.apply(value) }?;
            }
            return Ok(());
        }
        // SAFETY: the caller's promise.
        if !unsafe { self.fit_to(value) } {
            return Err(OutOfRange);
        }
        // SAFETY: the caller's promise.
        unsafe { self.add_all(value) };
        Ok(())
    }

    /// Makes all changes, none of which runs users' code, to a value that they [fit](Self::fit).
    ///
    /// # Safety
    ///
    /// As for [`apply`](Self::apply).
    pub unsafe fn add_all(self, value: &mut R) {
        // The order of additions does not matter.
        for kind in self.iter() {
            if let Kind::Add(AddTo { place, amount, .. }) = kind {
                // SAFETY: the caller's promise.
                unsafe { place.add(value, *amount as u64) };
            }
        }
    }

    /// True if all additions to each column, together, stay in its range. `load` returns the bits of a column. No users' code is
    /// among the changes.
    pub fn fit(self, mut load: impl FnMut(Needed) -> u64) -> bool {
        let mut sums = Sums::default();
        for kind in self.iter() {
            if let Kind::Add(addition) = kind {
                sums.add(*addition);
            }
        }
        sums.fit(&mut load)
    }

    /// As [`fit`](Self::fit), to a value.
    ///
    /// # Safety
    ///
    /// As for [`apply`](Self::apply).
    pub unsafe fn fit_to(self, value: &R) -> bool {
        // SAFETY: the caller's promise.
        self.fit(|needed| unsafe { needed.bits(value) })
    }

    /// Makes all changes to a copy of the value, and returns it. If users' code panics, what there is of the copy is dropped when the
    /// pin's epoch has ended, because a panic in its `Drop` would be a second one.
    ///
    /// # Errors
    ///
    /// [`OutOfRange`].
    ///
    /// # Safety
    ///
    /// As for [`apply`](Self::apply).
    pub unsafe fn applied(self, copy: impl FnOnce() -> R, pin: &Pin) -> Result<R, OutOfRange>
    where
        R: Send + 'static,
    {
        let mut copy = DroppedLater { value: ManuallyDrop::new(copy()), pin };
        // SAFETY: the caller's promise.
        unsafe { self.apply(&mut copy.value) }?;
        let mut copy = ManuallyDrop::new(copy);
        // SAFETY: the copy is not used again, nor dropped.
        Ok(unsafe { ManuallyDrop::take(&mut copy.value) })
    }

    /// Makes all changes to a copy of the value, once and for all: the returned list has the [result](Self::result). Called at the commit,
    /// while the segment is locked, before anything is logged or installed.
    ///
    /// # Errors
    ///
    /// [`OutOfRange`].
    ///
    /// # Safety
    ///
    /// As for [`apply`](Self::apply).
    pub unsafe fn settled<P: Protocol>(
        self,
        copy: impl FnOnce(&Pin) -> R,
        tx: &mut ObjectAccess<'_, P>,
    ) -> Result<Self, OutOfRange>
    where
        R: Send + 'static,
    {
        // SAFETY: the caller's promise.
        let value = unsafe { self.applied(|| copy(tx.pin()), tx.pin()) }?;
        let result = tx.keep(Some(value));
        Ok(self.with(Kind::Result(result), tx))
    }

    /// The value that the commit has made of the changes, if it has [settled](Self::settled) them.
    ///
    /// # Safety
    ///
    /// As for [`apply`](Self::apply). Nobody takes the result meanwhile.
    pub unsafe fn result<'a>(self) -> Option<&'a R> {
        match self.last()?.kind {
            // SAFETY: in the attempt's arena, and the caller's promise.
            Kind::Result(result) => unsafe { result.as_ref() }.as_ref(),
            _ => None,
        }
    }

    /// As [`result`](Self::result), to be installed.
    ///
    /// # Safety
    ///
    /// As for [`result`](Self::result).
    pub unsafe fn take_result(self) -> Option<R> {
        match self.last()?.kind {
            // SAFETY: as in `result`; the attempt's alone.
            Kind::Result(mut result) => unsafe { result.as_mut() }.take(),
            _ => None,
        }
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
        let sum = self.iter().fold(0i128, |sum, kind| match kind {
            Kind::Add(addition) if addition.place == place => sum.saturating_add(addition.amount),
            _ => sum,
        });
        if !is_at_least::<F>(base.widen(), sum, amount.wide()) {
            return None;
        }
        let condition = Kind::Least { place, sum, bound: amount.wide(), holds: is_at_least::<F> };
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
    unsafe fn apply(&self, value: &mut R) -> Result<(), OutOfRange> {
        match self {
            // SAFETY: the caller's promise.
            Self::Add(AddTo { place, amount, range }) => unsafe {
                if range.is_some_and(|fits| !fits(place.bits(value), *amount)) {
                    return Err(OutOfRange);
                }
                place.add(value, *amount as u64);
            },
            // SAFETY: in the attempt's arena, which drops it when the attempt ends.
            Self::Apply(code) => return unsafe { (code.as_ref())(value) },
            Self::Least { .. } | Self::Result(_) => {}
        }
        Ok(())
    }
}

/// A value whose `Drop` runs when the pin's epoch has ended.
struct DroppedLater<'p, R: Send + 'static> {
    value: ManuallyDrop<R>,
    pin: &'p Pin,
}

impl<R: Send + 'static> Drop for DroppedLater<'_, R> {
    fn drop(&mut self) {
        // SAFETY: it is not used again.
        self.pin.drop_later(unsafe { ManuallyDrop::take(&mut self.value) });
    }
}

impl<P: Protocol> ObjectAccess<'_, P> {
    /// The error of an addition to a segment of an object.
    ///
    /// # Safety
    ///
    /// The segment is the object's.
    #[cold]
    #[inline(never)]
    pub unsafe fn overflow(object: &dyn Object<P>, segment: NonNull<P::Header>) -> Abort {
        // SAFETY: the caller's promise.
        Overflow::new(object.meta().name(), unsafe { object.describe(segment) }).into()
    }

    /// The error of an addition to an item's segment.
    #[cold]
    #[inline(never)]
    pub fn overflow_of(&self, id: ItemId) -> Abort {
        let (segment, object) = self.attempt.items.get(id).touched.into_parts();
        // SAFETY: the object stays in memory until the attempt ends, and the segment is its own.
        unsafe { Self::overflow(object.as_ref(), segment) }
    }

    /// The segment of an item.
    pub fn segment_of(&self, id: ItemId) -> NonNull<P::Header> {
        self.attempt.items.get(id).segment()
    }

    /// Makes all changes at the commit, as far as that can be known to fail, or has to be done once: all that is written is locked, and
    /// nothing is logged or installed. Otherwise the attempt is stopped, and the result is false.
    pub(crate) fn settle_changes(&mut self) -> bool {
        self.attempt.hears.remove(Moments::SETTLE);
        let settled = self.catching(|tx| {
            for at in 0..tx.attempt.items.writes().len() {
                let id = tx.attempt.items.writes()[at];
                let (_, object) = tx.attempt.items.get(id).touched.into_parts();
                // SAFETY: the object stays in memory until the attempt ends, and the item has a pending write of it, whose segment is locked.
                let settled = unsafe { object.as_ref().settle(id, tx) };
                settled.map_err(|OutOfRange| tx.overflow_of(id))?;
            }
            Ok(())
        });
        settled.is_ok()
    }

    /// Moves a value to the attempt's memory, which drops it when the attempt ends.
    #[inline]
    pub(super) fn keep<T: Send + 'static>(&mut self, value: T) -> NonNull<T> {
        let place = self.reserve::<T>();
        // SAFETY: room for one, which nobody else has and nobody else drops.
        unsafe {
            place.write(value);
            if std::mem::needs_drop::<T>() {
                self.attempt.drop_later(place);
            }
            NonNull::new_unchecked(place)
        }
    }

    /// True if a part of the body is running that can be undone alone.
    pub fn is_in_part(&self) -> bool {
        self.attempt.features.savepoints.is_open()
    }
}

//! Additions to columns, which commute.
//!
//! An addition does not read its row. It is a pending write of its own kind: a list of amounts, which the commit adds to
//! the row's present value under the segment's lock (STOv2's commit-time updates; the increments of `TCounter`, for rows).
//! As a [replacement](Table::replace) does, it depends only on the predicate that the row exists. So transactions that
//! only add to a row serialize on its lock and never abort each other.
//!
//! An operation that needs the value turns the additions into an update first: it reads the row, which is a conflict with
//! other writers from then on.
//!
//! The list is in the attempt's arena. Its links never change once they are made, so that a savepoint saves the list by
//! copying a pointer.
//!
//! Only rows that are plain data are added to in this way: the commit copies the row while it holds the lock, and must not
//! run users' code there. Other rows are updated, and so are rows that an index or a constraint has to look at.

use crate::key::{AsKey, Key};
use crate::operations::RowView;
use crate::record::{Pending, Record, Snapshot, State};
use crate::storage::{Shared, tag};
use crate::table::Table;
use hotrow_core::{
    Abort, Cell, Column, Columns, Item, ItemId, ObjectAccess, Pin, Plain, Protocol, Reason, SavedWrite,
    Saver, Transaction, Value,
};
use std::mem::MaybeUninit;
use std::ptr::{NonNull, null};

mod sealed {
    pub trait Sealed {
        /// The value, or one that agrees with it in the lower bits.
        fn widen(self) -> u128;
    }
}

/// A type of a column that can be [added to](Table::add): an integer. Additions wrap around at the ends of its range.
pub trait Addend: Plain + sealed::Sealed {}

macro_rules! addends {
    ($($integer:ty)+) => {$(
        impl sealed::Sealed for $integer {
            #[inline(always)]
            fn widen(self) -> u128 {
                self as u128
            }
        }
        impl Addend for $integer {}
    )+};
}
addends!(i8 i16 i32 i64 u8 u16 u32 u64);

/// An amount to be added to a column, and the ones before it.
#[derive(Clone, Copy)]
struct Addition {
    /// The column's place in the row.
    offset: usize,
    /// The column's size.
    bytes: usize,
    amount: u128,
    before: *const Addition,
}

impl Addition {
    fn new<R, F: Addend>(column: Column<R, F>, amount: F) -> Self {
        let (mut offset, mut bytes) = (0, 0);
        column.for_each(|place| (offset, bytes) = (place.start, place.len()));
        Self { offset, bytes, amount: amount.widen(), before: null() }
    }

    /// Adds the amount to a row's column. An addition that wraps around is the same for all integers of a size.
    ///
    /// # Safety
    ///
    /// The addition was made for a column of this type of rows, which `row` points to.
    #[inline]
    unsafe fn add_to<R>(&self, row: *mut R) {
        macro_rules! add {
            ($integer:ty) => {{
                // SAFETY: the caller's promise: the column lies within the row, is aligned there, and is an integer of
                // this size.
                unsafe {
                    let column = row.byte_add(self.offset).cast::<$integer>();
                    column.write(column.read().wrapping_add(self.amount as $integer));
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

    /// Adds this amount and all before it to a row.
    ///
    /// # Safety
    ///
    /// As for [`add_to`](Self::add_to), of all of them, which are in memory.
    unsafe fn add_all<R>(last: *const Addition, row: &mut R) {
        let row = std::ptr::from_mut(row);
        let mut next = last;
        // SAFETY: the caller's promise.
        while let Some(addition) = unsafe { next.as_ref() } {
            // SAFETY: as above.
            unsafe { addition.add_to(row) };
            next = addition.before;
        }
    }
}

impl<K: Key, R: Value, P: Protocol> Shared<K, R, P> {
    /// Adds to a column of a row. False if there is none with this key.
    fn add<F: Addend>(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
        column: Column<R, F>,
        amount: F,
    ) -> Result<bool, Abort> {
        let addition = Addition::new(column, amount);
        if !R::Cell::COPIES || self.guards_changes || !self.secondaries.is_empty() {
            // SAFETY: made of a column of `R`.
            return Ok(self.update(tx, key, |row| unsafe { addition.add_to(row) })?.is_some());
        }
        let tx = self.enter_to_write(tx)?;
        loop {
            let Some(record) = self.find(tx, key)? else { return Ok(false) };
            // SAFETY: as in `read_record`.
            let (id, pending) = unsafe { tx.write(self, Record::address(record)) }?;
            if pending {
                return self.add_to_own(tx, record, id, addition);
            }
            // As in `replace`.
            // SAFETY: the state looked at is the item's record's.
            if unsafe { tx.peek(id, || record.as_ref().state()) }? != State::Present {
                self.unlink_dead(tx, record);
                continue;
            }
            let last = allocate(tx, addition);
            // SAFETY: announced just now, and the tag says what the payload is; the predicate of a record needs none of
            // its own.
            unsafe {
                tx.set_tag(id, tag::ADD);
                tx.set_write(id, last);
                tx.set_predicate::<()>(id, None);
            }
            if tx.is_recorded() && self.index.is_ordered() {
                tx.record_intent(id);
            }
            return Ok(true);
        }
    }

    /// Adds to a row that has a pending write of this attempt. False if that is a delete.
    fn add_to_own(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        record: NonNull<Record<K, R, P>>,
        id: ItemId,
        mut addition: Addition,
    ) -> Result<bool, Abort> {
        if tx.tag(id) != tag::ADD {
            // SAFETY: made of a column of `R`.
            return Ok(self.update_own(tx, record, id, |row| unsafe { addition.add_to(row) })?.is_some());
        }
        // SAFETY: the payload of additions is of this type.
        addition.before = unsafe { *tx.payload::<*const Addition>(id) };
        // SAFETY: in the attempt's arena.
        if let Some(last) = unsafe { addition.before.as_ref() }
            && (last.offset, last.bytes) == (addition.offset, addition.bytes)
        {
            // One amount for both, so that the list stays as short as the columns are few, mostly.
            addition.amount = addition.amount.wrapping_add(last.amount);
            addition.before = last.before;
        }
        let last = allocate(tx, addition);
        // SAFETY: as above.
        *unsafe { tx.payload::<*const Addition>(id) } = last;
        Ok(true)
    }

    /// Turns the attempt's additions to a row into an update of it, because an operation needs the row's value.
    #[cold]
    #[inline(never)]
    pub(crate) fn settle_additions(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        record: NonNull<Record<K, R, P>>,
        id: ItemId,
    ) -> Result<(), Abort> {
        // SAFETY: the attempt has an item of the record, so it is in memory until the attempt ends. It has not made it: its
        // own rows are changed in place.
        let snapshot: Snapshot<R> = unsafe { tx.read_beside_write(id, || record.as_ref().load()) }?;
        if snapshot.state != State::Present {
            return Err(tx.conflict(Reason::PredicateFailed, id));
        }
        tx.save(id);
        // SAFETY: stable and present.
        let mut row = unsafe { snapshot.row(tx.pin()) }.clone();
        // SAFETY: the tag says what the payload is, then and now; the additions are of columns of `R`.
        unsafe {
            Addition::add_all(*tx.payload::<*const Addition>(id), &mut row);
            tx.set_tag(id, tag::UPDATE);
            tx.exchange_payload(id, R::Cell::pend(row));
        }
        Ok(())
    }

    /// Adds the pending amounts to the row, at the commit.
    ///
    /// # Safety
    ///
    /// The item's pending write is an addition, and the caller holds the segment's lock.
    pub(crate) unsafe fn install_additions(item: &Item<P>, record: &Record<K, R, P>, pin: &Pin) {
        let mut pending = MaybeUninit::<Pending<R>>::uninit();
        // SAFETY: only rows whose cells copy have additions; nothing is installed meanwhile, so that the copy is whole. The
        // additions are of columns of `R`.
        unsafe {
            record.load_pending(pending.as_mut_ptr());
            let mut pending = pending.assume_init();
            Addition::add_all(*item.payload::<*const Addition>(), R::Cell::pending_mut(&mut pending));
            record.install(pending, pin);
        }
    }

    /// The attempt's own pending write, as a row: additions become an update.
    #[inline(always)]
    pub(crate) fn own_row<S>(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        record: NonNull<Record<K, R, P>>,
        id: ItemId,
    ) -> Result<RowView<S>, Abort> {
        if tx.tag(id) == tag::ADD {
            self.settle_additions(tx, record, id)?;
        }
        Ok(RowView::Own(id))
    }
}

/// Moves an addition to the attempt's memory.
fn allocate<P: Protocol>(tx: &mut ObjectAccess<'_, P>, addition: Addition) -> *const Addition {
    let place = tx.reserve::<Addition>();
    // SAFETY: room for one, which nobody else has.
    unsafe { place.write(addition) };
    place
}

/// Saves additions for a savepoint: the list stays as it is.
///
/// # Safety
///
/// The item's pending write is an addition.
pub(crate) unsafe fn save_additions<P: Protocol>(item: &Item<P>, saver: &Saver<'_, P>) -> SavedWrite {
    // SAFETY: the caller's promise.
    saver.plain(unsafe { &*item.payload::<*const Addition>() })
}

/// Drops additions.
///
/// # Safety
///
/// The item's pending write is an addition.
pub(crate) unsafe fn drop_additions<P: Protocol>(item: &mut Item<P>) {
    // SAFETY: the caller's promise.
    let _ = unsafe { item.take_payload::<*const Addition>() };
}

impl<K: Key, R: Value, P: Protocol> Table<K, R, P> {
    /// Adds an amount (which may be negative) to a column of a row without reading it: `column!(Account, balance)`, or
    /// [`Column::whole`] for a row that is a number. It wraps around at the ends of the column's range.
    ///
    /// Transactions that only add to a row never abort each other: the amounts are added at the commit. A transaction
    /// that reads the row, before or afterwards, depends on its value like any reader. Rows that are boxed, and rows of a
    /// table with indexes or constraints, are [updated](Self::update) instead.
    ///
    /// # Errors
    ///
    /// As [`update`](Self::update).
    #[inline]
    pub fn add<F: Addend>(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
        column: Column<R, F>,
        amount: F,
    ) -> Result<(), Abort> {
        if self.shared.add(tx, key, column, amount)? { Ok(()) } else { Err(self.shared.missing(key)) }
    }

    /// As [`add`](Self::add), but a missing row is no error: false, and nothing changed, if there is none with this key.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    #[inline]
    pub fn add_if_present<F: Addend>(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
        column: Column<R, F>,
        amount: F,
    ) -> Result<bool, Abort> {
        self.shared.add(tx, key, column, amount)
    }
}

//! Commit-time changes of rows, which commute.
//!
//! A change of this kind does not read its row. It is a pending write of its own kind: a [list of
//! changes](hotrow_core::CommitTimeChanges), which the commit makes to the row's present value under the segment's lock. As a
//! [replacement](crate::Table::replace) does, it depends only on the predicate that the row exists, and on the conditions in the list.
//! So transactions that only make such changes to a row serialize on its lock and never abort each other.
//!
//! An operation that needs the row turns the changes into an update first.
//!
//! Rows that an index or a constraint has to look at are updated at once, and so are the columns of boxed rows: a number in a
//! boxed row would be looked at through users' `Clone`, under the lock, and for no gain.

use crate::key::{AsKey, Key};
use crate::record::{GroupsOf, Record, Snapshot, State, WordsOf};
use crate::rows::RecordView;
use crate::split::{MAIN, change_part};
use crate::storage::{Shared, tag};
use hotrow_core::column_groups::Part;
use hotrow_core::{
    Abort, Addend, Addition, Applied, Cell, Column, CommitTimeChange, CommitTimeChanges, Fields, Item,
    ItemId, ObjectAccess, OutOfRange, Overflow, Presence, Protocol, Reason, Transaction, Value,
};
use std::mem::MaybeUninit;
use std::ptr::NonNull;

/// A change of fields of a row that can be made at the commit.
pub(crate) trait FieldsChange<R: Value>: Sized {
    /// The fields.
    type Fields: Fields<R>;

    /// True if it is worth a copy of a boxed row at the commit.
    const MAY_COPY: bool;

    /// The fields.
    fn fields(&self) -> Self::Fields;

    /// Changes them at once.
    fn change(self, values: &mut <Self::Fields as Fields<R>>::Values) -> Result<(), OutOfRange>;

    /// The change of a row.
    fn of_row(self) -> impl CommitTimeChange<R>;

    /// The change of the part that has the fields.
    fn of_part(self) -> impl CommitTimeChange<Part<WordsOf<R>>>;
}

/// A change of fields by users' code.
pub(crate) struct Apply<F, C>(pub(crate) F, pub(crate) C);

impl<R: Value, F, C> FieldsChange<R> for Apply<F, C>
where
    F: Fields<R> + Send + 'static,
    C: Fn(&mut F::Values) -> Result<(), OutOfRange> + Send + 'static,
{
    type Fields = F;
    const MAY_COPY: bool = true;

    fn fields(&self) -> F {
        self.0
    }

    fn change(self, values: &mut F::Values) -> Result<(), OutOfRange> {
        (self.1)(values)
    }

    fn of_row(self) -> impl CommitTimeChange<R> {
        let Self(fields, change) = self;
        // SAFETY: it is a row.
        Applied(move |row: &mut R| unsafe { fields.change(row, &change) })
    }

    fn of_part(self) -> impl CommitTimeChange<Part<WordsOf<R>>> {
        let Self(fields, change) = self;
        Applied(move |part: &mut Part<WordsOf<R>>| change_part(part, fields, &change))
    }
}

impl<R: Value, F: Addend> FieldsChange<R> for Addition<R, F> {
    type Fields = Column<R, F>;
    const MAY_COPY: bool = false;

    fn fields(&self) -> Column<R, F> {
        self.column()
    }

    fn change(self, value: &mut F) -> Result<(), OutOfRange> {
        CommitTimeChange::change(&self.to(Column::whole()), value)
    }

    fn of_row(self) -> impl CommitTimeChange<R> {
        self
    }

    fn of_part(self) -> impl CommitTimeChange<Part<WordsOf<R>>> {
        let column = self.column().in_part::<GroupsOf<R>>();
        self.to(column)
    }
}

impl<K: Key, R: Value, P: Protocol> Shared<K, R, P> {
    /// True if changes of these fields that commute are changes at the commit: all are in one segment.
    pub(crate) fn commutes_on(&self, fields: impl Fields<R>) -> bool {
        match self.segments_of(fields) {
            MAIN => !self.changes_at_once(),
            segments => segments.is_power_of_two(),
        }
    }

    /// Changes fields of a row at the commit. False if there is no row with this key.
    #[inline(always)]
    pub(crate) fn change_at_commit<C: FieldsChange<R>>(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
        change: C,
    ) -> Result<bool, Abort> {
        let segments = self.segments_of(change.fields());
        if const { Self::HAS_GROUPS } && segments != MAIN && segments.is_power_of_two() {
            return self.change_part_at_commit(tx, key, segments, change.of_part());
        }
        if const { R::Cell::COPIES || C::MAY_COPY } && segments == MAIN {
            return self.change_main_at_commit(tx, key, change.of_row());
        }
        self.change_at_once(tx, key, change)
    }

    /// As [`change_at_commit`](Self::change_at_commit), at once.
    fn change_at_once<C: FieldsChange<R>>(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
        change: C,
    ) -> Result<bool, Abort> {
        let changed = self.update(tx, key, change.fields(), |values| change.change(values))?;
        self.unless_out_of_range(key, changed)
    }

    /// As [`change_at_commit`](Self::change_at_commit), for the fields of one part.
    #[inline(always)]
    fn change_part_at_commit(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
        segments: u32,
        change: impl CommitTimeChange<Part<WordsOf<R>>>,
    ) -> Result<bool, Abort> {
        let (tx, mut change) = (self.enter_to_write(tx)?, Some(change));
        let changed = self.on_row(tx, key, segments, |tx, record| {
            let (split, part, _) = self.part_at(record, segments.trailing_zeros());
            // A record's state says whether its row is there, and is not in the part's cache line.
            let seems_present = self.seems_present(tx, record);
            // SAFETY: the part is `split`'s, found under the attempt's pinned epoch; `tx` is of the table's operation.
            unsafe { part.change_at_commit_if_present(tx, split, seems_present, &mut change) }
        })?;
        Ok(changed.is_some())
    }

    /// True if rows are changed at once, whatever the change.
    pub(crate) fn changes_at_once(&self) -> bool {
        self.guards_changes || !self.companions.indexes.is_empty()
    }

    /// The error of an addition that would leave its column's range.
    #[cold]
    #[inline(never)]
    pub(crate) fn overflow(&self, key: &(impl AsKey<K> + ?Sized)) -> Abort {
        Overflow::new(self.meta.name(), format!("{key:?}")).into()
    }

    /// As [`change_at_commit`](Self::change_at_commit), of the row in the record.
    fn change_main_at_commit(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
        change: impl CommitTimeChange<R>,
    ) -> Result<bool, Abort> {
        let mut change = Some(change);
        if !self.changes_at_once() {
            let tx = self.enter_to_write(tx)?;
            let appended =
                self.on_row(tx, key, MAIN, |tx, record| self.append_change(tx, record, &mut change))?;
            if appended != Some(false) {
                return Ok(appended.is_some());
            }
        }
        // Its own pending row, or one of which it depends on what is there.
        let changed = self.update_main(tx, key, |row| change.take().map(|change| change.change(row)))?;
        self.unless_out_of_range(key, changed.flatten())
    }

    /// Appends a change to the pending ones of a row. False, and the change is left, if the attempt has the row, or needs it.
    fn append_change(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        record: NonNull<Record<K, R, P>>,
        change: &mut Option<impl CommitTimeChange<R>>,
    ) -> Result<Presence<bool>, Abort> {
        // SAFETY: as in `read_record`.
        let (id, pending) = unsafe { tx.write(self, Record::address(record)) }?;
        if pending && tx.tag(id) != tag::CHANGES {
            return Ok(Presence::Present(false));
        }
        if !pending && !self.seems_present(tx, record) && !self.is_present(tx, record, id)? {
            return Ok(Presence::Absent);
        }
        let before = Self::pending_changes(tx, id, pending);
        match change.take().expect("it is taken once").append(before, tx) {
            Ok(changes) => self.set_changes(tx, id, pending, changes),
            Err(again) => *change = Some(again),
        }
        Ok(Presence::Present(change.is_none()))
    }

    /// The result of a change at once: true if the row was changed, false if there is none.
    pub(crate) fn unless_out_of_range(
        &self,
        key: &(impl AsKey<K> + ?Sized),
        changed: Option<Result<(), OutOfRange>>,
    ) -> Result<bool, Abort> {
        let changed = changed.transpose().map_err(|OutOfRange| self.overflow(key))?;
        Ok(changed.is_some())
    }

    /// Subtracts an amount from a column at the commit if there is enough. `None` if there is no row with this key.
    pub(crate) fn subtract_if_enough<F: Addend>(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
        column: Column<R, F>,
        amount: F,
    ) -> Result<Option<bool>, Abort> {
        let segments = self.segments_of(column);
        let mut is_enough = Some(false);
        if const { Self::HAS_GROUPS } && segments != MAIN {
            let tx = self.enter_to_write(tx)?;
            let column = column.in_part::<GroupsOf<R>>();
            is_enough = self.on_row(tx, key, segments, |tx, record| {
                let (split, part, _) = self.part_at(record, segments.trailing_zeros());
                // SAFETY: as in `change_part_at_commit`.
                unsafe { part.subtract_at_commit(tx, split, column, amount) }
            })?;
        } else if R::Cell::COPIES && !self.changes_at_once() {
            let tx = self.enter_to_write(tx)?;
            is_enough =
                self.on_row(tx, key, MAIN, |tx, record| self.append_subtraction(tx, record, column, amount))?;
        }
        if is_enough != Some(false) {
            return Ok(is_enough);
        }
        let Some(seen) = self.read(tx, key, column, |value| *value)? else { return Ok(None) };
        if seen >= amount {
            self.change_at_commit(tx, key, Addition::negative(column, amount))?;
        }
        Ok(Some(seen >= amount))
    }

    /// Appends a subtraction to the pending changes of a row. False if there is not enough, or the attempt cannot know it so.
    fn append_subtraction<F: Addend>(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        record: NonNull<Record<K, R, P>>,
        column: Column<R, F>,
        amount: F,
    ) -> Result<Presence<bool>, Abort> {
        if tx.is_in_part() {
            return Ok(Presence::Present(false));
        }
        // SAFETY: as in `read_record`.
        let (id, pending) = unsafe { tx.write(self, Record::address(record)) }?;
        if pending && tx.tag(id) != tag::CHANGES {
            return Ok(Presence::Present(false));
        }
        let before = Self::pending_changes(tx, id, pending);
        if before.runs_code() {
            return Ok(Presence::Present(false));
        }
        let mut row = MaybeUninit::uninit();
        // SAFETY: there is room for a snapshot, and `load` looks at the item's record.
        let state = unsafe {
            let load = || record.as_ref().load_fields(column, row.as_mut_ptr());
            if tx.has_read(id) { tx.read_beside_write(id, load) } else { tx.peek(id, load) }
        }?;
        if state != State::Present {
            return if pending {
                Err(tx.conflict(Reason::PredicateFailed, id))
            } else {
                Ok(Presence::Absent)
            };
        }
        // SAFETY: stable and present, loaded while the attempt was pinned.
        let base = unsafe { column.look(R::Cell::value_in(row.as_ptr()), |value| *value) };
        let changes = before.subtract_if_enough(tx, column, amount, base);
        if let Some(changes) = changes {
            self.set_changes(tx, id, pending, changes);
        }
        Ok(Presence::Present(changes.is_some()))
    }

    /// Returns the pending changes of an item that has no other pending write.
    fn pending_changes(tx: &mut ObjectAccess<'_, P>, id: ItemId, pending: bool) -> CommitTimeChanges<R> {
        // SAFETY: the payload of changes is of this type.
        if pending { unsafe { *tx.payload(id) } } else { CommitTimeChanges::NONE }
    }

    /// Gives an item, a write of which was announced, pending changes. `pending`: it has some.
    fn set_changes(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        id: ItemId,
        pending: bool,
        changes: CommitTimeChanges<R>,
    ) {
        if pending {
            // SAFETY: the payload of changes is of this type.
            *unsafe { tx.payload(id) } = changes;
            return;
        }
        // SAFETY: announced just now, and the tag says what the payload is; the predicate of a record needs none of its own.
        unsafe {
            tx.set_tag(id, tag::CHANGES);
            tx.set_write(id, changes);
            tx.set_predicate::<()>(id, None);
        }
        if tx.history().is_recorded() && self.index.is_ordered() {
            tx.history_mut().record_intent(id);
        }
    }

    /// Turns the attempt's changes of a row into an update of it, because an operation needs the row.
    #[cold]
    #[inline(never)]
    pub(crate) fn settle_changes(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        record: NonNull<Record<K, R, P>>,
        id: ItemId,
    ) -> Result<(), Abort> {
        // INVARIANT 17: No write follows from a read that is not kept.
        debug_assert!(tx.keeps_reads(), "a write must not follow from a read that is not kept");
        let row = self.changed_row(tx, record, id)?;
        tx.save(id);
        // SAFETY: the tag says what the payload is, then and now.
        unsafe {
            tx.set_tag(id, tag::UPDATE);
            tx.exchange_payload(id, R::Cell::pend(row));
        }
        Ok(())
    }

    /// Reads a row, and makes the attempt's changes to a copy of it.
    fn changed_row(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        record: NonNull<Record<K, R, P>>,
        id: ItemId,
    ) -> Result<R, Abort> {
        // SAFETY: the attempt has an item of the record, so it is in memory until the attempt ends. It has not made it: its
        // own rows are changed in place.
        let snapshot: Snapshot<R> = unsafe { tx.read_beside_write(id, || record.as_ref().load()) }?;
        if snapshot.state != State::Present {
            return Err(tx.conflict(Reason::PredicateFailed, id));
        }
        // SAFETY: stable and present.
        let mut row = unsafe { snapshot.row(tx.pin()) }.clone();
        let changes = Self::pending_changes(tx, id, true);
        // SAFETY: the attempt has made them for rows of this type.
        unsafe {
            if !changes.hold_of(&row) {
                return Err(tx.conflict(Reason::PredicateFailed, id));
            }
            changes.apply(&mut row).map_err(|OutOfRange| tx.overflow_of(id))?;
        }
        Ok(row)
    }

    /// Returns the pending changes of an item.
    ///
    /// # Safety
    ///
    /// The item's pending write is a list of changes.
    pub(crate) unsafe fn changes_of(item: &Item<P>) -> CommitTimeChanges<R> {
        // SAFETY: the caller's promise.
        unsafe { *item.payload() }
    }

    /// The attempt's own pending write, as a row: changes become an update, unless the read is not kept.
    #[inline(always)]
    pub(crate) fn own_row(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        record: NonNull<Record<K, R, P>>,
        id: ItemId,
    ) -> Result<RecordView<R>, Abort> {
        if tx.tag(id) == tag::CHANGES {
            if !tx.keeps_reads() {
                return self.changed_row(tx, record, id).map(RecordView::Changed);
            }
            self.settle_changes(tx, record, id)?;
        }
        Ok(RecordView::Own(id))
    }
}

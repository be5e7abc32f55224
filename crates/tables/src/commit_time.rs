//! Commit-time changes of rows, which commute.
//!
//! A change of this kind does not read its row. It is a pending write of its own kind: a [list of
//! changes](hotrow_core::CommitTimeChanges), which the commit makes to the row's present value under the segment's lock. As a
//! [replacement](Table::replace) does, it depends only on the predicate that the row exists, and on the conditions in the list.
//! So transactions that only make such changes to a row serialize on its lock and never abort each other.
//!
//! An operation that needs the row turns the changes into an update first.
//!
//! Rows that an index or a constraint has to look at are updated at once, and so are the columns of boxed rows: a number in a
//! boxed row would be looked at through users' `Clone`, under the lock, and for no gain.

use crate::companions::{PartOf, SplitRows};
use crate::key::{AsKey, Key};
use crate::record::{GroupsOf, Pending, Record, Snapshot, State, WordsOf};
use crate::rows::RecordView;
use crate::snapshot::Version;
use crate::split::MAIN;
use crate::storage::{Shared, tag};
use crate::table::Table;
use hotrow_core::column_groups::Part;
use hotrow_core::{
    Abort, Addend, Addition, Applied, Cell, Column, Columns, CommitTimeChange, CommitTimeChanges, Fields,
    Item, ItemId, Needed, ObjectAccess, OutOfRange, Overflow, Pin, Plain, Presence, Protocol, Reason, Redo,
    Transaction, Value, Whole, contained,
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

    /// The change of the part of a group, which has the fields.
    fn of_part(self, group: usize) -> impl CommitTimeChange<Part<WordsOf<R>>>;
}

/// What users' code does to fields.
pub(crate) struct Apply<F, C>(pub(crate) F, pub(crate) C);

impl<R: Value, F, C> FieldsChange<R> for Apply<F, C>
where
    F: Fields<R> + Send + 'static,
    C: Fn(&mut F::Values) + Send + 'static,
{
    type Fields = F;
    const MAY_COPY: bool = true;

    fn fields(&self) -> F {
        self.0
    }

    fn change(self, values: &mut F::Values) -> Result<(), OutOfRange> {
        (self.1)(values);
        Ok(())
    }

    fn of_row(self) -> impl CommitTimeChange<R> {
        let Self(fields, change) = self;
        // SAFETY: it is a row.
        Applied(move |row: &mut R| unsafe { fields.change(row, &change) })
    }

    fn of_part(self, group: usize) -> impl CommitTimeChange<Part<WordsOf<R>>> {
        let Self(fields, change) = self;
        Applied(move |part: &mut Part<WordsOf<R>>| {
            let mut row = MaybeUninit::uninit();
            // SAFETY: there is room for the fields, which are all in the part.
            unsafe {
                part.put::<R, GroupsOf<R>, F>(fields, row.as_mut_ptr(), group);
                fields.change(row.as_mut_ptr(), &change);
                part.take::<R, GroupsOf<R>, F>(fields, row.as_ptr(), group);
            }
        })
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

    fn of_part(self, group: usize) -> impl CommitTimeChange<Part<WordsOf<R>>> {
        let column = self.column().in_part::<GroupsOf<R>>(group);
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
    #[inline]
    pub(crate) fn change_at_commit<C: FieldsChange<R>>(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
        change: C,
    ) -> Result<bool, Abort> {
        let fields = change.fields();
        let segments = self.segments_of(fields);
        if const { Self::HAS_GROUPS } && segments != MAIN && segments.is_power_of_two() {
            return self.change_part_at_commit(tx, key, segments, change);
        }
        if const { R::Cell::COPIES || C::MAY_COPY } && segments == MAIN {
            return self.change_main_at_commit(tx, key, change.of_row());
        }
        let changed = self.update(tx, key, fields, |values| change.change(values))?;
        self.unless_out_of_range(key, changed)
    }

    /// As [`change_at_commit`](Self::change_at_commit), for the fields of one part.
    #[inline]
    fn change_part_at_commit(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
        segments: u32,
        change: impl FieldsChange<R>,
    ) -> Result<bool, Abort> {
        let tx = self.enter_to_write(tx)?;
        let mut change = Some(change.of_part(segments.trailing_zeros() as usize - 1));
        let changed = self.on_part(tx, key, segments, |tx, record, split, part| {
            // A record's state says whether its row is there, and is not in the part's cache line.
            let seems_present = self.seems_present(tx, record);
            // SAFETY: the part is `split`'s, found under the attempt's pinned epoch; `tx` is of the table's operation.
            unsafe { part.change_at_commit_if_present(tx, split, seems_present, &mut change) }
        })?;
        Ok(changed.is_some())
    }

    /// Does something to the part of a key's row; `None` if there is no such row.
    #[inline]
    fn on_part<V>(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
        segments: u32,
        mut operate: impl FnMut(
            &mut ObjectAccess<'_, P>,
            NonNull<Record<K, R, P>>,
            &SplitRows<K, R, P>,
            &PartOf<R, P>,
        ) -> Result<Presence<V>, Abort>,
    ) -> Result<Option<V>, Abort> {
        loop {
            let Some(record) = self.find(tx, key)? else { return Ok(None) };
            let (split, part, _) = self.part_at(record, segments.trailing_zeros());
            match operate(tx, record, split, part)? {
                Presence::Present(value) => return Ok(Some(value)),
                Presence::Deleted => return Ok(None),
                Presence::Absent => self.leave_dead(tx, record, segments)?,
            }
        }
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
        let mut change = change;
        if !self.changes_at_once() {
            let access = self.enter_to_write(tx)?;
            loop {
                let Some(record) = self.find(access, key)? else { return Ok(false) };
                // SAFETY: as in `read_record`.
                let (id, pending) = unsafe { access.write(self, Record::address(record)) }?;
                if pending && access.tag(id) != tag::CHANGES {
                    break;
                }
                if !pending && !self.seems_present(access, record) && !self.is_present(access, record, id)? {
                    continue;
                }
                match change.append(Self::pending_changes(access, id, pending), access) {
                    Ok(changes) => {
                        self.set_changes(access, id, pending, changes);
                        return Ok(true);
                    }
                    Err(again) => change = again,
                }
                break;
            }
        }
        // Its own pending row, or one of which it depends on what is there.
        let changed = self.update_main(tx, key, |row| change.change(row))?;
        self.unless_out_of_range(key, changed)
    }

    /// The result of a change at once: true if the row was changed, false if there is none.
    pub(crate) fn unless_out_of_range(
        &self,
        key: &(impl AsKey<K> + ?Sized),
        changed: Option<Result<(), OutOfRange>>,
    ) -> Result<bool, Abort> {
        match changed {
            None => Ok(false),
            Some(Ok(())) => Ok(true),
            Some(Err(OutOfRange)) => Err(self.overflow(key)),
        }
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
        if const { Self::HAS_GROUPS } && segments != MAIN {
            let access = self.enter_to_write(tx)?;
            let column = column.in_part::<GroupsOf<R>>(segments.trailing_zeros() as usize - 1);
            let is_enough = self.on_part(access, key, segments, |tx, _, split, part| {
                // SAFETY: as in `change_part_at_commit`.
                unsafe { part.subtract_at_commit(tx, split, column, amount) }
            })?;
            if is_enough != Some(false) {
                return Ok(is_enough);
            }
        } else if R::Cell::COPIES && !self.changes_at_once() {
            let access = self.enter_to_write(tx)?;
            while !access.is_in_part() {
                let Some(record) = self.find(access, key)? else { return Ok(None) };
                // SAFETY: as in `read_record`.
                let (id, pending) = unsafe { access.write(self, Record::address(record)) }?;
                if pending && access.tag(id) != tag::CHANGES {
                    break;
                }
                let before = Self::pending_changes(access, id, pending);
                if before.runs_code() {
                    break;
                }
                let mut row = MaybeUninit::uninit();
                // SAFETY: there is room for a snapshot, and `load` looks at the item's record.
                let state = unsafe {
                    let load = || record.as_ref().load_fields(column, row.as_mut_ptr());
                    if access.has_read(id) {
                        access.read_beside_write(id, load)
                    } else {
                        access.peek(id, load)
                    }
                }?;
                if state != State::Present {
                    if pending {
                        return Err(access.conflict(Reason::PredicateFailed, id));
                    }
                    self.unlink_dead(access, record);
                    continue;
                }
                // SAFETY: stable and present, loaded while the attempt was pinned.
                let base = unsafe { column.read(R::Cell::value_in(row.as_ptr())) };
                match before.subtract_if_enough(access, column, amount, base) {
                    Some(changes) => {
                        self.set_changes(access, id, pending, changes);
                        return Ok(Some(true));
                    }
                    None => break,
                }
            }
        }
        let Some(seen) = self.read(tx, key, column, |value| *value)? else { return Ok(None) };
        if seen >= amount {
            self.change_at_commit(tx, key, Addition::negative(column, amount))?;
        }
        Ok(Some(seen >= amount))
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
        if tx.is_recorded() && self.index.is_ordered() {
            tx.record_intent(id);
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

    /// Makes what is to be made once of the pending changes of a row, at the commit.
    ///
    /// # Errors
    ///
    /// [`OutOfRange`].
    ///
    /// # Safety
    ///
    /// As for [`Object::settle`](hotrow_core::Object::settle).
    pub(crate) unsafe fn settle_at_commit(
        id: ItemId,
        tx: &mut ObjectAccess<'_, P>,
    ) -> Result<(), OutOfRange> {
        if tx.tag(id) != tag::CHANGES {
            return Ok(());
        }
        // SAFETY: the caller's promise; nothing is installed meanwhile, and the row is present. The changes are of rows of this type.
        unsafe {
            let record = Record::<K, R, P>::at(tx.segment_of(id));
            let changes = Self::pending_changes(tx, id, true);
            if !changes.need_copy() {
                return if Self::fit(changes, record) { Ok(()) } else { Err(OutOfRange) };
            }
            let snapshot = record.load();
            let settled = changes.settled(|pin| snapshot.row(pin).clone(), tx)?;
            *tx.payload(id) = settled;
        }
        Ok(())
    }

    /// True if the sums of an item's pending changes stay in range.
    ///
    /// # Safety
    ///
    /// As for [`Object::changes_fit`](hotrow_core::Object::changes_fit).
    pub(crate) unsafe fn pending_fit(item: &Item<P>) -> bool {
        // SAFETY: the tag says what the payload is; as in `settle_at_commit`.
        item.tag() != tag::CHANGES
            || unsafe {
                Self::fit(*item.payload::<CommitTimeChanges<R>>(), Record::<K, R, P>::at(item.segment()))
            }
    }

    /// True if the sums of changes, of which none runs users' code, stay in range.
    ///
    /// # Safety
    ///
    /// The changes are of rows of this type.
    unsafe fn fit(changes: CommitTimeChanges<R>, record: &Record<K, R, P>) -> bool {
        // SAFETY: the caller's promise.
        changes.fit(|needed| unsafe { Self::bits_of(record, needed) })
    }

    /// Loads the bits of a column of a record.
    ///
    /// # Safety
    ///
    /// It is a column of rows of this type.
    unsafe fn bits_of(record: &Record<K, R, P>, needed: Needed) -> u64 {
        let mut row = MaybeUninit::uninit();
        // SAFETY: there is room for a snapshot, of which the column's bytes are loaded, in one word.
        unsafe {
            record.load_bytes(needed.bytes(), row.as_mut_ptr());
            needed.bits(R::Cell::value_in(row.as_ptr()))
        }
    }

    /// Makes the pending changes of a row, at the commit.
    ///
    /// # Safety
    ///
    /// The item's pending write is a list of changes, and the caller holds the segment's lock.
    pub(crate) unsafe fn install_changes(item: &mut Item<P>, record: &Record<K, R, P>, pin: &Pin) {
        // SAFETY: the caller's promise.
        let changes = unsafe { *item.payload::<CommitTimeChanges<R>>() };
        // SAFETY: the result is taken here and nowhere else.
        if let Some(result) = unsafe { changes.take_result() } {
            // SAFETY: the caller's promise.
            return unsafe { item.install_in(record.cell(), R::Cell::pend(result), pin) };
        }
        assert!(const { R::Cell::COPIES }, "a change that needs a copy of the row has one");
        let mut pending = MaybeUninit::<Pending<R>>::uninit();
        // SAFETY: such rows can be copied so; nothing is installed meanwhile, so that the copy is whole. The changes are of
        // rows of this type.
        unsafe {
            record.load_pending(pending.as_mut_ptr());
            let mut pending = pending.assume_init();
            changes.add_all(R::Cell::pending_mut(&mut pending));
            item.install_in(record.cell(), pending, pin);
        }
    }

    /// Calls a function with the row that the pending changes make, which are [settled](Self::settle_at_commit).
    ///
    /// # Safety
    ///
    /// As for [`install_changes`](Self::install_changes).
    pub(crate) unsafe fn with_changed<O>(
        item: &Item<P>,
        record: &Record<K, R, P>,
        pin: &Pin,
        look: impl FnOnce(&R) -> O,
    ) -> O {
        // SAFETY: the caller's promise; nothing is installed meanwhile, so that the copy is whole. The row is present, and the
        // pin was pinned before.
        unsafe {
            let changes = *item.payload::<CommitTimeChanges<R>>();
            if let Some(result) = changes.result() {
                return look(result);
            }
            let mut row = record.load().row(pin).clone();
            changes.add_all(&mut row);
            look(&row)
        }
    }

    /// True if an item's pending changes may be made in a region: they allocate nothing and run no users' code.
    pub(crate) fn changes_fit_regions(item: &Item<P>) -> bool {
        // SAFETY: it is asked of items of this object with pending changes.
        !unsafe { *item.payload::<CommitTimeChanges<R>>() }.need_copy()
    }

    /// True if an item's pending changes have no conditions.
    ///
    /// # Safety
    ///
    /// The item's pending write is a list of changes.
    pub(crate) unsafe fn changes_commute(item: &Item<P>) -> bool {
        // SAFETY: the caller's promise.
        !unsafe { *item.payload::<CommitTimeChanges<R>>() }.has_conditions()
    }

    /// Makes the pending changes of a row to a version that snapshots have of it.
    ///
    /// # Safety
    ///
    /// As for [`Object::redo`](hotrow_core::Object::redo).
    pub(crate) unsafe fn redo_changes(item: &Item<P>, redo: Redo<'_>) {
        // SAFETY: the table keeps versions of this type.
        let version = unsafe { redo.version::<Version<R>>() };
        let (tag::CHANGES, Version::Replaced(kept)) = (item.tag(), version) else { return };
        // SAFETY: the tag says what the payload is; nothing is installed any more in a cell that is kept.
        unsafe {
            let changes = *item.payload::<CommitTimeChanges<R>>();
            // Another row than the one that was installed. If users' code panics, it stays as it is.
            let changed = contained(|| changes.applied(|| kept.in_place().clone(), redo.pin()));
            if let Some(Ok(changed)) = changed {
                let heap_bytes = contained(|| changed.heap_bytes()).unwrap_or_default();
                redo.keep(Version::<R>::Replaced(R::Cell::new(changed)), heap_bytes);
            }
        }
    }

    /// True if the conditions of pending changes hold of a record's present row.
    ///
    /// # Safety
    ///
    /// The item's pending write is a list of changes.
    pub(crate) unsafe fn conditions_hold(item: &Item<P>, record: &Record<K, R, P>) -> bool {
        // SAFETY: the caller's promise.
        let changes = unsafe { *item.payload::<CommitTimeChanges<R>>() };
        // SAFETY: the conditions are on columns of rows of this type.
        changes.hold(|needed| unsafe { Self::bits_of(record, needed) })
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

impl<K: Key, R: Value, P: Protocol> Table<K, R, P> {
    /// Adds an amount (which may be negative) to a column of a row without reading it: `column_of!(Account, balance)`, or
    /// [`Column::whole`] for a row that is a number.
    ///
    /// Transactions that only add to a row never abort each other: the amounts are added at the commit. A transaction
    /// that reads the row, before or afterwards, depends on its value like any reader. Rows that are boxed, and rows of a
    /// table with indexes or constraints, are [updated](Self::update) instead.
    ///
    /// # Errors
    ///
    /// As [`update`](Self::update). If the sum is not in the column's range, the transaction rolls back with
    /// [`Overflow`](hotrow_core::Overflow), here or at its commit; [`wrapping_add`](Self::wrapping_add) wraps around.
    #[inline]
    pub fn add<F: Addend>(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
        column: Column<R, F>,
        amount: F,
    ) -> Result<(), Abort> {
        self.changed(key, self.shared.change_at_commit(tx, key, Addition::new(column, amount))?)
    }

    /// As [`add`](Self::add), but the sum wraps around at the ends of the column's range.
    ///
    /// # Errors
    ///
    /// As [`update`](Self::update).
    #[inline]
    pub fn wrapping_add<F: Addend>(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
        column: Column<R, F>,
        amount: F,
    ) -> Result<(), Abort> {
        self.changed(key, self.shared.change_at_commit(tx, key, Addition::new(column, amount).wrapping())?)
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
        self.shared.change_at_commit(tx, key, Addition::new(column, amount))
    }

    /// Subtracts an amount from a column of a row if that is at least the amount, and tells whether it was.
    ///
    /// If it is enough, the transaction depends on that alone: others may add and subtract meanwhile, as long as enough is
    /// left for this one. The commit judges it, and subtracts. If it is not, the transaction depends on the column's row, as a
    /// reader does. So it does within a part of a body that may be undone alone (a
    /// [savepoint](Transaction::savepoint), a statement of a session), and where [`add`](Self::add) is an update.
    ///
    /// ```
    /// use hotrow_core::{Column, Engine};
    /// # use hotrow_protocols::Occ;
    /// use hotrow_tables::Database;
    ///
    /// # let engine = Engine::<Occ>::new();
    /// let seats = Database::on(&engine).table::<String, u32>("seats").create()?;
    /// seats.bulk_insert([("stalls".into(), 1)])?;
    /// let reserve = || engine.transact(|tx| seats.subtract_if_enough(tx, "stalls", Column::whole(), 1));
    /// assert_eq!((reserve()?, reserve()?), (true, false));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`update`](Self::update).
    pub fn subtract_if_enough<F: Addend>(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
        column: Column<R, F>,
        amount: F,
    ) -> Result<bool, Abort> {
        let enough = self.shared.subtract_if_enough(tx, key, column, amount)?;
        enough.ok_or_else(|| self.shared.missing(key))
    }

    /// Changes a row at the commit, without reading it: what `change` does to the row that the commit finds. It gives nothing
    /// back, and two transactions that only make such changes never abort each other, so the result depends on the order of
    /// their commits.
    ///
    /// `change` runs once at the commit, while the row is locked: it should be short, and use nothing but what it has captured. It
    /// also runs, on another copy of the row, if an operation of the same transaction needs the row before. If it panics, the transaction
    /// rolls back with [`Error::Panicked`](hotrow_core::Error::Panicked). Rows of a table with indexes or constraints are
    /// [updated](Self::update) instead.
    ///
    /// # Errors
    ///
    /// As [`update`](Self::update).
    #[inline]
    pub fn apply(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
        change: impl Fn(&mut R) + Send + 'static,
    ) -> Result<(), Abort> {
        self.changed(key, self.apply_if_present(tx, key, change)?)
    }

    /// As [`apply`](Self::apply), but a missing row is no error: false, and nothing changed, if there is none with this key.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    #[inline]
    pub fn apply_if_present(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
        change: impl Fn(&mut R) + Send + 'static,
    ) -> Result<bool, Abort> {
        self.shared.change_at_commit(tx, key, Apply(Whole, change))
    }

    /// As [`apply`](Self::apply), for some columns of a row.
    ///
    /// # Errors
    ///
    /// As [`update`](Self::update).
    #[inline]
    pub fn apply_columns<C: Columns<R> + Send + 'static>(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
        columns: C,
        change: impl Fn(&mut C::Values) + Send + 'static,
    ) -> Result<(), Abort> {
        self.changed(key, self.apply_columns_if_present(tx, key, columns, change)?)
    }

    /// As [`apply_columns`](Self::apply_columns), but a missing row is no error: false, and nothing changed, if there is none with
    /// this key.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    #[inline]
    pub fn apply_columns_if_present<C: Columns<R> + Send + 'static>(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
        columns: C,
        change: impl Fn(&mut C::Values) + Send + 'static,
    ) -> Result<bool, Abort> {
        self.shared.change_at_commit(tx, key, Apply(columns, change))
    }

    /// Sets a column of a row [at the commit](Self::apply), without reading the row.
    ///
    /// # Errors
    ///
    /// As [`update`](Self::update).
    #[inline]
    pub fn set<F: Plain>(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
        column: Column<R, F>,
        value: F,
    ) -> Result<(), Abort> {
        self.apply_columns(tx, key, column, move |column| *column = value)
    }

    /// Raises a column of a row to a value [at the commit](Self::apply), if it is less than that, without reading the row.
    ///
    /// # Errors
    ///
    /// As [`update`](Self::update).
    #[inline]
    pub fn max<F: Plain + Ord>(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
        column: Column<R, F>,
        value: F,
    ) -> Result<(), Abort> {
        self.apply_columns(tx, key, column, move |column| *column = value.max(*column))
    }

    /// Lowers a column of a row to a value [at the commit](Self::apply), if it is greater than that, without reading the row.
    ///
    /// # Errors
    ///
    /// As [`update`](Self::update).
    #[inline]
    pub fn min<F: Plain + Ord>(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
        column: Column<R, F>,
        value: F,
    ) -> Result<(), Abort> {
        self.apply_columns(tx, key, column, move |column| *column = value.min(*column))
    }

    /// The result of a change that needs a row.
    fn changed(&self, key: &(impl AsKey<K> + ?Sized), is_there: bool) -> Result<(), Abort> {
        if is_there { Ok(()) } else { Err(self.shared.missing(key)) }
    }

    /// Appends elements to a row that is a collection or a text [at the commit](Self::apply), without reading it.
    ///
    /// # Errors
    ///
    /// As [`update`](Self::update).
    #[inline]
    pub fn append<E, I>(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
        elements: I,
    ) -> Result<(), Abort>
    where
        R: Extend<E>,
        I: IntoIterator<Item = E> + Clone + Send + 'static,
    {
        self.apply(tx, key, move |row| row.extend(elements.clone()))
    }
}

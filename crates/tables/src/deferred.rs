//! Deferred operations on rows.
//!
//! A row is looked up when the operation is deferred, and the transaction queues for its record (*lines up*). If the
//! record is dead when its turn comes, the attempt ends, because the key may have another record by then. (This
//! deletion of a wanted row is the only conflict that can abort a transaction that has read nothing.)

use crate::data::KeyRange;
use crate::key::{AsKey, Key, key_hash};
use crate::operations::{
    Change, Delete, Fold, Insert, Later, Local, Operation, Read, Replace, RowChange, TakeFirst, Update,
    are_empty,
};
use crate::record::{Record, State};
use crate::rows::RecordView;
use crate::split::{MAIN, each};
use crate::storage::Shared;
use crate::table::Table;
use hotrow_core::operations::Results;
use hotrow_core::{
    Abort, Access, Columns, Deferred, Fields, Input, ObjectAccess, Presence, Protocol, Reason, Transaction,
    Value, Whole,
};
use std::ops::RangeBounds;
use std::ptr::NonNull;

impl<K: Key, R: Value, P: Protocol> Shared<K, R, P> {
    /// Finds the record of a key to line up for these segments of it; `None` after the key's absence was observed.
    ///
    /// Nobody lines up for a row that the attempt has made itself, so nothing keeps operations on its parts behind earlier ones whose keys
    /// are not known yet. Those run now.
    pub(crate) fn find_to_line_up(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
        segments: u32,
    ) -> Result<Option<NonNull<Record<K, R, P>>>, Abort> {
        loop {
            let Some(record) = self.find(tx, key)? else { return Ok(None) };
            let is_own = tx.has_made(Record::address(record));
            if is_own && segments != MAIN {
                tx.deferral_mut().settle()?;
            }
            // SAFETY: found in the index under the attempt's pinned epoch.
            // INVARIANT 37: Nobody lines up for a record that another attempt has made and still holds.
            // Its maker has yet to line up itself, perhaps for segments of a lower rank. A present record has been released by its
            // maker, or is being released.
            if is_own || unsafe { record.as_ref() }.state() == State::Present {
                return Ok(Some(record));
            }
            match self.read_presence(tx, record)? {
                RecordView::Dead => self.unlink_dead(tx, record),
                RecordView::Present | RecordView::Changed(_) => {
                    // The operation reads the row when it runs, in its place in program order.
                    tx.history_mut().read_as_condition();
                    return Ok(Some(record));
                }
                RecordView::Own(_) => return Ok(Some(record)),
            }
        }
    }

    /// Defers an operation on a target that is known. Runs it at once if the attempt defers nothing.
    pub(crate) fn defer<I: 'static, A: Clone + 'static, O: Operation<K, R, I, A>>(
        &self,
        tx: &mut Transaction<'_, P>,
        operation: O,
        target: O::Target,
        passed: Later<A>,
        input: impl Input<Value = I>,
    ) -> Result<Deferred<O::Output>, Abort> {
        if tx.enter(&self.meta)?.defers() {
            return operation.line_up(self, tx, target, passed, input);
        }
        let table = NonNull::from(self);
        tx.enter(&self.meta)?.deferral_mut().intend((passed, input), move |tx, (passed, input)| {
            // SAFETY: the table is freed through the epoch.
            let table = unsafe { table.as_ref() };
            O::run_recorded((operation, input), &mut Local::new(table, tx), target, passed)
        })
    }

    /// As [`defer`](Self::defer), to a key.
    pub(crate) fn defer_to_key<I: 'static, O: Operation<K, R, I, Target = K>>(
        &self,
        tx: &mut Transaction<'_, P>,
        operation: O,
        key: &(impl AsKey<K> + ?Sized),
        input: impl Input<Value = I>,
    ) -> Result<Deferred<O::Output>, Abort> {
        self.defer(tx, operation, key.to_key(), Later::Known(()), input)
    }

    /// Defers the same operation on several keys. Each passes a value on to the next.
    pub fn defer_each<I: 'static, A: Clone + 'static, O, Keys>(
        &self,
        tx: &mut Transaction<'_, P>,
        operation: O,
        keys: impl Input<Value = Keys>,
        input: impl Input<Value = I> + Clone,
        initial: A,
    ) -> Result<Deferred<A>, Abort>
    where
        O: Operation<K, R, I, A, Target = K, Output = A> + Clone,
        Keys: IntoIterator<Item = K>,
    {
        self.when_known(tx, keys, move |table, tx, keys| {
            let mut passed = Later::Known(initial);
            for key in keys {
                let next = table.defer(tx, operation.clone(), key, passed.clone(), input.clone())?;
                if const { !are_empty::<A>() } {
                    passed = Later::Deferred(next);
                }
            }
            Ok(passed.into_deferred(tx))
        })
    }

    /// True if a row is read at once, even in an attempt that defers: nobody changes it.
    pub(crate) fn reads_at_once(&self, tx: &mut Transaction<'_, P>) -> Result<bool, Abort> {
        Ok(self.immutable || tx.enter(&self.meta)?.is_on_snapshot())
    }

    /// Lines up to read fields of the row of a key.
    pub(crate) fn line_up_to_read<F: Fields<R> + 'static, O: 'static>(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &K,
        fields: F,
        look: impl FnOnce(&F::Values) -> O + 'static,
    ) -> Result<Deferred<Option<O>>, Abort> {
        let tx = tx.enter(&self.meta)?;
        tx.deferral_mut().settle_structure(&self.meta)?;
        let segments = self.segments_of(fields);
        let Some(record) = self.find_to_line_up(tx, key, segments)? else { return Ok(tx.known(None)) };
        if const { Self::HAS_GROUPS } && !segments.is_power_of_two() {
            return self.defer_read_of_several(tx, record, segments, fields, look);
        }
        let read = move |table: &Self, tx: &mut ObjectAccess<'_, P>, record, ()| {
            Ok(table.read_at(tx, record, segments, fields, look)?.unless_absent())
        };
        self.defer_at(tx, record, segments.trailing_zeros(), Access::Read, (), read)
    }

    /// Lines up to change the row of a key.
    pub(crate) fn line_up_to_change<I: 'static, A: Clone + 'static, C: RowChange<R, I, A>>(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &K,
        change: C,
        passed: Later<A>,
        input: impl Input<Value = I>,
    ) -> Result<Deferred<C::Output>, Abort> {
        let tx = self.enter_to_change(tx)?;
        tx.deferral_mut().settle_structure(&self.meta)?;
        let fields = change.fields();
        let segments = self.segments_of(fields);
        let Some(record) = self.find_to_line_up(tx, key, segments)? else {
            return match passed {
                Later::Known(passed) => Ok(tx.known(C::output(passed, None))),
                Later::Deferred(passed) => tx.compute(passed, |passed| C::output(passed, None)),
            };
        };
        let inputs = (passed, input);
        let deferred = if const { Self::HAS_GROUPS } && !segments.is_power_of_two() {
            self.defer_change_of_several(tx, record, segments, change, inputs)
        } else {
            let work = move |table: &Self, tx: &mut ObjectAccess<'_, P>, record, (mut passed, input)| {
                let change =
                    |values: &mut <C::Fields as Fields<R>>::Values| change.change(values, &mut passed, input);
                let changed = table.update_at(tx, record, segments, fields, change)?;
                Ok(changed.unless_absent().map(|changed| C::output(passed, changed)))
            };
            self.defer_at(tx, record, segments.trailing_zeros(), Access::Write, inputs, work)
        }?;
        if segments & MAIN != 0 {
            self.will_move_entries(tx);
            if self.companions.indexes.any_moves() {
                // The entry of the old row.
                tx.deferral_mut().will_remove();
            }
        }
        Ok(deferred)
    }

    /// Defers work on a segment of a record, which returns `None` if the row is not there.
    pub(crate) fn defer_at<I: Input, O: 'static>(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        record: NonNull<Record<K, R, P>>,
        segment: u32,
        access: Access,
        inputs: I,
        work: impl FnOnce(
            &Self,
            &mut ObjectAccess<'_, P>,
            NonNull<Record<K, R, P>>,
            I::Value,
        ) -> Result<Option<O>, Abort>
        + 'static,
    ) -> Result<Deferred<O>, Abort> {
        let table = NonNull::from(self);
        let work = move |tx: &mut ObjectAccess<'_, P>, inputs| {
            // SAFETY: the table is freed through the epoch.
            let table = unsafe { table.as_ref() };
            work(table, tx, record, inputs)?.ok_or_else(|| table.vanished(tx, record, segment))
        };
        // SAFETY: the segment is this table's, found under the attempt's pinned epoch; the table is freed through the
        // epoch; `tx` is of the table's operation.
        unsafe {
            if const { Self::HAS_GROUPS } && segment != 0 {
                let (split, part, _) = self.part_at(record, segment);
                return tx.defer(split, part.address(), access, inputs, work);
            }
            tx.defer(self, Record::address(record), access, inputs, work)
        }
    }

    /// Lines up to delete the row of a key.
    pub(crate) fn line_up_to_delete(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &K,
    ) -> Result<Deferred<bool>, Abort> {
        let tx = self.enter_to_change(tx)?;
        // Settle first. Otherwise `defer` below would settle and so run the intention that is recorded here.
        tx.deferral_mut().settle_structure(&self.meta)?;
        if let Some(queues) = &self.companions.queues {
            let head = self.companions.groups.head(queues.group_of(key));
            // SAFETY: the segment is the groups', which are in the table's shared state; `tx` is of the table's operation.
            unsafe { tx.defer(&self.companions.groups, head, Access::Write, (), |_, ()| Ok(())) }?;
        }
        let segments = self.segments_of(Whole);
        let Some(record) = self.find_to_line_up(tx, key, segments)? else { return Ok(tx.known(false)) };
        self.defer_deletions_of_parts(tx, record)?;
        let deferred = self.defer_at(tx, record, 0, Access::Write, (), |table, tx, record, ()| {
            Ok(table.delete_at(tx, record)?.unless_absent().map(|deleted| deleted.is_some()))
        })?;
        self.will_change_structure(tx);
        tx.deferral_mut().will_remove();
        Ok(deferred)
    }

    /// Defers the deletion of the first row of a group and returns its key. The attempt has lined up for the group's
    /// head.
    ///
    /// The row stays until then, because every deletion lines up for the head of its group. If the row is gone all
    /// the same, the range was not within the group, and the transaction runs again without deferring.
    pub(crate) fn defer_delete_of(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        head: NonNull<P::Header>,
        key: K,
    ) -> Result<Deferred<Option<K>>, Abort> {
        let gone = move |table: &Self, tx: &mut ObjectAccess<'_, P>| {
            // SAFETY: the segment is the groups', which are in the table's shared state; `tx` is of the table's operation.
            let id = unsafe { tx.item(&table.companions.groups, head) };
            tx.conflict(Reason::Undeclared, id)
        };
        tx.deferral_mut().settle_structure(&self.meta)?;
        let Some(record) = self.find_to_line_up(tx, &key, MAIN)? else { return Err(gone(self, tx)) };
        self.defer_deletions_of_parts(tx, record)?;
        self.defer_at(tx, record, 0, Access::Write, (), move |table, tx, record, ()| {
            match table.delete_at(tx, record)? {
                Presence::Present(()) => Ok(Some(Some(key))),
                Presence::Deleted => Err(gone(table, tx)),
                Presence::Absent => Ok(None),
            }
        })
    }

    /// Defers the deletions of a row's parts.
    fn defer_deletions_of_parts(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        record: NonNull<Record<K, R, P>>,
    ) -> Result<(), Abort> {
        if const { Self::HAS_GROUPS } {
            for segment in each(self.segments_of(Whole) & !MAIN) {
                self.defer_at(tx, record, segment, Access::Write, (), move |table, tx, record, ()| {
                    let (split, part, _) = table.part_at(record, segment);
                    // SAFETY: as in `load_segment`.
                    Ok(unsafe { part.delete_part(tx, split)? }.unless_absent())
                })?;
            }
        }
        Ok(())
    }

    /// Records an operation once its key (or keys) is known: now, or after the operations on which the key depends
    /// have run.
    pub(crate) fn when_known<I: Input, O: Clone + 'static>(
        &self,
        tx: &mut Transaction<'_, P>,
        keys: I,
        record: impl FnOnce(&Self, &mut ObjectAccess<'_, P>, I::Value) -> Result<Deferred<O>, Abort> + 'static,
    ) -> Result<Deferred<O>, Abort> {
        let tx = tx.enter(&self.meta)?;
        let mut record = Some(record);
        let mut record_if_known = |tx: &mut ObjectAccess<'_, P>| {
            tx.do_at_once(|tx| match tx.deferral().value_of(&keys) {
                Some(keys) => record.take().map(|record| record(self, tx, keys)).transpose(),
                None => Ok(None),
            })
        };
        if let Some(deferred) = record_if_known(tx)? {
            return Ok(deferred);
        }
        // Settling may make the keys known.
        tx.deferral_mut().settle_structure(&self.meta)?;
        if let Some(deferred) = record_if_known(tx)? {
            return Ok(deferred);
        }
        let record = record.expect("not called: the keys are not known");
        self.companions.indexes.moving().for_each(|index| tx.deferral_mut().leave_unsettled(index));
        let table = NonNull::from(self);
        tx.deferral_mut().defer_late(&self.meta, self.meta.rank_of(0), keys, move |tx, keys| {
            // SAFETY: the table is freed through the epoch.
            record(unsafe { table.as_ref() }, tx, keys)
        })
    }

    pub(crate) fn will_change_structure(&self, tx: &mut ObjectAccess<'_, P>) {
        tx.deferral_mut().will_change_structure(&self.meta);
        self.will_move_entries(tx);
    }

    /// Declares that a row's entries in the secondary indexes may come and go.
    pub(crate) fn will_move_entries(&self, tx: &mut ObjectAccess<'_, P>) {
        self.companions.indexes.moving().for_each(|index| tx.deferral_mut().will_change_structure(index));
    }

    pub(crate) fn defer_insert<A: Input<Value = K>, B: Input<Value = R>>(
        &self,
        tx: &mut Transaction<'_, P>,
        group: Option<u64>,
        key: A,
        row: B,
    ) -> Result<Deferred<bool>, Abort> {
        let tx = self.enter_to_change(tx)?;
        let table = NonNull::from(self);
        let work = move |tx: &mut ObjectAccess<'_, P>, (key, row)| {
            // SAFETY: the table is freed through the epoch.
            unsafe { table.as_ref() }.insert(tx, key, row)
        };
        let inputs = NewRow { key, row };
        let deferred = match group {
            // SAFETY: the segment is the groups', both are in the table's shared state; `tx` is of the table's operation.
            Some(group) if tx.defers() => unsafe {
                let segment = self.companions.groups.tail(group);
                let deferred = tx.defer(&self.companions.groups, segment, Access::Write, inputs, work)?;
                if self.companions.queues.is_some() {
                    let id = tx.item(&self.companions.groups, segment);
                    tx.release_after_inserts(id);
                }
                Ok(deferred)
            },
            _ => {
                // An operation of this attempt that later takes the first row of a group must see this one.
                tx.deferral_mut().will_change_structure(&self.companions.groups.meta);
                tx.deferral_mut().intend(inputs, work)
            }
        }?;
        tx.deferral_mut().finds_segment(&self.meta);
        self.will_move_entries(tx);
        Ok(deferred)
    }
}

/// The key and row of an insertion.
struct NewRow<A, B> {
    key: A,
    row: B,
}

impl<A: Input<Value: Key>, B: Input> Input for NewRow<A, B> {
    type Value = (A::Value, B::Value);

    fn get(&self, results: &Results) -> Option<Self::Value> {
        Some((self.key.get(results)?, self.row.get(results)?))
    }
    fn is_known(&self, results: &Results) -> bool {
        self.key.is_known(results) && self.row.is_known(results)
    }
    fn belongs_to(&self, results: &Results) -> bool {
        self.key.belongs_to(results) && self.row.belongs_to(results)
    }
    fn each_slot(&self, visit: &mut dyn FnMut(u32)) {
        self.key.each_slot(visit);
        self.row.each_slot(visit);
    }
    fn key_hash(&self, results: &Results) -> Option<u64> {
        self.key.get(results).map(|key| key_hash(&key))
    }
}

/// Deferred operations, by name. All are [`defer`](Self::defer) of an [operation](crate::operations).
///
/// # Errors
///
/// [`Abort`] when the attempt cannot go on; pass it up with `?`.
impl<K: Key, R: Value, P: Protocol> Table<K, R, P> {
    /// Applies an operation when the transaction commits. Its target and its input may become known only then. The result may be an input of
    /// operations deferred later.
    ///
    /// A target that is unknown now must come from operations on segments of a lower [rank](crate::TableBuilder::rank).
    pub fn defer<I: 'static, O: Operation<K, R, I, Output: Clone>>(
        &self,
        tx: &mut Transaction<'_, P>,
        operation: O,
        target: impl Input<Value = O::Target>,
        input: impl Input<Value = I>,
    ) -> Result<Deferred<O::Output>, Abort> {
        operation.defer(&self.shared, tx, target, Later::Known(()), input)
    }

    /// Reads a row when the transaction commits; the result is `None` if there is no such row.
    pub fn defer_read<O: 'static>(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
        look: impl FnOnce(&R) -> O + 'static,
    ) -> Result<Deferred<Option<O>>, Abort> {
        self.shared.defer_to_key(tx, Read(Whole, look), key, ())
    }

    /// Reads some columns of a row when the transaction commits: of one [group](trait@hotrow_core::Value), beside those that change
    /// others.
    pub fn defer_read_columns<C: Columns<R, Values: 'static> + 'static>(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
        columns: C,
    ) -> Result<Deferred<Option<C::Values>>, Abort> {
        self.shared.defer_to_key(tx, Read(columns, |values: &C::Values| *values), key, ())
    }

    /// Changes a row when the transaction commits.
    pub fn defer_update<I: Input, O: 'static>(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
        inputs: I,
        change: impl FnOnce(&mut R, I::Value) -> O + 'static,
    ) -> Result<Deferred<Option<O>>, Abort> {
        self.shared.defer_to_key(tx, Change(Update(Whole, change)), key, inputs)
    }

    /// Changes some columns of a row when the transaction commits: of one group, beside those that touch others.
    pub fn defer_update_columns<C: Columns<R> + 'static, I: Input, O: 'static>(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
        columns: C,
        inputs: I,
        change: impl FnOnce(&mut C::Values, I::Value) -> O + 'static,
    ) -> Result<Deferred<Option<O>>, Abort> {
        self.shared.defer_to_key(tx, Change(Update(columns, change)), key, inputs)
    }

    /// Makes the same change to several rows, one after the other, when the transaction commits. The change also
    /// updates a value that each row passes on to the next, beginning with `initial`; its last state is the result.
    /// Keys without a row are skipped. (No key or one, as an [`Option`]; the keys of an order's lines.)
    pub fn defer_update_each<Keys, I, A>(
        &self,
        tx: &mut Transaction<'_, P>,
        keys: impl Input<Value = Keys>,
        input: I,
        initial: A,
        change: impl Fn(&mut A, &mut R, I::Value) + Clone + 'static,
    ) -> Result<Deferred<A>, Abort>
    where
        Keys: IntoIterator<Item = K>,
        I: Input + Clone,
        A: Clone + 'static,
    {
        self.shared.defer_each(tx, Change(Fold(change)), keys, input, initial)
    }

    /// Replaces a row when the transaction commits; false if there is none with this key.
    pub fn defer_replace(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
        row: impl Input<Value = R>,
    ) -> Result<Deferred<bool>, Abort> {
        self.shared.defer_to_key(tx, Change(Replace), key, row)
    }

    /// Inserts a row when the transaction commits; false if its key exists.
    pub fn defer_insert(
        &self,
        tx: &mut Transaction<'_, P>,
        key: impl Input<Value = K>,
        row: impl Input<Value = R>,
    ) -> Result<Deferred<bool>, Abort> {
        self.defer(tx, Insert { group: None }, key, row)
    }

    /// As [`defer_insert`](Self::defer_insert), into a group that is known now (an order belongs to its district).
    /// The transaction lines up for the group.
    pub fn defer_insert_grouped(
        &self,
        tx: &mut Transaction<'_, P>,
        group: u64,
        key: impl Input<Value = K>,
        row: impl Input<Value = R>,
    ) -> Result<Deferred<bool>, Abort> {
        self.defer(tx, Insert { group: Some(group) }, key, row)
    }

    /// Deletes a row when the transaction commits; false if there is none with this key.
    pub fn defer_delete(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
    ) -> Result<Deferred<bool>, Abort> {
        self.shared.defer_to_key(tx, Delete, key, ())
    }

    /// Deletes the first row of a range when the transaction commits. The range lies within a group. If the table has
    /// [queues](crate::TableBuilder::queues), the transaction lines up for the group; otherwise the operation runs at
    /// once.
    pub fn defer_take_first(
        &self,
        tx: &mut Transaction<'_, P>,
        group: u64,
        range: impl RangeBounds<K>,
    ) -> Result<Deferred<Option<K>>, Abort> {
        let range = KeyRange { low: range.start_bound().cloned(), high: range.end_bound().cloned() };
        self.shared.defer(tx, TakeFirst { group }, range, Later::Known(()), ())
    }
}

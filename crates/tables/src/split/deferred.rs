//! Deferred operations on split rows.
//!
//! An operation on columns of one group lines up for their segment. One on a whole row is several operations, each on one of the row's
//! segments: first all are read, in a chain that puts the row together; then the row is changed; and then what has changed is written. As
//! operations on one segment take effect in the order in which they were recorded, so do operations on rows.

use super::columns::change_columns;
use super::rows::put;
use super::{PartOf, Place, SplitRows};
use crate::key::{AsKey, Key};
use crate::operations::RowView;
use crate::record::{GroupsOf, Record};
use crate::storage::Shared;
use crate::table::Table;
use hotrow_core::{
    Abort, Access, Columns, Deferred, Input, ObjectAccess, Presence, Protocol, Transaction, Value,
};
use std::cell::Cell;
use std::ptr::NonNull;
use std::rc::Rc;

/// A row before and after a change, and what the change has returned.
#[derive(Clone)]
struct ChangedRow<R, O> {
    before: R,
    after: R,
    output: O,
}

impl<K: Key, R: Value, P: Protocol> Shared<K, R, P> {
    pub(crate) fn defer_read<O: 'static>(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
        look: impl FnOnce(&R) -> O + 'static,
    ) -> Result<Deferred<Option<O>>, Abort> {
        if const { !Self::HAS_GROUPS } {
            return self.defer_read_main(tx, key, look);
        }
        let Some(split) = self.split() else { return self.defer_read_main(tx, key, look) };
        if tx.enter(&self.meta)?.is_on_snapshot() {
            let output = self.read(tx, key, look)?;
            return Ok(tx.known(output));
        }
        if !tx.defers() {
            return self.at_once(tx, (), key, move |table, tx, key, ()| table.read(tx, key, look));
        }
        let access = tx.enter(&self.meta)?;
        access.settle_structure(&self.meta)?;
        let Some(record) = self.find_parts_to_line_up(access, key)? else { return Ok(tx.known(None)) };
        let row = self.defer_row(access, split, record, Access::Read)?;
        tx.compute(row, |row: Option<R>| row.map(|row| look(&row)))
    }

    pub(crate) fn defer_update<I: Input, O: 'static>(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
        inputs: I,
        change: impl FnOnce(&mut R, I::Value) -> O + 'static,
    ) -> Result<Deferred<Option<O>>, Abort> {
        if const { !Self::HAS_GROUPS } {
            return self.defer_update_main(tx, key, inputs, change);
        }
        let Some(split) = self.split() else { return self.defer_update_main(tx, key, inputs, change) };
        if !tx.defers() {
            return self.at_once(tx, inputs, key, move |table, tx, key, inputs| {
                table.update(tx, key, |row| change(row, inputs))
            });
        }
        let access = self.enter_to_change(tx)?;
        access.settle_structure(&self.meta)?;
        let Some(record) = self.find_parts_to_line_up(access, key)? else { return Ok(tx.known(None)) };
        let changed = self.defer_change(access, split, record, inputs, |row, inputs| {
            Rc::new(Cell::new(Some(change(row, inputs))))
        })?;
        tx.compute(changed, |changed| changed.and_then(|changed| changed.output.take()))
    }

    /// Defers a change of one of several rows, which also updates a value.
    pub(crate) fn defer_fold<A: Clone + 'static, I: Input + Clone>(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        split: &SplitRows<K, R, P>,
        key: &K,
        sum: Deferred<A>,
        input: I,
        change: impl Fn(&mut A, &mut R, I::Value) + 'static,
    ) -> Result<Deferred<A>, Abort> {
        if !tx.defers() {
            return self.at_once(tx, (sum, input), key, move |table, tx, key, (mut sum, input)| {
                table.update(tx, key, |row| change(&mut sum, row, input))?;
                Ok(sum)
            });
        }
        tx.settle_structure(&self.meta)?;
        let Some(record) = self.find_parts_to_line_up(tx, key)? else { return Ok(sum) };
        let changed = self.defer_change(tx, split, record, (sum, input), move |row, (mut sum, input)| {
            change(&mut sum, row, input);
            sum
        })?;
        tx.compute((changed, sum), |(changed, sum): (Option<ChangedRow<R, A>>, A)| {
            changed.map_or(sum, |changed| changed.output)
        })
    }

    /// As [`find_to_line_up`](Self::find_to_line_up), for a split row.
    ///
    /// Nobody lines up for a row that the attempt has made itself, so nothing keeps operations on its parts behind earlier ones whose keys
    /// are not known yet. Those run now.
    pub(crate) fn find_parts_to_line_up(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
    ) -> Result<Option<NonNull<Record<K, R, P>>>, Abort> {
        let found = self.find_to_line_up(tx, key)?;
        if found.is_some_and(|record| tx.has_made(Record::address(record))) {
            tx.settle()?;
        }
        Ok(found)
    }

    /// Does the work of a deferred operation on a key at once, because the attempt defers nothing.
    fn at_once<I: Input, O: 'static>(
        &self,
        tx: &mut Transaction<'_, P>,
        inputs: I,
        key: &(impl AsKey<K> + ?Sized),
        work: impl FnOnce(&Self, &mut ObjectAccess<'_, P>, &K, I::Value) -> Result<O, Abort> + 'static,
    ) -> Result<Deferred<O>, Abort> {
        let (table, key) = (NonNull::from(self), key.to_key());
        // SAFETY: the table is freed through the epoch.
        tx.enter(&self.meta)?
            .intend(inputs, move |tx, inputs| work(unsafe { table.as_ref() }, tx, &key, inputs))
    }

    /// Defers the reads of a row's segments, of which the row is made; `None` if the attempt has deleted it.
    fn defer_row(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        split: &SplitRows<K, R, P>,
        record: NonNull<Record<K, R, P>>,
        access: Access,
    ) -> Result<Deferred<Option<R>>, Abort> {
        let mut row = self.defer_at(tx, record, access, (), |table, tx, record, ()| {
            match table.read_record(tx, record)? {
                // SAFETY: stable and present, loaded while the attempt was pinned.
                RowView::Present(snapshot) => Ok(Some(unsafe { snapshot.row(tx.pin()) }.clone())),
                RowView::Changed(row) => Ok(Some(row)),
                RowView::Own(id) => Ok(table.look_at_own(tx, record, id, R::clone)),
                RowView::Dead => Err(table.died(tx, record)),
            }
        })?;
        let last = split.groups().last();
        for group in split.groups() {
            row = self.defer_part(
                tx,
                split,
                record,
                group,
                access,
                row,
                move |table, tx, split, part, row: Option<R>| {
                    let Some(mut row) = row else { return Ok(Some(None)) };
                    // SAFETY: as in `read_columns`.
                    match unsafe { part.read_part(tx, split, |part| put::<R>(part, &mut row, group)) }? {
                        Presence::Present(()) => {}
                        Presence::Deleted | Presence::Absent => return Ok(None),
                    }
                    if last == Some(group) {
                        table.check_unchanged(tx, split, record)?;
                    }
                    Ok(Some(Some(row)))
                },
            )?;
        }
        Ok(row)
    }

    /// Defers a change of a row; `None` if the attempt has deleted it.
    fn defer_change<I: Input, O: Clone + 'static>(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        split: &SplitRows<K, R, P>,
        record: NonNull<Record<K, R, P>>,
        inputs: I,
        change: impl FnOnce(&mut R, I::Value) -> O + 'static,
    ) -> Result<Deferred<Option<ChangedRow<R, O>>>, Abort> {
        let row = self.defer_row(tx, split, record, Access::Write)?;
        let changed = tx.compute((row, inputs), |(before, inputs): (Option<R>, I::Value)| {
            let before = before?;
            let mut after = before.clone();
            let output = change(&mut after, inputs);
            Some(ChangedRow { before, after, output })
        })?;
        self.defer_at(tx, record, Access::Write, changed, |table, tx, record, changed| {
            let Some(ChangedRow::<R, O> { after, .. }) = changed else { return Ok(()) };
            let split = table.split().expect("it has parts");
            let is_there = table.write_main_at_turn(tx, split, record, after)?;
            if is_there { Ok(()) } else { Err(table.died(tx, record)) }
        })?;
        for group in split.groups() {
            let write = move |_: &Self,
                              tx: &mut ObjectAccess<'_, P>,
                              split: &SplitRows<K, R, P>,
                              segment: &PartOf<R, P>,
                              changed: Option<ChangedRow<R, O>>| {
                let Some(changed) = changed else { return Ok(Some(())) };
                let part_of = |row| Record::<K, R, P>::part_of(row, group);
                let after = part_of(&changed.after);
                if part_of(&changed.before).is_same(&after) {
                    return Ok(Some(()));
                }
                // SAFETY: as in `read_columns`; read for update just now.
                unsafe {
                    match segment.read_part_for_update(tx, split)? {
                        Presence::Present((id, _)) => {
                            PartOf::<R, P>::store_part(tx, id, after);
                            Ok(Some(()))
                        }
                        Presence::Deleted | Presence::Absent => Ok(None),
                    }
                }
            };
            self.defer_part(tx, split, record, group, Access::Write, changed, write)?;
        }
        self.will_move_entries(tx);
        Ok(changed)
    }

    /// Defers the deletions of a row's parts.
    pub(crate) fn defer_deletions_of_parts(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        split: &SplitRows<K, R, P>,
        record: NonNull<Record<K, R, P>>,
    ) -> Result<(), Abort> {
        for group in split.groups() {
            self.defer_part(tx, split, record, group, Access::Write, (), |table, tx, split, part, ()| {
                Ok(table.delete_part(tx, split, part)?.then_some(()))
            })?;
        }
        Ok(())
    }

    /// Defers work on a part, which returns `None` if the part is not there.
    #[expect(clippy::too_many_arguments, reason = "what is deferred, and where")]
    fn defer_part<I: Input, O: 'static>(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        split: &SplitRows<K, R, P>,
        record: NonNull<Record<K, R, P>>,
        group: usize,
        access: Access,
        inputs: I,
        work: impl FnOnce(
            &Self,
            &mut ObjectAccess<'_, P>,
            &SplitRows<K, R, P>,
            &PartOf<R, P>,
            I::Value,
        ) -> Result<Option<O>, Abort>
        + 'static,
    ) -> Result<Deferred<O>, Abort> {
        let table = NonNull::from(self);
        // SAFETY: record and part were found under the attempt's pinned epoch, and the table is freed through the epoch; the part is
        // `split`'s; `tx` is of the table's operation.
        unsafe {
            let address = record.as_ref().part(group).segment().address();
            tx.defer(split, address, access, inputs, move |tx, inputs| {
                let (table, record) = (table.as_ref(), record.as_ref());
                let split = table.split().expect("it has parts");
                let part = record.part(group).segment();
                match work(table, tx, split, part, inputs)? {
                    Some(output) => Ok(output),
                    None => Err(table.vanished(tx, split, part)),
                }
            })
        }
    }

    pub(crate) fn defer_read_columns<C: Columns<R> + 'static>(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
        columns: C,
    ) -> Result<Deferred<Option<C::Values>>, Abort>
    where
        C::Values: 'static,
    {
        if const { !Self::HAS_GROUPS } {
            return self.defer_read_main(tx, key, move |row| columns.of(row));
        }
        match self.place_of(columns) {
            Place::Main => self.defer_read_main(tx, key, move |row| columns.of(row)),
            Place::Several => self.defer_read(tx, key, move |row| columns.of(row)),
            Place::Part(..) if tx.enter(&self.meta)?.is_on_snapshot() => {
                let values = self.read_columns(tx, key, columns)?;
                Ok(tx.known(values))
            }
            Place::Part(..) if !tx.defers() => {
                self.at_once(tx, (), key, move |table, tx, key, ()| table.read_columns(tx, key, columns))
            }
            Place::Part(split, group) => {
                let access = tx.enter(&self.meta)?;
                access.settle_structure(&self.meta)?;
                let Some(record) = self.find_parts_to_line_up(access, key)? else {
                    return Ok(tx.known(None));
                };
                self.defer_part(
                    access,
                    split,
                    record,
                    group,
                    Access::Read,
                    (),
                    move |_, tx, split, part, ()| {
                        // SAFETY: as in `read_columns`.
                        let read = unsafe {
                            part.read_part(tx, split, |part| part.values::<R, GroupsOf<R>, C>(columns))
                        };
                        Ok(read?.unless_absent())
                    },
                )
            }
        }
    }

    pub(crate) fn defer_update_columns<C: Columns<R> + 'static, I: Input, O: 'static>(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
        columns: C,
        inputs: I,
        change: impl FnOnce(&mut C::Values, I::Value) -> O + 'static,
    ) -> Result<Deferred<Option<O>>, Abort> {
        let on_row = |change| {
            move |row: &mut R, inputs| {
                change_columns(row, columns, |values| on_values(change, values, inputs))
            }
        };
        if const { !Self::HAS_GROUPS } {
            return self.defer_update_main(tx, key, inputs, on_row(change));
        }
        match self.place_of(columns) {
            Place::Main => self.defer_update_main(tx, key, inputs, on_row(change)),
            Place::Several => self.defer_update(tx, key, inputs, on_row(change)),
            Place::Part(..) if !tx.defers() => {
                self.at_once(tx, inputs, key, move |table, tx, key, inputs| {
                    table.update_columns(tx, key, columns, |values| change(values, inputs))
                })
            }
            Place::Part(split, group) => {
                let access = self.enter_to_change(tx)?;
                access.settle_structure(&self.meta)?;
                let Some(record) = self.find_parts_to_line_up(access, key)? else {
                    return Ok(tx.known(None));
                };
                let work = move |_: &Self,
                                 tx: &mut ObjectAccess<'_, P>,
                                 split: &SplitRows<K, R, P>,
                                 segment: &PartOf<R, P>,
                                 inputs| {
                    let change = |values: &mut C::Values| change(values, inputs);
                    Ok(Self::update_part(tx, split, segment, columns, change)?.unless_absent())
                };
                self.defer_part(access, split, record, group, Access::Write, inputs, work)
            }
        }
    }
}

/// Calls a change of columns. (It tells the compiler the types of the closure's arguments.)
fn on_values<V, I, O>(change: impl FnOnce(&mut V, I) -> O, values: &mut V, inputs: I) -> O {
    change(values, inputs)
}

impl<K: Key, R: Value, P: Protocol> Table<K, R, P> {
    /// Reads some columns of a row when the transaction commits: of one [group](trait@hotrow_core::Value), beside those that change
    /// others.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    #[inline]
    pub fn defer_read_columns<C: Columns<R> + 'static>(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
        columns: C,
    ) -> Result<Deferred<Option<C::Values>>, Abort>
    where
        C::Values: 'static,
    {
        self.shared.defer_read_columns(tx, key, columns)
    }

    /// Changes some columns of a row when the transaction commits: of one group, beside those that touch others. The inputs may become
    /// known only then.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    #[inline]
    pub fn defer_update_columns<C: Columns<R> + 'static, I: Input, O: 'static>(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
        columns: C,
        inputs: I,
        change: impl FnOnce(&mut C::Values, I::Value) -> O + 'static,
    ) -> Result<Deferred<Option<O>>, Abort> {
        self.shared.defer_update_columns(tx, key, columns, inputs, change)
    }
}

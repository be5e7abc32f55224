//! Deferred operations on split rows.
//!
//! An operation on columns of one group lines up for their segment. One on a whole row is several operations, each on one of the row's
//! segments: first all are read, in a chain that puts the row together; then the row is changed; and then what has changed is written. As
//! operations on one segment take effect in the order in which they were recorded, so do operations on rows.

use super::rows::put;
use crate::companions::{PartOf, Place, SplitRows};
use crate::deferred::missing;
use crate::key::{AsKey, Key};
use crate::operations::{Later, RowChange};
use crate::record::{Record, WordsOf};
use crate::rows::RowView;
use crate::storage::Shared;
use hotrow_core::column_groups::Part;
use hotrow_core::{Abort, Access, Deferred, Input, ObjectAccess, Presence, Protocol, Value};
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
    /// Lines up to read a row, or columns that are in this place.
    pub(crate) fn line_up_to_read_place<C: 'static, O: 'static>(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        key: &K,
        place: Place<'_, K, R, P, C>,
        look: impl FnOnce(&R) -> O + 'static,
        look_at_part: impl FnOnce(&Part<WordsOf<R>>, C) -> O + 'static,
    ) -> Result<Deferred<Option<O>>, Abort> {
        let Some(record) = self.find_place_to_line_up(tx, key, &place)? else { return Ok(tx.known(None)) };
        match place {
            Place::Main => self.defer_read(tx, record, look),
            Place::Several(split) => {
                let row = self.defer_row(tx, split, record, Access::Read)?;
                tx.compute(row, |row: Option<R>| row.map(|row| look(&row)))
            }
            Place::Part(split, group, columns) => {
                let work =
                    move |_: &Self, tx: &mut ObjectAccess<'_, P>, split: &_, part: &PartOf<R, P>, ()| {
                        // SAFETY: as in `read_columns`.
                        let read = unsafe { part.read_part(tx, split, |part| look_at_part(part, columns)) };
                        Ok(read?.unless_absent())
                    };
                self.defer_part(tx, split, record, group, Access::Read, (), work)
            }
        }
    }

    /// Lines up to change a row, or columns of it.
    pub(crate) fn line_up_to_change_place<I: 'static, A: Clone + 'static, C: RowChange<R, I, A>>(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        key: &K,
        change: C,
        passed: Later<A>,
        input: impl Input<Value = I>,
    ) -> Result<Deferred<C::Output>, Abort> {
        let place = change.place(self);
        let Some(record) = self.find_place_to_line_up(tx, key, &place)? else {
            return missing::<_, R, I, A, C>(tx, passed);
        };
        match place {
            Place::Main => self.defer_change(tx, record, change, passed, input),
            Place::Several(split) => {
                let inputs = (passed.clone(), input);
                let changed =
                    self.defer_whole_change(tx, split, record, inputs, |row, (mut passed, input)| {
                        let changed = change.change(row, &mut passed, input);
                        Rc::new(Cell::new(Some(C::output(passed, Some(changed)))))
                    })?;
                tx.compute((changed, passed), |(changed, passed)| {
                    let output = changed.and_then(|changed| changed.output.take());
                    output.unwrap_or_else(|| C::output(passed, None))
                })
            }
            Place::Part(split, group, columns) => {
                let work = move |_: &Self,
                                 tx: &mut ObjectAccess<'_, P>,
                                 split: &SplitRows<K, R, P>,
                                 segment: &PartOf<R, P>,
                                 (mut passed, input)| {
                    let changed = Self::update_part(tx, split, segment, |part| {
                        change.change_part(columns, part, &mut passed, input)
                    })?;
                    Ok(changed.unless_absent().map(|changed| C::output(passed, changed)))
                };
                self.defer_part(tx, split, record, group, Access::Write, (passed, input), work)
            }
        }
    }

    /// Finds the record of a key to line up for it or its parts.
    fn find_place_to_line_up<C>(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        key: &K,
        place: &Place<'_, K, R, P, C>,
    ) -> Result<Option<NonNull<Record<K, R, P>>>, Abort> {
        match place {
            Place::Main => self.find_to_line_up(tx, key),
            Place::Several(_) | Place::Part(..) => self.find_parts_to_line_up(tx, key),
        }
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
                RowView::Own(id) => Ok(table.own(tx, record, id).cloned()),
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
    fn defer_whole_change<I: Input, O: Clone + 'static>(
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
}

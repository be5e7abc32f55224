//! Deferred operations on rows.
//!
//! A row is looked up when the operation is deferred, and the transaction queues for its record (*lines up*). If the
//! record is dead when its turn comes, the attempt ends, because the key may have another record by then. (This
//! deletion of a wanted row is the only conflict that can abort a transaction that has read nothing.)

use crate::index::Keyed;
use crate::key::{AsKey, Key};
use crate::operations::RowView;
use crate::record::{Record, State};
use crate::secondary::MaintainedIndex;
use crate::storage::{Shared, key_hash};
use crate::table::Table;
use hotrow_core::operations::Results;
use hotrow_core::{Abort, Access, Deferred, Input, ObjectAccess, Protocol, Reason, Transaction, Value};
use std::ptr::NonNull;

impl<K: Key, R: Value, P: Protocol> Shared<K, R, P> {
    /// Finds the record of a key to line up for; `None` after the key's absence was observed.
    pub(crate) fn find_to_line_up(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
    ) -> Result<Option<NonNull<Record<K, R, P>>>, Abort> {
        loop {
            let Some(record) = self.find(tx, key)? else { return Ok(None) };
            // SAFETY: found in the index under the attempt's pinned epoch.
            // No attempt may line up for a record that another attempt has made and still holds: the maker has yet to
            // line up itself, perhaps for segments of a lower rank. A present record has been released by its maker,
            // or is being released.
            if unsafe { record.as_ref() }.state() == State::Present || tx.has_made(Record::address(record)) {
                return Ok(Some(record));
            }
            match self.read_record(tx, record)? {
                RowView::Dead => self.unlink_dead(tx, record),
                RowView::Present(_) | RowView::Changed(_) => {
                    // The operation reads the row when it runs, in its place in program order.
                    tx.read_as_condition();
                    return Ok(Some(record));
                }
                RowView::Own(_) => return Ok(Some(record)),
            }
        }
    }

    /// Defers work on the row of a key. Its result is `absent` if there is no such row.
    fn defer<I: Input, O: 'static>(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
        access: Access,
        inputs: I,
        absent: O,
        work: impl FnOnce(&Self, &mut ObjectAccess<'_, P>, NonNull<Record<K, R, P>>, I::Value) -> Result<O, Abort>
        + 'static,
    ) -> Result<Deferred<O>, Abort> {
        tx.settle_structure(&self.meta)?;
        match self.find_to_line_up(tx, key)? {
            Some(record) => self.defer_at(tx, record, access, inputs, work),
            None => Ok(tx.known(absent)),
        }
    }

    /// Defers work on the row of a record.
    pub(crate) fn defer_at<I: Input, O: 'static>(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        record: NonNull<Record<K, R, P>>,
        access: Access,
        inputs: I,
        work: impl FnOnce(&Self, &mut ObjectAccess<'_, P>, NonNull<Record<K, R, P>>, I::Value) -> Result<O, Abort>
        + 'static,
    ) -> Result<Deferred<O>, Abort> {
        let table = NonNull::from(self);
        // SAFETY: the record is this table's, found under the attempt's pinned epoch; the table is freed through the
        // epoch; `tx` is of the table's operation.
        unsafe {
            tx.defer(self, Record::address(record), access, inputs, move |tx, inputs| {
                work(table.as_ref(), tx, record, inputs)
            })
        }
    }

    /// Ends an attempt whose record died before its turn.
    #[cold]
    pub(crate) fn died(&self, tx: &mut ObjectAccess<'_, P>, record: NonNull<Record<K, R, P>>) -> Abort {
        // SAFETY: found by this table under the attempt's pinned epoch.
        let id = unsafe { tx.item(self, Record::address(record)) };
        tx.conflict(Reason::ReadChanged, id)
    }

    pub(crate) fn defer_read_main<O: 'static>(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
        look: impl FnOnce(&R) -> O + 'static,
    ) -> Result<Deferred<Option<O>>, Abort> {
        let tx = tx.enter(&self.meta)?;
        if self.immutable || tx.is_on_snapshot() {
            let output = self.read_main(tx, key, look)?;
            return Ok(tx.known(output));
        }
        self.defer(tx, key, Access::Read, (), None, move |table, tx, record, ()| {
            match table.read_record(tx, record)? {
                // SAFETY: stable and present, loaded while the attempt was pinned.
                RowView::Present(snapshot) => Ok(Some(look(unsafe { snapshot.row(tx.pin()) }))),
                RowView::Changed(row) => Ok(Some(look(&row))),
                RowView::Own(id) => Ok(table.look_at_own(tx, record, id, look)),
                RowView::Dead => Err(table.died(tx, record)),
            }
        })
    }

    pub(crate) fn defer_update_main<I: Input, O: 'static>(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
        inputs: I,
        change: impl FnOnce(&mut R, I::Value) -> O + 'static,
    ) -> Result<Deferred<Option<O>>, Abort> {
        let tx = self.enter_to_change(tx)?;
        let deferred =
            self.defer(tx, key, Access::Write, inputs, None, move |table, tx, record, inputs| {
                match table.update_at(tx, record, |row| change(row, inputs))? {
                    Ok(output) => Ok(output),
                    Err(_) => Err(table.died(tx, record)),
                }
            })?;
        self.will_move_entries(tx);
        if self.moving_secondaries().next().is_some() {
            // The entry of the old row.
            tx.will_remove();
        }
        Ok(deferred)
    }

    pub(crate) fn defer_replace(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
        row: impl Input<Value = R>,
    ) -> Result<Deferred<bool>, Abort> {
        let replaced = self.defer_update(tx, key, row, |old, row| *old = row)?;
        tx.compute(replaced, |replaced| replaced.is_some())
    }

    pub(crate) fn defer_delete(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
    ) -> Result<Deferred<bool>, Abort> {
        let tx = self.enter_to_change(tx)?;
        let in_line = tx.defers();
        if let Some(group_of) = &self.group_of
            && in_line
        {
            // Settle first. Otherwise `defer` below would settle and so run the intention that is recorded here.
            tx.settle_structure(&self.meta)?;
            let head = self.groups.head(group_of(&key.to_key()));
            // SAFETY: the segment is the groups', which are in the table's shared state; `tx` is of the table's operation.
            unsafe { tx.defer(&self.groups, head, Access::Write, (), |_, ()| Ok(())) }?;
        }
        if const { Self::HAS_GROUPS }
            && let Some(split) = self.split()
            && in_line
        {
            // Settle first, as above.
            tx.settle_structure(&self.meta)?;
            if let Some(record) = self.find_parts_to_line_up(tx, key)? {
                self.defer_deletions_of_parts(tx, split, record)?;
            }
        }
        let deferred = self.defer(tx, key, Access::Write, (), false, move |table, tx, record, ()| {
            let deleted = table.delete_at_turn(tx, record)?;
            if deleted && !in_line {
                // The deletion runs at once after all: the attempt defers nothing, or the key became known too late.
                // SAFETY: the attempt has an item of the record, so it is in memory until the attempt ends.
                table.leave_queue(tx, unsafe { record.as_ref() }.key())?;
            }
            Ok(deleted)
        })?;
        self.will_change_structure(tx);
        tx.will_remove();
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
            let id = unsafe { tx.item(&table.groups, head) };
            tx.conflict(Reason::Undeclared, id)
        };
        tx.settle_structure(&self.meta)?;
        let Some(record) = self.find_to_line_up(tx, &key)? else { return Err(gone(self, tx)) };
        if const { Self::HAS_GROUPS }
            && let Some(split) = self.split()
        {
            self.defer_deletions_of_parts(tx, split, record)?;
        }
        self.defer_at(tx, record, Access::Write, (), move |table, tx, record, ()| {
            if table.delete_at_turn(tx, record)? { Ok(Some(key)) } else { Err(gone(table, tx)) }
        })
    }

    fn delete_at_turn(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        record: NonNull<Record<K, R, P>>,
    ) -> Result<bool, Abort> {
        match self.delete_at(tx, record)? {
            Some(deleted) => Ok(deleted),
            None => Err(self.died(tx, record)),
        }
    }

    /// Defers the same change of several rows. The change also updates a value that each row passes on to the next.
    fn defer_update_each<I: Input + Clone, A: Clone + 'static>(
        &self,
        tx: &mut Transaction<'_, P>,
        keys: impl IntoIterator<Item = K>,
        input: I,
        initial: A,
        change: impl Fn(&mut A, &mut R, I::Value) + Clone + 'static,
    ) -> Result<Deferred<A>, Abort> {
        let tx = self.enter_to_change(tx)?;
        let mut sum = tx.known(initial);
        for key in keys {
            if const { Self::HAS_GROUPS }
                && let Some(split) = self.split()
            {
                sum = self.defer_fold(tx, split, &key, sum, input.clone(), change.clone())?;
                continue;
            }
            tx.settle_structure(&self.meta)?;
            let Some(record) = self.find_to_line_up(tx, &key)? else { continue };
            let change = change.clone();
            let work = move |table: &Self, tx: &mut ObjectAccess<'_, P>, record, (mut sum, input)| match table
                .update_at(tx, record, |row| change(&mut sum, row, input))?
            {
                Ok(_) => Ok(sum),
                Err(_) => Err(table.died(tx, record)),
            };
            sum = self.defer_at(tx, record, Access::Write, (sum, input.clone()), work)?;
        }
        self.will_move_entries(tx);
        Ok(sum)
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
            tx.do_at_once(|tx| match tx.value_of(&keys) {
                Some(keys) => record.take().map(|record| record(self, tx, keys)).transpose(),
                None => Ok(None),
            })
        };
        if let Some(deferred) = record_if_known(tx)? {
            return Ok(deferred);
        }
        // Settling may make the keys known.
        tx.settle_structure(&self.meta)?;
        if let Some(deferred) = record_if_known(tx)? {
            return Ok(deferred);
        }
        let record = record.expect("not called: the keys are not known");
        for secondary in self.secondaries.iter().filter(|secondary| !secondary.is_immutable()) {
            tx.leave_unsettled(secondary.meta());
        }
        let table = NonNull::from(self);
        tx.defer_late(&self.meta, self.meta.rank_of(0), keys, move |tx, keys| {
            // SAFETY: the table is freed through the epoch.
            record(unsafe { table.as_ref() }, tx, keys)
        })
    }

    pub(crate) fn will_change_structure(&self, tx: &mut ObjectAccess<'_, P>) {
        tx.will_change_structure(&self.meta);
        self.will_move_entries(tx);
    }

    /// Declares that a row's entries in the secondary indexes may come and go.
    pub(crate) fn will_move_entries(&self, tx: &mut ObjectAccess<'_, P>) {
        self.moving_secondaries().for_each(|secondary| tx.will_change_structure(secondary.meta()));
    }

    pub(crate) fn moving_secondaries(&self) -> impl Iterator<Item = &dyn MaintainedIndex<K, R, P>> {
        self.secondaries.iter().map(|secondary| &**secondary).filter(|secondary| !secondary.is_immutable())
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
                let segment = self.groups.tail(group);
                let deferred = tx.defer(&self.groups, segment, Access::Write, inputs, work)?;
                if self.group_of.is_some() {
                    let id = tx.item(&self.groups, segment);
                    tx.release_after_inserts(id);
                }
                Ok(deferred)
            },
            _ => {
                // An operation of this attempt that later takes the first row of a group must see this one.
                tx.will_change_structure(&self.groups.meta);
                tx.intend(inputs, work)
            }
        }?;
        tx.finds_segment(&self.meta);
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

impl<K: Key, R: Value, P: Protocol> Table<K, R, P> {
    /// Reads a row when the transaction commits. The result, `None` if there is no such row, may be an input of
    /// operations deferred later.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    #[inline]
    pub fn defer_read<O: 'static>(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
        look: impl FnOnce(&R) -> O + 'static,
    ) -> Result<Deferred<Option<O>>, Abort> {
        self.shared.defer_read(tx, key, look)
    }

    /// Changes a row when the transaction commits. The inputs may become known only then.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    #[inline]
    pub fn defer_update<I: Input, O: 'static>(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
        inputs: I,
        change: impl FnOnce(&mut R, I::Value) -> O + 'static,
    ) -> Result<Deferred<Option<O>>, Abort> {
        self.shared.defer_update(tx, key, inputs, change)
    }

    /// Makes the same change to several rows, one after the other, when the transaction commits. The change also
    /// updates a value that each row passes on to the next, beginning with `initial`; its last state is the result.
    /// Keys without a row are skipped.
    ///
    /// The keys and the input may become known only then. Keys that are unknown now (no key or one, as an [`Option`];
    /// the keys of an order's lines) must come from operations on segments of a lower
    /// [rank](crate::TableBuilder::rank).
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
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
        self.shared
            .when_known(tx, keys, |table, tx, keys| table.defer_update_each(tx, keys, input, initial, change))
    }

    /// Replaces a row when the transaction commits; false if there is none with this key.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn defer_replace(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
        row: impl Input<Value = R>,
    ) -> Result<Deferred<bool>, Abort> {
        self.shared.defer_replace(tx, key, row)
    }

    /// Inserts a row when the transaction commits; false if its key exists. Key and row may become known only then.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn defer_insert(
        &self,
        tx: &mut Transaction<'_, P>,
        key: impl Input<Value = K>,
        row: impl Input<Value = R>,
    ) -> Result<Deferred<bool>, Abort> {
        self.shared.defer_insert(tx, None, key, row)
    }

    /// As [`defer_insert`](Self::defer_insert), into a group that is known now (an order belongs to its district).
    /// The transaction lines up for the group.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn defer_insert_grouped(
        &self,
        tx: &mut Transaction<'_, P>,
        group: u64,
        key: impl Input<Value = K>,
        row: impl Input<Value = R>,
    ) -> Result<Deferred<bool>, Abort> {
        self.shared.defer_insert(tx, Some(group), key, row)
    }

    /// Deletes a row when the transaction commits; false if there is none with this key.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn defer_delete(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
    ) -> Result<Deferred<bool>, Abort> {
        self.shared.defer_delete(tx, key)
    }
}

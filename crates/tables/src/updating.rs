//! Changes of rows that run at once. The row is found and announced first, by code that knows nothing of the change, so that a change
//! brings only itself.

use crate::index::{Keyed, Lookup};
use crate::key::{AsKey, Key};
use crate::record::{Pending, Record, State};
use crate::rows::{ONCE, end_joint_changes};
use crate::split::MAIN;
use crate::storage::{Shared, tag};
use hotrow_core::{
    Abort, Cell, Fields, ItemId, ObjectAccess, Observed, Presence, Protocol, Transaction, Value, Whole,
};
use std::ptr::NonNull;

/// A row that an attempt is going to change: its write is announced.
pub(crate) struct RowToChange<K: Key, R: Value, P: Protocol> {
    record: NonNull<Record<K, R, P>>,
    id: ItemId,
}

impl<K: Key, R: Value, P: Protocol> RowToChange<K, R, P> {
    /// The row of a record, of which this item has a pending update, or which the attempt has made.
    pub(crate) fn new(record: NonNull<Record<K, R, P>>, id: ItemId) -> Self {
        Self { record, id }
    }
}

/// The result of a change of a row that is inserted next if there is none.
pub(crate) enum UpdateIfFound<O> {
    Updated(O),
    /// There is none. The bucket or leaf that says so, if the attempt does not depend on it yet.
    Absent(Option<Observed>),
}

impl<K: Key, R: Value, P: Protocol> Shared<K, R, P> {
    /// Changes the row of a key. If there is none, [`insert_absent`](Self::insert_absent) follows: so the absence is observed only if that
    /// finds it out of date.
    #[inline]
    pub(crate) fn update_unless_absent<O>(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &K,
        change: impl FnOnce(&mut R) -> O,
    ) -> Result<UpdateIfFound<O>, Abort> {
        if const { Self::HAS_GROUPS } {
            let updated = self.update(tx, key, Whole, change)?;
            return Ok(updated.map_or(UpdateIfFound::Absent(None), UpdateIfFound::Updated));
        }
        let tx = self.enter_to_write(tx)?;
        match self.find_to_change_or_insert(tx, key)? {
            UpdateIfFound::Updated(row) => self.change_row(tx, row, change).map(UpdateIfFound::Updated),
            UpdateIfFound::Absent(absence) => Ok(UpdateIfFound::Absent(absence)),
        }
    }

    /// Finds a row to change.
    #[inline]
    fn find_to_change_or_insert(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        key: &K,
    ) -> Result<UpdateIfFound<RowToChange<K, R, P>>, Abort> {
        let observes_first = tx.history().is_recorded() || tx.structure().may_refuse_observations();
        loop {
            let record = if observes_first {
                let Some(record) = self.find(tx, key)? else { return Ok(UpdateIfFound::Absent(None)) };
                record
            } else {
                match self.index.get(key, tx.pin()) {
                    Lookup::Found(record) => record,
                    Lookup::Absent(observed) => return Ok(UpdateIfFound::Absent(Some(observed))),
                }
            };
            match self.row_to_change(tx, record)? {
                Presence::Present(row) => return Ok(UpdateIfFound::Updated(row)),
                Presence::Deleted => return Ok(UpdateIfFound::Absent(None)),
                Presence::Absent => self.leave_dead(tx, record, MAIN)?,
            }
        }
    }

    /// Inserts the row of a key that [`update_unless_absent`](Self::update_unless_absent) has found absent.
    pub(crate) fn insert_absent(
        &self,
        tx: &mut Transaction<'_, P>,
        key: K,
        row: R,
        absence: Option<Observed>,
    ) -> Result<(), Abort> {
        if !self.insert(tx, key, row)?
            && let Some(observed) = absence
        {
            // Somebody else has inserted it since. The attempt depends on the absence, so it cannot commit, and its result does not matter.
            // SAFETY: the node is this table's, and was observed under the attempt's pinned epoch; `tx` is of an operation of this table.
            unsafe { tx.enter(&self.meta)?.observe(self, observed) }?;
        }
        Ok(())
    }

    /// Changes fields of a row, and returns what the change returns; `None` if there is none with this key.
    #[inline]
    pub(crate) fn update<F: Fields<R>, O>(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
        fields: F,
        change: impl FnOnce(&mut F::Values) -> O,
    ) -> Result<Option<O>, Abort> {
        let segments = self.segments_of(fields);
        if const { Self::HAS_GROUPS } && segments != MAIN {
            let (tx, mut change) = (self.enter_to_write(tx)?, Some(change));
            return self.on_row(tx, key, segments, |tx, record| {
                let change_once = |values: &mut F::Values| change.take().expect(ONCE)(values);
                self.update_segments(tx, record, segments, fields, change_once)
            });
        }
        // SAFETY: it is a row.
        self.update_main(tx, key, |row| unsafe { fields.change(row, change) })
    }

    /// As [`update`](Self::update), of the row in the record.
    #[inline]
    pub(crate) fn update_main<O>(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
        change: impl FnOnce(&mut R) -> O,
    ) -> Result<Option<O>, Abort> {
        let tx = self.enter_to_write(tx)?;
        let found = self.find_to_change(tx, key)?;
        found.map(|row| self.change_row(tx, row, change)).transpose()
    }

    /// Changes fields of the row of a record, which are in these segments.
    #[inline]
    pub(crate) fn update_at<F: Fields<R>, O>(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        record: NonNull<Record<K, R, P>>,
        segments: u32,
        fields: F,
        change: impl FnOnce(&mut F::Values) -> O,
    ) -> Result<Presence<O>, Abort> {
        if const { Self::HAS_GROUPS } && segments != MAIN {
            return self.update_segments(tx, record, segments, fields, change);
        }
        let row = self.row_to_change(tx, record)?;
        // SAFETY: it is a row.
        row.try_map(|row| self.change_row(tx, row, |row| unsafe { fields.change(row, change) }))
    }

    /// Finds a row to change; `None` if there is none with this key.
    #[inline]
    fn find_to_change(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
    ) -> Result<Option<RowToChange<K, R, P>>, Abort> {
        self.on_row(tx, key, MAIN, |tx, record| self.row_to_change(tx, record))
    }

    /// Announces the write of a record's row, which is to be changed, and gives it a pending row.
    #[inline]
    pub(crate) fn row_to_change(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        record: NonNull<Record<K, R, P>>,
    ) -> Result<Presence<RowToChange<K, R, P>>, Abort> {
        let (id, state) = if const { R::Cell::COPIES && size_of::<Pending<R>>() > size_of::<usize>() } {
            self.copy_to_change(tx, record)?
        } else {
            // SAFETY: as in `read_record`.
            let (id, snapshot) =
                unsafe { tx.read_for_update(self, Record::address(record), || record.as_ref().load())? };
            if let Some(snapshot) = &snapshot
                && snapshot.state == State::Present
            {
                // SAFETY: stable and present.
                let row = unsafe { snapshot.row(tx.pin()) }.clone();
                // SAFETY: announced just now; the tag says what the payload is.
                unsafe {
                    tx.set_tag(id, tag::UPDATE);
                    tx.set_write(id, R::Cell::pend(row));
                }
            }
            (id, snapshot.map(|snapshot| snapshot.state))
        };
        match state {
            None => self.own_to_change(tx, record, id),
            Some(State::Present) => Ok(Presence::Present(RowToChange::new(record, id))),
            Some(_) => {
                // As in `read_record`.
                tx.history_mut().forget_read();
                Ok(Presence::Absent)
            }
        }
    }

    /// As [`row_to_change`](Self::row_to_change), for a row whose copy can be its pending write: it is copied once. Returns the state of
    /// one that the attempt has not written yet.
    #[inline]
    fn copy_to_change(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        record: NonNull<Record<K, R, P>>,
    ) -> Result<(ItemId, Option<State>), Abort> {
        // None for a row that the attempt has changed already, however often it changes it.
        let place = match tx.own_write(Record::address(record)) {
            None => tx.reserve::<Pending<R>>(),
            Some(_) => std::ptr::null_mut(),
        };
        // SAFETY: as in `read_record`; the row's cell copies, and there is room for a pending row if it is loaded, which
        // an own one is not.
        let (id, state) = unsafe {
            let load = || record.as_ref().load_pending(place);
            tx.read_for_update(self, Record::address(record), load)?
        };
        if state == Some(State::Present) {
            // SAFETY: announced just now; the tag says what the payload is. It was loaded stable and present.
            unsafe {
                tx.set_tag(id, tag::UPDATE);
                tx.set_write_at(id, place);
            }
        }
        Ok((id, state))
    }

    /// As [`row_to_change`](Self::row_to_change), for a record of which the attempt has a pending write.
    fn own_to_change(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        record: NonNull<Record<K, R, P>>,
        id: ItemId,
    ) -> Result<Presence<RowToChange<K, R, P>>, Abort> {
        if tx.tag(id) == tag::CHANGES {
            self.settle_changes(tx, record, id)?;
        }
        Ok(match tx.tag(id) {
            tag::UPDATE | tag::INSERTED => Presence::Present(RowToChange::new(record, id)),
            _ => Presence::Deleted,
        })
    }

    /// Changes a row, and returns what the change returns.
    #[inline]
    pub(crate) fn change_row<O>(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        row: RowToChange<K, R, P>,
        change: impl FnOnce(&mut R) -> O,
    ) -> Result<O, Abort> {
        if self.companions.indexes.is_empty() && tx.tag(row.id) == tag::UPDATE {
            // SAFETY: an update has a payload of this type.
            return Ok(change(R::Cell::pending_mut(unsafe { tx.payload::<Pending<R>>(row.id) })));
        }
        let (mut change, mut output) = (Some(change), None);
        self.change_jointly(tx, row, &mut |row| output = change.take().map(|change| change(row)))?;
        Ok(output.expect("a row is changed once"))
    }

    /// Changes a row that the attempt has made, or whose entries in secondary indexes follow it.
    #[inline(never)]
    fn change_jointly(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        RowToChange { record, id }: RowToChange<K, R, P>,
        change: &mut dyn FnMut(&mut R),
    ) -> Result<(), Abort> {
        let before = self.own(tx, record, id).expect("a row to change is there").clone();
        let around = self.begin_joint_changes(tx);
        if tx.tag(id) == tag::UPDATE {
            // SAFETY: an update has a payload of this type.
            change(R::Cell::pending_mut(unsafe { tx.payload::<Pending<R>>(id) }));
        } else {
            let mut pending = R::Cell::pend(before.clone());
            change(R::Cell::pending_mut(&mut pending));
            // SAFETY: this attempt made the record, which is in memory until it ends. It holds the lock.
            unsafe { record.as_ref().install(pending, tx.pin()) };
        }
        if !self.companions.indexes.is_empty() {
            self.follow_change(tx, record, id, &before)?;
        }
        end_joint_changes(tx, around);
        Ok(())
    }

    /// Moves a changed row's entries in the secondary indexes.
    fn follow_change(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        record: NonNull<Record<K, R, P>>,
        id: ItemId,
        before: &R,
    ) -> Result<(), Abort> {
        let Some(after) = self.own(tx, record, id).cloned() else { return Ok(()) };
        // SAFETY: the attempt has an item of the record, so it is in memory until the attempt ends.
        let key = unsafe { record.as_ref() }.key();
        self.companions.indexes.change(tx, key, before, &after)
    }
}

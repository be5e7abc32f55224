//! Operations on whole rows. Rows that are not split have one segment, on which the operations of the main columns are those of the row.

use crate::companions::{PartOf, SplitRows};
use crate::key::{AsKey, Key};
use crate::record::{GroupsOf, Record, Snapshot, State, WordsOf};
use crate::rows::RowView;
use crate::storage::{Shared, tag};
use crate::updating::RowToChange;
use hotrow_core::column_groups::{ColumnGroups, Part};
use hotrow_core::{
    Abort, Cell, CommitTimeChange, ItemId, ObjectAccess, Presence, Protocol, Transaction, Value,
};
use std::ptr::NonNull;

/// A row that an operation is going to change, and its segments.
struct RowForUpdate<R: Value> {
    row: R,
    /// The row in the record.
    main: R,
    id: ItemId,
    is_own: bool,
}

/// A row whose segments have all been read for an update.
struct WholeToChange<K: Key, R: Value, P: Protocol> {
    record: NonNull<Record<K, R, P>>,
    found: RowForUpdate<R>,
    /// The parts as they were read, with their groups and items.
    parts: Vec<(usize, ItemId, Part<WordsOf<R>>)>,
}

/// The result of reading a record for an update.
enum MainForUpdate<R: Value> {
    Found(RowForUpdate<R>),
    /// The attempt has deleted the row.
    Deleted,
    /// The record is dead.
    Dead,
}

impl<K: Key, R: Value, P: Protocol> Shared<K, R, P> {
    /// Reads a row; `None` if there is none with this key.
    #[inline]
    pub(crate) fn read<O>(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
        look: impl FnOnce(&R) -> O,
    ) -> Result<Option<O>, Abort> {
        if const { Self::HAS_GROUPS }
            && let Some(split) = self.split()
        {
            return Ok(self.read_whole(tx, split, key)?.map(|row| look(&row)));
        }
        self.read_main(tx, key, look)
    }

    /// Changes a row, and returns what the change returns; `None` if there is none with this key.
    #[inline]
    pub(crate) fn update<O>(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
        change: impl FnOnce(&mut R) -> O,
    ) -> Result<Option<O>, Abort> {
        if const { Self::HAS_GROUPS }
            && let Some(split) = self.split()
        {
            return self.update_whole(tx, split, key, change);
        }
        self.update_main(tx, key, change)
    }

    /// Replaces a row without reading it. True if there was one with this key.
    #[inline]
    pub(crate) fn replace(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
        row: R,
    ) -> Result<bool, Abort> {
        if const { Self::HAS_GROUPS }
            && let Some(split) = self.split()
        {
            return self.replace_whole(tx, split, key, row);
        }
        self.replace_main(tx, key, row)
    }

    /// True if changes of a row that commute are changes at the commit.
    pub(crate) fn commutes(&self) -> bool {
        !(self.split().is_some() || self.changes_at_once())
    }

    /// Changes a row at the commit. False if there is none with this key.
    pub(crate) fn change_at_commit(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &(impl AsKey<K> + ?Sized),
        change: impl CommitTimeChange<R>,
    ) -> Result<bool, Abort> {
        if const { Self::HAS_GROUPS } && self.split().is_some() {
            // The change needs all segments.
            let changed = self.update(tx, key, |row| change.change(row))?;
            return self.unless_out_of_range(key, changed);
        }
        self.change_main_at_commit(tx, key, change)
    }

    fn read_whole(
        &self,
        tx: &mut Transaction<'_, P>,
        split: &SplitRows<K, R, P>,
        key: &(impl AsKey<K> + ?Sized),
    ) -> Result<Option<R>, Abort> {
        let tx = tx.enter(&self.meta)?;
        if tx.is_on_snapshot() {
            return Ok(self.read_on_snapshot(tx, key, R::clone));
        }
        tx.settle_object(&self.meta)?;
        loop {
            let Some(record) = self.find(tx, key)? else { return Ok(None) };
            match self.read_record(tx, record)? {
                RowView::Dead => self.unlink_dead(tx, record),
                found => return self.row_of(tx, split, record, found),
            }
        }
    }

    /// Reads the row of a record; `None` if it is not there.
    pub(crate) fn read_whole_at(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        split: &SplitRows<K, R, P>,
        record: NonNull<Record<K, R, P>>,
    ) -> Result<Option<R>, Abort> {
        let found = self.read_record(tx, record)?;
        self.row_of(tx, split, record, found)
    }

    /// Reads the parts of a row whose record was read.
    fn row_of(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        split: &SplitRows<K, R, P>,
        record: NonNull<Record<K, R, P>>,
        found: RowView<Snapshot<R>, R>,
    ) -> Result<Option<R>, Abort> {
        let row = match found {
            // SAFETY: stable and present, loaded while the attempt was pinned.
            RowView::Present(snapshot) => Some(unsafe { snapshot.row(tx.pin()) }.clone()),
            RowView::Changed(row) => Some(row),
            RowView::Own(id) => self.own(tx, record, id).cloned(),
            RowView::Dead => None,
        };
        let Some(mut row) = row else { return Ok(None) };
        for group in split.groups() {
            // SAFETY: found in the index under the attempt's pinned epoch; the part is `split`'s; `tx` is of the table's operation.
            unsafe {
                let part = record.as_ref().part(group).segment();
                match part.read_part(tx, split, |part| put::<R>(part, &mut row, group))? {
                    Presence::Present(()) => {}
                    // Its deletion has been committed since.
                    Presence::Absent if !tx.keeps_reads() => return Ok(None),
                    Presence::Deleted | Presence::Absent => return Err(self.vanished(tx, split, part)),
                }
            }
        }
        self.check_unchanged(tx, split, record)?;
        Ok(Some(row))
    }

    /// Makes sure that a row which was put together from its segments is one that was there at some moment. The last segment was read
    /// last, so that it is as it was.
    pub(super) fn check_unchanged(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        split: &SplitRows<K, R, P>,
        record: NonNull<Record<K, R, P>>,
    ) -> Result<(), Abort> {
        let parts = split.groups().count();
        // SAFETY: as in `row_of`.
        unsafe {
            tx.check_unchanged(self, Record::address(record))?;
            for group in split.groups().take(parts - 1) {
                tx.check_unchanged(split, record.as_ref().part(group).segment().address())?;
            }
        }
        Ok(())
    }

    /// Reads the parts of a row that the transaction's snapshot sees; `main` is what its record had.
    pub(crate) fn row_on_snapshot(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        split: &SplitRows<K, R, P>,
        record: NonNull<Record<K, R, P>>,
        main: &R,
    ) -> R {
        let mut row = main.clone();
        for group in split.groups() {
            self.part_on_snapshot(tx, split, record, group, |part| put::<R>(part, &mut row, group));
        }
        row
    }

    /// Looks at a part of a row that the transaction's snapshot sees.
    pub(crate) fn part_on_snapshot<O>(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        split: &SplitRows<K, R, P>,
        record: NonNull<Record<K, R, P>>,
        group: usize,
        look: impl FnOnce(&Part<WordsOf<R>>) -> O,
    ) -> O {
        // SAFETY: as in `row_of`; the record is in memory as long as the pin under which it was found.
        match unsafe { record.as_ref().part(group).segment().read_part(tx, split, look) } {
            Ok(Presence::Present(output)) => output,
            _ => unreachable!("the commits that make and delete a row write its record and its parts"),
        }
    }

    /// Changes a row. Only the segments whose columns have changed are written.
    fn update_whole<O>(
        &self,
        tx: &mut Transaction<'_, P>,
        split: &SplitRows<K, R, P>,
        key: &(impl AsKey<K> + ?Sized),
        change: impl FnOnce(&mut R) -> O,
    ) -> Result<Option<O>, Abort> {
        let tx = self.enter_to_write(tx)?;
        let Some(mut whole) = self.whole_to_change(tx, split, key)? else { return Ok(None) };
        let output = change(&mut whole.found.row);
        self.write_whole(tx, split, whole)?;
        Ok(Some(output))
    }

    /// Reads all segments of a row that is going to be changed. All is read, and waited for, before anything is written.
    fn whole_to_change(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        split: &SplitRows<K, R, P>,
        key: &(impl AsKey<K> + ?Sized),
    ) -> Result<Option<WholeToChange<K, R, P>>, Abort> {
        loop {
            let Some(record) = self.find(tx, key)? else { return Ok(None) };
            let mut found = match self.read_main_for_update(tx, record)? {
                MainForUpdate::Found(found) => found,
                MainForUpdate::Deleted => return Ok(None),
                MainForUpdate::Dead => {
                    self.unlink_dead(tx, record);
                    continue;
                }
            };
            let mut parts = Vec::with_capacity(GroupsOf::<R>::NAMES.len());
            for group in split.groups() {
                // SAFETY: as in `row_of`.
                unsafe {
                    let part = record.as_ref().part(group).segment();
                    match part.read_part_for_update(tx, split)? {
                        Presence::Present((id, part)) => {
                            put::<R>(&part, &mut found.row, group);
                            parts.push((group, id, part));
                        }
                        Presence::Deleted | Presence::Absent => return Err(self.vanished(tx, split, part)),
                    }
                }
            }
            self.check_unchanged(tx, split, record)?;
            return Ok(Some(WholeToChange { record, found, parts }));
        }
    }

    /// Writes those segments of a row whose columns have changed.
    fn write_whole(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        split: &SplitRows<K, R, P>,
        WholeToChange { record, found, parts }: WholeToChange<K, R, P>,
    ) -> Result<(), Abort> {
        for (group, id, before) in parts {
            let after = Record::<K, R, P>::part_of(&found.row, group);
            if !after.is_same(&before) {
                // SAFETY: read for update just now.
                unsafe { PartOf::<R, P>::store_part(tx, id, after) };
            }
        }
        self.write_main(tx, split, record, found)
    }

    /// Reads a record for an update.
    fn read_main_for_update(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        record: NonNull<Record<K, R, P>>,
    ) -> Result<MainForUpdate<R>, Abort> {
        // SAFETY: as in `read_record`.
        let (id, snapshot) =
            unsafe { tx.read_for_update(self, Record::address(record), || record.as_ref().load())? };
        let found = |main: R, is_own| RowForUpdate { row: main.clone(), main, id, is_own };
        let Some(snapshot) = snapshot else {
            if tx.tag(id) == tag::CHANGES {
                self.settle_changes(tx, record, id)?;
            }
            let own = self.own(tx, record, id).cloned();
            return Ok(own.map_or(MainForUpdate::Deleted, |main| MainForUpdate::Found(found(main, true))));
        };
        if snapshot.state != State::Present {
            tx.forget_read();
            return Ok(MainForUpdate::Dead);
        }
        // SAFETY: stable and present.
        let main = unsafe { snapshot.row(tx.pin()) }.clone();
        Ok(MainForUpdate::Found(found(main, false)))
    }

    /// Writes the main columns of a row to its record, if they have changed.
    fn write_main(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        split: &SplitRows<K, R, P>,
        record: NonNull<Record<K, R, P>>,
        RowForUpdate { mut row, main, id, is_own }: RowForUpdate<R>,
    ) -> Result<(), Abort> {
        // The record's other columns do not matter.
        split.groups().for_each(|group| put::<R>(&Record::<K, R, P>::part_of(&main, group), &mut row, group));
        if bytes_of::<K, R, P>(&row) == bytes_of::<K, R, P>(&main) {
            return Ok(());
        }
        if !is_own {
            // SAFETY: announced when it was read; the tag says what the payload is.
            unsafe {
                tx.set_tag(id, tag::UPDATE);
                tx.set_write(id, R::Cell::pend(main));
            }
        }
        self.change_row(tx, RowToChange::new(record, id), |own| *own = row)
    }

    /// Writes the main columns of a row to its record, if they have changed, at the turn of a deferred operation. False if it is
    /// dead.
    pub(super) fn write_main_at_turn(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        split: &SplitRows<K, R, P>,
        record: NonNull<Record<K, R, P>>,
        row: R,
    ) -> Result<bool, Abort> {
        match self.read_main_for_update(tx, record)? {
            MainForUpdate::Found(found) => {
                self.write_main(tx, split, record, RowForUpdate { row, ..found })?;
                Ok(true)
            }
            MainForUpdate::Deleted | MainForUpdate::Dead => Ok(false),
        }
    }

    fn replace_whole(
        &self,
        tx: &mut Transaction<'_, P>,
        split: &SplitRows<K, R, P>,
        key: &(impl AsKey<K> + ?Sized),
        row: R,
    ) -> Result<bool, Abort> {
        if !self.companions.indexes.is_empty() {
            return Ok(self.update_whole(tx, split, key, |old| *old = row)?.is_some());
        }
        if !self.replace_main(tx, key, row.clone())? {
            return Ok(false);
        }
        let tx = self.enter_to_write(tx)?;
        // The attempt has a pending write of the record now, which so is the key's until it ends.
        let Some(record) = self.find(tx, key)? else { return Ok(false) };
        for group in split.groups() {
            // SAFETY: as in `row_of`.
            unsafe {
                let part = record.as_ref().part(group).segment();
                match part.write_part(tx, split, Record::<K, R, P>::part_of(&row, group))? {
                    Presence::Present(()) => {}
                    Presence::Deleted | Presence::Absent => return Err(self.vanished(tx, split, part)),
                }
            }
        }
        Ok(true)
    }

    /// Deletes the parts of a row whose record the attempt has deleted.
    pub(crate) fn delete_parts(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        split: &SplitRows<K, R, P>,
        record: NonNull<Record<K, R, P>>,
    ) -> Result<(), Abort> {
        for group in split.groups() {
            // SAFETY: as in `row_of`.
            let part = unsafe { record.as_ref() }.part(group).segment();
            if !self.delete_part(tx, split, part)? {
                return Err(self.vanished(tx, split, part));
            }
        }
        Ok(())
    }

    /// Deletes a part. False if it is absent.
    pub(super) fn delete_part(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        split: &SplitRows<K, R, P>,
        part: &PartOf<R, P>,
    ) -> Result<bool, Abort> {
        // SAFETY: as in `row_of`.
        unsafe {
            match part.read_part_for_update(tx, split)? {
                Presence::Present((id, mut part)) => {
                    part.set_absent();
                    PartOf::<R, P>::store_part(tx, id, part);
                    Ok(true)
                }
                Presence::Deleted => Ok(true),
                Presence::Absent => Ok(false),
            }
        }
    }

    /// Enters the parts of a record that the attempt has made.
    pub(crate) fn enter_parts(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        split: &SplitRows<K, R, P>,
        record: NonNull<Record<K, R, P>>,
    ) {
        for group in split.groups() {
            // SAFETY: the record is in memory until the attempt ends, which has made it, with parts whose headers are locked, and which holds
            // its lock, so that nothing is installed.
            unsafe {
                let part = Record::<K, R, P>::part_of(record.as_ref().row(), group);
                record.as_ref().part(group).segment().enter_part(tx, split, part);
            }
        }
    }

    /// Makes the parts of a row that the attempt has deleted those of a row that it inserts.
    pub(crate) fn insert_parts_again(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        split: &SplitRows<K, R, P>,
        record: NonNull<Record<K, R, P>>,
        row: &R,
    ) -> Result<(), Abort> {
        for group in split.groups() {
            let part = Record::<K, R, P>::part_of(row, group);
            // SAFETY: as in `row_of`; whoever deletes a record deletes its parts.
            unsafe { record.as_ref().part(group).segment().insert_part_again(tx, split, part) }?;
        }
        Ok(())
    }
}

/// Copies the columns of a group to a row.
pub(super) fn put<R: Value>(part: &Part<WordsOf<R>>, row: &mut R, group: usize) {
    part.put::<R, GroupsOf<R>>(row, group);
}

/// The bytes of a row.
fn bytes_of<K: Key, R: Value, P: Protocol>(row: &R) -> &[u8] {
    assert!(Shared::<K, R, P>::HAS_GROUPS, "called for split rows only");
    // SAFETY: a row whose type has groups of columns is plain data, which has no uninitialised bytes.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(row).cast(), size_of::<R>()) }
}

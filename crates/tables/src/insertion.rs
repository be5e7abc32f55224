//! Insertions.

use crate::errors::{KeyExists, LoadError};
use crate::index::{Insertion, Keyed, Lookup};
use crate::key::{Key, put_name};
use crate::record::{Record, State};
use crate::rows::{Changes, RecordView, end_joint_changes};
use crate::storage::{Shared, tag};
use hotrow_core::region::made_in_region;
use hotrow_core::{
    Abort, Cell, ItemId, ObjectAccess, Pin, Presence, Protocol, Transaction, Value, contained,
};
use std::ptr::NonNull;

impl<K: Key, R: Value, P: Protocol> Shared<K, R, P> {
    /// True if the row was inserted, false if there is one with this key.
    #[inline]
    pub(crate) fn insert(&self, tx: &mut Transaction<'_, P>, key: K, row: R) -> Result<bool, Abort> {
        Ok(self.insert_unless_found(tx, key, row)?.is_none())
    }

    /// True if a row of others has the key, on which the attempt then depends. False says nothing: an insertion finds out.
    ///
    /// Spares an insertion that is likely to meet a row the record that it would make.
    pub(crate) fn has_row(&self, tx: &mut Transaction<'_, P>, key: &K) -> Result<bool, Abort> {
        let tx = self.enter_to_write(tx)?;
        if tx.deferral().is_scout() {
            return Ok(false);
        }
        match self.index.get(key, tx.pin()) {
            Lookup::Found(record) => Ok(matches!(self.read_presence(tx, record)?, RecordView::Present)),
            Lookup::Absent(_) => Ok(false),
        }
    }

    /// Inserts a row, or returns the record that has its key already.
    pub(crate) fn insert_unless_found(
        &self,
        tx: &mut Transaction<'_, P>,
        key: K,
        row: R,
    ) -> Result<Option<NonNull<Record<K, R, P>>>, Abort> {
        let tx = self.enter_to_write(tx)?;
        if tx.deferral().is_scout() {
            // It would be in the way of others. The attempt goes on as if the key were free.
            self.scout_insertion(tx, &key)?;
            return Ok(None);
        }
        let header = || tx.new_locked_header();
        let fresh = Fresh::new(Record::boxed(header, State::Reserved, key, row, self.next_incarnation()));
        loop {
            let record = fresh.0;
            let mut changes = Changes::default();
            // SAFETY: the record is valid, and once it is in the index it is freed through the epoch only
            // (its item's cleanup sees to that), or when the table is dropped.
            let inserted = unsafe {
                let changed = &mut |change| changes.add(change);
                self.index.insert(record, tx.pin(), changed, &|node| tx.structure().may_change(self, node))
            };
            let existing = match inserted {
                Insertion::Inserted => {
                    std::mem::forget(fresh);
                    // SAFETY: from a box; once it is in the index it is retired.
                    unsafe { made_in_region(record.as_ptr().cast(), free_made::<Record<K, R, P>>) };
                    let around = self.begin_joint_changes(tx);
                    // SAFETY: the record is this table's, its header was made locked by this attempt, and the nodes
                    // are this table's.
                    unsafe {
                        tx.enter_inserted(self, Record::address(record), tag::INSERTED);
                        let mut followed = Ok(());
                        changes.visit(&mut |change| {
                            if followed.is_ok() {
                                followed = tx.structure_mut().follow_insertion(self, change);
                            }
                        });
                        followed?;
                    }
                    self.each_part(tx, record, |tx, split, part, group| {
                        // SAFETY: as `each_part` says; the attempt has made the parts, whose headers are locked, and holds the
                        // record's lock, so that nothing is installed.
                        unsafe {
                            let value = Record::<K, R, P>::part_of(record.as_ref().row(), group);
                            part.enter_part(tx, split, value);
                        }
                        Ok(Presence::Present(()))
                    })?;
                    tx.learn_absence(Some(&self.meta))?;
                    self.enter_queue(tx, record)?;
                    // SAFETY: in memory until the attempt ends.
                    let record = unsafe { record.as_ref() };
                    if tx.history().is_recorded() {
                        let key = record.key();
                        tx.history_mut().record_free_key(&self.meta, key, &|bytes| put_name(key, bytes));
                    }
                    if !self.companions.indexes.is_empty() {
                        // SAFETY: the attempt holds the record's lock, so nothing is installed meanwhile.
                        self.companions.indexes.insert(tx, record.key(), unsafe { record.row() })?;
                    }
                    end_joint_changes(tx, around);
                    return Ok(None);
                }
                Insertion::Exists(existing) => existing,
                Insertion::Refused(node) => {
                    // SAFETY: the node is this table's; `tx` is of this table's operation.
                    unsafe { tx.structure_mut().lock_to_change(self, node) }?;
                    continue;
                }
            };
            // Nobody has seen the row of an attempt that was aborted, so nothing depends on it, and it need not be read: a deferred
            // insertion must not read what it has not announced.
            // SAFETY: found in the index under the attempt's pinned epoch.
            if unsafe { existing.as_ref() }.state() == State::Withdrawn {
                self.unlink_dead(tx, existing);
                continue;
            }
            match self.read_presence(tx, existing)? {
                RecordView::Present | RecordView::Changed(_) => return Ok(Some(existing)),
                RecordView::Own(id) => {
                    let inserted = self.insert_again(tx, existing, id, fresh.row())?;
                    return Ok((!inserted).then_some(existing));
                }
                RecordView::Dead => self.unlink_dead(tx, existing),
            }
        }
    }

    /// Inserts under a key whose record has a pending write of this attempt.
    fn insert_again(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        record: NonNull<Record<K, R, P>>,
        id: ItemId,
        row: &R,
    ) -> Result<bool, Abort> {
        let was = tx.tag(id);
        if !matches!(was, tag::DELETE | tag::INSERTED_DELETED) {
            return Ok(false);
        }
        tx.save(id);
        let around = self.begin_joint_changes(tx);
        let pending = R::Cell::pend(row.clone());
        match was {
            tag::DELETE => {
                // SAFETY: payloads of records are of this type, and an update has one.
                unsafe {
                    tx.replace_payload(id, pending);
                    tx.set_tag(id, tag::UPDATE);
                }
            }
            _ => {
                // The first insertion may have been undone, and its entry into the queue with it.
                self.enter_queue(tx, record)?;
                // SAFETY: this attempt made the record, which is in memory until it ends. It holds the lock.
                unsafe {
                    tx.set_tag(id, tag::INSERTED);
                    record.as_ref().install(pending, tx.pin());
                }
            }
        }
        self.each_part(tx, record, |tx, split, part, group| {
            // SAFETY: as `each_part` says; whoever deletes a record deletes its parts.
            unsafe { part.insert_part_again(tx, split, Record::<K, R, P>::part_of(row, group)) }
        })?;
        tx.history_mut().record_change(id);
        // SAFETY: the attempt has an item of the record, so it is in memory until the attempt ends.
        self.companions.indexes.insert(tx, unsafe { record.as_ref() }.key(), row)?;
        end_joint_changes(tx, around);
        Ok(true)
    }

    /// Inserts a row into a table that nobody else can see yet but those who load it.
    pub(crate) fn load_row(&self, key: K, row: R, pin: &Pin) -> Result<(), LoadError> {
        self.companions.constraints.judge(self.meta.name(), &key, &row)?;
        let entry = (!self.companions.indexes.is_empty()).then(|| (key.clone(), row.clone()));
        let incarnation = self.next_incarnation();
        let fresh = Fresh::new(Record::boxed(P::Header::default, State::Present, key, row, incarnation));
        // SAFETY: as in `insert_unless_found`.
        let inserted = unsafe { self.index.insert(fresh.0, pin, &mut |_| (), &|_| true) };
        match inserted {
            Insertion::Inserted => {
                let record = fresh.0;
                std::mem::forget(fresh);
                if self.index.is_cached() {
                    self.write_back(record, pin);
                }
            }
            // SAFETY: found in the index under the pin.
            Insertion::Exists(existing) => return Err(self.exists(unsafe { existing.as_ref() }).into()),
            Insertion::Refused(_) => unreachable!("the insertion may change every node"),
        }
        if let Some((key, row)) = entry {
            let loaded = self.companions.indexes.load(&key, &row, pin);
            loaded.inspect_err(|_| self.unload_row(&key, pin))?;
        }
        Ok(())
    }

    /// The error of an insertion that has met this record.
    #[cold]
    #[inline(never)]
    pub(crate) fn exists(&self, existing: &Record<K, R, P>) -> KeyExists {
        KeyExists { table: self.meta.name().to_owned(), key: format!("{:?}", existing.key()) }
    }

    /// Takes back a row that was [loaded](Self::load_row).
    #[cold]
    pub(crate) fn unload_row(&self, key: &K, pin: &Pin) {
        if let Lookup::Found(record) = self.index.get(key, pin) {
            // SAFETY: found in the index under the pin.
            unsafe { record.as_ref() }.set_state(State::Dead);
            if self.index.remove(record, pin, &mut |_| ()) {
                // The row's own bytes do not count, because others may change it meanwhile.
                // SAFETY: as in `remove_dead`.
                unsafe { pin.retire_owning(record.as_ptr(), 0) };
            }
        }
    }
}

/// Frees a record that was made in a region which was aborted.
///
/// # Safety
///
/// It comes from a box, and nobody can reach it.
unsafe fn free_made<T>(record: *mut ()) {
    // SAFETY: the caller's promise. A panic in the row's `Drop` concerns nobody.
    contained(|| drop(unsafe { Box::from_raw(record.cast::<T>()) }));
}

/// A record that is in no index yet.
struct Fresh<K: Key, R: Value, P: Protocol>(NonNull<Record<K, R, P>>);

impl<K: Key, R: Value, P: Protocol> Fresh<K, R, P> {
    fn new(record: Box<Record<K, R, P>>) -> Self {
        Self(NonNull::from(Box::leak(record)))
    }

    fn row(&self) -> &R {
        // SAFETY: the record is valid, and no other thread has it.
        unsafe { self.0.as_ref().row() }
    }
}

impl<K: Key, R: Value, P: Protocol> Drop for Fresh<K, R, P> {
    fn drop(&mut self) {
        // SAFETY: made with `Box`; this guard is forgotten once an index holds the record.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

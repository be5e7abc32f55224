//! Checkpoints: all rows of a snapshot, beside transactions.

use super::error::CheckpointError;
use super::state::{Durable, RecoveredRows};
use super::table::TableLog;
use crate::database::{Database, WeakDatabase};
use crate::index::{Direction, Keyed};
use crate::key::Key;
use crate::record::Record;
use crate::storage::KeyIndex;
use crate::table::Table;
use hotrow_core::{Error, Protocol, Snapshot, Value, Walk, Worker};
use hotrow_log::{CheckpointWriter, Part as LogPart, entry};
use hotrow_sync::clock::Duration;
use hotrow_sync::{Arc, lock, try_lock};
use std::ops::Bound;

/// The bytes of rows that are written at once.
const CHUNK_BYTES: usize = 1 << 18;

/// The rows that one transaction on the snapshot reads.
const BATCH: usize = 512;

/// Writes the entries of rows.
pub(super) type Sink<'s> = &'s mut dyn FnMut(&mut Vec<u8>) -> Result<(), CheckpointError>;

/// A table whose rows a checkpoint writes.
pub(super) trait PutRows<P: Protocol>: Send + Sync {
    /// Writes the rows that a snapshot sees.
    fn put_rows(
        &self,
        worker: &mut Worker<P>,
        snapshot: &Snapshot<P>,
        sink: Sink<'_>,
    ) -> Result<(), CheckpointError>;
}

pub(super) struct RowsOfTable<K: Key, R: Value, P: Protocol> {
    table: Table<K, R, P>,
    log: Arc<TableLog<K, R, P>>,
}

impl<K: Key, R: Value, P: Protocol> RowsOfTable<K, R, P> {
    pub(super) fn new(table: Table<K, R, P>, log: Arc<TableLog<K, R, P>>) -> Self {
        Self { table, log }
    }

    fn put(&self, entries: &mut Vec<u8>, key: &K, row: &R) -> Result<(), CheckpointError> {
        let table = || self.table.name().to_owned();
        self.log.put_row(entries, key, row).map_err(|reason| CheckpointError::Row { table: table(), reason })
    }

    /// Writes the rows of an ordered table.
    fn put_in_order(
        &self,
        worker: &mut Worker<P>,
        snapshot: &Snapshot<P>,
        sink: Sink<'_>,
    ) -> Result<(), CheckpointError> {
        let (mut next, mut entries) = (Bound::Unbounded, Vec::new());
        loop {
            let range = (next, Bound::Unbounded);
            let batch = worker.transact_on(snapshot, |tx| {
                self.table.collect(tx, range.clone(), Direction::Ascending, BATCH)
            })?;
            for (key, row) in &batch {
                self.put(&mut entries, key, row)?;
            }
            sink(&mut entries)?;
            match batch.last() {
                Some((key, _)) if batch.len() == BATCH => next = Bound::Excluded(key.clone()),
                _ => return Ok(()),
            }
        }
    }

    /// Writes the rows of these keys, and forgets the keys.
    fn put_keys(
        &self,
        worker: &mut Worker<P>,
        snapshot: &Snapshot<P>,
        keys: &mut Vec<K>,
        sink: Sink<'_>,
    ) -> Result<(), CheckpointError> {
        let mut entries = Vec::new();
        for keys in keys.chunks(BATCH) {
            let rows = worker.transact_on(snapshot, |tx| {
                let found = keys.iter().map(|key| Ok((key, self.table.get(tx, key)?)));
                found.collect::<Result<Vec<_>, _>>()
            })?;
            for (key, row) in rows {
                if let Some(row) = row {
                    self.put(&mut entries, key, &row)?;
                }
            }
            sink(&mut entries)?;
        }
        keys.clear();
        Ok(())
    }
}

impl<K: Key, R: Value, P: Protocol> PutRows<P> for RowsOfTable<K, R, P> {
    fn put_rows(
        &self,
        worker: &mut Worker<P>,
        snapshot: &Snapshot<P>,
        sink: Sink<'_>,
    ) -> Result<(), CheckpointError> {
        let shared = &self.table.shared;
        let KeyIndex::Hash(index) = shared.index.keys() else {
            return self.put_in_order(worker, snapshot, sink);
        };
        let (walk, mut keys, mut ended) = (Walk::new(&shared.meta), Vec::new(), Ok(()));
        // SAFETY: found in the index or the graveyard under a pinned epoch.
        let key_of = |record: std::ptr::NonNull<Record<K, R, P>>| unsafe { record.as_ref() }.key().clone();
        index.for_each_bucket(walk.pin().guard(), &mut |records| {
            // SAFETY: the index holds keys of records of these types.
            keys.extend(records.iter().map(|key| key_of(unsafe { Record::of_key(*key) })));
            if keys.len() >= BATCH && ended.is_ok() {
                ended = walk.may_go_on().map_err(|limit| Error::MemoryLimit(limit).into());
                if ended.is_ok() {
                    ended = self.put_keys(worker, snapshot, &mut keys, sink);
                }
            }
        });
        ended?;
        // After the index: a record that it did not have any more is here. A key that was in both is written twice, with one row.
        let buried = shared.graveyard.find((Bound::Unbounded, Bound::Unbounded));
        keys.extend(buried.into_iter().map(|record| key_of(record.cast())));
        self.put_keys(worker, snapshot, &mut keys, sink)
    }
}

impl<P: Protocol> Database<P> {
    /// Writes a checkpoint: all rows of durable tables, as they are in one [snapshot](hotrow_core::Engine::snapshot_strict), beside
    /// transactions. Recovery begins with the newest one, and the log before it is deleted. Returns its size in bytes.
    ///
    /// # Errors
    ///
    /// [`CheckpointError`]; the last checkpoint and the log are still there then.
    pub fn checkpoint(&self) -> Result<u64, CheckpointError> {
        let durable = self.durable().ok_or(CheckpointError::NoLog)?;
        let _one_at_a_time = lock(&durable.checkpoint);
        self.checkpoint_now(durable)
    }

    fn checkpoint_now(&self, durable: &Durable<P>) -> Result<u64, CheckpointError> {
        let snapshot = self.snapshot_strict().map_err(Error::Misuse)?;
        let to_write = durable.to_write();
        let mut writer = durable.log.begin_checkpoint(snapshot.number())?;
        let mut sink = |entries: &mut Vec<u8>| put_all(&mut writer, entries);
        for (structure, rows) in &to_write.unread {
            put_unread(*structure, rows, &mut sink)?;
        }
        self.with_worker(|worker| {
            let written =
                to_write.tables.iter().try_for_each(|table| table.put_rows(worker, &snapshot, &mut sink));
            Ok::<_, Error>(written)
        })??;
        Ok(writer.finish()?)
    }
}

/// Writes the rows of a table that were recovered and that nobody has read.
fn put_unread(structure: u32, rows: &RecoveredRows, sink: Sink<'_>) -> Result<(), CheckpointError> {
    if let Some(fault) = rows.fault() {
        return Err(CheckpointError::Row { table: rows.table.clone(), reason: fault.clone() });
    }
    let mut entries = Vec::new();
    for list in 0..rows.lists() {
        rows.for_each_of(list, |key, row| {
            put_raw(&mut entries, structure, key, row);
            if entries.len() < CHUNK_BYTES { Ok(()) } else { sink(&mut entries) }
        })?;
    }
    sink(&mut entries)
}

/// Appends a row as it is.
fn put_raw(entries: &mut Vec<u8>, structure: u32, key: &[u8], row: &[u8]) {
    let put = |bytes: &[u8], to: &mut Vec<u8>| {
        to.extend_from_slice(bytes);
        Ok::<(), std::convert::Infallible>(())
    };
    let written = entry::write(entries, structure, LogPart::Whole, |to| put(key, to), |to| put(row, to));
    written.unwrap_or_else(|never| match never {});
}

/// Writes entries, and forgets them.
fn put_all(writer: &mut CheckpointWriter, entries: &mut Vec<u8>) -> Result<(), CheckpointError> {
    if !entries.is_empty() {
        writer.put(entries)?;
        entries.clear();
    }
    Ok(())
}

/// The time from one look at the log's length to the next.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Makes a checkpoint whenever so many bytes were logged since the last one, until the database is gone. One that fails is tried again
/// after as many bytes.
pub(super) fn make_when_long<P: Protocol>(database: &WeakDatabase<P>, after_bytes: u64) {
    let mut last = 0;
    loop {
        hotrow_sync::thread::sleep(LOOK_EVERY);
        let Some(database) = database.upgrade() else { return };
        let Some(durable) = database.durable() else { return };
        let written = durable.log.report().bytes_written;
        if written - last < after_bytes || durable.log.failure().is_some() {
            continue;
        }
        last = written;
        // Somebody else is making one.
        if let Some(_one_at_a_time) = try_lock(&durable.checkpoint) {
            let _ = database.checkpoint_now(durable);
        }
    }
}

//! Checkpoints: all rows of a snapshot, beside transactions.

use super::error::CheckpointError;
use super::state::{Durable, RecoveredRows};
use super::table::TableLog;
use crate::database::{Database, WeakDatabase};
use crate::key::Key;
use crate::table::Table;
use hotrow_core::{Error, Protocol, Snapshot, Value, Worker};
use hotrow_log::{CheckpointWriter, entry};
use hotrow_sync::clock::Duration;
use hotrow_sync::{Arc, Mutex, lock};

/// The bytes of rows or values that are written at once.
pub(super) const CHUNK_BYTES: usize = 1 << 18;

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
    pub(super) table: Table<K, R, P>,
    pub(super) log: Arc<TableLog<K, R>>,
}

impl<K: Key, R: Value, P: Protocol> PutRows<P> for RowsOfTable<K, R, P> {
    fn put_rows(
        &self,
        worker: &mut Worker<P>,
        snapshot: &Snapshot<P>,
        sink: Sink<'_>,
    ) -> Result<(), CheckpointError> {
        let mut entries = Vec::new();
        self.table.for_each_on(worker, snapshot, &mut |batch| {
            for (key, row) in batch {
                let put = self.log.put_row(&mut entries, key, row);
                let table = || self.table.name().to_owned();
                put.map_err(|reason| CheckpointError::Row { table: table(), reason })?;
            }
            sink(&mut entries)
        })
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
    rows.for_each(|key, row| {
        put_raw(&mut entries, structure, key, row);
        if entries.len() < CHUNK_BYTES { Ok(()) } else { sink(&mut entries) }
    })?;
    sink(&mut entries)
}

/// Appends a row as it is.
fn put_raw(entries: &mut Vec<u8>, structure: u32, key: &[u8], row: &[u8]) {
    let put = |bytes: &[u8], to: &mut Vec<u8>| {
        to.extend_from_slice(bytes);
        Ok::<(), std::convert::Infallible>(())
    };
    let written = entry::put(entries, structure, |to| put(key, to), |to| put(row, to));
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
pub(super) fn make_when_long<P: Protocol>(
    database: &WeakDatabase<P>,
    checkpoint: &Mutex<bool>,
    after_bytes: u64,
) {
    let mut last = 0;
    loop {
        hotrow_sync::thread::sleep(LOOK_EVERY);
        // Held for longer than the handle, so that `close` leaves nobody behind who has the database open.
        let closed = lock(checkpoint);
        if *closed {
            return;
        }
        let Some(database) = database.upgrade() else { return };
        let Some(durable) = database.durable() else { return };
        let written = durable.log.report().bytes_written;
        if written - last < after_bytes || durable.log.failure().is_some() {
            continue;
        }
        last = written;
        let _ = database.checkpoint_now(durable);
    }
}

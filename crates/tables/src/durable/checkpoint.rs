//! Checkpoints: all rows of a snapshot, beside transactions.

use super::error::CheckpointError;
use super::rows::{CHUNK_BYTES, Sink};
use super::state::{Durable, RecoveredRows};
use crate::database::{Database, WeakDatabase};
use hotrow_core::{Error, Protocol, Snapshot, SnapshotKind, contained};
use hotrow_log::{CheckpointWriter, Report, entry};
use hotrow_sync::clock::{self, Duration};
use hotrow_sync::{Arc, Mutex, lock};
use std::panic::Location;

impl<P: Protocol> Database<P> {
    /// Writes a checkpoint: all rows of durable tables, as they are in one [snapshot](hotrow_core::Engine::snapshot_strict), beside
    /// transactions. Recovery begins with the newest one, and the log before it is deleted. Returns its size in bytes. Under a protocol
    /// that admits one worker it takes none.
    ///
    /// # Errors
    ///
    /// [`CheckpointError`]; the last checkpoint and the log are still there then.
    #[track_caller]
    pub fn checkpoint(&self) -> Result<u64, CheckpointError> {
        let durable = self.durable().ok_or(CheckpointError::NoLog)?;
        let _one_at_a_time = lock(&durable.checkpoint);
        self.checkpoint_now(durable)
    }

    /// The error of the last checkpoint that the database tried to make [by itself](crate::DatabaseBuilder::checkpoint_after); `None` if a
    /// checkpoint was made since. It tries again, after a while that doubles with each failure, up to ten seconds.
    /// [`LogReport`](super::LogReport) counts checkpoints and failures.
    pub fn last_checkpoint_error(&self) -> Option<Arc<CheckpointError>> {
        lock(&self.durable()?.checkpoint_error).clone()
    }

    #[track_caller]
    fn checkpoint_now(&self, durable: &Durable<P>) -> Result<u64, CheckpointError> {
        let place = Location::caller();
        // Before the snapshot: otherwise the segment that commits write to meanwhile would stay, until the next checkpoint.
        durable.log.begin_segment();
        let snapshot = Snapshot::open(self, SnapshotKind::Committed, place).map_err(Error::Misuse)?;
        let to_write = durable.to_write();
        let mut reader = self.snapshot_reader().map_err(Error::Misuse)?;
        let mut writer = durable.log.begin_checkpoint(snapshot.number())?;
        let mut sink = |entries: &mut Vec<u8>| put_all(&mut writer, entries);
        for (structure, rows) in &to_write.unread {
            put_unread(*structure, rows, &mut sink)?;
        }
        to_write.tables.iter().try_for_each(|table| table.put_rows(&mut reader, &snapshot, &mut sink))?;
        let bytes = writer.finish()?;
        *lock(&durable.checkpoint_error) = None;
        Ok(bytes)
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
pub(super) fn put_raw(entries: &mut Vec<u8>, structure: u32, key: &[u8], row: &[u8]) {
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

/// The longest pause after a checkpoint that failed.
const PAUSE_MAX: Duration = Duration::from_secs(10);

/// Makes a checkpoint whenever so many bytes were logged since the last one, by this process or before, until the database is gone.
pub(super) fn make_when_long<P: Protocol>(
    database: &WeakDatabase<P>,
    checkpoint: &Mutex<bool>,
    after_bytes: u64,
) {
    let mut pause = LOOK_EVERY;
    let mut not_before = clock::now();
    loop {
        hotrow_sync::thread::sleep(LOOK_EVERY);
        // Held for longer than the handle, so that `close` leaves nobody behind who has the database open.
        let closed = lock(checkpoint);
        if *closed {
            return;
        }
        let Some(database) = database.upgrade() else { return };
        let Some(durable) = database.durable() else { return };
        let may_begin = clock::now() >= not_before && durable.log.failure().is_none();
        if !may_begin || !is_due(&durable.log.report(), after_bytes) {
            continue;
        }
        // Users' code writes rows as bytes.
        match contained(|| database.checkpoint_now(durable)).unwrap_or(Err(CheckpointError::Panicked)) {
            Ok(_) => pause = LOOK_EVERY,
            Err(error) => {
                *lock(&durable.checkpoint_error) = Some(Arc::new(error));
                not_before = clock::now() + pause;
                pause = (2 * pause).min(PAUSE_MAX);
            }
        }
    }
}

/// True if so many bytes were logged since the last checkpoint, or half of those that the log may have.
fn is_due(report: &Report, after_bytes: u64) -> bool {
    report.bytes_since_checkpoint >= after_bytes.min(report.space_bytes_max / 2)
}

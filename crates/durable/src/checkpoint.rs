//! Checkpoints: all rows of a snapshot, beside transactions.

use crate::error::CheckpointError;
use crate::rows::{CHUNK_BYTES, Sink};
use crate::state::{Durable, RecoveredRows};
use hotrow_core::{Error, Protocol, Snapshot, SnapshotKind, contained};
use hotrow_log::{CheckpointWriter, Report, entry};
use hotrow_sync::clock::{self, Duration};
use hotrow_sync::{Arc, Mutex, Weak, lock};
use std::panic::Location;

/// Writes a checkpoint; only one is written at a time. `place` is that of the call.
pub(crate) fn checkpoint_now<P: Protocol>(
    durable: &Durable<P>,
    place: &'static Location<'static>,
) -> Result<u64, CheckpointError> {
    // Before the snapshot: otherwise the segment that commits write to meanwhile would stay, until the next checkpoint.
    durable.log.begin_segment();
    let snapshot = Snapshot::open(&durable.engine, SnapshotKind::Committed, place).map_err(Error::Misuse)?;
    let to_write = durable.to_write();
    let mut reader = durable.engine.snapshot_reader().map_err(Error::Misuse)?;
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
pub(crate) fn put_raw(entries: &mut Vec<u8>, structure: u32, key: &[u8], row: &[u8]) {
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
pub(crate) fn make_when_long<P: Protocol>(
    durable: &Weak<Durable<P>>,
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
        let Some(durable) = durable.upgrade() else { return };
        let may_begin = clock::now() >= not_before && durable.log.failure().is_none();
        if !may_begin || !is_due(&durable.log.report(), after_bytes) {
            continue;
        }
        // Users' code writes rows as bytes.
        match contained(|| checkpoint_now(&durable, Location::caller()))
            .unwrap_or(Err(CheckpointError::Panicked))
        {
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

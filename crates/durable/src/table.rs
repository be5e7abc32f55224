//! Durable tables.

use crate::error::CheckpointError;
use crate::rows::{CHUNK_BYTES, PutRows, Sink};
use crate::shape::{Shape, TABLE};
use crate::state::{Durable, Earlier, Found, Registered, Way};
use hotrow_core::{Error, Misuse, Protocol, Snapshot, SnapshotReader};
use hotrow_log::{RECORD_BYTES_MAX, entry};
use hotrow_stored::Schema;
use hotrow_sync::{Arc, MutexGuard, lock};
use hotrow_tables::inside::{
    DatabaseLog, ENTRY_HEAD, Entries, EntryKind, FIELD_HEAD, LoggedTable, PutBytes, RowsAsBytes,
};

impl<P: Protocol> DatabaseLog<P> for Durable<P> {
    fn find(
        self: Arc<Self>,
        table: &str,
        schemas: (Schema, Schema),
        earlier: Vec<(Schema, Schema)>,
    ) -> Result<Box<dyn LoggedTable<P>>, Misuse> {
        let earlier: Vec<_> = earlier.into_iter().map(|schemas| Shape::of(TABLE, schemas)).collect();
        let registered = self.register(table, Shape::of(TABLE, schemas), &earlier)?;
        Ok(Box::new(TableInLog { durable: self, name: table.to_owned(), registered }))
    }

    fn forget(&self, name: &str) -> Result<bool, Misuse> {
        self.forget_name(name)
    }

    fn pause_checkpoints(&self) -> MutexGuard<'_, bool> {
        lock(&self.checkpoint)
    }
}

/// A table that is being made.
struct TableInLog<P: Protocol> {
    durable: Arc<Durable<P>>,
    name: String,
    registered: Registered,
}

impl<P: Protocol> LoggedTable<P> for TableInLog<P> {
    fn is_new(&self) -> bool {
        self.registered.is_new()
    }

    fn entries(&self) -> Box<dyn Entries> {
        Box::new(EntriesOf(self.registered.structure))
    }

    fn for_each_recovered(
        &self,
        take: &(dyn Fn(Option<usize>, &[u8], &[u8]) -> Result<(), String> + Sync),
    ) -> Result<(), String> {
        let Registered { found, recovered: Some(rows), .. } = &self.registered else { return Ok(()) };
        rows.for_each_on_threads(&|key, row| match found {
            Found::New | Found::Same(_) => take(None, key, row),
            Found::Earlier(Earlier { way: Way::Conversion(conversion), .. }) => {
                conversion.convert(key, row, |key, row| take(None, key, row))
            }
            Found::Earlier(Earlier { way: Way::Migration(number, conversion), .. }) => {
                conversion.convert(key, row, |key, row| take(Some(*number), key, row))
            }
        })
    }

    fn end(self: Box<Self>, rows: Box<dyn RowsAsBytes<P>>, is_loaded: bool) -> Result<(), Error> {
        let Self { durable, name, registered } = *self;
        let is_staged = is_loaded || registered.is_rewritten();
        let rows = Arc::new(RowsOfTable { name, structure: registered.structure, rows });
        durable.publish(&rows.name, &registered, rows.clone(), is_staged, || {
            if is_staged { log_rows(&durable, &*rows) } else { Ok(()) }
        })
    }
}

/// Checks that a record is not too long.
pub(crate) fn fits(entries: &[u8]) -> Result<(), String> {
    if entries.len() <= RECORD_BYTES_MAX {
        return Ok(());
    }
    Err(format!("a transaction writes more than the {RECORD_BYTES_MAX} bytes that the log takes at once"))
}

/// Completes entries of the table that has this number in the log.
struct EntriesOf(u32);

const _: () = assert!(ENTRY_HEAD == entry::HEAD && FIELD_HEAD == entry::PART_HEAD);

impl Entries for EntriesOf {
    fn end_field(&self, entries: &mut Vec<u8>, start: usize, field: u32) {
        entry::seal_part(entries, start, field);
    }

    fn end(&self, entries: &mut Vec<u8>, start: usize, value: usize, kind: EntryKind) -> Result<(), String> {
        let kind = match kind {
            EntryKind::Row => entry::Kind::Whole,
            EntryKind::Fields => entry::Kind::Parts,
            EntryKind::Deletion => entry::Kind::Deletion,
        };
        entry::seal(entries, start, value, self.0, kind);
        fits(entries)
    }
}

/// The rows of a table, as a checkpoint writes them.
struct RowsOfTable<P: Protocol> {
    name: String,
    structure: u32,
    rows: Box<dyn RowsAsBytes<P>>,
}

impl<P: Protocol> RowsOfTable<P> {
    /// Appends a row, whatever its length. Hands over those before it if they are long enough.
    fn put_row(
        &self,
        entries: &mut Vec<u8>,
        key: PutBytes<'_>,
        row: PutBytes<'_>,
        sink: Sink<'_>,
    ) -> Result<(), CheckpointError> {
        let before = entries.len();
        let error = |reason| CheckpointError::Row { table: self.name.clone(), reason };
        entry::put(entries, self.structure, key, row).map_err(error)?;
        if before > 0 && entries.len() > CHUNK_BYTES {
            let row = entries.split_off(before);
            sink(entries)?;
            *entries = row;
        }
        Ok(())
    }
}

impl<P: Protocol> PutRows<P> for RowsOfTable<P> {
    fn put_rows(
        &self,
        reader: &mut SnapshotReader<P>,
        snapshot: &Snapshot<P>,
        sink: Sink<'_>,
    ) -> Result<(), CheckpointError> {
        let (mut entries, mut ended) = (Vec::new(), Ok(()));
        self.rows.for_each(reader, snapshot, &mut |key, row| {
            ended = self.put_row(&mut entries, key, row, sink);
            ended.is_ok()
        })?;
        ended?;
        sink(&mut entries)
    }
}

/// Logs all rows of a table that nobody else sees, and waits until they are on the device.
#[inline(never)]
pub(crate) fn log_rows<P: Protocol>(durable: &Durable<P>, rows: &dyn PutRows<P>) -> Result<(), Error> {
    let engine = &durable.engine;
    let mut commits = engine.outside_commits().expect("the engine has a log");
    let snapshot = engine.snapshot().map_err(Error::Misuse)?;
    let mut log = |entries: &mut Vec<u8>| {
        fits(entries).map_err(|reason| Error::Misuse(Misuse::Unsupported(reason)))?;
        commits.commit(entries).map_err(Error::NotDurable)?;
        entries.clear();
        Ok(())
    };
    let mut reader = engine.snapshot_reader().map_err(Error::Misuse)?;
    rows.put_rows(&mut reader, &snapshot, &mut log).map_err(|error| match error {
        CheckpointError::Rows(error) => error,
        other => Error::Misuse(Misuse::Unsupported(other.to_string())),
    })?;
    durable.flush().map_err(Error::NotDurable)
}

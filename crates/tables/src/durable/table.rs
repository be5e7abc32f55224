//! Durable tables.

use super::codec::{Codec, changed_fields, fields_in};
use super::error::CheckpointError;
use super::rows::{CHUNK_BYTES, PutRows, Sink};
use super::shape::{Shape, TABLE};
use super::state::{Durable, Earlier, Found, Registered, Way};
use crate::builder::TableBuilder;
use crate::companions::RowLog;
use crate::database::Database;
use crate::durability::{FoundTable, MakeDurable, Migration};
use crate::errors::LoadError;
use crate::key::Key;
use crate::misuse::TableMisuse;
use crate::record::GroupsOf;
use crate::table::Table;
use hotrow_core::column_groups::ColumnGroups;
use hotrow_core::{Error, Misuse, Protocol, Snapshot, SnapshotReader, Value};
use hotrow_log::{RECORD_BYTES_MAX, entry};
use hotrow_sync::{Arc, OnceLock};
use std::any::type_name;

impl<K: Key, R: Value, P: Protocol> TableBuilder<K, R, P> {
    /// Makes the table durable when it is made, if its database is.
    ///
    /// # Errors
    ///
    /// [`TableMisuse::NotStored`](crate::TableMisuse::NotStored) if its keys or rows cannot be stored.
    pub(crate) fn plan_of(
        database: &Database<P>,
        table: &str,
        migrations: Vec<Migration<K, R>>,
    ) -> Result<Option<Box<dyn MakeDurable<K, R, P>>>, Misuse> {
        if database.durable().is_none() {
            return Ok(None);
        }
        let missing = |of: &'static str| TableMisuse::NotStored { name: table.to_owned(), of };
        let key = K::stored().ok_or_else(|| missing(type_name::<K>()))?;
        let row = R::stored().ok_or_else(|| missing(type_name::<R>()))?;
        Ok(Some(Box::new(Plan::<K, R, P> { codec: Codec::new(key, row), migrations, begun: None })))
    }
}

/// A table that is being made.
struct Plan<K: Key, R: Value, P: Protocol> {
    codec: Codec<K, R>,
    migrations: Vec<Migration<K, R>>,
    begun: Option<Begun<K, R, P>>,
}

struct Begun<K: Key, R: Value, P: Protocol> {
    log: Arc<TableLog<K, R>>,
    registered: Registered,
    database: Database<P>,
    durable: Arc<Durable<P>>,
}

/// The way of a table's rows to the log.
struct TableLog<K: Key, R: Value> {
    structure: u32,
    codec: Codec<K, R>,
    /// A row of the table, as one that has columns for a group. There is one as soon as there has been a row.
    any_row: OnceLock<R>,
    /// The fields of each column group.
    fields_of_groups: Vec<u64>,
}

impl<K: Key, R: Value> TableLog<K, R> {
    /// Appends a row, whatever its length.
    fn put_row(&self, entries: &mut Vec<u8>, key: &K, row: &R) -> Result<(), String> {
        let Self { structure, codec, .. } = self;
        self.any_row.get_or_init(|| row.clone());
        let key = |bytes: &mut Vec<u8>| codec.put_key(key, bytes);
        entry::put(entries, *structure, key, |bytes| codec.put_row(row, bytes))
    }

    /// Reads a row that was recovered. `Err` with what is wrong with it.
    fn read(&self, key: &[u8], row: &[u8]) -> Result<(K, R), String> {
        let key = self.codec.get_key(key).map_err(|reason| format!("a key cannot be read: {reason}"))?;
        let row =
            self.codec.get_row(row).map_err(|reason| format!("row {key:?} cannot be read: {reason}"))?;
        Ok((key, row))
    }

    /// Appends some fields of a row; the row, if rows are written whole.
    fn put_fields(&self, entries: &mut Vec<u8>, key: &K, row: &R, fields: u64) -> Result<(), String> {
        if !self.codec.by_fields {
            return self.put_row(entries, key, row);
        }
        if fields == 0 {
            return Ok(());
        }
        let put_key = |bytes: &mut Vec<u8>| self.codec.put_key(key, bytes);
        entry::put_parts(entries, self.structure, put_key, |parts| self.codec.put_fields(row, fields, parts))
    }
}

/// The fields that have columns in a group, one bit each.
fn fields_of_group<R: Value>(group: usize) -> u64 {
    let columns = GroupsOf::<R>::COLUMNS.iter().filter(|column| column.group == group);
    columns.fold(0, |fields, column| fields | fields_in::<R>(column.row, column.bytes))
}

/// Checks that a record is not too long.
pub(super) fn fits(entries: &[u8]) -> Result<(), String> {
    if entries.len() <= RECORD_BYTES_MAX {
        return Ok(());
    }
    Err(format!("a transaction writes more than the {RECORD_BYTES_MAX} bytes that the log takes at once"))
}

impl<K: Key, R: Value> RowLog<K, R> for TableLog<K, R> {
    fn put(&self, entries: &mut Vec<u8>, key: &K, row: &R) -> Result<(), String> {
        self.put_row(entries, key, row)?;
        fits(entries)
    }

    fn put_changes(&self, entries: &mut Vec<u8>, key: &K, before: &R, after: &R) -> Result<(), String> {
        self.put_fields(entries, key, after, changed_fields(before, after))?;
        fits(entries)
    }

    fn put_group(
        &self,
        entries: &mut Vec<u8>,
        key: &K,
        group: usize,
        put: &dyn Fn(&mut R),
    ) -> Result<(), String> {
        let mut row = self.any_row.get().ok_or("a part of a row is logged before any row")?.clone();
        put(&mut row);
        self.put_fields(entries, key, &row, self.fields_of_groups[group])?;
        fits(entries)
    }

    fn delete(&self, entries: &mut Vec<u8>, key: &K) -> Result<(), String> {
        entry::delete(entries, self.structure, |bytes| self.codec.put_key(key, bytes))?;
        fits(entries)
    }
}

/// The rows of a table, as a checkpoint writes them.
struct RowsOfTable<K: Key, R: Value, P: Protocol> {
    table: Table<K, R, P>,
    log: Arc<TableLog<K, R>>,
}

impl<K: Key, R: Value, P: Protocol> PutRows<P> for RowsOfTable<K, R, P> {
    fn put_rows(
        &self,
        reader: &mut SnapshotReader<P>,
        snapshot: &Snapshot<P>,
        sink: Sink<'_>,
    ) -> Result<(), CheckpointError> {
        let mut entries = Vec::new();
        self.table.for_each_on(reader, snapshot, &mut |batch| {
            for (key, row) in batch {
                let before = entries.len();
                let put = self.log.put_row(&mut entries, key, row);
                let table = || self.table.name().to_owned();
                put.map_err(|reason| CheckpointError::Row { table: table(), reason })?;
                if before > 0 && entries.len() > CHUNK_BYTES {
                    let row = entries.split_off(before);
                    sink(&mut entries)?;
                    entries = row;
                }
            }
            sink(&mut entries)
        })
    }
}

impl<K: Key, R: Value, P: Protocol> MakeDurable<K, R, P> for Plan<K, R, P> {
    fn logs_fields(&self) -> bool {
        self.codec.by_fields
    }

    fn begin(&mut self, database: &Database<P>, table: &str) -> Result<Option<FoundTable<K, R>>, Misuse> {
        let Some(durable) = database.durable().cloned() else { return Ok(None) };
        let shape_of = |(key, row)| Shape { kind: TABLE.to_owned(), key, row };
        let earlier: Vec<_> = self.migrations.iter().map(|migration| shape_of(migration.schemas())).collect();
        let registered = durable.register(table, self.codec.shape(TABLE), &earlier)?;
        let fields_of_groups = (0..GroupsOf::<R>::NAMES.len()).map(fields_of_group::<R>).collect();
        let (structure, is_new) = (registered.structure, registered.is_new());
        let log =
            Arc::new(TableLog { structure, codec: self.codec, any_row: OnceLock::new(), fields_of_groups });
        self.begun = Some(Begun { log: log.clone(), registered, database: database.clone(), durable });
        Ok(Some(FoundTable { log, is_new }))
    }

    fn recover(
        &self,
        table: &str,
        insert: &(dyn Fn(K, R) -> Result<(), LoadError> + Sync),
    ) -> Result<(), Misuse> {
        let Some(Begun { log, registered, .. }) = &self.begun else { return Ok(()) };
        let Some(rows) = &registered.recovered else { return Ok(()) };
        let malformed = |reason| TableMisuse::Malformed { table: table.to_owned(), reason };
        let read = |key: &[u8], row: &[u8]| match &registered.found {
            Found::New | Found::Same(_) => log.read(key, row),
            Found::Earlier(Earlier { way: Way::Conversion(conversion), .. }) => {
                conversion.convert(key, row, |key, row| log.read(key, row))
            }
            Found::Earlier(Earlier { way: Way::Migration(number, conversion), .. }) => {
                conversion.convert(key, row, |key, row| self.migrations[*number].read(key, row))
            }
        };
        let insert = |key: &[u8], row: &[u8]| {
            let (key, row) = read(key, row)?;
            log.any_row.get_or_init(|| row.clone());
            insert(key, row).map_err(|refused| refused.to_string())
        };
        Ok(rows.for_each_on_threads(&insert).map_err(malformed)?)
    }

    fn end(self: Box<Self>, table: &Table<K, R, P>, is_loaded: bool) -> Result<(), Error> {
        let Some(Begun { log, registered, database, durable }) = self.begun else { return Ok(()) };
        let rows = Arc::new(RowsOfTable { table: table.clone(), log });
        let is_staged = is_loaded || registered.is_rewritten();
        durable.publish(table.name(), &registered, rows.clone(), is_staged, || {
            if is_staged { log_rows(&database, &*rows) } else { Ok(()) }
        })
    }
}

/// Logs all rows of a table that nobody else sees, and waits until they are on the device.
#[inline(never)]
pub(super) fn log_rows<P: Protocol>(database: &Database<P>, rows: &dyn PutRows<P>) -> Result<(), Error> {
    let mut commits = database.outside_commits().expect("the engine has a log");
    let snapshot = database.snapshot().map_err(Error::Misuse)?;
    let mut log = |entries: &mut Vec<u8>| {
        fits(entries).map_err(|reason| Error::Misuse(Misuse::Unsupported(reason)))?;
        commits.commit(entries).map_err(Error::NotDurable)?;
        entries.clear();
        Ok(())
    };
    let mut reader = database.snapshot_reader().map_err(Error::Misuse)?;
    rows.put_rows(&mut reader, &snapshot, &mut log).map_err(|error| match error {
        CheckpointError::Rows(error) => error,
        other => Error::Misuse(Misuse::Unsupported(other.to_string())),
    })?;
    database.flush().map_err(Error::NotDurable)
}

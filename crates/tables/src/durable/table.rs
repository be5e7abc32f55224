//! Durable tables.

use super::checkpoint::RowsOfTable;
use super::codec::Codec;
use super::fields::{changed_fields, fields_in};
use super::state::{Durable, RecoveredRows};
use crate::database::Database;
use crate::key::Key;
use crate::logging::{MakeDurable, RowLog};
use crate::record::GroupsOf;
use crate::table::{Table, TableBuilder};
use hotrow_core::column_groups::ColumnGroups;
use hotrow_core::{Misuse, Pin, Protocol, Value};
use hotrow_log::{RECORD_BYTES_MAX, entry};
use hotrow_sync::{Arc, OnceLock};
use serde::Serialize;
use serde::de::DeserializeOwned;

impl<K: Key + Serialize + DeserializeOwned, R: Value + Serialize + DeserializeOwned, P: Protocol>
    TableBuilder<K, R, P>
{
    /// Declares that the table's rows survive the process, if its database was [opened at a
    /// directory](crate::DatabaseBuilder::open_at). [`create`](Self::create) finds the rows that were recovered under its name, and
    /// builds its indexes anew. Otherwise it has no effect. See [`durable`](crate::durable).
    #[must_use]
    pub fn durable(mut self) -> Self {
        self.durable = Some(Box::new(Plan::<K, R, P> { codec: Codec::new(), begun: None }));
        self
    }
}

/// A table that is being made.
struct Plan<K: Key, R: Value, P: Protocol> {
    codec: Codec<K, R>,
    begun: Option<Begun<K, R, P>>,
}

struct Begun<K: Key, R: Value, P: Protocol> {
    log: Arc<TableLog<K, R>>,
    recovered: Option<Arc<RecoveredRows>>,
    durable: Arc<Durable<P>>,
}

/// The way of a table's rows to the log.
pub(super) struct TableLog<K: Key, R: Value> {
    pub(super) structure: u32,
    codec: Codec<K, R>,
    /// A row of the table, as one that has columns for a group. There is one as soon as there has been a row.
    any_row: OnceLock<R>,
    /// The fields of each column group.
    fields_of_groups: Vec<u64>,
}

impl<K: Key, R: Value> TableLog<K, R> {
    /// Appends a row, whatever its length.
    pub(super) fn put_row(&self, entries: &mut Vec<u8>, key: &K, row: &R) -> Result<(), String> {
        let Self { structure, codec, .. } = self;
        let key = |bytes: &mut Vec<u8>| (codec.put_key)(key, bytes);
        entry::put(entries, *structure, key, |bytes| (codec.put_row)(row, bytes))
    }

    /// Reads a row that was recovered. `Err` with what is wrong with it.
    fn read(&self, key: &[u8], row: &[u8]) -> Result<(K, R), String> {
        let key = (self.codec.get_key)(key).map_err(|reason| format!("a key cannot be read: {reason}"))?;
        let row =
            (self.codec.get_row)(row).map_err(|reason| format!("row {key:?} cannot be read: {reason}"))?;
        self.any_row.get_or_init(|| row.clone());
        Ok((key, row))
    }

    /// Appends some fields of a row; the row, if rows are written whole.
    fn put_fields(&self, entries: &mut Vec<u8>, key: &K, row: &R, fields: u64) -> Result<(), String> {
        let Some(put_fields) = self.codec.put_fields else { return self.put_row(entries, key, row) };
        if fields == 0 {
            return Ok(());
        }
        let put_key = |bytes: &mut Vec<u8>| (self.codec.put_key)(key, bytes);
        entry::put_parts(entries, self.structure, put_key, |parts| put_fields(row, fields, parts))
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
        self.any_row.get_or_init(|| row.clone());
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
        entry::delete(entries, self.structure, |bytes| (self.codec.put_key)(key, bytes))?;
        fits(entries)
    }
}

impl<K: Key, R: Value, P: Protocol> MakeDurable<K, R, P> for Plan<K, R, P> {
    fn logs_fields(&self) -> bool {
        self.codec.put_fields.is_some()
    }

    fn begin(
        &mut self,
        database: &Database<P>,
        table: &str,
    ) -> Result<Option<Arc<dyn RowLog<K, R>>>, Misuse> {
        let Some(durable) = database.durable().cloned() else { return Ok(None) };
        if database.names().iter().any(|other| other == table) {
            return Err(Misuse::NameTaken { name: table.to_owned() });
        }
        let (structure, recovered) = durable.register(table, (self.codec.shape)())?;
        let fields_of_groups = (0..GroupsOf::<R>::NAMES.len()).map(fields_of_group::<R>).collect();
        let log =
            Arc::new(TableLog { structure, codec: self.codec, any_row: OnceLock::new(), fields_of_groups });
        self.begun = Some(Begun { log: log.clone(), recovered, durable });
        Ok(Some(log))
    }

    fn load(&self, table: &Table<K, R, P>) -> Result<(), Misuse> {
        let Some(Begun { log, recovered: Some(rows), .. }) = &self.begun else { return Ok(()) };
        let malformed = |reason| Misuse::Malformed { table: table.name().to_owned(), reason };
        let insert = |key: &[u8], row: &[u8]| {
            let (key, row) = log.read(key, row)?;
            table.shared.bulk_insert(key, row, &Pin::new()).map_err(|refused| refused.to_string())
        };
        rows.for_each_on_threads(&insert).map_err(malformed)
    }

    fn end(self: Box<Self>, table: &Table<K, R, P>) {
        let Some(Begun { log, durable, .. }) = self.begun else { return };
        let structure = log.structure;
        durable.claim(structure, Arc::new(RowsOfTable { table: table.clone(), log }));
    }
}

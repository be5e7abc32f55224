//! Durable tables.

use super::checkpoint::RowsOfTable;
use super::codec::Codec;
use super::fields::{changed_fields, fields_in};
use super::state::{Durable, RecoveredRows};
use crate::database::Database;
use crate::errors::BulkInsertError;
use crate::key::Key;
use crate::logging::{MakeDurable, RowLog};
use crate::record::GroupsOf;
use crate::table::{Table, TableBuilder};
use hotrow_core::column_groups::ColumnGroups;
use hotrow_core::{Engine, Error, Misuse, OutsideCommits, Pin, Protocol, Value};
use hotrow_log::{Part as LogPart, RECORD_BYTES_MAX, entry};
use hotrow_sync::{Arc, Mutex, OnceLock, lock, thread};
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
    log: Arc<TableLog<K, R, P>>,
    recovered: Option<Arc<RecoveredRows>>,
    durable: Arc<Durable<P>>,
}

/// The way of a table's rows to the log.
pub(super) struct TableLog<K: Key, R: Value, P: Protocol> {
    pub(super) structure: u32,
    codec: Codec<K, R>,
    /// A row of the table, as one that has columns for a group. There is one as soon as there has been a row.
    any_row: OnceLock<R>,
    /// Logs rows that are loaded outside of transactions, once there are some.
    outside: Mutex<Option<OutsideCommits<P>>>,
}

impl<K: Key, R: Value, P: Protocol> TableLog<K, R, P> {
    /// Appends a row, whatever its length.
    pub(super) fn put_row(&self, entries: &mut Vec<u8>, key: &K, row: &R) -> Result<(), String> {
        let Self { structure, codec, .. } = self;
        let key = |bytes: &mut Vec<u8>| (codec.put_key)(key, bytes);
        entry::write(entries, *structure, LogPart::Whole, key, |bytes| (codec.put_row)(row, bytes))
    }

    /// Appends some fields of a row; the row, if rows are written whole.
    fn put_fields(&self, entries: &mut Vec<u8>, key: &K, row: &R, fields: u64) -> Result<(), String> {
        let Some(put_fields) = self.codec.put_fields else { return self.put_row(entries, key, row) };
        if fields == 0 {
            return Ok(());
        }
        put_fields(row, fields, &mut |field, write| {
            let key = |bytes: &mut Vec<u8>| (self.codec.put_key)(key, bytes);
            entry::write(entries, self.structure, LogPart::Group(field), key, write)
        })
    }
}

/// Checks that a record is not too long.
pub(super) fn fits(entries: &[u8]) -> Result<(), String> {
    if entries.len() <= RECORD_BYTES_MAX {
        return Ok(());
    }
    Err(format!("a transaction writes more than the {RECORD_BYTES_MAX} bytes that the log takes at once"))
}

impl<K: Key, R: Value, P: Protocol> RowLog<K, R, P> for TableLog<K, R, P> {
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
        let columns = GroupsOf::<R>::COLUMNS.iter().filter(|column| column.group == group);
        let fields = columns.fold(0, |fields, column| fields | fields_in::<R>(column.row, column.bytes));
        self.put_fields(entries, key, &row, fields)?;
        fits(entries)
    }

    fn delete(&self, entries: &mut Vec<u8>, key: &K) -> Result<(), String> {
        entry::delete(entries, self.structure, |bytes| (self.codec.put_key)(key, bytes))?;
        fits(entries)
    }

    fn load(
        &self,
        engine: &Engine<P>,
        key: K,
        row: R,
        insert: &mut dyn FnMut(K, R) -> Result<(), BulkInsertError>,
    ) -> Result<(), BulkInsertError> {
        let failed = BulkInsertError::Transaction;
        let mut written = Vec::new();
        self.put(&mut written, &key, &row)
            .map_err(|reason| failed(Error::Misuse(Misuse::Unsupported(reason))))?;
        let mut outside = lock(&self.outside);
        if outside.is_none() {
            *outside = engine.outside_commits();
        }
        let Some(commits) = &mut *outside else { return insert(key, row) };
        let mut inserted = Ok(());
        let logged = commits.commit(|entries| {
            inserted = insert(key, row);
            if inserted.is_ok() {
                entries.append(&mut written);
            }
        });
        logged.map_err(|failure| failed(Error::NotDurable(failure)))?;
        inserted
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
    ) -> Result<Option<Arc<dyn RowLog<K, R, P>>>, Misuse> {
        let Some(durable) = database.durable().cloned() else { return Ok(None) };
        if database.names().iter().any(|other| other == table) {
            return Err(Misuse::NameTaken { name: table.to_owned() });
        }
        let (structure, recovered) = durable.register(table, (self.codec.shape)())?;
        let (any_row, outside) = (OnceLock::new(), Mutex::new(None));
        let log = Arc::new(TableLog { structure, codec: self.codec, any_row, outside });
        self.begun = Some(Begun { log: log.clone(), recovered, durable });
        Ok(Some(log))
    }

    fn load(&self, table: &Table<K, R, P>) -> Result<(), Misuse> {
        let Some(Begun { log, recovered: Some(rows), .. }) = &self.begun else { return Ok(()) };
        let malformed = |reason| Misuse::Malformed { table: table.name().to_owned(), reason };
        if let Some(fault) = rows.fault() {
            return Err(malformed(fault.clone()));
        }
        let insert = |key: &[u8], row: &[u8]| insert(table, log, key, row);
        let some = |first: usize, step: usize| {
            (first..rows.lists()).step_by(step).try_for_each(|list| rows.for_each_of(list, insert))
        };
        // A simulated core has no threads.
        let threads = if thread::is_simulated() { 1 } else { thread::parallelism().min(rows.lists()) };
        let failed = match threads {
            1 => some(0, 1).err(),
            _ => thread::scope(|scope| {
                let started: Vec<_> =
                    (0..threads).map(|first| scope.spawn(move || some(first, threads))).collect();
                started.into_iter().find_map(|thread| match thread.join() {
                    Ok(result) => result.err(),
                    Err(_) => Some(String::from("users' code panicked")),
                })
            }),
        };
        failed.map_or(Ok(()), |reason| Err(malformed(reason)))
    }

    fn end(self: Box<Self>, table: &Table<K, R, P>) {
        let Some(Begun { log, durable, .. }) = self.begun else { return };
        let structure = log.structure;
        durable.claim(structure, Arc::new(RowsOfTable { table: table.clone(), log }));
    }
}

/// Inserts a recovered row. `Err` with what is wrong with it.
fn insert<K: Key, R: Value, P: Protocol>(
    table: &Table<K, R, P>,
    log: &TableLog<K, R, P>,
    key: &[u8],
    row: &[u8],
) -> Result<(), String> {
    let key = (log.codec.get_key)(key).map_err(|reason| format!("a key cannot be read: {reason}"))?;
    let row = (log.codec.get_row)(row).map_err(|reason| format!("row {key:?} cannot be read: {reason}"))?;
    log.any_row.get_or_init(|| row.clone());
    table.shared.bulk_insert(key, row, &Pin::new()).map_err(|refused| refused.to_string())
}

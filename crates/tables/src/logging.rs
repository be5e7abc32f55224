//! The writes of a durable table's commits to its database's log.
//!
//! An insertion logs the row whole, and a deletion its key. A change of an inline row logs the fields that have changed, one by
//! one; the locks that the commit holds decide between the changes of a field, whether the row is one segment or
//! [split](crate::split). Rows of other types are logged whole. Recovery takes the newest whole row, and then each field that is newer
//! (`durable`).
//!
//! Changes at the commit are logged by their results, which the lock makes final.

use crate::database::Database;
use crate::errors::BulkInsertError;
use crate::index::Keyed;
use crate::key::Key;
use crate::record::{GroupsOf, Pending, Record};
use crate::split::{PartOf, SplitRows};
use crate::storage::{Shared, tag};
use crate::table::{Table, TableBuilder};
use hotrow_core::{Cell, Engine, Error, Item, Misuse, OutsideCommits, Pin, Protocol, Value};
use hotrow_sync::{Mutex, lock};
use std::sync::Arc;

/// Writes a table's rows to records of the log. A row that cannot be written is an error.
pub(crate) trait RowLog<K: Key, R: Value>: Send + Sync {
    /// Appends a row.
    fn put(&self, entries: &mut Vec<u8>, key: &K, row: &R) -> Result<(), String>;

    /// Appends what has changed of a row.
    fn put_changes(&self, entries: &mut Vec<u8>, key: &K, before: &R, after: &R) -> Result<(), String>;

    /// Appends the fields of a column group, which `put` copies to a row.
    fn put_group(
        &self,
        entries: &mut Vec<u8>,
        key: &K,
        group: usize,
        put: &dyn Fn(&mut R),
    ) -> Result<(), String>;

    /// Appends a row's deletion.
    fn delete(&self, entries: &mut Vec<u8>, key: &K) -> Result<(), String>;
}

/// A table's way to its database's log.
pub(crate) struct LogOfTable<K: Key, R: Value, P: Protocol> {
    pub(crate) rows: Arc<dyn RowLog<K, R>>,
    /// Logs rows that are loaded outside of transactions, once there are some.
    outside: Mutex<Option<OutsideCommits<P>>>,
}

impl<K: Key, R: Value, P: Protocol> LogOfTable<K, R, P> {
    /// Inserts a row by a function, outside of transactions, and logs it.
    pub(crate) fn load(
        &self,
        engine: &Engine<P>,
        key: K,
        row: R,
        insert: &mut dyn FnMut(K, R) -> Result<(), BulkInsertError>,
    ) -> Result<(), BulkInsertError> {
        let mut written = Vec::new();
        self.rows
            .put(&mut written, &key, &row)
            .map_err(|reason| BulkInsertError::Transaction(Error::Misuse(Misuse::Unsupported(reason))))?;
        let mut pair = Some((key, row));
        load(&self.outside, engine, written, &mut || {
            let (key, row) = pair.take().expect("inserted once");
            insert(key, row)
        })
    }
}

/// Calls a function that inserts a row, and logs the row. Compiled once for each protocol.
fn load<P: Protocol>(
    outside: &Mutex<Option<OutsideCommits<P>>>,
    engine: &Engine<P>,
    mut row: Vec<u8>,
    insert: &mut dyn FnMut() -> Result<(), BulkInsertError>,
) -> Result<(), BulkInsertError> {
    let mut outside = lock(outside);
    if outside.is_none() {
        *outside = engine.outside_commits();
    }
    let Some(commits) = &mut *outside else { return insert() };
    let mut inserted = Ok(());
    let logged = commits.commit(|entries| {
        inserted = insert();
        if inserted.is_ok() {
            entries.append(&mut row);
        }
    });
    logged.map_err(|failure| BulkInsertError::Transaction(Error::NotDurable(failure)))?;
    inserted
}

/// How a table that is being made becomes durable.
pub(crate) trait MakeDurable<K: Key, R: Value, P: Protocol> {
    /// True if changes are logged by fields, so that segments of a row can be logged apart.
    fn logs_fields(&self) -> bool;

    /// Registers the table with the database's log, and checks that what was recovered of it has its types. `None` if the database
    /// has no log.
    fn begin(&mut self, database: &Database<P>, table: &str)
    -> Result<Option<Arc<dyn RowLog<K, R>>>, Misuse>;

    /// Inserts what was recovered of the table.
    fn load(&self, table: &Table<K, R, P>) -> Result<(), Misuse>;

    /// Ends the table's recovery: checkpoints write its rows from now on.
    fn end(self: Box<Self>, table: &Table<K, R, P>);
}

impl<K: Key, R: Value, P: Protocol> TableBuilder<K, R, P> {
    /// True if the log of the table knows rows only, not their fields.
    pub(crate) fn logs_rows_whole(&self) -> bool {
        self.durable.as_ref().is_some_and(|durable| !durable.logs_fields())
    }
}

impl<K: Key, R: Value, P: Protocol> Shared<K, R, P> {
    /// Sets the way to the log. The table is new.
    pub(crate) fn set_log(&mut self, log: Option<Arc<dyn RowLog<K, R>>>) {
        self.split.iter_mut().for_each(|split| split.row_log = log.clone());
        self.log = log.map(|rows| LogOfTable { rows, outside: Mutex::new(None) });
    }

    /// Appends the entries of an item's pending write.
    ///
    /// # Safety
    ///
    /// As for [`Object::log`](hotrow_core::Object::log).
    pub(crate) unsafe fn log_write(
        &self,
        item: &Item<P>,
        pin: &Pin,
        entries: &mut Vec<u8>,
    ) -> Result<(), String> {
        let Some(LogOfTable { rows: log, .. }) = &self.log else { return Ok(()) };
        // SAFETY: items of this object are for its records, which live until the attempt ends.
        let record = unsafe { Record::<K, R, P>::at(item.segment()) };
        let key = record.key();
        match item.tag() {
            // SAFETY: an update has a payload of this type. The caller holds the lock, so that nothing is installed.
            tag::UPDATE => unsafe {
                log.put_changes(entries, key, record.row(), R::Cell::pending(&*item.payload::<Pending<R>>()))
            },
            // SAFETY: the tag says what the payload is; the caller holds the lock. Users' code that panics changes nothing.
            tag::CHANGES => unsafe { Self::changed(item, record, pin) }
                // SAFETY: as above.
                .map_or(Ok(()), |row| log.put_changes(entries, key, unsafe { record.row() }, &row)),
            // SAFETY: the attempt holds the lock of a record that it made, so nothing is installed.
            tag::INSERTED => log.put(entries, key, unsafe { record.row() }),
            tag::DELETE => log.delete(entries, key),
            _ => Ok(()),
        }
    }
}

impl<K: Key, R: Value, P: Protocol> SplitRows<K, R, P> {
    /// As [`Shared::log_write`], for a part.
    ///
    /// # Safety
    ///
    /// As for [`Object::log`](hotrow_core::Object::log).
    pub(crate) unsafe fn log_write(
        &self,
        item: &Item<P>,
        pin: &Pin,
        entries: &mut Vec<u8>,
    ) -> Result<(), String> {
        let Some(log) = &self.row_log else { return Ok(()) };
        // SAFETY: all items of this object are for its parts, with a pending write; the caller holds the lock.
        let ((part, key), value) =
            unsafe { (Self::part(item.segment()), PartOf::<R, P>::pending_value(item, pin)) };
        // The deletion of the record says all.
        let Some(value) = value.filter(|value| value.is_present()) else { return Ok(()) };
        log.put_group(entries, key, part.group(), &|row| value.put::<R, GroupsOf<R>>(row, part.group()))
    }
}

//! The writes of a durable table's commits to its database's log.
//!
//! An insertion logs the row whole, and a deletion its key. A change of an inline row logs the fields that have changed, one by
//! one; the locks that the commit holds decide between the changes of a field, whether the row is one segment or
//! [split](crate::split). Rows of other types are logged whole. Recovery takes the newest whole row, and then each field that is newer
//! (`durable`).
//!
//! Changes at the commit are logged by their results, which the lock makes final.

use crate::database::Database;
use crate::errors::LoadError;
use crate::index::Keyed;
use crate::key::Key;
use crate::record::{GroupsOf, Pending, Record};
use crate::split::{PartOf, SplitRows};
use crate::storage::{Shared, tag};
use crate::table::{Table, TableBuilder};
use hotrow_core::{Cell, Error, Item, Misuse, Pin, Protocol, Value};
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

/// How a table that is being made becomes durable.
pub(crate) trait MakeDurable<K: Key, R: Value, P: Protocol>: Send + Sync {
    /// True if changes are logged by fields, so that segments of a row can be logged apart.
    fn logs_fields(&self) -> bool;

    /// Looks for the table in the database's log, and checks that what was recovered of it has its types. Nothing is written yet. `None` if
    /// the database has no log.
    fn begin(&mut self, database: &Database<P>, table: &str) -> Result<Option<FoundTable<K, R>>, Misuse>;

    /// Hands over what was recovered of the table, to a function that inserts a row.
    fn recover(
        &self,
        table: &str,
        insert: &(dyn Fn(K, R) -> Result<(), LoadError> + Sync),
    ) -> Result<(), Misuse>;

    /// Enters the table in the log, unless it is there. Checkpoints write its rows from now on. A table that `is_loaded` is durable when it
    /// returns, whole; after a crash before that, there is none.
    fn end(self: Box<Self>, table: &Table<K, R, P>, is_loaded: bool) -> Result<(), Error>;
}

/// A table's place in its database's log.
pub(crate) struct FoundTable<K: Key, R: Value> {
    pub(crate) log: Arc<dyn RowLog<K, R>>,
    /// True if the log has no table of the name.
    pub(crate) is_new: bool,
}

impl<K: Key, R: Value, P: Protocol> TableBuilder<K, R, P> {
    /// True if the log of the table knows rows only, not their fields.
    pub(crate) fn logs_rows_whole(&self) -> bool {
        self.durable.as_ref().is_some_and(|durable| !durable.logs_fields())
    }
}

impl<K: Key, R: Value, P: Protocol> Shared<K, R, P> {
    /// Sets the way to the log. The table is new.
    pub(crate) fn set_log(&mut self, log: Arc<dyn RowLog<K, R>>) {
        self.split.iter_mut().for_each(|split| split.row_log = Some(log.clone()));
        self.log = Some(log);
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
        let Some(log) = &self.log else { return Ok(()) };
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

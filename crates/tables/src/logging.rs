//! The writes of a durable table's commits to its database's log.
//!
//! An insertion logs the row whole, and a deletion its key. A change of an inline row logs the fields that have changed, one by
//! one; the locks that the commit holds decide between the changes of a field, whether the row is one segment or
//! [split](crate::split). Rows of other types are logged whole. Recovery takes the newest whole row, and then each field that is newer
//! (`durable`).
//!
//! Changes at the commit are logged by their results, which the lock makes final, and which are installed.

use crate::database::Database;
use crate::errors::LoadError;
use crate::index::Keyed;
use crate::key::Key;
use crate::record::{GroupsOf, Pending, Record};
use crate::split::{PartOf, SplitRows};
use crate::storage::{Shared, tag};
use crate::table::{Table, TableBuilder};
use hotrow_core::{Cell, Error, Item, Misuse, Pin, Protocol, Value};
use hotrow_stored::Schema;
#[cfg(all(feature = "durable", not(loom)))]
use hotrow_stored::{Reader, Stored};
#[cfg(all(feature = "durable", not(loom)))]
use std::fmt::{Debug, Display};
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

/// The rows of an earlier type of a table, and how they become those of the present one.
#[cfg_attr(
    not(all(feature = "durable", not(loom))),
    expect(dead_code, reason = "only durable tables have earlier rows")
)]
pub(crate) struct Migration<K, R> {
    schemas: fn() -> (Schema, Schema),
    read: Box<dyn Fn(&[u8], &[u8]) -> Result<(K, R), String> + Send + Sync>,
}

#[cfg(all(feature = "durable", not(loom)))]
impl<K: Key, R: Value> Migration<K, R> {
    fn new<OldKey: Stored + Debug, Old: Stored, E: Display>(
        migrate: impl Fn(OldKey, Old) -> Result<(K, R), E> + Send + Sync + 'static,
    ) -> Self {
        let read = move |key: &[u8], row: &[u8]| {
            let key =
                Reader::read(key, OldKey::get).map_err(|reason| format!("a key cannot be read: {reason}"))?;
            let name = format!("{key:?}");
            let row = Reader::read(row, Old::get)
                .map_err(|reason| format!("row {name} cannot be read: {reason}"))?;
            migrate(key, row).map_err(|reason| format!("row {name} cannot be migrated: {reason}"))
        };
        Self { schemas: || (Schema::of::<OldKey>(), Schema::of::<Old>()), read: Box::new(read) }
    }

    /// The schemas of the earlier keys and rows.
    pub(crate) fn schemas(&self) -> (Schema, Schema) {
        (self.schemas)()
    }

    /// Reads a row of the earlier type.
    pub(crate) fn read(&self, key: &[u8], row: &[u8]) -> Result<(K, R), String> {
        (self.read)(key, row)
    }
}

#[cfg(all(feature = "durable", not(loom)))]
impl<K: Key, R: Value, P: Protocol> TableBuilder<K, R, P> {
    /// Declares that the table lives in memory alone, in a database that was [opened at a directory](crate::DatabaseBuilder::open_at).
    /// Otherwise its rows survive the process there, and its types are [stored](hotrow_stored::Stored).
    #[must_use]
    pub fn in_memory(mut self) -> Self {
        self.in_memory = true;
        self
    }

    /// Says how rows that an earlier version of the program has written, with other types, become those of the present ones. If the directory
    /// has such rows, [`create`](Self::create) reads each, calls `migrate`, and writes the results: all of them or, if one fails or
    /// the process ends, none. A directory that has rows of the present types already, or none, is left as it is, so the call may stay in
    /// the program; it may be repeated for several earlier versions.
    ///
    /// The earlier types are declared as they were then; their names do not matter.
    ///
    /// ```
    /// use hotrow_tables::Database;
    ///
    /// # let directory = std::env::temp_dir().join(format!("hotrow-migration-{}", std::process::id()));
    /// # std::fs::create_dir_all(&directory)?;
    /// let db = Database::builder().open_at(&directory)?;
    /// let prices = db.table::<String, u32>("prices").create()?;
    /// db.transact(|tx| prices.insert(tx, "tea".into(), 250))?;
    /// drop((prices, db));
    ///
    /// // Euros instead of cents.
    /// let db = Database::builder().open_at(&directory)?;
    /// let prices = db.table::<String, f64>("prices")
    ///     .migrate_from(|name: String, cents: u32| Ok::<_, String>((name, f64::from(cents) / 100.0)))
    ///     .create()?;
    /// assert_eq!(db.transact(|tx| prices.get(tx, "tea"))?, Some(2.5));
    /// # drop((prices, db));
    /// # std::fs::remove_dir_all(&directory)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn migrate_from<OldKey: Stored + Debug, Old: Stored, E: Display>(
        mut self,
        migrate: impl Fn(OldKey, Old) -> Result<(K, R), E> + Send + Sync + 'static,
    ) -> Self {
        self.migrations.push(Migration::new(migrate));
        self
    }
}

#[cfg(not(all(feature = "durable", not(loom))))]
impl<K: Key, R: Value, P: Protocol> TableBuilder<K, R, P> {
    /// Without logs no table is durable.
    pub(crate) fn plan_of(
        _: &Database<P>,
        _: &str,
        _: Vec<Migration<K, R>>,
    ) -> Result<Option<Box<dyn MakeDurable<K, R, P>>>, Misuse> {
        Ok(None)
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
            // SAFETY: the tag says what the payload is; the caller holds the lock.
            tag::CHANGES => unsafe {
                Self::with_changed(item, record, pin, |row| log.put_changes(entries, key, record.row(), row))
            },
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
        if !value.is_present() {
            return Ok(());
        }
        log.put_group(entries, key, part.group(), &|row| value.put::<R, GroupsOf<R>>(row, part.group()))
    }
}

//! How tables become durable while they are made: their places in the log, and the rows that it has of them.

use crate::companions::RowLog;
use crate::database::Database;
use crate::errors::LoadError;
use crate::key::Key;
use crate::table::Table;
use hotrow_core::{Error, Misuse, Protocol, Value};
use hotrow_stored::Schema;
#[cfg(all(feature = "durable", not(loom)))]
use hotrow_stored::{Reader, Stored};
#[cfg(all(feature = "durable", not(loom)))]
use std::fmt::{Debug, Display};
use std::sync::Arc;

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
    pub(crate) fn new<OldKey: Stored + Debug, Old: Stored, E: Display>(
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

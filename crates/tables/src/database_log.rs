//! The log of a database, as tables see it.
//!
//! A table knows how its keys and rows become bytes. The log (crate `hotrow-durable`) knows names, schemas and bytes, and no types.

use hotrow_core::{Error, Misuse, Protocol, Snapshot, SnapshotReader};
use hotrow_stored::Schema;
use hotrow_sync::MutexGuard;
use std::any::Any;
use std::sync::Arc;

/// The log of a database, as its tables see it.
pub trait DatabaseLog<P: Protocol>: Any + Send + Sync {
    /// Looks for a table, and compares the schemas of its keys and rows with those that it was written with. `earlier`: those from which the
    /// program has a migration. Nothing is written yet.
    fn find(
        self: Arc<Self>,
        table: &str,
        schemas: (Schema, Schema),
        earlier: Vec<(Schema, Schema)>,
    ) -> Result<Box<dyn LoggedTable<P>>, Misuse>;

    /// Forgets what has this name. False if there is nothing. No checkpoint may be in progress.
    fn forget(&self, name: &str) -> Result<bool, Misuse>;

    /// Waits for the end of a checkpoint in progress. None is made until the guard is dropped.
    fn pause_checkpoints(&self) -> MutexGuard<'_, bool>;
}

/// A table's place in its database's log, while it is being made.
pub trait LoggedTable<P: Protocol>: Send + Sync {
    /// True if the log has no table of the name.
    fn is_new(&self) -> bool;

    /// The writer of its entries.
    fn entries(&self) -> Box<dyn Entries>;

    /// Hands over the rows that were recovered, on several threads, until one is refused: key and row as bytes, and the number of the
    /// migration that they need.
    fn for_each_recovered(
        &self,
        take: &(dyn Fn(Option<usize>, &[u8], &[u8]) -> Result<(), String> + Sync),
    ) -> Result<(), String>;

    /// Enters the table in the log, unless it is there. Checkpoints write its rows from now on. A table that `is_loaded` is durable when it
    /// returns, whole; after a crash before that, there is none.
    fn end(self: Box<Self>, rows: Box<dyn RowsAsBytes<P>>, is_loaded: bool) -> Result<(), Error>;
}

/// The rows of a table, as a checkpoint reads them.
pub trait RowsAsBytes<P: Protocol>: Send + Sync {
    /// Visits the rows that a snapshot sees. `visit` tells whether to go on.
    fn for_each(
        &self,
        reader: &mut SnapshotReader<P>,
        snapshot: &Snapshot<P>,
        visit: &mut dyn FnMut(PutBytes<'_>, PutBytes<'_>) -> bool,
    ) -> Result<(), Error>;
}

/// Appends the bytes of a key or of a row.
pub type PutBytes<'p> = &'p mut dyn FnMut(&mut Vec<u8>) -> Result<(), String>;

/// Bytes before the key of an entry, which are the log's.
pub const ENTRY_HEAD: usize = 3;
/// Bytes before the value of a field, which are the log's.
pub const FIELD_HEAD: usize = 1;

/// The kind of an entry: the change of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// The row is there, whole.
    Row,
    /// The value is some of the row's fields, at least one.
    Fields,
    /// The row is deleted. There is no value.
    Deletion,
}

/// Completes entries of one table: changes of its rows, as the log has them. The table writes keys, rows and fields behind each other, and
/// leaves room for the log's own bytes.
pub trait Entries: Send + Sync {
    /// Completes a field, which begins at `start` with [`FIELD_HEAD`] bytes; its value follows.
    fn end_field(&self, entries: &mut Vec<u8>, start: usize, field: u32);

    /// Completes an entry, which begins at `start` with [`ENTRY_HEAD`] bytes; its key follows, and at `value` its value.
    ///
    /// # Errors
    ///
    /// The reason, if the log cannot take as much at once.
    fn end(&self, entries: &mut Vec<u8>, start: usize, value: usize, kind: EntryKind) -> Result<(), String>;
}

//! Errors of durable databases.

use hotrow_core::{Error, Misuse};
use std::io;
use std::path::PathBuf;

/// The reason for which a database could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The protocol has no such variant.
    #[error(transparent)]
    Misuse(#[from] Misuse),
    /// The directory cannot be used: it is none, or another process has it.
    #[error("{reason}")]
    Directory {
        /// The directory.
        path: PathBuf,
        /// The system's reason.
        reason: io::Error,
    },
    /// The catalog has a schema that is none.
    #[error("the schema of {name} in the catalog cannot be read: {reason}")]
    Schema {
        /// The name of the table or object.
        name: String,
        /// The fault.
        reason: String,
    },
    /// Log, checkpoint or catalogue cannot be read, or are damaged. No file was changed.
    #[error(transparent)]
    Log(#[from] hotrow_log::OpenError),
}

/// The reason for which a checkpoint or a backup could not be made. The last checkpoint is still there.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointError {
    /// The database was opened without a directory.
    #[error(
        "the database was opened without a directory, so that there is nothing to write: open it by `open_at`"
    )]
    NoLog,
    /// The rows could not be read: within a transaction, say, or because the protocol admits no other worker.
    #[error("the rows cannot be read: {0}")]
    Rows(Error),
    /// A row could not be written as bytes.
    #[error("a row of {table} cannot be written: {reason}")]
    Row {
        /// The table's name.
        table: String,
        /// The reason that its type gives.
        reason: String,
    },
    /// The program's code that clones rows or writes them as bytes panicked.
    #[error(
        "the program's code that clones rows or writes them as bytes panicked, so that nothing was written"
    )]
    Panicked,
    /// The log could not write it.
    #[error(transparent)]
    Log(#[from] hotrow_log::CheckpointError),
    /// The copy could not be written.
    #[error(transparent)]
    Backup(#[from] hotrow_log::BackupError),
}

// Not derived, because a cause that the text shows is no source.
impl From<Error> for CheckpointError {
    fn from(error: Error) -> Self {
        Self::Rows(error)
    }
}

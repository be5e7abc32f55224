//! Errors.

use std::io;
use std::sync::Arc;

/// Reason for which the log took no more commits, or did not take one.
///
/// A log that has failed stays so: what a failed write or sync left on the device is not known, so nothing is written
/// after it. Open the log again to go on with what is durable.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// The storage failed, or is full ([`io::ErrorKind::StorageFull`]). Nothing that was acknowledged is lost.
    #[error(
        "the log has failed and takes no more commits: cannot {operation} {file} (at byte {offset}): {error}"
    )]
    Io {
        /// Operation that failed.
        operation: &'static str,
        /// Name of the file.
        file: String,
        /// Offset in the file at which the operation would have begun.
        offset: u64,
        /// The storage's error.
        error: Arc<io::Error>,
    },
    /// The entries of one record were longer than [`RECORD_BYTES_MAX`](crate::RECORD_BYTES_MAX).
    #[error("the log has failed: a record has {bytes} bytes, and at most {max} are allowed", max = crate::RECORD_BYTES_MAX)]
    RecordTooLarge {
        /// Bytes of the entries.
        bytes: usize,
    },
    /// A commit's record came after the engine had said that all of its epoch had come, or the engine's epoch went back.
    #[error(
        "the log has failed: epoch {epoch} came after all epochs below {bound} had been declared complete"
    )]
    LateEpoch {
        /// Epoch of the commit or of the engine.
        epoch: u64,
        /// Smallest epoch allowed.
        bound: u64,
    },
    /// The logger's thread panicked or could not be started.
    #[error("the log has failed: its thread {0}")]
    Thread(String),
    /// The log's files are as large as [`Options::space_bytes_max`](crate::Options::space_bytes_max) allows, and no
    /// checkpoint came to make room. The log has not failed: commits go on once a checkpoint has made room.
    #[error("the log has {used} bytes, and at most {max} are allowed: a checkpoint must make room")]
    OutOfSpace {
        /// Bytes of the log's files.
        used: u64,
        /// The limit.
        max: u64,
    },
    /// A structure that was dropped was to be entered in the catalog again. The log has not failed.
    #[error("structure {structure} was dropped, and its number is not used again")]
    Dropped {
        /// The structure's number.
        structure: u32,
    },
    /// The log is used in a process that is a fork of the one that has opened it, which goes on with it.
    #[error("the log belongs to the process that has opened it, and this one is a fork of it")]
    Forked,
    /// The log was closed.
    #[error("the log is closed, because its database was: open the database again")]
    Closed,
}

impl Failure {
    pub(crate) fn io(operation: &'static str, file: &str, offset: u64, error: io::Error) -> Self {
        Self::Io { operation, file: file.to_owned(), offset, error: Arc::new(error) }
    }

    /// True if the storage had no room left.
    pub fn is_full_disk(&self) -> bool {
        matches!(self, Self::Io { error, .. } if error.kind() == io::ErrorKind::StorageFull)
    }
}

/// Reason for which a log cannot be opened or is not sound. No file was changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Another log has the storage.
    #[error("the log is in use: {0}")]
    Locked(io::Error),
    /// The storage failed.
    #[error("cannot {operation} {file} (at byte {offset}): {error}")]
    Io {
        /// Operation that failed.
        operation: &'static str,
        /// Name of the file; empty for the list of files.
        file: String,
        /// Offset in the file.
        offset: u64,
        /// The storage's error.
        error: io::Error,
    },
    /// Data that were durable have changed or are missing.
    #[error("{file} is corrupt at byte {offset}: {reason}")]
    Corrupt {
        /// Name of the file.
        file: String,
        /// Offset of the fault.
        offset: u64,
        /// Fault found.
        reason: String,
    },
    /// A file has a version of the format that this program does not know.
    #[error("{file} has version {found} of the format (at byte 8), and this program reads version {known} only: open it with the program that wrote it", known = crate::layout::VERSION)]
    Version {
        /// Name of the file.
        file: String,
        /// Version found.
        found: u32,
    },
    /// The files are those of a backup that was not finished.
    #[error("{file} is that of a backup that was not finished (byte 12): make the backup again")]
    UnfinishedBackup {
        /// Name of the file.
        file: String,
    },
    /// [`Opened::start`](crate::Opened::start) was called on a log with records that had not been replayed.
    #[error("the log has records that have not been replayed")]
    NotReplayed,
    /// The logger's thread cannot be started.
    #[error("cannot start the log's thread: {0}")]
    Thread(io::Error),
}

impl OpenError {
    pub(crate) fn io(operation: &'static str, file: &str, offset: u64, error: io::Error) -> Self {
        Self::Io { operation, file: file.to_owned(), offset, error }
    }

    pub(crate) fn corrupt(file: &str, offset: u64, reason: impl Into<String>) -> Self {
        Self::Corrupt { file: file.to_owned(), offset, reason: reason.into() }
    }

    /// The error of a claim to the storage.
    pub(crate) fn locked(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::WouldBlock => Self::Locked(error),
            _ => Self::io("lock the files of the log", "", 0, error),
        }
    }

    pub(crate) fn missing(file: &str) -> Self {
        Self::corrupt(file, 0, "the file is missing")
    }

    pub(crate) fn header(file: &str, fault: crate::layout::HeaderFault) -> Self {
        match fault {
            crate::layout::HeaderFault::Corrupt(reason) => Self::corrupt(file, 0, reason),
            crate::layout::HeaderFault::Version(found) => Self::Version { file: file.to_owned(), found },
        }
    }
}

/// Reason for which a checkpoint was not made. The log goes on without it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointError {
    /// The storage failed, or is full.
    #[error("cannot {operation} {file} (at byte {offset}): {error}")]
    Io {
        /// Operation that failed.
        operation: &'static str,
        /// Name of the file.
        file: String,
        /// Offset in the file.
        offset: u64,
        /// The storage's error.
        error: io::Error,
    },
    /// Another checkpoint is being written.
    #[error("another checkpoint is being written: wait until it has ended")]
    Busy,
    /// The epoch is not larger than that of the newest checkpoint, or not larger than what recovery had found.
    #[error("a checkpoint of epoch {epoch} is older than epoch {oldest}, which the log has already")]
    TooOld {
        /// Epoch asked for.
        epoch: u64,
        /// Smallest epoch allowed.
        oldest: u64,
    },
    /// The bytes given are not entries of whole rows.
    #[error("the rows given for the checkpoint are malformed: {0}")]
    Malformed(String),
    /// The log has failed or was closed.
    #[error(transparent)]
    Log(#[from] Failure),
}

impl CheckpointError {
    pub(crate) fn io(operation: &'static str, file: &str, offset: u64, error: io::Error) -> Self {
        Self::Io { operation, file: file.to_owned(), offset, error }
    }
}

/// Reason for which a backup was not made. The log goes on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackupError {
    /// The destination has files already.
    #[error("the destination of the backup is not empty: it has the file {0}")]
    NotEmpty(String),
    /// The log's storage cannot be read.
    #[error("cannot read {file} (at byte {offset}) for the backup: {error}")]
    Read {
        /// Name of the file.
        file: String,
        /// Offset in the file.
        offset: u64,
        /// The storage's error.
        error: io::Error,
    },
    /// The destination cannot be written.
    #[error("cannot write {file} (at byte {offset}) of the backup: {error}")]
    Write {
        /// Name of the file; empty for the list of files.
        file: String,
        /// Offset in the file.
        offset: u64,
        /// The storage's error.
        error: io::Error,
    },
    /// The log has failed or was closed.
    #[error(transparent)]
    Log(#[from] Failure),
}

/// Reason for which a log's content was not printed to its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DumpError {
    /// The log cannot be read, or is corrupt. All before the fault was printed.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The output failed.
    #[error("cannot write the output: {0}")]
    Output(io::Error),
}

// Not derived, because a cause that the text shows is no source.
impl From<io::Error> for DumpError {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

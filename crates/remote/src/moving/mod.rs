//! Moving databases between directories and clusters, by programs that do not know their types.
//!
//! A directory of a durable database is copied into an empty cluster, or a cluster to a directory that is not there: all tables of one state, with
//! their names, schemas and rows. A copy that was ended half-way goes on when it is started again. It never mixes two states: if the
//! source has changed meanwhile, or does not keep the state any more, what was copied is deleted, and the copy begins anew.
//! Until it is complete, nothing is seen of it in the cluster's catalog, or under the directory's name.
//!
//! # Into a cluster
//!
//! The database is read as its opening would read it. A *mark* in the store has the digest of its state, and the last row that was copied.
//! Each commit puts some rows and the next mark, under the condition that the mark before it is there: so a commit whose answer was lost
//! is simply sent again, and of two copies at once one ends. The last commit puts the catalog. Rows lie in the order of their keys, which
//! the module `image` makes from stored bytes.
//!
//! # To a directory
//!
//! All is read at one version, which is held. The log of the new directory has, with each step, a *bookmark*: the version, and the place to go on from. The
//! directory has the ending `.copying` until it is complete.
//!
//! # Kinds
//!
//! Boxes, counters and arrays of a directory are tables of numbers (`u64`) in a cluster. They get their kinds again on the way back. Sequences
//! are sequences, and go on behind their last numbers.
//!
//! # Groups and indexes
//!
//! A directory says nothing of them. The first program that opens a table in the cluster declares them; then the rows are divided, and the
//! entries of indexes made ([`create_or_open`](crate::RemoteTableBuilder::create_or_open)). On the way back rows are joined again, and
//! entries are left out.

mod digest;
mod image;
mod into_cluster;
mod into_directory;
mod rows;
#[cfg(test)]
mod tests;

pub use into_cluster::into_cluster;
pub use into_directory::into_directory;

use crate::store::StoreError;
use hotrow_durable::OpenError;
use hotrow_durable::structures::WriteError;
use std::io;
use std::path::{Path, PathBuf};

/// The progress of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct MoveProgress {
    /// Rows that have been copied, by earlier calls, too.
    pub rows: u64,
    /// Rows to be copied in all, if that is known.
    pub rows_total: Option<u64>,
}

/// The result of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Moved {
    /// Tables and objects.
    pub tables: u64,
    /// Rows in all.
    pub rows: u64,
    /// Rows that earlier calls had copied.
    pub rows_before: u64,
}

/// The reason for which a copy was not made, or not completed. Start it again to complete it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MoveError {
    /// The directory cannot be read, or is in use.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The directory cannot be written: the disk is full, say.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The file system does not do what is needed.
    #[error("{}: {error}", path.display())]
    Files {
        /// The directory.
        path: PathBuf,
        /// The system's reason.
        error: io::Error,
    },
    /// The store does not answer, or does not take a request.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A table cannot be copied.
    #[error("{table} cannot be copied: {reason}")]
    Table {
        /// The table's name.
        table: String,
        /// The reason.
        reason: String,
    },
    /// The source has no tables.
    #[error("{place} has no tables")]
    Nothing {
        /// The source.
        place: String,
    },
    /// The target has data, which are not those of an unfinished copy.
    #[error("{place} is not empty: {found}")]
    NotEmpty {
        /// The target.
        place: String,
        /// Something that is there.
        found: String,
    },
    /// Something in the cluster is not as it must be.
    #[error("the cluster has {0}")]
    Malformed(String),
    /// Another copy to the same place is going on, or others use the cluster meanwhile.
    #[error("the copy was disturbed: {0}")]
    Disturbed(String),
}

fn files(path: &Path) -> impl FnOnce(io::Error) -> MoveError {
    let path = path.to_owned();
    move |error| MoveError::Files { path, error }
}

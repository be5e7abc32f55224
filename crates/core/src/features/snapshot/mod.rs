//! Snapshots: readers that never abort, never wait for writers, and never make one wait.
//!
//! A *snapshot number* is a cut through the commits of an engine (dbx-tc §4): the snapshot sees the commits stamped with a
//! smaller number, and no other. A commit is stamped with the clock's value ([`points`]) while everything that it will write
//! is locked, and before its reads are validated. So of two commits of which one must come after the other, that one's stamp
//! is not smaller, and each cut is a state that a serial execution passes through.
//!
//! # Versions
//!
//! Cells hold one value. Between the halves of a commit with stamp `e`, the value of each segment that it is going to replace
//! goes into a table beside the segments ([`versions`](crate::memory::versions)), as *superseded* at `e`, unless that was done since the newest snapshot
//! number. A transaction on snapshot `s` first loads a segment as it is, and then looks into the table: if there are versions
//! superseded at `s` or later, the one superseded first is its value; otherwise what it has loaded is. A commit with a stamp of
//! `s` or more enters the old value before it installs the new one, so whoever has loaded a part of the new value finds
//! the entry. And commits with smaller stamps have installed everything before the snapshot can be used.
//!
//! Rows have the epoch of their newest commit beside them ([`noting_commits`](crate::ObjectMeta::noting_commits)), which is written after the
//! entry and before the new value. If it is below `s`, no entry is looked for. If it is not, and no entry has a value that was current at `s`,
//! there was no row: so a row that is inserted needs no entry.
//!
//! Nobody holds a lock for that, and the protocol has no part in it but to draw the stamp. (`tictoc`, whose order is not that
//! of stamps, has a rule of its own: `protocols/src/tictoc.rs`.)
//!
//! # Without readers
//!
//! Versions are kept only while a snapshot is open, or while there are users of snapshots that may be a little old, whose next one
//! must not wait: until [`LINGER`] after the last of these. Commits are stamped until [`LINGER`] after the last snapshot of any kind.
//! Otherwise a commit announces itself in a word of its worker, and looks at one flag.
//!
//! # Deviations from the paper
//!
//! - dbx-tc keeps a version and a snapshot number in each record; here records have the number, and versions are elsewhere.
//! - Its snapshot number advances by a timer; here a reader advances it that finds the newest snapshot too old.
//! - Its snapshots are eventual: a transaction's number is assigned in its conflicting piece. Here it is the commit's stamp. A
//!   chopped transaction would draw it there.

mod handle;
mod keeper;
mod moment;
mod points;
mod reader;
mod readers;
mod reading;

pub(crate) use handle::ReadPoint;
pub use handle::{OpenSnapshot, Snapshot, SnapshotKind, SnapshotReport};
pub use keeper::KeptSegments;
pub(crate) use keeper::KeptWrites;
pub(crate) use points::{Announcement, Snapshots};
pub use reader::SnapshotReader;
pub use reading::{AbsenceOnSnapshot, OnSnapshot, Sight, SnapshotAccess};

use hotrow_sync::clock::Duration;

/// The age from which on a snapshot is replaced by a newer one when somebody asks for it.
pub(crate) const STALENESS_MAX: Duration = Duration::from_millis(1);

/// The time after the last use of a snapshot for which the next one is prepared: commits are stamped, and versions kept if it must
/// not wait.
pub(crate) const LINGER: Duration = Duration::from_millis(100);

/// A structure that keeps segments for snapshots after they were removed.
pub trait Sweep: Send + Sync {
    /// Frees what no snapshot needs any more. It waits for nobody.
    fn sweep(&self);
}

//! Lost conflicts: their report by key, and the transactions on both sides.
//!
//! A loss is counted by the worker that loses, in a table of its own ([`table`]). The other side is found only if the engine
//! [reports both sides](crate::Engine::report_both_sides): then each worker says which transaction it runs ([`origin`]), and the
//! loser asks the protocol whose worker holds or has changed the segment ([`Protocol::rival`](crate::Protocol::rival)).

mod deadlocks;
mod origin;
mod report;
mod table;

pub(crate) use deadlocks::Deadlocks;
pub use deadlocks::{Deadlock, DeadlockPart, DeadlockWait};
pub(crate) use origin::{Activity, KnownOrigins, Origins};
pub use origin::{Named, Origin};
pub(crate) use report::ConflictReport;
pub(crate) use table::{ConflictTable, Loss, hottest};
pub use table::{HotKey, Rivalry};

use crate::attempt::WorkerId;

/// The worker over which an attempt loses, as a segment's header names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rival {
    pub(crate) worker: WorkerId,
    pub(crate) which: Which,
}

/// One of a worker's transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Which {
    /// The one that it runs.
    Running,
    /// The last one that has committed.
    Last,
    /// The one whose commit has this [number](crate::Protocol::commit_number).
    Commit(u64),
}

impl Rival {
    /// The worker with this number, whose running transaction has the segment.
    pub fn holder(worker: u32) -> Self {
        Self { worker: WorkerId(worker), which: Which::Running }
    }

    /// The worker with this number, which has changed the segment last and is over with that.
    pub fn writer(worker: u32) -> Self {
        Self { worker: WorkerId(worker), which: Which::Last }
    }

    /// As [`writer`](Self::writer), by the commit with this [number](crate::Protocol::commit_number).
    pub fn writer_by(worker: u32, commit: u64) -> Self {
        Self { worker: WorkerId(worker), which: Which::Commit(commit) }
    }
}

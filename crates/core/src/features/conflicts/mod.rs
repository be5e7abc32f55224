//! Lost conflicts: their report by key, and the transactions on both sides.
//!
//! A loss is counted by the worker that loses, in a table of its own ([`table`]). The other side is found only if the engine
//! [reports both sides](crate::Engine::report_both_sides): then each worker says which transaction it runs ([`origin`]), and the
//! loser asks the protocol whose worker holds or has changed the segment ([`Reports::rival`]).

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

use crate::kernel::attempt::{Attempt, WorkerId};
use crate::kernel::protocol::{Absent, Protocol};

/// A protocol whose headers tell the winner of a conflict ([`Protocol::Reports`]), for [reports](crate::Engine::report_both_sides).
pub trait Reports<P: Protocol>: Sized {
    /// The protocol whose headers tell; `None` if those of its variant do not.
    fn of(protocol: &P) -> Option<&Self>;

    /// Returns the worker over which an attempt loses that meets this header, as far as the header tells: the one that has the
    /// segment locked, or the one that has changed it last.
    fn rival(&self, attempt: &Attempt<P>, header: &P::Header) -> Option<Rival>;

    /// Returns a number that tells a worker's commits apart, by which [`rival`](Self::rival) names one of them. Known once
    /// [`prepare`](Protocol::prepare) has returned `Ok`.
    #[inline(always)]
    fn commit_number(&self, _attempt: &Attempt<P>) -> u64 {
        0
    }
}

impl<P: Protocol> Reports<P> for Absent {
    #[inline(always)]
    fn of(_protocol: &P) -> Option<&Self> {
        None
    }

    fn rival(&self, _attempt: &Attempt<P>, _header: &P::Header) -> Option<Rival> {
        match *self {}
    }
}

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
    /// The one whose commit has this [number](Reports::commit_number).
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

    /// As [`writer`](Self::writer), by the commit with this [number](Reports::commit_number).
    pub fn writer_by(worker: u32, commit: u64) -> Self {
        Self { worker: WorkerId(worker), which: Which::Commit(commit) }
    }
}

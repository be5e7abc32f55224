//! Interfaces between a run and its surroundings: progress reports, requests to end, facts about the machine.

use crate::latency::LatencySummary;
use crate::report::{HotRow, Machine};
use std::time::Duration;

/// A run while it goes on.
#[derive(Debug, Clone)]
pub struct LiveView {
    /// The time since the run began, warm-up included.
    pub elapsed: Duration,
    /// The time that the run takes, warm-up included.
    pub total: Duration,
    /// Transactions committed since the run began.
    pub commits: u64,
    /// Attempts lost since the run began.
    pub aborts: u64,
    /// The latency of the transactions that have committed since the last view; `None` if none has.
    pub latency_us: Option<LatencySummary>,
    /// The keys with the most conflicts since the run began.
    pub hot_rows: Vec<HotRow>,
}

/// Receiver of progress reports during a run.
pub trait Observer: Sync {
    /// Reports that `done` of `total` parts of the data are loaded. Several threads may call it.
    fn loading(&self, done: u64, total: u64);

    /// Reports progress: `elapsed` of `total`, warm-up included, and the number of commits since the run began.
    fn running(&self, elapsed: Duration, total: Duration, commits: u64);

    /// True if it wants to [see](Self::live) the run while it goes on. Then each transaction's latency is recorded once more.
    fn is_live(&self) -> bool {
        false
    }

    /// Shows the run as it is now. Called ten times a second, if it [wants](Self::is_live) that.
    fn live(&self, _now: LiveView) {}

    /// Returns a reason if the run must end at once (for example: the memory is used up). Called ten times a
    /// second.
    fn must_end(&self) -> Option<String> {
        None
    }
}

/// An observer that ignores every event.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unobserved;

impl Observer for Unobserved {
    fn loading(&self, _done: u64, _total: u64) {}
    fn running(&self, _elapsed: Duration, _total: Duration, _commits: u64) {}
}

/// Facts about the surroundings of a run that only the command knows, for the report.
pub trait Host {
    /// Returns the memory in use by the process now, in bytes.
    fn resident_bytes(&self) -> u64;

    /// Returns the description of the machine.
    fn machine(&self) -> Machine;

    /// Returns the source revision of the build.
    fn revision(&self) -> &str;
}

//! What a run tells the outside while it goes on, and what it asks of it.

use crate::report::Machine;
use std::time::Duration;

/// Somebody who watches a run.
pub trait Observer: Sync {
    /// `done` of `total` parts of the data are loaded. May be called by several threads.
    fn loading(&self, done: u64, total: u64);

    /// The run has gone on for `elapsed` of `total`, warm-up included, with so many commits since it began.
    fn running(&self, elapsed: Duration, total: Duration, commits: u64);

    /// Why the run must end at once, if it must: the machine's memory is used up. Asked ten times a second.
    fn must_end(&self) -> Option<String> {
        None
    }
}

/// An observer who looks away.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unobserved;

impl Observer for Unobserved {
    fn loading(&self, _done: u64, _total: u64) {}
    fn running(&self, _elapsed: Duration, _total: Duration, _commits: u64) {}
}

/// What a report says about the surroundings of a run, which only the command knows.
pub trait Host {
    /// The memory that the process has in use now, in bytes.
    fn resident_bytes(&self) -> u64;

    /// The machine.
    fn machine(&self) -> Machine;

    /// The source revision that was built.
    fn revision(&self) -> &str;
}

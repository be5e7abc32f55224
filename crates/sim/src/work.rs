//! The prices of plain work, which no model determines.

use serde::Deserialize;

/// A kind of plain work: work that touches no memory that cores share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Beginning and ending an attempt: the epoch's pin, the attempt's lists, the caller's counts.
    Attempt,
    /// Entering an operation of an object.
    Operation,
    /// Finding a segment in the tracking set, or adding it.
    Item,
    /// Logging a read.
    LoggedRead,
    /// Hashing a key and choosing its bucket.
    Hash,
    /// Searching a node of an ordered index for a key.
    NodeSearch,
    /// Installing a pending write, by the call of its object.
    Install,
    /// The fixed part of a commit.
    Commit,
    /// Allocating a block on the heap, and freeing it some time later.
    Allocation,
    /// Writing 64 bytes of a new value to memory of the thread's own.
    Fill,
    /// Drawing a random number.
    Draw,
    /// Recording an operation that runs later, and finding it again.
    RecordedOperation,
}

/// The prices of plain work, in units of the machine's [`work`](crate::Costs::work), which is a cycle. docs/simulator.md
/// says how the defaults were found.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WorkCycles {
    /// Beginning and ending an attempt: the epoch's pin, the attempt's lists, the caller's counts.
    pub attempt: u32,
    /// Entering an operation of an object.
    pub operation: u32,
    /// Finding a segment in the tracking set, or adding it.
    pub item: u32,
    /// Logging a read.
    pub logged_read: u32,
    /// Hashing a key and choosing its bucket.
    pub hash: u32,
    /// Searching a node of an ordered index for a key.
    pub node_search: u32,
    /// Installing a pending write, by the call of its object.
    pub install: u32,
    /// The fixed part of a commit.
    pub commit: u32,
    /// Allocating a block on the heap, and freeing it some time later.
    pub allocation: u32,
    /// Writing 64 bytes of a new value to memory of the thread's own.
    pub fill: u32,
    /// Drawing a random number.
    pub draw: u32,
    /// Recording an operation that runs later, and finding it again.
    pub recorded_operation: u32,
}

impl Default for WorkCycles {
    fn default() -> Self {
        Self {
            attempt: 70,
            operation: 60,
            item: 36,
            logged_read: 50,
            hash: 120,
            node_search: 50,
            install: 22,
            commit: 36,
            allocation: 450,
            fill: 70,
            draw: 24,
            recorded_operation: 60,
        }
    }
}

impl WorkCycles {
    /// The price of a kind of work.
    pub fn of(&self, work: Work) -> u32 {
        match work {
            Work::Attempt => self.attempt,
            Work::Operation => self.operation,
            Work::Item => self.item,
            Work::LoggedRead => self.logged_read,
            Work::Hash => self.hash,
            Work::NodeSearch => self.node_search,
            Work::Install => self.install,
            Work::Commit => self.commit,
            Work::Allocation => self.allocation,
            Work::Fill => self.fill,
            Work::Draw => self.draw,
            Work::RecordedOperation => self.recorded_operation,
        }
    }
}

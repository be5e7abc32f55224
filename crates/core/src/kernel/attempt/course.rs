//! The course of a transaction, as far as its attempt in progress knows it.

use hotrow_sync::clock::{self, Duration, Instant};

/// The place of an attempt among those of its transaction, and the time that is left.
#[derive(Debug, Default)]
pub(crate) struct Course {
    /// The number of earlier attempts of the same transaction.
    pub(crate) number: u32,
    /// True if its transaction makes no attempt after it.
    pub(crate) is_last: bool,
    /// See [`Attempt::is_interactive`](super::Attempt::is_interactive).
    pub(super) is_interactive: bool,
    /// Number of attempts that the worker's holder has shown.
    pub(super) serial: u64,
    /// The number of the thread whose name the holder shows.
    pub(super) thread: u64,
    /// The moment of its transaction's last loss.
    pub(crate) lost_since: Option<Instant>,
    pub(super) budget: WaitBudget,
}

/// The time that a transaction may still wait.
#[derive(Debug, Default)]
pub(super) struct WaitBudget {
    /// The policy's deadline.
    pub(super) limit: Option<Duration>,
    /// The moment at which it began to count.
    pub(super) since: Option<Instant>,
}

impl WaitBudget {
    pub(super) fn left(&mut self) -> Option<Duration> {
        let limit = self.limit?;
        if limit.is_zero() {
            return Some(limit);
        }
        let since = *self.since.get_or_insert_with(clock::now);
        Some(limit.saturating_sub(since.elapsed()))
    }
}

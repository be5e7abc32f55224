//! Retrying: how often, how long, how patiently, and who goes first.

mod gate;

pub(crate) use gate::{Elder, StarvationGate};

use std::time::Duration;

/// How much time a transaction may lose by aborts before it becomes an elder: then those that it stops lose less.
const LOST_MAX: Duration = Duration::from_secs(1);

/// What a transaction does when its attempt was aborted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// The most attempts before [`Error::Conflict`](crate::Error::Conflict). Default: no limit.
    pub attempts_max: u32,
    /// The time after the first abort, or the first wait (for a lock, or for a transaction that is let through), until
    /// [`Error::Timeout`](crate::Error::Timeout). Default: none. It bounds waits and is looked at between
    /// attempts; a body is not interrupted.
    pub deadline: Option<Duration>,
    /// The longest sleep between two attempts. A longer one wastes less work under contention and makes the
    /// tail of the latency longer. Default: 100 microseconds.
    pub backoff_max: Duration,
    /// After how many aborts a transaction asks the others to let it through; or, if that comes first, once its aborted
    /// attempts have taken a second together. `u32::MAX`: never. From then on no attempt begins but its own, for as
    /// long as an attempt of it takes that nobody disturbs, or a tenth of a second if that is longer. Others wait so long,
    /// make an attempt, and may have to wait again. A body that waits for another transaction to commit looks like one
    /// that takes long: it makes that one wait longer and longer, so set this to `u32::MAX` for it. Fewer aborts make the tail of the latency shorter and stop other
    /// transactions more often. Default: 24.
    pub escalate_after: u32,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            attempts_max: u32::MAX,
            deadline: None,
            backoff_max: Duration::from_micros(100),
            escalate_after: if cfg!(test) { 4 } else { 24 },
        }
    }
}

impl RetryPolicy {
    /// Whether a transaction might give up after so many attempts.
    #[inline]
    pub(crate) fn may_give_up_after(&self, attempts: u32) -> bool {
        attempts >= self.attempts_max || self.deadline.is_some()
    }

    /// True if a transaction becomes an elder after so many attempts, all aborted, which took so long.
    pub(crate) fn escalates_after(&self, attempts: u32, took: Duration) -> bool {
        attempts >= self.escalate_after || (took >= LOST_MAX && self.escalate_after != u32::MAX)
    }
}

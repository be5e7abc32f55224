//! Retries: they make a transaction of attempts. Admission, limits of attempts and of time, backoff, and escalation.

mod attempts;
mod body;
mod gate;
mod thread_workers;
mod transacting;

pub(crate) use body::{Known, Resolve, Returning};
pub(crate) use gate::{Elder, StarvationGate};
pub(crate) use transacting::{Inside, TransactionEnd};

use std::time::Duration;

/// The time that a transaction may lose by aborts before it becomes an elder. A limit keeps the time that others lose
/// to it small.
const LOST_MAX: Duration = Duration::from_secs(1);

/// The reaction of a transaction to an aborted attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// The maximum number of attempts before [`Error::Conflict`](crate::Error::Conflict). Default: no limit.
    pub attempts_max: u32,
    /// The time after the first abort, or the first wait (for a lock, or for an escalated transaction), until
    /// [`Error::Timeout`](crate::Error::Timeout). Default: none. It limits waits and is checked between attempts; a
    /// body is not interrupted.
    pub deadline: Option<Duration>,
    /// The longest sleep between two attempts. A longer one wastes less work under contention and makes the tail of the
    /// latency longer. Default: 100 microseconds.
    pub backoff_max: Duration,
    /// The number of aborts after which a transaction escalates, so that others let it through. It also escalates once
    /// its aborted attempts have taken a second together. `u32::MAX`: never. From then on only its own attempts begin,
    /// for as long as an undisturbed attempt of it takes, or a tenth of a second if that is longer. Others wait that
    /// long, make an attempt, and may have to wait again. A body that waits for another transaction to commit looks
    /// like a long one, and makes that other one wait longer and longer; set this to `u32::MAX` for it. Fewer aborts
    /// make the tail of the latency shorter and stop other transactions more often. Default: 24.
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
    /// True if a transaction might give up after this many attempts.
    #[inline]
    pub(crate) fn may_give_up_after(&self, attempts: u32) -> bool {
        attempts >= self.attempts_max || self.deadline.is_some()
    }

    /// True if a transaction becomes an elder after this many attempts, all aborted, that took this long together.
    pub(crate) fn escalates_after(&self, attempts: u32, took: Duration) -> bool {
        attempts >= self.escalate_after || (took >= LOST_MAX && self.escalate_after != u32::MAX)
    }
}

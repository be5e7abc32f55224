//! The course of a transaction: its place among its attempts, and the limits of its waits for others, a deadline and an order to end.
//!
//! A protocol asks for the limit before each wait ([`Attempt::wait_max`](crate::Attempt::wait_max)) and waits by
//! [`WaitLimit::wait_at`]. The transaction of a [session](crate::Session), and one that has asked for a
//! [`Canceller`](crate::Canceller), may be told to end while it waits. Nobody knows at which event it waits, so it looks by itself:
//! after a millisecond first, then after twice as long each time, and at last every [`LOOK_EVERY_MAX`]. All others sleep until they
//! are woken or the deadline passes, as their bodies are on the stack of the thread that waits, and nobody can tell them to end but for
//! the memory that they retain.

use crate::memory::retained::Holder;
use hotrow_sync::clock::{self, Duration, Instant};
use hotrow_sync::event::Event;

/// The place of an attempt among those of its transaction, and the time that is left.
#[derive(Debug, Default)]
pub(crate) struct Course {
    /// The number of earlier attempts of the same transaction.
    pub(crate) number: u32,
    /// True if its transaction makes no attempt after it.
    pub(crate) is_last: bool,
    /// See [`Attempt::is_interactive`](crate::Attempt::is_interactive).
    pub(crate) is_interactive: bool,
    /// True if somebody may tell it to end while it waits.
    pub(crate) may_be_told: bool,
    /// The policy's deadline, or an earlier one of its own.
    pub(crate) deadline: Option<Duration>,
    /// The number of the thread whose name the holder shows.
    pub(crate) thread: u64,
    /// The moment of its transaction's last loss.
    pub(crate) lost_since: Option<Instant>,
    pub(crate) budget: WaitBudget,
}

impl Course {
    /// Gives it a deadline. No wait has counted yet.
    pub(crate) fn set_deadline(&mut self, deadline: Option<Duration>) {
        self.deadline = deadline;
        self.budget = WaitBudget { limit: deadline, since: None };
    }

    /// Makes this its deadline, if it has no earlier one.
    pub(crate) fn lower_deadline(&mut self, deadline: Duration) {
        for limit in [&mut self.deadline, &mut self.budget.limit] {
            *limit = Some(limit.map_or(deadline, |limit| limit.min(deadline)));
        }
    }

    /// True if it has waited until its deadline.
    pub(crate) fn is_out_of_time(&mut self) -> bool {
        self.budget.since.is_some() && self.budget.left() == Some(Duration::ZERO)
    }
}

/// The time that a transaction may still wait.
#[derive(Debug, Default)]
pub(crate) struct WaitBudget {
    /// The transaction's deadline; for an attempt of a future, the time that it may keep its thread.
    pub(crate) limit: Option<Duration>,
    /// The moment at which it began to count: that of the first wait.
    pub(crate) since: Option<Instant>,
}

impl WaitBudget {
    pub(crate) fn left(&mut self) -> Option<Duration> {
        let limit = self.limit?;
        if limit.is_zero() {
            return Some(limit);
        }
        let since = *self.since.get_or_insert_with(clock::now);
        Some(limit.saturating_sub(since.elapsed()))
    }
}

/// The first and the longest time after which a waiting transaction that may be cancelled looks if it was.
const LOOK_EVERY_MIN: Duration = Duration::from_millis(1);
/// See [`LOOK_EVERY_MIN`].
const LOOK_EVERY_MAX: Duration = Duration::from_millis(8);

/// The limit of a wait for other transactions.
#[derive(Debug, Clone, Copy)]
pub struct WaitLimit {
    time: Option<Duration>,
    /// The holder of an attempt that may be cancelled.
    cancellable: Option<&'static Holder>,
}

impl WaitLimit {
    /// A wait of any length.
    pub const NONE: WaitLimit = WaitLimit { time: None, cancellable: None };

    pub(crate) fn new(time: Option<Duration>, cancellable: Option<&'static Holder>) -> Self {
        Self { time, cancellable }
    }

    /// The longest time of the wait; `None` if it is unlimited.
    pub fn time(self) -> Option<Duration> {
        self.time
    }

    /// True if the transaction must not wait at all, or not any more.
    pub fn is_over(self) -> bool {
        self.time == Some(Duration::ZERO) || self.is_cancelled()
    }

    /// True if the transaction was told to end.
    pub fn is_cancelled(self) -> bool {
        self.cancellable.is_some_and(Holder::is_told)
    }

    /// The same limit, but at most this time.
    #[must_use]
    pub fn at_most(self, time: Duration) -> Self {
        Self { time: Some(self.time.map_or(time, |limit| limit.min(time))), ..self }
    }

    /// Waits at an event until `condition` holds or the limit has passed; first spins if `spins`. Returns the last value of
    /// the condition.
    pub fn wait_at(self, event: &Event, spins: bool, condition: impl FnMut() -> bool) -> bool {
        match (self.cancellable, self.time) {
            (Some(holder), time) => wait_and_look(holder, time, event, condition),
            (None, time) if !spins => event.park_until(time, condition),
            (None, Some(time)) => event.wait_timeout(time, condition),
            (None, None) => {
                event.wait_until(condition);
                true
            }
        }
    }
}

impl From<Option<Duration>> for WaitLimit {
    fn from(time: Option<Duration>) -> Self {
        Self { time, cancellable: None }
    }
}

#[cold]
fn wait_and_look(
    holder: &'static Holder,
    time: Option<Duration>,
    event: &Event,
    mut condition: impl FnMut() -> bool,
) -> bool {
    let began = clock::now();
    let mut pause = LOOK_EVERY_MIN;
    loop {
        let left = time.map_or(pause, |time| time.saturating_sub(began.elapsed()).min(pause));
        if event.park_until(Some(left), &mut condition) {
            return true;
        }
        if holder.is_told() || time.is_some_and(|time| began.elapsed() >= time) {
            return false;
        }
        pause = (2 * pause).min(LOOK_EVERY_MAX);
    }
}

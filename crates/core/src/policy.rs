//! Retrying: how often, how long, how patiently, and who goes first.

use hotrow_sync::atomic::{AtomicU64, Ordering};
use hotrow_sync::event::Event;
use hotrow_sync::{Mutex, lock};
use std::collections::BTreeSet;
use std::time::Duration;

/// What a transaction does when its attempt was aborted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// The most attempts before [`Error::Conflict`](crate::Error::Conflict). Default: no limit.
    pub attempts_max: u32,
    /// The time after the first abort, or the first wait for a lock, until
    /// [`Error::Timeout`](crate::Error::Timeout). Default: none. It bounds waits and is looked at between
    /// attempts; a body is not interrupted.
    pub deadline: Option<Duration>,
    /// The longest sleep between two attempts. A longer one wastes less work under contention and makes the
    /// tail of the latency longer. Default: 100 microseconds.
    pub backoff_max: Duration,
    /// After how many aborts a transaction asks the others to let it through: from then on no attempt
    /// begins but its own, once no older one is waiting. Fewer make the tail shorter and stop other
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
}

/// The gate through which the oldest transaction goes first, whatever the protocol.
///
/// A transaction that was aborted too often becomes an *elder*. While there are elders, no attempt begins
/// but those of the oldest of them: the attempts in progress end, and then it runs alone. Since each worker
/// has at most one attempt in progress, an elder that has become the oldest is aborted at most once per other worker
/// by what that one commits, and more often only by what one of these attempts holds, or by its age, until it ends.
///
/// Nobody holds anything while waiting here. A wait ends after [`GATE_WAIT_MAX`] at the latest, so that an
/// elder whose body never ends does not stop the others for ever.
#[derive(Debug, Default)]
pub(crate) struct Elders {
    /// The ticket of the oldest elder; 0 for none.
    oldest: AtomicU64,
    /// Tickets are drawn when a transaction escalates, so the smaller one belongs to the older elder.
    tickets: AtomicU64,
    waiting: Mutex<BTreeSet<u64>>,
    event: Event,
}

const GATE_WAIT_MAX: Duration = Duration::from_millis(100);

impl Elders {
    /// Waits until no elder is older than `mine`.
    #[inline]
    pub(crate) fn pass(&self, mine: Option<&Elder<'_>>) {
        // Acquire: pairs with the release in `publish`; what the elder did before it left is then visible,
        // which nobody relies on, but the load is free on all machines that matter.
        let oldest = self.oldest.load(Ordering::Acquire);
        if oldest != 0 {
            let ticket = mine.map_or(0, |elder| elder.ticket);
            if oldest != ticket {
                self.wait(ticket);
            }
        }
    }

    #[cold]
    fn wait(&self, ticket: u64) {
        self.event.wait_timeout(GATE_WAIT_MAX, || {
            let oldest = self.oldest.load(Ordering::Acquire);
            oldest == 0 || oldest == ticket
        });
    }

    /// Makes the caller's transaction an elder until the returned value is dropped.
    pub(crate) fn escalate(&self) -> Elder<'_> {
        // Relaxed: the mutex below orders the sets.
        let ticket = self.tickets.fetch_add(1, Ordering::Relaxed) + 1;
        let mut waiting = lock(&self.waiting);
        waiting.insert(ticket);
        self.publish(&waiting);
        drop(waiting);
        Elder { elders: self, ticket }
    }

    fn publish(&self, waiting: &BTreeSet<u64>) {
        self.oldest.store(waiting.first().copied().unwrap_or(0), Ordering::Release);
    }
}

/// A transaction that goes first once no older elder is left.
#[derive(Debug)]
pub(crate) struct Elder<'a> {
    elders: &'a Elders,
    ticket: u64,
}

impl Drop for Elder<'_> {
    fn drop(&mut self) {
        let mut waiting = lock(&self.elders.waiting);
        waiting.remove(&self.ticket);
        self.elders.publish(&waiting);
        drop(waiting);
        self.elders.event.notify_all();
    }
}

#[cfg(all(test, loom))]
mod models;

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_elder_passes_and_the_next_one_after_it() {
        let elders = Elders::default();
        elders.pass(None);
        let first = elders.escalate();
        let second = elders.escalate();
        elders.pass(Some(&first));
        assert_eq!(elders.oldest.load(Ordering::Relaxed), first.ticket);
        drop(first);
        elders.pass(Some(&second));
        drop(second);
        assert_eq!(elders.oldest.load(Ordering::Relaxed), 0);
        elders.pass(None);
    }

    #[test]
    fn a_wait_at_the_gate_ends_even_if_the_elder_stays() {
        let elders = Elders::default();
        let elder = elders.escalate();
        elders.pass(None);
        drop(elder);
    }
}

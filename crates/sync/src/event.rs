//! Waiting for a condition: spin, then park.

use crate::atomic::{AtomicU32, Ordering, fence};
use crate::clock::{Instant, now};
use crate::{Condvar, Mutex, lock, spin::Spin};
use std::time::Duration;

/// An event on which threads wait until a condition over atomic words holds.
///
/// # Algorithm
///
/// A waiter spins briefly. Then it announces itself in `waiters`, checks the condition once more, and parks. A
/// notifier changes the words first and then calls [`Event::notify_all`], which loads `waiters` and, only if
/// there are any, takes the mutex and wakes all. So a notifier without waiters pays one fence and one load.
///
/// # No lost wake-ups
///
/// Waiter: store `waiters`, fence, load condition. Notifier: store condition, fence, load `waiters`. The two
/// sequentially consistent fences are totally ordered, so at least one of the two threads sees the other's store
/// (store buffering is excluded). If the notifier sees the waiter, it takes the mutex, which the waiter holds from
/// before its last check until it is parked.
#[derive(Debug, Default)]
pub struct Event {
    waiters: AtomicU32,
    mutex: Mutex<()>,
    condvar: Condvar,
}

impl Event {
    /// An event with no waiters.
    pub fn new() -> Self {
        Self::default()
    }

    /// Waits until `condition` holds. Spins briefly, then parks.
    pub fn wait_until(&self, condition: impl FnMut() -> bool) {
        self.wait_until_or(None, condition);
    }

    /// Waits until `condition` holds or `timeout` has passed. Returns the last value of `condition`.
    pub fn wait_timeout(&self, timeout: Duration, condition: impl FnMut() -> bool) -> bool {
        self.wait_until_or(Some(timeout), condition)
    }

    fn wait_until_or(&self, timeout: Option<Duration>, mut condition: impl FnMut() -> bool) -> bool {
        let mut spin = Spin::new();
        loop {
            if condition() {
                return true;
            }
            if !spin.turn() {
                return self.park_until(timeout, condition);
            }
        }
    }

    /// Waits until `condition` holds or `timeout`, if given, has passed, without spinning. Returns the last value of
    /// `condition`.
    pub fn park_until(&self, timeout: Option<Duration>, mut condition: impl FnMut() -> bool) -> bool {
        let deadline = timeout.map(|timeout| now() + timeout).filter(|deadline| *deadline != Instant::NEVER);
        let mut guard = lock(&self.mutex);
        // The fence below orders it before the check of the condition. Release: pairs with `has_parked`.
        self.waiters.fetch_add(1, Ordering::Release);
        // Pairs with the fence in `notify_all`.
        fence(Ordering::SeqCst);
        let _announced = Announced(&self.waiters);
        let mut met = condition();
        while !met {
            guard = match deadline {
                None => self.condvar.wait(guard).unwrap_or_else(std::sync::PoisonError::into_inner),
                Some(deadline) => {
                    let left = deadline.saturating_duration_since(now());
                    if left.is_zero() {
                        break;
                    }
                    self.condvar
                        .wait_timeout(guard, left)
                        .unwrap_or_else(std::sync::PoisonError::into_inner)
                        .0
                }
            };
            met = condition();
        }
        met
    }

    /// True if any waiter is past spinning and not awake yet. It may be about to check its condition for the last time
    /// before it parks.
    pub fn has_parked(&self) -> bool {
        // Sequentially consistent, so that it is ordered with other words by which a caller decides about a waiter.
        self.waiters.load(Ordering::SeqCst) != 0
    }

    /// Wakes all waiters, which then check their conditions. Call it after changing the words. Returns true if any
    /// waiter was past spinning.
    pub fn notify_all(&self) -> bool {
        // Pairs with the fence in `wait_until_or`.
        fence(Ordering::SeqCst);
        let parked = self.waiters.load(Ordering::Relaxed) != 0;
        if parked {
            drop(lock(&self.mutex));
            self.condvar.notify_all();
        }
        parked
    }
}

/// A waiter that counts, until its wait ends, be it by a panic of its condition.
struct Announced<'a>(&'a AtomicU32);

impl Drop for Announced<'_> {
    fn drop(&mut self) {
        // Relaxed: a notifier that still counts this waiter makes a needless wake-up, nothing else.
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(all(test, loom))]
mod models;

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::atomic::AtomicU64;
    use crate::thread;

    #[test]
    fn a_condition_that_holds_needs_no_wait() {
        Event::new().wait_until(|| true);
    }

    #[test]
    fn a_timeout_ends_a_wait() {
        assert!(!Event::new().wait_timeout(Duration::from_millis(1), || false));
    }

    #[test]
    fn the_longest_timeout_is_none() {
        let open = AtomicU64::new(0);
        let event = Event::new();
        thread::scope(|scope| {
            let waits = || event.park_until(Some(Duration::MAX), || open.load(Ordering::Acquire) == 1);
            let waiter = scope.spawn(waits);
            open.store(1, Ordering::Release);
            event.notify_all();
            assert!(waiter.join().unwrap());
        });
    }

    #[test]
    fn a_condition_that_panics_leaves_nobody_who_counts_as_waiting() {
        let event = Event::new();
        let wait = std::panic::AssertUnwindSafe(|| event.park_until(None, || panic!("planned")));
        std::panic::catch_unwind(wait).unwrap_err();
        assert!(!event.has_parked());
        assert!(event.park_until(None, || true), "the mutex is free");
    }

    #[test]
    fn two_threads_hand_a_turn_back_and_forth() {
        let turn = AtomicU64::new(0);
        let event = Event::new();
        thread::scope(|scope| {
            for me in 0..2u64 {
                let (turn, event) = (&turn, &event);
                scope.spawn(move || {
                    for round in 0..2_000u64 {
                        event.wait_until(|| turn.load(Ordering::Acquire) == round * 2 + me);
                        turn.store(round * 2 + me + 1, Ordering::Release);
                        event.notify_all();
                    }
                });
            }
        });
        assert_eq!(turn.into_inner(), 4_000);
    }

    #[test]
    fn eight_waiters_are_all_woken() {
        let open = AtomicU64::new(0);
        let event = Event::new();
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| event.wait_until(|| open.load(Ordering::Acquire) == 1));
            }
            open.store(1, Ordering::Release);
            event.notify_all();
        });
    }
}

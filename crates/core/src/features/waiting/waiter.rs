//! The waiting transaction, as those that wake it see it.

use crate::memory::users_code::contained;
use hotrow_sync::atomic::{AtomicU32, Ordering};
use hotrow_sync::event::Event;
use hotrow_sync::{Mutex, lock};
use std::task::{Context, Waker};
use std::time::Duration;

/// Nothing that it watches has changed since it [began](Waiter::begin).
const QUIET: u32 = 0;
/// Something may have.
const CHANGED: u32 = 1;
/// Nothing has, and its thread counts as parked.
const PARKED: u32 = 2;

/// A transaction that waits for a change, or is going to.
#[derive(Debug, Default)]
pub(crate) struct Waiter {
    state: AtomicU32,
    event: Event,
    /// The task to wake, if the transaction waits as a task.
    waker: Mutex<Option<Waker>>,
}

impl Waiter {
    /// True if something that it watches may have changed since it [began](Self::begin).
    pub(crate) fn is_changed(&self) -> bool {
        // Acquire: pairs with the release in `tell`, so that the next attempt sees what has changed at least as it was then.
        self.state.load(Ordering::Acquire) == CHANGED
    }

    /// Begins to note changes. No entry is in the registry.
    pub(crate) fn begin(&self) {
        // Relaxed: the mutex of each list orders it before the entries that are made from now on.
        self.state.store(QUIET, Ordering::Relaxed);
    }

    /// Tells it that something has changed, and wakes it. Runs users' code, the task's waker: nothing must be held. `count_no_more` is
    /// called before it can go on if it counts as parked, so that nobody who counts finds it asleep that is not.
    pub(super) fn tell(&self, count_no_more: impl Fn()) {
        // Acquire and release: pairs with the acquire in `is_changed`.
        while let Err(seen) = self.state.compare_exchange(QUIET, CHANGED, Ordering::AcqRel, Ordering::Acquire)
        {
            match seen {
                CHANGED => return,
                _ if self.end_parking() => count_no_more(),
                _ => {}
            }
        }
        self.event.notify_all();
        let waker = lock(&self.waker).take();
        if let Some(waker) = waker {
            contained(|| waker.wake());
        }
    }

    /// Makes it count as parked. False if something has changed.
    pub(super) fn begin_parking(&self) -> bool {
        self.state.compare_exchange(QUIET, PARKED, Ordering::SeqCst, Ordering::Acquire).is_ok()
    }

    /// Makes it count as parked no longer. False if it does not.
    pub(super) fn end_parking(&self) -> bool {
        self.state.compare_exchange(PARKED, QUIET, Ordering::SeqCst, Ordering::Acquire).is_ok()
    }

    /// True if something has changed; otherwise the context's task is woken when it does.
    pub(crate) fn poll(&self, context: &Context<'_>) -> bool {
        if self.is_changed() {
            return true;
        }
        let mut waker = lock(&self.waker);
        if !waker.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
            let old = waker.replace(context.waker().clone());
            drop(waker);
            drop(old);
        } else {
            drop(waker);
        }
        // `tell` sets the word before it takes the waker, under the mutex.
        self.is_changed()
    }

    /// Parks the thread until something has changed, or this time has passed. True if something has changed.
    pub(crate) fn park(&self, time_max: Option<Duration>) -> bool {
        self.event.park_until(time_max, || self.is_changed())
    }
}

//! The waiting transaction, as those that wake it see it.

use crate::users_code::contained;
use hotrow_sync::atomic::{AtomicU32, Ordering};
use hotrow_sync::event::Event;
use hotrow_sync::{Mutex, lock};
use std::task::{Context, Waker};
use std::time::Duration;

/// A transaction that waits for a change, or is going to.
#[derive(Debug, Default)]
pub(crate) struct Waiter {
    /// 1 if something that it watches has changed.
    changed: AtomicU32,
    event: Event,
    /// The task to wake, if the transaction waits as a task.
    waker: Mutex<Option<Waker>>,
}

impl Waiter {
    /// True if something that it watches may have changed since it [began](Self::begin).
    pub(crate) fn is_changed(&self) -> bool {
        // Acquire: pairs with the release in `tell`, so that the next attempt sees what has changed at least as it was then.
        self.changed.load(Ordering::Acquire) != 0
    }

    /// Begins to note changes. No entry is in the registry.
    pub(crate) fn begin(&self) {
        // Relaxed: the mutex of each list orders it before the entries that are made from now on.
        self.changed.store(0, Ordering::Relaxed);
    }

    /// Tells it that something has changed, and wakes it. Runs users' code, the task's waker: nothing must be held.
    pub(crate) fn tell(&self) {
        // Release: pairs with the acquire in `is_changed`.
        if self.changed.swap(1, Ordering::AcqRel) == 0 {
            self.event.notify_all();
            let waker = lock(&self.waker).take();
            if let Some(waker) = waker {
                contained(|| waker.wake());
            }
        }
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

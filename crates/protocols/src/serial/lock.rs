//! The lock of an engine under `serial`: one word, and a queue of threads that have stopped spinning.
//!
//! # Taking and passing
//!
//! The lock is free if [`HELD`] is not set. A newcomer takes a free lock at once, even past the queue: the thread at its
//! head may take long to wake, and the lock would be idle meanwhile. A newcomer that finds it taken spins for a while,
//! and then queues and parks at its own event.
//!
//! The thread that releases the lock wakes the head of the queue, once ([`TOLD`]). Only the head takes the lock from the
//! queue. If others were faster [`PASSED_MAX`] times, the head *reserves* the lock ([`RESERVED`]): no newcomer takes it
//! until the head has had it. So every thread gets the lock after a bounded number of transactions.
//!
//! # No lost wake-ups
//!
//! All changes of the word are read-modify-writes, so they have one order. A release either comes after the head's
//! thread has set [`QUEUED`] and wakes the head, or comes before, and then the head finds the lock free before it parks.
//! A release that leaves the waking to an earlier one finds [`TOLD`] set: the head has not looked since, and looks
//! again, because it clears [`TOLD`] with the same operation by which it finds the lock taken.

use crate::queue_place::QueuePlace;
use crate::worker_states::{AttemptStamp, SpinPolicy, Waited, WorkerStates};
use crossbeam_utils::CachePadded;
use hotrow_core::{Attempt, Protocol, WaitLimit};
use hotrow_sync::atomic::{AtomicU32, AtomicU64, Ordering};
use hotrow_sync::spin::Spin;
use hotrow_sync::{Mutex, MutexGuard, lock, thread};
use std::collections::VecDeque;

/// A transaction holds the lock.
const HELD: u64 = 1;
/// There are threads in the queue.
const QUEUED: u64 = 2;
/// The head of the queue was woken, and has not found the lock taken since.
const TOLD: u64 = 4;
/// The next to take the lock is the head of the queue.
const RESERVED: u64 = 8;

/// The bits above the others: the number of the holder's thread.
const THREAD_SHIFT: u32 = 4;

/// Number of times that the head of the queue may wake up in vain.
const PASSED_MAX: u32 = if cfg!(any(test, loom)) { 1 } else { 8 };

/// Number of times that a newcomer may see the lock free and be too late for it, before it queues.
const RACES: u32 = 4;

/// The head of an empty queue.
const NOBODY: u32 = u32::MAX;

/// A holder of the lock: [`HELD`], and the thread's number. It is added to the word, and subtracted at the release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Holder(u64);

impl Holder {
    /// An attempt that does without the lock, in a region.
    pub(crate) const ELIDED: Self = Self(0);

    #[inline(always)]
    pub(crate) fn on_thread(number: u64) -> Self {
        Self(number << THREAD_SHIFT | HELD)
    }
}

#[derive(Debug)]
pub(crate) struct EngineLock {
    word: CachePadded<AtomicU64>,
    queue: Queue,
}

#[derive(Debug)]
struct Queue {
    /// The worker at the head. Written under the mutex.
    head: AtomicU32,
    /// The workers in the queue. Bits of the word other than the holder's are set under this mutex, too.
    workers: Mutex<VecDeque<u32>>,
    /// The events at which they park.
    states: WorkerStates,
}

impl EngineLock {
    pub(crate) fn new() -> Self {
        let states = WorkerStates::new(SpinPolicy::SPINNING);
        let queue = Queue { head: AtomicU32::new(NOBODY), workers: Mutex::new(VecDeque::new()), states };
        Self { word: CachePadded::default(), queue }
    }

    /// Takes the lock if it is free, unless it is reserved for the head of the queue.
    #[inline(always)]
    pub(crate) fn try_lock(&self, holder: Holder) -> bool {
        // Acquire: pairs with the release in `unlock`; the installations of all earlier holders happen before.
        self.word.compare_exchange(0, holder.0, Ordering::Acquire, Ordering::Relaxed).is_ok()
            || self.take_past_queue(holder)
    }

    /// True if nobody has the lock, and it is reserved for nobody. A region that has looked is aborted when somebody takes it.
    #[inline]
    pub(crate) fn is_free(&self) -> bool {
        // Acquire: as in `try_lock`, for what earlier holders have installed. (The region's beginning is a full fence besides.)
        self.word.load(Ordering::Acquire) & (HELD | RESERVED) == 0
    }

    /// Waits, without a place in the queue, until the lock is free. False if that takes too long.
    pub(crate) fn wait_until_free(&self, mut wait_max: impl FnMut() -> WaitLimit) -> bool {
        let mut spin = Spin::new();
        while !self.is_free() {
            if !spin.turn() {
                if wait_max().is_over() {
                    return false;
                }
                // Its holder does not run, or waits itself.
                thread::yield_now();
            }
        }
        true
    }

    /// Releases the lock. Only its holder may call it.
    #[inline(always)]
    pub(crate) fn unlock(&self, holder: Holder) {
        // Release: pairs with the acquire in `try_lock` and `take`.
        let before = self.word.fetch_sub(holder.0, Ordering::Release);
        // INVARIANT 24: A lock is released by its holder, once.
        debug_assert_eq!(Self::holder(before), holder, "released by its holder, once");
        if before & (QUEUED | TOLD) == QUEUED {
            self.wake_head();
        }
    }

    /// True if this holder has the lock.
    pub(crate) fn is_held_by(&self, holder: Holder) -> bool {
        // Relaxed: it is in the word from when the thread takes the lock until it releases it, so the thread itself, which
        // alone asks, sees it then and only then.
        Self::holder(self.word.load(Ordering::Relaxed)) == holder
    }

    fn holder(word: u64) -> Holder {
        Holder(word & !(QUEUED | TOLD | RESERVED))
    }

    /// Gives a worker's attempt the identity under which it waits.
    pub(crate) fn begin_wait<P: Protocol>(&self, attempt: &Attempt<P>, last: AttemptStamp) -> AttemptStamp {
        self.queue.states.begin(attempt, last, || 0)
    }

    /// Waits for the lock and takes it. `wait_max` tells how long it may wait from now on. False if that has passed.
    pub(crate) fn wait(
        &self,
        stamp: AttemptStamp,
        holder: Holder,
        mut wait_max: impl FnMut() -> WaitLimit,
    ) -> bool {
        let Queue { head, workers, states } = &self.queue;
        let worker = stamp.worker();
        if wait_max().is_over() {
            return false;
        }
        let is_free = || self.word.load(Ordering::Relaxed) & (HELD | RESERVED) == 0;
        for _ in 0..RACES {
            if !states.spin_until(is_free, is_free) {
                break;
            }
            if self.take_past_queue(holder) {
                return true;
            }
        }
        let mut waiting = lock(workers);
        waiting.push_back(worker);
        self.set_head(&waiting);
        // Relaxed: it only has to come before the looks below in the word's order.
        self.word.fetch_or(QUEUED, Ordering::Relaxed);
        drop(waiting);
        let place = QueuePlace::new(|| self.leave(lock(workers), worker));
        let mut passed = 0;
        loop {
            let is_head = || head.load(Ordering::Acquire) == worker;
            let hint = || is_head() && self.word.load(Ordering::Relaxed) & HELD == 0;
            let over = || is_head() && self.is_free_for_head(&mut passed);
            let waited = states.wait_at_most(wait_max(), worker, stamp, hint, over);
            let mut waiting = lock(workers);
            if waiting.front() == Some(&worker) && self.take_as_head(&mut waiting, holder) {
                place.keep();
                return true;
            }
            if waited == Waited::TimedOut {
                place.keep();
                self.leave(waiting, worker);
                return false;
            }
        }
    }

    /// Takes a free lock, whether there are threads in the queue or not, unless it is reserved.
    #[cold]
    #[inline(never)]
    fn take_past_queue(&self, holder: Holder) -> bool {
        let mut seen = self.word.load(Ordering::Relaxed);
        while seen & (HELD | RESERVED) == 0 {
            match self.take(seen, seen | holder.0) {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
        false
    }

    fn take(&self, seen: u64, taken: u64) -> Result<u64, u64> {
        // Acquire: as in `try_lock`.
        self.word.compare_exchange_weak(seen, taken, Ordering::Acquire, Ordering::Relaxed)
    }

    /// True if the lock is free. Otherwise lets the next release wake the head again, and reserves the lock if the head
    /// has woken in vain too often. Only the head calls it.
    fn is_free_for_head(&self, passed: &mut u32) -> bool {
        let seen = self.word.load(Ordering::Relaxed);
        if seen & (HELD | TOLD) != HELD | TOLD {
            return seen & HELD == 0;
        }
        *passed += 1;
        if *passed >= PASSED_MAX {
            self.word.fetch_or(RESERVED, Ordering::Relaxed);
        }
        self.word.fetch_and(!TOLD, Ordering::Relaxed) & HELD == 0
    }

    /// Takes the lock if it is free, and leaves the queue. Only the head calls it.
    fn take_as_head(&self, waiting: &mut VecDeque<u32>, holder: Holder) -> bool {
        let mut seen = self.word.load(Ordering::Relaxed);
        while seen & HELD == 0 {
            match self.take(seen, if waiting.len() > 1 { holder.0 | QUEUED } else { holder.0 }) {
                Ok(_) => {
                    waiting.pop_front();
                    self.set_head(waiting);
                    return true;
                }
                Err(now) => seen = now,
            }
        }
        false
    }

    /// Leaves the queue without the lock.
    #[cold]
    fn leave(&self, mut waiting: MutexGuard<'_, VecDeque<u32>>, worker: u32) {
        let was_head = waiting.front() == Some(&worker);
        waiting.retain(|waiting| *waiting != worker);
        self.set_head(&waiting);
        if waiting.is_empty() {
            self.word.fetch_and(!(QUEUED | TOLD | RESERVED), Ordering::Relaxed);
        } else if was_head {
            // The lock may be free and the next head not know it: the wake-up, and the reservation, were for this one.
            self.word.fetch_and(!(TOLD | RESERVED), Ordering::Relaxed);
            self.tell(&waiting);
        }
    }

    #[cold]
    #[inline(never)]
    fn wake_head(&self) {
        self.tell(&lock(&self.queue.workers));
    }

    /// Wakes the head of the queue.
    fn tell(&self, waiting: &VecDeque<u32>) {
        if let Some(head) = waiting.front() {
            // Relaxed: the event makes it visible to the head.
            self.word.fetch_or(TOLD, Ordering::Relaxed);
            self.queue.states.tell_at(*head);
        }
    }

    fn set_head(&self, waiting: &VecDeque<u32>) {
        let head = waiting.front().copied().unwrap_or(NOBODY);
        // Release: pairs with the acquire load in `wait`.
        self.queue.head.store(head, Ordering::Release);
    }
}

#[cfg(all(test, loom))]
mod models;

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use hotrow_sync::atomic::AtomicU64;
    use hotrow_sync::clock::Duration;
    use hotrow_sync::thread;

    impl EngineLock {
        fn lock(&self, worker: u32) -> Holder {
            let stamp = self.queue.states.enter_next(AttemptStamp::default(), worker, 0);
            let holder = Holder::on_thread(u64::from(worker) + 1);
            assert!(self.try_lock(holder) || self.wait(stamp, holder, || WaitLimit::NONE));
            holder
        }
    }

    const MAIN: Holder = Holder(HELD);

    #[test]
    fn a_wait_without_time_ends_at_once_and_leaves_nothing_behind() {
        let lock = EngineLock::new();
        assert!(lock.try_lock(MAIN) && lock.is_held_by(MAIN));
        let stamp = lock.queue.states.enter_next(AttemptStamp::default(), 0, 0);
        for limit in [Duration::ZERO, Duration::from_millis(1)] {
            let other = Holder::on_thread(7);
            assert!(!lock.try_lock(other) && !lock.is_held_by(other));
            assert!(!lock.wait(stamp, other, || Some(limit).into()));
            assert_eq!(lock.word.load(Ordering::SeqCst), MAIN.0);
        }
        lock.unlock(MAIN);
        assert!(lock.try_lock(MAIN));
    }

    #[test]
    fn a_wait_that_panics_leaves_nothing_behind() {
        let lock = EngineLock::new();
        assert!(lock.try_lock(MAIN));
        let stamp = lock.queue.states.enter_next(AttemptStamp::default(), 0, 0);
        let mut asked = 0;
        let wait_max = || {
            asked += 1;
            assert!(asked == 1, "planned");
            WaitLimit::NONE
        };
        let wait = std::panic::AssertUnwindSafe(|| lock.wait(stamp, Holder::on_thread(7), wait_max));
        std::panic::catch_unwind(wait).unwrap_err();
        assert_eq!(lock.word.load(Ordering::SeqCst), MAIN.0);
        lock.unlock(MAIN);
        assert!(lock.try_lock(MAIN));
    }

    #[test]
    fn a_thread_that_wakes_in_vain_is_the_next_to_take_the_lock() {
        let lock = EngineLock::new();
        let had = AtomicU64::new(0);
        assert!(lock.try_lock(MAIN));
        thread::scope(|scope| {
            scope.spawn(|| {
                let holder = lock.lock(0);
                had.store(1, Ordering::SeqCst);
                lock.unlock(holder);
            });
            // As if one after the other took the lock before the head of the queue is awake.
            while lock.word.load(Ordering::SeqCst) & RESERVED == 0 {
                lock.wake_head();
                thread::yield_now();
            }
            assert_eq!(had.load(Ordering::SeqCst), 0);
            lock.unlock(MAIN);
            while !lock.try_lock(MAIN) {
                thread::yield_now();
            }
            assert_eq!(had.load(Ordering::SeqCst), 1, "it was taken past the head of the queue");
            lock.unlock(MAIN);
        });
        assert_eq!(lock.word.load(Ordering::SeqCst), 0);
    }

    #[test]
    fn eight_threads_count_under_the_lock_and_lose_nothing() {
        const EACH: u64 = 20_000;
        let (lock, number) = (EngineLock::new(), AtomicU64::new(0));
        thread::scope(|scope| {
            for worker in 0..8 {
                let (lock, number) = (&lock, &number);
                scope.spawn(move || {
                    for _ in 0..EACH {
                        let holder = lock.lock(worker);
                        let seen = number.load(Ordering::Relaxed);
                        number.store(seen + 1, Ordering::Relaxed);
                        lock.unlock(holder);
                    }
                });
            }
        });
        assert_eq!(number.into_inner(), 8 * EACH);
        assert_eq!(lock.word.load(Ordering::SeqCst), 0);
    }
}

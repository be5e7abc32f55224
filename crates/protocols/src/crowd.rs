//! Whether there are more workers at work than can run at once, which decides how others wait for them.

use hotrow_sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use hotrow_sync::{Mutex, clock, thread, try_lock};
use std::ops::Range;

/// The workers of an engine, as far as they are at work: each shows a word that changes with every attempt or commit.
///
/// Workers that have once worked are not enough: the thread that loads the data and starts the others has a worker, too,
/// and does nothing afterwards.
#[derive(Debug, Default)]
pub(crate) struct Crowd {
    /// One more than the highest number of a worker that has begun to work.
    workers_end: AtomicU32,
    is_large: AtomicBool,
    /// The time of the next count, in nanoseconds of the clock.
    next_ns: AtomicU64,
    /// The words of the last count.
    words: Mutex<Vec<u64>>,
}

/// The time from one count to the next: several time slices, so that each thread that has work runs meanwhile.
const EVERY_NS: u64 = 10_000_000;
/// As [`EVERY_NS`], on virtual cores, which have no time slices.
const EVERY_VIRTUAL_NS: u64 = 100_000;

impl Crowd {
    /// Notes that a worker begins to work.
    #[cold]
    pub(crate) fn join(&self, worker: u32) {
        // Relaxed: the worker's later stores make it visible to those that depend on it.
        self.workers_end.fetch_max(worker + 1, Ordering::Relaxed);
        // Relaxed, like all other accesses here: they only decide how to wait.
        self.is_large.store(true, Ordering::Relaxed);
    }

    /// The numbers of the workers that have begun to work.
    #[inline]
    pub(crate) fn workers(&self) -> Range<u32> {
        0..self.workers_end.load(Ordering::Relaxed)
    }

    /// True if more workers are at work than can run at once. `word_of` gives the current word of each.
    pub(crate) fn is_large(&self, word_of: impl Fn(u32) -> u64) -> bool {
        if self.workers().len() <= thread::running_at_once() {
            return false;
        }
        if !cfg!(loom) && clock::nanoseconds() >= self.next_ns.load(Ordering::Relaxed) {
            self.count(self.workers().map(word_of));
        }
        self.is_large.load(Ordering::Relaxed)
    }

    /// Counts the workers whose words have changed since the last count.
    #[cold]
    fn count(&self, words: impl Iterator<Item = u64>) {
        let Some(mut last) = try_lock(&self.words) else { return };
        let every = if thread::is_simulated() { EVERY_VIRTUAL_NS } else { EVERY_NS };
        self.next_ns.store(clock::nanoseconds() + every, Ordering::Relaxed);
        let mut at_work = 0;
        for (at, word) in words.enumerate() {
            if last.len() <= at {
                last.push(0);
            }
            at_work += usize::from(std::mem::replace(&mut last[at], word) != word);
        }
        self.is_large.store(at_work > thread::running_at_once(), Ordering::Relaxed);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn workers_that_have_stopped_do_not_count() {
        let (crowd, cores) = (Crowd::default(), thread::running_at_once() as u32);
        let word = |working: u32, round: u64| move |worker| if worker < working { round } else { 1 };
        let after = |round: u64, working: u32| {
            // The time of the count has come.
            crowd.next_ns.store(0, Ordering::Relaxed);
            crowd.is_large(word(working, round))
        };
        for worker in 0..cores {
            crowd.join(worker);
        }
        assert!(!after(1, cores + 1), "there are not more than cores");
        crowd.join(cores);
        assert!(after(1, cores + 1), "all work");
        assert!(!after(2, cores), "one has stopped");
        crowd.join(cores + 1);
        assert!(crowd.is_large(word(0, 0)), "one more, before the next count");
        assert!(after(3, cores + 1), "it works again");
    }
}

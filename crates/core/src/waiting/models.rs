//! Models of the handshake between a commit and an attempt that watches (docs/memory-model.md, W4 and W5).

use super::{Waiter, Waiting};
use hotrow_sync::Arc;
use hotrow_sync::atomic::{AtomicU32, Ordering};
use hotrow_sync::model::{Model, Part, step_is_left_out};
use hotrow_sync::thread::{spawn, yield_now};

/// The address that is watched.
const ADDRESS: usize = 64;

/// A segment: its lock, and its value. The lock is one of a protocol's.
struct Segment {
    lock: AtomicU32,
    value: AtomicU32,
    waiting: Arc<Waiting>,
}

impl Segment {
    fn new() -> Arc<Self> {
        Arc::new(Self { lock: AtomicU32::new(0), value: AtomicU32::new(0), waiting: Waiting::new() })
    }

    /// Commits the value 1, and tells those that watch. `looks_before`: when the lock is taken, and not when all is installed.
    fn commit(&self, looks_before: bool) {
        assert!(self.lock.compare_exchange(0, 1, Ordering::SeqCst, Ordering::Relaxed).is_ok());
        let mut is_watched = looks_before && self.waiting.has_watchers();
        self.value.store(1, Ordering::Release);
        self.lock.store(0, Ordering::Release);
        is_watched |= !looks_before && self.waiting.has_watchers_now();
        if is_watched {
            self.waiting.tell(std::iter::once(ADDRESS));
        }
    }

    /// Waits until the value is 1, as a transaction does. `respects_lock`: a load does not pass the lock.
    fn wait(&self, respects_lock: bool) {
        let waiter = Arc::new(Waiter::default());
        self.waiting.begin_watching();
        loop {
            let enters_first = !step_is_left_out();
            if enters_first {
                self.waiting.enter(ADDRESS, &waiter);
            }
            while respects_lock && self.lock.load(Ordering::SeqCst) != 0 {
                yield_now();
            }
            let value = self.value.load(Ordering::Acquire);
            if !enters_first {
                self.waiting.enter(ADDRESS, &waiter);
            }
            if value == 0 {
                waiter.park(None);
            }
            self.waiting.take_out(ADDRESS, &waiter);
            waiter.begin();
            if value == 1 {
                break;
            }
        }
        self.waiting.end_watching();
    }
}

/// A lost wake-up is a deadlock, which loom finds.
#[test]
fn a_commit_that_looks_behind_its_lock_misses_nobody_who_respects_the_lock() {
    Model::totally_ordered().preemptions(3).needs(Part::STEP).check(|| {
        let segment = Segment::new();
        let committer = segment.clone();
        let committer = spawn(move || committer.commit(true));
        segment.wait(true);
        committer.join().unwrap();
        assert!(!segment.waiting.has_watchers());
    });
}

#[test]
fn a_commit_that_looks_behind_its_installation_misses_nobody() {
    Model::new().preemptions(3).needs(Part::STEP).needs(Part::TOTAL_ORDER).check(|| {
        let segment = Segment::new();
        let committer = segment.clone();
        let committer = spawn(move || committer.commit(false));
        segment.wait(false);
        committer.join().unwrap();
        assert!(!segment.waiting.has_watchers());
    });
}

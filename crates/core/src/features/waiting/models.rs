//! Models of the handshake between a commit and an attempt that watches (docs/memory-model.md, W4 and W5), and of the passing on of
//! wake-ups (W6).

use super::registry::Told;
use super::{Waiter, Waiting};
use hotrow_sync::atomic::{AtomicU32, Ordering};
use hotrow_sync::model::{Model, Part, step_is_left_out};
use hotrow_sync::thread::{spawn, yield_now};
use hotrow_sync::{Arc, Mutex, lock};

/// The address that is watched.
const ADDRESS: usize = 64;

/// A segment: its lock, and its value. The lock is one of a protocol's.
struct Segment {
    lock: AtomicU32,
    value: AtomicU32,
    /// A number of things to take, behind a lock for which threads do not spin.
    stock: Mutex<u32>,
    waiting: Arc<Waiting>,
}

impl Segment {
    fn new() -> Arc<Self> {
        let (lock, value) = (AtomicU32::new(0), AtomicU32::new(0));
        Arc::new(Self { lock, value, stock: Mutex::new(0), waiting: Waiting::new() })
    }

    /// Commits the value 1, and tells those that watch. `looks_before`: when the lock is taken, and not when all is installed.
    fn commit(&self, looks_before: bool) {
        assert!(self.lock.compare_exchange(0, 1, Ordering::SeqCst, Ordering::Relaxed).is_ok());
        let mut is_watched = looks_before && self.waiting.has_watchers();
        self.value.store(1, Ordering::Release);
        self.lock.store(0, Ordering::Release);
        is_watched |= !looks_before && self.waiting.has_watchers_now();
        if is_watched {
            self.tell();
        }
    }

    fn tell(&self) {
        Told::nobody(&self.waiting).of_change(ADDRESS, None, |_| false);
    }

    /// Waits until the value is 1, as a transaction does. `respects_lock`: a load does not pass the lock.
    fn wait(&self, respects_lock: bool) {
        let waiter = Arc::new(Waiter::default());
        self.waiting.begin_watching();
        loop {
            let enters_first = !step_is_left_out();
            let mut number = if enters_first { self.waiting.enter(ADDRESS, &waiter) } else { 0 };
            while respects_lock && self.lock.load(Ordering::SeqCst) != 0 {
                yield_now();
            }
            let value = self.value.load(Ordering::Acquire);
            if !enters_first {
                number = self.waiting.enter(ADDRESS, &waiter);
            }
            if value == 0 {
                waiter.park(None);
            }
            self.waiting.take_out(ADDRESS, number);
            waiter.begin();
            if value == 1 {
                break;
            }
        }
        self.waiting.end_watching();
    }

    /// Watches the value, and ends whatever happens: as a future that is dropped, or a wait that is too long. `passes_on`: what it
    /// was told of.
    fn give_up(&self, passes_on: bool) {
        let waiter = Arc::new(Waiter::default());
        self.waiting.begin_watching();
        let number = self.waiting.enter(ADDRESS, &waiter);
        let owed = self.waiting.take_out(ADDRESS, number);
        self.waiting.end_watching();
        if passes_on && let Some(owed) = owed {
            Told::nobody(&self.waiting).of_owed(owed, &waiter, |_| false);
        }
    }

    /// Takes one of the stock, and waits until there is one. `passes_on`: what it was told of, when it waits again and
    /// when it ends.
    fn take_one(&self, passes_on: bool) {
        let waiter = Arc::new(Waiter::default());
        self.waiting.begin_watching();
        let mut all_owed = None;
        loop {
            let number = self.waiting.enter(ADDRESS, &waiter);
            let mut stock = lock(&self.stock);
            let taken = (*stock).min(1);
            *stock -= taken;
            drop(stock);
            if taken == 0 {
                self.pass_on(all_owed.take().filter(|_| passes_on), &waiter);
                waiter.park(None);
            }
            // Only ever of this address, so that the last one is for all.
            all_owed = self.waiting.take_out(ADDRESS, number).or(all_owed);
            waiter.begin();
            if taken == 1 {
                break;
            }
        }
        // Its commit is a change, too, of which nobody needs to hear.
        self.pass_on(all_owed.filter(|_| passes_on), &waiter);
        self.waiting.end_watching();
    }

    fn pass_on(&self, owed: Option<super::registry::Owed>, waiter: &Arc<Waiter>) {
        if let Some(owed) = owed {
            Told::nobody(&self.waiting).of_owed(owed, waiter, |_| false);
        }
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

#[test]
fn a_wake_up_of_one_that_gives_up_reaches_another() {
    Model::totally_ordered().preemptions(2).needs(Part::STEP).check(|| {
        let segment = Segment::new();
        let (committer, quitter) = (segment.clone(), segment.clone());
        let passes_on = !step_is_left_out();
        let quitter = spawn(move || quitter.give_up(passes_on));
        let committer = spawn(move || committer.commit(true));
        segment.wait(true);
        committer.join().unwrap();
        quitter.join().unwrap();
        assert!(!segment.waiting.has_watchers());
    });
}

#[test]
fn two_that_take_one_each_both_end_when_two_have_come_at_once() {
    Model::totally_ordered().preemptions(2).needs(Part::STEP).check(|| {
        let segment = Segment::new();
        let passes_on = !step_is_left_out();
        let takers = [segment.clone(), segment.clone()].map(|taker| spawn(move || taker.take_one(passes_on)));
        // One commit, which wakes one of them.
        let mut stock = lock(&segment.stock);
        let is_watched = segment.waiting.has_watchers();
        *stock = 2;
        drop(stock);
        if is_watched {
            segment.tell();
        }
        takers.into_iter().for_each(|taker| taker.join().unwrap());
        assert!(!segment.waiting.has_watchers());
    });
}

//! Models of range locks (docs/memory-model.md, N5).

use super::*;
use hotrow_sync::Arc;
use hotrow_sync::model::{Model, Part, UnsafeCell, step_is_left_out};
use hotrow_sync::thread::spawn;

const ADDRESS: usize = 16;

/// A range's lock, and a value for each of two attempts that change the range.
struct Locked {
    lock: RangeLock,
    values: [UnsafeCell<u32>; 2],
    queues: Queues,
    states: WorkerStates,
}

impl Locked {
    fn new(workers: u32) -> Arc<Self> {
        Arc::new(Self {
            lock: RangeLock::default(),
            values: [UnsafeCell::new(0), UnsafeCell::new(0)],
            queues: Queues::of_workers(workers),
            states: WorkerStates::modelled(),
        })
    }

    fn wanted(&self, stamp: AttemptStamp, change: bool) -> (Wanted<'_>, LockRequest) {
        (
            Wanted { lock: &self.lock, change },
            LockRequest { address: ADDRESS, stamp, exclusive: true, holds: false },
        )
    }

    fn hold(&self, stamp: AttemptStamp, change: bool) {
        let (word, request) = self.wanted(stamp, change);
        let got = self.lock.try_hold(change)
            || self.queues.acquire(|| WaitLimit::NONE, &word, request, &self.states).is_ok();
        assert!(got, "nobody gives up, and there is no cycle");
        self.queues.nodes.note_shared(stamp.worker(), ADDRESS);
    }

    /// Takes a range that is scanned already in order to change it, too.
    fn change_too(&self, stamp: AttemptStamp) -> bool {
        let (word, request) = self.wanted(stamp, true);
        self.lock.try_both(stamp.worker(), true)
            || self.queues.upgrade(|| WaitLimit::NONE, &word, request, &self.states).is_ok()
    }

    fn add(&self, value: usize) {
        // SAFETY: the range is locked to change it, and nobody else changes this value at the same time.
        self.values[value].with_mut(|value| unsafe { *value += 1 });
    }

    fn sum(&self) -> u32 {
        // SAFETY: the range is locked to scan it, so nobody changes a value.
        self.values.iter().map(|value| value.with(|value| unsafe { *value })).sum()
    }

    fn release(&self, stamp: AttemptStamp) {
        let released = self.lock.release(stamp.worker());
        if !step_is_left_out() {
            self.queues.released(released, &self.states);
        }
        self.queues.nodes.forget_shared(stamp.worker());
        self.states.end(stamp);
    }

    /// After all have ended: nothing is held, and nobody waits.
    fn is_at_rest_at(&self, sum: u32) {
        assert!(self.lock.try_hold(false) && self.lock.try_both(3, true), "held, or somebody waits");
        assert_eq!(self.sum(), sum);
    }
}

#[test]
fn nobody_scans_what_another_one_changes() {
    Model::new().preemptions(2).needs(Part::STEP).needs(Part::UPDATES | Part::LOADS).check(|| {
        let locked = Locked::new(3);
        let stamps = [0, 1, 2].map(|worker| locked.states.begin_at(worker, worker.into()));
        let changers = [1, 2].map(|number: usize| {
            let (locked, stamp) = (locked.clone(), stamps[number]);
            spawn(move || {
                locked.hold(stamp, true);
                locked.add(number - 1);
                locked.release(stamp);
            })
        });
        locked.hold(stamps[0], false);
        assert!(locked.sum() <= 2);
        locked.release(stamps[0]);
        for changer in changers {
            changer.join().unwrap();
        }
        locked.is_at_rest_at(2);
    });
}

#[test]
fn of_two_that_scan_and_then_change_the_older_one_gets_through_alone() {
    Model::new().preemptions(2).needs(Part::STEP).check(|| {
        let locked = Locked::new(2);
        let (older, younger) = (locked.states.begin_at(0, 1), locked.states.begin_at(1, 2));
        let run = |locked: &Locked, stamp: AttemptStamp| {
            locked.hold(stamp, false);
            let seen = locked.sum();
            let changes = locked.change_too(stamp);
            if changes {
                assert_eq!(locked.sum(), seen, "a phantom");
                locked.add(0);
            }
            locked.release(stamp);
            changes
        };
        let other = locked.clone();
        let other = spawn(move || run(&other, younger));
        assert!(run(&locked, older), "nobody is older");
        let younger = other.join().unwrap();
        locked.is_at_rest_at(1 + u32::from(younger));
    });
}

#[test]
fn one_that_scans_and_then_changes_goes_before_another_that_waits_to_change() {
    Model::new().preemptions(2).needs(Part::STEP).check(|| {
        let locked = Locked::new(2);
        let stamps = [0, 1].map(|worker| locked.states.begin_at(worker, worker.into()));
        let other = locked.clone();
        let other = spawn(move || {
            other.hold(stamps[1], true);
            other.add(0);
            other.release(stamps[1]);
        });
        locked.hold(stamps[0], false);
        let seen = locked.sum();
        assert!(locked.change_too(stamps[0]));
        assert_eq!(locked.sum(), seen, "a phantom");
        locked.add(1);
        locked.release(stamps[0]);
        other.join().unwrap();
        locked.is_at_rest_at(2);
    });
}

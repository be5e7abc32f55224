//! Models of locks and their queues (docs/memory-model.md, L1, L2).

use super::super::lock::Released;
use super::*;
use hotrow_sync::Arc;
use hotrow_sync::clock::Duration;
use hotrow_sync::model::{Model, Part, UnsafeCell, step_is_left_out};
use hotrow_sync::thread::spawn;

const SEGMENT: usize = 16;

/// A lock, and a value that only the lock protects: it is not atomic.
struct Locked {
    word: LockWords,
    value: UnsafeCell<u32>,
    queues: Queues,
    states: WorkerStates,
    policy: Policy,
}

impl Locked {
    fn new(policy: Policy) -> Arc<Self> {
        Arc::new(Self {
            word: LockWords::default(),
            value: UnsafeCell::new(0),
            queues: Queues::new(),
            states: WorkerStates::modelled(),
            policy,
        })
    }

    fn take(
        &self,
        stamp: AttemptStamp,
        exclusive: bool,
        shares: bool,
        limit: Option<Duration>,
    ) -> Result<(), Refused> {
        let worker = stamp.worker();
        let taken = match exclusive {
            true => self.word.try_exclusive(worker, shares),
            false => self.word.try_shared(worker),
        };
        let Err(released) = taken else { return Ok(()) };
        let request = LockRequest { segment: SEGMENT, stamp, exclusive, shares };
        if released == Released::Queued && !step_is_left_out() {
            self.queues.hand_on(&self.word, SEGMENT, self.policy, &self.states);
        }
        self.queues.acquire(|| limit.into(), &self.word, request, self.policy, &self.states)
    }

    /// The commit: adds one, unless the attempt was wounded. True if it has committed.
    fn commit(&self, stamp: AttemptStamp) -> bool {
        let commits = self.states.commit(stamp);
        if commits {
            // SAFETY: the lock is held, and nobody takes it away after the commit point.
            self.value.with_mut(|value| unsafe { *value += 1 });
        }
        commits
    }

    fn end(&self, stamp: AttemptStamp, exclusive: bool) {
        let worker = stamp.worker();
        let released = match exclusive {
            true => Some(self.word.release_exclusive(worker)),
            false => self.word.release_shared(worker),
        };
        match released {
            Some(Released::NoWaiters) => {}
            Some(Released::Queued) if step_is_left_out() => {}
            Some(Released::Queued) => self.queues.hand_on(&self.word, SEGMENT, self.policy, &self.states),
            None => {
                self.queues.release_noted(&self.word, SEGMENT, stamp, self.policy, &self.states);
            }
        }
        self.states.end(stamp);
    }

    /// Checks, after all have ended, that nothing is held, nobody waits, and everybody may take the lock by its word
    /// again.
    fn is_at_rest_at(&self, value: u32) {
        assert!(self.word.try_exclusive(3, false).is_ok(), "held, or still closed");
        assert!(self.queues.entries.lock(SEGMENT).is_empty());
        // SAFETY: the other threads have ended.
        assert_eq!(self.value.with(|value| unsafe { *value }), value);
    }
}

/// Runs one attempt that takes the lock exclusively. True if it has committed.
fn add(locked: &Locked, stamp: AttemptStamp, limit: Option<Duration>) -> bool {
    let taken = locked.take(stamp, true, false, limit).is_ok();
    let committed = taken && locked.commit(stamp);
    if taken {
        locked.end(stamp, true);
    } else {
        locked.states.end(stamp);
    }
    committed
}

/// Two attempts for one lock. A lost hand-over is a deadlock, which loom finds.
fn two_attempts(policy: Policy, limit: Option<Duration>, outcome: fn(older: bool, younger: bool)) {
    let model = Model::totally_ordered().preemptions(3).needs(Part::UPDATES | Part::LOADS);
    // An attempt that does not wait cannot miss the hand-over, and the next one to come opens the lock.
    let model = if limit.is_none() && policy != Policy::NoWait { model.needs(Part::STEP) } else { model };
    model.check(move || {
        let locked = Locked::new(policy);
        let (older, younger) = (locked.states.begin_at(0, 1), locked.states.begin_at(1, 2));
        let other = locked.clone();
        let other = spawn(move || add(&other, younger, limit));
        let older = add(&locked, older, limit);
        let younger = other.join().unwrap();
        outcome(older, younger);
        locked.is_at_rest_at(u32::from(older) + u32::from(younger));
    });
}

#[test]
fn the_older_of_two_waits_and_gets_the_lock() {
    two_attempts(Policy::WaitDie, None, |older, _| assert!(older));
}

#[test]
fn the_older_of_two_wounds_or_waits_for_a_commit_and_gets_the_lock() {
    two_attempts(Policy::WoundWait, None, |older, _| assert!(older));
}

#[test]
fn of_two_that_do_not_wait_one_gets_the_lock() {
    two_attempts(Policy::NoWait, None, |older, younger| assert!(older || younger));
}

#[test]
fn a_waiter_that_gives_up_leaves_nothing_behind() {
    two_attempts(Policy::WaitDie, Some(Duration::ZERO), |older, younger| assert!(older || younger));
}

/// An attempt shares the lock and another one wants it alone: of the two at least one sees the other. `reader`: true if the reader is
/// the older one.
fn reader_and_writer(policy: Policy, reader: bool) {
    let model = Model::totally_ordered().preemptions(3).needs(Part::TOTAL_ORDER);
    model.check(move || {
        let locked = Locked::new(policy);
        let (one, other) = (locked.states.begin_at(0, 1), locked.states.begin_at(1, 2));
        let (reads, writes) = if reader { (one, other) } else { (other, one) };
        let second = locked.clone();
        let second = spawn(move || add(&second, writes, None));
        let has_read = locked.take(reads, false, false, None).is_ok();
        if has_read {
            // SAFETY: the lock is shared, and nobody takes it away.
            let value = locked.value.with(|value| unsafe { *value });
            assert!(value < 2);
            locked.end(reads, false);
        } else {
            locked.states.end(reads);
        }
        let has_written = second.join().unwrap();
        assert!(policy == Policy::NoWait || if reader { has_read } else { has_written }, "nobody is older");
        locked.is_at_rest_at(u32::from(has_written));
    });
}

#[test]
fn a_reader_and_a_writer_that_do_not_wait_do_not_have_the_lock_both() {
    reader_and_writer(Policy::NoWait, true);
}

#[test]
fn an_older_reader_waits_for_a_writer_and_gets_the_lock() {
    reader_and_writer(Policy::WaitDie, true);
}

#[test]
fn an_older_writer_waits_for_a_reader_and_gets_the_lock() {
    reader_and_writer(Policy::WaitDie, false);
}

/// Two attempts share the lock, and both want it exclusively.
fn two_upgrades(policy: Policy, workers: [u32; 2]) {
    Model::totally_ordered().preemptions(3).needs(Part::STEP).check(move || {
        let locked = Locked::new(policy);
        let upgrade = |locked: &Locked, stamp: AttemptStamp| {
            if locked.take(stamp, false, false, None).is_err() {
                locked.states.end(stamp);
                return false;
            }
            let alone = locked.take(stamp, true, true, None).is_ok();
            let committed = alone && locked.commit(stamp);
            locked.end(stamp, alone);
            committed
        };
        let older = locked.states.begin_at(workers[0], 1);
        let younger = locked.states.begin_at(workers[1], 2);
        let other = locked.clone();
        let other = spawn(move || upgrade(&other, younger));
        let older = upgrade(&locked, older);
        let younger = other.join().unwrap();
        assert!(older, "nobody is older");
        locked.is_at_rest_at(u32::from(older) + u32::from(younger));
    });
}

#[test]
fn of_two_upgrades_the_older_one_waits_until_the_younger_one_is_gone() {
    two_upgrades(Policy::WaitDie, [0, 1]);
}

#[test]
fn of_two_upgrades_the_older_one_takes_what_the_younger_one_holds() {
    two_upgrades(Policy::WoundWait, [0, 1]);
}

/// One of the workers has no bit in the word (there are three).
#[test]
fn an_upgrade_takes_what_a_worker_without_a_bit_holds() {
    two_upgrades(Policy::WoundWait, [0, 3]);
}

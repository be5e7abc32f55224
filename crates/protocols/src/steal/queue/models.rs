//! Models of queue locks (docs/memory-model.md, N1 to N4).

use super::super::lock::QueueLock;
use super::*;
use hotrow_sync::Arc;
use hotrow_sync::clock::Duration;
use hotrow_sync::model::{Model, Part, UnsafeCell, step_is_left_out};
use hotrow_sync::thread::spawn;

const ADDRESSES: [usize; 2] = [16, 32];

/// Two locks, and for each a value that only this lock protects: it is not atomic.
struct Locked {
    words: [QueueLock; 2],
    values: [UnsafeCell<u32>; 2],
    queues: Queues,
    states: WorkerStates,
}

impl Locked {
    fn new(workers: u32) -> Arc<Self> {
        Arc::new(Self {
            words: Default::default(),
            values: [UnsafeCell::new(0), UnsafeCell::new(0)],
            queues: Queues::of_workers(workers),
            states: WorkerStates::modelled(),
        })
    }

    fn request(stamp: AttemptStamp, lock: usize, exclusive: bool, holds: bool) -> LockRequest {
        LockRequest { address: ADDRESSES[lock], stamp, exclusive, holds }
    }

    fn alone(&self, stamp: AttemptStamp, lock: usize, holds: bool, limit: Option<Duration>) -> bool {
        let word = &self.words[lock];
        let request = Self::request(stamp, lock, true, holds);
        word.try_exclusive(stamp.worker(), false)
            || self.queues.acquire(|| limit.into(), word, request, &self.states).is_ok()
    }

    fn share(&self, stamp: AttemptStamp, lock: usize) -> bool {
        let word = &self.words[lock];
        let request = Self::request(stamp, lock, false, false);
        let got = self.queues.try_share(word, &self.states)
            || self.queues.acquire(|| WaitLimit::NONE, word, request, &self.states).is_ok();
        if got {
            self.queues.nodes.note_shared(stamp.worker(), request.address);
        }
        got
    }

    fn upgrade(&self, stamp: AttemptStamp, lock: usize) -> bool {
        let request = Self::request(stamp, lock, true, false);
        self.queues.upgrade(|| WaitLimit::NONE, &self.words[lock], request, &self.states).is_ok()
    }

    fn add(&self, lock: usize) {
        // SAFETY: the lock is held alone.
        self.values[lock].with_mut(|value| unsafe { *value += 1 });
    }

    fn look(&self, lock: usize) -> u32 {
        // SAFETY: the lock is held.
        self.values[lock].with(|value| unsafe { *value })
    }

    fn release(&self, lock: usize, alone: bool) {
        let word = &self.words[lock];
        let released = if alone { word.release_exclusive() } else { word.release_shared() };
        if !step_is_left_out() {
            self.queues.released(released, &self.states);
        }
    }

    fn end(&self, stamp: AttemptStamp) {
        self.queues.nodes.forget_shared(stamp.worker());
        self.states.end(stamp);
    }

    /// After all have ended: nothing is held, and nobody waits.
    fn is_at_rest_at(&self, values: [u32; 2]) {
        assert!(self.words.iter().all(|word| word.try_exclusive(3, false)), "held, or somebody waits");
        assert_eq!([0, 1].map(|lock| self.look(lock)), values);
        for worker in 0..2 {
            let node = || self.queues.nodes.open(worker, 0, 0);
            assert!(node().is_some() && node().is_some(), "a node is in use still");
        }
    }
}

/// Adds one under the first lock.
fn add(locked: &Locked, stamp: AttemptStamp, limit: Option<Duration>) -> bool {
    let taken = locked.alone(stamp, 0, false, limit);
    if taken {
        locked.add(0);
        locked.release(0, true);
    }
    locked.end(stamp);
    taken
}

/// A lost hand-over is a deadlock, which loom finds.
fn adders(workers: u32, preemptions: usize, limit: Option<Duration>, needs: &[Part]) {
    let model = needs.iter().fold(Model::new().preemptions(preemptions), |model, part| model.needs(*part));
    model.check(move || {
        let locked = Locked::new(workers);
        let stamps: Vec<AttemptStamp> =
            (0..workers).map(|worker| locked.states.begin_at(worker, worker.into())).collect();
        let others: Vec<_> = stamps[1..]
            .iter()
            .map(|stamp| {
                let (locked, stamp) = (locked.clone(), *stamp);
                spawn(move || add(&locked, stamp, limit))
            })
            .collect();
        let mut added = u32::from(add(&locked, stamps[0], limit));
        for other in others {
            added += u32::from(other.join().unwrap());
        }
        match limit {
            None => assert_eq!(added, workers),
            Some(_) => assert!(added >= 1),
        }
        locked.is_at_rest_at([added, 0]);
    });
}

#[test]
fn of_two_one_waits_for_the_other() {
    adders(2, 3, None, &[Part::STEP, Part::UPDATES | Part::LOADS]);
}

#[test]
fn of_three_each_follows_the_one_ahead() {
    adders(3, 2, None, &[Part::STEP]);
}

#[test]
fn a_waiter_that_gives_up_leaves_nothing_behind() {
    adders(3, 2, Some(Duration::ZERO), &[]);
}

#[test]
fn a_writer_and_two_readers_never_hold_a_lock_together() {
    Model::new().preemptions(2).needs(Part::STEP).check(|| {
        let locked = Locked::new(3);
        let stamps = [0, 1, 2].map(|worker| locked.states.begin_at(worker, worker.into()));
        let readers = [stamps[1], stamps[2]].map(|stamp| {
            let locked = locked.clone();
            spawn(move || {
                assert!(locked.share(stamp, 0));
                assert!(locked.look(0) <= 1);
                locked.release(0, false);
                locked.end(stamp);
            })
        });
        assert!(add(&locked, stamps[0], None));
        for reader in readers {
            reader.join().unwrap();
        }
        locked.is_at_rest_at([1, 0]);
    });
}

#[test]
fn of_two_upgrades_the_older_one_gets_the_lock() {
    Model::new().preemptions(2).needs(Part::STEP).check(|| {
        let locked = Locked::new(2);
        let (older, younger) = (locked.states.begin_at(0, 1), locked.states.begin_at(1, 2));
        let run = |locked: &Locked, stamp: AttemptStamp| {
            assert!(locked.share(stamp, 0));
            let alone = locked.upgrade(stamp, 0);
            if alone {
                locked.add(0);
            }
            locked.release(0, alone);
            locked.end(stamp);
            alone
        };
        let other = locked.clone();
        let other = spawn(move || run(&other, younger));
        assert!(run(&locked, older), "nobody is older");
        let younger = other.join().unwrap();
        locked.is_at_rest_at([1 + u32::from(younger), 0]);
    });
}

/// A cycle that both miss is a deadlock, which loom finds.
#[test]
fn of_two_that_take_two_locks_the_other_way_round_the_older_one_gets_both() {
    Model::totally_ordered().preemptions(2).needs(Part::TOTAL_ORDER).check(|| {
        let locked = Locked::new(2);
        let (older, younger) = (locked.states.begin_at(0, 1), locked.states.begin_at(1, 2));
        let run = |locked: &Locked, stamp: AttemptStamp, [first, second]: [usize; 2]| {
            assert!(locked.alone(stamp, first, false, None));
            let both = locked.alone(stamp, second, true, None);
            if both {
                locked.add(first);
                locked.add(second);
                locked.release(second, true);
            }
            locked.release(first, true);
            locked.end(stamp);
            both
        };
        let other = locked.clone();
        let other = spawn(move || run(&other, younger, [1, 0]));
        assert!(run(&locked, older, [0, 1]), "nobody is older");
        let added = 1 + u32::from(other.join().unwrap());
        locked.is_at_rest_at([added, added]);
    });
}

/// Two attempts share the first lock, and the next writer in its queue waits for them. That writer shares the second
/// lock. Both are in the second lock's queue, behind another writer, which waits for it. The one ahead of the two
/// gives up while the one behind searches.
#[test]
fn a_cycle_is_found_behind_one_that_gives_up_meanwhile() {
    Model::new().preemptions(2).check(|| {
        let locked = Locked::new(4);
        let [behind, between, ahead, gives_up] =
            [0, 1, 2, 3].map(|worker| locked.states.begin_at(worker, worker.into()));
        let share = |stamp: AttemptStamp, lock: usize| {
            assert!(locked.queues.try_share(&locked.words[lock], &locked.states));
            locked.queues.nodes.note_shared(stamp.worker(), ADDRESSES[lock]);
        };
        let queue = |stamp: AttemptStamp, lock: usize, exclusive: bool| {
            let request = Locked::request(stamp, lock, exclusive, true);
            match locked.queues.try_lock(&locked.words[lock], request) {
                Tried::Queued(id) => id,
                other => panic!("{other:?}"),
            }
        };
        share(behind, 0);
        share(gives_up, 0);
        share(between, 1);
        for (stamp, lock) in [(between, 0), (ahead, 1)] {
            let head = queue(stamp, lock, true);
            locked.queues.nodes.of(head).set_blocked_by(BlockedBy::Readers);
        }
        let node = queue(gives_up, 1, false);
        queue(behind, 1, false);
        let other = locked.clone();
        let other = spawn(move || {
            other.queues.nodes.wait_is_over(gives_up.worker());
            other.queues.abandon(&other.words[1], node, &other.states);
            other.release(0, false);
            other.end(gives_up);
        });
        let is_victim = locked.queues.is_victim(behind, ADDRESSES[1], &locked.states);
        other.join().unwrap();
        let wounded = [between, ahead].into_iter().any(|stamp| locked.states.is_wounded(stamp));
        assert!(is_victim || wounded, "transactions that wait for each other do so for ever");
    });
}

//! Models of wounds, commits and waits (docs/memory-model.md, L1, L3, L4).

use super::*;
use hotrow_sync::model::{Model, Part, UnsafeCell};
use hotrow_sync::thread::spawn;
use hotrow_sync::{Arc, Mutex, lock};

impl WorkerStates {
    /// Makes states whose first workers are already there: making them is no part of any model.
    pub(crate) fn modelled() -> Self {
        let states = Self::new(SpinPolicy::BARGING);
        (0..4).for_each(|worker| _ = states.of(worker));
        states
    }

    /// Begins a worker's first attempt.
    pub(crate) fn begin_at(&self, worker: u32, began_ns: u64) -> AttemptStamp {
        self.enter_next(AttemptStamp::default(), worker, began_ns)
    }

    /// Begins the next transaction of an attempt's worker.
    pub(crate) fn begin_after(&self, last: AttemptStamp, began_ns: u64) -> AttemptStamp {
        self.enter_next(last, last.worker(), began_ns)
    }
}

/// An attempt past its commit point installs; an attempt that wounded it installs in its place; never both at once.
#[test]
fn a_wounded_transaction_installs_nothing_and_one_that_commits_is_waited_for() {
    Model::new().needs(Part::STORES).needs(Part::LOADS | Part::UPDATES).check(|| {
        // Not atomic: only the state keeps the two from racing for it.
        let shared = Arc::new((WorkerStates::modelled(), UnsafeCell::new(0)));
        let victim = shared.0.begin_at(0, 2);
        let wounder = shared.clone();
        let wounder = spawn(move || {
            let (states, value) = &*wounder;
            let wound = states.wound(victim.id, 8);
            if wound == Wound::Dead {
                // SAFETY: the victim does not touch the value any more.
                value.with_mut(|value| unsafe { *value += 1 });
            }
            wound
        });
        let (states, value) = &*shared;
        let committed = states.commit(victim);
        if committed {
            // SAFETY: past its commit point, the attempt is not wounded.
            value.with_mut(|value| unsafe { *value += 1 });
        }
        states.end(victim);
        let wound = wounder.join().unwrap();
        assert!(committed || wound == Wound::Dead, "nobody goes on");
        // SAFETY: the other thread has ended.
        let value = value.with(|value| unsafe { *value });
        assert_eq!(value, u32::from(committed) + u32::from(wound == Wound::Dead));
    });
}

/// One transaction wounds, takes a lock and releases it again; then the next holder installs.
#[test]
fn an_attempt_that_finds_itself_unwounded_has_seen_whole_values() {
    Model::new().needs(Part::ACQUIRE_FENCES).needs(Part::RELEASE_FENCES).check(|| {
        let shared =
            Arc::new((WorkerStates::modelled(), Mutex::new(false), [(); 2].map(|()| AtomicU64::new(0))));
        let victim = shared.0.begin_at(0, 2);
        let [wounder, writer] = [shared.clone(), shared.clone()];
        let wounder = spawn(move || {
            let (states, taken, _) = &*wounder;
            assert_eq!(states.wound(victim.id, 8), Wound::Dead);
            *lock(taken) = true;
        });
        let writer = spawn(move || {
            let (_, taken, words) = &*writer;
            if *lock(taken) {
                WorkerStates::fence_before_install();
                words.iter().for_each(|word| word.store(1, Ordering::Relaxed));
            }
        });
        let (states, _, words) = &*shared;
        let seen = words.each_ref().map(|word| word.load(Ordering::Relaxed));
        if !states.is_wounded(victim) {
            assert_eq!(seen, [0, 0], "another transaction's values, or half of them");
        }
        wounder.join().unwrap();
        writer.join().unwrap();
    });
}

/// A lost wake-up is a deadlock, which loom finds.
#[test]
fn a_wound_wakes_its_victim_wherever_it_waits() {
    for at in [0, 1] {
        Model::totally_ordered().preemptions(3).needs(Part::TOTAL_ORDER).check(move || {
            let states = Arc::new(WorkerStates::modelled());
            let victim = states.begin_at(0, 2);
            let wounder = states.clone();
            let wounder = spawn(move || wounder.wound(victim.id, 8));
            assert_eq!(states.wait_at_most(WaitLimit::NONE, at, victim, || false, || false), Waited::Wounded);
            assert_eq!(wounder.join().unwrap(), Wound::Dead);
        });
    }
}

/// A look at an attempt that is alive returns the age of its transaction, not the next one's.
#[test]
fn a_look_at_an_attempt_that_is_alive_finds_its_age() {
    Model::new().needs(Part::ACQUIRE_FENCES | Part::STORES).needs(Part::RELEASE_FENCES | Part::STORES).check(
        || {
            let states = Arc::new(WorkerStates::modelled());
            let first = states.begin_at(0, 7);
            let other = states.clone();
            let other = spawn(move || {
                assert!(other.commit(first));
                other.end(first);
                other.enter(AttemptStamp { id: first.id.next(0), began_ns: 9 });
            });
            let age = |number: u64| if number == 1 { 7 } else { 9 };
            if let Some(stamp) = states.running(0) {
                assert_eq!(stamp.began_ns, age(stamp.id.0 >> (WORKER_BITS + STATE_BITS)));
            }
            if let Some(stamp) = states.stamp_of(first.id) {
                assert_eq!(stamp, first);
            }
            other.join().unwrap();
        },
    );
}

/// A lock is left free for a waiter: the call reaches the waiter wherever it is.
#[test]
fn a_called_waiter_takes_what_was_left_free() {
    Model::new().needs(Part::UPDATES).check(|| {
        let shared = Arc::new((WorkerStates::modelled(), AtomicU64::new(0)));
        let waiter = shared.0.begin_at(0, 1);
        let caller = shared.clone();
        let caller = spawn(move || {
            let (states, free) = &*caller;
            free.store(1, Ordering::SeqCst);
            states.call(0);
        });
        let (states, free) = &*shared;
        states.clear_grant(0);
        while free.load(Ordering::SeqCst) == 0 {
            assert_eq!(
                states.wait_for_turn(WaitLimit::NONE, waiter, &mut 0, || false, || false),
                Waited::Over
            );
        }
        caller.join().unwrap();
    });
}

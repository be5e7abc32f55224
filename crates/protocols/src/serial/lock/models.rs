//! Models of the engine's lock (docs/memory-model.md, E1).

use super::*;
use hotrow_sync::Arc;
use hotrow_sync::clock::Duration;
use hotrow_sync::model::{Model, Part, UnsafeCell};
use hotrow_sync::thread::spawn;

/// A lock, and a number that only its holder touches.
struct Counted {
    lock: EngineLock,
    number: UnsafeCell<u32>,
}

impl Counted {
    fn new() -> Arc<Self> {
        let queue = Queue {
            head: AtomicU32::new(NOBODY),
            workers: Mutex::new(VecDeque::new()),
            states: WorkerStates::modelled(),
        };
        let lock = EngineLock { word: CachePadded::default(), queue };
        Arc::new(Self { lock, number: UnsafeCell::new(0) })
    }

    /// Counts up under the lock. False if the lock was not to be had in the time that `wait_max` allows.
    fn count(&self, worker: u32, wait_max: impl FnMut() -> WaitLimit) -> bool {
        let stamp = self.lock.queue.states.begin_at(worker, 0);
        let holder = Holder::on_thread(u64::from(worker) + 1);
        let taken = self.lock.try_lock(holder) || self.lock.wait(stamp, holder, wait_max);
        if taken {
            // SAFETY: only the holder touches it; the model finds out if that is not so.
            self.number.with_mut(|number| unsafe { *number += 1 });
            self.lock.unlock(holder);
        }
        taken
    }

    fn assert_free_after(&self, counted: u32) {
        assert_eq!(self.lock.word.load(Ordering::SeqCst), 0, "something is left behind");
        assert_eq!(self.lock.queue.head.load(Ordering::SeqCst), NOBODY);
        assert!(self.lock.try_lock(Holder::on_thread(4)));
        // SAFETY: the other threads have ended.
        assert_eq!(self.number.with(|number| unsafe { *number }), counted);
    }
}

/// A lost wake-up is a deadlock, which loom finds.
#[test]
fn two_that_want_the_lock_exclude_each_other_and_both_get_it() {
    Model::new().needs(Part::UPDATES).check(|| {
        let counted = Counted::new();
        let other = counted.clone();
        let other = spawn(move || assert!(other.count(1, || WaitLimit::NONE)));
        assert!(counted.count(0, || WaitLimit::NONE));
        other.join().unwrap();
        counted.assert_free_after(2);
    });
}

#[test]
fn one_that_waits_gets_the_lock_though_another_takes_it_twice() {
    Model::new().preemptions(3).needs(Part::UPDATES).check(|| {
        let counted = Counted::new();
        let other = counted.clone();
        let other = spawn(move || assert!(other.count(1, || WaitLimit::NONE)));
        assert!(counted.count(0, || WaitLimit::NONE));
        assert!(counted.count(0, || WaitLimit::NONE));
        other.join().unwrap();
        counted.assert_free_after(3);
    });
}

#[test]
fn three_that_want_the_lock_all_get_it() {
    Model::new().preemptions(2).needs(Part::UPDATES).check(|| {
        let counted = Counted::new();
        let others = [1, 2].map(|worker| {
            let other = counted.clone();
            spawn(move || assert!(other.count(worker, || WaitLimit::NONE)))
        });
        assert!(counted.count(0, || WaitLimit::NONE));
        others.into_iter().for_each(|other| other.join().unwrap());
        counted.assert_free_after(3);
    });
}

/// The wake-up may have been for the one that gives up.
#[test]
fn one_that_gives_up_leaves_no_other_asleep() {
    Model::new().preemptions(2).needs(Part::UPDATES).check(|| {
        let counted = Counted::new();
        let [patient, impatient] = [counted.clone(), counted.clone()];
        let patient = spawn(move || assert!(patient.count(1, || WaitLimit::NONE)));
        let impatient = spawn(move || {
            let mut left = Some(Duration::from_secs(1));
            impatient.count(2, || left.take().or(Some(Duration::ZERO)).into())
        });
        assert!(counted.count(0, || WaitLimit::NONE));
        patient.join().unwrap();
        let impatient = impatient.join().unwrap();
        counted.assert_free_after(2 + u32::from(impatient));
    });
}

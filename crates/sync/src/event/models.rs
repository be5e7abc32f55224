//! Models of parking (docs/memory-model.md, W1).

use super::*;
use crate::Arc;
use crate::model::{Model, Part};
use crate::thread::spawn;

/// An event and the word that its waiters wait for.
///
/// Both sides access the word relaxed, so the event alone must prevent lost wake-ups.
#[derive(Default)]
struct Gate {
    open: AtomicU32,
    event: Event,
}

impl Gate {
    fn wait_for(&self, value: u32) {
        self.event.wait_until(|| self.open.load(Ordering::Relaxed) >= value);
    }

    fn add(&self) {
        self.open.fetch_add(1, Ordering::Relaxed);
        self.event.notify_all();
    }
}

/// A lost wake-up is a deadlock, which loom finds.
#[test]
fn no_wake_up_is_lost() {
    Model::new().needs(Part::TOTAL_ORDER).check(|| {
        let gate = Arc::new(Gate::default());
        let notifier = gate.clone();
        let notifier = spawn(move || notifier.add());
        gate.wait_for(1);
        notifier.join().unwrap();
        assert_eq!(gate.event.waiters.load(Ordering::Relaxed), 0);
    });
}

#[test]
fn one_notifier_wakes_two_waiters() {
    Model::new().preemptions(3).needs(Part::TOTAL_ORDER).check(|| {
        let gate = Arc::new(Gate::default());
        let [first, second] = [gate.clone(), gate.clone()];
        let first = spawn(move || first.wait_for(1));
        let second = spawn(move || second.add());
        gate.wait_for(1);
        first.join().unwrap();
        second.join().unwrap();
    });
}

/// The first notification must not prevent the wake-up by the second.
#[test]
fn a_waiter_for_the_second_of_two_changes_is_woken() {
    Model::new().preemptions(3).needs(Part::TOTAL_ORDER).check(|| {
        let gate = Arc::new(Gate::default());
        let notifiers = [gate.clone(), gate.clone()].map(|gate| spawn(move || gate.add()));
        gate.wait_for(2);
        notifiers.into_iter().for_each(|notifier| notifier.join().unwrap());
    });
}

/// Each of the two threads both waits and notifies.
#[test]
fn two_threads_hand_a_turn_there_and_back() {
    Model::new().needs(Part::TOTAL_ORDER).check(|| {
        let gate = Arc::new(Gate::default());
        let other = gate.clone();
        let other = spawn(move || {
            other.wait_for(1);
            other.add();
        });
        gate.add();
        gate.wait_for(2);
        other.join().unwrap();
    });
}

//! Models of the gate (docs/memory-model.md, W1, W2).
//!
//! No time passes in a model, so a wait at the gate that would end only because a window's time is up is a deadlock.

use super::*;
use hotrow_sync::Arc;
use hotrow_sync::model::{Model, Part, step_is_left_out};
use hotrow_sync::thread::spawn;

const WORKERS: u32 = 2;

#[test]
fn a_waiter_at_the_gate_passes_when_the_elder_leaves() {
    Model::new().needs(Part::TOTAL_ORDER).check(|| {
        let gate = Arc::new(StarvationGate::default());
        let elder = gate.clone();
        let elder = spawn(move || {
            let mut elder = elder.escalate();
            assert!(elder.pass(WORKERS, None));
        });
        if gate.is_closed() {
            assert!(gate.wait(None));
        }
        elder.join().unwrap();
        assert!(!gate.is_closed());
    });
}

#[test]
fn a_waiter_for_one_elder_does_not_wait_for_the_next_one() {
    Model::new().needs(Part::TOTAL_ORDER).check(|| {
        let gate = Arc::new(StarvationGate::default());
        let mut first = gate.escalate();
        assert!(first.pass(WORKERS, None));
        let window = lock(&gate.state).current.unwrap();
        let other = gate.clone();
        let other = spawn(move || assert!(other.wait_for(window, None)));
        drop(first);
        let mut second = gate.escalate();
        assert!(second.pass(WORKERS, None));
        other.join().unwrap();
        assert!(gate.is_closed());
    });
}

#[test]
fn two_elders_pass_one_after_the_other() {
    // Elders check their conditions under the mutex under which these change, which would be order enough.
    Model::new().needs(Part::STEP).check(|| {
        let gate = Arc::new(StarvationGate::default());
        let through = |gate: &StarvationGate| {
            let mut elder = gate.escalate();
            assert!(elder.pass(WORKERS, None));
            assert!(gate.is_open(elder.window.unwrap()), "no other elder's window is open beside it");
            if step_is_left_out() {
                // The window would stay open for ever.
                std::mem::forget(elder);
            }
        };
        let other = gate.clone();
        let other = spawn(move || through(&other));
        through(&gate);
        other.join().unwrap();
        assert!(!gate.is_closed());
        assert!(lock(&gate.state).queue.is_empty());
    });
}

//! Models of the gate (docs/memory-model.md, W1, W2).
//!
//! No time passes in a model, so a wait at the gate that would end only because a window's time is up is a deadlock.

use super::*;
use hotrow_sync::Arc;
use hotrow_sync::model::{Model, Part, step_is_left_out};
use hotrow_sync::thread::spawn;

const WORKERS: u32 = 2;

#[test]
fn who_waits_at_the_gate_passes_when_the_elder_leaves() {
    Model::new().needs(Part::TOTAL_ORDER).check(|| {
        let elders = Arc::new(StarvationGate::default());
        let elder = elders.clone();
        let elder = spawn(move || {
            let mut elder = elder.escalate();
            assert!(elder.pass(WORKERS, None));
        });
        if elders.is_closed() {
            assert!(elders.wait(None));
        }
        elder.join().unwrap();
        assert!(!elders.is_closed());
    });
}

#[test]
fn who_waits_for_one_elder_does_not_wait_for_the_next_one() {
    Model::new().needs(Part::TOTAL_ORDER).check(|| {
        let elders = Arc::new(StarvationGate::default());
        let mut first = elders.escalate();
        assert!(first.pass(WORKERS, None));
        let window = lock(&elders.state).current.unwrap();
        let other = elders.clone();
        let other = spawn(move || assert!(other.wait_for(window, None)));
        drop(first);
        let mut second = elders.escalate();
        assert!(second.pass(WORKERS, None));
        other.join().unwrap();
        assert!(elders.is_closed());
    });
}

#[test]
fn two_elders_pass_one_after_the_other() {
    // Elders check their conditions under the mutex under which these change, which would be order enough.
    Model::new().needs(Part::STEP).check(|| {
        let elders = Arc::new(StarvationGate::default());
        let through = |elders: &StarvationGate| {
            let mut elder = elders.escalate();
            assert!(elder.pass(WORKERS, None));
            assert!(elders.is_open(elder.window.unwrap()), "no other elder's window is open beside it");
            if step_is_left_out() {
                // The window would stay open for ever.
                std::mem::forget(elder);
            }
        };
        let other = elders.clone();
        let other = spawn(move || through(&other));
        through(&elders);
        other.join().unwrap();
        assert!(!elders.is_closed());
        assert!(lock(&elders.state).queue.is_empty());
    });
}

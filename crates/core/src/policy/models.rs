//! Models of the gate (docs/memory-model.md, W1, W2).
//!
//! No time passes in a model, so a wait at the gate that would end only by its timeout is a deadlock.

use super::*;
use hotrow_sync::Arc;
use hotrow_sync::model::{Model, Part};
use hotrow_sync::thread::spawn;

#[test]
fn who_waits_at_the_gate_passes_when_the_elder_leaves() {
    Model::new().needs(Part::TOTAL_ORDER).check(|| {
        let elders = Arc::new(Elders::default());
        let elder = elders.clone();
        let elder = spawn(move || drop(elder.escalate()));
        elders.pass(None);
        elder.join().unwrap();
    });
}

#[test]
fn two_elders_pass_one_after_the_other() {
    Model::new().needs(Part::TOTAL_ORDER).check(|| {
        let elders = Arc::new(Elders::default());
        let through = |elders: &Elders| {
            let elder = elders.escalate();
            elders.pass(Some(&elder));
        };
        let other = elders.clone();
        let other = spawn(move || through(&other));
        through(&elders);
        other.join().unwrap();
        assert_eq!(elders.oldest.load(Ordering::Relaxed), 0);
        elders.pass(None);
    });
}

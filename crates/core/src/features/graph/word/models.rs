//! Models of the word (docs/memory-model.md, G1, G2).

use super::*;
use hotrow_sync::Arc;
use hotrow_sync::event::Event;
use hotrow_sync::model::{Model, Part, UnsafeCell};
use hotrow_sync::thread::spawn;

/// An operation: its plan and its stolen work. Neither is atomic.
#[derive(Default)]
struct Operation {
    word: Word,
    plan: UnsafeCell<u64>,
    share: UnsafeCell<u64>,
    done: Event,
}

impl Operation {
    /// Takes it, if it is runnable, and runs it.
    fn steal(&self) -> bool {
        let taken = self.word.take(State::Runnable, 1);
        if taken {
            // SAFETY: taken.
            let plan = self.plan.with(|plan| unsafe { *plan });
            // SAFETY: taken.
            self.share.with_mut(|share| unsafe { *share += plan });
            self.word.set(State::Done, 1);
            self.done.notify_all();
        }
        taken
    }
}

/// The owner publishes an operation. It takes the operation itself or waits for its thief, and then changes the plan,
/// which nobody looks at any more.
#[test]
fn an_operation_is_run_once_and_its_owner_goes_on_when_nobody_runs_it() {
    Model::new().preemptions(3).needs(Part::STORES).needs(Part::UPDATES).check(|| {
        let operation = Arc::new(Operation::default());
        let thieves = [0, 1].map(|_| {
            let operation = operation.clone();
            spawn(move || operation.steal())
        });
        // SAFETY: nobody can take it yet.
        operation.plan.with_mut(|plan| unsafe { *plan = 5 });
        operation.word.set(State::Runnable, 1);
        if operation.word.take(State::Runnable, 1) {
            // SAFETY: taken.
            operation.share.with_mut(|share| unsafe { *share += 5 });
        } else {
            operation.done.wait_until(|| operation.word.state() != State::Taken);
        }
        operation.word.set(State::Finished, 1);
        // SAFETY: run, and nobody can take it any more.
        assert_eq!(operation.share.with(|share| unsafe { *share }), 5);
        // SAFETY: as above.
        operation.plan.with_mut(|plan| unsafe { *plan = 0 });
        let stolen = thieves.map(|thief| thief.join().unwrap());
        assert!(stolen != [true, true]);
    });
}

//! Stamps of commits in explored schedules, also such in which a worker rests between drawing its stamp and the next step.

#[path = "../../../hotrow/tests/support/stamps.rs"]
mod support;

use crate::crew;
use hotrow::protocols::{Visitor, for_each_protocol};
use hotrow::{Engine, Protocol, RetryPolicy};
use support::{Chain, Notes, judge};

/// Schedules of each protocol.
const SEEDS: u64 = 600;

#[derive(Clone, Copy)]
struct Judged;

impl Visitor for Judged {
    type Output = ();

    fn visit<P: Protocol>(self, name: &str) {
        let options = P::options(name).expect("the registry has chosen by name");
        for seed in 0..SEEDS {
            let notes = Notes::default();
            let chain =
                Chain::on(Engine::<P>::with_commit_steps(&options, RetryPolicy::default(), notes.clone()));
            let seen = crew::run(&chain.engine, 4, seed, |core, worker| chain.run(core, worker, 3));
            judge::<P>(&notes.take(), seen);
        }
    }
}

#[test]
fn a_commit_that_must_come_after_another_has_the_larger_stamp() {
    for_each_protocol(4, Judged);
}

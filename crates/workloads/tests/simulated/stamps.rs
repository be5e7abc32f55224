//! Stamps of commits in explored schedules, also such in which a worker rests between drawing its stamp and the next step.

#[path = "../../../hotrow/tests/support/stamps.rs"]
mod support;

use crate::mutants::{STAMPED_WRONG, for_each_mutant};
use crate::simulated::crew;
use hotrow::protocols::{Visitor, for_each_protocol};
use hotrow::{Engine, Protocol, RetryPolicy};
use support::{Chain, Notes, judge};

/// Schedules of each protocol.
const SEEDS: u64 = 600;

/// The first schedule after which stamps are not right, and what is wrong.
#[derive(Clone, Copy)]
struct Judged;

impl Visitor for Judged {
    type Output = Option<(u64, &'static str)>;

    fn visit<P: Protocol>(self, name: &str) -> Self::Output {
        let options = P::options(name).expect("the registry has chosen by name");
        let judged = |seed| {
            let notes = Notes::default();
            let chain =
                Chain::on(Engine::<P>::with_commit_steps(&options, RetryPolicy::default(), notes.clone()));
            let seen = crew::run(&chain.engine, 4, seed, |core, worker| chain.run(core, worker, 3));
            Some((seed, judge(&notes.take(), &seen).err()?))
        };
        (0..SEEDS).find_map(judged)
    }
}

#[test]
fn a_commit_that_must_come_after_another_has_the_larger_stamp() {
    for (name, wrong) in for_each_protocol(4, Judged) {
        assert_eq!(wrong, None, "{name}");
    }
}

/// As [`Judged`], of those mutants alone whose stamps are wrong.
#[derive(Clone, Copy)]
struct JudgedIfWrong;

impl Visitor for JudgedIfWrong {
    type Output = Option<(u64, &'static str)>;

    fn visit<P: Protocol>(self, name: &str) -> Self::Output {
        STAMPED_WRONG.contains(&name).then(|| Judged.visit::<P>(name)).flatten()
    }
}

#[test]
fn wrong_stamps_are_found() {
    let found = for_each_mutant(JudgedIfWrong);
    println!("schedules until a wrong stamp was found: {found:?}");
    for name in STAMPED_WRONG {
        assert!(found.iter().any(|(found, wrong)| *found == name && wrong.is_some()), "{name} was not found");
    }
}

//! Models of the clock (docs/memory-model.md, T1).

use super::*;
use crate::version::models::version;
use hotrow_sync::Arc;
use hotrow_sync::model::{Model, Part};
use hotrow_sync::thread::spawn;

/// The protocol and two segments.
struct Shared {
    protocol: Tl2,
    words: [VersionWord; 2],
}

fn shared() -> Arc<Shared> {
    Arc::new(Shared { protocol: Tl2::new(&()), words: Default::default() })
}

/// One writer may advance the clock and the other may adopt its value; the reader's bound may include both.
#[test]
fn a_bound_that_includes_a_commit_finds_its_writes_locked_or_installed() {
    Model::totally_ordered().preemptions(3).needs(Part::TOTAL_ORDER).check(|| {
        let shared = shared();
        let writers = [0, 1].map(|at| {
            let shared = shared.clone();
            spawn(move || {
                let word = &shared.words[at];
                word.lock(None).unwrap();
                let (clock, _) = shared.protocol.advance(0);
                word.unlock_as(version(clock));
                clock
            })
        });
        let bound = shared.protocol.now();
        let seen = shared.words[0].stable(|| ()).map(|(version, ())| version.number());
        let [commit, _] = writers.map(|writer| writer.join().unwrap());
        assert!(
            commit > bound || seen != Ok(0),
            "the bound {bound} includes commit {commit}, and the segment was seen as it was before"
        );
    });
}

/// Write skew between two that may each skip their checks, because nobody has committed since they began.
#[test]
fn of_two_commits_of_which_one_skips_its_checks_one_at_least_fails() {
    Model::new().needs(Part::LOADS | Part::UPDATES).check(|| {
        let shared = shared();
        let commit = |shared: &Shared, mine: usize| {
            let [mine, others] = [&shared.words[mine], &shared.words[1 - mine]];
            let below = mine.lock(None).unwrap();
            let (clock, alone) = shared.protocol.advance(0);
            let passes = alone || others.load() == Version::default();
            mine.unlock_as(if passes { version(clock) } else { below });
            passes
        };
        let other = shared.clone();
        let other = spawn(move || commit(&other, 0));
        let mine = commit(&shared, 1);
        assert!(!(other.join().unwrap() && mine), "each was before the other");
    });
}

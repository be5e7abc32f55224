//! Models of predecessors and of parking (docs/memory-model.md, Q4 to Q6).

use super::*;
use crate::drp::clock_block::ClockBlock;
use crate::drp::ticket_lock::TicketLock;
use hotrow_sync::Arc;
use hotrow_sync::model::{Model, Part};
use hotrow_sync::thread::spawn;

impl Progress {
    /// Makes the progress of few workers, whose places are already there: making them is no part of any model.
    fn modelled() -> Self {
        let progress = Self {
            commits: PerWorker::new(2),
            restructuring: PerWorker::new(1),
            places: (0..PLACES).map(|_| CachePadded::new(Event::new())).collect(),
            parked: CachePadded::default(),
            crowd: CachePadded::default(),
        };
        (0..2).for_each(|worker| _ = progress.commits.of(worker));
        progress.restructuring.of(0);
        progress
    }
}

/// The word is relaxed on both sides: only `wait` and `tell` keep a wake-up from being lost.
#[test]
fn no_wake_up_is_lost() {
    Model::new().preemptions(3).needs(Part::TOTAL_ORDER).check(|| {
        let shared = Arc::new((Progress::modelled(), AtomicU64::new(0)));
        let teller = shared.clone();
        let teller = spawn(move || {
            let (progress, word) = &*teller;
            word.store(1, Ordering::Relaxed);
            progress.tell([5].into_iter());
        });
        let (progress, word) = &*shared;
        progress.wait(5, || word.load(Ordering::Relaxed) == 1);
        teller.join().unwrap();
        assert_eq!(progress.parked.load(Ordering::Relaxed), 0);
    });
}

/// A worker that is found in a line, and is still there afterwards, is in the commit whose serial number was loaded
/// between.
#[test]
fn a_predecessor_is_the_commit_that_is_in_line() {
    Model::new().preemptions(3).needs(Part::LOADS).needs(Part::STORES).needs(Part::UPDATES).check(|| {
        let shared = Arc::new((Progress::modelled(), TicketLock::default()));
        let before = shared.clone();
        let before = spawn(move || {
            let (progress, line) = &*before;
            progress.begin(0, Some(1));
            let (position, _) = line.join_writing(0);
            progress.finish(0);
            line.leave_writing(position, ClockBlock::default());
            progress.begin(0, Some(1));
        });
        let (progress, line) = &*shared;
        let (position, last) = line.join_writing(1);
        if last == Some(0) {
            let predecessor = progress.current(0);
            if line.has_writers_before(position) {
                assert_eq!(predecessor.serial, 1);
            }
        }
        before.join().unwrap();
    });
}

/// An attempt that has passed a rank is in line there, for everybody who knows that it has passed.
#[test]
fn an_attempt_that_has_passed_a_rank_is_in_line_there() {
    Model::new().needs(Part::LOADS).needs(Part::STORES).check(|| {
        let shared = Arc::new((Progress::modelled(), TicketLock::default()));
        shared.0.begin(0, Some(1));
        let predecessor = shared.0.current(0);
        let before = shared.clone();
        let before = spawn(move || {
            let (progress, line) = &*before;
            line.join_writing(0);
            progress.of(0).advance(None);
        });
        let (progress, line) = &*shared;
        if progress.bound(predecessor) > 1 {
            assert_eq!(line.version(), None);
        }
        before.join().unwrap();
    });
}

/// A bound is that of the given commit, or the end of it, but never that of the next one.
#[test]
fn the_bound_of_a_later_commit_is_not_taken_for_that_of_an_earlier_one() {
    Model::new().needs(Part::LOADS).needs(Part::STORES).check(|| {
        let progress = Arc::new(Progress::modelled());
        progress.begin(0, Some(5));
        let predecessor = progress.current(0);
        let later = progress.clone();
        let later = spawn(move || {
            later.finish(0);
            later.begin(0, Some(1));
        });
        assert!(progress.bound(predecessor) >= 5);
        later.join().unwrap();
    });
}

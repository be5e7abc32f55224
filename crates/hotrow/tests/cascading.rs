//! Pieces that are taken back, under `ic3+cascading`: rollbacks, panics and strays after pieces that others have seen, with all that
//! have seen them.

mod moves;

use hotrow::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use hotrow::sync::random::Random;
use hotrow::sync::{Arc, thread};
use hotrow::{Counter, Error};
use moves::{ACTIONS, Action, Failure, KEYS, Move, Tables, is_whole};
use std::panic::{AssertUnwindSafe, catch_unwind};

fn until(condition: impl Fn() -> bool) {
    while !condition() {
        thread::yield_now();
    }
}

#[test]
fn what_each_operation_has_done_is_taken_back() {
    let tables = Tables::new();
    for is_there in [false, true] {
        if is_there {
            assert_eq!(tables.db.execute(&tables.moves(0, Action::Insert)), Ok(0));
        }
        let before = tables.now();
        for action in ACTIONS {
            for failure in [Failure::Second, Failure::Third] {
                let fails = Move { failure, ..tables.moves(0, action) };
                assert!(matches!(tables.db.execute(&fails), Err(Error::Rollback(_))), "{action:?}");
                assert_eq!(tables.now(), before, "{action:?} {failure:?}");
            }
        }
    }
    assert_eq!(tables.count(&Counter::TAKEN_BACK), 24);
    assert_eq!(tables.db.execute(&tables.moves(0, Action::TakeFirst)), Ok(1));
    assert_eq!(tables.now().0[..4], [Some(2), Some(0), Some(2), None]);
    let statistics = tables.db.statistics();
    assert_eq!(statistics.rollbacks, 24 + ACTIONS.len() as u64 + 1, "and those of the traces");
}

#[test]
fn a_panic_after_pieces_takes_them_back_and_passes_on() {
    let tables = Tables::new();
    let panics = Move { failure: Failure::Panics, ..tables.moves(0, Action::Insert) };
    let before = tables.now();
    assert!(catch_unwind(AssertUnwindSafe(|| tables.db.execute(&panics))).is_err());
    assert_eq!(tables.now(), before);
    assert_eq!(tables.db.execute(&tables.moves(0, Action::Insert)), Ok(0), "nobody waits for it");
}

#[test]
fn a_procedure_that_strays_after_pieces_is_taken_back_and_runs_whole() {
    let tables = Tables::new();
    let strays = Move { failure: Failure::Strays, ..tables.moves(0, Action::Update) };
    let whole = tables.count(&Counter::WHOLE);
    assert_eq!(tables.db.execute(&strays), Ok(0));
    assert_eq!(tables.count(&Counter::TAKEN_BACK), 1);
    assert_eq!(tables.count(&Counter::WHOLE), whole + 1);
    assert_eq!(tables.now().0[..3], [Some(1), Some(1), Some(1)]);
}

/// Those that have seen it are taken back with it, and made again; nobody is told of what never was.
#[test]
fn those_that_have_seen_a_piece_are_taken_back_with_it() {
    let tables = Tables::new();
    let gate = Arc::new(AtomicBool::new(false));
    let fails = Move { failure: Failure::Third, gate: gate.clone(), ..tables.moves(0, Action::Update) };
    let follows = tables.moves(0, Action::Insert);
    let decides = Move { failure: Failure::Second, ..tables.moves(0, Action::Delete) };
    thread::scope(|scope| {
        let one = scope.spawn(|| tables.db.execute(&fails));
        until(|| tables.count(&Counter::PIECES) >= 2);
        let other = scope.spawn(|| tables.db.execute(&follows));
        until(|| follows.seen.load(Ordering::SeqCst) == 1);
        let third = scope.spawn(|| tables.db.execute(&decides));
        until(|| decides.seen.load(Ordering::SeqCst) != u64::MAX);
        let snapshot = scope.spawn(|| {
            let snapshot = tables.db.snapshot_strict().unwrap();
            snapshot.transact(|tx| tables.read(tx)).unwrap()
        });
        for _ in 0..1_000 {
            thread::yield_now();
        }
        assert!(!other.is_finished(), "it waits for the one before");
        assert!(!third.is_finished(), "and so does one that rolls back");
        gate.store(true, Ordering::SeqCst);
        assert!(matches!(one.join().unwrap(), Err(Error::Rollback(_))));
        assert_eq!(other.join().unwrap(), Ok(0), "made again, it sees nothing of the first");
        assert!(matches!(third.join().unwrap(), Err(Error::Rollback(_))));
        let (numbers, sum) = snapshot.join().unwrap();
        assert_eq!(numbers[0], numbers[2], "a snapshot sees whole transactions");
        assert_eq!(numbers[0], Some(sum));
    });
    assert!(tables.count(&Counter::TAKEN_BACK) >= 2);
    let (numbers, sum) = tables.now();
    assert_eq!((&numbers[..4], sum), (&[Some(1), Some(0), Some(1), Some(1)][..], 1));
}

#[test]
fn rollbacks_in_every_piece_leave_no_trace_beside_others_snapshots_and_strangers() {
    const THREADS: u64 = 4;
    const EACH: u64 = 250;
    let tables = Tables::new();
    let recording = tables.db.record_history(1 << 27).unwrap();
    let committed = AtomicU64::new(0);
    thread::scope(|scope| {
        for number in 0..THREADS {
            let (tables, committed) = (&tables, &committed);
            scope.spawn(move || {
                let mut worker = tables.db.worker().unwrap();
                let mut random = Random::stream(7, number);
                for _ in 0..EACH {
                    let (key, action) = (random.below(KEYS), ACTIONS[random.below(6) as usize]);
                    let failure = match random.below(12) {
                        0 | 1 => Failure::Second,
                        2 | 3 => Failure::Third,
                        4 => Failure::Strays,
                        _ => Failure::None,
                    };
                    match random.below(20) {
                        0 => {
                            let (numbers, sum) = worker.transact(|tx| tables.read(tx)).unwrap();
                            is_whole(&numbers, sum);
                        }
                        1 => {
                            let snapshot = tables.db.snapshot_strict().unwrap();
                            let (numbers, sum) = snapshot.transact(|tx| tables.read(tx)).unwrap();
                            is_whole(&numbers, sum);
                        }
                        2..6 => drop(tables.db.execute_on(&mut worker, &tables.look(key)).unwrap()),
                        _ => {
                            let moves = Move { failure, ..tables.moves(key, action) };
                            match tables.db.execute_on(&mut worker, &moves) {
                                Ok(_) => _ = committed.fetch_add(1, Ordering::SeqCst),
                                Err(Error::Rollback(_)) => {
                                    assert!(matches!(failure, Failure::Second | Failure::Third));
                                }
                                Err(error) => panic!("{error}"),
                            }
                        }
                    }
                }
            });
        }
    });
    let (numbers, sum) = tables.now();
    is_whole(&numbers, sum);
    assert_eq!(sum, committed.into_inner());
    let report = hotrow_check::check(&recording.finish()).unwrap();
    assert!(report.is(report.claimed()), "{report}");
    assert!(tables.count(&Counter::TAKEN_BACK) > THREADS * EACH / 20);
}

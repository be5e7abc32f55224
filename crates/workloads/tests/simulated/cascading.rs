//! Pieces that are taken back, under `ic3+cascading`, in many schedules on virtual cores.

use crate::moves::{ACTIONS, Failure, KEYS, Move, Tables, is_whole};
use crate::short_schedule;
use hotrow::protocols::Occ;
use hotrow::sync::random::Random;
use hotrow::{Abort, Counter, Error, Isolation, Profile, Worker};
use hotrow_sim::{Machine, Simulation, SimulationReport};
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs a few transactions on one core. Returns the sum of what has been added.
fn run_core(tables: &Tables, worker: &mut Worker<Occ>, core: u64, seed: u64) -> u64 {
    let mut random = Random::stream(seed, core);
    let mut added = 0;
    for _ in 0..3 {
        let (key, action) = (random.below(KEYS), ACTIONS[random.below(6) as usize]);
        let failure = match random.below(12) {
            0 | 1 => Failure::Second,
            2 | 3 => Failure::Third,
            4 => Failure::Strays,
            5 => Failure::Panics,
            _ => Failure::None,
        };
        match random.below(12) {
            0 => {
                let (numbers, sum) = worker.transact(|tx| tables.read(tx)).expect("it only reads");
                is_whole(&numbers, sum);
            }
            1 | 2 => {
                let isolation = [Isolation::StrictSnapshot, Isolation::Snapshot][random.below(2) as usize];
                let profile = Profile { read_only: true, isolation, ..Profile::UNKNOWN };
                let read = worker.try_transact_as::<_, Abort>(profile, |tx| tables.read(tx));
                let (numbers, sum) = read.expect("it only reads");
                is_whole(&numbers, sum);
            }
            3 | 4 => _ = tables.db.execute_on(worker, &tables.look(key)).expect("both numbers are the same"),
            _ => {
                let moves = Move { failure, amount: 1 + random.below(3), ..tables.moves(key, action) };
                let run = AssertUnwindSafe(|| tables.db.execute_on(worker, &moves));
                match catch_unwind(run) {
                    Ok(Ok(_)) => added += moves.amount,
                    Ok(Err(Error::Rollback(_))) => {
                        assert!(matches!(failure, Failure::Second | Failure::Third));
                    }
                    Ok(Err(error)) => panic!("{error}"),
                    Err(panic) if failure == Failure::Panics => drop(panic),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
        }
    }
    added
}

/// Explores schedules. Returns the numbers of dependencies, and of transactions that were taken back.
fn explore(seeds: std::ops::Range<u64>) -> (u64, u64) {
    let (mut dependencies, mut taken_back) = (0, 0);
    for seed in seeds {
        let tables = Tables::new();
        let recording = tables.db.record_history(1 << 24).expect("a new engine");
        let cores = 2 + (seed % 3) as usize;
        let machine = Machine::named("server-128").expect("it comes with the simulator");
        let config = short_schedule(machine, cores, seed, 500_000);
        let workers: Vec<_> = (0..cores).map(|_| RefCell::new(Some(tables.db.worker().unwrap()))).collect();
        let added: Vec<_> = (0..cores).map(|_| RefCell::new(0)).collect();
        let SimulationReport { end, .. } =
            Simulation::new(config).expect("options that can be").try_run(|core| {
                let mut worker = workers[core].take().expect("each core has its own");
                *added[core].borrow_mut() = run_core(&tables, &mut worker, core as u64, seed);
            });
        assert!(end.is_finished(), "schedule {seed}: {end}");
        let report = hotrow_check::check(&recording.finish())
            .unwrap_or_else(|error| panic!("the history contradicts itself: {error}, schedule {seed}"));
        assert!(report.is(report.claimed()), "schedule {seed}: {report}");
        let (numbers, sum) = tables.now();
        is_whole(&numbers, sum);
        assert_eq!(sum, added.iter().map(|added| *added.borrow()).sum::<u64>(), "schedule {seed}");
        dependencies += tables.count(&Counter::DEPENDENCIES);
        taken_back += tables.count(&Counter::TAKEN_BACK);
    }
    (dependencies, taken_back)
}

#[test]
fn what_is_taken_back_is_seen_by_nobody_in_any_schedule() {
    let (dependencies, taken_back) = explore(0..1_000);
    assert!(
        dependencies > 300 && taken_back > 1_000,
        "{dependencies} dependencies, {taken_back} transactions taken back"
    );
}

#[test]
#[ignore = "takes minutes: run it when pieces, their order or snapshots have changed"]
fn what_is_taken_back_is_seen_by_nobody_in_very_many_schedules() {
    explore(1_000..101_000);
}

/// A row comes back with a new record: whoever finds it comes after those that have written the former one, and are in progress.
#[test]
fn a_row_that_comes_back_is_seen_when_those_before_have_ended() {
    explore(8_329..8_330);
}

/// One that is taken back, and ends, between the validation of a read and the look at the lists.
#[test]
fn what_was_read_is_validated_when_those_before_are_known() {
    explore(47_435..47_436);
}

//! The same stress for protocols and mutants.

use crate::deferred_mutants::{DeferredMutant, deferred_fault};
use crate::mutants::{Mutant, fault};
use crate::timestamp_mutants::{TimestampMutant, timestamp_fault};
use hotrow::protocols::{Visitor, for_each_protocol};
use hotrow::sync::clock;
use hotrow::sync::random::Random;
use hotrow::sync::thread;
use hotrow::{Engine, Protocol, RetryPolicy};
use hotrow_check::Report;
use hotrow_workloads::stress::StressOptions;
use hotrow_workloads::{Check, End, Unobserved, Workload, WorkloadDefinition as _};
use std::time::Duration;

/// Memory for a history: never reached here.
const BOUND: usize = 1 << 30;

/// One run on new objects: so many transactions on each of so many threads.
#[derive(Debug, Clone, Copy)]
struct Batch {
    options: StressOptions,
    threads: usize,
    transactions: usize,
    seed: u64,
}

impl Batch {
    /// A batch whose shape is drawn, too: one key or many, short transactions or long ones, few writes or many.
    fn drawn(seed: u64, transactions: usize) -> Self {
        let mut random = Random::seeded(seed);
        let keys = [1, 2, 3, 8, 64][random.below(5) as usize];
        let options = StressOptions {
            keys,
            ops: [2, 4, 8, 16][random.below(4) as usize],
            write_share: [0.1, 0.3, 0.5, 0.9][random.below(4) as usize],
            rollback_share: 0.05,
            panic_share: 0.01,
            yield_share: [0.0, 0.02, 0.2][random.below(3) as usize],
        };
        Self { options, threads: [2, 3, 4, 8][random.below(4) as usize], transactions, seed }
    }

    /// Runs it and judges it: the workload's own checks that failed, and the verdict on the history.
    fn run<P: Protocol>(self, protocol: &str) -> (Vec<Check>, Report) {
        let Self { options, threads, transactions, seed } = self;
        let engine = Engine::<P>::named(protocol, RetryPolicy::default()).unwrap();
        let stress = options.load(&engine, threads, seed, &Unobserved).unwrap();
        let recording = engine.record_history(BOUND).unwrap();
        let clients = thread::scope(|scope| {
            let started: Vec<_> = (0..threads)
                .map(|number| {
                    let (stress, engine) = (&stress, &engine);
                    scope.spawn(move || {
                        let mut worker = engine.worker().unwrap();
                        let mut client = stress.client(number, threads, seed);
                        for _ in 0..transactions {
                            stress.prepare(&mut client);
                            if let End::Failed(message) = stress.run_one(&mut worker, &mut client).end {
                                panic!("{message}");
                            }
                        }
                        client
                    })
                })
                .collect();
            started.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let history = recording.finish();
        assert!(history.complete);
        let failed = stress.checks(&mut engine.worker().unwrap(), clients);
        let failed = failed.into_iter().filter(|check| !check.passed).collect();
        (failed, hotrow_check::check(&history).unwrap())
    }
}

/// Stress for one protocol.
#[derive(Clone, Copy)]
struct Passes {
    transactions: usize,
}

impl Visitor for Passes {
    type Output = ();

    fn visit<P: Protocol>(self, name: &str) {
        let mut left = self.transactions;
        let mut seed = 0;
        while left > 0 {
            seed += 1;
            let batch = Batch::drawn(seed, left.min(if self.transactions > 100_000 { 20_000 } else { 400 }));
            left = left.saturating_sub(batch.transactions * batch.threads);
            let (failed, report) = batch.run::<P>(name);
            assert!(failed.is_empty(), "{name}: {batch:?}: {failed:?}");
            assert!(report.is(report.claimed()), "{name}: {batch:?}\n{report}");
        }
    }
}

#[test]
fn random_transactions_are_serializable_strictly_so_and_opaque_where_that_is_claimed() {
    for_each_protocol(8, Passes { transactions: 6_000 });
}

/// Millions of transactions for each protocol; `HOTROW_STRESS_TRANSACTIONS` says how many, unless a million.
#[test]
#[ignore = "long: run with -- --ignored"]
fn very_many_random_transactions_are_what_their_protocol_claims() {
    let transactions = std::env::var("HOTROW_STRESS_TRANSACTIONS").ok();
    let transactions = transactions.map_or(1_000_000, |number| number.parse().expect("a number"));
    for_each_protocol(8, Passes { transactions });
}

/// Runs a mutant until it is caught. Returns what was said.
fn caught<P: Protocol>() -> String {
    let begin = clock::now();
    let mut seed = 0;
    // A machine that is busy with something else takes longer for so many.
    while begin.elapsed() < Duration::from_secs(10) || seed < 200 {
        seed += 1;
        let (failed, report) = Batch::drawn(seed, 400).run::<P>("mutant");
        if !report.serializable {
            return format!("{:.2} s: {failed:?}\n{report}", begin.elapsed().as_secs_f64());
        }
    }
    panic!("a mutant was not caught in ten seconds, and {seed} histories");
}

/// The names of what a mutant can do: a cycle of reads and writes, or, if it runs an intention before its turn, a transaction
/// in another order than its own.
const FAULTS: [&str; 6] = [
    "lost update",
    "unrepeatable read",
    "read skew",
    "write skew",
    "phantom",
    "a transaction's own order reversed",
];

macro_rules! mutants {
    ($($name:ident: $mutant:ident, $fault:path;)*) => {$(
        #[test]
        fn $name() {
            let said = caught::<$mutant<{ $fault }>>();
            println!("{said}");
            assert!(FAULTS.iter().any(|anomaly| said.contains(anomaly)), "{said}");
        }
    )*};
}

mutants! {
    unchecked_reads_are_caught: Mutant, fault::READS_UNCHECKED;
    versions_published_before_their_values_are_caught: Mutant, fault::PUBLISHED_EARLY;
    unchecked_phantoms_are_caught: Mutant, fault::PHANTOMS_UNCHECKED;
    a_stale_snapshot_is_caught: Mutant, fault::STALE_SNAPSHOT;
    snapshot_isolation_is_caught: Mutant, fault::READS_OF_OTHERS_UNCHECKED;
    checks_before_locks_are_caught: Mutant, fault::CHECKED_BEFORE_LOCKED;
    unchecked_predicates_are_caught: Mutant, fault::PREDICATES_UNCHECKED;
    predicates_looked_at_before_locks_are_caught: Mutant, fault::PREDICATES_BEFORE_LOCKS;
    only_the_last_read_checked_is_caught: Mutant, fault::LAST_READ_CHECKED;
    locks_taken_one_by_one_are_caught: Mutant, fault::LOCKED_ONE_BY_ONE;
    only_the_first_write_locked_is_caught: Mutant, fault::FEW_LOCKED;
    reused_versions_are_caught: Mutant, fault::VERSIONS_REUSED;
    unheeded_locks_are_caught: Mutant, fault::LOCKS_UNHEEDED;
    unchecked_readers_are_caught: Mutant, fault::READERS_UNCHECKED;
    logical_time_without_a_place_for_absence_is_caught: TimestampMutant, timestamp_fault::NO_FLOOR;
    insertions_at_any_logical_time_are_caught: TimestampMutant, timestamp_fault::FLOOR_FOR_READERS_ONLY;
    reads_that_are_not_extended_are_caught: TimestampMutant, timestamp_fault::NOT_EXTENDED;
    extensions_under_locks_are_caught: TimestampMutant, timestamp_fault::EXTENDED_UNDER_LOCKS;
    writes_in_the_midst_of_a_version_are_caught: TimestampMutant, timestamp_fault::READERS_UNHEEDED;
    two_versions_of_one_segment_are_caught: TimestampMutant, timestamp_fault::LAST_READ_COUNTS;
    uncertified_attempts_are_caught: DeferredMutant, deferred_fault::UNCERTIFIED;
    uncertified_absence_is_caught: DeferredMutant, deferred_fault::STRUCTURES_UNCERTIFIED;
    lines_left_before_their_values_are_installed_are_caught: DeferredMutant, deferred_fault::LEFT_EARLY;
    deferred_reads_out_of_line_are_caught: DeferredMutant, deferred_fault::READ_OUT_OF_LINE;
}

#[test]
fn the_mutants_without_a_fault_are_not_caught() {
    for seed in 1..=20 {
        let batch = Batch::drawn(seed, 400);
        let none = [
            batch.run::<Mutant<{ fault::NONE }>>("mutant"),
            batch.run::<TimestampMutant<{ timestamp_fault::NONE }>>("mutant"),
            batch.run::<DeferredMutant<{ deferred_fault::NONE }>>("mutant"),
        ];
        for (failed, report) in none {
            assert!(failed.is_empty(), "{batch:?}: {failed:?}");
            assert!(report.is(report.claimed()), "{batch:?}\n{report}");
        }
    }
}

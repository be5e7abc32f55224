//! The same stress for protocols and mutants.

use crate::mutants::{STAMPED_WRONG, for_each_faultless_mutant, for_each_mutant, has_snapshots};
use hotrow::protocols::{Visitor, for_each_protocol, with_protocol};
use hotrow::sync::clock;
use hotrow::sync::random::Random;
use hotrow::sync::thread;
use hotrow::{Database, Engine, Protocol, RetryPolicy};
use hotrow_check::Report;
use hotrow_workloads::stress::StressOptions;
use hotrow_workloads::{End, Unobserved, Workload, WorkloadDefinition as _};
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
            part_share: 0.1,
            panic_share: 0.01,
            yield_share: [0.0, 0.02, 0.2][random.below(3) as usize],
            snapshot_share: if seed.is_multiple_of(2) { 0.2 } else { 0.0 },
            caches: seed / 2 % 2 == 1,
        };
        Self { options, threads: [2, 3, 4, 8][random.below(4) as usize], transactions, seed }
    }

    /// The batch with no transaction on a snapshot. A mutant that believes a read of a row which has been deleted since writes to the dead
    /// row, and versions that snapshots find in place rest on it that nobody does: threads that run at once would use freed memory.
    fn without_snapshots(mut self) -> Self {
        self.options.snapshot_share = 0.0;
        self
    }

    /// Runs it and judges it: the messages of failed transactions and of the workload's own failed checks, and the verdict
    /// on the history.
    fn run<P: Protocol>(self, protocol: &str) -> (Vec<String>, Report) {
        let batch = if has_snapshots::<P>(protocol) { self } else { self.without_snapshots() };
        let Self { options, threads, transactions, seed } = batch;
        let engine = Engine::<P>::named(protocol, RetryPolicy::default()).unwrap();
        let stress = options.load(&Database::on(&engine), threads, seed, &Unobserved).unwrap();
        let recording = engine.record_history(BOUND).unwrap();
        let clients = thread::scope(|scope| {
            let started: Vec<_> = (0..threads)
                .map(|number| {
                    let (stress, engine) = (&stress, &engine);
                    scope.spawn(move || {
                        let mut worker = engine.worker().unwrap();
                        let (mut client, mut said) = (stress.client(number, threads, seed), Vec::new());
                        for _ in 0..transactions {
                            stress.prepare(&mut client);
                            if let End::Failed(message) = stress.run_one(&mut worker, &mut client).end {
                                said.push(message);
                            }
                        }
                        (client, said)
                    })
                })
                .collect();
            // A snapshot that a mutant has broken may fail an assertion of the library's.
            let panicked = |_| (None, vec![String::from("a thread has panicked")]);
            let joined = started.into_iter().map(|thread| {
                let ended = thread.join().map(|(client, said)| (Some(client), said));
                ended.unwrap_or_else(panicked)
            });
            joined.collect::<Vec<_>>()
        });
        let (clients, said): (Vec<_>, Vec<_>) = clients.into_iter().unzip();
        let clients = clients.into_iter().flatten().collect();
        let history = recording.finish();
        assert!(history.complete);
        let failed = stress.checks(&mut engine.worker().unwrap(), clients);
        let failed = failed.into_iter().filter(|check| !check.passed).map(|check| format!("{check:?}"));
        let failed = said.into_iter().flatten().chain(failed).collect();
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
    for_each_protocol(8, Passes { transactions: 3_000 });
    with_protocol("drp+calm=1", Passes { transactions: 3_000 }).expect("a name that drp parses");
}

/// Millions of transactions for each protocol; `HOTROW_STRESS_TRANSACTIONS` says how many, unless a million.
#[test]
#[ignore = "long: run with -- --ignored"]
fn very_many_random_transactions_are_what_their_protocol_claims() {
    let transactions = std::env::var("HOTROW_STRESS_TRANSACTIONS").ok();
    let transactions = transactions.map_or(1_000_000, |number| number.parse().expect("a number"));
    for_each_protocol(8, Passes { transactions });
}

/// True of the mutants that only exploring schedules finds: those with wrong stamps, and one of which no history shows the fault, only what
/// bodies say that they have seen.
fn is_only_explored(name: &str) -> bool {
    name == "unchecked-rollbacks" || STAMPED_WRONG.contains(&name)
}

/// Runs a mutant until its history is not serializable. What was said then.
#[derive(Clone, Copy)]
struct Caught;

impl Visitor for Caught {
    type Output = Option<String>;

    fn visit<P: Protocol>(self, name: &str) -> Option<String> {
        if is_only_explored(name) {
            return None;
        }
        let begin = clock::now();
        let mut seed = 0;
        // A machine that is busy with something else takes longer for so many.
        while begin.elapsed() < Duration::from_secs(10) || seed < 200 {
            seed += 1;
            let (failed, report) = Batch::drawn(seed, 400).without_snapshots().run::<P>(name);
            if !report.serializable {
                return Some(format!("{seed} histories: {:?}\n{report}", failed.first()));
            }
        }
        None
    }
}

/// The names of what a mutant can do: a cycle of writes, or of reads and writes, or, if it runs an intention before its turn, a transaction
/// in another order than its own.
const ANOMALIES: [&str; 7] = [
    "dirty write",
    "lost update",
    "unrepeatable read",
    "read skew",
    "write skew",
    "phantom",
    "a transaction's own order reversed",
];

#[test]
fn every_mutant_is_caught() {
    let mut missed = Vec::new();
    for (name, said) in for_each_mutant(Caught).into_iter().filter(|(name, _)| !is_only_explored(name)) {
        let said = said.unwrap_or_else(|| String::from("not caught in ten seconds and 200 histories"));
        println!("{name}: {said}");
        if !ANOMALIES.iter().any(|anomaly| said.contains(anomaly)) {
            missed.push((name, said));
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
}

#[derive(Clone, Copy)]
struct NotCaught;

impl Visitor for NotCaught {
    type Output = ();

    fn visit<P: Protocol>(self, name: &str) {
        for seed in 1..=20 {
            let batch = Batch::drawn(seed, 400);
            let (failed, report) = batch.run::<P>(name);
            assert!(failed.is_empty(), "{batch:?}: {failed:?}");
            assert!(report.is(report.claimed()), "{batch:?}\n{report}");
        }
    }
}

#[test]
fn the_mutants_without_a_fault_are_not_caught() {
    for_each_faultless_mutant(NotCaught);
}

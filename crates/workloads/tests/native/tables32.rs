//! The 32 tables, fewer and smaller here, under every protocol.

use crate::native::clients::{run_client, run_clients};
use hotrow::protocols::{Visitor, for_each_protocol};
use hotrow::{Database, Engine, OperationKind, Procedures, Protocol, RetryPolicy};
use hotrow_workloads::tables32::Tables32Options;
use hotrow_workloads::tables32::procedure::IncrementProcedure;
use hotrow_workloads::{Check, End, Unobserved, Workload, WorkloadDefinition as _};

/// Runs `transactions` on each of `threads` workers and returns the checks.
#[derive(Clone, Copy)]
struct Run {
    options: Tables32Options,
    threads: usize,
    transactions: usize,
}

impl Visitor for Run {
    type Output = Vec<Check>;

    fn visit<P: Protocol>(self, name: &str) -> Vec<Check> {
        let Self { options, threads, transactions } = self;
        let engine = Engine::<P>::named(name, RetryPolicy::default()).unwrap();
        let workload =
            options.load(&Database::on(&engine), 2, 7, &Unobserved).expect("records can be loaded");
        let clients = run_clients(&engine, &workload, threads, transactions, |_, ran| {
            assert_eq!((ran.end, ran.kind), (End::Committed, 0));
        });
        workload.checks(&mut engine.worker().expect("all other workers are gone"), clients)
    }
}

#[test]
fn every_contention_passes_its_checks_under_every_protocol() {
    for (tables, records, hot_records) in [(32, 50, 50), (32, 50, 1), (8, 2, 2), (1, 3, 1)] {
        let options = Tables32Options { tables, records, hot_records };
        for threads in [1, 4] {
            let run = Run { options, threads, transactions: 200 };
            for (protocol, found) in for_each_protocol(threads as u32, run) {
                assert_eq!(found.len(), 3);
                assert!(found.iter().all(|check| check.passed), "{options:?} under {protocol}: {found:?}");
            }
        }
    }
}

/// A change behind the transactions' back.
#[derive(Debug, Clone, Copy)]
enum Damage {
    None,
    /// A record goes.
    Delete,
    /// A record of the last table that nobody has incremented so often.
    Increment,
    /// A record of the first table that no transaction chooses has what a hot one had.
    Move,
}

impl Visitor for Damage {
    type Output = Vec<bool>;

    fn visit<P: Protocol>(self, name: &str) -> Vec<bool> {
        let engine = Engine::<P>::named(name, RetryPolicy::default()).unwrap();
        let options = Tables32Options { tables: 3, records: 10, hot_records: 1 };
        let workload =
            options.load(&Database::on(&engine), 1, 7, &Unobserved).expect("records can be loaded");
        let mut worker = engine.worker().expect("the first");
        let client = run_client(&workload, &mut worker, workload.client(0, 1, 3), 20, |_, ran| {
            assert_eq!(ran.end, End::Committed);
        });
        let table = |number: usize| workload.database().table_of(workload.tables()[number]);
        let (first, last) = (table(0), table(2));
        let damaged = worker.transact(|tx| match self {
            Damage::None => Ok(()),
            // Its integer was added elsewhere, so that the sum is as before.
            Damage::Delete => {
                let was = last.get(tx, &4)?.expect("no one else deletes");
                last.update_if_present(tx, &5, |row| *row += was)?;
                last.delete(tx, &4).map(drop)
            }
            Damage::Increment => last.update_if_present(tx, &4, |row| *row += 1).map(drop),
            Damage::Move => {
                first.update_if_present(tx, &0, |row| *row -= 1)?;
                first.update_if_present(tx, &9, |row| *row += 1).map(drop)
            }
        });
        damaged.expect("nobody else is there");
        workload.checks(&mut worker, vec![client]).into_iter().map(|check| check.passed).collect()
    }
}

#[test]
fn the_checks_fail_on_damaged_records() {
    // True for each of the three checks that passes: all there, sums, only hot records of the first table.
    for (damage, passed) in [
        (Damage::None, [true, true, true]),
        (Damage::Delete, [false, true, true]),
        (Damage::Increment, [true, false, true]),
        (Damage::Move, [true, true, false]),
    ] {
        for (protocol, found) in for_each_protocol(1, damage) {
            assert_eq!(found, passed, "{damage:?} under {protocol}");
        }
    }
}

#[derive(Clone, Copy)]
struct TraceOperations;

impl Visitor for TraceOperations {
    type Output = ();

    fn visit<P: Protocol>(self, name: &str) {
        let engine = Engine::<P>::named(name, RetryPolicy::default()).unwrap();
        let options = Tables32Options { tables: 3, records: 10, hot_records: 10 };
        let workload =
            options.load(&Database::on(&engine), 1, 7, &Unobserved).expect("records can be loaded");
        let procedure = IncrementProcedure { tables: workload.tables(), keys: &[7, 3, 5] };
        let mut worker = engine.worker().expect("the first");
        let trace = workload.database().trace_on(&mut worker, &procedure).expect("nobody else is there");
        let done: Vec<_> = trace
            .operations
            .iter()
            .map(|operation| {
                (operation.key.as_str(), operation.kind, operation.data.len() + operation.control.len())
            })
            .collect();
        let expected = ["7", "3", "5"].map(|key| (key, OperationKind::Write, 0));
        assert_eq!(done, expected, "{trace}");
        assert!(trace.is_tame(), "which records are touched is known beforehand\n{trace}");
    }
}

#[test]
fn a_recording_has_one_independent_increment_for_each_table() {
    for_each_protocol(1, TraceOperations);
}

#[derive(Clone, Copy)]
struct Draw;

impl Visitor for Draw {
    type Output = ();

    fn visit<P: Protocol>(self, name: &str) {
        let engine = Engine::<P>::named(name, RetryPolicy::default()).unwrap();
        let options = Tables32Options { tables: 2, records: 6, hot_records: 2 };
        let workload =
            options.load(&Database::on(&engine), 1, 7, &Unobserved).expect("records can be loaded");
        let mut client = workload.client(0, 1, 3);
        let mut drawn = [[0; 6]; 2];
        for _ in 0..300 {
            workload.prepare(&mut client);
            for (number, key) in client.keys().iter().enumerate() {
                drawn[number][*key as usize] += 1;
            }
        }
        assert!(drawn[0][..2].iter().all(|times| *times > 0) && drawn[0][2..] == [0; 4], "{drawn:?}");
        assert!(drawn[1].iter().all(|times| *times > 0), "{drawn:?}");
    }
}

#[test]
fn the_first_table_is_drawn_from_its_hot_records_only() {
    for_each_protocol(1, Draw);
}

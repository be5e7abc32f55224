//! YCSB with few records, under every protocol.

use crate::native::clients::{run_client, run_clients};
use hotrow::protocols::{Visitor, for_each_protocol};
use hotrow::{Abort, Database, Engine, OperationKind, Procedures, Protocol, RetryPolicy, Table, Transaction};
use hotrow_workloads::ycsb::procedure::{Action, Operation, YcsbProcedure};
use hotrow_workloads::ycsb::rows::{Long, Row};
use hotrow_workloads::ycsb::{Preset, Records, YcsbOptions};
use hotrow_workloads::{Check, End, Unobserved, Workload, WorkloadDefinition as _};

/// Runs `transactions` on each of `threads` workers and returns the checks.
#[derive(Clone, Copy)]
struct Run {
    options: YcsbOptions,
    threads: usize,
    transactions: usize,
}

impl Visitor for Run {
    type Output = Vec<Check>;

    fn visit<P: Protocol>(self, name: &str) -> Vec<Check> {
        let Self { options, threads, transactions } = self;
        let engine = Engine::<P>::named(name, RetryPolicy::default()).unwrap();
        let ycsb = options.load(&Database::on(&engine), 2, 7, &Unobserved).expect("records can be loaded");
        let clients = run_clients(&engine, &ycsb, threads, transactions, |client, ran| {
            assert_eq!((ran.end, ran.kind), (End::Committed, client.is_big().into()));
        });
        ycsb.checks(&mut engine.worker().expect("all other workers are gone"), clients)
    }
}

#[test]
fn every_preset_passes_its_checks_under_every_protocol() {
    for (preset, value_bytes, checks) in
        [(Preset::A, 100, 2), (Preset::B, 10, 2), (Preset::C, 17, 3), (Preset::F, 16, 3), (Preset::F, 100, 3)]
    {
        let options = YcsbOptions { records: 100, value_bytes, theta: 0.99, ..YcsbOptions::of(preset) };
        for threads in [1, 4] {
            let run = Run { options, threads, transactions: 1_000 };
            for (protocol, found) in for_each_protocol(threads as u32, run) {
                assert_eq!(found.len(), checks);
                assert!(found.iter().all(|check| check.passed), "{preset:?} under {protocol}: {found:?}");
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
    /// A value of another size.
    Grow,
    /// The value as it was loaded: the writes since are lost.
    Reset,
    /// A change that nobody has committed.
    Change,
}

impl Damage {
    fn to<P: Protocol>(self, table: &Table<u64, Long, P>, tx: &mut Transaction<'_, P>) -> Result<(), Abort> {
        const KEY: u64 = 3;
        let stamp = table.read(tx, &KEY, |row| row.inspect(BYTES).unwrap().stamp)?.unwrap();
        assert_ne!(stamp, 0, "the record was written");
        match self {
            Damage::None => Ok(()),
            Damage::Delete => table.delete(tx, &KEY).map(drop),
            Damage::Grow => table.replace_if_present(tx, &KEY, Long::filled(BYTES + 1, stamp)).map(drop),
            Damage::Reset => table.replace_if_present(tx, &KEY, Long::filled(BYTES, 0)).map(drop),
            Damage::Change => table.update_if_present(tx, &KEY, |row| row.change(stamp)).map(drop),
        }
    }
}

const BYTES: u32 = 20;

impl Visitor for Damage {
    type Output = Vec<bool>;

    fn visit<P: Protocol>(self, name: &str) -> Vec<bool> {
        let engine = Engine::<P>::named(name, RetryPolicy::default()).unwrap();
        let options = YcsbOptions { records: 16, value_bytes: BYTES, ..YcsbOptions::of(Preset::F) };
        let ycsb = options.load(&Database::on(&engine), 1, 7, &Unobserved).expect("records can be loaded");
        let mut worker = engine.worker().expect("the first");
        let client = run_client(&ycsb, &mut worker, ycsb.client(0, 1, 3), 200, |_, ran| {
            assert_eq!(ran.end, End::Committed);
        });
        let Records::Long(table) = ycsb.table() else { panic!("values are long") };
        worker.transact(|tx| self.to(ycsb.database().table_of(table), tx)).expect("nobody else is there");
        ycsb.checks(&mut worker, vec![client]).into_iter().map(|check| check.passed).collect()
    }
}

#[test]
fn the_checks_fail_on_damaged_records() {
    // True for each of the three checks that passes: all there and whole, last writes, counts of changes.
    for (damage, passed) in [
        (Damage::None, [true, true, true]),
        (Damage::Delete, [false, true, false]),
        (Damage::Grow, [false, true, false]),
        (Damage::Reset, [true, false, false]),
        (Damage::Change, [true, true, false]),
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
        let options = YcsbOptions { records: 10, value_bytes: 8, ..YcsbOptions::of(Preset::A) };
        let ycsb = options.load(&Database::on(&engine), 1, 7, &Unobserved).expect("records can be loaded");
        let Records::Short(table) = ycsb.table() else { panic!("values are short") };
        let operations = [(7, Action::ReadModifyWrite), (3, Action::Read), (5, Action::BlindWrite)]
            .map(|(key, action)| Operation { key, action });
        let procedure = YcsbProcedure { table, operations: &operations, value_bytes: 8, stamp: 1 };
        let mut worker = engine.worker().expect("the first");
        let trace = ycsb.database().trace_on(&mut worker, &procedure).expect("nobody else is there");
        let done: Vec<_> =
            trace.operations.iter().map(|operation| (operation.key.as_str(), operation.kind)).collect();
        let expected =
            [("7", OperationKind::Write), ("3", OperationKind::Read), ("5", OperationKind::Replace)];
        assert_eq!(done, expected);
        assert!(trace.is_tame(), "which records are touched is known beforehand\n{trace}");
    }
}

#[test]
fn a_recording_has_the_operations_in_the_order_drawn_and_forces_nothing() {
    for_each_protocol(1, TraceOperations);
}

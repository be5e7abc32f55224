//! TPC-C at a small scale, under every protocol.

use crate::native::clients::run_clients;
use hotrow::protocols::{Visitor, for_each_protocol};
use hotrow::sync::atomic::{AtomicUsize, Ordering};
use hotrow::{Database, Engine, Isolation, OperationKind, ProcedureTrace, Procedures, Protocol, RetryPolicy};
use hotrow_workloads::tpcc::input::{
    CustomerChoice, DeliveryInput, LineInput, Mix, NewOrderInput, PaymentInput, StockLevelInput,
};
use hotrow_workloads::tpcc::population::Scale;
use hotrow_workloads::tpcc::procedures::{
    DeliveryProcedure, NewOrderProcedure, PaymentProcedure, StockLevelProcedure,
};
use hotrow_workloads::tpcc::schema::{CustomerKey, DistrictKey, HistoryKey, WarehouseKey};
use hotrow_workloads::tpcc::{Caches, Factors, Ranks, Tpcc, TpccOptions};
use hotrow_workloads::{End, Ran, Unobserved, Workload, WorkloadDefinition as _};

pub(crate) const OPTIONS: TpccOptions = TpccOptions {
    warehouses: 2,
    mix: Mix::Full,
    scale: Scale::SMALL,
    stock_level: Isolation::Serializable,
    tame_share: 0.9,
    ranks: Ranks::Tuned,
    readers: Isolation::StrictSnapshot,
    delivery_batch: 10,
    chop: Factors::Full,
    caches: Caches::None,
};

fn load<P: Protocol>(engine: &Engine<P>) -> Tpcc<P> {
    load_with(engine, OPTIONS)
}

fn load_with<P: Protocol>(engine: &Engine<P>, options: TpccOptions) -> Tpcc<P> {
    options.load(&Database::on(engine), 2, 7, &Unobserved).expect("the population is consistent")
}

/// Runs `transactions` on each of `threads` workers and returns the names of the checks that failed.
#[derive(Clone, Copy)]
struct Run {
    threads: usize,
    transactions: usize,
    caches: Caches,
}

impl Visitor for Run {
    type Output = Vec<String>;

    fn visit<P: Protocol>(self, name: &str) -> Vec<String> {
        let engine = Engine::<P>::named(name, RetryPolicy::default()).unwrap();
        let tpcc = load_with(&engine, TpccOptions { caches: self.caches, ..OPTIONS });
        let ends: Vec<[AtomicUsize; 2]> = tpcc.kinds().iter().map(|_| Default::default()).collect();
        let clients =
            run_clients(&engine, &tpcc, self.threads, self.transactions, |_, Ran { kind, end }| match end {
                End::Committed => _ = ends[kind][0].fetch_add(1, Ordering::Relaxed),
                End::RolledBack => _ = ends[kind][1].fetch_add(1, Ordering::Relaxed),
                End::Failed(message) => panic!("{}: {message}", tpcc.kinds()[kind]),
            });
        for (kind, ends) in tpcc.kinds().iter().zip(ends) {
            let [committed, rolled_back] = ends.map(AtomicUsize::into_inner);
            assert!(committed > 0, "{kind} was never run");
            assert_eq!(rolled_back > 0, *kind == "new_order", "only New-Order rolls back, and some do");
        }
        let mut worker = engine.worker().expect("all other workers are gone");
        let checks = tpcc.checks(&mut worker, clients);
        assert_eq!(checks.len(), 12);
        let failed = checks.into_iter().filter(|check| !check.passed);
        failed.map(|check| format!("{}: {}", check.name, check.detail.unwrap_or_default())).collect()
    }
}

#[test]
fn one_worker_leaves_a_consistent_database() {
    for (protocol, failed) in
        for_each_protocol(1, Run { threads: 1, transactions: 600, caches: Caches::None })
    {
        assert_eq!(failed, Vec::<String>::new(), "{protocol}");
    }
}

#[test]
fn eight_workers_leave_a_consistent_database() {
    for (protocol, failed) in
        for_each_protocol(8, Run { threads: 8, transactions: 200, caches: Caches::None })
    {
        assert_eq!(failed, Vec::<String>::new(), "{protocol}");
    }
}

#[test]
fn four_workers_whose_tables_have_caches_leave_a_consistent_database() {
    for (protocol, failed) in
        for_each_protocol(4, Run { threads: 4, transactions: 150, caches: Caches::Inserted })
    {
        assert_eq!(failed, Vec::<String>::new(), "{protocol}");
    }
}

#[test]
#[ignore = "long: run with -- --ignored"]
fn sixteen_workers_leave_a_consistent_database_for_long() {
    for (protocol, failed) in
        for_each_protocol(16, Run { threads: 16, transactions: 100_000, caches: Caches::Inserted })
    {
        assert_eq!(failed, Vec::<String>::new(), "{protocol}");
    }
}

fn kinds(trace: &ProcedureTrace) -> Vec<(&str, OperationKind)> {
    trace.operations.iter().map(|operation| (operation.table.as_str(), operation.kind)).collect()
}

fn new_order(items: &[u32]) -> NewOrderInput {
    NewOrderInput {
        customer: CustomerKey { warehouse: 1, district: 2, customer: 3 },
        lines: items.iter().map(|item| LineInput { item: *item, supply_warehouse: 1, quantity: 5 }).collect(),
        rolls_back: false,
        entry_date: 1,
    }
}

#[derive(Clone, Copy)]
struct TraceOperations;

impl Visitor for TraceOperations {
    type Output = ();

    fn visit<P: Protocol>(self, name: &str) {
        use OperationKind::{Commutative, Delete, Insert, Read, Scan, Write};
        let engine = Engine::<P>::named(name, RetryPolicy::default()).unwrap();
        let tpcc = load(&engine);
        let tables = *tpcc.tables();
        let mut worker = engine.worker().expect("the first worker");
        let mut trace_of = |procedure: &NewOrderProcedure| {
            tpcc.database().trace_on(&mut worker, procedure).expect("nobody else is there")
        };

        let trace = trace_of(&NewOrderProcedure { tables, input: new_order(&[4, 9]) });
        let expected = [
            ("WAREHOUSE", Read),
            ("DISTRICT", Write),
            ("CUSTOMER", Read),
            ("ORDER", Insert),
            ("NEW-ORDER", Insert),
            ("ITEM", Read),
            ("STOCK", Write),
            ("ORDER-LINE", Insert),
            ("ITEM", Read),
            ("STOCK", Write),
            ("ORDER-LINE", Insert),
        ];
        assert_eq!(kinds(&trace), expected, "\n{trace}");
        let operation = |at: usize| &trace.operations[at];
        let sources = |at: usize| operation(at).data.iter().map(|id| id.0).collect::<Vec<_>>();
        // The order's number comes from the district; a line also needs the price and the stock's text.
        assert_eq!(sources(3), [1]);
        assert_eq!(sources(7), [1, 5, 6]);
        assert_eq!(sources(6), [0u32; 0]);
        assert!(operation(5).immutable && !operation(6).immutable);
        assert_eq!(operation(3).group, Some(12));
        assert_eq!(operation(6).key, "StockKey { warehouse: 1, item: 4 }");
        // Later operations of a line depend on the item's existence.
        assert!(operation(5).control.is_empty());
        assert_eq!(operation(8).control.iter().map(|id| id.0).collect::<Vec<_>>(), [5]);
        assert_eq!(trace.output.iter().map(|id| id.0).collect::<Vec<_>>(), [0, 1, 2, 5, 8]);
        assert!(!trace.rolls_back);

        // Tracing left nothing behind: the same order number is given out again.
        let again = trace_of(&NewOrderProcedure { tables, input: new_order(&[4]) });
        assert_eq!(again.operations[3].key, trace.operations[3].key);

        let missing = trace_of(&NewOrderProcedure { tables, input: new_order(&[4, u32::MAX]) });
        assert!(missing.rolls_back);
        assert_eq!(missing.operations.last().map(|operation| operation.table.as_str()), Some("ITEM"));

        let input = PaymentInput {
            district: DistrictKey { warehouse: 1, district: 1 },
            customer_district: DistrictKey { warehouse: 2, district: 3 },
            customer: CustomerChoice::Number(4),
            amount: 100,
            date: 1,
        };
        let history = HistoryKey { worker: 0, sequence: 0 };
        let payment = PaymentProcedure { tables, input, history };
        let trace = tpcc.database().trace_on(&mut worker, &payment).expect("nobody else is there");
        let expected = [
            ("WAREHOUSE", Read),
            ("DISTRICT", Read),
            ("CUSTOMER", Write),
            ("HISTORY", Insert),
            ("DISTRICT", Commutative),
            ("WAREHOUSE", Commutative),
        ];
        assert_eq!(kinds(&trace), expected);
        assert!(trace.is_tame(), "a payment by number forces nothing\n{trace}");

        let input = DeliveryInput { warehouse: WarehouseKey { warehouse: 1 }, carrier: 3, delivery_date: 9 };
        let delivery = DeliveryProcedure { tables, input, districts: (1, 10) };
        let trace = tpcc.database().trace_on(&mut worker, &delivery).expect("nobody else is there");
        assert!(trace.is_tame(), "what is delivered comes out of operations\n{trace}");
        for kind in [Scan, Delete, Write, Commutative] {
            assert!(kinds(&trace).iter().any(|(_, found)| *found == kind), "{kind:?}");
        }

        let input = StockLevelInput { district: DistrictKey { warehouse: 1, district: 1 }, threshold: 15 };
        let stock_level = StockLevelProcedure { tables, input, isolation: Isolation::Serializable };
        let trace = tpcc.database().trace_on(&mut worker, &stock_level).expect("nobody else is there");
        assert!(kinds(&trace).iter().all(|(_, kind)| matches!(kind, Read | Scan)));
    }
}

#[test]
fn recordings_name_tables_kinds_and_dependencies() {
    for_each_protocol(1, TraceOperations);
}

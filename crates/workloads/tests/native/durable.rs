//! TPC-C on databases that lose power, under every protocol: the twelve conditions hold of what is recovered.

use crate::native::clients::run_clients;
use hotrow::durable::storage::Faulty;
use hotrow::durable::{DurableBuilder, DurableDatabase, LogOptions, Mode};
use hotrow::protocols::{Visitor, for_each_protocol};
use hotrow::sync::thread;
use hotrow::{Database, Protocol};
use hotrow_workloads::tpcc::{Tpcc, TpccOptions};
use hotrow_workloads::{Ran, Unobserved, Workload, WorkloadDefinition as _};
use std::sync::Arc;
use std::time::Duration;

const OPTIONS: TpccOptions = TpccOptions { warehouses: 1, ..crate::native::tpcc::OPTIONS };

fn open<P: Protocol>(name: &str, storage: &Arc<Faulty>) -> (Database<P>, Tpcc<P>) {
    let options = LogOptions { mode: Mode::Group, segment_bytes: 1 << 16, ..LogOptions::default() };
    let builder = Database::builder().typed::<P>().variant(name).log(options);
    let db = builder.open_in(storage.clone()).unwrap_or_else(|error| panic!("{name}: {error}"));
    let tpcc = OPTIONS.load(&db, 2, 7, &Unobserved).expect("new, or recovered whole");
    db.flush().unwrap();
    (db, tpcc)
}

/// Opens a database anew, and returns the conditions that do not hold of it.
fn failed_of<P: Protocol>(
    name: &str,
    storage: &Arc<Faulty>,
    clients: Vec<<Tpcc<P> as Workload<P>>::Client>,
) -> Vec<String> {
    let (db, tpcc) = open::<P>(name, storage);
    let checks = tpcc.checks(&mut db.worker().unwrap(), clients);
    assert_eq!(checks.len(), 12);
    checks.into_iter().filter(|check| !check.passed).map(|check| check.name).collect()
}

/// Runs TPC-C, and loses power in the middle and at the end.
#[derive(Clone, Copy)]
struct LosePower {
    threads: usize,
}

impl Visitor for LosePower {
    type Output = ();

    fn visit<P: Protocol>(self, name: &str) {
        let storage = Arc::new(Faulty::new(3));
        let (db, tpcc) = open::<P>(name, &storage);
        let must_commit = |_: &_, Ran { end, .. }| assert!(!matches!(end, hotrow_workloads::End::Failed(_)));
        let (clients, middle) = thread::scope(|scope| {
            let loss = scope.spawn(|| {
                thread::sleep(Duration::from_millis(8));
                // A protocol that admits no other worker makes none.
                let _ = db.checkpoint();
                thread::sleep(Duration::from_millis(4));
                storage.power_loss(4)
            });
            let clients = run_clients(&db, &tpcc, self.threads, 150, must_commit);
            (clients, loss.join().unwrap())
        });
        let end = storage.power_loss(5);
        drop((tpcc, db));
        // The conditions, and the deliveries that their callers know of.
        assert_eq!(failed_of::<P>(name, &Arc::new(end), clients), Vec::<String>::new(), "{name}");
        // No caller knows how many deliveries were in time.
        let mut failed = failed_of::<P>(name, &Arc::new(middle), Vec::new());
        failed.retain(|condition| !condition.starts_with("3.3.2.11 "));
        assert_eq!(failed, Vec::<String>::new(), "{name}, in the middle");
    }
}

#[test]
fn what_is_recovered_is_consistent() {
    for_each_protocol(4, LosePower { threads: 3 });
}

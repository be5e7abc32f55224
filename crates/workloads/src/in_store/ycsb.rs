//! YCSB in a store.

use super::{Fill, InStore, insert_all, load, load_failed};
use crate::ycsb::client::YcsbClient;
use crate::ycsb::rows::{Long, Row, SHORT_BYTES_MAX, STANDARD_BYTES, Short, Standard};
use crate::ycsb::{self, Records, YcsbOptions};
use hotrow::history::History;
use hotrow::{Protocol, TableRef, Worker};
use hotrow_driver::{BaselineRun, BenchError, Check, Ran, RunOutcome, Workload};

struct InStoreYcsb {
    store: InStore,
    table: Records,
    options: YcsbOptions,
}

/// Runs the workload in the store at an address.
pub(crate) fn run(
    options: &YcsbOptions,
    address: &str,
    run: BaselineRun<'_>,
) -> Result<RunOutcome, BenchError> {
    let store = InStore::open(address, &["records"])?;
    let table = match options.value_bytes {
        ..=SHORT_BYTES_MAX => Records::Short(fill::<Short>(&store, options, &run)?),
        STANDARD_BYTES => Records::Standard(fill::<Standard>(&store, options, &run)?),
        _ => Records::Long(fill::<Long>(&store, options, &run)?),
    };
    store.record(&run)?;
    run.run_in_store(InStoreYcsb { store, table, options: *options })
}

fn fill<R: Row>(
    store: &InStore,
    options: &YcsbOptions,
    run: &BaselineRun<'_>,
) -> Result<TableRef<u64, R>, BenchError> {
    /// Records of a part, which one thread loads.
    const PART: u64 = 1_024;
    let YcsbOptions { records, value_bytes, .. } = *options;
    let table = store.cluster.table("records").create_or_open().map_err(load_failed)?;
    let part = |first: u64| -> Fill<'_> {
        let table = &table;
        let keys = first..(first + PART).min(records);
        let row = move |key| (key, R::filled(value_bytes, 0));
        Box::new(move || insert_all(&store.cluster, table, value_bytes as usize + 256, keys.clone().map(row)))
    };
    let parts: Vec<_> = (0..records).step_by(PART as usize).map(part).collect();
    load(run.loaders(), run.observer(), &parts)?;
    Ok(table.reference())
}

impl<P: Protocol> Workload<P> for InStoreYcsb {
    type Client = (YcsbClient, u64);

    fn kinds(&self) -> &'static [&'static str] {
        ycsb::KINDS
    }

    fn client(&self, worker: usize, _workers: usize, seed: u64) -> Self::Client {
        (YcsbClient::new(worker, &self.options, seed), 0)
    }

    fn prepare(&self, (client, _): &mut Self::Client) {
        client.draw(&self.options);
    }

    fn run_one(&self, _worker: &mut Worker<P>, (client, aborts): &mut Self::Client) -> Ran {
        ycsb::run(&mut self.store.site(aborts), self.table, &self.options, client)
    }

    fn aborts(&self, _worker: &Worker<P>, (_, aborts): &Self::Client) -> u64 {
        *aborts
    }

    fn history(&self) -> Option<History> {
        self.store.history()
    }

    fn checks(&self, _worker: &mut Worker<P>, clients: Vec<Self::Client>) -> Vec<Check> {
        let clients: Vec<_> = clients.into_iter().map(|(client, _)| client).collect();
        ycsb::check(&mut self.store.site(&mut 0), self.table, &self.options, &clients)
    }

    fn payload_bytes(&self, _worker: &mut Worker<P>) -> u64 {
        0
    }
}

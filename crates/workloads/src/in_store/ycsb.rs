//! YCSB in a store.

use super::{Elsewhere, Fill, InStore, Transactions, insert_all, load, load_failed};
use crate::ycsb::client::YcsbClient;
use crate::ycsb::rows::{Long, Row, SHORT_BYTES_MAX, STANDARD_BYTES, Short, Standard};
use crate::ycsb::{self, Records, YcsbOptions};
use hotrow::TableRef;
use hotrow_driver::{BaselineRun, BenchError, Check, Ran, RunOutcome};

struct InStoreYcsb {
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
    store.run(run, InStoreYcsb { table, options: *options })
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

impl Transactions for InStoreYcsb {
    type Client = YcsbClient;

    const KINDS: &'static [&'static str] = ycsb::KINDS;

    fn client(&self, worker: usize, seed: u64) -> YcsbClient {
        YcsbClient::new(worker, &self.options, seed)
    }

    fn draw(&self, client: &mut YcsbClient) {
        client.draw(&self.options);
    }

    fn run(&self, site: &mut Elsewhere<'_>, client: &mut YcsbClient) -> Ran {
        ycsb::run(site, self.table, &self.options, client)
    }

    fn check(&self, site: &mut Elsewhere<'_>, clients: &[YcsbClient]) -> Vec<Check> {
        ycsb::check(site, self.table, &self.options, clients)
    }
}

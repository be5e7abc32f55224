//! TPC-C in a store.

use super::{Elsewhere, Fill, InStore, Transactions, insert_all, load, load_failed};
use crate::tpcc::population::Population;
use crate::tpcc::references::Tables;
use crate::tpcc::schema::{
    Customer, CustomerByNameKey, DISTRICTS_PER_WAREHOUSE, DistrictKey, LINES_MAX, OrderByCustomerKey,
};
use crate::tpcc::{self, Terminal, TpccOptions};
use hotrow::column_of;
use hotrow::sync::clock;
use hotrow_driver::{BaselineRun, BenchError, Check, Observer, Ran, RunOutcome};

/// The most bytes of a row, its keys and its entries in indexes.
const ROW_BYTES_MAX: usize = 2_048;

struct InStoreTpcc {
    tables: Tables,
    options: TpccOptions,
    population: Population,
    begin: clock::Instant,
}

/// Runs the workload in the store at an address.
pub(crate) fn run(
    options: &TpccOptions,
    address: &str,
    run: BaselineRun<'_>,
) -> Result<RunOutcome, BenchError> {
    let names =
        ["WAREHOUSE", "DISTRICT", "CUSTOMER", "HISTORY", "NEW-ORDER", "ORDER", "ORDER-LINE", "ITEM", "STOCK"];
    let store = InStore::open(address, &names)?;
    check_limits(&store, options)?;
    let population = Population::new(options.scale, run.seed(), 1);
    let tables = make_and_load(&store, options, &population, run.loaders(), run.observer())?;
    store.run(run, InStoreTpcc { tables, options: *options, population, begin: clock::now() })
}

/// Checks that the store takes the largest transaction, a Delivery.
fn check_limits(store: &InStore, options: &TpccOptions) -> Result<(), BenchError> {
    /// The changes for an order: its rows in NEW-ORDER and ORDER, its customer, its lines.
    const OF_ORDER: usize = 3 + LINES_MAX;
    /// The fence and the marker.
    const BESIDES: usize = 2;
    let batch = usize::from(options.delivery_batch);
    let (needed, limits) = (batch * OF_ORDER + BESIDES, store.cluster.limits());
    if needed <= limits.conditions_max.min(limits.changes_max) {
        return Ok(());
    }
    Err(BenchError::Load(format!(
        "a Delivery of {batch} orders may change {needed} rows, and the store takes {}: if it was started with a larger limit, say so in the \
         address (?max-txn-ops=N), or deliver fewer at once (--delivery-batch N)",
        limits.changes_max
    )))
}

/// Makes the tables, and loads the initial population (clause 4.3.3).
fn make_and_load(
    store: &InStore,
    options: &TpccOptions,
    population: &Population,
    threads: usize,
    observer: &dyn Observer,
) -> Result<Tables, BenchError> {
    let cluster = &store.cluster;
    let warehouse = cluster.table("WAREHOUSE").create_or_open().map_err(load_failed)?;
    let district = cluster.table("DISTRICT").create_or_open().map_err(load_failed)?;
    let mut customer = cluster.table("CUSTOMER");
    let name = (column_of!(Customer, last), column_of!(Customer, first));
    let customer_by_name = customer.secondary_on("by_name", name, CustomerByNameKey::of);
    let customer = customer.create_or_open().map_err(load_failed)?;
    let history = cluster.table("HISTORY").create_or_open().map_err(load_failed)?;
    let new_order = cluster.table("NEW-ORDER").create_or_open().map_err(load_failed)?;
    let mut order = cluster.table("ORDER");
    let order_by_customer = order.secondary("by_customer", OrderByCustomerKey::of);
    let order = order.create_or_open().map_err(load_failed)?;
    let order_line = cluster.table("ORDER-LINE").create_or_open().map_err(load_failed)?;
    let item = cluster.table("ITEM").create_or_open().map_err(load_failed)?;
    let stock = cluster.table("STOCK").create_or_open().map_err(load_failed)?;
    {
        let mut parts: Vec<Fill<'_>> =
            vec![Box::new(|| insert_all(cluster, &item, ROW_BYTES_MAX, population.items()))];
        for number in 1..=options.warehouses.min(u16::MAX.into()) as u16 {
            let (warehouse, district, stock) = (&warehouse, &district, &stock);
            parts.push(Box::new(move || {
                insert_all(cluster, warehouse, ROW_BYTES_MAX, [population.warehouse(number)].into_iter())?;
                insert_all(cluster, district, ROW_BYTES_MAX, population.districts(number))
            }));
            parts.push(Box::new(move || insert_all(cluster, stock, ROW_BYTES_MAX, population.stock(number))));
            for district in 1..=DISTRICTS_PER_WAREHOUSE {
                let key = DistrictKey { warehouse: number, district };
                let (customer, history, order) = (&customer, &history, &order);
                let (order_line, new_order) = (&order_line, &new_order);
                parts.push(Box::new(move || {
                    insert_all(cluster, customer, ROW_BYTES_MAX, population.customers(key))?;
                    insert_all(cluster, history, ROW_BYTES_MAX, population.history(key))?;
                    insert_all(cluster, order, ROW_BYTES_MAX, population.orders(key))?;
                    insert_all(cluster, order_line, ROW_BYTES_MAX, population.order_lines(key))?;
                    insert_all(cluster, new_order, ROW_BYTES_MAX, population.new_orders(key))
                }));
            }
        }
        load(threads, observer, &parts)?;
    }
    Ok(Tables {
        warehouse: warehouse.reference(),
        district: district.reference(),
        customer: customer.reference(),
        customer_by_name: customer_by_name.reference(),
        history: history.reference(),
        new_order: new_order.reference(),
        order: order.reference(),
        order_by_customer: order_by_customer.reference(),
        order_line: order_line.reference(),
        item: item.reference(),
        stock: stock.reference(),
    })
}

impl Transactions for InStoreTpcc {
    type Client = Terminal;

    const KINDS: &'static [&'static str] = tpcc::KINDS;

    fn client(&self, worker: usize, seed: u64) -> Terminal {
        Terminal::new(worker, &self.options, &self.population, seed)
    }

    fn draw(&self, terminal: &mut Terminal) {
        terminal.draw(self.begin);
    }

    fn run(&self, site: &mut Elsewhere<'_>, terminal: &mut Terminal) -> Ran {
        let input = terminal.take();
        let kind = tpcc::number_of(input.kind());
        Ran { kind, end: tpcc::run_input(site, self.tables, &self.options, terminal, input) }
    }

    fn check(&self, site: &mut Elsewhere<'_>, terminals: &[Terminal]) -> Vec<Check> {
        tpcc::check(site, self.tables, &self.options, terminals)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hotrow_driver::{End, Unobserved, WorkloadDefinition as _};
    use hotrow_remote::{Cluster, MemoryStore};
    use std::sync::Arc;

    /// The times that the transactions of a mix, which are all alike, have waited for the store, at most and on average.
    fn round_trips(mix: &str) -> (u64, f64) {
        const TRANSACTIONS: u64 = 50;
        let options = TpccOptions::from_given(&[("scale", "small"), ("mix", mix)]).unwrap();
        let store = InStore::over(Cluster::over(Arc::new(MemoryStore::new())));
        let population = Population::new(options.scale, 7, 1);
        let tables = make_and_load(&store, &options, &population, 1, &Unobserved).unwrap();
        let tpcc = InStoreTpcc { tables, options, population, begin: clock::now() };
        let mut terminal = tpcc.client(0, 3);
        let trips = || {
            let counts = store.cluster.counts();
            counts.asked + counts.sent
        };
        let (mut most, begin) = (0, trips());
        for _ in 0..TRANSACTIONS {
            let before = trips();
            tpcc.draw(&mut terminal);
            let Ran { end, .. } = tpcc.run(&mut store.site(&mut 0), &mut terminal);
            assert!(!matches!(end, End::Failed(_)), "{end:?}");
            most = most.max(trips() - before);
        }
        let mean = (trips() - begin) as f64 / TRANSACTIONS as f64;
        let checks = tpcc.check(&mut store.site(&mut 0), &[terminal]);
        assert!(checks.len() == 12 && checks.iter().all(|check| check.passed), "{checks:?}");
        (most, mean)
    }

    #[test]
    fn transactions_wait_for_the_store_a_few_times() {
        for (mix, most) in
            [("new-order", 3), ("payment", 4), ("order-status", 5), ("delivery", 15), ("stock-level", 3)]
        {
            let (found, mean) = round_trips(mix);
            println!("{mix}: {mean} on average, {found} at most");
            assert!(found <= most, "{mix}: {found} times, {mean} on average");
        }
    }
}

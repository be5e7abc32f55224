//! TPC-C, revision 5.11: the main workload.
//!
//! Nine tables have the specification's cardinalities, five transactions have its inputs, and after each run the
//! twelve consistency conditions of clause 3.3.2 are checked. Missing are the requirements on a system with
//! terminals: keying and think times (clause 5.2.5; workers run one transaction after the other), the deferred
//! queue of Delivery (clause 2.7.2; it runs like the others) and durability.

mod chopping;
pub(crate) mod client;
pub(crate) mod consistency;
pub mod input;
mod options;
pub mod population;
pub mod procedures;
pub(crate) mod random;
pub mod schema;
pub(crate) mod tables;

pub use options::{Caches, Factors, Ranks, TpccOptions};

use client::Client;
use consistency::{Audit, DeliveredCounts};
use hotrow::sync::clock;
use hotrow::sync::random::Random;
use hotrow::{Database, Error, Key, Procedures, Protocol, TableRef, Value, Worker};
use hotrow_driver::{Check, End, Ran, Workload};
use input::{Input, TransactionKind};
use population::Population;
use procedures::{
    DeliveryProcedure, NewOrderProcedure, OrderStatusProcedure, PaymentProcedure, StockLevelProcedure,
};
use schema::{DISTRICTS_PER_WAREHOUSE, DistrictKey, HistoryKey};
use tables::Tables;

/// A loaded TPC-C database.
pub struct Tpcc<P: Protocol> {
    database: Database<P>,
    tables: Tables,
    options: TpccOptions,
    population: Population,
    begin: clock::Instant,
}

/// One worker's terminal.
pub struct Terminal {
    client: Client,
    /// Random stream that chooses the New-Orders that defer.
    tames: Random,
    worker: u32,
    payments: u32,
    delivered: DeliveredCounts,
    next: Option<Input>,
}

impl<P: Protocol> Tpcc<P> {
    /// Returns the database.
    pub fn database(&self) -> &Database<P> {
        &self.database
    }

    /// Returns the tables.
    pub fn tables(&self) -> &Tables {
        &self.tables
    }

    #[inline]
    fn run_input(&self, worker: &mut Worker<P>, terminal: &mut Terminal, input: Input) -> End {
        let Self { database, tables, .. } = self;
        let tables = *tables;
        match input {
            Input::NewOrder(input) => {
                let procedure = NewOrderProcedure { tables, input };
                let ended = if database.allows_deferral() && !terminal.tames.chance(self.options.tame_share) {
                    database.execute_eagerly(worker, &procedure)
                } else {
                    database.execute_on(worker, &procedure)
                };
                match ended {
                    Err(Error::Rollback(_)) if input.rolls_back => End::RolledBack,
                    Ok(_) if input.rolls_back => {
                        End::Failed(String::from("an order for an item that does not exist committed"))
                    }
                    other => end(other),
                }
            }
            Input::Payment(input) => {
                let history = HistoryKey { worker: terminal.worker, sequence: terminal.payments };
                let ended = database.execute_on(worker, &PaymentProcedure { tables, input, history });
                terminal.payments += 1;
                end(ended)
            }
            Input::OrderStatus(input) => {
                end(database.execute_on(worker, &OrderStatusProcedure { tables, input }))
            }
            Input::Delivery(input) => {
                let batch = self.options.delivery_batch;
                let firsts = (1..=DISTRICTS_PER_WAREHOUSE).step_by(usize::from(batch));
                for first in firsts {
                    let districts = (first, (first + batch - 1).min(DISTRICTS_PER_WAREHOUSE));
                    let delivery = DeliveryProcedure { tables, input, districts };
                    let delivered = match database.execute_on(worker, &delivery) {
                        Ok(delivered) => delivered,
                        failed @ Err(_) => return end(failed),
                    };
                    for (district, order) in (1..).zip(delivered) {
                        if order != 0 {
                            let warehouse = input.warehouse.warehouse;
                            terminal.delivered.count(DistrictKey { warehouse, district });
                        }
                    }
                }
                End::Committed
            }
            Input::StockLevel(input) => {
                let isolation = self.options.stock_level;
                end(database.execute_on(worker, &StockLevelProcedure { tables, input, isolation }))
            }
        }
    }

    fn audit(&self, worker: &mut Worker<P>) -> Result<Audit, Error> {
        let mut audit = Audit::new(self.options.scale);
        let Self { database, tables, .. } = self;
        database.table_of(tables.warehouse).for_each(worker, |key, row| audit.warehouse(key, row))?;
        database.table_of(tables.district).for_each(worker, |key, row| audit.district(key, row))?;
        database.table_of(tables.customer).for_each(worker, |key, row| audit.customer(key, row))?;
        database.table_of(tables.history).for_each(worker, |key, row| audit.history(key, row))?;
        database.table_of(tables.new_order).for_each(worker, |key, row| audit.new_order(key, row))?;
        database.table_of(tables.order).for_each(worker, |key, row| audit.order(key, row))?;
        database.table_of(tables.order_line).for_each(worker, |key, row| audit.order_line(key, row))?;
        Ok(audit)
    }
}

fn end<T>(ended: Result<T, Error>) -> End {
    match ended {
        Ok(_) => End::Committed,
        Err(error) => End::Failed(error.to_string()),
    }
}

impl<P: Protocol> Workload<P> for Tpcc<P> {
    type Client = Terminal;

    fn kinds(&self) -> &'static [&'static str] {
        &["new_order", "payment", "order_status", "delivery", "stock_level"]
    }

    fn database_of_procedures(&self) -> Option<&Database<P>> {
        Some(&self.database)
    }

    fn client(&self, worker: usize, _workers: usize, seed: u64) -> Terminal {
        let TpccOptions { warehouses, mix, scale, .. } = self.options;
        let warehouses = warehouses.min(u32::from(u16::MAX)) as u16;
        /// Base of the terminals' random streams, above the clients'.
        const STREAMS: u64 = 1 << 49;
        Terminal {
            tames: Random::stream(seed, STREAMS + worker as u64),
            client: Client::new(worker, warehouses, scale, self.population.constants(), mix, seed),
            worker: worker as u32,
            payments: 0,
            delivered: DeliveredCounts::new(),
            next: None,
        }
    }

    #[inline]
    fn prepare(&self, terminal: &mut Terminal) {
        let now = self.begin.elapsed().as_micros() as i64 + 2;
        terminal.next = Some(terminal.client.next_input(now));
    }

    #[inline]
    fn run_one(&self, worker: &mut Worker<P>, terminal: &mut Terminal) -> Ran {
        let input = match terminal.next.take() {
            Some(input) => input,
            None => terminal.client.next_input(1),
        };
        let kind = match input.kind() {
            TransactionKind::NewOrder => 0,
            TransactionKind::Payment => 1,
            TransactionKind::OrderStatus => 2,
            TransactionKind::Delivery => 3,
            TransactionKind::StockLevel => 4,
        };
        Ran { kind, end: self.run_input(worker, terminal, input) }
    }

    fn checks(&self, worker: &mut Worker<P>, terminals: Vec<Terminal>) -> Vec<Check> {
        let mut delivered = DeliveredCounts::new();
        for terminal in &terminals {
            delivered.merge(&terminal.delivered);
        }
        match self.audit(worker) {
            Ok(audit) => {
                audit.finish(&delivered).into_iter().map(|(name, found)| Check::new(name, found)).collect()
            }
            Err(error) => vec![Check::new("3.3.2 reading all rows", Err(error.to_string()))],
        }
    }

    fn payload_bytes(&self, worker: &mut Worker<P>) -> u64 {
        fn bytes<K: Key, R: Value, P: Protocol>(
            database: &Database<P>,
            table: TableRef<K, R>,
            worker: &mut Worker<P>,
        ) -> u64 {
            database.table_of(table).memory(worker).map_or(0, |memory| memory.payload_bytes)
        }
        let Self { database, tables, .. } = self;
        bytes(database, tables.warehouse, worker)
            + bytes(database, tables.district, worker)
            + bytes(database, tables.customer, worker)
            + bytes(database, tables.history, worker)
            + bytes(database, tables.new_order, worker)
            + bytes(database, tables.order, worker)
            + bytes(database, tables.order_line, worker)
            + bytes(database, tables.item, worker)
            + bytes(database, tables.stock, worker)
    }
}

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
pub mod references;
pub mod schema;
pub(crate) mod tables;

pub use options::{Caches, Factors, Ranks, TpccOptions};

use crate::site::{Failure, Here, Site};
use client::Client;
use consistency::{Audit, DeliveredCounts};
use hotrow::sync::clock;
use hotrow::sync::random::Random;
use hotrow::{Database, Key, Protocol, TableRef, Value, Worker};
use hotrow_driver::{Check, End, Ran, Workload};
use input::{Input, TransactionKind};
use population::Population;
use procedures::{
    DeliveryProcedure, NewOrderProcedure, OrderStatusProcedure, PaymentProcedure, StockLevelProcedure,
};
use references::Tables;
use schema::{DISTRICTS_PER_WAREHOUSE, DistrictKey, HistoryKey};

/// A loaded TPC-C database.
pub struct Tpcc<P: Protocol> {
    database: Database<P>,
    tables: Tables,
    options: TpccOptions,
    population: Population,
    begin: clock::Instant,
}

/// The names of the transactions' types, in the order of [`number_of`].
pub(crate) const KINDS: &[&str] = &["new_order", "payment", "order_status", "delivery", "stock_level"];

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

    /// The place where the transactions of a worker run.
    #[inline(always)]
    fn here<'a>(&'a self, worker: &'a mut Worker<P>) -> Here<'a, P> {
        Here { database: &self.database, worker }
    }
}

/// Runs a transaction. Every run goes through this function.
#[inline]
pub(crate) fn run_input(
    site: &mut impl Site,
    tables: Tables,
    options: &TpccOptions,
    terminal: &mut Terminal,
    input: Input,
) -> End {
    match input {
        Input::NewOrder(input) => {
            let procedure = NewOrderProcedure { tables, input };
            let ended = if site.defers() && !terminal.tames.chance(options.tame_share) {
                site.execute_eagerly(&procedure)
            } else {
                site.execute(&procedure)
            };
            match ended {
                Err(failure) if failure.is_rollback && input.rolls_back => End::RolledBack,
                Ok(_) if input.rolls_back => {
                    End::Failed(String::from("an order for an item that does not exist committed"))
                }
                other => end(other),
            }
        }
        Input::Payment(input) => {
            let history = HistoryKey { worker: terminal.worker, sequence: terminal.payments };
            let ended = site.execute(&PaymentProcedure { tables, input, history });
            terminal.payments += 1;
            end(ended)
        }
        Input::OrderStatus(input) => end(site.execute(&OrderStatusProcedure { tables, input })),
        Input::Delivery(input) => {
            let batch = options.delivery_batch;
            let firsts = (1..=DISTRICTS_PER_WAREHOUSE).step_by(usize::from(batch));
            for first in firsts {
                let districts = (first, (first + batch - 1).min(DISTRICTS_PER_WAREHOUSE));
                let delivered = match site.execute(&DeliveryProcedure { tables, input, districts }) {
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
            let isolation = options.stock_level;
            end(site.execute(&StockLevelProcedure { tables, input, isolation }))
        }
    }
}

/// The number of a transaction's type.
pub(crate) fn number_of(kind: TransactionKind) -> usize {
    match kind {
        TransactionKind::NewOrder => 0,
        TransactionKind::Payment => 1,
        TransactionKind::OrderStatus => 2,
        TransactionKind::Delivery => 3,
        TransactionKind::StockLevel => 4,
    }
}

/// Checks all rows after a run.
pub(crate) fn check(
    site: &mut impl Site,
    tables: Tables,
    options: &TpccOptions,
    terminals: &[Terminal],
) -> Vec<Check> {
    let mut delivered = DeliveredCounts::new();
    for terminal in terminals {
        delivered.merge(&terminal.delivered);
    }
    match audit(site, tables, options) {
        Ok(audit) => {
            audit.finish(&delivered).into_iter().map(|(name, found)| Check::new(name, found)).collect()
        }
        Err(failure) => vec![Check::new("3.3.2 reading all rows", Err(failure.message))],
    }
}

fn audit(site: &mut impl Site, tables: Tables, options: &TpccOptions) -> Result<Audit, Failure> {
    let mut audit = Audit::new(options.scale);
    site.for_each(tables.warehouse, |key, row| audit.warehouse(key, row))?;
    site.for_each(tables.district, |key, row| audit.district(key, row))?;
    site.for_each(tables.customer, |key, row| audit.customer(key, row))?;
    site.for_each(tables.history, |key, row| audit.history(key, row))?;
    site.for_each(tables.new_order, |key, row| audit.new_order(key, row))?;
    site.for_each(tables.order, |key, row| audit.order(key, row))?;
    site.for_each(tables.order_line, |key, row| audit.order_line(key, row))?;
    Ok(audit)
}

fn end<T>(ended: Result<T, Failure>) -> End {
    match ended {
        Ok(_) => End::Committed,
        Err(failure) => End::Failed(failure.message),
    }
}

impl Terminal {
    /// The terminal of a worker.
    pub(crate) fn new(worker: usize, options: &TpccOptions, population: &Population, seed: u64) -> Self {
        let TpccOptions { warehouses, mix, scale, .. } = *options;
        let warehouses = warehouses.min(u32::from(u16::MAX)) as u16;
        /// Base of the terminals' random streams, above the clients'.
        const STREAMS: u64 = 1 << 49;
        Self {
            tames: Random::stream(seed, STREAMS + worker as u64),
            client: Client::new(worker, warehouses, scale, population.constants(), mix, seed),
            worker: worker as u32,
            payments: 0,
            delivered: DeliveredCounts::new(),
            next: None,
        }
    }

    /// Draws the next transaction, at a moment after `begin`.
    #[inline]
    pub(crate) fn draw(&mut self, begin: clock::Instant) {
        let now = begin.elapsed().as_micros() as i64 + 2;
        self.next = Some(self.client.next_input(now));
    }

    /// The transaction that was drawn.
    #[inline]
    pub(crate) fn take(&mut self) -> Input {
        match self.next.take() {
            Some(input) => input,
            None => self.client.next_input(1),
        }
    }
}

impl<P: Protocol> Workload<P> for Tpcc<P> {
    type Client = Terminal;

    fn kinds(&self) -> &'static [&'static str] {
        KINDS
    }

    fn database_of_procedures(&self) -> Option<&Database<P>> {
        Some(&self.database)
    }

    fn client(&self, worker: usize, _workers: usize, seed: u64) -> Terminal {
        Terminal::new(worker, &self.options, &self.population, seed)
    }

    #[inline]
    fn prepare(&self, terminal: &mut Terminal) {
        terminal.draw(self.begin);
    }

    #[inline]
    fn run_one(&self, worker: &mut Worker<P>, terminal: &mut Terminal) -> Ran {
        let input = terminal.take();
        let kind = number_of(input.kind());
        let end = run_input(&mut self.here(worker), self.tables, &self.options, terminal, input);
        Ran { kind, end }
    }

    fn checks(&self, worker: &mut Worker<P>, terminals: Vec<Terminal>) -> Vec<Check> {
        check(&mut self.here(worker), self.tables, &self.options, &terminals)
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

//! Clients: the transactions that they draw and run, and the count of their work.

use super::VacationOptions;
use super::agency::{Agency, Audit, TABLES, draw_price};
use crate::application::{Failure, Statistics, require};
use crate::store::Store;
use hotrow_sync::random::Random;

/// The work of one or all clients.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Work {
    /// Transactions.
    pub(crate) transactions: u64,
    /// Reservations made.
    pub(crate) reservations: u64,
    /// Reservations cancelled because their customer was deleted.
    pub(crate) cancellations: u64,
    /// Customers added.
    pub(crate) customers_added: u64,
    /// Customers deleted.
    pub(crate) customers_deleted: u64,
    /// Sum of the bills of the deleted customers.
    pub(crate) billed: u64,
    /// Units added to tables, less units removed.
    pub(crate) units_added: i64,
    /// Updates of goods that changed something.
    pub(crate) updates: u64,
}

impl Work {
    /// Adds the work of another client.
    pub(crate) fn add(&mut self, other: &Work) {
        self.transactions += other.transactions;
        self.reservations += other.reservations;
        self.cancellations += other.cancellations;
        self.customers_added += other.customers_added;
        self.customers_deleted += other.customers_deleted;
        self.billed += other.billed;
        self.units_added += other.units_added;
        self.updates += other.updates;
    }

    /// The counts that users see.
    pub(crate) fn statistics(&self) -> Statistics {
        Statistics::new([
            ("transactions", self.transactions),
            ("reservations", self.reservations),
            ("cancellations", self.cancellations),
            ("customers_added", self.customers_added),
            ("customers_deleted", self.customers_deleted),
            ("billed", self.billed),
            ("updates", self.updates),
        ])
    }

    /// Checks the tables' sums against the work that was done on them.
    pub(crate) fn check(
        &self,
        audit: &Audit,
        customers_at_start: u32,
        units_at_start: i64,
    ) -> Result<(), Failure> {
        let expected = self.reservations - self.cancellations;
        require(audit.reservations == expected, || {
            format!(
                "customers hold {} reservations; {expected} were made and not cancelled",
                audit.reservations
            )
        })?;
        let expected = u64::from(customers_at_start) + self.customers_added - self.customers_deleted;
        require(audit.customers == expected, || {
            format!("there are {} customers; expected {expected}", audit.customers)
        })?;
        let expected = units_at_start + self.units_added;
        require(audit.units == expected, || format!("there are {} units; expected {expected}", audit.units))
    }
}

/// A client: one worker's source of transactions.
pub(crate) struct Client {
    random: Random,
    queries: u64,
    /// The largest number of a good or customer that the client uses.
    range: u64,
    user_percent: u64,
    /// The tables and numbers of the goods of the current transaction.
    goods: Vec<(usize, u32)>,
    /// The new price of each, or `None` if units are to be removed.
    prices: Vec<Option<u32>>,
    work: Work,
}

impl Client {
    /// The client of the given number.
    pub(crate) fn new(options: &VacationOptions, number: u64) -> Self {
        let queried = u64::from(options.queried_percent) * u64::from(options.relations);
        Self {
            // The tables are drawn from the seed itself.
            random: Random::stream(options.seed, number),
            queries: u64::from(options.queries),
            range: ((queried + 50) / 100).max(1),
            user_percent: u64::from(options.user_percent),
            goods: Vec::new(),
            prices: Vec::new(),
            work: Work::default(),
        }
    }

    /// The work done so far.
    pub(crate) fn work(&self) -> &Work {
        &self.work
    }

    /// Draws a transaction and runs it.
    pub(crate) fn act<S: Store>(&mut self, worker: &mut S::Worker<'_>, agency: &Agency<S>) {
        self.work.transactions += 1;
        if self.random.below(100) < self.user_percent {
            self.reserve(worker, agency);
        } else if self.random.chance(0.5) {
            self.delete_customer(worker, agency);
        } else {
            self.update_tables(worker, agency);
        }
    }

    fn draw_id(&mut self) -> u32 {
        self.random.between(1, self.range) as u32
    }

    fn draw_goods(&mut self) {
        self.goods.clear();
        for _ in 0..self.random.between(1, self.queries) {
            let good = (self.random.below(TABLES as u64) as usize, self.draw_id());
            self.goods.push(good);
        }
    }

    /// Looks at some goods and reserves the dearest of each table.
    fn reserve<S: Store>(&mut self, worker: &mut S::Worker<'_>, agency: &Agency<S>) {
        self.draw_goods();
        let customer = self.draw_id();
        let (is_added, reservations) = S::transact(worker, |tx| {
            let mut dearest = [None; TABLES];
            for (table, id) in &self.goods {
                let price = agency.goods(*table).price(tx, *id)?;
                let best = &mut dearest[*table];
                if price > best.map(|(price, _)| price) {
                    *best = price.map(|price| (price, *id));
                }
            }
            if dearest.iter().all(Option::is_none) {
                return Ok((false, 0));
            }
            let is_added = agency.add_customer(tx, customer)?;
            let mut reservations = 0;
            for (table, good) in dearest.iter().enumerate() {
                if let Some((_, id)) = good {
                    reservations += u64::from(agency.reserve(tx, customer, table, *id)?);
                }
            }
            Ok((is_added, reservations))
        });
        self.work.customers_added += u64::from(is_added);
        self.work.reservations += reservations;
    }

    fn delete_customer<S: Store>(&mut self, worker: &mut S::Worker<'_>, agency: &Agency<S>) {
        let customer = self.draw_id();
        let deleted = S::transact(worker, |tx| agency.delete_customer(tx, customer));
        if let Some((reservations, bill)) = deleted {
            self.work.customers_deleted += 1;
            self.work.cancellations += reservations;
            self.work.billed += bill;
        }
    }

    /// Adds units of some goods and removes units of others.
    fn update_tables<S: Store>(&mut self, worker: &mut S::Worker<'_>, agency: &Agency<S>) {
        self.draw_goods();
        self.prices.clear();
        for _ in &self.goods {
            self.prices.push(self.random.chance(0.5).then(|| draw_price(&mut self.random)));
        }
        let (updates, units) = S::transact(worker, |tx| {
            let (mut updates, mut units) = (0, 0);
            for ((table, id), price) in self.goods.iter().zip(&self.prices) {
                let change = agency.update(tx, *table, *id, *price)?;
                updates += u64::from(change != 0);
                units += change;
            }
            Ok((updates, units))
        });
        self.work.updates += updates;
        self.work.units_added += units;
    }
}

//! The agency: the tables of goods, the customers, and the operations on them.

use crate::application::{Failure, require};
use crate::store::{Counters, Lists, Map, Store};
use hotrow_sync::random::Random;

/// The number of tables: cars, flights, rooms.
pub(crate) const TABLES: usize = 3;

/// The table whose goods are removed as a whole, and only while nobody has reserved them.
const FLIGHTS: usize = 1;

/// The units that an update adds or removes.
const UNITS_PER_UPDATE: i64 = 100;

/// A table of goods. Entries have the numbers 1 to `relations`, and so have the counters.
pub(crate) struct Goods<S: Store> {
    /// The prices of the goods that are offered: those with units.
    pub(crate) prices: S::OrderedMap<u32, u32>,
    /// The number of units of each good.
    pub(crate) total: S::Counters,
    /// The number of units that are reserved.
    pub(crate) used: S::Counters,
    /// The number of units that are not reserved.
    pub(crate) free: S::Counters,
}

/// The reservations of each customer: the table and the number of the good, and its price when it was reserved.
pub(crate) type Customers<S> = <S as Store>::Lists<u32, (u32, u32), u32>;

/// The agency's tables.
pub(crate) struct Agency<S: Store> {
    tables: [Goods<S>; TABLES],
    customers: Customers<S>,
    relations: u32,
}

/// The sums over all tables that [`Agency::audit`] finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Audit {
    /// Units that exist.
    pub(crate) units: i64,
    /// Customers.
    pub(crate) customers: u64,
    /// Reservations that customers hold.
    pub(crate) reservations: u64,
}

/// A price, drawn as STAMP does: 50 to 90 in steps of 10.
pub(crate) fn draw_price(random: &mut Random) -> u32 {
    (random.below(5) * 10 + 50) as u32
}

/// The number of units of a good at the start: 100 to 500 in steps of 100.
fn draw_units(random: &mut Random) -> i64 {
    (random.between(1, 5) * 100) as i64
}

impl<S: Store> Goods<S> {
    fn new(store: &S, relations: u32, random: &mut Random) -> Self {
        let entries: Vec<(u32, i64)> =
            (0..relations).map(|_| (draw_price(random), draw_units(random))).collect();
        let units = || std::iter::once(0).chain(entries.iter().map(|(_, units)| *units));
        Self {
            prices: store.ordered_map((1..).zip(entries.iter().map(|(price, _)| *price))),
            total: store.counters(units()),
            used: store.counters((0..=relations).map(|_| 0)),
            free: store.counters(units()),
        }
    }

    /// Returns the price of a good, if it is offered. As in STAMP, the number of free units is looked at, and may be 0.
    /// A store without predicates therefore lets the transaction depend on that number.
    pub(crate) fn price(&self, tx: &mut S::Tx<'_>, id: u32) -> Result<Option<u32>, S::Abort> {
        let price = self.prices.get(tx, id)?;
        if price.is_some() && self.free.is_at_least(tx, id as usize, 0)? { Ok(price) } else { Ok(None) }
    }

    /// Reserves a unit and returns its price; `None` if none is free.
    fn reserve(&self, tx: &mut S::Tx<'_>, id: u32) -> Result<Option<u32>, S::Abort> {
        let Some(price) = self.prices.get(tx, id)? else { return Ok(None) };
        if !self.free.take_if_available(tx, id as usize, 1)? {
            return Ok(None);
        }
        self.used.add(tx, id as usize, 1)?;
        Ok(Some(price))
    }

    /// Gives a reserved unit back. Returns false if none is reserved.
    fn cancel(&self, tx: &mut S::Tx<'_>, id: u32) -> Result<bool, S::Abort> {
        let cancelled = self.used.take_if_available(tx, id as usize, 1)?;
        if cancelled {
            self.free.add(tx, id as usize, 1)?;
        }
        Ok(cancelled)
    }

    /// Adds units and changes the price.
    fn add(&self, tx: &mut S::Tx<'_>, id: u32, price: u32) -> Result<i64, S::Abort> {
        self.free.add(tx, id as usize, UNITS_PER_UPDATE)?;
        self.total.add(tx, id as usize, UNITS_PER_UPDATE)?;
        self.prices.put(tx, id, price)?;
        Ok(UNITS_PER_UPDATE)
    }

    /// Removes units, all of which must be free, and returns their number. A good without units is no longer offered.
    fn remove(&self, tx: &mut S::Tx<'_>, id: u32, units: i64) -> Result<i64, S::Abort> {
        if self.prices.get(tx, id)?.is_none() || !self.free.take_if_available(tx, id as usize, units)? {
            return Ok(0);
        }
        self.total.add(tx, id as usize, -units)?;
        if !self.total.is_at_least(tx, id as usize, 1)? {
            self.prices.remove(tx, id)?;
        }
        Ok(units)
    }

    /// Removes all units, if none is reserved, and returns their number.
    fn remove_unused(&self, tx: &mut S::Tx<'_>, id: u32) -> Result<i64, S::Abort> {
        if self.prices.get(tx, id)?.is_none() || self.used.is_at_least(tx, id as usize, 1)? {
            return Ok(0);
        }
        let units = self.total.get(tx, id as usize)?;
        self.remove(tx, id, units)
    }
}

impl<S: Store> Agency<S> {
    /// Makes an agency whose tables have `relations` entries each, and as many customers.
    pub(crate) fn new(store: &S, relations: u32, random: &mut Random) -> Self {
        let tables = std::array::from_fn(|_| Goods::new(store, relations, random));
        let customers = store.lists(relations as usize, 1..=relations);
        Self { tables, customers, relations }
    }

    /// Returns the number of units in all tables.
    pub(crate) fn units(&self, worker: &mut S::Worker<'_>) -> i64 {
        let mut units = 0;
        for goods in &self.tables {
            for id in 1..=self.relations as usize {
                units += S::transact(worker, |tx| goods.total.get(tx, id));
            }
        }
        units
    }

    /// The goods of a table.
    pub(crate) fn goods(&self, table: usize) -> &Goods<S> {
        &self.tables[table]
    }

    /// Adds a customer, unless there is one of this number. Returns true if it has been added.
    pub(crate) fn add_customer(&self, tx: &mut S::Tx<'_>, customer: u32) -> Result<bool, S::Abort> {
        self.customers.open(tx, customer)
    }

    /// Reserves a good for a customer. Returns false if no unit is free or the customer has reserved it already.
    pub(crate) fn reserve(
        &self,
        tx: &mut S::Tx<'_>,
        customer: u32,
        table: usize,
        id: u32,
    ) -> Result<bool, S::Abort> {
        let Some(price) = self.tables[table].reserve(tx, id)? else { return Ok(false) };
        let is_new = self.customers.insert(tx, customer, (table as u32, id), price)?;
        if !is_new {
            self.tables[table].cancel(tx, id)?;
        }
        Ok(is_new)
    }

    /// Removes a customer and cancels its reservations. Returns the number of its reservations and the sum of their
    /// prices; `None` if there is no such customer.
    pub(crate) fn delete_customer(
        &self,
        tx: &mut S::Tx<'_>,
        customer: u32,
    ) -> Result<Option<(u64, u64)>, S::Abort> {
        let Some(reservations) = self.customers.take(tx, customer)? else { return Ok(None) };
        let mut bill = 0;
        for ((table, id), price) in &reservations {
            bill += u64::from(*price);
            self.tables[*table as usize].cancel(tx, *id)?;
        }
        Ok(Some((reservations.len() as u64, bill)))
    }

    /// Adds units of a good, with a new price, or removes units. Returns the number of units added.
    pub(crate) fn update(
        &self,
        tx: &mut S::Tx<'_>,
        table: usize,
        id: u32,
        new_price: Option<u32>,
    ) -> Result<i64, S::Abort> {
        let goods = &self.tables[table];
        match new_price {
            Some(price) => goods.add(tx, id, price),
            None if table == FLIGHTS => goods.remove_unused(tx, id).map(|units| -units),
            None => goods.remove(tx, id, UNITS_PER_UPDATE).map(|units| -units),
        }
    }

    /// Checks every table against itself, and the reservations of all customers against the tables.
    pub(crate) fn audit(&self, worker: &mut S::Worker<'_>) -> Result<Audit, Failure> {
        let mut audit = Audit::default();
        let ids = self.relations as usize + 1;
        let mut reserved = vec![vec![0_i64; ids]; TABLES];
        for customer in 1..=self.relations {
            let Some(reservations) = S::transact(worker, |tx| self.customers.get(tx, customer)) else {
                continue;
            };
            audit.customers += 1;
            audit.reservations += reservations.len() as u64;
            for ((table, id), price) in reservations {
                require((50..=90).contains(&price), || {
                    format!("customer {customer} pays {price} for good {id} of table {table}")
                })?;
                reserved[table as usize][id as usize] += 1;
            }
        }
        for (table, goods) in self.tables.iter().enumerate() {
            for (id, reserved) in reserved[table].iter().enumerate().skip(1) {
                let (price, total, used, free) = S::transact(worker, |tx| {
                    Ok((
                        goods.prices.get(tx, id as u32)?,
                        goods.total.get(tx, id)?,
                        goods.used.get(tx, id)?,
                        goods.free.get(tx, id)?,
                    ))
                });
                let good = || format!("good {id} of table {table}: {total} units, {used} used, {free} free");
                require(used + free == total && used >= 0 && free >= 0, good)?;
                require(price.is_some() == (total > 0), || format!("{}, price {price:?}", good()))?;
                require(used == *reserved, || format!("{}, but {reserved} reservations", good()))?;
                audit.units += total;
            }
        }
        Ok(audit)
    }
}

#[cfg(test)]
impl Agency<crate::plain::Sequential> {
    /// Changes the tables behind the agency's back.
    pub(crate) fn corrupt(
        &self,
        change: impl FnOnce(&[Goods<crate::plain::Sequential>]) -> Result<(), std::convert::Infallible>,
    ) {
        let Ok(()) = change(&self.tables);
    }

    /// Changes the customers behind the agency's back.
    pub(crate) fn corrupt_customers(
        &self,
        change: impl FnOnce(&Customers<crate::plain::Sequential>) -> Result<(), std::convert::Infallible>,
    ) {
        let Ok(()) = change(&self.customers);
    }
}

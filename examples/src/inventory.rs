//! An inventory with reservations that expire. A buyer reserves pieces of an item, and has a time to confirm; what was not confirmed goes
//! back to the stock.
//!
//! - One table has the stock of each item, in three columns that change apart: free, reserved, sold. A reservation takes from what is
//!   free by `subtract_if_enough`, so two reservations of the same item do not abort each other as long as there is enough.
//! - Another has the reservations in the order in which they expire, so the sweeper scans a prefix of it. Reservations that are made
//!   meanwhile lie behind that prefix: the scan depends on the part that it has seen only.
//! - A confirmation and the sweeper may meet at one reservation. Both delete it, and the one that comes second finds it gone.
//!
//! Over a mutex ([`OverMutex`](rivals::OverMutex)) the sweeper stops everybody for as long as it takes. Over redb
//! ([`OverRedb`](rivals::OverRedb)) there is one writer at a time, and each commit writes pages.

use crate::Store;
use crate::load::{self, Scenario};
use crate::rivals::inventory as rivals;
use hotrow::sync::random::Random;
use hotrow::{Database, Direction, Error, Sequence, Table, Value, column_of};
use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Items; the first one is hot.
pub(crate) const ITEMS: u64 = 100;
/// Pieces of each in the beginning.
pub(crate) const FIRST_STOCK: u64 = 1_000_000;
/// The time that a buyer has to confirm.
pub(crate) const TIME_TO_CONFIRM: Duration = Duration::from_millis(5);

/// The pieces of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Value)]
#[value(inline)]
pub(crate) struct Stock {
    pub(crate) free: u64,
    #[value(group = "reserved")]
    pub(crate) reserved: u64,
    #[value(group = "sold")]
    pub(crate) sold: u64,
}

/// A reservation: of which item, and how many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Value)]
#[value(inline)]
struct Reservation {
    item: u64,
    pieces: u64,
}

/// The time at which a reservation expires, in microseconds since the inventory was opened, and its number.
pub(crate) type ReservationKey = (u64, u64);

/// The inventory.
struct Inventory {
    db: Database,
    stock: Table<u64, Stock>,
    reservations: Table<ReservationKey, Reservation>,
    numbers: Sequence,
    opened: Instant,
}

impl Inventory {
    fn open() -> Result<Self, Error> {
        let db = Database::open()?;
        let (stock, reservations) = (db.table("stock").create()?, db.table("reservations").create()?);
        let numbers = Sequence::starting_at(&db, "reservation numbers", 1);
        let first = Stock { free: FIRST_STOCK, ..Stock::default() };
        stock.bulk_insert((0..ITEMS).map(|item| (item, first)))?;
        Ok(Self { db, stock, reservations, numbers, opened: Instant::now() })
    }

    /// Microseconds since the inventory was opened.
    fn now(&self) -> u64 {
        self.opened.elapsed().as_micros() as u64
    }

    /// Reserves pieces of an item; `None` if there are not enough.
    fn reserve(&self, item: u64, pieces: u64) -> Result<Option<ReservationKey>, Error> {
        let expires = self.now() + TIME_TO_CONFIRM.as_micros() as u64;
        self.db.transact(|tx| {
            if !self.stock.subtract_if_enough(tx, &item, column_of!(Stock, free), pieces)? {
                return Ok(None);
            }
            let key = (expires, self.numbers.next(tx));
            self.reservations.insert(tx, key, Reservation { item, pieces })?;
            self.stock.add(tx, &item, column_of!(Stock, reserved), pieces)?;
            Ok(Some(key))
        })
    }

    /// Sells what was reserved. False if the reservation has expired.
    fn confirm(&self, key: &ReservationKey) -> Result<bool, Error> {
        self.db.transact(|tx| {
            let Some(Reservation { item, pieces }) = self.reservations.get(tx, key)? else {
                return Ok(false);
            };
            self.reservations.delete(tx, key)?;
            self.stock.add(tx, &item, column_of!(Stock, sold), pieces)?;
            let was_reserved =
                self.stock.subtract_if_enough(tx, &item, column_of!(Stock, reserved), pieces)?;
            tx.ensure(was_reserved, "more is reserved than the item says")?;
            Ok(true)
        })
    }

    /// Gives back what has expired, a few reservations in each transaction. Returns how many.
    fn sweep(&self) -> Result<usize, Error> {
        let mut swept = 0;
        loop {
            let until = (self.now(), 0);
            let some = self.db.transact(|tx| {
                let expired = self.reservations.collect(tx, ..until, Direction::Ascending, 16)?;
                for (key, Reservation { item, pieces }) in &expired {
                    self.reservations.delete(tx, key)?;
                    self.stock.add(tx, item, column_of!(Stock, free), *pieces)?;
                    let enough =
                        self.stock.subtract_if_enough(tx, item, column_of!(Stock, reserved), *pieces)?;
                    tx.ensure(enough, "more is reserved than the item says")?;
                }
                Ok(expired.len())
            })?;
            swept += some;
            if some == 0 {
                return Ok(swept);
            }
        }
    }

    /// Pieces of all items, and pieces that are in reservations, at one moment.
    fn sums(&self) -> Result<(Stock, u64), Error> {
        self.db.snapshot_strict()?.transact(|tx| {
            let (mut all, mut in_reservations) = (Stock::default(), 0);
            self.stock.scan(tx, .., Direction::Ascending, |_, stock| {
                all.free += stock.free;
                all.reserved += stock.reserved;
                all.sold += stock.sold;
                ControlFlow::Continue(())
            })?;
            self.reservations.scan(tx, .., Direction::Ascending, |_, reservation| {
                in_reservations += reservation.pieces;
                ControlFlow::Continue(())
            })?;
            Ok((all, in_reservations))
        })
    }
}

/// Checks that no piece came or went.
pub(crate) fn check(all: Stock, in_reservations: u64) -> Result<String, String> {
    let expected = ITEMS * FIRST_STOCK;
    if all.free + all.reserved + all.sold == expected && all.reserved == in_reservations {
        Ok(format!("{} sold, {} still reserved, and no piece came or went", all.sold, all.reserved))
    } else {
        Err(format!("{all:?} and {in_reservations} in reservations, of {expected}"))
    }
}

/// The next wish of a buyer: an item, how many, and if it will be confirmed. Half of all buyers want the same item.
pub(crate) fn next_wish(random: &mut Random) -> (u64, u64, bool) {
    let item = if random.below(2) == 0 { 0 } else { random.below(ITEMS) };
    (item, 1 + random.below(3), random.below(10) > 0)
}

/// The inventory under load.
struct UnderLoad {
    inventory: Inventory,
    /// The first failure of the sweeper.
    failed: Mutex<Option<Error>>,
}

impl Scenario for UnderLoad {
    fn one(&self, _: usize, _: u64, random: &mut Random) -> bool {
        let (item, pieces, confirms) = next_wish(random);
        let reserved = self.inventory.reserve(item, pieces).expect("a reservation");
        match reserved {
            Some(key) if confirms => self.inventory.confirm(&key).expect("a confirmation"),
            reserved => reserved.is_some(),
        }
    }

    fn beside(&self) -> Option<Duration> {
        if let Err(error) = self.inventory.sweep() {
            *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            return None;
        }
        Some(Duration::from_millis(1))
    }

    fn check(&self) -> Result<String, String> {
        if let Some(error) = &*self.failed.lock().unwrap_or_else(PoisonError::into_inner) {
            return Err(format!("the sweeper: {error}"));
        }
        let (all, in_reservations) = self.inventory.sums().map_err(|error| error.to_string())?;
        check(all, in_reservations)
    }

    fn conflicts(&self) -> Option<String> {
        Some(load::report(&self.inventory.db))
    }
}

pub(crate) const STORES: &[Store] = &[
    Store {
        name: "hotrow",
        make: || Ok(Box::new(UnderLoad { inventory: Inventory::open()?, failed: Mutex::new(None) })),
    },
    Store { name: "mutex", make: || Ok(Box::new(rivals::OverMutex::new())) },
    Store { name: "redb", make: || Ok(Box::new(rivals::OverRedb::new()?)) },
];

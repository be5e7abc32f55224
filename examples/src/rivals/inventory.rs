//! The inventory over a mutex, and over redb.

use crate::inventory::{self, FIRST_STOCK, ITEMS, ReservationKey, Stock, TIME_TO_CONFIRM, next_wish};
use crate::load::Scenario;
use crate::rivals::store::Store;
use hotrow::sync::random::Random;
use redb::{ReadableTable, TableDefinition};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Everything behind one mutex.
pub(crate) struct OverMutex {
    shelves: Mutex<Shelves>,
    opened: Instant,
}

struct Shelves {
    stock: Vec<Stock>,
    /// Item and pieces.
    reservations: BTreeMap<ReservationKey, (u64, u64)>,
    next_number: u64,
}

impl OverMutex {
    pub(crate) fn new() -> Self {
        let stock = vec![Stock { free: FIRST_STOCK, ..Stock::default() }; ITEMS as usize];
        let shelves = Shelves { stock, reservations: BTreeMap::new(), next_number: 1 };
        Self { shelves: Mutex::new(shelves), opened: Instant::now() }
    }

    fn lock(&self) -> MutexGuard<'_, Shelves> {
        self.shelves.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> u64 {
        self.opened.elapsed().as_micros() as u64
    }

    fn reserve(&self, item: u64, pieces: u64) -> Option<ReservationKey> {
        let expires = self.now() + TIME_TO_CONFIRM.as_micros() as u64;
        let shelves = &mut *self.lock();
        let stock = &mut shelves.stock[item as usize];
        stock.free = stock.free.checked_sub(pieces)?;
        stock.reserved += pieces;
        let key = (expires, shelves.next_number);
        shelves.next_number += 1;
        shelves.reservations.insert(key, (item, pieces));
        Some(key)
    }

    fn confirm(&self, key: &ReservationKey) -> bool {
        let shelves = &mut *self.lock();
        let Some((item, pieces)) = shelves.reservations.remove(key) else { return false };
        let stock = &mut shelves.stock[item as usize];
        stock.reserved -= pieces;
        stock.sold += pieces;
        true
    }
}

impl Scenario for OverMutex {
    fn one(&self, _: usize, _: u64, random: &mut Random) -> bool {
        let (item, pieces, confirms) = next_wish(random);
        match self.reserve(item, pieces) {
            Some(key) if confirms => self.confirm(&key),
            reserved => reserved.is_some(),
        }
    }

    fn beside(&self) -> Option<Duration> {
        let until = (self.now(), 0);
        let shelves = &mut *self.lock();
        let later = shelves.reservations.split_off(&until);
        for (item, pieces) in std::mem::replace(&mut shelves.reservations, later).into_values() {
            let stock = &mut shelves.stock[item as usize];
            stock.reserved -= pieces;
            stock.free += pieces;
        }
        Some(Duration::from_millis(1))
    }

    fn check(&self) -> Result<String, String> {
        let shelves = self.lock();
        let all = shelves.stock.iter().fold(Stock::default(), |all, stock| Stock {
            free: all.free + stock.free,
            reserved: all.reserved + stock.reserved,
            sold: all.sold + stock.sold,
        });
        inventory::check(all, shelves.reservations.values().map(|(_, pieces)| pieces).sum())
    }
}

/// Pieces that are free, reserved and sold, by item.
const STOCK: TableDefinition<'_, u64, (u64, u64, u64)> = TableDefinition::new("stock");
/// Item and pieces.
const RESERVATIONS: TableDefinition<'_, ReservationKey, (u64, u64)> = TableDefinition::new("reservations");

/// A store whose commits do not wait for the device.
pub(crate) struct OverRedb {
    store: Store,
    next_number: AtomicU64,
    opened: Instant,
}

impl OverRedb {
    pub(crate) fn new() -> Result<Self, Box<dyn std::error::Error>> {
        let store = Store::unsynced()?;
        store.fill(STOCK, (0..ITEMS).map(|item| (item, (FIRST_STOCK, 0, 0))))?;
        store.fill(RESERVATIONS, [])?;
        Ok(Self { store, next_number: AtomicU64::new(1), opened: Instant::now() })
    }

    fn now(&self) -> u64 {
        self.opened.elapsed().as_micros() as u64
    }

    fn reserve(&self, item: u64, pieces: u64) -> Result<Option<ReservationKey>, redb::Error> {
        let expires = self.now() + TIME_TO_CONFIRM.as_micros() as u64;
        self.store.write(|tx| {
            let mut stock = tx.open_table(STOCK)?;
            let (free, reserved, sold) = stock.get(item)?.map_or((0, 0, 0), |stock| stock.value());
            let Some(free) = free.checked_sub(pieces) else { return Ok(None) };
            stock.insert(item, (free, reserved + pieces, sold))?;
            let key = (expires, self.next_number.fetch_add(1, Ordering::Relaxed));
            tx.open_table(RESERVATIONS)?.insert(key, (item, pieces))?;
            Ok(Some(key))
        })
    }

    fn confirm(&self, key: &ReservationKey) -> Result<bool, redb::Error> {
        let confirmed = self.store.write(|tx| {
            let mut reservations = tx.open_table(RESERVATIONS)?;
            let Some((item, pieces)) = reservations.remove(key)?.map(|reservation| reservation.value())
            else {
                return Ok(None);
            };
            let mut stock = tx.open_table(STOCK)?;
            let (free, reserved, sold) = stock.get(item)?.map_or((0, 0, 0), |stock| stock.value());
            stock.insert(item, (free, reserved - pieces, sold + pieces))?;
            Ok(Some(()))
        })?;
        Ok(confirmed.is_some())
    }

    fn sweep(&self) -> Result<(), redb::Error> {
        let until = (self.now(), 0);
        self.store.write(|tx| {
            let mut reservations = tx.open_table(RESERVATIONS)?;
            let mut expired = Vec::new();
            for entry in reservations.extract_from_if(..until, |_, _| true)? {
                expired.push(entry?.1.value());
            }
            let mut stock = tx.open_table(STOCK)?;
            for (item, pieces) in &expired {
                let (free, reserved, sold) = stock.get(item)?.map_or((0, 0, 0), |stock| stock.value());
                stock.insert(item, (free + pieces, reserved - pieces, sold))?;
            }
            Ok((!expired.is_empty()).then_some(()))
        })?;
        Ok(())
    }

    fn sums(&self) -> Result<(Stock, u64), redb::Error> {
        let tx = self.store.read()?;
        let (mut all, mut in_reservations) = (Stock::default(), 0);
        for entry in tx.open_table(STOCK)?.iter()? {
            let (free, reserved, sold) = entry?.1.value();
            all.free += free;
            all.reserved += reserved;
            all.sold += sold;
        }
        for entry in tx.open_table(RESERVATIONS)?.iter()? {
            in_reservations += entry?.1.value().1;
        }
        Ok((all, in_reservations))
    }
}

impl Scenario for OverRedb {
    fn one(&self, _: usize, _: u64, random: &mut Random) -> bool {
        let (item, pieces, confirms) = next_wish(random);
        match self.reserve(item, pieces).expect("a reservation") {
            Some(key) if confirms => self.confirm(&key).expect("a confirmation"),
            reserved => reserved.is_some(),
        }
    }

    fn beside(&self) -> Option<Duration> {
        self.sweep().expect("the sweeper");
        Some(Duration::from_millis(1))
    }

    fn check(&self) -> Result<String, String> {
        let (all, in_reservations) = self.sums().map_err(|error| error.to_string())?;
        inventory::check(all, in_reservations)
    }
}

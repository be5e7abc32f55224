//! The inventory over a mutex.

use crate::inventory::{self, FIRST_STOCK, ITEMS, ReservationKey, Stock, TIME_TO_CONFIRM, next_wish};
use crate::load::Scenario;
use hotrow::sync::random::Random;
use std::collections::BTreeMap;
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

//! The rate limiter over a mutex, and over redb.

use crate::load::Scenario;
use crate::rate_limiter::{CLIENTS, INTERVAL, OF_ALL, OF_EACH, Tally, next_client};
use crate::rivals::store::Store;
use hotrow::sync::random::Random;
use redb::{ReadableTable, TableDefinition};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Everything behind one mutex.
pub(crate) struct OverMutex {
    left: Mutex<([i64; CLIENTS], i64)>,
    tally: Tally,
}

impl OverMutex {
    pub(crate) fn new() -> Self {
        Self { left: Mutex::new(([OF_EACH; CLIENTS], OF_ALL)), tally: Tally::default() }
    }
}

impl Scenario for OverMutex {
    fn one(&self, _: usize, _: u64, random: &mut Random) -> bool {
        let client = next_client(random);
        let (each, all) = &mut *self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let admitted = each[client] >= 1 && *all >= 1;
        if admitted {
            each[client] -= 1;
            *all -= 1;
        }
        self.tally.count(admitted)
    }

    fn beside(&self) -> Option<Duration> {
        self.tally.count_refill();
        *self.left.lock().unwrap_or_else(PoisonError::into_inner) = ([OF_EACH; CLIENTS], OF_ALL);
        Some(INTERVAL)
    }

    fn check(&self) -> Result<String, String> {
        let (each, all) = *self.left.lock().unwrap_or_else(PoisonError::into_inner);
        self.tally.check(&each, all)
    }
}

/// Requests that are left, by client; those for all are at [`ALL`].
const LEFT: TableDefinition<'_, u64, i64> = TableDefinition::new("requests left");
const ALL: u64 = CLIENTS as u64;

/// A store whose commits do not wait for the device.
pub(crate) struct OverRedb {
    store: Store,
    tally: Tally,
}

/// All numbers at the beginning of an interval.
fn full() -> impl Iterator<Item = (u64, i64)> {
    (0..ALL).map(|client| (client, OF_EACH)).chain([(ALL, OF_ALL)])
}

impl OverRedb {
    pub(crate) fn new() -> Result<Self, Box<dyn std::error::Error>> {
        let store = Store::unsynced()?;
        store.fill(LEFT, full())?;
        Ok(Self { store, tally: Tally::default() })
    }

    fn admit(&self, client: u64) -> Result<bool, redb::Error> {
        let admitted = self.store.write(|tx| {
            let mut left = tx.open_table(LEFT)?;
            let each = left.get(client)?.map_or(0, |left| left.value());
            let all = left.get(ALL)?.map_or(0, |left| left.value());
            if each < 1 || all < 1 {
                return Ok(None);
            }
            left.insert(client, each - 1)?;
            left.insert(ALL, all - 1)?;
            Ok(Some(()))
        })?;
        Ok(admitted.is_some())
    }

    fn left(&self) -> Result<Vec<i64>, redb::Error> {
        let left = self.store.read()?.open_table(LEFT)?;
        left.iter()?.map(|entry| Ok(entry?.1.value())).collect()
    }
}

impl Scenario for OverRedb {
    fn one(&self, _: usize, _: u64, random: &mut Random) -> bool {
        self.tally.count(self.admit(next_client(random) as u64).expect("a request"))
    }

    fn beside(&self) -> Option<Duration> {
        self.tally.count_refill();
        self.store.fill(LEFT, full()).expect("an interval begins");
        Some(INTERVAL)
    }

    fn check(&self) -> Result<String, String> {
        let left = self.left().map_err(|error| error.to_string())?;
        self.tally.check(&left[..CLIENTS], left[CLIENTS])
    }
}

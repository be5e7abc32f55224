//! The rate limiter over a mutex.

use crate::load::Scenario;
use crate::rate_limiter::{CLIENTS, INTERVAL, OF_ALL, OF_EACH, Tally, next_client};
use hotrow::sync::random::Random;
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

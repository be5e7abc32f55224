//! Counters whose last value is known, because this store has written it: an addition to one needs no read.
//!
//! A value that is not the last any more makes the transaction fail, and is forgotten.

use crate::store::Stamped;
use hotrow_sync::{Mutex, lock};
use std::collections::BTreeMap;

/// The most counters that are known at a time.
const KNOWN_MAX: usize = 4096;

/// The last values of counters.
#[derive(Debug, Default)]
pub(super) struct KnownCounters {
    values: Mutex<BTreeMap<Vec<u8>, Stamped>>,
}

impl KnownCounters {
    pub(super) fn get(&self, key: &[u8]) -> Option<Stamped> {
        lock(&self.values).get(key).cloned()
    }

    /// Notes the value of a counter, or that it is not known.
    pub(super) fn note(&self, key: &[u8], value: Option<Stamped>) {
        let mut values = lock(&self.values);
        match value {
            None => drop(values.remove(key)),
            Some(value) => {
                if values.len() >= KNOWN_MAX && !values.contains_key(key) {
                    values.pop_first();
                }
                values.insert(key.to_vec(), value);
            }
        }
    }
}

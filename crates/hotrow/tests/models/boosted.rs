//! A boosted map: a concurrent map of another crate, which knows nothing of transactions.

use super::maps::{Map, Operation, double, entry};
use hotrow::{Abort, ConcurrentMap, Engine, Protocol, TBoostedMap, Transaction};
use std::collections::BTreeMap;

pub(crate) struct Papaya(pub(crate) papaya::HashMap<u64, u64>);

impl ConcurrentMap<u64, u64> for Papaya {
    fn get(&self, key: &u64) -> Option<u64> {
        self.0.pin().get(key).copied()
    }

    fn insert(&self, key: u64, value: u64) -> Option<u64> {
        self.0.pin().insert(key, value).copied()
    }

    fn remove(&self, key: &u64) -> Option<u64> {
        self.0.pin().remove(key).copied()
    }
}

pub(crate) struct Boosted;

impl Map for Boosted {
    type Of<P: Protocol> = TBoostedMap<u64, u64, Papaya, P>;

    const HAS_SNAPSHOTS: bool = false;

    fn make<P: Protocol>(engine: &Engine<P>, entries: BTreeMap<u64, u64>) -> Self::Of<P> {
        TBoostedMap::named(engine, "boosted", Papaya(entries.into_iter().collect()), 16)
    }

    fn operate<P: Protocol>(
        map: &Self::Of<P>,
        tx: &mut Transaction<'_, P>,
        operation: &Operation,
    ) -> Result<Vec<(u64, u64)>, Abort> {
        Ok(match *operation {
            Operation::Get(key) => entry(key, map.get(tx, &key)?),
            Operation::Contains(key) => entry(key, map.get(tx, &key)?.map(|_| 1)),
            Operation::Insert(key, value) => entry(key, map.insert(tx, key, value)?),
            Operation::InsertIfAbsent(key, value) => {
                let is_new = map.get(tx, &key)?.is_none();
                if is_new {
                    map.insert(tx, key, value)?;
                }
                entry(key, is_new.then_some(1))
            }
            Operation::Double(key) => entry(key, map.update(tx, &key, double)?),
            Operation::DoubleOrInsert(key) => {
                let mut value = map.get(tx, &key)?.unwrap_or(7);
                let doubled = double(&mut value);
                map.insert(tx, key, doubled)?;
                entry(key, Some(doubled))
            }
            Operation::Remove(key) => entry(key, map.remove(tx, &key)?),
            _ => unreachable!("a map without order"),
        })
    }
}

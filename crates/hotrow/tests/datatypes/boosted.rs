//! A boosted map: a concurrent map of another crate, which knows nothing of transactions.

use crate::maps::{As, Map, Operation, double, entry};
use crate::support::{self, for_each_protocol};
use hotrow::{Abort, ConcurrentMap, Engine, Protocol, TBoostedMap, TBox, Transaction};
use hotrow_check::datatype::{Effort, check_datatype};
use std::collections::BTreeMap;

pub(crate) struct Papaya(papaya::HashMap<u64, u64>);

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

struct Boosted;

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

#[test]
fn a_boosted_map_is_a_map() {
    check_datatype::<As<Boosted, false>>(Effort::SHORT);
}

#[test]
fn effects_in_a_boosted_map_and_in_other_objects_are_of_the_same_transactions() {
    /// Moves units between a boosted map and a box, and looks at both.
    const UNITS: u64 = 100;
    for_each_protocol!(3, |P| {
        let engine = support::engine::<P>();
        let map = TBoostedMap::new(&engine, Papaya(papaya::HashMap::new()));
        let other = TBox::new(&engine, UNITS);
        support::on_threads(&engine, 2, |thread, worker| {
            for round in 0..100u64 {
                let result = worker.transact(|tx| {
                    if round % 3 == 0 {
                        // In the other order.
                        let (inside, outside) = (map.get(tx, &7)?.unwrap_or_default(), other.get(tx)?);
                        return Ok(inside + outside);
                    }
                    let outside = other.update(tx, |units| {
                        *units = units.saturating_sub(1 + thread);
                        *units
                    })?;
                    map.insert(tx, 7, UNITS - outside)?;
                    tx.ensure(round % 5 > 0, "rolled back")?;
                    Ok(UNITS)
                });
                match result {
                    Ok(units) => assert_eq!(units, UNITS),
                    Err(error) => assert_eq!(error.to_string(), "rolled back: rolled back"),
                }
            }
        });
        let sum = engine.transact(|tx| Ok(map.get(tx, &7)?.unwrap_or_default() + other.get(tx)?));
        assert_eq!(sum, Ok(UNITS));
    });
}

//! A boosted map beside another object.

use crate::models::boosted::Papaya;
use crate::support::{self, for_each_protocol};
use hotrow::{TBoostedMap, TBox};

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

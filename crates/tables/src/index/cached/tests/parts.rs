//! Looking again at parts of buckets: every change within a part is found, and changes elsewhere, and write-backs, are none.

use super::*;
use hotrow_sync::random::Random;
use std::collections::{BTreeMap, BTreeSet};

type Part = (CachedPart<u64, CountedRecord<u64>>, Box<[Pointer]>);

/// Scans a range, and keeps what it has found.
fn observe(index: &Index, low: u64, high: u64, direction: Direction, pin: &Pin) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut cursor = index.cursor(Included(low), Included(high), direction).unwrap();
    while let Some(part) = cursor.next(pin.guard()) {
        for observed in part.buckets().observed() {
            let nodes = part.buckets().nodes_of(part.records);
            let mut records = part.buckets().records_of(observed, part.records, &nodes).into_boxed_slice();
            let place = NonNull::from(&mut *records);
            // SAFETY: the bucket is the index's.
            let removals = unsafe { index.removals(observed) }.expect("nobody else is there");
            parts.push((CachedPart::new(part.bounds, direction, observed, removals, place), records));
        }
    }
    parts
}

#[test]
fn a_second_look_finds_what_has_come_or_gone_in_the_range() {
    for tail_bits in [0, 3, 64] {
        let mut random = Random::seeded(u64::from(tail_bits));
        let (mut held, mut failed) = (0, 0);
        for _ in 0..if cfg!(miri) { 5 } else { 2_000 } {
            let (census, index, pin) = (Census::default(), ordered(tail_bits), Pin::new());
            let mut model = BTreeMap::new();
            for _ in 0..random.below(12) {
                let key = random.below(20);
                if let Ok(record) = insert(&index, key, &census, &pin, &mut ignore) {
                    model.insert(key, record);
                }
            }
            let low = random.below(20);
            let high = low + random.below(6);
            let direction = if random.chance(0.5) { Direction::Ascending } else { Direction::Descending };
            let parts = observe(&index, low, high, direction, &pin);
            let void = BTreeSet::from_iter(random.chance(0.2).then(|| random.below(20)));
            let mut touched = BTreeSet::new();
            let mut has_removed = false;
            for _ in 0..random.below(4) {
                let key = random.below(20);
                match (random.below(3), model.get(&key).copied()) {
                    (0, None) => {
                        model.insert(key, insert(&index, key, &census, &pin, &mut ignore).unwrap());
                        touched.insert(key);
                    }
                    (1, Some(record)) => {
                        model.remove(&key);
                        assert!(remove(&index, record, &pin));
                        touched.insert(key);
                        has_removed = true;
                    }
                    (2, Some(record)) => write_back(&index, record, &pin),
                    _ => {}
                }
            }
            let is_void = |record: Pointer| void.contains(&key_of(record, pin.guard()));
            // SAFETY: the parts were observed under the pin, and their records are kept.
            let holds =
                parts.iter().all(|(part, _)| unsafe { index.still_holds(part, &is_void, pin.guard()) });
            let is_touched = touched.iter().any(|key| (low..=high).contains(key) && !void.contains(key));
            if is_touched {
                assert!(!holds, "a change between {low} and {high} goes unnoticed: {touched:?}");
            } else if !has_removed {
                assert!(holds, "nothing has changed between {low} and {high}: {touched:?}");
            }
            if holds {
                held += 1
            } else {
                failed += 1
            }
            drop(pin);
            end(index, model.into_keys(), &census);
        }
        assert!(cfg!(miri) || held > 100 && failed > 100, "{held} {failed}");
    }
}

//! A cached index against a map of the standard library.

use super::*;
use crate::index::testing::Observer;
use hotrow_sync::random::Random;
use std::collections::BTreeMap;

fn compare(index: Index, seed: u64, turns: u32) {
    let (census, mut random) = (Census::default(), Random::seeded(seed));
    let mut model = BTreeMap::<u64, Pointer>::new();
    for _ in 0..turns {
        let pin = &Pin::new();
        let key = random.below(40);
        // An observer of the key's bucket must see every insertion and removal.
        let mut observer = Observer::default();
        observer.observe(index.node_of(&key));
        match random.below(8) {
            0..3 => {
                let mut changes = Vec::new();
                let inserted = insert(&index, key, &census, pin, &mut |change| changes.push(change));
                match model.get(&key) {
                    Some(existing) => assert_eq!(inserted, Err(*existing)),
                    None => _ = model.insert(key, inserted.unwrap()),
                }
                assert_eq!(observer.unchanged(pin.guard()), inserted.is_err());
                changes.into_iter().for_each(|change| observer.follow(change));
                assert!(observer.unchanged(pin.guard()), "an attempt's own insertion");
            }
            3..5 => {
                if let Some(record) = model.remove(&key) {
                    assert!(remove(&index, record, pin));
                    assert!(!remove(&index, record, pin), "removed twice");
                    assert!(!observer.unchanged(pin.guard()));
                }
            }
            5 => {
                if let Some(record) = model.get(&key) {
                    write_back(&index, *record, pin);
                }
            }
            6 => {
                assert_eq!(find(&index, key, pin), model.get(&key).copied());
                assert!(observer.unchanged(pin.guard()));
            }
            _ if matches!(index.main(), MainIndex::Hash(_)) => {}
            _ => {
                let high = key + random.below(20);
                let range = (Included(key), Bound::Excluded(high));
                let expected = model.range(key..high).map(|(key, _)| *key);
                if random.chance(0.5) {
                    let found = scan(&index, range.0, range.1, Direction::Ascending, pin);
                    assert!(expected.eq(found));
                } else {
                    let found = scan(&index, range.0, range.1, Direction::Descending, pin);
                    assert!(expected.rev().eq(found));
                }
            }
        }
    }
    end(index, model.into_keys(), &census);
}

#[test]
fn an_ordered_index_behaves_as_a_map() {
    for (seed, tail_bits) in [0, 2, 4, 64].into_iter().enumerate() {
        compare(ordered(tail_bits), seed as u64, if cfg!(miri) { 200 } else { 20_000 });
    }
}

#[test]
fn a_hash_index_behaves_as_a_map() {
    for (seed, tail_bits) in [0, 2, 64].into_iter().enumerate() {
        compare(hash(tail_bits), seed as u64, if cfg!(miri) { 200 } else { 20_000 });
    }
}

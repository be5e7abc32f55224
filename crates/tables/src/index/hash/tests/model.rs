//! Random operations, compared with a `HashMap`; chains; the spread over the buckets.

use super::*;
use hotrow_sync::random::Random;
use std::collections::{HashMap, HashSet};

/// Random operations, compared with a `HashMap` after each.
fn compare<K: Hash + Eq + Clone + Send + Sync + std::fmt::Debug + 'static>(
    seed: u64,
    key: impl Fn(u64) -> K,
) {
    let census = Census::default();
    let index = Index::<K>::with_capacity(1);
    let mut model: HashMap<K, NonNull<CountedRecord<K>>> = HashMap::new();
    let mut random = Random::seeded(seed);
    for round in 0..6_000u64 {
        let guard = &epoch::pin();
        let key = key(random.below(if round < 3_000 { 2_000 } else { 300 }));
        match random.below(4) {
            0 | 1 if round % 3_000 < 2_000 => {
                let record = CountedRecord::new(key.clone(), &census);
                let inserted = insert(&index, record, guard, &mut |_| ());
                assert_eq!(inserted, !model.contains_key(&key));
                if inserted {
                    model.insert(key.clone(), record);
                }
            }
            0..3 => {
                if let Some(record) = model.remove(&key) {
                    assert!(index.remove(record, guard, &mut |_| ()));
                    assert!(!index.remove(record, guard, &mut |_| ()), "removed before");
                    retire(record, guard);
                }
            }
            _ => (),
        }
        match (index.get(&key, guard), model.get(&key)) {
            (Lookup::Found(found), Some(expected)) => assert_eq!(found, *expected),
            (Lookup::Absent(_), None) => (),
            (found, expected) => panic!("seed {seed}, round {round}, {key:?}: {found:?} {expected:?}"),
        }
        if round % 500 == 0 {
            let keys = all(&index, guard);
            assert_eq!(keys.len(), model.len());
            assert_eq!(keys.into_iter().collect::<HashSet<_>>(), model.keys().cloned().collect());
        }
    }
    empty(index, epoch::pin(), &census);
}

#[test]
fn random_operations_agree_with_a_hash_map() {
    for seed in 0..4 {
        compare(seed, |n| n);
        compare(seed, |n| (n as u16 % 7, n.to_string()));
    }
}

#[test]
fn keys_of_one_hash_are_told_apart_along_the_chain() {
    let census = Census::default();
    let index = Index::with_capacity(100);
    let pin = epoch::pin();
    let guard = &pin;
    let records: Vec<_> = (0..40).map(|n| CountedRecord::new(Same(n), &census)).collect();
    for &record in &records {
        assert!(insert(&index, record, guard, &mut |_| ()));
    }
    // From the middle, from the first bucket and from the end of the chain.
    for n in [20usize, 0, 39, 1, 38, 21] {
        assert!(index.remove(records[n], guard, &mut |_| ()));
        assert!(matches!(index.get(&Same(n as u64), guard), Lookup::Absent(_)));
        retire(records[n], guard);
    }
    for n in 0..40 {
        let removed = [20, 0, 39, 1, 38, 21].contains(&n);
        assert_eq!(matches!(index.get(&Same(n), guard), Lookup::Found(_)), !removed);
    }
    assert_eq!(all(&index, guard).len(), 34);
    empty(index, pin, &census);
}

#[test]
fn keys_at_any_distance_spread_over_the_buckets() {
    let census = Census::default();
    for shift in 0..50 {
        let index = Index::with_capacity(4_096);
        let pin = epoch::pin();
        for n in 0..4_096u64 {
            assert!(insert(&index, CountedRecord::new(n << shift, &census), &pin, &mut |_| ()));
        }
        let per_entry = index.memory_bytes() as f64 / 4_096.0;
        assert!(per_entry < 22.0, "{per_entry} bytes for keys {} apart", 1u64 << shift);
        empty(index, pin, &census);
    }
}

#[test]
fn emptied_overflow_buckets_are_given_back() {
    let census = Census::default();
    let index = Index::with_capacity(10_000);
    let before = index.memory_bytes();
    for _ in 0..20 {
        let guard = &epoch::pin();
        let records: Vec<_> = (0..20).map(|n| CountedRecord::new(Same(n), &census)).collect();
        records.iter().for_each(|&record| assert!(insert(&index, record, guard, &mut |_| ())));
        assert_eq!(index.memory_bytes(), before + 3 * 64);
        for record in records {
            assert!(index.remove(record, guard, &mut |_| ()));
            retire(record, guard);
        }
        assert_eq!(index.memory_bytes(), before);
    }
    empty(index, epoch::pin(), &census);
}

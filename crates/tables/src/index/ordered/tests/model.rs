//! Random operations, compared with a `BTreeMap`.

use super::*;
use hotrow_sync::random::Random;
use std::collections::BTreeMap;
use std::ops::RangeBounds as _;

fn random_bound(random: &mut Random, keys: u64) -> Bound<u64> {
    match random.below(5) {
        0 => Bound::Unbounded,
        1 | 2 => Bound::Included(random.below(keys)),
        _ => Bound::Excluded(random.below(keys)),
    }
}

fn compare<K: Key>(seed: u64, keys: u64, key: impl Fn(u64) -> K) {
    let census = Census::default();
    let index = Index::<K>::new();
    let mut model: BTreeMap<u64, Pointer<K>> = BTreeMap::new();
    let mut random = Random::seeded(seed);
    for round in 0..4_000u64 {
        let guard = &epoch::pin();
        let n = random.below(keys);
        // The tree grows, shrinks, grows, and shrinks.
        let inserts = if round / 1_000 % 2 == 0 { 5 } else { 1 };
        match random.below(10) {
            at if at < inserts => {
                let record = CountedRecord::new(key(n), &census);
                let inserted = insert(&index, record, guard, &mut ignore);
                assert_eq!(inserted, !model.contains_key(&n));
                if inserted {
                    model.insert(n, record);
                }
            }
            at if at < 6 => {
                if let Some(record) = model.remove(&n) {
                    remove(&index, record, guard);
                    // The record is not freed before this, as the epoch is pinned.
                    assert!(!index.remove(record, true, guard, &mut ignore), "removed before");
                }
            }
            6 => compare_scan(&index, &model, &mut random, keys, &key, guard),
            _ => match (index.get(&key(n).image(), guard), model.get(&n)) {
                (Lookup::Found(found), Some(expected)) => assert_eq!(found, *expected),
                (Lookup::Absent(_), None) => (),
                (found, expected) => panic!("seed {seed}, round {round}, {n}: {found:?} {expected:?}"),
            },
        }
        if round % 200 == 0 {
            assert_eq!(shape::check(&index, guard).entries, model.len());
        }
    }
    empty(index, epoch::pin(), &census);
}

fn compare_scan<K: Key>(
    index: &Index<K>,
    model: &BTreeMap<u64, Pointer<K>>,
    random: &mut Random,
    keys: u64,
    key: &impl Fn(u64) -> K,
    guard: &Guard,
) {
    let (low, high) = (random_bound(random, keys), random_bound(random, keys));
    let keys = (low.map(key), high.map(key));
    let image = |bound: &'_ Bound<K>| bound.as_ref().map(|key| K::Image::own(&key.image()));
    let limit = if random.chance(0.5) { random.below(20) as usize } else { usize::MAX };
    let ascending: Vec<_> =
        model.iter().filter(|(n, _)| (low, high).contains(*n)).map(|(_, record)| *record).collect();
    for direction in [Direction::Ascending, Direction::Descending] {
        let mut expected = ascending.clone();
        if direction == Direction::Descending {
            expected.reverse();
        }
        expected.truncate(limit);
        let mut found = Vec::new();
        let mut cursor = index.cursor(image(&keys.0), image(&keys.1), direction);
        while found.len() < limit
            && let Some(leaf) = cursor.next(guard)
        {
            // SAFETY: observed under the pinned epoch.
            assert!(unsafe { leaf.observed.node.as_ref() }.unchanged(leaf.observed.version));
            found.extend_from_slice(leaf.records);
        }
        found.truncate(limit);
        assert_eq!(found, expected, "{low:?} {high:?} {direction:?} {limit}");
    }
}

#[test]
fn random_operations_agree_with_a_btree_map_for_images_of_one_word() {
    for seed in 0..6 {
        compare(seed, 400, |n| n);
        compare(seed, 2_000, |n| n as i32 - 1_000);
    }
}

#[test]
fn random_operations_agree_with_a_btree_map_for_images_of_many_words() {
    for seed in 0..6 {
        compare(seed, 400, |n| (n / 20, n % 20));
        compare(seed, 400, |n| ((n / 100) as u8, (n as i32 % 100) / 10 - 5, n as u16 % 10));
    }
}

#[test]
fn random_operations_agree_with_a_btree_map_for_long_keys() {
    for seed in 0..2 {
        compare(seed, 400, String::of);
        compare(seed, 400, Vec::<u8>::of);
        compare(seed, 1_500, Vec::<u8>::of);
        compare(seed, 400, |n| (String::of(n / 20), n % 20));
        compare(seed, 400, |n| (n / 20, Some(String::of(n % 20))));
        compare(seed, 1_000, |n| (format!("{:02}", n / 50).into_boxed_str(), Vec::<u8>::of(n % 50), n));
    }
}

#[test]
fn a_range_turned_around_is_empty() {
    let census = Census::default();
    let index = Index::new();
    let guard = epoch::pin();
    (0..50u64).for_each(|key| assert!(insert(&index, CountedRecord::new(key, &census), &guard, &mut ignore)));
    for direction in [Direction::Ascending, Direction::Descending] {
        for (low, high) in [
            (Bound::Included(30), Bound::Included(20)),
            (Bound::Excluded(30), Bound::Included(30)),
            (Bound::Included(30), Bound::Excluded(30)),
            (Bound::Excluded(30), Bound::Excluded(30)),
        ] {
            assert_eq!(scan(&index, low, high, direction, &guard), []);
        }
        assert_eq!(scan(&index, Bound::Included(30), Bound::Included(30), direction, &guard), [30]);
        assert_eq!(scan(&index, Bound::Excluded(30), Bound::Excluded(31), direction, &guard), []);
    }
    empty(index, guard, &census);
}

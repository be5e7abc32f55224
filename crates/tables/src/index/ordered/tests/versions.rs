//! The changes that versions show to transactions: every phantom, and few others.

use super::*;
use crate::index::testing::Observer;
use hotrow_sync::random::Random;
use std::collections::BTreeMap;

fn observe_scan(
    index: &Index<u64>,
    low: Bound<u64>,
    high: Bound<u64>,
    direction: Direction,
    limit: usize,
    guard: &Guard,
) -> (Observer, Vec<u64>) {
    let mut observer = Observer::default();
    let mut keys = Vec::new();
    let mut cursor = index.cursor(low, high, direction);
    while keys.len() < limit
        && let Some(leaf) = cursor.next(guard)
    {
        observer.observe(leaf.observed);
        keys.extend(leaf.records.iter().map(|&record| key_of(record, guard)));
    }
    keys.truncate(limit);
    (observer, keys)
}

fn observe_absence(index: &Index<u64>, key: u64, guard: &Guard) -> Observer {
    let mut observer = Observer::default();
    match index.get(&key, guard) {
        Lookup::Absent(observed) => observer.observe(observed),
        Lookup::Found(_) => panic!("{key} is present"),
    }
    observer
}

fn even_keys(count: u64, census: &Census, guard: &Guard) -> (Index<u64>, BTreeMap<u64, Pointer<u64>>) {
    let index = Index::new();
    let mut records = BTreeMap::new();
    for key in (0..count).map(|n| 2 * n) {
        let record = CountedRecord::new(key, census);
        assert!(insert(&index, record, guard, &mut ignore));
        records.insert(key, record);
    }
    (index, records)
}

#[test]
fn an_insertion_is_noticed_by_whoever_observed_the_absence_of_its_key() {
    let census = Census::default();
    let guard = epoch::pin();
    let (index, _) = even_keys(100, &census, &guard);
    for key in (0..100).map(|n| 2 * n + 1) {
        let observer = observe_absence(&index, key, &guard);
        assert!(observer.unchanged(&guard));
        assert!(insert(&index, CountedRecord::new(key, &census), &guard, &mut ignore));
        assert!(!observer.unchanged(&guard), "{key}");
    }
    empty(index, guard, &census);
}

#[test]
fn an_observed_leaf_is_described_by_its_first_record() {
    let census = Census::default();
    let guard = epoch::pin();
    let (index, records) = even_keys(30, &census, &guard);
    let mut cursor = index.cursor(Bound::Unbounded, Bound::Unbounded, Direction::Ascending);
    while let Some(leaf) = cursor.next(&guard) {
        // SAFETY: observed under the pin.
        assert_eq!(unsafe { index.record_at(leaf.observed.node, &guard) }, leaf.records.first().copied());
    }
    let Lookup::Absent(observed) = index.get(&9, &guard) else { panic!("an odd key") };
    records.values().for_each(|&record| remove(&index, record, &guard));
    // SAFETY: observed under the pin.
    assert_eq!(unsafe { index.record_at(observed.node, &guard) }, None);
    empty(index, guard, &census);
}

#[test]
fn a_change_far_away_is_not_noticed() {
    let census = Census::default();
    let guard = epoch::pin();
    let (index, records) = even_keys(200, &census, &guard);
    let (scanned, _) =
        observe_scan(&index, Bound::Included(20), Bound::Excluded(40), Direction::Ascending, 100, &guard);
    let absent = observe_absence(&index, 31, &guard);
    // Splits, and removals of leaves.
    for key in (301..400).step_by(2) {
        assert!(insert(&index, CountedRecord::new(key, &census), &guard, &mut ignore));
    }
    for key in (100..200).step_by(2) {
        remove(&index, records[&key], &guard);
    }
    assert!(scanned.unchanged(&guard));
    assert!(absent.unchanged(&guard));
    empty(index, guard, &census);
}

/// Random scans, each followed by random changes: a change in the scanned part must be noticed.
#[test]
fn a_scan_notices_every_insertion_and_removal_in_its_range() {
    let census = Census::default();
    for seed in 0..30 {
        let mut random = Random::seeded(seed);
        let index = Index::new();
        let mut model = BTreeMap::new();
        let (mut noticed, mut in_range) = (0, 0);
        for round in 0..400 {
            let guard = &epoch::pin();
            let keys = 60;
            let bound = |random: &mut Random| match random.below(3) {
                0 => Bound::Unbounded,
                1 => Bound::Included(random.below(keys)),
                _ => Bound::Excluded(random.below(keys)),
            };
            let (low, high) = (bound(&mut random), bound(&mut random));
            let direction = if random.chance(0.5) { Direction::Ascending } else { Direction::Descending };
            let limit = if random.chance(0.5) { 1 + random.below(10) as usize } else { usize::MAX };
            let (observer, found) = observe_scan(&index, low, high, direction, limit, guard);
            assert!(observer.unchanged(guard));
            // A transaction that stops at the limit has read up to the last key found.
            let (low, high) = match (found.len() == limit, direction) {
                (false, _) => (low, high),
                (true, Direction::Ascending) => (low, Bound::Included(found[limit - 1])),
                (true, Direction::Descending) => (Bound::Included(found[limit - 1]), high),
            };
            let changes = 1 + random.below(3);
            let mut must_notice = false;
            let shrinks = seed % 2 == 0 && round % 100 > 50;
            for _ in 0..changes {
                let key = random.below(keys);
                let changed = match model.remove(&key) {
                    Some(record) => {
                        remove(&index, record, guard);
                        true
                    }
                    None if !shrinks => {
                        let record = CountedRecord::new(key, &census);
                        model.insert(key, record);
                        insert(&index, record, guard, &mut ignore)
                    }
                    None => false,
                };
                must_notice |= changed && std::ops::RangeBounds::contains(&(low, high), &key);
            }
            if must_notice {
                in_range += 1;
                noticed += usize::from(!observer.unchanged(guard));
                assert!(
                    !observer.unchanged(guard),
                    "seed {seed} round {round} {low:?} {high:?} {direction:?}"
                );
            }
        }
        assert!(in_range > 50 && noticed == in_range);
        empty(index, epoch::pin(), &census);
    }
}

#[test]
fn an_emptied_range_is_still_observed() {
    let census = Census::default();
    let guard = epoch::pin();
    let (index, records) = even_keys(100, &census, &guard);
    for key in (60..140).step_by(2) {
        remove(&index, records[&key], &guard);
    }
    shape::check(&index, &guard);
    for direction in [Direction::Ascending, Direction::Descending] {
        for key in 60..140u64 {
            let (observer, found) =
                observe_scan(&index, Bound::Included(60), Bound::Excluded(140), direction, 1, &guard);
            assert_eq!(found, []);
            let record = CountedRecord::new(key, &census);
            assert!(insert(&index, record, &guard, &mut ignore));
            assert!(!observer.unchanged(&guard), "{key}");
            let (observer, found) =
                observe_scan(&index, Bound::Included(60), Bound::Excluded(140), direction, 9, &guard);
            assert_eq!(found, [key]);
            remove(&index, record, &guard);
            assert!(!observer.unchanged(&guard), "{key}");
        }
    }
    empty(index, guard, &census);
}

#[test]
fn an_observer_follows_its_own_insertions_across_splits() {
    let census = Census::default();
    for seed in 0..20 {
        let mut random = Random::seeded(seed);
        let index = Index::new();
        let guard = epoch::pin();
        let (mut observer, _) =
            observe_scan(&index, Bound::Unbounded, Bound::Unbounded, Direction::Ascending, 1, &guard);
        for _ in 0..200 {
            let key = random.below(10_000);
            let record = CountedRecord::new(key, &census);
            insert(&index, record, &guard, &mut |change| observer.follow(change));
            assert!(observer.unchanged(&guard), "a transaction that aborts itself");
        }
        // The followed observations still cover everything: an insertion by another thread is noticed anywhere.
        let key = 10_000 + random.below(10) * 5_000;
        let key =
            if random.chance(0.5) { key } else { (0..).find(|key| is_absent(&index, *key, &guard)).unwrap() };
        assert!(insert(&index, CountedRecord::new(key, &census), &guard, &mut ignore));
        assert!(!observer.unchanged(&guard));
        empty(index, guard, &census);
    }
}

fn is_absent(index: &Index<u64>, key: u64, guard: &Guard) -> bool {
    matches!(index.get(&key, guard), Lookup::Absent(_))
}

#[test]
fn following_covers_every_part_of_a_split_range() {
    let census = Census::default();
    for other in (1..100).step_by(2) {
        let index = Index::new();
        let guard = epoch::pin();
        let (mut observer, _) =
            observe_scan(&index, Bound::Unbounded, Bound::Unbounded, Direction::Descending, 1, &guard);
        for key in [50u64, 20, 22, 24, 26, 28, 30, 80, 78, 76, 74, 72, 2, 4, 6, 90, 92, 94, 96] {
            assert!(insert(&index, CountedRecord::new(key, &census), &guard, &mut |change| observer
                .follow(change)));
            assert!(observer.unchanged(&guard));
        }
        assert!(insert(&index, CountedRecord::new(other, &census), &guard, &mut ignore));
        assert!(!observer.unchanged(&guard), "{other}");
        empty(index, guard, &census);
    }
}

#[test]
fn a_change_by_another_thread_is_not_followed() {
    let census = Census::default();
    let guard = epoch::pin();
    let (index, _) = even_keys(10, &census, &guard);
    let mut observer = observe_absence(&index, 101, &guard);
    assert!(insert(&index, CountedRecord::new(101, &census), &guard, &mut ignore));
    for key in (103..200).step_by(2) {
        assert!(
            insert(&index, CountedRecord::new(key, &census), &guard, &mut |change| observer.follow(change))
        );
    }
    assert!(!observer.unchanged(&guard));
    empty(index, guard, &census);
}

#[test]
fn an_observer_follows_its_own_removals_as_long_as_no_leaf_becomes_empty() {
    let census = Census::default();
    let guard = epoch::pin();
    let (index, records) = even_keys(60, &census, &guard);
    let (mut observer, _) =
        observe_scan(&index, Bound::Unbounded, Bound::Unbounded, Direction::Ascending, 1_000, &guard);
    // One key is removed of each full leaf of four.
    for key in (0..120).step_by(8) {
        assert!(index.remove(records[&key], true, &guard, &mut |change| observer.follow(change)));
        retire(records[&key], &guard);
        assert!(observer.unchanged(&guard), "{key}");
    }
    empty(index, guard, &census);
}

#[test]
fn a_leaf_that_must_not_be_changed_is_named_and_stays_as_it_is() {
    let census = Census::default();
    let guard = epoch::pin();
    let (index, mut records) = even_keys(100, &census, &guard);
    let numbers: std::collections::BTreeSet<u32> =
        records.keys().map(|key| StructureVersion::number(index.node_of(key, &guard).version)).collect();
    assert!(numbers.len() > 20, "few leaves, or few numbers");
    for key in (0..100).map(|n| 2 * n + 1) {
        // Some leaves are full and would be split.
        let (all, _) =
            observe_scan(&index, Bound::Unbounded, Bound::Unbounded, Direction::Ascending, 999, &guard);
        let record = CountedRecord::new(key, &census);
        // SAFETY: the tests free records only after they have removed them.
        let try_insert = |may: &dyn Fn(Observed) -> bool| unsafe {
            index.insert(record, &guard, None, &mut ignore, Some(may)).0
        };
        let named = index.node_of(&key, &guard);
        let refused = try_insert(&|_| false);
        assert!(matches!(refused, Insertion::Refused(observed) if observed == named), "{refused:?}");
        let elsewhere = try_insert(&|observed| observed.node != named.node);
        assert!(matches!(elsewhere, Insertion::Refused(observed) if observed == named), "{elsewhere:?}");
        assert!(all.unchanged(&guard));
        assert!(matches!(try_insert(&|observed| observed == named), Insertion::Inserted));
        assert!(!all.unchanged(&guard));
        records.insert(key, record);
    }
    empty(index, guard, &census);
}

#[test]
fn a_cursor_that_goes_back_delivers_the_leaf_as_it_is_by_then() {
    for direction in [Direction::Ascending, Direction::Descending] {
        let census = Census::default();
        let guard = epoch::pin();
        let (index, _) = even_keys(30, &census, &guard);
        let mut cursor = index.cursor(Bound::Included(10), Bound::Excluded(50), direction);
        let (mut keys, mut inserted) = (Vec::new(), 11);
        loop {
            let position = cursor.position();
            let Some(leaf) = cursor.next(&guard) else { break };
            let observed = leaf.observed;
            // Every leaf changes once before it counts.
            if inserted < 50 && index.node_of(&inserted, &guard).node == observed.node {
                assert!(insert(&index, CountedRecord::new(inserted, &census), &guard, &mut ignore));
                inserted += 2;
                cursor.go_back(position);
                continue;
            }
            keys.extend(leaf.records.iter().map(|&record| key_of(record, &guard)));
        }
        if direction == Direction::Descending {
            keys.reverse();
        }
        let expected: Vec<u64> = (10..50).filter(|key| key % 2 == 0 || *key < inserted).collect();
        if direction == Direction::Ascending {
            assert!(inserted > 40);
            assert_eq!(keys, expected);
        } else {
            // Only the last leaf delivered is changed.
            assert!(inserted > 11 && keys == expected, "{inserted} {keys:?}");
        }
        empty(index, guard, &census);
    }
}

//! Four threads on one tree.

use super::*;
use crate::index::testing::Observer;
use hotrow_sync::random::Random;
use hotrow_sync::thread;
use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Included, Unbounded};

const THREADS: u64 = 4;

/// One thread's operations on keys of its own, which no other thread touches, while the others run theirs.
struct Worker<'a, K: NumberKey> {
    index: &'a Index<K>,
    census: &'a Census,
    number: u64,
    random: Random,
    mine: BTreeMap<u64, Pointer<K>>,
}

impl<K: NumberKey> Worker<'_, K> {
    fn turn(&mut self, keys: u64) {
        let guard = &epoch::pin();
        let key = self.random.below(keys) * THREADS + self.number;
        match (self.random.below(10), self.mine.get(&key).copied()) {
            (0..3, None) => {
                let mut observer = Observer::default();
                match self.index.get(&K::of(key).image(), guard) {
                    Lookup::Absent(observed) => observer.observe(observed),
                    Lookup::Found(_) => panic!("{key} is mine, and not there"),
                }
                let record = CountedRecord::new(K::of(key), self.census);
                assert!(insert(self.index, record, guard, &mut ignore));
                assert!(!observer.unchanged(guard), "the insertion of {key} went unnoticed");
                self.mine.insert(key, record);
            }
            (0..3, Some(record)) => {
                let same = K::of(key);
                let bound = || Included(same.image());
                let mut cursor = self.index.cursor(bound(), bound(), Direction::Descending);
                let mut observer = Observer::default();
                while let Some(leaf) = cursor.next(guard) {
                    observer.observe(leaf.observed);
                }
                remove(self.index, record, guard);
                assert!(!observer.unchanged(guard), "the removal of {key} went unnoticed");
                self.mine.remove(&key);
            }
            (3..6, _) => self.scan(key, guard),
            (_, Some(record)) => match self.index.get(&K::of(key).image(), guard) {
                Lookup::Found(found) => assert_eq!(found, record),
                Lookup::Absent(_) => panic!("{key} is lost"),
            },
            (_, None) => assert!(matches!(self.index.get(&K::of(key).image(), guard), Lookup::Absent(_))),
        }
    }

    /// Scans the keys of all threads. This thread's own keys among them must be exactly those that it expects.
    fn scan(&mut self, from: u64, guard: &Guard) {
        let to = from + self.random.below(200);
        let ascending = self.random.chance(0.5);
        let direction = if ascending { Direction::Ascending } else { Direction::Descending };
        let mut found = Vec::new();
        let (low, high) = (K::of(from), K::of(to));
        let mut cursor = self.index.cursor(Included(low.image()), Excluded(high.image()), direction);
        while let Some(leaf) = cursor.next(guard) {
            found.extend(leaf.records.iter().map(|&record| key_of(record, guard).number()));
        }
        if !ascending {
            found.reverse();
        }
        assert!(found.is_sorted_by(|a, b| a < b), "{found:?}");
        found.retain(|key| key % THREADS == self.number);
        let expected: Vec<u64> =
            self.mine.range((Included(from), Excluded(to))).map(|(key, _)| *key).collect();
        assert_eq!(found, expected);
    }
}

fn stress<K: NumberKey>(keys: u64, rounds: u64) {
    let census = Census::default();
    let index = Index::<K>::new();
    let left: usize = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|number| {
                let (index, census) = (&index, &census);
                scope.spawn(move || {
                    let random = Random::stream(keys, number);
                    let mut worker = Worker { index, census, number, random, mine: BTreeMap::new() };
                    (0..rounds).for_each(|_| worker.turn(keys));
                    worker.mine.len()
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    let guard = epoch::pin();
    assert_eq!(shape::check(&index, &guard).entries, left);
    assert_eq!(all(&index, &guard).len(), left);
    empty(index, guard, &census);
}

#[test]
fn four_threads_with_few_keys_find_their_own() {
    stress::<u64>(5, 60_000);
    stress::<String>(5, 20_000);
    stress::<Vec<u8>>(5, 10_000);
}

#[test]
fn four_threads_with_many_keys_find_their_own() {
    stress::<u64>(300, 40_000);
    stress::<String>(300, 8_000);
    stress::<Vec<u8>>(100, 5_000);
}

/// Each thread appends at the end of its own run and takes from its beginning, so that leaves come and go all the
/// time.
#[test]
fn four_queues_side_by_side_do_not_grow() {
    let census = Census::default();
    let index = Index::<(u8, u32)>::new();
    thread::scope(|scope| {
        for number in 0..4u8 {
            let (index, census) = (&index, &census);
            scope.spawn(move || {
                let mut queue = std::collections::VecDeque::new();
                for order in 0..8_000u32 {
                    let guard = &epoch::pin();
                    let record = CountedRecord::new((number, order), census);
                    assert!(insert(index, record, guard, &mut ignore));
                    queue.push_back(record);
                    if queue.len() > 10 {
                        // Find the oldest order of this district, like a delivery.
                        let low = (number, 0u32).image();
                        let high = (number, u32::MAX).image();
                        let mut cursor = index.cursor(Included(low), Included(high), Direction::Ascending);
                        let mut oldest = None;
                        while oldest.is_none()
                            && let Some(leaf) = cursor.next(guard)
                        {
                            oldest = leaf.records.first().copied();
                        }
                        assert_eq!(oldest, queue.front().copied());
                        remove(index, queue.pop_front().unwrap(), guard);
                    }
                    // Find the newest order, like an order status.
                    let mut cursor =
                        index.cursor(Unbounded, Included((number, u32::MAX).image()), Direction::Descending);
                    let newest = cursor.next(guard).and_then(|leaf| leaf.records.first().copied());
                    assert_eq!(newest.or(queue.back().copied()), queue.back().copied());
                }
            });
        }
    });
    let guard = epoch::pin();
    let shape = shape::check(&index, &guard);
    assert_eq!(shape.entries, 40);
    assert!(shape.leaves + shape.inners < 60, "{shape:?}");
    empty(index, guard, &census);
}

#[test]
fn threads_that_insert_the_same_key_do_not_both_succeed() {
    let census = Census::default();
    let index = Index::<u64>::new();
    let won: usize = thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let (index, census) = (&index, &census);
                scope.spawn(move || {
                    (0..3_000)
                        .filter(|&key| {
                            insert(index, CountedRecord::new(key, census), &epoch::pin(), &mut ignore)
                        })
                        .count()
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(won, 3_000);
    let guard = epoch::pin();
    assert!(all(&index, &guard).into_iter().eq(0..3_000));
    empty(index, guard, &census);
}

//! Four threads on one cached index.

use super::*;
use hotrow_sync::random::Random;
use hotrow_sync::thread;
use std::collections::BTreeMap;

const THREADS: u64 = 4;

/// Each thread inserts, removes and writes back keys of its own, which it must find, among those of others. It reads, and writes back, those
/// of others, too.
fn stress(index: &Index, census: &Census, rounds: u64) -> Vec<u64> {
    let run = |number: u64| {
        let (mut random, mut mine) = (Random::seeded(number), BTreeMap::<u64, Pointer>::new());
        for _ in 0..rounds {
            let pin = &Pin::new();
            let key = random.below(16) * THREADS + number;
            match (random.below(8), mine.get(&key).copied()) {
                (0..2, None) => {
                    mine.insert(key, insert(index, key, census, pin, &mut ignore).unwrap());
                }
                (0..2, Some(record)) => {
                    assert!(remove(index, record, pin), "{key} is lost");
                    mine.remove(&key);
                }
                (2..4, Some(record)) => write_back(index, record, pin),
                (4, _) => {
                    let other = random.below(16 * THREADS);
                    if let Some(record) = find(index, other, pin) {
                        assert_eq!(key_of(record, pin.guard()), other);
                        write_back(index, record, pin);
                    }
                }
                (5, _) if matches!(index.main(), MainIndex::Ordered(_)) => {
                    let high = key + random.below(40);
                    let mut found = scan(index, Included(key), Included(high), Direction::Ascending, pin);
                    found.retain(|key| key % THREADS == number);
                    let expected: Vec<_> = mine.range(key..=high).map(|(key, _)| *key).collect();
                    assert_eq!(found, expected);
                }
                (_, expected) => assert_eq!(find(index, key, pin), expected),
            }
        }
        mine.into_keys().collect::<Vec<_>>()
    };
    let mut keys: Vec<u64> = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|number| scope.spawn(move || run(number))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    keys.sort_unstable();
    keys
}

const ROUNDS: u64 = if cfg!(miri) { 100 } else { 20_000 };

#[test]
fn threads_find_their_own_keys_in_a_hash_index() {
    for tail_bits in [0, 3, 64] {
        let (census, index) = (Census::default(), hash(tail_bits));
        let keys = stress(&index, &census, ROUNDS);
        end(index, keys, &census);
    }
}

#[test]
fn threads_find_their_own_keys_in_an_ordered_index() {
    for tail_bits in [0, 3, 64] {
        let (census, index) = (Census::default(), ordered(tail_bits));
        let keys = stress(&index, &census, ROUNDS);
        end(index, keys, &census);
    }
}

#[test]
fn of_threads_that_insert_or_remove_one_key_one_succeeds() {
    for (tail_bits, make) in [(0, hash as fn(u32) -> Index), (64, hash), (0, ordered), (64, ordered)] {
        let (census, index) = (Census::default(), make(tail_bits));
        // The numbers of insertions that succeeded, less those of removals, by keys.
        let run = |number: u64| {
            let (mut random, mut balance) = (Random::seeded(number), [0i64; 6]);
            for _ in 0..ROUNDS {
                let pin = &Pin::new();
                let key = random.below(6);
                match random.below(3) {
                    0 => {
                        balance[key as usize] +=
                            i64::from(insert(&index, key, &census, pin, &mut ignore).is_ok())
                    }
                    step => {
                        let Some(record) = find(&index, key, pin) else { continue };
                        if step == 1 {
                            write_back(&index, record, pin);
                        } else {
                            balance[key as usize] -= i64::from(remove(&index, record, pin));
                        }
                    }
                }
            }
            balance
        };
        let balances: Vec<_> = thread::scope(|scope| {
            let run = &run;
            let threads: Vec<_> = (0..THREADS).map(|number| scope.spawn(move || run(number))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let is_there = |key: &u64| match balances.iter().map(|balance| balance[*key as usize]).sum() {
            0i64 => false,
            1 => true,
            other => panic!("{other} records of key {key}"),
        };
        end(index, (0..6).filter(is_there), &census);
    }
}

//! Threads on one index.

use super::*;
use hotrow_sync::atomic::AtomicBool;
use hotrow_sync::random::Random;
use hotrow_sync::thread;
use std::collections::HashMap;

/// Keys of which thirteen share a hash.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Grouped(u64);

impl Hash for Grouped {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        state.write_u64(self.0 / 13);
    }
}

#[test]
fn long_chains_are_found_while_they_migrate() {
    let census = Census::default();
    let stop = AtomicBool::new(false);
    let pin = epoch::pin();
    let index = Index::with_capacity(1);
    for n in 0..13 * 64 {
        assert!(insert(&index, CountedRecord::new(Grouped(n), &census), &pin, &mut |_| ()));
    }
    thread::scope(|scope| {
        for thread in 0..2 {
            let (index, stop) = (&index, &stop);
            scope.spawn(move || {
                let mut random = Random::stream(7, thread);
                while !stop.load(Ordering::Relaxed) {
                    let key = Grouped(13 * random.below(64) + 12);
                    assert!(matches!(index.get(&key, &epoch::pin()), Lookup::Found(_)), "{key:?} is lost");
                }
            });
        }
        for _ in 0..6 {
            index.grow(index.current(&pin));
            while !index.current(&pin).parent.load(Ordering::Relaxed).is_null() {
                index.help_to_grow(&pin);
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    empty(index, pin, &census);
}

#[test]
fn growth_while_four_threads_insert_remove_and_look_up() {
    let census = Census::default();
    let index = Index::with_capacity(1);
    thread::scope(|scope| {
        for thread in 0..4u64 {
            let (index, census) = (&index, &census);
            scope.spawn(move || {
                let mut random = Random::stream(5, thread);
                let mut mine = HashMap::new();
                for round in 0..15_000u64 {
                    let guard = &epoch::pin();
                    let key = 4 * random.below(round / 3 + 10) + thread;
                    match (random.below(3), mine.get(&key).copied()) {
                        (0 | 1, None) => {
                            let Lookup::Absent(observed) = index.get(&key, guard) else { panic!("mine") };
                            let mut observer = Observer::default();
                            observer.observe(observed);
                            let record = CountedRecord::new(key, census);
                            assert!(insert(index, record, guard, &mut |_| ()));
                            assert!(!observer.unchanged(guard), "the insertion of {key} went unnoticed");
                            mine.insert(key, record);
                        }
                        (0, Some(record)) => {
                            assert!(index.remove(record, guard, &mut |_| ()));
                            mine.remove(&key);
                            retire(record, guard);
                        }
                        (_, Some(record)) => match index.get(&key, guard) {
                            Lookup::Found(found) => assert_eq!(found, record),
                            Lookup::Absent(_) => panic!("{key} is lost"),
                        },
                        (_, None) => assert!(matches!(index.get(&key, guard), Lookup::Absent(_))),
                    }
                    if let Lookup::Found(found) = index.get(&random.below(4 * round + 1), guard) {
                        key_of(found, guard);
                    }
                    if round % 4_000 == 0 {
                        let seen: Vec<u64> = all(index, guard);
                        assert_eq!(seen.iter().filter(|key| *key % 4 == thread).count(), mine.len());
                    }
                }
            });
        }
    });
    empty(index, epoch::pin(), &census);
}

#[test]
fn two_threads_that_insert_the_same_key_do_not_both_succeed() {
    let census = Census::default();
    let index = Index::with_capacity(1);
    let counts: Vec<u64> = thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let (index, census) = (&index, &census);
                scope.spawn(move || {
                    (0..3_000u64)
                        .filter(|&key| {
                            insert(index, CountedRecord::new(key, census), &epoch::pin(), &mut |_| ())
                        })
                        .count() as u64
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(counts.iter().sum::<u64>(), 3_000);
    empty(index, epoch::pin(), &census);
}

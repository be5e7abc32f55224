//! Fairness and counters under contention. Nothing is timed; what must end ends within a number of attempts.

use crate::support::{for_each_protocol, on_threads};
use hotrow::sync::atomic::{AtomicBool, Ordering};
use hotrow::sync::random::Random;
use hotrow::{Abort, Engine, Protocol, Reason, RetryPolicy, TArray, TCounter, Table};

/// Says that the others may stop, also when its thread panics.
struct Done<'a>(&'a AtomicBool);
impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Aborts after which a long transaction must have got through: those before it asks the others to let it
/// through, one for each attempt that was in progress then, and as many again for threads that the system
/// stops at a bad moment.
fn attempts_bound(threads: u64) -> u64 {
    u64::from(RetryPolicy::default().escalate_after) + 6 * threads
}

fn long_among_short<P: Protocol>(long: u64, short: u64, transactions: u64) {
    const ROWS: usize = 200;
    let engine = Engine::<P>::new();
    let rows = TArray::new(&engine, ROWS, |_| 0u64);
    let table = Table::<u64, u64, P>::hash(&engine, "rows", ROWS);
    (0..ROWS as u64).for_each(|key| assert!(table.load(key, 0)));
    let done = AtomicBool::new(false);
    let left = hotrow::sync::atomic::AtomicU64::new(long);
    let added = on_threads(&engine, long + short, |number, worker| {
        let mut random = Random::stream(7, number);
        let mut added = 0;
        if number < long {
            let mut last = Some(Done(&done));
            for _ in 0..transactions {
                let attempts = worker.run(|tx| {
                    for row in 0..ROWS {
                        rows.update(tx, row, |row| *row += 1)?;
                        table.update(tx, &(row as u64), |row| *row += 1)?;
                    }
                    Ok(u64::from(tx.attempt_number()) + 1)
                });
                assert!(attempts.unwrap() <= attempts_bound(long + short));
                added += 1;
            }
            if left.fetch_sub(1, Ordering::AcqRel) > 1 {
                std::mem::forget(last.take());
            }
        } else {
            while !done.load(Ordering::Acquire) {
                let (first, second) = (random.below(ROWS as u64), random.below(ROWS as u64));
                worker
                    .run(|tx| {
                        rows.update(tx, first as usize, |row| *row += 1)?;
                        table.update(tx, &second, |row| *row += 1).map(drop)
                    })
                    .unwrap();
            }
        }
        added
    });
    assert_eq!(added.iter().sum::<u64>(), long * transactions);
    assert!(engine.statistics().attempts_max <= attempts_bound(long + short));
}

#[test]
fn a_long_transaction_gets_through_among_short_ones() {
    for_each_protocol!(4, |P| { long_among_short::<P>(1, 3, 20) });
}

#[test]
fn long_transactions_get_through_among_each_other_and_short_ones() {
    for_each_protocol!(6, |P| { long_among_short::<P>(3, 3, 10) });
}

#[test]
fn a_long_reader_gets_through_among_writers() {
    for_each_protocol!(5, |P| {
        let engine = Engine::<P>::new();
        let table = Table::<u64, u64, P>::ordered(&engine, "rows");
        (0..500).for_each(|key| assert!(table.load(key, 0)));
        let done = AtomicBool::new(false);
        on_threads(&engine, 5, |number, worker| {
            let mut random = Random::stream(8, number);
            if number == 0 {
                let _done = Done(&done);
                for _ in 0..20 {
                    let (rows, attempts) = worker
                        .run(|tx| {
                            let rows = table.collect(tx, .., hotrow::Direction::Ascending, usize::MAX)?;
                            Ok((rows, u64::from(tx.attempt_number()) + 1))
                        })
                        .unwrap();
                    assert!(attempts <= attempts_bound(5));
                    let sum: u64 = rows.iter().map(|(_, row)| row).sum();
                    assert_eq!(sum % 2, 0, "each writer adds one to two rows");
                }
            } else {
                while !done.load(Ordering::Acquire) {
                    let (first, second) = (random.below(500), random.below(500));
                    worker
                        .run(|tx| {
                            table.update(tx, &first, |row| *row += 1)?;
                            table.update(tx, &second, |row| *row += 1).map(drop)
                        })
                        .unwrap();
                }
            }
        });
    });
}

#[test]
fn eight_threads_that_want_the_same_row_all_get_it() {
    for_each_protocol!(8, |P| {
        let engine = Engine::<P>::new();
        let table = Table::<u64, u64, P>::hash(&engine, "hot", 1);
        table.load(1, 0);
        on_threads(&engine, 8, |_, worker| {
            for _ in 0..2_000 {
                worker.run(|tx| table.update(tx, &1, |row| *row += 1)).unwrap();
            }
        });
        assert_eq!(engine.run(|tx| table.get(tx, &1)), Ok(Some(16_000)));
        let statistics = engine.statistics();
        assert_eq!(statistics.commits, 16_001);
        assert!(statistics.attempts_max <= attempts_bound(8), "{statistics:?}");
    });
}

#[test]
fn transactions_that_only_add_never_find_that_another_has_added() {
    for_each_protocol!(8, |P| {
        let engine = Engine::<P>::new();
        let counters = [TCounter::new(&engine, 0), TCounter::new(&engine, 0)];
        on_threads(&engine, 8, |number, worker| {
            for round in 0..2_000 {
                let amount = if (round + number) % 2 == 0 { 3 } else { -1 };
                worker
                    .run(|tx| {
                        // In one order, so that nobody waits for two.
                        counters[0].add(tx, amount)?;
                        counters[1].add(tx, 1)
                    })
                    .unwrap();
            }
        });
        let values = engine.run(|tx| Ok((counters[0].get(tx)?, counters[1].get(tx)?)));
        assert_eq!(values, Ok((16_000, 16_000)));
        // Nobody depends on a value. A lock whose holder the system has stopped may still be waited for in vain.
        let statistics = engine.statistics();
        assert_eq!(statistics.aborts, statistics.aborts_for(Reason::WriteLocked), "{statistics:?}");
    });
}

#[test]
fn a_counter_guarded_by_a_test_never_falls_below_its_border() {
    for_each_protocol!(6, |P| {
        let engine = Engine::<P>::new();
        let counter = TCounter::new(&engine, 5);
        let sums = on_threads(&engine, 6, |number, worker| {
            let mut random = Random::stream(11, number);
            let mut sum = 0;
            for _ in 0..1_500 {
                let amount = random.between(1, 3) as i64;
                let gives_up = random.chance(0.1);
                let taken = worker.run(|tx| {
                    let delta = if number % 3 == 0 {
                        amount
                    } else if counter.is_at_least(tx, amount)? {
                        -amount
                    } else {
                        0
                    };
                    counter.add(tx, delta)?;
                    assert!(delta >= 0 || counter.is_at_least(tx, 0)? || !P::OPAQUE);
                    if gives_up { Err(Abort::rollback()) } else { Ok(delta) }
                });
                sum += taken.unwrap_or(0);
                if random.chance(0.05) {
                    let value = worker.run(|tx| counter.get(tx)).unwrap();
                    assert!(value >= 0, "{value}");
                }
            }
            sum
        });
        let value = engine.run(|tx| counter.get(tx)).unwrap();
        assert_eq!(value, 5 + sums.iter().sum::<i64>());
        assert!(value >= 0);
    });
}

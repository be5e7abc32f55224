//! Fairness and counters under contention. Nothing is timed; what must end ends within a number of attempts.

use crate::support;
use crate::support::{for_each_protocol, on_threads};
use hotrow::sync::atomic::{AtomicU64, Ordering};
use hotrow::sync::random::Random;
use hotrow::sync::thread;
use hotrow::{Abort, Database, Engine, Protocol, Reason, RetryPolicy, TArray, TCounter, Worker};
use std::ops::ControlFlow;

/// Counts a thread as done, also when it panics.
struct Done<'a>(&'a AtomicU64);
impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::AcqRel);
    }
}

/// How often the worker found that something had changed. It may also find things locked; while the system has
/// stopped a lock's holder that happens any number of times, and is not counted here.
fn changes_met<P: Protocol>(worker: &Worker<P>) -> u64 {
    let statistics = worker.statistics();
    let changes = [Reason::ReadChanged, Reason::StructureChanged, Reason::PredicateFailed];
    changes.into_iter().map(|reason| statistics.aborts_for(reason)).sum()
}

/// How many changes a transaction may meet until it gets through: those before it asks the others to let it
/// through, one for each attempt that was in progress then, and some for attempts that have waited for their
/// turn too long. Without the asking, a long transaction here meets hundreds and thousands.
fn changes_bound(threads: u64) -> u64 {
    u64::from(RetryPolicy::default().escalate_after) + 6 * threads
}

/// A transaction among many others: each part of it lets others run.
fn pause(row: usize) {
    if row.is_multiple_of(50) {
        thread::yield_now();
    }
}

fn long_among_short<P: Protocol>(long: u64, short: u64, transactions: u64) {
    until_contended(|| long_among_short_once::<P>(long, short, transactions));
}

fn long_among_short_once<P: Protocol>(long: u64, short: u64, transactions: u64) -> bool {
    const ROWS: usize = 200;
    let engine = support::engine::<P>();
    let rows = TArray::new(&engine, ROWS, |_| 0u64);
    let table = Database::on(&engine).table::<u64, u64>("rows").hash(ROWS).create().unwrap();
    table.bulk_insert((0..ROWS as u64).map(|key| (key, 0))).unwrap();
    let (running, done) = (AtomicU64::new(0), AtomicU64::new(0));
    on_threads(&engine, long + short, |number, worker| {
        if number < long {
            let _done = Done(&done);
            while running.load(Ordering::Acquire) < short {
                thread::yield_now();
            }
            for _ in 0..transactions {
                let before = changes_met(worker);
                let added = worker.transact(|tx| {
                    for row in 0..ROWS {
                        rows.update(tx, row, |row| *row += 1)?;
                        table.update_if_present(tx, &(row as u64), |row| *row += 1)?;
                        pause(row);
                    }
                    Ok(())
                });
                added.unwrap();
                let changes = changes_met(worker) - before;
                assert!(changes <= changes_bound(long + short), "{changes} changes in one transaction");
            }
        } else {
            let mut random = Random::stream(7, number);
            let mut first = true;
            while done.load(Ordering::Acquire) < long {
                let (one, other) = (random.below(ROWS as u64), random.below(ROWS as u64));
                worker
                    .transact(|tx| {
                        rows.update(tx, one as usize, |row| *row += 1)?;
                        table.update_if_present(tx, &other, |row| *row += 1).map(drop)
                    })
                    .unwrap();
                if std::mem::take(&mut first) {
                    running.fetch_add(1, Ordering::AcqRel);
                }
            }
        }
    });
    was_contended(&engine)
}

/// True if transactions were in each other's way. Under a protocol that has everybody queue, none need have lost.
fn was_contended<P: Protocol>(engine: &Engine<P>) -> bool {
    !support::is_concurrent() || engine.protocol() == "2pl-mcs" || engine.statistics().attempts_max > 1
}

/// Repeats something until transactions were in each other's way. On a machine that is busy with other things they may
/// come one after the other.
fn until_contended(mut run: impl FnMut() -> bool) {
    assert!((0..50).any(|_| run()), "there was no contention");
}

#[test]
fn a_long_transaction_gets_through_among_short_ones() {
    for_each_protocol!(4, |P| { long_among_short::<P>(1, 3, 2) });
}

#[test]
fn long_transactions_get_through_among_each_other_and_short_ones() {
    for_each_protocol!(6, |P| { long_among_short::<P>(3, 3, 1) });
}

#[test]
fn a_long_reader_gets_through_among_writers() {
    for_each_protocol!(5, |P| { until_contended(long_reader_among_writers::<P>) });
}

fn long_reader_among_writers<P: Protocol>() -> bool {
    let engine = support::engine::<P>();
    let table = Database::on(&engine).table::<u64, u64>("rows").create().unwrap();
    table.bulk_insert((0..250).map(|key| (key, 0))).unwrap();
    let (running, done) = (AtomicU64::new(0), AtomicU64::new(0));
    on_threads(&engine, 5, |number, worker| {
        if number == 0 {
            let _done = Done(&done);
            while running.load(Ordering::Acquire) < 4 {
                thread::yield_now();
            }
            for _ in 0..2 {
                let before = changes_met(worker);
                let sum = worker
                    .transact(|tx| {
                        let (mut sum, mut row) = (0, 0);
                        table.scan(tx, .., hotrow::Direction::Ascending, |_, value| {
                            sum += value;
                            row += 1;
                            pause(row);
                            ControlFlow::Continue(())
                        })?;
                        Ok(sum)
                    })
                    .unwrap();
                let changes = changes_met(worker) - before;
                assert!(changes <= changes_bound(5), "{changes} changes in one transaction");
                assert_eq!(sum % 2, 0, "each writer adds one to two rows");
            }
        } else {
            let mut random = Random::stream(8, number);
            let mut first = true;
            while done.load(Ordering::Acquire) < 1 {
                let (one, other) = (random.below(250), random.below(250));
                worker
                    .transact(|tx| {
                        table.update_if_present(tx, &one, |row| *row += 1)?;
                        table.update_if_present(tx, &other, |row| *row += 1).map(drop)
                    })
                    .unwrap();
                if std::mem::take(&mut first) {
                    running.fetch_add(1, Ordering::AcqRel);
                }
            }
        }
    });
    was_contended(&engine)
}

#[test]
fn eight_threads_that_want_the_same_row_all_get_it() {
    for_each_protocol!(8, |P| {
        let engine = support::engine::<P>();
        let table = support::loaded(Database::on(&engine).table::<u64, u64>("hot").hash(1), [(1, 0)]);
        on_threads(&engine, 8, |_, worker| {
            for _ in 0..1_000 {
                worker.transact(|tx| table.update_if_present(tx, &1, |row| *row += 1)).unwrap();
            }
        });
        assert_eq!(engine.transact(|tx| table.get(tx, &1)), Ok(Some(8_000)));
        let statistics = engine.statistics();
        assert_eq!(statistics.commits, 8_001);
    });
}

#[test]
fn transactions_that_only_add_never_find_that_another_has_added() {
    for_each_protocol!(8, |P| {
        let engine = support::engine::<P>();
        let counters = [TCounter::new(&engine, 0), TCounter::new(&engine, 0)];
        on_threads(&engine, 8, |number, worker| {
            for round in 0..1_000 {
                let amount = if (round + number) % 2 == 0 { 3 } else { -1 };
                worker
                    .transact(|tx| {
                        // In one order, so that nobody waits for two.
                        counters[0].add(tx, amount)?;
                        counters[1].add(tx, 1)
                    })
                    .unwrap();
            }
        });
        let values = engine.transact(|tx| Ok((counters[0].get(tx)?, counters[1].get(tx)?)));
        assert_eq!(values, Ok((8_000, 8_000)));
        // Nobody depends on a value. A lock may still be waited for in vain, or taken away by an older transaction.
        let statistics = engine.statistics();
        let over_locks = [Reason::WriteLocked, Reason::Wounded].map(|reason| statistics.aborts_for(reason));
        assert_eq!(statistics.aborts, over_locks.iter().sum::<u64>(), "{statistics:?}");
    });
}

#[test]
fn a_counter_guarded_by_a_test_never_falls_below_its_border() {
    for_each_protocol!(6, |P| {
        let engine = support::engine::<P>();
        let counter = TCounter::new(&engine, 5);
        let sums = on_threads(&engine, 6, |number, worker| {
            let mut random = Random::stream(11, number);
            let mut sum = 0;
            for _ in 0..1_500 {
                let amount = random.between(1, 3) as i64;
                let gives_up = random.chance(0.1);
                let taken = worker.transact(|tx| {
                    let delta = if number % 3 == 0 {
                        amount
                    } else if counter.is_at_least(tx, amount)? {
                        -amount
                    } else {
                        0
                    };
                    counter.add(tx, delta)?;
                    assert!(delta >= 0 || counter.is_at_least(tx, 0)? || !engine.is_opaque());
                    if gives_up { Err(Abort::rollback()) } else { Ok(delta) }
                });
                sum += taken.unwrap_or(0);
                if random.chance(0.05) {
                    let value = worker.transact(|tx| counter.get(tx)).unwrap();
                    assert!(value >= 0, "{value}");
                }
            }
            sum
        });
        let value = engine.transact(|tx| counter.get(tx)).unwrap();
        assert_eq!(value, 5 + sums.iter().sum::<i64>());
        assert!(value >= 0);
    });
}

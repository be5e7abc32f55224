//! Deferred operations of several threads: ranks that do not go with the flow of data, tame transactions by count,
//! and histories.

use crate::support;
use crate::support::{for_each_protocol, steps};
use hotrow::sync::random::Random;
use hotrow::sync::thread;
use hotrow::{
    Abort, Any, Counter, Deferred, Engine, Protocol, RetryPolicy, TArray, TBox, TCounter, Transaction, Worker,
};
use std::cell::Cell;
use std::rc::Rc;

/// Enough for every run here.
const HISTORY_BYTES_MAX: usize = 1 << 26;
const TOTAL: i64 = 600;

/// Accounts between which money goes, in the reverse of the order of ranks: the first one has the highest.
fn accounts<P: Protocol>(engine: &Engine<P>, count: u16) -> Vec<TBox<i64, P>> {
    (0..count)
        .map(|number| {
            let mut account = TBox::named(engine, format!("account {number}"), TOTAL / i64::from(count));
            account.set_rank(100 - number);
            account
        })
        .collect()
}

/// Moves money, as much as there is of it. What arrives depends on what has left.
fn transfer<P: Protocol>(
    tx: &mut Transaction<'_, P>,
    path: &[&TBox<i64, P>],
    amount: i64,
) -> Result<Deferred<i64>, Abort> {
    let mut moved = tx.known(amount);
    for pair in path.windows(2) {
        moved = pair[0].defer_update(tx, moved, |balance, amount| {
            let amount = amount.min(*balance);
            *balance -= amount;
            amount
        })?;
        pair[1].defer_update(tx, moved, |balance, amount| *balance += amount)?;
    }
    Ok(moved)
}

/// The sum of all accounts, by deferred reads.
fn sum<P: Protocol>(tx: &mut Transaction<'_, P>, accounts: &[TBox<i64, P>]) -> Result<Deferred<i64>, Abort> {
    let mut sum = tx.known(0);
    for account in accounts {
        let balance = account.defer_read(tx, |balance| *balance)?;
        sum = tx.compute(sum + balance, |sum| sum)?;
    }
    Ok(sum)
}

#[test]
fn data_flow_against_the_order_of_ranks_in_both_directions_at_once() {
    for_each_protocol!(2, |P| {
        let engine = support::engine::<P>();
        let accounts = accounts(&engine, 3);
        let forth: Vec<_> = accounts.iter().collect();
        let back: Vec<_> = accounts.iter().rev().collect();
        support::on_threads(&engine, 2, |thread, worker| {
            for round in 0..300 {
                let path = if thread == 0 { &forth } else { &back };
                let moved = worker.transact_deferred(|tx| transfer(tx, path, round % 7)).unwrap();
                assert!((0..7).contains(&moved));
                if round % 10 == 0 {
                    assert_eq!(worker.transact_deferred(|tx| sum(tx, &accounts)), Ok(TOTAL));
                }
            }
        });
        assert_eq!(engine.transact_deferred(|tx| sum(tx, &accounts)), Ok(TOTAL));
        let statistics = engine.statistics();
        assert_eq!(statistics.count(&Counter::TAME_ABORTS), 0);
        if ["tame", "deferred-2pl"].iter().any(|always_defers| engine.protocol().contains(always_defers)) {
            assert_eq!(
                (statistics.aborts, statistics.count(&Counter::TAME_COMMITS)),
                (0, statistics.commits)
            );
        }
    });
}

#[test]
fn tame_and_wild_transfers_conserve_the_money() {
    const THREADS: u64 = 4;
    for_each_protocol!(THREADS as u32, |P| {
        let engine = support::engine::<P>();
        let accounts = accounts(&engine, 6);
        support::on_threads(&engine, THREADS, |thread, worker| {
            let mut random = Random::stream(5, thread);
            for round in 0..150 {
                let at = |random: &mut Random| &accounts[random.below(6) as usize];
                let path = [at(&mut random), at(&mut random), at(&mut random)];
                match (thread + round) % 4 {
                    0 | 1 => drop(worker.transact_deferred(|tx| transfer(tx, &path, 5)).unwrap()),
                    2 => {
                        // Wild: how much it moves depends on what it has read.
                        let moved = worker.transact(|tx| {
                            let amount = path[0].get(tx)?.min(5);
                            let moved = transfer(tx, &path[1..], amount)?;
                            tx.force(moved)
                        });
                        assert!(moved.unwrap() <= 5);
                    }
                    _ => {
                        let sum = worker.transact(|tx| {
                            let mut sum = 0;
                            for account in &accounts {
                                sum += account.get(tx)?;
                            }
                            if engine.is_opaque() {
                                assert_eq!(sum, TOTAL, "an attempt that saw two states");
                            }
                            Ok(sum)
                        });
                        assert_eq!(sum, Ok(TOTAL));
                    }
                }
            }
        });
        assert_eq!(engine.transact_deferred(|tx| sum(tx, &accounts)), Ok(TOTAL));
        assert_eq!(engine.statistics().count(&Counter::TAME_ABORTS), 0);
    });
}

#[test]
fn a_worker_runs_at_once_while_it_meets_nobody_and_defers_again_after_an_abort() {
    let engine = Engine::<Any>::named("drp+calm=2", RetryPolicy::default()).unwrap();
    let number = TBox::new(&engine, 0u64);
    let tame = || engine.statistics().count(&Counter::TAME_COMMITS);
    let add = |worker: &mut Worker<Any>, before_commit: &dyn Fn(u32)| {
        worker.transact_deferred(|tx| {
            let added = number.defer_update(tx, (), |value, ()| {
                *value += 1;
                *value
            })?;
            before_commit(tx.attempt_number());
            Ok(added)
        })
    };
    let mut worker = engine.worker().unwrap();
    for round in 1..=5 {
        assert_eq!(add(&mut worker, &|_| ()), Ok(round));
    }
    assert_eq!(tame(), 2, "two that met nobody, then three at once");
    let disturb = |attempt| {
        if attempt == 0 {
            thread::scope(|scope| {
                scope.spawn(|| add(&mut engine.worker().unwrap(), &|_| ()).unwrap()).join().unwrap()
            });
        }
    };
    assert_eq!(add(&mut worker, &disturb), Ok(7));
    assert_eq!(
        (engine.statistics().aborts, tame()),
        (1, 4),
        "its second attempt defers, and so does the other worker"
    );
    assert_eq!((add(&mut worker, &|_| ()), tame()), (Ok(8), 5));
}

#[test]
fn tame_transactions_never_abort() {
    const THREADS: u64 = 4;
    const ROUNDS: u64 = 500;
    for name in
        ["drp+tame", "drp+opaque+tame", "drp+exclusive+tame", "deferred-2pl", "deferred-2pl+exclusive"]
    {
        let engine = Engine::<Any>::named(name, RetryPolicy::default()).unwrap();
        let boxes: Vec<_> = (0..3).map(|_| TBox::new(&engine, 0u64)).collect();
        let counter = TCounter::new(&engine, 0);
        support::on_threads(&engine, THREADS, |thread, worker| {
            for round in 0..ROUNDS {
                let results = worker.transact_deferred(|tx| {
                    let mut last = tx.known(0);
                    // In all orders of the boxes.
                    for step in 0..3 {
                        let step = if round % 2 == 0 { step } else { 2 - step };
                        let at = (thread + round + step) as usize % 3;
                        last = boxes[at].defer_update(tx, last, |value, _| {
                            *value += 1;
                            *value
                        })?;
                    }
                    counter.defer_add(tx, last.map(|_| 1))?;
                    Ok(last)
                });
                assert!((1..=THREADS * ROUNDS).contains(&results.unwrap()));
            }
        });
        let statistics = engine.statistics();
        assert_eq!(statistics.aborts, 0, "{name}");
        assert_eq!(statistics.count(&Counter::TAME_ABORTS), 0, "{name}");
        assert_eq!(
            (statistics.commits, statistics.count(&Counter::TAME_COMMITS)),
            (THREADS * ROUNDS, THREADS * ROUNDS)
        );
        for number in &boxes {
            assert_eq!(engine.transact(|tx| number.get(tx)), Ok(THREADS * ROUNDS), "{name}");
        }
        assert_eq!(engine.transact(|tx| counter.get(tx)), Ok((THREADS * ROUNDS).cast_signed()), "{name}");
    }
}

/// An intention runs when others have committed since the body read.
#[test]
fn an_intention_of_an_opaque_attempt_sees_the_state_that_its_body_has_seen() {
    for_each_protocol!(2, |P| {
        steps::Interleaving::<P>::new().run(|engine, [mut t1, mut t2]| {
            let (first, second) = (TBox::new(engine, 0), TBox::new(engine, 0));
            let found = Rc::new(Cell::new(None));
            let note = found.clone();
            let seen = t1.step(|tx| {
                second
                    .defer_update(tx, (), move |second, ()| note.set(Some(std::mem::replace(second, 2))))?;
                first.get(tx)
            });
            t2.step(|tx| {
                first.set(tx, 1)?;
                second.set(tx, 1)
            });
            t2.commit();
            if t1.commit() || engine.is_opaque() {
                assert!(found.get().is_none() || found.get() == seen, "{found:?} after {seen:?}");
            }
        });
    });
}

#[test]
fn histories_of_deferred_operations_are_what_the_protocol_claims() {
    const THREADS: u64 = 3;
    for_each_protocol!(THREADS as u32, |P| {
        let engine = support::engine::<P>();
        let recording = engine.record_history(HISTORY_BYTES_MAX).unwrap();
        let mut cells = TArray::<i64, P>::named(&engine, "cells", 4, |_| 100);
        cells.set_rank(7);
        let counter = TCounter::named(&engine, "counter", 0);
        support::on_threads(&engine, THREADS, |thread, worker| {
            let mut random = Random::stream(9, thread);
            for _ in 0..120 {
                let [from, to, other] = std::array::from_fn(|_| random.below(4) as usize);
                let kind = random.below(6);
                let done = worker.transact(|tx| match kind {
                    // Tame.
                    0 | 1 => {
                        let seen = cells.defer_read(tx, other, |cell| *cell)?;
                        let left = cells.defer_update(tx, from, seen, |cell, seen| {
                            *cell -= seen % 3;
                            *cell
                        })?;
                        cells.defer_set(tx, to, left + 1)?;
                        counter.defer_add(tx, 1)
                    }
                    2 => {
                        let (seen, counted) =
                            (cells.defer_read(tx, from, |cell| *cell)?, counter.defer_get(tx)?);
                        tx.compute((seen, counted), |(seen, counted)| seen + counted).map(|_| ())
                    }
                    // Wild: it reads, and then writes what was deferred.
                    3 => {
                        let seen = cells.get(tx, from)? + cells.get(tx, other)?;
                        cells.defer_update(tx, to, (), move |cell, ()| *cell = seen).map(|_| ())
                    }
                    4 => {
                        let cell = cells.defer_read(tx, from, |cell| *cell)?;
                        let index = tx.force(cell)?.rem_euclid(4) as usize;
                        cells.defer_update(tx, index, cell, |value, cell| *value += cell).map(|_| ())
                    }
                    // It only reads.
                    _ => {
                        for index in 0..4 {
                            cells.get(tx, index)?;
                        }
                        counter.is_at_least(tx, 10).map(|_| ())
                    }
                });
                done.unwrap();
            }
        });
        let history = recording.finish();
        assert_eq!(history.opaque, engine.is_opaque());
        steps::judge(&history);
    });
}

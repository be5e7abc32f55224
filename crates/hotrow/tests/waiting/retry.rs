//! Waiting for a change of what was read.

use crate::support::{engine_with, for_each_protocol, panic_of};
use hotrow::sync::atomic::{AtomicU64, Ordering};
use hotrow::sync::{clock, thread};
use hotrow::{
    Abort, Any, BlockedForever, Database, Direction, Engine, Error, Isolation, Misuse, Profile, Protocol,
    RetryPolicy, SessionOptions, TBox, TCounter, THashMap, TListSet, TPriorityQueue, TQueue, Transaction,
    Value, column_of,
};
use std::ops::ControlFlow;
use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq, Value)]
struct Stock {
    left: u64,
}

/// An engine under which a wake-up that is lost is an error soon.
fn engine<P: Protocol>() -> Engine<P> {
    engine_with(RetryPolicy { deadline: Some(Duration::from_secs(60)), ..RetryPolicy::default() })
}

/// Runs a transaction on another thread, and `change` when that one waits. Returns the transaction's result.
fn woken<P: Protocol, R: Send>(
    engine: &Engine<P>,
    body: impl Fn(&mut Transaction<'_, P>) -> Result<R, Abort> + Send,
    change: impl FnOnce(),
) -> R {
    let waits = engine.statistics().waits;
    thread::scope(|scope| {
        let waiter = scope.spawn(move || engine.transact(|tx| body(tx)));
        while engine.statistics().waits == waits {
            assert!(!waiter.is_finished(), "it does not wait");
            thread::yield_now();
        }
        change();
        waiter.join().unwrap().unwrap()
    })
}

#[test]
fn a_change_of_a_box_a_counter_or_a_queue_wakes_those_that_have_read_it() {
    for_each_protocol!(2, |P| {
        let engine = engine::<P>();
        let (number, counter) = (TBox::new(&engine, 0u64), TCounter::new(&engine, 0));
        let (queue, urgent) = (TQueue::new(&engine), TPriorityQueue::new(&engine));
        let map = THashMap::new(&engine);
        let long = TBox::new(&engine, vec![0u64; 8]);
        let read = woken(
            &engine,
            |tx| match number.get(tx)? {
                0 => tx.retry(),
                number => Ok(number),
            },
            || engine.transact(|tx| number.set(tx, 7)).unwrap(),
        );
        assert_eq!(read, 7);
        // By an addition at the commit, which reads nothing.
        let read = woken(
            &engine,
            |tx| match number.get(tx)? {
                7 => tx.retry(),
                number => Ok(number),
            },
            || engine.transact(|tx| number.add(tx, 2)).unwrap(),
        );
        assert_eq!(read, 9);
        let read = woken(
            &engine,
            |tx| if long.read(tx, |long| long[3] == 0)? { tx.retry() } else { long.get(tx) },
            || engine.transact(|tx| long.update(tx, |long| long[3] = 1)).unwrap(),
        );
        assert_eq!(read[3], 1);
        woken(
            &engine,
            |tx| if counter.is_at_least(tx, 3)? { counter.add(tx, -3) } else { tx.retry() },
            || (0..3).for_each(|_| engine.transact(|tx| counter.add(tx, 1)).unwrap()),
        );
        assert_eq!(engine.transact(|tx| counter.get(tx)).unwrap(), 0);
        let popped = woken(
            &engine,
            |tx| match queue.pop(tx)? {
                None => tx.retry(),
                Some(element) => Ok(element),
            },
            || engine.transact(|tx| queue.push(tx, String::from("first"))).unwrap(),
        );
        assert_eq!(popped, "first");
        let popped = woken(
            &engine,
            |tx| match urgent.pop(tx)? {
                None => tx.retry(),
                Some(element) => Ok(element),
            },
            || engine.transact(|tx| urgent.push(tx, 5u64)).unwrap(),
        );
        assert_eq!(popped, 5);
        let found = woken(
            &engine,
            |tx| match map.get(tx, &3u64)? {
                None => tx.retry(),
                Some(value) => Ok(value),
            },
            || engine.transact(|tx| map.insert(tx, 3, 4u64).map(drop)).unwrap(),
        );
        assert_eq!(found, 4);
        assert_eq!(engine.statistics().rollbacks, 0, "a wait is no rollback");
    });
}

#[test]
fn rows_wake_those_that_wait_for_their_update_insertion_and_deletion() {
    for_each_protocol!(2, |P| {
        let engine = engine::<P>();
        let db = Database::on(&engine);
        let hashed = db.table::<u64, u64>("hashed").hash(4).create().unwrap();
        let ordered = db.table::<u64, u64>("ordered").ordered().create().unwrap();
        for table in [&hashed, &ordered] {
            engine.transact(|tx| (0..4).try_for_each(|key| table.insert(tx, 10 * key, 0))).unwrap();
            let updated = woken(
                &engine,
                |tx| match table.get(tx, &10)? {
                    Some(0) => tx.retry(),
                    row => Ok(row),
                },
                || engine.transact(|tx| table.update(tx, &10, |row| *row = 1)).unwrap(),
            );
            assert_eq!(updated, Some(1));
            let inserted = woken(
                &engine,
                |tx| match table.get(tx, &15)? {
                    None => tx.retry(),
                    row => Ok(row),
                },
                || engine.transact(|tx| table.insert(tx, 15, 8)).unwrap(),
            );
            assert_eq!(inserted, Some(8));
            woken(
                &engine,
                |tx| if table.get(tx, &15)?.is_some() { tx.retry() } else { Ok(()) },
                || engine.transact(|tx| table.delete(tx, &15).map(drop)).unwrap(),
            );
            // The index grows, and nodes are split and replaced, while somebody waits.
            let last = woken(
                &engine,
                |tx| match table.get(tx, &1_000_000)? {
                    None => tx.retry(),
                    row => Ok(row),
                },
                || {
                    for key in 1_000..3_000 {
                        engine.transact(|tx| table.insert(tx, key, 1)).unwrap();
                    }
                    for key in 1_000..3_000 {
                        engine.transact(|tx| table.delete(tx, &key).map(drop)).unwrap();
                    }
                    engine.transact(|tx| table.insert(tx, 1_000_000, 2)).unwrap();
                },
            );
            assert_eq!(last, Some(2));
            engine.transact(|tx| table.delete(tx, &1_000_000).map(drop)).unwrap();
        }
        let stocks = db.table::<u64, Stock>("stocks").hash(4).create().unwrap();
        stocks.bulk_insert([(1, Stock { left: 2 })]).unwrap();
        woken(
            &engine,
            |tx| {
                let is_enough = stocks.subtract_if_enough(tx, &1, column_of!(Stock, left), 5)?;
                if is_enough { Ok(()) } else { tx.retry() }
            },
            || {
                for _ in 0..3 {
                    engine.transact(|tx| stocks.add(tx, &1, column_of!(Stock, left), 1)).unwrap();
                }
            },
        );
        assert_eq!(engine.transact(|tx| stocks.get(tx, &1)).unwrap(), Some(Stock { left: 0 }));
        // The ends and the middle of a range.
        for key in [100, 131, 199] {
            let found = woken(
                &engine,
                |tx| {
                    let mut found = None;
                    ordered.scan(tx, 100..200, Direction::Ascending, |key, _| {
                        found = Some(*key);
                        ControlFlow::Break(())
                    })?;
                    match found {
                        None => tx.retry(),
                        Some(key) => Ok(key),
                    }
                },
                || {
                    // Outside of the range.
                    engine.transact(|tx| ordered.insert(tx, 200, 0)).unwrap();
                    engine.transact(|tx| ordered.delete(tx, &200).map(drop)).unwrap();
                    engine.transact(|tx| ordered.insert(tx, key, 0)).unwrap();
                },
            );
            assert_eq!(found, key);
            engine.transact(|tx| ordered.delete(tx, &key).map(drop)).unwrap();
        }
        // Outside of transactions.
        let row = woken(
            &engine,
            |tx| match hashed.get(tx, &77)? {
                None => tx.retry(),
                row => Ok(row),
            },
            || hashed.bulk_insert([(77, 1)]).unwrap(),
        );
        assert_eq!(row, Some(1));
    });
}

#[test]
fn the_second_alternative_runs_if_the_first_waits_and_both_are_waited_for() {
    for_each_protocol!(2, |P| {
        let engine = engine::<P>();
        let queues = [TQueue::new(&engine), TQueue::new(&engine)];
        let tried = TBox::new(&engine, 0u64);
        let pop = |tx: &mut Transaction<'_, P>, which: usize| {
            tried.update(tx, |tried| *tried += 1 << which)?;
            match queues[which].pop(tx)? {
                None => tx.retry(),
                Some(element) => Ok(element),
            }
        };
        for (which, queue) in (0..).zip(&queues) {
            engine.transact(|tx| queue.push(tx, 10 + which)).unwrap();
            let either = engine.transact(|tx| tx.or_else(|tx| pop(tx, 0), |tx| pop(tx, 1))).unwrap();
            assert_eq!(either, 10 + which);
            let either = woken(
                &engine,
                |tx| tx.or_else(|tx| pop(tx, 0), |tx| pop(tx, 1)),
                || engine.transact(|tx| queue.push(tx, which)).unwrap(),
            );
            assert_eq!(either, which);
        }
        // Twice each: what the first one had written was undone where the second one ran.
        assert_eq!(engine.transact(|tx| tried.get(tx)).unwrap(), 2 + 4);
        // Through savepoints, and out of nested alternatives.
        let nested = woken(
            &engine,
            |tx| {
                tried.set(tx, 100)?;
                let popped = tx.or_else(
                    |tx| tx.savepoint(|tx| tx.or_else(|tx| pop(tx, 0), |tx| pop(tx, 1)))?,
                    |tx| tx.retry(),
                )?;
                tried.get(tx).map(|tried| (popped, tried))
            },
            || engine.transact(|tx| queues[1].push(tx, 5)).unwrap(),
        );
        assert_eq!(nested, (5, 102));
    });
}

#[test]
fn nothing_is_held_while_a_transaction_waits_and_what_it_has_written_is_undone() {
    for_each_protocol!(2, |P| {
        let engine = engine::<P>();
        let (flag, other) = (TBox::new(&engine, false), TBox::new(&engine, 0u64));
        let table = Database::on(&engine).table::<u64, u64>("rows").hash(4).create().unwrap();
        let runs = AtomicU64::new(0);
        woken(
            &engine,
            |tx| {
                runs.fetch_add(1, Ordering::Relaxed);
                other.update(tx, |other| *other += 1)?;
                table.insert(tx, 1, 1)?;
                if flag.get(tx)? { Ok(()) } else { tx.retry() }
            },
            || {
                // The waiter would be in the way of all of these.
                let seen = engine.transact(|tx| Ok((other.get(tx)?, table.get(tx, &1)?))).unwrap();
                assert_eq!(seen, (0, None));
                engine.transact(|tx| flag.set(tx, true)).unwrap();
            },
        );
        let seen = engine.transact(|tx| Ok((other.get(tx)?, table.get(tx, &1)?))).unwrap();
        assert_eq!(seen, (1, Some(1)));
        assert!(runs.into_inner() >= 3, "the first run, the one that watches, and the last one");
    });
}

#[test]
fn changes_of_other_things_wake_nobody() {
    for_each_protocol!(2, |P| {
        let engine = engine::<P>();
        let (flag, others) = (TBox::new(&engine, false), hotrow::TArray::new(&engine, 64, |_| 0u64));
        woken(
            &engine,
            |tx| if flag.get(tx)? { Ok(()) } else { tx.retry() },
            || {
                for at in 0..64 {
                    engine.transact(|tx| others.update(tx, at, |other| *other += 1)).unwrap();
                }
                engine.transact(|tx| flag.set(tx, true)).unwrap();
            },
        );
        let statistics = engine.statistics();
        assert_eq!((statistics.waits, statistics.woken_in_vain), (1, 0));
    });
}

#[test]
fn a_wait_ends_with_the_policys_deadline_or_the_bodys_own_limit() {
    for_each_protocol!(2, |P| {
        let short = Duration::from_millis(20);
        let own = engine::<P>();
        let policy = engine_with::<P>(RetryPolicy { deadline: Some(short), ..RetryPolicy::default() });
        for (engine, has_own) in [(&own, true), (&policy, false)] {
            let flag = TBox::new(engine, false);
            let began = clock::now();
            let ended = engine.transact(|tx| match (flag.get(tx)?, has_own) {
                (true, _) => Ok(()),
                (false, true) => tx.or_else(|tx| tx.retry(), |tx| tx.retry_for(short)),
                (false, false) => tx.retry(),
            });
            let Err(Error::RetryTimeout { waited }) = &ended else { panic!("{ended:?}") };
            assert!(*waited >= short && began.elapsed() >= short);
            assert!(ended.unwrap_err().is_retryable());
            // The limit was that transaction's.
            let waits = engine.statistics().waits;
            if has_own {
                woken(
                    engine,
                    |tx| if flag.get(tx)? { Ok(()) } else { tx.retry() },
                    || {
                        thread::sleep(2 * short);
                        engine.transact(|tx| flag.set(tx, true)).unwrap();
                    },
                );
                assert_eq!(engine.statistics().waits, waits + 1);
            }
        }
    });
}

#[test]
fn a_limit_of_one_alternative_ends_with_it() {
    for_each_protocol!(2, |P| {
        let engine = engine::<P>();
        let (first, second) = (TBox::new(&engine, 0u64), TBox::new(&engine, 0u64));
        let short = Duration::from_millis(1);
        let wait = |tx: &mut Transaction<'_, P>| {
            tx.or_else(
                |tx| match first.get(tx)? {
                    0 => tx.retry_for(short),
                    first => Ok(first),
                },
                |tx| match second.get(tx)? {
                    0 => tx.retry(),
                    second => Ok(second),
                },
            )
        };
        for changed in [&first, &second] {
            let found = woken(&engine, wait, || {
                thread::sleep(20 * short);
                engine.transact(|tx| changed.set(tx, 5)).unwrap();
            });
            assert_eq!(found, 5);
            engine.transact(|tx| changed.set(tx, 0)).unwrap();
        }
    });
}

#[test]
fn the_presence_on_which_a_change_at_the_commit_depends_is_waited_for() {
    for_each_protocol!(2, |P| {
        let engine = engine::<P>();
        let db = Database::on(&engine);
        let hashed = db.table::<u64, Stock>("hashed").hash(4).create().unwrap();
        let ordered = db.table::<u64, Stock>("ordered").ordered().create().unwrap();
        for stocks in [&hashed, &ordered] {
            let put = |key| engine.transact(|tx| stocks.insert(tx, key, Stock { left: 2 })).unwrap();
            let delete = |key| {
                engine.transact(|tx| stocks.delete(tx, &key).map(drop)).unwrap();
            };
            put(1);
            woken(
                &engine,
                |tx| {
                    if stocks.add_if_present(tx, &1, column_of!(Stock, left), 1)? {
                        tx.retry()
                    } else {
                        Ok(())
                    }
                },
                || delete(1),
            );
            woken(
                &engine,
                |tx| match stocks.apply_if_present(tx, &1, |row| row.left += 1)? {
                    true => Ok(()),
                    false => tx.retry(),
                },
                || put(1),
            );
            woken(
                &engine,
                |tx| match stocks.apply_if_present(tx, &1, |row| row.left += 1)? {
                    true => tx.retry(),
                    false => Ok(()),
                },
                || delete(1),
            );
            put(1);
            woken(
                &engine,
                |tx| match stocks.replace_if_present(tx, &1, Stock { left: 9 })? {
                    true => tx.retry(),
                    false => Ok(()),
                },
                || delete(1),
            );
        }
    });
}

#[test]
fn an_insertion_waits_for_its_key_to_be_taken_and_a_refused_one_for_it_to_be_free() {
    for_each_protocol!(2, |P| {
        let engine = engine::<P>();
        let db = Database::on(&engine);
        let hashed = db.table::<u64, u64>("hashed").hash(4).create().unwrap();
        let ordered = db.table::<u64, u64>("ordered").ordered().create().unwrap();
        for table in [&hashed, &ordered] {
            woken(
                &engine,
                |tx| if table.insert_if_absent(tx, 5, 1)? { tx.retry() } else { Ok(()) },
                || engine.transact(|tx| table.insert(tx, 5, 2)).unwrap(),
            );
            woken(
                &engine,
                |tx| if table.insert_if_absent(tx, 5, 1)? { Ok(()) } else { tx.retry() },
                || engine.transact(|tx| table.delete(tx, &5).map(drop)).unwrap(),
            );
            assert_eq!(engine.transact(|tx| table.get(tx, &5)), Ok(Some(1)));
        }
        let (map, set) = (THashMap::new(&engine), TListSet::new(&engine));
        woken(
            &engine,
            |tx| if map.insert_if_absent(tx, 5u64, 1u64)? { tx.retry() } else { Ok(()) },
            || engine.transact(|tx| map.insert(tx, 5, 2).map(drop)).unwrap(),
        );
        woken(
            &engine,
            |tx| if set.insert(tx, 5u64)? { tx.retry() } else { Ok(()) },
            || engine.transact(|tx| set.insert(tx, 5).map(drop)).unwrap(),
        );
        let mut builder = db.table::<u64, u64>("users");
        let _by_number = builder.unique("by_number", |_, number| *number);
        let users = builder.hash(4).create().unwrap();
        woken(
            &engine,
            |tx| match tx.savepoint(|tx| users.insert(tx, 1, 7))? {
                Ok(()) => tx.retry(),
                Err(_) => Ok(()),
            },
            || engine.transact(|tx| users.insert(tx, 2, 7)).unwrap(),
        );
        woken(
            &engine,
            |tx| tx.or_else(|tx| users.insert(tx, 1, 7), |tx| tx.retry()),
            || engine.transact(|tx| users.delete(tx, &2).map(drop)).unwrap(),
        );
        assert_eq!(engine.transact(|tx| users.get(tx, &1)), Ok(Some(7)));
    });
}

#[test]
fn insertions_of_those_that_wait_do_not_wake_one_another() {
    for_each_protocol!(3, |P| {
        let engine = engine::<P>();
        let table = Database::on(&engine).table::<u64, u64>("rows").ordered().create().unwrap();
        let flag = TBox::new(&engine, false);
        let wait = |key| {
            engine.transact(|tx| match (table.insert_if_absent(tx, key, 1)?, flag.get(tx)?) {
                (_, true) => Ok(()),
                (_, false) => tx.retry(),
            })
        };
        thread::scope(|scope| {
            let waiters: Vec<_> = [1, 2].map(|key| scope.spawn(move || wait(key))).into();
            while engine.statistics().waits < 2 {
                thread::yield_now();
            }
            // Each has run twice. Runs that woke one another would go on for ever.
            let parked = || engine.statistics().waits;
            let mut seen = parked();
            while {
                thread::sleep(Duration::from_millis(5));
                std::mem::replace(&mut seen, parked()) != parked()
            } {
                assert!(seen < 100, "they wake one another");
            }
            engine.transact(|tx| flag.set(tx, true)).unwrap();
            waiters.into_iter().for_each(|waiter| waiter.join().unwrap().unwrap());
        });
    });
}

#[test]
fn a_thread_that_ends_without_taking_what_it_was_woken_for_wakes_another() {
    for_each_protocol!(5, |P| {
        let engine = engine::<P>();
        let queue = TQueue::<u64, P>::new(&engine);
        let take = |quits: bool| {
            engine.transact(|tx| match queue.pop(tx)? {
                None => tx.retry(),
                Some(_) if quits => Err(Abort::rollback()),
                Some(element) => Ok(element),
            })
        };
        let take = &take;
        let taken: Vec<u64> = thread::scope(|scope| {
            let quitters: Vec<_> = (0..2).map(|_| scope.spawn(move || take(true).unwrap_err())).collect();
            while engine.statistics().waits < 2 {
                thread::yield_now();
            }
            let takers: Vec<_> = (0..2).map(|_| scope.spawn(move || take(false).unwrap())).collect();
            while engine.statistics().waits < 4 {
                thread::yield_now();
            }
            // One commit, for four that wait.
            engine.transact(|tx| queue.push(tx, 1).and_then(|()| queue.push(tx, 2))).unwrap();
            quitters.into_iter().for_each(|quitter| drop(quitter.join().unwrap()));
            takers.into_iter().map(|taker| taker.join().unwrap()).collect()
        });
        assert_eq!(taken.iter().sum::<u64>(), 3);
    });
}

#[test]
fn all_that_wait_for_a_mere_change_hear_of_it() {
    for_each_protocol!(6, |P| {
        let engine = engine::<P>();
        let number = TBox::new(&engine, 0u64);
        let (engine, number) = (&engine, &number);
        thread::scope(|scope| {
            // Some for any change, some for one of their own, some only to say that they have seen it.
            for waiter in 0..5u64 {
                scope.spawn(move || {
                    let waited = engine.transact(|tx| match number.get(tx)? {
                        seen if seen < waiter => tx.retry(),
                        seen if waiter == 2 => number.set(tx, seen + 1),
                        _ => Ok(()),
                    });
                    waited.unwrap();
                });
            }
            while engine.statistics().waits < 4 {
                thread::yield_now();
            }
            for _ in 0..3 {
                engine.transact(|tx| number.update(tx, |number| *number += 1)).unwrap();
            }
        });
        assert_eq!(engine.transact(|tx| number.get(tx)), Ok(4), "three changes, and one by a waiter");
    });
}

#[test]
fn a_wait_that_nothing_can_end_is_an_error() {
    for_each_protocol!(2, |P| {
        let engine = engine::<P>();
        let nothing = engine.transact(|tx| tx.retry::<()>());
        assert_eq!(nothing, Err(Error::BlockedForever(BlockedForever::NothingRead)));
        // Another engine, of which this thread keeps no worker.
        let engine = self::engine::<P>();
        let number = TBox::new(&engine, 0u64);
        let mut worker = engine.worker().unwrap();
        drop(engine);
        let alone = worker.transact(|tx| number.get(tx).and_then(|_| tx.retry::<()>()));
        assert_eq!(alone, Err(Error::BlockedForever(BlockedForever::AllWait)));
    });
    let engine = Engine::<Any>::named("none", RetryPolicy::default()).unwrap();
    let number = TBox::new(&engine, 0u64);
    let only = engine.transact(|tx| number.get(tx).and_then(|_| tx.retry::<()>()));
    assert_eq!(only, Err(Error::BlockedForever(BlockedForever::OnlyWorker)));
}

#[test]
fn a_transaction_with_one_attempt_cannot_wait() {
    for_each_protocol!(2, |P| {
        let engine = engine::<P>();
        let number = TBox::new(&engine, 7u64);
        let refused = Err(Error::Misuse(Misuse::CannotWait));
        let mut session = engine.begin(SessionOptions::default()).unwrap();
        let kept = session.run(|tx| tx.or_else(|tx| tx.retry(), |tx| number.get(tx)));
        assert_eq!(kept, Ok(7), "the second alternative is a statement like others");
        assert_eq!(session.run(|tx| number.get(tx).and_then(|_| tx.retry::<u64>())), refused);
        assert!(!session.is_open());
        let mut worker = engine.worker().unwrap();
        let mut stepped = worker.begin();
        assert!(stepped.retry::<()>().is_err());
        assert_eq!(stepped.commit(), Err(Error::Misuse(Misuse::CannotWait)));
        let snapshot =
            worker.try_transact_as(Profile { isolation: Isolation::Snapshot, ..Profile::READ_ONLY }, |tx| {
                number.get(tx)?;
                tx.retry::<u64>()
            });
        assert_eq!(snapshot, refused);
    });
}

#[test]
fn a_body_that_keeps_the_abort_to_itself_waits_all_the_same() {
    for_each_protocol!(2, |P| {
        let engine = engine::<P>();
        let number = TBox::new(&engine, 0u64);
        let read = woken(
            &engine,
            |tx| {
                let read = number.get(tx)?;
                if read == 0 {
                    let _ = tx.retry::<()>();
                }
                Ok(read)
            },
            || engine.transact(|tx| number.set(tx, 1)).unwrap(),
        );
        assert_eq!(read, 1);
    });
}

#[test]
fn a_panic_after_a_wait_leaves_nobody_behind_who_watches() {
    for_each_protocol!(2, |P| {
        let engine = engine::<P>();
        let number = TBox::new(&engine, 0u64);
        let mut worker = engine.worker().unwrap();
        thread::scope(|scope| {
            scope.spawn(|| {
                while engine.statistics().waits == 0 {
                    thread::yield_now();
                }
                engine.transact(|tx| number.set(tx, 1)).unwrap();
            });
            let message = panic_of(|| {
                worker.transact(|tx| match number.get(tx)? {
                    0 => tx.retry::<()>(),
                    _ => panic!("planned"),
                })
            });
            assert_eq!(message, "planned");
        });
        worker.transact(|tx| number.update(tx, |number| *number += 1)).unwrap();
        assert_eq!(engine.transact(|tx| number.get(tx)).unwrap(), 2);
        assert!(format!("{:?}", engine.watched_nodes()).contains("watchers: 0"));
    });
}

#[test]
fn producers_and_consumers_of_a_bounded_buffer_pass_each_element_on_once() {
    const EACH: u64 = 300;
    for_each_protocol!(5, |P| {
        let engine = engine::<P>();
        let (buffer, free) = (TQueue::new(&engine), TCounter::new(&engine, 3));
        let taken = thread::scope(|scope| {
            for producer in 0..2 {
                let (engine, buffer, free) = (&engine, &buffer, &free);
                scope.spawn(move || {
                    for number in 0..EACH {
                        let put = engine.transact(|tx| {
                            if !free.is_at_least(tx, 1)? {
                                return tx.retry();
                            }
                            free.add(tx, -1)?;
                            buffer.push(tx, producer * EACH + number)
                        });
                        put.unwrap();
                    }
                });
            }
            let consumers: Vec<_> = (0..2)
                .map(|_| {
                    let (engine, buffer, free) = (&engine, &buffer, &free);
                    scope.spawn(move || {
                        let take = || {
                            engine.transact(|tx| {
                                free.add(tx, 1)?;
                                match buffer.pop(tx)? {
                                    None => tx.retry(),
                                    Some(number) => Ok(number),
                                }
                            })
                        };
                        (0..EACH).map(|_| take().unwrap()).collect::<Vec<_>>()
                    })
                })
                .collect();
            consumers.into_iter().flat_map(|consumer| consumer.join().unwrap()).collect::<Vec<_>>()
        });
        let mut taken = taken;
        taken.sort_unstable();
        assert_eq!(taken, (0..2 * EACH).collect::<Vec<_>>());
        assert_eq!(engine.transact(|tx| free.get(tx)).unwrap(), 3);
    });
}

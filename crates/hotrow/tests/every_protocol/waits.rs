//! Where transactions may have to wait for each other: deadlines, wounds, panics, threads that end, and very many
//! workers. Under a protocol in which nobody waits, the same must hold.

use crate::support;
use crate::support::{
    elsewhere, for_each_concurrent_protocol, for_each_protocol, impatient, on_threads, steps,
};
use hotrow::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use hotrow::sync::random::Random;
use hotrow::sync::thread;
use hotrow::{
    Abort, Any, Conflict, Database, Engine, Error, Misuse, Protocol, Reason, RetryPolicy, TArray, TBox,
    Transaction,
};
use std::time::Duration;

/// Checks the report on an attempt that lost over row 7: the row, and a reason that has to do with it.
fn lost_over_row_7(conflict: &Conflict) {
    let key = if crate::support::is_concurrent() { "7" } else { "all keys" };
    assert_eq!((conflict.object.as_str(), conflict.key.as_str()), ("rows", key));
    assert!(!matches!(conflict.reason, Reason::StructureChanged | Reason::PredicateFailed), "{conflict}");
}

#[test]
fn a_wait_ends_with_the_deadline_and_the_error_names_what_was_waited_for() {
    for_each_protocol!(2, |P| {
        let engine = impatient::<P>();
        let table = Database::on(&engine).table::<u64, u64>("rows").hash(10).create().unwrap();
        table.bulk_insert((0..10).map(|key| (key, 0))).unwrap();
        let mut worker = engine.worker().unwrap();
        for changes in [false, true] {
            let mut holder = worker.begin();
            if changes {
                table.update_if_present(&mut holder, &7, |row| *row += 1).unwrap();
            } else {
                table.get(&mut holder, &7).unwrap();
            }
            let younger = elsewhere(|| {
                engine.transact(|tx| {
                    table.get(tx, &3)?;
                    table.update_if_present(tx, &7, |row| *row += 10).map(drop)
                })
            });
            match &younger {
                Ok(()) => {}
                Err(Error::Timeout(conflict)) => lost_over_row_7(conflict),
                Err(Error::Conflict(conflict)) if support::chosen() != "wound-wait" => {
                    lost_over_row_7(conflict)
                }
                Err(error) => panic!("{error}"),
            }
            let ended = holder.commit();
            assert!(ended.is_ok() || younger.is_ok(), "both lost: {ended:?}, {younger:?}");
            // The row is neither held nor waited for by the loser.
            engine.transact(|tx| table.update_if_present(tx, &7, |row| *row = 0)).unwrap();
        }
    });
}

#[test]
fn an_older_transaction_that_meets_a_younger_one_waits_wounds_it_or_loses_over_that_key() {
    for_each_concurrent_protocol!(2, |P| {
        for (older_changes, younger_changes) in [(true, true), (true, false), (false, true)] {
            let policy = RetryPolicy { deadline: Some(Duration::ZERO), ..RetryPolicy::default() };
            let engine = support::engine_with::<P>(policy);
            let table = Database::on(&engine).table::<u64, u64>("rows").hash(10).create().unwrap();
            table.bulk_insert((0..10).map(|key| (key, 0))).unwrap();
            let touch = |tx: &mut Transaction<'_, P>, changes: bool| match changes {
                true => table.update_if_present(tx, &7, |row| *row += 1).map(drop),
                false => table.get(tx, &7).map(drop),
            };
            let (mut first, mut second) = (engine.worker().unwrap(), engine.worker().unwrap());
            let mut older = first.begin();
            table.get(&mut older, &1).unwrap();
            let mut younger = second.begin();
            table.get(&mut younger, &2).unwrap();
            touch(&mut younger, younger_changes).unwrap();
            table.get(&mut younger, &3).unwrap();
            let met = touch(&mut older, older_changes);
            let older = if met.is_ok() { older.commit() } else { older.roll_back() };
            let again = touch(&mut younger, true);
            let younger = if again.is_ok() { younger.commit() } else { younger.roll_back() };
            for lost in [&older, &younger].into_iter().filter_map(|ended| ended.as_ref().err()) {
                let Error::Conflict(conflict) = lost else { panic!("{lost}") };
                lost_over_row_7(conflict);
            }
            match support::chosen().as_str() {
                "wound-wait" => {
                    let Err(Error::Conflict(conflict)) = younger else { panic!("{younger:?}") };
                    assert_eq!((older, conflict.reason), (Ok(()), Reason::Wounded));
                }
                // It waited until its deadline, which had passed.
                "wait-die" | "no-wait" => assert!(older.is_err() && younger.is_ok()),
                _ => {}
            }
        }
    });
}

/// Runs a transaction that gives up, in a way of its own, while another one wants what it has changed; the other one
/// must get it, and as it was.
fn hand_over<P: Protocol>(gives_up: impl Fn() -> Result<(), Abort> + Sync) {
    let engine = support::engine::<P>();
    let rows = TArray::new(&engine, 3, |_| 0u64);
    for round in 0..60u64 {
        let older_waits = round % 2 == 0;
        let (holds, wants) = (AtomicBool::new(false), AtomicBool::new(false));
        let until = |flag: &AtomicBool| {
            while !flag.load(Ordering::Acquire) {
                thread::yield_now();
            }
        };
        thread::scope(|scope| {
            let start_holder = || {
                scope.spawn(|| {
                    // The worker goes with its thread.
                    engine.transact(|tx| {
                        rows.get(tx, 0)?;
                        rows.update(tx, 1, |row| *row += 1_000)?;
                        rows.update(tx, 2, |row| *row += 1_000)?;
                        if tx.attempt_number() == 0 {
                            holds.store(true, Ordering::Release);
                            until(&wants);
                        }
                        gives_up()
                    })
                })
            };
            let before = (!older_waits).then(|| {
                let holder = start_holder();
                until(&holds);
                holder
            });
            let mut after = None;
            let seen = engine.transact(|tx| {
                rows.get(tx, 0)?;
                if older_waits && after.is_none() {
                    after = Some(start_holder());
                    until(&holds);
                }
                wants.store(true, Ordering::Release);
                rows.update(tx, 1, |row| *row += 1)?;
                rows.update(tx, 2, |row| {
                    *row += 1;
                    *row
                })
            });
            assert_eq!(seen, Ok(round + 1));
            let ended = before.or(after).unwrap().join();
            assert!(!matches!(ended, Ok(Ok(()))), "it gave up");
        });
        assert_eq!(
            engine.transact(|tx| Ok((rows.get(tx, 1)?, rows.get(tx, 2)?))),
            Ok((round + 1, round + 1))
        );
    }
}

#[test]
fn a_waiter_gets_the_locks_of_a_transaction_that_rolls_back() {
    for_each_concurrent_protocol!(2, |P| { hand_over::<P>(|| Err(Abort::rollback())) });
}

#[test]
fn a_waiter_gets_the_locks_of_a_thread_that_dies_in_a_transaction() {
    for_each_concurrent_protocol!(2, |P| {
        hand_over::<P>(|| std::panic::resume_unwind(Box::new("the thread dies")));
    });
}

/// Under a protocol that runs one transaction at a time, too, a transaction that gives up keeps nobody from the rest.
#[test]
fn transactions_that_give_up_in_turn_with_others_hold_nobody_off() {
    for_each_protocol!(4, |P| {
        let engine = support::engine::<P>();
        let rows = TArray::new(&engine, 2, |_| 0u64);
        on_threads(&engine, 4, |number, worker| {
            for round in 0..200 {
                let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                    worker.transact(|tx| {
                        rows.update(tx, 0, |row| *row += 1)?;
                        rows.update(tx, 1, |row| *row += 1)?;
                        match (number + round) % 4 {
                            0 => Err(Abort::rollback()),
                            1 => std::panic::resume_unwind(Box::new("it gives up")),
                            _ => Ok(()),
                        }
                    })
                }));
                assert_eq!(matches!(ended, Ok(Ok(()))), (number + round) % 4 > 1);
            }
        });
        assert_eq!(engine.transact(|tx| Ok((rows.get(tx, 0)?, rows.get(tx, 1)?))), Ok((400, 400)));
    });
}

#[test]
fn a_thread_that_would_wait_for_itself_gets_an_error_where_one_transaction_runs_at_a_time() {
    let engine = Engine::<Any>::named("serial", RetryPolicy::default()).unwrap();
    let number = TBox::new(&engine, 0u64);
    let (mut first, mut second) = (engine.worker().unwrap(), engine.worker().unwrap());
    let mut outer = first.begin();
    number.set(&mut outer, 1).unwrap();
    let mut inner = second.begin();
    assert!(number.get(&mut inner).is_err());
    assert_eq!(inner.commit(), Err(Error::Misuse(Misuse::Nested)));
    assert_eq!(engine.transact(|tx| number.get(tx)), Err(Error::Misuse(Misuse::Nested)));
    outer.commit().unwrap();
    assert_eq!(engine.transact(|tx| number.get(tx)), Ok(1));
}

/// More than there are bits in any word.
const VERY_MANY: u64 = 72;

#[test]
fn very_many_workers_on_a_few_rows_are_strictly_serializable() {
    for_each_protocol!(VERY_MANY as u32 + 1, |P| {
        let engine = support::engine::<P>();
        let table = Database::on(&engine).table::<u64, u64>("rows").hash(3).create().unwrap();
        table.bulk_insert((0..3).map(|key| (key, 0))).unwrap();
        let recording = engine.record_history(1 << 26).unwrap();
        let there = AtomicU64::new(0);
        let added: Vec<u64> = on_threads(&engine, VERY_MANY, |number, worker| {
            there.fetch_add(1, Ordering::AcqRel);
            while there.load(Ordering::Acquire) < VERY_MANY {
                thread::yield_now();
            }
            let mut random = Random::stream(31, number);
            let mut added = 0;
            for _ in 0..24 {
                let keys = [(); 4].map(|()| random.below(3));
                let (yields, fails) = (random.chance(0.3), random.chance(0.1));
                let result = worker.transact(|tx| {
                    table.get(tx, &keys[0])?;
                    table.get(tx, &keys[1])?;
                    if yields {
                        thread::yield_now();
                    }
                    table.update_if_present(tx, &keys[2], |row| *row += 1)?;
                    table.get(tx, &keys[3])?;
                    if fails { Err(Abort::rollback()) } else { Ok(()) }
                });
                added += u64::from(result.is_ok());
            }
            added
        });
        let history = recording.finish();
        let sum = engine
            .transact(|tx| (0..3).map(|key| Ok(table.get(tx, &key)?.unwrap())).sum::<Result<u64, Abort>>());
        assert_eq!(sum, Ok(added.into_iter().sum()));
        steps::judge(&history);
    });
}

//! Errors: one for each failure, of the right kind, and with names in it.

use crate::support;
use crate::support::{attempts, elsewhere, for_each_protocol, impatient, overtake, whatever_time_it_takes};
use hotrow::{
    Abort, Database, Direction, Engine, Error, Misuse, Protocol, Reason, RetryPolicy, TArray, TBox, TCounter,
    Table, Transaction,
};
use std::time::Duration;

#[test]
fn a_transaction_inside_another_one_is_refused_and_the_outer_one_goes_on() {
    for_each_protocol!(1, |P| {
        let (engine, other) = (support::engine::<P>(), support::engine::<P>());
        let (number, others) = (TBox::new(&engine, 0), TBox::new(&other, 0));
        other.transact(|tx| others.set(tx, 1)).unwrap();
        // The second time, this thread keeps workers of both engines.
        for round in 1..=2 {
            engine
                .transact(|tx| {
                    number.set(tx, round)?;
                    assert_eq!(engine.transact(|tx| number.set(tx, 77)), Err(Error::Misuse(Misuse::Nested)));
                    assert_eq!(other.transact(|tx| others.set(tx, 77)), Err(Error::Misuse(Misuse::Nested)));
                    if let Ok(mut worker) = other.worker() {
                        let nested = worker.transact(|tx| others.set(tx, 77));
                        assert_eq!(nested, Err(Error::Misuse(Misuse::Nested)));
                    }
                    Ok(())
                })
                .unwrap();
            assert_eq!(engine.transact(|tx| number.get(tx)), Ok(round));
            assert_eq!(other.transact(|tx| others.get(tx)), Ok(1));
        }
    });
}

#[test]
fn an_object_of_another_engine_is_refused_by_name() {
    for_each_protocol!(1, |P| {
        let (engine, other) = (support::engine::<P>(), support::engine::<P>());
        let own = TBox::new(&engine, 0);
        let array = TArray::named(&other, "slots", 3, |_| 0u64);
        let kept = TBox::named(&other, "flag", false);
        let counter = TCounter::named(&other, "hits", 0);
        let table = Database::on(&other).table::<u64, u64>("rows").create().unwrap();
        let immutable = Database::on(&other).table::<u64, u64>("prices").immutable().create().unwrap();
        let mut builder = Database::on(&other).table::<u64, u64>("people");
        let index = builder.secondary("by_age", |_, row| *row);
        type Body<'a, P> = Box<dyn Fn(&mut Transaction<'_, P>) -> Result<(), Abort> + 'a>;
        let uses: Vec<(&str, Body<'_, P>)> = vec![
            ("slots", Box::new(|tx| array.get(tx, 0).map(drop))),
            ("slots", Box::new(|tx| array.set(tx, 0, 1))),
            ("flag", Box::new(|tx| kept.update(tx, |_| ()))),
            ("hits", Box::new(|tx| counter.add(tx, 1))),
            ("hits", Box::new(|tx| counter.is_at_least(tx, 0).map(drop))),
            ("hits", Box::new(|tx| counter.get(tx).map(drop))),
            ("rows", Box::new(|tx| table.get(tx, &1).map(drop))),
            ("rows", Box::new(|tx| table.insert_if_absent(tx, 1, 1).map(drop))),
            ("rows", Box::new(|tx| table.delete(tx, &1).map(drop))),
            ("rows", Box::new(|tx| table.upsert(tx, 1, 1).map(drop))),
            ("rows", Box::new(|tx| table.collect(tx, .., Direction::Ascending, 1).map(drop))),
            ("prices", Box::new(|tx| immutable.get(tx, &1).map(drop))),
            (
                "people.by_age",
                Box::new(|tx| {
                    index.scan_keys(tx, .., Direction::Ascending, |_, _| std::ops::ControlFlow::Break(()))
                }),
            ),
        ];
        for (name, operation) in uses {
            let refused = engine.transact(|tx| {
                own.set(tx, 1)?;
                operation(tx)
            });
            let misuse = Misuse::ForeignObject { object: name.to_owned() };
            assert_eq!(refused, Err(Error::Misuse(misuse.clone())));
            // Nor can a body that goes on all the same commit.
            let swallowed = engine.transact(|tx| {
                own.set(tx, 1)?;
                assert!(operation(tx).is_err());
                assert!(own.get(tx).is_err(), "every further operation is refused");
                Ok(())
            });
            assert_eq!(swallowed, Err(Error::Misuse(misuse)));
        }
        assert_eq!(engine.transact(|tx| own.get(tx)), Ok(0));
    });
}

#[test]
fn as_many_workers_as_a_protocol_admits_and_no_more() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let workers_max = engine.workers_max();
        if workers_max <= 64 {
            let workers: Vec<_> = (0..workers_max).map(|_| engine.worker().unwrap()).collect();
            let misuse = Misuse::TooManyWorkers { protocol: support::chosen(), workers_max };
            assert_eq!(engine.worker().err(), Some(misuse.clone()));
            assert_eq!(engine.transact(|_| Ok(())), Err(Error::Misuse(misuse)));
            drop(workers);
        }
        let numbers: Vec<_> = (0..100).map(|_| engine.worker().unwrap().id().number()).collect();
        assert!(numbers.iter().all(|number| *number < workers_max));
        assert!(numbers.windows(2).all(|pair| pair[0] == pair[1]), "a number is given to the next worker");
        assert_eq!(engine.transact(|_| Ok(1)), Ok(1));
    });
}

#[test]
fn the_workers_that_a_thread_keeps_are_given_back_when_it_ends_or_uses_many_engines() {
    for_each_protocol!(1, |P| {
        let engines: Vec<_> = (0..30).map(|_| support::engine::<P>()).collect();
        for _ in 0..3 {
            for engine in &engines {
                let engine = engine.clone();
                hotrow::sync::thread::spawn(move || engine.transact(|_| Ok(())).unwrap()).join().unwrap();
                hotrow::sync::thread::spawn(|| ()).join().unwrap();
            }
        }
        // More engines than a thread keeps workers for.
        for round in 0..3 {
            for engine in &engines {
                assert_eq!(engine.transact(|_| Ok(round)), Ok(round));
            }
        }
        assert!(engines.iter().all(|engine| engine.statistics().commits == 6));
    });
}

#[derive(Debug, PartialEq, Eq)]
enum Refusal {
    TooLittle { missing: u64 },
    Aborted(Abort),
}

impl From<Abort> for Refusal {
    fn from(abort: Abort) -> Self {
        Refusal::Aborted(abort)
    }
}

#[test]
fn a_users_own_error_comes_back_unchanged_and_rolls_back() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let balance = TBox::new(&engine, 10u64);
        let withdraw = |amount: u64| {
            engine.try_transact(|tx| {
                let rest = balance.update(tx, |balance| {
                    let old = *balance;
                    *balance = old.wrapping_sub(amount);
                    old.checked_sub(amount)
                })?;
                rest.ok_or_else(|| Refusal::TooLittle { missing: amount - 10 })
            })
        };
        assert_eq!(withdraw(15), Err(Error::Rollback(Refusal::TooLittle { missing: 5 })));
        assert_eq!(engine.transact(|tx| balance.get(tx)), Ok(10));
        let asked = engine.try_transact(|_| Err::<(), _>(Refusal::from(Abort::rollback())));
        assert_eq!(asked, Err(Error::Rollback(Refusal::Aborted(Abort::rollback()))));
        assert!(!asked.unwrap_err().is_retryable());
        assert_eq!(engine.statistics().rollbacks, 2);
        assert_eq!(withdraw(10), Ok(0));
    });
}

#[test]
fn a_users_own_error_after_a_lost_conflict_is_a_retry() {
    for_each_protocol!(2, |P| {
        let engine = impatient::<P>();
        let number = TBox::new(&engine, 0u64);
        let mut seen = Vec::new();
        let result = whatever_time_it_takes(|| {
            engine.try_transact(|tx| {
                if tx.attempt_number() == 0 {
                    seen.clear();
                }
                let first = number.get(tx)?;
                if tx.attempt_number() == 0 && !overtake(&engine, |tx| number.set(tx, 1)) {
                    return Ok::<_, Refusal>(first);
                }
                // Some protocols find out here that the attempt has lost, others when it ends.
                match number.get(tx) {
                    Ok(second) if second == first => Ok(second),
                    lost => {
                        seen.push(lost);
                        Err(Refusal::TooLittle { missing: 99 })
                    }
                }
            })
        });
        assert!(matches!(result, Ok(0 | 1)), "{result:?}");
        assert_eq!(
            seen.len() as u64,
            result.unwrap(),
            "the first attempt's error was for the engine to handle"
        );
    });
}

#[test]
fn a_read_and_a_later_update_of_the_same_attempt_see_one_state() {
    for_each_protocol!(2, |P| {
        let engine = impatient::<P>();
        let number = TBox::new(&engine, 0u64);
        let result = whatever_time_it_takes(|| {
            engine.transact(|tx| {
                let first = number.get(tx)?;
                let overtaken = tx.attempt_number() == 0 && overtake(&engine, |tx| number.set(tx, 1));
                let second = number.update(tx, |number| std::mem::replace(number, 7))?;
                assert_eq!(first, second, "overtaken: {overtaken}");
                Ok(second)
            })
        });
        assert!(matches!(result, Ok(0 | 1)), "{result:?}");
    });
}

#[test]
fn a_result_that_is_thrown_away_is_dropped_when_nothing_is_locked_any_more() {
    /// A result that asks when it is dropped whether another thread can read what its transaction has changed.
    struct Probe<'a>(&'a dyn Fn());
    impl Drop for Probe<'_> {
        fn drop(&mut self) {
            (self.0)();
        }
    }

    for_each_protocol!(2, |P| {
        let engine = impatient::<P>();
        let (read, changed) = (TBox::new(&engine, 0u64), TBox::new(&engine, 0u64));
        let ask = || assert!(elsewhere(|| engine.transact(|tx| changed.get(tx))).is_ok(), "it is locked");
        let result = whatever_time_it_takes(|| {
            engine.transact(|tx| {
                read.get(tx)?;
                if tx.attempt_number() == 0 {
                    overtake(&engine, |tx| read.set(tx, 1));
                }
                changed.update(tx, |number| *number += 1)?;
                Ok(Probe(&ask))
            })
        });
        assert!(result.is_ok());
    });
}

#[test]
fn an_attempt_that_swallows_its_abort_cannot_commit() {
    for_each_protocol!(2, |P| {
        let engine = impatient::<P>();
        let (number, written) = (TBox::new(&engine, 0u64), TBox::new(&engine, 0u64));
        let result = whatever_time_it_takes(|| {
            engine.transact(|tx| {
                let first = number.get(tx)?;
                if tx.attempt_number() > 0 || !overtake(&engine, |tx| number.set(tx, 1)) {
                    return Ok(first);
                }
                if let Ok(second) = number.get(tx) {
                    // A protocol that shows the value as it was would be right, too.
                    assert_eq!(second, first);
                } else {
                    assert!(written.get(tx).is_err() && number.set(tx, 5).is_err());
                }
                let _ = written.set(tx, 7);
                Ok(100)
            })
        });
        assert_ne!(result, Ok(100), "it had read what was no longer true");
        assert_eq!(engine.transact(|tx| written.get(tx)), Ok(0));
    });
}

/// Runs a transaction that is overtaken in each of its attempts, and returns what it says in the end; `None` if the
/// other one was held off.
fn always_overtaken<P: Protocol>(
    policy: RetryPolicy,
    object: impl Fn(&Engine<P>) -> (Body<P>, Body<P>),
) -> Option<Error> {
    // A protocol that holds the other one off would do so until the policy's time is used up.
    let impatient = impatient();
    let (body, other) = object(&impatient);
    attempts(&impatient, body, other)?;
    let engine = support::engine_with(policy);
    let (body, other) = object(&engine);
    let result = engine.transact(|tx| {
        body(tx)?;
        Ok(overtake(&engine, &other))
    });
    match result {
        Ok(overtaken) => {
            assert!(!overtaken, "a lost update");
            None
        }
        Err(error) => Some(error),
    }
}

/// Longer than so many attempts take on a busy machine. It ends the waits of a protocol that holds the other
/// transaction off in some attempts only.
const LONG: Duration = Duration::from_secs(3);

type Body<P> = Box<dyn Fn(&mut Transaction<'_, P>) -> Result<(), Abort> + Sync>;

#[test]
fn when_attempts_are_used_up_the_conflict_names_object_and_key() {
    for_each_protocol!(2, |P| {
        for attempts_max in [1, 3, 30] {
            // Its body waits for another transaction in each attempt, which would be held back for it.
            let escalate_after = u32::MAX;
            let policy =
                RetryPolicy { attempts_max, deadline: Some(LONG), escalate_after, ..RetryPolicy::default() };
            let error = always_overtaken::<P>(policy, |engine| {
                let table = Database::on(engine).table::<(u8, u32), u64>("stock").hash(10).create().unwrap();
                table.bulk_insert([((7, 1_234), 0)]).unwrap();
                let other = table.clone();
                let change = |table: Table<(u8, u32), u64, P>| -> Body<P> {
                    Box::new(move |tx| table.update_if_present(tx, &(7, 1_234), |row| *row += 1).map(drop))
                };
                (change(table), change(other))
            });
            let Some(error) = error else { continue };
            assert!(error.is_retryable());
            let Error::Conflict(conflict) = error else { panic!("{error:?}") };
            assert_eq!((conflict.object.as_str(), conflict.key.as_str()), ("stock", "(7, 1234)"));
            assert_eq!(conflict.attempts, attempts_max);
            let text = conflict.to_string();
            assert!(text.contains("stock[(7, 1234)]"), "{text}");
        }
    });
}

#[test]
fn a_conflict_over_a_range_names_the_table() {
    for_each_protocol!(2, |P| {
        let policy = RetryPolicy { attempts_max: 2, deadline: Some(LONG), ..RetryPolicy::default() };
        let error = always_overtaken::<P>(policy, |engine| {
            let table = Database::on(engine).table::<u64, u64>("queue").create().unwrap();
            let (count, other) = (TBox::new(engine, 0), table.clone());
            let next = hotrow::sync::atomic::AtomicU64::new(0);
            (
                Box::new(move |tx| {
                    let rows = table.collect(tx, .., Direction::Ascending, usize::MAX)?;
                    count.set(tx, rows.len())
                }),
                Box::new(move |tx| {
                    let key = next.fetch_add(1, hotrow::sync::atomic::Ordering::Relaxed);
                    other.insert_if_absent(tx, key, 0).map(drop)
                }),
            )
        });
        match error {
            None => (),
            Some(Error::Conflict(conflict)) => {
                assert_eq!((conflict.object.as_str(), conflict.reason), ("queue", Reason::StructureChanged));
                assert!(!conflict.key.is_empty());
            }
            Some(error) => panic!("{error}"),
        }
    });
}

#[test]
fn when_the_time_is_used_up_the_error_is_a_timeout() {
    for_each_protocol!(2, |P| {
        for deadline in [Duration::ZERO, Duration::from_millis(5)] {
            let policy = RetryPolicy { deadline: Some(deadline), ..RetryPolicy::default() };
            let error = always_overtaken::<P>(policy, |engine| {
                let number = hotrow::sync::Arc::new(TBox::named(engine, "hot", 0u64));
                let other = number.clone();
                (
                    Box::new(move |tx| number.update(tx, |number| *number += 1)),
                    Box::new(move |tx| other.update(tx, |number| *number += 1)),
                )
            });
            let Some(error) = error else { continue };
            assert!(error.is_retryable());
            let Error::Timeout(conflict) = error else { panic!("{error:?}") };
            assert_eq!((conflict.object.as_str(), conflict.key.as_str()), ("hot", "value"));
        }
    });
}

#[test]
fn conflicts_are_counted_by_reason_and_by_key() {
    for_each_protocol!(2, |P| {
        let engine = impatient::<P>();
        let builder = Database::on(&engine).table::<u64, u64>("rows");
        let table = support::loaded(builder, (0..10).map(|key| (key, 0)));
        let mut lost = [0; 10];
        let mut held_off = 0;
        for key in [3, 3, 3, 5] {
            let change =
                |tx: &mut Transaction<'_, P>| table.update_if_present(tx, &key, |row| *row += 1).map(drop);
            match attempts(&engine, change, change) {
                Some(attempts) => lost[key as usize] += attempts as u64 - 1,
                None => held_off += 1,
            }
        }
        let statistics = engine.statistics();
        let hot = engine.hot_keys(10);
        assert_eq!(statistics.reasons.iter().sum::<u64>(), statistics.aborts);
        assert_eq!(hot.iter().map(|hot| hot.conflicts).sum::<u64>(), statistics.aborts);
        assert_eq!(statistics.commits, 8 - held_off);
        assert!(statistics.to_string().starts_with(&format!("{} commits, 0 rollbacks, ", 8 - held_off)));
        // How often who is held off tries is the policy's.
        if held_off > 0 || lost[3] == 0 {
            return;
        }
        assert_eq!(statistics.aborts, lost.iter().sum::<u64>());
        // One, if the deadline has passed after each abort.
        assert!((1..=2).contains(&statistics.attempts_max));
        let named: Vec<_> =
            hot.iter().map(|hot| (hot.object.as_str(), hot.key.as_str(), hot.conflicts)).collect();
        assert_eq!(named, [("rows", "3", lost[3]), ("rows", "5", lost[5])]);
        assert_eq!(engine.hot_keys(1).len(), 1);
        assert!(hot[1].to_string().starts_with(&format!("rows[5]: {} conflicts (", lost[5])), "{}", hot[1]);
        // A worker's number, counts included, goes to the next one.
        let sum = elsewhere(|| engine.worker().unwrap().statistics().commits);
        assert!(sum <= 8);
    });
}

/// An error with a source.
#[derive(Debug, PartialEq, thiserror::Error)]
#[error("the event is sold out")]
struct SoldOut(#[source] Limit);

#[derive(Debug, PartialEq, thiserror::Error)]
#[error("there are {0} seats")]
struct Limit(u32);

fn chain(error: &dyn std::error::Error) -> Vec<String> {
    std::iter::successors(Some(error), |error| error.source()).map(ToString::to_string).collect()
}

#[test]
fn an_error_of_any_type_passes_through_a_body_and_keeps_its_sources() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let seats = TBox::new(&engine, 3u32);
        let sell = |tx: &mut Transaction<'_, P>| {
            seats.update(tx, |seats| *seats += 1)?;
            Err(SoldOut(Limit(3)))?;
            seats.get(tx)
        };
        let refused = engine.transact(sell).unwrap_err();
        assert_eq!(refused.downcast_ref(), Some(&SoldOut(Limit(3))));
        assert_eq!(refused.downcast_ref::<Limit>(), None);
        let texts = ["rolled back: the event is sold out", "there are 3 seats"];
        assert_eq!(chain(&refused), texts);
        assert!(!refused.is_retryable());
        let anyhow = anyhow::Error::from(refused);
        assert_eq!(anyhow.chain().map(ToString::to_string).collect::<Vec<_>>(), texts);
        let Error::Rollback(abort) = engine.transact(sell).unwrap_err() else { panic!("it rolls back") };
        assert_eq!(abort.downcast::<Limit>().unwrap_err().downcast(), Ok(SoldOut(Limit(3))));
        assert_eq!(engine.transact(|tx| seats.get(tx)), Ok(3));

        // Texts, boxed errors, those of a library.
        let parsed = engine.transact(|_| Ok("three".parse::<u32>()?)).unwrap_err();
        assert!(parsed.downcast_ref::<std::num::ParseIntError>().is_some(), "{parsed:?}");
        let ensure = |tx: &mut Transaction<'_, P>, least| {
            let free = seats.get(tx)?;
            tx.ensure(free >= least, "too few seats")
        };
        let text = engine.transact(|tx| ensure(tx, 4)).unwrap_err();
        assert_eq!(chain(&text), ["rolled back: too few seats"]);
        let because = anyhow::Error::from(Limit(1)).context("no seat");
        let boxed = engine.transact(|_| Err::<(), _>(because_once(&because))).unwrap_err();
        assert_eq!(chain(&boxed), ["rolled back: no seat: there are 1 seats"]);
        assert_eq!(engine.transact(|tx| ensure(tx, 3)), Ok(()));
    });
}

fn because_once(error: &anyhow::Error) -> Abort {
    Abort::because(format!("{error:#}"))
}

#[test]
fn an_error_that_a_body_catches_without_a_savepoint_keeps_nothing() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let (paid, received) = (TBox::new(&engine, 0u32), TBox::new(&engine, 0u32));
        let pay = |tx: &mut Transaction<'_, P>| {
            paid.update(tx, |paid| *paid += 1)?;
            tx.ensure(false, Limit(0))?;
            received.update(tx, |received| *received += 1)
        };
        let caught = engine.transact(|tx| {
            let _ = pay(tx);
            Ok(())
        });
        assert_eq!(caught, Err(Error::Misuse(Misuse::CaughtError)));
        assert_eq!(engine.transact(|tx| paid.get(tx)), Ok(0));
        // Behind a savepoint it is undone, and the rest commits.
        let behind = engine.transact(|tx| {
            assert!(tx.savepoint(pay)?.is_err());
            received.get(tx)
        });
        assert_eq!(behind, Ok(0));
        assert_eq!(engine.transact(|tx| paid.get(tx)), Ok(0));
        // One that was made before a savepoint is not forgiven behind it.
        let before = engine.transact(|tx| {
            let _ = pay(tx);
            tx.or_else(|_| Err(Abort::rollback()), |_| Ok(()))
        });
        assert_eq!(before, Err(Error::Misuse(Misuse::CaughtError)));
        // The next transaction of the thread, or its next attempt, is another one.
        assert_eq!(engine.transact(|tx| paid.get(tx)), Ok(0));
        let outside = Abort::rollback();
        assert!(outside.is_rollback() && outside.reason().is_none());
        assert_eq!(engine.transact(|tx| paid.get(tx)), Ok(0));
    });
}

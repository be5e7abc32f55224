//! Sessions: transactions whose statements come one at a time, from any thread.

use crate::support::{
    self, Refused, elsewhere, for_each_concurrent_protocol, for_each_protocol, overtake, steps,
};
use hotrow::sync::atomic::{AtomicBool, Ordering};
use hotrow::sync::random::Random;
use hotrow::sync::thread;
use hotrow::{
    Abort, CancelCause, Database, Engine, Error, HolderKind, KeyExists, Misuse, Profile, Protocol,
    RetryPolicy, Session, SessionOptions, TArray, TBox, TCounter, Table,
};
use std::time::Duration;

/// An error of a statement's own.
#[derive(Debug, PartialEq, thiserror::Error)]
#[error("overdrawn")]
struct Overdrawn;

fn begin<P: Protocol>(engine: &Engine<P>) -> Session<P> {
    engine.begin(SessionOptions::default()).unwrap()
}

/// An engine whose transactions wait for others for a moment only.
fn impatient<P: Protocol>() -> Engine<P> {
    support::engine_with(RetryPolicy { deadline: Some(Duration::from_millis(5)), ..RetryPolicy::default() })
}

fn can_be_sent<T: Send + 'static>(_: &T) {}

fn until(condition: impl Fn() -> bool) {
    while !condition() {
        thread::yield_now();
    }
}

/// The rows as a session of its own sees them: `none` admits no other worker.
fn committed<P: Protocol>(engine: &Engine<P>, rows: &TArray<i64, P>) -> Vec<i64> {
    let mut session = begin(engine);
    let seen = session.run(|tx| (0..3).map(|row| rows.get(tx, row)).collect()).unwrap();
    session.commit().unwrap();
    seen
}

#[test]
fn statements_build_on_each_other_and_borrow_from_their_caller() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let rows = TArray::new(&engine, 3, |_| 0i64);
        let mut session = begin(&engine);
        can_be_sent(&session);
        let mut seen = Vec::new();
        for round in 1..=3 {
            let left = session.run(|tx| {
                seen.push(rows.get(tx, 0)?);
                rows.update(tx, 0, |row| {
                    *row += round;
                    *row
                })
            });
            assert_eq!(left, Ok((1..=round).sum()));
        }
        assert_eq!(seen, [0, 1, 3]);
        session.commit().unwrap();
        assert_eq!(committed(&engine, &rows), [6, 0, 0]);
    });
}

#[test]
fn a_session_goes_from_thread_to_thread() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let rows = TArray::new(&engine, 3, |_| 10i64);
        let mut session = begin(&engine);
        session.run(|tx| rows.update(tx, 0, |row| *row -= 1)).unwrap();
        let mut session = elsewhere(|| {
            session.run(|tx| rows.update(tx, 1, |row| *row += 1)).unwrap();
            session
        });
        assert_eq!(session.run(|tx| Ok((rows.get(tx, 0)?, rows.get(tx, 1)?))), Ok((9, 11)));
        elsewhere(|| session.commit()).unwrap();
        assert_eq!(committed(&engine, &rows), [9, 11, 10]);
    });
}

#[test]
fn what_is_dropped_or_rolled_back_leaves_nothing_and_holds_nothing() {
    for_each_protocol!(1, |P| {
        let engine = impatient::<P>();
        let rows = TArray::new(&engine, 3, |_| 0i64);
        for drops in [false, true] {
            let mut session = begin(&engine);
            session.run(|tx| rows.set(tx, 0, 7)).unwrap();
            if drops {
                drop(session)
            } else {
                session.roll_back()
            }
            assert_eq!(committed(&engine, &rows), [0, 0, 0]);
        }
        assert_eq!(engine.statistics().rollbacks, 2);
    });
}

#[test]
fn an_error_of_a_statement_undoes_the_statement_only() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let rows = TArray::new(&engine, 3, |_| 1i64);
        let mut session = begin(&engine);
        session.run(|tx| rows.update(tx, 0, |row| *row += 1)).unwrap();
        let refused = session.run(|tx| {
            rows.set(tx, 0, 100)?;
            rows.set(tx, 1, 100)?;
            tx.ensure(false, Overdrawn)
        });
        assert_eq!(refused.unwrap_err().downcast_ref(), Some(&Overdrawn));
        let own = session.try_run(|tx| {
            rows.set(tx, 2, 100)?;
            Err::<(), _>(Refused::SoldOut)
        });
        assert_eq!(own, Err(Error::Rollback(Refused::SoldOut)));
        let caught = session.run(|tx| {
            rows.set(tx, 1, 50)?;
            drop(tx.ensure(false, Overdrawn));
            Ok(())
        });
        assert_eq!(caught, Err(Error::Misuse(Misuse::CaughtError)));
        assert_eq!(session.run(|tx| rows.get(tx, 0)), Ok(2));
        session.commit().unwrap();
        assert_eq!(committed(&engine, &rows), [2, 1, 1]);
    });
}

#[test]
fn a_panic_ends_the_transaction_and_is_passed_on() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let rows = TArray::new(&engine, 3, |_| 0i64);
        let mut session = begin(&engine);
        session.run(|tx| rows.set(tx, 0, 1)).unwrap();
        let message = support::panic_of(|| {
            session.run(|tx| {
                rows.set(tx, 1, 1)?;
                if rows.get(tx, 1)? == 1 {
                    std::panic::resume_unwind(Box::new(String::from("planned")));
                }
                Ok(())
            })
        });
        assert_eq!(message, "planned");
        let after = || Error::Panicked { message: String::from("planned") };
        assert!(!session.is_open());
        assert_eq!(session.run(|tx| rows.get(tx, 0)), Err(after()));
        assert_eq!(session.commit(), Err(after()));
        assert_eq!(committed(&engine, &rows), [0, 0, 0]);
    });
}

#[test]
fn a_misuse_ends_the_transaction_and_later_calls_say_so() {
    for_each_protocol!(1, |P| {
        let (engine, other) = (support::engine::<P>(), support::engine::<P>());
        let (rows, foreign) = (TArray::new(&engine, 3, |_| 0i64), TBox::new(&other, 0));
        let mut session = begin(&engine);
        session.run(|tx| rows.set(tx, 0, 1)).unwrap();
        let misused = session.run(|tx| foreign.set(tx, 1));
        assert!(matches!(misused, Err(Error::Misuse(Misuse::ForeignObject { .. }))), "{misused:?}");
        assert_eq!(session.run(|tx| rows.set(tx, 0, 1)), misused);
        assert_eq!(session.commit(), misused);
        assert_eq!(committed(&engine, &rows), [0, 0, 0]);
    });
}

#[test]
fn marks_take_the_transaction_back_over_several_statements() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let rows = TArray::new(&engine, 3, |_| 0i64);
        let table = Database::on(&engine).table::<u64, i64>("table").create().unwrap();
        let mut session = begin(&engine);
        let add = |session: &mut Session<P>, row: usize| {
            session.run(|tx| {
                table.insert_if_absent(tx, row as u64, 1)?;
                rows.update(tx, row, |row| *row += 1)
            })
        };
        add(&mut session, 0).unwrap();
        let first = session.savepoint().unwrap();
        add(&mut session, 0).unwrap();
        let second = session.savepoint().unwrap();
        add(&mut session, 1).unwrap();
        session.roll_back_to(second).unwrap();
        add(&mut session, 2).unwrap();
        session.roll_back_to(second).unwrap();
        let state = |session: &mut Session<P>| {
            session
                .run(|tx| {
                    let rows: Vec<i64> = (0..3).map(|row| rows.get(tx, row)).collect::<Result<_, _>>()?;
                    let keys = (0..3).filter_map(|key| table.get(tx, &key).transpose());
                    Ok((rows, keys.collect::<Result<Vec<i64>, _>>()?.len()))
                })
                .unwrap()
        };
        assert_eq!(state(&mut session), (vec![2, 0, 0], 1));
        session.roll_back_to(first).unwrap();
        assert_eq!(state(&mut session), (vec![1, 0, 0], 1));
        assert_eq!(session.roll_back_to(second), Err(Error::Misuse(Misuse::UnknownMark)));
        add(&mut session, 1).unwrap();
        let third = session.savepoint().unwrap();
        add(&mut session, 1).unwrap();
        session.release(third).unwrap();
        assert_eq!(session.release(third), Err(Error::Misuse(Misuse::UnknownMark)));
        assert_eq!(state(&mut session), (vec![1, 2, 0], 2));
        // A mark is left.
        session.commit().unwrap();
        let mut session = begin(&engine);
        assert_eq!(state(&mut session), (vec![1, 2, 0], 2));
        assert_eq!(session.release(first), Err(Error::Misuse(Misuse::UnknownMark)));
        let mark = session.savepoint().unwrap();
        session.run(|tx| table.delete(tx, &0)).unwrap();
        session.roll_back_to(mark).unwrap();
        session.run(|tx| rows.set(tx, 2, 5)).unwrap();
        session.release(mark).unwrap();
        assert_eq!(state(&mut session), (vec![1, 2, 5], 2));
        session.commit().unwrap();
    });
}

#[test]
fn operations_that_could_be_deferred_take_effect() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let (number, counter) = (TBox::new(&engine, 1u64), TCounter::new(&engine, 0));
        let mut session = begin(&engine);
        session.run(|tx| number.defer_update(tx, (), |number, ()| *number += 1).map(drop)).unwrap();
        let refused = session.run(|tx| {
            number.defer_update(tx, (), |number, ()| *number += 100)?;
            Err::<(), _>(Abort::rollback())
        });
        assert!(matches!(refused, Err(Error::Rollback(_))));
        session
            .run(|tx| {
                counter.add(tx, 3)?;
                number.defer_update(tx, (), |number, ()| *number *= 10).map(drop)
            })
            .unwrap();
        session.commit().unwrap();
        let mut session = begin(&engine);
        assert_eq!(session.run(|tx| Ok((number.get(tx)?, counter.get(tx)?))), Ok((20, 3)));
    });
}

#[test]
fn of_two_sessions_that_change_the_same_row_at_least_one_commits_and_no_change_is_lost() {
    for_each_protocol!(2, |P| {
        let engine = impatient::<P>();
        let rows = TArray::new(&engine, 3, |_| 0i64);
        let mut commits = 0;
        for round in 0..6 {
            let mut sessions = [begin(&engine), begin(&engine)];
            let mut statements = [Ok(()), Ok(())];
            for at in [0, 1] {
                let row = &mut sessions[(round + at) % 2];
                statements[(round + at) % 2] = row.run(|tx| rows.update(tx, 0, |row| *row += 1));
            }
            let mut ended = [false; 2];
            for (at, session) in sessions.into_iter().enumerate() {
                let committed = session.commit();
                if let Err(error) = &statements[at] {
                    assert_eq!(committed.as_ref(), Err(error), "later calls say why it has ended");
                }
                ended[at] = match committed {
                    Ok(()) => true,
                    Err(error) => {
                        assert!(error.is_retryable(), "{error}");
                        false
                    }
                };
            }
            assert!(ended.contains(&true));
            commits += i64::from(ended[0]) + i64::from(ended[1]);
        }
        assert_eq!(committed(&engine, &rows)[0], commits);
    });
}

#[test]
fn sessions_that_wait_for_each_other_in_a_circle_do_not_wait_for_ever() {
    for_each_concurrent_protocol!(2, |P| {
        let engine = support::engine::<P>();
        let rows = TArray::new(&engine, 3, |_| 0i64);
        let mut sessions = [begin(&engine), begin(&engine)];
        for (at, session) in sessions.iter_mut().enumerate() {
            session.run(|tx| rows.update(tx, at, |row| *row += 1)).unwrap();
        }
        let ended = thread::scope(|scope| {
            let crossing = sessions.into_iter().enumerate().map(|(at, mut session)| {
                let rows = &rows;
                scope.spawn(move || {
                    session.run(|tx| rows.update(tx, 1 - at, |row| *row += 1))?;
                    session.commit()
                })
            });
            let crossing: Vec<_> = crossing.collect();
            crossing.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
        });
        let commits = ended.iter().filter(|ended| ended.is_ok()).count() as i64;
        assert!(ended.iter().filter_map(|ended| ended.as_ref().err()).all(Error::is_retryable), "{ended:?}");
        assert_eq!(committed(&engine, &rows)[..2], [commits; 2]);
    });
}

#[test]
fn a_session_that_idles_is_ended_lets_others_go_on_and_says_so() {
    for_each_protocol!(2, |P| {
        let engine = support::engine::<P>();
        let rows = TArray::new(&engine, 3, |_| 0i64);
        let idle_max = Duration::from_millis(10);
        let mut session = loop {
            let mut session = engine.begin(SessionOptions::named("at lunch").idle_max(idle_max)).unwrap();
            // On a busy machine it may be too late for the first statement.
            if session.run(|tx| rows.update(tx, 1, |row| *row += 100)).is_ok() {
                break session;
            }
        };
        // Waits as long as the row is held.
        engine.transact(|tx| rows.update(tx, 1, |row| *row += 1)).unwrap();
        until(|| !session.is_open());
        let ended = session.run(|tx| rows.get(tx, 0));
        match &ended {
            Err(Error::Cancelled(cancelled)) => {
                assert_eq!(
                    (&*cancelled.session, cancelled.cause),
                    ("at lunch", CancelCause::Idle { idle_max })
                );
                let text = ended.as_ref().unwrap_err().to_string();
                assert_eq!(text, "cancelled: session at lunch was idle for longer than its limit of 10ms");
            }
            ended => panic!("{ended:?}"),
        }
        assert!(ended.as_ref().unwrap_err().is_retryable());
        assert_eq!(session.commit(), ended.map(drop));
        assert_eq!(committed(&engine, &rows), [0, 1, 0]);
    });
}

#[test]
fn a_session_whose_handle_was_leaked_ends_by_its_idle_limit() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let rows = TArray::new(&engine, 3, |_| 0i64);
        let limit = SessionOptions::default().idle_max(Duration::from_millis(1));
        let mut session = engine.begin(limit).unwrap();
        // It may have ended before.
        let _ = session.run(|tx| rows.set(tx, 0, 1));
        std::mem::forget(session);
        // Its worker and its row are free after a while.
        let look = || {
            let mut next = engine.begin(SessionOptions::default())?;
            next.run(|tx| rows.update(tx, 0, |row| *row))
        };
        let mut seen = look();
        while let Err(Error::Misuse(Misuse::TooManyWorkers { .. }) | Error::Conflict(_)) = seen {
            thread::yield_now();
            seen = look();
        }
        assert_eq!(seen, Ok(0));
    });
}

#[test]
fn a_session_that_idles_is_cancelled_at_once() {
    for_each_protocol!(2, |P| {
        let engine = support::engine::<P>();
        let rows = TArray::new(&engine, 3, |_| 0i64);
        let mut session = engine.begin(SessionOptions::named("unwanted")).unwrap();
        session.run(|tx| rows.update(tx, 1, |row| *row += 100)).unwrap();
        let canceller = session.canceller();
        elsewhere(|| canceller.clone().cancel());
        engine.transact(|tx| rows.update(tx, 1, |row| *row += 1)).unwrap();
        let ended = session.run(|tx| rows.get(tx, 0));
        let Err(Error::Cancelled(cancelled)) = &ended else { panic!("{ended:?}") };
        assert_eq!((&*cancelled.session, cancelled.cause), ("unwanted", CancelCause::Requested));
        assert!(!ended.as_ref().unwrap_err().is_retryable());
        assert_eq!(session.commit(), ended.map(drop));
        assert_eq!(committed(&engine, &rows), [0, 1, 0]);
        // Others that begin on the same thread, or have the same worker's number, are not meant.
        canceller.cancel();
        let mut next = begin(&engine);
        canceller.cancel();
        next.run(|tx| rows.update(tx, 1, |row| *row += 1)).unwrap();
        next.commit().unwrap();
    });
}

fn is_cancelled<R>(result: &Result<R, Error>) -> bool {
    matches!(result, Err(Error::Cancelled(cancelled)) if cancelled.cause == CancelCause::Requested)
}

#[test]
fn a_statement_that_runs_is_cancelled_at_its_next_operation_or_at_its_end() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let rows = TArray::new(&engine, 3, |_| 0i64);
        for operates in [true, false] {
            let mut session = begin(&engine);
            let canceller = session.canceller();
            let mut was_told = false;
            let ended = session.run(|tx| {
                rows.set(tx, 0, 1)?;
                elsewhere(|| canceller.cancel());
                if operates {
                    was_told = rows.set(tx, 1, 1).is_err();
                }
                Ok(())
            });
            assert!(is_cancelled(&ended) && was_told == operates, "{ended:?}");
            assert!(!session.is_open());
            assert!(is_cancelled(&session.commit()));
        }
        assert_eq!(committed(&engine, &rows), [0, 0, 0]);
    });
}

/// True if a session waits for an older (or younger) one that has changed the same row.
fn waits(name: &str, for_older: bool) -> bool {
    match name {
        _ if !support::is_concurrent() || support::locks_ranges() => true,
        "wound-wait" | "plor" | "plor+latched" => for_older,
        "wait-die" => !for_older,
        _ => false,
    }
}

#[test]
fn a_statement_that_waits_for_a_lock_is_cancelled() {
    for_each_protocol!(2, |P| {
        for for_older in [true, false] {
            let engine = support::engine::<P>();
            let rows = TArray::new(&engine, 3, |_| 0i64);
            let [first, second] = [begin(&engine), begin(&engine)];
            let (mut holder, mut waiter) = if for_older { (first, second) } else { (second, first) };
            holder.run(|tx| rows.update(tx, 1, |row| *row += 1)).unwrap();
            let (canceller, arrives) = (waiter.canceller(), AtomicBool::new(false));
            let ended = thread::scope(|scope| {
                scope.spawn(|| {
                    until(|| arrives.load(Ordering::Acquire));
                    // By then it most likely waits. It must end even if it does not yet.
                    thread::sleep(Duration::from_millis(3));
                    canceller.cancel();
                });
                waiter.run(|tx| {
                    arrives.store(true, Ordering::Release);
                    rows.update(tx, 1, |row| *row += 1)
                })
            });
            assert!(is_cancelled(&ended) || !waits(&support::chosen(), for_older), "{ended:?}");
            drop(waiter);
            let commits = i64::from(holder.commit().is_ok());
            // Neither holds the row, nor waits for it.
            engine.transact(|tx| rows.update(tx, 1, |row| *row += 10)).unwrap();
            assert_eq!(committed(&engine, &rows)[1], 10 + commits);
        }
    });
}

#[test]
fn a_wait_in_a_statement_ends_with_the_deadline() {
    for_each_protocol!(2, |P| {
        let engine = impatient::<P>();
        let rows = TArray::new(&engine, 3, |_| 0i64);
        let (mut holder, mut waiter) = (begin(&engine), begin(&engine));
        holder.run(|tx| rows.update(tx, 1, |row| *row += 1)).unwrap();
        let waited = waiter.run(|tx| rows.update(tx, 1, |row| *row += 1));
        match &waited {
            Err(Error::Timeout(conflict)) => assert_eq!(conflict.object, "array"),
            waited => assert!(!waits(&support::chosen(), true), "{waited:?}"),
        }
        drop(waiter);
        assert!(waited.is_ok() || holder.commit().is_ok());
    });
}

#[test]
fn a_session_is_not_used_within_a_transaction() {
    for_each_protocol!(2, |P| {
        let engine = support::engine::<P>();
        let rows = TArray::new(&engine, 3, |_| 0i64);
        let (mut session, inner) = (begin(&engine), support::engine::<P>());
        let nested = Err(Error::Misuse(Misuse::Nested));
        inner
            .transact(|_| {
                assert_eq!(session.run(|tx| rows.get(tx, 0)).map(drop), nested);
                assert_eq!(session.savepoint().map(drop), nested);
                assert_eq!(engine.begin(SessionOptions::default()).map(drop), nested);
                Ok(())
            })
            .unwrap();
        let in_statement = session.run(|_| Ok(engine.transact(|tx| rows.get(tx, 0)).map(drop)));
        assert_eq!(in_statement, Ok(Err(Error::Misuse(Misuse::Nested))));
        session.run(|tx| rows.set(tx, 0, 1)).unwrap();
        let mut held = Some(session);
        inner
            .transact(|_| {
                let session = held.take().expect("the body runs once");
                assert_eq!(session.commit(), nested);
                Ok(())
            })
            .unwrap();
        // It is rolled back, though nobody has waited for that.
        assert_eq!(engine.transact(|tx| rows.get(tx, 0)), Ok(0));
    });
}

#[test]
fn many_sessions_are_open_at_the_same_time() {
    for_each_concurrent_protocol!(100, |P| {
        let engine = support::engine::<P>();
        let rows = TArray::new(&engine, 40, |_| 0i64);
        let mut sessions: Vec<_> = (0..40).map(|_| begin(&engine)).collect();
        for round in 0..2 {
            for (at, session) in sessions.iter_mut().enumerate() {
                assert_eq!(session.run(|tx| rows.update(tx, at, |row| *row += 1)), Ok(()), "{round}");
            }
        }
        sessions.into_iter().for_each(|session| session.commit().unwrap());
        let mut session = begin(&engine);
        assert_eq!(session.run(|tx| (0..40).map(|row| rows.get(tx, row)).sum::<Result<i64, _>>()), Ok(80));
    });
}

#[test]
fn a_session_outlives_the_handles_of_its_engine_and_objects() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let mut session = begin(&engine);
        let rows = TArray::new(&engine, 3, |_| 0i64);
        session.run(|tx| rows.set(tx, 0, 1)).unwrap();
        drop((engine, rows));
        assert_eq!(session.run(|_| Ok(7)), Ok(7));
        session.commit().unwrap();
    });
}

#[test]
fn reports_call_a_session_by_its_name() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let session = engine.begin(SessionOptions::named("a long talk")).unwrap();
        assert_eq!(session.name(), "a long talk");
        let find = || {
            let is_it =
                |kind: &HolderKind| matches!(kind, HolderKind::Session { name, .. } if name == "a long talk");
            let holders = engine.retained_memory().holders;
            holders.into_iter().find(|holder| holder.engine == engine.id() && is_it(&holder.kind))
        };
        let holder = find().expect("it is open");
        let text = holder.to_string();
        let name = engine.protocol();
        assert!(
            text.starts_with(&format!("session a long talk ({name}) on thread hotrow-session")),
            "{text}"
        );
        session.commit().unwrap();
        assert_eq!(find(), None);
    });
}

#[test]
fn a_read_only_session_refuses_writes() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let rows = TArray::new(&engine, 3, |_| 4i64);
        let options = SessionOptions { profile: Profile::READ_ONLY, ..SessionOptions::default() };
        let mut session = engine.begin(options).unwrap();
        assert_eq!(session.run(|tx| rows.get(tx, 0)), Ok(4));
        let refused = session.run(|tx| rows.set(tx, 0, 1));
        assert!(matches!(refused, Err(Error::Misuse(Misuse::ReadOnly { .. }))), "{refused:?}");
    });
}

/// Moves an amount from one account to another, in a session whose statements several threads make. False if there is
/// not enough.
fn transfer<P: Protocol>(
    engine: &Engine<P>,
    accounts: &Table<u64, i64, P>,
    [from, to]: [u64; 2],
    amount: i64,
) -> Result<bool, Error> {
    let mut session = engine.begin(SessionOptions::default())?;
    let found = session.run(|tx| accounts.get(tx, &from))?;
    if found.is_none_or(|found| found < amount) {
        session.roll_back();
        return Ok(false);
    }
    let mut session = elsewhere(|| {
        session.run(|tx| accounts.update(tx, &from, |account| *account -= amount))?;
        Ok::<_, Error>(session)
    })?;
    session.run(|tx| accounts.update(tx, &to, |account| *account += amount))?;
    let refused = session.run(|tx| {
        accounts.update(tx, &to, |account| *account += 1_000)?;
        tx.ensure(false, Overdrawn)
    });
    match refused {
        Err(Error::Rollback(_)) => {}
        Err(error) => return Err(error),
        Ok(()) => unreachable!("it was refused"),
    }
    session.commit().map(|()| true)
}

#[test]
fn the_history_of_sessions_among_ordinary_transactions_is_serializable() {
    for_each_protocol!(8, |P| {
        const ACCOUNTS: u64 = 4;
        let engine = impatient::<P>();
        let recording = engine.record_history(1 << 24).unwrap();
        let accounts = Database::on(&engine).table::<u64, i64>("accounts").create().unwrap();
        engine
            .transact(|tx| (0..ACCOUNTS).try_for_each(|key| accounts.insert(tx, key, 100).map(drop)))
            .unwrap();
        thread::scope(|scope| {
            for number in 0..3u64 {
                let (engine, accounts) = (&engine, &accounts);
                scope.spawn(move || {
                    let mut random = Random::stream(7, number);
                    for round in 0..12 {
                        let from = random.below(ACCOUNTS);
                        let pair = [from, (from + 1 + random.below(ACCOUNTS - 1)) % ACCOUNTS];
                        let amount = 1 + random.below(30) as i64;
                        let ended = match (number + round) % 3 {
                            0 => engine
                                .transact(|tx| {
                                    accounts.update(tx, &pair[0], |account| *account -= amount)?;
                                    accounts.update(tx, &pair[1], |account| *account += amount)
                                })
                                .map(|_| true),
                            _ => transfer(engine, accounts, pair, amount),
                        };
                        if let Err(error) = ended {
                            assert!(error.is_retryable(), "{error}");
                        }
                    }
                });
            }
        });
        let total = support::whatever_time_it_takes(|| {
            engine.transact(|tx| (0..ACCOUNTS).map(|key| Ok(accounts.get(tx, &key)?.unwrap_or(0))).sum())
        });
        assert_eq!(total, Ok(100 * ACCOUNTS as i64));
        steps::judge(&recording.finish());
    });
}

/// It has found the key absent, so that "exists already" is no answer.
#[test]
fn a_session_that_has_lost_a_race_for_a_key_is_told_so() {
    for_each_concurrent_protocol!(3, |P| {
        let engine = impatient::<P>();
        let rows = Database::on(&engine).table::<u64, u64>("rows").create().unwrap();
        let mut session = engine.begin(SessionOptions::default()).unwrap();
        assert_eq!(session.run(|tx| rows.get(tx, &7)), Ok(None));
        if overtake(&engine, |tx| rows.insert(tx, 7, 1)) {
            let lost = session.run(|tx| rows.insert(tx, 7, 2)).unwrap_err();
            assert!(
                matches!(lost, Error::Conflict(_) | Error::Timeout(_)) && lost.is_retryable(),
                "{lost:?}"
            );
        } else {
            session.roll_back();
            engine.transact(|tx| rows.insert(tx, 7, 1)).unwrap();
        }
        let mut session = engine.begin(SessionOptions::default()).unwrap();
        let exists = session.run(|tx| rows.insert(tx, 7, 3)).unwrap_err();
        assert!(exists.downcast_ref::<KeyExists>().is_some() && !exists.is_retryable(), "{exists:?}");
        assert_eq!(session.run(|tx| rows.get(tx, &7)), Ok(Some(1)), "the session goes on");
    });
}

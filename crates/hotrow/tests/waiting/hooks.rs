//! Hooks for the end of a transaction: once, when it is certain, and with nothing held.

use crate::support::{elsewhere, engine, engine_with, for_each_protocol, panic_of};
use hotrow::object::ObjectMeta;
use hotrow::sync::{Arc, Mutex, lock};
use hotrow::{Abort, Any, Engine, Error, Misuse, Protocol, RetryPolicy, SessionOptions, TBox, Transaction};
use std::time::Duration;

/// The words that hooks have said, in their order.
#[derive(Clone, Default)]
struct Said(Arc<Mutex<Vec<&'static str>>>);

impl Said {
    fn hook(&self, word: &'static str) -> impl FnOnce() + Send + 'static {
        let said = self.clone();
        move || lock(&said.0).push(word)
    }

    /// Leaves a hook of each kind.
    fn leave<P: Protocol>(&self, tx: &mut Transaction<'_, P>) {
        tx.on_commit(self.hook("committed"));
        tx.on_durable(self.hook("durable"));
        tx.on_abort(self.hook("aborted"));
    }

    fn take(&self) -> Vec<&'static str> {
        std::mem::take(&mut lock(&self.0))
    }
}

#[test]
fn hooks_run_once_however_many_attempts_there_were() {
    for_each_protocol!(2, |P| {
        let engine = engine::<P>();
        let (said, number) = (Said::default(), TBox::new(&engine, 0u64));
        let committed = engine.transact(|tx| {
            said.leave(tx);
            tx.on_commit(said.hook("second"));
            number.set(tx, 1)
        });
        assert_eq!((committed, said.take()), (Ok(()), vec!["committed", "second", "durable"]));
        // A part that is undone, and one that is not.
        let committed = engine.transact(|tx| {
            let undone: Result<(), Abort> = tx.savepoint(|tx| {
                said.leave(tx);
                Err(Abort::rollback())
            })?;
            assert!(undone.is_err());
            tx.or_else(
                |tx| {
                    said.leave(tx);
                    tx.retry()
                },
                |tx| {
                    tx.savepoint(|tx| {
                        tx.on_commit(said.hook("kept"));
                        Ok(())
                    })?
                },
            )
        });
        assert_eq!((committed, said.take()), (Ok(()), vec!["kept"]));
        let refused = engine.transact(|tx| {
            said.leave(tx);
            number.set(tx, 2)?;
            tx.ensure(false, "refused")
        });
        assert!(matches!(refused, Err(Error::Rollback(_))));
        assert_eq!(said.take(), ["aborted"]);
        let message = panic_of(|| {
            engine.transact(|tx| -> Result<(), Abort> {
                said.leave(tx);
                number.set(tx, 2)?;
                panic!("planned")
            })
        });
        assert_eq!((message.as_str(), said.take()), ("planned", vec!["aborted"]));
        let impatient = engine.transact(|tx| {
            said.leave(tx);
            number.get(tx)?;
            tx.retry_for::<()>(Duration::from_millis(1))
        });
        assert!(matches!(impatient, Err(Error::RetryTimeout { .. })));
        assert_eq!(said.take(), ["aborted"]);
        assert_eq!(engine.transact(|tx| number.get(tx)), Ok(1));
    });
}

#[test]
fn hooks_of_datatypes_and_of_bodies_run_each_at_its_moment_and_locks_outlive_an_undone_part() {
    for_each_protocol!(2, |P| {
        let engine = engine::<P>();
        let (said, number) = (Said::default(), TBox::new(&engine, 0u64));
        let meta = ObjectMeta::new(engine.id(), "with concurrency control of its own");
        let leave = |tx: &mut Transaction<'_, P>, [undone, ended]: [&'static str; 2]| {
            said.leave(tx);
            let access = tx.enter(&meta)?;
            access.on_undo(said.hook(undone));
            let end = said.hook(ended);
            access.at_end(move |_| end());
            Ok::<_, Abort>(())
        };
        let committed = engine.transact(|tx| {
            leave(tx, ["undone", "ended"])?;
            let part: Result<(), Abort> = tx.savepoint(|tx| {
                leave(tx, ["part undone", "part ended"])?;
                Err(Abort::rollback())
            })?;
            assert!(part.is_err());
            number.set(tx, 1)
        });
        assert_eq!(committed, Ok(()));
        assert_eq!(said.take(), ["part undone", "part ended", "ended", "committed", "durable"]);
        let refused = engine.transact(|tx| {
            leave(tx, ["undone", "ended"])?;
            leave(tx, ["undone first", "ended first"])?;
            number.set(tx, 2)?;
            tx.ensure(false, "refused")
        });
        assert!(matches!(refused, Err(Error::Rollback(_))));
        let expected = ["undone first", "undone", "ended first", "ended", "aborted", "aborted"];
        assert_eq!(said.take(), expected);
    });
}

#[test]
fn hooks_of_a_transaction_whose_end_panics_are_not_left_to_the_next_one() {
    for_each_protocol!(1, |P| {
        let engine = engine::<P>();
        let (said, meta) = (Said::default(), ObjectMeta::new(engine.id(), "own"));
        let mut worker = engine.worker().unwrap();
        let leave = |tx: &mut Transaction<'_, P>| {
            said.leave(tx);
            tx.enter(&meta)?.at_end(|_| panic!("of the end"));
            Ok::<_, Abort>(())
        };
        let message = panic_of(|| {
            worker.transact(|tx| {
                leave(tx)?;
                Err::<(), _>(Abort::rollback())
            })
        });
        assert_eq!((message.as_str(), said.take()), ("of the end", vec!["aborted"]));
        let message = panic_of(|| {
            let mut open = worker.begin();
            leave(&mut open).unwrap();
        });
        assert_eq!((message.as_str(), said.take()), ("of the end", vec!["aborted"]));
        worker.transact(|_| Ok(())).unwrap();
        assert!(said.take().is_empty());
    });
}

/// Makes the attempt lose, or tells that the protocol does not let it: another transaction changes what it has read, so that it
/// may not write.
fn disturb<P: Protocol>(
    tx: &mut Transaction<'_, P>,
    engine: &Engine<P>,
    number: &TBox<u64, P>,
) -> Result<(), Abort> {
    number.get(tx)?;
    elsewhere(|| drop(engine.transact(|tx| number.update(tx, |number| *number += 1))));
    number.update(tx, |number| *number += 1)
}

#[test]
fn the_hooks_of_a_transaction_that_gives_up_are_those_of_its_last_attempt() {
    for_each_protocol!(2, |P| {
        let policy = RetryPolicy {
            attempts_max: 3,
            deadline: Some(Duration::from_millis(20)),
            ..RetryPolicy::default()
        };
        let engine = engine_with::<P>(policy);
        let (said, number) = (Said::default(), TBox::new(&engine, 0u64));
        let ended = engine.transact(|tx| {
            said.leave(tx);
            disturb(tx, &engine, &number)
        });
        match ended {
            Ok(()) => assert_eq!(said.take(), ["committed", "durable"]),
            Err(Error::Conflict(_) | Error::Timeout(_)) => assert_eq!(said.take(), ["aborted"]),
            Err(error) => panic!("{error}"),
        }
        // One that loses once.
        let mut is_first = true;
        let engine = engine_with::<P>(RetryPolicy { deadline: Some(Duration::from_secs(60)), ..policy });
        let number = TBox::new(&engine, 0u64);
        let ended = engine.transact(|tx| {
            said.leave(tx);
            number.get(tx)?;
            if std::mem::take(&mut is_first) && crate::support::is_concurrent() {
                // Read by another one only, which no protocol keeps from going on.
                elsewhere(|| engine.transact(|tx| number.get(tx)).unwrap());
            }
            number.set(tx, 1)
        });
        assert_eq!((ended, said.take()), (Ok(()), vec!["committed", "durable"]));
    });
}

#[test]
fn nothing_is_held_when_a_hook_runs_and_it_may_begin_a_transaction() {
    for_each_protocol!(3, |P| {
        let engine = engine::<P>();
        let number = Arc::new(TBox::new(&engine, 0u64));
        for commits in [true, false] {
            let ended = engine.transact(|tx| {
                number.update(tx, |number| *number += 1)?;
                let (engine, number) = (engine.clone(), number.clone());
                let hook = move || {
                    engine.transact(|tx| number.update(tx, |number| *number += 10)).unwrap();
                    elsewhere(|| engine.transact(|tx| number.update(tx, |number| *number += 100)).unwrap());
                };
                if commits {
                    tx.on_commit(hook)
                } else {
                    tx.on_abort(hook)
                }
                tx.ensure(commits, "planned")
            });
            assert_eq!(ended.is_ok(), commits);
        }
        assert_eq!(engine.transact(|tx| number.get(tx)), Ok(221));
    });
}

#[test]
fn a_panic_of_a_hook_undoes_nothing_and_is_passed_on_when_all_have_run() {
    for_each_protocol!(2, |P| {
        let engine = engine::<P>();
        let (said, number) = (Said::default(), TBox::new(&engine, 0u64));
        let message = panic_of(|| {
            engine.transact(|tx| {
                tx.on_commit(|| panic!("the first"));
                tx.on_commit(|| panic!("the second"));
                said.leave(tx);
                number.set(tx, 1)
            })
        });
        assert_eq!((message.as_str(), said.take()), ("the first", vec!["committed", "durable"]));
        let message = panic_of(|| {
            engine.transact(|tx| -> Result<(), Abort> {
                tx.on_abort(|| panic!("of the hook"));
                said.leave(tx);
                panic!("of the body")
            })
        });
        assert_eq!((message.as_str(), said.take()), ("of the body", vec!["aborted"]));
        assert_eq!(engine.transact(|tx| number.get(tx)), Ok(1));
    });
}

#[test]
fn transactions_with_one_attempt_have_hooks_too() {
    for_each_protocol!(2, |P| {
        let engine = engine::<P>();
        let (said, number) = (Said::default(), TBox::new(&engine, 0u64));
        let leave = |tx: &mut Transaction<'_, P>| {
            said.leave(tx);
            number.update(tx, |number| *number += 1)
        };
        let mut session = engine.begin(SessionOptions::default()).unwrap();
        session.run(leave).unwrap();
        session.commit().unwrap();
        assert_eq!(said.take(), ["committed", "durable"]);
        let mut session = engine.begin(SessionOptions::default()).unwrap();
        session.run(leave).unwrap();
        session.roll_back();
        assert_eq!(said.take(), ["aborted"]);
        let mut worker = engine.worker().unwrap();
        let mut stepped = worker.begin();
        leave(&mut stepped).unwrap();
        stepped.commit().unwrap();
        assert_eq!(said.take(), ["committed", "durable"]);
        let mut stepped = worker.begin();
        leave(&mut stepped).unwrap();
        stepped.roll_back().unwrap();
        assert_eq!(said.take(), ["aborted"]);
        let mut stepped = worker.begin();
        leave(&mut stepped).unwrap();
        drop(stepped);
        assert_eq!(said.take(), ["aborted"]);
        assert_eq!(engine.transact(|tx| number.get(tx)), Ok(2));
    });
}

#[test]
fn under_a_protocol_of_one_worker_a_session_takes_the_threads_own_and_a_hook_finds_it_in_use() {
    let engine = Engine::<Any>::named("none", RetryPolicy::default()).unwrap();
    let number = Arc::new(TBox::new(&engine, 0u64));
    engine.transact(|tx| number.set(tx, 1)).unwrap();
    let mut session = engine.begin(SessionOptions::default()).unwrap();
    session.run(|tx| number.update(tx, |number| *number += 1)).unwrap();
    let refused = engine.transact(|tx| number.get(tx));
    assert!(matches!(refused, Err(Error::Misuse(Misuse::TooManyWorkers { workers_max: 1, .. }))));
    session.commit().unwrap();
    let said = Arc::new(Mutex::new(None));
    let committed = engine.transact(|tx| {
        let (engine, number, said) = (engine.clone(), number.clone(), said.clone());
        let read = number.get(tx);
        tx.on_commit(move || *lock(&said) = Some(engine.transact(|tx| number.get(tx))));
        read
    });
    assert_eq!(committed, Ok(2));
    let said = lock(&said).take().unwrap();
    assert!(matches!(said, Err(Error::Misuse(Misuse::TooManyWorkers { workers_max: 1, .. }))));
}

//! Deferred operations that fail: rollbacks, panics, misuse, and what becomes of what they hold.

use crate::support;
use crate::support::{Census, Counted, for_each_protocol};
use hotrow::object::ObjectMeta;
use hotrow::operations::Constant;
use hotrow::sync::Arc;
use hotrow::sync::atomic::{AtomicU64, Ordering};
use hotrow::{
    Abort, Counter, Deferred, Engine, Error, Misuse, Profile, Protocol, TArray, TBox, TCounter, Transaction,
};

/// Objects that a failed transaction has to leave as they were.
struct Witness<P: Protocol> {
    engine: Engine<P>,
    eager: TBox<u64, P>,
    deferred: TBox<String, P>,
    counter: TCounter<P>,
}

impl<P: Protocol> Witness<P> {
    fn new() -> Self {
        let engine = support::engine::<P>();
        let (eager, counter) = (TBox::new(&engine, 1), TCounter::new(&engine, 1));
        let deferred = TBox::new(&engine, String::from("one"));
        Self { engine, eager, deferred, counter }
    }

    /// Changes all of it.
    fn change(&self, tx: &mut Transaction<'_, P>) -> Result<(), Abort> {
        self.eager.set(tx, 2)?;
        self.deferred.defer_set(tx, Constant(String::from("two")))?;
        self.counter.defer_add(tx, 1)
    }

    fn assert_unchanged(&self) {
        let seen = self
            .engine
            .transact(|tx| Ok((self.eager.get(tx)?, self.deferred.get(tx)?, self.counter.get(tx)?)));
        assert_eq!(seen, Ok((1, String::from("one"), 1)));
        assert_eq!(self.engine.statistics().aborts, 0);
    }
}

#[derive(Debug, PartialEq)]
enum Refused {
    ByBody,
    ByCondition,
}

impl From<Abort> for Refused {
    fn from(abort: Abort) -> Self {
        assert_eq!(abort, Abort::rollback());
        Refused::ByCondition
    }
}

type Body<'a, P> = &'a dyn Fn(&mut Transaction<'_, P>) -> Result<(), Abort>;

#[test]
fn a_condition_that_does_not_hold_rolls_everything_back() {
    for_each_protocol!(1, |P| {
        let witness = Witness::<P>::new();
        let number = TBox::new(&witness.engine, 5);
        let failures: [Body<'_, P>; 5] = [
            &|tx| {
                let five = number.defer_read(tx, |number| *number)?;
                tx.require(five.greater_than(5))
            },
            &|tx| {
                let six = number.defer_update(tx, (), |number, ()| {
                    *number += 1;
                    *number
                })?;
                tx.require(six.equals(6))?;
                tx.require(!six.equals(6))?;
                witness.change(tx)
            },
            &|tx| {
                let no = tx.known(false);
                tx.require(no)
            },
            &|tx| tx.require(false),
            // It runs early, because the value that is forced was deferred later.
            &|tx| {
                let five = number.defer_read(tx, |number| *number)?;
                tx.require(five.at_most(4))?;
                tx.force(five).map(|_| ())
            },
        ];
        for (at, fail) in failures.iter().enumerate() {
            let result = witness.engine.transact(|tx| {
                witness.change(tx)?;
                fail(tx)
            });
            assert_eq!(result, Err(Error::Rollback(Abort::rollback())), "{at}");
            // Also where the body takes no notice, or makes something else of it.
            let result = witness.engine.transact(|tx| {
                witness.change(tx)?;
                let _ = fail(tx);
                Ok(())
            });
            assert_eq!(result, Err(Error::Rollback(Abort::rollback())), "{at}");
            let result = witness.engine.try_transact_deferred(Profile::UNKNOWN, |tx| {
                witness.change(tx)?;
                fail(tx).map_err(|_| Refused::ByBody)?;
                Ok(tx.known(()))
            });
            assert_eq!(result, Err(Error::Rollback(Refused::ByCondition)), "{at}");
            witness.assert_unchanged();
        }
        assert_eq!(witness.engine.statistics().rollbacks, 3 * failures.len() as u64);
    });
}

/// Runs a body that panics with a message somewhere in an intention.
fn assert_panics<P: Protocol>(witness: &Witness<P>, message: &str, body: Body<'_, P>) {
    let result = witness.engine.transact(|tx| {
        witness.change(tx)?;
        body(tx)
    });
    assert_eq!(result, Err(Error::Panicked { message: message.to_owned() }));
    let result = witness.engine.transact(|tx| {
        witness.change(tx)?;
        let _ = body(tx);
        Ok(())
    });
    assert_eq!(result, Err(Error::Panicked { message: message.to_owned() }), "the body took no notice");
    witness.assert_unchanged();
}

#[test]
fn a_panic_in_an_intention_ends_its_transaction_with_an_error() {
    for_each_protocol!(1, |P| {
        let witness = Witness::<P>::new();
        let number = TBox::new(&witness.engine, 5);
        assert_panics(&witness, "update 5", &|tx| {
            number.defer_update(tx, (), |number, ()| -> i32 { panic!("update {number}") })?;
            Ok(())
        });
        assert_panics(&witness, "read", &|tx| {
            number.defer_read(tx, |_| -> i32 { panic!("read") })?;
            Ok(())
        });
        assert_panics(&witness, "compute 5", &|tx| {
            let five = number.defer_read(tx, |number| *number)?;
            tx.compute(five, |five| -> i32 { panic!("compute {five}") })?;
            Ok(())
        });
        assert_panics(&witness, "map 6", &|tx| {
            let five = number.defer_read(tx, |number| *number)?;
            number.defer_set(tx, (five + 1).map(|six| panic!("map {six}")))
        });
        assert_panics(&witness, "forced", &|tx| {
            let forced = number.defer_read(tx, |_| -> i32 { panic!("forced") })?;
            tx.force(forced)?;
            Ok(())
        });
        assert_panics(&witness, "seen early", &|tx| {
            number.defer_update(tx, (), |_, ()| panic!("seen early"))?;
            number.get(tx)?;
            Ok(())
        });
        assert_panics(&witness, "something that is no text", &|tx| {
            number.defer_update(tx, (), |_, ()| std::panic::panic_any(7))?;
            Ok(())
        });
        assert_eq!(witness.engine.transact(|tx| number.get(tx)), Ok(5));
        assert_eq!(witness.engine.statistics().rollbacks, 14);
    });
}

#[test]
fn transactions_behind_one_that_panics_go_on() {
    const THREADS: u64 = 4;
    const ROUNDS: u64 = 200;
    for_each_protocol!(THREADS as u32, |P| {
        let engine = support::engine::<P>();
        let (first, last) = (TBox::new(&engine, 0u64), TBox::new(&engine, 0u64));
        let panics = support::on_threads(&engine, THREADS, |thread, worker| {
            let mut panics = 0;
            for round in 0..ROUNDS {
                let falls = (thread + round) % 5 == 0;
                let result = worker.transact_deferred(|tx| {
                    let seen = first.defer_update(tx, (), |value, ()| {
                        *value += 1;
                        *value
                    })?;
                    last.defer_update(tx, seen, move |value, seen| {
                        assert!(!falls, "in the middle");
                        *value += 1;
                        assert_eq!(*value, seen);
                        seen
                    })
                });
                match result {
                    Ok(_) => assert!(!falls),
                    Err(Error::Panicked { message }) => {
                        // Without opacity an attempt that is lost may have seen two states before it was aborted.
                        assert!(
                            falls && message == "in the middle" || !crate::support::defers(),
                            "{message}"
                        );
                        panics += 1;
                    }
                    Err(error) => panic!("{error}"),
                }
            }
            panics
        });
        let panics: u64 = panics.iter().sum();
        assert!(panics >= THREADS * ROUNDS / 5);
        let count = THREADS * ROUNDS - panics;
        assert_eq!(engine.transact(|tx| Ok((first.get(tx)?, last.get(tx)?))), Ok((count, count)));
    });
}

/// Panics when it is dropped.
struct Explosive(&'static str);

impl Drop for Explosive {
    fn drop(&mut self) {
        panic!("dropped {}", self.0);
    }
}

#[test]
fn a_panic_in_the_drop_of_something_captured_is_one_of_the_intention() {
    for_each_protocol!(1, |P| {
        let witness = Witness::<P>::new();
        let number = TBox::new(&witness.engine, 5);
        assert_panics(&witness, "dropped by a closure", &|tx| {
            let explosive = Explosive("by a closure");
            number.defer_update(tx, (), move |number, ()| {
                *number += 1;
                drop(explosive);
            })?;
            Ok(())
        });
        assert_panics(&witness, "dropped with an input", &|tx| {
            let explosive = Explosive("with an input");
            let five = number.defer_read(tx, |number| *number)?;
            let consume = move |five| {
                let _ = &explosive;
                five
            };
            tx.compute(five.map(consume), |_: usize| ())?;
            Ok(())
        });
        assert_eq!(witness.engine.transact(|tx| number.get(tx)), Ok(5usize));
    });
}

#[test]
fn a_panic_in_the_drop_of_what_has_not_run_passes_on_unless_the_transaction_has_committed() {
    for_each_protocol!(1, |P| {
        let witness = Witness::<P>::new();
        let number = TBox::new(&witness.engine, 5);
        let defer_two = |tx: &mut Transaction<'_, P>| {
            for name in ["first", "second"] {
                let explosive = Explosive(name);
                number.defer_update(tx, (), move |_, ()| std::mem::forget(explosive))?;
            }
            witness.change(tx)
        };
        if crate::support::defers() {
            let message = support::panic_of(|| {
                witness.engine.transact(|tx| {
                    defer_two(tx)?;
                    Err::<(), _>(Abort::rollback())
                })
            });
            assert_eq!(message, "dropped second");
            // The body's own panic is the first one.
            let message = support::panic_of(|| {
                witness.engine.transact(|tx| -> Result<(), Abort> {
                    defer_two(tx)?;
                    panic!("in the body");
                })
            });
            assert_eq!(message, "in the body");
            witness.assert_unchanged();
        }
        // A result that explodes: the transaction has committed, and says so.
        let committed = witness.engine.transact(|tx| {
            number.defer_update(tx, (), |number, ()| {
                *number += 1;
                Explosive("result")
            })
        });
        assert!(committed.is_ok());
        assert_eq!(witness.engine.transact(|tx| number.get(tx)), Ok(6));
        assert_eq!(
            witness.engine.statistics().count(&Counter::TAME_COMMITS),
            u64::from(crate::support::defers())
        );
    });
}

#[test]
fn values_held_by_intentions_are_dropped_once_however_the_transaction_ends() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let number = TBox::new(&engine, 5u64);
        let census = Census::default();
        // A value captured, one that is an input, one that is a result, and one that is known.
        let hold = |tx: &mut Transaction<'_, P>, fail: bool| -> Result<Deferred<Counted>, Abort> {
            let (captured, input) = (census.value(1), Constant(census.value(2)));
            let known = tx.known(census.value(3));
            let result = number.defer_update(tx, (input, known), move |number, (input, known)| {
                *number += input.number + known.number;
                assert!(!fail, "as told");
                captured
            })?;
            let copy = tx.compute(result, |result| result)?;
            let zip = copy.zip(known).map(|(copy, known)| copy.number + known.number);
            tx.compute(zip, |sum| assert_eq!(sum, 4))?;
            Ok(copy)
        };
        assert_eq!(engine.transact_deferred(|tx| hold(tx, false)).unwrap().number, 1);
        assert_eq!(census.alive(), 0, "after a commit");
        engine
            .transact(|tx| hold(tx, false).and_then(|copy| tx.force(copy)).map(|copy| copy.number))
            .unwrap();
        assert_eq!(census.alive(), 0, "after it was forced");
        assert!(matches!(engine.transact_deferred(|tx| hold(tx, true)), Err(Error::Panicked { .. })));
        assert_eq!(census.alive(), 0, "after a panic");
        let rolled_back = engine.transact(|tx| {
            hold(tx, false)?;
            Err::<(), _>(Abort::rollback())
        });
        assert!(matches!(rolled_back, Err(Error::Rollback(_))));
        assert_eq!(census.alive(), 0, "after a rollback");
        let rolled_back = engine.transact(|tx| {
            tx.require(false)?;
            hold(tx, false)?;
            Ok(())
        });
        assert!(matches!(rolled_back, Err(Error::Rollback(_))));
        assert_eq!(census.alive(), 0, "after a condition that did not hold");
        support::panic_of(|| engine.transact(|tx| hold(tx, false).map(|_| assert_eq!(1, 2, "in the body"))));
        assert_eq!(census.alive(), 0, "after a panic in the body");
        // The panic took this thread's worker with it, so there is room for another under every protocol.
        hold(&mut engine.worker().unwrap().begin(), false).unwrap();
        assert_eq!(census.alive(), 0, "after it was given up");
        assert_eq!(engine.transact(|tx| number.get(tx)), Ok(15));
    });
}

#[test]
fn values_held_by_intentions_are_dropped_when_an_attempt_is_aborted() {
    for_each_protocol!(2, |P| {
        let engine = support::impatient::<P>();
        let (seen, changed) = (TBox::new(&engine, 0u64), TBox::new(&engine, 0u64));
        let census = Census::default();
        let attempts = support::attempts(
            &engine,
            |tx| {
                let value = seen.get(tx)?;
                let captured = census.value(value);
                changed.defer_update(tx, (), move |changed, ()| {
                    *changed = captured.number + 1;
                    captured
                })?;
                Ok(())
            },
            |tx| seen.set(tx, 7),
        );
        assert_eq!(census.alive(), 0);
        assert_eq!(
            engine.transact(|tx| changed.get(tx)),
            Ok(attempts.map_or(1, |n| if n > 1 { 8 } else { 1 }))
        );
        if crate::support::defers() {
            assert_eq!(attempts, Some(2), "nobody is held off by one that reads");
        }
    });
}

#[test]
fn a_handle_from_elsewhere_is_refused() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let number = TBox::new(&engine, 5);
        let old = engine.transact(|tx| number.defer_read(tx, |number| *number)).unwrap();
        let uses: [Body<'_, P>; 5] = [
            &|tx| tx.force(old).map(|_| ()),
            &|tx| number.defer_set(tx, old),
            &|tx| number.defer_set(tx, old + 1),
            &|tx| tx.require(old.equals(5)),
            &|tx| {
                let one = tx.known(1);
                number.defer_update(tx, (one, old), |number, (one, old)| *number += one + old).map(|_| ())
            },
        ];
        for misuse in uses {
            let refused = engine.transact(|tx| {
                number.defer_set(tx, 6)?;
                misuse(tx)
            });
            assert_eq!(refused, Err(Error::Misuse(Misuse::ForeignDeferred)));
        }
        assert_eq!(engine.transact_deferred(|_| Ok(old)), Err(Error::Misuse(Misuse::ForeignDeferred)));
        // Of another engine, too.
        let other = support::engine::<P>();
        assert_eq!(other.transact_deferred(|_| Ok(old)), Err(Error::Misuse(Misuse::ForeignDeferred)));
        assert_eq!(engine.transact(|tx| number.get(tx)), Ok(5));
        // And of an attempt that is still there.
        if let (Ok(mut first), Ok(mut second)) = (engine.worker(), other.worker()) {
            let (mut first, mut second) = (first.begin(), second.begin());
            let (here, there) = (first.known(1), second.known(2));
            assert_eq!(second.force(there), Ok(2));
            assert!(second.force(here).is_err());
            assert_eq!(second.commit(), Err(Error::Misuse(Misuse::ForeignDeferred)));
            assert_eq!(first.force(here), Ok(1));
            assert_eq!(first.commit(), Ok(()));
        }
    });
}

#[test]
fn a_transaction_within_an_intention_is_refused() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let (number, ran) = (TBox::new(&engine, 5), Arc::new(AtomicU64::new(0)));
        for eager in [false, true] {
            let inner = engine.transact(|tx| {
                let (nested, ran) = (engine.clone(), ran.clone());
                number.defer_update(tx, (), move |number, ()| {
                    ran.fetch_add(1, Ordering::SeqCst);
                    assert_eq!(nested.transact(|_| Ok(())), Err(Error::Misuse(Misuse::Nested)));
                    *number += 1;
                })?;
                if eager { number.get(tx) } else { Ok(0) }
            });
            assert_eq!(inner, Ok(if eager { 7 } else { 0 }));
        }
        assert_eq!(ran.load(Ordering::SeqCst), 2);
        assert_eq!(engine.transact(|tx| number.get(tx)), Ok(7));
    });
}

#[test]
fn an_error_kept_from_another_attempt_and_a_value_never_known_commit_nothing() {
    for_each_protocol!(1, |P| {
        let witness = Witness::<P>::new();
        let numbers = TArray::new(&witness.engine, 1, |_| 0u64);
        let meta = ObjectMeta::new(witness.engine.id(), "kept");
        let mut kept = None;
        let refused = witness.engine.transact(|tx| {
            kept = numbers.get(tx, 9).err();
            Ok(())
        });
        assert!(matches!(refused, Err(Error::Misuse(Misuse::OutOfBounds { .. }))));
        assert!(kept.is_some(), "it is out of bounds");
        let rolled_back = witness.engine.transact(|tx| {
            let kept = kept.take().expect("the body runs once");
            tx.enter(&meta)?.deferral_mut().intend((), move |_, ()| Err::<(), _>(kept))?;
            witness.change(tx)
        });
        assert!(matches!(rolled_back, Err(Error::Rollback(_))), "{rolled_back:?}");
        let unknown = witness.engine.transact_deferred(|tx| {
            witness.change(tx)?;
            Ok(tx.enter(&meta)?.deferral_mut().unknown::<u64>())
        });
        assert_eq!(unknown, Err(Error::Misuse(Misuse::UnknownInput)));
        witness.assert_unchanged();
    });
}

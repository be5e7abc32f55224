//! Errors and panics of bodies that have seen two states: such an attempt runs again instead of handing them out.
//!
//! Two numbers are always equal, and a row exists as soon as they are not 0. A body is overtaken between its looks by a
//! transaction that changes them together, so that it sees a difference under protocols that do not keep the other one
//! off.

use crate::support;
use crate::support::{for_each_protocol, impatient, overtake, whatever_time_it_takes};
use hotrow::{Abort, Database, Deferred, Engine, Error, Protocol, TBox, TCounter, Table, Transaction};

struct Twins<P: Protocol> {
    engine: Engine<P>,
    first: TBox<u64, P>,
    second: TBox<u64, P>,
    counter: TCounter<P>,
    rows: Table<u64, u64, P>,
}

#[derive(Debug, PartialEq)]
enum Failed {
    Differ,
    Aborted(Abort),
}

impl From<Abort> for Failed {
    fn from(abort: Abort) -> Self {
        Failed::Aborted(abort)
    }
}

impl<P: Protocol> Twins<P> {
    fn new() -> Self {
        let engine = impatient::<P>();
        let (first, second) = (TBox::new(&engine, 0), TBox::new(&engine, 0));
        let (counter, rows) =
            (TCounter::new(&engine, 0), Database::on(&engine).table("rows").create().unwrap());
        Self { engine, first, second, counter, rows }
    }

    /// Changes both, and all that tells the same.
    fn raise(&self, tx: &mut Transaction<'_, P>) -> Result<(), Abort> {
        let next = self.first.update(tx, |number| {
            *number += 1;
            *number
        })?;
        self.second.set(tx, next)?;
        self.counter.add(tx, 1)?;
        self.rows.upsert(tx, 0, next).map(drop)
    }

    /// Lets another transaction change both, if this is the first attempt and the protocol lets it.
    fn be_overtaken(&self, tx: &Transaction<'_, P>) {
        if tx.attempt_number() == 0 {
            overtake(&self.engine, |tx| self.raise(tx));
        }
    }

    /// Looks at something, is overtaken, looks at something else, and returns whether they agree.
    fn agree(&self, tx: &mut Transaction<'_, P>, look: Look) -> Result<bool, Abort> {
        match look {
            Look::Values => {
                let first = self.first.get(tx)?;
                self.be_overtaken(tx);
                Ok(first == self.second.get(tx)?)
            }
            Look::WrittenValue => {
                let first = self.first.get(tx)?;
                self.be_overtaken(tx);
                Ok(first == self.second.update(tx, |second| std::mem::replace(second, 7))?)
            }
            Look::MissingRow => {
                let row = self.rows.get(tx, &0)?;
                self.be_overtaken(tx);
                Ok(row.unwrap_or(0) == self.first.get(tx)?)
            }
            Look::Predicate => {
                let is_positive = self.counter.is_at_least(tx, 1)?;
                self.be_overtaken(tx);
                Ok(is_positive == (self.first.get(tx)? > 0))
            }
            Look::Forced => {
                let first = self.first.get(tx)?;
                self.be_overtaken(tx);
                let second = self.second.defer_read(tx, |second| *second)?;
                Ok(tx.force(second)? == first)
            }
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum Look {
    Values,
    WrittenValue,
    MissingRow,
    Predicate,
    Forced,
}

const LOOKS: [Look; 5] = [Look::Values, Look::WrittenValue, Look::MissingRow, Look::Predicate, Look::Forced];

#[test]
fn an_error_of_a_body_that_saw_two_states_is_not_handed_out() {
    for_each_protocol!(3, |P| {
        for look in LOOKS {
            let twins = Twins::<P>::new();
            let result = whatever_time_it_takes(|| {
                twins
                    .engine
                    .try_transact(|tx| if twins.agree(tx, look)? { Ok(()) } else { Err(Failed::Differ) })
            });
            assert_eq!(result, Ok(()), "{look:?}");
        }
    });
}

#[test]
fn a_panic_of_a_body_that_saw_two_states_does_not_pass_on() {
    for_each_protocol!(3, |P| {
        for look in LOOKS {
            let twins = Twins::<P>::new();
            let result = whatever_time_it_takes(|| {
                twins.engine.transact(|tx| {
                    let agree = twins.agree(tx, look)?;
                    assert!(agree, "they differ");
                    Ok(())
                })
            });
            assert_eq!(result, Ok(()), "{look:?}");
        }
    });
}

#[test]
fn a_rollback_of_a_body_that_saw_two_states_is_not_done() {
    for_each_protocol!(3, |P| {
        for look in LOOKS {
            let twins = Twins::<P>::new();
            let result = whatever_time_it_takes(|| {
                twins
                    .engine
                    .transact(|tx| if twins.agree(tx, look)? { Ok(()) } else { Err(Abort::rollback()) })
            });
            assert_eq!(result, Ok(()), "{look:?}");
        }
    });
}

/// Something deferred that does not want to commit unless two numbers are equal.
type Condition<'c, P> = &'c dyn Fn(&mut Transaction<'_, P>, Deferred<bool>) -> Result<(), Abort>;

#[test]
fn a_deferred_condition_or_panic_counts_only_if_what_was_read_is_one_state() {
    for_each_protocol!(3, |P| {
        let conditions: [Condition<'_, P>; 2] = [&|tx, equal| tx.require(equal), &|tx, equal| {
            tx.compute(equal, |equal| assert!(equal, "they differ")).map(drop)
        }];
        for condition in conditions {
            for settled_by in [None, Some("force"), Some("a read")] {
                let twins = Twins::<P>::new();
                let result = whatever_time_it_takes(|| {
                    twins.engine.transact(|tx| {
                        let first = twins.first.get(tx)?;
                        twins.be_overtaken(tx);
                        let second = twins.second.defer_read(tx, |second| *second)?;
                        let equal = tx.compute(second, move |second| second == first)?;
                        condition(tx, equal)?;
                        match settled_by {
                            None => Ok(()),
                            Some("force") => tx.force(second).map(drop),
                            Some(_) => twins.second.get(tx).map(drop),
                        }
                    })
                });
                assert_eq!(result, Ok(()), "settled by {settled_by:?}");
            }
        }
    });
}

#[test]
fn an_error_or_a_panic_of_a_body_that_saw_one_state_passes_on() {
    for_each_protocol!(2, |P| {
        let twins = Twins::<P>::new();
        let failed: Result<(), _> = twins.engine.try_transact(|tx| {
            twins.raise(tx)?;
            Err(Failed::Differ)
        });
        assert_eq!(failed, Err(Error::Rollback(Failed::Differ)));
        let words = support::panic_of(|| {
            twins.engine.transact(|tx| -> Result<(), Abort> {
                twins.raise(tx)?;
                panic!("as it wants")
            })
        });
        assert_eq!(words, "as it wants");
        assert_eq!(twins.engine.transact(|tx| twins.second.get(tx)), Ok(0));
        assert_eq!(twins.engine.transact(|tx| twins.rows.get(tx, &0)), Ok(None));
    });
}

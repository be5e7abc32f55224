//! Deferred operations as they read: what they give, in which order they are seen, what makes a transaction wild.

use crate::support;
use crate::support::for_each_protocol;
use hotrow::operations::Constant;
use hotrow::{Abort, Counter, Engine, Error, Misuse, Profile, Protocol, TArray, TBox, TCounter};
use std::cell::Cell;
use std::rc::Rc;

/// Counts how often intentions run.
#[derive(Clone, Default)]
struct Runs(Rc<Cell<u32>>);

impl Runs {
    fn count(&self) {
        self.0.set(self.0.get() + 1);
    }
    fn so_far(&self) -> u32 {
        self.0.get()
    }
}

#[derive(Debug, PartialEq)]
enum Refused {
    Asked,
    Told,
}

impl From<Abort> for Refused {
    fn from(_: Abort) -> Self {
        Refused::Told
    }
}

/// Commits of tame transactions, and what they are where nothing is deferred: none.
fn tame<P: Protocol>(engine: &Engine<P>) -> (u64, u64) {
    let statistics = engine.statistics();
    let tame = (statistics.count(&Counter::TAME_COMMITS), statistics.count(&Counter::TAME_ABORTS));
    if !crate::support::defers() {
        assert_eq!(tame, (0, 0));
    }
    tame
}

#[test]
fn a_result_is_there_when_its_transaction_has_committed() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let account = TBox::new(&engine, 10i64);
        let runs = Runs::default();
        let deposit = |tx: &mut hotrow::Transaction<'_, P>| {
            let runs = runs.clone();
            account.defer_update(tx, 5i64, move |balance, amount| {
                runs.count();
                *balance += amount;
                *balance
            })
        };
        assert_eq!(engine.transact_deferred(deposit), Ok(15));
        assert_eq!(
            engine.try_transact_deferred::<_, Refused>(Profile::UNKNOWN, |tx| Ok(deposit(tx)?)),
            Ok(20)
        );
        assert_eq!(engine.transact_deferred(deposit), Ok(25));
        assert_eq!(engine.transact(|tx| deposit(tx).map(|_| 1)), Ok(1), "a result that nobody asks for");
        assert_eq!(runs.so_far(), 4, "each intention runs once");
        assert_eq!(engine.transact_deferred(|tx| account.defer_read(tx, |balance| *balance)), Ok(30));
        let refused = engine.try_transact_deferred(Profile::UNKNOWN, |tx| {
            deposit(tx)?;
            let known = tx.known(1);
            if tx.attempt_number() == 0 { Err(Refused::Asked) } else { Ok(known) }
        });
        assert_eq!(refused, Err(Error::Rollback(Refused::Asked)));
        assert_eq!(engine.transact(|tx| account.get(tx)), Ok(30));
        assert_eq!(tame(&engine), if crate::support::defers() { (5, 0) } else { (0, 0) });
    });
}

#[test]
fn nothing_runs_before_the_commit_where_the_protocol_defers() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let number = TBox::new(&engine, 1);
        let runs = Runs::default();
        engine
            .transact(|tx| {
                let in_update = runs.clone();
                let old = number.defer_update(tx, (), move |number, ()| {
                    in_update.count();
                    std::mem::replace(number, 2)
                })?;
                let in_computation = runs.clone();
                tx.compute(old, move |_| in_computation.count())?;
                assert_eq!(runs.so_far(), if crate::support::defers() { 0 } else { 2 });
                Ok(())
            })
            .unwrap();
        assert_eq!(runs.so_far(), 2);
    });
}

#[test]
fn deferred_code_reads_like_code_that_is_not() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let accounts = TArray::new(&engine, 2, |_| 100i64);
        let (fees, log) = (TCounter::new(&engine, 0), TBox::new(&engine, String::new()));
        let transfer = |amount: i64| {
            engine.transact_deferred(|tx| {
                let from = accounts.defer_read(tx, 0, |balance| *balance)?;
                let to = accounts.defer_read(tx, 1, |balance| *balance)?;
                let fee = amount / 10;
                tx.require(from.at_least(amount + fee) & to.less_than(1_000))?;
                accounts.defer_set(tx, 0, from - (amount + fee))?;
                accounts.defer_set(tx, 1, to + amount)?;
                fees.defer_add(tx, fee)?;
                log.defer_set(tx, from.zip(to).map(|(from, to)| format!("{from} and {to}")))?;
                tx.compute((from - amount, to + amount), |(from, to)| from < to)
            })
        };
        assert_eq!(transfer(20), Ok(true));
        assert_eq!(transfer(70), Ok(true));
        assert!(matches!(transfer(10), Err(Error::Rollback(_))));
        let (from, to, fees, log) = engine
            .transact(|tx| Ok((accounts.get(tx, 0)?, accounts.get(tx, 1)?, fees.get(tx)?, log.get(tx)?)))
            .unwrap();
        assert_eq!((from, to, fees, log.as_str()), (1, 190, 9, "78 and 120"));
        assert_eq!(tame(&engine).0, if crate::support::defers() { 2 } else { 0 });
    });
}

#[test]
fn results_are_inputs_of_what_is_deferred_later_on_whatever_object() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        // In the order of ranks the data flow backwards and forwards.
        let (mut first, mut last) = (TBox::new(&engine, 1u64), TBox::new(&engine, 1_000u64));
        let mut counter = TCounter::new(&engine, 50);
        first.set_rank(1);
        counter.set_rank(2);
        last.set_rank(3);
        let seen = engine.transact_deferred(|tx| {
            let from_last = last.defer_read(tx, |value| *value)?;
            let from_first = first.defer_update(tx, from_last, |value, input| {
                *value += input;
                *value
            })?;
            counter.defer_set(tx, from_first.map(|value| value as i64))?;
            counter.defer_add(tx, 1)?;
            let counted = counter.defer_get(tx)?;
            last.defer_update(tx, (counted, from_first, Constant(2)), |value, (counted, first, two)| {
                *value = counted as u64 + first + two;
                *value
            })
        });
        assert_eq!(seen, Ok(1_002 + 1_001 + 2));
        let all = engine.transact(|tx| Ok((first.get(tx)?, counter.get(tx)?, last.get(tx)?)));
        assert_eq!(all, Ok((1_001, 1_002, 2_005)));
        assert_eq!(tame(&engine).0, u64::from(crate::support::defers()));
    });
}

#[test]
fn own_changes_are_seen_whichever_of_them_were_deferred() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let (left, right) = (TBox::new(&engine, 1), TBox::new(&engine, 10));
        engine
            .transact(|tx| {
                let doubled = left.defer_update(tx, (), |value, ()| {
                    *value *= 2;
                    *value
                })?;
                right.defer_set(tx, doubled + 100)?;
                // Of the same segment as the last one; it needs the first.
                assert_eq!(right.get(tx)?, 102);
                assert_eq!(left.get(tx)?, 2);
                left.update(tx, |value| *value += 1)?;
                let kept = left.defer_update(tx, (), |value, ()| {
                    *value *= 10;
                    *value
                })?;
                left.set(tx, 7)?;
                assert_eq!(tx.force(kept)?, 30, "it ran before the value was set");
                left.defer_update(tx, kept, |value, kept| *value += kept)?;
                assert_eq!(left.update(tx, |value| std::mem::replace(value, 5))?, 37);
                // Deferred after eager.
                right.set(tx, 1)?;
                right.defer_update(tx, (), |value, ()| *value += 1)?;
                Ok(())
            })
            .unwrap();
        assert_eq!(engine.transact(|tx| Ok((left.get(tx)?, right.get(tx)?))), Ok((5, 2)));
        let after = engine.transact_deferred(|tx| {
            left.set(tx, 8)?;
            left.defer_read(tx, |value| *value)
        });
        assert_eq!(after, Ok(8));
    });
}

#[test]
fn reading_something_else_runs_nothing_that_was_deferred() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let (left, right) = (TBox::new(&engine, 1), TBox::new(&engine, 10));
        let runs = Runs::default();
        engine
            .transact(|tx| {
                let inside = runs.clone();
                left.defer_update(tx, (), move |value, ()| {
                    inside.count();
                    *value += 1;
                })?;
                assert_eq!(right.get(tx)?, 10);
                assert_eq!(runs.so_far(), u32::from(!crate::support::defers()));
                assert_eq!(left.get(tx)?, 2);
                assert_eq!(runs.so_far(), 1);
                Ok(())
            })
            .unwrap();
    });
}

#[test]
fn operations_of_a_counter_see_what_was_deferred_on_it() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let (counter, other) = (TCounter::new(&engine, 5), TBox::new(&engine, 100i64));
        engine
            .transact(|tx| {
                let amount = other.defer_read(tx, |value| *value)?;
                counter.defer_add(tx, amount)?;
                assert!(counter.is_between(tx, 105, 105)?);
                counter.defer_add(tx, 1)?;
                assert!(!counter.is_at_most(tx, 105)?);
                counter.defer_add(tx, amount)?;
                assert_eq!(counter.get(tx)?, 206);
                counter.defer_set(tx, amount - 90)?;
                counter.add(tx, 2)?;
                assert_eq!(counter.get(tx)?, 12);
                counter.add(tx, 1)?;
                let seen = counter.defer_get(tx)?;
                counter.defer_set(tx, seen * 2)?;
                counter.set(tx, 1)?;
                assert_eq!(tx.force(seen)?, 13);
                assert!(counter.is_between(tx, 1, 1)?);
                counter.defer_add(tx, 3)
            })
            .unwrap();
        assert_eq!(engine.transact(|tx| counter.get(tx)), Ok(4));
        // A test before, and what is deferred on top of it.
        let seen = engine.transact_deferred(|tx| {
            assert!(counter.is_at_least(tx, 4)?);
            counter.defer_add(tx, -4)?;
            counter.defer_get(tx)
        });
        assert_eq!(seen, Ok(0));
        // Increments that read nothing leave the transaction tame, whatever they run beside.
        let before = tame(&engine).0;
        engine
            .transact(|tx| {
                counter.add(tx, 1)?;
                counter.defer_add(tx, 1)
            })
            .unwrap();
        assert_eq!(tame(&engine).0 - before, u64::from(crate::support::defers()));
        assert_eq!(engine.transact(|tx| counter.get(tx)), Ok(2));
    });
}

#[test]
fn a_value_that_is_forced_is_right_and_makes_the_transaction_wild() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let cells = TArray::new(&engine, 10, |index| index);
        let doubled = engine.transact(|tx| {
            let index = cells.defer_read(tx, 3, |value| value + 1)?;
            let forced = tx.force(index)?;
            assert_eq!(tx.force(index)?, forced, "as often as one likes");
            cells.defer_update(tx, forced, index * 100, |value, input| *value += input)?;
            let known = tx.known(2);
            Ok(tx.force(known)? * forced)
        });
        assert_eq!(doubled, Ok(8));
        assert_eq!(tame(&engine), (0, 0));
        assert_eq!(engine.transact(|tx| cells.get(tx, 4)), Ok(404));
        // A value that was known all along depends on nobody.
        engine
            .transact(|tx| {
                let one = tx.known(1);
                let two = tx.compute(one, |one| one + 1)?;
                let index = tx.force(two)?;
                cells.defer_set(tx, index, two)
            })
            .unwrap();
        assert_eq!(tame(&engine).0, u64::from(crate::support::defers()));
        assert_eq!(engine.statistics().aborts, 0);
    });
}

#[test]
fn a_transaction_that_was_said_to_read_only_may_defer_reads() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let number = TBox::named(&engine, "number", 1);
        let counter = TCounter::named(&engine, "counter", 1);
        let mut worker = engine.worker().unwrap();
        assert_eq!(worker.transact_deferred(|tx| number.defer_read(tx, |value| *value)), Ok(1));
        let seen = worker.try_transact_deferred::<_, Abort>(Profile::READ_ONLY, |tx| {
            let counted = counter.defer_get(tx)?;
            let seen = number.defer_read(tx, |value| *value)?;
            tx.compute((seen, counted), |(seen, counted)| i64::from(seen) + counted)
        });
        assert_eq!(seen, Ok(2));
        let refusals: [&dyn Fn(&mut hotrow::Transaction<'_, P>) -> Result<(), Abort>; 4] = [
            &|tx| number.defer_set(tx, 2),
            &|tx| number.defer_update(tx, (), |value, ()| *value = 2).map(|_| ()),
            &|tx| counter.defer_add(tx, 1),
            &|tx| counter.defer_set(tx, 1),
        ];
        for (at, refused) in refusals.iter().enumerate() {
            let object = if at < 2 { "number" } else { "counter" }.to_owned();
            let result = worker.try_transact_as::<(), Abort>(Profile::READ_ONLY, refused);
            assert_eq!(result, Err(Error::Misuse(Misuse::ReadOnly { object })));
        }
        assert_eq!(worker.transact(|tx| Ok((number.get(tx)?, counter.get(tx)?))), Ok((1, 1)));
    });
}

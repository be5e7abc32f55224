//! The counter beside an integer.

use crate::support::{self, for_each_deferring_protocol};
use hotrow::{Abort, Engine, Error, Misuse, Protocol, TCounter, TCounters, Transaction};
use hotrow_check::datatype::{Datatype, Effort, check_datatype};

struct Counter;

#[derive(Debug, Clone)]
enum Operation {
    Add(i64),
    Set(i64),
    Get,
    IsAtLeast(i64),
    IsBetween(i64, i64),
}

impl Datatype for Counter {
    type Model = i64;
    type Operation = Operation;
    type Output = i64;
    type Object<P: Protocol> = TCounter<P>;

    fn states() -> Vec<i64> {
        vec![0, 1, i64::MAX - 1]
    }

    fn operations() -> Vec<Operation> {
        use Operation::{Add, Get, IsAtLeast, IsBetween, Set};
        vec![Add(1), Add(-1), Add(2), Set(1), Get, IsAtLeast(1), IsAtLeast(2), IsBetween(0, 1)]
    }

    fn apply(value: &mut i64, operation: &Operation) -> i64 {
        match *operation {
            Operation::Add(amount) => *value = value.wrapping_add(amount),
            Operation::Set(new) => *value = new,
            Operation::Get => return *value,
            Operation::IsAtLeast(bound) => return i64::from(*value >= bound),
            Operation::IsBetween(low, high) => return i64::from((low..=high).contains(value)),
        }
        0
    }

    fn make<P: Protocol>(engine: &Engine<P>, state: &i64) -> TCounter<P> {
        TCounter::new(engine, *state)
    }

    fn operate<P: Protocol>(
        counter: &TCounter<P>,
        tx: &mut Transaction<'_, P>,
        operation: &Operation,
    ) -> Result<i64, Abort> {
        match *operation {
            Operation::Add(amount) => counter.add(tx, amount)?,
            Operation::Set(new) => counter.set(tx, new)?,
            Operation::Get => return counter.get(tx),
            Operation::IsAtLeast(bound) => return Ok(counter.is_at_least(tx, bound)?.into()),
            Operation::IsBetween(low, high) => return Ok(counter.is_between(tx, low, high)?.into()),
        }
        Ok(0)
    }

    fn state<P: Protocol>(counter: &TCounter<P>, tx: &mut Transaction<'_, P>) -> Result<i64, Abort> {
        counter.get(tx)
    }
}

#[test]
fn a_counter_is_an_integer() {
    check_datatype::<Counter>(Effort::SHORT);
}

#[test]
fn counters_are_added_to_at_once_or_later_and_there_is_none_behind_the_last() {
    for_each_deferring_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let mut all = TCounters::named(&engine, "stock", [1, 2, 3]);
        all.set_rank(2);
        engine
            .transact(|tx| {
                all.defer_add(tx, 2, 10)?;
                all.defer_add(tx, 0, 20)?;
                all.add(tx, 1, 30)?;
                assert!(!all.is_at_least(tx, 1, 33)?);
                Ok(())
            })
            .unwrap();
        let values =
            engine.transact(|tx| (0..all.len()).map(|at| all.get(tx, at)).collect::<Result<Vec<_>, _>>());
        assert_eq!(values, Ok(vec![21, 32, 13]));
        assert!(!all.is_empty() && format!("{all:?}").contains("\"stock\", len: 3"), "{all:?}");
        let behind = engine.transact(|tx| all.add(tx, 3, 1));
        let expected = Misuse::OutOfBounds { object: "stock".into(), index: 3, length: 3 };
        assert_eq!(behind, Err(Error::Misuse(expected)));
    });
}

#[test]
#[ignore = "long: run with -- --ignored"]
fn a_counter_is_an_integer_for_long() {
    check_datatype::<Counter>(Effort::LONG);
}

//! The counter beside an integer.

use hotrow::{Abort, Engine, Protocol, TCounter, Transaction};
use hotrow_check::datatype::Datatype;

pub(crate) struct Counter;

#[derive(Debug, Clone)]
pub(crate) enum Operation {
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
        // No sum of some operations leaves the range: that would be a rollback.
        vec![0, 1, i64::MAX - 20]
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

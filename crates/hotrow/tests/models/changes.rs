//! Numbers that are changed at the commit, in a box, in an array and in a row, beside an integer.

use hotrow::{Abort, Column, Database, Engine, Protocol, TArray, TBox, Table, Transaction};
use hotrow_check::datatype::Datatype;

/// The place of the number: a box, an element of an array, a row.
pub(crate) struct Number<const PLACE: usize>;

pub(crate) enum Place<P: Protocol> {
    Box(TBox<u32, P>),
    Array(TArray<u32, P>),
    Row(Table<u64, u32, P>),
}

#[derive(Debug, Clone)]
pub(crate) enum Operation {
    Add(u32),
    Take(u32),
    Max(u32),
    Double,
    Set(u32),
    Get,
}

impl<const PLACE: usize> Datatype for Number<PLACE> {
    type Model = u32;
    type Operation = Operation;
    type Output = u32;
    type Object<P: Protocol> = Place<P>;

    fn states() -> Vec<u32> {
        vec![0, 1, 5]
    }

    fn operations() -> Vec<Operation> {
        use Operation::{Add, Double, Get, Max, Set, Take};
        vec![Add(1), Take(1), Take(2), Take(4), Max(2), Double, Set(1), Get]
    }

    fn apply(value: &mut u32, operation: &Operation) -> u32 {
        match *operation {
            Operation::Add(amount) => *value = value.wrapping_add(amount),
            Operation::Take(amount) => match value.checked_sub(amount) {
                Some(left) => *value = left,
                None => return 0,
            },
            Operation::Max(bound) => *value = bound.max(*value),
            Operation::Double => *value = value.wrapping_mul(2),
            Operation::Set(new) => *value = new,
            Operation::Get => return *value,
        }
        1
    }

    fn make<P: Protocol>(engine: &Engine<P>, state: &u32) -> Place<P> {
        match PLACE {
            0 => Place::Box(TBox::new(engine, *state)),
            1 => Place::Array(TArray::new(engine, 1, |_| *state)),
            _ => {
                let loading = Database::on(engine).table("rows").load().unwrap();
                loading.insert(1, *state).unwrap();
                Place::Row(loading.finish().unwrap())
            }
        }
    }

    fn operate<P: Protocol>(
        place: &Place<P>,
        tx: &mut Transaction<'_, P>,
        operation: &Operation,
    ) -> Result<u32, Abort> {
        let whole = Column::whole();
        let double = |value: &mut u32| *value = value.wrapping_mul(2);
        match (operation.clone(), place) {
            (Operation::Get, _) => return Self::state(place, tx),
            (Operation::Take(amount), _) => {
                let taken = match place {
                    Place::Box(number) => number.subtract_if_enough(tx, amount),
                    Place::Array(numbers) => numbers.subtract_if_enough(tx, 0, amount),
                    Place::Row(rows) => rows.subtract_if_enough(tx, &1, whole, amount),
                };
                return Ok(taken?.into());
            }
            (Operation::Add(amount), Place::Box(number)) => number.add(tx, amount)?,
            (Operation::Add(amount), Place::Array(numbers)) => numbers.add(tx, 0, amount)?,
            (Operation::Add(amount), Place::Row(rows)) => rows.add(tx, &1, whole, amount)?,
            (Operation::Max(bound), Place::Box(number)) => number.max(tx, bound)?,
            (Operation::Max(bound), Place::Array(numbers)) => numbers.max(tx, 0, bound)?,
            (Operation::Max(bound), Place::Row(rows)) => rows.max(tx, &1, whole, bound)?,
            (Operation::Double, Place::Box(number)) => number.apply(tx, double)?,
            (Operation::Double, Place::Array(numbers)) => numbers.apply(tx, 0, double)?,
            (Operation::Double, Place::Row(rows)) => rows.apply(tx, &1, double)?,
            (Operation::Set(new), Place::Box(number)) => number.set(tx, new)?,
            (Operation::Set(new), Place::Array(numbers)) => numbers.set(tx, 0, new)?,
            (Operation::Set(new), Place::Row(rows)) => rows.set(tx, &1, whole, new)?,
        }
        Ok(1)
    }

    fn state<P: Protocol>(place: &Place<P>, tx: &mut Transaction<'_, P>) -> Result<u32, Abort> {
        match place {
            Place::Box(number) => number.get(tx),
            Place::Array(numbers) => numbers.get(tx, 0),
            Place::Row(rows) => Ok(rows.get(tx, &1)?.expect("it stays")),
        }
    }
}

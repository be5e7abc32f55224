//! The vector beside the standard library's.

use hotrow::{Abort, Engine, Protocol, TVector, Transaction};
use hotrow_check::datatype::Datatype;

pub(crate) struct Vector;

#[derive(Debug, Clone)]
pub(crate) enum Operation {
    Push(u64),
    Pop,
    DiscardLast,
    Get(usize),
    Set(usize, u64),
    Double(usize),
    Insert(usize, u64),
    Remove(usize),
    Clear,
    IsLongerThan(usize),
    Len,
    Position(u64),
}

impl Datatype for Vector {
    type Model = Vec<u64>;
    type Operation = Operation;
    type Output = Option<u64>;
    type Object<P: Protocol> = TVector<u64, P>;

    fn states() -> Vec<Vec<u64>> {
        vec![vec![], vec![1], vec![1, 2, 3]]
    }

    fn operations() -> Vec<Operation> {
        use Operation::{
            Clear, DiscardLast, Double, Get, Insert, IsLongerThan, Len, Pop, Position, Push, Remove, Set,
        };
        vec![
            Push(4),
            Push(5),
            Push(6),
            Pop,
            Pop,
            DiscardLast,
            DiscardLast,
            Get(0),
            Get(1),
            Get(2),
            Set(0, 7),
            Set(2, 8),
            Double(0),
            Double(2),
            Insert(1, 9),
            Remove(0),
            Clear,
            IsLongerThan(0),
            IsLongerThan(2),
            Len,
            Position(3),
        ]
    }

    fn apply(vector: &mut Vec<u64>, operation: &Operation) -> Option<u64> {
        match *operation {
            Operation::Push(element) => vector.push(element),
            Operation::Pop => return vector.pop(),
            Operation::DiscardLast => return Some(vector.pop().is_some().into()),
            Operation::Get(index) => return vector.get(index).copied(),
            Operation::Set(index, element) => {
                return Some(vector.get_mut(index).map(|place| *place = element).is_some().into());
            }
            Operation::Double(index) => {
                return vector.get_mut(index).map(|place| {
                    *place *= 2;
                    *place
                });
            }
            Operation::Insert(index, element) => {
                let fits = index <= vector.len();
                if fits {
                    vector.insert(index, element);
                }
                return Some(fits.into());
            }
            Operation::Remove(index) => return (index < vector.len()).then(|| vector.remove(index)),
            Operation::Clear => vector.clear(),
            Operation::IsLongerThan(length) => return Some((vector.len() > length).into()),
            Operation::Len => return Some(vector.len() as u64),
            Operation::Position(wanted) => {
                return vector.iter().position(|element| *element == wanted).map(|index| index as u64);
            }
        }
        None
    }

    fn make<P: Protocol>(engine: &Engine<P>, state: &Vec<u64>) -> TVector<u64, P> {
        TVector::with_elements(engine, state.iter().copied())
    }

    fn operate<P: Protocol>(
        vector: &TVector<u64, P>,
        tx: &mut Transaction<'_, P>,
        operation: &Operation,
    ) -> Result<Option<u64>, Abort> {
        match *operation {
            Operation::Push(element) => vector.push(tx, element)?,
            Operation::Pop => return vector.pop(tx),
            Operation::DiscardLast => return Ok(Some(vector.discard_last(tx)?.into())),
            Operation::Get(index) => return vector.get(tx, index),
            Operation::Set(index, element) => return Ok(Some(vector.set(tx, index, element)?.into())),
            Operation::Double(index) => {
                return vector.update(tx, index, |place| {
                    *place *= 2;
                    *place
                });
            }
            Operation::Insert(index, element) => return Ok(Some(vector.insert(tx, index, element)?.into())),
            Operation::Remove(index) => return vector.remove(tx, index),
            Operation::Clear => vector.clear(tx)?,
            Operation::IsLongerThan(length) => return Ok(Some(vector.is_longer_than(tx, length)?.into())),
            Operation::Len => return Ok(Some(vector.len(tx)? as u64)),
            Operation::Position(wanted) => {
                let index = vector.position(tx, |element| *element == wanted)?;
                return Ok(index.map(|index| index as u64));
            }
        }
        Ok(None)
    }

    fn state<P: Protocol>(vector: &TVector<u64, P>, tx: &mut Transaction<'_, P>) -> Result<Vec<u64>, Abort> {
        vector.to_vec(tx)
    }
}

//! Lists beside a vector, and sets beside the standard library's.

use hotrow::{Abort, Engine, Protocol, TList, TListSet, Transaction};
use hotrow_check::datatype::Datatype;
use std::collections::BTreeSet;

pub(crate) struct List;

#[derive(Debug, Clone)]
pub(crate) enum ListOperation {
    Insert(u64),
    /// Finds an element greater than another.
    Find(u64),
    Remove(u64),
    IsEmpty,
    Len,
    All,
}

impl Datatype for List {
    type Model = Vec<u64>;
    type Operation = ListOperation;
    type Output = Vec<u64>;
    type Object<P: Protocol> = TList<u64, P>;

    fn states() -> Vec<Vec<u64>> {
        vec![vec![], vec![3], vec![5, 1, 3, 3]]
    }

    fn operations() -> Vec<ListOperation> {
        use ListOperation::{All, Find, Insert, IsEmpty, Len, Remove};
        vec![
            Insert(1),
            Insert(4),
            Insert(9),
            Find(2),
            Find(4),
            Find(8),
            Remove(0),
            Remove(3),
            Remove(6),
            IsEmpty,
            Len,
            All,
        ]
    }

    fn apply(list: &mut Vec<u64>, operation: &ListOperation) -> Vec<u64> {
        match *operation {
            ListOperation::Insert(element) => list.push(element),
            ListOperation::Find(bound) => {
                return list.iter().copied().find(|element| *element > bound).into_iter().collect();
            }
            ListOperation::Remove(bound) => {
                let position = list.iter().position(|element| *element > bound);
                return position.map(|position| list.remove(position)).into_iter().collect();
            }
            ListOperation::IsEmpty => return vec![list.is_empty().into()],
            ListOperation::Len => return vec![list.len() as u64],
            ListOperation::All => return list.clone(),
        }
        vec![]
    }

    fn make<P: Protocol>(engine: &Engine<P>, state: &Vec<u64>) -> TList<u64, P> {
        TList::with_elements(engine, state.iter().copied())
    }

    fn operate<P: Protocol>(
        list: &TList<u64, P>,
        tx: &mut Transaction<'_, P>,
        operation: &ListOperation,
    ) -> Result<Vec<u64>, Abort> {
        match *operation {
            ListOperation::Insert(element) => list.insert(tx, element)?,
            ListOperation::Find(bound) => {
                return Ok(list.find(tx, |element| *element > bound)?.into_iter().collect());
            }
            ListOperation::Remove(bound) => {
                return Ok(list.remove(tx, |element| *element > bound)?.into_iter().collect());
            }
            ListOperation::IsEmpty => return Ok(vec![list.is_empty(tx)?.into()]),
            ListOperation::Len => return Ok(vec![list.len(tx)? as u64]),
            ListOperation::All => return list.to_vec(tx),
        }
        Ok(vec![])
    }

    fn state<P: Protocol>(list: &TList<u64, P>, tx: &mut Transaction<'_, P>) -> Result<Vec<u64>, Abort> {
        list.to_vec(tx)
    }
}

pub(crate) struct ListSet;

#[derive(Debug, Clone)]
pub(crate) enum SetOperation {
    Insert(&'static str),
    Remove(&'static str),
    Contains(&'static str),
    IsEmpty,
    Len,
    All,
}

impl Datatype for ListSet {
    type Model = BTreeSet<String>;
    type Operation = SetOperation;
    type Output = Vec<String>;
    type Object<P: Protocol> = TListSet<String, P>;

    fn states() -> Vec<BTreeSet<String>> {
        vec![[].into(), ["a".into()].into(), ["a".into(), "c".into()].into()]
    }

    fn operations() -> Vec<SetOperation> {
        use SetOperation::{All, Contains, Insert, IsEmpty, Len, Remove};
        let of_key = |key| [Insert(key), Remove(key), Contains(key)];
        [["a", "b", "c"].map(of_key).concat(), vec![IsEmpty, Len, All]].concat()
    }

    fn apply(set: &mut BTreeSet<String>, operation: &SetOperation) -> Vec<String> {
        match *operation {
            SetOperation::Insert(key) => vec![set.insert(key.into()).to_string()],
            SetOperation::Remove(key) => vec![set.remove(key).to_string()],
            SetOperation::Contains(key) => vec![set.contains(key).to_string()],
            SetOperation::IsEmpty => vec![set.is_empty().to_string()],
            SetOperation::Len => vec![set.len().to_string()],
            SetOperation::All => set.iter().cloned().collect(),
        }
    }

    fn make<P: Protocol>(engine: &Engine<P>, state: &BTreeSet<String>) -> TListSet<String, P> {
        TListSet::with_elements(engine, state.iter().rev().chain(state).cloned())
    }

    fn operate<P: Protocol>(
        set: &TListSet<String, P>,
        tx: &mut Transaction<'_, P>,
        operation: &SetOperation,
    ) -> Result<Vec<String>, Abort> {
        Ok(match *operation {
            SetOperation::Insert(key) => vec![set.insert(tx, key.into())?.to_string()],
            SetOperation::Remove(key) => vec![set.remove(tx, key)?.to_string()],
            SetOperation::Contains(key) => vec![set.contains(tx, key)?.to_string()],
            SetOperation::IsEmpty => vec![set.is_empty(tx)?.to_string()],
            SetOperation::Len => vec![set.len(tx)?.to_string()],
            SetOperation::All => set.to_vec(tx)?,
        })
    }

    fn state<P: Protocol>(
        set: &TListSet<String, P>,
        tx: &mut Transaction<'_, P>,
    ) -> Result<BTreeSet<String>, Abort> {
        Ok(set.to_vec(tx)?.into_iter().collect())
    }
}

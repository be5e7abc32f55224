//! Maps beside those of the standard library.

use hotrow::{Abort, Direction, Engine, Protocol, THashMap, TOrderedMap, TTreeMap, Transaction};
use hotrow_check::datatype::Datatype;
use std::collections::BTreeMap;
use std::marker::PhantomData;

/// A map of one kind, with the operations that all have.
pub(crate) trait Map: 'static {
    /// True if the map can be read on a snapshot.
    const HAS_SNAPSHOTS: bool = true;

    type Of<P: Protocol>: Send + Sync;

    fn make<P: Protocol>(engine: &Engine<P>, entries: BTreeMap<u64, u64>) -> Self::Of<P>;

    fn operate<P: Protocol>(
        map: &Self::Of<P>,
        tx: &mut Transaction<'_, P>,
        operation: &Operation,
    ) -> Result<Vec<(u64, u64)>, Abort>;
}

#[derive(Debug, Clone)]
pub(crate) enum Operation {
    Get(u64),
    Contains(u64),
    Insert(u64, u64),
    InsertIfAbsent(u64, u64),
    Double(u64),
    DoubleOrInsert(u64),
    Remove(u64),
    First,
    Last,
    /// The entries below a key, or from it on.
    Below(u64),
    From(u64, usize),
    Count,
}

use Operation::{
    Below, Contains, Count, Double, DoubleOrInsert, First, From, Get, Insert, InsertIfAbsent, Last, Remove,
};

/// The keys that operations name.
const KEYS: [u64; 3] = [10, 11, 20];

/// Shows a result that is an entry or none, or one of several facts.
pub(crate) fn entry(key: u64, value: Option<u64>) -> Vec<(u64, u64)> {
    value.map(|value| (key, value)).into_iter().collect()
}

pub(crate) fn double(value: &mut u64) -> u64 {
    *value *= 2;
    *value
}

pub(crate) struct As<M, const SORTED: bool>(PhantomData<M>);

impl<M: Map, const SORTED: bool> Datatype for As<M, SORTED> {
    type Model = BTreeMap<u64, u64>;
    type Operation = Operation;
    type Output = Vec<(u64, u64)>;
    type Object<P: Protocol> = M::Of<P>;

    const HAS_SNAPSHOTS: bool = M::HAS_SNAPSHOTS;

    fn states() -> Vec<Self::Model> {
        let many = (0..30).map(|key| (key, 1));
        vec![[].into(), [(10, 1)].into(), [(10, 1), (20, 2)].into(), many.collect()]
    }

    fn operations() -> Vec<Operation> {
        let of_key = |key| {
            [
                Get(key),
                Contains(key),
                Insert(key, 3),
                InsertIfAbsent(key, 5),
                Double(key),
                DoubleOrInsert(key),
                Remove(key),
            ]
        };
        let mut operations = KEYS.map(of_key).concat();
        if SORTED {
            operations.extend([First, Last, Below(11), From(10, 2), Count]);
        }
        operations
    }

    fn apply(map: &mut Self::Model, operation: &Operation) -> Vec<(u64, u64)> {
        let pair = |(key, value): (&u64, &u64)| (*key, *value);
        match *operation {
            Get(key) => entry(key, map.get(&key).copied()),
            Contains(key) => entry(key, map.contains_key(&key).then_some(1)),
            Insert(key, value) => entry(key, map.insert(key, value)),
            InsertIfAbsent(key, value) => {
                let is_new = !map.contains_key(&key);
                map.entry(key).or_insert(value);
                entry(key, is_new.then_some(1))
            }
            Double(key) => entry(key, map.get_mut(&key).map(double)),
            DoubleOrInsert(key) => entry(key, Some(double(map.entry(key).or_insert(7)))),
            Remove(key) => entry(key, map.remove(&key)),
            First => map.iter().next().map(pair).into_iter().collect(),
            Last => map.iter().next_back().map(pair).into_iter().collect(),
            Below(key) => map.range(..key).map(pair).collect(),
            From(key, limit) => map.range(key..).take(limit).map(pair).collect(),
            Count => vec![(0, map.len() as u64)],
        }
    }

    fn make<P: Protocol>(engine: &Engine<P>, state: &Self::Model) -> M::Of<P> {
        M::make(engine, state.clone())
    }

    fn operate<P: Protocol>(
        map: &M::Of<P>,
        tx: &mut Transaction<'_, P>,
        operation: &Operation,
    ) -> Result<Vec<(u64, u64)>, Abort> {
        M::operate(map, tx, operation)
    }

    fn state<P: Protocol>(map: &M::Of<P>, tx: &mut Transaction<'_, P>) -> Result<Self::Model, Abort> {
        let mut entries = BTreeMap::new();
        for key in 0..40 {
            entries.extend(M::operate(map, tx, &Get(key))?);
        }
        Ok(entries)
    }
}

/// The operations that maps of all kinds have. `$key` makes a key of a number.
macro_rules! operate {
    ($map:ident, $tx:ident, $operation:ident, $key:expr, $sorted:expr) => {
        Ok(match *$operation {
            Get(key) => entry(key, $map.get($tx, &$key(key))?),
            Contains(key) => entry(key, $map.contains_key($tx, &$key(key))?.then_some(1)),
            Insert(key, value) => entry(key, $map.insert($tx, $key(key), value)?),
            InsertIfAbsent(key, value) => {
                entry(key, $map.insert_if_absent($tx, $key(key), value)?.then_some(1))
            }
            Double(key) => entry(key, $map.update($tx, &$key(key), double)?),
            DoubleOrInsert(key) => entry(key, Some($map.update_or_insert($tx, $key(key), || 7, double)?)),
            Remove(key) => entry(key, $map.remove($tx, &$key(key))?),
            First | Last | Below(_) | From(..) | Count => $sorted,
        })
    };
}

/// With keys of any length.
pub(crate) struct Hashed;

fn name(key: u64) -> String {
    format!("the key with the number {key}")
}

impl Map for Hashed {
    type Of<P: Protocol> = THashMap<String, u64, P>;

    fn make<P: Protocol>(engine: &Engine<P>, entries: BTreeMap<u64, u64>) -> Self::Of<P> {
        THashMap::with_entries(engine, entries.into_iter().map(|(key, value)| (name(key), value)))
    }

    fn operate<P: Protocol>(
        map: &Self::Of<P>,
        tx: &mut Transaction<'_, P>,
        operation: &Operation,
    ) -> Result<Vec<(u64, u64)>, Abort> {
        operate!(map, tx, operation, name, unreachable!("a hash map has no order"))
    }
}

pub(crate) struct Sorted;

impl Map for Sorted {
    type Of<P: Protocol> = TOrderedMap<u64, u64, P>;

    fn make<P: Protocol>(engine: &Engine<P>, entries: BTreeMap<u64, u64>) -> Self::Of<P> {
        TOrderedMap::with_entries(engine, entries)
    }

    fn operate<P: Protocol>(
        map: &Self::Of<P>,
        tx: &mut Transaction<'_, P>,
        operation: &Operation,
    ) -> Result<Vec<(u64, u64)>, Abort> {
        operate!(
            map,
            tx,
            operation,
            u64::from,
            match *operation {
                First => map.first(tx)?.into_iter().collect(),
                Last => map.last(tx)?.into_iter().collect(),
                Below(key) => map.collect(tx, ..key, Direction::Ascending, usize::MAX)?,
                From(key, limit) => map.collect(tx, key.., Direction::Ascending, limit)?,
                _ => vec![(0, map.count(tx, ..)? as u64)],
            }
        )
    }
}

pub(crate) struct Tree;

impl Map for Tree {
    type Of<P: Protocol> = TTreeMap<u64, u64, P>;

    fn make<P: Protocol>(engine: &Engine<P>, entries: BTreeMap<u64, u64>) -> Self::Of<P> {
        TTreeMap::with_entries(engine, entries)
    }

    fn operate<P: Protocol>(
        map: &Self::Of<P>,
        tx: &mut Transaction<'_, P>,
        operation: &Operation,
    ) -> Result<Vec<(u64, u64)>, Abort> {
        operate!(
            map,
            tx,
            operation,
            u64::from,
            match *operation {
                First => map.first(tx)?.into_iter().collect(),
                Last => map.last(tx)?.into_iter().collect(),
                Below(key) => {
                    let mut entries = map.range(tx, ..key).rev().collect::<Result<Vec<_>, _>>()?;
                    entries.reverse();
                    entries
                }
                From(key, limit) => map.range(tx, key..).take(limit).collect::<Result<_, _>>()?,
                _ => vec![(0, map.len(tx)? as u64)],
            }
        )
    }
}

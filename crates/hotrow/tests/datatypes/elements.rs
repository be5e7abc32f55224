//! Elements of datatypes: loaded, deferred, dropped, and of types that are not plain.

use crate::support::{self, Census, Counted, by_number, for_each_protocol, panic_of};
use hotrow::{Abort, Error, Misuse, TBox, TCounters, THashMap, TOrderedMap, TPriorityQueue, TQueue, TVector};
use std::cmp::Reverse;

#[test]
fn maps_are_made_of_entries_and_changed_by_deferred_operations() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let map = THashMap::with_entries(&engine, [(1u64, 10u64), (2, 20), (1, 11), (3, 30), (2, 21)]);
        let sorted = TOrderedMap::with_entries(&engine, [(2u64, 20u64), (1, 10), (2, 21)]);
        let (read, inserted) = engine
            .transact_deferred(|tx| {
                let read = map.defer_read(tx, &1, |value| *value)?;
                map.defer_update(tx, &2, read, |value, other| *value += other.unwrap_or_default())?;
                map.defer_remove(tx, &3)?;
                let inserted = sorted.defer_insert(tx, 7u64, 70u64)?;
                tx.compute((read, inserted), |both| both)
            })
            .unwrap();
        assert_eq!((read, inserted), (Some(11), true));
        let after = engine.transact(|tx| Ok((map.get(tx, &2)?, map.get(tx, &3)?, sorted.last(tx)?)));
        assert_eq!(after, Ok((Some(32), None, Some((7, 70)))));
    });
}

#[test]
fn counters_are_added_to_at_once_or_later_and_there_is_none_behind_the_last() {
    for_each_protocol!(1, |P| {
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
fn deferred_pushes_come_in_the_order_of_the_program_and_are_seen_by_later_operations() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let source = TBox::new(&engine, 5u64);
        let (vector, queue) = (TVector::with_elements(&engine, [1]), TQueue::with_elements(&engine, [1]));
        let heap = TPriorityQueue::with_elements(&engine, [Reverse(9)]);
        engine
            .transact(|tx| {
                let five = source.defer_read(tx, |value| *value)?;
                vector.push(tx, 2)?;
                vector.defer_push(tx, five)?;
                queue.defer_push(tx, five)?;
                queue.defer_push(tx, 6)?;
                let reversed = tx.compute(five, Reverse)?;
                heap.defer_push(tx, reversed)?;
                assert_eq!(vector.len(tx)?, 3, "an operation at once runs what was deferred");
                Ok(())
            })
            .unwrap();
        let all = engine.transact(|tx| {
            assert_eq!(queue.pop(tx)?, Some(1));
            Ok((vector.to_vec(tx)?, queue.pop(tx)?, queue.pop(tx)?, heap.pop(tx)?))
        });
        assert_eq!(all, Ok((vec![1, 2, 5], Some(5), Some(6), Some(Reverse(5)))));
    });
}

#[test]
fn elements_that_own_memory_are_dropped_once_whatever_becomes_of_their_transaction() {
    for_each_protocol!(1, |P| {
        let census = Census::default();
        let engine = support::engine::<P>();
        let value = |number| census.value(number);
        let vector = TVector::with_elements(&engine, (0..3).map(value));
        let queue = TQueue::with_elements(&engine, (0..3).map(value));
        let heap = TPriorityQueue::with_elements(&engine, (0..3).map(|number| Ranked::new(value(number))));
        for rolls_back in [true, false] {
            let _ = engine.transact(|tx| {
                for number in 10..14 {
                    vector.push(tx, value(number))?;
                    queue.push(tx, value(number))?;
                    heap.push(tx, Ranked::new(value(number)))?;
                }
                let undone = tx.savepoint(|tx| {
                    vector.pop(tx)?;
                    queue.pop(tx)?;
                    heap.pop(tx)?;
                    heap.push(tx, Ranked::new(value(20)))?;
                    Err::<(), _>(Abort::because("undone"))
                })?;
                assert!(undone.is_err());
                for _ in 0..5 {
                    vector.pop(tx)?;
                    queue.pop(tx)?;
                    heap.pop(tx)?;
                }
                if rolls_back { Err(Abort::rollback()) } else { Ok(()) }
            });
        }
        let left = engine.transact(|tx| {
            let elements: Vec<_> = vector.iter(tx).collect::<Result<_, _>>()?;
            assert_eq!(elements.iter().map(|element| element.number).collect::<Vec<_>>(), [0, 1]);
            assert_eq!(queue.front(tx)?.map(|element| element.number), Some(12));
            assert_eq!(heap.peek(tx)?.map(|element| element.number), Some(1));
            Ok((queue.len(tx)?, heap.len(tx)?))
        });
        assert_eq!(left, Ok((2, 2)));
        drop((vector, queue, heap));
        census.settle(&engine, 0);
    });
}

/// An element that is compared by its number.
#[derive(Clone)]
struct Ranked {
    number: u64,
    _counted: Counted,
}
by_number!(Ranked);

impl Ranked {
    fn new(counted: Counted) -> Self {
        Self { number: counted.number, _counted: counted }
    }
}

#[test]
fn a_comparison_that_panics_ends_the_transaction_and_nothing_else() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let heap = TPriorityQueue::with_elements(&engine, [Touchy(1), Touchy(3)]);
        let message = panic_of(|| {
            engine.transact(|tx| {
                heap.push(tx, Touchy(2))?;
                heap.push(tx, Touchy(0))
            })
        });
        assert!(message.contains("touched"), "{message}");
        let rest = engine.transact(|tx| Ok((heap.pop(tx)?, heap.pop(tx)?, heap.pop(tx)?)));
        let rest =
            rest.map(|(first, second, third)| [first, second, third].map(|left| left.map(|left| left.0)));
        assert_eq!(rest, Ok([Some(3), Some(1), None]));
    });
}

/// An element whose comparison with zero panics.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Touchy(u64);

impl PartialOrd for Touchy {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Touchy {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        assert!(self.0 > 0 && other.0 > 0, "touched");
        self.0.cmp(&other.0)
    }
}

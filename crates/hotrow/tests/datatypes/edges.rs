//! Sizes, orders and panics at the edges of what collections promise.

use crate::support;
use crate::support::{for_each_concurrent_protocol, for_each_protocol};
use hotrow::object::{Access, Commuting, CommutingSegment};
use hotrow::sync::atomic::{AtomicUsize, Ordering as Memory};
use hotrow::{
    Abort, Engine, Error, Misuse, Occ, Protocol, THashMap, TList, TPriorityQueue, TQueue, TVector, TWords,
    Transaction,
};
use std::cmp::Ordering;
use std::panic::{AssertUnwindSafe, catch_unwind};

#[test]
fn no_index_is_too_large() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let vector = TVector::with_elements(&engine, [1, 2, 3]);
        for index in [usize::MAX, usize::MAX - 7, usize::MAX - 8, i64::MAX as usize, i64::MAX as usize + 1] {
            assert_eq!(engine.transact(|tx| vector.get(tx, index)), Ok(None), "{index}");
            assert_eq!(engine.transact(|tx| vector.set(tx, index, 1)), Ok(false));
            assert_eq!(engine.transact(|tx| vector.insert(tx, index, 1)), Ok(false));
            assert_eq!(engine.transact(|tx| vector.remove(tx, index)), Ok(None));
        }
    });
}

#[test]
fn no_length_is_too_large() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let vector = TVector::with_elements(&engine, [1, 2, 3]);
        for index in [usize::MAX, usize::MAX - 1, i64::MAX as usize, i64::MAX as usize + 1] {
            assert_eq!(engine.transact(|tx| vector.is_longer_than(tx, index)), Ok(false), "{index}");
        }
    });
}

#[test]
fn no_index_is_too_large_behind_a_removal() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let vector = TVector::with_elements(&engine, [1, 2, 3]);
        let index = i64::MAX as usize;
        let mut tries = 0;
        let found = engine.transact(|tx| {
            tries += 1;
            assert!(tries < 10);
            vector.discard_last(tx)?;
            vector.get(tx, index)
        });
        assert_eq!(found, Ok(None));
    });
}

#[derive(Debug, Clone)]
struct Call(u32, &'static str);
impl PartialEq for Call {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}
impl Eq for Call {}
impl PartialOrd for Call {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Call {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.cmp(&other.0)
    }
}

#[test]
fn an_own_element_comes_behind_an_equal_one_that_was_there() {
    let engine = Engine::<Occ>::new();
    let calls = TPriorityQueue::with_elements(&engine, [Call(1, "earlier")]);
    let first = engine.transact(|tx| {
        calls.push(tx, Call(1, "later"))?;
        calls.pop(tx)
    });
    assert_eq!(first.unwrap().unwrap().1, "earlier");
}

/// The number of clones before one panics.
static CLONES_LEFT: AtomicUsize = AtomicUsize::new(usize::MAX);
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, hotrow::Value)]
struct Fragile(u32);
impl Clone for Fragile {
    fn clone(&self) -> Self {
        let left = CLONES_LEFT.load(Memory::Relaxed);
        if left != usize::MAX {
            assert!(left > 0, "no more clones");
            CLONES_LEFT.store(left - 1, Memory::Relaxed);
        }
        Self(self.0)
    }
}

/// The elements at the end, and the result of a body that catches the panic of one operation.
fn caught<P: Protocol, O, R>(
    engine: &Engine<P>,
    object: &O,
    clones: usize,
    operation: impl Fn(&O, &mut Transaction<'_, P>) -> Result<R, Abort>,
) -> (bool, Result<(), Error>) {
    let mut panicked = false;
    let result = engine.transact(|tx| {
        CLONES_LEFT.store(clones, Memory::Relaxed);
        let done = catch_unwind(AssertUnwindSafe(|| operation(object, tx)));
        CLONES_LEFT.store(usize::MAX, Memory::Relaxed);
        match done {
            Ok(result) => result.map(drop),
            Err(_) => {
                panicked = true;
                Ok(())
            }
        }
    });
    (panicked, result)
}

#[test]
fn a_panic_of_clone_loses_no_element() {
    let mut lost = Vec::new();
    for clones in 0..6 {
        let engine = &Engine::<Occ>::new();
        let all = || (1..=3).map(Fragile);
        let queue = TQueue::with_elements(engine, all());
        if let (true, Ok(())) = caught(engine, &queue, clones, |queue, tx| queue.pop(tx))
            && engine.transact(|tx| queue.len(tx)) != Ok(3)
        {
            lost.push(format!("TQueue::pop {clones}"));
        }
        let queue = TPriorityQueue::with_elements(engine, all());
        if let (true, Ok(())) = caught(engine, &queue, clones, |queue, tx| queue.pop(tx))
            && engine.transact(|tx| queue.len(tx)) != Ok(3)
        {
            lost.push(format!("TPriorityQueue::pop {clones}"));
        }
        let list = TList::with_elements(engine, all());
        if let (true, Ok(())) = caught(engine, &list, clones, |list, tx| list.remove(tx, |_| true))
            && engine.transact(|tx| list.len(tx)) != Ok(3)
        {
            lost.push(format!("TList::remove {clones}"));
        }
        let vector = TVector::with_elements(engine, all());
        if let (true, Ok(())) = caught(engine, &vector, clones, |vector, tx| vector.remove(tx, 0)) {
            let left = engine.transact(|tx| vector.to_vec(tx)).unwrap();
            if left != all().collect::<Vec<_>>() {
                lost.push(format!("TVector::remove {clones}: {left:?}"));
            }
        }
        let vector = TVector::with_elements(engine, all());
        if let (true, Ok(())) = caught(engine, &vector, clones, |vector, tx| vector.insert(tx, 0, Fragile(0)))
        {
            let left = engine.transact(|tx| vector.to_vec(tx)).unwrap();
            if left != all().collect::<Vec<_>>() {
                lost.push(format!("TVector::insert {clones}: {left:?}"));
            }
        }
        let vector = TVector::with_elements(engine, all());
        if let (true, Ok(())) = caught(engine, &vector, clones, |vector, tx| vector.pop(tx))
            && engine.transact(|tx| vector.len(tx)) != Ok(3)
        {
            lost.push(format!("TVector::pop {clones}"));
        }
    }
    assert!(lost.is_empty(), "{lost:#?}");
}

#[test]
fn addresses_that_are_used_up_are_no_ones() {
    let engine = Engine::<Occ>::new();
    let words = TWords::new(&engine);
    let first = words.allocate(2);
    for too_many in [u64::MAX, u64::MAX - 1, 1 << 46] {
        assert!(catch_unwind(AssertUnwindSafe(|| words.allocate(too_many))).is_err());
    }
    assert_eq!((words.allocate(0), words.allocate(1), words.allocated()), (first + 2, first + 2, 3));
}

#[test]
fn a_map_is_made_of_repeated_keys_beside_a_worker() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let mut worker = engine.worker().unwrap();
        let map = THashMap::with_entries(&engine, [(1u64, 1u64), (1, 2)]);
        assert_eq!(worker.transact(|tx| map.get(tx, &1)), Ok(Some(2)));
    });
}

struct Sum;
impl Commuting for Sum {
    type Value = i64;
    type Change = i64;
    type Condition = Option<i64>;
    fn holds(&self, condition: &Option<i64>, _: Option<&i64>, value: &i64) -> bool {
        condition.is_none_or(|condition| condition == *value)
    }
    fn apply(&self, change: i64, value: &mut i64) {
        *value += change;
    }
}

#[test]
fn a_deferred_change_that_was_announced_as_a_read() {
    for_each_concurrent_protocol!(2, |P| {
        let engine = support::engine::<P>();
        let sum = CommutingSegment::of(&engine, "sum", Sum, 0);
        let done = AtomicUsize::new(0);
        hotrow::sync::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..300 {
                        let result = engine.transact(|tx| {
                            sum.enter(tx)?
                                .defer(Access::Read, (), |sum, ()| sum.change(|change| *change += 1))?;
                            Ok(())
                        });
                        if result.is_ok() {
                            done.fetch_add(1, Memory::Relaxed);
                        }
                    }
                });
            }
        });
        let value = engine.transact(|tx| sum.enter(tx)?.read(|seen| *seen.value)).unwrap();
        assert_eq!(value as usize, done.into_inner());
    });
}

#[derive(Clone)]
#[repr(align(4096))]
struct Huge(u8);
struct Aligned;
impl Commuting for Aligned {
    type Value = Box<u64>;
    type Change = Option<Huge>;
    type Condition = Option<Huge>;
    fn holds(&self, condition: &Option<Huge>, change: Option<&Option<Huge>>, _: &Box<u64>) -> bool {
        for huge in condition.iter().chain(change.into_iter().flatten()) {
            assert_eq!(std::ptr::from_ref(huge).addr() % 4096, 0);
        }
        true
    }
    fn apply(&self, change: Option<Huge>, value: &mut Box<u64>) {
        **value += u64::from(change.unwrap().0);
    }
}

#[test]
fn a_change_of_huge_alignment() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let object = CommutingSegment::of(&engine, "aligned", Aligned, Box::new(0));
        engine
            .transact(|tx| {
                object.enter(tx)?.test(|_| (), |(), condition| *condition = Some(Huge(1)))?;
                object.enter(tx)?.change(|change| *change = Some(Huge(1)))?;
                let undone = tx.savepoint(|tx| {
                    object.enter(tx)?.change(|change| {
                        assert_eq!(std::ptr::from_ref(change.as_ref().unwrap()).addr() % 4096, 0);
                        *change = Some(Huge(2));
                    })?;
                    Err::<(), _>(Abort::because("undone"))
                })?;
                assert!(undone.is_err());
                object.enter(tx)?.own_change(|change| assert_eq!(change.unwrap().as_ref().unwrap().0, 1))
            })
            .unwrap();
        assert_eq!(engine.transact(|tx| object.enter(tx)?.read(|seen| **seen.value)), Ok(1));
    });
}

#[test]
fn addresses_that_were_not_allocated_are_a_misuse() {
    let engine = Engine::<Occ>::new();
    let memory = TWords::new(&engine);
    for address in [0, 1, 5, u64::MAX] {
        let error = engine.transact(|tx| memory.read(tx, address)).unwrap_err();
        assert!(matches!(error, Error::Misuse(Misuse::OutOfBounds { .. })), "{address}: {error}");
    }
    assert_eq!(memory.allocate(3_000), 1);
    assert_eq!(memory.allocate(1), 3_001);
    engine.transact(|tx| memory.write(tx, 3_001, 9)).unwrap();
    assert_eq!(engine.transact(|tx| Ok((memory.read(tx, 3_000)?, memory.read(tx, 3_001)?))), Ok((0, 9)));
}

//! Transactions that are exchanged, nested or dropped, and elements that panic.

use crate::support;
use crate::support::{for_each_concurrent_protocol, for_each_protocol, overtake, whatever_time_it_takes};
use hotrow::object::{Commuting, CommutingSegment, SegmentSlots};
use hotrow::sync::atomic::{AtomicU64, Ordering as Memory};
use hotrow::{
    Abort, ConcurrentMap, Protocol, TBoostedMap, TCounter, TList, TListSet, TPriorityQueue, TQueue, TTreeMap,
    TVector, Transaction,
};
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

#[test]
fn a_history_of_a_vector_is_serializable() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let vector = TVector::with_elements(&engine, [1, 2, 3]);
        let recording = engine.record_history(1 << 20).unwrap();
        engine.transact(|tx| vector.set(tx, 2, 7)).unwrap();
        engine.transact(|tx| vector.discard_last(tx)).unwrap();
        engine.transact(|tx| vector.push(tx, 8)).unwrap();
        assert_eq!(engine.transact(|tx| vector.get(tx, 2)), Ok(Some(8)));
        engine.transact(|tx| vector.set(tx, 2, 9)).unwrap();
        assert_eq!(engine.transact(|tx| vector.get(tx, 2)), Ok(Some(9)));
        let report = hotrow_check::check(&recording.finish()).expect("not malformed");
        assert!(report.is(report.claimed()), "{report}");
    });
}

struct Guarded(Mutex<HashMap<u64, u64>>);
impl ConcurrentMap<u64, u64> for Guarded {
    fn get(&self, key: &u64) -> Option<u64> {
        self.0.lock().unwrap().get(key).copied()
    }
    fn insert(&self, key: u64, value: u64) -> Option<u64> {
        self.0.lock().unwrap().insert(key, value)
    }
    fn remove(&self, key: &u64) -> Option<u64> {
        self.0.lock().unwrap().remove(key)
    }
}

#[test]
fn a_search_that_panics_holds_nothing() {
    for_each_concurrent_protocol!(2, |P| {
        let engine = support::engine::<P>();
        let list = TList::with_elements(&engine, [1, 2, 3]);
        let caught = engine.transact(|tx| {
            let panicked = catch_unwind(AssertUnwindSafe(|| {
                list.find(tx, |one| if *one == 2 { panic!("two") } else { false })
            }));
            assert!(panicked.is_err());
            list.insert(tx, 4)?;
            list.to_vec(tx)
        });
        assert_eq!(caught, Ok(vec![1, 2, 3, 4]));
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            engine.transact(|tx| {
                list.insert(tx, 5)?;
                list.find(tx, |_| panic!("any"))
            })
        }));
        assert!(panicked.is_err());
        engine.transact(|tx| list.insert(tx, 6)).unwrap();
        assert_eq!(engine.transact(|tx| list.len(tx)), Ok(5));
    });
}

#[test]
fn a_search_in_which_another_transaction_changes_the_list() {
    for_each_concurrent_protocol!(2, |P| {
        let engine = support::impatient::<P>();
        let list = TList::with_elements(&engine, [1, 2, 3]);
        let mut inner = Vec::new();
        let found = whatever_time_it_takes(|| {
            engine.transact(|tx| {
                let found = list.find(tx, |_| {
                    if inner.len() < 3 {
                        inner.push(overtake(&engine, |tx| list.insert(tx, 9)));
                    }
                    false
                })?;
                list.insert(tx, 10)?;
                Ok(found)
            })
        });
        assert_eq!(found, Ok(None));
        let all = engine.transact(|tx| list.to_vec(tx)).unwrap();
        let inserted = inner.iter().filter(|inserted| **inserted).count();
        let count = |wanted: u64| all.iter().filter(|one| **one == wanted).count();
        assert_eq!((count(9), count(10)), (inserted, 1));
        assert!(inserted > 0 || !["occ", "tl2", "tictoc"].contains(&support::chosen().as_str()));
    });
}

#[test]
fn a_cover_that_exchanges_the_transaction() {
    for_each_concurrent_protocol!(2, |P| {
        let engine = support::impatient::<P>();
        let length = TCounter::new(&engine, 0);
        let slots = SegmentSlots::<Box<u64>, P>::new(&engine, "slots");
        slots.put(0, Box::new(7));
        let (mut first, mut second) = (engine.worker().unwrap(), engine.worker().unwrap());
        let mut outer = first.begin();
        let mut other = Some(second.begin());
        let seen = slots.enter(&mut outer, 0, |tx| {
            if let Some(mut other) = other.take() {
                std::mem::swap(tx, &mut *other);
                let _ = other.roll_back();
            }
            slots.take_out(0);
            for _ in 0..1000 {
                slots.put(1, Box::new(8));
            }
            length.get(tx).map(|_| ((), false))
        });
        if let Ok((_, Some(segment))) = seen {
            assert_eq!(segment.read(|value| **value), Ok(7));
        }
        let _ = outer.commit();
    });
}

/// Counts those that are alive, and panics on its drop.
static ALIVE: AtomicU64 = AtomicU64::new(0);
#[derive(PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Bomb(u64);
impl hotrow::Value for Bomb {
    type Cell = hotrow::cell::Boxed<Self>;
}
impl Bomb {
    fn new(number: u64) -> Self {
        ALIVE.fetch_add(1, Memory::SeqCst);
        Self(number)
    }
}
impl Clone for Bomb {
    fn clone(&self) -> Self {
        Self::new(self.0)
    }
}
impl Drop for Bomb {
    fn drop(&mut self) {
        let before = ALIVE.fetch_sub(1, Memory::SeqCst);
        assert!(before > 0, "dropped twice");
        if !hotrow::sync::thread::panicking() {
            panic!("boom");
        }
    }
}

fn quietly(work: &mut dyn FnMut()) {
    drop(catch_unwind(AssertUnwindSafe(work)));
}

#[test]
fn elements_whose_drops_panic() {
    for_each_protocol!(1, |P| {
        {
            let engine = support::engine::<P>();
            let all = || (0..3).map(Bomb::new);
            let vector = TVector::with_elements(&engine, all());
            let queue = TQueue::with_elements(&engine, all());
            let urgent = TPriorityQueue::with_elements(&engine, all());
            let list = TList::with_elements(&engine, all());
            let set = TListSet::with_elements(&engine, all());
            let tree = TTreeMap::with_entries(&engine, all().zip(all()));
            for fails in [false, true] {
                for step in 0..19 {
                    quietly(&mut || {
                        let _ = engine.transact(|tx| {
                            tx.savepoint(|tx| {
                                match step {
                                    0 => vector.push(tx, Bomb::new(7))?,
                                    1 => drop(vector.pop(tx)?),
                                    2 => drop(vector.set(tx, 0, Bomb::new(8))?),
                                    3 => drop(vector.discard_last(tx)?),
                                    4 => queue.push(tx, Bomb::new(7))?,
                                    5 => drop(queue.pop(tx)?),
                                    6 => urgent.push(tx, Bomb::new(7))?,
                                    7 => drop(urgent.pop(tx)?),
                                    8 => list.insert(tx, Bomb::new(7))?,
                                    9 => drop(list.remove(tx, |_| true)?),
                                    10 => {
                                        set.insert(tx, Bomb::new(11))?;
                                    }
                                    11 => vector.clear(tx)?,
                                    12 => drop(vector.insert(tx, 0, Bomb::new(3))?),
                                    13 => drop(vector.remove(tx, 0)?),
                                    14 => drop(tree.insert(tx, Bomb::new(7), Bomb::new(7))?),
                                    15 => drop(tree.insert(tx, Bomb::new(0), Bomb::new(8))?),
                                    16 => drop(tree.remove(tx, &Bomb::new(1))?),
                                    17 => drop(tree.first(tx)?),
                                    _ => drop(tree.contains_key(tx, &Bomb::new(9))?),
                                }
                                if fails { Err(Abort::because("no")) } else { Ok(()) }
                            })?
                        });
                    });
                }
            }
            engine
                .transact(|tx| {
                    let lengths =
                        (vector.len(tx)?, queue.len(tx)?, urgent.len(tx)?, list.len(tx)?, set.len(tx)?);
                    eprintln!("{lengths:?} {}", tree.len(tx)?);
                    Ok(())
                })
                .unwrap();
        }
    });
}
/// Reads under opacity: two conditions, then an exact read of the same segment.
struct Pair;
impl Commuting for Pair {
    type Value = u64;
    type Change = u64;
    type Condition = u64;
    fn holds(&self, least: &u64, _: Option<&u64>, value: &u64) -> bool {
        value >= least
    }
    fn apply(&self, change: u64, value: &mut u64) {
        *value = change;
    }
}

#[test]
fn an_exact_read_behind_a_test_agrees_with_it_if_opaque() {
    for_each_concurrent_protocol!(2, |P| {
        let engine = support::impatient::<P>();
        let pair = CommutingSegment::of(&engine, "pair", Pair, 10);
        let (mut first, mut second) = (engine.worker().unwrap(), engine.worker().unwrap());
        let mut open = first.begin();
        pair.enter(&mut open).unwrap().test(|seen| *seen.value, |value, least| *least = value).unwrap();
        let changed = second.transact(|tx| pair.enter(tx)?.change(|change| *change = 5));
        let read = pair.enter(&mut open).and_then(|pair| pair.read(|seen| *seen.value));
        if support::is_opaque::<P>() {
            assert!(changed.is_err() || read.is_err() || *read.as_ref().unwrap() == 10, "{read:?}");
        } else {
            eprintln!("{changed:?} {:?}", read.is_ok());
        }
        drop(open);
    });
}

#[test]
fn objects_dropped_while_transactions_use_them() {
    for_each_concurrent_protocol!(2, |P| {
        for _ in 0..20 {
            let engine = support::impatient::<P>();
            let vector = TVector::with_elements(&engine, (0..20).map(|n| Arc::new(n.to_string())));
            let queue = TQueue::with_elements(&engine, (0..20).map(|n| n.to_string()));
            let list = TList::with_elements(&engine, (0..20).map(|n| n.to_string()));
            let map = TBoostedMap::new(&engine, Guarded(Mutex::default()));
            let tree = TTreeMap::with_entries(&engine, (0..20u64).map(|n| (n, n.to_string())));
            let mut worker = engine.worker().unwrap();
            let mut open = worker.begin();
            let tx: &mut Transaction<'_, P> = &mut open;
            vector.set(tx, 3, Arc::new("x".into())).unwrap();
            vector.push(tx, Arc::new("y".into())).unwrap();
            vector.discard_last(tx).unwrap();
            vector.discard_last(tx).unwrap();
            vector.push(tx, Arc::new("z".into())).unwrap();
            queue.pop(tx).unwrap();
            queue.push(tx, "q".into()).unwrap();
            list.remove(tx, |_| true).unwrap();
            map.insert(tx, 1, 1).unwrap();
            tree.insert(tx, 30, "t".into()).unwrap();
            tree.update(tx, &3, |value| value.push('u')).unwrap();
            tree.remove(tx, &4).unwrap();
            tree.remove(tx, &30).unwrap();
            tree.first(tx).unwrap();
            drop((vector, queue, list, map, tree));
            hotrow::sync::thread::scope(|scope| {
                scope.spawn(|| {
                    for _ in 0..300 {
                        drop(made_and_dropped(&engine));
                    }
                });
            });
            open.commit().unwrap();
        }
    });
}
fn made_and_dropped<P: Protocol>(engine: &hotrow::Engine<P>) -> TVector<u64, P> {
    let vector = TVector::new(engine);
    let _ = engine.transact(|tx| vector.push(tx, 1));
    vector
}

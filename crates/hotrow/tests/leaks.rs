//! Transactions that are leaked or swapped: what they have deferred may be bound to their thread, and what they hold
//! must not harm those that come later. In a process of its own: a leaked transaction stays pinned, and nothing that is
//! retired afterwards is ever freed.

mod support;

use hotrow::object::ObjectMeta;
use hotrow::operations::Constant;
use hotrow::sync::{Arc, Mutex, lock, thread};
use hotrow::{
    ConcurrentMap, Database, Engine, Error, Misuse, OpenTransaction, Protocol, RetryPolicy, TBoostedMap,
    TBox, TCounter, Table, Worker,
};
use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;
use support::{Census, elsewhere, for_each_concurrent_protocol, for_each_protocol};

/// A leaked transaction never unpins its thread. Its worker may be sent to another one, which must not do it either.
#[test]
fn a_worker_goes_on_elsewhere_though_its_transaction_was_leaked() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let number = TBox::new(&engine, 1u64);
        let mut worker = engine.worker().unwrap();
        std::mem::forget(worker.begin());
        let there = &number;
        let seen = thread::scope(|scope| {
            let run = move || {
                let seen = worker.transact(|tx| there.get(tx)).unwrap();
                std::mem::forget(worker.begin());
                drop(worker);
                seen
            };
            scope.spawn(run).join().unwrap()
        });
        assert_eq!(seen, 1);
        assert_eq!(engine.transact(|tx| number.get(tx)).unwrap(), 1);
    });
}

/// A misuse of which a count shows whether it was dropped.
#[derive(Debug, thiserror::Error)]
#[error("a misuse")]
struct CountedMisuse(Arc<()>);

/// The report of a conflict may hold a pin, which must not be dropped by another thread: nothing is that has stopped a leaked transaction.
#[test]
fn the_cause_that_has_stopped_a_leaked_transaction_is_never_dropped_by_another_thread() {
    for_each_protocol!(1, |P| {
        for goes_on in [true, false] {
            let engine = support::engine::<P>();
            let meta = ObjectMeta::new(engine.id(), "misused");
            let cause = Arc::new(());
            let mut worker = engine.worker().unwrap();
            let mut open = worker.begin();
            let misuse = Misuse::of(CountedMisuse(cause.clone()));
            let _ = open.enter(&meta).unwrap().misuse(misuse);
            std::mem::forget(open);
            elsewhere(move || {
                if goes_on {
                    worker.begin().commit().unwrap();
                }
                drop(worker);
            });
            assert_eq!(Arc::strong_count(&cause), 2);
        }
    });
}

/// Defers something with each kind of thing that it may hold: a result, inputs, a closure.
fn defer_with<P: Protocol>(open: &mut OpenTransaction<'_, P>, number: &TBox<u64, P>, shared: &Rc<()>) {
    let (first, second, third) = (shared.clone(), shared.clone(), shared.clone());
    let known = open.known(first);
    open.compute((known, Constant(second)), move |both| (both, third)).unwrap();
    let held = shared.clone();
    number.defer_update(open, (), move |number, ()| *number += Rc::strong_count(&held) as u64).unwrap();
}

#[test]
fn operations_that_a_leaked_transaction_deferred_are_never_dropped_by_another_thread() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let shared = Rc::new(());
        for goes_on in [true, false] {
            let number = TBox::new(&engine, 0u64);
            let mut worker = engine.worker().unwrap();
            let mut open = worker.begin();
            defer_with(&mut open, &number, &shared);
            std::mem::forget(open);
            let held = Rc::strong_count(&shared);
            assert!(held > 1);
            // The reference count is this thread's: another one must not touch it.
            elsewhere(move || {
                if goes_on {
                    drop(worker.begin());
                }
                drop(worker);
            });
            assert_eq!(Rc::strong_count(&shared), held);
        }
        // Values that are not leaked are dropped, here.
        let held = Rc::strong_count(&shared);
        let other = TBox::new(&engine, 0u64);
        let mut worker = engine.worker().unwrap();
        let mut open = worker.begin();
        defer_with(&mut open, &other, &shared);
        drop(open);
        assert_eq!(Rc::strong_count(&shared), held);
    });
}

struct World<P: Protocol> {
    text: TBox<String, P>,
    count: TCounter<P>,
    rows: [Table<u64, support::Counted, P>; 2],
}

impl<P: Protocol> World<P> {
    fn new(engine: &Engine<P>, census: &Census) -> Self {
        let rows = [
            Database::on(engine).table("hash").hash(4).create().unwrap(),
            Database::on(engine).table("ordered").create().unwrap(),
        ];
        for table in &rows {
            table.bulk_insert((0..10).map(|key| (key, census.value(key)))).unwrap();
        }
        Self { text: TBox::new(engine, String::from("text")), count: TCounter::new(engine, 0), rows }
    }

    fn use_all(&self, worker: &mut Worker<P>, census: &Census, key: u64) -> Result<(), Error> {
        worker.transact(|tx| {
            self.text.update(tx, |text| text.push('.'))?;
            self.count.add(tx, 1)?;
            self.count.is_at_least(tx, 0)?;
            for table in &self.rows {
                table.update_if_present(tx, &1, |row| row.number += 1)?;
                table.delete(tx, &key)?;
                table.insert_if_absent(tx, 100 + key, census.value(key))?;
                table.insert_if_absent(tx, 50, census.value(key))?;
            }
            Ok(())
        })
    }
}

/// A leaked transaction holds its locks for ever: who wants them may wait in vain, and nothing worse.
#[test]
fn values_locked_by_a_leaked_transaction_stay_as_they_were() {
    for_each_protocol!(2, |P| {
        let policy = RetryPolicy {
            attempts_max: 3,
            deadline: Some(Duration::from_millis(2)),
            ..RetryPolicy::default()
        };
        let engine = support::engine_with::<P>(policy);
        let census = Census::default();
        let world = World::new(&engine, &census);
        let mut worker = engine.worker().unwrap();
        for round in 0..4 {
            let mut open = worker.begin();
            let _ = world.text.set(&mut open, String::from("leaked"));
            let _ = world.count.add(&mut open, 7);
            for table in &world.rows {
                let _ = table.insert_if_absent(&mut open, 50, census.value(50));
                let _ = table.update_if_present(&mut open, &1, |row| row.number = 777);
                let _ = table.delete(&mut open, &2);
                let _ = table.get(&mut open, &3);
            }
            std::mem::forget(open);
            // The same worker, here and elsewhere, and another one.
            let _ = world.use_all(&mut worker, &census, 4 + round);
            elsewhere(|| {
                let _ = world.use_all(&mut worker, &census, 4 + round);
                let _ = world.use_all(&mut engine.worker().unwrap(), &census, 4 + round);
            });
        }
        drop(worker);
        for table in &world.rows {
            let seen = engine.transact(|tx| table.read(tx, &1, |row| row.number));
            assert_ne!(seen, Ok(Some(777)));
        }
        assert_ne!(engine.transact(|tx| world.text.get(tx)), Ok(String::from("leaked")));
    });
}

/// A transaction of a leaked worker may live as long as any: so it can take another one's place.
fn leaked_worker<P: Protocol>(engine: &Engine<P>) -> &'static mut Worker<P> {
    Box::leak(Box::new(engine.worker().unwrap()))
}

#[test]
fn a_transaction_that_a_body_swaps_for_another_is_the_one_that_commits() {
    for_each_concurrent_protocol!(2, |P| {
        let engine = support::engine::<P>();
        let (mine, other) = (TBox::new(&engine, 0u64), TBox::new(&engine, 0u64));
        let mut spare = Some(leaked_worker(&engine));
        let result = engine.transact(|tx| {
            mine.set(tx, 1)?;
            if let Some(worker) = spare.take() {
                let mut open = worker.begin();
                other.set(&mut open, 1)?;
                std::mem::swap(tx, &mut *open);
            }
            Ok(())
        });
        assert_eq!(result, Ok(()));
        assert_eq!(engine.transact(|tx| Ok((mine.get(tx)?, other.get(tx)?))), Ok((0, 1)));
    });
}

#[test]
fn a_transaction_that_a_deferred_operation_swaps_for_another_is_refused() {
    for_each_protocol!(2, |P| {
        for (leaks, forces) in [(false, false), (false, true), (true, false), (true, true)] {
            let engine = support::engine::<P>();
            let (mine, other) = (TBox::new(&engine, 0u64), TBox::new(&engine, 0u64));
            let meta = ObjectMeta::new(engine.id(), "swapped");
            let mut spare = Some(leaked_worker(&engine));
            let result = engine.transact_deferred(|tx| {
                mine.set(tx, 1)?;
                let worker = spare.take();
                let swapped = tx.enter(&meta)?.deferral_mut().intend((), move |tx, ()| {
                    if let Some(worker) = worker {
                        let mut open = worker.begin();
                        std::mem::swap(&mut **tx, &mut *open);
                        // Here ends the attempt whose operation this is, and its memory is used for others.
                        if leaks {
                            std::mem::forget(open)
                        } else {
                            drop(open)
                        };
                    }
                    Ok(vec![String::from("result")])
                })?;
                if forces {
                    tx.force(swapped)?;
                }
                Ok(swapped)
            });
            assert_eq!(result, Err(Error::Misuse(Misuse::Nested)));
            if !leaks {
                assert_eq!(engine.transact(|tx| Ok((mine.get(tx)?, other.get(tx)?))), Ok((0, 0)));
            }
        }
    });
}

/// A map behind a mutex.
struct Guarded(Mutex<HashMap<u64, u64>>);

impl ConcurrentMap<u64, u64> for Guarded {
    fn get(&self, key: &u64) -> Option<u64> {
        lock(&self.0).get(key).copied()
    }

    fn insert(&self, key: u64, value: u64) -> Option<u64> {
        lock(&self.0).insert(key, value)
    }

    fn remove(&self, key: &u64) -> Option<u64> {
        lock(&self.0).remove(key)
    }
}

#[test]
fn what_a_leaked_transaction_has_inserted_into_a_boosted_map_is_never_seen() {
    for_each_concurrent_protocol!(2, |P| {
        let engine = support::impatient::<P>();
        let map = TBoostedMap::new(&engine, Guarded(Mutex::default()));
        let mut worker = engine.worker().unwrap();
        let mut open = worker.begin();
        map.insert(&mut open, 1, 1).unwrap();
        std::mem::forget(open);
        let seen = worker.transact(|tx| map.get(tx, &1));
        assert_ne!(seen, Ok(Some(1)), "same worker");
        drop(worker);
        let workers: Vec<_> = (0..4).map(|_| engine.worker().unwrap()).collect();
        for mut worker in workers {
            let seen = worker.transact(|tx| map.get(tx, &1));
            assert_ne!(seen, Ok(Some(1)), "another worker");
        }
    });
}

//! Panics in bodies: wherever they come from, the attempt is rolled back, and everybody goes on.

use crate::support;
use crate::support::{elsewhere, for_each_protocol, panic_of};
use hotrow::sync::atomic::{AtomicBool, Ordering};
use hotrow::{
    Context, Database, Direction, Engine, Operations, Procedure, Procedures, Protocol, TArray, TBox,
    TCounter, Table, TableRef, Transaction, Value, Worker,
};
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A row whose copies can be made to panic.
#[derive(Debug, Value)]
struct Brittle {
    number: u64,
    breaks: &'static AtomicBool,
}

impl Clone for Brittle {
    fn clone(&self) -> Self {
        assert!(!self.breaks.load(Ordering::SeqCst), "a row that panics");
        Self { ..*self }
    }
}

struct World<P: Protocol> {
    engine: Engine<P>,
    number: TBox<u64, P>,
    text: TBox<String, P>,
    slots: TArray<[u64; 4], P>,
    counter: TCounter<P>,
    hash: Table<u64, String, P>,
    ordered: Table<u64, u64, P>,
    brittle: Table<u64, Brittle, P>,
    breaks: &'static AtomicBool,
}

type State = (u64, String, [u64; 4], i64, Vec<Option<String>>, Vec<(u64, u64)>, Vec<u64>);

impl<P: Protocol> World<P> {
    fn new(breaks: &'static AtomicBool) -> Self {
        breaks.store(false, Ordering::SeqCst);
        let engine = support::engine::<P>();
        let mut builder = Database::on(&engine).table::<u64, Brittle>("brittle");
        let _ = builder.secondary("by_number", |_, row: &Brittle| {
            assert!(row.number != 666, "a secondary key that panics");
            row.number
        });
        let world = Self {
            number: TBox::new(&engine, 1),
            text: TBox::new(&engine, String::from("text")),
            slots: TArray::new(&engine, 3, |index| [index as u64; 4]),
            counter: TCounter::new(&engine, 5),
            hash: Database::on(&engine).table("hash").hash(10).create().unwrap(),
            ordered: Database::on(&engine).table("ordered").create().unwrap(),
            brittle: builder.create().unwrap(),
            breaks,
            engine,
        };
        for key in 0..10 {
            world.hash.bulk_insert([(key, format!("row {key}"))]).unwrap();
            world.ordered.bulk_insert([(key, key)]).unwrap();
            world.brittle.bulk_insert([(key, Brittle { number: key, breaks })]).unwrap();
        }
        world
    }

    /// Touches everything: writes, inserts, deletes.
    fn disturb(&self, tx: &mut Transaction<'_, P>) -> Result<(), hotrow::Abort> {
        self.number.set(tx, 2)?;
        self.text.update(tx, |text| text.push('!'))?;
        self.slots.update(tx, 1, |slot| slot[2] = 9)?;
        self.counter.add(tx, 1)?;
        assert!(self.counter.is_at_least(tx, 0)?);
        self.hash.insert_if_absent(tx, 20, String::from("new"))?;
        self.hash.delete(tx, &3)?;
        self.ordered.update_if_present(tx, &4, |row| *row = 0)?;
        self.ordered.insert_if_absent(tx, 20, 20)?;
        self.ordered.delete(tx, &5)?;
        self.ordered.delete(tx, &20)?;
        self.brittle.update_if_present(tx, &6, |row| row.number = 60)?;
        self.brittle.delete(tx, &7)?;
        self.brittle.insert_if_absent(tx, 21, Brittle { number: 7, breaks: self.breaks })?;
        Ok(())
    }

    fn state(&self, worker: &mut Worker<P>) -> State {
        worker
            .transact(|tx| {
                let rows = (0..25).map(|key| self.hash.get(tx, &key)).collect::<Result<_, _>>()?;
                let numbers = (0..25)
                    .filter_map(|key| self.brittle.read(tx, &key, |row| row.number).transpose())
                    .collect::<Result<_, _>>()?;
                Ok((
                    self.number.get(tx)?,
                    self.text.get(tx)?,
                    self.slots.get(tx, 1)?,
                    self.counter.get(tx)?,
                    rows,
                    self.ordered.collect(tx, .., Direction::Ascending, usize::MAX)?,
                    numbers,
                ))
            })
            .unwrap()
    }
}

type Panicking<P> = (&'static str, fn(&World<P>, &mut Transaction<'_, P>));

/// Every place in which a body's code, or code that it brought along, can panic.
fn panics<P: Protocol>() -> Vec<Panicking<P>> {
    vec![
        ("between operations", |_, _| panic!("between operations")),
        ("in a look", |world, tx| _ = world.text.read(tx, |_| panic!("in a look"))),
        ("in a look at a row", |world, tx| {
            let _ = world.hash.read(tx, &1, |_| -> u64 { panic!("in a look at a row") });
        }),
        ("in a change", |world, tx| {
            let _ = world.slots.update(tx, 0, |slot| -> u64 {
                slot[0] = 77;
                panic!("in a change")
            });
        }),
        ("in a change of a new row", |world, tx| {
            world.hash.insert_if_absent(tx, 30, String::new()).unwrap();
            let _ = world.hash.update_if_present(tx, &30, |row| -> u64 {
                row.push('x');
                panic!("in a change of a new row")
            });
        }),
        ("in a second change", |world, tx| {
            world.ordered.update_if_present(tx, &1, |row| *row = 70).unwrap();
            let _ = world.ordered.update_if_present(tx, &1, |_| -> u64 { panic!("in a second change") });
        }),
        ("in a visit", |world, tx| {
            let _ = world.ordered.scan(tx, 2..8, Direction::Descending, |key, _| {
                assert!(*key != 4, "in a visit");
                ControlFlow::Continue(())
            });
        }),
        ("a row that panics", |world, tx| {
            world.breaks.store(true, Ordering::SeqCst);
            let _ = world.brittle.update_if_present(tx, &1, |row| row.number += 1);
        }),
        ("a row that panics", |world, tx| {
            world.breaks.store(true, Ordering::SeqCst);
            let _ = world.brittle.delete(tx, &1);
        }),
        ("a row that panics", |world, tx| {
            world.breaks.store(true, Ordering::SeqCst);
            let _ = world.brittle.get(tx, &1);
        }),
        ("a row that panics", |world, tx| {
            assert!(world.brittle.delete(tx, &1).unwrap());
            world.breaks.store(true, Ordering::SeqCst);
            let _ = world.brittle.insert_if_absent(tx, 1, Brittle { number: 1, breaks: world.breaks });
        }),
        ("a secondary key that panics", |world, tx| {
            let _ = world.brittle.update_if_present(tx, &1, |row| row.number = 666);
        }),
        ("a secondary key that panics", |world, tx| {
            let _ = world.brittle.insert_if_absent(tx, 40, Brittle { number: 666, breaks: world.breaks });
        }),
    ]
}

fn panics_roll_back<P: Protocol>(breaks: &'static AtomicBool) {
    let world = World::<P>::new(breaks);
    let engine = &world.engine;
    let mut worker = engine.worker().unwrap();
    let before = world.state(&mut worker);
    for (message, panicking) in panics::<P>() {
        for disturbs_after in [false, true] {
            let rollbacks = engine.statistics().rollbacks;
            let said = panic_of(|| {
                worker.transact(|tx| -> Result<(), hotrow::Abort> {
                    if !disturbs_after {
                        world.disturb(tx)?;
                    }
                    panicking(&world, tx);
                    unreachable!("it panics")
                })
            });
            breaks.store(false, Ordering::SeqCst);
            assert_eq!(said, message);
            assert_eq!(engine.statistics().rollbacks, rollbacks + 1);
            assert_eq!(world.state(&mut worker), before, "{message}");
        }
    }
    // The worker goes on, and nothing is locked or reserved.
    let undone = worker.transact(|tx| world.disturb(tx).and(Err::<(), _>(hotrow::Abort::rollback())));
    undone.unwrap_err();
    drop(worker);
    elsewhere(|| engine.transact(|tx| world.disturb(tx))).unwrap();
    assert_eq!(engine.statistics().aborts, 0);
    let mut worker = elsewhere(|| engine.worker()).unwrap();
    let after = world.state(&mut worker);
    assert_eq!((after.0, after.1.as_str(), after.3), (2, "text!", 6));
}

#[test]
fn a_panic_anywhere_in_a_body_rolls_back_and_releases_everything() {
    static BREAKS: AtomicBool = AtomicBool::new(false);
    for_each_protocol!(1, |P| { panics_roll_back::<P>(&BREAKS) });
}

#[test]
fn a_panic_in_a_transaction_of_the_threads_own_worker_leaves_the_thread_able_to_go_on() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let table = Database::on(&engine).table::<u64, u64>("rows").hash(10).create().unwrap();
        for round in 0..100 {
            let said = panic_of(|| {
                engine.transact(|tx| -> Result<(), hotrow::Abort> {
                    table.insert_if_absent(tx, round, 1)?;
                    panic!("round {round}")
                })
            });
            assert_eq!(said, format!("round {round}"));
            assert_eq!(engine.transact(|tx| table.get(tx, &round)), Ok(None));
        }
        assert_eq!(engine.transact(|tx| table.insert_if_absent(tx, 5, 5)), Ok(true));
        assert!(engine.worker().is_ok());
    });
}

#[test]
fn rows_half_changed_by_a_panic_that_the_body_catches_are_the_bodys_own_business() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let table = Database::on(&engine).table::<u64, Vec<u64>>("rows").create().unwrap();
        table.bulk_insert([(1, vec![1])]).unwrap();
        let committed = engine.transact(|tx| {
            let caught = panic_of(|| {
                table.update_if_present(tx, &1, |row| -> u64 {
                    row.push(2);
                    panic!("half-way")
                })
            });
            assert_eq!(caught, "half-way");
            table.get(tx, &1)
        });
        assert_eq!(committed, Ok(Some(vec![1, 2])));
        assert_eq!(
            engine.transact(|tx| table.get(tx, &1)),
            Ok(Some(vec![1, 2])),
            "what it saw is what it wrote"
        );
    });
}

#[test]
fn a_worker_and_a_transaction_are_dropped_by_unwinding_without_a_trace() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let array = TArray::new(&engine, 10, |_| 0u64);
        for _ in 0..20 {
            panic_of(|| {
                let mut worker = engine.worker().unwrap();
                worker.transact(|tx| array.set(tx, 1, 1)).unwrap();
                worker.transact(|tx| -> Result<(), hotrow::Abort> {
                    array.set(tx, 1, 2)?;
                    panic!("with the worker on the stack")
                })
            });
        }
        let mut worker = engine.worker().unwrap();
        assert_eq!(worker.id().number(), 0, "each gave its number back");
        assert_eq!(worker.transact(|tx| array.get(tx, 1)), Ok(1));
    });
}

/// Changes a row, and panics when it changes it again.
struct ChangeTwice(TableRef<u64, u64>);

impl Procedure for ChangeTwice {
    type Output = Option<u64>;

    fn run<C: Context>(&self, cx: &mut C) -> Result<C::Val<Self::Output>, C::Stop> {
        for fails in [false, true] {
            let key = cx.value(1);
            let input = cx.value(fails);
            cx.update(self.0, key, input, |row, fails| {
                assert!(!fails, "the second time");
                *row += 1;
            })?;
        }
        Ok(cx.value(None))
    }
}

#[test]
fn a_panic_in_a_procedure_leaves_nothing_to_the_workers_next_transaction() {
    for_each_protocol!(2, |P| {
        let engine = support::impatient::<P>();
        let database = Database::on(&engine);
        let rows = database.table("rows").create().unwrap().reference();
        let table = database.table_of(rows);
        table.bulk_insert([(1, 0)]).unwrap();
        table.bulk_insert([(2, 0)]).unwrap();
        let (mut worker, mut other) = (engine.worker().unwrap(), engine.worker().unwrap());
        for _ in 0..2 {
            panic_or_error(|| database.execute_on(&mut worker, &ChangeTwice(rows)).map(drop));
            // The row that the next transaction wants is locked, or not: it gets through, or waits until it gives up.
            let mut holder = other.begin();
            table.update_if_present(&mut holder, &2, |row| *row += 1).unwrap();
            let result = worker.transact(|tx| table.update_if_present(tx, &2, |row| *row += 1));
            assert!(result.as_ref().map_or_else(hotrow::Error::is_retryable, Option::is_some), "{result:?}");
            drop(holder);
        }
    });
}

/// A panic passes on where operations run at once, and is an error where they are deferred.
fn panic_or_error(work: impl FnOnce() -> Result<(), hotrow::Error>) {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(result) => assert!(matches!(result, Err(hotrow::Error::Panicked { .. })), "{result:?}"),
        Err(panic) => assert!(panic.downcast_ref::<&str>().is_some_and(|words| *words == "the second time")),
    }
}

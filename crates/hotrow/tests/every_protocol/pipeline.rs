//! The protocols that defer operations, stepped by hand: an intention that waits keeps its transaction in line while others come (drp §4.2, §5.2).

use hotrow::operations::Constant;
use hotrow::protocols::{Any, PROTOCOLS};
use hotrow::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use hotrow::sync::{Arc, Mutex, lock, thread};
use hotrow::{
    Abort, Context, Database, Direction, Engine, Error, Operations, Procedure, Procedures, RetryPolicy, TBox,
    TableRef, Transaction,
};

type Tx<'w> = Transaction<'w, Any>;

/// Runs a test under each of them.
fn each_variant(test: impl Fn(&dyn Fn(u32) -> Engine<Any>)) {
    for protocol in PROTOCOLS.iter().filter(|protocol| protocol.defers) {
        // Shown only if the test fails.
        eprintln!("{}", protocol.name);
        test(&|attempts_max| {
            let policy = RetryPolicy { attempts_max, ..RetryPolicy::default() };
            Engine::named(protocol.name, policy).expect("a registered protocol")
        });
    }
}

/// A place in a closure where another thread waits for it, and it for the other thread.
#[derive(Clone, Default)]
struct Gate(Arc<[AtomicBool; 2]>);

impl Gate {
    fn until(flag: &AtomicBool) {
        while !flag.load(Ordering::Acquire) {
            thread::yield_now();
        }
    }

    /// Says that it is here, and waits until it may pass. Later comers pass at once.
    fn pass(&self) {
        self.0[0].store(true, Ordering::Release);
        Self::until(&self.0[1]);
    }

    fn await_arrival(&self) {
        Self::until(&self.0[0]);
    }

    fn open(&self) {
        self.0[1].store(true, Ordering::Release);
    }
}

/// Gives another thread, which has to wait for this one, time to be done all the same: if it is, this one is to see it.
fn give_time(is_done: &AtomicBool) {
    let mut yields = 0..3_000;
    while !is_done.load(Ordering::Acquire) && yields.next().is_some() {
        thread::yield_now();
    }
}

fn add(to: &TBox<u64, Any>, tx: &mut Tx<'_>, amount: u64) -> Result<(), Abort> {
    to.defer_update(tx, (), move |value, ()| *value += amount).map(drop)
}

#[test]
fn a_wild_transaction_that_fails_certification_harms_no_tame_one_before_it_or_behind_it() {
    each_variant(|engine| {
        let engine = engine(1);
        let [read, changed] = [0; 2].map(|value| TBox::new(&engine, value));
        let (before, wild) = (Gate::default(), Gate::default());
        let runs = Arc::new(AtomicU64::new(0));
        thread::scope(|scope| {
            // A tame transaction stands before the wild one, which comes to its turn when that one has gone.
            let first = scope.spawn(|| {
                engine.transact(|tx| {
                    let gate = before.clone();
                    let update = move |value: &mut u64, ()| {
                        gate.pass();
                        *value += 1;
                    };
                    changed.defer_update(tx, (), update).map(drop)
                })
            });
            before.await_arrival();
            let loser = scope.spawn(|| {
                engine.transact(|tx| {
                    let seen = read.get(tx)?;
                    let (gate, runs) = (wild.clone(), runs.clone());
                    let update = move |value: &mut u64, ()| {
                        gate.pass();
                        runs.fetch_add(1, Ordering::Relaxed);
                        *value += 1_000 + seen;
                    };
                    changed.defer_update(tx, (), update).map(drop)
                })
            });
            before.open();
            wild.await_arrival();
            let behind = scope.spawn(|| engine.transact(|tx| add(&changed, tx, 10)));
            // The value that the wild one has read changes while it is in line.
            engine.transact(|tx| add(&read, tx, 1)).unwrap();
            wild.open();
            assert_eq!(first.join().unwrap(), Ok(()));
            assert_eq!(behind.join().unwrap(), Ok(()));
            let lost = loser.join().unwrap();
            assert!(matches!(lost, Err(Error::Conflict(_))), "{lost:?}");
        });
        assert_eq!(runs.load(Ordering::Relaxed), 1, "it ran, and left no effect");
        assert_eq!(engine.transact(|tx| Ok((read.get(tx)?, changed.get(tx)?))), Ok((1, 11)));
    });
}

#[test]
fn a_transaction_behind_one_that_panics_or_rolls_back_finds_no_trace_of_it() {
    each_variant(|engine| {
        for panics in [true, false] {
            let engine = engine(u32::MAX);
            let value = TBox::new(&engine, 0);
            let gate = Gate::default();
            thread::scope(|scope| {
                let failing = scope.spawn(|| {
                    engine.transact(|tx| {
                        let gate = gate.clone();
                        let fine = value.defer_update(tx, (), move |value, ()| {
                            *value += 1_000;
                            gate.pass();
                            if panics {
                                std::panic::resume_unwind(Box::new("on purpose"));
                            }
                            false
                        })?;
                        tx.require(fine)
                    })
                });
                gate.await_arrival();
                let behind = scope.spawn(|| engine.transact(|tx| add(&value, tx, 1)));
                gate.open();
                let failed = failing.join().unwrap();
                match failed {
                    Err(Error::Panicked { message }) => assert_eq!((panics, &*message), (true, "on purpose")),
                    Err(Error::Rollback(_)) => assert!(!panics),
                    failed => panic!("{failed:?}"),
                }
                assert_eq!(behind.join().unwrap(), Ok(()));
            });
            assert_eq!(engine.transact(|tx| value.get(tx)), Ok(1));
        }
    });
}

#[test]
fn an_intention_of_an_opaque_transaction_never_sees_a_newer_state_than_its_body() {
    each_variant(|engine| {
        let engine = engine(1);
        let is_opaque = engine.protocol().contains("opaque");
        let [one, other] = [0; 2].map(|value| TBox::new(&engine, value));
        let apart = Arc::new(AtomicBool::new(false));
        let (mut first, mut second) = (engine.worker().unwrap(), engine.worker().unwrap());
        let mut wild = first.begin();
        let seen = one.get(&mut wild).unwrap();
        let noted = apart.clone();
        let look = move |value: &u64| noted.store(*value != seen, Ordering::Relaxed);
        other.defer_read(&mut wild, look).unwrap();
        second.transact(|tx| add(&one, tx, 1).and_then(|()| add(&other, tx, 1))).unwrap();
        assert!(matches!(wild.commit(), Err(Error::Conflict(_))));
        assert!(!(is_opaque && apart.load(Ordering::Relaxed)), "values of two different moments");
    });
}

#[test]
fn a_row_that_the_transaction_has_inserted_itself_is_read_and_changed_later() {
    each_variant(|engine| {
        let engine = engine(u32::MAX);
        let rows = Database::on(&engine).table::<u64, u64>("rows").hash(4).create().unwrap();
        let changed = engine.transact(|tx| {
            rows.insert_if_absent(tx, 1, 5)?;
            rows.defer_read(tx, &1, |row| assert_eq!(*row, 5))?;
            rows.defer_update(tx, &1, (), |row, ()| *row += 1).map(drop)
        });
        assert_eq!(changed, Ok(()));
        assert_eq!(engine.transact(|tx| rows.get(tx, &1)), Ok(Some(6)));
    });
}

#[test]
fn a_transaction_after_one_that_inserts_finds_the_inserted_row() {
    each_variant(|engine| {
        let engine = engine(1);
        let value = TBox::new(&engine, 0);
        let rows = Database::on(&engine).table::<u64, u64>("rows").hash(4).create().unwrap();
        let (gate, begun) = (Gate::default(), AtomicBool::new(false));
        thread::scope(|scope| {
            // It has read the value as it was before, and inserts later.
            let inserts = scope.spawn(|| {
                engine.transact(|tx| {
                    let seen = value.defer_read(tx, |value| *value)?;
                    let gate = gate.clone();
                    let row = tx.compute(seen, move |seen| {
                        gate.pass();
                        seen
                    })?;
                    let key = tx.known(1);
                    rows.defer_insert(tx, key, row).map(drop)
                })
            });
            gate.await_arrival();
            let overwrites = scope.spawn(|| engine.transact(|tx| add(&value, tx, 1)));
            // The reader may have to wait until the row is there.
            let reads = scope.spawn({
                let (begun, engine, value, rows) = (&begun, &engine, &value, &rows);
                move || {
                    for _ in 0..300 {
                        begun.store(true, Ordering::Release);
                        let seen = engine.transact(|tx| Ok((value.get(tx)?, rows.get(tx, &1)?)));
                        assert_ne!(seen, Ok((1, None)), "after who overwrote, who comes after who inserts");
                    }
                }
            });
            Gate::until(&begun);
            (0..300).for_each(|_| thread::yield_now());
            gate.open();
            assert_eq!(inserts.join().unwrap(), Ok(()));
            assert_eq!(overwrites.join().unwrap(), Ok(()));
            reads.join().unwrap();
        });
        assert_eq!(engine.transact(|tx| Ok((value.get(tx)?, rows.get(tx, &1)?))), Ok((1, Some(0))));
    });
}

#[test]
fn insertions_of_one_key_keep_their_order_whoever_is_waited_for_and_others_do_not_wait() {
    // Not where the turn in each line is waited for before anything runs.
    for name in ["drp", "drp+opaque", "drp+exclusive"] {
        let engine = Engine::<Any>::named(name, RetryPolicy { attempts_max: 1, ..RetryPolicy::default() });
        let engine = engine.expect("a registered protocol");
        let hot = TBox::new(&engine, 1);
        let rows = Database::on(&engine).table::<u64, u64>("rows").create().unwrap();
        let gate = Gate::default();
        let order = Arc::new(Mutex::new(Vec::new()));
        let note = |what: &'static str| {
            let order = order.clone();
            move |inserted: bool| lock(&order).push((what, inserted))
        };
        thread::scope(|scope| {
            let before = scope.spawn(|| {
                engine.transact(|tx| {
                    let gate = gate.clone();
                    hot.defer_update(tx, (), move |value, ()| {
                        gate.pass();
                        *value += 1;
                    })
                    .map(drop)
                })
            });
            gate.await_arrival();
            engine
                .transact(|tx| {
                    let row = hot.defer_read(tx, |value| *value)?;
                    let waiting = rows.defer_insert_grouped(tx, 0, Constant(7), row)?;
                    let same_key = rows.defer_insert(tx, Constant(7), Constant(3))?;
                    let other_key = rows.defer_insert(tx, Constant(8), Constant(4))?;
                    tx.compute(waiting, note("waiting"))?;
                    tx.compute(same_key, note("same key"))?;
                    tx.compute(other_key, note("other key"))?;
                    // All has been tried by now.
                    let gate = gate.clone();
                    tx.compute((), move |()| gate.open()).map(drop)
                })
                .unwrap();
            assert_eq!(before.join().unwrap(), Ok(()));
        });
        assert_eq!(*lock(&order), [("other key", true), ("waiting", true), ("same key", false)], "{name}");
        assert_eq!(engine.transact(|tx| Ok([rows.get(tx, &7)?, rows.get(tx, &8)?])), Ok([Some(2), Some(4)]));
    }
}

/// Deletes the row of a queue that another row names: its key is known too late for its group's head.
struct DeleteNamed {
    names: TableRef<u64, u64>,
    queue: TableRef<(u64, u64), u64>,
    /// True if the procedure waits to see which row was named.
    forces: bool,
}

impl Procedure for DeleteNamed {
    type Output = bool;

    fn run<C: Context>(&self, cx: &mut C) -> Result<C::Val<bool>, C::Stop> {
        let zero = cx.value(0);
        let named = cx.read(self.names, zero, |named| *named)?;
        let key = cx.map(named, |named| (0, named.unwrap_or(0)));
        let deleted = cx.delete(self.queue, key)?;
        if self.forces {
            cx.force(deleted.clone())?;
        }
        Ok(deleted)
    }
}

#[test]
fn the_first_row_stays_until_it_is_taken_though_another_deletes_it_with_a_key_known_late() {
    for (ranks, forces) in [([1, 2], false), ([1, 2], true), ([2, 1], false)] {
        each_variant(|engine| {
            let engine = engine(u32::MAX);
            let database = Database::on(&engine);
            let names = database.table("names").rank(ranks[0]).create().unwrap();
            let queue = database.table("queue").rank(ranks[1]).queues(|(group, _)| *group).create().unwrap();
            names.bulk_insert([(0, 0)]).unwrap();
            queue.bulk_insert([((0, 0), 5)]).unwrap();
            queue.bulk_insert([((0, 1), 6)]).unwrap();
            let procedure = DeleteNamed { names: names.reference(), queue: queue.reference(), forces };
            let queue = database.table_of(procedure.queue);
            let first = Database::on(&engine).table::<u64, u64>("first").rank(0).create().unwrap();
            first.bulk_insert([(0, 0)]).unwrap();
            let (gate, has_deleted) = (Gate::default(), AtomicBool::new(false));
            let (taken, deleted) = thread::scope(|scope| {
                let takes = scope.spawn(|| {
                    engine.transact_deferred(|tx| {
                        let taken = queue.defer_take_first(tx, 0, (0, 0)..(1, 0))?;
                        // Runs when the first row has been found, and before it is lined up for.
                        let gate = gate.clone();
                        first.defer_update(tx, &0, (), move |_, ()| gate.pass())?;
                        Ok(taken)
                    })
                });
                gate.await_arrival();
                let deletes = scope.spawn(|| {
                    let deleted = database.execute_on(&mut engine.worker()?, &procedure);
                    has_deleted.store(true, Ordering::Release);
                    deleted
                });
                give_time(&has_deleted);
                gate.open();
                (takes.join().unwrap(), deletes.join().unwrap())
            });
            assert_eq!((taken, deleted), (Ok(Some((0, 0))), Ok(false)));
            let left = engine.transact(|tx| queue.collect(tx, .., Direction::Ascending, 9));
            assert_eq!(left, Ok(vec![((0, 1), 6)]));
        });
    }
}

#[test]
fn a_taker_leaves_the_row_whose_key_an_earlier_transaction_is_going_to_insert() {
    each_variant(|engine| {
        let engine = engine(u32::MAX);
        let database = Database::on(&engine);
        let shared = database.table::<u64, u64>("shared").rank(0).create().unwrap();
        let between = database.table::<u64, u64>("between").rank(1).create().unwrap();
        let queue = database.table("queue").rank(2).queues(|(group, _)| *group).create().unwrap();
        shared.bulk_insert([(0, 0)]).unwrap();
        between.bulk_insert([(0, 0)]).unwrap();
        queue.bulk_insert([((0, 0), 5)]).unwrap();
        let (gate, has_taken) = (Gate::default(), AtomicBool::new(false));
        let (inserted, taken) = thread::scope(|scope| {
            let inserts = scope.spawn(|| {
                engine.transact_deferred(|tx| {
                    shared.defer_update(tx, &0, (), |times, ()| *times += 1)?;
                    let gate = gate.clone();
                    between.defer_update(tx, &0, (), move |_, ()| gate.pass())?;
                    queue.defer_insert(tx, (0u64, 0u64), 6u64)
                })
            });
            gate.await_arrival();
            let takes = scope.spawn(|| {
                let taken = engine.transact_deferred(|tx| {
                    let times = shared.defer_update(tx, &0, (), |times, ()| *times)?;
                    let taken = queue.defer_take_first(tx, 0, (0, 0)..(1, 0))?;
                    tx.compute((times, taken), |(times, taken)| (times, taken))
                });
                has_taken.store(true, Ordering::Release);
                taken
            });
            give_time(&has_taken);
            gate.open();
            (inserts.join().unwrap(), takes.join().unwrap())
        });
        let left = engine.transact(|tx| queue.collect(tx, .., Direction::Ascending, 9)).unwrap();
        match (inserted, taken) {
            // The insertion came first, and found the row.
            (Ok(false), Ok((Some(1), Some((0, 0))))) => assert_eq!(left, []),
            // The taker came first.
            (Ok(true), Ok((Some(0), Some((0, 0))))) => assert_eq!(left, [((0, 0), 6)]),
            other => panic!("no order explains it: {other:?}, {left:?}"),
        }
    });
}

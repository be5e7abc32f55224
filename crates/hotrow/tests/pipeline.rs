//! `drp`, stepped by hand: an intention that waits keeps its transaction in line while others come (drp §4.2, §5.2).

use hotrow::protocols::Drp;
use hotrow::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use hotrow::sync::{Arc, thread};
use hotrow::{Abort, Engine, Error, Protocol as _, RetryPolicy, TBox, Table, Transaction};

type Tx<'w> = Transaction<'w, Drp>;

/// Runs a test under each variant.
fn each_variant(test: impl Fn(&dyn Fn(u32) -> Engine<Drp>)) {
    for variant in Drp::VARIANTS {
        // Shown only if the test fails.
        eprintln!("{}", variant.name);
        test(&|attempts_max| {
            let policy = RetryPolicy { attempts_max, ..RetryPolicy::default() };
            Engine::named(variant.name, policy).expect("one of its variants")
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

fn add(to: &TBox<u64, Drp>, tx: &mut Tx<'_>, amount: u64) -> Result<(), Abort> {
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
                engine.run(|tx| {
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
                engine.run(|tx| {
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
            let behind = scope.spawn(|| engine.run(|tx| add(&changed, tx, 10)));
            // What the wild one has read changes while it is in line.
            engine.run(|tx| add(&read, tx, 1)).unwrap();
            wild.open();
            assert_eq!(first.join().unwrap(), Ok(()));
            assert_eq!(behind.join().unwrap(), Ok(()));
            let lost = loser.join().unwrap();
            assert!(matches!(lost, Err(Error::Conflict(_))), "{lost:?}");
        });
        assert_eq!(runs.load(Ordering::Relaxed), 1, "it ran, and left no effect");
        assert_eq!(engine.run(|tx| Ok((read.get(tx)?, changed.get(tx)?))), Ok((1, 11)));
    });
}

#[test]
fn who_is_behind_a_transaction_that_panics_or_rolls_back_finds_no_trace_of_it() {
    each_variant(|engine| {
        for panics in [true, false] {
            let engine = engine(u32::MAX);
            let value = TBox::new(&engine, 0);
            let gate = Gate::default();
            thread::scope(|scope| {
                let failing = scope.spawn(|| {
                    engine.run(|tx| {
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
                let behind = scope.spawn(|| engine.run(|tx| add(&value, tx, 1)));
                gate.open();
                let failed = failing.join().unwrap();
                match failed {
                    Err(Error::Panicked { message }) => assert_eq!((panics, &*message), (true, "on purpose")),
                    Err(Error::Rollback(_)) => assert!(!panics),
                    failed => panic!("{failed:?}"),
                }
                assert_eq!(behind.join().unwrap(), Ok(()));
            });
            assert_eq!(engine.run(|tx| value.get(tx)), Ok(1));
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
        second.run(|tx| add(&one, tx, 1).and_then(|()| add(&other, tx, 1))).unwrap();
        assert!(matches!(wild.commit(), Err(Error::Conflict(_))));
        assert!(!(is_opaque && apart.load(Ordering::Relaxed)), "values of two different moments");
    });
}

#[test]
fn a_row_that_the_transaction_has_inserted_itself_is_read_and_changed_later() {
    each_variant(|engine| {
        let engine = engine(u32::MAX);
        let rows = Table::<u64, u64, Drp>::hash(&engine, "rows", 4);
        let changed = engine.run(|tx| {
            rows.insert(tx, 1, 5)?;
            rows.defer_read(tx, &1, |row| assert_eq!(*row, 5))?;
            rows.defer_update(tx, &1, (), |row, ()| *row += 1).map(drop)
        });
        assert_eq!(changed, Ok(()));
        assert_eq!(engine.run(|tx| rows.get(tx, &1)), Ok(Some(6)));
    });
}

#[test]
fn who_comes_after_a_transaction_that_inserts_finds_what_it_has_inserted() {
    each_variant(|engine| {
        let engine = engine(1);
        let value = TBox::new(&engine, 0);
        let rows = Table::<u64, u64, Drp>::hash(&engine, "rows", 4);
        let (gate, begun) = (Gate::default(), AtomicBool::new(false));
        thread::scope(|scope| {
            // It has read the value as it was before, and inserts later.
            let inserts = scope.spawn(|| {
                engine.run(|tx| {
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
            let overwrites = scope.spawn(|| engine.run(|tx| add(&value, tx, 1)));
            // Who reads may have to wait until the row is there.
            let reads = scope.spawn({
                let (begun, engine, value, rows) = (&begun, &engine, &value, &rows);
                move || {
                    for _ in 0..300 {
                        begun.store(true, Ordering::Release);
                        let seen = engine.run(|tx| Ok((value.get(tx)?, rows.get(tx, &1)?)));
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
        assert_eq!(engine.run(|tx| Ok((value.get(tx)?, rows.get(tx, &1)?))), Ok((1, Some(0))));
    });
}

//! Memory: every value is dropped, once, and not while anybody can still look at it.

use crate::support;
use crate::support::{Census, Counted, TableKind, elsewhere, for_each_protocol, on_threads, panic_of};
use hotrow::sync::atomic::{AtomicU64, Ordering};
use hotrow::sync::random::Random;
use hotrow::{Abort, Database, Direction, Engine, Error, Misuse, Protocol, TArray, TBox, Table, Value};

#[test]
fn boxed_values_are_dropped_once_whatever_becomes_of_their_transaction() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let census = Census::default();
        let kept = TBox::new(&engine, census.value(0));
        let array = TArray::new(&engine, 5, |index| census.value(index as u64));
        assert_eq!(census.alive(), 6);
        for round in 0..50 {
            engine
                .transact(|tx| {
                    kept.set(tx, census.value(round))?;
                    kept.update(tx, |value| value.number += 1)?;
                    kept.set(tx, census.value(round))?;
                    array.update(tx, round as usize % 5, |value| *value = census.value(7))
                })
                .unwrap();
            let rolled_back = engine.transact(|tx| {
                kept.update(tx, |value| value.number += 1)?;
                array.set(tx, 3, census.value(8))?;
                array.set(tx, 3, census.value(9))?;
                Err::<(), _>(Abort::rollback())
            });
            rolled_back.unwrap_err();
            panic_of(|| {
                engine.transact(|tx| {
                    kept.set(tx, census.value(1))?;
                    array.update(tx, 0, |_| -> u64 { panic!("half-way") })
                })
            });
        }
        census.settle(&engine, 6);
        drop(array);
        census.settle(&engine, 1);
        drop(kept);
        census.settle(&engine, 0);
    });
}

/// One random operation that makes, clones or drops counted rows.
fn operate<P: Protocol>(
    table: &Table<u64, Counted, P>,
    tx: &mut hotrow::Transaction<'_, P>,
    census: &Census,
    random: &mut Random,
) -> Result<(), Abort> {
    let key = random.below(12);
    match random.below(6) {
        0 | 1 => _ = table.insert_if_absent(tx, key, census.value(key))?,
        2 => _ = table.upsert(tx, key, census.value(key))?,
        3 => _ = table.update_if_present(tx, &key, |row| row.number += 1)?,
        4 => _ = table.get(tx, &key)?,
        _ => _ = table.delete(tx, &key)?,
    }
    Ok(())
}

#[test]
fn rows_are_dropped_once_whatever_becomes_of_them() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        for (seed, kind) in (0..).zip(TableKind::ALL) {
            let census = Census::default();
            let mut builder = Database::on(&engine).table::<u64, Counted>("rows");
            let _ = builder.secondary("by_number", |_, row: &Counted| row.number);
            let table = kind.of(builder).create().unwrap();
            let mut random = Random::seeded(seed);
            for _ in 0..400 {
                let operations = random.between(1, 10);
                let end = random.below(4);
                let mut transaction = || {
                    engine.transact(|tx| {
                        (0..operations).try_for_each(|_| operate(&table, tx, &census, &mut random))?;
                        match end {
                            0 => Err(Abort::rollback()),
                            1 => panic!("at the end"),
                            _ => Ok(()),
                        }
                    })
                };
                if end == 1 {
                    panic_of(transaction);
                } else {
                    assert_eq!(transaction().is_ok(), end != 0);
                }
            }
            let rows = engine.transact(|tx| (0..12).map(|key| Ok(table.get(tx, &key)?.is_some())).collect());
            let rows: Vec<bool> = rows.unwrap();
            census.settle(&engine, rows.into_iter().filter(|there| *there).count() as i64);
            drop(table);
            census.settle(&engine, 0);
        }
    });
}

#[test]
fn threads_that_insert_update_and_delete_the_same_rows_leak_none_and_drop_none_twice() {
    for_each_protocol!(4, |P| {
        let engine = support::engine::<P>();
        let census = Census::default();
        for kind in TableKind::ALL {
            let table = kind.of(Database::on(&engine).table("rows")).create().unwrap();
            on_threads(&engine, 4, |number, worker| {
                let mut random = Random::stream(3, number);
                for _ in 0..1_000 {
                    let (operations, commits) = (random.between(1, 4), random.chance(0.8));
                    let result = worker.transact(|tx| {
                        (0..operations).try_for_each(|_| operate(&table, tx, &census, &mut random))?;
                        if commits { Ok(()) } else { Err(Abort::rollback()) }
                    });
                    assert_eq!(result.is_ok(), commits);
                }
            });
            drop(table);
            census.settle(&engine, 0);
        }
    });
}

#[test]
fn objects_may_be_dropped_in_a_transaction_that_has_touched_them() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        for commits in [true, false] {
            let census = Census::default();
            let mut kept = Some(TBox::new(&engine, census.value(1)));
            let mut array = Some(TArray::new(&engine, 3, |index| census.value(index as u64)));
            let mut builder = Database::on(&engine).table::<u64, Counted>("rows");
            let mut index = Some(builder.secondary("by_number", |_, row: &Counted| row.number));
            let mut table = Some(builder.create().unwrap());
            (0..5).for_each(|key| table.as_ref().unwrap().bulk_insert([(key, census.value(key))]).unwrap());
            let result =
                engine.transact(|tx| {
                    if let (Some(kept), Some(array), Some(table), Some(index)) =
                        (kept.take(), array.take(), table.take(), index.take())
                    {
                        kept.update(tx, |value| value.number = 5)?;
                        array.set(tx, 2, census.value(9))?;
                        array.get(tx, 0)?;
                        table.insert_if_absent(tx, 9, census.value(9))?;
                        table.update_if_present(tx, &1, |row| row.number = 8)?;
                        table.delete(tx, &2)?;
                        table.get(tx, &77)?;
                        index.scan(tx, .., Direction::Ascending, |_, _, _| {
                            std::ops::ControlFlow::Continue(())
                        })?;
                    }
                    // A box made and dropped within.
                    TBox::new(&engine, census.value(3)).set(tx, census.value(4))?;
                    if commits { Ok(()) } else { Err(Abort::rollback()) }
                });
            assert_eq!(result.is_ok(), commits);
            census.settle(&engine, 0);
        }
    });
}

#[test]
fn a_value_stays_while_a_transaction_that_has_seen_it_goes_on() {
    for_each_protocol!(2, |P| {
        let engine = crate::support::impatient::<P>();
        let census = Census::default();
        let table = Database::on(&engine).table::<u64, Counted>("rows").hash(10).create().unwrap();
        table.bulk_insert([(1, census.value(1))]).unwrap();
        let (others, other) = (support::engine::<P>(), Census::default());
        let result = engine.transact(|tx| {
            table.read(tx, &1, |row| {
                elsewhere(|| {
                    // Deletes the row, unless it is held off, and makes garbage enough for many collections.
                    let _ = engine.transact(|tx| table.delete(tx, &1));
                    for _ in 0..2_000 {
                        drop(TBox::new(&others, other.value(1)));
                        others.transact(|_| Ok(())).unwrap();
                    }
                });
                // A use after free would fail its mark.
                row.clone().number
            })
        });
        assert!(matches!(result, Ok(Some(1) | None)), "{result:?}");
        drop(table);
        census.settle(&engine, 0);
        other.settle(&engine, 0);
    });
}

/// A row whose drop runs a transaction, as a program that counts its rows might.
#[derive(Value)]
struct Reports<P: Protocol> {
    drops: hotrow::sync::Arc<Drops<P>>,
}

impl<P: Protocol> Clone for Reports<P> {
    fn clone(&self) -> Self {
        Self { drops: self.drops.clone() }
    }
}

struct Drops<P: Protocol> {
    engine: Engine<P>,
    counter: TBox<u64, P>,
    counted: AtomicU64,
    refused: AtomicU64,
}

impl<P: Protocol> Drop for Reports<P> {
    fn drop(&mut self) {
        let drops = &self.drops;
        match drops.engine.transact(|tx| drops.counter.update(tx, |n| *n += 1)) {
            Ok(()) => drops.counted.fetch_add(1, Ordering::SeqCst),
            Err(Error::Misuse(Misuse::Nested)) => drops.refused.fetch_add(1, Ordering::SeqCst),
            Err(error) => panic!("{error}"),
        };
    }
}

#[test]
fn a_drop_that_runs_a_transaction_runs_it_or_is_told_that_it_is_inside_another_one() {
    for_each_protocol!(2, |P| {
        let engine = support::engine::<P>();
        let counting = support::engine::<P>();
        let drops = hotrow::sync::Arc::new(Drops {
            counter: TBox::new(&counting, 0),
            engine: counting,
            counted: AtomicU64::new(0),
            refused: AtomicU64::new(0),
        });
        let table = Database::on(&engine).table::<u64, Reports<P>>("rows").create().unwrap();
        for round in 0..3_000u64 {
            let row = Reports { drops: drops.clone() };
            engine.transact(|tx| table.upsert(tx, round % 7, row.clone())).unwrap();
            if round % 3 == 0 {
                engine.transact(|tx| table.delete(tx, &(round % 7))).unwrap();
            }
        }
        drop(table);
        let (counted, refused) = (drops.counted.load(Ordering::SeqCst), drops.refused.load(Ordering::SeqCst));
        assert!(counted > 1_000 && refused > 0, "{counted} {refused}");
        let counter = drops.engine.transact(|tx| drops.counter.get(tx)).unwrap();
        assert!(counter >= counted);
    });
}

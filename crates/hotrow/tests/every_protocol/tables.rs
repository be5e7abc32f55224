//! Tables, one transaction at a time: rows under a hash and under an ordered index.

use crate::support;
use crate::support::for_each_protocol;
use hotrow::{
    Abort, Database, Direction, Engine, Error, Misuse, Protocol, Table, TableMisuse, Transaction, Value,
};
use std::ops::{Bound, ControlFlow};

type Tx<'w, P> = Transaction<'w, P>;

/// One table of each kind.
fn tables<R: Value, P: Protocol>(engine: &Engine<P>) -> [Table<u64, R, P>; 2] {
    [
        Database::on(engine).table("hash").hash(4).create().unwrap(),
        Database::on(engine).table("ordered").create().unwrap(),
    ]
}

fn value<P: Protocol>(engine: &Engine<P>, table: &Table<u64, u64, P>, key: u64) -> Option<u64> {
    engine.transact(|tx| table.get(tx, &key)).unwrap()
}

#[test]
fn operations_on_missing_rows_find_nothing() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        for table in tables::<u64, P>(&engine) {
            engine
                .transact(|tx| {
                    assert_eq!(table.get(tx, &1)?, None);
                    assert_eq!(table.read(tx, &1, |_| ())?, None);
                    assert_eq!(
                        table.update_if_present(tx, &1, |_| unreachable!("there is no row"))?,
                        None::<()>
                    );
                    assert!(!table.delete(tx, &1)?);
                    Ok(())
                })
                .unwrap();
        }
    });
}

#[test]
fn a_row_lives_from_its_insertion_to_its_deletion() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        for table in tables::<u64, P>(&engine) {
            assert_eq!(engine.transact(|tx| table.insert_if_absent(tx, 1, 10)), Ok(true));
            assert_eq!(engine.transact(|tx| table.insert_if_absent(tx, 1, 11)), Ok(false), "a duplicate");
            assert_eq!(value(&engine, &table, 1), Some(10));
            let updated = engine.transact(|tx| {
                table.update_if_present(tx, &1, |row| {
                    *row += 1;
                    *row
                })
            });
            assert_eq!(updated, Ok(Some(11)));
            assert_eq!(engine.transact(|tx| table.upsert(tx, 1, 12)), Ok(false));
            assert_eq!(engine.transact(|tx| table.upsert(tx, 2, 20)), Ok(true));
            assert_eq!((value(&engine, &table, 1), value(&engine, &table, 2)), (Some(12), Some(20)));
            assert_eq!(engine.transact(|tx| table.delete(tx, &1)), Ok(true));
            assert_eq!(engine.transact(|tx| table.delete(tx, &1)), Ok(false));
            assert_eq!(value(&engine, &table, 1), None);
            assert_eq!(engine.transact(|tx| table.insert_if_absent(tx, 1, 13)), Ok(true), "again");
            assert_eq!(value(&engine, &table, 1), Some(13));
        }
    });
}

/// A few operations on one key, and what the transaction must see after them.
type Steps<P> = (&'static str, fn(&Table<u64, u64, P>, &mut Tx<'_, P>) -> Result<(), Abort>, Option<u64>);

/// Sequences of own changes to key 1, for a table that has it with 10, or not.
fn own_changes<P: Protocol>(exists: bool) -> Vec<Steps<P>> {
    let present: &[Steps<P>] = &[
        (
            "update, update",
            |t, tx| {
                t.update_if_present(tx, &1, |row| *row = 11)?;
                t.update_if_present(tx, &1, |row| *row += 1).map(|_| ())
            },
            Some(12),
        ),
        (
            "update, delete, insert",
            |t, tx| {
                t.update_if_present(tx, &1, |row| *row = 11)?;
                assert!(t.delete(tx, &1)? && !t.delete(tx, &1)?);
                assert_eq!(t.get(tx, &1)?, None);
                assert!(t.insert_if_absent(tx, 1, 12)?);
                Ok(())
            },
            Some(12),
        ),
        (
            "delete, insert, update",
            |t, tx| {
                assert!(t.delete(tx, &1)?);
                assert_eq!(t.update_if_present(tx, &1, |_| ())?, None);
                assert!(t.insert_if_absent(tx, 1, 11)? && !t.insert_if_absent(tx, 1, 99)?);
                t.update_if_present(tx, &1, |row| *row += 1).map(|_| ())
            },
            Some(12),
        ),
        (
            "delete, insert, delete",
            |t, tx| {
                assert!(t.delete(tx, &1)? && t.insert_if_absent(tx, 1, 11)? && t.delete(tx, &1)?);
                Ok(())
            },
            None,
        ),
        (
            "update, delete, upsert, upsert",
            |t, tx| {
                t.update_if_present(tx, &1, |row| *row = 11)?;
                assert!(t.delete(tx, &1)? && t.upsert(tx, 1, 12)? && !t.upsert(tx, 1, 13)?);
                Ok(())
            },
            Some(13),
        ),
        (
            "refused insert, update",
            |t, tx| {
                assert!(!t.insert_if_absent(tx, 1, 99)?);
                t.update_if_present(tx, &1, |row| *row += 5).map(|_| ())
            },
            Some(15),
        ),
    ];
    let absent: &[Steps<P>] = &[
        ("insert", |t, tx| t.insert_if_absent(tx, 1, 11).map(|_| ()), Some(11)),
        (
            "insert, update, update",
            |t, tx| {
                assert!(t.insert_if_absent(tx, 1, 11)?);
                t.update_if_present(tx, &1, |row| *row += 1)?;
                t.update_if_present(tx, &1, |row| *row *= 2).map(|_| ())
            },
            Some(24),
        ),
        (
            "insert, delete",
            |t, tx| {
                assert!(t.insert_if_absent(tx, 1, 11)? && t.delete(tx, &1)? && !t.delete(tx, &1)?);
                assert_eq!(t.update_if_present(tx, &1, |_| ())?, None);
                Ok(())
            },
            None,
        ),
        (
            "insert, delete, insert",
            |t, tx| {
                assert!(
                    t.insert_if_absent(tx, 1, 11)? && t.delete(tx, &1)? && t.insert_if_absent(tx, 1, 12)?
                );
                Ok(())
            },
            Some(12),
        ),
        (
            "insert, update, delete, insert, update",
            |t, tx| {
                assert!(t.insert_if_absent(tx, 1, 11)?);
                t.update_if_present(tx, &1, |row| *row += 1)?;
                assert!(t.delete(tx, &1)? && t.insert_if_absent(tx, 1, 20)?);
                t.update_if_present(tx, &1, |row| *row += 1).map(|_| ())
            },
            Some(21),
        ),
        (
            "missed, insert, refused insert",
            |t, tx| {
                assert_eq!(t.get(tx, &1)?, None);
                assert!(t.insert_if_absent(tx, 1, 11)? && !t.insert_if_absent(tx, 1, 99)?);
                Ok(())
            },
            Some(11),
        ),
        (
            "upsert, delete, missed, upsert",
            |t, tx| {
                assert!(t.upsert(tx, 1, 11)? && t.delete(tx, &1)?);
                assert_eq!(t.get(tx, &1)?, None);
                t.upsert(tx, 1, 12).map(|_| ())
            },
            Some(12),
        ),
    ];
    if exists { present.to_vec() } else { absent.to_vec() }
}

#[test]
fn a_transaction_sees_its_own_changes_in_every_order() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        for table in tables::<u64, P>(&engine) {
            for exists in [false, true] {
                for (name, steps, expected) in own_changes::<P>(exists) {
                    let before = exists.then_some(10);
                    engine
                        .transact(|tx| if exists { table.upsert(tx, 1, 10) } else { table.delete(tx, &1) })
                        .unwrap();
                    // Rolled back: as if nothing had been.
                    let rolled_back = engine.transact(|tx| {
                        steps(&table, tx)?;
                        assert_eq!(table.get(tx, &1)?, expected, "{name}");
                        Err::<(), _>(Abort::rollback())
                    });
                    assert_eq!(rolled_back, Err(Error::Rollback(Abort::rollback())));
                    assert_eq!(value(&engine, &table, 1), before, "{name}");
                    // Committed.
                    engine
                        .transact(|tx| {
                            steps(&table, tx)?;
                            assert_eq!(table.get(tx, &1)?, expected, "{name}");
                            Ok(())
                        })
                        .unwrap();
                    assert_eq!(value(&engine, &table, 1), expected, "{name}");
                    let mut rows = Vec::new();
                    let mut worker = engine.worker();
                    if let Ok(worker) = &mut worker {
                        table.for_each(worker, |key, row| rows.push((*key, *row))).unwrap();
                        assert_eq!(rows, expected.map(|row| (1, row)).into_iter().collect::<Vec<_>>());
                    }
                }
            }
        }
    });
}

#[test]
fn a_scan_sees_own_changes_and_a_rollback_leaves_none() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let table = Database::on(&engine).table::<u64, u64>("ordered").create().unwrap();
        let all = |tx: &mut Tx<'_, P>| table.collect(tx, .., Direction::Ascending, usize::MAX);
        for key in 0..200 {
            table.bulk_insert([(key * 2, key)]).unwrap();
        }
        let before = engine.transact(all).unwrap();
        let rolled_back = engine.try_transact(|tx| {
            for key in 0..300 {
                match key % 3 {
                    0 => _ = table.delete(tx, &key)?,
                    1 => _ = table.upsert(tx, key, 1_000)?,
                    _ => _ = table.update_if_present(tx, &key, |row| *row = 2_000)?,
                }
            }
            let expected = (0..400u64).filter_map(|key| match (key < 300, key % 3, key % 2) {
                (true, 0, _) | (_, 2, 1) | (false, _, 1) => None,
                (true, 1, _) => Some((key, 1_000)),
                (true, _, _) => Some((key, 2_000)),
                (false, _, _) => Some((key, key / 2)),
            });
            let rows = all(tx)?;
            assert_eq!(rows, expected.collect::<Vec<_>>());
            let mut downwards = table.collect(tx, .., Direction::Descending, usize::MAX)?;
            downwards.reverse();
            assert_eq!(downwards, rows);
            Err::<(), _>(Abort::rollback())
        });
        assert_eq!(rolled_back, Err(Error::Rollback(Abort::rollback())));
        assert_eq!(engine.transact(all), Ok(before));
    });
}

fn bounds(key: u64) -> [Bound<u64>; 3] {
    [Bound::Included(key), Bound::Excluded(key), Bound::Unbounded]
}

#[test]
fn scans_keep_bounds_limits_and_directions() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let table = Database::on(&engine).table::<u64, u64>("ordered").create().unwrap();
        let keys: Vec<u64> = (0..400).map(|n| n * 3 + 1).collect();
        for key in &keys {
            table.bulk_insert([(*key, key * 10)]).unwrap();
            assert!(table.bulk_insert([(*key, 0)]).is_err(), "loaded twice");
        }
        let ends = [0, 1, 2, 91, 92, 93, 94, 700, 1_198, 1_199, u64::MAX];
        for (low, high) in ends.iter().flat_map(|low| ends.iter().map(move |high| (*low, *high))) {
            for (low, high) in bounds(low).into_iter().flat_map(|a| bounds(high).map(|b| (a, b))) {
                for (direction, limit) in [Direction::Ascending, Direction::Descending]
                    .into_iter()
                    .flat_map(|direction| [0, 1, 40, usize::MAX].map(|limit| (direction, limit)))
                {
                    let within = |key: &&u64| std::ops::RangeBounds::contains(&(low, high), *key);
                    let mut expected: Vec<u64> = keys.iter().filter(within).copied().collect();
                    if direction == Direction::Descending {
                        expected.reverse();
                    }
                    expected.truncate(limit);
                    let found =
                        engine.transact(|tx| table.collect(tx, (low, high), direction, limit)).unwrap();
                    assert!(found.iter().all(|(key, row)| *row == key * 10));
                    let found: Vec<u64> = found.into_iter().map(|(key, _)| key).collect();
                    assert_eq!(found, expected, "{low:?} {high:?} {direction:?} {limit}");
                }
            }
        }
    });
}

#[test]
fn a_scan_ends_where_its_visitor_breaks() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let table = Database::on(&engine).table::<i32, String>("ordered").create().unwrap();
        for key in -50..50 {
            table.bulk_insert([(key, key.to_string())]).unwrap();
        }
        for (direction, expected) in
            [(Direction::Ascending, ["-10", "-9", "-8"]), (Direction::Descending, ["10", "9", "8"])]
        {
            let seen = engine.transact(|tx| {
                let mut seen = Vec::new();
                table.scan(tx, -10..=10, direction, |_, row| {
                    seen.push(row.clone());
                    if seen.len() < 3 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
                })?;
                Ok(seen)
            });
            assert_eq!(seen.unwrap(), expected);
        }
    });
}

#[test]
fn a_hash_table_has_no_order_to_scan_in() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let table = Database::on(&engine).table::<u64, u64>("hash").hash(10).create().unwrap();
        table.bulk_insert([(1, 1)]).unwrap();
        let scanned = engine.transact(|tx| table.collect(tx, .., Direction::Ascending, 10));
        assert!(matches!(scanned, Err(Error::Misuse(Misuse::Unsupported(_)))), "{scanned:?}");
        assert!(scanned.unwrap_err().to_string().contains("hash"));
        assert_eq!(value(&engine, &table, 1), Some(1), "and it works on");
    });
}

#[test]
fn an_immutable_table_is_loaded_and_then_only_read() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let immutable = [
            Database::on(&engine).table::<u64, String>("prices").immutable(),
            Database::on(&engine).table::<u64, String>("prices").immutable().hash(10),
        ];
        for builder in immutable {
            let table = support::loaded(builder, (0..100).map(|key| (key, format!("price {key}"))));
            assert!(table.is_immutable());
            let refused = || Error::Misuse(TableMisuse::ImmutableTable { table: "prices".to_owned() }.into());
            assert_eq!(table.bulk_insert([(200, String::new())]), Err(refused()));
            assert_eq!(engine.transact(|tx| table.insert_if_absent(tx, 200, String::new())), Err(refused()));
            assert_eq!(engine.transact(|tx| table.upsert(tx, 1, String::new())), Err(refused()));
            assert_eq!(engine.transact(|tx| table.update_if_present(tx, &1, String::clear)), Err(refused()));
            assert_eq!(
                engine.transact(|tx| table.update_if_present(tx, &777, String::clear)),
                Err(refused())
            );
            assert_eq!(engine.transact(|tx| table.delete(tx, &1)), Err(refused()));
            for key in 0..100 {
                let read =
                    engine.transact(|tx| Ok((table.get(tx, &key)?, table.read(tx, &key, String::len)?)));
                let price = format!("price {key}");
                assert_eq!(read, Ok((Some(price.clone()), Some(price.len()))));
            }
            assert_eq!(engine.transact(|tx| table.get(tx, &100)), Ok(None));
        }
    });
}

#[test]
fn an_immutable_table_is_scanned() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let builder = Database::on(&engine).table::<u64, u64>("prices").immutable();
        let table = support::loaded(builder, (0..500).map(|key| (key, key * 2)));
        let rows = engine.transact(|tx| table.collect(tx, 100..200, Direction::Descending, 50)).unwrap();
        assert_eq!(rows, (150..200).rev().map(|key| (key, key * 2)).collect::<Vec<_>>());
    });
}

#[test]
fn all_rows_are_visited_once_and_counted() {
    for_each_protocol!(1, |P| {
        for rows in [0u64, 1, 511, 512, 513, 5_000] {
            let engine = support::engine::<P>();
            let mut worker = engine.worker().unwrap();
            let database = Database::on(&engine);
            for builder in [database.table("hash").hash(10), database.table("ordered")] {
                let all = (0..rows).map(|key: u64| (key.wrapping_mul(0x9e37_79b9), [key, key]));
                let table = support::loaded(builder, all);
                let mut keys = Vec::new();
                let visited = table.for_each(&mut worker, |key, row| {
                    assert_eq!(row[0], row[1]);
                    keys.push(*key);
                });
                assert_eq!(visited, Ok(rows));
                keys.sort_unstable();
                keys.dedup();
                assert_eq!(keys.len() as u64, rows);
                let memory = table.memory(&mut worker).unwrap();
                assert_eq!((memory.rows, memory.payload_bytes), (rows, rows * 24));
                assert!(memory.index_bytes > rows * 8);
            }
        }
    });
}

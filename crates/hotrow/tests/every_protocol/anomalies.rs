//! Anomalies under retry: a transaction, and another thread's that commits in its midst. (Stepped on one thread,
//! attempt by attempt, they are in `interleavings`, `phantoms` and `own_changes`.)
//!
//! Where the other one gets through and changes what the first has read, the first must run again; a protocol
//! may also hold the other one off. Either way both must be as if one had run after the other.

use crate::support::{
    attempts, for_each_concurrent_protocol, for_each_protocol, impatient, overtake, whatever_time_it_takes,
};
use hotrow::{Abort, Database, Direction, Error, Protocol, TBox, Table, Transaction};
use std::ops::ControlFlow;

type Tx<'w, P> = Transaction<'w, P>;

#[test]
fn a_value_read_twice_is_the_same_or_the_second_read_aborts() {
    for_each_protocol!(2, |P| {
        let engine = impatient::<P>();
        let number = TBox::new(&engine, 0u64);
        let table = Database::on(&engine).table::<u64, u64>("rows").hash(10).create().unwrap();
        table.bulk_insert([(1, 0)]).unwrap();
        let result = whatever_time_it_takes(|| {
            engine.transact(|tx| {
                let before = (number.get(tx)?, table.get(tx, &1)?, table.get(tx, &2)?);
                if tx.attempt_number() == 0 {
                    overtake(&engine, |tx| {
                        number.set(tx, 1)?;
                        table.delete(tx, &1)?;
                        table.insert_if_absent(tx, 2, 2).map(drop)
                    });
                }
                // Each by itself, since the first abort would hide the others.
                for second in 0..3 {
                    match second {
                        0 => _ = number.get(tx).map(|again| assert_eq!(again, before.0)),
                        1 => _ = table.get(tx, &1).map(|again| assert_eq!(again, before.1)),
                        _ => _ = table.get(tx, &2).map(|again| assert_eq!(again, before.2)),
                    }
                }
                Ok(before)
            })
        });
        assert!(matches!(result, Ok((0, Some(0), None) | (1, None, Some(2)))), "{result:?}");
    });
}

#[test]
fn an_absence_that_was_read_still_holds_at_commit() {
    for_each_protocol!(2, |P| {
        let engine = impatient::<P>();
        let note = TBox::new(&engine, 0u64);
        for (hash, rows) in [0u64, 1, 40, 1_000].into_iter().flat_map(|rows| [(true, rows), (false, rows)]) {
            let table: Table<u64, u64, P> = if hash {
                Database::on(&engine).table("hash").hash(1).create().unwrap()
            } else {
                Database::on(&engine).table("ordered").create().unwrap()
            };
            table.bulk_insert((0..rows).map(|key| (key * 2, 0))).unwrap();
            for key in [1, 17, rows * 2 + 1, u64::MAX] {
                type Look<P> = fn(&Table<u64, u64, P>, &mut Tx<'_, P>, u64) -> Result<bool, Abort>;
                let looks: [Look<P>; 4] = [
                    |table, tx, key| Ok(table.get(tx, &key)?.is_some()),
                    |table, tx, key| Ok(table.update_if_present(tx, &key, |_| ())?.is_some()),
                    |table, tx, key| table.delete(tx, &key),
                    // Its own insertion nearby must not hide the other's.
                    |table, tx, key| {
                        let found = table.get(tx, &key)?.is_some();
                        table.upsert(tx, key - 1, 7)?;
                        Ok(found)
                    },
                ];
                for look in looks {
                    engine.transact(|tx| table.delete(tx, &key)).unwrap();
                    let taken = attempts(
                        &engine,
                        |tx| {
                            let found = look(&table, tx, key)?;
                            note.set(tx, u64::from(found))
                        },
                        |tx| {
                            // The other one says that it was first, unless it reads the note.
                            table.insert_if_absent(tx, key, 1).map(drop)
                        },
                    );
                    assert!(taken.is_none_or(|attempts| attempts == 2), "a phantom at {key} of {rows}");
                    assert_eq!(engine.transact(|tx| note.get(tx)), Ok(u64::from(taken.is_some())));
                }
            }
        }
    });
}

/// The number of rows in a range, by a scan.
fn count<P: Protocol>(
    table: &Table<u64, u64, P>,
    tx: &mut Tx<'_, P>,
    (low, high): (u64, u64),
    direction: Direction,
) -> Result<u64, Abort> {
    let mut count = 0;
    table.scan(tx, low..high, direction, |_, _| {
        count += 1;
        ControlFlow::Continue(())
    })?;
    Ok(count)
}

#[test]
fn a_range_that_was_scanned_is_the_same_at_commit() {
    for_each_protocol!(2, |P| {
        let engine = impatient::<P>();
        let note = TBox::new(&engine, 0u64);
        for rows in [0u64, 3, 31, 32, 700] {
            let table = Database::on(&engine).table::<u64, u64>("ordered").create().unwrap();
            table.bulk_insert((0..rows).map(|key| (key * 2, 0))).unwrap();
            let last = rows * 2;
            for range in [(0, last + 10), (3, 9), (last / 2, last / 2 + 40), (last, last + 5)] {
                for key in [range.0, range.0 + 1, ((range.0 + range.1) / 2) | 1, range.1 - 1] {
                    for direction in [Direction::Ascending, Direction::Descending] {
                        let existed = engine.transact(|tx| Ok(table.get(tx, &key)?.is_some())).unwrap();
                        let taken = attempts(
                            &engine,
                            |tx| {
                                let count = count(&table, tx, range, direction)?;
                                note.set(tx, count)
                            },
                            |tx| {
                                if existed {
                                    table.delete(tx, &key).map(drop)
                                } else {
                                    table.insert_if_absent(tx, key, 0).map(drop)
                                }
                            },
                        );
                        assert!(taken.is_none_or(|attempts| attempts == 2), "{rows} {range:?} {key}");
                        if taken.is_some() {
                            let counted = engine.transact(|tx| count(&table, tx, range, direction));
                            assert_eq!(counted, engine.transact(|tx| note.get(tx)));
                        }
                    }
                }
            }
        }
    });
}

#[test]
fn a_leaf_observed_before_it_covered_a_key_does_not_vouch_for_the_keys_absence() {
    for_each_protocol!(2, |P| {
        let engine = impatient::<P>();
        let number = TBox::new(&engine, 0u64);
        // Ascending keys fill leaves, so that for some number of rows the last one has a leaf of its own.
        for rows in 2..140u64 {
            let table = Database::on(&engine).table::<u64, u64>("ordered").create().unwrap();
            table.bulk_insert((0..rows).map(|key| (key, 0))).unwrap();
            engine.transact(|tx| table.delete(tx, &(rows - 2))).unwrap();
            let before = engine.transact(|tx| number.get(tx)).unwrap();
            let mut is_first = true;
            let committed = whatever_time_it_takes(|| {
                engine.transact(|tx| {
                    let seen = number.get(tx)?;
                    // Observes the leaf before the last key's.
                    assert_eq!(table.get(tx, &(rows - 2))?, None);
                    if std::mem::take(&mut is_first) {
                        overtake(&engine, |tx| {
                            table.delete(tx, &(rows - 1))?;
                            number.update(tx, |number| *number += 1)
                        });
                    }
                    let there = table.get(tx, &(rows - 1))?.is_some();
                    assert!(
                        !engine.is_opaque() || there == (seen == before),
                        "an attempt that saw two states"
                    );
                    Ok((seen, there))
                })
            });
            let states = [(before, true), (before + 1, false)];
            assert!(committed.as_ref().is_ok_and(|seen| states.contains(seen)), "{rows} rows: {committed:?}");
        }
    });
}

#[test]
fn an_insertion_that_succeeds_is_a_look_at_what_was_not_there() {
    for_each_protocol!(2, |P| {
        let engine = impatient::<P>();
        let tables = [
            Database::on(&engine).table("hash").hash(10).create().unwrap(),
            Database::on(&engine).table::<u64, u64>("ordered").create().unwrap(),
        ];
        for table in tables {
            let number = TBox::new(&engine, 0u64);
            table.bulk_insert([(1, 0)]).unwrap();
            let committed = whatever_time_it_takes(|| {
                engine.transact(|tx| {
                    let seen = number.get(tx)?;
                    if tx.attempt_number() == 0 {
                        overtake(&engine, |tx| {
                            table.delete(tx, &1)?;
                            number.set(tx, 1)
                        });
                    }
                    let inserted = table.insert_if_absent(tx, 1, 1)?;
                    assert!(!engine.is_opaque() || inserted == (seen == 1), "an attempt that saw two states");
                    Ok((seen, inserted))
                })
            });
            assert!(matches!(committed, Ok((0, false) | (1, true))), "{committed:?}");
        }
    });
}

#[test]
fn a_scan_that_stops_early_depends_on_nothing_far_beyond() {
    for_each_concurrent_protocol!(2, |P| {
        let engine = impatient::<P>();
        let table = Database::on(&engine).table::<u64, u64>("ordered").create().unwrap();
        table.bulk_insert((0..2_000).map(|key| (key * 2, 0))).unwrap();
        let note = TBox::new(&engine, 0u64);
        let first = |tx: &mut Tx<'_, P>| {
            let found = table.collect(tx, 100.., Direction::Ascending, 3)?;
            note.set(tx, found.len() as u64)
        };
        assert_eq!(attempts(&engine, first, |tx| table.insert_if_absent(tx, 3_001, 0).map(drop)), Some(1));
        assert_eq!(
            attempts(&engine, first, |tx| table.update_if_present(tx, &106, |row| *row += 1).map(drop)),
            Some(1)
        );
        let within = attempts(&engine, first, |tx| table.insert_if_absent(tx, 101, 0).map(drop));
        assert!(within.is_none_or(|attempts| attempts == 2));
        let read =
            attempts(&engine, first, |tx| table.update_if_present(tx, &102, |row| *row += 1).map(drop));
        assert!(read.is_none_or(|attempts| attempts == 2));
    });
}

#[test]
fn a_range_of_a_secondary_index_is_the_same_at_commit() {
    for_each_protocol!(2, |P| {
        let engine = impatient::<P>();
        let mut builder = Database::on(&engine).table::<u64, u64>("rows");
        let by_row = builder.secondary("by_row", |_, row| *row / 10);
        let table = builder.hash(10).create().unwrap();
        table.bulk_insert((0..50).map(|key| (key, key))).unwrap();
        let note = TBox::new(&engine, 0u64);
        let body = |tx: &mut Tx<'_, P>| {
            let mut count = 0;
            by_row.scan_keys(tx, 2..=2, Direction::Ascending, |_, _| {
                count += 1;
                ControlFlow::Continue(())
            })?;
            note.set(tx, count)
        };
        type Change<P> = fn(&Table<u64, u64, P>, &mut Tx<'_, P>) -> Result<(), Abort>;
        let changes: [(Change<P>, u64); 5] = [
            (|table, tx| table.insert_if_absent(tx, 100, 25).map(drop), 2),
            (|table, tx| table.update_if_present(tx, &100, |row| *row = 99).map(drop), 2),
            (|table, tx| table.update_if_present(tx, &3, |row| *row = 20).map(drop), 2),
            (|table, tx| table.delete(tx, &22).map(drop), 2),
            // The entry stays the same.
            (|table, tx| table.update_if_present(tx, &23, |row| *row = 24).map(drop), 1),
        ];
        for (change, expected) in changes {
            let taken = attempts(&engine, body, |tx| change(&table, tx));
            assert!(taken.is_none_or(|attempts| u64::from(attempts) == expected));
            if taken.is_none() {
                // The later ones rely on it.
                engine.transact(|tx| change(&table, tx)).unwrap();
            } else {
                let noted = engine.transact(|tx| note.get(tx)).unwrap();
                let rows = engine
                    .transact(|tx| (0..101).map(|key| table.get(tx, &key)).collect::<Result<Vec<_>, _>>());
                let counted = rows.unwrap().into_iter().flatten().filter(|row| row / 10 == 2).count();
                assert_eq!(noted, counted as u64);
            }
        }
    });
}

#[test]
fn the_first_row_by_a_secondary_index_does_not_depend_on_the_last() {
    for_each_concurrent_protocol!(2, |P| {
        let engine = impatient::<P>();
        let mut builder = Database::on(&engine).table::<u64, u64>("rows");
        let by_row = builder.secondary("by_row", |_, row| *row);
        let table = builder.create().unwrap();
        table.bulk_insert((0..1_000).map(|key| (key, key * 2))).unwrap();
        let note = TBox::new(&engine, 0u64);
        for direction in [Direction::Ascending, Direction::Descending] {
            let first = |tx: &mut Tx<'_, P>| {
                let mut found = 0;
                by_row.scan(tx, 10..=1_900, direction, |row, _, _| {
                    found = *row;
                    ControlFlow::Break(())
                })?;
                note.set(tx, found)
            };
            // A row before the first one found, and one at the other end.
            let (before, far) =
                if direction == Direction::Ascending { ((3, 10), 1_899) } else { ((2_000, 1_900), 11) };
            let unmoved =
                attempts(&engine, first, |tx| table.insert_if_absent(tx, 5_000 + far, far).map(drop));
            assert_eq!(unmoved, Some(1), "{direction:?}");
            engine.transact(|tx| table.delete(tx, &(5_000 + far))).unwrap();
            let moved = attempts(&engine, first, |tx| table.upsert(tx, before.0, before.1).map(drop));
            assert!(moved.is_none_or(|attempts| attempts == 2), "{direction:?}");
        }
    });
}

#[test]
fn a_row_deleted_and_inserted_again_by_others_is_not_the_row_that_was_read() {
    for_each_protocol!(2, |P| {
        let engine = impatient::<P>();
        let tables = [
            Database::on(&engine).table("hash").hash(10).create().unwrap(),
            Database::on(&engine).table::<u64, u64>("ordered").create().unwrap(),
        ];
        for table in tables {
            table.bulk_insert([(1, 1)]).unwrap();
            let mut overtaken = false;
            let committed = whatever_time_it_takes(|| {
                engine.transact(|tx| {
                    let seen = table.get(tx, &1)?;
                    if tx.attempt_number() == 0 {
                        // Two transactions, so that the record is another one.
                        overtaken = overtake(&engine, |tx| table.delete(tx, &1).map(drop))
                            && overtake(&engine, |tx| table.insert_if_absent(tx, 1, 1).map(drop));
                    }
                    table.update_if_present(tx, &1, |row| *row += seen.unwrap_or(50))?;
                    Ok(tx.attempt_number())
                })
            });
            assert_eq!(committed, Ok(u32::from(overtaken)));
            assert_eq!(engine.transact(|tx| table.get(tx, &1)), Ok(Some(2)));
        }
    });
}

#[test]
fn an_opaque_attempt_rolls_back_only_over_what_was_there_at_one_time() {
    for_each_protocol!(2, |P| {
        let engine = impatient::<P>();
        if !engine.is_opaque() {
            return;
        }
        let (x, y) = (TBox::new(&engine, 50u64), TBox::new(&engine, 50u64));
        let checked = whatever_time_it_takes(|| {
            engine.transact(|tx| {
                let first = x.get(tx)?;
                if tx.attempt_number() == 0 {
                    overtake(&engine, |tx| {
                        x.update(tx, |x| *x -= 20)?;
                        y.update(tx, |y| *y += 20)
                    });
                }
                // Never seen, so never said.
                if first + y.get(tx)? == 100 { Ok(()) } else { Err(Abort::rollback()) }
            })
        });
        assert_eq!(checked, Ok::<_, Error>(()));
    });
}

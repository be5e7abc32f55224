//! Snapshots: transactions on them see one state, whatever commits beside them, and disturb nobody.

use super::{HISTORY_BYTES, add, assert_serializable, for_each_protocol, key, number, row, tables};
use hotrow::erased::{Database, Snapshot, Table, Transaction};
use hotrow::sync::atomic::{AtomicBool, Ordering};
use hotrow::sync::random::Random;
use hotrow::sync::thread;
use hotrow::{Abort, Direction, Error, Isolation, Misuse, Profile};
use std::ops::ControlFlow;
use std::time::Duration;

/// The numbers of a table's rows, by key, as a scan finds them.
fn scanned(tx: &mut Transaction<'_>, table: &Table, direction: Direction) -> Result<Vec<(u64, i64)>, Abort> {
    let mut found = Vec::new();
    tx.scan(table, .., direction, |key, row| {
        found.push((u64::from_be_bytes(key.try_into().unwrap()), number(row)));
        ControlFlow::Continue(())
    })?;
    Ok(found)
}

/// The same, as lookups find them.
fn looked_up(tx: &mut Transaction<'_>, table: &Table) -> Result<Vec<(u64, i64)>, Abort> {
    let mut found = Vec::new();
    for at in 0..KEYS {
        found.extend(tx.get(table, key(at))?.map(|row| (at, number(&row))));
    }
    Ok(found)
}

const KEYS: u64 = 12;

/// Checks that a snapshot has these rows in all tables.
fn assert_has(snapshot: &Snapshot, tables: &[(Table, bool)], rows: &[(u64, i64)]) {
    for (table, is_ordered) in tables {
        assert_eq!(snapshot.transact(|tx| looked_up(tx, table)).unwrap(), rows);
        if *is_ordered {
            assert_eq!(snapshot.transact(|tx| scanned(tx, table, Direction::Ascending)).unwrap(), rows);
            let mut backwards = snapshot.transact(|tx| scanned(tx, table, Direction::Descending)).unwrap();
            backwards.reverse();
            assert_eq!(backwards, rows);
        }
    }
}

/// Changes rows at random, in all tables alike, and in `model`.
fn change(db: &Database, tables: &[(Table, bool)], random: &mut Random, model: &mut Vec<(u64, i64)>) {
    let at = random.below(KEYS);
    let place = model.binary_search_by_key(&at, |(key, _)| *key);
    let (deletes, value, length) =
        (random.chance(0.5), random.below(1_000) as i64, [8, 40][random.below(2) as usize]);
    db.transact(|tx| {
        for (table, _) in tables {
            match place {
                Err(_) => tx.insert(table, key(at), row(value, length))?,
                Ok(_) if deletes => drop(tx.delete(table, key(at))?),
                Ok(_) => drop(tx.update(table, key(at), |kept| *kept = row(value, length))?),
            }
        }
        Ok(())
    })
    .unwrap();
    match place {
        Err(place) => model.insert(place, (at, value)),
        Ok(place) if deletes => drop(model.remove(place)),
        Ok(place) => model[place].1 = value,
    }
}

#[test]
fn a_snapshot_stays_as_it_was_while_rows_change_come_and_go() {
    // One worker changes rows, and the same thread's own one reads.
    for_each_protocol(1, |db| {
        let tables = tables(db);
        let mut random = Random::seeded(7);
        let mut model = Vec::new();
        let mut open = Vec::new();
        for round in 0..60 {
            change(db, &tables, &mut random, &mut model);
            if round % 5 == 0 {
                open.push((db.snapshot_strict().unwrap(), model.clone()));
            }
            if round % 15 == 0 {
                open.iter().for_each(|(snapshot, then)| assert_has(snapshot, &tables, then));
                open.remove(random.below(open.len() as u64) as usize);
            }
        }
        open.iter().for_each(|(snapshot, then)| assert_has(snapshot, &tables, then));
        assert_eq!(db.snapshots().open.len(), open.len());
        assert!(db.snapshots().to_string().contains("snapshots.rs"), "the report tells who holds them");
        assert_eq!(db.statistics().aborts, 0, "nobody is in anybody's way");
    });
}

#[test]
fn one_that_reads_rows_of_long_ago_beside_a_snapshot_is_in_nobodys_way_not_even_its_own() {
    for_each_protocol(1, |db| {
        let tables = tables(db);
        for (table, _) in &tables {
            db.bulk_insert(table, (0..KEYS).map(|at| (key(at), row(1, 8)))).unwrap();
        }
        let _open = db.snapshot_strict().unwrap();
        for round in 0..100 {
            db.transact(|tx| {
                for (table, is_ordered) in &tables {
                    tx.update(table, key(0), |row| add(row, 1))?;
                    assert_eq!(looked_up(tx, table)?.len() as u64, KEYS);
                    if *is_ordered {
                        assert_eq!(scanned(tx, table, Direction::Ascending)?[0], (0, 2 + round));
                    }
                }
                Ok(())
            })
            .unwrap();
        }
        assert_eq!(db.statistics().aborts, 0);
    });
}

#[test]
fn the_versions_of_a_hot_row_are_no_more_than_the_snapshots_that_see_them() {
    for_each_protocol(1, |db| {
        let table = db.table("rows").create().unwrap();
        db.bulk_insert(&table, [(key(0), row(0, 40))]).unwrap();
        let old = db.snapshot_strict().unwrap();
        for round in 1..400 {
            db.transact(|tx| tx.update(&table, key(0), |row| add(row, 1))).unwrap();
            let now = db.snapshot_strict().unwrap().transact(|tx| tx.get(&table, key(0))).unwrap();
            assert_eq!(now.map(|row| number(&row)), Some(round));
        }
        let kept = db.snapshots();
        assert!(kept.versions < 200 && kept.open.len() == 1, "{kept}");
        assert_eq!(old.transact(|tx| tx.get(&table, key(0))).unwrap().map(|row| number(&row)), Some(0));
        drop(old);
        // When snapshots have been out of use for a while, commits keep no more versions, and nothing is left.
        thread::sleep(Duration::from_millis(110));
        for _ in 0..200 {
            db.transact(|tx| tx.update(&table, key(0), |row| add(row, 1))).unwrap();
        }
        assert_eq!(db.snapshots().versions, 0);
    });
}

#[test]
fn rows_that_a_snapshot_cannot_see_need_no_versions() {
    for_each_protocol(1, |db| {
        let tables = tables(db);
        let old = db.snapshot_strict().unwrap();
        let on_all = |operation: &dyn Fn(&mut Transaction<'_>, &Table, u64) -> Result<(), Abort>| {
            for at in 0..KEYS {
                db.transact(|tx| tables.iter().try_for_each(|(table, _)| operation(tx, table, at))).unwrap();
            }
        };
        on_all(&|tx, table, at| tx.insert(table, key(at), row(1, 40)));
        on_all(&|tx, table, at| tx.update(table, key(at), |row| add(row, 1)).map(drop));
        on_all(&|tx, table, at| tx.delete(table, key(at)).map(drop));
        on_all(&|tx, table, at| tx.insert(table, key(at), row(3, 40)));
        assert_eq!(db.snapshots().versions, 0, "nothing has changed that the snapshot sees");
        assert_has(&old, &tables, &[]);
        let new = db.snapshot_strict().unwrap();
        on_all(&|tx, table, at| tx.update(table, key(at), |row| add(row, 1)).map(drop));
        assert_eq!(db.snapshots().versions as u64, KEYS * tables.len() as u64);
        let rows: Vec<_> = (0..KEYS).map(|at| (at, 3)).collect();
        assert_has(&new, &tables, &rows);
        assert_has(&old, &tables, &[]);
    });
}

#[test]
fn nothing_is_written_on_a_snapshot_or_at_read_committed() {
    for_each_protocol(1, |db| {
        for (table, _) in tables(db) {
            db.bulk_insert(&table, [(key(0), row(0, 8))]).unwrap();
            let snapshot = db.snapshot().unwrap();
            let writes: [&dyn Fn(&mut Transaction<'_>) -> Result<(), Abort>; 4] = [
                &|tx| tx.update(&table, key(0), |row| add(row, 1)).map(drop),
                &|tx| tx.insert(&table, key(1), row(0, 8)),
                &|tx| tx.delete(&table, key(0)).map(drop),
                &|tx| tx.upsert(&table, key(1), row(0, 8)).map(drop),
            ];
            for write in writes {
                assert!(matches!(
                    snapshot.transact(|tx| write(tx)),
                    Err(Error::Misuse(Misuse::ReadOnly { .. }))
                ));
                for isolation in [Isolation::Snapshot, Isolation::ReadCommitted] {
                    let profile = Profile { isolation, ..Profile::UNKNOWN };
                    let written = db.transact_as(profile, |tx| write(tx));
                    assert!(matches!(written, Err(Error::Misuse(Misuse::ReadOnly { .. }))));
                }
            }
            let opened = db.transact(|_| Ok(db.snapshot_strict().is_err() && db.snapshot().is_err()));
            assert_eq!(opened, Ok(true), "a transaction cannot wait for itself");
            let nested = snapshot.transact(|_| Ok(snapshot.transact(|tx| tx.get(&table, key(0))).is_err()));
            assert_eq!(nested, Ok(true));
            let failed = snapshot.transact(|_| Err::<(), _>(Abort::because("the body's own")));
            assert_eq!(failed.unwrap_err().to_string(), "rolled back: the body's own");
        }
    });
}

#[test]
fn a_strict_snapshot_has_what_was_committed_before_and_each_has_whole_transactions() {
    const ROUNDS: u64 = if cfg!(debug_assertions) { 40 } else { 400 };
    for_each_protocol(4, |db| {
        let tables = tables(db);
        for (table, _) in &tables {
            db.bulk_insert(table, (0..KEYS).map(|at| (key(at), row(100, 8)))).unwrap();
        }
        let recording = db.record_history(HISTORY_BYTES).unwrap();
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            for writer in 0..2 {
                let (tables, stop) = (&tables, &stop);
                scope.spawn(move || {
                    let mut worker = db.worker().unwrap();
                    let mut random = Random::seeded(writer);
                    while !stop.load(Ordering::Relaxed) {
                        let (table, other) =
                            (&tables[random.below(4) as usize].0, &tables[random.below(4) as usize].0);
                        let (from, to) = (key(random.below(KEYS)), key(random.below(KEYS)));
                        let moves_all = random.chance(0.5);
                        worker
                            .transact(|tx| {
                                let Some(there) = tx.get(table, from)?.map(|row| number(&row)) else {
                                    return Ok(());
                                };
                                let moved = if moves_all { there } else { 1 };
                                if moves_all {
                                    tx.delete(table, from)?;
                                } else {
                                    tx.update(table, from, |row| add(row, -1))?;
                                }
                                match tx.get(other, to)? {
                                    None => tx.insert(other, to, row(moved, [8, 40][(moved & 1) as usize])),
                                    Some(_) => tx.update(other, to, |row| add(row, moved)).map(drop),
                                }
                            })
                            .unwrap();
                    }
                });
            }
            let mut worker = db.worker().unwrap();
            let sum = |tx: &mut Transaction<'_>| {
                let mut sum = 0;
                for (table, is_ordered) in &tables {
                    let rows = looked_up(tx, table)?;
                    if *is_ordered {
                        assert_eq!(scanned(tx, table, Direction::Ascending)?, rows);
                    }
                    sum += rows.iter().map(|(_, number)| number).sum::<i64>();
                }
                Ok(sum)
            };
            for round in 0..ROUNDS {
                let isolation = if round % 2 == 0 { Isolation::Snapshot } else { Isolation::StrictSnapshot };
                let expected = 100 * 4 * KEYS as i64;
                let profile = Profile { isolation, ..Profile::READ_ONLY };
                assert_eq!(worker.transact_as(profile, sum).unwrap(), expected);
                // Its own commit is in a strict snapshot.
                let table = &tables[0].0;
                let own = worker.transact(|tx| tx.update(table, key(round % KEYS), |row| add(row, 0)));
                let _ = own;
                let snapshot = if round % 2 == 0 { db.snapshot() } else { db.snapshot_strict() }.unwrap();
                let twice = [snapshot.transact(sum).unwrap(), snapshot.transact(sum).unwrap()];
                assert_eq!(twice, [expected; 2]);
            }
            stop.store(true, Ordering::Relaxed);
        });
        assert_serializable(&hotrow_check::check(&recording.finish()).unwrap());
    });
}

#[test]
fn a_snapshot_is_not_disturbed_by_a_table_that_is_dropped_and_made_again() {
    for_each_protocol(1, |_| {
        let snapshot = {
            let db = Database::open("occ").unwrap();
            let table = db.table("rows").create().unwrap();
            db.bulk_insert(&table, [(key(0), row(0, 40))]).unwrap();
            let snapshot = db.snapshot_strict().unwrap();
            db.transact(|tx| tx.update(&table, key(0), |row| add(row, 1))).unwrap();
            db.transact(|tx| tx.delete(&table, key(0))).unwrap();
            snapshot
        };
        assert!(snapshot.number() > 0 && snapshot.staleness() < Duration::from_secs(3600));
    });
}

//! Tables with caches: rows are found wherever their records are.

use crate::support;
use crate::support::{TableKind, for_each_protocol, on_threads};
use hotrow::sync::random::Random;
use hotrow::{Abort, Database, Direction, Engine, Error, Protocol, Table};
use std::collections::BTreeMap;

const CACHED: [TableKind; 3] = [TableKind::CachedHash, TableKind::Cached, TableKind::CachedTogether];

fn table<P: Protocol>(engine: &Engine<P>, kind: TableKind) -> Table<u64, u64, P> {
    kind.of(Database::on(engine).table("rows")).create().unwrap()
}

/// Compares all ways to find rows with what there must be.
fn compare<P: Protocol>(
    engine: &Engine<P>,
    kind: TableKind,
    table: &Table<u64, u64, P>,
    model: &BTreeMap<u64, u64>,
) {
    let found =
        engine.transact(|tx| (0..70).map(|key| Ok(table.get(tx, &key)?.map(|row| (key, row)))).collect());
    let found: Vec<Option<(u64, u64)>> = found.unwrap();
    assert!(found.into_iter().flatten().eq(model.iter().map(|(key, row)| (*key, *row))));
    let mut walked = BTreeMap::new();
    let mut worker = engine.worker();
    if let Ok(worker) = &mut worker {
        let rows = table.for_each(worker, |key, row| assert!(walked.insert(*key, *row).is_none())).unwrap();
        assert_eq!((rows, &walked), (model.len() as u64, model));
    }
    if kind.is_ordered() {
        for (low, high) in [(0, 70), (10, 20), (33, 33)] {
            let expected: Vec<_> = model.range(low..=high).map(|(key, row)| (*key, *row)).collect();
            let collect = |direction| {
                engine.transact(|tx| table.collect(tx, low..=high, direction, usize::MAX)).unwrap()
            };
            assert_eq!(collect(Direction::Ascending), expected);
            assert!(collect(Direction::Descending).into_iter().rev().eq(expected));
        }
    }
}

#[test]
fn rows_are_found_whatever_becomes_of_those_that_insert_and_delete_them() {
    for_each_protocol!(2, |P| {
        for kind in CACHED {
            let engine = support::engine::<P>();
            let table = table(&engine, kind);
            let (mut model, mut random) = (BTreeMap::new(), Random::seeded(7));
            for turn in 0..40 {
                let mut changed = model.clone();
                let (key, commits) = (random.below(64), random.chance(0.7));
                let again = random.chance(0.5);
                let result = engine.transact(|tx| {
                    changed.clone_from(&model);
                    for key in key..key + 4 {
                        let is_new = table.insert_if_absent(tx, key, turn)?;
                        assert_eq!(is_new, !changed.contains_key(&key));
                        if is_new {
                            changed.insert(key, turn);
                        } else {
                            table.delete(tx, &key)?;
                            changed.remove(&key);
                        }
                        if again {
                            table.upsert(tx, key, turn + 1)?;
                            changed.insert(key, turn + 1);
                        }
                    }
                    if commits { Ok(()) } else { Err(Abort::rollback()) }
                });
                assert_eq!(result.is_ok(), commits);
                if commits {
                    model = changed;
                }
                if turn % 5 == 0 {
                    compare(&engine, kind, &table, &model);
                }
            }
            compare(&engine, kind, &table, &model);
        }
    });
}

#[test]
fn a_snapshot_sees_the_rows_of_its_moment() {
    for_each_protocol!(2, |P| {
        for kind in CACHED {
            let engine = support::engine::<P>();
            let table = table(&engine, kind);
            let change = |from: u64| {
                engine.transact(|tx| {
                    for key in (from..60).step_by(7) {
                        if !table.delete(tx, &key)? {
                            table.insert(tx, key, from)?;
                        }
                    }
                    Ok(())
                })
            };
            let all = |tx: &mut hotrow::Transaction<'_, P>| -> Result<Vec<(u64, u64)>, Abort> {
                if kind.is_ordered() {
                    return table.collect(tx, .., Direction::Ascending, usize::MAX);
                }
                (0..60)
                    .filter_map(|key| table.get(tx, &key).map(|row| row.map(|row| (key, row))).transpose())
                    .collect()
            };
            change(0).unwrap();
            change(3).unwrap();
            let Ok(snapshot) = engine.snapshot() else { continue };
            let Ok(mut worker) = engine.worker() else { continue };
            let expected = match worker.transact_on(&snapshot, |tx| all(tx)) {
                Ok(rows) => rows,
                Err(error) => {
                    assert!(matches!(error, Error::Misuse(_)), "{error}");
                    continue;
                }
            };
            assert_eq!(expected, engine.transact(|tx| all(tx)).unwrap());
            for from in [0, 1, 3, 5] {
                change(from).unwrap();
                assert_eq!(worker.transact_on(&snapshot, |tx| all(tx)).unwrap(), expected);
            }
            assert_ne!(engine.transact(|tx| all(tx)).unwrap(), expected);
        }
    });
}

#[test]
fn of_threads_that_insert_one_key_one_succeeds() {
    for_each_protocol!(4, |P| {
        for kind in CACHED {
            let engine = support::engine::<P>();
            let table = table(&engine, kind);
            const KEYS: u64 = 200;
            let inserted = on_threads(&engine, 4, |number, worker| {
                let mut random = Random::stream(11, number);
                let mut inserted = 0;
                for key in 0..KEYS {
                    let commits = random.chance(0.5) || number == 0;
                    let result = worker.transact(|tx| {
                        let is_new = table.insert_if_absent(tx, key, number)?;
                        if commits { Ok(is_new) } else { Err(Abort::rollback()) }
                    });
                    inserted += u64::from(result.unwrap_or(false));
                }
                inserted
            });
            assert_eq!(inserted.into_iter().sum::<u64>(), KEYS);
            for key in 0..KEYS {
                assert!(engine.transact(|tx| table.get(tx, &key)).unwrap().is_some());
            }
        }
    });
}

//! Tables that are filled: before others can see them, and beside transactions.

use crate::support::{
    self, for_each_concurrent_protocol, for_each_protocol, on_threads, panic_of, whatever_time_it_takes,
};
use hotrow::sync::thread;
use hotrow::{Database, Direction, Error, LoadError, Misuse, Snapshot, TableMisuse};

#[test]
fn a_table_is_seen_when_its_loading_is_finished() {
    for_each_protocol!(1, |P| {
        for hash in [false, true] {
            let db = Database::on(&support::engine::<P>());
            let builder = db.table::<u64, u64>("rows").check("small", |_, row| *row < 1_000);
            let mut builder = if hash { builder.hash(10) } else { builder };
            let by_row = builder.unique("by_row", |_, row| *row);
            let loading = builder.load().unwrap();
            let taken = db.table::<u64, u64>("rows").create().unwrap_err();
            assert_eq!(taken, TableMisuse::NameTaken { name: "rows".into() }.into());
            assert!(db.table::<u64, u64>("rows").open().is_err_and(|refused| matches!(
                refused.downcast_ref(),
                Some(TableMisuse::NoSuchName { .. })
            )));
            assert_eq!((db.names(), loading.name(), loading.is_new()), (vec![], "rows", true));
            thread::scope(|scope| {
                for part in 0..3 {
                    let loading = &loading;
                    scope.spawn(move || {
                        (part..99).step_by(3).for_each(|key| loading.insert(key, 10 * key).unwrap());
                    });
                }
            });
            assert!(matches!(loading.insert(7, 1), Err(LoadError::KeyExists(_))));
            assert!(matches!(loading.insert(200, 70), Err(LoadError::DuplicateKey(_))));
            assert!(matches!(loading.insert(200, 1_000), Err(LoadError::ConstraintViolated(_))));
            assert!(db.transact(|tx| by_row.get(tx, &70)).is_err(), "there is no table yet");
            let rows = loading.finish().unwrap();
            let expected: Vec<_> = (0..99).map(|key| (key, 10 * key)).collect();
            let seen = db.transact(|tx| {
                let mut seen = Vec::new();
                for key in 0..=200 {
                    seen.extend(rows.get(tx, &key)?.map(|row| (key, row)));
                }
                Ok((seen, by_row.get(tx, &70)?))
            });
            assert_eq!(seen, Ok((expected, Some((7, 70)))));
            assert_eq!(db.table::<u64, u64>("rows").open().unwrap().name(), "rows");
        }
    });
}

#[test]
fn an_insertion_that_panics_spoils_the_loading_and_nothing_else() {
    for_each_protocol!(1, |P| {
        let db = Database::on(&support::engine::<P>());
        let others = db.table::<u64, u64>("others").create().unwrap();
        let check = |_: &u64, row: &u64| if *row == 0 { panic!("no row") } else { true };
        let loading = db.table::<u64, u64>("rows").check("it is there", check).load().unwrap();
        loading.insert(1, 1).unwrap();
        assert_eq!(panic_of(|| loading.insert(2, 0)), "no row");
        db.transact(|tx| others.insert(tx, 1, 1)).unwrap();
        assert!(matches!(loading.finish(), Err(Error::Misuse(Misuse::Unsupported(_)))));
        // One that is given up leaves its name.
        let loading = db.table::<u64, u64>("rows").load().unwrap();
        loading.insert(1, 1).unwrap();
        drop(loading);
        let rows = db.table::<u64, u64>("rows").check("it is there", check).create().unwrap();
        assert!(matches!(rows.bulk_insert([(1, 1), (2, 0)]), Err(Error::Panicked { .. })));
        assert_eq!(db.transact(|tx| Ok((rows.get(tx, &1)?, others.get(tx, &1)?))), Ok((None, Some(1))));
        rows.bulk_insert([(1, 1)]).unwrap();
    });
}

#[test]
fn a_snapshot_sees_no_row_that_was_inserted_after_it() {
    for_each_protocol!(1, |P| {
        let db = Database::on(&support::engine::<P>());
        let rows = db.table::<u64, u64>("rows").create().unwrap();
        rows.bulk_insert([(1, 1)]).unwrap();
        let snapshot = db.snapshot_strict().unwrap();
        rows.bulk_insert((2..600).map(|key| (key, key))).unwrap();
        let count = |snapshot: &Snapshot<P>| snapshot.transact(|tx| rows.count(tx, ..));
        assert_eq!(count(&snapshot), Ok(1));
        assert_eq!(count(&db.snapshot_strict().unwrap()), Ok(599));
    });
}

#[test]
fn a_scan_of_a_snapshot_shows_each_key_once_beside_insertions_in_bulk() {
    for_each_concurrent_protocol!(4, |P| {
        let engine = support::engine::<P>();
        let rows = Database::on(&engine).table::<u64, u64>("rows").create().unwrap();
        on_threads(&engine, 3, |thread, worker| {
            for round in 0..100 {
                let keys = (0..8).map(|key| (round % 5) * 8 + key);
                match thread {
                    // Some are there already.
                    0 => _ = rows.bulk_insert(keys.map(|key| (key, round))),
                    1 => {
                        let deleted = whatever_time_it_takes(|| {
                            worker.transact(|tx| {
                                keys.clone().try_for_each(|key| rows.delete(tx, &key).map(|_| ()))
                            })
                        });
                        deleted.unwrap();
                    }
                    _ => {
                        let snapshot = engine.snapshot().unwrap();
                        let seen = worker
                            .transact_on(&snapshot, |tx| rows.collect(tx, .., Direction::Ascending, 100))
                            .unwrap();
                        let keys: Vec<_> = seen.iter().map(|(key, _)| *key).collect();
                        assert!(keys.is_sorted_by(|one, next| one < next), "{keys:?}");
                        // Inserted and deleted together.
                        assert!(keys.chunk_by(|one, next| one / 8 == next / 8).all(|all| all.len() == 8));
                    }
                }
            }
        });
    });
}

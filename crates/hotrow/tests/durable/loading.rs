//! Loading of durable tables, and growth of durable arrays: whole or not at all, and never in favour of older rows.

use crate::power::open;
use crate::support::{choose, for_each_concurrent_protocol};
use hotrow::durable::storage::{Fault, Faulty};
use hotrow::durable::{DurableDatabase, Mode, OpenReport};
use hotrow::sync::atomic::{AtomicU64, Ordering};
use hotrow::sync::thread;
use hotrow::{Database, LoadError, Occ, Protocol, Table};
use std::io::ErrorKind;
use std::sync::Arc;

const ROWS: u64 = 3_000;

fn reopened(storage: &Arc<Faulty>) -> Database<Occ> {
    choose("occ");
    open(storage.clone(), Mode::Group)
}

/// Loads a table, and tells if it was finished.
fn load(db: &Database<Occ>) -> bool {
    let loading = db.table::<u64, u64>("rows").hash(10).load().unwrap();
    assert!(loading.is_new());
    (0..ROWS).for_each(|key| loading.insert(key, 10 * key).unwrap());
    loading.finish().is_ok()
}

/// The number of rows that were recovered; `None` if there is no such table.
fn recovered(storage: &Arc<Faulty>) -> Option<u64> {
    let db = reopened(storage);
    let loading = db.table::<u64, u64>("rows").load().unwrap();
    let is_new = loading.is_new();
    if !is_new {
        let refused = loading.insert(ROWS + 1, 0).unwrap_err();
        assert_eq!(refused, LoadError::Recovered("rows".into()));
    }
    let rows = loading.finish().unwrap();
    (!is_new).then(|| sum_of(&db, &rows).0)
}

fn sum_of<P: Protocol>(db: &Database<P>, rows: &Table<u64, u64, P>) -> (u64, u64) {
    let (mut count, mut sum) = (0, 0);
    let visited = db.with_worker(|worker| {
        rows.for_each(worker, |_, row| {
            count += 1;
            sum += row;
        })
    });
    visited.unwrap();
    (count, sum)
}

#[test]
fn a_loaded_table_is_recovered_whole_or_not_at_all() {
    for after in 1.. {
        let storage = Arc::new(Faulty::new(after));
        let db = reopened(&storage);
        let other = db.table::<u64, u64>("other").create().unwrap();
        db.transact(|tx| other.insert(tx, 1, 1)).unwrap();
        storage.plan(storage.operations() + after, Fault::Broken);
        let is_finished = load(&db);
        let lost = Arc::new(storage.power_loss(after));
        drop((other, db));
        match recovered(&lost) {
            None => assert!(!is_finished, "operation {after}: the table is lost"),
            // The last write of the catalog may have arrived, although it was reported as a failure.
            Some(rows) => assert_eq!(rows, ROWS, "operation {after}: a part of the table is there"),
        }
        if is_finished {
            assert!(after > 5, "some operations have failed");
            break;
        }
        // What is left of it is in nobody's way.
        assert!(recovered(&lost).is_none() || recovered(&lost).is_some());
    }
}

#[test]
fn a_loaded_table_is_in_the_next_checkpoint_and_a_lost_loading_is_in_none() {
    let storage = Arc::new(Faulty::new(1));
    let db = reopened(&storage);
    storage.plan(storage.operations() + 8, Fault::Error(ErrorKind::Other));
    assert!(!load(&db), "it fails");
    drop(db);
    storage.repair();
    let db = reopened(&storage);
    assert!(load(&db));
    db.checkpoint().unwrap();
    db.checkpoint().unwrap();
    drop(db);
    let report: Option<OpenReport> = reopened(&storage).open_report().cloned();
    assert!(report.is_some());
    assert_eq!(recovered(&storage), Some(ROWS));
}

#[test]
fn checkpoints_beside_loadings_lose_no_row() {
    let storage = Arc::new(Faulty::new(1));
    let db = reopened(&storage);
    let left = AtomicU64::new(10);
    thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..10 {
                let loading = db.table::<u64, u64>(format!("rows {number}")).load().unwrap();
                (0..300).for_each(|key| loading.insert(key, key).unwrap());
                loading.finish().unwrap();
                left.fetch_sub(1, Ordering::Relaxed);
            }
        });
        while left.load(Ordering::Relaxed) > 0 {
            db.checkpoint().unwrap();
        }
    });
    let storage = Arc::new(storage.power_loss(1));
    drop(db);
    let db = reopened(&storage);
    for number in 0..10 {
        let rows = db.table::<u64, u64>(format!("rows {number}")).create().unwrap();
        assert_eq!(sum_of(&db, &rows), (300, 300 * 299 / 2), "{number}");
    }
}

#[test]
fn recovery_prefers_acknowledged_changes_to_rows_inserted_in_bulk_before() {
    for_each_concurrent_protocol!(4, |P| {
        const KEYS: u64 = 60;
        let storage = Arc::new(Faulty::new(1));
        let db: Database<P> = open(storage.clone(), Mode::Group);
        let rows = db.table::<u64, u64>("rows").create().unwrap();
        let changed = thread::scope(|scope| {
            let changing = scope.spawn(|| {
                let mut changed = Vec::new();
                while changed.len() < KEYS as usize {
                    let key = changed.len() as u64;
                    let change = db.transact(|tx| rows.update_if_present(tx, &key, |row| *row = 1));
                    changed.extend(change.unwrap().map(|()| key));
                }
                changed
            });
            (0..KEYS).for_each(|key| rows.bulk_insert([(key, 0)]).unwrap());
            changing.join().unwrap()
        });
        let storage = Arc::new(storage.power_loss(1));
        drop((rows, db));
        let db: Database<P> = open(storage, Mode::Group);
        let rows = db.table::<u64, u64>("rows").create().unwrap();
        for key in changed {
            assert_eq!(db.transact(|tx| rows.get(tx, &key)), Ok(Some(1)), "row {key}");
        }
    });
}

#[test]
fn an_array_that_could_not_grow_keeps_its_values() {
    let storage = Arc::new(Faulty::new(1));
    let db = reopened(&storage);
    let array = db.durable_array("numbers", 3, |_| 0_u64).unwrap();
    db.transact(|tx| (0..3).try_for_each(|index| array.set(tx, index, 7))).unwrap();
    drop((array, db));
    let db = reopened(&storage);
    // The log fails, so that the array cannot grow.
    let other = db.table::<u64, u64>("other").create().unwrap();
    storage.plan(storage.operations() + 1, Fault::Error(ErrorKind::Other));
    assert!(db.transact(|tx| other.insert(tx, 1, 1)).is_err());
    for _ in 0..2 {
        assert!(db.durable_array("numbers", 5, |_| 0_u64).is_err(), "values were given out that are none");
    }
    storage.repair();
    drop((other, db));
    let db = reopened(&storage);
    let array = db.durable_array("numbers", 5, |_| 1_u64).unwrap();
    assert_eq!(
        db.transact(|tx| (0..5).map(|index| array.get(tx, index)).collect::<Result<Vec<_>, _>>()),
        Ok(vec![7, 7, 7, 1, 1])
    );
}

#[test]
fn tables_may_be_finished_in_another_order_than_they_were_begun() {
    let storage = Arc::new(Faulty::new(1));
    let db = reopened(&storage);
    let begun = [0, 1, 2].map(|number| db.table::<u64, u64>(format!("rows {number}")).load().unwrap());
    for (number, loading) in begun.into_iter().enumerate().rev() {
        loading.insert(1, number as u64).unwrap();
        loading.finish().unwrap();
    }
    drop(db);
    let db = reopened(&storage);
    for number in 0..3 {
        let rows = db.table::<u64, u64>(format!("rows {number}")).create().unwrap();
        assert_eq!(db.transact(|tx| rows.get(tx, &1)), Ok(Some(number)));
    }
}

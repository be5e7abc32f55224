//! Dropped tables: their names and memory are free, handles that are left say so, and a crash leaves all or nothing of a durable one.

use crate::power::open;
use crate::support::{choose, chosen, for_each_protocol};
use hotrow::durable::storage::{Fault, Faulty};
use hotrow::durable::{DurableDatabase, Mode};
use hotrow::sync::atomic::{AtomicU64, Ordering};
use hotrow::sync::thread;
use hotrow::{Database, Direction, Error, Misuse, Occ, Table, TableMisuse, Value};
use std::sync::Arc;
use std::time::Duration;

const ROWS: u64 = 600;

/// A boxed row whose copies are counted.
#[derive(Value)]
struct Counted {
    number: u64,
    alive: Arc<AtomicU64>,
}

impl Counted {
    fn new(number: u64, alive: &Arc<AtomicU64>) -> Self {
        alive.fetch_add(1, Ordering::Relaxed);
        Self { number, alive: alive.clone() }
    }
}

impl Clone for Counted {
    fn clone(&self) -> Self {
        Self::new(self.number, &self.alive)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.alive.fetch_sub(1, Ordering::Relaxed);
    }
}

fn is_dropped<T>(result: &Result<T, Error>, name: &str) -> bool {
    matches!(result, Err(Error::Misuse(Misuse::Dropped { object })) if object == name)
}

#[test]
fn a_dropped_table_is_gone_with_its_name_and_its_rows_and_its_handles_say_so() {
    for_each_protocol!(2, |P| {
        let db = Database::builder().typed::<P>().variant(chosen()).open().unwrap();
        let alive = Arc::new(AtomicU64::new(0));
        for round in 0..4 {
            let builder = db.table::<u64, Counted>("rows");
            let mut builder = match round % 3 {
                0 => builder,
                1 => builder.hash(8),
                _ => builder.cached(4),
            };
            let numbers = builder.secondary("numbers", |_, row: &Counted| row.number);
            let doubles = builder.unique("doubles", |_, row: &Counted| row.number * 2);
            let rows = builder.create().unwrap();
            rows.bulk_insert((0..ROWS).map(|key| (key, Counted::new(key, &alive)))).unwrap();
            assert!(alive.load(Ordering::Relaxed) >= ROWS);
            let reference = rows.reference();
            let snapshot = db.snapshot_strict().unwrap();
            db.drop_table(&rows).unwrap();
            assert_eq!(db.names(), Vec::<String>::new());
            let named = |result| is_dropped(&result, "rows");
            assert!(named(db.transact(|tx| rows.read(tx, &1, |row| row.number).map(drop))));
            assert!(named(db.transact(|tx| rows.insert(tx, ROWS, Counted::new(0, &alive)))));
            assert!(named(db.transact(|tx| db.table_of(reference).delete(tx, &1).map(drop))));
            assert!(named(snapshot.transact(|tx| rows.read(tx, &1, |row| row.number).map(drop))));
            assert!(named(db.drop_table(&rows)));
            let counted = db.transact(|tx| {
                let mut count = 0;
                numbers.scan_keys(tx, .., Direction::Ascending, |_, _| {
                    count += 1;
                    std::ops::ControlFlow::Continue(())
                })?;
                Ok(count)
            });
            assert!(is_dropped(&counted, "rows.numbers"), "{counted:?}");
            assert!(is_dropped(&db.transact(|tx| doubles.get(tx, &2).map(drop)), "rows.doubles"));
            drop(snapshot);
            // Transactions of other tests may be in the way for a moment.
            let freed = (0..10_000).any(|_| {
                db.collect();
                thread::sleep(Duration::from_millis(1));
                alive.load(Ordering::Relaxed) == 0
            });
            assert!(freed, "{} rows are kept", alive.load(Ordering::Relaxed));
        }
        let other = db.table::<String, u8>("rows").create().unwrap();
        db.transact(|tx| other.insert(tx, "one".into(), 1)).unwrap();
        let elsewhere = Database::builder().typed::<P>().variant(chosen()).open().unwrap();
        assert!(matches!(elsewhere.drop_table(&other), Err(Error::Misuse(Misuse::ForeignObject { .. }))));
        let nested = db.transact(|_| Ok(db.drop_table(&other)));
        assert!(matches!(nested, Ok(Err(Error::Misuse(Misuse::Nested)))), "{nested:?}");
        assert_eq!(db.transact(|tx| other.get(tx, "one")), Ok(Some(1)));
    });
}

#[test]
fn a_transaction_that_waits_for_a_row_learns_that_the_table_is_dropped() {
    for_each_protocol!(2, |P| {
        for _ in 0..20 {
            let db = Database::builder().typed::<P>().variant(chosen()).open().unwrap();
            let rows = db.table::<u64, u64>("rows").create().unwrap();
            thread::scope(|scope| {
                let waits = scope.spawn(|| {
                    db.transact(|tx| match rows.get(tx, &1)? {
                        Some(row) => Ok(row),
                        None => tx.retry(),
                    })
                });
                thread::yield_now();
                db.drop_table(&rows).unwrap();
                assert!(is_dropped(&waits.join().unwrap(), "rows"));
            });
        }
    });
}

#[test]
fn transactions_beside_a_drop_commit_or_are_told_and_change_nothing_else_by_half() {
    for_each_protocol!(3, |P| {
        let storage = Arc::new(Faulty::new(3));
        let db: Database<P> = open(storage.clone(), Mode::Group);
        let stays = db.table::<u64, u64>("stays").create().unwrap();
        let committed = AtomicU64::new(0);
        for round in 0..6 {
            let goes = db.table::<u64, u64>("goes").create().unwrap();
            thread::scope(|scope| {
                for part in 0..2 {
                    let (db, goes, stays, committed) = (&db, &goes, &stays, &committed);
                    scope.spawn(move || {
                        for number in 0.. {
                            let key = (round * 2 + part) * 1_000_000 + number;
                            let ended = db.transact(|tx| {
                                stays.insert(tx, key, key)?;
                                goes.insert(tx, key, key)
                            });
                            match ended {
                                Ok(()) => committed.fetch_add(1, Ordering::Relaxed),
                                Err(Error::Misuse(Misuse::Dropped { .. })) => break,
                                Err(error) => panic!("{error}"),
                            };
                        }
                    });
                }
                db.drop_table(&goes).unwrap();
            });
        }
        let committed = committed.into_inner();
        let count = |stays: &Table<u64, u64, P>, db: &Database<P>| {
            stays.for_each(&mut db.worker().unwrap(), |_, _| ()).unwrap()
        };
        assert_eq!(count(&stays, &db), committed);
        drop((stays, db));
        choose(&chosen());
        let db: Database<P> = open(Arc::new(storage.power_loss(1)), Mode::Group);
        assert_eq!(count(&db.table::<u64, u64>("stays").create().unwrap(), &db), committed);
        assert!(
            db.table::<u64, u64>("goes").create().unwrap().for_each(&mut db.worker().unwrap(), |_, _| ())
                == Ok(0)
        );
    });
}

fn opened(storage: Arc<Faulty>) -> Database<Occ> {
    choose("occ");
    open(storage, Mode::Group)
}

#[test]
fn the_name_of_a_durable_table_is_free_for_one_of_another_type_before_and_after_an_opening() {
    let storage = Arc::new(Faulty::new(1));
    let db = opened(storage.clone());
    let rows = db.table::<u64, u64>("rows").create().unwrap();
    rows.bulk_insert((0..ROWS).map(|key| (key, key))).unwrap();
    db.drop_table(&rows).unwrap();
    db.checkpoint().unwrap();
    let rows = db.table::<String, String>("rows").create().unwrap();
    db.transact(|tx| rows.insert(tx, "one".into(), "1".into())).unwrap();
    drop((rows, db));
    let db = opened(storage.clone());
    assert!(
        db.drop_recovered("nothing")
            .is_err_and(|refused| matches!(refused.downcast_ref(), Some(TableMisuse::NoSuchName { .. })))
    );
    let rows = db.table::<String, String>("rows").create().unwrap();
    assert_eq!(db.transact(|tx| rows.get(tx, "one")), Ok(Some("1".into())));
    assert!(
        db.drop_recovered("rows")
            .is_err_and(|refused| matches!(refused.downcast_ref(), Some(TableMisuse::NameTaken { .. })))
    );
    drop((rows, db));
    let db = opened(storage.clone());
    db.drop_recovered("rows").unwrap();
    drop(db);
    let db = opened(storage.clone());
    let rows = db.table::<u8, u8>("rows").create().unwrap();
    assert_eq!(db.transact(|tx| rows.get(tx, &1)), Ok(None));
    let kept = db.table::<u8, u8>("kept").in_memory().create().unwrap();
    db.transact(|tx| kept.insert(tx, 1, 1)).unwrap();
    db.drop_table(&kept).unwrap();
    db.drop_table(&rows).unwrap();
    drop((kept, rows, db));
    assert!(opened(storage).drop_recovered("rows").is_err());
}

#[test]
fn a_crash_at_any_operation_of_a_drop_leaves_the_table_whole_or_gone() {
    for by_handle in [true, false] {
        let (mut was_gone, mut was_whole) = (false, false);
        for after in 1.. {
            let storage = Arc::new(Faulty::new(after));
            let mut db = opened(storage.clone());
            let mut rows = Some(db.table::<u64, u64>("rows").create().unwrap());
            rows.as_ref().unwrap().bulk_insert((0..ROWS).map(|key| (key, key))).unwrap();
            if !by_handle {
                drop((rows.take(), db));
                db = opened(storage.clone());
            }
            let planned = storage.operations() + after;
            storage.plan(planned, Fault::Broken);
            let ended = match &rows {
                Some(rows) => db.drop_table(rows).map_err(|error| error.to_string()),
                None => db.drop_recovered("rows").map_err(|error| error.to_string()),
            };
            let is_over = storage.operations() < planned;
            drop((rows, db));
            let db = opened(Arc::new(storage.power_loss(after)));
            let rows = db.table::<u64, u64>("rows").create().unwrap();
            let left = rows.for_each(&mut db.worker().unwrap(), |key, row| assert_eq!(key, row)).unwrap();
            assert!(left == 0 || left == ROWS && ended.is_err(), "{left} rows are left after {ended:?}");
            was_gone |= left == 0;
            was_whole |= left == ROWS;
            if is_over {
                break;
            }
        }
        assert!(was_gone && was_whole);
    }
}

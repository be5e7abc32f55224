//! Parts of bodies that are undone alone.

use super::{Counter, cluster, settings};
use crate::{Cluster, ClusterError, MemoryStore, RemoteTable, Settings, Transaction};
use hotrow::column_of;
use hotrow_core::{Abort, BlockedForever, Error, Misuse};
use hotrow_sync::clock::Duration;
use hotrow_sync::{Arc, thread};
use hotrow_tables::{ConstraintViolated, KeyExists, MissingRow};

type Numbers = RemoteTable<u32, i64>;

fn numbers() -> (Cluster, Numbers) {
    let cluster = cluster();
    let table = cluster.table("numbers").create_or_open().unwrap();
    cluster.transact(|tx| (1..=3).try_for_each(|key| tx.insert(&table, key, i64::from(key)))).unwrap();
    (cluster, table)
}

fn rows(cluster: &Cluster, table: &Numbers) -> Vec<(u32, i64)> {
    cluster.transact(|tx| tx.rows(table, ..)).unwrap()
}

/// Writes in all ways.
fn write(tx: &mut Transaction<'_>, table: &Numbers) -> Result<(), Abort> {
    tx.update(table, &1, |row| *row += 10)?;
    tx.delete(table, &2)?;
    tx.upsert(table, 3, 33)?;
    tx.insert(table, 4, 4)
}

#[test]
fn a_part_that_fails_leaves_no_write() {
    let (cluster, table) = numbers();
    let body = |tx: &mut Transaction<'_>| {
        tx.update(&table, &1, |row| *row += 100)?;
        let part = tx.savepoint(|tx| {
            write(tx, &table)?;
            tx.insert(&table, 4, 4)
        })?;
        assert!(part.unwrap_err().downcast_ref::<KeyExists>().is_some());
        assert_eq!(tx.rows(&table, ..)?, [(1, 101), (2, 2), (3, 3)]);
        tx.savepoint(|tx| tx.insert(&table, 5, 5))?
    };
    cluster.transact(body).unwrap();
    assert_eq!(rows(&cluster, &table), [(1, 101), (2, 2), (3, 3), (5, 5)]);
}

#[test]
fn parts_are_nested() {
    let (cluster, table) = numbers();
    let body = |inner_fails: bool, outer_fails: bool| {
        cluster.transact(|tx| {
            let outer = tx.savepoint(|tx| {
                tx.upsert(&table, 1, 10)?;
                let inner = tx.savepoint(|tx| {
                    tx.upsert(&table, 1, 11)?;
                    tx.upsert(&table, 2, 22)?;
                    if inner_fails { Err(Abort::rollback()) } else { Ok(()) }
                })?;
                assert_eq!(inner.is_err(), inner_fails);
                tx.update(&table, &1, |row| *row += 100)?;
                if outer_fails { Err(Abort::rollback()) } else { Ok(()) }
            })?;
            assert_eq!(outer.is_err(), outer_fails);
            let seen = tx.rows(&table, ..2)?;
            tx.upsert(&table, 9, 9)?;
            Ok(seen)
        })
    };
    assert_eq!(body(false, true).unwrap(), [(1, 1)]);
    assert_eq!(rows(&cluster, &table), [(1, 1), (2, 2), (3, 3), (9, 9)]);
    assert_eq!(body(true, false).unwrap(), [(1, 110)]);
    assert_eq!(rows(&cluster, &table), [(1, 110), (2, 2), (3, 3), (9, 9)]);
    assert_eq!(body(false, false).unwrap(), [(1, 111)]);
    assert_eq!(rows(&cluster, &table), [(1, 111), (2, 22), (3, 3), (9, 9)]);
}

#[test]
fn a_part_that_panics_is_undone() {
    let (cluster, table) = numbers();
    let body = |tx: &mut Transaction<'_>| {
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            tx.savepoint(|tx| -> Result<(), Abort> {
                write(tx, &table)?;
                panic!("as the test wants")
            })
        }));
        assert!(panicked.is_err());
        tx.insert(&table, 9, 9)
    };
    cluster.transact(body).unwrap();
    assert_eq!(rows(&cluster, &table), [(1, 1), (2, 2), (3, 3), (9, 9)]);
}

#[test]
fn an_error_that_was_caught_before_a_part_is_not_forgotten() {
    let (cluster, table) = numbers();
    let caught = cluster.transact(|tx| {
        let _ = tx.insert(&table, 1, 1);
        assert!(tx.savepoint(|_| Err::<(), _>(Abort::rollback()))?.is_err());
        tx.insert(&table, 9, 9)
    });
    assert_eq!(caught.unwrap_err().misuse(), Some(&Misuse::CaughtError));
    let foreign = super::cluster().table::<u32, i64>("numbers").create_or_open().unwrap();
    let stopped = cluster.transact(|tx| {
        let part = tx.savepoint(|tx| tx.get(&foreign, &1));
        assert!(part.is_err(), "the attempt is over, and not the part alone");
        Ok(())
    });
    assert!(matches!(stopped.unwrap_err().misuse(), Some(Misuse::ForeignObject { .. })));
}

#[test]
fn reads_of_a_part_that_was_undone_are_validated() {
    let store = Arc::new(MemoryStore::new());
    let open = || {
        let cluster = super::cluster_over(&store);
        let table = cluster.table::<u32, i64>("numbers").create_or_open().unwrap();
        (cluster, table)
    };
    let ((one, table), (other, others)) = (open(), open());
    one.transact(|tx| tx.insert(&table, 1, 1)).unwrap();
    let mut attempts = 0;
    let found = one.transact(|tx| {
        attempts += 1;
        let part = tx.savepoint(|tx| {
            tx.insert(&table, 9, 9)?;
            if tx.rows(&table, 2..5)?.is_empty() { Err(Abort::rollback()) } else { Ok(()) }
        })?;
        if attempts == 1 {
            thread::scope(|scope| {
                let insert = || other.transact(|tx| tx.insert(&others, 2, 2));
                scope.spawn(insert).join().unwrap().unwrap();
            });
        }
        tx.upsert(&table, 100, 0)?;
        Ok(part.is_ok())
    });
    assert_eq!((found.unwrap(), attempts), (true, 2));
    assert_eq!(rows(&one, &table), [(1, 1), (2, 2), (9, 9), (100, 0)]);
}

#[test]
fn the_second_part_runs_if_the_first_one_fails_or_waits() {
    let (cluster, table) = numbers();
    let run = |first: fn(&mut Transaction<'_>) -> Result<i64, Abort>| {
        cluster.transact(|tx| {
            let either = tx.or_else(
                |tx| {
                    write(tx, &table)?;
                    first(tx)
                },
                |tx| {
                    assert_eq!(
                        tx.rows(&table, ..)?,
                        [(1, 1), (2, 2), (3, 3)],
                        "nothing of the first one is left"
                    );
                    Ok(2)
                },
            )?;
            let neither =
                tx.savepoint(|tx| tx.or_else(Transaction::retry, |_| Err::<(), _>(Abort::rollback())))?;
            assert!(neither.is_err());
            Ok(either)
        })
    };
    assert_eq!(run(|_| Err(Abort::rollback())).unwrap(), 2);
    assert_eq!(run(|tx| tx.retry()).unwrap(), 2);
    assert_eq!(rows(&cluster, &table), [(1, 1), (2, 2), (3, 3)]);
    assert_eq!(run(|_| Ok(1)).unwrap(), 1);
    assert_eq!(rows(&cluster, &table), [(1, 11), (3, 33), (4, 4)]);
}

#[test]
fn a_transaction_of_which_both_parts_wait_waits_for_what_either_has_read() {
    for woken_by in [1, 2] {
        let (cluster, table) = numbers();
        let take = |tx: &mut Transaction<'_>, key: u32| {
            if tx.get(&table, &key)? < Some(50) {
                return tx.retry();
            }
            tx.delete(&table, &key)?;
            Ok(key)
        };
        let taken = thread::scope(|scope| {
            let waiting =
                scope.spawn(|| cluster.transact(|tx| tx.or_else(|tx| take(tx, 1), |tx| take(tx, 2))));
            thread::sleep(Duration::from_millis(20));
            cluster.transact(|tx| tx.update(&table, &woken_by, |row| *row = 50)).unwrap();
            waiting.join().unwrap()
        });
        assert_eq!(taken.unwrap(), woken_by);
    }
    let settings = Settings { deadline: Duration::from_millis(50), ..settings() };
    let impatient = Cluster::with_settings(Arc::new(MemoryStore::new()), settings);
    let table = impatient.table::<u32, i64>("numbers").create_or_open().unwrap();
    let nothing = impatient.transact(|tx| tx.or_else(Transaction::retry::<()>, Transaction::retry));
    let blocked = ClusterError::Transaction(Error::BlockedForever(BlockedForever::NothingRead));
    assert_eq!(nothing.unwrap_err().to_string(), blocked.to_string());
    let late = impatient.transact(|tx| {
        tx.or_else(|tx| tx.get(&table, &1).and_then(|_| tx.retry::<()>()), Transaction::retry)
    });
    assert!(matches!(late, Err(ClusterError::Transaction(Error::RetryTimeout { .. }))));
}

#[test]
fn what_a_part_has_added_is_judged_before_it_is_undone() {
    let cluster = cluster();
    let table = cluster.table::<u32, Counter>("counters").create_or_open().unwrap();
    cluster.transact(|tx| tx.insert(&table, 1, Counter { count: 5 })).unwrap();
    let count = column_of!(Counter, count);
    let why = cluster.transact(|tx| {
        let part = tx.savepoint(|tx| {
            tx.add(&table, &2, count, 1)?;
            Ok::<_, Abort>(())
        })?;
        Ok(part.unwrap_err().downcast_ref::<MissingRow>().is_some())
    });
    assert!(why.unwrap());
    let enough = cluster.transact(|tx| {
        let part = tx.savepoint(|tx| {
            let enough = tx.subtract_if_enough(&table, &1, count, 6)?;
            Err::<(), _>(Abort::because(std::io::Error::other(format!("{enough}"))))
        })?;
        Ok(part.unwrap_err().to_string())
    });
    assert!(enough.unwrap().contains("false"));
}

#[test]
fn a_row_that_only_an_undone_part_has_changed_is_not_judged() {
    let store = Arc::new(MemoryStore::new());
    let lax = super::cluster_over(&store);
    let numbers = lax.table::<u32, i64>("numbers").create_or_open().unwrap();
    lax.transact(|tx| tx.insert(&numbers, 1, -1)).unwrap();
    let strict = super::cluster_over(&store);
    let numbers = strict
        .table::<u32, i64>("numbers")
        .check("positive", |_, number| *number > 0)
        .create_or_open()
        .unwrap();
    let change = |is_kept: bool| {
        strict.transact(|tx| {
            let part = tx.savepoint(|tx| {
                tx.update(&numbers, &1, |number| *number -= 1)?;
                if is_kept { Ok(()) } else { Err(Abort::rollback()) }
            })?;
            tx.upsert(&numbers, 2, 2)?;
            Ok(part.is_ok())
        })
    };
    assert!(!change(false).unwrap());
    assert!(change(true).unwrap_err().downcast_ref::<ConstraintViolated>().is_some());
}

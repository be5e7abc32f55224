//! Additions at the commit.

use super::{Counter, cluster, cluster_over};
use crate::combining::{Combiner, Sender, add};
use crate::counters::Addition;
use crate::error::Failure;
use crate::faults::{Faults, FaultyStore};
use crate::{Cluster, ClusterError, MemoryStore, Outcome, RemoteTable, Store, StoreError, Transaction};
use hotrow::{Stored, Value, column_of};
use hotrow_core::{Abort, Overflow};
use hotrow_sync::atomic::{AtomicBool, AtomicU64, Ordering};
use hotrow_sync::clock::{Duration, Instant, now};
use hotrow_sync::{Arc, thread};
use hotrow_tables::MissingRow;

#[derive(Debug, Clone, Copy, PartialEq, Stored, Value)]
#[value(inline)]
struct Item {
    #[value(group = "count")]
    count: i64,
    name: u64,
    price: u64,
    #[value(group = "sold")]
    sold: i64,
}

fn item(count: i64, sold: i64) -> Item {
    Item { count, name: 77, price: 3, sold }
}

fn items(cluster: &Cluster) -> RemoteTable<String, Item> {
    let table = cluster.table("items").create_or_open().unwrap();
    cluster.transact(|tx| tx.insert_if_absent(&table, "tea".into(), item(10, 0))).unwrap();
    table
}

#[test]
fn additions_are_made_and_seen() {
    let cluster = cluster();
    let table = items(&cluster);
    cluster
        .transact(|tx| {
            tx.add(&table, "tea", column_of!(Item, count), -3)?;
            tx.add(&table, "tea", column_of!(Item, sold), 3)?;
            tx.add(&table, "tea", column_of!(Item, sold), 1)
        })
        .unwrap();
    assert_eq!(cluster.transact(|tx| tx.get(&table, "tea")).unwrap(), Some(item(7, 4)));
    let seen = cluster.transact(|tx| {
        tx.add(&table, "tea", column_of!(Item, count), 1)?;
        assert_eq!(tx.get(&table, "tea")?, Some(item(8, 4)));
        tx.add(&table, "tea", column_of!(Item, count), 1)?;
        tx.update(&table, "tea", |row| row.sold += row.count)?;
        tx.add(&table, "tea", column_of!(Item, sold), 100)?;
        tx.insert(&table, "coffee".into(), item(1, 1))?;
        tx.add(&table, "coffee", column_of!(Item, sold), 5)?;
        tx.rows(&table, ..)
    });
    let expected = [("coffee".to_owned(), item(1, 6)), ("tea".to_owned(), item(9, 113))];
    assert_eq!(seen.unwrap(), expected);
    assert_eq!(cluster.transact(|tx| tx.rows(&table, ..)).unwrap(), expected);
}

#[test]
fn additions_do_not_conflict_with_each_other() {
    let store = Arc::new(MemoryStore::new());
    let (one, other) = (cluster_over(&store), cluster_over(&store));
    let (table, others) = (items(&one), items(&other));
    let mut attempts = 0;
    one.transact(|tx| {
        attempts += 1;
        tx.add(&table, "tea", column_of!(Item, sold), 1)?;
        thread::scope(|scope| {
            let add = || other.transact(|tx| tx.add(&others, "tea", column_of!(Item, sold), 1));
            scope.spawn(add).join().unwrap().unwrap();
        });
        Ok(())
    })
    .unwrap();
    assert_eq!(attempts, 1);
    assert_eq!(one.transact(|tx| tx.get(&table, "tea")).unwrap(), Some(item(10, 2)));
}

#[test]
fn an_addition_to_a_row_that_was_read_is_validated() {
    let store = Arc::new(MemoryStore::new());
    let (one, other) = (cluster_over(&store), cluster_over(&store));
    let (table, others) = (items(&one), items(&other));
    let mut attempts = 0;
    let seen = one.transact(|tx| {
        attempts += 1;
        let sold = tx.get(&table, "tea")?.unwrap().sold;
        tx.add(&table, "tea", column_of!(Item, sold), sold + 1)?;
        if attempts == 1 {
            thread::scope(|scope| {
                let add = || other.transact(|tx| tx.add(&others, "tea", column_of!(Item, sold), 1));
                scope.spawn(add).join().unwrap().unwrap();
            });
        }
        Ok(sold)
    });
    assert_eq!((seen.unwrap(), attempts), (1, 2));
    assert_eq!(one.transact(|tx| tx.get(&table, "tea")).unwrap().unwrap().sold, 3);
}

#[test]
fn additions_that_cannot_be_made_are_errors() {
    let cluster = cluster();
    let table = items(&cluster);
    let missing = cluster.transact(|tx| tx.add(&table, "milk", column_of!(Item, sold), 1)).unwrap_err();
    assert_eq!(
        missing.downcast_ref::<MissingRow>().unwrap().to_string(),
        "items has no row with key \"milk\""
    );
    cluster.transact(|tx| tx.delete(&table, "tea")).unwrap();
    let deleted = cluster.transact(|tx| tx.add(&table, "tea", column_of!(Item, sold), 1)).unwrap_err();
    assert!(deleted.downcast_ref::<MissingRow>().is_some());
    cluster.transact(|tx| tx.insert(&table, "tea".into(), item(0, i64::MAX))).unwrap();
    let overflow = cluster.transact(|tx| tx.add(&table, "tea", column_of!(Item, sold), 1)).unwrap_err();
    let shown = "an addition to items[\"tea\"] leaves the range of the number";
    assert_eq!(overflow.downcast_ref::<Overflow>().unwrap().to_string(), shown);
    let twice = cluster.transact(|tx| {
        tx.add(&table, "tea", column_of!(Item, count), i64::MAX)?;
        tx.add(&table, "tea", column_of!(Item, count), 1)
    });
    assert!(twice.unwrap_err().downcast_ref::<Overflow>().is_some());
    assert_eq!(cluster.transact(|tx| tx.get(&table, "tea")).unwrap(), Some(item(0, i64::MAX)));
}

#[test]
fn threads_that_add_to_one_row_lose_nothing() {
    let cluster = cluster();
    let table = items(&cluster);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..50 {
                    cluster.transact(|tx| tx.add(&table, "tea", column_of!(Item, sold), 1)).unwrap();
                }
            });
        }
    });
    assert_eq!(cluster.transact(|tx| tx.get(&table, "tea")).unwrap(), Some(item(10, 200)));
    assert_eq!(cluster.counts().conflicts, 0);
}

#[test]
fn additions_that_wait_are_combined_into_few_commits() {
    let faults = Faults { delay: 1.0, delay_max: Duration::from_millis(2), ..Faults::default() };
    let store = Arc::new(FaultyStore::new(MemoryStore::new(), 1, faults));
    let cluster = cluster_over(&store);
    let table = items(&cluster);
    let sent = cluster.counts().sent;
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..20 {
                    cluster.transact(|tx| tx.add(&table, "tea", column_of!(Item, sold), 1)).unwrap();
                }
            });
        }
    });
    let sent = cluster.counts().sent - sent;
    assert_eq!(cluster.transact(|tx| tx.get(&table, "tea")).unwrap(), Some(item(10, 160)));
    assert!(sent <= 80, "{sent} commits for 160 additions of 8 threads");
    assert_eq!(cluster.counts().commits, 161);
}

#[test]
fn additions_that_are_combined_with_one_that_cannot_be_made_are_made() {
    let faults = Faults { delay: 1.0, delay_max: Duration::from_millis(1), ..Faults::default() };
    let store = Arc::new(FaultyStore::new(MemoryStore::new(), 1, faults));
    let cluster = cluster_over(&store);
    let table = items(&cluster);
    cluster.transact(|tx| tx.upsert(&table, "tea".into(), item(0, i64::MAX - 40))).unwrap();
    let made = thread::scope(|scope| {
        let add = |_| {
            let (cluster, table) = (&cluster, &table);
            scope.spawn(move || {
                (0..20)
                    .filter(|_| {
                        cluster.transact(|tx| tx.add(table, "tea", column_of!(Item, sold), 1)).is_ok()
                    })
                    .count()
            })
        };
        let workers: Vec<_> = (0..4).map(add).collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).sum::<usize>()
    });
    assert_eq!(made, 40, "as many as there is room for");
    assert_eq!(cluster.transact(|tx| tx.get(&table, "tea")).unwrap(), Some(item(0, i64::MAX)));
}

#[test]
fn a_store_that_panics_leaves_nobody_waiting() {
    struct Panicking(MemoryStore, AtomicBool);
    impl Store for Panicking {
        fn limits(&self) -> crate::Limits {
            self.0.limits()
        }
        fn read_version(
            &self,
            freshness: crate::Freshness,
            deadline: Instant,
        ) -> Result<u64, crate::StoreError> {
            self.0.read_version(freshness, deadline)
        }
        fn get_many(
            &self,
            keys: &[Vec<u8>],
            at: crate::At,
            deadline: Instant,
        ) -> Result<crate::Read, crate::StoreError> {
            self.0.get_many(keys, at, deadline)
        }
        fn range(
            &self,
            span: &crate::Span,
            at: crate::At,
            limit: usize,
            deadline: Instant,
        ) -> Result<crate::Page, crate::StoreError> {
            self.0.range(span, at, limit, deadline)
        }
        fn commit(
            &self,
            commit: &crate::Commit,
            deadline: Instant,
        ) -> Result<crate::Outcome, crate::StoreError> {
            if self.1.load(Ordering::Acquire) {
                thread::sleep(Duration::from_millis(20));
                panic!("as the test wants");
            }
            self.0.commit(commit, deadline)
        }
        fn watch(
            &self,
            keys: &[Vec<u8>],
            spans: &[crate::Span],
            from: u64,
            deadline: Instant,
        ) -> Result<Option<u64>, crate::StoreError> {
            self.0.watch(keys, spans, from, deadline)
        }
        fn hold(&self, at: u64, deadline: Instant) -> Result<crate::Hold, crate::StoreError> {
            self.0.hold(at, deadline)
        }
    }
    let store = Arc::new(Panicking(MemoryStore::new(), AtomicBool::new(false)));
    let cluster = cluster_over(&store);
    let table = items(&cluster);
    store.1.store(true, Ordering::Release);
    let ends = thread::scope(|scope| {
        let add = |_| {
            let (cluster, table) = (&cluster, &table);
            scope.spawn(move || cluster.transact(|tx| tx.add(table, "tea", column_of!(Item, sold), 1)))
        };
        let workers: Vec<_> = (0..4).map(add).collect();
        workers.into_iter().map(|worker| worker.join()).collect::<Vec<_>>()
    });
    let is_unknown =
        |end: &Result<Result<(), ClusterError>, _>| matches!(end, Ok(Err(ClusterError::Unknown(_))));
    assert!(ends.iter().all(|end| end.is_err() || is_unknown(end)));
    store.1.store(false, Ordering::Release);
    cluster.transact(|tx| tx.add(&table, "tea", column_of!(Item, sold), 1)).unwrap();
    assert_eq!(cluster.transact(|tx| tx.get(&table, "tea")).unwrap(), Some(item(10, 1)));
}

#[test]
fn an_addition_to_a_row_that_is_found_to_be_absent_later_is_an_error() {
    let cluster = cluster();
    let table = cluster.table::<u32, Counter>("counters").create_or_open().unwrap();
    let count = column_of!(Counter, count);
    cluster.transact(|tx| tx.insert(&table, 2, Counter { count: 0 })).unwrap();
    cluster.transact(|tx| tx.delete(&table, &2)).unwrap();
    type Look = fn(&mut Transaction<'_>, &RemoteTable<u32, Counter>, u32) -> Result<(), Abort>;
    let looks: [Look; 4] = [
        |tx, table, key| tx.get(table, &key).map(drop),
        |tx, table, _| tx.rows(table, ..).map(drop),
        |tx, table, key| tx.savepoint(|tx| tx.get(table, &key)).map(drop),
        |tx, table, key| tx.read_columns(table, &key, column_of!(Counter, count)).map(drop),
    ];
    for (key, look) in [1, 2].into_iter().flat_map(|key| looks.map(|look| (key, look))) {
        let mut attempts = 0;
        let error = cluster.transact(|tx| {
            attempts += 1;
            assert!(attempts < 3, "an attempt that reads follows one that has assumed");
            tx.add(&table, &key, count, 1)?;
            look(tx, &table, key)
        });
        assert!(error.unwrap_err().downcast_ref::<MissingRow>().is_some());
    }
}

#[test]
fn what_was_assumed_of_a_row_is_not_forgotten_when_it_is_replaced_or_deleted() {
    let cluster = cluster();
    let table = cluster.table::<u32, Counter>("counters").create_or_open().unwrap();
    let count = column_of!(Counter, count);
    cluster.transact(|tx| tx.insert(&table, 1, Counter { count: 5 })).unwrap();
    type Replace = fn(&mut Transaction<'_>, &RemoteTable<u32, Counter>, u32) -> Result<(), Abort>;
    let replaces: [Replace; 4] = [
        |tx, table, key| tx.upsert(table, key, Counter { count: 5 }).map(drop),
        |tx, table, key| tx.delete(table, &key).map(drop),
        |tx, table, key| tx.savepoint(|tx| tx.upsert(table, key, Counter { count: 5 })).map(drop),
        |tx, table, key| {
            let undone = tx.savepoint(|tx| {
                tx.delete(table, &key)?;
                Err::<(), _>(Abort::rollback())
            });
            undone.map(drop)
        },
    ];
    for replace in replaces {
        let subtract = |amount| {
            cluster.transact(|tx| {
                let enough = tx.subtract_if_enough(&table, &1, count, amount)?;
                replace(tx, &table, 1)?;
                Ok(enough)
            })
        };
        assert!(!subtract(6).unwrap(), "there are only 5");
        cluster.transact(|tx| tx.upsert(&table, 1, Counter { count: 5 })).unwrap();
        assert!(subtract(5).unwrap());
        cluster.transact(|tx| tx.upsert(&table, 1, Counter { count: 5 })).unwrap();
        let missing = cluster.transact(|tx| {
            tx.add(&table, &2, count, 1)?;
            replace(tx, &table, 2)
        });
        assert!(missing.unwrap_err().downcast_ref::<MissingRow>().is_some());
    }
}

#[test]
fn one_whose_additions_were_sent_by_another_one_too_late_sends_them_itself() {
    let (combiner, calls, entered) = (Combiner::default(), AtomicU64::new(0), AtomicU64::new(0));
    let sender = |deadline| Sender {
        send: |_| match calls.fetch_add(1, Ordering::SeqCst) {
            0 => {
                while entered.load(Ordering::SeqCst) < 3 {
                    thread::sleep(Duration::from_millis(1));
                }
                thread::sleep(Duration::from_millis(30));
                Ok(Outcome::Committed(1))
            }
            1 => Err(Failure::Store(StoreError::Unreachable { reason: "the sender's deadline".to_owned() })),
            _ => Ok(Outcome::Committed(2)),
        },
        read: |keys: &[Vec<u8>]| Ok(vec![None; keys.len()]),
        deadline,
    };
    let addition = || Addition { amount: 1, within: i64::MIN..=i64::MAX };
    let commit = || {
        let additions = [(b"k".to_vec(), addition())].into();
        entered.fetch_add(1, Ordering::SeqCst);
        add(&combiner, additions, &sender(now() + Duration::from_secs(20)))
    };
    thread::scope(|scope| {
        let all: Vec<_> = (0..3).map(|_| scope.spawn(commit)).collect();
        for one in all {
            assert!(matches!(one.join().unwrap(), Ok(Outcome::Committed(_))));
        }
    });
}

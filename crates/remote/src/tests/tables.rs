//! Tables and transactions over a store without faults.

use super::{Counter, cluster, cluster_over, settings, text};
use crate::faults::{Faults, FaultyStore};
use crate::{Cluster, ClusterError, Freshness, Limits, MemoryStore, RemoteTable, Settings};
use hotrow::{Stored, Value, column_of};
use hotrow_core::{Abort, Error, Misuse};
use hotrow_sync::clock::Duration;
use hotrow_sync::{Arc, thread};
use hotrow_tables::{KeyExists, MissingRow, TableMisuse};
use std::ops::ControlFlow;

#[derive(Debug, Clone, PartialEq, Stored, Value)]
struct Account {
    owner: String,
    balance: i64,
}

/// An account of which a column is kept apart.
#[derive(Debug, Clone, Copy, PartialEq, Stored, Value)]
#[value(inline)]
struct SplitAccount {
    first: u64,
    #[value(group = "balance")]
    balance: i64,
    #[value(group = "others")]
    second: u32,
    #[value(group = "others")]
    third: u32,
}

#[derive(Debug, thiserror::Error)]
#[error("overdrawn")]
struct Overdrawn;

fn account(owner: &str, balance: i64) -> Account {
    Account { owner: owner.to_owned(), balance }
}

/// A row that tests know.
trait Row: Value + PartialEq + std::fmt::Debug {
    fn new(number: u32, balance: i64) -> Self;
    fn balance(&mut self) -> &mut i64;
    fn set_number(&mut self, number: u32);
}

impl Row for Account {
    fn new(number: u32, balance: i64) -> Self {
        account(&number.to_string(), balance)
    }
    fn balance(&mut self) -> &mut i64 {
        &mut self.balance
    }
    fn set_number(&mut self, number: u32) {
        self.owner = number.to_string();
    }
}

impl Row for SplitAccount {
    fn new(number: u32, balance: i64) -> Self {
        Self { first: u64::from(number), balance, second: number, third: number }
    }
    fn balance(&mut self) -> &mut i64 {
        &mut self.balance
    }
    fn set_number(&mut self, number: u32) {
        (self.first, self.second, self.third) = (u64::from(number), number, number);
    }
}

fn open<R: Row>(page: usize) -> (Cluster, RemoteTable<u32, R>) {
    let cluster = Cluster::with_settings(Arc::new(MemoryStore::new()), Settings { page, ..settings() });
    let table = cluster.table("accounts").create_or_open().unwrap();
    (cluster, table)
}

/// Runs a test with a table of whole rows, and with one that keeps columns apart.
macro_rules! with_tables {
    ($test:ident) => {
        for page in [1, 2, 3, 100] {
            let (cluster, table) = open::<Account>(page);
            $test(&cluster, &table);
            let (cluster, table) = open::<SplitAccount>(page);
            $test(&cluster, &table);
        }
    };
}

#[test]
fn rows_are_inserted_read_changed_and_deleted() {
    fn test<R: Row>(cluster: &Cluster, table: &RemoteTable<u32, R>) {
        cluster.transact(|tx| tx.insert(table, 1, R::new(1, 5))).unwrap();
        assert_eq!(cluster.transact(|tx| tx.get(table, &1)).unwrap(), Some(R::new(1, 5)));
        assert_eq!(cluster.transact(|tx| tx.get(table, &2)).unwrap(), None);
        let balance = cluster.transact(|tx| {
            tx.update(table, &1, |row| {
                *row.balance() += 2;
                *row.balance()
            })
        });
        assert_eq!(balance.unwrap(), 7);
        assert!(!cluster.transact(|tx| tx.upsert(table, 1, R::new(2, 1))).unwrap());
        assert!(cluster.transact(|tx| tx.upsert(table, 2, R::new(3, 2))).unwrap());
        assert_eq!(cluster.transact(|tx| tx.get(table, &1)).unwrap(), Some(R::new(2, 1)));
        assert!(cluster.transact(|tx| tx.delete(table, &1)).unwrap());
        assert!(!cluster.transact(|tx| tx.delete(table, &1)).unwrap());
        assert_eq!(cluster.transact(|tx| tx.rows(table, ..)).unwrap(), [(2, R::new(3, 2))]);
        cluster.transact(|tx| tx.insert(table, 1, R::new(4, 9))).unwrap();
        assert_eq!(cluster.transact(|tx| tx.get(table, &1)).unwrap(), Some(R::new(4, 9)));
    }
    with_tables!(test);
}

#[test]
fn a_transaction_sees_its_own_writes() {
    fn test<R: Row>(cluster: &Cluster, table: &RemoteTable<u32, R>) {
        cluster
            .transact(|tx| {
                for key in [2, 4, 6, 8] {
                    tx.insert(table, key, R::new(10, i64::from(key)))?;
                }
                Ok(())
            })
            .unwrap();
        let seen = cluster.transact(|tx| {
            tx.insert(table, 5, R::new(11, 5))?;
            tx.update(table, &6, |row| row.set_number(12))?;
            tx.delete(table, &4)?;
            tx.insert(table, 9, R::new(11, 9))?;
            tx.delete(table, &9)?;
            assert!(!tx.upsert(table, 5, R::new(11, 50))?);
            assert_eq!(tx.get(table, &4)?, None);
            assert_eq!(tx.get(table, &5)?, Some(R::new(11, 50)));
            tx.rows(table, ..)
        });
        let expected = [(2, R::new(10, 2)), (5, R::new(11, 50)), (6, R::new(12, 6)), (8, R::new(10, 8))];
        assert_eq!(seen.unwrap(), expected);
        assert_eq!(cluster.transact(|tx| tx.rows(table, ..)).unwrap(), expected);
    }
    with_tables!(test);
}

#[test]
fn scans_keep_to_their_bounds_and_stop_where_the_visitor_breaks() {
    fn test<R: Row>(cluster: &Cluster, table: &RemoteTable<u32, R>) {
        let insert = |tx: &mut crate::Transaction<'_>| {
            (0..10).try_for_each(|key| tx.insert(table, key, R::new(20, 0)))
        };
        cluster.transact(insert).unwrap();
        let keys = |rows: Vec<(u32, R)>| rows.into_iter().map(|(key, _)| key).collect::<Vec<_>>();
        assert_eq!(keys(cluster.transact(|tx| tx.rows(table, 3..6)).unwrap()), [3, 4, 5]);
        assert_eq!(keys(cluster.transact(|tx| tx.rows(table, 3..=6)).unwrap()), [3, 4, 5, 6]);
        assert_eq!(keys(cluster.transact(|tx| tx.rows(table, 8..)).unwrap()), [8, 9]);
        assert_eq!(keys(cluster.transact(|tx| tx.rows(table, ..2)).unwrap()), [0, 1]);
        #[allow(clippy::reversed_empty_ranges)]
        let none = cluster.transact(|tx| tx.rows(table, 6..3)).unwrap();
        assert_eq!(none, []);
        let mut found = Vec::new();
        let visit = |tx: &mut crate::Transaction<'_>| {
            found.clear();
            tx.scan(table, 2.., |key, _| {
                found.push(key);
                if key == 4 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })
        };
        cluster.transact(visit).unwrap();
        assert_eq!(found, [2, 3, 4]);
    }
    with_tables!(test);
}

#[test]
fn tables_have_the_order_of_their_keys_and_do_not_mix() {
    let cluster = cluster();
    let texts = cluster.table::<String, i64>("texts").create_or_open().unwrap();
    let pairs = cluster.table::<(String, i32), ()>("pairs").create_or_open().unwrap();
    let words = ["", "a", "a\0", "a\0b", "ab", "b"];
    cluster
        .transact(|tx| {
            for (number, word) in words.iter().enumerate().rev() {
                tx.insert(&texts, (*word).to_owned(), number as i64)?;
                tx.insert(&pairs, ((*word).to_owned(), -1), ())?;
                tx.insert(&pairs, ((*word).to_owned(), 1), ())?;
            }
            Ok(())
        })
        .unwrap();
    let rows = cluster.transact(|tx| tx.rows(&texts, ..)).unwrap();
    assert_eq!(rows, words.iter().enumerate().map(|(n, w)| ((*w).to_owned(), n as i64)).collect::<Vec<_>>());
    let after_a =
        cluster.transact(|tx| tx.rows(&texts, (std::ops::Bound::Excluded("a"), std::ops::Bound::Unbounded)));
    assert_eq!(after_a.unwrap().len(), 4, "a bound that other keys begin with excludes one key");
    let rows = cluster.transact(|tx| tx.rows(&pairs, ..)).unwrap();
    assert!(rows.is_sorted() && rows.len() == 12);
}

#[test]
fn errors_are_those_of_local_tables() {
    let cluster = cluster();
    let table = cluster.table::<u32, Account>("accounts").create_or_open().unwrap();
    cluster.transact(|tx| tx.insert(&table, 1, account("a", 5))).unwrap();
    let error = cluster.transact(|tx| tx.insert(&table, 1, account("b", 5))).unwrap_err();
    assert_eq!(
        error.downcast_ref::<KeyExists>().unwrap().to_string(),
        "accounts has a row with key 1 already"
    );
    let error = cluster.transact(|tx| tx.update(&table, &2, |_| ())).unwrap_err();
    assert_eq!(error.downcast_ref::<MissingRow>().unwrap().to_string(), "accounts has no row with key 2");
    let error = cluster.transact(|tx| {
        tx.update(&table, &1, |row| row.balance = -1)?;
        Err::<(), _>(Overdrawn.into())
    });
    assert!(error.unwrap_err().downcast_ref::<Overdrawn>().is_some());
    assert_eq!(cluster.transact(|tx| tx.get(&table, &1)).unwrap().unwrap().balance, 5);
    let caught = cluster.transact(|tx| {
        let _ = tx.insert(&table, 1, account("b", 5));
        tx.upsert(&table, 3, account("c", 5))
    });
    assert_eq!(caught.unwrap_err().misuse(), Some(&Misuse::CaughtError));
    let nested = cluster.transact(|_| Ok(cluster.transact(|_| Ok(())).unwrap_err().misuse().cloned()));
    assert_eq!(nested.unwrap(), Some(Misuse::Nested));
    cluster.transact(|_| Ok(())).unwrap();
    let other = super::cluster().table::<u32, Account>("accounts").create_or_open().unwrap();
    let foreign = cluster.transact(|tx| tx.get(&other, &1)).unwrap_err();
    assert_eq!(foreign.misuse(), Some(&Misuse::ForeignObject { object: "accounts".to_owned() }));
    let asked = cluster.transact(|_| Err::<(), _>(Abort::rollback())).unwrap_err();
    assert!(matches!(asked, ClusterError::Transaction(Error::Rollback(_))));
}

#[test]
fn a_table_is_opened_with_the_types_that_it_was_made_with() {
    #[derive(Debug, Clone, Stored, Value)]
    struct Renamed {
        #[stored(alias = "owner")]
        holder: String,
        balance: i64,
    }
    let store = Arc::new(MemoryStore::new());
    let table = cluster_over(&store).table::<u32, Account>("accounts").create_or_open().unwrap();
    let cluster = cluster_over(&store);
    assert_eq!(
        text(cluster.table::<u32, i64>("accounts").create_or_open()),
        "misuse: accounts was made as a table of {owner: text, balance: i64} by u32, and is wanted as a table of i64 by u32"
    );
    let other_key = cluster.table::<String, Account>("accounts").create_or_open().unwrap_err();
    assert!(matches!(other_key.misuse().unwrap().downcast_ref(), Some(TableMisuse::OtherTypes { .. })));
    let split = cluster_over(&Arc::new(MemoryStore::new()));
    split.table::<u32, SplitAccount>("accounts").create_or_open().unwrap();
    assert!(
        text(split.table::<u32, Account>("accounts").create_or_open())
            .contains("by u32 with groups balance, second + third, and is wanted as")
    );
    let again = cluster.table::<u32, Renamed>("accounts").create_or_open().unwrap();
    let first = cluster_over(&store);
    let table_of_first = first.table::<u32, Account>("accounts").create_or_open().unwrap();
    first.transact(|tx| tx.insert(&table_of_first, 1, account("a", 5))).unwrap();
    let row = cluster.transact(|tx| tx.get(&again, &1)).unwrap().unwrap();
    assert_eq!((row.holder.as_str(), row.balance), ("a", 5));
    assert_eq!(table.name(), "accounts");
}

#[test]
fn processes_that_make_a_table_at_once_get_the_same_one() {
    let store = Arc::new(MemoryStore::new());
    thread::scope(|scope| {
        for worker in 0..4u32 {
            let cluster = cluster_over(&store);
            scope.spawn(move || {
                let table = cluster.table::<u32, i64>("numbers").create_or_open().unwrap();
                cluster.transact(|tx| tx.insert(&table, worker, 1)).unwrap();
            });
        }
    });
    let cluster = cluster_over(&store);
    let table = cluster.table::<u32, i64>("numbers").create_or_open().unwrap();
    assert_eq!(cluster.transact(|tx| tx.rows(&table, ..)).unwrap().len(), 4);
}

#[test]
fn two_clusters_with_other_prefixes_do_not_meet() {
    let store = Arc::new(MemoryStore::new());
    let open = |prefix: &[u8]| {
        let settings = Settings { prefix: prefix.to_vec(), ..settings() };
        let cluster = Cluster::with_settings(store.clone(), settings);
        let table = cluster.table::<u32, i64>("numbers").create_or_open().unwrap();
        (cluster, table)
    };
    let ((one, ones), (other, others)) = (open(b"one/"), open(b"other/"));
    one.transact(|tx| tx.insert(&ones, 1, 1)).unwrap();
    assert_eq!(other.transact(|tx| tx.get(&others, &1)).unwrap(), None);
}

#[test]
fn too_large_a_transaction_is_refused_before_it_is_sent() {
    let limits = Limits { conditions_max: 20, changes_max: 10, bytes_max: 1_000 };
    let store = Arc::new(MemoryStore::with_limits(limits));
    let cluster = cluster_over(&store);
    let table = cluster.table::<u32, String>("texts").create_or_open().unwrap();
    let insert = |count: u32, length: usize| {
        cluster.transact(|tx| {
            (0..count).try_for_each(|key| tx.upsert(&table, key, "x".repeat(length)).map(drop))
        })
    };
    insert(9, 1).unwrap();
    let sent = cluster.counts().sent;
    assert_eq!(text(insert(10, 1)), "misuse: the transaction has 11 changes, and the store takes 10");
    assert!(text(insert(1, 1_000)).ends_with("bytes, and the store takes 1000"));
    let reads = cluster.transact(|tx| {
        (0..30).try_for_each(|key| tx.get(&table, &key).map(drop))?;
        tx.upsert(&table, 1, String::new())
    });
    assert_eq!(
        text(reads),
        "misuse: the transaction has 31 conditions and additions, and the store takes 20"
    );
    assert_eq!(cluster.counts().sent, sent);
    let fresh = Arc::new(FaultyStore::new(MemoryStore::with_limits(limits), 1, Faults::default()));
    let others = cluster_over(&fresh).table::<u32, Counter>("counters").create_or_open();
    assert!(others.is_ok());
    let client = cluster_over(&fresh);
    let counters = client.table::<u32, Counter>("counters").create_or_open().unwrap();
    let calls = fresh.counts().calls;
    let added = client
        .transact(|tx| (0..20).try_for_each(|key| tx.add(&counters, &key, column_of!(Counter, count), 1)));
    assert_eq!(
        text(added),
        "misuse: the transaction has 21 conditions and additions, and the store takes 20"
    );
    assert_eq!(fresh.counts().calls, calls, "nothing was sent");
    let scanned = cluster.transact(|tx| {
        tx.rows(&table, ..)?;
        tx.upsert(&table, 1, String::new())
    });
    assert!(!scanned.unwrap(), "a range is one condition, whatever is in it");
    cluster.transact(|tx| tx.prefetch(&table, 0..100)).unwrap();
}

#[test]
fn snapshots_read_one_state_and_never_write() {
    let store = Arc::new(MemoryStore::new());
    let (cluster, writer) = (cluster_over(&store), cluster_over(&store));
    let table = cluster.table::<u32, i64>("numbers").create_or_open().unwrap();
    let writers_table = writer.table::<u32, i64>("numbers").create_or_open().unwrap();
    writer.transact(|tx| tx.insert(&writers_table, 1, 1)).unwrap();
    let seen = cluster.snapshot(Freshness::Newest, |tx| {
        let before = tx.get(&table, &1)?;
        thread::scope(|scope| {
            scope.spawn(|| writer.transact(|tx| tx.upsert(&writers_table, 1, 2)).unwrap()).join().unwrap();
        });
        store.compact(u64::MAX);
        Ok((before, tx.rows(&table, ..)?))
    });
    assert_eq!(seen.unwrap(), (Some(1), vec![(1, 1)]));
    let refused = cluster.snapshot(Freshness::Newest, |tx| tx.upsert(&table, 1, 3));
    assert_eq!(refused.unwrap_err().misuse(), Some(&Misuse::ReadOnly { object: "numbers".to_owned() }));
    assert_eq!(cluster.snapshot(Freshness::Any, |tx| tx.get(&table, &1)).unwrap(), Some(2));
}

#[test]
fn a_body_that_waits_runs_again_when_what_it_has_read_changes() {
    let store = Arc::new(MemoryStore::new());
    let settings = Settings { deadline: Duration::from_millis(100), ..settings() };
    let impatient = Cluster::with_settings(store.clone(), settings);
    let table = impatient.table::<u32, i64>("numbers").create_or_open().unwrap();
    let late = impatient.transact(|tx| if tx.get(&table, &1)?.is_none() { tx.retry() } else { Ok(()) });
    assert!(matches!(late, Err(ClusterError::Transaction(Error::RetryTimeout { .. }))));
    let nothing = impatient.transact(|tx| tx.retry::<()>());
    assert!(matches!(nothing, Err(ClusterError::Transaction(Error::BlockedForever(_)))));
    for reads_range in [false, true] {
        let (waiting, writer) = (cluster_over(&store), cluster_over(&store));
        let key = 2 + u32::from(reads_range);
        let got = thread::scope(|scope| {
            let waits = scope.spawn(|| {
                let table = waiting.table::<u32, i64>("numbers").create_or_open().unwrap();
                waiting.transact(|tx| {
                    let found = if reads_range {
                        tx.rows(&table, key..)?.first().map(|(_, row)| *row)
                    } else {
                        tx.get(&table, &key)?
                    };
                    found.map_or_else(|| tx.retry(), Ok)
                })
            });
            let table = writer.table::<u32, i64>("numbers").create_or_open().unwrap();
            thread::sleep(Duration::from_millis(10));
            writer.transact(|tx| tx.insert(&table, key, 7)).unwrap();
            waits.join().unwrap()
        });
        assert_eq!(got.unwrap(), 7);
    }
}

#[test]
fn a_panic_of_a_body_leaves_nothing_behind() {
    let cluster = cluster();
    let table = cluster.table::<u32, i64>("numbers").create_or_open().unwrap();
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        cluster.transact(|tx| -> Result<(), Abort> {
            tx.insert(&table, 1, 1)?;
            panic!("as the test wants")
        })
    }));
    assert!(panicked.is_err());
    assert_eq!(cluster.transact(|tx| tx.get(&table, &1)).unwrap(), None);
}

#[test]
fn calls_of_the_store_are_few() {
    let store = Arc::new(FaultyStore::new(MemoryStore::new(), 1, Faults::default()));
    let cluster = cluster_over(&store);
    let table = cluster.table::<u32, i64>("numbers").create_or_open().unwrap();
    let calls = |body: &dyn Fn(&mut crate::Transaction<'_>) -> Result<(), Abort>| {
        let before = store.counts().calls;
        cluster.transact(body).unwrap();
        store.counts().calls - before
    };
    let fill =
        |tx: &mut crate::Transaction<'_>| (0..5).try_for_each(|key| tx.upsert(&table, key, 0).map(drop));
    cluster.transact(fill).unwrap();
    assert_eq!(calls(&|_| Ok(())), 0);
    assert_eq!(calls(&|tx| tx.get(&table, &1).map(drop)), 1);
    assert_eq!(calls(&|tx| tx.update(&table, &1, |row| *row += 1)), 2, "a read and a commit");
    let many = |tx: &mut crate::Transaction<'_>| {
        tx.prefetch(&table, 0..5)?;
        (0..5).try_for_each(|key| tx.update(&table, &key, |row| *row += 1))
    };
    assert_eq!(calls(&many), 2, "rows that are read together, and a commit");
    let scanned = |tx: &mut crate::Transaction<'_>| {
        tx.rows(&table, ..)?;
        assert_eq!(tx.get(&table, &77)?, None);
        tx.update(&table, &3, |row| *row += 1)?;
        tx.insert(&table, 1_000 + tx.version().unwrap() as u32, 1)
    };
    assert_eq!(
        calls(&scanned),
        2,
        "rows of a range that was read are known, and so is the absence of others"
    );
}

#[test]
fn the_names_of_tables_are_those_of_all_processes_and_not_of_indexes() {
    let store = Arc::new(MemoryStore::new());
    assert!(cluster_over(&store).table_names().unwrap().is_empty());
    let mut made: Vec<String> = (0..20).map(|number| format!("table {number}")).collect();
    for name in &made {
        let cluster = cluster_over(&store);
        let mut builder = cluster.table::<u8, u8>(name);
        let _ = builder.unique("by_row", |_, row| *row);
        builder.create_or_open().unwrap();
    }
    made.sort_unstable();
    assert_eq!(cluster_over(&store).table_names().unwrap(), made);
}

//! Interleavings stepped by hand, with and without the mistakes that they show.

use super::{settings, text};
use crate::mutants::Mutant;
use crate::{Cluster, ClusterError, MemoryStore, RemoteTable, Settings, Transaction};
use hotrow_core::{Abort, Error, Reason};
use hotrow_sync::clock::Duration;
use hotrow_sync::{Arc, thread};

type Numbers = RemoteTable<u32, i64>;

/// Two clusters over one store, the first with a mistake.
struct Pair {
    one: (Cluster, Numbers),
    other: (Cluster, Numbers),
    store: Arc<MemoryStore>,
}

impl Pair {
    fn new(mutant: Option<Mutant>) -> Self {
        let store = Arc::new(MemoryStore::new());
        let open = |mutant| {
            let cluster = Cluster::with_settings(store.clone(), settings()).mutated(mutant);
            let table = cluster.table("numbers").create_or_open().unwrap();
            (cluster, table)
        };
        // Tombstones are everybody's.
        let of_other = mutant.filter(|mutant| *mutant == Mutant::NoTombstones);
        let (one, other) = (open(mutant), open(of_other));
        Self { one, other, store }
    }

    fn insert(&self, rows: &[(u32, i64)]) {
        let (cluster, table) = &self.other;
        cluster.transact(|tx| rows.iter().try_for_each(|(key, row)| tx.insert(table, *key, *row))).unwrap();
    }

    fn rows(&self) -> Vec<(u32, i64)> {
        let (cluster, table) = &self.other;
        cluster.transact(|tx| tx.rows(table, ..)).unwrap()
    }

    /// Runs a transaction of the one; between its reads and its commit, at its first attempt, the other does something. Returns the
    /// number of attempts.
    fn step(
        &self,
        mut body: impl FnMut(&mut Transaction<'_>, &Numbers) -> Result<(), Abort>,
        between: impl Fn(&Cluster, &Numbers) + Sync,
    ) -> u32 {
        let mut attempts = 0;
        let (cluster, table) = &self.one;
        cluster
            .transact(|tx| {
                attempts += 1;
                body(tx, table)?;
                if attempts == 1 {
                    thread::scope(|scope| {
                        scope.spawn(|| between(&self.other.0, &self.other.1)).join().unwrap();
                    });
                }
                Ok(())
            })
            .unwrap();
        attempts
    }
}

/// Sums a range up in a row.
fn sum_up(tx: &mut Transaction<'_>, table: &Numbers) -> Result<(), Abort> {
    let sum = tx.rows(table, 1..100)?.iter().map(|(_, row)| row).sum();
    tx.upsert(table, 100, sum).map(drop)
}

/// The sum and what it should be, after something was done between the reads and the commit of who sums up.
fn sums(mutant: Option<Mutant>, between: impl Fn(&Cluster, &Numbers) + Sync) -> (i64, i64, u32) {
    let pair = Pair::new(mutant);
    pair.insert(&[(1, 10), (2, 20)]);
    let attempts = pair.step(sum_up, between);
    let rows = pair.rows();
    let sum =
        |of: &dyn Fn(u32) -> bool| rows.iter().filter(|(key, _)| of(*key)).map(|(_, row)| row).sum::<i64>();
    (sum(&|key| key == 100), sum(&|key| key < 100), attempts)
}

fn insertion(cluster: &Cluster, table: &Numbers) {
    cluster.transact(|tx| tx.insert(table, 3, 30)).unwrap();
}

fn deletion(cluster: &Cluster, table: &Numbers) {
    assert!(cluster.transact(|tx| tx.delete(table, &1)).unwrap());
}

fn collected_deletion(cluster: &Cluster, table: &Numbers) {
    deletion(cluster, table);
    assert!(cluster.collect().unwrap() > 0);
}

#[test]
fn an_insertion_into_a_range_that_was_read_is_noticed() {
    assert_eq!(sums(None, insertion), (60, 60, 2));
    assert_eq!(sums(Some(Mutant::RangeForgotten), insertion), (30, 60, 1), "the test notices the mistake");
}

#[test]
fn a_deletion_from_a_range_that_was_read_is_noticed() {
    assert_eq!(sums(None, deletion), (20, 20, 2));
    assert_eq!(sums(Some(Mutant::NoTombstones), deletion), (30, 20, 1), "the condition alone misses it");
}

#[test]
fn a_deletion_whose_tombstone_was_collected_is_noticed() {
    assert_eq!(sums(None, collected_deletion), (20, 20, 2));
    assert_eq!(
        sums(Some(Mutant::FenceForgotten), collected_deletion),
        (30, 20, 1),
        "the test notices the mistake"
    );
}

#[test]
fn a_collection_is_not_noticed_by_transactions_that_began_after_the_fence() {
    let pair = Pair::new(None);
    pair.insert(&[(1, 10), (2, 20)]);
    deletion(&pair.other.0, &pair.other.1);
    // The first collection writes the fence, and the second one's fence is newer than the transaction.
    let attempts = pair.step(sum_up, |cluster, _| assert!(cluster.collect().unwrap() > 0));
    assert_eq!(attempts, 2, "it is older than the fence");
    assert_eq!(pair.rows(), [(2, 20), (100, 20)]);
    deletion_of(&pair, 2);
    let fence = crate::collecting::raise_fence(&pair.other.0.shared).unwrap();
    let attempts = pair.step(sum_up, |cluster, _| {
        assert_eq!(crate::collecting::collect_below(&cluster.shared, fence).unwrap(), 1);
    });
    assert_eq!(attempts, 1, "it is newer than the fence");
    assert_eq!(pair.rows(), [(100, 0)]);
}

fn deletion_of(pair: &Pair, key: u32) {
    pair.other.0.transact(|tx| tx.delete(&pair.other.1, &key)).unwrap();
}

#[test]
fn a_row_that_was_found_deleted_may_lose_its_tombstone_but_not_come_back() {
    let read_absent = |tx: &mut Transaction<'_>, table: &Numbers| {
        let value = i64::from(tx.get(table, &1)?.is_none());
        tx.upsert(table, 100, value).map(drop)
    };
    let pair = Pair::new(None);
    pair.insert(&[(1, 10)]);
    deletion_of(&pair, 1);
    let fence = crate::collecting::raise_fence(&pair.other.0.shared).unwrap();
    let attempts = pair.step(read_absent, |cluster, _| {
        assert_eq!(crate::collecting::collect_below(&cluster.shared, fence).unwrap(), 1);
    });
    assert_eq!((attempts, pair.rows()), (1, vec![(100, 1)]));
    pair.insert(&[(1, 10)]);
    deletion_of(&pair, 1);
    let attempts = pair.step(read_absent, |cluster, table| {
        cluster.transact(|tx| tx.insert(table, 1, 11)).unwrap();
    });
    assert_eq!((attempts, pair.rows()), (2, vec![(1, 11), (100, 0)]));
}

#[test]
fn a_lost_update_is_prevented() {
    let increment = |tx: &mut Transaction<'_>, table: &Numbers| tx.update(table, &1, |row| *row += 1);
    let run = |mutant| {
        let pair = Pair::new(mutant);
        pair.insert(&[(1, 0)]);
        pair.step(increment, |cluster, table| {
            cluster.transact(|tx| tx.update(table, &1, |row| *row += 1)).unwrap()
        });
        pair.rows()[0].1
    };
    assert_eq!(run(None), 2);
    assert_eq!(run(Some(Mutant::KeysForgotten)), 1, "the test notices the mistake");
}

#[test]
fn write_skew_is_prevented() {
    let pair = Pair::new(None);
    pair.insert(&[(1, 1), (2, 1)]);
    // Each takes one if the sum allows it.
    let take = |tx: &mut Transaction<'_>, table: &Numbers, key: u32| {
        let sum = tx.get(table, &1)?.unwrap() + tx.get(table, &2)?.unwrap();
        if sum >= 2 { tx.update(table, &key, |row| *row -= 1) } else { Ok(()) }
    };
    let attempts = pair.step(
        |tx, table| take(tx, table, 1),
        |cluster, table| cluster.transact(|tx| take(tx, table, 2)).unwrap(),
    );
    assert_eq!((attempts, pair.rows()), (2, vec![(1, 1), (2, 0)]));
}

#[test]
fn reads_are_of_one_state_and_readers_do_not_conflict() {
    let pair = Pair::new(None);
    pair.insert(&[(1, 1), (2, 1)]);
    let mut seen = Vec::new();
    let (cluster, table) = &pair.one;
    cluster
        .transact(|tx| {
            let first = tx.get(table, &1)?;
            thread::scope(|scope| {
                let change = || {
                    pair.other.0.transact(|tx| {
                        tx.update(&pair.other.1, &1, |row| *row += 1)?;
                        tx.update(&pair.other.1, &2, |row| *row += 1)
                    })
                };
                scope.spawn(change).join().unwrap().unwrap();
            });
            seen.push((first, tx.get(table, &2)?, tx.rows(table, ..)?));
            Ok(())
        })
        .unwrap();
    assert_eq!(seen, [(Some(1), Some(1), vec![(1, 1), (2, 1)])]);
}

#[test]
fn an_attempt_whose_state_was_compacted_is_run_again() {
    let pair = Pair::new(None);
    pair.insert(&[(1, 1)]);
    let mut attempts = 0;
    let (cluster, table) = &pair.one;
    let last = cluster.transact(|tx| {
        attempts += 1;
        tx.get(table, &1)?;
        if attempts == 1 {
            thread::scope(|scope| scope.spawn(|| pair.insert(&[(2, 2)])).join().unwrap());
            pair.store.compact(u64::MAX);
        }
        tx.get(table, &2)
    });
    assert_eq!((last.unwrap(), attempts), (Some(2), 2));
}

#[test]
fn conflicts_end_a_transaction_by_its_attempts_and_its_deadline() {
    let store = Arc::new(MemoryStore::new());
    let other = Cluster::with_settings(store.clone(), settings());
    let others: Numbers = other.table("numbers").create_or_open().unwrap();
    other.transact(|tx| tx.insert(&others, 1, 0)).unwrap();
    let disturbed = |settings: Settings| {
        let cluster = Cluster::with_settings(store.clone(), settings);
        let table: Numbers = cluster.table("numbers").create_or_open().unwrap();
        cluster.transact(|tx| {
            tx.update(&table, &1, |row| *row += 1)?;
            thread::scope(|scope| {
                let change = || other.transact(|tx| tx.update(&others, &1, |row| *row += 1));
                scope.spawn(change).join().unwrap().unwrap();
            });
            Ok(())
        })
    };
    let error = disturbed(Settings { attempts_max: 3, ..settings() }).unwrap_err();
    let ClusterError::Transaction(Error::Conflict(conflict)) = error else { panic!("{error}") };
    assert_eq!((conflict.attempts, conflict.reason), (3, Reason::ReadChanged));
    assert_eq!((&*conflict.object, &*conflict.key), ("numbers", r"\x00\x00\x00\x00\x00\x00\x00\x01"));
    let late = disturbed(Settings { deadline: Duration::from_millis(30), ..settings() });
    assert!(text(late).starts_with("deadline passed: a value that was read has changed: numbers["));
}

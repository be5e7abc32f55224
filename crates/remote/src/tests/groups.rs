//! Column groups: a key for each.

use super::{cluster, cluster_over};
use crate::faults::{Faults, FaultyStore};
use crate::{Cluster, MemoryStore, RemoteIndex, RemoteTable, Transaction};
use hotrow::{Stored, Value, column_of};
use hotrow_core::{Abort, Overflow};
use hotrow_sync::{Arc, thread};
use hotrow_tables::{Direction, MissingRow};

#[derive(Debug, Clone, Copy, PartialEq, Stored, Value)]
#[value(inline)]
struct Stock {
    #[value(group = "moved")]
    taken: u32,
    #[value(group = "moved")]
    orders: u32,
    price: u64,
    #[value(group = "small")]
    small: u16,
    place: u16,
    shelf: u32,
    #[value(group = "large")]
    large: u64,
}

const STOCK: Stock = Stock { taken: 1, orders: 2, price: 3, small: 4, place: 5, shelf: 6, large: 7 };

type Stocks = RemoteTable<String, Stock>;

fn stocks(cluster: &Cluster) -> Stocks {
    let table = cluster.table("stocks").create_or_open().unwrap();
    cluster.transact(|tx| tx.insert_if_absent(&table, "tea".into(), STOCK)).unwrap();
    table
}

fn get(cluster: &Cluster, table: &Stocks) -> Stock {
    cluster.transact(|tx| tx.get(table, "tea")).unwrap().unwrap()
}

#[test]
fn columns_are_read_and_changed() {
    let cluster = cluster();
    let table = stocks(&cluster);
    let (moved, price) = ((column_of!(Stock, taken), column_of!(Stock, orders)), column_of!(Stock, price));
    let read = cluster.transact(|tx| {
        let values = tx.read_columns(&table, "tea", (moved, price))?;
        assert_eq!(tx.read_columns(&table, "milk", price)?, None);
        assert_eq!(tx.update_columns_if_present(&table, "milk", price, |price| *price = 1)?, None);
        Ok(values)
    });
    assert_eq!(read.unwrap(), Some(((1, 2), 3)));
    cluster
        .transact(|tx| {
            tx.update_columns(&table, "tea", moved, |(taken, orders)| {
                (*taken, *orders) = (*taken + 10, *orders + 10);
            })?;
            tx.update_columns(&table, "tea", (price, column_of!(Stock, large)), |(price, large)| {
                *price += *large;
            })?;
            assert_eq!(tx.read_columns(&table, "tea", moved)?, Some((11, 12)));
            tx.update(&table, "tea", |row| row.small += row.taken as u16)
        })
        .unwrap();
    assert_eq!(get(&cluster, &table), Stock { taken: 11, orders: 12, price: 10, small: 15, ..STOCK });
    let missing = cluster.transact(|tx| tx.update_columns(&table, "milk", price, |_| ())).unwrap_err();
    assert!(missing.downcast_ref::<MissingRow>().is_some());
}

#[test]
fn a_process_that_has_seen_no_row_reads_columns() {
    let store = Arc::new(MemoryStore::new());
    stocks(&cluster_over(&store));
    let other = cluster_over(&store);
    let table = other.table::<String, Stock>("stocks").create_or_open().unwrap();
    let price = other.transact(|tx| tx.read_columns(&table, "tea", column_of!(Stock, taken)));
    assert_eq!(price.unwrap(), Some(1));
    let other = cluster_over(&store);
    let table = other.table::<String, Stock>("stocks").create_or_open().unwrap();
    other
        .transact(|tx| tx.update_columns(&table, "tea", column_of!(Stock, small), |small| *small += 1))
        .unwrap();
    assert_eq!(get(&other, &table), Stock { small: 5, ..STOCK });
}

/// The attempts of a transaction of one process, if another one does something between its reads and its commit.
fn attempts(
    body: impl Fn(&mut Transaction<'_>, &Stocks) -> Result<(), Abort>,
    between: impl Fn(&mut Transaction<'_>, &Stocks) -> Result<(), Abort> + Sync,
) -> u32 {
    let store = Arc::new(MemoryStore::new());
    let (one, other) = (cluster_over(&store), cluster_over(&store));
    let (table, others) = (stocks(&one), stocks(&other));
    // So that both know a row.
    assert_eq!(get(&one, &table), get(&other, &others));
    let mut attempts = 0;
    let run = |tx: &mut Transaction<'_>| {
        attempts += 1;
        body(tx, &table)?;
        tx.upsert(&table, "other".into(), STOCK)?;
        if attempts == 1 {
            thread::scope(|scope| {
                let between = || other.transact(|tx| between(tx, &others));
                scope.spawn(between).join().unwrap().unwrap();
            });
        }
        Ok(())
    };
    one.transact(run).unwrap();
    attempts
}

#[test]
fn transactions_that_touch_other_groups_do_not_conflict() {
    type Body = fn(&mut Transaction<'_>, &Stocks) -> Result<(), Abort>;
    let price: Body =
        |tx, table| tx.update_columns(table, "tea", column_of!(Stock, price), |price| *price += 1);
    let moved: Body =
        |tx, table| tx.update_columns(table, "tea", column_of!(Stock, taken), |taken| *taken += 1);
    let reads: Body = |tx, table| tx.read_columns(table, "tea", column_of!(Stock, orders)).map(drop);
    let whole: Body = |tx, table| tx.get(table, "tea").map(drop);
    let delete: Body = |tx, table| tx.delete(table, "tea").map(drop);
    let again: Body = |tx, table| {
        tx.delete(table, "tea")?;
        tx.insert(table, "tea".into(), STOCK)
    };
    assert_eq!(attempts(price, moved), 1);
    assert_eq!(attempts(reads, price), 1);
    assert_eq!(attempts(reads, moved), 2, "it has read another column of the group");
    assert_eq!(attempts(whole, moved), 2);
    assert_eq!(attempts(moved, whole), 1);
    assert_eq!(attempts(reads, delete), 2, "a part says if its row is there");
    assert_eq!(attempts(reads, again), 2);
}

#[test]
fn a_group_alone_costs_a_key() {
    let store = Arc::new(FaultyStore::new(MemoryStore::new(), 1, Faults::default()));
    let cluster = cluster_over(&store);
    let table = stocks(&cluster);
    let changed = |body: &dyn Fn(&mut Transaction<'_>) -> Result<(), Abort>| {
        let mut keys = (0, 0);
        let run = |tx: &mut Transaction<'_>| {
            body(tx)?;
            keys = (tx.reads.len(), tx.writes.len());
            Ok(())
        };
        cluster.transact(run).unwrap();
        keys
    };
    assert_eq!(
        changed(&|tx| tx.update_columns(&table, "tea", column_of!(Stock, taken), |taken| *taken += 1)),
        (1, 1)
    );
    assert_eq!(changed(&|tx| tx.update(&table, "tea", |row| row.orders += 1)), (4, 1));
    assert_eq!(changed(&|tx| tx.insert(&table, "new".into(), STOCK)), (1, 4));
    assert_eq!(changed(&|tx| tx.add(&table, "tea", column_of!(Stock, small), 1)), (0, 1));
    let prefetched = |tx: &mut Transaction<'_>| {
        tx.prefetch_columns(&table, ["tea".to_owned(), "new".to_owned()], column_of!(Stock, large))
    };
    assert_eq!(changed(&prefetched), (2, 0));
}

#[test]
fn counters_of_each_type_keep_to_their_ranges() {
    let cluster = cluster();
    let table = stocks(&cluster);
    let (small, large) = (column_of!(Stock, small), column_of!(Stock, large));
    cluster.transact(|tx| tx.add(&table, "tea", large, u64::MAX - 7)).unwrap();
    cluster.transact(|tx| tx.add(&table, "tea", small, u16::MAX - 4)).unwrap();
    assert_eq!(get(&cluster, &table), Stock { small: u16::MAX, large: u64::MAX, ..STOCK });
    let errors = [
        cluster.transact(|tx| tx.add(&table, "tea", small, 1)),
        cluster.transact(|tx| tx.add(&table, "tea", large, 1)),
        cluster.transact(|tx| tx.add(&table, "tea", column_of!(Stock, taken), u32::MAX)),
    ];
    for error in errors {
        assert!(error.unwrap_err().downcast_ref::<Overflow>().is_some());
    }
    assert!(cluster.transact(|tx| tx.subtract_if_enough(&table, "tea", large, u64::MAX)).unwrap());
    assert!(!cluster.transact(|tx| tx.subtract_if_enough(&table, "tea", large, 1)).unwrap());
    assert_eq!(get(&cluster, &table), Stock { small: u16::MAX, large: 0, ..STOCK });
}

#[test]
fn an_index_follows_changes_of_its_columns_alone() {
    let store = Arc::new(MemoryStore::new());
    let open = || {
        let cluster = cluster_over(&store);
        let mut builder = cluster.table::<u32, Stock>("stocks");
        let by_taken = builder.secondary_on("by_taken", column_of!(Stock, taken), |_, taken| taken);
        (builder.create_or_open().unwrap(), by_taken, cluster)
    };
    let (table, _, cluster) = open();
    cluster
        .transact(|tx| (1..=3).try_for_each(|key| tx.insert(&table, key, Stock { taken: key, ..STOCK })))
        .unwrap();
    let (table, by_taken, cluster): (_, RemoteIndex<u32, u32, Stock>, _) = open();
    cluster
        .transact(|tx| {
            tx.update_columns(&table, &1, column_of!(Stock, taken), |taken| *taken = 10)?;
            tx.update_columns(&table, &2, column_of!(Stock, price), |price| *price = 10)?;
            tx.add(&table, &3, column_of!(Stock, taken), 2)?;
            tx.add(&table, &3, column_of!(Stock, small), 2)?;
            assert_eq!(tx.reads.len(), 3, "a counter on which nothing depends is not read");
            Ok(())
        })
        .unwrap();
    let found = cluster.transact(|tx| by_taken.collect(tx, .., Direction::Ascending, 9)).unwrap();
    let expected = [
        (2, Stock { taken: 2, price: 10, ..STOCK }),
        (3, Stock { taken: 5, small: 6, ..STOCK }),
        (1, Stock { taken: 10, ..STOCK }),
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_constraint_sees_the_row_whole() {
    let cluster = cluster();
    let builder = cluster.table::<u32, Stock>("stocks");
    let table = builder.check("not more than there is", |_, row| u64::from(row.taken) <= row.large);
    let table = table.create_or_open().unwrap();
    cluster.transact(|tx| tx.insert(&table, 1, STOCK)).unwrap();
    let take = |amount| cluster.transact(|tx| tx.add(&table, &1, column_of!(Stock, taken), amount));
    take(6).unwrap();
    assert!(take(1).is_err());
    let less = cluster.transact(|tx| tx.subtract_if_enough(&table, &1, column_of!(Stock, large), 1));
    assert!(less.is_err());
    assert_eq!(cluster.transact(|tx| tx.get(&table, &1)).unwrap(), Some(Stock { taken: 7, ..STOCK }));
}

//! Copies of directories and clusters, also ones that are ended half-way.

mod declared;
#[cfg(feature = "etcd")]
mod etcd;
mod into_cluster;
mod into_directory;

use super::into_cluster::storage_into_cluster;
use super::into_directory::into_storage;
use super::{MoveError, Moved};
use crate::faults::{Faults, FaultyStore};
use crate::{At, Cluster, DatabaseStore, Freshness, Limits, MemoryStore, Settings, Span, Store, Version};
use hotrow::durable::storage::Faulty;
use hotrow::durable::{DurableBuilder, DurableDatabase};
use hotrow::{Database, Key, Stored, Value};
use hotrow_sync::Arc;
use hotrow_sync::clock::{Duration, now};

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Key, Stored)]
enum Owner {
    Person { name: String, number: u32 },
    Bank(u16),
}

#[derive(Debug, Clone, PartialEq, Value, Stored)]
struct Account {
    balance: i64,
    notes: Vec<String>,
}

const ROWS: u32 = 40;

fn owner(number: u32) -> Owner {
    match number % 3 {
        0 => Owner::Bank(number as u16),
        _ => Owner::Person { name: format!("name {}", 7 * number % 10), number },
    }
}

fn account(number: u32, round: i64) -> Account {
    Account { balance: i64::from(number) - 20 + round, notes: vec!["x".repeat(number as usize); 2] }
}

/// Opens the database of the program.
fn open(storage: &Arc<Faulty>) -> Database {
    Database::builder().open_in(storage.clone()).unwrap()
}

/// Writes all rows, in this round.
fn write(storage: &Arc<Faulty>, round: i64) {
    let database = open(storage);
    let accounts = database.table::<Owner, Account>("accounts").create().unwrap();
    let pairs = database.table::<(String, i16), u64>("pairs").create().unwrap();
    let empty = database.table::<u8, String>("nothing").create().unwrap();
    let limit = database.durable_box("limit", 5i64).unwrap();
    let numbers = database.durable_sequence("numbers", 100).unwrap();
    database
        .transact(|tx| {
            for number in 0..ROWS {
                accounts.upsert(tx, owner(number), account(number, round))?;
                pairs.upsert(tx, (format!("{}", number % 4), number as i16 - 9), round as u64)?;
            }
            pairs.delete(tx, &("0".to_owned(), -9))?;
            numbers.next(tx);
            limit.set(tx, 7 + round)
        })
        .unwrap();
    database.close().unwrap();
    drop((accounts, pairs, empty, limit, numbers, database));
}

/// Checks that a directory has the rows of a round.
fn check(storage: &Arc<Faulty>, round: i64) {
    let database = open(storage);
    let accounts = database.table::<Owner, Account>("accounts").create().unwrap();
    let pairs = database.table::<(String, i16), u64>("pairs").create().unwrap();
    let nothing = database.table::<u8, String>("nothing").create().unwrap();
    let limit = database.durable_box("limit", 0i64).unwrap();
    let numbers = database.durable_sequence("numbers", 0).unwrap();
    database
        .transact(|tx| {
            for number in 0..ROWS {
                assert_eq!(accounts.get(tx, &owner(number))?, Some(account(number, round)));
                let pair = pairs.get(tx, &(format!("{}", number % 4), number as i16 - 9))?;
                assert_eq!(pair, (number > 0).then_some(round as u64));
            }
            assert_eq!(accounts.count(tx, ..)?, ROWS as usize);
            assert_eq!(nothing.count(tx, ..)?, 0);
            assert_eq!(limit.get(tx)?, 7 + round);
            Ok(())
        })
        .unwrap();
    assert!(database.transact(|tx| Ok(numbers.next(tx))).unwrap() >= 100);
    database.close().unwrap();
}

/// The rows of `accounts`, of `pairs`, which has one less, and of the box.
const ROWS_IN_ALL: u64 = 2 * ROWS as u64;

fn settings() -> Settings {
    Settings {
        deadline: Duration::from_millis(30),
        backoff_max: Duration::from_micros(100),
        page: 7,
        ..Settings::default()
    }
}

/// A store that takes few changes at once.
fn store() -> MemoryStore {
    MemoryStore::with_limits(Limits { conditions_max: 64, changes_max: 16, bytes_max: 4_000 })
}

fn faulty() -> Arc<FaultyStore<MemoryStore>> {
    Arc::new(FaultyStore::new(store(), 1, Faults::default()))
}

fn cluster_in(store: &Arc<impl Store + 'static>) -> Cluster {
    Cluster::with_settings(store.clone(), settings())
}

fn to_cluster(storage: &Arc<Faulty>, cluster: &Cluster) -> Result<Moved, MoveError> {
    storage_into_cluster(storage.clone(), cluster, &mut |_| ())
}

/// Copies a cluster to a storage. `None` if the copy has to begin anew.
fn to_storage(cluster: &Cluster, storage: &Arc<Faulty>) -> Result<Option<Moved>, MoveError> {
    match into_storage(cluster, storage.clone(), &mut |_| ())? {
        None => Ok(None),
        Some((writer, moved)) => {
            writer.end()?;
            Ok(Some(moved))
        }
    }
}

fn source(round: i64) -> Arc<Faulty> {
    let storage = Arc::new(Faulty::new(1));
    write(&storage, round);
    storage
}

/// Checks that a cluster has the rows of a round, and no others.
fn check_cluster(cluster: &Cluster, store: &dyn Store, round: i64) {
    let there_and_back = Arc::new(Faulty::new(2));
    to_storage(cluster, &there_and_back).unwrap().unwrap();
    check(&there_and_back, round);
    let keys = Span { start: b"hotrow/t".to_vec(), end: b"hotrow/u".to_vec() };
    let page = store.range(&keys, At::Newest, 1_000, now() + Duration::from_secs(5)).unwrap();
    assert_eq!(page.rows.len() as u64, ROWS_IN_ALL, "rows of other copies are deleted");
}

fn newest(store: &dyn Store) -> Version {
    store.read_version(Freshness::Newest, now() + Duration::from_secs(5)).unwrap()
}

fn there_and_back(store: Arc<impl Store + 'static>) {
    let cluster = cluster_in(&store);
    let moved = to_cluster(&source(0), &cluster).unwrap();
    assert_eq!((moved.tables, moved.rows, moved.rows_before), (5, ROWS_IN_ALL, 0));

    let accounts = cluster.table::<Owner, Account>("accounts").create_or_open().unwrap();
    let pairs = cluster.table::<(String, i16), u64>("pairs").create_or_open().unwrap();
    let limit = cluster.table::<u64, i64>("limit").create_or_open().unwrap();
    let rows = cluster.transact(|tx| tx.rows(&accounts, ..)).unwrap();
    let mut owners: Vec<_> = (0..ROWS).map(owner).collect();
    owners.sort();
    assert_eq!(rows.iter().map(|(key, _)| key.clone()).collect::<Vec<_>>(), owners);
    cluster
        .transact(|tx| {
            for number in 0..ROWS {
                tx.update(&accounts, &owner(number), |account| account.balance += 1)?;
            }
            Ok(())
        })
        .unwrap();
    cluster
        .transact(|tx| {
            for (key, row) in tx.rows(&pairs, ..)? {
                tx.upsert(&pairs, key, row + 1)?;
            }
            assert_eq!(tx.get(&limit, &0)?, Some(7));
            tx.upsert(&limit, 0, 8).map(drop)
        })
        .unwrap();
    let back = Arc::new(Faulty::new(3));
    let moved = to_storage(&cluster, &back).unwrap().unwrap();
    assert_eq!((moved.tables, moved.rows, moved.rows_before), (5, ROWS_IN_ALL, 0));
    check(&back, 1);
}

#[test]
fn a_program_finds_its_rows_in_the_cluster_and_in_the_directory_again() {
    there_and_back(Arc::new(MemoryStore::new()));
}

#[test]
fn a_local_database_is_a_target_too() {
    there_and_back(Arc::new(DatabaseStore::over(&Database::open().unwrap()).unwrap()));
}

#[test]
fn copies_into_a_store_with_faults_are_whole() {
    for seed in 0..12 {
        let store = Arc::new(FaultyStore::new(store(), seed, Faults::wild()));
        let settings = Settings { deadline: Duration::from_secs(10), ..settings() };
        let cluster = Cluster::with_settings(store.clone(), settings);
        to_cluster(&source(0), &cluster).unwrap();
        store.deliver();
        let back = Arc::new(Faulty::new(seed));
        // A compaction between reading the version and holding it makes the copy begin anew.
        assert!(to_storage(&cluster, &back).unwrap().is_some());
        check(&back, 0);
    }
}

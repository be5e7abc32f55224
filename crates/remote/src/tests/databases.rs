//! Stores over local databases.

use super::bank::{self, Load, Mix};
use super::{contract, settings};
use crate::{
    At, Cluster, Commit, DatabaseStore, Faults, FaultyStore, Mutation, Outcome, Store, StoreError, Version,
};
use hotrow_core::Protocol;
use hotrow_durable::storage::Faulty;
use hotrow_durable::{DurableBuilder, DurableDatabase};
use hotrow_protocols::Occ;
use hotrow_sync::Arc;
use hotrow_sync::clock::{Duration, now};
use hotrow_tables::Database;

fn check<P: Protocol>(database: &Database<P>) {
    let store = DatabaseStore::over(database).unwrap();
    contract::check(&store, "contract/", &|version, _| {
        store.compact(version).unwrap();
    });
}

#[test]
fn a_store_over_a_database_keeps_the_contract() {
    check(&Database::open().unwrap());
}

#[test]
fn a_store_over_a_database_keeps_the_contract_under_other_protocols() {
    for protocol in ["plor+dwa", "tictoc", "wound-wait", "mocc"] {
        check(&Database::builder().protocol(protocol).open().unwrap());
    }
}

#[test]
fn a_store_over_a_durable_database_keeps_the_contract() {
    let directory = tempfile::tempdir().unwrap();
    check(&Database::builder().open_at(directory.path()).unwrap());
}

fn put(store: &impl Store, key: &str, value: &str) -> Result<Outcome, StoreError> {
    let put = Mutation::Put { key: key.into(), value: value.into() };
    let commit = Commit { mutations: vec![put], ..Commit::default() };
    store.commit(&commit, now() + Duration::from_secs(20))
}

fn version(outcome: Result<Outcome, StoreError>) -> Version {
    match outcome {
        Ok(Outcome::Committed(version)) => version,
        other => panic!("{other:?}"),
    }
}

fn get(store: &impl Store, key: &str, at: At) -> Option<String> {
    let read = store.get_many(&[key.into()], at, now() + Duration::from_secs(20)).unwrap();
    read.values[0].clone().map(|found| String::from_utf8(found.value).unwrap())
}

#[test]
fn all_versions_survive_a_loss_of_power_and_others_follow() {
    let storage = Arc::new(Faulty::new(1));
    let open =
        |storage: &Arc<Faulty>| -> Database<Occ> { Database::builder().open_in(storage.clone()).unwrap() };
    let database = open(&storage);
    let store = DatabaseStore::over(&database).unwrap();
    let versions = ["1", "2", "3"].map(|value| version(put(&store, "k", value)));
    let held = store.hold(versions[0], now() + Duration::from_secs(20)).unwrap();

    let storage = Arc::new(storage.power_loss(7));
    let database_after = open(&storage);
    let after = DatabaseStore::over(&database_after).unwrap();
    for (version, value) in versions.into_iter().zip(["1", "2", "3"]) {
        assert_eq!(get(&after, "k", At::Version(version)).as_deref(), Some(value));
    }
    assert!(version(put(&after, "k", "4")) > versions[2]);
    // The hold was one of the process that is gone.
    assert_eq!(after.compact(Version::MAX).unwrap(), versions[2] + 1);
    assert_eq!(store.compact(Version::MAX).unwrap(), versions[0]);
    drop(held);
}

#[test]
fn a_commit_that_the_device_did_not_take_has_an_unknown_outcome() {
    let storage = Arc::new(Faulty::new(1));
    let database: Database<Occ> = Database::builder().open_in(storage.clone()).unwrap();
    let store = DatabaseStore::over(&database).unwrap();
    version(put(&store, "k", "1"));
    storage.set_capacity(Some(0));
    let failed = put(&store, "k", &"2".repeat(100_000));
    assert!(matches!(failed, Err(StoreError::Unknown { .. })), "{failed:?}");
    assert!(database.flush().is_err());
}

#[test]
fn a_compaction_leaves_one_value_for_each_key_that_is_there() {
    let database = Database::open().unwrap();
    let store = DatabaseStore::over(&database).unwrap();
    for round in 0..4 {
        for key in 0..10 {
            version(put(&store, &format!("k{key}"), &round.to_string()));
        }
    }
    let mutations =
        (0..5).map(|key| Mutation::Delete { key: format!("k{}", 2 * key).into_bytes() }).collect();
    let deleted = Commit { mutations, ..Commit::default() };
    let newest = version(store.commit(&deleted, now() + Duration::from_secs(20)));
    let values = database.table::<(Vec<u8>, u64), Option<Vec<u8>>>("hotrow/values").open().unwrap();
    let count = || database.transact(|tx| values.count(tx, ..)).unwrap();
    assert_eq!(count(), 45);
    assert_eq!(store.compact(newest).unwrap(), newest);
    assert_eq!(count(), 5);
    assert_eq!(get(&store, "k3", At::Version(newest)).as_deref(), Some("3"));
    assert_eq!(get(&store, "k4", At::Newest), None);
}

#[test]
fn two_stores_over_one_database_are_one() {
    let database = Database::open().unwrap();
    let one = Arc::new(DatabaseStore::over(&database).unwrap());
    let other = Arc::new(DatabaseStore::over(&database).unwrap());
    let (one, other) = (Cluster::over(one), Cluster::over(other));
    let stock = one.table::<String, u32>("stock").create_or_open().unwrap();
    one.transact(|tx| tx.insert(&stock, "tea".into(), 7)).unwrap();
    let stock = other.table::<String, u32>("stock").create_or_open().unwrap();
    assert_eq!(other.transact(|tx| tx.get(&stock, "tea")).unwrap(), Some(7));
}

#[test]
fn a_bank_over_a_faulty_store_over_a_database_is_strictly_serializable() {
    for seed in 0..4 {
        let database = Database::open().unwrap();
        let store = FaultyStore::new(DatabaseStore::over(&database).unwrap(), seed, Faults::wild());
        let cluster = Cluster::with_settings(Arc::new(store), settings());
        let load = Load::of(3, 60, seed, Mix::by_seed(seed));
        bank::run(cluster, load).unwrap_or_else(|wrong| panic!("seed {seed}: {wrong}"));
    }
}

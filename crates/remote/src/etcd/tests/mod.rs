//! Tests over an etcd cluster, whose servers' addresses are in `HOTROW_ETCD`, with commas between them. Without it they are skipped, and say
//! so. `.ci/etcd` starts three servers on this machine and runs them.

mod disturbed;
mod refusals;
mod secured;
mod servers;

use super::{EtcdOptions, EtcdStore};
use crate::marker::until;
use crate::tests::{Counter, bank, contract};
use crate::{At, Cluster, Commit, Freshness, Mutation, Outcome, Settings, Store, StoreError};
use hotrow::column_of;
use hotrow_sync::clock::{Duration, Instant, now};
use hotrow_sync::{Arc, LazyLock, Mutex, lock, thread};

/// Tests that stop servers or compact states keep others from running.
pub(crate) static ALONE: LazyLock<Mutex<()>> = LazyLock::new(|| Mutex::new(()));

fn soon() -> Instant {
    now() + Duration::from_secs(30)
}

/// A store in the etcd cluster; `None`, said aloud, if there is none.
fn store() -> Option<EtcdStore> {
    let Ok(servers) = std::env::var("HOTROW_ETCD") else {
        eprintln!("skipped: HOTROW_ETCD has no addresses of etcd servers; .ci/etcd starts some");
        return None;
    };
    let options =
        EtcdOptions { operations_max: 1024, call_max: Duration::from_secs(2), ..EtcdOptions::default() };
    Some(EtcdStore::with_options(servers.split(','), options).unwrap())
}

/// A beginning of keys that nobody has used.
fn fresh(store: &EtcdStore, name: &str) -> String {
    // Servers may be without a leader for a moment.
    let version = until(soon(), || store.read_version(Freshness::Newest, soon())).unwrap();
    format!("{name}-{version}/")
}

/// Settings of a cluster with keys of its own.
fn settings(store: &EtcdStore, name: &str) -> Settings {
    Settings {
        prefix: fresh(store, name).into_bytes(),
        deadline: Duration::from_secs(60),
        lookup: Duration::from_secs(60),
        ..Settings::default()
    }
}

#[test]
fn etcd_keeps_the_contract() {
    let Some(store) = store() else { return };
    let _alone = lock(&ALONE);
    let prefix = fresh(&store, "contract");
    contract::check(&store, &prefix, &|version, at_least| {
        // Clients of other tests that were ended in the middle may hold older versions, until their leases expire.
        let deadline = now() + Duration::from_secs(30);
        while store.compact_below(version, soon()).unwrap() < at_least {
            assert!(now() < deadline, "somebody holds an older version all the time");
            thread::sleep(Duration::from_millis(200));
        }
    });
}

#[test]
fn a_bank_over_etcd_is_strictly_serializable() {
    let Some(store) = store() else { return };
    let _alone = lock(&ALONE);
    let settings = settings(&store, "bank");
    let cluster = Cluster::with_settings(Arc::new(store), settings);
    let began = now();
    bank::run(cluster, bank::Load::of(4, 100, 1, bank::Mix::All)).unwrap();
    println!("a bank of 400 transactions: {:?}", began.elapsed());
}

#[test]
fn reads_at_a_version_do_not_move_while_others_write() {
    let Some(store) = store() else { return };
    let _alone = lock(&ALONE);
    let prefix = fresh(&store, "still");
    let keys: Vec<Vec<u8>> = (0..3).map(|at| format!("{prefix}{at}").into_bytes()).collect();
    let write = |value: u32| {
        let put = |key: &Vec<u8>| Mutation::Put { key: key.clone(), value: value.to_le_bytes().to_vec() };
        let commit = Commit { mutations: keys.iter().map(put).collect(), ..Commit::default() };
        assert!(matches!(store.commit(&commit, soon()), Ok(Outcome::Committed(_))));
    };
    write(0);
    thread::scope(|scope| {
        scope.spawn(|| (1..40).for_each(write));
        for _ in 0..40 {
            let read = store.get_many(&keys, At::Newest, soon()).unwrap();
            let again = store.get_many(&keys, At::Version(read.version), soon()).unwrap();
            assert_eq!(read, again);
            let values: Vec<_> = read.values.iter().flatten().map(|found| &found.value).collect();
            assert!(values.iter().all(|value| *value == values[0]) && values.len() == 3, "one state");
        }
    });
}

#[test]
fn commits_that_go_together_succeed_and_fail_each_by_itself() {
    let Some(store) = store() else { return };
    let _alone = lock(&ALONE);
    let prefix = fresh(&store, "together");
    let key = |name: &str| format!("{prefix}{name}").into_bytes();
    // Each pair reads both keys, and writes one of them.
    for round in 0..30 {
        let pairs: Vec<_> = (0..8).map(|pair| [key(&format!("{pair}a")), key(&format!("{pair}b"))]).collect();
        let before = store.get_many(pairs.as_flattened(), At::Newest, soon()).unwrap();
        let version = |at: usize| before.values[at].as_ref().map_or(0, |found| found.version);
        let successes: Vec<usize> = thread::scope(|scope| {
            let attempt = |number: usize| {
                let pair = &pairs[number / 2];
                let put = Mutation::Put { key: pair[number % 2].clone(), value: vec![round] };
                let first = number / 2 * 2;
                let keys = vec![(pair[0].clone(), version(first)), (pair[1].clone(), version(first + 1))];
                let commit = Commit { keys, mutations: vec![put], ..Commit::default() };
                let store = &store;
                scope.spawn(move || matches!(store.commit(&commit, soon()), Ok(Outcome::Committed(_))))
            };
            let attempts: Vec<_> = (0..16).map(attempt).collect();
            let done: Vec<bool> = attempts.into_iter().map(|attempt| attempt.join().unwrap()).collect();
            done.chunks(2).map(|pair| usize::from(pair[0]) + usize::from(pair[1])).collect()
        });
        assert_eq!(successes, [1; 8], "one of each pair succeeds");
        let after = store.get_many(pairs.as_flattened(), At::Newest, soon()).unwrap();
        let changed = before.values.iter().zip(&after.values).filter(|(before, after)| before != after);
        assert_eq!(changed.count(), 8);
    }
}

#[test]
fn a_version_is_held_as_long_as_its_client_lives() {
    let Some(other) = store() else { return };
    let store = store().unwrap();
    let _alone = lock(&ALONE);
    let prefix = fresh(&other, "held");
    let key = prefix.into_bytes();
    let write = |value: u8| {
        let put = Mutation::Put { key: key.clone(), value: vec![value] };
        match other.commit(&Commit { mutations: vec![put], ..Commit::default() }, soon()) {
            Ok(Outcome::Committed(version)) => version,
            outcome => panic!("{outcome:?}"),
        }
    };
    let first = write(1);
    let hold = store.hold(first, soon()).unwrap();
    let last = write(2);
    // Longer than the lease, which is kept alive.
    thread::sleep(Duration::from_secs(5));
    assert!(other.compact_below(last, soon()).unwrap() <= first);
    let read = |at| other.get_many(std::slice::from_ref(&key), At::Version(at), soon());
    assert_eq!(read(first).unwrap().values[0].as_ref().unwrap().value, [1]);
    // The client goes without an end of its hold, as if it had been killed.
    std::mem::forget(hold);
    drop(store);
    let until = soon();
    while other.compact_below(last, soon()).unwrap() < last {
        assert!(now() < until, "the hold of a client that is gone ends");
        thread::sleep(Duration::from_millis(200));
    }
    assert_eq!(read(first), Err(StoreError::Compacted { version: first }));
}

#[test]
fn additions_of_two_clients_to_one_key_lose_nothing() {
    let Some(one) = store() else { return };
    let _alone = lock(&ALONE);
    let settings = settings(&one, "added");
    let open = |store| {
        let cluster = Cluster::with_settings(Arc::new(store), settings.clone());
        let table = cluster.table::<u8, Counter>("counters").create_or_open().unwrap();
        (cluster, table)
    };
    let clients = [open(one), open(store().unwrap())];
    clients[0].0.transact(|tx| tx.insert(&clients[0].1, 1, Counter { count: 0 })).unwrap();
    thread::scope(|scope| {
        for (cluster, table) in clients.iter().chain(&clients) {
            scope.spawn(|| {
                for _ in 0..50 {
                    cluster.transact(|tx| tx.add(table, &1, column_of!(Counter, count), 1)).unwrap();
                }
            });
        }
    });
    let (cluster, table) = &clients[1];
    assert_eq!(cluster.transact(|tx| tx.get(table, &1)).unwrap().unwrap().count, 200);
    cluster.transact(|tx| tx.delete(table, &1)).unwrap();
    let (cluster, table) = &clients[0];
    let error = cluster.transact(|tx| tx.add(table, &1, column_of!(Counter, count), 1)).unwrap_err();
    assert!(error.downcast_ref::<hotrow_tables::MissingRow>().is_some(), "{error}");
}

//! Copies over etcd, as `crate::etcd::tests` has it.

use super::*;
use crate::etcd::tests::ALONE;
use crate::etcd::{EtcdOptions, EtcdStore};
use crate::marker::until;
use hotrow_sync::lock;

/// A store in the etcd cluster, and a beginning of keys that nobody has used; `None`, said aloud, if there is none.
fn store(name: &str) -> Option<(Arc<FaultyStore<EtcdStore>>, Vec<u8>)> {
    let Ok(servers) = std::env::var("HOTROW_ETCD") else {
        eprintln!("skipped: HOTROW_ETCD has no addresses of etcd servers; .ci/etcd starts some");
        return None;
    };
    let options = EtcdOptions { call_max: Duration::from_secs(2), ..EtcdOptions::default() };
    let store = EtcdStore::with_options(servers.split(','), options).unwrap();
    let store = Arc::new(FaultyStore::new(store, 1, Faults::default()));
    let deadline = now() + Duration::from_secs(30);
    let version = until(deadline, || store.read_version(Freshness::Newest, deadline)).unwrap();
    Some((store, format!("{name}-{version}/").into_bytes()))
}

fn cluster_for(store: &Arc<FaultyStore<EtcdStore>>, prefix: &[u8], deadline: Duration) -> Cluster {
    let settings = Settings { prefix: prefix.to_vec(), deadline, ..settings() };
    Cluster::with_settings(store.clone(), settings)
}

#[test]
fn an_opening_with_groups_and_indexes_in_etcd_goes_on_where_it_was_ended() {
    let Some((store, prefix)) = store("declared") else { return };
    let _alone = lock(&ALONE);
    let cluster = |milliseconds| cluster_for(&store, &prefix, Duration::from_millis(milliseconds));
    to_cluster(&declared::wares(), &cluster(60_000)).unwrap();
    let mut ended = 0;
    for calls in (2..).step_by(3) {
        store.end_after(Some(calls));
        let is_open = declared::Wares::open(cluster(100)).is_ok();
        store.end_after(None);
        if is_open {
            break;
        }
        ended += 1;
    }
    assert!(ended > 0);
    let wares = declared::Wares::open(cluster(60_000)).unwrap();
    wares.check(&declared::all());
    wares.change();
    wares.check(&declared::changed());
    let back = Arc::new(Faulty::new(1));
    let moved = to_storage(&wares.cluster, &back).unwrap().unwrap();
    assert_eq!((moved.tables, moved.rows), (1, declared::changed().len() as u64));
}

#[test]
fn a_program_finds_its_rows_in_etcd_and_in_the_directory_again() {
    let Some((store, prefix)) = store("moving") else { return };
    let _alone = lock(&ALONE);
    let cluster = |deadline| cluster_for(&store, &prefix, deadline);
    let (impatient, patient) = (cluster(Duration::from_millis(100)), cluster(Duration::from_secs(60)));
    let back = Arc::new(Faulty::new(1));
    let (mut into_cluster, mut into_directory) = (None, None);
    for calls in (4..).step_by(3) {
        store.end_after(Some(calls));
        into_cluster = to_cluster(&source(0), &impatient).ok();
        store.end_after(None);
        if into_cluster.is_some() {
            break;
        }
    }
    assert_eq!(to_cluster(&source(0), &patient).unwrap().rows_before, into_cluster.unwrap().rows);
    for calls in (8..).step_by(9) {
        store.end_after(Some(calls));
        into_directory = to_storage(&impatient, &back).ok();
        store.end_after(None);
        if into_directory.is_some() {
            break;
        }
    }
    assert!(into_directory.flatten().unwrap().rows_before > 0);
    check(&back, 0);
}

//! Sequences.

use super::{cluster, cluster_over, settings};
use crate::faults::{Faults, FaultyStore};
use crate::{Cluster, MemoryStore, Settings};
use hotrow_core::Abort;
use hotrow_sync::clock::Duration;
use hotrow_sync::{Arc, thread};
use std::collections::BTreeSet;

#[test]
fn numbers_begin_with_the_first_and_leave_gaps_where_attempts_were_undone() {
    let cluster = cluster();
    let numbers = cluster.sequence("orders", 1_000);
    let draw = || cluster.transact(|tx| numbers.next(tx));
    assert_eq!((draw().unwrap(), draw().unwrap()), (1_000, 1_001));
    let undone = cluster.transact(|tx| {
        numbers.next(tx)?;
        Err::<(), _>(Abort::rollback())
    });
    assert!(undone.is_err());
    assert_eq!(draw().unwrap(), 1_003);
    assert_eq!(cluster.sequence("others", 5).name(), "others");
    assert_eq!(cluster.transact(|tx| cluster.sequence("others", 5).next(tx)).unwrap(), 5);
    let last = cluster.sequence("last", u64::MAX);
    let both = cluster.transact(|tx| Ok((last.next(tx)?, last.next(tx)?)));
    assert_eq!(both.unwrap(), (u64::MAX, 0));
}

#[test]
fn no_number_is_drawn_twice() {
    let faults = Faults { delay_max: Duration::from_micros(200), ..Faults::wild() };
    let store = Arc::new(FaultyStore::new(MemoryStore::new(), 7, faults));
    let drawn: Vec<u64> = thread::scope(|scope| {
        let draw = |_| {
            let settings = Settings { deadline: Duration::from_secs(60), ..settings() };
            let cluster = Cluster::with_settings(store.clone(), settings);
            let numbers = cluster.sequence("numbers", 1);
            let draw = move || -> Vec<u64> {
                (0..3_000).map(|_| cluster.transact(|tx| numbers.next(tx)).unwrap()).collect()
            };
            [scope.spawn(draw.clone()), scope.spawn(draw)]
        };
        let workers: Vec<_> = (0..2).flat_map(draw).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    let distinct: BTreeSet<u64> = drawn.iter().copied().collect();
    assert_eq!((drawn.len(), distinct.len()), (12_000, 12_000));
}

#[test]
fn most_numbers_cost_no_call_of_the_store() {
    let store = Arc::new(FaultyStore::new(MemoryStore::new(), 1, Faults::default()));
    let cluster = cluster_over(&store);
    let numbers = cluster.sequence("numbers", 0);
    let draw = |count: u64| {
        let before = store.counts().calls;
        for _ in 0..count {
            cluster.transact(|tx| numbers.next(tx)).unwrap();
        }
        store.counts().calls - before
    };
    assert_eq!(draw(1), 2, "a read and a commit");
    assert_eq!(draw(1_023), 0);
    assert_eq!(draw(1), 2);
    let later = cluster_over(&store);
    assert_eq!(later.transact(|tx| later.sequence("numbers", 0).next(tx)).unwrap(), 2_048);
}

//! Commits whose answer is lost.

use super::{Counter, settings};
use crate::faults::{CommitFault, Faults, FaultyStore};
use crate::mutants::Mutant;
use crate::{Cluster, ClusterError, MemoryStore, RemoteTable, Settings};
use hotrow::column_of;
use hotrow_sync::Arc;
use hotrow_sync::clock::Duration;

type Flaky = Arc<FaultyStore<MemoryStore>>;

fn open(mutant: Option<Mutant>, settings: Settings) -> (Flaky, Cluster, RemoteTable<u32, i64>) {
    let store = Arc::new(FaultyStore::new(MemoryStore::new(), 1, Faults::default()));
    let cluster = Cluster::with_settings(store.clone(), settings).mutated(mutant);
    let table = cluster.table("numbers").create_or_open().unwrap();
    cluster.transact(|tx| tx.insert(&table, 1, 0)).unwrap();
    (store, cluster, table)
}

/// Adds one to a row while commits have these faults, lets all late ones arrive, and returns the row.
fn increment_once(mutant: Option<Mutant>, faults: &[CommitFault]) -> i64 {
    let (store, cluster, table) = open(mutant, settings());
    store.plan(faults.iter().copied());
    cluster.transact(|tx| tx.update(&table, &1, |row| *row += 1)).unwrap();
    store.deliver();
    cluster.transact(|tx| tx.get(&table, &1)).unwrap().unwrap()
}

#[test]
fn a_commit_is_applied_once_whatever_is_lost() {
    use CommitFault::{Late, Lost, LostReply, None, Refused};
    let all = [None, Refused, Lost, LostReply, Late];
    // The faults of a commit, of its lookup, and of what follows.
    for first in all {
        for second in all {
            for third in all {
                for fourth in all {
                    let faults = [first, second, third, fourth];
                    assert_eq!(increment_once(Option::None, &faults), 1, "{faults:?}");
                }
            }
        }
    }
}

#[test]
fn a_commit_that_is_repeated_blindly_is_applied_twice() {
    assert_eq!(increment_once(None, &[CommitFault::LostReply]), 1);
    assert_eq!(increment_once(Some(Mutant::BlindRepetition), &[CommitFault::LostReply]), 2);
}

#[test]
fn a_blind_write_that_arrives_late_does_not_undo_later_ones() {
    let run = |mutant| {
        let (store, cluster, table) = open(mutant, settings());
        let counters = cluster.table::<u32, Counter>("rows").create_or_open().unwrap();
        cluster.transact(|tx| tx.insert(&counters, 1, Counter { count: 0 })).unwrap();
        store.plan([CommitFault::Late]);
        cluster.transact(|tx| tx.add(&counters, &1, column_of!(Counter, count), 1)).unwrap();
        store.deliver();
        drop(table);
        cluster.transact(|tx| tx.get(&counters, &1)).unwrap().unwrap().count
    };
    assert_eq!(run(None), 1);
    assert_eq!(run(Some(Mutant::BlindRepetition)), 2, "an addition has no other condition");
    assert_eq!(run(Some(Mutant::LookupWithoutWrite)), 2, "a look does not prevent a commit on its way");
}

#[test]
fn an_outcome_that_cannot_be_looked_up_is_unknown_and_its_marker_is_not_used_again() {
    let short = Settings { lookup: Duration::from_millis(20), ..settings() };
    let (store, cluster, table) = open(None, short);
    store.plan(std::iter::once(CommitFault::Late).chain(std::iter::repeat_n(CommitFault::Refused, 100_000)));
    let error = cluster.transact(|tx| tx.upsert(&table, 7, 7)).unwrap_err();
    assert!(matches!(error, ClusterError::Unknown(_)), "{error}");
    assert!(!error.is_retryable());
    store.forget_plan();
    cluster.transact(|tx| tx.upsert(&table, 8, 8)).unwrap();
    cluster.transact(|tx| tx.upsert(&table, 9, 9)).unwrap();
    assert_eq!(cluster.transact(|tx| tx.get(&table, &7)).unwrap(), None);
    assert_eq!(store.deliver(), 1, "nothing has prevented it");
    assert_eq!(cluster.transact(|tx| tx.get(&table, &7)).unwrap(), Some(7));
}

#[test]
fn a_store_that_does_not_answer_ends_a_transaction_at_its_deadline() {
    let short = Settings { deadline: Duration::from_millis(30), ..settings() };
    let store =
        Arc::new(FaultyStore::new(MemoryStore::new(), 1, Faults { lost_read: 1.0, ..Faults::default() }));
    let cluster = Cluster::with_settings(store, short);
    let error = cluster.table::<u32, i64>("numbers").create_or_open().unwrap_err();
    assert_eq!(error.to_string(), "the store does not answer: injected fault");
    assert!(error.is_retryable());
}

//! Conditional subtractions: from a counter if there is enough.

use super::{Counter, cluster, cluster_over};
use crate::faults::{Faults, FaultyStore};
use crate::{Cluster, MemoryStore, RemoteTable, Transaction};
use hotrow::{Stored, Value, column_of};
use hotrow_core::{Abort, Column, Overflow};
use hotrow_sync::clock::Duration;
use hotrow_sync::{Arc, thread};
use hotrow_tables::MissingRow;

#[derive(Debug, Clone, Copy, PartialEq, Stored, Value)]
#[value(inline)]
struct Show {
    #[value(group = "seats")]
    seats: u64,
    #[value(group = "sold")]
    sold: u64,
}

fn shows(cluster: &Cluster, seats: u64) -> RemoteTable<u8, Show> {
    let table = cluster.table("shows").create_or_open().unwrap();
    cluster.transact(|tx| tx.insert_if_absent(&table, 1, Show { seats, sold: 0 })).unwrap();
    table
}

/// Sells seats of a show, if there are as many.
fn sell(tx: &mut Transaction<'_>, table: &RemoteTable<u8, Show>, count: u64) -> Result<bool, Abort> {
    let enough = tx.subtract_if_enough(table, &1, column_of!(Show, seats), count)?;
    if enough {
        tx.add(table, &1, column_of!(Show, sold), count)?;
    }
    Ok(enough)
}

#[test]
fn it_is_subtracted_if_there_is_enough() {
    let cluster = cluster();
    let table = shows(&cluster, 10);
    let sell_all = |counts: &[u64]| {
        cluster
            .transact(|tx| counts.iter().map(|count| sell(tx, &table, *count)).collect::<Result<Vec<_>, _>>())
    };
    assert_eq!(sell_all(&[4, 3]).unwrap(), [true, true]);
    assert_eq!(sell_all(&[4]).unwrap(), [false]);
    assert_eq!(sell_all(&[2, 2, 1]).unwrap(), [true, false, true]);
    assert_eq!(cluster.transact(|tx| tx.get(&table, &1)).unwrap(), Some(Show { seats: 0, sold: 10 }));
    let back = cluster.transact(|tx| {
        tx.add(&table, &1, column_of!(Show, seats), 2)?;
        sell(tx, &table, 2)
    });
    assert!(back.unwrap(), "what the transaction has added counts");
    let missing = cluster.transact(|tx| tx.subtract_if_enough(&table, &7, column_of!(Show, seats), 1));
    assert!(missing.unwrap_err().downcast_ref::<MissingRow>().is_some());
    let read = cluster.transact(|tx| {
        let before = tx.get(&table, &1)?.unwrap().seats;
        Ok((before, sell(tx, &table, 1)?))
    });
    assert_eq!(read.unwrap(), (0, false));
}

#[test]
fn columns_that_are_no_counters_are_read() {
    let cluster = cluster();
    let table = cluster.table::<u8, i64>("numbers").create_or_open().unwrap();
    cluster.transact(|tx| tx.insert(&table, 1, 5)).unwrap();
    let subtract = |amount| {
        cluster.transact(|tx| tx.subtract_if_enough(&table, &1, Column::<i64, i64>::whole(), amount))
    };
    assert_eq!((subtract(3).unwrap(), subtract(3).unwrap()), (true, false));
    assert!(subtract(-8).unwrap());
    assert_eq!(cluster.transact(|tx| tx.get(&table, &1)).unwrap(), Some(10));
    let most = cluster.transact(|tx| tx.add(&table, &1, Column::<i64, i64>::whole(), i64::MAX));
    assert!(most.unwrap_err().downcast_ref::<Overflow>().is_some());
}

#[test]
fn a_subtraction_does_not_conflict_with_additions_and_others() {
    let store = Arc::new(MemoryStore::new());
    let (one, other) = (cluster_over(&store), cluster_over(&store));
    let (table, others) = (shows(&one, 10), shows(&other, 10));
    let mut attempts = 0;
    let sold = one.transact(|tx| {
        attempts += 1;
        let sold = sell(tx, &table, 5)?;
        tx.upsert(&table, 2, Show { seats: 0, sold: 0 })?;
        if attempts == 1 {
            thread::scope(|scope| {
                let sell = || other.transact(|tx| sell(tx, &others, 5));
                assert!(scope.spawn(sell).join().unwrap().unwrap());
            });
        }
        Ok(sold)
    });
    assert_eq!((sold.unwrap(), attempts), (true, 1));
    assert!(!one.transact(|tx| sell(tx, &table, 1)).unwrap());
}

#[test]
fn an_attempt_that_has_assumed_too_much_is_repeated_before_anybody_hears_of_it() {
    let cluster = cluster();
    let table = shows(&cluster, 3);
    let told = cluster.transact(|tx| {
        let enough = tx.subtract_if_enough(&table, &1, column_of!(Show, seats), 4)?;
        Err::<(), _>(Abort::because(std::io::Error::other(enough.to_string())))
    });
    assert!(told.unwrap_err().to_string().contains("false"));
    let waits = thread::scope(|scope| {
        let wait = || {
            cluster.transact(|tx| {
                if !tx.subtract_if_enough(&table, &1, column_of!(Show, seats), 4)? {
                    return tx.retry();
                }
                Ok(())
            })
        };
        let waiting = scope.spawn(wait);
        thread::sleep(Duration::from_millis(20));
        cluster.transact(|tx| tx.add(&table, &1, column_of!(Show, seats), 1)).unwrap();
        waiting.join().unwrap()
    });
    waits.unwrap();
    assert_eq!(cluster.transact(|tx| tx.get(&table, &1)).unwrap().unwrap().seats, 0);
}

/// Threads that sell seats over a slow store. Returns the number of seats that they have sold, and of commits that were sent.
fn sell_out(seats: u64, seed: u64, faults: Faults) -> (u64, u64) {
    let store = Arc::new(FaultyStore::new(MemoryStore::new(), seed, faults));
    let cluster = cluster_over(&store);
    let table = shows(&cluster, seats);
    let before = cluster.counts().sent;
    let sold = thread::scope(|scope| {
        let work = |worker: u64| {
            let (cluster, table) = (&cluster, &table);
            scope.spawn(move || {
                let sell = |step: &u64| {
                    let count = 1 + (worker + step) % 3;
                    if cluster.transact(|tx| sell(tx, table, count)).unwrap() { count } else { 0 }
                };
                (0..20).map(|step| sell(&step)).sum::<u64>()
            })
        };
        let workers: Vec<_> = (0..8).map(work).collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).sum()
    });
    let left = cluster.transact(|tx| tx.get(&table, &1)).unwrap().unwrap();
    assert_eq!(left, Show { seats: seats - sold, sold }, "what was acknowledged is what was sold");
    (sold, cluster.counts().sent - before)
}

#[test]
fn subtractions_that_wait_are_combined_and_lose_nothing() {
    let faults = Faults { delay: 1.0, delay_max: Duration::from_millis(2), ..Faults::default() };
    let (sold, sent) = sell_out(10_000, 1, faults);
    assert_eq!(sold, (0..8).flat_map(|worker| (0..20).map(move |step| 1 + (worker + step) % 3)).sum::<u64>());
    assert!(sent <= 80, "{sent} commits for 160 sales of 8 threads");
}

#[test]
fn those_for_which_there_is_not_enough_take_nothing_from_the_rest() {
    for seed in 0..5 {
        let faults = Faults { delay: 1.0, delay_max: Duration::from_millis(1), ..Faults::default() };
        let (sold, _) = sell_out(100, seed, faults);
        assert_eq!(sold, 100, "single seats are asked for to the end");
        sell_out(100, seed, Faults { delay_max: Duration::from_micros(100), ..Faults::wild() });
    }
}

#[test]
fn a_batch_is_split_by_what_there_is_room_for() {
    let cluster = cluster();
    let table = cluster.table::<u8, Counter>("counters").create_or_open().unwrap();
    cluster.transact(|tx| tx.insert(&table, 1, Counter { count: 5 })).unwrap();
    let count = column_of!(Counter, count);
    let both = cluster.transact(|tx| {
        let first = tx.subtract_if_enough(&table, &1, count, 4)?;
        tx.add(&table, &1, count, 100)?;
        Ok((first, tx.subtract_if_enough(&table, &1, count, 101)?))
    });
    assert_eq!(both.unwrap(), (true, true));
    let in_between = cluster.transact(|tx| {
        let first = tx.subtract_if_enough(&table, &1, count, 4)?;
        tx.add(&table, &1, count, 100)?;
        Ok(first)
    });
    assert!(!in_between.unwrap(), "each is judged where it stands, not by the sum of all");
    assert_eq!(cluster.transact(|tx| tx.get(&table, &1)).unwrap(), Some(Counter { count: 100 }));
}

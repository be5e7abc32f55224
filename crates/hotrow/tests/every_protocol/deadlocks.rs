//! Deadlocks under the protocols that lock ranges, where everybody waits for everybody: they are found at once, and cost the youngest only.

use crate::range_locks::engines;
use hotrow::sync::atomic::{AtomicU64, Ordering};
use hotrow::sync::thread;
use hotrow::{
    Abort, Any, Database, Deadlock, Direction, Engine, Origin, Reason, TArray, Transaction, Worker,
};
use std::ops::ControlFlow;

type Tx<'a> = Transaction<'a, Any>;

/// Runs one transaction on each of so many workers. Each begins when the one before it has done its `first` part, and
/// goes on to its `second` when all have. Returns how often each was aborted, and checks that it was by deadlocks.
fn aborts(
    engine: &Engine<Any>,
    workers: u64,
    first: impl Fn(&mut Tx<'_>, usize) -> Result<(), Abort> + Sync,
    second: impl Fn(&mut Tx<'_>, usize) -> Result<(), Abort> + Sync,
) -> Vec<u64> {
    let done = AtomicU64::new(0);
    let wait_for = |count: u64| {
        while done.load(Ordering::Acquire) < count {
            thread::yield_now();
        }
    };
    let run = |mut worker: Worker<Any>, number: u64| {
        wait_for(number);
        let ran = worker.transact(|tx| {
            first(tx, number as usize)?;
            if tx.attempt_number() == 0 {
                done.fetch_add(1, Ordering::AcqRel);
                wait_for(workers);
            }
            second(tx, number as usize)
        });
        assert_eq!(ran, Ok(()));
        let statistics = worker.statistics();
        assert_eq!(statistics.aborts, statistics.aborts_for(Reason::Deadlock));
        statistics.aborts
    };
    let crew: Vec<_> = (0..workers).map(|number| (engine.worker().unwrap(), number)).collect();
    thread::scope(|scope| {
        let run = &run;
        let threads: Vec<_> =
            crew.into_iter().map(|(worker, number)| scope.spawn(move || run(worker, number))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

fn only_the_last_one_once(workers: u64) -> Vec<u64> {
    (0..workers).map(|number| u64::from(number == workers - 1)).collect()
}

fn sum(engine: &Engine<Any>, rows: &TArray<u64, Any>) -> u64 {
    engine.transact(|tx| (0..rows.len()).map(|row| rows.get(tx, row)).sum::<Result<u64, Abort>>()).unwrap()
}

#[test]
fn of_a_ring_of_writers_the_youngest_is_aborted_once() {
    for workers in 2..=5 {
        for engine in engines() {
            let rows = TArray::new(&engine, workers as usize, |_| 0u64);
            let add = |tx: &mut Tx<'_>, row: usize| rows.update(tx, row % rows.len(), |row| *row += 1);
            let aborts = aborts(&engine, workers, add, |tx, number| add(tx, number + 1));
            assert_eq!(aborts, only_the_last_one_once(workers));
            assert_eq!(sum(&engine, &rows), 2 * workers);
        }
    }
}

/// A history names who waited for whom, and for which key: rows, and leaves.
#[test]
fn the_history_of_deadlocks_names_waits_and_keys() {
    for engine in engines() {
        engine.report_both_sides(true);
        let rows = TArray::named(&engine, "rows", 3, |_| 0u64);
        let add = |tx: &mut Tx<'_>, row: usize| rows.update(tx, row % rows.len(), |row| *row += 1);
        aborts(&engine, 3, add, |tx, number| add(tx, number + 1));
        let deadlocks = engine.deadlocks(10);
        assert_eq!(deadlocks.len(), 1, "{deadlocks:?}");
        let Deadlock { number, waits } = &deadlocks[0];
        assert_eq!((*number, waits.len()), (0, 3));
        assert_eq!(waits.iter().filter(|wait| wait.is_victim).count(), 1);
        for (at, wait) in waits.iter().enumerate() {
            assert!(matches!(wait.waiter, Some(Origin::Place(place)) if place.file() == file!()), "{wait:?}");
            assert_eq!(wait.object, "rows");
            // Each waits for the row that the next one has.
            let key: usize = wait.key.parse().unwrap();
            let next: usize = waits[(at + 1) % 3].key.parse().unwrap();
            assert_eq!(next, (key + 1) % 3, "{}", deadlocks[0]);
        }
        assert!(engine.deadlocks(0).is_empty());
    }
}

#[test]
fn the_history_of_deadlocks_names_leaves() {
    for engine in engines() {
        let rows = Database::on(&engine).table::<u64, u64>("rows").create().unwrap();
        rows.bulk_insert((0..10).map(|number| (number * 10, 1))).unwrap();
        let scan = |tx: &mut Tx<'_>, _| {
            rows.scan(tx, 0..=90, Direction::Ascending, |_, _| ControlFlow::Continue(()))
        };
        let insert = |tx: &mut Tx<'_>, number: usize| rows.insert(tx, 1 + number as u64, 0);
        aborts(&engine, 2, scan, insert);
        let deadlock = engine.deadlocks(1).remove(0);
        assert!(
            deadlock
                .waits
                .iter()
                .all(|wait| wait.object == "rows" && wait.key.contains("0") && wait.waiter.is_none()),
            "{deadlock}"
        );
    }
}

#[test]
fn of_a_ring_of_readers_that_write_the_youngest_is_aborted_once() {
    for workers in 2..=4 {
        for engine in engines() {
            let rows = TArray::new(&engine, workers as usize, |_| 0u64);
            let look = |tx: &mut Tx<'_>, number: usize| rows.get(tx, number).map(drop);
            let add =
                |tx: &mut Tx<'_>, number: usize| rows.update(tx, (number + 1) % rows.len(), |row| *row += 1);
            assert_eq!(aborts(&engine, workers, look, add), only_the_last_one_once(workers));
            assert_eq!(sum(&engine, &rows), workers);
        }
    }
}

/// Each but the oldest has to go, as all of them share the row.
#[test]
fn of_several_upgrades_of_one_row_the_oldest_is_never_aborted() {
    for workers in 2..=4 {
        for engine in engines() {
            let rows = TArray::new(&engine, 1, |_| 0u64);
            let look = |tx: &mut Tx<'_>, _| rows.get(tx, 0).map(drop);
            let add = |tx: &mut Tx<'_>, _| rows.update(tx, 0, |row| *row += 1);
            let aborts = aborts(&engine, workers, look, add);
            assert!(aborts[0] == 0 && aborts[1..].iter().all(|aborts| *aborts > 0), "{aborts:?}");
            assert_eq!(sum(&engine, &rows), workers);
        }
    }
}

//! Nobody starves: a long transaction over many hot rows gets through among short ones that hammer the same rows.
//! Nothing is timed; attempts are counted.

use crate::support;
use crate::support::{for_each_protocol, on_threads};
use hotrow::sync::atomic::{AtomicU64, Ordering};
use hotrow::sync::random::Random;
use hotrow::sync::thread;
use hotrow::{Abort, Database, Engine, Protocol, Reason, RetryPolicy, Table, Transaction, Worker};

const ROWS: u64 = 1_000;
/// Threads that run long transactions; the others run short ones.
const LONG: usize = 3;
const THREADS: usize = 6;
const LONG_TRANSACTIONS: u64 = 6;
/// More than any thread runs.
const NO_MORE: u64 = 1 << 32;

/// Protocols under which a transaction that has become the oldest is not aborted any more over a lock.
fn goes_by_age(protocol: &str) -> bool {
    ["wait-die", "wound-wait", "plor", "plor+dwa", "plor+latched"].contains(&protocol)
}

/// Reads each third row, changes each third, and reads and then changes the others, from one of them on.
fn all_rows<P: Protocol>(
    table: &Table<u64, u64, P>,
    tx: &mut Transaction<'_, P>,
    from: u64,
) -> Result<(), Abort> {
    for key in (from..ROWS).chain(0..from) {
        if key % 3 != 1 {
            table.get(tx, &key)?;
        }
        if key % 3 != 0 {
            table.update_if_present(tx, &key, |row| *row += 1)?;
        }
        if key % 50 == 0 {
            thread::yield_now();
        }
    }
    Ok(())
}

/// Changes a row and looks at another one, in any order.
fn two_rows<P: Protocol>(
    table: &Table<u64, u64, P>,
    tx: &mut Transaction<'_, P>,
    random: &mut Random,
) -> Result<(), Abort> {
    let (changed, seen) = (random.below(ROWS), random.below(ROWS));
    let changes_first = random.chance(0.5);
    if changes_first {
        table.update_if_present(tx, &changed, |row| *row += 1)?;
    }
    table.get(tx, &seen)?;
    if random.chance(0.2) {
        thread::yield_now();
    }
    if !changes_first {
        table.update_if_present(tx, &changed, |row| *row += 1)?;
    }
    Ok(())
}

/// The worst that happened to the long transactions.
#[derive(Debug, Clone, Copy, Default)]
struct Worst {
    attempts: u32,
    /// Changes that one of them met, locks left out.
    changes: u64,
    /// One of them lost in an attempt that began when all older transactions had ended.
    lost_as_oldest: bool,
}

fn changes_met<P: Protocol>(worker: &Worker<P>) -> u64 {
    let statistics = worker.statistics();
    [Reason::ReadChanged, Reason::StructureChanged].map(|reason| statistics.aborts_for(reason)).iter().sum()
}

/// Counts a thread's transactions as ended when it stops, also when it panics.
struct Stops<'a>(&'a AtomicU64);
impl Drop for Stops<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(NO_MORE, Ordering::SeqCst);
    }
}

/// Runs long transactions on some threads, each from another row on, among short ones on others.
fn long_among_short<P: Protocol>(engine: &Engine<P>) -> Worst {
    let table = Database::on(engine).table::<u64, u64>("rows").hash(ROWS as usize).create().unwrap();
    table.bulk_insert((0..ROWS).map(|key| (key, 0))).unwrap();
    // How many transactions each of the threads has ended.
    let ended: [AtomicU64; THREADS] = Default::default();
    let now = || ended.each_ref().map(|count| count.load(Ordering::SeqCst));
    let worst = on_threads(engine, THREADS as u64, |number, worker| {
        let mine = &ended[number as usize];
        let _stops = Stops(mine);
        if number as usize >= LONG {
            let mut random = Random::stream(21, number);
            while now()[..LONG].iter().any(|ended| *ended < NO_MORE) {
                worker.transact(|tx| two_rows(&table, tx, &mut random)).unwrap();
                mine.fetch_add(1, Ordering::SeqCst);
            }
            return Worst::default();
        }
        while now()[LONG..].contains(&0) {
            thread::yield_now();
        }
        let mut worst = Worst::default();
        for _ in 0..LONG_TRANSACTIONS {
            // It has its age by the time its body runs, so what begins after that is younger.
            let mut at_first = None;
            let mut is_oldest = false;
            let before = changes_met(worker);
            let attempts = worker.transact(|tx| {
                worst.lost_as_oldest |= is_oldest;
                let now = now();
                let then = *at_first.get_or_insert(now);
                is_oldest = (0..THREADS).all(|other| other == number as usize || now[other] > then[other]);
                all_rows(&table, tx, number * ROWS / LONG as u64)?;
                Ok(tx.attempt_number() + 1)
            });
            mine.fetch_add(1, Ordering::SeqCst);
            worst.attempts = worst.attempts.max(attempts.unwrap());
            worst.changes = worst.changes.max(changes_met(worker) - before);
        }
        worst
    });
    let worst = worst.into_iter().fold(Worst::default(), |one, other| Worst {
        attempts: one.attempts.max(other.attempts),
        changes: one.changes.max(other.changes),
        lost_as_oldest: one.lost_as_oldest | other.lost_as_oldest,
    });
    let sum = engine
        .transact(|tx| (0..ROWS).map(|key| Ok(table.get(tx, &key)?.unwrap())).sum::<Result<u64, Abort>>());
    let short = now()[LONG..].iter().map(|ended| ended - NO_MORE).sum::<u64>();
    let changed = (0..ROWS).filter(|key| key % 3 != 0).count() as u64;
    assert_eq!(sum, Ok(short + LONG as u64 * LONG_TRANSACTIONS * changed));
    eprintln!("{}: {short} short transactions, at most {worst:?} of a long one", support::chosen());
    worst
}

#[test]
fn the_oldest_transaction_commits_in_its_next_attempt() {
    for_each_protocol!(THREADS as u32, |P| {
        if goes_by_age(&support::chosen()) {
            // Nothing but its age lets it through.
            let policy = RetryPolicy { escalate_after: u32::MAX, ..RetryPolicy::default() };
            let worst = long_among_short(&support::engine_with::<P>(policy));
            assert!(!worst.lost_as_oldest, "{worst:?}");
        }
    });
}

#[test]
fn a_long_transaction_over_a_thousand_hot_rows_gets_through() {
    for_each_protocol!(THREADS as u32, |P| {
        let worst = long_among_short(&support::engine::<P>());
        // The changes that it met before it asked the others to let it through, one for each attempt that was in
        // progress then, and some for attempts that have waited for their turn too long. While the system has
        // stopped a transaction that holds a lock, it may meet that lock any number of times.
        let bound = u64::from(RetryPolicy::default().escalate_after) + 6 * THREADS as u64;
        assert!(worst.changes <= bound, "{worst:?}");
    });
}

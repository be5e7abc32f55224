//! Nobody starves: a long transaction over many hot rows gets through among short ones that hammer the same rows.
//! Nothing is timed; attempts are counted.

use crate::support;
use crate::support::{for_each_protocol, on_threads};
use hotrow::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use hotrow::sync::random::Random;
use hotrow::sync::thread;
use hotrow::{Abort, Engine, Protocol, Reason, RetryPolicy, Table, Transaction, Worker};

const ROWS: u64 = 1_000;
const SHORT: u64 = 3;
const LONG_TRANSACTIONS: u64 = 12;

/// Protocols under which a transaction that has become the oldest is not aborted any more over a lock.
fn goes_by_age(protocol: &str) -> bool {
    ["wait-die", "wound-wait", "plor", "plor+dwa", "plor+latched"].contains(&protocol)
}

/// Stops the others, also when a thread panics.
struct Stop<'a>(&'a AtomicBool);
impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Reads each third row, changes each third, and reads and then changes the others.
fn all_rows<P: Protocol>(table: &Table<u64, u64, P>, tx: &mut Transaction<'_, P>) -> Result<(), Abort> {
    for key in 0..ROWS {
        if key % 3 != 1 {
            table.get(tx, &key)?;
        }
        if key % 3 != 0 {
            table.update(tx, &key, |row| *row += 1)?;
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
        table.update(tx, &changed, |row| *row += 1)?;
    }
    table.get(tx, &seen)?;
    if random.chance(0.2) {
        thread::yield_now();
    }
    if !changes_first {
        table.update(tx, &changed, |row| *row += 1)?;
    }
    Ok(())
}

/// What the long transactions went through.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Worst {
    attempts: u32,
    /// Changes that one of them met, locks left out.
    changes: u64,
}

fn changes_met<P: Protocol>(worker: &Worker<P>) -> u64 {
    let statistics = worker.statistics();
    [Reason::ReadChanged, Reason::StructureChanged].map(|reason| statistics.aborts_for(reason)).iter().sum()
}

/// Runs long transactions on one thread among short ones on others. `begun` is told when an attempt of a long one
/// begins: its number, and whether all transactions that are older have ended.
fn long_among_short<P: Protocol>(engine: &Engine<P>, begun: impl Fn(u32, bool) + Sync) -> Worst {
    let table = Table::<u64, u64, P>::hash(engine, "rows", ROWS as usize);
    (0..ROWS).for_each(|key| assert!(table.load(key, 0)));
    let stop = AtomicBool::new(false);
    // How many transactions each of the others has ended.
    let ended: [AtomicU64; SHORT as usize] = Default::default();
    let now = || ended.each_ref().map(|count| count.load(Ordering::SeqCst));
    let worst = on_threads(engine, SHORT + 1, |number, worker| {
        if number > 0 {
            let mut random = Random::stream(21, number);
            while !stop.load(Ordering::Acquire) {
                worker.run(|tx| two_rows(&table, tx, &mut random)).unwrap();
                ended[number as usize - 1].fetch_add(1, Ordering::SeqCst);
            }
            return Worst::default();
        }
        let _stop = Stop(&stop);
        while now().contains(&0) {
            thread::yield_now();
        }
        let mut worst = Worst::default();
        for _ in 0..LONG_TRANSACTIONS {
            // It has its age by the time its body runs, so what begins after that is younger.
            let mut at_first = None;
            let before = changes_met(worker);
            let attempts = worker.run(|tx| {
                let now = now();
                let then = *at_first.get_or_insert(now);
                begun(tx.attempt_number(), now.iter().zip(then).all(|(now, then)| *now > then));
                all_rows(&table, tx)?;
                Ok(tx.attempt_number() + 1)
            });
            worst.attempts = worst.attempts.max(attempts.unwrap());
            worst.changes = worst.changes.max(changes_met(worker) - before);
        }
        worst
    })[0];
    let sum =
        engine.run(|tx| (0..ROWS).map(|key| Ok(table.get(tx, &key)?.unwrap())).sum::<Result<u64, Abort>>());
    let short: u64 = now().iter().sum();
    let long = LONG_TRANSACTIONS * (0..ROWS).filter(|key| key % 3 != 0).count() as u64;
    assert_eq!(sum, Ok(short + long));
    eprintln!("{}: {short} short transactions, at most {worst:?} of a long one", support::chosen());
    worst
}

#[test]
fn the_oldest_transaction_commits_in_its_next_attempt() {
    for_each_protocol!(SHORT as u32 + 1, |P| {
        if !goes_by_age(&support::chosen()) {
            return;
        }
        // Nothing but its age lets it through.
        let policy = RetryPolicy { escalate_after: u32::MAX, ..RetryPolicy::default() };
        let engine = support::engine_with::<P>(policy);
        let oldest_before = AtomicBool::new(false);
        long_among_short(&engine, |attempt, oldest| {
            let before = oldest_before.swap(oldest, Ordering::Relaxed);
            assert!(attempt == 0 || !before, "attempt {attempt} follows one of the oldest transaction");
        });
    });
}

#[test]
fn a_long_transaction_over_a_thousand_hot_rows_gets_through() {
    for_each_protocol!(SHORT as u32 + 1, |P| {
        let engine = support::engine::<P>();
        let Worst { changes, .. } = long_among_short(&engine, |_, _| ());
        // The changes that it met before it asked the others to let it through, one for each attempt that was in
        // progress then, and some for attempts that have waited for their turn too long. While the system has
        // stopped a short transaction that holds a lock, it may meet that lock any number of times.
        let bound = u64::from(RetryPolicy::default().escalate_after) + 6 * (SHORT + 1);
        assert!(changes <= bound, "{changes} changes in one transaction");
    });
}

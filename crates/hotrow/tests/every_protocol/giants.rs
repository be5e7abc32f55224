//! Giants: transactions whose attempts take longer than others are held back at first, so that somebody commits in the
//! midst of each. They get through all the same, under every protocol, and so do the others. Attempts that came to their
//! midst are counted: others lose at once, over locks, any number of times.

use crate::support;
use crate::support::for_each_protocol;
use hotrow::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use hotrow::sync::event::Event;
use hotrow::sync::thread;
use hotrow::{
    Abort, Database, Direction, Engine, Error, Occ, Protocol, Reason, RetryPolicy, TBox, Table, Transaction,
};
use std::ops::ControlFlow;
use std::time::Duration;

const ROWS: u64 = 40;
/// The row that others change all the time.
const HOT: u64 = 1;
/// How long the body of a giant is: if nobody commits in its midst. Longer than the shortest window of an elder.
const BODY: Duration = Duration::from_millis(200);
const ESCALATE_AFTER: u32 = 2;
/// Attempts of a giant that come to their midst: those before it is an elder; then in each of a few windows one for each
/// other worker, which it may have in progress, and one that outlasts the window.
const ATTEMPTS_MAX: u32 = ESCALATE_AFTER + 4 * WORKERS;
const WORKERS: u32 = 3;

/// The work of a giant on the rows.
#[derive(Debug, Clone, Copy)]
enum Work {
    Update,
    ScanAndDelete,
    Insert,
}

struct Scene<P: Protocol> {
    engine: Engine<P>,
    rows: Table<u64, u64, P>,
    /// Commits of those who change the hot row.
    updates: AtomicU64,
    updated: Event,
    stop: AtomicBool,
}

impl<P: Protocol> Scene<P> {
    fn new() -> Self {
        let policy = RetryPolicy { escalate_after: ESCALATE_AFTER, ..RetryPolicy::default() };
        let engine = support::engine_with::<P>(policy);
        let rows = Database::on(&engine).table("rows").create().unwrap();
        rows.bulk_insert((0..ROWS).map(|key| (key, 0))).unwrap();
        Self { engine, rows, updates: AtomicU64::new(0), updated: Event::new(), stop: AtomicBool::new(false) }
    }

    fn updates(&self) -> u64 {
        self.updates.load(Ordering::SeqCst)
    }

    /// Changes the hot row, as long as it is there, until told to stop.
    fn update_all_the_time(&self) {
        while !self.stop.load(Ordering::SeqCst) {
            self.engine.transact(|tx| self.rows.update_if_present(tx, &HOT, |row| *row += 1)).unwrap();
            self.updates.fetch_add(1, Ordering::SeqCst);
            self.updated.notify_all();
        }
    }

    /// Goes through all rows, the hot one first. Then it is in its midst, until somebody has committed or its time is up.
    fn run_giant(&self, work: Work, from: u64) -> u32 {
        let mut attempts = 0;
        let mut worker = self.engine.worker().unwrap();
        worker.transact(|tx| self.giant(tx, work, from, &mut attempts)).unwrap();
        attempts
    }

    fn giant(
        &self,
        tx: &mut Transaction<'_, P>,
        work: Work,
        from: u64,
        attempts: &mut u32,
    ) -> Result<(), Abort> {
        let seen = self.updates();
        match work {
            Work::Update => {
                for key in (from..ROWS).chain(0..from) {
                    self.rows.update_if_present(tx, &key, |row| *row += 1)?;
                }
            }
            Work::Insert => {
                self.rows.get(tx, &HOT)?;
                for key in 0..ROWS {
                    self.rows.insert_if_absent(tx, ROWS + key, 1)?;
                }
            }
            Work::ScanAndDelete => {
                let mut keys = Vec::new();
                self.rows.scan(tx, .., Direction::Ascending, |key, _| {
                    keys.push(*key);
                    ControlFlow::Continue(())
                })?;
                for key in keys {
                    self.rows.delete(tx, &key)?;
                }
            }
        }
        *attempts += 1;
        assert!(*attempts <= ATTEMPTS_MAX, "it does not end");
        self.updated.wait_timeout(BODY, || self.updates() != seen);
        Ok(())
    }
}

/// Ends the others, also when the giant panics.
struct Stops<'a>(&'a AtomicBool);
impl Drop for Stops<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Does something beside somebody who changes the hot row all the time. Returns what is left.
fn beside_an_updater<P: Protocol>(work: impl FnOnce(&Scene<P>)) -> Scene<P> {
    let scene = Scene::new();
    thread::scope(|scope| {
        scope.spawn(|| scene.update_all_the_time());
        let _stops = Stops(&scene.stop);
        while scene.updates() == 0 {
            thread::yield_now();
        }
        work(&scene);
    });
    scene
}

fn giant_beside_an_updater<P: Protocol>(work: Work) {
    beside_an_updater::<P>(|scene| {
        let attempts = scene.run_giant(work, 0);
        eprintln!("{}: {work:?} in {attempts} attempts, {} updates", support::chosen(), scene.updates());
        // Its end lets the others go on.
        let ended = scene.updates();
        while scene.updates() == ended {
            thread::yield_now();
        }
    });
}

#[test]
fn a_giant_that_updates_rows_gets_through_beside_an_updater_of_one_of_them() {
    for_each_protocol!(WORKERS, |P| { giant_beside_an_updater::<P>(Work::Update) });
}

#[test]
fn a_giant_that_scans_and_deletes_rows_gets_through_beside_an_updater_of_one_of_them() {
    for_each_protocol!(WORKERS, |P| { giant_beside_an_updater::<P>(Work::ScanAndDelete) });
}

#[test]
fn a_giant_that_inserts_rows_gets_through_beside_an_updater_of_one_that_it_has_read() {
    for_each_protocol!(WORKERS, |P| { giant_beside_an_updater::<P>(Work::Insert) });
}

#[test]
fn two_giants_get_through_beside_each_other_and_an_updater() {
    for_each_protocol!(WORKERS, |P| {
        let scene = beside_an_updater::<P>(|scene| {
            thread::scope(|scope| {
                let other = scope.spawn(|| scene.run_giant(Work::Update, ROWS / 2));
                scene.run_giant(Work::Update, 0);
                other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            });
        });
        let cold = scene.engine.transact(|tx| scene.rows.get(tx, &(HOT + 1)));
        assert_eq!(cold, Ok(Some(2)), "each giant has changed it once");
    });
}

#[test]
fn an_elder_that_falls_asleep_costs_others_one_wait() {
    const COMMITS: u64 = 1_000;
    let engine = Engine::<Occ>::with_policy(RetryPolicy { escalate_after: 1, ..RetryPolicy::default() });
    let (value, other) = (TBox::new(&engine, 0u64), TBox::new(&engine, 0u64));
    let (asleep, commits) = (AtomicBool::new(false), AtomicU64::new(0));
    let (fell_asleep, committed) = (Event::new(), Event::new());
    thread::scope(|scope| {
        scope.spawn(|| {
            fell_asleep.wait_until(|| asleep.load(Ordering::SeqCst));
            for _ in 0..COMMITS {
                engine.transact(|tx| other.update(tx, |other| *other += 1)).unwrap();
                commits.fetch_add(1, Ordering::SeqCst);
            }
            committed.notify_all();
        });
        let mut worker = engine.worker().unwrap();
        let slept = worker.transact(|tx| {
            value.update(tx, |value| *value += 1)?;
            if tx.attempt_number() == 0 {
                assert!(support::overtake(&engine, |tx| value.set(tx, 5)));
                return Ok(false);
            }
            asleep.store(true, Ordering::SeqCst);
            fell_asleep.notify_all();
            // If each of them waited for a tenth of a second, they would not be there yet.
            let all = || commits.load(Ordering::SeqCst) == COMMITS;
            Ok(committed.wait_timeout(Duration::from_secs(50), all))
        });
        assert_eq!(slept, Ok(true), "the others were held back again and again");
    });
}

#[test]
fn a_deadline_that_passes_while_an_elder_is_let_through_is_heeded() {
    // The deadline is the elder's, too, and its window is over some time: not if this machine does other things meanwhile.
    assert!((0..50).any(|_| waits_for_an_elder_until_its_deadline()));
}

fn waits_for_an_elder_until_its_deadline() -> bool {
    let deadline = Some(Duration::from_millis(20));
    let policy = RetryPolicy { escalate_after: 1, deadline, ..RetryPolicy::default() };
    let engine = Engine::<Occ>::with_policy(policy);
    let value = TBox::new(&engine, 0u64);
    let mut worker = engine.worker().unwrap();
    let met = worker.transact(|tx| {
        value.update(tx, |value| *value += 1)?;
        if tx.attempt_number() == 0 {
            assert!(support::overtake(&engine, |tx| value.set(tx, 5)));
            return Ok(None);
        }
        Ok(Some(support::elsewhere(|| engine.transact(|tx| value.set(tx, 7)))))
    });
    let Ok(Some(Err(Error::Timeout(conflict)))) = met else { return false };
    assert_eq!((conflict.reason, conflict.attempts), (Reason::GateClosed, 0));
    assert_eq!(engine.transact(|tx| value.get(tx)), Ok(6));
    true
}

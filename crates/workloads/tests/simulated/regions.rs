//! Hardware transactions on the machine that has them: they commit, under every workload and in explored schedules, and one that is
//! aborted at any of its steps leaves nothing behind.

use hotrow::{
    Abort, Any, Counter, Database, Direction, Engine, Isolation, Protocol, RetryPolicy, SecondaryIndex, TBox,
    TCounter, Table, Transaction, Value,
};
use hotrow_sim::{Config, Machine, Order, Simulation, SimulationReport};
use hotrow_workloads::explore::{Drawn, DrawnWorkload, Explored, explore};
use std::cell::RefCell;
use std::ops::ControlFlow;
use std::sync::Arc;

/// The schedule of a seed. Under `naive-htm` without readers on snapshots, beside which its transactions take the lock.
fn drawn(seed: u64, protocol: &str) -> Drawn {
    let mut drawn = Drawn::new(seed, 0);
    if protocol != "naive-htm" {
        return drawn;
    }
    match &mut drawn.workload {
        DrawnWorkload::Stress(options) => options.snapshot_share = 0.0,
        DrawnWorkload::Tpcc(options) => options.readers = Isolation::Serializable,
        DrawnWorkload::Ycsb(options) => options.readers = Isolation::Serializable,
        _ => {}
    }
    drawn
}

/// The first seeds whose workload is of each kind: stress, the array, YCSB, the 32 tables, TPC-C.
fn of_each_kind(count: usize, protocol: &str) -> [Vec<Drawn>; 5] {
    let mut kinds: [Vec<Drawn>; 5] = Default::default();
    for drawn in (0..).map(|seed| drawn(seed, protocol)) {
        let kind = match drawn.workload {
            DrawnWorkload::Stress(_) => 0,
            DrawnWorkload::Array(_) => 1,
            DrawnWorkload::Ycsb(_) => 2,
            DrawnWorkload::Tables32(_) => 3,
            _ => 4,
        };
        if kinds[kind].len() < count {
            kinds[kind].push(drawn);
        } else if kinds.iter().all(|drawn| drawn.len() == count) {
            break;
        }
    }
    kinds
}

fn every_kind_commits_in_regions<P: Protocol>(protocol: &str) {
    for kind in of_each_kind(12, protocol) {
        let mut sum = Explored::default();
        for drawn in &kind {
            match explore::<P>(drawn, protocol, 100, |_| ()) {
                Ok(explored) => sum.add(&explored),
                Err(violation) => panic!("{protocol}: {violation}\n{:#?}", violation.drawn),
            }
        }
        // Each has transactions on several cores, some of which meet, and in some schedules interrupts abort many.
        let workload = &kind[0].workload;
        assert!(sum.regions > 12 && sum.region_aborts > 0, "{protocol}, {workload:?}: {sum:?}");
    }
}

#[test]
fn commits_of_dbx_are_regions_under_every_workload() {
    every_kind_commits_in_regions::<Any>("dbx");
}

#[test]
fn commits_of_chop_htm_are_regions_under_every_workload() {
    every_kind_commits_in_regions::<Any>("chop-htm");
}

#[test]
fn transactions_of_naive_htm_are_regions_under_every_workload() {
    every_kind_commits_in_regions::<Any>("naive-htm");
}

fn explored<P: Protocol>(protocol: &str, seeds: u64) -> Explored {
    let mut sum = Explored::default();
    for seed in 0..seeds {
        match explore::<P>(&drawn(seed, protocol), protocol, 100, |_| ()) {
            Ok(explored) => sum.add(&explored),
            Err(violation) => panic!("{protocol}: {violation}\n{:#?}", violation.drawn),
        }
    }
    sum
}

#[test]
fn no_schedule_makes_regions_and_locks_miss_each_other() {
    let occ = ["dbx", "chop-htm"].map(|protocol| explored::<Any>(protocol, 1_500));
    for sum in occ.into_iter().chain([explored::<Any>("naive-htm", 1_500)]) {
        assert!(sum.regions > 5_000 && sum.region_aborts > 1_000 && sum.commits > 10_000, "{sum:?}");
    }
}

#[test]
fn no_schedule_makes_a_fallback_with_coarser_locks_break_a_promise_or_hang() {
    for protocol in ["dbx+partitions", "dbx+global", "chop-htm+partitions", "chop-htm+global"] {
        let sum = explored::<Any>(protocol, 400);
        assert!(sum.regions > 1_000 && sum.region_aborts > 200 && sum.commits > 2_500, "{protocol}: {sum:?}");
    }
}

/// A boxed row that shows how many of its copies are alive.
#[derive(Clone, Value)]
struct Row {
    number: u64,
    alive: Arc<()>,
}

struct Tables<P: Protocol> {
    numbers: Table<u64, u64, P>,
    rows: Table<u64, Row, P>,
    owners: SecondaryIndex<u64, u64, Row, P>,
}

/// The number of keys of each table before the transaction. They nearly fill a leaf of an ordered one.
const KEYS: u64 = 30;

/// The number of rows that the transaction inserts, so that the leaf is split.
const INSERTED: u64 = 3;

impl<P: Protocol> Tables<P> {
    fn new(db: &Database<P>, alive: &Arc<()>) -> Self {
        let numbers = db.table::<u64, u64>("numbers").hash(4).create().unwrap();
        let mut rows = db.table::<u64, Row>("rows");
        let owners = rows.secondary("owners", |_, row: &Row| row.number);
        let rows = rows.create().unwrap();
        for key in 0..KEYS {
            numbers.bulk_insert([(key, key)]).unwrap();
            rows.bulk_insert([(100 * key, Row { number: key, alive: alive.clone() })]).unwrap();
        }
        Self { numbers, rows, owners }
    }

    /// Changes, inserts and deletes rows of all kinds. `whole`: also in ways that only a region around the whole transaction admits.
    fn change(&self, tx: &mut Transaction<'_, P>, alive: &Arc<()>, whole: bool) -> Result<(), Abort> {
        self.numbers.update(tx, &1, |number| *number += 100)?;
        self.numbers.insert(tx, KEYS, KEYS)?;
        self.numbers.delete(tx, &2)?;
        assert_eq!(self.numbers.get(tx, &(KEYS + 1))?, None);
        self.rows.update(tx, &0, |row| row.number = 7)?;
        self.rows.delete(tx, &200)?;
        if whole {
            self.numbers.apply(tx, &3, |number| *number *= 2)?;
            self.rows.update(tx, &300, |row| row.number = 8)?;
            self.rows.delete(tx, &300)?;
        }
        for key in 1..=INSERTED {
            self.rows.insert(tx, key, Row { number: 1_000, alive: alive.clone() })?;
        }
        Ok(())
    }

    /// All that the tables hold, as `tx` sees it: numbers, rows, and the rows by their owners.
    fn content_of(&self, tx: &mut Transaction<'_, P>) -> Result<[Vec<(u64, u64)>; 3], Abort> {
        let (mut numbers, mut rows, mut by_owner) = (Vec::new(), Vec::new(), Vec::new());
        for key in 0..=KEYS + 1 {
            numbers.extend(self.numbers.get(tx, &key)?.map(|number| (key, number)));
        }
        self.rows.scan(tx, .., Direction::Ascending, |key, row| {
            rows.push((*key, row.number));
            ControlFlow::Continue(())
        })?;
        self.owners.scan(tx, .., Direction::Ascending, |owner, key, _| {
            by_owner.push((*owner, *key));
            ControlFlow::Continue(())
        })?;
        Ok([numbers, rows, by_owner])
    }

    fn content(&self, engine: &Engine<P>) -> [Vec<(u64, u64)>; 3] {
        engine.transact(|tx| self.content_of(tx)).expect("nobody else is there")
    }
}

/// A run of the transaction.
struct Run {
    outcome: SimulationReport<()>,
    /// What is in the tables afterwards.
    content: [Vec<(u64, u64)>; 3],
    /// The number of regions that the engine has counted.
    regions: u64,
    /// The number of versions that are kept afterwards.
    versions: usize,
}

/// Runs the transaction on one core, and aborts the region that makes step `abort_at` within regions. `beside_snapshot`: a snapshot is
/// open meanwhile, which sees nothing of it.
fn run<P: Protocol>(protocol: &str, beside_snapshot: bool, abort_at: Option<u64>, alive: &Arc<()>) -> Run {
    let engine = Engine::<P>::named(protocol, RetryPolicy::default()).expect("a variant");
    let db = Database::on(&engine);
    let tables = Tables::new(&db, alive);
    let before = engine.statistics().count(&Counter::REGION_COMMITS);
    let content_before = tables.content(&engine);
    let snapshot = beside_snapshot.then(|| engine.snapshot_strict().expect("not in a transaction"));
    let recording = engine.record_history(1 << 24).expect("a new engine");
    let mut config =
        Config::new(Machine::named("dbx-tc").expect("a machine that comes with the simulator"), 1);
    if let Some(transactions) = &mut config.machine.transactions {
        // Only the abort that is wanted.
        transactions.system_aborts_per_s = 0.0;
        transactions.fills_per_random_line = 0.0;
        transactions.fills_per_sequential_line = 0.0;
        transactions.resident_lines = 0;
    }
    // Room for all that the transaction writes, wherever the allocator puts it.
    (config.machine.caches.l1_kib, config.machine.caches.l1_ways) = (1024, 256);
    config.region_abort_at = abort_at;
    let worker = RefCell::new(engine.worker().expect("few workers"));
    let outcome = Simulation::new(config).expect("valid options").run(|_| {
        let mut worker = worker.borrow_mut();
        let whole = protocol == "naive-htm";
        worker.transact(|tx| tables.change(tx, alive, whole)).expect("nobody else is there");
        // In the simulation, because versions are found elsewhere outside of it.
        if let Some(snapshot) = &snapshot {
            let seen = worker.transact_on(snapshot, |tx| tables.content_of(tx)).expect("it only reads");
            assert_eq!(seen, content_before, "{protocol} aborted at {abort_at:?}: on the snapshot");
        }
    });
    drop(worker);
    let versions = engine.snapshots().versions;
    drop(snapshot);
    let regions = engine.statistics().count(&Counter::REGION_COMMITS) - before;
    let report = hotrow_check::check(&recording.finish()).expect("a history of one transaction");
    assert!(report.is(report.claimed()), "{report}");
    let content = tables.content(&engine);
    Run { outcome, content, regions, versions }
}

/// Frees what the epoch still keeps, until nothing of the rows is left.
fn assert_nothing_is_alive(alive: &Arc<()>, when: &str) {
    // Other tests of this process may be pinned for a while.
    for _ in 0..1_000_000 {
        if Arc::strong_count(alive) == 1 {
            return;
        }
        hotrow_core::epoch::pin().flush();
        hotrow::sync::thread::yield_now();
    }
    panic!("{when}: {} copies of rows are left", Arc::strong_count(alive) - 1);
}

fn aborts_at_each_step<P: Protocol>(protocol: &str, beside_snapshot: bool) {
    let alive = Arc::new(());
    let run = |abort_at| run::<P>(protocol, beside_snapshot, abort_at, &alive);
    let undisturbed = run(None);
    let regions = undisturbed.outcome.regions;
    assert_eq!((regions.aborts(), undisturbed.regions), (0, 1), "{protocol}: {regions:?}");
    assert_eq!(undisturbed.versions > 8, beside_snapshot, "{protocol}: {} versions", undisturbed.versions);
    assert_nothing_is_alive(&alive, protocol);
    let mut aborted = 0;
    for step in 0.. {
        let Run { outcome, content, regions, versions } = run(Some(step));
        let when = format!("{protocol}, aborted at step {step}");
        assert_eq!(content, undisturbed.content, "{when}");
        assert_eq!((outcome.regions.commits, regions), (1, 1), "{when}: the retry commits");
        assert_eq!(versions, undisturbed.versions, "{when}");
        assert_nothing_is_alive(&alive, &when);
        if outcome.regions.system == 0 {
            break;
        }
        aborted += 1;
    }
    // Each word that is written, and many that are read.
    assert!(aborted > 40, "{protocol}: {aborted} steps");
}

#[test]
fn a_commit_that_is_aborted_at_any_step_leaves_nothing() {
    for protocol in ["dbx", "chop-htm"] {
        aborts_at_each_step::<Any>(protocol, false);
    }
}

#[test]
fn a_stamped_commit_that_is_aborted_at_any_step_leaves_nothing() {
    for protocol in ["dbx", "chop-htm"] {
        aborts_at_each_step::<Any>(protocol, true);
    }
}

#[test]
fn a_transaction_of_naive_htm_that_is_aborted_at_any_step_leaves_nothing() {
    aborts_at_each_step::<Any>("naive-htm", false);
}

#[test]
fn without_hardware_transactions_both_do_what_their_fallback_does() {
    let alive = Arc::new(());
    for fallbacks in [fallbacks::<Any>("dbx", &alive), fallbacks::<Any>("naive-htm", &alive)] {
        assert_eq!(fallbacks, (0, 0));
    }
}

/// Runs the transaction on a thread, where regions may or may not be available, and counts regions and what was taken instead.
fn fallbacks<P: Protocol>(protocol: &str, alive: &Arc<()>) -> (u64, u64) {
    let engine = Engine::<P>::named(protocol, RetryPolicy::default()).expect("a variant");
    let db = Database::on(&engine);
    let tables = Tables::new(&db, alive);
    let before = engine.statistics();
    engine.transact(|tx| tables.change(tx, alive, true)).expect("nobody else is there");
    let statistics = engine.statistics();
    let count = |counter| statistics.count(counter) - before.count(counter);
    assert_eq!(statistics.commits - before.commits, 1);
    if hotrow::sync::region::is_available() {
        assert_eq!(count(&Counter::REGION_COMMITS) + count(&Counter::REGION_FALLBACKS), 1);
        return (0, 0);
    }
    (count(&Counter::REGION_COMMITS), count(&Counter::REGION_FALLBACKS))
}

/// Some commits take locks, because a change of a counter is not made in a region; others write the same box in regions, without
/// having read it.
#[test]
fn no_region_writes_over_the_lock_of_a_commit() {
    let (mut regions, mut fallbacks) = (0, 0);
    for seed in 0..300 {
        let engine = Engine::<Any>::named("dbx", RetryPolicy::default()).expect("a variant");
        let (number, counter) = (TBox::new(&engine, 0u64), TCounter::new(&engine, 0));
        let mut config =
            Config::new(Machine::named("dbx-tc").expect("a machine that comes with the simulator"), 3);
        (config.seed, config.caches) = (seed, false);
        config.order = Order::Random { probability: 0.3 };
        let workers: Vec<_> = (0..3).map(|_| RefCell::new(engine.worker().expect("few workers"))).collect();
        Simulation::new(config).expect("valid options").run(|core| {
            let mut worker = workers[core].borrow_mut();
            for _ in 0..4 {
                let done = worker.transact(|tx| {
                    if core == 0 {
                        counter.add(tx, 1)?;
                        number.update(tx, |number| *number += 1)
                    } else {
                        number.add(tx, 100)
                    }
                });
                done.expect("it is retried");
            }
        });
        let found = engine.transact(|tx| number.get(tx)).expect("nobody else is there");
        assert_eq!(found, 804, "schedule {seed}");
        regions += engine.statistics().count(&Counter::REGION_COMMITS);
        fallbacks += engine.statistics().count(&Counter::REGION_FALLBACKS);
    }
    assert!(regions >= 2_000 && fallbacks >= 1_200, "{regions} regions, {fallbacks} with locks");
}

/// A commit looks before its region which versions it must keep. Others begin snapshots, and keep versions, between that and the region.
#[test]
fn no_region_commits_by_a_plan_that_is_not_right_any_more() {
    let mut regions = 0;
    for seed in 0..400 {
        let engine = Engine::<Any>::named("dbx", RetryPolicy::default()).expect("a variant");
        let boxes = [TBox::new(&engine, 0u64), TBox::new(&engine, 0u64)];
        let mut config =
            Config::new(Machine::named("dbx-tc").expect("a machine that comes with the simulator"), 3);
        (config.seed, config.caches) = (seed, false);
        config.order = Order::Random { probability: 0.3 };
        let workers: Vec<_> = (0..3).map(|_| RefCell::new(engine.worker().expect("few workers"))).collect();
        Simulation::new(config).expect("valid options").run(|core| {
            let mut worker = workers[core].borrow_mut();
            for _ in 0..10 {
                if core == 0 {
                    let snapshot = engine.snapshot_strict().expect("not in a transaction");
                    let seen = worker.transact_on(&snapshot, |tx| Ok([boxes[0].get(tx)?, boxes[1].get(tx)?]));
                    let [one, other] = seen.expect("it only reads");
                    assert_eq!(one, other, "on a snapshot, schedule {seed}");
                } else {
                    // Without having read them, so that commits in between abort nobody.
                    let done = worker.transact(|tx| boxes.iter().try_for_each(|number| number.add(tx, 1)));
                    done.expect("it is retried");
                }
            }
        });
        regions += engine.statistics().count(&Counter::REGION_COMMITS);
    }
    assert!(regions >= 6_000, "{regions} regions");
}

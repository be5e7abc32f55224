//! Losses of power beneath durable tables, on virtual cores: what is recovered continues the history.
//!
//! Each transaction has a number, which it writes into the rows that it changes and enters in a journal. So what was recovered tells which
//! transactions it has. They must be a part of the history that can stand alone:
//!
//! - with a transaction there are those whose values it has read or overwritten, and all that it has written;
//! - every transaction is there that was acknowledged before the loss; and those that one which only read has read from, if that one was.
//!
//! The history itself is serializable, as the checker finds. Of the edges between its transactions those into the part come from within the part,
//! but for anti-dependencies on transactions of which nothing is left. So the part alone is serializable, too, and so is whoever goes on
//! after the recovery.

use hotrow::durable::storage::{Fault, Faulty};
use hotrow::durable::{DurableBuilder, DurableDatabase, LogOptions, Mode};
use hotrow::protocols::{Visitor, for_each_protocol};
use hotrow::sync::random::Random;
use hotrow::sync::{Mutex, instrument, lock};
use hotrow::{Abort, Database, Direction, Occ, Protocol, Table, Transaction, Worker};
use hotrow_sim::{Config, Machine, Order, Simulation};
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

/// One core runs the logger, one loses power, the others run transactions.
const CORES: usize = 5;
const TRANSACTIONS: u64 = 8;
const KEYS: u64 = 6;

/// The rows that are changed: a transaction's number in each. Those with odd keys are in a table with a hash index.
struct Tables<P: Protocol> {
    even: Table<u64, u64, P>,
    odd: Table<u64, u64, P>,
    journal: Table<u64, u64, P>,
}

/// The reads and writes of a transaction that has committed.
#[derive(Debug, Default, Clone)]
struct Done {
    number: u64,
    /// Keys, with the transactions that had written what it has read.
    reads: Vec<(u64, u64)>,
    writes: Vec<u64>,
}

/// Storage after a loss of power, and the numbers of transactions that had been acknowledged.
struct Loss {
    storage: Faulty,
    acknowledged: usize,
}

#[derive(Default)]
struct Observed {
    /// Those that have ended, in the order in which they were acknowledged.
    done: instrument::Mutex<Vec<Done>>,
    losses: RefCell<Vec<Loss>>,
}

impl<P: Protocol> Tables<P> {
    fn open(database: &Database<P>) -> Self {
        Self {
            even: database.table("even").create().unwrap(),
            odd: database.table("odd").hash(4).create().unwrap(),
            journal: database.table("journal").create().unwrap(),
        }
    }

    fn of(&self, key: u64) -> &Table<u64, u64, P> {
        if key.is_multiple_of(2) { &self.even } else { &self.odd }
    }

    fn run(&self, tx: &mut Transaction<'_, P>, number: u64, random: &mut Random) -> Result<Done, Abort> {
        let mut done = Done { number, ..Done::default() };
        let only_reads = random.below(4) == 0;
        for _ in 0..1 + random.below(3) {
            let key = random.below(KEYS);
            let before = self.of(key).get(tx, &key)?;
            if before == Some(number) {
                continue;
            }
            done.reads.push((key, before.unwrap_or(0)));
            if !only_reads && random.below(3) != 0 {
                match before {
                    None => self.of(key).insert(tx, key, number)?,
                    Some(_) => self.of(key).update(tx, &key, |row| *row = number)?,
                }
                done.writes.push(key);
            }
        }
        if !done.writes.is_empty() {
            self.journal.insert(tx, number, done.writes.len() as u64)?;
        }
        Ok(done)
    }

    fn run_core(&self, worker: &mut Worker<P>, core: u64, seed: u64, observed: &Observed) {
        for number in 0..TRANSACTIONS {
            let number = 1 + core * TRANSACTIONS + number;
            let inputs = Random::stream(seed, number);
            // The same in each attempt.
            let ended = worker.transact(|tx| self.run(tx, number, &mut inputs.clone()));
            // A log that has failed refuses the rest.
            let Ok(done) = ended else { break };
            instrument::lock(&observed.done).push(done);
        }
    }
}

fn config(seed: u64) -> Config {
    let mut config = Config::new(Machine::named("drp").unwrap(), CORES);
    config.seed = seed;
    config.order = Order::by_seed(seed, 20_000);
    config.caches = false;
    config.steps_max = Some(4_000_000);
    config
}

fn open<P: Protocol>(name: &str, mode: Mode, storage: Arc<Faulty>) -> (Database<P>, hotrow::durable::Logger) {
    let options = LogOptions { mode, segment_bytes: 1_000, ..LogOptions::default() };
    let builder = Database::builder().typed::<P>().variant(name).log(options);
    builder.open_without_threads(storage).unwrap_or_else(|error| panic!("{error}"))
}

/// Runs one schedule and judges each loss of power in it. Returns what is wrong, if anything, and the greatest number of transactions
/// that some loss has left.
fn explore<P: Protocol>(name: &str, seed: u64, fault: Option<Fault>) -> (Option<String>, usize) {
    let storage = Arc::new(Faulty::new(seed));
    let mode = if seed.is_multiple_of(4) {
        Mode::Async { interval: Duration::from_micros(20) }
    } else {
        Mode::Group
    };
    let (database, logger) = open::<P>(name, mode, storage.clone());
    let tables = Tables::open(&database);
    let recording = database.record_history(1 << 22).expect("a new engine");
    if let Some(fault) = fault {
        (0..3).for_each(|number| storage.plan(storage.operations() + 4 + 3 * number + seed % 5, fault));
    }
    let (logger, observed) = (RefCell::new(Some(logger)), Observed::default());
    let working = Mutex::new(CORES - 2);
    let workers: Vec<_> =
        (2..CORES).map(|_| RefCell::new(Some(database.worker().expect("few workers")))).collect();
    let simulation = Simulation::new(config(seed)).unwrap();
    let report = simulation.try_run(|core| match core {
        0 => logger.borrow_mut().take().unwrap().run(),
        1 => {
            for number in 0..8 {
                hotrow::sync::thread::sleep(Duration::from_micros(5 + seed % 20));
                // First: what is acknowledged later may be lost.
                let acknowledged = instrument::lock(&observed.done).len();
                let storage = storage.power_loss(seed * 100 + number);
                observed.losses.borrow_mut().push(Loss { storage, acknowledged });
            }
        }
        _ => {
            let mut worker = workers[core - 2].take().expect("each core has its own");
            tables.run_core(&mut worker, core as u64, seed, &observed);
            drop(worker);
            let mut working = lock(&working);
            *working -= 1;
            if *working == 0 {
                let _ = database.close();
            }
        }
    });
    assert!(report.end.is_finished(), "{name}, seed {seed}: {}\n{}", report.end, report.trace);
    let history = recording.finish();
    let checked =
        hotrow_check::check(&history).unwrap_or_else(|error| panic!("{name}, seed {seed}: {error}"));
    assert!(checked.is(checked.claimed()), "{name}, seed {seed}: {checked}");
    let done = instrument::lock(&observed.done).clone();
    let is_promised = mode == Mode::Group;
    let mut most = 0;
    for loss in observed.losses.into_inner() {
        let acknowledged = if is_promised { &done[..loss.acknowledged] } else { &[] };
        match judge::<P>(name, loss.storage, &done, acknowledged) {
            Ok(left) => most = most.max(left),
            Err(wrong) => return (Some(format!("{name}, seed {seed}: {wrong}")), most),
        }
    }
    (None, most)
}

/// Recovers, and judges what is there. Returns the number of transactions that are.
fn judge<P: Protocol>(
    name: &str,
    storage: Faulty,
    done: &[Done],
    acknowledged: &[Done],
) -> Result<usize, String> {
    let builder = Database::builder().typed::<P>().variant(name);
    let database = builder.open_in(Arc::new(storage)).map_err(|error| error.to_string())?;
    let tables = Tables::open(&database);
    let (journal, rows) = database
        .transact(|tx| {
            let mut journal = HashMap::new();
            tables.journal.scan(tx, .., Direction::Ascending, |number, writes| {
                journal.insert(*number, *writes);
                ControlFlow::Continue(())
            })?;
            let rows = (0..KEYS).map(|key| tables.of(key).get(tx, &key)).collect::<Result<Vec<_>, _>>()?;
            Ok((journal, rows))
        })
        .map_err(|error| error.to_string())?;
    let there = |number: u64| number == 0 || journal.contains_key(&number);
    // Those that were not acknowledged to the end of the run are not in `done`; nobody has read from them, or it would not be there.
    let known: HashMap<u64, &Done> = done.iter().map(|done| (done.number, done)).collect();
    for (key, row) in rows.iter().enumerate() {
        let last = row.unwrap_or(0);
        if !there(last) {
            return Err(format!("row {key} is of transaction {last}, which has no entry in the journal"));
        }
        // From the last one back: each has overwritten what it has read.
        let (mut writers, mut at) = (HashSet::new(), last);
        while at != 0 && writers.insert(at) {
            let Some(writer) = known.get(&at) else { break };
            let read = writer.reads.iter().find(|(read, _)| *read == key as u64);
            at = read.map_or(0, |(_, before)| *before);
        }
        let lost = done.iter().find(|done| {
            there(done.number) && done.writes.contains(&(key as u64)) && !writers.contains(&done.number)
        });
        if let Some(lost) = lost.filter(|_| at == 0) {
            return Err(format!("the write of row {key} by transaction {} is lost", lost.number));
        }
    }
    for transaction in done {
        let is_there = there(transaction.number);
        let missing = transaction.reads.iter().find(|(_, before)| !there(*before));
        let is_acknowledged = acknowledged.iter().any(|other| other.number == transaction.number);
        if is_acknowledged && !transaction.writes.is_empty() && !is_there {
            return Err(format!("transaction {} was acknowledged and is lost", transaction.number));
        }
        if let Some((key, before)) = missing.filter(|_| is_there || is_acknowledged) {
            return Err(format!("{transaction:?} has read row {key} of transaction {before}, which is lost"));
        }
        if journal.get(&transaction.number).is_some_and(|writes| *writes != transaction.writes.len() as u64) {
            return Err(format!("transaction {} is there, but not as it was", transaction.number));
        }
    }
    Ok(journal.len())
}

/// The number of schedules; more if the environment says so.
fn schedules(few: u64) -> u64 {
    std::env::var("HOTROW_POWER_LOSS_SEEDS").map_or(few, |number| number.parse().expect("a number"))
}

struct Passes(u64);

impl Visitor for &Passes {
    type Output = usize;

    fn visit<P: Protocol>(self, name: &str) -> usize {
        let mut most = 0;
        for seed in 0..self.0 {
            let (wrong, left) = explore::<P>(name, seed, None);
            assert_eq!(wrong, None);
            most = most.max(left);
        }
        most
    }
}

/// More schedules: `HOTROW_POWER_LOSS_SEEDS=10000` before the command of the test.
#[test]
fn what_a_loss_of_power_leaves_of_tables_is_a_part_of_the_history_that_stands_alone() {
    for (name, most) in for_each_protocol(4, &Passes(schedules(12))) {
        assert!(most > 8, "{name}: no loss has left more than {most} transactions");
    }
}

#[test]
fn a_device_that_says_too_early_that_it_is_done_is_found() {
    let found = (0..40).filter(|seed| explore::<Occ>("occ", *seed, Some(Fault::Lost)).0.is_some()).count();
    assert!(found > 5, "{found} of 40");
}

//! Workers, logger and losses of power on virtual cores, in schedules that real threads rarely take.

use hotrow_log::storage::{Fault, Faulty};
use hotrow_log::{CatalogEntry, Epochs, GATHERING, Log, Mode, Options, Stamp, entry};
use hotrow_sim::{Config, Machine, Order, Simulation};
use hotrow_sync::atomic::{AtomicU64, Ordering};
use hotrow_sync::{Mutex, clock, instrument, lock, thread};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// One core runs the logger, one loses power, the others commit.
const CORES: usize = 5;
const COMMITS: u8 = 12;

/// An engine's epoch. Commits hold the mutex from their stamp to their append.
#[derive(Clone, Default)]
struct Clock(Arc<Mutex<Stamp>>);

impl Epochs for Clock {
    fn advance(&mut self) -> u64 {
        let mut stamp = lock(&self.0);
        stamp.epoch += 1;
        stamp.epoch
    }
}

/// Storage after a loss of power, and the epoch that was durable before.
struct Loss {
    storage: Faulty,
    durable: u64,
}

#[derive(Default)]
struct Observed {
    /// Stamp and key of each commit.
    commits: instrument::Mutex<Vec<(Stamp, [u8; 2])>>,
    losses: RefCell<Vec<Loss>>,
}

fn record(key: [u8; 2]) -> Vec<u8> {
    let mut record = Vec::new();
    let append = |bytes: &[u8], out: &mut Vec<u8>| {
        out.extend_from_slice(bytes);
        Ok::<(), ()>(())
    };
    for half in 0..2_u8 {
        let key = [key[0], key[1], half];
        entry::put(&mut record, 1, |out| append(&key, out), |out| append(&[half; 300], out)).unwrap();
    }
    record
}

fn commit_and_wait(core: usize, log: &Log, clock: &Clock, observed: &Observed) {
    let mut buffer = log.buffer();
    for number in 0..COMMITS {
        let key = [core as u8, number];
        if buffer.admit().is_err() {
            break;
        }
        let stamp = {
            let mut stamp = lock(&clock.0);
            stamp.order += 1;
            buffer.append(*stamp, &record(key));
            instrument::lock(&observed.commits).push((*stamp, key));
            *stamp
        };
        let waits = (core + usize::from(number)) % 3;
        if waits == 0 && log.wait_durable(stamp.epoch).is_ok() {
            assert!(log.durable_epoch() >= stamp.epoch);
        } else if waits == 1 && log.flush().is_err() {
            break;
        }
    }
}

fn config(seed: u64) -> Config {
    let mut config = Config::new(Machine::named("drp").unwrap(), CORES);
    config.seed = seed;
    config.order = Order::by_seed(seed, 20_000);
    config.caches = false;
    config.steps_max = Some(2_000_000);
    config
}

/// Runs one schedule and judges each loss of power in it. Returns the number of commits that some loss has left.
fn explore(seed: u64) -> usize {
    let storage = Arc::new(Faulty::new(seed));
    let interval = Duration::from_micros(20);
    let options = Options {
        mode: if seed.is_multiple_of(2) { Mode::Group } else { Mode::Async { interval } },
        segment_bytes: 4_000,
        buffer_bytes_max: if seed.is_multiple_of(5) { 500 } else { 1 << 20 },
        ..Options::default()
    };
    let clock = Clock(Arc::new(Mutex::new(Stamp { epoch: 1, order: 0 })));
    let opened = Log::open(storage.clone(), options).unwrap();
    let (log, logger) = opened.start_without_thread(Box::new(clock.clone())).unwrap();
    let (name, shape) = (String::from("rows"), Vec::new());
    log.put_catalog(CatalogEntry { structure: 1, name, shape }).unwrap();
    if seed % 4 == 3 {
        storage.plan(storage.operations() + 5 + seed % 37, Fault::Error(io::ErrorKind::Other));
    }
    let logger = RefCell::new(Some(logger));
    let observed = Observed::default();
    let working = AtomicU64::new(CORES as u64 - 2);
    let simulation = Simulation::new(config(seed)).unwrap();
    let outcome = simulation.try_run(|core| match core {
        0 => {
            let logger = logger.borrow_mut().take().unwrap();
            logger.run();
        }
        1 => {
            for number in 0..12 {
                let durable = log.durable_epoch();
                let storage = storage.power_loss(seed * 100 + number);
                observed.losses.borrow_mut().push(Loss { storage, durable });
                thread::sleep(Duration::from_micros(15));
            }
        }
        _ => {
            commit_and_wait(core, &log, &clock, &observed);
            if working.fetch_sub(1, Ordering::SeqCst) == 1 {
                let _ = log.close();
            }
        }
    });
    assert!(outcome.end.is_finished(), "seed {seed}: {}\n{}", outcome.end, outcome.trace);
    let durable = log.durable_epoch();
    if log.failure().is_none() {
        assert_eq!(
            instrument::lock(&observed.commits).len(),
            (CORES - 2) * usize::from(COMMITS),
            "seed {seed}"
        );
    }
    observed.losses.borrow_mut().push(Loss { storage: storage.power_loss(seed), durable });
    let commits = instrument::lock(&observed.commits);
    let mut most = 0;
    for loss in observed.losses.into_inner() {
        let mut opened = Log::open(Arc::new(loss.storage), Options::default()).unwrap();
        let rows = FoundRows::default();
        let last = opened.replay(1, &|_| (), &|row| rows.insert(row.key, row.value)).unwrap();
        let rows = rows.0.into_inner().unwrap();
        let mut expected = BTreeMap::new();
        for (stamp, key) in commits.iter() {
            if stamp.epoch <= last.epoch {
                (0..2).for_each(|half| drop(expected.insert(vec![key[0], key[1], half], vec![half; 300])));
            } else {
                assert!(stamp.epoch > loss.durable, "seed {seed}: {stamp:?} was durable and is lost");
            }
        }
        assert!(rows == expected, "seed {seed}: not the commits up to {last:?}");
        most = most.max(rows.len() / 2);
    }
    most
}

/// Rows that were found.
#[derive(Default)]
struct FoundRows(instrument::Mutex<BTreeMap<Vec<u8>, Vec<u8>>>);

impl FoundRows {
    fn insert(&self, key: &[u8], value: &[u8]) {
        instrument::lock(&self.0).insert(key.to_vec(), value.to_vec());
    }
}

/// More schedules: `HOTROW_POWER_LOSS_SEEDS=10000` before the command of the test.
#[test]
fn losses_of_power_in_explored_schedules_lose_nothing_that_was_durable() {
    let seeds = std::env::var("HOTROW_POWER_LOSS_SEEDS").map(|text| text.parse().expect("a number"));
    let mut most = 0;
    for seed in 0..seeds.unwrap_or(60) {
        most = most.max(explore(seed));
    }
    assert_eq!(most, (CORES - 2) * usize::from(COMMITS), "some schedule has made all commits durable");
}

/// One core runs the logger, the other commits: first without waiting, then waiting for each commit.
#[test]
fn records_are_gathered_for_a_while_unless_somebody_waits() {
    let clock = Clock(Arc::new(Mutex::new(Stamp { epoch: 1, order: 0 })));
    let opened = Log::open(Arc::new(Faulty::new(0)), Options::default()).unwrap();
    let (log, logger) = opened.start_without_thread(Box::new(clock.clone())).unwrap();
    log.put_catalog(CatalogEntry { structure: 1, name: "rows".into(), shape: Vec::new() }).unwrap();
    let logger = RefCell::new(Some(logger));
    let mut config = Config::new(Machine::named("drp").unwrap(), 2);
    config.seed = 1;
    let outcome = Simulation::new(config).unwrap().try_run(|core| {
        if core == 0 {
            logger.borrow_mut().take().unwrap().run();
            return;
        }
        let mut buffer = log.buffer();
        let mut commit = |number: u8| {
            buffer.admit().unwrap();
            let mut stamp = lock(&clock.0);
            stamp.order += 1;
            buffer.append(*stamp, &record([1, number]));
            stamp.epoch
        };
        let begun = clock::now();
        (0..200).for_each(|number| {
            commit(number);
            thread::sleep(GATHERING / 20);
        });
        let gathered = log.report().batches;
        let passed = clock::now().saturating_duration_since(begun);
        let most = clock::whole_nanoseconds(passed) / clock::whole_nanoseconds(GATHERING);
        assert!(gathered <= most + 1 && gathered >= 5, "{gathered} batches, {most}");
        let begun = clock::now();
        (0..10).for_each(|number| log.wait_durable(commit(number)).unwrap());
        assert!(clock::now().saturating_duration_since(begun) < GATHERING, "each wait is shorter");
        assert!(log.report().batches >= gathered + 10);
        log.close().unwrap();
    });
    assert!(outcome.end.is_finished(), "{}\n{}", outcome.end, outcome.trace);
}

//! Crashes at random moments, against an oracle.
//!
//! A run is a random program of commits, batches, checkpoints, catalog entries and openings, on storage with random
//! faults, that ends now and then by a loss of power or of the process, and goes on with what is left. After each crash
//! what recovery finds is compared with what was acknowledged: nothing acknowledged may be lost, and each batch must be
//! there whole or not at all.
//!
//! Ten thousand seeds:
//!
//! ```text
//! HOTROW_POWER_LOSS_SEEDS=10000 cargo test --release -p hotrow-log --test log power_loss
//! ```
//!
//! One seed again: `HOTROW_POWER_LOSS_SEED=N` in front of the same command.

use crate::engine::{self, Clock, Contents, delete, put, put_part};
use hotrow_log::storage::{Fault, Faults, Faulty};
use hotrow_log::{Buffer, CatalogEntry, Log, Logger, Mode, Options, Stamp, entry};
use std::io;
use std::ops::Range;
use std::sync::Arc;

/// The seeds to be run.
pub(crate) fn seeds(usual: u64) -> Range<u64> {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect(name));
    match number("HOTROW_POWER_LOSS_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("HOTROW_POWER_LOSS_SEEDS").unwrap_or(usual),
    }
}

/// A commit, as the engine knows it.
struct Commit {
    stamp: Stamp,
    record: Vec<u8>,
}

/// The state that commits below an epoch leave.
fn state(commits: &[Commit], epoch: u64) -> Contents {
    let mut contents = Contents::new();
    commits
        .iter()
        .filter(|commit| commit.stamp.epoch < epoch)
        .for_each(|commit| engine::apply(&mut contents, &commit.record));
    contents
}

/// The rows of a state, as a checkpoint has them: parts are in the value of the whole.
fn rows(contents: &Contents) -> Vec<u8> {
    let mut rows = Vec::new();
    for ((structure, key), (value, overlays)) in contents {
        put(&mut rows, *structure, key, &merged(value, overlays.iter()));
    }
    rows
}

/// In these tests a value is the commits that wrote its three parts, two bytes each.
fn merged<'a>(value: &[u8], overlays: impl Iterator<Item = (&'a u32, &'a Vec<u8>)>) -> Vec<u8> {
    let mut value = value.to_vec();
    for (&part, newer) in overlays {
        let at = part as usize * 2;
        value[at..at + 2].copy_from_slice(newer);
    }
    value
}

/// A state with all parts in their rows, for comparisons.
fn flat(contents: &Contents) -> Contents {
    let flat = contents
        .iter()
        .map(|(id, (value, overlays))| (id.clone(), (merged(value, overlays.iter()), Default::default())));
    flat.collect()
}

struct Running {
    log: Log,
    logger: Logger,
    clock: Clock,
    buffers: Vec<Buffer>,
}

struct Run {
    seed: u64,
    random: fastrand::Rng,
    storage: Arc<Faulty>,
    options: Options,
    /// Commits in the order of their stamps, and the state that all of them leave.
    commits: Vec<Commit>,
    contents: Contents,
    /// All commits below it were acknowledged.
    acknowledged: u64,
    /// Catalog entries that were acknowledged, and one that may be there.
    catalog: Vec<CatalogEntry>,
    catalog_pending: Option<CatalogEntry>,
}

impl Run {
    fn new(seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let options = Options {
            mode: Mode::Group,
            segment_bytes: [1, 3_000, 20_000, u64::MAX][random.usize(..4)],
            ..Options::default()
        };
        Self {
            seed,
            storage: Arc::new(Faulty::new(seed)),
            random,
            options,
            commits: Vec::new(),
            contents: Contents::new(),
            acknowledged: 1,
            catalog: Vec::new(),
            catalog_pending: None,
        }
    }

    /// Opens the log and compares what is there with what must be.
    fn recover(&mut self) -> Option<Running> {
        let mut opened = match Log::open(self.storage.clone(), self.options.clone()) {
            Ok(opened) => opened,
            Err(error) => panic!("seed {}: {error}", self.seed),
        };
        let catalog = opened.catalog().to_vec();
        let with_pending =
            self.catalog.iter().cloned().chain(self.catalog_pending.clone()).collect::<Vec<_>>();
        assert!(catalog == self.catalog || catalog == with_pending, "seed {}: {catalog:?}", self.seed);
        let (contents, last) = match engine::replay(&mut opened, 1) {
            Ok(found) => found,
            Err(error) => panic!("seed {}: {error}", self.seed),
        };
        let found_all_below = last.epoch + 1;
        // Epochs without commits leave no trace.
        let lost = self
            .commits
            .iter()
            .find(|commit| (found_all_below..self.acknowledged).contains(&commit.stamp.epoch));
        assert!(lost.is_none(), "seed {}: lost {:?}", self.seed, lost.map(|commit| commit.stamp));
        let expected = flat(&state(&self.commits, found_all_below));
        assert_eq!(flat(&contents), expected, "seed {}: commits below {found_all_below}", self.seed);
        self.commits.retain(|commit| commit.stamp.epoch < found_all_below);
        self.contents = expected;
        let clock = Clock::new(last.epoch + 1 + self.random.u64(..3));
        self.arm();
        let (log, logger) = opened.start_without_thread(Box::new(clock.clone())).ok()?;
        let is_new = catalog.is_empty();
        // Only a log that has started relies on what it has found.
        self.acknowledged = found_all_below;
        self.catalog = catalog;
        self.catalog_pending = None;
        let buffers = (0..3).map(|_| log.buffer()).collect();
        // Records name only structures that are in the catalog.
        (!is_new || self.enter_structure(&log)).then_some(Running { log, logger, clock, buffers })
    }

    /// Enters a structure in the catalog. Returns false if that fails.
    fn enter_structure(&mut self, log: &Log) -> bool {
        let entry = engine::table(self.catalog.len() as u32);
        self.catalog_pending = Some(entry.clone());
        let is_entered = log.put_catalog(entry.clone()).is_ok();
        if is_entered {
            self.catalog.push(entry);
            self.catalog_pending = None;
        }
        is_entered
    }

    /// Plans the faults of the next part of the run.
    fn arm(&mut self) {
        let now = self.storage.operations();
        if self.random.u8(..4) > 0 {
            self.storage.plan(now + self.random.u64(1..150), Fault::Broken);
        }
        let mut faults = Faults::default();
        if self.random.bool() {
            faults.short_write = 0.3;
        }
        if self.random.u8(..4) == 0 {
            faults.failed_write = 0.02;
            faults.failed_sync = 0.02;
            faults.failed_name = 0.02;
        }
        self.storage.set_faults(faults);
        if self.random.u8(..8) == 0 {
            let used: usize = self.storage.files().values().map(Vec::len).sum();
            self.storage.set_capacity(Some(used as u64 + self.random.u64(..20_000)));
        }
        if self.random.u8(..8) == 0 {
            let kind = [io::ErrorKind::Interrupted, io::ErrorKind::Other][self.random.usize(..2)];
            self.storage.plan(now + self.random.u64(1..100), Fault::Error(kind));
        }
    }

    fn commit(&mut self, running: &mut Running) {
        let buffer = &mut running.buffers[self.random.usize(..3)];
        if buffer.admit().is_err() {
            return;
        }
        let (stamp, guard) = running.clock.stamp();
        let mut record = Vec::new();
        let mark = (stamp.order as u16).to_le_bytes();
        for _ in 0..self.random.usize(1..6) {
            let (structure, key) =
                (self.random.u32(..self.catalog.len().min(3) as u32), [self.random.u8(..16)]);
            let exists = self.contents.contains_key(&(structure, key.to_vec()));
            let start = record.len();
            match self.random.u8(..4) {
                0 => delete(&mut record, structure, &key),
                1 | 2 if exists => put_part(&mut record, structure, self.random.u32(..3), &key, &mark),
                _ => put(&mut record, structure, &key, &mark.repeat(3 + self.random.usize(..300))),
            }
            engine::apply(&mut self.contents, &record[start..]);
        }
        buffer.append(stamp, &record);
        drop(guard);
        self.commits.push(Commit { stamp, record });
    }

    /// Returns false once the log can do nothing more.
    fn step(&mut self, running: &mut Running) -> bool {
        match self.random.u8(..20) {
            0..=11 => self.commit(running),
            12..=16 => {
                let goes_on = running.logger.step();
                self.acknowledged = self.acknowledged.max(running.log.durable_epoch() + 1);
                return goes_on;
            }
            17 => self.checkpoint(running),
            18 if !self.enter_structure(&running.log) => return false,
            _ if self.random.u8(..4) == 0 => return false,
            _ => {}
        }
        running.log.failure().is_none()
    }

    fn checkpoint(&mut self, running: &mut Running) {
        let epoch = running.clock.epoch() + self.random.u64(..2);
        if epoch > running.clock.epoch() {
            // A snapshot of all commits so far, most of which may not be in the log yet.
            hotrow_log::Epochs::advance(&mut running.clock);
        }
        let rows = rows(&state(&self.commits, epoch));
        let Ok(mut writer) = running.log.begin_checkpoint(epoch) else { return };
        let mut whole = true;
        let mut reader = entry::read(&rows);
        loop {
            let start = reader.offset();
            if reader.next().is_none() {
                break;
            }
            whole &= writer.put(&rows[start..reader.offset()]).is_ok();
            // Commits and batches go on meanwhile.
            match self.random.u8(..10) {
                0 => self.commit(running),
                1 => drop(running.logger.step()),
                _ => {}
            }
            self.acknowledged = self.acknowledged.max(running.log.durable_epoch() + 1);
        }
        if whole && self.random.u8(..8) > 0 && writer.finish().is_ok() {
            // It makes its commits durable, though nobody is told of that.
            self.acknowledged = self.acknowledged.max(epoch);
        }
    }

    fn run(&mut self) {
        for _ in 0..6 {
            if let Some(mut running) = self.recover() {
                let steps = self.random.usize(1..200);
                for _ in 0..steps {
                    if !self.step(&mut running) {
                        break;
                    }
                }
                if self.random.u8(..4) == 0 && running.log.failure().is_none() {
                    drop(running.log);
                    while running.logger.step() {}
                }
            }
            self.storage.repair();
            self.storage.set_capacity(None);
            if self.random.u8(..3) > 0 {
                self.storage = Arc::new(self.storage.power_loss(self.random.u64(..)));
            }
        }
        self.recover();
    }
}

#[test]
fn what_was_acknowledged_survives_every_crash_and_no_batch_is_half_there() {
    for seed in seeds(150) {
        Run::new(seed).run();
    }
}

/// A file that could not be written is followed by another one under its name. The name of the second one may be lost, and its renaming
/// may not (seed 8425).
#[test]
fn a_file_that_failed_never_takes_the_place_of_the_next_one() {
    let mut followed = 0;
    for (failing, breaking) in (1..24).flat_map(|failing| (1..8).map(move |breaking| (failing, breaking))) {
        for seed in 0..300 {
            let storage = Arc::new(Faulty::new(seed));
            let opened = Log::open(storage.clone(), Options::default()).unwrap();
            let (log, mut logger) = opened.start_without_thread(Box::new(Clock::new(1))).unwrap();
            log.put_catalog(engine::table(0)).unwrap();
            logger.step();
            storage.plan(storage.operations() + failing, Fault::Error(io::ErrorKind::Other));
            let checkpoint = log.begin_checkpoint(1).and_then(|writer| writer.finish());
            if checkpoint.is_ok() || log.failure().is_some() || !storage.files().contains_key("catalog.tmp") {
                continue;
            }
            followed += 1;
            storage.plan(storage.operations() + breaking, Fault::Broken);
            let _ = log.put_catalog(engine::table(1));
            let opened = Log::open(Arc::new(storage.power_loss(seed)), Options::default());
            let reason = opened.err().map(|error| error.to_string());
            assert_eq!(reason, None, "operation {failing} failed, {breaking} was the last one, seed {seed}");
        }
    }
    assert!(followed > 100, "a change of the catalog that failed is followed by another one");
}

//! Each operation on the files fails once, one after the other: nothing acknowledged is lost, and nothing is half there.

use crate::engine::{self, Clock, Contents, put, put_part};
use hotrow_log::storage::{Fault, Faulty};
use hotrow_log::{Log, Logger, OpenError, Options, Stamp, entry};
use std::error::Error;
use std::io;
use std::sync::Arc;

/// A run of several openings, and what is known of it.
struct Run {
    storage: Arc<Faulty>,
    commits: Vec<(Stamp, Vec<u8>)>,
    /// All commits below it were acknowledged.
    acknowledged: u64,
    /// Number of failures that somebody was told of.
    told: u32,
}

/// An error that ends an opening of the log, unless the test's own.
type Ended = Box<dyn Error>;

impl Run {
    /// The rows that all commits below an epoch leave, with parts in their rows.
    fn state(&self, epoch: u64) -> Contents {
        let mut contents = Contents::new();
        let known = self.commits.iter().filter(|(stamp, _)| stamp.epoch < epoch);
        known.for_each(|(_, record)| engine::apply(&mut contents, record));
        flat(contents)
    }

    /// Checks what an opening has found.
    fn check(&self, contents: Contents, last: Stamp, place: &str) {
        let found = last.epoch + 1;
        let is_lost = |stamp: &Stamp| (found..self.acknowledged).contains(&stamp.epoch);
        let lost = self.commits.iter().find(|(stamp, _)| is_lost(stamp));
        assert!(lost.is_none(), "{place}: {:?} was acknowledged and is lost", lost.map(|(stamp, _)| stamp));
        assert_eq!(flat(contents), self.state(found), "{place}: half a batch");
    }

    fn commit(&mut self, log: &Log, logger: &mut Logger, clock: &Clock, key: u8) -> Result<(), Ended> {
        let mut record = Vec::new();
        // Two rows in two structures, and a part of one that is there.
        put(&mut record, 0, &[key], &[key; 300]);
        put(&mut record, 1, &[key], &[key; 20]);
        put_part(&mut record, 1, 0, &[key], &[key; 2]);
        log.buffer().admit()?;
        let (stamp, guard) = clock.stamp();
        log.buffer().append(stamp, &record);
        drop(guard);
        self.commits.push((stamp, record));
        logger.step();
        self.acknowledged = self.acknowledged.max(log.durable_epoch() + 1);
        log.failure().map_or(Ok(()), |failure| Err(failure.into()))
    }

    fn checkpoint(&mut self, log: &Log, logger: &mut Logger, clock: &mut Clock) -> Result<(), Ended> {
        let epoch = hotrow_log::Epochs::advance(clock);
        let mut rows = Vec::new();
        for ((structure, key), (value, _)) in &self.state(epoch) {
            put(&mut rows, *structure, key, value);
        }
        let mut writer = log.begin_checkpoint(epoch)?;
        let mut reader = entry::read(&rows);
        while let Some(row) = {
            let start = reader.offset();
            reader.next().map(|_| &rows[start..reader.offset()])
        } {
            writer.put(row)?;
        }
        logger.step();
        writer.finish()?;
        self.acknowledged = self.acknowledged.max(epoch);
        Ok(())
    }

    fn opening(&mut self, round: u8, place: &str) -> Result<(), Ended> {
        let options = Options { segment_bytes: 2_000, ..Options::default() };
        let mut opened = Log::open(self.storage.clone(), options)?;
        let (contents, last) = engine::replay(&mut opened, 1)?;
        self.check(contents, last, place);
        self.commits.retain(|(stamp, _)| stamp.epoch <= last.epoch);
        self.acknowledged = self.acknowledged.min(last.epoch + 1);
        let mut clock = Clock::new(last.epoch + 1);
        let (log, mut logger) = opened.start_without_thread(Box::new(clock.clone()))?;
        for structure in 0..2 {
            log.put_catalog(engine::table(structure))?;
        }
        for key in 0..5 {
            self.commit(&log, &mut logger, &clock, round * 20 + key)?;
        }
        if round != 1 {
            // One that fails is told, and the log goes on or has failed.
            if let Err(error) = self.checkpoint(&log, &mut logger, &mut clock) {
                assert!(!error.to_string().is_empty());
                self.told += 1;
            }
        }
        for key in 5..8 {
            self.commit(&log, &mut logger, &clock, round * 20 + key)?;
        }
        if round != 2 {
            drop(log);
            while logger.step() {}
        }
        Ok(())
    }

    /// The losses of power at this moment.
    fn lose_power(&self, place: &str) {
        for seed in 0..4 {
            let left = Arc::new(self.storage.power_loss(seed));
            let (contents, last) = match engine::recover(left) {
                Ok(found) => found,
                Err(error) => panic!("{place}, loss {seed}: {error}"),
            };
            self.check(contents, last, &format!("{place}, loss {seed}"));
        }
    }
}

fn flat(contents: Contents) -> Contents {
    let flat = contents.into_iter().map(|(id, (mut value, overlays))| {
        for (_, newer) in overlays {
            value[..newer.len()].copy_from_slice(&newer);
        }
        (id, (value, Default::default()))
    });
    flat.collect()
}

/// Runs with the fault at an operation, and again without from there. Returns the number of failures that somebody was told of, and the
/// number of operations.
fn run(fault: Option<(u64, Fault)>) -> (u32, u64) {
    let place = format!("{fault:?}");
    let storage = Arc::new(Faulty::new(1));
    if let Some((operation, fault)) = fault {
        storage.plan(operation, fault);
    }
    let mut run = Run { storage: storage.clone(), commits: Vec::new(), acknowledged: 1, told: 0 };
    for round in 0..4 {
        if let Err(error) = run.opening(round, &place) {
            run.told += 1;
            let is_corrupt = matches!(error.downcast_ref(), Some(OpenError::Corrupt { .. }));
            assert!(!is_corrupt, "{place}: {error}");
            if matches!(fault, Some((_, Fault::Broken))) {
                // The process has gone, and the next one begins.
                storage.repair();
            }
        }
        run.lose_power(&place);
    }
    let (told, operations) = (run.told, storage.operations());
    storage.repair();
    run.opening(4, &place).unwrap();
    run.opening(5, &place).unwrap();
    run.lose_power(&place);
    (told, operations)
}

#[test]
fn each_operation_fails_once_and_nothing_acknowledged_is_lost() {
    let (told, operations) = run(None);
    assert!(told == 0 && operations > 200, "{told} failures in {operations} operations");
    for fault in [Fault::Error(io::ErrorKind::Other), Fault::Broken] {
        let mut told = 0;
        for operation in 1..=operations {
            told += u64::from(run(Some((operation, fault))).0 > 0);
        }
        // Reads are tried again, and what is not deleted now is so later.
        assert!(told > operations / 2, "{fault:?}: {told} of {operations} were told");
    }
    let kinds = [io::ErrorKind::StorageFull, io::ErrorKind::Interrupted];
    for fault in kinds.map(Fault::Error).into_iter().chain([Fault::Short]) {
        for operation in (1..=operations).step_by(7) {
            run(Some((operation, fault)));
        }
    }
}

//! Checkpoints, the space of the log, and backups.

use crate::engine::{self, Clock, Contents, put};
use hotrow_log::storage::{Fault, Faulty, Storage};
use hotrow_log::{BackupError, CheckpointError, Epochs, Failure, Log, Logger, Options, dump, verify};
use hotrow_sync::thread;
use std::io;
use std::sync::Arc;
use std::time::Duration;

pub(crate) struct Running {
    pub(crate) storage: Arc<Faulty>,
    pub(crate) log: Log,
    pub(crate) logger: Logger,
    clock: Clock,
    pub(crate) contents: Contents,
}

fn small() -> Options {
    Options { segment_bytes: 2_000, ..Options::default() }
}

pub(crate) fn started() -> Running {
    let storage = Arc::new(Faulty::new(0));
    let opened = Log::open(storage.clone(), small()).unwrap();
    let clock = Clock::new(1);
    let (log, logger) = opened.start_without_thread(Box::new(clock.clone())).unwrap();
    log.put_catalog(engine::table(1)).unwrap();
    Running { storage, log, logger, clock, contents: Contents::new() }
}

impl Running {
    pub(crate) fn commit(&mut self, key: u8, value: u8) {
        let mut record = Vec::new();
        put(&mut record, 1, &[key], &[value; 300]);
        let (stamp, guard) = self.clock.stamp();
        self.log.buffer().append(stamp, &record);
        drop(guard);
        engine::apply(&mut self.contents, &record);
        self.logger.step();
    }

    /// A checkpoint of all commits so far, with two commits while it is written.
    pub(crate) fn checkpoint(&mut self) -> Result<u64, CheckpointError> {
        let epoch = self.clock.advance();
        let snapshot = self.contents.clone();
        self.commit(0, 200);
        let mut writer = self.log.begin_checkpoint(epoch)?;
        for (number, ((structure, key), (value, _))) in snapshot.iter().enumerate() {
            let mut row = Vec::new();
            put(&mut row, *structure, key, value);
            writer.put(&row)?;
            if number == 1 {
                self.commit(1, 201);
            }
        }
        writer.finish()
    }
}

#[test]
fn a_checkpoint_replaces_the_segments_before_it() {
    let mut running = started();
    (0..20).for_each(|key| running.commit(key, key));
    let before = running.log.report();
    let bytes = running.checkpoint().unwrap();
    let after = running.log.report();
    assert!(before.segments > 5 && after.segments < 3, "{before:?} {after:?}");
    assert!(after.space_bytes < before.space_bytes);
    assert_eq!((after.checkpoint_bytes, before.checkpoint_bytes), (bytes, 0));
    assert!(after.bytes_since_checkpoint < before.bytes_since_checkpoint);
    // Bytes written after the snapshot count, also those before the checkpoint was begun.
    assert!(
        after.bytes_since_checkpoint >= after.bytes_written - before.bytes_written,
        "{after:?} {before:?}"
    );
    let names: Vec<String> = running.storage.files().into_keys().collect();
    // The catalog, the checkpoint, the segments, and two files that are used again.
    assert_eq!(names.len() as u64, 4 + after.segments, "{names:?}");
    (5..9).for_each(|key| running.commit(key, 100 + key));
    // Another one, of which a part lies in the log only.
    running.checkpoint().unwrap();
    running.commit(30, 30);
    let storage = Arc::new(running.storage.power_loss(3));
    assert_eq!(storage.files().keys().filter(|name| name.starts_with("checkpoint")).count(), 1);
    assert_eq!(engine::recover(storage).unwrap().0, running.contents);
}

#[test]
fn a_checkpoint_that_is_dropped_or_wrong_changes_nothing() {
    let mut running = started();
    (0..5).for_each(|key| running.commit(key, key));
    let epoch = running.clock.advance();
    let files = running.storage.files();
    let mut writer = running.log.begin_checkpoint(epoch).unwrap();
    assert!(matches!(running.log.begin_checkpoint(epoch), Err(CheckpointError::Busy)));
    assert!(matches!(writer.put(b"\xff\xff"), Err(CheckpointError::Malformed(_))));
    let mut row = Vec::new();
    engine::delete(&mut row, 1, b"k");
    assert!(matches!(writer.put(&row), Err(CheckpointError::Malformed(_))));
    drop(writer);
    assert!(running.storage.files() == files);
    running.log.begin_checkpoint(epoch).unwrap().finish().unwrap();
    let refused = running.log.begin_checkpoint(epoch);
    assert!(matches!(refused, Err(CheckpointError::TooOld { .. })));
}

#[test]
fn a_row_that_a_checkpoint_is_given_twice_counts_once() {
    let mut running = started();
    running.commit(1, 1);
    let epoch = running.clock.advance();
    let mut writer = running.log.begin_checkpoint(epoch).unwrap();
    for value in [7, 8] {
        let mut row = Vec::new();
        put(&mut row, 1, &[1], &[value]);
        writer.put(&row).unwrap();
    }
    writer.finish().unwrap();
    let contents = engine::recover(Arc::new(running.storage.power_loss(0))).unwrap().0;
    assert_eq!(contents, Contents::from([((1, vec![1]), (vec![8], Default::default()))]));
}

#[test]
fn a_crash_at_any_operation_of_a_checkpoint_loses_nothing() {
    let mut crashes = 0;
    for n in 1.. {
        let mut running = started();
        (0..8).for_each(|key| running.commit(key, key));
        running.checkpoint().unwrap();
        (3..12).for_each(|key| running.commit(key, 50 + key));
        let durable = running.contents.clone();
        running.storage.plan(running.storage.operations() + n, Fault::Broken);
        let finished = running.checkpoint().is_ok();
        // The commits made meanwhile may be there or not.
        let mut with_first = durable.clone();
        with_first.insert((1, vec![0]), (vec![200; 300], Default::default()));
        let possible = [durable, with_first, running.contents.clone()];
        drop(running.log);
        drop(running.logger);
        for seed in 0..12 {
            let left = engine::recover(Arc::new(running.storage.power_loss(seed))).unwrap().0;
            assert!(possible.contains(&left), "operation {n}, seed {seed}");
        }
        running.storage.repair();
        let (log, _, left) = engine::start(running.storage.clone(), small()).unwrap();
        assert!(possible.contains(&left), "operation {n}");
        log.close().unwrap();
        assert_eq!(engine::recover(Arc::new(running.storage.power_loss(n))).unwrap().0, left);
        if finished {
            break;
        }
        crashes += 1;
    }
    assert!(crashes > 15, "{crashes}");
}

#[test]
fn an_error_at_any_operation_of_a_checkpoint_leaves_a_log_that_goes_on_or_has_failed() {
    let (mut errors, mut failures) = (0, 0);
    for n in 1..60 {
        let mut running = started();
        (0..8).for_each(|key| running.commit(key, key));
        running.storage.plan(running.storage.operations() + n, Fault::Error(io::ErrorKind::Other));
        let first = running.checkpoint();
        if running.log.failure().is_some() {
            // The commits meanwhile met the fault.
            failures += 1;
            continue;
        }
        errors += u64::from(first.is_err());
        running.storage.repair();
        running.commit(40, 40);
        running.checkpoint().unwrap();
        running.commit(41, 41);
        assert!(running.log.failure().is_none());
        let left = engine::recover(Arc::new(running.storage.power_loss(n))).unwrap().0;
        assert_eq!(left, running.contents, "operation {n}");
        drop((running.log, running.logger));
        let (log, ..) = engine::start(running.storage.clone(), small()).unwrap();
        let files = running.storage.files();
        let checkpoints = files.keys().filter(|name| name.starts_with("checkpoint")).count();
        assert_eq!(checkpoints, 1, "operation {n}: {:?}", files.keys());
        drop(log);
    }
    assert!(errors > 5 && failures > 0, "{errors} errors, {failures} failures");
}

#[test]
fn a_log_without_space_holds_commits_back_until_a_checkpoint_makes_room() {
    let storage = Arc::new(Faulty::new(0));
    let options = Options { space_bytes_max: 10_000, space_wait: Duration::ZERO, ..small() };
    let mut opened = Log::open(storage.clone(), options).unwrap();
    engine::replay(&mut opened, 1).unwrap();
    let mut clock = Clock::new(1);
    let (log, mut logger) = opened.start_without_thread(Box::new(clock.clone())).unwrap();
    engine::enter_tables(&log);
    let mut buffer = log.buffer();
    let mut commits = 0;
    let failure = loop {
        if let Err(failure) = buffer.admit() {
            break failure;
        }
        let mut record = Vec::new();
        put(&mut record, 1, b"hot", &[7; 600]);
        let (stamp, guard) = clock.stamp();
        buffer.append(stamp, &record);
        drop(guard);
        logger.step();
        commits += 1;
    };
    assert!(matches!(failure, Failure::OutOfSpace { used, max: 10_000 } if used <= 10_000), "{failure}");
    assert!(commits > 5 && log.failure().is_none());
    let epoch = clock.advance();
    let mut writer = log.begin_checkpoint(epoch).unwrap();
    let waiter = thread::spawn(move || buffer.admit().map(|()| buffer));
    let mut row = Vec::new();
    put(&mut row, 1, b"hot", &[7; 600]);
    writer.put(&row).unwrap();
    // The logger begins the new segment.
    logger.step();
    writer.finish().unwrap();
    // It waited for the checkpoint, if it came before the end of it.
    waiter.join().unwrap().unwrap();
}

/// The rows of a backup of `log` to new storage, opened and started.
fn backed_up(log: &Log) -> Contents {
    let copy = Arc::new(Faulty::new(1));
    log.backup(&*copy).unwrap();
    assert!(verify(&*copy).is_ok());
    let (log, _, contents) = engine::start(copy.clone(), Options::default()).unwrap();
    log.close().unwrap();
    assert_eq!(engine::recover(Arc::new(copy.power_loss(0))).unwrap().0, contents);
    contents
}

#[test]
fn a_backup_has_all_that_was_appended_before() {
    let storage = Arc::new(Faulty::new(0));
    let (log, mut clock, _) = engine::start(storage, small()).unwrap();
    let mut contents = Contents::new();
    for key in 0..40 {
        let mut record = Vec::new();
        put(&mut record, 1, &[key], &[key; 300]);
        let (stamp, guard) = clock.stamp();
        log.buffer().append(stamp, &record);
        drop(guard);
        engine::apply(&mut contents, &record);
        if key == 20 {
            log.flush().unwrap();
            let mut writer = log.begin_checkpoint(clock.advance()).unwrap();
            for ((structure, key), (value, _)) in &contents {
                let mut row = Vec::new();
                put(&mut row, *structure, key, value);
                writer.put(&row).unwrap();
            }
            writer.finish().unwrap();
        }
        if key % 8 == 4 {
            assert_eq!(backed_up(&log), contents, "after {key}");
        }
    }
    let full = Faulty::new(2);
    full.create("something").unwrap();
    assert!(matches!(log.backup(&full), Err(BackupError::NotEmpty(_))));
}

#[test]
fn backups_under_load_are_prefixes_of_the_commits() {
    let storage = Arc::new(Faulty::new(0));
    let (log, clock, _) = engine::start(storage, small()).unwrap();
    thread::scope(|scope| {
        let writers: Vec<_> = (0..2_u8)
            .map(|worker| {
                let (log, clock) = (&log, &clock);
                scope.spawn(move || {
                    let mut buffer = log.buffer();
                    for number in 0..400_u32 {
                        let mut record = Vec::new();
                        // The same number in two rows: half a commit would show.
                        put(&mut record, 1, &[worker, 0], &number.to_le_bytes());
                        put(&mut record, 1, &[worker, 1], &number.to_le_bytes());
                        buffer.admit().unwrap();
                        let (stamp, guard) = clock.stamp();
                        buffer.append(stamp, &record);
                        drop(guard);
                        if number % 50 == 0 {
                            log.wait_durable(stamp.epoch).unwrap();
                        }
                    }
                })
            })
            .collect();
        let mut backups = 0;
        while backups < 3 || !writers.iter().all(|writer| writer.is_finished()) {
            let contents = backed_up(&log);
            for worker in 0..2 {
                let value = |row| contents.get(&(1, vec![worker, row]));
                assert_eq!(value(0), value(1));
            }
            backups += 1;
        }
    });
    let contents = backed_up(&log);
    assert!(contents.values().all(|(value, _)| *value == 399_u32.to_le_bytes()));
}

#[test]
fn a_backup_that_fails_cannot_be_opened_and_the_log_goes_on() {
    let mut running = started();
    (0..8).for_each(|key| running.commit(key, key));
    let mut failures = 0;
    for n in 1.. {
        let copy = Arc::new(Faulty::new(n));
        copy.plan(n, Fault::Broken);
        let result = running.log.backup(&*copy);
        copy.repair();
        if result.is_ok() {
            assert_eq!(engine::recover(copy).unwrap().0, running.contents);
            break;
        }
        failures += 1;
        let opened = engine::recover(copy).map(|(contents, _)| contents);
        let complete = opened.as_ref().is_ok_and(|contents| *contents == running.contents);
        let nothing = opened.as_ref().is_ok_and(|contents| contents.is_empty());
        assert!(opened.is_err() || complete || nothing, "operation {n}");
    }
    assert!(failures > 10);
    running.checkpoint().unwrap();
    assert_eq!(engine::recover(Arc::new(running.storage.power_loss(1))).unwrap().0, running.contents);
}

#[test]
fn a_log_is_verified_and_printed() {
    let mut running = started();
    (0..3).for_each(|key| running.commit(key, key));
    running.checkpoint().unwrap();
    running.commit(9, 9);
    drop((running.log, running.logger));
    let report = verify(&*running.storage).unwrap();
    assert_eq!((report.rows, report.structures), (4, 1));
    assert!(report.open.checkpoint_epoch.is_some() && !report.open.closed);
    let text = report.to_string();
    assert!(text.starts_with("4 rows of 1 structures") && text.ends_with("not closed"), "{text}");
    let mut out = Vec::new();
    dump(&*running.storage, &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    for expected in [
        "structure 1 \"table 1\" shape 010101\n",
        "checkpoint-0000000000000001: 3 rows, all commits before epoch",
        "1 records",
        "    commit ",
        "      structure 1: put 09 = 0909",
    ] {
        assert!(text.contains(expected), "{expected} is not in\n{text}");
    }
    // A damaged log is printed up to the damage.
    let last = running.storage.files().into_keys().rfind(|name| name.starts_with("log-")).unwrap();
    assert!(running.storage.corrupt(&last, 700, 1));
    let mut shorter = Vec::new();
    let _ = dump(&*running.storage, &mut shorter);
    assert!(shorter.len() < text.len());
}

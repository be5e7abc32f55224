//! Appended commits come back.

use crate::engine::{self, Contents, delete, put, put_part};
use hotrow_log::storage::{Directory, Faulty, Storage};
use hotrow_log::{Failure, Log, Mode, OpenError, Options};
use hotrow_sync::thread;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// A record of a few changes to a database with these contents.
fn random_record(random: &mut fastrand::Rng, contents: &Contents) -> Vec<u8> {
    let mut contents = contents.clone();
    let mut record = Vec::new();
    for _ in 0..random.usize(1..5) {
        let (structure, key) = (random.u32(0..3), vec![7; random.usize(0..40) * random.usize(0..10)]);
        let value = vec![random.u8(..); random.usize(0..400) * random.usize(0..400)];
        let mut change = Vec::new();
        match random.u8(..4) {
            0 => delete(&mut change, structure, &key),
            1 if contents.contains_key(&(structure, key.clone())) => {
                put_part(&mut change, structure, random.u32(0..300), &key, &value);
            }
            _ => put(&mut change, structure, &key, &value),
        }
        engine::apply(&mut contents, &change);
        record.extend_from_slice(&change);
    }
    record
}

fn commits_come_back(storage: Arc<dyn Storage>, options: &Options, seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut expected = Contents::new();
    for opening in 0..4 {
        let (log, clock, contents) = engine::start(Arc::clone(&storage), options.clone()).unwrap();
        assert_eq!(contents, expected, "opening {opening}");
        for structure in 1_000 * opening..=1_000 * opening + 1 {
            log.put_catalog(engine::table(structure)).unwrap();
        }
        let mut buffers = [log.buffer(), log.buffer()];
        for _ in 0..50 {
            let record = random_record(&mut random, &expected);
            let buffer = &mut buffers[random.usize(..2)];
            buffer.admit().unwrap();
            let (stamp, guard) = clock.stamp();
            buffer.append(stamp, &record);
            drop(guard);
            engine::apply(&mut expected, &record);
            if random.bool() {
                log.wait_durable(stamp.epoch).unwrap();
                assert!(log.durable_epoch() >= stamp.epoch);
            }
        }
        drop(buffers);
        if opening % 2 == 0 {
            log.close().unwrap();
            log.close().unwrap();
            assert!(matches!(log.buffer().admit(), Err(Failure::Closed)));
        } else {
            log.flush().unwrap();
        }
    }
    let mut opened = Log::open(storage, options.clone()).unwrap();
    assert!(opened.report().torn_tail.is_none());
    let structures = [0, 1, 2, 1_000, 1_001, 2_000, 2_001, 3_000, 3_001];
    assert_eq!(opened.catalog(), structures.map(engine::table));
    for threads in [1, 3] {
        assert_eq!(engine::replay(&mut opened, threads).unwrap().0, expected);
    }
}

#[test]
fn commits_come_back_from_memory_in_each_mode() {
    let interval = Duration::from_millis(2);
    for (seed, mode) in [Mode::Group, Mode::Async { interval }].into_iter().enumerate() {
        for segment_bytes in [1, 100_000, 1 << 30] {
            let options = Options { mode, segment_bytes, ..Options::default() };
            commits_come_back(Arc::new(Faulty::new(0)), &options, seed as u64);
        }
    }
}

#[test]
fn commits_come_back_from_a_directory() {
    let path = engine::directory("round-trip");
    let options = Options { segment_bytes: 200_000, ..Options::default() };
    commits_come_back(Arc::new(Directory::new(&path).unwrap()), &options, 9);
    std::fs::remove_dir_all(path).unwrap();
}

#[test]
fn a_commit_that_nobody_waits_for_becomes_durable_all_the_same() {
    for mode in [Mode::Group, Mode::Async { interval: Duration::from_millis(5) }] {
        let options = Options { mode, ..Options::default() };
        let (log, clock, _) = engine::start(Arc::new(Faulty::new(0)), options).unwrap();
        let mut buffer = log.buffer();
        for number in 0..20 {
            let (stamp, guard) = clock.stamp();
            buffer.append(stamp, &[]);
            drop(guard);
            let begun = hotrow_sync::clock::now();
            // Some follow at once, and some after the logger has gone to sleep.
            while number % 3 > 0 && log.durable_epoch() < stamp.epoch {
                thread::yield_now();
                assert!(begun.elapsed() < Duration::from_secs(60), "the logger sleeps");
            }
        }
    }
}

#[test]
fn a_directory_has_one_user_at_a_time() {
    let path = engine::directory("lock");
    std::fs::create_dir_all(&path).unwrap();
    let message = Directory::existing(&path).unwrap_err().to_string();
    assert!(message.ends_with("has no log of a database"), "{message}");
    assert_eq!(std::fs::read_dir(&path).unwrap().count(), 0, "a look leaves nothing behind");
    let first = Arc::new(Directory::new(&path).unwrap());
    assert_eq!(Directory::new(&path).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    let opened = Log::open(first.clone(), Options::default()).unwrap();
    let second = Log::open(first.clone(), Options::default());
    assert!(matches!(second, Err(OpenError::Locked(_))));
    drop(opened);
    drop(engine::start(first.clone(), Options::default()).unwrap());
    drop(first);
    drop(Directory::existing(&path).unwrap());
    std::fs::remove_dir_all(&path).unwrap();
    assert_eq!(Directory::existing(&path).unwrap_err().kind(), io::ErrorKind::NotFound);
}

#[test]
fn eight_workers_that_wait_for_each_commit_lose_none() {
    for mode in [Mode::Group, Mode::Async { interval: Duration::from_secs(3600) }] {
        let storage = Arc::new(Faulty::new(0));
        let options = Options { mode, segment_bytes: 8192, buffer_bytes_max: 200, ..Options::default() };
        let (log, clock, _) = engine::start(storage.clone(), options).unwrap();
        thread::scope(|scope| {
            for worker in 0..8_u8 {
                let (log, clock) = (&log, &clock);
                scope.spawn(move || {
                    let mut buffer = log.buffer();
                    for number in 0..50_u8 {
                        let mut record = Vec::new();
                        put(&mut record, 1, &[worker, number], &[number; 30]);
                        buffer.admit().unwrap();
                        let (stamp, guard) = clock.stamp();
                        buffer.append(stamp, &record);
                        drop(guard);
                        if number % 4 == worker % 4 {
                            log.wait_durable(stamp.epoch).unwrap();
                        }
                    }
                });
            }
        });
        log.flush().unwrap();
        assert!(log.report().batches <= 400);
        let (contents, _) = engine::recover(Arc::new(storage.power_loss(1))).unwrap();
        assert_eq!(contents.len(), 400);
    }
}

//! Kills of a process that commits to a log in a directory, and what the next process finds.
//!
//! The test runs itself as a child with two workers that commit, wait for durability and print what is durable, beside
//! checkpoints. At a random moment the child is killed (SIGKILL on Unix). All that it had printed must be there, and no commit
//! may be there in part or without the ones before it.
//!
//! ```text
//! HOTROW_KILLS=1000 cargo test --release -p hotrow-log --test kills
//! ```

use hotrow_log::storage::Directory;
use hotrow_log::{CatalogEntry, Epochs, Log, Mode, Options, Stamp, entry};
use hotrow_sync::{Mutex, lock, thread};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

const WORKERS: u8 = 2;
/// Tells the child its directory.
const DIRECTORY: &str = "HOTROW_KILLED_DIRECTORY";
const SEED: &str = "HOTROW_KILLED_SEED";

/// A child that does not outlive the test.
struct Child(std::process::Child);

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Ends the process when a worker ends, which it does by a panic.
struct EndOfChild;

impl Drop for EndOfChild {
    fn drop(&mut self) {
        std::process::exit(1);
    }
}

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

/// A database: rows and the last stamp. Commits hold the mutex from their stamp to their append.
#[derive(Clone, Default)]
struct Database(Arc<Mutex<(Rows, Stamp)>>);

impl Epochs for Database {
    fn advance(&mut self) -> u64 {
        let mut database = lock(&self.0);
        database.1.epoch += 1;
        database.1.epoch
    }
}

fn put(record: &mut Vec<u8>, key: &[u8], value: &[u8]) {
    let append = |bytes: &[u8], out: &mut Vec<u8>| {
        out.extend_from_slice(bytes);
        Ok::<(), ()>(())
    };
    entry::put(record, 1, |out| append(key, out), |out| append(value, out)).unwrap();
}

/// Rows of the commit with a number: the worker's counter twice, and a row of its own.
fn changes(worker: u8, number: u32) -> [(Vec<u8>, Vec<u8>); 3] {
    let number = number.to_be_bytes();
    let own = [&[worker, 2][..], &number].concat();
    [(vec![worker, 0], number.to_vec()), (own, vec![worker; 100]), (vec![worker, 1], number.to_vec())]
}

fn recover(directory: &Path, options: Options) -> (Database, hotrow_log::Opened) {
    let storage = Arc::new(Directory::new(directory).unwrap());
    let mut opened = Log::open(storage, options).unwrap();
    let rows = Mutex::new(Rows::new());
    let last = opened
        .replay(2, &|_| (), &|row| {
            lock(&rows).insert(row.key.to_vec(), row.value.to_vec());
        })
        .unwrap();
    let rows = rows.into_inner().unwrap();
    let begin = Stamp { epoch: last.epoch + 1, order: 0 };
    (Database(Arc::new(Mutex::new((rows, begin)))), opened)
}

/// The last commit of each worker. Panics unless the rows are those of all commits up to these.
fn counters(database: &Database) -> Vec<u32> {
    let rows = lock(&database.0).0.clone();
    let mut expected = Rows::new();
    let mut counters = Vec::new();
    for worker in 0..WORKERS {
        let last = rows.get(&vec![worker, 0]);
        let last = last.map_or(0, |bytes| u32::from_be_bytes(bytes[..].try_into().unwrap()));
        (1..=last).for_each(|number| expected.extend(changes(worker, number)));
        counters.push(last);
    }
    assert!(rows == expected, "not all of the commits up to {counters:?}, or half of one more");
    counters
}

fn work(worker: u8, log: &Log, database: &Database) {
    let mut buffer = log.buffer();
    let mut record = Vec::new();
    let key = vec![worker, 0];
    for count in 0_u64.. {
        buffer.admit().unwrap();
        let (stamp, number) = {
            let mut database = lock(&database.0);
            let last = database.0.get(&key);
            let number = last.map_or(0, |bytes| u32::from_be_bytes(bytes[..].try_into().unwrap())) + 1;
            record.clear();
            for (key, value) in changes(worker, number) {
                put(&mut record, &key, &value);
                database.0.insert(key, value);
            }
            database.1.order += 1;
            buffer.append(database.1, &record);
            (database.1, number)
        };
        if count % 4 == u64::from(worker) {
            log.wait_durable(stamp.epoch).unwrap();
            // One write, so that it is not torn by the kill.
            if std::io::stdout().write_all(format!("durable {worker} {number}\n").as_bytes()).is_err() {
                // The parent has gone.
                std::process::exit(1);
            }
        }
    }
}

/// Work of the child, until it is killed.
fn commit_until_killed(directory: &Path, seed: u64) {
    let interval = Duration::from_millis(1);
    let mode = if seed.is_multiple_of(3) { Mode::Async { interval } } else { Mode::Group };
    let options = Options { mode, segment_bytes: 50_000, ..Options::default() };
    let (database, opened) = recover(directory, options);
    let log = opened.start(Box::new(database.clone())).unwrap();
    let shape = Vec::new();
    log.put_catalog(CatalogEntry { structure: 1, name: "rows".into(), shape }).unwrap();
    thread::scope(|scope| {
        for worker in 0..WORKERS {
            let (log, database) = (&log, &database);
            scope.spawn(move || {
                let _end = EndOfChild;
                work(worker, log, database);
            });
        }
        loop {
            // Exactly the commits of earlier epochs.
            let (epoch, rows) = {
                let mut database = lock(&database.0);
                database.1.epoch += 1;
                (database.1.epoch, database.0.clone())
            };
            let begun = log.report().bytes_written;
            let mut writer = log.begin_checkpoint(epoch).unwrap();
            for (key, value) in &rows {
                let mut row = Vec::new();
                put(&mut row, key, value);
                writer.put(&row).unwrap();
            }
            writer.finish().unwrap();
            while log.report().bytes_written < begun + 100_000 {
                thread::yield_now();
            }
        }
    });
}

#[test]
fn a_killed_process_loses_nothing_that_was_durable() {
    if let Ok(directory) = std::env::var(DIRECTORY) {
        let seed = std::env::var(SEED).unwrap().parse().unwrap();
        return commit_until_killed(Path::new(&directory), seed);
    }
    let kills = std::env::var("HOTROW_KILLS").map_or(8, |text| text.parse::<u64>().expect("a number"));
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("kills-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&directory);
    let mut before = vec![0; usize::from(WORKERS)];
    for seed in 0..kills {
        let mut random = fastrand::Rng::with_seed(seed);
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "a_killed_process_loses_nothing_that_was_durable", "--nocapture"])
            .env(DIRECTORY, &directory)
            .env(SEED, seed.to_string())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut child = Child(child);
        let mut lines = BufReader::new(child.0.stdout.take().unwrap()).lines();
        let mut acknowledged = before.clone();
        let mut left = random.usize(1..300);
        let mut note = |line: &str| {
            // The test harness prints lines of its own.
            let mut words = line.split(' ').skip_while(|word| !word.ends_with("durable")).skip(1);
            if let (Some(worker), Some(number)) = (words.next(), words.next()) {
                acknowledged[worker.parse::<usize>().unwrap()] = number.parse().unwrap();
                left = left.saturating_sub(1);
            }
            left > 0
        };
        while note(&lines.next().expect("the child commits until it is killed").unwrap()) {}
        child.0.kill().unwrap();
        child.0.wait().unwrap();
        // Lines that it had printed before.
        lines.for_each(|line| {
            note(&line.unwrap());
        });
        let (database, opened) = recover(&directory, Options::default());
        let found = counters(&database);
        let lost = found.iter().zip(&acknowledged).any(|(found, acknowledged)| found < acknowledged);
        assert!(!lost, "kill {seed}: {acknowledged:?} were durable, and {found:?} are there");
        drop(opened);
        before = found;
        if random.u8(..8) == 0 || before[0] > 20_000 {
            std::fs::remove_dir_all(&directory).unwrap();
            before = vec![0; usize::from(WORKERS)];
        }
    }
    let _ = std::fs::remove_dir_all(&directory);
}

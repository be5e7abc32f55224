//! Measures what a commit costs with the log.
//!
//! ```text
//! cargo run --release -p hotrow-log --example commits -- DIRECTORY [SECONDS] [WORKERS] [RECORD_BYTES] [THINK_NS]
//! ```
//!
//! So many workers (2) append records of so many bytes (200) for so many seconds (2), and compute for so many nanoseconds
//! (1000) between two: without a log, with a log for which nobody waits, and waiting for each commit. The directory must be
//! empty or new; its files are deleted at the end.

use hotrow_log::storage::Directory;
use hotrow_log::{CatalogEntry, Epochs, Log, Mode, Options, Stamp, entry};
use hotrow_sync::atomic::{AtomicBool, AtomicU64, Ordering};
use hotrow_sync::{Mutex, clock, lock, thread};
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

/// The engine's epoch. Each worker's commits hold a mutex of its own from their stamp to their append.
#[derive(Clone)]
struct Clock {
    epoch: Arc<AtomicU64>,
    workers: Arc<Vec<Mutex<u64>>>,
}

impl Epochs for Clock {
    fn advance(&mut self) -> u64 {
        // SeqCst: a worker that reads the old epoch holds its mutex, so this thread waits for it below.
        let epoch = self.epoch.fetch_add(1, Ordering::SeqCst) + 1;
        self.workers.iter().for_each(|worker| drop(lock(worker)));
        epoch
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Wait {
    NoLog,
    Never,
    Each,
}

fn compute(ns: u64) {
    let end = clock::nanoseconds() + ns;
    while clock::nanoseconds() < end {}
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let directory = arguments.first().ok_or("the directory is missing")?;
    let number =
        |index: usize, usual: u64| arguments.get(index).map_or(Ok(usual), |text| text.parse::<u64>());
    let (seconds, workers) = (number(1, 2)?, number(2, 2)? as usize);
    let (bytes, think_ns) = (number(3, 200)? as usize, number(4, 1000)?);
    let interval = Duration::from_millis(10);
    for (name, wait, mode) in [
        ("no log", Wait::NoLog, Mode::Group),
        ("async, nobody waits", Wait::Never, Mode::Async { interval }),
        ("group, nobody waits", Wait::Never, Mode::Group),
        ("group, each waits", Wait::Each, Mode::Group),
    ] {
        if std::fs::read_dir(directory).is_ok_and(|mut files| files.next().is_some()) {
            return Err(format!("{directory} is not empty").into());
        }
        let storage = Arc::new(Directory::new(directory)?);
        let mut record = Vec::new();
        let put = |length: usize| {
            move |out: &mut Vec<u8>| -> Result<(), ()> {
                out.resize(out.len() + length, 7);
                Ok(())
            }
        };
        entry::put(&mut record, 1, put(8), put(bytes)).map_err(|()| "cannot be")?;
        let clock = Clock {
            epoch: Arc::new(AtomicU64::new(1)),
            workers: Arc::new((0..workers).map(|_| Mutex::new(0)).collect()),
        };
        let opened = Log::open(storage, Options { mode, ..Options::default() })?;
        let log = opened.start(Box::new(clock.clone()))?;
        log.put_catalog(CatalogEntry { structure: 1, name: "rows".into(), shape: Vec::new() })?;
        let stop = AtomicBool::new(false);
        let begun = clock::now();
        thread::scope(|scope| {
            for worker in 0..workers {
                let (log, clock, stop, record) = (&log, &clock, &stop, &record);
                scope.spawn(move || {
                    let mut buffer = log.buffer();
                    // Relaxed: it ends the loop, nothing else.
                    while !stop.load(Ordering::Relaxed) && buffer.admit().is_ok() {
                        compute(think_ns);
                        let mut commits = lock(&clock.workers[worker]);
                        *commits += 1;
                        // SeqCst: pairs with `advance`.
                        let stamp = Stamp { epoch: clock.epoch.load(Ordering::SeqCst), order: *commits };
                        if wait != Wait::NoLog {
                            buffer.append(stamp, record);
                        }
                        drop(commits);
                        if wait == Wait::Each && log.wait_durable(stamp.epoch).is_err() {
                            break;
                        }
                    }
                });
            }
            thread::sleep(Duration::from_secs(seconds));
            // Relaxed: see above.
            stop.store(true, Ordering::Relaxed);
        });
        let seconds = begun.elapsed().as_secs_f64();
        let commits: u64 = clock.workers.iter().map(|worker| *lock(worker)).sum();
        let report = log.report();
        println!(
            "{name}: {:.0} commits/s, {:.0} batches/s, {:.0} MB/s",
            commits as f64 / seconds,
            report.batches as f64 / seconds,
            report.bytes_written as f64 / 1e6 / seconds
        );
        log.close()?;
        drop(log);
        std::fs::remove_dir_all(directory)?;
    }
    Ok(())
}

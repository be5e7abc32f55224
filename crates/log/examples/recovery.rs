//! Measures how fast a log is written and recovered.
//!
//! ```text
//! cargo run --release -p hotrow-log --example recovery -- DIRECTORY [MEGABYTES] [THREADS] [VALUE_BYTES] [ROWS]
//! ```
//!
//! Writes a log of so many megabytes (1000) into the directory, which must be empty or new: commits of four rows each, with
//! values of so many bytes (100), of so many rows (2,000,000) drawn at random. Then recovers it with 1 to THREADS (2)
//! threads, and prints megabytes a second. The files are deleted at the end.

use hotrow_log::storage::Directory;
use hotrow_log::{CatalogEntry, Epochs, Log, Options, Stamp, entry};
use hotrow_sync::atomic::{AtomicU64, Ordering};
use hotrow_sync::{clock, random::Random};
use std::error::Error;
use std::sync::Arc;

/// The engine's epoch. Commits and the logger's advances exclude each other, as there is one writer that waits.
struct Clock(Arc<AtomicU64>);

impl Epochs for Clock {
    fn advance(&mut self) -> u64 {
        // SeqCst: the writer loads it between its stamps; see there.
        self.0.fetch_add(1, Ordering::SeqCst) + 1
    }
}

/// Bytes of records between two batches.
const BATCH_BYTES: usize = 1 << 20;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let directory = arguments.first().ok_or("the directory is missing")?;
    let number =
        |index: usize, usual: u64| arguments.get(index).map_or(Ok(usual), |text| text.parse::<u64>());
    let (megabytes, threads) = (number(1, 1000)?, number(2, 2)?);
    let (value_bytes, rows) = (number(3, 100)?, number(4, 2_000_000)?);
    if std::fs::read_dir(directory).is_ok_and(|mut files| files.next().is_some()) {
        return Err(format!("{directory} is not empty").into());
    }
    let storage = Arc::new(Directory::new(directory)?);
    write(Arc::clone(&storage), megabytes, value_bytes, rows)?;
    for threads in 1..=threads as usize {
        let begun = clock::now();
        let mut opened = Log::open(Arc::clone(&storage) as _, Options::default())?;
        let found = AtomicU64::new(0);
        let bytes = opened.report().segment_bytes as f64 / 1e6;
        opened.replay(threads, &|_| (), &|row| {
            // Relaxed: a sum.
            found.fetch_add(u64::from(!row.value.is_empty()), Ordering::Relaxed);
        })?;
        let seconds = begun.elapsed().as_secs_f64();
        let found = found.into_inner();
        println!(
            "{threads} threads: {bytes:.0} MB, {found} rows in {seconds:.2} s: {:.0} MB/s",
            bytes / seconds
        );
    }
    drop(storage);
    std::fs::remove_dir_all(directory)?;
    Ok(())
}

fn write(storage: Arc<Directory>, megabytes: u64, value_bytes: u64, rows: u64) -> Result<(), Box<dyn Error>> {
    let epoch = Arc::new(AtomicU64::new(1));
    let (log, mut logger) =
        Log::open(storage, Options::default())?.start_without_thread(Box::new(Clock(Arc::clone(&epoch))))?;
    log.put_catalog(CatalogEntry { structure: 1, name: "rows".into(), shape: Vec::new() })?;
    let mut buffer = log.buffer();
    let mut random = Random::seeded(1);
    let (begun, mut order) = (clock::now(), 0);
    let mut record = Vec::new();
    let value = vec![7; value_bytes as usize];
    while log.report().space_bytes < megabytes * 1_000_000 {
        while buffer.bytes() < BATCH_BYTES {
            record.clear();
            for _ in 0..4 {
                let key = random.below(rows).to_be_bytes();
                let bytes = |bytes: &[u8], out: &mut Vec<u8>| -> Result<(), ()> {
                    out.extend_from_slice(bytes);
                    Ok(())
                };
                let written = entry::put(&mut record, 1, |out| bytes(&key, out), |out| bytes(&value, out));
                written.map_err(|()| "cannot be")?;
            }
            order += 1;
            // SeqCst: pairs with `advance`, which this thread calls itself, in `step`.
            buffer.append(Stamp { epoch: epoch.load(Ordering::SeqCst), order }, &record);
        }
        logger.step();
    }
    let seconds = begun.elapsed().as_secs_f64();
    let bytes = log.report().bytes_written as f64 / 1e6;
    println!("written: {bytes:.0} MB in {seconds:.2} s: {:.0} MB/s", bytes / seconds);
    drop(log);
    logger.run();
    Ok(())
}

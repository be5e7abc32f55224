//! A long scan on a snapshot beside two writers on ten hot rows: what it costs the writers, and how much memory its versions take.
//!
//! `cargo run --release -p hotrow --example snapshot_scan [ROWS [SECONDS [ROUNDS]]]`; ten million rows, ten seconds and
//! five rounds unless told otherwise.
//!
//! Each round has three parts, in turn: the writers alone, beside a thread that scans a table of an engine of its own (so that
//! it takes time and caches, but shares nothing with them), and beside a scan of their own table on a snapshot. Where there are more
//! threads than cores, the second part is the one to compare the third with.

use hotrow::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use hotrow::sync::clock::{self, Duration};
use hotrow::sync::thread;
use hotrow::{Database, Direction, Error, Table};
use std::ops::ControlFlow;

const WRITERS: u64 = 2;
const HOT_ROWS: u64 = 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Beside {
    Nothing,
    OtherTable,
    Snapshot,
}

/// The figures of one part.
struct Measured {
    /// Commits per second of all writers.
    commits_per_s: f64,
    rows_scanned: u64,
    /// Versions kept at most, and their bytes.
    versions_max: usize,
    bytes_max: usize,
}

fn main() -> Result<(), Error> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: u64| arguments.next().map_or(default, |word| word.parse().expect("a number"));
    let (rows_count, seconds, rounds) = (number(10_000_000), number(10), number(5));
    let (db, other_db) = (Database::open()?, Database::open()?);
    let table = |db: &Database| -> Result<Table<u64, u64>, Error> {
        let rows = db.table::<u64, u64>("rows").create()?;
        rows.bulk_insert((0..rows_count).map(|key| (key, 0))).unwrap();
        Ok(rows)
    };
    let (rows, other_rows) = (table(&db)?, table(&other_db)?);
    println!("{rows_count} rows, {WRITERS} writers on {HOT_ROWS} of them, {seconds} s for each part");
    println!("round  beside       commits/s  ratio to none  rows scanned  versions at most  bytes at most");
    for round in 1..=rounds {
        let mut alone = 0.0;
        for beside in [Beside::Nothing, Beside::OtherTable, Beside::Snapshot] {
            let measured =
                measure((&db, &rows), (&other_db, &other_rows), beside, Duration::from_secs(seconds))?;
            if beside == Beside::Nothing {
                alone = measured.commits_per_s;
            }
            println!(
                "{round:>5}  {:<11}  {:>9.0}  {:>13.3}  {:>12}  {:>16}  {:>13}",
                format!("{beside:?}"),
                measured.commits_per_s,
                measured.commits_per_s / alone,
                measured.rows_scanned,
                measured.versions_max,
                measured.bytes_max,
            );
        }
    }
    Ok(())
}

fn measure(
    (db, rows): (&Database, &Table<u64, u64>),
    (other_db, other_rows): (&Database, &Table<u64, u64>),
    beside: Beside,
    time: Duration,
) -> Result<Measured, Error> {
    let (stop, commits) = (AtomicBool::new(false), AtomicU64::new(0));
    let begin = clock::now();
    let mut measured = thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (stop, commits) = (&stop, &commits);
            scope.spawn(move || {
                let mut worker = db.worker().expect("few workers");
                let mut count = writer;
                while !stop.load(Ordering::Relaxed) {
                    let key = count % HOT_ROWS;
                    worker.transact(|tx| rows.update(tx, &key, |row| *row += 1)).expect("an update commits");
                    count += 1;
                }
                commits.fetch_add(count - writer, Ordering::Relaxed);
            });
        }
        let measured = match beside {
            Beside::Nothing => {
                thread::sleep(time);
                Ok(Measured { commits_per_s: 0.0, rows_scanned: 0, versions_max: 0, bytes_max: 0 })
            }
            Beside::OtherTable => scan(other_db, other_rows, time),
            Beside::Snapshot => scan(db, rows, time),
        };
        stop.store(true, Ordering::Relaxed);
        measured
    })?;
    measured.commits_per_s = commits.load(Ordering::Relaxed) as f64 / begin.elapsed().as_secs_f64();
    Ok(measured)
}

/// Scans a table on one snapshot, again and again until the time is over.
fn scan(db: &Database, rows: &Table<u64, u64>, time: Duration) -> Result<Measured, Error> {
    let begin = clock::now();
    let snapshot = db.snapshot_strict()?;
    let mut measured = Measured { commits_per_s: 0.0, rows_scanned: 0, versions_max: 0, bytes_max: 0 };
    let mut sums = Vec::new();
    while begin.elapsed() < time {
        let (mut sum, mut count) = (0, 0u64);
        snapshot.transact(|tx| {
            (sum, count) = (0, 0);
            rows.scan(tx, .., Direction::Ascending, |_, row| {
                sum += row;
                count += 1;
                let is_over = count.is_multiple_of(1 << 16) && begin.elapsed() >= time;
                if is_over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })
        })?;
        // The hot rows come first, so that each scan has their sum.
        sums.push(sum);
        measured.rows_scanned += count;
        let report = db.snapshots();
        measured.versions_max = measured.versions_max.max(report.versions);
        measured.bytes_max = measured.bytes_max.max(report.bytes);
    }
    assert!(sums.windows(2).all(|pair| pair[0] == pair[1]), "a snapshot changes for nobody: {sums:?}");
    Ok(measured)
}

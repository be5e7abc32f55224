//! Checkpoints that a database makes by itself, and the room that its log takes.

use crate::support::{choose, chosen, for_each_protocol};
use hotrow::durable::storage::{Faulty, Storage};
use hotrow::durable::{CheckpointError, DurableBuilder, DurableDatabase, LogOptions, LogReport, Mode};
use hotrow::sync::atomic::{AtomicBool, Ordering};
use hotrow::sync::{clock, thread};
use hotrow::{Database, Occ, Protocol, Stored, Value};
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// The bytes after which a checkpoint is made.
const AFTER: u64 = 20_000;

fn open<P: Protocol>(storage: Arc<dyn Storage>, options: LogOptions) -> Database<P> {
    let builder = Database::builder().typed::<P>().variant(chosen()).log(options);
    builder.checkpoint_after(AFTER).open_in(storage).unwrap_or_else(|error| panic!("{error}"))
}

/// Waits for what happens on another thread.
fn until(report: impl Fn() -> LogReport, condition: impl Fn(&LogReport) -> bool) {
    let begun = clock::now();
    while !condition(&report()) {
        assert!(begun.elapsed() < Duration::from_secs(120), "{:?}", report());
        thread::yield_now();
    }
}

fn fill<P: Protocol>(db: &Database<P>, rows: u64) {
    let table = db.table::<u64, String>("rows").create().unwrap();
    for key in 0..rows {
        db.transact(|tx| table.upsert(tx, key, "x".repeat(100))).unwrap();
    }
}

fn by_itself<P: Protocol>() {
    let storage = Arc::new(Faulty::new(1));
    let db: Database<P> = open(storage.clone(), LogOptions::default());
    let report = || db.log_report().unwrap();
    // By a thread that keeps its worker, the only one under some protocols. Then nothing happens any more.
    fill(&db, 200);
    assert!(report().bytes_written > 4 * AFTER);
    until(report, |report| report.checkpoints > 0 && report.space_bytes < 2 * AFTER);
    db.close().unwrap();
    drop(db);
    let db: Database<P> = open(storage, LogOptions::default());
    let table = db.table::<u64, String>("rows").create().unwrap();
    for key in 0..200 {
        assert!(db.transact(|tx| table.get(tx, &key)).unwrap().is_some());
    }
}

#[test]
fn a_checkpoint_is_made_by_itself_and_an_idle_log_shrinks_under_every_protocol() {
    for_each_protocol!(1, |P| {
        by_itself::<P>();
    });
}

/// Storage that creates no checkpoints for a while.
struct Refusing(Faulty, AtomicBool);

impl Storage for Refusing {
    fn lock(&self) -> io::Result<()> {
        self.0.lock()
    }
    fn unlock(&self) {
        self.0.unlock();
    }
    fn create(&self, name: &str) -> io::Result<()> {
        if name.starts_with("checkpoint") && self.1.load(Ordering::SeqCst) {
            return Err(io::Error::other("no checkpoints today"));
        }
        self.0.create(name)
    }
    fn write(&self, name: &str, offset: u64, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(name, offset, bytes)
    }
    fn sync(&self, name: &str) -> io::Result<()> {
        self.0.sync(name)
    }
    fn read(&self, name: &str, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        self.0.read(name, offset, into)
    }
    fn length(&self, name: &str) -> io::Result<u64> {
        self.0.length(name)
    }
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.0.rename(from, to)
    }
    fn delete(&self, name: &str) -> io::Result<()> {
        self.0.delete(name)
    }
    fn list(&self) -> io::Result<Vec<String>> {
        self.0.list()
    }
    fn sync_directory(&self) -> io::Result<()> {
        self.0.sync_directory()
    }
}

#[test]
fn a_checkpoint_that_fails_is_told_and_tried_again() {
    choose("occ");
    let storage = Arc::new(Refusing(Faulty::new(1), AtomicBool::new(true)));
    let db: Database<Occ> = open(storage.clone(), LogOptions::default());
    let report = || db.log_report().unwrap();
    fill(&db, 100);
    until(report, |report| report.checkpoints_failed > 1);
    let error = db.last_checkpoint_error().unwrap().to_string();
    assert!(error.contains("cannot create checkpoint") && error.contains("no checkpoints today"), "{error}");
    storage.1.store(false, Ordering::SeqCst);
    until(report, |report| report.checkpoints > 0 && db.last_checkpoint_error().is_none());
    assert!(report().space_bytes < AFTER);
}

/// A row whose clone panics for a while.
#[derive(Value, Stored, Debug)]
struct Fragile {
    text: String,
}

static BREAKS: AtomicBool = AtomicBool::new(false);

impl Clone for Fragile {
    fn clone(&self) -> Self {
        assert!(!BREAKS.load(Ordering::SeqCst), "a clone panics");
        Self { text: self.text.clone() }
    }
}

#[test]
fn a_panic_of_users_code_ends_a_checkpoint_and_not_their_thread() {
    choose("occ");
    let db: Database<Occ> = open(Arc::new(Faulty::new(1)), LogOptions::default());
    let report = || db.log_report().unwrap();
    let table = db.table::<u64, Fragile>("fragile").create().unwrap();
    let row = || Fragile { text: "x".repeat(100) };
    db.transact(|tx| table.insert(tx, 0, row())).unwrap();
    BREAKS.store(true, Ordering::SeqCst);
    fill(&db, 100);
    until(report, |_| matches!(db.last_checkpoint_error().as_deref(), Some(CheckpointError::Panicked)));
    BREAKS.store(false, Ordering::SeqCst);
    until(report, |report| report.checkpoints > 0 && db.last_checkpoint_error().is_none());
}

#[test]
fn bytes_until_the_next_checkpoint_count_across_restarts() {
    choose("occ");
    let storage = Arc::new(Faulty::new(1));
    for round in 0..30 {
        let db: Database<Occ> = open(storage.clone(), LogOptions::default());
        let table = db.table::<u64, String>("rows").create().unwrap();
        db.transact(|tx| table.insert(tx, round, "x".repeat(600))).unwrap();
        assert!(db.log_report().unwrap().bytes_written < AFTER / 4);
        db.close().unwrap();
    }
    // Nothing is written any more.
    let db: Database<Occ> = open(storage.clone(), LogOptions::default());
    until(|| db.log_report().unwrap(), |report| report.checkpoint_epoch.is_some());
    let files: Vec<String> = storage.files().into_keys().filter(|name| !name.ends_with(".tmp")).collect();
    assert!(files.len() <= 4, "{files:?}");
}

#[test]
fn the_limit_of_the_logs_space_is_one_in_every_mode() {
    choose("occ");
    let interval = Duration::from_millis(20);
    for mode in [Mode::Group, Mode::Async { interval }] {
        let storage = Arc::new(Faulty::new(1));
        let space_bytes_max = 150_000;
        let space_wait = Duration::from_secs(60);
        let options = LogOptions {
            mode,
            space_bytes_max,
            space_wait,
            segment_bytes: 16 << 10,
            ..LogOptions::default()
        };
        let db: Database<Occ> = open(storage.clone(), options);
        let table = db.table::<u64, String>("rows").create().unwrap();
        let must_end = AtomicBool::new(false);
        let most = thread::scope(|scope| {
            let watcher = scope.spawn(|| {
                let mut most = 0;
                while !must_end.load(Ordering::SeqCst) {
                    let files = storage.files().into_iter().filter(|(name, _)| name.starts_with("log-"));
                    most = files.map(|(_, bytes)| bytes.len() as u64).sum::<u64>().max(most);
                }
                most
            });
            let writers: Vec<_> = (0..2_u64)
                .map(|key| {
                    let (db, table) = (&db, &table);
                    scope.spawn(move || {
                        for _ in 0..400 {
                            db.transact(|tx| table.upsert(tx, key, "x".repeat(900))).unwrap();
                        }
                    })
                })
                .collect();
            writers.into_iter().for_each(|writer| writer.join().unwrap());
            must_end.store(true, Ordering::SeqCst);
            watcher.join().unwrap()
        });
        let report = db.log_report().unwrap();
        assert!(report.checkpoints > 2 && most > AFTER, "{mode:?}: {most}, {report:?}");
        assert!(most <= space_bytes_max, "{mode:?}: {most} bytes");
    }
}

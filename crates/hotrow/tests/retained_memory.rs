//! Memory that is retained: how much, who keeps it, and its limit. A test binary of its own, as the epoch is the process's;
//! its tests run one at a time.

mod support;

use hotrow::sync::atomic::{AtomicU64, Ordering};
use hotrow::sync::event::Event;
use hotrow::sync::{Mutex, MutexGuard, lock, thread};
use hotrow::{
    Database, Engine, EngineId, Error, HolderKind, MemoryHolder, MemoryLimit, Misuse, Occ, Profile, Protocol,
    RetryPolicy, SessionOptions, TBox, Value, WorkerId, retained_bytes,
};
use std::time::Duration;
use support::{
    Census, Counted, elsewhere, engine, engine_with, for_each_concurrent_protocol, for_each_protocol,
    on_threads,
};

const MIB: u64 = 1 << 20;

/// A row that owns a mebibyte.
#[derive(Clone, Value)]
struct Row {
    bytes: Vec<u8>,
    counted: Counted,
}

impl Row {
    fn new(census: &Census) -> Self {
        Self { bytes: vec![1; MIB as usize], counted: census.value(0) }
    }

    fn change(&mut self) {
        self.counted.number += 1;
        self.bytes[0] = self.counted.number as u8;
    }
}

fn alone() -> MutexGuard<'static, ()> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    lock(&ONE_AT_A_TIME)
}

/// An engine whose transactions wait for memory as long as for anything else: a moment.
fn limited<P: Protocol>(bytes_max: u64) -> Engine<P> {
    let deadline = Some(Duration::from_millis(5));
    let engine = engine_with::<P>(RetryPolicy { deadline, ..RetryPolicy::default() });
    engine.set_retained_bytes_max(Some(bytes_max));
    engine
}

fn is_transaction(holder: &MemoryHolder, engine: EngineId, id: WorkerId) -> bool {
    let is_it = matches!(holder.kind, HolderKind::Transaction { worker, .. } if worker == id);
    is_it && holder.engine == engine
}

/// Updates the row until that fails for want of memory, and returns how often it did not, and why it then did.
fn update_until_refused<P: Protocol>(engine: &Engine<P>, row: &TBox<Row, P>) -> (u64, MemoryLimit) {
    for updates in 0..200 {
        match engine.transact(|tx| row.update(tx, Row::change)) {
            Ok(()) => {}
            Err(error @ Error::MemoryLimit(_)) => {
                assert!(error.is_retryable(), "{error}");
                let Error::MemoryLimit(limit) = error else { unreachable!() };
                return (updates, *limit);
            }
            Err(error) => panic!("{error}"),
        }
    }
    panic!("{} bytes are retained, and nobody says a word", retained_bytes());
}

#[test]
fn rows_of_a_mebibyte_are_freed_soon_after_they_were_replaced() {
    let _alone = alone();
    for_each_protocol!(3, |P| {
        let engine = engine::<P>();
        let census = Census::default();
        let rows: [TBox<Row, P>; 2] = std::array::from_fn(|_| TBox::new(&engine, Row::new(&census)));
        let before = retained_bytes();
        // Threads take turns, so that none is pinned while another one collects.
        let (turn, event) = (AtomicU64::new(0), Event::new());
        on_threads(&engine, 3, |number, worker| {
            for round in 0..20 {
                let mine = 3 * round + number;
                event.wait_until(|| turn.load(Ordering::Acquire) == mine);
                worker.transact(|tx| rows[(mine % 2) as usize].update(tx, Row::change)).unwrap();
                let retained = retained_bytes().saturating_sub(before);
                let alive = census.alive();
                turn.store(mine + 1, Ordering::Release);
                event.notify_all();
                assert!(retained <= 4 * MIB, "{retained} bytes");
                assert!(alive <= 2 + 4, "{alive} rows");
            }
        });
    });
}

#[test]
fn a_transaction_that_is_held_open_is_reported_with_what_it_keeps() {
    let _alone = alone();
    for_each_concurrent_protocol!(2, |P| {
        let engine = engine::<P>();
        let census = Census::default();
        let (row, other) = (TBox::new(&engine, Row::new(&census)), TBox::new(&engine, 0u64));
        let mut worker = engine.worker().unwrap();
        let id = worker.id();
        let mut held = worker.begin();
        other.get(&mut held).unwrap();
        let first = engine.retained_memory();
        assert!(is_transaction(first.oldest().unwrap(), engine.id(), id), "{first:?}");
        assert_eq!(first.bytes_max, None);
        elsewhere(|| (0..20).for_each(|_| engine.transact(|tx| row.update(tx, Row::change)).unwrap()));
        // Another engine's report says it, too.
        let report = Engine::<Occ>::new().retained_memory();
        let oldest = report.oldest().unwrap();
        assert!(is_transaction(oldest, engine.id(), id), "{report:?}");
        let HolderKind::Transaction { attempt, protocol, .. } = &oldest.kind else { unreachable!() };
        assert_eq!((*attempt, &**protocol), (0, engine.protocol()));
        assert_eq!(oldest.thread, thread::name());
        assert!(oldest.kept_bytes >= 20 * MIB && report.bytes >= 20 * MIB, "{report:?}");
        assert!(census.alive() >= 21);
        held.commit().unwrap();
        // Nobody makes more garbage.
        assert!(engine.retained_memory().bytes < 4 * MIB);
        assert!(census.alive() < 1 + 4);
        assert_eq!(engine.retained_memory().holders, []);
    });
}

#[test]
fn a_program_that_rests_has_everything_freed_by_a_call() {
    let _alone = alone();
    for_each_concurrent_protocol!(2, |P| {
        let engine = engine::<P>();
        let census = Census::default();
        let rows: [TBox<Row, P>; 8] = std::array::from_fn(|_| TBox::new(&engine, Row::new(&census)));
        let change_all = || engine.transact(|tx| rows.iter().try_for_each(|row| row.update(tx, Row::change)));
        change_all().unwrap();
        // One that may be a little old: the next one is to find versions.
        let snapshot = engine.snapshot().unwrap();
        (0..3).for_each(|_| change_all().unwrap());
        engine.collect();
        assert!(census.alive() >= 16, "the snapshot still sees eight");
        drop(snapshot);
        let retained = engine.collect();
        assert_eq!(census.alive(), 8);
        assert!(retained < MIB && retained == retained_bytes(), "{retained}");
        assert_eq!(engine.snapshots().versions, 0);
        engine
            .transact(|tx| {
                rows[0].update(tx, Row::change)?;
                engine.collect();
                rows[0].read(tx, |row| assert_eq!(row.bytes.len() as u64, MIB))
            })
            .unwrap();
    });
}

#[test]
fn a_session_that_idles_is_reported_as_the_oldest_until_it_ends() {
    let _alone = alone();
    for_each_concurrent_protocol!(2, |P| {
        let engine = engine::<P>();
        let census = Census::default();
        let (row, other) = (TBox::new(&engine, Row::new(&census)), TBox::new(&engine, 0u64));
        let mut session = engine.begin(SessionOptions::named("a long talk")).unwrap();
        session.run(|tx| other.get(tx)).unwrap();
        // Seen first here.
        assert!(engine.retained_memory().oldest().is_some());
        (0..20).for_each(|_| engine.transact(|tx| row.update(tx, Row::change)).unwrap());
        let report = engine.retained_memory();
        let oldest = report.oldest().expect("it is open");
        let is_it =
            |kind: &HolderKind| matches!(kind, HolderKind::Session { name, .. } if name == "a long talk");
        assert!(is_it(&oldest.kind) && oldest.kept_bytes >= 19 * MIB, "{report:?}");
        session.canceller().cancel();
        while session.is_open() {
            thread::yield_now();
        }
        assert!(matches!(session.commit(), Err(Error::Cancelled(_))));
        assert!(engine.retained_memory().bytes < 4 * MIB);
        assert_eq!(engine.retained_memory().holders, []);
    });
}

#[test]
fn a_session_that_keeps_too_much_is_told_to_end() {
    let _alone = alone();
    for_each_concurrent_protocol!(2, |P| {
        let engine = limited::<P>(16 * MIB);
        let census = Census::default();
        let (row, other) = (TBox::new(&engine, Row::new(&census)), TBox::new(&engine, 0u64));
        let mut session = engine.begin(SessionOptions::named("a long talk")).unwrap();
        session.run(|tx| other.get(tx)).unwrap();
        // It is told while it idles, and goes by itself.
        let mut updates = 0;
        while session.is_open() {
            updates += u64::from(engine.transact(|tx| row.update(tx, Row::change)).is_ok());
            assert!(updates < 200);
        }
        assert!(updates >= 10, "{updates}");
        let told = session.run(|tx| other.get(tx));
        let Err(Error::MemoryLimit(limit)) = &told else { panic!("{told:?}") };
        let text = limit.oldest.as_ref().expect("itself").to_string();
        assert!(limit.was_told && text.starts_with("session a long talk"), "{text}");
        assert_eq!(session.commit(), told.map(drop));
        engine.transact(|tx| row.update(tx, Row::change)).unwrap();
    });
}

#[test]
fn with_a_limit_writers_are_told_who_keeps_the_memory_and_that_one_is_told_to_end() {
    let _alone = alone();
    for_each_concurrent_protocol!(2, |P| {
        let engine = limited::<P>(16 * MIB);
        let census = Census::default();
        let (row, other) = (TBox::new(&engine, Row::new(&census)), TBox::new(&engine, 0u64));
        for operates in [true, false] {
            let mut attempts = 0;
            let held = engine.transact(|tx| {
                attempts += 1;
                other.get(tx)?;
                let id = tx.worker();
                elsewhere(|| {
                    let (updates, limit) = update_until_refused(&engine, &row);
                    assert!((10..=20).contains(&updates), "{updates}");
                    assert!(!limit.was_told && limit.retained_bytes > limit.retained_bytes_max, "{limit}");
                    assert_eq!(limit.retained_bytes_max, 16 * MIB);
                    let oldest = limit.oldest.expect("it is open");
                    assert!(is_transaction(&oldest, engine.id(), id), "{oldest}");
                    assert!(oldest.kept_bytes >= 8 * MIB, "{oldest}");
                    let alive = census.alive();
                    for _ in 0..3 {
                        let (updates, _) = update_until_refused(&engine, &row);
                        assert_eq!(updates, 0);
                    }
                    assert_eq!(census.alive(), alive, "memory grows no more");
                    // Read-only transactions are not refused.
                    let mut worker =
                        engine.worker().map_err(|misuse| matches!(misuse, Misuse::TooManyWorkers { .. }));
                    if let Ok(worker) = &mut worker {
                        let read = worker.try_transact_as(Profile::READ_ONLY, |tx| other.get(tx));
                        assert_eq!(read, Ok(0));
                    }
                });
                if operates {
                    assert!(other.get(tx).is_err(), "told at its next operation");
                }
                Ok(())
            });
            assert_eq!(attempts, 1, "it is not tried again");
            let Err(error @ Error::MemoryLimit(_)) = held else { panic!("{held:?}") };
            assert!(!error.is_retryable(), "{error}");
            let Error::MemoryLimit(limit) = error else { unreachable!() };
            assert!(limit.was_told && limit.oldest.unwrap().kept_bytes >= 8 * MIB);
            // All goes on.
            for _ in 0..40 {
                elsewhere(|| engine.transact(|tx| row.update(tx, Row::change))).unwrap();
            }
            assert!(census.alive() <= 1 + 16 + 2);
        }
    });
}

#[test]
fn a_transaction_of_an_engine_without_a_limit_is_named_and_not_told_to_end() {
    let _alone = alone();
    for_each_protocol!(1, |P| {
        let (engine, unlimited) = (limited::<P>(8 * MIB), engine::<P>());
        let census = Census::default();
        let (row, other) = (TBox::new(&engine, Row::new(&census)), TBox::new(&unlimited, 0u64));
        let mut worker = unlimited.worker().unwrap();
        let id = worker.id();
        let mut held = worker.begin();
        elsewhere(|| {
            let (_, limit) = update_until_refused(&engine, &row);
            assert!(is_transaction(&limit.oldest.unwrap(), unlimited.id(), id));
        });
        other.update(&mut held, |number| *number += 1).unwrap();
        held.commit().unwrap();
        elsewhere(|| engine.transact(|tx| row.update(tx, Row::change))).unwrap();
        // Without the limit, a transaction that is held stops nobody.
        let held = worker.begin();
        engine.set_retained_bytes_max(None);
        elsewhere(|| (0..20).for_each(|_| engine.transact(|tx| row.update(tx, Row::change)).unwrap()));
        held.commit().unwrap();
    });
}

#[test]
fn threads_that_write_at_the_same_time_keep_to_the_limit() {
    let _alone = alone();
    for_each_protocol!(3, |P| {
        let engine = limited::<P>(16 * MIB);
        let census = Census::default();
        let rows: [TBox<Row, P>; 3] = std::array::from_fn(|_| TBox::new(&engine, Row::new(&census)));
        let alive_max = on_threads(&engine, 3, |number, worker| {
            let (mut updates, mut alive_max) = (0, 0);
            while updates < 60 {
                match worker.transact(|tx| rows[((updates + number) % 3) as usize].update(tx, Row::change)) {
                    Ok(()) => updates += 1,
                    // Of whichever kind: a thread that does not run keeps what others replace.
                    Err(Error::MemoryLimit(_) | Error::Timeout(_)) => {}
                    Err(error) => panic!("{error}"),
                }
                alive_max = alive_max.max(census.alive());
            }
            alive_max
        });
        let alive_max = alive_max.into_iter().max().unwrap();
        assert!(alive_max <= 3 + 16 + 3 * 4, "{alive_max} rows");
    });
}

#[test]
fn a_walk_that_keeps_too_much_is_named_and_told_to_end() {
    let _alone = alone();
    let census = Census::default();
    let policy = RetryPolicy { deadline: Some(Duration::from_millis(5)), ..RetryPolicy::default() };
    let engine = Engine::<Occ>::with_policy(policy);
    engine.set_retained_bytes_max(Some(8 * MIB));
    let row = TBox::new(&engine, Row::new(&census));
    let table = Database::on(&engine).table::<u64, u64>("walked").hash(5_000).cached(2).create().unwrap();
    table.bulk_insert((0..5_000).map(|key| (key, key))).unwrap();
    let mut worker = engine.worker().unwrap();
    let mut visited = 0;
    let walked = table.for_each(&mut worker, |_, _| {
        if visited == 0 {
            elsewhere(|| {
                let (_, limit) = update_until_refused(&engine, &row);
                let kind = limit.oldest.unwrap().kind;
                assert_eq!(kind, HolderKind::Walk { object: "walked".to_owned() });
            });
        }
        visited += 1;
    });
    assert!(matches!(walked, Err(Error::MemoryLimit(limit)) if limit.was_told));
    assert!(visited < 5_000);
    elsewhere(|| engine.transact(|tx| row.update(tx, Row::change))).unwrap();
    assert_eq!(table.for_each(&mut worker, |_, _| ()), Ok(5_000));
}

#[test]
fn a_walk_without_a_cache_keeps_nothing_between_its_batches() {
    let _alone = alone();
    let census = Census::default();
    let engine = Engine::<Occ>::with_policy(RetryPolicy::default());
    engine.set_retained_bytes_max(Some(8 * MIB));
    let row = TBox::new(&engine, Row::new(&census));
    let table = Database::on(&engine).table::<u64, u64>("walked").hash(5_000).create().unwrap();
    for key in 0..5_000 {
        engine.transact(|tx| table.insert(tx, key, key)).unwrap();
    }
    let mut worker = engine.worker().unwrap();
    let mut visited = 0;
    let walked = table.for_each(&mut worker, |_, _| {
        if visited % 1_000 == 0 {
            elsewhere(|| (0..20).for_each(|_| engine.transact(|tx| row.update(tx, Row::change)).unwrap()));
        }
        visited += 1;
    });
    assert_eq!((walked, visited), (Ok(5_000), 5_000));
}

#[test]
fn a_reader_of_a_snapshot_that_is_told_to_end_begins_again_under_every_protocol() {
    let _alone = alone();
    for_each_protocol!(2, |P| {
        let engine = limited::<P>(8 * MIB);
        let census = Census::default();
        let (row, small) = (TBox::new(&engine, Row::new(&census)), TBox::new(&engine, 7u64));
        let mut reader = engine.snapshot_reader().unwrap();
        let snapshot = engine.snapshot().unwrap();
        let mut attempts = 0;
        let read = reader.transact_on(&snapshot, |tx| {
            attempts += 1;
            small.get(tx)?;
            if attempts == 1 {
                elsewhere(|| drop(update_until_refused(&engine, &row)));
            }
            small.get(tx)
        });
        assert_eq!((read, attempts), (Ok(7), 2));
    });
}

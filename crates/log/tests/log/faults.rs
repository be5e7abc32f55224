//! Faults of the storage and of the engine, one at a time.

use crate::engine::{self, Clock, put};
use hotrow_log::storage::{Fault, Faulty};
use hotrow_log::{Epochs, Failure, Log, Mode, OpenError, Options, RECORD_BYTES_MAX, Stamp};
use hotrow_sync::thread;
use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

/// A log on faulty storage with one durable commit, of key 0.
fn started() -> (Arc<Faulty>, Log, Clock) {
    let storage = Arc::new(Faulty::new(0));
    let (log, clock, _) = engine::start(storage.clone(), Options::default()).unwrap();
    let stamp = commit(&log, &clock, 0);
    log.wait_durable(stamp.epoch).unwrap();
    // The logger may be about to look for work once more, without any operation on the storage.
    (storage, log, clock)
}

fn commit(log: &Log, clock: &Clock, key: u8) -> Stamp {
    let mut record = Vec::new();
    put(&mut record, 1, &[key], &[key; 100]);
    let mut buffer = log.buffer();
    let (stamp, guard) = clock.stamp();
    buffer.append(stamp, &record);
    drop(guard);
    stamp
}

fn keys(storage: Arc<Faulty>) -> Vec<u8> {
    engine::recover(storage).unwrap().0.keys().map(|(_, key)| key[0]).collect()
}

/// Has the `n`th operation from now on fail, and expects the log to fail by it.
fn fails_for_good(n: u64, fault: Fault, told: &str) {
    let (storage, log, clock) = started();
    storage.plan(storage.operations() + n, fault);
    let stamp = commit(&log, &clock, 1);
    let waiters: Vec<_> = (0..3)
        .map(|_| {
            let log = log.clone();
            thread::spawn(move || log.wait_durable(stamp.epoch))
        })
        .collect();
    for waiter in waiters {
        let failure = waiter.join().unwrap().unwrap_err();
        assert!(failure.to_string().contains(told), "{failure}");
    }
    // The storage works again, and the log does not use it all the same.
    let operations = storage.operations();
    assert!(log.buffer().admit().is_err());
    assert!(log.flush().is_err() && log.failure().is_some());
    assert!(log.put_catalog(engine::table(3)).is_err());
    assert!(log.begin_checkpoint(clock.epoch() + 1).is_err());
    assert!(log.backup(&Faulty::new(1)).is_err());
    commit(&log, &clock, 2);
    assert!(log.wait_durable(clock.epoch()).is_err() && log.close().is_err());
    // Acknowledged commits stay so.
    assert!(log.wait_durable(stamp.epoch - 1).is_ok());
    assert_eq!(storage.operations(), operations);
    drop(log);
    for seed in 0..20 {
        let left = keys(Arc::new(storage.power_loss(seed)));
        assert!(left == [0] || left == [0, 1], "{left:?}");
    }
}

#[test]
fn a_failed_write_fails_the_log_for_good_and_all_that_wait() {
    fails_for_good(1, Fault::Error(io::ErrorKind::Other), "cannot write log-0000000000000001 (at byte 1024)");
}

#[test]
fn a_failed_sync_fails_the_log_for_good_and_all_that_wait() {
    fails_for_good(2, Fault::Error(io::ErrorKind::Other), "cannot sync log-0000000000000001 (at byte 1024)");
}

#[test]
fn after_a_failed_sync_the_batch_is_written_again_before_it_counts() {
    let (storage, log, clock) = started();
    storage.plan(storage.operations() + 2, Fault::Error(io::ErrorKind::Other));
    let stamp = commit(&log, &clock, 1);
    assert!(log.wait_durable(stamp.epoch).is_err());
    drop(log);
    // The process sees the batch, though it is not on the device, and no later sync will bring it there.
    let (log, _, contents) = engine::start(storage.clone(), Options::default()).unwrap();
    assert_eq!(contents.len(), 2);
    for seed in 0..20 {
        assert_eq!(keys(Arc::new(storage.power_loss(seed))), [0, 1]);
    }
    drop(log);
}

#[test]
fn a_full_disk_is_told_and_loses_nothing_acknowledged() {
    let (storage, log, clock) = started();
    storage.set_capacity(Some(2_000));
    let mut acknowledged = 0;
    let failure = loop {
        let stamp = commit(&log, &clock, acknowledged + 1);
        match log.wait_durable(stamp.epoch) {
            Ok(()) => acknowledged += 1,
            Err(failure) => break failure,
        }
    };
    assert!(failure.is_full_disk(), "{failure}");
    assert!(failure.to_string().contains("StorageFull") || failure.to_string().contains("no storage space"));
    drop(log);
    storage.set_capacity(None);
    let left = keys(storage);
    assert_eq!(left[..=acknowledged as usize], (0..=acknowledged).collect::<Vec<_>>());
}

#[test]
fn zeros_are_written_ahead_and_are_no_torn_tail() {
    let (storage, log, clock) = started();
    let last = |storage: &Faulty| storage.files().pop_last().unwrap();
    let (name, bytes) = last(&storage);
    let end = bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1;
    assert!(bytes.len() > end + 4096, "{end} bytes and zeros, {} in all", bytes.len());
    log.wait_durable(commit(&log, &clock, 1).epoch).unwrap();
    assert_eq!(last(&storage).1.len(), bytes.len(), "the next frame lies where the zeros were");
    let lost = Arc::new(storage.power_loss(1));
    assert!(Log::open(lost.clone(), Options::default()).unwrap().report().torn_tail.is_none());
    assert_eq!(keys(lost.clone()), [0, 1]);
    // Anything else behind the last frame is one.
    assert!(lost.corrupt(&name, bytes.len() as u64 - 1, 1));
    let torn = Log::open(lost.clone(), Options::default()).unwrap().report().torn_tail.clone().unwrap();
    assert_eq!(torn.offset + torn.bytes, bytes.len() as u64);
    assert_eq!(keys(lost), [0, 1]);
}

#[test]
fn interrupted_and_short_writes_are_no_failures() {
    let (storage, log, clock) = started();
    let now = storage.operations();
    storage.plan(now + 1, Fault::Error(io::ErrorKind::Interrupted));
    (2..6).for_each(|n| storage.plan(now + n, Fault::Short));
    let stamp = commit(&log, &clock, 1);
    log.wait_durable(stamp.epoch).unwrap();
    log.close().unwrap();
    assert_eq!(keys(Arc::new(storage.power_loss(0))), [0, 1]);
}

#[test]
fn reads_are_tried_again_and_lasting_errors_name_the_file() {
    let (storage, log, _) = started();
    log.close().unwrap();
    let before = storage.operations();
    assert_eq!(keys(storage.clone()), [0]);
    let operations = storage.operations() - before;
    assert!(operations > 5);
    for n in 1..=operations {
        let now = storage.operations();
        storage.plan(now + n, Fault::Error(io::ErrorKind::Other));
        storage.plan(now + n + 1, Fault::Short);
        assert_eq!(keys(storage.clone()), [0], "operation {n}");
        storage.repair();
        let now = storage.operations();
        storage.plan(now + n, Fault::Broken);
        let files = storage.files();
        match engine::recover(storage.clone()) {
            Err(error @ OpenError::Io { .. }) => assert!(error.to_string().contains("injected"), "{error}"),
            other => panic!("operation {n}: {other:?}"),
        }
        assert!(storage.files() == files);
        storage.repair();
    }
}

#[test]
fn a_device_that_lies_makes_an_error_or_a_shorter_log_but_never_half_a_batch() {
    let (mut errors, mut shorter, mut whole) = (0, 0, 0);
    for seed in 0..300_u64 {
        let storage = Arc::new(Faulty::new(seed));
        let opened =
            Log::open(storage.clone(), Options { segment_bytes: 4_000, ..Options::default() }).unwrap();
        let mut random = fastrand::Rng::with_seed(seed);
        let clock = Clock::new(1);
        let (log, mut logger) = opened.start_without_thread(Box::new(clock.clone())).unwrap();
        engine::enter_tables(&log);
        let fault = [Fault::Lost, Fault::Corrupt][random.usize(..2)];
        storage.plan(storage.operations() + random.u64(1..40), fault);
        let mut buffer = log.buffer();
        for number in 0..20_u8 {
            let mut record = Vec::new();
            put(&mut record, 1, &[number], &[number; 100]);
            put(&mut record, 2, &[number], &[number; 600]);
            let (stamp, guard) = clock.stamp();
            buffer.append(stamp, &record);
            drop(guard);
            logger.step();
        }
        match engine::recover(Arc::new(storage.power_loss(seed))) {
            Err(OpenError::Corrupt { .. }) => errors += 1,
            Err(error) => panic!("seed {seed}: {error}"),
            Ok((contents, _)) => {
                let commits = contents.len() / 2;
                assert_eq!(contents.len(), commits * 2, "seed {seed}");
                for number in 0..commits as u8 {
                    assert_eq!(contents[&(1, vec![number])].0, [number; 100], "seed {seed}");
                    assert_eq!(contents[&(2, vec![number])].0, [number; 600], "seed {seed}");
                }
                if commits < 20 { shorter += 1 } else { whole += 1 }
            }
        }
    }
    assert!(errors > 20 && whole > 20, "{errors} errors, {shorter} shorter logs, {whole} whole ones");
}

#[test]
fn opening_can_crash_at_any_operation_and_be_repeated() {
    let (storage, log, clock) = started();
    // An unfinished checkpoint and an open end.
    let writer = log.begin_checkpoint(clock.epoch() + 1).unwrap();
    storage.plan(storage.operations() + 1, Fault::Broken);
    drop(writer);
    drop(log);
    storage.repair();
    let files = storage.files();
    assert!(files.keys().any(|name| name.ends_with(".tmp")));
    let open = |storage: Arc<Faulty>| -> Result<(), OpenError> {
        let mut opened = Log::open(storage, Options::default())?;
        let (contents, last) = engine::replay(&mut opened, 1)?;
        assert_eq!(contents.len(), 1);
        opened.start_without_thread(Box::new(Clock::new(last.epoch + 1))).map(drop)
    };
    let mut crashes = 0;
    for n in 1.. {
        let storage = Arc::new(Faulty::with_files(0, files.clone()));
        storage.plan(n, Fault::Broken);
        let whole = open(storage.clone()).is_ok();
        for seed in 0..8 {
            // Crashes again at the same operation, and then does not.
            let again = Arc::new(storage.power_loss(seed));
            again.plan(n, Fault::Broken);
            let _ = open(again.clone());
            let last = Arc::new(again.power_loss(seed));
            open(last.clone()).unwrap();
            assert!(!last.files().keys().any(|name| name.ends_with(".tmp")));
        }
        storage.repair();
        open(storage).unwrap();
        if whole {
            break;
        }
        crashes += 1;
    }
    assert!(crashes > 10, "{crashes}");
}

#[test]
fn records_cannot_be_forgotten_by_starting_without_replay() {
    let (storage, log, _) = started();
    drop(log);
    let opened = Log::open(storage, Options::default()).unwrap();
    assert!(matches!(opened.start(Box::new(Clock::new(1))), Err(OpenError::NotReplayed)));
}

#[test]
fn a_record_that_is_too_large_fails_the_log() {
    let (_, log, clock) = started();
    let (stamp, guard) = clock.stamp();
    log.buffer().append(stamp, &vec![0; RECORD_BYTES_MAX + 1]);
    drop(guard);
    assert!(matches!(log.wait_durable(stamp.epoch), Err(Failure::RecordTooLarge { .. })));
}

#[test]
fn a_record_behind_its_epoch_fails_the_log() {
    let (_, log, clock) = started();
    let late = Stamp { epoch: clock.epoch() - 1, order: 0 };
    log.buffer().append(late, &[]);
    assert!(matches!(log.wait_durable(clock.epoch()), Err(Failure::LateEpoch { .. })));
}

/// An engine that panics.
struct Panicking;

impl Epochs for Panicking {
    fn advance(&mut self) -> u64 {
        panic!("the engine is broken")
    }
}

#[test]
fn a_panic_of_the_engine_fails_the_log_and_hangs_nobody() {
    let storage = Arc::new(Faulty::new(0));
    let log = Log::open(storage, Options::default()).unwrap().start(Box::new(Panicking)).unwrap();
    assert!(matches!(log.wait_durable(5), Err(Failure::Thread(_))));
    assert!(matches!(log.close(), Err(Failure::Thread(_))));
}

/// An engine that owns the log, as real ones may.
struct Owner {
    clock: Clock,
    _log: Arc<hotrow_sync::Mutex<Option<Log>>>,
}

impl Epochs for Owner {
    fn advance(&mut self) -> u64 {
        self.clock.advance()
    }
}

#[test]
fn the_logger_may_own_the_last_clone_of_its_log() {
    let storage = Arc::new(Faulty::new(0));
    let cell = Arc::new(hotrow_sync::Mutex::new(None));
    let owner = Owner { clock: Clock::new(1), _log: Arc::clone(&cell) };
    let log = Log::open(storage.clone(), Options::default()).unwrap().start(Box::new(owner)).unwrap();
    *hotrow_sync::lock(&cell) = Some(log.clone());
    drop(cell);
    log.close().unwrap();
    drop(log);
    assert!(Log::open(storage, Options::default()).unwrap().report().closed);
}

/// Counts wake-ups, and wakes a thread.
#[derive(Default)]
struct Woken(hotrow_sync::atomic::AtomicU64, hotrow_sync::event::Event);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, hotrow_sync::atomic::Ordering::SeqCst);
        self.1.notify_all();
    }
}

/// Runs a future on this thread.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(Arc::clone(&woken));
    let mut future = pin!(future);
    let mut polls = 0;
    loop {
        polls += 1;
        if let Poll::Ready(result) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return result;
        }
        let count = || woken.0.load(hotrow_sync::atomic::Ordering::SeqCst);
        assert!(woken.1.wait_timeout(Duration::from_secs(60), || count() >= polls), "never woken");
    }
}

#[test]
fn a_commit_can_be_awaited_without_a_thread() {
    let storage = Arc::new(Faulty::new(0));
    let mode = Mode::Async { interval: Duration::from_secs(3600) };
    let (log, clock, _) = engine::start(storage.clone(), Options { mode, ..Options::default() }).unwrap();
    let futures: Vec<_> = (0..50).map(|key| log.when_durable(commit(&log, &clock, key).epoch)).collect();
    drop(log.when_durable(u64::MAX));
    futures.into_iter().rev().for_each(|future| block_on(future).unwrap());
    assert_eq!(keys(Arc::new(storage.power_loss(0))).len(), 50);
    storage.plan(storage.operations() + 2, Fault::Error(io::ErrorKind::Other));
    let lost = log.when_durable(commit(&log, &clock, 50).epoch);
    assert!(matches!(block_on(lost), Err(Failure::Io { .. })));
}

#[test]
fn a_future_of_a_closed_log_is_an_error() {
    let (_, log, clock) = started();
    let future = log.when_durable(clock.epoch() + 1_000_000);
    let closing = log.clone();
    let closer = thread::spawn(move || closing.close());
    let result = block_on(future);
    assert!(matches!(result, Err(Failure::Closed)), "{result:?}");
    closer.join().unwrap().unwrap();
}

//! Reads of a durable database: they see all that anybody was told, nothing that a crash could take back, and wait for nothing but what
//! they have read. The log is stepped by hand, so that whoever waits for it waits for ever.

use crate::support::{chosen, for_each_protocol};
use hotrow::durable::storage::{Fault, Faulty};
use hotrow::durable::{DurableBuilder, DurableDatabase, LogOptions, Logger, Mode};
use hotrow::sync::Arc;
use hotrow::{
    Abort, Database, Durability, Error, Isolation, NotDurable, Profile, Protocol, SessionOptions, Table,
    Transaction,
};
use std::future::Future;
use std::pin::pin;
use std::sync::mpsc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// A database with a durable table, a table in memory, and a log that writes when it is told to.
struct Stepped<P: Protocol> {
    // Dropped first, because the database waits for its end.
    logger: Option<Logger>,
    db: Database<P>,
    rows: Table<u64, u64, P>,
    cache: Table<u64, u64, P>,
}

impl<P: Protocol> Stepped<P> {
    /// Opens one whose durable rows 0 to 9 are 0, and as many in memory.
    fn new(storage: &Arc<Faulty>) -> Self {
        Self::in_mode(storage, Mode::Group)
    }

    fn in_mode(storage: &Arc<Faulty>, mode: Mode) -> Self {
        let options = LogOptions { mode, ..LogOptions::default() };
        let builder = Database::builder().typed::<P>().variant(chosen()).log(options);
        let (db, mut logger) = builder.open_without_threads(storage.clone()).unwrap();
        let rows = db.table("rows").create().unwrap();
        let cache = db.table("cache").in_memory().create().unwrap();
        for key in 0..10 {
            db.transact_with_ticket(|tx| {
                rows.insert(tx, key, 0)?;
                cache.insert(tx, key, 0)
            })
            .unwrap();
        }
        assert!(logger.step());
        Self { logger: Some(logger), db, rows, cache }
    }

    /// Writes a batch. False if the log has failed.
    fn step(&mut self) -> bool {
        self.logger.as_mut().unwrap().step()
    }

    /// The result of a transaction that need not wait; `None` if it must.
    fn at_once<R>(
        &self,
        profile: Profile,
        body: impl Fn(&mut Transaction<'_, P>) -> Result<R, Abort>,
    ) -> Option<Result<R, Error>> {
        let future = pin!(self.db.try_transact_async(profile, |tx| body(tx)));
        match future.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(result) => Some(result),
            Poll::Pending => None,
        }
    }

    fn read(&self, profile: Profile, rows: &Table<u64, u64, P>, key: u64) -> Option<Option<u64>> {
        self.at_once(profile, |tx| rows.get(tx, &key)).map(|result| result.unwrap())
    }

    /// Commits a transaction whose caller is not told of it.
    fn commit(&self, body: impl Fn(&mut Transaction<'_, P>) -> Result<(), Abort>) {
        assert_eq!(self.at_once(Profile::UNKNOWN, body), None, "it waits for the device");
    }

    /// Has snapshots been in use, so that the next ones are on the last batch.
    fn use_snapshots(&mut self) {
        loop {
            let snapshot = self.db.snapshot_strict().unwrap();
            if snapshot.number() == self.db.durable_epoch() + 1 {
                // Open, so that nobody is too late who looks after it.
                std::mem::forget(snapshot);
                return;
            }
            assert!(self.step());
        }
    }
}

const STRICT: Profile = Profile { isolation: Isolation::StrictSnapshot, ..Profile::READ_ONLY };
const BUFFERED: Profile = Profile { durability: Durability::Buffered, ..Profile::UNKNOWN };

#[test]
fn a_reader_waits_for_the_device_only_if_it_has_read_what_is_not_there_yet() {
    for_each_protocol!(2, |P| {
        let mut db = Stepped::<P>::new(&Arc::new(Faulty::new(1)));
        db.commit(|tx| {
            db.rows.update(tx, &1, |row| *row = 7)?;
            db.rows.delete(tx, &2)?;
            db.rows.insert(tx, 10, 7)?;
            db.cache.update(tx, &1, |row| *row = 7)
        });
        for profile in [Profile::UNKNOWN, Profile::READ_ONLY] {
            assert_eq!(db.read(profile, &db.rows, 5), Some(Some(0)), "an old row");
            assert_eq!(db.read(profile, &db.cache, 5), Some(Some(0)), "one in memory");
            for key in [1, 2, 10] {
                assert_eq!(db.read(profile, &db.rows, key), None, "row {key} is new");
            }
            assert_eq!(db.read(profile, &db.cache, 1), None, "it tells of the commit");
        }
        let committed = Profile { isolation: Isolation::ReadCommitted, ..Profile::READ_ONLY };
        assert_eq!(db.read(committed, &db.rows, 5), Some(Some(0)));
        for key in [1, 2, 10] {
            assert_eq!(db.read(committed, &db.rows, key), None);
        }
        assert!(db.step());
        assert_eq!(db.read(Profile::UNKNOWN, &db.rows, 1), Some(Some(7)));
        assert_eq!(db.read(Profile::UNKNOWN, &db.rows, 2), Some(None));
        assert_eq!(db.read(committed, &db.cache, 1), Some(Some(7)));
    });
}

#[test]
fn a_strict_snapshot_has_what_was_told_and_waits_for_nothing() {
    for_each_protocol!(2, |P| {
        let mut db = Stepped::<P>::new(&Arc::new(Faulty::new(1)));
        db.use_snapshots();
        for round in 1..20 {
            db.commit(|tx| db.rows.update(tx, &1, |row| *row = round));
            assert_eq!(db.read(STRICT, &db.rows, 1), Some(Some(round - 1)), "nobody was told");
            let snapshot = db.db.snapshot_strict().unwrap();
            assert_eq!(snapshot.transact(|tx| db.rows.get(tx, &1)), Ok(Some(round - 1)));
            assert!(db.step());
            assert_eq!(db.read(STRICT, &db.rows, 1), Some(Some(round)), "somebody may have been told");
            assert_eq!(snapshot.transact(|tx| db.rows.get(tx, &1)), Ok(Some(round - 1)));
        }
    });
}

#[test]
fn a_strict_snapshot_has_what_was_told_before_it_was_on_the_device_and_waits_for_that() {
    for_each_protocol!(2, |P| {
        let mut db = Stepped::<P>::new(&Arc::new(Faulty::new(1)));
        db.use_snapshots();
        let told = db.at_once(BUFFERED, |tx| db.rows.update(tx, &1, |row| *row = 7));
        assert!(told.unwrap().is_ok());
        assert_eq!(db.read(STRICT, &db.rows, 1), None, "it would tell what a crash may take back");
        let buffered = Profile { durability: Durability::Buffered, ..STRICT };
        assert_eq!(db.read(buffered, &db.rows, 1), Some(Some(7)));
        assert!(db.step());
        assert_eq!(db.read(STRICT, &db.rows, 1), Some(Some(7)));
        // Whoever has read it, and was told at once, may tell others.
        db.commit(|tx| db.rows.update(tx, &1, |row| *row = 8));
        assert_eq!(db.read(BUFFERED, &db.rows, 1), Some(Some(8)));
        assert_eq!(db.read(STRICT, &db.rows, 1), None);
        assert!(db.step());
        assert_eq!(db.read(STRICT, &db.rows, 1), Some(Some(8)));
    });
}

#[test]
fn transactions_that_only_read_run_when_the_log_takes_no_more() {
    for_each_protocol!(2, |P| {
        for fails in [false, true] {
            let storage = Arc::new(Faulty::new(1));
            let mut db = Stepped::<P>::new(&storage);
            db.use_snapshots();
            if fails {
                db.commit(|tx| db.rows.update(tx, &1, |row| *row = 7));
                storage.plan(storage.operations() + 1, Fault::Broken);
                assert!(!db.step());
                assert_eq!(db.read(STRICT, &db.rows, 1), Some(Some(0)), "the last state that is durable");
                let read = db.at_once(Profile::UNKNOWN, |tx| db.rows.get(tx, &1)).unwrap();
                assert!(matches!(read, Err(Error::NotDurable(_))), "nobody is told of {read:?}");
            } else {
                let logger = db.logger.take().unwrap();
                hotrow::sync::thread::scope(|scope| {
                    scope.spawn(|| logger.run());
                    db.db.close().unwrap();
                });
            }
            for profile in [Profile::UNKNOWN, Profile::READ_ONLY, STRICT, BUFFERED] {
                assert_eq!(db.read(profile, &db.rows, 5), Some(Some(0)));
                // What is absent may have been there: a reader cannot tell, unless it reads what is durable.
                assert!(fails && profile != STRICT || db.read(profile, &db.rows, 50) == Some(None));
            }
            let written = db.at_once(Profile::UNKNOWN, |tx| db.rows.update(tx, &5, |row| *row = 7)).unwrap();
            assert!(matches!(written, Err(Error::NotDurable(NotDurable { has_committed: false, .. }))));
            assert_eq!(db.db.transact(|tx| db.rows.get(tx, &5)), Ok(Some(0)), "it was rolled back");
            if !fails {
                // What is not logged goes on.
                db.db.transact(|tx| db.cache.update(tx, &5, |row| *row = 7)).unwrap();
                assert_eq!(db.read(Profile::UNKNOWN, &db.cache, 5), Some(Some(7)));
                assert_eq!(db.read(STRICT, &db.cache, 5), Some(Some(7)));
            }
        }
    });
}

#[test]
fn a_hook_for_a_durable_commit_runs_when_it_is_on_the_device_whoever_waits_for_it() {
    for_each_protocol!(2, |P| {
        for mode in [Mode::Group, Mode::Async { interval: Duration::from_secs(3_600) }] {
            let storage = Arc::new(Faulty::new(1));
            let mut db = Stepped::<P>::in_mode(&storage, mode);
            let (say, heard) = mpsc::channel();
            let rows = db.rows.clone();
            let leave = |tx: &mut Transaction<'_, P>, number: u64| {
                let say = say.clone();
                tx.on_durable(move || say.send(number).unwrap());
                rows.update(tx, &1, |row| *row += 1)
            };
            for round in 1..=3 {
                // The future is dropped, whether or not it waits.
                let ended = db.at_once(Profile::UNKNOWN, |tx| leave(tx, 0));
                assert_eq!(ended.is_none(), mode == Mode::Group);
                assert_eq!(db.at_once(BUFFERED, |tx| leave(tx, 1)), Some(Ok(())));
                db.db.transact_with_ticket(|tx| leave(tx, 2)).unwrap();
                let mut worker = db.db.worker().unwrap();
                worker.try_transact_as(BUFFERED, |tx| leave(tx, 3)).unwrap();
                drop(worker);
                let options = SessionOptions { profile: BUFFERED, ..SessionOptions::default() };
                let mut session = db.db.begin(options).unwrap();
                session.run(|tx| leave(tx, 4)).unwrap();
                session.commit().unwrap();
                assert!(heard.try_recv().is_err(), "nothing is on the device");
                if round == 3 {
                    break;
                }
                assert!(db.step());
                assert_eq!((0..5).map(|_| heard.recv().unwrap()).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
            }
            storage.plan(storage.operations() + 1, Fault::Broken);
            assert!(!db.step());
            drop(say);
            assert!(heard.recv().is_err(), "they are dropped");
        }
    });
}

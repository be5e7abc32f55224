//! A bounded queue of jobs. Those who submit wait while it is full, those who work wait while it is empty; nobody polls.
//!
//! - `retry` ends an attempt that cannot go on yet, and runs the body again when something that it has read has changed: here the number
//!   of free places, or the front of the queue. `retry_for` gives up after a time.
//! - The free places are a counter: a submission tests that there is one, and does not care how many, so submissions do not abort each other.
//! - A job, its place and its entry among the running ones change together. A worker that rolls back has taken nothing.
//!
//! Over a mutex ([`OverMutex`](rivals::OverMutex)) there are two condition variables beside it, and each change has to know which one to
//! notify. redb ([`OverRedb`](rivals::OverRedb)) has nothing to wait by, so there they ask again and again.

use crate::Store;
use crate::load::{self, Scenario};
use crate::rivals::job_queue as rivals;
use hotrow::sync::random::Random;
use hotrow::{Database, Error, TCounter, TQueue, Table};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Jobs that may wait.
pub(crate) const PLACES: usize = 64;
/// The time after which those who wait look if the load is over.
pub(crate) const TIME_MAX: Duration = Duration::from_millis(50);

/// The queue.
struct JobQueue {
    db: Database,
    waiting: TQueue<u64>,
    free_places: TCounter,
    /// Jobs that somebody works on, and by whom.
    running: Table<u64, u64>,
}

impl JobQueue {
    fn open() -> Result<Self, Error> {
        let db = Database::open()?;
        let waiting = TQueue::named(&db, "jobs that wait", []);
        let free_places = TCounter::named(&db, "free places", PLACES as i64);
        let running = db.table("running jobs").hash(PLACES).create()?;
        Ok(Self { db, waiting, free_places, running })
    }

    /// Adds a job, as soon as there is a place for it. False if there was none in time.
    fn submit(&self, job: u64) -> Result<bool, Error> {
        in_time(self.db.transact(|tx| {
            if !self.free_places.is_at_least(tx, 1)? {
                return tx.retry_for(TIME_MAX);
            }
            self.free_places.add(tx, -1)?;
            self.waiting.push(tx, job)
        }))
        .map(|submitted| submitted.is_some())
    }

    /// Takes a job, as soon as there is one. `None` if there was none in time.
    fn take(&self, worker: u64) -> Result<Option<u64>, Error> {
        in_time(self.db.transact(|tx| {
            let Some(job) = self.waiting.pop(tx)? else { return tx.retry_for(TIME_MAX) };
            self.free_places.add(tx, 1)?;
            self.running.insert(tx, job, worker)?;
            Ok(job)
        }))
    }

    /// Ends a job.
    fn finish(&self, job: u64) -> Result<(), Error> {
        self.db.transact(|tx| {
            let was_running = self.running.delete(tx, &job)?;
            tx.ensure(was_running, "nobody works on this job")
        })
    }

    /// The numbers of jobs that wait, of those that somebody works on, and of free places.
    fn state(&self) -> Result<(usize, u64, i64), Error> {
        let running = self.db.with_worker(|worker| self.running.for_each(worker, |_, _| ()))?;
        let (waiting, free) =
            self.db.transact(|tx| Ok((self.waiting.len(tx)?, self.free_places.get(tx)?)))?;
        Ok((waiting, running, free))
    }
}

/// The result of a transaction that may wait; `None` if it waited in vain.
fn in_time<R>(result: Result<R, Error>) -> Result<Option<R>, Error> {
    match result {
        Ok(result) => Ok(Some(result)),
        Err(Error::RetryTimeout { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Counts of jobs, to check a queue.
#[derive(Default)]
pub(crate) struct Tally {
    submitted: AtomicU64,
    finished: AtomicU64,
    /// Sums of the jobs' numbers, modulo 2^64.
    sums: [AtomicU64; 2],
}

impl Tally {
    pub(crate) fn submitted(&self, job: u64) {
        self.submitted.fetch_add(1, Ordering::Relaxed);
        self.sums[0].fetch_add(job, Ordering::Relaxed);
    }

    pub(crate) fn finished(&self, job: u64) {
        self.finished.fetch_add(1, Ordering::Relaxed);
        self.sums[1].fetch_add(job, Ordering::Relaxed);
    }

    /// Checks that each job waits or was finished once. `waiting` are those that wait.
    pub(crate) fn check(&self, waiting: &[u64], running: u64) -> Result<String, String> {
        let [submitted, finished, all, done] =
            [&self.submitted, &self.finished, &self.sums[0], &self.sums[1]]
                .map(|count| count.load(Ordering::Relaxed));
        let left = waiting.iter().fold(0, |sum: u64, job| sum.wrapping_add(*job));
        if submitted == finished + waiting.len() as u64 && all == done.wrapping_add(left) && running == 0 {
            Ok(format!("{submitted} jobs submitted, {finished} finished once, {} wait", waiting.len()))
        } else {
            Err(format!("{submitted} submitted, {finished} finished, {} wait, {running} run", waiting.len()))
        }
    }
}

/// True if a thread submits a job now, instead of working. Each thread does both by turns, so that never all of them wait for the same.
pub(crate) fn submits(thread: usize, number: u64) -> bool {
    !(thread as u64 + number).is_multiple_of(2)
}

/// The number of a thread's next job.
pub(crate) fn job(thread: usize, number: u64) -> u64 {
    (thread as u64) << 40 | number
}

/// The queue under load.
struct UnderLoad {
    queue: JobQueue,
    tally: Tally,
}

impl Scenario for UnderLoad {
    fn one(&self, thread: usize, number: u64, _: &mut Random) -> bool {
        if submits(thread, number) {
            let job = job(thread, number);
            let submitted = self.queue.submit(job).expect("a submission");
            if submitted {
                self.tally.submitted(job);
            }
            return submitted;
        }
        let Some(job) = self.queue.take(thread as u64).expect("a job") else { return false };
        self.queue.finish(job).expect("the job is running");
        self.tally.finished(job);
        true
    }

    fn check(&self) -> Result<String, String> {
        let (waiting, running, free) = self.queue.state().map_err(|error| error.to_string())?;
        if waiting as i64 + free != PLACES as i64 {
            return Err(format!("{waiting} wait, and {free} of {PLACES} places are free"));
        }
        let mut jobs = Vec::new();
        while let Some(job) =
            self.queue.db.transact(|tx| self.queue.waiting.pop(tx)).map_err(|e| e.to_string())?
        {
            jobs.push(job);
        }
        self.tally.check(&jobs, running)
    }

    fn conflicts(&self) -> Option<String> {
        Some(load::report(&self.queue.db))
    }
}

pub(crate) const STORES: &[Store] = &[
    Store {
        name: "hotrow",
        make: || Ok(Box::new(UnderLoad { queue: JobQueue::open()?, tally: Tally::default() })),
    },
    Store { name: "mutex", make: || Ok(Box::new(rivals::OverMutex::new())) },
    Store { name: "redb", make: || Ok(Box::new(rivals::OverRedb::new()?)) },
];

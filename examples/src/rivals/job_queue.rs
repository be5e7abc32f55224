//! The queue of jobs over a mutex and two condition variables, and over redb.

use crate::job_queue::{PLACES, TIME_MAX, Tally, job, submits};
use crate::load::Scenario;
use crate::rivals::store::Store;
use hotrow::sync::random::Random;
use redb::{ReadableTable, ReadableTableMetadata, TableDefinition};
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Everything behind one mutex.
pub(crate) struct OverMutex {
    jobs: Mutex<Jobs>,
    not_full: Condvar,
    not_empty: Condvar,
    tally: Tally,
}

#[derive(Default)]
struct Jobs {
    waiting: VecDeque<u64>,
    /// Jobs that somebody works on, and by whom.
    running: HashMap<u64, u64>,
}

impl OverMutex {
    pub(crate) fn new() -> Self {
        let (not_full, not_empty) = (Condvar::new(), Condvar::new());
        Self { jobs: Mutex::default(), not_full, not_empty, tally: Tally::default() }
    }

    fn submit(&self, job: u64) -> bool {
        let jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        let is_full = |jobs: &mut Jobs| jobs.waiting.len() == PLACES;
        let waited = self.not_full.wait_timeout_while(jobs, TIME_MAX, is_full);
        let (mut jobs, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        if waited.timed_out() {
            return false;
        }
        jobs.waiting.push_back(job);
        self.not_empty.notify_one();
        true
    }

    fn take(&self, worker: u64) -> Option<u64> {
        let jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        let is_empty = |jobs: &mut Jobs| jobs.waiting.is_empty();
        let waited = self.not_empty.wait_timeout_while(jobs, TIME_MAX, is_empty);
        let (mut jobs, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let job = jobs.waiting.pop_front()?;
        jobs.running.insert(job, worker);
        self.not_full.notify_one();
        Some(job)
    }
}

impl Scenario for OverMutex {
    fn one(&self, thread: usize, number: u64, _: &mut Random) -> bool {
        if submits(thread, number) {
            let job = job(thread, number);
            let submitted = self.submit(job);
            if submitted {
                self.tally.submitted(job);
            }
            return submitted;
        }
        let Some(job) = self.take(thread as u64) else { return false };
        let mut jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        jobs.running.remove(&job).expect("the job is running");
        drop(jobs);
        self.tally.finished(job);
        true
    }

    fn check(&self) -> Result<String, String> {
        let jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        self.tally.check(&jobs.waiting.iter().copied().collect::<Vec<_>>(), jobs.running.len() as u64)
    }
}

/// Jobs in their order.
const WAITING: TableDefinition<'_, u64, u64> = TableDefinition::new("jobs that wait");
/// Jobs that somebody works on, and by whom.
const RUNNING: TableDefinition<'_, u64, u64> = TableDefinition::new("running jobs");
/// The pause of those who wait.
const PAUSE: Duration = Duration::from_micros(50);

/// A store whose commits do not wait for the device. It has nothing to wait by, so those who wait ask again and again.
pub(crate) struct OverRedb {
    store: Store,
    next_number: AtomicU64,
    tally: Tally,
}

impl OverRedb {
    pub(crate) fn new() -> Result<Self, Box<dyn std::error::Error>> {
        let store = Store::unsynced()?;
        store.fill(WAITING, [])?;
        store.fill(RUNNING, [])?;
        Ok(Self { store, next_number: AtomicU64::new(0), tally: Tally::default() })
    }

    fn submit(&self, job: u64) -> Result<Option<()>, redb::Error> {
        in_time(|| {
            self.store.write(|tx| {
                let mut waiting = tx.open_table(WAITING)?;
                if waiting.len()? >= PLACES as u64 {
                    return Ok(None);
                }
                waiting.insert(self.next_number.fetch_add(1, Ordering::Relaxed), job)?;
                Ok(Some(()))
            })
        })
    }

    fn take(&self, worker: u64) -> Result<Option<u64>, redb::Error> {
        in_time(|| {
            self.store.write(|tx| {
                let first = tx.open_table(WAITING)?.pop_first()?.map(|(_, job)| job.value());
                if let Some(job) = first {
                    tx.open_table(RUNNING)?.insert(job, worker)?;
                }
                Ok(first)
            })
        })
    }

    fn finish(&self, job: u64) -> Result<bool, redb::Error> {
        let finished = self.store.write(|tx| {
            let mut running = tx.open_table(RUNNING)?;
            let was_running = running.remove(job)?.is_some();
            Ok(was_running.then_some(()))
        })?;
        Ok(finished.is_some())
    }

    fn state(&self) -> Result<(Vec<u64>, u64), redb::Error> {
        let tx = self.store.read()?;
        let mut waiting = Vec::new();
        for entry in tx.open_table(WAITING)?.iter()? {
            waiting.push(entry?.1.value());
        }
        Ok((waiting, tx.open_table(RUNNING)?.len()?))
    }
}

/// Tries until there is a result, or the time is over.
fn in_time<R>(mut attempt: impl FnMut() -> Result<Option<R>, redb::Error>) -> Result<Option<R>, redb::Error> {
    let began = Instant::now();
    loop {
        let result = attempt()?;
        if result.is_some() || began.elapsed() > TIME_MAX {
            return Ok(result);
        }
        thread::sleep(PAUSE);
    }
}

impl Scenario for OverRedb {
    fn one(&self, thread: usize, number: u64, _: &mut Random) -> bool {
        if submits(thread, number) {
            let job = job(thread, number);
            let submitted = self.submit(job).expect("a submission").is_some();
            if submitted {
                self.tally.submitted(job);
            }
            return submitted;
        }
        let Some(job) = self.take(thread as u64).expect("a job") else { return false };
        assert!(self.finish(job).expect("an end"), "the job is running");
        self.tally.finished(job);
        true
    }

    fn check(&self) -> Result<String, String> {
        let (waiting, running) = self.state().map_err(|error| error.to_string())?;
        self.tally.check(&waiting, running)
    }
}

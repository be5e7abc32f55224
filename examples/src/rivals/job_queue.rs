//! The queue of jobs over a mutex and two condition variables.

use crate::job_queue::{PLACES, TIME_MAX, Tally, job, submits};
use crate::load::Scenario;
use hotrow::sync::random::Random;
use std::collections::{HashMap, VecDeque};
use std::sync::{Condvar, Mutex, PoisonError};

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

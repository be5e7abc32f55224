//! Runners: the threads on which an application's workers run.
//!
//! An application calls its runner once for each phase. A call returns when all workers have finished, so it is
//! also the barrier between phases.

use hotrow_sync::thread;

/// The number of workers.
pub trait Workers {
    /// Returns the number of workers, at least 1.
    fn workers(&self) -> usize;
}

/// A runner of workers that share a `T`.
///
/// The trait has `T` as a parameter so that a runner with several threads can ask for `T: Sync` while one that uses
/// only the calling thread does not. An application over [`Sequential`](crate::Sequential) is not `Sync`, so the
/// compiler refuses to run it on several threads.
pub trait Runner<T: ?Sized>: Workers {
    /// Calls `work` once for each worker, with its number, and returns when all calls have returned.
    fn run(&self, shared: &T, work: &(dyn Fn(&T, usize) + Sync));
}

/// A runner with one worker, on the calling thread.
#[derive(Debug, Clone, Copy, Default)]
pub struct OneThread;

impl Workers for OneThread {
    fn workers(&self) -> usize {
        1
    }
}

impl<T: ?Sized> Runner<T> for OneThread {
    fn run(&self, shared: &T, work: &(dyn Fn(&T, usize) + Sync)) {
        work(shared, 0);
    }
}

/// A runner with one thread for each worker.
///
/// A function starts the threads: it gets their number and a job, calls the job with each worker's number, and returns
/// when all calls have returned. A simulator passes a function that starts its own threads.
pub struct Spawning<F> {
    workers: usize,
    spawn: F,
}

impl<F: Fn(usize, &(dyn Fn(usize) + Sync))> Spawning<F> {
    /// A runner with `workers` threads, but at least one, which `spawn` starts.
    pub fn new(workers: usize, spawn: F) -> Self {
        Self { workers: workers.max(1), spawn }
    }
}

impl<F> Workers for Spawning<F> {
    fn workers(&self) -> usize {
        self.workers
    }
}

impl<T: Sync + ?Sized, F: Fn(usize, &(dyn Fn(usize) + Sync))> Runner<T> for Spawning<F> {
    fn run(&self, shared: &T, work: &(dyn Fn(&T, usize) + Sync)) {
        (self.spawn)(self.workers, &|worker| work(shared, worker));
    }
}

/// A function that starts the operating system's threads.
pub type StartThreads = fn(usize, &(dyn Fn(usize) + Sync));

/// Returns a runner with `workers` threads of the operating system.
pub fn on_threads(workers: usize) -> Spawning<StartThreads> {
    Spawning::new(workers, start_threads)
}

fn start_threads(workers: usize, job: &(dyn Fn(usize) + Sync)) {
    thread::scope(|scope| {
        for worker in 0..workers {
            scope.spawn(move || job(worker));
        }
    });
}

/// Returns the part of `length` items that belongs to one of `workers` workers: `length / workers` items, one more for
/// the first workers if the division leaves a rest.
pub fn share(length: usize, worker: usize, workers: usize) -> std::ops::Range<usize> {
    let (each, rest) = (length / workers, length % workers);
    let start = worker * each + worker.min(rest);
    start..start + each + usize::from(worker < rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hotrow_sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn every_worker_is_called_once() {
        let calls: Vec<AtomicUsize> = (0..3).map(|_| AtomicUsize::new(0)).collect();
        on_threads(3).run(&calls, &|calls, worker| {
            calls[worker].fetch_add(1, Ordering::Relaxed);
        });
        assert!(calls.iter().all(|count| count.load(Ordering::Relaxed) == 1));
    }

    #[test]
    fn shares_cover_everything_once() {
        for (length, workers) in [(0, 1), (10, 3), (2, 5), (7, 7)] {
            let all: Vec<usize> = (0..workers).flat_map(|worker| share(length, worker, workers)).collect();
            assert_eq!(all, (0..length).collect::<Vec<_>>());
        }
    }
}

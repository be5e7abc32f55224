//! # A job queue: wait until there is work
//!
//! Producers submit jobs and wait while the queue is full. Workers take jobs and wait while it is empty. Nobody polls, and no job is lost or
//! done twice.
//!
//! ```
//! use hotrow::{Database, Error, TCounter, TQueue, Table};
//! use std::time::Duration;
//!
//! struct Jobs {
//!     db: Database,
//!     waiting: TQueue<u64>,
//!     places: TCounter,
//!     running: Table<u64, String>,
//! }
//!
//! impl Jobs {
//!     fn open(places: i64) -> Result<Self, Error> {
//!         let db = Database::open()?;
//!         let waiting = TQueue::named(&db, "waiting jobs", []);
//!         let places = TCounter::named(&db, "free places", places);
//!         let running = db.table("running jobs").hash(100).create()?;
//!         Ok(Self { db, waiting, places, running })
//!     }
//!
//!     fn submit(&self, job: u64) -> Result<(), Error> {
//!         self.db.transact(|tx| {
//!             if !self.places.is_at_least(tx, 1)? {
//!                 return tx.retry(); // Sleeps until the counter changes, then runs again.
//!             }
//!             self.places.add(tx, -1)?;
//!             self.waiting.push(tx, job)
//!         })
//!     }
//!
//!     fn take(&self, worker: &str, time_max: Duration) -> Result<u64, Error> {
//!         self.db.transact(|tx| {
//!             let Some(job) = self.waiting.pop(tx)? else { return tx.retry_for(time_max) };
//!             self.places.add(tx, 1)?;
//!             self.running.insert(tx, job, worker.to_owned())?;
//!             Ok(job)
//!         })
//!     }
//!
//!     fn finish(&self, job: u64) -> Result<(), Error> {
//!         self.db.transact(|tx| {
//!             let was_running = self.running.delete(tx, &job)?;
//!             tx.ensure(was_running, format!("nobody works on job {job}"))
//!         })
//!     }
//! }
//!
//! let jobs = Jobs::open(4)?;
//! let done: u64 = std::thread::scope(|scope| {
//!     scope.spawn(|| (1..=100).for_each(|job| jobs.submit(job).unwrap()));
//!     let work = |worker: &'static str| {
//!         let jobs = &jobs;
//!         move || {
//!             let mut sum = 0;
//!             while let Ok(job) = jobs.take(worker, Duration::from_secs(30)) {
//!                 jobs.finish(job).unwrap();
//!                 sum += job;
//!                 if job > 98 { break } // The last two, one for each worker.
//!             }
//!             sum
//!         }
//!     };
//!     let workers = [scope.spawn(work("one")), scope.spawn(work("two"))];
//!     workers.into_iter().map(|worker| worker.join().unwrap()).sum()
//! });
//! assert_eq!(done, 5_050, "each job once");
//!
//! let nothing = jobs.take("one", Duration::from_millis(5)).unwrap_err();
//! assert!(matches!(nothing, Error::RetryTimeout { .. }));
//! assert!(nothing.to_string().starts_with("nothing changed in "));
//! assert_eq!(jobs.finish(7).unwrap_err().to_string(), "rolled back: nobody works on job 7");
//! # Ok::<(), Error>(())
//! ```
//!
//! # Guarantees
//!
//! A job leaves the queue, frees its place and enters `running` in one step. A worker that rolls back or panics has taken nothing. Jobs come out in
//! the order in which their submissions committed. A job whose worker stops after `take` stays in `running`: look there for jobs to submit again.
//!
//! # Failures
//!
//! - [`retry`](Transaction::retry) undoes the attempt and sleeps until a commit changes something that the body has read.
//! - [`retry_for`](Transaction::retry_for), or the policy's deadline, ends the wait with [`Error::RetryTimeout`]:
//!   `nothing changed in 5ms that the body waited for`, with the time that has passed. This error [is retryable](Error::is_retryable).
//! - A body that has read nothing cannot be woken: `blocked for ever: the body waits for a change, and has read nothing that can change`.
//!
//! # Speed
//!
//! - [`is_at_least`](TCounter::is_at_least) is a predicate: submissions do not abort each other while there are places. Do not read the queue's
//!   [`len`](TQueue::len), which conflicts with each push and pop.
//! - Pushes conflict with pops only when the queue runs empty. Pops conflict with each other, so give each group of workers a queue of its own if
//!   jobs are short.
//! - A new job wakes one of the waiting workers.
//! - In asynchronous code, [`transact_async`](Engine::transact_async) waits without a thread.
//!
//! # Jobs that survive a crash
//!
//! Collections live in memory. Keep durable jobs in an ordered table with keys from a durable sequence: insert a job to submit it; read
//! [`first`](Table::first) and delete it to take it. `retry` waits for a row as it waits for an element.
//!
//! See also: [waiting](super::waiting), [collections](super::objects), [tasks](super::tasks), [durability](super::durability).
//! `examples/src/job_queue.rs` and `examples/src/outbox.rs` are larger programs.

#[allow(unused_imports, reason = "the text links to these")]
use crate::*;

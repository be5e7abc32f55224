//! # Threads, workers, sessions
//!
//! Any thread may call [`transact`](Engine::transact), and there may be more threads than cores. A [`Worker`] owns the resources of an attempt (item set, arena, the protocol's state) and runs one transaction at
//! a time. `transact` keeps one worker for each thread that calls it, until the thread ends. A thread that runs
//! many transactions can hold its own and save the look-up:
//!
//! ```
//! use hotrow::{Database, Error, Misuse, NoProtocol, TArray};
//!
//! let db = Database::open()?;
//! let slots = TArray::new(&db, 8, |_| 0u32);
//! std::thread::scope(|scope| {
//!     for slot in 0..8 {
//!         let (mut worker, slots) = (db.worker().expect("occ admits many"), &slots);
//!         scope.spawn(move || {
//!             for _ in 0..100 {
//!                 worker.transact(|tx| slots.update(tx, slot, |value| *value += 1)).unwrap();
//!             }
//!         });
//!     }
//! });
//! assert_eq!(db.statistics().commits, 800);
//!
//! // A transaction inside another one is an error, not a deadlock.
//! db.transact(|tx| {
//!     assert_eq!(db.transact(|tx| slots.get(tx, 0)), Err(Error::Misuse(Misuse::Nested)));
//!     slots.get(tx, 0)
//! })?;
//!
//! // `none` admits one worker at a time.
//! let single = Database::builder().protocol::<NoProtocol>().open()?;
//! let only = single.worker()?;
//! assert!(matches!(single.worker(), Err(Misuse::TooManyWorkers { workers_max: 1, .. })));
//! drop(only);
//! assert!(single.worker().is_ok());
//! # Ok::<(), hotrow::Error>(())
//! ```
//!
//! A wait for a lock is short and then gives the attempt up; under protocols
//! whose transactions wait for each other, it parks the thread. Pauses yield or sleep, and a thread that waits for an
//! older transaction parks. Objects and tables may be dropped at any time, even during a transaction. Their memory is
//! freed through the epoch, when no thread can still read it. Replaced and deleted memory is freed in the same way,
//! so a body that never ends keeps the process from freeing anything.

#[allow(unused_imports, reason = "the text links to these")]
use crate::*;

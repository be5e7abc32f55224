//! # Threads, workers, sessions
//!
//! Any thread may call [`transact`](Engine::transact), and there may be more threads than cores. `transact` keeps a [`Worker`], which runs
//! one transaction at a time, for each thread and database, until the thread ends (for the last eight databases that it used). A worker
//! of the thread's own saves the look-up:
//!
//! ```
//! use hotrow::{Database, Error, Misuse, TArray};
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
//! let single = Database::builder().protocol("none").open()?;
//! let _only = single.worker()?;
//! assert!(matches!(single.worker(), Err(Misuse::TooManyWorkers { workers_max: 1, .. })));
//! # Ok::<(), Error>(())
//! ```
//!
//! Objects and tables may be dropped at any time, even during a transaction. Their memory is freed when no thread can still read it.
//!
//! # Sessions
//!
//! A [`Session`] is a transaction whose statements come one at a time, from any thread: for users who look at a result before they go on, and
//! for bindings. A [`LocalSession`] stays on the thread that began it, and needs no second one.
//!
//! - Each statement runs once, on a thread of the session's own, while the caller waits.
//! - A statement that returns an error of its own is undone alone. After a lost conflict the session has ended: run its statements again in
//!   a new one. A result is certain only when the session has committed.
//! - [`savepoint`](Session::savepoint) and [`roll_back_to`](Session::roll_back_to) undo several statements.
//! - A session that idles for longer than its [limit](SessionOptions::idle_max) (30 s) is rolled back, and a [`Canceller`] ends it; the next
//!   call returns [`Error::Cancelled`].
//! - Under `none` an open session is the only transaction. In a simulation there are no sessions.
//!
//! ```
//! use hotrow::{Database, Error, SessionOptions};
//! use std::time::Duration;
//!
//! let db = Database::open()?;
//! let accounts = db.table::<u32, i64>("accounts").hash(2).create()?;
//! accounts.bulk_insert([(1, 100), (2, 0)])?;
//!
//! let options = SessionOptions::named("transfer of Ann").idle_max(Duration::from_secs(5));
//! let mut session = db.begin(options)?;
//! session.run(|tx| accounts.update(tx, &1, |balance| *balance -= 30))?;
//!
//! // Another thread goes on with it.
//! let committed = std::thread::spawn(move || {
//!     let refused = session.run(|tx| {
//!         let left = accounts.update(tx, &1, |balance| { *balance -= 500; *balance })?;
//!         tx.ensure(left >= 0, "overdrawn")
//!     });
//!     assert!(matches!(refused, Err(Error::Rollback(_))));
//!     session.run(|tx| accounts.update(tx, &2, |balance| *balance += 30))?;
//!     session.commit()
//! });
//! committed.join().expect("it does not panic")?;
//! # Ok::<(), Error>(())
//! ```

#[allow(unused_imports, reason = "the text links to these")]
use crate::*;

//! # Threads, workers, sessions
//!
//! Any thread may call [`transact`](Engine::transact), and there may be more threads than cores. A [`Worker`] owns the resources of an attempt and
//! runs one transaction at a time. `transact` keeps one for each thread and database, until the thread ends (for the last eight
//! databases that it used). A thread that runs many transactions saves the look-up by a worker of its own:
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
//! let only = single.worker()?;
//! assert!(matches!(single.worker(), Err(Misuse::TooManyWorkers { workers_max: 1, .. })));
//! drop(only);
//! assert!(single.worker().is_ok());
//! # Ok::<(), Error>(())
//! ```
//!
//! Objects and tables may be dropped at any time, even during a transaction. Their memory, like that of replaced and deleted values, is freed when no
//! thread can still read it, so a body that never ends keeps the process from freeing anything.
//!
//! # Sessions
//!
//! A [`Session`] is a transaction whose statements come one at a time, from any thread. Use it for users who look at a result before they go on, and
//! for bindings. A [`LocalSession`] stays on the thread that began it, and costs no second thread.
//!
//! - Each statement runs once, on a thread of the session's own, while the caller waits.
//! - A statement that returns an error of its own is undone alone. After a lost conflict the session has ended: run its statements again in
//!   a new one. A result is certain only when the session has committed.
//! - [`savepoint`](Session::savepoint) and [`roll_back_to`](Session::roll_back_to) undo several statements.
//! - A session that idles for longer than its [limit](SessionOptions::idle_max) (30 s) is rolled back; its next call returns
//!   [`Error::Cancelled`]. A [`Canceller`] ends it from another thread.
//! - Under `none` an open session is the only transaction that there may be. In a simulation there are no sessions.
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

//! # Asynchronous code: what may block, and for how long
//!
//! [`transact_async`](Engine::transact_async) is [`transact`](Engine::transact) as a future, on any executor. Its body is an
//! ordinary one; it cannot `.await`. When it calls [`retry`](Transaction::retry), the task waits, and no thread does:
//!
//! ```
//! use hotrow::prelude::*;
//! # use std::future::Future;
//! # use std::pin::pin;
//! # use std::task::{Context, Poll, Waker};
//!
//! let db = Database::open()?;
//! let jobs = TQueue::new(&db);
//! let worker = async {
//!     db.transact_async(|tx| match jobs.pop(tx)? {
//!         None => tx.retry(),
//!         Some(job) => Ok(job),
//!     })
//!     .await
//! };
//! # let mut worker = pin!(worker);
//! # let mut context = Context::from_waker(Waker::noop());
//! # assert!(worker.as_mut().poll(&mut context).is_pending());
//! db.transact(|tx| jobs.push(tx, "a job"))?;
//! # let Poll::Ready(job) = worker.as_mut().poll(&mut context) else { panic!("it was woken") };
//! # assert_eq!(job, Ok("a job"));
//! # Ok::<(), hotrow::Error>(())
//! ```
//!
//! # Bounds
//!
//! | | a call | a future's poll |
//! |---|---|---|
//! | `retry` | sleeps until a change | never blocks: the task is woken |
//! | locks of other transactions | as long as it takes, or the policy's deadline | 1 ms in all, then the attempt is lost |
//! | between attempts | pauses of 100 µs at most | never blocks: the task goes to the end of the executor's queue |
//! | an older transaction that is let through | 100 ms and more | 1 ms, then as between attempts |
//! | memory, above the engine's limit | 100 ms | 1 ms, then as between attempts |
//! | room in the log | until there is some | never blocks; after 10 s an error |
//! | the log's acknowledgement | until the device is done | never blocks: the task is woken |
//!
//! Not bounded are
//!
//! - the time for which a thread does not run, because the machine has others to run: one that waits for a lock gives its processor
//!   away between two looks, until its time is over;
//! - the body itself: what reads much belongs on a thread of its own (`spawn_blocking`);
//! - under `drp` and its variants, a place in line, because it cannot be given back: a poll waits until the transactions before it have
//!   ended;
//! - under `chop`, the pieces of procedures that are in progress when the transaction begins;
//! - latches of indexes, and of lists of waiters, which are held for a few dozen instructions, and never while waiting.
//!
//! `cargo run --release -p hotrow --example polls` measures how long polls take on your machine, under every protocol, beside a thread
//! that calls, and beside a session that keeps the row for 20 milliseconds at a time; docs/results/2026-11-27-polls.md has
//! the numbers of one machine.
//!
//! # Cancelling
//!
//! Between two polls a future holds nothing, so it can be dropped at any await: the transaction has had no effect then, and its
//! [`on_abort`](Transaction::on_abort) hooks run. The exception is one that waits for the log's acknowledgement: it has committed.
//! There is no timer in a future. Nothing polls it when the policy's deadline passes, or the limit of
//! [`retry_for`](Transaction::retry_for), so put the runtime's own timeout around it.
//!
//! # Sessions
//!
//! A transaction that stays open between two awaits is a [session](Engine::begin_async). Its statements run on a thread of the
//! session's own, which blocks as a call does; the futures only wait to be woken. A statement owns what it uses, so share tables and
//! objects with it by cloning their handles. Sessions cost a thread each and two switches of threads a statement, so use them where the
//! code between two statements has to await, and [`transact_async`](Engine::transact_async) everywhere else.
//!
//! ```
//! use hotrow::{Database, Error, SessionOptions};
//! # use std::task::{Context, Poll, Waker};
//! # fn block_on<F: std::future::Future>(future: F) -> F::Output {
//! #     let mut future = std::pin::pin!(future);
//! #     loop {
//! #         match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
//! #             Poll::Ready(output) => return output,
//! #             Poll::Pending => std::thread::yield_now(),
//! #         }
//! #     }
//! # }
//! # async fn ask_the_bank(_: i64) -> bool { true }
//!
//! let db = Database::open()?;
//! let accounts = db.table::<u32, i64>("accounts").hash(2).create()?;
//! accounts.bulk_insert([(1, 100)])?;
//!
//! let withdraw = async {
//!     let mut session = db.begin_async(SessionOptions::named("withdraw")).await?;
//!     let rows = accounts.clone();
//!     let left = session
//!         .run(move |tx| rows.update(tx, &1, |balance| { *balance -= 30; *balance }))
//!         .await?;
//!     if ask_the_bank(left).await {
//!         session.commit().await?;
//!     }
//!     Ok::<_, Error>(left) // A session that is dropped rolls back.
//! };
//! assert_eq!(block_on(withdraw)?, 70);
//! # Ok::<(), hotrow::Error>(())
//! ```
//!
//! A statement whose future is dropped has no effect, also if it runs at that moment: it is undone before the next one begins. Of
//! a commit whose future is dropped you do not know whether it has happened. A session that is dropped gives up its locks soon, on
//! its own thread; [`roll_back`](AsyncSession::roll_back) is ready when it has.
//!
//! # Fairness
//!
//! Futures do not escalate as calls do, so under heavy contention a long transaction gets through sooner as a call.

#[allow(unused_imports, reason = "the text links to these")]
use crate::*;

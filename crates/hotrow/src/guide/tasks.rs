//! # Asynchronous code: what may block, and for how long
//!
//! [`transact_async`](Engine::transact_async) is [`transact`](Engine::transact) as a future, on any executor. Its body is an
//! ordinary one and cannot `.await`. When it calls [`retry`](Transaction::retry), the task waits, and no thread does:
//!
//! ```
//! use hotrow::prelude::*;
//! # use std::future::Future;
//! # use std::pin::pin;
//! # use std::task::{Poll, Waker};
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
//! # let mut context = std::task::Context::from_waker(Waker::noop());
//! # assert!(worker.as_mut().poll(&mut context).is_pending());
//! db.transact(|tx| jobs.push(tx, "a job"))?;
//! # let Poll::Ready(job) = worker.as_mut().poll(&mut context) else { panic!("it was woken") };
//! # assert_eq!(job, Ok("a job"));
//! # Ok::<(), hotrow::Error>(())
//! ```
//!
//! # Bounds
//!
//! | wait | a call | a poll of a future |
//! |---|---|---|
//! | `retry` | sleeps until a change | never blocks: the task is woken |
//! | locks of other transactions | until they are free, or the policy's deadline | 1 ms in all, then the attempt is lost |
//! | between attempts | pauses of 100 µs at most | never blocks: the task goes to the end of the executor's queue |
//! | an older transaction that is let through | 100 ms and more | 1 ms, then as between attempts |
//! | memory above the engine's limit | 100 ms, then [`Error::MemoryLimit`] | 1 ms at a time, then as between attempts; 100 ms in all |
//! | room in the log | 1 s for a checkpoint to begin, and its duration; then [`Error::NotDurable`] | never blocks; after 10 s [`Error::NotDurable`] |
//! | the log's acknowledgement | until the device is done | never blocks: the task is woken |
//!
//! Not bounded are the body itself, the time for which the machine does not run the thread, a place in line under `drp` and `deferred-2pl`, and,
//! under `chop`, `chop-htm` and `ic3`, the pieces in progress when the transaction begins.
//!
//! A call in a durable database may leave its thread to other tasks while it waits for the device. Give the log a function that runs the wait
//! (`LogOptions::around_waits`), such as `tokio::task::block_in_place` on a runtime of several threads:
//!
//! ```
//! # #[cfg(feature = "durable")] {
//! use hotrow::durable::{AroundWaits, DurableBuilder, LogOptions};
//! # let block_in_place = |wait: &mut dyn FnMut()| wait();
//!
//! let around_waits = Some(AroundWaits::new(move |wait| block_in_place(wait)));
//! let builder = hotrow::Database::builder().log(LogOptions { around_waits, ..LogOptions::default() });
//! # let directory = tempfile::tempdir().unwrap();
//! # let directory = directory.path();
//! let db = builder.open_at(directory).unwrap();
//! # }
//! ```
//!
//! `cargo run --release -p hotrow --example polls` measures polls under every protocol.
//!
//! # Cancelling
//!
//! Between two polls a future holds nothing, so it can be dropped at any await: the transaction has had no effect then, and its
//! [`on_abort`](Transaction::on_abort) hooks run; one that waits for the log's acknowledgement has committed. A future has no timer: put
//! the runtime's own timeout around it, because nothing polls it when the policy's deadline or the limit of
//! [`retry_for`](Transaction::retry_for) passes.
//!
//! Futures do not [escalate](super::errors) as calls do, so under heavy contention a long transaction gets through sooner as a call.
//!
//! # Sessions
//!
//! A transaction that stays open between two awaits is a [session](Engine::begin_async). Its statements run on a thread of its own and own
//! what they use, so clone the handles of tables. A session costs a thread, and a statement two switches of threads.
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
//!     let withdraw = session.run(move |tx| rows.update(tx, &1, |balance| { *balance -= 30; *balance }));
//!     let left = withdraw.await?;
//!     if ask_the_bank(left).await {
//!         session.commit().await?;
//!     }
//!     Ok::<_, Error>(left) // A session that is dropped rolls back.
//! };
//! assert_eq!(block_on(withdraw)?, 70);
//! # Ok::<(), Error>(())
//! ```
//!
//! A statement whose future is dropped has no effect; a commit whose future is dropped may have happened. A dropped session gives up its locks
//! soon, on its own thread; [`roll_back`](AsyncSession::roll_back) is ready when it has.

#[allow(unused_imports, reason = "the text links to these")]
use crate::*;

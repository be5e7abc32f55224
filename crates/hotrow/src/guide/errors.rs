//! # Errors, retries, rollback, panics
//!
//! An operation returns [`Abort`] when the attempt cannot go on; pass it up with `?`. The engine rolls the attempt back and runs the body
//! again, as its [`RetryPolicy`] says: by default without limit, with pauses of at most 100 microseconds, in which the transaction
//! holds nothing. [`set_deadline`](Transaction::set_deadline) lowers the policy's deadline for one transaction, and a [`Canceller`] ends
//! it from another thread ([`cancelled_by`](Transaction::cancelled_by)).
//!
//! A transaction that was aborted 24 times ([`escalate_after`](RetryPolicy::escalate_after)), or lost a second by aborts, gets a *window* in which
//! no other attempt begins: 100 milliseconds, then longer ones. Between two windows each of the others makes an attempt. So every
//! transaction gets through under every protocol.
//!
//! # Errors of a transaction
//!
//! [`transact`](Engine::transact) returns an [`Error`] if the transaction did not commit, and [`Error::NotDurable`] also if it did:
//!
//! | error | cause | [retryable](Error::is_retryable) |
//! |---|---|---|
//! | [`Conflict`](Error::Conflict), [`Timeout`](Error::Timeout) | the policy's attempts or time are used up; names the reason and key of the last abort | yes |
//! | [`Rollback`](Error::Rollback) | the body's own error, which is inside; a [condition](Transaction::require) that does not hold; [`MissingRow`], [`KeyExists`], [`DuplicateKey`], [`ConstraintViolated`], [`Overflow`] | no |
//! | [`Panicked`](Error::Panicked) | a panic in a deferred operation, a constraint, or an earlier statement of the session | no |
//! | [`Cancelled`](Error::Cancelled) | a [`Canceller`], or a session that idled too long | if it idled |
//! | [`MemoryLimit`](Error::MemoryLimit) | more memory is retained than the engine's limit; names the transaction that retains it | unless it was this one |
//! | [`RetryTimeout`](Error::RetryTimeout) | a [wait for a change](super::waiting) took too long | yes |
//! | [`BlockedForever`](Error::BlockedForever) | a wait for a change that cannot come | no |
//! | [`NotDurable`](Error::NotDurable) | the log takes no more; `has_committed` tells if the transaction has committed in memory | no |
//! | [`Misuse`](Error::Misuse) | the transaction can never succeed: it is nested in another one, say, or writes although it was declared read-only. [`Misuse::downcast_ref`] finds what tables refuse, a [`TableMisuse`] | no |
//!
//! # The body's own errors
//!
//! A body may end with an error of any type: `?` passes it up, all is rolled back, and [`Error::Rollback`] has it inside, with its
//! sources. [`ensure`](Transaction::ensure) does so unless a condition holds; [`Abort::because`] takes texts and boxed errors (`anyhow`'s,
//! too). A function that a body calls returns `Result<T, Abort>`. [`try_transact`](Engine::try_transact) returns errors of one type
//! that implements `From<Abort>` unboxed.
//!
//! ```
//! use hotrow::{Abort, Database, Error, TBox};
//!
//! #[derive(Debug, PartialEq, thiserror::Error)]
//! #[error("{missing} more would be needed")]
//! struct Overdrawn { missing: i64 }
//!
//! let db = Database::open()?;
//! let account = TBox::new(&db, 10i64);
//! let refused = db.transact(|tx| {
//!     let left = account.update(tx, |balance| { *balance -= 30; *balance })?;
//!     tx.ensure(left >= 0, Overdrawn { missing: -left })?;
//!     Ok(left)
//! });
//! let refused = refused.unwrap_err();
//! assert_eq!(refused.downcast_ref(), Some(&Overdrawn { missing: 20 }));
//! assert_eq!(refused.to_string(), "rolled back: 20 more would be needed");
//! assert_eq!(db.transact(|tx| account.get(tx)), Ok(10));
//!
//! assert!(matches!(db.transact(|_| Ok("ten".parse::<i64>()?)), Err(Error::Rollback(_))));
//! assert!(matches!(db.transact(|_| Err::<(), _>(Abort::because("no"))), Err(Error::Rollback(_))));
//! # Ok::<(), Error>(())
//! ```
//!
//! # Savepoints
//!
//! A [`savepoint`](Transaction::savepoint) runs a part of the body that may fail alone: its writes are then undone, and the body
//! goes on. [`or_else`](Transaction::or_else) runs another part instead. The reads of an undone part still count. An error that the body
//! catches without a savepoint ends the transaction with [`Misuse::CaughtError`] ([mistakes](super::mistakes)), because the writes before it would stay.
//!
//! ```
//! use hotrow::{Abort, Database, Error, Transaction};
//!
//! let db = Database::open()?;
//! let seats = db.table::<u8, u32>("free seats").hash(2).create()?;
//! let orders = db.table::<u64, u8>("orders").hash(100).create()?;
//! let (stalls, balcony) = (1, 2);
//! seats.bulk_insert([(stalls, 0), (balcony, 3)])?;
//!
//! let order = |tx: &mut Transaction<'_>, number: u64, place: u8| {
//!     orders.insert(tx, number, place)?;
//!     let was = seats.update(tx, &place, |free| std::mem::replace(free, free.saturating_sub(1)))?;
//!     tx.ensure(was > 0, "sold out")?;
//!     Ok::<_, Abort>(place)
//! };
//! let took = db.transact(|tx| tx.or_else(|tx| order(tx, 1, stalls), |tx| order(tx, 1, balcony)));
//! assert_eq!(took, Ok(balcony), "the order of the stalls is undone");
//! # Ok::<(), Error>(())
//! ```
//!
//! # Retained memory
//!
//! A replaced value stays in memory until every transaction of the process that was open then has ended.
//! [`Engine::retained_memory`] tells how much is retained, and by whom; [`Engine::collect`] frees what can be freed. Above the limit of
//! [`Engine::set_retained_bytes_max`], transactions that write wait for up to 100 milliseconds and then fail, and the transaction
//! that retains most is told to end.
//!
//! ```
//! # use hotrow::{Database, TBox};
//! # let db = Database::open()?;
//! # let number = TBox::new(&db, 1);
//! db.set_retained_bytes_max(Some(256 << 20));
//! db.transact(|tx| {
//!     number.get(tx)?;
//!     let memory = db.retained_memory();
//!     println!("{} bytes are retained; {}", memory.bytes, memory.oldest().expect("this transaction"));
//!     Ok(())
//! })?;
//! # Ok::<(), hotrow::Error>(())
//! ```
//!
//! # Panics
//!
//! A panic in a body rolls the attempt back, releases everything, and propagates to the caller. The engine and other threads go on.
//!
//! ```
//! # use hotrow::{Database, TBox};
//! # use std::panic::{AssertUnwindSafe, catch_unwind};
//! # let db = Database::open()?;
//! # let number = TBox::new(&db, 1);
//! let panicked = catch_unwind(AssertUnwindSafe(|| {
//!     db.transact(|tx| {
//!         number.set(tx, 2)?;
//!         if number.get(tx)? == 2 { panic!("on second thoughts") }
//!         Ok(())
//!     })
//! }));
//! assert!(panicked.is_err());
//! assert_eq!(db.transact(|tx| number.get(tx)), Ok(1));
//! # Ok::<(), hotrow::Error>(())
//! ```
//!
//! A call that panics has not committed, unless the panic is that of a [hook](super::waiting#hooks). After a commit a panic of the program's
//! code is reported by the panic hook and does not propagate: in a key's `Hash` or image when a deleted row leaves its index (the
//! row then stays there, dead), and in the `Drop` of replaced or deleted values and of what deferred operations captured.
//!
//! A leaked transaction ([`std::mem::forget`] of an [`OpenTransaction`]) keeps its locks and insertions, and the memory that others retire
//! from then on.

#[allow(unused_imports, reason = "the text links to these")]
use crate::*;

//! # Errors, retries, rollback, panics
//!
//! Operations return [`Abort`] when the attempt cannot go on; pass it up with `?`. The engine then rolls the attempt
//! back and runs the body again, as its [`RetryPolicy`] says. By default it does so for ever: it first spins for a
//! short time, then pauses for random times of at most 100 microseconds. The transaction holds nothing during these
//! pauses. (A deadline also ends waits for locks.) One transaction may have an earlier deadline than the policy's
//! ([`set_deadline`](Transaction::set_deadline)), and may let another thread end it
//! ([`cancelled_by`](Transaction::cancelled_by) a [`Canceller`]), also while it waits for a lock.
//!
//! A transaction that was aborted 24 times, or lost a second by aborts, asks the others to let it through: while it
//! has a *window*, no other attempt begins. A window first lasts at most 100 milliseconds, and longer each time it
//! was too short for the transaction's attempts. Between two windows each of the others makes an attempt. So a
//! transaction of any size ends under every protocol, whatever runs beside it. The others wait a few times as long as
//! one of its attempts takes. A transaction that sleeps in its body makes them wait once.
//!
//! [`transact`](Engine::transact) returns an [`Error`] only if the transaction did not commit:
//!
//! | error | when | worth running again |
//! |---|---|---|
//! | [`Error::Conflict`] | the policy's attempts are used up; names the last abort's reason and key | yes |
//! | [`Error::Timeout`] | the policy's time is used up; names the same | yes |
//! | [`Error::Rollback`] | the body returned an error of its own, which is inside; a [condition](Transaction::require) did not hold; or an operation did: [`MissingRow`], [`KeyExists`], [`DuplicateKey`], [`ConstraintViolated`] | no |
//! | [`Error::Panicked`] | a deferred operation panicked, or the condition of a constraint, or an earlier statement of the session | no |
//! | [`Error::Cancelled`] | a [`Canceller`] was used, or a session idled for longer than its limit | if it idled |
//! | [`Error::MemoryLimit`] | more memory is retained than the engine's limit, if it has one; names the transaction that retains it | yes, unless that was this transaction |
//! | [`Error::Misuse`] | the transaction can never succeed: a nested transaction (of whatever database), an object of another database, an index out of bounds, an error caught without a savepoint, a change of an immutable table, a scan of a hash table, a write in a read-only transaction, too many workers, a deferred value of another transaction; what tables refuse is a [`TableMisuse`], which [`Misuse::downcast_ref`] finds | no |
//!
//! A body may end with an error of any type: `?` passes it up, everything is rolled back, and the error comes back inside
//! [`Error::Rollback`], with its whole chain of sources. [`ensure`](Transaction::ensure) does so unless a condition holds. For
//! texts and for boxed errors (`anyhow`'s, too) there is [`Abort::because`]: `Err(Abort::because("no"))`,
//! `.map_err(Abort::because)?`. A function that a body calls returns `Result<T, Abort>`, not `Result<T, Error>`, which is what
//! whole transactions return. (A body whose errors are all of one type that
//! implements `From<Abort>` may run with [`try_transact`](Engine::try_transact), which returns them unboxed.)
//!
//! ```
//! use hotrow::{Database, Error, RetryPolicy, TBox};
//! use std::time::Duration;
//!
//! #[derive(Debug, PartialEq, thiserror::Error)]
//! #[error("{missing} more would be needed")]
//! struct Overdrawn {
//!     missing: i64,
//! }
//!
//! let policy = RetryPolicy {
//!     attempts_max: 1_000,
//!     deadline: Some(Duration::from_secs(1)),
//!     ..RetryPolicy::default()
//! };
//! let db = Database::builder().retry_policy(policy).open()?;
//! let account = TBox::new(&db, 10i64);
//!
//! let refused = db.transact(|tx| {
//!     let left = account.update(tx, |balance| { *balance -= 30; *balance })?;
//!     tx.ensure(left >= 0, Overdrawn { missing: -left })?;
//!     Ok(left)
//! });
//! let refused = refused.unwrap_err();
//! assert_eq!(refused.downcast_ref(), Some(&Overdrawn { missing: 20 }));
//! assert_eq!(refused.to_string(), "rolled back: 20 more would be needed");
//! assert_eq!(db.transact(|tx| account.get(tx)), Ok(10), "rolled back");
//!
//! let parsed = db.transact(|_| Ok("ten".parse::<i64>()?));
//! assert!(matches!(parsed, Err(Error::Rollback(_))));
//! # Ok::<(), hotrow::Error>(())
//! ```
//!
//! A part of a body that may fail alone runs behind a [`savepoint`](Transaction::savepoint): if it returns an error, its
//! writes are undone, and the body goes on. [`or_else`](Transaction::or_else) runs another part in its stead. The reads of
//! an undone part still count, because the body goes on as it does only for that reason. An error that the body catches
//! without a savepoint would leave behind what was written before it, so it ends the transaction with
//! [`Misuse::CaughtError`].
//!
//! ```
//! use hotrow::{Abort, Database, Error, Misuse, Transaction};
//!
//! let db = Database::open()?;
//! let seats = db.table::<u8, u32>("free seats").hash(2).create()?;
//! let orders = db.table::<u64, u8>("orders").hash(100).create()?;
//! let (stalls, balcony) = (1, 2);
//! seats.bulk_insert([(stalls, 0), (balcony, 3)])?;
//!
//! let order = |tx: &mut Transaction<'_>, number: u64, place: u8| {
//!     orders.insert(tx, number, place)?;
//!     let took = seats.update(tx, &place, |free| {
//!         let is_free = *free > 0;
//!         *free -= u32::from(is_free);
//!         is_free
//!     })?;
//!     tx.ensure(took, "sold out")?;
//!     Ok::<_, Abort>(place)
//! };
//! let took = db.transact(|tx| tx.or_else(|tx| order(tx, 1, stalls), |tx| order(tx, 1, balcony)));
//! assert_eq!(took, Ok(balcony), "and the order of the stalls is undone");
//!
//! let caught = db.transact(|tx| Ok(order(tx, 2, stalls).unwrap_or(0)));
//! assert_eq!(caught, Err(Error::Misuse(Misuse::CaughtError)));
//! # Ok::<(), hotrow::Error>(())
//! ```
//!
//! A replaced value stays in memory until every transaction that was open at that time has ended, whatever its
//! engine, so one long transaction makes the process grow. [`Engine::retained_memory`] returns how much is retained
//! and by which transaction. When a transaction or snapshot ends that has retained much, this is freed; [`Engine::collect`] frees at once
//! all that can be. [`Engine::set_retained_bytes_max`] sets a limit. Above it, transactions that write wait
//! and then fail, and the transaction that retains most is told to end.
//!
//! ```
//! # use hotrow::{Database, TBox};
//! # let db = Database::open()?;
//! # let number = TBox::new(&db, 1);
//! db.set_retained_bytes_max(Some(256 << 20));
//! db.transact(|tx| {
//!     number.get(tx)?;
//!     let memory = db.retained_memory();
//!     let oldest = memory.oldest().expect("this transaction, at least");
//!     println!("{} bytes are retained; {oldest}", memory.bytes);
//!     Ok(())
//! })?;
//! # Ok::<(), hotrow::Error>(())
//! ```
//!
//! A panic in a body rolls the attempt back, releases everything, and propagates to the caller. The engine and other
//! threads go on.
//!
//! A call that panics has not committed, unless one of its [hooks](crate::guide::waiting) has panicked. After a commit only little user code is left to run, and a panic in it can
//! no longer undo anything: the panic hook reports it, and it does not propagate. This is
//!
//! - a key's `Hash`, or its image, when a deleted row is removed from its index. After a panic the row stays in the
//!   index, dead, until another operation meets it there or the table is dropped;
//! - the `Drop` of what deferred operations captured;
//! - the `Drop` of replaced or deleted values and keys, of any transaction, that are freed at this time. Any thread
//!   may drop such a value, and a panic in one does not stop the others from being dropped. (Two panics *within* one
//!   value or row end the process, as everywhere in Rust.)
//!
//! When an attempt is rolled back, a panic in the first two (its inserted rows are removed from their index)
//! propagates after everything has been released. A key whose `Debug` panics is reported as a key that cannot be
//! shown.
//!
//! A leaked transaction ([`std::mem::forget`] of an [`OpenTransaction`]) never ends. Like a dead thread, it keeps all
//! that it holds: its locks, its insertions, its deferred operations, and the memory that others retire from then on.
//!
//! ```
//! # use hotrow::{Database, TBox};
//! # use std::panic::{AssertUnwindSafe, catch_unwind};
//! # let db = Database::open()?;
//! # let number = TBox::new(&db, 1);
//! let panicked = catch_unwind(AssertUnwindSafe(|| {
//!     db.transact(|tx| {
//!         number.set(tx, 2)?;
//!         if number.get(tx)? == 2 {
//!             panic!("on second thoughts");
//!         }
//!         Ok(())
//!     })
//! }));
//! assert!(panicked.is_err());
//! assert_eq!(db.transact(|tx| number.get(tx)), Ok(1));
//! # Ok::<(), hotrow::Error>(())
//! ```

#[allow(unused_imports, reason = "the text links to these")]
use crate::*;

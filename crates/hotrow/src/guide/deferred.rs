//! # Deferred operations
//!
//! A transaction that adds to a hot counter need not know its value at once. A *deferred* operation declares its work
//! and returns a [`Deferred`] value, a handle for the result. Handles are inputs of other deferred operations;
//! operators and comparisons on them give [expressions](Expression), which are inputs too. The body returns the
//! handle of the transaction's result to [`transact_deferred`](Engine::transact_deferred), which returns the value.
//!
//! The paper's example (drp §2, §6.2) moves money and counts the transfers:
//!
//! ```
//! use hotrow::{Counter, Database, Error, TArray, TCounter};
//!
//! let db = Database::builder().protocol("drp").open()?; // Under any other protocol the result is the same.
//! let accounts = TArray::new(&db, 10, |_| 100i64);
//! let transfers = TCounter::new(&db, 0);
//!
//! let transfer = |from: usize, to: usize, amount: i64| {
//!     db.transact_deferred(|tx| {
//!         let balance = accounts.defer_read(tx, from, |balance| *balance)?;
//!         tx.require(balance.at_least(amount))?; // Rolls back unless it holds.
//!         accounts.defer_set(tx, from, balance - amount)?;
//!         transfers.defer_add(tx, 1)?;
//!         // Any code will do. It gets its inputs when they are known; here there are none.
//!         accounts.defer_update(tx, to, (), move |balance, ()| {
//!             *balance += amount;
//!             *balance
//!         })
//!     })
//! };
//! assert_eq!(transfer(1, 2, 70)?, 170);
//! assert!(matches!(transfer(1, 2, 70), Err(Error::Rollback(_))), "30 are left");
//! assert_eq!(db.transact(|tx| Ok((accounts.get(tx, 1)?, transfers.get(tx)?)))?, (30, 1));
//!
//! assert_eq!(db.statistics().count(&Counter::TAME_COMMITS), 1); // Under `drp`; others defer nothing.
//! # Ok::<(), hotrow::Error>(())
//! ```
//!
//! Under `drp` deferred operations run when the transaction commits. A transaction that has read nothing before
//! then is *tame*: it acquires its place in line on every segment that it will touch, and can no longer lose it. It is
//! still aborted, and runs again, in three rare cases: its worker had met nobody for a while and ran it at once (`drp+tame`
//! never does that, and its next attempt does not); a row that was there when its operation was deferred has been
//! deleted before its turn ([`Reason::ReadChanged`]), or an operation had to touch more than it had declared
//! ([`Reason::Undeclared`]; the next attempt then defers nothing).
//!
//! Under every other protocol a deferred operation runs at once. So one source serves all protocols, and only the
//! speed differs.
//!
//! - **Operations that are not deferred** may be mixed in. They see what was deferred before on the same object, and
//!   [`force`](Transaction::force) returns a deferred value at once. Both run everything that was deferred so far. A
//!   transaction that reads in this way is *wild*: it may be aborted and run again, as under other protocols.
//! - **A computation** ([`compute`](Transaction::compute), [`map`](Deferred::map)) gets values and returns one. It
//!   owns what it captures, and must not begin a transaction ([`Misuse::Nested`]).
//! - **A panic** in a deferred operation is [`Error::Panicked`] under every protocol. Like a
//!   [condition](Transaction::require) that does not hold, it rolls the whole transaction back. Other transactions go
//!   on.
//! - **A handle** is valid in its own attempt only; elsewhere it is [`Misuse::ForeignDeferred`].
//! - **Ranks** ([`TBox::set_rank`] and its siblings) define the order in which transactions acquire segments (*line
//!   up*). Give the most contended objects the highest ranks: they are then held for the shortest time.

#[allow(unused_imports, reason = "the text links to these")]
use crate::*;

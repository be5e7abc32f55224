//! # Deferred operations
//!
//! A *deferred* operation declares its work and returns a [`Deferred`] value, a handle for the result. Handles, and
//! [expressions](Expression) made of them, are inputs of other deferred operations. The body returns the handle of its result to
//! [`transact_deferred`](Engine::transact_deferred), which returns the value. This program moves money and counts the transfers:
//!
//! ```
//! use hotrow::{Database, Error, TArray, TCounter};
//!
//! let db = Database::builder().protocol("drp").open()?; // Under any other protocol the result is the same.
//! let accounts = TArray::new(&db, 10, |_| 100i64);
//! let transfers = TCounter::new(&db, 0);
//! let transfer = |from: usize, to: usize, amount: i64| {
//!     db.transact_deferred(|tx| {
//!         let balance = accounts.defer_read(tx, from, |balance| *balance)?;
//!         tx.require(balance.at_least(amount))?; // Rolls back unless it holds.
//!         accounts.defer_set(tx, from, balance - amount)?;
//!         transfers.defer_add(tx, 1)?;
//!         // Any closure. It gets its inputs when they are known; this one has none.
//!         accounts.defer_update(tx, to, (), move |balance, ()| { *balance += amount; *balance })
//!     })
//! };
//! assert_eq!(transfer(1, 2, 70)?, 170);
//! assert!(matches!(transfer(1, 2, 70), Err(Error::Rollback(_))), "30 are left");
//! assert_eq!(db.transact(|tx| transfers.get(tx))?, 1);
//! # Ok::<(), Error>(())
//! ```
//!
//! Under `drp` and `deferred-2pl` deferred operations run when the transaction commits. Under every other protocol they run at once, so that
//! one source serves all protocols.
//!
//! A transaction that reads nothing before its commit is *tame*: it takes a place in line on each segment that it will touch, and no
//! other transaction can take that place away. [`Counter::TAME_COMMITS`] counts such commits. A tame transaction is aborted, and runs again, only
//! if
//!
//! - its worker had met no other transaction for a while and ran the operations at once (`drp+tame` never does that);
//! - a row that was there when its operation was deferred is deleted before the operation's turn ([`Reason::ReadChanged`]);
//! - another transaction, which is not tame, is inserting a row under the same key ([`Reason::ReadLocked`]);
//! - an operation has to touch more than it declared ([`Reason::Undeclared`]; the next attempt defers nothing).
//!
//! # Rules
//!
//! - **Operations that are not deferred** may be mixed in, and see what was deferred before on the same object. [`force`](Transaction::force)
//!   runs all deferred operations and returns a value at once. A transaction that reads in this way is *wild*: it may be aborted as
//!   under any other protocol.
//! - **A computation** ([`compute`](Transaction::compute), [`map`](Deferred::map)) owns what it captures, and must not begin a
//!   transaction ([`Misuse::Nested`]).
//! - **A panic** in a deferred operation, or a [condition](Transaction::require) that does not hold, rolls the transaction back.
//! - **A handle** is valid in its own attempt only ([`Misuse::ForeignDeferred`]).
//! - **Ranks** ([`TBox::set_rank`], [`TableBuilder::rank`]) are the order in which transactions acquire segments. Give the most contended
//!   objects the highest ranks, so that they are held for the shortest time.

#[allow(unused_imports, reason = "the text links to these")]
use crate::*;

//! # Procedures and contexts
//!
//! A [`Procedure`] is a transaction written once against an abstract [`Context`], so that a database can interpret it in several ways. It names
//! tables by references ([`Table::reference`]), which do not depend on the protocol. Its values belong to the context ([`Context::Val`]);
//! [`force`](Context::force) makes a plain value where a key or a branch depends on one. [`Operations`] and [`Procedures`] are
//! traits to bring into scope, as the [prelude] does.
//!
//! ```
//! use hotrow::{Context, Database, Operations, Procedure, Procedures, TableRef};
//!
//! /// Moves money; returns true if there was enough of it.
//! struct Transfer {
//!     accounts: TableRef<u32, i64>,
//!     from: u32,
//!     to: u32,
//!     amount: i64,
//! }
//!
//! impl Procedure for Transfer {
//!     type Output = bool;
//!     fn run<C: Context>(&self, cx: &mut C) -> Result<C::Val<bool>, C::Stop> {
//!         let (key, amount) = (cx.value(self.from), cx.value(self.amount));
//!         let covered = cx.update(self.accounts, key, amount.clone(), |balance, amount| {
//!             *balance -= amount;
//!             *balance >= 0
//!         })?;
//!         let covered = cx.map(covered, |covered| covered == Some(true));
//!         cx.require(covered.clone())?; // Rolls back unless it holds.
//!         let key = cx.value(self.to);
//!         cx.commute(self.accounts, key, amount, |balance, amount| *balance += amount)?;
//!         Ok(covered)
//!     }
//! }
//!
//! let db = Database::open()?;
//! let accounts = db.table::<u32, i64>("accounts").hash(10).create()?;
//! accounts.bulk_insert([(1, 100), (2, 0)])?;
//!
//! let transfer = Transfer { accounts: accounts.reference(), from: 1, to: 2, amount: 70 };
//! let trace = db.trace(&transfer)?; // Changes nothing.
//! assert_eq!(trace.to_string(), "  0 Write accounts[1]\n  1 Commutative accounts[2] if 0\n");
//! assert_eq!(db.execute(&transfer), Ok(true));
//! assert!(db.execute(&transfer).is_err(), "30 are left");
//! assert_eq!(db.transact(|tx| accounts.get(tx, &2))?, Some(70));
//! # Ok::<(), hotrow::Error>(())
//! ```
//!
//! | context | runs operations | used by |
//! |---|---|---|
//! | [`Eager`](context::Eager) | at once, like a closure; [`commute`](Operations::commute) is a change [at the commit](Table::apply) | [`Procedures::execute`] |
//! | [`Recording`](context::Recording) | at the commit, or with the help of waiting workers | `execute`, under `drp`, `deferred-2pl`, `steal`, `steal-basic` |
//! | [`Tracing`](context::Tracing) | at once, rolls back, and returns them with tables, keys, kinds and dependencies | [`Procedures::trace`] |
//!
//! Under `chop`, `chop-htm` and `ic3` a database that was told its procedures ([`Procedures::chop`], see [`chopping`]) executes them in pieces. A
//! procedure whose profile says that it only reads runs on a [strict snapshot](super::snapshots).
//!
//! Closures given to a context must depend only on their arguments and on plain captured data, and have no side effects: a context may run them
//! late or more than once.

#[allow(unused_imports, reason = "the text links to these")]
use crate::*;

//! # Procedures and contexts
//!
//! A closure is the short form of a transaction. A [`Procedure`] is the long form: it is written once against an
//! abstract [`Context`], so that other interpreters than direct execution can run it. It names tables by references
//! from a [`Database`], which do not depend on the protocol. Values inside it belong to the context
//! ([`Context::Val`]). Where a key or a branch depends on a value, [`force`](Context::force) turns it into a plain
//! one. The operations are methods of [`Operations`], and those that execute a procedure are methods of [`Procedures`]: two traits to be brought
//! into scope, as the [prelude] does.
//!
//! *Eager*, the simplest context, runs each operation at once, as a closure would, and compiles to the same code;
//! [`commute`](Operations::commute) is a change [at the commit](crate::Table::apply) there. *Tracing* runs the procedure, rolls it back, and
//! returns its operations in order. For each it lists the table, the key, the kind, and the operations on whose
//! results it depends. Under a protocol that defers or shares operations, [`Procedures::execute`] uses a context made
//! for that ([`Recording`](context::Recording)).
//!
//! ```
//! use hotrow::{Context, Database, Operations, Procedure, Procedures, TableRef};
//!
//! /// Moves money; says whether there was enough of it.
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
//!             let covered = *balance >= amount;
//!             if covered {
//!                 *balance -= amount;
//!             }
//!             covered
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
//! Closures given to a context must depend only on their arguments and on plain captured data, and must have no side
//! effects: a context may run them late or more than once.

#[allow(unused_imports, reason = "the text links to these")]
use crate::*;

//! # A ledger: payments that happen once
//!
//! A payment takes money from an account and adds it to one settlement account. No account may be overdrawn. The settlement account is the hot row. A
//! client that got no answer sends its payment again, under the same key. The ledger survives a crash.
//!
//! ```
//! use hotrow::prelude::*;
//! use hotrow::{Column, Error};
//! use std::ops::ControlFlow;
//! use std::path::Path;
//!
//! const SETTLEMENT: u64 = 0;
//!
//! #[derive(Debug, Clone, PartialEq, Value, Stored)]
//! struct Payment {
//!     account: u64,
//!     cents: u32,
//! }
//!
//! #[derive(Debug, thiserror::Error)]
//! #[error("account {account} has less than {cents} cents")]
//! struct Overdrawn {
//!     account: u64,
//!     cents: u32,
//! }
//!
//! struct Ledger {
//!     db: Database,
//!     balances: Table<u64, i64>,
//!     payments: Table<String, Payment>,
//! }
//!
//! impl Ledger {
//!     fn open(directory: &Path) -> Result<Self, Box<dyn std::error::Error>> {
//!         let db = Database::builder().checkpoint_after(64 << 20).open_at(directory)?;
//!         let (balances, payments) = (db.table("balances").create()?, db.table("payments").create()?);
//!         Ok(Self { db, balances, payments })
//!     }
//!
//!     /// Makes a payment, or returns the one that was made under the same key.
//!     fn pay(&self, key: &str, account: u64, cents: u32) -> Result<Payment, Error> {
//!         self.db.transact(|tx| {
//!             if let Some(earlier) = self.payments.get(tx, key)? {
//!                 return Ok(earlier);
//!             }
//!             let payment = Payment { account, cents };
//!             self.payments.insert(tx, key.to_owned(), payment.clone())?;
//!             let amount = i64::from(cents);
//!             let enough = self.balances.subtract_if_enough(tx, &account, Column::whole(), amount)?;
//!             tx.ensure(enough, Overdrawn { account, cents })?;
//!             self.balances.add(tx, &SETTLEMENT, Column::whole(), amount)?; // The hot row: last, and not read.
//!             Ok(payment)
//!         })
//!     }
//!
//!     /// The sum of all balances at one moment.
//!     fn total(&self) -> Result<i64, Error> {
//!         self.db.snapshot_strict()?.transact(|tx| {
//!             let mut total = 0;
//!             self.balances.scan(tx, .., Direction::Ascending, |_, balance| {
//!                 total += balance;
//!                 ControlFlow::Continue(())
//!             })?;
//!             Ok(total)
//!         })
//!     }
//! }
//!
//! # let directory = tempfile::tempdir()?;
//! # let directory = directory.path();
//! let ledger = Ledger::open(directory)?;
//! ledger.balances.bulk_insert([(SETTLEMENT, 0), (1, 1_000), (2, 1_000)])?;
//! let paid = ledger.pay("order-17", 1, 700)?; // On the device, because it has returned.
//! assert_eq!(ledger.pay("order-17", 1, 700)?, paid, "sent again, paid once");
//! let refused = ledger.pay("order-18", 1, 700).unwrap_err();
//! assert_eq!(refused.to_string(), "rolled back: account 1 has less than 700 cents");
//! ledger.db.close()?;
//! drop(ledger);
//!
//! let ledger = Ledger::open(directory)?; // The next process.
//! assert_eq!(ledger.pay("order-17", 1, 700)?, paid, "sent again after a restart");
//! assert_eq!(ledger.db.transact(|tx| ledger.balances.get(tx, &1))?, Some(300));
//! assert_eq!(ledger.total()?, 2_000);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Guarantees
//!
//! No money appears or disappears, and no account is overdrawn. Each key pays once. If two copies arrive together, one inserts the key. The other
//! loses the conflict, runs again, and returns the payment of the first copy. A payment that `pay` has returned is on the device.
//!
//! # Failures
//!
//! - `Overdrawn`, as above. If an account is missing: `rolled back: balances has no row with key 3`. If the settlement account is full
//!   ([`Overflow`]): `rolled back: an addition to balances[0] leaves the range of the number`.
//! - After a conflict the body runs again. If the [`RetryPolicy`] has a deadline, the payment may end with
//!   `deadline passed: a value that was read has changed: balances[1], attempt 2`.
//! - [`Error::NotDurable`]: the log has failed, for example because the device is full. Its text begins with `not durable: rolled back, …`, or with
//!   `not durable: committed in memory, but perhaps not on the device: …`. In the second case the client does not know if it has paid. It sends the
//!   payment again after a restart, under the same key.
//!
//! # Speed on a hot row
//!
//! - [`add`](Table::add) does not read the settlement account. The commit adds, so that payments from different accounts do not abort each other.
//! - A commit releases its locks before it waits for the device, and one write of the device serves all commits that wait. So use many threads, or
//!   [`transact_async`](Engine::transact_async); one thread that waits for each payment makes one payment for each write.
//! - [Tickets](super::durability) let a thread go on before the device is done.
//! - The commit can add to inline rows without indexes and constraints. A [check](TableBuilder::check) would make each payment read the settlement
//!   account.
//!
//! See also: [durability](super::durability), [crash safety](super::crash), [snapshots](super::snapshots), [hot rows](super::hot_rows).
//! `examples/src/ledger.rs` puts load on such a ledger, and on other stores to compare.

#[allow(unused_imports, reason = "the text links to these")]
use crate::*;

//! # A report while others write: read on a snapshot
//!
//! A report adds up all accounts while payments change them. As an ordinary transaction it would conflict with each payment, and lose. On a
//! *snapshot* it reads the state of one moment; it never aborts, and no payment waits for it.
//!
//! ```
//! use hotrow::{Database, Direction, Error, Table};
//! use std::ops::ControlFlow;
//! use std::sync::atomic::{AtomicBool, Ordering};
//!
//! const ACCOUNTS: u64 = 1_000;
//!
//! struct Bank {
//!     db: Database,
//!     accounts: Table<u64, i64>,
//! }
//!
//! #[derive(Debug, Default)]
//! struct Report {
//!     accounts: u64,
//!     sum: i64,
//! }
//!
//! impl Bank {
//!     fn open() -> Result<Self, Error> {
//!         let db = Database::open()?;
//!         let accounts = db.table("accounts").create()?; // Ordered: a hash table cannot be scanned.
//!         accounts.bulk_insert((0..ACCOUNTS).map(|account| (account, 100)))?;
//!         Ok(Self { db, accounts })
//!     }
//!
//!     fn transfer(&self, from: u64, to: u64, amount: i64) -> Result<(), Error> {
//!         self.db.transact(|tx| {
//!             self.accounts.update(tx, &from, |balance| *balance -= amount)?;
//!             self.accounts.update(tx, &to, |balance| *balance += amount)
//!         })
//!     }
//!
//!     fn report(&self) -> Result<Report, Error> {
//!         self.db.snapshot_strict()?.transact(|tx| {
//!             let mut report = Report::default();
//!             self.accounts.scan(tx, .., Direction::Ascending, |_, balance| {
//!                 report.accounts += 1;
//!                 report.sum += balance;
//!                 ControlFlow::Continue(())
//!             })?;
//!             Ok(report)
//!         })
//!     }
//! }
//!
//! let bank = Bank::open()?;
//! let is_over = AtomicBool::new(false);
//! std::thread::scope(|scope| {
//!     scope.spawn(|| {
//!         for number in 0.. {
//!             bank.transfer(number % ACCOUNTS, (number + 7) % ACCOUNTS, 5).unwrap();
//!             if is_over.load(Ordering::Relaxed) { break }
//!         }
//!     });
//!     for _ in 0..20 {
//!         let report = bank.report().unwrap();
//!         assert_eq!((report.accounts, report.sum), (ACCOUNTS, 100_000));
//!     }
//!     is_over.store(true, Ordering::Relaxed);
//! });
//!
//! // A snapshot only reads.
//! let refused = bank.db.snapshot()?.transact(|tx| bank.accounts.delete(tx, &1)).unwrap_err();
//! let text = "misuse: a transaction declared as read-only was about to write accounts: leave the declaration out";
//! assert_eq!(refused.to_string(), text);
//! # Ok::<(), Error>(())
//! ```
//!
//! # Guarantees
//!
//! The report shows the effects of all transactions up to one moment, and of none after it, in all tables and objects, under every protocol.
//! [`snapshot_strict`](Engine::snapshot_strict) shows everything that was committed before the call; [`snapshot`](Engine::snapshot) shows a moment
//! that is about a millisecond old at most. In a durable database a strict snapshot shows what is on the device.
//!
//! Several transactions on one [`Snapshot`] read the same moment. So a report may read that moment in pages, one after the other.
//!
//! # Failures
//!
//! A transaction on a snapshot runs once and has no conflict. A write is refused with the misuse above. The elements of a [`TQueue`] and a
//! [`TBoostedMap`] have no snapshots: `misuse: queue cannot be read on a snapshot`.
//!
//! The same report by [`transact`](Engine::transact) is correct, too. But a row that changes after it was read costs the whole attempt. After 24 lost
//! attempts, or a second, the engine gives the report a [window](super::errors) in which no other attempt begins.
//!
//! # Speed
//!
//! - Drop the snapshot when the report is done. While one is open, commits keep the values that they replace, one version of each value.
//! - If transactions are short and reports are rare, `snapshot_strict` costs writers less than `snapshot`.
//! - An index in the report's order saves a sort: see [tables](super::tables).
//! - If a total is read all the time, keep it in a row, and let each transaction [add](Table::add) to this row.
//! - In a server, run a long report on a thread of its own (`spawn_blocking`).
//!
//! See also: [snapshots](super::snapshots), [transaction profiles](super::profiles), which ask for a snapshot for one transaction,
//! [tasks](super::tasks). `examples/src/leaderboard.rs` reads an index in order.

#[allow(unused_imports, reason = "the text links to these")]
use crate::*;

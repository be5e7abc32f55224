//! # Snapshots: reading without being in the way
//!
//! A *snapshot* is the state of all objects and tables at one moment. Transactions on it only read, run once, and never abort; writers do
//! not wait for them and do not abort because of them. This holds under every protocol. Use it for reports, audits and large scans.
//!
//! ```
//! use hotrow::{Database, Direction, Error, Misuse};
//! use std::ops::ControlFlow;
//!
//! let db = Database::open()?;
//! let accounts = db.table::<u64, i64>("accounts").create()?;
//! accounts.bulk_insert((0..100).map(|number| (number, 10)))?;
//!
//! let snapshot = db.snapshot_strict()?;
//! db.transact(|tx| accounts.delete(tx, &8))?;
//!
//! let mut sum = 0;
//! snapshot.transact(|tx| {
//!     accounts.scan(tx, .., Direction::Ascending, |_, balance| { sum += balance; ControlFlow::Continue(()) })
//! })?;
//! assert_eq!(sum, 1_000, "as it was when the snapshot was opened");
//! let refused = snapshot.transact(|tx| accounts.delete(tx, &9));
//! assert!(matches!(refused, Err(Error::Misuse(Misuse::ReadOnly { .. }))));
//! # Ok::<(), Error>(())
//! ```
//!
//! | call | sees | waits |
//! |---|---|---|
//! | [`Engine::snapshot`] | everything up to a moment about a millisecond back at most ([`Snapshot::staleness`]) | for nobody, unless none of this kind was in use for 100 ms: then as the next line |
//! | [`Engine::snapshot_strict`] | everything committed before the call | for commits that are just installing |
//! | either, if commits wait for the device | everything that is on the device, and so all that was acknowledged | for nobody, unless none was in use for 100 ms or a commit was acknowledged early: then its transactions wait for the device when they end |
//!
//! One transaction alone asks by its [profile](super::profiles): [`Isolation::Snapshot`], [`Isolation::StrictSnapshot`]. A
//! [procedure](Procedure) whose profile says that it only reads runs on a strict snapshot, unless [`Procedures::set_readers_isolation`] says
//! otherwise.
//!
//! # Costs
//!
//! - While a snapshot is open, a commit that replaces a value keeps the old one, once for all commits between two snapshots. After
//!   [`Engine::snapshot`] it does so for another 100 ms, because the next one must not wait. Where transactions are short and few only
//!   read, [`Engine::snapshot_strict`] therefore costs the writers less.
//! - An open snapshot retains one version of each value replaced or deleted since. [`Engine::snapshots`] reports the open ones, the
//!   place in the program that opened each, and the bytes.
//! - A long transaction on a snapshot also [retains memory](super::errors#retained-memory), as every open transaction does; scans release it from time to time.
//!
//! # Without snapshots
//!
//! - The elements of a [`TQueue`] (its `len` and `is_empty` have them), and [`TBoostedMap`]: operations end the transaction with
//!   [`Misuse::Unsupported`].
//! - Rows and values with which a table or an object is made ([`Loading`], `with_elements`) belong to every snapshot, also to earlier ones.
//! - [`retry`](Transaction::retry) is [`Misuse::CannotWait`].
//! - A datatype that implements [`object::Object`] by hand keeps versions by its function `keep`; those made of segments need nothing.

#[allow(unused_imports, reason = "the text links to these")]
use crate::*;

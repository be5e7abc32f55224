//! # Snapshots: reading without being in the way
//!
//! A *snapshot* is the state of all objects and tables at one moment. Transactions on it only read, run once, and never abort; writers do
//! not wait for them and do not abort because of them. This holds under every protocol. Use it for reports, audits and large scans.
//!
//! ```
//! use hotrow::{Database, Error, Misuse};
//!
//! let db = Database::open()?;
//! let accounts = db.table::<u64, i64>("accounts").create()?;
//! accounts.bulk_insert((0..100).map(|number| (number, 10)))?;
//!
//! let snapshot = db.snapshot_strict()?;
//! db.transact(|tx| accounts.delete(tx, &8))?;
//! assert_eq!(snapshot.transact(|tx| accounts.count(tx, ..))?, 100);
//! let refused = snapshot.transact(|tx| accounts.delete(tx, &9));
//! assert!(matches!(refused, Err(Error::Misuse(Misuse::ReadOnly { .. }))));
//! # Ok::<(), Error>(())
//! ```
//!
//! | call | sees | waits |
//! |---|---|---|
//! | [`Engine::snapshot`] | everything up to a moment about a millisecond back at most ([`Snapshot::staleness`]) | for nobody, unless none of this kind was in use for 100 ms |
//! | [`Engine::snapshot_strict`] | everything committed before the call | for commits that are just installing |
//! | either, if commits wait for the device | everything that is on the device | for nobody, unless none was in use for 100 ms or a commit was acknowledged early: then its transactions wait for the device |
//!
//! One transaction alone asks by its [profile](super::profiles). A [procedure](Procedure) whose profile says that it only reads runs on a strict
//! snapshot, unless [`Procedures::set_readers_isolation`] says otherwise.
//!
//! # Costs
//!
//! - While a snapshot is open, the first commit that replaces a value since keeps the old one. After [`Engine::snapshot`] commits do so for another
//!   100 ms. Where transactions are short and few only read, [`Engine::snapshot_strict`] therefore costs writers less.
//! - [`Engine::snapshots`] reports the open snapshots, the places in the program that opened them, and the bytes kept.
//! - A transaction on a snapshot also [retains memory](super::errors#retained-memory), as every open transaction does; scans release it
//!   from time to time.
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

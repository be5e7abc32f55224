//! # Snapshots: reading without being in the way
//!
//! A report over all accounts, an audit, a page with twenty rows: a transaction that reads much among others that write often
//! aborts again and again, or makes them wait. On a *snapshot* it does neither. A snapshot is the state of all objects and
//! tables at one moment; transactions on it only read, run once, and never abort. Writers do not notice them. This holds under
//! every protocol.
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
//! db.transact(|tx| accounts.update(tx, &7, |balance| *balance -= 10))?;
//! db.transact(|tx| accounts.delete(tx, &8))?;
//!
//! let mut sum = 0;
//! snapshot.transact(|tx| {
//!     sum = 0;
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
//! | [`Engine::snapshot`] | everything up to a moment that lies about a millisecond back at most; [`Snapshot::staleness`] says how far | for nobody, unless none of this kind has been in use for a tenth of a second |
//! | [`Engine::snapshot_strict`] | everything that was committed before the call | for commits that are just installing |
//! | either, in a database whose commits wait for the device | everything that is on the device, and so all that anybody was told | for nobody, unless none has been in use for a tenth of a second, or somebody was told early: then its transactions wait for the device when they end |
//!
//! One transaction alone may also ask by its profile: [`Isolation::Snapshot`], [`Isolation::StrictSnapshot`]. A
//! [procedure](Procedure) whose profile says that it only reads runs on a strict snapshot unless
//! [`Procedures::set_readers_isolation`] says otherwise.
//!
//! # What it costs
//!
//! While a snapshot is open, a commit that replaces a value keeps the old one, once for each snapshot that may see it: an allocation
//! and an entry in a table. A row that is written a thousand times between two snapshots is kept once. While `snapshot` is in use,
//! and for a tenth of a second after that, this holds between snapshots, too, because the next one must not wait. So where
//! transactions are short and few of them only read, `snapshot_strict` costs the writers less.
//!
//! When no snapshot has been in use for a tenth of a second, a commit pays for two stores to a word of its worker and one branch.
//!
//! A snapshot that stays open keeps one version of each value that has been replaced or deleted since, and an entry for
//! each row inserted since.
//! [`Engine::snapshots`] reports the open ones, with the place in the program that holds each, and how much is kept. A
//! long transaction on a snapshot also keeps replaced memory of the process from being freed, as every open transaction does;
//! scans release it from time to time.
//!
//! # What has no snapshots
//!
//! - The elements of a `TQueue` (`len` and `is_empty` do), and `TBoostedMap`: their operations end the transaction with
//!   [`Misuse::Unsupported`].
//! - Rows and values with which a table or an object is made ([`Loading`], `with_elements`) belong to every snapshot, also to those opened before.
//! - Datatypes of your own that implement [`object::Object`] by hand keep versions by its function
//!   `keep`. Those made of segments ([`object::SingleSegment`] and the others) do so by themselves.

#[allow(unused_imports, reason = "the text links to these")]
use crate::*;

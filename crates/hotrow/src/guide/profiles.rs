//! # Transaction profiles
//!
//! A transaction needs no declaration. A [`Profile`], given to [`Worker::try_transact_as`] or returned by
//! [`Procedure::profile`], may declare the following; a declaration must be true:
//!
//! - The transaction *only reads*. `plor` then reads without registering as a reader, except a transaction that has
//!   lost three times; the other protocols treat it as any other. A write in it is [`Misuse::ReadOnly`].
//! - *[Read committed](Isolation::ReadCommitted)* is enough: each read sees committed data, and no more is
//!   guaranteed. This is for large reports that need not be exact. Under every protocol, they then never abort
//!   because a row that they have read changed, and they block others only during a single read.
//! - It reads on a *[snapshot](crate::guide::snapshots)*.
//! - The approximate number of *records* that it touches: under `plor+deadline` small transactions go before large
//!   ones for a while.
//!
//! ```
//! use hotrow::protocols::Plor;
//! use hotrow::{Abort, Database, Error, Misuse, Profile, TArray, Transaction};
//!
//! let db = Database::builder().protocol::<Plor>().open()?;
//! let accounts = TArray::new(&db, 3, |_| 100);
//! let mut worker = db.worker()?;
//!
//! let total = |tx: &mut Transaction<'_, Plor>| {
//!     (0..3).try_fold(0, |sum, account| Ok::<_, Abort>(sum + accounts.get(tx, account)?))
//! };
//! assert_eq!(worker.try_transact_as(Profile::READ_ONLY, total), Ok(300));
//!
//! let refused = worker.try_transact_as::<_, Abort>(Profile::READ_ONLY, |tx| accounts.set(tx, 0, 0));
//! assert!(matches!(refused, Err(Error::Misuse(Misuse::ReadOnly { .. }))));
//! # Ok::<(), hotrow::Error>(())
//! ```

#[allow(unused_imports, reason = "the text links to these")]
use crate::*;

//! # Transaction profiles
//!
//! A transaction needs no declaration. A [`Profile`], given to [`transact_as`](Engine::transact_as) or returned by
//! [`Procedure::profile`], may declare the following; a declaration must be true:
//!
//! - The transaction *only reads*. `plor` then reads without registering as a reader, except a transaction that has
//!   lost three times; the other protocols treat it as any other. A write in it is [`Misuse::ReadOnly`].
//! - It only reads, and *[read committed](Isolation::ReadCommitted)* is enough: each call returns one committed fact (a row, the
//!   absence of a key, the length of a queue), and two calls may see two states. This is for large reports that need not be exact.
//!   Under every protocol, they then never abort because something that they have read changed, and they block others only during a
//!   single read. A transaction that writes is always serializable: a write in this one is [`Misuse::ReadOnly`].
//! - It reads on a *[snapshot](crate::guide::snapshots)*.
//! - The approximate number of *records* that it touches: under `plor+deadline` small transactions go before large
//!   ones for a while.
//!
//! ```
//! use hotrow::{Abort, Any, Database, Error, Misuse, Profile, TArray, Transaction};
//!
//! let db = Database::builder().protocol("plor").open()?;
//! let accounts = TArray::new(&db, 3, |_| 100);
//! let total = |tx: &mut Transaction<'_, Any>| {
//!     (0..3).try_fold(0, |sum, account| Ok::<_, Abort>(sum + accounts.get(tx, account)?))
//! };
//! assert_eq!(db.transact_as(Profile::READ_ONLY, total), Ok(300));
//!
//! let refused = db.transact_as(Profile::READ_ONLY, |tx| accounts.set(tx, 0, 0));
//! assert!(matches!(refused, Err(Error::Misuse(Misuse::ReadOnly { .. }))));
//! # Ok::<(), hotrow::Error>(())
//! ```
//!
//! # Single reads
//!
//! A read of an ordinary transaction counts: the transaction commits only if nothing has changed that it read. A read can be
//! otherwise:
//!
//! | wanted | how | what it gives up |
//! |---|---|---|
//! | *for update*: nobody else may take the row from now on | an update that changes nothing: `table.update(tx, &key, \|row\| row.clone())` | a version more for each such read; under optimistic protocols others learn of it at the commit, as of any write |
//! | *untracked*: a hint that may be out of date | [`tx.untracked(…)`](Transaction::untracked) around it | the transaction does not depend on it: no serializability for this read, which is for what the result does not depend on |
//! | *on a snapshot*: many rows of one moment | a transaction of its own, on a [snapshot](crate::guide::snapshots) | it cannot write |
//! | *a test*: only the outcome of a condition counts | [`subtract_if_enough`](Table::subtract_if_enough), conditions of objects ([hot rows](crate::guide::hot_rows)) | the value itself is not known |
//!
//! ```
//! use hotrow::{Database, Direction};
//! use std::ops::ControlFlow;
//!
//! let db = Database::open()?;
//! let seats = db.table::<u32, u32>("free seats").create()?;
//! seats.bulk_insert((0..100).map(|row| (row, row / 90)))?;
//! let row = db.transact(|tx| {
//!     // Nobody who takes a seat of another row is in the way of this search.
//!     let mut hint = None;
//!     tx.untracked(|tx| {
//!         seats.scan(tx, .., Direction::Ascending, |row, free| match *free {
//!             0 => ControlFlow::Continue(()),
//!             _ => { hint = Some(*row); ControlFlow::Break(()) }
//!         })
//!     })?;
//!     let Some(row) = hint else { return Ok(None) };
//!     // What counts is read again: the seat may be gone.
//!     if seats.get(tx, &row)?.unwrap_or(0) == 0 { return Ok(None); }
//!     seats.update(tx, &row, |free| *free -= 1)?;
//!     Ok(Some(row))
//! })?;
//! assert_eq!(row, Some(90));
//! # Ok::<(), hotrow::Error>(())
//! ```

#[allow(unused_imports, reason = "the text links to these")]
use crate::*;

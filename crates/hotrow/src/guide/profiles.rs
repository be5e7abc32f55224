//! # Transaction profiles
//!
//! A [`Profile`], given to [`transact_as`](Engine::transact_as) or returned by [`Procedure::profile`], declares facts about a
//! transaction. They must be true in all attempts:
//!
//! | field | declares | effect |
//! |---|---|---|
//! | `read_only` | it writes nothing | `plor` reads without registering as a reader until three attempts are lost; `drp` waits in line behind writers where it would abort |
//! | `isolation` | [`ReadCommitted`](Isolation::ReadCommitted): each call returns one committed fact, and two calls may see two states | no aborts because something read has changed; others are blocked during a single read at most |
//! | | [`Snapshot`](Isolation::Snapshot), [`StrictSnapshot`](Isolation::StrictSnapshot) | it reads on a [snapshot](super::snapshots) |
//! | `records` | the approximate number of records touched | under `plor+deadline` transactions with fewer records go first for a while |
//! | `durability` | [`Buffered`](Durability::Buffered) | its caller does [not wait](super::durability#acknowledgement) for the device |
//!
//! A write in a transaction that declares `read_only`, or another isolation than serializable, is [`Misuse::ReadOnly`].
//!
//! ```
//! use hotrow::{Database, Error, Misuse, Profile, TArray};
//!
//! let db = Database::builder().protocol("plor").open()?;
//! let accounts = TArray::new(&db, 3, |_| 100);
//! let sum = db.transact_as(Profile::READ_ONLY, |tx| Ok(accounts.get(tx, 0)? + accounts.get(tx, 1)?));
//! assert_eq!(sum, Ok(200));
//!
//! let refused = db.transact_as(Profile::READ_ONLY, |tx| accounts.set(tx, 0, 0));
//! assert!(matches!(refused, Err(Error::Misuse(Misuse::ReadOnly { .. }))));
//! # Ok::<(), Error>(())
//! ```
//!
//! # Single reads
//!
//! A transaction commits only if nothing has changed that it read. A read can be otherwise:
//!
//! | wanted | how | price |
//! |---|---|---|
//! | *for update*: nobody else may take the row from now on | an update that changes nothing: `table.update(tx, &key, \|row\| row.clone())` | a new version for each such read; under optimistic protocols others learn of it at the commit |
//! | *untracked*: a hint that may be out of date | [`tx.untracked(…)`](Transaction::untracked) around it | not serializable: the result must not depend on it |
//! | *on a snapshot*: many rows of one moment | a transaction of its own, on a [snapshot](super::snapshots) | it cannot write |
//! | *a test*: only the outcome of a condition counts | [`subtract_if_enough`](Table::subtract_if_enough), conditions of objects ([hot rows](super::hot_rows)) | the value is not known |
//!
//! ```
//! use hotrow::{Database, Direction};
//! use std::ops::ControlFlow;
//!
//! let db = Database::open()?;
//! let seats = db.table::<u32, u32>("free seats").create()?;
//! seats.bulk_insert((0..100).map(|row| (row, row / 90)))?;
//! let row = db.transact(|tx| {
//!     // A transaction that takes a seat of another row does not abort this search.
//!     let mut hint = None;
//!     tx.untracked(|tx| {
//!         seats.scan(tx, .., Direction::Ascending, |row, free| match *free {
//!             0 => ControlFlow::Continue(()),
//!             _ => { hint = Some(*row); ControlFlow::Break(()) }
//!         })
//!     })?;
//!     let Some(row) = hint else { return Ok(None) };
//!     // Read again: the seat may be gone.
//!     if seats.get(tx, &row)?.unwrap_or(0) == 0 { return Ok(None); }
//!     seats.update(tx, &row, |free| *free -= 1)?;
//!     Ok(Some(row))
//! })?;
//! assert_eq!(row, Some(90));
//! # Ok::<(), hotrow::Error>(())
//! ```

#[allow(unused_imports, reason = "the text links to these")]
use crate::*;

//! # Boxes, arrays, counters
//!
//! Objects without a key of their own are made for a database and belong to it. [`TBox`] holds one value. [`TArray`] holds a fixed number of values, each of which conflicts on its own. A
//! transaction sees its own writes. Others see them only after the commit, all or none.
//!
//! ```
//! use hotrow::{Database, TArray, TBox};
//!
//! let db = Database::open()?;
//! let title = TBox::new(&db, String::from("draft"));
//! let votes = TArray::new(&db, 3, |_| 0u64);
//!
//! let seen = db.transact(|tx| {
//!     title.set(tx, String::from("final"))?;
//!     votes.update(tx, 2, |votes| *votes += 1)?;
//!     let length = title.read(tx, |title| title.len())?; // Looks at the value without copying it.
//!     Ok((length, votes.get(tx, 2)?))
//! })?;
//! assert_eq!(seen, (5, 1));
//! # Ok::<(), hotrow::Error>(())
//! ```
//!
//! [`TCounter`] is for a number that many threads change and few read exactly. Increments do not read the counter, so
//! they never make each other abort. Tests ([`is_at_least`](TCounter::is_at_least) and its siblings) are
//! *predicates*: the transaction depends on the answer, not on the value. An exact [`get`](TCounter::get) conflicts
//! with every change.
//!
//! ```
//! use hotrow::{Database, TCounter};
//!
//! let db = Database::open()?;
//! let tickets = TCounter::new(&db, 2);
//! let mut buy = || {
//!     db.transact(|tx| {
//!         if !tickets.is_at_least(tx, 1)? {
//!             return Ok(false);
//!         }
//!         tickets.add(tx, -1)?;
//!         Ok(true)
//!     })
//! };
//! assert_eq!([buy()?, buy()?, buy()?], [true, true, false]);
//! # Ok::<(), hotrow::Error>(())
//! ```

#[allow(unused_imports, reason = "the text links to these")]
use crate::*;

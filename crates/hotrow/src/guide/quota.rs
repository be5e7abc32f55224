//! # A quota: limit each client, and all together
//!
//! Each client may send a limited number of requests in an interval. All clients together have a limit, too. Every request changes the common limit,
//! which is hot. A request that one limit refuses takes nothing from the other.
//!
//! ```
//! use hotrow::{Column, Database, Direction, Error, TCounter, Table};
//!
//! #[derive(Debug, PartialEq, thiserror::Error)]
//! enum Refused {
//!     #[error("{0} has no requests left")]
//!     Client(String),
//!     #[error("nobody has requests left")]
//!     All,
//! }
//!
//! struct Quota {
//!     db: Database,
//!     left: Table<String, u32>,
//!     left_for_all: TCounter,
//! }
//!
//! impl Quota {
//!     fn new(left_for_all: i64) -> Result<Self, Error> {
//!         let db = Database::open()?;
//!         let left = db.table("requests left").create()?;
//!         let left_for_all = TCounter::named(&db, "requests left for all", left_for_all);
//!         Ok(Self { db, left, left_for_all })
//!     }
//!
//!     fn admit(&self, client: &str) -> Result<(), Error> {
//!         self.db.transact(|tx| {
//!             let own = self.left.subtract_if_enough(tx, client, Column::whole(), 1)?;
//!             tx.ensure(own, Refused::Client(client.to_owned()))?;
//!             let common = self.left_for_all.is_at_least(tx, 1)?; // Depends on the answer, not on the number.
//!             tx.ensure(common, Refused::All)?; // Gives the client its request back.
//!             self.left_for_all.add(tx, -1)
//!         })
//!     }
//!
//!     /// Begins an interval.
//!     fn refill(&self, of_each: u32, of_all: i64) -> Result<(), Error> {
//!         self.db.transact(|tx| {
//!             let clients = self.left.collect(tx, .., Direction::Ascending, usize::MAX)?;
//!             clients.iter().try_for_each(|(client, _)| self.left.replace(tx, client, of_each))?;
//!             self.left_for_all.set(tx, of_all)
//!         })
//!     }
//! }
//!
//! let quota = Quota::new(100)?;
//! quota.left.bulk_insert(["ada", "bob", "eve"].map(|client| (client.to_owned(), 60)))?;
//! let admitted: usize = std::thread::scope(|scope| {
//!     let send = |client: &'static str| {
//!         let quota = &quota;
//!         move || (0..80).filter(|_| quota.admit(client).is_ok()).count()
//!     };
//!     let clients = ["ada", "bob"].map(|client| scope.spawn(send(client)));
//!     clients.into_iter().map(|client| client.join().unwrap()).sum()
//! });
//! assert_eq!(admitted, 100, "as many as the common limit");
//!
//! let refused = quota.admit("eve").unwrap_err();
//! assert_eq!(refused.downcast_ref(), Some(&Refused::All));
//! assert_eq!(refused.to_string(), "rolled back: nobody has requests left");
//! assert_eq!(quota.db.transact(|tx| quota.left.get(tx, "eve"))?, Some(60), "nothing was taken");
//! quota.refill(1, 10)?;
//! quota.admit("ada")?;
//! assert_eq!(quota.admit("ada").unwrap_err().to_string(), "rolled back: ada has no requests left");
//! # Ok::<(), Error>(())
//! ```
//!
//! # Guarantees
//!
//! No limit is exceeded, whatever runs at the same time. Both limits change together or not at all. Two atomics cannot promise that. A request takes
//! from the first, finds the second empty, and gives back what it has taken. Meanwhile another request may have been refused.
//!
//! # Failures
//!
//! - A refusal rolls back, and the caller gets [`Error::Rollback`] with the body's own error.
//! - An unknown client gets `rolled back: requests left has no row with key "eve"`. [`insert_if_absent`](Table::insert_if_absent) before the
//!   subtraction makes a row for a new client.
//! - A conflict is no error: the body runs again. Conflicts become frequent only when a limit is nearly used up, because then each request may change
//!   the answer of a predicate. The [conflict report](super::conflicts) shows them as `a predicate no longer held`.
//!
//! # Speed on a hot row
//!
//! - [`subtract_if_enough`](Table::subtract_if_enough) and [`is_at_least`](TCounter::is_at_least) do not depend on the number. Requests do not abort
//!   each other while enough is left.
//! - [`get`](TCounter::get) of a counter conflicts with every request. Show numbers from a [snapshot](super::reports).
//! - A quota that is still too hot may be divided. Give each thread a row of the common limit. If this row is empty, try the other rows.
//! - [`TCounters`] hold the limits of a fixed set of clients without an index.
//!
//! See also: [hot rows](super::hot_rows), [boxes and counters](super::objects), [errors](super::errors). `examples/src/rate_limiter.rs` puts load on
//! a limiter.

#[allow(unused_imports, reason = "the text links to these")]
use crate::*;

//! # A shop: sell tickets from one hot row
//!
//! A sale inserts a ticket and takes a seat of its event. All buyers want the same event, so that its row is hot. The shop never sells more
//! seats than there are.
//!
//! ```
//! use hotrow::{Database, Error, MissingRow, Sequence, Table, Value, column_of};
//!
//! #[derive(Debug, Clone, Copy, Value)]
//! #[value(inline)]
//! struct Event {
//!     price: u32,
//!     #[value(group = "seats")] // A segment of its own: readers of the price do not conflict with buyers.
//!     free: u32,
//! }
//!
//! #[derive(Debug, Clone, Value)]
//! struct Ticket {
//!     event: u32,
//!     price: u32,
//!     email: String,
//! }
//!
//! #[derive(Debug, thiserror::Error)]
//! #[error("event {event} is sold out")]
//! struct SoldOut {
//!     event: u32,
//! }
//!
//! struct Shop {
//!     db: Database,
//!     events: Table<u32, Event>,
//!     tickets: Table<u64, Ticket>,
//!     numbers: Sequence,
//! }
//!
//! impl Shop {
//!     fn open() -> Result<Self, Error> {
//!         let db = Database::open()?;
//!         let events = db.table("events").create()?;
//!         let tickets = db.table("tickets").hash(100_000).create()?;
//!         let numbers = Sequence::starting_at(&db, "ticket numbers", 1);
//!         Ok(Self { db, events, tickets, numbers })
//!     }
//!
//!     /// Sells a ticket and returns its number.
//!     fn buy(&self, event: u32, email: &str) -> Result<u64, Error> {
//!         self.db.transact(|tx| {
//!             let price = self.events.read_columns(tx, &event, column_of!(Event, price))?.unwrap_or(0);
//!             let number = self.numbers.next(tx);
//!             self.tickets.insert(tx, number, Ticket { event, price, email: email.to_owned() })?;
//!             // The hot row comes last. A missing event ends the transaction here.
//!             let took = self.events.subtract_if_enough(tx, &event, column_of!(Event, free), 1)?;
//!             tx.ensure(took, SoldOut { event })?; // Otherwise the ticket is undone, too.
//!             Ok(number)
//!         })
//!     }
//! }
//!
//! let shop = Shop::open()?;
//! shop.events.bulk_insert([(7, Event { price: 20, free: 100 })])?;
//! let sold: usize = std::thread::scope(|scope| {
//!     let buyer = || (0..40).filter(|_| shop.buy(7, "ada@example.com").is_ok()).count();
//!     let buyers: Vec<_> = (0..4).map(|_| scope.spawn(buyer)).collect();
//!     buyers.into_iter().map(|buyer| buyer.join().unwrap()).sum()
//! });
//! assert_eq!(sold, 100);
//!
//! let refused = shop.buy(7, "eve@example.com").unwrap_err();
//! assert_eq!(refused.to_string(), "rolled back: event 7 is sold out");
//! assert!(refused.downcast_ref::<SoldOut>().is_some());
//! let unknown = shop.buy(9, "eve@example.com").unwrap_err();
//! assert_eq!(unknown.to_string(), "rolled back: events has no row with key 9");
//! assert!(unknown.downcast_ref::<MissingRow>().is_some());
//! # Ok::<(), Error>(())
//! ```
//!
//! # Guarantees
//!
//! A sale happens whole or not at all, and sales have the effect of some serial order. So the number of tickets is the number of seats taken, and
//! `free` never falls below zero. Ticket numbers are unique. A sale that rolls back loses its number.
//!
//! # Failures
//!
//! - **A conflict** is no error: the engine runs the body again, until it commits. If a [`RetryPolicy`] limits attempts or time, the caller may get
//!   an error. [`Error::Conflict`] has a text such as `conflict: a predicate no longer held: events.parts[7.seats], attempt 3`. The text of
//!   [`Error::Timeout`] has `deadline passed` in place of `conflict`. Answer 503 in both cases.
//! - **The body's own error** comes back inside [`Error::Rollback`]; [`Error::downcast_ref`] finds it.
//!
//! # Speed on a hot row
//!
//! - [`subtract_if_enough`](Table::subtract_if_enough) depends only on the answer *enough*, not on the number of seats. Two sales do not abort each
//!   other while seats are left for both.
//! - The sale touches the hot row last, so that other sales have little time to conflict with it. A [`Sequence`] conflicts with nobody.
//! - The seats have a [column group](super::hot_rows#column-groups) of their own.
//! - The [conflict report](super::conflicts) names the rows that cause lost conflicts. Look there before you choose [another
//!   protocol](super::protocols).
//!
//! See also: [hot rows](super::hot_rows), [errors](super::errors), [crash safety](super::crash), [the state of a server](super::servers).
//! `examples/src/ticket_shop.rs` is this shop behind a web server.

#[allow(unused_imports, reason = "the text links to these")]
use crate::*;

//! # In a server
//!
//! A [`Database`], a [`Table`] and the indexes are handles: cheap to clone, and `Send + Sync`. Objects ([`TBox`], [`TArray`],
//! [`TCounter`], [`Sequence`]) are not cloned; they go behind the `Arc` of the state that owns them. No type names the protocol
//! as long as it is the default one.
//!
//! ```
//! use hotrow::{Database, Direction, Error, SecondaryIndex, Sequence, Table, Value};
//! use std::ops::ControlFlow;
//! use std::sync::Arc;
//!
//! #[derive(Debug, Clone, PartialEq, Value)]
//! struct Ticket {
//!     event: u32,
//!     email: String,
//! }
//!
//! /// The state that a server shares between its handlers.
//! struct Shop {
//!     db: Database,
//!     free: Table<u32, u32>,
//!     tickets: Table<u64, Ticket>,
//!     by_email: SecondaryIndex<String, u64, Ticket>,
//!     numbers: Sequence,
//! }
//!
//! impl Shop {
//!     fn open() -> Result<Arc<Self>, Error> {
//!         let db = Database::open()?;
//!         let mut tickets = db.table("tickets").hash(1_000);
//!         let by_email = tickets.secondary("by_email", |_, ticket: &Ticket| ticket.email.clone());
//!         let (tickets, free) = (tickets.create()?, db.table("free seats").hash(10).create()?);
//!         let numbers = Sequence::starting_at(&db, "ticket numbers", 1);
//!         Ok(Arc::new(Self { db, free, tickets, by_email, numbers }))
//!     }
//!
//!     fn reserve(&self, event: u32, email: &str) -> Result<u64, Error> {
//!         let ticket = Ticket { event, email: email.to_owned() };
//!         self.db.transact(|tx| {
//!             let number = self.numbers.next(tx);
//!             self.tickets.insert(tx, number, ticket.clone())?;
//!             let was = self.free.update(tx, &event, |free| std::mem::replace(free, free.saturating_sub(1)))?;
//!             tx.ensure(was > 0, "sold out")?;
//!             Ok(number)
//!         })
//!     }
//!
//!     fn tickets_of(&self, email: &str) -> Result<Vec<u64>, Error> {
//!         self.db.transact(|tx| {
//!             let mut numbers = Vec::new();
//!             self.by_email.scan_keys(tx, email..=email, Direction::Ascending, |_, number| {
//!                 numbers.push(*number);
//!                 ControlFlow::Continue(())
//!             })?;
//!             Ok(numbers)
//!         })
//!     }
//! }
//!
//! let shop = Shop::open()?;
//! shop.free.bulk_insert([(7, 1)])?;
//! let number = shop.reserve(7, "ada@example.com")?;
//! assert_eq!(shop.tickets_of("ada@example.com")?, [number]);
//! let refused = shop.reserve(7, "bob@example.com").unwrap_err();
//! let status = match &refused {
//!     Error::Rollback(_) => 409, // The body's own error, or an operation's: `downcast_ref` tells which.
//!     error if error.is_retryable() => 503,
//!     _ => 500,
//! };
//! assert_eq!(status, 409);
//! # Ok::<(), hotrow::Error>(())
//! ```
//!
//! # Asynchronous code
//!
//! [`transact_async`](Engine::transact_async) is a future, and blocks its thread for no longer than a [stated bound](super::tasks). A
//! call is simpler, and faster: call [`transact`](Engine::transact) from a handler as you would lock a mutex for a moment. The body
//! cannot `.await` in either. A short transaction takes about a microsecond. It blocks the executor's thread while it waits: for a
//! lock under protocols that lock; in pauses of at most 100 microseconds after aborts; and while an older transaction that has
//! lost often is [let through](crate::guide::errors), 100 milliseconds and more in the worst case. Bodies that read much, or a
//! [policy](RetryPolicy) without a deadline beside such transactions, belong on a thread of their own (`spawn_blocking`). A
//! [`Session`] is for a transaction that has to stay open between two requests, or, as an [`AsyncSession`], between two awaits, not for
//! ordinary handlers.

#[allow(unused_imports, reason = "the text links to these")]
use crate::*;

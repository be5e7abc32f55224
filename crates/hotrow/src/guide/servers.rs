//! # In a server
//!
//! Run a transaction in the first of these ways that fits it; each costs more than the one before:
//!
//! 1. **Call [`transact`](Engine::transact) in the handler**, also on an executor's thread, as you would lock a mutex: for
//!    short transactions of a database in memory.
//! 2. **Await [`transact_async`](Engine::transact_async)** if the database is [durable](super::durability) or the body may
//!    [`retry`](Transaction::retry): no thread waits for the device or the change ([asynchronous code](super::tasks)). A call that cannot be a future gives its thread away
//!    while it waits for the device, if the log has [`around_waits`](super::tasks#bounds).
//! 3. **Run what reads much on a thread of its own** (`spawn_blocking`), on a [snapshot](super::snapshots).
//! 4. **Open a session** only if a transaction must stay open between two requests ([`Session`]) or awaits ([`AsyncSession`]), or on a
//!    thread that serves one user ([`LocalSession`]).
//!
//! A call blocks its thread while it waits for a lock (under protocols that lock), in pauses of at most 100 microseconds after aborts, and
//! while an older transaction is [let through](super::errors), for 100 milliseconds or more. A deadline of the [policy](RetryPolicy) bounds
//! these waits.
//!
//! [`Database`], [`Table`] and indexes are handles: cheap to clone, `Send + Sync`. Objects ([`TBox`], [`TCounter`], [`Sequence`]) go behind
//! the `Arc` of the state that owns them.
//!
//! ```
//! use hotrow::{Database, Direction, Error, SecondaryIndex, Sequence, Table, Value};
//!
//! #[derive(Debug, Clone, PartialEq, Value)]
//! struct Ticket {
//!     event: u32,
//!     email: String,
//! }
//!
//! /// The state that handlers share, in an `Arc`.
//! struct Shop {
//!     db: Database,
//!     free: Table<u32, u32>,
//!     tickets: Table<u64, Ticket>,
//!     by_email: SecondaryIndex<String, u64, Ticket>,
//!     numbers: Sequence,
//! }
//!
//! impl Shop {
//!     fn open() -> Result<Self, Error> {
//!         let db = Database::open()?;
//!         let mut tickets = db.table("tickets").hash(1_000);
//!         let by_email = tickets.secondary("by_email", |_, ticket: &Ticket| ticket.email.clone());
//!         let (tickets, free) = (tickets.create()?, db.table("free seats").hash(10).create()?);
//!         let numbers = Sequence::starting_at(&db, "ticket numbers", 1);
//!         Ok(Self { db, free, tickets, by_email, numbers })
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
//!         self.db.transact(|tx| self.by_email.iter(tx, email..=email).map(|found| Ok(found?.0)).collect())
//!     }
//! }
//!
//! let shop = Shop::open()?;
//! shop.free.bulk_insert([(7, 1)])?;
//! let number = shop.reserve(7, "ada@example.com")?;
//! assert_eq!(shop.tickets_of("ada@example.com")?, [number]);
//! let status = match shop.reserve(7, "bob@example.com").unwrap_err() {
//!     Error::Rollback(_) => 409, // The body's own error, or an operation's: `downcast_ref` tells which.
//!     error if error.is_retryable() => 503,
//!     _ => 500,
//! };
//! assert_eq!(status, 409);
//! # Ok::<(), Error>(())
//! ```

#[allow(unused_imports, reason = "the text links to these")]
use crate::*;

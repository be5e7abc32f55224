//! # Hot rows: what to do about them
//!
//! A row is hot when many threads want to change it at the same time. Protocols differ in what that costs, and a program can
//! do much itself. In the order of what it gains:
//!
//! - **Touch the hot row last.** Everything between the first touch of a row and the commit is the time for which others can
//!   make the transaction fail (`occ`, `tictoc`, `tl2`), or for which they wait (protocols that lock). Look up, compute and
//!   insert first; read and change the row that everybody wants right before the end. This holds for readers, too: a report
//!   that reads the hot row first and then a thousand others fails whenever somebody changes that row meanwhile.
//! - **Do not read what you only change.** [`Table::add`] adds to a column of a row at the commit; [`max`](Table::max),
//!   [`set`](Table::set), [`append`](Table::append) and [`apply`](Table::apply), with any closure that gives nothing back, change it
//!   there, too. Such changes never make each other abort. [`subtract_if_enough`](Table::subtract_if_enough) depends
//!   on there being enough, and not on how much there is. [`TBox`] and [`TArray`] have the same operations, and [`TCounter`] tests
//!   besides ([`is_at_least`](TCounter::is_at_least)). A [`Sequence`] gives out numbers outside of all
//!   conflicts. [`Table::replace`] depends on the row's being there, not on its content. Under `drp` any change may be
//!   [deferred](crate::guide::deferred).
//! - **Compute outside.** What does not depend on what the transaction reads does not belong into its body: parsing,
//!   formatting, hashing, allocation.
//! - **Split the row** if its parts change apart: a hot total and its cold description in two tables, a quota in several rows
//!   of which a thread takes its own first.
//! - **Then choose the protocol**: see [which protocol when](crate::guide::protocols). The [report](crate::guide::conflicts)
//!   names the rows over which transactions were lost, so that you need not guess which ones are hot.
//!
//! ```
//! use hotrow::{Column, Database, Sequence};
//!
//! let db = Database::open()?;
//! let events = db.table::<u32, u64>("events").hash(1).create()?; // How many seats are free: hot.
//! let tickets = db.table::<u64, (u32, String)>("tickets").hash(1_000).create()?;
//! let numbers = Sequence::starting_at(&db, "ticket numbers", 1);
//! events.bulk_insert(7, 2);
//!
//! let sell = |event: u32, buyer: &str| {
//!     let buyer = buyer.to_owned(); // Outside.
//!     db.transact(|tx| {
//!         let number = numbers.next(tx);
//!         tickets.insert(tx, number, (event, buyer.clone()))?;
//!         let was_free = events.subtract_if_enough(tx, &event, Column::whole(), 1)?; // Last, and without reading.
//!         tx.ensure(was_free, "sold out")?; // Rolls the ticket back, too.
//!         Ok(number)
//!     })
//! };
//! assert!(sell(7, "ada@example.com").is_ok() && sell(7, "bob@example.com").is_ok());
//! assert_eq!(sell(7, "eve@example.com").unwrap_err().to_string(), "rolled back: sold out");
//!
//! // A row that is only added to: the commit adds, and nobody aborts.
//! let sold = db.table::<u32, i64>("sold").hash(1).create()?;
//! sold.bulk_insert(7, 0);
//! db.transact(|tx| sold.add(tx, &7, Column::whole(), 2))?;
//! # Ok::<(), hotrow::Error>(())
//! ```

#[allow(unused_imports, reason = "the text links to these")]
use crate::*;

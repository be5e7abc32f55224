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
//!   there, too. Such changes never make each other abort. A sum that leaves the column's range is a rollback with
//!   [`Overflow`] that names the row ([`wrapping_add`](Table::wrapping_add) wraps around). In a table with indexes or constraints all
//!   of these are [updates](Table::update), which read the row, and so they are in boxed rows, but for `apply`. [`subtract_if_enough`](Table::subtract_if_enough) depends
//!   on there being enough, and not on how much there is. [`TBox`] and [`TArray`] have the same operations, and [`TCounter`] tests
//!   besides ([`is_at_least`](TCounter::is_at_least)). A [`Sequence`] gives out numbers outside of all
//!   conflicts. [`Table::replace`] depends on the row's being there, not on its content. Under `drp` any change may be
//!   [deferred](crate::guide::deferred).
//! - **Compute outside.** What does not depend on what the transaction reads does not belong into its body: parsing,
//!   formatting, hashing, allocation.
//! - **Split the row** if its columns change apart: `#[value(group = "name")]` at fields of an inline row gives the columns of a group a
//!   segment of their own, behind the same key ([column groups](#column-groups)). A quota may be in several rows, of which a thread
//!   takes its own first.
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
//! events.bulk_insert([(7, 2)])?;
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
//! sold.bulk_insert([(7, 0)])?;
//! db.transact(|tx| sold.add(tx, &7, Column::whole(), 2))?;
//! # Ok::<(), hotrow::Error>(())
//! ```
//!
//! # Column groups
//!
//! A warehouse's total changes with each payment, its tax hardly ever. In one segment, each payment is in the way of everybody
//! who reads the tax. In two, it is not:
//!
//! ```
//! use hotrow::{Database, Value, column_of};
//!
//! #[derive(Debug, Clone, Copy, PartialEq, Value)]
//! #[value(inline)]
//! struct Warehouse {
//!     tax: i64,
//!     #[value(group = "total")]
//!     year_to_date: i64,
//! }
//!
//! let db = Database::open()?;
//! let warehouses = db.table::<u16, Warehouse>("warehouses").hash(1).create()?;
//! warehouses.bulk_insert([(1, Warehouse { tax: 7, year_to_date: 0 })])?;
//! let tax = db.transact(|tx| {
//!     let tax = warehouses.read_columns(tx, &1, column_of!(Warehouse, tax))?;
//!     // Another thread's payment is not in the way.
//!     let pay = || db.transact(|tx| warehouses.add(tx, &1, column_of!(Warehouse, year_to_date), 100));
//!     std::thread::scope(|scope| scope.spawn(pay).join().unwrap()).unwrap();
//!     Ok((tax, tx.attempt_number()))
//! })?;
//! assert_eq!(tax, (Some(7), 0));
//! let row = db.transact(|tx| warehouses.get(tx, &1))?;
//! assert_eq!(row, Some(Warehouse { tax: 7, year_to_date: 100 }));
//! # Ok::<(), hotrow::Error>(())
//! ```
//!
//! - Operations on columns touch the segments of these columns only: [`read_columns`](Table::read_columns),
//!   [`update_columns`](Table::update_columns), [`apply_columns`](Table::apply_columns), [`add`](Table::add),
//!   [`subtract_if_enough`](Table::subtract_if_enough), [`set`](Table::set), [`max`](Table::max), [`min`](Table::min), their deferred
//!   forms, and those of procedures ([`Operations::update_columns`], [`Operations::add`] and so on). Columns that are in no group are one
//!   segment together. An operation on columns of several groups touches the segments of these. Changes of them are
//!   [at the commit](Table::apply) if one segment has all columns.
//! - Operations on rows ([`get`](Table::get), [`update`](Table::update), scans) touch all segments, so each costs as much as so many small
//!   rows. [`update`](Table::update) writes only those that it has changed. [`apply`](Table::apply) of a whole row reads it.
//! - Insertions and deletions write all segments. A transaction that has touched one group notices them.
//! - Each group takes a cache line or more in each row, so that what changes is not beside what is read. Split what is hot.
//! - An index by a key that is made from the whole row, and a constraint, have to look at each change: in such a table the row is one
//!   segment. An index by [named columns](TableBuilder::secondary_on) makes one only of the groups of these.
//! - In an object (a [`TBox`], a map) a value is one segment, whatever its groups.

#[allow(unused_imports, reason = "the text links to these")]
use crate::*;

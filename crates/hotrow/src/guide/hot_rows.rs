//! # Hot rows: what to do about them
//!
//! A row is hot when many threads want to change it at the same time. The [conflict report](super::conflicts) names such rows. In
//! the order of what they gain:
//!
//! 1. **Touch the hot row last.** From the first touch to the commit others make the transaction fail (`occ`, `tictoc`, `tl2`) or wait
//!    for it (protocols that lock). Look up, compute and insert first; let reports read the hot row last, too.
//! 2. **Do not read what you only change.** Changes at the commit, listed below, never abort each other.
//! 3. **Compute outside** what does not depend on the transaction's reads: parsing, formatting, hashing.
//! 4. **Split the row** into [column groups](#column-groups), or a quota into several rows, of which each thread takes its own first.
//! 5. **Choose the [protocol](super::protocols).**
//!
//! A [shop](super::shop) shows the first three.
//!
//! | operation | changes at the commit |
//! |---|---|
//! | [`Table::add`], [`wrapping_add`](Table::wrapping_add) | adds to a column; a sum beyond the column's range is a rollback with [`Overflow`], or wraps around |
//! | [`max`](Table::max), [`min`](Table::min), [`set`](Table::set), [`append`](Table::append) | a column, or a row that is a collection |
//! | [`apply`](Table::apply), [`apply_columns`](Table::apply_columns) | runs a closure that gives nothing back |
//! | [`subtract_if_enough`](Table::subtract_if_enough) | depends on there being enough, not on how much |
//! | [`replace`](Table::replace) | depends on the row's presence, not on its content |
//! | [`TCounter`] | as `add`, with tests ([`is_at_least`](TCounter::is_at_least)) |
//!
//! [`TBox`] and [`TArray`] have the same operations. A [`Sequence`] gives out numbers without conflicts. Under `drp` any change may be
//! [deferred](super::deferred). In a table with indexes or constraints these operations are [updates](Table::update), which read the row. In boxed
//! rows `add`, `wrapping_add` and `subtract_if_enough` are.
//!
//! # Column groups
//!
//! `#[value(group = "name")]` at fields of an inline row gives them a segment of their own behind the same key. A payment that changes a
//! warehouse's total then does not abort a transaction that reads its tax:
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
//! let attempts_lost = db.transact(|tx| {
//!     warehouses.read_columns(tx, &1, column_of!(Warehouse, tax))?;
//!     let pay = || db.transact(|tx| warehouses.add(tx, &1, column_of!(Warehouse, year_to_date), 100));
//!     std::thread::scope(|scope| scope.spawn(pay).join().unwrap()).unwrap();
//!     Ok(tx.attempt_number())
//! })?;
//! assert_eq!(attempts_lost, 0);
//! let row = db.transact(|tx| warehouses.get(tx, &1))?;
//! assert_eq!(row, Some(Warehouse { tax: 7, year_to_date: 100 }));
//! # Ok::<(), hotrow::Error>(())
//! ```
//!
//! - Operations on columns ([`read_columns`](Table::read_columns), [`update_columns`](Table::update_columns), [`add`](Table::add)) touch the
//!   segments of these columns. Columns without a group are one segment. A change is made at the commit if one segment has all its
//!   columns.
//! - Operations on rows ([`get`](Table::get), scans) touch all segments, and cost as much as so many small rows.
//!   [`update`](Table::update) writes only those that it has changed; [`apply`](Table::apply) of a whole row reads it.
//! - Insertions and deletions write all segments.
//! - Each group takes at least one more cache line in each row.
//! - A constraint, or an index by a key made from the whole row, makes the row one segment; an index by [named
//!   columns](TableBuilder::secondary_on) only their groups.
//! - In an object ([`TBox`], a map) a value is one segment.

#[allow(unused_imports, reason = "the text links to these")]
use crate::*;

//! # Tables, keys, rows
//!
//! A [`Table`] maps keys of one type to rows of one type, under an ordered index or a hash index. It is made once, under a name;
//! [`open`](TableBuilder::open) finds it by that name later and checks its types. The handle is cheap to clone and to share.
//!
//! - **Keys** are integers, `bool`, `char`, `String`, `Vec<u8>`, arrays of up to 64 bytes, [`Text`] (a short string of fixed size), options and
//!   tuples of up to four keys, UUIDs (feature `uuid`), and structs and enums that derive [`Key`](macro@Key). `String` keys are looked up by `&str`,
//!   `Vec<u8>` keys by `&[u8]`, without an allocation. Keys of fixed size cost a little less.
//! - **Rows** derive [`Value`](macro@Value). *Inline* rows (`#[value(inline)]`) are plain `Copy` data without padding, stored in the record: use
//!   them for small rows that change often. *Boxed* rows (the default) are behind a pointer that a commit swaps: a read copies
//!   nothing, a change copies the row. Use them for large rows, strings, vectors, anything that is `Clone + Send + Sync`.
//!
//! ```
//! use hotrow::{Database, Direction, Key, Text, Value};
//!
//! /// Ordered by the first field, then the second.
//! #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Key)]
//! struct OrderKey {
//!     district: u16,
//!     order: u32,
//! }
//!
//! #[derive(Debug, Clone, Copy, PartialEq, Value)]
//! #[value(inline)]
//! struct Order {
//!     amount: i64,
//!     customer: Text<8>,
//! }
//!
//! let db = Database::open()?;
//! let orders = db.table::<OrderKey, Order>("orders").create()?;
//! let anna = Order { amount: 30, customer: "anna".try_into()? };
//! let ben = Order { amount: 50, customer: "ben".try_into()? };
//! let key = |order| OrderKey { district: 1, order };
//!
//! db.transact(|tx| {
//!     orders.insert(tx, key(1), anna)?;
//!     assert!(!orders.insert_if_absent(tx, key(1), ben)?);
//!     assert!(orders.upsert(tx, key(2), ben)?);
//!     orders.update(tx, &key(2), |order| order.amount += 1)?;
//!     assert_eq!(orders.get(tx, &key(9))?, None);
//!     assert!(!orders.delete(tx, &key(9))?);
//!     Ok(())
//! })?;
//! let twice = db.transact(|tx| orders.insert(tx, key(1), ben)).unwrap_err();
//! assert_eq!(twice.to_string(), "rolled back: orders has a row with key OrderKey { district: 1, order: 1 } already");
//!
//! // The newest order of the district, the first ten, and the sum of all.
//! let (newest, first, sum) = db.transact(|tx| {
//!     let district = key(0)..=key(u32::MAX);
//!     let newest = orders.last(tx, district.clone())?;
//!     let first = orders.collect(tx, district.clone(), Direction::Ascending, 10)?;
//!     let mut sum = 0;
//!     for order in orders.iter(tx, district) {
//!         sum += order?.1.amount;
//!     }
//!     Ok((newest, first.len(), sum))
//! })?;
//! assert_eq!((newest.map(|(key, _)| key.order), first, sum), (Some(2), 2, 81));
//!
//! assert!(db.table::<OrderKey, Order>("orders").open().is_ok());
//! assert!(db.table::<OrderKey, Order>("orders").create().is_err(), "there is one of this name");
//! assert!(db.table::<u64, Order>("orders").open().is_err(), "its keys have another type");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Missing rows and ranges
//!
//! [`insert`](Table::insert) of a key that exists, and [`update`](Table::update) or [`replace`](Table::replace) of a missing row, roll the
//! transaction back with [`KeyExists`] or [`MissingRow`]. [`insert_if_absent`](Table::insert_if_absent),
//! [`update_if_present`](Table::update_if_present), [`replace_if_present`](Table::replace_if_present) and [`upsert`](Table::upsert) tell by
//! their results if the row was there.
//!
//! A failed lookup and a scan read facts: the key is missing, the range holds no other keys. If a fact changes, the body runs again, so
//! that there are no phantoms. Facts are checked per bucket or leaf: the insertion of a neighbouring key may also abort a transaction
//! whose lookup found nothing. Only an ordered table can be scanned: by [`scan`](Table::scan), which copies nothing,
//! [`iter`](Table::iter), [`first`](Table::first), [`last`](Table::last), or [`collect`](Table::collect) with a limit.
//!
//! # Columns
//!
//! [`read_columns`](Table::read_columns) copies a few fields of a large inline row only:
//!
//! ```
//! use hotrow::{Database, Text, Value, column_of};
//!
//! #[derive(Debug, Clone, Copy, Value)]
//! #[value(inline)]
//! struct Item {
//!     price: i64,
//!     sold: u32,
//!     description: Text<500>,
//! }
//!
//! let db = Database::open()?;
//! let items = db.table::<u32, Item>("items").hash(1_000).create()?;
//! items.bulk_insert([(1, Item { price: 300, sold: 7, description: "a lamp".try_into()? })])?;
//! let columns = (column_of!(Item, price), column_of!(Item, sold));
//! assert_eq!(db.transact(|tx| items.read_columns(tx, &1, columns))?, Some((300, 7)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Indexes and constraints
//!
//! A *secondary index* finds rows by something other than their key; a [unique](TableBuilder::unique) one admits no two rows with the same
//! secondary key ([`DuplicateKey`]). The transaction that changes a row also changes its entries. A [check](TableBuilder::check) is a condition that each
//! row must meet when its transaction commits ([`ConstraintViolated`]); in between it may be violated.
//!
//! ```
//! use hotrow::{ConstraintViolated, Database, DuplicateKey};
//!
//! let db = Database::open()?;
//! let people = db.table::<u32, (String, String)>("people").hash(1_000);
//! let mut people = people.check("it has a name", |_, (name, _)| !name.is_empty());
//! let by_name = people.secondary("by_name", |_number, (name, _)| name.clone());
//! let by_email = people.unique("by_email", |_number, (_, email)| email.clone());
//! let people = people.create()?;
//! let first = [(1, "cole", "c@b.net"), (2, "able", "a@b.net"), (3, "cole", "d@b.net")];
//! people.bulk_insert(first.map(|(number, name, email)| (number, (name.into(), email.into()))))?;
//!
//! db.transact(|tx| {
//!     let coles = by_name.iter(tx, "cole"..="cole").map(|found| Ok(found?.0));
//!     let coles: Vec<u32> = coles.collect::<Result<_, hotrow::Abort>>()?;
//!     assert_eq!(coles, [1, 3]);
//!     assert_eq!(by_email.get(tx, "a@b.net")?.map(|(number, _)| number), Some(2));
//!     Ok(())
//! })?;
//! let insert = |name: &str, email: &str| db.transact(|tx| people.insert(tx, 4, (name.into(), email.into())));
//! assert!(insert("baker", "a@b.net").unwrap_err().downcast_ref::<DuplicateKey>().is_some());
//! assert!(insert("", "e@b.net").unwrap_err().downcast_ref::<ConstraintViolated>().is_some());
//! # Ok::<(), hotrow::Error>(())
//! ```
//!
//! # Filling a table
//!
//! [`Table::bulk_insert`] inserts rows by ordinary transactions of up to 256 rows, at any time. [`TableBuilder::load`] is faster, for a table that
//! nobody has yet: any number of threads insert rows, and [`Loading::finish`] shows it to others with all rows. Only such a table can have
//! rows that never change ([`immutable`](TableBuilder::immutable)): they are read without tracking, and a change is
//! [`TableMisuse::ImmutableTable`].
//!
//! ```
//! use hotrow::Database;
//!
//! let db = Database::open()?;
//! let loading = db.table::<u32, u64>("prices").hash(1_000).immutable().load()?;
//! (0..1_000).try_for_each(|item| loading.insert(item, 100 + u64::from(item)))?;
//! let prices = loading.finish()?;
//! assert_eq!(db.transact(|tx| prices.get(tx, &7))?, Some(107));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A [`Sequence`] gives numbers for keys: no two transactions get the same one, and none waits or aborts over it. Numbers of attempts that
//! do not commit are lost.

#[allow(unused_imports, reason = "the text links to these")]
use crate::*;

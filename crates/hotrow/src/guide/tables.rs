//! # Tables, keys, rows
//!
//! A [`Table`] maps keys of one type to rows of one type, under a hash index or an ordered index. It is made once, under a
//! name, at any time; who knows the name [opens](TableBuilder::open) it later, and its types are checked. The handle is
//! cheap to clone and to share, and the table lives as long as the database or a handle. Integers, `bool`,
//! `char`, `String`, `Vec<u8>`, arrays of bytes, [`Text`], options and tuples of keys are keys already, and UUIDs with the
//! feature `uuid`; for a struct or an enum, derive [`Key`](macro@Key). Tables with `String` keys are looked up by `&str`, and
//! those with `Vec<u8>` keys by `&[u8]`, without an allocation.
//!
//! ```
//! use hotrow::{Database, Direction};
//!
//! let db = Database::open()?;
//! let accounts = db.table::<String, i64>("accounts").create()?;
//! accounts.bulk_insert([("anna@example.com".into(), 10), ("ben@example.com".into(), 20)])?;
//! let (left, first) = db.transact(|tx| {
//!     let left = accounts.update(tx, "anna@example.com", |balance| {
//!         *balance -= 3;
//!         *balance
//!     })?;
//!     Ok((left, accounts.collect(tx, "a".."b", Direction::Ascending, 10)?))
//! })?;
//! assert_eq!(left, 7);
//! assert_eq!(first, [("anna@example.com".into(), 7)]);
//!
//! assert!(db.table::<String, i64>("accounts").open().is_ok());
//! assert!(db.table::<String, i64>("accounts").create().is_err(), "there is one of this name");
//! assert!(db.table::<u64, i64>("accounts").open().is_err(), "its keys are strings");
//! # Ok::<(), hotrow::Error>(())
//! ```
//!
//! A key of fixed size costs a little less than one of any length. A [`Text`] is a short string of fixed size.
//!
//! Rows derive [`Value`](macro@Value), which decides their placement in memory:
//!
//! - *inline* (`#[value(inline)]`): plain `Copy` data without padding, stored in the record itself and copied to be
//!   read. Use it for small rows that change often. A type that is not plain, or has padding, does not compile.
//! - *boxed* (the default): stored behind a pointer that a commit swaps, so that a read never copies a large row. A
//!   change copies the row. Use it for large rows, strings, vectors, anything that is `Clone + Send + Sync`.
//!
//! ```
//! use hotrow::{Database, Key, Text, Value};
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
//!
//! let (first, second) = (OrderKey { district: 1, order: 1 }, OrderKey { district: 1, order: 2 });
//! db.transact(|tx| {
//!     orders.insert(tx, first, anna)?;
//!     assert!(!orders.insert_if_absent(tx, first, ben)?);
//!     assert!(orders.upsert(tx, second, ben)?);
//!     orders.update(tx, &second, |order| order.amount += 1)?;
//!     assert_eq!(orders.get(tx, &OrderKey { district: 9, order: 9 })?, None);
//!     assert!(!orders.delete(tx, &OrderKey { district: 9, order: 9 })?);
//!     Ok(())
//! })?;
//! let twice = db.transact(|tx| orders.insert(tx, first, ben)).unwrap_err();
//! assert_eq!(twice.to_string(), "rolled back: orders has a row with key OrderKey { district: 1, order: 1 } already");
//!
//! // The newest order of district 1, and the sum of its orders.
//! let (newest, sum) = db.transact(|tx| {
//!     let district = OrderKey { district: 1, order: 0 }..=OrderKey { district: 1, order: u32::MAX };
//!     let newest = orders.last(tx, district.clone())?;
//!     let mut sum = 0;
//!     for order in orders.iter(tx, district) {
//!         let (_key, order) = order?;
//!         sum += order.amount;
//!     }
//!     Ok((newest.map(|(key, _)| key.order), sum))
//! })?;
//! assert_eq!((newest, sum), (Some(2), 81));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Nothing is lost silently: [`insert`](Table::insert) of a key that exists, and [`update`](Table::update) or
//! [`replace`](Table::replace) of a row that is missing, roll the transaction back with [`KeyExists`] or [`MissingRow`].
//! Where that is an ordinary case, [`insert_if_absent`](Table::insert_if_absent),
//! [`update_if_present`](Table::update_if_present) and [`replace_if_present`](Table::replace_if_present) say what was there,
//! and [`upsert`](Table::upsert) takes both.
//!
//! A failed lookup reads a fact: the key is missing. A scan reads one, too: the range holds no other keys than those
//! visited. If another transaction inserts or deletes there, the commit fails and the body runs again, so neither
//! index admits phantoms. Only an ordered table can be scanned: [`Table::scan`] with a
//! visitor, which copies nothing, [`Table::iter`], [`Table::first`] and [`Table::last`], or [`Table::collect`] with a limit.
//! Such facts are checked per bucket or leaf, so the insertion of a neighbouring key may also abort a transaction
//! whose lookup found nothing. Where several keys of a large hash table are known beforehand, [`Table::prefetch`]
//! fetches them together; it changes no result.
//!
//! Where a transaction needs a few fields of a large inline row, [`Table::read_columns`] copies these only:
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
//! let row = Item { price: 300, sold: 7, description: "a lamp".try_into()? };
//! items.bulk_insert([(1, row)])?;
//! let columns = (column_of!(Item, price), column_of!(Item, sold));
//! assert_eq!(db.transact(|tx| items.read_columns(tx, &1, columns))?, Some((300, 7)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A *secondary index* finds rows by something other than their key. The transaction that changes a row also updates
//! the index. Several rows may have the same secondary key, unless the index is [unique](TableBuilder::unique).
//!
//! ```
//! use hotrow::{Database, Direction, DuplicateKey};
//! use std::ops::ControlFlow;
//!
//! let db = Database::open()?;
//! let mut people = db.table::<u32, (String, String)>("people").hash(1_000);
//! let by_name = people.secondary("by_name", |_number, (name, _)| name.clone());
//! let by_email = people.unique("by_email", |_number, (_, email)| email.clone());
//! let people = people.create()?;
//! let first = [(1, "cole", "c@b.net"), (2, "able", "a@b.net"), (3, "cole", "d@b.net")];
//! people.bulk_insert(first.map(|(number, name, email)| (number, (name.into(), email.into()))))?;
//! let (coles, able) = db.transact(|tx| {
//!     let mut coles = Vec::new();
//!     by_name.scan(tx, "cole"..="cole", Direction::Ascending, |_name, number, (_, email)| {
//!         coles.push((*number, email.clone()));
//!         ControlFlow::Continue(())
//!     })?;
//!     Ok((coles, by_email.get(tx, "a@b.net")?))
//! })?;
//! assert_eq!(coles, [(1, "c@b.net".into()), (3, "d@b.net".into())]);
//! assert_eq!(able.map(|(number, _)| number), Some(2));
//!
//! let refused = db.transact(|tx| people.insert(tx, 4, ("baker".into(), "a@b.net".into()))).unwrap_err();
//! assert!(refused.downcast_ref::<DuplicateKey>().is_some());
//! # Ok::<(), hotrow::Error>(())
//! ```
//!
//! There are two ways to fill a table. [`Table::bulk_insert`] inserts rows by ordinary transactions, at any time, some hundred rows each. A table
//! that nobody has yet is filled faster: [`TableBuilder::load`] begins to make it, any number of threads insert rows, and
//! [`Loading::finish`] shows it to others, with all rows. Only so a table gets rows that never change
//! ([`immutable`](TableBuilder::immutable)).
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
//! A [check](TableBuilder::check) is a condition that each row must meet when its transaction commits; in between it may be
//! violated. A [`Sequence`] gives numbers that no two transactions get, and over which none waits or aborts; numbers of
//! transactions that roll back are lost.
//!
//! ```
//! use hotrow::{ConstraintViolated, Database, Sequence};
//!
//! let db = Database::open()?;
//! let accounts = db.table::<u64, i64>("accounts").hash(10).check("it is not overdrawn", |_, balance| *balance >= 0);
//! let accounts = accounts.create()?;
//! let numbers = Sequence::starting_at(&db, "account numbers", 1);
//! let open = || db.transact(|tx| {
//!     let number = numbers.next(tx);
//!     accounts.insert(tx, number, 10)?;
//!     Ok(number)
//! });
//! let (from, to) = (open()?, open()?);
//! let transfer = |amount: i64| db.transact(|tx| {
//!     accounts.update(tx, &from, |balance| *balance -= amount)?;
//!     accounts.update(tx, &to, |balance| *balance += amount)
//! });
//! transfer(10)?;
//! let refused = transfer(1).unwrap_err();
//! assert!(refused.downcast_ref::<ConstraintViolated>().is_some());
//! # Ok::<(), hotrow::Error>(())
//! ```
//!
//! A table declared [immutable](TableBuilder::immutable) is loaded once and then read without any tracking. A transaction
//! that tries to change it ends with [`TableMisuse::ImmutableTable`].

#[allow(unused_imports, reason = "the text links to these")]
use crate::*;

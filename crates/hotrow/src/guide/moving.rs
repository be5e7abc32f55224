//! # Moving to Hotrow
//!
//! From [mutexes](#from-mutexes), from [software transactional memory](#from-software-transactional-memory), from
//! [an embedded store](#from-an-embedded-store), from [PostgreSQL](#from-postgresql).
//!
//! # From mutexes
//!
//! | with mutexes | with Hotrow |
//! |---|---|
//! | `Mutex<T>` | [`TBox<T>`](TBox) |
//! | `Vec<Mutex<T>>`, sharded | [`TArray<T>`](TArray), or a [`Table`] |
//! | `Mutex<HashMap<K, V>>`, `RwLock<BTreeMap<K, V>>` | a [`Table`], hashed or ordered |
//! | `AtomicI64` | [`TCounter`]; for ids a [`Sequence`] |
//! | `Condvar` | [`retry`](Transaction::retry) |
//! | locks taken in an agreed order | one [transaction](Engine::transact), in any order |
//! | a poisoned mutex | a panic rolls its transaction back, and other threads go on |
//!
//! A critical section becomes the body of a transaction. Two things change. The body may run more than once, so that it must not send messages or
//! write files; do that after the commit. If the body returns an error, all its changes are undone. For one small change, a mutex is faster: the
//! figures are in `docs/results/README.md`. Transactions are better if several things change together, or if a lock would be held for long.
//!
//! ```
//! use hotrow::{Database, TBox};
//! # use std::sync::Mutex;
//!
//! // Before: code elsewhere that takes the locks in another order makes a deadlock.
//! let (stock, sold) = (Mutex::new(10), Mutex::new(Vec::new()));
//! {
//!     let (mut stock, mut sold) = (stock.lock().unwrap(), sold.lock().unwrap());
//!     if *stock > 0 {
//!         *stock -= 1;
//!         sold.push("ada".to_owned());
//!     }
//! }
//!
//! // After.
//! let db = Database::open()?;
//! let (stock, sold) = (TBox::new(&db, 10), TBox::new(&db, Vec::new()));
//! db.transact(|tx| {
//!     let left = stock.update(tx, |stock| { *stock -= 1; *stock })?;
//!     tx.ensure(left >= 0, "sold out")?;
//!     sold.update(tx, |sold: &mut Vec<String>| sold.push("ada".to_owned()))
//! })?;
//! # Ok::<(), hotrow::Error>(())
//! ```
//!
//! # From software transactional memory
//!
//! `TVar` is [`TBox`]; `atomically` is [`transact`](Engine::transact); `retry` is [`retry`](Transaction::retry), which [waits](super::waiting) for a
//! change; `or_else` is [`or_else`](Transaction::or_else). A collection in one variable conflicts as a whole: use [`TArray`], a
//! [collection](super::objects) or a [`Table`], whose elements conflict separately. Under most protocols, a body that reads two values may see an
//! inconsistent state, if the attempt is going to abort. Under `tl2` it never does ([guarantees](super::guarantees)).
//!
//! # From an embedded store
//!
//! | with redb, sled, RocksDB or SQLite | with Hotrow |
//! |---|---|
//! | a tree, a column family | a [`Table`]; keys and rows are types, so that nothing is encoded in memory |
//! | a write transaction, one at a time | [`transact`](Engine::transact), on all threads at the same time |
//! | a read transaction | a [snapshot](super::reports) |
//! | a conflict or `busy` error | none: the body runs again |
//! | a file | [`open_at`](super::crash) a directory, with the feature `durable` |
//! | a data set larger than memory | not possible: tables live in memory, and the directory has their log |
//!
//! # From PostgreSQL
//!
//! There are two ways. Clients that send SQL may stay unchanged: see [serving](super::serving). A program in Rust may hold the tables itself:
//!
//! | in PostgreSQL | in Hotrow |
//! |---|---|
//! | table with a primary key | [`Table<K, R>`](Table), a type for the key and one for the row |
//! | `CREATE INDEX`, `UNIQUE`, `CHECK` | [`secondary`](TableBuilder::secondary), [`unique`](TableBuilder::unique), [`check`](TableBuilder::check) |
//! | foreign key | none: read the parent's row in the same transaction, as below |
//! | `SERIAL`, `nextval` | [`Sequence`] |
//! | `SERIALIZABLE`, and a loop for `40001` | [`transact`](Engine::transact), which has the loop |
//! | `SELECT … FOR UPDATE` | [`update`](Table::update); an ordinary read is safe, too |
//! | `SET c = c + 1` | [`add`](Table::add), at the commit |
//! | `ON CONFLICT DO NOTHING`, `DO UPDATE` | [`insert_if_absent`](Table::insert_if_absent), [`upsert`](Table::upsert) |
//! | `SAVEPOINT` | [`savepoint`](Transaction::savepoint) |
//! | a read-only report | a [snapshot](super::reports) |
//! | `SKIP LOCKED`, `LISTEN` | a [queue](super::queue), [`retry`](Transaction::retry) |
//! | `statement_timeout` | [`RetryPolicy::deadline`](RetryPolicy), [`set_deadline`](Transaction::set_deadline) |
//! | `ALTER TABLE` | a [change of the row's type](super::evolving) |
//! | a join, a plan | code: a scan, and look-ups by key or index |
//!
//! ```
//! use hotrow::{Database, Sequence};
//!
//! let db = Database::open()?;
//! let customers = db.table::<u32, String>("customers").create()?;
//! let orders = db.table::<u64, (u32, i64)>("orders").create()?;
//! let numbers = Sequence::starting_at(&db, "order numbers", 1);
//! customers.bulk_insert([(1, "ada".to_owned())])?;
//!
//! // INSERT INTO orders VALUES (nextval('numbers'), $1, $2), where customer $1 must exist.
//! let order = |customer: u32, amount: i64| {
//!     db.transact(|tx| {
//!         let is_known = customers.get(tx, &customer)?.is_some();
//!         tx.ensure(is_known, "no such customer")?; // Holds at the commit, because it was read.
//!         let number = numbers.next(tx);
//!         orders.insert(tx, number, (customer, amount))?;
//!         Ok(number)
//!     })
//! };
//! assert!(order(1, 30).is_ok());
//! assert_eq!(order(2, 30).unwrap_err().to_string(), "rolled back: no such customer");
//! # Ok::<(), hotrow::Error>(())
//! ```
//!
//! To move rows with psql, use `COPY … TO STDOUT` in PostgreSQL and `COPY … FROM STDIN` in Hotrow. A program uses [`bulk_insert`](Table::bulk_insert)
//! and [`load`](TableBuilder::load). All data must fit into memory.

#[allow(unused_imports, reason = "the text links to these")]
use crate::*;

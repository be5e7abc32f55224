//! # Moving to Hotrow
//!
//! ## From mutexes
//!
//! | with mutexes | with Hotrow |
//! |---|---|
//! | `Mutex<T>` | [`TBox<T>`](TBox) |
//! | `Vec<Mutex<T>>`, sharded | [`TArray<T>`](TArray), or a [`Table`] |
//! | `Mutex<HashMap<K, V>>`, `RwLock<BTreeMap<K, V>>` | a [`Table`], hashed or ordered |
//! | `AtomicI64` | [`TCounter`]; for ids a [`Sequence`] |
//! | locks taken in an agreed order | one [transaction](Engine::transact), in any order |
//! | a poisoned mutex | a panic rolls back, and the others go on |
//!
//! A critical section becomes the body of a transaction. Two things change: the body may run more than once, so it
//! has no effects outside (messages, files) before it has returned, and an error returned from it undoes it whole. What is
//! one lock around one small change is faster as a mutex: see the figures in [which protocol when](crate::guide::protocols).
//! Transactions pay off where several things change together, or where a lock would be held for long.
//!
//! ```
//! use hotrow::{Database, TBox};
//! # use std::sync::Mutex;
//!
//! // Before: who takes the locks in another order elsewhere makes a deadlock.
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
//! ## From software transactional memory
//!
//! `TVar` is [`TBox`]; `atomically` is [`transact`](Engine::transact); `or_else` is
//! [`or_else`](Transaction::or_else). A collection in one variable conflicts as a whole: use [`TArray`] or a [`Table`] instead,
//! whose elements conflict apart. A body that reads two values may, under most protocols, see two states in an attempt that
//! is going to abort; under `tl2` it never does ([guarantees](crate::guide::guarantees)). [`retry`](Transaction::retry)
//! is `retry`, and [waits](crate::guide::waiting) for a change.
//!
//! ## From an embedded store
//!
//! A tree or a column family is a [`Table`]; keys and rows are types instead of bytes, so that nothing is encoded and decoded.
//! There are no separate read and write transactions, and writers do not wait in line for one write lock. A transaction
//! that loses a conflict runs again by itself. The tables of a database that was opened at a directory are durable (feature
//! `durable`), unless they say otherwise; others are gone when the process ends.

#[allow(unused_imports, reason = "the text links to these")]
use crate::*;

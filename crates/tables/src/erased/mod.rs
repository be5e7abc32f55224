//! The erased form of a database: bytes as keys and rows, and the protocol chosen by name at run time.
//!
//! It is the same [database](crate::Database) behind a trait object. So neither the protocol nor a table's types are types
//! of the program: it suits command interpreters, bindings to other languages, and tests. It is compiled once for each
//! protocol, and not for each program.
//!
//! ```
//! use hotrow_tables::erased::{Database, MissingRow, Row};
//!
//! fn balance(row: &[u8]) -> i64 {
//!     i64::from_be_bytes(row.try_into().expect("eight bytes"))
//! }
//!
//! fn add(row: &mut Row, amount: i64) -> i64 {
//!     let sum = balance(row) + amount;
//!     row.set(&sum.to_be_bytes());
//!     sum
//! }
//!
//! let db = Database::open("plor+dwa")?;
//! let accounts = db.table("accounts").hash(4).create()?;
//! db.bulk_insert(&accounts, ["ada", "bob"].map(|name| (name, 1_000i64.to_be_bytes())))?;
//! let left = db.transact(|tx| {
//!     let left = tx.update(&accounts, "ada", |row| add(row, -1))?;
//!     tx.ensure(left >= 0, "overdrawn")?;
//!     tx.update(&accounts, "bob", |row| add(row, 1))?;
//!     Ok(left)
//! })?;
//! assert_eq!(left, 999);
//! let error = db.transact(|tx| tx.update(&accounts, "eve", |row| add(row, 1))).unwrap_err();
//! assert!(error.downcast_ref::<MissingRow>().is_some());
//! assert!(Database::open("ocm").is_err(), "the error lists the protocols that there are");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Cost
//!
//! Each operation makes two calls through pointers more than its typed form. Rows of up to 24 bytes are held in their
//! record and read and changed without an allocation; longer ones are held as boxed values are. Keys of up to 24 bytes
//! are held in the record, too. A table whose keys all have eight bytes should say so
//! ([`word_keys`](TableBuilder::word_keys)): its index then compares words.
//!
//! Operations run at once, also under protocols that defer or steal those of procedures.

mod array;
mod backend;
mod builder;
mod calls;
mod cell;
mod database;
mod keys;
mod row;
mod snapshot;
mod table;
mod transaction;

pub use crate::errors::{KeyExists, MissingRow};
pub use array::Array;
pub use builder::TableBuilder;
pub use database::{Database, Worker};
pub(crate) use keys::{BorrowedKey, BytesKey};
pub use row::Row;
pub use snapshot::Snapshot;
pub use table::Table;
pub use transaction::Transaction;

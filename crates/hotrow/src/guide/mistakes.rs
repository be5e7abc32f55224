//! # Ten likely mistakes, and their messages
//!
//! Each section has a part of a program with the mistake, the message, and the correction. The first four do not compile; the others end the
//! transaction or the call with an error.
//!
//! # 1. The body moves a value that it has captured
//!
//! A body may run several times, so that it cannot move a captured value out.
//!
//! ```compile_fail,E0507
//! # let db = hotrow::Database::open().unwrap();
//! # let names = db.table::<u64, String>("names").create().unwrap();
//! let name = String::from("ada");
//! db.transact(|tx| names.insert(tx, 1, name)).unwrap();
//! ```
//!
//! ```text
//! error[E0507]: cannot move out of `name`, a captured variable in an `FnMut` closure
//! help: consider cloning the value if the performance cost is acceptable
//! ```
//!
//! Write `name.clone()`. If the value is an `Arc`, `clone` copies no data.
//!
//! # 2. A function for bodies returns `Error`
//!
//! Operations return [`Abort`]. Whole transactions return [`Error`].
//!
//! ```compile_fail,E0277
//! # use hotrow::{Error, Table, Transaction};
//! fn deposit(tx: &mut Transaction<'_>, accounts: &Table<String, i64>, name: &str) -> Result<(), Error> {
//!     accounts.update(tx, name, |balance| *balance += 1)?;
//!     Ok(())
//! }
//! ```
//!
//! ```text
//! error[E0277]: `?` couldn't convert the error to `hotrow::Error`
//! the trait `From<hotrow::Abort>` is not implemented for `hotrow::Error`
//! ```
//!
//! Return `Result<(), Abort>`. `?` turns your own error into an `Abort`, and [`Abort::because`] turns a text into one.
//!
//! # 3. A key has one reference too many
//!
//! ```compile_fail,E0277
//! # let db = hotrow::Database::open().unwrap();
//! # let accounts = db.table::<String, i64>("accounts").create().unwrap();
//! let balance = db.transact(|tx| accounts.get(tx, &"ada"));
//! ```
//!
//! ```text
//! error[E0277]: rows with keys of type `String` cannot be looked up by a `&str`
//! note: keys of type `String` are also looked up by `&str`, and keys of type `Vec<u8>` by `&[u8]`
//! help: consider removing the leading `&`-reference
//! ```
//!
//! Write `accounts.get(tx, "ada")`. Numbers need the reference: `get(tx, &7)`. A table with keys of type `&'static str` does not compile either
//! (`` `&'static str` is not a key ``): make it with `String`.
//!
//! # 4. An inline row has padding
//!
//! ```compile_fail,E0080
//! # use hotrow::Value;
//! #[derive(Clone, Copy, Value)]
//! #[value(inline)]
//! struct Row {
//!     number: u64,
//!     is_open: bool,
//! }
//! ```
//!
//! ```text
//! error[E0080]: evaluation panicked: `Row` has padding, which an inline value must not have
//!               fill it with a field such as `reserved: [u8; N]`; under `repr(C)`, also order the fields by size
//!               or use `#[value(boxed)]`
//! ```
//!
//! Add `reserved: [u8; 7]`, or leave `#[value(inline)]` out: see [tables](super::tables).
//!
//! # 5. A transaction within a transaction
//!
//! ```
//! # let db = hotrow::Database::open()?;
//! # let accounts = db.table::<u64, i64>("accounts").create()?;
//! # accounts.bulk_insert([(1, 10)])?;
//! let balance = || db.transact(|tx| accounts.get(tx, &1));
//! let nested = db.transact(|_| Ok(balance()));
//! # let refused = nested?.unwrap_err();
//! let text = "misuse: a transaction was started inside another one of its thread: pass the outer `tx` on instead";
//! assert_eq!(refused.to_string(), text);
//! # Ok::<(), hotrow::Error>(())
//! ```
//!
//! Give the function a `tx: &mut Transaction<'_>`, and call it from both. The rule is the same for transactions of two databases.
//!
//! # 6. The body catches an error
//!
//! Writes of the failed part would stay, so that the transaction ends with an error.
//!
//! ```
//! # let db = hotrow::Database::open()?;
//! # let accounts = db.table::<u64, i64>("accounts").create()?;
//! # accounts.bulk_insert([(1, 10)])?;
//! let caught = db.transact(|tx| Ok(accounts.insert(tx, 1, 0).is_ok()));
//! let text = "misuse: the body has returned a result although one of its operations had failed: pass the error up \
//!             with `?`, or catch it behind a savepoint";
//! assert_eq!(caught.unwrap_err().to_string(), text);
//!
//! let inserted = db.transact(|tx| accounts.insert_if_absent(tx, 1, 0))?;
//! let behind_a_savepoint = db.transact(|tx| Ok(tx.savepoint(|tx| accounts.insert(tx, 1, 0))?.is_ok()))?;
//! assert_eq!((inserted, behind_a_savepoint), (false, false));
//! # Ok::<(), hotrow::Error>(())
//! ```
//!
//! # 7. A row is missing, or is there already
//!
//! ```
//! # let db = hotrow::Database::open()?;
//! # let accounts = db.table::<u64, i64>("accounts").create()?;
//! # accounts.bulk_insert([(1, 10)])?;
//! let missing = db.transact(|tx| accounts.update(tx, &7, |balance| *balance += 1)).unwrap_err();
//! assert_eq!(missing.to_string(), "rolled back: accounts has no row with key 7");
//! let there = db.transact(|tx| accounts.insert(tx, 1, 0)).unwrap_err();
//! assert_eq!(there.to_string(), "rolled back: accounts has a row with key 1 already");
//! # Ok::<(), hotrow::Error>(())
//! ```
//!
//! If this is an ordinary case, use [`update_if_present`](Table::update_if_present), [`insert_if_absent`](Table::insert_if_absent) or
//! [`upsert`](Table::upsert).
//!
//! # 8. A table is made twice
//!
//! ```
//! # let db = hotrow::Database::open()?;
//! let first = db.table::<u64, i64>("accounts").create()?;
//! let second = db.table::<u64, i64>("accounts").create().unwrap_err();
//! let text = "there is a table or an index named accounts already: open it, or choose another name";
//! assert_eq!(second.to_string(), text);
//! # Ok::<(), hotrow::Error>(())
//! ```
//!
//! Clone the handle, or use [`open`](TableBuilder::open) or [`create_or_open`](TableBuilder::create_or_open).
//!
//! # 9. A hash table is scanned
//!
//! ```
//! # use hotrow::{Database, Direction};
//! # let db = Database::open()?;
//! let accounts = db.table::<u64, i64>("accounts").hash(1_000).create()?;
//! let scanned = db.transact(|tx| accounts.collect(tx, .., Direction::Ascending, 10)).unwrap_err();
//! let text = "misuse: table accounts has a hash index, which cannot be scanned: make it without `hash`";
//! assert_eq!(scanned.to_string(), text);
//! # Ok::<(), hotrow::Error>(())
//! ```
//!
//! Leave `.hash(n)` out, or add a [secondary index](TableBuilder::secondary), which is ordered.
//!
//! # 10. A durable table's row is not `Stored`
//!
//! ```
//! # use hotrow::prelude::*;
//! # let directory = tempfile::tempdir()?;
//! # let directory = directory.path();
//! #[derive(Clone, Value)]
//! struct Account {
//!     owner: String,
//! }
//!
//! let db = Database::builder().open_at(directory)?;
//! let refused = db.table::<u64, Account>("accounts").create().err().unwrap().to_string();
//! assert!(refused.starts_with("accounts cannot be durable, because "));
//! assert!(refused.ends_with("Account has no stored form: derive `Stored` for it, or say `in_memory()`"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A `main` that returns an error shows its debug form, which lacks such advice: print the error by `{}`. Opening a directory fails with an
//! error of its own ([crash safety](super::crash)), so that `main` returns `Box<dyn std::error::Error>`.
//!
//! # Mistakes without a message
//!
//! - **Effects in the body**: each attempt of the body sends its mail again. Use [hooks](super::waiting#hooks).
//! - **The hot row first**: other transactions may conflict with it until the commit. [Touch it last](super::hot_rows).
//! - **A read of a value that is only changed**: use [`add`](Table::add) in place of [`update`](Table::update).
//! - **A wait for another thread in the body**: that thread may wait for this transaction. Use [`retry`](Transaction::retry).
//! - **A long report as a transaction**: use a [snapshot](super::reports).
//! - **An answer that must come in time**: without a deadline in a [`RetryPolicy`], the engine tries for ever ([errors](super::errors)).

#[allow(unused_imports, reason = "the text links to these")]
use crate::*;

//! # Surviving a crash: keep tables in a directory
//!
//! With the feature `durable`, `open_at` opens a database at a directory. When the next process opens this directory, the tables are there again,
//! with all acknowledged changes. Their keys and rows derive [`Stored`](trait@Stored), in addition to `Value` or `Key`.
//!
//! ```
//! use hotrow::prelude::*;
//! use hotrow::{Error, NotDurable};
//! use std::path::Path;
//! use std::sync::Arc;
//!
//! #[derive(Debug, Clone, PartialEq, Value, Stored)]
//! struct Order {
//!     item: String,
//!     pieces: u32,
//! }
//!
//! struct Orders {
//!     db: Database,
//!     orders: Table<u64, Order>,
//!     numbers: Arc<Sequence>,
//! }
//!
//! impl Orders {
//!     fn open(directory: &Path) -> Result<Self, Box<dyn std::error::Error>> {
//!         let db = Database::builder().checkpoint_after(64 << 20).open_at(directory)?;
//!         let orders = db.table("orders").create()?; // With the rows that were recovered.
//!         let numbers = db.durable_sequence("order numbers", 1)?;
//!         Ok(Self { db, orders, numbers })
//!     }
//!
//!     /// Takes an order. It is on the device when this has returned.
//!     fn take(&self, item: &str, pieces: u32) -> Result<u64, Error> {
//!         self.db.transact(|tx| {
//!             let number = self.numbers.next(tx);
//!             self.orders.insert(tx, number, Order { item: item.to_owned(), pieces })?;
//!             Ok(number)
//!         })
//!     }
//! }
//!
//! # let directory = tempfile::tempdir()?;
//! # let directory = directory.path();
//! let orders = Orders::open(directory)?;
//! let number = orders.take("tea", 2)?;
//!
//! // One database at a time has the directory.
//! let second = Orders::open(directory).err().unwrap().to_string();
//! assert!(second.ends_with("is in use: close the database that this process or another has open there"));
//!
//! // A log that has ended takes no more.
//! orders.db.close()?;
//! let late = orders.take("milk", 1).unwrap_err();
//! let text = "not durable: rolled back, because the log takes no more: the log is closed, because its database was: \
//!             open the database again";
//! assert_eq!(late.to_string(), text);
//! assert!(matches!(late, Error::NotDurable(NotDurable { has_committed: false, .. })));
//! drop(orders);
//!
//! let orders = Orders::open(directory)?;
//! let order = orders.db.transact(|tx| orders.orders.get(tx, &number))?;
//! assert_eq!(order, Some(Order { item: "tea".into(), pieces: 2 }));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Guarantees
//!
//! - A transaction is there after a crash as a whole or not at all. If one is there, all transactions that it has read from are there, too.
//! - [`transact`](Engine::transact) returns when the commit is on the device (*acknowledgement*). A crash undoes no acknowledged commit.
//! - A transaction that only reads is acknowledged when all that it has read is on the device.
//!
//! Objects without a name, collections, and tables made with [`in_memory`](TableBuilder::in_memory) are lost when the process ends. Boxes, counters,
//! arrays and sequences with a name are kept: make them with `durable_box` and similar methods.
//!
//! # Failures
//!
//! `open_at` fails with `hotrow::durable::OpenError`, which is no [`Error`]. No file is changed then.
//!
//! | error | meaning | do |
//! |---|---|---|
//! | `… is in use: …` at the opening | another process has the directory | stop it, or use another directory |
//! | `orders cannot be durable, because Order has no stored form: …` | a type does not derive [`Stored`](trait@Stored) | derive it |
//! | `not durable: rolled back, because the log takes no more: …` | nothing happened | repair the device, open the database again |
//! | `not durable: committed in memory, but perhaps not on the device: …` | a crash may undo the commit | the same; then check if the commit is there |
//! | `… is corrupt at byte …` at the opening | a file was damaged, and none was changed | restore a backup (`DurableDatabase::backup`) |
//!
//! A crash may cut off a write. The part that is left is no error: the next opening removes it.
//!
//! # Speed
//!
//! - Use many threads, futures or [tickets](super::durability#acknowledgement) (`DurableDatabase::transact_with_ticket`): one write of the device
//!   serves all commits that wait for it.
//! - `Mode::Async` acknowledges immediately; a crash may then undo the commits of the last interval.
//! - `checkpoint_after` bounds the log and the time of recovery.
//!
//! To test a program against losses of power, open the database in a `Faulty` storage and continue with the storage that `power_loss` returns.
//!
//! See also: [durability](super::durability), [changes of types](super::evolving), [a ledger](super::ledger).

#[allow(unused_imports, reason = "the text links to these")]
use crate::*;

//! Durable databases: what is acknowledged is not lost.
//!
//! A database that is [opened at a directory](DurableBuilder::open_at) logs the commits of its tables, under every protocol, and
//! finds their rows again when it is opened the next time. So do boxes, counters, arrays and sequences that have a
//! [name](DurableDatabase::durable_box) in the database. Tables that say so ([`TableBuilder::in_memory`](hotrow_tables::TableBuilder::in_memory))
//! and objects without a name live in memory alone.
//!
//! ```
//! use hotrow_durable::DurableBuilder;
//! use hotrow_tables::Database;
//!
//! # let directory = std::env::temp_dir().join(format!("hotrow-durable-{}", std::process::id()));
//! # std::fs::create_dir_all(&directory)?;
//! let db = Database::builder().open_at(&directory)?;
//! let accounts = db.table::<u64, i64>("accounts").create()?;
//! db.transact(|tx| accounts.insert(tx, 7, 100))?;
//! drop((accounts, db));
//!
//! let db = Database::builder().open_at(&directory)?;
//! let other = db.table::<u64, u64>("accounts").create().unwrap_err();
//! assert!(other.to_string().contains("row: u64 was i64"));
//! let accounts = db.table::<u64, i64>("accounts").create()?;
//! assert_eq!(db.transact(|tx| accounts.get(tx, &7))?, Some(100));
//! # drop((accounts, db));
//! # std::fs::remove_dir_all(&directory)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # When a commit is acknowledged
//!
//! A transaction that has committed releases its locks at once. Its caller is told when the log says so ([`Mode`]): with `Group`, when
//! its record and those of all commits that it has read from are on the device; with `Async`, at once, and a crash may undo the commits
//! of the last interval, from some commit on. A transaction may ask for less ([`Durability::Buffered`](hotrow_core::Durability)). With a
//! [`Ticket`] a thread does something else meanwhile.
//!
//! # Names and types
//!
//! A table is found again by its name. The log keeps the complete [schemas](hotrow_stored) of its keys and rows, and
//! [`create`](hotrow_tables::TableBuilder::create) compares them with those of the program before any row is read. [Safe
//! changes](hotrow_stored#safe-changes) are made by it: if they change bytes, the rows are written anew, all or none. Other changes are a
//! [migration](hotrow_tables::TableBuilder::migrate_from) of the program's own, or refused. Tables that the program does not make keep their
//! rows, unread. Tables and [column groups](trait@hotrow_core::Value) may be added at any time.
//!
//! A migration:
//!
//! ```
//! use hotrow_durable::DurableBuilder;
//! use hotrow_tables::Database;
//!
//! # let directory = std::env::temp_dir().join(format!("hotrow-migration-{}", std::process::id()));
//! # std::fs::create_dir_all(&directory)?;
//! let db = Database::builder().open_at(&directory)?;
//! let prices = db.table::<String, u32>("prices").create()?;
//! db.transact(|tx| prices.insert(tx, "tea".into(), 250))?;
//! drop((prices, db));
//!
//! // Euros instead of cents.
//! let db = Database::builder().open_at(&directory)?;
//! let prices = db.table::<String, f64>("prices")
//!     .migrate_from(|name: String, cents: u32| Ok::<_, String>((name, f64::from(cents) / 100.0)))
//!     .create()?;
//! assert_eq!(db.transact(|tx| prices.get(tx, "tea"))?, Some(2.5));
//! # drop((prices, db));
//! # std::fs::remove_dir_all(&directory)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What fails
//!
//! Once a write to the device has failed, nothing is acknowledged any more: transactions that write end with
//! [`Error::NotDurable`](hotrow_core::Error). What was acknowledged before is there when the database is opened again.

#[cfg(test)]
mod arbitrary;
mod checkpoint;
mod compiled;
mod database;
mod error;
mod followers;
mod objects;
mod opening;
mod rows;
mod sequence;
mod settings;
mod shape;
mod state;
mod steps;
pub mod structures;
mod table;
mod ticket;

#[doc(hidden)]
pub use compiled::functions;
pub use database::DurableDatabase;
pub use error::{CheckpointError, OpenError};
pub use hotrow_log::{
    AroundWaits, DumpError, Failure, Logger, Mode, OpenReport, Options as LogOptions, Progress,
    Report as LogReport, TornTail, VerifyReport, dump, storage, verify,
};
pub use opening::DurableBuilder;
pub use ticket::Ticket;

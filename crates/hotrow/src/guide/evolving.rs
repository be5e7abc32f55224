//! # Changing a row's type: open old rows with a new program
//!
//! A durable database keeps the schema of each table: all fields and variants, by name and type. A new version of the program opens the rows of the
//! old one if the change is *safe*, or if the program says how to *migrate*. Everything else is refused before a row is read.
//!
//! ```
//! use hotrow::prelude::*;
//!
//! // The row's type in each version of the program. The names of types do not count.
//! #[derive(Clone, Value, Stored)]
//! struct Account1 {
//!     name: String,
//!     euros: f64,
//! }
//!
//! #[derive(Clone, Value, Stored)]
//! struct Account2 {
//!     #[stored(alias = "name")] // Another name.
//!     owner: String,
//!     euros: f64,
//!     #[stored(default)] // A field more.
//!     notes: Vec<String>,
//! }
//!
//! #[derive(Clone, Value, Stored)]
//! struct Account3 {
//!     owner: String,
//!     cents: i64,
//!     notes: Vec<String>,
//! }
//!
//! # let directory = tempfile::tempdir()?;
//! # let directory = directory.path();
//! let db = Database::builder().open_at(directory)?;
//! let accounts = db.table::<u64, Account1>("accounts").create()?;
//! db.transact(|tx| accounts.insert(tx, 1, Account1 { name: "ada".into(), euros: 2.5 }))?;
//! drop((accounts, db));
//!
//! // Safe: `create` reads the old rows as new ones.
//! let db = Database::builder().open_at(directory)?;
//! let accounts = db.table::<u64, Account2>("accounts").create()?;
//! let owner = db.transact(|tx| accounts.read(tx, &1, |account| account.owner.clone()))?;
//! assert_eq!(owner.as_deref(), Some("ada"));
//! drop((accounts, db));
//!
//! // Not safe: refused, and no row is touched.
//! let db = Database::builder().open_at(directory)?;
//! let refused = db.table::<u64, Account3>("accounts").create().unwrap_err();
//! let text = "the rows of accounts were written with other types, row.cents: i64 is new, and has no default: \
//!             change the type back, or migrate them";
//! assert_eq!(refused.to_string(), text);
//!
//! // A migration, which may stay in the program.
//! let accounts = db.table::<u64, Account3>("accounts").migrate_from(
//!     |number: u64, old: Account2| {
//!         let cents = (old.euros * 100.0).round();
//!         if !(0.0..1e15).contains(&cents) {
//!             return Err(format!("{} euros", old.euros)); // Ends `create`; all rows are as before.
//!         }
//!         Ok((number, Account3 { owner: old.owner, cents: cents as i64, notes: old.notes }))
//!     },
//! );
//! let accounts = accounts.create()?;
//! assert_eq!(db.transact(|tx| accounts.read(tx, &1, |account| account.cents))?, Some(250));
//! # drop((accounts, db));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Safe changes
//!
//! | change | write at the field, variant or type |
//! |---|---|
//! | a new field of a struct, or of a variant with named fields | `#[stored(default)]`, `#[stored(default = EXPRESSION)]` |
//! | a new variant | nothing; place it after all others |
//! | another name of a field or variant | `#[stored(alias = "OLD NAME")]` |
//! | another name of the type, or another module | nothing |
//! | another index, constraint, or [column group](super::hot_rows#column-groups) | nothing |
//!
//! All other changes are migrations: [`migrate_from`](TableBuilder::migrate_from) may be repeated, once for each earlier version. Its closure may
//! change keys, too.
//!
//! # Guarantees
//!
//! A conversion or a migration changes all rows or none, also if the process ends in the middle. A directory that already has the new types does not
//! change.
//!
//! # Failures
//!
//! - [`TableMisuse::OtherSchema`], as above: the text has the first place that differs, and both types.
//! - [`TableMisuse::Malformed`]: the closure, a constraint or a unique index refuses a row, or two rows have the same new key.
//! - A field whose type is not [`Stored`](trait@Stored) does not compile: `` `Uuid` is not stored ``. The note says how to store a foreign type:
//!   `#[stored(with = "hotrow::stored::AsText")]`.
//!
//! Once a newer version of the program has made the table, `create` refuses the older version. So take a backup (`DurableDatabase::backup`) before
//! you deploy a new version.
//!
//! # Time
//!
//! `create` reads, converts and logs all rows of the table before it returns. A change that leaves the stored bytes as they are, such as another
//! name, writes no row. A table that the program does not make keeps its rows; nobody reads them.
//!
//! See also: module [`stored`](mod@stored), [crash safety](super::crash), [tables](super::tables).

#[allow(unused_imports, reason = "the text links to these")]
use crate::*;

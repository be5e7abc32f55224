//! # Surviving the process
//!
//! With the feature `durable` a database lives in a directory. Its tables, and objects that have a name in it, are there again at the next
//! opening, with everything that was acknowledged. A table that says `in_memory()` is not. The methods are those of
//! `DurableBuilder` and `DurableDatabase`, two traits that the [prelude](crate::prelude) has.
//!
//! ```
//! # #[cfg(feature = "durable")]
//! # {
//! use hotrow::prelude::*;
//!
//! # let directory = std::env::temp_dir().join(format!("hotrow-guide-{}", std::process::id()));
//! # std::fs::create_dir_all(&directory)?;
//! let open = || -> Result<_, Box<dyn std::error::Error>> {
//!     let db = Database::builder().checkpoint_after(64 << 20).open_at(&directory)?;
//!     let seats = db.table::<String, u32>("seats").hash(100).create()?;
//!     let sold = db.durable_counter("sold", 0)?;
//!     Ok((db, seats, sold))
//! };
//!
//! let (db, seats, sold) = open()?;
//! seats.bulk_insert([("concert".into(), 500)])?;
//! db.transact(|tx| {
//!     seats.update(tx, "concert", |left| *left -= 2)?;
//!     sold.add(tx, 2)
//! })?; // On the device, because `transact` has returned.
//! db.close()?;
//! drop((db, seats, sold));
//!
//! let (db, seats, sold) = open()?;
//! let found = db.transact(|tx| Ok((seats.get(tx, "concert")?, sold.get(tx)?)))?;
//! assert_eq!(found, (Some(498), 2));
//!
//! // Many commits in few writes: tickets tell when.
//! let mut tickets = Vec::new();
//! for event in 0..100 {
//!     let (_, ticket) = db.transact_with_ticket(|tx| seats.insert(tx, format!("event {event}"), 50))?;
//!     tickets.push(ticket);
//! }
//! tickets.last().unwrap().wait()?;
//! assert!(tickets.iter().all(|ticket| ticket.is_durable()));
//! # drop((db, seats, sold));
//! # std::fs::remove_dir_all(&directory)?;
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Acknowledgement
//!
//! | choice | `transact` returns | a crash may lose |
//! |---|---|---|
//! | `Mode::Group`, the default | when the commit and all that it has read are on the device | nothing that was acknowledged |
//! | `Mode::Async { interval }` | at once | the commits of the last interval, and of one write |
//! | `Worker::set_durability(Durability::Buffered)` | at once, for one worker's transactions | those, until a later acknowledgement on any worker |
//! | `DurableDatabase::transact_with_ticket` | at once, with a ticket to wait for or to `.await` | commits whose ticket has not answered |
//!
//! A crash always loses the end of the order of commits: a commit is never there without its predecessors.
//!
//! - A commit releases its locks before its record is on the device, so that a hot row is not locked during a write. Others may read what is
//!   not durable yet; they are acknowledged after what they have read.
//! - One device write serves all commits that came during the write before. A single thread that waits for each commit therefore gets one
//!   commit for each write.
//! - A transaction that only reads waits for the device only if it has read something, or the absence of something, that is not there yet. A
//!   [strict snapshot](crate::guide::snapshots) does not wait.
//! - Work that must follow the acknowledgement goes into [`Transaction::on_durable`](crate::Transaction::on_durable). Where nobody waits
//!   for the commit, the hook runs on a thread of the log, up to a millisecond later.
//!
//! # Room, and time to recover
//!
//! A checkpoint writes all rows of one snapshot beside transactions; the log before it is then deleted. `Database::checkpoint` makes one.
//! With `checkpoint_after(bytes)` the database makes them by itself, whenever so many bytes were logged. If one fails, the database tries
//! again, after at most ten seconds; `Database::last_checkpoint_error` says why. Recovery reads the newest checkpoint and the log after it, on all
//! threads; `on_recovery` reports its progress.
//!
//! `LogOptions::space_bytes_max` limits the log. With `checkpoint_after`, a checkpoint also begins when half of that room is used. A transaction
//! that finds no room waits until a checkpoint has made some. If none begins within `LogOptions::space_wait` (1 s), the transaction
//! ends with `Error::NotDurable`.
//!
//! `Database::backup` copies a running database to another directory, which opens as any other. An interrupted copy is refused.
//!
//! # The directory
//!
//! One process at a time has the directory; a lock of the directory itself enforces it. A fork of the process is refused. All files have the
//! database's identity, so that files of different databases are refused. A closed database can be opened, and read, on a read-only medium.
//!
//! # Tables and objects
//!
//! | call | meaning |
//! |---|---|
//! | `TableBuilder::create` | makes a table, or finds the recovered rows of its name; a second one of this name in one run is `TableMisuse::NameTaken` |
//! | `TableBuilder::create_or_open` | the same, or the table that this run has made |
//! | [`TableBuilder::load`](crate::TableBuilder::load) | makes a table that becomes durable as a whole; [`is_new`](crate::Loading::is_new) is false if it was recovered |
//! | `durable_box`, `durable_counter`, `durable_array` | the object of a name; an array can become longer |
//! | `durable_sequence` | a [sequence](crate::Sequence); numbers are reserved in blocks of 1,024, so that each opening leaves a gap of 1,536 at most |
//! | `Database::drop_table` | drops a table; a crash leaves it whole or gone, and handles that are left get `Misuse::Dropped` |
//! | `Database::drop_recovered` | drops a recovered table or object that the program has not made |
//!
//! Tables and objects that the program does not make are kept, unread.
//!
//! # Changing the program
//!
//! Types of keys and rows derive [`Stored`](crate::Stored), beside `Key` or `Value`: the directory keeps their complete schemas. A
//! program with other types is refused before any row is read, by an error that names the place (`row.price: i32 was u32`). Safe changes:
//!
//! - an added field with a default: `#[stored(default)]` or `#[stored(default = EXPRESSION)]`;
//! - an added variant behind all others;
//! - another name of a field or variant, with `#[stored(alias = "OLD NAME")]`;
//! - another name or module of the type;
//! - added tables, objects, indexes and column groups.
//!
//! Any other change needs a migration, which changes all rows of the table or none:
//!
//! ```
//! # #[cfg(feature = "durable")]
//! # {
//! use hotrow::prelude::*;
//!
//! /// An account, as the first version of the program had it.
//! #[derive(Clone, Value, Stored)]
//! struct OldAccount {
//!     name: String,
//!     euros: f64,
//! }
//!
//! #[derive(Clone, Value, Stored)]
//! struct Account {
//!     owner: String,
//!     cents: i64,
//! }
//!
//! # let directory = std::env::temp_dir().join(format!("hotrow-guide-types-{}", std::process::id()));
//! # std::fs::create_dir_all(&directory)?;
//! # let db = Database::builder().open_at(&directory)?;
//! # let accounts = db.table::<u64, OldAccount>("accounts").create()?;
//! # db.transact(|tx| accounts.insert(tx, 1, OldAccount { name: "ada".into(), euros: 2.5 }))?;
//! # drop((accounts, db));
//! let db = Database::builder().open_at(&directory)?;
//! let accounts = db.table::<u64, Account>("accounts").migrate_from(|number: u64, old: OldAccount| {
//!     Ok::<_, String>((number, Account { owner: old.name, cents: (old.euros * 100.0).round() as i64 }))
//! });
//! let accounts = accounts.create()?;
//! assert_eq!(db.transact(|tx| accounts.read(tx, &1, |account| account.cents))?, Some(250));
//! # drop((accounts, db));
//! # std::fs::remove_dir_all(&directory)?;
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Fields of foreign types (dates, decimals, JSON) name a [codec](crate::stored): `#[stored(with = "hotrow::stored::AsText")]`. The
//! transaction that writes a value which could not be read back is refused.
//!
//! # Failures
//!
//! After one failed write the log takes no more: transactions that write end with `Error::NotDurable`, which says whether they have committed in
//! memory. A full disk is such a failure, and `Database::close` has the same effect. Transactions that only read go on, unless they have read what
//! did not reach the device. Everything acknowledged is there after the next opening.
//!
//! Bytes of a last write that a crash cut off are removed, and `Database::open_report` mentions them. Damage before them is an error that names
//! file and offset, and no file is changed. `hotrow log verify DIR` reads everything without opening the database.

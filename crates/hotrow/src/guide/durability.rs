//! # Surviving the process
//!
//! With the feature `durable`, a database can live in a directory. Its tables, and objects that have a name in it, are there again when it
//! is opened the next time, with everything that was acknowledged. A table that should live in memory says `in_memory()`.
//! The methods are those of two traits, `DurableBuilder` and `DurableDatabase`, which the [prelude](crate::prelude) has.
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
//! })?;
//! // On the device, because `transact` has returned. A closed database leaves the directory to the next one.
//! db.close()?;
//! drop((db, seats, sold));
//!
//! let (db, seats, sold) = open()?;
//! let found = db.transact(|tx| Ok((seats.get(tx, "concert")?, sold.get(tx)?)))?;
//! assert_eq!(found, (Some(498), 2));
//! # drop((db, seats, sold));
//! # std::fs::remove_dir_all(&directory)?;
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # When the caller is told
//!
//! | choice | `transact` returns | a crash may lose |
//! |---|---|---|
//! | `Mode::Group`, the default | when the commit and all that it has read are on the device | what nobody was told of |
//! | `Mode::Async { interval }` | at once | the commits of the last interval, and of the time that one write takes |
//! | `Worker::set_durability(Durability::Buffered)` | at once, for the transactions of one worker | those, until a later acknowledgement on any worker |
//! | `DurableDatabase::transact_with_ticket` | at once, with a ticket to wait for or to `.await` | what no ticket has answered for |
//!
//! A crash always loses the end of the order of commits: nothing is there whose predecessors are not.
//!
//! A commit releases its locks *before* its record is on the device, so that a hot row is never locked for the time of a write.
//! Others may read what is not durable yet; they are told later than what they have read. One device write serves all commits that
//! came while the last one was being written: the more threads (or tickets), the more commits in one write. A single thread that waits for
//! each commit gets one commit for each write of its device, whatever the database.
//!
//! A transaction that only reads waits for the device only if it has read what is not there yet: a row that was written a moment ago, or
//! the absence of one in a table that was. A [strict snapshot](crate::guide::snapshots) does not wait at all: it shows everything up to the last
//! write of the device, and so all that anybody was told. If somebody was told early (`Durability::Buffered`, a ticket), it shows
//! that, too, and whoever reads on it is told when it is on the device.
//!
//! Work that must happen once a commit is on the device is left to a hook, [`Transaction::on_durable`](crate::Transaction::on_durable), in each of
//! these modes. A hook of a transaction that nobody waits for runs on a thread of the log's, up to a millisecond later than if somebody waited:
//! commits are gathered meanwhile.
//!
//! ```
//! # #[cfg(feature = "durable")]
//! # {
//! use hotrow::prelude::*;
//!
//! # let directory = std::env::temp_dir().join(format!("hotrow-guide-tickets-{}", std::process::id()));
//! # std::fs::create_dir_all(&directory)?;
//! let db = Database::builder().open_at(&directory)?;
//! let orders = db.table::<u64, String>("orders").create()?;
//! let mut tickets = Vec::new();
//! for number in 0..100 {
//!     let (_, ticket) = db.transact_with_ticket(|tx| orders.insert(tx, number, "tea".into()))?;
//!     tickets.push(ticket);
//! }
//! // All of them, in a few writes.
//! tickets.last().unwrap().wait()?;
//! assert!(tickets.iter().all(|ticket| ticket.is_durable()));
//! # drop((db, orders));
//! # std::fs::remove_dir_all(&directory)?;
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The first rows
//!
//! A table that is [loaded](crate::TableBuilder::load) becomes durable when the loading is finished, as a whole: after a crash before that there is no
//! such table. [`Loading::is_new`](crate::Loading::is_new) is false for one that was recovered, which has its rows already.
//!
//! # Room, and time to recover
//!
//! The log grows with each commit until a checkpoint: all rows as one snapshot sees them, written beside transactions, after which the log
//! before it is deleted. `checkpoint_after(bytes)` makes one whenever so much was logged, by this process or earlier ones,
//! `Database::checkpoint` makes one now. If one that the database makes by itself fails, it is tried again, and
//! `Database::last_checkpoint_error` says why; `LogReport` counts both. Recovery
//! reads the newest checkpoint and the log after it, on all threads; `on_recovery` tells how far it is. `Database::backup` copies
//! a running database to another directory, to be opened as any other. A copy that was interrupted is refused.
//!
//! `LogOptions::space_bytes_max` limits the log: a transaction that finds no room waits for a checkpoint, and one is made when half of the room is
//! used.
//!
//! # The directory
//!
//! One process at a time has the directory, by a lock of the directory itself. It is held open, so that neither a change of the working directory nor
//! another name of it leads elsewhere. A fork of the process is refused (the log says that it is a fork): only the parent goes on. All files have
//! the database's identity, so that files that do not belong together are refused. A database that was closed can be opened, and read, on a
//! medium that can only be read.
//!
//! # Changing the program
//!
//! Tables and objects are found by their names. Their types derive [`Stored`](crate::Stored), beside `Value` or `Key`: the directory keeps
//! their complete schemas, all kinds of numbers, fields and variants by name. A program with other types is refused before anything is
//! read as the wrong type, by an error that names the place (`row.price: i32 was u32`). These changes are safe:
//!
//! - a field more, which has a default: `#[stored(default)]` or `#[stored(default = EXPRESSION)]`;
//! - a variant more, behind all others;
//! - another name, if the field or variant says `#[stored(alias = "OLD NAME")]`;
//! - another name of the type, or another module.
//!
//! All others are migrations: the table says how the rows of the earlier type become those of the present one. All of them do, or none.
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
//!     #[stored(alias = "name")]
//!     owner: String,
//!     cents: i64,
//!     #[stored(default)]
//!     notes: Vec<String>,
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
//!     let cents = (old.euros * 100.0).round() as i64;
//!     Ok::<_, String>((number, Account { owner: old.name, cents, notes: Vec::new() }))
//! });
//! let accounts = accounts.create()?;
//! assert_eq!(db.transact(|tx| accounts.read(tx, &1, |account| account.cents))?, Some(250));
//! # drop((accounts, db));
//! # std::fs::remove_dir_all(&directory)?;
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Fields of foreign types (dates, decimals, JSON) say how they are stored: `#[stored(with = "hotrow::stored::AsText")]`, or another
//! [codec](crate::stored). A value that could not be read back is refused by the transaction that writes it. Tables, objects, indexes and column
//! groups can be added at any time; an array can become longer. What the program does not make is kept, unread.
//!
//! `TableBuilder::create` makes a table, or finds the rows of one that an earlier run has made; a second one of the same name in one run is
//! `TableMisuse::NameTaken`. `create_or_open` is for places of a program that do not know which of them comes first.
//!
//! `Database::drop_table` drops a table, durable or not: a crash leaves it whole or gone, its name is free, and handles that are left get
//! `Misuse::Dropped`. `Database::drop_recovered` drops a table or an object that the program does not make any more.
//!
//! `Database::durable_sequence` gives numbers that no other transaction which survives has drawn, over all runs. It reserves them in blocks
//! of 1,024, without waiting for the device, and the next block before one is used up: each opening leaves a gap of 1,536 at most.
//!
//! # When something fails
//!
//! A device that has failed once is not trusted again: from then on transactions that write end with `Error::NotDurable`, which
//! says whether they have committed in memory. So they do after `Database::close`. Those that only read go on, and strict snapshots show the
//! last state that is on the device; a reader that has read what did not get there ends with `Error::NotDurable`, too. What was acknowledged is there after the next opening. A full disk is such a failure, and
//! so is a log that reaches its bound (`LogOptions::space_bytes_max`) while no checkpoint frees room.
//!
//! Bytes of a last write that was cut off by a crash are cut off, and reported (`Database::open_report`). Damage before them is an error
//! that names file and offset, and no file is changed. `hotrow log verify DIR` reads everything without opening the database.

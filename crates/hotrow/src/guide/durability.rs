//! # Surviving the process
//!
//! With the feature `durable` a database lives in a directory. Its tables and named objects are there again at the next opening, with
//! everything that was acknowledged; a table that says `in_memory()` is not. The methods are those of `DurableBuilder` and
//! `DurableDatabase`, two traits of the [prelude](crate::prelude).
//!
//! ```
//! # #[cfg(feature = "durable")]
//! # {
//! use hotrow::prelude::*;
//!
//! # let directory = tempfile::tempdir()?;
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
//! - A commit releases its locks before its record is on the device, so that a hot row is not locked during a write. A transaction that
//!   has read its writes is acknowledged after it.
//! - One device write serves all commits that came during the write before; a single thread that waits for each commit gets one for each
//!   write.
//! - A transaction that only reads waits for the device only if it has read something that is not there yet, or its absence. A
//!   [strict snapshot](crate::guide::snapshots) does not wait.
//! - [`Transaction::on_durable`](crate::Transaction::on_durable) leaves work for after the acknowledgement. Where nobody waits for the
//!   commit, a thread of the log runs it, up to a millisecond later.
//!
//! # Room, and time to recover
//!
//! A checkpoint writes all rows of one snapshot beside transactions; the log before it is then deleted. `Database::checkpoint` makes one;
//! with `checkpoint_after(bytes)` the database makes one whenever so many bytes were logged. If that fails, it tries again, after ten seconds
//! at most; `Database::last_checkpoint_error` says why. Recovery reads the newest checkpoint and the log after it; `on_recovery` reports its
//! progress.
//!
//! `LogOptions::space_bytes_max` limits the log. With `checkpoint_after`, a checkpoint also begins when half of that room is used. A transaction
//! that finds no room waits for a checkpoint; if none begins within `LogOptions::space_wait` (1 s), it ends with
//! `Error::NotDurable`.
//!
//! `Database::backup` copies a running database to another directory, which opens as any other. An interrupted copy is refused.
//!
//! # The directory
//!
//! One process at a time has the directory, by a lock of the directory itself; a fork of the process is refused, and so are files of another
//! database. A closed database can be opened, and read, on a read-only medium.
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
//! Types of keys and rows derive [`Stored`](crate::Stored): the directory keeps their schemas, and refuses a program with other types before
//! any row is read (`row.price: i32 was u32`). [Changes of a type](super::evolving) are safe or need a migration. Tables, objects and indexes
//! can be added at any time.
//!
//! # Failures
//!
//! After one failed write, a full disk included, the log takes no more: transactions that write end with `Error::NotDurable`. So they do
//! after `Database::close`. Transactions that only read go on, unless they have read what did not reach the device.
//!
//! Bytes of a last write that a crash cut off are removed, and `Database::open_report` mentions them. Damage before them is an error that names
//! file and offset, and no file is changed. `hotrow log verify DIR` checks a directory without opening the database.

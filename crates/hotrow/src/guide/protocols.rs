//! # Which protocol when
//!
//! Begin with the default, `occ`, which needs no name. Choose another protocol if many cores want the same rows, if the slowest
//! transactions count more than the mean, if all transactions are known beforehand, or if bodies rely on what they read before they commit.
//! Find out with `hotrow compare`, for the workload that is most like yours, on your machine and with your number of threads.
//!
//! | name | choose it when | behaviour |
//! |---|---|---|
//! | `occ` | first | reads lock nothing; the commit locks its writes and validates its reads |
//! | `chop` | all transactions are known [procedures](super::procedures), and do much beside their hot rows | runs procedures in pieces, each a transaction of `occ` |
//! | `ic3` | the same, on many cores, and they want the same rows of several tables | pieces, one for each table, which others see at once and come after |
//! | `plor` | many cores, hot rows, and tail latency counts | readers ignore write locks; at the commit the older transaction goes first |
//! | `drp` | many cores, hot rows, and operations that can be [deferred](super::deferred) | runs them after the commit point, in a pipeline ordered by rank |
//! | `tictoc` | reads should not abort because others overwrite the row, and the order of real time does not matter | a commit chooses a timestamp that fits its reads and writes |
//! | `mocc` | a few rows are hot, and transactions are alike | as `occ`, but reads lock rows that often made attempts fail |
//! | `wound-wait` | two-phase locking, and tail latency counts | the older transaction takes the lock, the younger waits |
//! | `wait-die` | two-phase locking, and done work counts | the older transaction waits, the younger aborts |
//! | `no-wait` | no transaction should wait | two-phase locking; a transaction that meets a lock aborts |
//! | `steal` | most transactions go through one row, and do much else without conflicts | two-phase locking; a waiter runs operations of the transaction ahead |
//! | `2pl-mcs` | two-phase locking with fair queues | as `steal`, without that; a deadlock aborts the youngest |
//! | `tl2`, `drp+opaque` | bodies rely on what they read before they commit | as `occ` with a global clock, as `drp`; each attempt sees one consistent state |
//! | `serial` | one or two threads do all the work | one transaction at a time |
//! | `none` | one thread is enough | no concurrency control; one worker |
//!
//! ```sh
//! hotrow compare tickets --protocol occ,plor,drp,wound-wait --threads 1,2,4,8
//! ```
//!
//! Results are the same under every protocol. The results page, `docs/results/README.md` of the repository, has measured figures.
//!
//! Under the protocols that lock, `plor` and `serial`, a transaction holds locks while its body runs: keep bodies short. A wait for a lock has no
//! limit but the deadline of the [`RetryPolicy`]. A transaction keeps its age over retries, so that the oldest gets through, except under
//! `no-wait` and `serial`.
//!
//! # Names
//!
//! A database has one protocol for its whole life:
//!
//! ```
//! use hotrow::protocols::PROTOCOLS;
//! use hotrow::{Any, Database, Error, Misuse, Protocol, TBox};
//!
//! /// Code that is generic over `Protocol` works with every database.
//! fn count_to_ten<P: Protocol>(db: &Database<P>) -> Result<u64, Error> {
//!     let number = TBox::new(db, 0u64);
//!     (0..10).try_for_each(|_| db.transact(|tx| number.update(tx, |number| *number += 1)))?;
//!     db.transact(|tx| number.get(tx))
//! }
//!
//! for protocol in PROTOCOLS.iter() {
//!     let db: Database<Any> = Database::builder().protocol(protocol.name).open()?;
//!     assert_eq!(count_to_ten(&db), Ok(10));
//! }
//! assert_eq!(count_to_ten(&Database::builder().protocol("plor+dwa+deadline=20").open()?), Ok(10));
//! assert_eq!(count_to_ten(&Database::open()?), Ok(10)); // A Database<Occ>.
//!
//! let unknown = Database::builder().protocol("2pl").open();
//! assert!(matches!(unknown, Err(Error::Misuse(Misuse::NoSuchVariant { .. }))));
//! # Ok::<(), Error>(())
//! ```
//!
//! A database without a name is one of [`Occ`], compiled as a type of its own. [`Any`] is any of the protocols: it calls through a table
//! of functions and keeps 32 bytes beside each value, so that small transactions take longer. Write `type Db = Database<Any>` once.
//!
//! # Variants
//!
//! Words behind a name make a variant, most of them to compare with ([`ProtocolInfo::for_comparison`](protocols::ProtocolInfo)). `hotrow list
//! --all` describes the usual ones.
//!
//! | name | difference |
//! |---|---|
//! | `chop-htm`, `dbx`, `naive-htm` | `chop`, `occ`, `serial` with hardware transactions, where there are any; `+partitions`, `+global` behind the first two: coarser locks if these fail |
//! | `plor+dwa`, `+optimistic`, `+latched` | write locks at the commit; the first three attempts as `occ`; a latch around each step of a lock |
//! | `plor+deadline`, `+deadline=N` | the nearer deadline goes first: N µs (10) for each record of the [`Profile`] |
//! | `drp+tame`, `+calm=N` | always defers; runs operations at once after N transactions (16) that met no other |
//! | `drp+early` | a transaction that was aborted because it had read lines up before its next attempt |
//! | `deferred-2pl` | `drp` without the pipeline: locks in the order of ranks, held to the end |
//! | `steal-basic`, `steal+ahead` | operations taken from one place; a waiter with nothing to run runs its own |
//! | `+exclusive` behind `drp`, `deferred-2pl`, `steal`, `steal-basic`, `2pl-mcs` | readers exclude each other |
//!
//! # Bytes as keys and rows
//!
//! Module `erased` (feature of that name) is for programs whose tables have no types of their own: interpreters, bindings.
//!
//! ```
//! use hotrow::erased::Database;
//!
//! let db = Database::open("plor+dwa")?;
//! let notes = db.table("notes").create()?; // Ordered; `.hash(n)` otherwise.
//! db.transact(|tx| tx.insert(&notes, "ada", "first"))?;
//! let length = db.transact(|tx| tx.update(&notes, "ada", |row| { row.set(b"second"); row.len() }))?;
//! assert_eq!(length, 6);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Keys have the order of their bytes: write numbers with `to_be_bytes`, and say `.word_keys()` if all keys have eight bytes. Rows of up to 24
//! bytes need no allocation. `erased::Database::from(db.clone())` is the erased form of a typed database; transactions of both forms mix. Operations
//! run at once under every protocol.

#[allow(unused_imports, reason = "the text links to these")]
use crate::*;

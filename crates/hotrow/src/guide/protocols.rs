//! # Which protocol when
//!
//! A protocol decides what happens when transactions meet on a row. A [`Database`] has one for its whole life, and it is chosen by its
//! name. The default is `occ`, and nothing has to name it. Objects, tables and transactions are the same under every protocol, and so are
//! their results; only speed and waiting differ.
//!
//! Measured, with the commands and machines that docs/results names:
//!
//! - **One or two cores, or rows that are seldom hot**: `occ`. On two cores `tl2` and `tictoc` are within a few percent of
//!   it. One hot row, an update of which is the whole transaction, with two threads: `occ` and `serial` reach 0.79 of what one
//!   mutex around everything does, `wait-die` 0.74, `plor` 0.62, `drp` 0.58, `steal` 0.51. Locks do not pay off there.
//! - **Many cores and hot rows, in transactions that can [defer](crate::guide::deferred) their operations**: `drp`. TPC-C's
//!   New-Order on one warehouse, on 32 simulated cores: 1.9 times the throughput of `occ`, and a tail (p99) of 73
//!   microseconds instead of 717. On one core it costs a tenth.
//! - **Many cores, and most transactions go through one row, with much work beside it**: `steal`, 2.4 times plain two-phase
//!   locking on 8 simulated cores.
//! - **The slowest transaction counts more than the mean**: `plor` on many cores. On two cores `occ` is faster, also in the
//!   tail; measure before you choose it.
//! - **Bodies that rely on what they have read before they commit**: `tl2`, or `drp+opaque`.
//! - **One thread**: `none`, and for two that do little else `serial`.
//!
//! | name | behaviour | choose it when |
//! |---|---|---|
//! | `occ` | reads lock nothing; at commit it locks the writes and checks the reads; no shared clock | first |
//! | `plor` | readers ignore write locks; the commit settles conflicts, where the older transaction goes first; no transaction starves | rows are hot and tail latency counts |
//! | `drp` | runs [deferred operations](crate::guide::deferred) after the point where the transaction can no longer fail, in a pipeline ordered by rank; a transaction whose operations are all deferred is aborted in [three rare cases](crate::guide::deferred) only | rows are hot, and transactions can declare their operations before they know the values |
//! | `deferred-2pl` | as `drp` without the pipeline: acquires locks in the order of ranks and holds them until the end | to compare with |
//! | `tictoc` | optimistic, in logical time: a commit chooses a timestamp that fits its reads and writes; serializable, but not in the order of real time | a read should not abort because another transaction overwrites the row meanwhile |
//! | `mocc` | as `occ` for cold rows; locks a hot row, one that has often made attempts fail, as soon as it is read | a few rows are hot, and all transactions matter equally |
//! | `no-wait` | locks everything that it reads or writes; a transaction that meets another's lock aborts | no transaction should ever wait, or to compare with |
//! | `wait-die` | as `no-wait`, but the older transaction waits, the younger one aborts | others should not stop half-done work |
//! | `wound-wait` | as `no-wait`, but the older transaction takes the lock, the younger one waits | of these three, when tail latency counts |
//! | `steal` | locks everything that it reads or writes, and queues for held locks; a waiting transaction runs operations of the lock holder; a deadlock aborts the youngest | most transactions go through one row, and most of their other work conflicts with nobody |
//! | `steal-basic` | as `steal`, with operations taken from one place for all | to compare with |
//! | `2pl-mcs` | as `steal`, but no transaction runs operations of another | to compare with: plain two-phase locking |
//! | `tl2` | as `occ`, with a global clock: even an attempt that will abort has seen one consistent state | bodies rely on their reads before they commit |
//! | `serial` | one lock around the database: one transaction at a time, without concurrency control | one or two threads do all the work |
//! | `none` | no concurrency control, one worker only | one thread is enough, or as the upper bound to measure against |
//!
//! Words behind a name make a *variant* of the protocol. [`PROTOCOLS`](protocols::PROTOCOLS) lists the usual ones, most of which are
//! there to compare with ([`ProtocolInfo::for_comparison`](protocols::ProtocolInfo)):
//!
//! | behind | words | |
//! |---|---|---|
//! | `plor` | `+dwa` | locks for writing are taken at the commit |
//! | | `+optimistic` | the first attempts read and write as `occ` does |
//! | | `+deadline`, `+deadline=N` | the nearer deadline goes first: N microseconds (10) for each record of the [`Profile`] |
//! | | `+latched` | a latch around each step of a lock, to compare with |
//! | `drp` | `+tame` | operations are always deferred |
//! | | `+calm=N` | operations run at once after N transactions (16) that met nobody |
//! | `drp`, `deferred-2pl` | `+opaque` | an attempt that reads before its commit sees one consistent state |
//! | | `+early` | a transaction that was aborted because it had read lines up before its next attempt |
//! | | `+exclusive` | readers exclude each other, to compare with |
//! | `steal`, `steal-basic` | `+ahead` | a waiter that finds nothing to run runs operations of its own |
//! | these and `2pl-mcs` | `+exclusive` | readers exclude each other, to compare with |
//!
//! A protocol is chosen when the database is opened:
//!
//! ```
//! use hotrow::{Any, Database, Error, Misuse};
//!
//! let name = std::env::var("PROTOCOL").unwrap_or("wound-wait".into());
//! let db: Database<Any> = Database::builder().protocol(name).open()?;
//! let seats = db.table::<u32, u32>("seats").hash(1).create()?; // A Table<u32, u32, Any>.
//! seats.bulk_insert([(7, 100)])?;
//! assert_eq!(db.transact(|tx| seats.update(tx, &7, |free| { *free -= 1; *free }))?, 99);
//!
//! let unknown = Database::builder().protocol("2pl").open();
//! assert!(matches!(unknown, Err(Error::Misuse(Misuse::NoSuchVariant { .. }))));
//! # Ok::<(), hotrow::Error>(())
//! ```
//!
//! A database that is opened without a name is one of [`Occ`], which is compiled as a type of its own, as fast as it can be. [`Any`] is any of
//! the protocols, `occ` among them, and costs more for each operation: calls through a table of functions, and 32 bytes beside each
//! value. Transactions as large as TPC-C's hardly notice; ten operations on an array of integers take a third more time, and up to twice the time if the
//! array does not fit into the processor's caches.
//!
//! Under `no-wait`, `wait-die`, `wound-wait`, `2pl-mcs`, `steal` and `plor` a transaction *holds locks while its body
//! runs*: keep bodies short, and compute outside of them. Under all of these but `no-wait`, a transaction keeps its
//! age over retries, so that the oldest one gets through. A wait for a lock has no time limit, except the deadline of
//! the [`RetryPolicy`], if it has one.
//!
//! Code that is generic over [`Protocol`] works with both types; most programs name one of them once, in a `type Db = Database<Any>`.
//!
//! ```
//! use hotrow::protocols::PROTOCOLS;
//! use hotrow::{Database, Error, Protocol, TBox};
//!
//! fn count_to_ten<P: Protocol>(db: &Database<P>) -> Result<u64, Error> {
//!     let number = TBox::new(db, 0u64);
//!     for _ in 0..10 {
//!         db.transact(|tx| number.update(tx, |number| *number += 1))?;
//!     }
//!     db.transact(|tx| number.get(tx))
//! }
//!
//! for protocol in PROTOCOLS.iter() {
//!     assert_eq!(count_to_ten(&Database::builder().protocol(protocol.name).open()?), Ok(10));
//! }
//! assert_eq!(count_to_ten(&Database::builder().protocol("plor+dwa+deadline=20").open()?), Ok(10));
//! assert_eq!(count_to_ten(&Database::open()?), Ok(10));
//! # Ok::<(), Error>(())
//! ```
//!
//! # A database by name, of bytes
//!
//! A program whose tables have no types of their own (an interpreter, a binding, a test) uses the erased form, module `erased`
//! (feature `erased`): bytes as keys and rows, and the protocol a name.
//!
//! ```
//! use hotrow::erased::Database;
//!
//! let db = Database::open("plor+dwa")?; // An unknown name is an error that lists the known ones.
//! let notes = db.table("notes").create()?; // Ordered; `.hash(n)` otherwise.
//! db.transact(|tx| tx.insert(&notes, "ada", "first"))?;
//! let length = db.transact(|tx| tx.update(&notes, "ada", |row| { row.set(b"second"); row.len() }))?;
//! assert_eq!(length, 6);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Keys have the order of their bytes, so write numbers with `to_be_bytes`. Say `.word_keys()` if all keys have eight bytes:
//! lookups are faster then. Rows of up to 24 bytes are read and changed without an allocation. Numbers under the indexes from 0
//! on belong into an array: `db.create_array("counts", n)`, then `tx.update_word(&counts, 3, |word| *word += 1)`.
//! `erased::Database::from(db.clone())` is the erased form of a typed database; transactions of both forms mix. Operations run
//! at once under every protocol. It reaches 0.57 to 0.9 of the throughput of the typed form.

#[allow(unused_imports, reason = "the text links to these")]
use crate::*;

//! Transactions on shared memory that stay fast, fair and correct when every thread wants the same row.
//!
//! ```
//! use hotrow::{Database, Error};
//!
//! fn main() -> Result<(), Error> {
//!     let db = Database::open()?;
//!     let accounts = db.table::<String, i64>("accounts").hash(4).create()?;
//!     accounts.bulk_insert(["shop", "ada", "bob", "eve"].map(|name| (name.to_owned(), 1_000)))?;
//!     std::thread::scope(|scope| {
//!         for payer in ["ada", "bob", "eve"] {
//!             let (db, accounts) = (&db, &accounts);
//!             scope.spawn(move || {
//!                 let pay = || db.transact(|tx| {
//!                     let left = accounts.update(tx, payer, |balance| { *balance -= 1; *balance })?;
//!                     tx.ensure(left >= 0, "overdrawn")?; // Otherwise all is rolled back.
//!                     accounts.update(tx, "shop", |balance| *balance += 1) // Everybody's hot row: last.
//!                 });
//!                 (0..1_000).for_each(|_| assert!(pay().is_ok())); // Runs again until it commits.
//!                 assert_eq!(pay().unwrap_err().to_string(), "rolled back: overdrawn");
//!             });
//!         }
//!     });
//!     assert_eq!(db.transact(|tx| accounts.get(tx, "shop"))?, Some(4_000));
//!     Ok(())
//! }
//! ```
//!
//! A [`Database`] has [tables](Table), and beside them objects: boxes, counters and [collections](guide::objects). A
//! [transaction](Engine::transact) is a closure that uses any of them. Its changes appear at once and together, or not at
//! all; it sees nothing of unfinished others; and if it loses a conflict, it runs again.
//!
//! # Contents
//!
//! - Begin with a task of the [guide]: a [shop](guide::shop), a [ledger](guide::ledger), a [queue](guide::queue), a [quota](guide::quota),
//!   [reports](guide::reports) beside writers.
//! - Then [survive a crash](guide::crash), [change the types of rows](guide::evolving), [serve SQL](guide::serving), use [more than one
//!   machine](guide::machines).
//! - Look up a [message](guide::mistakes), a [Cargo feature](guide::features), the counterpart of [what you use now](guide::moving).
//! - The reference: [tables](guide::tables), [errors](guide::errors), [hot rows](guide::hot_rows), [protocols](guide::protocols),
//!   [guarantees](guide::guarantees), and [all others](guide#reference).
//!
//! No feature is on by default. `durable` gives databases that live in a directory; [all features](guide::features).

pub mod guide;

pub mod object;

#[cfg(feature = "metrics")]
pub mod metrics;

/// The placement of values: the cells behind [`Value`], and the plain data that can be inline.
pub use hotrow_core::cell;
/// Databases that survive the process: log, checkpoints, recovery.
#[cfg(all(feature = "durable", not(loom)))]
#[doc(inline)]
pub use hotrow_durable as durable;
pub use hotrow_procedures::chopping;
/// The contexts, which interpret procedures.
pub use hotrow_procedures::context;
/// All protocols: the registry that finds them by name, and the two types that they have.
#[doc(inline)]
pub use hotrow_protocols as protocols;
/// Atomics, waiting, time, random numbers and threads, as Hotrow itself uses them.
#[doc(inline)]
pub use hotrow_sync as sync;
#[doc(inline)]
#[cfg(feature = "erased")]
pub use hotrow_tables::erased;
/// The parts of keys: order-preserving images, and the packing of structs into them.
pub use hotrow_tables::key;

/// Types with a complete schema, as durable databases store them.
#[doc(inline)]
pub use hotrow_stored as stored;

/// The history of a run: the versions that each attempt read and wrote.
#[doc(inline)]
pub use hotrow_core::history;
/// Recorded operations: deferred values, inputs, and the expressions that operators on deferred values make.
#[doc(inline)]
pub use hotrow_core::operations;
#[doc(inline)]
pub use hotrow_core::{
    Abort, Access, Addend, AsyncSession, BlockedForever, BoxedError, CancelCause, Cancelled, Canceller,
    Column, Columns, CommitStamp, CommitSteps, Committing, Conflict, Counter, CounterPlace, CounterValue,
    DatatypeMisuse, Deadlock, DeadlockWait, Deferred, Durability, Engine, EngineId, EpochClock, Error,
    Expression, HolderKind, HotKey, Input, Isolation, MemoryHolder, MemoryLimit, Misuse, Named, NamedCounts,
    NotDurable, OpenSnapshot, OpenTransaction, Origin, Overflow, Plain, Profile, Protocol, Reason,
    RetainedMemory, RetryPolicy, Rivalry, RollbackReason, SessionMark, SessionOptions, SnapshotReport,
    Statistics, TransactFuture, Value, Variant, Variants, WorkerId, WorkerLog, column_of, retained_bytes,
};
#[doc(inline)]
pub use hotrow_derive::{Key, Value};
#[doc(inline)]
pub use hotrow_objects::{
    ConcurrentMap, Sequence, TArray, TBoostedMap, TBox, TCounter, TCounters, TList, TListSet, TPriorityQueue,
    TQueue, TTreeMap, TVector, TWords, TreeMapIter, VectorIter,
};
#[doc(inline)]
pub use hotrow_procedures::{
    Context, OperationId, Operations, Procedure, ProcedureTrace, Procedures, TracedOperation,
};
#[doc(inline)]
pub use hotrow_protocols::{Any, Occ};
#[doc(inline)]
pub use hotrow_stored::Stored;
#[doc(inline)]
pub use hotrow_tables::{
    ConstraintViolated, Data, Database, DatabaseBuilder, Direction, DuplicateKey, IndexRef, Key, KeyExists,
    KeyRange, LoadError, Loading, MissingRow, Operation, OperationKind, SecondaryIndex, THashMap, TMap,
    TOrderedMap, Table, TableBuilder, TableMemory, TableMisuse, TableRef, Text, TextError, UniqueIndex,
};

/// A transaction in progress, as its body gets it: see [`Engine::transact`].
pub type Transaction<'w, P = Occ> = hotrow_core::Transaction<'w, P>;

/// A thread's part in a database: see [`Engine::worker`].
pub type Worker<P = Occ> = hotrow_core::Worker<P>;

/// The state of a database at one moment: see [`Engine::snapshot`].
pub type Snapshot<P = Occ> = hotrow_core::Snapshot<P>;

/// A transaction that is no closure: see [`Engine::begin`].
pub type Session<P = Occ> = hotrow_core::Session<P>;

/// A session on the thread that has begun it: see [`Engine::begin_here`].
pub type LocalSession<P = Occ> = hotrow_core::LocalSession<P>;

/// The names that most programs use: `use hotrow::prelude::*;`.
///
/// [`crate::Error`] is not included, as programs have errors of their own.
///
/// ```
/// use hotrow::prelude::*;
///
/// let db = Database::open()?;
/// let words = db.table::<u32, String>("words").create()?;
/// db.transact(|tx| words.insert(tx, 1, "one".into()))?;
/// # Ok::<(), hotrow::Error>(())
/// ```
pub mod prelude {
    #[cfg(all(feature = "durable", not(loom)))]
    pub use crate::durable::{DurableBuilder, DurableDatabase};
    pub use crate::{
        Abort, Context, Database, Deferred, Direction, Key, Misuse, Operations, Procedure, Procedures,
        Protocol, SecondaryIndex, Sequence, Stored, TArray, TBox, TCounter, TCounters, THashMap, TList,
        TListSet, TOrderedMap, TPriorityQueue, TQueue, TTreeMap, TVector, Table, TableRef, Text, Transaction,
        UniqueIndex, Value,
    };
}

/// The README's program, tested.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

//! The erased database and its workers.

use super::array::Array;
use super::backend::{Backend, BackendWorker};
use super::row::Row;
use super::snapshot::Snapshot;
use super::table::Table;
use super::transaction::{Transaction, keep_result};
use crate::database::Database as Typed;
use crate::loading::in_batches;
use hotrow_core::history::Recording;
use hotrow_core::{
    Abort, Error, HotKey, Misuse, Profile, Protocol, RetainedMemory, RetryPolicy, SnapshotReport, Statistics,
    WorkerId,
};
use hotrow_protocols::{UnknownProtocol, Visitor, with_protocol};
use hotrow_sync::Arc;
use std::fmt;
use std::panic::Location;

/// A database whose protocol is chosen by name, with bytes as keys and rows. See the [module](super).
///
/// It is a handle: a clone refers to the same database.
#[derive(Clone)]
pub struct Database {
    backend: Arc<dyn Backend>,
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Database").field("protocol", &self.protocol()).field("tables", &self.names()).finish()
    }
}

/// The erased form of a typed database. Both refer to the same database, and transactions of both forms mix freely.
///
/// ```
/// use hotrow_tables::{Database, erased};
///
/// let db = Database::open()?;
/// let erased = erased::Database::from(db.clone());
/// let notes = erased.table("notes").create()?;
/// erased.transact(|tx| tx.insert(&notes, "a", "typed or not"))?;
/// assert_eq!(db.names(), ["notes"]);
/// # Ok::<(), hotrow_core::Error>(())
/// ```
impl<P: Protocol> From<Typed<P>> for Database {
    fn from(database: Typed<P>) -> Self {
        Self { backend: Arc::new(database) }
    }
}

/// Opens a database under the protocol that a name stands for.
struct Open(RetryPolicy);

impl Visitor for Open {
    type Output = Database;

    fn visit<P: Protocol>(self, name: &str) -> Database {
        let typed = Typed::builder().typed::<P>().variant(name).retry_policy(self.0).open();
        typed.expect("the registry has found the variant").into()
    }
}

impl Database {
    /// Opens an empty database under the protocol of this name, such as `occ` or `plor+dwa`, with the default retry policy.
    ///
    /// # Errors
    ///
    /// [`UnknownProtocol`], which lists the known names.
    pub fn open(protocol: &str) -> Result<Self, UnknownProtocol> {
        Self::open_with(protocol, RetryPolicy::default())
    }

    /// As [`open`](Self::open), with this retry policy.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub fn open_with(protocol: &str, policy: RetryPolicy) -> Result<Self, UnknownProtocol> {
        with_protocol(protocol, Open(policy))
    }

    #[inline(always)]
    pub(super) fn backend(&self) -> &dyn Backend {
        &*self.backend
    }

    /// The protocol's name, or more precisely its variant's.
    pub fn protocol(&self) -> &str {
        self.backend.protocol()
    }

    /// True if attempts see one consistent state, even if they are going to be aborted: see
    /// [`Engine::is_opaque`](hotrow_core::Engine::is_opaque).
    pub fn is_opaque(&self) -> bool {
        self.backend.is_opaque()
    }

    /// Drops a table. See [`Database::drop_table`](crate::Database::drop_table).
    ///
    /// # Errors
    ///
    /// As [`Database::drop_table`](crate::Database::drop_table).
    pub fn drop_table(&self, table: &Table) -> Result<(), Error> {
        self.backend.drop_table(table)
    }

    /// Makes an array of `length` words, which are 0.
    ///
    /// # Errors
    ///
    /// [`TableMisuse::NameTaken`](crate::TableMisuse::NameTaken) if the database has a table, index or array of this name.
    pub fn create_array(&self, name: &str, length: usize) -> Result<Array, Misuse> {
        self.backend.create_array(name, length)
    }

    /// Returns the array of this name, which has been made before.
    ///
    /// # Errors
    ///
    /// [`TableMisuse::NoSuchName`](crate::TableMisuse::NoSuchName); [`TableMisuse::OtherTypes`](crate::TableMisuse::OtherTypes) if it is a table.
    pub fn open_array(&self, name: &str) -> Result<Array, Misuse> {
        self.backend.open_array(name)
    }

    /// The names of all tables, secondary indexes and arrays, typed ones included.
    pub fn names(&self) -> Vec<String> {
        self.backend.names()
    }

    /// Inserts rows, in transactions of up to 256 rows each. See [`Table::bulk_insert`](crate::Table::bulk_insert).
    ///
    /// # Errors
    ///
    /// As [`transact`](Self::transact), and as [`Transaction::insert`]. The rows of the transactions before stay.
    pub fn bulk_insert<B: AsRef<[u8]>>(
        &self,
        table: &Table,
        rows: impl IntoIterator<Item = (B, impl Into<Row>)>,
    ) -> Result<(), Error> {
        let mut rows = rows.into_iter().map(|(key, row)| (key, row.into()));
        in_batches(&mut rows, &mut |batch, profile| {
            self.transact_as(profile, |tx| {
                batch.iter().try_for_each(|(key, row)| tx.insert(table, key, row.clone()))
            })
        })
    }

    /// Runs a transaction on the calling thread's own worker, and runs it again until it commits, as the retry policy
    /// allows. See [`Engine::transact`](hotrow_core::Engine::transact).
    ///
    /// # Errors
    ///
    /// As [`Engine::transact`](hotrow_core::Engine::transact).
    #[track_caller]
    pub fn transact<R>(
        &self,
        body: impl FnMut(&mut Transaction<'_>) -> Result<R, Abort>,
    ) -> Result<R, Error> {
        self.transact_as(Profile::UNKNOWN, body)
    }

    /// As [`transact`](Self::transact), for a transaction that declares facts about itself. The profile must be true in all
    /// attempts.
    ///
    /// # Errors
    ///
    /// As [`transact`](Self::transact); [`Misuse::ReadOnly`] for a write in a transaction that was declared read-only.
    #[track_caller]
    pub fn transact_as<R>(
        &self,
        profile: Profile,
        body: impl FnMut(&mut Transaction<'_>) -> Result<R, Abort>,
    ) -> Result<R, Error> {
        let place = Location::caller();
        keep_result(body, |body| self.backend.transact(profile, place, body))
    }

    /// Registers a worker, with which a thread runs transactions faster. Keep one per thread.
    ///
    /// # Errors
    ///
    /// [`Misuse::TooManyWorkers`] when the protocol admits no more at a time.
    pub fn worker(&self) -> Result<Worker, Misuse> {
        Ok(Worker { backend: self.backend.worker()? })
    }

    /// Counts over all workers, past and present.
    pub fn statistics(&self) -> Statistics {
        self.backend.statistics()
    }

    /// The keys with the most lost conflicts, most first, at most `limit`.
    pub fn hot_keys(&self, limit: usize) -> Vec<HotKey> {
        self.backend.hot_keys(limit)
    }

    /// Sets whether reports of conflicts name both sides: see
    /// [`Engine::report_both_sides`](hotrow_core::Engine::report_both_sides).
    pub fn report_both_sides(&self, on: bool) {
        self.backend.report_both_sides(on);
    }

    /// Records the reads and writes of each attempt from now on: see
    /// [`Engine::record_history`](hotrow_core::Engine::record_history).
    ///
    /// # Errors
    ///
    /// [`Misuse::AlreadyRecorded`]: a database is recorded once.
    pub fn record_history(&self, bytes_max: usize) -> Result<Recording, Misuse> {
        self.backend.record_history(bytes_max)
    }

    /// Opens a snapshot: see [`Engine::snapshot`](hotrow_core::Engine::snapshot).
    ///
    /// # Errors
    ///
    /// [`Misuse::Nested`] within a transaction.
    #[track_caller]
    pub fn snapshot(&self) -> Result<Snapshot, Misuse> {
        Ok(Snapshot { backend: self.backend.snapshot(false, Location::caller())? })
    }

    /// Opens a snapshot with everything that was committed before: see
    /// [`Engine::snapshot_strict`](hotrow_core::Engine::snapshot_strict).
    ///
    /// # Errors
    ///
    /// As [`snapshot`](Self::snapshot).
    #[track_caller]
    pub fn snapshot_strict(&self) -> Result<Snapshot, Misuse> {
        Ok(Snapshot { backend: self.backend.snapshot(true, Location::caller())? })
    }

    /// Reports the open snapshots and the versions that are kept for them: see
    /// [`Engine::snapshots`](hotrow_core::Engine::snapshots).
    pub fn snapshots(&self) -> SnapshotReport {
        self.backend.snapshots()
    }

    /// Reports the memory that is replaced or removed and not freed yet: see
    /// [`Engine::retained_memory`](hotrow_core::Engine::retained_memory).
    pub fn retained_memory(&self) -> RetainedMemory {
        self.backend.retained_memory()
    }

    /// Frees what was replaced or removed and nobody can see any more, and returns the bytes that the process still retains: see
    /// [`Engine::collect`](hotrow_core::Engine::collect).
    pub fn collect(&self) -> u64 {
        self.backend.collect()
    }

    /// Limits that memory: see
    /// [`Engine::set_retained_bytes_max`](hotrow_core::Engine::set_retained_bytes_max).
    pub fn set_retained_bytes_max(&self, bytes_max: Option<u64>) {
        self.backend.set_retained_bytes_max(bytes_max);
    }
}

/// A worker of an erased database. It runs transactions, one at a time, for one thread at a time.
pub struct Worker {
    backend: Box<dyn BackendWorker>,
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").field("id", &self.id()).finish_non_exhaustive()
    }
}

impl Worker {
    /// The worker's number.
    pub fn id(&self) -> WorkerId {
        self.backend.id()
    }

    /// As [`Database::transact`], with this worker.
    ///
    /// # Errors
    ///
    /// As [`Database::transact`].
    #[inline]
    #[track_caller]
    pub fn transact<R>(
        &mut self,
        body: impl FnMut(&mut Transaction<'_>) -> Result<R, Abort>,
    ) -> Result<R, Error> {
        self.transact_as(Profile::UNKNOWN, body)
    }

    /// As [`Database::transact_as`], with this worker.
    ///
    /// # Errors
    ///
    /// As [`Database::transact_as`].
    #[inline]
    #[track_caller]
    pub fn transact_as<R>(
        &mut self,
        profile: Profile,
        body: impl FnMut(&mut Transaction<'_>) -> Result<R, Abort>,
    ) -> Result<R, Error> {
        let place = Location::caller();
        keep_result(body, |body| self.backend.transact(profile, place, body))
    }
}

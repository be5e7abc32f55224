//! Clusters: tables over a store, and the attempts of their transactions.

use crate::builder::RemoteTableBuilder;
use crate::catalog;
use crate::collecting::collect;
use crate::combining::Combiner;
use crate::error::{ClusterError, Failure, Stopped, UnknownOutcome};
use crate::layout::Layout;
use crate::marker::{Markers, Pause, until};
use crate::recording::{Names, Recorder, Recording};
use crate::sequence::RemoteSequence;
use crate::settings::Settings;
use crate::shared::{Counts, Shared};
use crate::store::{Freshness, Limits, Store, StoreError};
use crate::table::RemoteTable;
use crate::transaction::Transaction;
use hotrow_core::{Abort, BlockedForever, Conflict, Error, Misuse, Value};
use hotrow_sync::atomic::Ordering;
use hotrow_sync::clock::{Instant, now};
use hotrow_sync::{Arc, OnceLock, local};
use hotrow_tables::TableRef;
use hotrow_tables::inside::Elsewhere;
use hotrow_tables::key::Key;
use std::cell::Cell;
use std::fmt;

local! {
    /// True while the thread runs the body of a transaction.
    static IS_INSIDE: Cell<bool> = Cell::new(false);
}

/// Tables in a [`Store`], and transactions on them. Any number of processes may have clusters over the same store.
///
/// A handle, which is cheap to clone and may be used by any number of threads.
#[derive(Clone)]
pub struct Cluster {
    pub(crate) shared: Arc<Shared>,
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster").field("settings", &self.shared.settings).finish_non_exhaustive()
    }
}

/// Numbers of what the transactions of a [`Cluster`] have done in this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClusterCounts {
    /// Transactions that have committed writes.
    pub commits: u64,
    /// Attempts that lost a conflict.
    pub conflicts: u64,
    /// Commits that were sent to the store.
    pub sent: u64,
    /// Times that transactions waited for rows from the store.
    pub asked: u64,
    /// Commits that were looked up because their answer was lost.
    pub looked_up: u64,
}

impl Cluster {
    /// The cluster in a store.
    pub fn over(store: Arc<dyn Store>) -> Self {
        Self::with_settings(store, Settings::default())
    }

    /// The cluster in a store, with settings.
    pub fn with_settings(store: Arc<dyn Store>, settings: Settings) -> Self {
        Self {
            shared: Arc::new(Shared {
                store,
                layout: Layout::new(settings.prefix.clone()),
                settings,
                markers: Markers::default(),
                recorder: OnceLock::new(),
                elsewhere: Elsewhere::new(),
                tables: Default::default(),
                handles: Default::default(),
                combiner: Combiner::default(),
                counts: Counts::default(),
                #[cfg(test)]
                mutant: None,
            }),
        }
    }

    #[cfg(test)]
    pub(crate) fn mutated(mut self, mutant: Option<crate::mutants::Mutant>) -> Self {
        Arc::get_mut(&mut self.shared).expect("nobody uses it yet").mutant = mutant;
        self
    }

    /// Begins to [open](RemoteTableBuilder::create_or_open) the table of this name, or to make it if there is none.
    pub fn table<K: Key, R: Value>(&self, name: impl Into<String>) -> RemoteTableBuilder<K, R> {
        RemoteTableBuilder::new(Arc::clone(&self.shared), name.into())
    }

    /// The names of all tables in the store, in their order, whichever process has made them.
    ///
    /// # Errors
    ///
    /// [`ClusterError::Store`] if the store does not answer; a misuse if it has something else than tables.
    pub fn table_names(&self) -> Result<Vec<String>, ClusterError> {
        catalog::names(&self.shared)
    }

    /// The table of a [reference](RemoteTable::reference), if it was opened by a handle of this cluster.
    pub fn table_of<K: Key, R: Value>(&self, table: TableRef<K, R>) -> Option<RemoteTable<K, R>> {
        self.shared.handle(self.shared.elsewhere.table_number(table)?)
    }

    /// The sequence of this name: the first number of a new one is `first`.
    pub fn sequence(&self, name: impl Into<String>, first: u64) -> RemoteSequence {
        RemoteSequence::new(Arc::clone(&self.shared), name.into(), first)
    }

    /// Runs a transaction: the body, again after each conflict, until a commit succeeds.
    ///
    /// The body may run several times, so it must have no effects but those on `tx`. An error of its own, which `?` makes an [`Abort`], ends the
    /// transaction without effect.
    ///
    /// # Errors
    ///
    /// [`ClusterError::Transaction`] with the body's error, a conflict or timeout by the [`Settings`], or a misuse (what the store refuses is
    /// one); [`ClusterError::Store`] if the store does not answer; [`ClusterError::Unknown`] if it cannot be found out whether the
    /// transaction has committed.
    pub fn transact<T>(
        &self,
        body: impl FnMut(&mut Transaction<'_>) -> Result<T, Abort>,
    ) -> Result<T, ClusterError> {
        self.attempt(false, body)
    }

    /// As [`transact`](Self::transact); if the body only reads, a write in it is a misuse.
    pub(crate) fn attempt<T>(
        &self,
        only_reads: bool,
        mut body: impl FnMut(&mut Transaction<'_>) -> Result<T, Abort>,
    ) -> Result<T, ClusterError> {
        let _inside = Inside::enter()?;
        let shared = &*self.shared;
        let mut course = Course::new(shared);
        let mut reads_counters = false;
        loop {
            let mut tx = Transaction::new(shared, course.deadline);
            (tx.reads_counters, tx.is_read_only) = (reads_counters, only_reads);
            let stop = match tx.run(course.attempts, &mut body) {
                Ok(output) => return Ok(output),
                Err(stop) => stop,
            };
            match stop {
                Stop::Rollback(abort) => return Err(abort.into()),
                Stop::Failed(Failure::Wait) => course.wait_for_change(&tx)?,
                Stop::Failed(failure) => {
                    reads_counters |= tx.has_lost_addition(&failure);
                    course.lost(failure)?;
                }
            }
        }
    }

    /// Runs a body that only reads, at one version, which is held: it never conflicts with anybody. With [`Freshness::Any`] the version may be
    /// an old one.
    ///
    /// # Errors
    ///
    /// As [`transact`](Self::transact); [`Misuse::ReadOnly`] if the body writes.
    pub fn snapshot<T>(
        &self,
        freshness: Freshness,
        mut body: impl FnMut(&mut Transaction<'_>) -> Result<T, Abort>,
    ) -> Result<T, ClusterError> {
        let _inside = Inside::enter()?;
        let shared = &*self.shared;
        let mut course = Course::new(shared);
        let deadline = course.deadline;
        loop {
            let began = shared.moment();
            let held = until(deadline, || {
                let version = shared.store.read_version(freshness, deadline)?;
                shared.store.hold(version, deadline)
            });
            let held = match held {
                Ok(held) => held,
                Err(error) => {
                    course.lost(error.into())?;
                    continue;
                }
            };
            let mut tx = Transaction::new(shared, deadline);
            (tx.at, tx.is_read_only) = (Some(held.version()), true);
            tx.began = began;
            tx.may_be_old = freshness == Freshness::Any;
            match tx.run(course.attempts, &mut body) {
                Ok(output) => return Ok(output),
                Err(Stop::Rollback(abort)) => return Err(abort.into()),
                Err(Stop::Failed(Failure::Wait)) => return Err(Misuse::CannotWait.into()),
                Err(Stop::Failed(failure)) => course.lost(failure)?,
            }
        }
    }

    /// Deletes what rows that were deleted have left in the store. Returns the number of keys. Transactions that began before this call and
    /// have read a range conflict, and are run again; later ones do not notice.
    ///
    /// # Errors
    ///
    /// [`ClusterError::Store`] if the store does not answer until the deadline. Some keys may have been deleted.
    pub fn collect(&self) -> Result<u64, ClusterError> {
        collect(&self.shared)
    }

    /// Records the history of this process's transactions from now on, for `hotrow-check`.
    ///
    /// # Errors
    ///
    /// [`Misuse::AlreadyRecorded`].
    pub fn record(&self) -> Result<Recording, ClusterError> {
        let recorder = Arc::new(Recorder::default());
        if self.shared.recorder.set(Arc::clone(&recorder)).is_err() {
            return Err(Misuse::AlreadyRecorded.into());
        }
        let names = Box::new(TableNames(Arc::clone(&self.shared)));
        Ok(Recording::new(recorder, self.shared.layout.clone(), names))
    }

    /// Records this handle's transactions in another one's history, too. Both must be of the same tables: over the same store, with the
    /// same prefix. Tables must be opened by the handle that the recording was begun with.
    ///
    /// # Errors
    ///
    /// [`Misuse::AlreadyRecorded`].
    pub fn record_with(&self, recording: &Recording) -> Result<(), ClusterError> {
        self.shared.recorder.set(recording.recorder()).map_err(|_| Misuse::AlreadyRecorded.into())
    }

    /// The sizes of transactions that the store takes.
    pub fn limits(&self) -> Limits {
        self.shared.store.limits()
    }

    /// The numbers of what has happened so far.
    pub fn counts(&self) -> ClusterCounts {
        let counts = &self.shared.counts;
        // Relaxed: the numbers order nothing.
        ClusterCounts {
            commits: counts.commits.load(Ordering::Relaxed),
            conflicts: counts.conflicts.load(Ordering::Relaxed),
            sent: counts.sent.load(Ordering::Relaxed),
            asked: counts.asked.load(Ordering::Relaxed),
            looked_up: counts.looked_up.load(Ordering::Relaxed),
        }
    }
}

/// The reason for which an attempt did not commit.
pub(crate) enum Stop {
    /// The body's own.
    Rollback(Abort),
    /// Another one.
    Failed(Failure),
}

impl Stop {
    /// The end of an attempt whose body has returned an abort.
    pub(crate) fn of(abort: Abort, failure: Option<Failure>) -> Self {
        match failure {
            Some(failure) => Self::Failed(failure),
            None if abort.downcast_ref::<Stopped>().is_some() => {
                Self::Failed(Failure::Misuse(Misuse::CaughtError))
            }
            None => Self::Rollback(abort),
        }
    }
}

/// The attempts of a transaction.
struct Course<'c> {
    shared: &'c Shared,
    deadline: Instant,
    attempts: u32,
    pause: Pause,
    /// The moment of the first conflict.
    lost_since: Option<Instant>,
    waits_since: Option<Instant>,
}

impl<'c> Course<'c> {
    fn new(shared: &'c Shared) -> Self {
        let deadline = now() + shared.settings.deadline;
        let pause = Pause::up_to(shared.settings.backoff_max);
        Self { shared, deadline, attempts: 0, pause, lost_since: None, waits_since: None }
    }

    /// Prepares the next attempt, or ends the transaction.
    fn lost(&mut self, failure: Failure) -> Result<(), ClusterError> {
        let is_late = now() >= self.deadline;
        let end: Option<ClusterError> = match failure {
            Failure::Misuse(misuse) => Some(misuse.into()),
            Failure::Store(StoreError::Unknown { reason }) => {
                Some(ClusterError::Unknown(UnknownOutcome { reason }))
            }
            Failure::Store(error @ StoreError::Compacted { .. }) => {
                is_late.then_some(ClusterError::Store(error))
            }
            Failure::Store(error) => Some(ClusterError::Store(error)),
            Failure::Conflict(conflict) => self.conflict(conflict, is_late).map(ClusterError::Transaction),
            // The next one reads, and need not wait.
            Failure::Assumed => return Ok(()),
            Failure::Wait => None,
        };
        if let Some(error) = end {
            return Err(error);
        }
        self.attempts += 1;
        self.pause.wait();
        Ok(())
    }

    fn conflict(&mut self, conflict: Conflict, is_late: bool) -> Option<Error> {
        Counts::one(&self.shared.counts.conflicts);
        let since = *self.lost_since.get_or_insert_with(now);
        let attempts = self.attempts + 1;
        let conflict = Box::new(Conflict { attempts, lost_time: since.elapsed(), ..conflict });
        if is_late {
            Some(Error::Timeout(conflict))
        } else {
            (attempts >= self.shared.settings.attempts_max).then_some(Error::Conflict(conflict))
        }
    }

    /// Waits until something has changed that the attempt has read.
    fn wait_for_change(&mut self, tx: &Transaction<'_>) -> Result<(), ClusterError> {
        let since = *self.waits_since.get_or_insert_with(now);
        let Some(from) = tx.version() else {
            return Err(ClusterError::Transaction(Error::BlockedForever(BlockedForever::NothingRead)));
        };
        let (deadline, store) = (self.deadline, &*self.shared.store);
        let keys: Vec<_> =
            tx.reads.iter().filter(|(_, seen)| !seen.is_in_span).map(|(key, _)| key.clone()).collect();
        match until(deadline, || store.watch(&keys, &tx.spans, from, deadline)) {
            Ok(Some(_)) | Err(StoreError::Compacted { .. }) => Ok(()),
            Ok(None) => Err(ClusterError::Transaction(Error::RetryTimeout { waited: since.elapsed() })),
            Err(error) => Err(ClusterError::Store(error)),
        }
    }
}

/// A thread's body that runs.
struct Inside;

impl Inside {
    fn enter() -> Result<Self, ClusterError> {
        if IS_INSIDE.with(|inside| inside.replace(true)) {
            return Err(Misuse::Nested.into());
        }
        Ok(Self)
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        IS_INSIDE.with(|inside| inside.set(false));
    }
}

/// The names of a cluster's tables.
struct TableNames(Arc<Shared>);

impl fmt::Debug for TableNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TableNames")
    }
}

impl Names for TableNames {
    fn name_of(&self, table: u32) -> String {
        self.0.name_of(table)
    }
}

//! Snapshots, as users hold them.

use super::points::{Opened, Snapshots};
use crate::kernel::abort::{Abort, Error, Misuse};
use crate::kernel::engine::Engine;
use crate::kernel::profile::{Isolation, Profile};
use crate::kernel::protocol::Protocol;
use crate::kernel::transaction::Transaction;
use crate::kernel::worker::Worker;
use crate::memory::thread_mark::in_transaction;
use hotrow_sync::Arc;
use hotrow_sync::clock::Duration;
use std::fmt;
use std::panic::Location;

/// One open snapshot: its versions are kept as long as this lives.
pub(crate) struct ReadPoint {
    pub(super) snapshots: Arc<Snapshots>,
    pub(super) opened: Opened,
}

impl ReadPoint {
    /// Opens a snapshot. `waits`: nobody is told of what it shows before that is as durable as the log promises.
    pub(crate) fn open(
        snapshots: &Arc<Snapshots>,
        kind: SnapshotKind,
        waits: bool,
        place: &'static Location<'static>,
    ) -> Arc<Self> {
        let arrival = snapshots.recorder.get().map_or(0, |recorder| recorder.stamp());
        let is_acknowledged = waits && kind != SnapshotKind::Committed;
        let acknowledged = if is_acknowledged { snapshots.open_acknowledged() } else { None };
        let opened = acknowledged.unwrap_or_else(|| match kind {
            SnapshotKind::Recent => snapshots.open(),
            SnapshotKind::Strict | SnapshotKind::Committed => {
                Opened { history_begin: arrival, ..snapshots.open_strict() }
            }
        });
        if let Some(slot) = &opened.slot {
            slot.name(place);
        }
        Arc::new(Self { snapshots: snapshots.clone(), opened })
    }

    /// The snapshot's number.
    pub(crate) fn number(&self) -> u64 {
        self.opened.number
    }

    /// The moment in the history from which on its ranges were scanned.
    pub(crate) fn history(&self) -> u64 {
        self.opened.history
    }

    /// The moment in the history at which its transactions count as begun.
    pub(crate) fn history_begin(&self) -> u64 {
        self.opened.history_begin
    }
}

impl Drop for ReadPoint {
    fn drop(&mut self) {
        drop(self.opened.slot.take());
        self.snapshots.after_reader(self.opened.since);
    }
}

/// The commits that a snapshot shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SnapshotKind {
    /// Those up to a moment that may lie a little back: see [`Engine::snapshot`].
    Recent,
    /// At least those of which anybody was told: see [`Engine::snapshot_strict`].
    Strict,
    /// All, acknowledged or not.
    Committed,
}

/// A state of an engine's objects and tables, as it was at one moment: see [`Engine::snapshot`].
///
/// Transactions on it only read. They never abort, and no writer waits for them or aborts because of them. As long as the
/// handle lives, what has been replaced since is kept: one version of each segment for each open snapshot at most.
pub struct Snapshot<P: Protocol> {
    engine: Engine<P>,
    point: Arc<ReadPoint>,
}

impl<P: Protocol> Clone for Snapshot<P> {
    fn clone(&self) -> Self {
        Self { engine: self.engine.clone(), point: self.point.clone() }
    }
}

impl<P: Protocol> fmt::Debug for Snapshot<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot").field("number", &self.number()).finish_non_exhaustive()
    }
}

impl<P: Protocol> Snapshot<P> {
    /// Opens a snapshot for a caller at `place`.
    ///
    /// # Errors
    ///
    /// As [`Engine::snapshot`].
    pub fn open(
        engine: &Engine<P>,
        kind: SnapshotKind,
        place: &'static Location<'static>,
    ) -> Result<Self, Misuse> {
        if in_transaction() {
            // It would wait for the transaction's own commit, if a change at the commit opens it.
            return Err(Misuse::Nested);
        }
        let point = ReadPoint::open(&engine.shared.features.snapshots, kind, true, place);
        Ok(Self { engine: engine.clone(), point })
    }

    /// The snapshot's number. Snapshots with greater numbers are later ones.
    pub fn number(&self) -> u64 {
        self.point.number()
    }

    /// An upper bound of the snapshot's age: all transactions that had committed that long ago are in it. [`Duration::MAX`] if it was
    /// opened in another simulation, or the one is inside of a simulation and the other is not: their clocks tell different times.
    pub fn staleness(&self) -> Duration {
        self.point.opened.since.age()
    }

    /// Runs a transaction that only reads, on this snapshot. The body runs once.
    ///
    /// # Errors
    ///
    /// [`Error::Rollback`] if the body returns an error; [`Misuse::ReadOnly`](crate::Misuse::ReadOnly) if it writes;
    /// [`Misuse::Unsupported`](crate::Misuse::Unsupported) if it uses an object that has no snapshots (`TQueue`,
    /// `TBoostedMap`); [`Misuse::Nested`](crate::Misuse::Nested) within a transaction.
    pub fn transact<R>(
        &self,
        body: impl FnMut(&mut Transaction<'_, P>) -> Result<R, Abort>,
    ) -> Result<R, Error> {
        self.try_transact(body)
    }

    /// As [`transact`](Self::transact), with an error type of the user's own.
    ///
    /// # Errors
    ///
    /// As [`transact`](Self::transact).
    pub fn try_transact<R, E: From<Abort>>(
        &self,
        body: impl FnMut(&mut Transaction<'_, P>) -> Result<R, E>,
    ) -> Result<R, Error<E>> {
        self.engine.with_worker(|worker| worker.try_transact_on(self, body))
    }

    /// The profile of a transaction on a snapshot.
    const PROFILE: Profile = Profile { isolation: Isolation::Snapshot, ..Profile::READ_ONLY };
}

impl<P: Protocol> Worker<P> {
    /// Runs a transaction on a snapshot of the worker's engine: see [`Snapshot::transact`].
    ///
    /// # Errors
    ///
    /// As [`Snapshot::transact`].
    pub fn transact_on<R>(
        &mut self,
        snapshot: &Snapshot<P>,
        body: impl FnMut(&mut Transaction<'_, P>) -> Result<R, Abort>,
    ) -> Result<R, Error> {
        self.try_transact_on(snapshot, body)
    }

    /// As [`transact_on`](Self::transact_on), with an error type of the user's own.
    ///
    /// # Errors
    ///
    /// As [`Snapshot::transact`]; [`Misuse::ForeignObject`] if the snapshot is another engine's.
    pub fn try_transact_on<R, E: From<Abort>>(
        &mut self,
        snapshot: &Snapshot<P>,
        body: impl FnMut(&mut Transaction<'_, P>) -> Result<R, E>,
    ) -> Result<R, Error<E>> {
        if !self.is_of(&snapshot.engine) {
            let object = format!("snapshot {}", snapshot.number());
            return Err(Misuse::ForeignObject { object }.into());
        }
        self.at_point(snapshot.point.clone(), |worker| worker.try_transact_as(Snapshot::<P>::PROFILE, body))
    }
}

/// An open snapshot in a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenSnapshot {
    /// Its number.
    pub number: u64,
    /// The time for which it has been open.
    pub open_for: Duration,
    /// The name of the thread that opened it.
    pub thread: String,
    /// The place in the program at which it was opened.
    pub place: String,
}

/// The state of an engine's snapshots: see [`Engine::snapshots`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotReport {
    /// The open snapshots, the oldest first.
    pub open: Vec<OpenSnapshot>,
    /// The number of versions that are kept.
    pub versions: usize,
    /// The approximate number of bytes that they take.
    pub bytes: usize,
}

impl fmt::Display for SnapshotReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} versions kept for snapshots, {} bytes", self.versions, self.bytes)?;
        for OpenSnapshot { number, open_for, thread, place } in &self.open {
            write!(f, "\nsnapshot {number}, open for {open_for:.1?}, by thread {thread} at {place}")?;
        }
        Ok(())
    }
}

impl SnapshotReport {
    pub(crate) fn of(snapshots: &Snapshots) -> Self {
        let mut open: Vec<_> = snapshots.readers().report().into_iter().collect();
        open.sort_by_key(|(number, holder)| (*number, holder.opened));
        let open = open.into_iter().map(|(number, holder)| OpenSnapshot {
            number,
            open_for: holder.opened.age(),
            thread: holder.thread,
            place: holder.place.to_string(),
        });
        let (versions, bytes) = snapshots.versions().size();
        Self { open: open.collect(), versions, bytes }
    }
}

impl<P: Protocol> Engine<P> {
    /// Opens a snapshot: the state of all objects and tables at a moment that lies about a millisecond back at most.
    ///
    /// The call waits for nobody, unless no snapshot has been in use for a tenth of a second: then it waits, as
    /// [`snapshot_strict`](Self::snapshot_strict) does, for the commits that are just installing. While commits are in the way
    /// of a newer moment, because their threads do not run, the newest one that is ready is used;
    /// [`Snapshot::staleness`] says how old it is.
    ///
    /// Rows and values with which a table or an object is made belong to every snapshot, also to those opened before.
    ///
    /// # Errors
    ///
    /// [`Misuse::Nested`] within a transaction, which the snapshot might wait for.
    #[track_caller]
    pub fn snapshot(&self) -> Result<Snapshot<P>, Misuse> {
        Snapshot::open(self, SnapshotKind::Recent, Location::caller())
    }

    /// As [`snapshot`](Self::snapshot), with everything that anybody was told of before the call.
    ///
    /// In memory that is everything that was committed before the call, and the call waits for the commits that are just installing. In a
    /// database whose commits are acknowledged when they are on the device, it is everything up to the last write of the device: the call
    /// waits for nobody, and the snapshot shows nothing that a crash could take back. If no snapshot has been in use for a tenth of
    /// a second, or somebody was told of a commit before it was on the device ([`Durability::Buffered`](crate::Durability::Buffered)), the
    /// snapshot is one of now, and its transactions wait for the device when they end.
    ///
    /// # Errors
    ///
    /// As [`snapshot`](Self::snapshot).
    #[track_caller]
    pub fn snapshot_strict(&self) -> Result<Snapshot<P>, Misuse> {
        Snapshot::open(self, SnapshotKind::Strict, Location::caller())
    }

    /// Reports the open snapshots, with their owners, and the versions that are kept for them.
    pub fn snapshots(&self) -> SnapshotReport {
        SnapshotReport::of(&self.shared.features.snapshots)
    }
}

impl<P: Protocol> Worker<P> {
    /// Opens the snapshot on which a transaction will read, unless it has one.
    #[cold]
    #[track_caller]
    pub(crate) fn open_snapshot(&mut self, profile: &Profile, place: &'static Location<'static>) {
        if self.attempt.features.snapshot.is_none() {
            let is_strict = profile.isolation == Isolation::StrictSnapshot;
            let kind = if is_strict { SnapshotKind::Strict } else { SnapshotKind::Recent };
            let waits = self.attempt.awaits_device(profile);
            self.attempt.features.snapshot =
                Some(ReadPoint::open(&self.shared.features.snapshots, kind, waits, place));
        }
    }

    /// Calls a function that runs a transaction on a snapshot which is open already.
    pub(crate) fn at_point<R>(&mut self, point: Arc<ReadPoint>, run: impl FnOnce(&mut Self) -> R) -> R {
        self.attempt.features.snapshot = Some(point);
        let result = run(self);
        // Where it was refused.
        self.attempt.features.snapshot = None;
        result
    }
}

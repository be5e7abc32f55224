//! Readers of snapshots that take no worker away from a protocol that admits only one.

use super::Snapshot;
use crate::kernel::abort::{Abort, Error, Misuse};
use crate::kernel::engine::Engine;
use crate::kernel::protocol::Protocol;
use crate::kernel::transaction::Transaction;
use crate::kernel::worker::Worker;
use std::fmt;

/// Attempts that a transaction gets if it is told to end, because memory was retained while it was open.
const ATTEMPTS_MAX: u32 = 1_000;

/// A worker that reads on snapshots and does nothing else. Such transactions do not call the protocol, so one may run beside the only
/// worker that a protocol admits.
pub struct SnapshotReader<P: Protocol>(Worker<P>);

impl<P: Protocol> Engine<P> {
    /// Registers a reader of snapshots.
    ///
    /// # Errors
    ///
    /// [`Misuse::TooManyWorkers`] if the protocol admits many workers, and there are as many.
    pub fn snapshot_reader(&self) -> Result<SnapshotReader<P>, Misuse> {
        self.worker_for_snapshots().map(SnapshotReader)
    }
}

impl<P: Protocol> SnapshotReader<P> {
    /// Runs a transaction on a snapshot: see [`Snapshot::transact`]. If it is told to end because it retains memory, it ends, which
    /// releases the memory, and runs again: the snapshot stays the same.
    ///
    /// # Errors
    ///
    /// As [`Snapshot::transact`].
    #[inline(never)]
    pub fn transact_on<R>(
        &mut self,
        snapshot: &Snapshot<P>,
        mut body: impl FnMut(&mut Transaction<'_, P>) -> Result<R, Abort>,
    ) -> Result<R, Error> {
        let mut left = ATTEMPTS_MAX;
        loop {
            left -= 1;
            match self.0.transact_on(snapshot, &mut body) {
                Err(Error::MemoryLimit(limit)) if limit.was_told && left > 0 => {}
                result => return result,
            }
        }
    }
}

impl<P: Protocol> fmt::Debug for SnapshotReader<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SnapshotReader").field(&self.0).finish()
    }
}

//! Snapshots of erased databases.

use super::backend::{BackendSnapshot, Body};
use super::transaction::{Transaction, keep_result};
use hotrow_core::{Abort, Error};
use std::fmt;
use std::time::Duration;

/// A state of an erased database, as it was at one moment: see [`hotrow_core::Snapshot`].
pub struct Snapshot {
    pub(super) backend: Box<dyn BackendSnapshot>,
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot").field("number", &self.number()).finish_non_exhaustive()
    }
}

impl Snapshot {
    /// The snapshot's number. Snapshots with greater numbers are later ones.
    pub fn number(&self) -> u64 {
        self.backend.number()
    }

    /// An upper bound of the snapshot's age: all transactions that had committed that long ago are in it.
    pub fn staleness(&self) -> Duration {
        self.backend.staleness()
    }

    /// Runs a transaction that only reads, on this snapshot. The body runs once.
    ///
    /// # Errors
    ///
    /// As [`hotrow_core::Snapshot::transact`].
    pub fn transact<R>(
        &self,
        body: impl FnMut(&mut Transaction<'_>) -> Result<R, Abort>,
    ) -> Result<R, Error> {
        keep_result(body, |body: &mut Body<'_>| self.backend.transact(body))
    }
}

//! Attempts that are stepped by hand.

use crate::features::pieces::WholeGuard;
use crate::kernel::abort::Error;
use crate::kernel::object_access::ObjectAccess;
use crate::kernel::profile::Profile;
use crate::kernel::protocol::Protocol;
use crate::kernel::transaction::Transaction;
use crate::kernel::worker::Worker;
use crate::memory::users_code::Panics;
use hotrow_sync::thread;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::panic::Location;

/// One attempt that is held open: see [`Worker::begin`](crate::Worker::begin). Dropping it rolls back.
pub struct OpenTransaction<'w, P: Protocol> {
    access: ObjectAccess<'w, P>,
    /// Dropped after the attempt.
    _barrier: Option<WholeGuard>,
}

impl<'w, P: Protocol> OpenTransaction<'w, P> {
    /// Tries to commit.
    ///
    /// # Errors
    ///
    /// [`Error::Conflict`] if the attempt lost, now or in one of its operations; [`Error::Misuse`];
    /// [`Error::MemoryLimit`] if it was told to end.
    pub fn commit(self) -> Result<(), Error> {
        self.access.end_alone(true, ObjectAccess::commit).result()
    }

    /// Rolls back.
    ///
    /// # Errors
    ///
    /// As [`commit`](Self::commit), if the attempt had lost before.
    pub fn roll_back(self) -> Result<(), Error> {
        let roll_back = |access: ObjectAccess<'_, P>| Panics::passing_on(|panics| access.cancel(panics));
        self.access.end_alone(false, roll_back).result()
    }
}

impl<'w, P: Protocol> Deref for OpenTransaction<'w, P> {
    type Target = Transaction<'w, P>;
    fn deref(&self) -> &Self::Target {
        &self.access
    }
}

impl<P: Protocol> DerefMut for OpenTransaction<'_, P> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.access
    }
}

impl<P: Protocol> fmt::Debug for OpenTransaction<'_, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Transaction::fmt(self, f)
    }
}

impl<P: Protocol> Worker<P> {
    /// Begins one attempt and holds it open, for tools that step several transactions by hand on one thread, operation
    /// by operation. There is no retry, no backoff, no wait for memory and no check against nesting. Under a protocol
    /// that waits, two transactions of one thread can wait for each other.
    pub fn begin(&mut self) -> OpenTransaction<'_, P> {
        self.begin_as(Profile::UNKNOWN)
    }

    /// As [`begin`](Self::begin), for a transaction that declares facts about itself.
    pub fn begin_as(&mut self, profile: Profile) -> OpenTransaction<'_, P> {
        self.attempt.begin_transaction(self.shared.features.policy.deadline);
        self.set_refusal(None);
        let is_on_snapshot = self.opens_snapshot(&profile, Location::caller());
        let barrier = if is_on_snapshot { None } else { self.exclude_pieces() };
        let access = self.open_attempt(0, true, thread::number(), profile, true);
        OpenTransaction { access, _barrier: barrier }
    }
}

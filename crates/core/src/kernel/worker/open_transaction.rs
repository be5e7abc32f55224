//! An attempt that is stepped by hand.

use super::slots::WorkerSlots;
use crate::kernel::abort::Error;
use crate::kernel::protocol::Protocol;
use crate::kernel::transaction::{ObjectAccess, Transaction};
use crate::memory::users_code::Panics;
use std::fmt;
use std::ops::{Deref, DerefMut};

/// One attempt that is held open: see [`Worker::begin`](crate::Worker::begin). Dropping it rolls back.
pub struct OpenTransaction<'w, P: Protocol> {
    access: ObjectAccess<'w, P>,
    /// Dropped after the attempt.
    _barrier: Option<<P as WorkerSlots>::Barrier>,
}

impl<'w, P: Protocol> OpenTransaction<'w, P> {
    pub(super) fn new(access: ObjectAccess<'w, P>, barrier: Option<<P as WorkerSlots>::Barrier>) -> Self {
        Self { access, _barrier: barrier }
    }

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

//! The handle that a transaction's body gets.

use crate::kernel::abort::{Abort, BoxedError};
use crate::kernel::object_access::ObjectAccess;
use crate::kernel::protocol::Protocol;
use crate::memory::identity::ObjectMeta;
use crate::memory::identity::WorkerId;
use std::fmt;
use std::ops::{Deref, DerefMut};

/// One attempt at a transaction, handed to its body, which passes it to the operations of objects and tables.
///
/// Authors of datatypes [enter](Self::enter) it, and get what they need: an [`ObjectAccess`]. A body cannot reach the
/// methods of that:
///
/// ```compile_fail,E0599
/// fn body<P: hotrow_core::Protocol>(tx: &mut hotrow_core::Transaction<'_, P>) {
///     tx.deferral_mut().settle(); // A method of `ObjectAccess`.
/// }
/// ```
#[repr(transparent)]
pub struct Transaction<'w, P: Protocol>(pub(crate) ObjectAccess<'w, P>);

impl<'w, P: Protocol> Deref for ObjectAccess<'w, P> {
    type Target = Transaction<'w, P>;

    #[inline(always)]
    fn deref(&self) -> &Transaction<'w, P> {
        // SAFETY: `Transaction` is a transparent wrapper of this type, with no invariant of its own.
        unsafe { &*std::ptr::from_ref(self).cast() }
    }
}

impl<'w, P: Protocol> DerefMut for ObjectAccess<'w, P> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Transaction<'w, P> {
        // SAFETY: as in `deref`.
        unsafe { &mut *std::ptr::from_mut(self).cast() }
    }
}

impl<P: Protocol> fmt::Debug for Transaction<'_, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (worker, attempt) = (self.worker().number(), self.attempt_number());
        f.debug_struct("Transaction")
            .field("worker", &worker)
            .field("attempt", &attempt)
            .finish_non_exhaustive()
    }
}

impl<'w, P: Protocol> Transaction<'w, P> {
    /// The number of the worker that runs the transaction.
    pub fn worker(&self) -> WorkerId {
        self.0.attempt.worker()
    }

    /// The number of aborted attempts of this transaction before this one.
    pub fn attempt_number(&self) -> u32 {
        self.0.attempt.number()
    }

    /// The number of items that the attempt tracks so far: the segments that it has read or written. A segment that it has
    /// read several times, or read and later written, may count several times. Fewer items make shorter validations and fewer conflicts.
    pub fn items(&self) -> usize {
        self.0.attempt.items.len() + self.0.attempt.reads.iter().len()
    }

    /// Begins an operation of an object, for authors of datatypes.
    ///
    /// # Errors
    ///
    /// [`Abort`] if the object belongs to another engine, if the attempt has been aborted and the body has ignored that,
    /// if it was told to end (because it retains too much memory, or by a [`Canceller`](crate::Canceller)), or if the
    /// protocol locks all objects at once and the lock stayed taken.
    #[inline]
    pub fn enter(&mut self, meta: &ObjectMeta) -> Result<&mut ObjectAccess<'w, P>, Abort> {
        match self.0.check_in(meta) {
            Ok(()) => Ok(&mut self.0),
            Err(abort) => Err(abort),
        }
    }

    /// Rolls back with this reason unless `holds`. As with any error of the body's own, the reason is believed only if the
    /// attempt has seen one consistent state; otherwise the body runs again.
    ///
    /// # Errors
    ///
    /// [`Abort`] with the reason, if `holds` is false: pass it up with `?`.
    #[inline]
    pub fn ensure(&self, holds: bool, reason: impl Into<BoxedError>) -> Result<(), Abort> {
        if holds { Ok(()) } else { Err(Abort::because(reason)) }
    }
}

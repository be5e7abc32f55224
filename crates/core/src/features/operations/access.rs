//! The part of a transaction that contexts use, which interpret procedures.

use super::{Deferred, Input};
use crate::kernel::abort::{Abort, Misuse};
use crate::kernel::protocol::Protocol;
use crate::kernel::transaction::Transaction;
use crate::memory::pin::Pin;

/// The part of a transaction that contexts of procedures need besides operations on tables: they record computations, and
/// run what is recorded. A trait, so that bodies do not see its methods.
pub trait ContextAccess<P: Protocol> {
    /// The attempt's pinned epoch.
    fn pin(&self) -> &Pin;

    /// Ends the attempt for a use that can never work.
    fn misuse(&mut self, misuse: Misuse) -> Abort;

    /// Lets the attempt use objects that are [closed](crate::Engine::close_objects), and no others, to take out what they hold.
    fn use_closed_objects(&mut self);

    /// Runs all intentions that have been recorded and have not run yet ([`DeferralAccess::settle`](crate::DeferralAccess::settle)).
    ///
    /// # Errors
    ///
    /// As [`Transaction::compute`].
    fn settle(&mut self) -> Result<(), Abort>;

    /// Returns a handle to a result that will never be known ([`DeferralAccess::unknown`](crate::DeferralAccess::unknown)).
    fn unknown<T>(&mut self) -> Deferred<T>;

    /// True if operations are enqueued for waiting workers to steal, instead of being run at once. That begins when an
    /// operation would have blocked, or when a worker waits for the transaction.
    fn is_enqueuing(&mut self) -> bool;

    /// Runs an operation now, unless the transaction would block and its operations could be stolen instead. Returns
    /// `None` in that case: the operation has had no effect, and operations are enqueued from now on.
    ///
    /// # Errors
    ///
    /// Returns the operation's own error.
    fn try_at_once<R>(
        &mut self,
        operation: impl FnOnce(&mut Self) -> Result<R, Abort>,
    ) -> Result<Option<R>, Abort>;

    /// Records a computation, which may roll back: among the operations that others may run if it is `enqueued`, or else as
    /// [`Transaction::compute`] does.
    ///
    /// # Errors
    ///
    /// As [`Transaction::compute`].
    ///
    /// # Safety
    ///
    /// As for [`StealingAccess::enqueue`](crate::StealingAccess::enqueue), if it is `enqueued`.
    unsafe fn record_computation<I: Input, O: 'static>(
        &mut self,
        enqueued: bool,
        inputs: I,
        compute: impl FnOnce(I::Value) -> Result<O, Abort> + 'static,
    ) -> Result<Deferred<O>, Abort>;

    /// Runs all enqueued operations, with the help of workers that wait for the transaction.
    ///
    /// # Errors
    ///
    /// [`Abort`] when the attempt cannot go on.
    fn run_graph(&mut self) -> Result<(), Abort>;
}

impl<P: Protocol> ContextAccess<P> for Transaction<'_, P> {
    #[inline(always)]
    fn pin(&self) -> &Pin {
        self.0.pin()
    }

    fn misuse(&mut self, misuse: Misuse) -> Abort {
        self.0.misuse(misuse)
    }

    fn use_closed_objects(&mut self) {
        self.0.use_closed_objects();
    }

    #[inline]
    fn settle(&mut self) -> Result<(), Abort> {
        self.0.deferral_mut().settle()
    }

    fn unknown<T>(&mut self) -> Deferred<T> {
        self.0.deferral_mut().unknown()
    }

    #[inline]
    fn is_enqueuing(&mut self) -> bool {
        self.0.stealing_mut().is_enqueuing()
    }

    #[inline]
    fn try_at_once<R>(
        &mut self,
        operation: impl FnOnce(&mut Self) -> Result<R, Abort>,
    ) -> Result<Option<R>, Abort> {
        self.0.stealing_mut().try_at_once(|access| operation(access))
    }

    #[inline]
    unsafe fn record_computation<I: Input, O: 'static>(
        &mut self,
        enqueued: bool,
        inputs: I,
        compute: impl FnOnce(I::Value) -> Result<O, Abort> + 'static,
    ) -> Result<Deferred<O>, Abort> {
        // SAFETY: the caller's promise.
        unsafe { self.0.record_computation(enqueued, inputs, compute) }
    }

    #[inline]
    fn run_graph(&mut self) -> Result<(), Abort> {
        self.0.stealing_mut().run_graph()
    }
}

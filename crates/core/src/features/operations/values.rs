//! Values that an attempt makes known, waits for, or computes.

use super::{Deferred, Input};
use crate::features::deferred::DeferralAccess;
use crate::features::retries::Resolve;
use crate::kernel::abort::Error;
use crate::kernel::abort::{Abort, Misuse};
use crate::kernel::attempt::Attempt;
use crate::kernel::engine::Engine;
use crate::kernel::object_access::ObjectAccess;
use crate::kernel::profile::Profile;
use crate::kernel::protocol::Protocol;
use crate::kernel::slots::Moments;
use crate::kernel::transaction::Transaction;
use crate::kernel::worker::Worker;
use std::panic::Location;

impl<P: Protocol> Attempt<P> {
    /// Makes sure that a value in the arena is dropped when the attempt forgets it.
    ///
    /// # Safety
    ///
    /// `node` points to a `T` in the attempt's arena that nobody else drops.
    #[inline]
    pub(crate) unsafe fn drop_later<T>(&mut self, node: *mut T) {
        self.hears.add(Moments::FORGETTING);
        // SAFETY: the caller's promise.
        unsafe { self.features.operations.drop_later(node) };
    }
}

impl<P: Protocol> Transaction<'_, P> {
    /// Makes a deferred value of one that is known now.
    pub fn known<T: 'static>(&mut self, value: T) -> Deferred<T> {
        let node = self.0.attempt.allocate(Some(value)).cast::<Option<T>>();
        // SAFETY: allocated just now, and nobody else drops it; it stays in place until the arena is reset, after
        // the results have been cleared.
        unsafe {
            self.0.attempt.drop_later(node);
            let results = &mut self.0.attempt.features.operations.results;
            let slot = results.add(node.cast(), true);
            results.handle(slot)
        }
    }

    /// Returns a deferred value now. All operations that have been recorded or [enqueued](crate::features::graph) so far run, and
    /// the attempt depends on their reads (it is *wild*, drp §4).
    ///
    /// # Errors
    ///
    /// As [`compute`](Self::compute); [`Misuse::ForeignDeferred`] for a value of another attempt.
    pub fn force<T: Clone + 'static>(&mut self, deferred: Deferred<T>) -> Result<T, Abort> {
        let access = &mut self.0;
        if access.is_stopped() {
            return Err(Abort::INTERNAL);
        }
        access.own(deferred)?;
        if access.attempt.features.operations.results.get(&deferred).is_none() {
            access.deferral_mut().settle()?;
            access.stealing_mut().run_graph()?;
        }
        match access.attempt.features.operations.results.get(&deferred) {
            Some(value) => Ok(value.clone()),
            // An operation has forced it that runs before the one whose result it is.
            None => Err(access.misuse(Misuse::UnknownInput)),
        }
    }
}

impl<P: Protocol> ObjectAccess<'_, P> {
    /// Ends the attempt if a handle is not its own.
    pub(crate) fn own<T>(&mut self, deferred: Deferred<T>) -> Result<(), Abort> {
        if self.attempt.features.operations.results.owns(&deferred) {
            Ok(())
        } else {
            Err(self.misuse(Misuse::ForeignDeferred))
        }
    }
}

impl<P: Protocol> DeferralAccess<'_, P> {
    /// Returns the value of an input, if it is known.
    pub fn value_of<I: Input>(&self, input: &I) -> Option<I::Value> {
        input.get(&self.attempt.features.operations.results)
    }

    /// Returns a handle to a result that will never be known, for an operation that has failed and cannot say so. Ends the
    /// attempt, unless that is over.
    pub fn unknown<T>(&mut self) -> Deferred<T> {
        if !self.is_stopped() {
            let _ = self.misuse(Misuse::UnknownInput);
        }
        self.attempt.hears.add(Moments::FORGETTING);
        self.attempt.features.operations.results.unknown()
    }
}

impl<P: Protocol> Engine<P> {
    /// As [`transact`](Self::transact), for a body whose result is known only when its transaction has committed. See
    /// [`Worker::transact_deferred`].
    ///
    /// # Errors
    ///
    /// As [`Worker::transact_deferred`], and [`Misuse::TooManyWorkers`].
    #[track_caller]
    pub fn transact_deferred<T: Clone + 'static>(
        &self,
        body: impl FnMut(&mut Transaction<'_, P>) -> Result<Deferred<T>, Abort>,
    ) -> Result<T, Error> {
        self.try_transact_deferred(Profile::UNKNOWN, body)
    }

    /// As [`transact_deferred`](Self::transact_deferred), with a profile and an error type of the user's own. See
    /// [`Worker::try_transact_deferred`].
    ///
    /// # Errors
    ///
    /// As [`Worker::try_transact_deferred`], and [`Misuse::TooManyWorkers`].
    #[track_caller]
    pub fn try_transact_deferred<T: Clone + 'static, E: From<Abort>>(
        &self,
        profile: Profile,
        body: impl FnMut(&mut Transaction<'_, P>) -> Result<Deferred<T>, E>,
    ) -> Result<T, Error<E>> {
        let place = Location::caller();
        self.with_worker(|worker| worker.called_from(place).try_transact_deferred(profile, body))
    }
}

impl<P: Protocol> Worker<P> {
    /// As [`transact`](Self::transact), for a body whose result is known only when its transaction has committed: the body
    /// returns a [`Deferred`] value, and the call returns the value itself.
    ///
    /// # Errors
    ///
    /// As [`transact`](Self::transact), and [`Error::Panicked`] if a deferred operation panicked.
    #[inline]
    #[track_caller]
    pub fn transact_deferred<T: Clone + 'static>(
        &mut self,
        body: impl FnMut(&mut Transaction<'_, P>) -> Result<Deferred<T>, Abort>,
    ) -> Result<T, Error> {
        self.try_transact_deferred(Profile::UNKNOWN, body)
    }

    /// As [`transact_deferred`](Self::transact_deferred), with a profile and an error type of the user's own: see
    /// [`try_transact_as`](Self::try_transact_as).
    ///
    /// # Errors
    ///
    /// As [`try_transact_as`](Self::try_transact_as), and [`Error::Panicked`] if a deferred operation panicked.
    #[inline]
    #[track_caller]
    pub fn try_transact_deferred<T: Clone + 'static, E: From<Abort>>(
        &mut self,
        profile: Profile,
        mut body: impl FnMut(&mut Transaction<'_, P>) -> Result<Deferred<T>, E>,
    ) -> Result<T, Error<E>> {
        self.resolve(profile, |tx| {
            let deferred = body(tx)?;
            tx.0.own(deferred)?;
            Ok(deferred)
        })
    }
}

impl<P: Protocol, T: Clone + 'static> Resolve<P> for Deferred<T> {
    type Output = T;
    const LATER: bool = true;
    fn known(self) -> Option<T> {
        None
    }
    fn resolve(self, attempt: &mut Attempt<P>) -> T {
        attempt.features.operations.take_result(&self).expect("its intention has run, as all have")
    }
}

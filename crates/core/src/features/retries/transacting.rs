//! Transactions of a worker: admission, attempts, end.

use super::body::{Known, Resolve, Returning};
use crate::features::pieces::WholeGuard;
use crate::kernel::abort::{Abort, Error, Misuse, NotDurable};
use crate::kernel::loss::ConflictReport;
use crate::kernel::profile::Profile;
use crate::kernel::protocol::Protocol;
use crate::kernel::slots::Slots;
use crate::kernel::transaction::Transaction;
use crate::kernel::worker::{Body, Ended, Worker};
use crate::memory::thread_mark::NestingGuard;
use hotrow_sync::clock::Duration;
use hotrow_sync::profile;
use std::convert::Infallible;
use std::panic::Location;

/// A transaction's time inside the engine: the thread's mark, and the count of those beside which none may be in pieces.
pub(crate) struct Inside {
    nesting: NestingGuard,
    /// Keeps others out that must not run beside it.
    pub(crate) barrier: Option<WholeGuard>,
}

impl Inside {
    #[inline]
    fn enter() -> Result<Self, Misuse> {
        match NestingGuard::enter() {
            Some(nesting) => Ok(Self { nesting, barrier: None }),
            None => Err(Misuse::Nested),
        }
    }

    /// The thread's number.
    pub(crate) fn thread(&self) -> u64 {
        self.nesting.0
    }
}

/// The end of a transaction, as far as its caller is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TransactionEnd {
    Committed,
    /// By the body, whose error may tell what it has read.
    RolledBack,
    Failed,
}

impl TransactionEnd {
    /// The end, for the caller.
    #[inline(always)]
    pub(crate) fn of(ended: &Ended) -> Self {
        match ended {
            Ended::Committed => TransactionEnd::Committed,
            Ended::RolledBack => TransactionEnd::RolledBack,
            Ended::Failed(error) if matches!(**error, Error::Rollback(_)) => TransactionEnd::RolledBack,
            Ended::Failed(_) => TransactionEnd::Failed,
        }
    }
}

impl<P: Protocol> Worker<P> {
    /// Runs `body` as a transaction, and retries it as the engine's retry policy allows until it commits.
    ///
    /// `body` may run several times; only its last run has effects on transactional objects. It passes aborts up with
    /// `?`, and may return [`Abort::rollback`] to roll back. A panic in it rolls back and is passed on. Rollbacks and
    /// panics count only if the body has seen one consistent state; otherwise it runs again.
    ///
    /// # Errors
    ///
    /// [`Error::Conflict`] or [`Error::Timeout`] when the policy's attempts or time are used up, [`Error::Rollback`]
    /// when the body asked for it, [`Error::Misuse`] for a use that can never work, [`Error::Panicked`] if the condition of
    /// a constraint panicked, [`Error::MemoryLimit`] when more memory is retained than the engine's limit, if it has one.
    #[inline]
    #[track_caller]
    pub fn transact<R>(
        &mut self,
        body: impl FnMut(&mut Transaction<'_, P>) -> Result<R, Abort>,
    ) -> Result<R, Error> {
        self.try_transact(body)
    }

    /// As [`transact`](Self::transact), with an error type of the user's own, which is returned unchanged in [`Error::Rollback`].
    ///
    /// # Errors
    ///
    /// As [`transact`](Self::transact).
    #[inline]
    #[track_caller]
    pub fn try_transact<R, E: From<Abort>>(
        &mut self,
        body: impl FnMut(&mut Transaction<'_, P>) -> Result<R, E>,
    ) -> Result<R, Error<E>> {
        self.try_transact_as(Profile::UNKNOWN, body)
    }

    /// As [`try_transact`](Self::try_transact), for a transaction that declares facts about itself. The profile must be true in
    /// all attempts.
    ///
    /// # Errors
    ///
    /// As [`transact`](Self::transact); [`Misuse::ReadOnly`](crate::Misuse::ReadOnly) for a write in a transaction that was declared read-only.
    #[inline]
    #[track_caller]
    pub fn try_transact_as<R, E: From<Abort>>(
        &mut self,
        profile: Profile,
        mut body: impl FnMut(&mut Transaction<'_, P>) -> Result<R, E>,
    ) -> Result<R, Error<E>> {
        self.resolve(profile, |tx| body(tx).map(Known))
    }

    #[inline]
    #[track_caller]
    pub(crate) fn resolve<B: Resolve<P>, E: From<Abort>>(
        &mut self,
        profile: Profile,
        body: impl FnMut(&mut Transaction<'_, P>) -> Result<B, E>,
    ) -> Result<B::Output, Error<E>> {
        let mut body = Returning::new(body);
        let ended = self.run(profile, Location::caller(), &mut body);
        body.end(ended)
    }

    /// Runs a transaction.
    #[inline(never)]
    fn run(&mut self, profile: Profile, place: &'static Location<'static>, body: &mut dyn Body<P>) -> Ended {
        let mut inside = match self.admit(&profile, place) {
            Ok(inside) => inside,
            Err(error) => return Ended::failed(error),
        };
        let ended = self
            .attempt(0, 0, &inside, profile, body)
            .ended()
            .unwrap_or_else(|cause| self.attempt_again(*cause, profile, &mut inside, body));
        drop(inside);
        match self.tell_end(TransactionEnd::of(&ended)) {
            Ok(()) => ended,
            Err(failure) => Ended::failed(Error::NotDurable(failure)),
        }
    }

    /// Begins a transaction: checks what can be checked before the first attempt, and waits until older transactions are through.
    pub(crate) fn admit(
        &mut self,
        profile: &Profile,
        place: &'static Location<'static>,
    ) -> Result<Inside, Error<Infallible>> {
        let mut inside = Inside::enter()?;
        if P::must_end(&self.attempt) {
            self.attempt.begin_transaction(None);
        } else {
            self.attempt.begin_transaction(self.shared.features.policy.deadline);
            if !self.opens_snapshot(profile, place) {
                inside.barrier = self.exclude_pieces();
                if !self.passes_gate() {
                    return Err(Error::Timeout(ConflictReport::at_gate().into_conflict(0, Duration::ZERO)));
                }
                self.may_begin(profile, self.shared.features.policy.deadline)?;
                self.admit_to_log(profile);
            }
        }
        self.begin_activity(place);
        Ok(inside)
    }

    /// As [`admit`](Self::admit), for one attempt of a future, which waits no longer than this for others. `None` if it should
    /// go on later.
    pub(crate) fn admit_for(
        &mut self,
        time_max: Duration,
        profile: &Profile,
        place: &'static Location<'static>,
    ) -> Result<Option<Inside>, Error<Infallible>> {
        let mut inside = Inside::enter()?;
        self.attempt.begin_transaction(self.shared.features.policy.deadline);
        self.attempt.course.budget.limit = Some(time_max);
        if !self.opens_snapshot(profile, place) {
            if !self.passes_gate() {
                return Ok(None);
            }
            self.may_begin(profile, Some(time_max))?;
            inside.barrier = self.exclude_pieces();
        }
        Ok(Some(inside))
    }

    /// Passes the gate, if need be when it is no longer closed for another transaction. False if the deadline has passed before.
    #[inline]
    fn passes_gate(&mut self) -> bool {
        !self.shared.features.gate.is_closed() || self.wait_at_gate()
    }

    #[cold]
    fn wait_at_gate(&mut self) -> bool {
        let time_max = self.attempt.wait_max().time();
        let _waiting = profile::waiting("the gate of the oldest", 0);
        self.shared.features.gate.wait(time_max)
    }

    /// Checks that the memory limit admits an attempt, and waits no longer than this until it does.
    #[inline]
    pub(super) fn may_begin(
        &self,
        profile: &Profile,
        time_max: Option<Duration>,
    ) -> Result<(), Error<Infallible>> {
        self.shared.features.limit.pass(profile.only_reads(), time_max).map_err(Error::MemoryLimit)
    }

    /// Opens the snapshot of a transaction, if it reads on one. True if it does: it is in nobody's way, and needs no admission.
    #[inline]
    pub(crate) fn opens_snapshot(&mut self, profile: &Profile, place: &'static Location<'static>) -> bool {
        let is_on_snapshot = profile.isolation.is_on_snapshot();
        if is_on_snapshot {
            self.open_snapshot(profile, place);
        }
        is_on_snapshot
    }

    /// A transaction has ended. It may wait here: nothing is held.
    #[inline]
    fn tell_end(&mut self, end: TransactionEnd) -> Result<(), NotDurable> {
        self.end_activity(end == TransactionEnd::Committed);
        if self.attempt.features.hooks.is_empty() { self.acknowledge(end) } else { self.end_with_hooks(end) }
    }
}

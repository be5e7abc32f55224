//! Workers, with which threads run transactions.

mod open_transaction;
mod retries;
pub(crate) mod slots;

pub use open_transaction::OpenTransaction;

use crate::kernel::abort::{Abort, Error, Misuse};
use crate::kernel::attempt::Attempt;
use crate::kernel::engine::{Engine, Shared};
use crate::kernel::loss::ConflictReport;
use crate::kernel::loss::Events;
use crate::kernel::profile::Profile;
use crate::kernel::protocol::Protocol;
use crate::kernel::slots::{Slots, WorkerSlot};
use crate::kernel::statistics::Statistics;
use crate::kernel::thread_mark::{NestingGuard, is_rolling_back};
use crate::kernel::transaction::{AttemptOutcome, ObjectAccess, Transaction};
use crate::memory::identity::Origin;
use crate::memory::identity::WorkerId;
use crate::memory::retained::{self, HolderKind};
use crate::memory::users_code::{Panics, drop_payload};
use hotrow_sync::clock::Duration;
use hotrow_sync::event::Event;
use hotrow_sync::profile;
use hotrow_sync::random::Random;
use hotrow_sync::{Arc, thread};
use retries::Attempts;
use slots::WorkerSlots;
use std::cell::OnceCell;
use std::convert::Infallible;
use std::fmt;
use std::panic::{AssertUnwindSafe, Location, catch_unwind, resume_unwind};

/// Runs transactions, one at a time, for one thread at a time.
///
/// A worker owns the memory that an attempt needs (tracking set, arena, protocol state), so that a transaction
/// allocates nothing once these have grown. Dropping it gives its number back.
pub struct Worker<P: Protocol> {
    pub(crate) shared: Arc<Shared<P>>,
    pub(crate) slot: Arc<WorkerSlot<P>>,
    pub(crate) attempt: Attempt<P>,
    random: Random,
    /// The state of features in it.
    pub(crate) features: <P as WorkerSlots>::OfWorker,
}

/// A transaction's time inside the engine: the thread's mark, and the count of those beside which none may be in pieces.
pub(crate) struct Inside<P: Protocol> {
    nesting: NestingGuard,
    /// Keeps others out that must not run beside it.
    pub(crate) barrier: Option<<P as WorkerSlots>::Barrier>,
}

impl<P: Protocol> Inside<P> {
    /// The thread's number.
    pub(crate) fn thread(&self) -> u64 {
        self.nesting.0
    }
}

impl<P: Protocol> Worker<P> {
    pub(crate) fn new(shared: Arc<Shared<P>>, slot: Arc<WorkerSlot<P>>, local: P::Local) -> Self {
        let id = WorkerId(slot.number);
        // The same for each engine, so that simulations are repeatable.
        let random = Random::stream(0, u64::from(slot.number));
        let state = P::state(&shared.features);
        let mut attempt = Attempt::new(slot.clone(), local, state, &shared.protocol);
        let (worker, protocol) = (id, shared.name.clone());
        let kind = HolderKind::Transaction { worker, attempt: 0, protocol };
        attempt.holder = retained::register(shared.id, kind);
        Self { shared, slot, attempt, random, features: Default::default() }
    }

    /// The worker's number.
    pub fn id(&self) -> WorkerId {
        self.attempt.worker()
    }

    /// This worker's counts, and those of earlier workers with the same number.
    #[inline]
    pub fn statistics(&self) -> Statistics {
        self.slot.counters.read(&P::named_counters(&self.shared.protocol))
    }

    /// The number of its attempts that lost a conflict: [`Statistics::aborts`], without reading the other counts.
    #[inline]
    pub fn aborts(&self) -> u64 {
        self.slot.counters.aborts()
    }

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
    /// As [`transact`](Self::transact); [`Misuse::ReadOnly`] for a write in a transaction that was declared read-only.
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
        mut body: impl FnMut(&mut Transaction<'_, P>) -> Result<B, E>,
    ) -> Result<B::Output, Error<E>> {
        let inside = self.admit(&profile, Location::caller()).map_err(Error::of_any_body)?;
        let (result, end) = {
            let shared = OnceCell::new();
            let mut attempts = Attempts::of(self, profile, inside, &shared);
            loop {
                match attempts.make(&mut body) {
                    Attempted::Committed(output) => break (Ok(output), TransactionEnd::Committed),
                    Attempted::RolledBack(error) => {
                        break (Err(Error::Rollback(error)), TransactionEnd::RolledBack);
                    }
                    Attempted::Failed(error) => break (Err(error.of_any_body()), TransactionEnd::Failed),
                    Attempted::Unfinished(cause) => {
                        if let Err(error) = attempts.prepare(cause) {
                            break (Err(error.of_any_body()), TransactionEnd::Failed);
                        }
                    }
                }
            }
        };
        match P::ends(self, end) {
            Ok(()) => result,
            Err(failure) => Err(Error::NotDurable(failure)),
        }
    }

    /// Begins a transaction: checks what can be checked before the first attempt, and waits until older transactions are through.
    fn admit(
        &mut self,
        profile: &Profile,
        place: &'static Location<'static>,
    ) -> Result<Inside<P>, Error<Infallible>> {
        let mut inside = Inside { nesting: NestingGuard::enter()?, barrier: None };
        if P::must_end(&self.attempt) {
            self.attempt.begin_transaction(None);
        } else {
            self.attempt.begin_transaction(self.shared.policy.deadline);
            if P::entering(self, profile, place) {
                inside.barrier = P::barrier(self);
                if self.shared.gate.is_closed() && !self.wait_at_gate() {
                    return Err(Error::Timeout(ConflictReport::at_gate().into_conflict(0, Duration::ZERO)));
                }
                self.may_begin(profile)?;
                P::entered(self, profile);
            }
        }
        P::begins(self, place);
        Ok(inside)
    }

    /// As [`admit`](Self::admit), for one attempt of a future, which waits no longer than this for others. `None` if it should
    /// go on later.
    pub(crate) fn admit_for(
        &mut self,
        time_max: Duration,
        profile: &Profile,
        place: &'static Location<'static>,
    ) -> Result<Option<Inside<P>>, Error<Infallible>> {
        let mut inside = Inside { nesting: NestingGuard::enter()?, barrier: None };
        self.attempt.begin_transaction(Some(time_max));
        if P::entering(self, profile, place) {
            if self.shared.gate.is_closed() && !self.wait_at_gate() {
                return Ok(None);
            }
            self.shared.limit.pass(profile.only_reads(), Some(time_max)).map_err(Error::MemoryLimit)?;
            inside.barrier = P::barrier(self);
        }
        Ok(Some(inside))
    }

    /// True if it is a worker of this engine.
    pub(crate) fn is_of(&self, engine: &Engine<P>) -> bool {
        Arc::ptr_eq(&self.shared, &engine.shared)
    }

    /// Waits while the gate is closed for another transaction. False if the deadline has passed meanwhile.
    #[cold]
    fn wait_at_gate(&mut self) -> bool {
        let time_max = self.attempt.wait_max().time();
        let _waiting = profile::waiting("the gate of the oldest", 0);
        self.shared.gate.wait(time_max)
    }

    /// Checks that the memory limit admits an attempt.
    #[inline]
    fn may_begin(&self, profile: &Profile) -> Result<(), Error<Infallible>> {
        self.shared.limit.pass(profile.only_reads(), self.shared.policy.deadline).map_err(Error::MemoryLimit)
    }

    /// Begins one attempt and holds it open, for tools that step several transactions by hand on one thread, operation
    /// by operation. There is no retry, no backoff, no wait for memory and no check against nesting. Under a protocol
    /// that waits, two transactions of one thread can wait for each other.
    pub fn begin(&mut self) -> OpenTransaction<'_, P> {
        self.begin_as(Profile::UNKNOWN)
    }

    /// As [`begin`](Self::begin), for a transaction that declares facts about itself.
    pub fn begin_as(&mut self, profile: Profile) -> OpenTransaction<'_, P> {
        self.attempt.begin_transaction(self.shared.policy.deadline);
        P::by_hand(self);
        let barrier = if P::entering(self, &profile, Location::caller()) { P::barrier(self) } else { None };
        OpenTransaction::new(self.open_attempt(0, true, thread::number(), profile, true), barrier)
    }

    /// Begins the only attempt of a session, on the session's thread.
    pub(crate) fn begin_session(
        &mut self,
        name: &str,
        profile: Profile,
        idles_at: Arc<Event>,
    ) -> Result<(Inside<P>, ObjectAccess<'_, P>), Error<Infallible>> {
        let (name, protocol) = (name.to_owned(), self.shared.name.clone());
        let kind = HolderKind::Session { name, worker: self.id(), protocol };
        retained::make_session(self.attempt.holder, kind, idles_at);
        self.attempt.make_interactive();
        P::names(self, Origin::Name("a session"));
        let inside = self.admit(&profile, Location::caller())?;
        let thread = inside.nesting.0;
        Ok((inside, self.open_attempt(0, true, thread, profile, true)))
    }

    #[inline]
    fn open_attempt(
        &mut self,
        number: u32,
        is_last: bool,
        thread: u64,
        profile: Profile,
        describe: bool,
    ) -> ObjectAccess<'_, P> {
        let Self { shared, slot, attempt, .. } = self;
        attempt.course.is_last = is_last;
        attempt.open(number, profile, thread);
        ObjectAccess::begin(&shared.protocol, shared.id, attempt, slot, describe)
    }

    /// Opens an attempt of this number, after so many lost ones.
    #[inline]
    fn begin_attempt(
        &mut self,
        number: u32,
        lost: u32,
        thread: u64,
        profile: Profile,
    ) -> ObjectAccess<'_, P> {
        let policy = &self.shared.policy;
        let (is_last, may_give_up) = (lost + 1 >= policy.attempts_max, policy.may_give_up_after(lost + 1));
        let describe = may_give_up || Events::want_losses();
        P::attempting(self);
        self.open_attempt(number, is_last, thread, profile, describe)
    }

    /// Makes an attempt of this number, after so many lost ones.
    ///
    /// It is compiled for each body. So what does not depend on the body is apart: the attempt's begin, its commit and its close.
    #[inline]
    pub(crate) fn one_attempt<B: Resolve<P>, E: From<Abort>>(
        &mut self,
        number: u32,
        lost: u32,
        thread: u64,
        profile: Profile,
        body: &mut (impl FnMut(&mut Transaction<'_, P>) -> Result<B, E> + ?Sized),
    ) -> Attempted<B::Output, E> {
        let mut access = self.begin_attempt(number, lost, thread, profile);
        if let Some(result) = access.run_in_region(body) {
            let output = result.resolve(access.attempt);
            access.close_committed();
            // It is over, and owns nothing more.
            std::mem::forget(access);
            return Attempted::Committed(output);
        }
        match catch_unwind(AssertUnwindSafe(|| body(&mut access))) {
            Ok(Ok(result)) => {
                if is_rolling_back() {
                    // Ends the attempt.
                    let _ = access.misuse(Misuse::CaughtError);
                }
                if access.commit_until_closed() {
                    let output = result.resolve(access.attempt);
                    access.close_committed();
                    // It is over, and owns nothing more.
                    std::mem::forget(access);
                    Attempted::Committed(output)
                } else {
                    // The result is dropped after that, when no locks are held any more.
                    Attempted::failed(access.give_up_passing_on(), None)
                }
            }
            Ok(Err(error)) => Attempted::failed(access.give_up_passing_on(), Some(error)),
            // Only the body's panic is passed on; panics of the roll-back after it are contained.
            Err(panic) => match access.give_up(&mut Panics::default()) {
                AttemptOutcome::Lost(lost) => {
                    drop_payload(panic);
                    Attempted::Unfinished(Unfinished::Lost(lost))
                }
                _ => {
                    P::panicked(self);
                    resume_unwind(panic)
                }
            },
        }
    }
}

impl<P: Protocol> Drop for Worker<P> {
    fn drop(&mut self) {
        if self.attempt.is_open() {
            self.attempt.abandon();
        }
        retained::release(self.attempt.holder);
        P::leaves(self);
        self.shared.give_back(&self.slot, std::mem::take(&mut self.attempt.local));
    }
}

impl<P: Protocol> fmt::Debug for Worker<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").field("number", &self.id().number()).finish_non_exhaustive()
    }
}

/// The outcome of one attempt.
pub(crate) enum Attempted<R, E> {
    Committed(R),
    /// By the body, with this error.
    RolledBack(E),
    /// For another reason.
    Failed(Error<Infallible>),
    Unfinished(Unfinished),
}

/// The end of a transaction, as far as its caller is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TransactionEnd {
    Committed,
    /// By the body, whose error may tell what it has read.
    RolledBack,
    Failed,
}

/// The cause why a transaction needs another attempt.
pub(crate) enum Unfinished {
    /// It has lost a conflict.
    Lost(ConflictReport),
    /// The body waits for a change, for this time at most.
    Waits(Option<Duration>),
}

impl<R, E: From<Abort>> Attempted<R, E> {
    /// The outcome of an attempt that did not commit; `error` is the body's error if it returned one.
    fn failed(outcome: AttemptOutcome, error: Option<E>) -> Self {
        match outcome {
            AttemptOutcome::Lost(lost) => Attempted::Unfinished(Unfinished::Lost(lost)),
            AttemptOutcome::Retry(time_max) => Attempted::Unfinished(Unfinished::Waits(time_max)),
            AttemptOutcome::Misused(misuse) => Attempted::Failed(Error::Misuse(misuse)),
            AttemptOutcome::Panicked(message) => Attempted::Failed(Error::Panicked { message }),
            AttemptOutcome::Told(told) => Attempted::Failed(told.into()),
            AttemptOutcome::NotDurable(failure) => Attempted::Failed(Error::NotDurable(failure)),
            // Even if the body has turned the token into another error: the intention has decided.
            AttemptOutcome::RolledBack(reason) => Attempted::RolledBack(reason.into()),
            AttemptOutcome::Done => Attempted::RolledBack(error.unwrap_or_else(|| Abort::rollback().into())),
        }
    }
}

/// The return value of a body: its result, or a value that the commit will make known.
pub(crate) trait Resolve<P: Protocol> {
    type Output;
    fn resolve(self, attempt: &mut Attempt<P>) -> Self::Output;
}

/// A result that is known when the body returns.
pub(crate) struct Known<R>(pub(crate) R);

impl<P: Protocol, R> Resolve<P> for Known<R> {
    type Output = R;
    #[inline(always)]
    fn resolve(self, _: &mut Attempt<P>) -> R {
        self.0
    }
}

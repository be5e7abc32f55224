//! Workers, with which threads run attempts. Features make transactions of them (`features/retries`).

use crate::kernel::abort::{Abort, Error, Misuse};
use crate::kernel::attempt::Attempt;
use crate::kernel::engine::{Engine, Shared};
use crate::kernel::loss::ConflictReport;
use crate::kernel::profile::Profile;
use crate::kernel::protocol::Protocol;
use crate::kernel::slots::{Slots, WorkerSlot};
use crate::kernel::statistics::Statistics;
use crate::kernel::thread_mark::is_rolling_back;
use crate::kernel::transaction::{AttemptOutcome, ObjectAccess, Transaction};
use crate::memory::identity::WorkerId;
use crate::memory::retained::{self, HolderKind};
use crate::memory::users_code::{Panics, drop_payload};
use hotrow_sync::Arc;
use hotrow_sync::clock::Duration;
use hotrow_sync::random::Random;
use std::convert::Infallible;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// A protocol whose workers have slots for features: every one. The features implement it once, for all.
pub(crate) trait WorkerSlots: Slots {
    /// Their state in one worker, from one transaction to the next.
    type OfWorker: Default;

    /// A panic ends a transaction, and is passed on afterwards.
    fn panicked(worker: &mut Worker<Self>);
    /// The worker is dropped.
    fn leaves(worker: &Worker<Self>);
}

/// Runs transactions, one at a time, for one thread at a time.
///
/// A worker owns the memory that an attempt needs (tracking set, arena, protocol state), so that a transaction
/// allocates nothing once these have grown. Dropping it gives its number back.
pub struct Worker<P: Protocol> {
    pub(crate) shared: Arc<Shared<P>>,
    pub(crate) slot: Arc<WorkerSlot<P>>,
    pub(crate) attempt: Attempt<P>,
    pub(crate) random: Random,
    /// The state of features in it.
    pub(crate) features: <P as WorkerSlots>::OfWorker,
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

    /// True if it is a worker of this engine.
    pub(crate) fn is_of(&self, engine: &Engine<P>) -> bool {
        Arc::ptr_eq(&self.shared, &engine.shared)
    }

    /// Opens an attempt of this number. `describe`: a report of its loss names the key.
    #[inline]
    pub(crate) fn open_attempt(
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

    /// Makes an attempt.
    ///
    /// It is compiled for each body. So what does not depend on the body is apart: the attempt's begin, its commit and its close.
    #[inline]
    pub(crate) fn one_attempt<B: Resolve<P>, E: From<Abort>>(
        &mut self,
        (number, is_last, describe): (u32, bool, bool),
        thread: u64,
        profile: Profile,
        body: &mut (impl FnMut(&mut Transaction<'_, P>) -> Result<B, E> + ?Sized),
    ) -> Attempted<B::Output, E> {
        let mut access = self.open_attempt(number, is_last, thread, profile, describe);
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

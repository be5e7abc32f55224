//! Workers, with which threads run attempts. Features make transactions of them (`features/retries`).

use crate::kernel::abort::{Error, Misuse};
use crate::kernel::attempt::Attempt;
use crate::kernel::engine::{Engine, Shared};
use crate::kernel::loss::ConflictReport;
use crate::kernel::object_access::{AttemptOutcome, ObjectAccess};
use crate::kernel::profile::Profile;
use crate::kernel::protocol::Protocol;
use crate::kernel::slots::{Slots, WorkerSlot};
use crate::kernel::statistics::Statistics;
use crate::kernel::transaction::Transaction;
use crate::memory::identity::WorkerId;
use crate::memory::retained::{self, HolderKind};
use crate::memory::thread_mark::is_rolling_back;
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
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn one_attempt(
        &mut self,
        (number, is_last, describe): (u32, bool, bool),
        thread: u64,
        profile: Profile,
        body: &mut dyn Body<P>,
    ) -> Attempted {
        let mut access = self.open_attempt(number, is_last, thread, profile, describe);
        if access.run_in_region(body) {
            body.resolve(access.attempt);
            access.end_committed();
            return Attempted::Committed;
        }
        match catch_unwind(AssertUnwindSafe(|| body.run(&mut access))) {
            Ok(wish) => {
                let wants_to_commit = wish != Wish::RollBack;
                if wants_to_commit && is_rolling_back() {
                    // Ends the attempt.
                    let _ = access.misuse(Misuse::CaughtError);
                }
                if wants_to_commit && access.commit_until_closed() {
                    if wish == Wish::CommitAndResolve {
                        body.resolve(access.attempt);
                    }
                    access.end_committed();
                    return Attempted::Committed;
                }
                let mut panics = Panics::default();
                let attempted = Attempted::failed(access.give_up(&mut panics));
                if !matches!(attempted, Attempted::RolledBack) {
                    // Nobody is told of it. Users' code may drop it: no locks are held any more.
                    panics.contain(|| body.forget());
                }
                if let Some(panic) = panics.take() {
                    P::panicked(self);
                    resume_unwind(panic)
                }
                attempted
            }
            // Only the body's panic is passed on; panics of the roll-back after it are contained.
            Err(panic) => match access.give_up(&mut Panics::default()) {
                AttemptOutcome::Lost(lost) => {
                    drop_payload(panic);
                    Attempted::Unfinished(Box::new(Unfinished::Lost(lost)))
                }
                _ => {
                    P::panicked(self);
                    resume_unwind(panic)
                }
            },
        }
    }
}

impl<P: Protocol> ObjectAccess<'_, P> {
    /// Ends an attempt that has committed.
    #[inline(always)]
    fn end_committed(mut self) {
        self.close_committed();
        // It is over, and owns nothing more.
        std::mem::forget(self);
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

/// The wish of a body that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wish {
    RollBack,
    Commit,
    /// As `Commit`, and its result is known only in the attempt that has committed.
    CommitAndResolve,
}

/// A transaction's body and what it has returned, of whatever types, so that attempts are compiled once for all.
pub(crate) trait Body<P: Protocol> {
    /// Runs it.
    fn run(&mut self, tx: &mut Transaction<'_, P>) -> Wish;
    /// Makes its result known, if it is not: it has committed.
    fn resolve(&mut self, attempt: &mut Attempt<P>);
    /// Drops what it has returned.
    fn forget(&mut self);
    /// Leaks what it has returned in a simulated region that was aborted.
    fn leak(&mut self);
}

/// The outcome of one attempt: a tag and a pointer, in registers.
pub(crate) enum Attempted {
    /// The transaction is over: the body's result is known.
    Committed,
    /// It is over, by the body, with the error that it has returned.
    RolledBack,
    /// It is over for this reason; a rollback is an intention's.
    Failed(Box<Error>),
    Unfinished(Box<Unfinished>),
}

/// The end of a transaction: an [`Attempted`] after which there is no other.
pub(crate) enum Ended {
    Committed,
    RolledBack,
    Failed(Box<Error>),
}

/// The cause why a transaction needs another attempt.
pub(crate) enum Unfinished {
    /// It has lost a conflict.
    Lost(ConflictReport),
    /// The body waits for a change, for this time at most.
    Waits(Option<Duration>),
}

impl Ended {
    pub(crate) fn failed(error: Error<Infallible>) -> Self {
        Ended::Failed(Box::new(error.of_any_body()))
    }
}

impl Attempted {
    /// The end of the transaction, or the cause for which it is not over.
    #[inline(always)]
    pub(crate) fn ended(self) -> Result<Ended, Box<Unfinished>> {
        match self {
            Attempted::Committed => Ok(Ended::Committed),
            Attempted::RolledBack => Ok(Ended::RolledBack),
            Attempted::Failed(error) => Ok(Ended::Failed(error)),
            Attempted::Unfinished(cause) => Err(cause),
        }
    }

    /// The outcome of an attempt that did not commit.
    fn failed(outcome: AttemptOutcome) -> Self {
        Attempted::Failed(Box::new(match outcome {
            AttemptOutcome::Done => return Attempted::RolledBack,
            AttemptOutcome::Lost(lost) => return Self::Unfinished(Box::new(Unfinished::Lost(lost))),
            AttemptOutcome::Retry(time_max) => {
                return Self::Unfinished(Box::new(Unfinished::Waits(time_max)));
            }
            AttemptOutcome::Misused(misuse) => Error::Misuse(misuse),
            AttemptOutcome::Panicked(message) => Error::Panicked { message },
            AttemptOutcome::Told(told) => told.into(),
            AttemptOutcome::NotDurable(failure) => Error::NotDurable(failure),
            // Even if the body has turned the token into another error: the intention has decided.
            AttemptOutcome::RolledBack(reason) => Error::Rollback(reason),
        }))
    }
}

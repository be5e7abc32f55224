//! Transactions as futures, on no particular runtime.
//!
//! A poll runs the body as any attempt runs it, on the polling thread, with a worker that the thread keeps. Between two polls the
//! future holds nothing: no worker, no lock, no epoch, only its entries in the registry if it waits for a change. So it can be
//! dropped at any moment, and moved to another thread.
//!
//! What would block the thread is bounded, or becomes an await:
//!
//! | wait | as a future |
//! |---|---|
//! | for a change (`retry`) | pending until a commit wakes the task; the body does not run in between |
//! | for locks of others, all together in one attempt | [`BLOCKS_MAX`] at most; then the attempt is lost |
//! | between attempts | pending, woken at once: the task goes to the end of its executor's queue |
//! | at the gate of the oldest | [`BLOCKS_MAX`] at most, then as between attempts |
//! | for memory to be freed, above the engine's limit | likewise |
//! | for room in the log | as between attempts |
//! | for the log's acknowledgement | pending until the log wakes the task |
//!
//! Not bounded are the body itself; a place in line under a protocol that orders transactions when they commit
//! ([`Deferral`](crate::Deferral)), because it cannot be given back; and latches of indexes, which are held for a few dozen
//! instructions.
//!
//! Attempts of a future do not escalate ([`RetryPolicy::escalate_after`](crate::RetryPolicy::escalate_after)), and each of them is
//! as old as itself under protocols that go by age: the thread may run other transactions between two of them.

use super::{Waits, Watch};
use crate::features::durability::{Acknowledgement, Answer, Later};
use crate::features::hooks::Hooks;
use crate::features::retries::{Known, Returning, TransactionEnd};
use crate::kernel::abort::{Abort, BlockedForever, Error, Misuse};
use crate::kernel::engine::Engine;
use crate::kernel::loss::Events;
use crate::kernel::profile::Profile;
use crate::kernel::protocol::Protocol;
use crate::kernel::transaction::Transaction;
use crate::kernel::worker::{Attempted, Unfinished, Worker};
use crate::memory::users_code::Panics;
use hotrow_sync::clock::{self, Duration, Instant};
use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, Location, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

/// The longest time for which one poll waits for other transactions.
const BLOCKS_MAX: Duration = Duration::from_millis(1);
/// The longest time for which a future waits for memory to be freed.
const MEMORY_WAIT_MAX: Duration = Duration::from_millis(100);

/// The longest time for which a future waits for room in the log.
const ROOM_WAIT_MAX: Duration = Duration::from_secs(10);

/// A transaction as a future: see [`Engine::transact_async`].
#[must_use = "a future does nothing unless it is polled"]
pub struct TransactFuture<P: Protocol, R, E, F> {
    engine: Engine<P>,
    profile: Profile,
    body: F,
    progress: Progress,
    phase: Phase<R, E>,
    /// The call that made it.
    place: &'static Location<'static>,
}

/// The state of a transaction between two polls.
#[derive(Default)]
pub(crate) struct Progress {
    /// Number of attempts lost.
    lost: u32,
    /// The moment of the last loss.
    lost_since: Option<Instant>,
    /// The moment of the first loss or wait.
    begin: Option<Instant>,
    /// The moment since which memory has been short.
    short_since: Option<Instant>,
    /// The moment since which the log has had no room.
    full_since: Option<Instant>,
    waits: Waits,
    watch: Option<Box<Watch>>,
    hooks: Hooks,
    /// True if nothing may be deferred any more.
    runs_at_once: bool,
}

enum Phase<R, E> {
    Run,
    /// Until a change, or this moment.
    Wait(Option<Instant>),
    Acknowledge(Answer, Option<Later>, Result<R, Error<E>>),
    Over,
}

/// The outcome of a part of the work.
pub(crate) enum Step<R, E> {
    /// Go on later.
    Yield,
    /// Go on at once.
    Again,
    /// Go on when something changes, and not after this moment.
    Wait(Option<Instant>),
    /// The transaction is over when the log has acknowledged it.
    Over(Result<R, Error<E>>, Acknowledgement),
}

impl<R, E> Step<R, E> {
    /// The end by an error that tells nothing of what was read.
    fn failed(error: Error<E>) -> Self {
        Step::Over(Err(error), Acknowledgement::default())
    }
}

impl<P: Protocol> Engine<P> {
    /// As [`transact`](Self::transact), as a future. A [`retry`](Transaction::retry) of the body makes the future wait, without a
    /// thread, until something changes that the body has read.
    ///
    /// The future runs on any executor. A poll runs the body once or several times, and blocks its thread for no longer than a
    /// millisecond beside that, for locks of other transactions. While the future waits it holds nothing; it may be
    /// dropped at any await, and has had no effect then, unless it waits for the log's acknowledgement: then it has committed.
    ///
    /// There is no timer in it. The policy's deadline and [`retry_for`](Transaction::retry_for) are looked at when it is
    /// polled, and nothing polls it when they pass: use the runtime's own timeout around it.
    ///
    /// # Errors
    ///
    /// As [`transact`](Self::transact).
    #[track_caller]
    pub fn transact_async<R, F>(&self, body: F) -> TransactFuture<P, R, Abort, F>
    where
        F: FnMut(&mut Transaction<'_, P>) -> Result<R, Abort>,
    {
        self.try_transact_async(Profile::UNKNOWN, body)
    }

    /// As [`transact_async`](Self::transact_async), with a profile and an error type of the user's own.
    ///
    /// # Errors
    ///
    /// As [`Worker::try_transact_as`].
    #[track_caller]
    pub fn try_transact_async<R, E, F>(&self, profile: Profile, body: F) -> TransactFuture<P, R, E, F>
    where
        E: From<Abort>,
        F: FnMut(&mut Transaction<'_, P>) -> Result<R, E>,
    {
        let (engine, progress) = (self.clone(), Progress::default());
        TransactFuture { engine, profile, body, progress, phase: Phase::Run, place: Location::caller() }
    }
}

// Nothing in it is pinned: the body is called through a reference, and the acknowledgement is boxed.
impl<P: Protocol, R, E, F> Unpin for TransactFuture<P, R, E, F> {}

impl<P, R, E, F> Future for TransactFuture<P, R, E, F>
where
    P: Protocol,
    E: From<Abort>,
    F: FnMut(&mut Transaction<'_, P>) -> Result<R, E>,
{
    type Output = Result<R, Error<E>>;

    /// # Panics
    ///
    /// Passes on panics of the body and of hooks, and panics if it has been ready before.
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { engine, profile, body, progress, phase, place } = self.get_mut();
        loop {
            // Over, if something panics.
            match std::mem::replace(phase, Phase::Over) {
                Phase::Run => {
                    let step = engine.with_worker(|worker| {
                        Ok(worker.called_from(place).step(progress, *profile, &mut *body, place))
                    });
                    match step.unwrap_or_else(|error| Step::failed(error)) {
                        Step::Again => *phase = Phase::Run,
                        Step::Yield => {
                            *phase = Phase::Run;
                            context.waker().wake_by_ref();
                            return Poll::Pending;
                        }
                        Step::Wait(until) => *phase = Phase::Wait(until),
                        Step::Over(result, acknowledgement) => {
                            progress.decided(result.is_ok());
                            let Acknowledgement { until, later } = acknowledgement;
                            match until {
                                None => return Poll::Ready(progress.over(result, later)),
                                Some(until) => *phase = Phase::Acknowledge(until, later, result),
                            }
                        }
                    }
                }
                Phase::Wait(until) => {
                    let is_changed = progress.watch.as_ref().is_none_or(|watch| watch.waiter().poll(context));
                    if is_changed {
                        progress.woken();
                        *phase = Phase::Run;
                    } else if until.is_some_and(|until| clock::now() >= until) {
                        let timeout = progress.waits.timeout();
                        progress.decided(false);
                        return Poll::Ready(progress.over(Err(timeout.of_any_body()), None));
                    } else {
                        *phase = Phase::Wait(until);
                        return Poll::Pending;
                    }
                }
                Phase::Acknowledge(mut until, later, result) => match until.as_mut().poll(context) {
                    Poll::Pending => {
                        *phase = Phase::Acknowledge(until, later, result);
                        return Poll::Pending;
                    }
                    Poll::Ready(acknowledged) => {
                        let result = match (result, acknowledged) {
                            (Ok(_), Err(reason)) => Err(Error::not_durable(reason)),
                            (result, _) => result,
                        };
                        return Poll::Ready(progress.over(result, None));
                    }
                },
                Phase::Over => panic!("a transaction was polled after it had ended"),
            }
        }
    }
}

impl<P: Protocol, R, E, F> Drop for TransactFuture<P, R, E, F> {
    /// Ends the transaction, if it has not ended: without effect, unless it waits for the log's acknowledgement.
    fn drop(&mut self) {
        let hooks = &mut self.progress.hooks;
        match &mut self.phase {
            Phase::Run | Phase::Wait(_) => Panics::passing_on(|panics| hooks.run_at_end(false, panics)),
            Phase::Acknowledge(_, later @ Some(_), Ok(_)) => {
                hooks.run_when_durable(later.take(), &mut Panics::default());
            }
            Phase::Acknowledge(..) | Phase::Over => {}
        }
    }
}

impl<P: Protocol, R, E, F> fmt::Debug for TransactFuture<P, R, E, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TransactFuture").field("engine", &self.engine).finish_non_exhaustive()
    }
}

impl Progress {
    fn woken(&mut self) {
        self.waits.note_woken();
        if let Some(watch) = &mut self.watch {
            watch.start_over();
        }
    }

    /// Runs the hooks for a commit, or for an end without one.
    fn decided(&mut self, has_committed: bool) {
        self.watch = None;
        Panics::passing_on(|panics| self.hooks.run_at_end(has_committed, panics));
    }

    /// Runs the hooks for a commit that is durable, or has the log run them later.
    fn over<R, E>(&mut self, result: Result<R, Error<E>>, later: Option<Later>) -> Result<R, Error<E>> {
        let mut hooks = std::mem::take(&mut self.hooks);
        if result.is_ok() {
            Panics::passing_on(|panics| hooks.run_when_durable(later, panics));
        }
        result
    }

    fn deadline(&mut self, deadline: Option<Duration>) -> Option<(Instant, Duration)> {
        let begin = *self.begin.get_or_insert_with(clock::now);
        deadline.map(|deadline| (begin, deadline))
    }
}

impl<P: Protocol> Worker<P> {
    /// Makes one attempt of a transaction that is a future.
    fn step<R, E: From<Abort>>(
        &mut self,
        progress: &mut Progress,
        profile: Profile,
        body: &mut impl FnMut(&mut Transaction<'_, P>) -> Result<R, E>,
        place: &'static Location<'static>,
    ) -> Step<R, E> {
        if self.has_room_in_log(&profile) {
            progress.full_since = None;
            self.set_refusal(None);
        } else {
            let since = *progress.full_since.get_or_insert_with(clock::now);
            if since.elapsed() < ROOM_WAIT_MAX {
                return Step::Yield;
            }
            self.set_refusal(Some(format!("the log has had no room for {ROOM_WAIT_MAX:?}")));
        }
        let inside = match self.admit_for(BLOCKS_MAX, &profile, place) {
            Ok(Some(inside)) => inside,
            Ok(None) => return Step::Yield,
            Err(Error::MemoryLimit(limit)) => {
                let since = *progress.short_since.get_or_insert_with(clock::now);
                let is_over = since.elapsed() >= MEMORY_WAIT_MAX;
                return if is_over { Step::failed(Error::MemoryLimit(limit)) } else { Step::Yield };
            }
            Err(error) => return Step::failed(error.of_any_body()),
        };
        progress.short_since = None;
        progress.hooks = Hooks::default();
        self.attempt.features.operations.has_lost = progress.runs_at_once;
        self.attempt.set_watch(progress.watch.take());
        self.attempt.course.lost_since = progress.lost_since;
        self.begin_activity(place);
        let mut body = Returning::new(|tx: &mut Transaction<'_, P>| body(tx).map(Known));
        let attempted =
            catch_unwind(AssertUnwindSafe(|| self.attempt(0, progress.lost, &inside, profile, &mut body)));
        // After a panic it is over, whoever keeps the future.
        progress.watch = self.attempt.take_watch().filter(|_| attempted.is_ok());
        progress.runs_at_once = self.attempt.features.operations.has_lost;
        progress.hooks = self.attempt.features.hooks.take_of_body();
        drop(inside);
        self.attempt.course.lost_since = None;
        self.end_activity(matches!(attempted, Ok(Attempted::Committed)));
        let cause = match attempted.unwrap_or_else(|panic| resume_unwind(panic)).ended() {
            Err(cause) => cause,
            Ok(ended) => {
                let acknowledgement = match TransactionEnd::of(&ended) {
                    // It tells nothing of what was read.
                    TransactionEnd::Failed => Acknowledgement::default(),
                    TransactionEnd::Committed | TransactionEnd::RolledBack => self.attempt.acknowledgement(),
                };
                return Step::Over(body.end::<P>(ended), acknowledgement);
            }
        };
        match *cause {
            Unfinished::Lost(lost) => {
                let policy = self.shared.features.policy;
                progress.lost += 1;
                progress.lost_since = Some(clock::now());
                let deadline = progress.deadline(self.attempt.course.deadline);
                let lost_time = progress.begin.map_or(Duration::ZERO, |begin| begin.elapsed());
                let events = Events(&self.shared.name);
                events.lost(&lost, progress.lost);
                let is_late = deadline.is_some_and(|(begin, max)| begin.elapsed() >= max);
                let is_last = progress.lost >= policy.attempts_max;
                if !is_last && !is_late {
                    return Step::Yield;
                }
                let conflict = lost.into_conflict(progress.lost, lost_time);
                events.gives_up(&conflict);
                let error = if is_last { Error::Conflict(conflict) } else { Error::Timeout(conflict) };
                Step::failed(error)
            }
            Unfinished::Waits(time_max) => self.begin_to_wait(progress, &profile, time_max),
        }
    }

    fn begin_to_wait<R, E>(
        &mut self,
        progress: &mut Progress,
        profile: &Profile,
        time_max: Option<Duration>,
    ) -> Step<R, E> {
        if profile.isolation.is_on_snapshot() {
            return Step::failed(Misuse::CannotWait.into());
        }
        if progress.waits.was_woken() {
            self.slot.counters.woken_in_vain();
        }
        let deadline = progress.deadline(self.attempt.course.deadline);
        let left = progress.waits.left(deadline, time_max);
        match &progress.watch {
            None => {
                progress.watch = Some(Box::new(Watch::new(&self.shared.features.waiting)));
                return Step::Again;
            }
            Some(watch) if watch.is_empty() => {
                return Step::failed(Error::BlockedForever(BlockedForever::NothingRead));
            }
            Some(_) => {}
        }
        self.slot.counters.waited();
        Step::Wait(left.map(|left| clock::now() + left))
    }
}

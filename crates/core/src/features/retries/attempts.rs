//! The time between the attempts of a transaction: it tells of the one that was lost, stands back, and lets older ones through.

use super::{Elder, Inside, RetryPolicy};
use crate::features::pieces::Piece;
use crate::features::waiting::Waits;
use crate::kernel::abort::Error;
use crate::kernel::attempt::Attempt;
use crate::kernel::engine::Shared;
use crate::kernel::loss::Events;
use crate::kernel::profile::Profile;
use crate::kernel::protocol::Protocol;
use crate::kernel::slots::Slots;
use crate::kernel::worker::{Attempted, Body, Ended, Unfinished, Worker};
use crate::memory::pin::Pin;
use crate::memory::thread_mark::set_rollback;
use hotrow_sync::backoff::Backoff;
use hotrow_sync::clock::{self, Duration, Instant};
use hotrow_sync::profile;
use std::convert::Infallible;

/// A worker while it makes the further attempts of a transaction.
struct Attempts<'w, 's, P: Protocol> {
    worker: &'w mut Worker<P>,
    retries: Retries<'s, P>,
}

/// A transaction that needs more than one attempt.
struct Retries<'s, P: Protocol> {
    shared: &'s Shared<P>,
    policy: RetryPolicy,
    /// True if it must commit, because earlier pieces have.
    must_end: bool,
    begin: Instant,
    backoff: Backoff,
    waits: Waits,
    elder: Option<Elder<'s>>,
    /// Number of the attempts made, without those that waited for a change.
    attempts: u32,
    /// The begin of the attempt in progress, unless it follows a wait for a change. The first one is not timed.
    attempt_began: Option<Instant>,
    /// The duration of the lost attempts that were timed.
    lost_time: Duration,
    /// The pin with which the footprint stays valid for the attempt in progress.
    footprint: Option<Pin>,
}

impl<P: Protocol> Attempts<'_, '_, P> {
    /// Prepares another attempt, and returns its number.
    fn prepare(
        &mut self,
        cause: Unfinished,
        profile: &Profile,
        inside: &mut Inside,
    ) -> Result<u32, Error<Infallible>> {
        let Self { worker, retries } = self;
        retries.end_attempt(&mut worker.attempt);
        match cause {
            Unfinished::Waits(time_max) => {
                // Others need not let it through while it waits.
                retries.elder = None;
                let deadline = retries.policy.deadline.map(|max| (retries.begin, max));
                worker.wait_for_change(&mut retries.waits, deadline, time_max, inside)?;
                worker.may_begin(profile, worker.shared.features.policy.deadline)?;
            }
            Unfinished::Lost(mut lost) => {
                let events = Events(&retries.shared.name);
                events.lost(&lost, retries.attempts);
                let is_last = retries.attempts >= retries.policy.attempts_max;
                if is_last || !retries.stand_back(worker, &mut lost.pin, events) {
                    let conflict = lost.into_conflict(retries.attempts, retries.begin.elapsed());
                    events.gives_up(&conflict);
                    return Err(if is_last { Error::Conflict(conflict) } else { Error::Timeout(conflict) });
                }
                if !retries.must_end {
                    worker.may_begin(profile, worker.shared.features.policy.deadline)?;
                }
                retries.attempt_began = Some(clock::now());
                worker.attempt.start_watch_over();
                retries.attempts += 1;
            }
        }
        set_rollback(false);
        drop(worker.attempt.features.hooks.take_of_body());
        Ok(retries.attempts - 1)
    }
}

/// Also after a panic.
impl<P: Protocol> Drop for Attempts<'_, '_, P> {
    #[inline(always)]
    fn drop(&mut self) {
        self.retries.end(self.worker);
    }
}

impl<'s, P: Protocol> Retries<'s, P> {
    /// Begins after the first attempt.
    fn begin(attempt: &mut Attempt<P>, shared: &'s Shared<P>) -> Self {
        let mut policy = shared.features.policy;
        let must_end = P::must_end(attempt);
        policy.deadline = attempt.course.deadline;
        if must_end {
            (policy.attempts_max, policy.deadline) = (u32::MAX, None);
        }
        let begin = attempt.course.budget.since.unwrap_or_else(clock::now);
        attempt.course.lost_since = Some(begin);
        Self {
            shared,
            policy,
            must_end,
            begin,
            backoff: Backoff::new(policy.backoff_max),
            waits: Waits::default(),
            elder: None,
            attempts: 1,
            attempt_began: None,
            lost_time: Duration::ZERO,
            footprint: None,
        }
    }

    /// Ends an attempt that needs another one.
    fn end_attempt(&mut self, attempt: &mut Attempt<P>) {
        self.footprint = None;
        if let Some(began) = self.attempt_began.take() {
            let now = clock::now();
            self.lost_time += now - began;
            attempt.course.lost_since = Some(now);
        }
    }

    /// Waits before the attempt that follows a lost one. False if the deadline has passed meanwhile.
    fn stand_back(&mut self, worker: &mut Worker<P>, pin: &mut Option<Pin>, events: Events<'_>) -> bool {
        let time_max = self.policy.deadline.map(|deadline| deadline.saturating_sub(self.begin.elapsed()));
        if time_max == Some(Duration::ZERO) {
            return false;
        }
        let gate = &self.shared.features.gate;
        if self.elder.is_none() && self.policy.escalates_after(self.attempts, self.lost_time) {
            self.elder = Some(gate.escalate());
            events.escalates(self.attempts);
            // No new attempt disturbs it from now on; those in progress end soon, if their threads run at all.
            self.backoff = Backoff::new(self.policy.backoff_max);
        }
        // An attempt with a footprint waits in its lines, and so needs no other wait.
        let stands_back = self.elder.is_some() || gate.is_closed() || self.shared.features.limit.may_wait();
        self.footprint = pin.take().filter(|_| !stands_back);
        if self.footprint.is_some() {
            return true;
        }
        // INVARIANT 16: A transaction holds nothing while it backs off or waits at the gate.
        worker.attempt.features.footprint.clear();
        {
            let _waiting = profile::waiting("back-off", 0);
            self.backoff.wait(&mut worker.random);
        }
        let _waiting = profile::waiting("the gate of the oldest", 0);
        match &mut self.elder {
            Some(elder) => elder.pass(self.shared.workers(), time_max),
            None => self.must_end || !gate.is_closed() || gate.wait(time_max),
        }
    }

    /// Ends with the transaction.
    #[cold]
    #[inline(never)]
    fn end(&self, worker: &mut Worker<P>) {
        worker.slot.counters.attempts(self.attempts);
        worker.attempt.set_watch(None);
        worker.attempt.course.lost_since = None;
    }
}

impl<P: Protocol> Worker<P> {
    /// Makes attempts until the transaction is over, which needs more than its first one.
    #[cold]
    #[inline(never)]
    pub(super) fn attempt_again(
        &mut self,
        mut cause: Unfinished,
        profile: Profile,
        inside: &mut Inside,
        body: &mut dyn Body<P>,
    ) -> Ended {
        // An elder borrows its gate.
        let shared = self.shared.clone();
        let retries = Retries::begin(&mut self.attempt, &shared);
        let mut attempts = Attempts { worker: self, retries };
        loop {
            let number = match attempts.prepare(cause, &profile, inside) {
                Ok(number) => number,
                Err(error) => return Ended::failed(error),
            };
            match attempts.worker.attempt(number, number, inside, profile, body).ended() {
                Ok(ended) => return ended,
                Err(next) => cause = *next,
            }
        }
    }

    /// Makes an attempt of this number, after so many lost ones.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn attempt(
        &mut self,
        number: u32,
        lost: u32,
        inside: &Inside,
        profile: Profile,
        body: &mut dyn Body<P>,
    ) -> Attempted {
        let policy = &self.shared.features.policy;
        let (is_last, may_give_up) = (lost + 1 >= policy.attempts_max, policy.may_give_up_after(lost + 1));
        let describe = may_give_up || Events::want_losses();
        self.await_turn_of_piece();
        self.one_attempt((number, is_last, describe), inside.thread(), profile, body)
    }

    /// Waits until a piece of a transaction may begin. Nothing is held.
    #[inline(always)]
    pub(crate) fn await_turn_of_piece(&mut self) {
        if P::ALLOWS_CHOPPING && self.attempt.features.piece != Piece::Whole {
            self.await_piece();
        }
    }
}

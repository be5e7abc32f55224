//! The end of an attempt: the two halves of its commit, or its rollback.

use super::{AttemptOutcome, ObjectAccess, Stop};
use crate::kernel::abort::Misuse;
use crate::kernel::abort::NotDurable;
use crate::kernel::protocol::Prepared;
use crate::kernel::protocol::Protocol;
use crate::kernel::slots::{Moments, Slots};
use crate::memory::users_code::{Panics, contained};
use hotrow_sync::profile;
use hotrow_sync::thread::label;
use hotrow_sync::work::{Work, charge};

impl<P: Protocol> ObjectAccess<'_, P> {
    /// Tries to commit, and rolls back if it cannot.
    pub(crate) fn commit(mut self) -> AttemptOutcome {
        if !self.commit_until_closed() {
            return self.give_up_passing_on();
        }
        self.close_committed();
        self.attempt.acknowledge()
    }

    /// Closes an attempt that has committed, and whose results were taken.
    #[inline]
    pub(crate) fn close_committed(&mut self) {
        self.close(true, &mut Panics::default());
    }

    #[inline]
    fn close(&mut self, committed: bool, panics: &mut Panics) {
        P::closing(self, committed, |attempt| attempt.close(panics));
        profile::attempt_ends(committed);
        label("between attempts");
    }

    /// Runs all steps of the commit but the last one, [`close_committed`](Self::close_committed). False if the attempt
    /// cannot commit; then nothing has been installed, and the caller [gives up](Self::give_up_passing_on). It must not
    /// run users' code before, because locks are held until then.
    ///
    /// After the protocol has committed, all panics are contained: a panic would make the caller think that nothing has
    /// happened.
    #[inline]
    pub(crate) fn commit_until_closed(&mut self) -> bool {
        self.end_body();
        if self.attempt.hears(Moments::ALONE) {
            return self.end_without_protocol();
        }
        // The first half: takes the locks that are missing, draws the stamp, validates.
        if self.attempt.stop.is_some() || !self.prepare() || !self.between_halves() {
            return false;
        }
        // INVARIANT 4: Once the second half has begun, nothing fails and nothing is rolled back: no write is both installed and undone.
        self.open = false;
        P::finishing(self);
        self.protocol.finish(Prepared::new(self.attempt));
        profile::release_all();
        // INVARIANT 3: The second half of a commit installs every pending write.
        debug_assert!(self.attempt.is_installed(), "the second half installs every write");
        P::finished(self);
        label("after commit");
        // INVARIANT 10: No panic leaves an attempt that has committed, and none stops a rollback half-way.
        self.attempt.cleanup(true, &mut Panics::default());
        self.protocol.after_cleanup(self.attempt);
        true
    }

    /// Ends the body: runs what it has left to be done, and has objects check what it has written.
    #[inline(always)]
    fn end_body(&mut self) {
        if self.is_told() && self.attempt.stop.is_none() {
            let _ = self.heed();
        }
        if self.attempt.stop.is_some() {
            return;
        }
        label("commit");
        profile::leave_objects();
        charge(Work::Commit);
        let moments = const { Moments::BODY_ENDED.and(Moments::HALF_CHANGED).and(Moments::CHECK) };
        if self.attempt.hears(moments) {
            self.end_body_now();
        }
    }

    /// A failure stops the attempt.
    #[cold]
    #[inline(never)]
    fn end_body_now(&mut self) {
        if self.attempt.hears(Moments::BODY_ENDED) {
            P::body_ended(self);
        }
        if self.attempt.hears(Moments::HALF_CHANGED) && self.attempt.stop.is_none() {
            let _ = self.misuse(Misuse::CaughtError);
        }
        if self.attempt.hears(Moments::CHECK) {
            self.check_writes();
        }
    }

    /// Runs the steps between the halves. False if the attempt cannot commit.
    #[inline(always)]
    fn between_halves(&mut self) -> bool {
        !self.attempt.hears(const { Moments::SETTLE.and(Moments::BETWEEN) }) || self.between_halves_now()
    }

    #[cold]
    #[inline(never)]
    fn between_halves_now(&mut self) -> bool {
        if self.attempt.hears(Moments::SETTLE) && !self.settle_changes() {
            return false;
        }
        if self.attempt.hears(Moments::BETWEEN)
            && let Err(stop) = P::between(self.attempt)
        {
            let _ = self.stop(*stop);
            return false;
        }
        true
    }

    /// Ends an attempt without the protocol: there is nothing to validate, and nothing to install.
    #[cold]
    #[inline(never)]
    fn end_without_protocol(&mut self) -> bool {
        if self.attempt.stop.is_some() {
            return false;
        }
        self.open = false;
        P::finished(self);
        self.attempt.cleanup(true, &mut Panics::default());
        true
    }

    /// Lets objects check all pending writes, which are final. A violation or a panic stops the attempt.
    #[cold]
    #[inline(never)]
    fn check_writes(&mut self) {
        if self.attempt.stop.is_some() {
            return;
        }
        let _ = self.catching(|tx| {
            let items = &tx.attempt.items;
            items.writes().iter().map(|id| items.get(*id)).try_for_each(|item| {
                // SAFETY: the item has a pending write of its object.
                unsafe { item.object().check(item) }
            })
        });
    }

    /// [Gives up](Self::give_up), and passes a panic on when all is done.
    #[cold]
    #[inline(never)]
    pub(crate) fn give_up_passing_on(self) -> AttemptOutcome {
        Panics::passing_on(|panics| self.give_up(panics))
    }

    /// Runs the first half of the commit. False if the attempt has lost.
    #[inline(always)]
    fn prepare(&mut self) -> bool {
        if self.attempt.hears(Moments::PREPARING) && !P::preparing(self) {
            return false;
        }
        match self.protocol.prepare(self.attempt) {
            Ok(()) => {
                self.is_valid = true;
                true
            }
            Err(lost) => {
                P::refused(self.attempt);
                let _ = self.lose(lost);
                false
            }
        }
    }

    /// Rolls back because the body, or one of its deferred operations, does not want to commit. The rollback counts
    /// only if the attempt has seen one consistent state (drp §5.2 has the certification as an input of all
    /// intentions). Otherwise the attempt has lost, and another one follows. One that the log has refused was prepared.
    #[cold]
    #[inline(never)]
    pub(crate) fn give_up(mut self, panics: &mut Panics) -> AttemptOutcome {
        // INVARIANT 6: A body's error, panic or failed condition is reported only if all that it has read is one consistent state.
        if !P::OPAQUE
            && !self.is_valid
            && !self.attempt.hears(Moments::ALONE)
            && !matches!(self.attempt.stop, Some(Stop::Lost(_) | Stop::Told(_) | Stop::Refused(_)))
        {
            self.validate_before_rollback();
        }
        self.cancel(panics)
    }

    fn validate_before_rollback(&mut self) {
        if P::giving_up(self)
            && let Err(lost) = self.protocol.validate_before_rollback(self.attempt)
        {
            self.attempt.stop = None;
            let _ = self.lose(lost);
        }
    }

    /// Rolls back without validating the attempt's reads. Everything is released, even if a panic occurs meanwhile.
    pub(crate) fn cancel(mut self, panics: &mut Panics) -> AttemptOutcome {
        self.roll_back(panics);
        match self.attempt.stop.take() {
            None => AttemptOutcome::Done,
            Some(Stop::Lost(loss)) => AttemptOutcome::Lost(loss),
            Some(Stop::Misuse(misuse)) => AttemptOutcome::Misused(misuse),
            Some(Stop::RolledBack(reason)) => AttemptOutcome::RolledBack(reason),
            Some(Stop::Panicked(message)) => AttemptOutcome::Panicked(message),
            Some(Stop::Told(limit)) => AttemptOutcome::Told(limit),
            Some(Stop::Refused(reason)) => {
                AttemptOutcome::NotDurable(NotDurable { reason, has_committed: false })
            }
            Some(Stop::Retry { time_max, .. }) => AttemptOutcome::Retry(time_max),
        }
    }

    /// Drops the cause of the attempt's end, if nobody has taken it: it has users' errors, and perhaps a pin, which is this thread's.
    #[cold]
    fn forget_stop(&mut self) {
        let stop = self.attempt.stop.take();
        contained(|| drop(stop));
    }

    #[cold]
    fn after_cleanup(&mut self) {
        if !self.attempt.hears(Moments::ALONE) {
            self.protocol.after_cleanup(self.attempt);
        }
    }

    #[cold]
    #[inline(never)]
    fn roll_back(&mut self, panics: &mut Panics) {
        label("abort");
        self.open = false;
        P::rolling_back(self);
        self.attempt.undo();
        if !self.attempt.hears(Moments::ALONE) {
            self.protocol.abort(self.attempt);
        }
        profile::release_all();
        P::rolled_back(self);
        if !matches!(self.attempt.stop, Some(Stop::Lost(_) | Stop::Misuse(_) | Stop::Retry { .. })) {
            self.slot.counters.rollback();
        }
        self.attempt.cleanup(false, panics);
        self.after_cleanup();
        self.close(false, panics);
    }
}

impl<P: Protocol> Drop for ObjectAccess<'_, P> {
    /// Rolls back an attempt that was neither committed nor given up, because of a panic.
    #[inline]
    fn drop(&mut self) {
        if self.open {
            Panics::passing_on(|panics| {
                self.roll_back(panics);
                self.forget_stop();
                self.attempt.end_dropped();
            });
            return;
        }
        self.forget_stop();
        if self.attempt.is_open() {
            // A panic cut the end short. The pin must not outlive the transaction, because the worker may be sent to
            // another thread.
            P::refused(self.attempt);
            self.after_cleanup();
            self.attempt.close(&mut Panics::default());
            profile::attempt_ends(false);
        }
    }
}

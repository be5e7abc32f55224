//! The end of an attempt: the two halves of its commit, or its rollback.

use super::{AttemptOutcome, ObjectAccess, Stop};
use crate::features::conflicts::Reports;
use crate::features::durability::NotDurable;
use crate::features::history::Ended;
use crate::kernel::abort::Misuse;
use crate::kernel::attempt::Attempt;
use crate::kernel::commit::{NotLogged, Prepared};
use crate::kernel::counter::Counter;
use crate::kernel::protocol::Protocol;
use crate::memory::users_code::Panics;
use hotrow_sync::profile;
use hotrow_sync::thread::label;
use hotrow_sync::work::{Work, charge};

impl<P: Protocol> ObjectAccess<'_, P> {
    /// Tries to commit, and rolls back if it cannot.
    pub(crate) fn commit(mut self) -> AttemptOutcome {
        if !self.commit_until_closed() {
            return self.give_up_passing_on();
        }
        self.close_committed(|_| ());
        self.attempt.acknowledge()
    }

    /// Takes a result from an attempt that has committed, and closes it.
    #[inline(always)]
    pub(crate) fn close_committed<R>(&mut self, take: impl FnOnce(&mut Attempt<P>) -> R) -> R {
        let taken = take(self.attempt);
        // An attempt that watches counts as a watcher itself.
        let told = self.attempt.wakes.then(|| self.choose_after_commit());
        self.attempt.close(&mut Panics::default());
        drop(told);
        profile::attempt_ends(true);
        label("between attempts");
        taken
    }

    /// Runs all steps of the commit but the last one, [`close_committed`](Self::close_committed). False if the attempt
    /// cannot commit; then nothing has been installed, and the caller [gives up](Self::give_up_passing_on). It must not
    /// run users' code before, because locks are held until then.
    ///
    /// After the protocol has committed, all panics are contained: a panic would make the caller think that nothing has
    /// happened.
    #[inline]
    pub(crate) fn commit_until_closed(&mut self) -> bool {
        if self.is_told() && self.stop.is_none() {
            let _ = self.heed();
        }
        if self.is_scout() {
            self.end_scout();
        }
        if self.stop.is_none() {
            label("commit");
            profile::leave_objects();
            charge(Work::Commit);
            if self.attempt.can_defer() && self.attempt.intentions.are_waiting() {
                self.commit_deferred();
            }
            // A failure stops the attempt.
            let _ = self.run_graph();
            if self.attempt.is_half_changed && self.stop.is_none() {
                let _ = self.misuse(Misuse::CaughtError);
            }
            if self.attempt.wants_check {
                self.check_writes();
            }
        }
        if self.is_on_snapshot() {
            return self.end_on_snapshot();
        }
        if self.stop.is_none() && self.prepare() && self.settle_changes() && self.between_halves() {
            // From here on nothing is rolled back: installed writes must not be undone as well.
            self.open = false;
            let is_watched = self.waiting().has_watchers();
            if self.slot.origins.is_on() {
                let reports = P::Reports::of(self.protocol);
                let number = reports.map_or(0, |reports| reports.commit_number(self.attempt));
                self.slot.activity.commits(number);
            }
            self.protocol.finish(Prepared::new(self.attempt));
            self.attempt.wakes = is_watched || P::READS_PASS_PREPARED && self.waiting().has_watchers_now();
            profile::release_all();
            debug_assert!(self.attempt.is_installed(), "the second half installs every write");
            self.attempt.end_stamped(true);
            label("after commit");
            if self.attempt.is_recorded() {
                self.attempt.record_end(Ended::Committed);
            }
            match self.attempt.piece {
                piece if P::ALLOWS_CHOPPING && piece.goes_on() => {
                    self.counters().count(const { Counter::PIECES.place::<P>() });
                }
                // Counted when it has ended.
                _ if P::ALLOWS_CHOPPING && self.attempt.ends_later => {}
                _ => self.slot.counters.commit(),
            }
            self.count_tame_commit();
            // Panics are contained from here on.
            self.attempt.cleanup(true, &mut Panics::default());
            self.protocol.after_cleanup(self.attempt);
            return true;
        }
        false
    }

    /// Runs the steps between the halves. False if the attempt cannot commit.
    #[inline(always)]
    fn between_halves(&mut self) -> bool {
        match self.attempt.between_halves() {
            Ok(()) => true,
            Err(cause) => {
                let _ = self.stop(match cause {
                    NotLogged::Object(misuse) => Stop::Misuse(misuse),
                    NotLogged::Record(reason) => Stop::Refused(reason),
                });
                false
            }
        }
    }

    /// Ends a transaction that has read on a snapshot: there is nothing to validate, and nothing to install.
    #[cold]
    #[inline(never)]
    fn end_on_snapshot(&mut self) -> bool {
        if self.stop.is_some() {
            return false;
        }
        self.open = false;
        if self.attempt.is_recorded() {
            self.attempt.record_end(Ended::Committed);
        }
        self.slot.counters.commit();
        self.attempt.cleanup(true, &mut Panics::default());
        true
    }

    /// Lets objects check all pending writes, which are final. A violation or a panic stops the attempt.
    #[cold]
    #[inline(never)]
    fn check_writes(&mut self) {
        if self.stop.is_some() {
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
    pub(crate) fn give_up_passing_on(self) -> AttemptOutcome {
        Panics::passing_on(|panics| self.give_up(panics))
    }

    /// Runs the first half of the commit. False if the attempt has lost.
    #[inline(always)]
    fn prepare(&mut self) -> bool {
        if self.attempt.is_recorded() {
            self.attempt.name_writes();
        }
        if P::ALLOWS_CHOPPING && self.attempt.piece.goes_on() && !self.announce_piece() {
            return false;
        }
        match self.protocol.prepare(self.attempt) {
            Ok(()) => {
                self.is_valid = true;
                true
            }
            Err(lost) => {
                // Naming the key runs users' code, which no snapshot should wait for.
                self.attempt.end_stamped(false);
                let _ = self.lose(lost);
                false
            }
        }
    }

    /// Rolls back because the body, or one of its deferred operations, does not want to commit. The rollback counts
    /// only if the attempt has seen one consistent state (drp §5.2 has the certification as an input of all
    /// intentions). Otherwise the attempt has lost, and another one follows. One that the log has refused was prepared.
    #[cold]
    pub(crate) fn give_up(mut self, panics: &mut Panics) -> AttemptOutcome {
        // After the first half of a commit it is known.
        if !P::OPAQUE
            && !self.is_valid
            && !self.is_on_snapshot()
            && !matches!(self.stop, Some(Stop::Lost(_) | Stop::Told(_) | Stop::Refused(_)))
        {
            self.validate_before_rollback();
        }
        self.cancel(panics)
    }

    fn validate_before_rollback(&mut self) {
        // From here on it may wait for locks again.
        self.attempt.graph.nonblocking = false;
        self.attempt.graph.has_blocked = false;
        if self.is_scout() {
            self.stop = None;
            self.end_scout();
        } else if let Err(lost) = self.protocol.validate_before_rollback(self.attempt) {
            self.stop = None;
            let _ = self.lose(lost);
        }
    }

    /// Rolls back without validating the attempt's reads. Everything is released, even if a panic occurs meanwhile.
    pub(crate) fn cancel(mut self, panics: &mut Panics) -> AttemptOutcome {
        self.roll_back(panics);
        match self.stop.take() {
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

    #[cold]
    fn after_cleanup(&mut self) {
        if !self.is_on_snapshot() {
            self.protocol.after_cleanup(self.attempt);
        }
    }

    #[cold]
    fn roll_back(&mut self, panics: &mut Panics) {
        label("abort");
        self.open = false;
        let waits = matches!(self.stop, Some(Stop::Retry { .. })) && self.is_watching();
        if waits {
            self.show_what_it_has_seen();
        }
        self.attempt.undo();
        if !self.is_on_snapshot() {
            self.protocol.abort(self.attempt);
        }
        profile::release_all();
        self.attempt.end_stamped(false);
        if self.attempt.is_recorded() {
            self.attempt.record_end(match &self.stop {
                Some(Stop::Lost(loss)) => Ended::Aborted(loss.reason),
                _ => Ended::RolledBack,
            });
        }
        if !matches!(self.stop, Some(Stop::Lost(_) | Stop::Misuse(_) | Stop::Retry { .. })) {
            self.slot.counters.rollback();
        }
        self.attempt.cleanup(false, panics);
        self.after_cleanup();
        let tells = waits || !self.attempt.changed_nodes.is_empty();
        let told = tells.then(|| self.choose_after_rollback(waits));
        self.attempt.close(panics);
        drop(told);
        profile::attempt_ends(false);
        label("between attempts");
    }
}

impl<P: Protocol> Drop for ObjectAccess<'_, P> {
    /// Rolls back an attempt that was neither committed nor given up, because of a panic.
    #[inline]
    fn drop(&mut self) {
        if self.open {
            Panics::passing_on(|panics| self.roll_back(panics));
            self.end_dropped();
        } else if self.attempt.is_open() {
            // A panic cut the end short. The pin must not outlive the transaction, because the worker may be sent to
            // another thread.
            self.attempt.end_stamped(false);
            self.after_cleanup();
            self.attempt.close(&mut Panics::default());
            profile::attempt_ends(false);
        }
    }
}

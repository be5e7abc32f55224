//! Running intentions: before the commit if an operation depends on them, or at their turns.

use super::intention::{Intention, Intentions};
use crate::features::deferred::DeferralAccess;
use crate::kernel::abort::{Abort, Reason};
use crate::kernel::capabilities::Deferral as _;
use crate::kernel::item::{Flags, ItemId};
use crate::kernel::object_access::ObjectAccess;
use crate::kernel::protocol::{ConflictCause, Protocol};
use crate::kernel::transaction::Transaction;
use crate::memory::identity::ObjectMeta;
use crate::memory::thread_mark;
use crate::memory::users_code::panic_message;
use hotrow_sync::profile;
use hotrow_sync::region;
use hotrow_sync::thread::label;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::NonNull;

/// The progress of a transaction's deferred operations.
#[derive(Debug)]
pub(crate) struct Execution {
    pub(super) phase: Phase,
    /// The item of the intention that ran last.
    pub(super) latest: ItemId,
    /// The item of the intention that is running, if it has one.
    pub(crate) running: Option<ItemId>,
    /// The place of the last intention that ran among the attempt's.
    pub(super) running_place: u32,
    /// True if the transaction has read a segment, and so other transactions' writes.
    has_read: bool,
    /// True if its commit has begun with deferred operations and no reads.
    pub(crate) is_tame: bool,
}

/// The caller of operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// The body.
    Body,
    /// An intention that runs early, as a part of the body.
    Settling,
    /// An intention, at its segment's turn.
    CarryingOut,
}

impl Execution {
    #[inline(always)]
    pub(crate) fn new() -> Self {
        let (phase, latest) = (Phase::Body, ItemId::FIRST);
        Self { phase, latest, running: None, running_place: 0, has_read: false, is_tame: false }
    }

    /// The item of the intention that ran last, while intentions run.
    #[inline(always)]
    pub(crate) fn latest(&self) -> Option<ItemId> {
        (self.phase != Phase::Body).then_some(self.latest)
    }

    /// Notes that a segment was read. An intention that reads its own segment at its turn does not count.
    #[inline(always)]
    pub(crate) fn note_read(&mut self, id: ItemId) {
        if !(self.phase == Phase::CarryingOut && self.running == Some(id)) {
            self.has_read = true;
        }
    }
}

impl<P: Protocol> Transaction<'_, P> {
    /// True if deferred operations wait for the commit. Otherwise they run at once.
    #[inline]
    pub fn defers(&self) -> bool {
        let Self(access) = self;
        access.attempt.can_defer()
            && !access.attempt.features.operations.run_at_once
            && access.attempt.features.execution.phase != Phase::Settling
    }
}

impl<P: Protocol> ObjectAccess<'_, P> {
    /// Handles an operation on a segment whose intentions have not run. The body runs them first. An intention at its
    /// turn ends the attempt, because its place among them would depend on the order of turns.
    #[cold]
    pub(crate) fn settle_segment(&mut self, id: ItemId) -> Result<(), Abort> {
        match self.attempt.features.execution.phase {
            Phase::Body => self.deferral_mut().settle(),
            Phase::Settling => Ok(()),
            Phase::CarryingOut => Err(self.lose(ConflictCause::item(Reason::Undeclared, id))),
        }
    }

    #[cold]
    #[inline(never)]
    pub(in crate::features) fn settle_now(&mut self) -> Result<(), Abort> {
        if self.is_stopped() {
            return Err(Abort::INTERNAL);
        }
        self.attempt.features.execution.phase = Phase::Settling;
        let mut settled = 0;
        let mut found = 0;
        let result = self.catching(|tx| {
            while let Some(intention) = tx.attempt.features.intentions.waiting.get(settled).copied() {
                // A late operation finds its segment only now, in its place, and is done at once.
                while let Some(late) = tx.attempt.features.intentions.late.get(found).copied()
                    && late.intention.order < intention.order
                {
                    found += 1;
                    tx.run_one(&late.intention)?;
                }
                settled += 1;
                tx.run_one(&intention)?;
            }
            Ok(())
        });
        // If an intention has swapped its transaction for another one, the lists here are other ones.
        let Intentions { waiting, late, .. } = &mut self.attempt.features.intentions;
        waiting.drain(..settled.min(waiting.len()));
        late.drain(..found.min(late.len()));
        self.attempt.features.execution.phase = Phase::Body;
        self.attempt.features.execution.running = None;
        self.attempt.features.intentions.leave_structures();
        result
    }

    /// The place of the running operation in the attempt's program: places ascend in the program, and an intention has
    /// the place at which it was deferred.
    pub(crate) fn place(&self) -> u32 {
        match self.attempt.features.execution.phase {
            Phase::Settling | Phase::CarryingOut => self.attempt.features.execution.running_place,
            Phase::Body => self.attempt.features.operations.results.count(),
        }
    }

    #[inline]
    pub(super) fn run_one(&mut self, intention: &Intention<P>) -> Result<(), Abort> {
        self.attempt.features.execution.running = intention.item;
        self.attempt.features.execution.running_place = intention.order;
        if let Some(id) = intention.item {
            self.attempt.features.execution.latest = id;
        }
        let results = self.attempt.features.operations.results.shared();
        // SAFETY: the attempt is in progress, and it is the only user of its operations. The results are its own.
        unsafe { intention.operation.run(results, self) }?;
        self.attempt.features.operations.results.learn(intention.operation.slot);
        if let Some(id) = intention.item {
            self.attempt.items.get_mut(id).intentions -= 1;
        }
        Ok(())
    }

    /// Lines up and runs the deferred operations. A failure stops the attempt.
    pub(crate) fn commit_deferred(&mut self) {
        let is_tame = |tx: &Self| {
            !(tx.attempt.features.execution.has_read
                || tx.attempt.has_structures()
                || tx.attempt.items.has_predicates())
        };
        self.attempt.features.execution.is_tame = is_tame(self);
        let lined_up = self.line_up();
        // A key that was looked up meanwhile may have been absent.
        self.attempt.features.execution.is_tame &= is_tame(self);
        label("intentions");
        let _ = lined_up.and_then(|()| self.carry_out());
    }

    /// Runs all deferred intentions, each when its segment's turn has come. Called after the protocol has lined up.
    pub(crate) fn carry_out(&mut self) -> Result<(), Abort> {
        self.attempt.features.execution.phase = Phase::CarryingOut;
        self.catching(|tx| {
            let waiting = std::mem::take(&mut tx.attempt.features.intentions.waiting);
            let result = tx.carry_out_all(&waiting);
            // The list keeps its memory, but is emptied: intentions that have not run never will.
            tx.attempt.features.intentions.waiting = waiting;
            tx.attempt.features.intentions.waiting.clear();
            result
        })
    }

    fn carry_out_all(&mut self, waiting: &[Intention<P>]) -> Result<(), Abort> {
        // First those that need no wait, so that they run while others are waited for.
        self.try_all(waiting, false, |_| false)?;
        if self.attempt.features.intentions.held_back.is_empty() {
            return Ok(());
        }
        let held_back = std::mem::take(&mut self.attempt.features.intentions.held_back);
        for at in &held_back {
            let intention = &waiting[*at as usize];
            if let Some(id) = intention.item {
                self.await_turn(id, true)?;
            }
            self.run_at_turn(intention)?;
        }
        // The list keeps its memory.
        self.attempt.features.intentions.held_back = held_back;
        Ok(())
    }

    /// Runs the intentions that can run, in their order, until `enough`; waits for turns if `wait`. Notes the others in
    /// `held_back`. True if any has run.
    #[inline]
    pub(super) fn try_all(
        &mut self,
        waiting: &[Intention<P>],
        wait: bool,
        enough: impl Fn(&Self) -> bool,
    ) -> Result<bool, Abort> {
        debug_assert!(waiting.is_sorted_by_key(|intention| intention.order));
        self.attempt.features.intentions.held_back.clear();
        let mut has_run = false;
        for (at, intention) in waiting.iter().enumerate() {
            if self.attempt.features.operations.results.is_known(intention.operation.slot) {
                continue;
            }
            if self.try_one(intention, waiting, wait)? {
                has_run = true;
            } else {
                self.attempt.features.intentions.held_back.push(at as u32);
            }
            if enough(self) {
                break;
            }
        }
        Ok(has_run)
    }

    /// Runs an intention if its inputs are known, all earlier ones on its key have run, and its turn has come; waits
    /// for the turn if `wait`.
    #[inline]
    fn try_one(
        &mut self,
        intention: &Intention<P>,
        waiting: &[Intention<P>],
        wait: bool,
    ) -> Result<bool, Abort> {
        let ready = intention.was_ready || self.is_ready(intention);
        if let Some(id) = intention.item {
            let is_held_back = !ready
                || self.attempt.items.get(id).is(Flags::HELD_BACK)
                || self.must_follow(intention, waiting)
                || !self.await_turn(id, wait)?;
            if is_held_back {
                self.attempt.items.get_mut(id).mark_as(Flags::HELD_BACK);
                return Ok(false);
            }
        } else if !ready || self.must_follow(intention, waiting) {
            return Ok(false);
        }
        self.run_at_turn(intention)?;
        Ok(true)
    }

    /// Clears the marks of segments held back, so that their intentions are tried again.
    pub(super) fn release_held_back(&mut self, waiting: &[Intention<P>]) {
        for id in waiting.iter().filter_map(|intention| intention.item) {
            self.attempt.items.get_mut(id).unmark(Flags::HELD_BACK);
        }
    }

    #[inline]
    fn run_at_turn(&mut self, intention: &Intention<P>) -> Result<(), Abort> {
        self.run_one(intention)?;
        profile::leave_objects();
        if let Some(id) = intention.item
            && self.attempt.items.get(id).intentions == 0
            && let Some(deferral) = P::Deferral::of(self.protocol)
        {
            deferral.segment_done(self.attempt, id);
        }
        Ok(())
    }

    #[inline]
    fn await_turn(&mut self, id: ItemId, wait: bool) -> Result<bool, Abort> {
        let Some(deferral) = P::Deferral::of(self.protocol) else { return Ok(true) };
        match deferral.acquire_in_order(self.attempt, id, wait) {
            Ok(turn) => Ok(turn),
            Err(lost) => Err(self.lose(lost)),
        }
    }

    /// Runs work, and ends the transaction if an intention panics or asks for a rollback.
    pub(crate) fn catching<R>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<R, Abort>,
    ) -> Result<R, Abort> {
        let (mut work, mut result) = (Some(work), None);
        self.catching_all(&mut |tx| {
            result = Some(work.take().expect("called once")(tx)?);
            Ok(())
        })?;
        Ok(result.expect("work that succeeds has a result"))
    }

    /// Is compiled once for all results.
    fn catching_all(&mut self, work: &mut dyn FnMut(&mut Self) -> Result<(), Abort>) -> Result<(), Abort> {
        // An error of an intention's is not one that the body may catch.
        let noted = thread_mark::is_rolling_back();
        let result = catch_unwind(AssertUnwindSafe(|| work(self)));
        thread_mark::set_rollback(noted);
        match result {
            // An error that has not stopped the attempt is a rollback, or left over from another one.
            Ok(Err(error)) if !(self.is_stopped() || self.attempt.features.graph.has_blocked) => {
                let reason = if error.is_rollback() { error } else { Abort::rollback() };
                thread_mark::set_rollback(noted);
                Err(self.roll_back_later(reason))
            }
            Ok(result) => result,
            Err(panic) if region::leaves(&*panic) => resume_unwind(panic),
            Err(panic) => Err(self.panicked(panic_message(panic))),
        }
    }
}

impl<P: Protocol> DeferralAccess<'_, P> {
    /// Runs all intentions that have been deferred and have not run yet. A datatype calls it before an operation that
    /// could see their effect.
    ///
    /// # Errors
    ///
    /// As [`compute`](crate::Transaction::compute).
    #[inline]
    pub fn settle(&mut self) -> Result<(), Abort> {
        if !self.attempt.can_defer()
            || self.attempt.features.execution.phase != Phase::Body
            || !self.attempt.features.intentions.are_waiting()
        {
            return Ok(());
        }
        self.settle_now()
    }

    /// As [`settle`](Self::settle), if an intention will add to the index of this object or remove from it. A datatype
    /// calls this before it defers an operation on the object.
    ///
    /// # Errors
    ///
    /// As [`compute`](crate::Transaction::compute).
    #[inline]
    pub fn settle_structure(&mut self, meta: &ObjectMeta) -> Result<(), Abort> {
        if self.attempt.can_defer() && self.attempt.features.intentions.restructured.contains(&meta.number())
        {
            self.settle()
        } else {
            Ok(())
        }
    }

    /// As [`settle_structure`](Self::settle_structure), and also if an intention will touch segments of this object
    /// that are not known yet. An operation that is not deferred calls this first.
    ///
    /// # Errors
    ///
    /// As [`compute`](crate::Transaction::compute).
    #[inline(always)]
    pub fn settle_object(&mut self, meta: &ObjectMeta) -> Result<(), Abort> {
        let is_named = |numbers: &[u32]| numbers.contains(&meta.number());
        let intentions = &self.attempt.features.intentions;
        if self.attempt.can_defer() && (is_named(&intentions.restructured) || is_named(&intentions.unsettled))
        {
            self.settle()
        } else {
            Ok(())
        }
    }

    /// True if an intention runs at its segment's turn.
    #[inline]
    pub fn is_at_turn(&self) -> bool {
        self.attempt.can_defer() && self.attempt.features.execution.phase == Phase::CarryingOut
    }

    /// True if the attempt's turn to change a segment has come, for an intention that changes it.
    pub fn is_at_turn_of(&self, segment: NonNull<P::Header>) -> bool {
        self.is_at_turn()
            && self.attempt.items.find(segment).is_some_and(|id| {
                let item = self.attempt.items.get(id);
                item.is(Flags::LOCKED) && item.is(Flags::DEFERRED_WRITE)
            })
    }

    /// True if the attempt has deferred an operation on a segment.
    pub fn has_deferred(&self, segment: NonNull<P::Header>) -> bool {
        self.attempt.can_defer()
            && self.attempt.items.find(segment).is_some_and(|id| self.attempt.items.get(id).intentions > 0)
    }

    /// Notes that an intention deferred now may add to the index of this object or remove from it: see
    /// [`settle_structure`](Self::settle_structure).
    pub fn will_change_structure(&mut self, meta: &ObjectMeta) {
        if self.defers() && !self.attempt.features.intentions.restructured.contains(&meta.number()) {
            self.attempt.features.intentions.restructured.push(meta.number());
        }
    }

    /// Notes that an intention deferred now may remove from an index.
    pub fn will_remove(&mut self) {
        self.attempt.features.intentions.removes = true;
    }
}

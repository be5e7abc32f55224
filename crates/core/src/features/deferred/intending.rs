//! Making intentions: a transaction announces its operations.

use super::intention::{Intention, NO_OBJECT};
use super::running::Phase;
use crate::features::deferred::DeferralAccess;
use crate::features::operations::{Deferred, Input, Once, Operation};
use crate::features::state::State;
use crate::kernel::abort::{Abort, Misuse, Reason};
use crate::kernel::capabilities::Access;
use crate::kernel::capabilities::Deferral as _;
use crate::kernel::engine::Engine;
use crate::kernel::item::{Flags, ItemId};
use crate::kernel::object::Object;
use crate::kernel::object_access::ObjectAccess;
use crate::kernel::protocol::{ConflictCause, Protocol};
use crate::kernel::transaction::Transaction;
use hotrow_sync::prefetch::prefetch;
use std::ptr::NonNull;

impl<P: Protocol> Transaction<'_, P> {
    /// Computes a value from others, when they are known.
    ///
    /// # Errors
    ///
    /// [`Abort`] when the attempt cannot go on; pass it up with `?`.
    #[inline]
    pub fn compute<I: Input, O: 'static>(
        &mut self,
        inputs: I,
        compute: impl FnOnce(I::Value) -> O + 'static,
    ) -> Result<Deferred<O>, Abort> {
        self.0.add_intention(None, inputs, move |_, values| Ok(compute(values)))
    }

    /// Rolls back unless the condition holds. It is tested before the transaction has any effect.
    ///
    /// # Errors
    ///
    /// As [`compute`](Self::compute), and a rollback if the condition is known not to hold.
    pub fn require<I: Input<Value = bool>>(&mut self, condition: I) -> Result<(), Abort> {
        let test = |holds| if holds { Ok(()) } else { Err(Abort::rollback()) };
        self.0.add_intention(None, condition, move |_, holds| test(holds))?;
        Ok(())
    }
}

impl<P: Protocol> ObjectAccess<'_, P> {
    /// Defers work on a segment, or runs it at once if the protocol defers nothing.
    ///
    /// The work does the same as the operation that is not deferred. It touches no other segment than this one and
    /// those that the attempt makes; otherwise the attempt starts over, and the next one defers nothing.
    ///
    /// # Errors
    ///
    /// As [`compute`](Transaction::compute).
    ///
    /// # Safety
    ///
    /// As for [`read`](Self::read). All that the work relies on (the object, the segment) stays in memory until the
    /// attempt ends.
    #[inline]
    pub unsafe fn defer<Obj: Object<P> + 'static, I: Input, O: 'static>(
        &mut self,
        object: &Obj,
        segment: NonNull<P::Header>,
        access: Access,
        inputs: I,
        work: impl FnOnce(&mut ObjectAccess<'_, P>, I::Value) -> Result<O, Abort> + 'static,
    ) -> Result<Deferred<O>, Abort> {
        if !self.defers() {
            return self.add_intention(None, inputs, work);
        }
        if access == Access::Write {
            self.may_write(object.meta())?;
        }
        // SAFETY: the caller's promise.
        let id = unsafe { self.item(object, segment) };
        let item = self.attempt.items.get_mut(id);
        let first = !item.is(Flags::DEFERRED);
        item.mark_as(Flags::DEFERRED);
        if access == Access::Write {
            item.mark_as(Flags::DEFERRED_WRITE);
        }
        item.intentions += 1;
        if first || self.attempt.features.intentions.resolving.is_some() {
            // SAFETY: the caller's promise. The object's type is known here: no virtual call.
            let rank = unsafe { object.rank(segment) };
            if self.comes_too_late(rank) {
                return Err(self.lose(ConflictCause::item(Reason::Undeclared, id)));
            }
            if first {
                // The segment is not read before the commit, which will read all of them one after the other.
                prefetch(segment.as_ptr());
                if let Some(deferral) = P::Deferral::of(self.protocol) {
                    deferral.deferred(self.attempt, id, rank);
                }
            }
        }
        self.add_intention(Some(id), inputs, work)
    }

    #[inline]
    fn add_intention<I: Input, O: 'static, W>(
        &mut self,
        item: Option<ItemId>,
        inputs: I,
        work: W,
    ) -> Result<Deferred<O>, Abort>
    where
        W: FnOnce(&mut ObjectAccess<'_, P>, I::Value) -> Result<O, Abort> + 'static,
    {
        let (operation, deferred) = self.operation(inputs, Once(work))?;
        self.add(self.intention(item, operation))?;
        Ok(deferred)
    }

    /// Keeps an intention until the commit, or runs it at once. Knows nothing of its work, so that it is compiled once.
    pub(in crate::features) fn add(&mut self, intention: Intention<P>) -> Result<(), Abort> {
        if !self.defers() {
            return self.catching(|tx| tx.run_one(&intention));
        }
        if self.is_carrying_out() {
            return self.run_inside(&intention);
        }
        self.attempt.features.intentions.waiting.push(intention);
        Ok(())
    }

    /// True if an intention runs that may not defer others, because the attempt has lined up for everything deferred.
    #[inline(always)]
    pub(super) fn is_carrying_out(&self) -> bool {
        self.attempt.features.execution.phase == Phase::CarryingOut
            && self.attempt.features.intentions.resolving.is_none()
    }

    /// Runs an operation that an intention has deferred, at once, as a part of that intention.
    #[cold]
    fn run_inside(&mut self, intention: &Intention<P>) -> Result<(), Abort> {
        if intention.item.is_some() || !intention.was_ready {
            return Err(self.start_over(intention.item));
        }
        let (latest, running) =
            (self.attempt.features.execution.latest, self.attempt.features.execution.running);
        let result = self.run_one(intention);
        (self.attempt.features.execution.latest, self.attempt.features.execution.running) = (latest, running);
        result
    }

    /// Ends an attempt in which an intention has deferred an operation that cannot be a part of it. The next attempt
    /// defers nothing.
    #[cold]
    pub(crate) fn start_over(&mut self, item: Option<ItemId>) -> Abort {
        match item.or(self.attempt.features.execution.running).or_else(|| self.attempt.items.ids().next()) {
            Some(item) => self.lose(ConflictCause::item(Reason::Undeclared, item)),
            None => self.misuse(Misuse::UnknownInput),
        }
    }

    /// Makes an intention of an operation that was made just now; the caller adds or runs it.
    pub(in crate::features) fn intention(
        &self,
        item: Option<ItemId>,
        operation: Operation<P>,
    ) -> Intention<P> {
        // SAFETY: the attempt is in progress, and nobody else has the operation yet.
        let was_ready = unsafe { operation.is_ready(&self.attempt.features.operations.results) };
        let (order, finds_segment_of) = (self.place_of(&operation), NO_OBJECT);
        Intention { operation, item, order, was_ready, finds_segment_of }
    }

    /// Returns the place among the intentions of one that is made now.
    fn place_of(&self, operation: &Operation<P>) -> u32 {
        let State { intentions, execution, .. } = &self.attempt.features;
        match (execution.phase, &intentions.resolving) {
            // An intention that runs early, within another one, has that one's place.
            (Phase::Settling, _) => execution.running_place,
            (_, Some(late)) => late.intention.order,
            (_, None) => operation.slot,
        }
    }
}

impl<P: Protocol> DeferralAccess<'_, P> {
    /// Defers work that touches only segments which it makes, or runs it at once if the protocol defers nothing. See
    /// [`defer`](crate::ObjectAccess::defer).
    ///
    /// # Errors
    ///
    /// As [`compute`](Transaction::compute).
    #[inline]
    pub fn intend<I: Input, O: 'static>(
        &mut self,
        inputs: I,
        work: impl FnOnce(&mut ObjectAccess<'_, P>, I::Value) -> Result<O, Abort> + 'static,
    ) -> Result<Deferred<O>, Abort> {
        self.add_intention(None, inputs, work)
    }
}

impl<P: Protocol> Engine<P> {
    /// True if operations can be [deferred](Protocol::Deferral) under its protocol.
    #[inline]
    pub fn allows_deferral(&self) -> bool {
        P::Deferral::of(&self.shared.protocol).is_some()
    }
}

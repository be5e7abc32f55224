//! Recording intentions, and running them.

use super::intention::Intention;
use super::{Access, Deferred, Input};
use crate::abort::{Abort, Misuse, Reason};
use crate::item::{Flags, ItemId};
use crate::object::{Label, Object};
use crate::protocol::{Lost, Protocol};
use crate::transaction::{Phase, Transaction};
use hotrow_sync::prefetch::prefetch;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;

/// What an intention consists of: its work and inputs until it runs, its result afterwards.
struct Node<W, I, O> {
    todo: Option<(W, I)>,
    result: Option<O>,
}

impl<W, I: Input, O> Node<W, I, O> {
    /// # Safety
    ///
    /// `node` points to a node of this type.
    unsafe fn run<P: Protocol>(node: *mut u8, tx: &mut Transaction<'_, P>) -> Result<(), Abort>
    where
        W: FnOnce(&mut Transaction<'_, P>, I::Value) -> Result<O, Abort>,
    {
        let node = node.cast::<Self>();
        // SAFETY: the caller's promise. The references end before the work runs, which may look at other results
        // but at none of this node: it is not known yet.
        let (work, inputs) = unsafe { &mut *node }.todo.take().expect("an intention runs once");
        let value = inputs.get(&tx.attempt.intentions.results).expect("its inputs are known");
        let output = work(tx, value)?;
        // SAFETY: as above.
        unsafe { &mut *node }.result = Some(output);
        Ok(())
    }

    /// # Safety
    ///
    /// As for [`run`](Self::run).
    unsafe fn is_ready(node: *const u8, results: &super::Results) -> bool {
        // SAFETY: the caller's promise.
        let todo = unsafe { &(*node.cast::<Self>()).todo };
        todo.as_ref().is_some_and(|(_, inputs)| inputs.is_known(results))
    }
}

impl<P: Protocol> Transaction<'_, P> {
    /// A value known now, as a deferred one.
    pub fn known<T: 'static>(&mut self, value: T) -> Deferred<T> {
        let node = self.attempt.allocate(Some(value)).cast::<Option<T>>();
        let intentions = &mut self.attempt.intentions;
        // SAFETY: allocated just now, and nobody else drops it; it stays in place until the arena is reset, after
        // the results have been cleared.
        unsafe {
            intentions.drop_later(node);
            intentions.results.add(node, true)
        }
    }

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
        self.record(None, inputs, move |_, values| Ok(compute(values)))
    }

    /// As [`compute`](Self::compute). If the attempt cannot go on, the value will never be known, and its next
    /// operation says so.
    #[inline]
    pub fn compute_later<I: Input, O: 'static>(
        &mut self,
        inputs: I,
        compute: impl FnOnce(I::Value) -> O + 'static,
    ) -> Deferred<O> {
        match self.compute(inputs, compute) {
            Ok(deferred) => deferred,
            Err(_) => self.attempt.intentions.results.unknown(),
        }
    }

    /// Rolls back unless the condition holds, which is found out before anything of the transaction has happened.
    ///
    /// # Errors
    ///
    /// As [`compute`](Self::compute), and a rollback if the condition is known not to hold.
    pub fn require<I: Input<Value = bool>>(&mut self, condition: I) -> Result<(), Abort> {
        self.record(None, condition, |_, holds| if holds { Ok(()) } else { Err(Abort::rollback()) })?;
        Ok(())
    }

    /// A deferred value, now. Everything that has been recorded so far runs, and the attempt depends on what it
    /// reads (it is *wild*, drp §4).
    ///
    /// # Errors
    ///
    /// As [`compute`](Self::compute); [`Misuse::ForeignDeferred`] for a value of another attempt.
    pub fn force<T: Clone + 'static>(&mut self, deferred: Deferred<T>) -> Result<T, Abort> {
        if self.is_stopped() {
            return Err(Abort::INTERNAL);
        }
        self.own(deferred)?;
        if self.attempt.intentions.results.get(&deferred).is_none() {
            self.settle()?;
        }
        Ok(self.attempt.intentions.results.get(&deferred).expect("everything has run").clone())
    }

    /// What an intention would be given, if that is known.
    pub fn value_of<I: Input>(&self, input: &I) -> Option<I::Value> {
        input.get(&self.attempt.intentions.results)
    }

    /// Ends the attempt if a handle is not its own.
    pub(crate) fn own<T>(&mut self, deferred: Deferred<T>) -> Result<(), Abort> {
        if self.attempt.intentions.results.owns(&deferred) {
            Ok(())
        } else {
            Err(self.misuse(Misuse::ForeignDeferred))
        }
    }

    /// Runs what has been recorded and has not run yet. A datatype calls it before an operation that could see
    /// what such an intention will do.
    ///
    /// # Errors
    ///
    /// As [`compute`](Self::compute).
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn settle(&mut self) -> Result<(), Abort> {
        if !P::DEFERS || self.phase != Phase::Body || !self.attempt.intentions.are_waiting() {
            return Ok(());
        }
        self.settle_now()
    }

    /// As [`settle`](Self::settle), if an intention will add to the index of this object or take from it. Whoever
    /// defers an operation on it calls this first.
    ///
    /// # Errors
    ///
    /// As [`compute`](Self::compute).
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn settle_structure(&mut self, label: &Label) -> Result<(), Abort> {
        if P::DEFERS && self.attempt.intentions.restructured.contains(&label.number()) {
            self.settle()
        } else {
            Ok(())
        }
    }

    /// As [`settle_structure`](Self::settle_structure), and also if an intention will touch segments of this object that
    /// are not known yet. An operation that is not deferred calls this first.
    ///
    /// # Errors
    ///
    /// As [`compute`](Self::compute).
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn settle_object(&mut self, label: &Label) -> Result<(), Abort> {
        let is_named = |numbers: &[u32]| numbers.contains(&label.number());
        let intentions = &self.attempt.intentions;
        if P::DEFERS && (is_named(&intentions.restructured) || is_named(&intentions.unsettled)) {
            self.settle()
        } else {
            Ok(())
        }
    }

    #[cold]
    fn settle_now(&mut self) -> Result<(), Abort> {
        if self.is_stopped() {
            return Err(Abort::INTERNAL);
        }
        self.phase = Phase::Settling;
        let mut settled = 0;
        let mut found = 0;
        let result = self.catching(|tx| {
            while let Some(intention) = tx.attempt.intentions.waiting.get(settled).copied() {
                // What finds its segment only now does so in its place, and is done at once.
                while let Some(late) = tx.attempt.intentions.late.get(found).copied()
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
        self.attempt.intentions.waiting.drain(..settled);
        self.attempt.intentions.late.drain(..found);
        self.phase = Phase::Body;
        self.running = None;
        self.attempt.intentions.leave_structures();
        result
    }

    /// Records work on a segment, or does it at once if the protocol defers nothing.
    ///
    /// The work does what the operation that is not deferred does. It touches no other segment than this one and
    /// those that the attempt makes; if it must, it will be told to start over, and the next attempt defers nothing.
    ///
    /// # Errors
    ///
    /// As [`compute`](Self::compute).
    ///
    /// # Safety
    ///
    /// As for [`read`](Self::read). What the work relies on (the object, the segment) stays in memory until the
    /// attempt ends.
    #[inline]
    pub unsafe fn defer<Obj: Object<P> + 'static, I: Input, O: 'static>(
        &mut self,
        object: &Obj,
        segment: NonNull<P::Header>,
        access: Access,
        inputs: I,
        work: impl FnOnce(&mut Transaction<'_, P>, I::Value) -> Result<O, Abort> + 'static,
    ) -> Result<Deferred<O>, Abort> {
        if !self.defers() {
            return self.record(None, inputs, work);
        }
        if access == Access::Write {
            self.may_write(object.label())?;
        }
        // SAFETY: the caller's promise.
        let id = unsafe { self.item(object, segment) };
        let item = self.attempt.items.get_mut(id);
        let first = !item.is(Flags::DEFERRED);
        item.set(Flags::DEFERRED);
        if access == Access::Write {
            item.set(Flags::DEFERRED_WRITE);
        }
        item.intentions += 1;
        if first || self.attempt.intentions.resolving.is_some() {
            // SAFETY: the caller's promise. The object's type is known here: no virtual call.
            let rank = unsafe { object.rank(segment) };
            if self.comes_too_late(rank) {
                return Err(self.lose(Lost::item(Reason::Undeclared, id)));
            }
            if first {
                // Nothing looks at the segment before the commit, which will look at all of them one after the other.
                prefetch(segment.as_ptr());
                self.protocol.deferred(self.attempt, id, rank);
            }
        }
        self.record(Some(id), inputs, work)
    }

    /// Records work that touches only segments which it makes, or does it at once if the protocol defers nothing. See
    /// [`defer`](Self::defer).
    ///
    /// # Errors
    ///
    /// As [`compute`](Self::compute).
    #[inline]
    pub fn intend<I: Input, O: 'static>(
        &mut self,
        inputs: I,
        work: impl FnOnce(&mut Transaction<'_, P>, I::Value) -> Result<O, Abort> + 'static,
    ) -> Result<Deferred<O>, Abort> {
        self.record(None, inputs, work)
    }

    /// Whether what is deferred waits for the commit.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn defers(&self) -> bool {
        P::DEFERS && !self.attempt.runs_at_once && self.phase != Phase::Settling
    }

    /// Whether an intention runs at its segment's turn.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn is_at_turn(&self) -> bool {
        P::DEFERS && self.phase == Phase::CarryingOut
    }

    /// Whether the attempt's turn to change a segment has come, for an intention that does.
    pub fn is_at_turn_of(&self, segment: NonNull<P::Header>) -> bool {
        self.is_at_turn()
            && self.attempt.items.find(segment).is_some_and(|id| {
                let item = self.attempt.items.get(id);
                item.is(Flags::LOCKED) && item.is(Flags::DEFERRED_WRITE)
            })
    }

    /// Whether the attempt has deferred something on a segment.
    pub fn has_deferred(&self, segment: NonNull<P::Header>) -> bool {
        P::DEFERS
            && self.attempt.items.find(segment).is_some_and(|id| self.attempt.items.get(id).intentions > 0)
    }

    /// Says that an intention recorded now may add to the index of this object or take from it:
    /// [`settle_structure`](Self::settle_structure).
    pub fn will_change_structure(&mut self, label: &Label) {
        if self.defers() && !self.attempt.intentions.restructured.contains(&label.number()) {
            self.attempt.intentions.restructured.push(label.number());
        }
    }

    /// Says that an intention recorded now may take from an index.
    pub fn will_remove(&mut self) {
        self.attempt.intentions.removes = true;
    }

    #[inline]
    fn record<I: Input, O: 'static, W>(
        &mut self,
        item: Option<ItemId>,
        inputs: I,
        work: W,
    ) -> Result<Deferred<O>, Abort>
    where
        W: FnOnce(&mut Transaction<'_, P>, I::Value) -> Result<O, Abort> + 'static,
    {
        let (intention, deferred) = self.intention(item, inputs, work)?;
        if self.defers() {
            self.attempt.intentions.waiting.push(intention);
        } else {
            self.catching(|tx| tx.run_one(&intention))?;
        }
        Ok(deferred)
    }

    /// Makes an intention, which whoever calls this sees to.
    #[inline]
    pub(super) fn intention<I: Input, O: 'static, W>(
        &mut self,
        item: Option<ItemId>,
        inputs: I,
        work: W,
    ) -> Result<(Intention<P>, Deferred<O>), Abort>
    where
        W: FnOnce(&mut Transaction<'_, P>, I::Value) -> Result<O, Abort> + 'static,
    {
        if self.is_stopped() {
            return Err(Abort::INTERNAL);
        }
        if !inputs.belongs_to(&self.attempt.intentions.results) {
            return Err(self.misuse(Misuse::ForeignDeferred));
        }
        let was_ready = inputs.is_known(&self.attempt.intentions.results);
        let node = self.attempt.allocate(Node { todo: Some((work, inputs)), result: None::<O> });
        let (run, is_ready_at) = (Node::<W, I, O>::run::<P> as _, Node::<W, I, O>::is_ready as _);
        let intentions = &mut self.attempt.intentions;
        let typed = node.cast::<Node<W, I, O>>();
        // SAFETY: as in `known`; the result is `Some` once the intention has run.
        let deferred = unsafe {
            intentions.drop_later(typed);
            intentions.results.add(&raw const (*typed).result, false)
        };
        let slot = deferred.slot;
        let order = intentions.resolving.map_or(slot, |late| late.intention.order);
        let follows_late = false;
        Ok((Intention { node, run, is_ready_at, item, slot, order, was_ready, follows_late }, deferred))
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn run_one(&mut self, intention: &Intention<P>) -> Result<(), Abort> {
        self.running = intention.item;
        if let Some(id) = intention.item {
            self.latest = id;
        }
        // SAFETY: `record` made the node and the function for it; the arena is not reset while the attempt runs.
        unsafe { (intention.run)(intention.node, self) }?;
        self.attempt.intentions.results.learn(intention.slot);
        if let Some(id) = intention.item {
            self.attempt.items.get_mut(id).intentions -= 1;
        }
        Ok(())
    }

    /// Runs everything that was recorded, once each segment's turn has come. Called after the protocol has lined up.
    pub(crate) fn carry_out(&mut self) -> Result<(), Abort> {
        self.phase = Phase::CarryingOut;
        self.catching(|tx| {
            let waiting = std::mem::take(&mut tx.attempt.intentions.waiting);
            let result = tx.carry_out_all(&waiting);
            // The list keeps its memory, empty: what has not run will not.
            tx.attempt.intentions.waiting = waiting;
            tx.attempt.intentions.waiting.clear();
            result
        })
    }

    fn carry_out_all(&mut self, waiting: &[Intention<P>]) -> Result<(), Abort> {
        // First what can be done without waiting: it is then done while others are waited for.
        let mut held_back = 0;
        for intention in waiting {
            if !self.attempt.intentions.results.is_known(intention.slot) && !self.try_one(intention, false)? {
                held_back += 1;
            }
        }
        if held_back == 0 {
            return Ok(());
        }
        for intention in waiting {
            if self.attempt.intentions.results.is_known(intention.slot) {
                continue;
            }
            if let Some(id) = intention.item {
                self.await_turn(id, true)?;
            }
            self.run_at_turn(intention)?;
        }
        Ok(())
    }

    /// Runs an intention if its inputs are known, all earlier ones of its segment have run, and its turn has come, or
    /// comes.
    #[inline]
    pub(super) fn try_one(&mut self, intention: &Intention<P>, wait: bool) -> Result<bool, Abort> {
        let ready = intention.was_ready || intention.is_ready(&self.attempt.intentions.results);
        if let Some(id) = intention.item {
            // The intentions of a segment run in their order.
            let item = self.attempt.items.get(id);
            if !ready || item.is(Flags::HELD_BACK) || !self.await_turn(id, wait)? {
                self.attempt.items.get_mut(id).set(Flags::HELD_BACK);
                return Ok(false);
            }
        } else if !ready {
            return Ok(false);
        }
        self.run_at_turn(intention)?;
        Ok(true)
    }

    /// Lets those that were held back be tried again.
    pub(super) fn release_held_back(&mut self, waiting: &[Intention<P>]) {
        for id in waiting.iter().filter_map(|intention| intention.item) {
            self.attempt.items.get_mut(id).clear(Flags::HELD_BACK);
        }
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn run_at_turn(&mut self, intention: &Intention<P>) -> Result<(), Abort> {
        self.run_one(intention)?;
        if let Some(id) = intention.item
            && self.attempt.items.get(id).intentions == 0
        {
            self.protocol.ran(self.attempt, id);
        }
        Ok(())
    }

    #[inline]
    fn await_turn(&mut self, id: ItemId, wait: bool) -> Result<bool, Abort> {
        match self.protocol.turn(self.attempt, id, wait) {
            Ok(turn) => Ok(turn),
            Err(lost) => Err(self.lose(lost)),
        }
    }

    /// Turns a panic in an intention into the end of the transaction, and an intention's wish to roll back, too.
    pub(super) fn catching<R>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<R, Abort>,
    ) -> Result<R, Abort> {
        match catch_unwind(AssertUnwindSafe(|| work(self))) {
            Ok(Err(abort)) if abort == Abort::rollback() => Err(self.roll_back_later()),
            Ok(result) => result,
            Err(panic) => Err(self.panicked(words(&*panic))),
        }
    }
}

/// What a panic said.
fn words(panic: &(dyn Any + Send)) -> String {
    if let Some(words) = panic.downcast_ref::<&str>() {
        (*words).to_owned()
    } else if let Some(words) = panic.downcast_ref::<String>() {
        words.clone()
    } else {
        String::from("something that is no text")
    }
}

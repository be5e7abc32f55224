//! Recording intentions: a transaction announces its operations.

use super::intention::{Intention, NO_OBJECT, NodeFunctions};
use super::running::Phase;
use super::{Access, Deferred, Input};
use crate::abort::{Abort, Misuse, Reason};
use crate::deferred::Deferral as _;
use crate::item::{Flags, ItemId};
use crate::object::Object;
use crate::protocol::{ConflictCause, Protocol};
use crate::transaction::Transaction;
use hotrow_sync::prefetch::prefetch;
use std::marker::PhantomData;
use std::ptr::NonNull;

/// An intention's node: its work and inputs until it runs, its result afterwards.
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
        // SAFETY: the caller's promise. The references end before the work runs. The work may look at other results,
        // but not at this node's, which is not known yet.
        let (work, inputs) = unsafe { &mut *node }.todo.take().expect("an intention runs once");
        let Some(value) = inputs.get(&tx.attempt.intentions.results) else {
            return Err(tx.misuse(Misuse::UnknownInput));
        };
        let attempt = &raw const *tx.attempt;
        let output = work(tx, value)?;
        if attempt != &raw const *tx.attempt {
            // `tx` is another transaction now, because the work has swapped the two (`std::mem::swap`). The attempt
            // that the node belongs to may be over, and the node gone.
            return Err(tx.misuse(Misuse::Nested));
        }
        // SAFETY: as above; the attempt goes on.
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

    /// # Safety
    ///
    /// As for [`run`](Self::run).
    unsafe fn key_hash(node: *const u8, results: &super::Results) -> Option<u64> {
        // SAFETY: the caller's promise.
        let todo = unsafe { &(*node.cast::<Self>()).todo };
        todo.as_ref().and_then(|(_, inputs)| inputs.key_hash(results))
    }
}

/// The functions of one type of node.
struct FunctionsOf<W, I, O, P>(PhantomData<(W, I, O, P)>);

impl<W, I: Input, O, P: Protocol> FunctionsOf<W, I, O, P>
where
    W: FnOnce(&mut Transaction<'_, P>, I::Value) -> Result<O, Abort>,
{
    const FUNCTIONS: &'static NodeFunctions<P> = &NodeFunctions {
        run: Node::<W, I, O>::run::<P>,
        is_ready: Node::<W, I, O>::is_ready,
        key_hash: Node::<W, I, O>::key_hash,
    };
}

impl<P: Protocol> Transaction<'_, P> {
    /// Makes a deferred value of one that is known now.
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

    /// As [`compute`](Self::compute). If the attempt cannot go on, the value is never known, and the attempt's next
    /// operation fails.
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

    /// Rolls back unless the condition holds. It is tested before the transaction has any effect.
    ///
    /// # Errors
    ///
    /// As [`compute`](Self::compute), and a rollback if the condition is known not to hold.
    pub fn require<I: Input<Value = bool>>(&mut self, condition: I) -> Result<(), Abort> {
        self.record(None, condition, |_, holds| if holds { Ok(()) } else { Err(Abort::rollback()) })?;
        Ok(())
    }

    /// Returns a deferred value now. All operations that have been recorded or [enqueued](crate::graph) so far run, and
    /// the attempt depends on their reads (it is *wild*, drp §4).
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
            self.run_graph()?;
        }
        match self.attempt.intentions.results.get(&deferred) {
            Some(value) => Ok(value.clone()),
            // An intention has forced it that runs before the one whose result it is.
            None => Err(self.misuse(Misuse::UnknownInput)),
        }
    }

    /// Returns the value of an input, if it is known.
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

    /// Records work on a segment, or runs it at once if the protocol defers nothing.
    ///
    /// The work does the same as the operation that is not deferred. It touches no other segment than this one and
    /// those that the attempt makes; otherwise the attempt starts over, and the next one defers nothing.
    ///
    /// # Errors
    ///
    /// As [`compute`](Self::compute).
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
        work: impl FnOnce(&mut Transaction<'_, P>, I::Value) -> Result<O, Abort> + 'static,
    ) -> Result<Deferred<O>, Abort> {
        if !self.defers() {
            return self.record(None, inputs, work);
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
        if first || self.attempt.intentions.resolving.is_some() {
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
        self.record(Some(id), inputs, work)
    }

    /// Records work that touches only segments which it makes, or runs it at once if the protocol defers nothing. See
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
            if self.is_carrying_out() {
                self.run_inside(&intention)?;
            } else {
                self.attempt.intentions.waiting.push(intention);
            }
        } else {
            self.catching(|tx| tx.run_one(&intention))?;
        }
        Ok(deferred)
    }

    /// True if an intention runs that may not record others, because the attempt has lined up for everything recorded.
    #[inline(always)]
    pub(super) fn is_carrying_out(&self) -> bool {
        self.execution.phase == Phase::CarryingOut && self.attempt.intentions.resolving.is_none()
    }

    /// Runs an operation that an intention has recorded, at once, as a part of that intention.
    #[cold]
    fn run_inside(&mut self, intention: &Intention<P>) -> Result<(), Abort> {
        if intention.item.is_some() || !intention.was_ready {
            return Err(self.start_over(intention.item));
        }
        let (latest, running) = (self.execution.latest, self.execution.running);
        let result = self.run_one(intention);
        (self.execution.latest, self.execution.running) = (latest, running);
        result
    }

    /// Ends an attempt in which an intention has deferred an operation that cannot be a part of it. The next attempt
    /// defers nothing.
    #[cold]
    pub(super) fn start_over(&mut self, item: Option<ItemId>) -> Abort {
        match item.or(self.execution.running).or_else(|| self.attempt.items.ids().next()) {
            Some(item) => self.lose(ConflictCause::item(Reason::Undeclared, item)),
            None => self.misuse(Misuse::UnknownInput),
        }
    }

    /// Makes an intention; the caller records or runs it.
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
        let intentions = &mut self.attempt.intentions;
        let typed = node.cast::<Node<W, I, O>>();
        // SAFETY: as in `known`; the result is `Some` once the intention has run.
        let deferred = unsafe {
            intentions.drop_later(typed);
            intentions.results.add(&raw const (*typed).result, false)
        };
        let slot = deferred.slot;
        let order = match self.execution.phase {
            // An intention that runs early, within another one, has that one's place.
            Phase::Settling => self.execution.running_place,
            _ => intentions.resolving.map_or(slot, |late| late.intention.order),
        };
        let intention = Intention {
            node,
            functions: FunctionsOf::<W, I, O, P>::FUNCTIONS,
            item,
            slot,
            order,
            was_ready,
            finds_segment_of: NO_OBJECT,
        };
        Ok((intention, deferred))
    }
}

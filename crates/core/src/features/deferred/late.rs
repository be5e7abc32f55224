//! Late operations, whose segments are known only when others have run.
//!
//! The first order of a queue table names the customer's row that is to be changed. A transaction that reads it at once
//! is wild. One that defers it lines up in *stages*: it queues for everything of a lower rank, runs the operations that
//! find the next segments, and queues for those. No transaction behind it queues for that rank or a higher one
//! meanwhile (drp §4.1), so the order of queues is kept. The paper calls it tuning ranks to the data flow (drp §7.2)
//! and leaves it to others.

use super::intention::{Intention, Late};
use super::running::Phase;
use crate::features::deferred::DeferralAccess;
use crate::features::operations::{Deferred, Input, Once, Results};
use crate::kernel::abort::Abort;
use crate::kernel::capabilities::Deferral as _;
use crate::kernel::object_access::ObjectAccess;
use crate::kernel::protocol::Protocol;
use crate::memory::identity::ObjectMeta;

/// The result of an operation that another one has deferred.
struct Inner<O>(Deferred<Deferred<O>>);

impl<O: Clone + 'static> Input for Inner<O> {
    type Value = O;

    fn get(&self, results: &Results) -> Option<O> {
        results.get(results.get(&self.0)?).cloned()
    }
    fn is_known(&self, results: &Results) -> bool {
        results.get(&self.0).is_some_and(|inner| inner.is_known(results))
    }
    fn belongs_to(&self, results: &Results) -> bool {
        results.owns(&self.0)
    }
    fn each_slot(&self, visit: &mut dyn FnMut(u32)) {
        self.0.each_slot(visit);
    }
}

impl<P: Protocol> ObjectAccess<'_, P> {
    /// Runs work at once that an intention would do otherwise: a panic in it ends the transaction as one in an
    /// intention does.
    ///
    /// # Errors
    ///
    /// As [`compute`](crate::Transaction::compute).
    pub fn do_at_once<R>(&mut self, work: impl FnOnce(&mut Self) -> Result<R, Abort>) -> Result<R, Abort> {
        self.catching(work)
    }

    /// Lines up for all known segments, and then, stage by stage, for those that late operations find. After an `Err`
    /// the attempt has been stopped.
    pub(crate) fn line_up(&mut self) -> Result<(), Abort> {
        let is_late = !self.attempt.features.intentions.late.is_empty();
        if is_late {
            self.attempt.features.execution.phase = Phase::CarryingOut;
            let result = self.catching(Self::resolve_all);
            self.attempt.features.intentions.resolving = None;
            self.attempt.features.intentions.put_in_order();
            result?;
        }
        self.join(None)
    }

    fn join(&mut self, below: Option<u64>) -> Result<(), Abort> {
        match P::Deferral::of(self.protocol).map(|deferral| deferral.line_up(self.attempt, below)) {
            None | Some(Ok(())) => Ok(()),
            Some(Err(lost)) => Err(self.lose(lost)),
        }
    }

    #[cold]
    fn resolve_all(&mut self) -> Result<(), Abort> {
        while let Some(rank) = self.attempt.features.intentions.late.iter().map(|late| late.rank).min() {
            self.join(Some(rank))?;
            // Most inputs are known as soon as everything has run that needs no wait.
            self.advance(false, |_| false)?;
            while let Some(late) = self.attempt.features.intentions.find_late(|late| late.rank == rank) {
                self.resolve(&late)?;
            }
        }
        Ok(())
    }

    /// Lets an operation find its segment, as soon as its inputs are known.
    fn resolve(&mut self, late: &Late<P>) -> Result<(), Abort> {
        let is_ready = |tx: &Self| tx.is_ready(&late.intention);
        while !is_ready(self) {
            if self.advance(true, is_ready)? {
                continue;
            }
            // It depends on one of a higher rank. If that one finds no segment, no order is broken.
            let other = |other: &Late<P>| other.rank > late.rank && self.is_ready(&other.intention);
            match self.attempt.features.intentions.find_late(other) {
                Some(other) => self.find_segments(&other)?,
                None => return Err(self.out_of_order()),
            }
        }
        self.find_segments(late)
    }

    fn find_segments(&mut self, late: &Late<P>) -> Result<(), Abort> {
        let intentions = &mut self.attempt.features.intentions;
        intentions.late.retain(|one| one.intention.operation.slot != late.intention.operation.slot);
        intentions.resolving = Some(*late);
        intentions.is_out_of_order = true;
        self.run_one(&late.intention)?;
        self.attempt.features.intentions.resolving = None;
        Ok(())
    }

    /// Ends an attempt in which an operation needs a result of a segment that ranks no lower.
    #[cold]
    fn out_of_order(&mut self) -> Abort {
        let results = &self.attempt.features.operations.results;
        let waiting = self.attempt.features.intentions.waiting.iter();
        let item = waiting.filter(|one| !results.is_known(one.operation.slot)).find_map(|one| one.item);
        // The first one that has not run waits for nothing else, unless an input claims never to be known.
        self.start_over(item)
    }

    /// Runs the intentions that can run at the turns that have been queued for, until `enough`; waits for turns if
    /// `wait`. False if none could run.
    fn advance(&mut self, wait: bool, enough: impl Fn(&Self) -> bool) -> Result<bool, Abort> {
        self.attempt.features.intentions.put_in_order();
        let waiting = std::mem::take(&mut self.attempt.features.intentions.waiting);
        let has_run = self.try_all(&waiting, wait, enough)?;
        self.release_held_back(&waiting);
        self.attempt.features.intentions.waiting = waiting;
        Ok(has_run)
    }

    /// True if a segment that is deferred now ranks too low to be queued for in order.
    pub(super) fn comes_too_late(&self, rank: u64) -> bool {
        self.attempt.features.intentions.resolving.is_some_and(|late| rank < late.rank)
    }

    /// True if all inputs of an intention are known.
    pub(super) fn is_ready(&self, intention: &Intention<P>) -> bool {
        // SAFETY: the attempt is in progress, and it is the only user of its operations.
        unsafe { intention.operation.is_ready(&self.attempt.features.operations.results) }
    }
}

impl<P: Protocol> DeferralAccess<'_, P> {
    /// Defers an operation until its inputs are known, and makes its intention then. Makes it at once if the protocol defers
    /// nothing.
    ///
    /// `make` defers operations on segments of this object (or of others) whose [rank](crate::Object::rank) is `rank`
    /// or a higher one. Its inputs must come from operations on segments of lower ranks; otherwise the attempt starts
    /// over and defers nothing. `make` must not call this again.
    ///
    /// # Errors
    ///
    /// As [`compute`](crate::Transaction::compute).
    pub fn defer_late<I: Input, O: Clone + 'static>(
        &mut self,
        meta: &ObjectMeta,
        rank: u64,
        inputs: I,
        make: impl FnOnce(&mut ObjectAccess<'_, P>, I::Value) -> Result<Deferred<O>, Abort> + 'static,
    ) -> Result<Deferred<O>, Abort> {
        let make = |tx: &mut ObjectAccess<'_, P>, values| {
            let deferred = make(tx, values)?;
            // Otherwise its value would never be known.
            tx.own(deferred)?;
            Ok(deferred)
        };
        let resolved = if self.defers() {
            if self.is_carrying_out() {
                return Err(self.start_over(None));
            }
            let (operation, resolved) = self.operation(inputs, Once(make))?;
            let intention = self.intention(None, operation);
            self.attempt.features.intentions.late.push(Late { intention, object: meta.number(), rank });
            self.leave_unsettled(meta);
            resolved
        } else {
            self.intend(inputs, make)?
        };
        self.intend(Inner(resolved), |_, value| Ok(value))
    }

    /// Notes that an intention may touch segments of this object that are not known yet: see
    /// [`settle_object`](Self::settle_object).
    pub fn leave_unsettled(&mut self, meta: &ObjectMeta) {
        if self.defers() && !self.attempt.features.intentions.unsettled.contains(&meta.number()) {
            self.attempt.features.intentions.unsettled.push(meta.number());
        }
    }
}

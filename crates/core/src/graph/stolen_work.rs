//! Stolen work: the effects of an operation that a thief has run, kept until the owner adopts them.

use super::stealable_operations::{OwnerInfo, Plan};
use crate::abort::{Abort, Reason};
use crate::attempt::Attempt;
use crate::graph::Stealing as _;
use crate::history::recorder::Log;
use crate::item::{Flags, Item, ItemId};
use crate::pin::Pin;
use crate::profile::Isolation;
use crate::protocol::{ConflictCause, Protocol};
use crate::transaction::{Stop, Transaction};
use crate::users_code::{contained, panic_message};
use hotrow_sync::memory;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The result of an operation in a thief's hands.
#[derive(Debug)]
pub(super) enum Outcome {
    /// It has run, and its result is known.
    Done,
    /// A lock was not free. The operation has had no effect; locks that it has already got are the owner's.
    WouldBlock,
    /// It has lost a conflict over the segment that it touched last.
    Lost(Reason),
    /// The attempt cannot commit.
    Stopped(Stop),
}

/// The effects of an operation that a thief has run.
pub(super) struct StolenWork<P: Protocol> {
    /// Made when the operation is stolen for the first time.
    attempt: Option<Box<Attempt<P>>>,
    /// The owner's attempt whose payloads are in this memory.
    stamp: u64,
    pub(super) outcome: Outcome,
    /// Duration of the operation, if it was timed.
    pub(super) took_ns: Option<u64>,
}

impl<P: Protocol> StolenWork<P> {
    pub(super) fn new() -> Self {
        Self { attempt: None, stamp: 0, outcome: Outcome::Done, took_ns: None }
    }

    /// Runs an operation for its owner.
    ///
    /// # Safety
    ///
    /// The caller has taken the operation that has this plan and this stolen work.
    pub(super) unsafe fn run(&mut self, plan: &Plan<P>, owner: &OwnerInfo<P>) {
        let attempt = self.attempt.get_or_insert_with(|| Box::new(Attempt::small()));
        // SAFETY: the owner stays in its attempt until the operation is done (`StealableOperations`), so all this is in
        // memory.
        let (protocol, stealing) = unsafe { (owner.protocol.as_ref(), owner.stealing.as_ref()) };
        // SAFETY: as above.
        let (slot, results) = unsafe { (owner.slot.as_ref(), owner.results.as_ref()) };
        if self.stamp != owner.stamp {
            // Payloads of an earlier batch of the same attempt are still in use.
            self.stamp = owner.stamp;
            attempt.forget_payloads();
        }
        attempt.open_share(stealing, owner);
        // Never dropped: that would end the attempt. Its own parts are taken out below.
        let mut tx = ManuallyDrop::new(Transaction::of_share(protocol, owner.engine, attempt, slot));
        // SAFETY: the caller's promise; the plan's function knows the node's type.
        let result = catch_unwind(AssertUnwindSafe(|| unsafe { (plan.run)(plan.node, results, &mut tx) }));
        let stop = tx.take_stop();
        let put_off = std::mem::take(&mut attempt.graph.has_blocked);
        self.outcome = match result {
            Ok(Ok(())) => Outcome::Done,
            Ok(Err(_)) if put_off && attempt.items.writes().is_empty() => Outcome::WouldBlock,
            // The next attempt enqueues nothing.
            Ok(Err(_)) if put_off => Outcome::Lost(Reason::Undeclared),
            Ok(Err(abort)) => match stop {
                Some(Stop::Lost(loss)) => Outcome::Lost(loss.reason),
                Some(stop) => Outcome::Stopped(stop),
                None if abort == Abort::rollback() => Outcome::Stopped(Stop::RolledBack),
                None => Outcome::Lost(Reason::Undeclared),
            },
            Err(panic) => Outcome::Stopped(Stop::Panicked(panic_message(panic))),
        };
        attempt.leave_share(matches!(self.outcome, Outcome::WouldBlock));
    }

    /// Takes the only item out, if nothing else is to be adopted. The tracking set is empty then, so that no later use
    /// adopts the item twice.
    pub(super) fn take_only_item(&mut self) -> Option<Item<P>> {
        let attempt = self.attempt.as_deref_mut()?;
        let is_simple = matches!(self.outcome, Outcome::Done)
            && attempt.items.len() == 1
            && attempt.observations() == 0
            && !(attempt.wants_cleanup || attempt.items.has_predicates() || attempt.is_recorded());
        is_simple.then(|| {
            let item = attempt.items.get(ItemId::FIRST).detached();
            attempt.forget_items();
            item
        })
    }

    /// Returns the thief's attempt, for the owner to adopt.
    pub(super) fn attempt_mut(&mut self) -> Option<&mut Attempt<P>> {
        self.attempt.as_deref_mut()
    }
}

impl<P: Protocol> Attempt<P> {
    /// Begins to run an operation in another worker's name.
    fn open_share(&mut self, stealing: &P::Stealing, owner: &OwnerInfo<P>) {
        self.forget_items();
        (self.worker, self.profile) = (owner.worker, owner.profile);
        self.local = stealing.thief_state(self.worker());
        (self.graph.nonblocking, self.graph.is_thief) = (true, true);
        match &owner.recorder {
            None => self.log = None,
            Some(recorder) => {
                let log = self.log.get_or_insert_with(|| Box::new(Log::detached(recorder.clone())));
                log.reads_count(owner.profile.isolation == Isolation::Serializable);
            }
        }
        self.pin = Some(Pin::new());
    }

    /// Ends the thief's part. Discards its notes for a history if the operation had no effect.
    fn leave_share(&mut self, put_off: bool) {
        let pin = self.pin.take();
        // Objects freed here belong to others; the owner waits.
        contained(|| drop(pin));
        if put_off && let Some(log) = &mut self.log {
            log.clear();
        }
        // The owner reads these next.
        for item in self.items.iter() {
            memory::write(std::ptr::from_ref(item));
            if !item.payload.is_null() {
                memory::write(item.payload);
            }
        }
    }

    /// Merges an item that a thief recorded into the owner's item.
    pub(super) fn adopt_item(&mut self, stealing: &P::Stealing, detached: &Item<P>) -> ItemId {
        let mine = self.items.find_or_add(detached.segment, detached.object);
        stealing.adopt(self, mine, detached);
        let item = self.items.get_mut(mine);
        item.flags |= detached.flags & !Flags::WRITE.0 & !Flags::PREDICATE.0;
        item.mark_as(Flags::ADOPTED);
        // An own write stays as it is: the thief would have blocked there, and knows nothing of it.
        if !item.is(Flags::WRITE) {
            item.tag = detached.tag;
            item.mark = detached.mark;
            if !detached.payload.is_null() {
                item.payload = detached.payload;
            }
        }
        if detached.is(Flags::PREDICATE) {
            self.items.mark_predicate(mine);
        }
        mine
    }

    /// As [`adopt`](Self::adopt), if there is only one item.
    pub(super) fn adopt_only(&mut self, stealing: &P::Stealing, detached: &Item<P>) {
        let mine = self.adopt_item(stealing, detached);
        if detached.is(Flags::WRITE) {
            self.items.mark_write(mine);
        }
    }

    /// Merges a thief's attempt into this one: its reads, its writes and its locks. Also returns the segment that it
    /// touched last. Locks are adopted whatever the outcome, otherwise they would never be released.
    pub(super) fn adopt(
        &mut self,
        stealing: &P::Stealing,
        share: &mut Attempt<P>,
    ) -> (Option<ItemId>, Result<(), ConflictCause>) {
        let mut last = None;
        for id in share.items.ids() {
            let detached = share.items.get(id);
            memory::read(std::ptr::from_ref(detached));
            let mine = self.adopt_item(stealing, detached);
            last = Some(mine);
        }
        // In the order in which they were written, because cleanups go by that order.
        for id in share.items.writes() {
            let mine = self.items.find(share.items.get(*id).segment).expect("adopted just now");
            self.items.mark_write(mine);
        }
        self.wants_cleanup |= share.wants_cleanup;
        if let (Some(log), Some(theirs)) = (&mut self.log, &mut share.log) {
            log.absorb(theirs);
        }
        let mut result = Ok(());
        for number in 0..share.observations() {
            let (observed, observer) = share.observation_at(number);
            result = result.and(self.observe(observed, observer));
        }
        share.forget_items();
        (last, result)
    }
}

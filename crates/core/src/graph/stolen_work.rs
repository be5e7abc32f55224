//! A share: what a thief has done of an attempt, until the owner adopts it.

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

/// What has become of an operation in a thief's hands.
#[derive(Debug)]
pub(super) enum Outcome {
    /// Its result is there.
    Done,
    /// A lock was not free. Nothing has happened; locks that it has got already are the owner's.
    WouldBlock,
    /// It has lost a conflict, over the segment that it touched last.
    Lost(Reason),
    /// The attempt cannot commit.
    Stopped(Stop),
}

/// What a thief has done.
pub(super) struct StolenWork<P: Protocol> {
    /// Made when the operation is stolen for the first time.
    attempt: Option<Box<Attempt<P>>>,
    /// The owner's attempt whose payloads are in its memory.
    stamp: u64,
    pub(super) outcome: Outcome,
    /// How long it took, if it was timed.
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
    /// The caller has taken the operation that has this plan and this share.
    pub(super) unsafe fn run(&mut self, plan: &Plan<P>, owner: &OwnerInfo<P>) {
        let attempt = self.attempt.get_or_insert_with(|| Box::new(Attempt::small()));
        // SAFETY: the owner is in its attempt until the operation is done (`StealableOperations`), and so all this is in memory.
        let (protocol, stealing) = unsafe { (owner.protocol.as_ref(), owner.stealing.as_ref()) };
        // SAFETY: as above.
        let (slot, results) = unsafe { (owner.slot.as_ref(), owner.results.as_ref()) };
        if self.stamp != owner.stamp {
            // Payloads of an earlier batch of the same attempt are still in use.
            self.stamp = owner.stamp;
            attempt.forget_payloads();
        }
        attempt.open_share(stealing, owner);
        // Never dropped: it would end the attempt. What it has of its own is taken out below.
        let mut tx = ManuallyDrop::new(Transaction::of_share(protocol, owner.engine, attempt, slot));
        // SAFETY: the caller's promise; the plan's function knows the node's type.
        let result = catch_unwind(AssertUnwindSafe(|| unsafe { (plan.run)(plan.node, results, &mut tx) }));
        let stop = tx.take_stop();
        let put_off = std::mem::take(&mut attempt.graph.has_blocked);
        self.outcome = match result {
            Ok(Ok(())) => Outcome::Done,
            Ok(Err(_)) if put_off && attempt.items.writes().is_empty() => Outcome::WouldBlock,
            // The next attempt draws nothing.
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

    /// Takes the share's only item out, if that is all there is to adopt. Nothing is left then: whoever looks at the share
    /// before it is used again must not find what has been adopted.
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

    /// What was done, for the owner, who then has done it.
    pub(super) fn attempt_mut(&mut self) -> Option<&mut Attempt<P>> {
        self.attempt.as_deref_mut()
    }
}

impl<P: Protocol> Attempt<P> {
    /// Begins to do something in another worker's name.
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

    /// Ends the thief's part. What it has noted for a history does not count if nothing has happened.
    fn leave_share(&mut self, put_off: bool) {
        let pin = self.pin.take();
        // What is freed now is others'; the owner waits.
        contained(|| drop(pin));
        if put_off && let Some(log) = &mut self.log {
            log.clear();
        }
        // What the owner is going to read.
        for item in self.items.iter() {
            memory::write(std::ptr::from_ref(item));
            if !item.payload.is_null() {
                memory::write(item.payload);
            }
        }
    }

    /// Makes an item the attempt's own.
    pub(super) fn adopt_item(&mut self, stealing: &P::Stealing, detached: &Item<P>) -> ItemId {
        let mine = self.items.find_or_add(detached.segment, detached.object);
        stealing.adopt(self, mine, detached);
        let item = self.items.get_mut(mine);
        item.flags |= detached.flags & !Flags::WRITE.0 & !Flags::PREDICATE.0;
        item.mark_as(Flags::ADOPTED);
        // What the attempt itself has written it holds: the thief was put off there, and knows nothing of it.
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

    /// As [`adopt`](Self::adopt), where an item is all there is.
    pub(super) fn adopt_only(&mut self, stealing: &P::Stealing, detached: &Item<P>) {
        let mine = self.adopt_item(stealing, detached);
        if detached.is(Flags::WRITE) {
            self.items.mark_write(mine);
        }
    }

    /// Makes what a thief has done the attempt's own: what it has read and written, and what it holds. Also says which
    /// segment it touched last. Whatever has become of the operation, what it holds must not be lost.
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
        // In the order in which they were written: cleanups go by that.
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

//! Stolen work: the effects of an operation that a thief has run, kept until the owner adopts them.

use super::stealable_operations::{OwnerInfo, Plan};
use crate::features::deferred::Execution;
use crate::features::history::recorder::Log;
use crate::kernel::abort::Reason;
use crate::kernel::attempt::Attempt;
use crate::kernel::capabilities::Stealing as _;
use crate::kernel::item::{Flags, Item, ItemId};
use crate::kernel::object_access::{ObjectAccess, Stop};
use crate::kernel::profile::Isolation;
use crate::kernel::protocol::{ConflictCause, Protocol};
use crate::kernel::slots::Moments;
use crate::memory::pin::Pin;
use crate::memory::thread_mark;
use crate::memory::users_code::{contained, panic_message};
use hotrow_sync::memory;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The result of an operation in a thief's hands.
#[derive(Debug)]
pub(super) enum StolenEnd {
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
    pub(super) end: StolenEnd,
    /// Duration of the operation, if it was timed.
    pub(super) took_ns: Option<u64>,
}

impl<P: Protocol> StolenWork<P> {
    pub(super) fn new() -> Self {
        Self { attempt: None, stamp: 0, end: StolenEnd::Done, took_ns: None }
    }

    /// Runs an operation for its owner.
    ///
    /// # Safety
    ///
    /// The caller has taken the operation that has this plan and this stolen work.
    pub(super) unsafe fn run(&mut self, plan: &Plan<P>, owner: &OwnerInfo<P>) {
        // SAFETY: the owner stays in its attempt until the operation is done (`StealableOperations`), so all this is in
        // memory.
        let (protocol, stealing) = unsafe { (owner.protocol.as_ref(), owner.stealing.as_ref()) };
        let attempt = self.attempt.get_or_insert_with(|| Box::new(Attempt::small(protocol)));
        // SAFETY: as above.
        let slot = unsafe { owner.slot.as_ref() };
        if self.stamp != owner.stamp {
            // Payloads of an earlier batch of the same attempt are still in use.
            self.stamp = owner.stamp;
            attempt.forget_payloads();
        }
        attempt.begin_stolen_work(stealing, owner);
        // Never dropped: that would end the attempt. Its own parts are taken out below.
        let mut tx = ManuallyDrop::new(ObjectAccess::of_stolen_work(protocol, owner.engine, attempt, slot));
        // SAFETY: the caller's promise: the owner's attempt is in progress, and the operation is the caller's.
        let run = || unsafe { plan.operation.run(owner.results, &mut tx) };
        // The thief's own body has made no such error.
        let noted = thread_mark::is_rolling_back();
        let result = catch_unwind(AssertUnwindSafe(run));
        thread_mark::set_rollback(noted);
        let stop = tx.take_stop();
        let would_block = std::mem::take(&mut attempt.features.graph.has_blocked);
        self.end = match result {
            Ok(Ok(())) => StolenEnd::Done,
            Ok(Err(_)) if would_block && attempt.items.writes().is_empty() => StolenEnd::WouldBlock,
            // The next attempt enqueues nothing.
            Ok(Err(_)) if would_block => StolenEnd::Lost(Reason::Undeclared),
            Ok(Err(abort)) => match stop {
                Some(Stop::Lost(loss)) => StolenEnd::Lost(loss.reason),
                Some(stop) => StolenEnd::Stopped(stop),
                None if abort.is_rollback() => StolenEnd::Stopped(Stop::RolledBack(abort)),
                None => StolenEnd::Lost(Reason::Undeclared),
            },
            Err(panic) => StolenEnd::Stopped(Stop::Panicked(panic_message(panic))),
        };
        attempt.end_stolen_work(matches!(self.end, StolenEnd::WouldBlock));
    }

    /// Takes the only item out, if nothing else is to be adopted. The tracking set is empty then, so that no later use
    /// adopts the item twice.
    pub(super) fn take_only_item(&mut self) -> Option<Item<P>> {
        let attempt = self.attempt.as_deref_mut()?;
        let is_simple = matches!(self.end, StolenEnd::Done)
            && attempt.items.len() == 1
            && attempt.observations() == 0
            && !(attempt.hears(Moments::OF_OBJECTS)
                || attempt.items.has_predicates()
                || attempt.is_recorded());
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
    fn begin_stolen_work(&mut self, stealing: &P::Stealing, owner: &OwnerInfo<P>) {
        self.forget_items();
        self.hears = Moments::NONE;
        self.features.execution = Execution::new();
        (self.worker, self.profile) = (owner.worker, owner.profile);
        self.local = stealing.thief_state(self.worker());
        (self.features.graph.nonblocking, self.features.graph.is_thief) = (true, true);
        match &owner.recorder {
            None => self.features.log = None,
            Some(recorder) => {
                let log = self.features.log.get_or_insert_with(|| Box::new(Log::detached(recorder.clone())));
                log.reads_count(owner.profile.isolation == Isolation::Serializable);
            }
        }
        self.note_or_not();
        self.pin = Some(Pin::new());
    }

    /// Ends the thief's part. Discards its notes for a history if the operation had no effect.
    fn end_stolen_work(&mut self, would_block: bool) {
        let pin = self.pin.take();
        // Objects freed here belong to others; the owner waits.
        contained(|| drop(pin));
        if would_block && let Some(log) = &mut self.features.log {
            log.clear();
        }
        // The owner reads these next.
        for item in self.items.iter() {
            memory::write(std::ptr::from_ref(item));
            if P::ALLOWS_STEALING && item.has_payload() {
                memory::write(item.payload.shared::<P>());
            }
        }
    }

    /// Merges an item that a thief recorded into the owner's item.
    pub(super) fn adopt_item(&mut self, stealing: &P::Stealing, detached: &Item<P>) -> ItemId {
        let mine = self.items.find_or_add(detached.touched);
        stealing.adopt(self, mine, detached);
        let item = self.items.get_mut(mine);
        item.flags |= detached.flags & !Flags::WRITE.0 & !Flags::PREDICATE.0;
        item.mark_as(Flags::ADOPTED);
        // An own write stays as it is: the thief would have blocked there, and knows nothing of it.
        if !item.is(Flags::WRITE) {
            item.tag = detached.tag;
            item.mark = detached.mark;
            if detached.has_payload() {
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
        stolen: &mut Attempt<P>,
    ) -> (Option<ItemId>, Result<(), ConflictCause>) {
        let mut last = None;
        for id in stolen.items.ids() {
            let detached = stolen.items.get(id);
            memory::read(std::ptr::from_ref(detached));
            let mine = self.adopt_item(stealing, detached);
            last = Some(mine);
        }
        // In the order in which they were written, because cleanups go by that order.
        for id in stolen.items.writes() {
            let mine = self.items.find(stolen.items.get(*id).segment()).expect("adopted just now");
            self.items.mark_write(mine);
        }
        self.hears.add(stolen.hears.of(Moments::OF_OBJECTS));
        if let (Some(log), Some(theirs)) = (&mut self.features.log, &mut stolen.features.log) {
            log.absorb(theirs);
        }
        let mut result = Ok(());
        for number in 0..stolen.observations() {
            let (observed, observer) = stolen.observation_at(number);
            result = result.and(self.observe(observed, observer));
        }
        stolen.forget_items();
        (last, result)
    }
}

//! The steps of a commit (plor Figure 5).
//!
//! # Why it is serializable
//!
//! The serialization point p(T) of a transaction T is the moment at which it begins to check buckets and leaves, or would. At p(T) it is in
//! exclusive mode wherever it writes, no reader in conflict with it is left, and it is still entered wherever it has read. It
//! commits later, at c(T), and is not wounded before that. An attempt that reads by versions is placed at its first check; if it writes, it is in
//! exclusive mode by then. Of two transactions T and U:
//!
//! - *U reads what T wrote.* T stores after c(T), and U reads before p(U).
//! - *U overwrites what T wrote.* U has the right to write before p(U). It did not get it from T while T ran, because that takes a wound. So
//!   T had released it, after c(T).
//! - *U overwrites what T read.* U marks exclusive mode and then loads the readers, both before p(U). If it finds T, it wounds T, which then
//!   does not commit, or waits until T has passed c(T). If it does not, T has left, after c(T); or T enters later, finds the mark, and
//!   waits, so that it does not read the value from before U. (If T held the right to write, and so has not entered, this is the case above.) If
//!   T reads by versions, its check finds the version read and no mark, or that of a dead attempt; so U's mark comes later.
//! - *U inserts where T observed absence.* T's check finds the version unchanged after p(T), and U latches the node after that and before
//!   p(U).
//!
//! So p(T) is before p(U) in each case, and lies between the beginning and the end of T: the order is that of real time.
//!
//! It is not opaque, but nearly: a reader that has entered learns of a wound at its next read, before it sees a newer state. Absences,
//! predicates, and reads by versions may be of other moments.
//!
//! # No starvation
//!
//! Retries keep their age, and new transactions are younger. (Under `plor+deadline` the head start of small ones is bounded.) So each becomes
//! the oldest at some time; then nobody wounds it, and it waits only for attempts that install. It may still abort for a changed absence, a
//! predicate, or, in its first attempts, a version; for these there is the starvation gate.

use super::locker::{Locker, Set};
use super::{Plor, locker_of};
use crate::host::Host;
use crate::stable::StableWord;
use hotrow_core::{Attempt, ConflictCause, Flags, ItemId, Reason};
use hotrow_sync::atomic::{Ordering, fence};
use hotrow_sync::profile::waiting;

impl Plor {
    /// Phase 1 for one segment: enters exclusive mode, and settles with every reader that could still commit or be
    /// wounded.
    #[inline(always)]
    fn make_exclusive<H: Host<Self>>(
        &self,
        attempt: &mut Attempt<H>,
        id: ItemId,
    ) -> Result<(), ConflictCause> {
        // SAFETY: used before the attempt ends.
        let locker = unsafe { locker_of(attempt, id) };
        let stamp = H::local(&attempt.local).stamp;
        let latch = self.latch(locker);
        let exclusive = locker.make_exclusive(stamp.id);
        drop(latch);
        if !exclusive {
            return Err(self.states.loss(attempt));
        }
        if locker.is_empty(Set::Readers) { Ok(()) } else { self.settle_readers(attempt, id, locker) }
    }

    #[inline(never)]
    fn settle_readers<H: Host<Self>>(
        &self,
        attempt: &mut Attempt<H>,
        id: ItemId,
        locker: &Locker,
    ) -> Result<(), ConflictCause> {
        let stamp = H::local(&attempt.local).stamp;
        let mut readers = std::mem::take(&mut H::local_mut(&mut attempt.local).readers);
        let settled = self.settle(locker, stamp, &mut readers, |reader| {
            let _waiting = waiting("its older readers", locker.address());
            let over = || !self.states.is_running(reader.id);
            let lost = ConflictCause::item(Reason::WriteLocked, id);
            self.states.wait(attempt, reader.worker(), stamp, over, over, lost)
        });
        H::local_mut(&mut attempt.local).readers = readers;
        settled
    }

    /// Phase 1 for all segments to be written (plor Figure 5).
    #[inline(always)]
    pub(super) fn make_all_exclusive<H: Host<Self>>(
        &self,
        attempt: &mut Attempt<H>,
    ) -> Result<(), ConflictCause> {
        if H::local(&attempt.local).delayed {
            self.take_delayed(attempt)?;
        }
        for at in 0..attempt.items.writes().len() {
            let id = attempt.items.writes()[at];
            if !attempt.items.get(id).is(Flags::INSERTED) {
                self.make_exclusive(attempt, id)?;
            }
        }
        Ok(())
    }

    /// Takes the delayed rights to write (plor §4.1.4), in the order of first write.
    fn take_delayed<H: Host<Self>>(&self, attempt: &mut Attempt<H>) -> Result<(), ConflictCause> {
        for at in 0..attempt.items.writes().len() {
            let id = attempt.items.writes()[at];
            if !attempt.items.get(id).is(Flags::LOCKED) {
                self.lock_write(attempt, id)?;
            }
        }
        Ok(())
    }

    /// Checks each predicate, either on a value that stays until the attempt ends or on one whose version is checked
    /// later.
    pub(super) fn check_predicates<H: Host<Self>>(
        &self,
        attempt: &mut Attempt<H>,
    ) -> Result<(), ConflictCause> {
        if H::local(&attempt.local).optimistic {
            return attempt.check_predicates(Self::read_predicate);
        }
        attempt.check_predicates(|attempt, id| {
            self.enter(attempt, id)?;
            let holds = attempt.predicate_holds(id);
            self.unharmed(attempt, holds)
        })
    }

    /// Checks a predicate and turns it into a read of the version that it was checked on.
    fn read_predicate<H: Host<Self>>(attempt: &mut Attempt<H>, id: ItemId) -> Result<bool, ConflictCause> {
        let stable = H::header(attempt.items.get(id).header()).stable(|| attempt.predicate_holds(id));
        let (version, holds) = stable.map_err(|reason| ConflictCause::item(reason, id))?;
        let item = attempt.items.get_mut(id);
        if !item.is(Flags::READ) {
            (*H::mark_mut(&mut item.mark)) = version;
            item.set(Flags::READ);
        }
        Ok(holds)
    }

    /// Checks that every version read is still there, and that nobody is about to replace it. A younger transaction
    /// that was about to is wounded.
    fn validate_versions<H: Host<Self>>(&self, attempt: &Attempt<H>) -> Result<(), ConflictCause> {
        // Orders the reads before the checks; the reader's side of `Locker::begin_install`.
        fence(Ordering::Acquire);
        let stamp = H::local(&attempt.local).stamp;
        for (id, item) in attempt.items.entries() {
            if !item.is(Flags::READ) {
                continue;
            }
            let locker = H::header(item.header());
            let harmless = |holder| holder == stamp.id || self.passes(stamp, holder, locker);
            if !locker.is_unchanged(H::mark(item.mark), harmless) {
                return Err(ConflictCause::item(Reason::ReadChanged, id));
            }
        }
        Ok(())
    }

    /// Validates versions that were read, buckets and leaves.
    pub(super) fn validate<H: Host<Self>>(&self, attempt: &Attempt<H>) -> Result<(), ConflictCause> {
        if H::local(&attempt.local).optimistic {
            self.validate_versions(attempt)?;
        }
        attempt.check_structures()
    }

    /// True for an attempt that has entered nothing, so that no other attempt knows of it.
    pub(super) fn is_unknown<H: Host<Self>>(attempt: &Attempt<H>) -> bool {
        H::local(&attempt.local).optimistic && attempt.items.writes().is_empty()
    }

    /// Leaves the reader set of every segment that was read.
    #[inline(always)]
    pub(super) fn leave_readers<H: Host<Self>>(&self, attempt: &Attempt<H>) {
        for item in attempt.items.iter() {
            if item.is(Flags::READ) {
                let locker = H::header(item.header());
                let latch = self.latch(locker);
                locker.leave(Set::Readers, H::local(&attempt.local).stamp.worker(), &self.overflow);
                drop(latch);
            }
        }
    }
}

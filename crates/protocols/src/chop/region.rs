//! The commit of `dbx`: both halves in one hardware transaction (Wang et al., "Using Restricted Transactional Memory to Build a
//! Scalable In-Memory Database", EuroSys 2014).
//!
//! # Algorithm
//!
//! A region checks that each segment to be written is unlocked and, if it was read, unchanged; evaluates predicates; checks reads,
//! buckets and leaves; installs the writes and gives each segment its new version. No lock is taken. If the region commits, all of it has
//! happened at one moment.
//!
//! If the region is aborted:
//!
//! - by a *conflict*, it is tried again after a pause, eight times in all ([`Tries`]);
//! - because it does not fit (*capacity*), the attempt takes locks at once, as in dbx-tc §2.2;
//! - because a segment that it would write is locked, the attempt waits until none is, as long as `occ` would wait for the lock;
//! - by anything else, it is tried again like one with a conflict.
//!
//! The fallback is the commit of `occ`, which may take locks of partitions besides (`fallback`). Where there are no hardware
//! transactions, `dbx` is `occ`.
//!
//! Regions are not tried if the engine has a log or other steps between the halves of its commits, or if a write cannot be installed in one
//! (`Object::installs_in_regions`): changes that commute, users' closures at the commit, and deletions of rows that were changed before. A
//! transaction that writes nothing validates as under `occ`.
//!
//! # Deviations
//!
//! - DBX has a sequence number in each record and none of a worker; here versions are those of `occ`.
//! - DBX runs its index operations in regions, too; here the indexes are those of all protocols.
//! - DBX falls back to a lock for all, DBX-TC to one for each partition (dbx-tc §3.3); here the fallback takes the locks of its segments.
//!
//! # Why it is serializable
//!
//! Regions among each other happen one after the other. A region and a commit by locks exclude each other by the version words. The
//! region reads the word of each segment that it has read or writes. If the other has one of them locked, the region sees that and gives
//! up; if it locks one later, the processor aborts the region; later still, the region has committed. If the other has read a
//! segment that the region writes, then the region's commit comes after the other's validation, or it has made that fail. In the first
//! case the region, which comes later, cannot have read what the other writes: it would have met the lock. So the moment of
//! the region is the transaction's place in the serial order, as the moment between the first two phases is under `occ`.

use super::Chop;
use crate::host::Host;
use crate::lock_wait::LockWait;
use crate::version::{self, Version};
use hotrow_core::region::{LOCKED, Tries};
use hotrow_core::{Attempt, ConflictCause, Flags, Reason};
use hotrow_sync::region;

impl Chop {
    /// Commits in a region. `None` if the attempt must take locks.
    pub(super) fn commit_in_region<H: Host<Self>>(
        &self,
        attempt: &mut Attempt<H>,
    ) -> Option<Result<(), ConflictCause>> {
        if !region::is_available() {
            return None;
        }
        if let Some(partitions) = &self.partitions {
            partitions.note(attempt);
        }
        let result = if attempt.fits_region() { self.try_regions(attempt) } else { None };
        if result.is_none() {
            attempt.count_region_fallback();
            if let Some(partitions) = &self.partitions {
                partitions.lock(H::local_mut(&mut attempt.local));
            }
        }
        result
    }

    fn try_regions<H: Host<Self>>(&self, attempt: &mut Attempt<H>) -> Option<Result<(), ConflictCause>> {
        let mut tries = Tries::new();
        let partitions = self.partitions.as_ref();
        while wait_for_locks(attempt) {
            if let Some(partitions) = partitions {
                partitions.wait_until_free(H::local(&attempt.local));
            }
            let (last, worker) = (H::local(&attempt.local).last, attempt.worker());
            let number = |highest: u64| highest.max(last) + 1;
            let result = attempt.commit_in_region(
                |item| H::header(item.header()).load().word(),
                |attempt| {
                    if let Some(partitions) = partitions {
                        partitions.check_in_region(H::local(&attempt.local));
                    }
                    validate(attempt)
                },
                |item| H::header(item.header()).lock_in_region(),
                |item, highest| H::header(item.header()).unlock_as(Version::new(number(*highest), worker)),
            );
            attempt.count_region(&result);
            match result {
                Ok(Ok(highest)) => {
                    H::local_mut(&mut attempt.local).last = number(highest);
                    return Some(Ok(()));
                }
                Ok(Err(lost)) => return Some(Err(lost)),
                Err(abort) if tries.go_on(abort) => {}
                Err(_) => break,
            }
        }
        None
    }
}

/// Waits until no segment to be written is locked. False if one stays locked.
fn wait_for_locks<H: Host<Chop>>(attempt: &Attempt<H>) -> bool {
    attempt.items.writes().iter().map(|id| attempt.items.get(*id)).all(|item| {
        let mut wait = LockWait::new(item.is(Flags::READ));
        while !item.is(Flags::INSERTED) && H::header(item.header()).load().is_locked() {
            if !wait.turn() {
                return false;
            }
        }
        true
    })
}

/// Checks, in a region, that the attempt may commit. Returns the highest number among the versions read and overwritten.
fn validate<H: Host<Chop>>(attempt: &Attempt<H>) -> Result<u64, ConflictCause> {
    let mut highest = 0;
    for id in attempt.items.writes() {
        let item = attempt.items.get(*id);
        if !item.is(Flags::INSERTED) {
            let found = H::header(item.header()).load();
            if found.is_locked() {
                region::abort::<LOCKED>();
                return Err(ConflictCause::item(Reason::WriteLocked, *id));
            }
            highest = highest.max(found.number());
        }
    }
    if attempt.items.has_predicates() {
        highest = highest.max(check_predicates(attempt)?);
    }
    Ok(highest.max(version::validate::<Chop, H>(attempt)?))
}

/// Checks the predicates. Their segments do not change before the region commits.
fn check_predicates<H: Host<Chop>>(attempt: &Attempt<H>) -> Result<u64, ConflictCause> {
    let mut highest = 0;
    for (id, item) in attempt.items.entries() {
        if item.is(Flags::PREDICATE) {
            let found = H::header(item.header()).load();
            if found.is_locked() && !item.is(Flags::INSERTED) {
                return Err(ConflictCause::item(Reason::ReadLocked, id));
            }
            if !attempt.predicate_holds(id) {
                return Err(ConflictCause::item(Reason::PredicateFailed, id));
            }
            highest = highest.max(found.number());
        }
    }
    Ok(highest)
}

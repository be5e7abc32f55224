//! Ranges: looking at buckets and leaves, and locking them before that.
//!
//! Under every protocol a bucket or leaf that a transaction observes is checked at commit by its version
//! ([`structure`](crate::structure)), so an insertion aborts whoever has scanned there. A protocol may lock it besides
//! ([`RangeLocks`]), so that the insertion waits for the scan instead, and the scan for the insertion. The
//! check remains, and what follows here is never needed for a right result; it only spares aborts.
//!
//! # The order of things
//!
//! - *Observing*: look, lock to scan, and look again if the version has changed meanwhile. From then on it changes no
//!   more but by the attempt itself.
//! - *Changing*: the index says which node it is about to change, and does it only if that is locked to be changed, or can
//!   be locked at once. If not, wait for the lock and begin again: another node may be in question by then.
//! - A node that the attempt splits off is locked as the one is that it was a part of.
//! - Locks are held until dead records have been taken out of the index, which is the last that an attempt changes.
//!
//! # What is left to the check
//!
//! Somebody else's split moves records to a leaf that their maker has not locked. If it then takes them out (after an
//! abort, or a deletion), whoever has scanned that leaf meanwhile is aborted. So is who has observed a bucket of a hash
//! index that grows.

use crate::abort::{Abort, Reason};
use crate::attempt::Attempt;
use crate::object::{Object, ObjectMeta};
use crate::profile::Isolation;
use crate::protocol::{Absent, ConflictCause, ConflictTarget, Protocol};
use crate::structure::{Observed, StructureChange, StructureVersion};
use crate::transaction::Transaction;
use std::ptr::NonNull;

/// What a bucket or leaf is locked for. Locks of the same kind go together, those of different kinds do not: scans and
/// failed lookups leave the node as it is, and of two insertions each only has to find its own key free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RangeUse {
    /// A scan of it, or a failed lookup in it.
    Scan,
    /// An insertion into it, or a removal from it.
    Change,
}

/// Which bucket or leaf. Two may have the same identity, and then are locked together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RangeId(u32);

impl RangeId {
    fn of(meta: &ObjectMeta, version: u64) -> Self {
        Self::new(meta.place(), StructureVersion::number(version))
    }

    /// That of a node with this number, of the object with this place among its engine's.
    ///
    /// Both are the same in each run, as addresses are not, and so a simulation is. The nodes of an index are numbered
    /// one by one; those of different objects are kept apart.
    pub fn new(place: u16, node: u32) -> Self {
        Self(u32::from(place).wrapping_mul(0x3d1).wrapping_add(node))
    }

    /// Its place among so many, a power of two. Nodes with neighbouring numbers, which are often in use at the same time,
    /// have places far apart.
    #[inline]
    pub fn stripe(self, stripes: usize) -> usize {
        (self.0 as usize).wrapping_mul(0x9e5) & (stripes - 1)
    }
}

/// Locks on buckets and leaves (stealdb §5), for a protocol under which transactions wait for each other: so that a
/// transaction that scans is not aborted by insertions into what it has scanned.
pub trait RangeLocks<P: Protocol>: Sized {
    /// True, but for [`Absent`].
    const PRESENT: bool = true;

    /// The capability of an engine's protocol.
    fn of(protocol: &P) -> Option<&Self>;

    /// Locks a bucket or leaf until the attempt's [cleanup](Protocol::after_cleanup) is over. Also called for one that the
    /// attempt has locked, in this way or the other.
    fn lock(&self, attempt: &mut Attempt<P>, range: RangeId, how: RangeUse) -> Result<(), Reason>;

    /// As [`lock`](Self::lock), if that is possible without waiting. False if it is not.
    fn try_lock(&self, attempt: &Attempt<P>, range: RangeId, how: RangeUse) -> bool;

    /// True if the attempt has locked a bucket or leaf in this way.
    fn holds(&self, attempt: &Attempt<P>, range: RangeId, how: RangeUse) -> bool;
}

impl<P: Protocol> RangeLocks<P> for Absent {
    const PRESENT: bool = false;

    fn of(_protocol: &P) -> Option<&Self> {
        None
    }

    fn lock(&self, _: &mut Attempt<P>, _: RangeId, _: RangeUse) -> Result<(), Reason> {
        match *self {}
    }

    fn try_lock(&self, _: &Attempt<P>, _: RangeId, _: RangeUse) -> bool {
        match *self {}
    }

    fn holds(&self, _: &Attempt<P>, _: RangeId, _: RangeUse) -> bool {
        match *self {}
    }
}

impl<P: Protocol> Transaction<'_, P> {
    /// Keeps the observation of a bucket or leaf: a failed lookup, or a part of a scan. False if it has changed before it
    /// was locked: look again. Never false where the protocol does not lock [ranges](Protocol::RangeLocks).
    ///
    /// # Safety
    ///
    /// As for [`read`](Self::read), with the node in place of the segment.
    #[inline]
    pub unsafe fn observe<O: Object<P> + 'static>(
        &mut self,
        object: &O,
        observed: Observed,
    ) -> Result<bool, Abort> {
        if !P::TRACKS_READS || self.attempt.profile().isolation == Isolation::ReadCommitted {
            return Ok(true);
        }
        if let Some(locks) = P::RangeLocks::of(self.protocol) {
            self.lock_range(locks, object, observed, RangeUse::Scan)?;
            // SAFETY: observed under the attempt's pinned epoch, so it is in memory until the attempt ends.
            if !unsafe { observed.node.as_ref() }.unchanged(observed.version) {
                return Ok(false);
            }
        }
        match self.attempt.observe(observed, NonNull::from(object)) {
            Ok(()) => self.learn_absence(Some(object.meta())).map(|()| true),
            Err(lost) => Err(self.lose(lost)),
        }
    }

    /// Whether a bucket or leaf may be changed: it is locked for that, now if not before, or the protocol does not ask for
    /// it. If not, [`lock_to_change`](Self::lock_to_change) waits for the lock.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn may_change<O: Object<P>>(&self, object: &O, observed: Observed) -> bool {
        P::RangeLocks::of(self.protocol).is_none_or(|locks| {
            let range = RangeId::of(object.meta(), observed.version);
            locks.try_lock(self.attempt, range, RangeUse::Change)
        })
    }

    /// Locks a bucket or leaf that is to be changed. Afterwards another one may be in question.
    ///
    /// # Safety
    ///
    /// As for [`observe`](Self::observe).
    pub unsafe fn lock_to_change<O: Object<P> + 'static>(
        &mut self,
        object: &O,
        observed: Observed,
    ) -> Result<(), Abort> {
        match P::RangeLocks::of(self.protocol) {
            None => Ok(()),
            Some(locks) => self.lock_range(locks, object, observed, RangeUse::Change),
        }
    }

    /// Follows a change of structure that the attempt itself has made, and locks what has come of it as that was locked
    /// of which it was a part.
    ///
    /// # Safety
    ///
    /// As for [`observe`](Self::observe).
    #[inline]
    pub unsafe fn follow_insertion<O: Object<P> + 'static>(
        &mut self,
        object: &O,
        change: StructureChange,
    ) -> Result<(), Abort> {
        // SAFETY: the caller's promise.
        unsafe { self.follow(object, change) };
        if let Some(locks) = P::RangeLocks::of(self.protocol)
            && let StructureChange::Split { before, node, version, .. } = change
        {
            let from = RangeId::of(object.meta(), before);
            for how in [RangeUse::Change, RangeUse::Scan] {
                if locks.holds(self.attempt, from, how) {
                    self.lock_range(locks, object, Observed { node, version }, how)?;
                }
            }
        }
        Ok(())
    }

    fn lock_range<O: Object<P> + 'static>(
        &mut self,
        locks: &P::RangeLocks,
        object: &O,
        observed: Observed,
        how: RangeUse,
    ) -> Result<(), Abort> {
        let range = RangeId::of(object.meta(), observed.version);
        match locks.lock(self.attempt, range, how) {
            Ok(()) => Ok(()),
            Err(reason) => Err(self.lose_range(object, observed, reason)),
        }
    }

    #[cold]
    fn lose_range<O: Object<P> + 'static>(
        &mut self,
        object: &O,
        observed: Observed,
        reason: Reason,
    ) -> Abort {
        if self.attempt.graph.has_blocked {
            return Abort::INTERNAL;
        }
        let number = self.attempt.enter_lost(observed, NonNull::from(object));
        self.lose(ConflictCause { reason, target: ConflictTarget::Structure(number) })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn nodes_of_a_table_fall_apart_and_tables_keep_their_distance() {
        let stripe = |place, node| RangeId::new(place, node).stripe(4_096);
        let mut stripes: Vec<usize> = (0..400).flat_map(|node| [stripe(3, node), stripe(4, node)]).collect();
        stripes.sort_unstable();
        stripes.dedup();
        assert_eq!(stripes.len(), 800);
    }
}

//! Range locks: locking buckets and leaves before they are observed or changed.
//!
//! Under every protocol, a bucket or leaf that a transaction observes is checked at commit by its version
//! ([`structure`](crate::memory::structure)), so an insertion aborts every transaction that has scanned there. A protocol may
//! also lock it ([`RangeLocks`]), so that the insertion waits for the scan instead, and the scan for the insertion. The
//! check remains. Range locks are never needed for a correct result; they only avoid aborts.
//!
//! # Order of steps
//!
//! - *Observing*: look, lock to scan, and look again if the version has changed meanwhile. From then on only the
//!   attempt itself can change it.
//! - *Changing*: the index names the node that it is about to change. It changes the node only if that is locked to be
//!   changed, or can be locked at once. Otherwise the attempt waits for the lock and begins again, because another node
//!   may be affected by then.
//! - A node that the attempt splits off is locked in the same ways as the node that it was a part of.
//! - Locks are held until dead records have been taken out of the index, which is an attempt's last change.
//!
//! # Conflicts left to the check
//!
//! Another transaction's split moves records to a leaf that their maker has not locked. If the maker then takes them
//! out (after an abort, or a deletion), a transaction that has scanned that leaf meanwhile is aborted. So is one that
//! has observed a bucket of a hash index that grows.

use crate::kernel::abort::{Abort, Reason};
use crate::kernel::attempt::Attempt;
use crate::kernel::capabilities::Absent;
use crate::kernel::loss::DeadlockPart;
use crate::kernel::object::Object;
use crate::kernel::protocol::{ConflictCause, ConflictTarget, Protocol};
use crate::kernel::slots::Moments;
use crate::kernel::transaction::ObjectAccess;
use crate::memory::identity::ObjectMeta;
use crate::memory::structure::{Observed, OpenObservation, StructureChange, StructureVersion};
use std::ptr::NonNull;

/// The purpose of a range lock. Locks of the same kind are compatible, those of different kinds are not: scans and
/// failed lookups leave the node as it is, and each of two insertions only has to find its own key free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RangeUse {
    /// A scan of it, or a failed lookup in it.
    Scan,
    /// An insertion into it, or a removal from it.
    Change,
}

/// The identity of a bucket or leaf. Two may have the same identity, and are then locked together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RangeId(u32);

impl RangeId {
    fn of(meta: &ObjectMeta, version: u64) -> Self {
        Self::new(meta.place(), StructureVersion::number(version))
    }

    /// Returns the identity of the node with this number, of the object with this place among its engine's.
    ///
    /// Both numbers are the same in each run, as addresses are not, so that simulations are repeatable. The nodes of an
    /// index are numbered one by one; those of different objects are kept apart.
    pub fn new(place: u16, node: u32) -> Self {
        Self(u32::from(place).wrapping_mul(0x3d1).wrapping_add(node))
    }

    /// Its stripe out of `stripes`, a power of two. Nodes with neighbouring numbers, which are often in use at the same
    /// time, have stripes far apart.
    #[inline]
    pub fn stripe(self, stripes: usize) -> usize {
        (self.0 as usize).wrapping_mul(0x9e5) & (stripes - 1)
    }
}

/// Locks on buckets and leaves (stealdb §5), for a protocol under which transactions wait for each other. They keep
/// insertions into a scanned range from aborting the transaction that scans.
pub trait RangeLocks<P: Protocol>: Sized {
    /// True except for [`Absent`].
    const PRESENT: bool = true;

    /// Returns the capability of an engine's protocol.
    fn of(protocol: &P) -> Option<&Self>;

    /// Locks a bucket or leaf until the attempt's [cleanup](Protocol::after_cleanup) is over. False if it would have to
    /// [wait](Self::wait). Also called if the attempt has locked it already, for this use or the other.
    fn try_lock(&self, attempt: &Attempt<P>, range: RangeId, how: RangeUse) -> bool;

    /// Waits for the lock that [`try_lock`](Self::try_lock) did not get, and takes it.
    fn wait(&self, attempt: &mut Attempt<P>, range: RangeId, how: RangeUse) -> Result<(), Reason>;

    /// Returns the attempt's parts in the deadlocks that its last wait has been in.
    fn deadlocks(&self, _attempt: &Attempt<P>) -> Vec<DeadlockPart> {
        Vec::new()
    }

    /// True if the attempt has locked a bucket or leaf for this use.
    fn holds(&self, attempt: &Attempt<P>, range: RangeId, how: RangeUse) -> bool;
}

impl<P: Protocol> RangeLocks<P> for Absent {
    const PRESENT: bool = false;

    fn of(_protocol: &P) -> Option<&Self> {
        None
    }

    fn try_lock(&self, _: &Attempt<P>, _: RangeId, _: RangeUse) -> bool {
        match *self {}
    }

    fn wait(&self, _: &mut Attempt<P>, _: RangeId, _: RangeUse) -> Result<(), Reason> {
        match *self {}
    }

    fn holds(&self, _: &Attempt<P>, _: RangeId, _: RangeUse) -> bool {
        match *self {}
    }
}

impl<P: Protocol> ObjectAccess<'_, P> {
    /// Keeps the observation of a bucket or leaf: a failed lookup, or a part of a scan. False if it changed before it
    /// was locked or watched, so that the caller must look again. Never false where the attempt
    /// [does not refuse observations](Self::may_refuse_observations).
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
        // Whatever is kept after this belongs to this observation, if to any.
        self.attempt.end_observation();
        if !P::TRACKS_READS || self.attempt.hears(Moments::READ_APART) {
            if self.attempt.hears(Moments::READ) && !self.watch_node(observed) {
                return Ok(false);
            }
            if !self.keeps_observations() {
                self.attempt.note_seen_absence(object.meta());
                return self.refuse_on_snapshot(object.meta()).map(|()| true);
            }
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

    /// True if what is [observed](Self::observe) must hold until the attempt commits.
    #[inline]
    pub fn keeps_observations(&self) -> bool {
        P::TRACKS_READS && self.keeps_reads()
    }

    /// True if the engine's protocol locks [ranges](Protocol::RangeLocks).
    #[inline(always)]
    pub fn locks_ranges(&self) -> bool {
        P::RangeLocks::of(self.protocol).is_some()
    }

    /// True if operations can be [deferred](Protocol::Deferral) under the engine's protocol.
    #[inline(always)]
    pub fn allows_deferral(&self) -> bool {
        self.attempt.can_defer()
    }

    /// True if [`observe`](Self::observe) may return false: the protocol locks [ranges](Protocol::RangeLocks), or the attempt watches what it
    /// reads.
    #[inline(always)]
    pub fn may_refuse_observations(&self) -> bool {
        P::LOCKS_RANGES || self.attempt.features.watch.is_some()
    }

    /// Keeps what the object saw in the part of the node that it has observed last. If the node changes, the object can
    /// then [look again](Object::still_holds) at that part, instead of losing for a change elsewhere in the node.
    ///
    /// `seen` gets `elements` as copied into the attempt's memory, and a function that copies bytes there, and returns what is
    /// to be kept. It is not called if
    /// nothing was observed, or if an earlier observation includes this one. Without this call the observation stands for
    /// the whole node.
    ///
    /// # Safety
    ///
    /// The object of the last observation can work with what `seen` returns.
    #[inline]
    pub unsafe fn keep_seen<S: Copy, E: Copy>(
        &mut self,
        elements: &[E],
        seen: impl FnOnce(NonNull<[E]>, &mut dyn FnMut(&[u8]) -> NonNull<[u8]>) -> S,
    ) {
        if P::TRACKS_READS {
            self.attempt.keep_seen(elements, seen);
        }
    }

    /// The last observation, for [`keep_seen_for`](Self::keep_seen_for). `None` if nothing was observed, or an earlier observation includes it.
    #[inline]
    pub fn open_observation(&self) -> Option<OpenObservation> {
        if P::TRACKS_READS { self.attempt.open_observation() } else { None }
    }

    /// As [`keep_seen`](Self::keep_seen), for an observation after which the attempt may have done other things. It stays one of the whole
    /// node if another observation has come to rely on that.
    ///
    /// # Safety
    ///
    /// The object of that observation, which is the attempt's, can work with what `seen` returns.
    pub unsafe fn keep_seen_for<S: Copy, E: Copy>(
        &mut self,
        open: OpenObservation,
        elements: &[E],
        seen: impl FnOnce(NonNull<[E]>, &mut dyn FnMut(&[u8]) -> NonNull<[u8]>) -> S,
    ) {
        self.attempt.keep_seen_for(open, elements, seen);
    }

    /// True if a bucket or leaf may be changed: it is locked for that, now if not before, or the protocol does not lock
    /// ranges. If false, [`lock_to_change`](Self::lock_to_change) waits for the lock.
    #[inline]
    pub fn may_change<O: Object<P>>(&self, object: &O, observed: Observed) -> bool {
        P::RangeLocks::of(self.protocol).is_none_or(|locks| {
            let range = RangeId::of(object.meta(), observed.version);
            locks.try_lock(self.attempt, range, RangeUse::Change)
        })
    }

    /// Locks a bucket or leaf that is to be changed. Afterwards another node may have to be changed instead.
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

    /// Follows a change of structure that the attempt itself has made. Locks a split-off node in the same ways as the
    /// node that it was a part of.
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
        if self.is_watching() {
            self.watch_insertion(change);
        }
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
        if locks.try_lock(self.attempt, range, how) {
            return Ok(());
        }
        let locked = locks.wait(self.attempt, range, how);
        for part in locks.deadlocks(self.attempt) {
            // SAFETY: observed by this object in this attempt.
            unsafe { self.attempt.report_range_deadlock(part, object, observed) };
        }
        locked.map_err(|reason| self.lose_range(object, observed, reason))
    }

    #[cold]
    fn lose_range<O: Object<P> + 'static>(
        &mut self,
        object: &O,
        observed: Observed,
        reason: Reason,
    ) -> Abort {
        if self.attempt.features.graph.has_blocked {
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

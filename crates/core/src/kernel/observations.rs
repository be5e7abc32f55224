//! The buckets and leaves that an attempt has observed: their notes, their locks, and their checks.
//!
//! # Range locks
//!
//! Under every protocol, a bucket or leaf that a transaction observes is checked at commit by its version
//! ([`structure`](crate::memory::structure)), so an insertion aborts every transaction that has scanned there. A protocol may
//! also lock it ([`RangeLocks`](crate::RangeLocks)), so that the insertion waits for the scan instead, and the scan for the insertion. The
//! check remains. Range locks are never needed for a correct result; they only avoid aborts.
//!
//! ## Order of steps
//!
//! - *Observing*: look, lock to scan, and look again if the version has changed meanwhile. From then on only the
//!   attempt itself can change it.
//! - *Changing*: the index names the node that it is about to change. It changes the node only if that is locked to be
//!   changed, or can be locked at once. Otherwise the attempt waits for the lock and begins again, because another node
//!   may be affected by then.
//! - A node that the attempt splits off is locked in the same ways as the node that it was a part of.
//! - Locks are held until dead records have been taken out of the index, which is an attempt's last change.
//!
//! ## Conflicts left to the check
//!
//! Another transaction's split moves records to a leaf that their maker has not locked. If the maker then takes them
//! out (after an abort, or a deletion), a transaction that has scanned that leaf meanwhile is aborted. So is one that
//! has observed a bucket of a hash index that grows.

use crate::kernel::abort::{Abort, Reason};
use crate::kernel::attempt::Attempt;
use crate::kernel::capabilities::{RangeId, RangeLocks as _, RangeUse};
use crate::kernel::item::Flags;
use crate::kernel::object::Object;
use crate::kernel::object_access::ObjectAccess;
use crate::kernel::object_access::room_of_access;
use crate::kernel::protocol::{ConflictCause, ConflictTarget, Protocol};
use crate::kernel::slots::Moments;
use crate::memory::structure::{Contradiction, Observed, OpenObservation, StructureChange};
use std::ptr::NonNull;

room_of_access!(
    /// The part of an access that asks of the buckets and leaves that it observes and changes, and tells of them.
    StructureAccess,
    structure,
    structure_mut
);

impl<P: Protocol> Attempt<P> {
    #[inline]
    pub(crate) fn observe(
        &mut self,
        observed: Observed,
        by: NonNull<dyn Object<P>>,
    ) -> Result<(), ConflictCause> {
        match self.observed.structures.observe(observed) {
            Ok(first) => {
                if first {
                    self.observed.observers.push(by);
                }
                Ok(())
            }
            Err(Contradiction { position }) => {
                Err(ConflictCause::new(Reason::StructureChanged, ConflictTarget::Structure(position as u32)))
            }
        }
    }

    /// Returns a number under which a report finds a bucket or leaf. The attempt has lost over it and will not commit.
    pub(crate) fn enter_lost(&mut self, observed: Observed, by: NonNull<dyn Object<P>>) -> u32 {
        // If it contradicts an earlier observation, the report uses that one.
        let _ = self.observe(observed, by);
        self.observed.structures.number_of(observed.node).unwrap_or_default() as u32
    }

    pub(crate) fn follow(&mut self, change: StructureChange, by: NonNull<dyn Object<P>>) {
        self.observed.structures.follow(change);
        self.observed.observers.resize(self.observed.structures.len(), by);
    }

    /// The number of observed buckets and leaves.
    pub(crate) fn observations(&self) -> u32 {
        self.observed.structures.len() as u32
    }

    pub(crate) fn observation_at(&self, number: u32) -> (Observed, NonNull<dyn Object<P>>) {
        (self.observed.structures.get(number as usize), self.observed.observers[number as usize])
    }

    pub(crate) fn observation(&self, number: u32) -> (Observed, &dyn Object<P>) {
        let (observed, observer) = self.observation_at(number);
        // SAFETY: the caller of `observe` promised that the object lives until the attempt ends.
        (observed, unsafe { observer.as_ref() })
    }

    /// Checks that everything observed of buckets and leaves has held until now: the node is unchanged, or the object has
    /// looked again and found no change in the part that was observed.
    #[inline]
    pub fn check_structures(&self) -> Result<(), ConflictCause> {
        self.check_structures_by(Self::still_holds)
    }

    /// Checks the observations of buckets and leaves. `still_holds` decides, by their numbers, on those whose node has
    /// changed.
    #[inline]
    pub fn check_structures_by(&self, still_holds: impl Fn(&Self, u32) -> bool) -> Result<(), ConflictCause> {
        if self.observed.structures.is_empty() {
            return Ok(());
        }
        match self.observed.structures.first_changed(0..self.observed.structures.len(), self.pin().guard()) {
            None => Ok(()),
            Some(first) => self.check_changed_structures(first, still_holds),
        }
    }

    #[cold]
    fn check_changed_structures(
        &self,
        first: usize,
        still_holds: impl Fn(&Self, u32) -> bool,
    ) -> Result<(), ConflictCause> {
        let end = self.observed.structures.len();
        let mut changed = Some(first);
        while let Some(number) = changed {
            if !still_holds(self, number as u32) {
                return Err(ConflictCause::new(
                    Reason::StructureChanged,
                    ConflictTarget::Structure(number as u32),
                ));
            }
            changed = self.observed.structures.first_changed(number + 1..end, self.pin().guard());
        }
        Ok(())
    }

    /// True if the object can look again at what it has observed: the observation is one of a part of a node.
    pub fn is_of_part(&self, observation: u32) -> bool {
        self.observed.structures.seen(observation as usize).is_some()
    }

    /// True if the object has looked again at the part of a node that was observed, and has found no change.
    pub fn still_holds(&self, observation: u32) -> bool {
        let Some(seen) = self.observed.structures.seen(observation as usize) else { return false };
        let (_, object) = self.observation(observation);
        // SAFETY: the observer has kept it for this observation, in the arena of this attempt, which is pinned.
        unsafe { object.still_holds(seen, &|segment| self.has_made(segment), self.pin()) }
    }

    /// True if the attempt has made a segment.
    pub(crate) fn has_made(&self, segment: NonNull<P::Header>) -> bool {
        self.items.find(segment).is_some_and(|id| self.items.get(id).is(Flags::INSERTED))
    }

    /// The last observation, if something may be kept for it later.
    #[inline]
    pub(crate) fn open_observation(&self) -> Option<OpenObservation> {
        self.observed.structures.last_open()
    }

    /// Keeps no part for what was observed last.
    #[inline]
    pub(crate) fn end_observation(&mut self) {
        self.observed.structures.close();
    }

    /// Keeps what the object saw in the part of the node that it observed last; see
    /// [`StructureAccess::keep_seen`](crate::StructureAccess::keep_seen).
    #[inline]
    pub(crate) fn keep_seen<S: Copy, E: Copy>(
        &mut self,
        elements: &[E],
        seen: impl FnOnce(NonNull<[E]>, &mut dyn FnMut(&[u8]) -> NonNull<[u8]>) -> S,
    ) {
        if !self.observed.structures.is_open() {
            return;
        }
        let seen = self.copy_seen(elements, seen);
        self.observed.structures.keep_seen(seen);
    }

    /// As [`keep_seen`](Self::keep_seen), for an earlier observation.
    pub(crate) fn keep_seen_for<S: Copy, E: Copy>(
        &mut self,
        open: OpenObservation,
        elements: &[E],
        seen: impl FnOnce(NonNull<[E]>, &mut dyn FnMut(&[u8]) -> NonNull<[u8]>) -> S,
    ) {
        if self.observed.structures.is_still_open(open) {
            let seen = self.copy_seen(elements, seen);
            self.observed.structures.keep_seen_for(open, seen);
        }
    }

    #[inline]
    fn copy_seen<S: Copy, E: Copy>(
        &mut self,
        elements: &[E],
        seen: impl FnOnce(NonNull<[E]>, &mut dyn FnMut(&[u8]) -> NonNull<[u8]>) -> S,
    ) -> NonNull<u8> {
        let elements = NonNull::from(self.arena.allocate_copies(elements));
        let seen = seen(elements, &mut |bytes| NonNull::from(self.arena.allocate_copies(bytes)));
        NonNull::new(self.allocate(seen)).expect("the arena's memory")
    }
}

impl<P: Protocol> ObjectAccess<'_, P> {
    /// Keeps the observation of a bucket or leaf: a failed lookup, or a part of a scan. False if it changed before it
    /// was locked or watched, so that the caller must look again. Never false where the attempt
    /// [does not refuse observations](crate::StructureAccess::may_refuse_observations).
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
            if !self.structure().keeps_observations() {
                self.attempt.note_seen_absence(object.meta());
                return self.refuse_on_snapshot(object.meta()).map(|()| true);
            }
        }
        if let Some(locks) = P::RangeLocks::of(self.protocol) {
            // SAFETY: the caller's promise; and what was observed under the attempt's pinned epoch is in memory until the attempt ends.
            let unchanged = unsafe {
                self.lock_range(locks, NonNull::from(object), observed, RangeUse::Scan)?;
                observed.node.as_ref().unchanged(observed.version)
            };
            if !unchanged {
                return Ok(false);
            }
        }
        match self.attempt.observe(observed, NonNull::from(object)) {
            Ok(()) => self.learn_absence(Some(object.meta())).map(|()| true),
            Err(lost) => Err(self.lose(lost)),
        }
    }

    /// True if operations can be [deferred](Protocol::Deferral) under the engine's protocol.
    #[inline(always)]
    pub fn allows_deferral(&self) -> bool {
        self.attempt.can_defer()
    }

    /// Locks a node, and waits for the lock.
    ///
    /// # Safety
    ///
    /// As for [`observe`](Self::observe).
    #[inline(never)]
    pub(crate) unsafe fn lock_range(
        &mut self,
        locks: &P::RangeLocks,
        object: NonNull<dyn Object<P>>,
        observed: Observed,
        how: RangeUse,
    ) -> Result<(), Abort> {
        // SAFETY: the caller's promise.
        let by = unsafe { object.as_ref() };
        let range = RangeId::of(by.meta(), observed.version);
        if locks.try_lock(self.attempt, range, how) {
            return Ok(());
        }
        let locked = locks.wait(self.attempt, range, how);
        for part in locks.deadlocks(self.attempt) {
            // SAFETY: observed by this object in this attempt.
            unsafe { self.attempt.report_range_deadlock(part, by, observed) };
        }
        locked.map_err(|reason| {
            if self.attempt.has_blocked() {
                return Abort::INTERNAL;
            }
            let number = self.attempt.enter_lost(observed, object);
            self.lose(ConflictCause::new(reason, ConflictTarget::Structure(number)))
        })
    }
}

impl<P: Protocol> StructureAccess<'_, P> {
    /// True if what is [observed](crate::ObjectAccess::observe) must hold until the attempt commits.
    #[inline]
    pub fn keeps_observations(&self) -> bool {
        P::TRACKS_READS && self.keeps_reads()
    }

    /// True if the engine's protocol locks [ranges](Protocol::RangeLocks).
    #[inline(always)]
    pub fn locks_ranges(&self) -> bool {
        P::RangeLocks::of(self.protocol).is_some()
    }

    /// True if [`observe`](crate::ObjectAccess::observe) may return false: the protocol locks [ranges](Protocol::RangeLocks), or the attempt watches what it
    /// reads.
    #[inline(always)]
    pub fn may_refuse_observations(&self) -> bool {
        P::LOCKS_RANGES || self.is_watching()
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
    /// As for [`observe`](crate::ObjectAccess::observe).
    pub unsafe fn lock_to_change<O: Object<P> + 'static>(
        &mut self,
        object: &O,
        observed: Observed,
    ) -> Result<(), Abort> {
        match P::RangeLocks::of(self.protocol) {
            None => Ok(()),
            // SAFETY: the caller's promise.
            Some(locks) => unsafe {
                self.lock_range(locks, NonNull::from(object), observed, RangeUse::Change)
            },
        }
    }

    /// Follows a change of structure that the attempt itself has made. Locks a split-off node in the same ways as the
    /// node that it was a part of.
    ///
    /// # Safety
    ///
    /// As for [`observe`](crate::ObjectAccess::observe).
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
                    let observed = Observed { node, version };
                    // SAFETY: the caller's promise.
                    unsafe { self.lock_range(locks, NonNull::from(object), observed, how)? };
                }
            }
        }
        Ok(())
    }
}

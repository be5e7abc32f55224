//! The buckets and leaves that an attempt has observed, and their checks.

use super::Attempt;
use crate::kernel::abort::Reason;
use crate::kernel::item::Flags;
use crate::kernel::object::Object;
use crate::kernel::protocol::{ConflictCause, ConflictTarget, Protocol};
use crate::memory::structure::{Contradiction, Observed, OpenObservation, StructureChange};
use std::ptr::NonNull;

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
            Err(Contradiction { position }) => Err(ConflictCause {
                reason: Reason::StructureChanged,
                target: ConflictTarget::Structure(position as u32),
            }),
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
                return Err(ConflictCause {
                    reason: Reason::StructureChanged,
                    target: ConflictTarget::Structure(number as u32),
                });
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
    /// [`ObjectAccess::keep_seen`](crate::ObjectAccess::keep_seen).
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

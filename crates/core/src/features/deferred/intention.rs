//! An attempt's intentions: operations that have been deferred and have not run yet.

use crate::features::operations::Operation;
use crate::kernel::attempt::Attempt;
use crate::kernel::item::ItemId;
use crate::kernel::protocol::Protocol;

/// A deferred operation, and the segment that it works on.
pub(in crate::features) struct Intention<P: Protocol> {
    pub(super) operation: Operation<P>,
    /// The segment's item; none for a computation.
    pub(super) item: Option<ItemId>,
    /// Its place among the attempt's: that of the operation for which it was deferred, or its own.
    pub(super) order: u32,
    /// True if its inputs were known when it was deferred. Most have none.
    pub(super) was_ready: bool,
    /// The number of the object of which it finds a segment, or makes one, only when it runs ([`order`](super::order));
    /// [`NO_OBJECT`] for others.
    pub(super) finds_segment_of: u32,
}

/// A number that no object has.
pub(super) const NO_OBJECT: u32 = u32::MAX;

/// An operation whose segment is known only when others have run.
pub(super) struct Late<P: Protocol> {
    /// Finds the segment and defers the operation to it.
    pub(super) intention: Intention<P>,
    /// The number of the object of which it finds a segment.
    pub(super) object: u32,
    /// A lower bound of the ranks of segments that it finds.
    pub(super) rank: u64,
}

impl<P: Protocol> Clone for Late<P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P: Protocol> Copy for Late<P> {}

impl<P: Protocol> Clone for Intention<P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P: Protocol> Copy for Intention<P> {}

/// The intentions of an attempt.
pub(crate) struct Intentions<P: Protocol> {
    /// Intentions deferred since all earlier ones ran, in that order. Those deferred late come last until they are [put
    /// in order](Self::put_in_order).
    pub(super) waiting: Vec<Intention<P>>,
    pub(super) is_out_of_order: bool,
    /// Intentions in `waiting`, by their positions, that could not run at the last try.
    pub(super) held_back: Vec<u32>,
    /// Late operations, whose segments are not known yet.
    pub(super) late: Vec<Late<P>>,
    /// The late operation for which intentions are being deferred; they take its place.
    pub(super) resolving: Option<Late<P>>,
    /// The objects, by number, to whose indexes a waiting intention may add, or from which it may remove.
    pub(super) restructured: Vec<u32>,
    /// True if a waiting intention may remove from an index.
    pub(super) removes: bool,
    /// The objects, by number, of which a waiting intention may touch segments that are not known yet.
    pub(super) unsettled: Vec<u32>,
}

impl<P: Protocol> Intentions<P> {
    pub(crate) fn new() -> Self {
        Self {
            waiting: Vec::new(),
            is_out_of_order: false,
            held_back: Vec::new(),
            late: Vec::new(),
            resolving: None,
            restructured: Vec::new(),
            removes: false,
            unsettled: Vec::new(),
        }
    }

    /// Returns the first late operation for which `holds` is true.
    pub(super) fn find_late(&self, holds: impl Fn(&Late<P>) -> bool) -> Option<Late<P>> {
        self.late.iter().find(|late| holds(late)).copied()
    }

    /// Sorts the list: an intention that was deferred late has the place of the operation for which it was deferred.
    pub(super) fn put_in_order(&mut self) {
        if std::mem::take(&mut self.is_out_of_order) {
            self.waiting.sort_by_key(|intention| intention.order);
        }
    }

    /// True if any deferred intention may add to an index or remove from it.
    #[inline]
    pub(crate) fn will_restructure(&self) -> bool {
        !self.restructured.is_empty()
    }

    /// True if any deferred intention may remove from an index.
    #[inline]
    pub(crate) fn will_remove(&self) -> bool {
        self.removes
    }

    /// True if any has not run yet.
    #[inline]
    pub(crate) fn are_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Forgets the announced changes of indexes: they have been made, or never will be.
    #[inline]
    pub(super) fn leave_structures(&mut self) {
        self.restructured.clear();
        self.removes = false;
        self.unsettled.clear();
    }

    /// Forgets everything.
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.waiting.clear();
        self.is_out_of_order = false;
        self.held_back.clear();
        self.late.clear();
        self.resolving = None;
        self.leave_structures();
    }
}

impl<P: Protocol> Attempt<P> {
    /// True if an intention may add to an index or remove from it. Nobody can see that before the intention has run.
    #[inline(always)]
    pub fn will_restructure(&self) -> bool {
        self.features.intentions.will_restructure()
    }

    /// True if an intention may remove from an index. Nobody can see that before the intention has run.
    #[inline(always)]
    pub fn will_remove(&self) -> bool {
        self.features.intentions.will_remove()
    }

    /// Makes the attempt run its operations at once instead of deferring them, and log its reads. A protocol that defers
    /// calls it when the attempt begins.
    #[inline(always)]
    pub fn run_at_once(&mut self) {
        self.features.operations.run_at_once = true;
        self.read_path = self.path_of_logged_reads();
    }
}

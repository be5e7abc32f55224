//! An attempt's intentions: operations that have been recorded and have not run yet.

use super::Deferred;
use super::inputs::{Results, SharedResults};
use crate::abort::Abort;
use crate::item::ItemId;
use crate::protocol::Protocol;
use crate::transaction::Transaction;
use crate::users_code::Panics;

/// A recorded operation, and the segment that it works on.
pub(super) struct Intention<P: Protocol> {
    /// A `Node` in the arena, of the type that the functions know.
    pub(super) node: *mut u8,
    pub(super) functions: &'static NodeFunctions<P>,
    /// The segment's item; none for a computation.
    pub(super) item: Option<ItemId>,
    /// The number of its result.
    pub(super) slot: u32,
    /// Its place among the attempt's: that of the operation for which it was recorded, or its own.
    pub(super) order: u32,
    /// True if its inputs were known when it was recorded. Most have none.
    pub(super) was_ready: bool,
    /// The number of the object of which it finds a segment, or makes one, only when it runs ([`order`](super::order));
    /// [`NO_OBJECT`] for others.
    pub(super) finds_segment_of: u32,
}

/// The functions of an intention's node, independent of the node's type.
pub(super) struct NodeFunctions<P: Protocol> {
    pub(super) run: unsafe fn(*mut u8, &mut Transaction<'_, P>) -> Result<(), Abort>,
    /// True if all inputs are known.
    pub(super) is_ready: unsafe fn(*const u8, &Results) -> bool,
    /// [`Input::key_hash`](super::Input::key_hash) of its inputs.
    pub(super) key_hash: unsafe fn(*const u8, &Results) -> Option<u64>,
}

/// A number that no object has.
pub(super) const NO_OBJECT: u32 = u32::MAX;

/// An operation whose segment is known only when others have run.
pub(super) struct Late<P: Protocol> {
    /// Finds the segment and records the operation on it.
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

/// The intentions of an attempt and their results.
pub(crate) struct Intentions<P: Protocol> {
    /// Intentions recorded since all earlier ones ran, in that order. Those recorded late come last until they are [put
    /// in order](Self::put_in_order).
    pub(super) waiting: Vec<Intention<P>>,
    pub(super) is_out_of_order: bool,
    /// Intentions in `waiting`, by their positions, that could not run at the last try.
    pub(super) held_back: Vec<u32>,
    /// Late operations, whose segments are not known yet.
    pub(super) late: Vec<Late<P>>,
    /// The late operation for which intentions are being recorded; they take its place.
    pub(super) resolving: Option<Late<P>>,
    pub(crate) results: SharedResults,
    /// Nodes in the arena that must be dropped.
    nodes: Vec<(*mut u8, unsafe fn(*mut u8))>,
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
            results: SharedResults::new(),
            nodes: Vec::new(),
            restructured: Vec::new(),
            removes: false,
            unsettled: Vec::new(),
        }
    }

    /// Returns the first late operation for which `holds` is true.
    pub(super) fn find_late(&self, holds: impl Fn(&Late<P>) -> bool) -> Option<Late<P>> {
        self.late.iter().find(|late| holds(late)).copied()
    }

    /// Sorts the list: an intention that was recorded late has the place of the operation for which it was recorded.
    pub(super) fn put_in_order(&mut self) {
        if std::mem::take(&mut self.is_out_of_order) {
            self.waiting.sort_by_key(|intention| intention.order);
        }
    }

    /// Moves a result out, if it is known and still there. For the end of the attempt, when nothing else reads it.
    pub(crate) fn take_result<T>(&mut self, deferred: &Deferred<T>) -> Option<T> {
        self.results.take(deferred)
    }

    /// True if any recorded intention may add to an index or remove from it.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn will_restructure(&self) -> bool {
        !self.restructured.is_empty()
    }

    /// True if any recorded intention may remove from an index.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn will_remove(&self) -> bool {
        self.removes
    }

    /// True if any has not run yet.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn are_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Makes sure that the value at `node` is dropped at the end of the attempt.
    ///
    /// # Safety
    ///
    /// `node` points to a `T` in the arena that nobody else drops.
    #[inline]
    pub(crate) unsafe fn drop_later<T>(&mut self, node: *mut T) {
        unsafe fn drop_at<T>(node: *mut u8) {
            // SAFETY: `drop_later`'s caller promised that there is a `T` that nobody else drops.
            unsafe { node.cast::<T>().drop_in_place() };
        }
        if std::mem::needs_drop::<T>() {
            self.nodes.push((node.cast(), drop_at::<T>));
        }
    }

    /// Forgets the announced changes of indexes: they have been made, or never will be.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn leave_structures(&mut self) {
        self.restructured.clear();
        self.removes = false;
        self.unsettled.clear();
    }

    /// Leaks the nodes that are in the arena now.
    pub(crate) fn leak(&mut self) {
        self.nodes.clear();
    }

    /// Forgets everything.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn clear(&mut self, panics: &mut Panics) {
        self.waiting.clear();
        self.is_out_of_order = false;
        self.held_back.clear();
        self.late.clear();
        self.resolving = None;
        self.results.clear();
        self.leave_structures();
        if !self.nodes.is_empty() {
            self.drop_nodes(panics);
        }
    }

    fn drop_nodes(&mut self, panics: &mut Panics) {
        while let Some((node, drop_at)) = self.nodes.pop() {
            // SAFETY: entered once by `drop_later`, and taken out just now; the arena is reset only afterwards.
            panics.contain(|| unsafe { drop_at(node) });
        }
    }
}

//! An attempt's intentions: what has been recorded and has not run yet.

use super::Deferred;
use super::inputs::{Results, SharedResults};
use crate::abort::Abort;
use crate::item::ItemId;
use crate::protocol::Protocol;
use crate::transaction::Transaction;
use hotrow_sync::thread;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What is to be done, and with which segment.
pub(super) struct Intention<P: Protocol> {
    /// A `Node` in the arena, of the type that `run` and `is_ready_at` know.
    pub(super) node: *mut u8,
    pub(super) run: unsafe fn(*mut u8, &mut Transaction<'_, P>) -> Result<(), Abort>,
    pub(super) is_ready_at: unsafe fn(*const u8, &Results) -> bool,
    /// The segment's item; none for a computation.
    pub(super) item: Option<ItemId>,
    /// Where the result is.
    pub(super) slot: u32,
    /// Where it stands among the attempt's: the place of what it was recorded for, or its own.
    pub(super) order: u32,
    /// Whether its inputs were known when it was recorded. Most have none.
    pub(super) was_ready: bool,
    /// Whether operations recorded earlier have to find their segments first:
    /// [`follow_late`](Transaction::follow_late).
    pub(super) follows_late: bool,
}

/// An operation whose segment is known only when others have run.
pub(super) struct Late<P: Protocol> {
    /// Finds the segment and records what is to be done with it.
    pub(super) intention: Intention<P>,
    /// No segment that it finds ranks lower.
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
    /// Those that have been recorded since all earlier ones ran, in that order.
    pub(super) waiting: Vec<Intention<P>>,
    /// Those whose segments are not known yet.
    pub(super) late: Vec<Late<P>>,
    /// What is recorded now is recorded for this one, and belongs where it stands.
    pub(super) resolving: Option<Late<P>>,
    pub(crate) results: SharedResults,
    /// What in the arena must be dropped.
    nodes: Vec<(*mut u8, unsafe fn(*mut u8))>,
    /// The objects, by number, to whose indexes one of those waiting may add, or take from.
    pub(super) restructured: Vec<u32>,
    /// Whether one of those waiting may take from an index.
    pub(super) removes: bool,
    /// The objects, by number, of which one of those waiting may touch segments that are not known yet.
    pub(super) unsettled: Vec<u32>,
}

impl<P: Protocol> Intentions<P> {
    pub(crate) fn new() -> Self {
        Self {
            waiting: Vec::new(),
            late: Vec::new(),
            resolving: None,
            results: SharedResults::new(),
            nodes: Vec::new(),
            restructured: Vec::new(),
            removes: false,
            unsettled: Vec::new(),
        }
    }

    /// The first of those whose segments are not known yet of which something holds.
    pub(super) fn find_late(&self, holds: impl Fn(&Late<P>) -> bool) -> Option<Late<P>> {
        self.late.iter().find(|late| holds(late)).copied()
    }

    /// Whether one whose segment is not known yet stands before a place.
    pub(super) fn has_late_before(&self, order: u32) -> bool {
        self.late.iter().any(|late| late.intention.order < order)
    }

    /// A result, if it is known.
    pub(crate) fn result<T: Clone>(&self, deferred: &Deferred<T>) -> Option<T> {
        self.results.get(deferred).cloned()
    }

    /// Whether any of those recorded may add to an index or take from it.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn will_restructure(&self) -> bool {
        !self.restructured.is_empty()
    }

    /// Whether any of those recorded may take from an index.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn will_remove(&self) -> bool {
        self.removes
    }

    /// Whether any has not run yet.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn are_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Sees to it that what is at `node` is dropped at the end of the attempt.
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

    /// Forgets what would have been done to indexes: it has been done, or will not be.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn leave_structures(&mut self) {
        self.restructured.clear();
        self.removes = false;
        self.unsettled.clear();
    }

    /// Forgets everything. A panic in a user's `Drop` passes on, and leaves the rest for the next call, which the
    /// transaction's own drop makes. Panics that come while that one passes on end here: they would end the process.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn clear(&mut self) {
        self.waiting.clear();
        self.late.clear();
        self.resolving = None;
        self.results.clear();
        self.leave_structures();
        while let Some((node, drop_at)) = self.nodes.pop() {
            // SAFETY: entered once by `drop_later`, and taken out just now; the arena is reset only afterwards.
            let drop_node = || unsafe { drop_at(node) };
            if thread::panicking() {
                let _ = catch_unwind(AssertUnwindSafe(drop_node));
            } else {
                drop_node();
            }
        }
    }
}

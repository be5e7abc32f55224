//! Recorded operations: the graph of what a transaction is going to do, and of the results that flow through it.
//!
//! A body that need not know a value now works with a handle to it, [`Deferred`]. Each operation that is recorded is a
//! *node* with the work to do, its inputs, which are results of earlier operations, and its own result. The inputs are
//! the edges of the graph. It is recorded once, by running the body, and in the same form whoever is going to run it:
//!
//! | executor | runs operations | source |
//! |---|---|---|
//! | [`deferred`](crate::features::deferred) | in order of rank, when the transaction commits | drp §5.1 |
//! | [`graph`](crate::features::graph) | by the owner and by workers that wait for it | stealdb §3 |
//!
//! An executor keeps with an operation what it needs to choose the next one. Procedures in pieces (`chop`, `ic3`) are not recorded: they
//! run once for each piece.
//!
//! # Memory
//!
//! Nodes and results are in the attempt's arena, so that none needs a heap call. A [`Deferred`] names its place by number,
//! and by a stamp that no other attempt has, so that one that outlives its transaction is refused and never followed.

mod access;
mod expression;
mod node;
mod results;
#[cfg(all(test, not(loom)))]
mod tests;
mod values;

pub use access::ContextAccess;
pub use expression::{And, DividedBy, Minus, Or, Plus, Remainder, Times};
pub use expression::{AtLeast, AtMost, Differs, Equals, GreaterThan, LessThan};
pub use expression::{Binary, Constant, Expression, Map, Operand, Operator};
pub(crate) use node::{Again, Once, Operation};
pub use results::{Input, Results};

use crate::memory::users_code::Panics;
use results::SharedResults;
use std::fmt;
use std::marker::PhantomData;

/// A value that is known when the transaction has committed, or as soon as it is forced.
///
/// It belongs to the attempt that made it; in any other it is
/// [`Misuse::ForeignDeferred`](crate::Misuse::ForeignDeferred).
pub struct Deferred<T> {
    stamp: u64,
    slot: u32,
    value: PhantomData<fn() -> T>,
}

impl<T> Clone for Deferred<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Deferred<T> {}

impl<T> fmt::Debug for Deferred<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Deferred").field("number", &self.slot).finish_non_exhaustive()
    }
}

/// Drops the value at an address.
type DropAt = unsafe fn(*mut u8);

/// The function that drops a `T`; `None` if none needs to be dropped.
const fn drop_of<T>() -> Option<DropAt> {
    /// # Safety
    ///
    /// There is a `T` that nobody else drops.
    unsafe fn drop_at<T>(node: *mut u8) {
        // SAFETY: the caller's promise.
        unsafe { node.cast::<T>().drop_in_place() };
    }
    if std::mem::needs_drop::<T>() { Some(drop_at::<T>) } else { None }
}

/// The memory of an attempt's recorded operations.
pub(crate) struct Operations {
    pub(crate) results: SharedResults,
    /// Nodes in the arena that must be dropped.
    nodes: Vec<(*mut u8, DropAt)>,
    /// True if an attempt of the transaction has lost by recording operations: no later one records any.
    pub(crate) has_lost: bool,
    /// True if the attempt records nothing.
    pub(crate) run_at_once: bool,
}

impl Operations {
    pub(crate) fn new() -> Self {
        Self { results: SharedResults::new(), nodes: Vec::new(), has_lost: false, run_at_once: false }
    }

    /// Moves a result out, if it is known and still there. For the end of the attempt, when nothing else reads it.
    pub(crate) fn take_result<T>(&mut self, deferred: &Deferred<T>) -> Option<T> {
        self.results.take(deferred)
    }

    /// Makes sure that the value at `node` is dropped at the end of the attempt.
    ///
    /// # Safety
    ///
    /// `node` points to a `T` in the arena that nobody else drops.
    #[inline]
    pub(crate) unsafe fn drop_later<T>(&mut self, node: *mut T) {
        // SAFETY: the caller's promise.
        unsafe { self.drop_by(node.cast(), drop_of::<T>()) };
    }

    /// As [`drop_later`](Self::drop_later), of a type that is known by its [`drop_of`] only.
    ///
    /// # Safety
    ///
    /// As for [`drop_later`](Self::drop_later).
    unsafe fn drop_by(&mut self, node: *mut u8, drop: Option<DropAt>) {
        self.nodes.extend(drop.map(|drop| (node, drop)));
    }

    /// Leaks the nodes that are in the arena now.
    pub(crate) fn leak(&mut self) {
        self.nodes.clear();
    }

    /// Forgets everything.
    #[inline]
    pub(crate) fn clear(&mut self, panics: &mut Panics) {
        self.results.clear();
        if !self.nodes.is_empty() {
            self.drop_nodes(panics);
        }
    }

    fn drop_nodes(&mut self, panics: &mut Panics) {
        while let Some((node, drop_at)) = self.nodes.pop() {
            // SAFETY: entered once by `drop_by`, and taken out just now; the arena is reset only afterwards.
            panics.contain(|| unsafe { drop_at(node) });
        }
    }
}

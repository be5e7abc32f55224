//! Deferred operations: work on values that are not known yet (drp §5.1).
//!
//! A transaction that adds one to a counter need not know the counter now. Under a protocol that [defers](Deferral) it
//! keeps the work as an *intention*: a closure, with the segment that it touches and the earlier results that it
//! needs. The commit first queues for the turns on all these segments (it *lines up*), and runs the intentions
//! afterwards, when nothing can go wrong any more. The result of an intention is a [`Deferred`](crate::Deferred) value, which may be an
//! input of other intentions and is read when the transaction has committed.
//!
//! Under every other protocol a deferred operation runs at once, and its result is known at once. So one transaction
//! text runs under every protocol.
//!
//! # Rules
//!
//! - An intention runs at most once in an attempt, after those whose results it needs.
//! - Operations on one key take effect in the order in which they were deferred, whatever they wait for (`order.rs`).
//!   Others run in any order.
//! - An operation whose segment is found by earlier ones is deferred [late](crate::ObjectAccess::defer_late): the
//!   attempt lines up in stages.
//! - All operations deferred so far run at once on [`Transaction::force`](crate::Transaction::force), on an operation
//!   that is not deferred on a segment with intentions, and on one that looks at an index that an intention will add
//!   to. The attempt then depends on its reads: it is *wild* (drp §4).
//! - An intention that panics ends its transaction with [`Error::Panicked`](crate::Error::Panicked), under every
//!   protocol. The transaction then has no effect.
//! - The closure of a computation or of a change never sees the transaction: it gets values and returns one. It must not
//!   start another transaction, like any code of a body.

mod counters;
mod footprint;
mod intending;
mod intention;
mod late;
mod order;
mod running;

pub(crate) use counters::COUNTERS;
pub(crate) use footprint::{Footprint, line_up_early};
pub(crate) use intention::Intentions;
pub(crate) use running::Execution;

use crate::kernel::attempt::Attempt;
use crate::kernel::item::{Flags, Item, ItemId};
use crate::kernel::protocol::{Absent, ConflictCause, Protocol};

/// Bits 64 to 256 of an item's flags are those of deferred operations.
impl Flags {
    /// An operation on the segment was deferred.
    pub const DEFERRED: Flags = Flags(64);
    /// A deferred operation may change the segment.
    pub const DEFERRED_WRITE: Flags = Flags(128);
    /// An intention could not run yet, so later ones of the segment must not run.
    pub(crate) const HELD_BACK: Flags = Flags(256);
}

/// The protocol's part in deferred operations: it gives turns on segments, in an order that all transactions keep (drp
/// §4).
pub trait Deferral<P: Protocol>: Sized {
    /// True except for [`Absent`].
    const PRESENT: bool = true;

    /// Returns the capability of an engine's protocol.
    fn of(protocol: &P) -> Option<&Self>;

    /// Notes that the first operation on a segment is deferred. `rank` is its [`Object::rank`](crate::Object::rank).
    fn deferred(&self, attempt: &mut Attempt<P>, item: ItemId, rank: u64);

    /// Queues for a turn on every segment with [deferred](crate::Flags::DEFERRED) operations or a pending write whose
    /// [rank](crate::Object::rank) is below `below`, if that is given. Called before [`Protocol::prepare`], if anything
    /// was deferred: with growing limits as long as there are operations whose segments are not known yet, and at last
    /// without one. After an `Err`, [`Protocol::abort`] follows.
    fn line_up(&self, attempt: &mut Attempt<P>, below: Option<u64>) -> Result<(), ConflictCause>;

    /// True if it is the attempt's turn on a segment, so that it may run its intentions there. False if it has not
    /// lined up for the segment yet. Otherwise waits for the turn if `wait`, and returns false if not.
    fn acquire_in_order(
        &self,
        attempt: &mut Attempt<P>,
        item: ItemId,
        wait: bool,
    ) -> Result<bool, ConflictCause>;

    /// Notes that all intentions on a segment have run.
    fn segment_done(&self, attempt: &mut Attempt<P>, item: ItemId);

    /// Tells which segments the next attempt of the same transaction should queue for before its body runs: the
    /// *footprint* of an attempt that has just lost. None if the next attempt should begin like the first.
    fn footprint(
        &self,
        _attempt: &mut Attempt<P>,
        _lost: &ConflictCause,
        _keep: &mut dyn FnMut(&Item<P>, Access),
    ) {
    }

    /// Queues, before the body runs, for the segments in the footprint of the attempt before. Called after
    /// [`Protocol::begin`], with items that nobody has touched yet.
    fn line_up_early(&self, _attempt: &mut Attempt<P>, _footprint: &[(ItemId, Access)]) {}
}

impl<P: Protocol> Deferral<P> for Absent {
    const PRESENT: bool = false;

    fn of(_protocol: &P) -> Option<&Self> {
        None
    }

    fn deferred(&self, _: &mut Attempt<P>, _: ItemId, _: u64) {
        match *self {}
    }

    fn line_up(&self, _: &mut Attempt<P>, _: Option<u64>) -> Result<(), ConflictCause> {
        match *self {}
    }

    fn acquire_in_order(&self, _: &mut Attempt<P>, _: ItemId, _: bool) -> Result<bool, ConflictCause> {
        match *self {}
    }

    fn segment_done(&self, _: &mut Attempt<P>, _: ItemId) {
        match *self {}
    }
}

/// The access of a deferred operation to its segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// It reads the segment.
    Read,
    /// It changes the segment.
    Write,
}

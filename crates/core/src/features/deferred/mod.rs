//! Deferred operations: work on values that are not known yet (drp §5.1).
//!
//! A transaction that adds one to a counter need not know the counter now. Under a protocol that [defers](crate::Deferral) it
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
//! - An operation whose segment is found by earlier ones is deferred [late](crate::DeferralAccess::defer_late): the
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
mod reading;
mod running;

pub(crate) use counters::COUNTERS;
pub(crate) use footprint::{Footprint, line_up_early};
pub(crate) use intention::Intentions;
pub(crate) use running::Execution;

use crate::kernel::item::Flags;
use crate::kernel::object_access::room_of_access;

room_of_access!(
    /// The part of an access that asks of [deferral](crate::deferred), and tells it.
    DeferralAccess,
    deferral,
    deferral_mut
);

/// Bits 64 to 256 of an item's flags are those of deferred operations.
impl Flags {
    /// An operation on the segment was deferred.
    pub const DEFERRED: Flags = Flags(64);
    /// A deferred operation may change the segment.
    pub const DEFERRED_WRITE: Flags = Flags(128);
    /// An intention could not run yet, so later ones of the segment must not run.
    pub(crate) const HELD_BACK: Flags = Flags(256);
}

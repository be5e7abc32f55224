//! The graph of a transaction's operations, which other workers may run (stealdb §3).
//!
//! Under a protocol that lets others [steal](Stealing) operations, a transaction whose way is barred by another one, or
//! for which others wait, does not run its operations itself one after the other. It *draws* them: each becomes a node with
//! the results that it needs, so that the procedure's own source, run once, gives the graph (stealdb §3.1 has it made
//! beforehand, by hand). Then it runs what can be run, and so do those that wait for it, who find the operations on its
//! [`StealableOperations`].
//!
//! # Who runs an operation
//!
//! An operation's word on the board says which batch of operations it belongs to, and its state:
//!
//! ```text
//! WAITING ──(its last input)──► RUNNABLE ──► TAKEN ──► DONE ──► FINISHED
//!    └────(its last input)────────────────────┘ └──► GIVEN_BACK ──┘
//! ```
//!
//! Whoever changes it to `TAKEN`, by one compare-and-swap of batch and state, runs it, and nobody else ever does (stealdb,
//! Algorithm 2, line 1). The owner then marks it `FINISHED`; a thief `DONE`, for the owner to adopt what it has done. A
//! thief never waits for a lock: if one is not free, it gives the operation back, of which nothing has happened, and the
//! owner runs it when all before it are finished.
//!
//! # What a thief touches
//!
//! Not the owner's attempt, which is the owner's alone. Each operation on the board has an attempt of its own, its *share*,
//! with tracking set and memory; a thief runs the operation with that, in the owner's name: locks say that they are the
//! owner's. The owner adopts the share afterwards: its items become the attempt's.
//!
//! What an operation has been given (its node, the results that it needs, the share) is the owner's memory. It stays until
//! the attempt ends, and the owner does not go on, whatever happens, before nobody runs any of its operations any more.
//!
//! # Order
//!
//! Operations come after those whose results they need. Two on the same key stay in their order: the later one is the
//! owner's, in its turn. If one that others may run needs its result, it is on the board, and so are those of the owner's
//! that were drawn before it; those after it wait for it. All others may run in any order: they commute, as each has its
//! locks until the attempt ends.

mod drawing;
mod running;
mod stealable_operations;
mod stolen_work;
mod word;

use crate::abort::Reason;
use crate::attempt::{Attempt, WorkerId};
use crate::item::{Flags, Item, ItemId};
use crate::protocol::{Absent, Protocol};

pub use drawing::By;
pub(crate) use drawing::Graph;
pub use stealable_operations::{BATCH_BITS, BATCH_LOW, Found, StealableOperations, Taken};

/// Bit 1024 of an item's flags is that of stolen operations.
impl Flags {
    /// Another worker has made it for the attempt.
    pub(crate) const ADOPTED: Flags = Flags(1024);
}

impl<P: Protocol> Attempt<P> {
    /// True if an operation that meets a lock which is not free must give up, to be tried again later. It then returns
    /// [`would_block`](Self::would_block) at once.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn nonblocking(&self) -> bool {
        self.graph.nonblocking
    }

    /// Notes that an operation gave up because it would have blocked. Returns the reason to give; nobody counts it.
    pub fn would_block(&mut self) -> Reason {
        self.graph.has_blocked = true;
        Reason::WriteLocked
    }

    /// True if other workers may run operations of the attempt now, and hold locks for it.
    pub fn is_published(&self) -> bool {
        self.graph.is_published
    }
}

/// The protocol's part in stealing: who waits for whom, and who hears of operations to be run (stealdb §3).
pub trait Stealing<P: Protocol>: Sized {
    /// True, but for [`Absent`].
    const PRESENT: bool = true;

    /// The capability of an engine's protocol. `None` if this variant of it does not let others run operations.
    fn of(protocol: &P) -> Option<&Self>;

    /// The board on which a worker's operations are found.
    fn board(&self, worker: WorkerId) -> &StealableOperations<P>;

    /// True if a worker waits for the attempt, so that it could run operations.
    fn has_waiters(&self, attempt: &Attempt<P>) -> bool;

    /// Notes that operations of the attempt are on its board, `stealable` of which can be stolen.
    fn published(&self, attempt: &mut Attempt<P>, batch: u64, stealable: u32);

    /// As [`published`](Self::published), to the attempt's own worker only, which may run them as a thief would.
    fn published_ahead(&self, attempt: &mut Attempt<P>, batch: u64, stealable: u32);

    /// True if the attempt runs operations while it waits for its first lock.
    fn runs_ahead(&self, attempt: &Attempt<P>) -> bool;

    /// The protocol state that a thief uses on the owner's behalf. Locks that the thief takes are the owner's; a thief must
    /// not block ([`Attempt::nonblocking`]).
    fn thief_state(&self, owner: WorkerId) -> P::Local;

    /// Merges an item that a thief recorded into the owner's item, where the owner may hold the same lock. The caller joins
    /// flags and mark.
    fn adopt(&self, attempt: &mut Attempt<P>, mine: ItemId, detached: &Item<P>);
}

impl<P: Protocol> Stealing<P> for Absent {
    const PRESENT: bool = false;

    fn of(_protocol: &P) -> Option<&Self> {
        None
    }

    fn board(&self, _: WorkerId) -> &StealableOperations<P> {
        match *self {}
    }

    fn has_waiters(&self, _: &Attempt<P>) -> bool {
        match *self {}
    }

    fn published(&self, _: &mut Attempt<P>, _: u64, _: u32) {
        match *self {}
    }

    fn published_ahead(&self, _: &mut Attempt<P>, _: u64, _: u32) {
        match *self {}
    }

    fn runs_ahead(&self, _: &Attempt<P>) -> bool {
        match *self {}
    }

    fn thief_state(&self, _: WorkerId) -> P::Local {
        match *self {}
    }

    fn adopt(&self, _: &mut Attempt<P>, _: ItemId, _: &Item<P>) {
        match *self {}
    }
}

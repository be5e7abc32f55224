//! The graph of a transaction's operations, which other workers may run (stealdb §3).
//!
//! Under a protocol that lets others [steal](crate::Stealing) operations, a transaction that would block, or that others wait
//! for, does not run its operations itself one after the other. It *enqueues* them for waiting workers to steal: each
//! becomes a node with the results that it needs. So the procedure's own source, run once, gives the graph (stealdb
//! §3.1 has it made beforehand, by hand). Then the owner runs its runnable operations, and so do workers that wait for
//! it; they find them in its [`StealableOperations`], its *board*.
//!
//! # Claiming an operation
//!
//! An operation's word on the board says which batch of operations it belongs to, and its state:
//!
//! ```text
//! WAITING ──(its last input)──► RUNNABLE ──► TAKEN ──► DONE ──► FINISHED
//!    └────(its last input)────────────────────┘ └──► GIVEN_BACK ──┘
//! ```
//!
//! A worker claims an operation by changing its word to `TAKEN`, with one compare-and-swap of batch and state; only
//! that worker ever runs it (stealdb, Algorithm 2, line 1). The owner then marks it `FINISHED`; a thief marks it
//! `DONE`, so that the owner adopts the stolen work. A thief never waits for a lock. If one is not free, it gives the
//! operation back with no effect, and the owner runs it when all before it are finished.
//!
//! # Stolen work
//!
//! A thief never touches the owner's attempt. Each operation on the board has an attempt of its own for the *stolen
//! work*, with tracking set and memory. A thief runs the operation with that, in the owner's name: locks say that they
//! are the owner's. The owner adopts the stolen work afterwards, so that its items become the attempt's.
//!
//! The inputs of an operation (its node, the results that it needs) and its stolen work are the owner's memory. They
//! stay until the attempt ends. The owner never leaves a batch while another worker runs one of its operations.
//!
//! # Order
//!
//! Operations come after those whose results they need. Two on the same key stay in their order: the later one is the
//! owner's, in its turn. If a stealable operation needs its result, it goes on the board, together with the owner's
//! earlier operations on rows; later ones wait for it. All others may run in any order: they commute, as each holds its
//! locks until the attempt ends.

mod counters;
mod enqueue;
mod running;
mod stealable_operations;
mod stolen_work;
mod word;

use crate::kernel::abort::Reason;
use crate::kernel::attempt::Attempt;
use crate::kernel::item::Flags;
use crate::kernel::object_access::ObjectAccess;
use crate::kernel::object_access::room_of_access;
use crate::kernel::protocol::Protocol;

room_of_access!(
    /// The part of an access that asks of [operations that others may run](crate::graph), and tells them.
    StealingAccess,
    stealing,
    stealing_mut
);

pub use crate::kernel::capabilities::StealableOperations;
pub(crate) use counters::COUNTERS;
pub use enqueue::By;
pub(crate) use enqueue::EnqueuedOperations;
pub(crate) use stealable_operations::Board;
pub use stealable_operations::{BATCH_BITS, BATCH_LOW, TakeResult, TakenOperation};

/// Bit 1024 of an item's flags is that of stolen operations.
impl Flags {
    /// Another worker has recorded it for the attempt.
    pub(crate) const ADOPTED: Flags = Flags(1024);
}

impl<P: Protocol> Attempt<P> {
    /// True if an operation that finds a lock taken must give up, to be tried again later. It then returns
    /// [`would_block`](Self::would_block) at once.
    #[inline]
    pub fn nonblocking(&self) -> bool {
        self.features.graph.nonblocking
    }

    /// Notes that an operation gave up because it would have blocked. Returns the reason to give, which is not counted.
    pub fn would_block(&mut self) -> Reason {
        self.features.graph.has_blocked = true;
        Reason::WriteLocked
    }

    /// True if an operation gave up because it would have blocked.
    #[inline(always)]
    pub(crate) fn has_blocked(&self) -> bool {
        self.features.graph.has_blocked
    }

    /// True if other workers may run operations of the attempt now, and hold locks for it.
    pub fn is_published(&self) -> bool {
        self.features.graph.is_published
    }
}

impl<P: Protocol> ObjectAccess<'_, P> {
    /// Lets the operation block from here on, because it has had an effect. (A thief gives it up instead.)
    #[inline]
    pub(crate) fn has_written(&mut self) {
        if self.attempt.allows_stealing() && !self.attempt.features.graph.is_thief {
            self.attempt.features.graph.nonblocking = false;
        }
    }
}

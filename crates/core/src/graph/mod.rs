//! The graph of a transaction's operations, which other workers may run (stealdb §3).
//!
//! Under a protocol that [shares](crate::Protocol::SHARES) operations, a transaction whose way is barred by another one, or
//! for which others wait, does not run its operations itself one after the other. It *draws* them: each becomes a node with
//! the results that it needs, so that the procedure's own source, run once, gives the graph (stealdb §3.1 has it made
//! beforehand, by hand). Then it runs what can be run, and so do those that wait for it, who find the operations on its
//! [`Board`].
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

mod board;
mod drawing;
mod running;
mod share;
mod word;

pub use board::{BATCH_BITS, BATCH_LOW, Board, Found, Taken};
pub use drawing::By;
pub(crate) use drawing::Graph;

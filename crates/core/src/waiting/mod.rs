//! Waiting for a change of what was read: `retry` (Harris, Marlow, Peyton Jones and Herlihy, "Composable Memory Transactions",
//! PPoPP 2005).
//!
//! # Algorithm
//!
//! A body that finds that it cannot go on yet calls [`Transaction::retry`](crate::Transaction::retry). Its attempt ends without
//! effect and holds nothing. If it has *watched*, its transaction then parks until something that it has read changes; else the
//! body runs once more, and watches. So a transaction that never calls `retry` pays nothing, and reads know nothing of it: an
//! attempt that watches takes the path of attempts that are recorded in a history.
//!
//! An attempt watches a segment, or a bucket or leaf (a *node*), by an entry in the engine's [registry](Waiting): the address, and
//! the transaction's [`Waiter`]. A commit that finds that anybody watches looks its written segments up there, and the nodes that
//! its insertions have changed, and tells the waiters. The lists are striped by address.
//!
//! # No lost wake-up
//!
//! The entry is made *before* the segment is read, or the node's version checked. So no validation is needed, and the argument is
//! the same under every protocol:
//!
//! - The attempt: counts itself as a watcher, enters, executes a fence, loads the value.
//! - The commit: takes the segment's lock, looks if there are watchers, installs, unlocks.
//!
//! If the look comes before the count in the order of sequentially consistent accesses, then so does the lock, and the load comes
//! after both: it finds the lock, waits for its end or fails, and what it returns is the new value. Otherwise the commit sees the
//! watcher. Under a protocol that lets others load the old value until it is installed
//! ([`READS_PASS_PREPARED`](crate::Protocol::READS_PASS_PREPARED)) the commit looks once more, behind a fence, when all is
//! installed. A commit that is one region looks in the region, or behind it. For nodes, the latch is the lock, and an attempt
//! looks when it has changed one.
//!
//! Nodes are split, replaced and unlinked. Whoever retires one tells those that watch it at once. The attempt that has changed or
//! split one tells them when it ends, committed or not: a part of its range may be elsewhere by then.
//!
//! # Waking
//!
//! Entries stay until the waiter takes them out, so a waiter that is told twice is woken once. It runs its body again, and may
//! retry again: the wake-up was *in vain*, which is counted. Addresses are only compared, never followed, so it does not matter
//! that a segment's memory may be used again.

mod body;
mod registry;
mod sleep;
mod task;
mod waiter;
mod watch;

#[cfg(all(test, loom))]
mod models;

pub(crate) use registry::Waiting;
pub use registry::WatchedNodes;
pub(crate) use sleep::Waits;
pub(crate) use task::Acknowledgement;
pub use task::TransactFuture;
pub(crate) use waiter::Waiter;
pub(crate) use watch::Watch;

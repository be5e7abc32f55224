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
//! its insertions have changed, and tells a waiter. The lists are striped by address.
//!
//! An attempt that watches has an entry for all on which its body depends, because all of it comes from the operations here: every
//! segment of which it has loaded anything, be it a value, a condition or the presence of a row that it changes at the commit; every
//! node that it has observed; and every node into which it has inserted, because it depends on the key's having been free. (An
//! insertion that is refused has read the row that is in its way.) What it only writes is no matter.
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
//! Nodes are split, replaced and unlinked. Whoever retires one tells those that watch it at once. The attempt that has changed one
//! tells them when it has committed, and one that has split it also when it has not: a part of its range may be elsewhere by then.
//!
//! # Waking one, and passing on
//!
//! Most of those that wait for the same thing are alike: one new element of a queue is for one of a thousand. So a change wakes one
//! waiter, the first that needs it, and that one passes the change on when its run is over, to the next one. Entries have
//! numbers in the order in which they were made. The change is *owed* to all entries of its address whose number is below that of the
//! next one at the time of the change; later ones were made before a load that finds the new value.
//!
//! - *Need.* The conditions of a waiter's predicates are beside its entry ([`Object::facts`](crate::Object::facts)). An attempt that
//!   chooses and has the object at hand asks if they still hold; then the waiter would find the same again, and is not woken. That is
//!   no loss: each later commit asks again, after it has installed. Of values that were read exactly nobody judges, so such waiters
//!   need each change.
//! - *Passing on.* A waiter that was told owes the change to those behind it. It pays when it is about to sleep again, when it has
//!   committed, and in any case when its [`Watch`] is dropped: after an error, a panic, a timeout, with a future that is dropped.
//! - *Invariant.* If an entry is owed a change and its waiter needs it, then it is told, or somebody who was told owes the change to a
//!   number above its own and has not paid. A waiter that pays, or a commit that makes a change, looks at the entries in their order:
//!   it tells the first that needs it and was not told (of those that nobody judges, two), and these take the debt over; one that was
//!   told before takes it over, too. A new change goes past those that were told, so that as many waiters run at a time as there were
//!   changes.
//! - *End.* A waiter that goes back to sleep has a number above its debt, so a change visits each waiter once at most.
//!
//! A waiter runs its body again, and may retry again: the wake-up was *in vain*, which is counted. Addresses are only compared, never
//! followed, so it does not matter that a segment's memory may be used again. Facts are looked at by the object alone that has made
//! them.

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
pub use task::TransactFuture;
pub(crate) use waiter::Waiter;
pub(crate) use watch::Watch;

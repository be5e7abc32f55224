//! Waiting for a lock: the queue, and upgrades beside it (stealdb §3.3, Algorithm 4).
//!
//! # The queue
//!
//! The queue is a chain of nodes, each of which knows the one behind it; the lock's word knows the last. A joining
//! worker takes its predecessor from the word and links itself behind it ([`try_lock`](Queues::try_lock), the
//! paper's TRYLOCK). The chain does not pass the lock, but the right to be the *head*. The head takes the lock from
//! the word as soon as nobody is in its way ([`check_acquired`](Queues::check_acquired), the paper's CHECKACQUIRED).
//! It then leaves the queue, so that the next one is the head. So a reader behind a reader follows at once, and both
//! share the lock. Nobody overtakes: a worker that finds the queue not empty joins it, whichever mode it wants.
//!
//! One exchange of `next` makes each link, or finds it missing. If the head leaves before the node behind it is
//! linked, it puts [`PASSED`] there. The worker that then links finds that it is the head. So nobody waits for
//! another worker in the middle of a step.
//!
//! A worker that gives up waiting marks its node as abandoned. If it is the head, it passes that right on. Otherwise
//! the node stays in the chain, and the worker that passes it the head's right passes the right further. One
//! exchange of `state` decides between the two.
//!
//! # Upgrades
//!
//! A worker that shares a lock and wants it exclusively is not in the queue, because those in the queue wait for it.
//! The lock's word marks the upgrade. From then on nobody takes the lock before it, and it waits for the other
//! readers to leave. Two upgrades would wait for each other for ever, so the younger one loses, whichever came
//! first.
//!
//! # Events to wait at
//!
//! All waiters wait at events of workers, so that nothing depends on the addresses of locks in memory.
//!
//! A node that is not the head waits at its worker's own event. The worker that passes it the head's right tells it.
//! The head waits at the event of the worker that holds the lock exclusively or upgrades, which tells it. For
//! readers the head waits at its own event, and so does an upgrade: the word names it, and the last reader in its
//! way tells it. A worker that makes the word name another one tells those that wait at the previous event.
//!
//! A head that waits for readers checks whether the word still names it, not whether there are readers. Meanwhile an
//! upgrade may have put another name there, and have gone.

use super::found::FoundDeadlocks;
use super::lock::{Blocker, Joined, QueueLock, Released, Upgraded};
use super::node::{ABANDONED, BlockedBy, EXCLUSIVE, HEAD, NodeId, Nodes, PASSED};
use super::options::StealingMode;
use super::stealing::Thieves;
use super::word::Word;
use crate::queue_place::QueuePlace;
use crate::worker_states::{AttemptStamp, Waited, WorkerStates};
use hotrow_core::WaitLimit;
use hotrow_sync::atomic::Ordering;
use hotrow_sync::profile::waiting;

/// Distance from the head of a queue from which a waiter runs operations of its own: their locks are held until its
/// turn is over.
const NEAR: u32 = 4;

/// All queues of an engine.
#[derive(Debug)]
pub(super) struct Queues {
    pub(super) nodes: Nodes,
    pub(super) thieves: Thieves,
    pub(super) deadlocks: FoundDeadlocks,
}

/// A transaction's request for a lock.
#[derive(Debug, Clone, Copy)]
pub(super) struct LockRequest {
    /// The segment's address, or that of a range's lock.
    pub(super) address: usize,
    /// The requesting attempt.
    pub(super) stamp: AttemptStamp,
    /// True for the exclusive mode.
    pub(super) exclusive: bool,
    /// True if it holds another lock. If not, others wait for it only if they are behind it in the queue.
    pub(super) holds: bool,
}

/// The reasons for which a request fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    /// The deadline has passed, or the worker has too many abandoned nodes in queues.
    Unavailable,
    /// The transaction is the victim of a deadlock.
    Victim,
}

/// Result of trying to take a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tried {
    /// The lock is taken.
    Acquired,
    /// The request waits in this node.
    Queued(NodeId),
    /// All nodes of the worker are still in queues.
    NoNode,
}

impl Queues {
    pub(super) fn new(stealing: StealingMode) -> Self {
        Self { nodes: Nodes::new(), thieves: Thieves::new(stealing), deadlocks: FoundDeadlocks::default() }
    }

    /// Makes the queues of an engine with this number of workers, all of which have begun and none of which steals.
    #[cfg(any(test, loom))]
    pub(super) fn of_workers(workers: u32) -> Self {
        let queues = Self::new(StealingMode::Never);
        (0..workers).for_each(|worker| queues.nodes.admit(worker));
        // Makes the workers' places in advance: making them is no part of any model.
        (0..workers).for_each(|worker| queues.nodes.wait_is_over(worker));
        queues
    }

    /// Takes the lock, or a place in its queue.
    pub(super) fn try_lock(&self, word: &impl Word, request: LockRequest) -> Tried {
        let LockRequest { address, stamp, exclusive, .. } = request;
        let Some(id) = self.nodes.open(stamp.worker(), address, if exclusive { EXCLUSIVE } else { 0 }) else {
            return Tried::NoNode;
        };
        let node = self.nodes.of(id);
        let is_head = match word.join(id, exclusive, |before| node.set_previous(before)) {
            Joined::Taken => {
                self.nodes.wait_is_over(stamp.worker());
                self.nodes.free(id);
                return Tried::Acquired;
            }
            Joined::Behind(None) => true,
            Joined::Behind(Some(before)) => {
                // Acquire and release: pairs with the exchange in `pass_on`. The second of the two sees the first.
                let passed = self.nodes.of(before).next.swap(id.word(), Ordering::AcqRel) == PASSED;
                if passed {
                    self.nodes.free(before);
                }
                passed
            }
        };
        if is_head {
            // Only its worker gives the node this right, because nobody is before it.
            node.state.fetch_or(HEAD, Ordering::SeqCst);
        }
        Tried::Queued(id)
    }

    fn is_head(&self, id: NodeId) -> bool {
        // Acquire: pairs with `pass_on`.
        self.nodes.of(id).state.load(Ordering::Acquire) & HEAD != 0
    }

    /// Takes the lock for the head of its queue, unless somebody is in the way.
    pub(super) fn check_acquired(
        &self,
        word: &impl Word,
        id: NodeId,
        exclusive: bool,
        states: &WorkerStates,
    ) -> bool {
        match word.take(id, exclusive) {
            None => return false,
            Some(true) => self.nodes.free(id),
            Some(false) => self.pass_on(word, id, states),
        }
        true
    }

    /// Makes the next node that is not abandoned the head, because the head leaves the queue.
    fn pass_on(&self, word: &impl Word, mut id: NodeId, states: &WorkerStates) {
        while !word.leave_empty(id) {
            // Acquire and release: pairs with the exchange in `try_lock`.
            let next = self.nodes.of(id).next.swap(PASSED, Ordering::AcqRel);
            // A worker that is about to link itself finds that it is the head, and frees the node.
            let Some(next) = NodeId::from_word(next) else { return };
            self.nodes.free(id);
            // Release: pairs with the acquire in `is_head`. Between this and `abandon`, the order of updates of the
            // word decides.
            let state = self.nodes.of(next).state.fetch_or(HEAD, Ordering::SeqCst);
            if state & ABANDONED == 0 {
                states.tell_at(next.worker());
                return;
            }
            id = next;
        }
        self.nodes.free(id);
    }

    /// Gives up waiting.
    pub(super) fn abandon(&self, word: &impl Word, id: NodeId, states: &WorkerStates) {
        let state = self.nodes.of(id).state.fetch_or(ABANDONED, Ordering::SeqCst);
        if state & HEAD != 0 {
            self.pass_on(word, id, states);
        }
    }

    /// Takes a lock that the word alone did not grant. `wait_max` returns the limit of the wait.
    pub(super) fn acquire(
        &self,
        mut wait_max: impl FnMut() -> WaitLimit,
        word: &impl Word,
        request: LockRequest,
        states: &WorkerStates,
    ) -> Result<(), Refused> {
        let id = match self.try_lock(word, request) {
            Tried::Acquired => return Ok(()),
            Tried::NoNode => return Err(Refused::Unavailable),
            Tried::Queued(id) => id,
        };
        let LockRequest { address, stamp, exclusive, holds } = request;
        let worker = stamp.worker();
        // If nobody waits for the transaction, it is in no cycle. A transaction that joins behind it later looks
        // itself.
        let may_hold = || holds || self.thieves.has_run_ahead(worker);
        let is_victim = || (may_hold() || !word.is_last(id)) && self.is_victim(stamp, address, states);
        let is_head = || self.is_head(id);
        let place = QueuePlace::new(|| {
            self.nodes.wait_is_over(worker);
            // Before another worker becomes the head.
            word.await_readers_no_more(worker);
            self.abandon(word, id, states);
        });
        let mut waited = match () {
            () if is_head() => Waited::Over,
            () if is_victim() => Waited::Wounded,
            () => {
                self.steal_while_waiting(&mut wait_max, word, (id, address), stamp, states, is_head);
                let _waiting = waiting("its lock", address);
                states.wait_at_most(wait_max(), worker, stamp, is_head, is_head)
            }
        };
        while waited == Waited::Over {
            if self.check_acquired(word, id, exclusive, states) {
                place.keep();
                self.nodes.wait_is_over(worker);
                return Ok(());
            }
            let Some(blocker) = word.blocker(exclusive) else { continue };
            let (at, blocked_by) = match blocker {
                Blocker::Readers if !word.await_readers(worker) => continue,
                Blocker::Readers => (worker, BlockedBy::Readers),
                Blocker::Owner(owner) => (owner, BlockedBy::Attempt(states.stamp(owner).id)),
            };
            let changed = || match blocker {
                Blocker::Readers => !word.awaits_readers(worker),
                Blocker::Owner(_) => word.blocker(exclusive) != Some(blocker),
            };
            if changed() {
                // The attempt that was found may be a later one of the same worker.
                continue;
            }
            self.nodes.of(id).set_blocked_by(blocked_by);
            waited = match is_victim() {
                true => Waited::Wounded,
                false => {
                    self.steal_while_waiting(&mut wait_max, word, (id, address), stamp, states, changed);
                    let _waiting = waiting("its lock", address);
                    states.wait_at_most(wait_max(), at, stamp, changed, changed)
                }
            };
        }
        Err(refused(waited))
    }

    /// Runs operations of the worker ahead, or of the lock's holders, as long as they have any and the wait is not
    /// over (stealdb, Algorithm 2, lines 8 to 10).
    fn steal_while_waiting(
        &self,
        wait_max: &mut impl FnMut() -> WaitLimit,
        word: &impl Word,
        (id, address): (NodeId, usize),
        stamp: AttemptStamp,
        states: &WorkerStates,
        over: impl Fn() -> bool,
    ) {
        let stealing = self.thieves.stealing();
        if stealing == StealingMode::Never {
            return;
        }
        let me = stamp.worker();
        let ahead = match self.nodes.look(id) {
            Some(seen) if seen.state & HEAD == 0 && stealing == StealingMode::Chain => {
                seen.previous.map(|previous| Blocker::Owner(previous.worker()))
            }
            _ => word.blocker(true),
        };
        let mut readers = [0; 8];
        let ahead = match ahead {
            Some(Blocker::Owner(owner)) => {
                readers[0] = owner;
                &readers[..1]
            }
            Some(Blocker::Readers) => {
                let mut count = 0;
                for reader in self.nodes.some_readers(address, me) {
                    readers[count] = reader;
                    count += 1;
                }
                &readers[..count]
            }
            None => return,
        };
        if self.is_head(id) {
            for worker in ahead {
                self.thieves.await_attempt(states.stamp(*worker).id.word(), *worker);
            }
        }
        let mut seen = [0; 8];
        states.look_while(stamp, over, || {
            let mut each = ahead.iter().zip(&mut seen);
            let stolen = each.any(|(ahead, seen)| self.thieves.steal(me, *ahead, seen, || word.is_last(id)));
            let stolen = stolen || self.thieves.run_ahead(me, || self.is_near_head(id));
            // A wait of no time allows only one look.
            if wait_max().is_over() { None } else { Some(stolen) }
        });
    }

    /// True if a node is one of the first in its queue.
    fn is_near_head(&self, mut id: NodeId) -> bool {
        for _ in 0..NEAR {
            // A node that has left the queue was nearer.
            let Some(seen) = self.nodes.look(id) else { return true };
            let Some(previous) = seen.previous.filter(|_| seen.state & HEAD == 0) else { return true };
            id = previous;
        }
        false
    }

    /// Takes a lock exclusively that the transaction shares.
    pub(super) fn upgrade(
        &self,
        mut wait_max: impl FnMut() -> WaitLimit,
        word: &impl Word,
        request: LockRequest,
        states: &WorkerStates,
    ) -> Result<(), Refused> {
        let LockRequest { address, stamp, .. } = request;
        let worker = stamp.worker();
        // The node is in no queue, but the search for cycles must see it.
        let Some(id) = self.nodes.open(worker, address, HEAD | EXCLUSIVE) else {
            return Err(Refused::Unavailable);
        };
        self.nodes.of(id).set_blocked_by(BlockedBy::Readers);
        let place = QueuePlace::new(|| {
            self.nodes.wait_is_over(worker);
            self.nodes.free(id);
            self.released(word.cancel_upgrade(worker), states);
        });
        loop {
            match word.upgrade(worker) {
                Upgraded::Taken(head) => {
                    self.released(head, states);
                    place.keep();
                    self.nodes.wait_is_over(worker);
                    self.nodes.free(id);
                    return Ok(());
                }
                Upgraded::Rival(rival) => {
                    let other = states.stamp(rival);
                    if word.blocker(false) != Some(Blocker::Owner(rival)) {
                        // The attempt that was found may be a later one of the same worker.
                        continue;
                    }
                    let dies = states.is_running(other.id) && other.is_older_than(stamp);
                    self.deadlocks.note(&[stamp, other], usize::from(!dies));
                    if dies {
                        return Err(Refused::Victim);
                    }
                    // The other one waits for this worker to leave, so it has not got the lock.
                    states.wound(other.id, address);
                    if word.replace_upgrade(rival, worker) {
                        // The head of the queue now waits for this worker.
                        states.tell_at(rival);
                    }
                }
                Upgraded::Waiting(head) => {
                    self.released(head, states);
                    let may_go_on = || word.upgrade_may_go_on(worker);
                    let waited = match self.is_victim(stamp, address, states) {
                        true => Waited::Wounded,
                        false => {
                            let _waiting = waiting("its lock", address);
                            states.wait_at_most(wait_max(), worker, stamp, may_go_on, may_go_on)
                        }
                    };
                    if waited != Waited::Over {
                        return Err(refused(waited));
                    }
                }
            }
        }
    }

    /// Shares the lock if nobody is in the way and nobody waits.
    #[inline(always)]
    pub(super) fn try_share(&self, word: &QueueLock, states: &WorkerStates) -> bool {
        match word.try_shared() {
            Ok(()) => true,
            Err(released) => {
                self.released(released, states);
                false
            }
        }
    }

    /// Tells the waiter that may go on after a change of a lock's word. True if any thread was parked.
    #[inline(always)]
    pub(super) fn released(&self, released: Released, states: &WorkerStates) -> bool {
        matches!(released, Released::Awaited(at) if states.tell_at(at))
    }
}

fn refused(waited: Waited) -> Refused {
    if waited == Waited::Wounded { Refused::Victim } else { Refused::Unavailable }
}

#[cfg(all(test, loom))]
mod models;

#[cfg(all(test, not(loom)))]
mod tests;

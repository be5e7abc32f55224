//! Waiting for a lock: the queue, and upgrades beside it (stealdb §3.3, Algorithm 4).
//!
//! # The queue
//!
//! A chain of nodes, each of which knows the one behind it; the lock's word knows the last. Whoever joins takes its
//! predecessor from the word and links itself behind it ([`try_lock`](Queues::try_lock), the paper's TRYLOCK). What is
//! passed along the chain is not the lock but the right to be the *head*: the head takes the lock from the word as soon
//! as nobody is in its way ([`check_acquired`](Queues::check_acquired), the paper's CHECKACQUIRED) and then leaves the
//! queue, so that the next one is the head. A reader behind a reader thereby follows at once, and both share the lock.
//! Nobody overtakes: who finds somebody in the queue joins it, whatever it wants.
//!
//! Each link is made, or found missing, by one exchange of `next`. If the head leaves before the node behind it is
//! linked, it puts [`PASSED`] there, and who then links finds that it is the head. So nobody waits for anybody in the
//! midst of a step.
//!
//! Who gives up waiting marks its node as abandoned. If it is the head it passes that on; if not, the node stays in the
//! chain, and whoever passes the head's right to it passes it further. One exchange of `state` decides which.
//!
//! # Upgrades
//!
//! Who shares a lock and wants it alone is not in the queue, for those in the queue wait for it. The lock's word says
//! that it upgrades; from then on nobody takes the lock before it, and it waits for the other readers to leave. Of two
//! that upgrade neither would ever leave: the younger one loses, whichever came first.
//!
//! # Where they wait
//!
//! All wait at events of workers, so that nothing depends on where locks lie in memory.
//!
//! A node that is not the head waits at its worker's own event, and is told by who passes the right. The head waits at the
//! event of the one that has the lock alone or upgrades, and is told by it; for readers it waits at its own, and so does
//! an upgrade: the word names it, and the last reader that is in its way tells it. If the word comes to name another one,
//! whoever changed that tells those that wait where they did so far.
//!
//! Where the head waits for readers it goes by what the word says of itself, not by whether there are readers: an upgrade
//! may have put another name there in between, and have gone.

use super::lock::{Blocker, Joined, QueueLock, Released, Upgraded};
use super::node::{ABANDONED, BlockedBy, EXCLUSIVE, HEAD, NodeId, Nodes, PASSED};
use super::options::StealingMode;
use super::stealing::Thieves;
use super::word::Word;
use crate::worker_states::{AttemptStamp, Waited, WorkerStates};
use hotrow_sync::atomic::Ordering;
use hotrow_sync::clock::Duration;

/// How far from the head of a queue one begins to run operations of its own: what they lock, it holds until its turn is over.
const NEAR: u32 = 4;

/// All queues of an engine.
#[derive(Debug)]
pub(super) struct Queues {
    pub(super) nodes: Nodes,
    pub(super) thieves: Thieves,
}

/// What a transaction wants of a lock.
#[derive(Debug, Clone, Copy)]
pub(super) struct LockRequest {
    /// The segment's address, or that of a range's lock.
    pub(super) address: usize,
    /// Who.
    pub(super) stamp: AttemptStamp,
    /// The lock for itself alone.
    pub(super) exclusive: bool,
    /// Whether it holds another lock: if not, others wait for it only if they are behind it in the queue.
    pub(super) holds: bool,
}

/// The lock was not to be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    /// The deadline has passed, or the worker has too many abandoned nodes in queues.
    Unavailable,
    /// The transaction is the victim of a deadlock.
    Victim,
}

/// What came of trying.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tried {
    /// The lock is taken.
    Acquired,
    /// It is waited for, in this node.
    Queued(NodeId),
    /// All nodes of the worker are in queues still.
    NoNode,
}

impl Queues {
    pub(super) fn new(stealing: StealingMode) -> Self {
        Self { nodes: Nodes::new(), thieves: Thieves::new(stealing) }
    }

    /// Those of an engine with so many workers, all of which have begun, and none of which steals.
    #[cfg(any(test, loom))]
    pub(super) fn of_workers(workers: u32) -> Self {
        let queues = Self::new(StealingMode::Never);
        (0..workers).for_each(|worker| queues.nodes.admit(worker));
        // What belongs to them is there: making it is no part of any model.
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
                // Acquire and release: pairs with the exchange in `pass_on`. Whoever comes second knows of the other.
                let passed = self.nodes.of(before).next.swap(id.word(), Ordering::AcqRel) == PASSED;
                if passed {
                    self.nodes.free(before);
                }
                passed
            }
        };
        if is_head {
            // Only its worker gives the node this right: nobody is before it.
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

    /// The head of a queue leaves it: the next one that has not abandoned its node is the head.
    fn pass_on(&self, word: &impl Word, mut id: NodeId, states: &WorkerStates) {
        while !word.leave_empty(id) {
            // Acquire and release: pairs with the exchange in `try_lock`.
            let next = self.nodes.of(id).next.swap(PASSED, Ordering::AcqRel);
            // Who is about to link itself finds that it is the head, and frees the node.
            let Some(next) = NodeId::from_word(next) else { return };
            self.nodes.free(id);
            // Release: pairs with the acquire in `is_head`. Against `abandon` one update of the word decides.
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

    /// Takes a lock that was not to be had by its word alone. `wait_max` says how long it may be waited for.
    pub(super) fn acquire(
        &self,
        mut wait_max: impl FnMut() -> Option<Duration>,
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
        // Where nobody waits for the transaction, it is in no cycle. Whoever joins behind it later looks itself.
        let may_hold = || holds || self.thieves.has_run_ahead(worker);
        let is_victim = || (may_hold() || !word.is_last(id)) && self.is_victim(stamp, address, states);
        let is_head = || self.is_head(id);
        let mut waited = match () {
            () if is_head() => Waited::Over,
            () if is_victim() => Waited::Wounded,
            () => {
                self.steal_while_waiting(&mut wait_max, word, (id, address), stamp, states, is_head);
                states.wait_at_most(wait_max(), worker, stamp, is_head, is_head)
            }
        };
        while waited == Waited::Over {
            if self.check_acquired(word, id, exclusive, states) {
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
                    states.wait_at_most(wait_max(), at, stamp, changed, changed)
                }
            };
        }
        self.nodes.wait_is_over(worker);
        // Before another one becomes the head.
        word.await_readers_no_more(worker);
        self.abandon(word, id, states);
        Err(refused(waited))
    }

    /// Runs operations of the one ahead, or of those that have the lock, as long as they have any and the wait is not over
    /// (stealdb, Algorithm 2, lines 8 to 10).
    fn steal_while_waiting(
        &self,
        wait_max: &mut impl FnMut() -> Option<Duration>,
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
            // One look is all that a wait of no time allows.
            if wait_max() == Some(Duration::ZERO) { None } else { Some(stolen) }
        });
    }

    /// Whether a node is one of the first in its queue.
    fn is_near_head(&self, mut id: NodeId) -> bool {
        for _ in 0..NEAR {
            // Who has left the queue was nearer.
            let Some(seen) = self.nodes.look(id) else { return true };
            let Some(previous) = seen.previous.filter(|_| seen.state & HEAD == 0) else { return true };
            id = previous;
        }
        false
    }

    /// Takes a lock alone that the transaction shares.
    pub(super) fn upgrade(
        &self,
        mut wait_max: impl FnMut() -> Option<Duration>,
        word: &impl Word,
        request: LockRequest,
        states: &WorkerStates,
    ) -> Result<(), Refused> {
        let LockRequest { address, stamp, .. } = request;
        let worker = stamp.worker();
        // In no queue, but to be seen by those that look for cycles.
        let Some(id) = self.nodes.open(worker, address, HEAD | EXCLUSIVE) else {
            return Err(Refused::Unavailable);
        };
        self.nodes.of(id).set_blocked_by(BlockedBy::Readers);
        let result = loop {
            match word.upgrade(worker) {
                Upgraded::Taken(head) => {
                    self.released(head, states);
                    break Ok(());
                }
                Upgraded::Rival(rival) => {
                    let other = states.stamp(rival);
                    if word.blocker(false) != Some(Blocker::Owner(rival)) {
                        // The attempt that was found may be a later one of the same worker.
                        continue;
                    }
                    if states.is_running(other.id) && other.is_older_than(stamp) {
                        break Err(Refused::Victim);
                    }
                    // It waits for this one to leave, so it has not got the lock.
                    states.wound(other.id, address);
                    if word.replace_upgrade(rival, worker) {
                        // The head of the queue waits for this one now.
                        states.tell_at(rival);
                    }
                }
                Upgraded::Waiting(head) => {
                    self.released(head, states);
                    let may_go_on = || word.upgrade_may_go_on(worker);
                    let waited = match self.is_victim(stamp, address, states) {
                        true => Waited::Wounded,
                        false => states.wait_at_most(wait_max(), worker, stamp, may_go_on, may_go_on),
                    };
                    if waited != Waited::Over {
                        break Err(refused(waited));
                    }
                }
            }
        };
        self.nodes.wait_is_over(worker);
        self.nodes.free(id);
        if result.is_err() {
            self.released(word.cancel_upgrade(worker), states);
        }
        result
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

    /// Tells who may go on now that a lock's word has changed. Whether anybody was parked.
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

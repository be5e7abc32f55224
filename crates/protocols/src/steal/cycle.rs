//! Deadlocks: cycles in the graph of who waits for whom (stealdb §5, which leaves them to the future).
//!
//! # The graph
//!
//! A transaction that waits says so by its node ([`Nodes`](super::node::Nodes)), and the graph is read from the nodes of
//! all, without any lock:
//!
//! - In a queue, it waits for the one ahead; where that does not wait any more (abandoned, or chosen as a victim), for
//!   whom that one waits.
//! - At the head of a queue, it waits for whom its node names: the attempt that has the lock alone or upgrades, or all
//!   that share it.
//! - Upgrading, it waits for all others that share the lock.
//!
//! Who shares a lock is noted by each worker of its own accord, because the lock's word only counts.
//!
//! # No cycle is missed
//!
//! Whoever waits says for whom first, and looks for a cycle through itself afterwards; and whenever what it says changes
//! (it has become the head, or another one is in its way), it says so and looks again. All of that is sequentially
//! consistent, so of those in a cycle the last to say its part sees the parts of all others. What a node says of the one
//! ahead is said before the node is in the queue, so it is never later than what those behind it say. A reader is noted
//! after it has the lock and before it waits for another one: it is on time for its own look.
//!
//! One thing changes without anybody's saying so: if one gives up in the midst of a queue, those behind wait for the one
//! ahead of it. So whoever has found a wait goes on from its node, and not from its worker, which may have given up in
//! between: a node leads on to the one ahead of it until the head's right has passed it, and then the one behind it is
//! the head, and looks. The ways that lead on from a node are the same whether its worker has given up or not.
//!
//! A holder that stops waiting may leave the search without an edge, but nothing is missed: it gives back what it holds,
//! or waits once more and then looks itself.
//!
//! A transaction that holds nothing, and is the last in its queue, is waited for by nobody and need not look. Who joins
//! behind it later does.
//!
//! # Who dies
//!
//! The youngest in the cycle whose death helps, by the stamp that a transaction keeps over its attempts. So the oldest of
//! all never dies in this way, and as the victim begins anew with its old stamp, everybody is the oldest at some time.
//!
//! It helps if a holder dies. If somebody dies that is merely ahead in a queue, those behind it wait for the same as
//! before, so it is spared; but a reader behind a writer may share the lock when that one is gone. Where this was not so,
//! another look finds the cycle that is left, for the search goes on until there is none.
//!
//! What is seen may be of different moments, so now and then a cycle is found that was none, and somebody dies for it.
//! That takes one that has stopped waiting in the meantime, or one that is counted as a reader for a moment
//! (`QueueLock::try_shared`): locks are held until the end, and what is in a cycle stays.

use super::node::{ABANDONED, BlockedBy, EXCLUSIVE, HEAD, NodeId};
use super::queue::Queues;
use crate::worker_states::{AttemptStamp, WorkerStates};

/// One that waits, and is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Waiting {
    /// The node in which it waits, or has waited until just now.
    pub(super) node: NodeId,
    pub(super) stamp: AttemptStamp,
    /// Whether the one that waits for it might go on if it died.
    pub(super) helps: bool,
}

/// One that was found on the way.
struct Found {
    waiting: Waiting,
    /// Who waits for it, by its place in the list.
    from: usize,
}

impl Queues {
    /// Looks for deadlocks that an attempt which waits is in, and chooses victims until there is none. Whether it is one
    /// itself. `over` is the segment that it waits for.
    #[cold]
    pub(super) fn is_victim(&self, stamp: AttemptStamp, over: usize, states: &WorkerStates) -> bool {
        loop {
            match self.youngest_in_cycle(stamp, states) {
                None => return false,
                Some(victim) if victim.id == stamp.id => return true,
                Some(victim) => _ = states.wound(victim.id, over),
            }
        }
    }

    /// The youngest in a cycle that an attempt is in.
    fn youngest_in_cycle(&self, me: AttemptStamp, states: &WorkerStates) -> Option<AttemptStamp> {
        let node = self.nodes.waits_in(me.worker())?;
        let mut found = vec![Found { waiting: Waiting { node, stamp: me, helps: true }, from: 0 }];
        let mut at = 0;
        while at < found.len() {
            let mut closes = None;
            self.waited_for(found[at].waiting.node, states, |waiting| {
                if waiting.stamp.worker() == me.worker() {
                    closes = Some(waiting.helps);
                } else if !found.iter().any(|other| other.waiting.node == waiting.node) {
                    found.push(Found { waiting, from: at });
                }
            });
            if let Some(helps) = closes {
                found[0].waiting.helps = helps;
                return Some(youngest(&found, at));
            }
            at += 1;
        }
        None
    }

    /// Tells `each` of those that wait, themselves, and that the worker of a node waits for.
    pub(super) fn waited_for(&self, node: NodeId, states: &WorkerStates, mut each: impl FnMut(Waiting)) {
        let Some(mut seen) = self.nodes.look(node) else { return };
        let exclusive = seen.state & EXCLUSIVE != 0;
        while seen.state & HEAD == 0 {
            // Whoever is behind a node that has left is about to be the head, and then looks itself.
            let Some(previous) = seen.previous else { return };
            // In this order: whose node is not abandoned then has not begun another attempt.
            let running = states.running(previous.worker());
            let Some(ahead) = self.nodes.look(previous) else { return };
            if let Some(stamp) = running
                && ahead.state & ABANDONED == 0
            {
                let helps = !exclusive && ahead.state & EXCLUSIVE != 0;
                return each(Waiting { node: previous, stamp, helps });
            }
            seen = ahead;
        }
        match seen.blocked_by {
            BlockedBy::Attempt(id) => {
                let holder = self.wait_of(id.worker(), states);
                holder.filter(|holder| holder.stamp.id == id).into_iter().for_each(each);
            }
            BlockedBy::Readers if exclusive => {
                let readers = self.nodes.readers_that_wait(seen.address);
                let others = readers.filter(|reader| *reader != node.worker());
                others.filter_map(|reader| self.wait_of(reader, states)).for_each(each);
            }
            BlockedBy::Readers | BlockedBy::Unknown => {}
        }
    }

    /// The wait of a worker that holds what others wait for.
    fn wait_of(&self, worker: u32, states: &WorkerStates) -> Option<Waiting> {
        let node = self.nodes.waits_in(worker)?;
        let stamp = states.running(worker)?;
        // Still: so it is that attempt which waits there. If not, it looks itself when it waits again.
        (self.nodes.waits_in(worker) == Some(node)).then_some(Waiting { node, stamp, helps: true })
    }
}

/// The youngest on the way to `at` whose death helps.
fn youngest(found: &[Found], mut at: usize) -> AttemptStamp {
    let mut youngest: Option<AttemptStamp> = None;
    loop {
        let Found { waiting: Waiting { stamp, helps, .. }, from } = found[at];
        if helps && youngest.is_none_or(|other| other.is_older_than(stamp)) {
            youngest = Some(stamp);
        }
        if at == 0 {
            return youngest.unwrap_or(stamp);
        }
        at = from;
    }
}

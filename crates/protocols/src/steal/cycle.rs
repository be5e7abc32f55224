//! Deadlocks: cycles in the waits-for graph of transactions (stealdb §5, which leaves them to the future).
//!
//! # The graph
//!
//! A transaction that waits publishes this by its node ([`Nodes`](super::node::Nodes)). The graph is read from all
//! nodes, without any lock:
//!
//! - A transaction in a queue waits for the one ahead. If that one does not wait any more (abandoned, or chosen as a
//!   victim), it waits for the next one ahead.
//! - A transaction at the head of a queue waits for the holders that its node names: the attempt that holds the lock
//!   exclusively or upgrades, or all that share it.
//! - An upgrading transaction waits for all others that share the lock.
//!
//! Each worker itself notes the locks that it shares, because the lock's word only counts.
//!
//! # No cycle is missed
//!
//! A transaction that waits first publishes the ones that it waits for, and looks for a cycle through itself
//! afterwards. Whenever this changes (it has become the head, or another one is in its way), it publishes and looks
//! again. All of that is sequentially consistent. So the last one in a cycle to publish its part sees the parts of
//! all others. The link to the one ahead is published before the node is in the queue, so it is never later than the
//! parts of those behind it. A reader is noted after it has the lock and before it waits for another one, which is
//! in time for its own look.
//!
//! One change is not published: if a transaction in the middle of a queue gives up, those behind it wait for the one
//! ahead of it. So the search continues from a wait's node, not from its worker, which may have given up meanwhile.
//! A node leads on to the one ahead of it until the head's right has passed it. Then the node behind it is the head,
//! and its worker looks. The edges that lead on from a node are the same whether its worker has given up or not.
//!
//! A holder that stops waiting may end the search without an edge, but no cycle is missed: it releases its locks, or
//! waits once more and then looks itself.
//!
//! A transaction that holds nothing and is the last in its queue is waited for by nobody, so it need not look. A
//! transaction that joins behind it later looks.
//!
//! # The victim
//!
//! The victim is the youngest in the cycle whose death helps, by the stamp that a transaction keeps over its
//! attempts. So the oldest of all never dies in this way. The victim begins again with its old stamp, so every
//! transaction is the oldest at some time.
//!
//! The death of a holder helps. If a transaction dies that is merely ahead in a queue, those behind it wait for the
//! same holders as before, so it is spared. But a reader behind a writer may share the lock when the writer is gone.
//! If that did not help, another look finds the cycle that is left, because the search goes on until there is none.
//!
//! The parts that are read may be of different moments, so a false cycle is sometimes found, and a transaction dies
//! for it. This takes one that has stopped waiting meanwhile, or one that is counted as a reader for a moment
//! (`QueueLock::try_shared`). Otherwise locks are held until the end, and a cycle stays.

use super::node::{ABANDONED, BlockedBy, EXCLUSIVE, HEAD, NodeId};
use super::queue::Queues;
use crate::worker_states::{AttemptStamp, WorkerStates};

/// A transaction that waits, and is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Waiting {
    /// The node in which it waits, or has waited until just now.
    pub(super) node: NodeId,
    pub(super) stamp: AttemptStamp,
    /// True if its death might let the one that waits for it go on.
    pub(super) helps: bool,
}

/// A transaction that the search has visited.
struct Visited {
    waiting: Waiting,
    /// Index of the entry that waits for it.
    from: usize,
}

impl Queues {
    /// Looks for deadlocks that contain a waiting attempt, and chooses victims until there is none. True if the
    /// attempt itself is a victim. `over` is the segment that it waits for.
    #[cold]
    pub(super) fn is_victim(&self, stamp: AttemptStamp, over: usize, states: &WorkerStates) -> bool {
        loop {
            let Some(cycle) = self.find_cycle(stamp, states) else { return false };
            let victim = youngest(&cycle);
            let members: Vec<_> = cycle.iter().map(|member| member.stamp).collect();
            // Before the wound, after which the members' waits end.
            self.deadlocks.note(&members, victim);
            match members[victim] {
                victim if victim.id == stamp.id => return true,
                victim => _ = states.wound(victim.id, over),
            }
        }
    }

    /// Returns a cycle that contains the attempt: each member waits for the next one, and the last one for the first.
    fn find_cycle(&self, me: AttemptStamp, states: &WorkerStates) -> Option<Vec<Waiting>> {
        let node = self.nodes.waits_in(me.worker())?;
        let mut visited = vec![Visited { waiting: Waiting { node, stamp: me, helps: true }, from: 0 }];
        let mut at = 0;
        while at < visited.len() {
            let mut closes = None;
            self.waited_for(visited[at].waiting.node, states, |waiting| {
                if waiting.stamp.worker() == me.worker() {
                    closes = Some(waiting.helps);
                } else if !visited.iter().any(|other| other.waiting.node == waiting.node) {
                    visited.push(Visited { waiting, from: at });
                }
            });
            if let Some(helps) = closes {
                visited[0].waiting.helps = helps;
                return Some(path(&visited, at));
            }
            at += 1;
        }
        None
    }

    /// Calls `each` with those that wait themselves and that the worker of a node waits for.
    pub(super) fn waited_for(&self, node: NodeId, states: &WorkerStates, mut each: impl FnMut(Waiting)) {
        let Some(mut seen) = self.nodes.look(node) else { return };
        let exclusive = seen.state & EXCLUSIVE != 0;
        while seen.state & HEAD == 0 {
            // The transaction behind a node that has left is about to be the head, and then looks itself.
            let Some(previous) = seen.previous else { return };
            // In this order: if the node is not abandoned afterwards, its worker had not begun another attempt.
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

    /// Returns the wait of a worker that holds what others wait for.
    fn wait_of(&self, worker: u32, states: &WorkerStates) -> Option<Waiting> {
        let node = self.nodes.waits_in(worker)?;
        let stamp = states.running(worker)?;
        // It still waits there, so the wait is that attempt's. Otherwise the worker looks itself when it waits
        // again.
        (self.nodes.waits_in(worker) == Some(node)).then_some(Waiting { node, stamp, helps: true })
    }
}

/// Returns the path from the first entry to `at`.
fn path(visited: &[Visited], mut at: usize) -> Vec<Waiting> {
    let mut path = vec![visited[at].waiting];
    while at != 0 {
        at = visited[at].from;
        path.push(visited[at].waiting);
    }
    path.reverse();
    path
}

/// Returns the position of the youngest in a cycle whose death helps.
fn youngest(cycle: &[Waiting]) -> usize {
    let helping = (0..cycle.len()).filter(|at| cycle[*at].helps);
    helping
        .reduce(|one, other| if cycle[one].stamp.is_older_than(cycle[other].stamp) { other } else { one })
        .unwrap_or(0)
}

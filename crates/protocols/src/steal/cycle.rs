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
//! That takes one that has stopped waiting in the meantime: locks are held until the end, and what is in a cycle stays.

use super::node::{ABANDONED, BlockedBy, EXCLUSIVE, HEAD};
use super::queue::Queues;
use crate::contexts::{Contexts, Stamp};

/// One that is waited for.
struct Waiting {
    stamp: Stamp,
    /// Who waits for it, by its place in the list.
    from: usize,
    /// Whether that one might go on if it died.
    helps: bool,
}

impl Queues {
    /// Looks for deadlocks that an attempt which waits is in, and chooses victims until there is none. Whether it is one
    /// itself. `over` is the segment that it waits for.
    #[cold]
    pub(super) fn is_victim(&self, stamp: Stamp, over: usize, contexts: &Contexts) -> bool {
        loop {
            match self.youngest_in_cycle(stamp, contexts) {
                None => return false,
                Some(victim) if victim.id == stamp.id => return true,
                Some(victim) => _ = contexts.wound(victim.id, over),
            }
        }
    }

    /// The youngest in a cycle that an attempt is in.
    fn youngest_in_cycle(&self, me: Stamp, contexts: &Contexts) -> Option<Stamp> {
        let mut found = vec![Waiting { stamp: me, from: 0, helps: true }];
        let mut at = 0;
        while at < found.len() {
            let mut closes = None;
            self.waited_for(found[at].stamp.worker(), contexts, |worker, helps| {
                if worker == me.worker() {
                    closes = Some(helps);
                } else if !found.iter().any(|other| other.stamp.worker() == worker) {
                    let stamp = contexts.stamp(worker);
                    if contexts.is_running(stamp.id) {
                        found.push(Waiting { stamp, from: at, helps });
                    }
                }
            });
            if let Some(helps) = closes {
                found[0].helps = helps;
                return Some(youngest(&found, at));
            }
            at += 1;
        }
        None
    }

    /// Tells `each` the workers that a worker waits for, and whether it might go on if they died.
    fn waited_for(&self, worker: u32, contexts: &Contexts, mut each: impl FnMut(u32, bool)) {
        let Some(mut seen) = self.nodes.waits_in(worker).and_then(|id| self.nodes.look(id)) else { return };
        let exclusive = seen.state & EXCLUSIVE != 0;
        while seen.state & HEAD == 0 {
            // Whoever is behind a node that has left is about to be the head, and then looks itself.
            let Some(previous) = seen.previous else { return };
            let Some(ahead) = self.nodes.look(previous) else { return };
            let waits = ahead.state & ABANDONED == 0;
            if waits && contexts.is_running(contexts.stamp(previous.worker()).id) {
                each(previous.worker(), !exclusive && ahead.state & EXCLUSIVE != 0);
                return;
            }
            seen = ahead;
        }
        match seen.blocked_by {
            BlockedBy::Attempt(id) if contexts.is_running(id) => each(id.worker(), true),
            BlockedBy::Readers if exclusive => {
                for reader in self.nodes.readers_that_wait(seen.address).filter(|reader| *reader != worker) {
                    each(reader, true);
                }
            }
            BlockedBy::Attempt(_) | BlockedBy::Readers | BlockedBy::Unknown => {}
        }
    }
}

/// The youngest on the way to `at` whose death helps.
fn youngest(found: &[Waiting], mut at: usize) -> Stamp {
    let mut youngest: Option<Stamp> = None;
    loop {
        let Waiting { stamp, from, helps } = found[at];
        if helps && youngest.is_none_or(|other| other.is_older_than(stamp)) {
            youngest = Some(stamp);
        }
        if at == 0 {
            return youngest.unwrap_or(stamp);
        }
        at = from;
    }
}

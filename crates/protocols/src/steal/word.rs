//! The trait of a lock's word: [`Queues`](super::queue::Queues) serve every lock whose word implements it.

use super::lock::{Blocker, Joined, QueueLock, Released, Upgraded};
use super::node::NodeId;

/// The word of a lock with a queue. [`QueueLock`] documents each step.
pub(super) trait Word {
    fn join(&self, node: NodeId, exclusive: bool, behind: impl FnMut(Option<NodeId>)) -> Joined;
    fn take(&self, node: NodeId, exclusive: bool) -> Option<bool>;
    fn leave_empty(&self, node: NodeId) -> bool;
    fn is_last(&self, node: NodeId) -> bool;
    fn blocker(&self, exclusive: bool) -> Option<Blocker>;
    fn upgrade(&self, worker: u32) -> Upgraded;
    fn upgrade_may_go_on(&self, worker: u32) -> bool;
    fn replace_upgrade(&self, rival: u32, worker: u32) -> bool;
    fn cancel_upgrade(&self, worker: u32) -> Released;
    fn await_readers(&self, head: u32) -> bool;
    fn awaits_readers(&self, head: u32) -> bool;
    fn await_readers_no_more(&self, head: u32);
}

/// Each step calls the lock's own method, which has precedence over the trait's.
impl Word for QueueLock {
    #[inline]
    fn join(&self, node: NodeId, exclusive: bool, behind: impl FnMut(Option<NodeId>)) -> Joined {
        self.join(node, exclusive, behind)
    }

    #[inline]
    fn take(&self, node: NodeId, exclusive: bool) -> Option<bool> {
        self.take(node, exclusive)
    }

    #[inline]
    fn leave_empty(&self, node: NodeId) -> bool {
        self.leave_empty(node)
    }

    #[inline]
    fn is_last(&self, node: NodeId) -> bool {
        self.is_last(node)
    }

    #[inline]
    fn blocker(&self, exclusive: bool) -> Option<Blocker> {
        self.blocker(exclusive)
    }

    #[inline]
    fn upgrade(&self, worker: u32) -> Upgraded {
        self.upgrade(worker)
    }

    #[inline]
    fn upgrade_may_go_on(&self, worker: u32) -> bool {
        self.upgrade_may_go_on(worker)
    }

    #[inline]
    fn replace_upgrade(&self, rival: u32, worker: u32) -> bool {
        self.replace_upgrade(rival, worker)
    }

    #[inline]
    fn cancel_upgrade(&self, worker: u32) -> Released {
        self.cancel_upgrade(worker)
    }

    #[inline]
    fn await_readers(&self, head: u32) -> bool {
        self.await_readers(head)
    }

    #[inline]
    fn awaits_readers(&self, head: u32) -> bool {
        self.awaits_readers(head)
    }

    #[inline]
    fn await_readers_no_more(&self, head: u32) {
        self.await_readers_no_more(head);
    }
}

//! Nodes: the places in queues where workers wait, and the state that they publish there.
//!
//! A node belongs to a worker and is never freed, so it may be loaded at any time. Its [`NodeId`], which holds a
//! serial number, tells whether the node is still in the same use. A worker has a few nodes: the one in which it
//! waits, and those that it has abandoned in queues whose head has not reached them yet.
//!
//! The locks that a worker shares are noted beside its nodes, for the search for cycles (`cycle`): a lock's word
//! counts its readers, but does not name them.

use crate::per_worker::PerWorker;
use crate::worker_states::{AttemptId, WORKERS_MAX};
use crossbeam_utils::CachePadded;
use hotrow_sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

const SLOT_BITS: u32 = 4;
const WORKER_BITS: u32 = 14;
const SERIAL_BITS: u32 = 15;
const _: () = assert!(1 << WORKER_BITS >= WORKERS_MAX);

/// Number of nodes of a worker.
const SLOTS: usize = if cfg!(test) { 2 } else { 1 << SLOT_BITS };
/// Number of an attempt's shared locks that are noted one by one.
const NOTED: usize = if cfg!(test) { 2 } else { 256 };

/// One use of a node: worker, index among the worker's nodes, and a serial number. Never 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NodeId(u64);

impl NodeId {
    pub(super) fn new(worker: u32, slot: usize, serial: u64) -> Self {
        // A serial number of 0 is left out.
        let serial = serial % ((1 << SERIAL_BITS) - 1) + 1;
        Self(serial << (WORKER_BITS + SLOT_BITS) | u64::from(worker) << SLOT_BITS | slot as u64)
    }

    /// Returns the node in a word that may have none.
    #[inline(always)]
    pub(super) fn from_word(word: u64) -> Option<Self> {
        (word != 0).then_some(Self(word))
    }

    /// Returns the identity as a word of 33 bits.
    #[inline(always)]
    pub(super) fn word(self) -> u64 {
        self.0
    }

    /// Returns the number of its worker.
    #[inline(always)]
    pub(super) fn worker(self) -> u32 {
        (self.0 >> SLOT_BITS) as u32 & ((1 << WORKER_BITS) - 1)
    }

    fn slot(self) -> usize {
        self.0 as usize & ((1 << SLOT_BITS) - 1)
    }
}

/// Mark: the node is at the head of its queue, or its worker upgrades.
pub(super) const HEAD: u32 = 1;
/// Mark: its worker does not wait any more.
pub(super) const ABANDONED: u32 = 2;
/// Mark: its worker wants the lock exclusively.
pub(super) const EXCLUSIVE: u32 = 4;

/// Stored in the `next` of a head that leaves its queue; a node that links itself afterwards finds it there.
pub(super) const PASSED: u64 = u64::MAX;

/// The transactions that keep the head of a queue from the lock: none known, all that share it, or this attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BlockedBy {
    Unknown,
    Readers,
    Attempt(AttemptId),
}

impl BlockedBy {
    /// The identity of an attempt is always larger.
    const READERS: u64 = 1;

    fn word(self) -> u64 {
        match self {
            BlockedBy::Unknown => 0,
            BlockedBy::Readers => Self::READERS,
            BlockedBy::Attempt(id) => id.word(),
        }
    }

    fn from_word(word: u64) -> Self {
        match word {
            0 => BlockedBy::Unknown,
            Self::READERS => BlockedBy::Readers,
            id => BlockedBy::Attempt(AttemptId::in_word(id)),
        }
    }
}

/// One place in a queue.
#[derive(Debug, Default)]
pub(super) struct Node {
    /// The identity of this use of the node; 0 if it is in none.
    id: AtomicU64,
    /// [`HEAD`], [`ABANDONED`], [`EXCLUSIVE`].
    pub(super) state: AtomicU32,
    /// The node behind, or [`PASSED`].
    pub(super) next: AtomicU64,
    /// The node that was ahead when it joined; 0 if there was none.
    previous: AtomicU64,
    /// For the head: its [`BlockedBy`].
    blocked_by: AtomicU64,
    /// The segment's address, as a number that nobody dereferences.
    address: AtomicUsize,
}

/// The contents of a node, as another worker loads them.
#[derive(Debug, Clone, Copy)]
pub(super) struct NodeSnapshot {
    pub(super) state: u32,
    pub(super) previous: Option<NodeId>,
    pub(super) blocked_by: BlockedBy,
    pub(super) address: usize,
}

impl Node {
    pub(super) fn set_previous(&self, previous: Option<NodeId>) {
        // Release, through the update of the lock's word that follows: a worker that joins behind sees it.
        self.previous.store(previous.map_or(0, NodeId::word), Ordering::Release);
    }

    /// Publishes what the head of a queue waits for.
    pub(super) fn set_blocked_by(&self, blocked_by: BlockedBy) {
        // Sequentially consistent: before the search for cycles that follows (`cycle`).
        self.blocked_by.store(blocked_by.word(), Ordering::SeqCst);
    }
}

/// The nodes and notes of one worker.
#[derive(Debug, Default)]
struct WorkerNodes {
    nodes: [CachePadded<Node>; SLOTS],
    serial: AtomicU64,
    /// The node in which the worker waits; 0 if it does not wait.
    waits_in: AtomicU64,
    /// Number of locks that its attempt shares, and the addresses of the first [`NOTED`].
    shared: AtomicUsize,
    addresses: Addresses,
    /// The same for locks that thieves have taken for it.
    lent: AtomicUsize,
    lent_addresses: Addresses,
}

#[derive(Debug)]
struct Addresses(Box<[AtomicUsize]>);

impl Addresses {
    /// True if an address is among the first `count`.
    fn contain(&self, count: usize, address: usize, order: Ordering) -> bool {
        self.0.iter().take(count).any(|noted| noted.load(order) == address)
    }
}

impl Default for Addresses {
    fn default() -> Self {
        Self((0..NOTED).map(|_| AtomicUsize::new(0)).collect())
    }
}

/// All workers' nodes.
#[derive(Debug)]
pub(super) struct Nodes {
    workers: PerWorker<WorkerNodes>,
    /// One more than the highest number of a worker that has begun a transaction.
    workers_end: AtomicU32,
}

impl Nodes {
    pub(super) fn new() -> Self {
        Self { workers: PerWorker::new(WORKERS_MAX), workers_end: AtomicU32::new(0) }
    }

    /// Counts a worker that begins its first transaction.
    pub(super) fn admit(&self, worker: u32) {
        // Relaxed: the worker's later stores make it visible.
        self.workers_end.fetch_max(worker + 1, Ordering::Relaxed);
    }

    pub(super) fn of(&self, id: NodeId) -> &Node {
        &self.workers.of(id.worker()).nodes[id.slot()]
    }

    /// Takes a free node of a worker and publishes that the worker waits in it. `None` if all are still in queues.
    pub(super) fn open(&self, worker: u32, address: usize, state: u32) -> Option<NodeId> {
        let own = self.workers.of(worker);
        // Acquire: pairs with `free`; the worker that freed the node no longer uses it.
        let slot = own.nodes.iter().position(|node| node.id.load(Ordering::Acquire) == 0)?;
        // Relaxed, like the stores to come: the store of the identity and the later ones make them visible.
        let serial = own.serial.load(Ordering::Relaxed);
        own.serial.store(serial + 1, Ordering::Relaxed);
        let (id, node) = (NodeId::new(worker, slot, serial), &own.nodes[slot]);
        node.state.store(state, Ordering::Relaxed);
        node.next.store(0, Ordering::Relaxed);
        node.previous.store(0, Ordering::Relaxed);
        node.blocked_by.store(BlockedBy::Unknown.word(), Ordering::Relaxed);
        node.address.store(address, Ordering::Relaxed);
        // Sequentially consistent, both: before the search for cycles that follows (`cycle`).
        node.id.store(id.word(), Ordering::SeqCst);
        own.waits_in.store(id.word(), Ordering::SeqCst);
        Some(id)
    }

    /// Publishes that a worker does not wait any more.
    pub(super) fn wait_is_over(&self, worker: u32) {
        // Release: pairs with the load in `waits_in`.
        self.workers.of(worker).waits_in.store(0, Ordering::Release);
    }

    /// Frees a node that is in no queue any more.
    pub(super) fn free(&self, id: NodeId) {
        // Release: pairs with the acquire in `open`.
        self.of(id).id.store(0, Ordering::Release);
    }

    /// Returns the node in which a worker waits.
    pub(super) fn waits_in(&self, worker: u32) -> Option<NodeId> {
        // Sequentially consistent, like all loads in `look`: see `cycle`.
        NodeId::from_word(self.workers.of(worker).waits_in.load(Ordering::SeqCst))
    }

    /// Loads the contents of a node. `None` if the node is not in this use any more.
    pub(super) fn look(&self, id: NodeId) -> Option<NodeSnapshot> {
        let node = self.of(id);
        let seen = NodeSnapshot {
            state: node.state.load(Ordering::SeqCst),
            previous: NodeId::from_word(node.previous.load(Ordering::SeqCst)),
            blocked_by: BlockedBy::from_word(node.blocked_by.load(Ordering::SeqCst)),
            address: node.address.load(Ordering::SeqCst),
        };
        (node.id.load(Ordering::SeqCst) == id.word()).then_some(seen)
    }

    /// Notes that a worker shares the lock of a segment.
    #[inline(always)]
    pub(super) fn note_shared(&self, worker: u32, address: usize) {
        let own = self.workers.of(worker);
        // Relaxed, all: others load them only after they have seen that the worker waits, which it publishes later.
        let at = own.shared.load(Ordering::Relaxed);
        if let Some(noted) = own.addresses.0.get(at) {
            noted.store(address, Ordering::Relaxed);
        }
        own.shared.store(at + 1, Ordering::Relaxed);
    }

    /// Notes that a worker shares no lock any more.
    #[inline(always)]
    pub(super) fn forget_shared(&self, worker: u32) {
        let own = self.workers.of(worker);
        own.shared.store(0, Ordering::Relaxed);
        if own.lent.load(Ordering::Relaxed) != 0 {
            own.lent.store(0, Ordering::Relaxed);
        }
    }

    /// Notes that a thief is about to share the lock of a segment for a worker. It does so before it tries, because
    /// the worker may be waiting already, and will not look again. `None` if no more can be noted.
    pub(super) fn note_lent(&self, worker: u32, address: usize) -> Option<usize> {
        let own = self.workers.of(worker);
        // Sequentially consistent, both: before the lock's word, by which others find that it is shared (`cycle`).
        let at = own.lent.fetch_add(1, Ordering::SeqCst);
        own.lent_addresses.0.get(at)?.store(address, Ordering::SeqCst);
        Some(at)
    }

    /// Removes the note, because the lock was not free.
    pub(super) fn forget_lent(&self, worker: u32, at: usize) {
        self.workers.of(worker).lent_addresses.0[at].store(0, Ordering::SeqCst);
    }

    /// True if a thief shares the lock of a segment for a worker.
    pub(super) fn thief_shares(&self, worker: u32, address: usize) -> bool {
        let own = self.workers.of(worker);
        own.lent_addresses.contain(own.lent.load(Ordering::SeqCst), address, Ordering::SeqCst)
    }

    /// Returns the first few workers that have noted that they share the lock of a segment.
    pub(super) fn some_readers(&self, address: usize, me: u32) -> impl Iterator<Item = u32> {
        const SOME: usize = 8;
        let shares = move |worker: &u32| {
            let own = self.workers.of(*worker);
            // Relaxed: it only serves waiters that want to run their operations.
            let shared = own.shared.load(Ordering::Relaxed);
            *worker != me && own.addresses.contain(shared, address, Ordering::Relaxed)
        };
        (0..self.workers_end.load(Ordering::Relaxed)).filter(shares).take(SOME)
    }

    /// Returns the workers that wait and share the lock of a segment. A worker that shares more locks than it can
    /// note may be among them wrongly.
    pub(super) fn readers_that_wait(&self, address: usize) -> impl Iterator<Item = u32> {
        (0..self.workers_end.load(Ordering::Relaxed)).filter(move |worker| {
            let own = self.workers.of(*worker);
            if own.waits_in.load(Ordering::SeqCst) == 0 {
                return false;
            }
            // Relaxed: see `note_shared`.
            let shared = own.shared.load(Ordering::Relaxed);
            shared > NOTED
                || own.addresses.contain(shared, address, Ordering::Relaxed)
                || self.thief_shares(*worker, address)
        })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_known_by_worker_slot_and_serial_number() {
        let ids = [(0, 0, 0), (16_383, 15, 0), (16_383, 15, 1), (5, 3, 32_766)];
        let nodes = ids.map(|(worker, slot, serial)| NodeId::new(worker, slot, serial));
        for (id, (worker, slot, _)) in nodes.iter().zip(ids) {
            assert_eq!((id.worker(), id.slot()), (worker, slot));
            assert!(id.word() != 0 && id.word() < 1 << 33);
            assert_eq!(NodeId::from_word(id.word()), Some(*id));
        }
        assert_ne!(nodes[1], nodes[2]);
        assert_eq!(NodeId::new(1, 1, 0), NodeId::new(1, 1, 32_767));
    }

    #[test]
    fn a_node_that_was_given_back_is_not_found_in_its_next_use() {
        let nodes = Nodes::new();
        nodes.admit(1);
        let first = nodes.open(1, 16, EXCLUSIVE).unwrap();
        assert_eq!((nodes.waits_in(1), nodes.look(first).unwrap().address), (Some(first), 16));
        let second = nodes.open(1, 32, 0).unwrap();
        assert!(nodes.open(1, 48, 0).is_none(), "a worker has two nodes in tests");
        nodes.free(first);
        let third = nodes.open(1, 48, HEAD).unwrap();
        assert!(nodes.look(first).is_none() && nodes.look(second).is_some());
        assert_eq!(nodes.look(third).unwrap().state, HEAD);
        nodes.wait_is_over(1);
        assert_eq!(nodes.waits_in(1), None);
    }

    #[test]
    fn readers_are_found_while_they_wait_and_all_locks_are_possible_beyond_those_noted() {
        let nodes = Nodes::new();
        (0..4).for_each(|worker| nodes.admit(worker));
        for (worker, addresses) in [(0, &[16, 32][..]), (1, &[48]), (2, &[16]), (3, &[1, 2, 3])] {
            addresses.iter().for_each(|address| nodes.note_shared(worker, *address));
        }
        assert_eq!(nodes.readers_that_wait(16).count(), 0);
        for worker in [0, 1, 3] {
            nodes.open(worker, 64, 0).unwrap();
        }
        assert!(nodes.readers_that_wait(16).eq([0, 3]));
        assert!(nodes.readers_that_wait(48).eq([1, 3]));
        nodes.forget_shared(3);
        assert!(nodes.readers_that_wait(48).eq([1]));
    }
}

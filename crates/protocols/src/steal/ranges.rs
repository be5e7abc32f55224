//! Locks of ranges: buckets and leaves, locked by scans and by changes (stealdb §5).
//!
//! # The locked range
//!
//! A bucket or leaf stands for the keys that are not there, and for the gaps between those that are. An attempt that
//! scans it, or fails to find a key in it, locks it to scan. An attempt that inserts or deletes there locks it to
//! change. Holders of the same kind share the lock ([`RangeUse`]), so insertions into one leaf do not disturb each
//! other more than before, and neither do scans. So the node is locked and not the predicate, and two attempts that
//! have no key in common may wait for each other.
//!
//! The locks are not the nodes' own but the engine's: [`STRIPES`] words, in which two nodes may share one. Then an
//! attempt may wait without need. A lock is held until the attempt's dead records have left the index, which is a
//! little longer than row locks.
//!
//! # Holding both ways
//!
//! An attempt that has scanned a leaf and then inserts there holds it in both ways, exclusively. It waits for the
//! other holders, before all that queue. If two do so, one dies (`Queues::upgrade`).
//!
//! # Deadlocks
//!
//! Holders of both kinds are noted like readers of segments, by the address of the lock. A waiter for a range
//! publishes that it wants the lock exclusively, whichever way it wants it. So the search for cycles takes it to
//! wait for all holders, which it does, and for the one ahead in the queue. A holder dies for a cycle, never an
//! attempt that is merely ahead.

use super::lock::range::{RangeLock, Wanted};
use super::queue::{LockRequest, Queues, Refused};
use crate::worker_states::{AttemptStamp, WorkerStates};
use hotrow_core::{RangeId, RangeUse, WaitLimit};
use hotrow_sync::OnceLock;
use std::cell::{Cell, OnceCell, RefCell};

/// Number of range locks of an engine. It is so large that a scanned range seldom shares a lock with others'
/// insertions.
const STRIPES: usize = if cfg!(test) { 4 } else { 1 << 14 };
/// Number of locks that are made at once, when one of them is needed.
const CHUNK: usize = if cfg!(test) { 2 } else { 256 };

const SCAN: u8 = 1;
const CHANGE: u8 = 2;

fn bit(how: RangeUse) -> u8 {
    match how {
        RangeUse::Scan => SCAN,
        RangeUse::Change => CHANGE,
    }
}

/// The locks of an engine.
#[derive(Debug)]
pub(super) struct Ranges {
    chunks: Box<[OnceLock<Box<[RangeLock]>>]>,
}

/// The range locks that an attempt holds. In cells, because an index asks for locks while it has the attempt's pin.
#[derive(Debug, Default)]
pub(super) struct HeldRanges {
    /// The ways in which it holds each lock. Made when the worker takes its first lock.
    ways: OnceCell<Box<[Cell<u8>]>>,
    /// The numbers of the locks that it holds.
    stripes: RefCell<Vec<u32>>,
}

impl HeldRanges {
    /// True if it holds no lock.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.stripes.borrow().is_empty()
    }

    /// True if it holds a range in this way.
    #[inline]
    pub(super) fn holds(&self, range: RangeId, how: RangeUse) -> bool {
        self.ways(range.stripe(STRIPES)) & bit(how) != 0
    }

    #[inline]
    fn ways(&self, stripe: usize) -> u8 {
        self.ways.get().map_or(0, |ways| ways[stripe].get())
    }

    #[inline]
    fn note(&self, stripe: usize, how: RangeUse) {
        let ways = self.ways.get_or_init(|| (0..STRIPES).map(|_| Cell::new(0)).collect());
        let before = ways[stripe].replace(ways[stripe].get() | bit(how));
        if before == 0 {
            self.stripes.borrow_mut().push(stripe as u32);
        }
    }

    /// Forgets all locks, and calls `visit` with each.
    #[inline]
    fn drain(&self, mut visit: impl FnMut(usize)) {
        let Some(ways) = self.ways.get() else { return };
        for stripe in self.stripes.borrow_mut().drain(..) {
            ways[stripe as usize].set(0);
            visit(stripe as usize);
        }
    }
}

/// The attempt that locks a range, and the limit of its wait.
pub(super) struct Locker<W> {
    pub(super) stamp: AttemptStamp,
    /// True if it holds any other lock.
    pub(super) holds: bool,
    pub(super) wait_max: W,
}

impl Ranges {
    pub(super) fn new() -> Self {
        Self { chunks: (0..STRIPES / CHUNK).map(|_| OnceLock::new()).collect() }
    }

    #[inline]
    fn lock(&self, stripe: usize) -> &RangeLock {
        let chunk =
            self.chunks[stripe / CHUNK].get_or_init(|| (0..CHUNK).map(|_| RangeLock::default()).collect());
        &chunk[stripe % CHUNK]
    }

    /// Takes the lock of a range if nobody is in the way and nobody waits. `held` are the attempt's range locks.
    #[inline]
    pub(super) fn try_lock(
        &self,
        queues: &Queues,
        worker: u32,
        held: &HeldRanges,
        range: RangeId,
        how: RangeUse,
    ) -> bool {
        let stripe = range.stripe(STRIPES);
        let (lock, ways, change) = (self.lock(stripe), held.ways(stripe), how == RangeUse::Change);
        if ways & bit(how) != 0 {
            return true;
        }
        let taken = if ways == 0 { lock.try_hold(change) } else { lock.try_both(worker, change) };
        if taken {
            self.note(queues, worker, held, range, how);
        }
        taken
    }

    /// Waits for the lock of a range. `held` is true if the attempt holds the lock already, in the other way.
    /// [`note`](Self::note) follows.
    #[cold]
    pub(super) fn wait(
        &self,
        queues: &Queues,
        states: &WorkerStates,
        held: bool,
        (range, how): (RangeId, RangeUse),
        locker: Locker<impl FnMut() -> WaitLimit>,
    ) -> Result<(), Refused> {
        let lock = self.lock(range.stripe(STRIPES));
        let word = Wanted { lock, change: how == RangeUse::Change };
        let Locker { stamp, holds, wait_max } = locker;
        let request = LockRequest { address: Self::address(lock), stamp, exclusive: true, holds };
        match held {
            true => queues.upgrade(wait_max, &word, request, states),
            false => queues.acquire(wait_max, &word, request, states),
        }
    }

    /// Notes that the attempt holds the lock of a range.
    pub(super) fn note(
        &self,
        queues: &Queues,
        worker: u32,
        held: &HeldRanges,
        range: RangeId,
        how: RangeUse,
    ) {
        let stripe = range.stripe(STRIPES);
        if held.ways(stripe) == 0 {
            queues.nodes.note_shared(worker, Self::address(self.lock(stripe)));
        }
        held.note(stripe, how);
    }

    /// Releases all range locks that an attempt holds. True if a parked waiter was told.
    #[inline]
    pub(super) fn release(
        &self,
        queues: &Queues,
        states: &WorkerStates,
        worker: u32,
        held: &HeldRanges,
    ) -> bool {
        let mut told = false;
        held.drain(|stripe| told |= queues.released(self.lock(stripe).release(worker), states));
        told
    }

    /// Returns the address by which the search for cycles knows a lock.
    fn address(lock: &RangeLock) -> usize {
        std::ptr::from_ref(lock).addr()
    }
}

#[cfg(all(test, loom))]
mod models;

#[cfg(all(test, not(loom)))]
mod tests;

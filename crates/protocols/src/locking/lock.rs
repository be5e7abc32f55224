//! The reader-writer lock beside each value: one word.
//!
//! ```text
//! bit 63        bit 62    bits 0 to 61
//! exclusive     queued    shared: one bit for each of the workers 0 to 61 that hold the lock
//!                         exclusive: the number of the worker that holds it
//! ```
//!
//! So the word names the lock's holders, and their ages can be compared. While nobody is in the way, taking and
//! releasing the lock is one read-modify-write each. *Queued* sends everybody to the queues (`queue`): either a
//! transaction waits there, or a worker with a higher number shares the lock and is noted there.

use hotrow_sync::atomic::{AtomicU64, Ordering};
use hotrow_sync::spin::update;

const EXCLUSIVE: u64 = 1 << 63;
const QUEUED: u64 = 1 << 62;
/// Number of workers that have a bit of their own.
const BITS: u32 = if cfg!(test) { 3 } else { 62 };

/// A reader-writer lock that knows its holders.
#[derive(Debug, Default)]
pub struct LockWord(AtomicU64);

/// The holders of a lock, as far as the word names them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Holders {
    /// These workers, as bits; none if the lock is free.
    Shared(u64),
    /// This worker.
    Exclusive(u32),
}

impl Holders {
    /// Returns the workers, each with true if it holds the lock exclusively.
    pub(super) fn workers(self) -> impl Iterator<Item = (u32, bool)> {
        let (mut bits, mut alone) = match self {
            Holders::Shared(bits) => (bits, None),
            Holders::Exclusive(worker) => (0, Some(worker)),
        };
        std::iter::from_fn(move || {
            if let Some(worker) = alone.take() {
                return Some((worker, true));
            }
            let worker = (bits != 0).then(|| bits.trailing_zeros())?;
            bits &= bits - 1;
            Some((worker, false))
        })
    }
}

/// Says whether a release must hand the lock on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(super) enum Released {
    /// Nobody.
    NoWaiters,
    /// Those in the queue.
    Queued,
}

impl Released {
    fn from(word: u64) -> Self {
        if word & QUEUED == 0 { Released::NoWaiters } else { Released::Queued }
    }
}

/// Returns the bit of a worker, if it has one.
#[inline(always)]
fn bit(worker: u32) -> Option<u64> {
    (worker < BITS).then(|| 1 << worker)
}

impl LockWord {
    /// Makes the lock of a segment that a worker has just created and holds.
    pub(super) fn new_locked(worker: u32) -> Self {
        Self(AtomicU64::new(EXCLUSIVE | u64::from(worker)))
    }

    /// Takes the lock in shared mode if nobody is in the way.
    #[inline(always)]
    pub(super) fn try_shared(&self, worker: u32) -> bool {
        let Some(bit) = bit(worker) else { return false };
        // Acquire: pairs with the release of the last holder, so that its stores are seen. Sequentially consistent
        // besides: locks and the checks of buckets and leaves must not miss each other (`occ`).
        let shared = |seen| (seen & (EXCLUSIVE | QUEUED) == 0).then_some(seen | bit);
        update(&self.0, Ordering::SeqCst, shared).is_ok()
    }

    /// Takes the lock exclusively if nobody is in the way. `shares` is true if the worker shares it already.
    #[inline(always)]
    pub(super) fn try_exclusive(&self, worker: u32, shares: bool) -> bool {
        let free = match (shares, bit(worker)) {
            (false, _) => 0,
            (true, Some(bit)) => bit,
            (true, None) => return false,
        };
        let taken = EXCLUSIVE | u64::from(worker);
        self.0.compare_exchange(free, taken, Ordering::SeqCst, Ordering::Relaxed).is_ok()
    }

    /// Releases a shared lock. `None` if the worker has no bit: then it is noted in the queue. Not for a protocol
    /// that revokes locks, because there the word may already belong to another worker.
    #[inline(always)]
    pub(super) fn release_shared(&self, worker: u32) -> Option<Released> {
        // Release: pairs with the acquire of the next holder, which may store.
        bit(worker).map(|bit| Released::from(self.0.fetch_and(!bit, Ordering::Release)))
    }

    /// Does what [`release_shared`](Self::release_shared) does, unless the lock was taken away.
    #[inline(always)]
    pub(super) fn release_shared_if_held(&self, worker: u32) -> Option<Released> {
        let bit = bit(worker)?;
        // Release: pairs with the acquire of the next holder.
        let without = |seen| (seen & EXCLUSIVE == 0 && seen & bit != 0).then_some(seen & !bit);
        let released = update(&self.0, Ordering::Release, without);
        Some(released.map_or(Released::NoWaiters, Released::from))
    }

    /// True if this worker gets the lock only through the queue.
    #[inline]
    pub(super) fn needs_queue(&self, worker: u32) -> bool {
        worker >= BITS || self.0.load(Ordering::Relaxed) & QUEUED != 0
    }

    /// Releases an exclusive lock, unless it was taken away.
    #[inline(always)]
    pub(super) fn release_exclusive(&self, worker: u32) -> Released {
        let mine = EXCLUSIVE | u64::from(worker);
        let mut seen = mine;
        loop {
            // Release: pairs with the acquire of the next holder.
            match self.0.compare_exchange(seen, seen & QUEUED, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return Released::from(seen),
                // The queue was closed or opened meanwhile.
                Err(now) if now & !QUEUED == mine => seen = now,
                // An older transaction has got the lock through the queue.
                Err(_) => return Released::NoWaiters,
            }
        }
    }

    /// Closes the lock: everybody goes through the queue. To be called under the queue's mutex only, like all that
    /// follow.
    pub(super) fn close(&self) {
        self.0.fetch_or(QUEUED, Ordering::SeqCst);
    }

    /// Opens the lock again: nobody is in the queue any more.
    pub(super) fn open(&self) {
        self.0.fetch_and(!QUEUED, Ordering::Release);
    }

    /// Returns the current holders of the lock.
    pub(super) fn holders(&self) -> Holders {
        let word = self.0.load(Ordering::SeqCst);
        let holders = word & !(EXCLUSIVE | QUEUED);
        if word & EXCLUSIVE == 0 { Holders::Shared(holders) } else { Holders::Exclusive(holders as u32) }
    }

    /// True if a worker holds the lock, shared or exclusively.
    pub(super) fn is_held_by(&self, worker: u32) -> bool {
        match (self.holders(), bit(worker)) {
            (Holders::Exclusive(holder), _) => holder == worker,
            (Holders::Shared(bits), Some(bit)) => bits & bit != 0,
            (Holders::Shared(_), None) => false,
        }
    }

    /// Makes a worker share the lock. False if it has no bit: then it must be noted in the queue.
    pub(super) fn grant_shared(&self, worker: u32) -> bool {
        let Some(bit) = bit(worker) else { return false };
        self.0.fetch_or(bit, Ordering::SeqCst);
        true
    }

    /// Grants the lock exclusively to a worker. Nobody else may hold it.
    pub(super) fn grant_exclusive(&self, worker: u32) {
        // The lock is closed and has no other holder, so nobody changes the word without the mutex.
        self.0.store(EXCLUSIVE | QUEUED | u64::from(worker), Ordering::SeqCst);
    }

    /// Takes the lock from a wounded worker, if it still holds it.
    pub(super) fn revoke(&self, worker: u32) {
        match (self.holders(), bit(worker)) {
            (Holders::Exclusive(_), _) => {
                // The lock stays closed, so a failure means that the worker has released it.
                let held = EXCLUSIVE | QUEUED | u64::from(worker);
                let _ = self.0.compare_exchange(held, QUEUED, Ordering::SeqCst, Ordering::Relaxed);
            }
            (Holders::Shared(_), Some(bit)) => _ = self.0.fetch_and(!bit, Ordering::SeqCst),
            (Holders::Shared(_), None) => {}
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn many_share_a_lock_and_one_has_it_alone() {
        let lock = LockWord::default();
        assert!(lock.try_shared(0) && lock.try_shared(2));
        assert!(!lock.try_exclusive(1, false) && !lock.try_exclusive(0, true));
        assert_eq!(lock.holders(), Holders::Shared(0b101));
        assert_eq!(lock.release_shared(2), Some(Released::NoWaiters));
        assert!(lock.try_exclusive(0, true));
        assert_eq!(lock.holders(), Holders::Exclusive(0));
        assert!(!lock.try_shared(1));
        assert_eq!(lock.release_exclusive(0), Released::NoWaiters);
        assert!(lock.try_exclusive(9_999, false));
    }

    #[test]
    fn a_closed_lock_is_had_through_the_queue_only() {
        let lock = LockWord::default();
        assert!(lock.try_shared(1));
        lock.close();
        assert_eq!(lock.holders(), Holders::Shared(0b10));
        assert!(!lock.try_shared(0) && !lock.try_exclusive(1, true));
        assert_eq!(lock.release_shared(1), Some(Released::Queued));
        lock.grant_exclusive(2);
        assert_eq!(lock.release_exclusive(2), Released::Queued);
        lock.open();
        assert!(lock.try_shared(0));
    }

    #[test]
    fn an_attempt_that_has_lost_a_lock_does_not_release_the_next_holders() {
        let lock = LockWord::new_locked(1);
        lock.close();
        lock.revoke(1);
        lock.grant_exclusive(2);
        assert_eq!(lock.release_exclusive(1), Released::NoWaiters);
        assert_eq!(lock.release_shared_if_held(1), Some(Released::NoWaiters));
        assert_eq!(lock.holders(), Holders::Exclusive(2));
    }

    #[test]
    fn a_worker_without_a_bit_does_not_share_by_the_word() {
        let lock = LockWord::default();
        assert!(!lock.try_shared(BITS) && !lock.grant_shared(BITS));
        assert_eq!(lock.release_shared(BITS), None);
    }
}

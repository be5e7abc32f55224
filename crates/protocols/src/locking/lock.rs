//! The reader-writer lock beside each value: one word.
//!
//! ```text
//! bit 63        bit 62    bits 0 to 61
//! exclusive     queued    shared: one bit for each of the workers 0 to 61 that hold the lock
//!                         exclusive: the number of the worker that holds it
//! ```
//!
//! So who holds a lock can be told from the word, which is what comparing ages needs. While nobody is in the way,
//! taking and releasing it is one read-modify-write each. *Queued* sends everybody to the queues (`queue`): a
//! transaction waits there, or a worker with a higher number shares the lock and is noted there.

use hotrow_sync::atomic::{AtomicU64, Ordering};

const EXCLUSIVE: u64 = 1 << 63;
const QUEUED: u64 = 1 << 62;
/// Workers that have a bit of their own.
const BITS: u32 = if cfg!(test) { 3 } else { 62 };

/// A reader-writer lock that knows its holders.
#[derive(Debug, Default)]
pub struct LockWord(AtomicU64);

/// Who holds a lock, as far as the word says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Holders {
    /// These workers, as bits; nobody if there are none.
    Shared(u64),
    /// This worker.
    Exclusive(u32),
}

impl Holders {
    /// Their workers, and whether the lock is theirs alone.
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

/// Who else may have to be told when a lock is released.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(super) enum Released {
    /// Nobody.
    NoWaiters,
    /// Who is in the queue.
    Queued,
}

impl Released {
    fn from(word: u64) -> Self {
        if word & QUEUED == 0 { Released::NoWaiters } else { Released::Queued }
    }
}

/// The bit of a worker, if it has one.
#[inline(always)]
fn bit(worker: u32) -> Option<u64> {
    (worker < BITS).then(|| 1 << worker)
}

impl LockWord {
    /// The lock of a segment that a worker has just made and holds.
    pub(super) fn new_locked(worker: u32) -> Self {
        Self(AtomicU64::new(EXCLUSIVE | u64::from(worker)))
    }

    /// Shares the lock if nobody is in the way.
    #[inline(always)]
    pub(super) fn try_shared(&self, worker: u32) -> bool {
        let Some(bit) = bit(worker) else { return false };
        let mut seen = self.0.load(Ordering::Relaxed);
        while seen & (EXCLUSIVE | QUEUED) == 0 {
            // Acquire: pairs with the release of whoever held it last, so that its stores are seen. Sequentially
            // consistent besides: locks and the checks of buckets and leaves must not miss each other (`occ`).
            match self.0.compare_exchange_weak(seen, seen | bit, Ordering::SeqCst, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
        false
    }

    /// Takes the lock alone if nobody is in the way. `shares` says whether the worker shares it already.
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

    /// Gives a shared lock back. `None` if the worker has no bit: then it is noted in the queue. Not for a protocol
    /// that revokes locks: the word may belong to another by now.
    #[inline(always)]
    pub(super) fn release_shared(&self, worker: u32) -> Option<Released> {
        // Release: pairs with the acquire of the next holder, which may store.
        bit(worker).map(|bit| Released::from(self.0.fetch_and(!bit, Ordering::Release)))
    }

    /// As [`release_shared`](Self::release_shared), unless the lock was taken away.
    #[inline(always)]
    pub(super) fn release_shared_if_held(&self, worker: u32) -> Option<Released> {
        let bit = bit(worker)?;
        let mut seen = self.0.load(Ordering::Relaxed);
        while seen & EXCLUSIVE == 0 && seen & bit != 0 {
            // Release: pairs with the acquire of the next holder.
            match self.0.compare_exchange_weak(seen, seen & !bit, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return Some(Released::from(seen)),
                Err(now) => seen = now,
            }
        }
        Some(Released::NoWaiters)
    }

    /// Whether only the queue gives the lock to this worker.
    #[inline]
    pub(super) fn needs_queue(&self, worker: u32) -> bool {
        worker >= BITS || self.0.load(Ordering::Relaxed) & QUEUED != 0
    }

    /// Gives an exclusive lock back, unless it was taken away.
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
                // Somebody older has the lock now, through the queue.
                Err(_) => return Released::NoWaiters,
            }
        }
    }

    /// From now on everybody goes through the queue. Only under the queue's mutex, as all that follow.
    pub(super) fn close(&self) {
        self.0.fetch_or(QUEUED, Ordering::SeqCst);
    }

    /// Nobody is in the queue any more.
    pub(super) fn open(&self) {
        self.0.fetch_and(!QUEUED, Ordering::Release);
    }

    /// Who holds the lock now.
    pub(super) fn holders(&self) -> Holders {
        let word = self.0.load(Ordering::SeqCst);
        let holders = word & !(EXCLUSIVE | QUEUED);
        if word & EXCLUSIVE == 0 { Holders::Shared(holders) } else { Holders::Exclusive(holders as u32) }
    }

    /// Whether a worker holds the lock, by its bit or alone.
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

    /// Gives the lock, which nobody else holds, to a worker alone.
    pub(super) fn grant_exclusive(&self, worker: u32) {
        // Closed, and without holders but the worker itself: nobody changes the word without the mutex.
        self.0.store(EXCLUSIVE | QUEUED | u64::from(worker), Ordering::SeqCst);
    }

    /// Takes the lock from a worker that was wounded, if it still has it.
    pub(super) fn revoke(&self, worker: u32) {
        match (self.holders(), bit(worker)) {
            (Holders::Exclusive(_), _) => {
                // Closed all the while, so a failure means that the worker has released.
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
    fn who_has_lost_a_lock_does_not_release_the_next_holders() {
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

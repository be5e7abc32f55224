//! The reader-writer lock beside each value: two words.
//!
//! - `holder`: bit 63 *exclusive*, bit 62 *queued*, the rest the number of the worker that holds the lock exclusively;
//! - `readers`: one bit for each of the workers 0 to 63 that shares the lock.
//!
//! So the words name the lock's holders, and their ages can be compared. *Queued* sends everybody to the queues (`queue`):
//! either a transaction waits there, or a worker with a higher number shares the lock and is noted there.
//!
//! A reader *enters its bit and then looks at* `holder`. A writer *puts itself into* `holder` *and then looks at* `readers`.
//! Both are read-modify-writes followed by loads, all sequentially consistent. So of the two at least one sees the other, and takes back
//! what it has done. Readers do not hinder each other: each enters by one instruction that cannot fail. (With one word for all, a reader
//! would have to exchange it, and fail whenever another one came or went. On 48 cores that share a row this took nine tenths of the time.)
//!
//! So a worker may be named for a moment that has not got the lock and is about to find that out. Whoever meets it takes it for a holder,
//! and waits for its release, which comes like any other.

use hotrow_sync::atomic::{AtomicU64, Ordering};

const EXCLUSIVE: u64 = 1 << 63;
const QUEUED: u64 = 1 << 62;
/// Number of workers that have a bit of their own.
const BITS: u32 = if cfg!(test) { 3 } else { 64 };

/// A reader-writer lock that knows its holders.
#[derive(Debug, Default)]
pub struct LockWords {
    holder: AtomicU64,
    readers: AtomicU64,
}

/// The holders of a lock, as far as its words name them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Holders {
    exclusive: Option<u32>,
    /// A bit for each worker.
    shared: u64,
}

impl Holders {
    /// Returns the workers, each with true if it holds the lock exclusively.
    pub(super) fn workers(self) -> impl Iterator<Item = (u32, bool)> {
        let mut bits = self.shared;
        let shared = std::iter::from_fn(move || {
            let worker = (bits != 0).then(|| bits.trailing_zeros())?;
            bits &= bits - 1;
            Some((worker, false))
        });
        self.exclusive.map(|worker| (worker, true)).into_iter().chain(shared)
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
    fn from(holder: u64) -> Self {
        if holder & QUEUED == 0 { Released::NoWaiters } else { Released::Queued }
    }
}

/// Returns the bit of a worker, if it has one.
#[inline(always)]
fn bit(worker: u32) -> Option<u64> {
    (worker < BITS).then(|| 1 << worker)
}

impl LockWords {
    /// Makes the lock of a segment that a worker has just created and holds.
    pub(super) fn new_locked(worker: u32) -> Self {
        Self { holder: AtomicU64::new(EXCLUSIVE | u64::from(worker)), ..Self::default() }
    }

    /// Takes the lock in shared mode if nobody is in the way.
    ///
    /// # Errors
    ///
    /// Those of a release, because others may have taken the worker for a holder.
    #[inline(always)]
    pub(super) fn try_shared(&self, worker: u32) -> Result<(), Released> {
        let Some(bit) = bit(worker) else { return Err(Released::NoWaiters) };
        // Sequentially consistent, both: see above; the load acquires what the last exclusive holder has released. Besides, locks
        // and the checks of buckets and leaves must not miss each other (`occ`).
        self.readers.fetch_or(bit, Ordering::SeqCst);
        if self.holder.load(Ordering::SeqCst) & (EXCLUSIVE | QUEUED) == 0 {
            return Ok(());
        }
        Err(self.leave_shared(bit))
    }

    /// Takes the lock exclusively if nobody is in the way. `shares` is true if the worker shares it already.
    ///
    /// # Errors
    ///
    /// As [`try_shared`](Self::try_shared).
    #[inline(always)]
    pub(super) fn try_exclusive(&self, worker: u32, shares: bool) -> Result<(), Released> {
        let own = match (shares, bit(worker)) {
            (false, _) => 0,
            (true, Some(bit)) => bit,
            (true, None) => return Err(Released::NoWaiters),
        };
        let taken = EXCLUSIVE | u64::from(worker);
        // Sequentially consistent, both: as in `try_shared`. The load acquires what the last readers have released.
        if self.holder.compare_exchange(0, taken, Ordering::SeqCst, Ordering::Relaxed).is_err() {
            return Err(Released::NoWaiters);
        }
        if self.readers.load(Ordering::SeqCst) & !own != 0 {
            return Err(self.release_exclusive(worker));
        }
        if shares {
            self.leave_readers(own);
        }
        Ok(())
    }

    /// Releases a shared lock, unless it was taken away. `None` if the worker has no bit: then it is noted in the queue.
    #[inline(always)]
    pub(super) fn release_shared(&self, worker: u32) -> Option<Released> {
        bit(worker).map(|bit| self.leave_shared(bit))
    }

    #[inline(always)]
    fn leave_shared(&self, bit: u64) -> Released {
        // Sequentially consistent, both: `close` marks `holder` and then looks at `readers`. Release: pairs with the acquire of the
        // next holder, which may store.
        self.readers.fetch_and(!bit, Ordering::SeqCst);
        Released::from(self.holder.load(Ordering::SeqCst))
    }

    /// Ends a worker's sharing; it holds the lock exclusively now.
    fn leave_readers(&self, bit: u64) {
        // Relaxed: others look at the readers after the exclusive lock's release.
        self.readers.fetch_and(!bit, Ordering::Relaxed);
    }

    /// True if this worker gets the lock only through the queue.
    #[inline]
    pub(super) fn needs_queue(&self, worker: u32) -> bool {
        worker >= BITS || self.holder.load(Ordering::Relaxed) & QUEUED != 0
    }

    /// Releases an exclusive lock, unless it was taken away.
    #[inline(always)]
    pub(super) fn release_exclusive(&self, worker: u32) -> Released {
        let mine = EXCLUSIVE | u64::from(worker);
        let mut seen = mine;
        loop {
            // Release: pairs with the acquire of the next holder.
            match self.holder.compare_exchange(seen, seen & QUEUED, Ordering::Release, Ordering::Relaxed) {
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
        // Sequentially consistent: as in `release_shared`.
        self.holder.fetch_or(QUEUED, Ordering::SeqCst);
    }

    /// Opens the lock again: nobody is in the queue any more.
    pub(super) fn open(&self) {
        self.holder.fetch_and(!QUEUED, Ordering::Release);
    }

    /// Returns the current holders of the lock.
    pub(super) fn holders(&self) -> Holders {
        let holder = self.holder.load(Ordering::SeqCst);
        let exclusive = (holder & EXCLUSIVE != 0).then_some((holder & !(EXCLUSIVE | QUEUED)) as u32);
        Holders { exclusive, shared: self.readers.load(Ordering::SeqCst) }
    }

    /// True if a worker holds the lock, shared or exclusively.
    pub(super) fn is_held_by(&self, worker: u32) -> bool {
        let Holders { exclusive, shared } = self.holders();
        exclusive == Some(worker) || bit(worker).is_some_and(|bit| shared & bit != 0)
    }

    /// Makes a worker share the lock. False if it has no bit: then it must be noted in the queue.
    pub(super) fn grant_shared(&self, worker: u32) -> bool {
        let Some(bit) = bit(worker) else { return false };
        self.readers.fetch_or(bit, Ordering::SeqCst);
        true
    }

    /// Grants the lock exclusively to a worker. Nobody else may hold it.
    pub(super) fn grant_exclusive(&self, worker: u32) {
        // The lock is closed and nobody holds it exclusively, so nobody changes this word without the mutex.
        self.holder.store(EXCLUSIVE | QUEUED | u64::from(worker), Ordering::SeqCst);
        self.leave_readers(bit(worker).unwrap_or(0));
    }

    /// Takes the lock from a wounded worker, if it still holds it.
    pub(super) fn revoke(&self, worker: u32) {
        // The lock stays closed, so a failure means that the worker has released it, or has it not exclusively.
        let held = EXCLUSIVE | QUEUED | u64::from(worker);
        let _ = self.holder.compare_exchange(held, QUEUED, Ordering::SeqCst, Ordering::Relaxed);
        if let Some(bit) = bit(worker) {
            self.readers.fetch_and(!bit, Ordering::SeqCst);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn holders(exclusive: Option<u32>, shared: u64) -> Holders {
        Holders { exclusive, shared }
    }

    #[test]
    fn many_share_a_lock_and_one_has_it_alone() {
        let lock = LockWords::default();
        assert!(lock.try_shared(0).is_ok() && lock.try_shared(2).is_ok());
        assert!(lock.try_exclusive(1, false).is_err() && lock.try_exclusive(0, true).is_err());
        assert_eq!(lock.holders(), holders(None, 0b101));
        assert_eq!(lock.release_shared(2), Some(Released::NoWaiters));
        assert_eq!(lock.try_exclusive(0, true), Ok(()));
        assert_eq!(lock.holders(), holders(Some(0), 0));
        assert_eq!(lock.try_shared(1), Err(Released::NoWaiters));
        assert_eq!(lock.holders(), holders(Some(0), 0));
        assert_eq!(lock.release_exclusive(0), Released::NoWaiters);
        assert_eq!(lock.try_exclusive(9_999, false), Ok(()));
    }

    #[test]
    fn a_closed_lock_is_had_through_the_queue_only() {
        let lock = LockWords::default();
        assert_eq!(lock.try_shared(1), Ok(()));
        lock.close();
        assert_eq!(lock.holders(), holders(None, 0b10));
        assert_eq!(lock.try_shared(0), Err(Released::Queued));
        assert!(lock.try_exclusive(1, true).is_err());
        assert_eq!(lock.release_shared(1), Some(Released::Queued));
        lock.grant_exclusive(2);
        assert_eq!(lock.release_exclusive(2), Released::Queued);
        lock.open();
        assert_eq!(lock.try_shared(0), Ok(()));
    }

    #[test]
    fn an_attempt_that_has_lost_a_lock_does_not_release_the_next_holders() {
        let lock = LockWords::new_locked(1);
        lock.close();
        lock.revoke(1);
        lock.grant_exclusive(2);
        assert_eq!(lock.release_exclusive(1), Released::NoWaiters);
        assert!(lock.release_shared(1).is_some());
        assert_eq!(lock.holders(), holders(Some(2), 0));
    }

    #[test]
    fn a_worker_without_a_bit_does_not_share_by_the_words() {
        let lock = LockWords::default();
        assert!(lock.try_shared(BITS).is_err() && !lock.grant_shared(BITS));
        assert_eq!(lock.release_shared(BITS), None);
    }
}

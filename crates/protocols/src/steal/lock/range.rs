//! The lock of a range, with two kinds of holders: holders of the same kind share it, different kinds exclude each
//! other.
//!
//! ```text
//! bits 0 to 14    number of workers that hold it
//! bit 15          they hold it to change, not to scan
//! bit 16          both: the owner holds it and, as soon as nobody else does, holds it in both ways
//! bits 17 to 30   the owner's worker; if there is none, that of the head of the queue if it waits for the holders
//! bits 31 to 63   the last node of the queue; 0 if nobody waits
//! ```
//!
//! It is the word of a [`QueueLock`] with a second kind of readers in the place of the writer, and the same queue.
//! The upgrade is to the other kind: an attempt that has scanned and wants to change, or has changed and wants to
//! scan, waits for all other holders to leave. While an attempt waits for that, or has it, nobody else takes the
//! lock. So one bit stands for both states, and the count tells them apart.

use super::super::node::NodeId;
use super::super::word::Word;
use super::{
    Blocker, EXCLUSIVE as CHANGE, Joined, OWNER, QueueLock, READER as HOLDER, READERS as HOLDERS, Released,
    TAIL, TAIL_SHIFT, UPGRADING as BOTH, Upgraded, owned_by, owner, tail,
};
use hotrow_sync::atomic::Ordering;

/// The lock of a range, or of several.
#[derive(Debug, Default)]
pub(in crate::steal) struct RangeLock(QueueLock);

/// A range's lock, with the way in which a worker wants it.
#[derive(Debug, Clone, Copy)]
pub(in crate::steal) struct Wanted<'l> {
    pub(in crate::steal) lock: &'l RangeLock,
    /// True to change, false to scan.
    pub(in crate::steal) change: bool,
}

/// Returns the holder that keeps the head of the queue from the lock.
#[inline]
fn blocker(word: u64, change: bool) -> Option<Blocker> {
    if word & BOTH != 0 {
        Some(Blocker::Owner(owner(word)))
    } else if word & HOLDERS != 0 && (word & CHANGE != 0) != change {
        Some(Blocker::Readers)
    } else {
        None
    }
}

/// Returns the word after a request is granted that nobody is in the way of.
#[inline]
fn granted(word: u64, change: bool) -> u64 {
    let kind = if change { CHANGE } else { 0 };
    ((word & !CHANGE) + HOLDER) | kind
}

#[inline]
fn is_alone(word: u64) -> bool {
    word & HOLDERS == HOLDER
}

impl RangeLock {
    /// Takes the lock if nobody is in the way and nobody waits.
    #[inline]
    pub(in crate::steal) fn try_hold(&self, change: bool) -> bool {
        let mut seen = self.0.0.load(Ordering::Relaxed);
        while tail(seen).is_none() && blocker(seen, change).is_none() {
            // Acquire: pairs with the release of the last holder, so that its changes of the index are seen.
            // Sequentially consistent besides, like everything that takes a lock (`QueueLock::try_shared`).
            let next = granted(seen, change);
            match self.0.0.compare_exchange_weak(seen, next, Ordering::SeqCst, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
        false
    }

    /// Takes the lock in the other way, too, if the worker is its only holder and nobody waits.
    #[inline]
    pub(in crate::steal) fn try_both(&self, worker: u32, change: bool) -> bool {
        // Sequentially consistent: as `try_hold`.
        let held = granted(0, !change);
        let both = held | BOTH | owned_by(worker);
        self.0.0.compare_exchange(held, both, Ordering::SeqCst, Ordering::Relaxed).is_ok()
    }

    /// Releases the lock, in whatever way the worker holds it.
    #[inline]
    pub(in crate::steal) fn release(&self, worker: u32) -> Released {
        let mut seen = self.0.0.load(Ordering::Relaxed);
        loop {
            let had_both = seen & BOTH != 0 && owner(seen) == worker;
            let left = match is_alone(seen) {
                // If the head waits for the holders, it has put its name there.
                true if !had_both && seen & TAIL != 0 => seen & (TAIL | OWNER),
                true => seen & TAIL,
                false => seen - HOLDER,
            };
            // Release: pairs with the acquire of the next holder. Further updates of the word between the two keep the
            // pair.
            match self.0.0.compare_exchange_weak(seen, left, Ordering::Release, Ordering::Relaxed) {
                Ok(_) if had_both => return Released::if_awaited(seen & TAIL != 0, seen),
                Ok(_) => {
                    let upgrade = left & BOTH != 0 && is_alone(left);
                    return Released::if_awaited(upgrade || left & HOLDERS == 0 && left & TAIL != 0, left);
                }
                Err(now) => seen = now,
            }
        }
    }

    /// True if a worker holds it in this way.
    #[cfg(all(test, not(loom)))]
    pub(in crate::steal) fn is_held(&self, change: bool) -> bool {
        blocker(self.0.0.load(Ordering::SeqCst), !change).is_some()
    }
}

/// The two ways take the place of `exclusive` at a [`QueueLock`].
impl Word for Wanted<'_> {
    fn join(&self, node: NodeId, _exclusive: bool, mut behind: impl FnMut(Option<NodeId>)) -> Joined {
        let word = &self.lock.0.0;
        let mut seen = word.load(Ordering::Relaxed);
        loop {
            let before = tail(seen);
            let takes = before.is_none() && blocker(seen, self.change).is_none();
            let next = if takes {
                granted(seen, self.change)
            } else {
                behind(before);
                seen & !TAIL | node.word() << TAIL_SHIFT
            };
            // Sequentially consistent: as `QueueLock::join`.
            match word.compare_exchange_weak(seen, next, Ordering::SeqCst, Ordering::Relaxed) {
                Ok(_) if takes => return Joined::Taken,
                Ok(_) => return Joined::Behind(before),
                Err(now) => seen = now,
            }
        }
    }

    fn take(&self, node: NodeId, _exclusive: bool) -> Option<bool> {
        let word = &self.lock.0.0;
        let mut seen = word.load(Ordering::Relaxed);
        while blocker(seen, self.change).is_none() {
            let is_last = tail(seen) == Some(node);
            // The name, if there is one, is its own.
            let taken = granted(seen & !OWNER, self.change);
            let taken = if is_last { taken & !TAIL } else { taken };
            // Sequentially consistent: as `try_hold`.
            match word.compare_exchange_weak(seen, taken, Ordering::SeqCst, Ordering::Relaxed) {
                Ok(_) => return Some(is_last),
                Err(now) => seen = now,
            }
        }
        None
    }

    fn leave_empty(&self, node: NodeId) -> bool {
        self.lock.0.leave_empty(node)
    }

    fn is_last(&self, node: NodeId) -> bool {
        self.lock.0.is_last(node)
    }

    fn blocker(&self, _exclusive: bool) -> Option<Blocker> {
        blocker(self.lock.0.0.load(Ordering::SeqCst), self.change)
    }

    /// Takes the lock in the other way, too, for a worker that holds it, or records in the word that the worker
    /// waits for that.
    fn upgrade(&self, worker: u32) -> Upgraded {
        let word = &self.lock.0.0;
        // Sequentially consistent: the word may say that the last of the others has left, by a release.
        let mut seen = word.load(Ordering::SeqCst);
        loop {
            let is_alone = is_alone(seen);
            if seen & BOTH != 0 {
                return match owner(seen) == worker {
                    true if is_alone => Upgraded::Taken(Released::NoWaiters),
                    true => Upgraded::Waiting(Released::NoWaiters),
                    false => Upgraded::Rival(owner(seen)),
                };
            }
            // The head waited for the holders, and now waits for this worker.
            let head = Released::if_awaited(seen & TAIL != 0, seen);
            let next = seen & !OWNER | BOTH | owned_by(worker);
            // Sequentially consistent: as `try_hold`.
            match word.compare_exchange_weak(seen, next, Ordering::SeqCst, Ordering::SeqCst) {
                Ok(_) if is_alone => return Upgraded::Taken(head),
                Ok(_) => return Upgraded::Waiting(head),
                Err(now) => seen = now,
            }
        }
    }

    fn upgrade_may_go_on(&self, worker: u32) -> bool {
        self.lock.0.upgrade_may_go_on(worker)
    }

    fn replace_upgrade(&self, rival: u32, worker: u32) -> bool {
        self.lock.0.replace_upgrade(rival, worker)
    }

    fn cancel_upgrade(&self, worker: u32) -> Released {
        self.lock.0.cancel_upgrade(worker)
    }

    fn await_readers(&self, head: u32) -> bool {
        let held = |word| word & BOTH == 0 && word & HOLDERS != 0;
        self.lock.0.change_while(held, |word| word & !OWNER | owned_by(head)).is_some()
    }

    fn awaits_readers(&self, head: u32) -> bool {
        let word = self.lock.0.0.load(Ordering::SeqCst);
        word & BOTH == 0 && word & HOLDERS != 0 && owner(word) == head
    }

    fn await_readers_no_more(&self, head: u32) {
        let says = |word| word & BOTH == 0 && word & OWNER == owned_by(head);
        self.lock.0.change_while(says, |word| word & !OWNER);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const SCAN: bool = false;
    const CHANGE: bool = true;

    fn node(worker: u32) -> NodeId {
        NodeId::new(worker, 1, 7)
    }

    #[test]
    fn those_of_one_kind_hold_it_together_and_keep_the_other_kind_out() {
        for change in [SCAN, CHANGE] {
            let lock = RangeLock::default();
            let other = Wanted { lock: &lock, change: !change };
            assert!(lock.try_hold(change) && lock.try_hold(change) && !lock.try_hold(!change));
            assert!(lock.is_held(change) && !lock.is_held(!change));
            assert_eq!(other.blocker(true), Some(Blocker::Readers));
            assert_eq!(lock.release(1), Released::NoWaiters);
            assert!(!lock.try_hold(!change));
            assert_eq!(lock.release(2), Released::NoWaiters);
            assert!(lock.try_hold(!change), "it is free for either kind");
        }
    }

    #[test]
    fn a_waiter_for_the_holders_is_told_by_the_last_and_overtaken_by_nobody() {
        for change in [SCAN, CHANGE] {
            let lock = RangeLock::default();
            let (same, other) = (Wanted { lock: &lock, change }, Wanted { lock: &lock, change: !change });
            assert!(lock.try_hold(change) && lock.try_hold(change));
            assert_eq!(other.join(node(3), true, |_| ()), Joined::Behind(None));
            assert!(other.await_readers(3) && other.awaits_readers(3));
            assert!(!lock.try_hold(change), "somebody waits");
            assert_eq!(same.join(node(4), true, |_| ()), Joined::Behind(Some(node(3))));
            assert_eq!((lock.release(1), lock.release(2)), (Released::NoWaiters, Released::Awaited(3)));
            assert_eq!(other.take(node(3), true), Some(false));
            assert_eq!(same.take(node(4), true), None);
            assert!(same.await_readers(4));
            assert_eq!(lock.release(3), Released::Awaited(4));
            assert_eq!(same.take(node(4), true), Some(true));
            assert_eq!(lock.release(4), Released::NoWaiters);
            assert!(lock.try_hold(!change));
        }
    }

    #[test]
    fn the_only_holder_takes_it_in_both_ways() {
        for change in [SCAN, CHANGE] {
            let lock = RangeLock::default();
            assert!(lock.try_hold(change) && lock.try_both(5, !change));
            assert!(!lock.try_hold(change) && !lock.try_hold(!change));
            let wanted = Wanted { lock: &lock, change };
            assert_eq!(wanted.blocker(true), Some(Blocker::Owner(5)));
            assert_eq!(wanted.join(node(6), true, |_| ()), Joined::Behind(None));
            assert_eq!(wanted.upgrade(5), Upgraded::Taken(Released::NoWaiters));
            assert_eq!(lock.release(5), Released::Awaited(5));
            assert_eq!(wanted.take(node(6), true), Some(true));
            assert_eq!(lock.release(6), Released::NoWaiters);
            assert!(lock.try_hold(SCAN) && lock.try_hold(SCAN) && !lock.try_both(5, CHANGE));
        }
    }

    #[test]
    fn an_upgrade_waits_for_the_other_holders_and_goes_before_the_queue() {
        let lock = RangeLock::default();
        let (scan, change) = (Wanted { lock: &lock, change: SCAN }, Wanted { lock: &lock, change: CHANGE });
        assert!(lock.try_hold(SCAN) && lock.try_hold(SCAN));
        assert_eq!(change.join(node(7), true, |_| ()), Joined::Behind(None));
        assert!(change.await_readers(7));
        // The head is told that it now waits for another worker.
        assert_eq!(change.upgrade(1), Upgraded::Waiting(Released::Awaited(7)));
        assert!(!change.awaits_readers(7));
        assert_eq!(change.upgrade(2), Upgraded::Rival(1));
        assert!(change.replace_upgrade(1, 2) && !change.upgrade_may_go_on(2) && change.upgrade_may_go_on(1));
        // The loser leaves, and tells the other worker.
        assert_eq!((change.cancel_upgrade(1), lock.release(1)), (Released::NoWaiters, Released::Awaited(2)));
        assert!(change.upgrade_may_go_on(2));
        assert_eq!(change.upgrade(2), Upgraded::Taken(Released::NoWaiters));
        assert_eq!((scan.blocker(true), lock.release(2)), (Some(Blocker::Owner(2)), Released::Awaited(2)));
        assert_eq!(change.take(node(7), true), Some(true));
    }

    #[test]
    fn a_wish_for_both_that_is_given_up_leaves_the_lock_as_it_was() {
        let lock = RangeLock::default();
        let scan = Wanted { lock: &lock, change: SCAN };
        assert!(lock.try_hold(CHANGE) && lock.try_hold(CHANGE));
        assert_eq!(scan.upgrade(1), Upgraded::Waiting(Released::NoWaiters));
        assert!(!lock.try_hold(CHANGE));
        assert_eq!(scan.cancel_upgrade(1), Released::NoWaiters);
        assert!(lock.try_hold(CHANGE) && !lock.try_hold(SCAN));
    }
}

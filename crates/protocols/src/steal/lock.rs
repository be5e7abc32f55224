//! The lock beside each value: one word, which names its owner and the last node of its queue.
//!
//! ```text
//! bits 0 to 14    number of workers that share it, or check for a moment whether they may
//! bit 15          exclusive: the owner holds it exclusively
//! bit 16          upgrading: the owner shares it and waits to hold it exclusively
//! bits 17 to 30   the owner's worker; if there is none, that of the head of the queue if it waits for readers
//! bits 31 to 63   the last node of the queue; 0 if nobody waits
//! ```
//!
//! Only waiting transactions are in the queue. So while nobody is in the way, taking and releasing the lock is one
//! read-modify-write each. Holders and tail are one word, so one update decides everything. A transaction that finds
//! the queue empty takes the lock or becomes the tail, and later ones see it. The head of the queue takes the lock
//! and, if it is the tail too, leaves the queue in the same step. The word also names the worker at whose event
//! those wait that a release may let go on: the owner, or the head.

pub(super) mod range;

use super::node::NodeId;
use hotrow_sync::atomic::{AtomicU64, Ordering};

const READER: u64 = 1;
const READERS: u64 = (1 << 15) - 1;
const EXCLUSIVE: u64 = 1 << 15;
const UPGRADING: u64 = 1 << 16;
const OWNER_SHIFT: u32 = 17;
const OWNER: u64 = ((1 << 14) - 1) << OWNER_SHIFT;
const TAIL_SHIFT: u32 = 31;
const TAIL: u64 = u64::MAX << TAIL_SHIFT;

/// A reader-writer lock with a queue.
#[derive(Debug, Default)]
pub struct QueueLock(AtomicU64);

/// The holders that a transaction waits for at the head of the queue, or for an upgrade.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Blocker {
    /// A worker that holds the lock exclusively, or will hold it before all others.
    Owner(u32),
    /// Those that share the lock.
    Readers,
}

/// Says whether a change of the word, such as a release, may let a waiter go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(super) enum Released {
    /// Nobody waits.
    NoWaiters,
    /// The head of the queue, or an upgrade, at the event of this worker.
    Awaited(u32),
}

impl Released {
    /// Reads the waiters' worker from a word before or after the change that names it.
    fn if_awaited(awaited: bool, word: u64) -> Self {
        if awaited { Released::Awaited(owner(word)) } else { Released::NoWaiters }
    }
}

/// Result of joining the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Joined {
    /// The lock was free after all, and is taken.
    Taken,
    /// The node is the last in the queue, behind this one if there was any.
    Behind(Option<NodeId>),
}

/// Result of an upgrade.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Upgraded {
    /// The worker holds the lock exclusively. The head of the queue, which waited for readers, now waits for the
    /// worker.
    Taken(Released),
    /// The word says that the worker waits for the exclusive lock. If it says so only now, the head waits for the
    /// worker, too.
    Waiting(Released),
    /// Another worker waits for the exclusive lock.
    Rival(u32),
}

#[inline(always)]
fn owned_by(worker: u32) -> u64 {
    u64::from(worker) << OWNER_SHIFT
}

#[inline(always)]
fn tail(word: u64) -> Option<NodeId> {
    NodeId::from_word(word >> TAIL_SHIFT)
}

#[inline(always)]
fn owner(word: u64) -> u32 {
    ((word & OWNER) >> OWNER_SHIFT) as u32
}

/// Returns the holder that keeps the head of the queue from the lock.
#[inline]
fn blocker(word: u64, exclusive: bool) -> Option<Blocker> {
    if word & (EXCLUSIVE | UPGRADING) != 0 {
        Some(Blocker::Owner(owner(word)))
    } else if exclusive && word & READERS != 0 {
        Some(Blocker::Readers)
    } else {
        None
    }
}

/// Returns the word after a request is granted that nobody is in the way of.
#[inline]
fn granted(word: u64, worker: u32, exclusive: bool) -> u64 {
    if exclusive { word & TAIL | EXCLUSIVE | owned_by(worker) } else { word + READER }
}

impl QueueLock {
    /// Makes the lock of a segment that a worker has just created and holds.
    pub(super) fn new_locked(worker: u32) -> Self {
        Self(AtomicU64::new(EXCLUSIVE | owned_by(worker)))
    }

    /// Shares the lock if nobody is in the way and nobody waits. A failed attempt may briefly delay another thread.
    ///
    /// The count goes up in one step, which cannot fail, and down again if it should not have gone up. With a
    /// compare-and-swap, most of many that share a lock at once would fail, each time after the word has come to
    /// them from another core. A worker is counted at most twice, by itself and by a thief of one of its operations,
    /// so the bits suffice for all workers.
    #[inline(always)]
    pub(super) fn try_shared(&self) -> Result<(), Released> {
        const IN_THE_WAY: u64 = EXCLUSIVE | UPGRADING | TAIL;
        // Relaxed: this check only keeps most hopeless workers from counting themselves; the update decides.
        if self.0.load(Ordering::Relaxed) & IN_THE_WAY != 0 {
            return Err(Released::NoWaiters);
        }
        // Acquire: pairs with the release of the last holder, so that its stores are seen. Sequentially consistent
        // besides: locks and the checks of buckets and leaves must not miss each other (`occ`).
        if self.0.fetch_add(READER, Ordering::SeqCst) & IN_THE_WAY != 0 {
            return Err(self.release_shared());
        }
        Ok(())
    }

    /// Takes the lock exclusively if nobody is in the way and nobody waits. If the worker `shares` it, its own share
    /// is not in the way.
    #[inline(always)]
    pub(super) fn try_exclusive(&self, worker: u32, shares: bool) -> bool {
        let free = if shares { READER } else { 0 };
        // Sequentially consistent: as `try_shared`.
        let taken = EXCLUSIVE | owned_by(worker);
        self.0.compare_exchange(free, taken, Ordering::SeqCst, Ordering::Relaxed).is_ok()
    }

    /// Releases a shared lock.
    #[inline(always)]
    pub(super) fn release_shared(&self) -> Released {
        // Release: pairs with the acquire of the next holder, which may store. Further updates of the word between the
        // two keep the pair.
        let left = self.0.fetch_sub(READER, Ordering::Release) - READER;
        let upgrade = left & (READERS | UPGRADING) == READER | UPGRADING;
        // If the lock is held exclusively, this was no reader (`try_shared`), and the holder will tell the head.
        let head = left & (READERS | EXCLUSIVE) == 0 && left & TAIL != 0;
        Released::if_awaited(upgrade || head, left)
    }

    /// Releases an exclusive lock.
    #[inline(always)]
    pub(super) fn release_exclusive(&self) -> Released {
        // Release: as `release_shared`. The readers' count stays, because some are counted for a moment
        // (`try_shared`).
        let held = self.0.fetch_and(!(EXCLUSIVE | OWNER), Ordering::Release);
        Released::if_awaited(held & TAIL != 0, held)
    }

    /// Takes the lock if the queue is empty and nobody is in the way. Otherwise it makes a node the tail. Before
    /// that it calls `behind` with the node ahead, so that the node names it as soon as others are behind the node.
    pub(super) fn join(
        &self,
        node: NodeId,
        exclusive: bool,
        mut behind: impl FnMut(Option<NodeId>),
    ) -> Joined {
        let mut seen = self.0.load(Ordering::Relaxed);
        loop {
            let before = tail(seen);
            let takes = before.is_none() && blocker(seen, exclusive).is_none();
            let next = if takes {
                granted(seen, node.worker(), exclusive)
            } else {
                behind(before);
                seen & !TAIL | node.word() << TAIL_SHIFT
            };
            // Sequentially consistent: as `try_shared`. Whoever joins behind sees the node's contents, and the two
            // sides of a cycle see each other (`cycle`).
            match self.0.compare_exchange_weak(seen, next, Ordering::SeqCst, Ordering::Relaxed) {
                Ok(_) if takes => return Joined::Taken,
                Ok(_) => return Joined::Behind(before),
                Err(now) => seen = now,
            }
        }
    }

    /// Takes the lock for the node at the head of the queue, unless somebody is in the way. `Some(true)` if the
    /// queue is empty then, because the node was the tail too.
    pub(super) fn take(&self, node: NodeId, exclusive: bool) -> Option<bool> {
        let mut seen = self.0.load(Ordering::Relaxed);
        while blocker(seen, exclusive).is_none() {
            let is_last = tail(seen) == Some(node);
            let taken = granted(seen, node.worker(), exclusive);
            let taken = if is_last { taken & !TAIL } else { taken };
            // Sequentially consistent: as `try_shared`.
            match self.0.compare_exchange_weak(seen, taken, Ordering::SeqCst, Ordering::Relaxed) {
                Ok(_) => return Some(is_last),
                Err(now) => seen = now,
            }
        }
        None
    }

    /// Empties the queue if a node, which is its head, is also its tail.
    pub(super) fn leave_empty(&self, node: NodeId) -> bool {
        let mut seen = self.0.load(Ordering::Relaxed);
        while tail(seen) == Some(node) {
            // Release: pairs with the acquire in `join`; the next one to join finds nobody before it.
            match self.0.compare_exchange_weak(seen, seen & !TAIL, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
        false
    }

    /// True if a node is the last in the queue.
    pub(super) fn is_last(&self, node: NodeId) -> bool {
        // Sequentially consistent: a worker that joins later sees what the node has published before.
        tail(self.0.load(Ordering::SeqCst)) == Some(node)
    }

    /// True if anybody waits in the queue.
    #[inline]
    pub(super) fn has_waiters(&self) -> bool {
        // Relaxed: a worker that joins later only waits a little longer.
        self.0.load(Ordering::Relaxed) & TAIL != 0
    }

    /// Returns the current blocker of the head of the queue.
    pub(super) fn blocker(&self, exclusive: bool) -> Option<Blocker> {
        blocker(self.0.load(Ordering::SeqCst), exclusive)
    }

    /// Takes the lock exclusively for a worker that shares it, or records in the word that the worker waits for
    /// that.
    pub(super) fn upgrade(&self, worker: u32) -> Upgraded {
        let mut seen = self.0.load(Ordering::Relaxed);
        loop {
            let (next, result) = match seen & UPGRADING != 0 {
                true if owner(seen) != worker => return Upgraded::Rival(owner(seen)),
                true if seen & READERS == READER => {
                    (granted(seen, worker, true), Upgraded::Taken(Released::NoWaiters))
                }
                true => return Upgraded::Waiting(Released::NoWaiters),
                false => {
                    let head = Released::if_awaited(seen & TAIL != 0, seen);
                    match seen & READERS == READER {
                        true => (granted(seen, worker, true), Upgraded::Taken(head)),
                        false => (seen & !OWNER | UPGRADING | owned_by(worker), Upgraded::Waiting(head)),
                    }
                }
            };
            // Sequentially consistent: as `try_shared`.
            match self.0.compare_exchange_weak(seen, next, Ordering::SeqCst, Ordering::Relaxed) {
                Ok(_) => return result,
                Err(now) => seen = now,
            }
        }
    }

    /// True if the next [`upgrade`](Self::upgrade) of a waiting worker will not end in waiting.
    pub(super) fn upgrade_may_go_on(&self, worker: u32) -> bool {
        let word = self.0.load(Ordering::SeqCst);
        word & UPGRADING == 0 || owner(word) != worker || word & READERS == READER
    }

    /// Puts a worker in the place of another one that waits for the exclusive lock. Both share it.
    pub(super) fn replace_upgrade(&self, rival: u32, worker: u32) -> bool {
        self.change_upgrade(rival, |word| word & !OWNER | owned_by(worker)).is_some()
    }

    /// Records that a worker does not wait any more for the exclusive lock, if the word still says that it does.
    pub(super) fn cancel_upgrade(&self, worker: u32) -> Released {
        let changed = self.change_upgrade(worker, |word| word & !(UPGRADING | OWNER));
        changed.map_or(Released::NoWaiters, |word| Released::if_awaited(word & TAIL != 0, word))
    }

    fn change_upgrade(&self, worker: u32, change: impl Fn(u64) -> u64) -> Option<u64> {
        self.change_while(|word| word & UPGRADING != 0 && owner(word) == worker, change)
    }

    /// Records that the head of the queue waits for the readers of the lock. False if it need not wait for them:
    /// there is no reader, or another worker holds the lock exclusively or waits for that.
    pub(super) fn await_readers(&self, head: u32) -> bool {
        let shared = |word| word & (EXCLUSIVE | UPGRADING) == 0 && word & READERS != 0;
        self.change_while(shared, |word| word & !OWNER | owned_by(head)).is_some()
    }

    /// True if the word still says that the head of the queue waits for the readers.
    pub(super) fn awaits_readers(&self, head: u32) -> bool {
        let word = self.0.load(Ordering::SeqCst);
        word & (EXCLUSIVE | UPGRADING) == 0 && word & READERS != 0 && owner(word) == head
    }

    /// Records that the head of the queue does not wait any more for the readers, if the word may say that it does.
    pub(super) fn await_readers_no_more(&self, head: u32) {
        let says = |word| word & (EXCLUSIVE | UPGRADING) == 0 && word & OWNER == owned_by(head);
        self.change_while(says, |word| word & !OWNER);
    }

    /// Changes the word if `such` holds of it. Returns the word before the change, or `None` if `such` does not
    /// hold.
    fn change_while(&self, such: impl Fn(u64) -> bool, change: impl Fn(u64) -> u64) -> Option<u64> {
        let mut seen = self.0.load(Ordering::Relaxed);
        while such(seen) {
            // Sequentially consistent: as `try_shared`.
            match self.0.compare_exchange_weak(seen, change(seen), Ordering::SeqCst, Ordering::Relaxed) {
                Ok(_) => return Some(seen),
                Err(now) => seen = now,
            }
        }
        None
    }

    /// Returns the last node of the queue.
    #[cfg(all(test, not(loom)))]
    pub(super) fn tail(&self) -> Option<NodeId> {
        tail(self.0.load(Ordering::SeqCst))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn node(worker: u32) -> NodeId {
        NodeId::new(worker, 1, 7)
    }

    #[test]
    fn many_share_a_lock_and_one_has_it_alone() {
        let lock = QueueLock::default();
        assert_eq!((lock.try_shared(), lock.try_shared()), (Ok(()), Ok(())));
        assert!(!lock.try_exclusive(1, false) && !lock.try_exclusive(0, true));
        assert_eq!(lock.blocker(true), Some(Blocker::Readers));
        assert_eq!(lock.release_shared(), Released::NoWaiters);
        assert!(lock.try_exclusive(16_383, true));
        assert_eq!(lock.blocker(false), Some(Blocker::Owner(16_383)));
        assert_eq!(lock.try_shared(), Err(Released::NoWaiters));
        assert_eq!(lock.release_exclusive(), Released::NoWaiters);
        assert!(lock.try_exclusive(9_999, false));
    }

    #[test]
    fn a_newcomer_waits_behind_the_queue_even_for_a_lock_that_could_be_shared() {
        let lock = QueueLock::default();
        assert_eq!(lock.try_shared(), Ok(()));
        let mut before = Vec::new();
        assert_eq!(lock.join(node(1), true, |node| before.push(node)), Joined::Behind(None));
        assert_eq!(lock.try_shared(), Err(Released::NoWaiters));
        assert_eq!(lock.join(node(2), false, |node| before.push(node)), Joined::Behind(Some(node(1))));
        assert_eq!(before, [None, Some(node(1))]);
        assert_eq!(lock.take(node(1), true), None);
        assert!(lock.await_readers(1) && lock.awaits_readers(1));
        assert_eq!(lock.release_shared(), Released::Awaited(1));
        assert!(!lock.awaits_readers(1) && !lock.await_readers(1));
        assert_eq!(lock.take(node(1), true), Some(false));
        assert_eq!((lock.take(node(2), false), lock.leave_empty(node(1))), (None, false));
        assert_eq!(lock.release_exclusive(), Released::Awaited(1));
        assert_eq!(lock.take(node(2), false), Some(true));
        assert_eq!((lock.tail(), lock.release_shared()), (None, Released::NoWaiters));
        assert_eq!(lock.join(node(3), true, |_| ()), Joined::Taken);
    }

    #[test]
    fn a_reader_counted_too_late_is_in_the_way_until_it_has_gone() {
        let lock = QueueLock::default();
        assert!(lock.try_exclusive(1, false));
        assert_eq!(lock.join(node(2), true, |_| ()), Joined::Behind(None));
        // The update that `try_shared` has made by then, if it found the lock free before.
        lock.0.fetch_add(READER, Ordering::SeqCst);
        assert_eq!(lock.release_exclusive(), Released::Awaited(1));
        assert_eq!((lock.take(node(2), true), lock.await_readers(2)), (None, true));
        assert_eq!(lock.release_shared(), Released::Awaited(2));
        assert_eq!(lock.take(node(2), true), Some(true));
    }

    #[test]
    fn an_upgrade_goes_before_the_queue_and_only_one_waits() {
        let lock = QueueLock::default();
        assert_eq!((lock.try_shared(), lock.try_shared()), (Ok(()), Ok(())));
        assert_eq!(lock.join(node(3), false, |_| ()), Joined::Taken);
        assert_eq!(lock.join(node(4), true, |_| ()), Joined::Behind(None));
        assert!(lock.await_readers(4));
        // The head is told that it now waits for another worker.
        assert_eq!(lock.upgrade(1), Upgraded::Waiting(Released::Awaited(4)));
        assert_eq!(lock.upgrade(1), Upgraded::Waiting(Released::NoWaiters));
        assert!(!lock.awaits_readers(4) && !lock.await_readers(4));
        assert_eq!(lock.upgrade(2), Upgraded::Rival(1));
        assert_eq!(lock.blocker(false), Some(Blocker::Owner(1)));
        assert!(lock.replace_upgrade(1, 2) && !lock.replace_upgrade(1, 3));
        assert!(lock.upgrade_may_go_on(1) && !lock.upgrade_may_go_on(2));
        assert_eq!(lock.cancel_upgrade(1), Released::NoWaiters);
        // The upgrading worker is the only reader left; both wait at its event.
        assert_eq!(
            (lock.release_shared(), lock.release_shared()),
            (Released::NoWaiters, Released::Awaited(2))
        );
        assert_eq!(lock.upgrade(2), Upgraded::Taken(Released::NoWaiters));
        assert_eq!(lock.blocker(true), Some(Blocker::Owner(2)));
        assert_eq!(lock.release_exclusive(), Released::Awaited(2));
        assert_eq!(lock.take(node(4), true), Some(true));
    }

    #[test]
    fn an_upgrade_in_front_of_a_queue_takes_the_lock_at_once_and_the_head_hears_of_it() {
        let lock = QueueLock::default();
        assert_eq!(lock.try_shared(), Ok(()));
        assert_eq!(lock.join(node(4), true, |_| ()), Joined::Behind(None));
        assert!(lock.await_readers(4));
        assert!(!lock.try_exclusive(1, true), "somebody waits");
        assert_eq!(lock.upgrade(1), Upgraded::Taken(Released::Awaited(4)));
        assert_eq!(lock.release_exclusive(), Released::Awaited(1));
        assert_eq!(lock.take(node(4), true), Some(true));
    }

    #[test]
    fn a_head_that_gives_up_waiting_for_readers_leaves_the_word_as_it_was() {
        let lock = QueueLock::default();
        assert_eq!(lock.try_shared(), Ok(()));
        assert_eq!(lock.join(node(4), true, |_| ()), Joined::Behind(None));
        assert!(lock.await_readers(4));
        lock.await_readers_no_more(3);
        assert!(lock.awaits_readers(4));
        lock.await_readers_no_more(4);
        assert!(!lock.awaits_readers(4) && lock.leave_empty(node(4)));
        assert_eq!(lock.release_shared(), Released::NoWaiters);
        assert!(lock.try_exclusive(1, false));
    }

    #[test]
    fn an_upgrade_that_is_given_up_lets_the_queue_go_on() {
        let lock = QueueLock::default();
        assert_eq!((lock.try_shared(), lock.try_shared()), (Ok(()), Ok(())));
        assert_eq!(lock.upgrade(0), Upgraded::Waiting(Released::NoWaiters));
        assert_eq!(lock.join(node(4), false, |_| ()), Joined::Behind(None));
        assert_eq!(lock.take(node(4), false), None);
        assert_eq!(lock.cancel_upgrade(0), Released::Awaited(0));
        assert_eq!(lock.take(node(4), false), Some(true));
    }
}

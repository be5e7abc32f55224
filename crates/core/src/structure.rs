//! Structure: the version words of buckets and leaves.
//!
//! Absence in a bucket and the range between two keys are facts that a transaction can read, and so they
//! are segments too. They carry one version word each, and every protocol checks the observed words at
//! commit, as Silo does with its node set and STO with its bucket and leaf versions (sto §4.1, "Absent
//! elements"): an insert or remove bumps the word, so no scan and no failed lookup is ever a phantom.
//!
//! The same word is the latch under which the index changes the node, and the sequence number with which readers check
//! that they did not read during a change. Above the sequence number it has the node's own number, by which a protocol
//! that locks ranges finds the lock. Addresses would not do, as they differ from one run of a simulation to the next.

use crate::address_map::AddressMap;
use crossbeam_epoch::Guard;
use hotrow_sync::atomic::{AtomicU64, Ordering, fence};
use hotrow_sync::spin::Spin;
use std::ptr::NonNull;

const LOCKED: u64 = 1;
const RETIRED: u64 = 2;
const STEP: u64 = 4;
/// The lowest bit of the node's number. The counter below it takes five days to overflow, at ten million changes a
/// second; it then carries into the node's number.
const NUMBER_SHIFT: u32 = 44;

/// The version word of an index node (a bucket or a leaf): latch, retirement mark, a counter of changes, and 20 bits of
/// the node's number.
///
/// A node whose word is *retired* has been replaced. A reader must then start over from the root, and an attempt that
/// observed an earlier version fails validation.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct StructureVersion(AtomicU64);

impl StructureVersion {
    /// Makes a new word, unlocked.
    pub fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Makes a new word whose latch the caller holds.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn new_locked() -> Self {
        Self(AtomicU64::new(LOCKED))
    }

    /// Makes a new word, unlocked, of the node with this number, of which the lowest 20 bits count.
    pub fn numbered(number: usize) -> Self {
        Self(AtomicU64::new((number as u64) << NUMBER_SHIFT))
    }

    /// Numbers a node whose word is a [`new`](Self::new) one. Only the latch's holder may call it, or the thread that
    /// alone knows the node.
    pub fn set_number(&self, number: usize) {
        // Relaxed: made visible with the node.
        let word = self.0.load(Ordering::Relaxed);
        self.0.store(word | (number as u64) << NUMBER_SHIFT, Ordering::Relaxed);
    }

    /// Waits until the node is not being changed and returns its version; `None` if it is retired.
    ///
    /// Content read afterwards is valid only if [`unchanged`](Self::unchanged) then returns true.
    #[inline]
    pub fn stable(&self) -> Option<u64> {
        let mut spin = Spin::new();
        loop {
            // Acquire: pairs with the release in `unlock_*`, so the node's content is at least as new.
            let word = self.0.load(Ordering::Acquire);
            if word & (LOCKED | RETIRED) == 0 {
                return Some(word);
            }
            if word & RETIRED != 0 {
                return None;
            }
            spin.turn_or_yield();
        }
    }

    /// True if the node is still as it was when [`stable`](Self::stable) returned `seen`.
    #[inline]
    pub fn unchanged(&self, seen: u64) -> bool {
        // Orders the reader's relaxed loads of the content before the load below. It pairs with the
        // release fence in `try_lock_at`: a reader that saw a word written under the latch sees the latch
        // too.
        fence(Ordering::Acquire);
        // Sequentially consistent, as in `try_lock_at`. One attempt has changed this node's structure and then checks a
        // node that another attempt writes; the other has written that node and then checks this one. They must not
        // both miss each other's change. Costs nothing over relaxed on x86-64.
        self.0.load(Ordering::SeqCst) == seen
    }

    /// Takes the latch if the version is still `seen`.
    #[inline]
    pub fn try_lock_at(&self, seen: u64) -> bool {
        // Acquire: pairs with the release in `unlock_*`. Sequentially consistent besides: see `unchanged`.
        let taken = self.0.compare_exchange(seen, seen | LOCKED, Ordering::SeqCst, Ordering::Relaxed).is_ok();
        if taken {
            // Orders the latch before the relaxed stores to the content; pairs with `unchanged`.
            fence(Ordering::Release);
        }
        taken
    }

    /// Waits for the latch and takes it. Returns the version before; `None` if the node is retired.
    pub fn lock(&self) -> Option<u64> {
        loop {
            let seen = self.stable()?;
            if self.try_lock_at(seen) {
                return Some(seen);
            }
        }
    }

    /// Releases the latch after a change and returns the new version. Only the latch's holder may call it.
    #[inline]
    pub fn unlock_changed(&self) -> u64 {
        let next = (self.0.load(Ordering::Relaxed) & !LOCKED) + STEP;
        // Release: pairs with the acquire in `stable` and `try_lock_at`.
        self.0.store(next, Ordering::Release);
        next
    }

    /// Releases the latch without a change. Only the latch's holder may call it.
    #[inline]
    pub fn unlock_unchanged(&self) {
        self.0.store(self.0.load(Ordering::Relaxed) & !LOCKED, Ordering::Release);
    }

    /// Releases the latch and retires the node for ever. Only the latch's holder may call it.
    #[inline]
    pub fn unlock_retired(&self) {
        let next = ((self.0.load(Ordering::Relaxed) & !LOCKED) + STEP) | RETIRED;
        self.0.store(next, Ordering::Release);
    }

    /// The counter of changes in a word, for display: 0 for a node never changed.
    pub fn changes(word: u64) -> u64 {
        (word & ((1 << NUMBER_SHIFT) - 1)) / STEP
    }

    /// The node's number in a word.
    #[inline]
    pub fn number(word: u64) -> u32 {
        (word >> NUMBER_SHIFT) as u32
    }
}

/// An observation of a scan or a failed lookup: a node and the version at which it was read.
///
/// The node stays in memory while the epoch under which it was observed is pinned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Observed {
    /// The node's version word.
    pub node: NonNull<StructureVersion>,
    /// Its version when the node was read.
    pub version: u64,
}

/// The effect of an insertion or removal on an index node.
///
/// A transaction that observed the node before and then changes it itself must go on observing it as it is after its
/// own change; otherwise it would abort itself (sto §4.1, "Read-my-writes").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StructureChange {
    /// The node went from version `before` to version `after`.
    Bumped {
        /// The node's version word.
        node: NonNull<StructureVersion>,
        /// Its version before.
        before: u64,
        /// Its version after.
        after: u64,
    },
    /// A new node took over a part of the range or bucket of `from`.
    ///
    /// Reported before the `Bumped` of `from`.
    Split {
        /// The node that was split.
        from: NonNull<StructureVersion>,
        /// The version of `from` before the split.
        before: u64,
        /// The new node's version word.
        node: NonNull<StructureVersion>,
        /// The new node's version.
        version: u64,
    },
}

/// The nodes that an attempt has observed.
#[derive(Debug)]
pub(crate) struct StructureSet {
    entries: Vec<Observed>,
    map: AddressMap,
}

/// An observation contradicts an earlier one of the same node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Contradiction {
    /// The number of the earlier observation.
    pub(crate) position: usize,
}

impl StructureSet {
    pub(crate) fn new() -> Self {
        Self { entries: Vec::new(), map: AddressMap::new(if cfg!(test) { 2 } else { 64 }) }
    }

    /// Makes a set for few observations.
    pub(crate) fn small() -> Self {
        Self { entries: Vec::new(), map: AddressMap::new(2) }
    }

    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.map.clear();
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn position(&self, node: NonNull<StructureVersion>) -> Option<usize> {
        let entries = &self.entries;
        self.map.find(node.addr().get(), |index| entries[index].node.addr().get()).map(|at| at as usize)
    }

    /// Adds an observation. True if the node was not observed before.
    pub(crate) fn observe(&mut self, observed: Observed) -> Result<bool, Contradiction> {
        let Self { entries, map } = self;
        match map.find_or_enter(observed.node.addr().get(), |index| entries[index].node.addr().get()) {
            Err(_) => {
                entries.push(observed);
                Ok(true)
            }
            Ok(at) if entries[at as usize].version == observed.version => Ok(false),
            Ok(at) => Err(Contradiction { position: at as usize }),
        }
    }

    /// Follows a change that the attempt itself has made.
    pub(crate) fn follow(&mut self, change: StructureChange) {
        match change {
            StructureChange::Bumped { node, before, after } => {
                if let Some(at) = self.position(node)
                    && self.entries[at].version == before
                {
                    self.entries[at].version = after;
                }
            }
            StructureChange::Split { from, before, node, version } => {
                if let Some(at) = self.position(from)
                    && self.entries[at].version == before
                {
                    // A new node was not observed before, so nothing is contradicted.
                    let first = self.observe(Observed { node, version });
                    debug_assert_eq!(first, Ok(true));
                }
            }
        }
    }

    /// Returns the number of the first observed node that has changed since, if any.
    #[inline]
    pub(crate) fn first_changed(&self, _guard: &Guard) -> Option<usize> {
        self.entries
            .iter()
            // SAFETY: the node was observed under this attempt's pinned epoch, so it is still in memory.
            .position(|entry| !unsafe { entry.node.as_ref() }.unchanged(entry.version))
    }

    /// Returns the number of the observation of a node, if it was observed.
    pub(crate) fn number_of(&self, node: NonNull<StructureVersion>) -> Option<usize> {
        self.position(node)
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn get(&self, position: usize) -> Observed {
        self.entries[position]
    }
}

#[cfg(all(test, loom))]
mod models;

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_seen_and_an_unchanged_node_is_not() {
        let node = StructureVersion::new();
        let seen = node.stable().unwrap();
        assert!(node.unchanged(seen));
        assert!(node.try_lock_at(seen));
        assert!(!node.unchanged(seen), "a latched node is being changed");
        node.unlock_unchanged();
        assert!(node.unchanged(seen));
        assert_eq!(node.lock(), Some(seen));
        let after = node.unlock_changed();
        assert!(!node.unchanged(seen));
        assert!(node.unchanged(after));
        assert!(!node.try_lock_at(seen));
    }

    #[test]
    fn a_node_keeps_its_number_whatever_changes() {
        let node = StructureVersion::new_locked();
        node.set_number((7 << 20) + 5);
        assert_eq!(node.unlock_changed(), StructureVersion::numbered(5).stable().unwrap() + STEP);
        assert_eq!(node.lock().map(StructureVersion::number), Some(5));
        let after = node.unlock_changed();
        assert_eq!((StructureVersion::number(after), StructureVersion::changes(after)), (5, 2));
    }

    #[test]
    fn a_retired_node_is_never_stable_again() {
        let node = StructureVersion::new_locked();
        node.unlock_retired();
        assert_eq!(node.stable(), None);
        assert_eq!(node.lock(), None);
    }

    #[test]
    fn an_attempt_follows_its_own_changes_but_not_those_of_others() {
        let (mine, split, others) =
            (StructureVersion::new(), StructureVersion::new(), StructureVersion::new());
        let mut set = StructureSet::new();
        let node = NonNull::from(&mine);
        let version = mine.stable().unwrap();
        assert_eq!(set.observe(Observed { node, version }), Ok(true));
        assert_eq!(set.observe(Observed { node, version }), Ok(false));
        mine.lock().unwrap();
        let after = mine.unlock_changed();
        set.follow(StructureChange::Split { from: node, before: version, node: (&split).into(), version: 0 });
        set.follow(StructureChange::Bumped { node, before: version, after });
        let guard = crossbeam_epoch::pin();
        assert_eq!(set.first_changed(&guard), None);
        split.lock().unwrap();
        split.unlock_changed();
        assert_eq!(set.first_changed(&guard), Some(1));

        let node = NonNull::from(&others);
        set.clear();
        assert_eq!(set.observe(Observed { node, version: 0 }), Ok(true));
        others.lock().unwrap();
        let before = others.unlock_changed();
        others.lock().unwrap();
        let after = others.unlock_changed();
        set.follow(StructureChange::Bumped { node, before, after });
        assert_eq!(set.first_changed(&guard), Some(0), "somebody else changed it before");
        assert_eq!(set.observe(Observed { node, version: after }), Err(Contradiction { position: 0 }));
    }
}

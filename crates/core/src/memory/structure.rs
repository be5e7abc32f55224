//! Structure: the version words of buckets and leaves.
//!
//! Absence in a bucket and the range between two keys are facts that a transaction can read, and so they
//! are segments too. They carry one version word each, and every protocol checks the observed words at
//! commit, as Silo does with its node set and STO with its bucket and leaf versions (sto §4.1, "Absent
//! elements"): an insert or remove bumps the word, so no scan and no failed lookup is ever a phantom.
//!
//! This is coarser than necessary: in a hash index, an insertion aborts an observer of another absent key of the bucket, and growth aborts the
//! observers of a bucket that moves. In an ordered index the object looks again at the part that was observed.
//!
//! # Parts of a node
//!
//! A change of the word says that some key has come or gone, not which one. So the object may keep, with an observation,
//! what it saw in the part of the node that it looked at: the bounds of a scan, the key of a lookup, and the records there
//! ([`StructureAccess::keep_seen`](crate::StructureAccess::keep_seen)). If the word differs at a check, the object looks again
//! ([`Object::still_holds`](crate::Object::still_holds)). It may accept the observation only if **no key that a commit has
//! made present or absent has come or gone in that part since the observation**. This is what an unchanged word proves,
//! too, at the same moment: the fact that was observed has held from the observation until the check. So whatever a
//! protocol concludes from the check remains true, and no protocol knows of the difference. An observation for which
//! nothing is kept stands for the whole node.
//!
//! It would not be enough that the same keys are *there*. A key that came and went may have been seen by others in
//! between. An attempt that counted on its absence would then come before and after them.
//!
//! # The word
//!
//! The same word is the latch under which the index changes the node, and the sequence number with which readers check
//! that they did not read during a change. Above the sequence number it has the node's own number, by which a protocol
//! that locks ranges finds the lock. Addresses would not do, as they differ from one run of a simulation to the next.

use crate::memory::address_map::AddressMap;
use crossbeam_epoch::Guard;
use hotrow_sync::atomic::{AtomicU64, Ordering, fence};
use hotrow_sync::spin::Spin;
use std::ops::Range;
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
        // INVARIANT 32: The version of a bucket or leaf changes whenever a key comes or goes there, and whenever its range shrinks.
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

/// An observation in an attempt's set.
#[derive(Debug, Clone, Copy)]
struct Entry {
    observed: Observed,
    /// The object's notes for another look at its part of the node, in the attempt's arena. Without it, the observation
    /// stands for the whole node.
    seen: Option<NonNull<u8>>,
    /// The number of another observation of the same node; `NO_ENTRY` at the end of the chain.
    next: u32,
}

const NO_ENTRY: u32 = u32::MAX;

/// A version that no node has: the object must look again.
const STALE: u64 = u64::MAX;

/// The observations of an attempt.
///
/// Observations of the same node are in one chain. Its head is the first of them, so `chains` numbers the nodes and not
/// the observations.
#[derive(Debug)]
pub(crate) struct StructureSet {
    entries: Vec<Entry>,
    /// The chain of each node's observations.
    chains: Vec<Chain>,
    map: AddressMap,
    /// True if the last observation is new and nothing has been kept for it yet.
    is_open: bool,
    /// The number of observations that earlier ones of whole nodes have included.
    included: u32,
}

/// An observation of a whole node, of which it may turn out later that only a part of the node matters.
#[derive(Debug, Clone, Copy)]
pub struct OpenObservation {
    number: u32,
    included: u32,
}

/// The observations of a node.
#[derive(Debug, Clone, Copy)]
struct Chain {
    /// The number of the first one.
    head: u32,
    /// How many there are.
    length: u32,
}

/// Number of observations of parts of a node from which on the next one stands for the whole node, so that a body that
/// looks at the same leaf again and again does not fill the memory with what it has seen there.
const PARTS_MAX: u32 = if cfg!(test) { 4 } else { 16 };

/// Where keys lie in the order of an object's keys: none of them is before the first or behind the last one, by a number that never
/// falls from a key to a greater one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeySpan {
    /// The number of the first key.
    pub first: u64,
    /// The number of the last key.
    pub last: u64,
}

impl KeySpan {
    /// Anywhere.
    pub const ALL: Self = Self { first: 0, last: u64::MAX };

    /// True if a key may lie in both.
    #[inline]
    pub fn overlaps(self, other: Self) -> bool {
        self.first <= other.last && other.first <= self.last
    }

    /// The smallest span with all of both.
    #[inline]
    pub fn with(self, other: Self) -> Self {
        Self { first: self.first.min(other.first), last: self.last.max(other.last) }
    }
}

/// An observation contradicts an earlier one of the same node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Contradiction {
    /// The number of the earlier observation.
    pub(crate) position: usize,
}

impl StructureSet {
    pub(crate) fn new() -> Self {
        Self::with_nodes(if cfg!(test) { 2 } else { 64 })
    }

    /// Makes a set for few observations.
    pub(crate) fn small() -> Self {
        Self::with_nodes(2)
    }

    fn with_nodes(capacity: usize) -> Self {
        Self {
            entries: Vec::new(),
            chains: Vec::new(),
            map: AddressMap::new(capacity),
            is_open: false,
            included: 0,
        }
    }

    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.chains.clear();
        self.map.clear();
        self.is_open = false;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the number of the first observation of a node.
    fn head(&self, node: NonNull<StructureVersion>) -> Option<u32> {
        let Self { entries, chains, map, .. } = self;
        let address_of = |index: usize| entries[chains[index].head as usize].observed.node.addr().get();
        map.find(node.addr().get(), address_of).map(|at| chains[at as usize].head)
    }

    /// Adds an observation. False if an earlier one of the whole node, at the same version, includes it.
    ///
    /// An earlier observation of a part of the node does not contradict one at another version: whether its part is
    /// unchanged is decided when it is checked.
    pub(crate) fn observe(&mut self, observed: Observed) -> Result<bool, Contradiction> {
        let Self { entries, chains, map, is_open, included } = self;
        let number = entries.len() as u32;
        let address_of = |index: usize| entries[chains[index].head as usize].observed.node.addr().get();
        *is_open = true;
        let next = match map.find_or_enter(observed.node.addr().get(), address_of) {
            Err(_) => {
                chains.push(Chain { head: number, length: 1 });
                NO_ENTRY
            }
            Ok(at) => {
                let Chain { head, length } = &mut chains[at as usize];
                let head = *head;
                // The newest one comes right behind the head.
                let next = entries[head as usize].next;
                let newest = if next == NO_ENTRY { head } else { next };
                let Entry { observed: earlier, seen, .. } = entries[newest as usize];
                if seen.is_none() {
                    *is_open = false;
                    *included += 1;
                    return match earlier.version == observed.version {
                        true => Ok(false),
                        false => Err(Contradiction { position: newest as usize }),
                    };
                }
                entries[head as usize].next = number;
                *is_open = *length < PARTS_MAX;
                *length += 1;
                next
            }
        };
        entries.push(Entry { observed, seen: None, next });
        Ok(true)
    }

    /// True if [`keep_seen`](Self::keep_seen) applies to the last observation: it was added, and nothing is kept for it.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.is_open
    }

    /// The last observation, if something may be kept for it later.
    #[inline]
    pub(crate) fn last_open(&self) -> Option<OpenObservation> {
        let number = self.entries.len().checked_sub(1).filter(|_| self.is_open)? as u32;
        Some(OpenObservation { number, included: self.included })
    }

    /// True if nobody has come to rely on the whole node since the observation was made.
    pub(crate) fn is_still_open(&self, open: OpenObservation) -> bool {
        self.included == open.included && self.entries[open.number as usize].seen.is_none()
    }

    /// Makes an observation that is [still open](Self::is_still_open) one of a part of its node, as [`keep_seen`](Self::keep_seen) does.
    pub(crate) fn keep_seen_for(&mut self, open: OpenObservation, seen: NonNull<u8>) {
        debug_assert!(self.is_still_open(open));
        self.entries[open.number as usize].seen = Some(seen);
        self.is_open = false;
    }

    /// Leaves the last observation as it is.
    #[inline]
    pub(crate) fn close(&mut self) {
        self.is_open = false;
    }

    /// Makes the last observation one of a part of its node, at which the object can look again by `seen`.
    pub(crate) fn keep_seen(&mut self, seen: NonNull<u8>) {
        debug_assert!(self.is_open);
        if std::mem::take(&mut self.is_open)
            && let Some(last) = self.entries.last_mut()
        {
            last.seen = Some(seen);
        }
    }

    /// Follows a change that the attempt itself has made.
    pub(crate) fn follow(&mut self, change: StructureChange) {
        let (StructureChange::Bumped { node, before, .. }
        | StructureChange::Split { from: node, before, .. }) = change;
        let mut at = self.head(node).unwrap_or(NO_ENTRY);
        while at != NO_ENTRY {
            let entry = &mut self.entries[at as usize];
            let Entry { seen, next, .. } = *entry;
            // INVARIANT 33: An observation follows a change of the attempt's own only if no other change came between.
            if entry.observed.version == before {
                match change {
                    StructureChange::Bumped { after, .. } => entry.observed.version = after,
                    // The part may have gone to the new node. Looking again finds it there. (To keep every part with both
                    // nodes would make the set grow with the square of the number of splits.)
                    StructureChange::Split { .. } if seen.is_some() => entry.observed.version = STALE,
                    StructureChange::Split { node, version, .. } => {
                        // A new node was not observed before, so nothing is contradicted.
                        let first = self.observe(Observed { node, version });
                        debug_assert!(first.is_ok());
                        self.is_open = false;
                    }
                }
            }
            at = next;
        }
    }

    /// Returns the number of the first observation in `among` whose node has changed since, if any.
    #[inline]
    pub(crate) fn first_changed(&self, among: Range<usize>, _guard: &Guard) -> Option<usize> {
        let first = among.start;
        self.entries[among]
            .iter()
            // SAFETY: the node was observed under this attempt's pinned epoch, so it is still in memory.
            .position(|entry| !unsafe { entry.observed.node.as_ref() }.unchanged(entry.observed.version))
            .map(|position| first + position)
    }

    /// Returns the number of the first observation of a node, if it was observed.
    pub(crate) fn number_of(&self, node: NonNull<StructureVersion>) -> Option<usize> {
        self.head(node).map(|number| number as usize)
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn get(&self, position: usize) -> Observed {
        self.entries[position].observed
    }

    /// Returns what was kept for an observation.
    pub(crate) fn seen(&self, position: usize) -> Option<NonNull<u8>> {
        self.entries[position].seen
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
    fn a_node_that_is_observed_again_and_again_is_observed_whole_in_the_end() {
        let node = StructureVersion::new();
        let observed = Observed { node: NonNull::from(&node), version: node.stable().unwrap() };
        let mut set = StructureSet::new();
        let mut parts = 0;
        for _ in 0..1_000 {
            set.observe(observed).unwrap();
            if set.is_open() {
                set.keep_seen(NonNull::dangling());
                parts += 1;
            }
        }
        assert_eq!((parts, set.len()), (PARTS_MAX as usize, PARTS_MAX as usize + 1));
        assert!(set.seen(PARTS_MAX as usize).is_none(), "the last one stands for the whole node");
        let later = Observed { version: observed.version + STEP, ..observed };
        assert!(set.observe(later).is_err(), "which contradicts an observation at another version");
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
        let first_changed = |set: &StructureSet| set.first_changed(0..set.len(), &guard);
        assert_eq!(first_changed(&set), None);
        split.lock().unwrap();
        split.unlock_changed();
        assert_eq!(first_changed(&set), Some(1));

        let node = NonNull::from(&others);
        set.clear();
        assert_eq!(set.observe(Observed { node, version: 0 }), Ok(true));
        others.lock().unwrap();
        let before = others.unlock_changed();
        others.lock().unwrap();
        let after = others.unlock_changed();
        set.follow(StructureChange::Bumped { node, before, after });
        assert_eq!(first_changed(&set), Some(0), "somebody else changed it before");
        assert_eq!(set.observe(Observed { node, version: after }), Err(Contradiction { position: 0 }));
    }

    #[test]
    fn observations_of_parts_of_a_node_are_followed_and_checked_one_by_one() {
        let (mine, split) = (StructureVersion::new(), StructureVersion::new());
        let node = NonNull::from(&mine);
        let mut set = StructureSet::new();
        let (mut first, mut second, mut third) = (1u8, 2u8, 3u8);
        let seen = [&mut first, &mut second, &mut third].map(NonNull::from);
        let bump = || {
            mine.lock().unwrap();
            mine.unlock_changed()
        };
        // Two parts at the first version, and one at the second.
        for part in [0, 1] {
            assert_eq!(set.observe(Observed { node, version: 0 }), Ok(true));
            assert!(set.is_open());
            set.keep_seen(seen[part]);
        }
        let version = bump();
        assert_eq!(set.observe(Observed { node, version }), Ok(true), "only the parts can tell");
        set.keep_seen(seen[2]);
        // The attempt's own insertion concerns the third only: somebody else has changed the node before.
        let after = bump();
        set.follow(StructureChange::Bumped { node, before: version, after });
        let (version, at) =
            (after, |set: &StructureSet, at| set.first_changed(at..at + 1, &crossbeam_epoch::pin()));
        assert_eq!([0, 1, 2].map(|number| at(&set, number)), [Some(0), Some(1), None]);
        assert_eq!(set.observe(Observed { node, version }), Ok(true));
        // So does its own split, which divides the fourth, too, of the whole node.
        let after = bump();
        let node_of_split = (&split).into();
        set.follow(StructureChange::Split { from: node, before: version, node: node_of_split, version: 0 });
        set.follow(StructureChange::Bumped { node, before: version, after });
        assert!(!set.is_open());
        let guard = crossbeam_epoch::pin();
        let changed: Vec<_> = (0..5).map(|at| set.first_changed(at..at + 1, &guard)).collect();
        assert_eq!(changed, [Some(0), Some(1), Some(2), None, None], "the third part may be in the new node");
        let kept: Vec<_> = (0..5).map(|at| set.seen(at)).collect();
        assert_eq!(kept, [Some(seen[0]), Some(seen[1]), Some(seen[2]), None, None]);
        split.lock().unwrap();
        split.unlock_changed();
        assert_eq!(set.first_changed(4..5, &guard), Some(4));
        // An observation of the whole node includes later ones at its version, and contradicts the others.
        assert_eq!(set.observe(Observed { node, version: after }), Ok(false));
        assert!(!set.is_open(), "it must not become one of a part");
        assert_eq!(set.observe(Observed { node, version: bump() }), Err(Contradiction { position: 3 }));
        assert_eq!(set.number_of(node), Some(0));
    }
}

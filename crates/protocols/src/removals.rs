//! The last commit that deleted a key from each object: only a deletion makes an absence.
//!
//! This serves protocols with a clock that counts commits (`tl2`, `drp+opaque`). Their attempts see the state at a
//! *bound*, a value of the clock. Versions of buckets and leaves are not drawn from the clock. So when an attempt
//! finds a key absent, they do not tell it whether the key was already absent at its bound. It was, unless a later
//! commit has deleted it. So each commit that deletes notes its clock value here, before anybody can miss the
//! deleted key. An attempt that found something absent then checks its earlier reads only if the object's value is
//! above its bound.
//!
//! # Why no deletion is missed
//!
//! A record leaves the index only after it was seen dead. It is dead only after its killer has installed, and the
//! killer notes the deletion before that. An attempt that then does not find the record has read the node as it was
//! left (release and acquire of the node's version word), so it sees the note.

use crossbeam_utils::CachePadded;
use hotrow_core::{Attempt, Flags, ObjectMeta, Protocol};
use hotrow_sync::atomic::{AtomicU64, Ordering};

/// Number of words; objects beyond this number share them.
const WORDS: usize = if cfg!(test) { 2 } else { 32 };

/// For each object, the clock value of the last commit that deleted one of its keys, or a later value.
#[derive(Debug)]
pub(crate) struct Removals {
    words: Box<[CachePadded<AtomicU64>]>,
}

impl Removals {
    pub(crate) fn new() -> Self {
        Self { words: (0..WORDS).map(|_| CachePadded::default()).collect() }
    }

    fn of(&self, place: u16) -> &AtomicU64 {
        &self.words[usize::from(place) % WORDS]
    }

    /// Notes the deletions of a commit with this clock value. It is called before the commit installs anything.
    #[inline]
    pub(crate) fn note<P: Protocol>(&self, attempt: &Attempt<P>, clock: u64) {
        if attempt.changes_structure() {
            self.note_deletions(attempt, clock);
        }
    }

    fn note_deletions<P: Protocol>(&self, attempt: &Attempt<P>, clock: u64) {
        let items = &attempt.items;
        let mut noted = None;
        for item in items.writes().iter().map(|id| items.get(*id)) {
            // Nobody has found a key present that the attempt itself has made.
            if item.is(Flags::CLEANUP) && !item.is(Flags::INSERTED) && noted != Some(item.place()) {
                // Relaxed: the release with which the item's segment is unlocked makes it visible.
                self.of(item.place()).fetch_max(clock, Ordering::Relaxed);
                noted = Some(item.place());
            }
        }
    }

    /// True if a commit after `bound` may have deleted a key, when something of `object` was found absent. `None`
    /// means that the result may be newer for another reason, too.
    #[inline]
    pub(crate) fn any_after(&self, bound: u64, object: Option<&ObjectMeta>) -> bool {
        // Relaxed: the read of the index orders it; see the module's head.
        object.is_none_or(|object| self.of(object.place()).load(Ordering::Relaxed) > bound)
    }
}

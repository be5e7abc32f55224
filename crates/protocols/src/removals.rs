//! When keys were last taken from each object: the one kind of commit that makes an absence.
//!
//! For protocols with a clock that counts commits, whose attempts see the state at a *bound*, a value of the clock
//! (`tl2`, `drp+opaque`). Versions of buckets and leaves are not drawn from the clock, so an attempt that finds a key absent
//! cannot see by them whether the key was absent at its bound already. But it was, unless a later commit has deleted
//! it. So each commit that deletes notes its clock value here, before anybody can miss what it deletes, and who has found
//! something absent has to check what it saw before only if the value for the object is above its bound.
//!
//! # Why no deletion is missed
//!
//! A record leaves the index only after it was seen dead, that is after its killer has installed, which is after the note. Who
//! then does not find it has read the node as it was left (release and acquire of its version word), and sees the note.

use crossbeam_utils::CachePadded;
use hotrow_core::{Attempt, Flags, ObjectMeta, Protocol};
use hotrow_sync::atomic::{AtomicU64, Ordering};

/// Words; objects beyond so many share them.
const WORDS: usize = if cfg!(test) { 2 } else { 32 };

/// For each object the clock value of the last commit that deleted a key of it, or a later one.
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

    /// Notes what a commit of this clock value deletes. Before it installs anything.
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
            // What the attempt itself has made nobody has found present.
            if item.is(Flags::CLEANUP) && !item.is(Flags::INSERTED) && noted != Some(item.place()) {
                // Relaxed: made visible by the release with which the item's segment is unlocked.
                self.of(item.place()).fetch_max(clock, Ordering::Relaxed);
                noted = Some(item.place());
            }
        }
    }

    /// True if a key may have been deleted by a commit after `bound`, when something of `object` was found absent. `None`:
    /// what was found may be newer in another way, too.
    #[inline]
    pub(crate) fn any_after(&self, bound: u64, object: Option<&ObjectMeta>) -> bool {
        // Relaxed: ordered by the look at the index, see the module's head.
        object.is_none_or(|object| self.of(object.place()).load(Ordering::Relaxed) > bound)
    }
}

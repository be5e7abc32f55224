//! The accessor lists of `ic3`: for each segment the transactions in progress that have accessed it.
//!
//! Lists are shared by all segments whose ranks have the same hash. So each entry names its segment, by its address, and the ranks of
//! the piece that has entered it. (An address may come to be another segment's while an entry is there. If that one has another
//! rank, the entry is no conflict; if it has the same one, it is a conflict that would not be necessary.) Keys that come and go are
//! entered for the object, by its place, with the span in which they lie: those of spans that do not overlap have nothing to do with each other.
//! Insertions are the most frequent of these, and do not conflict with each other; so each worker enters them in one of several
//! lists, and all others look at all of them.
//!
//! A list is under a latch. Entries of transactions that have ended are dropped by those that come next, so a list has no more
//! entries than transactions in progress have made, and [`KEPT`].

use crate::drp::progress::{FINISHED, Predecessor, Progress};
use crate::latch::{self, Latch};
use crossbeam_utils::CachePadded;
use hotrow_core::{KeySpan, PieceRanks};
use hotrow_sync::profile::name_slice;
use std::cell::UnsafeCell;

/// The number of lists. Few in tests, so that segments share them.
const SLOTS: usize = if cfg!(any(test, debug_assertions)) { 64 } else { 4_096 };

/// The number of lists in which the keys that come and go in an object are entered.
const PARTS: u64 = 16;

/// The number of entries from which on those of ended transactions are dropped.
const KEPT: usize = 8;

/// The kinds of an access, one bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kinds(u8);

impl Kinds {
    pub(super) const READ: Self = Self(1);
    pub(super) const WRITE: Self = Self(2);
    /// A key, or the keys of a range, were found absent.
    pub(super) const OBSERVE: Self = Self(4);
    pub(super) const INSERT: Self = Self(8);
    pub(super) const DELETE: Self = Self(16);

    pub(super) fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// True if the order of two accesses of the same segment, or object, matters. Insertions of different keys commute, and so do
    /// deletions; what they do to the same key, its segment tells.
    fn conflict_with(self, other: Self) -> bool {
        let mut against = 0;
        for (one, others) in [
            (Self::READ, Self::WRITE.0),
            (Self::WRITE, Self::READ.0 | Self::WRITE.0),
            (Self::OBSERVE, Self::INSERT.0 | Self::DELETE.0),
            (Self::INSERT, Self::OBSERVE.0 | Self::DELETE.0),
            (Self::DELETE, Self::OBSERVE.0 | Self::INSERT.0),
        ] {
            if self.0 & one.0 != 0 {
                against |= others;
            }
        }
        other.0 & against != 0
    }
}

/// An access of a piece that is about to commit.
#[derive(Debug, Clone, Copy)]
pub(super) struct Access {
    pub(super) slot: u32,
    /// The segment's address, or the object's place.
    pub(super) key: usize,
    /// Where the keys lie that come, go or are found absent.
    pub(super) span: KeySpan,
    pub(super) kinds: Kinds,
}

/// An access of a piece that has committed.
#[derive(Debug, Clone, Copy)]
struct Entry {
    key: usize,
    span: KeySpan,
    by: Predecessor,
    ranks: PieceRanks,
    kinds: Kinds,
}

struct Slot {
    latch: Latch,
    entries: UnsafeCell<Vec<Entry>>,
}

// SAFETY: the entries are touched by the latch's holder only, and are plain data.
unsafe impl Sync for Slot {}

/// All accessor lists of an engine.
pub(super) struct Accessors {
    slots: Box<[CachePadded<Slot>]>,
}

impl std::fmt::Debug for Accessors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Accessors").finish_non_exhaustive()
    }
}

impl Accessors {
    pub(super) fn new() -> Self {
        let slot =
            || CachePadded::new(Slot { latch: Latch::default(), entries: UnsafeCell::new(Vec::new()) });
        let slots: Box<[CachePadded<Slot>]> = (0..SLOTS).map(|_| slot()).collect();
        name_slice(&slots, || String::from("the accessor lists"));
        Self { slots }
    }

    /// The numbers of the lists for keys that come, go or are found absent in an object, by its place.
    pub(super) fn slots_of_object(place: u16, kinds: Kinds, worker: u32) -> impl Iterator<Item = u32> {
        let parts = if kinds == Kinds::INSERT {
            let own = u64::from(worker) % PARTS;
            own..own + 1
        } else {
            0..PARTS
        };
        parts.map(move |part| Self::slot_of(u64::MAX - u64::from(place) * PARTS - part))
    }

    /// The number of the list for a segment of this rank.
    pub(super) fn slot_of(rank: u64) -> u32 {
        latch::number_of(rank, SLOTS)
    }

    /// Takes the latches of lists, which are in ascending order.
    pub(super) fn latch(&self, slots: &[u32]) {
        for slot in slots {
            self.slots[*slot as usize].latch.lock();
        }
    }

    /// Gives latches back that the caller holds.
    pub(super) fn unlatch(&self, slots: &[u32]) {
        for slot in slots {
            self.slots[*slot as usize].latch.unlock();
        }
    }

    /// Calls `found` with the transactions in progress whose accesses conflict with one, and their bounds.
    ///
    /// # Safety
    ///
    /// The caller holds the latch of the access's slot.
    pub(super) unsafe fn conflicts(
        &self,
        access: &Access,
        ranks: PieceRanks,
        own: Predecessor,
        progress: &Progress,
        mut found: impl FnMut(Predecessor, u64),
    ) {
        // SAFETY: the caller holds the latch.
        let entries = unsafe { &mut *self.slots[access.slot as usize].entries.get() };
        entries.retain(|entry| {
            let conflicts = entry.key == access.key
                && entry.span.overlaps(access.span)
                && entry.by != own
                && entry.ranks.overlap(ranks)
                && entry.kinds.conflict_with(access.kinds);
            if !conflicts {
                return true;
            }
            let bound = progress.bound(entry.by);
            if bound != FINISHED {
                found(entry.by, bound);
            }
            bound != FINISHED
        });
    }

    /// Enters an access.
    ///
    /// # Safety
    ///
    /// As for [`conflicts`](Self::conflicts).
    pub(super) unsafe fn enter(
        &self,
        access: &Access,
        ranks: PieceRanks,
        own: Predecessor,
        progress: &Progress,
    ) {
        // SAFETY: the caller holds the latch.
        let entries = unsafe { &mut *self.slots[access.slot as usize].entries.get() };
        let Access { key, span, kinds, .. } = *access;
        let is_same = |entry: &&mut Entry| {
            entry.key == key && entry.by == own && entry.ranks == ranks && entry.span == span
        };
        if let Some(entry) = entries.iter_mut().rev().find(is_same) {
            entry.kinds = entry.kinds.and(kinds);
            return;
        }
        if entries.len() >= KEPT {
            entries.retain(|entry| progress.bound(entry.by) != FINISHED);
        }
        entries.push(Entry { key, span, by: own, ranks, kinds });
    }

    /// Takes back what a piece has entered in a list.
    ///
    /// # Safety
    ///
    /// As for [`conflicts`](Self::conflicts), of the list's latch.
    pub(super) unsafe fn take_back(&self, slot: u32, ranks: PieceRanks, own: Predecessor) {
        // SAFETY: the caller holds the latch.
        let entries = unsafe { &mut *self.slots[slot as usize].entries.get() };
        entries.retain(|entry| entry.by != own || entry.ranks != ranks);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const ALL: PieceRanks = PieceRanks { first: 1, last: 1 };

    fn conflicts(accessors: &Accessors, progress: &Progress, access: Access, ranks: PieceRanks) -> Vec<u32> {
        let mut found = Vec::new();
        progress.begin(9, Some(0));
        accessors.latch(&[access.slot]);
        let own = progress.current(9);
        // SAFETY: latched.
        unsafe { accessors.conflicts(&access, ranks, own, progress, |by, _| found.push(by.worker)) };
        accessors.unlatch(&[access.slot]);
        found
    }

    fn enter(accessors: &Accessors, progress: &Progress, worker: u32, access: Access) {
        accessors.latch(&[access.slot]);
        // SAFETY: latched.
        unsafe { accessors.enter(&access, ALL, progress.current(worker), progress) };
        accessors.unlatch(&[access.slot]);
    }

    #[test]
    fn readers_and_writers_conflict_and_the_ended_are_forgotten() {
        let (accessors, progress) = (Accessors::new(), Progress::new());
        let access = |kinds| Access { slot: 3, key: 64, span: KeySpan::ALL, kinds };
        progress.begin(0, Some(0));
        progress.begin(1, Some(0));
        enter(&accessors, &progress, 0, access(Kinds::READ));
        enter(&accessors, &progress, 1, access(Kinds::WRITE));
        assert_eq!(conflicts(&accessors, &progress, access(Kinds::READ), ALL), [1]);
        assert_eq!(conflicts(&accessors, &progress, access(Kinds::WRITE), ALL), [0, 1]);
        let other = Access { key: 128, ..access(Kinds::WRITE) };
        assert!(conflicts(&accessors, &progress, other, ALL).is_empty());
        let above = PieceRanks { first: 2, last: 3 };
        assert!(conflicts(&accessors, &progress, access(Kinds::WRITE), above).is_empty());
        progress.finish(0);
        assert_eq!(conflicts(&accessors, &progress, access(Kinds::WRITE), ALL), [1]);
        // SAFETY: nobody else is there.
        assert_eq!(unsafe { &*accessors.slots[3].entries.get() }.len(), 1);
    }

    #[test]
    fn keys_come_and_go_only_where_spans_overlap() {
        let (accessors, progress) = (Accessors::new(), Progress::new());
        let access = |kinds, first, last| Access { slot: 3, key: 7, span: KeySpan { first, last }, kinds };
        progress.begin(0, Some(0));
        progress.begin(1, Some(0));
        enter(&accessors, &progress, 0, access(Kinds::OBSERVE, 10, 20));
        enter(&accessors, &progress, 0, access(Kinds::OBSERVE, 40, 50));
        enter(&accessors, &progress, 1, access(Kinds::OBSERVE, 0, u64::MAX));
        let found = |first, last| conflicts(&accessors, &progress, access(Kinds::INSERT, first, last), ALL);
        for (first, last, both) in
            [(5, 9, false), (5, 10, true), (20, 39, true), (21, 39, false), (51, 60, false)]
        {
            assert_eq!(found(first, last).contains(&0), both, "{first} to {last}");
            assert!(found(first, last).contains(&1));
        }
    }

    #[test]
    fn whoever_looks_for_a_key_meets_all_that_insert_and_those_do_not_meet_each_other() {
        let of = |kinds, worker| Accessors::slots_of_object(7, kinds, worker).collect::<Vec<_>>();
        for worker in 0..40 {
            let inserts = of(Kinds::INSERT, worker);
            assert_eq!(inserts.len(), 1);
            for kinds in [Kinds::OBSERVE, Kinds::DELETE, Kinds::INSERT.and(Kinds::OBSERVE)] {
                assert!(of(kinds, 3).contains(&inserts[0]));
            }
        }
        assert_ne!(of(Kinds::INSERT, 0), of(Kinds::INSERT, 1));
    }

    #[test]
    fn insertions_commute_with_each_other_and_with_nothing_else() {
        for (one, other, conflict) in [
            (Kinds::INSERT, Kinds::INSERT, false),
            (Kinds::DELETE, Kinds::DELETE, false),
            (Kinds::INSERT, Kinds::DELETE, true),
            (Kinds::OBSERVE, Kinds::INSERT, true),
            (Kinds::OBSERVE, Kinds::DELETE, true),
            (Kinds::OBSERVE, Kinds::OBSERVE, false),
            (Kinds::READ, Kinds::READ, false),
        ] {
            assert_eq!(one.conflict_with(other), conflict);
            assert_eq!(other.conflict_with(one), conflict);
        }
    }

    #[test]
    fn a_list_does_not_grow_with_the_transactions_that_have_ended() {
        let (accessors, progress) = (Accessors::new(), Progress::new());
        for number in 0..1_000 {
            progress.begin(0, Some(0));
            enter(
                &accessors,
                &progress,
                0,
                Access { slot: 0, key: number, span: KeySpan::ALL, kinds: Kinds::WRITE },
            );
            progress.finish(0);
        }
        // SAFETY: nobody else is there.
        assert!(unsafe { &*accessors.slots[0].entries.get() }.len() <= KEPT);
    }
}

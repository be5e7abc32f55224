//! Dead records that snapshots may still see.
//!
//! A record that a commit has deleted leaves the index in the commit's cleanup. While snapshots are in use it is put here
//! before, under its key's name, whose bytes compare as keys do. A transaction on a snapshot looks into the index first and here
//! afterwards, so that it finds each record that its snapshot sees in one place or in both. Other transactions never look here.
//!
//! Records stay until no snapshot may need them; they are freed when snapshots end or points are made ([`Sweep`]). The lock is held
//! for a few dozen instructions, never while users' code runs.
//!
//! Several threads may come to remove one record, and may differ in whether it has to be buried, if snapshots come or go meanwhile. The
//! record's state decides: it is buried by whom moves it from dead to buried, and never after it was removed. Who takes it out of the index
//! moves it to removed, and frees it if it was not buried before; otherwise it is freed from here, once it is removed.

use super::buried::{Buried, BuriedRecords, Name};
use crate::index::Direction;
use hotrow_core::{KeptSegments, ObjectMeta, Pin, Sight, Sweep};
use hotrow_sync::atomic::{AtomicUsize, Ordering};
use hotrow_sync::{Mutex, lock};
use std::mem;
use std::ops::Bound;
use std::ptr::NonNull;
use std::sync::{Arc, Weak};

/// The dead records of one table.
pub(crate) struct Graveyard {
    snapshots: KeptSegments,
    records: Mutex<BuriedRecords>,
    /// The number of records that are here, or are about to be. It is changed under the lock.
    count: AtomicUsize,
    /// Itself, for the snapshots, which sweep it while it is not empty.
    this: Weak<dyn Sweep>,
}

impl Graveyard {
    pub(crate) fn new(snapshots: KeptSegments) -> Arc<Self> {
        Arc::new_cyclic(|this: &Weak<Self>| Self {
            snapshots,
            records: Mutex::default(),
            count: AtomicUsize::new(0),
            this: this.clone(),
        })
    }

    /// Sets the count, under the lock, and has the snapshots know whether there is anything to be swept.
    fn set_count(&self, count: usize) {
        let was_empty = self.is_empty();
        // Relaxed: see `is_empty`.
        self.count.store(count, Ordering::Relaxed);
        if was_empty != (count == 0) {
            self.snapshots.register(&self.this, was_empty);
        }
    }

    /// The newest snapshot, if there are any: it may see a record that a commit has deleted before now.
    pub(crate) fn newest(&self) -> Option<u64> {
        self.snapshots.newest()
    }

    /// The stamp before which no snapshot needs a record.
    pub(crate) fn needed_since(&self, meta: &ObjectMeta, address: usize, pin: &Pin) -> u64 {
        self.snapshots.needed_since(meta, address, pin)
    }

    /// True if no record is here. If one was taken out of the index before the index was searched, it is false.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        // Relaxed: the search of the index before has acquired the removal, which came after the burial.
        self.count.load(Ordering::Relaxed) == 0
    }

    /// Buries a record that is going to be taken out of the index, unless somebody else has, or it has left the index.
    ///
    /// # Safety
    ///
    /// `retire` frees the record, which is dead, through the epoch. A record that is found buried is freed from here alone, which happens once
    /// its state is [removed](crate::record::State::Removed), and is in memory until then.
    pub(crate) unsafe fn bury(&self, name: Name, buried: Buried) {
        let mut records = lock(&self.records);
        // Relaxed: before the record's state changes, by a release, and so before whoever sees that takes it out of the index.
        self.set_count(records.len() + 1);
        if buried.begin() {
            records.add(name, buried);
        } else {
            self.set_count(records.len());
        }
        let is_full = records.is_full();
        drop(records);
        if is_full {
            let needs = self.snapshots.needs();
            self.free(|records| records.age(|Buried { life: (made, deleted), .. }| needs(*made, *deleted)));
        }
    }

    /// The records under names in a range that somebody may see, by name. They are in memory as long as the caller is pinned.
    pub(crate) fn find(&self, range: (Bound<Name>, Bound<Name>), sight: Sight) -> Vec<(Name, NonNull<()>)> {
        if self.is_empty() { Vec::new() } else { lock(&self.records).find(range, sight) }
    }

    /// The same, of one name.
    pub(crate) fn find_one(&self, name: Name, sight: Sight) -> Vec<(Name, NonNull<()>)> {
        self.find((Bound::Included(name.clone()), Bound::Included(name)), sight)
    }

    /// Adds [found](Self::find) records to `records`, which are of their range, too, and in the order of the direction. Of records that are
    /// in both, one stays.
    pub(crate) fn add_to(
        records: &mut Vec<NonNull<()>>,
        mut found: Vec<(Name, NonNull<()>)>,
        direction: Direction,
        name_of: &dyn Fn(NonNull<()>) -> Name,
    ) {
        if found.is_empty() {
            return;
        }
        if direction == Direction::Descending {
            found.reverse();
        }
        let mut found = found.into_iter().peekable();
        for record in mem::take(records) {
            let name = name_of(record);
            let is_before = |(other, _): &(Name, _)| match direction {
                Direction::Ascending => *other < name,
                Direction::Descending => *other > name,
            };
            while let Some((_, buried)) = found.next_if(is_before) {
                records.push(buried);
            }
            records.push(record);
            while let Some((_, buried)) = found.next_if(|(other, _)| *other == name) {
                if buried != record {
                    records.push(buried);
                }
            }
        }
        records.extend(found.map(|(_, buried)| buried));
    }

    /// Frees all records that are out of the index, which nobody reads any more, and forgets the others, which the index frees.
    pub(crate) fn close(&self) {
        self.free(|records| {
            let out = records.take(|_| false);
            records.clear();
            out
        });
    }

    /// Frees what is taken out of the records.
    fn free(&self, take: impl FnOnce(&mut BuriedRecords) -> Vec<Buried>) {
        let mut records = lock(&self.records);
        let taken = take(&mut records);
        self.set_count(records.len());
        drop(records);
        // Collecting garbage may run users' code, so not under the lock.
        let pin = Pin::new();
        for Buried { record, retire, .. } in taken {
            // SAFETY: as `bury`'s caller promised. The record is out of the index and out of here.
            unsafe { retire(record, &pin) };
        }
    }
}

impl Sweep for Graveyard {
    fn sweep(&self) {
        if !self.is_empty() {
            let needs = self.snapshots.needs();
            self.free(|records| records.take(|Buried { life: (made, deleted), .. }| needs(*made, *deleted)));
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::record::State;
    use hotrow_core::Engine;
    use hotrow_protocols::Occ;
    use hotrow_sync::atomic::AtomicU8;

    /// A record that counts how often it was freed.
    struct Counted {
        state: AtomicU8,
        freed: AtomicUsize,
    }

    impl Counted {
        fn new() -> Self {
            Self { state: AtomicU8::new(State::Dead as u8), freed: AtomicUsize::new(0) }
        }

        fn address(&self) -> NonNull<()> {
            NonNull::from(self).cast()
        }

        fn freed(&self) -> usize {
            self.freed.load(Ordering::Relaxed)
        }
    }

    unsafe fn count(record: NonNull<()>, _pin: &Pin) {
        // SAFETY: the tests bury such records, which live longer.
        unsafe { record.cast::<Counted>().as_ref() }.freed.fetch_add(1, Ordering::Relaxed);
    }

    fn name(bytes: &[u8]) -> Name {
        Name::of(&|name| name.extend_from_slice(bytes))
    }

    /// Buries a record under the name "key".
    fn bury(graveyard: &Graveyard, record: &Counted) {
        let (state, life) = (NonNull::from(&record.state), (0, 1));
        let buried = Buried { record: record.address(), state, life, retire: count };
        // SAFETY: `count` frees nothing.
        unsafe { graveyard.bury(name(b"key"), buried) }
    }

    fn all(graveyard: &Graveyard) -> Vec<NonNull<()>> {
        let found = graveyard.find((Bound::Unbounded, Bound::Unbounded), Sight::UNLIMITED);
        found.into_iter().map(|(_, record)| record).collect()
    }

    fn graveyard() -> Arc<Graveyard> {
        Graveyard::new(Engine::<Occ>::new().kept_segments())
    }

    #[test]
    fn a_record_that_two_threads_bury_is_there_once_and_freed_once() {
        let (graveyard, record) = (graveyard(), Counted::new());
        bury(&graveyard, &record);
        bury(&graveyard, &record);
        assert_eq!(all(&graveyard), [record.address()]);
        graveyard.sweep();
        assert_eq!((all(&graveyard), record.freed()), (vec![record.address()], 0), "still in the index");
        record.state.store(State::Removed as u8, Ordering::Release);
        graveyard.sweep();
        assert_eq!((all(&graveyard), record.freed()), (vec![], 1));
        // A third comes late.
        bury(&graveyard, &record);
        assert!(all(&graveyard).is_empty() && graveyard.is_empty());
    }

    #[test]
    fn a_closed_graveyard_frees_what_is_out_of_the_index_and_nothing_else() {
        let (graveyard, out, within) = (graveyard(), Counted::new(), Counted::new());
        bury(&graveyard, &out);
        bury(&graveyard, &within);
        assert_eq!(all(&graveyard), [out.address(), within.address()], "of one key in the order of burials");
        out.state.store(State::Removed as u8, Ordering::Release);
        graveyard.close();
        drop(graveyard);
        assert_eq!((out.freed(), within.freed()), (1, 0));
    }

    #[test]
    fn a_scan_finds_the_buried_between_the_others_in_both_directions() {
        let addresses: Vec<u64> = (0..6).collect();
        let at = |of: usize| NonNull::from(&addresses[of]).cast::<()>();
        let named = |of: usize| name(&[of as u8]);
        let name_of = |record: NonNull<()>| {
            (0..6).map(named).nth((0..6).position(|of| at(of) == record).unwrap()).unwrap()
        };
        for (index, buried) in
            [(vec![1, 3], vec![0, 2, 5]), (vec![2], vec![2, 4]), (vec![], vec![3]), (vec![0, 5], vec![])]
        {
            let mut expected: Vec<_> = index.iter().chain(&buried).copied().collect();
            expected.sort_unstable();
            expected.dedup();
            for direction in [Direction::Ascending, Direction::Descending] {
                let mut records: Vec<_> = index.iter().copied().map(at).collect();
                let mut expected: Vec<_> = expected.iter().copied().map(at).collect();
                if direction == Direction::Descending {
                    records.reverse();
                    expected.reverse();
                }
                let found = buried.iter().map(|&of| (named(of), at(of))).collect();
                Graveyard::add_to(&mut records, found, direction, &name_of);
                assert_eq!(records, expected);
            }
        }
    }
}

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

use crate::index::Direction;
use crate::record::State;
use hotrow_core::{KeptSegments, ObjectMeta, Pin, Sweep};
use hotrow_sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use hotrow_sync::{Mutex, lock};
use std::collections::BTreeMap;
use std::mem;
use std::ops::Bound;
use std::ptr::NonNull;
use std::sync::Arc;

/// A record, of whatever types, that is out of its index or about to be.
#[derive(Clone, Copy)]
pub(crate) struct Buried {
    pub(crate) record: NonNull<()>,
    /// Its [state](State), which is in memory as long as it is.
    pub(crate) state: NonNull<AtomicU8>,
    /// The stamp before which no snapshot needs it, and one not before that of the commit that has deleted it.
    pub(crate) life: (u64, u64),
    /// Frees the record.
    pub(crate) retire: unsafe fn(NonNull<()>, &Pin),
}

// SAFETY: records are `Send` and `Sync`.
unsafe impl Send for Buried {}

/// A key's name, which is compared by its first bytes at once.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Name {
    start: u128,
    rest: Box<[u8]>,
    /// The number of bytes, because those that are missing in `start` are zeros there.
    length: usize,
}

/// The dead records of one table.
pub(crate) struct Graveyard {
    snapshots: KeptSegments,
    records: Mutex<Records>,
    /// The number of records that are here, or are about to be. It is changed under the lock.
    count: AtomicUsize,
    /// The number of records at which a burial sweeps.
    swept_at: AtomicUsize,
}

/// Records by the names of their keys, and in the order in which they were buried.
#[derive(Default)]
struct Records {
    by_name: BTreeMap<(Name, u64), Buried>,
    /// The number of burials.
    burials: u64,
}

/// The number of buried records from which on a burial sweeps.
const SWEPT_AT: usize = if cfg!(test) { 2 } else { 64 };

impl Name {
    /// The name that `put` appends.
    #[inline]
    pub(crate) fn of(put: impl FnOnce(&mut Vec<u8>)) -> Self {
        let mut bytes = Vec::with_capacity(64);
        put(&mut bytes);
        let (first, rest) = bytes.split_at(bytes.len().min(size_of::<u128>()));
        let mut start = [0; size_of::<u128>()];
        start[..first.len()].copy_from_slice(first);
        Self { start: u128::from_be_bytes(start), rest: rest.into(), length: bytes.len() }
    }
}

impl Graveyard {
    pub(crate) fn new(snapshots: KeptSegments) -> Arc<Self> {
        let (records, count) = (Mutex::default(), AtomicUsize::new(0));
        let graveyard = Arc::new(Self { snapshots, records, count, swept_at: AtomicUsize::new(SWEPT_AT) });
        let weak = Arc::downgrade(&graveyard);
        graveyard.snapshots.register(weak);
        graveyard
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

    /// Buries a record that is going to be taken out of the index, if `begins` says that nobody has done so, and that it has not left the
    /// index.
    ///
    /// # Safety
    ///
    /// `retire` frees the record, which is dead, through the epoch. Nobody frees the record for whom `begins` was true, and it is in memory
    /// until it is freed from here, which happens once its state is [removed](State::Removed).
    pub(crate) unsafe fn bury(&self, name: Name, buried: Buried, begins: impl FnOnce() -> bool) {
        // Before the record is here, which may be freed as soon as it is.
        if self.count.load(Ordering::Relaxed) >= self.swept_at.load(Ordering::Relaxed) {
            self.sweep();
            // So that sweeps take a fixed time for each burial.
            let next = 2 * self.count.load(Ordering::Relaxed) + SWEPT_AT;
            self.swept_at.store(next, Ordering::Relaxed);
        }
        let mut records = lock(&self.records);
        // Relaxed: before the record's state changes, by a release, and so before whoever sees that takes it out of the index.
        self.count.store(records.by_name.len() + 1, Ordering::Relaxed);
        if begins() {
            records.burials += 1;
            let number = records.burials;
            records.by_name.insert((name, number), buried);
        } else {
            self.count.store(records.by_name.len(), Ordering::Relaxed);
        }
    }

    /// The records under names in a range whose lives are asked for, by name. They are in memory as long as the caller is pinned.
    pub(crate) fn find(
        &self,
        (low, high): (Bound<Name>, Bound<Name>),
        is_wanted: impl Fn((u64, u64)) -> bool,
    ) -> Vec<(Name, NonNull<()>)> {
        let low = match low {
            Bound::Included(name) => Bound::Included((name, 0)),
            Bound::Excluded(name) => Bound::Excluded((name, u64::MAX)),
            Bound::Unbounded => Bound::Unbounded,
        };
        let high = match high {
            Bound::Included(name) => Bound::Included((name, u64::MAX)),
            Bound::Excluded(name) => Bound::Excluded((name, 0)),
            Bound::Unbounded => Bound::Unbounded,
        };
        if self.is_empty() || is_void((&low, &high)) {
            return Vec::new();
        }
        let records = lock(&self.records);
        let wanted = records.by_name.range((low, high)).filter(|(_, buried)| is_wanted(buried.life));
        wanted.map(|((name, _), buried)| (name.clone(), buried.record)).collect()
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
        self.free(|_| true);
        lock(&self.records).by_name.clear();
    }

    fn free(&self, is_free: impl Fn(&Buried) -> bool) {
        if self.is_empty() {
            return;
        }
        let mut freed = Vec::new();
        let mut records = lock(&self.records);
        records.by_name.retain(|_, buried| {
            // SAFETY: a record that is here is in memory.
            let state = unsafe { buried.state.as_ref() };
            // Acquire: the record is out of the index.
            let is_freed = state.load(Ordering::Acquire) == State::Removed as u8 && is_free(buried);
            if is_freed {
                freed.push(*buried);
            }
            !is_freed
        });
        self.count.store(records.by_name.len(), Ordering::Relaxed);
        drop(records);
        // Collecting garbage may run users' code, so not under the lock.
        let pin = Pin::new();
        for Buried { record, retire, .. } in freed {
            // SAFETY: as `bury`'s caller promised. The record is out of the index and out of here.
            unsafe { retire(record, &pin) };
        }
    }
}

/// True if a range's bounds leave no room, for which a map of the standard library would panic.
fn is_void<T: Ord>(range: (&Bound<T>, &Bound<T>)) -> bool {
    match range {
        (Bound::Included(low), Bound::Included(high)) => low > high,
        (Bound::Included(low) | Bound::Excluded(low), Bound::Included(high) | Bound::Excluded(high)) => {
            low >= high
        }
        _ => false,
    }
}

impl Sweep for Graveyard {
    fn sweep(&self) {
        let needs = self.snapshots.needs();
        self.free(|Buried { life: (made, deleted), .. }| !needs(*made, *deleted));
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use hotrow_core::Engine;
    use hotrow_protocols::Occ;

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

        fn move_to(&self, state: State) -> bool {
            let (dead, next) = (State::Dead as u8, state as u8);
            self.state.compare_exchange(dead, next, Ordering::AcqRel, Ordering::Acquire).is_ok()
        }
    }

    unsafe fn count(record: NonNull<()>, _pin: &Pin) {
        // SAFETY: the tests bury such records, which live longer.
        unsafe { record.cast::<Counted>().as_ref() }.freed.fetch_add(1, Ordering::Relaxed);
    }

    fn name(bytes: &[u8]) -> Name {
        Name::of(|name| name.extend_from_slice(bytes))
    }

    /// Buries a record under the name "key".
    fn bury(graveyard: &Graveyard, record: &Counted) {
        let (state, life) = (NonNull::from(&record.state), (0, 1));
        let buried = Buried { record: record.address(), state, life, retire: count };
        // SAFETY: `count` frees nothing.
        unsafe { graveyard.bury(name(b"key"), buried, || record.move_to(State::Buried)) }
    }

    fn all(graveyard: &Graveyard) -> Vec<NonNull<()>> {
        let found = graveyard.find((Bound::Unbounded, Bound::Unbounded), |_| true);
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
    fn names_compare_as_their_bytes_do() {
        let mut all = vec![vec![], vec![0], vec![0, 0], vec![1], vec![1, 0]];
        for length in 14..19 {
            for last in [0, 1, 255] {
                all.push([vec![7; length], vec![last]].concat());
                all.push([vec![0; length], vec![last]].concat());
            }
        }
        for one in &all {
            for other in &all {
                assert_eq!(name(one).cmp(&name(other)), one.cmp(other), "{one:?} {other:?}");
            }
        }
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

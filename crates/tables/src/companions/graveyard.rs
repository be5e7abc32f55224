//! Dead records that snapshots may still see.
//!
//! A record that a commit has deleted leaves the index in the commit's cleanup. While snapshots are in use it is put here
//! before, under its key's name, whose bytes compare as keys do. A transaction on a snapshot looks into the index first and here
//! afterwards, so that it finds each record that its snapshot sees in one place or in both. Other transactions never look here.
//!
//! Records stay until no snapshot may need them; they are freed when snapshots end or points are made ([`Sweep`]). The lock is held
//! for a few dozen instructions, never while users' code runs.
//!
//! Several threads may come to remove one record, and may differ in whether it has to be buried, if snapshots come or go meanwhile. It is
//! here at most once, and never after it was freed: a thread that comes late could otherwise show it to a transaction that has pinned its
//! epoch too late to keep it in memory. So a record that has left the index is not buried; and who has taken one out of the index has it
//! freed from here ([`settle`](Graveyard::settle)), or takes it from here and frees it ([`forget`](Graveyard::forget)).

use crate::index::Direction;
use hotrow_core::{KeptSegments, ObjectMeta, Pin, Sweep};
use hotrow_sync::atomic::{AtomicUsize, Ordering};
use hotrow_sync::{Mutex, lock};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::ptr::NonNull;
use std::sync::Arc;

/// A record, of whatever types, that is out of its index or about to be.
pub(crate) struct Buried {
    record: NonNull<()>,
    /// The stamp before which no snapshot needs it, and one not before that of the commit that has deleted it.
    life: (u64, u64),
    /// Frees the record.
    retire: unsafe fn(NonNull<()>, &Pin),
    /// True once a thread that has buried the record, or has found it buried, has taken it out of the index.
    is_out: bool,
}

// SAFETY: records are `Send` and `Sync`.
unsafe impl Send for Buried {}

/// The dead records of one table, by the names of their keys.
pub(crate) struct Graveyard {
    snapshots: KeptSegments,
    records: Mutex<BTreeMap<Box<[u8]>, Vec<Buried>>>,
    /// The number of records that are here, or are about to be.
    count: AtomicUsize,
    /// The number of records at which a burial sweeps.
    swept_at: AtomicUsize,
}

/// The number of buried records from which on a burial sweeps.
const SWEPT_AT: usize = if cfg!(test) { 2 } else { 64 };

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
        // Acquire: the search of the index before has acquired the removal, which came after the burial.
        self.count.load(Ordering::Acquire) == 0
    }

    /// As [`is_empty`](Self::is_empty), for a caller that has just noted that a record has left the index: if it is true, nobody will
    /// bury that record any more.
    #[inline]
    pub(crate) fn is_surely_empty(&self) -> bool {
        // Sequentially consistent: pairs with the count in `bury`.
        self.count.load(Ordering::SeqCst) == 0
    }

    /// Buries a record that is going to be taken out of the index, unless it is buried. False if `has_left` says that it has left the
    /// index. Otherwise the caller tries to take it out, and [settles](Self::settle) the burial if it did.
    ///
    /// # Safety
    ///
    /// `retire` frees the record, which is dead, through the epoch; it is called at most once.
    pub(crate) unsafe fn bury(
        &self,
        name: &[u8],
        record: NonNull<()>,
        life: (u64, u64),
        retire: unsafe fn(NonNull<()>, &Pin),
        has_left: impl FnOnce() -> bool,
    ) -> bool {
        // Before the record is here, which may be freed as soon as it is.
        if self.count.load(Ordering::Relaxed) >= self.swept_at.load(Ordering::Relaxed) {
            self.sweep();
            // So that sweeps take a fixed time for each burial.
            let next = 2 * self.count.load(Ordering::Relaxed) + SWEPT_AT;
            self.swept_at.store(next, Ordering::Relaxed);
        }
        // Sequentially consistent: whoever takes the record out without a look at what is here sees the count, or has noted
        // that the record has left.
        self.count.fetch_add(1, Ordering::SeqCst);
        let mut records = lock(&self.records);
        let has_left = has_left();
        let is_new = !has_left && records.get(name).and_then(|buried| position(buried, record)).is_none();
        if is_new {
            records.entry(name.into()).or_default().push(Buried { record, life, retire, is_out: false });
        }
        drop(records);
        if !is_new {
            self.count.fetch_sub(1, Ordering::Release);
        }
        !has_left
    }

    /// Ends the burial of a record: the caller has taken it out of the index, and has noted that in the record.
    pub(crate) fn settle(&self, name: &[u8], record: NonNull<()>) {
        let mut records = lock(&self.records);
        let buried = records.get_mut(name).and_then(|buried| {
            let at = position(buried, record)?;
            buried.get_mut(at)
        });
        buried.expect("a record that is not out yet stays").is_out = true;
    }

    /// Takes out a record, if it is here, that no snapshot needs: the caller has taken it out of the index, has noted that in the record,
    /// and is going to free it.
    #[cold]
    pub(crate) fn forget(&self, name: &[u8], record: NonNull<()>) {
        let mut records = lock(&self.records);
        let Some(buried) = records.get_mut(name) else { return };
        let Some(at) = position(buried, record) else { return };
        buried.swap_remove(at);
        if buried.is_empty() {
            records.remove(name);
        }
        drop(records);
        self.count.fetch_sub(1, Ordering::Release);
    }

    /// The records under names in a range, by name. They are in memory as long as the caller is pinned.
    pub(crate) fn find(&self, range: (Bound<&[u8]>, Bound<&[u8]>)) -> Vec<NonNull<()>> {
        if self.is_empty() || is_void(range) {
            return Vec::new();
        }
        let records = lock(&self.records);
        records
            .range::<[u8], _>(range)
            .flat_map(|(_, buried)| buried.iter().map(|buried| buried.record))
            .collect()
    }

    /// Adds the records under names in a range to `records`, which are of this range, too, and in the order of the direction.
    /// Of records that are in both, one stays.
    pub(crate) fn add_to(
        &self,
        records: &mut Vec<NonNull<()>>,
        range: (Bound<&[u8]>, Bound<&[u8]>),
        direction: Direction,
        name_of: &dyn Fn(NonNull<()>) -> Vec<u8>,
    ) {
        let buried = self.find(range);
        if buried.is_empty() {
            return;
        }
        let all = records.drain(..).chain(buried);
        let mut named: Vec<_> = all.map(|record| (name_of(record), record)).collect();
        // By name alone, because addresses differ from run to run.
        named.sort_by(|one, other| one.0.cmp(&other.0));
        for at in 0..named.len() {
            let (name, record) = &named[at];
            let mut same = named[..at].iter().rev().take_while(|(other, _)| other == name);
            if !same.any(|(_, other)| other == record) {
                records.push(*record);
            }
        }
        if direction == Direction::Descending {
            records.reverse();
        }
    }

    fn free(&self, is_free: impl Fn(&Buried) -> bool) {
        if self.is_empty() {
            return;
        }
        let mut freed = Vec::new();
        let mut records = lock(&self.records);
        records.retain(|_, buried| {
            freed.extend(buried.extract_if(.., |buried| buried.is_out && is_free(buried)));
            !buried.is_empty()
        });
        self.count.fetch_sub(freed.len(), Ordering::Release);
        drop(records);
        // Collecting garbage may run users' code, so not under the lock.
        let pin = Pin::new();
        for Buried { record, retire, .. } in freed {
            // SAFETY: as `bury`'s caller promised. The record is out of the index and out of here.
            unsafe { retire(record, &pin) };
        }
    }
}

fn position(buried: &[Buried], record: NonNull<()>) -> Option<usize> {
    buried.iter().position(|buried| buried.record == record)
}

/// True if a range's bounds leave no room, for which a map of the standard library would panic.
fn is_void(range: (Bound<&[u8]>, Bound<&[u8]>)) -> bool {
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

impl Drop for Graveyard {
    fn drop(&mut self) {
        self.free(|_| true);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use hotrow_core::Engine;
    use hotrow_protocols::Occ;

    /// A record that counts how often it was freed.
    #[derive(Default)]
    struct Counted(AtomicUsize);

    unsafe fn count(record: NonNull<()>, _pin: &Pin) {
        // SAFETY: the tests bury such records, which live longer.
        unsafe { record.cast::<Counted>().as_ref() }.0.fetch_add(1, Ordering::Relaxed);
    }

    /// Buries a record under the name "key".
    fn bury(graveyard: &Graveyard, record: &Counted, has_left: bool) -> bool {
        // SAFETY: `count` frees nothing.
        unsafe { graveyard.bury(b"key", NonNull::from(record).cast(), (0, 1), count, || has_left) }
    }

    fn all(graveyard: &Graveyard) -> Vec<NonNull<()>> {
        graveyard.find((Bound::Unbounded, Bound::Unbounded))
    }

    fn graveyard() -> Arc<Graveyard> {
        Graveyard::new(Engine::<Occ>::new().kept_segments())
    }

    #[test]
    fn a_record_that_two_threads_bury_is_there_once_and_freed_once() {
        let (graveyard, record) = (graveyard(), Counted::default());
        let address = NonNull::from(&record).cast();
        assert!(bury(&graveyard, &record, false) && bury(&graveyard, &record, false));
        assert_eq!(all(&graveyard), [address]);
        graveyard.sweep();
        assert_eq!(
            (all(&graveyard), record.0.load(Ordering::Relaxed)),
            (vec![address], 0),
            "still in the index"
        );
        graveyard.settle(b"key", address);
        graveyard.sweep();
        assert_eq!((all(&graveyard), record.0.load(Ordering::Relaxed)), (vec![], 1));
        // A third comes late.
        assert!(!bury(&graveyard, &record, true));
        assert!(all(&graveyard).is_empty() && graveyard.is_surely_empty());
    }

    #[test]
    fn a_record_that_is_freed_by_who_has_not_buried_it_is_not_found_any_more() {
        let (graveyard, record, other) = (graveyard(), Counted::default(), Counted::default());
        let [address, other_address] = [&record, &other].map(|record| NonNull::from(record).cast());
        assert!(bury(&graveyard, &record, false) && bury(&graveyard, &other, false));
        assert!(!graveyard.is_surely_empty());
        graveyard.forget(b"key", address);
        graveyard.forget(b"another", address);
        assert_eq!(all(&graveyard), [other_address]);
        graveyard.settle(b"key", other_address);
        drop(graveyard);
        assert_eq!([&record, &other].map(|record| record.0.load(Ordering::Relaxed)), [0, 1]);
    }
}

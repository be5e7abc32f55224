//! A collection of buried records by the names of their keys, of which most stay for a short time only.

use crate::record::State;
use hotrow_core::{Pin, Sight};
use hotrow_sync::atomic::{AtomicU8, Ordering};
use std::collections::BTreeMap;
use std::mem;
use std::ops::{Bound, RangeBounds};
use std::ptr::NonNull;

/// The stamp before which no snapshot needs a record, and one not before that of the commit that has deleted it.
type Life = (u64, u64);

/// A record, of whatever types, that is out of its index or about to be.
#[derive(Clone, Copy)]
pub(crate) struct Buried {
    pub(crate) record: NonNull<()>,
    /// Its [state](State), which is in memory as long as it is.
    pub(crate) state: NonNull<AtomicU8>,
    pub(crate) life: Life,
    /// Frees the record.
    pub(crate) retire: unsafe fn(NonNull<()>, &Pin),
}

// SAFETY: records are `Send` and `Sync`.
unsafe impl Send for Buried {}

impl Buried {
    /// Moves the record from dead to buried. False if somebody else has, or if it is out of its index.
    pub(super) fn begin(&self) -> bool {
        let (dead, buried) = (State::Dead as u8, State::Buried as u8);
        // SAFETY: who is going to bury a record has it in memory.
        let state = unsafe { self.state.as_ref() };
        // Release: who sees this, by a failure or in `leave_index`, and then lets others find the record gone, also lets them find the graveyard's
        // count.
        state.compare_exchange(dead, buried, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// True if the record is out of its index.
    fn is_out(&self) -> bool {
        // SAFETY: a buried record is in memory.
        let state = unsafe { self.state.as_ref() };
        // Acquire: pairs with the release in `leave_index`.
        state.load(Ordering::Acquire) == State::Removed as u8
    }
}

/// A key's name, which is compared by its first bytes at once.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Name {
    start: u128,
    rest: Box<[u8]>,
    /// The number of bytes, because those that are missing in `start` are zeros there.
    length: usize,
}

impl Name {
    /// The name that `put` appends.
    pub(crate) fn of(put: &dyn Fn(&mut Vec<u8>)) -> Self {
        let mut bytes = Vec::with_capacity(64);
        put(&mut bytes);
        let (first, rest) = bytes.split_at(bytes.len().min(size_of::<u128>()));
        let mut start = [0; size_of::<u128>()];
        start[..first.len()].copy_from_slice(first);
        Self { start: u128::from_be_bytes(start), rest: rest.into(), length: bytes.len() }
    }
}

/// The number of records by which those that stayed have more than doubled when all are looked through again.
const YOUNG: usize = if cfg!(test) { 2 } else { 64 };
/// The largest number of young records: whoever looks for one looks at the lives of all.
const YOUNG_MAX: usize = 8 * YOUNG;

/// Records in the order of their names; those of one name in the order of their burials.
#[derive(Default)]
pub(super) struct BuriedRecords {
    /// The newest ones, in the order of their burials. Most of them are not needed any more when there are some more, and never come into the map.
    young: Vec<(Name, Buried)>,
    /// Their lives, which most of those who look for one look at alone.
    young_lives: Vec<Life>,
    /// The number of young records at which they are looked through.
    full_at: usize,
    old: BTreeMap<(Name, u64), Buried>,
    /// The number of records that have come into the map.
    aged: u64,
    /// The number of old records at which they are looked through.
    looked_at: usize,
}

impl BuriedRecords {
    pub(super) fn len(&self) -> usize {
        self.young.len() + self.old.len()
    }

    /// True if there are so many young ones that they should [age](Self::age).
    pub(super) fn is_full(&self) -> bool {
        self.young.len() >= self.full_at.max(YOUNG)
    }

    pub(super) fn add(&mut self, name: Name, buried: Buried) {
        self.young_lives.push(buried.life);
        self.young.push((name, buried));
    }

    /// Takes out records that are out of the index, and that nobody needs: of the young ones, and of the old ones if there are twice as many as
    /// after the last time, so that it takes a fixed time for each burial. The young ones are old then, if many of them stay.
    pub(super) fn age(&mut self, is_needed: impl Fn(&Buried) -> bool) -> Vec<Buried> {
        let mut taken = self.take_young(&is_needed);
        if 2 * self.young.len() > YOUNG_MAX {
            self.young_lives.clear();
            for (name, buried) in mem::take(&mut self.young) {
                self.aged += 1;
                self.old.insert((name, self.aged), buried);
            }
        }
        self.full_at = (2 * self.young.len() + YOUNG).min(YOUNG_MAX);
        if self.old.len() > self.looked_at {
            self.take_old(&is_needed, &mut taken);
            self.looked_at = 2 * self.old.len() + YOUNG;
        }
        taken
    }

    /// Takes out all records that are out of the index, and that nobody needs.
    pub(super) fn take(&mut self, is_needed: impl Fn(&Buried) -> bool) -> Vec<Buried> {
        let mut taken = self.take_young(&is_needed);
        self.take_old(&is_needed, &mut taken);
        taken
    }

    fn take_young(&mut self, is_needed: &impl Fn(&Buried) -> bool) -> Vec<Buried> {
        let taken = self.young.extract_if(.., |(_, buried)| !is_needed(buried) && buried.is_out());
        let taken = taken.map(|(_, buried)| buried).collect();
        self.young_lives.clear();
        self.young_lives.extend(self.young.iter().map(|(_, buried)| buried.life));
        taken
    }

    fn take_old(&mut self, is_needed: &impl Fn(&Buried) -> bool, taken: &mut Vec<Buried>) {
        self.old.retain(|_, buried| {
            let stays = is_needed(buried) || !buried.is_out();
            if !stays {
                taken.push(*buried);
            }
            stays
        });
    }

    pub(super) fn clear(&mut self) {
        self.young.clear();
        self.young_lives.clear();
        self.old.clear();
    }

    /// The records under names in a range that somebody may see, in order.
    pub(super) fn find(&self, range: (Bound<Name>, Bound<Name>), sight: Sight) -> Vec<(Name, NonNull<()>)> {
        let (from, to) = (numbered(&range.0, 0, u64::MAX), numbered(&range.1, u64::MAX, 0));
        let old = (!is_void(&from, &to)).then(|| self.old.range((from, to)));
        let old = old.into_iter().flatten().filter(|(_, buried)| sight.has(buried.life));
        let mut found: Vec<_> = old.map(|((name, _), buried)| (name.clone(), buried.record)).collect();
        for (at, life) in self.young_lives.iter().enumerate() {
            if sight.has(*life) {
                let (name, buried) = &self.young[at];
                if range.contains(name) {
                    found.push((name.clone(), buried.record));
                }
            }
        }
        // Stable, and not by addresses, which differ from run to run.
        found.sort_by(|one, other| one.0.cmp(&other.0));
        found
    }
}

/// A bound of names as one of names with numbers: that of a name which is included, and that of one which is not.
fn numbered(bound: &Bound<Name>, included: u64, excluded: u64) -> Bound<(Name, u64)> {
    match bound {
        Bound::Included(name) => Bound::Included((name.clone(), included)),
        Bound::Excluded(name) => Bound::Excluded((name.clone(), excluded)),
        Bound::Unbounded => Bound::Unbounded,
    }
}

/// True if a range's bounds leave no room, for which a map of the standard library would panic.
fn is_void<T: Ord>(low: &Bound<T>, high: &Bound<T>) -> bool {
    match (low, high) {
        (Bound::Included(low), Bound::Included(high)) => low > high,
        (Bound::Included(low) | Bound::Excluded(low), Bound::Included(high) | Bound::Excluded(high)) => {
            low >= high
        }
        _ => false,
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn name(bytes: &[u8]) -> Name {
        Name::of(&|name| name.extend_from_slice(bytes))
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
    fn young_and_old_records_are_found_by_name_and_then_by_age() {
        let state = AtomicU8::new(State::Buried as u8);
        let addresses: Vec<u64> = (0..50).collect();
        let at = |of: usize| NonNull::from(&addresses[of]).cast::<()>();
        let (mut records, mut expected) = (BuriedRecords::default(), Vec::new());
        for of in 0..addresses.len() {
            let key = [5_u8, 3, 5, 1, 3, 5, 9, 0, 5, 3][of % 10];
            let (state, life) = (NonNull::from(&state), (0, of as u64));
            records.add(name(&[key]), Buried { record: at(of), state, life, retire: |_, _| () });
            expected.push((key, of));
            if records.is_full() {
                assert!(records.age(|_| of % 3 != 0).is_empty(), "none is out of its index");
            }
        }
        assert!(!records.young.is_empty() && !records.old.is_empty());
        expected.sort_unstable();
        let bounds = [
            Bound::Unbounded,
            Bound::Included(3),
            Bound::Excluded(3),
            Bound::Included(5),
            Bound::Excluded(5),
        ];
        for low in bounds {
            for high in bounds {
                let names = (low.map(|key: u8| name(&[key])), high.map(|key: u8| name(&[key])));
                for first in [0, 4] {
                    let sight = if first == 0 { Sight::UNLIMITED } else { Sight::of_snapshot(first) };
                    let found = records.find(names.clone(), sight);
                    let found: Vec<_> = found.into_iter().map(|(_, record)| record).collect();
                    let wanted =
                        expected.iter().filter(|(key, of)| (low, high).contains(key) && *of as u64 >= first);
                    assert_eq!(found, wanted.map(|(_, of)| at(*of)).collect::<Vec<_>>());
                }
            }
        }
        state.store(State::Removed as u8, Ordering::Release);
        assert_eq!(records.take(|buried| buried.life.1 == 2).len(), addresses.len() - 1);
        assert_eq!(records.len(), 1);
    }
}

//! The tests of cached indexes. In test builds a cache has four buckets of two slots, so that they are full all the time.

mod interleavings;
mod model;
mod parts;
mod threads;

use super::*;
use crate::index::testing::{Census, CountedRecord, free, key_of, retire};
use crate::index::{Direction, HashIndex, OrderedIndex};
use std::ops::Bound::{Included, Unbounded};

type Index = CachedIndex<CountedRecord<u64>>;
type Pointer = NonNull<CountedRecord<u64>>;

fn ignore(_: StructureChange) {}

fn hash(tail_bits: u32) -> Index {
    CachedIndex::new(MainIndex::Hash(HashIndex::with_capacity(8)), tail_bits)
}

fn ordered(tail_bits: u32) -> Index {
    CachedIndex::new(MainIndex::Ordered(OrderedIndex::new()), tail_bits)
}

/// Inserts a record of a key, or returns the one that has it.
fn insert(
    index: &Index,
    key: u64,
    census: &Census,
    pin: &Pin,
    changed: &mut dyn FnMut(StructureChange),
) -> Result<Pointer, Pointer> {
    let record = CountedRecord::new(key, census);
    // SAFETY: the tests free records only after they have removed them, and indexes after all threads have ended.
    match unsafe { index.insert(record, pin, changed) } {
        Insertion::Inserted => Ok(record),
        Insertion::Exists(existing) => {
            assert_ne!(existing, record);
            // SAFETY: it did not get in.
            unsafe { free(record) };
            Err(existing)
        }
        Insertion::Refused(_) => unreachable!("every change is allowed"),
    }
}

/// Removes a record, and retires it, unless somebody else has removed it.
fn remove(index: &Index, record: Pointer, pin: &Pin) -> bool {
    let is_removed = index.remove(record, true, pin.guard(), &mut ignore);
    if is_removed {
        retire(record, pin.guard());
    }
    is_removed
}

fn write_back(index: &Index, record: Pointer, pin: &Pin) {
    // SAFETY: the tests call it with records that are in memory.
    unsafe { index.write_back(record, pin) };
}

fn find(index: &Index, key: u64, pin: &Pin) -> Option<Pointer> {
    match index.get(&key, &key, |other: &CountedRecord<u64>| *other.key() == key, pin.guard()) {
        Lookup::Found(record) => Some(record),
        Lookup::Absent(_) => None,
    }
}

/// Returns the keys of a scan.
fn scan(index: &Index, low: Bound<u64>, high: Bound<u64>, direction: Direction, pin: &Pin) -> Vec<u64> {
    let mut keys = Vec::new();
    let mut cursor = index.cursor(low, high, direction).expect("an index with an order");
    while let Some(part) = cursor.next(pin.guard()) {
        keys.extend(part.records.iter().map(|&record| key_of(record, pin.guard())));
    }
    keys
}

/// Frees everything, and asserts that the index had these keys, and nothing else was left.
fn end(mut index: Index, keys: impl IntoIterator<Item = u64>, census: &Census) {
    let pin = Pin::new();
    let mut drained = Vec::new();
    index.drain(&mut |record| {
        drained.push(key_of(record, pin.guard()));
        // SAFETY: the index is the test's own.
        unsafe { free(record) };
    });
    drained.sort_unstable();
    assert_eq!(drained, keys.into_iter().collect::<Vec<_>>());
    drop((pin, index));
    census.settle(0);
}

#[test]
fn a_scan_of_few_groups_reads_few_buckets() {
    let index = ordered(8);
    let buckets = |low, high| index.buckets_of(&low, &high).len();
    assert_eq!(buckets(Included(0x1200), Included(0x12ff)), 1);
    assert!((1..=2).contains(&buckets(Included(0x12ff), Included(0x1300))));
    assert_eq!(buckets(Unbounded, Unbounded), BUCKETS);
    assert_eq!(buckets(Included(2), Included(1)), 1);
    assert_eq!(ordered(64).buckets_of(&Unbounded, &Unbounded).len(), 1);
    assert_eq!(ordered(1_000).buckets_of(&Unbounded, &Unbounded).len(), 1);
}

#[test]
fn a_full_bucket_lets_records_through() {
    let (census, index, pin) = (Census::default(), ordered(64), Pin::new());
    let records: Vec<_> =
        (0..5).map(|key| insert(&index, key, &census, &pin, &mut ignore).unwrap()).collect();
    assert_eq!(index.cached_records(pin.guard()).len(), bucket::SLOTS);
    write_back(&index, records[4], &pin);
    assert!(index.cached_records(pin.guard()).is_empty(), "all of a bucket's records are written back");
    assert_eq!(scan(&index, Unbounded, Unbounded, Direction::Descending, &pin), [4, 3, 2, 1, 0]);
    assert_eq!(insert(&index, 2, &census, &pin, &mut ignore), Err(records[2]));
    drop(pin);
    end(index, 0..5, &census);
}

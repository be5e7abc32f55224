//! The tests of the ordered index. Nodes hold four entries in test builds, so that they are split and unlinked all
//! the time.

mod interleavings;
mod long_keys;
mod model;
mod parts;
mod shape;
mod threads;
mod versions;

use super::*;
use crate::index::Insertion;
use crate::index::testing::{Census, CountedRecord, free, key_of, retire};
use hotrow_core::StructureChange;
use hotrow_core::epoch;
use std::ops::Bound;

type Index<K> = OrderedIndex<CountedRecord<K>>;
type Pointer<K> = NonNull<CountedRecord<K>>;

fn ignore(_: StructureChange) {}

/// A key that stands for a number, in the order of numbers.
trait NumberKey: Key {
    fn of(number: u64) -> Self;
    fn number(&self) -> u64;
}

impl NumberKey for u64 {
    fn of(number: u64) -> Self {
        number
    }
    fn number(&self) -> u64 {
        *self
    }
}

/// Keys that differ after a long common beginning only.
impl NumberKey for String {
    fn of(number: u64) -> Self {
        format!("https://shop.example.com/articles/{number:06}/index")
    }
    fn number(&self) -> u64 {
        self.split('/').nth(4).unwrap().parse().unwrap()
    }
}

/// Keys most of which begin with those before them, up to hundreds of bytes.
impl NumberKey for Vec<u8> {
    fn of(number: u64) -> Self {
        let mut key = vec![5; number as usize / 4];
        key.resize(key.len() + number as usize % 4, 0);
        key
    }
    fn number(&self) -> u64 {
        let zeros = self.iter().filter(|byte| **byte == 0).count() as u64;
        4 * (self.len() as u64 - zeros) + zeros
    }
}

/// Inserts a record, or frees it if its key exists.
fn insert<K: Key>(
    index: &Index<K>,
    record: Pointer<K>,
    guard: &Guard,
    changed: &mut dyn FnMut(StructureChange),
) -> bool {
    // SAFETY: the tests free records only after they have removed them.
    match unsafe { index.insert(record, guard, None, changed, None) }.0 {
        Insertion::Inserted => true,
        Insertion::Exists(existing) => {
            assert_ne!(existing, record);
            // SAFETY: it did not get in.
            unsafe { free(record) };
            false
        }
        Insertion::Refused(_) => unreachable!("every change is allowed"),
    }
}

/// Removes a record and retires it.
fn remove<K: Key>(index: &Index<K>, record: Pointer<K>, guard: &Guard) {
    assert!(index.remove(record, true, guard, &mut ignore));
    retire(record, guard);
}

/// Returns the keys of a scan.
fn scan<'k, K: Key>(
    index: &Index<K>,
    low: Bound<KeyImage<'k, K>>,
    high: Bound<KeyImage<'k, K>>,
    direction: Direction,
    guard: &Guard,
) -> Vec<K> {
    let mut keys = Vec::new();
    let mut cursor = index.cursor(low, high, direction);
    while let Some(leaf) = cursor.next(guard) {
        keys.extend(leaf.records.iter().map(|&record| key_of(record, guard)));
    }
    keys
}

fn all<K: Key>(index: &Index<K>, guard: &Guard) -> Vec<K> {
    scan(index, Bound::Unbounded, Bound::Unbounded, Direction::Ascending, guard)
}

/// Frees everything, and asserts that nothing was left. It takes the guard, which would keep garbage alive.
fn empty<K: Key>(mut index: Index<K>, guard: Guard, census: &Census) {
    let mut drained = Vec::new();
    index.drain(&mut |record| {
        drained.push(key_of(record, &guard));
        // SAFETY: the index is the tests' own.
        unsafe { free(record) };
    });
    assert!(drained.is_sorted());
    assert!(all(&index, &guard).is_empty());
    drop((guard, index));
    census.settle(0);
}

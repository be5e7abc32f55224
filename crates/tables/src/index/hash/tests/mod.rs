//! The tests of the hash index.

mod growth;
mod interleavings;
mod model;
mod threads;
mod versions;

use super::*;
use crate::index::testing::{Census, CountedRecord, Observer, free, key_of, meanwhile, retire};

type Index<K> = HashIndex<CountedRecord<K>>;

fn insert<K: Hash + Eq + Send + Sync + 'static>(
    index: &Index<K>,
    record: NonNull<CountedRecord<K>>,
    guard: &Guard,
    changed: &mut dyn FnMut(StructureChange),
) -> bool {
    // SAFETY: the tests free records only after they have removed them.
    match unsafe { index.insert(record, guard, changed, None) } {
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

fn all<K: Hash + Eq + Clone + Send + Sync + 'static>(index: &Index<K>, guard: &Guard) -> Vec<K> {
    let mut keys = Vec::new();
    index.for_each_bucket(guard, (0, 1), &mut |records| {
        keys.extend(records.iter().map(|&r| key_of(r, guard)));
        true
    });
    keys
}

/// Frees everything, and asserts that nothing was left. It takes the guard, which would keep garbage alive.
fn empty<K: Hash + Eq + Send + Sync + 'static>(mut index: Index<K>, guard: Guard, census: &Census) {
    // SAFETY: the index is the tests' own.
    index.drain(&mut |record| unsafe { free(record) });
    assert_eq!(index.for_each_bucket(&guard, (0, 1), &mut |records| records.is_empty()), None);
    drop((guard, index));
    census.settle(0);
}

/// A key whose hash is always the same.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Same(u64);

impl Hash for Same {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        state.write_u64(0);
    }
}

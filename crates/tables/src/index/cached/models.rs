//! Models of caches (docs/memory-model.md, C1 and C2).
//!
//! A cache has one bucket here, of two slots. Models free their records last.

use super::*;
use crate::index::HashIndex;
use hotrow_sync::Arc;
use hotrow_sync::model::{Model, UnsafeCell};
use hotrow_sync::thread::spawn;

/// A record whose key is written without atomics when the record is made. A thread that reads the key of an unpublished record
/// races with that write.
struct ModelRecord(UnsafeCell<u64>);

// SAFETY: the key never changes.
unsafe impl Sync for ModelRecord {}

impl Keyed for ModelRecord {
    type Key = u64;
    fn key(&self) -> &u64 {
        // SAFETY: the key never changes, and models free their records last.
        self.0.with(|key| unsafe { &*key })
    }
}

type Index = CachedIndex<ModelRecord>;

fn index() -> Arc<Index> {
    Arc::new(CachedIndex::new(MainIndex::Hash(HashIndex::with_capacity(8)), 0))
}

fn insert(index: &Index, key: u64) -> Option<NonNull<ModelRecord>> {
    let record = NonNull::from(Box::leak(Box::new(ModelRecord(UnsafeCell::new(key)))));
    // SAFETY: models free their records last, and indexes after all threads have ended.
    match unsafe { index.insert(record, &Pin::new(), &mut |_| ()) } {
        Insertion::Inserted => Some(record),
        _ => {
            free(record);
            None
        }
    }
}

fn write_back(index: &Index, record: NonNull<ModelRecord>) {
    // SAFETY: as in `insert`.
    unsafe { index.write_back(record, &Pin::new()) };
}

/// Looks up the record of a key, and asserts that its content is visible.
fn get(index: &Index, key: u64) -> Result<NonNull<ModelRecord>, Observed> {
    match index.get(&key, &key, |other: &ModelRecord| *other.key() == key, Pin::new().guard()) {
        Lookup::Found(record) => Ok(record),
        Lookup::Absent(observed) => Err(observed),
    }
}

fn free(record: NonNull<ModelRecord>) {
    // SAFETY: made by `insert`; no other thread has it.
    drop(unsafe { Box::from_raw(record.as_ptr()) });
}

#[test]
fn a_lookup_finds_a_record_that_is_written_back() {
    Model::new().preemptions(2).check(|| {
        let index = index();
        let record = insert(&index, 1).unwrap();
        let other = index.clone();
        let other = spawn(move || write_back(&other, record));
        assert_eq!(get(&index, 1), Ok(record));
        other.join().unwrap();
        assert_eq!(get(&index, 1), Ok(record));
        assert!(index.cached_records(Pin::new().guard()).is_empty());
        drop(index);
        free(record);
    });
}

#[test]
fn absence_that_was_observed_is_noticed_to_have_ended_wherever_the_record_is() {
    Model::new().preemptions(2).check(|| {
        let index = index();
        let other = index.clone();
        let other = spawn(move || {
            let record = insert(&other, 1).unwrap();
            write_back(&other, record);
            record
        });
        let found = get(&index, 1);
        let record = other.join().unwrap();
        match found {
            Ok(found) => assert_eq!(found, record),
            // SAFETY: buckets are freed with the index.
            Err(observed) => assert!(!unsafe { observed.node.as_ref() }.unchanged(observed.version)),
        }
        drop(index);
        free(record);
    });
}

#[test]
fn of_two_insertions_of_one_key_one_succeeds() {
    Model::new().preemptions(2).check(|| {
        let index = index();
        let insert_and_write_back = |index: &Index| {
            let record = insert(index, 1)?;
            write_back(index, record);
            Some(record)
        };
        let other = index.clone();
        let other = spawn(move || insert_and_write_back(&other));
        let (mine, others) = (insert_and_write_back(&index), other.join().unwrap());
        assert!(mine.is_some() != others.is_some());
        drop(index);
        free(mine.or(others).unwrap());
    });
}

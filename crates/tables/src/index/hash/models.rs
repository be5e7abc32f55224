//! Models of buckets and of growth (docs/memory-model.md, S1 to S3, H1 to H3).
//!
//! A bucket has two slots here. Nothing is freed while a model's threads run, so the guards are unprotected;
//! crate `core` has the models of reclamation.

use super::*;
use hotrow_sync::Arc;
use hotrow_sync::atomic::AtomicBool;
use hotrow_sync::model::{Model, Part, UnsafeCell};
use hotrow_sync::thread::spawn;

/// A key with the same hash as every other key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Same(u64);

impl Hash for Same {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        state.write_u64(0);
    }
}

/// A record whose key is written without atomics when the record is made. A thread that reads the key of an
/// unpublished record races with that write.
struct ModelRecord(UnsafeCell<Same>);

// SAFETY: the key never changes.
unsafe impl Sync for ModelRecord {}

impl Keyed for ModelRecord {
    type Key = Same;
    fn key(&self) -> &Same {
        // SAFETY: the key never changes, and models free their records last.
        self.0.with(|key| unsafe { &*key })
    }
}

fn record(key: u64) -> NonNull<ModelRecord> {
    NonNull::from(Box::leak(Box::new(ModelRecord(UnsafeCell::new(Same(key))))))
}

type Index = HashIndex<ModelRecord>;

fn guard() -> &'static Guard {
    // SAFETY: no model makes the index retire anything while several threads are in it.
    unsafe { epoch::unprotected() }
}

/// An index of four buckets, of which one has these keys, and their records. (An insertion migrates two buckets
/// besides its own, so no model migrates the last bucket, which would retire the old array.)
fn index(keys: &[u64]) -> (Arc<Index>, Vec<NonNull<ModelRecord>>) {
    let index = Arc::new(Index::with_capacity(4 * AIM));
    let records: Vec<_> = keys.iter().map(|&key| record(key)).collect();
    assert!(records.iter().all(|&record| insert(&index, record)));
    (index, records)
}

/// Inserts a record. True if it is in the index.
fn insert(index: &Index, record: NonNull<ModelRecord>) -> bool {
    // SAFETY: models free their records last.
    match unsafe { index.insert(record, guard(), &mut |_| (), None) } {
        Insertion::Inserted => true,
        Insertion::Exists(existing) => {
            assert_ne!(existing, record);
            false
        }
        Insertion::Refused(_) => unreachable!("every change is allowed"),
    }
}

/// As [`get`], for models in which the index retires memory meanwhile.
fn get_pinned(index: &Index, key: u64) -> Result<NonNull<ModelRecord>, Observed> {
    match index.get_by(&Same(key), |other: &ModelRecord| *other.key() == Same(key), &epoch::pin()) {
        Lookup::Found(record) => Ok(record),
        Lookup::Absent(observed) => Err(observed),
    }
}

fn remove(index: &Index, record: NonNull<ModelRecord>) {
    assert!(index.remove(record, guard(), &mut |_| ()));
}

/// Looks up the record of a key, and asserts that its content is visible.
fn get(index: &Index, key: u64) -> Result<NonNull<ModelRecord>, Observed> {
    match index.get_by(&Same(key), |other: &ModelRecord| *other.key() == Same(key), guard()) {
        Lookup::Found(record) => {
            // SAFETY: models free their records last.
            assert_eq!(unsafe { record.as_ref() }.key(), &Same(key));
            Ok(record)
        }
        Lookup::Absent(observed) => Err(observed),
    }
}

fn is_unchanged(observed: Observed) -> bool {
    // SAFETY: buckets are freed with the index.
    unsafe { observed.node.as_ref() }.unchanged(observed.version)
}

fn free(index: Arc<Index>, records: impl IntoIterator<Item = NonNull<ModelRecord>>) {
    drop(index);
    for record in records {
        // SAFETY: made by `record`; the other threads have ended.
        drop(unsafe { Box::from_raw(record.as_ptr()) });
    }
}

#[test]
fn a_lookup_finds_a_record_with_its_content_or_notices_its_insertion() {
    Model::new()
        .preemptions(3)
        .needs(Part::LOADS | Part::ACQUIRE_FENCES)
        .needs(Part::STORES | Part::RELEASE_FENCES)
        .check(|| {
            let (index, _) = index(&[]);
            let other = index.clone();
            let other = spawn(move || {
                let record = record(1);
                assert!(insert(&other, record));
                record
            });
            let seen = get(&index, 1);
            let inserted = other.join().unwrap();
            match seen {
                Ok(found) => assert_eq!(found, inserted),
                Err(observed) => assert!(!is_unchanged(observed), "a phantom"),
            }
            assert_eq!(get(&index, 1), Ok(inserted));
            free(index, [inserted]);
        });
}

/// The last entry takes the place of the removed one.
#[test]
fn a_record_is_found_while_its_entry_moves() {
    Model::new().preemptions(3).needs(Part::ACQUIRE_FENCES).needs(Part::RELEASE_FENCES).check(|| {
        let (index, records) = index(&[1, 2]);
        let (other, leaving) = (index.clone(), records[0]);
        let other = spawn(move || remove(&other, leaving));
        assert_eq!(get(&index, 2), Ok(records[1]));
        other.join().unwrap();
        assert!(get(&index, 1).is_err());
        free(index, records);
    });
}

#[test]
fn of_two_that_insert_one_key_one_finds_the_record_of_the_other() {
    Model::new().preemptions(3).needs(Part::STORES | Part::RELEASE_FENCES).check(|| {
        let (index, _) = index(&[]);
        let records = [record(1), record(1)];
        let (other, theirs) = (index.clone(), records[0]);
        let other = spawn(move || insert(&other, theirs));
        let mine = insert(&index, records[1]);
        assert!(other.join().unwrap() != mine, "the key is in twice, or not at all");
        assert_eq!(get(&index, 1), Ok(records[usize::from(mine)]));
        free(index, records);
    });
}

#[test]
fn a_lookup_that_reaches_an_overflow_bucket_finds_it_filled() {
    Model::new().preemptions(3).needs(Part::LOADS).needs(Part::STORES).check(|| {
        let (index, mut records) = index(&[1, 2]);
        let other = index.clone();
        let other = spawn(move || {
            let record = record(3);
            assert!(insert(&other, record));
            record
        });
        let seen = get(&index, 3);
        let inserted = other.join().unwrap();
        match seen {
            Ok(found) => assert_eq!(found, inserted),
            Err(observed) => assert!(!is_unchanged(observed), "a phantom"),
        }
        records.push(inserted);
        free(index, records);
    });
}

#[test]
fn a_lookup_beside_an_insertion_and_a_removal_finds_what_stays() {
    Model::new().preemptions(2).needs(Part::ACQUIRE_FENCES).needs(Part::RELEASE_FENCES).check(|| {
        let (index, mut records) = index(&[1, 2]);
        let (remover, leaving) = (index.clone(), records[0]);
        let remover = spawn(move || remove(&remover, leaving));
        let inserter = index.clone();
        let inserter = spawn(move || {
            let record = record(3);
            assert!(insert(&inserter, record));
            record
        });
        assert_eq!(get(&index, 2), Ok(records[1]));
        remover.join().unwrap();
        records.push(inserter.join().unwrap());
        assert!(get(&index, 1).is_err());
        assert_eq!(get(&index, 3), Ok(records[2]));
        free(index, records);
    });
}

/// Both threads may migrate the bucket, and the lookup may have begun in the old array.
#[test]
fn a_record_is_found_while_its_bucket_is_migrated() {
    Model::new().preemptions(3).needs(Part::LOADS).needs(Part::STORES).check(|| {
        let (index, records) = index(&[1]);
        let other = index.clone();
        let other = spawn(move || {
            other.grow(other.current(guard()));
            get(&other, 1).unwrap()
        });
        assert_eq!(get(&index, 1), Ok(records[0]));
        assert_eq!(other.join().unwrap(), records[0]);
        free(index, records);
    });
}

/// A child looks ready as soon as it has an overflow bucket, but its latch keeps readers out until it has all its
/// entries. The overflow buckets of its parent are retired, so this model pins.
#[test]
fn a_record_is_found_while_a_chain_is_migrated() {
    Model::new().preemptions(1).needs(Part::STORES | Part::RELEASE_FENCES).check(|| {
        let (index, records) = index(&[1, 2, 3, 4]);
        index.grow(index.current(guard()));
        let (other, last) = (index.clone(), records[3]);
        let other = spawn(move || assert_eq!(get_pinned(&other, 4), Ok(last)));
        assert_eq!(get_pinned(&index, 4), Ok(last));
        other.join().unwrap();
        free(index, records);
    });
}

#[test]
fn an_absence_observed_in_the_old_array_ends_with_an_insertion_into_the_new_one() {
    Model::new()
        .preemptions(3)
        .needs(Part::LOADS | Part::ACQUIRE_FENCES)
        .needs(Part::STORES | Part::RELEASE_FENCES)
        .check(|| {
            let (index, _) = index(&[]);
            let shared = Arc::new((index, AtomicBool::new(false)));
            let other = shared.clone();
            let other = spawn(move || {
                let (index, is_inserted) = &*other;
                index.grow(index.current(guard()));
                let record = record(1);
                assert!(insert(index, record));
                is_inserted.store(true, Ordering::Release);
                record
            });
            let (index, is_inserted) = &*shared;
            if let Err(observed) = get(index, 1)
                && is_inserted.load(Ordering::Acquire)
            {
                assert!(!is_unchanged(observed), "a phantom");
            }
            free(shared.0.clone(), [other.join().unwrap()]);
        });
}

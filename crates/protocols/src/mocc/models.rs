//! Models of the version word with a shared lock (docs/memory-model.md, M1, M2).

use super::*;
use crate::stable::StableWord;
use crate::stable::models::stable_reads_are_whole;
use hotrow_sync::Arc;
use hotrow_sync::atomic::AtomicU64;
use hotrow_sync::model::{Model, Part, UnsafeCell};
use hotrow_sync::thread::spawn;

/// A segment of two words, relaxed like those of an inline cell.
#[derive(Default)]
struct Segment {
    word: HeatedWord,
    value: [AtomicU64; 2],
}

impl Segment {
    fn write(&self, value: u64) -> bool {
        let locked = self.word.lock(None, false).is_ok();
        if locked {
            self.value.iter().for_each(|word| word.store(value, Ordering::Relaxed));
            self.word.unlock_changed();
        }
        locked
    }
}

#[test]
fn a_stable_read_is_whole_and_is_the_value_of_its_version() {
    stable_reads_are_whole::<HeatedWord>(
        |word, store| {
            assert!(word.lock(None, false).is_ok());
            store();
            word.unlock_changed();
        },
        |word, load| {
            word.stable(load).map(|(version, value)| (u64::from(version != HeatedVersion::default()), value))
        },
    );
}

#[test]
fn holders_of_the_readers_lock_and_of_the_writers_exclude_one_another() {
    Model::new().preemptions(3).needs(Part::STORES).needs(Part::UPDATES).check(|| {
        // Not atomic: only the lock keeps them from racing for it.
        let shared = Arc::new((HeatedWord::default(), UnsafeCell::new(0u64)));
        let readers = [0, 1].map(|_| {
            let shared = shared.clone();
            spawn(move || {
                let (word, value) = &*shared;
                if word.lock_shared().is_ok() {
                    // SAFETY: a reader's lock is held.
                    let seen = value.with(|value| unsafe { *value });
                    assert!(seen < 2);
                    word.unlock_shared();
                }
            })
        });
        let (word, value) = &*shared;
        if word.lock(None, false).is_ok() {
            // SAFETY: the writer's lock is held.
            value.with_mut(|value| unsafe { *value += 1 });
            word.unlock_changed();
        }
        readers.into_iter().for_each(|reader| reader.join().unwrap());
    });
}

#[test]
fn of_two_readers_that_want_to_write_one_at_most_does() {
    Model::new().needs(Part::LOADS | Part::UPDATES).check(|| {
        let shared = Arc::new((HeatedWord::default(), UnsafeCell::new(0u64)));
        let add = |(word, value): &(HeatedWord, UnsafeCell<u64>)| {
            let Ok(version) = word.lock_shared() else { return 0 };
            // SAFETY: a reader's lock is held.
            let seen = value.with(|value| unsafe { *value });
            if word.lock(Some(version), true).is_err() {
                word.unlock_shared();
                return 0;
            }
            // SAFETY: the writer's lock is held.
            value.with_mut(|value| unsafe { *value = seen + 1 });
            word.unlock_changed();
            1
        };
        let other = shared.clone();
        let other = spawn(move || add(&other));
        let added = add(&shared) + other.join().unwrap();
        // SAFETY: the other thread has ended.
        assert_eq!(shared.1.with(|value| unsafe { *value }), added);
    });
}

/// Write skew: each has read what the other writes, without a lock.
#[test]
fn of_two_commits_that_each_check_what_the_other_locks_one_at_least_fails() {
    Model::totally_ordered().needs(Part::TOTAL_ORDER).check(|| {
        let segments = Arc::new([HeatedWord::default(), HeatedWord::default()]);
        let commit = |segments: &[HeatedWord; 2], mine: usize| {
            segments[mine].lock(None, false).unwrap();
            let passes = segments[1 - mine].still_at(HeatedVersion::default());
            if passes {
                segments[mine].unlock_changed();
            } else {
                segments[mine].unlock();
            }
            passes
        };
        let other = segments.clone();
        let other = spawn(move || commit(&other, 0));
        let mine = commit(&segments, 1);
        assert!(!(other.join().unwrap() && mine), "each was before the other");
    });
}

/// The same, but one of the two has read under a lock, which it holds until it has written.
#[test]
fn a_check_finds_the_write_of_an_attempt_that_read_under_a_lock() {
    Model::new().needs(Part::UPDATES).check(|| {
        let segments = Arc::new([Segment::default(), Segment::default()]);
        let holder = segments.clone();
        let holder = spawn(move || {
            let [read, written] = &*holder;
            let Ok(version) = read.word.lock_shared() else { return false };
            let wrote = written.write(1);
            read.word.unlock_shared();
            wrote && version == HeatedVersion::default()
        });
        let [written, read] = &*segments;
        let passes = written.word.lock(None, false).is_ok_and(|_| {
            let passes = read.word.still_at(HeatedVersion::default());
            if passes {
                written.word.unlock_changed();
            } else {
                written.word.unlock();
            }
            passes
        });
        assert!(!(holder.join().unwrap() && passes), "each was before the other");
    });
}

//! Models of the version word (docs/memory-model.md, V1 to V3, K1).

use super::*;
use crate::stable::models::stable_reads_are_whole;
use hotrow_core::StructureVersion;
use hotrow_sync::Arc;
use hotrow_sync::model::{Model, Part, UnsafeCell};
use hotrow_sync::thread::spawn;

/// Makes the version of a commit with this number. The choice of worker does not matter here.
pub(crate) fn version(number: u64) -> Version {
    Version(number << (WORKER_BITS + 1))
}

/// A segment of two words, relaxed like those of an inline cell.
#[derive(Default)]
struct Segment {
    word: VersionWord,
    value: [AtomicU64; 2],
}

impl Segment {
    fn read(&self) -> Result<(Version, [u64; 2]), Reason> {
        self.word.stable(|| self.value.each_ref().map(|word| word.load(Ordering::Relaxed)))
    }

    fn install(&self, number: u64) {
        self.value.iter().for_each(|word| word.store(number, Ordering::Relaxed));
        self.word.unlock_as(version(number));
    }

    /// The check of a read segment in phase 2.
    fn still_at(&self, mark: Version) -> bool {
        self.word.load() == mark
    }
}

#[test]
fn a_stable_read_is_whole_and_is_the_value_of_its_version() {
    stable_reads_are_whole::<VersionWord>(
        |word, store| {
            word.lock(None).unwrap();
            store();
            word.unlock_as(version(1));
        },
        |word, load| word.stable(load).map(|(version, value)| (version.number(), value)),
    );
}

#[test]
fn a_stable_read_beside_two_writers_is_the_value_of_its_version() {
    Model::new().preemptions(3).needs(Part::ACQUIRE_FENCES).needs(Part::RELEASE_FENCES).check(|| {
        let segment = Arc::new(Segment::default());
        let writers = [1, 2].map(|number| {
            let segment = segment.clone();
            spawn(move || {
                if segment.word.lock(None).is_ok() {
                    segment.install(number);
                }
            })
        });
        if let Ok((version, value)) = segment.read() {
            assert_eq!(value, [version.number(); 2]);
        }
        writers.into_iter().for_each(|writer| writer.join().unwrap());
    });
}

#[test]
fn lock_holders_exclude_one_another_and_see_what_the_last_one_installed() {
    Model::new().needs(Part::STORES).needs(Part::LOADS | Part::UPDATES).check(|| {
        // Not atomic: only the lock keeps two holders from racing for it.
        let shared = Arc::new((VersionWord::default(), UnsafeCell::new(0)));
        let add = |(word, value): &(VersionWord, UnsafeCell<u64>)| {
            let Ok(below) = word.lock(None) else { return 0 };
            assert_eq!(word.held(), below);
            // SAFETY: the lock is held.
            value.with_mut(|value| unsafe { *value += 1 });
            word.unlock_as(version(below.number() + 1));
            1
        };
        let other = shared.clone();
        let other = spawn(move || add(&other));
        let added = add(&shared) + other.join().unwrap();
        assert_eq!(shared.0.load(), version(added));
        // SAFETY: the other thread has ended.
        assert_eq!(shared.1.with(|value| unsafe { *value }), added);
    });
}

/// Write skew: each has read what the other writes.
#[test]
fn of_two_commits_that_each_check_what_the_other_locks_one_at_least_fails() {
    Model::totally_ordered().needs(Part::TOTAL_ORDER).check(|| {
        let segments = Arc::new([Segment::default(), Segment::default()]);
        let commit = |segments: &[Segment; 2], mine: usize| {
            segments[mine].word.lock(None).unwrap();
            let passes = segments[1 - mine].still_at(version(0));
            if passes {
                segments[mine].install(1);
            } else {
                segments[mine].word.unlock_as(segments[mine].word.held());
            }
            passes
        };
        let other = segments.clone();
        let other = spawn(move || commit(&other, 0));
        let mine = commit(&segments, 1);
        assert!(!(other.join().unwrap() && mine), "each was before the other");
    });
}

/// Two commits have nothing in common. Each of two attempts that only read has read one commit's new value and the
/// value before the other commit, crosswise.
#[test]
fn two_readers_agree_on_the_order_of_two_independent_commits() {
    Model::totally_ordered().preemptions(3).needs(Part::TOTAL_ORDER).check(|| {
        let words = Arc::new([VersionWord::default(), VersionWord::default()]);
        let writers = [0, 1].map(|at| {
            let words = words.clone();
            spawn(move || words[at].unlock_as(words[at].lock(None).map(|_| version(1)).unwrap()))
        });
        // True if the reader saw the commit on `new` and then found the other word as it was before.
        let crosswise = |words: &[VersionWord; 2], new: usize| {
            words[new].load() == version(1) && words[1 - new].load() == version(0)
        };
        let other = words.clone();
        let other = spawn(move || crosswise(&other, 0));
        let mine = crosswise(&words, 1);
        assert!(!(other.join().unwrap() && mine), "each commit was before the other");
        writers.into_iter().for_each(|writer| writer.join().unwrap());
    });
}

/// The phantom argument for a reader: the key goes into the node first. The record's row and the attempt's other
/// writes are installed later.
#[test]
fn a_reader_of_a_keys_absence_and_of_its_inserters_write_fails_the_check() {
    Model::new().needs(Part::LOADS | Part::ACQUIRE_FENCES).needs(Part::STORES | Part::RELEASE_FENCES).check(
        || {
            let shared = Arc::new((StructureVersion::new(), Segment::default()));
            let inserter = shared.clone();
            let inserter = spawn(move || {
                let (node, beside) = &*inserter;
                node.lock().unwrap();
                node.unlock_changed();
                beside.word.lock(None).unwrap();
                beside.install(1);
            });
            let (node, beside) = &*shared;
            let observed = node.stable().unwrap();
            if let Ok((mark, value)) = beside.read()
                && beside.still_at(mark)
                && node.unchanged(observed)
            {
                assert!(
                    observed != 0 || value == [0; 2],
                    "one attempt's insertion is missing, its write is not"
                );
            }
            inserter.join().unwrap();
        },
    );
}

/// The phantom argument for two writers: one inserts a key and then checks a segment, the other writes the
/// segment and then checks that the key is absent.
#[test]
fn of_an_insert_and_a_write_that_each_check_the_other_one_at_least_fails() {
    Model::totally_ordered().needs(Part::TOTAL_ORDER).check(|| {
        let shared = Arc::new((StructureVersion::new(), VersionWord::default()));
        let inserter = shared.clone();
        let inserter = spawn(move || {
            let (node, word) = &*inserter;
            node.lock().unwrap();
            node.unlock_changed();
            word.load() == version(0)
        });
        let (node, word) = &*shared;
        word.lock(None).unwrap();
        let written = node.unchanged(0);
        word.unlock_as(version(1));
        assert!(!(inserter.join().unwrap() && written), "each was before the other");
    });
}

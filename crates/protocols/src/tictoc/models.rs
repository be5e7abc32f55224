//! Models of the word with timestamps and of those of absences (docs/memory-model.md, D1 to D3).

use super::absences::{AbsenceUse, Absences};
use super::*;
use crate::stable::models::stable_reads_are_whole;
use hotrow_core::StructureVersion;
use hotrow_sync::Arc;
use hotrow_sync::atomic::{AtomicU64, Ordering};
use hotrow_sync::model::{Model, Part, UnsafeCell, step_is_left_out};
use hotrow_sync::thread::spawn;

/// A segment of two words, relaxed like those of an inline cell.
#[derive(Default)]
struct Segment {
    word: TimestampWord,
    value: [AtomicU64; 2],
}

impl Segment {
    fn read(&self) -> Result<(Timestamps, [u64; 2]), Reason> {
        self.word.stable(|| self.value.each_ref().map(|word| word.load(Ordering::Relaxed)))
    }

    fn install(&self, commit_ts: u64) {
        self.value.iter().for_each(|word| word.store(commit_ts, Ordering::Relaxed));
        self.word.unlock_as(Timestamps::written_at(commit_ts));
    }
}

#[test]
fn a_stable_read_is_whole_and_is_the_value_of_its_version() {
    stable_reads_are_whole::<TimestampWord>(
        |word, store| {
            word.lock(None).unwrap();
            store();
            word.unlock_as(Timestamps::written_at(1));
        },
        |word, load| word.stable(load).map(|(version, value)| (version.write(), value)),
    );
}

#[test]
fn a_version_that_another_has_extended_is_read_whole() {
    Model::new().preemptions(3).needs(Part::LOADS).needs(Part::STORES).check(|| {
        let segment = Arc::new(Segment::default());
        let writer = segment.clone();
        let writer = spawn(move || {
            writer.word.lock(None).unwrap();
            writer.install(1);
        });
        let extender = segment.clone();
        let extender =
            spawn(move || extender.word.extend(Timestamps::written_at(1), 3, &LateReads::new()).is_ok());
        if let Ok((version, value)) = segment.read() {
            assert_eq!(value, [version.write(); 2]);
        }
        extender.join().unwrap();
        writer.join().unwrap();
    });
}

#[test]
fn lock_holders_exclude_one_another_and_see_what_the_last_one_installed() {
    Model::new().needs(Part::STORES).needs(Part::LOADS | Part::UPDATES).check(|| {
        // Not atomic: only the lock keeps two holders from racing for it.
        let shared = Arc::new((TimestampWord::default(), UnsafeCell::new(0)));
        let add = |(word, value): &(TimestampWord, UnsafeCell<u64>)| {
            let Ok(below) = word.lock(None) else { return 0 };
            // SAFETY: the lock is held.
            value.with_mut(|value| unsafe { *value += 1 });
            word.unlock_as(Timestamps::written_at(below.read() + 1));
            1
        };
        let other = shared.clone();
        let other = spawn(move || add(&other));
        let added = add(&shared) + other.join().unwrap();
        // SAFETY: the other thread has ended.
        assert_eq!(shared.1.with(|value| unsafe { *value }), added);
    });
}

/// The step under test takes the write's timestamp from the word below the lock, not from one loaded earlier.
#[test]
fn a_write_is_after_all_timestamps_at_which_the_version_before_it_was_read() {
    Model::new().needs(Part::STEP).check(|| {
        let segment = Arc::new(Segment::default());
        let writer = segment.clone();
        let writer = spawn(move || {
            let (seen, ()) = writer.word.stable(|| ()).unwrap();
            // Without turns to spin, an extension is enough to make the lock fail.
            let below = writer.word.lock(None).ok()?;
            let commit_ts = if step_is_left_out() { seen.read() } else { below.read() } + 1;
            writer.install(commit_ts);
            Some(commit_ts)
        });
        let read = segment.read();
        let extended = read.is_ok_and(|(version, value)| {
            assert_eq!(value, [version.write(); 2]);
            version.write() == 0 && segment.word.extend(version, 5, &LateReads::new()).is_ok()
        });
        let written = writer.join().unwrap();
        assert!(!extended || written.is_none_or(|written| written > 5), "read at 5, written at {written:?}");
    });
}

/// Runs two late readers of a version beside its next writer; there are two, because one may find that the other has noted its read.
fn late_reads_come_before_the_next_write(model: Model, late_before: bool) {
    model.check(move || {
        let shared = Arc::new((TimestampWord::default(), LateReads::new()));
        let version = Timestamps::default();
        if late_before {
            shared.0.extend(version, 80, &shared.1).unwrap();
        }
        let read = move |(word, late): &(TimestampWord, LateReads)| word.extend(version, 90, late).is_ok();
        let other = shared.clone();
        let other = spawn(move || read(&other));
        let writer = shared.clone();
        let writer = spawn(move || {
            let (word, late) = &*writer;
            let below = word.lock(None).ok()?;
            let commit_ts = late.last_read(word, below) + 1;
            word.unlock_as(Timestamps::written_at(commit_ts));
            Some(commit_ts)
        });
        let mine = read(&shared);
        let has_read = other.join().unwrap() | mine;
        let written = writer.join().unwrap();
        assert!(
            !has_read || written.is_none_or(|written| written > 90),
            "read at 90, written at {written:?}"
        );
    });
}

#[test]
fn a_write_is_after_a_late_read_that_has_set_the_distance() {
    late_reads_come_before_the_next_write(Model::new().preemptions(3).needs(Part::UPDATES), false);
}

#[test]
fn a_write_is_after_a_late_read_of_a_version_read_late_before() {
    let model = Model::totally_ordered().preemptions(3).needs(Part::TOTAL_ORDER);
    late_reads_come_before_the_next_write(model, true);
}

/// There are two observers, because one may find that the other has raised the timestamp.
#[test]
fn an_insertion_is_not_before_those_that_have_observed_the_absence() {
    Model::totally_ordered().preemptions(3).needs(Part::TOTAL_ORDER).check(|| {
        let shared = Arc::new((Absences::new(), StructureVersion::new()));
        let observe = |(absences, node): &(Absences, StructureVersion)| {
            absences.note(AbsenceUse::OBSERVES, 5);
            node.unchanged(0)
        };
        let other = shared.clone();
        let other = spawn(move || observe(&other));
        let inserter = shared.clone();
        let inserter = spawn(move || {
            let (absences, node) = &*inserter;
            node.lock().unwrap();
            node.unlock_changed();
            absences.earliest(AbsenceUse::INSERTS)
        });
        let mine = observe(&shared);
        let absent = other.join().unwrap() | mine;
        let commit_ts = inserter.join().unwrap();
        assert!(!absent || commit_ts >= 5, "absent at 5, inserted at {commit_ts}");
    });
}

/// A deletion: the timestamp is raised first, then the record is taken out.
#[test]
fn a_lookup_that_finds_a_key_gone_is_not_before_its_deletion() {
    Model::new().needs(Part::LOADS | Part::ACQUIRE_FENCES).needs(Part::STORES | Part::RELEASE_FENCES).check(
        || {
            let shared = Arc::new((Absences::new(), StructureVersion::new()));
            let deleter = shared.clone();
            let deleter = spawn(move || {
                let (absences, node) = &*deleter;
                absences.note(AbsenceUse::DELETES, 5);
                node.lock().unwrap();
                node.unlock_changed();
            });
            let (absences, node) = &*shared;
            if node.stable().unwrap() != 0 {
                assert!(absences.earliest(AbsenceUse::OBSERVES) >= 5, "gone before it was deleted");
            }
            deleter.join().unwrap();
        },
    );
}

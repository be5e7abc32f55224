//! Models of the points and of the versions (docs/memory-model.md, X1 to X4).

use super::*;
use crate::memory::pin::Pin;
use crate::memory::versions::{EntryHead, Found, SegmentId, note_epoch};
use hotrow_sync::model::{Model, Part, step_is_left_out};
use hotrow_sync::thread::spawn;

#[test]
fn a_snapshot_begins_when_all_commits_with_smaller_stamps_have_installed() {
    Model::new().preemptions(2).needs(Part::TOTAL_ORDER).needs(Part::STEP).check(|| {
        let snapshots = Snapshots::new(false, None);
        let value = Arc::new(AtomicU64::new(0));
        let (installed, mut announcement) = (value.clone(), Announcement::new(&snapshots));
        let committer = spawn(move || {
            let stamp = announcement.begin().expect("in a model, commits are always stamped");
            if step_is_left_out() {
                announcement.end();
            }
            installed.store(1, Ordering::Relaxed);
            announcement.end();
            stamp
        });
        let opened = snapshots.open_strict();
        let seen = value.load(Ordering::Relaxed);
        let stamp = committer.join().unwrap();
        assert!(stamp >= opened.number || seen == 1);
    });
}

const SEGMENT: SegmentId = SegmentId { address: 64, object: 1 };
const OTHER: SegmentId = SegmentId { address: 64, object: 2 };

#[test]
fn a_reader_that_loads_a_new_value_finds_the_one_before() {
    let model = Model::new().preemptions(2);
    model.needs(Part::RELEASE_FENCES).needs(Part::ACQUIRE_FENCES).needs(Part::STEP).check(|| {
        let versions = Arc::new(Versions::new());
        // Makes the lists, because models do not follow the `OnceLock` that holds them.
        versions.keep(OTHER, (0, 5), 0, 0_u64, 0);
        let value = Arc::new(AtomicU64::new(0));
        let (kept, installed) = (versions.clone(), value.clone());
        let committer = spawn(move || {
            if !step_is_left_out() {
                kept.keep(SEGMENT, (0, 5), 0, 0_u64, 0);
            }
            // As in `KeptWrites::keep`.
            fence(Ordering::Release);
            installed.store(1, Ordering::Relaxed);
        });
        let pin = Pin::new();
        let loaded = value.load(Ordering::Relaxed);
        assert_eq!(value_of(versions.look_up(None, SEGMENT, 5, &pin), loaded), Some(0));
        drop(pin);
        committer.join().unwrap();
    });
}

/// The value that a reader has, who has loaded one before.
fn value_of(found: Found, loaded: u64) -> Option<u64> {
    match found {
        Found::InSegment => Some(loaded),
        // SAFETY: only such values are kept here, and the callers' pins live longer than the references.
        Found::Version(entry) => Some(*unsafe { EntryHead::value::<u64>(entry) }),
        Found::Nowhere => None,
    }
}

#[test]
fn a_reader_that_sees_the_epoch_of_a_commit_or_its_value_finds_the_one_before() {
    let model = Model::new().preemptions(2);
    model.needs(Part::RELEASE_FENCES).needs(Part::ACQUIRE_FENCES).needs(Part::STEP).check(|| {
        let versions = Arc::new(Versions::new());
        versions.keep(OTHER, (0, 5), 0, 0_u64, 0);
        let (value, own) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(2)));
        let (kept, installed, noted) = (versions.clone(), value.clone(), own.clone());
        let committer = spawn(move || {
            if !step_is_left_out() {
                kept.keep(SEGMENT, (2, 5), 0, 0_u64, 0);
            }
            note_epoch(&noted, 5);
            // As in `KeptWrites::keep`.
            fence(Ordering::Release);
            installed.store(1, Ordering::Relaxed);
        });
        let pin = Pin::new();
        let loaded = value.load(Ordering::Relaxed);
        assert_eq!(value_of(versions.look_up(Some(&own), SEGMENT, 5, &pin), loaded), Some(0));
        drop(pin);
        committer.join().unwrap();
    });
}

#[test]
fn a_point_that_is_hidden_for_a_moment_keeps_its_versions() {
    Model::new().preemptions(2).check(|| {
        let snapshots = Snapshots::new(false, None);
        let number = snapshots.open_strict().number;
        // The next point waits for a commit.
        let mut commit = Announcement::new(&snapshots);
        commit.begin();
        snapshots.begin_point(&mut lock(&snapshots.pending));
        let (stopping, sweeping) = (snapshots.clone(), snapshots.clone());
        let stopper = spawn(move || stopping.stop_keeping(false));
        let sweeper = spawn(move || sweeping.open_numbers().may_need(0, number));
        // As in `open`: the first look is made before the point is hidden, and the next one after it is shown again.
        let early = snapshots.claim(number);
        stopper.join().unwrap();
        drop(early);
        let is_open = snapshots.ready.load(Ordering::SeqCst) == number;
        assert!(sweeper.join().unwrap() || !is_open, "a version pruned too early");
        commit.end();
    });
}

#[test]
fn a_reader_whose_slot_was_missed_sees_that_its_snapshot_is_no_longer_the_newest() {
    Model::new().preemptions(2).needs(Part::TOTAL_ORDER).needs(Part::STEP).check(|| {
        let snapshots = Snapshots::new(false, None);
        let number = snapshots.open_strict().number;
        let other = snapshots.clone();
        let sweeper = spawn(move || {
            drop(other.open_strict());
            other.open_numbers().may_need(0, number)
        });
        // As in `open`.
        let opened = snapshots.claim(number);
        fence(Ordering::SeqCst);
        let is_newest = step_is_left_out() || snapshots.ready.load(Ordering::SeqCst) == number;
        let is_kept = sweeper.join().unwrap();
        assert!(is_kept || !is_newest, "a version pruned too early");
        drop(opened);
    });
}

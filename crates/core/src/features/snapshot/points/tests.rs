use super::*;
use crate::memory::pin::Pin;
use crate::memory::versions::{Chunks, EntryHead, SegmentId};
use hotrow_sync::atomic::AtomicUsize;

struct Counted(u64, Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.1.fetch_add(1, Ordering::Relaxed);
    }
}

const SEGMENT: SegmentId = SegmentId { address: 64, object: 1 };

/// A commit that replaces `value`.
fn commit(announcement: &mut Announcement, value: Counted) {
    let number = announcement.begin().expect("commits are stamped");
    let versions = &announcement.snapshots().versions;
    let superseded = number.min(announcement.snapshots().newest());
    let since = versions.latest(SEGMENT, &Pin::new());
    if since < superseded {
        versions.keep(SEGMENT, (since, superseded), 0, value, 0);
    }
    announcement.end();
}

fn value_at(snapshots: &Snapshots, number: u64) -> Option<u64> {
    let pin = Pin::new();
    // SAFETY: only such values are kept here; the pin lives longer than the reference.
    snapshots
        .versions
        .find(SEGMENT, number, &pin)
        .map(|entry| unsafe { EntryHead::value::<Counted>(entry) }.0)
}

#[test]
fn each_open_snapshot_finds_its_version_and_versions_that_nobody_needs_are_freed() {
    let snapshots = Snapshots::new(false, None);
    let dropped = Arc::new(AtomicUsize::new(0));
    let counted = |value| Counted(value, dropped.clone());
    let mut worker = Announcement::new(&snapshots);
    let mut open = Vec::new();
    for value in 0..10 {
        open.push((value, snapshots.open_strict()));
        commit(&mut worker, counted(value));
        // Nobody has seen this one.
        commit(&mut worker, counted(100 + value));
    }
    for (value, opened) in &open {
        assert_eq!(value_at(&snapshots, opened.number), Some(*value));
    }
    assert_eq!(snapshots.versions.size().0, 10);
    // Versions between the oldest and the newest snapshot go, too.
    let (first, last) = (open.remove(0), open.pop().expect("ten were opened"));
    drop(open);
    snapshots.sweep();
    assert_eq!(snapshots.versions.size().0, 2);
    assert_eq!(value_at(&snapshots, first.1.number), Some(0));
    assert_eq!(value_at(&snapshots, last.1.number), Some(9));
    assert!(!snapshots.stop_keeping(false), "one is open");
    drop((first, last));
    assert!(snapshots.stop_keeping(false));
    assert_eq!(snapshots.versions.size(), (0, 0));
    assert_eq!(snapshots.newest(), 0);
    assert!(snapshots.is_stamping(), "the next snapshot is near");
    snapshots.last_use.forget();
    thread::sleep(LINGER);
    snapshots.rest();
    assert!(!snapshots.is_stamping());
    while dropped.load(Ordering::Relaxed) < 20 {
        crate::memory::pin::collect_all();
    }
}

#[test]
fn a_point_is_ready_only_when_the_commits_before_it_have_ended() {
    let snapshots = Snapshots::new(false, None);
    let mut worker = Announcement::new(&snapshots);
    let first = snapshots.open_strict().number;
    assert_eq!(worker.begin(), Some(first));
    {
        let mut pending = lock(&snapshots.pending);
        snapshots.begin_point(&mut pending);
        assert!(!snapshots.try_pending(&mut pending), "a commit is under way");
    }
    // A snapshot that must not wait is the old one, and one that is strict waits.
    assert_eq!(snapshots.open().number, first);
    thread::scope(|scope| {
        let strict = scope.spawn(|| snapshots.open_strict().number);
        worker.end();
        assert!(strict.join().expect("it ends") > first);
    });
}

#[test]
fn without_snapshots_commits_draw_no_stamps() {
    let snapshots = Snapshots::new(false, None);
    let mut worker = Announcement::new(&snapshots);
    assert_eq!(worker.begin(), None);
    worker.end();
    let opened = snapshots.open();
    assert_eq!(worker.begin(), Some(opened.number));
    worker.end();
    drop(opened);
    assert_eq!(snapshots.versions.size().0, 0);
}

#[test]
fn a_sweep_that_began_before_a_snapshot_takes_none_of_its_versions() {
    let snapshots = Snapshots::new(false, None);
    drop(snapshots.open_strict());
    assert!(snapshots.stop_keeping(false));
    let before = snapshots.open_numbers();
    let opened = snapshots.open_strict();
    let mut worker = Announcement::new(&snapshots);
    commit(&mut worker, Counted(7, Arc::default()));
    snapshots.versions.sweep(&before);
    assert_eq!(value_at(&snapshots, opened.number), Some(7));
}

#[test]
fn a_worker_finds_its_versions_again_that_are_needed_no_more() {
    let snapshots = Snapshots::new(false, None);
    let opened = snapshots.open_strict();
    let versions = snapshots.versions();
    let (mut chunks, mut places) = (Chunks::default(), VecDeque::new());
    let mut needed = Vec::new();
    for address in 1..=6 {
        let segment = SegmentId { address: 64 * address, object: 1 };
        // Versions that came after the snapshot, and went, are needed by nobody.
        let since = if address % 2 == 0 { opened.number } else { 0 };
        let stamps = (since, opened.number);
        let entry = Versions::make(Some((&mut chunks, &Pin::new())), segment, stamps, 0, address as u64, 0);
        let level = versions.make_room(1);
        versions.put(level, entry);
        places.push_back(Versions::place_of(level, entry));
        needed.extend((since == 0).then_some(segment));
    }
    versions.sweep_places(&mut places, 6, &snapshots.open_numbers());
    assert_eq!((versions.size().0, places.len()), (3, 3));
    assert!(needed.iter().all(|segment| versions.find(*segment, opened.number, &Pin::new()).is_some()));
    drop(opened);
    let _later = snapshots.open_strict();
    versions.sweep_places(&mut places, 2, &snapshots.open_numbers());
    assert_eq!((versions.size().0, places.len()), (1, 1), "two at a time");
    versions.sweep_places(&mut places, 2, &snapshots.open_numbers());
    assert_eq!((versions.size().0, places.len()), (0, 0));
}

#[test]
fn a_segment_of_another_object_at_the_same_address_has_other_versions() {
    let snapshots = Snapshots::new(false, None);
    let opened = snapshots.open_strict();
    let other = SegmentId { object: 2, ..SEGMENT };
    snapshots.versions.keep(SEGMENT, (0, opened.number), 0, 7_u64, 0);
    assert!(snapshots.versions.find(other, opened.number, &Pin::new()).is_none());
    assert!(snapshots.versions.find(SEGMENT, opened.number, &Pin::new()).is_some());
}

#[test]
fn a_late_change_is_made_to_the_versions_of_all_points_that_see_it() {
    let snapshots = Snapshots::new(false, None);
    let (versions, pin) = (snapshots.versions(), Pin::new());
    // Commits with the stamps 5 and 8 have replaced 10 and 20.
    versions.keep(SEGMENT, (0, 5), 0, 10_u64, 0);
    versions.keep(SEGMENT, (5, 8), 0, 20_u64, 0);
    let add = |stamp: u64, more: u64| {
        for entry in versions.superseded_after(SEGMENT, stamp, &pin) {
            // SAFETY: only such values are kept here; the pin lives longer than the reference.
            let value = *unsafe { EntryHead::value::<u64>(entry) };
            versions.split(entry, stamp, value + more, 0);
        }
    };
    let values = || {
        // SAFETY: as above.
        let value = |entry| *unsafe { EntryHead::value::<u64>(entry) };
        (1..=9).map(|number| versions.find(SEGMENT, number, &pin).map_or(0, value)).collect::<Vec<_>>()
    };
    add(3, 1);
    assert_eq!(values(), [10, 10, 10, 11, 11, 21, 21, 21, 0]);
    add(3, 1);
    assert_eq!(values(), [10, 10, 10, 12, 12, 22, 22, 22, 0]);
    add(6, 100);
    assert_eq!(values(), [10, 10, 10, 12, 12, 22, 122, 122, 0]);
    add(9, 1_000);
    assert_eq!(values()[8], 0);
}

#[test]
fn readers_that_come_while_others_wait_have_points_of_their_own() {
    let snapshots = Snapshots::new(false, None);
    let mut worker = Announcement::new(&snapshots);
    let first = snapshots.open_strict().number;
    assert_eq!(worker.begin(), Some(first));
    thread::scope(|scope| {
        let strict = || scope.spawn(|| snapshots.open_strict().number);
        let readers: Vec<_> = (0..4).map(|_| strict()).collect();
        // As many points as may be pending are begun, although none is ready.
        while lock(&snapshots.pending).len() < PENDING_MAX {
            thread::yield_now();
        }
        assert_eq!(snapshots.ready.load(Ordering::SeqCst), first);
        assert!(!snapshots.stop_keeping(false), "somebody waits");
        // The facts of the point that is ready are still there.
        assert!(snapshots.age() < Duration::from_secs(60) && snapshots.open().number == first);
        worker.end();
        for reader in readers {
            assert!(reader.join().expect("it ends") > first);
        }
    });
    assert!(lock(&snapshots.pending).is_empty());
    assert_eq!(snapshots.waiting.load(Ordering::Relaxed), 0);
}

#[test]
fn no_acknowledged_points_are_made_while_all_go_on_early() {
    let snapshots = Snapshots::new(true, Some(true));
    // A batch of the log, whose commits somebody is told of before it is on the device, or not. True if a snapshot can be opened then.
    let batch = |is_told_early: bool| {
        let number = snapshots.advance();
        if is_told_early {
            snapshots.tell(number);
        }
        snapshots.acknowledge(number);
        snapshots.open_acknowledged().is_some()
    };
    assert!(snapshots.open_acknowledged().is_none(), "there is none before the first batch");
    assert!(batch(false));
    for _ in 0..3 {
        // Some in a row that are told early change nothing for the next.
        assert!(!batch(true) && !batch(true) && batch(false));
    }
    while snapshots.acknowledged.are_in_use() {
        assert!(!batch(true));
    }
    assert!(!batch(false), "a pause");
    thread::sleep(LINGER);
    assert!(!batch(false) && batch(false), "who asks is served again");
    thread::sleep(LINGER);
    assert!(!snapshots.acknowledged.are_in_use(), "nobody has asked");
}

#[test]
fn only_structures_that_keep_something_are_swept_when_a_reader_ends() {
    struct Structure(AtomicUsize);
    impl Sweep for Structure {
        fn sweep(&self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    let snapshots = Snapshots::new(false, None);
    let structure = Arc::new(Structure(AtomicUsize::new(0)));
    let weak: Weak<dyn Sweep> = Arc::<Structure>::downgrade(&structure);
    let swept_by_a_reader = || {
        let before = structure.0.load(Ordering::Relaxed);
        let reader = snapshots.open_strict();
        drop(reader.slot);
        snapshots.after_reader(reader.since);
        structure.0.load(Ordering::Relaxed) - before
    };
    assert_eq!(swept_by_a_reader(), 0);
    snapshots.register(&weak, true);
    snapshots.register(&weak, true);
    assert_eq!(swept_by_a_reader(), 1);
    snapshots.register(&weak, false);
    assert_eq!(swept_by_a_reader(), 0);
}

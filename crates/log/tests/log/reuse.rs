//! Segments that are made of files of earlier ones.

use crate::checkpoints::{Running, started};
use crate::engine;
use hotrow_log::storage::{Fault, Faulty};
use hotrow_log::{Log, Options, verify};
use hotrow_sync::thread;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Names of the segments that there are, and their bytes.
fn segments(storage: &Faulty) -> BTreeMap<String, usize> {
    let files = storage.files().into_iter().filter(|(name, _)| name.starts_with("log-"));
    files.map(|(name, bytes)| (name, bytes.len())).collect()
}

/// A log whose last segment has the file of an earlier one, with its frames behind a few of its own.
fn with_a_reused_segment() -> Running {
    let mut running = started();
    (0..20).for_each(|key| running.commit(key, key));
    running.checkpoint().unwrap();
    // Up to a new segment.
    let before = segments(&running.storage);
    let last = before.keys().last().unwrap().clone();
    while segments(&running.storage).keys().last() == Some(&last) {
        running.commit(3, 33);
    }
    running
}

#[test]
fn a_new_segment_has_the_file_of_one_that_is_not_needed() {
    let running = with_a_reused_segment();
    let files = segments(&running.storage);
    let (last, bytes) = files.last_key_value().unwrap();
    assert!(*bytes >= 2_000, "{last} has {bytes} bytes at once");
    let storage = Arc::new(Faulty::with_files(0, running.storage.files()));
    assert_eq!(engine::recover(storage).unwrap().0, running.contents);
}

#[test]
fn frames_of_the_earlier_segment_are_neither_frames_nor_a_torn_tail() {
    let mut running = with_a_reused_segment();
    running.commit(4, 44);
    for seed in 0..50 {
        let storage = Arc::new(running.storage.power_loss(seed));
        let mut opened = Log::open(storage, Options::default()).unwrap();
        assert_eq!(opened.report().torn_tail, None);
        assert_eq!(engine::replay(&mut opened, 1).unwrap().0, running.contents);
    }
}

#[test]
fn damage_before_a_later_frame_of_a_reused_segment_is_told() {
    let mut running = with_a_reused_segment();
    let (last, _) = segments(&running.storage).pop_last().unwrap();
    (5..8).for_each(|key| running.commit(key, 55));
    let mut told = 0;
    for offset in (512..1_500).step_by(64) {
        let storage = Arc::new(Faulty::with_files(0, running.storage.files()));
        assert!(storage.corrupt(&last, offset, 0x10));
        let text = engine::recover(storage).unwrap_err().to_string();
        assert!(text.starts_with(&format!("{last} is corrupt at byte ")), "{text}");
        told += 1;
    }
    assert!(told > 10);
}

#[test]
fn a_reused_file_that_the_catalog_does_not_list_yet_is_a_leftover() {
    let mut running = started();
    (0..20).for_each(|key| running.commit(key, key));
    running.checkpoint().unwrap();
    (0..3).for_each(|key| running.commit(key, 60));
    let (operations, contents) = (running.storage.operations(), running.contents.clone());
    let mut crashes = 0;
    // A crash at each operation of the beginning of the next segment, which the commits below reach.
    for crash in 1..40 {
        let mut again = started();
        (0..20).for_each(|key| again.commit(key, key));
        again.checkpoint().unwrap();
        (0..3).for_each(|key| again.commit(key, 60));
        assert_eq!((again.storage.operations(), &again.contents), (operations, &contents));
        again.storage.plan(operations + crash, Fault::Broken);
        for key in 5..9 {
            let before = again.contents.clone();
            again.commit(key, 70);
            if again.log.failure().is_some() {
                again.contents = before;
                break;
            }
        }
        crashes += u32::from(again.log.failure().is_some());
        let acknowledged = again.contents.clone();
        for seed in 0..4 {
            let storage = Arc::new(again.storage.power_loss(seed));
            let found = engine::recover(storage.clone()).unwrap().0;
            for (row, value) in &acknowledged {
                // The commit that failed may be there.
                assert!(
                    found.get(row).is_some_and(|found| found == value || found.0 == [70; 300]),
                    "{crash} {row:?}"
                );
            }
            let (log, _, _) = engine::start(storage.clone(), Options::default()).unwrap();
            log.close().unwrap();
            verify(&*storage).unwrap();
        }
    }
    assert!(crashes > 10, "{crashes}");
}

#[test]
fn a_closed_log_leaves_no_file_to_be_used_again() {
    let running = with_a_reused_segment();
    let Running { storage, log, logger, .. } = running;
    let writing = thread::spawn(|| logger.run());
    log.close().unwrap();
    writing.join().unwrap();
    let report = Log::open(storage.clone(), Options::default()).unwrap().report().clone();
    assert!(report.closed);
    assert_eq!(segments(&storage).len() as u64, report.segments);
}

#[test]
fn a_log_of_limited_space_keeps_no_file_that_it_does_not_need() {
    let storage = Arc::new(Faulty::new(0));
    let options = Options { segment_bytes: 2_000, space_bytes_max: 1 << 20, ..Options::default() };
    let (log, clock, _) = engine::start(storage.clone(), options).unwrap();
    for key in 0..20 {
        let mut record = Vec::new();
        engine::put(&mut record, 1, &[key], &[key; 300]);
        let (stamp, guard) = clock.stamp();
        log.buffer().append(stamp, &record);
        drop(guard);
        log.flush().unwrap();
    }
    let epoch = log.durable_epoch();
    log.begin_checkpoint(epoch).unwrap().finish().unwrap();
    assert_eq!(segments(&storage).len() as u64, log.report().segments);
}

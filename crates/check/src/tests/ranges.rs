//! Histories with range reads.

use super::Bench;
use crate::{AnomalyKind, AttemptInProgress, Level};
use hotrow_core::history::{Event, ReadKind};
use std::ops::Bound::{self, Excluded, Included, Unbounded};

/// Records a range read without reads of the keys that it found, in a window of stamps.
fn blind_range(bench: &mut Bench, attempt: AttemptInProgress, low: u8, high: u8, window: (u64, u64)) {
    let (low, high) = ([low], [high]);
    let event = Event::Range {
        object: bench.object,
        low: Included(&low),
        high: Included(&high),
        from: window.0,
        to: window.1,
    };
    bench.history.event(attempt, event);
}

fn now(bench: &Bench) -> (u64, u64) {
    (bench.history.now(), bench.history.now())
}

#[test]
fn two_that_insert_what_the_other_did_not_find_are_a_phantom() {
    // Short ranges are processed key by key, long ones by blocks.
    for absent in [2, 30] {
        let mut bench = Bench::new(0, absent);
        let [a, b] = bench.begin();
        bench.scan_all(a);
        bench.scan_all(b);
        bench.history.insert(a, bench.keys[0]);
        bench.history.insert(b, bench.keys[absent as usize - 1]);
        bench.commit(&[a, b]);
        let report = bench.finds(AnomalyKind::Phantom, Level::Serializable);
        let text = "transaction 1.1 did not find table[";
        assert!(report.to_string().contains(text), "{report}");
    }
}

#[test]
fn an_insertion_seen_by_a_lookup_and_not_by_a_range_is_a_phantom() {
    for absent in [1, 30] {
        let mut bench = Bench::new(1, absent);
        let [a, b] = bench.begin();
        bench.scan_all(a);
        bench.history.insert(b, bench.keys[1]);
        bench.history.write(b, bench.keys[0]);
        bench.history.read(a, bench.keys[0]);
        bench.commit(&[a, b]);
        // The key that was found has changed too; this is the plainer reason.
        bench.finds(AnomalyKind::UnrepeatableRead, Level::Serializable);

        let mut bench = Bench::new(1, absent);
        let outside = bench.history.object("outside");
        let other = bench.history.key(outside, b"", "x");
        let [a, b] = bench.begin();
        bench.scan_all(a);
        bench.history.insert(b, bench.keys[1]);
        bench.history.write(b, other);
        bench.history.read(a, other);
        bench.commit(&[a, b]);
        bench.finds(AnomalyKind::PhantomRead, Level::Serializable);
    }
}

#[test]
fn a_deletion_seen_by_a_range_only_is_skew() {
    for there in [1, 30] {
        let mut bench = Bench::new(there, 1);
        let outside = bench.history.object("outside");
        let other = bench.history.key(outside, b"", "x");
        let [a, b] = bench.begin();
        bench.history.read(a, other);
        bench.history.read(b, bench.keys[0]);
        bench.history.delete(b, bench.keys[0]);
        bench.history.write(b, other);
        bench.scan_all(a);
        bench.commit(&[a, b]);
        let report = bench.finds(AnomalyKind::ReadSkew, Level::Serializable);
        let text = "transaction 2.1 deleted table[0] as version 1; transaction 1.1 did not find it";
        assert!(report.to_string().contains(text), "{report}");
    }
}

#[test]
fn a_window_leaves_both_orders_open() {
    // The insertion is within the window: the scan may have come before or after it, so neither order is wrong.
    for reads_other_before in [true, false] {
        let mut bench = Bench::new(1, 1);
        let [a, b] = bench.begin();
        if reads_other_before {
            bench.history.read(a, bench.keys[0]);
        }
        let from = bench.history.now();
        bench.history.insert(b, bench.keys[1]);
        bench.history.delete(b, bench.keys[1]);
        bench.history.write(b, bench.keys[0]);
        let to = bench.history.now();
        if !reads_other_before {
            bench.history.read(a, bench.keys[0]);
        }
        blind_range(&mut bench, a, 1, 1, (from, to));
        bench.commit(&[b, a]);
        bench.finds_nothing();
    }
}

#[test]
fn certain_facts_within_a_window_are_used() {
    // The insertion is within the window and was missed: the scan came before it.
    let mut bench = Bench::new(1, 1);
    let [a, b] = bench.begin();
    let from = bench.history.now();
    bench.history.insert(b, bench.keys[1]);
    bench.history.write(b, bench.keys[0]);
    let to = bench.history.now();
    blind_range(&mut bench, a, 1, 1, (from, to));
    bench.history.read(a, bench.keys[0]);
    bench.commit(&[b, a]);
    bench.finds(AnomalyKind::PhantomRead, Level::Serializable);

    // The deletion is within the window and the key was missed: the scan came after it.
    let mut bench = Bench::new(2, 0);
    let [a, b] = bench.begin();
    bench.history.read(a, bench.keys[0]);
    let from = bench.history.now();
    bench.history.delete(b, bench.keys[1]);
    bench.history.write(b, bench.keys[0]);
    let to = bench.history.now();
    blind_range(&mut bench, a, 1, 1, (from, to));
    bench.commit(&[b, a]);
    bench.finds(AnomalyKind::ReadSkew, Level::Serializable);
}

#[test]
fn a_key_inserted_long_ago_and_not_found_is_stale() {
    for absent in [1, 30] {
        let mut bench = Bench::new(0, absent);
        let b = bench.history.begin(2);
        bench.history.insert(b, bench.keys[0]);
        bench.history.commit(b);
        let a = bench.history.begin(1);
        let window = now(&bench);
        blind_range(&mut bench, a, 0, 29, window);
        bench.history.commit(a);
        bench.finds(AnomalyKind::StaleRead, Level::Strict);
    }
}

#[test]
fn a_key_that_was_always_there_and_not_found_is_lost() {
    for aborted in [false, true] {
        let mut bench = Bench::new(3, 0);
        let [a, b] = bench.begin();
        bench.scan_all(b);
        let window = now(&bench);
        blind_range(&mut bench, a, 1, 1, window);
        bench.commit(&[b]);
        if aborted {
            bench.history.abort(a)
        } else {
            bench.history.commit(a)
        }
        let level = if aborted { Level::Opaque } else { Level::Serializable };
        bench.finds(AnomalyKind::LostKey, level);
    }
}

#[test]
fn a_stale_read_in_a_range_is_not_blamed_on_its_deletion() {
    // The scanner saw the initial state of a key that was deleted and inserted again: it comes before both.
    let mut bench = Bench::new(30, 0);
    let key = bench.keys[7];
    let [other, scanner] = bench.begin();
    bench.history.delete(other, key);
    bench.history.insert(other, key);
    bench.commit(&[other]);
    bench.scan_all(scanner);
    let mut history = bench.history.finish();
    let mut bytes = Vec::new();
    for event in history.workers[1].events() {
        match event.unwrap() {
            Event::Read { key: k, .. } if k == key => {
                Event::Read { key, version: 0, kind: ReadKind::Value }.encode(&mut bytes);
            }
            event => event.encode(&mut bytes),
        }
    }
    let ended = hotrow_core::history::Ended::Committed;
    Event::End { outcome: ended, stamp: 100 }.encode(&mut bytes);
    history.workers[1].bytes = bytes;
    let report = crate::check(&history).unwrap();
    assert!(report.opaque, "{report}");
}

#[test]
fn a_read_after_a_scan_does_not_excuse_what_the_scan_missed() {
    let mut bench = Bench::new(0, 1);
    let key = bench.keys[0];
    let [scanner, inserter, updater] = bench.begin();
    let from = bench.history.now();
    bench.history.insert(inserter, key);
    let to = bench.history.now();
    bench.history.write(updater, key);
    blind_range(&mut bench, scanner, 0, 0, (from, to));
    bench.history.read(scanner, key);
    bench.commit(&[inserter, updater, scanner]);
    bench.finds(AnomalyKind::PhantomRead, Level::Serializable);
}

#[test]
fn all_insertions_and_deletions_in_a_block_count() {
    // One of eight attempts is tied to the scanner by another key: the first, the last, or one in the middle.
    for tied in 0..8 {
        for deletes in [false, true] {
            let mut bench = if deletes { Bench::new(30, 0) } else { Bench::new(0, 30) };
            let outside = bench.history.object("outside");
            let other = bench.history.key(outside, b"", "x");
            let [scanner] = bench.begin();
            if deletes {
                bench.history.read(scanner, other);
            } else {
                bench.scan_all(scanner);
            }
            for n in 0..8 {
                let attempt = bench.history.begin(2 + n);
                let key = bench.keys[n as usize];
                if deletes {
                    bench.history.read(attempt, key);
                    bench.history.delete(attempt, key);
                } else {
                    bench.history.insert(attempt, key);
                }
                if n == tied {
                    bench.history.write(attempt, other);
                }
                bench.history.commit(attempt);
            }
            if deletes {
                bench.scan_all(scanner);
            } else {
                bench.history.read(scanner, other);
            }
            bench.commit(&[scanner]);
            let kind = if deletes { AnomalyKind::ReadSkew } else { AnomalyKind::PhantomRead };
            let report = bench.finds(kind, Level::Serializable);
            assert_eq!(report.anomalies[0].steps.len(), 2, "{report}");
        }
    }
}

#[test]
fn ranges_end_at_their_bounds() {
    let cases: [(Bound<&[u8]>, Bound<&[u8]>, bool); 6] = [
        (Unbounded, Unbounded, true),
        (Included(&[5]), Included(&[5]), true),
        (Excluded(&[5]), Unbounded, false),
        (Unbounded, Excluded(&[5]), false),
        (Included(&[6]), Included(&[2]), false),
        (Excluded(&[4]), Excluded(&[6]), true),
    ];
    for (low, high, within) in cases {
        let mut bench = Bench::new(0, 10);
        let outside = bench.history.object("outside");
        let other = bench.history.key(outside, b"", "x");
        let [a, b] = bench.begin();
        let object = bench.object;
        bench.history.scan(a, object, low, high);
        bench.history.insert(b, bench.keys[5]);
        bench.history.write(b, other);
        bench.history.read(a, other);
        bench.commit(&[a, b]);
        let report = bench.report();
        assert_eq!(report.serializable, !within, "{low:?} {high:?} {report}");
    }
}

#[test]
fn a_range_read_of_an_aborted_attempt_counts_for_opacity() {
    let mut bench = Bench::new(1, 1);
    let [a, b] = bench.begin();
    let outside = bench.history.object("outside");
    let other = bench.history.key(outside, b"", "x");
    bench.scan_all(a);
    bench.history.insert(b, bench.keys[1]);
    bench.history.write(b, other);
    bench.commit(&[b]);
    bench.history.read(a, other);
    bench.history.abort(a);
    bench.finds(AnomalyKind::InconsistentState, Level::Opaque);
}

#[test]
fn an_incomplete_history_says_nothing_certain_of_a_window() {
    // If the insertion is within the window, an unrecorded attempt may have deleted the key before the scan. If the
    // deletion is within it, the key may have been deleted and inserted before that, with the scan between.
    for inserts in [true, false] {
        let mut bench = if inserts { Bench::new(1, 1) } else { Bench::new(2, 0) };
        bench.history.incomplete();
        let [a, b] = bench.begin();
        if !inserts {
            bench.history.read(a, bench.keys[0]);
        }
        let from = bench.history.now();
        if inserts {
            bench.history.insert(b, bench.keys[1]);
        } else {
            bench.history.delete(b, bench.keys[1]);
        }
        bench.history.write(b, bench.keys[0]);
        let to = bench.history.now();
        blind_range(&mut bench, a, 1, 1, (from, to));
        if inserts {
            bench.history.read(a, bench.keys[0]);
        }
        bench.commit(&[b, a]);
        bench.finds_nothing();
    }
}

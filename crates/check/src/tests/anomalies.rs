//! One history of each anomaly among committed transactions, over single keys.

use super::Bench;
use crate::{AnomalyKind, Dependency, HistoryBuilder, Level, check};
use hotrow_core::history::{Ended, Event};

#[test]
fn a_dirty_write_is_g0() {
    let mut bench = Bench::new(2, 0);
    let [a, b] = bench.begin();
    for (attempt, key) in [(a, 0), (b, 0), (b, 1), (a, 1)] {
        bench.history.write(attempt, bench.keys[key]);
    }
    bench.commit(&[a, b]);
    bench.finds(AnomalyKind::DirtyWrite, Level::Serializable);
}

#[test]
fn a_read_of_an_aborted_write_is_found() {
    for roll_back in [false, true] {
        let mut bench = Bench::new(1, 0);
        let [a, b] = bench.begin();
        bench.history.write(a, bench.keys[0]);
        bench.history.read(b, bench.keys[0]);
        if roll_back {
            bench.history.roll_back(a)
        } else {
            bench.history.abort(a)
        }
        bench.commit(&[b]);
        let report = bench.finds(AnomalyKind::AbortedRead, Level::Serializable);
        let end = if roll_back { "was rolled back" } else { "aborted" };
        let text = format!(
            "transaction 2.1 read version 1 of table[0], and transaction 1.1, which wrote it, {end}."
        );
        assert!(report.to_string().contains(&text), "{report}");
    }
}

#[test]
fn a_version_that_its_writer_replaced_must_not_be_read() {
    let mut bench = Bench::new(1, 0);
    let [a, b] = bench.begin();
    bench.history.write(a, bench.keys[0]);
    bench.history.read(b, bench.keys[0]);
    bench.history.write(a, bench.keys[0]);
    bench.commit(&[a, b]);
    bench.finds(AnomalyKind::IntermediateRead, Level::Serializable);
}

#[test]
fn information_must_not_flow_in_a_circle() {
    let mut bench = Bench::new(2, 0);
    let [a, b] = bench.begin();
    bench.history.write(a, bench.keys[0]);
    bench.history.read(b, bench.keys[0]);
    bench.history.write(b, bench.keys[1]);
    bench.history.read(a, bench.keys[1]);
    bench.commit(&[a, b]);
    bench.finds(AnomalyKind::CircularInformationFlow, Level::Serializable);
}

#[test]
fn a_lost_update_is_told_key_by_key() {
    let mut bench = Bench::new(8, 0);
    let key = bench.keys[7];
    let [a, b] = bench.begin();
    for attempt in [a, b] {
        bench.history.read(attempt, key);
    }
    bench.history.write(b, key);
    bench.history.write(a, key);
    bench.commit(&[b, a]);
    let report = bench.finds(AnomalyKind::LostUpdate, Level::Serializable);
    assert_eq!(
        report.anomalies[0].to_string(),
        "lost update (G-single): transaction 1.1 (worker 1, its 1st attempt), \
         transaction 2.1 (worker 2, its 1st attempt)\n  \
         transaction 1.1 read the initial version of table[7]; transaction 2.1 replaced it with version 1.\n  \
         transaction 2.1 wrote version 1 of table[7]; transaction 1.1 replaced it with version 2."
    );
}

#[test]
fn a_key_read_before_and_after_another_wrote_it_is_an_unrepeatable_read() {
    let mut bench = Bench::new(1, 0);
    let [a, b] = bench.begin();
    bench.history.read(a, bench.keys[0]);
    bench.history.write(b, bench.keys[0]);
    bench.history.read(a, bench.keys[0]);
    bench.commit(&[a, b]);
    bench.finds(AnomalyKind::UnrepeatableRead, Level::Serializable);
}

#[test]
fn half_of_anothers_writes_is_read_skew() {
    let mut bench = Bench::new(2, 0);
    let [a, b] = bench.begin();
    bench.history.read(a, bench.keys[0]);
    bench.history.write(b, bench.keys[0]);
    bench.history.write(b, bench.keys[1]);
    bench.history.read(a, bench.keys[1]);
    bench.commit(&[a, b]);
    bench.finds(AnomalyKind::ReadSkew, Level::Serializable);
}

#[test]
fn read_skew_may_go_through_a_third() {
    let mut bench = Bench::new(3, 0);
    let [a, b, c] = bench.begin();
    bench.history.read(a, bench.keys[0]);
    bench.history.write(b, bench.keys[0]);
    bench.history.write(b, bench.keys[1]);
    bench.history.read(c, bench.keys[1]);
    bench.history.write(c, bench.keys[2]);
    bench.history.read(a, bench.keys[2]);
    bench.commit(&[a, b, c]);
    let report = bench.finds(AnomalyKind::ReadSkew, Level::Serializable);
    assert_eq!(report.anomalies[0].steps.len(), 3);
}

#[test]
fn two_that_read_what_the_other_writes_are_write_skew() {
    let mut bench = Bench::new(2, 0);
    let [a, b] = bench.begin();
    bench.history.read(a, bench.keys[0]);
    bench.history.read(b, bench.keys[1]);
    bench.history.write(a, bench.keys[1]);
    bench.history.write(b, bench.keys[0]);
    bench.commit(&[a, b]);
    bench.finds(AnomalyKind::WriteSkew, Level::Serializable);
}

#[test]
fn a_replaced_version_must_not_be_read_by_who_begins_later() {
    let mut bench = Bench::new(1, 0);
    let writer = bench.history.begin(1);
    bench.history.write(writer, bench.keys[0]);
    bench.history.commit(writer);
    let reader = bench.history.begin(2);
    bench.history.read_version(reader, bench.keys[0], 0);
    bench.history.commit(reader);
    let report = bench.finds(AnomalyKind::StaleRead, Level::Strict);
    let text = "transaction 1.1 had ended (stamp 2) when transaction 2.1 began (stamp 3).";
    assert!(report.to_string().contains(text), "{report}");
}

#[test]
fn an_attempt_that_ends_at_the_number_another_begins_at_is_not_before_it() {
    let mut bench = Bench::new(1, 0);
    let [a] = bench.begin();
    let version = bench.history.write(a, bench.keys[0]);
    // The second transaction reads the counter just before the first takes the number of its end from it.
    let b = bench.history.begin(2);
    bench.history.commit(a);
    bench.history.read_version(b, bench.keys[0], 0);
    bench.history.commit(b);
    assert_eq!(version, 1);
    bench.finds_nothing();
}

#[test]
fn real_time_may_close_a_longer_circle() {
    let mut bench = Bench::new(2, 0);
    // One transaction spans two others that follow each other. It sees only the later one's effect.
    let spanning = bench.history.begin(1);
    let first = bench.history.begin(2);
    bench.history.write(first, bench.keys[0]);
    bench.history.commit(first);
    let second = bench.history.begin(3);
    bench.history.write(second, bench.keys[1]);
    bench.history.commit(second);
    bench.history.read_version(spanning, bench.keys[0], 0);
    bench.history.read(spanning, bench.keys[1]);
    bench.history.commit(spanning);
    bench.finds(AnomalyKind::RealTime, Level::Strict);
}

#[test]
fn each_component_is_told_apart() {
    let mut bench = Bench::new(4, 0);
    for round in 0..2 {
        let [a, b] = bench.begin();
        for (attempt, key) in [(a, 0), (b, 1), (b, 0), (a, 1)] {
            bench.history.read(attempt, bench.keys[2 * round + key]);
        }
        bench.history.write(a, bench.keys[2 * round]);
        bench.history.write(b, bench.keys[2 * round + 1]);
        bench.commit(&[a, b]);
    }
    let report = bench.report();
    let kinds: Vec<_> = report.anomalies.iter().map(|anomaly| anomaly.kind).collect();
    assert_eq!(kinds, [AnomalyKind::WriteSkew; 2], "{report}");
    assert_eq!(report.anomalies[1].steps[0].first.position, 2);
}

#[test]
fn the_keys_of_each_step_are_named() {
    let mut bench = Bench::new(2, 0);
    let [a, b] = bench.begin();
    bench.history.read(a, bench.keys[0]);
    bench.history.read(b, bench.keys[1]);
    bench.history.write(a, bench.keys[1]);
    bench.history.write(b, bench.keys[0]);
    bench.commit(&[a, b]);
    let report = bench.report();
    for step in &report.anomalies[0].steps {
        let key = if step.first.worker == 1 { "table[0]" } else { "table[1]" };
        assert!(matches!(&step.dependency, Dependency::ReadWrite { key: k, read: 0, .. } if k == key));
    }
}

#[test]
fn anomalies_beyond_the_bound_are_counted() {
    let mut bench = Bench::new(1, 0);
    for _ in 0..150 {
        let [a, b] = bench.begin();
        bench.history.write(a, bench.keys[0]);
        bench.history.read(b, bench.keys[0]);
        bench.history.abort(a);
        bench.commit(&[b]);
    }
    let report = bench.report();
    assert_eq!((report.anomalies.len(), report.not_listed), (100, 50));
    assert!(report.to_string().ends_with("50 more found"));
}

#[test]
fn a_very_long_cycle_is_found_and_printed() {
    // A recursive search would overflow the stack; a quadratic one would take minutes.
    let (mut history, keys) = (HistoryBuilder::new("test"), 100_000u32);
    let object = history.object("table");
    let attempt = history.begin(1);
    for key in 0..keys {
        history.key(object, &key.to_be_bytes(), "");
        if key > 0 {
            history.begin(1);
        }
        history.read_version(attempt, (key + 1) % keys, 0);
        history.write(attempt, key);
        history.event(attempt, Event::End { outcome: Ended::Committed, stamp: u64::MAX });
    }
    let mut history = history.finish();
    // All transactions are made concurrent.
    let mut bytes = Vec::new();
    for event in history.workers[0].events() {
        match event.unwrap() {
            Event::Begin { attempt, .. } => Event::Begin { attempt, stamp: 0 }.encode(&mut bytes),
            event => event.encode(&mut bytes),
        }
    }
    history.workers[0].bytes = bytes;
    let report = check(&history).unwrap();
    assert_eq!(report.anomalies[0].kind, AnomalyKind::WriteSkew);
    assert_eq!(report.anomalies[0].steps.len(), keys as usize);
    assert!(report.to_string().contains("transaction 1.100000"));
}

#[test]
fn a_transaction_that_repeats_a_range_read_is_judged_in_time() {
    let mut bench = Bench::new(100, 0);
    let [scanner] = bench.begin();
    (0..3_000).for_each(|_| bench.scan_all(scanner));
    bench.commit(&[scanner]);
    bench.finds_nothing();
}

//! Histories without any violation.

use super::Bench;
use std::ops::Bound::{Included, Unbounded};

#[test]
fn nothing_finds_nothing() {
    Bench::new(0, 0).finds_nothing();
}

#[test]
fn blind_writes_commute() {
    let mut bench = Bench::new(1, 0);
    let attempts: [_; 3] = bench.begin();
    for attempt in attempts {
        bench.history.write(attempt, bench.keys[0]);
    }
    bench.commit(&attempts);
    bench.finds_nothing();
}

#[test]
fn versions_that_an_aborted_attempt_installed_are_passed_over() {
    // One protocol leaves the aborted version in the chain; the other removes it.
    for chained in [true, false] {
        let mut bench = Bench::new(1, 0);
        let key = bench.keys[0];
        let [a, b] = bench.begin();
        bench.history.write(a, key);
        bench.history.abort(a);
        bench.history.read_version(b, key, 0);
        if chained {
            bench.history.write(b, key);
        } else {
            let version = bench.history.take_number();
            let kind = hotrow_core::history::WriteKind::Update;
            bench.history.event(b, hotrow_core::history::Event::Write { key, replaced: 0, version, kind });
        }
        bench.commit(&[b]);
        bench.finds_nothing();
    }
}

#[test]
fn own_writes_make_no_edges() {
    let mut bench = Bench::new(1, 1);
    let [a] = bench.begin();
    for key in 0..2 {
        bench.history.read(a, bench.keys[key]);
    }
    bench.history.write(a, bench.keys[0]);
    bench.history.read(a, bench.keys[0]);
    bench.history.insert(a, bench.keys[1]);
    bench.scan_all(a);
    bench.history.delete(a, bench.keys[1]);
    bench.scan_all(a);
    bench.history.insert(a, bench.keys[1]);
    bench.commit(&[a]);
    bench.finds_nothing();
}

#[test]
fn ranges_see_keys_come_and_go() {
    let mut bench = Bench::new(5, 15);
    for round in 0..40usize {
        let worker = round as u32 % 3;
        let attempt = bench.history.begin(worker);
        let key = bench.keys[5 + round * 7 % 15];
        bench.scan_all(attempt);
        bench.history.read(attempt, key);
        if round / 15 % 2 == 0 {
            bench.history.insert(attempt, key);
        } else {
            bench.history.delete(attempt, key);
        }
        bench.history.commit(attempt);
    }
    bench.finds_nothing();
}

#[test]
fn a_queue_finds_nothing() {
    let mut bench = Bench::new(0, 200);
    let object = bench.object;
    for n in 0..200usize {
        let attempt = bench.history.begin(n as u32 % 2);
        bench.history.read(attempt, bench.keys[n]);
        bench.history.insert(attempt, bench.keys[n]);
        bench.history.commit(attempt);
        if n >= 3 {
            let attempt = bench.history.begin(n as u32 % 3);
            let first = [n as u8 - 3];
            bench.history.scan(attempt, object, Unbounded, Included(&first));
            bench.history.delete(attempt, bench.keys[n - 3]);
            bench.history.commit(attempt);
        }
    }
    let report = bench.finds_nothing();
    // Each auxiliary node has one edge from a writer, and each scan has few edges.
    assert!(report.counts.range_edges < 200 * 30, "{report}");
}

#[test]
fn a_history_cut_at_its_bound_says_so() {
    let mut bench = Bench::new(1, 1);
    bench.history.incomplete();
    let [a, b] = bench.begin();
    // No recorded attempt wrote version 77.
    bench.history.read_version(a, bench.keys[0], 77);
    let kind = hotrow_core::history::WriteKind::Update;
    let write = hotrow_core::history::Event::Write { key: bench.keys[0], replaced: 77, version: 99, kind };
    bench.history.event(b, write);
    bench.commit(&[a, b]);
    let report = bench.finds_nothing();
    assert_eq!(report.counts.read_write_edges, 1);
    assert!(report.to_string().contains("cut at its bound"));
}

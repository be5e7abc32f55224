//! Views that attempts without effect may have.

use super::Bench;
use crate::{AnomalyKind, Level};

/// Makes an attempt read half of another's writes; the ending decides if that matters.
fn torn(end: impl FnOnce(&mut Bench, crate::AttemptInProgress)) -> Bench {
    let mut bench = Bench::new(2, 0);
    let [a, b] = bench.begin();
    bench.history.read(a, bench.keys[0]);
    bench.history.write(b, bench.keys[0]);
    bench.history.write(b, bench.keys[1]);
    bench.commit(&[b]);
    bench.history.read(a, bench.keys[1]);
    end(&mut bench, a);
    bench
}

#[test]
fn aborted_and_unfinished_attempts_must_see_one_state() {
    torn(|bench, a| bench.history.abort(a)).finds(AnomalyKind::InconsistentState, Level::Opaque);
    torn(|bench, a| bench.history.roll_back(a)).finds(AnomalyKind::InconsistentState, Level::Opaque);
    torn(|_, _| {}).finds(AnomalyKind::InconsistentState, Level::Opaque);
}

#[test]
fn an_aborted_attempt_must_not_see_the_past() {
    let mut bench = Bench::new(1, 0);
    let writer = bench.history.begin(1);
    bench.history.write(writer, bench.keys[0]);
    bench.history.commit(writer);
    let reader = bench.history.begin(2);
    bench.history.read_version(reader, bench.keys[0], 0);
    bench.history.abort(reader);
    bench.finds(AnomalyKind::InconsistentState, Level::Opaque);
}

#[test]
fn an_aborted_attempt_must_not_see_what_another_aborted_one_wrote() {
    let mut bench = Bench::new(1, 0);
    let [a, b] = bench.begin();
    bench.history.write(a, bench.keys[0]);
    bench.history.read(b, bench.keys[0]);
    bench.history.abort(a);
    bench.history.abort(b);
    bench.finds(AnomalyKind::AbortedRead, Level::Opaque);
}

#[test]
fn two_aborted_attempts_must_agree_on_the_order() {
    let mut bench = Bench::new(2, 0);
    let [a, b, c, d] = bench.begin();
    bench.history.read(a, bench.keys[0]);
    bench.history.write(c, bench.keys[0]);
    bench.history.read(b, bench.keys[0]);
    bench.history.read_version(b, bench.keys[1], 0);
    bench.history.write(d, bench.keys[1]);
    bench.history.read(a, bench.keys[1]);
    bench.commit(&[c, d]);
    bench.history.abort(a);
    bench.history.abort(b);
    let report = bench.report();
    assert!(report.strictly_serializable && !report.opaque, "{report}");
    assert!(report.anomalies.iter().all(|anomaly| anomaly.kind == AnomalyKind::InconsistentState));
}

#[test]
fn an_unfinished_attempt_that_was_seen_was_committing() {
    let mut bench = Bench::new(1, 0);
    let [a, b] = bench.begin();
    bench.history.read(a, bench.keys[0]);
    bench.history.write(a, bench.keys[0]);
    bench.history.read(b, bench.keys[0]);
    bench.commit(&[b]);
    let report = bench.finds_nothing();
    assert_eq!((report.counts.unfinished, report.counts.committed), (1, 1));
}

#[test]
fn the_report_says_if_the_protocol_claims_opacity() {
    let mut bench = torn(|bench, a| bench.history.abort(a));
    assert!(bench.report().to_string().contains("NO (and the protocol does not claim to be)"));
    bench = torn(|bench, a| bench.history.abort(a));
    bench.history.claim_opacity();
    assert!(bench.report().to_string().contains("NO (and the protocol claims to be)"));
}

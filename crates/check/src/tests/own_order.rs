//! Transactions that violate their own order.

use super::Bench;
use crate::{AnomalyKind, Level};
use hotrow_core::history::Event;

#[test]
fn a_later_insertion_that_ran_before_an_earlier_one_is_told() {
    // The first insertion's row comes from the head of a queue, so the second insertion runs before it and the
    // first one finds the key present.
    let mut bench = Bench::new(0, 1);
    let key = bench.keys[0];
    let [a] = bench.begin();
    bench.history.operation(a, 4);
    bench.history.read(a, key);
    bench.history.change(a, key);
    bench.history.operation(a, 3);
    bench.history.own_read(a, key);
    bench.history.insert(a, key);
    bench.commit(&[a]);
    let report = bench.finds(AnomalyKind::OwnOrderReversed, Level::Serializable);
    assert_eq!(
        report.anomalies[0].to_string(),
        "a transaction's own order reversed: transaction 1.1 (worker 1, its 1st attempt)\n  transaction 1.1 ran its \
         operation 4 on table[0] before its operation 3 on it, and one of them changes the key."
    );
}

#[test]
fn a_change_that_ran_before_an_earlier_look_is_told() {
    for first_changes in [true, false] {
        let mut bench = Bench::new(1, 0);
        let key = bench.keys[0];
        let [a] = bench.begin();
        bench.history.operation(a, 2);
        bench.history.read(a, key);
        if first_changes {
            bench.history.change(a, key);
        }
        bench.history.operation(a, 1);
        if first_changes {
            bench.history.own_read(a, key);
        } else {
            bench.history.change(a, key);
        }
        bench.history.write(a, key);
        bench.commit(&[a]);
        bench.finds(AnomalyKind::OwnOrderReversed, Level::Serializable);
    }
}

#[test]
fn a_replacement_without_a_look_counts_as_a_change() {
    let mut bench = Bench::new(1, 0);
    let key = bench.keys[0];
    let [a] = bench.begin();
    bench.history.operation(a, 2);
    bench.history.event(a, Event::Intend { key });
    bench.history.operation(a, 1);
    bench.history.change(a, key);
    bench.history.write(a, key);
    bench.commit(&[a]);
    bench.finds(AnomalyKind::OwnOrderReversed, Level::Serializable);
}

#[test]
fn operations_on_other_keys_and_looks_may_run_in_any_order() {
    let mut bench = Bench::new(3, 0);
    let [a] = bench.begin();
    for (place, key) in [(3, 0), (1, 1), (0, 2)] {
        bench.history.operation(a, place);
        bench.history.read(a, bench.keys[key]);
        bench.history.change(a, bench.keys[key]);
    }
    for place in [9, 7, 8] {
        bench.history.operation(a, place);
        bench.history.own_read(a, bench.keys[0]);
    }
    bench.history.write(a, bench.keys[0]);
    bench.commit(&[a]);
    bench.finds_nothing();
}

#[test]
fn places_begin_anew_with_each_attempt() {
    let mut bench = Bench::new(1, 0);
    for place in [9, 0] {
        let attempt = bench.history.begin(1);
        if place > 0 {
            bench.history.operation(attempt, place);
        }
        bench.history.read(attempt, bench.keys[0]);
        bench.history.change(attempt, bench.keys[0]);
        bench.history.write(attempt, bench.keys[0]);
        bench.history.commit(attempt);
    }
    bench.finds_nothing();
}

#[test]
fn attempts_without_effect_may_have_lost_their_order() {
    let mut bench = Bench::new(1, 0);
    let [a] = bench.begin();
    for place in [2, 1] {
        bench.history.operation(a, place);
        bench.history.change(a, bench.keys[0]);
    }
    bench.history.abort(a);
    bench.finds_nothing();
}

#[test]
fn a_read_past_an_own_change_is_told() {
    let mut bench = Bench::new(1, 1);
    let [a] = bench.begin();
    bench.history.read(a, bench.keys[1]);
    bench.history.change(a, bench.keys[1]);
    bench.history.read(a, bench.keys[1]);
    bench.history.insert(a, bench.keys[1]);
    bench.commit(&[a]);
    let report = bench.finds(AnomalyKind::OwnChangeUnseen, Level::Serializable);
    let text = "transaction 1.1 read the initial version of table[1], which it had changed itself, and not its own \
                change.";
    assert!(report.to_string().contains(text), "{report}");
}

#[test]
fn a_read_beside_a_look_at_the_own_change_is_fine() {
    let mut bench = Bench::new(1, 0);
    let [a] = bench.begin();
    bench.history.change(a, bench.keys[0]);
    bench.history.own_read(a, bench.keys[0]);
    bench.history.read(a, bench.keys[0]);
    bench.history.write(a, bench.keys[0]);
    bench.commit(&[a]);
    bench.finds_nothing();
}

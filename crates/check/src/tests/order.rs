//! Serial orders of histories.

use super::Bench;
use super::execution::{Store, body};
use crate::serial_order;
use proptest::prelude::*;

/// Returns the workers of the committed transactions in the serial order.
fn workers(bench: Bench) -> Option<Vec<u32>> {
    let (_, order) = serial_order(&bench.history.finish()).unwrap();
    order.map(|order| order.iter().map(|placed| placed.transaction.worker).collect())
}

#[test]
fn the_reader_of_a_replaced_version_comes_first_though_it_ends_last() {
    let mut bench = Bench::new(2, 0);
    let [a, b, c] = bench.begin();
    bench.history.read(a, bench.keys[0]);
    bench.history.write(b, bench.keys[0]);
    bench.history.read(b, bench.keys[1]);
    bench.history.write(c, bench.keys[1]);
    bench.commit(&[c, b, a]);
    assert_eq!(workers(bench).unwrap(), [1, 2, 3]);
}

#[test]
fn a_reader_of_an_absence_comes_before_the_insertion_and_after_the_deletion() {
    let mut bench = Bench::new(1, 1);
    let [scanner, deleter, inserter] = bench.begin();
    bench.history.read(deleter, bench.keys[0]);
    bench.history.delete(deleter, bench.keys[0]);
    bench.scan_all(scanner);
    bench.history.read(inserter, bench.keys[1]);
    bench.history.insert(inserter, bench.keys[1]);
    bench.commit(&[inserter, scanner, deleter]);
    assert_eq!(workers(bench).unwrap(), [2, 1, 3]);
}

#[test]
fn of_several_absences_within_a_range_read_the_latest_counts() {
    let mut bench = Bench::new(0, 1);
    let [scanner, first, second] = bench.begin();
    let from = bench.history.now();
    for attempt in [first, second] {
        bench.history.insert(attempt, bench.keys[0]);
        bench.history.delete(attempt, bench.keys[0]);
    }
    let (object, to) = (bench.object, bench.history.now());
    let (low, high) = (std::ops::Bound::Unbounded, std::ops::Bound::Unbounded);
    let range = hotrow_core::history::Event::Range { object, low, high, from, to };
    bench.history.event(scanner, range);
    bench.commit(&[scanner, second, first]);
    let (_, order) = serial_order(&bench.history.finish()).unwrap();
    let order: Vec<_> =
        order.unwrap().iter().map(|placed| (placed.transaction.worker, placed.earliest)).collect();
    assert_eq!(order, [(2, 0), (3, 1), (1, 0)], "and it may have missed an earlier one");
}

#[test]
fn nobody_may_come_before_those_on_whom_it_depends_directly_or_through_real_time() {
    let mut bench = Bench::new(2, 0);
    let [first, writer] = bench.begin();
    bench.history.write(first, bench.keys[0]);
    bench.history.write(writer, bench.keys[1]);
    bench.commit(&[first, writer]);
    let [reader, beside] = bench.begin();
    bench.history.read(reader, bench.keys[0]);
    bench.history.write(beside, bench.keys[1]);
    bench.commit(&[beside, reader]);
    let (_, order) = serial_order(&bench.history.finish()).unwrap();
    let order: Vec<_> =
        order.unwrap().iter().map(|placed| (placed.transaction.worker, placed.earliest)).collect();
    assert_eq!(order, [(1, 0), (2, 0), (2, 2), (1, 2)]);
}

#[test]
fn a_history_that_is_not_serializable_has_no_order() {
    let mut bench = Bench::new(1, 0);
    let [a, b] = bench.begin();
    for attempt in [a, b] {
        bench.history.read(attempt, bench.keys[0]);
    }
    bench.history.write(a, bench.keys[0]);
    bench.history.write(b, bench.keys[0]);
    bench.commit(&[a, b]);
    assert_eq!(workers(bench), None);
}

#[test]
fn attempts_without_effect_are_in_no_order() {
    let mut bench = Bench::new(1, 0);
    let [a, b, c] = bench.begin();
    for attempt in [a, b, c] {
        bench.history.read(attempt, bench.keys[0]);
    }
    bench.history.abort(a);
    bench.history.roll_back(c);
    bench.commit(&[b]);
    assert_eq!(workers(bench).unwrap(), [2]);
}

proptest! {
    #[test]
    fn transactions_executed_one_after_the_other_are_ordered_so(bodies in prop::collection::vec(body(6), 1..40)) {
        let mut store = Store::new();
        let mut committed = Vec::new();
        for (worker, (actions, ending)) in bodies.into_iter().enumerate() {
            let mut running = store.begin(worker as u32);
            actions.into_iter().for_each(|action| store.act(&mut running, action));
            if ending == super::execution::Ending::Commit {
                committed.push(worker as u32);
            }
            store.end(running, ending);
        }
        let (report, order) = serial_order(&store.finish()).unwrap();
        prop_assert!(report.serializable);
        // The transactions follow each other in real time.
        let order: Vec<u32> = order.unwrap().iter().map(|placed| placed.transaction.worker).collect();
        prop_assert_eq!(order, committed);
    }
}

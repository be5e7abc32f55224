//! Writes that commute.

use super::Bench;
use crate::check;

/// Two transactions that set the first key in one order and add to the second in the other: `between` may do something in between.
fn crossed(between: impl FnOnce(&mut Bench)) -> Bench {
    let mut bench = Bench::new(3, 0);
    let [a, b] = bench.begin();
    let [set, sum, _] = bench.keys[..] else { unreachable!("three keys") };
    bench.history.write(a, set);
    bench.history.write(b, set);
    bench.history.commute(b, sum);
    between(&mut bench);
    bench.history.commute(a, sum);
    bench.commit(&[a, b]);
    bench
}

#[test]
fn additions_in_any_order_make_no_cycle() {
    crossed(|_| {}).finds_nothing();
}

#[test]
fn writes_before_and_after_additions_are_in_order() {
    let mut bench = Bench::new(2, 0);
    let [a, b, c, d] = bench.begin();
    let [set, sum] = bench.keys[..] else { unreachable!("two keys") };
    bench.history.write(a, sum);
    bench.history.commute(b, sum);
    bench.history.commute(c, sum);
    bench.history.write(d, sum);
    // The last one comes before the first, which is a cycle over either addition.
    bench.history.write(d, set);
    bench.history.write(a, set);
    bench.commit(&[a, b, c, d]);
    let report = check(&bench.history.finish()).unwrap();
    assert!(!report.serializable);
    let text = report.to_string();
    assert!(!text.contains("comes before"), "every edge is explained:\n{text}");
}

#[test]
fn a_reader_between_two_additions_sees_one_of_them() {
    // It sees the addition of the second and not that of the first, which comes before it.
    let bench = crossed(|bench| {
        let reader = bench.history.begin(9);
        bench.history.read(reader, bench.keys[1]);
        bench.history.commit(reader);
    });
    let report = check(&bench.history.finish()).unwrap();
    assert!(!report.serializable);
    let text = report.to_string();
    assert!(!text.contains("comes before"), "every edge is explained:\n{text}");
}

#[test]
fn a_reader_of_all_additions_comes_after_them() {
    let mut bench = crossed(|_| {});
    let [reader] = bench.begin();
    bench.history.read(reader, bench.keys[0]);
    bench.history.read(reader, bench.keys[1]);
    bench.commit(&[reader]);
    bench.finds_nothing();
}

#[test]
fn an_addition_by_a_reader_is_a_write_like_any_other() {
    let mut bench = Bench::new(1, 0);
    let [a, b] = bench.begin();
    let key = bench.keys[0];
    bench.history.read(a, key);
    bench.history.read(b, key);
    bench.history.commute(a, key);
    bench.history.commute(b, key);
    bench.commit(&[a, b]);
    assert!(!check(&bench.history.finish()).unwrap().serializable, "an update is lost");
}

#[test]
fn a_transaction_reads_what_its_earlier_pieces_have_written() {
    let mut bench = Bench::new(2, 0);
    let [a, b] = bench.begin();
    let [one, other] = bench.keys[..] else { unreachable!("two keys") };
    let version = bench.history.write(a, one);
    bench.history.read(b, one);
    bench.history.write(b, one);
    bench.commit(&[b]);
    // Of its own version it knows for itself, although another one has replaced it.
    bench.history.read_version(a, one, version);
    bench.history.write(a, other);
    bench.commit(&[a]);
    bench.finds_nothing();
}

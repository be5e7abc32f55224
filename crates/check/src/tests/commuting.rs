//! Writes that commute, and transactions that commit in pieces.

use super::Bench;
use crate::{AnomalyKind, Level};
use hotrow_core::history::{Event, ReadKind};
use std::ops::Bound::{Included, Unbounded};

/// Makes two transactions that set the first key in one order and add to the second in the other. `between` runs
/// between the two additions.
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
    let report = bench.finds(AnomalyKind::DirtyWrite, Level::Serializable);
    assert_eq!(report.anomalies[0].steps.len(), 3, "{report}");
}

#[test]
fn the_write_before_additions_comes_before_each() {
    let mut bench = Bench::new(2, 0);
    let [a, b, c] = bench.begin();
    let [set, sum] = bench.keys[..] else { unreachable!("two keys") };
    bench.history.write(a, sum);
    bench.history.commute(b, sum);
    bench.history.commute(c, sum);
    bench.history.write(c, set);
    bench.history.write(a, set);
    bench.commit(&[a, b, c]);
    let report = bench.finds(AnomalyKind::DirtyWrite, Level::Serializable);
    let text = "transaction 1.1 wrote version 1 of table[1]; transaction 3.1 wrote version 3, and only changes that \
                commute lie between.";
    assert!(report.to_string().contains(text), "{report}");
}

#[test]
fn each_addition_comes_before_the_write_after_them() {
    let mut bench = Bench::new(2, 0);
    let [a, b, c] = bench.begin();
    let [set, sum] = bench.keys[..] else { unreachable!("two keys") };
    bench.history.commute(a, sum);
    bench.history.commute(b, sum);
    bench.history.write(c, sum);
    bench.history.write(c, set);
    bench.history.write(a, set);
    bench.commit(&[a, b, c]);
    let report = bench.finds(AnomalyKind::DirtyWrite, Level::Serializable);
    let text = "transaction 1.1 wrote version 1 of table[1]; transaction 3.1 wrote version 3, and only changes that \
                commute lie between.";
    assert!(report.to_string().contains(text), "{report}");
}

#[test]
fn a_reader_between_two_additions_sees_one_of_them() {
    // It sees the addition of the second and not that of the first, which comes before it.
    let bench = crossed(|bench| {
        let reader = bench.history.begin(9);
        bench.history.read(reader, bench.keys[1]);
        bench.history.commit(reader);
    });
    let report = bench.finds(AnomalyKind::ReadSkew, Level::Serializable);
    let told = report.anomalies[0].to_string();
    for text in [
        "transaction 1.1 wrote version 1 of table[0]; transaction 2.1 replaced it with version 2.",
        "transaction 2.1 wrote version 3 of table[1]; transaction 9.1 read it.",
        "transaction 9.1 read version 3 of table[1]; transaction 1.1 replaced it with version 5.",
    ] {
        assert!(told.contains(text), "{told}");
    }
}

#[test]
fn a_reader_of_some_additions_is_told_with_those_that_it_saw_and_missed() {
    let mut bench = Bench::new(2, 0);
    let [a, b, reader, c, d] = bench.begin();
    let [set, sum] = bench.keys[..] else { unreachable!("two keys") };
    bench.history.commute(a, sum);
    let seen = bench.history.commute(b, sum);
    bench.history.commute(c, sum);
    bench.history.commute(d, sum);
    bench.history.read_version(reader, sum, seen);
    // The last addition comes before the first one, and neither is next to the version read.
    bench.history.write(d, set);
    bench.history.write(a, set);
    bench.commit(&[a, b, reader, c, d]);
    let report = bench.finds(AnomalyKind::ReadSkew, Level::Serializable);
    let told = report.anomalies[0].to_string();
    for text in [
        "transaction 1.1 wrote version 1 of table[1]; transaction 3.1 read version 2, which contains that change.",
        "transaction 3.1 read version 2 of table[1]; transaction 5.1 changed it after that with version 4, and only \
         changes that commute lie between.",
    ] {
        assert!(told.contains(text), "{told}");
    }
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
fn a_reader_of_no_addition_comes_before_all() {
    let mut bench = Bench::new(2, 0);
    let [reader, a, b] = bench.begin();
    let [set, sum] = bench.keys[..] else { unreachable!("two keys") };
    bench.history.read(reader, sum);
    bench.history.commute(a, sum);
    bench.history.commute(b, sum);
    bench.history.write(b, set);
    bench.history.read(reader, set);
    bench.commit(&[reader, a, b]);
    bench.finds(AnomalyKind::ReadSkew, Level::Serializable);
}

#[test]
fn a_reader_that_sees_an_addition_late_has_not_lost_an_update() {
    let mut bench = Bench::new(1, 0);
    let [a, b] = bench.begin();
    let key = bench.keys[0];
    bench.history.read(a, key);
    bench.history.commute(a, key);
    bench.history.commute(b, key);
    bench.history.read(a, key);
    bench.commit(&[a, b]);
    bench.finds(AnomalyKind::UnrepeatableRead, Level::Serializable);
}

#[test]
fn two_readers_that_miss_each_others_additions_are_a_skew() {
    let mut bench = Bench::new(1, 0);
    let [a, b] = bench.begin();
    let key = bench.keys[0];
    bench.history.read(a, key);
    bench.history.read(b, key);
    bench.history.commute(a, key);
    bench.history.commute(b, key);
    bench.commit(&[a, b]);
    bench.finds(AnomalyKind::WriteSkew, Level::Serializable);
}

#[test]
fn no_edge_between_additions_is_given_as_a_reason() {
    // Both transactions add to the first key and replace each other's versions of the others.
    let mut bench = Bench::new(3, 0);
    let [a, b] = bench.begin();
    let [sum, one, other] = bench.keys[..] else { unreachable!("three keys") };
    bench.history.commute(a, sum);
    bench.history.commute(b, sum);
    bench.history.commute(a, sum);
    for (first, second, key) in [(a, b, one), (b, a, other)] {
        bench.history.write(first, key);
        bench.history.write(second, key);
    }
    bench.commit(&[a, b]);
    let report = bench.finds(AnomalyKind::DirtyWrite, Level::Serializable);
    assert!(!report.to_string().contains("table[0]"), "{report}");
}

#[test]
fn a_writer_before_a_run_may_be_in_it() {
    let mut bench = Bench::new(1, 0);
    let [a, b] = bench.begin();
    let key = bench.keys[0];
    bench.history.write(a, key);
    bench.history.commute(b, key);
    bench.history.commute(a, key);
    bench.commit(&[a, b]);
    bench.finds_nothing();
}

#[test]
fn a_writer_after_a_run_may_be_in_it() {
    let mut bench = Bench::new(1, 0);
    let [a, b] = bench.begin();
    let key = bench.keys[0];
    bench.history.commute(a, key);
    bench.history.commute(b, key);
    bench.history.read(a, key);
    bench.history.write(a, key);
    bench.commit(&[a, b]);
    bench.finds_nothing();
}

#[test]
fn a_read_before_the_own_addition_may_miss_others() {
    // The other addition, which it missed, comes after it, although it was installed before its own.
    let mut bench = Bench::new(1, 0);
    let [a, b] = bench.begin();
    let key = bench.keys[0];
    bench.history.read(a, key);
    bench.history.commute(b, key);
    bench.history.commute(a, key);
    bench.commit(&[a, b]);
    bench.finds_nothing();
}

#[test]
fn a_read_after_the_own_addition_may_see_others() {
    // The other additions, which it saw, come before it, although they were installed after its own.
    let mut bench = Bench::new(1, 0);
    let [a, b, c, d] = bench.begin();
    let key = bench.keys[0];
    for attempt in [a, b, c, d, a, c, b] {
        bench.history.commute(attempt, key);
    }
    bench.history.read(a, key);
    bench.commit(&[a, b, c, d]);
    bench.finds_nothing();
}

#[test]
fn a_member_that_reads_is_ordered_with_each_other_member() {
    const MEMBERS: usize = 12;
    for (first, second, read) in [(0, 11, 10), (1, 9, 11), (3, 8, 2), (2, 11, 0), (5, 6, 11)] {
        for other in (0..MEMBERS).filter(|other| ![first, second].contains(other)) {
            for contradicts in [false, true] {
                let mut bench = Bench::new(2, 0);
                let attempts: [_; MEMBERS] = bench.begin();
                let [set, sum] = bench.keys[..] else { unreachable!("two keys") };
                let member = attempts[first];
                let mut versions = [0; MEMBERS];
                for (place, attempt) in attempts.into_iter().enumerate() {
                    let attempt = if place == second { member } else { attempt };
                    versions[place] = bench.history.commute(attempt, sum);
                }
                bench.history.read_version(member, sum, versions[read]);
                // The member comes after those whose additions its read contains, and before all others.
                let member_is_later = (other <= read) != contradicts;
                let order =
                    if member_is_later { [attempts[other], member] } else { [member, attempts[other]] };
                order.into_iter().for_each(|attempt| _ = bench.history.write(attempt, set));
                bench.commit(&attempts);
                let report = bench.report();
                assert_eq!(report.serializable, !contradicts, "{first} {second} {read} {other}: {report}");
            }
        }
    }
}

#[test]
fn a_read_of_the_own_addition_sees_those_before_it() {
    let mut bench = Bench::new(2, 0);
    let [a, b] = bench.begin();
    let [set, sum] = bench.keys[..] else { unreachable!("two keys") };
    // The first transaction comes before the second, and its own version has the other's addition.
    bench.history.write(a, set);
    bench.history.write(b, set);
    bench.history.commute(b, sum);
    bench.history.commute(a, sum);
    bench.history.read(a, sum);
    bench.commit(&[a, b]);
    bench.finds(AnomalyKind::CircularInformationFlow, Level::Serializable);
}

#[test]
fn a_change_without_effect_divides_no_run() {
    let mut bench = Bench::new(2, 0);
    let [a, b, lost] = bench.begin();
    let [set, sum] = bench.keys[..] else { unreachable!("two keys") };
    bench.history.write(a, set);
    bench.history.write(b, set);
    bench.history.commute(b, sum);
    bench.history.write(lost, sum);
    bench.history.abort(lost);
    bench.history.commute(a, sum);
    bench.commit(&[a, b]);
    bench.finds_nothing();
}

#[test]
fn an_unfinished_addition_counts_if_one_on_top_of_it_was_read() {
    let mut bench = Bench::new(2, 0);
    let [unfinished, a, reader] = bench.begin();
    let [set, sum] = bench.keys[..] else { unreachable!("two keys") };
    bench.history.commute(unfinished, sum);
    bench.history.commute(a, sum);
    bench.history.read(reader, sum);
    bench.history.write(reader, set);
    // It has seen what the reader wrote, and the reader has seen its addition.
    bench.history.read(unfinished, set);
    bench.commit(&[a, reader]);
    bench.finds(AnomalyKind::CircularInformationFlow, Level::Serializable);
}

#[test]
fn the_presence_that_an_addition_needs_orders_no_additions() {
    let mut bench = Bench::new(2, 0);
    let [a, b] = bench.begin();
    let [set, sum] = bench.keys[..] else { unreachable!("two keys") };
    bench.history.write(a, set);
    bench.history.write(b, set);
    let version = bench.history.commute(b, sum);
    bench.history.event(a, Event::Read { key: sum, version, kind: ReadKind::Predicate });
    bench.history.commute(a, sum);
    bench.commit(&[a, b]);
    bench.finds_nothing();
}

#[test]
fn additions_are_updates_for_range_reads() {
    let mut bench = Bench::new(1, 1);
    let [a, b, c, scanner] = bench.begin();
    let [there, absent] = bench.keys[..] else { unreachable!("two keys") };
    bench.history.scan(scanner, bench.object, Included(&[1]), Unbounded);
    bench.history.read(a, absent);
    bench.history.insert(a, absent);
    bench.history.commute(b, absent);
    bench.history.commute(c, absent);
    // The scanner has missed the key, so it comes before the insertion and the additions on top of it.
    bench.history.write(c, there);
    bench.history.read(scanner, there);
    bench.commit(&[a, b, c, scanner]);
    bench.finds(AnomalyKind::PhantomRead, Level::Serializable);
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
    // It knows its own version, although another one has replaced it.
    bench.history.read_version(a, one, version);
    bench.history.write(a, other);
    bench.commit(&[a]);
    let report = bench.finds_nothing();
    assert_eq!((report.counts.write_write_edges, report.counts.write_read_edges), (1, 1));
    assert_eq!(report.counts.read_write_edges, 0, "no edge leads from a transaction to itself");
}

#[test]
fn a_transaction_reads_its_own_insertion_and_deletion_in_later_pieces() {
    let mut bench = Bench::new(1, 1);
    let [a, b] = bench.begin();
    let [there, absent] = bench.keys[..] else { unreachable!("two keys") };
    bench.history.read(a, absent);
    bench.history.insert(a, absent);
    bench.history.delete(a, there);
    bench.history.read(a, absent);
    bench.history.read(a, there);
    bench.scan_all(a);
    bench.history.read(b, absent);
    bench.history.delete(b, absent);
    bench.commit(&[b]);
    bench.history.insert(a, there);
    bench.commit(&[a]);
    bench.finds_nothing();
}

#[test]
fn a_change_that_an_earlier_piece_has_installed_is_read_like_others() {
    let mut bench = Bench::new(1, 0);
    let [a] = bench.begin();
    bench.history.change(a, bench.keys[0]);
    bench.history.write(a, bench.keys[0]);
    bench.history.read(a, bench.keys[0]);
    bench.commit(&[a]);
    bench.finds_nothing();
}

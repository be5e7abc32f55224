//! The anomalies of values, stepped by hand, in every kind of object that holds values.
//!
//! A protocol decides who gets through: it may abort any of the transactions in any step. What is said here is
//! what must hold of those that committed, which is what would be true had they run one after the other; of all
//! transactions, if the protocol is opaque; and that not all of them were aborted.

use crate::support;
use crate::support::for_each_protocol;
use crate::support::numbers::Numbers;

#[test]
fn of_two_that_write_the_same_values_blindly_one_has_the_last_word_on_all() {
    // Which transaction writes which number, step by step.
    const ORDERS: [[(i64, usize); 4]; 4] = [
        [(1, 0), (2, 0), (2, 1), (1, 1)],
        [(1, 0), (2, 0), (1, 1), (2, 1)],
        // In opposite orders: who waited for the other would wait for ever.
        [(1, 0), (2, 1), (1, 1), (2, 0)],
        [(1, 0), (2, 1), (2, 0), (1, 1)],
    ];
    for_each_protocol!(3, |P| {
        for (order, first_commits) in ORDERS.into_iter().flat_map(|order| [(order, true), (order, false)]) {
            Numbers::<P>::interleave_each(&[0, 0], |engine, numbers, [mut t1, mut t2]| {
                for (transaction, position) in order {
                    let writer = if transaction == 1 { &mut t1 } else { &mut t2 };
                    writer.step(|tx| numbers.set(tx, position, transaction));
                }
                let mut ends = [(1, &mut t1), (2, &mut t2)];
                if !first_commits {
                    ends.reverse();
                }
                let committed: Vec<_> =
                    ends.into_iter().filter_map(|(number, end)| end.commit().then_some(number)).collect();
                assert!(!committed.is_empty());
                let now = engine.transact(|tx| numbers.all(tx)).unwrap();
                assert!(committed.iter().any(|writer| now == [*writer; 2]), "{now:?} by {committed:?}");
            });
        }
    });
}

#[test]
fn a_committed_transaction_has_read_nothing_uncommitted() {
    for_each_protocol!(3, |P| {
        Numbers::<P>::interleave_each(&[0, 0], |engine, numbers, [mut t1, mut t2]| {
            t1.step(|tx| numbers.set(tx, 0, 1));
            let seen = t2.step(|tx| numbers.get(tx, 0));
            t1.step(|tx| numbers.set(tx, 1, 1));
            let both = t2.step(|tx| numbers.all(tx));
            if t2.commit() {
                assert_eq!((seen, both), (Some(0), Some(vec![0, 0])), "a dirty read");
            }
            assert!(t1.commit() || t2.committed());
            let now = engine.transact(|tx| numbers.all(tx)).unwrap();
            assert_eq!(now, [i64::from(t1.committed()); 2]);
        });
    });
}

#[test]
fn nobody_commits_who_has_read_what_was_rolled_back() {
    for_each_protocol!(4, |P| {
        Numbers::<P>::interleave_each(&[0, 0], |engine, numbers, [mut t1, mut t2, mut t3]| {
            t1.step(|tx| numbers.set(tx, 0, 1));
            t1.step(|tx| numbers.add(tx, 1, 1));
            let before = t2.step(|tx| numbers.all(tx));
            t1.roll_back();
            let after = t2.step(|tx| numbers.all(tx));
            let later = t3.step(|tx| numbers.all(tx));
            t3.step(|tx| numbers.add(tx, 1, 10));
            assert_eq!(later, Some(vec![0, 0]));
            let read_by_t2 = t2.outcome().is_none();
            assert!(t3.commit() || read_by_t2, "nobody is in its way");
            if t2.commit() {
                assert_eq!((before, after), (Some(vec![0, 0]), Some(vec![0, 0])));
            }
            assert!(t2.committed() || t3.committed());
            assert_eq!(engine.transact(|tx| numbers.all(tx)), Ok(vec![0, 10 * i64::from(t3.committed())]));
        });
    });
}

#[test]
fn a_committed_transaction_has_read_no_value_between_two_writes_of_another() {
    for_each_protocol!(3, |P| {
        Numbers::<P>::interleave_each(&[0, 0], |_, numbers, [mut t1, mut t2]| {
            t1.step(|tx| numbers.set(tx, 0, 1));
            let between = t2.step(|tx| numbers.get(tx, 0));
            t1.step(|tx| numbers.add(tx, 0, 1));
            t1.commit();
            let after = t2.step(|tx| numbers.get(tx, 0));
            if t2.commit() {
                assert!(between == Some(0) || (t1.committed() && between == Some(2)), "{between:?}");
                assert_eq!(after, between, "a value that was read twice");
            }
            if support::is_opaque::<P>() {
                assert!(between.is_none_or(|seen| seen == 0), "before its writer has committed");
                assert!(after.is_none_or(|after| Some(after) == between));
            }
            assert!(t1.committed() || t2.committed());
        });
    });
}

#[test]
fn of_two_that_commit_not_each_has_seen_the_others_write_nor_missed_it() {
    for_each_protocol!(3, |P| {
        Numbers::<P>::interleave_each(&[0, 0], |_, numbers, [mut t1, mut t2]| {
            t1.step(|tx| numbers.set(tx, 0, 1));
            t2.step(|tx| numbers.set(tx, 1, 1));
            let first = t1.step(|tx| numbers.get(tx, 1));
            let second = t2.step(|tx| numbers.get(tx, 0));
            if t1.commit() & t2.commit() {
                let seen = (first.unwrap(), second.unwrap());
                assert!([(0, 1), (1, 0)].contains(&seen), "a circular flow: {seen:?}");
            }
            assert!(t1.committed() || t2.committed());
        });
    });
}

#[test]
fn no_update_is_lost() {
    for_each_protocol!(3, |P| {
        // True for the first and the second of them if it changes the number in place.
        for (in_place, too) in [(false, false), (false, true), (true, false), (true, true)] {
            Numbers::<P>::interleave_each(&[0], |engine, numbers, [mut t1, mut t2]| {
                let seen = [&mut t1, &mut t2].map(|t| t.step(|tx| numbers.get(tx, 0)));
                for (t, in_place, seen) in [(&mut t2, too, seen[1]), (&mut t1, in_place, seen[0])] {
                    t.step(|tx| match in_place {
                        true => numbers.add(tx, 0, 1),
                        false => numbers.set(tx, 0, seen.unwrap() + 1),
                    });
                    t.commit();
                }
                let committed = i64::from(t1.committed()) + i64::from(t2.committed());
                assert!(committed > 0);
                assert_eq!(engine.transact(|tx| numbers.get(tx, 0)), Ok(committed), "a lost update");
            });
        }
    });
}

#[test]
fn increments_in_place_add_up() {
    for_each_protocol!(3, |P| {
        Numbers::<P>::interleave_each(&[0], |engine, numbers, [mut t1, mut t2]| {
            t1.step(|tx| numbers.add(tx, 0, 1));
            t2.step(|tx| numbers.add(tx, 0, 10));
            t1.step(|tx| numbers.add(tx, 0, 100));
            let sum = if t2.commit() { 10 } else { 0 } + if t1.commit() { 101 } else { 0 };
            assert!(sum > 0);
            assert_eq!(engine.transact(|tx| numbers.get(tx, 0)), Ok(sum));
        });
    });
}

#[test]
fn a_committed_transaction_has_read_one_state() {
    for_each_protocol!(3, |P| {
        Numbers::<P>::interleave_each(&[0, 0], |_, numbers, [mut t1, mut t2]| {
            let first = t1.step(|tx| numbers.get(tx, 0));
            t2.step(|tx| numbers.set(tx, 0, 1));
            t2.step(|tx| numbers.add(tx, 1, 1));
            t2.commit();
            let second = t1.step(|tx| numbers.get(tx, 1));
            if t1.commit() || (support::is_opaque::<P>() && second.is_some()) {
                assert_eq!(first, second, "a read skew");
            }
            assert!(t1.committed() || t2.committed());
        });
    });
}

#[test]
fn two_withdrawals_do_not_both_trust_the_same_sum() {
    for_each_protocol!(3, |P| {
        Numbers::<P>::interleave_each(&[50, 50], |engine, numbers, [mut t1, mut t2]| {
            let mut withdrawn = 0;
            let sums = [&mut t1, &mut t2].map(|t| t.step(|tx| Ok(numbers.get(tx, 0)? + numbers.get(tx, 1)?)));
            for (position, (t, sum)) in [&mut t1, &mut t2].into_iter().zip(sums).enumerate() {
                t.step(|tx| match sum {
                    Some(100..) => numbers.add(tx, position, -100),
                    _ => Ok(()),
                });
            }
            for (t, sum) in [&mut t1, &mut t2].into_iter().zip(sums) {
                withdrawn += if t.commit() && sum >= Some(100) { 100 } else { 0 };
            }
            assert!(t1.committed() || t2.committed());
            let left: i64 = engine.transact(|tx| numbers.all(tx)).unwrap().into_iter().sum();
            assert_eq!(left, 100 - withdrawn);
            assert!(left >= 0, "a write skew");
        });
    });
}

#[test]
fn a_condition_on_many_values_is_the_same_when_it_is_looked_at_again() {
    for_each_protocol!(3, |P| {
        Numbers::<P>::interleave_each(&[1, 2, 3], |engine, numbers, [mut t1, mut t2]| {
            let least =
                |numbers: Vec<i64>, bound| numbers.into_iter().filter(|number| *number >= bound).count();
            let before = t1.step(|tx| Ok(least(numbers.all(tx)?, 10)));
            t2.step(|tx| numbers.set(tx, 1, 30));
            t2.commit();
            let after = t1.step(|tx| Ok(least(numbers.all(tx)?, 20)));
            if t1.commit() || (support::is_opaque::<P>() && after.is_some()) {
                assert_eq!(before, after, "a predicate with many predecessors");
            }
            assert!(t1.committed() || t2.committed());
            let now = engine.transact(|tx| numbers.all(tx)).unwrap();
            assert_eq!(now, [1, if t2.committed() { 30 } else { 2 }, 3]);
        });
    });
}

#[test]
fn a_change_of_what_meets_a_condition_comes_before_or_after_a_change_of_all() {
    for_each_protocol!(3, |P| {
        for first_commits in [true, false] {
            Numbers::<P>::interleave_each(&[10, 20], |engine, numbers, [mut t1, mut t2]| {
                t1.step(|tx| numbers.add(tx, 0, 10));
                let found = t2.step(|tx| numbers.all(tx));
                t1.step(|tx| numbers.add(tx, 1, 10));
                if first_commits {
                    t1.commit();
                }
                t2.step(|tx| {
                    let meet = found.iter().flatten().enumerate().filter(|(_, number)| **number == 20);
                    meet.into_iter().try_for_each(|(position, _)| numbers.set(tx, position, 0))
                });
                t2.commit();
                if !first_commits {
                    t1.commit();
                }
                let now = engine.transact(|tx| numbers.all(tx)).unwrap();
                match (t1.committed(), t2.committed()) {
                    (true, true) => {
                        assert!([[0, 30], [20, 10]].iter().any(|serial| now == serial), "{now:?}")
                    }
                    (true, false) => assert_eq!(now, [20, 30]),
                    (false, true) => assert_eq!(now, [10, 0]),
                    (false, false) => panic!("both aborted"),
                }
            });
        }
    });
}

#[test]
fn one_transactions_writes_do_not_vanish_in_part_under_anothers() {
    for_each_protocol!(4, |P| {
        Numbers::<P>::interleave_each(&[0, 0], |_, numbers, [mut t1, mut t2, mut t3]| {
            t1.step(|tx| numbers.set(tx, 0, 1));
            t1.step(|tx| numbers.set(tx, 1, 1));
            t2.step(|tx| numbers.set(tx, 0, 2));
            t1.commit();
            let mut seen = vec![t3.step(|tx| numbers.get(tx, 0))];
            t2.step(|tx| numbers.set(tx, 1, 2));
            seen.push(t3.step(|tx| numbers.get(tx, 1)));
            t2.commit();
            seen.push(t3.step(|tx| numbers.get(tx, 1)));
            seen.push(t3.step(|tx| numbers.get(tx, 0)));
            let one_state = seen.iter().flatten().all(|value| Some(*value) == seen[0]);
            if t3.commit() || support::is_opaque::<P>() {
                assert!(one_state, "observed and vanished: {seen:?}");
            }
            if t3.committed() {
                let seen = seen[0].unwrap();
                assert!(seen == 0 || [&t1, &t2][seen as usize - 1].committed(), "{seen}");
            }
            assert!(t1.committed() || t2.committed() || t3.committed());
        });
    });
}

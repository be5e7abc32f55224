//! All interleavings of small transactions, one after the other, each checked against all serial orders.

mod combination;

use crate::support::for_each_protocol;
use Operation::{Add, Apply, Delete, Get, Insert, Plus, Scan, Set, Take};
use combination::{Combination, Container, Operation, State, Trace, each_schedule, fresh};
use hotrow::{Direction, Protocol};

const UP: Operation = Scan(Direction::Ascending);
const DOWN: Operation = Scan(Direction::Descending);

/// States in which a table's rows are found.
const STATES: [State; 3] = [[None, None], [Some(1), None], [Some(1), Some(2)]];

const TABLES: [Container; 4] = [Container::Hash, Container::Ordered, Container::Secondary, Container::Unique];

/// Checks transactions in a table of one kind, or in an ordered one if they scan and that kind has no order.
fn check_rows<P: Protocol, const N: usize>(
    container: Container,
    before: State,
    programs: [&[Operation]; N],
    rolls_back: Option<usize>,
) -> usize {
    let scans = programs.concat().iter().any(|operation| matches!(operation, Scan(_)));
    let container = if scans && container == Container::Hash { Container::Ordered } else { container };
    Combination { container, before, programs, rolls_back }.check::<P>()
}

/// Calls `visit` with all pairs of transactions of two operations on rows, numbered.
fn each_pair_on_rows(mut visit: impl FnMut(usize, [&[Operation]; 2])) {
    let single = |key| [Get(key), Add(key), Insert(key), Delete(key)];
    let operations = [single(0).as_slice(), &single(1), &[UP, DOWN]].concat();
    let programs: Vec<_> =
        operations.iter().flat_map(|first| operations.iter().map(|second| [*first, *second])).collect();
    let mut number = 0;
    for (position, first) in programs.iter().enumerate() {
        for second in &programs[position..] {
            visit(number, [first, second]);
            number += 1;
        }
    }
}

#[test]
fn schedules_are_all_orders_of_the_steps() {
    let mut schedules = Vec::new();
    each_schedule(&mut Vec::new(), [2, 1], &mut |schedule| schedules.push(schedule.to_vec()));
    assert_eq!(schedules, [vec![0, 0, 1], vec![0, 1, 0], vec![1, 0, 0]]);
    let mut count = 0;
    each_schedule(&mut Vec::new(), [3, 3, 3], &mut |_| count += 1);
    assert_eq!(count, 1_680);
}

#[test]
fn results_that_no_serial_order_explains_are_found() {
    let combination = Combination {
        container: Container::Boxes,
        before: [Some(1), Some(1)],
        programs: [&[Get(0), Set(1)], &[Get(1), Set(0)]],
        rolls_back: None,
    };
    let trace = |value, began, ended, committed| Trace {
        learned: vec![[Some(value), None], [None, None]],
        committed,
        began,
        ended,
    };
    let is_serial = |traces: &[Trace; 2], left: &[usize]| {
        combination.is_serial(traces, left, combination.before, [Some(fresh(2)), Some(fresh(1))])
    };
    let skew = [trace(1, 0, 4, true), trace(1, 1, 5, true)];
    assert!(!is_serial(&skew, &[0, 1]), "each missed the other's write");
    let ordered = [trace(1, 0, 4, true), trace(fresh(1), 1, 5, true)];
    assert!(is_serial(&ordered, &[0, 1]));
    assert!(!is_serial(&ordered, &[0]), "a write that nobody committed");
    let stale = [trace(1, 3, 5, true), trace(fresh(1), 0, 2, true)];
    assert!(!is_serial(&stale, &[0, 1]), "it had ended before the other one began");
    let vanished = [trace(1, 0, 4, true), trace(1, 1, 5, false)];
    assert!(!is_serial(&vanished, &[0, 1]), "an aborted one's write");
}

#[test]
fn two_transactions_on_boxes_are_serial_in_every_schedule() {
    const PROGRAMS: [&[Operation]; 8] = [
        &[Get(0), Get(1)],
        &[Get(0), Set(1)],
        &[Get(1), Set(0)],
        &[Get(0), Add(0)],
        &[Add(0), Add(1)],
        &[Set(1), Set(0)],
        &[Add(1), UP],
        &[Get(0), Set(0), Get(0)],
    ];
    for_each_protocol!(3, |P| {
        for first in PROGRAMS {
            for second in PROGRAMS {
                let (container, before) = (Container::Boxes, [Some(1), Some(2)]);
                let combination =
                    Combination { container, before, programs: [first, second], rolls_back: None };
                combination.check::<P>();
            }
        }
    });
}

#[test]
fn two_transactions_on_rows_are_serial_in_every_schedule() {
    for_each_protocol!(3, |P| {
        let mut schedules = 0;
        each_pair_on_rows(|number, programs| {
            // A part of them, in each kind of table and each state by turns; the long test has all.
            if number % 16 == 0 {
                let (container, before) = (TABLES[number / 16 % 4], STATES[number / 64 % 3]);
                schedules += check_rows::<P, 2>(container, before, programs, None);
            }
        });
        assert!(schedules > 4_500, "{schedules}");
    });
}

#[test]
#[ignore = "long: run with -- --ignored"]
fn any_two_transactions_on_rows_are_serial_in_every_schedule() {
    for_each_protocol!(3, |P| {
        each_pair_on_rows(|_, programs| {
            for (container, before) in
                TABLES.into_iter().flat_map(|container| STATES.map(|state| (container, state)))
            {
                for rolls_back in [None, Some(0), Some(1)] {
                    check_rows::<P, 2>(container, before, programs, rolls_back);
                }
            }
        });
    });
}

/// Checks every pair of longer transactions in each kind of table and each state, or one in `step` of these cases.
fn check_longer<P: Protocol>(step: usize) {
    const PAIRS: [[&[Operation]; 2]; 10] = [
        [&[Insert(0), Delete(0), Insert(0)], &[Get(0), UP, Get(0)]],
        [&[Delete(0), Insert(0), UP], &[Add(0), DOWN, Delete(1)]],
        [&[UP, Insert(0), DOWN], &[UP, Insert(1), DOWN]],
        [&[Get(0), Get(1), Insert(0)], &[Get(1), Get(0), Insert(1)]],
        [&[Add(0), Add(1), Get(0)], &[Get(1), Delete(0), Set(0)]],
        [&[Set(0), Set(1), UP], &[Delete(1), Delete(0), UP]],
        [&[Plus(0), Plus(1)], &[Plus(1), Plus(0), UP]],
        [&[Get(0), Plus(0), Plus(1)], &[Plus(0), Get(1)]],
        [&[Plus(0), Plus(0), Get(0)], &[Delete(0), Insert(0)]],
        [&[Plus(0), Add(0), Plus(0)], &[Set(0), Plus(1)]],
    ];
    let places = || TABLES.into_iter().flat_map(|container| STATES.map(|state| (container, state)));
    let rolls_back = [None, None, Some(0), None, Some(1)].into_iter().cycle();
    for (number, (programs, rolls_back)) in PAIRS.into_iter().zip(rolls_back).enumerate() {
        // So that each pair meets each kind of table.
        for (container, before) in places().skip(number % step).step_by(step) {
            check_rows::<P, 2>(container, before, programs, rolls_back);
        }
    }
}

#[test]
fn longer_transactions_on_rows_are_serial_in_every_schedule() {
    for_each_protocol!(3, |P| {
        check_longer::<P>(2);
    });
}

#[test]
#[ignore = "long: run with -- --ignored"]
fn all_longer_transactions_on_rows_are_serial_in_every_schedule() {
    for_each_protocol!(3, |P| {
        check_longer::<P>(1);
    });
}

#[test]
fn transactions_that_change_at_the_commit_are_serial_in_every_schedule() {
    const CONTAINERS: [Container; 4] =
        [Container::Boxes, Container::Hash, Container::Ordered, Container::Secondary];
    const PAIRS: [[&[Operation]; 2]; 12] = [
        [&[Take(0), Get(1)], &[Take(0), Set(1)]],
        [&[Take(0), Set(1)], &[Take(1), Set(0)]],
        [&[Take(0), Take(0)], &[Take(0), Get(0)]],
        [&[Take(0), Apply(0), Take(0)], &[Set(0), Get(1)]],
        [&[Take(0), Set(0), Get(1)], &[Take(0), Apply(1)]],
        [&[Take(0), Get(0)], &[Apply(0), Take(0)]],
        [&[Apply(0), Apply(1)], &[Apply(1), Apply(0)]],
        [&[Apply(0), Get(0), Apply(1)], &[Set(1), Apply(0)]],
        [&[Get(0), Apply(1)], &[Get(1), Apply(0)]],
        [&[Get(0), Take(0), Get(1)], &[Add(0), Apply(1)]],
        [&[Set(0), Take(0)], &[Apply(0), Take(1)]],
        [&[Take(0), UP], &[Take(1), Apply(0)]],
    ];
    for_each_protocol!(3, |P| {
        for (number, programs) in PAIRS.into_iter().enumerate() {
            for container in CONTAINERS {
                let rolls_back = [None, None, Some(0), Some(1)][number % 4];
                // Of the first key there is enough for one, of the second one for two.
                check_rows::<P, 2>(container, [Some(1), Some(2)], programs, rolls_back);
            }
        }
        let programs: [&[Operation]; 3] = [&[Take(0), Get(1)], &[Take(0), Apply(1)], &[Apply(0), Take(1)]];
        check_rows::<P, 3>(Container::Hash, [Some(1), Some(2)], programs, None);
    });
}

/// Checks the first of the triples on boxes, and the first of those on rows, under a protocol.
fn check_triples<P: Protocol>(on_boxes: usize, on_rows: usize) {
    const ON_BOXES: [[&[Operation]; 3]; 3] = [
        [&[Get(0), Set(1)], &[Get(1), Set(0)], &[Get(0), Get(1)]],
        [&[Set(0), Set(1)], &[Set(1), Set(0)], &[Get(0), Get(1)]],
        [&[Add(0), Get(1)], &[Add(1), Get(0)], &[Get(0), Set(0)]],
    ];
    const ON_ROWS: [[&[Operation]; 3]; 5] = [
        [&[Insert(0), Get(1)], &[Insert(1), Get(0)], &[UP, DOWN]],
        [&[Delete(0), Insert(1)], &[Add(0), Delete(1)], &[UP, Insert(0)]],
        [&[Insert(0), Delete(0)], &[Insert(0), Get(0)], &[Get(0), Insert(0)]],
        [&[UP, Insert(0)], &[DOWN, Insert(1)], &[Delete(0), Delete(1)]],
        [&[Add(0), Get(1)], &[Delete(0), Insert(0)], &[Get(0), Add(1)]],
    ];
    for programs in ON_BOXES.into_iter().take(on_boxes) {
        let (container, before) = (Container::Boxes, [Some(1), Some(2)]);
        assert_eq!(Combination { container, before, programs, rolls_back: None }.check::<P>(), 1_680);
    }
    for (number, programs) in ON_ROWS.into_iter().enumerate().take(on_rows) {
        check_rows::<P, 3>(TABLES[(number + 1) % 4], STATES[number % 3], programs, None);
    }
}

#[test]
fn three_transactions_are_serial_in_every_schedule() {
    for_each_protocol!(4, |P| {
        check_triples::<P>(1, 3);
    });
}

#[test]
#[ignore = "long: run with -- --ignored"]
fn more_triples_of_transactions_are_serial_in_every_schedule() {
    for_each_protocol!(4, |P| {
        check_triples::<P>(3, 5);
    });
}

//! The cases of Hermitage (Martin Kleppmann), with transactions on threads of their own that are stepped one statement at a time.
//!
//! The judge knows no anomaly by name: the transactions that have committed must have read, and left behind, what they would have in
//! some serial order. A statement that waits for a lock stays behind while the others go on.

// The threads are stepped from outside of the library, so they need none of its own means to wait.
#![allow(clippy::disallowed_types)]

use crate::support::{connect, instance, run};
use hotrow::sync::thread;
use hotrow_sql::{Canceller, Instance};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// The time after which a statement is taken to wait, and that after which it is cancelled.
const PATIENCE: Duration = Duration::from_millis(8);
const LIMIT: Duration = Duration::from_secs(2);

const READ_ALL: &str = "SELECT * FROM test ORDER BY id";

/// A case: its name, and its statements, each with the number of its transaction.
type Case = (&'static str, &'static [(usize, &'static str)]);

const ONE_IS_11: &str = "UPDATE test SET value = 11 WHERE id = 1";
const ONE_IS_12: &str = "UPDATE test SET value = 12 WHERE id = 1";
const TWO_IS_18: &str = "UPDATE test SET value = 18 WHERE id = 2";
const READ_1: &str = "SELECT * FROM test WHERE id = 1";
const READ_2: &str = "SELECT * FROM test WHERE id = 2";
const THIRDS: &str = "SELECT * FROM test WHERE value % 3 = 0 ORDER BY id";

const CASES: &[Case] = &[
    (
        "G0, write cycles",
        &[
            (0, ONE_IS_11),
            (1, ONE_IS_12),
            (0, "UPDATE test SET value = 21 WHERE id = 2"),
            (0, "COMMIT"),
            (1, "UPDATE test SET value = 22 WHERE id = 2"),
        ],
    ),
    (
        "G1a, aborted reads",
        &[(0, "UPDATE test SET value = 101 WHERE id = 1"), (1, READ_ALL), (0, "ROLLBACK"), (1, READ_ALL)],
    ),
    (
        "G1b, intermediate reads",
        &[
            (0, "UPDATE test SET value = 101 WHERE id = 1"),
            (1, READ_ALL),
            (0, ONE_IS_11),
            (0, "COMMIT"),
            (1, READ_ALL),
        ],
    ),
    (
        "G1c, circular information flow",
        &[(0, ONE_IS_11), (1, "UPDATE test SET value = 22 WHERE id = 2"), (0, READ_2), (1, READ_1)],
    ),
    (
        "OTV, an observed transaction vanishes",
        &[
            (0, ONE_IS_11),
            (0, "UPDATE test SET value = 19 WHERE id = 2"),
            (1, ONE_IS_12),
            (0, "COMMIT"),
            (2, READ_1),
            (1, TWO_IS_18),
            (2, READ_2),
            (1, "COMMIT"),
            (2, READ_2),
            (2, READ_1),
        ],
    ),
    (
        "PMP, predicate-many-preceders",
        &[
            (0, "SELECT * FROM test WHERE value = 30"),
            (1, "INSERT INTO test VALUES (3, 30)"),
            (1, "COMMIT"),
            (0, THIRDS),
        ],
    ),
    (
        "PMP for writes",
        &[
            (0, "UPDATE test SET value = value + 10"),
            (1, "SELECT * FROM test WHERE value = 20"),
            (1, "DELETE FROM test WHERE value = 20"),
            (0, "COMMIT"),
            (1, READ_ALL),
        ],
    ),
    ("P4, lost update", &[(0, READ_1), (1, READ_1), (0, ONE_IS_11), (1, ONE_IS_12), (0, "COMMIT")]),
    (
        "P4 by an addition at the commit",
        &[
            (0, READ_1),
            (1, "UPDATE test SET value = value + 1 WHERE id = 1"),
            (0, "UPDATE test SET value = 20 WHERE id = 1"),
            (1, "COMMIT"),
        ],
    ),
    (
        "G-single, read skew",
        &[(0, READ_1), (1, READ_1), (1, READ_2), (1, ONE_IS_12), (1, TWO_IS_18), (1, "COMMIT"), (0, READ_2)],
    ),
    (
        "G-single with predicates",
        &[
            (0, "SELECT * FROM test WHERE value % 5 = 0 ORDER BY id"),
            (1, "UPDATE test SET value = 12 WHERE value = 10"),
            (1, "COMMIT"),
            (0, THIRDS),
        ],
    ),
    (
        "G-single with a write predicate",
        &[
            (0, READ_1),
            (1, READ_ALL),
            (1, ONE_IS_12),
            (1, TWO_IS_18),
            (1, "COMMIT"),
            (0, "DELETE FROM test WHERE value = 20"),
            (0, READ_2),
        ],
    ),
    (
        "G-single with writes that meet",
        &[
            (0, READ_1),
            (1, READ_ALL),
            (1, ONE_IS_12),
            (0, "DELETE FROM test WHERE value = 20"),
            (1, TWO_IS_18),
            (0, "ROLLBACK"),
        ],
    ),
    (
        "G2-item, write skew",
        &[
            (0, "SELECT * FROM test WHERE id IN (1, 2) ORDER BY id"),
            (1, "SELECT * FROM test WHERE id IN (1, 2) ORDER BY id"),
            (0, ONE_IS_11),
            (1, "UPDATE test SET value = 21 WHERE id = 2"),
        ],
    ),
    (
        "G2, anti-dependency cycles",
        &[
            (0, THIRDS),
            (1, THIRDS),
            (0, "INSERT INTO test VALUES (3, 30)"),
            (1, "INSERT INTO test VALUES (4, 42)"),
        ],
    ),
    (
        "G2 by an index",
        &[
            (0, "SELECT id FROM test WHERE value BETWEEN 30 AND 50 ORDER BY id"),
            (1, "SELECT id FROM test WHERE value BETWEEN 30 AND 50 ORDER BY id"),
            (0, "INSERT INTO test VALUES (3, 30)"),
            (1, "UPDATE test SET value = 42 WHERE id = 2"),
        ],
    ),
    (
        "G2 with two edges",
        &[
            (0, READ_ALL),
            (1, "UPDATE test SET value = value + 5 WHERE id = 2"),
            (1, "COMMIT"),
            (2, READ_ALL),
            (2, "COMMIT"),
            (0, "UPDATE test SET value = 0 WHERE id = 1"),
        ],
    ),
];

fn prepared(protocol: &str) -> Instance {
    let instance = instance(protocol);
    let mut connection = connect(&instance);
    run(&mut connection, "CREATE TABLE test (id int PRIMARY KEY, value int)");
    run(&mut connection, "CREATE INDEX ON test (value)");
    run(&mut connection, "INSERT INTO test VALUES (1, 10), (2, 20)");
    instance
}

/// The statements of each transaction, without their ends.
fn statements(case: &Case) -> Vec<Vec<&'static str>> {
    let count = case.1.iter().map(|(number, _)| number + 1).max().unwrap_or(0);
    let of = |number| {
        let own = case.1.iter().filter(move |(whose, text)| *whose == number && *text != "COMMIT");
        own.map(|(_, text)| *text).collect()
    };
    (0..count).map(of).collect()
}

/// The results of a run of a case: of each transaction that has committed the results of its statements, and the rows at the end.
#[derive(Debug, PartialEq, Eq)]
struct Shown {
    transactions: Vec<Option<Vec<String>>>,
    rows: Vec<String>,
}

/// A transaction on its own thread.
struct Stepped {
    texts: Sender<&'static str>,
    results: Receiver<Vec<String>>,
    canceller: Canceller,
    open: usize,
    known: Vec<Vec<String>>,
}

impl Stepped {
    fn begin<'s>(scope: &'s thread::Scope<'s, '_>, instance: Instance) -> Self {
        let (texts, to_run) = channel::<&str>();
        let (done, results) = channel();
        let (begun, cancellers) = channel();
        scope.spawn(move || {
            let mut connection = connect(&instance);
            begun.send(connection.canceller()).unwrap();
            for text in to_run {
                done.send(run(&mut connection, text)).unwrap();
            }
        });
        Self { texts, results, canceller: cancellers.recv().unwrap(), open: 0, known: Vec::new() }
    }

    fn step(&mut self, text: &'static str) {
        self.texts.send(text).unwrap();
        self.open += 1;
        while self.open > 0 && self.wait(PATIENCE) {}
    }

    fn wait(&mut self, time: Duration) -> bool {
        let Ok(result) = self.results.recv_timeout(time) else { return false };
        self.known.push(result);
        self.open -= 1;
        true
    }

    fn finish(&mut self) {
        while self.open > 0 {
            if !self.wait(LIMIT) {
                self.canceller.cancel();
            }
        }
    }

    /// The results of its statements, if it has committed.
    fn committed(&self) -> Option<Vec<String>> {
        let (last, others) = self.known.split_last()?;
        let statements = &others[1..];
        // A block that has begun with READ has no other results than these.
        let texts = statements.iter().map(|result| result.join("|")).collect();
        (last == &["COMMIT"]).then_some(texts)
    }
}

fn run_case(protocol: &str, case: &Case) -> Shown {
    let instance = prepared(protocol);
    let transactions = thread::scope(|scope| {
        let count = statements(case).len();
        let mut all: Vec<Stepped> = (0..count).map(|_| Stepped::begin(scope, instance.clone())).collect();
        let mut has_ended = vec![false; count];
        all.iter_mut().for_each(|one| one.step("BEGIN"));
        for (number, text) in case.1 {
            all[*number].step(text);
            has_ended[*number] |= matches!(*text, "COMMIT" | "ROLLBACK");
        }
        for (one, _) in all.iter_mut().zip(has_ended).filter(|(_, has_ended)| !has_ended) {
            one.step("COMMIT");
        }
        all.iter_mut().for_each(Stepped::finish);
        all.iter().map(Stepped::committed).collect()
    });
    Shown { transactions, rows: run(&mut connect(&instance), READ_ALL) }
}

/// The results of the transactions, run in this order one after the other.
fn run_in_order(case: &Case, order: &[usize]) -> Shown {
    let instance = prepared("occ");
    let mut connection = connect(&instance);
    let statements = statements(case);
    let mut transactions = vec![None; statements.len()];
    for number in order {
        run(&mut connection, "BEGIN");
        let results = statements[*number].iter().map(|text| run(&mut connection, text).join("|")).collect();
        assert_eq!(run(&mut connection, "COMMIT"), ["COMMIT"]);
        transactions[*number] = Some(results);
    }
    Shown { transactions, rows: run(&mut connection, READ_ALL) }
}

fn orders(of: &[usize]) -> Vec<Vec<usize>> {
    if of.is_empty() {
        return vec![Vec::new()];
    }
    let with_first = |first: usize| {
        let rest: Vec<usize> = of.iter().copied().filter(|other| *other != first).collect();
        orders(&rest).into_iter().map(move |rest| [&[first], rest.as_slice()].concat())
    };
    of.iter().copied().flat_map(with_first).collect()
}

fn is_serial(case: &Case, shown: &Shown) -> bool {
    let committed: Vec<usize> =
        (0..shown.transactions.len()).filter(|at| shown.transactions[*at].is_some()).collect();
    orders(&committed).iter().any(|order| run_in_order(case, order) == *shown)
}

fn judge(protocol: &str) {
    let mut all_lost = Vec::new();
    for case in CASES {
        let shown = run_case(protocol, case);
        assert!(is_serial(case, &shown), "{protocol}: {}: {shown:?}", case.0);
        // One that is to roll back may be for what the other one has lost.
        let rolls_back = case.1.iter().any(|(_, text)| *text == "ROLLBACK");
        if !rolls_back && shown.transactions.iter().all(Option::is_none) {
            all_lost.push(case.0);
        }
    }
    assert!(all_lost.is_empty(), "{protocol}: nobody has committed: {all_lost:?}");
}

#[test]
fn the_judge_refuses_what_no_serial_order_shows() {
    let case = CASES.iter().find(|(name, _)| name.starts_with("P4, ")).unwrap();
    let read = |update: &str| Some(vec!["1,10".to_owned(), update.to_owned()]);
    let lost_update =
        Shown { transactions: vec![read("UPDATE 1"), read("UPDATE 1")], rows: vec!["1,12;2,20".to_owned()] };
    assert!(!is_serial(case, &lost_update));
    let alone = Shown { transactions: vec![read("UPDATE 1"), None], rows: vec!["1,11;2,20".to_owned()] };
    assert!(is_serial(case, &alone));
}

#[test]
fn occ_commits_no_anomaly() {
    judge("occ");
}

#[test]
fn plor_commits_no_anomaly() {
    judge("plor");
}

#[test]
fn tictoc_commits_no_anomaly() {
    judge("tictoc");
}

#[test]
fn two_phase_locking_commits_no_anomaly() {
    judge("2pl-mcs");
}

#[test]
fn wound_wait_commits_no_anomaly() {
    judge("wound-wait");
}

#[test]
fn drp_commits_no_anomaly() {
    judge("drp");
}

#[test]
fn tl2_commits_no_anomaly() {
    judge("tl2");
}

#[test]
fn mocc_commits_no_anomaly() {
    judge("mocc");
}

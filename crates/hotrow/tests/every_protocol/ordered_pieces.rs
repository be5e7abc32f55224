//! Procedures in pieces by ranks, under `ic3`: what others see early, and when they end; transactions that are not known; failures.

use crate::gate::{Gate, until};
use hotrow::chopping::Chopping;
use hotrow::sync::atomic::{AtomicU64, Ordering};
use hotrow::sync::{Arc, thread};
use hotrow::{
    Abort, Any, Context, Counter, Database, Error, Operations, Procedure, Procedures, Table, TableRef,
    Transaction,
};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What a [`Both`] does besides.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Failure {
    None,
    /// Rolls back for the first number.
    RollsBack,
    /// Panics at the second number.
    Panics,
    /// Reads a table that no trace shows.
    Strays,
}

/// Adds to a number in each of two tables, which all others of its kind do, too. Waits at a gate before the second one.
struct Both {
    first: TableRef<u64, u64>,
    second: TableRef<u64, u64>,
    other: TableRef<u64, u64>,
    key: u64,
    gate: Arc<Gate>,
    /// The first number that it has seen.
    seen: Arc<AtomicU64>,
    failure: Failure,
}

impl Procedure for Both {
    type Output = (u64, u64);

    fn name(&self) -> &'static str {
        "both"
    }

    fn run<C: Context>(&self, cx: &mut C) -> Result<C::Val<(u64, u64)>, C::Stop> {
        let Self { first, second, key, failure, .. } = *self;
        let (at, one, seen) = (cx.value(key), cx.value(1), self.seen.clone());
        let before = cx.update(first, at, one, move |number, one| {
            seen.store(*number, Ordering::SeqCst);
            *number += one;
            *number - one
        })?;
        if failure == Failure::Strays {
            let at = cx.value(0);
            cx.read(self.other, at, |number| *number)?;
        }
        if failure == Failure::RollsBack {
            return Err(cx.rollback());
        }
        let (at, one, gate) = (cx.value(key), cx.value(1), self.gate.clone());
        let after = cx.update(second, at, one, move |number, one| {
            gate.wait();
            assert!(failure != Failure::Panics, "as told");
            *number += one;
            *number - one
        })?;
        let numbers = cx.zip(before, after);
        Ok(cx.map(numbers, |(before, after)| (before.unwrap_or(0), after.unwrap_or(0))))
    }
}

/// Reads both numbers, in pieces.
struct Look {
    first: TableRef<u64, u64>,
    second: TableRef<u64, u64>,
    key: u64,
}

impl Procedure for Look {
    type Output = (u64, u64);

    fn name(&self) -> &'static str {
        "look"
    }

    fn run<C: Context>(&self, cx: &mut C) -> Result<C::Val<(u64, u64)>, C::Stop> {
        let Self { first, second, key } = *self;
        let at = cx.value(key);
        let one = cx.read(first, at, |number| *number)?;
        let at = cx.value(key);
        let other = cx.read(second, at, |number| *number)?;
        let numbers = cx.zip(one, other);
        Ok(cx.map(numbers, |(one, other)| (one.unwrap_or(0), other.unwrap_or(0))))
    }
}

/// Rolls back if the first numbers of the tables differ, or if both are large.
struct Refuse {
    first: TableRef<u64, u64>,
    second: TableRef<u64, u64>,
    seen: Arc<AtomicU64>,
}

impl Procedure for Refuse {
    type Output = ();

    fn name(&self) -> &'static str {
        "refuse"
    }

    fn run<C: Context>(&self, cx: &mut C) -> Result<C::Val<()>, C::Stop> {
        let (at, seen) = (cx.value(0), self.seen.clone());
        let one = cx.read(self.first, at, move |number| {
            seen.store(*number, Ordering::SeqCst);
            *number
        })?;
        let at = cx.value(0);
        let other = cx.read(self.second, at, |number| *number)?;
        let both = cx.zip(one, other);
        let holds = cx.map(both, |(one, other)| one == other && one < Some(1_000));
        cx.require(holds)?;
        Ok(cx.value(()))
    }
}

struct Tables {
    db: Database<Any>,
    first: Table<u64, u64, Any>,
    second: Table<u64, u64, Any>,
    other: Table<u64, u64, Any>,
}

impl Tables {
    fn new() -> Self {
        let db: Database<Any> = Database::builder().protocol("ic3").open().unwrap();
        let table = |name: &str| {
            let table = db.table::<u64, u64>(name).create().unwrap();
            table.bulk_insert((0..2).map(|key| (key, 0))).unwrap();
            table
        };
        let (first, second, other) = (table("first"), table("second"), table("other"));
        let tables = Self { db, first, second, other };
        let both = tables.db.trace(&tables.both(Gate::open())).unwrap();
        let look = tables.db.trace(&tables.look()).unwrap();
        let refuse = tables.db.trace(&tables.refuse()).unwrap();
        let chopping = Chopping::new().procedure("both", [both]).procedure("look", [look]);
        let chopping = chopping.procedure("refuse", [refuse]);
        let graph = chopping.rank().unwrap();
        assert!(graph.procedures[..2].iter().all(|procedure| procedure.pieces.len() == 2));
        assert_eq!(graph.procedures[2].pieces.len(), 1, "it decides upon both");
        tables.db.chop(&chopping).unwrap();
        tables
    }

    fn both(&self, gate: Arc<Gate>) -> Both {
        Both {
            first: self.first.reference(),
            second: self.second.reference(),
            other: self.other.reference(),
            key: 0,
            gate,
            seen: Arc::new(AtomicU64::new(u64::MAX)),
            failure: Failure::None,
        }
    }

    fn refuse(&self) -> Refuse {
        let (first, second) = (self.first.reference(), self.second.reference());
        Refuse { first, second, seen: Arc::new(AtomicU64::new(u64::MAX)) }
    }

    fn look(&self) -> Look {
        Look { first: self.first.reference(), second: self.second.reference(), key: 0 }
    }

    fn read(&self, tx: &mut Transaction<'_, Any>) -> Result<(u64, u64), Abort> {
        Ok((self.first.get(tx, &0)?.unwrap(), self.second.get(tx, &0)?.unwrap()))
    }

    fn now(&self) -> (u64, u64) {
        self.db.transact(|tx| self.read(tx)).unwrap()
    }

    fn count(&self, counter: &Counter) -> u64 {
        self.db.statistics().count(counter)
    }
}

#[test]
fn a_procedure_commits_in_pieces_by_ranks() {
    let tables = Tables::new();
    for number in 0..3 {
        assert_eq!(tables.db.execute(&tables.both(Gate::open())), Ok((number, number)));
    }
    assert_eq!(tables.db.execute(&tables.look()), Ok((3, 3)));
    assert_eq!(tables.count(&Counter::PIECES), 4, "each has one piece that others follow");
    assert_eq!(tables.now(), (3, 3));
}

#[test]
fn a_piece_is_seen_at_once_and_those_that_see_it_end_later() {
    let tables = Tables::new();
    let gate = Gate::new();
    let first = tables.both(gate.clone());
    let second = tables.both(Gate::open());
    let (looks, elsewhere) = (tables.look(), Both { key: 1, ..tables.both(Gate::open()) });
    thread::scope(|scope| {
        let one = scope.spawn(|| tables.db.execute(&first));
        until(|| gate.arrived.load(Ordering::SeqCst));
        let other = scope.spawn(|| tables.db.execute(&second));
        until(|| second.seen.load(Ordering::SeqCst) != u64::MAX);
        assert_eq!(second.seen.load(Ordering::SeqCst), 1, "it sees what the first has not finished");
        let reader = scope.spawn(|| tables.db.execute(&looks));
        assert_eq!(tables.db.execute(&elsewhere), Ok((0, 0)), "other rows are in nobody's way");
        until(|| tables.count(&Counter::DEPENDENCIES) >= 2);
        for _ in 0..100 {
            thread::yield_now();
        }
        assert!(!other.is_finished() && !reader.is_finished(), "they wait for the one before");
        gate.open.store(true, Ordering::SeqCst);
        assert_eq!(one.join().unwrap(), Ok((0, 0)));
        assert_eq!(other.join().unwrap(), Ok((1, 1)));
        let (first, second) = reader.join().unwrap().unwrap();
        assert!(first == second && first > 0, "the reader comes after the first one, in both tables");
    });
}

#[test]
fn neither_updates_are_lost_nor_parts_seen() {
    let tables = Tables::new();
    const THREADS: u64 = 4;
    const EACH: u64 = 300;
    let recording = tables.db.record_history(1 << 26).unwrap();
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                let mut worker = tables.db.worker().unwrap();
                for number in 0..EACH {
                    let (first, second) =
                        tables.db.execute_on(&mut worker, &tables.both(Gate::open())).unwrap();
                    assert_eq!(first, second);
                    match number % 50 {
                        0 => {
                            let (first, second) = worker.transact(|tx| tables.read(tx)).unwrap();
                            assert_eq!(first, second, "a closure sees whole transactions");
                        }
                        10 => {
                            let snapshot = tables.db.snapshot_strict().unwrap();
                            let (first, second) = snapshot.transact(|tx| tables.read(tx)).unwrap();
                            assert_eq!(first, second, "and so does a snapshot");
                        }
                        _ => {
                            let (first, second) = tables.db.execute_on(&mut worker, &tables.look()).unwrap();
                            assert_eq!(first, second);
                        }
                    }
                }
            });
        }
    });
    assert_eq!(tables.now(), (THREADS * EACH, THREADS * EACH));
    let report = hotrow_check::check(&recording.finish()).unwrap();
    assert!(report.is(report.claimed()), "{report}");
    assert!(tables.count(&Counter::PIECES) > 0 && tables.count(&Counter::WHOLE) > 0);
}

#[test]
fn transactions_that_are_not_known_and_snapshots_see_no_part_of_another() {
    let tables = Tables::new();
    let gate = Gate::new();
    let procedure = tables.both(gate.clone());
    thread::scope(|scope| {
        let running = scope.spawn(|| tables.db.execute(&procedure));
        until(|| gate.arrived.load(Ordering::SeqCst));
        let reader = scope.spawn(|| tables.now());
        let snapshot = scope.spawn(|| {
            let snapshot = tables.db.snapshot_strict().unwrap();
            snapshot.transact(|tx| tables.read(tx)).unwrap()
        });
        for _ in 0..100 {
            thread::yield_now();
        }
        assert!(!reader.is_finished() && !snapshot.is_finished(), "they wait for the last piece");
        gate.open.store(true, Ordering::SeqCst);
        running.join().unwrap().unwrap();
        assert_eq!(reader.join().unwrap(), (1, 1));
        assert_eq!(snapshot.join().unwrap(), (1, 1));
    });
}

#[test]
fn a_transaction_that_is_one_piece_beside_an_unknown_one_is_in_the_order_too() {
    let tables = Tables::new();
    let mut worker = tables.db.worker().unwrap();
    let mut open = worker.begin();
    assert_eq!(tables.other.get(&mut open, &1), Ok(Some(0)));
    let before = tables.count(&Counter::PIECES);
    assert_eq!(tables.db.execute(&tables.both(Gate::open())), Ok((0, 0)));
    assert_eq!(tables.count(&Counter::PIECES), before, "it is one piece");
    drop(open);
    assert_eq!(tables.db.execute(&tables.both(Gate::open())), Ok((1, 1)));
    assert_eq!(tables.count(&Counter::PIECES), before + 1);
}

#[test]
fn rollbacks_leave_nothing_and_procedures_that_stray_run_whole() {
    let tables = Tables::new();
    let rolls_back = Both { failure: Failure::RollsBack, ..tables.both(Gate::open()) };
    assert!(matches!(tables.db.execute(&rolls_back), Err(Error::Rollback(_))));
    assert_eq!(tables.now(), (0, 0));
    let before = tables.count(&Counter::WHOLE);
    let strays = Both { failure: Failure::Strays, ..tables.both(Gate::open()) };
    assert_eq!(tables.db.execute(&strays), Ok((0, 0)));
    assert_eq!(tables.count(&Counter::WHOLE), before + 1);
    assert_eq!(tables.db.execute(&tables.both(Gate::open())), Ok((1, 1)), "nobody waits for those");
}

/// A procedure that decides is not told of its decision before those have ended whose pieces it has seen, and decides upon whole ones.
#[test]
fn decisions_are_upon_whole_transactions() {
    let tables = Tables::new();
    let gate = Gate::new();
    let procedure = tables.both(gate.clone());
    let refuse = tables.refuse();
    thread::scope(|scope| {
        let running = scope.spawn(|| tables.db.execute(&procedure));
        until(|| gate.arrived.load(Ordering::SeqCst));
        let decided = scope.spawn(|| tables.db.execute(&refuse));
        until(|| refuse.seen.load(Ordering::SeqCst) == 1);
        for _ in 0..100 {
            thread::yield_now();
        }
        assert!(!decided.is_finished(), "half of a transaction is nothing to decide upon");
        gate.open.store(true, Ordering::SeqCst);
        running.join().unwrap().unwrap();
        assert_eq!(decided.join().unwrap(), Ok(()), "both numbers are the same");
    });
}

#[test]
fn a_panic_after_the_first_piece_leaves_it_committed_and_stops_nobody() {
    let tables = Tables::new();
    let gate = Gate::new();
    let first = Both { failure: Failure::Panics, ..tables.both(gate.clone()) };
    let second = tables.both(Gate::open());
    thread::scope(|scope| {
        let one = scope.spawn(|| catch_unwind(AssertUnwindSafe(|| tables.db.execute(&first))).is_err());
        until(|| gate.arrived.load(Ordering::SeqCst));
        let other = scope.spawn(|| tables.db.execute(&second));
        until(|| second.seen.load(Ordering::SeqCst) != u64::MAX);
        gate.open.store(true, Ordering::SeqCst);
        assert!(one.join().unwrap(), "the panic passes on");
        assert_eq!(other.join().unwrap(), Ok((1, 0)), "one that has seen the first piece ends all the same");
    });
    assert_eq!(tables.now(), (2, 1));
    let snapshot = tables.db.snapshot_strict().unwrap();
    assert_eq!(snapshot.transact(|tx| tables.read(tx)), Ok((2, 1)));
}

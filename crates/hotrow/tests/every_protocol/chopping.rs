//! Procedures in pieces, under `chop` and `chop-htm`: the anomalies of dbx-tc §4, transactions that are not known, and failures.

use crate::gate::{Gate, until};
use hotrow::chopping::{Chopping, ChoppingError};
use hotrow::sync::atomic::{AtomicU64, Ordering};
use hotrow::sync::{Arc, thread};
use hotrow::{
    Abort, Any, Context, Counter, CounterValue, Database, Error, Operations, Procedure, Procedures, Table,
    TableRef, Transaction, Worker,
};
use std::panic::{AssertUnwindSafe, catch_unwind};

fn first_rows(
    tx: &mut Transaction<'_, Any>,
    one: &Table<u64, u64, Any>,
    other: &Table<u64, u64, Any>,
) -> Result<(u64, u64), Abort> {
    Ok((one.get(tx, &0)?.unwrap(), other.get(tx, &0)?.unwrap()))
}

/// Sets a number that others set, too, waits, and adds to another (dbx-tc, Figure 7): the addition is a piece of its own.
struct Both {
    numbers: TableRef<u64, u64>,
    sums: TableRef<u64, u64>,
    quiet: TableRef<u64, u64>,
    number: u64,
    amount: u64,
    gate: Arc<Gate>,
}

impl Procedure for Both {
    type Output = Option<u64>;

    fn name(&self) -> &'static str {
        "both"
    }

    fn run<C: Context>(&self, cx: &mut C) -> Result<C::Val<Option<u64>>, C::Stop> {
        let Self { numbers, sums, quiet, number, amount, .. } = *self;
        let (key, number) = (cx.value(0), cx.value(number));
        let before = cx.update(numbers, key, number, std::mem::replace)?;
        let (key, gate) = (cx.value(0), self.gate.clone());
        cx.read(quiet, key, move |_| gate.wait())?;
        let (key, amount) = (cx.value(0), cx.value(amount));
        cx.commute(sums, key, amount, |sum, amount| *sum += amount)?;
        Ok(before)
    }
}

/// The variants that execute procedures in pieces. Where there are no hardware transactions, both do the same.
const VARIANTS: [&str; 2] = ["chop", "chop-htm"];

struct Tables {
    db: Database<Any>,
    numbers: Table<u64, u64, Any>,
    sums: Table<u64, u64, Any>,
    quiet: Table<u64, u64, Any>,
}

impl Tables {
    fn empty(variant: &str) -> Self {
        let db: Database<Any> = Database::builder().protocol(variant).open().unwrap();
        let table = |name: &str| {
            let table = db.table::<u64, u64>(name).create().unwrap();
            table.bulk_insert((0..2).map(|key| (key, 0))).unwrap();
            table
        };
        let (numbers, sums, quiet) = (table("numbers"), table("sums"), table("quiet"));
        Self { db, numbers, sums, quiet }
    }

    fn references(&self) -> (TableRef<u64, u64>, TableRef<u64, u64>, TableRef<u64, u64>) {
        (self.numbers.reference(), self.sums.reference(), self.quiet.reference())
    }

    /// With the procedure `both` in pieces.
    fn new(variant: &str) -> Self {
        let tables = Self::empty(variant);
        let trace = tables.db.trace(&tables.both(1, 1, Gate::open())).unwrap();
        let chopping = Chopping::new().procedure("both", [trace]).readers_on_snapshots();
        let graph = chopping.analyse().unwrap();
        assert_eq!(graph.procedures[0].pieces.len(), 3, "the number, the read, the addition");
        tables.db.chop(&chopping).unwrap();
        tables
    }

    fn both(&self, number: u64, amount: u64, gate: Arc<Gate>) -> Both {
        let (numbers, sums, quiet) = self.references();
        Both { numbers, sums, quiet, number, amount, gate }
    }

    /// Number and sum.
    fn now(&self) -> (u64, u64) {
        self.db.transact(|tx| first_rows(tx, &self.numbers, &self.sums)).unwrap()
    }

    /// Number and sum on a strict snapshot.
    fn on_snapshot(&self) -> (u64, u64) {
        let snapshot = self.db.snapshot_strict().unwrap();
        snapshot.transact(|tx| first_rows(tx, &self.numbers, &self.sums)).unwrap()
    }

    fn count(&self, counter: &Counter) -> u64 {
        let statistics = self.db.statistics();
        let found = statistics.counters.iter().find(|(known, _)| known.name() == counter.name());
        match found.expect("chop has the counter").1 {
            CounterValue::Count(count) => count,
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_procedure_commits_in_pieces() {
    for variant in VARIANTS {
        a_procedure_commits_in_pieces_under(variant);
    }
}

fn a_procedure_commits_in_pieces_under(variant: &str) {
    let tables = Tables::new(variant);
    assert_eq!(tables.db.execute(&tables.both(7, 5, Gate::open())), Ok(Some(0)));
    assert_eq!(tables.db.execute(&tables.both(8, 5, Gate::open())), Ok(Some(7)));
    assert_eq!(tables.now(), (8, 10));
    assert_eq!(tables.count(&Counter::PIECES), 2);
}

/// dbx-tc, Figure 7: the first transaction is serialized before the second one, but adds later. A snapshot between the two has the
/// first one's addition and not the second one's.
#[test]
fn additions_are_made_to_the_snapshots_that_see_their_transactions() {
    for variant in VARIANTS {
        additions_are_made_to_the_snapshots_that_see_their_transactions_under(variant);
    }
}

fn additions_are_made_to_the_snapshots_that_see_their_transactions_under(variant: &str) {
    let tables = Tables::new(variant);
    assert_eq!(tables.on_snapshot(), (0, 0));
    let gate = Gate::new();
    let first = tables.both(1, 1, gate.clone());
    thread::scope(|scope| {
        let first = scope.spawn(|| tables.db.execute(&first));
        until(|| gate.arrived.load(Ordering::SeqCst));
        // It sees the first transaction, and so waits until that has ended.
        let reader = scope.spawn(|| tables.on_snapshot());
        // Transactions that begin after the snapshot's moment have a later stamp. When that is, only the result shows; so until the
        // reader is there, others come.
        let mut number = 2;
        while tables.db.snapshots().open.is_empty() && number < 2_000 {
            tables.db.execute(&tables.both(number, 1_000, Gate::open())).unwrap();
            number += 1;
        }
        assert!(!reader.is_finished(), "a part of a transaction is seen by nobody");
        gate.open.store(true, Ordering::SeqCst);
        assert_eq!(first.join().unwrap(), Ok(Some(0)));
        let (seen, sum) = reader.join().unwrap();
        assert_eq!(sum, (seen - 1) * 1_000 + 1, "all transactions up to the one whose number is seen");
        assert_eq!(tables.now(), (number - 1, (number - 2) * 1_000 + 1));
    });
}

/// Reads a number that others set, waits, and adds to another one, which nobody but readers sees (dbx-tc, Figure 4).
struct ReadThenAdd {
    numbers: TableRef<u64, u64>,
    sums: TableRef<u64, u64>,
    quiet: TableRef<u64, u64>,
    gate: Arc<Gate>,
}

impl Procedure for ReadThenAdd {
    type Output = ();

    fn name(&self) -> &'static str {
        "read then add"
    }

    fn run<C: Context>(&self, cx: &mut C) -> Result<C::Val<()>, C::Stop> {
        let key = cx.value(0);
        let seen = cx.read(self.numbers, key, |number| *number)?;
        let (key, gate) = (cx.value(0), self.gate.clone());
        cx.read(self.quiet, key, move |_| gate.wait())?;
        let amount = cx.map(seen, |seen| seen.unwrap_or(0) + 100);
        let key = cx.value(0);
        cx.commute(self.sums, key, amount, |sum, amount| *sum += amount)?;
        Ok(cx.value(()))
    }
}

/// Sets a number.
struct SetNumber {
    numbers: TableRef<u64, u64>,
    number: u64,
}

impl Procedure for SetNumber {
    type Output = ();

    fn name(&self) -> &'static str {
        "set"
    }

    fn run<C: Context>(&self, cx: &mut C) -> Result<C::Val<()>, C::Stop> {
        let (key, number) = (cx.value(0), cx.value(self.number));
        cx.replace(self.numbers, key, number)?;
        Ok(cx.value(()))
    }
}

/// dbx-tc, Figures 4 and 5: a transaction whose conflicting piece only reads comes before one that sets the number afterwards, and
/// ends later. No snapshot has the second without the first.
#[test]
fn a_snapshot_has_no_transaction_without_those_before_it() {
    let tables = Tables::empty("chop-htm");
    let (numbers, sums, quiet) = tables.references();
    let reads = |gate| ReadThenAdd { numbers, sums, quiet, gate };
    let sets = SetNumber { numbers, number: 1 };
    let chopping = Chopping::new()
        .procedure("read then add", [tables.db.trace(&reads(Gate::open())).unwrap()])
        .procedure("set", [tables.db.trace(&sets).unwrap()])
        .readers_on_snapshots();
    assert_eq!(chopping.analyse().unwrap().procedures[0].pieces.len(), 3);
    tables.db.chop(&chopping).unwrap();
    assert_eq!(tables.on_snapshot(), (0, 0));
    let gate = Gate::new();
    let first = reads(gate.clone());
    thread::scope(|scope| {
        let first = scope.spawn(|| tables.db.execute(&first).unwrap());
        until(|| gate.arrived.load(Ordering::SeqCst));
        tables.db.execute(&sets).unwrap();
        let reader = scope.spawn(|| tables.on_snapshot());
        for _ in 0..100 {
            thread::yield_now();
        }
        assert!(!reader.is_finished(), "it sees the second, and waits for the first");
        gate.open.store(true, Ordering::SeqCst);
        first.join().unwrap();
        assert_eq!(reader.join().unwrap(), (1, 100));
    });
}

#[test]
fn transactions_that_are_not_known_exclude_pieces() {
    for variant in VARIANTS {
        transactions_that_are_not_known_exclude_pieces_under(variant);
    }
}

fn transactions_that_are_not_known_exclude_pieces_under(variant: &str) {
    let tables = Tables::new(variant);
    let mut worker: Worker<Any> = tables.db.worker().unwrap();
    let mut open = worker.begin();
    let _ = tables.quiet.get(&mut open, &1);
    let before = (tables.count(&Counter::PIECES), tables.count(&Counter::WHOLE));
    assert_eq!(tables.db.execute(&tables.both(3, 1, Gate::open())), Ok(Some(0)), "it is one piece");
    let after = (tables.count(&Counter::PIECES), tables.count(&Counter::WHOLE));
    assert_eq!(after, before, "it is not in pieces, and keeps nobody from being so");
    drop(open);
    assert_eq!(tables.db.execute(&tables.both(4, 1, Gate::open())), Ok(Some(3)));
    assert_eq!(tables.count(&Counter::PIECES), before.0 + 1);
}

#[test]
fn transactions_that_are_not_known_see_no_part_of_another() {
    for variant in VARIANTS {
        transactions_that_are_not_known_see_no_part_of_another_under(variant);
    }
}

fn transactions_that_are_not_known_see_no_part_of_another_under(variant: &str) {
    let tables = Tables::new(variant);
    let gate = Gate::new();
    let procedure = tables.both(9, 4, gate.clone());
    thread::scope(|scope| {
        let running = scope.spawn(|| tables.db.execute(&procedure));
        until(|| gate.arrived.load(Ordering::SeqCst));
        let reader = scope.spawn(|| tables.now());
        for _ in 0..100 {
            thread::yield_now();
        }
        assert!(!reader.is_finished(), "it waits for the last piece");
        gate.open.store(true, Ordering::SeqCst);
        running.join().unwrap().unwrap();
        assert_eq!(reader.join().unwrap(), (9, 4));
    });
}

/// Sets a number, and another table's if told so: a way that its trace does not show.
struct Strays {
    numbers: TableRef<u64, u64>,
    sums: TableRef<u64, u64>,
    strays: bool,
    /// True if the second operation needs the result of the first, which its trace does not show either.
    depends: bool,
    fails: bool,
}

impl Procedure for Strays {
    type Output = ();

    fn name(&self) -> &'static str {
        "strays"
    }

    fn run<C: Context>(&self, cx: &mut C) -> Result<C::Val<()>, C::Stop> {
        let (key, one) = (cx.value(0), cx.value(1));
        let number = cx.update(self.numbers, key, one, |number, one| {
            *number += one;
            *number
        })?;
        if self.strays {
            let (key, one) = (cx.value(0), cx.value(1));
            cx.update(self.sums, key, one, |sum, one| *sum += one)?;
        }
        if self.fails {
            return Err(cx.rollback());
        }
        let (key, one) = (cx.value(1), cx.value(1));
        let added =
            if self.depends { cx.map(number, |number| number.map_or(0, |number| 100 * number)) } else { one };
        cx.commute(self.sums, key, added, |sum, added| *sum += added)?;
        Ok(cx.value(()))
    }
}

#[test]
fn a_procedure_that_strays_from_its_traces_runs_whole() {
    let db: Database<Any> = Database::builder().protocol("chop").open().unwrap();
    let table = |name: &str| {
        let table = db.table::<u64, u64>(name).create().unwrap();
        table.bulk_insert((0..2).map(|key| (key, 0))).unwrap();
        table
    };
    let (numbers, sums) = (table("numbers"), table("sums"));
    let (number_ref, sum_ref) = (numbers.reference(), sums.reference());
    let strays = |strays, fails| Strays { numbers: number_ref, sums: sum_ref, strays, depends: false, fails };
    let trace = db.trace(&strays(false, false)).unwrap();
    db.chop(&Chopping::new().procedure("strays", [trace])).unwrap();
    db.execute(&strays(false, false)).unwrap();
    let sums_now = || db.transact(|tx| Ok((sums.get(tx, &0)?, sums.get(tx, &1)?))).unwrap();
    assert_eq!(sums_now(), (Some(0), Some(1)));
    db.execute(&strays(true, false)).unwrap();
    assert_eq!(sums_now(), (Some(1), Some(2)));
    assert!(matches!(db.execute(&strays(true, true)), Err(Error::Rollback(_))));
    assert!(matches!(db.execute(&strays(false, true)), Err(Error::Rollback(_))));
    assert_eq!(sums_now(), (Some(1), Some(2)), "a rollback leaves nothing");
    assert_eq!(db.transact(|tx| numbers.get(tx, &0)).unwrap(), Some(2));
    db.execute(&Strays { depends: true, ..strays(false, false) }).unwrap();
    assert_eq!(sums_now(), (Some(1), Some(302)), "it needs what was not kept, and so runs whole");
}

/// Panics after its first piece.
struct Panics {
    numbers: TableRef<u64, u64>,
    sums: TableRef<u64, u64>,
    totals: TableRef<u64, u64>,
    calls: Arc<AtomicU64>,
    panics: bool,
}

impl Procedure for Panics {
    type Output = ();

    fn name(&self) -> &'static str {
        "panics"
    }

    fn run<C: Context>(&self, cx: &mut C) -> Result<C::Val<()>, C::Stop> {
        let (key, one) = (cx.value(0), cx.value(1));
        cx.update(self.numbers, key, one, |number, one| *number += one)?;
        let (key, calls, panics) = (cx.value(0), self.calls.clone(), self.panics);
        cx.read(self.sums, key, move |_| {
            calls.fetch_add(1, Ordering::Relaxed);
            assert!(!panics, "as told");
        })?;
        let (key, one) = (cx.value(0), cx.value(1));
        cx.commute(self.totals, key, one, |sum, one| *sum += one)?;
        Ok(cx.value(()))
    }
}

#[test]
fn a_panic_after_the_first_piece_leaves_it_committed_and_stops_nobody() {
    let db: Database<Any> = Database::builder().protocol("chop").open().unwrap();
    let table = |name: &str| {
        let table = db.table::<u64, u64>(name).create().unwrap();
        table.bulk_insert([(0, 0)]).unwrap();
        table
    };
    let (numbers, sums, totals) = (table("numbers"), table("sums"), table("totals"));
    let calls = Arc::new(AtomicU64::new(0));
    let procedure = |panics| {
        let (numbers, sums, totals) = (numbers.reference(), sums.reference(), totals.reference());
        Panics { numbers, sums, totals, calls: calls.clone(), panics }
    };
    let trace = db.trace(&procedure(false)).unwrap();
    db.chop(&Chopping::new().procedure("panics", [trace]).readers_on_snapshots()).unwrap();
    calls.store(0, Ordering::Relaxed);
    let panicked = catch_unwind(AssertUnwindSafe(|| db.execute(&procedure(true))));
    assert!(panicked.is_err() && calls.load(Ordering::Relaxed) == 1);
    assert_eq!(db.transact(|tx| numbers.get(tx, &0)).unwrap(), Some(1));
    let snapshot = db.snapshot_strict().unwrap();
    assert_eq!(snapshot.transact(|tx| numbers.get(tx, &0)).unwrap(), Some(1));
    db.execute(&procedure(false)).unwrap();
    assert_eq!(db.transact(|tx| numbers.get(tx, &0)).unwrap(), Some(2));
}

#[test]
fn a_database_is_chopped_once() {
    for variant in VARIANTS {
        a_database_is_chopped_once_under(variant);
    }
}

fn a_database_is_chopped_once_under(variant: &str) {
    let tables = Tables::new(variant);
    let trace = tables.db.trace(&tables.both(1, 1, Gate::open())).unwrap();
    let again = Chopping::new().procedure("both", [trace]);
    assert_eq!(tables.db.chop(&again), Err(ChoppingError::Chopped));
    assert_eq!(
        tables.db.chop(&Chopping::new().procedure("none", [])),
        Err(ChoppingError::NoTrace("none".into()))
    );
}

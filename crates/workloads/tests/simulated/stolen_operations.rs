//! Operations in other workers' hands: each runs once, fails for its owner alone, and waits for nobody for ever.
use hotrow::Any;
use hotrow::sync::Arc;
use hotrow::sync::atomic::instrument::{AtomicU64, Ordering};
use hotrow::{
    ConstraintViolated, Context, Counter, Database, Engine, Error, Operations, Procedure, Procedures, Reason,
    TableRef,
};
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The row that all transactions want first.
const HOT: u64 = 1_000_000;

struct Data {
    database: Database<Any>,
    rows: TableRef<u64, u64>,
}

impl Data {
    fn new(engine: &Engine<Any>, keys: u64) -> Self {
        let database = Database::on(engine);
        let rows = database.table("rows").hash(keys as usize + 1).load().unwrap();
        [HOT].into_iter().chain(0..keys).for_each(|key| rows.insert(key, 0).unwrap());
        let rows = rows.finish().unwrap().reference();
        Self { database, rows }
    }

    /// The rows' values, in the order of their keys; [`HOT`] is the last. Each can be locked: nobody else is there.
    fn sums(&self, engine: &Engine<Any>, keys: u64) -> Vec<u64> {
        let table = self.database.table_of(self.rows);
        let mut update = |key: u64| {
            let updated = engine.try_transact(|tx| table.update_if_present(tx, &key, |row| *row));
            updated.expect("nobody has the lock").expect("it is there")
        };
        (0..keys).chain([HOT]).map(&mut update).collect()
    }
}

/// Adds one to each of some rows, [`HOT`] first, and notes how often each addition was run.
struct Counted<'a> {
    data: &'a Data,
    keys: Vec<u64>,
    /// Of the attempt that was made last.
    runs: RefCell<Arc<[AtomicU64]>>,
}

impl Procedure for Counted<'_> {
    type Output = ();

    fn run<C: Context>(&self, cx: &mut C) -> Result<C::Val<()>, C::Stop> {
        let runs: Arc<[AtomicU64]> = (0..self.keys.len()).map(|_| AtomicU64::new(0)).collect();
        *self.runs.borrow_mut() = runs.clone();
        let mut before = cx.value(1);
        for (number, key) in self.keys.iter().enumerate() {
            let runs = runs.clone();
            let key = cx.value(*key);
            // Every third one needs what the one before it has made.
            let one = if number % 3 == 2 { before.clone() } else { cx.value(1) };
            let added = cx.update(self.data.rows, key, one, move |row, one| {
                runs[number].fetch_add(1, Ordering::Relaxed);
                *row += one;
                one
            })?;
            before = cx.map(added, |one| one.expect("it is there"));
        }
        Ok(cx.value(()))
    }
}

#[test]
fn each_operation_of_an_attempt_that_commits_has_run_exactly_once() {
    const KEYS: u64 = 24;
    for protocol in crate::simulated::stealing() {
        let mut stolen = 0;
        for seed in 0..400 {
            let engine = crate::simulated::engine(&protocol);
            let data = Data::new(&engine, KEYS);
            let cores = 3 + (seed % 2) as usize;
            crate::simulated::crew::run(&engine, cores, seed, |core, worker| {
                for number in 0..3 {
                    let first = (core as u64 * 5 + number * 7) % KEYS;
                    let keys = [HOT].into_iter().chain((first..KEYS).chain(0..first).step_by(3)).collect();
                    let procedure = Counted { data: &data, keys, runs: RefCell::new(Arc::new([])) };
                    assert_eq!(data.database.execute_on(worker, &procedure), Ok(()));
                    let runs = procedure.runs.borrow();
                    let runs: Vec<u64> = runs.iter().map(|runs| runs.load(Ordering::Relaxed)).collect();
                    assert!(runs.iter().all(|runs| *runs == 1), "{protocol}, seed {seed}: {runs:?}");
                }
            });
            let statistics = engine.statistics();
            assert_eq!(statistics.commits, cores as u64 * 3);
            assert_eq!(data.sums(&engine, KEYS).last(), Some(&statistics.commits));
            stolen += statistics.count(&Counter::STOLEN_OPERATIONS);
        }
        assert!(stolen > 1_000, "{protocol}: {stolen} operations were stolen");
    }
}

/// Adds one to a hot row of a table without constraints, and to some rows of one whose rows stay below four.
struct Checked<'a> {
    database: &'a Database<Any>,
    hot: TableRef<u64, u64>,
    rows: TableRef<u64, u64>,
    keys: Vec<u64>,
}

impl Procedure for Checked<'_> {
    type Output = ();

    fn run<C: Context>(&self, cx: &mut C) -> Result<C::Val<()>, C::Stop> {
        let (hot, one) = (cx.value(HOT), cx.value(1));
        cx.update(self.hot, hot, one.clone(), |row, one| *row += one)?;
        for key in &self.keys {
            let key = cx.value(*key);
            cx.update(self.rows, key, one.clone(), |row, one| *row += one)?;
        }
        Ok(cx.value(()))
    }
}

#[test]
fn rows_that_thieves_have_changed_are_judged_by_the_owner() {
    const KEYS: u64 = 24;
    for protocol in crate::simulated::stealing() {
        let mut stolen = 0;
        for seed in 0..100 {
            let engine = crate::simulated::engine(&protocol);
            let database = Database::on(&engine);
            let hot = database.table("hot").hash(1).create().unwrap();
            hot.bulk_insert([(HOT, 0)]).unwrap();
            let hot = hot.reference();
            let rows = database.table("rows").hash(KEYS as usize);
            let rows = rows.check("below four", |_: &u64, row: &u64| *row < 4).create().unwrap();
            rows.bulk_insert((0..KEYS).map(|key| (key, 0))).unwrap();
            let rows = rows.reference();
            let refused = AtomicU64::new(0);
            crate::simulated::crew::run(&engine, 4, seed, |core, worker| {
                for number in 0..3 {
                    let first = (core as u64 * 5 + number * 7) % KEYS;
                    let keys = (first..KEYS).chain(0..first).step_by(3).collect();
                    let procedure = Checked { database: &database, hot, rows, keys };
                    if let Err(error) = procedure.database.execute_on(worker, &procedure) {
                        assert!(error.downcast_ref::<ConstraintViolated>().is_some(), "{error}");
                        refused.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
            let left = engine.transact(|tx| {
                (0..KEYS).map(|key| database.table_of(rows).get(tx, &key)).collect::<Result<Vec<_>, _>>()
            });
            assert!(left.unwrap().into_iter().all(|row| row.unwrap() < 4), "{protocol}, seed {seed}");
            let committed = engine.transact(|tx| database.table_of(hot).get(tx, &HOT)).unwrap();
            assert_eq!(committed, Some(12 - refused.load(Ordering::Relaxed)), "{protocol}, seed {seed}");
            stolen += engine.statistics().count(&Counter::STOLEN_OPERATIONS);
        }
        assert!(stolen > 100, "{protocol}: {stolen} operations were stolen");
    }
}

#[test]
fn operations_that_are_more_than_a_board_has_run_exactly_once() {
    const KEYS: u64 = 600;
    for protocol in crate::simulated::stealing() {
        let mut stolen = 0;
        for seed in 0..6 {
            let engine = crate::simulated::engine(&protocol);
            let data = Data::new(&engine, KEYS);
            crate::simulated::crew::run(&engine, 3, seed, |core, worker| {
                let first = core as u64 * 200;
                let keys: Vec<u64> = [HOT].into_iter().chain((first..KEYS).chain(0..first)).collect();
                let procedure = Counted { data: &data, keys, runs: RefCell::new(Arc::new([])) };
                assert_eq!(data.database.execute_on(worker, &procedure), Ok(()));
                let runs = procedure.runs.borrow();
                assert!(runs.iter().all(|runs| runs.load(Ordering::Relaxed) == 1), "{protocol}, seed {seed}");
            });
            assert_eq!(data.sums(&engine, KEYS), [3; KEYS as usize + 1]);
            stolen += engine.statistics().count(&Counter::STOLEN_OPERATIONS);
        }
        assert!(stolen > 500, "{protocol}: {stolen} operations were stolen");
    }
}

/// Adds one to two hot rows, in one order or the other, and to rows between them.
struct Crossing<'a> {
    data: &'a Data,
    hot: [u64; 2],
    between: Vec<u64>,
}

impl Procedure for Crossing<'_> {
    type Output = ();

    fn run<C: Context>(&self, cx: &mut C) -> Result<C::Val<()>, C::Stop> {
        let keys = self.hot[..1].iter().chain(&self.between).chain(&self.hot[1..]);
        for key in keys {
            let (key, one) = (cx.value(*key), cx.value(1));
            cx.update(self.data.rows, key, one, |row, one| *row += one)?;
        }
        Ok(cx.value(()))
    }
}

#[test]
fn deadlocks_over_locks_that_others_took_for_an_attempt_are_found() {
    const KEYS: u64 = 10;
    for protocol in crate::simulated::stealing() {
        let (mut stolen, mut deadlocks) = (0, 0);
        for seed in 0..400 {
            let engine = crate::simulated::engine(&protocol);
            let data = Data::new(&engine, KEYS);
            let cores = 2 + (seed % 3) as usize;
            crate::simulated::crew::run(&engine, cores, seed, |core, worker| {
                for number in 0..3 {
                    let first = 2 + (core + number) as u64 % 3;
                    let mut between: Vec<u64> = (first..KEYS).step_by(2).collect();
                    let hot = if (core + number) % 2 == 0 { [0, 1] } else { [1, 0] };
                    if number == 2 {
                        between.reverse();
                    }
                    let procedure = Crossing { data: &data, hot, between };
                    assert_eq!(data.database.execute_on(worker, &procedure), Ok(()));
                }
            });
            let statistics = engine.statistics();
            assert_eq!(data.sums(&engine, KEYS)[..2], [statistics.commits; 2], "{protocol}, seed {seed}");
            assert_eq!(statistics.commits, cores as u64 * 3);
            stolen += statistics.count(&Counter::STOLEN_OPERATIONS);
            deadlocks += statistics.aborts_for(Reason::Deadlock);
        }
        assert!(stolen > 200 && deadlocks > 200, "{protocol}: {stolen} stolen, {deadlocks} deadlocks");
    }
}

/// The fault that a transaction has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    Nothing,
    Condition,
    PanicInRead,
    PanicInUpdate,
    PanicInComputation,
    PanicThatPanicsWhenDropped,
}

const FAULTS: [Fault; 5] = [
    Fault::Condition,
    Fault::PanicInRead,
    Fault::PanicInUpdate,
    Fault::PanicInComputation,
    Fault::PanicThatPanicsWhenDropped,
];

const TOLD: &str = "told to panic";

struct Explosive;

impl Drop for Explosive {
    fn drop(&mut self) {
        panic!("a panic's payload that panics");
    }
}

fn may_panic(panics: bool) {
    if panics {
        std::panic::panic_any(TOLD);
    }
}

/// Adds one to [`HOT`] and to so many rows, each after a look at it, unless something goes wrong at one of them.
struct Failing<'a> {
    data: &'a Data,
    rows: u64,
    fault: Fault,
    at: u64,
}

impl Procedure for Failing<'_> {
    type Output = ();

    fn run<C: Context>(&self, cx: &mut C) -> Result<C::Val<()>, C::Stop> {
        let rows = self.data.rows;
        let (hot, one) = (cx.value(HOT), cx.value(1));
        cx.update(rows, hot, one, |row, one: u64| *row += one)?;
        for key in 0..self.rows {
            let fault = if key == self.at { self.fault } else { Fault::Nothing };
            // The row read is not the row changed, so that both operations can be stolen.
            let looked = cx.value(self.rows + key);
            let looked = cx.read(rows, looked, move |row| {
                may_panic(fault == Fault::PanicInRead);
                *row
            })?;
            if fault == Fault::Condition {
                let holds = cx.map(looked.clone(), |row| row != Some(0));
                cx.require(holds)?;
            }
            // Two computations wait for one operation, and one of them panics.
            let one = cx.map(looked.clone(), move |_| {
                may_panic(fault == Fault::PanicInComputation);
                1
            });
            let other = cx.map(looked, |row| row.map_or(1, |row| row));
            let at = cx.value(key);
            cx.update(rows, at, one, move |row, one| {
                may_panic(fault == Fault::PanicInUpdate);
                if fault == Fault::PanicThatPanicsWhenDropped {
                    std::panic::panic_any(Explosive);
                }
                *row += one;
            })?;
            let at = cx.value(2 * self.rows + key);
            cx.update(rows, at, other, |row, other| *row += other)?;
        }
        Ok(cx.value(()))
    }
}

#[test]
fn a_failure_of_a_stolen_operation_ends_its_owners_transaction_alone() {
    const ROWS: u64 = 5;
    let mut failed = Vec::new();
    for protocol in crate::simulated::stealing() {
        for fault in FAULTS {
            let mut stolen = 0;
            for seed in 0..120 {
                let engine = crate::simulated::engine(&protocol);
                let data = Data::new(&engine, 3 * ROWS);
                let results = crate::simulated::crew::run(&engine, 3, seed, |core, worker| {
                    let mut run = |number: u64| {
                        let fails = (core as u64 + number + seed).is_multiple_of(3);
                        let fault = if fails { fault } else { Fault::Nothing };
                        let at = (seed + number) % ROWS;
                        let procedure = Failing { data: &data, rows: ROWS, fault, at };
                        let execute = || data.database.execute_on(worker, &procedure);
                        // A panic in an operation that is run at once passes on.
                        let result = catch_unwind(AssertUnwindSafe(execute)).unwrap_or_else(|panic| {
                            std::mem::forget(panic);
                            Err(Error::Panicked { message: TOLD.to_owned() })
                        });
                        (fault, result)
                    };
                    (0..4).map(&mut run).collect::<Vec<_>>()
                });
                let mut committed = 0;
                for (fault, result) in results.into_iter().flatten() {
                    let as_expected = match (fault, &result) {
                        (Fault::Nothing, Ok(())) => true,
                        (Fault::Condition, Err(Error::Rollback(_))) => true,
                        (Fault::PanicThatPanicsWhenDropped, Err(Error::Panicked { .. })) => true,
                        (Fault::Nothing | Fault::Condition, _) => false,
                        (_, Err(Error::Panicked { message })) => message == TOLD,
                        _ => false,
                    };
                    if !as_expected {
                        failed.push(format!("{protocol}, seed {seed}, {fault:?}: {result:?}"));
                    }
                    committed += u64::from(result.is_ok());
                }
                let sums = data.sums(&engine, 3 * ROWS);
                let adds = |sums: &[u64]| sums.iter().all(|sum| *sum == committed);
                if !adds(&sums[..ROWS as usize]) || sums.last() != Some(&committed) {
                    failed.push(format!("{protocol}, seed {seed}, {fault:?}: {committed} commits, {sums:?}"));
                }
                stolen += engine.statistics().count(&Counter::STOLEN_OPERATIONS);
            }
            if stolen < 100 {
                failed.push(format!("{protocol}, {fault:?}: only {stolen} operations were stolen"));
            }
        }
    }
    assert!(failed.is_empty(), "{} went wrong: {:#?}", failed.len(), &failed[..failed.len().min(10)]);
}

/// Adds one to a row that an index finds by what it holds, and then to others, or to none.
struct Moving {
    members: TableRef<u64, u64>,
    rows: TableRef<u64, u64>,
    others: u64,
}

impl Procedure for Moving {
    type Output = u64;

    fn run<C: Context>(&self, cx: &mut C) -> Result<C::Val<u64>, C::Stop> {
        let (hot, one) = (cx.value(HOT), cx.value(1));
        let moved = cx.update(self.members, hot, one, |row, one: u64| {
            *row += one;
            *row
        })?;
        for key in 0..self.others {
            let (key, one) = (cx.value(key), cx.value(1));
            cx.update(self.rows, key, one, |row, one| *row += one)?;
        }
        Ok(cx.map(moved, |moved| moved.expect("it is there")))
    }
}

#[test]
fn an_operation_that_is_its_owners_alone_can_be_put_off_with_others_behind_it_or_none() {
    const KEYS: u64 = 6;
    for protocol in crate::simulated::stealing() {
        let mut stolen = 0;
        for seed in 0..100 {
            let engine = crate::simulated::engine(&protocol);
            let data = Data::new(&engine, KEYS);
            let mut members = data.database.table("members");
            let by_row = members.secondary("by row", |_, row| *row);
            let members = members.create().unwrap();
            members.bulk_insert([(HOT, 0)]).unwrap();
            let members = members.reference();
            let by_row = by_row.reference();
            let results = crate::simulated::crew::run(&engine, 3, seed, |core, worker| {
                let run = |number| {
                    let others = [0, KEYS][(core + number) % 2];
                    let procedure = Moving { members, rows: data.rows, others };
                    data.database.execute_on(worker, &procedure).expect("nothing goes wrong")
                };
                (0..4).map(run).collect::<Vec<_>>()
            });
            let mut moved: Vec<u64> = results.into_iter().flatten().collect();
            moved.sort_unstable();
            assert!(moved.iter().copied().eq(1..=12), "{protocol}, seed {seed}: {moved:?}");
            assert_eq!(data.sums(&engine, KEYS)[..KEYS as usize], [6; KEYS as usize]);
            let mut found = Vec::new();
            let scanned = engine.try_transact(|tx| {
                let visit = |row: &u64, _: &u64| {
                    found.push(*row);
                    std::ops::ControlFlow::Continue(())
                };
                data.database.index_of(by_row).scan_keys(tx, .., hotrow::Direction::Ascending, visit)
            });
            assert_eq!((scanned, found), (Ok(()), vec![12]), "{protocol}, seed {seed}");
            stolen += engine.statistics().count(&Counter::STOLEN_OPERATIONS);
        }
        assert!(stolen > 100, "{protocol}: {stolen} operations were stolen");
    }
}

/// Looks for a row, rolls back if it is missing, and goes on with what it has found.
struct Relying<'a> {
    data: &'a Data,
    wanted: u64,
}

impl Procedure for Relying<'_> {
    type Output = ();

    fn run<C: Context>(&self, cx: &mut C) -> Result<C::Val<()>, C::Stop> {
        let rows = self.data.rows;
        let (hot, one, wanted) = (cx.value(HOT), cx.value(1), cx.value(self.wanted));
        cx.update(rows, hot, one, |row, one: u64| *row += one)?;
        let found = cx.read(rows, wanted, |row| *row)?;
        let is_found = cx.map(found.clone(), |found| found.is_some());
        cx.require(is_found)?;
        let found = cx.map(found, |found| found.expect("required"));
        for key in 0..4 {
            let key = cx.value(key);
            cx.update(rows, key, found.clone(), |row, found| *row += found + 1)?;
        }
        Ok(cx.value(()))
    }
}

#[test]
fn operations_behind_a_failed_condition_have_no_effect() {
    for protocol in crate::simulated::stealing() {
        let mut stolen = 0;
        for seed in 0..200 {
            let engine = crate::simulated::engine(&protocol);
            let data = Data::new(&engine, 8);
            crate::simulated::crew::run(&engine, 3, seed, |core, worker| {
                for number in 0..4 {
                    let wanted = if (core + number) % 2 == 0 { 7 } else { 99 };
                    let result = data.database.execute_on(worker, &Relying { data: &data, wanted });
                    let expected = if wanted == 7 {
                        result == Ok(())
                    } else {
                        matches!(result, Err(Error::Rollback(_)))
                    };
                    assert!(expected, "{protocol}, seed {seed}: {result:?}");
                }
            });
            assert_eq!(data.sums(&engine, 8)[..4], [6; 4]);
            stolen += engine.statistics().count(&Counter::STOLEN_OPERATIONS);
        }
        assert!(stolen > 100, "{protocol}: {stolen} operations were stolen");
    }
}

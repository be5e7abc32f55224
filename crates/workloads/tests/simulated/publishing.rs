//! Changes that are published in the last piece, beside those who read them, in many schedules on virtual cores.

use crate::simulated::short_schedule;
use hotrow::chopping::Chopping;
use hotrow::protocols::Any;
use hotrow::sync::random::Random;
use hotrow::{
    Abort, Context, Counter, Database, Direction, Engine, KeyRange, Operations, Procedure, Procedures,
    RetryPolicy, TableRef, Transaction, Worker,
};
use hotrow_sim::{Machine, Simulation, SimulationReport};
use std::cell::RefCell;
use std::ops::ControlFlow;

const ACCOUNTS: u64 = 2;

/// The number of orders that are open at the beginning.
const ORDERS: u64 = 3;

/// The amount of each order.
const AMOUNT: i64 = 100;

/// The tables. What the accounts have and what was paid is the amount of the orders that are not open any more.
#[derive(Clone, Copy)]
struct Tables {
    open: TableRef<u64, u64>,
    /// The account of each order.
    orders: TableRef<u64, u64>,
    lines: TableRef<u64, i64>,
    accounts: TableRef<u64, i64>,
    payments: TableRef<u64, i64>,
}

/// Takes the first open order, and credits its amount to its account.
#[derive(Clone, Copy)]
struct Deliver(Tables);

impl Procedure for Deliver {
    type Output = Option<u64>;

    fn name(&self) -> &'static str {
        "deliver"
    }

    fn run<C: Context>(&self, cx: &mut C) -> Result<C::Val<Option<u64>>, C::Stop> {
        let Tables { open, orders, lines, accounts, .. } = self.0;
        let all = cx.value(KeyRange::from(0..=u64::MAX));
        let taken = cx.take_first(open, 0, all)?;
        let one = cx.value(());
        let account = cx.update_each(orders, taken.clone(), one, None, |found, account, ()| {
            *found = Some(*account);
        })?;
        let one = cx.value(());
        let sum = cx.update_each(lines, taken.clone(), one, 0, |sum, line, ()| *sum += *line)?;
        cx.commute_each(accounts, account, sum, |balance, sum| *balance += sum)?;
        Ok(taken)
    }
}

/// Adds an order.
#[derive(Clone, Copy)]
struct Enter {
    tables: Tables,
    order: u64,
    account: u64,
}

impl Procedure for Enter {
    type Output = ();

    fn name(&self) -> &'static str {
        "enter"
    }

    fn run<C: Context>(&self, cx: &mut C) -> Result<C::Val<()>, C::Stop> {
        let Self { tables, order, account } = *self;
        let (key, account) = (cx.value(order), cx.value(account));
        cx.insert(tables.orders, key, account)?;
        let (key, amount) = (cx.value(order), cx.value(AMOUNT));
        cx.insert(tables.lines, key, amount)?;
        let (key, zero) = (cx.value(order), cx.value(0));
        cx.insert(tables.open, key, zero)?;
        Ok(cx.value(()))
    }
}

/// Takes a part of an account, and notes it.
#[derive(Clone, Copy)]
struct Pay {
    tables: Tables,
    account: u64,
    payment: u64,
}

impl Procedure for Pay {
    type Output = i64;

    fn name(&self) -> &'static str {
        "pay"
    }

    fn run<C: Context>(&self, cx: &mut C) -> Result<C::Val<i64>, C::Stop> {
        let Self { tables, account, payment } = *self;
        let (key, one) = (cx.value(account), cx.value(1));
        let balance = cx.update(tables.accounts, key, one, |balance, paid| {
            *balance -= paid;
            *balance
        })?;
        let (key, one) = (cx.value(payment), cx.value(1));
        cx.insert(tables.payments, key, one)?;
        Ok(cx.map(balance, Option::unwrap_or_default))
    }
}

fn shop(protocol: &str) -> (Database<Any>, Tables) {
    let engine = Engine::<Any>::named(protocol, RetryPolicy::default()).expect("a variant");
    let db = Database::on(&engine);
    let tables = Tables {
        open: db.table("open").create().expect("a new name").reference(),
        orders: db.table("orders").create().expect("a new name").reference(),
        lines: db.table("lines").create().expect("a new name").reference(),
        accounts: db.table("accounts").create().expect("a new name").reference(),
        payments: db.table("payments").create().expect("a new name").reference(),
    };
    db.table_of(tables.accounts).bulk_insert((0..ACCOUNTS).map(|account| (account, 0))).unwrap();
    for order in 0..ORDERS {
        db.table_of(tables.orders).bulk_insert([(order, order % ACCOUNTS)]).unwrap();
        db.table_of(tables.lines).bulk_insert([(order, AMOUNT)]).unwrap();
        db.table_of(tables.open).bulk_insert([(order, 0)]).unwrap();
    }
    let (enter, pay) =
        (Enter { tables, order: u64::MAX, account: 0 }, Pay { tables, account: 0, payment: 0 });
    let chopping = Chopping::new()
        .procedure("deliver", [db.trace(&Deliver(tables)).expect("nobody else is there")])
        .procedure("enter", [db.trace(&enter).expect("nobody else is there")])
        .procedure("pay", [db.trace(&pay).expect("nobody else is there")])
        .belongs("orders", "open")
        .belongs("lines", "open")
        .publish("deliver", "accounts");
    db.chop(&chopping).expect("deliver and pay meet over the accounts only");
    (db, tables)
}

/// What accounts and payments have, and the amount of the orders that are not open any more.
fn audit(db: &Database<Any>, tables: Tables, tx: &mut Transaction<'_, Any>) -> Result<(i64, i64), Abort> {
    let mut sum = |table| {
        let mut sum = 0;
        db.table_of::<u64, i64>(table).scan(tx, .., Direction::Ascending, |_, row| {
            sum += row;
            ControlFlow::Continue(())
        })?;
        Ok::<i64, Abort>(sum)
    };
    let credited = sum(tables.accounts)? + sum(tables.payments)?;
    let mut delivered = sum(tables.lines)?;
    db.table_of(tables.open).scan(tx, .., Direction::Ascending, |_, _| {
        delivered -= AMOUNT;
        ControlFlow::Continue(())
    })?;
    Ok((credited, delivered))
}

fn run_core(db: &Database<Any>, tables: Tables, worker: &mut Worker<Any>, core: u64, seed: u64) {
    let mut random = Random::stream(seed, core);
    for number in 0..4 {
        let key = (core + 1) << 8 | number;
        match random.below(10) {
            0 => {
                let snapshot = db.snapshot_strict().expect("not in a transaction");
                let (credited, delivered) =
                    worker.transact_on(&snapshot, |tx| audit(db, tables, tx)).expect("it only reads");
                assert_eq!(credited, delivered, "on a snapshot, schedule {seed}");
            }
            1 => {
                let (credited, delivered) =
                    worker.transact(|tx| audit(db, tables, tx)).expect("it is retried");
                assert_eq!(credited, delivered, "in a closure, schedule {seed}");
            }
            2..5 => _ = db.execute_on(worker, &Deliver(tables)).expect("it is retried"),
            5 | 6 => {
                let account = random.below(ACCOUNTS);
                db.execute_on(worker, &Enter { tables, order: key, account }).expect("a new key");
            }
            _ => {
                let account = random.below(ACCOUNTS);
                db.execute_on(worker, &Pay { tables, account, payment: key }).expect("a new key");
            }
        }
    }
}

/// Explores schedules. Returns the numbers of pieces, of attempts lost over marks, and of commits in regions.
fn explore(protocol: &str, seeds: std::ops::Range<u64>) -> (u64, u64, u64) {
    let (mut pieces, mut marks, mut regions) = (0, 0, 0);
    for seed in seeds {
        let (db, tables) = shop(protocol);
        let recording = db.record_history(1 << 24).expect("a new engine");
        let cores = 2 + (seed % 3) as usize;
        let machine = if db.uses_regions() { "dbx-tc" } else { "server-128" };
        let machine = Machine::named(machine).expect("a machine that comes with the simulator");
        let config = short_schedule(machine, cores, seed, 1_000_000);
        let workers: Vec<_> = (0..cores).map(|_| RefCell::new(Some(db.worker().unwrap()))).collect();
        let SimulationReport { end, .. } =
            Simulation::new(config).expect("options that can be").try_run(|core| {
                let mut worker = workers[core].take().expect("each core has its own");
                run_core(&db, tables, &mut worker, core as u64, seed);
            });
        assert!(end.is_finished(), "schedule {seed}: {end}");
        let report = hotrow_check::check(&recording.finish())
            .unwrap_or_else(|error| panic!("the history contradicts itself: {error}, schedule {seed}"));
        assert!(report.is(report.claimed()), "schedule {seed}: {report}");
        let (credited, delivered) = db.transact(|tx| audit(&db, tables, tx)).expect("nobody else is there");
        assert_eq!(credited, delivered, "at the end, schedule {seed}");
        let statistics = db.statistics();
        pieces += statistics.count(&Counter::PIECES);
        regions += statistics.count(&Counter::REGION_COMMITS);
        let hot = db.hot_keys(usize::MAX).into_iter();
        marks += hot.filter(|key| key.object == "published changes").map(|key| key.conflicts).sum::<u64>();
    }
    (pieces, marks, regions)
}

#[test]
fn published_changes_are_serializable_in_every_schedule() {
    let (pieces, marks, _) = explore("chop", 0..1_000);
    assert!(pieces > 1_000 && marks > 20, "{pieces} pieces, {marks} attempts that met marks");
}

#[test]
fn published_changes_in_regions_are_serializable_in_every_schedule() {
    let (pieces, marks, regions) = explore("chop-htm", 0..1_000);
    let counts = format!("{pieces} pieces, {marks} attempts that met marks, {regions} regions");
    assert!(pieces > 1_000 && marks > 20 && regions > 2_000, "{counts}");
}

#[test]
#[ignore = "takes minutes: run it when the publishing of changes has changed"]
fn published_changes_are_serializable_in_very_many_schedules() {
    explore("chop", 1_000..51_000);
    explore("chop-htm", 1_000..51_000);
}

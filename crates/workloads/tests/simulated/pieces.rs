//! Procedures in pieces, under `chop` and `chop-htm`, in many schedules on virtual cores: beside readers on snapshots, transactions that are not
//! known, procedures that stray, and rollbacks.

use crate::simulated::short_schedule;
use hotrow::chopping::Chopping;
use hotrow::protocols::Any;
use hotrow::sync::random::Random;
use hotrow::{
    Abort, Context, Counter, Database, Direction, Engine, Error, Isolation, KeyRange, Operations, Procedure,
    Procedures, Profile, RetryPolicy, TableRef, Transaction, Worker,
};
use hotrow_sim::{Machine, Simulation, SimulationReport};
use std::cell::RefCell;
use std::ops::ControlFlow;

const ACCOUNTS: u64 = 2;

/// The tables. The accounts together have the total; the journal has what each bank has taken.
#[derive(Clone, Copy)]
struct Tables {
    accounts: TableRef<u64, i64>,
    total: TableRef<u64, i64>,
    banks: TableRef<u64, i64>,
    journal: TableRef<u64, i64>,
}

/// Pays into one account from another one, or from outside, and notes it: the accounts conflict, the rest does not.
#[derive(Clone, Copy)]
struct Pay {
    tables: Tables,
    from: Option<u64>,
    to: u64,
    amount: i64,
    bank: u64,
    entry: u64,
    /// Whether it looks at another account besides, which no trace shows.
    strays: bool,
}

impl Procedure for Pay {
    type Output = i64;

    fn name(&self) -> &'static str {
        "pay"
    }

    fn run<C: Context>(&self, cx: &mut C) -> Result<C::Val<i64>, C::Stop> {
        let Self { tables, amount, .. } = *self;
        if let Some(from) = self.from {
            let (key, taken) = (cx.value(from), cx.value(amount));
            let left = cx.update(tables.accounts, key, taken, |balance, taken| {
                *balance -= taken;
                *balance
            })?;
            let enough = cx.map(left, |left| left.is_some_and(|left| left >= 0));
            cx.require(enough)?;
        }
        // The entry comes before the second account in the program, and after it in the pieces.
        let (key, paid) = (cx.value(self.entry), cx.value(amount));
        cx.insert(tables.journal, key, paid)?;
        if self.strays {
            let all = cx.value(KeyRange::from(0..=ACCOUNTS));
            cx.scan(tables.accounts, all, Direction::Ascending, 0, |sum, _, balance| {
                *sum += balance;
                ControlFlow::Continue(())
            })?;
        }
        let (key, paid) = (cx.value(self.to), cx.value(amount));
        let balance = cx.update(tables.accounts, key, paid, |balance, paid| {
            *balance += paid;
            *balance
        })?;
        let (key, paid) = (cx.value(self.bank), cx.value(amount));
        cx.commute(tables.banks, key, paid, |sum, paid| *sum += paid)?;
        if self.from.is_none() {
            let (key, paid) = (cx.value(0), cx.value(amount));
            cx.commute(tables.total, key, paid, |total, paid| *total += paid)?;
        }
        Ok(cx.map(balance, Option::unwrap_or_default))
    }
}

/// Adds everything up, on a snapshot.
#[derive(Clone, Copy)]
struct Audit {
    tables: Tables,
    isolation: Isolation,
}

impl Procedure for Audit {
    type Output = [i64; 4];

    fn name(&self) -> &'static str {
        "audit"
    }

    fn profile(&self) -> Profile {
        Profile { read_only: true, isolation: self.isolation, ..Profile::UNKNOWN }
    }

    fn run<C: Context>(&self, cx: &mut C) -> Result<C::Val<[i64; 4]>, C::Stop> {
        let Tables { accounts, total, banks, journal } = self.tables;
        let mut sums = cx.value([0; 4]);
        for (at, table) in [accounts, total, banks, journal].into_iter().enumerate() {
            let all = cx.value(KeyRange::from(0..=u64::MAX));
            let sum = cx.scan(table, all, Direction::Ascending, 0, |sum, _, row| {
                *sum += row;
                ControlFlow::Continue(())
            })?;
            let both = cx.zip(sums, sum);
            sums = cx.map(both, move |(mut sums, sum)| {
                sums[at] = sum;
                sums
            });
        }
        Ok(sums)
    }
}

/// The accounts together have the total, and the banks what the journal says.
fn assert_agree([accounts, total, banks, journal]: [i64; 4], seen: &str, seed: u64) {
    assert_eq!((accounts, banks), (total, journal), "{seen}, schedule {seed}");
}

fn bank(protocol: &str, seed: u64) -> (Database<Any>, Tables) {
    let engine = Engine::<Any>::named(protocol, RetryPolicy::default()).expect("a variant");
    let db = Database::on(&engine);
    let table = |name: &str, rows: u64| {
        let table = db.table::<u64, i64>(name).create().expect("a new name");
        table.bulk_insert((0..rows).map(|key| (key, 0))).unwrap();
        table.reference()
    };
    let tables = Tables {
        accounts: table("accounts", ACCOUNTS),
        total: table("total", 1),
        banks: table("banks", 2),
        journal: table("journal", 0),
    };
    let pay = Pay { tables, from: None, to: 0, amount: 0, bank: 0, entry: 0, strays: false };
    let ways = [pay, Pay { from: Some(1), ..pay }].map(|pay| db.trace(&pay).expect("nobody else is there"));
    let audit = Audit { tables, isolation: Isolation::Serializable };
    let chopping = Chopping::new()
        .procedure("pay", ways)
        .procedure("audit", [db.trace(&audit).expect("nobody else is there")])
        .readers_on_snapshots();
    db.chop(&chopping).unwrap_or_else(|error| panic!("{error}, schedule {seed}"));
    (db, tables)
}

/// Runs a few transactions on one core.
fn run_core(db: &Database<Any>, tables: Tables, worker: &mut Worker<Any>, core: u64, seed: u64) {
    let mut random = Random::stream(seed, core);
    for number in 0..3 {
        match random.below(10) {
            0 | 1 => {
                let isolation = [Isolation::StrictSnapshot, Isolation::Snapshot][random.below(2) as usize];
                let sums = db.execute_on(worker, &Audit { tables, isolation }).expect("it only reads");
                assert_agree(sums, "on a snapshot", seed);
            }
            2 => {
                let sums = worker.transact(|tx| all_sums(db, tables, tx)).expect("it only reads");
                assert_agree(sums, "in a closure", seed);
            }
            drawn => {
                let to = random.below(ACCOUNTS);
                let pay = Pay {
                    tables,
                    from: (drawn < 6).then_some(ACCOUNTS - 1 - to),
                    to,
                    amount: 1 + random.below(3) as i64,
                    bank: random.below(2),
                    entry: core << 8 | number,
                    strays: drawn == 9,
                };
                match db.execute_on(worker, &pay) {
                    Ok(_) | Err(Error::Rollback(_)) => {}
                    Err(error) => panic!("{error}, schedule {seed}"),
                }
            }
        }
    }
}

fn all_sums(db: &Database<Any>, tables: Tables, tx: &mut Transaction<'_, Any>) -> Result<[i64; 4], Abort> {
    let mut sums = [0; 4];
    for (sum, table) in sums.iter_mut().zip([tables.accounts, tables.total, tables.banks, tables.journal]) {
        db.table_of(table).scan(tx, .., Direction::Ascending, |_, row| {
            *sum += row;
            ControlFlow::Continue(())
        })?;
    }
    Ok(sums)
}

/// Explores schedules. Returns the numbers of pieces, of transactions that excluded pieces, and of commits in regions.
fn explore(protocol: &str, seeds: std::ops::Range<u64>) -> (u64, u64, u64) {
    let (mut pieces, mut whole, mut regions) = (0, 0, 0);
    for seed in seeds {
        let (db, tables) = bank(protocol, seed);
        let recording = db.record_history(1 << 24).expect("a new engine");
        let cores = 2 + (seed % 3) as usize;
        let machine = if db.uses_regions() { "dbx-tc" } else { "server-128" };
        let mut machine = Machine::named(machine).expect("a machine that comes with the simulator");
        if let Some(transactions) = &mut machine.transactions {
            // In some schedules many are aborted, at any of their steps.
            transactions.system_aborts_per_s *= [1.0, 1e2, 1e3][seed as usize % 3];
        }
        let config = short_schedule(machine, cores, seed, 500_000);
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
        let sums = db.transact(|tx| all_sums(&db, tables, tx)).expect("nobody else is there");
        assert_agree(sums, "at the end", seed);
        let statistics = db.statistics();
        pieces += statistics.count(&Counter::PIECES);
        whole += statistics.count(&Counter::WHOLE);
        regions += statistics.count(&Counter::REGION_COMMITS);
    }
    (pieces, whole, regions)
}

#[test]
fn pieces_are_serializable_in_every_schedule() {
    for protocol in ["chop", "ic3"] {
        let (pieces, whole, _) = explore(protocol, 0..1_000);
        assert!(pieces > 500 && whole > 500, "{protocol}: {pieces} pieces, {whole} whole transactions");
    }
}

#[test]
fn pieces_in_regions_are_serializable_in_every_schedule() {
    let (pieces, whole, regions) = explore("chop-htm", 0..1_000);
    assert!(
        pieces > 500 && whole > 500 && regions > 2_000,
        "{pieces} pieces, {whole} whole transactions, {regions} regions"
    );
}

#[test]
#[ignore = "takes minutes: run it when pieces, regions or snapshots have changed"]
fn pieces_are_serializable_in_very_many_schedules() {
    explore("chop", 1_000..101_000);
    explore("chop-htm", 1_000..101_000);
    explore("ic3", 1_000..101_000);
}

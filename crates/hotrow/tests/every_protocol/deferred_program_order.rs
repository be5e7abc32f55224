//! Operations of one transaction on one key keep the order in which its body has them, whichever of them wait for a key
//! or a row: all pairs and triples of them on one key, each compared to what comes out under a protocol that defers
//! nothing.

use crate::support;
use crate::support::for_each_protocol;
use hotrow::{
    Context, Database, Direction, Engine, IndexRef, Occ, Operations, Procedure, Procedures, Protocol, Reason,
    TableRef, Worker,
};
use std::ops::ControlFlow;

type RowKey = (u64, u64);
/// A secondary key: the group, and the row modulo 3.
type EntryKey = (u64, u64);

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Insert,
    InsertGrouped,
    Update,
    UpdateEach,
    Replace,
    Delete,
    Read,
    TakeFirst,
    Scan,
    Force,
}

/// The part of an operation that is not known when it is deferred.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Late {
    Nothing,
    Key,
    /// The row, or what the change of the row needs.
    Row,
    /// The key, which comes from the first of the operations.
    KeyOfFirst,
}

/// Where that comes from. The table itself has rank 5.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Source {
    /// A row of rank 2.
    Low,
    /// The first row of a queue of rank 1, taken in stages.
    Queue,
    /// A row of rank 9.
    High,
    /// A row of rank 8 whose key comes from the queue.
    Chain,
}

const SOURCES: [Source; 4] = [Source::Queue, Source::Low, Source::High, Source::Chain];

/// The state of the key before the transaction.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Before {
    Nothing,
    Row,
    /// A row that the transaction has inserted.
    OwnRow,
    /// One that it has deleted.
    NoRowAnyMore,
}

const BEFORE: [Before; 4] = [Before::Nothing, Before::Row, Before::OwnRow, Before::NoRowAnyMore];

type Step = (Kind, Late);

/// Every kind of operation with everything that may be late of it.
fn steps(kinds: &[Kind], is_first: bool) -> Vec<Step> {
    let with_lates = |kind: &Kind| {
        let lates: &[Late] = match kind {
            Kind::TakeFirst | Kind::Scan | Kind::Force => &[Late::Nothing],
            Kind::Delete | Kind::Read => &[Late::Nothing, Late::Key, Late::KeyOfFirst],
            _ => &[Late::Nothing, Late::Row, Late::Key, Late::KeyOfFirst],
        };
        let count = lates.len() - usize::from(is_first && lates.len() > 1);
        lates[..count].iter().map(|late| (*kind, *late)).collect::<Vec<_>>()
    };
    kinds.iter().flat_map(with_lates).collect()
}

const TABLES: usize = 6;
/// The tables with an order: the others are hash tables.
const ORDERED: std::ops::Range<usize> = 2..6;

/// Tables of all sorts, those with an odd number with a secondary index, the last two with queues.
#[derive(Clone, Copy)]
struct Tables {
    rows: [TableRef<RowKey, u64>; TABLES],
    entries: [Option<IndexRef<EntryKey, RowKey, u64>>; TABLES],
    low: TableRef<u64, u64>,
    high: [TableRef<u64, u64>; 2],
    queue: TableRef<RowKey, u64>,
}

impl Tables {
    fn new<P: Protocol>(database: &Database<P>) -> Self {
        let group = |(group, _): &RowKey| *group;
        let low = database.table("low").hash(4).rank(2).create().unwrap();
        let high = [8, 9].map(|rank| database.table(format!("high {rank}")).rank(rank).create().unwrap());
        let queue = database.table("queue").rank(1).queues(group).create().unwrap();
        assert!(
            low.bulk_insert([(0, NUMBER)]).is_ok()
                && high.iter().all(|high| high.bulk_insert([(0, NUMBER)]).is_ok())
        );
        let mut entries = [None; TABLES];
        let rows = std::array::from_fn(|number| {
            let mut builder = database.table(format!("rows {number}")).rank(5);
            if !ORDERED.contains(&number) {
                builder = builder.hash(1 << 14);
            } else if number >= 4 {
                builder = builder.queues(group);
            }
            let index = (number % 2 == 1)
                .then(|| builder.secondary("by_remainder", |(group, _), row: &u64| (*group, row % 3)));
            let table = builder.create().unwrap();
            entries[number] = index.map(|index| index.reference());
            table.reference()
        });
        let high = high.map(|high| high.reference());
        Self { rows, entries, low: low.reference(), high, queue: queue.reference() }
    }
}

/// A transaction of a few operations on one key of one table.
struct Program<'a> {
    tables: Tables,
    /// A group of its own, so that each program begins with a table that is empty there.
    group: u64,
    table: usize,
    before: Before,
    source: Source,
    steps: &'a [Step],
}

/// The number that each source of late values gives.
const NUMBER: u64 = 7;
/// The one key of each group.
const KEY: u64 = 5;

impl Program<'_> {
    fn prepare<C: Context>(&self, cx: &mut C) -> Result<(), C::Stop> {
        let (key, row) = (cx.value((self.group, KEY)), cx.value(2));
        let table = self.tables.rows[self.table];
        let done = match self.before {
            Before::Nothing | Before::Row => return Ok(()),
            Before::OwnRow => cx.insert(table, key, row)?,
            Before::NoRowAnyMore => cx.delete(table, key)?,
        };
        cx.force(done).map(|done| assert!(done))
    }

    fn late<C: Context>(&self, cx: &mut C) -> Result<C::Val<u64>, C::Stop> {
        let Tables { low, high, queue, .. } = self.tables;
        let first_key = cx.value(0);
        let nothing = cx.value(());
        let found = match self.source {
            Source::Low => cx.update(low, first_key, nothing, |row, ()| *row)?,
            Source::High => cx.read(high[1], first_key, |row| *row)?,
            Source::Queue | Source::Chain => {
                let range = cx.value(((self.group, 0)..(self.group + 1, 0)).into());
                let taken = cx.take_first(queue, self.group, range)?;
                if self.source == Source::Queue {
                    cx.map(taken, |taken| taken.map(|(_, number)| number))
                } else {
                    let key = cx.map(taken, |taken| taken.map(|_| 0));
                    let found = cx.update_each(high[0], key, nothing, 0, |found, row, ()| *found = *row)?;
                    cx.map(found, Some)
                }
            }
        };
        Ok(cx.map(found, |found| found.expect("it was loaded")))
    }

    /// Each operation gives a number.
    fn step<C: Context>(
        &self,
        cx: &mut C,
        at: usize,
        late: &C::Val<u64>,
        so_far: &[C::Val<u64>],
    ) -> Result<C::Val<u64>, C::Stop> {
        let ((kind, is_late), group) = (self.steps[at], self.group);
        let table = self.tables.rows[self.table];
        let key = match is_late {
            Late::Key => cx.map(late.clone(), move |number| (group, number - NUMBER + KEY)),
            Late::KeyOfFirst => cx.map(so_far[0].clone(), move |_| (group, KEY)),
            Late::Nothing | Late::Row => cx.value((group, KEY)),
        };
        let known = 100 * (at as u64 + 1);
        let row = match is_late {
            Late::Row => cx.map(late.clone(), move |number| known + number),
            _ => cx.value(known),
        };
        let flag = |cx: &mut C, done| cx.map(done, |done| 1 + u64::from(done));
        let change = |row: &mut u64, by: u64| {
            *row = *row * 3 + by;
            *row
        };
        Ok(match kind {
            Kind::Insert => {
                let done = cx.insert(table, key, row)?;
                flag(cx, done)
            }
            Kind::InsertGrouped => {
                let done = cx.insert_grouped(table, group, key, row)?;
                flag(cx, done)
            }
            Kind::Update => {
                let changed = cx.update(table, key, row, change)?;
                cx.map(changed, |row| row.unwrap_or(0))
            }
            Kind::UpdateEach => {
                let key = cx.map(key, Some);
                cx.update_each(table, key, row, 0, move |sum, row, by| *sum += change(row, by))?
            }
            Kind::Replace => {
                let done = cx.replace(table, key, row)?;
                flag(cx, done)
            }
            Kind::Delete => {
                let done = cx.delete(table, key)?;
                flag(cx, done)
            }
            Kind::Read => {
                let found = cx.read(table, key, |row| *row)?;
                cx.map(found, |row| row.unwrap_or(0))
            }
            Kind::TakeFirst => {
                let range = cx.value(((group, 0)..(group + 1, 0)).into());
                let taken = cx.take_first(table, group, range)?;
                cx.map(taken, |taken| taken.map_or(0, |(_, number)| number))
            }
            Kind::Scan => {
                let range = cx.value(((group, 0)..(group + 1, 0)).into());
                cx.scan(table, range, Direction::Ascending, 0, |sum, (_, number), row| {
                    *sum = *sum * 10 + number + row;
                    ControlFlow::Continue(())
                })?
            }
            Kind::Force => {
                let last = so_far.last().unwrap_or(late).clone();
                let number = cx.force(last)?;
                cx.value(number)
            }
        })
    }
}

impl Procedure for Program<'_> {
    /// The result of each operation.
    type Output = Vec<u64>;

    fn run<C: Context>(&self, cx: &mut C) -> Result<C::Val<Vec<u64>>, C::Stop> {
        self.prepare(cx)?;
        let late = self.late(cx)?;
        let mut so_far = Vec::new();
        let mut all = cx.value(Vec::new());
        for at in 0..self.steps.len() {
            let number = self.step(cx, at, &late, &so_far)?;
            so_far.push(number.clone());
            let both = cx.zip(all, number);
            all = cx.map(both, |(mut all, number)| {
                all.push(number);
                all
            });
        }
        Ok(all)
    }
}

/// The result of each operation, the row, and the entries of the secondary index.
type ProgramResult = (Vec<u64>, Option<u64>, Vec<(EntryKey, RowKey)>);

struct Runner<P: Protocol> {
    worker: Worker<P>,
    engine: Engine<P>,
    database: Database<P>,
    tables: Tables,
    programs: u64,
}

impl<P: Protocol> Runner<P> {
    fn new(engine: Engine<P>) -> Self {
        let database = Database::on(&engine);
        let tables = Tables::new(&database);
        Self { worker: engine.worker().unwrap(), engine, database, tables, programs: 0 }
    }

    fn run(&mut self, case: &Case) -> ProgramResult {
        let Self { worker, database, tables, .. } = self;
        let Case { table, before, source, ref steps } = *case;
        let tables = *tables;
        let group = self.programs;
        self.programs += 1;
        database.table_of(tables.queue).bulk_insert([((group, NUMBER), 0)]).unwrap();
        let (row, key) = (tables.rows[table], (group, KEY));
        let is_loaded = matches!(before, Before::Row | Before::NoRowAnyMore);
        if is_loaded {
            database.table_of(row).bulk_insert([(key, 1)]).unwrap();
        }
        let program = Program { tables, group, table, before, source, steps };
        let given = database.execute_on(worker, &program).unwrap();
        let entries = tables.entries[table];
        let left = worker.transact(|tx| {
            let mut found = Vec::new();
            if let Some(entries) = entries {
                let range = (group, 0)..(group + 1, 0);
                database.index_of(entries).scan_keys(tx, range, Direction::Ascending, |entry, key| {
                    found.push((*entry, *key));
                    ControlFlow::Continue(())
                })?;
            }
            Ok((database.table_of(row).get(tx, &key)?, found))
        });
        let (row, found) = left.unwrap();
        (given, row, found)
    }

    /// Alone, an attempt loses only what it has not said, and the next one runs at once.
    fn check(&self) {
        let statistics = self.engine.statistics();
        let undeclared = Reason::ALL.iter().position(|reason| *reason == Reason::Undeclared).unwrap();
        assert_eq!(statistics.aborts, statistics.reasons[undeclared]);
        assert!(statistics.attempts_max <= 2);
        assert!(statistics.aborts == 0 || crate::support::defers());
    }
}

/// A test case: a table, the state before, the source of late values, and the steps.
#[derive(Debug)]
struct Case {
    table: usize,
    before: Before,
    source: Source,
    steps: Vec<Step>,
}

impl Case {
    fn is_possible(&self) -> bool {
        let needs_order = |(kind, _): &Step| matches!(kind, Kind::TakeFirst | Kind::Scan);
        ORDERED.contains(&self.table) || !self.steps.iter().any(needs_order)
    }
}

/// Runs transactions under a protocol and under one that defers nothing.
fn compare<P: Protocol>(cases: impl Iterator<Item = Case>) {
    let mut runner = Runner::new(support::engine::<P>());
    let mut expecting = Runner::new(Engine::<Occ>::new());
    for case in cases.filter(Case::is_possible) {
        assert_eq!(runner.run(&case), expecting.run(&case), "{case:?}");
    }
    runner.check();
}

/// The number of the variant among those of its protocol: each begins with another one of what takes turns.
fn turn<P: Protocol>() -> usize {
    P::VARIANTS.iter().position(|variant| variant.name == support::chosen()).expect("it is listed")
}

const ALL: [Kind; 10] = [
    Kind::Insert,
    Kind::InsertGrouped,
    Kind::Update,
    Kind::UpdateEach,
    Kind::Replace,
    Kind::Delete,
    Kind::Read,
    Kind::TakeFirst,
    Kind::Scan,
    Kind::Force,
];

#[test]
fn two_operations_on_one_key_keep_their_order_whatever_is_late_of_them() {
    for_each_protocol!(2, |P| {
        let (first, second) = (steps(&ALL, true), steps(&ALL, false));
        let pairs = first.iter().flat_map(|first| second.iter().map(|second| [*first, *second]));
        compare::<P>(pairs.enumerate().flat_map(|(at, pair)| {
            let turn = at + turn::<P>();
            // Where nothing is deferred, one table after the other will do.
            let tables = if crate::support::defers() { 0..TABLES } else { at % TABLES..at % TABLES + 1 };
            tables.map(move |table| Case {
                table,
                before: BEFORE[(turn + table) % BEFORE.len()],
                source: SOURCES[(turn / BEFORE.len() + table) % SOURCES.len()],
                steps: pair.to_vec(),
            })
        }));
    });
}

#[test]
fn three_operations_on_one_key_keep_their_order_whatever_is_late_of_them() {
    const KINDS: [Kind; 7] = [
        Kind::Insert,
        Kind::InsertGrouped,
        Kind::UpdateEach,
        Kind::Delete,
        Kind::Read,
        Kind::TakeFirst,
        Kind::Force,
    ];
    for_each_protocol!(2, |P| {
        // The others run everything at once.
        if crate::support::defers() {
            let (first, later) = (steps(&KINDS, true), steps(&KINDS, false));
            let count = later.len();
            compare::<P>((0..first.len() * count * count).map(|at| {
                let places = [at / count / count, at / count % count, at % count];
                let turn = at + places[0] + places[1] + turn::<P>();
                Case {
                    table: turn / BEFORE.len() % TABLES,
                    before: BEFORE[turn % BEFORE.len()],
                    source: SOURCES[turn / BEFORE.len() / TABLES % SOURCES.len()],
                    steps: vec![first[places[0]], later[places[1]], later[places[2]]],
                }
            }));
        }
    });
}

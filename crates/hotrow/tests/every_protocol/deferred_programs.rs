//! Random procedures whose keys come from earlier operations: each gives what a plain model gives, and together they
//! are what the protocol claims.

mod model;

use crate::support;
use crate::support::{for_each_protocol, steps};
use hotrow::sync::random::Random;
use hotrow::{
    Context, Data, Database, Direction, Engine, Error, IndexRef, Procedure, Protocol, Reason, TableRef,
};
use model::Model;
use std::ops::ControlFlow;

/// Enough for every run here.
const HISTORY_BYTES_MAX: usize = 1 << 27;
const KEYS: u64 = 6;
const GROUPS: u64 = 2;
/// What a missing row counts as.
const MISSING: u64 = 1_000;

/// Tables in the order of their ranks, the first one lowest; a queue comes between them.
#[derive(Clone, Copy)]
struct Tables {
    rows: [TableRef<u64, u64>; 3],
    by_last_digit: IndexRef<u64, u64, u64>,
    queue: TableRef<(u64, u64), u64>,
}

impl Tables {
    fn new<P: Protocol>(database: &mut Database<P>) -> Self {
        let first = database.builder("first").hash(4).rank(10).build();
        let mut second = database.builder("second").rank(20);
        let by_last_digit = second.secondary("by_last_digit", |_, row: &u64| row % 10);
        let second = second.build();
        let queue = database.builder("queue").rank(30).queues(|(group, _): &(u64, u64)| *group).build();
        let third = database.builder("third").rank(40).build();
        for key in 0..KEYS {
            assert!(first.load(key, key * 3 + 1));
            assert!(key % 2 == 1 || second.load(key, key + 7));
            assert!(key % 3 == 1 || third.load(key, key));
        }
        Self {
            rows: [first, second, third].map(|table| database.add_table(table)),
            by_last_digit: database.add_index(by_last_digit),
            queue: database.add_table(queue),
        }
    }
}

/// A number that is known now, or comes from an earlier operation, by its position.
#[derive(Debug, Clone, Copy)]
enum Source {
    Known(u64),
    Earlier(usize),
}

/// One operation. Each gives a number.
#[derive(Debug, Clone, Copy)]
enum Step {
    Read {
        table: usize,
        key: Source,
    },
    Add {
        table: usize,
        key: Source,
        amount: Source,
    },
    Replace {
        table: usize,
        key: Source,
        row: Source,
    },
    Delete {
        table: usize,
        key: Source,
    },
    Insert {
        table: usize,
        key: Source,
        row: Source,
    },
    /// Up to two rows, of the next key as well.
    AddToEach {
        table: usize,
        key: Source,
        amount: Source,
    },
    Enqueue {
        group: u64,
        number: Source,
        grouped: bool,
    },
    Take {
        group: u64,
    },
    Unqueue {
        group: u64,
        number: Source,
    },
    Require {
        holds: Source,
    },
    Scan {
        table: usize,
    },
    ScanDigits,
    ScanQueue,
    Force {
        value: Source,
    },
}

#[derive(Debug, Clone)]
struct Program(Vec<Step>);

impl Program {
    fn draw(random: &mut Random, tame: bool) -> Self {
        let count = 2 + random.below(7) as usize;
        let steps = (0..count).map(|at| {
            let mut source = || match random.below(2) {
                0 if at > 0 => Source::Earlier(random.below(at as u64) as usize),
                _ => Source::Known(random.below(KEYS)),
            };
            let (key, other) = (source(), source());
            let (table, group) = (random.below(3) as usize, random.below(GROUPS));
            match random.below(if tame { 20 } else { 24 }) {
                0..=2 => Step::Read { table, key },
                3..=5 => Step::Add { table, key, amount: other },
                6 | 7 => Step::AddToEach { table, key, amount: other },
                8 => Step::Replace { table, key, row: other },
                9 | 10 => Step::Delete { table, key },
                11 | 12 => Step::Insert { table, key, row: other },
                13..=15 => Step::Enqueue { group, number: key, grouped: random.chance(0.7) },
                16 | 17 => Step::Take { group },
                18 => Step::Unqueue { group, number: key },
                19 => Step::Require { holds: key },
                20 => Step::Scan { table: 1 + random.below(2) as usize },
                21 => Step::ScanDigits,
                22 => Step::ScanQueue,
                _ => Step::Force { value: key },
            }
        });
        Self(steps.collect())
    }
}

/// A program, with what it works on.
struct Run<'a> {
    tables: Tables,
    program: &'a Program,
}

fn row(found: Option<u64>) -> u64 {
    found.unwrap_or(MISSING)
}

fn holds(number: u64) -> bool {
    number % 8 != 5
}

fn mix(sum: &mut u64, number: u64) {
    *sum = sum.wrapping_mul(7).wrapping_add(number) % 10_007;
}

impl Run<'_> {
    fn step<C: Context>(
        &self,
        cx: &mut C,
        step: Step,
        so_far: &[C::Val<u64>],
    ) -> Result<C::Val<u64>, C::Stop> {
        let Tables { rows, by_last_digit, queue } = self.tables;
        let get = |cx: &mut C, source: Source| match source {
            Source::Known(number) => cx.value(number),
            Source::Earlier(at) => so_far[at].clone(),
        };
        let key_of = |cx: &mut C, source: Source| {
            let number = get(cx, source);
            cx.map(number, |number| number % KEYS)
        };
        fn number<C: Context, T: Data>(
            cx: &mut C,
            value: C::Val<T>,
            of: impl FnOnce(T) -> u64 + Send + 'static,
        ) -> C::Val<u64> {
            cx.map(value, of)
        }
        Ok(match step {
            Step::Read { table, key } => {
                let key = key_of(cx, key);
                let found = cx.read(rows[table], key, |row| *row)?;
                number(cx, found, row)
            }
            Step::Add { table, key, amount } => {
                let (key, amount) = (key_of(cx, key), get(cx, amount));
                let found = cx.update(rows[table], key, amount, |row, amount| {
                    *row = (*row * 2 + amount) % 997;
                    *row
                })?;
                number(cx, found, row)
            }
            Step::AddToEach { table, key, amount } => {
                let (key, amount) = (key_of(cx, key), get(cx, amount));
                let keys = cx.map(key, |key| [key, key + 1]);
                cx.update_each(rows[table], keys, amount, 0, |sum, row, amount| {
                    *row = (*row * 3 + amount) % 997;
                    mix(sum, *row);
                })?
            }
            Step::Replace { table, key, row } => {
                let (key, row) = (key_of(cx, key), get(cx, row));
                let replaced = cx.replace(rows[table], key, row)?;
                number(cx, replaced, u64::from)
            }
            Step::Delete { table, key } => {
                let key = key_of(cx, key);
                let deleted = cx.delete(rows[table], key)?;
                number(cx, deleted, u64::from)
            }
            Step::Insert { table, key, row } => {
                let (key, row) = (key_of(cx, key), get(cx, row));
                let inserted = cx.insert(rows[table], key, row)?;
                number(cx, inserted, u64::from)
            }
            Step::Enqueue { group, number: at, grouped } => {
                let at = get(cx, at);
                let (key, row) = (cx.map(at.clone(), move |at| (group, at)), at);
                let inserted = if grouped {
                    cx.insert_grouped(queue, group, key, row)?
                } else {
                    cx.insert(queue, key, row)?
                };
                number(cx, inserted, u64::from)
            }
            Step::Take { group } => {
                let range = cx.value(((group, 0)..(group + 1, 0)).into());
                let taken = cx.take_first(queue, group, range)?;
                number(cx, taken, |taken| row(taken.map(|(_, number)| number)))
            }
            Step::Unqueue { group, number: at } => {
                let at = get(cx, at);
                let key = cx.map(at, move |at| (group, at));
                let deleted = cx.delete(queue, key)?;
                number(cx, deleted, u64::from)
            }
            Step::Require { holds: source } => {
                let condition = get(cx, source);
                let condition = cx.map(condition, holds);
                cx.require(condition)?;
                cx.value(0)
            }
            Step::Scan { table } => {
                let range = cx.value((0..=KEYS).into());
                cx.scan(rows[table], range, Direction::Ascending, 0, |sum, key, row| {
                    mix(sum, key + row);
                    ControlFlow::Continue(())
                })?
            }
            Step::ScanDigits => {
                let range = cx.value((0..=9).into());
                cx.scan_index(by_last_digit, range, Direction::Ascending, 0, |sum, digit, key| {
                    mix(sum, digit * 10 + key);
                    ControlFlow::Continue(())
                })?
            }
            Step::ScanQueue => {
                let range = cx.value(((0, 0)..(GROUPS, 0)).into());
                cx.scan(queue, range, Direction::Ascending, 0, |sum, (group, number), row| {
                    mix(sum, group + number + row);
                    ControlFlow::Continue(())
                })?
            }
            Step::Force { value } => {
                let value = get(cx, value);
                let value = cx.force(value)?;
                cx.value(value)
            }
        })
    }
}

impl Procedure for Run<'_> {
    /// What each operation gave.
    type Output = Vec<u64>;

    fn run<C: Context>(&self, cx: &mut C) -> Result<C::Val<Vec<u64>>, C::Stop> {
        let mut so_far = Vec::new();
        let mut all = cx.value(Vec::new());
        for step in &self.program.0 {
            let number = self.step(cx, *step, &so_far)?;
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

fn database<P: Protocol>(engine: &Engine<P>) -> (Database<P>, Tables) {
    let mut database = Database::new(engine);
    let tables = Tables::new(&mut database);
    (database, tables)
}

/// All rows and entries, by scans, after whatever has happened.
fn everything() -> Program {
    let mut steps = vec![Step::Scan { table: 1 }, Step::Scan { table: 2 }, Step::ScanDigits, Step::ScanQueue];
    steps.extend((0..KEYS).map(|key| Step::Read { table: 0, key: Source::Known(key) }));
    Program(steps)
}

#[test]
fn each_operation_gives_what_it_gives_in_plain_maps() {
    for_each_protocol!(1, |P| {
        let mut random = Random::seeded(3);
        for _ in 0..40 {
            let engine = support::engine::<P>();
            let (database, tables) = database(&engine);
            let mut model = Model::new();
            let mut worker = engine.worker().unwrap();
            for round in 0..25 {
                let before = model.clone();
                let program = Program::draw(&mut random, round % 3 > 0);
                let expected = model.run(&program);
                let given = match database.execute(&mut worker, &Run { tables, program: &program }) {
                    Ok(numbers) => Some(numbers),
                    Err(Error::Rollback(_)) => None,
                    Err(error) => panic!("{error}: {program:?} after {before:?}"),
                };
                assert_eq!(given, expected, "{program:?} after {before:?}");
                let everything = everything();
                let all = database.execute(&mut worker, &Run { tables, program: &everything });
                assert_eq!(all.ok(), model.run(&everything), "{program:?} after {before:?}");
            }
            // Alone, an attempt loses only what it has not said, and the next one runs at once.
            let statistics = engine.statistics();
            let undeclared = Reason::ALL.iter().position(|reason| *reason == Reason::Undeclared).unwrap();
            assert_eq!(statistics.aborts, statistics.reasons[undeclared]);
            assert!(statistics.attempts_max <= 2);
            assert!(statistics.aborts == 0 || P::DEFERS);
        }
    });
}

#[test]
fn histories_of_such_procedures_are_what_the_protocol_claims() {
    const THREADS: u64 = 4;
    for_each_protocol!(THREADS as u32, |P| {
        let engine = support::engine::<P>();
        let (database, tables) = database(&engine);
        let recording = engine.record_history(HISTORY_BYTES_MAX).unwrap();
        support::on_threads(&engine, THREADS, |thread, worker| {
            let mut random = Random::stream(31, thread);
            for round in 0..60 {
                let program = Program::draw(&mut random, round % 3 > 0);
                match database.execute(worker, &Run { tables, program: &program }) {
                    Ok(_) | Err(Error::Rollback(_)) => {}
                    Err(error) => panic!("{error}: {program:?}"),
                }
            }
        });
        steps::judge(&recording.finish());
    });
}

//! Small transactions on two keys, run in every order of their steps, and checked against all serial orders.

use crate::support;
use crate::support::steps::Series;
use Operation::{Add, Apply, Delete, Get, Insert, Plus, Scan, Set, Take};
use hotrow::{
    Abort, Column, Database, Direction, Engine, Protocol, SecondaryIndex, TBox, Table, Transaction,
    UniqueIndex,
};
use std::ops::ControlFlow;

type Tx<'w, P> = Transaction<'w, P>;

/// One operation of a transaction on two keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    Get(usize),
    /// Changes the value into one that tells who has added to what.
    Add(usize),
    /// Adds to the value without reading it.
    Plus(usize),
    /// Changes the value as [`Add`] does, without reading it. The key is there.
    Apply(usize),
    /// Subtracts one if there is one, and learns whether there was. The key is there.
    Take(usize),
    Set(usize),
    Insert(usize),
    Delete(usize),
    Scan(Direction),
}

/// The values of both keys; also what an operation has learned, which is never more.
pub(super) type State = [Option<u64>; 2];

/// The value that transaction number `who` (from 1 on) makes of another one.
fn added(value: u64, who: u64) -> u64 {
    value * 4 + who
}

/// The amount that transaction number `who` adds without reading.
fn plus(who: u64) -> u64 {
    who * 1_000_000
}

/// The value that transaction number `who` sets or inserts.
pub(super) fn fresh(who: u64) -> u64 {
    who * 10_000
}

impl Operation {
    /// Applies the operation to `state` and returns what it learns if nobody else is there.
    fn model(self, who: u64, state: &mut State) -> State {
        let of_one = |learned| [learned, None];
        match self {
            Get(key) => of_one(state[key]),
            Add(key) => {
                let before = state[key];
                state[key] = before.map(|value| added(value, who));
                of_one(before)
            }
            Plus(key) => {
                state[key] = state[key].map(|value| value + plus(who));
                of_one(Some(u64::from(state[key].is_some())))
            }
            Apply(key) => {
                state[key] = state[key].map(|value| added(value, who));
                of_one(None)
            }
            Take(key) => {
                let left = state[key].and_then(|value| value.checked_sub(1));
                state[key] = left.or(state[key]);
                of_one(Some(u64::from(left.is_some())))
            }
            Set(key) => {
                state[key] = Some(fresh(who));
                of_one(None)
            }
            Insert(key) => {
                let free = state[key].is_none();
                state[key] = state[key].or(Some(fresh(who)));
                of_one(Some(u64::from(free)))
            }
            Delete(key) => of_one(Some(u64::from(state[key].take().is_some()))),
            Scan(_) => *state,
        }
    }
}

/// How many schedules share an engine.
const SERIES: usize = 64;

/// The objects that hold the keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Container {
    Boxes,
    Hash,
    Ordered,
    /// In a table with a secondary index, which is what is scanned.
    Secondary,
    /// As keys of a unique index, whose values are the keys of its rows.
    Unique,
}

enum Keys<P: Protocol> {
    Boxes([TBox<u64, P>; 2]),
    Table(Table<u64, u64, P>),
    Secondary(Table<u64, u64, P>, SecondaryIndex<u64, u64, u64, P>),
    Unique(Rows<P>),
}

/// Rows that are found by a unique key only. A row's own key is twice the value that the unique key has, plus that key.
struct Rows<P: Protocol> {
    table: Table<u64, u64, P>,
    by_row: UniqueIndex<u64, u64, u64, P>,
}

impl<P: Protocol> Rows<P> {
    fn new(engine: &Engine<P>, state: State) -> Self {
        let mut builder = Database::on(engine).table("rows");
        let by_row = builder.unique("by_row", |_, row| *row);
        let rows = Self { table: builder.hash(4).create().unwrap(), by_row };
        for (key, value) in (0..).zip(state) {
            assert!(value.is_none_or(|value| rows.table.bulk_insert([(value * 2 + key, key)]).is_ok()));
        }
        rows
    }

    fn get(&self, tx: &mut Tx<'_, P>, key: u64) -> Result<Option<u64>, Abort> {
        Ok(self.by_row.get(tx, &key)?.map(|(row, found)| {
            assert_eq!(found, key);
            row / 2
        }))
    }

    fn delete(&self, tx: &mut Tx<'_, P>, key: u64) -> Result<Option<u64>, Abort> {
        let Some(row) = self.by_row.get_key(tx, &key)? else { return Ok(None) };
        Ok(self.table.delete(tx, &row)?.then_some(row / 2))
    }

    fn insert(&self, tx: &mut Tx<'_, P>, key: u64, value: u64) -> Result<(), Abort> {
        self.table.insert(tx, value * 2 + key, key)
    }

    fn operate(&self, tx: &mut Tx<'_, P>, operation: Operation, who: u64) -> Result<State, Abort> {
        let mut learned = [None, None];
        match operation {
            Get(key) => learned[0] = self.get(tx, key as u64)?,
            Add(key) => {
                learned[0] = self.delete(tx, key as u64)?;
                if let Some(before) = learned[0] {
                    self.insert(tx, key as u64, added(before, who))?;
                }
            }
            Plus(key) => {
                let before = self.delete(tx, key as u64)?;
                if let Some(before) = before {
                    self.insert(tx, key as u64, before + plus(who))?;
                }
                learned[0] = Some(u64::from(before.is_some()));
            }
            Apply(_) | Take(_) => unreachable!("no row of its own is changed"),
            Set(key) => {
                self.delete(tx, key as u64)?;
                self.insert(tx, key as u64, fresh(who))?;
            }
            Insert(key) => {
                let inserted = tx.savepoint(|tx| self.insert(tx, key as u64, fresh(who)))?;
                learned[0] = Some(u64::from(inserted.is_ok()));
            }
            Delete(key) => learned[0] = Some(u64::from(self.delete(tx, key as u64)?.is_some())),
            Scan(direction) => self.by_row.scan(tx, .., direction, |key, row, _| {
                learned[*key as usize] = Some(row / 2);
                ControlFlow::Continue(())
            })?,
        }
        Ok(learned)
    }
}

impl<P: Protocol> Keys<P> {
    fn new(engine: &Engine<P>, container: Container, state: State) -> Self {
        let load = |table: Table<u64, u64, P>| {
            for (key, value) in (0..).zip(state) {
                assert!(value.is_none_or(|value| table.bulk_insert([(key, value)]).is_ok()));
            }
            table
        };
        match container {
            Container::Boxes => {
                Self::Boxes(state.map(|value| TBox::new(engine, value.expect("boxes are full"))))
            }
            Container::Hash => {
                Self::Table(load(Database::on(engine).table("hash").hash(4).create().unwrap()))
            }
            Container::Ordered => Self::Table(load(Database::on(engine).table("ordered").create().unwrap())),
            Container::Secondary => {
                let mut builder = Database::on(engine).table("rows");
                let by_row = builder.secondary("by_row", |_, row| *row);
                Self::Secondary(load(builder.hash(4).create().unwrap()), by_row)
            }
            Container::Unique => Self::Unique(Rows::new(engine, state)),
        }
    }

    fn operate(&self, tx: &mut Tx<'_, P>, operation: Operation, who: u64) -> Result<State, Abort> {
        let mut learned = [None, None];
        match (self, operation) {
            (Self::Boxes(boxes), Get(key)) => learned[0] = Some(boxes[key].get(tx)?),
            (Self::Boxes(boxes), Apply(key)) => {
                boxes[key].apply(tx, move |value| *value = added(*value, who))?
            }
            (Self::Boxes(boxes), Take(key)) => {
                learned[0] = Some(u64::from(boxes[key].subtract_if_enough(tx, 1)?));
            }
            (Self::Boxes(boxes), Set(key)) => boxes[key].set(tx, fresh(who))?,
            (Self::Boxes(boxes), Add(key)) => {
                learned[0] = Some(boxes[key].update(tx, |value| {
                    let before = *value;
                    *value = added(before, who);
                    before
                })?);
            }
            (Self::Boxes(boxes), Scan(_)) => learned = [Some(boxes[0].get(tx)?), Some(boxes[1].get(tx)?)],
            (Self::Boxes(_), _) => unreachable!("boxes neither come nor go"),
            (Self::Table(table), Scan(direction)) => table.scan(tx, .., direction, |key, value| {
                learned[*key as usize] = Some(*value);
                ControlFlow::Continue(())
            })?,
            (Self::Secondary(_, index), Scan(direction)) => {
                index.scan(tx, .., direction, |_, key, value| {
                    learned[*key as usize] = Some(*value);
                    ControlFlow::Continue(())
                })?;
            }
            (Self::Unique(rows), operation) => learned = rows.operate(tx, operation, who)?,
            (Self::Table(table) | Self::Secondary(table, _), operation) => {
                learned[0] = Self::operate_on_table(table, tx, operation, who)?;
            }
        }
        Ok(learned)
    }

    fn operate_on_table(
        table: &Table<u64, u64, P>,
        tx: &mut Tx<'_, P>,
        operation: Operation,
        who: u64,
    ) -> Result<Option<u64>, Abort> {
        Ok(match operation {
            Get(key) => table.get(tx, &(key as u64))?,
            Add(key) => table.update_if_present(tx, &(key as u64), |value| {
                let before = *value;
                *value = added(before, who);
                before
            })?,
            Plus(key) => {
                let added = table.add_if_present(tx, &(key as u64), Column::whole(), plus(who))?;
                Some(u64::from(added))
            }
            Apply(key) => {
                table.apply(tx, &(key as u64), move |value| *value = added(*value, who))?;
                None
            }
            Take(key) => {
                let taken = table.subtract_if_enough(tx, &(key as u64), Column::whole(), 1)?;
                Some(u64::from(taken))
            }
            Set(key) => {
                table.upsert(tx, key as u64, fresh(who))?;
                None
            }
            Insert(key) => Some(u64::from(table.insert_if_absent(tx, key as u64, fresh(who))?)),
            Delete(key) => Some(u64::from(table.delete(tx, &(key as u64))?)),
            Scan(_) => unreachable!("no matter of one key"),
        })
    }

    fn now(&self, engine: &Engine<P>) -> State {
        match self {
            Self::Boxes(boxes) => {
                engine.transact(|tx| Ok([Some(boxes[0].get(tx)?), Some(boxes[1].get(tx)?)]))
            }
            Self::Table(table) | Self::Secondary(table, _) => {
                engine.transact(|tx| Ok([table.get(tx, &0)?, table.get(tx, &1)?]))
            }
            Self::Unique(rows) => engine.transact(|tx| Ok([rows.get(tx, 0)?, rows.get(tx, 1)?])),
        }
        .unwrap()
    }
}

/// The course of one transaction.
#[derive(Debug, Default)]
pub(super) struct Trace {
    /// The values that its operations learned, as far as it got.
    pub(super) learned: Vec<State>,
    pub(super) committed: bool,
    /// The positions in the schedule of its first step and its last one.
    pub(super) began: usize,
    pub(super) ended: usize,
}

/// Transactions, by their operations, and the state in which they find the keys.
pub(super) struct Combination<'a, const N: usize> {
    pub(super) container: Container,
    pub(super) before: State,
    pub(super) programs: [&'a [Operation]; N],
    /// Which of them rolls back at its end, if one does.
    pub(super) rolls_back: Option<usize>,
}

impl<const N: usize> Combination<'_, N> {
    /// Runs one schedule: the numbers of the transactions whose turns the steps are. The last step of each is to
    /// end.
    fn run<P: Protocol>(&self, series: &mut Series<P, N>, schedule: &[usize]) -> ([Trace; N], State) {
        series.run(|engine, mut transactions| {
            let keys = Keys::new(engine, self.container, self.before);
            let mut traces: [Trace; N] = std::array::from_fn(|_| Trace::default());
            let mut steps = [0; N];
            for (position, &turn) in schedule.iter().enumerate() {
                let (transaction, trace) = (&mut transactions[turn], &mut traces[turn]);
                if steps[turn] == 0 {
                    trace.began = position;
                }
                if transaction.outcome().is_none() {
                    trace.ended = position;
                    match self.programs[turn].get(steps[turn]) {
                        Some(operation) => {
                            let who = turn as u64 + 1;
                            let learned = transaction.step(|tx| keys.operate(tx, *operation, who));
                            trace.learned.extend(learned);
                        }
                        None if self.rolls_back == Some(turn) => transaction.roll_back(),
                        None => trace.committed = transaction.commit(),
                    }
                }
                steps[turn] += 1;
            }
            (traces, keys.now(engine))
        })
    }

    /// True if the transactions in `left`, one after the other in some order that keeps to the order of those that
    /// did not overlap, would have learned what they did and left the keys as they are. Those that were aborted
    /// leave no effect, but what they have learned must be true.
    pub(super) fn is_serial(&self, traces: &[Trace; N], left: &[usize], state: State, after: State) -> bool {
        if left.is_empty() {
            return state == after;
        }
        left.iter().any(|&next| {
            let trace = &traces[next];
            if left.iter().any(|other| traces[*other].ended < trace.began) {
                return false;
            }
            let mut made = state;
            let operations = self.programs[next].iter().zip(&trace.learned);
            let who = next as u64 + 1;
            let mut true_so_far =
                operations.map(|(operation, learned)| operation.model(who, &mut made) == *learned);
            let rest: Vec<_> = left.iter().copied().filter(|other| *other != next).collect();
            true_so_far.all(|is_true| is_true)
                && self.is_serial(traces, &rest, if trace.committed { made } else { state }, after)
        })
    }

    /// Runs every schedule and checks it. Returns how many there are.
    pub(super) fn check<P: Protocol>(&self) -> usize {
        let lengths = self.programs.map(|program| program.len() + 1);
        let mut schedules = 0;
        let mut series = Series::<P, N>::new();
        each_schedule(&mut Vec::new(), lengths, &mut |schedule| {
            schedules += 1;
            if schedules % SERIES == 0 {
                std::mem::replace(&mut series, Series::new()).judge();
            }
            let (traces, after) = self.run(&mut series, schedule);
            let describe = || {
                let Self { container, before, programs, rolls_back } = self;
                format!(
                    "{container:?} {before:?} {programs:?} {rolls_back:?} in turns {schedule:?}: {traces:?}, left {after:?}"
                )
            };
            let committed: Vec<_> = (0..N).filter(|number| traces[*number].committed).collect();
            assert!(self.is_serial(&traces, &committed, self.before, after), "{}", describe());
            let turns = schedule.windows(2).filter(|turns| turns[0] != turns[1]).count() + 1;
            let commits = N - usize::from(self.rolls_back.is_some());
            assert!(turns > N || committed.len() == commits, "aborted without need: {}", describe());
            if support::is_opaque::<P>() {
                for aborted in (0..N).filter(|number| !traces[*number].committed) {
                    let with_it: Vec<_> = committed.iter().copied().chain([aborted]).collect();
                    assert!(self.is_serial(&traces, &with_it, self.before, after), "{}", describe());
                }
            }
        });
        series.judge();
        schedules
    }
}

/// Calls `visit` with every order of so many steps of each transaction.
pub(super) fn each_schedule<const N: usize>(
    schedule: &mut Vec<usize>,
    left: [usize; N],
    visit: &mut impl FnMut(&[usize]),
) {
    if left == [0; N] {
        return visit(schedule);
    }
    for turn in 0..N {
        if left[turn] > 0 {
            let mut rest = left;
            rest[turn] -= 1;
            schedule.push(turn);
            each_schedule(schedule, rest, visit);
            schedule.pop();
        }
    }
}

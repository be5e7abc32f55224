//! Programs as procedures.

use super::model::row;
use super::program::{GROUPS, MISSING, NUMBERS_IN_QUEUE, Program, Source, What, added, changed, holds, mix};
use super::tables::Refs;
use hotrow::sync::thread;
use hotrow::{Context, Data, Operations, Procedure, TableRef};
use std::ops::ControlFlow;

/// The payload with which programs panic. No message is printed for a panic that is resumed.
pub(crate) const PLANNED: &str = "planned";

pub(crate) fn planned_panic() -> ! {
    std::panic::resume_unwind(Box::new(PLANNED))
}

/// A program, with what it works on.
pub(crate) struct Run<'a> {
    pub(crate) refs: Refs,
    pub(crate) keys: u64,
    pub(crate) program: &'a Program,
}

/// A value that an operation gave, as a number.
fn number<C: Context, T: Data>(
    cx: &mut C,
    value: C::Val<T>,
    of: impl FnOnce(T) -> u64 + Send + 'static,
) -> C::Val<u64> {
    cx.map(value, of)
}

/// An operation on one of the tables.
struct OnRow<V> {
    what: What,
    key: V,
    other: V,
    yields: bool,
}

/// A change of a row, in the midst of which others may run.
fn change(
    yields: bool,
    of: impl Fn(u64, u64) -> u64 + Clone + Send + 'static,
) -> impl Fn(&mut u64, u64) -> u64 + Clone + Send + 'static {
    move |row, amount| {
        if yields {
            thread::yield_now();
        }
        *row = of(*row, amount);
        *row
    }
}

fn on_row<C: Context>(
    cx: &mut C,
    table: TableRef<u64, u64>,
    keys: u64,
    on: OnRow<C::Val<u64>>,
) -> Result<C::Val<u64>, C::Stop> {
    let OnRow { what, key, other, yields } = on;
    let key = cx.map(key, move |key| key % keys);
    Ok(match what {
        What::Read { .. } => {
            let found = cx.read(table, key, |row| *row)?;
            number(cx, found, row)
        }
        What::Add { .. } => {
            let found = cx.update(table, key, other, change(yields, changed))?;
            number(cx, found, row)
        }
        What::PanicInChange { .. } => {
            let found = cx.update(table, key, other, |row, amount| {
                *row = changed(*row, amount);
                if !holds(*row) {
                    planned_panic();
                }
                *row
            })?;
            number(cx, found, row)
        }
        What::AddToEach { .. } => {
            let each = cx.map(key, |key| [key, key + 1]);
            let change = change(yields, changed);
            cx.update_each(table, each, other, 0, move |sum, row, amount| mix(sum, change(row, amount)))?
        }
        What::Commute { .. } => {
            let change = change(yields, added);
            cx.commute(table, key, other, move |row, amount| _ = change(row, amount))?;
            cx.value(0)
        }
        What::CommuteEach { .. } => {
            let each = cx.map(key, |key| vec![key, key + 1]);
            let change = change(yields, added);
            cx.commute_each(table, each, other, move |row, amount| _ = change(row, amount))?;
            cx.value(0)
        }
        What::Replace { .. } => {
            let replaced = cx.replace(table, key, other)?;
            number(cx, replaced, u64::from)
        }
        What::Delete { .. } => {
            let deleted = cx.delete(table, key)?;
            number(cx, deleted, u64::from)
        }
        What::Insert { grouped, .. } => {
            // One group for the whole table: inserts that may meet name their group alike.
            let inserted =
                if grouped { cx.insert_grouped(table, 0, key, other) } else { cx.insert(table, key, other) }?;
            number(cx, inserted, u64::from)
        }
        What::TakeRow { .. } => {
            let range = cx.value((0..u64::MAX).into());
            let taken = cx.take_first(table, 0, range)?;
            number(cx, taken, row)
        }
        What::Scan { from, limit, direction, .. } => {
            let range = cx.value((from..=u64::MAX).into());
            let initial = (0, limit);
            let scanned = cx.scan(table, range, direction, initial, |(sum, left), key, row| {
                mix(sum, key + row);
                *left -= 1;
                if *left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })?;
            number(cx, scanned, |(sum, _)| sum)
        }
        other => unreachable!("no operation on a row: {other:?}"),
    })
}

impl Run<'_> {
    fn step<C: Context>(
        &self,
        cx: &mut C,
        what: What,
        so_far: &[C::Val<u64>],
    ) -> Result<C::Val<u64>, C::Stop> {
        let Refs { queue, .. } = self.refs;
        let get = |cx: &mut C, source: Source| match source {
            Source::Known(number) => cx.value(number),
            Source::Earlier(at) => so_far[at].clone(),
        };
        Ok(match what {
            What::Read { table, key } | What::Delete { table, key } => {
                let (key, other) = (get(cx, key), cx.value(0));
                on_row(cx, self.refs.numbers[table], self.keys, OnRow { what, key, other, yields: false })?
            }
            What::Add { table, key, amount: other }
            | What::PanicInChange { table, key, amount: other }
            | What::AddToEach { table, key, amount: other }
            | What::Commute { table, key, amount: other }
            | What::CommuteEach { table, key, amount: other }
            | What::Replace { table, key, row: other }
            | What::Insert { table, key, row: other, .. } => {
                let (key, other) = (get(cx, key), get(cx, other));
                on_row(
                    cx,
                    self.refs.numbers[table],
                    self.keys,
                    OnRow { what, key, other, yields: self.program.yields },
                )?
            }
            What::TakeRow { table } | What::Scan { table, .. } => {
                let (key, other) = (cx.value(0), cx.value(0));
                on_row(cx, self.refs.numbers[table], self.keys, OnRow { what, key, other, yields: false })?
            }
            What::ScanIndex { table, limit, direction } => {
                let range = cx.value((0..=9).into());
                let index = self.refs.index(table);
                let scanned =
                    cx.scan_index(index, range, direction, (0, limit), |(sum, left), digit, key| {
                        mix(sum, digit * 10 + key);
                        *left -= 1;
                        if *left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                    })?;
                number(cx, scanned, |(sum, _)| sum)
            }
            What::Enqueue { group, number: at, row, grouped } => {
                let (at, row) = (get(cx, at), get(cx, row));
                let key = cx.map(at, move |at| (group, at % NUMBERS_IN_QUEUE));
                let inserted = if grouped {
                    cx.insert_grouped(queue, group, key, row)?
                } else {
                    cx.insert(queue, key, row)?
                };
                number(cx, inserted, u64::from)
            }
            What::Take { group } => {
                let range = cx.value(((group, 0)..(group + 1, 0)).into());
                let taken = cx.take_first(queue, group, range)?;
                number(cx, taken, |taken| taken.map_or(MISSING, |(_, number)| number))
            }
            What::Unqueue { group, number: at } => {
                let at = get(cx, at);
                let key = cx.map(at, move |at| (group, at % NUMBERS_IN_QUEUE));
                let deleted = cx.delete(queue, key)?;
                number(cx, deleted, u64::from)
            }
            What::ScanQueue => {
                let range = cx.value(((0, 0)..(GROUPS, 0)).into());
                let direction = hotrow::Direction::Ascending;
                cx.scan(queue, range, direction, 0, |sum, (group, number), row| {
                    mix(sum, group + number + row);
                    ControlFlow::Continue(())
                })?
            }
            What::Force { value } => {
                let value = get(cx, value);
                let value = cx.force(value)?;
                cx.value(value)
            }
            What::Require { holds: source } => {
                let condition = get(cx, source);
                let condition = cx.map(condition, holds);
                cx.require(condition)?;
                cx.value(0)
            }
            What::Panic { unless } => {
                let value = get(cx, unless);
                cx.map(value, |value| if holds(value) { 0 } else { planned_panic() })
            }
            other => unreachable!("drawn for closures only: {other:?}"),
        })
    }
}

impl Procedure for Run<'_> {
    /// The result of each operation.
    type Output = Vec<u64>;

    fn run<C: Context>(&self, cx: &mut C) -> Result<C::Val<Vec<u64>>, C::Stop> {
        let mut so_far = Vec::new();
        let mut all = cx.value(Vec::new());
        for step in &self.program.steps {
            if self.program.yields {
                thread::yield_now();
            }
            let number = self.step(cx, step.what, &so_far)?;
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

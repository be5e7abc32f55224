//! Programs as closures, whose operations are deferred or not, one by one.

use super::model::row;
use super::procedure::planned_panic;
use super::program::{
    BOXED, GROUPS, MISSING, NUMBERS_IN_QUEUE, Program, Source, What, added, changed, holds, mix, signed,
    unsigned,
};
use super::tables::{Row, Tables};
use hotrow::sync::thread;
use hotrow::{Abort, Deferred, Direction, Protocol, Table, Transaction};
use std::ops::ControlFlow;

/// A number that is known now, or when its operation has run.
#[derive(Debug, Clone, Copy)]
enum Number {
    Now(u64),
    Later(Deferred<u64>),
}

use Number::{Later, Now};

impl Number {
    fn deferred<P: Protocol>(self, tx: &mut Transaction<'_, P>) -> Deferred<u64> {
        match self {
            Now(number) => tx.known(number),
            Later(deferred) => deferred,
        }
    }

    fn now<P: Protocol>(self, tx: &mut Transaction<'_, P>) -> Result<u64, Abort> {
        match self {
            Now(number) => Ok(number),
            Later(deferred) => tx.force(deferred),
        }
    }
}

/// Runs a program as a closure. What each operation gave.
pub(crate) fn run<P: Protocol>(
    tables: &Tables<P>,
    keys: u64,
    program: &Program,
    tx: &mut Transaction<'_, P>,
) -> Result<Deferred<Vec<u64>>, Abort> {
    let mut so_far: Vec<Number> = Vec::new();
    let mut all = tx.known(Vec::new());
    for step in &program.steps {
        if program.yields {
            thread::yield_now();
        }
        let get = |source: Source| match source {
            Source::Known(number) => Now(number),
            Source::Earlier(at) => so_far[at],
        };
        let on = On { tables, keys, yields: program.yields, later: step.later };
        let number = on.step(tx, step.what, get)?;
        so_far.push(number);
        let number = number.deferred(tx);
        all = tx.compute((all, number), |(mut all, number): (Vec<u64>, u64)| {
            all.push(number);
            all
        })?;
    }
    Ok(all)
}

/// A change of a row, in the midst of which others may run.
fn change<R: Row>(
    yields: bool,
    of: impl Fn(u64, u64) -> u64 + Clone + 'static,
) -> impl Fn(&mut R, u64) -> u64 + Clone + 'static {
    move |row, amount| {
        if yields {
            thread::yield_now();
        }
        let changed = of(row.number(), amount);
        *row = R::from_number(changed);
        changed
    }
}

struct On<'a, P: Protocol> {
    tables: &'a Tables<P>,
    keys: u64,
    yields: bool,
    later: bool,
}

impl<P: Protocol> On<'_, P> {
    fn step(
        &self,
        tx: &mut Transaction<'_, P>,
        what: What,
        get: impl Fn(Source) -> Number,
    ) -> Result<Number, Abort> {
        let nothing = Source::Known(0);
        let on_table = match what {
            What::Read { table, key } | What::Delete { table, key } => Some((table, key, nothing)),
            What::Add { table, key, amount: other }
            | What::PanicInChange { table, key, amount: other }
            | What::AddToEach { table, key, amount: other }
            | What::Commute { table, key, amount: other }
            | What::CommuteEach { table, key, amount: other }
            | What::Replace { table, key, row: other }
            | What::Insert { table, key, row: other, .. }
            | What::Upsert { table, key, row: other } => Some((table, key, other)),
            What::TakeRow { table } | What::Scan { table, .. } => Some((table, nothing, nothing)),
            _ => None,
        };
        let Tables { database, refs, .. } = self.tables;
        if let Some((table, key, other)) = on_table {
            let (key, other) = (get(key), get(other));
            return match table {
                BOXED => self.on_row(tx, database.table_of(refs.boxed), what, key, other),
                _ => self.on_row(tx, database.table_of(refs.numbers[table]), what, key, other),
            };
        }
        self.on_queue_or_object(tx, what, get)
    }

    fn on_row<R: Row>(
        &self,
        tx: &mut Transaction<'_, P>,
        table: &Table<u64, R, P>,
        what: What,
        key: Number,
        other: Number,
    ) -> Result<Number, Abort> {
        let (keys, yields) = (self.keys, self.yields);
        let panicking = |row: &mut R, amount| {
            let changed = changed(row.number(), amount);
            if !holds(changed) {
                planned_panic();
            }
            *row = R::from_number(changed);
            changed
        };
        if !self.later || matches!(what, What::Upsert { .. } | What::TakeRow { .. } | What::Scan { .. }) {
            let (key, other) = (key.now(tx)? % keys, other.now(tx)?);
            return Ok(Now(match what {
                What::Read { .. } => row(table.read(tx, &key, R::number)?),
                What::Add { .. } => {
                    let change = change(yields, changed);
                    row(table.update_if_present(tx, &key, |row| change(row, other))?)
                }
                What::PanicInChange { .. } => {
                    row(table.update_if_present(tx, &key, |row| panicking(row, other))?)
                }
                What::AddToEach { .. } => {
                    let (mut sum, change) = (0, change(yields, changed));
                    for key in [key, key + 1] {
                        table.update_if_present(tx, &key, |row| mix(&mut sum, change(row, other)))?;
                    }
                    sum
                }
                What::Commute { .. } | What::CommuteEach { .. } => {
                    let last = if matches!(what, What::Commute { .. }) { key } else { key + 1 };
                    let change = change(yields, added);
                    for key in key..=last {
                        table.update_if_present(tx, &key, |row| change(row, other))?;
                    }
                    0
                }
                What::Replace { .. } => table.replace_if_present(tx, &key, R::from_number(other))?.into(),
                What::Delete { .. } => table.delete(tx, &key)?.into(),
                What::Insert { .. } => table.insert_if_absent(tx, key, R::from_number(other))?.into(),
                What::Upsert { .. } => table.upsert(tx, key, R::from_number(other))?.into(),
                What::TakeRow { .. } => row(table.take_first(tx, ..)?),
                What::Scan { from, limit, direction, .. } => {
                    let found = table.collect(tx, from.., direction, limit as usize)?;
                    let mut sum = 0;
                    found.iter().for_each(|(key, row)| mix(&mut sum, key + row.number()));
                    sum
                }
                other => unreachable!("no operation on a row: {other:?}"),
            }));
        }
        let input = other.deferred(tx);
        // Keys that are not known yet.
        match what {
            What::Insert { grouped, .. } => {
                let (key, row) = (key.deferred(tx).map(move |key| key % keys), input.map(R::from_number));
                let inserted = if grouped {
                    table.defer_insert_grouped(tx, 0, key, row)
                } else {
                    table.defer_insert(tx, key, row)
                }?;
                return Ok(Later(tx.compute(inserted, u64::from)?));
            }
            What::AddToEach { .. } => {
                let each = key.deferred(tx).map(move |key| [key % keys, key % keys + 1]);
                let change = change(yields, changed);
                let sum = table.defer_update_each(tx, each, input, 0, move |sum, row, amount| {
                    mix(sum, change(row, amount));
                })?;
                return Ok(Later(sum));
            }
            What::Commute { .. } | What::CommuteEach { .. } => {
                let count = if matches!(what, What::Commute { .. }) { 1 } else { 2 };
                let each = key.deferred(tx).map(move |key| (key % keys..).take(count));
                let change = change(yields, added);
                table
                    .defer_update_each(tx, each, input, (), move |(), row, amount| _ = change(row, amount))?;
                return Ok(Now(0));
            }
            _ => {}
        }
        let key = key.now(tx)? % keys;
        Ok(Later(match what {
            What::Read { .. } => {
                let found = table.defer_read(tx, &key, R::number)?;
                tx.compute(found, row)?
            }
            What::Add { .. } => {
                let found = table.defer_update(tx, &key, input, change(yields, changed))?;
                tx.compute(found, row)?
            }
            What::PanicInChange { .. } => {
                let found = table.defer_update(tx, &key, input, panicking)?;
                tx.compute(found, row)?
            }
            What::Replace { .. } => {
                let replaced = table.defer_replace(tx, &key, input.map(R::from_number))?;
                tx.compute(replaced, u64::from)?
            }
            What::Delete { .. } => {
                let deleted = table.defer_delete(tx, &key)?;
                tx.compute(deleted, u64::from)?
            }
            other => unreachable!("no deferred operation on a row: {other:?}"),
        }))
    }

    fn on_queue_or_object(
        &self,
        tx: &mut Transaction<'_, P>,
        what: What,
        get: impl Fn(Source) -> Number,
    ) -> Result<Number, Abort> {
        let Tables { database, refs, value, elements, counter } = self.tables;
        let queue = database.table_of(refs.queue);
        let later = self.later;
        Ok(match what {
            What::ScanIndex { table, limit, direction } => {
                let (mut sum, mut left) = (0, limit);
                database.index_of(refs.index(table)).scan_keys(tx, .., direction, |digit, key| {
                    mix(&mut sum, digit * 10 + key);
                    left -= 1;
                    if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                })?;
                Now(sum)
            }
            What::ScanQueue => {
                let mut sum = 0;
                queue.scan(tx, (0, 0)..(GROUPS, 0), Direction::Ascending, |(group, number), row| {
                    mix(&mut sum, group + number + row);
                    ControlFlow::Continue(())
                })?;
                Now(sum)
            }
            What::Enqueue { group, number, row, grouped } if later => {
                let (number, row) = (get(number).deferred(tx), get(row).deferred(tx));
                let key = number.map(move |number| (group, number % NUMBERS_IN_QUEUE));
                let inserted = if grouped {
                    queue.defer_insert_grouped(tx, group, key, row)
                } else {
                    queue.defer_insert(tx, key, row)
                }?;
                Later(tx.compute(inserted, u64::from)?)
            }
            What::Enqueue { group, number, row, .. } => {
                let (number, row) = (get(number).now(tx)?, get(row).now(tx)?);
                Now(queue.insert_if_absent(tx, (group, number % NUMBERS_IN_QUEUE), row)?.into())
            }
            What::Take { group } if later => {
                let taken = queue.defer_take_first(tx, group, (group, 0)..(group + 1, 0))?;
                Later(tx.compute(taken, |taken| taken.map_or(MISSING, |(_, number)| number))?)
            }
            What::Take { group } => {
                Now(queue.take_first(tx, (group, 0)..(group + 1, 0))?.map_or(MISSING, |(_, number)| number))
            }
            What::Unqueue { group, number } => {
                let key = (group, get(number).now(tx)? % NUMBERS_IN_QUEUE);
                if later {
                    let deleted = queue.defer_delete(tx, &key)?;
                    Later(tx.compute(deleted, u64::from)?)
                } else {
                    Now(queue.delete(tx, &key)?.into())
                }
            }
            What::Force { value } => Now(get(value).now(tx)?),
            What::Require { holds: source } => {
                match get(source) {
                    Later(number) if later => tx.require(number.map(holds))?,
                    number if holds(number.now(tx)?) => {}
                    _ => return Err(Abort::rollback()),
                }
                Now(0)
            }
            What::Panic { unless } => match get(unless) {
                Later(number) if later => {
                    Later(tx.compute(number, |number| if holds(number) { 0 } else { planned_panic() })?)
                }
                number => Now(if holds(number.now(tx)?) { 0 } else { planned_panic() }),
            },
            What::ReadBox if later => Later(value.defer_read(tx, |value| *value)?),
            What::ReadBox => Now(value.get(tx)?),
            What::SetBox { value: source } => {
                match get(source) {
                    Later(number) if later => value.defer_set(tx, number)?,
                    number => {
                        let number = number.now(tx)?;
                        value.set(tx, number)?;
                    }
                }
                Now(0)
            }
            What::AddToBox { amount } => {
                let change = change(self.yields, changed);
                if later {
                    let amount = get(amount).deferred(tx);
                    Later(value.defer_update(tx, amount, change)?)
                } else {
                    let amount = get(amount).now(tx)?;
                    Now(value.update(tx, |value| change(value, amount))?)
                }
            }
            What::ReadElement { index } if later => {
                Later(elements.defer_read(tx, index as usize, |element| *element)?)
            }
            What::ReadElement { index } => Now(elements.get(tx, index as usize)?),
            What::SetElement { index, value } => {
                if later {
                    let value = get(value).deferred(tx);
                    elements.defer_set(tx, index as usize, value)?;
                } else {
                    let value = get(value).now(tx)?;
                    elements.set(tx, index as usize, value)?;
                }
                Now(0)
            }
            What::AddToElement { index, amount } => {
                let change = change(self.yields, changed);
                if later {
                    let amount = get(amount).deferred(tx);
                    Later(elements.defer_update(tx, index as usize, amount, change)?)
                } else {
                    let amount = get(amount).now(tx)?;
                    Now(elements.update(tx, index as usize, |element| change(element, amount))?)
                }
            }
            What::AddToCounter { amount } => {
                if later {
                    let amount = get(amount).deferred(tx);
                    counter.defer_add(tx, amount.map(signed))?;
                } else {
                    let amount = get(amount).now(tx)?;
                    counter.add(tx, signed(amount))?;
                }
                Now(0)
            }
            What::SetCounter { value } => {
                if later {
                    let value = get(value).deferred(tx);
                    counter.defer_set(tx, value.map(signed))?;
                } else {
                    let value = get(value).now(tx)?;
                    counter.set(tx, signed(value))?;
                }
                Now(0)
            }
            What::GetCounter if later => {
                let value = counter.defer_get(tx)?;
                Later(tx.compute(value, unsigned)?)
            }
            What::GetCounter => Now(unsigned(counter.get(tx)?)),
            What::TestCounter { bound } => Now(counter.is_at_least(tx, signed(bound))?.into()),
            other => unreachable!("an operation on a row: {other:?}"),
        })
    }
}

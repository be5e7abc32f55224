//! Rows whose columns conflict apart.

use crate::support::{
    self, attempts, for_each_concurrent_protocol, for_each_protocol, overtake, whatever_time_it_takes,
};
use hotrow::sync::random::Random;
use hotrow::{
    Abort, Database, Deferred, Direction, Engine, MissingRow, Protocol, TBox, Table, Transaction, Value,
    column_of,
};
use std::collections::BTreeMap;

/// Main columns, and two groups whose columns are mixed with them and have sizes of less than a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Value)]
#[value(inline)]
pub(crate) struct Warehouse {
    tax: u32,
    #[value(group = "orders")]
    next: u32,
    #[value(group = "total")]
    total: u64,
    #[value(group = "total")]
    last: [u8; 3],
    #[value(group = "orders")]
    open: bool,
    name: [u8; 4],
}

impl Warehouse {
    pub(crate) fn new(bits: u64) -> Self {
        let [a, b, c, d, e, f, g, h] = bits.to_le_bytes();
        Self {
            tax: u32::from_le_bytes([h, g, f, e]),
            next: u32::from_le_bytes([a, b, c, d]),
            total: bits.wrapping_mul(31),
            last: [a, c, e],
            open: b % 2 == 0,
            name: [h, f, d, b],
        }
    }
}

/// Does something to some columns, and the same to the row of a map.
pub(crate) fn operate_on_columns<K: hotrow::Key, P: Protocol>(
    table: &Table<K, Warehouse, P>,
    tx: &mut Transaction<'_, P>,
    key: &K,
    row: Option<&mut Warehouse>,
    random: &mut Random,
) -> Result<(), Abort> {
    let new = Warehouse::new(random.bits());
    let (tax, next, total) =
        (column_of!(Warehouse, tax), column_of!(Warehouse, next), column_of!(Warehouse, total));
    let (last, open) = (column_of!(Warehouse, last), column_of!(Warehouse, open));
    let mut absent = new;
    let is_there = row.is_some();
    let row = row.unwrap_or(&mut absent);
    match random.below(12) {
        0 => {
            let seen = table.read_columns(tx, key, (total, last))?;
            assert_eq!(seen, is_there.then_some((row.total, row.last)));
        }
        1 => assert_eq!(table.read_columns(tx, key, tax)?, is_there.then_some(row.tax)),
        2 => {
            let seen = table.read_columns(tx, key, (open, tax, last))?;
            assert_eq!(seen, is_there.then_some((row.open, row.tax, row.last)));
        }
        3 => {
            // Random amounts leave the range.
            match is_there {
                true => table.wrapping_add(tx, key, total, new.total)?,
                false => assert!(!table.add_if_present(tx, key, total, new.total)?),
            }
            row.total = row.total.wrapping_add(new.total);
        }
        4 => {
            // Random amounts leave the range.
            match is_there {
                true => table.wrapping_add(tx, key, tax, new.tax)?,
                false => assert!(!table.add_if_present(tx, key, tax, new.tax)?),
            }
            row.tax = row.tax.wrapping_add(new.tax);
        }
        5 if is_there => {
            let amount = new.next / 2;
            assert_eq!(table.subtract_if_enough(tx, key, next, amount)?, row.next >= amount);
            row.next = row.next.checked_sub(amount).unwrap_or(row.next);
        }
        6 if is_there => {
            table.max(tx, key, next, new.next)?;
            row.next = row.next.max(new.next);
            table.set(tx, key, open, new.open)?;
            row.open = new.open;
        }
        7 if is_there => {
            table.min(tx, key, tax, new.tax)?;
            row.tax = row.tax.min(new.tax);
        }
        8 => {
            let columns = (next, open);
            let old = table.update_columns_if_present(tx, key, columns, |own| {
                std::mem::replace(own, (new.next, new.open))
            })?;
            assert_eq!(old, is_there.then_some((row.next, row.open)));
            (row.next, row.open) = (new.next, new.open);
        }
        9 => {
            let old = table.update_columns_if_present(tx, key, (tax, total), |own| {
                std::mem::replace(own, (new.tax, new.total))
            })?;
            assert_eq!(old, is_there.then_some((row.tax, row.total)));
            (row.tax, row.total) = (new.tax, new.total);
        }
        10 => {
            let amount = new.total;
            let changed = table.apply_columns_if_present(tx, key, (total, last), move |(total, last)| {
                *total ^= amount;
                last[1] = last[1].wrapping_add(1);
            })?;
            assert_eq!(changed, is_there);
            row.total ^= amount;
            row.last[1] = row.last[1].wrapping_add(1);
        }
        _ => {
            assert_eq!(table.replace_if_present(tx, key, new)?, is_there);
            *row = new;
        }
    }
    Ok(())
}

fn warehouses<P: Protocol>(engine: &Engine<P>) -> Table<u64, Warehouse, P> {
    let table = Database::on(engine).table("warehouses").hash(4).create().unwrap();
    table.bulk_insert([(1, Warehouse::new(7))]).unwrap();
    table
}

/// Numbers of operations of [`touch`].
const TOUCHES: usize = 4;

/// An operation on columns of one group: false if there is no such row.
fn touch<P: Protocol>(
    table: &Table<u64, Warehouse, P>,
    tx: &mut Transaction<'_, P>,
    group: usize,
    what: usize,
) -> Result<bool, Abort> {
    let column = [column_of!(Warehouse, next), column_of!(Warehouse, tax)];
    let column = column[group % 2];
    match (group, what) {
        (2, 0) => Ok(table.read_columns(tx, &1, column_of!(Warehouse, total))?.is_some()),
        (_, 0) => Ok(table.read_columns(tx, &1, column)?.is_some()),
        (2, 1) => table.add_if_present(tx, &1, column_of!(Warehouse, total), 1),
        (_, 1) => table.add_if_present(tx, &1, column, 1),
        (2, 2) => {
            let columns = (column_of!(Warehouse, total), column_of!(Warehouse, last));
            Ok(table.update_columns_if_present(tx, &1, columns, |(total, _)| *total += 1)?.is_some())
        }
        (_, 2) => Ok(table.update_columns_if_present(tx, &1, column, |value| *value += 1)?.is_some()),
        (2, _) => table.apply_columns_if_present(tx, &1, column_of!(Warehouse, total), |total| *total += 1),
        _ => table.apply_columns_if_present(tx, &1, column, |value| *value += 1),
    }
}

#[test]
fn transactions_that_touch_different_groups_of_a_row_are_not_in_each_others_way() {
    for_each_concurrent_protocol!(2, |P| {
        let engine = support::impatient::<P>();
        let table = warehouses(&engine);
        for (first, second) in [(0, 1), (1, 2), (2, 0)] {
            for number in 0..TOUCHES * TOUCHES {
                let (mine, others) = (number / TOUCHES, number % TOUCHES);
                let made = attempts(
                    &engine,
                    |tx| touch(&table, tx, first, mine).map(|is_there| assert!(is_there)),
                    |tx| touch(&table, tx, second, others).map(|is_there| assert!(is_there)),
                );
                assert_eq!(made, Some(1), "groups {first} and {second}, operations {mine} and {others}");
            }
        }
        // Each group was changed by three of four operations, four times each on both sides.
        let mut expected = Warehouse::new(7);
        expected.next += 24;
        expected.tax += 24;
        expected.total += 24;
        assert_eq!(engine.transact(|tx| table.get(tx, &1)), Ok(Some(expected)));
    });
}

#[test]
fn an_operation_on_several_groups_is_not_in_the_way_of_those_on_the_others() {
    for_each_concurrent_protocol!(2, |P| {
        let engine = support::impatient::<P>();
        let table = warehouses(&engine);
        let (next, tax, total) =
            (column_of!(Warehouse, next), column_of!(Warehouse, tax), column_of!(Warehouse, total));
        for number in 0..2 * TOUCHES {
            let (is_read, others) = (number / TOUCHES == 0, number % TOUCHES);
            let made = attempts(
                &engine,
                |tx| {
                    if is_read {
                        return table.read_columns(tx, &1, (total, next)).map(|seen| assert!(seen.is_some()));
                    }
                    table.update_columns(tx, &1, (next, total), |(next, total)| {
                        (*next, *total) = (*next + 1, 7)
                    })
                },
                |tx| touch(&table, tx, 1, others).map(|is_there| assert!(is_there)),
            );
            assert_eq!(made, Some(1), "is read: {is_read}, operation {others}");
            let with_main = attempts(
                &engine,
                |tx| {
                    table.update_columns(tx, &1, (tax, next), |(tax, next)| {
                        (*tax, *next) = (*tax + 1, *next + 1)
                    })
                },
                |tx| touch(&table, tx, 2, others).map(|is_there| assert!(is_there)),
            );
            assert_eq!(with_main, Some(1), "operation {others}");
        }
        let Warehouse { next, tax, total, .. } = Warehouse::new(7);
        let expected = Warehouse { next: next + 12, tax: tax + 14, total, ..Warehouse::new(7) };
        let row = engine.transact(|tx| table.get(tx, &1)).unwrap().unwrap();
        assert_eq!(Warehouse { total, ..row }, expected);
        // The last round has set it before the others' operation added to it.
        assert_eq!(row.total, 8);
    });
}

/// An event at a row, while an attempt is in progress that has touched a group of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meanwhile {
    Deleted,
    /// By one transaction: its record stays.
    DeletedAndInserted,
    /// By two transactions.
    DeletedThenInserted,
}

#[test]
fn whoever_has_touched_a_group_alone_notices_that_the_row_was_deleted_or_inserted_anew() {
    use Meanwhile::{Deleted, DeletedAndInserted, DeletedThenInserted};
    for_each_concurrent_protocol!(2, |P| {
        for (number, meanwhile) in (0..3 * TOUCHES)
            .flat_map(|number| [Deleted, DeletedAndInserted, DeletedThenInserted].map(|all| (number, all)))
        {
            let (group, what) = (number / TOUCHES, number % TOUCHES);
            let engine = support::impatient::<P>();
            let (table, note) = (warehouses(&engine), TBox::new(&engine, None));
            let (mut bodies, mut is_deleted, mut is_anew) = (0, false, false);
            let delete = |tx: &mut Transaction<'_, P>| {
                // So it comes before the one that it overtakes.
                assert_eq!(note.get(tx)?, None);
                assert!(table.delete(tx, &1)?);
                if meanwhile == DeletedAndInserted { table.insert(tx, 1, Warehouse::new(0)) } else { Ok(()) }
            };
            let ended = whatever_time_it_takes(|| {
                engine.transact(|tx| {
                    bodies += 1;
                    let is_there = touch(&table, tx, group, what)?;
                    if bodies == 1 && overtake(&engine, delete) {
                        is_deleted = true;
                        is_anew = meanwhile == DeletedAndInserted
                            || meanwhile == DeletedThenInserted
                                && overtake(&engine, |tx| table.insert(tx, 1, Warehouse::new(0)));
                    }
                    note.set(tx, Some(is_there))
                })
            });
            assert_eq!(ended, Ok(()));
            let ended = engine.transact(|tx| Ok((note.get(tx)?, table.get(tx, &1)?)));
            let mut expected = Warehouse::new(if is_anew { 0 } else { 7 });
            if what > 0 {
                match group {
                    0 => expected.next += 1,
                    1 => expected.tax += 1,
                    _ => expected.total += 1,
                }
            }
            let case = format!("group {group}, operation {what}, meanwhile {meanwhile:?}");
            if is_deleted && meanwhile != DeletedAndInserted {
                assert!(bodies >= 2, "{case}");
            }
            let is_there = !is_deleted || is_anew;
            assert_eq!(ended, Ok((Some(is_there), is_there.then_some(expected))), "{case}");
        }
    });
}

#[test]
fn a_row_is_seen_whole_though_its_groups_change_apart() {
    for_each_concurrent_protocol!(2, |P| {
        let engine = support::impatient::<P>();
        let (table, note) = (warehouses(&engine), TBox::new(&engine, None));
        let made = attempts(
            &engine,
            |tx| {
                let next = table.read_columns(tx, &1, column_of!(Warehouse, next))?;
                let row = table.get(tx, &1)?.unwrap();
                assert_eq!(next, Some(row.next));
                note.set(tx, Some(row.total))
            },
            |tx| {
                assert_eq!(note.get(tx)?, None);
                table.add(tx, &1, column_of!(Warehouse, total), 5)
            },
        );
        let total = Warehouse::new(7).total + if made.is_some() { 5 } else { 0 };
        assert_eq!(engine.transact(|tx| note.get(tx)), Ok(Some(total)));
    });
}

#[test]
fn a_row_is_seen_whole_though_its_last_group_is_the_attempts_own_write() {
    for_each_concurrent_protocol!(2, |P| {
        let (tax, next, total) =
            (column_of!(Warehouse, tax), column_of!(Warehouse, next), column_of!(Warehouse, total));
        let is_whole = |tax: u32, next: u32, total: u64| total == u64::from(tax) + u64::from(next);
        for what in 0..3 {
            let engine = support::impatient::<P>();
            let table = warehouses(&engine);
            let first = Warehouse { tax: 10, next: 20, total: 30, ..Warehouse::new(0) };
            engine.transact(|tx| table.upsert(tx, 1, first)).unwrap();
            // A panic of an attempt that loses would not be believed.
            let (mut bodies, mut torn) = (0, None);
            let _ = whatever_time_it_takes(|| {
                engine.transact(|tx| {
                    bodies += 1;
                    table.update_columns(tx, &1, (tax, total), |(tax, total)| {
                        *tax += 1;
                        *total += 1;
                    })?;
                    if bodies == 1 {
                        overtake(&engine, |tx| {
                            table.update_columns(tx, &1, (next, total), |(next, total)| {
                                *next += 5;
                                *total += 5;
                            })
                        });
                    }
                    let seen = match what {
                        0 => table.read_columns(tx, &1, (tax, next, total))?,
                        1 => table.get(tx, &1)?.map(|row| (row.tax, row.next, row.total)),
                        _ => Some(table.update_columns(tx, &1, (tax, next, total), |columns| *columns)?),
                    };
                    torn = torn.or(seen.filter(|(tax, next, total)| !is_whole(*tax, *next, *total)));
                    Ok(())
                })
            });
            assert_eq!(torn, None);
        }
    });
}

/// A row that is one column of a group.
#[derive(Debug, Clone, Copy, Value)]
#[value(inline)]
struct Alone {
    #[value(group = "only")]
    _number: u64,
}

#[test]
fn a_row_that_is_one_column_of_a_group_is_not_split() {
    let db = Database::open().unwrap();
    let (alone, plain) = (db.table::<u64, Alone>("alone"), db.table::<u64, u64>("plain"));
    let (alone, plain) = (alone.create().unwrap(), plain.create().unwrap());
    let items = db.transact(|tx| {
        alone.insert(tx, 1, Alone { _number: 1 })?;
        let items = tx.items();
        plain.insert(tx, 1, 1)?;
        Ok((items, tx.items() - items))
    });
    assert!(matches!(items, Ok((split, whole)) if split == whole), "{items:?}");
}

#[test]
fn indexes_and_constraints_see_what_they_are_made_of() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let database = Database::on(&engine);
        let mut builder = database.table::<u64, Warehouse>("indexed");
        // The key is made of columns of the record and of one group; the other group conflicts apart.
        let columns = (column_of!(Warehouse, next), column_of!(Warehouse, tax));
        let by_next = builder.secondary_on("by_next", columns, |_, (next, tax)| (next, tax));
        let indexed = builder.create().unwrap();
        let mut builder = database.table::<u64, Warehouse>("unique").hash(1);
        let by_total = builder.unique("by_total", |_, row| row.total);
        let unique = builder.create().unwrap();
        let checked = database.table::<u64, Warehouse>("checked");
        let checked =
            checked.check("there is more", |_, row| row.total > u64::from(row.next)).create().unwrap();
        let row = Warehouse { next: 1, tax: 2, total: 3, ..Warehouse::new(0) };
        for table in [&indexed, &unique, &checked] {
            table.bulk_insert([(1, row)]).unwrap();
        }
        engine
            .transact(|tx| {
                for table in [&indexed, &unique, &checked] {
                    table.add(tx, &1, column_of!(Warehouse, next), 4)?;
                    table.set(tx, &1, column_of!(Warehouse, tax), 9)?;
                    table.add(tx, &1, column_of!(Warehouse, total), 40)?;
                }
                Ok(())
            })
            .unwrap();
        let expected = Warehouse { next: 5, tax: 9, total: 43, ..row };
        let found = engine.transact(|tx| by_next.collect(tx, .., Direction::Ascending, 9));
        assert_eq!(found, Ok(vec![(1, expected)]));
        let entry = engine.transact(|tx| by_next.count(tx, (5, 9)..=(5, 9)));
        assert_eq!(entry, Ok(1));
        assert_eq!(engine.transact(|tx| by_total.get(tx, &43)), Ok(Some((1, expected))));
        let refused = engine.transact(|tx| checked.add(tx, &1, column_of!(Warehouse, next), 38));
        assert!(refused.unwrap_err().downcast_ref::<hotrow::ConstraintViolated>().is_some());
        let missing = engine.transact(|tx| checked.update_columns(tx, &2, columns, |_| ()));
        assert!(missing.unwrap_err().downcast_ref::<MissingRow>().is_some());
        assert_eq!(engine.transact(|tx| checked.get(tx, &1)), Ok(Some(expected)));
    });
}

/// Defers something, and does the same to the row of a map; returns what both have returned.
fn defer<P: Protocol>(
    table: &Table<u64, Warehouse, P>,
    tx: &mut Transaction<'_, P>,
    model: &mut BTreeMap<u64, Warehouse>,
    random: &mut Random,
) -> Result<(Deferred<u64>, u64), Abort> {
    let (key, new) = (random.below(3), Warehouse::new(random.bits()));
    let columns = (column_of!(Warehouse, total), column_of!(Warehouse, last));
    let row = model.get_mut(&key);
    let found = |found: Option<u64>| found.unwrap_or(u64::MAX);
    let digest = |row: &Warehouse| row.total ^ u64::from(row.next) << 32 ^ u64::from(row.tax);
    Ok(match random.below(7) {
        0 => (
            table.defer_read(tx, &key, digest).and_then(|read| tx.compute(read, found))?,
            found(row.map(|row| digest(row))),
        ),
        1 => {
            let read = table.defer_read_columns(tx, &key, columns)?;
            let read = tx.compute(read, move |seen| found(seen.map(|(total, _)| total)))?;
            (read, found(row.map(|row| row.total)))
        }
        2 => {
            let changed = table.defer_update(tx, &key, new.total, move |row, total| {
                let old = digest(row);
                (row.total, row.tax) = (total, new.tax);
                old
            })?;
            let expected = row.map(|row| {
                let old = digest(row);
                (row.total, row.tax) = (new.total, new.tax);
                old
            });
            (tx.compute(changed, found)?, found(expected))
        }
        3 => {
            let change = |(total, _): &mut (u64, [u8; 3]), more: u64| {
                *total = total.wrapping_add(more);
                *total
            };
            let changed = table.defer_update_columns(tx, &key, columns, new.total, change)?;
            let expected = row.map(|row| {
                row.total = row.total.wrapping_add(new.total);
                row.total
            });
            (tx.compute(changed, found)?, found(expected))
        }
        4 => {
            let deleted = table.defer_delete(tx, &key)?;
            (tx.compute(deleted, u64::from)?, u64::from(model.remove(&key).is_some()))
        }
        5 => {
            let inserted = {
                let new = tx.known(new);
                table.defer_insert(tx, key, new)?
            };
            let expected = !model.contains_key(&key);
            model.entry(key).or_insert(new);
            (tx.compute(inserted, u64::from)?, u64::from(expected))
        }
        _ => {
            let keys = tx.known([0u64, 2]);
            let each = table.defer_update_each(tx, keys, 1u32, 0u64, |sum: &mut u64, row, more| {
                *sum = sum.wrapping_add(row.total);
                row.next = row.next.wrapping_add(more);
            })?;
            let mut sum = 0u64;
            for key in [0, 2] {
                if let Some(row) = model.get_mut(&key) {
                    sum = sum.wrapping_add(row.total);
                    row.next = row.next.wrapping_add(1);
                }
            }
            (each, sum)
        }
    })
}

#[test]
fn deferred_operations_do_to_split_rows_what_they_do_to_a_map() {
    for_each_protocol!(1, |P| {
        for ordered in [false, true] {
            let engine = support::engine::<P>();
            let builder = Database::on(&engine).table::<u64, Warehouse>("warehouses");
            let table = if ordered { builder } else { builder.hash(4) }.create().unwrap();
            let (mut worker, mut random) = (engine.worker().unwrap(), Random::seeded(3));
            let mut model = BTreeMap::new();
            for number in 0..600 {
                let (start, count) = (random.clone(), 1 + number % 7);
                let mut expected = Vec::new();
                let (mut changed, mut after) = (model.clone(), random.clone());
                let found = worker
                    .transact_deferred(|tx| {
                        (changed, after) = (model.clone(), start.clone());
                        expected.clear();
                        let mut all: Deferred<Vec<u64>> = tx.known(Vec::new());
                        for _ in 0..count {
                            let (one, known) = defer(&table, tx, &mut changed, &mut after)?;
                            expected.push(known);
                            all = tx.compute((all, one), |(mut all, one)| {
                                all.push(one);
                                all
                            })?;
                        }
                        Ok(all)
                    })
                    .unwrap();
                assert_eq!(found, expected, "transaction {number}");
                (model, random) = (changed, after);
            }
            for key in 0..3 {
                assert_eq!(worker.transact(|tx| table.get(tx, &key)).unwrap(), model.get(&key).copied());
            }
        }
    });
}

//! Additions to columns: they commute, and are seen like any other change.

use crate::support::steps::judge;
use crate::support::{
    self, attempts, for_each_concurrent_protocol, for_each_protocol, on_threads, overtake,
    whatever_time_it_takes,
};
use hotrow::sync::random::Random;
use hotrow::{
    Abort, Column, ConstraintViolated, Database, Direction, Engine, MissingRow, Overflow, Protocol, TArray,
    TBox, TCounter, TCounters, Table, Transaction, Value, column_of,
};
use std::collections::BTreeMap;
use std::ops::ControlFlow;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Value)]
#[value(inline)]
struct Account {
    balance: i64,
    visits: u16,
    flags: u8,
    level: i8,
    limit: i32,
}

fn account(balance: i64) -> Account {
    Account { balance, visits: 0, flags: 250, level: 100, limit: 7 }
}

#[test]
fn transactions_that_only_add_to_a_row_never_abort_each_other() {
    for_each_concurrent_protocol!(2, |P| {
        for hash in [false, true] {
            let engine = support::impatient::<P>();
            let builder = Database::on(&engine).table::<u64, Account>("accounts");
            let table = if hash { builder.hash(4).create().unwrap() } else { builder.create().unwrap() };
            table.bulk_insert([(1, account(100))]).unwrap();
            let add = |tx: &mut Transaction<'_, P>, amount| {
                table.add(tx, &1, column_of!(Account, balance), amount)?;
                table.add(tx, &1, column_of!(Account, visits), 1)
            };
            let made = attempts(&engine, |tx| add(tx, 5), |tx| add(tx, -7));
            assert!(made.is_none_or(|made| made == 1), "{made:?}");
            // Where the other one is not held off by a lock, both commit at once.
            assert!(made.is_some() || !["occ", "tl2", "tictoc"].contains(&support::chosen().as_str()));
            let left = engine.transact(|tx| table.get(tx, &1)).unwrap().unwrap();
            let others = i64::from(made.is_some());
            assert_eq!((left.balance, i64::from(left.visits)), (105 - 7 * others, 1 + others));
            assert_eq!(left, Account { balance: left.balance, visits: left.visits, ..account(0) });
            // A transaction that has read the row depends on it.
            let made = attempts(
                &engine,
                |tx| {
                    let before = table.get(tx, &1)?.unwrap().balance;
                    add(tx, 10)?;
                    table.update(tx, &1, |row| assert_eq!(row.balance, before + 10))
                },
                |tx| add(tx, 1_000),
            );
            let after = engine.transact(|tx| table.get(tx, &1)).unwrap().unwrap();
            assert_eq!(after.balance, left.balance + 10 + 1_000 * i64::from(made.is_some()));
        }
    });
}

#[test]
fn an_addition_to_a_row_that_is_deleted_meanwhile_is_not_lost_silently() {
    for_each_concurrent_protocol!(2, |P| {
        let engine = support::impatient::<P>();
        let table = Database::on(&engine).table::<u64, i64>("rows").hash(4).create().unwrap();
        table.bulk_insert([(1, 100)]).unwrap();
        let mut was_overtaken = None;
        let added = whatever_time_it_takes(|| {
            engine.transact(|tx| {
                table.add(tx, &1, Column::whole(), 5)?;
                was_overtaken.get_or_insert_with(|| {
                    overtake(&engine, |tx| table.delete(tx, &1).map(|deleted| assert!(deleted)))
                });
                Ok(())
            })
        });
        if was_overtaken == Some(true) {
            assert!(added.unwrap_err().downcast_ref::<MissingRow>().is_some());
        } else {
            assert_eq!((added, engine.transact(|tx| table.get(tx, &1))), (Ok(()), Ok(Some(105))));
        }
    });
}

#[test]
fn additions_wrap_around_within_their_column() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let table = Database::on(&engine).table::<u64, Account>("accounts").create().unwrap();
        table.bulk_insert([(1, account(i64::MAX))]).unwrap();
        let added = engine.transact(|tx| {
            table.wrapping_add(tx, &1, column_of!(Account, balance), 1)?;
            table.wrapping_add(tx, &1, column_of!(Account, flags), 9)?;
            table.wrapping_add(tx, &1, column_of!(Account, level), 50)?;
            table.wrapping_add(tx, &1, column_of!(Account, limit), -8)?;
            table.wrapping_add(tx, &1, column_of!(Account, flags), 2)?;
            assert!(!table.add_if_present(tx, &2, column_of!(Account, limit), 1)?);
            Ok(())
        });
        assert_eq!(added, Ok(()));
        let expected = Account { balance: i64::MIN, visits: 0, flags: 5, level: -106, limit: -1 };
        assert_eq!(engine.transact(|tx| table.get(tx, &1)), Ok(Some(expected)));
        let missing = engine.transact(|tx| {
            table.add(tx, &1, column_of!(Account, limit), 1)?;
            table.add(tx, &2, column_of!(Account, limit), 1)
        });
        assert!(missing.unwrap_err().downcast_ref::<MissingRow>().is_some());
        assert_eq!(engine.transact(|tx| table.get(tx, &1)), Ok(Some(expected)));
    });
}

#[test]
fn additions_that_leave_the_range_roll_back_and_name_the_row() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let db = Database::on(&engine);
        let plain = db.table::<u64, Account>("plain").create().unwrap();
        let checked = db.table::<u64, Account>("checked").check("any", |_, _| true).create().unwrap();
        let boxed = db.table::<u64, Named>("boxed").create().unwrap();
        let full = |table: &Table<u64, Account, P>| {
            table.bulk_insert([(1, account(i64::MAX - 1)), (2, account(0))]).unwrap();
        };
        [&plain, &checked].into_iter().for_each(full);
        boxed.bulk_insert([(1, Named { name: String::from("ada"), points: u32::MAX })]).unwrap();
        let (number, numbers) =
            (TBox::named(&engine, "number", u8::MAX), TArray::new(&engine, 2, |_| i64::MIN));
        let (counter, counters) = (TCounter::new(&engine, i64::MAX), TCounters::new(&engine, [0, i64::MIN]));
        let balance = column_of!(Account, balance);
        type Add<'a, P> = &'a dyn Fn(&mut Transaction<'_, P>) -> Result<(), Abort>;
        let additions: [(&str, Add<'_, P>); 9] = [
            ("plain[1]", &|tx| plain.add(tx, &1, balance, 5)),
            ("plain[1]", &|tx| {
                plain.add(tx, &1, balance, 5)?;
                plain.add(tx, &1, column_of!(Account, limit), 1)?;
                // An operation that needs the row.
                plain.get(tx, &1).map(drop)
            }),
            ("plain[1]", &|tx| {
                plain.add(tx, &1, column_of!(Account, visits), 1)?;
                plain.apply(tx, &1, |row| row.limit = 3)?;
                plain.add(tx, &1, balance, 5)
            }),
            ("checked[1]", &|tx| checked.add(tx, &1, balance, 5)),
            ("boxed[1]", &|tx| boxed.add(tx, &1, column_of!(Named, points), 5)),
            ("number", &|tx| number.add(tx, 1)),
            ("array[1]", &|tx| numbers.add(tx, 1, -1)),
            ("counter", &|tx| counter.add(tx, 1)),
            ("counters[1]", &|tx| counters.add(tx, 1, -1)),
        ];
        for (name, add) in additions {
            let ended = engine.transact(|tx| {
                plain.add(tx, &2, balance, 1)?;
                counter.add(tx, -1)?;
                counter.add(tx, 1)?;
                add(tx)
            });
            let error = ended.unwrap_err();
            let overflow = error.downcast_ref::<Overflow>().unwrap_or_else(|| panic!("{name}: {error}"));
            assert!(overflow.to_string().contains(name), "{name}: {overflow}");
            let balances = [(&plain, 1), (&plain, 2), (&checked, 1)]
                .map(|(table, key)| engine.transact(|tx| table.read_columns(tx, &key, balance)).unwrap());
            assert_eq!(balances, [Some(i64::MAX - 1), Some(0), Some(i64::MAX - 1)], "{name}");
        }
        // The sum counts, whatever it was in between.
        let within = engine.transact(|tx| {
            plain.add(tx, &1, balance, 5)?;
            plain.add(tx, &1, column_of!(Account, limit), 1)?;
            plain.add(tx, &1, balance, -5)?;
            number.wrapping_add(tx, 1)?;
            numbers.wrapping_add(tx, 0, -1)
        });
        assert_eq!(within, Ok(()));
        let seen = engine.transact(|tx| Ok((number.get(tx)?, numbers.get(tx, 0)?, counter.get(tx)?)));
        assert_eq!(seen, Ok((0, i64::MAX, i64::MAX)));
    });
}

type Model = BTreeMap<u64, i64>;

/// Does the same to the table and to the model, some of it in parts that are undone.
fn operate<P: Protocol>(
    tx: &mut Transaction<'_, P>,
    table: &Table<u64, i64, P>,
    ordered: bool,
    model: &mut Model,
    random: &mut Random,
    depth: u32,
) -> Result<(), Abort> {
    for _ in 0..random.between(1, 8) {
        let (key, amount) = (random.below(4), random.below(100).cast_signed() - 50);
        match random.below(11) {
            0..=3 => {
                let added = table.add_if_present(tx, &key, Column::whole(), amount)?;
                assert_eq!(added, model.get_mut(&key).map(|row| *row += amount).is_some());
            }
            4 => {
                let updated = table.update_if_present(tx, &key, |row| *row *= 2)?;
                assert_eq!(updated, model.get_mut(&key).map(|row| *row *= 2));
            }
            5 => assert_eq!(
                table.replace_if_present(tx, &key, amount)?,
                model.get_mut(&key).map(|row| *row = amount).is_some()
            ),
            6 => assert_eq!(table.delete(tx, &key)?, model.remove(&key).is_some()),
            7 => {
                let is_free = !model.contains_key(&key);
                model.entry(key).or_insert(amount);
                assert_eq!(table.insert_if_absent(tx, key, amount)?, is_free);
            }
            8 => assert_eq!(table.get(tx, &key)?, model.get(&key).copied()),
            9 if ordered => {
                let rows = table.collect(tx, .., Direction::Ascending, 9)?;
                assert_eq!(rows, model.iter().map(|(key, row)| (*key, *row)).collect::<Vec<_>>());
            }
            _ if depth < 3 => {
                let before = model.clone();
                let stays = random.chance(0.5);
                let part = tx.savepoint(|tx| {
                    operate(tx, table, ordered, model, random, depth + 1)?;
                    if stays { Ok(()) } else { Err(Abort::rollback()) }
                })?;
                if part.is_err() {
                    *model = before;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

#[test]
fn additions_beside_all_other_operations_are_as_in_a_model() {
    for_each_protocol!(1, |P| {
        for ordered in [false, true] {
            let engine = support::engine::<P>();
            let builder = Database::on(&engine).table::<u64, i64>("rows");
            let table = if ordered { builder.create().unwrap() } else { builder.hash(4).create().unwrap() };
            let recording = engine.record_history(1 << 24).unwrap();
            let (mut random, mut model) = (Random::seeded(7), Model::new());
            for round in 0..400 {
                let before = model.clone();
                let commits = round % 4 != 3;
                let ended = engine.transact(|tx| {
                    operate(tx, &table, ordered, &mut model, &mut random, 0)?;
                    if commits { Ok(()) } else { Err(Abort::rollback()) }
                });
                assert_eq!(ended.is_ok(), commits, "{ended:?}");
                if !commits {
                    model = before;
                }
                for key in 0..4 {
                    assert_eq!(engine.transact(|tx| table.get(tx, &key)), Ok(model.get(&key).copied()));
                }
            }
            judge(&recording.finish());
        }
    });
}

#[test]
fn no_addition_of_threads_is_lost() {
    for_each_protocol!(2, |P| {
        let engine = support::engine::<P>();
        let table = Database::on(&engine).table::<u64, Account>("accounts").create().unwrap();
        table.bulk_insert((0..2).map(|key| (key, account(0)))).unwrap();
        let recording = engine.record_history(1 << 24).unwrap();
        on_threads(&engine, 2, |thread, worker| {
            for round in 0..300u64 {
                let (from, to) = ((round + thread) % 2, (round + thread + 1) % 2);
                let ended = worker.transact(|tx| {
                    table.add(tx, &from, column_of!(Account, balance), -3)?;
                    if round % 5 == 0 {
                        let mut sum = 0;
                        table.scan(tx, .., Direction::Ascending, |_, row| {
                            sum += row.balance;
                            ControlFlow::Continue(())
                        })?;
                        assert_eq!(sum, -3, "its own addition and nobody's half");
                    }
                    if round % 7 == 0 {
                        table.update(tx, &to, |row| row.balance += 3)?;
                    } else {
                        table.add(tx, &to, column_of!(Account, balance), 3)?;
                    }
                    table.add(tx, &to, column_of!(Account, visits), 1)
                });
                ended.unwrap();
            }
        });
        judge(&recording.finish());
        let rows = engine.transact(|tx| table.collect(tx, .., Direction::Ascending, 9)).unwrap();
        let sum = |of: fn(&Account) -> i64| rows.iter().map(|(_, row)| of(row)).sum::<i64>();
        assert_eq!((sum(|row| row.balance), sum(|row| row.visits.into())), (0, 600));
    });
}

#[test]
fn additions_and_deferred_operations_keep_their_order() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let table = Database::on(&engine).table::<u64, i64>("rows").queues(|_| 1).create().unwrap();
        table.bulk_insert((0..4).map(|key| (key, 10))).unwrap();
        let read = engine.transact_deferred(|tx| {
            table.add(tx, &0, Column::whole(), 5)?;
            table.defer_update(tx, &0, (), |row, ()| *row *= 2)?;
            table.defer_update(tx, &1, (), |row, ()| *row *= 2)?;
            table.add(tx, &1, Column::whole(), 5)?;
            table.add(tx, &2, Column::whole(), 5)?;
            table.defer_read(tx, &2, |row| *row)
        });
        assert_eq!(read, Ok(Some(15)));
        let taken = engine.transact_deferred(|tx| {
            table.add(tx, &0, Column::whole(), 1)?;
            let taken = table.defer_take_first(tx, 1, ..)?;
            table.add(tx, &1, Column::whole(), 1)?;
            Ok(taken)
        });
        assert_eq!(taken, Ok(Some(0)));
        let deleted = engine.transact_deferred(|tx| {
            table.add(tx, &3, Column::whole(), 1)?;
            table.defer_delete(tx, &3)
        });
        assert_eq!(deleted, Ok(true));
        let rows = engine.transact(|tx| table.collect(tx, .., Direction::Ascending, 9));
        assert_eq!(rows, Ok(vec![(1, 26), (2, 15)]));
    });
}

#[derive(Debug, Clone, PartialEq, Value)]
struct Named {
    name: String,
    points: u32,
}

#[test]
fn rows_that_indexes_and_constraints_look_at_are_added_to_as_well() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let points = column_of!(Named, points);
        let plain = Database::on(&engine).table::<u64, Named>("boxed").create().unwrap();
        let mut builder = Database::on(&engine).table::<u64, i64>("rows");
        let by_row = builder.unique("by_row", |_, row| *row);
        let rows = builder.check("not negative", |_, row| *row >= 0).create().unwrap();
        plain.bulk_insert([(1, Named { name: String::from("ada"), points: 1 })]).unwrap();
        rows.bulk_insert([(1, 10)]).unwrap();
        let add = |engine: &Engine<P>, amount| {
            engine.transact(|tx| {
                plain.add(tx, &1, points, 2)?;
                rows.add(tx, &1, Column::whole(), amount)
            })
        };
        assert_eq!(add(&engine, 5), Ok(()));
        assert!(add(&engine, -16).unwrap_err().downcast_ref::<ConstraintViolated>().is_some());
        assert_eq!(engine.transact(|tx| by_row.get(tx, &15)), Ok(Some((1, 15))));
        assert_eq!(engine.transact(|tx| by_row.get(tx, &10)), Ok(None));
        assert_eq!(engine.transact(|tx| plain.read(tx, &1, |row| row.points)), Ok(Some(3)));
    });
}

//! Errors with which tables roll a transaction back: a missing row, an existing key, a row that breaks a constraint.

use crate::support::steps::judge;
use crate::support::{
    self, for_each_concurrent_protocol, for_each_protocol, on_threads, overtake, whatever_time_it_takes,
};
use hotrow::sync::random::Random;
use hotrow::{
    Abort, ConstraintViolated, Context, Database, Direction, Engine, Error, KeyExists, MissingRow,
    Operations, Procedure, Procedures, Protocol, Table, TableRef, Transaction, Value, Worker,
};

/// The content of a table.
fn rows<P: Protocol>(engine: &Engine<P>, table: &Table<u64, u64, P>) -> Vec<(u64, u64)> {
    engine.transact(|tx| table.collect(tx, .., Direction::Ascending, 100)).unwrap()
}

#[test]
fn a_missing_row_and_an_existing_key_roll_everything_back() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let table = Database::on(&engine).table::<u64, u64>("rows").create().unwrap();
        table.bulk_insert([(1, 10)]).unwrap();
        let missing = |error: Error| {
            let MissingRow { table, key, .. } = error.downcast_ref::<MissingRow>().expect("its type");
            assert_eq!((table.as_str(), key.as_str()), ("rows", "2"));
            assert_eq!(error.to_string(), "rolled back: rows has no row with key 2");
        };
        let update = engine.transact(|tx| {
            assert_eq!(table.update(tx, &1, |row| std::mem::replace(row, 11))?, 10);
            table.update(tx, &2, |_| unreachable!("there is no such row"))
        });
        missing(update.unwrap_err());
        let replace = engine.transact(|tx| {
            table.replace(tx, &1, 12)?;
            table.replace(tx, &2, 20)
        });
        missing(replace.unwrap_err());
        let deleted = engine.transact(|tx| {
            table.insert(tx, 2, 20)?;
            assert!(table.delete(tx, &2)?);
            table.update(tx, &2, |row| *row += 1)
        });
        missing(deleted.unwrap_err());
        for key in [1, 3] {
            let insert = engine.transact(|tx| {
                table.insert(tx, 3, 30)?;
                table.insert(tx, key, 99)
            });
            let error = insert.unwrap_err();
            let KeyExists { table, key: existing, .. } = error.downcast_ref().expect("its type");
            assert_eq!((table.as_str(), existing), ("rows", &key.to_string()));
        }
        assert_eq!(rows(&engine, &table), [(1, 10)]);
        let all = engine.transact(|tx| {
            table.insert(tx, 2, 20)?;
            table.replace(tx, &1, 100)?;
            table.update(tx, &2, |row| *row += 1)?;
            assert!(table.delete(tx, &1)?);
            table.insert(tx, 1, 11)
        });
        assert_eq!(all, Ok(()));
        assert_eq!(rows(&engine, &table), [(1, 11), (2, 21)]);
    });
}

#[test]
fn a_savepoint_catches_a_missing_row_and_undoes_its_part() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let table = Database::on(&engine).table::<u64, u64>("rows").create().unwrap();
        table.bulk_insert([(1, 10)]).unwrap();
        let seen = engine.transact(|tx| {
            table.insert(tx, 3, 30)?;
            let part = tx.savepoint(|tx| {
                table.update(tx, &1, |row| *row = 0)?;
                table.update(tx, &2, |row| *row = 0)
            })?;
            assert!(part.unwrap_err().downcast_ref::<MissingRow>().is_some());
            let part = tx.savepoint(|tx| {
                table.insert(tx, 2, 20)?;
                table.insert(tx, 3, 0)
            })?;
            assert!(part.unwrap_err().downcast_ref::<KeyExists>().is_some());
            table.collect(tx, .., Direction::Ascending, 9)
        });
        assert_eq!(seen, Ok(vec![(1, 10), (3, 30)]));
        assert_eq!(rows(&engine, &table), [(1, 10), (3, 30)]);
    });
}

#[test]
fn an_attempt_that_saw_no_consistent_state_reports_no_missing_row() {
    for_each_concurrent_protocol!(2, |P| {
        let engine = support::impatient::<P>();
        let table = Database::on(&engine).table::<u64, u64>("rows").hash(10).create().unwrap();
        table.bulk_insert([(0, 5)]).unwrap();
        let move_row = |tx: &mut Transaction<'_, P>| {
            assert!(table.delete(tx, &0)?);
            table.insert(tx, 1, 5)
        };
        let mut was_overtaken = None;
        let changed = whatever_time_it_takes(|| {
            engine.transact(|tx| {
                let at = u64::from(table.get(tx, &0)?.is_none());
                // The row moves between the look and the change.
                was_overtaken.get_or_insert_with(|| overtake(&engine, move_row));
                table.update(tx, &at, |row| *row += 1)
            })
        });
        assert_eq!(changed, Ok(()));
        let left = engine.transact(|tx| Ok([table.get(tx, &0)?, table.get(tx, &1)?])).unwrap();
        assert_eq!(left, if was_overtaken == Some(true) { [None, Some(6)] } else { [Some(6), None] });
    });
}

#[test]
fn an_error_type_of_the_users_own_takes_a_missing_row_over() {
    #[derive(Debug, PartialEq)]
    enum Own {
        Missing(String),
        Other,
    }
    impl From<Abort> for Own {
        fn from(abort: Abort) -> Self {
            abort.downcast_ref::<MissingRow>().map_or(Own::Other, |missing| Own::Missing(missing.key.clone()))
        }
    }
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let table = Database::on(&engine).table::<String, u64>("rows").hash(10).create().unwrap();
        let ended = engine.try_transact(|tx| table.update(tx, "anna", |row| *row += 1).map_err(Own::from));
        assert_eq!(ended, Err(Error::Rollback(Own::Missing(String::from("\"anna\"")))));
    });
}

/// Accounts whose balances are neither negative nor above a thousand.
fn accounts<P: Protocol>(engine: &Engine<P>, hash: bool) -> Table<u64, i64, P> {
    let builder = Database::on(engine)
        .table("accounts")
        .check("not negative", |_, balance| *balance >= 0)
        .check("at most a thousand", |_, balance| *balance <= 1_000);
    let table = if hash { builder.hash(10).create().unwrap() } else { builder.create().unwrap() };
    table.bulk_insert((0..4).map(|key| (key, 100))).unwrap();
    table
}

fn is_violated<R: std::fmt::Debug>(ended: Result<R, Error>, expected: (&str, &str)) -> bool {
    let error = ended.unwrap_err();
    let Some(ConstraintViolated { table, key, constraint, .. }) = error.downcast_ref() else { return false };
    table == "accounts" && (key.as_str(), constraint.as_str()) == expected
}

const NEGATIVE: &str = "not negative";

#[test]
fn a_row_that_breaks_a_constraint_rolls_everything_back() {
    for_each_protocol!(1, |P| {
        for hash in [false, true] {
            let engine = support::engine::<P>();
            let table = accounts(&engine, hash);
            let all = |engine: &Engine<P>| {
                (0..6).map(|key| engine.transact(|tx| table.get(tx, &key)).unwrap()).collect::<Vec<_>>()
            };
            let before = all(&engine);
            let update = engine.transact(|tx| {
                table.update(tx, &0, |balance| *balance += 150)?;
                table.update(tx, &1, |balance| *balance -= 150)
            });
            assert!(is_violated(update, ("1", NEGATIVE)));
            let replace = engine.transact(|tx| {
                table.replace(tx, &1, 99)?;
                table.replace(tx, &2, 1_001)
            });
            assert!(is_violated(replace, ("2", "at most a thousand")));
            let insert = engine.transact(|tx| {
                assert!(table.delete(tx, &1)?);
                table.insert(tx, 5, -1)
            });
            assert!(is_violated(insert, ("5", NEGATIVE)));
            let again = engine.transact(|tx| {
                assert!(table.delete(tx, &1)?);
                table.insert(tx, 1, -1)
            });
            assert!(is_violated(again, ("1", NEGATIVE)));
            assert!(is_violated(engine.transact(|tx| table.upsert(tx, 3, -1)), ("3", NEGATIVE)));
            assert!(is_violated(engine.transact(|tx| table.upsert(tx, 4, -1)), ("4", NEGATIVE)));
            assert!(is_violated(table.bulk_insert([(5, 1), (4, -1)]), ("4", NEGATIVE)));
            assert_eq!(all(&engine), before);
        }
    });
}

#[test]
fn a_row_may_break_a_constraint_before_the_end() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let table = accounts(&engine, true);
        let seen = engine.transact(|tx| {
            table.update(tx, &0, |balance| *balance = -5)?;
            table.update(tx, &0, |balance| *balance += 10)?;
            table.replace(tx, &1, -5)?;
            assert!(table.delete(tx, &1)?);
            table.insert(tx, 4, -5)?;
            assert!(table.delete(tx, &4)?);
            table.insert(tx, 5, -5)?;
            table.update(tx, &5, |balance| *balance = 5)?;
            let part = tx.savepoint(|tx| {
                table.update(tx, &2, |balance| *balance = -5)?;
                table.update(tx, &5, |balance| *balance = -5)?;
                table.insert(tx, 6, -5)?;
                Err::<(), _>(Abort::rollback())
            })?;
            assert!(part.is_err());
            table.update(tx, &3, |balance| *balance += 1)
        });
        assert_eq!(seen, Ok(()));
        let left: Vec<_> = (0..7).map(|key| engine.transact(|tx| table.get(tx, &key)).unwrap()).collect();
        assert_eq!(left, [Some(5), None, Some(100), Some(101), None, Some(5), None]);
        // A part that stays counts.
        let kept = engine.transact(|tx| {
            let part = tx.savepoint(|tx| table.update(tx, &2, |balance| *balance = -5))?;
            assert!(part.is_ok());
            Ok(())
        });
        assert!(is_violated(kept, ("2", NEGATIVE)));
    });
}

#[test]
fn a_deferred_operation_is_judged_after_it_has_run() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let table = accounts(&engine, true);
        let update = |first: i64, second: i64| {
            engine.transact_deferred(|tx| {
                table.defer_update(tx, &0, (), move |balance, ()| *balance += first)?;
                table.defer_update(tx, &0, (), move |balance, ()| *balance += second)
            })
        };
        assert_eq!(update(-150, 100), Ok(Some(())));
        assert!(is_violated(update(100, -151), ("0", NEGATIVE)));
        let each = engine.transact_deferred(|tx| {
            let keys = tx.known([1, 2]);
            table.defer_update_each(tx, keys, 101i64, (), |(), balance, amount| *balance -= amount)
        });
        assert!(is_violated(each, ("1", NEGATIVE)));
        let insert = engine.transact_deferred(|tx| {
            table.defer_replace(tx, &3, 1_000i64)?;
            table.defer_insert(tx, 9u64, -1i64)
        });
        assert!(is_violated(insert, ("9", NEGATIVE)));
        let grouped = engine.transact_deferred(|tx| table.defer_insert_grouped(tx, 1, 9u64, -1i64));
        assert!(is_violated(grouped, ("9", NEGATIVE)));
        let left: Vec<_> = (0..4).map(|key| engine.transact(|tx| table.get(tx, &key)).unwrap()).collect();
        assert_eq!(left, [Some(50), Some(100), Some(100), Some(100)]);
    });
}

#[test]
fn transfers_on_threads_never_overdraw_an_account() {
    for_each_protocol!(2, |P| {
        let engine = support::engine::<P>();
        let table = accounts(&engine, false);
        let recording = engine.record_history(1 << 24).unwrap();
        let violations: u32 = on_threads(&engine, 2, |thread, worker| {
            let mut random = Random::seeded(thread);
            let mut violations = 0;
            for round in 0..300 {
                let (from, amount) = (random.below(4), 1 + random.below(120).cast_signed());
                let to = (from + 1 + random.below(3)) % 4;
                let ended = if round % 3 == 0 {
                    worker.transact_deferred(|tx| {
                        table.defer_update(tx, &to, (), move |balance, ()| *balance += amount)?;
                        table.defer_update(tx, &from, (), move |balance, ()| *balance -= amount)
                    })
                } else {
                    worker.transact(|tx| {
                        let sum: i64 = table
                            .collect(tx, .., Direction::Ascending, 9)?
                            .into_iter()
                            .map(|(_, balance)| {
                                assert!(balance >= 0);
                                balance
                            })
                            .sum();
                        assert_eq!(sum, 400);
                        table.update(tx, &from, |balance| *balance -= amount)?;
                        table.update(tx, &to, |balance| *balance += amount).map(Some)
                    })
                };
                if let Err(error) = ended {
                    assert!(is_violated::<()>(Err(error), (&from.to_string(), NEGATIVE)));
                    violations += 1;
                }
            }
            violations
        })
        .into_iter()
        .sum();
        judge(&recording.finish());
        let left = engine.transact(|tx| table.collect(tx, .., Direction::Ascending, 9)).unwrap();
        assert!(left.iter().all(|(_, balance)| *balance >= 0), "{left:?}");
        assert_eq!(left.iter().map(|(_, balance)| balance).sum::<i64>(), 400);
        assert!(violations > 0, "nothing was refused");
    });
}

#[test]
fn a_state_that_never_was_breaks_no_constraint() {
    for_each_concurrent_protocol!(2, |P| {
        let engine = support::impatient::<P>();
        let halves = Database::on(&engine).table::<u64, i64>("halves").hash(2).create().unwrap();
        let sums = Database::on(&engine)
            .table::<u64, i64>("sums")
            .check("as always", |_, sum| *sum == 100)
            .create()
            .unwrap();
        halves.bulk_insert((0..2).map(|key| (key, 50))).unwrap();
        sums.bulk_insert([(0, 100)]).unwrap();
        let shift = |tx: &mut Transaction<'_, P>| {
            halves.update(tx, &0, |half| *half -= 9)?;
            halves.update(tx, &1, |half| *half += 9)
        };
        let mut was_overtaken = None;
        let changed = whatever_time_it_takes(|| {
            engine.transact(|tx| {
                let first = halves.get(tx, &0)?.unwrap();
                was_overtaken.get_or_insert_with(|| overtake(&engine, shift));
                let second = halves.get(tx, &1)?.unwrap();
                sums.replace(tx, &0, first + second)
            })
        });
        assert_eq!(changed, Ok(()));
    });
}

#[test]
fn a_panic_of_a_constraint_leaves_nothing() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let table = Database::on(&engine)
            .table::<u64, u64>("rows")
            .check("judged", |_, row| if *row == 7 { panic!("the planned panic") } else { true })
            .create()
            .unwrap();
        table.bulk_insert([(1, 10)]).unwrap();
        let panicked = engine.transact(|tx| {
            table.insert(tx, 2, 20)?;
            table.update(tx, &1, |row| *row = 7)
        });
        let Err(Error::Panicked { message }) = panicked else { panic!("{panicked:?}") };
        assert_eq!(message, "the planned panic");
        assert!(matches!(table.bulk_insert([(3, 30), (4, 7)]), Err(Error::Panicked { .. })));
        assert_eq!(rows(&engine, &table), [(1, 10)]);
        assert_eq!(engine.transact(|tx| table.update(tx, &1, |row| *row += 1)), Ok(()));
    });
}

/// Moves an amount between two accounts, by operations that a context may record.
struct Transfer {
    accounts: TableRef<u64, Balance>,
    from: u64,
    to: u64,
    amount: i64,
}

/// A boxed row.
#[derive(Clone, Value)]
struct Balance(i64);

impl Procedure for Transfer {
    type Output = bool;
    fn run<C: Context>(&self, cx: &mut C) -> Result<C::Val<bool>, C::Stop> {
        let (from, to, amount) = (cx.value(self.from), cx.value(self.to), cx.value(self.amount));
        cx.update(self.accounts, to, amount.clone(), |balance, amount| balance.0 += amount)?;
        let left = cx.update(self.accounts, from, amount, |balance, amount| balance.0 -= amount)?;
        Ok(cx.map(left, |left| left.is_some()))
    }
}

#[test]
fn rows_that_other_workers_change_for_a_procedure_are_judged() {
    for_each_protocol!(2, |P| {
        let engine = support::engine::<P>();
        let database = Database::on(&engine);
        let accounts = database
            .table("accounts")
            .hash(4)
            .check(NEGATIVE, |_: &u64, balance: &Balance| balance.0 >= 0)
            .create()
            .unwrap();
        accounts.bulk_insert((0..4).map(|key| (key, Balance(100)))).unwrap();
        let reference = accounts.clone().reference();
        let transfer = |worker: &mut Worker<P>, random: &mut Random, accounts| {
            let (from, amount) = (random.below(3), 1 + random.below(120).cast_signed());
            match database.execute_on(worker, &Transfer { accounts, from, to: 3 - from, amount }) {
                Ok(was_there) => assert!(was_there),
                Err(error) => {
                    assert!(is_violated::<()>(Err(error), (&from.to_string(), NEGATIVE)));
                    return 1;
                }
            }
            0
        };
        let violations = on_threads(&engine, 2, |thread, worker| {
            let mut random = Random::seeded(thread);
            (0..500).map(|_| transfer(worker, &mut random, reference)).sum::<u32>()
        });
        assert!(violations.iter().all(|count| *count > 0), "{violations:?}");
        let left = engine.transact(|tx| {
            (0..4).map(|key| Ok(accounts.get(tx, &key)?.unwrap().0)).collect::<Result<Vec<_>, Abort>>()
        });
        let left = left.unwrap();
        assert!(left.iter().all(|balance| *balance >= 0) && left.iter().sum::<i64>() == 400, "{left:?}");
    });
}

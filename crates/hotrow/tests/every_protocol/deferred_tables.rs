//! Deferred operations on rows, one transaction after the other: what they give, what is seen of them before they have
//! run, and what is left of them when the transaction fails.

use crate::support;
use crate::support::{for_each_concurrent_protocol, for_each_protocol, steps, whatever_time_it_takes};
use hotrow::operations::Constant;
use hotrow::{
    Abort, Counter, Database, Direction, Engine, Error, Protocol, SecondaryIndex, Table, TableMisuse,
    Transaction, Value,
};
use std::ops::ControlFlow;

#[derive(Debug, Clone, PartialEq, Eq, Value)]
struct Person {
    name: String,
    age: u64,
}

fn person(name: &str, age: u64) -> Person {
    Person { name: name.to_owned(), age }
}

/// Rows with a secondary index.
struct People<P: Protocol> {
    engine: Engine<P>,
    table: Table<u64, Person, P>,
    by_age: SecondaryIndex<u64, u64, Person, P>,
}

impl<P: Protocol> People<P> {
    /// Anna, 30, has key 1, and Ben, 40, key 2.
    fn new(hash: bool) -> Self {
        let engine = support::engine::<P>();
        let mut builder = Database::on(&engine).table("people");
        let by_age = builder.secondary("by_age", |_, person: &Person| person.age);
        let table = if hash { builder.hash(4) } else { builder }.create().unwrap();
        table.bulk_insert([(1, person("anna", 30))]).unwrap();
        table.bulk_insert([(2, person("ben", 40))]).unwrap();
        Self { engine, table, by_age }
    }

    /// Ages and keys in the order of the secondary index.
    fn ages(&self, tx: &mut Transaction<'_, P>) -> Result<Vec<(u64, u64)>, Abort> {
        let mut ages = Vec::new();
        self.by_age.scan_keys(tx, .., Direction::Ascending, |age, key| {
            ages.push((*age, *key));
            ControlFlow::Continue(())
        })?;
        Ok(ages)
    }

    /// The names in the order of keys, after a check that index and rows agree.
    fn names(&self) -> Vec<String> {
        let found = self.engine.transact(|tx| {
            let (mut names, mut expected) = (Vec::new(), Vec::new());
            for key in 0..10 {
                if let Some(person) = self.table.get(tx, &key)? {
                    names.push(person.name);
                    expected.push((person.age, key));
                }
            }
            expected.sort_unstable();
            assert_eq!(self.ages(tx)?, expected);
            Ok(names)
        });
        found.unwrap()
    }
}

/// Runs a test on a table under either index, for the protocol that `for_each_protocol!` has come to.
fn for_each_index<P: Protocol>(test: impl Fn(&People<P>)) {
    for hash in [false, true] {
        test(&People::new(hash));
    }
}

#[test]
fn each_operation_gives_what_the_one_that_is_not_deferred_gives() {
    for_each_protocol!(1, |P| {
        for_each_index::<P>(|people| {
            let People { engine, table, .. } = people;
            let age = |key: u64| engine.transact_deferred(|tx| table.defer_read(tx, &key, |row| row.age));
            assert_eq!((age(1), age(2), age(3)), (Ok(Some(30)), Ok(Some(40)), Ok(None)));
            let add = |key: u64, years: u64| {
                engine.transact_deferred(|tx| {
                    table.defer_update(tx, &key, years, |row, years| {
                        row.age += years;
                        row.age
                    })
                })
            };
            assert_eq!((add(1, 5), add(1, 1), add(3, 1)), (Ok(Some(35)), Ok(Some(36)), Ok(None)));
            let replace = |key: u64| {
                engine.transact_deferred(|tx| table.defer_replace(tx, &key, Constant(person("cleo", 50))))
            };
            assert_eq!((replace(2), replace(3)), (Ok(true), Ok(false)));
            let insert = |key: u64, group: Option<u64>| {
                engine.transact_deferred(|tx| match group {
                    None => table.defer_insert(tx, key, Constant(person("dora", 10))),
                    Some(group) => table.defer_insert_grouped(tx, group, key, Constant(person("emil", 20))),
                })
            };
            assert_eq!((insert(3, None), insert(4, Some(u64::MAX))), (Ok(true), Ok(true)));
            assert_eq!((insert(3, None), insert(1, Some(7))), (Ok(false), Ok(false)), "they are there");
            let delete = |key: u64| engine.transact_deferred(|tx| table.defer_delete(tx, &key));
            assert_eq!((delete(1), delete(1), delete(9)), (Ok(true), Ok(false), Ok(false)));
            assert_eq!(people.names(), ["cleo", "dora", "emil"]);
            assert!(insert(1, None).unwrap(), "after it was deleted");
        });
    });
}

#[test]
fn keys_rows_and_conditions_may_depend_on_what_is_not_known_yet() {
    for_each_protocol!(1, |P| {
        for_each_index::<P>(|people| {
            let People { engine, table, .. } = people;
            let next = Database::on(engine).table::<u64, u64>("next").hash(1).create().unwrap();
            next.bulk_insert([(0, 3)]).unwrap();
            let join = |name: &'static str, years: u64| {
                engine.transact_deferred(|tx| {
                    let ben = table.defer_read(tx, &2, |row| row.age)?;
                    let key = next.defer_update(tx, &0, (), |next, ()| {
                        *next += 1;
                        *next - 1
                    })?;
                    let key = tx.compute(key, |key| key.expect("it was loaded"))?;
                    let row = ben.map(move |ben| person(name, ben.unwrap_or(0) + years));
                    let inserted = table.defer_insert_grouped(tx, 1, key, row)?;
                    tx.require(ben.map(move |ben| ben < Some(50 + years)))?;
                    tx.compute((key, inserted), |both| both)
                })
            };
            assert_eq!(join("cleo", 1), Ok((3, true)));
            assert_eq!(join("dora", 2), Ok((4, true)));
            assert_eq!(people.names(), ["anna", "ben", "cleo", "dora"]);
            let birthday = engine.transact_deferred(|tx| {
                let row = table.defer_read(tx, &4, |row| row.age)?;
                table.defer_replace(tx, &1, row.map(|age| person("anna", age.unwrap_or(0) * 2)))
            });
            assert_eq!(birthday, Ok(true));
            assert_eq!(engine.transact(|tx| people.ages(tx)), Ok(vec![(40, 2), (41, 3), (42, 4), (84, 1)]));
        });
    });
}

#[test]
fn deferred_operations_are_seen_by_operations_that_are_not() {
    for_each_protocol!(1, |P| {
        for_each_index::<P>(|people| {
            let People { engine, table, .. } = people;
            let name = |tx: &mut Transaction<'_, P>, key| table.read(tx, &key, |row| row.name.clone());
            let insert = |tx: &mut Transaction<'_, P>, key: u64, row| {
                table.defer_insert_grouped(tx, key, key, Constant(row)).map(|_| ())
            };
            let bodies: [&dyn Fn(&mut Transaction<'_, P>) -> Result<(), Abort>; 9] = [
                &|tx| {
                    assert_eq!(name(tx, 3)?.as_deref(), Some("cleo"));
                    Ok(())
                },
                &|tx| {
                    assert!(!table.insert_if_absent(tx, 3, person("dora", 1))?);
                    Ok(())
                },
                &|tx| {
                    assert_eq!(people.ages(tx)?, [(30, 1), (35, 3), (40, 2)]);
                    Ok(())
                },
                &|tx| {
                    assert_eq!(table.update_if_present(tx, &3, |row| row.age)?, Some(35));
                    Ok(())
                },
                &|tx| {
                    let read = table.defer_read(tx, &3, |row| row.age)?;
                    let changed = table.defer_update(tx, &3, read, |row, age| row.age = age.unwrap_or(0))?;
                    assert_eq!((tx.force(read)?, tx.force(changed)?), (Some(35), Some(())));
                    Ok(())
                },
                // And what comes of it may be changed again.
                &|tx| {
                    assert!(table.delete(tx, &3)?);
                    assert_eq!(people.ages(tx)?, [(30, 1), (40, 2)]);
                    insert(tx, 3, person("cleo", 36))?;
                    assert_eq!(people.ages(tx)?, [(30, 1), (36, 3), (40, 2)]);
                    Ok(())
                },
                &|tx| {
                    table.defer_delete(tx, &1)?;
                    assert_eq!(name(tx, 1)?, None);
                    insert(tx, 1, person("anna", 31))?;
                    assert_eq!(name(tx, 1)?.as_deref(), Some("anna"));
                    Ok(())
                },
                &|tx| {
                    table.defer_update(tx, &1, (), |row, ()| row.age = 38)?;
                    assert_eq!(people.ages(tx)?, [(35, 3), (38, 1), (40, 2)]);
                    Ok(())
                },
                &|tx| {
                    table.defer_replace(tx, &2, Constant(person("ben", 1)))?;
                    let mut names = Vec::new();
                    people.by_age.scan(tx, ..35, Direction::Ascending, |_, _, row| {
                        names.push(row.name.clone());
                        ControlFlow::Continue(())
                    })?;
                    assert_eq!(names, ["ben", "anna"]);
                    Ok(())
                },
            ];
            for body in &bodies {
                let people_then = engine.transact(|tx| people.ages(tx)).unwrap();
                let seen = engine.transact(|tx| {
                    insert(tx, 3, person("cleo", 35))?;
                    body(tx)?;
                    Err::<(), _>(Abort::rollback())
                });
                assert_eq!(seen, Err(Error::Rollback(Abort::rollback())));
                assert_eq!(engine.transact(|tx| people.ages(tx)), Ok(people_then), "all was undone");
            }
            // The same, committed.
            for body in &bodies {
                let committed = engine.transact(|tx| {
                    insert(tx, 3, person("cleo", 35))?;
                    body(tx)
                });
                assert_eq!(committed, Ok(()));
                people.names();
                let again = engine.transact(|tx| {
                    table.delete(tx, &3)?;
                    table.upsert(tx, 1, person("anna", 30))?;
                    table.upsert(tx, 2, person("ben", 40))
                });
                assert_eq!(again, Ok(false));
                assert_eq!(people.names(), ["anna", "ben"]);
            }
        });
    });
}

#[test]
fn deferred_operations_on_one_key_follow_each_other() {
    for_each_protocol!(1, |P| {
        for_each_index::<P>(|people| {
            let People { engine, table, .. } = people;
            let results = engine.transact_deferred(|tx| {
                let deleted = table.defer_delete(tx, &1)?;
                let inserted = table.defer_insert(tx, 1u64, Constant(person("agnes", 60)))?;
                let again = table.defer_insert(tx, 1u64, Constant(person("nobody", 0)))?;
                let seen = table.defer_update(tx, &1, (), |row, ()| {
                    row.age += 1;
                    row.age
                })?;
                tx.compute((deleted, inserted, again, seen), |all| all)
            });
            assert_eq!(results, Ok((true, true, false, Some(61))));
            let results = engine.transact_deferred(|tx| {
                let inserted = table.defer_insert_grouped(tx, 1, 5u64, Constant(person("emil", 5)))?;
                let deleted = table.defer_delete(tx, &5)?;
                let twice = table.defer_delete(tx, &5)?;
                let missing = table.defer_update(tx, &5, (), |_, ()| ())?;
                tx.compute((inserted, deleted, twice, missing), |all| all)
            });
            assert_eq!(results, Ok((true, true, false, None)));
            assert_eq!(people.names(), ["agnes", "ben"]);
            assert_eq!(engine.transact(|tx| people.ages(tx)), Ok(vec![(40, 2), (61, 1)]));
        });
    });
}

#[test]
fn a_transaction_that_fails_after_a_deferred_insertion_leaves_no_row_and_no_entry() {
    for_each_protocol!(1, |P| {
        for_each_index::<P>(|people| {
            let People { engine, table, .. } = people;
            let failures: [&dyn Fn(&mut Transaction<'_, P>) -> Result<(), Abort>; 5] = [
                &|tx| {
                    let age = table.defer_read(tx, &1, |row| row.age)?;
                    tx.require(age.map(|age| age == Some(31)))
                },
                &|_| Err(Abort::rollback()),
                &|tx| {
                    table.defer_update(tx, &1, (), |row, ()| {
                        row.age = 99;
                        assert_eq!(row.name, "somebody else");
                    })?;
                    Ok(())
                },
                &|tx| {
                    let ben = table.defer_read(tx, &2, |row| row.age)?;
                    let key = ben.map(|age| age.filter(|age| *age == 39).expect("another age"));
                    table.defer_insert_grouped(tx, 1, key, Constant(person("fritz", 1)))?;
                    Ok(())
                },
                // Run before the commit, by a look at the table.
                &|tx| {
                    table.defer_delete(tx, &2)?;
                    table.get(tx, &7)?;
                    tx.require(false)
                },
            ];
            for fail in failures {
                let failed = engine.transact(|tx| {
                    table.defer_insert_grouped(tx, 1, 3u64, Constant(person("cleo", 35)))?;
                    table.defer_insert(tx, 4u64, Constant(person("dora", 35)))?;
                    table.defer_update(tx, &1, (), |row, ()| row.age = 31)?;
                    table.defer_update(tx, &1, (), |row, ()| row.age = 30)?;
                    table.defer_delete(tx, &2)?;
                    table.defer_insert(tx, 2u64, Constant(person("bernard", 40)))?;
                    fail(tx)
                });
                assert!(matches!(failed, Err(Error::Rollback(_) | Error::Panicked { .. })), "{failed:?}");
                assert_eq!(people.names(), ["anna", "ben"]);
            }
        });
    });
}

#[test]
fn a_row_that_is_missing_when_it_is_wanted_stays_missing_until_the_commit() {
    for_each_protocol!(2, |P| {
        for hash in [false, true] {
            steps::Interleaving::<P>::new().run(|engine, [mut t1, mut t2]| {
                let builder = Database::on(engine).table::<u64, u64>("rows");
                let table = if hash { builder.hash(4) } else { builder }.create().unwrap();
                table.bulk_insert([(1, 1)]).unwrap();
                let found = t1.step(|tx| {
                    let missing = table.defer_read(tx, &7, |row| *row)?;
                    table.defer_update(tx, &1, missing, |row, missing| *row = missing.unwrap_or(100))?;
                    tx.force(missing)
                });
                let inserted = t2.step(|tx| {
                    let one = table.defer_read(tx, &1, |row| *row)?;
                    table.defer_insert(tx, 7u64, one.map(|row| row.unwrap_or(0)))?;
                    Ok(())
                });
                let (second, first) = (inserted.is_some() && t2.commit(), t1.commit());
                assert!(found.is_none() || found == Some(None));
                assert!(!(first && second), "each would have to be before the other");
            });
        }
    });
}

#[test]
fn a_scan_sees_what_was_deferred_before_it() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let table = Database::on(&engine).table::<u64, u64>("rows").create().unwrap();
        for key in 0..20 {
            table.bulk_insert([(key * 10, key)]).unwrap();
        }
        let scanned = engine.transact(|tx| {
            let two = table.defer_read(tx, &20, |row| *row)?;
            table.defer_insert_grouped(tx, 0, two.map(|two| two.map_or(0, |two| two + 30)), 1_000u64)?;
            table.defer_delete(tx, &30)?;
            table.defer_update(tx, &40, two, |row, two| *row += two.unwrap_or(0) * 100)?;
            table.collect(tx, 15..=40, Direction::Descending, 10)
        });
        assert_eq!(scanned, Ok(vec![(40, 204), (32, 1_000), (20, 2)]));
        let scanned = engine.transact(|tx| table.collect(tx, 15..=40, Direction::Ascending, 2));
        assert_eq!(scanned, Ok(vec![(20, 2), (32, 1_000)]));
    });
}

#[test]
fn a_row_that_others_delete_before_its_turn_is_looked_for_again() {
    for_each_protocol!(2, |P| {
        for insert_again in [false, true] {
            let engine = support::impatient::<P>();
            let table = Database::on(&engine).table::<u64, u64>("rows").hash(4).create().unwrap();
            table.bulk_insert([(1, 1)]).unwrap();
            let (mut deleted, mut inserted) = (false, false);
            let result = whatever_time_it_takes(|| {
                engine.transact_deferred(|tx| {
                    let changed = table.defer_update(tx, &1, 10u64, |row, more| {
                        *row += more;
                        *row
                    })?;
                    if tx.attempt_number() == 0 {
                        deleted = support::overtake(&engine, |tx| table.delete(tx, &1).map(|_| ()));
                        inserted = deleted
                            && insert_again
                            && support::overtake(&engine, |tx| table.insert_if_absent(tx, 1, 50).map(|_| ()));
                    }
                    Ok(changed)
                })
            });
            let expected = match (deleted, inserted) {
                (false, _) => Some(11),
                (true, false) => None,
                (true, true) => Some(60),
            };
            assert_eq!(result, Ok(expected));
            assert_eq!(engine.transact(|tx| table.get(tx, &1)), Ok(expected));
            assert!(deleted || !crate::support::defers(), "a deferred operation holds nobody off");
        }
    });
}

#[test]
fn a_fixed_secondary_index_is_scanned_without_tracking_and_refuses_what_would_change_it() {
    for_each_concurrent_protocol!(2, |P| {
        let engine = support::impatient::<P>();
        let mut builder = Database::on(&engine).table::<u64, Person>("people").hash(4);
        let by_age = builder.immutable_secondary("by_age", |_, person: &Person| person.age);
        let table = support::loaded(builder, [(1, person("anna", 30)), (2, person("ben", 40))]);
        let refusals: [&dyn Fn(&mut Transaction<'_, P>) -> Result<(), Abort>; 6] = [
            &|tx| table.insert_if_absent(tx, 3, person("cleo", 35)).map(|_| ()),
            &|tx| table.defer_insert(tx, 3u64, Constant(person("cleo", 35))).map(|_| ()),
            &|tx| table.defer_insert_grouped(tx, 1, 3u64, Constant(person("cleo", 35))).map(|_| ()),
            &|tx| table.delete(tx, &1).map(|_| ()),
            &|tx| table.defer_delete(tx, &1).map(|_| ()),
            &|tx| table.defer_update(tx, &1, (), |row, ()| row.age = 31).map(|_| ()),
        ];
        for refused in refusals {
            let result = engine.transact(|tx| {
                table.update_if_present(tx, &2, |row| row.name = String::from("bernard"))?;
                refused(tx)
            });
            assert_eq!(
                result,
                Err(Error::Misuse(TableMisuse::ImmutableTable { table: "people.by_age".to_owned() }.into()))
            );
        }
        let keys = |tx: &mut Transaction<'_, P>| {
            let mut keys = Vec::new();
            by_age.scan_keys(tx, 20.., Direction::Descending, |_, key| {
                keys.push(*key);
                ControlFlow::Continue(())
            })?;
            Ok(keys)
        };
        // A scan is nothing that a transaction depends on, so one that has scanned may still be tame.
        let renamed = engine.transact_deferred(|tx| {
            assert_eq!(keys(tx)?, [2, 1]);
            table.defer_update(tx, &2, (), |row, ()| std::mem::replace(&mut row.name, String::from("bob")))
        });
        assert_eq!(renamed, Ok(Some(String::from("ben"))));
        assert_eq!(engine.statistics().count(&Counter::TAME_COMMITS), u64::from(crate::support::defers()));
        let attempts = support::attempts(
            &engine,
            |tx| keys(tx).map(|keys| assert_eq!(keys, [2, 1])),
            |tx| table.update_if_present(tx, &1, |row| row.name.push('!')).map(|_| ()),
        );
        assert_eq!(attempts, Some(1));
    });
}

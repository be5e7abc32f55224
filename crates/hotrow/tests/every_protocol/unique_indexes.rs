//! Unique indexes: no two rows have the same key, whatever happens.

use crate::support::steps::{Interleaving, judge};
use crate::support::{
    self, Census, Counted, for_each_concurrent_protocol, for_each_protocol, on_threads, overtake,
    whatever_time_it_takes,
};
use hotrow::operations::Constant;
use hotrow::{
    Abort, Database, Direction, DuplicateKey, Engine, Error, Misuse, Protocol, SecondaryIndex, Table,
    Transaction, UniqueIndex, Value,
};
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};

#[derive(Debug, Clone, PartialEq, Eq, Value)]
struct User {
    email: String,
    age: u32,
}

fn user(email: &str, age: u32) -> User {
    User { email: email.to_owned(), age }
}

/// Users, no two of whom have the same address.
struct Users<P: Protocol> {
    table: Table<u64, User, P>,
    by_age: SecondaryIndex<u32, u64, User, P>,
    by_email: UniqueIndex<String, u64, User, P>,
}

impl<P: Protocol> Users<P> {
    fn new(engine: &Engine<P>, hash: bool) -> Self {
        let mut builder = Database::on(engine).table("users");
        // Around the unique one, so that its refusal finds one index changed and one not.
        let by_age = builder.secondary("by_age", |_, user: &User| user.age);
        let by_email = builder.unique("by_email", |_, user: &User| user.email.clone());
        builder.secondary("by_both", |_, user: &User| (user.age, user.email.clone()));
        Self {
            table: if hash { builder.hash(10).create().unwrap() } else { builder.create().unwrap() },
            by_age,
            by_email,
        }
    }

    /// The users, after a look whether all indexes have all of them.
    fn check(&self, tx: &mut Transaction<'_, P>) -> Result<Vec<(u64, String)>, Abort> {
        let mut users = Vec::new();
        for key in 0..20 {
            if let Some(user) = self.table.get(tx, &key)? {
                assert_eq!(self.by_email.get(tx, user.email.as_str())?, Some((key, user.clone())));
                users.push((key, user.email));
            }
        }
        let mut found = Vec::new();
        self.by_email.scan(tx, .., Direction::Descending, |email, key, user| {
            assert_eq!(*email, user.email);
            found.push((*key, email.clone()));
            ControlFlow::Continue(())
        })?;
        assert!(found.is_sorted_by(|first, second| first.1 > second.1));
        found.sort_unstable();
        assert_eq!(found, users);
        let mut keys = Vec::new();
        self.by_age.scan_keys(tx, .., Direction::Ascending, |_, key| {
            keys.push(*key);
            ControlFlow::Continue(())
        })?;
        keys.sort_unstable();
        assert_eq!(self.by_age.count(tx, ..)?, users.len());
        assert_eq!(
            self.by_email.count(tx, "a".."b")?,
            users.iter().filter(|(_, name)| name.starts_with('a')).count()
        );
        let oldest = self.by_age.collect(tx, .., Direction::Descending, 2)?;
        assert!(
            oldest.len() == users.len().min(2) && oldest.is_sorted_by_key(|(_, user)| u32::MAX - user.age)
        );
        let first = self.by_email.collect(tx, .., Direction::Ascending, 1)?;
        assert_eq!(first.first().map(|(_, user)| &user.email), users.iter().map(|(_, name)| name).min());
        assert_eq!(keys, users.iter().map(|(key, _)| *key).collect::<Vec<_>>());
        Ok(users)
    }
}

fn is_duplicate<R: std::fmt::Debug>(ended: Result<R, Error>, email: &str) -> bool {
    let error = ended.unwrap_err();
    let Some(DuplicateKey { index, key, .. }) = error.downcast_ref() else { return false };
    index == "users.by_email" && *key == format!("{email:?}")
}

#[test]
fn no_operation_gives_two_rows_the_same_unique_key() {
    for_each_protocol!(1, |P| {
        for hash in [false, true] {
            let engine = support::engine::<P>();
            let users = Users::new(&engine, hash);
            let table = &users.table;
            engine
                .transact(|tx| {
                    table.insert(tx, 1, user("ada", 30))?;
                    table.insert(tx, 2, user("bob", 30))
                })
                .unwrap();
            let before = engine.transact(|tx| users.check(tx)).unwrap();
            assert!(is_duplicate(engine.transact(|tx| table.insert(tx, 3, user("ada", 1))), "ada"));
            assert!(is_duplicate(engine.transact(|tx| table.insert_if_absent(tx, 3, user("bob", 1))), "bob"));
            assert!(is_duplicate(engine.transact(|tx| table.upsert(tx, 3, user("ada", 1))), "ada"));
            assert!(is_duplicate(engine.transact(|tx| table.upsert(tx, 2, user("ada", 1))), "ada"));
            assert!(is_duplicate(engine.transact(|tx| table.replace(tx, &2, user("ada", 1))), "ada"));
            let update = engine.transact(|tx| {
                table.update(tx, &1, |user| user.age += 1)?;
                table.update(tx, &1, |user| user.email = String::from("bob"))
            });
            assert!(is_duplicate(update, "bob"));
            let own = engine.transact(|tx| {
                table.insert(tx, 4, user("new", 1))?;
                table.insert(tx, 5, user("new", 1))
            });
            assert!(is_duplicate(own, "new"));
            assert_eq!(engine.transact(|tx| users.check(tx)), Ok(before));
            assert_eq!(engine.transact(|tx| users.by_email.get_key(tx, "cleo")), Ok(None));
        }
    });
}

#[test]
fn a_unique_key_that_was_given_up_may_be_taken_in_the_same_transaction() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let users = Users::new(&engine, true);
        let table = &users.table;
        table.bulk_insert([(1, user("ada", 30))]).unwrap();
        table.bulk_insert([(2, user("bob", 40))]).unwrap();
        let rename = |tx: &mut Transaction<'_, P>, key: u64, email: &str| {
            table.update(tx, &key, |user| email.clone_into(&mut user.email))
        };
        let seen = engine.transact(|tx| {
            // An exchange by way of a third name.
            rename(tx, 1, "spare")?;
            rename(tx, 2, "ada")?;
            rename(tx, 1, "bob")?;
            users.check(tx)
        });
        let expected =
            |rows: &[(u64, &str)]| Ok(rows.iter().map(|(key, name)| (*key, (*name).to_owned())).collect());
        assert_eq!(seen, expected(&[(1, "bob"), (2, "ada")]));
        let seen = engine.transact(|tx| {
            assert!(table.delete(tx, &1)?);
            table.insert(tx, 3, user("bob", 1))?;
            assert!(table.delete(tx, &3)?);
            table.insert(tx, 4, user("bob", 1))?;
            rename(tx, 4, "bob")?;
            users.check(tx)
        });
        assert_eq!(seen, expected(&[(2, "ada"), (4, "bob")]));
        let rolled_back = engine.transact(|tx| {
            assert!(table.delete(tx, &4)?);
            table.insert(tx, 5, user("bob", 1))?;
            users.check(tx)?;
            Err::<(), _>(Abort::rollback())
        });
        rolled_back.unwrap_err();
        assert_eq!(engine.transact(|tx| users.check(tx)), expected(&[(2, "ada"), (4, "bob")]));
    });
}

#[test]
fn a_savepoint_takes_back_the_part_that_met_a_duplicate() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let users = Users::new(&engine, false);
        let table = &users.table;
        table.bulk_insert([(1, user("ada", 30))]).unwrap();
        let seen = engine.transact(|tx| {
            table.insert(tx, 2, user("bob", 1))?;
            for (key, email) in [(3, "ada"), (3, "bob"), (2, "ada")] {
                let part = tx.savepoint(|tx| {
                    table.insert(tx, 9, user("cleo", 1))?;
                    table.upsert(tx, key, user(email, 2))
                })?;
                assert!(part.unwrap_err().downcast_ref::<DuplicateKey>().is_some());
                users.check(tx)?;
            }
            table.insert(tx, 3, user("cleo", 1))?;
            users.check(tx)
        });
        let expected = vec![(1, "ada".to_owned()), (2, "bob".to_owned()), (3, "cleo".to_owned())];
        assert_eq!(seen.as_ref(), Ok(&expected));
        assert_eq!(engine.transact(|tx| users.check(tx)), Ok(expected));
        // An error that is swallowed leaves no half of a row.
        let swallowed = engine.transact(|tx| {
            let _ = table.insert(tx, 4, user("ada", 1));
            Ok(())
        });
        assert_eq!(swallowed, Err(Error::Misuse(Misuse::CaughtError)));
        assert_eq!(engine.transact(|tx| table.get(tx, &4)), Ok(None));
    });
}

#[test]
fn of_threads_that_want_the_same_unique_key_one_gets_it() {
    const NAMES: u64 = 60;
    for_each_protocol!(2, |P| {
        let engine = support::engine::<P>();
        let users = Users::new(&engine, true);
        let recording = engine.record_history(1 << 24).unwrap();
        let won = on_threads(&engine, 2, |thread, worker| {
            let mut won = 0;
            for name in 0..NAMES {
                let ended = worker.transact(|tx| {
                    // Each takes its own row along; the name that it had is free then.
                    users.table.upsert(tx, thread, user(&format!("name {name}"), thread as u32)).map(drop)
                });
                match ended {
                    Ok(()) => won += 1,
                    Err(error) => {
                        assert!(error.downcast_ref::<DuplicateKey>().is_some(), "{error}");
                    }
                }
            }
            won
        });
        judge(&recording.finish());
        let left = engine.transact(|tx| users.check(tx)).unwrap();
        // One thread may find each name taken: the other one is always a moment before it.
        assert!((1..=2).contains(&left.len()), "{left:?}");
        assert!(won.iter().sum::<u64>() >= NAMES, "a name is refused only if the other one has it: {won:?}");
    });
}

#[test]
fn two_open_transactions_cannot_both_take_or_miss_a_unique_key() {
    for_each_concurrent_protocol!(3, |P| {
        Interleaving::<P>::new().run(|engine, [mut first, mut second]| {
            let users = Users::new(engine, true);
            first.step(|tx| users.table.insert(tx, 1, user("ada", 1)));
            // The other one sees the name taken only once it is. A stepped transaction does not end with an error.
            second.step(|tx| match tx.savepoint(|tx| users.table.insert(tx, 2, user("ada", 2)))? {
                Ok(()) => Ok(true),
                Err(_) => Ok(false),
            });
            let (first, second) = (first.commit(), second.commit());
            let left = engine.transact(|tx| users.check(tx)).unwrap();
            assert!(left.len() <= 1 && (first || second || left.is_empty()), "{left:?}");
        });
        Interleaving::<P>::new().run(|engine, [mut first, mut second]| {
            let users = Users::new(engine, true);
            let notes = Database::on(engine).table::<u64, u64>("notes").create().unwrap();
            // Each writes what the other has found absent.
            first.step(|tx| {
                assert_eq!(users.by_email.get(tx, "ada")?, None);
                notes.insert(tx, 1, 1)
            });
            second.step(|tx| match notes.get(tx, &1)? {
                None => users.table.insert(tx, 1, user("ada", 1)).map(|()| true),
                Some(_) => Ok(false),
            });
            let (first, second) = (first.commit(), second.commit());
            let left = engine.transact(|tx| Ok((notes.get(tx, &1)?.is_some(), users.check(tx)?.len() == 1)));
            assert_eq!(left, Ok((first, second)));
            assert!(!(first && second), "neither saw the other");
        });
    });
}

#[test]
fn an_attempt_that_saw_no_consistent_state_reports_no_duplicate() {
    for_each_concurrent_protocol!(2, |P| {
        let engine = support::impatient::<P>();
        let users = Users::new(&engine, true);
        let mut was_overtaken = None;
        let inserted = whatever_time_it_takes(|| {
            engine.transact(|tx| {
                if users.by_email.get_key(tx, "ada")?.is_some() {
                    return Ok(false);
                }
                // The name is taken between the look and the insertion.
                was_overtaken
                    .get_or_insert_with(|| overtake(&engine, |tx| users.table.insert(tx, 1, user("ada", 1))));
                users.table.insert(tx, 2, user("ada", 2)).map(|()| true)
            })
        });
        assert_eq!(inserted, Ok(was_overtaken != Some(true)));
        assert_eq!(engine.transact(|tx| users.check(tx)).unwrap().len(), 1);
    });
}

#[test]
fn a_deferred_operation_that_meets_a_duplicate_tells_so() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let users = Users::new(&engine, false);
        let table = &users.table;
        let inserted = engine.transact_deferred(|tx| {
            let first = table.defer_insert(tx, 1u64, Constant(user("ada", 30)))?;
            table.defer_insert_grouped(tx, 7, 2u64, Constant(user("bob", 30)))?;
            Ok(first)
        });
        assert_eq!(inserted, Ok(true));
        let before = engine.transact(|tx| users.check(tx)).unwrap();
        assert_eq!(before.len(), 2);
        let insert = engine.transact_deferred(|tx| {
            table.defer_insert(tx, 3u64, Constant(user("cleo", 1)))?;
            table.defer_insert_grouped(tx, 7, 4u64, Constant(user("ada", 1)))
        });
        assert!(is_duplicate(insert, "ada"));
        let update = engine.transact_deferred(|tx| {
            table.defer_update(tx, &2, (), |user, ()| user.email = String::from("ada"))
        });
        assert!(is_duplicate(update, "ada"));
        assert_eq!(engine.transact(|tx| users.check(tx)), Ok(before));
        let renamed = engine.transact_deferred(|tx| {
            table.defer_update(tx, &2, (), |user, ()| user.email = String::from("cleo"))?;
            table.defer_insert(tx, 3u64, Constant(user("bob", 1)))
        });
        assert_eq!(renamed, Ok(true));
        let names: Vec<_> =
            engine.transact(|tx| users.check(tx)).unwrap().into_iter().map(|(_, name)| name).collect();
        assert_eq!(names, ["ada", "cleo", "bob"]);
    });
}

#[test]
fn a_bulk_insertion_that_is_refused_leaves_nothing() {
    for_each_protocol!(1, |P| {
        for hash in [false, true] {
            let engine = support::engine::<P>();
            let users = Users::new(&engine, hash);
            users.table.bulk_insert([(1, user("ada", 30))]).unwrap();
            let refused = users.table.bulk_insert([(1, user("bob", 30))]).unwrap_err();
            assert_eq!(refused.to_string(), "rolled back: users has a row with key 1 already");
            let refused = users.table.bulk_insert([(2, user("ada", 30))]).unwrap_err();
            let expected = "rolled back: users.by_email has another row with key \"ada\" already";
            assert_eq!(refused.to_string(), expected);
            assert!(users.table.bulk_insert([(4, user("eve", 30)), (3, user("ada", 31))]).is_err());
            users.table.bulk_insert([(2, user("bob", 30))]).unwrap();
            let expected = vec![(1, "ada".to_owned()), (2, "bob".to_owned())];
            assert_eq!(engine.transact(|tx| users.check(tx)), Ok(expected));
        }
    });
}

#[test]
fn rows_that_are_loaded_while_others_change_them_keep_their_entries() {
    for_each_concurrent_protocol!(4, |P| {
        let engine = support::engine::<P>();
        let users = Users::new(&engine, true);
        on_threads(&engine, 2, |thread, worker| {
            for round in 0..60 {
                let key = round % 3;
                if thread == 0 {
                    let row = user(["ada", "bob"][round as usize % 2], 30);
                    // Others may have the key, or the name.
                    let _ = users.table.bulk_insert([(key, row)]);
                    continue;
                }
                whatever_time_it_takes(|| {
                    worker.transact(|tx| {
                        let name = format!("renamed {key}");
                        users
                            .table
                            .update_if_present(tx, &key, |user| (user.email, user.age) = (name, 31))?;
                        users.table.delete(tx, &((key + 1) % 3))
                    })
                })
                .unwrap();
                whatever_time_it_takes(|| worker.transact(|tx| users.check(tx))).unwrap();
            }
        });
        engine.transact(|tx| users.check(tx)).unwrap();
    });
}

#[test]
fn a_bulk_insertion_into_an_index_fails_within_a_transaction_and_with_its_key_function() {
    for_each_protocol!(2, |P| {
        let engine = support::engine::<P>();
        let mut builder = Database::on(&engine).table::<u64, u64>("rows");
        builder.secondary("by_row", |_, row| if *row == 0 { panic!("no key") } else { *row });
        let rows = builder.create().unwrap();
        let panicked = catch_unwind(AssertUnwindSafe(|| rows.bulk_insert([(1, 0)])));
        assert!(panicked.is_err());
        assert_eq!(engine.transact(|tx| rows.get(tx, &1)), Ok(None));
        let nested = engine.transact(|_| Ok(rows.bulk_insert([(1, 1)]))).unwrap().unwrap_err();
        assert!(matches!(nested, Error::Misuse(Misuse::Nested)), "{nested}");
        rows.bulk_insert([(1, 1)]).unwrap();
    });
}

#[test]
fn an_index_knows_its_table_and_neither_keeps_itself() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let mut builder = Database::on(&engine).table::<u64, User>("users");
        let by_email = builder.unique("by_email", |_, user: &User| user.email.clone());
        let by_age = builder.secondary("by_age", |_, user: &User| user.age);
        let without = engine
            .transact(|tx| by_age.scan(tx, .., Direction::Ascending, |_, _, _| ControlFlow::Continue(())));
        assert!(matches!(without, Err(Error::Misuse(Misuse::Unsupported(_)))), "{without:?}");
        builder.create().unwrap().bulk_insert([(1, user("ada", 30))]).unwrap();
        // The handle of the table is gone.
        assert_eq!(engine.transact(|tx| by_email.clone().get(tx, "ada")), Ok(Some((1, user("ada", 30)))));

        let census = Census::default();
        let mut builder = Database::on(&engine).table::<u64, Counted>("rows");
        let unique = builder.unique("unique", |_, row: &Counted| row.number);
        let index = builder.secondary("index", |_, row: &Counted| row.number);
        let table = builder.create().unwrap();
        table.bulk_insert([(1, census.value(1))]).unwrap();
        engine.transact(|tx| table.insert(tx, 2, census.value(2))).unwrap();
        engine.transact(|tx| table.insert(tx, 3, census.value(2))).unwrap_err();
        assert_eq!(engine.transact(|tx| Ok(unique.get(tx, &2)?.map(|(key, _)| key))), Ok(Some(2)));
        drop((table, index, unique));
        census.settle(&engine, 0);
    });
}

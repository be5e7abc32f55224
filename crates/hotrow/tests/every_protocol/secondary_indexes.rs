//! Secondary indexes, one transaction at a time: they follow whatever happens to the rows.

use crate::support;
use crate::support::for_each_protocol;
use hotrow::sync::random::Random;
use hotrow::{Abort, Database, Direction, Engine, Protocol, SecondaryIndex, Table, Text, Transaction, Value};
use std::collections::BTreeSet;
use std::ops::ControlFlow;

#[derive(Debug, Clone, PartialEq, Eq, Value)]
struct Person {
    name: String,
    age: u32,
}

type Name = Text<12>;

struct People<P: Protocol> {
    table: Table<u64, Person, P>,
    by_name: SecondaryIndex<Name, u64, Person, P>,
    by_age: SecondaryIndex<u32, u64, Person, P>,
}

impl<P: Protocol> People<P> {
    fn new(engine: &Engine<P>, hash: bool) -> Self {
        let mut builder = Database::on(engine).table("people");
        let by_name = builder.secondary("by_name", |_, person: &Person| Name::prefix_of(&person.name));
        let by_age = builder.secondary("by_age", |_, person: &Person| person.age);
        let builder = if hash { builder.hash(10) } else { builder };
        Self { table: builder.create().unwrap(), by_name, by_age }
    }

    /// All entries of both indexes, and all rows, must say the same.
    fn check(&self, tx: &mut Transaction<'_, P>, keys: u64) -> Result<Vec<(u64, Person)>, Abort> {
        let mut rows = Vec::new();
        for key in 0..keys {
            rows.extend(self.table.get(tx, &key)?.map(|row| (key, row)));
        }
        let mut names = Vec::new();
        self.by_name.scan_keys(tx, .., Direction::Ascending, |name, key| {
            names.push((*name, *key));
            ControlFlow::Continue(())
        })?;
        let expected: BTreeSet<_> =
            rows.iter().map(|(key, row)| (Name::prefix_of(&row.name), *key)).collect();
        assert_eq!(names, expected.into_iter().collect::<Vec<_>>());
        let mut ages = Vec::new();
        self.by_age.scan(tx, .., Direction::Descending, |age, key, row| {
            assert_eq!(*age, row.age);
            ages.push((*age, *key));
            ControlFlow::Continue(())
        })?;
        let expected: BTreeSet<_> = rows.iter().map(|(key, row)| (row.age, *key)).collect();
        assert_eq!(ages, expected.into_iter().rev().collect::<Vec<_>>());
        Ok(rows)
    }
}

fn person(name: &str, age: u32) -> Person {
    Person { name: name.to_owned(), age }
}

#[test]
fn a_secondary_index_follows_inserts_updates_and_deletes() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        for hash in [false, true] {
            let people = People::new(&engine, hash);
            let table = &people.table;
            assert_eq!(people.by_age.name(), "people.by_age");
            let ages = |tx: &mut Transaction<'_, P>, range: std::ops::RangeInclusive<u32>| {
                let mut found = Vec::new();
                people.by_age.scan_keys(tx, range, Direction::Ascending, |_, key| {
                    found.push(*key);
                    ControlFlow::Continue(())
                })?;
                Ok::<_, Abort>(found)
            };
            engine
                .transact(|tx| {
                    assert!(table.insert_if_absent(tx, 1, person("anna", 30))?);
                    assert!(table.insert_if_absent(tx, 2, person("ben", 30))?);
                    assert!(table.insert_if_absent(tx, 3, person("cleo", 25))?);
                    assert!(!table.insert_if_absent(tx, 3, person("dora", 99))?, "refused: no entry either");
                    assert_eq!(ages(tx, 30..=30)?, [1, 2]);
                    people.check(tx, 5).map(|_| ())
                })
                .unwrap();
            engine
                .transact(|tx| {
                    // Changes the key, changes something else, changes it away and back.
                    table.update_if_present(tx, &1, |row| row.age = 26)?;
                    table.update_if_present(tx, &2, |row| row.name = String::from("bernard"))?;
                    table.update_if_present(tx, &3, |row| row.age = 70)?;
                    assert_eq!(ages(tx, 25..=25)?, [0; 0]);
                    table.update_if_present(tx, &3, |row| row.age = 25)?;
                    assert_eq!(ages(tx, 25..=26)?, [3, 1]);
                    people.check(tx, 5).map(|_| ())
                })
                .unwrap();
            engine
                .transact(|tx| {
                    assert!(table.delete(tx, &1)?);
                    assert!(!table.upsert(tx, 2, person("bob", 1))?);
                    assert!(table.upsert(tx, 4, person("emil", 2))?);
                    people.check(tx, 5).map(|_| ())
                })
                .unwrap();
            let rows = engine.transact(|tx| people.check(tx, 5)).unwrap();
            assert_eq!(rows.iter().map(|(key, _)| *key).collect::<Vec<_>>(), [2, 3, 4]);
        }
    });
}

#[test]
fn a_rollback_leaves_nothing_in_a_secondary_index() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let people = People::new(&engine, true);
        let table = &people.table;
        for key in 0..10 {
            table.bulk_insert([(key, person(&format!("p{key}"), key as u32 % 3))]).unwrap();
        }
        let before = engine.transact(|tx| people.check(tx, 20)).unwrap();
        let rolled_back = engine.transact(|tx| {
            table.insert_if_absent(tx, 15, person("new", 7))?;
            table.update_if_present(tx, &3, |row| row.age = 50)?;
            table.delete(tx, &4)?;
            table.delete(tx, &5)?;
            table.insert_if_absent(tx, 5, person("again", 51))?;
            table.delete(tx, &15)?;
            people.check(tx, 20)?;
            Err::<(), _>(Abort::rollback())
        });
        rolled_back.unwrap_err();
        assert_eq!(engine.transact(|tx| people.check(tx, 20)), Ok(before));
    });
}

#[test]
fn ranges_of_a_secondary_index_have_all_bounds_and_both_directions() {
    use std::ops::Bound::{Excluded, Included, Unbounded};
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let mut builder = Database::on(&engine).table::<u64, u32>("rows");
        let index = builder.secondary("by_row", |_, row| *row);
        let table = builder.create().unwrap();
        // Primary keys at both ends of their range, so that a border between two secondary keys must be exact.
        let keys = [0, 1, 7, u64::MAX - 1, u64::MAX];
        for (key, row) in keys.iter().flat_map(|key| [(*key, 0), (*key, 1), (*key, 2)]) {
            if row == (key % 3) as u32 {
                table.bulk_insert([(key, row)]).unwrap();
            }
        }
        for low in [Included(0), Included(1), Included(2), Excluded(0), Excluded(1), Unbounded] {
            for high in [Included(0), Included(1), Included(2), Excluded(1), Excluded(2), Unbounded] {
                for direction in [Direction::Ascending, Direction::Descending] {
                    let found = engine.transact(|tx| {
                        let mut found = Vec::new();
                        index.scan_keys(tx, (low, high), direction, |row, key| {
                            found.push((*row, *key));
                            ControlFlow::Continue(())
                        })?;
                        Ok(found)
                    });
                    let mut expected: Vec<_> = keys.iter().map(|key| ((key % 3) as u32, *key)).collect();
                    expected.retain(|(row, _)| std::ops::RangeBounds::contains(&(low, high), row));
                    expected.sort_unstable();
                    if direction == Direction::Descending {
                        expected.reverse();
                    }
                    assert_eq!(found, Ok(expected), "{low:?} {high:?}");
                }
            }
        }
    });
}

#[test]
fn rows_found_by_a_secondary_index_come_until_the_visitor_breaks() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let people = People::new(&engine, false);
        for key in 0..100 {
            people.table.bulk_insert([(key, person("x", (key % 10) as u32))]).unwrap();
        }
        let found = engine.transact(|tx| {
            people.table.update_if_present(tx, &23, |row| row.name = String::from("changed"))?;
            let mut found = Vec::new();
            people.by_age.scan(tx, 3..=4, Direction::Ascending, |age, key, row| {
                found.push((*age, *key, row.name.clone()));
                if found.len() < 4 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            })?;
            Ok(found)
        });
        let names = ["x", "x", "changed", "x"];
        let expected: Vec<_> =
            names.iter().enumerate().map(|(n, name)| (3, 10 * n as u64 + 3, (*name).to_owned())).collect();
        assert_eq!(found, Ok(expected));
    });
}

#[test]
fn random_changes_commits_and_rollbacks_keep_index_and_rows_together() {
    const KEYS: u64 = 30;
    for_each_protocol!(1, |P| {
        for hash in [false, true] {
            let engine = support::engine::<P>();
            let people = People::new(&engine, hash);
            let mut random = Random::seeded(u64::from(hash));
            let mut before = Vec::new();
            for _ in 0..300 {
                let operations: Vec<_> = (0..random.between(1, 12))
                    .map(|_| (random.below(5), random.below(KEYS), random.below(6) as u32))
                    .collect();
                let commits = random.chance(0.6);
                let result = engine.transact(|tx| {
                    for (operation, key, age) in &operations {
                        let row = person(&format!("age {age}"), *age);
                        match operation {
                            0 => _ = people.table.insert_if_absent(tx, *key, row)?,
                            1 => _ = people.table.upsert(tx, *key, row)?,
                            2 => _ = people.table.update_if_present(tx, key, |old| old.age = *age)?,
                            3 => _ = people.table.update_if_present(tx, key, |old| *old = row)?,
                            _ => _ = people.table.delete(tx, key)?,
                        }
                    }
                    let rows = people.check(tx, KEYS)?;
                    if commits { Ok(rows) } else { Err(Abort::rollback()) }
                });
                match result {
                    Ok(rows) => before = rows,
                    Err(error) => assert!(!commits, "{error}"),
                }
                assert_eq!(engine.transact(|tx| people.check(tx, KEYS)), Ok(before.clone()));
            }
        }
    });
}

//! Unique and secondary indexes, and constraints.

use super::{cluster_over, settings, text};
use crate::faults::{Faults, FaultyStore};
use crate::{
    Cluster, ClusterError, MemoryStore, RemoteIndex, RemoteTable, RemoteUniqueIndex, Settings, Transaction,
};
use hotrow::{Stored, Value, column_of};
use hotrow_core::{Abort, Misuse};
use hotrow_sync::{Arc, thread};
use hotrow_tables::{ConstraintViolated, Direction, DuplicateKey, TableMisuse};
use std::ops::ControlFlow;

#[derive(Debug, Clone, PartialEq, Stored, Value)]
struct Person {
    name: String,
    age: u32,
}

#[derive(Clone)]
struct People {
    cluster: Cluster,
    table: RemoteTable<u32, Person>,
    by_name: RemoteUniqueIndex<String, u32, Person>,
    by_age: RemoteIndex<u32, u32, Person>,
}

fn person(name: &str, age: u32) -> Person {
    Person { name: name.to_owned(), age }
}

impl People {
    fn open(cluster: Cluster) -> Result<Self, ClusterError> {
        let mut builder =
            cluster.table::<u32, Person>("people").check("nobody is 200", |_, row| row.age < 200);
        let by_name = builder.unique("by_name", |_, row| row.name.clone());
        let by_age = builder.secondary_on("by_age", column_of!(Person, age), |_, age| age);
        let table = builder.create_or_open()?;
        Ok(Self { cluster, table, by_name, by_age })
    }

    /// People 1 to 4.
    fn filled(page: usize) -> Self {
        let cluster = Cluster::with_settings(Arc::new(MemoryStore::new()), Settings { page, ..settings() });
        let people = Self::open(cluster).unwrap();
        let rows = [(1, "ann", 30), (2, "bob", 20), (3, "cid", 30), (4, "dot", 40)];
        let insert = |tx: &mut Transaction<'_>| {
            rows.iter().try_for_each(|(key, name, age)| tx.insert(&people.table, *key, person(name, *age)))
        };
        people.cluster.transact(insert).unwrap();
        people
    }

    fn by_age(&self, tx: &mut Transaction<'_>, direction: Direction) -> Result<Vec<u32>, Abort> {
        let rows = self.by_age.collect(tx, .., direction, usize::MAX)?;
        Ok(rows.into_iter().map(|(key, _)| key).collect())
    }

    /// Checks that the indexes have one entry for each row, and the rows one in each index.
    fn assert_complete(&self) {
        let check = |tx: &mut Transaction<'_>| {
            let rows = tx.rows(&self.table, ..)?;
            let (mut names, mut ages) = (Vec::new(), Vec::new());
            self.by_name.scan(tx, .., Direction::Ascending, |name, key, row| {
                names.push((*key, person(name, row.age)));
                ControlFlow::Continue(())
            })?;
            self.by_age.scan(tx, .., Direction::Ascending, |age, key, row| {
                ages.push((*key, person(&row.name, *age)));
                ControlFlow::Continue(())
            })?;
            assert!(names.is_sorted_by(|a, b| a.1.name < b.1.name), "{names:?}");
            assert!(ages.is_sorted_by(|a, b| (a.1.age, a.0) < (b.1.age, b.0)), "{ages:?}");
            names.sort_by_key(|(key, _)| *key);
            ages.sort_by_key(|(key, _)| *key);
            assert_eq!((&names, &ages), (&rows, &rows));
            Ok(())
        };
        self.cluster.transact(check).unwrap();
    }
}

#[test]
fn rows_are_found_by_their_indexes() {
    for page in [1, 2, 100] {
        let people = People::filled(page);
        let People { cluster, by_name, by_age, .. } = &people;
        let found = cluster.transact(|tx| Ok((by_name.get(tx, "bob")?, by_name.get_key(tx, "eve")?)));
        assert_eq!(found.unwrap(), (Some((2, person("bob", 20))), None));
        let both = cluster.transact(|tx| {
            Ok((people.by_age(tx, Direction::Ascending)?, people.by_age(tx, Direction::Descending)?))
        });
        assert_eq!(both.unwrap(), (vec![2, 1, 3, 4], vec![4, 3, 1, 2]));
        let some = cluster.transact(|tx| by_age.collect(tx, 30..40, Direction::Ascending, 1));
        assert_eq!(some.unwrap(), [(1, person("ann", 30))]);
        assert_eq!(cluster.transact(|tx| by_age.count(tx, 21..=40)).unwrap(), 3);
        assert_eq!(cluster.transact(|tx| by_name.count(tx, "b".to_owned().."d".to_owned())).unwrap(), 2);
        people.assert_complete();
    }
}

#[test]
fn indexes_follow_their_rows() {
    for page in [1, 3, 100] {
        let people = People::filled(page);
        let People { cluster, table, by_name, .. } = &people;
        let seen = cluster.transact(|tx| {
            tx.update(table, &2, |row| row.age = 50)?;
            tx.upsert(table, 1, person("abe", 10))?;
            tx.delete(table, &4)?;
            tx.insert(table, 5, person("dot", 35))?;
            tx.insert(table, 6, person("eve", 1))?;
            tx.delete(table, &6)?;
            assert_eq!(by_name.get_key(tx, "ann")?, None);
            assert_eq!(by_name.get_key(tx, "dot")?, Some(5));
            assert_eq!(by_name.get_key(tx, "eve")?, None);
            people.by_age(tx, Direction::Ascending)
        });
        assert_eq!(seen.unwrap(), [1, 3, 5, 2], "own writes are found");
        assert_eq!(cluster.transact(|tx| people.by_age(tx, Direction::Ascending)).unwrap(), [1, 3, 5, 2]);
        people.assert_complete();
        let back_and_forth = |tx: &mut Transaction<'_>| {
            for age in [60, 35, 61, 35] {
                tx.update(table, &5, |row| row.age = age)?;
            }
            tx.delete(table, &3)?;
            tx.insert(table, 3, person("cid", 30))
        };
        cluster.transact(back_and_forth).unwrap();
        people.assert_complete();
        cluster.collect().unwrap();
        people.assert_complete();
    }
}

#[test]
fn a_second_row_with_the_same_unique_key_is_an_error() {
    let people = People::filled(10);
    let People { cluster, table, .. } = &people;
    let bodies: [&dyn Fn(&mut Transaction<'_>) -> Result<(), Abort>; 3] = [
        &|tx| tx.insert(table, 9, person("bob", 1)),
        &|tx| tx.upsert(table, 1, person("bob", 1)).map(drop),
        &|tx| tx.update(table, &1, |row| row.name = "bob".to_owned()),
    ];
    for body in bodies {
        let error = cluster.transact(body).unwrap_err();
        let shown = "people.by_name has another row with key \"bob\" already";
        assert_eq!(error.downcast_ref::<DuplicateKey>().unwrap().to_string(), shown);
    }
    let exchanged = cluster.transact(|tx| {
        tx.update(table, &1, |row| row.name = "nobody".to_owned())?;
        tx.update(table, &2, |row| row.name = "ann".to_owned())?;
        tx.update(table, &1, |row| row.name = "bob".to_owned())
    });
    exchanged.unwrap();
    people.assert_complete();
    let caught = cluster.transact(|tx| {
        let part = tx.savepoint(|tx| tx.insert(table, 9, person("bob", 1)))?;
        assert!(part.unwrap_err().downcast_ref::<DuplicateKey>().is_some());
        tx.insert(table, 9, person("eve", 1))
    });
    caught.unwrap();
    people.assert_complete();
}

#[test]
fn of_two_processes_one_gets_a_unique_key() {
    let store = Arc::new(MemoryStore::new());
    let won: usize = thread::scope(|scope| {
        let take = |worker: u32| {
            let people = People::open(cluster_over(&store)).unwrap();
            scope.spawn(move || {
                let take = |name: &u32| {
                    let insert = |tx: &mut Transaction<'_>| {
                        tx.insert(&people.table, worker * 100 + name, person(&name.to_string(), worker))
                    };
                    match people.cluster.transact(insert) {
                        Ok(()) => true,
                        Err(error) => {
                            assert!(error.downcast_ref::<DuplicateKey>().is_some(), "{error}");
                            false
                        }
                    }
                };
                (0..20).filter(take).count()
            })
        };
        let workers: Vec<_> = (0..4).map(take).collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).sum()
    });
    assert_eq!(won, 20);
    People::open(cluster_over(&store)).unwrap().assert_complete();
}

/// The attempts of a transaction of one process, if another one does something between its reads and its commit.
fn attempts(
    body: impl Fn(&mut Transaction<'_>, &People) -> Result<(), Abort>,
    between: impl Fn(&mut Transaction<'_>, &People) -> Result<(), Abort> + Sync,
) -> u32 {
    let people = People::filled(10);
    let other =
        People::open(Cluster::with_settings(people.cluster.shared.store.clone(), settings())).unwrap();
    let mut attempts = 0;
    let run = |tx: &mut Transaction<'_>| {
        attempts += 1;
        body(tx, &people)?;
        tx.upsert(&people.table, 100, person("total", 0))?;
        if attempts == 1 {
            thread::scope(|scope| {
                let between = || other.cluster.transact(|tx| between(tx, &other));
                scope.spawn(between).join().unwrap().unwrap();
            });
        }
        Ok(())
    };
    people.cluster.transact(run).unwrap();
    people.assert_complete();
    attempts
}

#[test]
fn scans_of_an_index_are_validated_as_ranges() {
    type Between = fn(&mut Transaction<'_>, &People) -> Result<(), Abort>;
    let scan = |tx: &mut Transaction<'_>, people: &People| people.by_age.count(tx, 20..35).map(drop);
    let in_range: [(Between, &str); 3] = [
        (|tx, people| tx.insert(&people.table, 9, person("eve", 34)), "a row comes"),
        (|tx, people| tx.update(&people.table, &4, |row| row.age = 21), "a row moves there"),
        (|tx, people| tx.delete(&people.table, &1).map(drop), "a row goes"),
    ];
    for (between, what) in in_range {
        assert_eq!(attempts(scan, between), 2, "{what}");
    }
    let elsewhere: [Between; 2] = [
        |tx, people| tx.insert(&people.table, 9, person("eve", 35)),
        |tx, people| tx.update(&people.table, &1, |row| row.name = "amy".to_owned()),
    ];
    for between in elsewhere {
        assert_eq!(attempts(scan, between), 1, "neither the range nor its keys have changed");
    }
}

#[test]
fn a_scan_of_rows_depends_on_those_that_it_has_visited() {
    let first = |tx: &mut Transaction<'_>, people: &People| {
        people.by_age.collect(tx, .., Direction::Ascending, 1).map(drop)
    };
    let rename = |key: u32| {
        move |tx: &mut Transaction<'_>, people: &People| {
            tx.update(&people.table, &key, |row| row.name.push('!'))
        }
    };
    assert_eq!(attempts(first, rename(2)), 2);
    assert_eq!(attempts(first, rename(4)), 1, "it was read ahead, and not visited");
}

#[test]
fn a_lookup_by_a_unique_key_that_nobody_has_is_validated() {
    let lookup = |tx: &mut Transaction<'_>, people: &People| people.by_name.get(tx, "eve").map(drop);
    let come = |tx: &mut Transaction<'_>, people: &People| tx.insert(&people.table, 9, person("eve", 1));
    assert_eq!(attempts(lookup, come), 2);
    let grow = |tx: &mut Transaction<'_>, people: &People| tx.update(&people.table, &2, |row| row.age += 1);
    assert_eq!(attempts(lookup, grow), 1);
}

#[test]
fn rows_of_a_scan_are_read_together() {
    let store = Arc::new(FaultyStore::new(MemoryStore::new(), 1, Faults::default()));
    let people = People::open(Cluster::over(store.clone())).unwrap();
    let insert = |tx: &mut Transaction<'_>| {
        (0..50).try_for_each(|key| tx.insert(&people.table, key, person(&key.to_string(), key)))
    };
    people.cluster.transact(insert).unwrap();
    let before = store.counts().calls;
    let rows = people.cluster.transact(|tx| people.by_age.collect(tx, .., Direction::Ascending, usize::MAX));
    assert_eq!((rows.unwrap().len(), store.counts().calls - before), (50, 2), "entries, then rows");
}

#[test]
fn tables_are_opened_with_the_indexes_that_they_were_made_with() {
    let people = People::filled(10);
    let cluster = &people.cluster;
    let without = text(cluster.table::<u32, Person>("people").create_or_open());
    assert!(without.contains("with indexes people.by_age, people.by_name, and is wanted as"), "{without}");
    let as_table = cluster.table::<String, u32>("people.by_name").create_or_open().unwrap_err();
    assert!(matches!(as_table.misuse().unwrap().downcast_ref(), Some(TableMisuse::OtherTypes { .. })));
    let mut twice = cluster.table::<u32, Person>("twice");
    let unused = twice.secondary("one", |_, row| row.age);
    let _ = twice.unique("one", |_, row| row.age);
    let taken = twice.create_or_open().unwrap_err();
    assert!(matches!(taken.misuse().unwrap().downcast_ref(), Some(TableMisuse::NameTaken { .. })));
    let not_open = cluster.transact(|tx| unused.count(tx, ..)).unwrap_err();
    assert!(matches!(not_open.misuse(), Some(Misuse::Unsupported(_))));
}

#[test]
fn constraints_are_judged_in_the_final_state() {
    let people = People::filled(10);
    let People { cluster, table, .. } = &people;
    let ages = |last| {
        cluster.transact(|tx| {
            tx.update(table, &1, |row| row.age = 500)?;
            tx.update(table, &2, |row| row.age = 5)?;
            tx.update(table, &1, |row| row.age = last)
        })
    };
    ages(60).unwrap();
    let error = ages(200).unwrap_err();
    let shown = "people[1] breaks the constraint: nobody is 200";
    assert_eq!(error.downcast_ref::<ConstraintViolated>().unwrap().to_string(), shown);
    assert_eq!(cluster.transact(|tx| tx.get(table, &2)).unwrap().unwrap().age, 5);
    assert!(cluster.transact(|tx| tx.insert(table, 9, person("old", 300))).is_err());
    assert!(cluster.transact(|tx| tx.upsert(table, 1, person("old", 300))).is_err());
    let undone = cluster.transact(|tx| {
        tx.insert(table, 9, person("old", 300))?;
        tx.delete(table, &9)?;
        let part = tx.savepoint(|tx| {
            tx.update(table, &1, |row| row.age = 300)?;
            Err::<(), _>(Abort::rollback())
        })?;
        assert!(part.is_err());
        Ok(())
    });
    undone.unwrap();
    people.assert_complete();
}

#[test]
fn indexes_of_two_tables_whose_full_names_are_the_same_do_not_mix() {
    let cluster = Cluster::over(Arc::new(MemoryStore::new()));
    let mut builder = cluster.table::<u32, u32>("a");
    let index = builder.secondary("b.c", |_, row| *row);
    let table = builder.create_or_open().unwrap();
    let mut builder = cluster.table::<u32, u32>("a.b");
    let other = builder.secondary("c", |_, row| *row);
    assert_eq!(index.name(), other.name());
    let taken = text(builder.create_or_open());
    assert!(taken.contains("a secondary index of table a by"), "{taken}");
    cluster.transact(|tx| tx.insert(&table, 1, 1)).unwrap();
    assert_eq!(cluster.transact(|tx| index.count(tx, ..)).unwrap(), 1);
}

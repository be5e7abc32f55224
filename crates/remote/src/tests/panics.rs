//! Users' code that panics in an operation, and a body that catches that and goes on.

use super::{cluster, cluster_over};
use crate::{MemoryStore, RemoteTable, Transaction};
use hotrow::{Stored, Value};
use hotrow_core::{Abort, Misuse};
use hotrow_sync::{Arc, thread};
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};

fn caught<T>(call: impl FnOnce() -> T) {
    assert!(catch_unwind(AssertUnwindSafe(call)).is_err());
}

#[test]
fn what_a_visitor_has_seen_before_its_panic_is_validated() {
    let store = Arc::new(MemoryStore::new());
    let (one, other) = (cluster_over(&store), cluster_over(&store));
    let open = |cluster: &crate::Cluster| cluster.table::<u32, i64>("numbers").create_or_open().unwrap();
    let (table, others) = (open(&one), open(&other));
    one.transact(|tx| (1..4).try_for_each(|key| tx.insert(&table, key, 0))).unwrap();
    let mut attempts = 0;
    let seen = one.transact(|tx| {
        attempts += 1;
        let mut seen = 0;
        caught(|| {
            tx.scan(&table, .., |key, number| {
                seen = number;
                assert_ne!(key, 1, "a panic of a visitor");
                ControlFlow::Continue(())
            })
        });
        if attempts == 1 {
            let change = || other.transact(|tx| tx.update(&others, &1, |number| *number = 5));
            thread::scope(|scope| scope.spawn(change).join().unwrap()).unwrap();
        }
        tx.insert(&table, 9, seen)?;
        tx.get(&table, &1)
    });
    assert_eq!((seen.unwrap(), attempts), (Some(5), 2));
    assert_eq!(one.transact(|tx| tx.get(&table, &9)).unwrap(), Some(5));
}

#[derive(Debug, Clone, Copy, PartialEq, Stored, Value)]
#[value(inline)]
struct Person {
    name: u64,
    age: u64,
}

/// An age of which no key can be made.
const IMPOSSIBLE: u64 = 7;

#[test]
fn half_a_change_is_undone_behind_a_savepoint_or_ends_the_transaction() {
    let cluster = cluster();
    let mut builder = cluster.table::<u32, Person>("people");
    let by_name = builder.secondary("by_name", |_, person| person.name);
    let by_age = builder.secondary("by_age", |_, person: &Person| {
        assert_ne!(person.age, IMPOSSIBLE, "a panic of an index");
        person.age
    });
    let table = builder.create_or_open().unwrap();
    cluster.transact(|tx| tx.insert(&table, 1, Person { name: 1, age: 1 })).unwrap();
    type Change = fn(&mut Transaction<'_>, &RemoteTable<u32, Person>) -> Result<(), Abort>;
    let changes: [Change; 3] = [
        |tx, table| tx.insert(table, 2, Person { name: 2, age: IMPOSSIBLE }),
        |tx, table| tx.upsert(table, 1, Person { name: 2, age: IMPOSSIBLE }).map(drop),
        |tx, table| tx.update(table, &1, |person| *person = Person { name: 2, age: IMPOSSIBLE }),
    ];
    for change in changes {
        let kept = cluster.transact(|tx| {
            caught(|| change(tx, &table));
            Ok(())
        });
        assert_eq!(kept.unwrap_err().misuse(), Some(&Misuse::CaughtError));
        let undone = cluster.transact(|tx| {
            caught(|| tx.savepoint(|tx| change(tx, &table)));
            tx.upsert(&table, 3, Person { name: 3, age: 3 })
        });
        undone.unwrap();
        let found = cluster
            .transact(|tx| Ok((tx.rows(&table, ..)?.len(), by_name.count(tx, ..)?, by_age.count(tx, ..)?)));
        assert_eq!(found.unwrap(), (2, 2, 2));
    }
}

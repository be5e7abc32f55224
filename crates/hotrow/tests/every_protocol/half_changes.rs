//! Operations that fail between a row and its entries, and bodies that go on as if nothing had happened.

use crate::support;
use crate::support::for_each_protocol;
use hotrow::{Database, Error, Misuse, Protocol, SessionOptions, Table, UniqueIndex};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Two users, and an index of names that panics over "panic".
fn users<P: Protocol>(
    engine: &hotrow::Engine<P>,
) -> (Table<u64, String, P>, UniqueIndex<String, u64, String, P>) {
    let mut builder = Database::on(engine).table::<u64, String>("users");
    let by_name = builder.unique("by_name", |_, name: &String| {
        assert_ne!(name, "panic", "no index for this one");
        name.clone()
    });
    let users = builder.create().unwrap();
    users.bulk_insert([(1, "ada".into())]).unwrap();
    users.bulk_insert([(2, "bob".into())]).unwrap();
    (users, by_name)
}

/// Both users are as they were, and so is the index.
fn assert_untouched<P: Protocol>(
    engine: &hotrow::Engine<P>,
    (users, by_name): &(Table<u64, String, P>, UniqueIndex<String, u64, String, P>),
) {
    let found = engine.transact(|tx| {
        let rows = [1, 2, 3].map(|key| users.get(tx, &key));
        let entries = ["ada", "bob", "panic"].map(|name| by_name.get(tx, name));
        let [first, second, third] = rows;
        let [ada, bob, panic] = entries;
        Ok(([first?, second?, third?], [ada?, bob?, panic?].map(|found| found.map(|(key, _)| key))))
    });
    let rows = [Some("ada".into()), Some("bob".into()), None];
    assert_eq!(found, Ok((rows, [Some(1), Some(2), None])));
}

#[test]
fn a_panic_that_the_body_catches_leaves_no_row_without_its_entry() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let made = users(&engine);
        let users = &made.0;
        for operation in 0..4 {
            let caught = engine.transact(|tx| {
                let panicked = catch_unwind(AssertUnwindSafe(|| match operation {
                    0 => users.update(tx, &2, |name| {
                        *name = "ada".into();
                        panic!("half-way");
                    }),
                    1 => users.update(tx, &2, |name| *name = "panic".into()),
                    2 => users.insert(tx, 3, "panic".into()),
                    _ => users.replace(tx, &2, "panic".into()),
                }));
                assert!(panicked.is_err());
                Ok(())
            });
            assert_eq!(caught, Err(Error::Misuse(Misuse::CaughtError)), "operation {operation}");
            assert_untouched(&engine, &made);
        }
        // Behind a savepoint it is undone, and the body goes on.
        let went_on = engine.transact(|tx| {
            let panicked = catch_unwind(AssertUnwindSafe(|| {
                tx.savepoint(|tx| users.update(tx, &2, |name| *name = "panic".into()))
            }));
            assert!(panicked.is_err());
            users.update(tx, &1, |name| name.push('!'))
        });
        assert_eq!(went_on, Ok(()));
        engine.transact(|tx| users.update(tx, &1, |name| _ = name.pop())).unwrap();
        assert_untouched(&engine, &made);
    });
}

#[test]
fn an_error_kept_from_an_open_transaction_does_not_commit() {
    for_each_protocol!(2, |P| {
        let engine = support::engine::<P>();
        let made = users(&engine);
        let mut worker = engine.worker().unwrap();
        let mut open = worker.begin();
        assert!(made.0.insert(&mut open, 3, "ada".into()).is_err());
        assert_eq!(open.commit(), Err(Error::Misuse(Misuse::CaughtError)));
        drop(worker);
        assert_untouched(&engine, &made);
    });
}

#[test]
fn a_panic_that_a_statement_catches_undoes_the_statement() {
    for_each_protocol!(2, |P| {
        let engine = support::engine::<P>();
        let made = users(&engine);
        let users = &made.0;
        let mut session = engine.begin(SessionOptions::named("half-way")).unwrap();
        session.run(|tx| users.update(tx, &1, |name| name.push('!'))).unwrap();
        let caught = session.run(|tx| {
            let panicked =
                catch_unwind(AssertUnwindSafe(|| users.update(tx, &2, |name| *name = "panic".into())));
            assert!(panicked.is_err());
            Ok(())
        });
        assert_eq!(caught, Err(Error::Misuse(Misuse::CaughtError)));
        session.run(|tx| users.update(tx, &1, |name| _ = name.pop())).unwrap();
        session.commit().unwrap();
        assert_untouched(&engine, &made);
    });
}

//! Reads on which a transaction does not depend, and profiles given to a database.

use crate::support::{self, elsewhere, for_each_concurrent_protocol, for_each_protocol};
use hotrow::sync::thread;
use hotrow::{
    Abort, Database, Direction, Engine, Error, Isolation, Misuse, Occ, Profile, Protocol, TArray, TBox,
    Transaction,
};
use hotrow_check::check;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};

#[test]
fn what_is_read_untracked_may_change() {
    for_each_concurrent_protocol!(3, |P| {
        let engine = support::engine::<P>();
        let recording = engine.record_history(1 << 20).unwrap();
        let (hint, count) = (TBox::new(&engine, 1u64), TBox::new(&engine, 0u64));
        let table = Database::on(&engine).table::<u64, u64>("rows").hash(4).create().unwrap();
        let mut attempts = 0;
        engine
            .transact(|tx| {
                attempts += 1;
                let seen = tx.untracked(|tx| Ok::<_, Abort>((hint.get(tx)?, table.get(tx, &7)?)))?;
                let change = || {
                    engine.transact(|tx| {
                        hint.set(tx, 2)?;
                        table.insert(tx, 7, 7)
                    })
                };
                if attempts == 1 {
                    assert_eq!(seen, (1, None));
                    thread::scope(|scope| scope.spawn(change).join().unwrap()).unwrap();
                }
                // Its own write is seen, and each read sees what is committed now.
                count.set(tx, 5)?;
                let now =
                    tx.untracked(|tx| Ok::<_, Abort>((hint.get(tx)?, table.get(tx, &7)?, count.get(tx)?)))?;
                assert_eq!(now, (2, Some(7), 5));
                Ok(())
            })
            .unwrap();
        assert_eq!((attempts, engine.statistics().aborts), (1, 0), "{}", engine.protocol());
        let report = check(&recording.finish()).unwrap();
        assert!(report.serializable, "{report}");
    });
}

/// The elements of an array, read at once.
fn elements<P: Protocol>(array: &TArray<u64, P>, tx: &mut Transaction<'_, P>) -> Result<Vec<u64>, Abort> {
    let mut elements = Vec::new();
    array.read_each(tx, 0..array.len(), |index, element| {
        assert_eq!(index, elements.len());
        elements.push(*element);
    })?;
    Ok(elements)
}

#[test]
fn elements_read_untracked_at_once_may_change_and_leave_no_items() {
    for_each_concurrent_protocol!(2, |P| {
        let engine = support::engine::<P>();
        let array = TArray::new(&engine, 100, |index| index as u64);
        let mut expected: Vec<u64> = (0..100).collect();
        let mut attempts = 0;
        let (first, then) = engine
            .transact(|tx| {
                attempts += 1;
                let first = tx.untracked(|tx| elements(&array, tx))?;
                if engine.protocol() == "occ" {
                    assert_eq!(tx.items(), 0);
                }
                elsewhere(|| engine.transact(|tx| array.set(tx, 7, 700)).unwrap());
                array.set(tx, 8, 800)?;
                Ok((first, tx.untracked(|tx| elements(&array, tx))?))
            })
            .unwrap();
        assert_eq!(first, expected);
        (expected[7], expected[8]) = (700, 800);
        assert_eq!(then, expected, "{}", engine.protocol());
        assert_eq!((attempts, engine.statistics().aborts), (1, 0), "{}", engine.protocol());
        assert_eq!(engine.transact(|tx| elements(&array, tx)), Ok(expected));
    });
}

#[test]
fn elements_read_at_once_are_of_one_state() {
    for_each_concurrent_protocol!(2, |P| {
        let engine = support::engine::<P>();
        let array = TArray::new(&engine, 16, |_| 10u64);
        thread::scope(|scope| {
            scope.spawn(|| {
                for step in 0..400 {
                    let (from, to) = (step * 7 % 16, step * 5 % 16);
                    let moved = engine.transact(|tx| {
                        let amount = array.update(tx, from, std::mem::take)?;
                        array.update(tx, to, |to| *to += amount)
                    });
                    moved.unwrap();
                }
            });
            for _ in 0..200 {
                let sum = engine.transact(|tx| Ok::<_, Abort>(elements(&array, tx)?.iter().sum::<u64>()));
                assert_eq!(sum, Ok(160), "{}", engine.protocol());
            }
        });
    });
}

#[test]
fn a_range_that_ends_behind_the_array_is_out_of_bounds() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let array = TArray::new(&engine, 4, |index| index as u64);
        let refused = engine.transact(|tx| array.read_each(tx, 2..6, |_, _| ()));
        assert!(
            matches!(refused, Err(Error::Misuse(Misuse::OutOfBounds { index: 5, length: 4, .. }))),
            "{refused:?}"
        );
        let mut seen = Vec::new();
        engine.transact(|tx| array.read_each(tx, 1..3, |_, element| seen.push(*element))).unwrap();
        engine.transact(|tx| array.read_each(tx, 6..6, |_, _| unreachable!())).unwrap();
        assert_eq!(seen, [1, 2]);
    });
}

#[test]
fn a_part_with_untracked_reads_writes_nothing_and_ends_with_it() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let number = TBox::new(&engine, 1u64);
        let refused = engine.transact(|tx| tx.untracked(|tx| number.set(tx, 2)));
        assert!(matches!(refused, Err(Error::Misuse(Misuse::ReadOnly { .. }))), "{refused:?}");
        engine
            .transact(|tx| {
                let part = AssertUnwindSafe(|| tx.untracked(|_| -> Result<(), Abort> { panic!("as told") }));
                assert!(catch_unwind(part).is_err());
                let failed = tx.untracked(|_| Err::<(), _>("no"));
                assert_eq!(failed, Err("no"));
                number.set(tx, 3)
            })
            .unwrap();
        assert_eq!(engine.transact(|tx| number.get(tx)), Ok(3));
    });
}

#[test]
fn a_database_takes_profiles() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let number = TBox::new(&engine, 1u64);
        assert_eq!(engine.transact_as(Profile::READ_ONLY, |tx| number.get(tx)), Ok(1));
        let refused = engine.transact_as(Profile::READ_ONLY, |tx| number.set(tx, 2));
        assert!(matches!(refused, Err(Error::Misuse(Misuse::ReadOnly { .. }))), "{refused:?}");
        let on_snapshot = Profile { isolation: Isolation::StrictSnapshot, ..Profile::UNKNOWN };
        let read = |tx: &mut hotrow::Transaction<'_, P>| tx.untracked(|tx| number.get(tx));
        assert_eq!(engine.transact_as(on_snapshot, read), Ok(1));
    });
}

#[test]
fn an_untracked_scan_says_nothing_of_what_was_observed_before() {
    let engine = Engine::<Occ>::new();
    let missing = TBox::new(&engine, true);
    let table = |name: &str| Database::on(&engine).table::<u64, u64>(name);
    let ordered = table("ordered").ordered().create().unwrap();
    ordered.bulk_insert([(3, 3)]).unwrap();
    // An observation in each of these stands for a whole bucket.
    for (number, builder) in
        [table("hash").hash(16), table("cached hash").hash(16).cached(0)].into_iter().enumerate()
    {
        let rows = builder.create().unwrap();
        let mut attempts = 0;
        engine
            .transact(|tx| {
                attempts += 1;
                let is_missing = rows.get(tx, &7)?.is_none();
                tx.untracked(|tx| {
                    ordered.scan(tx, 0..2, Direction::Ascending, |_, _| ControlFlow::Continue(()))
                })?;
                if attempts == 1 {
                    elsewhere(|| engine.transact(|tx| rows.insert(tx, 7, 7)).unwrap());
                }
                missing.set(tx, is_missing)
            })
            .unwrap();
        assert_eq!((attempts, engine.transact(|tx| missing.get(tx)).unwrap()), (2, false), "{number}");
    }
}

//! Replacements: blind writes of rows that must be there, and nothing else.

use crate::support;
use crate::support::steps::Interleaving;
use crate::support::{Census, attempts, for_each_protocol, impatient};
use hotrow::{Context, Database, OperationKind, Operations, Procedure, Procedures, TableRef, Value};

/// A row that nobody may copy.
#[derive(Debug, Value)]
struct Precious(u64);

impl Clone for Precious {
    fn clone(&self) -> Self {
        panic!("a row was copied")
    }
}

#[test]
fn a_replacement_replaces_what_is_there_and_nothing_else() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let tables = [
            Database::on(&engine).table::<u64, String>("hash").hash(4).create().unwrap(),
            Database::on(&engine).table("ordered").create().unwrap(),
        ];
        for table in tables {
            let now = || engine.transact(|tx| table.get(tx, &1)).unwrap();
            assert_eq!(engine.transact(|tx| table.replace_if_present(tx, &1, "none".into())), Ok(false));
            assert_eq!(now(), None);
            engine.transact(|tx| table.insert_if_absent(tx, 1, "first".into())).unwrap();
            assert_eq!(engine.transact(|tx| table.replace_if_present(tx, &1, "second".into())), Ok(true));
            assert_eq!(now().as_deref(), Some("second"));
            assert_eq!(engine.transact(|tx| table.delete(tx, &1)), Ok(true));
            assert_eq!(engine.transact(|tx| table.replace_if_present(tx, &1, "third".into())), Ok(false));
            assert_eq!(now(), None);
        }
    });
}

#[test]
fn a_transaction_sees_its_own_replacements_and_replaces_its_own_changes() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let table = Database::on(&engine).table::<u64, String>("rows").hash(4).create().unwrap();
        table.bulk_insert([(1, "old".into())]).unwrap();
        let row = |text: &str| text.to_owned();
        let result = engine.transact(|tx| {
            // Over the value as it was, over a replacement, over an update.
            assert!(table.replace_if_present(tx, &1, row("a"))?);
            assert_eq!(table.get(tx, &1)?, Some(row("a")));
            assert!(table.replace_if_present(tx, &1, row("b"))?);
            assert_eq!(table.update_if_present(tx, &1, |text| text.push('c'))?, Some(()));
            assert_eq!(table.get(tx, &1)?, Some(row("bc")));
            assert!(table.replace_if_present(tx, &1, row("d"))?);
            // Deleted, then inserted again.
            assert!(table.delete(tx, &1)?);
            assert!(!table.replace_if_present(tx, &1, row("e"))?);
            assert_eq!(table.get(tx, &1)?, None);
            assert!(table.insert_if_absent(tx, 1, row("f"))? && table.replace_if_present(tx, &1, row("g"))?);
            // A row of its own.
            assert!(table.insert_if_absent(tx, 2, row("h"))? && table.replace_if_present(tx, &2, row("i"))?);
            assert_eq!(table.get(tx, &2)?, Some(row("i")));
            assert!(table.insert_if_absent(tx, 3, row("j"))? && table.delete(tx, &3)?);
            assert!(!table.replace_if_present(tx, &3, row("k"))?);
            Ok(())
        });
        assert_eq!(result, Ok(()));
        let all = engine.transact(|tx| Ok([table.get(tx, &1)?, table.get(tx, &2)?, table.get(tx, &3)?]));
        assert_eq!(all, Ok([Some(row("g")), Some(row("i")), None]));
    });
}

#[test]
fn a_row_that_was_read_can_be_replaced_and_then_counts_as_read() {
    for_each_protocol!(2, |P| {
        let engine = impatient::<P>();
        let table = Database::on(&engine).table::<u64, u64>("rows").hash(4).create().unwrap();
        table.bulk_insert([(1, 10)]).unwrap();
        let body = |tx: &mut hotrow::Transaction<'_, P>| {
            let old = table.get(tx, &1)?.unwrap_or_default();
            table.replace_if_present(tx, &1, old + 1).map(drop)
        };
        let other = |tx: &mut hotrow::Transaction<'_, P>| table.replace_if_present(tx, &1, 20).map(drop);
        let expected = if attempts(&engine, body, other).is_some() { 21 } else { 11 };
        assert_eq!(engine.transact(|tx| table.get(tx, &1)), Ok(Some(expected)));
    });
}

#[test]
fn a_rolled_back_replacement_leaves_the_row_and_drops_the_new_one() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let census = Census::default();
        let table = Database::on(&engine).table("rows").hash(4).create().unwrap();
        table.bulk_insert([(1, census.value(10))]).unwrap();
        let refused = engine.transact(|tx| {
            assert!(
                table.replace_if_present(tx, &1, census.value(11))?
                    && table.replace_if_present(tx, &1, census.value(12))?
            );
            Err::<(), _>(hotrow::Abort::rollback())
        });
        assert!(refused.is_err());
        assert_eq!(engine.transact(|tx| table.read(tx, &1, |row| row.number)), Ok(Some(10)));
        census.settle(&engine, 1);
        assert_eq!(engine.transact(|tx| table.replace_if_present(tx, &1, census.value(13))), Ok(true));
        census.settle(&engine, 1);
    });
}

#[test]
fn a_replacement_copies_nothing() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let builder = Database::on(&engine).table::<u64, _>("rows").hash(4);
        let table = support::loaded(builder, [(1, Precious(10))]);
        let twice = engine.transact(|tx| {
            Ok(table.replace_if_present(tx, &1, Precious(11))?
                && table.replace_if_present(tx, &1, Precious(12))?)
        });
        assert_eq!(twice, Ok(true));
        assert_eq!(engine.transact(|tx| table.read(tx, &1, |row| row.0)), Ok(Some(12)));
    });
}

#[test]
fn a_replacement_is_not_aborted_by_another_write_of_the_row_meanwhile() {
    for_each_protocol!(2, |P| {
        let engine = impatient::<P>();
        let table = Database::on(&engine).table::<u64, u64>("rows").hash(4).create().unwrap();
        table.bulk_insert([(1, 10)]).unwrap();
        let replaced = attempts(
            &engine,
            |tx| table.replace_if_present(tx, &1, 11).map(drop),
            |tx| table.update_if_present(tx, &1, |row| *row += 20).map(drop),
        );
        assert!(matches!(replaced, None | Some(1)), "{replaced:?} attempts");
        assert_eq!(engine.transact(|tx| table.get(tx, &1)), Ok(Some(11)));
    });
}

#[test]
fn a_row_that_goes_meanwhile_is_not_replaced() {
    for_each_protocol!(2, |P| {
        let engine = impatient::<P>();
        let tables = [
            Database::on(&engine).table::<u64, u64>("hash").hash(4).create().unwrap(),
            Database::on(&engine).table("ordered").create().unwrap(),
        ];
        for table in tables {
            table.bulk_insert([(1, 10)]).unwrap();
            let mut there = Vec::new();
            let replaced = attempts(
                &engine,
                |tx| {
                    there.push(table.replace_if_present(tx, &1, 11)?);
                    Ok(())
                },
                |tx| table.delete(tx, &1).map(drop),
            );
            let now = engine.transact(|tx| table.get(tx, &1)).unwrap();
            match replaced {
                None => assert_eq!((now, there), (Some(11), vec![true]), "the killer was held off"),
                Some(_) => {
                    assert_eq!((now, there), (None, vec![true, false]), "who was killed comes back");
                }
            }
        }
    });
}

#[test]
fn replacements_between_deletions_and_insertions_leave_histories_without_cycles() {
    for_each_protocol!(3, |P| {
        for commit_first in [true, false] {
            Interleaving::<P>::new().run(|engine, [mut loader, mut first, mut second]| {
                let table = Database::on(engine).table::<u64, u64>("rows").hash(4).create().unwrap();
                loader
                    .step(|tx| Ok(table.insert_if_absent(tx, 1, 10)? && table.insert_if_absent(tx, 2, 20)?));
                assert!(loader.commit());
                // Each finds out whether a row is there by replacing it, and takes the other away.
                let found = first.step(|tx| table.replace_if_present(tx, &1, 11));
                let also = second.step(|tx| table.replace_if_present(tx, &2, 22));
                first.step(|tx| table.delete(tx, &2));
                second.step(|tx| table.delete(tx, &1));
                let mut ends = [&mut first, &mut second];
                if !commit_first {
                    ends.reverse();
                }
                let committed = ends.map(|end| end.commit());
                assert_ne!(committed, [true, true], "each has seen the row that the other took away");
                let rows = engine.transact(|tx| Ok([table.get(tx, &1)?, table.get(tx, &2)?])).unwrap();
                if first.committed() {
                    assert_eq!((found, rows), (Some(true), [Some(11), None]));
                } else if second.committed() {
                    assert_eq!((also, rows), (Some(true), [None, Some(22)]));
                } else {
                    assert_eq!(rows, [Some(10), Some(20)]);
                }
            });
        }
    });
}

#[test]
fn a_scan_that_finds_a_replacement_has_lost_no_key_though_its_transaction_has_no_effect() {
    for_each_protocol!(2, |P| {
        Interleaving::<P>::new().run(|engine, [mut first, mut second]| {
            let table = Database::on(engine).table::<u64, u64>("rows").create().unwrap();
            table.bulk_insert([(1, 10)]).unwrap();
            first.step(|tx| table.replace_if_present(tx, &1, 11));
            let found = first.step(|tx| table.collect(tx, .., hotrow::Direction::Ascending, 9));
            assert_eq!(found, Some(vec![(1, 11)]));
            first.roll_back();
            // Somebody writes the key in this history, so that it has a place in it.
            assert_eq!(second.step(|tx| table.update_if_present(tx, &1, |row| *row += 1)), Some(Some(())));
            assert!(second.commit());
        });
    });
}

#[test]
fn entries_of_secondary_indexes_follow_a_replacement() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let mut builder = Database::on(&engine).table::<u64, u64>("rows");
        let by_tens = builder.secondary("by_tens", |_, row: &u64| row / 10);
        let table = builder.create().unwrap();
        table.bulk_insert([(1, 15)]).unwrap();
        let replaced = engine.transact(|tx| {
            let keys = |tx: &mut _, tens: u64| {
                let mut keys = Vec::new();
                by_tens.scan_keys(tx, tens..=tens, hotrow::Direction::Ascending, |_, key| {
                    keys.push(*key);
                    std::ops::ControlFlow::Continue(())
                })?;
                Ok::<_, hotrow::Abort>(keys)
            };
            assert!(table.replace_if_present(tx, &1, 37)?);
            Ok((keys(tx, 1)?, keys(tx, 3)?))
        });
        assert_eq!(replaced, Ok((vec![], vec![1])));
    });
}

struct ReplaceTwo(TableRef<u64, u64>);

impl Procedure for ReplaceTwo {
    type Output = (bool, bool);

    fn run<C: Context>(&self, cx: &mut C) -> Result<C::Val<(bool, bool)>, C::Stop> {
        let (key, row) = (cx.value(1), cx.value(11));
        let first = cx.replace(self.0, key, row)?;
        let (key, row) = (cx.value(2), cx.value(22));
        let second = cx.replace(self.0, key, row)?;
        Ok(cx.zip(first, second))
    }
}

#[test]
fn procedures_replace_rows_and_their_recordings_say_so() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let database = Database::on(&engine);
        let table = database.table("rows").hash(4).create().unwrap().reference();
        database.table_of(table).bulk_insert([(1, 10)]).unwrap();
        let mut worker = engine.worker().unwrap();
        let trace = database.trace_on(&mut worker, &ReplaceTwo(table)).unwrap();
        let kinds: Vec<_> = trace.operations.iter().map(|operation| operation.kind).collect();
        assert_eq!(kinds, [OperationKind::Replace; 2]);
        assert_eq!(database.execute_on(&mut worker, &ReplaceTwo(table)), Ok((true, false)));
        assert_eq!(worker.transact(|tx| database.table_of(table).get(tx, &1)), Ok(Some(11)));
    });
}

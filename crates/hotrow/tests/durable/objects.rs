//! Durable objects: boxes, counters and arrays, by name.

use crate::power::open;
use crate::support::{choose, for_each_protocol};
use hotrow::durable::storage::Faulty;
use hotrow::durable::{DurableDatabase, Mode};
use hotrow::sync::atomic::{AtomicU64, Ordering};
use hotrow::{Column, Database, Error, Occ, Overflow, TableMisuse};
use std::sync::Arc;

fn reopened(storage: &Arc<Faulty>) -> Database<Occ> {
    choose("occ");
    open(storage.clone(), Mode::Group)
}

#[test]
fn objects_are_found_by_name_with_their_values() {
    let storage = Arc::new(Faulty::new(1));
    for round in 0..4u64 {
        let db = reopened(&storage);
        // Another initial value: what was recovered counts.
        let words = db.durable_box("words", format!("round {round}")).unwrap();
        let count = db.durable_counter("count", 100 + round as i64).unwrap();
        let levels = db.durable_array("levels", 700, |at| at as u64).unwrap();
        let before = db
            .transact(|tx| {
                let before = (words.get(tx)?, count.get(tx)?, levels.get(tx, 650)?, levels.get(tx, 3)?);
                words.append(tx, Some('!'))?;
                count.add(tx, -7)?;
                levels.update(tx, 650, |level| *level *= 2)?;
                Ok(before)
            })
            .unwrap();
        let changed = format!("round 0{}", "!".repeat(round as usize));
        assert_eq!(before, (changed, 100 - 7 * round as i64, 650 << round, 3));
        if round % 2 == 1 {
            db.checkpoint().unwrap();
        }
        let again = db.durable_counter("count", 0).unwrap();
        assert!(Arc::ptr_eq(&again, &count), "a name has one object");
    }
}

#[test]
fn an_array_may_become_longer_and_never_shorter() {
    let storage = Arc::new(Faulty::new(1));
    for (length, factor) in [(2, 1), (5, 10), (5, 100)] {
        let db = reopened(&storage);
        let array = db.durable_array("array", length, |at| at as u64 * factor).unwrap();
        let all = db.transact(|tx| (0..length).map(|at| array.get(tx, at)).collect::<Result<Vec<_>, _>>());
        let expected = [&[0, 1][..], &[0, 1, 20, 30, 40], &[0, 1, 20, 30, 40]][factor.ilog10() as usize];
        assert_eq!(all.unwrap(), expected);
        assert!(
            db.durable_array("array", 9, |_| 0u64)
                .is_err_and(|refused| matches!(refused.downcast_ref(), Some(TableMisuse::OtherTypes { .. })))
        );
    }
    let db = reopened(&storage);
    let refused = db.durable_array("array", 4, |_| 0u64).unwrap_err();
    assert!(refused.to_string().contains("5 elements"), "{refused}");
}

#[test]
fn an_array_may_be_longer_than_a_record_of_the_log() {
    let storage = Arc::new(Faulty::new(1));
    // Together 70 MiB; a record has 64 at most.
    let (length, long) = (350, "x".repeat(200 << 10));
    for checkpoint in [true, false] {
        let db = reopened(&storage);
        let texts = db.durable_array("texts", length, |_| long.clone()).unwrap();
        let last = db.transact(|tx| texts.get(tx, length - 1)).unwrap();
        assert_eq!(last.len(), long.len());
        if checkpoint {
            db.checkpoint().unwrap();
        }
    }
}

#[test]
fn objects_of_other_kinds_and_types_are_refused() {
    let storage = Arc::new(Faulty::new(1));
    let db = reopened(&storage);
    db.durable_box("box", 1u64).unwrap();
    db.table::<u64, u64>("table").create().unwrap();
    let refuse = |db: &Database<Occ>, again: bool| {
        let refused = [
            db.durable_box("box", 1i32).map(drop).unwrap_err(),
            db.durable_counter("box", 1).map(drop).unwrap_err(),
            db.durable_array("box", 1, |_| 1u64).map(drop).unwrap_err(),
            db.durable_box("table", 1u64).map(drop).unwrap_err(),
        ];
        for refused in refused {
            let is_refused = match again {
                false => matches!(refused.downcast_ref(), Some(TableMisuse::OtherTypes { .. })),
                true => matches!(refused.downcast_ref(), Some(TableMisuse::OtherSchema { .. })),
            };
            assert!(is_refused, "{refused}, again: {again}");
        }
    };
    refuse(&db, false);
    let taken = db.table::<u64, u64>("box").create().unwrap_err();
    assert!(matches!(taken.downcast_ref(), Some(TableMisuse::NameTaken { .. })), "{taken}");
    drop(db);
    let db = reopened(&storage);
    refuse(&db, true);
    let other = db.table::<u64, u64>("box").create().unwrap_err();
    assert!(other.to_string().contains("its kind: table was box"), "{other}");
}

#[test]
fn a_change_at_the_commit_runs_once_and_the_log_has_what_memory_has() {
    for_each_protocol!(1, |P| {
        let storage = Arc::new(Faulty::new(1));
        let calls = Arc::new(AtomicU64::new(100));
        let seen = |db: &Database<P>| {
            let rows = db.table::<u64, u64>("rows").create().unwrap();
            let texts = db.table::<u64, String>("texts").create().unwrap();
            let (number, counter) =
                (db.durable_box("box", 0_u64).unwrap(), db.durable_counter("counter", 0).unwrap());
            (rows, texts, number, counter)
        };
        let db: Database<P> = open(storage.clone(), Mode::Group);
        let (rows, texts, number, counter) = seen(&db);
        rows.bulk_insert([(1, 0)]).unwrap();
        texts.bulk_insert([(1, String::new())]).unwrap();
        let next = || {
            let calls = calls.clone();
            move || calls.fetch_add(1, Ordering::Relaxed)
        };
        let changed = db.transact(|tx| {
            let (row, text, value) = (next(), next(), next());
            rows.apply(tx, &1, move |present| *present = row())?;
            texts.apply(tx, &1, move |present| *present = text().to_string())?;
            counter.add(tx, 1)?;
            number.apply(tx, move |present| *present = value())
        });
        assert_eq!((changed, calls.load(Ordering::Relaxed)), (Ok(()), 103), "each has run once");
        // Nothing of one that panics is logged, or seen.
        let panicked = db.transact(|tx| {
            rows.add(tx, &1, Column::whole(), 1)?;
            counter.add(tx, 1)?;
            texts.apply(tx, &1, |_| panic!("at the commit"))
        });
        assert!(matches!(panicked, Err(Error::Panicked { .. })), "{panicked:?}");
        let overflow = db.transact(|tx| {
            counter.add(tx, 1)?;
            rows.add(tx, &1, Column::whole(), u64::MAX)
        });
        assert!(overflow.unwrap_err().downcast_ref::<Overflow>().is_some());
        let all =
            db.transact(|tx| Ok((rows.get(tx, &1)?, texts.get(tx, &1)?, number.get(tx)?, counter.get(tx)?)));
        let before = all.unwrap();
        drop((rows, texts, number, counter, db));
        let db: Database<P> = open(storage, Mode::Group);
        let (rows, texts, number, counter) = seen(&db);
        let after =
            db.transact(|tx| Ok((rows.get(tx, &1)?, texts.get(tx, &1)?, number.get(tx)?, counter.get(tx)?)));
        assert_eq!(after, Ok(before.clone()));
        assert_eq!(before.3, 1);
    });
}

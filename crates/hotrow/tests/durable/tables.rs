//! Names, types and shapes of durable tables; tickets, checkpoints and backups.

use crate::ledger::{Ledger, nothing_acknowledged};
use crate::power::open;
use crate::support::{choose, for_each_protocol};
use hotrow::durable::storage::Faulty;
use hotrow::durable::{CheckpointError, DurableBuilder, DurableDatabase, Mode, OpenError};
use hotrow::sync::atomic::{AtomicBool, Ordering};
use hotrow::sync::thread;
use hotrow::{Database, Durability, Error, Occ, Profile, Protocol, Stored, TableMisuse, Value, column_of};
use std::future::IntoFuture;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

fn reopened<P: Protocol>(storage: &Arc<Faulty>) -> Database<P> {
    choose(P::VARIANTS[0].name);
    open(storage.clone(), Mode::Group)
}

#[test]
fn settings_of_a_log_without_a_place_for_it_are_refused() {
    let refused = Database::builder().checkpoint_after(1 << 20).open().unwrap_err();
    let Error::Misuse(misuse) = &refused else { panic!("{refused:?}") };
    assert_eq!(misuse.downcast_ref(), Some(&TableMisuse::NoPlaceForLog));
    assert!(refused.to_string().contains("open_at"), "{refused}");
}

#[test]
fn other_types_are_refused_before_anything_is_read() {
    let storage = Arc::new(Faulty::new(1));
    let db: Database<Occ> = reopened(&storage);
    let rows = db.table::<u64, (u32, String)>("rows").create().unwrap();
    db.transact(|tx| rows.insert(tx, 1, (2, "three".into()))).unwrap();
    drop((rows, db));
    let db: Database<Occ> = reopened(&storage);
    let refused = db.table::<u64, (u64, String)>("rows").create().unwrap_err();
    assert!(
        matches!(refused.downcast_ref(), Some(TableMisuse::OtherSchema { name, .. }) if name == "rows"),
        "{refused}"
    );
    assert!(refused.to_string().contains("row.0: u64 was u32"), "{refused}");
    assert!(db.table::<u32, (u32, String)>("rows").create().is_err());
    let rows = db.table::<u64, (u32, String)>("rows").hash(1).create().unwrap();
    assert_eq!(db.transact(|tx| rows.get(tx, &1)).unwrap(), Some((2, "three".to_owned())));
    assert!(
        db.table::<u64, (u32, String)>("rows")
            .create()
            .is_err_and(|refused| matches!(refused.downcast_ref(), Some(TableMisuse::NameTaken { .. })))
    );
}

#[test]
fn tables_that_the_program_does_not_make_keep_their_rows() {
    let storage = Arc::new(Faulty::new(1));
    for round in 0..3u64 {
        let db: Database<Occ> = reopened(&storage);
        let other = db.table::<u64, u64>("other").create().unwrap();
        if round == 0 {
            let rows = db.table::<u64, Counted>("rows").create().unwrap();
            db.transact(|tx| rows.insert(tx, 1, Counted { name: 7, count: 0 })).unwrap();
            db.transact(|tx| rows.add(tx, &1, column_of!(Counted, count), 5)).unwrap();
        }
        db.transact(|tx| other.insert(tx, round, round)).unwrap();
        db.checkpoint().unwrap();
    }
    let db: Database<Occ> = reopened(&storage);
    let rows = db.table::<u64, Counted>("rows").create().unwrap();
    assert_eq!(db.transact(|tx| rows.get(tx, &1)).unwrap(), Some(Counted { name: 7, count: 5 }));
}

#[test]
fn a_checkpoint_keeps_changes_of_rows_that_the_program_does_not_read() {
    let storage = Arc::new(Faulty::new(1));
    let db: Database<Occ> = reopened(&storage);
    let rows = db.table::<u64, Counted>("rows").create().unwrap();
    db.transact(|tx| rows.insert(tx, 1, Counted { name: 7, count: 0 })).unwrap();
    db.transact(|tx| rows.add(tx, &1, column_of!(Counted, count), 500)).unwrap();
    drop((rows, db));
    let db: Database<Occ> = reopened(&storage);
    db.checkpoint().unwrap();
    drop(db);
    let db: Database<Occ> = reopened(&storage);
    let rows = db.table::<u64, Counted>("rows").create().unwrap();
    assert_eq!(db.transact(|tx| rows.get(tx, &1)).unwrap(), Some(Counted { name: 7, count: 500 }));
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Value, Stored)]
#[value(inline)]
struct Counted {
    name: u64,
    #[value(group = "count")]
    count: u64,
}

/// As [`Counted`], without groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Value, Stored)]
#[value(inline)]
struct Plain {
    name: u64,
    count: u64,
}

#[test]
fn column_groups_may_be_changed() {
    let storage = Arc::new(Faulty::new(1));
    let db: Database<Occ> = reopened(&storage);
    let rows = db.table::<u64, Counted>("rows").create().unwrap();
    db.transact(|tx| rows.insert(tx, 1, Counted { name: 7, count: 0 })).unwrap();
    db.transact(|tx| rows.add(tx, &1, column_of!(Counted, count), 5)).unwrap();
    drop((rows, db));
    let db: Database<Occ> = reopened(&storage);
    let rows = db.table::<u64, Plain>("rows").create().unwrap();
    assert_eq!(db.transact(|tx| rows.get(tx, &1)).unwrap(), Some(Plain { name: 7, count: 5 }));
}

#[test]
fn a_change_logs_the_fields_that_it_changes() {
    let storage = Arc::new(Faulty::new(1));
    let db: Database<Occ> = reopened(&storage);
    let rows = db.table::<u64, String>("whole").create().unwrap();
    let fields = db.table::<u64, Plain>("fields").create().unwrap();
    db.transact(|tx| {
        rows.insert(tx, 1, "x".repeat(4_000))?;
        fields.insert(tx, 1, Plain { name: u64::MAX, count: 0 })
    })
    .unwrap();
    let bytes_of = |change: &dyn Fn()| {
        db.flush().unwrap();
        let before = db.log_report().unwrap().bytes_written;
        change();
        db.flush().unwrap();
        db.log_report().unwrap().bytes_written - before
    };
    let whole = bytes_of(&|| db.transact(|tx| rows.update(tx, &1, |row| row.push('y'))).unwrap());
    let field = bytes_of(&|| db.transact(|tx| fields.update(tx, &1, |row| row.count = 1)).unwrap());
    let nothing = bytes_of(&|| db.transact(|tx| fields.update(tx, &1, |row| row.count = 1)).unwrap());
    assert!(nothing < field && field < whole, "{nothing} {field} {whole}");
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Value, Stored)]
#[value(inline)]
struct Noted {
    #[value(group = "account")]
    count: u64,
    #[value(group = "account")]
    note: [u64; 200],
}

#[test]
fn a_change_of_a_column_group_logs_the_columns_that_it_changes() {
    for_each_protocol!(1, |P| {
        let storage = Arc::new(Faulty::new(1));
        let db: Database<P> = reopened(&storage);
        let rows = db.table::<u64, Noted>("rows").create().unwrap();
        let note = [u64::MAX; 200];
        db.transact(|tx| rows.insert(tx, 1, Noted { count: 0, note })).unwrap();
        let bytes_of = |change: &dyn Fn(&mut Noted)| {
            db.flush().unwrap();
            let before = db.log_report().unwrap().bytes_written;
            db.transact(|tx| rows.update(tx, &1, |row| change(row))).unwrap();
            db.flush().unwrap();
            db.log_report().unwrap().bytes_written - before
        };
        assert!(bytes_of(&|row| row.count += 1) < 1_000);
        assert!(bytes_of(&|row| row.note[0] = 1) > 1_000);
        drop((rows, db));
        let db: Database<P> = reopened(&storage);
        let rows = db.table::<u64, Noted>("rows").create().unwrap();
        let mut found = db.transact(|tx| rows.get(tx, &1)).unwrap().unwrap();
        assert_eq!((found.count, std::mem::replace(&mut found.note[0], u64::MAX)), (1, 1));
        assert_eq!(found.note, note);
    });
}

/// Nobody looks at the column in the record, which is that of the insertion, and the log must not either.
#[test]
fn a_group_that_is_back_at_its_value_when_its_row_was_deleted_and_inserted_again_is_recovered() {
    for_each_protocol!(1, |P| {
        let storage = Arc::new(Faulty::new(1));
        let db: Database<P> = reopened(&storage);
        let rows = db.table::<u64, Counted>("rows").create().unwrap();
        db.transact(|tx| rows.insert(tx, 1, Counted { name: 7, count: 5 })).unwrap();
        db.transact(|tx| rows.add(tx, &1, column_of!(Counted, count), 2)).unwrap();
        db.transact(|tx| {
            rows.delete(tx, &1)?;
            rows.insert(tx, 1, Counted { name: 8, count: 9 })?;
            rows.update_columns(tx, &1, column_of!(Counted, count), |count| *count = 7)
        })
        .unwrap();
        let expected = Some(Counted { name: 8, count: 7 });
        assert_eq!(db.transact(|tx| rows.get(tx, &1)).unwrap(), expected);
        drop((rows, db));
        let db: Database<P> = reopened(&storage);
        let rows = db.table::<u64, Counted>("rows").create().unwrap();
        assert_eq!(db.transact(|tx| rows.get(tx, &1)).unwrap(), expected);
    });
}

#[test]
fn a_database_without_a_directory_has_tables_that_are_not_durable() {
    let db = Database::open().unwrap();
    let rows = db.table::<u64, u64>("rows").create().unwrap();
    let ((), ticket) = db.transact_with_ticket(|tx| rows.insert(tx, 1, 1)).unwrap();
    assert!(ticket.is_durable() && ticket.wait().is_ok());
    assert!(matches!(db.checkpoint(), Err(CheckpointError::NoLog)));
    assert!(db.flush().is_ok() && db.close().is_ok());
}

#[test]
fn a_ticket_is_waited_for_without_a_thread() {
    let storage = Arc::new(Faulty::new(1));
    let db: Database<Occ> = reopened(&storage);
    let rows = db.table::<u64, u64>("rows").create().unwrap();
    for number in 0..20 {
        let (seen, ticket) = db
            .transact_with_ticket(|tx| {
                rows.insert(tx, number, number)?;
                rows.get(tx, &number)
            })
            .unwrap();
        assert_eq!(seen, Some(number));
        let mut future = pin!(ticket.clone().into_future());
        let mut context = Context::from_waker(Waker::noop());
        while future.as_mut().poll(&mut context).is_pending() {
            thread::sleep(Duration::from_micros(50));
        }
        assert!(ticket.is_durable());
    }
    let mut done = pin!(db.ticket(0).into_future());
    assert_eq!(done.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(Ok(())));
}

#[test]
fn a_buffered_transaction_does_not_wait() {
    let storage = Arc::new(Faulty::new(1));
    let db: Database<Occ> = reopened(&storage);
    let rows = db.table::<u64, u64>("rows").create().unwrap();
    let mut worker = db.worker().unwrap();
    let profile = Profile { durability: Durability::Buffered, ..Profile::UNKNOWN };
    worker.try_transact_as(profile, |tx| rows.insert(tx, 1, 1)).unwrap();
    let before = worker.epoch();
    assert!(before > 0);
    // One that has read from it and asks for durability waits for both.
    assert_eq!(worker.transact(|tx| rows.get(tx, &1)).unwrap(), Some(1));
    assert!(db.durable_epoch() >= before);
}

#[test]
fn a_backup_of_a_running_database_is_one_state() {
    let storage = Arc::new(Faulty::new(1));
    let db: Database<Occ> = reopened(&storage);
    let ledger = Ledger::open(&db);
    let (acknowledged, must_end) = (nothing_acknowledged(2), AtomicBool::new(false));
    for round in 0..6 {
        let copy = Arc::new(Faulty::new(2));
        thread::scope(|scope| {
            let running = scope.spawn(|| ledger.run(round, &acknowledged, &must_end, &|_, _| ()));
            thread::sleep(Duration::from_millis(3));
            if round % 2 == 1 {
                db.checkpoint().unwrap();
            }
            let told: Vec<_> = acknowledged.iter().map(|last| last.load(Ordering::SeqCst)).collect();
            db.backup(&*copy).unwrap();
            must_end.store(true, Ordering::Relaxed);
            running.join().unwrap();
            let restored: Database<Occ> = reopened(&copy);
            Ledger::open(&restored).check(&told);
        });
        must_end.store(false, Ordering::Relaxed);
    }
}

#[test]
fn a_database_that_is_closed_and_dropped_can_be_opened_at_once() {
    let scratch = tempfile::tempdir().unwrap();
    for round in 0..20u64 {
        // Checkpoints all the time.
        let db = Database::builder().checkpoint_after(1).open_at(scratch.path()).unwrap();
        let rows = db.table::<u64, [u64; 8]>("rows").create().unwrap();
        let first = round * 2_000;
        rows.bulk_insert((first..first + 2_000).map(|key| (key, [round; 8]))).unwrap();
        thread::sleep(Duration::from_millis(40 + round));
        db.close().unwrap();
    }
    let db = Database::builder().open_at(scratch.path()).unwrap();
    let rows = db.table::<u64, [u64; 8]>("rows").create().unwrap();
    let count = db.with_worker(|worker| rows.for_each(worker, |_, _| ())).unwrap();
    assert_eq!(count, 40_000);
}

#[test]
fn one_process_at_a_time_has_a_directory() {
    let scratch = tempfile::tempdir().unwrap();
    let first = Database::builder().open_at(scratch.path()).unwrap();
    let second = Database::builder().open_at(scratch.path()).unwrap_err();
    assert!(second.to_string().contains(&*scratch.path().to_string_lossy()), "{second}");
    drop(first);
    assert!(Database::builder().open_at(scratch.path()).is_ok());
    let file = scratch.path().join("a file");
    std::fs::write(&file, "no database").unwrap();
    let refused = Database::builder().open_at(&file).unwrap_err();
    assert!(matches!(refused, OpenError::Directory { .. }), "{refused}");
    assert!(Database::builder().open_at(scratch.path().join("new")).is_ok());
}

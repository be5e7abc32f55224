//! Devices that fail, and rows that cannot be written.

use crate::ledger::{Acknowledged, Ledger, nothing_acknowledged, now};
use crate::power::{crashes, open, try_open};
use crate::support::choose;
use hotrow::durable::storage::{Fault, Faulty};
use hotrow::durable::{DurableDatabase, Mode};
use hotrow::stored::{Malformed, Reader, SchemaBuilder, Type, Writer};
use hotrow::sync::atomic::{AtomicBool, Ordering};
use hotrow::sync::thread;
use hotrow::{Database, Durability, Error, Misuse, NotDurable, Occ, Profile, Stored, Value};
use std::sync::Arc;

fn reopened(storage: &Arc<Faulty>) -> Database<Occ> {
    choose("occ");
    open(storage.clone(), Mode::Group)
}

/// Runs a ledger on a storage that fails from some operation on, and checks what is there when the storage works again.
fn fail(fault: Fault, after: u64, seed: u64) {
    let storage = Arc::new(Faulty::new(seed));
    let db = reopened(&storage);
    let ledger = Ledger::open(&db);
    storage.plan(storage.operations() + after, fault);
    let (acknowledged, must_end) = (nothing_acknowledged(2), AtomicBool::new(false));
    // Ends by itself when the log fails.
    ledger.run(seed, &acknowledged, &must_end, &|thread, number| {
        if thread == 0 && number > 150 {
            must_end.store(true, Ordering::Relaxed);
        }
    });
    let sequence = db.table::<u8, u64>("sequence").open().unwrap();
    if !must_end.into_inner() {
        match db.transact(|tx| sequence.update(tx, &0, |number| *number += 1)) {
            Err(Error::NotDurable(NotDurable { has_committed: false, reason })) => {
                assert!(!reason.is_empty());
            }
            other => panic!("{fault:?}: {other:?}"),
        }
        assert!(db.flush().is_err() && db.checkpoint().is_err());
    }
    // Rows in memory can still be read, but nobody is told of them as if they were durable.
    let profile = Profile { durability: Durability::Buffered, ..Profile::READ_ONLY };
    let mut worker = db.worker().unwrap();
    assert!(worker.try_transact_as::<_, hotrow::Abort>(profile, |tx| sequence.get(tx, &0)).is_ok());
    drop((worker, sequence, ledger, db));
    let after = Arc::new(storage.power_loss(seed));
    Ledger::open(&reopened(&after)).check(&now(&acknowledged));
}

#[test]
fn a_write_that_fails_ends_all_acknowledgements() {
    for seed in 0..crashes(16) {
        for fault in [Fault::Error(std::io::ErrorKind::Other), Fault::Broken, Fault::Short] {
            fail(fault, 3 + seed * 5 % 97, seed);
        }
    }
}

/// Runs a ledger for a few transactions, with tables that are loaded and dropped, and checkpoints, beside it. Ends early if the storage fails.
fn run_a_little(storage: &Arc<Faulty>, acknowledged: &Acknowledged, seed: u64) {
    choose("occ");
    let db: Database<Occ> = match try_open(storage.clone(), Mode::Group) {
        Ok(db) => db,
        Err(error) => return assert!(!error.to_string().contains("is corrupt at byte"), "{error}"),
    };
    let Ok(ledger) = Ledger::try_open(&db) else { return };
    let (must_end, begun) = (AtomicBool::new(false), now(acknowledged));
    let end = || must_end.store(true, Ordering::Relaxed);
    thread::scope(|scope| {
        scope.spawn(|| ledger.load_beside(&must_end));
        scope.spawn(|| while !must_end.load(Ordering::Relaxed) && db.checkpoint().is_ok() {});
        ledger.run(seed, acknowledged, &must_end, &|thread, number| {
            if number >= begun[thread as usize] + 4 {
                end();
            }
        });
        end();
    });
}

#[test]
fn each_operation_of_a_run_fails_once_and_nothing_acknowledged_is_lost() {
    let faults = [Fault::Error(std::io::ErrorKind::Other), Fault::Broken, Fault::Short];
    for (fault, first) in faults.into_iter().zip(1..) {
        // Each of them, if more crashes are asked for than usual.
        for operation in (first..).step_by(8 / crashes(1).min(8) as usize) {
            let storage = Arc::new(Faulty::new(operation));
            storage.plan(operation, fault);
            let acknowledged = nothing_acknowledged(2);
            for _ in 0..2 {
                run_a_little(&storage, &acknowledged, operation);
                if storage.operations() >= operation {
                    // The process has gone, and the next one begins.
                    storage.repair();
                }
            }
            let is_over = storage.operations() < operation;
            let after = Arc::new(storage.power_loss(operation));
            let db = reopened(&after);
            Ledger::open(&db).check(&now(&acknowledged));
            if is_over {
                assert!(operation > 100, "{fault:?}: only {operation} operations");
                break;
            }
        }
    }
}

#[test]
fn a_full_disk_loses_nothing_acknowledged() {
    for seed in 0..crashes(12) {
        let storage = Arc::new(Faulty::new(seed));
        let db = reopened(&storage);
        let ledger = Ledger::open(&db);
        let used: usize = storage.files().values().map(Vec::len).sum();
        storage.set_capacity(Some(used as u64 + 40_000 + seed * 700));
        let (acknowledged, must_end) = (nothing_acknowledged(2), AtomicBool::new(false));
        ledger.run(seed, &acknowledged, &must_end, &|_, _| ());
        let error = db.flush().unwrap_err();
        assert!(error.to_string().contains("space"), "{error}");
        drop((ledger, db));
        // Somebody has made room.
        storage.set_capacity(None);
        let db = reopened(&storage);
        Ledger::open(&db).check(&now(&acknowledged));
    }
}

/// A row that refuses to be written, or panics.
#[derive(Debug, Clone, PartialEq, Eq, Value)]
struct Shy {
    mood: u8,
}

impl Stored for Shy {
    fn schema(types: &mut SchemaBuilder) -> Type {
        u8::schema(types)
    }

    fn put(&self, to: &mut Writer<'_>) {
        match self.mood {
            1 => to.refuse("not today"),
            2 => panic!("users' code"),
            mood => mood.put(to),
        }
    }

    fn get(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self { mood: u8::get(from)? })
    }
}

#[test]
fn a_row_that_cannot_be_written_is_refused_before_anything_is_installed() {
    let storage = Arc::new(Faulty::new(1));
    let db = reopened(&storage);
    let rows = db.table::<u64, Shy>("rows").create().unwrap();
    db.transact(|tx| rows.insert(tx, 1, Shy { mood: 0 })).unwrap();
    let change = |mood| db.transact(|tx| rows.update(tx, &1, |row| row.mood = mood));
    let refused = change(1).unwrap_err();
    assert!(matches!(&refused, Error::Misuse(Misuse::Unsupported(_))), "{refused}");
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| change(2)));
    assert!(panicked.is_err());
    assert_eq!(db.transact(|tx| rows.get(tx, &1)), Ok(Some(Shy { mood: 0 })));
    assert!(rows.bulk_insert([(2, Shy { mood: 1 })]).is_err());
    change(3).unwrap();
    db.checkpoint().unwrap();
}

#[test]
fn a_database_that_is_closed_takes_no_writes() {
    let storage = Arc::new(Faulty::new(1));
    let db = reopened(&storage);
    let rows = db.table::<u64, u64>("rows").create().unwrap();
    db.transact(|tx| rows.insert(tx, 1, 1)).unwrap();
    db.close().unwrap();
    let refused = db.transact(|tx| rows.insert(tx, 2, 2)).unwrap_err();
    assert!(matches!(&refused, Error::NotDurable(NotDurable { has_committed: false, .. })), "{refused}");
    assert!(!refused.is_retryable());
    let again = reopened(&storage);
    let found = again.table::<u64, u64>("rows").create().unwrap();
    assert_eq!(again.transact(|tx| Ok((found.get(tx, &1)?, found.get(tx, &2)?))), Ok((Some(1), None)));
}

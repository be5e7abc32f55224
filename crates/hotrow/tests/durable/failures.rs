//! Devices that fail, and rows that cannot be written.

use crate::ledger::{Ledger, nothing_acknowledged, now};
use crate::power::{crashes, open};
use crate::support::choose;
use hotrow::durable::Mode;
use hotrow::durable::storage::{Fault, Faulty};
use hotrow::stored::{Malformed, Reader, SchemaBuilder, Type, Writer};
use hotrow::sync::atomic::AtomicBool;
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
            must_end.store(true, hotrow::sync::atomic::Ordering::Relaxed);
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

//! Databases whose types the program does not know.

use hotrow::durable::storage::Faulty;
use hotrow::durable::structures::{Structure, Structures, StructuresWriter, TABLE};
use hotrow::durable::{DurableBuilder, DurableDatabase};
use hotrow::protocols::Occ;
use hotrow::stored::{Schema, Writer};
use hotrow::{Database, Stored};
use std::sync::Arc;

fn bytes<T: Stored>(value: T) -> Vec<u8> {
    let mut bytes = Vec::new();
    Writer::write(&mut bytes, |to| value.put(to)).unwrap();
    bytes
}

fn accounts() -> Structure {
    let (key, row) = (Schema::of::<String>(), Schema::of::<i64>());
    Structure { name: "accounts".into(), kind: TABLE.into(), key, row }
}

fn step(writer: &mut StructuresWriter, name: &str, balance: i64) {
    let (key, row) = (bytes(name.to_owned()), bytes(balance));
    writer.step([(1, &*key, &*row)], name.as_bytes()).unwrap();
}

#[test]
fn a_writing_goes_on_behind_the_last_step_that_has_survived() {
    let storage = Arc::new(Faulty::new(1));
    let (mut writer, bookmark) = StructuresWriter::open(storage.clone()).unwrap();
    assert_eq!(bookmark, None);
    writer.enter(1, &accounts()).unwrap();
    step(&mut writer, "ada", 1);
    step(&mut writer, "bob", 2);
    writer.flush().unwrap();

    let storage = Arc::new(storage.power_loss(3));
    let (mut writer, bookmark) = StructuresWriter::open(storage.clone()).unwrap();
    assert_eq!(bookmark.as_deref(), Some(&b"bob"[..]));
    writer.enter(1, &accounts()).unwrap();
    step(&mut writer, "cleo", 3);
    writer.end().unwrap();

    let database: Database<Occ> = Database::builder().open_in(storage.clone()).unwrap();
    let table = database.table::<String, i64>("accounts").create().unwrap();
    let balances = ["ada", "bob", "cleo"].map(|name| database.transact(|tx| table.get(tx, name)).unwrap());
    assert_eq!(balances, [Some(1), Some(2), Some(3)]);
    database.close().unwrap();
    drop((table, database));
    assert!(StructuresWriter::open(storage).unwrap_err().to_string().contains("has a database"));
}

#[test]
fn structures_are_read_with_their_newest_fields_and_without_types() {
    let storage = Arc::new(Faulty::new(1));
    let database: Database<Occ> = Database::builder().open_in(storage.clone()).unwrap();
    let table = database.table::<u32, (u64, String)>("pairs").create().unwrap();
    database.transact(|tx| table.insert(tx, 7, (1, "one".into()))).unwrap();
    database.transact(|tx| table.update(tx, &7, |row| row.0 = 2)).unwrap();
    let limit = database.durable_box("limit", 5u64).unwrap();
    database.close().unwrap();
    drop((table, limit, database));

    let structures = Structures::read(storage, &|_| ()).unwrap();
    let kinds: Vec<_> = structures.list().map(|one| (&*one.name, &*one.kind)).collect();
    assert_eq!(kinds, [("limit", "box"), ("pairs", TABLE)]);
    let mut rows = Vec::new();
    structures
        .for_each_row(1, |key, row| {
            rows.push((key.to_vec(), row.to_vec()));
            Ok::<_, String>(())
        })
        .unwrap();
    assert_eq!(rows, [(bytes(7u32), bytes((2u64, "one".to_owned())))]);
}

//! Types that change from one version of a program to the next: what is refused, what is converted, what is migrated.

use crate::power::open;
use crate::support::{choose, for_each_protocol};
use hotrow::durable::storage::{Fault, Faulty};
use hotrow::durable::{DurableBuilder, DurableDatabase, Mode, OpenError};
use hotrow::stored::AsText;
use hotrow::{Database, Misuse, Occ, Protocol, Stored, TableMisuse, Value, column_of};
use std::num::NonZero;
use std::sync::Arc;

/// Declares types of the same name, one after the other, in modules of their own.
macro_rules! versions {
    ($($version:ident { $($(#[$attribute:meta])* $kind:ident $name:ident { $($content:tt)* })+ })+) => {$(
        mod $version {
            use super::*;
            $(
                #[derive(Debug, Clone, PartialEq, Value, Stored)]
                $(#[$attribute])*
                pub(super) $kind $name { $($content)* }
            )+
        }
    )+};
}

versions! {
    one {
        #[value(inline)]
        #[derive(Copy)]
        struct Account {
            pub name: u64,
            #[value(group = "balance")]
            pub balance: i64,
        }
        enum State { New, Paid(u32) }
    }
    two {
        #[value(inline)]
        #[derive(Copy)]
        struct Account {
            #[stored(default = 77)]
            pub branch: u64,
            #[stored(alias = "name")]
            pub number: u64,
            #[value(group = "balance")]
            pub balance: i64,
        }
        enum State { New, Paid(u32), Lost }
    }
    three {
        struct Account {
            pub branch: u64,
            #[stored(default)]
            pub notes: Vec<String>,
            #[stored(alias = "name")]
            pub number: u64,
            pub balance: i64,
        }
        enum State { New, Paid(i32) }
    }
}

fn reopened<P: Protocol>(storage: &Arc<Faulty>) -> Database<P> {
    choose(P::VARIANTS[0].name);
    open(storage.clone(), Mode::Group)
}

/// A directory with accounts of the first version: some in a checkpoint, some behind it, and newer fields of both.
fn first_version<P: Protocol>() -> Arc<Faulty> {
    let storage = Arc::new(Faulty::new(1));
    let db: Database<P> = reopened(&storage);
    let rows = db.table::<u64, one::Account>("accounts").create().unwrap();
    let insert =
        |number| db.transact(|tx| rows.insert(tx, number, one::Account { name: number, balance: 1 }));
    let add =
        |number| db.transact(|tx| rows.add(tx, &number, column_of!(one::Account, balance), number as i64));
    (0..20).for_each(|number| insert(number).unwrap());
    (0..10).for_each(|number| add(number).unwrap());
    db.checkpoint().unwrap();
    (20..40).for_each(|number| insert(number).unwrap());
    (10..30).for_each(|number| add(number).unwrap());
    db.transact(|tx| rows.delete(tx, &39)).unwrap();
    storage
}

fn balance(number: u64) -> i64 {
    if number < 30 { 1 + number as i64 } else { 1 }
}

fn numbers() -> std::ops::Range<u64> {
    0..39
}

#[test]
fn earlier_rows_and_newer_fields_of_them_are_read_as_the_present_type() {
    for_each_protocol!(1, |P| {
        let storage = first_version::<P>();
        for round in 0..3 {
            let db: Database<P> = reopened(&storage);
            let rows = db.table::<u64, two::Account>("accounts").create().unwrap();
            for number in numbers() {
                let found = db.transact(|tx| rows.get(tx, &number)).unwrap();
                let balance = balance(number) + round;
                assert_eq!(found, Some(two::Account { branch: 77, number, balance }));
                db.transact(|tx| rows.add(tx, &number, column_of!(two::Account, balance), 1)).unwrap();
            }
            assert_eq!(db.transact(|tx| rows.count(tx, ..)).unwrap(), 39);
            if round == 1 {
                db.checkpoint().unwrap();
            }
        }
        // The next version follows the second, and not the first. It is not inline.
        let db: Database<P> = reopened(&storage);
        let rows = db.table::<u64, three::Account>("accounts").create().unwrap();
        let found = db.transact(|tx| rows.get(tx, &5)).unwrap();
        assert_eq!(found, Some(three::Account { branch: 77, notes: vec![], number: 5, balance: 9 }));
        drop((rows, db));
        let db: Database<P> = reopened(&storage);
        let earlier = db.table::<u64, two::Account>("accounts").create().unwrap_err();
        assert!(earlier.to_string().contains("row.notes"), "{earlier}");
    });
}

#[test]
fn other_changes_are_refused_before_any_row_is_read() {
    let storage = Arc::new(Faulty::new(1));
    let db: Database<Occ> = reopened(&storage);
    let states = db.table::<u64, one::State>("states").create().unwrap();
    db.transact(|tx| states.insert(tx, 1, one::State::Paid(7))).unwrap();
    drop((states, db));
    let files = storage.files();
    let db: Database<Occ> = reopened(&storage);
    let refused = db.table::<u64, three::State>("states").create().unwrap_err();
    assert!(
        matches!(refused.downcast_ref(), Some(TableMisuse::OtherSchema { name, .. }) if name == "states")
    );
    let words = "the rows of states were written with other types, row.Paid.0: i32 was u32";
    assert!(refused.to_string().starts_with(words), "{refused}");
    let refused = db.table::<i64, one::State>("states").create().unwrap_err();
    assert!(refused.to_string().contains("key: i64 was u64"), "{refused}");
    drop(db);
    assert_eq!(files["catalog"], storage.files()["catalog"]);
    // A variant at the end is safe, and its way back is not.
    let db: Database<Occ> = reopened(&storage);
    let states = db.table::<u64, two::State>("states").create().unwrap();
    assert_eq!(db.transact(|tx| states.get(tx, &1)).unwrap(), Some(two::State::Paid(7)));
    db.transact(|tx| states.insert(tx, 2, two::State::Lost)).unwrap();
    drop((states, db));
    let db: Database<Occ> = reopened(&storage);
    let refused = db.table::<u64, one::State>("states").create().unwrap_err();
    assert!(refused.to_string().contains("row.Lost: it is gone"), "{refused}");
}

/// Runs `change` on a copy of a directory, with a fault at each of its operations in turn, then loses power. `check` looks at what is left.
fn with_a_fault_at_each_operation(
    storage: &Faulty,
    change: &dyn Fn(&Arc<Faulty>) -> bool,
    check: &dyn Fn(&Arc<Faulty>, bool),
) -> u64 {
    let mut operation = 0;
    loop {
        operation += 1;
        let faulty = Arc::new(Faulty::with_files(operation, storage.files()));
        faulty.plan(operation, Fault::Broken);
        let has_succeeded = change(&faulty);
        let is_over = faulty.operations() < operation;
        for seed in 0..3 {
            check(&Arc::new(faulty.power_loss(seed)), has_succeeded);
        }
        if is_over {
            assert!(has_succeeded);
            return operation;
        }
    }
}

#[test]
fn a_crash_amid_a_conversion_leaves_the_earlier_rows_or_the_later_ones() {
    let open = |storage: &Arc<Faulty>| -> Result<Database<Occ>, OpenError> {
        choose("occ");
        Database::builder().variant("occ").open_in(storage.clone())
    };
    let change = |storage: &Arc<Faulty>| {
        let Ok(db) = open(storage) else { return false };
        let created = db.table::<u64, two::Account>("accounts").create();
        created.is_ok() && db.close().is_ok()
    };
    let earlier = std::cell::Cell::new(0);
    let check = |storage: &Arc<Faulty>, has_succeeded: bool| {
        let db = open(storage).unwrap();
        match db.table::<u64, one::Account>("accounts").create() {
            Ok(rows) => {
                assert!(!has_succeeded);
                earlier.set(earlier.get() + 1);
                assert_eq!(db.transact(|tx| rows.count(tx, ..)).unwrap(), 39);
                for number in numbers() {
                    let found = db.transact(|tx| rows.get(tx, &number)).unwrap();
                    assert_eq!(found, Some(one::Account { name: number, balance: balance(number) }));
                }
            }
            Err(refused) if matches!(refused.downcast_ref(), Some(TableMisuse::OtherSchema { .. })) => {}
            Err(other) => panic!("{other}"),
        }
        drop(db);
        let db = open(storage).unwrap();
        let rows = db.table::<u64, two::Account>("accounts").create().unwrap();
        assert_eq!(db.transact(|tx| rows.count(tx, ..)).unwrap(), 39);
        for number in numbers() {
            let found = db.transact(|tx| rows.get(tx, &number)).unwrap();
            assert_eq!(found, Some(two::Account { branch: 77, number, balance: balance(number) }));
        }
    };
    let operations = with_a_fault_at_each_operation(&first_version::<Occ>(), &change, &check);
    assert!(
        operations > 10 && earlier.get() > 5,
        "{operations} operations, {earlier:?} times the earlier rows"
    );
}

#[derive(Debug, Clone, PartialEq, Value, Stored)]
struct Euros {
    name: String,
    balance: f64,
}

fn migrated(db: &Database<impl Protocol>) -> Result<(), Misuse> {
    let rows = db
        .table::<String, Euros>("accounts")
        .migrate_from(|key: u64, old: one::Account| match old.balance {
            0.. => Ok((
                key.to_string(),
                Euros { name: old.name.to_string(), balance: old.balance as f64 / 100.0 },
            )),
            debt => Err(format!("a debt of {debt}")),
        })
        .create()?;
    for number in numbers() {
        let found = db.transact(|tx| rows.get(tx, &number.to_string()[..])).unwrap();
        let (name, balance) = (number.to_string(), balance(number) as f64 / 100.0);
        assert_eq!(found, Some(Euros { name, balance }));
    }
    assert_eq!(db.transact(|tx| rows.count(tx, ..)).unwrap(), 39);
    Ok(())
}

#[test]
fn a_migration_reads_the_rows_of_the_earlier_type() {
    for_each_protocol!(1, |P| {
        let storage = first_version::<P>();
        for _ in 0..3 {
            let db: Database<P> = reopened(&storage);
            migrated(&db).unwrap();
            db.checkpoint().unwrap();
        }
        let db: Database<P> = reopened(&storage);
        assert!(
            db.table::<u64, one::Account>("accounts").create().is_err_and(|refused| matches!(
                refused.downcast_ref(),
                Some(TableMisuse::OtherSchema { .. })
            ))
        );
    });
}

#[test]
fn a_migration_that_fails_leaves_the_earlier_rows() {
    let storage = first_version::<Occ>();
    let db: Database<Occ> = reopened(&storage);
    let rows = db.table::<u64, one::Account>("accounts").create().unwrap();
    db.transact(|tx| rows.update(tx, &7, |row| row.balance = -5)).unwrap();
    drop((rows, db));
    let db: Database<Occ> = reopened(&storage);
    let refused = migrated(&db).unwrap_err();
    assert_eq!(refused.to_string(), "accounts: row 7 cannot be migrated: a debt of -5");
    // In the same run.
    let rows = db.table::<u64, one::Account>("accounts").create().unwrap();
    assert_eq!(db.transact(|tx| rows.get(tx, &7)).unwrap(), Some(one::Account { name: 7, balance: -5 }));
    db.transact(|tx| rows.update(tx, &7, |row| row.balance = balance(7))).unwrap();
    drop((rows, db));
    migrated(&reopened::<Occ>(&storage)).unwrap();
}

#[test]
fn a_crash_amid_a_migration_leaves_all_earlier_rows_or_all_later_ones() {
    let open = |storage: &Arc<Faulty>| -> Result<Database<Occ>, OpenError> {
        choose("occ");
        Database::builder().variant("occ").open_in(storage.clone())
    };
    let change =
        |storage: &Arc<Faulty>| open(storage).is_ok_and(|db| migrated(&db).is_ok() && db.close().is_ok());
    let check = |storage: &Arc<Faulty>, has_succeeded: bool| {
        let db = open(storage).unwrap();
        if let Ok(rows) = db.table::<u64, one::Account>("accounts").create() {
            assert!(!has_succeeded);
            assert_eq!(db.transact(|tx| rows.count(tx, ..)).unwrap(), 39);
        }
        drop(db);
        migrated(&open(storage).unwrap()).unwrap();
    };
    assert!(with_a_fault_at_each_operation(&first_version::<Occ>(), &change, &check) > 10);
}

#[test]
fn objects_are_converted_as_rows_are() {
    let storage = Arc::new(Faulty::new(1));
    let db: Database<Occ> = reopened(&storage);
    let array = db.durable_array("array", 3, |at| one::Account { name: at as u64, balance: 5 }).unwrap();
    db.transact(|tx| array.update(tx, 1, |account| account.balance = 9)).unwrap();
    drop((array, db));
    for _ in 0..3 {
        let db: Database<Occ> = reopened(&storage);
        let new = two::Account { branch: 1, number: 1, balance: 1 };
        let array = db.durable_array("array", 4, |_| new).unwrap();
        let all: Vec<_> = (0..4).map(|at| db.transact(|tx| array.get(tx, at)).unwrap()).collect();
        let old = |number, balance| two::Account { branch: 77, number, balance };
        assert_eq!(all, [old(0, 5), old(1, 9), old(2, 5), new]);
        db.checkpoint().unwrap();
    }
}

/// All that a program may have in a row.
#[derive(Debug, Clone, PartialEq, Value, Stored)]
struct Everything {
    id: NonZero<u32>,
    parent: Option<Box<Everything>>,
    children: Vec<Everything>,
    #[stored(with = "AsText")]
    json: serde_json::Value,
    at: std::time::SystemTime,
}

#[test]
fn rows_with_what_refuses_zeros_with_recursion_and_with_foreign_types_are_durable() {
    let leaf = Everything {
        id: NonZero::<u32>::MIN,
        parent: None,
        children: vec![],
        json: serde_json::json!({"a": [1, null, "b"]}),
        at: std::time::SystemTime::UNIX_EPOCH,
    };
    let row = Everything {
        parent: Some(Box::new(leaf.clone())),
        children: vec![leaf.clone(), leaf.clone()],
        ..leaf
    };
    let storage = Arc::new(Faulty::new(1));
    let db: Database<Occ> = reopened(&storage);
    let rows = db.table::<u64, Everything>("rows").create().unwrap();
    db.transact(|tx| rows.insert(tx, 1, row.clone())).unwrap();
    drop((rows, db));
    let db: Database<Occ> = reopened(&storage);
    let rows = db.table::<u64, Everything>("rows").create().unwrap();
    assert_eq!(db.transact(|tx| rows.get(tx, &1)).unwrap(), Some(row));
}

/// A row that derives `Value` only.
#[derive(Debug, Clone, PartialEq, Value)]
struct Fleeting {
    number: u8,
}

#[test]
fn tables_are_durable_unless_they_say_otherwise() {
    let storage = Arc::new(Faulty::new(1));
    let db: Database<Occ> = reopened(&storage);
    let refused = db.table::<u64, Fleeting>("fleeting").create().unwrap_err();
    assert!(
        matches!(refused.downcast_ref(), Some(TableMisuse::NotStored { name, of }) if name == "fleeting" && of.ends_with("Fleeting"))
    );
    let refused = db.table::<u64, Vec<(u8, Option<Fleeting>)>>("fleeting").create().unwrap_err();
    assert!(refused.to_string().contains("derive `Stored` for it, or say `in_memory()`"), "{refused}");
    let fleeting = db.table::<u64, Fleeting>("fleeting").in_memory().create().unwrap();
    db.transact(|tx| fleeting.insert(tx, 1, Fleeting { number: 1 })).unwrap();
    let numbers = db.table::<u64, u64>("numbers").in_memory().create().unwrap();
    db.transact(|tx| numbers.insert(tx, 1, 1)).unwrap();
    drop((fleeting, numbers, db));
    let db: Database<Occ> = reopened(&storage);
    let numbers = db.table::<u64, u64>("numbers").create().unwrap();
    assert_eq!(db.transact(|tx| numbers.get(tx, &1)).unwrap(), None);
}

#[test]
fn nothing_is_durable_without_a_directory() {
    let db = Database::open().unwrap();
    db.table::<u64, Fleeting>("fleeting").create().unwrap();
    let refused = db.durable_box("box", 1u64).map(drop).unwrap_err();
    assert!(
        matches!(refused.downcast_ref(), Some(TableMisuse::NoDirectory { name }) if name == "box"),
        "{refused}"
    );
    assert!(db.durable_counter("counter", 1).is_err());
    assert!(db.durable_array("array", 3, |_| 1u8).is_err());
    assert!(db.durable_sequence("sequence", 1).is_err());
}

#[derive(Debug, Clone, PartialEq, Value, Stored)]
#[value(stored)]
struct Pair<T> {
    one: T,
    two: T,
}

#[test]
fn a_generic_row_is_durable_if_it_says_so() {
    let storage = Arc::new(Faulty::new(1));
    for round in 0..2 {
        let db: Database<Occ> = reopened(&storage);
        let rows = db.table::<u64, Pair<String>>("rows").create().unwrap();
        let found = db.transact(|tx| rows.get(tx, &1)).unwrap();
        let row = Pair { one: "a".into(), two: "b".into() };
        assert_eq!(found, (round > 0).then(|| row.clone()));
        db.transact(|tx| rows.upsert(tx, 1, row.clone())).unwrap();
    }
}

#[test]
fn a_column_of_a_row_that_was_loaded_is_logged() {
    for_each_protocol!(1, |P| {
        let storage = Arc::new(Faulty::new(1));
        let db: Database<P> = reopened(&storage);
        let loading = db.table::<u64, one::Account>("accounts").load().unwrap();
        loading.insert(1, one::Account { name: 1, balance: 5 }).unwrap();
        let rows = loading.finish().unwrap();
        db.transact(|tx| rows.add(tx, &1, column_of!(one::Account, balance), 2)).unwrap();
        drop((rows, db));
        let db: Database<P> = reopened(&storage);
        let rows = db.table::<u64, one::Account>("accounts").create().unwrap();
        assert_eq!(db.transact(|tx| rows.get(tx, &1)).unwrap(), Some(one::Account { name: 1, balance: 7 }));
    });
}

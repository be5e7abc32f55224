//! Databases: tables by name, made at any time, and found again with their types.

use hotrow::protocols::names;
use hotrow::sync::thread;
use hotrow::{Database, DuplicateKey, Error, Misuse, RetryPolicy, TBox, Table, TableMisuse};
use std::time::Duration;

/// The state of a program: no type names a protocol.
#[derive(Debug, Clone)]
struct Shop {
    db: Database,
    stock: Table<String, u64>,
}

#[test]
fn state_that_holds_a_database_is_shared_cloned_and_shown() {
    fn is_shared<T: Send + Sync + Clone + 'static>(_: &T) {}
    let db = Database::open().unwrap();
    let stock = db.table("stock").create().unwrap();
    let shop = Shop { db, stock };
    is_shared(&shop);
    shop.stock.bulk_insert([("lamp".into(), 3)]).unwrap();
    let sold = shop.db.transact(|tx| shop.stock.update(tx, "lamp", |left| *left -= 1));
    assert_eq!(sold, Ok(()));
    let same = shop.clone();
    assert_eq!(same.db.transact(|tx| same.stock.get(tx, "lamp")), Ok(Some(2)));
    assert!(format!("{shop:?}").contains("\"stock\""), "{shop:?}");
}

#[test]
fn a_table_is_made_once_and_found_again_with_its_types() {
    let db = Database::open().unwrap();
    let mut builder = db.table::<u64, String>("people").hash(10);
    let by_name = builder.secondary("by_name", |_, name| name.clone());
    let first = builder.unique("by_first_letter", |_, name| name.chars().next());
    let people = builder.create().unwrap();
    db.transact(|tx| people.insert(tx, 1, "ada".into())).unwrap();

    let again = db.table::<u64, String>("people").open().unwrap();
    assert_eq!(db.transact(|tx| again.get(tx, &1)), Ok(Some("ada".into())));
    assert_eq!(db.index::<String, u64, String>("people.by_name").unwrap().name(), by_name.name());
    let same = db.unique_index::<Option<char>, u64, String>("people.by_first_letter").unwrap();
    assert_eq!(same.name(), first.name());
    assert_eq!(db.transact(|tx| same.get(tx, &Some('a'))), Ok(Some((1, "ada".into()))));
    let taken = db.transact(|tx| again.insert(tx, 2, "alf".into())).unwrap_err();
    assert!(taken.downcast_ref::<DuplicateKey>().is_some(), "{taken}");
    assert_eq!(db.names(), ["people", "people.by_first_letter", "people.by_name"]);

    let name = || String::from("people");
    assert_eq!(
        db.table::<u64, String>("people").create().unwrap_err(),
        TableMisuse::NameTaken { name: name() }.into()
    );
    let unknown = db.table::<u64, String>("peoples").open().unwrap_err();
    assert_eq!(
        unknown.to_string(),
        "there is no table or index named peoples: make it by `create` or `create_or_open` first, or correct the name"
    );
    let other = db.table::<u64, u64>("people").open().unwrap_err();
    assert!(
        matches!(other.downcast_ref(), Some(TableMisuse::OtherTypes { name, .. }) if name == "people"),
        "{other}"
    );
    assert!(db.index::<u64, u64, String>("people.by_name").is_err());
    assert!(db.table::<u64, String>("people.by_name").open().is_err(), "that is an index");
}

#[test]
fn a_table_whose_index_has_a_taken_name_is_not_made() {
    let db = Database::open().unwrap();
    let _ = db.table::<u64, u64>("numbers.halves").create().unwrap();
    let mut builder = db.table::<u64, u64>("numbers");
    let halves = builder.secondary("halves", |_, number| number / 2);
    assert!(builder.create().is_err_and(|refused| matches!(refused.downcast_ref(), Some(TableMisuse::NameTaken { name }) if name == "numbers.halves")));
    assert_eq!(db.names(), ["numbers.halves"]);
    assert!(db.table::<u64, u64>("numbers").create().is_ok());
    drop(halves);
}

#[test]
fn tables_are_made_while_transactions_run() {
    const TABLES: u64 = 100;
    let db = Database::open().unwrap();
    let made = TBox::new(&db, 0u64);
    thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..TABLES {
                let table = db.table::<u64, u64>(format!("table {number}")).hash(4).create().unwrap();
                db.transact(|tx| {
                    table.insert(tx, 0, number)?;
                    made.set(tx, number + 1)
                })
                .unwrap();
            }
        });
        for _ in 0..2 {
            scope.spawn(|| {
                let mut seen = 0;
                while seen < TABLES {
                    seen = db
                        .transact(|tx| {
                            let made = made.get(tx)?;
                            for number in seen..made {
                                let table = db.table::<u64, u64>(format!("table {number}")).open()?;
                                table.update(tx, &0, |row| *row += 1)?;
                            }
                            Ok(made)
                        })
                        .unwrap();
                }
            });
        }
    });
    assert_eq!(db.names().len() as u64, TABLES);
    for number in 0..TABLES {
        let table = db.table::<u64, u64>(format!("table {number}")).open().unwrap();
        assert_eq!(db.transact(|tx| table.get(tx, &0)), Ok(Some(number + 2)));
    }
}

#[test]
fn a_protocol_its_variant_and_the_policy_are_chosen_at_the_opening() {
    let policy = RetryPolicy { deadline: Some(Duration::from_millis(50)), ..RetryPolicy::default() };
    let db = Database::builder().retry_policy(policy).protocol("plor+dwa").open().unwrap();
    assert_eq!(db.protocol(), "plor+dwa");
    let wrong = Database::builder().variant("wound-wait").open().unwrap_err();
    let text = wrong.to_string();
    assert!(text.starts_with("misuse: there is no protocol named wound-wait; there are: occ"), "{text}");
    assert!(matches!(wrong, Error::Misuse(Misuse::NoSuchVariant { .. })));
    let unknown = Database::builder().protocol("ocm").open().unwrap_err();
    assert!(
        matches!(&unknown, Error::Misuse(Misuse::NoSuchVariant { name, known }) if name == "ocm" && *known == names()),
        "{unknown}"
    );
    assert_eq!(Database::open().unwrap().protocol(), "occ");
}

#[test]
fn objects_of_one_database_are_refused_by_another() {
    let (db, other) = (Database::open().unwrap(), Database::open().unwrap());
    let table = db.table::<u64, u64>("numbers").create().unwrap();
    let refused = other.transact(|tx| table.get(tx, &1));
    assert_eq!(refused, Err(Error::Misuse(Misuse::ForeignObject { object: "numbers".into() })));
}

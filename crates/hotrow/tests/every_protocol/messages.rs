//! The messages of the errors that a program meets first: each is one sentence, and says what to do.

use hotrow::durable::DurableBuilder as _;
use hotrow::protocols::names;
use hotrow::{Abort, Database, Misuse, Profile, Table, TableMisuse, Text};
use std::fmt::Display;

/// The message of an error in one sentence; it fits into a line of a log.
fn message(error: impl Display) -> String {
    let message = error.to_string();
    assert!(!message.is_empty() && !message.contains('\n'), "{message}");
    assert!(!message.ends_with('.') && !message.contains(". "), "one sentence without an end: {message}");
    message
}

fn stock(db: &Database) -> Table<String, u64> {
    let stock = db.table("stock").create().unwrap();
    stock.bulk_insert([("lamp".into(), 3)]).unwrap();
    stock
}

#[test]
fn uses_that_cannot_work_say_what_to_do() {
    let (db, other) = (Database::open().unwrap(), Database::open().unwrap());
    let (stock, others) = (stock(&db), stock(&other));
    let inside = db.transact(|tx| {
        let inner = db.transact(|tx| stock.get(tx, "lamp"));
        stock.get(tx, "lamp")?;
        Ok(inner.unwrap_err())
    });
    assert_eq!(
        message(inside.unwrap()),
        "misuse: a transaction was started inside another one of its thread: pass the outer `tx` on instead"
    );
    assert_eq!(
        message(db.transact(|tx| others.get(tx, "lamp")).unwrap_err()),
        "misuse: stock belongs to another database or engine than the transaction: use one of the same"
    );
    let swallowed = db.transact(|tx| {
        let _ = stock.insert(tx, "lamp".into(), 1);
        Ok(())
    });
    assert_eq!(
        message(swallowed.unwrap_err()),
        "misuse: the body has returned a result although one of its operations had failed: pass the error up with `?`, or catch \
         it behind a savepoint"
    );
    let mut worker = db.worker().unwrap();
    let written = worker.try_transact_as::<_, Abort>(Profile::READ_ONLY, |tx| stock.delete(tx, "lamp"));
    assert_eq!(
        message(written.unwrap_err()),
        "misuse: a transaction declared as read-only was about to write stock: leave the declaration out"
    );
    drop(worker);
    db.drop_table(&stock).unwrap();
    assert_eq!(
        message(db.transact(|tx| stock.get(tx, "lamp")).unwrap_err()),
        "misuse: stock has been dropped: make it again, and use what that returns"
    );
}

#[test]
fn tables_that_cannot_be_had_say_what_to_do() {
    let db = Database::open().unwrap();
    stock(&db);
    let refused = |table: Result<Table<String, u64>, Misuse>| message(table.unwrap_err());
    assert_eq!(
        refused(db.table("stocks").open()),
        "there is no table or index named stocks: make it by `create` or `create_or_open` first, or correct the name"
    );
    assert_eq!(
        refused(db.table("stock").create()),
        "there is a table or an index named stock already: open it, or choose another name"
    );
    let other = message(db.table::<u64, u64>("stock").open().unwrap_err());
    assert!(other.starts_with("stock was made as ") && other.contains(", and is wanted as "), "{other}");
}

#[test]
fn rows_that_do_not_fit_are_named() {
    let db = Database::open().unwrap();
    let stock = stock(&db);
    let again = db.transact(|tx| stock.insert(tx, "lamp".into(), 1));
    assert_eq!(message(again.unwrap_err()), "rolled back: stock has a row with key \"lamp\" already");
    let missing = db.transact(|tx| stock.update(tx, "chair", |left| *left -= 1));
    assert_eq!(message(missing.unwrap_err()), "rolled back: stock has no row with key \"chair\"");
    assert_eq!(
        message(Text::<4>::try_from("chair").unwrap_err()),
        "a string of 5 bytes does not fit into a text of at most 4 bytes"
    );
}

#[test]
fn a_protocol_that_is_not_there_or_admits_no_more_workers_says_what_there_is() {
    let unknown = message(Database::builder().protocol("ocm").open().unwrap_err());
    let expected = format!("misuse: there is no protocol named ocm; there are: {}", names().join(", "));
    assert_eq!(unknown, expected);
    let db = Database::builder().protocol("none").open().unwrap();
    let _worker = db.worker().unwrap();
    assert_eq!(
        message(db.worker().unwrap_err()),
        "protocol none admits at most 1 worker at a time: use fewer threads, or another protocol"
    );
}

#[test]
fn directories_and_rows_that_cannot_be_durable_say_what_to_do() {
    let directory = tempfile::tempdir().unwrap();
    let db = Database::builder().open_at(directory.path()).unwrap();
    let used = message(Database::builder().open_at(directory.path()).unwrap_err());
    assert!(
        used.ends_with(" is in use: close the database that this process or another has open there"),
        "{used}"
    );
    db.table::<u64, u64>("numbers").create().unwrap();
    drop(db);
    let db = Database::builder().open_at(directory.path()).unwrap();
    let refused = db.table::<u64, String>("numbers").create_or_open().unwrap_err();
    assert!(matches!(refused.downcast_ref(), Some(TableMisuse::OtherSchema { .. })), "{refused}");
    assert!(message(refused).ends_with(": change the type back, or migrate them"));
}

//! The erased form of a database, under every protocol by name.
//!
//! A binary of its own: nothing in it is generic over the protocol, so that it is compiled once.

use hotrow::erased::{Database, KeyExists, MissingRow, Row, Table, Transaction};
use hotrow::protocols::PROTOCOLS;
use hotrow::sync::random::Random;
use hotrow::sync::thread;
use hotrow::{Abort, Direction, Error, Misuse, Profile, RetryPolicy, TableMisuse};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::time::Duration;

mod snapshots;

/// Enough for every history here.
const HISTORY_BYTES: usize = 1 << 24;

/// Runs a test once under every protocol that admits so many workers. A failure names the protocol.
fn for_each_protocol(workers: u32, test: impl Fn(&Database)) {
    for protocol in PROTOCOLS.iter().filter(|protocol| protocol.workers_max >= workers) {
        eprintln!("protocol {}", protocol.name);
        let db = Database::open(protocol.name).unwrap();
        assert_eq!(db.protocol(), protocol.name);
        test(&db);
    }
}

/// A table of each kind there is, with a flag that is true if it can be scanned.
fn tables(db: &Database) -> [(Table, bool); 4] {
    [
        (db.table("hash").hash(4).create().unwrap(), false),
        (db.table("ordered").ordered().create().unwrap(), true),
        (db.table("hash of words").hash(4).word_keys().create().unwrap(), false),
        (db.table("ordered words").word_keys().create().unwrap(), true),
    ]
}

/// A key that all kinds of tables take.
fn key(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

fn number(row: &[u8]) -> i64 {
    i64::from_le_bytes(row[..8].try_into().unwrap())
}

fn add(row: &mut Row, amount: i64) -> i64 {
    let sum = number(row) + amount;
    row[..8].copy_from_slice(&sum.to_le_bytes());
    sum
}

/// A row that holds a number, and is so long.
fn row(number: i64, length: usize) -> Row {
    let mut row = Row::from(number.to_le_bytes());
    row.resize(length, 7);
    row
}

fn assert_serializable(report: &hotrow_check::Report) {
    assert!(report.is(report.claimed()), "{report}");
}

#[test]
fn a_database_is_opened_by_the_name_of_its_protocol() {
    let db = Database::open("plor+dwa").unwrap();
    assert_eq!((db.protocol(), db.names().len()), ("plor+dwa", 0));
    assert_eq!(format!("{db:?}"), r#"Database { protocol: "plor+dwa", tables: [] }"#);
    let error = Database::open("ocm").unwrap_err();
    assert!(error.to_string().contains("\"ocm\"; there are: occ, chop, "), "{error}");
    fn is_shared<T: Clone + Send + Sync + std::fmt::Debug + 'static>(_: &T) {}
    is_shared(&db);
}

#[test]
fn tables_are_found_by_name() {
    let db = Database::open("occ").unwrap();
    let (bytes, words) =
        (db.table("bytes").create().unwrap(), db.table("words").word_keys().create().unwrap());
    assert_eq!((db.table("bytes").open(), db.table("words").open()), (Ok(bytes), Ok(words)));
    assert!(db.table("bytes").create().is_err_and(
        |refused| matches!(refused.downcast_ref(), Some(TableMisuse::NameTaken { name }) if name == "bytes")
    ));
    assert!(db.table("other").open().is_err_and(
        |refused| matches!(refused.downcast_ref(), Some(TableMisuse::NoSuchName { name }) if name == "other")
    ));
    assert_eq!(db.names(), ["bytes", "words"]);
}

#[test]
fn a_typed_database_and_its_erased_form_are_one() {
    let typed = hotrow::Database::open().unwrap();
    let erased = Database::from(typed.clone());
    let numbers = typed.table::<u64, u64>("numbers").create().unwrap();
    let notes = erased.table("notes").create().unwrap();
    assert_eq!(typed.names(), erased.names());
    assert!(
        erased
            .table("numbers")
            .open()
            .is_err_and(|refused| matches!(refused.downcast_ref(), Some(TableMisuse::OtherTypes { .. })))
    );
    erased.transact(|tx| tx.insert(&notes, "a", "b")).unwrap();
    typed.transact(|tx| numbers.insert(tx, 1, 2)).unwrap();
    assert_eq!(erased.statistics().commits, 2);
    // A transaction of the one form inside one of the other, on one engine, is inside it.
    let nested = typed.transact(|_| Ok(erased.transact(|tx| tx.get(&notes, "a")))).unwrap();
    assert!(matches!(nested, Err(Error::Misuse(Misuse::Nested))));
}

/// One random operation, on the table and on its model.
fn turn(
    tx: &mut Transaction<'_>,
    (table, is_ordered): (Table, bool),
    model: &mut BTreeMap<Vec<u8>, Row>,
    random: &mut Random,
) -> Result<(), Abort> {
    let key = key(random.below(12));
    let model_key = key.to_vec();
    // Rows of all lengths, those at the border of what is held in place among them.
    let new = row(random.below(100) as i64, 8 + random.below(30) as usize);
    match random.below(9) {
        0 => {
            let inserted = tx.insert_if_absent(&table, key, new.clone())?;
            assert_eq!(inserted, !model.contains_key(&model_key));
            model.entry(model_key).or_insert(new);
        }
        1 => {
            let replaced = tx.replace_if_present(&table, key, new.clone())?;
            assert_eq!(replaced, model.contains_key(&model_key));
            model.entry(model_key).and_modify(|row| *row = new);
        }
        2 => {
            let inserted = tx.upsert(&table, key, new.clone())?;
            assert_eq!(inserted, model.insert(model_key, new).is_none());
        }
        3 => assert_eq!(tx.delete(&table, key)?, model.remove(&model_key).is_some()),
        4 | 5 => {
            let changed = tx.update_if_present(&table, key, |row| {
                row.set(&new);
                add(row, 1)
            })?;
            assert_eq!(changed, model.get(&model_key).map(|_| number(&new) + 1));
            model.entry(model_key).and_modify(|row| {
                *row = new;
                add(row, 1);
            });
        }
        6 if is_ordered => {
            let high = random.below(14).to_be_bytes();
            let found = tx.collect(&table, &key[..]..&high[..], Direction::Descending, 3)?;
            let expected = model.iter().rev().filter(|(other, _)| ***other >= key[..] && ***other < high[..]);
            assert_eq!(
                found,
                expected.take(3).map(|(key, row)| (key.clone(), row.clone())).collect::<Vec<_>>()
            );
        }
        _ => {
            assert_eq!(tx.get(&table, key)?.as_ref(), model.get(&model_key));
            assert_eq!(tx.read(&table, key, number)?, model.get(&model_key).map(|row| number(row)));
        }
    }
    Ok(())
}

#[test]
fn operations_give_what_they_give_in_a_plain_map() {
    for_each_protocol(1, |db| {
        let recording = db.record_history(HISTORY_BYTES).unwrap();
        let mut worker = db.worker().unwrap();
        for (seed, table) in tables(db).into_iter().enumerate() {
            let (mut random, mut model) = (Random::seeded(seed as u64), BTreeMap::new());
            for _ in 0..150 {
                let (gives_up, before, again) = (random.chance(0.2), model.clone(), random.clone());
                let done = worker.transact(|tx| {
                    (model, random) = (before.clone(), again.clone());
                    for _ in 0..4 {
                        turn(tx, table, &mut model, &mut random)?;
                    }
                    if gives_up { Err(Abort::rollback()) } else { Ok(()) }
                });
                if gives_up {
                    model = before;
                }
                assert_eq!(done.is_err(), gives_up);
            }
            let rows = worker.transact_as(Profile::READ_ONLY, |tx| {
                (0..12).map(|number| tx.get(&table.0, key(number))).collect::<Result<Vec<_>, _>>()
            });
            let expected: Vec<_> = (0..12).map(|number| model.get(&key(number)[..]).cloned()).collect();
            assert_eq!(rows.unwrap(), expected);
        }
        assert_serializable(&hotrow_check::check(&recording.finish()).unwrap());
    });
}

#[test]
fn missing_rows_and_existing_keys_roll_back() {
    for_each_protocol(1, |db| {
        for (table, _) in tables(db) {
            db.bulk_insert(&table, [(key(1), row(10, 8))]).unwrap();
            db.bulk_insert(&table, [(key(1), row(11, 8))]).unwrap_err();
            let attempt = |body: &dyn Fn(&mut Transaction<'_>) -> Result<(), Abort>| {
                let error = db.transact(|tx| {
                    tx.update(&table, key(1), |row| add(row, 5))?;
                    body(tx)
                });
                assert_eq!(db.transact(|tx| tx.read(&table, key(1), number)), Ok(Some(10)));
                error.unwrap_err()
            };
            let missing = attempt(&|tx| tx.update(&table, key(2), |row| add(row, 5)).map(|_| ()));
            assert!(missing.downcast_ref::<MissingRow>().is_some_and(|error| error.key.contains(r"\x02")));
            let missing = attempt(&|tx| tx.replace(&table, key(2), "a"));
            assert!(missing.downcast_ref::<MissingRow>().is_some());
            let exists = attempt(&|tx| tx.insert(&table, key(1), "a"));
            assert!(exists.downcast_ref::<KeyExists>().is_some());
            let ensured = attempt(&|tx| tx.ensure(false, "not so"));
            assert_eq!(ensured.to_string(), "rolled back: not so");
            let own = attempt(&|_| Ok("x".parse::<u8>().map(|_| ())?));
            assert!(own.downcast_ref::<std::num::ParseIntError>().is_some());
        }
    });
}

#[test]
fn a_part_that_fails_alone_leaves_nothing() {
    for_each_protocol(1, |db| {
        for (table, _) in tables(db) {
            db.bulk_insert(&table, [(key(1), row(10, 8))]).unwrap();
            let seen = db.transact(|tx| {
                tx.update(&table, key(1), |row| add(row, 1))?;
                let failed: Result<(), Abort> = tx.savepoint(|tx| {
                    tx.update(&table, key(1), |row| add(row, 100))?;
                    tx.insert(&table, key(2), row(0, 40))?;
                    tx.insert(&table, key(1), "there is one")
                })?;
                assert!(failed.unwrap_err().downcast_ref::<KeyExists>().is_some());
                let kept = tx.savepoint(|tx| tx.update(&table, key(1), |row| add(row, 2)))?;
                let other = tx.or_else(
                    |tx| tx.update(&table, key(3), |row| add(row, 1)),
                    |tx| tx.update(&table, key(1), |row| add(row, 4)),
                )?;
                Ok((kept?, other, tx.get(&table, key(2))?))
            });
            assert_eq!(seen, Ok((13, 17, None)));
            assert_eq!(db.transact(|tx| tx.read(&table, key(1), number)), Ok(Some(17)));
            db.drop_table(&table).unwrap();
            let refused = db.transact(|tx| tx.get(&table, key(1)));
            assert!(matches!(refused, Err(Error::Misuse(Misuse::Dropped { .. }))), "{refused:?}");
        }
    });
}

#[test]
fn arrays_lose_no_increment() {
    const THREADS: u64 = 4;
    const ROUNDS: u64 = 50;
    for_each_protocol(THREADS as u32 + 1, |db| {
        let recording = db.record_history(HISTORY_BYTES).unwrap();
        let array = db.create_array("counts", 3).unwrap();
        assert_eq!(db.open_array("counts"), Ok(array));
        thread::scope(|scope| {
            for thread in 0..THREADS {
                scope.spawn(move || {
                    for round in 0..ROUNDS {
                        let index = ((thread + round) % 2) as usize;
                        db.transact(|tx| {
                            let sum = tx.update_word(&array, index, |word| {
                                *word += 1;
                                *word
                            })? + tx.get_word(&array, 1 - index)?;
                            tx.set_word(&array, 2, sum)
                        })
                        .unwrap();
                    }
                });
            }
        });
        let counts =
            db.transact(|tx| (0..3).map(|index| tx.get_word(&array, index)).collect::<Result<Vec<_>, _>>());
        let sum = THREADS * ROUNDS;
        assert_eq!(counts, Ok(vec![sum / 2, sum / 2, sum]));
        assert_serializable(&hotrow_check::check(&recording.finish()).unwrap());
        let beyond = db.transact(|tx| tx.get_word(&array, array.len()));
        assert!(matches!(beyond, Err(Error::Misuse(Misuse::OutOfBounds { index: 3, .. }))));
    });
    let (db, other) = (Database::open("occ").unwrap(), Database::open("occ").unwrap());
    let foreign = other.create_array("counts", 1).unwrap();
    let used = db.transact(|tx| tx.get_word(&foreign, 0));
    assert!(matches!(used, Err(Error::Misuse(Misuse::ForeignObject { .. }))));
    assert!(
        other
            .table("counts")
            .open()
            .is_err_and(|refused| matches!(refused.downcast_ref(), Some(TableMisuse::OtherTypes { .. })))
    );
    assert!(
        other
            .create_array("counts", 1)
            .is_err_and(|refused| matches!(refused.downcast_ref(), Some(TableMisuse::NameTaken { .. })))
    );
}

#[test]
fn a_use_that_can_never_work_says_so() {
    let (db, other) = (Database::open("occ").unwrap(), Database::open("occ").unwrap());
    let [(hash, _), _, (words, _), _] = tables(&db);
    let foreign = tables(&other)[0].0;
    let misuse = |result: Result<(), Error>| match result {
        Err(Error::Misuse(misuse)) => misuse,
        result => panic!("{result:?}"),
    };
    let short = misuse(db.transact(|tx| tx.insert(&words, "seven b", "")));
    assert_eq!(short.to_string(), r#"keys of table hash of words have 8 bytes, and "seven b" has 7"#);
    assert!(matches!(
        misuse(db.transact(|tx| tx.get(&words, "nine byte").map(|_| ()))),
        Misuse::Unsupported(_)
    ));
    assert!(matches!(db.bulk_insert(&words, [("", "")]), Err(Error::Misuse(Misuse::Unsupported(_)))));
    let used = misuse(db.transact(|tx| tx.delete(&foreign, "a").map(|_| ())));
    assert!(matches!(used, Misuse::ForeignObject { .. }));
    assert!(matches!(
        db.bulk_insert(&foreign, [("a", "")]),
        Err(Error::Misuse(Misuse::ForeignObject { .. }))
    ));
    let scanned =
        db.transact(|tx| tx.scan(&hash, .., Direction::Ascending, |_, _| ControlFlow::Continue(())));
    assert!(matches!(misuse(scanned), Misuse::Unsupported(_)));
    let written = db.transact_as(Profile::READ_ONLY, |tx| tx.insert(&hash, "a", "b"));
    assert!(matches!(misuse(written), Misuse::ReadOnly { .. }));
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        db.transact(|tx| {
            tx.insert(&hash, "a", "b")?;
            tx.update(&hash, "a", |_| -> () { panic!("in a change") })
        })
    }));
    assert!(panicked.is_err());
    assert_eq!(db.transact(|tx| tx.get(&hash, "a")), Ok(None));
}

#[test]
fn scans_go_between_bounds_of_any_length() {
    let db = Database::open("occ").unwrap();
    for (table, is_ordered) in tables(&db) {
        if !is_ordered {
            continue;
        }
        db.bulk_insert(&table, (0..600).map(|number| (key(number), row(0, 8)))).unwrap();
        let count = |low: &[u8], high: &[u8]| {
            db.transact(|tx| Ok(tx.collect(&table, low..high, Direction::Ascending, usize::MAX)?.len()))
                .unwrap()
        };
        assert_eq!(count(&[], &key(600)), 600);
        assert_eq!(count(&key(0)[..7], &key(256)[..7]), 256);
        assert_eq!(count(&[&key(9)[..], b"behind"].concat(), &[&key(20)[..], b"behind"].concat()), 11);
        assert_eq!(count(&key(20), &key(10)), 0);
    }
}

/// The accounts of a bank, and beside them a row that says how many there are.
const BANK: u64 = u64::MAX;
const ACCOUNTS: i64 = 8;
const BALANCE: i64 = 100;

/// The number of accounts and the sum of their balances, by a scan or by lookups.
fn sum(tx: &mut Transaction<'_>, (table, is_ordered): (Table, bool)) -> Result<(i64, i64), Abort> {
    let (mut count, mut sum) = (0, 0);
    let mut see = |row: &[u8]| (count, sum) = (count + 1, sum + number(row));
    if is_ordered {
        let (low, high) = (key(0), key(BANK));
        tx.scan(&table, &low[..]..&high[..], Direction::Ascending, |_, row| {
            see(row);
            ControlFlow::Continue(())
        })?;
    } else {
        for account in 0..2 * ACCOUNTS as u64 {
            tx.read(&table, key(account), &mut see)?;
        }
    }
    Ok((count, sum))
}

/// Moves money, and opens and closes accounts: a balance goes with its account to another place.
fn move_money(tx: &mut Transaction<'_>, table: Table, random: &mut Random) -> Result<(), Abort> {
    let (from, to) = (key(random.below(2 * ACCOUNTS as u64)), key(random.below(2 * ACCOUNTS as u64)));
    let Some(balance) = tx.read(&table, from, number)? else { return Ok(()) };
    if from == to {
        return Ok(());
    }
    if tx.update_if_present(&table, to, |row| add(row, 1))?.is_some() {
        tx.update(&table, from, |row| add(row, -1))?;
        return Ok(());
    }
    assert!(tx.delete(&table, from)?);
    if balance % 2 == 0 {
        return tx.insert(&table, to, row(balance, 8 + random.below(30) as usize));
    }
    // The account goes, and its balance to the bank.
    tx.update(&table, key(BANK), |row| {
        add(row, -1);
        let kept = number(&row[8..]) + balance;
        row[8..].copy_from_slice(&kept.to_le_bytes());
    })
}

#[test]
fn no_transaction_sees_two_states() {
    const THREADS: u64 = 4;
    for_each_protocol(THREADS as u32 + 1, |db| {
        let recording = db.record_history(HISTORY_BYTES).unwrap();
        for (table, is_ordered) in tables(db) {
            for account in 0..ACCOUNTS as u64 {
                db.bulk_insert(&table, [(key(account), row(BALANCE, 8 + 8 * account as usize))]).unwrap();
            }
            db.bulk_insert(&table, [(key(BANK), [ACCOUNTS.to_le_bytes(), 0i64.to_le_bytes()].concat())])
                .unwrap();
            let audit = |tx: &mut Transaction<'_>| {
                let (count, sum) = sum(tx, (table, is_ordered))?;
                let bank = tx.get(&table, key(BANK))?.expect("the bank");
                Ok((number(&bank) - count, number(&bank[8..]) + sum))
            };
            let expected = &Ok((0, ACCOUNTS * BALANCE));
            thread::scope(|scope| {
                for number in 0..THREADS {
                    scope.spawn(move || {
                        let mut worker = db.worker().unwrap();
                        let mut random = Random::stream(5, number);
                        for round in 0..60 {
                            if round % 6 == 0 {
                                assert_eq!(&worker.transact(audit), expected);
                                continue;
                            }
                            let gives_up = random.chance(0.1);
                            let moved = worker.transact(|tx| {
                                move_money(tx, table, &mut random)?;
                                if gives_up { Err(Abort::rollback()) } else { Ok(()) }
                            });
                            assert_eq!(moved.is_err(), gives_up);
                        }
                    });
                }
            });
            assert_eq!(&db.transact(audit), expected);
        }
        assert!(db.hot_keys(3).len() <= 3);
        assert_serializable(&hotrow_check::check(&recording.finish()).unwrap());
    });
}

#[test]
fn a_row_that_comes_into_a_scanned_range_is_no_phantom() {
    for protocol in PROTOCOLS.iter().filter(|protocol| protocol.workers_max >= 2) {
        let deadline = Some(Duration::from_millis(5));
        let policy = RetryPolicy { attempts_max: 40, deadline, ..RetryPolicy::default() };
        let db = Database::open_with(protocol.name, policy).unwrap();
        for table in tables(&db) {
            db.bulk_insert(&table.0, [(key(1), row(1, 8))]).unwrap();
            db.bulk_insert(&table.0, [(key(BANK), row(1, 8))]).unwrap();
            let mut overtaken = false;
            let seen = loop {
                let mut attempts = 0;
                let seen = db.transact(|tx| {
                    attempts += 1;
                    let (count, _) = sum(tx, table)?;
                    if attempts == 1 && !overtaken {
                        let insert = || {
                            db.transact(|tx| {
                                tx.insert(&table.0, key(2), row(1, 50))?;
                                tx.update(&table.0, key(BANK), |row| add(row, 1))
                            })
                        };
                        let inserted = thread::scope(|scope| scope.spawn(insert).join().unwrap());
                        assert!(
                            inserted.as_ref().is_ok_and(|count| *count == 2)
                                || inserted.unwrap_err().is_retryable()
                        );
                        overtaken = true;
                    }
                    Ok((count, tx.read(&table.0, key(BANK), number)?.expect("the bank")))
                });
                match seen {
                    // On a busy machine, the deadline may have passed for this one, too.
                    Err(Error::Timeout(_)) => continue,
                    seen => break seen.unwrap(),
                }
            };
            assert_eq!(seen.0, seen.1, "{}: rows, and the count beside them", protocol.name);
        }
    }
}

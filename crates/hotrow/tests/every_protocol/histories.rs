//! The contents of recorded histories.

use crate::support;
use crate::support::for_each_protocol;
use hotrow::history::{Ended, Event, History, ReadKind, WriteKind};
use hotrow::{
    Abort, Database, Direction, Error, Isolation, Misuse, Profile, RetryPolicy, TArray, TBox, TCounter,
};
use std::ops::{Bound, ControlFlow};
use std::time::Duration;

/// Enough for every test here.
const BOUND: usize = 1 << 20;

/// The events of a history in words, stamps left out.
fn words(history: &History) -> Vec<String> {
    let key = |number| {
        let key = history.keys.get(number).unwrap();
        format!("{}[{}]", history.objects[key.object as usize], std::str::from_utf8(key.text).unwrap())
    };
    let mut words = Vec::new();
    for worker in &history.workers {
        for event in worker.events() {
            words.push(match event.unwrap() {
                Event::Begin { attempt, .. } => format!("begin {attempt}"),
                Event::Read { key: number, kind, .. } => {
                    let kind = match kind {
                        ReadKind::Value => "read",
                        ReadKind::Absent => "absent",
                        ReadKind::Predicate => "predicate",
                    };
                    format!("{kind} {}", key(number))
                }
                Event::Intend { key: number } => format!("intend {}", key(number)),
                Event::Operation { .. } => String::from("operation"),
                Event::OwnRead { key: number } => format!("own {}", key(number)),
                Event::Change { key: number } => format!("change {}", key(number)),
                Event::Range { object, .. } => format!("range {}", history.objects[object as usize]),
                Event::Write { key: number, kind, .. } => {
                    let kind = match kind {
                        WriteKind::Update => "update",
                        WriteKind::Commute => "commute",
                        WriteKind::Insert => "insert",
                        WriteKind::Delete => "delete",
                    };
                    format!("{kind} {}", key(number))
                }
                Event::End { outcome, .. } => match outcome {
                    Ended::Committed => String::from("committed"),
                    Ended::Aborted(reason) => format!("aborted {}", reason.name()),
                    Ended::RolledBack => String::from("rolled back"),
                },
            });
        }
    }
    words
}

#[test]
fn a_snapshot_names_the_version_that_an_attempt_replaced_which_is_not_recorded() {
    for_each_protocol!(2, |P| {
        let engine = support::engine::<P>();
        let recording = engine.record_history(1 << 10).unwrap();
        let (account, other) = (TBox::named(&engine, "account", 0u64), TBox::named(&engine, "other", 0u64));
        engine.transact(|tx| account.set(tx, 1)).unwrap();
        let on_snapshot = Profile { isolation: Isolation::StrictSnapshot, ..Profile::READ_ONLY };
        let mut reader = engine.worker().unwrap();
        let mut snapshot = reader.begin_as(on_snapshot);
        // The bound is reached: the attempts that follow are not recorded, and the one on the snapshot still is.
        for value in 0..500 {
            engine.transact(|tx| other.set(tx, value)).unwrap();
        }
        engine.transact(|tx| account.set(tx, 2)).unwrap();
        assert_eq!(account.get(&mut snapshot).unwrap(), 1);
        snapshot.commit().unwrap();
        let history = recording.finish();
        assert!(!history.complete);
        let (mut written, mut read) = (None, None);
        for event in history.workers.iter().flat_map(|worker| worker.events()) {
            match event.unwrap() {
                Event::Write { version, .. } => drop(written.get_or_insert(version)),
                Event::Read { version, kind: ReadKind::Value, .. } => read = Some(version),
                _ => {}
            }
        }
        assert!(written.is_some() && read == written, "{read:?} of {written:?}");
        assert!(hotrow_check::check(&history).unwrap().serializable);
    });
}

#[test]
fn each_operation_leaves_its_event() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let recording = engine.record_history(BOUND).unwrap();
        let account = TBox::named(&engine, "account", 1u64);
        let seats = TArray::<u64, P>::named(&engine, "seats", 3, |_| 0);
        let sold = TCounter::named(&engine, "sold", 5);
        let by_hash = Database::on(&engine).table::<u32, u64>("hash").hash(10).create().unwrap();
        let by_order = Database::on(&engine).table::<u32, u64>("ordered").create().unwrap();
        engine
            .transact(|tx| {
                account.update(tx, |balance| *balance += 1)?;
                seats.set(tx, 2, 7)?;
                seats.get(tx, 1)?;
                assert!(sold.is_at_least(tx, 1)?);
                sold.add(tx, 1)
            })
            .unwrap();
        for table in [&by_hash, &by_order] {
            engine
                .transact(|tx| {
                    assert_eq!(table.get(tx, &4)?, None);
                    assert!(table.insert_if_absent(tx, 4, 40)?);
                    // An attempt learns nothing from its own writes.
                    table.get(tx, &4)
                })
                .unwrap();
            engine.transact(|tx| table.insert_if_absent(tx, 4, 41)).unwrap();
            engine.transact(|tx| table.update_if_present(tx, &4, |row| *row += 1)).unwrap();
            engine.transact(|tx| table.delete(tx, &4)).unwrap();
            engine.transact(|tx| table.get(tx, &4)).unwrap();
            let rolled_back: Result<(), _> = engine.transact(|tx| {
                table.insert_if_absent(tx, 4, 40)?;
                Err(Abort::rollback())
            });
            assert!(matches!(rolled_back, Err(Error::Rollback(_))));
        }
        let history = recording.finish();
        assert!(history.complete);
        assert_eq!(
            (history.protocol.as_str(), history.opaque),
            (support::chosen().as_str(), engine.is_opaque())
        );
        assert_eq!(history.strict, crate::support::is_strict());
        assert!(crate::support::is_strict() || !engine.is_opaque(), "opacity is in real time");
        let mut expected = vec![
            "begin 0",
            "read account[value]",
            "read seats[1]",
            "update account[value]",
            "update seats[2]",
            "update sold[value]",
            "predicate sold[value]",
            "committed",
        ]
        .into_iter()
        .map(str::to_owned)
        .collect::<Vec<_>>();
        for table in ["hash", "ordered"] {
            let events = [
                "begin 0/absent T[4]/absent T[4]/insert T[4]/committed",
                "begin 0/read T[4]/committed",
                "begin 0/read T[4]/update T[4]/committed",
                "begin 0/read T[4]/delete T[4]/committed",
                "begin 0/absent T[4]/committed",
                "begin 0/absent T[4]/rolled back",
            ];
            for transaction in events {
                expected.extend(transaction.split('/').map(|event| event.replace('T', table)));
            }
        }
        // Changes, and reads of them, are recorded only if the protocol defers.
        let is_own = |word: &String| ["operation", "own ", "change "].iter().any(|own| word.starts_with(own));
        let (own, words): (Vec<_>, Vec<_>) = words(&history).into_iter().partition(is_own);
        assert_eq!(own.is_empty(), !crate::support::defers());
        // In which order a commit installs its writes is its protocol's affair.
        let sorted = |mut words: Vec<String>| {
            words
                .chunk_by_mut(|one, next| [one, next].iter().all(|word| word.starts_with("update")))
                .for_each(<[_]>::sort);
            words
        };
        assert_eq!(sorted(words), sorted(expected));
    });
}

#[test]
fn the_place_of_a_deferred_operation_and_its_changes_are_recorded() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let recording = engine.record_history(BOUND).unwrap();
        let table = Database::on(&engine).table::<u32, u64>("table").create().unwrap();
        let counter = TCounter::named(&engine, "counter", 0);
        engine
            .transact(|tx| {
                counter.defer_add(tx, 1)?;
                table.insert_if_absent(tx, 1, 1)?;
                table.update_if_present(tx, &1, |row| *row += 1)?;
                table.get(tx, &1)?;
                let count = counter.get(tx)?;
                table.replace_if_present(tx, &1, count.unsigned_abs()).map(|_| ())
            })
            .unwrap();
        let history = recording.finish();
        let expected = [
            "begin 0",
            "operation",
            "absent table[1]",
            "change table[1]",
            "change table[1]",
            "own table[1]",
            // The addition was deferred, and is needed now.
            "operation",
            "change counter[value]",
            "operation",
            "own counter[value]",
            "read counter[value]",
            "change table[1]",
        ];
        let words = words(&history);
        assert!(!crate::support::defers() || words[..expected.len()] == expected, "{words:#?}");
    });
}

#[test]
fn versions_of_a_key_form_a_chain_over_its_records() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let recording = engine.record_history(BOUND).unwrap();
        let table = Database::on(&engine).table::<u32, u64>("table").create().unwrap();
        for round in 0..10 {
            engine.transact(|tx| table.insert_if_absent(tx, 1, round)).unwrap();
            engine.transact(|tx| table.update_if_present(tx, &1, |row| *row += 1)).unwrap();
            engine.transact(|tx| table.delete(tx, &1)).unwrap();
            engine.transact(|tx| table.get(tx, &1)).unwrap();
        }
        let history = recording.finish();
        assert_eq!(history.keys.len(), 1, "a key is the same key when it is inserted again");
        let (mut current, mut writes) = (0, 0);
        for event in history.workers.iter().flat_map(|worker| worker.events()) {
            match event.unwrap() {
                Event::Read { version, .. } => assert_eq!(version, current),
                Event::Write { replaced, version, .. } => {
                    assert_eq!(replaced, current);
                    assert!(version > current);
                    (current, writes) = (version, writes + 1);
                }
                _ => {}
            }
        }
        assert_eq!(writes, 30);
    });
}

#[test]
fn a_scan_leaves_the_bounds_that_it_has_covered() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let table = Database::on(&engine).table::<u64, u64>("table").create().unwrap();
        for key in [10u64, 20, 30, 40] {
            table.bulk_insert([(key, key)]).unwrap();
        }
        let recording = engine.record_history(BOUND).unwrap();
        for direction in [Direction::Ascending, Direction::Descending] {
            for stop in [0, 20] {
                engine
                    .transact(|tx| {
                        table.scan(tx, 15..=35, direction, |key, _| {
                            if *key == stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                        })
                    })
                    .unwrap();
            }
        }
        let history = recording.finish();
        let mut ranges = Vec::new();
        for event in history.workers[0].events() {
            if let Event::Range { low, high, from, to, .. } = event.unwrap() {
                assert!(from <= to);
                let key = |bound: Bound<&[u8]>| match bound {
                    Bound::Included(bytes) => u64::from_be_bytes(bytes.try_into().unwrap()),
                    _ => panic!("the bounds were included"),
                };
                ranges.push((key(low), key(high)));
            }
        }
        assert_eq!(ranges, [(15, 35), (15, 20), (15, 35), (20, 35)]);
    });
}

#[test]
fn attempts_beyond_the_bound_are_left_out_and_the_history_says_so() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let recording = engine.record_history(2_000).unwrap();
        let array = TArray::<u64, P>::new(&engine, 100, |_| 0);
        for index in 0..100 {
            engine.transact(|tx| array.set(tx, index, 1)).unwrap();
        }
        assert!(recording.is_full());
        assert_eq!(engine.record_history(1).unwrap_err(), Misuse::AlreadyRecorded);
        let history = recording.finish();
        assert!(!history.complete);
        let events = words(&history);
        assert!((10..150).contains(&events.len()), "{}", events.len());
        assert_eq!(events.last().unwrap(), "committed", "attempts are recorded whole");
    });
}

#[test]
fn transactions_can_be_stepped_by_hand_on_one_thread() {
    for_each_protocol!(2, |P| {
        // Nobody else goes on meanwhile, so a wait would never end.
        let policy = RetryPolicy { deadline: Some(Duration::ZERO), ..RetryPolicy::default() };
        let engine = support::engine_with::<P>(policy);
        let account = TBox::new(&engine, 1u64);
        let (mut first, mut second) = (engine.worker().unwrap(), engine.worker().unwrap());
        let (mut first, mut second) = (first.begin(), second.begin());
        let mut increments = 0;
        if account.get(&mut first) == Ok(1) && account.update(&mut second, |balance| *balance += 1).is_ok() {
            increments += u64::from(second.commit().is_ok());
        }
        if account.update(&mut first, |balance| *balance += 1).is_ok() {
            increments += u64::from(first.commit().is_ok());
        }
        assert_eq!(engine.transact(|tx| account.get(tx)), Ok(1 + increments));
        assert_eq!(increments, 1, "one of them gets through");
    });
}

//! Keys of any length: every operation by borrowed forms, phantoms between them, and histories that name them.

use crate::support;
use crate::support::steps::Interleaving;
use crate::support::{for_each_concurrent_protocol, for_each_protocol};
use hotrow::sync::random::Random;
use hotrow::sync::thread;
use hotrow::{
    Abort, Database, Direction, Engine, Key, Protocol, SecondaryIndex, TBox, Table, Transaction, Value,
};
use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};

type Tx<'w, P> = Transaction<'w, P>;

/// Names with a long beginning in common, some of which begin with others, and one with a NUL.
fn name(number: u64) -> String {
    match number % 4 {
        0 => format!("https://example.com/articles/{:03}", number / 4),
        1 => format!("https://example.com/articles/{:03}/comments", number / 4),
        2 => format!("https://example.com/articles/{:03}\0", number / 4),
        _ => format!("{:03}", number / 4),
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Key)]
enum Owner {
    Nobody,
    Member(u32),
    Guest { email: String, visit: Option<u16> },
}

#[derive(Debug, Clone, PartialEq, Eq, Value)]
struct Page {
    text: String,
    owner: Owner,
}

fn owner(number: u64) -> Owner {
    match number % 3 {
        0 => Owner::Nobody,
        1 => Owner::Member(number as u32 / 3),
        _ => {
            Owner::Guest { email: name(number / 7), visit: number.is_multiple_of(2).then_some(number as u16) }
        }
    }
}

struct Pages<P: Protocol> {
    table: Table<String, Page, P>,
    by_owner: SecondaryIndex<Owner, String, Page, P>,
    by_text: SecondaryIndex<String, String, Page, P>,
}

impl<P: Protocol> Pages<P> {
    fn new(engine: &Engine<P>, hash: bool) -> Self {
        let mut builder = Database::on(engine).table("pages");
        let by_owner = builder.secondary("by_owner", |_, page: &Page| page.owner.clone());
        let by_text = builder.secondary("by_text", |_, page: &Page| page.text.clone());
        let table = if hash { builder.hash(4).create().unwrap() } else { builder.create().unwrap() };
        Self { table, by_owner, by_text }
    }
}

fn turn<P: Protocol>(
    pages: &Pages<P>,
    tx: &mut Tx<'_, P>,
    model: &mut BTreeMap<String, Page>,
    random: &mut Random,
    ordered: bool,
) -> Result<(), Abort> {
    let table = &pages.table;
    let key = name(random.below(60));
    let page = Page { text: name(random.below(20)), owner: owner(random.below(40)) };
    match random.below(9) {
        0 | 1 => {
            let inserted = table.insert_if_absent(tx, key.clone(), page.clone())?;
            assert_eq!(inserted, !model.contains_key(&key));
            model.entry(key).or_insert(page);
        }
        2 => assert_eq!(table.delete(tx, &*key)?, model.remove(&key).is_some()),
        3 => {
            let changed = table.update_if_present(tx, key.as_str(), |row| row.text.push('!'))?;
            assert_eq!(changed.is_some(), model.contains_key(&key));
            model.entry(key).and_modify(|row| row.text.push('!'));
        }
        4 => {
            assert_eq!(table.replace_if_present(tx, &key, page.clone())?, model.contains_key(&key));
            model.entry(key).and_modify(|row| *row = page);
        }
        5 => {
            assert_eq!(table.get(tx, key.as_str())?.as_ref(), model.get(&key));
            let length = table.read(tx, &key, |row| row.text.len())?;
            assert_eq!(length, model.get(&key).map(|row| row.text.len()));
        }
        6 if ordered => {
            let (low, high) = (name(random.below(60)), key);
            let expected: Vec<(String, Page)> = match low <= high {
                true => model.range(low.clone()..high.clone()).map(|(k, v)| (k.clone(), v.clone())).collect(),
                false => Vec::new(),
            };
            let limit = expected.len().max(1);
            assert_eq!(table.collect(tx, &*low..&*high, Direction::Ascending, limit)?, expected);
            let mut found = table.collect(tx, low..high, Direction::Descending, usize::MAX)?;
            found.reverse();
            assert_eq!(found, expected);
        }
        7 => {
            let (low, high) = (page.text, name(random.below(20)));
            let mut expected: Vec<_> = model
                .iter()
                .filter(|(_, row)| row.text > low && row.text <= high)
                .map(|(key, row)| (row.text.clone(), key.clone()))
                .collect();
            expected.sort();
            let mut found = Vec::new();
            let range = (Bound::Excluded(&*low), Bound::Included(&*high));
            pages.by_text.scan_keys(tx, range, Direction::Ascending, |text, key| {
                found.push((text.clone(), key.clone()));
                ControlFlow::Continue(())
            })?;
            assert_eq!(found, expected);
        }
        _ => {
            let wanted = owner(random.below(40));
            let mut expected: Vec<_> =
                model.iter().filter(|(_, row)| row.owner >= wanted).map(|(key, _)| key.clone()).collect();
            expected.sort();
            let mut found = Vec::new();
            pages.by_owner.scan(tx, wanted.., Direction::Descending, |_, key, _| {
                found.push(key.clone());
                ControlFlow::Continue(())
            })?;
            found.sort();
            assert_eq!(found, expected);
        }
    }
    Ok(())
}

#[test]
fn operations_agree_with_a_map() {
    for_each_protocol!(1, |P| {
        for (seed, hash) in [(1, true), (2, false)] {
            let engine = support::engine::<P>();
            let recording = engine.record_history(50_000_000).unwrap();
            let pages = Pages::new(&engine, hash);
            let mut worker = engine.worker().unwrap();
            let mut random = Random::seeded(seed);
            let mut model = BTreeMap::new();
            for _ in 0..80 {
                let (before, again) = (model.clone(), random.clone());
                let gives_up = random.chance(0.2);
                let done = worker.transact(|tx| {
                    (model, random) = (before.clone(), again.clone());
                    for _ in 0..4 {
                        turn(&pages, tx, &mut model, &mut random, !hash)?;
                    }
                    if gives_up { Err(Abort::rollback()) } else { Ok(()) }
                });
                if done.is_err() {
                    assert!(gives_up);
                    model = before;
                }
            }
            let mut found = BTreeMap::new();
            pages.table.for_each(&mut worker, |key, row| _ = found.insert(key.clone(), row.clone())).unwrap();
            assert_eq!(found, model);
            let memory = pages.table.memory(&mut worker).unwrap();
            let heap: usize = model.keys().map(String::len).sum();
            assert!(memory.payload_bytes as usize >= heap + model.len() * size_of::<(String, Page)>());
            let report = hotrow_check::check(&recording.finish()).unwrap();
            assert!(report.is(report.claimed()), "{report}");
        }
    });
}

/// The rows under the articles 10 to 19.
fn look<P: Protocol>(table: &Table<String, u64, P>, tx: &mut Tx<'_, P>) -> Result<Vec<u64>, Abort> {
    let range = "https://example.com/articles/010".."https://example.com/articles/020";
    Ok(table.collect(tx, range, Direction::Ascending, usize::MAX)?.into_iter().map(|(_, row)| row).collect())
}

fn articles<P: Protocol>(engine: &Engine<P>) -> Table<String, u64, P> {
    let table = Database::on(engine).table("articles").create().unwrap();
    table.bulk_insert([5, 12, 25].map(|number| (name(4 * number), number))).unwrap();
    table
}

#[test]
fn a_key_that_comes_into_a_scanned_range_is_no_phantom() {
    for_each_protocol!(4, |P| {
        for inserted in [
            "https://example.com/articles/010",
            "https://example.com/articles/012\0",
            "https://example.com/articles/01~",
        ] {
            Interleaving::<P>::new().run(|engine, [mut t1, mut t2, _]| {
                let (table, note) = (articles(engine), TBox::new(engine, 0));
                assert_eq!(t1.step(|tx| look(&table, tx)).unwrap(), [12]);
                t2.step(|tx| note.get(tx));
                t2.step(|tx| table.insert_if_absent(tx, inserted.into(), 0));
                t2.commit();
                t1.step(|tx| note.set(tx, 1));
                // The first one has not seen the key, and the second one not the note.
                assert!(!(t1.commit() && t2.committed()), "{inserted}");
            });
        }
    });
}

#[test]
fn keys_that_come_outside_of_a_scanned_range_are_no_conflict() {
    for_each_protocol!(4, |P| {
        Interleaving::<P>::new().run(|engine, [mut t1, mut t2, _]| {
            let (table, note) = (articles(engine), TBox::new(engine, 0));
            assert_eq!(t1.step(|tx| look(&table, tx)).unwrap(), [12]);
            t1.step(|tx| table.get(tx, "https://example.com/articles/013"));
            // Enough to split the leaf, on either side of the part.
            for number in 0..40 {
                t2.step(|tx| {
                    table.insert_if_absent(tx, format!("https://example.com/articles/00{number}"), 0)
                });
                t2.step(|tx| {
                    table.insert_if_absent(tx, format!("https://example.com/articles/2{number}"), 0)
                });
            }
            t2.step(|tx| table.insert_if_absent(tx, "https://example.com/articles/020".into(), 0));
            t2.step(|tx| table.insert_if_absent(tx, "https".into(), 0));
            t2.commit();
            t1.step(|tx| note.set(tx, 1));
            assert!(t1.commit(), "none of the keys that it has seen or missed was changed");
        });
    });
}

#[test]
fn concurrent_transactions_on_long_keys_are_serializable() {
    for_each_concurrent_protocol!(3, |P| {
        let engine = support::engine::<P>();
        let recording = engine.record_history(50_000_000).unwrap();
        let ordered = Database::on(&engine).table::<String, u64>("ordered").create().unwrap();
        let hash =
            Database::on(&engine).table::<(Option<String>, u64), u64>("hash").hash(4).create().unwrap();
        thread::scope(|scope| {
            for number in 0..2 {
                let (engine, ordered, hash) = (&engine, &ordered, &hash);
                scope.spawn(move || {
                    let mut random = Random::stream(3, number);
                    for _ in 0..60 {
                        let again = random.clone();
                        let done = engine.transact(|tx| {
                            random = again.clone();
                            for _ in 0..4 {
                                let key = name(random.below(16));
                                let pair =
                                    (random.chance(0.5).then(|| name(random.below(4))), random.below(2));
                                match random.below(8) {
                                    0 | 1 => _ = ordered.insert_if_absent(tx, key, 1)?,
                                    2 => _ = ordered.delete(tx, key.as_str())?,
                                    3 => _ = ordered.update_if_present(tx, key.as_str(), |row| *row += 1)?,
                                    4 => _ = ordered.collect(tx, ..&*key, Direction::Descending, 3)?,
                                    5 => _ = hash.upsert(tx, pair, 7)?,
                                    6 => _ = hash.delete(tx, &pair)?,
                                    _ => _ = hash.get(tx, &pair)?,
                                }
                            }
                            Ok(())
                        });
                        done.unwrap();
                    }
                });
            }
        });
        let report = hotrow_check::check(&recording.finish()).unwrap();
        assert!(report.is(report.claimed()), "{report}");
    });
}

//! Tree maps: their entries loaded, deferred and dropped, and keys whose comparisons panic or run transactions.

use crate::support;
use crate::support::{Census, for_each_concurrent_protocol, for_each_protocol, panic_of};
use hotrow::sync::atomic::{AtomicBool, AtomicU64, Ordering as Memory};
use hotrow::{Abort, Engine, Occ, TTreeMap};
use std::cell::RefCell;
use std::cmp::Ordering;
use std::ops::Bound;
use std::panic::{AssertUnwindSafe, catch_unwind};

#[test]
fn a_tree_map_is_made_of_entries_and_searched_by_borrowed_keys() {
    let engine = Engine::<Occ>::new();
    let entries =
        [("bob".to_owned(), 1), ("ada".into(), 2), ("bob".into(), 3), ("eve".into(), 4), ("ada".into(), 5)];
    let map = TTreeMap::named(&engine, "ages", entries);
    engine
        .transact(|tx| {
            let mut all = map.iter(tx).map(|one| one.unwrap());
            assert_eq!(all.next(), Some(("ada".to_owned(), 5)));
            assert_eq!(all.next_back(), Some(("eve".to_owned(), 4)));
            assert_eq!(all.next(), Some(("bob".to_owned(), 3)));
            assert_eq!((all.next_back(), all.next()), (None, None));
            drop(all);
            assert_eq!((map.len(tx)?, map.is_empty(tx)?), (3, false));
            assert_eq!(map.range::<str, _>(tx, (Bound::Included("b"), Bound::Unbounded)).count(), 2);
            assert_eq!(map.range(tx, "c".to_owned().."b".to_owned()).count(), 0);
            assert_eq!((map.remove(tx, "bob")?, map.get(tx, "bob")?), (Some(3), None));
            assert!(!map.contains_key(tx, "bob")? && map.contains_key(tx, "eve")?);
            assert!(
                map.insert_if_absent(tx, "bob".into(), 6)? && !map.insert_if_absent(tx, "eve".into(), 7)?
            );
            assert_eq!(map.update_or_insert(tx, "ann".into(), || 8, |age| *age + 1)?, 9);
            Ok(())
        })
        .unwrap();
    let all = engine.transact(|tx| map.iter(tx).collect::<Result<Vec<_>, _>>());
    let expected = [("ada", 5), ("ann", 8), ("bob", 6), ("eve", 4)].map(|(key, age)| (key.to_owned(), age));
    assert_eq!(all, Ok(expected.to_vec()));
}

#[test]
fn lengths_and_ranges_of_a_tree_map_tell_own_insertions_and_removals() {
    let engine = Engine::<Occ>::new();
    let map = TTreeMap::with_entries(&engine, [(10, 1), (20, 2)]);
    engine
        .transact(|tx| {
            map.insert(tx, 30, 3)?;
            assert_eq!(map.len(tx)?, 3);
            assert_eq!((map.range(tx, ..20).count(), map.range(tx, 25..).count()), (1, 1));
            map.remove(tx, &30)?;
            assert_eq!(map.len(tx)?, 2, "the insertion is taken back");
            map.remove(tx, &10)?;
            assert_eq!(map.len(tx)?, 1);
            map.insert(tx, 10, 4)?;
            assert_eq!(map.len(tx)?, 2, "one entry is exchanged for another");
            map.remove(tx, &10)?;
            map.remove(tx, &20)?;
            assert!(map.is_empty(tx)?);
            Ok(())
        })
        .unwrap();
    assert_eq!(engine.transact(|tx| map.len(tx)), Ok(0));
}

#[test]
fn values_of_a_tree_map_are_changed_by_deferred_operations() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let mut map = TTreeMap::with_entries(&engine, [(1, 10), (2, 20)]);
        map.set_rank(3);
        let read = engine
            .transact_deferred(|tx| {
                map.insert(tx, 3, 30)?;
                let read = map.defer_read(tx, &1, |value| *value)?.expect("it is there");
                let changed = map.defer_update(tx, &2, read, |value, other| *value += other)?;
                assert!(changed.is_some() && map.defer_read(tx, &9, |value| *value)?.is_none());
                map.defer_update(tx, &3, read, |value, other| *value += other)?;
                Ok(read)
            })
            .unwrap();
        assert_eq!(read, 10);
        let all = engine.transact(|tx| map.iter(tx).collect::<Result<Vec<_>, _>>());
        assert_eq!(all, Ok(vec![(1, 10), (2, 30), (3, 40)]));
    });
}

#[test]
fn a_history_of_a_tree_map_is_serializable() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let map = TTreeMap::with_entries(&engine, [(1, 10), (2, 20)]);
        let recording = engine.record_history(1 << 20).unwrap();
        engine.transact(|tx| map.insert(tx, 3, 30)).unwrap();
        engine.transact(|tx| map.update(tx, &3, |value| *value += 1)).unwrap();
        engine.transact(|tx| map.remove(tx, &1)).unwrap();
        engine.transact(|tx| map.insert(tx, 1, 11)).unwrap();
        assert_eq!(
            engine.transact(|tx| Ok((map.first(tx)?, map.last(tx)?))),
            Ok((Some((1, 11)), Some((3, 31))))
        );
        let report = hotrow_check::check(&recording.finish()).expect("not malformed");
        assert!(report.is(report.claimed()), "{report}");
    });
}

#[test]
fn entries_that_own_memory_are_dropped_once_whatever_becomes_of_their_transaction() {
    for_each_protocol!(1, |P| {
        let (keys, values) = (Census::default(), Census::default());
        let engine = support::engine::<P>();
        let key = |number: u64| Key { number, _counted: keys.value(number) };
        let map = TTreeMap::with_entries(&engine, (0..5).map(|number| (key(number), values.value(number))));
        for rolls_back in [true, false] {
            let _ = engine.transact(|tx| {
                for number in 3..9 {
                    map.insert(tx, key(number), values.value(number + 10))?;
                }
                let undone = tx.savepoint(|tx| {
                    map.remove(tx, &key(8))?;
                    map.remove(tx, &key(0))?;
                    map.insert(tx, key(20), values.value(20))?;
                    map.update(tx, &key(3), |value| *value = values.value(3))?;
                    Err::<(), _>(Abort::because("undone"))
                })?;
                assert!(undone.is_err());
                for number in [0, 4, 8] {
                    assert!(map.remove(tx, &key(number))?.is_some());
                }
                map.insert(tx, key(4), values.value(24))?;
                if rolls_back { Err(Abort::rollback()) } else { Ok(()) }
            });
        }
        let left = engine.transact(|tx| {
            let entries = map.iter(tx).collect::<Result<Vec<_>, _>>()?;
            Ok(entries.iter().map(|(key, value)| (key.number, value.number)).collect::<Vec<_>>())
        });
        assert_eq!(left, Ok(vec![(1, 1), (2, 2), (3, 13), (4, 24), (5, 15), (6, 16), (7, 17)]));
        values.settle(&engine, 7);
        keys.settle(&engine, 7);
        drop(map);
        values.settle(&engine, 0);
        keys.settle(&engine, 0);
    });
}

/// A key that is counted.
#[derive(Clone)]
struct Key {
    number: u64,
    _counted: support::Counted,
}
support::by_number!(Key);

/// Comparisons with it panic if they are to.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Touchy(u64);

static PANICS: AtomicBool = AtomicBool::new(false);

impl PartialOrd for Touchy {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Touchy {
    fn cmp(&self, other: &Self) -> Ordering {
        assert!(self.0 > 0 && other.0 > 0, "touched");
        assert!(!PANICS.load(Memory::SeqCst), "touched");
        self.0.cmp(&other.0)
    }
}

#[test]
fn a_comparison_of_keys_that_panics_changes_nothing_and_holds_nothing() {
    for_each_concurrent_protocol!(2, |P| {
        let engine = support::engine::<P>();
        let map = TTreeMap::with_entries(&engine, [(Touchy(1), 1), (Touchy(3), 3)]);
        let keys = || {
            engine
                .transact(|tx| map.iter(tx).map(|one| Ok(one?.0.0)).collect::<Result<Vec<_>, Abort>>())
                .unwrap()
        };
        let message = panic_of(|| {
            engine.transact(|tx| {
                map.insert(tx, Touchy(2), 2)?;
                map.insert(tx, Touchy(0), 0)
            })
        });
        assert!(message.contains("touched"), "{message}");
        assert_eq!(keys(), [1, 3]);
        engine
            .transact(|tx| {
                map.insert(tx, Touchy(2), 2)?;
                let inserted = catch_unwind(AssertUnwindSafe(|| map.insert(tx, Touchy(0), 0)));
                let removed = catch_unwind(AssertUnwindSafe(|| map.remove(tx, &Touchy(0))));
                assert!(inserted.is_err() && removed.is_err());
                map.remove(tx, &Touchy(3)).map(drop)
            })
            .unwrap();
        assert_eq!(keys(), [1, 2]);
        // In the commit.
        let lost = catch_unwind(AssertUnwindSafe(|| {
            let mut worker = engine.worker().unwrap();
            let mut open = worker.begin();
            map.insert(&mut open, Touchy(4), 4).unwrap();
            PANICS.store(true, Memory::SeqCst);
            let _ = open.commit();
        }));
        PANICS.store(false, Memory::SeqCst);
        drop(lost);
        let left = keys();
        assert!(left == [1, 2] || left == [1, 2, 4], "{left:?}");
        engine.transact(|tx| map.insert(tx, Touchy(5), 5)).unwrap();
        assert_eq!(keys().last(), Some(&5));
    });
}

/// Comparisons of it run what the thread has in store.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Busy(u64);

hotrow::sync::local! {
    static IN_STORE: RefCell<Option<Box<dyn FnMut()>>> = RefCell::new(None);
}

impl PartialOrd for Busy {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Busy {
    fn cmp(&self, other: &Self) -> Ordering {
        // Not within itself.
        if let Some(mut run) = IN_STORE.with(|store| store.borrow_mut().take()) {
            run();
            IN_STORE.with(|store| *store.borrow_mut() = Some(run));
        }
        self.0.cmp(&other.0)
    }
}

#[test]
fn comparisons_in_which_other_transactions_change_the_map() {
    for_each_concurrent_protocol!(2, |P| {
        let engine = support::impatient::<P>();
        let map =
            std::sync::Arc::new(TTreeMap::with_entries(&engine, (1..8).map(|key| (Busy(key * 10), key))));
        let (mut first, mut second) = (engine.worker().unwrap(), engine.worker().unwrap());
        let inserted = std::sync::Arc::new(AtomicU64::new(0));
        let (shared, count) = (map.clone(), inserted.clone());
        let mut number = 100;
        // Held open, because nothing else may have another transaction of its thread within.
        let mut open = first.begin();
        IN_STORE.with(|store| {
            *store.borrow_mut() = Some(Box::new(move || {
                number += 1;
                if number < 130 && second.transact(|tx| shared.insert(tx, Busy(number), number)).is_ok() {
                    count.fetch_add(1, Memory::SeqCst);
                }
            }));
        });
        let result = (|| {
            let tx: &mut hotrow::Transaction<'_, P> = &mut open;
            map.insert(tx, Busy(1_000), 0)?;
            map.remove(tx, &Busy(20))?;
            map.get(tx, &Busy(30))?;
            map.first(tx)
        })();
        let result = result.is_ok() & open.commit().is_ok();
        IN_STORE.with(|store| *store.borrow_mut() = None);
        let keys =
            engine.transact(|tx| map.iter(tx).map(|one| Ok(one?.0.0)).collect::<Result<Vec<_>, Abort>>());
        let keys = keys.unwrap();
        assert!(keys.is_sorted_by(|one, other| one < other), "{keys:?}");
        assert_eq!((keys.contains(&1_000), keys.contains(&20)), (result, !result));
        let inserted = inserted.load(Memory::SeqCst);
        assert_eq!(keys.len() as u64, 7 + inserted);
        assert_eq!(engine.transact(|tx| map.len(tx)), Ok(keys.len()));
        eprintln!("committed: {result}, and {inserted} within");
    });
}

//! Hash and ordered maps against those of the standard library.

use crate::support::{
    self, for_each_concurrent_protocol, for_each_protocol, on_threads, whatever_time_it_takes,
};
use hotrow::sync::random::Random;
use hotrow::{Abort, Direction, Engine, Error, Protocol, THashMap, TOrderedMap, Transaction};
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// Both kinds of map, with the same entries.
struct Maps<P: Protocol> {
    hashed: THashMap<String, u64, P>,
    sorted: TOrderedMap<u64, String, P>,
}

/// The entries as they should be.
type Model = BTreeMap<u64, u64>;

fn name(key: u64) -> String {
    format!("key {key}")
}

impl<P: Protocol> Maps<P> {
    fn new(engine: &Engine<P>) -> Self {
        Self { hashed: THashMap::new(engine), sorted: TOrderedMap::new(engine) }
    }

    /// Makes a random change in both, and in the model.
    fn change(
        &self,
        tx: &mut Transaction<'_, P>,
        random: &mut Random,
        model: &mut Model,
    ) -> Result<(), Abort> {
        let (key, value) = (random.below(12), random.below(1_000));
        let text = value.to_string();
        match random.below(7) {
            0 => {
                let before = model.insert(key, value);
                assert_eq!(self.hashed.insert(tx, name(key), value)?, before);
                assert_eq!(self.sorted.insert(tx, key, text)?, before.map(|value| value.to_string()));
            }
            1 => {
                let before = model.remove(&key);
                assert_eq!(self.hashed.remove(tx, name(key).as_str())?, before);
                assert_eq!(self.sorted.remove(tx, &key)?, before.map(|value| value.to_string()));
            }
            2 => {
                let is_new = !model.contains_key(&key);
                model.entry(key).or_insert(value);
                assert_eq!(self.hashed.insert_if_absent(tx, name(key), value)?, is_new);
                assert_eq!(self.sorted.insert_if_absent(tx, key, text)?, is_new);
            }
            3 => {
                let expected = model.get_mut(&key).map(|old| std::mem::replace(old, value));
                let replace = |old: &mut u64| std::mem::replace(old, value);
                assert_eq!(self.hashed.update(tx, name(key).as_str(), replace)?, expected);
                let changed = self.sorted.update(tx, &key, |old| *old = text)?;
                assert_eq!(changed, expected.map(drop));
            }
            4 => {
                let sum = *model.entry(key).and_modify(|old| *old += 1).or_insert(1);
                let counted = self.hashed.update_or_insert(
                    tx,
                    name(key),
                    || 0,
                    |count| {
                        *count += 1;
                        *count
                    },
                )?;
                assert_eq!(counted, sum);
                self.sorted.update_or_insert(tx, key, String::new, |text| *text = sum.to_string())?;
            }
            5 => {
                let expected = model.get(&key).copied();
                assert_eq!(self.hashed.get(tx, name(key).as_str())?, expected);
                assert_eq!(self.hashed.contains_key(tx, name(key).as_str())?, expected.is_some());
                assert_eq!(self.sorted.read(tx, &key, |text| text.parse().ok())?.flatten(), expected);
            }
            _ => self.check(tx, model)?,
        }
        Ok(())
    }

    fn check(&self, tx: &mut Transaction<'_, P>, model: &Model) -> Result<(), Abort> {
        let expected: Vec<_> = model.iter().map(|(key, value)| (*key, value.to_string())).collect();
        assert_eq!(self.sorted.collect(tx, .., Direction::Ascending, 100)?, expected);
        assert_eq!(self.sorted.first(tx)?.as_ref(), expected.first());
        assert_eq!(self.sorted.last(tx)?.as_ref(), expected.last());
        assert_eq!(self.sorted.count(tx, 3..9)?, model.range(3..9).count());
        let mut below = Vec::new();
        self.sorted.scan(tx, ..6, Direction::Descending, |key, _| {
            below.push(*key);
            ControlFlow::Continue(())
        })?;
        assert_eq!(below, model.range(..6).rev().map(|(key, _)| *key).collect::<Vec<_>>());
        for key in 0..12 {
            assert_eq!(self.hashed.get(tx, name(key).as_str())?, model.get(&key).copied());
        }
        Ok(())
    }
}

#[test]
fn maps_are_those_of_the_standard_library_through_rollbacks_and_savepoints() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let maps = Maps::new(&engine);
        let mut random = Random::seeded(7);
        let mut committed = Model::new();
        for round in 0..150 {
            let mut model = committed.clone();
            let ended = engine.transact(|tx| {
                for _ in 0..random.below(8) {
                    if random.below(4) > 0 {
                        maps.change(tx, &mut random, &mut model)?;
                        continue;
                    }
                    let mut within = model.clone();
                    let kept = tx.savepoint(|tx| {
                        maps.change(tx, &mut random, &mut within)?;
                        maps.change(tx, &mut random, &mut within)?;
                        if random.below(2) == 0 { Err(Abort::rollback()) } else { Ok(()) }
                    })?;
                    if kept.is_ok() {
                        model = within;
                    }
                }
                maps.check(tx, &model)?;
                if round % 3 == 0 { Err(Abort::rollback()) } else { Ok(()) }
            });
            match ended {
                Ok(()) => committed = model,
                Err(error) => assert!(matches!(error, Error::Rollback(_)), "{error}"),
            }
        }
        assert!(!committed.is_empty());
        engine.transact(|tx| maps.check(tx, &committed)).unwrap();
    });
}

#[test]
fn threads_that_count_in_maps_lose_no_count() {
    const THREADS: u64 = 2;
    const ROUNDS: u64 = 150;
    for_each_concurrent_protocol!(THREADS as u32 + 1, |P| {
        let engine = support::engine::<P>();
        let maps = Maps::new(&engine);
        on_threads(&engine, THREADS, |thread, worker| {
            let mut random = Random::seeded(thread);
            for _ in 0..ROUNDS {
                let key = random.below(6);
                whatever_time_it_takes(|| {
                    worker.transact(|tx| {
                        maps.hashed.update_or_insert(tx, name(key), || 0, |count| *count += 1)?;
                        // The two maps have the same keys, and the text is as long as the count.
                        match maps.sorted.remove(tx, &key)? {
                            Some(text) => maps.sorted.insert(tx, key, text + "x"),
                            None => maps.sorted.insert(tx, key, String::from("x")),
                        }
                    })
                })
                .unwrap();
            }
        });
        let total = engine
            .transact(|tx| {
                let mut total = 0;
                for (key, text) in maps.sorted.collect(tx, .., Direction::Ascending, 100)? {
                    assert_eq!(maps.hashed.get(tx, name(key).as_str())?, Some(text.len() as u64));
                    total += text.len() as u64;
                }
                Ok(total)
            })
            .unwrap();
        assert_eq!(total, THREADS * ROUNDS);
    });
}

#[test]
fn maps_are_filled_outside_of_transactions_and_changed_by_deferred_operations() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let mut map = THashMap::with_entries(&engine, [(1u64, 10u64), (2, 20), (1, 11)]);
        map.extend([(3, 30), (2, 21)]);
        let mut sorted = TOrderedMap::with_entries(&engine, [(2u64, 20u64), (1, 10)]);
        sorted.extend([(2, 21)]);
        let (read, inserted) = engine
            .transact_deferred(|tx| {
                let read = map.defer_read(tx, &1, |value| *value)?;
                map.defer_update(tx, &2, read, |value, other| *value += other.unwrap_or_default())?;
                map.defer_remove(tx, &3)?;
                let inserted = sorted.defer_insert(tx, 7u64, 70u64)?;
                tx.compute((read, inserted), |both| both)
            })
            .unwrap();
        assert_eq!((read, inserted), (Some(11), true));
        let after = engine.transact(|tx| Ok((map.get(tx, &2)?, map.get(tx, &3)?, sorted.last(tx)?)));
        assert_eq!(after, Ok((Some(32), None, Some((7, 70)))));
        let nested = support::panic_of(|| engine.transact(|_| Ok(map.extend([(1, 1)]))));
        assert!(nested.contains("an entry is replaced"), "{nested}");
    });
}

//! Random transactions, committed, rolled back, and undone in part, compared with a `BTreeMap`.

use crate::column_groups::{Warehouse, operate_on_columns};
use crate::support;
use crate::support::{TableKind, for_each_protocol};
use hotrow::sync::random::Random;
use hotrow::{Abort, Database, Direction, Engine, Key, Protocol, Table, Transaction, Value};
use std::collections::BTreeMap;
use std::ops::{Bound, RangeBounds};

type Model<K, R> = BTreeMap<K, R>;

struct Compared<K: Key, R: Value, P: Protocol> {
    table: Table<K, R, P>,
    /// True if it can be scanned.
    ordered: bool,
    key: fn(u64) -> K,
    row: fn(u64) -> R,
    also: Also<K, R, P>,
    keys: u64,
}

/// The number of keys in a narrow range.
const NARROW: u64 = 50;

/// An operation that only some types of rows have.
type Also<K, R, P> =
    fn(&Table<K, R, P>, &mut Transaction<'_, P>, &K, Option<&mut R>, &mut Random) -> Result<(), Abort>;

fn nothing<K: Key, R: Value, P: Protocol>(
    _: &Table<K, R, P>,
    _: &mut Transaction<'_, P>,
    _: &K,
    _: Option<&mut R>,
    _: &mut Random,
) -> Result<(), Abort> {
    Ok(())
}

impl<K: Key + Copy, R: Value + PartialEq + std::fmt::Debug, P: Protocol> Compared<K, R, P> {
    /// One random operation on both.
    fn operate(
        &self,
        tx: &mut Transaction<'_, P>,
        model: &mut Model<K, R>,
        random: &mut Random,
    ) -> Result<(), Abort> {
        let key = (self.key)(random.below(self.keys));
        let row = (self.row)(random.bits());
        let table = &self.table;
        match random.below(if self.ordered { 9 } else { 7 }) {
            0 => {
                let inserted = table.insert_if_absent(tx, key, row.clone())?;
                assert_eq!(inserted, !model.contains_key(&key));
                if inserted {
                    model.insert(key, row);
                }
            }
            1 => assert_eq!(table.upsert(tx, key, row.clone())?, model.insert(key, row).is_none()),
            2 | 3 => {
                let old = table.update_if_present(tx, &key, |old| std::mem::replace(old, row.clone()))?;
                assert_eq!(old, model.get_mut(&key).map(|old| std::mem::replace(old, row)));
            }
            4 | 5 => assert_eq!(table.delete(tx, &key)?, model.remove(&key).is_some()),
            6 => {
                assert_eq!(table.get(tx, &key)?, model.get(&key).cloned());
                (self.also)(table, tx, &key, model.get_mut(&key), random)?;
            }
            _ => self.scan(tx, model, random)?,
        }
        Ok(())
    }

    /// One random operation on both, or several in a part that may be undone.
    fn step(
        &self,
        tx: &mut Transaction<'_, P>,
        model: &mut Model<K, R>,
        random: &mut Random,
        depth: u32,
    ) -> Result<(), Abort> {
        if depth == 3 || !random.chance(0.1) {
            return self.operate(tx, model, random);
        }
        let (before, undone) = (model.clone(), random.chance(0.5));
        let part = tx.savepoint(|tx| {
            for _ in 0..random.between(1, 8) {
                self.step(tx, model, random, depth + 1)?;
            }
            if undone { Err(Abort::rollback()) } else { Ok(()) }
        })?;
        assert_eq!(part.is_err(), undone);
        if undone {
            *model = before;
        }
        Ok(())
    }

    fn scan(
        &self,
        tx: &mut Transaction<'_, P>,
        model: &Model<K, R>,
        random: &mut Random,
    ) -> Result<(), Abort> {
        // Of many keys most ranges are narrow: wide ones would take most of the test's time.
        let is_wide = self.keys <= NARROW || random.chance(0.1);
        let (first, keys) = if is_wide { (0, self.keys) } else { (random.below(self.keys), NARROW) };
        let mut bound = || {
            let kind = random.below(4);
            let key = (self.key)((first + random.below(keys)) % self.keys);
            match kind {
                0 if is_wide => Bound::Unbounded,
                0 | 1 => Bound::Excluded(key),
                _ => Bound::Included(key),
            }
        };
        let range = (bound(), bound());
        let limit = if random.chance(0.3) { 1 + random.below(20) as usize } else { usize::MAX };
        let mut expected: Vec<_> = model.iter().filter(|(key, _)| range.contains(*key)).collect();
        let direction = if random.chance(0.5) {
            Direction::Ascending
        } else {
            expected.reverse();
            Direction::Descending
        };
        expected.truncate(limit);
        let found = self.table.collect(tx, range, direction, limit)?;
        assert!(found.iter().map(|(key, row)| (key, row)).eq(expected), "{range:?} {direction:?} {limit}");
        Ok(())
    }

    fn compare(&self, engine: &Engine<P>, seed: u64, transactions: u64) {
        let mut random = Random::seeded(seed);
        let mut model = Model::new();
        for number in 0..transactions {
            let most = if random.chance(0.1) { 200 } else { 12 };
            let operations = random.between(1, most);
            let commits = random.chance(0.7);
            let start = random.clone();
            let result = engine.transact(|tx| {
                // The same again if it is tried again.
                random = start.clone();
                let mut changed = model.clone();
                for _ in 0..operations {
                    self.step(tx, &mut changed, &mut random, 0)?;
                }
                if commits { Ok(changed) } else { Err(Abort::rollback()) }
            });
            match result {
                Ok(changed) => model = changed,
                Err(error) => assert!(!commits, "seed {seed}, transaction {number}: {error}"),
            }
        }
        for number in 0..self.keys {
            let key = (self.key)(number);
            let found = engine.transact(|tx| self.table.get(tx, &key)).unwrap();
            assert_eq!(found, model.get(&key).cloned(), "seed {seed}, {key:?}");
        }
        if self.ordered {
            let all =
                engine.transact(|tx| self.table.collect(tx, .., Direction::Ascending, usize::MAX)).unwrap();
            assert_eq!(all, model.into_iter().collect::<Vec<_>>(), "seed {seed}");
        }
    }
}

/// Compares a hash table and an ordered one of these keys and rows.
fn compare<K: Key + Copy, R: Value + PartialEq + std::fmt::Debug, P: Protocol>(
    key: fn(u64) -> K,
    row: fn(u64) -> R,
    also: Also<K, R, P>,
    (keys, transactions, seeds): (u64, u64, std::ops::Range<u64>),
) {
    for seed in seeds {
        for kind in TableKind::ALL {
            let engine = support::engine::<P>();
            let table = kind.of(Database::on(&engine).table("model")).create().unwrap();
            let ordered = kind.is_ordered();
            Compared { table, ordered, key, row, also, keys }.compare(&engine, seed, transactions);
        }
    }
}

fn compare_all<P: Protocol>(transactions: u64, seeds: std::ops::Range<u64>) {
    let few = (20, transactions, seeds.clone());
    let many = (2_000, transactions, seeds);
    compare::<u64, u64, P>(|n| n, |bits| bits, nothing, few.clone());
    compare::<u32, Warehouse, P>(|n| n as u32, Warehouse::new, operate_on_columns, few.clone());
    compare::<i16, String, P>(|n| n as i16 - 1_000, |bits| format!("{bits:x}"), nothing, many.clone());
    compare::<(u8, u32), [u32; 5], P>(|n| ((n % 5) as u8, n as u32), |bits| [bits as u32; 5], nothing, many);
    compare::<[u8; 11], Vec<u64>, P>(
        |n| std::array::from_fn(|at| if at < 9 { 7 } else { n.to_be_bytes()[at - 3] }),
        |bits| vec![bits; (bits % 9) as usize],
        nothing,
        few,
    );
}

#[test]
fn random_transactions_do_to_tables_what_they_do_to_a_map() {
    for_each_protocol!(1, |P| {
        compare_all::<P>(150, 0..2);
    });
}

#[test]
#[ignore = "long: run with -- --ignored"]
fn many_random_transactions_do_to_tables_what_they_do_to_a_map() {
    for_each_protocol!(1, |P| {
        compare_all::<P>(2_000, 2..20);
    });
}

//! Random transactions, committed, rolled back, and undone in part, compared with a `BTreeMap`.

use crate::column_groups::{Warehouse, operate_on_columns};
use crate::support;
use crate::support::{TableKind, for_each_protocol};
use hotrow::sync::random::Random;
use hotrow::{Abort, Database, Direction, Engine, Key, Protocol, Table, Transaction, Value};
use std::collections::BTreeMap;
use std::ops::Bound;

/// The map, and what its changes have replaced, so that they can be undone.
struct Model<K, R> {
    rows: BTreeMap<K, R>,
    replaced: Vec<(K, Option<R>)>,
}

impl<K: Ord + Copy, R: Clone> Model<K, R> {
    fn new() -> Self {
        Self { rows: BTreeMap::new(), replaced: Vec::new() }
    }

    /// Inserts, replaces or removes a row, and returns the one before.
    fn set(&mut self, key: K, row: Option<R>) -> Option<R> {
        let before = match row {
            Some(row) => self.rows.insert(key, row),
            None => self.rows.remove(&key),
        };
        self.replaced.push((key, before.clone()));
        before
    }

    /// Undoes all changes after the first so many.
    fn undo(&mut self, changes: usize) {
        for (key, row) in self.replaced.drain(changes..).rev() {
            match row {
                Some(row) => drop(self.rows.insert(key, row)),
                None => drop(self.rows.remove(&key)),
            }
        }
    }

    /// The rows of a range, which may be one of nothing.
    fn range(&self, range: (Bound<K>, Bound<K>)) -> impl DoubleEndedIterator<Item = (&K, &R)> {
        let is_empty = match range {
            (Bound::Excluded(first), Bound::Excluded(last)) => first >= last,
            (
                Bound::Included(first) | Bound::Excluded(first),
                Bound::Included(last) | Bound::Excluded(last),
            ) => first > last,
            _ => false,
        };
        (!is_empty).then(|| self.rows.range(range)).into_iter().flatten()
    }
}

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
                assert_eq!(inserted, !model.rows.contains_key(&key));
                if inserted {
                    model.set(key, Some(row));
                }
            }
            1 => assert_eq!(table.upsert(tx, key, row.clone())?, model.set(key, Some(row)).is_none()),
            2 | 3 => {
                let old = table.update_if_present(tx, &key, |old| std::mem::replace(old, row.clone()))?;
                let expected = if model.rows.contains_key(&key) { model.set(key, Some(row)) } else { None };
                assert_eq!(old, expected);
            }
            4 | 5 => assert_eq!(table.delete(tx, &key)?, model.set(key, None).is_some()),
            6 => {
                let mut found = table.get(tx, &key)?;
                assert_eq!(found.as_ref(), model.rows.get(&key));
                (self.also)(table, tx, &key, found.as_mut(), random)?;
                model.set(key, found);
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
        let (before, undone) = (model.replaced.len(), random.chance(0.5));
        let part = tx.savepoint(|tx| {
            for _ in 0..random.between(1, 8) {
                self.step(tx, model, random, depth + 1)?;
            }
            if undone { Err(Abort::rollback()) } else { Ok(()) }
        })?;
        assert_eq!(part.is_err(), undone);
        if undone {
            model.undo(before);
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
        let (direction, expected): (_, Vec<_>) = if random.chance(0.5) {
            (Direction::Ascending, model.range(range).take(limit).collect())
        } else {
            (Direction::Descending, model.range(range).rev().take(limit).collect())
        };
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
                model.undo(0);
                for _ in 0..operations {
                    self.step(tx, &mut model, &mut random, 0)?;
                }
                if commits { Ok(()) } else { Err(Abort::rollback()) }
            });
            match result {
                Ok(()) => model.replaced.clear(),
                Err(error) => {
                    assert!(!commits, "seed {seed}, transaction {number}: {error}");
                    model.undo(0);
                }
            }
        }
        for number in 0..self.keys {
            let key = (self.key)(number);
            let found = engine.transact(|tx| self.table.get(tx, &key)).unwrap();
            assert_eq!(found, model.rows.get(&key).cloned(), "seed {seed}, {key:?}");
        }
        if self.ordered {
            let all =
                engine.transact(|tx| self.table.collect(tx, .., Direction::Ascending, usize::MAX)).unwrap();
            assert_eq!(all, model.rows.into_iter().collect::<Vec<_>>(), "seed {seed}");
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

/// Tests of these keys and rows, of few keys or many: short ones of all, and long ones.
macro_rules! models {
    ($($name:ident, $long:ident: $key:ty => $row:ty, $keys:expr, $make_key:expr, $make_row:expr, $also:expr;)*) => {$(
        #[test]
        fn $name() {
            for_each_protocol!(1, |P| {
                compare::<$key, $row, P>($make_key, $make_row, $also, ($keys, 100, 0..2));
            });
        }

        #[test]
        #[ignore = "long: run with -- --ignored"]
        fn $long() {
            for_each_protocol!(1, |P| {
                compare::<$key, $row, P>($make_key, $make_row, $also, ($keys, 2_000, 2..20));
            });
        }
    )*};
}

models! {
    tables_of_few_numbers_do_what_a_map_does, tables_of_few_numbers_do_what_a_map_does_in_many_transactions:
        u64 => u64, 20, |n| n, |bits| bits, nothing;
    tables_of_grouped_columns_do_what_a_map_does, tables_of_grouped_columns_do_what_a_map_does_in_many_transactions:
        u32 => Warehouse, 20, |n| n as u32, Warehouse::new, operate_on_columns;
    tables_of_many_texts_do_what_a_map_does, tables_of_many_texts_do_what_a_map_does_in_many_transactions:
        i16 => String, 600, |n| n as i16 - 300, |bits| format!("{bits:x}"), nothing;
    tables_of_pairs_do_what_a_map_does, tables_of_pairs_do_what_a_map_does_in_many_transactions:
        (u8, u32) => [u32; 5], 600, |n| ((n % 5) as u8, n as u32), |bits| [bits as u32; 5], nothing;
    tables_of_long_keys_do_what_a_map_does, tables_of_long_keys_do_what_a_map_does_in_many_transactions:
        [u8; 11] => Vec<u64>, 20,
        |n| std::array::from_fn(|at| if at < 9 { 7 } else { n.to_be_bytes()[at - 3] }),
        |bits| vec![bits; (bits % 9) as usize], nothing;
}

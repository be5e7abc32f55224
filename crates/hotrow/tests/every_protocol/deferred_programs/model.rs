//! What random procedures do, in plain maps.

use super::{KEYS, Program, Source, Step, holds, mix, row};
use std::collections::BTreeMap;

/// The same in plain maps.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Model {
    rows: [BTreeMap<u64, u64>; 3],
    queue: BTreeMap<(u64, u64), u64>,
}

impl Model {
    pub(super) fn new() -> Self {
        let rows = |row: fn(u64) -> Option<u64>| (0..KEYS).filter_map(|key| Some((key, row(key)?))).collect();
        let rows = [
            rows(|key| Some(key * 3 + 1)),
            rows(|key| (key % 2 == 0).then_some(key + 7)),
            rows(|key| (key % 3 != 1).then_some(key)),
        ];
        Self { rows, queue: BTreeMap::new() }
    }

    /// What each operation gives; `None` if a condition does not hold, and then nothing has changed.
    pub(super) fn run(&mut self, program: &Program) -> Option<Vec<u64>> {
        let before = self.clone();
        let mut so_far = Vec::new();
        for step in &program.0 {
            let Some(number) = self.step(*step, &so_far) else {
                *self = before;
                return None;
            };
            so_far.push(number);
        }
        Some(so_far)
    }

    fn step(&mut self, step: Step, so_far: &[u64]) -> Option<u64> {
        let get = |source: Source| match source {
            Source::Known(number) => number,
            Source::Earlier(at) => so_far[at],
        };
        let key_of = |source| get(source) % KEYS;
        let Self { rows, queue } = self;
        Some(match step {
            Step::Read { table, key } => row(rows[table].get(&key_of(key)).copied()),
            Step::Add { table, key, amount } => row(rows[table].get_mut(&key_of(key)).map(|row| {
                *row = (*row * 2 + get(amount)) % 997;
                *row
            })),
            Step::AddToEach { table, key, amount } => {
                let mut sum = 0;
                for key in [key_of(key), key_of(key) + 1] {
                    if let Some(row) = rows[table].get_mut(&key) {
                        *row = (*row * 3 + get(amount)) % 997;
                        mix(&mut sum, *row);
                    }
                }
                sum
            }
            Step::Replace { table, key, row } => {
                rows[table].get_mut(&key_of(key)).map(|old| *old = get(row)).is_some().into()
            }
            Step::Delete { table, key } => rows[table].remove(&key_of(key)).is_some().into(),
            Step::Insert { table, key, row } => insert(&mut rows[table], key_of(key), get(row)),
            Step::Enqueue { group, number, .. } => insert(queue, (group, get(number)), get(number)),
            Step::Take { group } => {
                let first = queue.range((group, 0)..(group + 1, 0)).next().map(|(key, _)| *key);
                row(first.map(|key| {
                    queue.remove(&key);
                    key.1
                }))
            }
            Step::Unqueue { group, number } => queue.remove(&(group, get(number))).is_some().into(),
            Step::Require { holds: source } if holds(get(source)) => 0,
            Step::Require { .. } => return None,
            Step::Scan { table } => sum(rows[table].iter().map(|(key, row)| key + row)),
            Step::ScanDigits => {
                let mut entries: Vec<_> = rows[1].iter().map(|(key, row)| (row % 10, *key)).collect();
                entries.sort_unstable();
                sum(entries.into_iter().map(|(digit, key)| digit * 10 + key))
            }
            Step::ScanQueue => sum(queue.iter().map(|((group, number), row)| group + number + row)),
            Step::Force { value } => get(value),
        })
    }
}

fn insert<K: Ord>(rows: &mut BTreeMap<K, u64>, key: K, row: u64) -> u64 {
    let is_new = !rows.contains_key(&key);
    rows.entry(key).or_insert(row);
    is_new.into()
}

fn sum(numbers: impl Iterator<Item = u64>) -> u64 {
    numbers.fold(0, |mut sum, number| {
        mix(&mut sum, number);
        sum
    })
}

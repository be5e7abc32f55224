//! The model of programs, in plain maps: the reference, with nothing of the library in it.

use super::program::{
    ELEMENTS, GROUPS, MISSING, NUMBERS_IN_QUEUE, Program, Source, TABLES, What, added, changed, holds, mix,
    signed, unsigned,
};
use hotrow::Direction;
use std::collections::BTreeMap;

/// The state of everything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Model {
    pub(crate) rows: [BTreeMap<u64, u64>; TABLES],
    pub(crate) queue: BTreeMap<(u64, u64), u64>,
    pub(crate) value: u64,
    pub(crate) elements: [u64; ELEMENTS as usize],
    pub(crate) counter: i64,
    /// How many keys there are.
    keys: u64,
}

impl Model {
    /// A state to begin with, in which every third row is missing.
    pub(crate) fn new(keys: u64) -> Self {
        let rows = |table: u64| {
            (0..keys)
                .filter(|key| !(key + table).is_multiple_of(3))
                .map(|key| (key, key * 3 + table))
                .collect()
        };
        Self {
            rows: std::array::from_fn(|table| rows(table as u64)),
            queue: (0..GROUPS).map(|group| ((group, 0), group)).collect(),
            value: 1,
            elements: std::array::from_fn(|index| index as u64),
            counter: 0,
            keys,
        }
    }

    /// The state with one of its parts empty.
    pub(crate) fn without(&self, part: usize) -> Self {
        let mut smaller = self.clone();
        match smaller.rows.get_mut(part) {
            Some(rows) => rows.clear(),
            None => smaller.queue.clear(),
        }
        smaller
    }

    /// The entries of a table's secondary index.
    pub(crate) fn entries(&self, table: usize) -> Vec<(u64, u64)> {
        let mut entries: Vec<_> = self.rows[table].iter().map(|(key, row)| (row % 10, *key)).collect();
        entries.sort_unstable();
        entries
    }

    /// Runs a program and returns the result of each operation; `None` if one fails, and then nothing has changed.
    pub(crate) fn run(&mut self, program: &Program) -> Option<Vec<u64>> {
        let before = program.may_fail().then(|| self.clone());
        let mut so_far = Vec::with_capacity(program.steps.len());
        for step in &program.steps {
            match self.step(step.what, &so_far) {
                Some(number) => so_far.push(number),
                None => {
                    *self = before.expect("only programs that may fail do");
                    return None;
                }
            }
        }
        Some(so_far)
    }

    fn step(&mut self, what: What, so_far: &[u64]) -> Option<u64> {
        let get = |source: Source| match source {
            Source::Known(number) => number,
            Source::Earlier(at) => so_far[at],
        };
        let keys = self.keys;
        let key_of = |source| get(source) % keys;
        let Self { rows, queue, .. } = self;
        Some(match what {
            What::Read { table, key } => row(rows[table].get(&key_of(key)).copied()),
            What::Add { table, key, amount } => row(rows[table].get_mut(&key_of(key)).map(|row| {
                *row = changed(*row, get(amount));
                *row
            })),
            What::AddToEach { table, key, amount } => {
                let mut sum = 0;
                for key in [key_of(key), key_of(key) + 1] {
                    if let Some(row) = rows[table].get_mut(&key) {
                        *row = changed(*row, get(amount));
                        mix(&mut sum, *row);
                    }
                }
                sum
            }
            What::Commute { table, key, amount } => {
                rows[table].entry(key_of(key)).and_modify(|row| *row = added(*row, get(amount)));
                0
            }
            What::CommuteEach { table, key, amount } => {
                for key in [key_of(key), key_of(key) + 1] {
                    rows[table].entry(key).and_modify(|row| *row = added(*row, get(amount)));
                }
                0
            }
            What::Replace { table, key, row } => {
                rows[table].get_mut(&key_of(key)).map(|old| *old = get(row)).is_some().into()
            }
            What::Delete { table, key } => rows[table].remove(&key_of(key)).is_some().into(),
            What::Insert { table, key, row, .. } => insert(&mut rows[table], key_of(key), get(row)),
            What::Upsert { table, key, row } => rows[table].insert(key_of(key), get(row)).is_none().into(),
            What::TakeRow { table } => row(rows[table].pop_first().map(|(key, _)| key)),
            What::Scan { table, from, limit, direction } => {
                let mut found: Vec<_> = rows[table].range(from..).map(|(key, row)| key + row).collect();
                if direction == Direction::Descending {
                    found.reverse();
                }
                sum(found.into_iter().take(limit as usize))
            }
            What::ScanIndex { table, limit, direction } => {
                let mut found = self.entries(table);
                if direction == Direction::Descending {
                    found.reverse();
                }
                sum(found.into_iter().take(limit as usize).map(|(digit, key)| digit * 10 + key))
            }
            What::Enqueue { group, number, row, .. } => {
                insert(queue, (group, get(number) % NUMBERS_IN_QUEUE), get(row))
            }
            What::Take { group } => {
                let first = queue.range((group, 0)..(group + 1, 0)).next().map(|(key, _)| *key);
                row(first.map(|key| {
                    queue.remove(&key);
                    key.1
                }))
            }
            What::Unqueue { group, number } => {
                queue.remove(&(group, get(number) % NUMBERS_IN_QUEUE)).is_some().into()
            }
            What::ScanQueue => sum(queue.iter().map(|((group, number), row)| group + number + row)),
            What::Force { value } => get(value),
            What::Require { holds: source } | What::Panic { unless: source } => {
                holds(get(source)).then_some(0)?
            }
            What::PanicInChange { table, key, amount } => match rows[table].get_mut(&key_of(key)) {
                Some(row) => {
                    *row = changed(*row, get(amount));
                    holds(*row).then_some(*row)?
                }
                None => MISSING,
            },
            What::ReadBox => self.value,
            What::SetBox { value } => {
                self.value = get(value);
                0
            }
            What::AddToBox { amount } => {
                self.value = changed(self.value, get(amount));
                self.value
            }
            What::ReadElement { index } => self.elements[index as usize],
            What::SetElement { index, value } => {
                self.elements[index as usize] = get(value);
                0
            }
            What::AddToElement { index, amount } => {
                let element = &mut self.elements[index as usize];
                *element = changed(*element, get(amount));
                *element
            }
            What::AddToCounter { amount } => {
                self.counter += signed(get(amount));
                0
            }
            What::SetCounter { value } => {
                self.counter = signed(get(value));
                0
            }
            What::GetCounter => unsigned(self.counter),
            What::TestCounter { bound } => (self.counter >= signed(bound)).into(),
        })
    }
}

/// The row found, as a number.
pub(crate) fn row(found: Option<u64>) -> u64 {
    found.unwrap_or(MISSING)
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

//! Rows as values of a store.
//!
//! A row has a *part* for its main columns, and one for each [group](hotrow_core::Value) of columns: keys of their own, so that
//! transactions that touch different groups do not conflict. All parts are there, or none.
//!
//! The main part is a byte 1 (a tombstone has none), then the key, then the runs of main columns that follow one another in the row,
//! each behind the number of its bytes. The part of a group is a byte 1 and its runs, or, if its only column is an integer, a
//! [counter](crate::counters). A row whose type has no groups is one run.

use crate::counters::CounterType;
use hotrow_core::Value;
use hotrow_core::column_groups::ColumnGroups;
use hotrow_stored::{Malformed, Reader, Schema, StoredForm, Type, Writer};
use hotrow_sync::OnceLock;
use hotrow_tables::inside::GroupsOf;
use std::marker::PhantomData;
use std::ops::Range;

/// The first byte of a part that is no counter.
const PRESENT: u8 = 1;

/// The values of some parts of a row; `None` for those that were not read.
pub(crate) type Parts = Vec<Option<Vec<u8>>>;

/// Columns of one part that follow one another.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Run {
    part: usize,
    columns: Range<usize>,
}

/// The division of rows into parts, whatever their type.
#[derive(Debug, Clone)]
pub(crate) struct Division {
    /// The runs, in the order of the row's columns.
    runs: Vec<Run>,
    /// For each part its type, if it is a counter.
    counters: Vec<Option<CounterType>>,
}

impl Division {
    /// Rows that are one part.
    pub(crate) fn whole() -> Self {
        Self { runs: vec![Run { part: 0, columns: 0..0 }], counters: vec![None] }
    }

    /// Rows of which each column is of the part given. They are one part if no column is given.
    pub(crate) fn of(row: &Schema, parts: &[u32]) -> Self {
        let Some(most) = parts.iter().max() else { return Self::whole() };
        let mut runs: Vec<Run> = Vec::new();
        for (column, part) in parts.iter().enumerate() {
            match runs.last_mut() {
                Some(run) if run.part == *part as usize => run.columns.end += 1,
                _ => runs.push(Run { part: *part as usize, columns: column..column + 1 }),
            }
        }
        let kinds: Vec<Option<CounterType>> = row.field_types().map_or_else(Vec::new, |types| {
            let counter = |column: &Type| match column {
                Type::Plain(kind) => CounterType::stored_as(*kind),
                _ => None,
            };
            types.map(counter).collect()
        });
        let counter = |part: u32| {
            let mut columns = (0..parts.len()).filter(|column| parts[*column] == part);
            match (columns.next(), columns.next()) {
                (Some(only), None) if part > 0 => kinds.get(only).copied().flatten(),
                _ => None,
            }
        };
        Self { runs, counters: (0..=*most).map(counter).collect() }
    }

    /// The number of parts.
    pub(crate) fn parts(&self) -> usize {
        self.counters.len()
    }

    /// The part of each column, by which the type of a table is known again. Empty if rows are one part.
    pub(crate) fn shape(&self) -> Vec<u32> {
        let of_run = |run: &Run| run.columns.clone().map(|_| run.part as u32).collect::<Vec<_>>();
        self.runs.iter().flat_map(of_run).collect()
    }

    /// The values of all parts of a row, by the bytes of its key and of its runs.
    ///
    /// # Errors
    ///
    /// The reason for which it cannot be stored.
    pub(crate) fn split(&self, key: &[u8], runs: &[impl AsRef<[u8]>]) -> Result<Vec<Vec<u8>>, String> {
        let mut parts = vec![vec![PRESENT]; self.parts()];
        put_counted(&mut parts[0], key)?;
        for (run, bytes) in self.runs.iter().zip(runs) {
            match &self.counters[run.part] {
                Some(counter) => {
                    let value = counter.value(bytes.as_ref());
                    parts[run.part] = value.map_err(|malformed| malformed.to_string())?;
                }
                None => put_counted(&mut parts[run.part], bytes.as_ref())?,
            }
        }
        Ok(parts)
    }

    /// The bytes of the runs that these parts have, with those of another row for parts that are not at hand.
    ///
    /// # Errors
    ///
    /// [`Malformed`] if they hold none.
    pub(crate) fn join(
        &self,
        parts: &Parts,
        other: Option<&Vec<Vec<u8>>>,
    ) -> Result<Vec<Vec<u8>>, Malformed> {
        let mut left = Vec::with_capacity(parts.len());
        for (number, part) in parts.iter().enumerate() {
            left.push(match part {
                Some(bytes) if self.counters[number].is_none() => begin(bytes, number)?,
                _ => Runs(&[]),
            });
        }
        let mut runs = Vec::with_capacity(self.runs.len());
        for (at, run) in self.runs.iter().enumerate() {
            let bytes = match (&parts[run.part], &self.counters[run.part]) {
                (None, _) => other.ok_or_else(|| Malformed::new("a row lacks a part"))?[at].clone(),
                (Some(value), Some(counter)) => counter.column(value)?,
                (Some(_), None) => left[run.part].next()?.to_vec(),
            };
            runs.push(bytes);
        }
        if left.iter().any(|left| !left.0.is_empty()) {
            return Err(Malformed::new("a row has more columns"));
        }
        Ok(runs)
    }
}

/// Writes rows as values, and reads them.
pub(crate) struct RowForm<K, R> {
    key: StoredForm<K>,
    row: StoredForm<R>,
    division: Division,
    /// The bytes of the runs of any row that there has been: a row of which not all parts are at hand has the others' columns from it.
    any_row: OnceLock<Vec<Vec<u8>>>,
    types: PhantomData<fn() -> (K, R)>,
}

impl<K, R> RowForm<K, R> {
    /// The form of rows that are one part.
    pub(crate) fn whole(key: StoredForm<K>, row: StoredForm<R>) -> Self {
        Self::divided(key, row, Division::whole())
    }

    fn divided(key: StoredForm<K>, row: StoredForm<R>, division: Division) -> Self {
        Self { key, row, division, any_row: OnceLock::new(), types: PhantomData }
    }

    /// The schemas of keys and rows.
    pub(crate) fn schemas(&self) -> (Schema, Schema) {
        (self.key.schema(), self.row.schema())
    }

    /// The number of parts.
    pub(crate) fn parts(&self) -> usize {
        self.division.parts()
    }

    /// As [`Division::shape`].
    pub(crate) fn shape(&self) -> Vec<u32> {
        self.division.shape()
    }

    /// The type of a part, if it is a counter.
    pub(crate) fn counter(&self, part: usize) -> Option<&CounterType> {
        self.division.counters[part].as_ref()
    }

    /// True if a row can be read of which not all parts are at hand.
    pub(crate) fn knows_a_row(&self) -> bool {
        self.any_row.get().is_some()
    }

    /// The bytes of a row's runs.
    fn runs_of(&self, row: &R) -> Result<Vec<Vec<u8>>, String> {
        let bytes = |run: &Run| {
            let mut bytes = Vec::new();
            Writer::write(&mut bytes, |to| match run.columns.is_empty() {
                true => (self.row.put)(row, to),
                false => run.columns.clone().for_each(|column| (self.row.put_field)(row, column, to)),
            })?;
            Ok(bytes)
        };
        self.division.runs.iter().map(bytes).collect()
    }

    /// The values of all parts of a row.
    ///
    /// # Errors
    ///
    /// The reason for which it cannot be stored.
    pub(crate) fn encode(&self, key: &K, row: &R) -> Result<Vec<Vec<u8>>, String> {
        let mut key_bytes = Vec::new();
        Writer::write(&mut key_bytes, |to| (self.key.put)(key, to))?;
        let runs = self.runs_of(row)?;
        let parts = self.division.split(&key_bytes, &runs)?;
        self.any_row.get_or_init(|| runs);
        Ok(parts)
    }

    /// The row that has these parts. The columns of others are those of some other row.
    ///
    /// # Errors
    ///
    /// [`Malformed`] if they hold none.
    pub(crate) fn decode(&self, parts: &Parts) -> Result<R, Malformed> {
        let runs = self.division.join(parts, self.any_row.get())?;
        let row = Reader::read(&runs.concat(), self.row.get)?;
        if parts.iter().all(Option::is_some) {
            self.any_row.get_or_init(|| runs);
        }
        Ok(row)
    }

    /// The key that a main part holds.
    ///
    /// # Errors
    ///
    /// [`Malformed`] if it holds none.
    pub(crate) fn key(&self, main: &[u8]) -> Result<K, Malformed> {
        Reader::read(key_bytes(main)?, self.key.get)
    }
}

impl<K, R: Value> RowForm<K, R> {
    /// The form of rows that have a part for each group of their type. One that is not stored by its fields is one part.
    pub(crate) fn of(key: StoredForm<K>, row: StoredForm<R>) -> Self {
        let schema = row.schema();
        let names = R::FIELDS.iter().map(|field| field.name);
        let has_fields = row.fields == R::FIELDS.len()
            && schema.field_names().is_some_and(|stored| stored.eq(names))
            && !GroupsOf::<R>::NAMES.is_empty();
        if !has_fields {
            return Self::whole(key, row);
        }
        let part_of = |offset: usize| {
            let group = GroupsOf::<R>::COLUMNS.iter().find(|column| column.row == offset);
            group.map_or(0, |column| column.group as u32 + 1)
        };
        let parts: Vec<u32> = R::FIELDS.iter().map(|field| part_of(field.offset)).collect();
        Self::divided(key, row, Division::of(&schema, &parts))
    }
}

/// Runs, each behind the number of its bytes.
struct Runs<'b>(&'b [u8]);

impl<'b> Runs<'b> {
    fn next(&mut self) -> Result<&'b [u8], Malformed> {
        let (run, rest) = Reader::read(self.0, |from| {
            let count = from.count()?;
            let run = from.take(count)?;
            Ok((run, from.take(from.rest().len())?))
        })?;
        self.0 = rest;
        Ok(run)
    }
}

fn runs_behind_head(part: &[u8]) -> Result<Runs<'_>, Malformed> {
    match part.split_first() {
        Some((&PRESENT, runs)) => Ok(Runs(runs)),
        _ => Err(Malformed::new("a row has an unknown form")),
    }
}

/// The runs of a part that is no counter.
fn begin(bytes: &[u8], part: usize) -> Result<Runs<'_>, Malformed> {
    let mut runs = runs_behind_head(bytes)?;
    if part == 0 {
        runs.next()?;
    }
    Ok(runs)
}

/// The bytes of the key that a main part holds.
///
/// # Errors
///
/// [`Malformed`] if it holds none.
pub(crate) fn key_bytes(main: &[u8]) -> Result<&[u8], Malformed> {
    runs_behind_head(main)?.next()
}

fn put_counted(out: &mut Vec<u8>, bytes: &[u8]) -> Result<(), String> {
    Writer::write(out, |to| {
        to.number(bytes.len() as u64);
        to.bytes(bytes);
    })
}

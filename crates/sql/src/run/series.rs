//! Functions that give rows, and sequences.

use super::{Run, Stop};
use crate::catalog::Sequence;
use crate::error::SqlError;
use crate::plan::select::SeriesKind;
use crate::row::Row;
use crate::values::{self, Datum, Operator};
use std::cmp::Ordering;
use std::sync::Arc;

impl Run<'_, '_> {
    /// The rows of a function.
    pub(super) fn series(&mut self, kind: SeriesKind, arguments: &[Datum]) -> Result<Vec<Row>, Stop> {
        if kind == SeriesKind::One {
            return Ok(vec![Row::new(arguments.to_vec())]);
        }
        if arguments.iter().any(Datum::is_null) {
            return Ok(Vec::new());
        }
        match (kind, arguments) {
            (SeriesKind::Unnest, [Datum::Array(elements)]) => {
                Ok(elements.iter().map(|element| Row::new(vec![element.clone()])).collect())
            }
            (SeriesKind::Subscripts, [Datum::Array(elements), Datum::Int4(dimension)]) => {
                let count = if *dimension == 1 { elements.len() } else { 0 };
                Ok((1..=count as i32).map(|at| Row::new(vec![Datum::Int4(at)])).collect())
            }
            (SeriesKind::Generate, [from, to, rest @ ..]) => {
                let one = match from {
                    Datum::Int8(_) => Datum::Int8(1),
                    Datum::Numeric(_) => Datum::numeric(1.into()),
                    _ => Datum::Int4(1),
                };
                self.generate(from.clone(), to, rest.first().unwrap_or(&one))
            }
            _ => Ok(Vec::new()),
        }
    }

    fn generate(&mut self, from: Datum, to: &Datum, step: &Datum) -> Result<Vec<Row>, Stop> {
        let next = values::binary_operator(Operator::Add, &from, step)?;
        let direction = values::compare(&next, &from);
        if direction == Ordering::Equal {
            return Err(SqlError::new("22023", "step size cannot equal zero").into());
        }
        let mut rows = Vec::new();
        let mut value = from;
        // A step beyond the type's range is the end.
        while values::compare(&value, to) != direction {
            self.step()?;
            self.keep(std::slice::from_ref(&value))?;
            rows.push(Row::new(vec![value.clone()]));
            match values::binary_operator(Operator::Add, &value, step) {
                Ok(next) => value = next,
                Err(_) => break,
            }
        }
        Ok(rows)
    }

    fn sequence(&self, number: &Datum) -> Result<Arc<Sequence>, Stop> {
        let oid = match number {
            Datum::Oid(oid) => *oid,
            other => other.as_integer().and_then(|oid| u32::try_from(oid).ok()).unwrap_or(0),
        };
        match self.catalog.get(oid) {
            Some(crate::catalog::Entry::Sequence(sequence)) => Ok(sequence.clone()),
            Some(entry) => {
                Err(SqlError::new("42809", format!("\"{}\" is not a sequence", entry.name())).into())
            }
            None => Err(SqlError::new("42P01", format!("relation with OID {oid} does not exist")).into()),
        }
    }

    /// The next value of a sequence. It is drawn for good: a rollback does not give it back.
    pub(super) fn next_value(&mut self, number: &Datum) -> Result<Datum, Stop> {
        if number.is_null() {
            return Ok(Datum::Null);
        }
        let sequence = self.sequence(number)?;
        let drawn = self.shared.storages.sequence(sequence.storage)?.next(self.tx);
        let value = i64::try_from(drawn)
            .ok()
            .and_then(|drawn| drawn.checked_mul(sequence.increment))
            .and_then(|distance| sequence.base.checked_add(distance))
            .filter(|value| (sequence.min..=sequence.max).contains(value));
        let Some(value) = value else {
            let (bound, limit) =
                if sequence.increment > 0 { ("maximum", sequence.max) } else { ("minimum", sequence.min) };
            let message =
                format!("nextval: reached {bound} value of sequence \"{}\" ({limit})", sequence.name);
            return Err(SqlError::new("2200H", message).into());
        };
        self.session.sequence_values.borrow_mut().insert(sequence.oid, value);
        self.session.last_sequence.set(Some(sequence.oid));
        Ok(Datum::Int8(value))
    }

    /// The last value that this connection has drawn from a sequence.
    pub(super) fn current_value(&mut self, number: &Datum) -> Result<Datum, Stop> {
        if number.is_null() {
            return Ok(Datum::Null);
        }
        let sequence = self.sequence(number)?;
        let value = self.session.sequence_values.borrow().get(&sequence.oid).copied();
        let value = value.ok_or_else(|| {
            let name = &sequence.name;
            SqlError::new(
                "55000",
                format!("currval of sequence \"{name}\" is not yet defined in this session"),
            )
        })?;
        Ok(Datum::Int8(value))
    }

    /// The last value that this connection has drawn from any sequence.
    pub(super) fn last_value(&mut self) -> Result<Datum, Stop> {
        let last = self.session.last_sequence.get();
        let value = last.and_then(|oid| self.session.sequence_values.borrow().get(&oid).copied());
        Ok(Datum::Int8(
            value.ok_or_else(|| SqlError::new("55000", "lastval is not yet defined in this session"))?,
        ))
    }

    /// Sets a sequence's next value: it gets a new storage, so this one change of a sequence is undone by a rollback.
    pub(super) fn set_value(&mut self, arguments: &[Datum]) -> Result<Datum, Stop> {
        let [number, value, ..] = arguments else { return Ok(Datum::Null) };
        let Some(value) = value.as_integer() else { return Ok(Datum::Null) };
        let is_called = arguments.get(2).is_none_or(|called| *called == Datum::Bool(true));
        let sequence = self.sequence(number)?;
        if !(sequence.min..=sequence.max).contains(&value) {
            let (name, min, max) = (&sequence.name, sequence.min, sequence.max);
            let message =
                format!("setval: value {value} is out of bounds for sequence \"{name}\" ({min}..{max})");
            return Err(SqlError::new("22003", message).into());
        }
        let storage = self.shared.storages.draw(self.tx);
        self.changes.borrow_mut().touch(storage);
        self.changes.borrow_mut().touch(sequence.storage);
        let base = if is_called { value.saturating_add(sequence.increment) } else { value };
        let changed = Sequence { base, storage, ..(*sequence).clone() };
        self.change_catalog(|catalog| {
            catalog.put(crate::catalog::Entry::Sequence(Arc::new(changed)));
            Ok(vec![sequence.oid])
        })?;
        if is_called {
            self.session.sequence_values.borrow_mut().insert(sequence.oid, value);
        }
        Ok(Datum::Int8(value))
    }
}

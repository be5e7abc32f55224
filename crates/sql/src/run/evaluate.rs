//! Values of expressions.

use super::{Run, Stop, Tuple};
use crate::error::SqlError;
use crate::plan::expression::{Expression, Kind, Place};
use crate::plan::is_registered;
use crate::row::Row;
use crate::values::{self, Datum, Operation, Type};
use std::cmp::Ordering;

type Value = Result<Datum, Stop>;

impl Run<'_, '_> {
    /// The value of an expression for a tuple.
    pub(crate) fn evaluate(&mut self, expression: &Expression, tuple: &[Row]) -> Value {
        Ok(match &expression.kind {
            Kind::Constant(value) => value.clone(),
            Kind::Parameter(number) => self.parameters.get(*number).cloned().unwrap_or(Datum::Null),
            Kind::Column(place) => at(tuple, *place),
            Kind::Outer(level, place) => {
                let outer = self.outer.len().checked_sub(*level).and_then(|level| self.outer.get(level));
                outer.map_or(Datum::Null, |tuple| at(tuple, *place))
            }
            Kind::Operator(operation, both) => {
                let (left, right) = (self.evaluate(&both[0], tuple)?, self.evaluate(&both[1], tuple)?);
                operation.apply(&left, &right)?
            }
            Kind::Call(function, arguments) => {
                let mut given = Vec::with_capacity(arguments.len());
                for argument in arguments {
                    given.push(self.evaluate(argument, tuple)?);
                }
                if function.is_strict() && given.iter().any(Datum::is_null) {
                    return Ok(Datum::Null);
                }
                function.call(&given, &self.environment())?
            }
            Kind::Prefix(operation, inner) => operation.apply(&self.evaluate(inner, tuple)?)?,
            Kind::And(parts) => self.all(parts, tuple, true)?,
            Kind::Or(parts) => self.all(parts, tuple, false)?,
            Kind::Not(inner) => match self.evaluate(inner, tuple)? {
                Datum::Bool(value) => Datum::Bool(!value),
                _ => Datum::Null,
            },
            Kind::IsNull(inner) => Datum::Bool(self.evaluate(inner, tuple)?.is_null()),
            Kind::IsTrue(inner, truth) => Datum::Bool(self.evaluate(inner, tuple)? == Datum::Bool(*truth)),
            Kind::IsDistinct(operation, both) => {
                let (left, right) = (self.evaluate(&both[0], tuple)?, self.evaluate(&both[1], tuple)?);
                Datum::Bool(match (left.is_null(), right.is_null()) {
                    (true, true) => false,
                    (false, false) => operation.apply(&left, &right)? != Datum::Bool(true),
                    _ => true,
                })
            }
            Kind::Case(conditions, otherwise) => {
                for (condition, value) in conditions {
                    if self.holds(condition, tuple)? {
                        return self.evaluate(value, tuple);
                    }
                }
                match otherwise {
                    Some(otherwise) => self.evaluate(otherwise, tuple)?,
                    None => Datum::Null,
                }
            }
            Kind::Coalesce(all) => {
                for one in all {
                    let value = self.evaluate(one, tuple)?;
                    if !value.is_null() {
                        return Ok(value);
                    }
                }
                Datum::Null
            }
            Kind::Extreme(all, largest) => self.extreme(all, *largest, tuple)?,
            Kind::NullIf(operation, both) => {
                let (left, right) = (self.evaluate(&both[0], tuple)?, self.evaluate(&both[1], tuple)?);
                if operation.apply(&left, &right)? == Datum::Bool(true) { Datum::Null } else { left }
            }
            Kind::Cast(inner) => {
                let value = self.evaluate(inner, tuple)?;
                self.cast(value, inner.ty, expression.ty, expression.modifier)?
            }
            Kind::Array(elements) => {
                let mut all = Vec::with_capacity(elements.len());
                for element in elements {
                    all.push(self.evaluate(element, tuple)?);
                }
                Datum::array(all)
            }
            Kind::Subscript(both) => {
                let (array, index) = (self.evaluate(&both[0], tuple)?, self.evaluate(&both[1], tuple)?);
                // Vectors of the catalog are counted from 0.
                let first = i64::from(!matches!(both[0].ty, Type::Int2Vector | Type::OidVector));
                let index = index.as_integer().and_then(|index| usize::try_from(index - first).ok());
                match (array, index) {
                    (Datum::Array(elements), Some(index)) => {
                        elements.get(index).cloned().unwrap_or(Datum::Null)
                    }
                    _ => Datum::Null,
                }
            }
            Kind::Quantified(operation, both, all) => {
                let (left, array) = (self.evaluate(&both[0], tuple)?, self.evaluate(&both[1], tuple)?);
                let Datum::Array(elements) = array else { return Ok(Datum::Null) };
                quantify(operation, &left, elements.iter(), *all)?
            }
            Kind::In(operation, value, list) => {
                let left = self.evaluate(value, tuple)?;
                let mut is_unknown = false;
                for one in list {
                    match operation.apply(&left, &self.evaluate(one, tuple)?)? {
                        Datum::Bool(true) => return Ok(Datum::Bool(true)),
                        Datum::Bool(false) => {}
                        _ => is_unknown = true,
                    }
                }
                if is_unknown { Datum::Null } else { Datum::Bool(false) }
            }
            Kind::Scalar(query) => {
                let rows = self.inner_rows(query, tuple)?;
                match rows.as_slice() {
                    [] => Datum::Null,
                    [row] => row[0].clone(),
                    _ => {
                        let message = "more than one row returned by a subquery used as an expression";
                        return Err(SqlError::new("21000", message).into());
                    }
                }
            }
            Kind::Exists(query) => Datum::Bool(!self.inner_rows(query, tuple)?.is_empty()),
            Kind::InQuery(operation, value, query, all) => {
                let left = self.evaluate(value, tuple)?;
                let rows = self.inner_rows(query, tuple)?;
                quantify(operation, &left, rows.iter().map(|row| &row[0]), *all)?
            }
            Kind::ArrayOf(query) => {
                let rows = self.inner_rows(query, tuple)?;
                Datum::array(rows.iter().map(|row| row[0].clone()).collect())
            }
            Kind::NextValue(sequence) => {
                let sequence = self.evaluate(sequence, tuple)?;
                self.next_value(&sequence)?
            }
            Kind::CurrentValue(sequence) => {
                let sequence = self.evaluate(sequence, tuple)?;
                self.current_value(&sequence)?
            }
            Kind::SetValue(arguments) => {
                let mut given = Vec::new();
                for argument in arguments {
                    given.push(self.evaluate(argument, tuple)?);
                }
                self.set_value(&given)?
            }
            Kind::LastValue => self.last_value()?,
        })
    }

    /// True if a condition is true, which null is not.
    pub(crate) fn holds(&mut self, condition: &Expression, tuple: &[Row]) -> Result<bool, Stop> {
        Ok(self.evaluate(condition, tuple)? == Datum::Bool(true))
    }

    /// True if all conditions are.
    pub(crate) fn all_hold(&mut self, conditions: &[Expression], tuple: &[Row]) -> Result<bool, Stop> {
        for condition in conditions {
            if !self.holds(condition, tuple)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn all(&mut self, parts: &[Expression], tuple: &[Row], is_and: bool) -> Value {
        let mut is_unknown = false;
        for part in parts {
            match self.evaluate(part, tuple)? {
                Datum::Bool(value) if value != is_and => return Ok(Datum::Bool(value)),
                Datum::Bool(_) => {}
                _ => is_unknown = true,
            }
        }
        Ok(if is_unknown { Datum::Null } else { Datum::Bool(is_and) })
    }

    fn extreme(&mut self, all: &[Expression], largest: bool, tuple: &[Row]) -> Value {
        let mut best = Datum::Null;
        for one in all {
            let value = self.evaluate(one, tuple)?;
            if value.is_null() {
                continue;
            }
            let wanted = if largest { Ordering::Greater } else { Ordering::Less };
            if best.is_null() || values::compare_as(one.ty, &value, &best) == wanted {
                best = value;
            }
        }
        Ok(best)
    }

    /// Casts a value. Names of the catalog become its numbers, and the other way round.
    pub(crate) fn cast(&self, value: Datum, from: Type, to: Type, modifier: i32) -> Value {
        if value.is_null() {
            return Ok(Datum::Null);
        }
        if is_registered(to) && from.is_text() {
            let Some(text) = value.as_text() else { return Ok(value) };
            return Ok(Datum::Oid(crate::virtual_tables::number_of(text, to, &self.catalog)?));
        }
        if is_registered(from) && to.is_text() {
            return Ok(match value {
                Datum::Oid(oid) => Datum::text(
                    crate::virtual_tables::name_of(oid, from, &self.catalog)
                        .unwrap_or_else(|| oid.to_string()),
                ),
                other => other,
            });
        }
        Ok(values::cast(value, from, to, modifier)?)
    }

    /// The rows of a query inside of an expression.
    fn inner_rows(
        &mut self,
        query: &crate::plan::select::Query,
        tuple: &[Row],
    ) -> Result<std::rc::Rc<Vec<Row>>, Stop> {
        self.rows_inside(query, || tuple.to_vec())
    }
}

/// A value of a tuple.
fn at(tuple: &[Row], place: Place) -> Datum {
    tuple.get(place.source).and_then(|row| row.get(place.column)).cloned().unwrap_or(Datum::Null)
}

/// An operator against all or any of several values.
fn quantify<'v>(
    operation: &Operation,
    left: &Datum,
    others: impl Iterator<Item = &'v Datum>,
    all: bool,
) -> Value {
    let mut is_unknown = false;
    for other in others {
        match operation.apply(left, other)? {
            Datum::Bool(value) if value != all => return Ok(Datum::Bool(value)),
            Datum::Bool(_) => {}
            _ => is_unknown = true,
        }
    }
    Ok(if is_unknown { Datum::Null } else { Datum::Bool(all) })
}

/// A tuple without rows.
pub(crate) fn empty_tuple(sources: usize) -> Tuple {
    vec![Row::nulls(0); sources]
}

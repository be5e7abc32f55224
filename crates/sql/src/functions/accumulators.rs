//! States of aggregates.

use super::function::wrong_arguments;
use crate::error::SqlError;
use crate::values::casts::{float4, integer};
use crate::values::{BYTES_MAX, Datum, Interval, Numeric, Type, compare_as, too_long};
use std::cmp::Ordering;

/// The state of an aggregate within a group.
pub trait Accumulator {
    /// Takes the arguments of one row. Null is among them; the aggregate skips it, or does not.
    ///
    /// # Errors
    ///
    /// If the state overflows (22003, 22008) or becomes too large (54000).
    fn step(&mut self, arguments: &[Datum]) -> Result<(), SqlError>;

    /// The result of the rows so far.
    ///
    /// # Errors
    ///
    /// If it overflows (22003, 22008).
    fn finish(&mut self) -> Result<Datum, SqlError>;
}

/// `count`.
pub(super) struct Counter {
    count: i64,
    counts_null: bool,
}

impl Counter {
    /// Counts rows.
    pub(super) fn rows() -> Self {
        Self { count: 0, counts_null: true }
    }

    /// Counts values that are not null.
    pub(super) fn values() -> Self {
        Self { count: 0, counts_null: false }
    }
}

impl Accumulator for Counter {
    fn step(&mut self, arguments: &[Datum]) -> Result<(), SqlError> {
        if self.counts_null || !matches!(arguments, [Datum::Null]) {
            self.count += 1;
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<Datum, SqlError> {
        Ok(Datum::Int8(self.count))
    }
}

/// The exact sum of whole numbers and of `numeric`.
#[derive(Default)]
pub(super) struct Total {
    pub(super) count: i64,
    whole: i128,
    rest: Option<Numeric>,
}

impl Total {
    pub(super) fn add(&mut self, value: &Datum) -> Result<(), SqlError> {
        match value {
            Datum::Null => return Ok(()),
            Datum::Numeric(number) => {
                self.rest = Some(match &self.rest {
                    Some(sum) => sum.add(number)?,
                    None => Numeric::clone(number),
                });
            }
            // The sum of fewer than 2⁶³ numbers of 64 bits fits.
            value => self.whole += i128::from(value.as_integer().ok_or_else(wrong_arguments)?),
        }
        self.count += 1;
        Ok(())
    }

    pub(super) fn numeric(&self) -> Numeric {
        self.rest.clone().unwrap_or_else(|| Numeric::of_i128(self.whole, 0))
    }
}

/// `sum` of whole numbers and of `numeric`.
pub(super) struct Sum {
    total: Total,
    ty: Type,
}

impl Sum {
    pub(super) fn new(ty: Type) -> Self {
        Self { total: Total::default(), ty }
    }
}

impl Accumulator for Sum {
    fn step(&mut self, arguments: &[Datum]) -> Result<(), SqlError> {
        arguments.iter().try_for_each(|value| self.total.add(value))
    }

    fn finish(&mut self) -> Result<Datum, SqlError> {
        match (self.total.count, self.ty) {
            (0, _) => Ok(Datum::Null),
            (_, Type::Numeric) => Ok(Datum::numeric(self.total.numeric())),
            (_, ty) => match i64::try_from(self.total.whole) {
                Ok(sum) => integer(sum, ty),
                Err(_) => Err(crate::values::casts::out_of_range(ty)),
            },
        }
    }
}

/// `avg` of whole numbers and of `numeric`.
#[derive(Default)]
pub(super) struct Average {
    total: Total,
}

impl Accumulator for Average {
    fn step(&mut self, arguments: &[Datum]) -> Result<(), SqlError> {
        arguments.iter().try_for_each(|value| self.total.add(value))
    }

    fn finish(&mut self) -> Result<Datum, SqlError> {
        if self.total.count == 0 {
            return Ok(Datum::Null);
        }
        self.total.numeric().divide(&Numeric::from(self.total.count)).map(Datum::numeric)
    }
}

/// `sum` of floats.
pub(super) struct FloatSum {
    sum: Option<f64>,
    ty: Type,
}

impl FloatSum {
    pub(super) fn new(ty: Type) -> Self {
        Self { sum: None, ty }
    }
}

impl Accumulator for FloatSum {
    fn step(&mut self, arguments: &[Datum]) -> Result<(), SqlError> {
        let value = match arguments {
            // A sum of `float4` is rounded at each step.
            [Datum::Float4(value)] => {
                let sum = self.sum.map_or(*value, |sum| sum as f32 + value);
                overflow(f64::from(sum), value.is_finite() && self.sum.is_none_or(f64::is_finite))?;
                f64::from(sum)
            }
            [Datum::Float8(value)] => {
                let sum = self.sum.map_or(*value, |sum| sum + value);
                overflow(sum, value.is_finite() && self.sum.is_none_or(f64::is_finite))?;
                sum
            }
            _ => return Ok(()),
        };
        self.sum = Some(value);
        Ok(())
    }

    fn finish(&mut self) -> Result<Datum, SqlError> {
        match (self.sum, self.ty) {
            (None, _) => Ok(Datum::Null),
            (Some(sum), Type::Float4) => float4(sum),
            (Some(sum), _) => Ok(Datum::Float8(sum)),
        }
    }
}

/// Refuses an infinite result of finite numbers.
pub(super) fn overflow(result: f64, operands_are_finite: bool) -> Result<(), SqlError> {
    if result.is_infinite() && operands_are_finite {
        return Err(SqlError::new("22003", "value out of range: overflow"));
    }
    Ok(())
}

/// `min` and `max`.
pub(super) struct Extreme {
    best: Datum,
    ty: Type,
    wanted: Ordering,
}

impl Extreme {
    pub(super) fn new(ty: Type, is_greatest: bool) -> Self {
        let wanted = if is_greatest { Ordering::Greater } else { Ordering::Less };
        Self { best: Datum::Null, ty, wanted }
    }
}

impl Accumulator for Extreme {
    fn step(&mut self, arguments: &[Datum]) -> Result<(), SqlError> {
        for value in arguments.iter().filter(|value| !value.is_null()) {
            let order = compare_as(self.ty, value, &self.best);
            // Of equal values that are shown differently, as 1.0 and 1.00, the last one stays, as in PostgreSQL; of `char(n)` the first.
            let replaces = order == self.wanted || (order == Ordering::Equal && self.ty != Type::Char);
            if self.best.is_null() || replaces {
                self.best = value.clone();
            }
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<Datum, SqlError> {
        Ok(self.best.clone())
    }
}

/// `bool_and` and `bool_or`.
pub(super) struct Booleans {
    result: Option<bool>,
    /// The value that decides.
    decides: bool,
}

impl Booleans {
    pub(super) fn all() -> Self {
        Self { result: None, decides: false }
    }

    pub(super) fn any() -> Self {
        Self { result: None, decides: true }
    }
}

impl Accumulator for Booleans {
    fn step(&mut self, arguments: &[Datum]) -> Result<(), SqlError> {
        if let [Datum::Bool(value)] = arguments {
            let is_decided = *value == self.decides || self.result == Some(self.decides);
            self.result = Some(self.decides == is_decided);
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<Datum, SqlError> {
        Ok(self.result.map_or(Datum::Null, Datum::Bool))
    }
}

/// The bits that both have.
pub(super) fn and(left: i64, right: i64) -> i64 {
    left & right
}

/// The bits that either has.
pub(super) fn or(left: i64, right: i64) -> i64 {
    left | right
}

/// `bit_and` and `bit_or`.
pub(super) struct BitFold {
    result: Option<i64>,
    ty: Type,
    fold: fn(i64, i64) -> i64,
}

impl BitFold {
    pub(super) fn new(ty: Type, fold: fn(i64, i64) -> i64) -> Self {
        Self { result: None, ty, fold }
    }
}

impl Accumulator for BitFold {
    fn step(&mut self, arguments: &[Datum]) -> Result<(), SqlError> {
        if let Some(number) = arguments.first().and_then(Datum::as_integer) {
            self.result = Some(self.result.map_or(number, |result| (self.fold)(result, number)));
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<Datum, SqlError> {
        self.result.map_or(Ok(Datum::Null), |result| integer(result, self.ty))
    }
}

/// `string_agg`: texts or bytes with separators between them.
#[derive(Default)]
pub(super) struct Joiner {
    joined: Option<Vec<u8>>,
    is_text: bool,
}

impl Accumulator for Joiner {
    fn step(&mut self, arguments: &[Datum]) -> Result<(), SqlError> {
        fn bytes(datum: &Datum) -> &[u8] {
            match datum {
                Datum::Text(text) => text.as_bytes(),
                Datum::Bytes(bytes) => bytes,
                _ => &[],
            }
        }
        let [value, separator] = arguments else { return Err(wrong_arguments()) };
        if value.is_null() {
            return Ok(());
        }
        self.is_text = matches!(value, Datum::Text(_));
        match &mut self.joined {
            Some(joined) => {
                if joined.len() + bytes(value).len() + bytes(separator).len() > BYTES_MAX {
                    return Err(too_long());
                }
                joined.extend(bytes(separator));
                joined.extend(bytes(value));
            }
            None => self.joined = Some(bytes(value).to_vec()),
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<Datum, SqlError> {
        Ok(match &self.joined {
            None => Datum::Null,
            // Texts one behind the other are a text.
            Some(joined) if self.is_text => Datum::text(String::from_utf8_lossy(joined)),
            Some(joined) => Datum::Bytes(joined.clone().into()),
        })
    }
}

/// `array_agg`: all values, null as well.
#[derive(Default)]
pub(super) struct Collector {
    elements: Vec<Datum>,
}

impl Accumulator for Collector {
    fn step(&mut self, arguments: &[Datum]) -> Result<(), SqlError> {
        if self.elements.len() >= BYTES_MAX / size_of::<Datum>() {
            return Err(SqlError::new("54000", "array size exceeds the maximum allowed"));
        }
        self.elements.extend(arguments.first().cloned());
        Ok(())
    }

    fn finish(&mut self) -> Result<Datum, SqlError> {
        Ok(if self.elements.is_empty() {
            Datum::Null
        } else {
            Datum::array(std::mem::take(&mut self.elements))
        })
    }
}

/// `sum` and `avg` of spans.
pub(super) struct IntervalAverage {
    sum: Interval,
    count: i64,
    divides: bool,
}

impl IntervalAverage {
    pub(super) fn sum() -> Self {
        Self { sum: Interval::default(), count: 0, divides: false }
    }

    pub(super) fn average() -> Self {
        Self { divides: true, ..Self::sum() }
    }
}

impl Accumulator for IntervalAverage {
    fn step(&mut self, arguments: &[Datum]) -> Result<(), SqlError> {
        if let [Datum::Interval(interval)] = arguments {
            self.sum = self.sum.plus(*interval)?;
            self.count += 1;
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<Datum, SqlError> {
        Ok(match (self.count, self.divides) {
            (0, _) => Datum::Null,
            (_, false) => Datum::Interval(self.sum),
            (count, true) => Datum::Interval(self.sum.divide(count as f64)?),
        })
    }
}

//! States of averages of floats, variances and deviations.

use super::accumulators::{Accumulator, Total, overflow};
use super::function::wrong_arguments;
use crate::error::SqlError;
use crate::values::{Datum, Numeric};

/// Averages, variances and deviations of floats, by the algorithm of Youngs and Cramer.
pub(super) struct FloatVariance {
    count: f64,
    sum: f64,
    /// The sum of the squares of the differences from the average.
    squares: f64,
    wants: Wanted,
}

#[derive(Clone, Copy, PartialEq)]
enum Wanted {
    Average,
    Variance { is_sample: bool, is_root: bool },
}

impl FloatVariance {
    pub(super) fn average() -> Self {
        Self { count: 0.0, sum: 0.0, squares: 0.0, wants: Wanted::Average }
    }

    pub(super) fn new(is_sample: bool, is_root: bool) -> Self {
        Self { wants: Wanted::Variance { is_sample, is_root }, ..Self::average() }
    }
}

impl Accumulator for FloatVariance {
    fn step(&mut self, arguments: &[Datum]) -> Result<(), SqlError> {
        let value = match arguments {
            [Datum::Float4(value)] => f64::from(*value),
            [Datum::Float8(value)] => *value,
            _ => return Ok(()),
        };
        let was_finite = self.sum.is_finite();
        self.count += 1.0;
        self.sum += value;
        if self.count > 1.0 {
            let difference = value * self.count - self.sum;
            self.squares += difference * difference / (self.count * (self.count - 1.0));
            if self.sum.is_infinite() || self.squares.is_infinite() {
                overflow(f64::INFINITY, was_finite && value.is_finite())?;
                self.squares = f64::NAN;
            }
        } else if !value.is_finite() {
            self.squares = f64::NAN;
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<Datum, SqlError> {
        let Wanted::Variance { is_sample, is_root } = self.wants else {
            return Ok(if self.count == 0.0 { Datum::Null } else { Datum::Float8(self.sum / self.count) });
        };
        let divisor = if is_sample { self.count - 1.0 } else { self.count };
        if divisor <= 0.0 {
            return Ok(Datum::Null);
        }
        let variance = self.squares / divisor;
        Ok(Datum::Float8(if is_root { variance.sqrt() } else { variance }))
    }
}

/// Variances and deviations of whole numbers and of `numeric`, which are exact until the division.
pub(super) struct Variance {
    sum: Total,
    squares: Numeric,
    is_sample: bool,
    is_root: bool,
}

impl Variance {
    pub(super) fn new(is_sample: bool, is_root: bool) -> Self {
        Self { sum: Total::default(), squares: Numeric::from(0), is_sample, is_root }
    }
}

impl Accumulator for Variance {
    fn step(&mut self, arguments: &[Datum]) -> Result<(), SqlError> {
        for value in arguments.iter().filter(|value| !value.is_null()) {
            let number = match value {
                Datum::Numeric(number) => Numeric::clone(number),
                value => Numeric::from(value.as_integer().ok_or_else(wrong_arguments)?),
            };
            self.squares = self.squares.add(&number.multiply(&number)?)?;
            self.sum.add(value)?;
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<Datum, SqlError> {
        let count = self.sum.count;
        if count <= i64::from(self.is_sample) {
            return Ok(Datum::Null);
        }
        let sum = self.sum.numeric();
        if !sum.is_finite() || !self.squares.is_finite() {
            return Ok(Datum::numeric(Numeric::nan()));
        }
        let difference = Numeric::from(count).multiply(&self.squares)?.subtract(&sum.multiply(&sum)?)?;
        if difference.is_zero() || difference.is_negative() {
            return Ok(Datum::numeric(Numeric::from(0)));
        }
        let divisor = Numeric::from(count).multiply(&Numeric::from(count - i64::from(self.is_sample)))?;
        let variance = difference.divide(&divisor)?;
        let result = if self.is_root { variance.square_root_to(variance.scale())? } else { variance };
        Ok(Datum::numeric(result))
    }
}

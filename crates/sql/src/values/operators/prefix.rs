//! Operators before one operand.

use crate::error::SqlError;
use crate::values::casts::{integer, out_of_range};
use crate::values::resolution::{Resolved, resolve};
use crate::values::{Datum, Type};

/// An operator before one operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PrefixOperator {
    /// `+`.
    Plus,
    /// `-`.
    Minus,
    /// `~`: all bits turned over.
    BitNot,
    /// `@`: without the sign.
    Absolute,
    /// `|/`.
    SquareRoot,
    /// `||/`.
    CubeRoot,
}

impl PrefixOperator {
    /// Its name in `pg_operator`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Plus => "+",
            Self::Minus => "-",
            Self::BitNot => "~",
            Self::Absolute => "@",
            Self::SquareRoot => "|/",
            Self::CubeRoot => "||/",
        }
    }

    /// The types that it is for.
    fn types(self) -> &'static [Type] {
        use Type::{Float4, Float8, Int2, Int4, Int8, Interval, Numeric};
        match self {
            Self::Plus | Self::Absolute => &[Numeric, Float8, Float4, Int2, Int4, Int8],
            Self::Minus => &[Float4, Interval, Float8, Int2, Int4, Int8, Numeric],
            Self::BitNot => &[Int8, Int2, Int4],
            Self::SquareRoot | Self::CubeRoot => &[Float8],
        }
    }
}

/// A prefix operator for a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PrefixOperation {
    /// The operator.
    pub operator: PrefixOperator,
    /// The type that the operand is cast to, and of the result.
    pub ty: Type,
}

/// The operator that is meant for an operand of a type.
///
/// # Errors
///
/// If there is none (42883), or several (42725).
pub fn resolve_prefix(operator: PrefixOperator, operand: Type) -> Result<PrefixOperation, SqlError> {
    let candidates: Vec<Vec<Type>> = operator.types().iter().map(|ty| vec![*ty]).collect();
    match resolve(&candidates, &[operand]) {
        Resolved::One(place) => Ok(PrefixOperation { operator, ty: operator.types()[place] }),
        Resolved::None => Err(SqlError::new(
            "42883",
            format!("operator does not exist: {} {}", operator.name(), operand.name()),
        )
        .hint("No operator matches the given name and argument type. You might need to add an explicit type cast.")),
        Resolved::Ambiguous => Err(SqlError::new(
            "42725",
            format!("operator is not unique: {} {}", operator.name(), operand.name()),
        )
        .hint("Could not choose a best candidate operator. You might need to add explicit type casts.")),
    }
}

impl PrefixOperation {
    /// The result for an operand of the type [`ty`](Self::ty); null for null.
    ///
    /// # Errors
    ///
    /// If it overflows (22003, 22008), or there is no such root (2201F).
    pub fn apply(&self, operand: &Datum) -> Result<Datum, SqlError> {
        if operand.is_null() {
            return Ok(Datum::Null);
        }
        match self.operator {
            PrefixOperator::Plus => Ok(operand.clone()),
            PrefixOperator::Minus => self.negated(operand),
            PrefixOperator::BitNot => integer(!operand.as_integer().unwrap_or(0), self.ty),
            PrefixOperator::Absolute => {
                let is_negative = match operand {
                    Datum::Float4(float) => float.is_sign_negative() && !float.is_nan(),
                    Datum::Float8(float) => float.is_sign_negative() && !float.is_nan(),
                    Datum::Numeric(number) => number.is_negative(),
                    operand => operand.as_integer().is_some_and(|number| number < 0),
                };
                if is_negative { self.negated(operand) } else { Ok(operand.clone()) }
            }
            PrefixOperator::SquareRoot | PrefixOperator::CubeRoot => {
                let Datum::Float8(float) = operand else { return Ok(operand.clone()) };
                if self.operator == PrefixOperator::CubeRoot {
                    return Ok(Datum::Float8(float.cbrt()));
                }
                if *float < 0.0 {
                    return Err(SqlError::new("2201F", "cannot take square root of a negative number"));
                }
                Ok(Datum::Float8(float.sqrt()))
            }
        }
    }

    fn negated(&self, operand: &Datum) -> Result<Datum, SqlError> {
        Ok(match operand {
            Datum::Float4(float) => Datum::Float4(-float),
            Datum::Float8(float) => Datum::Float8(-float),
            Datum::Numeric(number) => Datum::numeric(number.negated()),
            Datum::Interval(interval) => Datum::Interval(interval.negated()?),
            operand => {
                let negated = operand.as_integer().and_then(i64::checked_neg);
                return integer(negated.ok_or_else(|| out_of_range(self.ty))?, self.ty);
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefix_operators_keep_the_type() {
        let apply = |operator, operand: Datum, ty| resolve_prefix(operator, ty).unwrap().apply(&operand);
        assert_eq!(apply(PrefixOperator::Minus, Datum::Int2(5), Type::Int2), Ok(Datum::Int2(-5)));
        assert_eq!(
            apply(PrefixOperator::Minus, Datum::Int4(i32::MIN), Type::Int4).unwrap_err().code,
            "22003"
        );
        assert_eq!(apply(PrefixOperator::BitNot, Datum::Int8(0), Type::Int8), Ok(Datum::Int8(-1)));
        assert_eq!(
            apply(PrefixOperator::Absolute, Datum::Float8(-1.5), Type::Float8),
            Ok(Datum::Float8(1.5))
        );
        assert_eq!(apply(PrefixOperator::Plus, Datum::Null, Type::Int4), Ok(Datum::Null));
        assert_eq!(resolve_prefix(PrefixOperator::Minus, Type::Text).unwrap_err().code, "42883");
        assert_eq!(resolve_prefix(PrefixOperator::Minus, Type::Unknown).unwrap_err().code, "42725");
        assert_eq!(resolve_prefix(PrefixOperator::Absolute, Type::Unknown).unwrap().ty, Type::Float8);
    }
}

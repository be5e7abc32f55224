//! The functions of comparisons.

use super::operator::{BinaryFunction, Operator};
use crate::values::compare::{compare, compare_as};
use crate::values::{Datum, Type};

/// Defines the function of a comparison, and of that of `char(n)`, which does not count blanks at the end.
macro_rules! comparisons {
    ($($name:ident $of_chars:ident $method:ident;)*) => {$(
        fn $name(left: &Datum, right: &Datum) -> Result<Datum, crate::error::SqlError> {
            Ok(Datum::Bool(compare(left, right).$method()))
        }

        fn $of_chars(left: &Datum, right: &Datum) -> Result<Datum, crate::error::SqlError> {
            Ok(Datum::Bool(compare_as(Type::Char, left, right).$method()))
        }
    )*};
}

comparisons! {
    equal equal_chars is_eq;
    not_equal not_equal_chars is_ne;
    less less_chars is_lt;
    less_or_equal less_or_equal_chars is_le;
    greater greater_chars is_gt;
    greater_or_equal greater_or_equal_chars is_ge;
}

/// The function of a comparison of values of a type; none if the operator is no comparison.
pub(super) fn function(operator: Operator, ty: Type) -> Option<BinaryFunction> {
    let (of_all, of_chars): (BinaryFunction, BinaryFunction) = match operator {
        Operator::Equal => (equal, equal_chars),
        Operator::NotEqual => (not_equal, not_equal_chars),
        Operator::Less => (less, less_chars),
        Operator::LessOrEqual => (less_or_equal, less_or_equal_chars),
        Operator::Greater => (greater, greater_chars),
        Operator::GreaterOrEqual => (greater_or_equal, greater_or_equal_chars),
        _ => return None,
    };
    Some(if ty == Type::Char { of_chars } else { of_all })
}

/// The pairs of types that are compared without a cast.
pub(super) const PAIRS: &[(Type, Type)] = {
    use Type::{
        Bool, Bytea, Char, Date, Float4, Float8, Int2, Int4, Int8, Interval, Letter, Name, Numeric, Oid,
        OidVector, Text, Time, Timestamp, TimestampTz, Uuid,
    };
    &[
        (Int4, Int8),
        (Bool, Bool),
        (Letter, Letter),
        (Name, Name),
        (Int2, Int2),
        (Int4, Int4),
        (Text, Text),
        (Name, Text),
        (Text, Name),
        (Int8, Int8),
        (Int8, Int4),
        (Int2, Int4),
        (Int4, Int2),
        (Oid, Oid),
        (Float4, Float4),
        (OidVector, OidVector),
        (Float8, Float8),
        (Char, Char),
        (Date, Date),
        (Time, Time),
        (Float4, Float8),
        (Float8, Float4),
        (TimestampTz, TimestampTz),
        (Interval, Interval),
        (Numeric, Numeric),
        (Int2, Int8),
        (Int8, Int2),
        (Bytea, Bytea),
        (Timestamp, Timestamp),
        (Date, Timestamp),
        (Date, TimestampTz),
        (Timestamp, Date),
        (TimestampTz, Date),
        (Timestamp, TimestampTz),
        (TimestampTz, Timestamp),
        (Uuid, Uuid),
    ]
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comparisons_are_of_the_operators_that_they_are_of() {
        let (one, two) = (Datum::Int4(1), Datum::Int8(2));
        let apply = |operator, left: &Datum, right: &Datum| {
            function(operator, Type::Int8).map(|function| function(left, right) == Ok(Datum::Bool(true)))
        };
        let (mut below, mut same) = (Vec::new(), Vec::new());
        for operator in Operator::ALL.iter().filter(|operator| operator.is_comparison()) {
            below.push(apply(*operator, &one, &two).unwrap());
            same.push(apply(*operator, &one, &one).unwrap());
        }
        assert_eq!(below, [false, true, true, true, false, false]);
        assert_eq!(same, [true, false, false, true, false, true]);
        assert!(function(Operator::Add, Type::Int4).is_none());
    }
}

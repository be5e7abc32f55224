//! The table of operators, as `pg_operator` has them.

use super::operator::{BinaryFunction, Operation, Operator};
use super::{arrays, comparisons, numbers, patterns, times};
use crate::error::SqlError;
use crate::values::resolution::{Resolved, common_type, resolve};
use crate::values::{Datum, Type};
use Operator::{
    Add, BitAnd, BitOr, BitXor, Concatenate, ContainedBy, Contains, Divide, Like, LikeAnyCase, Matches,
    MatchesAnyCase, Multiply, NotLike, NotLikeAnyCase, NotMatches, NotMatchesAnyCase, Overlaps, Power,
    Remainder, ShiftLeft, ShiftRight, Subtract,
};
use Type::{
    Bool, Bytea, Char, Date, Float4, Float8, Int2, Int4, Int8, Interval, Name, Numeric, Text, Time,
    Timestamp, TimestampTz,
};

/// An operator for two types, and its result.
type Entry = (Operator, Type, Type, Type, BinaryFunction);

/// The pairs of integer types and the type of their sum.
const INTEGERS: [(Type, Type, Type); 9] = [
    (Int2, Int2, Int2),
    (Int4, Int4, Int4),
    (Int8, Int8, Int8),
    (Int2, Int4, Int4),
    (Int4, Int2, Int4),
    (Int2, Int8, Int8),
    (Int8, Int2, Int8),
    (Int4, Int8, Int8),
    (Int8, Int4, Int8),
];

/// The operators of numbers that have a function for each integer type, `float4`, `float8` and `numeric`.
const ARITHMETIC: [(Operator, [BinaryFunction; 6]); 4] = [
    (
        Add,
        [
            numbers::add_int2,
            numbers::add_int4,
            numbers::add_int8,
            numbers::add_float4,
            numbers::add_float8,
            numbers::add_numeric,
        ],
    ),
    (
        Subtract,
        [
            numbers::subtract_int2,
            numbers::subtract_int4,
            numbers::subtract_int8,
            numbers::subtract_float4,
            numbers::subtract_float8,
            numbers::subtract_numeric,
        ],
    ),
    (
        Multiply,
        [
            numbers::multiply_int2,
            numbers::multiply_int4,
            numbers::multiply_int8,
            numbers::multiply_float4,
            numbers::multiply_float8,
            numbers::multiply_numeric,
        ],
    ),
    (
        Divide,
        [
            numbers::divide_int2,
            numbers::divide_int4,
            numbers::divide_int8,
            numbers::divide_float4,
            numbers::divide_float8,
            numbers::divide_numeric,
        ],
    ),
];

/// The operators that are not made from the tables above.
const OTHERS: &[Entry] = &[
    (Remainder, Int8, Int8, Int8, numbers::remainder_int8),
    (Remainder, Int2, Int2, Int2, numbers::remainder_int2),
    (Remainder, Int4, Int4, Int4, numbers::remainder_int4),
    (Remainder, Numeric, Numeric, Numeric, numbers::remainder_numeric),
    (Power, Float8, Float8, Float8, numbers::power_float8),
    (Power, Numeric, Numeric, Numeric, numbers::power_numeric),
    (BitAnd, Int2, Int2, Int2, numbers::and_int2),
    (BitAnd, Int4, Int4, Int4, numbers::and_int4),
    (BitAnd, Int8, Int8, Int8, numbers::and_int8),
    (BitOr, Int2, Int2, Int2, numbers::or_int2),
    (BitOr, Int4, Int4, Int4, numbers::or_int4),
    (BitOr, Int8, Int8, Int8, numbers::or_int8),
    (BitXor, Int2, Int2, Int2, numbers::xor_int2),
    (BitXor, Int4, Int4, Int4, numbers::xor_int4),
    (BitXor, Int8, Int8, Int8, numbers::xor_int8),
    (ShiftLeft, Int2, Int4, Int2, numbers::shift_left_int2),
    (ShiftLeft, Int4, Int4, Int4, numbers::shift_left_int4),
    (ShiftLeft, Int8, Int4, Int8, numbers::shift_left_int8),
    (ShiftRight, Int2, Int4, Int2, numbers::shift_right_int2),
    (ShiftRight, Int4, Int4, Int4, numbers::shift_right_int4),
    (ShiftRight, Int8, Int4, Int8, numbers::shift_right_int8),
    (Add, Date, Int4, Date, times::add_days),
    (Add, Int4, Date, Date, times::add_days),
    (Add, Date, Interval, Timestamp, times::add_span),
    (Add, Interval, Date, Timestamp, times::add_span),
    (Add, Timestamp, Interval, Timestamp, times::add_span),
    (Add, Interval, Timestamp, Timestamp, times::add_span),
    (Add, TimestampTz, Interval, TimestampTz, times::add_span),
    (Add, Interval, TimestampTz, TimestampTz, times::add_span),
    (Add, Time, Interval, Time, times::add_span),
    (Add, Interval, Time, Time, times::add_span),
    (Add, Interval, Interval, Interval, times::add_span),
    (Add, Date, Time, Timestamp, times::add_date_and_time),
    (Add, Time, Date, Timestamp, times::add_date_and_time),
    (Subtract, Date, Int4, Date, times::subtract_days),
    (Subtract, Date, Date, Int4, times::subtract_days),
    (Subtract, Date, Interval, Timestamp, times::subtract_span),
    (Subtract, Timestamp, Interval, Timestamp, times::subtract_span),
    (Subtract, TimestampTz, Interval, TimestampTz, times::subtract_span),
    (Subtract, Time, Interval, Time, times::subtract_span),
    (Subtract, Interval, Interval, Interval, times::subtract_span),
    (Subtract, Timestamp, Timestamp, Interval, times::subtract_moments),
    (Subtract, TimestampTz, TimestampTz, Interval, times::subtract_moments),
    (Subtract, Time, Time, Interval, times::subtract_moments),
    (Multiply, Interval, Float8, Interval, times::multiply_span),
    (Multiply, Float8, Interval, Interval, times::multiply_span),
    (Divide, Interval, Float8, Interval, times::divide_span),
    (Concatenate, Text, Text, Text, arrays::concatenate),
    (Concatenate, Bytea, Bytea, Bytea, arrays::concatenate),
];

/// The operators of texts and patterns.
const PATTERNS: [(Operator, BinaryFunction); 8] = [
    (Like, patterns::is_like),
    (NotLike, patterns::is_not_like),
    (LikeAnyCase, patterns::is_like_any_case),
    (NotLikeAnyCase, patterns::is_not_like_any_case),
    (Matches, patterns::matches),
    (NotMatches, patterns::matches_not),
    (MatchesAnyCase, patterns::matches_any_case),
    (NotMatchesAnyCase, patterns::matches_not_any_case),
];

/// All operators of a name.
fn entries(operator: Operator) -> Vec<Entry> {
    if operator.is_comparison() {
        let pairs = comparisons::PAIRS.iter();
        return pairs
            .filter_map(|(left, right)| {
                let function = comparisons::function(operator, *left)?;
                Some((operator, *left, *right, Bool, function))
            })
            .collect();
    }
    let mut entries: Vec<Entry> = Vec::new();
    for (known, functions) in ARITHMETIC.iter().filter(|(known, _)| *known == operator) {
        let [int2, int4, int8, float4, float8, numeric] = *functions;
        entries.extend(INTEGERS.map(|(left, right, result)| {
            let function = match result {
                Int2 => int2,
                Int4 => int4,
                _ => int8,
            };
            (*known, left, right, result, function)
        }));
        entries.extend([
            (*known, Float4, Float4, Float4, float4),
            (*known, Float8, Float8, Float8, float8),
            (*known, Float4, Float8, Float8, float8),
            (*known, Float8, Float4, Float8, float8),
            (*known, Numeric, Numeric, Numeric, numeric),
        ]);
    }
    for (known, function) in PATTERNS.iter().filter(|(known, _)| *known == operator) {
        entries.extend([Name, Text, Char].map(|left| (*known, left, Text, Bool, *function)));
    }
    entries.extend(OTHERS.iter().filter(|entry| entry.0 == operator));
    entries
}

/// The operator that is meant for operands of two types; a literal is of the type [`Type::Unknown`].
///
/// # Errors
///
/// If there is none (42883), or several (42725).
pub fn resolve_operator(operator: Operator, left: Type, right: Type) -> Result<Operation, SqlError> {
    let entries = entries(operator);
    let candidates: Vec<Vec<Type>> = entries.iter().map(|(_, left, right, ..)| vec![*left, *right]).collect();
    // A literal is first tried as of the other side's type.
    let assumed = match (left, right) {
        (Type::Unknown, known) if known != Type::Unknown => [known, known],
        (known, Type::Unknown) if known != Type::Unknown => [known, known],
        pair => pair.into(),
    };
    let of_entry =
        |(operator, left, right, result, call): Entry| Operation { operator, left, right, result, call };
    if let Some(place) = candidates.iter().position(|candidate| **candidate == assumed) {
        return Ok(of_entry(entries[place]));
    }
    if let Some(operation) = of_arrays(operator, left, right) {
        return Ok(operation);
    }
    let named = format!("{} {} {}", left.name(), operator.name(), right.name());
    match resolve(&candidates, &[left, right]) {
        Resolved::One(place) => Ok(of_entry(entries[place])),
        Resolved::None => with_text(operator, left, right).ok_or_else(|| {
            SqlError::new("42883", format!("operator does not exist: {named}")).hint(
                "No operator matches the given name and argument types. You might need to add explicit type casts.",
            )
        }),
        Resolved::Ambiguous => Err(SqlError::new("42725", format!("operator is not unique: {named}"))
            .hint("Could not choose a best candidate operator. You might need to add explicit type casts.")),
    }
}

/// The operators of arrays, whose elements may be of any type.
fn of_arrays(operator: Operator, left: Type, right: Type) -> Option<Operation> {
    let both = |ty: Type, result, call| Some(Operation { operator, left: ty, right: ty, result, call });
    let array = match (left.element(), right.element()) {
        (Some(_), Some(_)) if left == right => left,
        (Some(element), Some(other)) if operator == Concatenate => {
            common_type(&[element, other]).ok()?.array()?
        }
        // The vectors of the catalog are arrays here.
        (Some(element), Some(other)) if element == other => element.array()?,
        (Some(_), None) if right == Type::Unknown => left,
        (None, Some(_)) if left == Type::Unknown => right,
        (Some(element), None) if operator == Concatenate => {
            let common = common_type(&[element, right]).ok()?;
            let array = common.array()?;
            return Some(Operation {
                operator,
                left: array,
                right: common,
                result: array,
                call: arrays::append,
            });
        }
        (None, Some(element)) if operator == Concatenate => {
            let common = common_type(&[left, element]).ok()?;
            let array = common.array()?;
            return Some(Operation {
                operator,
                left: common,
                right: array,
                result: array,
                call: arrays::prepend,
            });
        }
        _ => return None,
    };
    match operator {
        Concatenate => both(array, array, arrays::concatenate_arrays),
        Contains => both(array, Bool, arrays::contains),
        ContainedBy => both(array, Bool, arrays::contained_by),
        Overlaps => both(array, Bool, arrays::overlaps),
        operator => both(array, Bool, comparisons::function(operator, array)?),
    }
}

/// `||` of a text and a value of any other type, which is cast to its text.
fn with_text(operator: Operator, left: Type, right: Type) -> Option<Operation> {
    let is_text = |ty: Type| matches!(ty, Text | Type::Varchar | Char | Name | Type::Letter | Type::Unknown);
    let is_whole = |ty: Type| ty.element().is_none();
    if operator != Concatenate || !((is_text(left) && is_whole(right)) || (is_text(right) && is_whole(left)))
    {
        return None;
    }
    Some(Operation { operator, left: Text, right: Text, result: Text, call: arrays::concatenate })
}

/// The types that the operands are cast to, and that of the result; none if there is no such operator, or several.
pub fn operator_type(operator: Operator, left: Type, right: Type) -> Option<(Type, Type, Type)> {
    resolve_operator(operator, left, right).ok().map(|found| (found.left, found.right, found.result))
}

/// The result of an operator for values whose types are found by themselves. Planners resolve once, by [`resolve_operator`]; this is for
/// single values. A `char(n)` counts as a text.
///
/// # Errors
///
/// As [`resolve_operator`] and [`Operation::apply`].
pub fn binary_operator(operator: Operator, left: &Datum, right: &Datum) -> Result<Datum, SqlError> {
    if left.is_null() || right.is_null() {
        return Ok(Datum::Null);
    }
    let (of_left, of_right) = (type_of(left), type_of(right));
    let operation = resolve_operator(operator, of_left, of_right)?;
    let cast = |datum: &Datum, from: Type, to: Type| crate::values::casts::cast(datum.clone(), from, to, -1);
    operation.apply(&cast(left, of_left, operation.left)?, &cast(right, of_right, operation.right)?)
}

impl Datum {
    /// The type of the value, as far as it shows: a `char(n)` is a text.
    pub fn ty(&self) -> Type {
        type_of(self)
    }
}

fn type_of(datum: &Datum) -> Type {
    match datum {
        Datum::Null => Type::Unknown,
        Datum::Bool(_) => Bool,
        Datum::Int2(_) => Int2,
        Datum::Int4(_) => Int4,
        Datum::Int8(_) => Int8,
        Datum::Float4(_) => Float4,
        Datum::Float8(_) => Float8,
        Datum::Numeric(_) => Numeric,
        Datum::Text(_) => Text,
        Datum::Bytes(_) => Bytea,
        Datum::Date(_) => Date,
        Datum::Time(_) => Time,
        Datum::Timestamp(_) => Timestamp,
        Datum::TimestampTz(_) => TimestampTz,
        Datum::Interval(_) => Interval,
        Datum::Uuid(_) => Type::Uuid,
        Datum::Oid(_) => Type::Oid,
        Datum::Array(elements) => {
            let element = elements.iter().find(|element| !element.is_null()).map_or(Text, type_of);
            element.array().unwrap_or(Type::TextArray)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_are_resolved_as_postgresql_resolves_them() {
        for (left, name, right, expected) in [
            (Int4, "+", Int8, Some((Int4, Int8, Int8))),
            (Int4, "+", Numeric, Some((Numeric, Numeric, Numeric))),
            (Int8, "*", Float4, Some((Float8, Float4, Float8))),
            (Int2, "%", Int8, Some((Int8, Int8, Int8))),
            (Type::Unknown, "+", Int4, Some((Int4, Int4, Int4))),
            (Type::Varchar, "=", Type::Unknown, Some((Text, Text, Bool))),
            (Type::Varchar, "=", Type::Varchar, Some((Text, Text, Bool))),
            (Char, "=", Type::Unknown, Some((Char, Char, Bool))),
            (Char, "=", Text, Some((Text, Text, Bool))),
            (Name, "~", Type::Unknown, Some((Name, Text, Bool))),
            (Type::Regclass, "=", Type::Oid, Some((Type::Oid, Type::Oid, Bool))),
            (Type::Oid, "=", Int4, Some((Type::Oid, Type::Oid, Bool))),
            (Date, "-", Date, Some((Date, Date, Int4))),
            (Date, "<", Timestamp, Some((Date, Timestamp, Bool))),
            (TimestampTz, "-", Interval, Some((TimestampTz, Interval, TimestampTz))),
            (Int4, "*", Interval, Some((Float8, Interval, Interval))),
            (Text, "||", Int4, Some((Text, Text, Text))),
            (Int4, "||", Type::Unknown, Some((Text, Text, Text))),
            (Int4, "||", Int4, None),
            (Type::Int4Array, "||", Int8, Some((Type::Int8Array, Int8, Type::Int8Array))),
            (Type::TextArray, "=", Type::Unknown, Some((Type::TextArray, Type::TextArray, Bool))),
            (Text, "=", Int4, None),
            (Bool, "+", Bool, None),
            (Text, "+", Text, None),
            (Int4, "^", Int4, Some((Float8, Float8, Float8))),
        ] {
            let operator = Operator::of_name(name).unwrap();
            assert_eq!(operator_type(operator, left, right), expected, "{left:?} {name} {right:?}");
        }
        let error = resolve_operator(Operator::Equal, Int4, Text).unwrap_err();
        assert_eq!((error.code, &*error.message), ("42883", "operator does not exist: integer = text"));
    }

    #[test]
    fn values_find_their_operator() {
        let sum = binary_operator(Operator::Add, &Datum::Int4(1), &Datum::Float8(0.5));
        assert_eq!(sum, Ok(Datum::Float8(1.5)));
        assert_eq!(binary_operator(Operator::Add, &Datum::Int4(1), &Datum::Null), Ok(Datum::Null));
    }
}

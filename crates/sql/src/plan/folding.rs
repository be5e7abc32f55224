//! Small expressions, and what of them is known already.

use super::expression::{Expression, Kind};
use crate::error::SqlError;
use crate::values::{Datum, Operation, Operator, Type};

type Bound = Result<Expression, SqlError>;

/// A literal in quotes.
pub(crate) fn text(string: &str) -> Expression {
    Expression::constant(Datum::Text(string.into()), Type::Unknown)
}

pub(super) fn number(digits: &str) -> Bound {
    if let Ok(small) = digits.parse::<i32>() {
        return Ok(Expression::constant(Datum::Int4(small), Type::Int4));
    }
    if let Ok(large) = digits.parse::<i64>() {
        return Ok(Expression::constant(Datum::Int8(large), Type::Int8));
    }
    Ok(Expression::constant(Datum::parse(digits, Type::Numeric)?, Type::Numeric))
}

/// A negated number that is known already.
pub(super) fn fold_negation(expression: Expression) -> Expression {
    if let Kind::Prefix(operation, inner) = &expression.kind
        && let Kind::Constant(value) = &inner.kind
        && let Ok(value) = operation.apply(value)
    {
        // The least `integer` and `bigint` are one further from zero than what can be negated.
        return match value {
            Datum::Int8(value) if value == i64::from(i32::MIN) => {
                Expression::constant(Datum::Int4(i32::MIN), Type::Int4)
            }
            value => Expression::constant(value, expression.ty),
        };
    }
    expression
}

/// An operator, computed if both sides are known, or one is null. One that fails is left to fail when it is run.
pub(super) fn folded_operation(operation: Operation, both: Box<[Expression; 2]>) -> Expression {
    let known = |side: &Expression| match &side.kind {
        Kind::Constant(value) => Some(value.clone()),
        _ => None,
    };
    let (left, right) = (known(&both[0]), known(&both[1]));
    let is_null = |side: &Option<Datum>| side.as_ref().is_some_and(Datum::is_null);
    if operation.operator != Operator::Concatenate && (is_null(&left) || is_null(&right)) {
        return super::bind_function::null(operation.result);
    }
    if let (Some(left), Some(right)) = (left, right)
        && let Ok(value) = operation.apply(&left, &right)
    {
        return Expression::constant(value, operation.result);
    }
    Expression::new(Kind::Operator(operation, both), operation.result)
}

/// The opposite of a condition.
pub(crate) fn not(inner: Expression) -> Expression {
    Expression::new(Kind::Not(Box::new(inner)), Type::Bool)
}

pub(super) fn is_null(inner: Expression) -> Expression {
    Expression::new(Kind::IsNull(Box::new(inner)), Type::Bool)
}

pub(super) fn negate_if(negated: bool, inner: Expression) -> Expression {
    if negated { not(inner) } else { inner }
}

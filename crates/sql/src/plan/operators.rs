//! The operators that the parser knows, by their symbols.

use crate::error::SqlError;
use crate::values::{self, Operation, Operator, Type};
use sqlparser::ast::BinaryOperator;

/// The symbol of an operator, without its schema.
pub(crate) fn symbol_of(operator: &BinaryOperator) -> Result<&'static str, SqlError> {
    Ok(match operator {
        BinaryOperator::Plus => "+",
        BinaryOperator::Minus => "-",
        BinaryOperator::Multiply => "*",
        BinaryOperator::Divide => "/",
        BinaryOperator::Modulo => "%",
        BinaryOperator::PGExp => "^",
        BinaryOperator::StringConcat => "||",
        BinaryOperator::Eq => "=",
        BinaryOperator::NotEq => "<>",
        BinaryOperator::Lt => "<",
        BinaryOperator::LtEq => "<=",
        BinaryOperator::Gt => ">",
        BinaryOperator::GtEq => ">=",
        BinaryOperator::BitwiseAnd => "&",
        BinaryOperator::BitwiseOr => "|",
        BinaryOperator::PGBitwiseXor => "#",
        BinaryOperator::PGBitwiseShiftLeft => "<<",
        BinaryOperator::PGBitwiseShiftRight => ">>",
        BinaryOperator::PGRegexMatch => "~",
        BinaryOperator::PGRegexIMatch => "~*",
        BinaryOperator::PGRegexNotMatch => "!~",
        BinaryOperator::PGRegexNotIMatch => "!~*",
        BinaryOperator::AtArrow => "@>",
        BinaryOperator::ArrowAt => "<@",
        BinaryOperator::PGOverlap => "&&",
        BinaryOperator::PGLikeMatch => "~~",
        BinaryOperator::PGILikeMatch => "~~*",
        BinaryOperator::PGNotLikeMatch => "!~~",
        BinaryOperator::PGNotILikeMatch => "!~~*",
        BinaryOperator::PGCustomBinaryOperator(parts) => match parts.last().map(String::as_str) {
            Some("~") => "~",
            Some("~*") => "~*",
            Some("!~") => "!~",
            Some("!~*") => "!~*",
            Some("=") => "=",
            Some("<>") => "<>",
            Some("~~") => "~~",
            Some("@>") => "@>",
            Some("<@") => "<@",
            Some("&&") => "&&",
            Some("+") => "+",
            Some("-") => "-",
            _ => return Err(SqlError::not_supported(format!("the operator {operator}"))),
        },
        other => return Err(SqlError::not_supported(format!("the operator {other}"))),
    })
}

/// An operator for two types.
pub(crate) fn binary(symbol: &str, left: Type, right: Type) -> Result<Operation, SqlError> {
    let operator =
        Operator::of_name(symbol).ok_or_else(|| SqlError::not_supported(format!("the operator {symbol}")))?;
    values::resolve_operator(operator, left, right)
}

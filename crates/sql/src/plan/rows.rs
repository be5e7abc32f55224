//! Comparisons of rows: what they say of their values.

use super::binder::{Binder, Context};
use super::expression::{Expression, Kind};
use crate::error::SqlError;
use crate::values::Type;
use sqlparser::ast::Expr;

/// True for two and more values in parentheses.
pub(super) fn is_row(expression: &Expr) -> bool {
    matches!(expression, Expr::Tuple(_))
}

fn and(parts: Vec<Expression>) -> Expression {
    Expression::new(Kind::And(parts), Type::Bool)
}

impl Binder<'_> {
    /// A comparison of two rows of as many values: of all of them, or of the first ones that differ.
    pub(super) fn compare_rows(
        &self,
        symbol: &'static str,
        left: &Expr,
        right: &Expr,
        context: &Context<'_>,
    ) -> Result<Expression, SqlError> {
        let (Expr::Tuple(left), Expr::Tuple(right)) = (left, right) else {
            return Err(SqlError::not_supported("a comparison of a row with something else"));
        };
        if left.len() != right.len() || left.is_empty() {
            return Err(SqlError::new("42601", "unequal number of entries in row expressions"));
        }
        let compare = |symbol, at: usize| {
            let bind = |side: &[Expr]| self.expression(&side[at], context);
            self.operator(symbol, bind(left)?, bind(right)?)
        };
        let all = |symbol| (0..left.len()).map(|at| compare(symbol, at)).collect::<Result<_, _>>();
        let strict = match symbol {
            "=" => return Ok(and(all("=")?)),
            "<>" => return Ok(Expression::new(Kind::Or(all("<>")?), Type::Bool)),
            "<" | "<=" => "<",
            ">" | ">=" => ">",
            other => {
                let message = format!("operator {other} is not supported for row types");
                return Err(SqlError::new("0A000", message));
            }
        };
        let last = left.len() - 1;
        // From the last values on: the first ones decide unless they are equal.
        let mut known = compare(symbol, last)?;
        for at in (0..last).rev() {
            let or_equal = and(vec![compare("=", at)?, known]);
            known = Expression::new(Kind::Or(vec![compare(strict, at)?, or_equal]), Type::Bool);
        }
        Ok(known)
    }
}

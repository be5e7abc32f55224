//! Binding of calls.

use super::binder::{Binder, Coercion, Context};
use super::expression::{Expression, Kind, Place};
use super::select::{AggregateCall, Output, SeriesKind};
use crate::error::SqlError;
use crate::functions;
use crate::values::{Datum, Type};
use sqlparser::ast::{
    DuplicateTreatment, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentClause,
    FunctionArguments, OrderByExpr,
};

/// The column of a group's row from which the aggregates begin, until it is known how many keys there are.
pub(crate) const AGGREGATES: usize = 1 << 20;

/// The source that stands for a group's row, until it is known how many sources there are.
pub(crate) const GROUP: usize = usize::MAX;

impl Binder<'_> {
    /// Binds a call of a function.
    pub(crate) fn function(
        &self,
        function: &Function,
        context: &Context<'_>,
    ) -> Result<Expression, SqlError> {
        let name = Self::function_name(&function.name)?;
        if function.over.is_some() {
            return Err(SqlError::not_supported("a window function"));
        }
        let (arguments, clauses, is_distinct) = match &function.args {
            FunctionArguments::None => (&[][..], &[][..], false),
            FunctionArguments::List(list) => {
                let is_distinct = matches!(list.duplicate_treatment, Some(DuplicateTreatment::Distinct));
                (&list.args[..], &list.clauses[..], is_distinct)
            }
            FunctionArguments::Subquery(query) if name == "array" => {
                let query = self.subquery(query, context)?;
                let element = super::bind_expression::one_column(&query)?;
                let array = element
                    .array()
                    .ok_or_else(|| SqlError::not_supported(format!("an array of {}", element.name())))?;
                return Ok(Expression::new(Kind::ArrayOf(Box::new(query)), array));
            }
            FunctionArguments::Subquery(_) => return Err(SqlError::new("42601", "syntax error")),
        };
        if name == "count" && matches!(arguments, [FunctionArg::Unnamed(FunctionArgExpr::Wildcard)]) {
            return self.aggregate(&name, &[], is_distinct, function, clauses, context);
        }
        let arguments = plain_arguments(arguments)?;
        if functions::is_aggregate(&name) {
            return self.aggregate(&name, &arguments, is_distinct, function, clauses, context);
        }
        if is_distinct || function.filter.is_some() {
            let message = format!("DISTINCT specified, but {name} is not an aggregate function");
            return Err(SqlError::new("42809", message));
        }
        let bound = self.expressions(arguments.iter().copied(), context)?;
        if let Some(kind) = series_kind(&name) {
            return self.series_in_projection(kind, &name, bound, context);
        }
        self.special(&name, bound)
    }

    /// Functions that are syntax, or need more than their arguments.
    fn special(&self, name: &str, mut arguments: Vec<Expression>) -> Result<Expression, SqlError> {
        let count = arguments.len();
        match (name, count) {
            ("coalesce", 1..) => {
                let (all, ty) = self.unify(arguments, "COALESCE")?;
                Ok(Expression::new(Kind::Coalesce(all), ty))
            }
            ("greatest" | "least", 1..) => {
                let (all, ty) =
                    self.unify(arguments, if name == "greatest" { "GREATEST" } else { "LEAST" })?;
                Ok(Expression::new(Kind::Extreme(all, name == "greatest"), ty))
            }
            ("nullif", 2) => {
                let right = arguments.pop().expect("two");
                let left = arguments.pop().expect("two");
                let (left_type, left_modifier) = (left.ty, left.modifier);
                let operation = super::operators::binary("=", left.ty, right.ty)?;
                let both = self.operands(&operation, left, right)?;
                let ty = if left_type == Type::Unknown { operation.left } else { both[0].ty };
                Ok(Expression { kind: Kind::NullIf(operation, both), ty, modifier: left_modifier })
            }
            ("nextval" | "currval", 1) => {
                let sequence =
                    self.coerce(arguments.pop().expect("one"), Type::Regclass, -1, Coercion::Implicit)?;
                let kind = if name == "nextval" {
                    self.writes.set(true);
                    Kind::NextValue(Box::new(sequence))
                } else {
                    Kind::CurrentValue(Box::new(sequence))
                };
                Ok(Expression::new(kind, Type::Int8))
            }
            ("setval", 2 | 3) => {
                self.writes.set(true);
                let wanted = [Type::Regclass, Type::Int8, Type::Bool];
                let arguments = self.arguments(arguments, |at| Some(wanted[at]))?;
                Ok(Expression::new(Kind::SetValue(arguments), Type::Int8))
            }
            ("lastval", 0) => Ok(Expression::new(Kind::LastValue, Type::Int8)),
            _ => self.call(name, arguments),
        }
    }

    fn aggregate(
        &self,
        name: &str,
        arguments: &[&Expr],
        is_distinct: bool,
        function: &Function,
        clauses: &[FunctionArgumentClause],
        context: &Context<'_>,
    ) -> Result<Expression, SqlError> {
        let Some(calls) = context.aggregates else {
            let message = format!("aggregate functions are not allowed in {}", context.clause);
            return Err(SqlError::new("42803", message));
        };
        if !function.within_group.is_empty() {
            return Err(SqlError::not_supported("WITHIN GROUP"));
        }
        let inside = Context {
            aggregates: None,
            series: None,
            clause: "an aggregate function's arguments",
            ..*context
        };
        let nested = |error: SqlError| match error.code {
            "42803" => SqlError::new("42803", "aggregate function calls cannot be nested"),
            _ => error,
        };
        let bound = self.expressions(arguments.iter().copied(), &inside).map_err(nested)?;
        let types: Vec<Type> = bound.iter().map(|argument| argument.ty).collect();
        let is_of_outer = |value: &Expression| value.sources().is_empty() && value.is_correlated();
        if bound.iter().any(is_of_outer) && bound.iter().all(|value| value.sources().is_empty()) {
            // It would be an aggregate of the query whose columns they are.
            return Err(SqlError::not_supported("an aggregate of a query around the one where it stands"));
        }
        let aggregate = functions::lookup_aggregate(name, &types)?;
        let ty = aggregate.result(&types);
        let bound = self.arguments(bound, |at| aggregate.argument(at, types.len()))?;
        let filter = match &function.filter {
            None => None,
            Some(filter) => Some(self.condition(self.expression(filter, &inside)?, "FILTER")?),
        };
        let mut order = Vec::new();
        for clause in clauses {
            match clause {
                FunctionArgumentClause::OrderBy(by) => {
                    for one in by {
                        let (descending, nulls_first) = direction(one)?;
                        order.push((self.expression(&one.expr, &inside)?, descending, nulls_first));
                    }
                }
                other => return Err(SqlError::not_supported(format!("{other} in a call"))),
            }
        }
        if is_distinct && order.is_empty() && matches!(name, "array_agg" | "string_agg") {
            // As PostgreSQL, which finds values that are the same by sorting.
            order = bound.iter().map(|argument| (argument.clone(), false, false)).collect();
        }
        let call = AggregateCall { aggregate, arguments: bound, is_distinct, filter, order };
        let mut calls = calls.borrow_mut();
        let same = |known: &AggregateCall| {
            std::ptr::eq(known.aggregate, call.aggregate)
                && known.is_distinct == call.is_distinct
                && known.filter.is_none()
                && call.filter.is_none()
                && known.order.is_empty()
                && call.order.is_empty()
                && known.arguments.len() == call.arguments.len()
                && known.arguments.iter().zip(&call.arguments).all(|(left, right)| left.is_same(right))
        };
        let at = calls.iter().position(same).unwrap_or_else(|| {
            calls.push(call);
            calls.len() - 1
        });
        let place = Place { source: GROUP, column: AGGREGATES + at };
        Ok(Expression::new(Kind::Column(place), ty))
    }

    /// A function that gives rows, among the values of a `SELECT`: its rows are those of one more source.
    fn series_in_projection(
        &self,
        kind: SeriesKind,
        name: &str,
        arguments: Vec<Expression>,
        context: &Context<'_>,
    ) -> Result<Expression, SqlError> {
        let Some(series) = context.series else {
            let message = format!("set-returning functions are not allowed in {}", context.clause);
            return Err(SqlError::new("0A000", message));
        };
        let (arguments, ty) = self.series_arguments(kind, name, arguments)?;
        let output = Output { name: name.into(), ty, modifier: -1, origin: None };
        let mut series = series.borrow_mut();
        if !series.is_empty() {
            return Err(SqlError::not_supported("more than one function that gives rows in a SELECT list"));
        }
        series.push((kind, arguments, output));
        Ok(Expression::new(Kind::Column(Place { source: SERIES, column: 0 }), ty))
    }

    /// The arguments of a function that gives rows, and the type of its values.
    pub(crate) fn series_arguments(
        &self,
        kind: SeriesKind,
        name: &str,
        arguments: Vec<Expression>,
    ) -> Result<(Vec<Expression>, Type), SqlError> {
        let wrong = || {
            let types: Vec<&str> = arguments.iter().map(|argument| argument.ty.name()).collect();
            SqlError::new("42883", format!("function {name}({}) does not exist", types.join(", "))).hint(
                "No function matches the given name and argument types. You might need to add explicit type casts.",
            )
        };
        match kind {
            SeriesKind::Generate => {
                let types: Vec<Type> = arguments.iter().map(|argument| argument.ty).collect();
                if !(2..=3).contains(&types.len()) {
                    return Err(wrong());
                }
                if matches!(types[0], Type::Date | Type::Timestamp | Type::TimestampTz) && types.len() == 3 {
                    let ty = if types[0] == Type::Timestamp { Type::Timestamp } else { Type::TimestampTz };
                    let arguments =
                        self.arguments(arguments, |at| Some(if at == 2 { Type::Interval } else { ty }))?;
                    return Ok((arguments, ty));
                }
                let ty = match () {
                    () if types.contains(&Type::Numeric) => Type::Numeric,
                    () if types.contains(&Type::Int8) => Type::Int8,
                    () if types.iter().all(|ty| matches!(ty, Type::Int2 | Type::Int4 | Type::Unknown)) => {
                        Type::Int4
                    }
                    () => return Err(wrong()),
                };
                Ok((self.arguments(arguments, |_| Some(ty))?, ty))
            }
            SeriesKind::Unnest => match arguments.as_slice() {
                [array] if array.ty.element().is_some() => {
                    let element = array.ty.element().expect("an array");
                    Ok((arguments, element))
                }
                _ => Err(wrong()),
            },
            SeriesKind::Subscripts => match arguments.as_slice() {
                [array, dimension] if array.ty.element().is_some() && dimension.ty == Type::Int4 => {
                    Ok((arguments, Type::Int4))
                }
                _ => Err(wrong()),
            },
            SeriesKind::One => {
                let ty = arguments.first().map_or(Type::Text, |value| value.ty);
                Ok((arguments, ty))
            }
        }
    }
}

/// The source that stands for the series among the values of a `SELECT`, until it is known how many sources there are.
pub(crate) const SERIES: usize = usize::MAX - 1;

/// The function of this name, if it gives rows.
pub(crate) fn series_kind(name: &str) -> Option<SeriesKind> {
    match name {
        "generate_series" => Some(SeriesKind::Generate),
        "unnest" => Some(SeriesKind::Unnest),
        "generate_subscripts" => Some(SeriesKind::Subscripts),
        _ => None,
    }
}

/// The arguments of a call without names and stars.
pub(crate) fn plain_arguments(arguments: &[FunctionArg]) -> Result<Vec<&Expr>, SqlError> {
    let plain = arguments.iter().map(|argument| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expression)) => Ok(expression),
        other => Err(SqlError::not_supported(format!("the argument {other}"))),
    });
    plain.collect()
}

/// Whether an order is descending, and whether nulls come first.
pub(crate) fn direction(by: &OrderByExpr) -> Result<(bool, bool), SqlError> {
    use sqlparser::ast::OrderBySort;
    let descending = match &by.options.sort {
        None | Some(OrderBySort::Asc) => false,
        Some(OrderBySort::Desc) => true,
        Some(other) => return Err(SqlError::not_supported(format!("ORDER BY {other:?}"))),
    };
    Ok((descending, by.options.nulls_first.unwrap_or(descending)))
}

/// A null of a type.
pub(crate) fn null(ty: Type) -> Expression {
    Expression::constant(Datum::Null, ty)
}

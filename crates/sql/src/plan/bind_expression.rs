//! Binding of expressions.

use super::binder::{Binder, Coercion, Context, fold, split_name, type_of};
use super::expression::{Expression, Kind};
use super::folding::{fold_negation, folded_operation, is_null, negate_if, not, number, text};
use super::operators::{binary, symbol_of};
use super::rows::is_row;
use super::scope::Scope;
use crate::error::SqlError;
use crate::functions::{self, Volatility};
use crate::values::{self, Datum, Operation, PrefixOperator, Type};
use sqlparser::ast::{
    AccessExpr, BinaryOperator, CastKind, CeilFloorKind, DateTimeField, Expr, InTarget, Interval, Query,
    Subscript, TrimWhereField, UnaryOperator, Value,
};

type Bound = Result<Expression, SqlError>;

impl Binder<'_> {
    /// Binds an expression.
    pub(crate) fn expression(&self, expression: &Expr, context: &Context<'_>) -> Bound {
        let bind = |expression: &Expr| self.expression(expression, context);
        match expression {
            Expr::Identifier(name) => self.column(None, &fold(name), context),
            Expr::CompoundIdentifier(names) => {
                let [.., table, column] = names.as_slice() else {
                    return Err(SqlError::new("42601", "syntax error"));
                };
                self.column(Some(&fold(table)), &fold(column), context)
            }
            Expr::Value(value) => self.literal(&value.value),
            Expr::Nested(inner) => bind(inner),
            Expr::BinaryOp { left, op: BinaryOperator::And, right } => self.logic(left, right, true, context),
            Expr::BinaryOp { left, op: BinaryOperator::Or, right } => self.logic(left, right, false, context),
            Expr::BinaryOp { left, op, right } if is_row(left) && is_row(right) => {
                self.compare_rows(symbol_of(op)?, left, right, context)
            }
            Expr::BinaryOp { left, op, right } => self.operator(symbol_of(op)?, bind(left)?, bind(right)?),
            Expr::UnaryOp { op, expr } => self.unary(*op, bind(expr)?),
            Expr::IsNull(inner) => Ok(is_null(bind(inner)?)),
            Expr::IsNotNull(inner) => Ok(not(is_null(bind(inner)?))),
            Expr::IsTrue(inner) => self.is_true(bind(inner)?, true),
            Expr::IsNotTrue(inner) => Ok(not(self.is_true(bind(inner)?, true)?)),
            Expr::IsFalse(inner) => self.is_true(bind(inner)?, false),
            Expr::IsNotFalse(inner) => Ok(not(self.is_true(bind(inner)?, false)?)),
            Expr::IsUnknown(inner) => Ok(is_null(self.condition(bind(inner)?, "IS UNKNOWN")?)),
            Expr::IsNotUnknown(inner) => Ok(not(is_null(self.condition(bind(inner)?, "IS UNKNOWN")?))),
            Expr::IsDistinctFrom(left, right) => self.is_distinct(bind(left)?, bind(right)?),
            Expr::IsNotDistinctFrom(left, right) => Ok(not(self.is_distinct(bind(left)?, bind(right)?)?)),
            Expr::Between { expr, negated, low, high } => {
                let value = bind(expr)?;
                let above = self.operator(">=", value.clone(), bind(low)?)?;
                let below = self.operator("<=", value, bind(high)?)?;
                Ok(negate_if(*negated, Expression::new(Kind::And(vec![above, below]), Type::Bool)))
            }
            Expr::Like { negated, any: false, expr, pattern, escape_char } => {
                self.like(if *negated { "!~~" } else { "~~" }, expr, pattern, escape_char.as_deref(), context)
            }
            Expr::ILike { negated, any: false, expr, pattern, escape_char } => self.like(
                if *negated { "!~~*" } else { "~~*" },
                expr,
                pattern,
                escape_char.as_deref(),
                context,
            ),
            Expr::In { expr, target, negated, .. } => {
                let bound = match target {
                    InTarget::List(list) if is_row(expr) => {
                        let equal = |row| self.compare_rows("=", expr, row, context);
                        let any = list.iter().map(equal).collect::<Result<_, _>>()?;
                        Expression::new(Kind::Or(any), Type::Bool)
                    }
                    InTarget::List(list) => self.in_list(bind(expr)?, list, context)?,
                    InTarget::Subquery(query) => {
                        self.quantified_query("=", bind(expr)?, query, false, context)?
                    }
                    other => return Err(SqlError::not_supported(format!("IN {other}"))),
                };
                Ok(negate_if(*negated, bound))
            }
            Expr::AnyOp { left, compare_op, right, .. } => {
                self.quantified(symbol_of(compare_op)?, bind(left)?, right, false, context)
            }
            Expr::AllOp { left, compare_op, right } => {
                self.quantified(symbol_of(compare_op)?, bind(left)?, right, true, context)
            }
            Expr::Cast { kind: CastKind::Cast | CastKind::DoubleColon, expr, data_type, format: None } => {
                let (to, modifier) = type_of(data_type)?;
                if matches!(&**expr, Expr::Array(array) if array.elem.is_empty()) && to.element().is_some() {
                    // Only the cast tells the type of an array without elements.
                    return Ok(Expression::constant(Datum::array(Vec::new()), to));
                }
                self.coerce(bind(expr)?, to, modifier, Coercion::Explicit)
            }
            Expr::TypedString(typed) => {
                let (to, modifier) = type_of(&typed.data_type)?;
                self.coerce(self.literal(&typed.value.value)?, to, modifier, Coercion::Explicit)
            }
            Expr::Interval(interval) => self.interval(interval),
            Expr::Extract { field, expr, .. } => {
                let field = text(field_name(field).as_str());
                self.call("extract", vec![field, bind(expr)?])
            }
            Expr::Ceil { expr, field: CeilFloorKind::DateTimeField(DateTimeField::NoDateTime) } => {
                self.call("ceil", vec![bind(expr)?])
            }
            Expr::Floor { expr, field: CeilFloorKind::DateTimeField(DateTimeField::NoDateTime) } => {
                self.call("floor", vec![bind(expr)?])
            }
            Expr::Position { expr, r#in } => self.call("position", vec![bind(r#in)?, bind(expr)?]),
            Expr::Substring { expr, substring_from, substring_for, .. } => {
                let mut arguments = vec![bind(expr)?];
                match (substring_from, substring_for) {
                    (Some(from), None) => arguments.push(bind(from)?),
                    (Some(from), Some(length)) => arguments.extend([bind(from)?, bind(length)?]),
                    (None, Some(length)) => {
                        arguments.extend([Expression::constant(Datum::Int4(1), Type::Int4), bind(length)?]);
                    }
                    (None, None) => {}
                }
                self.call("substring", arguments)
            }
            Expr::Trim { expr, trim_where, trim_what, trim_characters } => {
                let name = match trim_where {
                    Some(TrimWhereField::Leading) => "ltrim",
                    Some(TrimWhereField::Trailing) => "rtrim",
                    _ => "btrim",
                };
                let mut arguments = vec![bind(expr)?];
                let characters = trim_characters.iter().flatten();
                for one in trim_what.iter().map(|what| &**what).chain(characters) {
                    arguments.push(bind(one)?);
                }
                self.call(name, arguments)
            }
            Expr::Overlay { expr, overlay_what, overlay_from, overlay_for } => {
                let mut arguments = vec![bind(expr)?, bind(overlay_what)?, bind(overlay_from)?];
                if let Some(length) = overlay_for {
                    arguments.push(bind(length)?);
                }
                self.call("overlay", arguments)
            }
            Expr::Collate { expr, .. } => bind(expr),
            Expr::AtTimeZone { timestamp, time_zone } => {
                self.call("timezone", vec![bind(time_zone)?, bind(timestamp)?])
            }
            Expr::Case { operand, conditions, else_result, .. } => {
                self.case(operand.as_deref(), conditions, else_result.as_deref(), context)
            }
            Expr::Exists { subquery, negated } => {
                let query = self.subquery(subquery, context)?;
                Ok(negate_if(*negated, Expression::new(Kind::Exists(Box::new(query)), Type::Bool)))
            }
            Expr::Subquery(query) => self.scalar_query(query, context),
            Expr::Array(array) => {
                let elements = array.elem.iter().map(bind).collect::<Result<Vec<_>, _>>()?;
                if elements.is_empty() {
                    return Err(SqlError::new("42P18", "cannot determine type of empty array")
                        .hint("Explicitly cast to the desired type, for example ARRAY[]::integer[]."));
                }
                let (elements, element) = self.unify(elements, "ARRAY")?;
                let array = element
                    .array()
                    .ok_or_else(|| SqlError::not_supported(format!("an array of {}", element.name())))?;
                Ok(Expression::new(Kind::Array(elements), array))
            }
            Expr::CompoundFieldAccess { root, access_chain } => {
                self.subscripts(bind(root)?, access_chain, context)
            }
            Expr::Function(function) => self.function(function, context),
            Expr::Tuple(_) => Err(SqlError::not_supported("a row as a value")),
            other => Err(SqlError::not_supported(format!("the expression {other}"))),
        }
    }

    /// Binds several expressions.
    pub(crate) fn expressions<'e>(
        &self,
        expressions: impl IntoIterator<Item = &'e Expr>,
        context: &Context<'_>,
    ) -> Result<Vec<Expression>, SqlError> {
        expressions.into_iter().map(|expression| self.expression(expression, context)).collect()
    }

    fn column(&self, table: Option<&str>, name: &str, context: &Context<'_>) -> Bound {
        match context.scope.resolve(table, name) {
            // Functions that are called without parentheses.
            Err(error) if table.is_none() => match name {
                "current_user" | "session_user" | "user" | "current_role" | "current_catalog"
                | "current_schema" | "current_date" | "current_timestamp" | "localtimestamp"
                | "current_time" | "localtime" => {
                    let name = match name {
                        "user" | "current_role" => "current_user",
                        "current_catalog" => "current_database",
                        other => other,
                    };
                    self.call(name, Vec::new())
                }
                _ => Err(error),
            },
            found => found,
        }
    }

    /// Binds a literal.
    pub(crate) fn literal(&self, value: &Value) -> Bound {
        Ok(match value {
            Value::Number(digits, _) => number(digits)?,
            Value::SingleQuotedString(string)
            | Value::EscapedStringLiteral(string)
            | Value::UnicodeStringLiteral(string)
            | Value::NationalStringLiteral(string) => text(string),
            Value::DollarQuotedString(string) => text(&string.value),
            Value::Boolean(value) => Expression::constant(Datum::Bool(*value), Type::Bool),
            Value::Null => Expression::constant(Datum::Null, Type::Unknown),
            Value::Placeholder(name) => {
                let number = name.strip_prefix('$').and_then(|digits| digits.parse::<usize>().ok());
                let number = number
                    .and_then(|number| number.checked_sub(1))
                    .ok_or_else(|| SqlError::new("42601", format!("syntax error at or near \"{name}\"")))?;
                self.parameter(number)?
            }
            other => return Err(SqlError::not_supported(format!("the literal {other}"))),
        })
    }

    fn logic(&self, left: &Expr, right: &Expr, is_and: bool, context: &Context<'_>) -> Bound {
        let clause = if is_and { "AND" } else { "OR" };
        let mut all = Vec::new();
        for side in [left, right] {
            let bound = self.expression(side, context)?;
            let bound = self.condition(bound, clause)?;
            match bound.kind {
                Kind::And(parts) if is_and => all.extend(parts),
                Kind::Or(parts) if !is_and => all.extend(parts),
                _ => all.push(bound),
            }
        }
        Ok(Expression::new(if is_and { Kind::And(all) } else { Kind::Or(all) }, Type::Bool))
    }

    /// Binds an operator between two expressions.
    pub(crate) fn operator(&self, symbol: &'static str, left: Expression, right: Expression) -> Bound {
        let operation = binary(symbol, left.ty, right.ty)?;
        let both = self.operands(&operation, left, right)?;
        Ok(folded_operation(operation, both))
    }

    /// Both sides of an operator as it takes them.
    pub(crate) fn operands(
        &self,
        operation: &Operation,
        left: Expression,
        right: Expression,
    ) -> Result<Box<[Expression; 2]>, SqlError> {
        let left = self.coerce(left, operation.left, -1, Coercion::Explicit)?;
        let right = self.coerce(right, operation.right, -1, Coercion::Explicit)?;
        Ok(Box::new([left, right]))
    }

    fn unary(&self, operator: UnaryOperator, inner: Expression) -> Bound {
        match operator {
            UnaryOperator::Not => Ok(not(self.condition(inner, "NOT")?)),
            UnaryOperator::Plus => self.prefix(PrefixOperator::Plus, inner),
            UnaryOperator::Minus => self.prefix(PrefixOperator::Minus, inner).map(fold_negation),
            UnaryOperator::BitwiseNot => self.prefix(PrefixOperator::BitNot, inner),
            UnaryOperator::PGAbs => self.prefix(PrefixOperator::Absolute, inner),
            UnaryOperator::PGSquareRoot => self.prefix(PrefixOperator::SquareRoot, inner),
            UnaryOperator::PGCubeRoot => self.prefix(PrefixOperator::CubeRoot, inner),
            other => Err(SqlError::not_supported(format!("the operator {other}"))),
        }
    }

    fn prefix(&self, operator: PrefixOperator, inner: Expression) -> Bound {
        let operation = values::resolve_prefix(operator, inner.ty)?;
        let inner = self.coerce(inner, operation.ty, -1, Coercion::Implicit)?;
        Ok(Expression::new(Kind::Prefix(operation, Box::new(inner)), operation.ty))
    }

    fn is_true(&self, inner: Expression, truth: bool) -> Bound {
        let inner = self.condition(inner, if truth { "IS TRUE" } else { "IS FALSE" })?;
        Ok(Expression::new(Kind::IsTrue(Box::new(inner), truth), Type::Bool))
    }

    fn is_distinct(&self, left: Expression, right: Expression) -> Bound {
        let operation = binary("=", left.ty, right.ty)?;
        let both = self.operands(&operation, left, right)?;
        Ok(Expression::new(Kind::IsDistinct(operation, both), Type::Bool))
    }

    fn like(
        &self,
        symbol: &'static str,
        value: &Expr,
        pattern: &Expr,
        escape: Option<&Expr>,
        context: &Context<'_>,
    ) -> Bound {
        let (value, mut pattern) = (self.expression(value, context)?, self.expression(pattern, context)?);
        if let Some(escape) = escape {
            pattern = self.call("like_escape", vec![pattern, self.expression(escape, context)?])?;
        }
        self.operator(symbol, value, pattern)
    }

    /// As in PostgreSQL, values that need no row are compared as one list, of one type, and the others each by itself.
    fn in_list(&self, value: Expression, list: &[Expr], context: &Context<'_>) -> Bound {
        let (mut fixed, mut others): (Vec<_>, Vec<_>) =
            self.expressions(list, context)?.into_iter().partition(|one| one.sources().is_empty());
        let types: Vec<Type> = std::iter::once(&value).chain(&fixed).map(|one| one.ty).collect();
        let mut any = Vec::new();
        if fixed.len() > 1 && values::common_type(&types).is_ok() {
            fixed.insert(0, value.clone());
            let (mut all, common) = self.unify(fixed, "IN")?;
            let first = all.remove(0);
            let operation = binary("=", common, common)?;
            any.push(Expression::new(Kind::In(operation, Box::new(first), all), Type::Bool));
        } else {
            others.splice(..0, fixed);
        }
        for other in others {
            any.push(self.operator("=", value.clone(), other)?);
        }
        match any.len() {
            1 => Ok(any.remove(0)),
            _ => Ok(Expression::new(Kind::Or(any), Type::Bool)),
        }
    }

    fn quantified(
        &self,
        symbol: &'static str,
        left: Expression,
        right: &Expr,
        all: bool,
        context: &Context<'_>,
    ) -> Bound {
        let mut inner = right;
        while let Expr::Nested(nested) = inner {
            inner = nested;
        }
        if let Expr::Subquery(query) = inner {
            return self.quantified_query(symbol, left, query, all, context);
        }
        let mut array = self.expression(inner, context)?;
        if array.ty == Type::Unknown {
            let of_left = if left.ty == Type::Unknown { Type::Text } else { left.ty };
            let wanted = of_left
                .array()
                .ok_or_else(|| SqlError::not_supported(format!("an array of {}", left.ty.name())))?;
            array = self.coerce(array, wanted, -1, Coercion::Implicit)?;
        }
        let Some(element) = array.ty.element() else {
            return Err(SqlError::new("42809", "op ANY/ALL (array) requires array on right side"));
        };
        let operator = binary(symbol, left.ty, element)?;
        let left = self.coerce(left, operator.left, -1, Coercion::Implicit)?;
        if operator.right != element
            && let Some(wanted) = operator.right.array()
        {
            array = self.coerce(array, wanted, -1, Coercion::Explicit)?;
        }
        Ok(Expression::new(Kind::Quantified(operator, Box::new([left, array]), all), Type::Bool))
    }

    fn quantified_query(
        &self,
        symbol: &'static str,
        left: Expression,
        query: &Query,
        all: bool,
        context: &Context<'_>,
    ) -> Bound {
        let mut query = self.subquery(query, context)?;
        let column = one_column(&query)?;
        let operator = binary(symbol, left.ty, column)?;
        let left = self.coerce(left, operator.left, -1, Coercion::Implicit)?;
        if operator.right != column {
            self.cast_outputs(&mut query, &[operator.right])?;
        }
        Ok(Expression::new(Kind::InQuery(operator, Box::new(left), Box::new(query), all), Type::Bool))
    }

    fn scalar_query(&self, query: &Query, context: &Context<'_>) -> Bound {
        let query = self.subquery(query, context)?;
        let ty = one_column(&query)?;
        let modifier = query.outputs[0].modifier;
        Ok(Expression { kind: Kind::Scalar(Box::new(query)), ty, modifier })
    }

    /// Binds a query inside of an expression.
    pub(crate) fn subquery(
        &self,
        query: &Query,
        context: &Context<'_>,
    ) -> Result<super::select::Query, SqlError> {
        self.query(query, Some(context.scope))
    }

    fn interval(&self, interval: &Interval) -> Bound {
        let empty = Scope::default();
        let value = self.expression(&interval.value, &Context::new(&empty, "INTERVAL"))?;
        let (Kind::Constant(value), None) = (&value.kind, &interval.last_field) else {
            return Err(SqlError::not_supported(format!("the interval {interval}")));
        };
        let mut words = match value {
            Datum::Text(text) => text.to_string(),
            other => other.to_text(value_type(other)),
        };
        if let Some(field) = &interval.leading_field {
            words = format!("{words} {}", field_name(field));
        }
        self.coerce(text(&words), Type::Interval, -1, Coercion::Explicit)
    }

    fn case(
        &self,
        operand: Option<&Expr>,
        conditions: &[sqlparser::ast::CaseWhen],
        otherwise: Option<&Expr>,
        context: &Context<'_>,
    ) -> Bound {
        let mut tests = Vec::new();
        let mut results = Vec::new();
        for when in conditions {
            let condition = self.expression(&when.condition, context)?;
            tests.push(match operand {
                Some(operand) => self.operator("=", self.expression(operand, context)?, condition)?,
                None => self.condition(condition, "CASE/WHEN")?,
            });
            results.push(self.expression(&when.result, context)?);
        }
        if let Some(otherwise) = otherwise {
            results.push(self.expression(otherwise, context)?);
        }
        let (mut results, ty) = self.unify(results, "CASE")?;
        let otherwise = otherwise.and_then(|_| results.pop()).map(Box::new);
        Ok(Expression::new(Kind::Case(tests.into_iter().zip(results).collect(), otherwise), ty))
    }

    fn subscripts(&self, root: Expression, chain: &[AccessExpr], context: &Context<'_>) -> Bound {
        chain.iter().try_fold(root, |array, access| {
            let AccessExpr::Subscript(Subscript::Index { index }) = access else {
                return Err(SqlError::not_supported("an access to a part of a value"));
            };
            let Some(element) = array.ty.element() else {
                let name = array.ty.name();
                return Err(SqlError::new(
                    "42804",
                    format!("cannot subscript type {name} because it does not support subscripting"),
                ));
            };
            let index = self.expression(index, context)?;
            let index = self.coerce(index, Type::Int4, -1, Coercion::Assignment)?;
            Ok(Expression::new(Kind::Subscript(Box::new([array, index])), element))
        })
    }

    /// A call of a function by its name.
    pub(crate) fn call(&self, name: &str, arguments: Vec<Expression>) -> Bound {
        let types: Vec<Type> = arguments.iter().map(|argument| argument.ty).collect();
        let function = functions::lookup(name, &types)?;
        let wanted = function.argument_types(&types);
        let arguments = self.arguments(arguments, |at| wanted.get(at).copied())?;
        let result = function.result(&types);
        let is_null = |argument: &Expression| matches!(argument.kind, Kind::Constant(Datum::Null));
        if function.is_strict()
            && function.volatility() == Volatility::Immutable
            && arguments.iter().any(is_null)
        {
            return Ok(super::bind_function::null(result));
        }
        Ok(Expression::new(Kind::Call(function, arguments), result))
    }

    /// Gives arguments the types that a function has for them.
    pub(crate) fn arguments(
        &self,
        arguments: Vec<Expression>,
        wanted: impl Fn(usize) -> Option<Type>,
    ) -> Result<Vec<Expression>, SqlError> {
        let coerced = arguments.into_iter().enumerate().map(|(at, argument)| match wanted(at) {
            Some(wanted) => self.coerce(argument, wanted, -1, Coercion::Implicit),
            None if argument.ty == Type::Unknown => self.coerce(argument, Type::Text, -1, Coercion::Implicit),
            None => Ok(argument),
        });
        coerced.collect()
    }

    /// The names of a function: its schema is dropped.
    pub(crate) fn function_name(name: &sqlparser::ast::ObjectName) -> Result<String, SqlError> {
        Ok(split_name(name)?.1)
    }
}

/// The type of the only column of a query.
pub(crate) fn one_column(query: &super::select::Query) -> Result<Type, SqlError> {
    match query.outputs.as_slice() {
        [output] => Ok(output.ty),
        _ => Err(SqlError::new("42601", "subquery must return only one column")),
    }
}

fn value_type(value: &Datum) -> Type {
    match value {
        Datum::Int4(_) => Type::Int4,
        Datum::Int8(_) => Type::Int8,
        Datum::Numeric(_) => Type::Numeric,
        _ => Type::Text,
    }
}

fn field_name(field: &DateTimeField) -> String {
    match field {
        DateTimeField::Custom(name) => name.value.to_lowercase(),
        other => other.to_string().to_lowercase(),
    }
}

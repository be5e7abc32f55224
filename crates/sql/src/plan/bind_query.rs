//! Binding of queries: what is around a `SELECT`.

use super::bind_function::direction;
use super::bind_select::{order_expressions, ordinal, position_error};
use super::binder::{Binder, Coercion, Context, fold};
use super::expression::{Expression, Kind};
use super::scope::Scope;
use super::select::{Body, Output, Query, SetOperation, Sort};
use crate::error::SqlError;
use crate::values::{self, Type};
use sqlparser::ast::{self, Expr, LimitClause, SetExpr, SetOperator, SetQuantifier};
use std::sync::Arc;

impl Binder<'_> {
    /// Binds a query that may look at the names of those around it.
    pub(crate) fn query(&self, query: &ast::Query, parent: Option<&Scope<'_>>) -> Result<Query, SqlError> {
        if query.for_clause.is_some() || query.settings.is_some() || !query.pipe_operators.is_empty() {
            return Err(SqlError::not_supported(format!("the query {query}")));
        }
        let known = self.with.borrow().len();
        let with = self.with_queries(query, parent)?;
        let locks = !query.locks.is_empty();
        if locks {
            self.writes.set(true);
        }
        let (body, outputs, order) = self.body(&query.body, query.order_by.as_ref(), locks, parent)?;
        let (limit, offset) = self.limits(query)?;
        self.with.borrow_mut().truncate(known);
        Ok(Query { with, order, limit, offset, ..Query::of(body, outputs) })
    }

    fn with_queries(
        &self,
        query: &ast::Query,
        parent: Option<&Scope<'_>>,
    ) -> Result<Vec<(usize, Query)>, SqlError> {
        let mut bound = Vec::new();
        let Some(with) = &query.with else { return Ok(bound) };
        for one in &with.cte_tables {
            let name = fold(&one.alias.name);
            let named = |mut outputs: Vec<Output>| -> Arc<[Output]> {
                for (output, column) in outputs.iter_mut().zip(&one.alias.columns) {
                    output.name = Arc::from(fold(&column.name));
                }
                outputs.into()
            };
            if with.recursive
                && let Some((place, inner)) = self.recursive(&name, &one.query, &named, parent)?
            {
                self.with.borrow_mut().push((name, place, named(inner.outputs.clone())));
                bound.push((place, inner));
                continue;
            }
            let inner = self.query(&one.query, parent)?;
            let outputs = named(inner.outputs.clone());
            let place = Self::draw(&self.with_places);
            self.with.borrow_mut().push((name, place, outputs));
            bound.push((place, inner));
        }
        Ok(bound)
    }

    /// A query that is the union of a first part with one that uses its own name; none if it is no such query.
    fn recursive(
        &self,
        name: &str,
        query: &ast::Query,
        named: &dyn Fn(Vec<Output>) -> Arc<[Output]>,
        parent: Option<&Scope<'_>>,
    ) -> Result<Option<(usize, Query)>, SqlError> {
        let SetExpr::SetOperation { left, op: SetOperator::Union, set_quantifier, right } = &*query.body
        else {
            return Ok(None);
        };
        if query.with.is_some() || query.order_by.is_some() || query.limit_clause.is_some() {
            return Ok(None);
        }
        let first = self.side(left, parent)?;
        let place = Self::draw(&self.with_places);
        self.with.borrow_mut().push((name.to_owned(), place, named(first.outputs.clone())));
        let next = self.side(right, parent);
        self.with.borrow_mut().pop();
        if !self.used.borrow().contains(&place) {
            return Ok(None);
        }
        let mut next = next?;
        if next.outputs.len() != first.outputs.len() {
            return Err(SqlError::new("42601", "each UNION query must have the same number of columns"));
        }
        let types: Vec<Type> = first.outputs.iter().map(|output| output.ty).collect();
        self.cast_outputs(&mut next, &types)?;
        let outputs = first.outputs.iter().map(|output| Output { origin: None, ..output.clone() }).collect();
        let all = matches!(set_quantifier, SetQuantifier::All);
        let body = Body::Recursive { place, all, first: Box::new(first), next: Box::new(next) };
        Ok(Some((place, Query::of(body, outputs))))
    }

    fn body(
        &self,
        body: &SetExpr,
        order_by: Option<&ast::OrderBy>,
        locks: bool,
        parent: Option<&Scope<'_>>,
    ) -> Result<(Body, Vec<Output>, Vec<Sort>), SqlError> {
        match body {
            SetExpr::Select(select) => {
                let (select, outputs, order) = self.select(select, order_by, locks, parent)?;
                Ok((Body::Select(Box::new(select)), outputs, order))
            }
            SetExpr::Query(query) => {
                let inner = self.query(query, parent)?;
                let outputs = inner.outputs.clone();
                let order = order_of_outputs(order_by, &outputs)?;
                Ok((Body::Nested(Box::new(inner)), outputs, order))
            }
            SetExpr::Values(values) => {
                let (rows, outputs) = self.values(values, parent)?;
                let order = order_of_outputs(order_by, &outputs)?;
                Ok((Body::Values(rows), outputs, order))
            }
            SetExpr::SetOperation { left, op, set_quantifier, right } => {
                let (operation, name) = match op {
                    SetOperator::Union => (SetOperation::Union, "UNION"),
                    SetOperator::Intersect => (SetOperation::Intersect, "INTERSECT"),
                    SetOperator::Except | SetOperator::Minus => (SetOperation::Except, "EXCEPT"),
                };
                let all = match set_quantifier {
                    SetQuantifier::All => true,
                    SetQuantifier::None | SetQuantifier::Distinct => false,
                    other => return Err(SqlError::not_supported(other)),
                };
                let mut left = self.side(left, parent)?;
                let mut right = self.side(right, parent)?;
                let outputs = self.match_outputs(&mut left, &mut right, name)?;
                let order = order_of_outputs(order_by, &outputs)?;
                Ok((
                    Body::Set { operation, all, left: Box::new(left), right: Box::new(right) },
                    outputs,
                    order,
                ))
            }
            SetExpr::Table(_) => Err(SqlError::not_supported("TABLE")),
            SetExpr::Insert(statement) | SetExpr::Update(statement) | SetExpr::Delete(statement) => {
                let modification = self.modification(statement)?;
                let outputs = modification.1;
                Ok((Body::Modify(Box::new(modification.0)), outputs, Vec::new()))
            }
            SetExpr::Merge(_) => Err(SqlError::not_supported("MERGE")),
        }
    }

    fn side(&self, body: &SetExpr, parent: Option<&Scope<'_>>) -> Result<Query, SqlError> {
        let (body, outputs, order) = self.body(body, None, false, parent)?;
        Ok(Query { order, ..Query::of(body, outputs) })
    }

    fn match_outputs(
        &self,
        left: &mut Query,
        right: &mut Query,
        name: &str,
    ) -> Result<Vec<Output>, SqlError> {
        if left.outputs.len() != right.outputs.len() {
            let message = format!("each {name} query must have the same number of columns");
            return Err(SqlError::new("42601", message));
        }
        for column in 0..left.outputs.len() {
            let (one, other) = (left.outputs[column].ty, right.outputs[column].ty);
            if one != other {
                self.literal_as(left, column, other)?;
                self.literal_as(right, column, one)?;
            }
        }
        let mut types = Vec::new();
        for (one, other) in left.outputs.iter().zip(&right.outputs) {
            types.push(values::common_type(&[one.ty, other.ty]).map_err(|_| {
                let (one, other) = (one.ty.name(), other.ty.name());
                SqlError::new("42804", format!("{name} types {one} and {other} cannot be matched"))
            })?);
        }
        self.cast_outputs(left, &types)?;
        self.cast_outputs(right, &types)?;
        let outputs = left.outputs.iter().zip(&right.outputs).map(|(one, other)| Output {
            modifier: if one.modifier == other.modifier { one.modifier } else { -1 },
            origin: None,
            ..one.clone()
        });
        Ok(outputs.collect())
    }

    /// Gives a literal in quotes, or a null, the type of the column on the other side of a set operation.
    fn literal_as(&self, query: &mut Query, column: usize, to: Type) -> Result<(), SqlError> {
        if let Body::Select(select) = &mut query.body
            && let Some(value) = select.projection.get_mut(column)
            && value.ty == Type::Text
            && let Kind::Constant(values::Datum::Null | values::Datum::Text(_)) = &value.kind
        {
            value.ty = Type::Unknown;
            let literal = std::mem::replace(value, super::bind_function::null(to));
            *value = self.coerce(literal, to, -1, Coercion::Implicit)?;
            query.outputs[column].ty = to;
        }
        Ok(())
    }

    /// Makes a query's columns ones of these types.
    pub(crate) fn cast_outputs(&self, query: &mut Query, types: &[Type]) -> Result<(), SqlError> {
        let cast = |value: &mut Expression, to: Type| {
            let old = std::mem::replace(value, super::bind_function::null(to));
            *value = self.coerce(old, to, -1, Coercion::Implicit)?;
            Ok::<(), SqlError>(())
        };
        match &mut query.body {
            Body::Select(select) => {
                for (value, to) in select.projection.iter_mut().zip(types) {
                    cast(value, *to)?;
                }
            }
            Body::Values(rows) => {
                for row in rows {
                    for (value, to) in row.iter_mut().zip(types) {
                        cast(value, *to)?;
                    }
                }
            }
            Body::Set { left, right, .. } => {
                self.cast_outputs(left, types)?;
                self.cast_outputs(right, types)?;
            }
            Body::Nested(inner) => self.cast_outputs(inner, types)?,
            Body::Recursive { .. } => return Err(SqlError::not_supported("a cast of a recursive query")),
            Body::Modify(modification) => {
                for (value, to) in modification.returning.iter_mut().flatten().zip(types) {
                    cast(value, *to)?;
                }
            }
        }
        for (output, to) in query.outputs.iter_mut().zip(types) {
            if output.ty != *to {
                output.ty = *to;
                output.modifier = -1;
            }
        }
        Ok(())
    }

    fn values(
        &self,
        values: &ast::Values,
        parent: Option<&Scope<'_>>,
    ) -> Result<(Vec<Vec<Expression>>, Vec<Output>), SqlError> {
        let scope = Scope::inside(parent);
        let context = Context::new(&scope, "VALUES");
        let mut rows = Vec::new();
        for row in &values.rows {
            rows.push(self.expressions(row.iter(), &context)?);
        }
        let width = rows.first().map_or(0, Vec::len);
        if rows.iter().any(|row| row.len() != width) {
            return Err(SqlError::new("42601", "VALUES lists must all be the same length"));
        }
        let mut outputs = Vec::new();
        for column in 0..width {
            let types: Vec<Type> = rows.iter().map(|row| row[column].ty).collect();
            let ty = values::common_type(&types).map_err(|_| {
                let first = types[0].name();
                let other = types.iter().map(|ty| ty.name()).find(|name| *name != first).unwrap_or(first);
                SqlError::new("42804", format!("VALUES types {first} and {other} cannot be matched"))
            })?;
            let ty = if ty == Type::Unknown { Type::Text } else { ty };
            for row in &mut rows {
                let value = std::mem::replace(&mut row[column], super::bind_function::null(ty));
                row[column] = self.coerce(value, ty, -1, Coercion::Implicit)?;
            }
            let name = format!("column{}", column + 1);
            outputs.push(Output { name: name.as_str().into(), ty, modifier: -1, origin: None });
        }
        Ok((rows, outputs))
    }

    fn limits(&self, query: &ast::Query) -> Result<(Option<Expression>, Option<Expression>), SqlError> {
        let empty = Scope::default();
        let bind = |expression: &Expr, clause: &'static str| {
            let bound = self.expression(expression, &Context::new(&empty, clause))?;
            self.coerce(bound, Type::Int8, -1, Coercion::Assignment)
        };
        let (limit, offset) = match &query.limit_clause {
            None => (None, None),
            Some(LimitClause::LimitOffset { limit, offset, limit_by }) if limit_by.is_empty() => {
                let offset = offset.as_ref().map(|offset| bind(&offset.value, "OFFSET")).transpose()?;
                (limit.as_ref().map(|limit| bind(limit, "LIMIT")).transpose()?, offset)
            }
            Some(other) => return Err(SqlError::not_supported(other)),
        };
        match &query.fetch {
            None => Ok((limit, offset)),
            Some(fetch) if fetch.percent || fetch.with_ties => Err(SqlError::not_supported(fetch)),
            Some(fetch) => {
                let one = Expression::constant(values::Datum::Int8(1), Type::Int8);
                let rows = fetch.quantity.as_ref().map(|rows| bind(rows, "FETCH")).transpose()?;
                Ok((Some(rows.unwrap_or(one)), offset))
            }
        }
    }
}

/// An order by the columns of a result: by place or name.
fn order_of_outputs(order_by: Option<&ast::OrderBy>, outputs: &[Output]) -> Result<Vec<Sort>, SqlError> {
    let mut order = Vec::new();
    for by in order_expressions(order_by)? {
        let column = match (ordinal(&by.expr), &by.expr) {
            (Some(at), _) => at.filter(|at| *at < outputs.len()),
            (None, Expr::Identifier(name)) => {
                let name = fold(name);
                let found = outputs.iter().position(|output| *output.name == name);
                Some(
                    found
                        .ok_or_else(|| SqlError::new("42703", format!("column \"{name}\" does not exist")))?,
                )
            }
            _ => {
                return Err(SqlError::new("0A000", "invalid UNION/INTERSECT/EXCEPT ORDER BY clause")
                    .detail("Only result column names can be used, not expressions or functions."));
            }
        };
        let column = column.ok_or_else(|| position_error("ORDER BY", &by.expr))?;
        let (descending, nulls_first) = direction(by)?;
        order.push(Sort { column, descending, nulls_first });
    }
    Ok(order)
}

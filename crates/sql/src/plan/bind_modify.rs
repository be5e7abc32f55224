//! Binding of insertions, updates and deletions.

use super::bind_function::null;
use super::bind_select::conjuncts;
use super::binder::{Binder, Coercion, Context, fold, split_name};
use super::commit_time::at_commit;
use super::expression::{Expression, Kind, Place};
use super::modify::{Insert, Inserted, Modification, ModificationKind, Target};
use super::scope::Scope;
use super::select::{Access, Body, Join, Output, Query, Source, TableSource};
use crate::catalog::{Column, Relation};
use crate::error::SqlError;
use crate::values::{self, Datum, Type};
use sqlparser::ast::{
    self, Assignment, AssignmentTarget, Expr, FromTable, SelectItem, SetExpr, Statement, TableFactor,
    TableObject, TableWithJoins, UpdateTableFromKind,
};
use std::sync::Arc;

type Bound = Result<(Modification, Vec<Output>), SqlError>;

impl Binder<'_> {
    /// Binds a statement that changes rows: its plan, and the columns that it returns.
    pub(crate) fn modification(&self, statement: &Statement) -> Bound {
        self.writes.set(true);
        match statement {
            Statement::Insert(insert) => self.insert(insert),
            Statement::Update(update) => self.update(update),
            Statement::Delete(delete) => self.delete(delete),
            other => Err(SqlError::not_supported(other)),
        }
    }

    fn insert(&self, insert: &ast::Insert) -> Bound {
        let TableObject::TableName(name) = &insert.table else {
            return Err(SqlError::not_supported(format!("an insertion into {}", insert.table)));
        };
        let relation = self.relation(name)?;
        let target = self.table(relation.clone())?;
        let named = self.named_columns(&relation, &insert.columns)?;
        let (rows, defaults) = self.inserted_rows(insert, &relation, &named)?;
        let mut columns = Vec::new();
        for (at, column) in relation.columns.iter().enumerate() {
            let given = named.iter().position(|named| *named == at).filter(|given| !defaults.contains(given));
            columns.push(match given.filter(|given| *given < rows.outputs.len()) {
                Some(_) if column.identity == Some('a') && insert.overriding.is_none() => {
                    return Err(SqlError::new(
                        "428C9",
                        format!("cannot insert a non-DEFAULT value into column \"{}\"", column.name),
                    )
                    .detail(format!(
                        "Column \"{}\" is an identity column defined as GENERATED ALWAYS.",
                        column.name
                    ))
                    .hint("Use OVERRIDING SYSTEM VALUE to override."));
                }
                Some(given) => Inserted::Given(given),
                None => Inserted::Default(self.default_of(&relation, at)?),
            });
        }
        let alias = insert.table_alias.as_ref().map_or(relation.name.clone(), |alias| fold(&alias.alias));
        let on_conflict = self.on_conflict(insert.on.as_ref(), &relation, &alias)?;
        let mut scope = Scope::default();
        scope.add(alias, 0, &Self::outputs(&relation))?;
        let (returning, outputs) = self.returning(insert.returning.as_deref(), &scope)?;
        let checks = self.checks(&relation)?;
        let kind = ModificationKind::Insert(Insert { rows, columns, on_conflict });
        Ok((Modification { target: Target { table: target, checks }, kind, returning }, outputs))
    }

    /// The places of the columns that are named, or of all.
    pub(crate) fn named_columns(
        &self,
        relation: &Relation,
        names: &[ast::ObjectName],
    ) -> Result<Vec<usize>, SqlError> {
        if names.is_empty() {
            return Ok((0..relation.columns.len()).collect());
        }
        let mut places = Vec::new();
        for name in names {
            let (_, name) = split_name(name)?;
            let place = relation.column(&name).ok_or_else(|| no_column(&name, relation))?;
            if places.contains(&place) {
                return Err(SqlError::new("42701", format!("column \"{name}\" specified more than once")));
            }
            places.push(place);
        }
        Ok(places)
    }

    /// The rows to be inserted, and the places among them that say `DEFAULT`.
    fn inserted_rows(
        &self,
        insert: &ast::Insert,
        relation: &Relation,
        named: &[usize],
    ) -> Result<(Query, Vec<usize>), SqlError> {
        let Some(source) = &insert.source else {
            // DEFAULT VALUES.
            return Ok((Query::of(Body::Values(vec![Vec::new()]), Vec::new()), Vec::new()));
        };
        let assign = |value: Expression, at: usize| {
            let column = &relation.columns[named[at]];
            self.assign(value, column.ty, &column.name)
        };
        if let SetExpr::Values(values) = &*source.body
            && source.with.is_none()
            && source.order_by.is_none()
            && source.limit_clause.is_none()
        {
            let scope = Scope::default();
            let context = Context::new(&scope, "VALUES");
            let width = values.rows.first().map_or(0, |row| row.len());
            let mut rows = Vec::new();
            // Columns that are given DEFAULT only get it as those that are not named.
            let is_all_default =
                |at: usize| values.rows.iter().all(|row| row.get(at).is_some_and(is_default));
            let defaults: Vec<usize> = (0..width).filter(|at| is_all_default(*at)).collect();
            for row in &values.rows {
                if row.len() != width {
                    return Err(SqlError::new("42601", "VALUES lists must all be the same length"));
                }
                too_many(row.len(), named.len(), !insert.columns.is_empty())?;
                let mut bound = Vec::new();
                for (at, value) in row.iter().enumerate() {
                    bound.push(if defaults.contains(&at) {
                        null(relation.columns[named[at]].ty)
                    } else if is_default(value) {
                        self.default_of(relation, named[at])?
                    } else {
                        fitted(assign(self.expression(value, &context)?, at)?, &relation.columns[named[at]])?
                    });
                }
                rows.push(bound);
            }
            let outputs = named[..width].iter().map(|at| Self::outputs(relation).swap_remove(*at)).collect();
            return Ok((Query::of(Body::Values(rows), outputs), defaults));
        }
        let mut rows = self.query(source, None)?;
        too_many(rows.outputs.len(), named.len(), !insert.columns.is_empty())?;
        self.assign_outputs(&mut rows, relation, named)?;
        Ok((rows, Vec::new()))
    }

    /// Makes a query's columns ones that can be assigned to a table's.
    fn assign_outputs(
        &self,
        query: &mut Query,
        relation: &Relation,
        named: &[usize],
    ) -> Result<(), SqlError> {
        let assign = |value: &mut Expression, at: usize| {
            let column = &relation.columns[named[at]];
            let old = std::mem::replace(value, null(column.ty));
            *value = self.assign(old, column.ty, &column.name)?;
            Ok::<(), SqlError>(())
        };
        let visible = query.outputs.len();
        match &mut query.body {
            // Columns by which a query is sorted, or its rows are told apart, are not changed: that is done before.
            Body::Select(select)
                if query.order.is_empty() && matches!(select.distinct, super::select::Distinct::No) =>
            {
                for (at, value) in select.projection.iter_mut().take(visible).enumerate() {
                    assign(value, at)?;
                }
            }
            _ => {
                let outputs = query.outputs.clone();
                let placeholder = Query::of(Body::Values(Vec::new()), outputs.clone());
                let inner = std::mem::replace(query, placeholder);
                let mut projection = Vec::new();
                for (at, output) in outputs.iter().enumerate() {
                    let kind = Kind::Column(Place { source: 0, column: at });
                    let mut value = Expression { kind, ty: output.ty, modifier: output.modifier };
                    assign(&mut value, at)?;
                    projection.push(value);
                }
                query.body = Body::Select(Box::new(super::select::Select {
                    sources: vec![Source::Query(Box::new(inner))],
                    from: Join::Scan { source: 0, access: Access::All, filter: Vec::new() },
                    filter: Vec::new(),
                    grouping: None,
                    having: None,
                    projection,
                    distinct: super::select::Distinct::No,
                    locks: false,
                }));
            }
        }
        Ok(())
    }

    /// A value for a column of a type. Its length is checked when it is stored.
    fn assign(&self, value: Expression, ty: Type, column: &str) -> Result<Expression, SqlError> {
        let from = value.ty;
        self.coerce(value, ty, -1, Coercion::Assignment).map_err(|error| match error.code {
            "42846" => SqlError::new(
                "42804",
                format!(
                    "column \"{column}\" is of type {} but expression is of type {}",
                    ty.name(),
                    from.name()
                ),
            )
            .hint("You will need to rewrite or cast the expression."),
            _ => error,
        })
    }

    /// The value of a column that an insertion does not name.
    pub(crate) fn default_of(&self, relation: &Relation, at: usize) -> Result<Expression, SqlError> {
        let column = &relation.columns[at];
        let Some(text) = &column.default else { return Ok(null(column.ty)) };
        let parsed = super::parse_expression(text)?;
        let scope = Scope::default();
        let bound = self.expression(&parsed, &Context::new(&scope, "DEFAULT expressions"))?;
        self.assign(bound, column.ty, &column.name)
    }

    /// The conditions on a table's rows: of source 0.
    pub(crate) fn checks(&self, relation: &Relation) -> Result<Vec<(String, Expression)>, SqlError> {
        let mut scope = Scope::default();
        scope.add(relation.name.clone(), 0, &Self::outputs(relation))?;
        let context = Context::new(&scope, "check constraints");
        let bind = |check: &crate::catalog::Check| {
            let parsed = super::parse_expression(&check.text)?;
            let condition = self.condition(self.expression(&parsed, &context)?, "CHECK")?;
            Ok((check.name.clone(), condition))
        };
        relation.checks.iter().map(bind).collect()
    }

    pub(super) fn assignments(
        &self,
        assignments: &[Assignment],
        relation: &Relation,
        context: &Context<'_>,
    ) -> Result<Vec<(usize, Expression)>, SqlError> {
        let mut bound: Vec<(usize, Expression)> = Vec::new();
        let mut put = |name: &ast::ObjectName, value: &Expr| {
            let (table, name) = split_name(name)?;
            if let Some(table) = table {
                // A table's name here would be that of a column with parts.
                return Err(no_column(&table, relation));
            }
            let column = relation.column(&name).ok_or_else(|| no_column(&name, relation))?;
            if bound.iter().any(|(known, _)| *known == column) {
                return Err(SqlError::new(
                    "42601",
                    format!("multiple assignments to same column \"{name}\""),
                ));
            }
            let value = if is_default(value) {
                self.default_of(relation, column)?
            } else if relation.columns[column].identity == Some('a') {
                let message = format!("column \"{name}\" can only be updated to DEFAULT");
                return Err(SqlError::new("428C9", message).detail(format!(
                    "Column \"{name}\" is an identity column defined as GENERATED ALWAYS."
                )));
            } else {
                self.assign(self.expression(value, context)?, relation.columns[column].ty, &name)?
            };
            bound.push((column, value));
            Ok(())
        };
        for assignment in assignments {
            match (&assignment.target, &assignment.value) {
                (AssignmentTarget::ColumnName(name), value) => put(name, value)?,
                (AssignmentTarget::Tuple(names), Expr::Tuple(values)) if names.len() == values.len() => {
                    for (name, value) in names.iter().zip(values) {
                        put(name, value)?;
                    }
                }
                (AssignmentTarget::Tuple(_), other) => {
                    return Err(SqlError::not_supported(format!(
                        "the assignment of {other} to several columns"
                    )));
                }
            }
        }
        Ok(bound)
    }

    /// The table that a statement changes, as source 0.
    fn target(
        &self,
        tables: &TableWithJoins,
        scope: &mut Scope<'_>,
        sources: &mut Vec<Source>,
    ) -> Result<(Arc<TableSource>, Join), SqlError> {
        let TableFactor::Table { name, .. } = &tables.relation else {
            return Err(SqlError::not_supported(format!("a change of {}", tables.relation)));
        };
        self.relation(name)?;
        let from = self.from(std::slice::from_ref(tables), sources, scope)?;
        match &sources[0] {
            Source::Table(table) => Ok((table.clone(), from)),
            _ => Err(SqlError::not_supported(format!("a change of {}", tables.relation))),
        }
    }

    fn update(&self, update: &ast::Update) -> Bound {
        if update.limit.is_some() || !update.order_by.is_empty() || update.or.is_some() {
            return Err(SqlError::not_supported("UPDATE with ORDER BY or LIMIT"));
        }
        let (mut scope, mut sources) = (Scope::default(), Vec::new());
        let (target, from) = self.target(&update.table, &mut scope, &mut sources)?;
        let others = match &update.from {
            None => &[][..],
            Some(UpdateTableFromKind::BeforeSet(tables) | UpdateTableFromKind::AfterSet(tables)) => tables,
        };
        let from = self.with_others(from, others, &mut sources, &mut scope)?;
        let context = Context::new(&scope, "UPDATE");
        // In PostgreSQL's order, so that the first of several errors is the same.
        let (from, filter) = self.filtered(from, update.selection.as_ref(), &mut sources, &scope)?;
        let (returning, outputs) = self.returning(update.returning.as_deref(), &scope)?;
        let assignments = self.assignments(&update.assignments, &target.relation, &context)?;
        let checks = self.checks(&target.relation)?;
        let at_commit = if returning.is_none() && checks.is_empty() {
            at_commit(&target, &sources, &from, &filter, &assignments)
        } else {
            None
        };
        let kind = ModificationKind::Update { sources, from, filter, assignments, at_commit };
        Ok((Modification { target: Target { table: target, checks }, kind, returning }, outputs))
    }

    fn delete(&self, delete: &ast::Delete) -> Bound {
        if delete.limit.is_some() || !delete.order_by.is_empty() || !delete.tables.is_empty() {
            return Err(SqlError::not_supported("DELETE with ORDER BY or LIMIT"));
        }
        let (FromTable::WithFromKeyword(tables) | FromTable::WithoutKeyword(tables)) = &delete.from;
        let [table] = tables.as_slice() else {
            return Err(SqlError::not_supported("DELETE from several tables"));
        };
        let (mut scope, mut sources) = (Scope::default(), Vec::new());
        let (target, from) = self.target(table, &mut scope, &mut sources)?;
        let from =
            self.with_others(from, delete.using.as_deref().unwrap_or_default(), &mut sources, &mut scope)?;
        let (from, filter) = self.filtered(from, delete.selection.as_ref(), &mut sources, &scope)?;
        let (returning, outputs) = self.returning(delete.returning.as_deref(), &scope)?;
        let kind = ModificationKind::Delete { sources, from, filter };
        let target = Target { table: target, checks: Vec::new() };
        Ok((Modification { target, kind, returning }, outputs))
    }

    fn with_others(
        &self,
        from: Join,
        others: &[TableWithJoins],
        sources: &mut Vec<Source>,
        scope: &mut Scope<'_>,
    ) -> Result<Join, SqlError> {
        if others.is_empty() {
            return Ok(from);
        }
        let right = self.from(others, sources, scope)?;
        Ok(Join::Inner { left: Box::new(from), right: Box::new(right), filter: Vec::new() })
    }

    fn filtered(
        &self,
        mut from: Join,
        condition: Option<&Expr>,
        sources: &mut [Source],
        scope: &Scope<'_>,
    ) -> Result<(Join, Vec<Expression>), SqlError> {
        let mut filter = match condition {
            None => Vec::new(),
            Some(condition) => {
                let bound = self.expression(condition, &Context::new(scope, "WHERE"))?;
                conjuncts(self.condition(bound, "WHERE")?)
            }
        };
        self.choose_access(sources, &mut from, &mut filter);
        Ok((from, filter))
    }

    fn returning(
        &self,
        returning: Option<&[SelectItem]>,
        scope: &Scope<'_>,
    ) -> Result<(Option<Vec<Expression>>, Vec<Output>), SqlError> {
        let Some(items) = returning else { return Ok((None, Vec::new())) };
        let context = Context::new(scope, "RETURNING");
        let (values, outputs) = self.list(items, &context)?;
        Ok((Some(values), outputs))
    }
}

/// A constant with its column's length: one that is too long is refused before anything runs.
fn fitted(mut value: Expression, column: &Column) -> Result<Expression, SqlError> {
    if let Kind::Constant(constant) = &mut value.kind
        && column.modifier >= 0
        && !constant.is_null()
    {
        *constant =
            values::apply_modifier(std::mem::replace(constant, Datum::Null), column.ty, column.modifier)?;
    }
    Ok(value)
}

pub(super) fn no_column(name: &str, relation: &Relation) -> SqlError {
    SqlError::new("42703", format!("column \"{name}\" of relation \"{}\" does not exist", relation.name))
}

fn is_default(value: &Expr) -> bool {
    matches!(value, Expr::Identifier(name) if name.quote_style.is_none() && name.value.eq_ignore_ascii_case("default"))
}

fn too_many(given: usize, named: usize, says_columns: bool) -> Result<(), SqlError> {
    if given > named {
        return Err(SqlError::new("42601", "INSERT has more expressions than target columns"));
    }
    if given < named && says_columns {
        return Err(SqlError::new("42601", "INSERT has more target columns than expressions"));
    }
    Ok(())
}

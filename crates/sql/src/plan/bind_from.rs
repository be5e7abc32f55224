//! Binding of `FROM`.

use super::bind_function::{plain_arguments, series_kind};
use super::bind_select::conjuncts;
use super::binder::{Binder, Context, fold, split_name};
use super::expression::Expression;
use super::scope::{NamedTable, Scope};
use super::select::{Access, Join, Output, SeriesKind, Source};
use crate::error::SqlError;
use crate::values::Type;
use crate::virtual_tables;
use sqlparser::ast::{
    self, JoinConstraint, JoinOperator, ObjectName, TableAlias, TableFactor, TableWithJoins,
};
use std::sync::Arc;

impl Binder<'_> {
    /// Binds the tables of a `FROM`, which are added to `sources` and `scope`.
    pub(crate) fn from(
        &self,
        from: &[TableWithJoins],
        sources: &mut Vec<Source>,
        scope: &mut Scope<'_>,
    ) -> Result<Join, SqlError> {
        let mut all = Join::Nothing;
        for tables in from {
            let joined = self.joined(tables, sources, scope)?;
            all = match all {
                Join::Nothing => joined,
                left => Join::Inner { left: Box::new(left), right: Box::new(joined), filter: Vec::new() },
            };
        }
        Ok(all)
    }

    fn joined(
        &self,
        tables: &TableWithJoins,
        sources: &mut Vec<Source>,
        scope: &mut Scope<'_>,
    ) -> Result<Join, SqlError> {
        let first_table = scope.tables.len();
        let mut left_sources = sources.len()..sources.len();
        let mut left = self.factor(&tables.relation, sources, scope)?;
        for join in &tables.joins {
            left_sources.end = sources.len();
            let right_table = scope.tables.len();
            let right = self.factor(&join.relation, sources, scope)?;
            let right_sources = left_sources.end..sources.len();
            let (kind, constraint) = match &join.join_operator {
                JoinOperator::Join(constraint)
                | JoinOperator::Inner(constraint)
                | JoinOperator::CrossJoin(constraint) => ('i', constraint),
                JoinOperator::Left(constraint) | JoinOperator::LeftOuter(constraint) => ('l', constraint),
                JoinOperator::Right(constraint) | JoinOperator::RightOuter(constraint) => ('r', constraint),
                JoinOperator::FullOuter(constraint) => ('f', constraint),
                other => return Err(SqlError::not_supported(format!("the join {other:?}"))),
            };
            let on = self.constraint(constraint, kind, scope, first_table, right_table)?;
            let nulls =
                |range: std::ops::Range<usize>| range.map(|at| (at, width(&sources[at]))).collect::<Vec<_>>();
            left = match kind {
                'i' => Join::Inner { left: Box::new(left), right: Box::new(right), filter: on },
                'l' => {
                    let nulls = nulls(right_sources);
                    Join::Left { left: Box::new(left), right: Box::new(right), on, nulls }
                }
                'r' => {
                    let nulls = nulls(left_sources.clone());
                    Join::Left { left: Box::new(right), right: Box::new(left), on, nulls }
                }
                _ => Join::Full {
                    left: Box::new(left),
                    right: Box::new(right),
                    on,
                    nulls: nulls(right_sources),
                    left_nulls: nulls(left_sources.clone()),
                },
            };
        }
        Ok(left)
    }

    /// The conditions of a join. Columns that it merges lose their place among those found by name alone.
    fn constraint(
        &self,
        constraint: &JoinConstraint,
        kind: char,
        scope: &mut Scope<'_>,
        first_table: usize,
        right_table: usize,
    ) -> Result<Vec<Expression>, SqlError> {
        let names: Vec<String> = match constraint {
            JoinConstraint::None => return Ok(Vec::new()),
            JoinConstraint::On(condition) => {
                let context = Context::new(scope, "JOIN/ON");
                return Ok(conjuncts(self.condition(self.expression(condition, &context)?, "JOIN/ON")?));
            }
            JoinConstraint::Using(names) | JoinConstraint::UsingAlias(names, _) => {
                names.iter().map(|name| Ok(split_name(name)?.1)).collect::<Result<_, SqlError>>()?
            }
            JoinConstraint::Natural => {
                let names = |tables: &[NamedTable]| -> Vec<String> {
                    let columns =
                        tables.iter().flat_map(|table| &table.columns).filter(|column| !column.is_merged);
                    columns.map(|column| column.name.to_string()).collect()
                };
                let right = names(&scope.tables[right_table..]);
                names(&scope.tables[first_table..right_table])
                    .into_iter()
                    .filter(|name| right.contains(name))
                    .collect()
            }
        };
        let mut on = Vec::new();
        for name in names {
            let find = |tables: &[NamedTable], from: usize, side: &str| {
                let mut found = Vec::new();
                for (at, table) in tables.iter().enumerate() {
                    for (column, named) in table.columns.iter().enumerate() {
                        if *named.name == *name && !named.is_merged {
                            found.push((from + at, column));
                        }
                    }
                }
                match found.as_slice() {
                    [one] => Ok(*one),
                    [] => Err(SqlError::new(
                        "42703",
                        format!("column \"{name}\" specified in USING clause does not exist in {side} table"),
                    )),
                    _ => Err(SqlError::new(
                        "42702",
                        format!("common column name \"{name}\" appears more than once in {side} table"),
                    )),
                }
            };
            let left = find(&scope.tables[first_table..right_table], first_table, "left")?;
            let right = find(&scope.tables[right_table..], right_table, "right")?;
            let value = |(table, column): (usize, usize)| scope.tables[table].columns[column].value(0);
            let (of_left, of_right) = (value(left), value(right));
            if kind == 'f' {
                // Of a full join either may be null.
                if of_left.ty != of_right.ty {
                    return Err(SqlError::not_supported("a full join USING columns of two types"));
                }
                let merged = &scope.tables[right.0].columns[right.1];
                let others: Vec<_> =
                    std::iter::once(merged.place).chain(merged.others.iter().copied()).collect();
                let kept = &mut scope.tables[left.0].columns[left.1];
                kept.others.extend(others);
                kept.origin = None;
            }
            on.push(self.operator("=", of_left, of_right)?);
            // Of a right join the right one is never null.
            let merged = if kind == 'r' { left } else { right };
            scope.tables[merged.0].columns[merged.1].is_merged = true;
        }
        Ok(on)
    }

    fn factor(
        &self,
        factor: &TableFactor,
        sources: &mut Vec<Source>,
        scope: &mut Scope<'_>,
    ) -> Result<Join, SqlError> {
        match factor {
            TableFactor::Table { name, alias, args: None, with_ordinality: false, sample: None, .. } => {
                let (source, outputs, name) = self.table_factor(name)?;
                self.add_source(source, outputs, name, alias.as_ref(), sources, scope)
            }
            TableFactor::Table { name, alias, args: Some(arguments), with_ordinality: false, .. } => {
                self.function_factor(name, &arguments.args, alias.as_ref(), sources, scope)
            }
            TableFactor::Function { name, args, alias, with_ordinality: false, .. } => {
                self.function_factor(name, args, alias.as_ref(), sources, scope)
            }
            TableFactor::UNNEST {
                alias, array_exprs, with_offset: false, with_ordinality: false, ..
            } => {
                let context = Context::new(scope, "FROM");
                let bound = self.expressions(array_exprs, &context)?;
                let (arguments, ty) = self.series_arguments(SeriesKind::Unnest, "unnest", bound)?;
                let source = Source::Series(SeriesKind::Unnest, arguments);
                self.add_series_source(source, ty, "unnest", alias.as_ref(), sources, scope)
            }
            TableFactor::Derived { lateral, subquery, alias, sample: None } => {
                // Its values are those of another level, whether it may look at the tables beside it or not.
                let hidden = Scope::inside(scope.parent);
                let query = self.query(subquery, Some(if *lateral { &*scope } else { &hidden }))?;
                let outputs = query.outputs.clone();
                let name = String::new();
                self.add_source(Source::Query(Box::new(query)), outputs, name, alias.as_ref(), sources, scope)
            }
            TableFactor::NestedJoin { table_with_joins, alias: None } => {
                self.joined(table_with_joins, sources, scope)
            }
            other => Err(SqlError::not_supported(format!("the table {other}"))),
        }
    }

    /// A table, a table of the system's, or a query with a name.
    fn table_factor(&self, name: &ObjectName) -> Result<(Source, Vec<Output>, String), SqlError> {
        let (schema, table) = split_name(name)?;
        if schema.is_none() {
            let with = self.with.borrow();
            if let Some((_, place, outputs)) = with.iter().rev().find(|(known, ..)| *known == table) {
                self.used.borrow_mut().push(*place);
                return Ok((Source::With(*place, outputs.len()), outputs.to_vec(), table));
            }
        }
        let is_of_users = schema.as_deref().is_none_or(|schema| schema == "public");
        if is_of_users && let Some(relation) = self.catalog.relation(&table) {
            let outputs = Self::outputs(relation);
            return Ok((Source::Table(self.table(relation.clone())?), outputs, table));
        }
        if let Some(found) = virtual_tables::find(schema.as_deref(), &table) {
            let output = |(at, (name, ty)): (usize, &(&str, Type))| Output {
                name: (*name).into(),
                ty: *ty,
                modifier: -1,
                origin: Some((found.oid, at as i16 + 1)),
            };
            let outputs = found.columns.iter().enumerate().map(output).collect();
            return Ok((Source::Virtual(found), outputs, table));
        }
        if is_of_users && let Some(sequence) = self.catalog.sequence(&table) {
            return Err(SqlError::not_supported(format!(
                "reading the sequence \"{}\" as a table",
                sequence.name
            )));
        }
        self.relation(name).map(|_| unreachable!("it has just not been found"))
    }

    fn function_factor(
        &self,
        name: &ObjectName,
        arguments: &[ast::FunctionArg],
        alias: Option<&TableAlias>,
        sources: &mut Vec<Source>,
        scope: &mut Scope<'_>,
    ) -> Result<Join, SqlError> {
        let name = Self::function_name(name)?;
        let context = Context::new(scope, "FROM");
        let bound = self.expressions(plain_arguments(arguments)?, &context)?;
        let (kind, arguments) = match series_kind(&name) {
            Some(kind) => (kind, bound),
            None => (SeriesKind::One, vec![self.call(&name, bound)?]),
        };
        let (arguments, ty) = self.series_arguments(kind, &name, arguments)?;
        self.add_series_source(Source::Series(kind, arguments), ty, &name, alias, sources, scope)
    }

    /// Adds a source of one column, which is called as its table.
    fn add_series_source(
        &self,
        source: Source,
        ty: Type,
        name: &str,
        alias: Option<&TableAlias>,
        sources: &mut Vec<Source>,
        scope: &mut Scope<'_>,
    ) -> Result<Join, SqlError> {
        let column = alias.map_or_else(|| name.to_owned(), |alias| fold(&alias.name));
        let output = Output { name: column.as_str().into(), ty, modifier: -1, origin: None };
        self.add_source(source, vec![output], name.to_owned(), alias, sources, scope)
    }

    fn add_source(
        &self,
        source: Source,
        mut outputs: Vec<Output>,
        mut name: String,
        alias: Option<&TableAlias>,
        sources: &mut Vec<Source>,
        scope: &mut Scope<'_>,
    ) -> Result<Join, SqlError> {
        if let Some(alias) = alias {
            name = fold(&alias.name);
            if alias.columns.len() > outputs.len() {
                return Err(SqlError::new(
                    "42P10",
                    format!(
                        "table \"{name}\" has {} columns available but {} columns specified",
                        outputs.len(),
                        alias.columns.len()
                    ),
                ));
            }
            for (output, column) in outputs.iter_mut().zip(&alias.columns) {
                output.name = Arc::from(fold(&column.name));
            }
        }
        scope.add(name, sources.len(), &outputs)?;
        sources.push(source);
        Ok(Join::Scan { source: sources.len() - 1, access: Access::All, filter: Vec::new() })
    }
}

/// The number of values in a source's rows.
pub(crate) fn width(source: &Source) -> usize {
    match source {
        Source::Table(table) => table.relation.columns.len(),
        Source::Virtual(table) => table.columns.len(),
        Source::Query(query) => query.outputs.len(),
        Source::With(_, width) => *width,
        Source::Series(..) => 1,
    }
}

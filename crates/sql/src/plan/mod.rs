//! Plans: statements whose names and types are resolved, and whose ways to their rows are chosen.

mod access;
mod bind_conflict;
mod bind_expression;
mod bind_from;
mod bind_function;
mod bind_modify;
mod bind_query;
mod bind_select;
pub(crate) mod binder;
mod column_names;
mod commit_time;
mod explain;
pub(crate) mod expression;
mod folding;
pub(crate) mod modify;
mod operators;
mod rows;
mod scope;
pub(crate) mod select;
mod visit;

pub(crate) use binder::is_registered;

use crate::catalog::{Catalog, Relation};
use crate::connection::SessionState;
use crate::error::SqlError;
use crate::outcome::{Field, Outcome};
use crate::procedures::Procedure;
use crate::row::Row;
use crate::run::{Run, Stop};
use crate::values::{Datum, Type};
use binder::Binder;
use expression::Expression;
use modify::{Inserted, Modification, ModificationKind, Target};
use select::{Output, Query};
use sqlparser::ast::{self, CopySource, Expr, Statement};
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::parser::Parser;
use std::sync::Arc;

/// A statement that is ready to run, by one state of the catalog.
pub(crate) struct Plan {
    /// The columns of its result; none if it gives no rows.
    pub(crate) fields: Option<Arc<[Field]>>,
    /// The types of its parameters.
    pub(crate) parameters: Arc<[Type]>,
    /// True if it changes nothing, and draws from no sequence.
    pub(crate) only_reads: bool,
    /// The rows to be copied, if it is a `COPY`.
    pub(crate) copy: Option<CopyPlan>,
    kind: PlanKind,
}

enum PlanKind {
    Query(Query),
    Modify(Modification),
    /// A call of a registered procedure.
    Call(Procedure, Vec<Expression>),
    /// A statement on definitions, which is bound when it runs.
    Define(Box<Statement>),
    Explain(Vec<String>),
    /// `COPY … FROM`, whose rows come from the client.
    Copy,
}

/// `COPY`: its table and columns.
pub(crate) struct CopyPlan {
    /// The table; for a query any.
    pub(crate) relation: Arc<Relation>,
    /// The places of its columns.
    pub(crate) columns: Vec<usize>,
    /// True if the rows are those of a query.
    pub(crate) query: bool,
    /// True if rows come from the client.
    pub(crate) is_in: bool,
    insertion: Option<(Target, Vec<Inserted>)>,
}

/// Plans a statement. Parameters whose types are not declared get those that their places need.
pub(crate) fn plan(
    statement: &Statement,
    catalog: &Arc<Catalog>,
    declared: &[Option<Type>],
    session: &SessionState,
) -> Result<Plan, SqlError> {
    let binder = Binder::new(catalog, session, declared);
    let (kind, outputs, copy) = match statement {
        Statement::Query(query) => {
            let query = binder.query(query, None)?;
            let gives_rows = match &query.body {
                select::Body::Modify(modification) => modification.returning.is_some(),
                _ => true,
            };
            let outputs = gives_rows.then(|| query.outputs.clone());
            (PlanKind::Query(query), outputs, None)
        }
        Statement::Insert(_) | Statement::Update(_) | Statement::Delete(_) => {
            let (modification, outputs) = binder.modification(statement)?;
            let outputs = modification.returning.is_some().then_some(outputs);
            (PlanKind::Modify(modification), outputs, None)
        }
        Statement::Explain { statement, analyze, .. } => {
            if *analyze {
                return Err(SqlError::not_supported("EXPLAIN ANALYZE"));
            }
            let inner = plan(statement, catalog, declared, session)?;
            let output = Output { name: "QUERY PLAN".into(), ty: Type::Text, modifier: -1, origin: None };
            (PlanKind::Explain(explain::lines(&inner)), Some(vec![output]), None)
        }
        Statement::Call(function) => (call(&binder, function)?, None, None),
        Statement::Copy { source, to, .. } => copy(&binder, source, *to)?,
        other => {
            binder.writes.set(true);
            (PlanKind::Define(Box::new(other.clone())), None, None)
        }
    };
    let fields = outputs.map(|outputs| fields_of(&outputs));
    Ok(Plan { fields, parameters: binder.parameter_types(), only_reads: !binder.writes.get(), copy, kind })
}

fn call(binder: &Binder<'_>, function: &ast::Function) -> Result<PlanKind, SqlError> {
    binder.writes.set(true);
    let name = Binder::function_name(&function.name)?;
    let given = match &function.args {
        ast::FunctionArguments::List(list) => bind_function::plain_arguments(&list.args)?,
        _ => Vec::new(),
    };
    let scope = scope::Scope::default();
    let given = binder.expressions(given, &binder::Context::new(&scope, "CALL"))?;
    let procedure = binder.session.shared.procedures.find(&name);
    let Some(procedure) = procedure.filter(|procedure| procedure.parameters.len() == given.len()) else {
        let types: Vec<&str> = given.iter().map(|argument| argument.ty.name()).collect();
        let hint = "No procedure matches the given name and argument types. You might need to add explicit type casts.";
        return Err(SqlError::new("42883", format!("procedure {name}({}) does not exist", types.join(", ")))
            .hint(hint));
    };
    let arguments = binder.arguments(given, |at| procedure.parameters.get(at).copied())?;
    Ok(PlanKind::Call(procedure, arguments))
}

fn copy(
    binder: &Binder<'_>,
    source: &CopySource,
    to: bool,
) -> Result<(PlanKind, Option<Vec<Output>>, Option<CopyPlan>), SqlError> {
    let (name, columns) = match source {
        CopySource::Query(query) if to => {
            let query = binder.query(query, None)?;
            let outputs = query.outputs.clone();
            let relation = Arc::new(Relation::nameless());
            let copy = CopyPlan { relation, columns: Vec::new(), query: true, is_in: false, insertion: None };
            return Ok((PlanKind::Query(query), Some(outputs), Some(copy)));
        }
        CopySource::Query(_) => return Err(SqlError::new("42601", "syntax error at or near \"FROM\"")),
        CopySource::Table { table_name, columns } => (table_name, columns),
    };
    let relation = binder.relation(name)?;
    let names: Vec<ast::ObjectName> = columns.iter().map(|column| vec![column.clone()].into()).collect();
    let columns = binder.named_columns(&relation, &names)?;
    if to {
        let list: Vec<String> = columns.iter().map(|at| quoted(&relation.columns[*at].name)).collect();
        let text = format!("SELECT {} FROM {}", list.join(", "), quoted(&relation.name));
        let query = binder.query(&parse_query(&text)?, None)?;
        let outputs = query.outputs.clone();
        let copy = CopyPlan { relation, columns, query: false, is_in: false, insertion: None };
        return Ok((PlanKind::Query(query), Some(outputs), Some(copy)));
    }
    binder.writes.set(true);
    let inserted =
        (0..relation.columns.len()).map(|at| match columns.iter().position(|column| *column == at) {
            Some(given) => Ok(Inserted::Given(given)),
            None => binder.default_of(&relation, at).map(Inserted::Default),
        });
    let inserted = inserted.collect::<Result<Vec<_>, SqlError>>()?;
    let target = Target { table: binder.table(relation.clone())?, checks: binder.checks(&relation)? };
    let copy = CopyPlan { relation, columns, query: false, is_in: true, insertion: Some((target, inserted)) };
    Ok((PlanKind::Copy, None, Some(copy)))
}

/// A name in double quotes.
pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn fields_of(outputs: &[Output]) -> Arc<[Field]> {
    let field = |output: &Output| Field {
        name: output.name.clone(),
        ty: output.ty,
        modifier: output.modifier,
        table: output.origin.map_or(0, |(table, _)| table),
        column: output.origin.map_or(0, |(_, column)| column),
    };
    outputs.iter().map(field).collect()
}

impl Plan {
    /// Runs the statement.
    pub(crate) fn run(&self, run: &mut Run<'_, '_>) -> Result<Outcome, Stop> {
        match &self.kind {
            PlanKind::Query(query) => match &query.body {
                select::Body::Modify(modification) => {
                    run.queries_with_names(query)?;
                    self.modify(run, modification)
                }
                _ => {
                    let rows = run.query(query)?;
                    run.make_changes()?;
                    let tag = format!("SELECT {}", rows.len());
                    Ok(self.rows(run, rows, tag))
                }
            },
            PlanKind::Modify(modification) => self.modify(run, modification),
            PlanKind::Call(procedure, arguments) => {
                let arguments = run.row(arguments, &[])?;
                procedure.run(run, &arguments)?;
                Ok(Outcome::Done { tag: "CALL".to_owned() })
            }
            PlanKind::Define(statement) => Ok(Outcome::Done { tag: run.define(statement)? }),
            PlanKind::Explain(lines) => {
                let rows = lines.iter().map(|line| Row::new(vec![Datum::text(line.as_str())])).collect();
                Ok(self.rows(run, rows, "EXPLAIN".to_owned()))
            }
            PlanKind::Copy => Err(SqlError::new("0A000", "COPY needs a client with data").into()),
        }
    }

    fn modify(&self, run: &mut Run<'_, '_>, modification: &Modification) -> Result<Outcome, Stop> {
        let (count, rows) = run.modify(modification)?;
        let tag = match &modification.kind {
            ModificationKind::Insert(_) => format!("INSERT 0 {count}"),
            ModificationKind::Update { .. } => format!("UPDATE {count}"),
            ModificationKind::Delete { .. } => format!("DELETE {count}"),
        };
        Ok(if self.fields.is_some() { self.rows(run, rows, tag) } else { Outcome::Done { tag } })
    }

    /// Stores the rows of a `COPY … FROM`.
    pub(crate) fn insert_rows(
        run: &mut Run<'_, '_>,
        copy: &CopyPlan,
        rows: impl Iterator<Item = Result<Vec<Datum>, SqlError>>,
    ) -> Result<u64, Stop> {
        let (target, columns) = copy.insertion.as_ref().expect("rows are copied into a table");
        run.copy_rows(target, columns, rows)
    }

    /// The outcome of these rows, without the columns by which they were only sorted. Numbers that have names are shown by them.
    fn rows(&self, run: &Run<'_, '_>, rows: Vec<Row>, tag: String) -> Outcome {
        let fields = self.fields.clone().unwrap_or_default();
        let named: Vec<usize> = (0..fields.len()).filter(|at| is_registered(fields[*at].ty)).collect();
        let shown = rows.into_iter().map(|row| {
            let mut values: Box<[Datum]> = row[..fields.len()].into();
            for at in &named {
                if let Ok(shown) = run.cast(values[*at].clone(), fields[*at].ty, Type::Text, -1) {
                    values[*at] = shown;
                }
            }
            values
        });
        Outcome::Rows { rows: shown.collect(), fields, tag }
    }
}

/// Reads an expression that the catalog keeps as text.
pub(crate) fn parse_expression(text: &str) -> Result<Expr, SqlError> {
    let dialect = PostgreSqlDialect {};
    let parser = Parser::new(&dialect).try_with_sql(text);
    parser
        .and_then(|mut parser| parser.parse_expr())
        .map_err(|error| SqlError::new("42601", error.to_string()))
}

fn parse_query(text: &str) -> Result<ast::Query, SqlError> {
    let dialect = PostgreSqlDialect {};
    let parser = Parser::new(&dialect).try_with_sql(text);
    let query = parser.and_then(|mut parser| parser.parse_query());
    query.map(|query| *query).map_err(|error| SqlError::new("42601", error.to_string()))
}

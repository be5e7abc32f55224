//! Defaults and conditions: they are bound once, so that errors are found when they are defined, and kept as PostgreSQL shows them.

use super::deparse::{Deparser, constant};
use super::naming::check_name;
use super::{Run, Stop};
use crate::catalog::{Catalog, Check, Relation};
use crate::error::SqlError;
use crate::plan::binder::Binder;
use crate::plan::expression::{Expression, Kind};
use crate::plan::select::TableSource;
use crate::row::Row;
use crate::run::scan::{Flow, Keys};
use crate::values::Datum;
use sqlparser::ast::{CheckConstraint, Expr};

impl Run<'_, '_> {
    fn binder(&self) -> Binder<'_> {
        Binder::new(&self.catalog, self.session, &[])
    }

    /// The text of a column's default; none if it is null.
    pub(super) fn default_text(
        &self,
        relation: &Relation,
        at: usize,
        default: &Expr,
    ) -> Result<Option<String>, SqlError> {
        let mut relation = relation.clone();
        let name = relation.columns[at].name.clone();
        let written = default.to_string();
        relation.columns[at].default = Some(written.clone());
        let mut bound = self.binder().default_of(&relation, at).map_err(|error| match error.code {
            "42703" => SqlError::new("0A000", "cannot use column reference in DEFAULT expression"),
            "42804" => {
                let message = error.message.replace(" but expression is", " but default expression is");
                error.message(message)
            }
            _ => error,
        })?;
        check_form(&mut bound, "DEFAULT expression")?;
        if matches!(bound.kind, Kind::Constant(Datum::Null)) {
            return Ok(None);
        }
        let deparser = Deparser::new(&relation);
        let text = match &bound.kind {
            Kind::Constant(value) => Some(constant(value, bound.ty, true)),
            // The cast to the column's type is not a part of what was written.
            Kind::Cast(inner) if !is_cast(default) => deparser.text(inner),
            _ => deparser.text(&bound),
        };
        let Some(text) = text else { return Ok(Some(written)) };
        relation.columns[at].default = Some(text.clone());
        // A default that cannot be read again is kept as it was written.
        let is_readable = self.binder().default_of(&relation, at).is_ok();
        debug_assert!(is_readable, "the default of {name} is not read again: {text}");
        Ok(Some(if is_readable { text } else { written }))
    }

    /// A condition on a table's rows, by its text and, if it is about one column only, that column's place.
    fn check_text(&self, relation: &Relation, condition: &Expr) -> Result<(String, Option<usize>), SqlError> {
        let written = condition.to_string();
        let mut alone = relation.clone();
        let check = |text: &str| vec![Check { oid: 0, name: String::new(), text: text.to_owned() }];
        alone.checks = check(&written);
        let mut bound = self.binder().checks(&alone)?;
        let (_, mut bound) = bound.pop().ok_or_else(|| SqlError::new("XX000", "a condition has no plan"))?;
        check_form(&mut bound, "check constraint")?;
        let deparser = Deparser::new(relation);
        let text = deparser.text(&bound);
        let columns = deparser.into_columns();
        let only = if columns.len() == 1 { columns.first().copied() } else { None };
        let Some(text) = text else { return Ok((written, only)) };
        alone.checks = check(&text);
        let is_readable = self.binder().checks(&alone).is_ok();
        debug_assert!(is_readable, "a condition is not read again: {text}");
        Ok((if is_readable { text } else { written }, only))
    }

    /// Adds a condition to a table's.
    pub(super) fn add_check(
        &self,
        relation: &mut Relation,
        catalog: &mut Catalog,
        check: &CheckConstraint,
    ) -> Result<(), SqlError> {
        if check.enforced == Some(false) {
            return Err(SqlError::not_supported("NOT ENFORCED"));
        }
        let (text, column) = self.check_text(relation, &check.expr)?;
        let name = match &check.name {
            Some(name) => {
                let name = crate::plan::binder::fold(name);
                if has_constraint(relation, &name) {
                    let table = &relation.name;
                    let message = format!("constraint \"{name}\" for relation \"{table}\" already exists");
                    return Err(SqlError::new("42710", message));
                }
                name
            }
            None => {
                let column = column.map(|column| relation.columns[column].name.as_str());
                check_name(&relation.name, column, |name| {
                    has_constraint(relation, name)
                        || catalog.relations().any(|other| has_constraint(other, name))
                })
            }
        };
        relation.checks.push(Check { oid: catalog.draw_oid(), name, text });
        Ok(())
    }

    /// Checks that the rows of a table satisfy its last condition.
    pub(super) fn check_rows(&mut self, table: &TableSource, relation: &Relation) -> Result<(), Stop> {
        let mut bound = self.binder().checks(relation)?;
        let Some((name, condition)) = bound.pop() else { return Ok(()) };
        let _ = self.table_rows(table, Keys::All, &mut |run, row: Row| {
            run.step()?;
            if run.evaluate(&condition, std::slice::from_ref(&row))? == Datum::Bool(false) {
                return Err(violated(&name, &relation.name).into());
            }
            Ok(Flow::Continue(()))
        })?;
        Ok(())
    }
}

/// True if a table has a constraint of this name.
pub(super) fn has_constraint(relation: &Relation, name: &str) -> bool {
    relation.checks.iter().any(|check| check.name == name)
        || relation.primary_key.as_ref().is_some_and(|key| key.name == name)
        || relation.indexes.iter().any(|index| index.constraint.is_some() && index.name == name)
}

/// The error of a condition that rows do not satisfy which are there already.
pub(super) fn violated(name: &str, table: &str) -> SqlError {
    let message = format!("check constraint \"{name}\" of relation \"{table}\" is violated by some row");
    SqlError::new("23514", message).table(table).constraint(name)
}

fn is_cast(expression: &Expr) -> bool {
    match expression {
        Expr::Cast { .. } => true,
        Expr::Nested(inner) => is_cast(inner),
        _ => false,
    }
}

/// Refuses queries in an expression that the catalog keeps.
fn check_form(expression: &mut Expression, clause: &str) -> Result<(), SqlError> {
    let mut has_query = false;
    expression.visit(0, &mut |inner, _| {
        has_query |=
            matches!(inner.kind, Kind::Scalar(_) | Kind::Exists(_) | Kind::InQuery(..) | Kind::ArrayOf(_));
    });
    if has_query {
        return Err(SqlError::new("0A000", format!("cannot use subquery in {clause}")));
    }
    Ok(())
}

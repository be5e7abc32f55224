//! Names of a result's columns, and the tables' columns that they are.

use super::binder::{Binder, fold};
use super::expression::{Expression, Kind};
use super::scope::Scope;
use sqlparser::ast::{self, Expr, SelectItem, Value};

/// The name that PostgreSQL gives to a column.
pub(super) fn name_of(expression: &Expr) -> String {
    let named = match expression {
        Expr::Identifier(name) => fold(name),
        Expr::CompoundIdentifier(names) => names.last().map(fold).unwrap_or_default(),
        Expr::Function(function) => Binder::function_name(&function.name).unwrap_or_default(),
        Expr::Cast { expr, .. } if !is_named_by_casts(expr) => name_of(expr),
        Expr::Cast { data_type, .. } => {
            super::binder::type_of(data_type).map_or("?column?".into(), |(ty, _)| ty.internal_name().into())
        }
        Expr::TypedString(typed) => super::binder::type_of(&typed.data_type)
            .map_or("?column?".into(), |(ty, _)| ty.internal_name().into()),
        Expr::Nested(inner) | Expr::Collate { expr: inner, .. } => name_of(inner),
        Expr::CompoundFieldAccess { root, .. } => name_of(root),
        Expr::Case { else_result, .. } => match else_result.as_deref().map(name_of).as_deref() {
            None | Some("?column?") => "case".to_owned(),
            Some(inner) => inner.to_owned(),
        },
        Expr::Exists { negated: false, .. } => "exists".to_owned(),
        Expr::Subquery(query) => match &*query.body {
            ast::SetExpr::Select(select) => match select.projection.first() {
                Some(SelectItem::UnnamedExpr(expression)) => name_of(expression),
                Some(SelectItem::ExprWithAlias { alias, .. }) => fold(alias),
                _ => "?column?".to_owned(),
            },
            _ => "?column?".to_owned(),
        },
        Expr::Array(_) => "array".to_owned(),
        Expr::Extract { .. } => "extract".to_owned(),
        Expr::Substring { .. } => "substring".to_owned(),
        Expr::Position { .. } => "position".to_owned(),
        Expr::Overlay { .. } => "overlay".to_owned(),
        Expr::Ceil { .. } => "ceil".to_owned(),
        Expr::Floor { .. } => "floor".to_owned(),
        Expr::AtTimeZone { .. } => "timezone".to_owned(),
        Expr::Interval(_) => "interval".to_owned(),
        Expr::Trim { trim_where, .. } => match trim_where {
            Some(ast::TrimWhereField::Leading) => "ltrim".to_owned(),
            Some(ast::TrimWhereField::Trailing) => "rtrim".to_owned(),
            _ => "btrim".to_owned(),
        },
        Expr::Value(value) if matches!(value.value, Value::Boolean(_)) => "bool".to_owned(),
        _ => String::new(),
    };
    if named.is_empty() { "?column?".to_owned() } else { named }
}

/// True if a cast of the expression is called as the type: it has no name, or one that is of a cast, too.
fn is_named_by_casts(expression: &Expr) -> bool {
    match expression {
        Expr::Nested(inner) | Expr::Collate { expr: inner, .. } | Expr::Cast { expr: inner, .. } => {
            is_named_by_casts(inner)
        }
        Expr::Case { else_result, .. } => else_result.as_deref().is_none_or(is_named_by_casts),
        Expr::TypedString(_) | Expr::Interval(_) | Expr::Value(_) => true,
        other => name_of(other) == "?column?",
    }
}

pub(super) fn origin_of(expression: &Expression, scope: &Scope<'_>) -> Option<(u32, i16)> {
    let Kind::Column(place) = expression.kind else { return None };
    let columns = scope.tables.iter().flat_map(|table| &table.columns);
    columns.filter(|column| column.place == place).find_map(|column| column.origin)
}

//! Updates that are changes at the commit.

use super::expression::{Expression, Kind, Place};
use super::modify::{AtCommit, FixedCondition};
use super::select::{Access, Join, Source, TableSource};
use crate::values::{self, Operator, PrefixOperator, Type};

/// The update as a change at the commit, if it adds to columns that are in no key, of one row that its primary key names.
pub(super) fn at_commit(
    target: &TableSource,
    sources: &[Source],
    from: &Join,
    filter: &[Expression],
    assignments: &[(usize, Expression)],
) -> Option<AtCommit> {
    let Join::Scan { access: Access::Point(key), filter: conditions, .. } = from else { return None };
    let is_fixed = |value: &Expression| value.sources().is_empty();
    if sources.len() != 1 || !filter.is_empty() || !key.iter().all(is_fixed) {
        return None;
    }
    let key_columns = &target.relation.primary_key.as_ref()?.columns;
    let mut fixed = Vec::new();
    for condition in conditions {
        let condition = fixed_condition(condition)?;
        // Those of the key are what the row is found by.
        let is_of_key = condition.operation.operator == Operator::Equal
            && key_columns.contains(&(condition.column as u32));
        if !is_of_key {
            fixed.push(condition);
        }
    }
    if conditions.len() - fixed.len() != key.len() {
        return None;
    }
    let relation = &target.relation;
    let is_in_key = |column: usize| {
        let primary = relation.primary_key.iter().flat_map(|key| &key.columns);
        let indexes = relation.indexes.iter().flat_map(|index| &index.columns);
        primary.chain(indexes).any(|known| *known as usize == column)
    };
    let mut additions = Vec::new();
    for (column, value) in assignments {
        let ty = relation.columns[*column].ty;
        // A sum of small integers is cast back to the column's type, which checks its range.
        let sum = match &value.kind {
            Kind::Cast(inner) if matches!(ty, Type::Int2 | Type::Int4) => inner,
            _ => value,
        };
        let Kind::Operator(operation, both) = &sum.kind else { return None };
        let itself = Place { source: 0, column: *column };
        let is_itself = |side: &Expression| match &side.kind {
            Kind::Column(place) => *place == itself,
            Kind::Cast(inner) => matches!(inner.kind, Kind::Column(place) if place == itself),
            _ => false,
        };
        if is_in_key(*column) || !matches!(ty, Type::Int2 | Type::Int4 | Type::Int8) {
            return None;
        }
        let is_integer = |side: &Expression| matches!(side.ty, Type::Int2 | Type::Int4 | Type::Int8);
        let amount = match operation.operator {
            Operator::Add if is_itself(&both[0]) && is_fixed(&both[1]) && is_integer(&both[1]) => {
                both[1].clone()
            }
            Operator::Add if is_itself(&both[1]) && is_fixed(&both[0]) && is_integer(&both[0]) => {
                both[0].clone()
            }
            Operator::Subtract if is_itself(&both[0]) && is_fixed(&both[1]) && is_integer(&both[1]) => {
                let negative = values::resolve_prefix(PrefixOperator::Minus, both[1].ty).ok()?;
                Expression::new(Kind::Prefix(negative, Box::new(both[1].clone())), negative.ty)
            }
            _ => return None,
        };
        additions.push((*column, amount));
    }
    (!additions.is_empty()).then(|| AtCommit { key: key.clone(), additions, conditions: fixed })
}

/// The comparison of a column of source 0 with a value that needs no row, if the condition is one.
fn fixed_condition(condition: &Expression) -> Option<FixedCondition> {
    let Kind::Operator(operation, both) = &condition.kind else { return None };
    let column = |side: &Expression| match &side.kind {
        Kind::Column(Place { source: 0, column }) => Some(*column),
        _ => None,
    };
    let is_fixed = |side: &Expression| side.sources().is_empty();
    let (column, value, is_turned) = match (column(&both[0]), column(&both[1])) {
        (Some(column), None) if is_fixed(&both[1]) => (column, both[1].clone(), false),
        (None, Some(column)) if is_fixed(&both[0]) => (column, both[0].clone(), true),
        _ => return None,
    };
    operation.operator.is_comparison().then_some(FixedCondition {
        column,
        operation: *operation,
        value,
        is_turned,
    })
}

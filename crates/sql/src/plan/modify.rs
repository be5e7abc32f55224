//! Plans of insertions, updates and deletions.

use super::expression::Expression;
use super::select::{Join, Query, Source, TableSource};
use crate::values::Operation;
use std::sync::Arc;

/// A table whose rows are changed, with the conditions on them.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) table: Arc<TableSource>,
    pub(crate) checks: Vec<(String, Expression)>,
}

/// A statement that changes rows.
#[derive(Debug, Clone)]
pub(crate) struct Modification {
    pub(crate) target: Target,
    pub(crate) kind: ModificationKind,
    /// The values that it returns of each row: of source 0, which is the target, and the others.
    pub(crate) returning: Option<Vec<Expression>>,
}

/// How rows are changed.
#[derive(Debug, Clone)]
pub(crate) enum ModificationKind {
    Insert(Insert),
    Update {
        sources: Vec<Source>,
        from: Join,
        filter: Vec<Expression>,
        assignments: Vec<(usize, Expression)>,
        /// The same statement as a change at the commit, if it can be one.
        at_commit: Option<AtCommit>,
    },
    Delete {
        sources: Vec<Source>,
        from: Join,
        filter: Vec<Expression>,
    },
}

/// An insertion.
#[derive(Debug, Clone)]
pub(crate) struct Insert {
    /// The rows, each with a value for each of `columns`.
    pub(crate) rows: Query,
    /// For each column of the table: the place of its value in these rows, or its default.
    pub(crate) columns: Vec<Inserted>,
    pub(crate) on_conflict: Option<OnConflict>,
}

/// Where an inserted value comes from.
#[derive(Debug, Clone)]
pub(crate) enum Inserted {
    Given(usize),
    Default(Expression),
}

/// The action instead of an insertion whose key exists.
#[derive(Debug, Clone)]
pub(crate) struct OnConflict {
    /// The index that is asked: none for any, `Some(None)` for the primary key.
    pub(crate) index: Option<Option<usize>>,
    /// The assignments, if the existing row is updated: source 0 is the row, source 1 the one that was to be inserted.
    pub(crate) update: Option<(Vec<(usize, Expression)>, Option<Expression>)>,
}

/// An update of one row that adds to its columns: no value of the row is needed, so it happens at the commit.
#[derive(Debug, Clone)]
pub(crate) struct AtCommit {
    pub(crate) key: Vec<Expression>,
    /// The columns, and what is added to each.
    pub(crate) additions: Vec<(usize, Expression)>,
    /// Conditions on the row.
    pub(crate) conditions: Vec<FixedCondition>,
}

/// A comparison of a column with a value that needs no row.
#[derive(Debug, Clone)]
pub(crate) struct FixedCondition {
    pub(crate) column: usize,
    pub(crate) operation: Operation,
    pub(crate) value: Expression,
    /// True if the column is on the right.
    pub(crate) is_turned: bool,
}

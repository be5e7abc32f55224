//! Plans of queries.

use super::expression::Expression;
use super::modify::Modification;
use crate::catalog::{Relation, Rows};
use crate::functions::Aggregate;
use crate::values::Type;
use crate::virtual_tables::VirtualTable;
use hotrow::sync::OnceLock;
use std::sync::Arc;

/// A column of a query's result.
#[derive(Debug, Clone)]
pub(crate) struct Output {
    pub(crate) name: Arc<str>,
    pub(crate) ty: Type,
    pub(crate) modifier: i32,
    /// The table and the column's place there, from 1 on, if it is one of a table.
    pub(crate) origin: Option<(u32, i16)>,
}

/// A query: a body whose rows are sorted and cut.
#[derive(Debug, Clone)]
pub(crate) struct Query {
    /// Queries with names, which are run before: the place of each result, and how it is made.
    pub(crate) with: Vec<(usize, Query)>,
    pub(crate) body: Body,
    /// Columns of the body's rows, the first ones of which are the result.
    pub(crate) order: Vec<Sort>,
    pub(crate) limit: Option<Expression>,
    pub(crate) offset: Option<Expression>,
    pub(crate) outputs: Vec<Output>,
    /// True if it needs the tuple of a query around it, once that is known ([`Query::is_correlated`]).
    pub(super) correlated: OnceLock<bool>,
}

impl Query {
    /// The rows of a body as they are: in no order, and all of them.
    pub(crate) fn of(body: Body, outputs: Vec<Output>) -> Self {
        let (with, order) = (Vec::new(), Vec::new());
        Self { with, body, order, limit: None, offset: None, outputs, correlated: OnceLock::new() }
    }
}

/// A column by which rows are sorted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sort {
    pub(crate) column: usize,
    pub(crate) descending: bool,
    pub(crate) nulls_first: bool,
}

/// The body of a query, which makes its rows.
#[derive(Debug, Clone)]
pub(crate) enum Body {
    Select(Box<Select>),
    Set {
        operation: SetOperation,
        all: bool,
        left: Box<Query>,
        right: Box<Query>,
    },
    Values(Vec<Vec<Expression>>),
    /// The rows of `first`, and those of `next` for the rows of the round before, until there are no more.
    Recursive {
        place: usize,
        all: bool,
        first: Box<Query>,
        next: Box<Query>,
    },
    /// A query in parentheses, with an order and limits of its own.
    Nested(Box<Query>),
    /// An insertion, update or deletion with `RETURNING`.
    Modify(Box<Modification>),
}

/// How two results are joined to one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SetOperation {
    Union,
    Intersect,
    Except,
}

/// `SELECT`.
#[derive(Debug, Clone)]
pub(crate) struct Select {
    pub(crate) sources: Vec<Source>,
    pub(crate) from: Join,
    /// Conditions that no source and no join has taken.
    pub(crate) filter: Vec<Expression>,
    pub(crate) grouping: Option<Grouping>,
    pub(crate) having: Option<Expression>,
    /// The values of a row, those by which it is only sorted last.
    pub(crate) projection: Vec<Expression>,
    pub(crate) distinct: Distinct,
    /// True if the rows are to be locked: `FOR UPDATE`.
    pub(crate) locks: bool,
}

/// Which rows of a `SELECT` stay.
#[derive(Debug, Clone)]
pub(crate) enum Distinct {
    No,
    /// Those that differ in the visible columns.
    All(usize),
    /// The first of those that have the same values in these columns of the projection.
    On(Vec<usize>),
}

/// Groups of tuples. The group's row is in the place of one more source: its keys, then its aggregates.
#[derive(Debug, Clone)]
pub(crate) struct Grouping {
    pub(crate) keys: Vec<Expression>,
    pub(crate) aggregates: Vec<AggregateCall>,
}

/// A call of an aggregate.
#[derive(Debug, Clone)]
pub(crate) struct AggregateCall {
    pub(crate) aggregate: &'static Aggregate,
    pub(crate) arguments: Vec<Expression>,
    pub(crate) is_distinct: bool,
    pub(crate) filter: Option<Expression>,
    /// By what its input is sorted: expression, descending, nulls first.
    pub(crate) order: Vec<(Expression, bool, bool)>,
}

/// Where rows of a tuple come from.
#[derive(Debug, Clone)]
pub(crate) enum Source {
    Table(Arc<TableSource>),
    Virtual(&'static VirtualTable),
    Query(Box<Query>),
    /// The result of a query with a name.
    With(usize, usize),
    /// A function that gives rows.
    Series(SeriesKind, Vec<Expression>),
}

/// Functions that give rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SeriesKind {
    Generate,
    Unnest,
    /// The places of an array's elements.
    Subscripts,
    /// One row: the value of a function that is called in `FROM`.
    One,
}

/// A table of a statement, with its storages.
#[derive(Debug)]
pub(crate) struct TableSource {
    pub(crate) relation: Arc<Relation>,
    pub(crate) rows: Rows,
    /// The storages of its indexes, in their order.
    pub(crate) indexes: Vec<Rows>,
}

/// The tree of joins. A tuple has a row for each source of its query, empty until the source's turn comes.
#[derive(Debug, Clone)]
pub(crate) enum Join {
    /// One tuple.
    Nothing,
    Scan {
        source: usize,
        access: Access,
        /// Conditions that can be judged once the row is there.
        filter: Vec<Expression>,
    },
    Inner {
        left: Box<Join>,
        right: Box<Join>,
        filter: Vec<Expression>,
    },
    /// Each tuple of the left, and if it has no partner, with nulls for the sources of the right.
    Left {
        left: Box<Join>,
        right: Box<Join>,
        on: Vec<Expression>,
        /// The sources of the right, with their widths.
        nulls: Vec<(usize, usize)>,
    },
    /// As `Left`, and the tuples of the right without partners.
    Full {
        left: Box<Join>,
        right: Box<Join>,
        on: Vec<Expression>,
        nulls: Vec<(usize, usize)>,
        left_nulls: Vec<(usize, usize)>,
    },
}

/// A way to the rows of a source.
#[derive(Debug, Clone)]
pub(crate) enum Access {
    /// All of them.
    All,
    /// The one with this primary key.
    Point(Vec<Expression>),
    /// Those with one of these values in the only column of the primary key.
    Points(Vec<Expression>),
    /// Those in a range of the primary key or of an index.
    Range(Box<RangeAccess>),
    /// All of them once, kept in a hash table; those for which `columns` equal `probes`.
    Hash { columns: Vec<Expression>, probes: Vec<Expression>, slot: usize },
}

/// A range of a primary key or of an index.
#[derive(Debug, Clone)]
pub(crate) struct RangeAccess {
    /// The index's place in the table; none for the primary key.
    pub(crate) index: Option<usize>,
    /// The values of the first columns.
    pub(crate) prefix: Vec<Expression>,
    /// The bounds of the next column: value, and whether it belongs to the range.
    pub(crate) low: Option<(Expression, bool)>,
    pub(crate) high: Option<(Expression, bool)>,
}

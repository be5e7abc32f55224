//! Expressions whose names are resolved.

use super::select::Query;
use crate::functions::Function;
use crate::values::{Datum, Operation, PrefixOperation, Type};

/// The place of a value in a tuple: the source of its row, and its column there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    pub(crate) source: usize,
    pub(crate) column: usize,
}

/// An expression with its type.
#[derive(Debug, Clone)]
pub(crate) struct Expression {
    pub(crate) kind: Kind,
    pub(crate) ty: Type,
    /// The type's modifier, where it is known; else -1.
    pub(crate) modifier: i32,
}

/// The kind of an expression.
#[derive(Debug, Clone)]
pub(crate) enum Kind {
    Constant(Datum),
    /// A parameter of the statement, from 0 on.
    Parameter(usize),
    Column(Place),
    /// A column of a query so many levels further out.
    Outer(usize, Place),
    Call(&'static Function, Vec<Expression>),
    Operator(Operation, Box<[Expression; 2]>),
    Prefix(PrefixOperation, Box<Expression>),
    And(Vec<Expression>),
    Or(Vec<Expression>),
    Not(Box<Expression>),
    IsNull(Box<Expression>),
    IsTrue(Box<Expression>, bool),
    /// True if both differ, nulls being equal.
    IsDistinct(Operation, Box<[Expression; 2]>),
    Case(Vec<(Expression, Expression)>, Option<Box<Expression>>),
    Coalesce(Vec<Expression>),
    /// The largest (true) or least of the values that are not null.
    Extreme(Vec<Expression>, bool),
    NullIf(Operation, Box<[Expression; 2]>),
    /// A cast from the expression's own type to this one's type and modifier.
    Cast(Box<Expression>),
    Array(Vec<Expression>),
    Subscript(Box<[Expression; 2]>),
    /// An operator against all (true) or any of the elements of an array.
    Quantified(Operation, Box<[Expression; 2]>, bool),
    In(Operation, Box<Expression>, Vec<Expression>),
    /// The only value of a query, or null.
    Scalar(Box<Query>),
    Exists(Box<Query>),
    /// An operator against all (true) or any of a query's values.
    InQuery(Operation, Box<Expression>, Box<Query>, bool),
    /// The values of a query as an array.
    ArrayOf(Box<Query>),
    /// The next value of a sequence (`nextval`), its last one in this connection (`currval`), or a new one (`setval`).
    NextValue(Box<Expression>),
    CurrentValue(Box<Expression>),
    SetValue(Vec<Expression>),
    LastValue,
}

impl Expression {
    pub(crate) fn new(kind: Kind, ty: Type) -> Self {
        Self { kind, ty, modifier: -1 }
    }

    pub(crate) fn constant(value: Datum, ty: Type) -> Self {
        Self::new(Kind::Constant(value), ty)
    }
}

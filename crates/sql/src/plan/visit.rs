//! Walks through expressions and the queries in them.

use super::expression::{Expression, Kind, Place};
use super::modify::{Inserted, Modification, ModificationKind};
use super::select::{Access, Body, Join, Query, Select, Source};
use crate::functions::Volatility;

/// A function that is called with each expression and the number of queries between it and the walk's begin.
pub(crate) type Visitor<'v> = dyn FnMut(&mut Expression, usize) + 'v;

impl Expression {
    /// Visits all parts of the expression, and then itself.
    pub(crate) fn visit(&mut self, depth: usize, visitor: &mut Visitor<'_>) {
        self.each_part(depth, &mut |part, depth| part.visit(depth, visitor));
        visitor(self, depth);
    }

    /// Calls a function with each direct part, those in queries inside included.
    fn each_part(&mut self, depth: usize, each: &mut Visitor<'_>) {
        match &mut self.kind {
            Kind::Constant(_) | Kind::Parameter(_) | Kind::Column(_) | Kind::Outer(..) | Kind::LastValue => {}
            Kind::Call(_, all)
            | Kind::And(all)
            | Kind::Or(all)
            | Kind::Coalesce(all)
            | Kind::Extreme(all, _)
            | Kind::Array(all)
            | Kind::SetValue(all) => all.iter_mut().for_each(|one| each(one, depth)),
            Kind::Operator(_, both)
            | Kind::IsDistinct(_, both)
            | Kind::NullIf(_, both)
            | Kind::Subscript(both)
            | Kind::Quantified(_, both, _) => both.iter_mut().for_each(|one| each(one, depth)),
            Kind::Prefix(_, one)
            | Kind::Not(one)
            | Kind::IsNull(one)
            | Kind::IsTrue(one, _)
            | Kind::Cast(one)
            | Kind::NextValue(one)
            | Kind::CurrentValue(one) => each(one, depth),
            Kind::Case(conditions, otherwise) => {
                for (condition, value) in conditions {
                    each(condition, depth);
                    each(value, depth);
                }
                if let Some(otherwise) = otherwise {
                    each(otherwise, depth);
                }
            }
            Kind::In(_, one, all) => {
                each(one, depth);
                all.iter_mut().for_each(|one| each(one, depth));
            }
            Kind::Scalar(query) | Kind::Exists(query) | Kind::ArrayOf(query) => {
                query.each_part(depth + 1, each)
            }
            Kind::InQuery(_, one, query, _) => {
                each(one, depth);
                query.each_part(depth + 1, each);
            }
        }
    }

    /// Visits the expression, and then its parts, unless the visitor says that it is done with it.
    pub(crate) fn visit_before(
        &mut self,
        depth: usize,
        visitor: &mut dyn FnMut(&mut Expression, usize) -> bool,
    ) {
        if !visitor(self, depth) {
            return;
        }
        let mut children = |one: &mut Expression, depth: usize| one.visit_before(depth, visitor);
        self.each_part(depth, &mut children);
    }

    /// The sources of its own query that it needs.
    pub(crate) fn sources(&self) -> Vec<usize> {
        let mut found = Vec::new();
        let mut copy = self.clone();
        copy.visit(0, &mut |part, depth| {
            if let Some(place) = part.place_at(depth)
                && !found.contains(&place.source)
            {
                found.push(place.source);
            }
        });
        found
    }

    /// True if it needs the tuple of a query around its own.
    pub(crate) fn is_correlated(&self) -> bool {
        let mut found = false;
        self.clone().visit(0, &mut |part, depth| {
            found |= matches!(part.kind, Kind::Outer(level, _) if level > depth);
        });
        found
    }

    /// True if it may have another value each time that it is computed.
    pub(crate) fn is_volatile(&self) -> bool {
        let mut found = false;
        self.clone().visit(0, &mut |part, _| {
            found |= match &part.kind {
                Kind::Call(function, _) => function.volatility() == Volatility::Volatile,
                Kind::NextValue(_) | Kind::CurrentValue(_) | Kind::SetValue(_) | Kind::LastValue => true,
                _ => false,
            };
        });
        found
    }

    /// The place that it names in the tuple of the query so many levels out.
    pub(crate) fn place_at(&self, depth: usize) -> Option<Place> {
        match self.kind {
            Kind::Column(place) if depth == 0 => Some(place),
            Kind::Outer(level, place) if level == depth && depth > 0 => Some(place),
            _ => None,
        }
    }

    /// Sets the place that it names.
    pub(crate) fn set_place(&mut self, new: Place) {
        if let Kind::Column(place) | Kind::Outer(_, place) = &mut self.kind {
            *place = new;
        }
    }

    /// True if it has the same value as another one whatever the row.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let all = |left: &[Self], right: &[Self]| {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| left.is_same(right))
        };
        if self.ty != other.ty {
            return false;
        }
        match (&self.kind, &other.kind) {
            (Kind::Constant(left), Kind::Constant(right)) => left == right,
            (Kind::Parameter(left), Kind::Parameter(right)) => left == right,
            (Kind::Column(left), Kind::Column(right)) => left == right,
            (Kind::Outer(level, left), Kind::Outer(other, right)) => level == other && left == right,
            (Kind::Call(function, left), Kind::Call(called, right)) => {
                std::ptr::eq(*function, *called) && all(left, right)
            }
            (Kind::Operator(operator, left), Kind::Operator(other, right)) => {
                operator.operator == other.operator && all(&**left, &**right)
            }
            (Kind::NullIf(_, left), Kind::NullIf(_, right))
            | (Kind::IsDistinct(_, left), Kind::IsDistinct(_, right)) => all(&**left, &**right),
            (Kind::Cast(left), Kind::Cast(right)) => self.modifier == other.modifier && left.is_same(right),
            (Kind::Prefix(operator, left), Kind::Prefix(other, right)) => {
                operator == other && left.is_same(right)
            }
            (Kind::Not(left), Kind::Not(right)) | (Kind::IsNull(left), Kind::IsNull(right)) => {
                left.is_same(right)
            }
            (Kind::And(left), Kind::And(right))
            | (Kind::Or(left), Kind::Or(right))
            | (Kind::Coalesce(left), Kind::Coalesce(right)) => all(left, right),
            (Kind::Case(left, other_left), Kind::Case(right, other_right)) => {
                left.len() == right.len()
                    && left
                        .iter()
                        .zip(right)
                        .all(|(left, right)| left.0.is_same(&right.0) && left.1.is_same(&right.1))
                    && match (other_left, other_right) {
                        (None, None) => true,
                        (Some(left), Some(right)) => left.is_same(right),
                        _ => false,
                    }
            }
            _ => false,
        }
    }
}

fn visit_all(all: &mut [Expression], depth: usize, each: &mut Visitor<'_>) {
    all.iter_mut().for_each(|one| each(one, depth));
}

impl Query {
    /// Calls a function with each expression in it.
    fn each_part(&mut self, depth: usize, each: &mut Visitor<'_>) {
        for (_, with) in &mut self.with {
            with.each_part(depth, each);
        }
        match &mut self.body {
            Body::Select(select) => select.each_part(depth, each),
            Body::Recursive { first, next, .. } => {
                first.each_part(depth, each);
                next.each_part(depth, each);
            }
            Body::Set { left, right, .. } => {
                left.each_part(depth, each);
                right.each_part(depth, each);
            }
            Body::Values(rows) => rows.iter_mut().for_each(|row| visit_all(row, depth, each)),
            Body::Nested(inner) => inner.each_part(depth, each),
            Body::Modify(modification) => modification.each_part(depth, each),
        }
        for one in self.limit.iter_mut().chain(&mut self.offset) {
            each(one, depth);
        }
    }

    /// True if it needs the tuple of a query around it.
    pub(crate) fn is_correlated(&self) -> bool {
        // Asked for each row around it; what is changed in a plan later does not change levels.
        *self.correlated.get_or_init(|| self.looks_out())
    }

    fn looks_out(&self) -> bool {
        let mut found = false;
        let mut look = |part: &mut Expression, depth: usize| {
            part.visit(depth, &mut |part, depth| {
                found |= matches!(part.kind, Kind::Outer(level, _) if level > depth);
            });
        };
        self.clone().each_part(0, &mut look);
        found
    }
}

impl Select {
    fn each_part(&mut self, depth: usize, each: &mut Visitor<'_>) {
        self.sources.iter_mut().for_each(|source| source.each_part(depth, each));
        self.from.each_part(depth, each);
        visit_all(&mut self.filter, depth, each);
        if let Some(grouping) = &mut self.grouping {
            visit_all(&mut grouping.keys, depth, each);
            for call in &mut grouping.aggregates {
                visit_all(&mut call.arguments, depth, each);
                call.filter.iter_mut().for_each(|filter| each(filter, depth));
                call.order.iter_mut().for_each(|(order, ..)| each(order, depth));
            }
        }
        self.having.iter_mut().for_each(|having| each(having, depth));
        visit_all(&mut self.projection, depth, each);
    }
}

impl Source {
    fn each_part(&mut self, depth: usize, each: &mut Visitor<'_>) {
        match self {
            Self::Query(query) => query.each_part(depth + 1, each),
            Self::Series(_, arguments) => visit_all(arguments, depth, each),
            Self::Table(_) | Self::Virtual(_) | Self::With(..) => {}
        }
    }
}

impl Join {
    fn each_part(&mut self, depth: usize, each: &mut Visitor<'_>) {
        match self {
            Self::Nothing => {}
            Self::Scan { access, filter, .. } => {
                match access {
                    Access::All => {}
                    Access::Point(all) | Access::Points(all) => visit_all(all, depth, each),
                    Access::Hash { columns, probes, .. } => {
                        visit_all(columns, depth, each);
                        visit_all(probes, depth, each);
                    }
                    Access::Range(range) => {
                        visit_all(&mut range.prefix, depth, each);
                        let bounds = range.low.iter_mut().chain(&mut range.high);
                        bounds.for_each(|(bound, _)| each(bound, depth));
                    }
                }
                visit_all(filter, depth, each);
            }
            Self::Inner { left, right, filter: on }
            | Self::Left { left, right, on, .. }
            | Self::Full { left, right, on, .. } => {
                left.each_part(depth, each);
                right.each_part(depth, each);
                visit_all(on, depth, each);
            }
        }
    }
}

impl Modification {
    fn each_part(&mut self, depth: usize, each: &mut Visitor<'_>) {
        match &mut self.kind {
            ModificationKind::Insert(insert) => {
                insert.rows.each_part(depth + 1, each);
                for column in &mut insert.columns {
                    if let Inserted::Default(default) = column {
                        each(default, depth);
                    }
                }
                if let Some((assignments, filter)) =
                    insert.on_conflict.as_mut().and_then(|on| on.update.as_mut())
                {
                    assignments.iter_mut().for_each(|(_, value)| each(value, depth));
                    filter.iter_mut().for_each(|filter| each(filter, depth));
                }
            }
            ModificationKind::Update { sources, from, filter, assignments, at_commit } => {
                sources.iter_mut().for_each(|source| source.each_part(depth, each));
                from.each_part(depth, each);
                visit_all(filter, depth, each);
                assignments.iter_mut().for_each(|(_, value)| each(value, depth));
                if let Some(at_commit) = at_commit {
                    visit_all(&mut at_commit.key, depth, each);
                    at_commit.additions.iter_mut().for_each(|(_, value)| each(value, depth));
                    at_commit.conditions.iter_mut().for_each(|condition| each(&mut condition.value, depth));
                }
            }
            ModificationKind::Delete { sources, from, filter } => {
                sources.iter_mut().for_each(|source| source.each_part(depth, each));
                from.each_part(depth, each);
                visit_all(filter, depth, each);
            }
        }
        self.target.checks.iter_mut().for_each(|(_, check)| each(check, depth));
        self.returning.iter_mut().flatten().for_each(|value| each(value, depth));
    }
}

//! Ways to rows: conditions go to where they can be judged first, and those on keys tell where to look.

use super::binder::Binder;
use super::expression::{Expression, Kind};
use super::select::{Access, Join, RangeAccess, Source, TableSource};
use crate::values::{Operator, Type};

/// A condition on one column of a source.
struct Bound<'e> {
    column: usize,
    operator: Operator,
    value: &'e Expression,
    /// True if a range of keys that begins or ends at the value has the rows that satisfy the condition, and no others.
    is_exact: bool,
    /// The condition's place among all.
    at: usize,
}

impl Binder<'_> {
    /// Gives each condition its place in the tree of joins, and each table a way to its rows. What has no place stays in `filter`.
    pub(crate) fn choose_access(
        &self,
        sources: &mut [Source],
        from: &mut Join,
        filter: &mut Vec<Expression>,
    ) {
        let conditions = std::mem::take(filter);
        *filter = self.place(sources, from, &mut Vec::new(), conditions);
    }

    /// Places conditions in a tree whose outside has the sources `before`, to which its own are added. Returns those that it cannot judge.
    fn place(
        &self,
        sources: &[Source],
        join: &mut Join,
        before: &mut Vec<usize>,
        conditions: Vec<Expression>,
    ) -> Vec<Expression> {
        match join {
            Join::Nothing => conditions,
            Join::Scan { source, access, filter } => {
                let own = *source;
                let (taken, left) = split(conditions, |needed| needed == own || before.contains(&needed));
                filter.extend(taken);
                let answered;
                (*access, answered) = self.access(sources, own, filter, before);
                let mut at = 0..;
                filter.retain(|_| at.next().is_none_or(|at| !answered.contains(&at)));
                before.push(own);
                left
            }
            Join::Inner { left, right, filter } => {
                let mut all = conditions;
                all.append(filter);
                let rest = self.place(sources, left, before, all);
                let rest = self.place(sources, right, before, rest);
                let (own, rest) = split(rest, |needed| before.contains(&needed));
                *filter = own;
                rest
            }
            Join::Left { left, right, on, .. } => {
                let rest = self.place(sources, left, before, conditions);
                let partner = std::mem::take(on);
                *on = self.place(sources, right, before, partner);
                rest
            }
            Join::Full { left, right, .. } => {
                let mut alone = before.clone();
                let mut beside = before.clone();
                self.place(sources, left, &mut alone, Vec::new());
                self.place(sources, right, &mut beside, Vec::new());
                for source in alone.into_iter().chain(beside) {
                    if !before.contains(&source) {
                        before.push(source);
                    }
                }
                conditions
            }
        }
    }

    /// The best way to a source's rows under these conditions, and the places of those that need not be judged any more.
    fn access(
        &self,
        sources: &[Source],
        own: usize,
        filter: &[Expression],
        before: &[usize],
    ) -> (Access, Vec<usize>) {
        let is_known = |value: &Expression| {
            !value.is_volatile() && value.sources().iter().all(|needed| before.contains(needed))
        };
        if let Source::Table(table) = &sources[own] {
            let bounds = filter.iter().enumerate().filter_map(|(at, condition)| bound(condition, at, own));
            let bounds: Vec<Bound<'_>> = bounds.filter(|bound| is_known(bound.value)).collect();
            if let Some(access) = by_key(table, &bounds) {
                return (access, Vec::new());
            }
            if let Some(access) = by_list(table, filter, own, is_known) {
                return (access, Vec::new());
            }
            if let Some(found) = by_range(table, &bounds) {
                return found;
            }
        }
        let is_the_same = match &sources[own] {
            Source::Query(query) => !query.is_correlated(),
            Source::Series(..) => false,
            Source::Table(_) | Source::Virtual(_) | Source::With(..) => true,
        };
        let (mut columns, mut probes) = (Vec::new(), Vec::new());
        for condition in filter {
            if let Kind::Operator(operation, both) = &condition.kind
                && operation.operator == Operator::Equal
            {
                for (column, probe) in [(&both[0], &both[1]), (&both[1], &both[0])] {
                    let needed = probe.sources();
                    // A hash table is made once for a statement, so it cannot depend on a row around the query.
                    if column.sources() == [own]
                        && !column.is_correlated()
                        && !needed.is_empty()
                        && !needed.contains(&own)
                        && is_known(probe)
                        && let Some(ty) = hashed_as(column.ty, probe.ty)
                    {
                        columns.push(as_type(column, ty));
                        probes.push(as_type(probe, ty));
                        break;
                    }
                }
            }
        }
        if is_the_same && !columns.is_empty() {
            let slot = Self::draw(&self.hash_tables);
            return (Access::Hash { columns, probes, slot }, Vec::new());
        }
        (Access::All, Vec::new())
    }
}

/// Splits conditions into those all of whose sources satisfy a test, and the others.
fn split(conditions: Vec<Expression>, test: impl Fn(usize) -> bool) -> (Vec<Expression>, Vec<Expression>) {
    conditions.into_iter().partition(|condition| condition.sources().into_iter().all(&test))
}

/// The condition on a column that a comparison is.
fn bound(condition: &Expression, at: usize, own: usize) -> Option<Bound<'_>> {
    let Kind::Operator(operation, both) = &condition.kind else { return None };
    let operator = operation.operator;
    let turned = operator.commuted()?;
    for (operator, side, value) in [(operator, &both[0], &both[1]), (turned, &both[1], &both[0])] {
        if let Some((column, ty)) = column_of(side, own)
            && suits(ty, value.ty, operator)
        {
            let is_exact =
                matches!(side.kind, Kind::Column(_)) && side.ty == value.ty && has_exact_keys(side.ty);
            return Some(Bound { column, operator, value, is_exact, at });
        }
    }
    None
}

/// The column of a source that an expression is, through casts that keep order and equality.
fn column_of(side: &Expression, own: usize) -> Option<(usize, Type)> {
    match &side.kind {
        Kind::Column(place) if place.source == own => Some((place.column, side.ty)),
        Kind::Cast(inner) if side.modifier < 0 && keeps_order(inner.ty, side.ty) => column_of(inner, own),
        _ => None,
    }
}

fn is_integer(ty: Type) -> bool {
    matches!(ty, Type::Int2 | Type::Int4 | Type::Int8)
}

/// True if two values of a type are the same exactly if their keys are.
fn has_exact_keys(ty: Type) -> bool {
    is_integer(ty) || matches!(ty, Type::Date | Type::Timestamp | Type::TimestampTz | Type::Uuid)
}

fn keeps_order(from: Type, to: Type) -> bool {
    (is_integer(from) && (is_integer(to) || to == Type::Numeric))
        || (from == Type::Varchar && to == Type::Text)
}

/// True if a value of a type can be looked up among a column's keys: the key with the same value is found by a cast.
fn suits(column: Type, value: Type, operator: Operator) -> bool {
    if column == Type::Char {
        return false;
    }
    column == value
        || (is_integer(column) && is_integer(value))
        || (is_integer(column) && value == Type::Numeric && operator == Operator::Equal)
        || (matches!(column, Type::Text | Type::Varchar) && matches!(value, Type::Text | Type::Varchar))
}

/// The type as which equal values of two types have the same key in a hash table.
fn hashed_as(one: Type, other: Type) -> Option<Type> {
    match (one, other) {
        (one, other) if one == other => Some(one),
        (one, other) if is_integer(one) && is_integer(other) => Some(Type::Int8),
        (one, other) if keeps_order(one, Type::Numeric) && other == Type::Numeric => Some(Type::Numeric),
        (one, other) if keeps_order(other, Type::Numeric) && one == Type::Numeric => Some(Type::Numeric),
        (Type::Text | Type::Varchar | Type::Name, Type::Text | Type::Varchar | Type::Name) => {
            Some(Type::Text)
        }
        (Type::Oid | Type::Regclass | Type::Regproc | Type::Regtype, Type::Oid | Type::Regclass) => {
            Some(Type::Oid)
        }
        _ => None,
    }
}

fn as_type(value: &Expression, ty: Type) -> Expression {
    if value.ty == ty {
        return value.clone();
    }
    Expression::new(Kind::Cast(Box::new(value.clone())), ty)
}

fn equal<'b, 'e>(bounds: &'b [Bound<'e>], column: u32) -> Option<&'b Bound<'e>> {
    bounds.iter().find(|bound| bound.operator == Operator::Equal && bound.column == column as usize)
}

/// The way by the whole primary key.
fn by_key(table: &TableSource, bounds: &[Bound<'_>]) -> Option<Access> {
    let key = &table.relation.primary_key.as_ref()?.columns;
    let values = key.iter().map(|column| equal(bounds, *column).map(|bound| bound.value.clone()));
    values.collect::<Option<Vec<_>>>().map(Access::Point)
}

/// The way by several values of a primary key of one column.
fn by_list(
    table: &TableSource,
    filter: &[Expression],
    own: usize,
    is_known: impl Fn(&Expression) -> bool,
) -> Option<Access> {
    let [key] = table.relation.primary_key.as_ref()?.columns.as_slice() else { return None };
    filter.iter().find_map(|condition| {
        let Kind::In(_, side, list) = &condition.kind else { return None };
        let (column, ty) = column_of(side, own)?;
        let fits = column == *key as usize
            && list.iter().all(|value| suits(ty, value.ty, Operator::Equal) && is_known(value));
        fits.then(|| Access::Points(list.clone()))
    })
}

/// The way by the first columns of the primary key or of an index: the one of which most is known; and the places of the conditions that it
/// answers.
fn by_range(table: &TableSource, bounds: &[Bound<'_>]) -> Option<(Access, Vec<usize>)> {
    let primary = table.relation.primary_key.iter().map(|key| (None, &key.columns, false));
    let indexes = table.relation.indexes.iter().enumerate();
    let indexes = indexes.map(|(at, index)| (Some(at), &index.columns, index.is_unique));
    let mut best: Option<(usize, RangeAccess, Vec<usize>)> = None;
    for (index, columns, is_unique) in primary.chain(indexes) {
        let mut used: Vec<&Bound<'_>> = columns.iter().map_while(|column| equal(bounds, *column)).collect();
        let prefix: Vec<Expression> = used.iter().map(|bound| bound.value.clone()).collect();
        let (mut low, mut high) = (None, None);
        if let Some(next) = columns.get(prefix.len()) {
            for bound in bounds.iter().filter(|bound| bound.column == *next as usize) {
                let (side, inclusive) = match bound.operator {
                    Operator::Greater => (&mut low, false),
                    Operator::GreaterOrEqual => (&mut low, true),
                    Operator::Less => (&mut high, false),
                    Operator::LessOrEqual => (&mut high, true),
                    _ => continue,
                };
                if side.is_none() {
                    *side = Some((bound.value.clone(), inclusive));
                    used.push(bound);
                }
            }
        }
        let is_whole = is_unique && prefix.len() == columns.len();
        let known = prefix.len() * 4
            + usize::from(low.is_some())
            + usize::from(high.is_some())
            + if is_whole { 100 } else { 0 };
        // By the primary key if nothing else is better: its entries are the rows.
        if known > best.as_ref().map_or(0, |(known, ..)| *known) {
            let answered = used.iter().filter(|bound| bound.is_exact).map(|bound| bound.at).collect();
            best = Some((known, RangeAccess { index, prefix, low, high }, answered));
        }
    }
    best.map(|(_, range, answered)| (Access::Range(Box::new(range)), answered))
}

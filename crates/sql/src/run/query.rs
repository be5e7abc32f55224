//! Rows of queries.

use super::evaluate::empty_tuple;
use super::scan::Flow;
use super::{Run, Stop, Tuple};
use crate::error::SqlError;
use crate::hashing::{Map, Set};
use crate::plan::select::{Body, Distinct, Output, Query, Select, SetOperation, Sort, Source};
use crate::row::Row;
use crate::run::row_key;
use crate::values::{self, Datum, Type, encode_key_as};
use std::cmp::Ordering;
use std::rc::Rc;

impl<'t, 'w> Run<'t, 'w> {
    /// The rows of a query. Columns by which they are only sorted are behind those of the result.
    pub(crate) fn query(&mut self, query: &Query) -> Result<Vec<Row>, Stop> {
        self.queries_with_names(query)?;
        let limit = self.count(query.limit.as_ref(), "LIMIT")?;
        let offset = self.count(query.offset.as_ref(), "OFFSET")?.unwrap_or(0);
        if limit == Some(0) && !matches!(query.body, Body::Modify(_)) {
            return Ok(Vec::new());
        }
        // Where nothing is sorted no more rows are made than are wanted.
        let wanted = match (query.order.is_empty(), limit) {
            (true, Some(limit)) => limit.saturating_add(offset),
            _ => usize::MAX,
        };
        let mut rows = match &query.body {
            Body::Select(select) => self.select(select, &query.order, wanted)?,
            Body::Values(values) => {
                let tuple = empty_tuple(0);
                let mut rows = Vec::with_capacity(values.len());
                for row in values {
                    rows.push(self.row(row, &tuple)?);
                }
                rows
            }
            Body::Nested(inner) => self.query(inner)?,
            Body::Recursive { place, all, first, next } => self.recursive(*place, *all, first, next)?,
            Body::Set { operation, all, left, right } => self.set_operation(*operation, *all, left, right)?,
            Body::Modify(modification) => self.modify_later(modification)?.1,
        };
        if !query.order.is_empty() && !matches!(&query.body, Body::Select(_)) {
            let types: Vec<Type> = query.outputs.iter().map(|output| output.ty).collect();
            rows.sort_by(|left, right| by_columns(&query.order, &types, left, right));
        }
        if offset > 0 {
            rows.drain(..offset.min(rows.len()));
        }
        if let Some(limit) = limit {
            rows.truncate(limit);
        }
        Ok(rows)
    }

    /// Runs the queries with names that a query begins with. What they change they change when the statement has been run.
    pub(crate) fn queries_with_names(&mut self, query: &Query) -> Result<(), Stop> {
        for (place, with) in &query.with {
            let was_one = std::mem::replace(&mut self.is_one_of_several, true);
            let rows = self.query(with);
            self.is_one_of_several = was_one;
            if self.with.insert(*place, Rc::new(rows?)).is_some() {
                // It was run for another row around it, and so was what is known of it.
                self.results.clear();
                self.hashed.clear();
            }
        }
        Ok(())
    }

    /// The rows of a query that uses its own name: round by round, until a round gives none that is new.
    fn recursive(&mut self, place: usize, all: bool, first: &Query, next: &Query) -> Result<Vec<Row>, Stop> {
        let types: Vec<Type> = first.outputs.iter().map(|output| output.ty).collect();
        let (mut rows, mut seen) = (Vec::new(), Set::default());
        let mut round = self.query(first)?;
        loop {
            self.session.check_cancelled()?;
            round.retain(|row| all || seen.insert(key(&row[..types.len()], &types)));
            if round.is_empty() {
                return Ok(rows);
            }
            rows.extend(round.iter().cloned());
            self.with.insert(place, Rc::new(round));
            // Results of the round before count no more.
            self.results.clear();
            self.hashed.clear();
            round = self.query(next)?;
        }
    }

    /// The rows of a query inside of another one, whose tuple is made by a function.
    pub(crate) fn rows_inside(
        &mut self,
        query: &Query,
        tuple: impl FnOnce() -> Tuple,
    ) -> Result<Rc<Vec<Row>>, Stop> {
        // Its place in the plan stays as long as the statement runs.
        let place = std::ptr::from_ref(query).addr();
        if let Some(known) = self.results.get(&place) {
            return Ok(known.clone());
        }
        self.outer.push(tuple());
        let rows = self.query(query);
        self.outer.pop();
        let rows = Rc::new(rows?);
        if !query.is_correlated() {
            self.results.insert(place, rows.clone());
        }
        Ok(rows)
    }

    fn count(
        &mut self,
        expression: Option<&crate::plan::expression::Expression>,
        clause: &str,
    ) -> Result<Option<usize>, Stop> {
        let Some(expression) = expression else { return Ok(None) };
        match self.evaluate(expression, &[])?.as_integer() {
            None => Ok(None),
            Some(count) => match usize::try_from(count) {
                Ok(count) => Ok(Some(count)),
                Err(_) => {
                    let code = if clause == "LIMIT" { "2201W" } else { "2201X" };
                    Err(SqlError::new(code, format!("{clause} must not be negative")).into())
                }
            },
        }
    }

    /// The values of several expressions.
    pub(crate) fn row(
        &mut self,
        expressions: &[crate::plan::expression::Expression],
        tuple: &[Row],
    ) -> Result<Row, Stop> {
        let mut values = Vec::with_capacity(expressions.len());
        for expression in expressions {
            values.push(self.evaluate(expression, tuple)?);
        }
        self.keep(&values)?;
        Ok(Row::new(values))
    }

    fn select(&mut self, select: &Select, order: &[Sort], wanted: usize) -> Result<Vec<Row>, Stop> {
        if wanted == 0 {
            return Ok(Vec::new());
        }
        let mut tuple = empty_tuple(select.sources.len() + usize::from(select.grouping.is_some()));
        let mut rows = Vec::new();
        if select.grouping.is_some() {
            for group in self.groups(select, &mut tuple)? {
                let group_source = select.sources.len();
                let mut tuple = empty_tuple(group_source + 1);
                tuple[group_source] = group;
                if match &select.having {
                    Some(having) => self.holds(having, &tuple)?,
                    None => true,
                } {
                    rows.push(self.row(&select.projection, &tuple)?);
                }
            }
        } else {
            let is_cut = matches!(select.distinct, Distinct::No);
            let _ = self.join(&select.sources, &select.from, &mut tuple, &mut |run, tuple| {
                if !run.all_hold(&select.filter, tuple)? {
                    return Ok(Flow::Continue(()));
                }
                if select.locks {
                    run.lock(&select.sources, tuple)?;
                }
                rows.push(run.row(&select.projection, tuple)?);
                Ok(if is_cut && rows.len() >= wanted { Flow::Break(()) } else { Flow::Continue(()) })
            })?;
        }
        let types: Vec<Type> = select.projection.iter().map(|value| value.ty).collect();
        if let Distinct::All(visible) = select.distinct {
            let mut seen = Set::default();
            rows.retain(|row| seen.insert(key(&row[..visible], &types)));
        }
        if !order.is_empty() {
            rows.sort_by(|left, right| by_columns(order, &types, left, right));
        }
        if let Distinct::On(columns) = &select.distinct {
            let mut seen = Set::default();
            rows.retain(|row| {
                let mut key = Vec::new();
                columns.iter().for_each(|column| put(&row[*column], types[*column], &mut key));
                seen.insert(key)
            });
        }
        Ok(rows)
    }

    /// Writes the rows of a tuple as they are, so that nobody else changes them before this transaction ends.
    fn lock(&mut self, sources: &[Source], tuple: &[Row]) -> Result<(), Stop> {
        for (source, row) in sources.iter().zip(tuple) {
            if let Source::Table(table) = source
                && !row.is_empty()
            {
                table.rows.update_if_present(self.tx, &row_key(&table.relation, row), |_| ())?;
            }
        }
        Ok(())
    }

    fn set_operation(
        &mut self,
        operation: SetOperation,
        all: bool,
        left: &Query,
        right: &Query,
    ) -> Result<Vec<Row>, Stop> {
        let types: Vec<Type> = left.outputs.iter().map(|output: &Output| output.ty).collect();
        let width = types.len();
        let mut rows = self.query(left)?;
        let others = self.query(right)?;
        if operation == SetOperation::Union {
            rows.extend(others);
            if !all {
                let mut seen = Set::default();
                rows.retain(|row| seen.insert(key(&row[..width], &types)));
            }
            return Ok(rows);
        }
        let mut counts: Map<Vec<u8>, usize> = Map::default();
        for other in &others {
            *counts.entry(key(&other[..width], &types)).or_default() += 1;
        }
        let mut seen = Set::default();
        rows.retain(|row| {
            let key = key(&row[..width], &types);
            let is_there = match counts.get_mut(&key) {
                // Of `ALL` each row on the right stands for one on the left.
                Some(count) if all => {
                    let is_there = *count > 0;
                    *count = count.saturating_sub(1);
                    is_there
                }
                found => found.is_some(),
            };
            is_there == (operation == SetOperation::Intersect) && (all || seen.insert(key))
        });
        Ok(rows)
    }
}

/// Appends a value to a key by which rows are told apart.
pub(super) fn put(value: &Datum, ty: Type, key: &mut Vec<u8>) {
    encode_key_as(ty, value, key);
}

/// The key of some values: the same for values that are equal, nulls included.
pub(super) fn key(values: &[Datum], types: &[Type]) -> Vec<u8> {
    let mut key = Vec::new();
    values.iter().zip(types).for_each(|(value, ty)| put(value, *ty, &mut key));
    key
}

/// The order of two values, of which nulls come first or last.
pub(super) fn by_value(
    ty: Type,
    left: &Datum,
    right: &Datum,
    descending: bool,
    nulls_first: bool,
) -> Ordering {
    match (left.is_null(), right.is_null()) {
        (true, true) => Ordering::Equal,
        (true, false) if nulls_first => Ordering::Less,
        (true, false) => Ordering::Greater,
        (false, true) if nulls_first => Ordering::Greater,
        (false, true) => Ordering::Less,
        (false, false) => {
            let order = values::compare_as(ty, left, right);
            if descending { order.reverse() } else { order }
        }
    }
}

fn by_columns(order: &[Sort], types: &[Type], left: &[Datum], right: &[Datum]) -> Ordering {
    order.iter().fold(Ordering::Equal, |known, sort| {
        known.then_with(|| {
            let column = sort.column;
            by_value(types[column], &left[column], &right[column], sort.descending, sort.nulls_first)
        })
    })
}

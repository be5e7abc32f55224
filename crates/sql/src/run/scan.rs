//! Rows of one source.

use super::keys::after;
use super::{HashedRows, Run, Stop, Tuple};
use crate::catalog::Rows;
use crate::plan::expression::Expression;
use crate::plan::select::{Access, RangeAccess, Source, TableSource};
use crate::row::Row;
use crate::values::{self, Datum, Operator, Type, encode_key_as};
use hotrow::Direction;
use std::ops::{Bound, ControlFlow};
use std::rc::Rc;

/// Whether more tuples are wanted.
pub(crate) type Flow = ControlFlow<()>;

/// A function that is called with each tuple.
pub(crate) type Each<'e, 't, 'w> = dyn FnMut(&mut Run<'t, 'w>, &mut Tuple) -> Result<Flow, Stop> + 'e;

/// Numbers of rows that are read at a time: few first, because few may be wanted.
const FIRST_BATCH: usize = 64;
const LARGEST_BATCH: usize = 4_096;

impl<'t, 'w> Run<'t, 'w> {
    /// Puts each row of a source into the tuple that satisfies the conditions.
    pub(crate) fn scan(
        &mut self,
        sources: &[Source],
        (source, access): (usize, &Access),
        filter: &[Expression],
        tuple: &mut Tuple,
        each: &mut Each<'_, 't, 'w>,
    ) -> Result<Flow, Stop> {
        match access {
            Access::Hash { columns, probes, slot } => {
                let hashed = self.hashed_rows(sources, source, columns, *slot, tuple.len())?;
                let Some(key) = self.hash_key(probes, tuple)? else { return Ok(Flow::Continue(())) };
                for row in hashed.get(&key).into_iter().flatten() {
                    tuple[source] = row.clone();
                    self.step()?;
                    if self.all_hold(filter, tuple)? && each(self, tuple)?.is_break() {
                        return Ok(Flow::Break(()));
                    }
                }
                Ok(Flow::Continue(()))
            }
            _ => match &sources[source] {
                Source::Table(table) => {
                    let keys = match self.keys_of(table, access, tuple)? {
                        Keys::None => return Ok(Flow::Continue(())),
                        keys => keys,
                    };
                    let mut visit = |run: &mut Self, row: Row| {
                        run.step()?;
                        tuple[source] = row;
                        if run.all_hold(filter, tuple)? { each(run, tuple) } else { Ok(Flow::Continue(())) }
                    };
                    self.table_rows(table, keys, &mut visit)
                }
                other => {
                    let rows = self.source_rows(other, tuple)?;
                    for row in rows.iter() {
                        tuple[source] = row.clone();
                        self.step()?;
                        if self.all_hold(filter, tuple)? && each(self, tuple)?.is_break() {
                            return Ok(Flow::Break(()));
                        }
                    }
                    Ok(Flow::Continue(()))
                }
            },
        }
    }

    /// All rows of a source that is no table.
    fn source_rows(&mut self, source: &Source, tuple: &[Row]) -> Result<Rc<Vec<Row>>, Stop> {
        match source {
            Source::Table(table) => {
                let mut all = Vec::new();
                let _ = self.table_rows(table, Keys::All, &mut |run, row| {
                    run.keep(&[])?;
                    all.push(row);
                    Ok(Flow::Continue(()))
                })?;
                Ok(Rc::new(all))
            }
            Source::Virtual(table) => Ok(Rc::new(table.rows(self))),
            Source::Query(query) => self.rows_inside(query, || tuple.to_vec()),
            Source::With(place, _) => Ok(self.with.get(place).cloned().unwrap_or_default()),
            Source::Series(kind, arguments) => {
                let mut given = Vec::new();
                for argument in arguments {
                    given.push(self.evaluate(argument, tuple)?);
                }
                self.series(*kind, &given).map(Rc::new)
            }
        }
    }

    /// The rows of a source by the values of some expressions, made once for a statement.
    fn hashed_rows(
        &mut self,
        sources: &[Source],
        source: usize,
        columns: &[Expression],
        slot: usize,
        width: usize,
    ) -> Result<Rc<HashedRows>, Stop> {
        if let Some(hashed) = self.hashed.get(&slot) {
            return Ok(hashed.clone());
        }
        let mut alone = super::evaluate::empty_tuple(width);
        let rows = self.source_rows(&sources[source], &alone)?;
        let mut hashed = HashedRows::default();
        for row in rows.iter() {
            self.step()?;
            alone[source] = row.clone();
            if let Some(key) = self.hash_key(columns, &alone)? {
                hashed.entry(key).or_default().push(row.clone());
            }
        }
        let hashed = Rc::new(hashed);
        self.hashed.insert(slot, hashed.clone());
        Ok(hashed)
    }

    /// The key of some values in a hash table; none if one is null, which equals nothing.
    fn hash_key(&mut self, expressions: &[Expression], tuple: &[Row]) -> Result<Option<Vec<u8>>, Stop> {
        let mut key = Vec::new();
        for expression in expressions {
            let value = self.evaluate(expression, tuple)?;
            if value.is_null() {
                return Ok(None);
            }
            encode_key_as(expression.ty, &value, &mut key);
        }
        Ok(Some(key))
    }

    /// The keys at which a way to a table's rows looks.
    fn keys_of<'a>(
        &mut self,
        table: &'a TableSource,
        access: &Access,
        tuple: &[Row],
    ) -> Result<Keys<'a>, Stop> {
        let relation = &table.relation;
        match access {
            Access::All | Access::Hash { .. } => Ok(Keys::All),
            Access::Point(values) => {
                let columns = relation.primary_key.as_ref().map_or(&[][..], |key| &key.columns);
                let types: Vec<Type> = columns.iter().map(|at| relation.columns[*at as usize].ty).collect();
                let key = self.probe(values, &types, tuple)?;
                Ok(key.map_or(Keys::None, |key| Keys::Points(vec![key])))
            }
            Access::Points(values) => {
                let columns = relation.primary_key.as_ref().map_or(&[][..], |key| &key.columns);
                let types: Vec<Type> = columns.iter().map(|at| relation.columns[*at as usize].ty).collect();
                let mut keys = Vec::new();
                for value in values {
                    keys.extend(self.probe(std::slice::from_ref(value), &types, tuple)?);
                }
                keys.sort_unstable();
                keys.dedup();
                Ok(Keys::Points(keys))
            }
            Access::Range(range) => self.range_of(table, range, tuple),
        }
    }

    fn range_of<'a>(
        &mut self,
        table: &'a TableSource,
        range: &RangeAccess,
        tuple: &[Row],
    ) -> Result<Keys<'a>, Stop> {
        let relation = &table.relation;
        let columns = match range.index {
            None => relation.primary_key.as_ref().map_or(&[][..], |key| &key.columns),
            Some(at) => &relation.indexes[at].columns,
        };
        let types: Vec<Type> = columns.iter().map(|at| relation.columns[*at as usize].ty).collect();
        let Some(prefix) = self.probe(&range.prefix, &types, tuple)? else { return Ok(Keys::None) };
        let mut bounds = [None, None];
        for (at, bound) in [&range.low, &range.high].into_iter().enumerate() {
            if let Some((value, inclusive)) = bound {
                let ty = types[range.prefix.len()];
                let Some(rest) = self.probe(std::slice::from_ref(value), &[ty], tuple)? else {
                    // A number outside of the column's range bounds all of its values or none: then the filter decides.
                    if self.evaluate(value, tuple)?.is_null() {
                        return Ok(Keys::None);
                    }
                    continue;
                };
                bounds[at] = Some((prefix.iter().copied().chain(rest).collect::<Vec<u8>>(), *inclusive));
            }
        }
        let [low, high] = bounds;
        let low = match low {
            None => Bound::Included(prefix.clone()),
            Some((key, true)) => Bound::Included(key),
            Some((key, false)) => match after(key) {
                Some(key) => Bound::Included(key),
                None => return Ok(Keys::None),
            },
        };
        let high = match high {
            // Nulls are last, and no bound holds for them.
            None if range.low.is_some() => {
                let mut nulls = prefix;
                encode_key_as(types[range.prefix.len()], &Datum::Null, &mut nulls);
                Some(nulls)
            }
            None => after(prefix),
            Some((key, true)) => after(key),
            Some((key, false)) => Some(key),
        };
        let high = high.map_or(Bound::Unbounded, Bound::Excluded);
        let entries = range.index.map(|at| &table.indexes[at]);
        Ok(Keys::Range(entries, low, high))
    }

    /// The key of some values as columns of these types have them; none if no row can have them.
    pub(super) fn probe(
        &mut self,
        values: &[Expression],
        types: &[Type],
        tuple: &[Row],
    ) -> Result<Option<Vec<u8>>, Stop> {
        let mut key = Vec::with_capacity(values.len() * 9);
        for (expression, ty) in values.iter().zip(types) {
            let value = self.evaluate(expression, tuple)?;
            if value.is_null() {
                return Ok(None);
            }
            if expression.ty == *ty {
                encode_key_as(*ty, &value, &mut key);
                continue;
            }
            // A number outside of the column's range is no row's.
            let Ok(cast) = values::cast(value.clone(), expression.ty, *ty, -1) else { return Ok(None) };
            if is_number(&value)
                && values::binary_operator(Operator::Equal, &cast, &value)? != Datum::Bool(true)
            {
                return Ok(None);
            }
            encode_key_as(*ty, &cast, &mut key);
        }
        Ok(Some(key))
    }

    /// Visits a table's rows at these keys.
    pub(crate) fn table_rows(
        &mut self,
        table: &TableSource,
        keys: Keys<'_>,
        visit: &mut dyn FnMut(&mut Self, Row) -> Result<Flow, Stop>,
    ) -> Result<Flow, Stop> {
        let (entries, mut low, high) = match keys {
            Keys::None => return Ok(Flow::Continue(())),
            Keys::Points(keys) => {
                for key in keys {
                    if let Some(row) = table.rows.get(self.tx, &key)?
                        && visit(self, row)?.is_break()
                    {
                        return Ok(Flow::Break(()));
                    }
                }
                return Ok(Flow::Continue(()));
            }
            Keys::All => (None, Bound::Unbounded, Bound::Unbounded),
            Keys::Range(entries, low, high) => (entries, low, high),
        };
        let mut batch = FIRST_BATCH;
        loop {
            let (rows, last) = self.batch(entries.unwrap_or(&table.rows), low, high.clone(), batch)?;
            for row in rows {
                let row = match entries {
                    None => Some(row),
                    Some(_) => self.row_of_entry(table, &row)?,
                };
                if let Some(row) = row
                    && visit(self, row)?.is_break()
                {
                    return Ok(Flow::Break(()));
                }
            }
            match last {
                None => return Ok(Flow::Continue(())),
                Some(last) => low = Bound::Excluded(last),
            }
            batch = (batch * 4).min(LARGEST_BATCH);
        }
    }

    /// The first rows of a range; and the last key among them, if there may be more.
    fn batch(
        &mut self,
        rows: &Rows,
        low: Bound<Vec<u8>>,
        high: Bound<Vec<u8>>,
        limit: usize,
    ) -> Result<(Vec<Row>, Option<Vec<u8>>), Stop> {
        let mut found = Vec::new();
        let mut last = None;
        rows.scan(self.tx, (low, high), Direction::Ascending, |key, row| {
            found.push(row.clone());
            if found.len() < limit {
                return ControlFlow::Continue(());
            }
            last = Some(key.clone());
            ControlFlow::Break(())
        })?;
        Ok((found, last))
    }

    /// The row to which an entry of an index refers.
    fn row_of_entry(&mut self, table: &TableSource, entry: &Row) -> Result<Option<Row>, Stop> {
        match &entry[0] {
            Datum::Bytes(key) => Ok(table.rows.get(self.tx, &**key)?),
            _ => Ok(None),
        }
    }
}

fn is_number(value: &Datum) -> bool {
    matches!(value, Datum::Int2(_) | Datum::Int4(_) | Datum::Int8(_) | Datum::Numeric(_))
}

/// Keys of a table's rows.
pub(crate) enum Keys<'a> {
    None,
    All,
    Points(Vec<Vec<u8>>),
    /// A range of the primary key, or of an index's entries.
    Range(Option<&'a Rows>, Bound<Vec<u8>>, Bound<Vec<u8>>),
}

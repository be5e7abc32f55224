//! Scans of indexes.

use super::Entries;
use crate::layout::part;
use crate::scanning::VisitRows;
use crate::store::Span;
use crate::table::RemoteTable;
use crate::transaction::Transaction;
use hotrow_core::{Abort, Value};
use hotrow_tables::Direction;
use hotrow_tables::inside::first_rows;
use hotrow_tables::key::Key;
use std::ops::ControlFlow;

/// The secondary and the primary key of an entry.
pub(super) type Names<E, V, S, K> = fn(E, V) -> (S, K);

/// The scans of an index: its entries, its table, and the keys that an entry has.
pub(super) struct Scans<'i, E, V, S, K, R> {
    pub(super) entries: &'i Entries<E, V>,
    pub(super) table: RemoteTable<K, R>,
    pub(super) names: Names<E, V, S, K>,
}

impl<E: Key, V, S, K: Key, R: Value> Scans<'_, E, V, S, K, R> {
    /// Visits secondary and primary keys of the entries in a range.
    pub(super) fn keys(
        &self,
        tx: &mut Transaction<'_>,
        span: Span,
        direction: Direction,
        visit: &mut dyn FnMut(&S, &K) -> ControlFlow<()>,
    ) -> Result<(), Abort> {
        tx.visit_rows(span, 1, direction, &mut |tx: &mut Transaction<'_>, name: &[u8]| {
            let Some(value) = tx.value(&part(name, 0))? else { return Ok(ControlFlow::Continue(())) };
            let (entry, row) = self.entries.decode(tx, value)?;
            let (secondary, key) = (self.names)(entry, row);
            Ok(visit(&secondary, &key))
        })
    }

    /// Visits the rows of the entries in a range.
    pub(super) fn rows(
        &self,
        tx: &mut Transaction<'_>,
        span: Span,
        direction: Direction,
        visit: &mut dyn FnMut(&S, &K, &R) -> ControlFlow<()>,
    ) -> Result<(), Abort> {
        let Self { entries, table, names } = self;
        let mut rows = Rows { entries, table, names: *names, visit, expected: Vec::new() };
        tx.visit_rows(span, 1, direction, &mut rows)
    }

    /// The number of entries in a range.
    pub(super) fn count(&self, tx: &mut Transaction<'_>, span: Span) -> Result<usize, Abort> {
        let mut count = 0;
        self.keys(tx, span, Direction::Ascending, &mut |_, _| {
            count += 1;
            ControlFlow::Continue(())
        })?;
        Ok(count)
    }

    /// The primary keys and rows of the first entries in a range.
    pub(super) fn first(
        &self,
        tx: &mut Transaction<'_>,
        span: Span,
        direction: Direction,
        limit: usize,
    ) -> Result<Vec<(K, R)>, Abort> {
        first_rows(limit, |visit| self.rows(tx, span, direction, &mut |_, key, row| visit(key, row)))
    }
}

/// A visitor of entries that looks at their rows. Those of many entries are read together.
struct Rows<'s, E, V, S, K, R> {
    entries: &'s Entries<E, V>,
    table: &'s RemoteTable<K, R>,
    names: Names<E, V, S, K>,
    visit: &'s mut dyn FnMut(&S, &K, &R) -> ControlFlow<()>,
    /// The parts that were read for entries that were not visited yet, the next one at the end.
    expected: Vec<(Vec<u8>, Vec<Vec<u8>>)>,
}

impl<'c, E: Key, V, S, K: Key, R: Value> VisitRows<'c> for Rows<'_, E, V, S, K, R> {
    fn expect(&mut self, tx: &mut Transaction<'c>, names: &[Vec<u8>]) -> Result<(), Abort> {
        let form = self.table.form();
        let (mut all, mut expected) = (Vec::new(), Vec::new());
        for name in names {
            let Some(value) = tx.value(&part(name, 0))? else { continue };
            let (entry, row) = self.entries.decode(tx, value)?;
            let (_, key) = (self.names)(entry, row);
            let row = self.table.row(&key);
            let parts: Vec<_> = form.all().each().map(|number| part(&row, number)).collect();
            let parts: Vec<_> = parts.into_iter().filter(|part| !tx.is_known(part)).collect();
            all.extend_from_slice(&parts);
            expected.push((name.clone(), parts));
        }
        tx.read(all)?;
        expected.reverse();
        self.expected = expected;
        Ok(())
    }

    fn visit(&mut self, tx: &mut Transaction<'c>, name: &[u8]) -> Result<ControlFlow<()>, Abort> {
        self.expected.pop_if(|(expected, _)| expected == name);
        let Some(value) = tx.value(&part(name, 0))? else { return Ok(ControlFlow::Continue(())) };
        let (entry, row) = self.entries.decode(tx, value)?;
        let (secondary, key) = (self.names)(entry, row);
        let Some(row) = tx.get(self.table, &key)? else {
            return Err(tx.malformed(&self.entries.name, "an entry has no row"));
        };
        Ok((self.visit)(&secondary, &key, &row))
    }

    /// Forgets the rows that were read in vain.
    fn end(&mut self, tx: &mut Transaction<'c>) {
        for key in self.expected.drain(..).flat_map(|(_, parts)| parts) {
            tx.reads.remove(&key);
        }
    }
}

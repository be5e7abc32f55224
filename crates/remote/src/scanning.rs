//! Scans of ranges.

use crate::layout::{self, behind_row, part};
use crate::store::Span;
use crate::table::RemoteTable;
use crate::transaction::Transaction;
use hotrow_core::{Abort, Value};
use hotrow_tables::Direction;
use hotrow_tables::key::{Key, KeyBounds};
use std::ops::ControlFlow;

/// A visitor of the rows in a range.
pub(crate) trait VisitRows<'c> {
    /// Prepares for rows, of which the beginnings of their keys are given, in the order in which they will be visited.
    fn expect(&mut self, _tx: &mut Transaction<'c>, _names: &[Vec<u8>]) -> Result<(), Abort> {
        Ok(())
    }

    /// Visits a row, which may have been deleted.
    fn visit(&mut self, tx: &mut Transaction<'c>, name: &[u8]) -> Result<ControlFlow<()>, Abort>;

    /// Ends the visit.
    fn end(&mut self, _tx: &mut Transaction<'c>) {}
}

impl<'c, V> VisitRows<'c> for V
where
    V: FnMut(&mut Transaction<'c>, &[u8]) -> Result<ControlFlow<()>, Abort>,
{
    fn visit(&mut self, tx: &mut Transaction<'c>, name: &[u8]) -> Result<ControlFlow<()>, Abort> {
        self(tx, name)
    }
}

/// A range that is being read. When it is dropped, the transaction has read what the visitor may have seen: it has come to the end, has
/// broken, or has panicked.
struct Reading<'t, 'c> {
    tx: &'t mut Transaction<'c>,
    start: Vec<u8>,
    /// The key up to which it was read.
    end: Vec<u8>,
    /// Keys in it that were not known before.
    added: Vec<Vec<u8>>,
}

impl Drop for Reading<'_, '_> {
    fn drop(&mut self) {
        let (start, end) = (std::mem::take(&mut self.start), std::mem::take(&mut self.end));
        self.added.iter().filter(|key| **key >= end).for_each(|key| drop(self.tx.reads.remove(key)));
        if start < end {
            self.tx.spans.push(Span { start, end });
        }
    }
}

/// The name of the row of which a key is the main part.
fn names(mains: impl IntoIterator<Item = Vec<u8>>) -> Vec<Vec<u8>> {
    let name = |mut main: Vec<u8>| {
        main.pop();
        main
    };
    mains.into_iter().map(name).collect()
}

impl<'c> Transaction<'c> {
    /// Visits the rows whose keys are in `range`, in ascending order, until the visitor breaks. The transaction's own changes are
    /// found. The transaction has then read the range up to where the scan ended.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn scan<K: Key, R: Value>(
        &mut self,
        table: &RemoteTable<K, R>,
        range: impl KeyBounds<K>,
        visit: impl FnMut(K, R) -> ControlFlow<()>,
    ) -> Result<(), Abort> {
        self.scan_in(table, range, Direction::Ascending, visit)
    }

    /// As [`scan`](Self::scan), in either direction. A scan in descending order reads its whole range.
    pub(crate) fn scan_in<K: Key, R: Value>(
        &mut self,
        table: &RemoteTable<K, R>,
        range: impl KeyBounds<K>,
        direction: Direction,
        mut visit: impl FnMut(K, R) -> ControlFlow<()>,
    ) -> Result<(), Abort> {
        self.check(table)?;
        let span = layout::span::<K>(table.prefix(), range.images());
        let form = table.form();
        self.visit_rows(span, form.parts(), direction, &mut |tx: &mut Self, name: &[u8]| {
            let Some(parts) = tx.parts(form, name, form.all())? else { return Ok(ControlFlow::Continue(())) };
            let key = form.key(parts[0].as_deref().unwrap_or_default());
            let key = key.map_err(|malformed| tx.malformed(table.name(), &malformed.to_string()))?;
            let row = tx.decode(table, name, &parts)?;
            Ok(visit(key, row))
        })
    }

    /// All rows whose keys are in `range`, in ascending order.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn rows<K: Key, R: Value>(
        &mut self,
        table: &RemoteTable<K, R>,
        range: impl KeyBounds<K>,
    ) -> Result<Vec<(K, R)>, Abort> {
        let mut rows = Vec::new();
        self.scan(table, range, |key, row| {
            rows.push((key, row));
            ControlFlow::Continue(())
        })?;
        Ok(rows)
    }

    /// Visits the rows of so many parts in a range.
    pub(crate) fn visit_rows(
        &mut self,
        span: Span,
        parts: usize,
        direction: Direction,
        visitor: &mut impl VisitRows<'c>,
    ) -> Result<(), Abort> {
        if span.is_empty() {
            return Ok(());
        }
        let mut visited = span.start.clone();
        let (start, end) = (span.start.clone(), span.start.clone());
        let mut reading = Reading { tx: self, start, end, added: Vec::new() };
        let mut stop = None;
        while stop.is_none() && reading.end < span.end {
            let rest = Span { start: reading.end.clone(), end: span.end.clone() };
            let end = match reading.tx.fetch(&rest, &mut reading.added)? {
                None => {
                    reading.end.clone_from(&span.end);
                    span.end.clone()
                }
                Some(last) => {
                    reading.end = [&*last, &[0]].concat();
                    // The last row may be cut off.
                    let is_whole = last.last().is_some_and(|part| usize::from(*part) + 1 == parts);
                    if is_whole { behind_row(&last) } else { part(&last[..last.len() - 1], 0) }
                }
            };
            if direction == Direction::Ascending {
                let names = names(reading.tx.rows_between(&visited, &end));
                stop = reading.tx.visit_each(&names, visitor)?.map(|name| behind_row(&part(&name, 0)));
            }
            visited = visited.max(end);
        }
        if direction == Direction::Descending {
            let mut names = names(reading.tx.rows_between(&span.start, &span.end));
            names.reverse();
            reading.tx.visit_each(&names, visitor)?;
        }
        if let Some(end) = stop {
            reading.end = end;
        }
        visitor.end(reading.tx);
        Ok(())
    }

    /// Visits rows one after the other. Returns the one at which the visitor has broken.
    fn visit_each(
        &mut self,
        names: &[Vec<u8>],
        visitor: &mut impl VisitRows<'c>,
    ) -> Result<Option<Vec<u8>>, Abort> {
        for names in names.chunks(self.shared.settings.page.max(1)) {
            visitor.expect(self, names)?;
            for name in names {
                if visitor.visit(self, name)?.is_break() {
                    return Ok(Some(name.clone()));
                }
            }
        }
        Ok(None)
    }
}

//! Rows of a table over a store, as operations see them.

use crate::indexes::RemoteIndex;
use crate::layout::part;
use crate::table::{PartSet, RemoteTable};
use crate::transaction::Transaction;
use hotrow_core::{
    Abort, Addend, Addition, Column, CommitTimeChange, Fields, Misuse, OutOfRange, Overflow, Value, Whole,
};
use hotrow_procedures::Ranges;
use hotrow_tables::key::Key;
use hotrow_tables::operations::RowAccess;
use hotrow_tables::{Direction, IndexRef, KeyRange, TableRef};
use std::ops::ControlFlow;

/// The rows of a table in a transaction. An operation on a row that was not read yet fails, and leaves in `missing` what it wants to
/// read.
pub(super) struct Rows<'r, 'c, K, R> {
    pub(super) table: &'r RemoteTable<K, R>,
    pub(super) tx: &'r mut Transaction<'c>,
    pub(super) missing: &'r mut Vec<Vec<u8>>,
    /// True if operations only say what they have to read, and all fail.
    pub(super) only_asks: bool,
}

impl<K: Key, R: Value> Rows<'_, '_, K, R> {
    /// Goes on if these parts of a row are known, and says otherwise that they are missing.
    fn need(&mut self, key: &K, parts: PartSet) -> Result<(), Abort> {
        let (before, name) = (self.missing.len(), self.table.row(key));
        let keys = parts.each().map(|number| part(&name, number));
        self.missing.extend(keys.filter(|key| !self.tx.is_known(key)));
        if self.missing.len() == before { self.go_on() } else { Err(Abort::internal()) }
    }

    fn go_on(&self) -> Result<(), Abort> {
        if self.only_asks { Err(Abort::internal()) } else { Ok(()) }
    }
}

impl<K: Key, R: Value> RowAccess<K, R> for Rows<'_, '_, K, R> {
    fn read<C: Fields<R>, O>(
        &mut self,
        key: &K,
        fields: C,
        look: impl FnOnce(&C::Values) -> O,
    ) -> Result<Option<O>, Abort> {
        self.need(key, self.table.parts_of(fields))?;
        self.tx.read_fields(self.table, key, fields, look)
    }

    fn update<C: Fields<R>, O>(
        &mut self,
        key: &K,
        fields: C,
        change: impl FnOnce(&mut C::Values) -> O,
    ) -> Result<Option<O>, Abort> {
        self.need(key, self.table.parts_to_change(self.table.parts_of(fields)))?;
        self.tx.update_fields_if_present(self.table, key, fields, change)
    }

    fn replace(&mut self, key: &K, row: impl FnOnce() -> R) -> Result<bool, Abort> {
        Ok(self.update(key, Whole, |old| *old = row())?.is_some())
    }

    fn insert(&mut self, key: K, row: impl FnOnce() -> R) -> Result<bool, Abort> {
        self.need(&key, PartSet::MAIN)?;
        self.tx.insert_if_absent(self.table, key, row())
    }

    fn delete(&mut self, key: &K) -> Result<bool, Abort> {
        self.need(key, self.table.parts_to_replace())?;
        self.tx.delete(self.table, key)
    }

    fn take_first(&mut self, range: KeyRange<K>) -> Result<Option<K>, Abort> {
        self.go_on()?;
        let mut first = None;
        self.tx.scan(self.table, (range.low, range.high), |key, _| {
            first = Some(key);
            ControlFlow::Break(())
        })?;
        if let Some(key) = &first {
            self.tx.delete(self.table, key)?;
        }
        Ok(first)
    }

    fn commute<C, G>(&mut self, key: &K, fields: C, change: impl FnOnce() -> G) -> Result<(), Abort>
    where
        C: Fields<R> + Send + 'static,
        G: Fn(&mut C::Values) + Send + 'static,
    {
        self.update(key, fields, |values| change()(values)).map(drop)
    }

    fn add<F>(
        &mut self,
        key: &K,
        column: Column<R, F>,
        amount: impl FnOnce() -> F,
        wraps: bool,
    ) -> Result<(), Abort>
    where
        F: Addend + Send + 'static,
    {
        let added = self.update(key, column, |value| {
            let addition = Addition::new(Column::whole(), amount());
            if wraps { addition.wrapping().change(value) } else { addition.change(value) }
        })?;
        match added {
            Some(Err(OutOfRange)) => Err(self.tx.raise(Overflow::new(self.table.name(), format!("{key:?}")))),
            _ => Ok(()),
        }
    }
}

/// The tables and indexes of a cluster.
pub(super) struct AllRanges<'r, 'c>(pub(super) &'r mut Transaction<'c>);

/// The table to which a reference refers.
pub(super) fn table_of<K: Key, R: Value>(
    tx: &mut Transaction<'_>,
    table: TableRef<K, R>,
) -> Result<RemoteTable<K, R>, Abort> {
    let found = tx.shared.elsewhere.table_number(table).and_then(|number| tx.shared.handle(number));
    found.ok_or_else(|| tx.fail(Misuse::ForeignObject { object: format!("{table:?}") }))
}

impl Ranges for AllRanges<'_, '_> {
    fn scan<K: Key, R: Value>(
        &mut self,
        table: TableRef<K, R>,
        range: KeyRange<K>,
        direction: Direction,
        mut visit: impl FnMut(&K, &R) -> ControlFlow<()>,
    ) -> Result<(), Abort> {
        let table = table_of(self.0, table)?;
        let range = (range.low, range.high);
        self.0.scan_in(&table, range, direction, |key, row| visit(&key, &row))
    }

    fn scan_index<S: Key, K: Key, R: Value>(
        &mut self,
        index: IndexRef<S, K, R>,
        KeyRange { low, high }: KeyRange<S>,
        direction: Direction,
        visit: impl FnMut(&S, &K) -> ControlFlow<()>,
    ) -> Result<(), Abort> {
        let shared = self.0.shared;
        let found = shared.elsewhere.index_number(index).and_then(|number| shared.handle(number));
        let found: RemoteIndex<S, K, R> =
            found.ok_or_else(|| self.0.fail(Misuse::ForeignObject { object: format!("{index:?}") }))?;
        found.scan_keys(self.0, (low, high), direction, visit)
    }
}

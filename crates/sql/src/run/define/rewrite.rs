//! Rewriting of tables: new storages with all rows, and with all entries of indexes.
//!
//! A row is stored under its key and is as wide as its table, so whatever changes the key or the columns rewrites the table. Nobody
//! else sees the new storages before the catalog names them. Whoever writes into the old ones has read the old catalog, and so one of
//! both transactions loses.

use super::{Run, Stop};
use crate::catalog::{Catalog, Entry, Relation};
use crate::error::SqlError;
use crate::plan::select::TableSource;
use crate::row::Row;
use crate::run::scan::{Flow, Keys};
use crate::run::{key_of, row_key};
use crate::values::Datum;
use std::sync::Arc;

impl Run<'_, '_> {
    /// The number of a new storage. It is dropped after the transaction, if the catalog does not name it then.
    pub(super) fn fresh_storage(&self) -> u32 {
        let storage = self.shared.storages.draw(self.tx);
        self.changes.borrow_mut().touch(storage);
        storage
    }

    /// A new empty storage for rows or entries.
    pub(super) fn fresh_rows(&self) -> Result<u32, SqlError> {
        if let Some(storage) = self.changes.borrow_mut().take_spare() {
            return Ok(storage);
        }
        let storage = self.fresh_storage();
        self.shared.storages.rows(storage)?;
        self.changes.borrow_mut().make(storage);
        Ok(storage)
    }

    /// Gives up a table's storages: they are dropped after the transaction.
    pub(super) fn give_up(&self, relation: &Relation) {
        let mut changes = self.changes.borrow_mut();
        changes.touch(relation.storage);
        relation.indexes.iter().for_each(|index| changes.touch(index.storage));
    }

    /// Gives a table new empty storages.
    pub(super) fn renew(&self, relation: &mut Relation) -> Result<(), SqlError> {
        relation.storage = self.fresh_rows()?;
        for index in &mut relation.indexes {
            index.storage = self.fresh_rows()?;
        }
        Ok(())
    }

    /// A table with its storages.
    pub(super) fn source(&self, relation: Arc<Relation>) -> Result<TableSource, SqlError> {
        let storages = &self.shared.storages;
        let rows = storages.rows(relation.storage)?;
        let indexes = relation.indexes.iter().map(|index| storages.rows(index.storage));
        let indexes = indexes.collect::<Result<_, _>>()?;
        Ok(TableSource { relation, rows, indexes })
    }

    /// Sets the catalog. `changed` are the numbers of the entries that were changed or removed.
    pub(super) fn replace_catalog(&mut self, catalog: Catalog, changed: Vec<u32>) -> Result<(), Stop> {
        self.change_catalog(|old| {
            *old = catalog;
            Ok(changed)
        })
    }

    /// Sets the definition of one table.
    pub(super) fn replace_relation(&mut self, mut catalog: Catalog, relation: Relation) -> Result<(), Stop> {
        let oid = relation.oid;
        catalog.put(Entry::Relation(Arc::new(relation)));
        self.replace_catalog(catalog, vec![oid])
    }

    /// Rewrites a table by another definition, whose storages are made here. `change` makes the new rows' values of the old ones'.
    pub(super) fn rewrite(
        &mut self,
        old: &Arc<Relation>,
        new: &mut Relation,
        change: &mut dyn FnMut(&mut Self, Vec<Datum>) -> Result<Vec<Datum>, Stop>,
    ) -> Result<(), Stop> {
        self.renew(new)?;
        self.give_up(old);
        let from = self.source(old.clone())?;
        let to = self.source(Arc::new(new.clone()))?;
        let width = old.columns.len();
        let _ = self.table_rows(&from, Keys::All, &mut |run, row| {
            run.step()?;
            // The row's own number is drawn anew, in the same order.
            let mut values = change(run, row[..width].to_vec())?;
            check_nulls(&to.relation, &values)?;
            values.reserve_exact(1);
            run.add(&to, Row::new(values)).map_err(not_unique)?;
            Ok(Flow::Continue(()))
        })?;
        Ok(())
    }

    /// Makes the entries of a table's last index, which is new, for the rows that there are.
    pub(super) fn fill_last_index(&mut self, relation: &Relation) -> Result<(), Stop> {
        let Some(index) = relation.indexes.last() else { return Ok(()) };
        let entries = self.shared.storages.rows(index.storage)?;
        let table = self.source(Arc::new(relation.clone()))?;
        let _ = self.table_rows(&table, Keys::All, &mut |run, row| {
            run.step()?;
            let own_key = row_key(relation, &row);
            let mut key = key_of(relation, &index.columns, &row);
            let has_null = index.columns.iter().any(|column| row[*column as usize].is_null());
            if !index.is_unique || has_null {
                key.extend_from_slice(&own_key);
            }
            let entry = Row::new(vec![Datum::Bytes(own_key.into())]);
            if !entries.insert_if_absent(run.tx, key, entry)? {
                let error = crate::run::entries::duplicate(relation, &index.name, &index.columns, &row);
                return Err(not_unique(error.into()));
            }
            Ok(Flow::Continue(()))
        })?;
        Ok(())
    }
}

/// The error of a key that exists, as that of a unique index that cannot be.
fn not_unique(stop: Stop) -> Stop {
    let Stop::Sql(mut error) = stop else { return stop };
    if error.code != "23505" {
        return error.into();
    }
    let name = error.constraint.as_deref().unwrap_or_default();
    let message = format!("could not create unique index \"{name}\"");
    let detail = error.detail.as_deref().map(|detail| detail.replace(" already exists.", " is duplicated."));
    error.detail = detail;
    error.message(message).into()
}

/// Refuses a row with a null where there must be none.
fn check_nulls(relation: &Relation, values: &[Datum]) -> Result<(), SqlError> {
    let missing =
        relation.columns.iter().zip(values).find(|(column, value)| column.not_null && value.is_null());
    missing.map_or(Ok(()), |(column, _)| Err(contains_nulls(relation, &column.name)))
}

/// The error of a column with nulls that is to have none.
pub(super) fn contains_nulls(relation: &Relation, column: &str) -> SqlError {
    let table = &relation.name;
    let message = format!("column \"{column}\" of relation \"{table}\" contains null values");
    SqlError::new("23502", message).table(table).column(column)
}

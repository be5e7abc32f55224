//! Entries of indexes.

use super::{Stop, key_of};
use crate::catalog::Relation;
use crate::error::SqlError;
use crate::plan::select::TableSource;
use crate::row::Row;
use crate::values::Datum;
use crate::virtual_tables::quoted;
use hotrow::{Abort, Any, Transaction};

pub(super) fn has_null(columns: &[u32], row: &[Datum]) -> bool {
    columns.iter().any(|column| row[*column as usize].is_null())
}

/// The key of an entry: unique ones are the columns alone, so that a second one is refused; the others have the row's key behind.
pub(super) fn entry_key(
    relation: &Relation,
    is_unique: bool,
    columns: &[u32],
    row: &[Datum],
    row_key: &[u8],
) -> Vec<u8> {
    let mut key = key_of(relation, columns, row);
    if !is_unique || has_null(columns, row) {
        key.extend_from_slice(row_key);
    }
    key
}

pub(super) fn add_entry(
    tx: &mut Transaction<'_, Any>,
    target: &TableSource,
    at: usize,
    columns: &[u32],
    row: &Row,
    row_key: &[u8],
) -> Result<(), Stop> {
    let index = &target.relation.indexes[at];
    let key = entry_key(&target.relation, index.is_unique, columns, row, row_key);
    let entry = Row::new(vec![Datum::Bytes(row_key.into())]);
    if target.indexes[at].insert_if_absent(tx, key, entry)? {
        Ok(())
    } else {
        Err(duplicate(&target.relation, &index.name, columns, row).into())
    }
}

pub(super) fn remove_entry(
    tx: &mut Transaction<'_, Any>,
    target: &TableSource,
    at: usize,
    columns: &[u32],
    row: &Row,
    row_key: &[u8],
) -> Result<(), Abort> {
    let is_unique = target.relation.indexes[at].is_unique;
    let key = entry_key(&target.relation, is_unique, columns, row, row_key);
    target.indexes[at].delete(tx, &key).map(drop)
}

/// The error of a key that exists.
pub(crate) fn duplicate(relation: &Relation, constraint: &str, columns: &[u32], row: &[Datum]) -> SqlError {
    let names: Vec<String> = columns.iter().map(|at| quoted(&relation.columns[*at as usize].name)).collect();
    let shown = columns.iter().map(|at| row[*at as usize].to_text(relation.columns[*at as usize].ty));
    let shown: Vec<String> = shown.collect();
    let message = format!("duplicate key value violates unique constraint \"{constraint}\"");
    let error = SqlError::new("23505", message).table(&relation.name).constraint(constraint);
    error.detail(format!("Key ({})=({}) already exists.", names.join(", "), shown.join(", ")))
}

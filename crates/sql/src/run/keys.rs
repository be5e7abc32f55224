//! Keys of rows and entries.

use crate::catalog::Relation;
use crate::values::{Datum, Type, encode_key_as};

/// The key of a row by some of its columns.
pub(crate) fn key_of(relation: &Relation, columns: &[u32], row: &[Datum]) -> Vec<u8> {
    let mut key = Vec::with_capacity(columns.len() * 9);
    for column in columns {
        let column = *column as usize;
        encode_key_as(relation.columns[column].ty, &row[column], &mut key);
    }
    key
}

/// The key by which a table's storage finds a row: its primary key, or the number behind its columns.
pub(crate) fn row_key(relation: &Relation, row: &[Datum]) -> Vec<u8> {
    match &relation.primary_key {
        Some(primary) => key_of(relation, &primary.columns, row),
        None => hidden_key(&row[relation.columns.len()]),
    }
}

/// The key of a row of a table without a primary key.
pub(super) fn hidden_key(number: &Datum) -> Vec<u8> {
    let mut key = Vec::with_capacity(9);
    encode_key_as(Type::Int8, number, &mut key);
    key
}

/// The least key that is larger than all that begin with these bytes; none if there is none.
pub(super) fn after(mut prefix: Vec<u8>) -> Option<Vec<u8>> {
    while let Some(last) = prefix.pop() {
        if last < u8::MAX {
            prefix.push(last + 1);
            return Some(prefix);
        }
    }
    None
}

//! Keys and rows as bytes, by their [`StoredForm`]s.
//!
//! A row is written whole, or some fields of it, each as it is among the others: a commit logs only those that it has changed. This is for
//! inline rows ([`Value::FIELDS`]) that are stored as a struct with the same fields.

use hotrow_core::Value;
use hotrow_stored::{Reader, Schema, StoredForm, Writer};
use std::fmt::Debug;

/// The most fields that are told apart.
const FIELDS_MAX: usize = 64;

/// Writes and reads the keys and rows of a table.
pub struct Codec<K, R> {
    key: StoredForm<K>,
    row: StoredForm<R>,
    /// True if fields of a row are written apart.
    pub(crate) by_fields: bool,
}

impl<K, R> Clone for Codec<K, R> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<K, R> Copy for Codec<K, R> {}

impl<K, R: Value> Codec<K, R> {
    /// The codec of two forms.
    pub fn new(key: StoredForm<K>, row: StoredForm<R>) -> Self {
        let names = R::FIELDS.iter().map(|field| field.name);
        let by_fields = row.fields == R::FIELDS.len()
            && (1..=FIELDS_MAX).contains(&row.fields)
            && row.schema().field_names().is_some_and(|stored| stored.eq(names));
        Self { key, row, by_fields }
    }

    /// The schemas of both.
    pub fn schemas(&self) -> (Schema, Schema) {
        (self.key.schema(), self.row.schema())
    }

    /// Appends a key.
    #[inline]
    pub fn put_key(&self, key: &K, bytes: &mut Vec<u8>) -> Result<(), String> {
        Writer::write(bytes, |to| self.write_key(key, to))
    }

    /// Appends a row.
    #[inline]
    pub fn put_row(&self, row: &R, bytes: &mut Vec<u8>) -> Result<(), String> {
        Writer::write(bytes, |to| self.write_row(row, to))
    }

    /// Writes a key.
    #[inline]
    pub(crate) fn write_key(&self, key: &K, to: &mut Writer<'_>) {
        (self.key.put)(key, to);
    }

    /// Writes a row.
    #[inline]
    pub(crate) fn write_row(&self, row: &R, to: &mut Writer<'_>) {
        (self.row.put)(row, to);
    }

    /// Writes a field of a row.
    #[inline]
    pub(crate) fn write_field(&self, row: &R, field: u32, to: &mut Writer<'_>) {
        (self.row.put_field)(row, field as usize, to);
    }

    /// Reads a row.
    pub fn get_row(&self, bytes: &[u8]) -> Result<R, String> {
        Reader::read(bytes, self.row.get).map_err(|malformed| malformed.to_string())
    }

    /// Reads a key and a row. `Err` with what is wrong with them.
    pub fn get(&self, key: &[u8], row: &[u8]) -> Result<(K, R), String>
    where
        K: Debug,
    {
        let key =
            Reader::read(key, self.key.get).map_err(|reason| format!("a key cannot be read: {reason}"))?;
        let row = self.get_row(row).map_err(|reason| format!("row {key:?} cannot be read: {reason}"))?;
        Ok((key, row))
    }
}

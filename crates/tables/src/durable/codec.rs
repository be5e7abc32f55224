//! Keys and rows as bytes, by their [`StoredForm`]s.
//!
//! A row is written whole, or some fields of it, each as it is among the others: a commit logs only those that it has changed. This is for
//! inline rows ([`Value::FIELDS`]) that are stored as a struct with the same fields. A field that was changed later is a part of the row in
//! the log, and takes the place of the one in the row; the schema tells where that is.

use super::shape::Shape;
use hotrow_core::Value;
use hotrow_log::entry::PartsWriter;
use hotrow_stored::{Plan, Reader, StoredForm, Writer};

/// The most fields that are told apart.
const FIELDS_MAX: usize = 64;

/// Writes and reads the keys and rows of a table.
pub(super) struct Codec<K, R> {
    key: StoredForm<K>,
    row: StoredForm<R>,
    /// True if fields of a row are written apart.
    pub(super) by_fields: bool,
}

impl<K, R> Clone for Codec<K, R> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<K, R> Copy for Codec<K, R> {}

impl<K, R: Value> Codec<K, R> {
    pub(super) fn new(key: StoredForm<K>, row: StoredForm<R>) -> Self {
        let names = R::FIELDS.iter().map(|field| field.name);
        let by_fields = row.fields == R::FIELDS.len()
            && (1..=FIELDS_MAX).contains(&row.fields)
            && row.schema().field_names().is_some_and(|stored| stored.eq(names));
        Self { key, row, by_fields }
    }

    /// The schemas of both.
    pub(super) fn shape(&self, kind: &str) -> Shape {
        Shape { kind: kind.to_owned(), key: self.key.schema(), row: self.row.schema() }
    }

    #[inline]
    pub(super) fn put_key(&self, key: &K, bytes: &mut Vec<u8>) -> Result<(), String> {
        Writer::write(bytes, |to| (self.key.put)(key, to))
    }

    #[inline]
    pub(super) fn put_row(&self, row: &R, bytes: &mut Vec<u8>) -> Result<(), String> {
        Writer::write(bytes, |to| (self.row.put)(row, to))
    }

    /// Adds some of a row's fields to an entry.
    #[inline]
    pub(super) fn put_fields(
        &self,
        row: &R,
        mut fields: u64,
        parts: &mut PartsWriter<'_>,
    ) -> Result<(), String> {
        while fields != 0 {
            let field = fields.trailing_zeros();
            fields &= fields - 1;
            let put = |to: &mut Writer<'_>| (self.row.put_field)(row, field as usize, to);
            parts.put(field, |bytes| Writer::write(bytes, put))?;
        }
        Ok(())
    }

    pub(super) fn get_key(&self, bytes: &[u8]) -> Result<K, String> {
        Reader::read(bytes, self.key.get).map_err(|malformed| malformed.to_string())
    }

    pub(super) fn get_row(&self, bytes: &[u8]) -> Result<R, String> {
        Reader::read(bytes, self.row.get).map_err(|malformed| malformed.to_string())
    }
}

/// The fields in which two rows differ, one bit each.
pub(super) fn changed_fields<R: Value>(before: &R, after: &R) -> u64 {
    let (before, after) = (std::ptr::from_ref(before).cast::<u8>(), std::ptr::from_ref(after).cast::<u8>());
    // SAFETY: only inline values have fields, and they are plain data without padding; fields lie within them.
    let bytes = |row: *const u8, at: usize, count| unsafe { std::slice::from_raw_parts(row.add(at), count) };
    let differ = R::FIELDS
        .iter()
        .map(|field| bytes(before, field.offset, field.bytes) != bytes(after, field.offset, field.bytes));
    differ.enumerate().fold(0, |fields, (at, differs)| fields | u64::from(differs) << at)
}

/// The fields that have bytes in a range of the row, one bit each.
pub(super) fn fields_in<R: Value>(first: usize, bytes: usize) -> u64 {
    let is_in = |offset: usize, size: usize| offset < first + bytes && first < offset + size;
    let fields = R::FIELDS.iter().enumerate();
    fields.fold(0, |all, (at, field)| all | u64::from(is_in(field.offset, field.bytes)) << at)
}

/// Puts newer fields in the place of those of a row. `plan` is that of the row's schema.
pub(super) fn with_newer(plan: &Plan, row: &[u8], newer: &[(u32, &[u8])]) -> Result<Vec<u8>, String> {
    let mut fields = plan.split(row).map_err(|malformed| malformed.to_string())?;
    for (number, field) in newer {
        *fields.get_mut(*number as usize).ok_or("there is no such field")? = field;
    }
    Ok(fields.concat())
}

//! The way of a table's rows to the log.

use crate::codec::Codec;
use crate::database_log::Entries;
use crate::key::Key;
use crate::record::GroupsOf;
use hotrow_core::Value;
use hotrow_core::column_groups::ColumnGroups;
use hotrow_sync::OnceLock;

/// Writes a table's rows to records of the log. A row that cannot be written is an error.
pub(crate) struct RowLog<K, R> {
    codec: Codec<K, R>,
    entries: Box<dyn Entries>,
    /// A row of the table, as one that has columns for a group. There is one as soon as there has been a row.
    any_row: OnceLock<R>,
    /// The fields of each column group.
    fields_of_groups: Vec<u64>,
}

impl<K: Key, R: Value> RowLog<K, R> {
    pub(crate) fn new(codec: Codec<K, R>, entries: Box<dyn Entries>) -> Self {
        let fields_of_groups = (0..GroupsOf::<R>::NAMES.len()).map(fields_of_group::<R>).collect();
        Self { codec, entries, any_row: OnceLock::new(), fields_of_groups }
    }

    pub(crate) fn codec(&self) -> &Codec<K, R> {
        &self.codec
    }

    /// Notes that there has been a row.
    pub(crate) fn note(&self, row: &R) {
        self.any_row.get_or_init(|| row.clone());
    }

    /// Appends a row.
    pub(crate) fn put(&self, entries: &mut Vec<u8>, key: &K, row: &R) -> Result<(), String> {
        self.note(row);
        let put_key = &mut |bytes: &mut Vec<u8>| self.codec.put_key(key, bytes);
        self.entries.put(entries, put_key, &mut |bytes| self.codec.put_row(row, bytes))
    }

    /// Appends what has changed of a row.
    pub(crate) fn put_changes(
        &self,
        entries: &mut Vec<u8>,
        key: &K,
        before: &R,
        after: &R,
    ) -> Result<(), String> {
        self.put_fields(entries, key, after, changed_fields(before, after))
    }

    /// Appends the fields of a column group, which `put` copies to a row.
    pub(crate) fn put_group(
        &self,
        entries: &mut Vec<u8>,
        key: &K,
        group: usize,
        put: &dyn Fn(&mut R),
    ) -> Result<(), String> {
        let mut row = self.any_row.get().ok_or("a part of a row is logged before any row")?.clone();
        put(&mut row);
        self.put_fields(entries, key, &row, self.fields_of_groups[group])
    }

    /// Appends some fields of a row; the row, if rows are written whole.
    fn put_fields(&self, entries: &mut Vec<u8>, key: &K, row: &R, fields: u64) -> Result<(), String> {
        if !self.codec.by_fields {
            return self.put(entries, key, row);
        }
        if fields == 0 {
            return Ok(());
        }
        let put_key = &mut |bytes: &mut Vec<u8>| self.codec.put_key(key, bytes);
        let put = &mut |field, bytes: &mut Vec<u8>| self.codec.put_field(row, field, bytes);
        self.entries.put_fields(entries, put_key, fields, put)
    }

    /// Appends a row's deletion.
    pub(crate) fn delete(&self, entries: &mut Vec<u8>, key: &K) -> Result<(), String> {
        self.entries.delete(entries, &mut |bytes| self.codec.put_key(key, bytes))
    }
}

/// The fields that have columns in a group, one bit each.
fn fields_of_group<R: Value>(group: usize) -> u64 {
    let columns = GroupsOf::<R>::COLUMNS.iter().filter(|column| column.group == group);
    columns.fold(0, |fields, column| fields | fields_in::<R>(column.row, column.bytes))
}

/// The fields in which two rows differ, one bit each.
fn changed_fields<R: Value>(before: &R, after: &R) -> u64 {
    let (before, after) = (std::ptr::from_ref(before).cast::<u8>(), std::ptr::from_ref(after).cast::<u8>());
    // SAFETY: only inline values have fields, and they are plain data without padding; fields lie within them.
    let bytes = |row: *const u8, at: usize, count| unsafe { std::slice::from_raw_parts(row.add(at), count) };
    let differ = R::FIELDS
        .iter()
        .map(|field| bytes(before, field.offset, field.bytes) != bytes(after, field.offset, field.bytes));
    differ.enumerate().fold(0, |fields, (at, differs)| fields | u64::from(differs) << at)
}

/// The fields that have bytes in a range of the row, one bit each.
fn fields_in<R: Value>(first: usize, bytes: usize) -> u64 {
    let is_in = |offset: usize, size: usize| offset < first + bytes && first < offset + size;
    let fields = R::FIELDS.iter().enumerate();
    fields.fold(0, |all, (at, field)| all | u64::from(is_in(field.offset, field.bytes)) << at)
}

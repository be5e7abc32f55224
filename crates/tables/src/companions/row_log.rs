//! The way of a table's rows to the log.

use crate::codec::Codec;
use crate::database_log::{ENTRY_HEAD, Entries, EntryKind, FIELD_HEAD};
use crate::key::Key;
use crate::record::{GroupsOf, WordsOf};
use hotrow_core::column_groups::{ColumnGroups, GroupColumn, Part};
use hotrow_core::{Value, Whole};
use hotrow_stored::Writer;
use hotrow_sync::OnceLock;

/// Writes a table's rows to records of the log. A row that cannot be written is an error.
pub(crate) struct RowLog<K, R> {
    codec: Codec<K, R>,
    entries: Box<dyn Entries>,
    /// A row of the table, as one that has columns for a group. There is one as soon as there has been a row.
    any_row: OnceLock<R>,
    /// The fields of each column of the groups, in their order.
    fields_of_columns: Vec<u64>,
    /// The field of each byte of a row, if fields are written apart.
    fields_of_bytes: Vec<u8>,
}

impl<K: Key, R: Value> RowLog<K, R> {
    pub(crate) fn new(codec: Codec<K, R>, entries: Box<dyn Entries>) -> Self {
        let columns = GroupsOf::<R>::COLUMNS.iter();
        let fields_of_columns = columns.map(|column| fields_in::<R>(column.row, column.bytes)).collect();
        let fields_of_bytes = if codec.by_fields { fields_of_bytes::<R>() } else { Vec::new() };
        Self { codec, entries, any_row: OnceLock::new(), fields_of_columns, fields_of_bytes }
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
        self.entry(entries, key, EntryKind::Row, |to| self.codec.write_row(row, to))
    }

    /// Appends an entry, whose value `put` writes.
    #[inline(always)]
    fn entry(
        &self,
        entries: &mut Vec<u8>,
        key: &K,
        kind: EntryKind,
        put: impl FnOnce(&mut Writer<'_>),
    ) -> Result<(), String> {
        let (start, mut value) = (entries.len(), 0);
        Writer::write(entries, |to| {
            to.bytes(&[0; ENTRY_HEAD]);
            self.codec.write_key(key, to);
            value = to.written().len();
            put(to);
        })?;
        self.entries.end(entries, start, value, kind)
    }

    /// The fields of the wanted columns of the groups, one bit each.
    #[inline]
    fn fields_of(&self, wanted: impl Fn(&GroupColumn) -> bool) -> u64 {
        let columns = GroupsOf::<R>::COLUMNS.iter().zip(&self.fields_of_columns);
        columns.filter(|(column, _)| wanted(column)).fold(0, |fields, (_, of_column)| fields | of_column)
    }

    /// The fields of some groups, each of which is one bit: one bit each.
    pub(crate) fn fields_of_groups(&self, groups: u32) -> u64 {
        self.fields_of(|column| groups >> column.group & 1 != 0)
    }

    /// Appends what has changed of a row's record. `elsewhere`: the fields of which the record's values do not count.
    pub(crate) fn put_changes(
        &self,
        entries: &mut Vec<u8>,
        key: &K,
        (before, after): (&R, &R),
        elsewhere: u64,
    ) -> Result<(), String> {
        if !self.codec.by_fields {
            return self.put(entries, key, after);
        }
        let fields = changed_fields(before, after, &self.fields_of_bytes);
        self.put_fields(entries, key, after, fields & !elsewhere)
    }

    /// Appends what has changed of a column group's part of a row.
    pub(crate) fn put_part_changes(
        &self,
        entries: &mut Vec<u8>,
        key: &K,
        group: usize,
        before: &Part<WordsOf<R>>,
        after: &Part<WordsOf<R>>,
    ) -> Result<(), String> {
        // A part of a row that was not there says nothing about the fields.
        let is_same = |column: &GroupColumn| before.is_present() && after.has_same_bytes(before, column);
        let fields = self.fields_of(|column| column.group == group && !is_same(column));
        if fields == 0 {
            return Ok(());
        }
        let mut row = self.any_row.get().ok_or("a part of a row is logged before any row")?.clone();
        // SAFETY: it is a row.
        unsafe { after.put::<R, GroupsOf<R>, _>(Whole, &raw mut row, Some(group)) };
        self.put_fields(entries, key, &row, fields)
    }

    /// Appends some fields of a row; the row, if rows are written whole.
    fn put_fields(&self, entries: &mut Vec<u8>, key: &K, row: &R, mut fields: u64) -> Result<(), String> {
        if !self.codec.by_fields {
            return self.put(entries, key, row);
        }
        if fields == 0 {
            return Ok(());
        }
        self.entry(entries, key, EntryKind::Fields, |to| {
            while fields != 0 {
                let field = fields.trailing_zeros();
                fields &= fields - 1;
                let start = to.written().len();
                to.bytes(&[0; FIELD_HEAD]);
                self.codec.write_field(row, field, to);
                self.entries.end_field(to.written(), start, field);
            }
        })
    }

    /// Appends a row's deletion.
    pub(crate) fn delete(&self, entries: &mut Vec<u8>, key: &K) -> Result<(), String> {
        self.entry(entries, key, EntryKind::Deletion, |_| ())
    }
}

/// The bytes that are compared at once: few comparisons find those of a large row that differ.
const COMPARED: usize = 32;

/// The field that each byte of a row belongs to.
fn fields_of_bytes<R: Value>() -> Vec<u8> {
    let mut fields = vec![0; size_of::<R>()];
    for (number, field) in R::FIELDS.iter().enumerate() {
        fields[field.offset..field.offset + field.bytes].fill(number as u8);
    }
    fields
}

/// The fields in which two rows differ, one bit each.
fn changed_fields<R: Value>(before: &R, after: &R, fields_of_bytes: &[u8]) -> u64 {
    // SAFETY: only inline values have fields, and they are plain data without padding.
    let bytes =
        |row: &R| unsafe { &*std::ptr::slice_from_raw_parts(std::ptr::from_ref(row).cast(), size_of::<R>()) };
    differing_fields(bytes(before), bytes(after), fields_of_bytes)
}

/// As [`changed_fields`], for the bytes of rows of any type.
#[inline(never)]
fn differing_fields(before: &[u8], after: &[u8], fields_of_bytes: &[u8]) -> u64 {
    let (pieces_before, rest_before) = before.as_chunks::<COMPARED>();
    let (pieces_after, rest_after) = after.as_chunks::<COMPARED>();
    let mut changed = 0;
    for (number, before) in pieces_before.iter().enumerate() {
        let after = &pieces_after[number];
        if before != after {
            changed |= fields_of_difference(before, after, &fields_of_bytes[number * COMPARED..]);
        }
    }
    let rest = before.len() - rest_before.len();
    changed | fields_of_difference(rest_before, rest_after, &fields_of_bytes[rest..])
}

/// The fields to which the bytes belong in which two pieces of rows differ, one bit each.
fn fields_of_difference(before: &[u8], after: &[u8], fields_of_bytes: &[u8]) -> u64 {
    let mut changed = 0;
    let (words_before, rest_before) = before.as_chunks();
    let (words_after, rest_after) = after.as_chunks();
    for (number, before) in words_before.iter().enumerate() {
        let mut differs = u64::from_le_bytes(*before) ^ u64::from_le_bytes(words_after[number]);
        while differs != 0 {
            let byte = differs.trailing_zeros() / u8::BITS;
            differs &= !(u64::from(u8::MAX) << (byte * u8::BITS));
            changed |= 1 << fields_of_bytes[number * size_of::<u64>() + byte as usize];
        }
    }
    let rest = before.len() - rest_before.len();
    for (number, before) in rest_before.iter().enumerate() {
        changed |= u64::from(*before != rest_after[number]) << fields_of_bytes[rest + number];
    }
    changed
}

/// The fields that have bytes in a range of the row, one bit each.
fn fields_in<R: Value>(first: usize, bytes: usize) -> u64 {
    let is_in = |offset: usize, size: usize| offset < first + bytes && first < offset + size;
    let fields = R::FIELDS.iter().enumerate();
    fields.fold(0, |all, (at, field)| all | u64::from(is_in(field.offset, field.bytes)) << at)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn fields_differ_that_have_a_byte_that_differs_wherever_it_is() {
        for bytes in [0, 1, 7, 8, 31, 32, 33, 64, 100] {
            let fields_of_bytes: Vec<u8> = (0..bytes).map(|at| (at / 3 % 64) as u8).collect();
            let before = vec![0x55; bytes];
            assert_eq!(differing_fields(&before, &before, &fields_of_bytes), 0);
            for first in 0..bytes {
                for second in (first..bytes).step_by(5) {
                    let mut after = before.clone();
                    (after[first], after[second]) = (0x54, 0xd5);
                    let expected = 1 << fields_of_bytes[first] | 1 << fields_of_bytes[second];
                    assert_eq!(differing_fields(&before, &after, &fields_of_bytes), expected);
                }
            }
        }
    }
}

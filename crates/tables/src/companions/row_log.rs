//! The way of a table's rows to the log.

use crate::codec::Codec;
use crate::database_log::{ENTRY_HEAD, Entries, EntryKind, FIELD_HEAD};
use crate::key::Key;
use crate::record::{GroupsOf, WordsOf};
use hotrow_core::column_groups::{ColumnGroups, Part};
use hotrow_core::{Value, ValueField, Whole};
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
    /// The fields of each piece of a row: see [`changed_fields`].
    fields_of_pieces: Vec<u64>,
}

impl<K: Key, R: Value> RowLog<K, R> {
    pub(crate) fn new(codec: Codec<K, R>, entries: Box<dyn Entries>) -> Self {
        let columns = GroupsOf::<R>::COLUMNS.iter();
        let fields_of_columns = columns.map(|column| fields_in::<R>(column.row, column.bytes)).collect();
        let fields_of_pieces = if codec.by_fields { fields_of_pieces::<R>() } else { Vec::new() };
        Self { codec, entries, any_row: OnceLock::new(), fields_of_columns, fields_of_pieces }
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

    /// The fields of some groups, each of which is one bit: one bit each.
    pub(crate) fn fields_of_groups(&self, groups: u32) -> u64 {
        let columns = GroupsOf::<R>::COLUMNS.iter().zip(&self.fields_of_columns);
        let columns = columns.filter(|(column, _)| groups >> column.group & 1 != 0);
        columns.fold(0, |fields, (_, of_column)| fields | of_column)
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
        let fields = changed_fields(before, after, &self.fields_of_pieces);
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
        let columns = GroupsOf::<R>::COLUMNS.iter().zip(&self.fields_of_columns);
        let fields = columns
            // A part of a row that was not there says nothing about the fields.
            .filter(|(column, _)| {
                column.group == group && !(before.is_present() && after.has_same_bytes(before, column))
            })
            .fold(0, |fields, (_, of_column)| fields | of_column);
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

/// The fields that have bytes among those that are compared at once, one bit each.
fn fields_of_pieces<R: Value>() -> Vec<u64> {
    (0..size_of::<R>()).step_by(COMPARED).map(|first| fields_in::<R>(first, COMPARED)).collect()
}

/// The fields in which two rows differ, one bit each. `fields_of_pieces`: see there.
fn changed_fields<R: Value>(before: &R, after: &R, fields_of_pieces: &[u64]) -> u64 {
    // SAFETY: only inline values have fields, and they are plain data without padding.
    let bytes =
        |row: &R| unsafe { &*std::ptr::slice_from_raw_parts(std::ptr::from_ref(row).cast(), size_of::<R>()) };
    differing_fields(bytes(before), bytes(after), R::FIELDS, fields_of_pieces)
}

/// As [`changed_fields`], for the bytes of rows of any type.
#[inline(never)]
fn differing_fields(before: &[u8], after: &[u8], fields: &[ValueField], fields_of_pieces: &[u64]) -> u64 {
    let (pieces_before, rest_before) = before.as_chunks::<COMPARED>();
    let (pieces_after, rest_after) = after.as_chunks::<COMPARED>();
    let mut candidates = 0;
    for (number, before) in pieces_before.iter().enumerate() {
        if *before != pieces_after[number] {
            candidates |= fields_of_pieces[number];
        }
    }
    if rest_before != rest_after {
        candidates |= fields_of_pieces[pieces_before.len()];
    }
    let mut changed = 0;
    while candidates != 0 {
        let at = candidates.trailing_zeros();
        candidates &= candidates - 1;
        let place = fields[at as usize].offset..fields[at as usize].offset + fields[at as usize].bytes;
        changed |= u64::from(before[place.clone()] != after[place]) << at;
    }
    changed
}

/// The fields that have bytes in a range of the row, one bit each.
fn fields_in<R: Value>(first: usize, bytes: usize) -> u64 {
    let is_in = |offset: usize, size: usize| offset < first + bytes && first < offset + size;
    let fields = R::FIELDS.iter().enumerate();
    fields.fold(0, |all, (at, field)| all | u64::from(is_in(field.offset, field.bytes)) << at)
}

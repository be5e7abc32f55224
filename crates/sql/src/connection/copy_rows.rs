//! The rows of `COPY`: records of data as values, and back.

use super::copy_options::{CopyOptions, Form, Header};
use super::{copy_binary, copy_text};
use crate::error::SqlError;
use crate::values::{Datum, Type, apply_modifier};
use std::ops::Range;

/// The longest part of a line that an error shows.
const SHOWN_MAX: usize = 100;

/// The result of looking for a record.
pub(super) enum Step {
    /// It has this many bytes.
    Record(usize),
    /// Not all of it has come.
    Incomplete,
    /// There are no more.
    End,
}

/// The fields of one record.
#[derive(Default)]
pub(super) struct Fields {
    bytes: Vec<u8>,
    /// The place of each; none for a null. It keeps its place, in case that it is none.
    places: Vec<(bool, bool, Range<usize>)>,
}

impl Fields {
    fn clear(&mut self) {
        self.bytes.clear();
        self.places.clear();
    }

    /// Adds a field that a function writes.
    pub(super) fn push_with(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.bytes.len();
        write(&mut self.bytes);
        self.places.push((false, false, start..self.bytes.len()));
    }

    /// Adds a null.
    pub(super) fn push_null(&mut self) {
        let end = self.bytes.len();
        self.places.push((true, false, end..end));
    }

    /// Makes the last field a null if it is written as one.
    pub(super) fn judge_null(&mut self, null: &str, was_quoted: bool) {
        if let Some((is_null, quoted, place)) = self.places.last_mut() {
            *quoted = was_quoted;
            *is_null = !was_quoted && self.bytes[place.clone()] == *null.as_bytes();
        }
    }

    fn len(&self) -> usize {
        self.places.len()
    }

    /// The bytes of a field; none for a null.
    fn get(&self, at: usize) -> Option<&[u8]> {
        let (is_null, _, place) = &self.places[at];
        (!is_null).then(|| &self.bytes[place.clone()])
    }
}

/// A column of the data.
#[derive(Debug, Clone)]
pub(super) struct CopyColumn {
    pub(super) name: String,
    pub(super) ty: Type,
    pub(super) modifier: i32,
}

/// The subject of a copy.
#[derive(Debug, Clone)]
pub(super) struct CopyShape {
    /// The table's name, for errors.
    pub(super) table: String,
    pub(super) columns: Vec<CopyColumn>,
    pub(super) options: CopyOptions,
}

/// The place in the data up to which records were read.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Progress {
    /// Bytes of the data at hand.
    pub(super) at: usize,
    /// Lines or records before.
    line: u64,
    has_begun: bool,
    is_over: bool,
}

/// The rows in data, as far as these have come.
pub(super) struct RowReader<'a> {
    shape: &'a CopyShape,
    data: &'a [u8],
    /// True if no more data come.
    is_end: bool,
    pub(super) progress: Progress,
    fields: Fields,
    has_failed: bool,
}

impl<'a> RowReader<'a> {
    pub(super) fn new(shape: &'a CopyShape, data: &'a [u8], is_end: bool, progress: Progress) -> Self {
        Self { shape, data, is_end, progress, fields: Fields::default(), has_failed: false }
    }

    /// Reads a row, if all of one has come.
    fn read(&mut self) -> Result<Option<Vec<Datum>>, SqlError> {
        if !self.progress.has_begun && !self.begin()? {
            return Ok(None);
        }
        if self.progress.is_over {
            return Ok(None);
        }
        let columns = self.shape.columns.len();
        match self.step()? {
            Step::Incomplete => Ok(None),
            Step::End => {
                self.progress.is_over = true;
                self.progress.at = self.data.len();
                Ok(None)
            }
            Step::Record(length) => {
                self.progress.line += 1;
                let record = &self.data[self.progress.at..self.progress.at + length];
                self.progress.at += length;
                if self.shape.options.form != Form::Binary {
                    self.check_count(record, columns)?;
                }
                (0..columns).map(|at| self.value(at)).collect::<Result<_, _>>().map(Some)
            }
        }
    }

    fn step(&mut self) -> Result<Step, SqlError> {
        self.fields.clear();
        let data = &self.data[self.progress.at..];
        let step = match self.shape.options.form {
            Form::Binary => copy_binary::next(data, self.is_end, self.shape.columns.len(), &mut self.fields),
            _ => copy_text::next(data, self.is_end, &self.shape.options, &mut self.fields),
        };
        step.map_err(|error| self.at_line(self.progress.line + 1, error, None))
    }

    /// Passes what comes before the first row. False if not all of it has come.
    fn begin(&mut self) -> Result<bool, SqlError> {
        let header = self.shape.options.header;
        if self.shape.options.form == Form::Binary {
            match copy_binary::read_header(self.data, self.is_end)? {
                Step::Record(length) => self.progress.at += length,
                _ => return Ok(false),
            }
        } else if header != Header::Absent {
            match self.step()? {
                Step::Record(length) => {
                    self.progress.at += length;
                    self.progress.line += 1;
                    if header == Header::Matching {
                        self.check_header()?;
                    }
                }
                Step::End => self.progress.is_over = true,
                Step::Incomplete => return Ok(false),
            }
        }
        self.progress.has_begun = true;
        Ok(true)
    }

    fn check_header(&self) -> Result<(), SqlError> {
        let (has, wants) = (self.fields.len(), self.shape.columns.len());
        let wrong = |message: String| Err(self.at_line(1, SqlError::new("22P04", message), None));
        if has != wants {
            return wrong(format!("wrong number of fields in header line: got {has}, expected {wants}"));
        }
        for (at, column) in self.shape.columns.iter().enumerate() {
            let name = self.fields.get(at).map(String::from_utf8_lossy).unwrap_or_default();
            if name != column.name.as_str() {
                let place = at + 1;
                return wrong(format!(
                    "column name mismatch in header line field {place}: got \"{name}\", expected \"{}\"",
                    column.name
                ));
            }
        }
        Ok(())
    }

    fn check_count(&self, record: &[u8], columns: usize) -> Result<(), SqlError> {
        let count = self.fields.len();
        // A line without anything is a row of no columns, too.
        let is_nothing = columns == 0 && count == 1 && self.fields.get(0).is_none_or(<[u8]>::is_empty);
        let message = if count > columns && !is_nothing {
            "extra data after last expected column".to_owned()
        } else if count < columns {
            format!("missing data for column \"{}\"", self.shape.columns[count].name)
        } else {
            return Ok(());
        };
        let line = String::from_utf8_lossy(record);
        let shown = shorten(line.trim_end_matches(['\r', '\n']));
        Err(self.at_line(self.progress.line, SqlError::new("22P04", message), Some(&shown)))
    }

    fn value(&self, at: usize) -> Result<Datum, SqlError> {
        let column = &self.shape.columns[at];
        let options = &self.shape.options;
        let (is_null, was_quoted, place) = &self.fields.places[at];
        let mut bytes = (!is_null).then(|| &self.fields.bytes[place.clone()]);
        if *is_null && options.form == Form::Csv && options.force_not_null.has(&column.name) {
            bytes = Some(options.null.as_bytes());
        } else if *was_quoted
            && options.force_null.has(&column.name)
            && bytes == Some(options.null.as_bytes())
        {
            bytes = None;
        }
        let Some(bytes) = bytes else { return Ok(Datum::Null) };
        let read = if options.form == Form::Binary {
            Datum::from_binary(bytes, column.ty)
        } else {
            text_of(bytes).and_then(|text| Datum::parse(text, column.ty))
        };
        let read = read.and_then(|value| apply_modifier(value, column.ty, column.modifier));
        read.map_err(|error| {
            let shown = (options.form != Form::Binary).then(|| shorten(&String::from_utf8_lossy(bytes)));
            let place = match shown {
                Some(shown) => format!(", column {}: \"{shown}\"", column.name),
                None => format!(", column {}", column.name),
            };
            self.with_place(error, &format!("line {}{place}", self.progress.line))
        })
    }

    /// An error with the line that it is about.
    fn at_line(&self, line: u64, error: SqlError, text: Option<&str>) -> SqlError {
        let text = text.map(|text| format!(": \"{text}\"")).unwrap_or_default();
        self.with_place(error, &format!("line {line}{text}"))
    }

    fn with_place(&self, mut error: SqlError, place: &str) -> SqlError {
        let place = format!("COPY {}, {place}", self.shape.table);
        error.detail = Some(match error.detail.take() {
            Some(detail) => format!("{detail}\n{place}"),
            None => place,
        });
        error
    }
}

/// Each row as far as data have come; an error is the last.
impl Iterator for RowReader<'_> {
    type Item = Result<Vec<Datum>, SqlError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.has_failed {
            return None;
        }
        let row = self.read();
        self.has_failed = row.is_err();
        row.transpose()
    }
}

fn shorten(text: &str) -> String {
    match text.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

fn text_of(bytes: &[u8]) -> Result<&str, SqlError> {
    let wrong = |at: usize| {
        let shown: Vec<_> = bytes[at..].iter().take(4).map(|byte| format!("0x{byte:02x}")).collect();
        let message = format!("invalid byte sequence for encoding \"UTF8\": {}", shown.join(" "));
        SqlError::new("22021", message)
    };
    match std::str::from_utf8(bytes) {
        Ok(text) => match text.bytes().position(|byte| byte == 0) {
            Some(at) => Err(wrong(at)),
            None => Ok(text),
        },
        Err(error) => Err(wrong(error.valid_up_to())),
    }
}

/// Writes rows as data, a chunk for each, with what comes before and behind.
pub(super) fn write_rows(shape: &CopyShape, rows: Vec<Box<[Datum]>>) -> Vec<Vec<u8>> {
    let options = &shape.options;
    let mut chunks = Vec::with_capacity(rows.len());
    if options.form == Form::Binary {
        chunks.push(copy_binary::header());
    } else if options.header != Header::Absent {
        let names = shape.columns.iter().map(|column| (Some(column.name.as_bytes().to_vec()), false));
        chunks.push(line_of(names.collect(), options));
    }
    for row in rows {
        let values = row.iter().zip(&shape.columns).map(|(value, column)| {
            let mut text = Vec::new();
            match (value, options.form) {
                (Datum::Null, _) => return (None, false),
                (value, Form::Binary) => value.write_binary(column.ty, &mut text),
                (value, _) => value.write_text(column.ty, &mut text),
            }
            (Some(text), options.force_quote.has(&column.name))
        });
        chunks.push(line_of(values.collect(), options));
    }
    if options.form == Form::Binary {
        chunks.push(copy_binary::trailer());
        // The header comes with what follows, as PostgreSQL sends it: drivers read a row of each chunk.
        let second = chunks.remove(1);
        chunks[0].extend(second);
    }
    chunks
}

fn line_of(values: Vec<(Option<Vec<u8>>, bool)>, options: &CopyOptions) -> Vec<u8> {
    let mut line = Vec::new();
    let count = values.len();
    if options.form == Form::Binary {
        line.extend_from_slice(&i16::try_from(count).unwrap_or(i16::MAX).to_be_bytes());
    }
    for (at, (value, is_forced)) in values.into_iter().enumerate() {
        if options.form == Form::Binary {
            let length = value.as_ref().map_or(-1, |value| i32::try_from(value.len()).unwrap_or(i32::MAX));
            line.extend_from_slice(&length.to_be_bytes());
            line.extend_from_slice(value.as_deref().unwrap_or_default());
            continue;
        }
        if at > 0 {
            line.push(options.delimiter);
        }
        match options.form {
            Form::Csv => copy_text::write_csv(value.as_deref(), is_forced, count == 1, options, &mut line),
            _ => copy_text::write_text(value.as_deref(), options, &mut line),
        }
    }
    if options.form != Form::Binary {
        line.push(b'\n');
    }
    line
}

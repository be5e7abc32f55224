//! Entries: the changes that a commit made, as bytes.
//!
//! docs/log-format.md describes the bytes.

use std::fmt;

/// The part of a row that an entry is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// The row itself: its insertion, or all of it overwritten. Without a value, its deletion.
    Whole,
    /// The value of one part of the row (the main columns, a column group). It replaces that part.
    Group(u32),
}

const KIND: u8 = 0b11;
const WHOLE: u8 = 0;
const DELETION: u8 = 1;
const GROUP: u8 = 2;
/// The key's length has four bytes instead of one.
const WIDE_KEY: u8 = 0b100;
/// The value's length has four bytes instead of two.
const WIDE_VALUE: u8 = 0b1000;

/// Appends to `out` the entry of a part of a row. `key` and `value` append their bytes, and do nothing else to it.
///
/// No length is checked here: a transaction whose entries exceed [`RECORD_BYTES_MAX`](crate::RECORD_BYTES_MAX) must not
/// commit.
///
/// # Errors
///
/// Those of `key` and `value`; `out` is then as it was.
#[inline]
pub fn write<E>(
    out: &mut Vec<u8>,
    structure: u32,
    part: Part,
    key: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    value: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
) -> Result<(), E> {
    let start = out.len();
    let written = match part {
        Part::Whole => begin(out, WHOLE, structure, None, key),
        Part::Group(group) => begin(out, GROUP, structure, Some(group), key),
    };
    let written = written.and_then(|()| {
        let at = out.len();
        out.extend_from_slice(&[0; 2]);
        value(out)?;
        if patch_length::<2>(out, at) {
            out[start] |= WIDE_VALUE;
        }
        Ok(())
    });
    if written.is_err() {
        out.truncate(start);
    }
    written
}

/// Appends to `out` the deletion of a row. `key` appends the key's bytes.
///
/// # Errors
///
/// Those of `key`; `out` is then as it was.
pub fn delete<E>(
    out: &mut Vec<u8>,
    structure: u32,
    key: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
) -> Result<(), E> {
    let start = out.len();
    let written = begin(out, DELETION, structure, None, key);
    if written.is_err() {
        out.truncate(start);
    }
    written
}

#[inline]
fn begin<E>(
    out: &mut Vec<u8>,
    kind: u8,
    structure: u32,
    group: Option<u32>,
    key: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
) -> Result<(), E> {
    let start = out.len();
    out.push(kind);
    push_number(out, structure);
    if let Some(group) = group {
        push_number(out, group);
    }
    let at = out.len();
    out.push(0);
    key(out)?;
    if patch_length::<1>(out, at) {
        out[start] |= WIDE_KEY;
    }
    Ok(())
}

/// Writes the number of bytes behind the `N` bytes at `at` into them. Makes four bytes of them and returns true if
/// they have no room for it.
#[inline]
fn patch_length<const N: usize>(out: &mut Vec<u8>, at: usize) -> bool {
    let length = out.len() - at - N;
    if length < 1 << (8 * N) {
        out[at..at + N].copy_from_slice(&(length as u32).to_le_bytes()[..N]);
        return false;
    }
    // More than four bytes can tell is more than a record may have, and is refused as a whole.
    let wide = u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes();
    out.splice(at..at + N, wide);
    true
}

/// Seven bits a byte, the lowest first; the highest bit says that more follow.
#[inline]
fn push_number(out: &mut Vec<u8>, mut number: u32) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// The change that an entry makes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change<'a> {
    /// A part has this value.
    Put(Part, &'a [u8]),
    /// The row is deleted.
    Delete,
}

/// An entry, decoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry<'a> {
    /// The number of the structure (a table).
    pub structure: u32,
    /// The row's key.
    pub key: &'a [u8],
    /// The change of the row.
    pub change: Change<'a>,
}

/// Bytes that are not entries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Malformed {
    /// Offset of the faulty entry in the bytes.
    pub offset: usize,
    /// Fault of the entry.
    pub reason: &'static str,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the entry at byte {} of the record {}", self.offset, self.reason)
    }
}

impl std::error::Error for Malformed {}

/// Decodes entries one after the other. Ends after the first fault.
pub fn read(entries: &[u8]) -> Entries<'_> {
    Entries { bytes: entries, at: 0 }
}

/// Iterator over the entries of a record, made by [`read`].
#[derive(Clone, Debug)]
pub struct Entries<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Entries<'_> {
    /// Offset of the next entry.
    pub fn offset(&self) -> usize {
        self.at
    }
}

impl<'a> Iterator for Entries<'a> {
    type Item = Result<Entry<'a>, Malformed>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.bytes.get(self.at..).filter(|rest| !rest.is_empty())?;
        let mut cursor = Cursor { bytes: rest };
        Some(match cursor.entry() {
            Ok(entry) => {
                self.at = self.bytes.len() - cursor.bytes.len();
                Ok(entry)
            }
            Err(reason) => {
                let offset = self.at;
                self.at = self.bytes.len();
                Err(Malformed { offset, reason })
            }
        })
    }
}

/// The bytes that are left.
struct Cursor<'a> {
    bytes: &'a [u8],
}

impl<'a> Cursor<'a> {
    #[inline]
    fn take(&mut self, length: usize) -> Result<&'a [u8], &'static str> {
        let (taken, rest) = self.bytes.split_at_checked(length).ok_or("is cut off")?;
        self.bytes = rest;
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8, &'static str> {
        Ok(self.take(1)?[0])
    }

    fn number(&mut self) -> Result<u32, &'static str> {
        let mut number = 0;
        for shift in [0, 7, 14, 21, 28] {
            let byte = self.byte()?;
            let bits = u32::from(byte & 0x7f);
            if shift == 28 && byte > 0x0f {
                break;
            }
            number |= bits << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err("has a number of more than 32 bits")
    }

    fn counted(&mut self, narrow: usize, wide: bool) -> Result<&'a [u8], &'static str> {
        let bytes = self.take(if wide { 4 } else { narrow })?;
        let mut length = [0; 4];
        length[..bytes.len()].copy_from_slice(bytes);
        self.take(u32::from_le_bytes(length) as usize)
    }

    #[inline]
    fn entry(&mut self) -> Result<Entry<'a>, &'static str> {
        let flags = self.byte()?;
        let kind = flags & KIND;
        let known = KIND | WIDE_KEY | if kind == DELETION { 0 } else { WIDE_VALUE };
        if kind > GROUP || flags & !known != 0 {
            return Err("is of an unknown kind");
        }
        let structure = self.number()?;
        let part = if kind == GROUP { Part::Group(self.number()?) } else { Part::Whole };
        let key = self.counted(1, flags & WIDE_KEY != 0)?;
        let change = match kind {
            DELETION => Change::Delete,
            _ => Change::Put(part, self.counted(2, flags & WIDE_VALUE != 0)?),
        };
        Ok(Entry { structure, key, change })
    }
}

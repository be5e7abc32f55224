//! Entries: the changes that a commit made, as bytes.
//!
//! docs/log-format.md describes the bytes.

use std::fmt;

/// Bytes before an entry's key: [`seal`] writes them.
pub const HEAD: usize = 3;
/// Bytes before a part's value: [`seal_part`] writes them.
pub const PART_HEAD: usize = 1;

/// The kind of change that an entry makes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// The whole row has this value: it was inserted, or all of it was overwritten.
    Whole = 0,
    /// The row is deleted. There is no value.
    Deletion = 1,
    /// Some parts of the row (columns, or groups of columns) have new values: the value is made of parts, at least one.
    Parts = 2,
}

/// Bits of the first byte that say the kind. The others say the structure.
const KIND_BITS: u32 = 2;
/// In the first byte: the structure is a number behind the head.
const FAR_STRUCTURE: u32 = 63;
/// Bits of a part's first byte that say the length of its value. The others say the part.
const LENGTH_BITS: u32 = 3;
/// In a part's first byte: the length is behind it.
const LONG_PART: usize = 7;
/// In a part's first byte: the part is a number behind it.
const FAR_PART: u32 = 31;
/// A length of one byte that has four bytes elsewhere.
const LONG: usize = 255;

/// Completes an entry, which begins at `start` with [`HEAD`] bytes for the head; its key follows, and at `value` its value.
///
/// No length is checked here: a transaction whose entries exceed [`RECORD_BYTES_MAX`](crate::RECORD_BYTES_MAX) must not
/// commit.
#[inline]
pub fn seal(out: &mut Vec<u8>, start: usize, value: usize, structure: u32, kind: Kind) {
    let (key, value) = (value - start - HEAD, out.len() - value);
    let near = structure.min(FAR_STRUCTURE);
    let head = &mut out[start..start + HEAD];
    head[0] = (near << KIND_BITS) as u8 | kind as u8;
    head[1] = key.min(LONG) as u8;
    head[2] = value.min(LONG) as u8;
    if near == FAR_STRUCTURE || key >= LONG || value >= LONG {
        insert_rest(out, start + HEAD, (near == FAR_STRUCTURE).then_some(structure), &[key, value]);
    }
}

/// Completes a part of an entry of parts, which begins at `start` with [`PART_HEAD`] bytes for the head; its value follows.
#[inline]
pub fn seal_part(out: &mut Vec<u8>, start: usize, part: u32) {
    let length = out.len() - start - PART_HEAD;
    let near = part.min(FAR_PART);
    out[start] = (near << LENGTH_BITS) as u8 | length.min(LONG_PART) as u8;
    if near == FAR_PART {
        insert_rest(out, start + PART_HEAD, Some(part), &[]);
    }
    if length >= LONG_PART {
        let at = out.len() - length;
        out.insert(at, length.min(LONG) as u8);
        insert_rest(out, at + 1, None, &[length]);
    }
}

/// Inserts the number that a head has no room for, and the four bytes of each length that one byte has no room for.
#[cold]
fn insert_rest(out: &mut Vec<u8>, at: usize, number: Option<u32>, lengths: &[usize]) {
    let mut rest = Vec::new();
    if let Some(number) = number {
        push_number(&mut rest, number.into());
    }
    for &length in lengths.iter().filter(|length| **length >= LONG) {
        // More than four bytes can tell is more than a record may have, and is refused as a whole.
        rest.extend(u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes());
    }
    out.splice(at..at, rest);
}

/// Appends to `out` the entry of a whole row. `key` and `value` append their bytes, and do nothing else to it.
///
/// # Errors
///
/// Those of `key` and `value`; `out` is then as it was.
#[inline]
pub fn put<E>(
    out: &mut Vec<u8>,
    structure: u32,
    key: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    value: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
) -> Result<(), E> {
    write(out, Kind::Whole, structure, key, value)
}

/// Appends to `out` the entry of some parts of a row. The value of each takes the place of the one before.
/// `key` appends the key's bytes, and `parts` gives the parts, at least one.
///
/// # Errors
///
/// Those of `key` and `parts`; `out` is then as it was.
#[inline]
pub fn put_parts<E>(
    out: &mut Vec<u8>,
    structure: u32,
    key: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    parts: impl FnOnce(&mut PartsWriter<'_>) -> Result<(), E>,
) -> Result<(), E> {
    write(out, Kind::Parts, structure, key, |out| parts(&mut PartsWriter(out)))
}

/// Takes the parts of [`put_parts`].
#[derive(Debug)]
pub struct PartsWriter<'o>(&'o mut Vec<u8>);

impl PartsWriter<'_> {
    /// Adds a part. `value` appends its bytes.
    ///
    /// # Errors
    ///
    /// Those of `value`.
    #[inline]
    pub fn put<E>(&mut self, part: u32, value: impl FnOnce(&mut Vec<u8>) -> Result<(), E>) -> Result<(), E> {
        let start = self.0.len();
        self.0.extend_from_slice(&[0; PART_HEAD]);
        value(self.0)?;
        seal_part(self.0, start, part);
        Ok(())
    }
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
    write(out, Kind::Deletion, structure, key, |_| Ok(()))
}

#[inline]
fn write<E>(
    out: &mut Vec<u8>,
    kind: Kind,
    structure: u32,
    key: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    value: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
) -> Result<(), E> {
    let start = out.len();
    out.extend_from_slice(&[0; HEAD]);
    let written = key(out).and_then(|()| {
        let at = out.len();
        value(out).map(|()| at)
    });
    match written {
        Ok(at) => seal(out, start, at, structure, kind),
        Err(_) => out.truncate(start),
    }
    written.map(drop)
}

/// Appends a number: seven bits a byte, the lowest first; the highest bit says that more follow.
#[inline]
pub(crate) fn push_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Takes a number from the front of `rest`. `None` if it is cut off, or has more than 64 bits.
#[inline]
pub(crate) fn take_number(rest: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (byte, behind) = rest.split_first()?;
        let bits = u64::from(byte & 0x7f);
        if bits << shift >> shift != bits {
            return None;
        }
        number |= bits << shift;
        *rest = behind;
        if *byte < 0x80 {
            return Some(number);
        }
    }
    None
}

/// The change that an entry makes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change<'a> {
    /// The whole row has this value.
    Put(&'a [u8]),
    /// Some parts of the row have new values.
    PutParts(Parts<'a>),
    /// The row is deleted.
    Delete,
}

/// Parts of a row, and their values: at least one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parts<'a>(&'a [u8]);

impl<'a> Iterator for Parts<'a> {
    type Item = (u32, &'a [u8]);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        // The entry was checked when it was read, so only the end ends it.
        self.take_part().ok()
    }
}

impl<'a> Parts<'a> {
    #[inline]
    fn take_part(&mut self) -> Result<(u32, &'a [u8]), &'static str> {
        let mut cursor = Cursor { bytes: self.0 };
        let head = cursor.byte()?;
        let part = cursor.near_or_number(u32::from(head >> LENGTH_BITS), FAR_PART)?;
        let mut length = usize::from(head) & LONG_PART;
        if length == LONG_PART {
            let byte = cursor.byte()?;
            length = cursor.length(byte)?;
        }
        let value = cursor.take(length)?;
        self.0 = cursor.bytes;
        Ok((part, value))
    }

    /// The parts in these bytes.
    #[cfg(test)]
    pub(crate) fn of(bytes: &'a [u8]) -> Self {
        Self::checked(bytes).expect("whole parts")
    }

    /// The parts in these bytes, if they are some.
    #[inline]
    fn checked(bytes: &'a [u8]) -> Result<Self, &'static str> {
        let mut rest = Self(bytes);
        loop {
            rest.take_part()?;
            if rest.0.is_empty() {
                return Ok(Self(bytes));
            }
        }
    }
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

    #[inline]
    fn byte(&mut self) -> Result<u8, &'static str> {
        Ok(self.take(1)?[0])
    }

    /// A number that a head has, unless that says that it is behind.
    #[inline]
    fn near_or_number(&mut self, near: u32, far: u32) -> Result<u32, &'static str> {
        if near < far {
            return Ok(near);
        }
        let number = take_number(&mut self.bytes).and_then(|number| u32::try_from(number).ok());
        number.ok_or("has a number that is cut off, or too large")
    }

    /// A length that has one byte, or four bytes behind it.
    #[inline]
    fn length(&mut self, byte: u8) -> Result<usize, &'static str> {
        if usize::from(byte) < LONG {
            return Ok(usize::from(byte));
        }
        let mut four = [0; 4];
        four.copy_from_slice(self.take(4)?);
        Ok(u32::from_le_bytes(four) as usize)
    }

    #[inline]
    fn entry(&mut self) -> Result<Entry<'a>, &'static str> {
        let (first, key, value) = (self.byte()?, self.byte()?, self.byte()?);
        let structure = self.near_or_number(u32::from(first >> KIND_BITS), FAR_STRUCTURE)?;
        let (key, value) = (self.length(key)?, self.length(value)?);
        let (key, value) = (self.take(key)?, self.take(value)?);
        let change = match first & ((1 << KIND_BITS) - 1) {
            0 => Change::Put(value),
            1 if value.is_empty() => Change::Delete,
            2 => Change::PutParts(Parts::checked(value)?),
            _ => return Err("is of an unknown kind"),
        };
        Ok(Entry { structure, key, change })
    }
}

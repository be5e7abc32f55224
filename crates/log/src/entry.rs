//! Entries: the changes that a commit made, as bytes.
//!
//! docs/log-format.md describes the bytes.

use std::fmt;

const KIND: u8 = 0b11;
const WHOLE: u8 = 0;
const DELETION: u8 = 1;
const PARTS: u8 = 2;
/// The key's length has four bytes instead of one.
const WIDE_KEY: u8 = 0b100;
/// The value's length has four bytes instead of two.
const WIDE_VALUE: u8 = 0b1000;

/// Appends to `out` the entry of a whole row: its insertion, or all of it overwritten. `key` and `value` append their bytes, and do
/// nothing else to it.
///
/// No length is checked here: a transaction whose entries exceed [`RECORD_BYTES_MAX`](crate::RECORD_BYTES_MAX) must not
/// commit.
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
    write(out, WHOLE, structure, key, value)
}

/// Appends to `out` the entry of some parts of a row (columns, or groups of columns). The value of each takes the place of the one before.
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
    write(out, PARTS, structure, key, |out| parts(&mut PartsWriter(out)))
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
        push_number(self.0, part);
        push_counted(self.0, value)
    }
}

#[inline]
fn write<E>(
    out: &mut Vec<u8>,
    kind: u8,
    structure: u32,
    key: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    value: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
) -> Result<(), E> {
    let start = out.len();
    let written = begin(out, kind, structure, key).and_then(|()| {
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
    let written = begin(out, DELETION, structure, key);
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
    key: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
) -> Result<(), E> {
    let start = out.len();
    out.push(kind);
    push_number(out, structure);
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

/// The first byte of a length that has four bytes behind it.
const LONG: u8 = 255;

/// Appends bytes behind their number, which has one byte, or 255 and four bytes. `write` appends the bytes.
///
/// # Errors
///
/// Those of `write`.
#[inline]
pub fn push_counted<E>(
    out: &mut Vec<u8>,
    write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
) -> Result<(), E> {
    let at = out.len();
    out.push(0);
    write(out)?;
    let length = out.len() - at - 1;
    if length < usize::from(LONG) {
        out[at] = length as u8;
    } else {
        out[at] = LONG;
        // More than four bytes can tell is more than a record may have, and is refused as a whole.
        out.splice(at + 1..at + 1, u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes());
    }
    Ok(())
}

/// Takes the bytes that [`push_counted`] has appended from the front of `rest`. `None` if they are cut off.
#[inline]
pub fn take_counted<'b>(rest: &mut &'b [u8]) -> Option<&'b [u8]> {
    let (first, mut more) = rest.split_first()?;
    let mut length = usize::from(*first);
    if *first == LONG {
        let (four, behind) = more.split_first_chunk()?;
        (length, more) = (u32::from_le_bytes(*four) as usize, behind);
    }
    let (bytes, behind) = more.split_at_checked(length)?;
    *rest = behind;
    Some(bytes)
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
        let part = cursor.number()?;
        let value = take_counted(&mut cursor.bytes).ok_or("is cut off")?;
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

    #[inline]
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

    /// Takes bytes behind their number, which has `N` bytes, or four if it is wide.
    #[inline]
    fn counted<const N: usize>(&mut self, wide: bool) -> Result<&'a [u8], &'static str> {
        let mut length = [0; 4];
        if wide {
            length.copy_from_slice(self.take(4)?);
        } else {
            length[..N].copy_from_slice(self.take(N)?);
        }
        self.take(u32::from_le_bytes(length) as usize)
    }

    #[inline]
    fn entry(&mut self) -> Result<Entry<'a>, &'static str> {
        let flags = self.byte()?;
        let kind = flags & KIND;
        let known = KIND | WIDE_KEY | if kind == DELETION { 0 } else { WIDE_VALUE };
        if kind > PARTS || flags & !known != 0 {
            return Err("is of an unknown kind");
        }
        let structure = self.number()?;
        let key = self.counted::<1>(flags & WIDE_KEY != 0)?;
        let mut value = || self.counted::<2>(flags & WIDE_VALUE != 0);
        let change = match kind {
            WHOLE => Change::Put(value()?),
            PARTS => Change::PutParts(Parts::checked(value()?)?),
            _ => Change::Delete,
        };
        Ok(Entry { structure, key, change })
    }
}

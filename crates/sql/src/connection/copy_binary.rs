//! `COPY`'s binary form.

use super::copy_rows::{Fields, Step};
use crate::error::SqlError;

const SIGNATURE: &[u8] = b"PGCOPY\n\xff\r\n\0";

fn bad(message: &'static str) -> SqlError {
    SqlError::new("22P04", message)
}

/// The beginning of data that are written.
pub(super) fn header() -> Vec<u8> {
    let mut header = SIGNATURE.to_vec();
    header.extend_from_slice(&[0; 8]);
    header
}

/// The end of data that are written.
pub(super) fn trailer() -> Vec<u8> {
    (-1_i16).to_be_bytes().to_vec()
}

/// The number at a place, if it has come.
fn number(data: &[u8], at: usize) -> Option<i32> {
    Some(i32::from_be_bytes(data.get(at..at + 4)?.try_into().ok()?))
}

/// Reads the beginning.
pub(super) fn read_header(data: &[u8], is_end: bool) -> Result<Step, SqlError> {
    let start = SIGNATURE.len();
    let seen = data.len().min(start);
    if data[..seen] != SIGNATURE[..seen] || (is_end && seen < start) {
        return Err(bad("COPY file signature not recognized"));
    }
    let missing = |what: &'static str| if is_end { Err(bad(what)) } else { Ok(Step::Incomplete) };
    let Some(flags) = number(data, start) else { return missing("invalid COPY file header (missing flags)") };
    if flags & (1 << 16) != 0 {
        return Err(bad("invalid COPY file header (WITH OIDS)"));
    }
    if (flags >> 17) != 0 {
        return Err(bad("unrecognized critical flags in COPY file header"));
    }
    let Some(length) = number(data, start + 4) else {
        return missing("invalid COPY file header (missing length)");
    };
    let Ok(length) = usize::try_from(length) else {
        return Err(bad("invalid COPY file header (missing length)"));
    };
    match data.len().checked_sub(start + 8) {
        Some(extension) if extension >= length => Ok(Step::Record(start + 8 + length)),
        _ => missing("invalid COPY file header (wrong length)"),
    }
}

/// Reads the next record.
pub(super) fn next(data: &[u8], is_end: bool, columns: usize, fields: &mut Fields) -> Result<Step, SqlError> {
    let incomplete = || if is_end { Err(bad("unexpected EOF in COPY data")) } else { Ok(Step::Incomplete) };
    let Some(count) = data.get(..2) else {
        // An end without the trailer is an end.
        return if is_end && data.is_empty() { Ok(Step::End) } else { incomplete() };
    };
    let count = i16::from_be_bytes([count[0], count[1]]);
    if count == -1 {
        return Ok(Step::End);
    }
    if usize::try_from(count) != Ok(columns) {
        return Err(SqlError::new("22P04", format!("row field count is {count}, expected {columns}")));
    }
    let mut at = 2;
    for _ in 0..columns {
        let Some(length) = number(data, at) else { return incomplete() };
        at += 4;
        match usize::try_from(length) {
            Ok(length) => {
                let Some(value) = data.get(at..at.saturating_add(length)) else { return incomplete() };
                fields.push_with(|out| out.extend_from_slice(value));
                at += length;
            }
            Err(_) if length == -1 => fields.push_null(),
            Err(_) => return Err(bad("invalid field size")),
        }
    }
    Ok(Step::Record(at))
}

//! `COPY`'s forms that are lines: text and CSV.

use super::copy_options::{CopyOptions, Form};
use super::copy_rows::{Fields, Step};
use crate::error::SqlError;

fn bad(message: &'static str) -> SqlError {
    SqlError::new("22P04", message)
}

/// The end of the line that begins the data, and the number of bytes with its end. `None` if it is not there yet. `is_inside` says that
/// a line's end behind the bytes so far is part of a value.
fn line(
    data: &[u8],
    is_end: bool,
    mut is_inside: impl FnMut(&[u8], usize) -> bool,
) -> Option<(usize, usize)> {
    let mut from = 0;
    loop {
        let Some(at) = data[from..].iter().position(|byte| *byte == b'\n').map(|at| from + at) else {
            return (is_end && !data.is_empty())
                .then(|| (data.len() - usize::from(data.ends_with(b"\r")), data.len()));
        };
        if is_inside(data, at) {
            from = at + 1;
            continue;
        }
        let has_return = at > 0 && data[at - 1] == b'\r';
        return Some((at - usize::from(has_return), at + 1));
    }
}

/// Reads the next record of either form.
pub(super) fn next(
    data: &[u8],
    is_end: bool,
    options: &CopyOptions,
    fields: &mut Fields,
) -> Result<Step, SqlError> {
    if options.form == Form::Csv {
        next_csv(data, is_end, options, fields)
    } else {
        next_text(data, is_end, options, fields)
    }
}

fn next_text(
    data: &[u8],
    is_end: bool,
    options: &CopyOptions,
    fields: &mut Fields,
) -> Result<Step, SqlError> {
    // A line's end is part of a value behind an odd number of backslashes.
    let is_inside =
        |data: &[u8], at: usize| data[..at].iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 1;
    let Some((end, length)) = line(data, is_end, is_inside) else { return Ok(Step::Incomplete) };
    let line = &data[..end];
    if line == b"\\." {
        return Ok(Step::End);
    }
    let mut rest = line;
    loop {
        let mut at = 0;
        let mut has_escapes = false;
        while at < rest.len() && rest[at] != options.delimiter {
            match rest[at] {
                b'\\' => {
                    has_escapes = true;
                    at += 1;
                }
                b'\r' => {
                    return Err(bad("literal carriage return found in data")
                        .hint("Use \"\\r\" to represent carriage return."));
                }
                _ => {}
            }
            at += 1;
        }
        let at = at.min(rest.len());
        let field = &rest[..at];
        if field == options.null.as_bytes() {
            fields.push_null();
        } else if has_escapes {
            fields.push_with(|out| unescape(field, out));
        } else {
            fields.push_with(|out| out.extend_from_slice(field));
        }
        if at >= rest.len() {
            return Ok(Step::Record(length));
        }
        rest = &rest[at + 1..];
    }
}

fn unescape(field: &[u8], out: &mut Vec<u8>) {
    let mut at = 0;
    while at < field.len() {
        let byte = field[at];
        at += 1;
        if byte != b'\\' || at == field.len() {
            out.push(byte);
            continue;
        }
        let escaped = field[at];
        at += 1;
        let digits = |from: usize, max: usize, radix: u32| {
            let digits = field[from..].iter().take(max).map_while(|byte| char::from(*byte).to_digit(radix));
            digits.fold((0_u32, 0), |(value, count), digit| (value * radix + digit, count + 1))
        };
        match escaped {
            b'b' => out.push(8),
            b'f' => out.push(12),
            b'n' => out.push(b'\n'),
            b'r' => out.push(b'\r'),
            b't' => out.push(b'\t'),
            b'v' => out.push(11),
            b'0'..=b'7' => {
                let (value, count) = digits(at - 1, 3, 8);
                out.push(value as u8);
                at += count - 1;
            }
            b'x' => match digits(at, 2, 16) {
                (_, 0) => out.push(b'x'),
                (value, count) => {
                    out.push(value as u8);
                    at += count;
                }
            },
            other => out.push(other),
        }
    }
}

fn next_csv(data: &[u8], is_end: bool, options: &CopyOptions, fields: &mut Fields) -> Result<Step, SqlError> {
    let (quote, escape) = (options.quote, options.escape);
    let (mut looked, mut in_quotes, mut is_escaped) = (0, false, false);
    // A line's end within quotes is part of a value.
    let is_inside = |data: &[u8], at: usize| {
        for byte in &data[looked..at] {
            if is_escaped {
                is_escaped = false;
            } else if in_quotes && *byte == escape && escape != quote {
                is_escaped = true;
            } else if *byte == quote {
                in_quotes = !in_quotes;
            }
        }
        looked = at;
        in_quotes
    };
    let Some((end, length)) = line(data, is_end, is_inside) else { return Ok(Step::Incomplete) };
    let line = &data[..end];
    if line == b"\\." {
        return Ok(Step::End);
    }
    let mut at = 0;
    loop {
        let (mut was_quoted, mut in_quotes) = (false, false);
        let mut problem = None;
        fields.push_with(|out| {
            while at < line.len() {
                let byte = line[at];
                let next = line.get(at + 1).copied();
                if in_quotes && byte == escape && next.is_some_and(|next| next == quote || next == escape) {
                    out.extend(next);
                    at += 1;
                } else if byte == quote {
                    in_quotes = !in_quotes;
                    was_quoted = true;
                } else if byte == options.delimiter && !in_quotes {
                    break;
                } else if byte == b'\r' && !in_quotes {
                    problem = Some(
                        bad("unquoted carriage return found in data")
                            .hint("Use quoted CSV field to represent carriage return."),
                    );
                    break;
                } else {
                    out.push(byte);
                }
                at += 1;
            }
        });
        if let Some(problem) = problem {
            return Err(problem);
        }
        if in_quotes {
            return Err(bad("unterminated CSV quoted field"));
        }
        fields.judge_null(&options.null, was_quoted);
        if at >= line.len() {
            return Ok(Step::Record(length));
        }
        at += 1;
    }
}

/// Writes a value as text.
pub(super) fn write_text(value: Option<&[u8]>, options: &CopyOptions, out: &mut Vec<u8>) {
    let Some(value) = value else {
        out.extend_from_slice(options.null.as_bytes());
        return;
    };
    for byte in value {
        let letter = match byte {
            8 => b'b',
            12 => b'f',
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            11 => b'v',
            b'\\' => b'\\',
            other if *other == options.delimiter => *other,
            other => {
                out.push(*other);
                continue;
            }
        };
        out.extend_from_slice(&[b'\\', letter]);
    }
}

/// Writes a value as CSV. The only one of its row is in quotes if it looks like the end.
pub(super) fn write_csv(
    value: Option<&[u8]>,
    is_forced: bool,
    is_only: bool,
    options: &CopyOptions,
    out: &mut Vec<u8>,
) {
    let Some(value) = value else {
        out.extend_from_slice(options.null.as_bytes());
        return;
    };
    let special = |byte: &u8| [options.delimiter, options.quote, b'\n', b'\r'].contains(byte);
    let needs_quotes = is_forced
        || value == options.null.as_bytes()
        || value.iter().any(special)
        || (is_only && value == b"\\.");
    if !needs_quotes {
        out.extend_from_slice(value);
        return;
    }
    out.push(options.quote);
    for byte in value {
        if *byte == options.quote || *byte == options.escape {
            out.push(options.escape);
        }
        out.push(*byte);
    }
    out.push(options.quote);
}

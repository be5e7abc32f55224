//! Functions of texts: parts of them, and texts made of others.

use super::function::{Function, Parameter, ResultType, bytes, function, integer, polymorphic, text};
use crate::error::SqlError;
use crate::values::{BYTES_MAX, Datum, Type, too_long};
use Type::{Bytea, Char, Int4, Text};

pub(super) const FUNCTIONS: &[Function] = &[
    function("length", &[Text], Int4, |arguments, _| count(text(arguments, 0)?)),
    function("length", &[Char], Int4, |arguments, _| count(text(arguments, 0)?.trim_end_matches(' '))),
    function("length", &[Bytea], Int4, |arguments, _| size(bytes(arguments, 0)?.len())),
    function("char_length", &[Text], Int4, |arguments, _| count(text(arguments, 0)?)),
    function("char_length", &[Char], Int4, |arguments, _| count(text(arguments, 0)?.trim_end_matches(' '))),
    function("character_length", &[Text], Int4, |arguments, _| count(text(arguments, 0)?)),
    function("character_length", &[Char], Int4, |arguments, _| {
        count(text(arguments, 0)?.trim_end_matches(' '))
    }),
    function("octet_length", &[Text], Int4, |arguments, _| size(text(arguments, 0)?.len())),
    function("octet_length", &[Char], Int4, |arguments, _| size(text(arguments, 0)?.len())),
    function("octet_length", &[Bytea], Int4, |arguments, _| size(bytes(arguments, 0)?.len())),
    function("bit_length", &[Text], Int4, |arguments, _| size(8 * text(arguments, 0)?.len())),
    function("bit_length", &[Bytea], Int4, |arguments, _| size(8 * bytes(arguments, 0)?.len())),
    function("lower", &[Text], Text, |arguments, _| by_character(text(arguments, 0)?, lower)),
    function("upper", &[Text], Text, |arguments, _| by_character(text(arguments, 0)?, upper)),
    function("initcap", &[Text], Text, |arguments, _| capitalized(text(arguments, 0)?)),
    function("substr", &[Text, Int4], Text, |arguments, _| substring(arguments)),
    function("substr", &[Text, Int4, Int4], Text, |arguments, _| substring(arguments)),
    function("substring", &[Text, Int4], Text, |arguments, _| substring(arguments)),
    function("substring", &[Text, Int4, Int4], Text, |arguments, _| substring(arguments)),
    function("substr", &[Bytea, Int4], Bytea, |arguments, _| part_of_bytes(arguments)),
    function("substr", &[Bytea, Int4, Int4], Bytea, |arguments, _| part_of_bytes(arguments)),
    function("substring", &[Bytea, Int4], Bytea, |arguments, _| part_of_bytes(arguments)),
    function("substring", &[Bytea, Int4, Int4], Bytea, |arguments, _| part_of_bytes(arguments)),
    function("left", &[Text, Int4], Text, |arguments, _| {
        let text = text(arguments, 0)?;
        let wanted = integer(arguments, 1)?;
        let wanted = if wanted < 0 { (text.chars().count() as i64 + wanted).max(0) } else { wanted };
        Ok(Datum::text(&text[..place(text, wanted as usize)]))
    }),
    function("right", &[Text, Int4], Text, |arguments, _| {
        let text = text(arguments, 0)?;
        let wanted = integer(arguments, 1)?;
        let skipped = if wanted < 0 { -wanted } else { (text.chars().count() as i64 - wanted).max(0) };
        Ok(Datum::text(&text[place(text, skipped as usize)..]))
    }),
    function("overlay", &[Text, Text, Int4], Text, |arguments, _| overlay(arguments)),
    function("overlay", &[Text, Text, Int4, Int4], Text, |arguments, _| overlay(arguments)),
    function("btrim", &[Text], Text, |arguments, _| trimmed(arguments, true, true)),
    function("btrim", &[Text, Text], Text, |arguments, _| trimmed(arguments, true, true)),
    function("ltrim", &[Text], Text, |arguments, _| trimmed(arguments, true, false)),
    function("ltrim", &[Text, Text], Text, |arguments, _| trimmed(arguments, true, false)),
    function("rtrim", &[Text], Text, |arguments, _| trimmed(arguments, false, true)),
    function("rtrim", &[Text, Text], Text, |arguments, _| trimmed(arguments, false, true)),
    function("lpad", &[Text, Int4], Text, |arguments, _| padded(arguments, true)),
    function("lpad", &[Text, Int4, Text], Text, |arguments, _| padded(arguments, true)),
    function("rpad", &[Text, Int4], Text, |arguments, _| padded(arguments, false)),
    function("rpad", &[Text, Int4, Text], Text, |arguments, _| padded(arguments, false)),
    function("repeat", &[Text, Int4], Text, |arguments, _| {
        let (text, times) = (text(arguments, 0)?, integer(arguments, 1)?.max(0) as usize);
        if text.len().saturating_mul(times) > BYTES_MAX {
            return Err(too_long());
        }
        Ok(Datum::text(text.repeat(times)))
    }),
    function("reverse", &[Text], Text, |arguments, _| {
        Ok(Datum::text(text(arguments, 0)?.chars().rev().collect::<String>()))
    }),
    function("ascii", &[Text], Int4, |arguments, _| {
        Ok(Datum::Int4(text(arguments, 0)?.chars().next().map_or(0, |first| first as i32)))
    }),
    function("chr", &[Int4], Text, |arguments, _| character(integer(arguments, 0)?)),
    polymorphic("concat", &[Parameter::AnyVariadic], ResultType::Is(Text), |arguments, _| {
        joined(arguments, "")
    })
    .stable()
    .nullable(),
    polymorphic(
        "concat_ws",
        &[Parameter::Of(Text), Parameter::AnyVariadic],
        ResultType::Is(Text),
        |arguments, _| match arguments.split_first() {
            Some((Datum::Text(separator), values)) => joined(values, separator),
            _ => Ok(Datum::Null),
        },
    )
    .stable()
    .nullable(),
];

fn size(length: usize) -> Result<Datum, SqlError> {
    Ok(Datum::Int4(i32::try_from(length).unwrap_or(i32::MAX)))
}

fn count(text: &str) -> Result<Datum, SqlError> {
    size(text.chars().count())
}

/// The place in bytes of a character; the end if there are fewer.
fn place(text: &str, character: usize) -> usize {
    text.char_indices().nth(character).map_or(text.len(), |(at, _)| at)
}

/// A character's counterpart of the other case, if that is one character.
fn lower(character: char) -> char {
    let mut lower = character.to_lowercase();
    lower.next().filter(|_| lower.next().is_none()).unwrap_or(character)
}

fn upper(character: char) -> char {
    let mut upper = character.to_uppercase();
    upper.next().filter(|_| upper.next().is_none()).unwrap_or(character)
}

fn by_character(text: &str, change: fn(char) -> char) -> Result<Datum, SqlError> {
    Ok(Datum::text(text.chars().map(change).collect::<String>()))
}

fn capitalized(text: &str) -> Result<Datum, SqlError> {
    let mut is_inside = false;
    let characters = text.chars().map(|next| {
        let changed = if is_inside { lower(next) } else { upper(next) };
        is_inside = next.is_alphanumeric();
        changed
    });
    Ok(Datum::text(characters.collect::<String>()))
}

/// The bounds of a part that begins at a place, from 1 on, and has a length; the start may be before the first place.
fn bounds(arguments: &[Datum]) -> Result<(usize, usize), SqlError> {
    let start = integer(arguments, 1)?;
    let end = if arguments.len() > 2 {
        let length = integer(arguments, 2)?;
        if length < 0 {
            return Err(SqlError::new("22011", "negative substring length not allowed"));
        }
        start + length
    } else {
        i64::MAX
    };
    let place = |place: i64| usize::try_from(place.max(1) - 1).unwrap_or(usize::MAX);
    Ok((place(start), place(end)))
}

fn substring(arguments: &[Datum]) -> Result<Datum, SqlError> {
    let text = text(arguments, 0)?;
    let (start, end) = bounds(arguments)?;
    let from = place(text, start);
    let to = from + place(&text[from..], end.saturating_sub(start));
    Ok(Datum::text(&text[from..to]))
}

fn part_of_bytes(arguments: &[Datum]) -> Result<Datum, SqlError> {
    let bytes = bytes(arguments, 0)?;
    let (start, end) = bounds(arguments)?;
    let end = end.min(bytes.len());
    Ok(Datum::Bytes(bytes[start.min(end)..end].into()))
}

fn overlay(arguments: &[Datum]) -> Result<Datum, SqlError> {
    let (whole, part, start) = (text(arguments, 0)?, text(arguments, 1)?, integer(arguments, 2)?);
    if start <= 0 {
        return Err(SqlError::new("22011", "negative substring length not allowed"));
    }
    let length = if arguments.len() > 3 { integer(arguments, 3)? } else { part.chars().count() as i64 };
    if i32::try_from(start + length).is_err() {
        return Err(SqlError::new("22003", "integer out of range"));
    }
    let front = &whole[..place(whole, start as usize - 1)];
    let back = &whole[place(whole, (start - 1 + length).max(0) as usize)..];
    Ok(Datum::text(format!("{front}{part}{back}")))
}

fn trimmed(arguments: &[Datum], at_start: bool, at_end: bool) -> Result<Datum, SqlError> {
    let mut rest = text(arguments, 0)?;
    let set = if arguments.len() > 1 { text(arguments, 1)? } else { " " };
    if at_start {
        rest = rest.trim_start_matches(|next| set.contains(next));
    }
    if at_end {
        rest = rest.trim_end_matches(|next| set.contains(next));
    }
    Ok(Datum::text(rest))
}

fn padded(arguments: &[Datum], at_start: bool) -> Result<Datum, SqlError> {
    let (text_, wanted) = (text(arguments, 0)?, integer(arguments, 1)?.max(0) as usize);
    let fill = if arguments.len() > 2 { text(arguments, 2)? } else { " " };
    let count = text_.chars().count();
    if count >= wanted || fill.is_empty() {
        return Ok(Datum::text(&text_[..place(text_, wanted)]));
    }
    if wanted.saturating_mul(4) > BYTES_MAX {
        return Err(too_long());
    }
    let padding: String = fill.chars().cycle().take(wanted - count).collect();
    Ok(Datum::text(if at_start { padding + text_ } else { text_.to_owned() + &padding }))
}

fn character(number: i64) -> Result<Datum, SqlError> {
    match u32::try_from(number) {
        Err(_) => Err(SqlError::new("22023", "character number must be positive")),
        Ok(0) => Err(SqlError::new("54000", "null character not permitted")),
        Ok(number) => {
            char::from_u32(number).map(|character| Datum::text(character.to_string())).ok_or_else(|| {
                if number > 0x10_FFFF {
                    SqlError::new("54000", format!("requested character too large for encoding: {number}"))
                } else {
                    SqlError::new("54000", format!("requested character not valid for encoding: {number}"))
                }
            })
        }
    }
}

/// The texts of values that are not null, with a separator between them.
fn joined(values: &[Datum], separator: &str) -> Result<Datum, SqlError> {
    let mut joined = String::new();
    for (place, value) in values.iter().filter(|value| !value.is_null()).enumerate() {
        if place > 0 {
            joined.push_str(separator);
        }
        joined.push_str(&value.to_text(Type::Text));
        if joined.len() > BYTES_MAX {
            return Err(too_long());
        }
    }
    Ok(Datum::text(joined))
}

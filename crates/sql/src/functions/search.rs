//! Functions that look for texts in texts.

use super::function::{Function, bytes, function, integer, text};
use crate::error::SqlError;
use crate::values::{BYTES_MAX, Datum, Type, regular_expression, too_long};
use Type::{Bool, Bytea, Int4, Text, TextArray};

pub(super) const FUNCTIONS: &[Function] = &[
    function("position", &[Text, Text], Int4, |arguments, _| {
        position(text(arguments, 0)?, text(arguments, 1)?)
    }),
    function("strpos", &[Text, Text], Int4, |arguments, _| {
        position(text(arguments, 0)?, text(arguments, 1)?)
    }),
    function("position", &[Bytea, Bytea], Int4, |arguments, _| {
        let (whole, part) = (bytes(arguments, 0)?, bytes(arguments, 1)?);
        let found = if part.is_empty() {
            Some(0)
        } else {
            whole.windows(part.len()).position(|window| window == part)
        };
        Ok(Datum::Int4(found.map_or(0, |at| at as i32 + 1)))
    }),
    function("starts_with", &[Text, Text], Bool, |arguments, _| {
        Ok(Datum::Bool(text(arguments, 0)?.starts_with(text(arguments, 1)?)))
    }),
    function("replace", &[Text, Text, Text], Text, |arguments, _| {
        let (whole, part, other) = (text(arguments, 0)?, text(arguments, 1)?, text(arguments, 2)?);
        if part.is_empty() {
            return Ok(arguments[0].clone());
        }
        if other.len() > part.len() && whole.matches(part).count().saturating_mul(other.len()) > BYTES_MAX {
            return Err(too_long());
        }
        Ok(Datum::text(whole.replace(part, other)))
    }),
    function("translate", &[Text, Text, Text], Text, |arguments, _| {
        let (whole, from, to) = (text(arguments, 0)?, text(arguments, 1)?, text(arguments, 2)?);
        let translated =
            whole.chars().filter_map(|next| match from.chars().position(|known| known == next) {
                Some(place) => to.chars().nth(place),
                None => Some(next),
            });
        Ok(Datum::text(translated.collect::<String>()))
    }),
    function("split_part", &[Text, Text, Int4], Text, |arguments, _| {
        split_part(text(arguments, 0)?, text(arguments, 1)?, integer(arguments, 2)?)
    }),
    function("regexp_match", &[Text, Text], TextArray, |arguments, _| regexp_match(arguments)),
    function("regexp_match", &[Text, Text, Text], TextArray, |arguments, _| regexp_match(arguments)),
    function("regexp_like", &[Text, Text], Bool, |arguments, _| regexp_like(arguments)),
    function("regexp_like", &[Text, Text, Text], Bool, |arguments, _| regexp_like(arguments)),
    function("regexp_count", &[Text, Text], Int4, |arguments, _| {
        let expression = regular_expression(text(arguments, 1)?, false)?;
        Ok(Datum::Int4(expression.find_iter(text(arguments, 0)?).count() as i32))
    }),
    function("regexp_replace", &[Text, Text, Text], Text, |arguments, _| regexp_replace(arguments)),
    function("regexp_replace", &[Text, Text, Text, Text], Text, |arguments, _| regexp_replace(arguments)),
    function("regexp_split_to_array", &[Text, Text], TextArray, |arguments, _| regexp_split(arguments)),
    function("regexp_split_to_array", &[Text, Text, Text], TextArray, |arguments, _| regexp_split(arguments)),
    function("substring", &[Text, Text], Text, |arguments, _| {
        let expression = regular_expression(text(arguments, 1)?, false)?;
        let Some(found) = expression.captures(text(arguments, 0)?) else { return Ok(Datum::Null) };
        // The first group, if there is one.
        let part = if found.len() > 1 { found.get(1) } else { found.get(0) };
        Ok(part.map_or(Datum::Null, |part| Datum::text(part.as_str())))
    }),
];

/// The place of a part, from 1 on; 0 if it is not there.
fn position(whole: &str, part: &str) -> Result<Datum, SqlError> {
    let found = whole.find(part).map_or(0, |at| whole[..at].chars().count() as i32 + 1);
    Ok(Datum::Int4(found))
}

fn split_part(whole: &str, separator: &str, wanted: i64) -> Result<Datum, SqlError> {
    if wanted == 0 {
        return Err(SqlError::new("22023", "field position must not be zero"));
    }
    let place = wanted.unsigned_abs() as usize - 1;
    let part = if separator.is_empty() {
        (place == 0).then_some(whole)
    } else if wanted > 0 {
        whole.split(separator).nth(place)
    } else {
        // From the end; overlapping separators are met from the start all the same.
        let parts: Vec<&str> = whole.split(separator).collect();
        parts.len().checked_sub(place + 1).map(|at| parts[at])
    };
    Ok(Datum::text(part.unwrap_or_default()))
}

/// The meaning of an option's letters: without regard to case, and all places.
fn options(arguments: &[Datum], place: usize) -> Result<(bool, bool), SqlError> {
    let letters = if arguments.len() > place { text(arguments, place)? } else { "" };
    let (mut any_case, mut is_global) = (false, false);
    for letter in letters.chars() {
        match letter {
            'i' => any_case = true,
            'c' => any_case = false,
            'g' => is_global = true,
            's' | 't' | 'e' => {}
            'b' | 'm' | 'n' | 'p' | 'q' | 'w' | 'x' => {
                return Err(SqlError::not_supported(format!("the regular expression option \"{letter}\"")));
            }
            _ => {
                return Err(SqlError::new(
                    "22023",
                    format!("invalid regular expression option: \"{letter}\""),
                ));
            }
        }
    }
    Ok((any_case, is_global))
}

/// The error of the option for all places where it makes no sense.
fn refuse_global(is_global: bool, name: &str) -> Result<(), SqlError> {
    if is_global {
        return Err(SqlError::new("22023", format!("{name}() does not support the \"global\" option")));
    }
    Ok(())
}

fn regexp_match(arguments: &[Datum]) -> Result<Datum, SqlError> {
    let (any_case, is_global) = options(arguments, 2)?;
    if is_global {
        return Err(SqlError::new("22023", "regexp_match() does not support the \"global\" option")
            .hint("Use the regexp_matches function instead."));
    }
    let expression = regular_expression(text(arguments, 1)?, any_case)?;
    let Some(found) = expression.captures(text(arguments, 0)?) else { return Ok(Datum::Null) };
    let groups = if found.len() > 1 { 1..found.len() } else { 0..1 };
    let texts = groups.map(|group| found.get(group).map_or(Datum::Null, |part| Datum::text(part.as_str())));
    Ok(Datum::array(texts.collect()))
}

fn regexp_like(arguments: &[Datum]) -> Result<Datum, SqlError> {
    let (any_case, is_global) = options(arguments, 2)?;
    refuse_global(is_global, "regexp_like")?;
    let expression = regular_expression(text(arguments, 1)?, any_case)?;
    Ok(Datum::Bool(expression.is_match(text(arguments, 0)?)))
}

fn regexp_replace(arguments: &[Datum]) -> Result<Datum, SqlError> {
    let (any_case, is_global) = options(arguments, 3)?;
    let (whole, replacement) = (text(arguments, 0)?, text(arguments, 2)?);
    let expression = regular_expression(text(arguments, 1)?, any_case)?;
    let mut replaced = String::with_capacity(whole.len());
    let mut last = 0;
    for found in expression.captures_iter(whole).take(if is_global { usize::MAX } else { 1 }) {
        let Some(all) = found.get(0) else { break };
        replaced.push_str(&whole[last..all.start()]);
        last = all.end();
        // `\1` is a group, `\&` all that has matched.
        let mut rest = replacement.chars();
        while let Some(next) = rest.next() {
            if next != '\\' {
                replaced.push(next);
                continue;
            }
            match rest.next() {
                Some('&') => replaced.push_str(all.as_str()),
                Some(digit @ '1'..='9') => {
                    let group = found.get(digit as usize - '0' as usize);
                    replaced.push_str(group.map_or("", |part| part.as_str()));
                }
                Some('\\') | None => replaced.push('\\'),
                Some(other) => replaced.extend(['\\', other]),
            }
        }
        if replaced.len() > BYTES_MAX {
            return Err(too_long());
        }
    }
    replaced.push_str(&whole[last..]);
    Ok(Datum::text(replaced))
}

fn regexp_split(arguments: &[Datum]) -> Result<Datum, SqlError> {
    let (any_case, is_global) = options(arguments, 2)?;
    refuse_global(is_global, "regexp_split_to_array")?;
    let whole = text(arguments, 0)?;
    let expression = regular_expression(text(arguments, 1)?, any_case)?;
    let (mut parts, mut last) = (Vec::new(), 0);
    for found in expression.find_iter(whole) {
        // A match of nothing splits between characters, and neither at the start nor at the end.
        if found.is_empty() && (found.start() == last || found.end() == whole.len()) {
            continue;
        }
        parts.push(Datum::text(&whole[last..found.start()]));
        last = found.end();
    }
    parts.push(Datum::text(&whole[last..]));
    Ok(Datum::array(parts))
}

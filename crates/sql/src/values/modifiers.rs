//! Modifiers of types: the length of `varchar(n)`, the digits of `numeric(p, s)`, the fraction of `timestamp(n)`.
//!
//! A modifier is a number as in `pg_attribute.atttypmod`: -1 is none.

use super::calendar::SECOND;
use super::compare::without_blanks;
use super::datum::Datum;
use super::sql_type::Type;
use crate::error::SqlError;
use std::sync::Arc;

/// The four bytes that a header once added to lengths.
const HEADER: i32 = 4;
/// The longest text that a modifier can ask for.
const LENGTH_MAX: i32 = 10_485_760;
/// The bits of an interval's modifier that are its precision, and the value that stands for none.
const INTERVAL_PRECISION: i32 = 0xFFFF;

/// The modifier of a type with numbers in parentheses: `varchar(10)`, `numeric(5, 2)`, `timestamp(3)`.
///
/// # Errors
///
/// If the type has none, or the numbers are out of range (22023, 42601).
pub fn modifier_of(ty: Type, numbers: &[i64]) -> Result<i32, SqlError> {
    let refused = |message: String| Err(SqlError::new("22023", message));
    match (ty, numbers) {
        (Type::Varchar | Type::Char, [length]) => {
            let name = if ty == Type::Char { "char" } else { "varchar" };
            if *length < 1 {
                return refused(format!("length for type {name} must be at least 1"));
            }
            if *length > i64::from(LENGTH_MAX) {
                return refused(format!("length for type {name} cannot exceed {LENGTH_MAX}"));
            }
            Ok(*length as i32 + HEADER)
        }
        (Type::Numeric, [precision]) => modifier_of(ty, &[*precision, 0]),
        (Type::Numeric, [precision, scale]) => {
            if !(1..=1_000).contains(precision) {
                return refused(format!("NUMERIC precision {precision} must be between 1 and 1000"));
            }
            if !(-1_000..=1_000).contains(scale) {
                return refused(format!("NUMERIC scale {scale} must be between -1000 and 1000"));
            }
            Ok(((*precision as i32) << 16 | (*scale as i32 & 0x7FF)) + HEADER)
        }
        (Type::Time | Type::Timestamp | Type::TimestampTz | Type::Interval, [precision]) => {
            // PostgreSQL lowers what is too precise, with a warning.
            let precision = (*precision).clamp(0, 6) as i32;
            Ok(if ty == Type::Interval { 0x7FFF << 16 | precision } else { precision })
        }
        (Type::Varchar | Type::Char | Type::Numeric, _) => {
            refused(format!("invalid {} type modifier", ty.name().to_uppercase()))
        }
        _ => Err(SqlError::new(
            "42601",
            format!("type modifier is not allowed for type \"{}\"", ty.internal_name()),
        )),
    }
}

/// The precision and scale of a modifier of `numeric`.
pub(crate) fn precision_and_scale(modifier: i32) -> (u32, i32) {
    let packed = modifier - HEADER;
    // The scale has eleven bits with a sign.
    (((packed >> 16) & 0xFFFF) as u32, ((packed & 0x7FF) ^ 1_024) - 1_024)
}

/// The text of a modifier behind its type's name, as `format_type` shows it: `(10)`.
pub fn modifier_text(ty: Type, modifier: i32) -> String {
    if modifier < 0 || (modifier < HEADER && matches!(ty, Type::Varchar | Type::Char | Type::Numeric)) {
        return String::new();
    }
    match ty {
        Type::Varchar | Type::Char => format!("({})", modifier - HEADER),
        Type::Numeric => {
            let (precision, scale) = precision_and_scale(modifier);
            format!("({precision},{scale})")
        }
        Type::Time | Type::Timestamp | Type::TimestampTz => format!("({modifier})"),
        Type::Interval if modifier & INTERVAL_PRECISION != INTERVAL_PRECISION => {
            format!("({})", modifier & INTERVAL_PRECISION)
        }
        _ => String::new(),
    }
}

/// The name of a type with its modifier, as `format_type` gives it: `character varying(10)`, `timestamp(3) without time zone`.
pub fn type_text(ty: Type, modifier: i32) -> String {
    if let (Some(element), false) = (ty.element(), matches!(ty, Type::Int2Vector | Type::OidVector)) {
        return format!("{}[]", type_text(element, modifier));
    }
    if ty == Type::Char && modifier < 0 {
        // A `char` without a length is not `char(1)`, which `character` would say.
        return "bpchar".to_owned();
    }
    let modifier = modifier_text(ty, modifier);
    match ty.name().split_once(' ') {
        Some((name, zone)) if matches!(ty, Type::Time | Type::Timestamp | Type::TimestampTz) => {
            format!("{name}{modifier} {zone}")
        }
        _ => format!("{}{modifier}", ty.name()),
    }
}

/// Fits a value to the modifier of its column's type. Texts that are too long are refused unless only blanks are cut off.
///
/// # Errors
///
/// If the value does not fit: 22001 for texts, 22003 for numbers, 22008 for times.
pub fn apply_modifier(datum: Datum, ty: Type, modifier: i32) -> Result<Datum, SqlError> {
    fit(datum, ty, modifier, false)
}

/// Fits a value to a modifier. In an explicit cast, texts that are too long are cut off.
pub(crate) fn fit(datum: Datum, ty: Type, modifier: i32, is_explicit: bool) -> Result<Datum, SqlError> {
    if modifier < 0 {
        return Ok(datum);
    }
    Ok(match (ty, datum) {
        (Type::Varchar | Type::Char, Datum::Text(text)) => {
            fit_text(text, ty, (modifier - HEADER).max(0) as usize, is_explicit)?
        }
        (Type::Numeric, Datum::Numeric(number)) => {
            let (precision, scale) = precision_and_scale(modifier);
            Datum::numeric(number.fit(precision, scale)?)
        }
        (Type::Time, Datum::Time(time)) => Datum::Time(round(time, modifier)),
        (Type::Timestamp, Datum::Timestamp(moment)) => Datum::Timestamp(round_moment(moment, modifier)?),
        (Type::TimestampTz, Datum::TimestampTz(moment)) => {
            Datum::TimestampTz(round_moment(moment, modifier)?)
        }
        (Type::Interval, Datum::Interval(mut interval)) => {
            let precision = modifier & INTERVAL_PRECISION;
            if precision != INTERVAL_PRECISION {
                interval.microseconds = round(interval.microseconds, precision);
            }
            Datum::Interval(interval)
        }
        (ty, Datum::Array(elements)) => {
            let element = ty.element().unwrap_or(Type::Text);
            let fitted = elements.iter().map(|value| fit(value.clone(), element, modifier, is_explicit));
            Datum::array(fitted.collect::<Result<_, _>>()?)
        }
        (_, datum) => datum,
    })
}

fn fit_text(text: Arc<str>, ty: Type, length: usize, is_explicit: bool) -> Result<Datum, SqlError> {
    // A text of few bytes has few characters.
    let count = if text.is_ascii() { text.len() } else { text.chars().count() };
    if count <= length {
        return Ok(Datum::Text(if ty == Type::Char && count < length {
            let mut padded = String::with_capacity(text.len() + length - count);
            padded.push_str(&text);
            padded.extend(std::iter::repeat_n(' ', length - count));
            padded.into()
        } else {
            text
        }));
    }
    let end = text.char_indices().nth(length).map_or(text.len(), |(at, _)| at);
    if !is_explicit && !without_blanks(&text[end..]).is_empty() {
        return Err(SqlError::new("22001", format!("value too long for type {}({length})", ty.name())));
    }
    Ok(Datum::text(&text[..end]))
}

/// Rounds microseconds to so many digits of a second, halves away from zero.
fn round(microseconds: i64, precision: i32) -> i64 {
    let unit = SECOND / 10_i64.pow(precision.clamp(0, 6) as u32);
    let half = if microseconds < 0 { -unit / 2 } else { unit / 2 };
    microseconds.saturating_add(half) / unit * unit
}

fn round_moment(microseconds: i64, precision: i32) -> Result<i64, SqlError> {
    if matches!(microseconds, i64::MIN | i64::MAX) {
        return Ok(microseconds);
    }
    let rounded = round(microseconds, precision);
    if super::calendar::is_timestamp(rounded) {
        Ok(rounded)
    } else {
        Err(SqlError::new("22008", "timestamp out of range"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_padded_and_cut_only_where_they_may_be() {
        let varchar = modifier_of(Type::Varchar, &[3]).unwrap();
        let char = modifier_of(Type::Char, &[3]).unwrap();
        let apply = |text: &str, ty, modifier| apply_modifier(Datum::text(text), ty, modifier);
        assert_eq!(apply("äbc  ", Type::Varchar, varchar), Ok(Datum::text("äbc")));
        assert_eq!(apply("ä", Type::Char, char), Ok(Datum::text("ä  ")));
        let refused = apply("abcd", Type::Char, char).unwrap_err();
        assert_eq!((refused.code, &*refused.message), ("22001", "value too long for type character(3)"));
        assert_eq!(fit(Datum::text("abcd"), Type::Varchar, varchar, true), Ok(Datum::text("abc")));
    }

    #[test]
    fn numbers_and_times_are_rounded() {
        let modifier = modifier_of(Type::Numeric, &[5, 2]).unwrap();
        assert_eq!(modifier, 327_686);
        let number =
            apply_modifier(Datum::parse("1.005", Type::Numeric).unwrap(), Type::Numeric, modifier).unwrap();
        assert_eq!(number.to_text(Type::Numeric), "1.01");
        let moment = apply_modifier(Datum::Timestamp(1_500_000), Type::Timestamp, 0);
        assert_eq!(moment, Ok(Datum::Timestamp(2_000_000)));
        let negative = modifier_of(Type::Numeric, &[3, -2]).unwrap();
        assert_eq!(precision_and_scale(negative), (3, -2));
    }

    #[test]
    fn names_of_types_have_their_modifiers() {
        assert_eq!(type_text(Type::Varchar, 14), "character varying(10)");
        assert_eq!(type_text(Type::TimestampTz, 3), "timestamp(3) with time zone");
        assert_eq!(type_text(Type::Numeric, 327_686), "numeric(5,2)");
        assert_eq!(type_text(Type::Int4Array, -1), "integer[]");
        assert!(modifier_of(Type::Int4, &[3]).is_err() && modifier_of(Type::Varchar, &[0]).is_err());
    }
}

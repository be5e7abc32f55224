//! Casts of values.

use super::calendar::{
    DAY, INFINITE_DATE, INFINITE_TIMESTAMP, NEGATIVE_INFINITE_DATE, NEGATIVE_INFINITE_TIMESTAMP,
};
use super::cast_rules::{CastContext, can_cast};
use super::compare::without_blanks;
use super::datum::Datum;
use super::interval::Interval;
use super::modifiers::fit;
use super::numeric::Numeric;
use super::sql_type::Type;
use super::text_form::cut_name;
use crate::error::SqlError;
use std::sync::Arc;

/// The error of a number that does not fit a type.
pub(crate) fn out_of_range(ty: Type) -> SqlError {
    SqlError::new("22003", format!("{} out of range", ty.name()))
}

/// Casts a value explicitly (`CAST(… AS …)`): texts that are too long for the modifier are cut off.
///
/// # Errors
///
/// If there is no such cast (42846), or the value has no counterpart (22P02, 22003, 22007, 22008, …).
pub fn cast(datum: Datum, from: Type, to: Type, modifier: i32) -> Result<Datum, SqlError> {
    cast_in(datum, from, to, modifier, CastContext::Explicit)
}

/// Casts a value that goes into a column: texts that are too long for the modifier are refused.
///
/// # Errors
///
/// If there is no such cast (42846), or the value has no counterpart or does not fit (22001, 22P02, 22003, 22007, 22008, …).
pub fn assign(datum: Datum, from: Type, to: Type, modifier: i32) -> Result<Datum, SqlError> {
    cast_in(datum, from, to, modifier, CastContext::Assignment)
}

fn cast_in(
    datum: Datum,
    from: Type,
    to: Type,
    modifier: i32,
    context: CastContext,
) -> Result<Datum, SqlError> {
    if !can_cast(from, to, context) {
        return Err(SqlError::new("42846", format!("cannot cast type {} to {}", from.name(), to.name())));
    }
    if datum.is_null() {
        return Ok(datum);
    }
    let value = if from == to { datum } else { convert(datum, from, to)? };
    fit(value, to, modifier, context == CastContext::Explicit)
}

/// The whole number of an integer type.
pub(crate) fn integer(number: i64, ty: Type) -> Result<Datum, SqlError> {
    let out_of_range = || out_of_range(ty);
    Ok(match ty {
        Type::Int2 => Datum::Int2(i16::try_from(number).map_err(|_| out_of_range())?),
        Type::Int4 => Datum::Int4(i32::try_from(number).map_err(|_| out_of_range())?),
        Type::Int8 => Datum::Int8(number),
        _ => Datum::Oid(u32::try_from(number).map_err(|_| SqlError::new("22003", "OID out of range"))?),
    })
}

/// The whole number next to a float, halves to the even one.
pub(crate) fn integer_of_float(float: f64, ty: Type) -> Result<Datum, SqlError> {
    let rounded = float.round_ties_even();
    // The upper bound is 2⁶³, which is the first float that does not fit.
    if !(-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&rounded) {
        return Err(out_of_range(ty));
    }
    integer(rounded as i64, ty)
}

/// The nearest `float4`.
pub(crate) fn float4(float: f64) -> Result<Datum, SqlError> {
    let short = float as f32;
    if short.is_infinite() && !float.is_infinite() {
        return Err(SqlError::new("22003", "value out of range: overflow"));
    }
    if short == 0.0 && float != 0.0 {
        return Err(SqlError::new("22003", "value out of range: underflow"));
    }
    Ok(Datum::Float4(short))
}

fn of_numeric(number: &Numeric, to: Type) -> Result<Datum, SqlError> {
    let ranges = |name| SqlError::new("22003", format!("\"{number}\" is out of range for type {name}"));
    match to {
        Type::Float8 => {
            let float = number.to_f64();
            let is_lost = number.is_finite() && (float.is_infinite() || (float == 0.0 && !number.is_zero()));
            if is_lost { Err(ranges("double precision")) } else { Ok(Datum::Float8(float)) }
        }
        Type::Float4 => {
            let float = number.to_f64() as f32;
            let is_lost = number.is_finite() && (float.is_infinite() || (float == 0.0 && !number.is_zero()));
            if is_lost { Err(ranges("real")) } else { Ok(Datum::Float4(float)) }
        }
        to if number.is_finite() => integer(number.to_i64().ok_or_else(|| out_of_range(to))?, to),
        to => {
            let what = if number.is_nan() { "NaN" } else { "infinity" };
            Err(SqlError::new("0A000", format!("cannot convert {what} to {}", to.name())))
        }
    }
}

/// The midnight of a date, as a timestamp.
pub(crate) fn midnight(days: i32) -> Result<i64, SqlError> {
    match days {
        INFINITE_DATE => Ok(INFINITE_TIMESTAMP),
        NEGATIVE_INFINITE_DATE => Ok(NEGATIVE_INFINITE_TIMESTAMP),
        days => i64::from(days)
            .checked_mul(DAY)
            .filter(|moment| super::calendar::is_timestamp(*moment))
            .ok_or_else(|| SqlError::new("22008", "date out of range for timestamp")),
    }
}

/// The date of a timestamp.
pub(crate) fn date_of(moment: i64) -> i32 {
    match moment {
        INFINITE_TIMESTAMP => INFINITE_DATE,
        NEGATIVE_INFINITE_TIMESTAMP => NEGATIVE_INFINITE_DATE,
        // Timestamps span fewer days than dates do.
        moment => moment.div_euclid(DAY) as i32,
    }
}

/// Converts a value between types that have a cast.
fn convert(datum: Datum, from: Type, to: Type) -> Result<Datum, SqlError> {
    if let (Some(left), Some(right)) = (from.element(), to.element()) {
        return match datum {
            Datum::Array(elements) if left != right => {
                let cast = elements.iter().map(|value| {
                    if value.is_null() { Ok(Datum::Null) } else { convert(value.clone(), left, right) }
                });
                Ok(Datum::array(cast.collect::<Result<_, _>>()?))
            }
            datum => Ok(datum),
        };
    }
    Ok(match (datum, to) {
        (Datum::Text(text), Type::Char) if from == Type::Name => Datum::Text(text),
        (Datum::Text(text), to) => return of_text(text, from, to),
        (Datum::Bool(value), Type::Int4) => Datum::Int4(i32::from(value)),
        (Datum::Int4(number), Type::Bool) => Datum::Bool(number != 0),
        (Datum::Int4(number), Type::Letter) => {
            let letter = i8::try_from(number).map_err(|_| SqlError::new("22003", "\"char\" out of range"))?;
            Datum::text(if letter == 0 { String::new() } else { char::from(letter as u8).to_string() })
        }
        (datum @ (Datum::Int2(_) | Datum::Int4(_) | Datum::Int8(_) | Datum::Oid(_)), to)
            if to.is_number() || to.is_oid() =>
        {
            let number = datum.as_integer().unwrap_or(0);
            match to {
                Type::Float4 => Datum::Float4(number as f32),
                Type::Float8 => Datum::Float8(number as f64),
                Type::Numeric => Datum::numeric(Numeric::from(number)),
                // Numbers of objects are the same bits as integers.
                Type::Int4 if from.is_oid() => Datum::Int4(number as i32),
                to if to.is_oid() && from == Type::Int4 => Datum::Oid(number as u32),
                to if to.is_oid() && from == Type::Int2 => Datum::Oid(number as u32),
                to => return integer(number, to),
            }
        }
        (Datum::Float4(float), Type::Float8) => Datum::Float8(f64::from(float)),
        (Datum::Float4(float), Type::Numeric) => Datum::numeric(Numeric::of_f32(float)),
        (Datum::Float4(float), Type::Int2 | Type::Int4 | Type::Int8) => {
            return integer_of_float(f64::from(float), to);
        }
        (Datum::Float8(float), Type::Float4) => return float4(float),
        (Datum::Float8(float), Type::Numeric) => Datum::numeric(Numeric::of_f64(float)),
        (Datum::Float8(float), Type::Int2 | Type::Int4 | Type::Int8) => return integer_of_float(float, to),
        (Datum::Numeric(number), to) if to.is_number() => return of_numeric(&number, to),
        (Datum::Date(days), Type::Timestamp) => Datum::Timestamp(midnight(days)?),
        (Datum::Date(days), Type::TimestampTz) => Datum::TimestampTz(midnight(days)?),
        (Datum::Timestamp(moment), Type::TimestampTz) => Datum::TimestampTz(moment),
        (Datum::TimestampTz(moment), Type::Timestamp) => Datum::Timestamp(moment),
        (Datum::Timestamp(moment) | Datum::TimestampTz(moment), Type::Date) => Datum::Date(date_of(moment)),
        (Datum::Timestamp(moment) | Datum::TimestampTz(moment), Type::Time) => match moment {
            INFINITE_TIMESTAMP | NEGATIVE_INFINITE_TIMESTAMP => Datum::Null,
            moment => Datum::Time(moment.rem_euclid(DAY)),
        },
        (Datum::Time(time), Type::Interval) => {
            Datum::Interval(Interval { microseconds: time, ..Interval::default() })
        }
        (Datum::Interval(interval), Type::Time) => Datum::Time(interval.microseconds.rem_euclid(DAY)),
        (Datum::Bool(value), Type::Text | Type::Varchar | Type::Char) => {
            Datum::text(if value { "true" } else { "false" })
        }
        (datum, to) => return of_text(datum.to_text(from).into(), Type::Text, to),
    })
}

fn of_text(text: Arc<str>, from: Type, to: Type) -> Result<Datum, SqlError> {
    Ok(match to {
        Type::Text | Type::Varchar | Type::Name if from == Type::Char => {
            let text = without_blanks(&text);
            Datum::text(if to == Type::Name { cut_name(text) } else { text })
        }
        Type::Name => Datum::text(cut_name(&text)),
        Type::Text | Type::Varchar | Type::Char | Type::Unknown => Datum::Text(text),
        Type::Int4 if from == Type::Letter => {
            // A letter is a signed byte.
            let letter = text.chars().next().map_or(0, u32::from);
            Datum::Int4(i32::from(letter as u8 as i8))
        }
        to => return Datum::parse(&text, to),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, from: Type, to: Type) -> Result<String, &'static str> {
        let datum = Datum::parse(text, from).unwrap();
        cast(datum, from, to, -1).map(|value| value.to_text(to)).map_err(|error| error.code)
    }

    #[test]
    fn values_are_cast_as_postgresql_casts_them() {
        for (text, from, to, result) in [
            ("2.5", Type::Numeric, Type::Int4, Ok("3")),
            ("2.5", Type::Float8, Type::Int4, Ok("2")),
            ("3e9", Type::Float8, Type::Int4, Err("22003")),
            ("NaN", Type::Float8, Type::Int4, Err("22003")),
            ("NaN", Type::Numeric, Type::Int4, Err("0A000")),
            ("70000", Type::Int4, Type::Int2, Err("22003")),
            ("true", Type::Bool, Type::Text, Ok("true")),
            ("2", Type::Int4, Type::Bool, Ok("t")),
            ("t", Type::Bool, Type::Int8, Err("42846")),
            (" 12 ", Type::Text, Type::Int4, Ok("12")),
            ("x", Type::Text, Type::Int4, Err("22P02")),
            ("ab  ", Type::Char, Type::Text, Ok("ab")),
            ("2024-02-29 12:00", Type::Timestamp, Type::Date, Ok("2024-02-29")),
            ("infinity", Type::Date, Type::TimestampTz, Ok("infinity")),
            ("5874897-01-01", Type::Date, Type::Timestamp, Err("22008")),
            ("{1,NULL}", Type::Int4Array, Type::Float8Array, Ok("{1,NULL}")),
            ("{1,2}", Type::Text, Type::Int4Array, Ok("{1,2}")),
            ("1e39", Type::Float8, Type::Float4, Err("22003")),
            ("-1", Type::Int4, Type::Oid, Ok("4294967295")),
            ("1.1", Type::Float4, Type::Float8, Ok("1.100000023841858")),
        ] {
            assert_eq!(shown(text, from, to), result.map(String::from), "{text} {from:?} {to:?}");
        }
    }

    #[test]
    fn only_an_explicit_cast_cuts_a_text_off() {
        let long = || Datum::text("abcd");
        assert_eq!(cast(long(), Type::Text, Type::Varchar, 7), Ok(Datum::text("abc")));
        assert_eq!(assign(long(), Type::Text, Type::Varchar, 7).unwrap_err().code, "22001");
        assert_eq!(assign(long(), Type::Text, Type::Int4, -1).unwrap_err().code, "42846");
    }
}

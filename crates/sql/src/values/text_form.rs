//! The text of values: what clients send and get in the protocol's text format.

use super::array_text;
use super::datum::Datum;
use super::interval_input::parse_interval;
use super::numeric::Numeric;
use super::scalar_text::{
    invalid_syntax, parse_bool, parse_bytes, parse_float, parse_integer, parse_oid, parse_uuid, write_f32,
    write_f64, write_hexadecimal, write_uuid,
};
use super::sql_type::Type;
use super::time_input::{parse_date, parse_time, parse_timestamp};
use super::time_text::{write_date, write_time, write_timestamp};
use crate::error::SqlError;
use std::io::Write;

/// The most bytes that a `name` has.
pub(crate) const NAME_BYTES_MAX: usize = 63;

/// Cuts a name to the bytes that it may have, between characters.
pub(crate) fn cut_name(name: &str) -> &str {
    let mut end = name.len().min(NAME_BYTES_MAX);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    &name[..end]
}

impl Datum {
    /// Reads a value from its text.
    ///
    /// The types that name objects of the catalog (`regclass` and its like) are read from numbers only; names need the catalog.
    ///
    /// # Errors
    ///
    /// If the text is none of the type's values: 22P02, 22003, 22007, 22008, 22023, or 0A000 for arrays of several dimensions.
    pub fn parse(text: &str, ty: Type) -> Result<Self, SqlError> {
        Ok(match ty {
            Type::Bool => Self::Bool(parse_bool(text)?),
            Type::Int2 => Self::Int2(parse_integer(text, ty, i16::MIN.into(), i16::MAX.into())? as i16),
            Type::Int4 => Self::Int4(parse_integer(text, ty, i32::MIN.into(), i32::MAX.into())? as i32),
            Type::Int8 => Self::Int8(parse_integer(text, ty, i64::MIN, i64::MAX)?),
            Type::Oid | Type::Regproc | Type::Regclass | Type::Regtype | Type::Regnamespace => match text {
                "-" if ty != Type::Oid => Self::Oid(0),
                text => Self::Oid(parse_oid(text, ty)?),
            },
            Type::Float4 => Self::Float4(parse_float(text, ty)? as f32),
            Type::Float8 => Self::Float8(parse_float(text, ty)?),
            Type::Numeric => Self::numeric(text.parse::<Numeric>()?),
            Type::Bytea => Self::Bytes(parse_bytes(text)?.into()),
            Type::Date => Self::Date(parse_date(text)?),
            Type::Time => Self::Time(parse_time(text)?),
            Type::Timestamp => Self::Timestamp(parse_timestamp(text, false)?),
            Type::TimestampTz => Self::TimestampTz(parse_timestamp(text, true)?),
            Type::Interval => Self::Interval(parse_interval(text)?),
            Type::Uuid => Self::Uuid(parse_uuid(text)?),
            Type::Letter => Self::text(text.chars().next().map(String::from).unwrap_or_default()),
            Type::Name => Self::text(cut_name(text)),
            Type::Text
            | Type::Varchar
            | Type::Char
            | Type::Unknown
            | Type::Json
            | Type::NodeTree
            | Type::Void => Self::text(text),
            Type::Int2Vector | Type::OidVector => {
                let element = ty.element().ok_or_else(|| invalid_syntax(text, ty))?;
                let elements = text.split_ascii_whitespace().map(|part| Self::parse(part, element));
                Self::array(elements.collect::<Result<_, _>>()?)
            }
            array => {
                let element = array.element().ok_or_else(|| invalid_syntax(text, ty))?;
                let elements = array_text::split(text)?;
                let elements = elements.into_iter().map(|part| match part {
                    Some(part) => Self::parse(&part, element),
                    None => Ok(Self::Null),
                });
                Self::array(elements.collect::<Result<_, _>>()?)
            }
        })
    }

    /// Writes the value's text. Null has none, and nothing is written; the caller tells it from an empty text.
    ///
    /// The types that name objects of the catalog are written as numbers; names need the catalog.
    pub fn write_text(&self, ty: Type, out: &mut Vec<u8>) {
        // Writing to a vector cannot fail.
        let _ = match self {
            Self::Null => Ok(()),
            Self::Bool(value) => write!(out, "{}", if *value { 't' } else { 'f' }),
            Self::Int2(number) => write!(out, "{number}"),
            Self::Int4(number) => write!(out, "{number}"),
            Self::Int8(number) => write!(out, "{number}"),
            Self::Oid(0)
                if matches!(ty, Type::Regproc | Type::Regclass | Type::Regtype | Type::Regnamespace) =>
            {
                write!(out, "-")
            }
            Self::Oid(number) => write!(out, "{number}"),
            Self::Numeric(number) => write!(out, "{number}"),
            Self::Interval(interval) => write!(out, "{interval}"),
            Self::Text(text) => out.write_all(text.as_bytes()),
            Self::Float4(float) => return write_f32(*float, out),
            Self::Float8(float) => return write_f64(*float, out),
            Self::Bytes(bytes) => {
                out.extend(b"\\x");
                return write_hexadecimal(bytes, out);
            }
            Self::Date(days) => return write_date(*days, out),
            Self::Time(microseconds) => return write_time(*microseconds, out),
            Self::Timestamp(microseconds) => return write_timestamp(*microseconds, false, out),
            Self::TimestampTz(microseconds) => return write_timestamp(*microseconds, true, out),
            Self::Uuid(uuid) => return write_uuid(uuid, out),
            Self::Array(elements) => return write_array(elements, ty, out),
        };
    }

    /// The value's text; empty for null.
    pub fn to_text(&self, ty: Type) -> String {
        if let Self::Text(text) = self {
            return text.to_string();
        }
        let mut out = Vec::new();
        self.write_text(ty, &mut out);
        String::from_utf8_lossy(&out).into_owned()
    }
}

fn write_array(elements: &[Datum], ty: Type, out: &mut Vec<u8>) {
    let element_type = ty.element().unwrap_or(Type::Text);
    let is_vector = matches!(ty, Type::Int2Vector | Type::OidVector);
    if !is_vector {
        out.push(b'{');
    }
    for (place, element) in elements.iter().enumerate() {
        if place > 0 {
            out.push(if is_vector { b' ' } else { b',' });
        }
        if element.is_null() {
            out.extend(b"NULL");
        } else if let Datum::Text(text) = element {
            array_text::write_element(text.as_bytes(), out);
        } else {
            let mut text = Vec::new();
            element.write_text(element_type, &mut text);
            array_text::write_element(&text, out);
        }
    }
    if !is_vector {
        out.push(b'}');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_each_type_is_read_and_shown() {
        for (ty, text, shown) in [
            (Type::Bool, "yes", "t"),
            (Type::Int4, " -7 ", "-7"),
            (Type::Float4, "1.1", "1.1"),
            (Type::Numeric, "1.10", "1.10"),
            (Type::Bytea, "abc", "\\x616263"),
            (Type::Oid, "-1", "4294967295"),
            (Type::Letter, "rest", "r"),
            (Type::Char, "ab  ", "ab  "),
            (Type::Int4Array, "{1, NULL, 3}", "{1,NULL,3}"),
            (Type::TextArray, "{a b,\"\",\"null\"}", "{\"a b\",\"\",\"null\"}"),
            (Type::TimestampArray, "{2024-01-01}", "{\"2024-01-01 00:00:00\"}"),
            (Type::Int2Vector, "1 2", "1 2"),
            (Type::Interval, "1 day", "1 day"),
            (Type::Time, "04:05", "04:05:00"),
            (Type::TimestampTz, "2024-01-01 02:00+02", "2024-01-01 00:00:00+00"),
        ] {
            assert_eq!(Datum::parse(text, ty).unwrap().to_text(ty), shown);
        }
    }

    #[test]
    fn names_are_cut_between_characters() {
        let name = Datum::parse(&"é".repeat(40), Type::Name).unwrap();
        assert_eq!(name.as_text().unwrap().len(), 62);
    }
}

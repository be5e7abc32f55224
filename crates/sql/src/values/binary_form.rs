//! The binary form of values: what PostgreSQL's `send` functions write and its `recv` functions read.

use super::datum::Datum;
use super::interval::Interval;
use super::numeric::Numeric;
use super::sql_type::Type;
use crate::error::SqlError;

/// The error of bytes that are too few.
fn insufficient() -> SqlError {
    SqlError::new("08P01", "insufficient data left in message")
}

/// The error of bytes that are too many, or mean nothing.
fn malformed() -> SqlError {
    SqlError::new("22P03", "incorrect binary data format")
}

/// The bytes of a value of a fixed size.
fn exactly<const N: usize>(bytes: &[u8]) -> Result<[u8; N], SqlError> {
    bytes.try_into().map_err(|_| if bytes.len() < N { insufficient() } else { malformed() })
}

/// The bytes from the front of others.
fn take<'b>(bytes: &mut &'b [u8], count: usize) -> Result<&'b [u8], SqlError> {
    let (taken, rest) = bytes.split_at_checked(count).ok_or_else(insufficient)?;
    *bytes = rest;
    Ok(taken)
}

/// The text of bytes.
fn text(bytes: &[u8]) -> Result<Datum, SqlError> {
    let invalid = |byte: u8| {
        SqlError::new("22021", format!("invalid byte sequence for encoding \"UTF8\": 0x{byte:02x}"))
    };
    if bytes.contains(&0) {
        return Err(invalid(0));
    }
    match str::from_utf8(bytes) {
        Ok(text) => Ok(Datum::text(text)),
        Err(error) => Err(invalid(bytes[error.valid_up_to()])),
    }
}

fn out_of_range(name: &'static str) -> SqlError {
    SqlError::new("22008", format!("{name} out of range"))
}

/// Reads an array: the number of its dimensions, a mark for nulls, the elements' type, the dimension, the elements.
fn array(mut bytes: &[u8], ty: Type) -> Result<Datum, SqlError> {
    let element = ty.element().ok_or_else(malformed)?;
    let word =
        |bytes: &mut &[u8]| -> Result<i32, SqlError> { Ok(i32::from_be_bytes(exactly(take(bytes, 4)?)?)) };
    let dimensions = word(&mut bytes)?;
    let flags = word(&mut bytes)?;
    let element_number = word(&mut bytes)? as u32;
    if !(0..=1).contains(&flags) {
        return Err(SqlError::new("22P03", "invalid array flags"));
    }
    if element_number != element.oid() {
        return Err(SqlError::new(
            "42804",
            format!(
                "binary data has array element type {element_number} instead of expected {}",
                element.oid()
            ),
        ));
    }
    match dimensions {
        0 => return if bytes.is_empty() { Ok(Datum::array(Vec::new())) } else { Err(malformed()) },
        1 => {}
        2.. => return Err(SqlError::not_supported("an array of several dimensions")),
        _ => return Err(SqlError::new("22P03", format!("invalid number of dimensions: {dimensions}"))),
    }
    let count = usize::try_from(word(&mut bytes)?).map_err(|_| malformed())?;
    let lower_bound = word(&mut bytes)?;
    if lower_bound != 1 && !matches!(ty, Type::Int2Vector | Type::OidVector) {
        return Err(SqlError::not_supported("an array whose first element is not the first"));
    }
    // Each element has a length of four bytes, so a count that lies costs no memory.
    if count > bytes.len() / 4 {
        return Err(insufficient());
    }
    let mut elements = Vec::with_capacity(count);
    for _ in 0..count {
        elements.push(match word(&mut bytes)? {
            -1 => Datum::Null,
            length => {
                let length = usize::try_from(length).map_err(|_| malformed())?;
                Datum::from_binary(take(&mut bytes, length)?, element)?
            }
        });
    }
    if bytes.is_empty() { Ok(Datum::array(elements)) } else { Err(malformed()) }
}

impl Datum {
    /// Reads a value from its binary form.
    ///
    /// # Errors
    ///
    /// If the bytes are too few (08P01), too many or without meaning (22P03), no text (22021), or out of the type's range (22008).
    pub fn from_binary(bytes: &[u8], ty: Type) -> Result<Self, SqlError> {
        Ok(match ty {
            Type::Bool => Self::Bool(exactly::<1>(bytes)? != [0]),
            Type::Int2 => Self::Int2(i16::from_be_bytes(exactly(bytes)?)),
            Type::Int4 => Self::Int4(i32::from_be_bytes(exactly(bytes)?)),
            Type::Int8 => Self::Int8(i64::from_be_bytes(exactly(bytes)?)),
            Type::Oid | Type::Regproc | Type::Regclass | Type::Regtype | Type::Regnamespace => {
                Self::Oid(u32::from_be_bytes(exactly(bytes)?))
            }
            Type::Float4 => Self::Float4(f32::from_be_bytes(exactly(bytes)?)),
            Type::Float8 => Self::Float8(f64::from_be_bytes(exactly(bytes)?)),
            Type::Numeric => Self::numeric(Numeric::from_binary(bytes)?),
            Type::Bytea => Self::Bytes(bytes.into()),
            Type::Date => {
                let days = i32::from_be_bytes(exactly(bytes)?);
                if !super::calendar::is_date(days) {
                    return Err(out_of_range("date"));
                }
                Self::Date(days)
            }
            Type::Time => {
                let microseconds = i64::from_be_bytes(exactly(bytes)?);
                if !(0..=super::calendar::DAY).contains(&microseconds) {
                    return Err(out_of_range("time"));
                }
                Self::Time(microseconds)
            }
            Type::Timestamp | Type::TimestampTz => {
                let microseconds = i64::from_be_bytes(exactly(bytes)?);
                if !super::calendar::is_timestamp(microseconds) {
                    return Err(out_of_range("timestamp"));
                }
                if ty == Type::Timestamp {
                    Self::Timestamp(microseconds)
                } else {
                    Self::TimestampTz(microseconds)
                }
            }
            Type::Interval => {
                let bytes: [u8; 16] = exactly(bytes)?;
                Self::Interval(Interval {
                    microseconds: i64::from_be_bytes(exactly(&bytes[..8])?),
                    days: i32::from_be_bytes(exactly(&bytes[8..12])?),
                    months: i32::from_be_bytes(exactly(&bytes[12..])?),
                })
            }
            Type::Uuid => Self::Uuid(exactly(bytes)?),
            Type::Letter => match exactly(bytes)? {
                [0] => Self::text(""),
                // One byte is all that there is; beyond ASCII it is taken as the character of that number.
                [letter] => Self::text(char::from(letter).to_string()),
            },
            Type::Name => {
                if bytes.len() > super::text_form::NAME_BYTES_MAX {
                    return Err(SqlError::new("42622", "identifier too long")
                        .detail("Identifier must be less than 64 characters."));
                }
                text(bytes)?
            }
            Type::Text | Type::Varchar | Type::Char | Type::Unknown | Type::Json | Type::NodeTree => {
                text(bytes)?
            }
            Type::Void => Self::text(""),
            ty => array(bytes, ty)?,
        })
    }

    /// Writes the value's binary form. Null has none, and nothing is written.
    pub fn write_binary(&self, ty: Type, out: &mut Vec<u8>) {
        match self {
            Self::Null => {}
            Self::Bool(value) => out.push(u8::from(*value)),
            Self::Int2(number) => out.extend(number.to_be_bytes()),
            Self::Int4(number) => out.extend(number.to_be_bytes()),
            Self::Int8(number) => out.extend(number.to_be_bytes()),
            Self::Oid(number) => out.extend(number.to_be_bytes()),
            Self::Float4(float) => out.extend(float.to_be_bytes()),
            Self::Float8(float) => out.extend(float.to_be_bytes()),
            Self::Numeric(number) => number.write_binary(out),
            Self::Text(text) if ty == Type::Letter => {
                let letter = text.chars().next().map_or(0, u32::from);
                out.push(u8::try_from(letter).unwrap_or(b'?'));
            }
            Self::Text(text) => out.extend(text.as_bytes()),
            Self::Bytes(bytes) => out.extend(bytes.iter()),
            Self::Date(days) => out.extend(days.to_be_bytes()),
            Self::Time(microseconds) | Self::Timestamp(microseconds) | Self::TimestampTz(microseconds) => {
                out.extend(microseconds.to_be_bytes());
            }
            Self::Interval(interval) => {
                out.extend(interval.microseconds.to_be_bytes());
                out.extend(interval.days.to_be_bytes());
                out.extend(interval.months.to_be_bytes());
            }
            Self::Uuid(uuid) => out.extend(uuid),
            Self::Array(elements) => write_array(elements, ty, out),
        }
    }
}

fn write_array(elements: &[Datum], ty: Type, out: &mut Vec<u8>) {
    let element_type = ty.element().unwrap_or(Type::Text);
    let is_vector = matches!(ty, Type::Int2Vector | Type::OidVector);
    let mut word = |word: i32| out.extend(word.to_be_bytes());
    word(i32::from(is_vector || !elements.is_empty()));
    word(i32::from(elements.iter().any(Datum::is_null)));
    word(element_type.oid() as i32);
    if elements.is_empty() && !is_vector {
        return;
    }
    word(elements.len() as i32);
    word(i32::from(!is_vector));
    for element in elements {
        if element.is_null() {
            out.extend((-1_i32).to_be_bytes());
            continue;
        }
        let start = out.len();
        out.extend([0; 4]);
        element.write_binary(element_type, out);
        let length = (out.len() - start - 4) as i32;
        out[start..start + 4].copy_from_slice(&length.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_binary_form_of_each_type_is_read_as_it_was_written() {
        for (ty, text) in [
            (Type::Bool, "t"),
            (Type::Int2, "-2"),
            (Type::Int8, "9223372036854775807"),
            (Type::Float4, "1.5"),
            (Type::Numeric, "-12345.678"),
            (Type::Bytea, "\\x00ff"),
            (Type::Date, "2024-02-29"),
            (Type::Timestamp, "infinity"),
            (Type::Time, "12:00:00"),
            (Type::Interval, "1 year 2 days 00:00:03"),
            (Type::Uuid, "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
            (Type::Letter, "r"),
            (Type::Oid, "4294967295"),
            (Type::TextArray, "{a,NULL,\"b c\"}"),
            (Type::Int4Array, "{}"),
            (Type::Int2Vector, "1 2"),
        ] {
            let mut bytes = Vec::new();
            Datum::parse(text, ty).unwrap().write_binary(ty, &mut bytes);
            assert_eq!(Datum::from_binary(&bytes, ty).unwrap().to_text(ty), text);
            bytes.push(0);
            if !matches!(ty, Type::Bytea) {
                assert!(Datum::from_binary(&bytes, ty).is_err(), "{ty:?} with a byte too much");
            }
        }
    }

    #[test]
    fn malformed_bytes_are_refused_without_an_allocation_for_their_promises() {
        let mut bytes = Vec::new();
        for word in [1, 0, 23, i32::MAX, 1] {
            bytes.extend(word.to_be_bytes());
        }
        assert_eq!(Datum::from_binary(&bytes, Type::Int4Array).unwrap_err().code, "08P01");
        assert_eq!(Datum::from_binary(&[0; 3], Type::Int4).unwrap_err().code, "08P01");
        assert_eq!(Datum::from_binary(&[0; 5], Type::Int4).unwrap_err().code, "22P03");
        assert_eq!(Datum::from_binary(b"a\xff", Type::Text).unwrap_err().code, "22021");
        assert_eq!(
            Datum::from_binary(&(i64::MAX - 1).to_be_bytes(), Type::Timestamp).unwrap_err().code,
            "22008"
        );
    }
}

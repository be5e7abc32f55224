//! Forms of values on the wire: text, or PostgreSQL's binary form.

use crate::decode::text;
use bytes::Bytes;
use hotrow_sql::SqlError;
use hotrow_sql::values::{Datum, Type};

/// The form of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// As a person writes it.
    Text,
    /// As PostgreSQL holds it.
    Binary,
}

impl Format {
    /// The format of a code.
    fn of_code(code: i16) -> Result<Self, SqlError> {
        match code {
            0 => Ok(Self::Text),
            1 => Ok(Self::Binary),
            _ => Err(SqlError::new("22023", format!("unsupported format code: {code}"))),
        }
    }

    /// Its code.
    pub(crate) fn code(self) -> i16 {
        match self {
            Self::Text => 0,
            Self::Binary => 1,
        }
    }

    /// Writes a value that is not null.
    pub(crate) fn write(self, value: &Datum, ty: Type, out: &mut Vec<u8>) {
        match self {
            Self::Text => value.write_text(ty, out),
            Self::Binary => value.write_binary(ty, out),
        }
    }

    /// Reads a value.
    fn read(self, bytes: &[u8], ty: Type) -> Result<Datum, SqlError> {
        match self {
            Self::Text => Datum::parse(text(bytes)?, ty),
            Self::Binary => Datum::from_binary(bytes, ty),
        }
    }
}

/// The formats of several values: none named, so that all are text; one for all; or one each.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Formats(Box<[Format]>);

impl Formats {
    /// The formats of a message's codes.
    pub(crate) fn of_codes(codes: &[i16]) -> Result<Self, SqlError> {
        // The usual case, all text, needs no memory.
        if codes.iter().all(|&code| code == 0) && codes.len() <= 1 {
            return Ok(Self::default());
        }
        codes.iter().map(|&code| Format::of_code(code)).collect::<Result<_, _>>().map(Self)
    }

    /// True if all values are text.
    pub(crate) fn is_text(&self) -> bool {
        self.0.is_empty()
    }

    /// The format of one value by its index.
    pub(crate) fn of(&self, index: usize) -> Format {
        match &*self.0 {
            [] => Format::Text,
            [all] => *all,
            each => each.get(index).copied().unwrap_or(Format::Text),
        }
    }

    /// True if they may be those of so many values.
    pub(crate) fn fit(&self, count: usize) -> bool {
        self.0.len() <= 1 || self.0.len() == count
    }

    /// Their number.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

/// The values of a statement's parameters.
pub(crate) fn parameters(
    statement: &str,
    codes: &[i16],
    values: &[Option<Bytes>],
    types: &[Type],
) -> Result<Vec<Datum>, SqlError> {
    if codes.len() > 1 && codes.len() != values.len() {
        let message =
            format!("bind message has {} parameter formats but {} parameters", codes.len(), values.len());
        return Err(SqlError::new("08P01", message));
    }
    if values.len() != types.len() {
        let message = format!(
            "bind message supplies {} parameters, but prepared statement \"{statement}\" requires {}",
            values.len(),
            types.len()
        );
        return Err(SqlError::new("08P01", message));
    }
    let formats = Formats::of_codes(codes)?;
    let read = |(index, (value, &ty)): (usize, (&Option<Bytes>, &Type))| match value {
        Some(bytes) => formats.of(index).read(bytes, ty),
        None => Ok(Datum::Null),
    };
    values.iter().zip(types).enumerate().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(result: Result<Vec<Datum>, SqlError>) -> &'static str {
        result.unwrap_err().code
    }

    #[test]
    fn codes_are_none_one_or_one_each() {
        let values = [Some(Bytes::from_static(b"a")), None];
        let types = [Type::Text, Type::Text];
        for codes in [&[][..], &[0], &[1], &[0, 1]] {
            assert_eq!(
                parameters("", codes, &values, &types).unwrap(),
                [Datum::Text("a".into()), Datum::Null]
            );
        }
        assert_eq!(code(parameters("", &[0, 0, 0], &values, &types)), "08P01");
        assert_eq!(code(parameters("", &[], &values, &types[..1])), "08P01");
        assert_eq!(code(parameters("", &[2], &values, &types)), "22023");
    }

    #[test]
    fn text_that_is_not_utf8_is_no_value() {
        for bytes in [&b"\xff"[..], b"a\0"] {
            assert_eq!(code(parameters("", &[], &[Some(Bytes::from_static(bytes))], &[Type::Text])), "22021");
        }
    }
}

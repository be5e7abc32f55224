//! Values of SQL.

use super::interval::Interval;
use super::numeric::Numeric;
use hotrow::{Stored, Value};
use std::sync::Arc;

/// A value, or null.
#[derive(Debug, Clone, PartialEq, Stored, Value)]
pub enum Datum {
    /// No value.
    Null,
    /// `bool`.
    Bool(bool),
    /// `int2`.
    Int2(i16),
    /// `int4`.
    Int4(i32),
    /// `int8`.
    Int8(i64),
    /// `float4`.
    Float4(f32),
    /// `float8`.
    Float8(f64),
    /// `numeric`.
    Numeric(Box<Numeric>),
    /// `text`, `varchar`, `char` (padded with blanks, as it is sent), `name`.
    Text(Arc<str>),
    /// `bytea`.
    Bytes(Box<[u8]>),
    /// `date`: days since 2000-01-01.
    Date(i32),
    /// `timestamp`: microseconds since 2000-01-01 00:00, of no time zone.
    Timestamp(i64),
    /// `timestamptz`: microseconds since 2000-01-01 00:00 UTC.
    TimestampTz(i64),
    /// `uuid`.
    Uuid([u8; 16]),
    /// `oid`, `regclass` and their like.
    Oid(u32),
    /// An array of one dimension.
    Array(Arc<Vec<Datum>>),
    /// `interval`.
    Interval(Interval),
    /// `time`: microseconds since midnight.
    Time(i64),
}

impl Datum {
    /// A text.
    pub fn text(text: impl Into<Arc<str>>) -> Self {
        Self::Text(text.into())
    }

    /// A number of any length.
    pub fn numeric(number: Numeric) -> Self {
        Self::Numeric(Box::new(number))
    }

    /// An array.
    pub fn array(elements: Vec<Datum>) -> Self {
        Self::Array(Arc::new(elements))
    }

    /// True if there is no value.
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// The text, if it is one.
    pub fn as_text(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    /// The whole number, if it is one: of an integer type or an object's number.
    pub fn as_integer(&self) -> Option<i64> {
        match self {
            Self::Int2(number) => Some(i64::from(*number)),
            Self::Int4(number) => Some(i64::from(*number)),
            Self::Int8(number) => Some(*number),
            Self::Oid(number) => Some(i64::from(*number)),
            _ => None,
        }
    }
}

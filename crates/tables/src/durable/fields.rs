//! Rows as lists of fields, so that a commit logs only those that it has changed.
//!
//! This is for inline rows ([`Value::FIELDS`]) that serde sees as a struct with the same fields. Each field is in the format of
//! postcard, behind its length: a byte, or 255 and four bytes. A field that was changed later is a part of the row in the log, and takes
//! the place of the one in the row.

use super::codec::put;
use hotrow_core::Value;
use hotrow_log::entry::{PartsWriter, push_counted, take_counted};
use serde::de::{self, DeserializeOwned, DeserializeSeed, Deserializer, SeqAccess, Visitor};
use serde::ser::{self, Impossible, Serialize, SerializeStruct, Serializer};
use std::fmt;

/// The most fields that are told apart.
const FIELDS_MAX: usize = 64;

/// True if rows of a type are written as lists of their fields.
pub(super) fn has_fields<R: Value + DeserializeOwned>() -> bool {
    let names: Vec<_> = R::FIELDS.iter().map(|field| field.name).collect();
    (1..=FIELDS_MAX).contains(&names.len())
        && matches!(R::deserialize(Names), Err(Failure::Fields(found)) if found == names)
}

/// The fields in which two rows differ, one bit each.
pub(super) fn changed_fields<R: Value>(before: &R, after: &R) -> u64 {
    let (before, after) = (std::ptr::from_ref(before).cast::<u8>(), std::ptr::from_ref(after).cast::<u8>());
    // SAFETY: only inline values have fields, and they are plain data without padding; fields lie within them.
    let bytes = |row: *const u8, at: usize, count| unsafe { std::slice::from_raw_parts(row.add(at), count) };
    let differ = R::FIELDS
        .iter()
        .map(|field| bytes(before, field.offset, field.bytes) != bytes(after, field.offset, field.bytes));
    differ.enumerate().fold(0, |fields, (at, differs)| fields | u64::from(differs) << at)
}

/// The fields that have bytes in a range of the row, one bit each.
pub(super) fn fields_in<R: Value>(first: usize, bytes: usize) -> u64 {
    let is_in = |offset: usize, size: usize| offset < first + bytes && first < offset + size;
    let fields = R::FIELDS.iter().enumerate();
    fields.fold(0, |all, (at, field)| all | u64::from(is_in(field.offset, field.bytes)) << at)
}

/// The place where fields are written.
trait FieldSink {
    /// Takes a field: its number, and a function that appends its bytes.
    fn put(
        &mut self,
        number: u32,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), String>,
    ) -> Result<(), String>;
}

/// A row's bytes.
struct Row<'v>(&'v mut Vec<u8>);

impl FieldSink for Row<'_> {
    #[inline]
    fn put(&mut self, _: u32, write: impl FnOnce(&mut Vec<u8>) -> Result<(), String>) -> Result<(), String> {
        push_counted(self.0, write)
    }
}

impl FieldSink for PartsWriter<'_> {
    #[inline]
    fn put(
        &mut self,
        number: u32,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), String>,
    ) -> Result<(), String> {
        PartsWriter::put(self, number, write)
    }
}

/// Appends a whole row.
pub(super) fn put_row<R: Serialize>(row: &R, bytes: &mut Vec<u8>) -> Result<(), String> {
    put_wanted(row, u64::MAX, &mut Row(bytes))
}

/// Adds some of a row's fields to an entry.
pub(super) fn put_fields<R: Serialize>(
    row: &R,
    fields: u64,
    parts: &mut PartsWriter<'_>,
) -> Result<(), String> {
    put_wanted(row, fields, parts)
}

#[inline]
fn put_wanted<R: Serialize>(row: &R, wanted: u64, sink: &mut impl FieldSink) -> Result<(), String> {
    row.serialize(Fields { wanted, next: 0, sink }).map_err(|failure| failure.to_string())
}

/// Reads a row.
pub(super) fn get_row<R: DeserializeOwned>(bytes: &[u8]) -> Result<R, String> {
    R::deserialize(FieldsOf(split(bytes)?.into_iter())).map_err(|failure| failure.to_string())
}

/// Puts newer fields in the place of those of a row.
pub(super) fn with_newer(row: &[u8], newer: &[(u32, &[u8])]) -> Result<Vec<u8>, String> {
    let mut fields = split(row)?;
    for (number, field) in newer {
        *fields.get_mut(*number as usize).ok_or("there is no such field")? = field;
    }
    let mut bytes = Vec::with_capacity(row.len());
    for field in fields {
        let put = |bytes: &mut Vec<u8>| {
            bytes.extend_from_slice(field);
            Ok::<_, String>(())
        };
        push_counted(&mut bytes, put)?;
    }
    Ok(bytes)
}

/// The fields of a row.
fn split(row: &[u8]) -> Result<Vec<&[u8]>, String> {
    let (mut fields, mut rest) = (Vec::new(), row);
    while !rest.is_empty() {
        fields.push(take_counted(&mut rest).ok_or("a field ends behind the row")?);
    }
    Ok(fields)
}

#[derive(Debug)]
enum Failure {
    /// The fields that were asked for.
    Fields(&'static [&'static str]),
    Other(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fields(_) => f.write_str("no row"),
            Self::Other(words) => f.write_str(words),
        }
    }
}

impl std::error::Error for Failure {}

impl de::Error for Failure {
    fn custom<T: fmt::Display>(words: T) -> Self {
        Self::Other(words.to_string())
    }
}

impl ser::Error for Failure {
    fn custom<T: fmt::Display>(words: T) -> Self {
        Self::Other(words.to_string())
    }
}

fn no_struct() -> Failure {
    Failure::Other(String::from("the row is no struct"))
}

/// Finds the names of a struct's fields.
struct Names;

impl<'de> Deserializer<'de> for Names {
    type Error = Failure;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Failure> {
        Err(no_struct())
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Failure> {
        Err(Failure::Fields(fields))
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

/// Reads a struct from its fields.
struct FieldsOf<I>(I);

impl<'de, 'f: 'de, I: Iterator<Item = &'f [u8]>> Deserializer<'de> for FieldsOf<I> {
    type Error = Failure;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Failure> {
        Err(no_struct())
    }

    fn deserialize_struct<V: Visitor<'de>>(
        mut self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Failure> {
        let value = visitor.visit_seq(&mut self)?;
        match self.0.next() {
            None => Ok(value),
            Some(_) => Err(Failure::Other(String::from("the row has too many fields"))),
        }
    }

    fn is_human_readable(&self) -> bool {
        false
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

impl<'de, 'f: 'de, I: Iterator<Item = &'f [u8]>> SeqAccess<'de> for FieldsOf<I> {
    type Error = Failure;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Failure> {
        let Some(bytes) = self.0.next() else { return Ok(None) };
        let mut reader = postcard::Deserializer::from_bytes(bytes);
        let value = seed.deserialize(&mut reader).map_err(de::Error::custom)?;
        match reader.finalize() {
            Ok([]) => Ok(Some(value)),
            _ => Err(Failure::Other(String::from("a field is too long"))),
        }
    }
}

/// Writes the wanted fields of a struct.
struct Fields<'s, S> {
    wanted: u64,
    next: u32,
    sink: &'s mut S,
}

impl<S: FieldSink> SerializeStruct for Fields<'_, S> {
    type Ok = ();
    type Error = Failure;

    #[inline]
    fn serialize_field<T: ?Sized + Serialize>(&mut self, _: &'static str, value: &T) -> Result<(), Failure> {
        let number = self.next;
        self.next += 1;
        if self.wanted >> number & 1 == 0 {
            return Ok(());
        }
        self.sink.put(number, |bytes| put(value, bytes)).map_err(Failure::Other)
    }

    fn end(self) -> Result<(), Failure> {
        Ok(())
    }
}

/// Refuses what is no struct.
macro_rules! refused {
    ($($method:ident($($argument:ty),*) -> $ok:ty;)+) => {$(
        fn $method(self, $(_: $argument),*) -> Result<$ok, Failure> {
            Err(no_struct())
        }
    )+};
}

impl<S: FieldSink> Serializer for Fields<'_, S> {
    type Ok = ();
    type Error = Failure;
    type SerializeSeq = Impossible<(), Failure>;
    type SerializeTuple = Impossible<(), Failure>;
    type SerializeTupleStruct = Impossible<(), Failure>;
    type SerializeTupleVariant = Impossible<(), Failure>;
    type SerializeMap = Impossible<(), Failure>;
    type SerializeStruct = Self;
    type SerializeStructVariant = Impossible<(), Failure>;

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Self, Failure> {
        Ok(self)
    }

    fn is_human_readable(&self) -> bool {
        false
    }

    refused! {
        serialize_bool(bool) -> ();
        serialize_i8(i8) -> ();
        serialize_i16(i16) -> ();
        serialize_i32(i32) -> ();
        serialize_i64(i64) -> ();
        serialize_u8(u8) -> ();
        serialize_u16(u16) -> ();
        serialize_u32(u32) -> ();
        serialize_u64(u64) -> ();
        serialize_f32(f32) -> ();
        serialize_f64(f64) -> ();
        serialize_char(char) -> ();
        serialize_str(&str) -> ();
        serialize_bytes(&[u8]) -> ();
        serialize_none() -> ();
        serialize_unit() -> ();
        serialize_unit_struct(&'static str) -> ();
        serialize_unit_variant(&'static str, u32, &'static str) -> ();
        serialize_seq(Option<usize>) -> Self::SerializeSeq;
        serialize_tuple(usize) -> Self::SerializeTuple;
        serialize_tuple_struct(&'static str, usize) -> Self::SerializeTupleStruct;
        serialize_tuple_variant(&'static str, u32, &'static str, usize) -> Self::SerializeTupleVariant;
        serialize_map(Option<usize>) -> Self::SerializeMap;
        serialize_struct_variant(&'static str, u32, &'static str, usize) -> Self::SerializeStructVariant;
    }

    fn serialize_some<T: ?Sized + Serialize>(self, _: &T) -> Result<(), Failure> {
        Err(no_struct())
    }

    fn serialize_newtype_struct<T: ?Sized + Serialize>(self, _: &'static str, _: &T) -> Result<(), Failure> {
        Err(no_struct())
    }

    fn serialize_newtype_variant<T: ?Sized + Serialize>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Result<(), Failure> {
        Err(no_struct())
    }
}

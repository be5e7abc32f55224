//! The shape of a type, as text: what a log keeps of a table's keys and rows, to recognise them when they are read again.
//!
//! A type is asked to deserialize itself by a deserializer that writes down what is asked for, and answers with zeros. So the
//! shape says all that the format of the bytes depends on: kinds of numbers, the names and order of fields, the names and order of an enum's
//! variants. It does not say what the variants of an enum hold besides the first, nor what no zero can be part of
//! (`NonZeroU32`): of these there is only the name. The names of types do not count, so that a type may be renamed or moved.

use serde::Deserialize;
use serde::de::value::U32Deserializer;
use serde::de::{
    self, DeserializeSeed, Deserializer, EnumAccess, IntoDeserializer, MapAccess, SeqAccess, VariantAccess,
    Visitor,
};
use std::any::type_name;
use std::fmt::{self, Write};

/// The most types within each other that are followed; deeper ones are recursive.
const DEPTH_MAX: usize = 32;

/// The most characters of a shape.
const LENGTH_MAX: usize = 1 << 16;

/// The shape of a type.
pub(super) fn shape_of<'de, T: Deserialize<'de>>() -> String {
    let mut text = String::new();
    match T::deserialize(Tracer { text: &mut text, depth: 0 }) {
        Ok(_) => text,
        // A type that refuses zeros, or borrows.
        Err(_) => format!("{text} of {}", type_name::<T>()),
    }
}

/// A type cannot be followed further.
#[derive(Debug)]
struct Stop;

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no shape")
    }
}

impl std::error::Error for Stop {}

impl de::Error for Stop {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self
    }
}

struct Tracer<'t> {
    text: &'t mut String,
    depth: usize,
}

impl Tracer<'_> {
    fn note(&mut self, words: &str) {
        self.text.push_str(words);
    }

    fn inner(&mut self) -> Result<Tracer<'_>, Stop> {
        if self.depth >= DEPTH_MAX || self.text.len() >= LENGTH_MAX {
            self.text.push('…');
            return Err(Stop);
        }
        Ok(Tracer { text: self.text, depth: self.depth + 1 })
    }

    /// Notes parts in brackets.
    fn parts<'de, V: Visitor<'de>>(mut self, parts: Parts<'_>, visitor: V) -> Result<V::Value, Stop> {
        self.note("(");
        let value = visitor.visit_seq(Sequence { tracer: self.inner()?, parts, next: 0 })?;
        self.note(")");
        Ok(value)
    }
}

/// The parts of a sequence.
#[derive(Clone, Copy)]
enum Parts<'p> {
    /// So many, without names.
    Count(usize),
    Fields(&'p [&'static str]),
}

struct Sequence<'t, 'p> {
    tracer: Tracer<'t>,
    parts: Parts<'p>,
    next: usize,
}

impl<'de> SeqAccess<'de> for Sequence<'_, '_> {
    type Error = Stop;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Stop> {
        let (count, name) = match self.parts {
            Parts::Count(count) => (count, None),
            Parts::Fields(names) => (names.len(), names.get(self.next)),
        };
        if self.next >= count {
            return Ok(None);
        }
        if self.next > 0 {
            self.tracer.note(", ");
        }
        if let Some(name) = name {
            self.tracer.note(name);
            self.tracer.note(": ");
        }
        self.next += 1;
        seed.deserialize(self.tracer.inner()?).map(Some)
    }
}

/// One pair of a map.
struct Pair<'t> {
    tracer: Tracer<'t>,
    is_over: bool,
}

impl<'de> MapAccess<'de> for Pair<'_> {
    type Error = Stop;

    fn next_key_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Stop> {
        if std::mem::replace(&mut self.is_over, true) {
            return Ok(None);
        }
        seed.deserialize(self.tracer.inner()?).map(Some)
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, Stop> {
        self.tracer.note(" to ");
        seed.deserialize(self.tracer.inner()?)
    }
}

/// The first variant of an enum.
struct FirstVariant<'t>(Tracer<'t>);

impl<'de, 't> EnumAccess<'de> for FirstVariant<'t> {
    type Error = Stop;
    type Variant = Tracer<'t>;

    fn variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<(T::Value, Tracer<'t>), Stop> {
        let first: U32Deserializer<Stop> = 0u32.into_deserializer();
        Ok((seed.deserialize(first)?, self.0))
    }
}

impl<'de> VariantAccess<'de> for Tracer<'_> {
    type Error = Stop;

    fn unit_variant(self) -> Result<(), Stop> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Stop> {
        seed.deserialize(self)
    }

    fn tuple_variant<V: Visitor<'de>>(self, count: usize, visitor: V) -> Result<V::Value, Stop> {
        self.parts(Parts::Count(count), visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Stop> {
        self.parts(Parts::Fields(fields), visitor)
    }
}

/// Answers with a zero.
macro_rules! zeros {
    ($($method:ident $visit:ident $kind:ident)+) => {$(
        fn $method<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Stop> {
            self.note(stringify!($kind));
            visitor.$visit(Default::default())
        }
    )+};
}

impl<'de> Deserializer<'de> for Tracer<'_> {
    type Error = Stop;

    zeros! {
        deserialize_bool visit_bool bool
        deserialize_i8 visit_i8 i8
        deserialize_i16 visit_i16 i16
        deserialize_i32 visit_i32 i32
        deserialize_i64 visit_i64 i64
        deserialize_i128 visit_i128 i128
        deserialize_u8 visit_u8 u8
        deserialize_u16 visit_u16 u16
        deserialize_u32 visit_u32 u32
        deserialize_u64 visit_u64 u64
        deserialize_u128 visit_u128 u128
        deserialize_f32 visit_f32 f32
        deserialize_f64 visit_f64 f64
        deserialize_char visit_char char
        deserialize_str visit_borrowed_str text
        deserialize_string visit_string text
        deserialize_bytes visit_borrowed_bytes bytes
        deserialize_byte_buf visit_byte_buf bytes
    }

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Stop> {
        // The type depends on the data.
        Err(Stop)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Stop> {
        Err(Stop)
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Stop> {
        Err(Stop)
    }

    fn deserialize_option<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Stop> {
        self.note("optional ");
        visitor.visit_some(self.inner()?)
    }

    fn deserialize_unit<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Stop> {
        self.note("()");
        visitor.visit_unit()
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Stop> {
        self.deserialize_unit(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        mut self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Stop> {
        visitor.visit_newtype_struct(self.inner()?)
    }

    fn deserialize_seq<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Stop> {
        self.note("list of ");
        self.parts(Parts::Count(1), visitor)
    }

    fn deserialize_tuple<V: Visitor<'de>>(mut self, count: usize, visitor: V) -> Result<V::Value, Stop> {
        // Long arrays have elements of one type. What the others are asked for is thrown away.
        if count > 4 {
            let _ = write!(self.text, "{count} ");
            let before = self.text.len();
            let value = self.inner()?.parts(Parts::Count(count), visitor)?;
            let first = self.text[before..].split(", ").next().unwrap_or_default().to_owned();
            let same = self.text[before + 1..self.text.len() - 1].split(", ").all(|part| part == &first[1..]);
            if same {
                self.text.truncate(before);
                self.text.push_str(&first[1..]);
            }
            return Ok(value);
        }
        self.parts(Parts::Count(count), visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        count: usize,
        visitor: V,
    ) -> Result<V::Value, Stop> {
        self.deserialize_tuple(count, visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Stop> {
        self.note("map of ");
        visitor.visit_map(Pair { tracer: self.inner()?, is_over: false })
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Stop> {
        self.parts(Parts::Fields(fields), visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        mut self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Stop> {
        let _ = write!(self.text, "one of {} ", variants.join("|"));
        visitor.visit_enum(FirstVariant(self.inner()?))
    }

    fn is_human_readable(&self) -> bool {
        // As the format of the log.
        false
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Deserialize)]
    #[expect(dead_code)]
    struct Account {
        owner: String,
        balance: i64,
        pin: [u8; 16],
        kind: Kind,
        limit: Option<(u32, f64)>,
        notes: Vec<String>,
    }

    #[derive(Deserialize)]
    #[expect(dead_code)]
    enum Kind {
        Plain,
        Joint(u8),
    }

    #[derive(Deserialize)]
    #[expect(dead_code)]
    struct Node {
        next: Option<Box<Node>>,
    }

    #[test]
    fn a_shape_says_what_the_bytes_depend_on() {
        assert_eq!(shape_of::<u64>(), "u64");
        assert_eq!(
            shape_of::<Account>(),
            "(owner: text, balance: i64, pin: 16 u8, kind: one of Plain|Joint , limit: optional (u32, f64), \
             notes: list of (text))"
        );
        assert_ne!(shape_of::<(u32, u64)>(), shape_of::<(u64, u32)>());
        assert!(shape_of::<std::num::NonZeroU32>().contains("NonZero"));
    }

    #[test]
    fn a_recursive_type_has_an_end() {
        assert!(shape_of::<Node>().len() < LENGTH_MAX);
        assert_eq!(shape_of::<Node>(), shape_of::<Node>());
    }
}

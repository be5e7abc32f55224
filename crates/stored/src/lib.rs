//! Stored types: a complete schema of each, and its values as bytes.
//!
//! A durable database keeps keys and rows as bytes, and with them the [`Schema`] of their types: all kinds of numbers, all fields and all
//! variants, by name, with everything that they hold. It is known from the type alone, without a value. So a database that is opened by
//! another program, or by a later version of the same one, tells before it reads any row if the rows have the program's types.
//!
//! A type has a schema because it is [`Stored`]: derive it for a struct or an enum. The names of types do not count, nor the modules
//! that they are in.
//!
//! # Safe changes
//!
//! A type may change as follows; rows of the earlier type are read as the new one.
//!
//! | change | says |
//! |---|---|
//! | a field is added to a struct, or to a variant with named fields | `#[stored(default)]` or `#[stored(default = EXPRESSION)]` at the field |
//! | a variant is added behind all others | |
//! | a field or a variant has another name | `#[stored(alias = "OLD NAME")]` at it |
//!
//! Everything else is refused ([`Difference`]), with the place: `row.price: i32 was u32`.
//!
//! # Foreign types
//!
//! For a field whose type is another crate's and is not stored, `#[stored(with = "CODEC")]` names a [`Codec`]: [`AsText`] for what is
//! written by `Display` and read by `FromStr`, [`With`] for a [`Conversion`] to a type that is stored, and what containers make of these
//! ([`OptionalOf`], [`ListOf`], ...). A type of one's own is stored as another one by `#[stored(as = "FORM")]` on the type.
//!
//! # Bytes
//!
//! docs/log-format.md describes them. They cannot be told apart without the schema. What is decoded is checked: arbitrary bytes give
//! a value or [`Malformed`], and never more memory than the bytes can fill.

// Derived code names this crate by a path to what has it as `stored`, as the facade does.
#[doc(hidden)]
pub mod facade {
    pub use crate as stored;
}

mod codec;
mod compare;
mod containers;
mod form;
mod number;
mod plain;
mod reader;
mod schema;
#[cfg(test)]
mod tests;
mod writer;

pub use codec::{AsForm, AsText, Codec, Conversion, Itself, NotKept, With};
pub use compare::{Change, Difference, Plan};
pub use containers::{ArrayOf, BoxOf, ListOf, OptionalOf, PairOf, QuadrupleOf, TripleOf};
pub use form::{IsNotStored, IsStored, Probe, StoredForm};
pub use hotrow_derive::Stored;
pub use reader::{Malformed, Reader};
pub use schema::{Definition, Field, Kind, Schema, SchemaBuilder, Type, Variant};
pub use writer::Writer;

/// A type with a complete schema, whose values can be written as bytes and read again.
///
/// Derive it. The fields' types are stored themselves: numbers, `bool`, `char`, strings, [`Duration`](std::time::Duration),
/// [`SystemTime`](std::time::SystemTime), addresses, `NonZero`, UUIDs (feature `uuid`); options, results, boxes, vectors, arrays, tuples,
/// maps and sets of stored types; other types that derive it. Recursive types are stored as well.
///
/// ```
/// # mod hotrow { pub use hotrow_stored as stored; pub use hotrow_stored::Stored; }
/// use hotrow::{Stored, stored::{Reader, Schema, Writer}};
///
/// #[derive(Debug, PartialEq, Stored)]
/// # #[hotrow(crate = "hotrow")]
/// struct Order {
///     item: String,
///     #[stored(alias = "count")]
///     pieces: u32,
///     #[stored(default = Payment::Open)]
///     payment: Payment,
/// }
///
/// #[derive(Debug, PartialEq, Stored)]
/// # #[hotrow(crate = "hotrow")]
/// enum Payment {
///     Open,
///     Paid { cents: u64 },
/// }
///
/// let schema = Schema::of::<Order>();
/// assert_eq!(schema.to_string(), "{item: text, pieces: u32, payment: Open | Paid {cents: u64}}");
///
/// let order = Order { item: "tea".into(), pieces: 2, payment: Payment::Paid { cents: 700 } };
/// let mut bytes = Vec::new();
/// Writer::write(&mut bytes, |to| order.put(to)).unwrap();
/// assert_eq!(Reader::read(&bytes, Order::get), Ok(order));
/// ```
///
/// # Types
///
/// | attribute of the type | meaning |
/// |---|---|
/// | `#[stored(as = "FORM")]` | values are stored as those of another type, which is stored: `From<&Self>` makes one, `TryFrom` leads back |
///
/// # Fields and variants
///
/// | attribute | meaning |
/// |---|---|
/// | `#[stored(default)]` | rows that were written before the field was added have `Default::default()` |
/// | `#[stored(default = EXPRESSION)]` | they have this; it is evaluated once, when the schema is made |
/// | `#[stored(alias = "NAME")]` | the field or variant had this name earlier; may be repeated |
/// | `#[stored(with = "CODEC")]` | the field is written and read by a [`Codec`] |
///
/// # By hand
///
/// An implementation by hand must read what it writes, all of it and no more, and [`schema`](Self::schema) must say
/// what that is. One that contains its own type calls [`Writer::nested`] and [`Reader::nested`] around its parts.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be stored",
    label = "has no stored form",
    note = "for a type of your own, add `#[derive(hotrow::Stored)]`",
    note = "for a field of a type of another crate, name a codec: `#[stored(with = \"hotrow::stored::AsText\")]`, or another `Codec`"
)]
pub trait Stored: Sized + 'static {
    /// The number of named fields that [`put_field`](Self::put_field) can write apart; 0 for what is no struct.
    const FIELDS: usize = 0;

    /// Makes the type's part of a schema.
    fn schema(types: &mut SchemaBuilder) -> Type;

    /// Writes a value.
    fn put(&self, to: &mut Writer<'_>);

    /// Reads a value.
    ///
    /// # Errors
    ///
    /// [`Malformed`] if the bytes are not those of a value.
    fn get(from: &mut Reader<'_>) -> Result<Self, Malformed>;

    /// Writes one field of a struct, exactly as [`put`](Self::put) writes it among the others.
    fn put_field(&self, field: usize, to: &mut Writer<'_>) {
        let _ = (field, to);
    }
}

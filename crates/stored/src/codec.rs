//! Ways to write and read a type: its own, and those of types that have none.

use crate::{Malformed, Reader, SchemaBuilder, Stored, Type, Writer};
use std::fmt::Display;
use std::str::FromStr;

/// A way to store values of a type, whether or not the type has one of its own: what `#[stored(with = "...")]` names.
///
/// `put` must write what `get` reads, and `schema` must say what that is.
pub trait Codec<T>: 'static {
    /// Makes the part of a schema.
    fn schema(types: &mut SchemaBuilder) -> Type;

    /// Writes a value.
    fn put(value: &T, to: &mut Writer<'_>);

    /// Reads a value.
    ///
    /// # Errors
    ///
    /// [`Malformed`] if the bytes are not those of a value.
    fn get(from: &mut Reader<'_>) -> Result<T, Malformed>;
}

/// The way of a type that is [`Stored`].
#[derive(Debug)]
pub struct Itself;

impl<T: Stored> Codec<T> for Itself {
    #[inline]
    fn schema(types: &mut SchemaBuilder) -> Type {
        T::schema(types)
    }

    #[inline]
    fn put(value: &T, to: &mut Writer<'_>) {
        value.put(to);
    }

    #[inline]
    fn get(from: &mut Reader<'_>) -> Result<T, Malformed> {
        T::get(from)
    }
}

/// A conversion to a type that is stored, and back.
///
/// ```
/// # mod hotrow { pub use hotrow_stored as stored; pub use hotrow_stored::Stored; }
/// use hotrow::{Stored, stored::{Conversion, With}};
/// # use std::cmp::Ordering as ForeignOrdering;
///
/// struct AsSign;
///
/// impl Conversion<ForeignOrdering> for AsSign {
///     type Form = i8;
///     type Error = String;
///
///     fn form(value: &ForeignOrdering) -> i8 {
///         *value as i8
///     }
///
///     fn value(form: i8) -> Result<ForeignOrdering, String> {
///         match form {
///             -1..=1 => Ok(form.cmp(&0)),
///             _ => Err(format!("{form} is no sign")),
///         }
///     }
/// }
///
/// #[derive(Stored)]
/// # #[hotrow(crate = "hotrow")]
/// struct Comparison {
///     left: String,
///     right: String,
///     #[stored(with = "With<AsSign>")]
///     result: ForeignOrdering,
/// }
/// ```
pub trait Conversion<T>: 'static {
    /// The type as which values are stored. Its schema counts.
    type Form: Stored;
    /// The reason for which a stored value leads to no value.
    type Error: Display;

    /// Returns the form of a value.
    fn form(value: &T) -> Self::Form;

    /// Returns the value of a form.
    ///
    /// # Errors
    ///
    /// If there is none. A value whose own form has none is refused when it is written.
    fn value(form: Self::Form) -> Result<T, Self::Error>;
}

/// The [`Codec`] of a [`Conversion`]. A value whose form does not lead back is refused before it is committed.
#[derive(Debug)]
pub struct With<C>(C);

impl<T, C: Conversion<T>> Codec<T> for With<C> {
    fn schema(types: &mut SchemaBuilder) -> Type {
        C::Form::schema(types)
    }

    fn put(value: &T, to: &mut Writer<'_>) {
        let form = C::form(value);
        form.put(to);
        if let Err(reason) = C::value(form) {
            to.refuse(format!("its stored form cannot be read back: {reason}"));
        }
    }

    fn get(from: &mut Reader<'_>) -> Result<T, Malformed> {
        C::value(C::Form::get(from)?).map_err(|reason| Malformed::new(reason.to_string()))
    }
}

/// The [`Codec`] of types that are written by [`Display`] and read by [`FromStr`]: as text. A value whose text does not lead back is refused
/// before it is committed.
#[derive(Debug)]
pub struct AsText;

impl<T: Display + FromStr> Conversion<T> for AsText
where
    T::Err: Display,
{
    type Form = String;
    type Error = T::Err;

    fn form(value: &T) -> String {
        value.to_string()
    }

    fn value(form: String) -> Result<T, T::Err> {
        form.parse()
    }
}

impl<T: Display + FromStr> Codec<T> for AsText
where
    T::Err: Display,
{
    fn schema(types: &mut SchemaBuilder) -> Type {
        String::schema(types)
    }

    fn put(value: &T, to: &mut Writer<'_>) {
        <With<Self> as Codec<T>>::put(value, to);
    }

    fn get(from: &mut Reader<'_>) -> Result<T, Malformed> {
        <With<Self> as Codec<T>>::get(from)
    }
}

/// The [`Codec`] of a field that is not kept: it has no bytes, and is `Default::default()` when it is read.
#[derive(Debug)]
pub struct NotKept;

impl<T: Default> Codec<T> for NotKept {
    fn schema(_: &mut SchemaBuilder) -> Type {
        Type::Plain(crate::Kind::Unit)
    }

    fn put(_: &T, _: &mut Writer<'_>) {}

    fn get(_: &mut Reader<'_>) -> Result<T, Malformed> {
        Ok(T::default())
    }
}

/// The conversion of `#[stored(as = "FORM")]`.
#[doc(hidden)]
#[derive(Debug)]
pub struct AsForm<F>(F);

impl<T, F> Conversion<T> for AsForm<F>
where
    F: Stored + for<'v> From<&'v T>,
    T: TryFrom<F, Error: Display>,
{
    type Form = F;
    type Error = T::Error;

    fn form(value: &T) -> F {
        value.into()
    }

    fn value(form: F) -> Result<T, T::Error> {
        form.try_into()
    }
}

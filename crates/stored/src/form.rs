//! The stored form of a type of which it is not known when compiling if it has one.

use crate::{Codec, Itself, Malformed, Reader, Schema, SchemaBuilder, Stored, Type, Writer};
use std::fmt;
use std::marker::PhantomData;

/// The functions that store a type.
pub struct StoredForm<T> {
    /// As [`Stored::schema`].
    pub schema: fn(&mut SchemaBuilder) -> Type,
    /// As [`Stored::put`].
    pub put: fn(&T, &mut Writer<'_>),
    /// As [`Stored::get`].
    pub get: fn(&mut Reader<'_>) -> Result<T, Malformed>,
    /// As [`Stored::FIELDS`].
    pub fields: usize,
    /// As [`Stored::put_field`].
    pub put_field: fn(&T, usize, &mut Writer<'_>),
}

impl<T> Clone for StoredForm<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for StoredForm<T> {}

impl<T> fmt::Debug for StoredForm<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StoredForm").field(&self.schema().to_string()).finish()
    }
}

impl<T> StoredForm<T> {
    /// The form of a type that is stored.
    #[inline]
    pub const fn of() -> Self
    where
        T: Stored,
    {
        let (fields, put_field) = (T::FIELDS, T::put_field as fn(&T, usize, &mut Writer<'_>));
        Self { fields, put_field, ..Self::by::<Itself>() }
    }

    /// The form that a codec gives a type.
    #[inline]
    pub const fn by<C: Codec<T>>() -> Self {
        Self { schema: C::schema, put: C::put, get: C::get, fields: 0, put_field: |_, _, _| () }
    }

    /// The schema of the type.
    pub fn schema(&self) -> Schema {
        Schema::made(self.schema)
    }
}

/// A question to the compiler: `(&Probe::<T>::new()).stored()` is the form of `T` if that is [`Stored`], and `None` otherwise. The method of
/// the type comes before that of the reference. Only for types without parameters of their own.
#[derive(Debug)]
pub struct Probe<T>(PhantomData<T>);

impl<T> Probe<T> {
    /// The question.
    #[allow(clippy::new_without_default)]
    pub const fn new() -> Self {
        Self(PhantomData)
    }
}

/// The answer for types that are stored.
pub trait IsStored<T> {
    /// The form.
    fn stored(&self) -> Option<StoredForm<T>>;
}

impl<T: Stored> IsStored<T> for Probe<T> {
    #[inline]
    fn stored(&self) -> Option<StoredForm<T>> {
        Some(StoredForm::of())
    }
}

/// The answer for types that are not.
pub trait IsNotStored<T> {
    /// `None`.
    fn stored(&self) -> Option<StoredForm<T>>;
}

impl<T> IsNotStored<T> for &Probe<T> {
    #[inline]
    fn stored(&self) -> Option<StoredForm<T>> {
        None
    }
}

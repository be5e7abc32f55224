//! Types with parts of other types.

use crate::{
    Codec, Definition, Field, Itself, Malformed, Reader, SchemaBuilder, Stored, Type, Variant, Writer,
};
use std::any::Any;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::hash::{BuildHasher, Hash};
use std::marker::PhantomData;
use std::sync::Arc;

/// The most bytes for which room is made before there is anything to put there.
const ROOM_BYTES_MAX: usize = 1 << 12;

/// The [`Codec`] of an option.
#[derive(Debug)]
pub struct OptionalOf<C>(PhantomData<C>);

impl<T, C: Codec<T>> Codec<Option<T>> for OptionalOf<C> {
    fn schema(types: &mut SchemaBuilder) -> Type {
        Type::Optional(Box::new(C::schema(types)))
    }

    #[inline]
    fn put(value: &Option<T>, to: &mut Writer<'_>) {
        to.byte(u8::from(value.is_some()));
        if let Some(value) = value {
            C::put(value, to);
        }
    }

    #[inline]
    fn get(from: &mut Reader<'_>) -> Result<Option<T>, Malformed> {
        match from.byte()? {
            0 => Ok(None),
            1 => C::get(from).map(Some),
            _ => Err(Malformed::new("an option is neither there nor not")),
        }
    }
}

/// The [`Codec`] of a box, which has the bytes of its content.
#[derive(Debug)]
pub struct BoxOf<C>(PhantomData<C>);

impl<T, C: Codec<T>> Codec<Box<T>> for BoxOf<C> {
    fn schema(types: &mut SchemaBuilder) -> Type {
        C::schema(types)
    }

    #[inline]
    fn put(value: &Box<T>, to: &mut Writer<'_>) {
        C::put(value, to);
    }

    fn get(from: &mut Reader<'_>) -> Result<Box<T>, Malformed> {
        C::get(from).map(Box::new)
    }
}

/// Writes the number of elements, and these.
fn put_elements<'v, T: 'v, C: Codec<T>>(values: impl ExactSizeIterator<Item = &'v T>, to: &mut Writer<'_>) {
    to.number(values.len() as u64);
    values.for_each(|value| to.element(|to| C::put(value, to)));
}

/// Reads elements, and hands them over one by one.
fn get_elements<T, C: Codec<T>>(
    from: &mut Reader<'_>,
    mut take: impl FnMut(T) -> Result<(), Malformed>,
) -> Result<(), Malformed> {
    let count = from.count()?;
    (0..count).try_for_each(|_| take(from.element(C::get)?))
}

/// The [`Codec`] of a vector.
#[derive(Debug)]
pub struct ListOf<C>(PhantomData<C>);

impl<T: 'static, C: Codec<T>> Codec<Vec<T>> for ListOf<C> {
    fn schema(types: &mut SchemaBuilder) -> Type {
        Type::List(Box::new(C::schema(types)))
    }

    fn put(value: &Vec<T>, to: &mut Writer<'_>) {
        // Bytes as a whole. The type is known at compile time, so the compiler chooses the branch.
        if let Some(bytes) = (value as &dyn Any).downcast_ref::<Vec<u8>>() {
            to.number(bytes.len() as u64);
            to.bytes(bytes);
        } else {
            put_elements::<T, C>(value.iter(), to);
        }
    }

    fn get(from: &mut Reader<'_>) -> Result<Vec<T>, Malformed> {
        let mut values = Vec::new();
        if let Some(bytes) = (&mut values as &mut dyn Any).downcast_mut::<Vec<u8>>() {
            let count = from.count()?;
            bytes.extend_from_slice(from.take(count)?);
            return Ok(values);
        }
        let count = from.count()?;
        values.reserve(count.min(ROOM_BYTES_MAX / size_of::<T>().max(1)));
        for _ in 0..count {
            values.push(from.element(C::get)?);
        }
        Ok(values)
    }
}

/// The [`Codec`] of an array, whose elements follow each other without their number.
#[derive(Debug)]
pub struct ArrayOf<C>(PhantomData<C>);

impl<T: 'static, C: Codec<T>, const N: usize> Codec<[T; N]> for ArrayOf<C> {
    fn schema(types: &mut SchemaBuilder) -> Type {
        Type::Array(N as u64, Box::new(C::schema(types)))
    }

    fn put(value: &[T; N], to: &mut Writer<'_>) {
        if let Some(bytes) = (value as &dyn Any).downcast_ref::<[u8; N]>() {
            to.bytes(bytes);
        } else {
            value.iter().for_each(|value| C::put(value, to));
        }
    }

    fn get(from: &mut Reader<'_>) -> Result<[T; N], Malformed> {
        let mut fault = None;
        let elements: [Option<T>; N] = std::array::from_fn(|_| match fault {
            None => C::get(from).map_err(|malformed| fault = Some(malformed)).ok(),
            Some(_) => None,
        });
        match fault {
            None => Ok(elements.map(|element| element.expect("read without a fault"))),
            Some(fault) => Err(fault),
        }
    }
}

macro_rules! tuples {
    ($($codec:ident $($part:ident $value:ident $at:tt)+;)+) => {$(
        /// The [`Codec`] of a tuple.
        #[derive(Debug)]
        pub struct $codec<$($part),+>(PhantomData<($($part,)+)>);

        // The parameters are called as the types of the parts, so those of the codec have the names of values.
        const _: () = {
            #[allow(non_camel_case_types)]
            impl<$($part, $value: Codec<$part>),+> Codec<($($part,)+)> for $codec<$($value),+> {
                fn schema(types: &mut SchemaBuilder) -> Type {
                    Type::Tuple(vec![$($value::schema(types)),+])
                }

                #[inline]
                fn put(tuple: &($($part,)+), to: &mut Writer<'_>) {
                    $($value::put(&tuple.$at, to);)+
                }

                #[inline]
                fn get(from: &mut Reader<'_>) -> Result<($($part,)+), Malformed> {
                    Ok(($($value::get(from)?,)+))
                }
            }
        };
    )+};
}
tuples! {
    PairOf A a 0 B b 1;
    TripleOf A a 0 B b 1 C c 2;
    QuadrupleOf A a 0 B b 1 C c 2 D d 3;
}

/// Implements `Stored` for a container by its codec.
macro_rules! stored_by {
    ($([$($parameters:tt)*] $stored:ty: $codec:ty;)+) => {$(
        impl<$($parameters)*> Stored for $stored {
            fn schema(types: &mut SchemaBuilder) -> Type {
                <$codec as Codec<Self>>::schema(types)
            }

            #[inline]
            fn put(&self, to: &mut Writer<'_>) {
                <$codec as Codec<Self>>::put(self, to);
            }

            #[inline]
            fn get(from: &mut Reader<'_>) -> Result<Self, Malformed> {
                <$codec as Codec<Self>>::get(from)
            }
        }
    )+};
}
stored_by! {
    [T: Stored] Option<T>: OptionalOf<Itself>;
    [T: Stored] Box<T>: BoxOf<Itself>;
    [T: Stored] Vec<T>: ListOf<Itself>;
    [T: Stored, const N: usize] [T; N]: ArrayOf<Itself>;
    [A: Stored, B: Stored] (A, B): PairOf<Itself, Itself>;
    [A: Stored, B: Stored, C: Stored] (A, B, C): TripleOf<Itself, Itself, Itself>;
    [A: Stored, B: Stored, C: Stored, D: Stored] (A, B, C, D): QuadrupleOf<Itself, Itself, Itself, Itself>;
}

impl<T: Stored> Stored for Arc<T> {
    fn schema(types: &mut SchemaBuilder) -> Type {
        T::schema(types)
    }

    #[inline]
    fn put(&self, to: &mut Writer<'_>) {
        T::put(self, to);
    }

    fn get(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        T::get(from).map(Self::new)
    }
}

/// Implements `Stored` for containers that are stored as a `Vec` is.
macro_rules! stored_as_lists {
    ($($stored:ty),+) => {$(
        impl<T: Stored> Stored for $stored {
            fn schema(types: &mut SchemaBuilder) -> Type {
                Vec::<T>::schema(types)
            }

            fn put(&self, to: &mut Writer<'_>) {
                put_elements::<T, Itself>(self.iter(), to);
            }

            fn get(from: &mut Reader<'_>) -> Result<Self, Malformed> {
                Vec::get(from).map(Self::from)
            }
        }
    )+};
}
stored_as_lists!(Box<[T]>, Arc<[T]>, VecDeque<T>);

impl<T: Stored, E: Stored> Stored for Result<T, E> {
    fn schema(types: &mut SchemaBuilder) -> Type {
        types.define::<Self>(|types| {
            Definition::Enum(vec![
                Variant::new("Ok", vec![Field::new("0", T::schema(types))]),
                Variant::new("Err", vec![Field::new("0", E::schema(types))]),
            ])
        })
    }

    fn put(&self, to: &mut Writer<'_>) {
        to.nested(|to| match self {
            Ok(value) => {
                to.number(0);
                value.put(to);
            }
            Err(error) => {
                to.number(1);
                error.put(to);
            }
        });
    }

    fn get(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        from.nested(|from| match from.number()? {
            0 => T::get(from).map(Ok),
            1 => E::get(from).map(Err),
            number => Err(Malformed::variant(number)),
        })
    }
}

impl Malformed {
    /// There is no variant of this number.
    #[cold]
    #[doc(hidden)]
    pub fn variant(number: u64) -> Self {
        Self::new(format!("there is no variant {number}"))
    }
}

fn twice(is_new: bool) -> Result<(), Malformed> {
    if is_new { Ok(()) } else { Err(Malformed::new("a key or an element is there twice")) }
}

macro_rules! maps {
    ($([$($conditions:tt)*] $map:ty, $key:ident $value:ident;)+) => {$(
        impl<$($conditions)*> Stored for $map {
            fn schema(types: &mut SchemaBuilder) -> Type {
                Type::Map(Box::new($key::schema(types)), Box::new($value::schema(types)))
            }

            fn put(&self, to: &mut Writer<'_>) {
                to.number(self.len() as u64);
                for (key, value) in self {
                    to.element(|to| {
                        key.put(to);
                        value.put(to);
                    });
                }
            }

            fn get(from: &mut Reader<'_>) -> Result<Self, Malformed> {
                let mut map = Self::default();
                get_elements::<_, PairOf<Itself, Itself>>(from, |(key, value)| {
                    twice(map.insert(key, value).is_none())
                })?;
                Ok(map)
            }
        }
    )+};
}
maps! {
    [K: Stored + Ord, V: Stored] BTreeMap<K, V>, K V;
    [K: Stored + Eq + Hash, V: Stored, S: BuildHasher + Default + 'static] HashMap<K, V, S>, K V;
}

macro_rules! sets {
    ($([$($conditions:tt)*] $set:ty, $element:ident;)+) => {$(
        impl<$($conditions)*> Stored for $set {
            fn schema(types: &mut SchemaBuilder) -> Type {
                Type::checked("set:", Type::List(Box::new($element::schema(types))))
            }

            fn put(&self, to: &mut Writer<'_>) {
                put_elements::<$element, Itself>(self.iter(), to);
            }

            fn get(from: &mut Reader<'_>) -> Result<Self, Malformed> {
                let mut set = Self::default();
                get_elements::<_, Itself>(from, |element| twice(set.insert(element)))?;
                Ok(set)
            }
        }
    )+};
}
sets! {
    [T: Stored + Ord] BTreeSet<T>, T;
    [T: Stored + Eq + Hash, S: BuildHasher + Default + 'static] HashSet<T, S>, T;
}

//! The types of the standard library that are values.

use super::{Boxed, Inline, Plain, Value};
use hotrow_stored::{
    ArrayOf, BoxOf, Codec, ListOf, Malformed, OptionalOf, PairOf, QuadrupleOf, Reader, SchemaBuilder,
    StoredForm, TripleOf, Type, Writer,
};
use std::mem::needs_drop;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::num::NonZero;
use std::time::{Duration, SystemTime};

/// The way to store the parts of a value, of which it is not known when compiling if they can be stored. It is used for those that can.
struct OfParts;

impl OfParts {
    #[inline]
    fn form<T: Value>() -> StoredForm<T> {
        T::stored().expect("asked before")
    }
}

impl<T: Value> Codec<T> for OfParts {
    fn schema(types: &mut SchemaBuilder) -> Type {
        (Self::form::<T>().schema)(types)
    }

    #[inline]
    fn put(value: &T, to: &mut Writer<'_>) {
        (Self::form::<T>().put)(value, to);
    }

    #[inline]
    fn get(from: &mut Reader<'_>) -> Result<T, Malformed> {
        (Self::form::<T>().get)(from)
    }
}

macro_rules! plain_values {
    ($($plain:ty),* $(,)?) => {$(
        // SAFETY: a primitive without padding or pointers.
        unsafe impl Plain for $plain {}
        impl Value for $plain {
            type Cell = Inline<Self>;

            #[inline]
            fn stored() -> Option<StoredForm<Self>> {
                Some(StoredForm::of())
            }
        }
    )*};
}
plain_values!(u8, u16, u32, u64, usize, i8, i16, i32, i64, isize, f32, f64, bool, char, ());

// SAFETY: an array has no padding of its own.
unsafe impl<T: Plain, const N: usize> Plain for [T; N] {}
impl<T: Plain + Value, const N: usize> Value for [T; N] {
    type Cell = Inline<Self>;

    #[inline]
    fn stored() -> Option<StoredForm<Self>> {
        T::stored().map(|_| StoredForm::by::<ArrayOf<OfParts>>())
    }
}

/// Values that are stored as the standard library's types are.
macro_rules! boxed_values {
    ($($boxed:ty, $value:ident => $heap_bytes:expr;)*) => {$(
        impl Value for $boxed {
            type Cell = Boxed<Self>;

            #[inline]
            fn stored() -> Option<StoredForm<Self>> {
                Some(StoredForm::of())
            }

            #[inline]
            fn heap_bytes(&self) -> usize {
                let $value = self;
                $heap_bytes
            }
        }
    )*};
}
boxed_values! {
    String, text => text.capacity();
    Box<str>, text => text.len();
    u128, _number => 0;
    i128, _number => 0;
    Duration, _duration => 0;
    SystemTime, _time => 0;
    IpAddr, _address => 0;
    Ipv4Addr, _address => 0;
    Ipv6Addr, _address => 0;
    SocketAddr, _address => 0;
}
#[cfg(feature = "uuid")]
boxed_values!(uuid::Uuid, _uuid => 0;);

macro_rules! numbers_that_are_not_zero {
    ($($number:ty)*) => {
        boxed_values! { $(NonZero<$number>, _number => 0;)* }
    };
}
numbers_that_are_not_zero!(u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize);

/// Values with parts that are values.
macro_rules! values_of_parts {
    ($([$($part:ident),*] $boxed:ty: $codec:ty, $value:ident => $heap_bytes:expr;)*) => {$(
        impl<$($part: Value),*> Value for $boxed {
            type Cell = Boxed<Self>;

            #[inline]
            fn stored() -> Option<StoredForm<Self>> {
                let parts_are_stored = $($part::stored().is_some())&&*;
                parts_are_stored.then(StoredForm::by::<$codec>)
            }

            #[inline]
            fn heap_bytes(&self) -> usize {
                let $value = self;
                $heap_bytes
            }
        }
    )*};
}
values_of_parts! {
    [T] Vec<T>: ListOf<OfParts>, vector => {
        // Elements without a `Drop` own nothing.
        let inside = if needs_drop::<T>() { vector.iter().map(T::heap_bytes).sum() } else { 0 };
        vector.capacity() * size_of::<T>() + inside
    };
    [T] Option<T>: OptionalOf<OfParts>, option => option.as_ref().map_or(0, T::heap_bytes);
    [T] Box<T>: BoxOf<OfParts>, boxed => size_of::<T>() + T::heap_bytes(boxed);
    [A, B] (A, B): PairOf<OfParts, OfParts>, pair => pair.0.heap_bytes() + pair.1.heap_bytes();
    [A, B, C] (A, B, C): TripleOf<OfParts, OfParts, OfParts>, triple =>
        triple.0.heap_bytes() + triple.1.heap_bytes() + triple.2.heap_bytes();
    [A, B, C, D] (A, B, C, D): QuadrupleOf<OfParts, OfParts, OfParts, OfParts>, four =>
        four.0.heap_bytes() + four.1.heap_bytes() + four.2.heap_bytes() + four.3.heap_bytes();
}

impl<T: ?Sized + Send + Sync + 'static> Value for std::sync::Arc<T> {
    type Cell = Boxed<Self>;
}

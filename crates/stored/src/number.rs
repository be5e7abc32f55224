//! Numbers.

use crate::{Kind, Malformed, Reader, SchemaBuilder, Stored, Type, Writer};
use std::num::NonZero;

/// Implements `Stored` for a type of a kind.
macro_rules! stored_plainly {
    ($($stored:ty: $kind:ident, |$value:ident, $to:ident| $put:expr, |$from:ident| $get:expr;)+) => {$(
        impl Stored for $stored {
            #[inline]
            fn schema(_: &mut SchemaBuilder) -> Type {
                Type::Plain(Kind::$kind)
            }

            #[inline]
            fn put(&self, $to: &mut Writer<'_>) {
                let $value = self;
                $put
            }

            #[inline]
            fn get($from: &mut Reader<'_>) -> Result<Self, Malformed> {
                $get
            }
        }
    )+};
}
pub(crate) use stored_plainly;

fn too_large<T>(_: T) -> Malformed {
    Malformed::new("a number is too large for its type")
}

/// Zigzag: numbers near zero, negative ones too, are short.
#[inline]
fn folded(number: i64) -> u64 {
    (number << 1 ^ number >> 63) as u64
}

#[inline]
fn unfolded(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

macro_rules! unsigned {
    ($($number:ty: $kind:ident),+) => {
        stored_plainly! {$(
            $number: $kind, |number, to| to.number(*number as u64),
                |from| Self::try_from(from.number()?).map_err(too_large);
        )+}
    };
}
unsigned!(u16: U16, u32: U32, u64: U64, usize: U64);

macro_rules! signed {
    ($($number:ty: $kind:ident),+) => {
        stored_plainly! {$(
            $number: $kind, |number, to| to.number(folded(*number as i64)),
                |from| Self::try_from(unfolded(from.number()?)).map_err(too_large);
        )+}
    };
}
signed!(i16: I16, i32: I32, i64: I64, isize: I64);

stored_plainly! {
    u8: U8, |number, to| to.byte(*number), |from| from.byte();
    i8: I8, |number, to| to.byte(*number as u8), |from| Ok(from.byte()? as i8);
    u128: U128, |number, to| to.wide_number(*number), |from| from.wide_number();
    i128: I128, |number, to| to.wide_number((*number << 1 ^ *number >> 127) as u128),
        |from| from.wide_number().map(|number| (number >> 1) as i128 ^ -((number & 1) as i128));
    f32: F32, |number, to| to.bytes(&number.to_le_bytes()), |from| from.array().map(Self::from_le_bytes);
    f64: F64, |number, to| to.bytes(&number.to_le_bytes()), |from| from.array().map(Self::from_le_bytes);
}

macro_rules! not_zero {
    ($($number:ty)+) => {$(
        impl Stored for NonZero<$number> {
            fn schema(types: &mut SchemaBuilder) -> Type {
                Type::checked("nonzero", <$number>::schema(types))
            }

            #[inline]
            fn put(&self, to: &mut Writer<'_>) {
                self.get().put(to);
            }

            fn get(from: &mut Reader<'_>) -> Result<Self, Malformed> {
                Self::new(Stored::get(from)?).ok_or_else(|| Malformed::new("a number is zero that must not be"))
            }
        }
    )+};
}
not_zero!(u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize);

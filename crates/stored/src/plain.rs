//! Types without parts, and types that are stored as others of the standard library.

use crate::number::stored_plainly;
use crate::{Kind, Malformed, Reader, SchemaBuilder, Stored, Type, Writer};
use std::marker::PhantomData;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// A value that is stored by its bytes, behind their number.
#[inline]
fn put_counted(bytes: &[u8], to: &mut Writer<'_>) {
    to.number(bytes.len() as u64);
    to.bytes(bytes);
}

/// Reads a text without a copy of it.
#[inline]
pub(crate) fn text<'b>(from: &mut Reader<'b>) -> Result<&'b str, Malformed> {
    let count = from.count()?;
    std::str::from_utf8(from.take(count)?).map_err(|_| Malformed::new("a text is not UTF-8"))
}

impl Writer<'_> {
    /// Writes a text, as a `String` is written.
    #[inline]
    pub fn text(&mut self, text: &str) {
        put_counted(text.as_bytes(), self);
    }

    /// As [`text`](Self::text), for bytes that are UTF-8; others could not be read back.
    #[inline]
    pub fn text_bytes(&mut self, text: &[u8]) {
        put_counted(text, self);
    }
}

impl<'b> Reader<'b> {
    /// Reads a text.
    ///
    /// # Errors
    ///
    /// [`Malformed`] if it is none.
    #[inline]
    pub fn text(&mut self) -> Result<&'b str, Malformed> {
        text(self)
    }
}

stored_plainly! {
    (): Unit, |_value, _to| (), |_from| Ok(());
    bool: Bool, |value, to| to.byte(u8::from(*value)), |from| match from.byte()? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(Malformed::new("a bool is neither true nor false")),
    };
    char: Char, |value, to| to.number(u64::from(u32::from(*value))), |from| {
        let number = u32::try_from(from.number()?).ok();
        number.and_then(Self::from_u32).ok_or_else(|| Malformed::new("a character does not exist"))
    };
    String: Text, |value, to| to.text(value), |from| Ok(from.text()?.to_owned());
    Box<str>: Text, |value, to| to.text(value), |from| Ok(from.text()?.into());
    Arc<str>: Text, |value, to| to.text(value), |from| Ok(from.text()?.into());
}

impl<T: ?Sized + 'static> Stored for PhantomData<T> {
    fn schema(_: &mut SchemaBuilder) -> Type {
        Type::UNIT
    }

    fn put(&self, _: &mut Writer<'_>) {}

    fn get(_: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self)
    }
}

/// Implements `Stored` for types that have the bytes of another one, under a condition.
macro_rules! stored_as {
    ($($stored:ty: $condition:literal $form:ty, |$value:ident| $put:expr, |$read:ident| $get:expr;)+) => {$(
        impl Stored for $stored {
            fn schema(types: &mut SchemaBuilder) -> Type {
                Type::checked($condition, <$form>::schema(types))
            }

            #[inline]
            fn put(&self, to: &mut Writer<'_>) {
                let $value = self;
                let form: $form = $put;
                form.put(to);
            }

            fn get(from: &mut Reader<'_>) -> Result<Self, Malformed> {
                let $read = <$form>::get(from)?;
                $get
            }
        }
    )+};
}

stored_as! {
    Duration: "duration" (u64, u32), |value| (value.as_secs(), value.subsec_nanos()), |form| {
        let (seconds, nanoseconds) = form;
        if nanoseconds >= 1_000_000_000 {
            return Err(Malformed::new("a duration has too many nanoseconds"));
        }
        Ok(Self::new(seconds, nanoseconds))
    };
    // Negative before 1970.
    SystemTime: "time" (bool, Duration), |value| match value.duration_since(Self::UNIX_EPOCH) {
        Ok(after) => (false, after),
        Err(before) => (true, before.duration()),
    }, |form| {
        let (is_before, distance) = form;
        let time = match is_before {
            false => Self::UNIX_EPOCH.checked_add(distance),
            true => Self::UNIX_EPOCH.checked_sub(distance),
        };
        time.ok_or_else(|| Malformed::new("a time is too far away"))
    };
    Ipv4Addr: "IPv4 address" [u8; 4], |value| value.octets(), |form| Ok(form.into());
    Ipv6Addr: "IPv6 address" [u8; 16], |value| value.octets(), |form| Ok(form.into());
    IpAddr: "IP address" Result<Ipv4Addr, Ipv6Addr>, |value| match value {
        Self::V4(address) => Ok(*address),
        Self::V6(address) => Err(*address),
    }, |form| Ok(form.map_or_else(Self::V6, Self::V4));
    // Flow and scope of the sixth version belong to the machine.
    SocketAddr: "socket address" (IpAddr, u16), |value| (value.ip(), value.port()), |form| Ok(form.into());
}

#[cfg(feature = "uuid")]
stored_as! {
    uuid::Uuid: "UUID" [u8; 16], |value| *value.as_bytes(), |form| Ok(Self::from_bytes(form));
}

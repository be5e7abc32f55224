//! Keys and rows as bytes, in the format of [postcard](https://postcard.jamesmunns.com/wire-format): compact, and stable for a given type.

use super::fields::{get_row, has_fields, put_fields, put_row};
use super::shape::shape_of;
use hotrow_core::Value;
use hotrow_log::entry::PartsWriter;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Writes and reads the keys and rows of a table.
pub(super) struct Codec<K, R> {
    pub(super) put_key: Put<K>,
    pub(super) put_row: Put<R>,
    pub(super) get_key: Get<K>,
    pub(super) get_row: Get<R>,
    /// Writes some fields of a row; `None` if rows are written whole.
    pub(super) put_fields: Option<PutFields<R>>,
    /// The shapes of both.
    pub(super) shape: fn() -> String,
}

type Put<T> = fn(&T, &mut Vec<u8>) -> Result<(), String>;
type Get<T> = fn(&[u8]) -> Result<T, String>;
type PutFields<R> = fn(&R, u64, &mut PartsWriter<'_>) -> Result<(), String>;

impl<K, R> Clone for Codec<K, R> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<K, R> Copy for Codec<K, R> {}

impl<K: Serialize + DeserializeOwned, R: Value + Serialize + DeserializeOwned> Codec<K, R> {
    pub(super) fn new() -> Self {
        let whole = Self {
            put_key: put::<K>,
            put_row: put::<R>,
            get_key: get::<K>,
            get_row: get::<R>,
            put_fields: None,
            shape: || format!("key: {}\nrow: {}", shape_of::<K>(), shape_of::<R>()),
        };
        if !has_fields::<R>() {
            return whole;
        }
        Self {
            put_row: put_row::<R>,
            get_row: get_row::<R>,
            put_fields: Some(put_fields::<R>),
            shape: || format!("key: {}\nrow, by fields: {}", shape_of::<K>(), shape_of::<R>()),
            ..whole
        }
    }
}

/// Appends to a vector, and leaves what was there.
struct Appending<'v>(&'v mut Vec<u8>);

impl postcard::ser_flavors::Flavor for Appending<'_> {
    type Output = ();

    #[inline(always)]
    fn try_push(&mut self, byte: u8) -> postcard::Result<()> {
        self.0.push(byte);
        Ok(())
    }

    #[inline(always)]
    fn try_extend(&mut self, bytes: &[u8]) -> postcard::Result<()> {
        // Most are numbers, of one byte or a few: a call to copy so many would cost more than the copy.
        match *bytes {
            [one] => self.0.push(one),
            [one, two] => self.0.extend_from_slice(&[one, two]),
            [one, two, three] => self.0.extend_from_slice(&[one, two, three]),
            [one, two, three, four] => self.0.extend_from_slice(&[one, two, three, four]),
            [one, two, three, four, five] => self.0.extend_from_slice(&[one, two, three, four, five]),
            _ => self.0.extend_from_slice(bytes),
        }
        Ok(())
    }

    fn finalize(self) -> postcard::Result<()> {
        Ok(())
    }
}

#[inline(always)]
pub(super) fn put<T: Serialize + ?Sized>(value: &T, bytes: &mut Vec<u8>) -> Result<(), String> {
    postcard::serialize_with_flavor(value, Appending(bytes)).map_err(|error| error.to_string())
}

fn get<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    match postcard::take_from_bytes(bytes) {
        Ok((value, [])) => Ok(value),
        Ok((_, rest)) => Err(format!("{} bytes too many", rest.len())),
        Err(error) => Err(error.to_string()),
    }
}

//! Keys of tables.

mod bytes;
mod fixed;
mod image;
mod kinds;
mod long;
mod long_enough;
mod lookup;
mod part;
mod start;
#[cfg(all(test, not(loom)))]
mod tests;

pub use bytes::{Bytes, Encoded, Encoder};
pub use fixed::{Fixed, Words};
pub use image::{Found, Image, NodeSlots};
pub use lookup::{AsBound, AsKey, KeyBounds};
pub(crate) use lookup::{ImageRange, own_range};
pub use part::{DerivedImage, KeyPart, LONG, MakeImage, Packer, most_bits, variant_bits, words};

pub(crate) use start::{KeyStart, start_of_bytes};

use hotrow_stored::StoredForm;
use hotrow_sync::hashing::KeyHashing;
use std::fmt::Debug;
use std::hash::{BuildHasher, Hash};

/// A key: a value with a hash for tables with a hash index, and with an order-preserving image for ordered ones.
///
/// Integers, `bool`, `char`, `String` and `Box<str>`, `Vec<u8>` and `Box<[u8]>`, arrays of up to 64 bytes,
/// [`Text`](crate::Text), options of keys and tuples of up to four keys are keys already, and so is `uuid::Uuid` with the
/// feature `uuid`. Derive it for a struct or an enum of these.
///
/// # Fixed and long keys
///
/// A key of fixed size (all but strings, vectors of bytes, and what contains them) is packed into a few words, which an
/// ordered index compares as they are. Other keys may be of any length. A row keeps a copy of the first 20 bytes of a
/// string, so that a lookup reads the string's own memory only if it is longer. A descent in an ordered table costs few memory
/// accesses, however long the common beginnings of keys are. Long keys are looked up by a
/// [borrowed form](AsKey), `&str` or `&[u8]`, without an allocation. A composite key with a long part is copied into an
/// image at each use in an ordered table.
///
/// # Order
///
/// Ordered tables have the order of [`Ord`]: strings by their bytes; `None` before `Some`; the variants of an enum in the
/// order of declaration, then by their fields; tuples and structs field by field, so that a string comes before those that
/// it begins, whatever follows it.
///
/// # Contract
///
/// For any two keys `a` and `b`, `a.cmp(b)` is the order of `a.image()` and `b.image()`. An ordered index compares images
/// only. (A wrong image makes an index
/// misplace keys; it cannot break memory safety.) `image` runs while transactions commit: it must be quick, always return the
/// same, and not use a transaction. If it panics there, the transaction makes another attempt.
///
/// ```
/// use hotrow_tables::key::{Bytes, Encoded, Key};
///
/// /// A host name with the last label first: `org.example.www`.
/// #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
/// struct Host(String);
///
/// impl Key for Host {
///     type Image = Bytes;
///     fn image(&self) -> Encoded<'_> {
///         Encoded::new(self.0.as_bytes())
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a key",
    label = "not a key",
    note = "for a type of your own, add `#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, hotrow::Key)]`",
    note = "keys are integers, `bool`, `char`, `String`, `Vec<u8>`, arrays of up to 64 bytes, `Text<N>`, and options and tuples of up to four keys",
    note = "for `&str` use `String`; floating-point numbers have no total order, so use an integer or the bits of the number"
)]
pub trait Key: Clone + Eq + Ord + Hash + Debug + Send + Sync + 'static {
    /// The kind of the key's images: `u64`, `[u64; N]`, a pair of such, or [`Bytes`].
    type Image: Image;
    /// The key's image.
    fn image(&self) -> ImageOf<'_, Self>;
    /// The form in which a durable database stores keys of the type; `None` if it cannot. The derive macro finds out if the type is
    /// [`Stored`](hotrow_stored::Stored), too; by hand it is `Some(StoredForm::of())`.
    fn stored() -> Option<StoredForm<Self>> {
        None
    }
    /// The number of bytes that the key owns on the heap, for reports of memory. If it panics, it counts as 0.
    fn heap_bytes(&self) -> usize {
        0
    }
    /// The copy of the key's first bytes that its record holds.
    #[doc(hidden)]
    fn record_start(&self) -> StartOf<Self> {
        StartOf::<Self>::default()
    }
    /// The key's image, for which `start`, the key's, may be read in place of the key.
    #[doc(hidden)]
    #[inline(always)]
    fn image_by_start<'k>(&'k self, _start: &'k StartOf<Self>) -> ImageOf<'k, Self> {
        self.image()
    }
    /// True if the keys are equal. `start` is the other key's.
    #[doc(hidden)]
    #[inline(always)]
    fn is_by_start(&self, other: &Self, _start: &StartOf<Self>) -> bool {
        self == other
    }
}

/// Appends the bytes that name a key in histories, which have the order of keys.
pub(crate) fn put_name<K: Key>(key: &K, bytes: &mut Vec<u8>) {
    K::Image::put_bytes(&key.image(), bytes);
}

/// A hash of a key, which distinguishes it from other keys.
pub(crate) fn key_hash<K: Key>(key: &K) -> u64 {
    KeyHashing::of_process().hash_one(key)
}

/// The start of a key's image, as records hold it.
#[doc(hidden)]
pub type StartOf<K> = <<K as Key>::Image as Image>::Start;

/// The image of a key of type `K` that is borrowed for `'k`.
pub type ImageOf<'k, K> = <<K as Key>::Image as Image>::Of<'k>;

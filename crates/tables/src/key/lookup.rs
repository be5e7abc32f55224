//! Keys as they are looked up, and ranges of them: by the key itself, or by a borrowed form.

use super::{Encoded, Image, ImageOf, Key, StartOf};
use std::fmt::Debug;
use std::hash::Hash;
use std::ops::{Bound, Range, RangeBounds, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

mod sealed {
    /// The forms of a key have its hash and its image. The seal keeps it so.
    pub trait Sealed<K> {}
}
use sealed::Sealed;

/// A form of a key of type `K` by which rows are looked up: the key itself, a `str` for strings, a `[u8]` for bytes.
///
/// ```
/// # use hotrow_tables::Database;
/// # let db = Database::open()?;
/// let balances = db.table::<String, i64>("balances").hash(100).create()?;
/// balances.bulk_insert([("alice@example.com".into(), 7)])?;
/// let name = String::from("alice@example.com");
/// let found = db.transact(|tx| Ok((balances.get(tx, "alice@example.com")?, balances.get(tx, &name)?)))?;
/// assert_eq!(found, (Some(7), Some(7)));
/// # Ok::<(), hotrow_core::Error>(())
/// ```
///
/// Sealed: its forms have the hash and the order of the key.
#[diagnostic::on_unimplemented(
    message = "rows with keys of type `{K}` cannot be looked up by a `{Self}`",
    label = "expected a reference to a `{K}`",
    note = "keys of type `String` are also looked up by `&str`, and keys of type `Vec<u8>` by `&[u8]`"
)]
pub trait AsKey<K: Key>: Sealed<K> + Hash + Debug {
    /// The key's image.
    #[doc(hidden)]
    fn to_image(&self) -> ImageOf<'_, K>;
    /// True if this is the key, of whose image a record holds the start.
    #[doc(hidden)]
    fn is(&self, key: &K, start: &StartOf<K>) -> bool;
    /// Makes the key itself.
    #[doc(hidden)]
    fn to_key(&self) -> K;
}

impl<K: Key> Sealed<K> for K {}

impl<K: Key> AsKey<K> for K {
    #[inline(always)]
    fn to_image(&self) -> ImageOf<'_, K> {
        self.image()
    }
    #[inline(always)]
    fn is(&self, key: &K, start: &StartOf<K>) -> bool {
        self.is_by_start(key, start)
    }
    fn to_key(&self) -> K {
        self.clone()
    }
}

/// A form of a key that can be a bound of a [range](KeyBounds): the key, a reference to it, or a borrowed form.
#[diagnostic::on_unimplemented(
    message = "a `{Self}` cannot be the bound of a range of keys of type `{K}`",
    label = "expected a `{K}` or a reference to one",
    note = "ranges of `String` keys may have bounds of type `&str`, those of `Vec<u8>` keys bounds of type `&[u8]`"
)]
pub trait AsBound<K: Key>: Sealed<K> {
    /// The image of the key.
    #[doc(hidden)]
    fn bound(&self) -> ImageOf<'_, K>;
}

impl<K: Key> AsBound<K> for K {
    #[inline(always)]
    fn bound(&self) -> ImageOf<'_, K> {
        self.image()
    }
}

impl<K: Key> Sealed<K> for &K {}

impl<K: Key> AsBound<K> for &K {
    #[inline(always)]
    fn bound(&self) -> ImageOf<'_, K> {
        (*self).image()
    }
}

/// Owners of bytes, and their borrowed forms. The bytes are the image.
macro_rules! borrowed_forms {
    ($([$($generic:tt)*] $owner:ty: $form:ty;)*) => {$(
        impl <$($generic)*> Sealed<$owner> for $form {}
        impl <$($generic)*> AsKey<$owner> for $form {
            #[inline(always)]
            fn to_image(&self) -> Encoded<'_> {
                Encoded::new(self.as_bytes())
            }
            #[inline(always)]
            fn is(&self, key: &$owner, start: &StartOf<$owner>) -> bool {
                start.is_of(key.as_bytes(), self.as_bytes())
            }
            fn to_key(&self) -> $owner {
                self.into()
            }
        }
        impl <$($generic)*> Sealed<$owner> for &$form {}
        impl <$($generic)*> AsBound<$owner> for &$form {
            #[inline(always)]
            fn bound(&self) -> Encoded<'_> {
                Encoded::new(self.as_bytes())
            }
        }
    )*};
}

/// The bytes of owners of bytes and of their borrowed forms, under the name that strings have for theirs.
trait ByteForm {
    fn as_bytes(&self) -> &[u8];
}
impl<T: AsRef<[u8]> + ?Sized> ByteForm for T {
    #[inline(always)]
    fn as_bytes(&self) -> &[u8] {
        self.as_ref()
    }
}

borrowed_forms! {
    [] String: str;
    [] Box<str>: str;
    [] Vec<u8>: [u8];
    [const N: usize] Vec<u8>: [u8; N];
    [] Box<[u8]>: [u8];
}

#[cfg(all(feature = "erased", not(loom)))]
borrowed_forms! { [] crate::erased::BytesKey: crate::erased::BorrowedKey; }

/// A range of keys of type `K`: `low..high`, `low..=high`, `low..`, `..high`, `..=high`, `..`, or a pair of [`Bound`]s. Its
/// bounds are keys, references to keys, or borrowed forms, such as `"a".."b"` for keys that are strings.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no range of keys of type `{K}`",
    label = "expected a range of keys such as `low..high`, or `..`",
    note = "the bounds are keys of type `{K}`, references to such, or borrowed forms: `\"a\"..\"b\"` for strings"
)]
pub trait KeyBounds<K: Key> {
    /// The images of the bounds.
    #[doc(hidden)]
    fn images(&self) -> (Bound<ImageOf<'_, K>>, Bound<ImageOf<'_, K>>);
}

macro_rules! key_bounds {
    ($($range:ty),*) => {$(
        impl<K: Key, B: AsBound<K>> KeyBounds<K> for $range {
            #[inline(always)]
            fn images(&self) -> (Bound<ImageOf<'_, K>>, Bound<ImageOf<'_, K>>) {
                let (low, high) = (RangeBounds::<B>::start_bound(self), RangeBounds::<B>::end_bound(self));
                (low.map(B::bound), high.map(B::bound))
            }
        }
    )*};
}
key_bounds!(Range<B>, RangeInclusive<B>, RangeFrom<B>, RangeTo<B>, RangeToInclusive<B>, (Bound<B>, Bound<B>));

impl<K: Key> KeyBounds<K> for RangeFull {
    #[inline(always)]
    fn images(&self) -> (Bound<ImageOf<'_, K>>, Bound<ImageOf<'_, K>>) {
        (Bound::Unbounded, Bound::Unbounded)
    }
}

/// The images of a range's bounds.
pub(crate) type ImageRange<'k, K> = (Bound<ImageOf<'k, K>>, Bound<ImageOf<'k, K>>);

/// Copies what the images of a range borrow.
pub(crate) fn own_range<'k, K: Key>((low, high): ImageRange<'_, K>) -> ImageRange<'k, K> {
    (low.map(|image| K::Image::own(&image)), high.map(|image| K::Image::own(&image)))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use hotrow_sync::hashing::KeyHashing;
    use std::hash::BuildHasher;

    fn assert_stands_for<K: Key, Q: AsKey<K> + ?Sized>(form: &Q, key: K) {
        let hash = KeyHashing::new();
        assert_eq!(hash.hash_one(form), hash.hash_one(&key));
        assert!(K::Image::compare(&form.to_image(), &key.image()).is_eq());
        assert!(K::Image::compare(&form.to_image(), &key.image_by_start(&key.record_start())).is_eq());
        assert!(form.is(&key, &key.record_start()));
        assert_eq!(form.to_key(), key);
        assert_eq!(format!("{form:?}"), format!("{key:?}"));
    }

    #[test]
    fn a_borrowed_form_has_the_hash_and_the_image_of_its_key() {
        for string in ["", "a", "\0", "alice@example.com"] {
            assert_stands_for::<String, str>(string, string.into());
            assert_stands_for::<String, String>(&string.into(), string.into());
            assert_stands_for::<Box<str>, str>(string, string.into());
            assert_stands_for::<Vec<u8>, [u8]>(string.as_bytes(), string.into());
            assert_stands_for::<Box<[u8]>, [u8]>(string.as_bytes(), string.as_bytes().into());
        }
        assert_stands_for::<Vec<u8>, [u8; 2]>(b"ab", b"ab".to_vec());
        assert_stands_for::<u32, u32>(&7, 7);
    }

    #[test]
    fn ranges_have_the_images_of_their_bounds() {
        fn images<K: Key>(range: impl KeyBounds<K>) -> String {
            format!("{:?}", range.images())
        }
        assert_eq!(images::<String>("a".."b"), r#"(Included("a"), Excluded("b"))"#);
        assert_eq!(images::<String>("a".to_owned()..="b".to_owned()), r#"(Included("a"), Included("b"))"#);
        assert_eq!(images::<Vec<u8>>(..&b"b"[..]), r#"(Unbounded, Excluded("b"))"#);
        assert_eq!(images::<String>(..), "(Unbounded, Unbounded)");
        assert_eq!(images::<u32>(1..), "(Included(1), Unbounded)");
        assert_eq!(images::<u32>(&1..=&2), "(Included(1), Included(2))");
    }
}

//! The keys of a cluster in its store.
//!
//! | key, behind the cluster's prefix | value |
//! |---|---|
//! | `c` name | a table: its number and its shape ([`crate::catalog`]) |
//! | `d` | the mark of a directory's copy into the cluster ([`crate::moving`]) |
//! | `f` | the fence ([`crate::collecting`]) |
//! | `i` | the cluster's identity, if it was ever copied |
//! | `k` name | the kind of a directory's object that was copied and is no table |
//! | `m` client, slot | a marker: the number of the commit that has replaced it last ([`crate::marker`]) |
//! | `n` name | the next number of a kind |
//! | `o` name | the mark of a copied table's conversion ([`crate::converting`]) |
//! | `s` name | a sequence: the number below which all are taken ([`crate::sequence`]) |
//! | `t` table, image of the key, 0 | the part of a row that has the key and the main columns ([`crate::rows`]) |
//! | `t` table, image of the key, 1 + n | the part that has the columns of group n |
//!
//! An index is a table of its own, whose rows are its entries ([`crate::indexes`]).
//!
//! Numbers are big-endian. No image's bytes begin another one's, so that the parts of a row lie together, and rows in the order of
//! keys. A part of which the value is empty is a tombstone.

use crate::store::Span;
use hotrow_tables::key::{AsKey, Image, ImageOf, Key};
use std::ops::Bound;

/// A byte behind an image that is above all parts of the row.
const BEHIND_PARTS: u8 = u8::MAX;

/// The prefix of a cluster's keys.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    prefix: Vec<u8>,
}

impl Layout {
    pub(crate) fn new(prefix: Vec<u8>) -> Self {
        Self { prefix }
    }

    fn key(&self, kind: u8, rest: &[&[u8]]) -> Vec<u8> {
        let mut key = self.prefix.clone();
        key.push(kind);
        rest.iter().for_each(|part| key.extend_from_slice(part));
        key
    }

    pub(crate) fn catalog(&self, table: &str) -> Vec<u8> {
        self.key(b'c', &[table.as_bytes()])
    }

    pub(crate) fn fence(&self) -> Vec<u8> {
        self.key(b'f', &[])
    }

    pub(crate) fn marker(&self, client: u64, slot: u32) -> Vec<u8> {
        self.key(b'm', &[&client.to_be_bytes(), &slot.to_be_bytes()])
    }

    pub(crate) fn numbers(&self, name: &str) -> Vec<u8> {
        self.key(b'n', &[name.as_bytes()])
    }

    pub(crate) fn sequence(&self, name: &str) -> Vec<u8> {
        self.key(b's', &[name.as_bytes()])
    }

    #[cfg(feature = "moving")]
    pub(crate) fn moving(&self) -> Vec<u8> {
        self.key(b'd', &[])
    }

    #[cfg(feature = "moving")]
    pub(crate) fn identity(&self) -> Vec<u8> {
        self.key(b'i', &[])
    }

    #[cfg(feature = "moving")]
    pub(crate) fn kind(&self, name: &str) -> Vec<u8> {
        self.key(b'k', &[name.as_bytes()])
    }

    /// The mark of a table's conversion.
    pub(crate) fn conversion(&self, table: &str) -> Vec<u8> {
        self.key(b'o', &[table.as_bytes()])
    }

    /// All tables of the catalog.
    pub(crate) fn catalogs(&self) -> Span {
        Span::of_prefix(&self.catalog(""))
    }

    /// All sequences.
    #[cfg(feature = "moving")]
    pub(crate) fn sequences(&self) -> Span {
        Span::of_prefix(&self.sequence(""))
    }

    /// All kinds.
    #[cfg(feature = "moving")]
    pub(crate) fn kinds(&self) -> Span {
        Span::of_prefix(&self.kind(""))
    }

    /// All keys but those that a cluster without tables may have.
    #[cfg(feature = "moving")]
    pub(crate) fn all_but_numbers(&self) -> [Span; 4] {
        let kinds = [(0, b'd'), (b'd' + 1, b'i'), (b'i' + 1, b'm'), (b'n' + 1, u8::MAX)];
        kinds.map(|(from, to)| Span { start: self.key(from, &[]), end: self.key(to, &[]) })
    }

    /// The beginning of the keys of a table's rows.
    pub(crate) fn table(&self, number: u32) -> Vec<u8> {
        self.key(b't', &[&number.to_be_bytes()])
    }

    /// All keys of all tables' rows.
    pub(crate) fn rows(&self) -> Span {
        Span::of_prefix(&self.key(b't', &[]))
    }

    /// The table and the bytes behind it of a row's key.
    pub(crate) fn split_row<'k>(&self, key: &'k [u8]) -> Option<(u32, &'k [u8])> {
        let rest = key.strip_prefix(&*self.prefix)?.strip_prefix(b"t")?;
        let (number, rest) = rest.split_first_chunk()?;
        Some((u32::from_be_bytes(*number), rest))
    }
}

/// The beginning of the keys of a row's parts.
pub(crate) fn row<K: Key>(table: &[u8], key: &(impl AsKey<K> + ?Sized)) -> Vec<u8> {
    let mut bytes = table.to_vec();
    K::Image::put_bytes(&key.to_image(), &mut bytes);
    bytes
}

/// The key of a part of a row.
pub(crate) fn part(row: &[u8], part: usize) -> Vec<u8> {
    let mut key = Vec::with_capacity(row.len() + 1);
    key.extend_from_slice(row);
    key.push(u8::try_from(part).unwrap_or(BEHIND_PARTS));
    key
}

/// The key directly above all parts of the row to which a part belongs.
pub(crate) fn behind_row(part: &[u8]) -> Vec<u8> {
    let mut key = part.to_vec();
    if let Some(last) = key.last_mut() {
        *last = BEHIND_PARTS;
    }
    key
}

/// The keys of all rows of a table between two images.
pub(crate) fn span<'k, K: Key>(
    table: &[u8],
    (low, high): (Bound<ImageOf<'k, K>>, Bound<ImageOf<'k, K>>),
) -> Span {
    let put = |image: &_, behind: bool| {
        let mut bytes = table.to_vec();
        K::Image::put_bytes(image, &mut bytes);
        if behind {
            bytes.push(BEHIND_PARTS);
        }
        bytes
    };
    let whole = Span::of_prefix(table);
    let start = match low {
        Bound::Unbounded => whole.start,
        Bound::Included(image) => put(&image, false),
        Bound::Excluded(image) => put(&image, true),
    };
    let end = match high {
        Bound::Unbounded => whole.end,
        Bound::Included(image) => put(&image, true),
        Bound::Excluded(image) => put(&image, false),
    };
    Span { start, end }
}

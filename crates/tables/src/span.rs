//! Where keys, and observed parts of tables, lie in the order of a table's keys: [`KeySpan`]. The number of a key is its image's head.

use crate::index::{CachedPart, LeafPart};
use crate::key::{Image, ImageRange, Key};
use crate::record::RecordKey;
use crate::storage::{Index, KeyIndex, Shared};
use hotrow_core::{KeySpan, Protocol, Value, contained};
use std::ops::Bound;
use std::ptr::NonNull;

/// What is kept of a key's image.
type KeptOf<K> = <<K as Key>::Image as Image>::Kept;

/// The bounds of an observed part, as an attempt keeps them.
pub(crate) fn kept_bounds<K: Key>(
    (low, high): &ImageRange<'_, K>,
    copy: &mut dyn FnMut(&[u8]) -> NonNull<[u8]>,
) -> (Bound<KeptOf<K>>, Bound<KeptOf<K>>) {
    let mut keep = |bound: &Bound<_>| bound.as_ref().map(|image| K::Image::keep(image, copy));
    (keep(low), keep(high))
}

impl<K: Key, R: Value, P: Protocol> Shared<K, R, P> {
    /// Where a key lies.
    pub(crate) fn span_of_key(key: &K) -> KeySpan {
        // The image of a long key is users' code, which must not panic out of a commit.
        let head = contained(|| K::Image::head(&key.image()));
        head.map_or(KeySpan::ALL, |head| KeySpan { first: head, last: head })
    }
}

impl<K: Key, R: Value, P: Protocol> Index<K, R, P> {
    /// Where a part lies that an attempt in progress has kept.
    ///
    /// # Safety
    ///
    /// `seen` was kept by [`keep_part`](Self::keep_part) of this index, for an attempt whose memory is still there.
    pub(crate) unsafe fn span_of_part(&self, seen: NonNull<u8>) -> KeySpan {
        // SAFETY: the caller's promise; the kind of index says what was kept.
        let (low, high) = unsafe {
            match self.keys() {
                KeyIndex::Hash(_) => return KeySpan::ALL,
                KeyIndex::Ordered(_) => {
                    let part = seen.cast::<LeafPart<K::Image, RecordKey<K>>>().as_ref();
                    (part.low, part.high)
                }
                KeyIndex::Cached(_) => seen.cast::<CachedPart<K::Image, RecordKey<K>>>().as_ref().bounds(),
            }
        };
        let head = |bound, unbounded| match bound {
            Bound::Included(kept) | Bound::Excluded(kept) => {
                // SAFETY: as above.
                let image = unsafe { K::Image::kept(kept) };
                K::Image::head(&image)
            }
            Bound::Unbounded => unbounded,
        };
        KeySpan { first: head(low, 0), last: head(high, u64::MAX) }
    }
}

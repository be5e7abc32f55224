//! Indexes of keys that many programs have, compiled here once, and not in each program: see [`hotrow_core::functions_of`].

use crate::caching::RecordCursor;
use crate::index::{CachedCursor, CachedIndex, Cursor, HashIndex, OrderedIndex};
use crate::key::Key;
use crate::record::RecordKey;
use crate::record_index::get_cached;

/// Is not called: what it names is compiled.
#[inline(never)]
pub fn functions() -> impl Sized {
    (functions_of_key::<u32>(), functions_of_key::<u64>(), functions_of_key::<String>())
}

fn functions_of_key<K: Key>() -> impl Sized {
    [
        HashIndex::<RecordKey<K>>::insert as *const (),
        HashIndex::<RecordKey<K>>::remove as *const (),
        HashIndex::<RecordKey<K>>::drain as *const (),
        OrderedIndex::<RecordKey<K>>::insert as *const (),
        OrderedIndex::<RecordKey<K>>::remove as *const (),
        OrderedIndex::<RecordKey<K>>::drain as *const (),
        Cursor::<'_, '_, RecordKey<K>>::ascend as *const (),
        Cursor::<'_, '_, RecordKey<K>>::descend as *const (),
        CachedIndex::<RecordKey<K>>::insert as *const (),
        CachedIndex::<RecordKey<K>>::remove as *const (),
        CachedIndex::<RecordKey<K>>::write_back as *const (),
        CachedCursor::<'_, '_, RecordKey<K>>::next_unrefreshed as *const (),
        RecordCursor::<'_, '_, K>::next as *const (),
        get_cached::<K, K> as *const (),
    ]
}

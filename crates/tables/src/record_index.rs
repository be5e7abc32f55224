//! The index of a table's records: unordered or ordered, with a cache in front of it or without.

use crate::index::{
    CachedIndex, CachedPart, Cursor, Direction, HashIndex, Insertion, Keyed, LeafPart, Lookup, MainIndex,
    Marks, MayChange, OrderedIndex,
};
use crate::key::{AsKey, Image, ImageRange, Key};
use crate::record::{Record, RecordKey};
use hotrow_core::{
    KeySpan, ObjectAccess, Observed, OpenObservation, Pin, Protocol, StructureChange, StructureVersion,
    Value, WatchedNodes, contained,
};
use hotrow_sync::profile::labelled;
use std::marker::PhantomData;
use std::ops::Bound;
use std::ptr::NonNull;

/// The most bytes of a record that are prefetched.
pub(crate) const PREFETCHED_MAX: usize = 512;

/// The index of a table: it maps keys to records of these types.
pub(crate) struct Index<K: Key, R: Value, P: Protocol> {
    /// Every pointer in it was made with [`Record::key_of`] from a record of these types.
    keys: KeyIndex<K>,
    _records: PhantomData<Record<K, R, P>>,
}

/// A part of a leaf, before its bounds are known.
#[derive(Debug)]
pub(crate) struct BegunPart {
    open: OpenObservation,
    marks: Marks,
}

/// An index of the keys of records, compiled once for each type of key.
pub(crate) enum KeyIndex<K: Key> {
    Hash(HashIndex<RecordKey<K>>),
    Ordered(OrderedIndex<RecordKey<K>>),
    /// Either, with a cache in front.
    Cached(Box<CachedIndex<RecordKey<K>>>),
}

impl<K: Key, R: Value, P: Protocol> Index<K, R, P> {
    /// An unordered index with room for `expected` rows.
    pub(crate) fn hash(expected: usize) -> Self {
        Self { keys: KeyIndex::Hash(HashIndex::with_capacity(expected)), _records: PhantomData }
    }

    /// An ordered index.
    pub(crate) fn ordered() -> Self {
        Self { keys: KeyIndex::Ordered(OrderedIndex::new()), _records: PhantomData }
    }

    /// Puts a cache in front of the index, which is empty. See [`CachedIndex::new`].
    pub(crate) fn cached(self, tail_bits: u32) -> Self {
        let main = match self.keys {
            KeyIndex::Hash(index) => MainIndex::Hash(index),
            KeyIndex::Ordered(index) => MainIndex::Ordered(index),
            KeyIndex::Cached(_) => return self,
        };
        Self { keys: KeyIndex::Cached(Box::new(CachedIndex::new(main, tail_bits))), _records: PhantomData }
    }

    /// The index itself, which leads to the keys of the records.
    pub(crate) fn keys(&self) -> &KeyIndex<K> {
        &self.keys
    }

    #[inline]
    pub(crate) fn is_ordered(&self) -> bool {
        match &self.keys {
            KeyIndex::Hash(_) => false,
            KeyIndex::Ordered(_) => true,
            KeyIndex::Cached(index) => matches!(index.main(), MainIndex::Ordered(_)),
        }
    }

    #[inline(always)]
    pub(crate) fn get(&self, key: &(impl AsKey<K> + ?Sized), pin: &Pin) -> Lookup<Record<K, R, P>> {
        let found = match &self.keys {
            KeyIndex::Hash(index) => index.get_by(key, |other| other.is(key), pin.guard()),
            KeyIndex::Ordered(index) => index.get(&key.to_image(), pin.guard()),
            KeyIndex::Cached(index) => get_cached(index, key, pin),
        };
        match found {
            // SAFETY: the index holds keys of records of these types, and frees them through the epoch.
            Lookup::Found(key) => Lookup::Found(unsafe { Record::of_key(key) }),
            Lookup::Absent(observed) => Lookup::Absent(observed),
        }
    }

    /// Adds a record under its key, unless there is one with this key, or `may_change` is false for the bucket or leaf.
    /// `may_change` is asked only under a protocol that locks ranges.
    ///
    /// # Safety
    ///
    /// The record is valid and is freed only through the epoch after its removal.
    #[inline]
    pub(crate) unsafe fn insert(
        &self,
        record: NonNull<Record<K, R, P>>,
        pin: &Pin,
        changed: &mut dyn FnMut(StructureChange),
        may_change: &dyn Fn(Observed) -> bool,
    ) -> Insertion<Record<K, R, P>> {
        let key = Record::key_of(record);
        // SAFETY: the caller's promise.
        let insertion = unsafe { self.keys.insert(key, pin, changed, P::LOCKS_RANGES.then_some(may_change)) };
        match insertion {
            Insertion::Inserted => Insertion::Inserted,
            // SAFETY: as in `get`.
            Insertion::Exists(key) => Insertion::Exists(unsafe { Record::of_key(key) }),
            Insertion::Refused(observed) => Insertion::Refused(observed),
        }
    }

    /// Has those told that wait for a change of a bucket or leaf when it is retired.
    pub(crate) fn set_watched(&mut self, watched: WatchedNodes) {
        match &mut self.keys {
            KeyIndex::Hash(index) => index.set_watched(watched),
            KeyIndex::Ordered(index) => index.set_watched(watched),
            KeyIndex::Cached(index) => index.set_watched(watched),
        }
    }

    /// The bucket or leaf that stands for a key's absence.
    pub(crate) fn node_of(&self, key: &K, pin: &Pin) -> Observed {
        match &self.keys {
            KeyIndex::Hash(index) => index.node_of(key, pin.guard()),
            KeyIndex::Ordered(index) => index.node_of(key, pin.guard()),
            KeyIndex::Cached(index) => index.node_of(key),
        }
    }

    #[inline]
    pub(crate) fn remove(
        &self,
        record: NonNull<Record<K, R, P>>,
        pin: &Pin,
        changed: &mut dyn FnMut(StructureChange),
    ) -> bool {
        let _labelled = labelled("index removal");
        let key = Record::key_of(record);
        // SAFETY: the caller has the record, so it is in memory.
        let was_present = || unsafe { record.as_ref() }.is_dead();
        match &self.keys {
            KeyIndex::Hash(index) => index.remove(key, pin.guard(), changed),
            KeyIndex::Ordered(index) => index.remove(key, was_present(), pin.guard(), changed),
            KeyIndex::Cached(index) => index.remove(key, was_present(), pin.guard(), changed),
        }
    }

    /// Makes the attempt's last observation, which was of a leaf, one of a part of it: between two bounds, with these
    /// records. It does nothing in an index without order.
    #[inline]
    pub(crate) fn keep_part(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        observed: Observed,
        range: ImageRange<'_, K>,
        direction: Direction,
        records: &[NonNull<RecordKey<K>>],
    ) {
        let index = match &self.keys {
            KeyIndex::Ordered(index) => index,
            KeyIndex::Hash(_) => return,
            KeyIndex::Cached(_) => {
                return self.keep_cached_part(tx, observed, range, direction, records);
            }
        };
        let guard = tx.pin().guard();
        // SAFETY: the leaf was observed in this index under the attempt's pin, and the table can work with its parts.
        unsafe {
            let Some(marks) = index.marks(observed, guard) else { return };
            tx.structure_mut().keep_seen(records, |records, copy| {
                let (low, high) = kept_bounds::<K>(&range, copy);
                LeafPart::<K::Image, _> { low, high, direction, marks, records }
            });
        }
    }

    /// Begins what [`keep_part`](Self::keep_part) does, right after the observation of a leaf, for a caller that reads other objects before
    /// it knows what part matters. `None` if the whole leaf does.
    pub(crate) fn begin_part(&self, tx: &ObjectAccess<'_, P>, observed: Observed) -> Option<BegunPart> {
        let KeyIndex::Ordered(index) = &self.keys else { return None };
        let open = tx.structure().open_observation()?;
        // SAFETY: the leaf was observed in this index under the attempt's pin.
        let marks = unsafe { index.marks(observed, tx.pin().guard()) }?;
        Some(BegunPart { open, marks })
    }

    /// Ends what [`begin_part`](Self::begin_part) has begun in the same attempt.
    pub(crate) fn end_part(
        tx: &mut ObjectAccess<'_, P>,
        begun: BegunPart,
        range: ImageRange<'_, K>,
        direction: Direction,
        records: &[NonNull<RecordKey<K>>],
    ) {
        let BegunPart { open, marks } = begun;
        // SAFETY: it was observed by the table, which can work with parts of its leaves.
        unsafe {
            tx.structure_mut().keep_seen_for(open, records, |records, copy| {
                let (low, high) = kept_bounds::<K>(&range, copy);
                LeafPart::<K::Image, _> { low, high, direction, marks, records }
            });
        }
    }

    /// Begins a scan of the keys of records; `None` if the index has no order, or a cache.
    #[inline]
    pub(crate) fn cursor<'k>(
        &self,
        (low, high): ImageRange<'k, K>,
        direction: Direction,
    ) -> Option<Cursor<'_, 'k, RecordKey<K>>> {
        match &self.keys {
            KeyIndex::Hash(_) | KeyIndex::Cached(_) => None,
            KeyIndex::Ordered(index) => Some(index.cursor(low, high, direction)),
        }
    }

    /// Asks the processor for the first bytes of the records of several keys at once.
    #[inline]
    pub(crate) fn prefetch(&self, keys: impl Iterator<Item = K> + Clone, bytes: usize, pin: &Pin) {
        // The ordered index cannot help: its inner nodes are in the cache already, and it cannot find a key's leaf
        // without waiting for them.
        let index = match &self.keys {
            KeyIndex::Hash(index) => Some(index),
            KeyIndex::Ordered(_) => None,
            KeyIndex::Cached(index) => index.main().hash(),
        };
        if let Some(index) = index {
            keys.clone().for_each(|key| index.prefetch_bucket(&key, pin.guard()));
            let bytes = bytes.min(PREFETCHED_MAX);
            keys.for_each(|key| index.prefetch_record(&key, bytes, pin.guard()));
        }
    }

    pub(crate) fn drain(&mut self, visit: &mut dyn FnMut(NonNull<Record<K, R, P>>)) {
        // SAFETY: as in `get`.
        let visit = &mut |key| visit(unsafe { Record::of_key(key) });
        match &mut self.keys {
            KeyIndex::Hash(index) => index.drain(visit),
            KeyIndex::Ordered(index) => index.drain(visit),
            KeyIndex::Cached(index) => index.drain(visit),
        }
    }
}

/// Looks up a key. Not inlined, so that lookups in indexes without a cache stay small.
#[inline(never)]
pub(crate) fn get_cached<K: Key, Q: AsKey<K> + ?Sized>(
    index: &CachedIndex<RecordKey<K>>,
    key: &Q,
    pin: &Pin,
) -> Lookup<RecordKey<K>> {
    index.get(key, &key.to_image(), |other| other.is(key), pin.guard())
}

impl<K: Key> KeyIndex<K> {
    /// Where a part lies that an attempt in progress has kept.
    ///
    /// # Safety
    ///
    /// `seen` was kept by [`keep_part`](Index::keep_part) of this index, for an attempt whose memory is still there.
    pub(crate) unsafe fn span_of_part(&self, seen: NonNull<u8>) -> KeySpan {
        // SAFETY: the caller's promise; the kind of index says what was kept.
        let (low, high) = unsafe {
            match self {
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

    /// Looks again at what [`keep_part`](Index::keep_part) kept: false if a key has come or gone there since, of records that are not void.
    ///
    /// # Safety
    ///
    /// It was kept of this index, under this pin.
    pub(crate) unsafe fn still_holds(
        &self,
        seen: NonNull<u8>,
        is_void: &dyn Fn(NonNull<RecordKey<K>>) -> bool,
        pin: &Pin,
    ) -> bool {
        // SAFETY: the caller's promise; the kind of index says what was kept.
        unsafe {
            match self {
                KeyIndex::Hash(_) => false,
                KeyIndex::Ordered(index) => {
                    let part = seen.cast::<LeafPart<K::Image, RecordKey<K>>>().as_ref();
                    index.still_holds(part, is_void, pin.guard())
                }
                KeyIndex::Cached(index) => {
                    let part = seen.cast::<CachedPart<K::Image, RecordKey<K>>>().as_ref();
                    index.still_holds(part, is_void, pin.guard())
                }
            }
        }
    }

    /// # Safety
    ///
    /// As for [`Index::insert`].
    #[inline]
    unsafe fn insert(
        &self,
        key: NonNull<RecordKey<K>>,
        pin: &Pin,
        changed: &mut dyn FnMut(StructureChange),
        may_change: MayChange<'_>,
    ) -> Insertion<RecordKey<K>> {
        let _labelled = labelled("index insertion");
        // SAFETY: the caller's promise. Only insertions keep fingers, so the one in the pin was returned under this
        // pin. The table's index does not move, is freed through the epoch, and was reached under this pin. So a finger
        // with its address is this index's.
        unsafe {
            match self {
                KeyIndex::Hash(index) => index.insert(key, pin.guard(), changed, may_change),
                KeyIndex::Ordered(index) => {
                    let (insertion, finger) = index.insert(key, pin.guard(), pin.kept(), changed, may_change);
                    pin.keep(finger);
                    insertion
                }
                // Protocols that lock ranges have no caches, and may change every bucket.
                KeyIndex::Cached(index) => index.insert(key, pin, changed),
            }
        }
    }

    /// The name of an observed bucket or leaf, for messages.
    ///
    /// # Safety
    ///
    /// The node is a bucket or leaf of this index, observed under the pin.
    #[cold]
    pub(crate) unsafe fn describe(&self, node: NonNull<StructureVersion>, pin: &Pin) -> String {
        // SAFETY: the caller's promise.
        let (key, place) = unsafe {
            match self {
                KeyIndex::Hash(index) => (index.record_at(node, pin.guard()), "absence in the bucket of"),
                KeyIndex::Ordered(index) => (index.record_at(node, pin.guard()), "range from"),
                KeyIndex::Cached(index) => (index.record_at(node, pin.guard()), "range or absence near"),
            }
        };
        match key {
            // SAFETY: found in the index under the pin.
            Some(key) => format!("{place} {:?}", unsafe { key.as_ref() }.key()),
            None => String::from("range or absence"),
        }
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        match self {
            KeyIndex::Hash(index) => index.memory_bytes(),
            KeyIndex::Ordered(index) => index.memory_bytes(),
            KeyIndex::Cached(index) => index.memory_bytes(),
        }
    }
}

/// The kept form of a key's image.
type KeptOf<K> = <<K as Key>::Image as Image>::Kept;

/// The bounds of an observed part, as an attempt keeps them.
pub(crate) fn kept_bounds<K: Key>(
    (low, high): &ImageRange<'_, K>,
    copy: &mut dyn FnMut(&[u8]) -> NonNull<[u8]>,
) -> (Bound<KeptOf<K>>, Bound<KeptOf<K>>) {
    let mut keep = |bound: &Bound<_>| bound.as_ref().map(|image| K::Image::keep(image, copy));
    (keep(low), keep(high))
}

/// Where a key lies in the order of a table's keys. Its number is its image's head.
pub(crate) fn span_of_key<K: Key>(key: &K) -> KeySpan {
    // The image of a long key is users' code, which must not panic out of a commit.
    let head = contained(|| K::Image::head(&key.image()));
    head.map_or(KeySpan::ALL, |head| KeySpan { first: head, last: head })
}

//! Tables whose index has a cache in front of it: [`CachedIndex`].

use crate::index::{CachedCursor, CachedPart, Cursor, Direction};
use crate::key::{ImageRange, Key};
use crate::record::{Record, RecordKey};
use crate::record_index::{Index, KeyIndex, kept_bounds};
use crate::storage::Shared;
use hotrow_core::region::after_region;
use hotrow_core::{Abort, ObjectAccess, Observed, Pin, Protocol, Value, contained};
use std::ops::ControlFlow;
use std::ptr::NonNull;

/// A scan under way, of an index with or without a cache, for those that observe nothing.
pub(crate) enum RecordCursor<'i, 'k, K: Key> {
    Plain(Cursor<'i, 'k, RecordKey<K>>),
    Cached(CachedCursor<'i, 'k, RecordKey<K>>),
}

impl<K: Key> RecordCursor<'_, '_, K> {
    /// The keys of the next records, perhaps of none; `None` when the range has been covered.
    #[inline(never)]
    pub(crate) fn next(&mut self, guard: &hotrow_core::epoch::Guard) -> Option<&[NonNull<RecordKey<K>>]> {
        match self {
            Self::Plain(cursor) => cursor.next(guard).map(|leaf| leaf.records),
            Self::Cached(cursor) => cursor.next(guard).map(|part| part.records),
        }
    }
}

impl<K: Key> KeyIndex<K> {
    /// Begins a scan of the keys of records by somebody that observes nothing; `None` if the index has no order.
    pub(crate) fn record_cursor<'k>(
        &self,
        (low, high): ImageRange<'k, K>,
        direction: Direction,
    ) -> Option<RecordCursor<'_, 'k, K>> {
        match self {
            KeyIndex::Hash(_) => None,
            KeyIndex::Ordered(index) => Some(RecordCursor::Plain(index.cursor(low, high, direction))),
            KeyIndex::Cached(index) => index.cursor(low, high, direction).map(RecordCursor::Cached),
        }
    }
}

impl<K: Key, R: Value, P: Protocol> Index<K, R, P> {
    /// True if the index has a cache.
    #[inline(always)]
    pub(crate) fn is_cached(&self) -> bool {
        matches!(self.keys(), KeyIndex::Cached(_))
    }

    /// As [`keep_part`](Self::keep_part), of a bucket of the cache.
    #[inline(never)]
    pub(crate) fn keep_cached_part(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        observed: Observed,
        range: ImageRange<'_, K>,
        direction: Direction,
        records: &[NonNull<RecordKey<K>>],
    ) {
        let KeyIndex::Cached(index) = self.keys() else { return };
        // SAFETY: the bucket was observed in this index, and the table can work with its parts.
        unsafe {
            let Some(removals) = index.removals(observed) else { return };
            tx.structure_mut().keep_seen(records, |records, copy| {
                let bounds = kept_bounds::<K>(&range, copy);
                CachedPart::<K::Image, _>::new(bounds, direction, observed, removals, records)
            });
        }
    }
}

impl<K: Key, R: Value, P: Protocol> Shared<K, R, P> {
    /// Writes a record that a commit has inserted back to the index behind the cache: now, or when the region has committed that
    /// the thread is in.
    #[cold]
    #[inline(never)]
    pub(crate) fn write_back(&self, record: NonNull<Record<K, R, P>>, pin: &Pin) {
        let table = NonNull::from(self).cast();
        let key = Record::key_of(record).cast();
        // SAFETY: the table and the record, which was found under the pin, are in memory as long as it.
        unsafe { after_region(pin, table, key, Self::write_back_now) };
    }

    /// # Safety
    ///
    /// `table` is a table of this type, `key` that of a record of it, both in memory as long as the pin.
    unsafe fn write_back_now(pin: &Pin, table: NonNull<()>, key: NonNull<()>) {
        // SAFETY: the caller's promise.
        let table = unsafe { table.cast::<Self>().as_ref() };
        let KeyIndex::Cached(index) = table.index.keys() else { return };
        // Images and comparisons of keys are users' code, which must not panic out of a commit. Then the record stays in the cache.
        // SAFETY: as above; a table's index does not move, and is freed through the epoch.
        let _ = contained(|| unsafe { index.write_back(key.cast(), pin) });
    }

    /// Scans a table with a cache.
    #[cold]
    #[inline(never)]
    pub(crate) fn scan_cached(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        (low, high): ImageRange<'_, K>,
        direction: Direction,
        mut visit: &mut dyn FnMut(&K, &R) -> ControlFlow<()>,
    ) -> Result<(), Abort> {
        let KeyIndex::Cached(index) = self.index.keys() else { return Ok(()) };
        let Some(mut cursor) = index.cursor(low, high, direction) else { return Err(self.no_order(tx)) };
        loop {
            let Some(part) = cursor.next(tx.pin().guard()) else { return Ok(()) };
            let (buckets, mut bounds) = (part.buckets(), part.bounds);
            let is_one = buckets.len() == 1;
            let nodes = if is_one { Vec::new() } else { buckets.nodes_of(part.records) };
            let mut is_refused = false;
            for observed in buckets.observed() {
                // SAFETY: the node is this table's.
                if !unsafe { tx.observe(self, observed) }? {
                    is_refused = true;
                    break;
                }
                if !is_one {
                    let records = buckets.records_of(observed, part.records, &nodes);
                    self.index.keep_part(tx, observed, bounds.clone(), direction, &records);
                }
            }
            // Observing one bucket may have moved the moment as of which an opaque attempt sees everything, past the copies of
            // those that were not observed yet. (Others find out at their commits. It ends, as a node is observed in few parts.)
            let is_moved = self.is_opaque && tx.structure().keeps_observations() && !buckets.are_unchanged();
            if is_refused || is_moved {
                cursor.go_back();
                continue;
            }
            let (visited, enough) =
                self.visit_records(tx, part.records, &mut bounds, direction, &mut visit)?;
            if is_one && let Some(observed) = buckets.observed().next() {
                self.index.keep_part(tx, observed, bounds, direction, visited);
            }
            if enough {
                return Ok(());
            }
        }
    }
}

//! Walks over all rows of a table, in batches that are one transaction each.

use crate::index::{Direction, HashIndex, Keyed, sort};
use crate::key::Key;
use crate::record::{Record, RecordKey};
use crate::record_index::KeyIndex;
use crate::table::Table;
use hotrow_core::{Abort, Error, ObjectMeta, Protocol, Sight, Transaction, Value, Walk, Worker};
use std::ops::Bound;
use std::ptr::NonNull;

/// The number of rows that one transaction reads.
const BATCH: usize = if cfg!(test) { 3 } else { 512 };

/// The body of a transaction that reads a batch.
pub(crate) type Body<'b, P> = dyn FnMut(&mut Transaction<'_, P>) -> Result<(), Abort> + 'b;

impl<K: Key, R: Value, P: Protocol> Table<K, R, P> {
    /// Visits all rows with transactions of `worker`, a few hundred rows each, and returns their number. Every batch
    /// is one consistent state; the whole is not. A hash index visits rows in no order.
    ///
    /// While it lasts, the walk over a cached hash index prevents the freeing of all memory that any transaction of the
    /// process retires, and is [reported](hotrow_core::Engine::retained_memory). Any other walk does so for one batch at a time.
    ///
    /// # Errors
    ///
    /// As [`Worker::transact`]; [`Error::MemoryLimit`] if the walk keeps too much memory.
    pub fn for_each(&self, worker: &mut Worker<P>, mut visit: impl FnMut(&K, &R)) -> Result<u64, Error> {
        let mut rows = 0;
        // Through pointers, so that all that makes attempts is compiled once for each protocol, and not for each table.
        self.for_each_batch(&mut |body| worker.transact(body), false, &mut |batch| {
            rows += batch.len() as u64;
            batch.iter().for_each(|(key, row)| visit(key, row));
            true
        })?;
        Ok(rows)
    }

    /// Visits all rows, a few hundred at a time; a hash index may show a row twice. `visit` tells whether to go on. `run` runs a transaction. `buried`: rows that only snapshots see are looked for, too.
    pub(crate) fn for_each_batch(
        &self,
        run: &mut dyn FnMut(&mut Body<'_, P>) -> Result<(), Error>,
        buried: bool,
        visit: &mut dyn FnMut(&[(K, R)]) -> bool,
    ) -> Result<(), Error> {
        let mut batch = Vec::new();
        let index = match self.shared.index.keys() {
            KeyIndex::Hash(index) => Some(index),
            KeyIndex::Ordered(_) => None,
            KeyIndex::Cached(index) => index.main().hash(),
        };
        let Some(index) = index else {
            let mut next = Bound::Unbounded;
            loop {
                let range = (next, Bound::Unbounded);
                run(&mut |tx| {
                    batch = self.collect(tx, range.clone(), Direction::Ascending, BATCH)?;
                    Ok(())
                })?;
                if !visit(&batch) {
                    return Ok(());
                }
                match batch.last() {
                    Some((key, _)) if batch.len() == BATCH => next = Bound::Excluded(key.clone()),
                    _ => return Ok(()),
                }
            }
        };
        let mut walk = KeyWalk::new(&self.shared.meta, self.shared.index.keys(), index);
        loop {
            let mut is_last = !walk.advance()?;
            if is_last && buried {
                // After the index: a record that it did not have any more is here.
                let _walk = Walk::new(&self.shared.meta);
                let all = (Bound::Unbounded, Bound::Unbounded);
                for (_, record) in self.shared.companions.graveyard.find(all, Sight::UNLIMITED) {
                    // SAFETY: a record of this table, found in its graveyard under the walk's pin.
                    walk.keys.push(unsafe { record.cast::<Record<K, R, P>>().as_ref() }.key().clone());
                }
            }
            run(&mut |tx| {
                batch.clear();
                for key in &walk.keys {
                    if let Some(row) = self.get(tx, key)? {
                        batch.push((key.clone(), row));
                    }
                }
                Ok(())
            })?;
            is_last |= !visit(&batch);
            if is_last {
                return Ok(());
            }
            walk.keys.clear();
        }
    }
}

/// A walk over the keys of a hash index, with a cache in front of it or without. Knows nothing of rows and protocols, so that it is
/// compiled once for each type of key.
struct KeyWalk<'t, K: Key> {
    meta: &'t ObjectMeta,
    index: &'t HashIndex<RecordKey<K>>,
    /// The keys of the present batch.
    keys: Vec<K>,
    /// The bucket from which on keys have not been visited; none at the end.
    next: Option<(usize, usize)>,
    /// Of an index with a cache: the records that were in the cache, in the order of their addresses, and one pin to the end of the walk,
    /// so that they are not visited twice.
    cached: Option<(Walk, Vec<NonNull<()>>)>,
}

impl<'t, K: Key> KeyWalk<'t, K> {
    /// The first batch has what is in the cache. What the cache does not have is in the index behind it, and what it has may come there.
    fn new(meta: &'t ObjectMeta, keys: &'t KeyIndex<K>, index: &'t HashIndex<RecordKey<K>>) -> Self {
        let mut walk = Self { meta, index, keys: Vec::new(), next: Some((0, 1)), cached: None };
        if let KeyIndex::Cached(cache) = keys {
            let whole = Walk::new(meta);
            let mut cached = Vec::new();
            for record in cache.cached_records(whole.pin().guard()) {
                // SAFETY: found in the index under the walk's pin.
                walk.keys.push(unsafe { record.as_ref() }.key().clone());
                cached.push(record.cast());
            }
            sort(&mut cached, &|one, other| one.cmp(&other));
            walk.cached = Some((whole, cached));
        }
        walk
    }

    /// Adds the next batch of keys. False if it is the last one.
    ///
    /// # Errors
    ///
    /// [`Error::MemoryLimit`] if the walk keeps too much memory.
    fn advance(&mut self) -> Result<bool, Error> {
        let Self { meta, index, keys, next, cached } = self;
        let Some(from) = *next else { return Ok(false) };
        let of_batch = cached.is_none().then(|| Walk::new(meta));
        let (whole, cached) = match &*cached {
            Some((whole, cached)) => (Some(whole), &cached[..]),
            None => (None, &[][..]),
        };
        if let Some(walk) = whole.or(of_batch.as_ref()) {
            *next = index.for_each_bucket(walk.pin().guard(), from, &mut |records| {
                for record in records {
                    if cached.binary_search(&record.cast()).is_err() {
                        // SAFETY: found in the index under the walk's pin.
                        keys.push(unsafe { record.as_ref() }.key().clone());
                    }
                }
                keys.len() < BATCH
            });
        }
        if let Some(walk) = whole {
            walk.may_go_on().map_err(Error::MemoryLimit)?;
        }
        Ok(next.is_some())
    }
}

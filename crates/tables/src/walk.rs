//! Walks over all rows of a table, in batches that are one transaction each.

use crate::index::{Direction, Keyed, sort};
use crate::key::Key;
use crate::record::{Record, RecordKey};
use crate::record_index::KeyIndex;
use crate::table::Table;
use hotrow_core::{Abort, Error, Protocol, Sight, Transaction, Value, Walk, Worker};
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

    /// Visits all rows that a snapshot sees, a few hundred at a time. A hash index may show a row twice.
    #[cfg(all(feature = "durable", not(loom)))]
    pub(crate) fn for_each_on<E: From<Error>>(
        &self,
        reader: &mut hotrow_core::SnapshotReader<P>,
        snapshot: &hotrow_core::Snapshot<P>,
        visit: &mut dyn FnMut(&[(K, R)]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut visited = Ok(());
        self.for_each_batch(&mut |body| reader.transact_on(snapshot, body), true, &mut |batch| {
            visited = visit(batch);
            visited.is_ok()
        })?;
        visited
    }

    /// `visit` tells whether to go on. `run` runs a transaction. `buried`: rows that only snapshots see are looked for, too.
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
        let mut keys: Vec<K> = Vec::new();
        let mut flush = |keys: &mut Vec<K>| {
            run(&mut |tx| {
                batch.clear();
                for key in keys.iter() {
                    if let Some(row) = self.get(tx, key)? {
                        batch.push((key.clone(), row));
                    }
                }
                Ok(())
            })?;
            keys.clear();
            Ok::<_, Error>(visit(&batch))
        };
        // SAFETY: found in the index under a pinned epoch.
        let key_of = |key: &NonNull<RecordKey<K>>| unsafe { key.as_ref() }.key().clone();
        // The cache first: what it does not have is in the index behind it, and what it has may come there. Its records are remembered
        // under one pin to the end, so that they are not visited twice.
        let (mut whole, mut cached) = (None, Vec::new());
        if let KeyIndex::Cached(index) = self.shared.index.keys() {
            let walk = whole.insert(Walk::new(&self.shared.meta));
            let records = index.cached_records(walk.pin().guard());
            keys.extend(records.iter().map(key_of));
            cached.extend(records.into_iter().map(NonNull::cast));
            sort(&mut cached, &|one, other| one.cmp(&other));
        }
        let mut next = Some((0, 1));
        while let Some(from) = next {
            let of_batch = whole.is_none().then(|| Walk::new(&self.shared.meta));
            if let Some(walk) = whole.as_ref().or(of_batch.as_ref()) {
                next = index.for_each_bucket(walk.pin().guard(), from, &mut |records| {
                    let is_new = |key: &&NonNull<RecordKey<K>>| cached.binary_search(&key.cast()).is_err();
                    keys.extend(records.iter().filter(is_new).map(key_of));
                    keys.len() < BATCH
                });
            }
            if let Some(walk) = &whole {
                walk.may_go_on().map_err(Error::MemoryLimit)?;
            }
            drop(of_batch);
            if !flush(&mut keys)? {
                return Ok(());
            }
        }
        if buried {
            // After the index: a record that it did not have any more is here.
            let _walk = Walk::new(&self.shared.meta);
            let found =
                self.shared.companions.graveyard.find((Bound::Unbounded, Bound::Unbounded), Sight::UNLIMITED);
            keys.extend(found.into_iter().map(|(_, record)| {
                // SAFETY: a record of this table, found in its graveyard under the walk's pin.
                unsafe { record.cast::<Record<K, R, P>>().as_ref() }.key().clone()
            }));
        }
        flush(&mut keys).map(drop)
    }
}

//! The table as users see it.

use crate::index::{Direction, HashIndex, Keyed, OrderedIndex};
use crate::key::Key;
use crate::queue::GroupOf;
use crate::secondary::{MaintainedIndex, SecondaryIndex};
use crate::storage::{Index, Shared};
use hotrow_core::{
    Abort, Deferred, Engine, EpochBox, Error, Input, Pin, Protocol, Transaction, Value, Walk, Worker,
};
use hotrow_sync::Arc;
use std::ops::{Bound, ControlFlow, RangeBounds};

/// A table: rows of type `R` under keys of type `K`.
///
/// A handle: cloning it gives another one to the same table. Missing rows and keys that exist already are
/// ordinary results; an [`Abort`] means that the attempt cannot go on and is to be passed up with `?`.
///
/// ```
/// use hotrow_core::Engine;
/// use hotrow_protocols::Occ;
/// use hotrow_tables::Table;
///
/// let engine = Engine::<Occ>::new();
/// let seats = Table::<u32, u64, Occ>::hash(&engine, "seats", 100);
/// let sold = engine.run(|tx| {
///     let first = seats.insert(tx, 7, 1_001)?;
///     let again = seats.insert(tx, 7, 1_002)?;
///     Ok((first, again, seats.get(tx, &7)?, seats.get(tx, &8)?))
/// })?;
/// assert_eq!(sold, (true, false, Some(1_001), None));
/// # Ok::<(), hotrow_core::Error>(())
/// ```
pub struct Table<K: Key, R: Value, P: Protocol> {
    pub(crate) shared: Arc<EpochBox<Shared<K, R, P>>>,
}

impl<K: Key, R: Value, P: Protocol> Clone for Table<K, R, P> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone() }
    }
}

/// What a table is made of. See [`Table::builder`].
pub struct TableBuilder<'e, K: Key, R: Value, P: Protocol> {
    engine: &'e Engine<P>,
    name: String,
    capacity: Option<usize>,
    fixed: bool,
    secondaries: Vec<Box<dyn MaintainedIndex<K, R, P>>>,
    rank: u16,
    group_of: Option<GroupOf<K>>,
}

impl<K: Key, R: Value, P: Protocol> TableBuilder<'_, K, R, P> {
    /// Finds rows by hashing, with room for `expected` rows (it grows by itself beyond that; a good estimate
    /// spares the work). Room is made beforehand for 16,777,216 rows at most. Such a table cannot be scanned. Without
    /// this the index is ordered.
    #[must_use]
    pub fn hash(mut self, expected: usize) -> Self {
        self.capacity = Some(expected);
        self
    }

    /// Declares that rows, once loaded, never change: every protocol reads them without tracking, and
    /// transactions that would change them end with
    /// [`Misuse::StaticTable`](hotrow_core::Misuse::StaticTable).
    #[must_use]
    pub fn fixed(mut self) -> Self {
        self.fixed = true;
        self
    }

    /// Where the table stands in the order in which deferred operations line up (drp §6.3): rows of tables of a lower
    /// rank first, and within a table in an order of its own. The default is the highest, 65,535.
    ///
    /// Worth setting where some rows are wanted by most transactions: ranked high, they are locked last, when all else
    /// that the transaction needs is in the cache already, and are held shortest.
    #[must_use]
    pub fn rank(mut self, rank: u16) -> Self {
        self.rank = rank;
        self
    }

    /// Declares that the table's groups are queues: rows come in behind all others of their group, in the order of
    /// their keys, and the first one is [taken](Table::defer_take_first). `group_of` gives the group's number.
    ///
    /// Deferred insertions and those who take the first row are then not in each other's way. A row that comes in
    /// elsewhere is right as well, and costs the deferred insertion another attempt, which defers nothing.
    #[must_use]
    pub fn queues(mut self, group_of: impl Fn(&K) -> u64 + Send + Sync + 'static) -> Self {
        self.group_of = Some(Box::new(group_of));
        self
    }

    /// As [`secondary`](Self::secondary), for an index whose entries never change once the table is loaded: no row
    /// is inserted or deleted any more, and no row's secondary key changes. Every protocol reads it without tracking.
    /// A transaction that would change an entry ends with
    /// [`Misuse::StaticTable`](hotrow_core::Misuse::StaticTable).
    pub fn fixed_secondary<S: Key>(
        &mut self,
        name: &str,
        key_of: impl Fn(&K, &R) -> S + Send + Sync + 'static,
    ) -> SecondaryIndex<S, K, R, P> {
        self.index_by(name, true, Box::new(key_of))
    }

    /// Adds a secondary index by a key that `key_of` makes from key and row (always the same for the same
    /// key and row). The table keeps it up to date from the first row on.
    pub fn secondary<S: Key>(
        &mut self,
        name: &str,
        key_of: impl Fn(&K, &R) -> S + Send + Sync + 'static,
    ) -> SecondaryIndex<S, K, R, P> {
        self.index_by(name, false, Box::new(key_of))
    }

    fn index_by<S: Key>(
        &mut self,
        name: &str,
        fixed: bool,
        key_of: Box<dyn Fn(&K, &R) -> S + Send + Sync>,
    ) -> SecondaryIndex<S, K, R, P> {
        let name = format!("{}.{name}", self.name);
        let index = SecondaryIndex::<S, K, R, P>::new(self.engine.id(), name, fixed, key_of);
        self.secondaries.push(Box::new(index.kept.clone()));
        index
    }

    /// The table, empty.
    pub fn build(self) -> Table<K, R, P> {
        let index = match self.capacity {
            Some(expected) => Index::Hash(HashIndex::with_capacity(expected)),
            None => Index::Ordered(OrderedIndex::new()),
        };
        let shared =
            Shared::new(self.engine.id(), self.name, index, self.fixed, self.secondaries, self.group_of);
        shared.label.set_rank(self.rank);
        shared.groups.label.set_rank(self.rank);
        Table { shared: Arc::new(EpochBox::bulky(shared)) }
    }
}

/// What a table's memory is spent on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TableMemory {
    /// Rows.
    pub rows: u64,
    /// Bytes of keys and rows as their types are in memory (what boxed rows own elsewhere not counted).
    pub payload_bytes: u64,
    /// Bytes of the index and of secondary indexes, without their records.
    pub index_bytes: u64,
}

impl std::ops::Add for TableMemory {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self {
            rows: self.rows + other.rows,
            payload_bytes: self.payload_bytes + other.payload_bytes,
            index_bytes: self.index_bytes + other.index_bytes,
        }
    }
}

/// How many rows one transaction of [`Table::for_each`] reads.
const BATCH: usize = if cfg!(test) { 3 } else { 512 };

impl<K: Key, R: Value, P: Protocol> Table<K, R, P> {
    /// Begins to describe a table; its name is for errors and conflict reports.
    pub fn builder(engine: &Engine<P>, name: impl Into<String>) -> TableBuilder<'_, K, R, P> {
        TableBuilder {
            engine,
            name: name.into(),
            capacity: None,
            fixed: false,
            secondaries: Vec::new(),
            rank: u16::MAX,
            group_of: None,
        }
    }

    /// A table with an ordered index, which can be scanned.
    pub fn ordered(engine: &Engine<P>, name: impl Into<String>) -> Self {
        Self::builder(engine, name).build()
    }

    /// A table with a hash index, with room for `expected` rows.
    pub fn hash(engine: &Engine<P>, name: impl Into<String>, expected: usize) -> Self {
        Self::builder(engine, name).hash(expected).build()
    }

    /// The table's name.
    pub fn name(&self) -> &str {
        self.shared.label.name()
    }

    /// Records an operation when its key is known, or its keys are: at once, or when what they depend on has run.
    #[inline]
    pub(crate) fn when_known<I: Input, O: Clone + 'static>(
        &self,
        tx: &mut Transaction<'_, P>,
        keys: I,
        record: impl FnOnce(&Shared<K, R, P>, &mut Transaction<'_, P>, I::Value) -> Result<Deferred<O>, Abort>
        + 'static,
    ) -> Result<Deferred<O>, Abort> {
        self.shared.when_known(tx, keys, record)
    }

    /// Whether the table was declared static.
    pub fn is_fixed(&self) -> bool {
        self.shared.fixed
    }

    /// A row, copied out; `None` if there is none with this key (which is then a fact that the transaction
    /// has read).
    ///
    /// # Errors
    ///
    /// [`Abort`] when the attempt cannot go on.
    #[inline]
    pub fn get(&self, tx: &mut Transaction<'_, P>, key: &K) -> Result<Option<R>, Abort> {
        self.shared.read(tx, key, R::clone)
    }

    /// Looks at a row. A boxed row is not copied; an inline one is, by protocols whose readers hold nothing.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    #[inline]
    pub fn read<O>(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &K,
        look: impl FnOnce(&R) -> O,
    ) -> Result<Option<O>, Abort> {
        self.shared.read(tx, key, look)
    }

    /// Asks the processor for rows that will be read or changed soon: a hint, which changes no result and is
    /// no part of what the transaction has read. Worth it from about three keys on, when the table is larger
    /// than the processor's cache. Tables with an ordered index ignore it.
    #[inline]
    pub fn prefetch(&self, tx: &Transaction<'_, P>, keys: impl Iterator<Item = K> + Clone) {
        self.shared.index.prefetch(keys, tx.pin());
    }

    /// Changes a row. `None` if there is none with this key.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    #[inline]
    pub fn update<O>(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &K,
        change: impl FnOnce(&mut R) -> O,
    ) -> Result<Option<O>, Abort> {
        self.shared.update(tx, key, change)
    }

    /// Inserts a row. False, and nothing changed, if the key exists.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    #[inline]
    pub fn insert(&self, tx: &mut Transaction<'_, P>, key: K, row: R) -> Result<bool, Abort> {
        self.shared.insert(tx, key, row)
    }

    /// Replaces a row without looking at it: a blind write. False, and nothing changed, if there is none with
    /// this key.
    ///
    /// The transaction then depends on the row's being there and not on its value, so two transactions that
    /// replace the same row need not abort each other, and a boxed row is not copied. (The rows of a table with
    /// secondary indexes are read all the same: their entries must be found.)
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    #[inline]
    pub fn replace(&self, tx: &mut Transaction<'_, P>, key: &K, row: R) -> Result<bool, Abort> {
        self.shared.replace(tx, key, row)
    }

    /// Inserts a row, or [replaces](Self::replace) the one with this key. True if it was inserted.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn upsert(&self, tx: &mut Transaction<'_, P>, key: K, row: R) -> Result<bool, Abort> {
        loop {
            if self.shared.replace(tx, &key, row.clone())? {
                return Ok(false);
            }
            if self.shared.insert(tx, key.clone(), row.clone())? {
                return Ok(true);
            }
        }
    }

    /// Deletes a row. False if there is none with this key.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    #[inline]
    pub fn delete(&self, tx: &mut Transaction<'_, P>, key: &K) -> Result<bool, Abort> {
        self.shared.delete(tx, key)
    }

    /// Visits the rows whose keys are in `range`, in the order of `direction`, until the visitor breaks.
    /// The transaction's own changes are seen. What was visited, and that there was nothing else up to
    /// where the scan ended, are facts that the transaction has read.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get). A table with a hash index ends the transaction with
    /// [`Misuse::Unsupported`](hotrow_core::Misuse::Unsupported).
    #[inline]
    pub fn scan(
        &self,
        tx: &mut Transaction<'_, P>,
        range: impl RangeBounds<K>,
        direction: Direction,
        visit: impl FnMut(&K, &R) -> ControlFlow<()>,
    ) -> Result<(), Abort> {
        let (low, high) = (range.start_bound().map(K::image), range.end_bound().map(K::image));
        self.shared.scan_images(tx, low, high, direction, visit)
    }

    /// The first `limit` rows of a range, copied out.
    ///
    /// # Errors
    ///
    /// As [`scan`](Self::scan).
    pub fn collect(
        &self,
        tx: &mut Transaction<'_, P>,
        range: impl RangeBounds<K>,
        direction: Direction,
        limit: usize,
    ) -> Result<Vec<(K, R)>, Abort> {
        let mut rows = Vec::new();
        if limit > 0 {
            self.scan(tx, range, direction, |key, row| {
                rows.push((key.clone(), row.clone()));
                if rows.len() < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            })?;
        }
        Ok(rows)
    }

    /// Puts a row in outside of any transaction, to fill the table before transactions use it. Several
    /// threads may load at once. False, and nothing changed, if the key exists.
    ///
    /// A row loaded while transactions run appears at once, as if it had always been there; a table with
    /// secondary indexes should not be loaded then, since row and entries do not appear together.
    pub fn load(&self, key: K, row: R) -> bool {
        self.shared.load(key, row, &Pin::new())
    }

    /// Visits all rows with transactions of `worker`, a few hundred rows each: every batch is one consistent
    /// state, the whole is not. Rows of a table with a hash index come in no order. Returns their number.
    ///
    /// The walk over a hash index keeps from being freed whatever is retired meanwhile, by any transaction of the process,
    /// and is [reported](Engine::retained_memory) as long as it lasts.
    ///
    /// # Errors
    ///
    /// As [`Worker::run`]; [`Error::MemoryLimit`] if the walk keeps too much memory.
    pub fn for_each(&self, worker: &mut Worker<P>, mut visit: impl FnMut(&K, &R)) -> Result<u64, Error> {
        let mut rows: u64 = 0;
        match &self.shared.index {
            Index::Ordered(_) => {
                let mut next = Bound::Unbounded;
                loop {
                    let range = (next, Bound::Unbounded);
                    let batch =
                        worker.run(|tx| self.collect(tx, range.clone(), Direction::Ascending, BATCH))?;
                    batch.iter().for_each(|(key, row)| visit(key, row));
                    rows += batch.len() as u64;
                    match batch.last() {
                        Some((key, _)) if batch.len() == BATCH => next = Bound::Excluded(key.clone()),
                        _ => return Ok(rows),
                    }
                }
            }
            Index::Hash(index) => {
                let walk = Walk::new(&self.shared.label);
                let mut failed = None;
                let mut keys: Vec<K> = Vec::new();
                let mut flush = |keys: &mut Vec<K>| -> Result<(), Error> {
                    walk.may_go_on().map_err(Error::MemoryLimit)?;
                    let batch = worker.run(|tx| {
                        let mut batch = Vec::with_capacity(keys.len());
                        for key in keys.iter() {
                            if let Some(row) = self.get(tx, key)? {
                                batch.push((key.clone(), row));
                            }
                        }
                        Ok(batch)
                    })?;
                    rows += batch.len() as u64;
                    batch.iter().for_each(|(key, row)| visit(key, row));
                    keys.clear();
                    Ok(())
                };
                index.for_each_bucket(walk.pin().guard(), &mut |records| {
                    for record in records {
                        // SAFETY: found in the index under a pinned epoch.
                        keys.push(unsafe { record.as_ref() }.key().clone());
                    }
                    if keys.len() >= BATCH && failed.is_none() {
                        failed = flush(&mut keys).err();
                    }
                });
                if failed.is_none() {
                    failed = flush(&mut keys).err();
                }
                failed.map_or(Ok(()), Err)?;
                Ok(rows)
            }
        }
    }

    /// What the table's memory is spent on. Counts all rows, so it takes time.
    ///
    /// # Errors
    ///
    /// As [`for_each`](Self::for_each).
    pub fn memory(&self, worker: &mut Worker<P>) -> Result<TableMemory, Error> {
        let rows = self.for_each(worker, |_, _| ())?;
        Ok(TableMemory {
            rows,
            payload_bytes: rows * (size_of::<K>() + size_of::<R>()) as u64,
            index_bytes: self.shared.memory_bytes() as u64,
        })
    }
}

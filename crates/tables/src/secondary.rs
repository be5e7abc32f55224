//! Secondary indexes: rows found by a key other than their own.
//!
//! A secondary index is an ordered table of its own. Its keys are pairs of secondary key and primary key, and its
//! rows are empty. The operations of the primary table update it in the same transaction: an insert adds the entry, a
//! delete deletes it, and an update that changes the secondary key does both. So phantom protection, invisibility
//! before commit and cleanup are those of any table.
//!
//! An entry names its row by key, not by address, so that no result of a user's key function can lead to freed
//! memory.

use crate::catalog::PartId;
use crate::companions::MaintainedIndex;
use crate::database::Database;
use crate::errors::DuplicateKey;
use crate::index::Direction;
use crate::key::{Image, ImageRange, Key, KeyBounds};
use crate::record_index::Index;
use crate::reference::IndexRef;
use crate::scan::first_rows;
use crate::storage::Shared;
use crate::table::Table;
use hotrow_core::{Abort, Engine, EpochBox, Misuse, ObjectMeta, Pin, Protocol, Transaction, Value};
use hotrow_protocols::Occ;
use hotrow_sync::{Arc, OnceLock};
use std::fmt;
use std::ops::{Bound, ControlFlow};

/// The table of an index, once it is built. Only handles of indexes have it: a table that had it as well would keep
/// itself in memory.
pub(crate) type TableSlot<K, R, P> = Arc<OnceLock<Table<K, R, P>>>;

/// Returns the table of the index with this label.
pub(crate) fn table_of<'t, K: Key, R: Value, P: Protocol>(
    tx: &mut Transaction<'_, P>,
    slot: &'t TableSlot<K, R, P>,
    index: &ObjectMeta,
) -> Result<&'t Table<K, R, P>, Abort> {
    match slot.get() {
        Some(table) => Ok(table),
        None => {
            let misuse = format!("the table of index {} was not made", index.name());
            Err(tx.enter(index)?.misuse(Misuse::Unsupported(misuse)))
        }
    }
}

type Entries<S, K, P> = Shared<(S, K), (), P>;

/// The index itself, shared by the table and by the handles.
pub(crate) struct SecondaryInner<S: Key, K: Key, R: Value, P: Protocol> {
    entries: EpochBox<Entries<S, K, P>>,
    key_of: Box<KeyOf<S, K, R>>,
    part: OnceLock<PartId>,
}

/// A secondary index of a [`Table`](crate::Table): finds rows by a key made from key and row.
///
/// Several rows may have the same secondary key; a scan visits them in the order of their primary keys. It keeps its
/// table in memory.
pub struct SecondaryIndex<S: Key, K: Key, R: Value, P: Protocol = Occ> {
    pub(crate) kept: Arc<SecondaryInner<S, K, R, P>>,
    table: TableSlot<K, R, P>,
}

impl<S: Key, K: Key, R: Value, P: Protocol> Clone for SecondaryIndex<S, K, R, P> {
    fn clone(&self) -> Self {
        Self { kept: self.kept.clone(), table: self.table.clone() }
    }
}

impl<S: Key, K: Key, R: Value, P: Protocol> fmt::Debug for SecondaryIndex<S, K, R, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecondaryIndex").field("name", &self.name()).finish_non_exhaustive()
    }
}

impl<S: Key, K: Key, R: Value, P: Protocol> SecondaryIndex<S, K, R, P> {
    pub(crate) fn new(
        engine: &Engine<P>,
        name: String,
        immutable: bool,
        table: TableSlot<K, R, P>,
        key_of: Box<KeyOf<S, K, R>>,
    ) -> Self {
        let entries = EpochBox::new(Shared::new(engine, name, Index::ordered(), immutable));
        Self { kept: Arc::new(SecondaryInner { entries, key_of, part: OnceLock::new() }), table }
    }

    /// Keeps its number in the catalog.
    pub(crate) fn set_part(&self, id: PartId) {
        self.kept.part.set(id).expect("the index is new");
    }

    /// The index's reference, by which procedures name it.
    ///
    /// # Panics
    ///
    /// If the index's table was not made.
    pub fn reference(&self) -> IndexRef<S, K, R> {
        IndexRef::new(*self.kept.part.get().expect("the index's table is made"))
    }

    /// The index's name, which consists of the table's name and its own.
    pub fn name(&self) -> &str {
        self.kept.entries.meta.name()
    }

    /// The name of its table.
    pub fn table_name(&self) -> String {
        self.table.get().map_or_else(String::new, |table| table.name().to_owned())
    }

    /// True if its entries never change.
    pub fn is_immutable(&self) -> bool {
        self.kept.entries.immutable
    }

    /// Visits secondary and primary keys in a range of secondary keys, without reading the rows, until the visitor
    /// breaks. A change of a row conflicts only if it changes the secondary key.
    ///
    /// # Errors
    ///
    /// [`Abort`] when the attempt cannot go on; pass it up with `?`.
    pub fn scan_keys(
        &self,
        tx: &mut Transaction<'_, P>,
        range: impl KeyBounds<S>,
        direction: Direction,
        mut visit: impl FnMut(&S, &K) -> ControlFlow<()>,
    ) -> Result<(), Abort> {
        let range = images::<S, K>(&range);
        self.kept.entries.scan_images(tx, range, direction, |(secondary, key), ()| visit(secondary, key))
    }

    /// Returns the number of entries in a range of secondary keys, without reading their rows.
    ///
    /// # Errors
    ///
    /// As [`scan_keys`](Self::scan_keys).
    pub fn count(&self, tx: &mut Transaction<'_, P>, range: impl KeyBounds<S>) -> Result<usize, Abort> {
        self.kept.entries.count(tx, images::<S, K>(&range))
    }

    /// Returns copies of the primary keys and rows of the first `limit` entries in a range of secondary keys.
    ///
    /// # Errors
    ///
    /// As [`scan_keys`](Self::scan_keys).
    pub fn collect(
        &self,
        tx: &mut Transaction<'_, P>,
        range: impl KeyBounds<S>,
        direction: Direction,
        limit: usize,
    ) -> Result<Vec<(K, R)>, Abort> {
        first_rows(limit, |visit| self.scan(tx, range, direction, |_, key, row| visit(key, row)))
    }

    /// Visits the rows in a range of secondary keys until the visitor breaks.
    ///
    /// # Errors
    ///
    /// As [`scan_keys`](Self::scan_keys).
    pub fn scan(
        &self,
        tx: &mut Transaction<'_, P>,
        range: impl KeyBounds<S>,
        direction: Direction,
        mut visit: impl FnMut(&S, &K, &R) -> ControlFlow<()>,
    ) -> Result<(), Abort> {
        self.scan_images(tx, images::<S, K>(&range), direction, &mut visit)
    }

    pub(crate) fn scan_images(
        &self,
        tx: &mut Transaction<'_, P>,
        range: ImageRange<'_, (S, K)>,
        direction: Direction,
        visit: &mut dyn FnMut(&S, &K, &R) -> ControlFlow<()>,
    ) -> Result<(), Abort> {
        let kept = &*self.kept;
        let table = table_of(tx, &self.table, &kept.entries.meta)?;
        let indexed = Indexed { entries: &kept.entries, key_of: &*kept.key_of, table };
        indexed.scan_rows(tx, range, direction, |entry, ()| (&entry.0, &entry.1), visit)
    }
}

/// A table with the entries of one of its indexes.
pub(crate) struct Indexed<'t, E: Key, V: Value, S: Key, K: Key, R: Value, P: Protocol> {
    pub(crate) entries: &'t Shared<E, V, P>,
    pub(crate) key_of: &'t KeyOf<S, K, R>,
    pub(crate) table: &'t Table<K, R, P>,
}

/// The function that makes secondary keys.
pub(crate) type KeyOf<S, K, R> = dyn Fn(&K, &R) -> S + Send + Sync;

impl<E: Key, V: Value, S: Key, K: Key, R: Value, P: Protocol> Indexed<'_, E, V, S, K, R, P> {
    /// Looks at the row that an entry names, whose secondary key is told by `is_named`. If the attempt does not depend on what it reads, the row may have got another
    /// secondary key since its entry was read; then it is not the entry's any more, and not shown.
    pub(crate) fn read_row<O>(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &K,
        is_named: impl FnOnce(&S) -> bool,
        look: impl FnOnce(&R) -> O,
    ) -> Result<Option<O>, Abort> {
        let access = tx.enter(&self.entries.meta)?;
        if access.keeps_reads() || access.is_on_snapshot() {
            return self.table.read(tx, key, look);
        }
        let looked = self.table.read(tx, key, |row| is_named(&(self.key_of)(key, row)).then(|| look(row)))?;
        Ok(looked.flatten())
    }

    /// Visits the rows of the entries in a range, and depends on the entries visited alone. `names` tells the secondary and the
    /// primary key of an entry.
    pub(crate) fn scan_rows(
        &self,
        tx: &mut Transaction<'_, P>,
        (mut low, mut high): ImageRange<'_, E>,
        direction: Direction,
        names: for<'e> fn(&'e E, &'e V) -> (&'e S, &'e K),
        visit: &mut dyn FnMut(&S, &K, &R) -> ControlFlow<()>,
    ) -> Result<(), Abort> {
        let access = tx.enter(&self.entries.meta)?;
        let (keeps_reads, is_recorded) = (access.keeps_reads(), access.history().is_recorded());
        let mut show = |tx: &mut Transaction<'_, P>, entry: &E, row: &V| {
            let (secondary, key) = names(entry, row);
            let flow = self.read_row(tx, key, |now| now == secondary, |row| visit(secondary, key, row))?;
            Ok(flow.unwrap_or(ControlFlow::Continue(())))
        };
        if keeps_reads && !is_recorded {
            return self.entries.scan_one_by_one(tx, (low, high), direction, &mut show);
        }
        // Nothing conflicts where no read is kept, as on a snapshot. A recorded scan notes the range that it has covered up to each entry.
        let batch = if keeps_reads { 1 } else { BATCH };
        let mut found: Vec<(E, V)> = Vec::with_capacity(batch);
        loop {
            found.clear();
            self.entries.scan_images(tx, (low.clone(), high.clone()), direction, |entry, row| {
                found.push((entry.clone(), row.clone()));
                if found.len() < batch { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            })?;
            for (entry, row) in &found {
                if show(tx, entry, row)?.is_break() {
                    return Ok(());
                }
            }
            let Some((last, _)) = found.last() else { return Ok(()) };
            if found.len() < batch {
                return Ok(());
            }
            let behind = Bound::Excluded(E::Image::own(&last.image()));
            match direction {
                Direction::Ascending => low = behind,
                Direction::Descending => high = behind,
            }
        }
    }
}

/// The number of entries that a scan of rows whose reads are not kept reads before it reads their rows.
const BATCH: usize = if cfg!(test) { 3 } else { 16 };

/// The entries in a range of secondary keys.
pub fn images<'k, S: Key, K: Key>(range: &'k impl KeyBounds<S>) -> ImageRange<'k, (S, K)> {
    // An image that is not above any entry of a secondary key, or one behind all of them.
    let edge = S::Image::edge::<K::Image>;
    let (low, high) = range.images();
    let low = match low {
        Bound::Included(key) => Bound::Included(edge(key, false)),
        Bound::Excluded(key) => Bound::Excluded(edge(key, true)),
        Bound::Unbounded => Bound::Unbounded,
    };
    let high = match high {
        Bound::Included(key) => Bound::Included(edge(key, true)),
        Bound::Excluded(key) => Bound::Excluded(edge(key, false)),
        Bound::Unbounded => Bound::Unbounded,
    };
    (low, high)
}

impl<S: Key, K: Key, R: Value, P: Protocol> SecondaryInner<S, K, R, P> {
    fn entry(&self, key: &K, row: &R) -> (S, K) {
        ((self.key_of)(key, row), key.clone())
    }
}

impl<S: Key, K: Key, R: Value, P: Protocol> MaintainedIndex<K, R, P> for Arc<SecondaryInner<S, K, R, P>> {
    fn insert(&self, tx: &mut Transaction<'_, P>, key: &K, row: &R) -> Result<(), Abort> {
        self.entries.insert(tx, self.entry(key, row), ()).map(|_| ())
    }

    fn remove(&self, tx: &mut Transaction<'_, P>, key: &K, row: &R) -> Result<(), Abort> {
        self.entries.delete(tx, &self.entry(key, row)).map(|_| ())
    }

    fn change(&self, tx: &mut Transaction<'_, P>, key: &K, before: &R, after: &R) -> Result<(), Abort> {
        let (before, after) = (self.entry(key, before), self.entry(key, after));
        if before != after {
            self.entries.delete(tx, &before)?;
            self.entries.insert(tx, after, ())?;
        }
        Ok(())
    }

    fn load(&self, key: &K, row: &R, pin: &Pin) -> Result<(), DuplicateKey> {
        // The entry exists already only if the key's order or hash is inconsistent.
        let _ = self.entries.load_row(self.entry(key, row), (), pin);
        Ok(())
    }

    fn unload(&self, key: &K, row: &R, pin: &Pin) {
        self.entries.unload_row(&self.entry(key, row), pin);
    }

    fn meta(&self) -> &ObjectMeta {
        &self.entries.meta
    }

    fn is_immutable(&self) -> bool {
        self.entries.immutable
    }

    fn memory_bytes(&self) -> usize {
        self.entries.memory_bytes()
    }
}

impl<P: Protocol> Database<P> {
    /// Returns the secondary index of this name, which is that of its table, a point, and its own.
    ///
    /// # Errors
    ///
    /// [`TableMisuse::NoSuchName`](crate::TableMisuse::NoSuchName); [`TableMisuse::OtherTypes`](crate::TableMisuse::OtherTypes).
    pub fn index<S: Key, K: Key, R: Value>(&self, name: &str) -> Result<SecondaryIndex<S, K, R, P>, Misuse> {
        Ok(self.catalog().find::<SecondaryIndex<S, K, R, P>>(name).cloned()?)
    }

    /// Returns the secondary index to which a reference refers.
    ///
    /// # Panics
    ///
    /// If the reference is another database's.
    #[inline(always)]
    pub fn index_of<S: Key, K: Key, R: Value>(
        &self,
        index: IndexRef<S, K, R>,
    ) -> &SecondaryIndex<S, K, R, P> {
        // SAFETY: as in `table_of`.
        unsafe { self.catalog().part(index.part) }
    }
}

//! Unique indexes: at most one row for each secondary key.
//!
//! A unique index is an ordered table of its own, as a [secondary index](crate::secondary) is. Its keys are the secondary
//! keys alone, and its rows the primary keys. So two rows with the same secondary key want the same record: its lock, and
//! the leaf that stands for its absence, keep them apart under every protocol, as those of a primary key do. An operation
//! that finds the record of another row rolls back; like any error of the body's own, that counts only if the attempt has
//! seen one consistent state.

use crate::companions::MaintainedIndex;
use crate::database::Database;
use crate::errors::DuplicateKey;
use crate::index::{Direction, Keyed};
use crate::key::{AsKey, ImageRange, Key, KeyBounds};
use crate::record_index::Index;
use crate::scan::first_rows;
use crate::secondary::{Indexed, KeyOf, TableSlot, table_of};
use crate::storage::Shared;
use hotrow_core::{
    Abort, Boxed, Engine, EpochBox, Misuse, ObjectMeta, Pin, Protocol, Reason, Transaction, Value, Whole,
};
use hotrow_protocols::Occ;
use hotrow_sync::Arc;
use std::fmt;
use std::ops::ControlFlow;

/// The number of looks after which a lookup that is not kept has lost, because its secondary key moves from row to row all the time:
/// under a protocol that locks, each look may have to wait for the transaction that moves it next. In the next attempt others may be
/// kept off.
const LOOKS_MAX: u32 = 64;

/// The primary key of the row that has a secondary key.
#[derive(Clone)]
struct Owner<K>(K);

impl<K: Key> Value for Owner<K> {
    type Cell = Boxed<Self>;
    fn heap_bytes(&self) -> usize {
        self.0.heap_bytes()
    }
}

/// The index itself, shared by the table and by the handles.
pub(crate) struct UniqueInner<S: Key, K: Key, R: Value, P: Protocol> {
    entries: EpochBox<Shared<S, Owner<K>, P>>,
    key_of: Box<KeyOf<S, K, R>>,
}

/// A unique index of a [`Table`](crate::Table): finds the row that has a key made from key and row. No two rows have the
/// same one.
///
/// An operation that would give a row the secondary key of another row rolls the transaction back with
/// [`DuplicateKey`]. It does so at once, not at the commit: two rows that exchange their secondary keys in one
/// transaction must take a third one in between.
///
/// ```
/// use hotrow_tables::{Database, DuplicateKey};
///
/// let db = Database::open()?;
/// let mut builder = db.table::<u64, String>("users");
/// let by_email = builder.unique("by_email", |_, email| email.clone());
/// let users = builder.hash(100).create()?;
///
/// db.transact(|tx| users.insert(tx, 1, "ada@example.com".into()))?;
/// let found = db.transact(|tx| by_email.get(tx, "ada@example.com"))?;
/// assert_eq!(found, Some((1, "ada@example.com".into())));
///
/// let refused = db.transact(|tx| users.insert(tx, 2, "ada@example.com".into())).unwrap_err();
/// assert!(refused.downcast_ref::<DuplicateKey>().is_some());
/// assert_eq!(db.transact(|tx| users.get(tx, &2))?, None);
/// # Ok::<(), hotrow_core::Error>(())
/// ```
///
/// It keeps its table in memory.
pub struct UniqueIndex<S: Key, K: Key, R: Value, P: Protocol = Occ> {
    pub(crate) inner: Arc<UniqueInner<S, K, R, P>>,
    table: TableSlot<K, R, P>,
}

impl<S: Key, K: Key, R: Value, P: Protocol> Clone for UniqueIndex<S, K, R, P> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), table: self.table.clone() }
    }
}

impl<S: Key, K: Key, R: Value, P: Protocol> fmt::Debug for UniqueIndex<S, K, R, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UniqueIndex").field("name", &self.name()).finish_non_exhaustive()
    }
}

impl<S: Key, K: Key, R: Value, P: Protocol> UniqueIndex<S, K, R, P> {
    pub(crate) fn new(
        engine: &Engine<P>,
        name: String,
        table: TableSlot<K, R, P>,
        key_of: Box<KeyOf<S, K, R>>,
    ) -> Self {
        let entries = EpochBox::new(Shared::new(engine, name, Index::ordered(), false));
        Self { inner: Arc::new(UniqueInner { entries, key_of }), table }
    }

    /// The index's name, which consists of the table's name and its own.
    pub fn name(&self) -> &str {
        self.inner.entries.meta.name()
    }

    /// Returns copies of the primary key and the row that has a secondary key; `None` if no row has it (the transaction
    /// has then read that).
    ///
    /// # Errors
    ///
    /// [`Abort`] when the attempt cannot go on; pass it up with `?`.
    pub fn get(
        &self,
        tx: &mut Transaction<'_, P>,
        secondary: &(impl AsKey<S> + ?Sized),
    ) -> Result<Option<(K, R)>, Abort> {
        let indexed = self.indexed(tx)?;
        for _ in 0..LOOKS_MAX {
            let Some(key) = self.get_key(tx, secondary)? else { return Ok(None) };
            let row = indexed.read_row(tx, &key, |now| *now == secondary.to_key(), R::clone)?;
            // Entry and row are of one state if the attempt depends on what it reads, and commits. Otherwise the secondary key has
            // moved to another row in between, or to none.
            if row.is_some() || tx.enter(&self.inner.entries.meta)?.keeps_reads() {
                return Ok(row.map(|row| (key, row)));
            }
        }
        let meta = &self.inner.entries.meta;
        Err(tx.enter(meta)?.conflict_over(meta, Reason::ReadChanged, 0, || format!("{secondary:?}")))
    }

    /// Returns a copy of the primary key of the row that has a secondary key, without reading the row. A change of the
    /// row conflicts only if it changes the secondary key.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn get_key(
        &self,
        tx: &mut Transaction<'_, P>,
        secondary: &(impl AsKey<S> + ?Sized),
    ) -> Result<Option<K>, Abort> {
        self.inner.entries.read(tx, secondary, Whole, |owner| owner.0.clone())
    }

    /// Visits secondary and primary keys in a range of secondary keys, without reading the rows, until the visitor
    /// breaks.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn scan_keys(
        &self,
        tx: &mut Transaction<'_, P>,
        range: impl KeyBounds<S>,
        direction: Direction,
        mut visit: impl FnMut(&S, &K) -> ControlFlow<()>,
    ) -> Result<(), Abort> {
        let visit = |secondary: &S, owner: &Owner<K>| visit(secondary, &owner.0);
        self.inner.entries.scan_images(tx, range.images(), direction, visit)
    }

    /// Returns the number of entries in a range of secondary keys, without reading their rows.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn count(&self, tx: &mut Transaction<'_, P>, range: impl KeyBounds<S>) -> Result<usize, Abort> {
        self.inner.entries.count(tx, range.images())
    }

    /// Returns copies of the primary keys and rows of the first `limit` entries in a range of secondary keys.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
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
    /// As [`get`](Self::get).
    pub fn scan(
        &self,
        tx: &mut Transaction<'_, P>,
        range: impl KeyBounds<S>,
        direction: Direction,
        mut visit: impl FnMut(&S, &K, &R) -> ControlFlow<()>,
    ) -> Result<(), Abort> {
        self.scan_images(tx, range.images(), direction, &mut visit)
    }

    pub(crate) fn scan_images(
        &self,
        tx: &mut Transaction<'_, P>,
        range: ImageRange<'_, S>,
        direction: Direction,
        visit: &mut dyn FnMut(&S, &K, &R) -> ControlFlow<()>,
    ) -> Result<(), Abort> {
        let indexed = self.indexed(tx)?;
        indexed.scan_rows(tx, range, direction, |secondary, owner| (secondary, &owner.0), visit)
    }

    fn indexed(&self, tx: &mut Transaction<'_, P>) -> Result<Indexed<'_, S, Owner<K>, S, K, R, P>, Abort> {
        let inner = &*self.inner;
        let table = table_of(tx, &self.table, &inner.entries.meta)?;
        Ok(Indexed { entries: &inner.entries, key_of: &*inner.key_of, table })
    }
}

impl<S: Key, K: Key, R: Value, P: Protocol> UniqueInner<S, K, R, P> {
    #[cold]
    fn duplicate(&self, secondary: &S) -> DuplicateKey {
        DuplicateKey::of(self.entries.meta.name(), secondary)
    }

    fn add(&self, tx: &mut Transaction<'_, P>, secondary: S, key: &K) -> Result<(), Abort> {
        match self.entries.insert_unless_found(tx, secondary, Owner(key.clone()))? {
            None => Ok(()),
            // SAFETY: found under the attempt's pinned epoch.
            Some(existing) => Err(self.duplicate(unsafe { existing.as_ref() }.key()).into()),
        }
    }
}

impl<S: Key, K: Key, R: Value, P: Protocol> MaintainedIndex<K, R, P> for Arc<UniqueInner<S, K, R, P>> {
    fn insert(&self, tx: &mut Transaction<'_, P>, key: &K, row: &R) -> Result<(), Abort> {
        self.add(tx, (self.key_of)(key, row), key)
    }

    fn remove(&self, tx: &mut Transaction<'_, P>, key: &K, row: &R) -> Result<(), Abort> {
        self.entries.delete(tx, &(self.key_of)(key, row)).map(|_| ())
    }

    fn change(&self, tx: &mut Transaction<'_, P>, key: &K, before: &R, after: &R) -> Result<(), Abort> {
        let (before, after) = ((self.key_of)(key, before), (self.key_of)(key, after));
        if before != after {
            self.entries.delete(tx, &before)?;
            self.add(tx, after, key)?;
        }
        Ok(())
    }

    fn load(&self, key: &K, row: &R, pin: &Pin) -> Result<(), DuplicateKey> {
        let secondary = (self.key_of)(key, row);
        match self.entries.load_row(secondary.clone(), Owner(key.clone()), pin) {
            Ok(()) => Ok(()),
            Err(_) => Err(self.duplicate(&secondary)),
        }
    }

    fn unload(&self, key: &K, row: &R, pin: &Pin) {
        self.entries.unload_row(&(self.key_of)(key, row), pin);
    }

    fn meta(&self) -> &ObjectMeta {
        &self.entries.meta
    }

    fn is_immutable(&self) -> bool {
        false
    }

    fn may_refuse(&self) -> bool {
        true
    }

    fn memory_bytes(&self) -> usize {
        self.entries.memory_bytes()
    }
}

impl<P: Protocol> Database<P> {
    /// Returns the unique index of this name, as [`index`](Self::index) does.
    ///
    /// # Errors
    ///
    /// As [`index`](Self::index).
    pub fn unique_index<S: Key, K: Key, R: Value>(
        &self,
        name: &str,
    ) -> Result<UniqueIndex<S, K, R, P>, Misuse> {
        Ok(self.catalog().find::<UniqueIndex<S, K, R, P>>(name).cloned()?)
    }
}

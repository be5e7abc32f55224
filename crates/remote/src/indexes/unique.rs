//! Unique indexes: at most one row for each secondary key.
//!
//! The key of an entry is the secondary key, and its row the primary key. An entry is read before it is written: the commit has the
//! condition that nobody else has written it.

use super::scanning::Scans;
use super::{Entries, KeyOf, TableSlot, put_entry, table_of};
use crate::catalog::{Form, Shape};
use crate::companions::{EntryMaker, MaintainedIndex};
use crate::error::ClusterError;
use crate::layout;
use crate::shared::Shared;
use crate::store::Span;
use crate::transaction::Transaction;
use crate::writes::Write;
use hotrow_core::{Abort, Value};
use hotrow_sync::Arc;
use hotrow_tables::key::{AsKey, Key, KeyBounds};
use hotrow_tables::{Direction, DuplicateKey};
use std::fmt;
use std::ops::ControlFlow;

/// The index itself, shared by the table and by the handles.
pub(crate) struct UniqueInner<S, K, R> {
    entries: Entries<S, K>,
    key_of: KeyOf<S, K, R>,
}

/// A unique index of a [`RemoteTable`](crate::RemoteTable): finds the row that has a key, made from key and row.
///
/// An operation that would give two rows the same secondary key rolls the transaction back with [`DuplicateKey`].
pub struct RemoteUniqueIndex<S, K, R> {
    inner: Arc<UniqueInner<S, K, R>>,
    table: TableSlot<K, R>,
}

impl<S, K, R> Clone for RemoteUniqueIndex<S, K, R> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner), table: Arc::clone(&self.table) }
    }
}

impl<S, K, R> fmt::Debug for RemoteUniqueIndex<S, K, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RemoteUniqueIndex").field(&self.inner.entries.name).finish()
    }
}

impl<S: Key, K: Key, R: Value> RemoteUniqueIndex<S, K, R> {
    pub(crate) fn new(
        (table_name, name): (&str, &str),
        key_of: KeyOf<S, K, R>,
        table: TableSlot<K, R>,
    ) -> (Self, Arc<UniqueInner<S, K, R>>) {
        let inner = Arc::new(UniqueInner { entries: Entries::new(table_name, name), key_of });
        (Self { inner: Arc::clone(&inner), table }, inner)
    }

    /// The index's name, which consists of the table's name and its own.
    pub fn name(&self) -> &str {
        &self.inner.entries.name
    }

    /// The scans, if the table is open.
    fn scans(&self, tx: &mut Transaction<'_>) -> Result<Scans<'_, S, K, S, K, R>, Abort> {
        let table = table_of(tx, &self.table, self.name())?;
        Ok(Scans { entries: &self.inner.entries, table, names: |secondary: S, key: K| (secondary, key) })
    }

    fn span(&self, range: &impl KeyBounds<S>) -> Span {
        layout::span::<S>(self.inner.entries.prefix(), range.images())
    }

    /// Returns the primary key and the row that has a secondary key; `None` if no row has it (the transaction
    /// has then read that).
    ///
    /// # Errors
    ///
    /// [`Abort`] when the attempt cannot go on; pass it up with `?`.
    pub fn get(
        &self,
        tx: &mut Transaction<'_>,
        secondary: &(impl AsKey<S> + ?Sized),
    ) -> Result<Option<(K, R)>, Abort> {
        let table = table_of(tx, &self.table, self.name())?;
        let Some(key) = self.get_key(tx, secondary)? else { return Ok(None) };
        match tx.get(&table, &key)? {
            Some(row) => Ok(Some((key, row))),
            None => Err(tx.malformed(self.name(), "an entry has no row")),
        }
    }

    /// Returns the primary key of the row that has a secondary key, without reading the row. A change of the
    /// row conflicts only if it changes the secondary key.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn get_key(
        &self,
        tx: &mut Transaction<'_>,
        secondary: &(impl AsKey<S> + ?Sized),
    ) -> Result<Option<K>, Abort> {
        table_of(tx, &self.table, self.name())?;
        let entries = &self.inner.entries;
        let place = layout::part(&layout::row(entries.prefix(), secondary), 0);
        tx.read(vec![place.clone()])?;
        let Some(value) = tx.value(&place)? else { return Ok(None) };
        Ok(Some(entries.decode(tx, value)?.1))
    }

    /// Visits secondary and primary keys in a range of secondary keys, without reading the rows, until the visitor
    /// breaks. A scan in descending order reads all entries in its range.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn scan_keys(
        &self,
        tx: &mut Transaction<'_>,
        range: impl KeyBounds<S>,
        direction: Direction,
        mut visit: impl FnMut(&S, &K) -> ControlFlow<()>,
    ) -> Result<(), Abort> {
        self.scans(tx)?.keys(tx, self.span(&range), direction, &mut visit)
    }

    /// Visits the rows in a range of secondary keys until the visitor breaks. Rows are read together, as many as the
    /// [settings](crate::Settings::page) say.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn scan(
        &self,
        tx: &mut Transaction<'_>,
        range: impl KeyBounds<S>,
        direction: Direction,
        mut visit: impl FnMut(&S, &K, &R) -> ControlFlow<()>,
    ) -> Result<(), Abort> {
        self.scans(tx)?.rows(tx, self.span(&range), direction, &mut visit)
    }

    /// Returns the number of entries in a range of secondary keys, without reading their rows.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn count(&self, tx: &mut Transaction<'_>, range: impl KeyBounds<S>) -> Result<usize, Abort> {
        self.scans(tx)?.count(tx, self.span(&range))
    }

    /// Returns the primary keys and rows of the first `limit` entries in a range of secondary keys.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn collect(
        &self,
        tx: &mut Transaction<'_>,
        range: impl KeyBounds<S>,
        direction: Direction,
        limit: usize,
    ) -> Result<Vec<(K, R)>, Abort> {
        self.scans(tx)?.first(tx, self.span(&range), direction, limit)
    }
}

impl<S: Key, K: Key, R: Value> UniqueInner<S, K, R> {
    fn add(&self, tx: &mut Transaction<'_>, secondary: &S, key: &K) -> Result<(), Abort> {
        let place = self.entries.place(secondary);
        tx.read(vec![place.clone()])?;
        if tx.value(&place)?.is_some() {
            return Err(tx.raise(DuplicateKey::of(&self.entries.name, secondary)));
        }
        let value = self.entries.encode(tx, secondary, key)?;
        tx.writes.insert(place, Write::Put(value));
        Ok(())
    }

    fn delete(&self, tx: &mut Transaction<'_>, secondary: &S) {
        let place = self.entries.place(secondary);
        let was_there = tx.reads.get(&place).map_or(!tx.is_covered(&place), |seen| seen.value.is_some());
        if was_there {
            tx.writes.insert(place, Write::Delete);
        } else {
            tx.writes.remove(&place);
        }
    }
}

impl<S: Key, K: Key, R: Value> MaintainedIndex<K, R> for UniqueInner<S, K, R> {
    fn open(&self, shared: &Shared) -> Result<(), ClusterError> {
        self.entries.open(shared, self.entries.whole(K::stored())?, self.shape()?)
    }

    fn shape(&self) -> Result<Shape, ClusterError> {
        Ok(Shape::index(Form::Unique, self.entries.whole(K::stored())?.schemas(), &self.entries.table))
    }

    fn maker(&self, prefix: Vec<u8>) -> Result<EntryMaker<'_, K, R>, ClusterError> {
        let form = self.entries.whole(K::stored())?;
        Ok(Box::new(move |key, row| put_entry(&form, &prefix, &(self.key_of)(key, row), key)))
    }

    fn duplicate(&self, key: &K, row: &R) -> DuplicateKey {
        DuplicateKey::of(&self.entries.name, &(self.key_of)(key, row))
    }

    fn name(&self) -> &str {
        &self.entries.name
    }

    fn is_unique(&self) -> bool {
        true
    }

    fn insert(&self, tx: &mut Transaction<'_>, key: &K, row: &R) -> Result<(), Abort> {
        self.add(tx, &(self.key_of)(key, row), key)
    }

    fn remove(&self, tx: &mut Transaction<'_>, key: &K, row: &R) -> Result<(), Abort> {
        self.delete(tx, &(self.key_of)(key, row));
        Ok(())
    }

    fn change(&self, tx: &mut Transaction<'_>, key: &K, before: &R, after: &R) -> Result<(), Abort> {
        let (before, after) = ((self.key_of)(key, before), (self.key_of)(key, after));
        if before != after {
            self.delete(tx, &before);
            self.add(tx, &after, key)?;
        }
        Ok(())
    }
}

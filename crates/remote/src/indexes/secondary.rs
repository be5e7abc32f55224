//! Secondary indexes: any number of rows for each secondary key.
//!
//! The key of an entry is the pair of secondary and primary key, and its row is empty. The transaction that writes it has read the row
//! that it is of, so it knows if the entry is there: a change back and forth leaves no write.

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
use hotrow_stored::StoredForm;
use hotrow_sync::{Arc, OnceLock};
use hotrow_tables::inside::entries_of;
use hotrow_tables::key::{Key, KeyBounds};
use hotrow_tables::{Direction, DuplicateKey, IndexRef};
use std::fmt;
use std::ops::ControlFlow;

/// The index itself, shared by the table and by the handles.
pub(crate) struct SecondaryInner<S, K, R> {
    entries: Entries<(S, K), ()>,
    key_of: KeyOf<S, K, R>,
    reference: OnceLock<IndexRef<S, K, R>>,
}

/// A secondary index of a [`RemoteTable`](crate::RemoteTable): finds rows by a key made from key and row.
///
/// Several rows may have the same secondary key; a scan visits them in the order of their primary keys.
pub struct RemoteIndex<S, K, R> {
    inner: Arc<SecondaryInner<S, K, R>>,
    table: TableSlot<K, R>,
}

impl<S, K, R> Clone for RemoteIndex<S, K, R> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner), table: Arc::clone(&self.table) }
    }
}

impl<S, K, R> fmt::Debug for RemoteIndex<S, K, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RemoteIndex").field(&self.inner.entries.name).finish()
    }
}

impl<S: Key, K: Key, R: Value> RemoteIndex<S, K, R> {
    pub(crate) fn new(
        (table_name, name): (&str, &str),
        key_of: KeyOf<S, K, R>,
        table: TableSlot<K, R>,
    ) -> (Self, Arc<SecondaryInner<S, K, R>>) {
        let inner = Arc::new(SecondaryInner {
            entries: Entries::new(table_name, name),
            key_of,
            reference: OnceLock::new(),
        });
        (Self { inner: Arc::clone(&inner), table }, inner)
    }

    /// The index's name, which consists of the table's name and its own.
    pub fn name(&self) -> &str {
        &self.inner.entries.name
    }

    /// The number of the index in the store, when its table is open.
    pub(crate) fn number(&self) -> u32 {
        self.inner.entries.opened().number
    }

    /// A reference by which procedures name the index.
    ///
    /// # Panics
    ///
    /// If its table is not open yet.
    pub fn reference(&self) -> IndexRef<S, K, R> {
        self.inner
            .reference
            .get()
            .copied()
            .expect("the table of an index is opened before a procedure names it")
    }

    /// The scans, if the table is open.
    fn scans(&self, tx: &mut Transaction<'_>) -> Result<Scans<'_, (S, K), (), S, K, R>, Abort> {
        let table = table_of(tx, &self.table, self.name())?;
        Ok(Scans { entries: &self.inner.entries, table, names: |entry: (S, K), ()| entry })
    }

    fn span(&self, range: &impl KeyBounds<S>) -> Span {
        layout::span::<(S, K)>(self.inner.entries.prefix(), entries_of::<S, K>(range))
    }

    /// Visits secondary and primary keys in a range of secondary keys, without reading the rows, until the visitor
    /// breaks. A change of a row conflicts only if it changes the secondary key. A scan in descending order reads all entries in
    /// its range.
    ///
    /// # Errors
    ///
    /// [`Abort`] when the attempt cannot go on; pass it up with `?`.
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
    /// As [`scan_keys`](Self::scan_keys).
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
    /// As [`scan_keys`](Self::scan_keys).
    pub fn count(&self, tx: &mut Transaction<'_>, range: impl KeyBounds<S>) -> Result<usize, Abort> {
        self.scans(tx)?.count(tx, self.span(&range))
    }

    /// Returns the primary keys and rows of the first `limit` entries in a range of secondary keys.
    ///
    /// # Errors
    ///
    /// As [`scan_keys`](Self::scan_keys).
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

impl<S: Key, K: Key, R: Value> SecondaryInner<S, K, R> {
    fn add(&self, tx: &mut Transaction<'_>, secondary: S, key: &K) -> Result<(), Abort> {
        let entry = (secondary, key.clone());
        let place = self.entries.place(&entry);
        if tx.writes.get(&place) == Some(&Write::Delete) {
            // It is there, and stays.
            tx.writes.remove(&place);
        } else {
            let value = self.entries.encode(tx, &entry, &())?;
            tx.writes.insert(place, Write::Put(value));
        }
        Ok(())
    }

    fn delete(&self, tx: &mut Transaction<'_>, secondary: S, key: &K) {
        let place = self.entries.place(&(secondary, key.clone()));
        if matches!(tx.writes.get(&place), Some(Write::Put(_))) {
            // It was not there.
            tx.writes.remove(&place);
        } else {
            tx.writes.insert(place, Write::Delete);
        }
    }
}

impl<S: Key, K: Key, R: Value> MaintainedIndex<K, R> for SecondaryInner<S, K, R> {
    fn open(&self, shared: &Shared) -> Result<(), ClusterError> {
        self.entries.open(shared, self.entries.whole(Some(StoredForm::of()))?, self.shape()?)?;
        self.reference.get_or_init(|| shared.elsewhere.index(self.entries.opened().number));
        Ok(())
    }

    fn shape(&self) -> Result<Shape, ClusterError> {
        Ok(Shape::index(
            Form::Secondary,
            self.entries.whole(Some(StoredForm::of()))?.schemas(),
            &self.entries.table,
        ))
    }

    fn maker(&self, prefix: Vec<u8>) -> Result<EntryMaker<'_, K, R>, ClusterError> {
        let form = self.entries.whole(Some(StoredForm::of()))?;
        let entry = |key: &K, row: &R| ((self.key_of)(key, row), key.clone());
        Ok(Box::new(move |key, row| put_entry(&form, &prefix, &entry(key, row), &())))
    }

    fn duplicate(&self, key: &K, row: &R) -> DuplicateKey {
        DuplicateKey::of(&self.entries.name, &(self.key_of)(key, row))
    }

    fn name(&self) -> &str {
        &self.entries.name
    }

    fn is_unique(&self) -> bool {
        false
    }

    fn insert(&self, tx: &mut Transaction<'_>, key: &K, row: &R) -> Result<(), Abort> {
        self.add(tx, (self.key_of)(key, row), key)
    }

    fn remove(&self, tx: &mut Transaction<'_>, key: &K, row: &R) -> Result<(), Abort> {
        self.delete(tx, (self.key_of)(key, row), key);
        Ok(())
    }

    fn change(&self, tx: &mut Transaction<'_>, key: &K, before: &R, after: &R) -> Result<(), Abort> {
        let (before, after) = ((self.key_of)(key, before), (self.key_of)(key, after));
        if before != after {
            self.delete(tx, before, key);
            self.add(tx, after, key)?;
        }
        Ok(())
    }
}

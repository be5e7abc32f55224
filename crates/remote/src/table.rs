//! Tables of a cluster.

use crate::companions::Companions;
use crate::counters::CounterType;
use crate::layout;
use crate::rows::RowForm;
use crate::shared::Shared;
use crate::transaction::{Judge, Transaction};
use hotrow_core::column_groups::groups_of;
use hotrow_core::{Abort, Column, Fields, Value};
use hotrow_sync::Arc;
use hotrow_tables::TableRef;
use hotrow_tables::inside::GroupsOf;
use hotrow_tables::key::{AsKey, Key};
use std::fmt;

/// A table of a [`Cluster`](crate::Cluster): rows of type `R` by keys of type `K`, in the order of keys.
///
/// A handle, which is cheap to clone. Transactions have the operations.
pub struct RemoteTable<K, R> {
    inner: Arc<Inner<K, R>>,
}

struct Inner<K, R> {
    reference: TableRef<K, R>,
    name: String,
    prefix: Vec<u8>,
    form: RowForm<K, R>,
    companions: Companions<K, R>,
}

/// A set of parts of a row: the lowest bit stands for the main part, the next for that of the first group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PartSet(u32);

impl PartSet {
    /// The main part alone.
    pub(crate) const MAIN: Self = Self(1);

    /// The numbers of the parts.
    pub(crate) fn each(self) -> impl Iterator<Item = usize> {
        (0..u32::BITS as usize).filter(move |number| self.0 >> number & 1 != 0)
    }
}

impl<K, R> Clone for RemoteTable<K, R> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner) }
    }
}

impl<K, R> fmt::Debug for RemoteTable<K, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RemoteTable").field(&self.inner.name).finish()
    }
}

impl<K, R> RowForm<K, R> {
    /// All parts of a row.
    pub(crate) fn all(&self) -> PartSet {
        PartSet(u32::MAX >> (u32::BITS as usize - self.parts()))
    }
}

impl<K: Key, R: Value> RemoteTable<K, R> {
    pub(crate) fn new(
        shared: &Shared,
        name: &str,
        number: u32,
        form: RowForm<K, R>,
        companions: Companions<K, R>,
    ) -> Self {
        let prefix = shared.layout.table(number);
        let reference = shared.elsewhere.table(number);
        Self { inner: Arc::new(Inner { reference, name: name.to_owned(), prefix, form, companions }) }
    }

    /// The table's name.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// A reference by which procedures name the table.
    pub fn reference(&self) -> TableRef<K, R> {
        self.inner.reference
    }

    pub(crate) fn form(&self) -> &RowForm<K, R> {
        &self.inner.form
    }

    pub(crate) fn prefix(&self) -> &[u8] {
        &self.inner.prefix
    }

    /// True if it is a table of this cluster.
    pub(crate) fn is_of(&self, shared: &Shared) -> bool {
        shared.elsewhere.table_number(self.inner.reference).is_some()
    }

    /// The beginning of the keys of a row's parts.
    pub(crate) fn row(&self, key: &(impl AsKey<K> + ?Sized)) -> Vec<u8> {
        layout::row(&self.inner.prefix, key)
    }

    /// The parts that have some fields.
    pub(crate) fn parts_of(&self, fields: impl Fields<R>) -> PartSet {
        match self.inner.form.parts() {
            1 => PartSet::MAIN,
            _ => PartSet(groups_of::<R, GroupsOf<R>>(fields)),
        }
    }

    /// The parts that have columns of indexes.
    fn indexed(&self) -> PartSet {
        match self.inner.form.parts() {
            1 => PartSet(u32::from(self.has_indexes())),
            _ => PartSet(self.inner.companions.indexed & self.inner.form.all().0),
        }
    }

    /// The parts to be read by an operation that changes some.
    pub(crate) fn parts_to_change(&self, parts: PartSet) -> PartSet {
        if !self.inner.companions.constraints.is_empty() {
            self.inner.form.all()
        } else if self.is_indexed(parts) {
            PartSet(parts.0 | self.indexed().0)
        } else {
            parts
        }
    }

    /// The parts to be read by an operation that replaces or deletes a row.
    pub(crate) fn parts_to_replace(&self) -> PartSet {
        PartSet(PartSet::MAIN.0 | self.indexed().0)
    }

    /// True if an index may depend on one of the parts.
    pub(crate) fn is_indexed(&self, parts: PartSet) -> bool {
        parts.0 & self.indexed().0 != 0
    }

    pub(crate) fn has_indexes(&self) -> bool {
        !self.inner.companions.indexes.is_empty()
    }

    pub(crate) fn has_unique_index(&self) -> bool {
        self.inner.companions.indexes.iter().any(|index| index.is_unique())
    }

    /// The part that is a column, and its type, if it is a counter on which nothing depends.
    pub(crate) fn counter<F>(&self, column: Column<R, F>) -> Option<(usize, &CounterType)>
    where
        Column<R, F>: Fields<R>,
    {
        let parts = self.parts_of(column);
        let part = parts.0.trailing_zeros() as usize;
        let is_alone = parts.0.is_power_of_two() && self.parts_to_change(parts) == parts;
        Some((part, self.inner.form.counter(part).filter(|_| is_alone && !self.is_indexed(parts))?))
    }

    /// Adds the entries of a row that is new.
    pub(crate) fn insert_into_indexes(
        &self,
        tx: &mut Transaction<'_>,
        key: &K,
        row: &R,
    ) -> Result<(), Abort> {
        self.inner.companions.indexes.iter().try_for_each(|index| index.insert(tx, key, row))
    }

    /// Deletes the entries of a row that was deleted.
    pub(crate) fn remove_from_indexes(
        &self,
        tx: &mut Transaction<'_>,
        key: &K,
        row: &R,
    ) -> Result<(), Abort> {
        self.inner.companions.indexes.iter().try_for_each(|index| index.remove(tx, key, row))
    }

    /// Changes the entries of a row that has changed.
    pub(crate) fn change_in_indexes(
        &self,
        tx: &mut Transaction<'_>,
        key: &K,
        before: &R,
        after: &R,
    ) -> Result<(), Abort> {
        self.inner.companions.indexes.iter().try_for_each(|index| index.change(tx, key, before, after))
    }

    /// The table, if rows are judged before they are committed.
    pub(crate) fn judge(&self) -> Option<Arc<dyn Judge>> {
        let has_constraints = !self.inner.companions.constraints.is_empty();
        has_constraints.then(|| Arc::clone(&self.inner) as Arc<dyn Judge>)
    }
}

impl<K: Key, R: Value> Judge for Inner<K, R> {
    fn judge(&self, tx: &mut Transaction<'_>, name: &[u8]) -> Result<(), Abort> {
        let Some(parts) = tx.parts(&self.form, name, self.form.all())? else { return Ok(()) };
        let main = parts[0].as_deref().unwrap_or_default();
        let read = self.form.key(main).and_then(|key| Ok((key, self.form.decode(&parts)?)));
        let (key, row) = read.map_err(|malformed| tx.malformed(&self.name, &malformed.to_string()))?;
        self.companions.constraints.judge(&self.name, &key, &row)?;
        Ok(())
    }
}

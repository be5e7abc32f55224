//! The indexes that a table maintains.

use crate::errors::DuplicateKey;
use crate::key::Key;
use hotrow_core::{Abort, ObjectMeta, Pin, Protocol, Transaction, Value};

/// The updates by which a primary table maintains one of its secondary indexes.
pub(crate) trait MaintainedIndex<K: Key, R: Value, P: Protocol>: Send + Sync {
    fn insert(&self, tx: &mut Transaction<'_, P>, key: &K, row: &R) -> Result<(), Abort>;

    fn remove(&self, tx: &mut Transaction<'_, P>, key: &K, row: &R) -> Result<(), Abort>;

    fn change(&self, tx: &mut Transaction<'_, P>, key: &K, before: &R, after: &R) -> Result<(), Abort>;

    /// Adds the entry of a row that is loaded before others can see the table.
    fn load(&self, key: &K, row: &R, pin: &Pin) -> Result<(), DuplicateKey>;

    /// Takes back what [`load`](Self::load) has added.
    fn unload(&self, key: &K, row: &R, pin: &Pin);

    /// The label of the entries' table.
    fn meta(&self) -> &ObjectMeta;

    /// True if entries never change after loading.
    fn is_immutable(&self) -> bool;

    /// True if a change may be refused, because another row has the key.
    fn may_refuse(&self) -> bool {
        false
    }

    fn memory_bytes(&self) -> usize;
}

/// The indexes of a table, in the order of their declarations.
pub(crate) struct MaintainedIndexes<K: Key, R: Value, P: Protocol>(Vec<Box<dyn MaintainedIndex<K, R, P>>>);

impl<K: Key, R: Value, P: Protocol> MaintainedIndexes<K, R, P> {
    pub(crate) fn new() -> Self {
        Self(Vec::new())
    }

    pub(crate) fn add(&mut self, index: impl MaintainedIndex<K, R, P> + 'static) {
        self.0.push(Box::new(index));
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds the entries of a row.
    #[inline]
    pub(crate) fn insert(&self, tx: &mut Transaction<'_, P>, key: &K, row: &R) -> Result<(), Abort> {
        self.0.iter().try_for_each(|index| index.insert(tx, key, row))
    }

    /// Deletes the entries of a row.
    #[inline]
    pub(crate) fn remove(&self, tx: &mut Transaction<'_, P>, key: &K, row: &R) -> Result<(), Abort> {
        self.0.iter().try_for_each(|index| index.remove(tx, key, row))
    }

    /// Moves the entries of a row that has changed.
    #[inline]
    pub(crate) fn change(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &K,
        before: &R,
        after: &R,
    ) -> Result<(), Abort> {
        self.0.iter().try_for_each(|index| index.change(tx, key, before, after))
    }

    /// Adds the entries of a row that is loaded: all, or none if one is refused.
    pub(crate) fn load(&self, key: &K, row: &R, pin: &Pin) -> Result<(), DuplicateKey> {
        self.0.iter().enumerate().try_for_each(|(number, index)| {
            index.load(key, row, pin).inspect_err(|_| {
                self.0[..number].iter().for_each(|added| added.unload(key, row, pin));
            })
        })
    }

    /// The labels of the tables of their entries.
    pub(crate) fn metas(&self) -> impl Iterator<Item = &ObjectMeta> {
        self.0.iter().map(|index| index.meta())
    }

    /// The labels of those whose entries may come and go after loading.
    pub(crate) fn moving(&self) -> impl Iterator<Item = &ObjectMeta> {
        self.0.iter().filter(|index| !index.is_immutable()).map(|index| index.meta())
    }

    /// True if there is one of them.
    pub(crate) fn any_moves(&self) -> bool {
        self.0.iter().any(|index| !index.is_immutable())
    }

    /// True if a change may be refused, because another row has the key.
    pub(crate) fn may_refuse(&self) -> bool {
        self.0.iter().any(|index| index.may_refuse())
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.0.iter().map(|index| index.memory_bytes()).sum()
    }
}

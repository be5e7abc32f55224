//! Facts that depend on a table's rows: constraints and indexes, as the table sees them.

use crate::catalog::Shape;
use crate::error::ClusterError;
use crate::shared::Shared;
use crate::transaction::Transaction;
use hotrow_core::Abort;
use hotrow_sync::Arc;
use hotrow_tables::DuplicateKey;
use hotrow_tables::inside::Constraints;

/// The facts that depend on a table's rows, as they were declared.
pub(crate) struct Companions<K, R> {
    pub(crate) constraints: Constraints<K, R>,
    pub(crate) indexes: Vec<Arc<dyn MaintainedIndex<K, R>>>,
    /// The column groups of which indexes use columns, as [`groups_of`](hotrow_core::column_groups::groups_of) numbers them.
    pub(crate) indexed: u32,
}

/// Makes the key and the value of an entry by a key and a row, or says why it cannot be stored.
pub(crate) type EntryMaker<'i, K, R> = Box<dyn Fn(&K, &R) -> Result<(Vec<u8>, Vec<u8>), String> + 'i>;

/// An index as its table maintains it.
pub(crate) trait MaintainedIndex<K, R>: Send + Sync {
    /// Opens the index with its table.
    fn open(&self, shared: &Shared) -> Result<(), ClusterError>;

    /// The full name of the index.
    fn name(&self) -> &str;

    /// True if no two rows may have the same key of it.
    fn is_unique(&self) -> bool;

    /// Adds the entry of a row that is new.
    fn insert(&self, tx: &mut Transaction<'_>, key: &K, row: &R) -> Result<(), Abort>;

    /// Deletes the entry of a row that was deleted.
    fn remove(&self, tx: &mut Transaction<'_>, key: &K, row: &R) -> Result<(), Abort>;

    /// The shape of the table of entries.
    fn shape(&self) -> Result<Shape, ClusterError>;

    /// Makes entries of rows, for a table of entries at this place, which need not be open.
    fn maker(&self, prefix: Vec<u8>) -> Result<EntryMaker<'_, K, R>, ClusterError>;

    /// The error of a row whose entry another row has already.
    fn duplicate(&self, key: &K, row: &R) -> DuplicateKey;

    /// Changes the entry of a row that has changed.
    fn change(&self, tx: &mut Transaction<'_>, key: &K, before: &R, after: &R) -> Result<(), Abort>;
}

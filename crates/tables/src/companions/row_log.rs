//! The way of a table's rows to the log.

use crate::key::Key;
use hotrow_core::Value;

/// Writes a table's rows to records of the log. A row that cannot be written is an error.
pub(crate) trait RowLog<K: Key, R: Value>: Send + Sync {
    /// Appends a row.
    fn put(&self, entries: &mut Vec<u8>, key: &K, row: &R) -> Result<(), String>;

    /// Appends what has changed of a row.
    fn put_changes(&self, entries: &mut Vec<u8>, key: &K, before: &R, after: &R) -> Result<(), String>;

    /// Appends the fields of a column group, which `put` copies to a row.
    fn put_group(
        &self,
        entries: &mut Vec<u8>,
        key: &K,
        group: usize,
        put: &dyn Fn(&mut R),
    ) -> Result<(), String>;

    /// Appends a row's deletion.
    fn delete(&self, entries: &mut Vec<u8>, key: &K) -> Result<(), String>;
}

//! Indexes: rows found by a key other than their own.
//!
//! An index is a table of its own, whose rows are its *entries*. The operations of a table write the entries in the same commit as the
//! rows, so that validation, own writes, tombstones and their collection are those of any table. The secondary key of a row is known from
//! what the operation has read of it, which is validated; so an entry of a secondary index is written without being read.

mod scanning;
mod secondary;
mod unique;

pub use secondary::RemoteIndex;
pub use unique::RemoteUniqueIndex;

use crate::catalog::{self, Shape};
use crate::error::ClusterError;
use crate::layout;
use crate::rows::RowForm;
use crate::shared::Shared;
use crate::table::RemoteTable;
use crate::transaction::Transaction;
use hotrow_core::{Abort, Misuse, Value};
use hotrow_stored::StoredForm;
use hotrow_sync::{Arc, OnceLock};
use hotrow_tables::TableMisuse;
use hotrow_tables::key::Key;
use std::any::type_name;

/// The function that makes secondary keys.
pub(crate) type KeyOf<S, K, R> = Box<dyn Fn(&K, &R) -> S + Send + Sync>;

/// The place where the handles of an index find its table, once it is open.
pub(crate) type TableSlot<K, R> = Arc<OnceLock<RemoteTable<K, R>>>;

/// The entries of an index: rows of type `V` by keys of type `E`.
pub(crate) struct Entries<E, V> {
    /// The name of the table, behind it a dot, and the index's own.
    name: String,
    table: String,
    opened: OnceLock<Opened<E, V>>,
}

/// The form and the place of entries in the store.
struct Opened<E, V> {
    form: RowForm<E, V>,
    prefix: Vec<u8>,
    number: u32,
}

impl<E: Key, V> Entries<E, V> {
    fn new(table: &str, index: &str) -> Self {
        Self { name: format!("{table}.{index}"), table: table.to_owned(), opened: OnceLock::new() }
    }

    /// The form of entries, whose rows have this stored form.
    fn whole(&self, row: Option<StoredForm<V>>) -> Result<RowForm<E, V>, ClusterError> {
        let not_stored = |of| TableMisuse::NotStored { name: self.name.clone(), of };
        let key = E::stored().ok_or_else(|| not_stored(type_name::<E>()))?;
        Ok(RowForm::whole(key, row.ok_or_else(|| not_stored(type_name::<V>()))?))
    }

    /// Opens the index with entries of a form and of this shape.
    fn open(&self, shared: &Shared, form: RowForm<E, V>, shape: Shape) -> Result<(), ClusterError> {
        let number = catalog::open(shared, &self.name, shape)?;
        self.opened.get_or_init(|| Opened { form, prefix: shared.layout.table(number), number });
        Ok(())
    }

    fn opened(&self) -> &Opened<E, V> {
        self.opened.get().expect("an index is opened before its table")
    }

    /// The beginning of the keys of all entries.
    fn prefix(&self) -> &[u8] {
        &self.opened().prefix
    }

    fn form(&self) -> &RowForm<E, V> {
        &self.opened().form
    }

    /// The key of an entry.
    fn place(&self, entry: &E) -> Vec<u8> {
        place_of(self.prefix(), entry)
    }

    fn encode(&self, tx: &mut Transaction<'_>, entry: &E, row: &V) -> Result<Vec<u8>, Abort> {
        let parts = self.form().encode(entry, row).map_err(|reason| tx.refuse(reason))?;
        Ok(parts.into_iter().next().unwrap_or_default())
    }

    fn decode(&self, tx: &mut Transaction<'_>, value: Vec<u8>) -> Result<(E, V), Abort> {
        let entry = self.form().key(&value);
        let read = entry.and_then(|entry| Ok((entry, self.form().decode(&vec![Some(value)])?)));
        read.map_err(|malformed| tx.malformed(&self.name, &malformed.to_string()))
    }
}

/// The key of an entry of the table at a place.
fn place_of<E: Key>(prefix: &[u8], entry: &E) -> Vec<u8> {
    layout::part(&layout::row(prefix, entry), 0)
}

/// The key and the value of an entry of the table at a place.
fn put_entry<E: Key, V>(
    form: &RowForm<E, V>,
    prefix: &[u8],
    entry: &E,
    row: &V,
) -> Result<(Vec<u8>, Vec<u8>), String> {
    Ok((place_of(prefix, entry), form.encode(entry, row)?.concat()))
}

/// The table of an index.
fn table_of<K: Key, R: Value>(
    tx: &mut Transaction<'_>,
    slot: &TableSlot<K, R>,
    index: &str,
) -> Result<RemoteTable<K, R>, Abort> {
    let Some(table) = slot.get() else {
        return Err(tx.fail(Misuse::Unsupported(format!("the table of index {index} was not opened"))));
    };
    tx.check(table)?;
    Ok(table.clone())
}

//! Builders of tables: constraints and indexes, declared before the table is opened.

use crate::catalog::{self, Form, Shape};
use crate::companions::Companions;
use crate::converting::{self, Declared};
use crate::error::ClusterError;
use crate::indexes::{KeyOf, RemoteIndex, RemoteUniqueIndex, TableSlot};
use crate::rows::RowForm;
use crate::shared::Shared;
use crate::table::RemoteTable;
use hotrow_core::column_groups::groups_of;
use hotrow_core::{Columns, Value};
use hotrow_sync::Arc;
use hotrow_tables::TableMisuse;
use hotrow_tables::inside::{Constraints, GroupsOf};
use hotrow_tables::key::Key;
use std::fmt;

/// The properties of a table to be opened. See [`Cluster::table`](crate::Cluster::table).
pub struct RemoteTableBuilder<K, R> {
    shared: Arc<Shared>,
    name: String,
    companions: Companions<K, R>,
    /// The place where the handles of the indexes find the table.
    slot: TableSlot<K, R>,
    /// Keep the handles of indexes when their table has this number.
    keep_handles: Vec<Box<dyn FnOnce(&Shared, u32)>>,
}

impl<K, R> fmt::Debug for RemoteTableBuilder<K, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteTableBuilder").field("name", &self.name).finish_non_exhaustive()
    }
}

impl<K: Key, R: Value> RemoteTableBuilder<K, R> {
    pub(crate) fn new(shared: Arc<Shared>, name: String) -> Self {
        let companions = Companions { constraints: Constraints::new(), indexes: Vec::new(), indexed: 0 };
        Self { shared, name, companions, slot: TableSlot::default(), keep_handles: Vec::new() }
    }

    /// Declares a constraint: a condition that each row meets whenever a transaction commits. A table may have several.
    ///
    /// Each row that a transaction has inserted or changed is judged when its body has ended, in its final state; it may
    /// be wrong in between. If `holds` is false, the transaction rolls back with
    /// [`ConstraintViolated`](hotrow_tables::ConstraintViolated). `holds` must return the same result for the same key and row. Each
    /// process judges the rows that it writes: all should declare the same constraints.
    #[must_use]
    pub fn check(mut self, name: &str, holds: impl Fn(&K, &R) -> bool + Send + Sync + 'static) -> Self {
        self.companions.constraints.add(name, holds);
        self
    }

    /// Adds a secondary index by a key that `key_of` makes from key and row. It must return the same result for the
    /// same key and row. All processes declare the same indexes, from the first row on.
    pub fn secondary<S: Key>(
        &mut self,
        name: &str,
        key_of: impl Fn(&K, &R) -> S + Send + Sync + 'static,
    ) -> RemoteIndex<S, K, R> {
        self.companions.indexed = u32::MAX;
        self.secondary_by(name, Box::new(key_of))
    }

    /// As [`secondary`](Self::secondary), for a key that is made from some columns of the row: `column_of!(Person, age)`, or a tuple of them.
    ///
    /// Transactions that change other [groups](trait@hotrow_core::Value) of columns do not read those of the index.
    pub fn secondary_on<C: Columns<R> + Send + Sync + 'static, S: Key>(
        &mut self,
        name: &str,
        columns: C,
        key_of: impl Fn(&K, C::Values) -> S + Send + Sync + 'static,
    ) -> RemoteIndex<S, K, R> {
        self.companions.indexed |= groups_of::<R, GroupsOf<R>>(columns);
        self.secondary_by(name, Box::new(move |key, row| key_of(key, columns.of(row))))
    }

    /// Adds an index by a key that `key_of` makes from key and row, and that no two rows may have: see [`RemoteUniqueIndex`]. It
    /// must return the same result for the same key and row. All processes declare the same indexes, from the first row on.
    pub fn unique<S: Key>(
        &mut self,
        name: &str,
        key_of: impl Fn(&K, &R) -> S + Send + Sync + 'static,
    ) -> RemoteUniqueIndex<S, K, R> {
        self.companions.indexed = u32::MAX;
        self.unique_by(name, Box::new(key_of))
    }

    /// As [`unique`](Self::unique), for a key that is made from some columns of the row: see [`secondary_on`](Self::secondary_on).
    pub fn unique_on<C: Columns<R> + Send + Sync + 'static, S: Key>(
        &mut self,
        name: &str,
        columns: C,
        key_of: impl Fn(&K, C::Values) -> S + Send + Sync + 'static,
    ) -> RemoteUniqueIndex<S, K, R> {
        self.companions.indexed |= groups_of::<R, GroupsOf<R>>(columns);
        self.unique_by(name, Box::new(move |key, row| key_of(key, columns.of(row))))
    }

    fn secondary_by<S: Key>(&mut self, name: &str, key_of: KeyOf<S, K, R>) -> RemoteIndex<S, K, R> {
        let (index, inner) = RemoteIndex::new((&self.name, name), key_of, Arc::clone(&self.slot));
        self.companions.indexes.push(inner);
        let handle = index.clone();
        let keep = |shared: &Shared, table| shared.keep_handle(handle.number(), table, handle);
        self.keep_handles.push(Box::new(keep));
        index
    }

    fn unique_by<S: Key>(&mut self, name: &str, key_of: KeyOf<S, K, R>) -> RemoteUniqueIndex<S, K, R> {
        let (index, inner) = RemoteUniqueIndex::new((&self.name, name), key_of, Arc::clone(&self.slot));
        self.companions.indexes.push(inner);
        index
    }

    /// Opens the table of this name, or makes it if there is none.
    ///
    /// The schemas of keys and rows are kept in the store, and so are the [groups](trait@hotrow_core::Value) of columns and the names of
    /// indexes. New names and new variants at the end are accepted; other changes are not, because other processes may still write rows
    /// of the earlier type.
    ///
    /// The first program that opens a table that was copied from a directory declares its groups and indexes: the rows get the declared form before
    /// this returns, which takes as long as writing them all. If it is ended half-way, the next call goes on; if that declares something
    /// else, it begins anew.
    ///
    /// # Errors
    ///
    /// [`TableMisuse::OtherTypes`] if it was made with other types, groups or indexes, which it names; [`TableMisuse::NotStored`] if keys
    /// or rows have no stored form; [`TableMisuse::NameTaken`] if two indexes have the same name;
    /// [`DuplicateKey`](hotrow_tables::DuplicateKey) if two rows that were copied have the same key of a unique index;
    /// [`ClusterError::Store`].
    pub fn create_or_open(self) -> Result<RemoteTable<K, R>, ClusterError> {
        let Self { shared, name, companions, slot, keep_handles } = self;
        let not_stored = |of| TableMisuse::NotStored { name: name.clone(), of };
        let key = K::stored().ok_or_else(|| not_stored(std::any::type_name::<K>()))?;
        let row = R::stored().ok_or_else(|| not_stored(std::any::type_name::<R>()))?;
        let mut indexes: Vec<String> =
            companions.indexes.iter().map(|index| index.name().to_owned()).collect();
        indexes.sort_unstable();
        if let Some(twice) = indexes.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(TableMisuse::NameTaken { name: twice[0].clone() }.into());
        }
        let form = RowForm::of(key, row);
        let shape = Shape::new(Form::Rows, form.schemas()).with(form.shape(), indexes);
        let indexes = companions.indexes.iter().map(|index| &**index).collect();
        let declared = Declared { name: &name, shape: &shape, form: &form, indexes };
        converting::convert(&shared, declared, RowForm::whole(key, row))?;
        let number = catalog::open(&shared, &name, shape)?;
        companions.indexes.iter().try_for_each(|index| index.open(&shared))?;
        let table = RemoteTable::new(&shared, &name, number, form, companions);
        slot.get_or_init(|| table.clone());
        shared.keep_handle(number, number, table.clone());
        keep_handles.into_iter().for_each(|keep| keep(&shared, number));
        Ok(table)
    }
}

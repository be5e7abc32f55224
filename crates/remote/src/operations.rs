//! The operations of transactions on rows.

use crate::layout::part;
use crate::table::RemoteTable;
use crate::transaction::Transaction;
use crate::writes::Write;
use hotrow_core::{Abort, Columns, Fields, Value, Whole};
use hotrow_tables::key::{AsKey, Key};
use hotrow_tables::{KeyExists, MissingRow};

impl Transaction<'_> {
    /// Returns a row; `None` if there is none with this key.
    ///
    /// # Errors
    ///
    /// [`Abort`] when the attempt cannot go on.
    pub fn get<K: Key, R: Value>(
        &mut self,
        table: &RemoteTable<K, R>,
        key: &(impl AsKey<K> + ?Sized),
    ) -> Result<Option<R>, Abort> {
        self.read_fields(table, key, Whole, R::clone)
    }

    /// Reads some columns of a row: `column_of!(Stock, quantity)`, or a tuple of columns. The transaction does not conflict with others
    /// that change other [groups](trait@hotrow_core::Value) of columns only.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn read_columns<K: Key, R: Value, C: Columns<R>>(
        &mut self,
        table: &RemoteTable<K, R>,
        key: &(impl AsKey<K> + ?Sized),
        columns: C,
    ) -> Result<Option<C::Values>, Abort> {
        self.read_fields(table, key, columns, |values| *values)
    }

    /// Looks at some fields of a row; `None` if there is none with this key.
    pub(crate) fn read_fields<K: Key, R: Value, F: Fields<R>, O>(
        &mut self,
        table: &RemoteTable<K, R>,
        key: &(impl AsKey<K> + ?Sized),
        fields: F,
        look: impl FnOnce(&F::Values) -> O,
    ) -> Result<Option<O>, Abort> {
        self.check(table)?;
        let name = table.row(key);
        let Some(parts) = self.parts(table.form(), &name, table.parts_of(fields))? else { return Ok(None) };
        let row = self.decode(table, &name, &parts)?;
        Ok(Some(fields.look_at(&row, look)))
    }

    /// Reads rows together, so that later operations on them need no answer of the store.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn prefetch<K: Key, R: Value>(
        &mut self,
        table: &RemoteTable<K, R>,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<(), Abort> {
        self.prefetch_fields(table, keys, Whole)
    }

    /// As [`prefetch`](Self::prefetch), for rows of which only these columns will be used.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn prefetch_columns<K: Key, R: Value>(
        &mut self,
        table: &RemoteTable<K, R>,
        keys: impl IntoIterator<Item = K>,
        columns: impl Columns<R>,
    ) -> Result<(), Abort> {
        self.prefetch_fields(table, keys, columns)
    }

    fn prefetch_fields<K: Key, R: Value>(
        &mut self,
        table: &RemoteTable<K, R>,
        keys: impl IntoIterator<Item = K>,
        fields: impl Fields<R>,
    ) -> Result<(), Abort> {
        self.check(table)?;
        let numbers = table.parts_of(fields);
        let parts = |key: K| {
            let name = table.row(&key);
            numbers.each().map(move |number| part(&name, number)).collect::<Vec<_>>()
        };
        self.read(keys.into_iter().flat_map(parts).collect())
    }

    /// Inserts a row.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get); a rollback with [`KeyExists`] if there is a row with this key, or with
    /// [`DuplicateKey`](hotrow_tables::DuplicateKey) if another one has the same key of a unique index.
    pub fn insert<K: Key, R: Value>(
        &mut self,
        table: &RemoteTable<K, R>,
        key: K,
        row: R,
    ) -> Result<(), Abort> {
        if self.put(table, &key, &row, false)? {
            return Ok(());
        }
        Err(self.raise(KeyExists::of(table.name(), &key)))
    }

    /// As [`insert`](Self::insert), but an existing row is no error: false, and nothing changed, if the key exists.
    ///
    /// # Errors
    ///
    /// As [`insert`](Self::insert), without [`KeyExists`].
    pub fn insert_if_absent<K: Key, R: Value>(
        &mut self,
        table: &RemoteTable<K, R>,
        key: K,
        row: R,
    ) -> Result<bool, Abort> {
        self.put(table, &key, &row, false)
    }

    /// Inserts a row, or replaces the one with this key. True if it was inserted.
    ///
    /// # Errors
    ///
    /// As [`insert_if_absent`](Self::insert_if_absent).
    pub fn upsert<K: Key, R: Value>(
        &mut self,
        table: &RemoteTable<K, R>,
        key: K,
        row: R,
    ) -> Result<bool, Abort> {
        self.put(table, &key, &row, true)
    }

    /// Puts a row; if there is one, only if it may be replaced. True if there was none.
    fn put<K: Key, R: Value>(
        &mut self,
        table: &RemoteTable<K, R>,
        key: &K,
        row: &R,
        replaces: bool,
    ) -> Result<bool, Abort> {
        self.check_write(table)?;
        let name = table.row(key);
        let main = part(&name, 0);
        self.read(vec![main.clone()])?;
        let is_new = self.value(&main)?.is_none();
        if !is_new && !replaces {
            return Ok(false);
        }
        self.make_additions(table, &name)?;
        let after = table.form().encode(key, row).map_err(|reason| self.refuse(reason))?;
        self.jointly(|tx| {
            if is_new {
                table.insert_into_indexes(tx, key, row)?;
            } else if table.has_indexes() {
                let before = tx.parts(table.form(), &name, table.parts_to_replace())?.unwrap_or_default();
                let earlier = tx.decode(table, &name, &before)?;
                table.change_in_indexes(tx, key, &earlier, row)?;
            }
            for (number, value) in after.into_iter().enumerate() {
                tx.writes.insert(part(&name, number), Write::Put(value));
            }
            Ok(())
        })?;
        self.note_judged(table, name);
        Ok(is_new)
    }

    /// Changes a row, and returns what the change returns.
    ///
    /// # Errors
    ///
    /// As [`insert_if_absent`](Self::insert_if_absent); a rollback with [`MissingRow`] if there is no row with this key.
    pub fn update<K: Key, R: Value, O>(
        &mut self,
        table: &RemoteTable<K, R>,
        key: &(impl AsKey<K> + ?Sized),
        change: impl FnOnce(&mut R) -> O,
    ) -> Result<O, Abort> {
        self.update_fields(table, key, Whole, change)
    }

    /// As [`update`](Self::update), but a missing row is no error: `None` if there is none with this key.
    ///
    /// # Errors
    ///
    /// As [`insert_if_absent`](Self::insert_if_absent).
    pub fn update_if_present<K: Key, R: Value, O>(
        &mut self,
        table: &RemoteTable<K, R>,
        key: &(impl AsKey<K> + ?Sized),
        change: impl FnOnce(&mut R) -> O,
    ) -> Result<Option<O>, Abort> {
        self.update_fields_if_present(table, key, Whole, change)
    }

    /// Changes some columns of a row, and returns what the change returns. The transaction does not conflict with others that touch
    /// other [groups](trait@hotrow_core::Value) of columns only, unless the table has a constraint, or an index by one of the columns.
    ///
    /// # Errors
    ///
    /// As [`update`](Self::update).
    pub fn update_columns<K: Key, R: Value, C: Columns<R>, O>(
        &mut self,
        table: &RemoteTable<K, R>,
        key: &(impl AsKey<K> + ?Sized),
        columns: C,
        change: impl FnOnce(&mut C::Values) -> O,
    ) -> Result<O, Abort> {
        self.update_fields(table, key, columns, change)
    }

    /// As [`update_columns`](Self::update_columns), but a missing row is no error: `None` if there is none with this key.
    ///
    /// # Errors
    ///
    /// As [`insert_if_absent`](Self::insert_if_absent).
    pub fn update_columns_if_present<K: Key, R: Value, C: Columns<R>, O>(
        &mut self,
        table: &RemoteTable<K, R>,
        key: &(impl AsKey<K> + ?Sized),
        columns: C,
        change: impl FnOnce(&mut C::Values) -> O,
    ) -> Result<Option<O>, Abort> {
        self.update_fields_if_present(table, key, columns, change)
    }

    /// Changes some fields of a row.
    pub(crate) fn update_fields<K: Key, R: Value, F: Fields<R>, O>(
        &mut self,
        table: &RemoteTable<K, R>,
        key: &(impl AsKey<K> + ?Sized),
        fields: F,
        change: impl FnOnce(&mut F::Values) -> O,
    ) -> Result<O, Abort> {
        match self.update_fields_if_present(table, key, fields, change)? {
            Some(output) => Ok(output),
            None => Err(self.raise(MissingRow::of(table.name(), key))),
        }
    }

    /// As [`update_fields`](Self::update_fields), but a missing row is no error.
    pub(crate) fn update_fields_if_present<K: Key, R: Value, F: Fields<R>, O>(
        &mut self,
        table: &RemoteTable<K, R>,
        key: &(impl AsKey<K> + ?Sized),
        fields: F,
        change: impl FnOnce(&mut F::Values) -> O,
    ) -> Result<Option<O>, Abort> {
        self.check_write(table)?;
        let name = table.row(key);
        let touched = table.parts_of(fields);
        let Some(before) = self.parts(table.form(), &name, table.parts_to_change(touched))? else {
            return Ok(None);
        };
        let mut row = self.decode(table, &name, &before)?;
        let earlier = table.is_indexed(touched).then(|| row.clone());
        let output = fields.change_in(&mut row, change);
        let key = key.to_key();
        let after = table.form().encode(&key, &row).map_err(|reason| self.refuse(reason))?;
        self.jointly(|tx| {
            tx.put_changes(&name, &before, after);
            earlier.map_or(Ok(()), |earlier| table.change_in_indexes(tx, &key, &earlier, &row))
        })?;
        self.note_judged(table, name);
        Ok(Some(output))
    }

    /// Deletes a row. False if there is none with this key.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn delete<K: Key, R: Value>(
        &mut self,
        table: &RemoteTable<K, R>,
        key: &(impl AsKey<K> + ?Sized),
    ) -> Result<bool, Abort> {
        self.check_write(table)?;
        let name = table.row(key);
        let Some(before) = self.parts(table.form(), &name, table.parts_to_replace())? else {
            return Ok(false);
        };
        self.make_additions(table, &name)?;
        self.jointly(|tx| {
            if table.has_indexes() {
                let row = tx.decode(table, &name, &before)?;
                table.remove_from_indexes(tx, &key.to_key(), &row)?;
            }
            for number in 0..table.form().parts() {
                tx.delete_part(&name, number);
            }
            Ok(())
        })?;
        Ok(true)
    }
}

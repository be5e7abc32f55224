//! The rows that an operation works on, wherever they are.

use crate::commit_time::Apply;
use crate::data::KeyRange;
use crate::key::{Key, KeyBounds};
use crate::storage::Shared;
use hotrow_core::{Abort, Addend, Addition, Column, Fields, Protocol, Transaction, Value, always};

/// The rows of a table in a transaction: what [operations](super::Operation) run on. One implementation is a [table](crate::Table) of
/// this process; another one may keep its rows elsewhere.
///
/// A method that cannot go on before something has happened does not call its closures, so that it can be called again.
///
/// # Errors
///
/// All methods: [`Abort`] when the transaction cannot go on.
pub trait RowAccess<K: Key, R: Value> {
    /// Looks at fields of a row; `None` if it is missing.
    fn read<C: Fields<R>, O>(
        &mut self,
        key: &K,
        fields: C,
        look: impl FnOnce(&C::Values) -> O,
    ) -> Result<Option<O>, Abort>;

    /// Changes fields of a row; `None` if it is missing.
    fn update<C: Fields<R>, O>(
        &mut self,
        key: &K,
        fields: C,
        change: impl FnOnce(&mut C::Values) -> O,
    ) -> Result<Option<O>, Abort>;

    /// Replaces a row without reading it. False if it is missing.
    fn replace(&mut self, key: &K, row: impl FnOnce() -> R) -> Result<bool, Abort>;

    /// Inserts a row. False if the key exists.
    fn insert(&mut self, key: K, row: impl FnOnce() -> R) -> Result<bool, Abort>;

    /// Deletes a row. False if it is missing.
    fn delete(&mut self, key: &K) -> Result<bool, Abort>;

    /// Deletes the first row of a range, and returns its key.
    fn take_first(&mut self, range: KeyRange<K>) -> Result<Option<K>, Abort>;

    /// Changes fields of a row at the commit, if it is there.
    fn commute<C, G>(&mut self, key: &K, fields: C, change: impl FnOnce() -> G) -> Result<(), Abort>
    where
        C: Fields<R> + Send + 'static,
        G: Fn(&mut C::Values) + Send + 'static;

    /// Adds to a column of a row at the commit, if it is there. A sum that leaves the column's range rolls back, unless it `wraps`.
    fn add<F>(
        &mut self,
        key: &K,
        column: Column<R, F>,
        amount: impl FnOnce() -> F,
        wraps: bool,
    ) -> Result<(), Abort>
    where
        F: Addend + Send + 'static;
}

/// The rows of a table of this process.
#[doc(hidden)]
pub struct Local<'a, 'w, K: Key, R: Value, P: Protocol> {
    table: &'a Shared<K, R, P>,
    tx: &'a mut Transaction<'w, P>,
}

impl<'a, 'w, K: Key, R: Value, P: Protocol> Local<'a, 'w, K, R, P> {
    /// The rows of a table in a transaction.
    #[inline(always)]
    pub fn new(table: &'a Shared<K, R, P>, tx: &'a mut Transaction<'w, P>) -> Self {
        Self { table, tx }
    }
}

impl<K: Key, R: Value, P: Protocol> RowAccess<K, R> for Local<'_, '_, K, R, P> {
    #[inline(always)]
    fn read<C: Fields<R>, O>(
        &mut self,
        key: &K,
        fields: C,
        look: impl FnOnce(&C::Values) -> O,
    ) -> Result<Option<O>, Abort> {
        self.table.read(self.tx, key, fields, look)
    }

    #[inline(always)]
    fn update<C: Fields<R>, O>(
        &mut self,
        key: &K,
        fields: C,
        change: impl FnOnce(&mut C::Values) -> O,
    ) -> Result<Option<O>, Abort> {
        self.table.update(self.tx, key, fields, change)
    }

    #[inline(always)]
    fn replace(&mut self, key: &K, row: impl FnOnce() -> R) -> Result<bool, Abort> {
        self.table.replace(self.tx, key, row())
    }

    #[inline(always)]
    fn insert(&mut self, key: K, row: impl FnOnce() -> R) -> Result<bool, Abort> {
        self.table.insert(self.tx, key, row())
    }

    #[inline(always)]
    fn delete(&mut self, key: &K) -> Result<bool, Abort> {
        self.table.delete(self.tx, key)
    }

    #[inline(always)]
    fn take_first(&mut self, range: KeyRange<K>) -> Result<Option<K>, Abort> {
        self.table.take_first(self.tx, (range.low, range.high).images())
    }

    #[inline(always)]
    fn commute<C, G>(&mut self, key: &K, fields: C, change: impl FnOnce() -> G) -> Result<(), Abort>
    where
        C: Fields<R> + Send + 'static,
        G: Fn(&mut C::Values) + Send + 'static,
    {
        self.table.change_at_commit(self.tx, key, Apply(fields, always(change()))).map(drop)
    }

    #[inline(always)]
    fn add<F>(
        &mut self,
        key: &K,
        column: Column<R, F>,
        amount: impl FnOnce() -> F,
        wraps: bool,
    ) -> Result<(), Abort>
    where
        F: Addend + Send + 'static,
    {
        let addition = Addition::new(column, amount());
        let addition = if wraps { addition.wrapping() } else { addition };
        self.table.change_at_commit(self.tx, key, addition).map(drop)
    }
}

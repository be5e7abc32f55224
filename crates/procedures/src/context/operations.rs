//! The operations as procedures call them.

use crate::procedure::Context;
use crate::scan::{ScanIndex, ScanTable};
use hotrow_core::{Abort, Addend, Column, Columns, Value, Whole};
use hotrow_tables::inside::last_byte_of;
use hotrow_tables::operations::{
    Add, Change, Commute, Delete, Fold, Insert, Read, Replace, TakeFirst, Update,
};
use hotrow_tables::{Data, Direction, IndexRef, Key, KeyRange, TableRef};
use std::ops::ControlFlow;

/// The operations of procedures, as methods of every [`Context`].
///
/// Closures must depend only on their arguments and on plain captured data, and must have no side effects: a context may run them late,
/// on another thread, or not at all.
///
/// # Errors
///
/// All methods that return a [`Result`]: the context's [`Stop`](Context::Stop), when the procedure cannot go on. Pass it up with `?`.
pub trait Operations: Context {
    /// Wraps a value that is known now.
    #[inline(always)]
    fn value<T: Data>(&mut self, value: T) -> Self::Val<T> {
        value.into()
    }

    /// Returns a stop that rolls back: return it as the error.
    #[inline(always)]
    fn rollback(&mut self) -> Self::Stop {
        Abort::rollback().into()
    }

    /// Announces the rows of a table that will be touched soon, so that they can be fetched together. It is a hint;
    /// contexts that do not run operations at once may ignore it.
    #[inline(always)]
    fn prefetch<K: Key, R: Value>(&mut self, table: TableRef<K, R>, keys: impl Iterator<Item = K> + Clone) {
        self.fetch_ahead(table, keys, usize::MAX);
    }

    /// As [`prefetch`](Self::prefetch), for rows of which only these columns will be read.
    #[inline(always)]
    fn prefetch_columns<K: Key, R: Value>(
        &mut self,
        table: TableRef<K, R>,
        keys: impl Iterator<Item = K> + Clone,
        columns: impl Columns<R>,
    ) {
        self.fetch_ahead(table, keys, last_byte_of(columns));
    }

    /// Reads a row; `None` if it is missing.
    #[inline(always)]
    fn read<K: Key, R: Value, O: Data>(
        &mut self,
        table: TableRef<K, R>,
        key: Self::Val<K>,
        look: impl FnOnce(&R) -> O + Send + 'static,
    ) -> Result<Self::Val<Option<O>>, Self::Stop> {
        self.apply(table, Read(Whole, look), key, ().into())
    }

    /// Reads some columns of a row; `None` if it is missing.
    #[inline(always)]
    fn read_columns<K: Key, R: Value, C>(
        &mut self,
        table: TableRef<K, R>,
        key: Self::Val<K>,
        columns: C,
    ) -> Result<Self::Val<Option<C::Values>>, Self::Stop>
    where
        C: Columns<R, Values: Data> + Send + 'static,
    {
        self.apply(table, Read(columns, |values: &C::Values| *values), key, ().into())
    }

    /// Changes a row, given an input that may come from earlier operations; `None` if it is missing.
    #[inline(always)]
    fn update<K: Key, R: Value, I: Data, O: Data>(
        &mut self,
        table: TableRef<K, R>,
        key: Self::Val<K>,
        input: Self::Val<I>,
        change: impl FnOnce(&mut R, I) -> O + Send + 'static,
    ) -> Result<Self::Val<Option<O>>, Self::Stop> {
        self.apply(table, Change(Update(Whole, change)), key, input)
    }

    /// Changes some columns of a row; `None` if it is missing. If they are of one [group](hotrow_tables::Table::update_columns), the
    /// operation does not conflict with those that touch others.
    #[inline(always)]
    fn update_columns<K: Key, R: Value, C, I: Data, O: Data>(
        &mut self,
        table: TableRef<K, R>,
        key: Self::Val<K>,
        columns: C,
        input: Self::Val<I>,
        change: impl FnOnce(&mut C::Values, I) -> O + Send + 'static,
    ) -> Result<Self::Val<Option<O>>, Self::Stop>
    where
        C: Columns<R, Values: Data> + Send + 'static,
    {
        self.apply(table, Change(Update(columns, change)), key, input)
    }

    /// Adds an amount to a column of a row, which [commutes](Self::commute). Nothing happens if the row is missing.
    ///
    /// A sum that leaves the column's range rolls the transaction back with [`Overflow`](hotrow_core::Overflow) if the context runs
    /// operations at once, as [`Table::add`](hotrow_tables::Table::add) does. Contexts that defer operations or run them in pieces, where it
    /// may be too late for a rollback, let it wrap around: a procedure for them that comes near the ends of a range
    /// [updates](Self::update) the row, and checks.
    #[inline(always)]
    fn add<K: Key, R: Value, F: Addend + Data>(
        &mut self,
        table: TableRef<K, R>,
        key: Self::Val<K>,
        column: Column<R, F>,
        amount: Self::Val<F>,
    ) -> Result<(), Self::Stop> {
        self.apply(table, Change(Add(column)), key, amount).map(drop)
    }

    /// Changes a row in a way that is declared to commute with the other commutative changes of the same table (a
    /// balance increment). It returns no result. Nothing happens if the row is missing. In contexts that do not defer it is a
    /// [change at the commit](hotrow_tables::Table::apply).
    #[inline(always)]
    fn commute<K: Key, R: Value, I: Data>(
        &mut self,
        table: TableRef<K, R>,
        key: Self::Val<K>,
        input: Self::Val<I>,
        change: impl Fn(&mut R, I) + Send + 'static,
    ) -> Result<(), Self::Stop> {
        self.apply(table, Change(Commute(Whole, change)), key, input).map(drop)
    }

    /// As [`commute`](Self::commute), for some columns of a row.
    #[inline(always)]
    fn commute_columns<K: Key, R: Value, C, I: Data>(
        &mut self,
        table: TableRef<K, R>,
        key: Self::Val<K>,
        columns: C,
        input: Self::Val<I>,
        change: impl Fn(&mut C::Values, I) + Send + 'static,
    ) -> Result<(), Self::Stop>
    where
        C: Columns<R, Values: Data> + Send + 'static,
    {
        self.apply(table, Change(Commute(columns, change)), key, input).map(drop)
    }

    /// Replaces a row without reading it; false if it is missing.
    #[inline(always)]
    fn replace<K: Key, R: Value>(
        &mut self,
        table: TableRef<K, R>,
        key: Self::Val<K>,
        row: Self::Val<R>,
    ) -> Result<Self::Val<bool>, Self::Stop> {
        self.apply(table, Change(Replace), key, row)
    }

    /// Inserts a row; false if the key exists.
    #[inline(always)]
    fn insert<K: Key, R: Value>(
        &mut self,
        table: TableRef<K, R>,
        key: Self::Val<K>,
        row: Self::Val<R>,
    ) -> Result<Self::Val<bool>, Self::Stop> {
        self.apply(table, Insert { group: None }, key, row)
    }

    /// Inserts a row, whose key may be unknown yet, into a group, whose number is known (an order belongs to its
    /// district). Contexts that defer lock the group. All conflicting inserts of a table must name the same group.
    #[inline(always)]
    fn insert_grouped<K: Key, R: Value>(
        &mut self,
        table: TableRef<K, R>,
        group: u64,
        key: Self::Val<K>,
        row: Self::Val<R>,
    ) -> Result<Self::Val<bool>, Self::Stop> {
        self.apply(table, Insert { group: Some(group) }, key, row)
    }

    /// Deletes a row; false if it is missing.
    #[inline(always)]
    fn delete<K: Key, R: Value>(
        &mut self,
        table: TableRef<K, R>,
        key: Self::Val<K>,
    ) -> Result<Self::Val<bool>, Self::Stop> {
        self.apply(table, Delete, key, ().into())
    }

    /// Deletes the first row of a range, which lies within a group, and returns its key; `None` if there is none.
    /// Contexts that defer lock the group's [head](hotrow_tables::TableBuilder::queues).
    #[inline(always)]
    fn take_first<K: Key, R: Value>(
        &mut self,
        table: TableRef<K, R>,
        group: u64,
        range: Self::Val<KeyRange<K>>,
    ) -> Result<Self::Val<Option<K>>, Self::Stop> {
        self.apply(table, TakeFirst { group }, range, ().into())
    }

    /// Makes the same change to several rows, one after the other, and folds over them. Keys without a row are
    /// skipped. The keys may come from earlier operations; an [`Option`] holds no key or one.
    #[inline(always)]
    fn update_each<Keys, K: Key, R: Value, I: Data, A: Data>(
        &mut self,
        table: TableRef<K, R>,
        keys: Self::Val<Keys>,
        input: Self::Val<I>,
        initial: A,
        change: impl Fn(&mut A, &mut R, I) + Clone + Send + 'static,
    ) -> Result<Self::Val<A>, Self::Stop>
    where
        Keys: Data + IntoIterator<Item = K>,
    {
        self.each(table, Change(Fold(change)), keys, input, initial)
    }

    /// Makes the same [commutative](Self::commute) change to several rows.
    #[inline(always)]
    fn commute_each<Keys, K: Key, R: Value, I: Data>(
        &mut self,
        table: TableRef<K, R>,
        keys: Self::Val<Keys>,
        input: Self::Val<I>,
        change: impl Fn(&mut R, I) + Clone + Send + 'static,
    ) -> Result<(), Self::Stop>
    where
        Keys: Data + IntoIterator<Item = K>,
    {
        self.each(table, Change(Commute(Whole, change)), keys, input, ()).map(drop)
    }

    /// As [`commute_each`](Self::commute_each), for some columns of the rows.
    #[inline(always)]
    fn commute_columns_each<Keys, K: Key, R: Value, C, I: Data>(
        &mut self,
        table: TableRef<K, R>,
        keys: Self::Val<Keys>,
        columns: C,
        input: Self::Val<I>,
        change: impl Fn(&mut C::Values, I) + Clone + Send + 'static,
    ) -> Result<(), Self::Stop>
    where
        Keys: Data + IntoIterator<Item = K>,
        C: Columns<R, Values: Data> + Send + 'static,
    {
        self.each(table, Change(Commute(columns, change)), keys, input, ()).map(drop)
    }

    /// Folds the rows of a range into an accumulator, until the fold breaks.
    #[inline(always)]
    fn scan<K: Key, R: Value, A: Data>(
        &mut self,
        table: TableRef<K, R>,
        range: Self::Val<KeyRange<K>>,
        direction: Direction,
        initial: A,
        fold: impl FnMut(&mut A, &K, &R) -> ControlFlow<()> + Send + 'static,
    ) -> Result<Self::Val<A>, Self::Stop> {
        self.visit(ScanTable { table, direction, initial, fold }, range)
    }

    /// Folds the secondary and primary keys in a range of secondary keys, without reading the rows.
    #[inline(always)]
    fn scan_index<S: Key, K: Key, R: Value, A: Data>(
        &mut self,
        index: IndexRef<S, K, R>,
        range: Self::Val<KeyRange<S>>,
        direction: Direction,
        initial: A,
        fold: impl FnMut(&mut A, &S, &K) -> ControlFlow<()> + Send + 'static,
    ) -> Result<Self::Val<A>, Self::Stop> {
        self.visit(ScanIndex { index, direction, initial, fold }, range)
    }
}

impl<C: Context> Operations for C {}

//! Procedures: transactions written once, and the contexts that interpret them.

use crate::index::Direction;
use crate::key::Key;
use crate::reference::{IndexRef, TableRef};
use crate::split::change_columns;
use hotrow_core::{Addend, Addition, Column, Columns, CommitTimeChange, Profile, Value};
use std::fmt;
use std::ops::{Bound, ControlFlow, RangeInclusive};

/// Data that may flow through a procedure: results of operations, keys, rows.
pub trait Data: Clone + Send + Sync + 'static {}
impl<T: Clone + Send + Sync + 'static> Data for T {}

/// A transaction written once, against an abstract [`Context`].
///
/// The eager context runs each operation at once. Its [`Context::Val<T>`] is `T` itself, so the compiler produces
/// plain code. Other contexts may record the operations. The source of the procedure is the same for all.
pub trait Procedure {
    /// The type of the procedure's result.
    type Output: Data;

    /// The facts known before it runs: it writes nothing, the isolation that it needs, the number of records that it
    /// touches. Callers of [`Database::execute`](crate::Database::execute) need not repeat them.
    fn profile(&self) -> Profile {
        Profile::UNKNOWN
    }

    /// The name by which [chopping](crate::chopping) knows the procedure: that of its type, unless it gives another one.
    fn name(&self) -> &'static str {
        std::any::type_name::<Self>()
    }

    /// Runs the procedure, or records its operations, as the context decides.
    ///
    /// # Errors
    ///
    /// The context's [`Stop`](Context::Stop); pass it up with `?`.
    fn run<C: Context>(&self, cx: &mut C) -> Result<C::Val<Self::Output>, C::Stop>;
}

/// A range of keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRange<K> {
    /// The lower bound.
    pub low: Bound<K>,
    /// The upper bound.
    pub high: Bound<K>,
}

impl<K> From<RangeInclusive<K>> for KeyRange<K> {
    fn from(range: RangeInclusive<K>) -> Self {
        let (low, high) = range.into_inner();
        Self { low: Bound::Included(low), high: Bound::Included(high) }
    }
}

impl<K> From<std::ops::Range<K>> for KeyRange<K> {
    fn from(range: std::ops::Range<K>) -> Self {
        Self { low: Bound::Included(range.start), high: Bound::Excluded(range.end) }
    }
}

impl<K: fmt::Debug> fmt::Display for KeyRange<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.low {
            Bound::Included(key) => write!(f, "{key:?}..")?,
            Bound::Excluded(key) => write!(f, "after {key:?}..")?,
            Bound::Unbounded => write!(f, "..")?,
        }
        match &self.high {
            Bound::Included(key) => write!(f, "={key:?}"),
            Bound::Excluded(key) => write!(f, "{key:?}"),
            Bound::Unbounded => Ok(()),
        }
    }
}

/// An interpreter of procedures.
///
/// Operations take and return values of the context, [`Val`](Self::Val). Only [`force`](Self::force) turns a value
/// into a plain one. It is free in the eager context; elsewhere it declares that what follows depends on the data
/// (and makes a DRP transaction wild). Closures must depend only on their arguments and on plain captured data, and
/// must have no side effects: a context may run them late, on another thread, or not at all.
pub trait Context: Sized {
    /// A value of type `T` that this context knows now or will know later.
    type Val<T: Data>: Clone;
    /// The reason that a procedure cannot go on.
    type Stop;

    /// Wraps a value that is known now.
    fn value<T: Data>(&mut self, value: T) -> Self::Val<T>;

    /// Announces the rows of a table that will be touched soon, so that they can be fetched together. It is a hint;
    /// contexts that do not run operations at once may ignore it.
    fn prefetch<K: Key, R: Value>(&mut self, _table: TableRef<K, R>, _keys: impl Iterator<Item = K> + Clone) {
    }

    /// As [`prefetch`](Self::prefetch), for rows of which only these columns will be read.
    #[inline(always)]
    fn prefetch_columns<K: Key, R: Value>(
        &mut self,
        _table: TableRef<K, R>,
        _keys: impl Iterator<Item = K> + Clone,
        _columns: impl Columns<R>,
    ) {
    }

    /// Reads a row; `None` if it is missing.
    ///
    /// # Errors
    ///
    /// [`Stop`](Self::Stop), here and below, when the procedure cannot go on.
    fn read<K: Key, R: Value, O: Data>(
        &mut self,
        table: TableRef<K, R>,
        key: Self::Val<K>,
        look: impl FnOnce(&R) -> O + Send + 'static,
    ) -> Result<Self::Val<Option<O>>, Self::Stop>;

    /// Reads some columns of a row; `None` if it is missing.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
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
        self.read(table, key, move |row| columns.of(row))
    }

    /// Changes a row, given an input that may come from earlier operations; `None` if it is missing.
    fn update<K: Key, R: Value, I: Data, O: Data>(
        &mut self,
        table: TableRef<K, R>,
        key: Self::Val<K>,
        input: Self::Val<I>,
        change: impl FnOnce(&mut R, I) -> O + Send + 'static,
    ) -> Result<Self::Val<Option<O>>, Self::Stop>;

    /// Changes some columns of a row; `None` if it is missing. If they are of one [group](crate::Table::update_columns), the operation does not
    /// conflict with those that touch others.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
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
        self.update(table, key, input, move |row, input| {
            change_columns(row, columns, |values| change(values, input))
        })
    }

    /// Adds an amount to a column of a row, which [commutes](Self::commute). Nothing happens if the row is missing.
    ///
    /// A sum that leaves the column's range rolls the transaction back with [`Overflow`](hotrow_core::Overflow) if the context runs
    /// operations at once, as [`Table::add`](crate::Table::add) does. Contexts that defer operations or run them in pieces, where it
    /// may be too late for a rollback, let it wrap around: a procedure for them that comes near the ends of a range
    /// [updates](Self::update) the row, and checks.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    #[inline(always)]
    fn add<K: Key, R: Value, F: Addend + Data>(
        &mut self,
        table: TableRef<K, R>,
        key: Self::Val<K>,
        column: Column<R, F>,
        amount: Self::Val<F>,
    ) -> Result<(), Self::Stop> {
        self.commute_columns(table, key, column, amount, |value, amount| {
            // One that wraps around never fails.
            let wrapped = Addition::new(Column::whole(), amount).wrapping().change(value);
            debug_assert!(wrapped.is_ok(), "it wraps around");
        })
    }

    /// As [`commute`](Self::commute), for some columns of a row.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
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
        self.commute(table, key, input, move |row, input| {
            change_columns(row, columns, |values| change(values, input));
        })
    }

    /// Replaces a row without reading it; false if it is missing.
    fn replace<K: Key, R: Value>(
        &mut self,
        table: TableRef<K, R>,
        key: Self::Val<K>,
        row: Self::Val<R>,
    ) -> Result<Self::Val<bool>, Self::Stop>;

    /// Changes a row in a way that is declared to commute with the other commutative changes of the same table (a
    /// balance increment). It returns no result. Nothing happens if the row is missing. In contexts that do not defer it is a
    /// [change at the commit](crate::Table::apply).
    fn commute<K: Key, R: Value, I: Data>(
        &mut self,
        table: TableRef<K, R>,
        key: Self::Val<K>,
        input: Self::Val<I>,
        change: impl Fn(&mut R, I) + Send + 'static,
    ) -> Result<(), Self::Stop>;

    /// Inserts a row; false if the key exists.
    fn insert<K: Key, R: Value>(
        &mut self,
        table: TableRef<K, R>,
        key: Self::Val<K>,
        row: Self::Val<R>,
    ) -> Result<Self::Val<bool>, Self::Stop>;

    /// Inserts a row, whose key may be unknown yet, into a group, whose number is known (an order belongs to its
    /// district). Contexts that defer lock the group. All conflicting inserts of a table must name the same group.
    fn insert_grouped<K: Key, R: Value>(
        &mut self,
        table: TableRef<K, R>,
        group: u64,
        key: Self::Val<K>,
        row: Self::Val<R>,
    ) -> Result<Self::Val<bool>, Self::Stop>;

    /// Deletes a row; false if it is missing.
    fn delete<K: Key, R: Value>(
        &mut self,
        table: TableRef<K, R>,
        key: Self::Val<K>,
    ) -> Result<Self::Val<bool>, Self::Stop>;

    /// Deletes the first row of a range, which lies within a group, and returns its key; `None` if there is none.
    /// Contexts that defer lock the group's [head](crate::TableBuilder::queues).
    fn take_first<K: Key, R: Value>(
        &mut self,
        table: TableRef<K, R>,
        group: u64,
        range: Self::Val<KeyRange<K>>,
    ) -> Result<Self::Val<Option<K>>, Self::Stop>;

    /// Makes the same change to several rows, one after the other, and folds over them. Keys without a row are
    /// skipped. The keys may come from earlier operations; an [`Option`] holds no key or one.
    fn update_each<Keys, K: Key, R: Value, I: Data, A: Data>(
        &mut self,
        table: TableRef<K, R>,
        keys: Self::Val<Keys>,
        input: Self::Val<I>,
        initial: A,
        change: impl Fn(&mut A, &mut R, I) + Clone + Send + 'static,
    ) -> Result<Self::Val<A>, Self::Stop>
    where
        Keys: Data + IntoIterator<Item = K>;

    /// Makes the same [commutative](Self::commute) change to several rows.
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
        self.update_each(table, keys, input, (), move |(), row, input| change(row, input))?;
        Ok(())
    }

    /// As [`commute_each`](Self::commute_each), for some columns of the rows.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
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
        self.commute_each(table, keys, input, move |row, input| {
            change_columns(row, columns, |values| change(values, input));
        })
    }

    /// Folds the rows of a range into an accumulator, until the fold breaks.
    fn scan<K: Key, R: Value, A: Data>(
        &mut self,
        table: TableRef<K, R>,
        range: Self::Val<KeyRange<K>>,
        direction: Direction,
        initial: A,
        fold: impl FnMut(&mut A, &K, &R) -> ControlFlow<()> + Send + 'static,
    ) -> Result<Self::Val<A>, Self::Stop>;

    /// Folds the secondary and primary keys in a range of secondary keys, without reading the rows.
    fn scan_index<S: Key, K: Key, R: Value, A: Data>(
        &mut self,
        index: IndexRef<S, K, R>,
        range: Self::Val<KeyRange<S>>,
        direction: Direction,
        initial: A,
        fold: impl FnMut(&mut A, &S, &K) -> ControlFlow<()> + Send + 'static,
    ) -> Result<Self::Val<A>, Self::Stop>;

    /// Computes a value from another.
    fn map<A: Data, B: Data>(
        &mut self,
        value: Self::Val<A>,
        compute: impl FnOnce(A) -> B + Send + 'static,
    ) -> Self::Val<B>;

    /// Joins two values into one.
    fn zip<A: Data, B: Data>(&mut self, first: Self::Val<A>, second: Self::Val<B>) -> Self::Val<(A, B)>;

    /// Returns the plain value, now: for keys and branches that depend on data.
    fn force<T: Data>(&mut self, value: Self::Val<T>) -> Result<T, Self::Stop>;

    /// Rolls back unless `holds`.
    fn require(&mut self, holds: Self::Val<bool>) -> Result<(), Self::Stop>;

    /// Returns a stop that rolls back: return it as the error.
    fn rollback(&mut self) -> Self::Stop;
}

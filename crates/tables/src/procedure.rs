//! Procedures: transactions written once, and the contexts that interpret them.

use crate::database::{IndexRef, TableRef};
use crate::index::Direction;
use crate::key::Key;
use hotrow_core::{Profile, Value};
use std::fmt;
use std::ops::{Bound, ControlFlow, RangeInclusive};

/// What may flow through a procedure: results of operations, keys, rows.
pub trait Data: Clone + Send + Sync + 'static {}
impl<T: Clone + Send + Sync + 'static> Data for T {}

/// A transaction written once, against an abstract [`Context`].
///
/// The eager context runs each operation at once, and since its [`Context::Val<T>`] is `T` itself the
/// compiler leaves plain code. Other contexts record what is to be done. The source of the procedure is the
/// same for all.
pub trait Procedure {
    /// What it returns.
    type Output: Data;

    /// What is known of it before it runs: that it writes nothing, how far it must be kept apart from others, how many
    /// records it touches. Who runs it by [`Database::execute`](crate::Database::execute) need not say so again.
    fn profile(&self) -> Profile {
        Profile::UNKNOWN
    }

    /// Runs it, or says what it would do, as the context sees fit.
    ///
    /// # Errors
    ///
    /// The context's [`Stop`](Context::Stop); pass it up with `?`.
    fn run<C: Context>(&self, cx: &mut C) -> Result<C::Val<Self::Output>, C::Stop>;
}

/// A range of keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRange<K> {
    /// Where it begins.
    pub low: Bound<K>,
    /// Where it ends.
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
/// Operations take and give values of the context, [`Val`](Self::Val). A value becomes a plain one only by
/// [`force`](Self::force): free when eager; elsewhere it says that what follows depends on the data (and
/// makes a DRP transaction wild). Closures must depend on their arguments and on plain captured data only,
/// and have no effects of their own: a context may run them late, elsewhere, or not at all.
pub trait Context: Sized {
    /// A value of type `T` that this context knows now or will know later.
    type Val<T: Data>: Clone;
    /// Why a procedure cannot go on.
    type Stop;

    /// A value known now.
    fn value<T: Data>(&mut self, value: T) -> Self::Val<T>;

    /// Says which rows of a table will be touched soon, so that they can be fetched together: a hint, which
    /// contexts that do not run operations at once ignore.
    fn prefetch<K: Key, R: Value>(&mut self, _table: TableRef<K, R>, _keys: impl Iterator<Item = K> + Clone) {
    }

    /// Looks at a row; `None` if it is missing.
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

    /// Changes a row, given an input that may come from earlier operations; `None` if it is missing.
    fn update<K: Key, R: Value, I: Data, O: Data>(
        &mut self,
        table: TableRef<K, R>,
        key: Self::Val<K>,
        input: Self::Val<I>,
        change: impl FnOnce(&mut R, I) -> O + Send + 'static,
    ) -> Result<Self::Val<Option<O>>, Self::Stop>;

    /// Replaces a row, whatever it was; false if it is missing.
    fn replace<K: Key, R: Value>(
        &mut self,
        table: TableRef<K, R>,
        key: Self::Val<K>,
        row: Self::Val<R>,
    ) -> Result<Self::Val<bool>, Self::Stop>;

    /// Changes a row in a way that is declared to commute with the other commutative changes of the same
    /// table (a balance increment), and gives nothing back. Nothing happens if the row is missing.
    fn commute<K: Key, R: Value, I: Data>(
        &mut self,
        table: TableRef<K, R>,
        key: Self::Val<K>,
        input: Self::Val<I>,
        change: impl FnOnce(&mut R, I) + Send + 'static,
    ) -> Result<(), Self::Stop>;

    /// Inserts a row; false if the key exists.
    fn insert<K: Key, R: Value>(
        &mut self,
        table: TableRef<K, R>,
        key: Self::Val<K>,
        row: Self::Val<R>,
    ) -> Result<Self::Val<bool>, Self::Stop>;

    /// Inserts a row whose key may not be known yet into a group that is (an order belongs to its district):
    /// contexts that defer lock the group. All inserts of a table that may meet must name their group alike.
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

    /// Deletes the first row of a range, which lies within a group, and gives its key; `None` if there is none. Contexts
    /// that defer lock the group's [head](crate::TableBuilder::queues).
    fn take_first<K: Key, R: Value>(
        &mut self,
        table: TableRef<K, R>,
        group: u64,
        range: Self::Val<KeyRange<K>>,
    ) -> Result<Self::Val<Option<K>>, Self::Stop>;

    /// Makes the same change of several rows, one after the other, and folds over them. Keys without a row are left
    /// out. The keys may come from earlier operations: no key or one is an [`Option`].
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

    /// Makes the same [commutative](Self::commute) change of several rows.
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

    /// Folds the rows of a range into an accumulator, until the fold breaks.
    fn scan<K: Key, R: Value, A: Data>(
        &mut self,
        table: TableRef<K, R>,
        range: Self::Val<KeyRange<K>>,
        direction: Direction,
        initial: A,
        fold: impl FnMut(&mut A, &K, &R) -> ControlFlow<()> + Send + 'static,
    ) -> Result<Self::Val<A>, Self::Stop>;

    /// Folds secondary and primary keys of a range of secondary keys, without reading the rows.
    fn scan_index<S: Key, K: Key, R: Value, A: Data>(
        &mut self,
        index: IndexRef<S, K, R>,
        range: Self::Val<KeyRange<S>>,
        direction: Direction,
        initial: A,
        fold: impl FnMut(&mut A, &S, &K) -> ControlFlow<()> + Send + 'static,
    ) -> Result<Self::Val<A>, Self::Stop>;

    /// A value computed from another.
    fn map<A: Data, B: Data>(
        &mut self,
        value: Self::Val<A>,
        compute: impl FnOnce(A) -> B + Send + 'static,
    ) -> Self::Val<B>;

    /// Two values as one.
    fn zip<A: Data, B: Data>(&mut self, first: Self::Val<A>, second: Self::Val<B>) -> Self::Val<(A, B)>;

    /// The value itself, now: for keys and branches that depend on data.
    fn force<T: Data>(&mut self, value: Self::Val<T>) -> Result<T, Self::Stop>;

    /// Rolls back unless `holds`.
    fn require(&mut self, holds: Self::Val<bool>) -> Result<(), Self::Stop>;

    /// A stop that rolls back: return it as the error.
    fn rollback(&mut self) -> Self::Stop;
}

//! Scans as values.

use hotrow_core::{Abort, Protocol, Transaction, Value, Whole};
use hotrow_tables::inside::all_groups;
use hotrow_tables::{Database, Direction, IndexRef, Key, KeyRange, TableRef, inside};
use std::ops::ControlFlow;

/// A look at a range, which folds what it finds into a value of type `A`. It runs at once, and sees all changes that the transaction
/// has recorded before.
pub trait Scan<A>: Sized + 'static {
    /// The type of the keys.
    type Key: Key;
    /// The type of the table's rows.
    type Row: Value;

    /// The number of the table or index in its database.
    fn part(&self) -> u32;

    /// The column groups that it may touch, one bit each.
    #[doc(hidden)]
    fn groups<P: Protocol>(&self, database: &Database<P>) -> u32;

    /// The place that it looks at.
    #[doc(hidden)]
    fn place<P: Protocol>(&self, database: &Database<P>) -> ScannedPlace;

    /// Runs the scan.
    #[doc(hidden)]
    fn run(self, ranges: &mut impl Ranges, range: KeyRange<Self::Key>) -> Result<A, Abort>;
}

/// The tables and indexes that a transaction scans, wherever they are.
pub trait Ranges {
    /// Visits the rows of a range, until the visitor breaks.
    ///
    /// # Errors
    ///
    /// [`Abort`], here and below, when the transaction cannot go on.
    fn scan<K: Key, R: Value>(
        &mut self,
        table: TableRef<K, R>,
        range: KeyRange<K>,
        direction: Direction,
        visit: impl FnMut(&K, &R) -> ControlFlow<()>,
    ) -> Result<(), Abort>;

    /// Visits the secondary and primary keys in a range of secondary keys, until the visitor breaks.
    fn scan_index<S: Key, K: Key, R: Value>(
        &mut self,
        index: IndexRef<S, K, R>,
        range: KeyRange<S>,
        direction: Direction,
        visit: impl FnMut(&S, &K) -> ControlFlow<()>,
    ) -> Result<(), Abort>;
}

/// The tables and indexes of a database of this process.
pub(crate) struct LocalRanges<'a, 'w, P: Protocol> {
    pub(crate) database: &'a Database<P>,
    pub(crate) tx: &'a mut Transaction<'w, P>,
}

impl<P: Protocol> Ranges for LocalRanges<'_, '_, P> {
    #[inline(always)]
    fn scan<K: Key, R: Value>(
        &mut self,
        table: TableRef<K, R>,
        KeyRange { low, high }: KeyRange<K>,
        direction: Direction,
        visit: impl FnMut(&K, &R) -> ControlFlow<()>,
    ) -> Result<(), Abort> {
        self.database.table_of(table).scan(self.tx, (low, high), direction, visit)
    }

    #[inline(always)]
    fn scan_index<S: Key, K: Key, R: Value>(
        &mut self,
        index: IndexRef<S, K, R>,
        KeyRange { low, high }: KeyRange<S>,
        direction: Direction,
        visit: impl FnMut(&S, &K) -> ControlFlow<()>,
    ) -> Result<(), Abort> {
        self.database.index_of(index).scan_keys(self.tx, (low, high), direction, visit)
    }
}

/// The table or index that a scan looks at, for traces.
#[derive(Debug)]
pub struct ScannedPlace {
    pub(crate) table: String,
    pub(crate) index: Option<String>,
    pub(crate) immutable: bool,
}

/// Folds the rows of a range of a table, until the fold breaks.
#[derive(Debug)]
pub struct ScanTable<K, R, A, F> {
    /// The table.
    pub table: TableRef<K, R>,
    /// The order of the keys.
    pub direction: Direction,
    /// The value before the first row.
    pub initial: A,
    /// Takes a row into the value.
    pub fold: F,
}

impl<K, R, A, F> Scan<A> for ScanTable<K, R, A, F>
where
    K: Key,
    R: Value,
    A: 'static,
    F: FnMut(&mut A, &K, &R) -> ControlFlow<()> + 'static,
{
    type Key = K;
    type Row = R;

    fn part(&self) -> u32 {
        inside::table_number(self.table)
    }

    fn groups<P: Protocol>(&self, database: &Database<P>) -> u32 {
        inside::shared(database.table_of(self.table)).segments_of(Whole)
    }

    fn place<P: Protocol>(&self, database: &Database<P>) -> ScannedPlace {
        let table = database.table_of(self.table);
        ScannedPlace { table: table.name().to_owned(), index: None, immutable: table.is_immutable() }
    }

    #[inline(always)]
    fn run(self, ranges: &mut impl Ranges, range: KeyRange<K>) -> Result<A, Abort> {
        let Self { table, direction, initial: mut sum, mut fold } = self;
        ranges.scan(table, range, direction, |key, row| fold(&mut sum, key, row))?;
        Ok(sum)
    }
}

/// Folds the secondary and primary keys in a range of secondary keys, without reading the rows, until the fold breaks.
#[derive(Debug)]
pub struct ScanIndex<S, K, R, A, F> {
    /// The index.
    pub index: IndexRef<S, K, R>,
    /// The order of the secondary keys.
    pub direction: Direction,
    /// The value before the first key.
    pub initial: A,
    /// Takes a pair of keys into the value.
    pub fold: F,
}

impl<S, K, R, A, F> Scan<A> for ScanIndex<S, K, R, A, F>
where
    S: Key,
    K: Key,
    R: Value,
    A: 'static,
    F: FnMut(&mut A, &S, &K) -> ControlFlow<()> + 'static,
{
    type Key = S;
    type Row = R;

    fn part(&self) -> u32 {
        inside::index_number(self.index)
    }

    fn groups<P: Protocol>(&self, _database: &Database<P>) -> u32 {
        // All.
        all_groups::<R>()
    }

    fn place<P: Protocol>(&self, database: &Database<P>) -> ScannedPlace {
        let index = database.index_of(self.index);
        ScannedPlace {
            table: index.table_name(),
            index: Some(index.name().to_owned()),
            immutable: index.is_immutable(),
        }
    }

    #[inline(always)]
    fn run(self, ranges: &mut impl Ranges, range: KeyRange<S>) -> Result<A, Abort> {
        let Self { index, direction, initial: mut sum, mut fold } = self;
        ranges.scan_index(index, range, direction, |secondary, key| fold(&mut sum, secondary, key))?;
        Ok(sum)
    }
}

//! The eager context: each operation runs at once.

use crate::database::{Database, OperationHook};
use crate::index::Direction;
use crate::key::Key;
use crate::procedure::{Context, Data, KeyRange};
use crate::reference::{IndexRef, TableRef};
use crate::trace::OperationKind;
use hotrow_core::{Abort, Addend, Column, Columns, Protocol, Transaction, Value};
use std::ops::ControlFlow;

/// Runs each operation at once, in one attempt at a transaction. Values are plain values, so a procedure compiles to
/// the same code as one written by hand.
pub struct Eager<'a, 'w, P: Protocol> {
    database: &'a Database<P>,
    tx: &'a mut Transaction<'w, P>,
}

impl<'a, 'w, P: Protocol> Eager<'a, 'w, P> {
    /// A context for an attempt in progress, so that procedures and closures can be mixed.
    pub fn new(database: &'a Database<P>, tx: &'a mut Transaction<'w, P>) -> Self {
        Self { database, tx }
    }

    /// Calls the database's [hook](Database::before_operations), and returns the database and the transaction. An
    /// operation can reach its table in no other way, so the hook hears of every operation.
    #[inline(always)]
    pub(super) fn arrival(&mut self) -> (&Database<P>, &mut Transaction<'w, P>) {
        if let Some(hook) = self.database.hook() {
            call(hook);
        }
        (self.database, self.tx)
    }
}

/// Kept out of line, so that a database without a hook pays for one comparison.
#[cold]
#[inline(never)]
fn call(hook: &OperationHook) {
    hook();
}

impl<P: Protocol> Context for Eager<'_, '_, P> {
    type Val<T: Data> = T;
    type Stop = Abort;

    #[inline(always)]
    fn value<T: Data>(&mut self, value: T) -> T {
        value
    }

    #[inline(always)]
    fn prefetch<K: Key, R: Value>(&mut self, table: TableRef<K, R>, keys: impl Iterator<Item = K> + Clone) {
        self.database.table_of(table).prefetch(self.tx, keys);
    }

    #[inline(always)]
    fn prefetch_columns<K: Key, R: Value>(
        &mut self,
        table: TableRef<K, R>,
        keys: impl Iterator<Item = K> + Clone,
        columns: impl Columns<R>,
    ) {
        self.database.table_of(table).prefetch_columns(self.tx, keys, columns);
    }

    #[inline(always)]
    fn read<K: Key, R: Value, O: Data>(
        &mut self,
        table: TableRef<K, R>,
        key: K,
        look: impl FnOnce(&R) -> O + Send + 'static,
    ) -> Result<Option<O>, Abort> {
        let (database, tx) = self.arrival();
        database.table_of(table).read(tx, &key, look)
    }

    #[inline(always)]
    fn read_columns<K: Key, R: Value, C>(
        &mut self,
        table: TableRef<K, R>,
        key: K,
        columns: C,
    ) -> Result<Option<C::Values>, Abort>
    where
        C: Columns<R, Values: Data> + Send + 'static,
    {
        let (database, tx) = self.arrival();
        database.table_of(table).read_columns(tx, &key, columns)
    }

    #[inline(always)]
    fn update<K: Key, R: Value, I: Data, O: Data>(
        &mut self,
        table: TableRef<K, R>,
        key: K,
        input: I,
        change: impl FnOnce(&mut R, I) -> O + Send + 'static,
    ) -> Result<Option<O>, Abort> {
        let (database, tx) = self.arrival();
        database.table_of(table).update_if_present(tx, &key, |row| change(row, input))
    }

    #[inline(always)]
    fn update_columns<K: Key, R: Value, C, I: Data, O: Data>(
        &mut self,
        table: TableRef<K, R>,
        key: K,
        columns: C,
        input: I,
        change: impl FnOnce(&mut C::Values, I) -> O + Send + 'static,
    ) -> Result<Option<O>, Abort>
    where
        C: Columns<R, Values: Data> + Send + 'static,
    {
        let (database, tx) = self.arrival();
        database.table_of(table).update_columns_if_present(tx, &key, columns, |values| change(values, input))
    }

    #[inline(always)]
    fn add<K: Key, R: Value, F: Addend + Data>(
        &mut self,
        table: TableRef<K, R>,
        key: K,
        column: Column<R, F>,
        amount: F,
    ) -> Result<(), Abort> {
        let (database, tx) = self.arrival();
        database.table_of(table).add_if_present(tx, &key, column, amount).map(drop)
    }

    #[inline(always)]
    fn commute_columns<K: Key, R: Value, C, I: Data>(
        &mut self,
        table: TableRef<K, R>,
        key: K,
        columns: C,
        input: I,
        change: impl Fn(&mut C::Values, I) + Send + 'static,
    ) -> Result<(), Abort>
    where
        C: Columns<R, Values: Data> + Send + 'static,
    {
        let (database, tx) = self.arrival();
        let change = move |values: &mut C::Values| change(values, input.clone());
        database.table_of(table).apply_columns_if_present(tx, &key, columns, change).map(drop)
    }

    #[inline(always)]
    fn commute_columns_each<Keys, K: Key, R: Value, C, I: Data>(
        &mut self,
        table: TableRef<K, R>,
        keys: Keys,
        columns: C,
        input: I,
        change: impl Fn(&mut C::Values, I) + Clone + Send + 'static,
    ) -> Result<(), Abort>
    where
        Keys: Data + IntoIterator<Item = K>,
        C: Columns<R, Values: Data> + Send + 'static,
    {
        for key in keys {
            self.commute_columns(table, key, columns, input.clone(), change.clone())?;
        }
        Ok(())
    }

    #[inline(always)]
    fn replace<K: Key, R: Value>(&mut self, table: TableRef<K, R>, key: K, row: R) -> Result<bool, Abort> {
        let (database, tx) = self.arrival();
        database.table_of(table).replace_if_present(tx, &key, row)
    }

    #[inline(always)]
    fn commute<K: Key, R: Value, I: Data>(
        &mut self,
        table: TableRef<K, R>,
        key: K,
        input: I,
        change: impl Fn(&mut R, I) + Send + 'static,
    ) -> Result<(), Abort> {
        let (database, tx) = self.arrival();
        let change = move |row: &mut R| change(row, input.clone());
        database.table_of(table).apply_if_present(tx, &key, change).map(drop)
    }

    #[inline(always)]
    fn insert<K: Key, R: Value>(&mut self, table: TableRef<K, R>, key: K, row: R) -> Result<bool, Abort> {
        let (database, tx) = self.arrival();
        database.table_of(table).insert_if_absent(tx, key, row)
    }

    #[inline(always)]
    fn insert_grouped<K: Key, R: Value>(
        &mut self,
        table: TableRef<K, R>,
        _group: u64,
        key: K,
        row: R,
    ) -> Result<bool, Abort> {
        self.insert(table, key, row)
    }

    #[inline(always)]
    fn delete<K: Key, R: Value>(&mut self, table: TableRef<K, R>, key: K) -> Result<bool, Abort> {
        let (database, tx) = self.arrival();
        database.table_of(table).delete(tx, &key)
    }

    #[inline(always)]
    fn take_first<K: Key, R: Value>(
        &mut self,
        table: TableRef<K, R>,
        _group: u64,
        range: KeyRange<K>,
    ) -> Result<Option<K>, Abort> {
        let (database, tx) = self.arrival();
        database.table_of(table).take_first(tx, (range.low, range.high))
    }

    #[inline(always)]
    fn update_each<Keys, K: Key, R: Value, I: Data, A: Data>(
        &mut self,
        table: TableRef<K, R>,
        keys: Keys,
        input: I,
        initial: A,
        change: impl Fn(&mut A, &mut R, I) + Clone + Send + 'static,
    ) -> Result<A, Abort>
    where
        Keys: Data + IntoIterator<Item = K>,
    {
        let mut sum = initial;
        for key in keys {
            let (database, tx) = self.arrival();
            database
                .table_of(table)
                .update_if_present(tx, &key, |row| change(&mut sum, row, input.clone()))?;
        }
        Ok(sum)
    }

    #[inline(always)]
    fn scan<K: Key, R: Value, A: Data>(
        &mut self,
        table: TableRef<K, R>,
        range: KeyRange<K>,
        direction: Direction,
        initial: A,
        mut fold: impl FnMut(&mut A, &K, &R) -> ControlFlow<()> + Send + 'static,
    ) -> Result<A, Abort> {
        let (database, tx) = self.arrival();
        let mut sum = initial;
        let range = (range.low, range.high);
        database.table_of(table).scan(tx, range, direction, |key, row| fold(&mut sum, key, row))?;
        Ok(sum)
    }

    #[inline(always)]
    fn scan_index<S: Key, K: Key, R: Value, A: Data>(
        &mut self,
        index: IndexRef<S, K, R>,
        range: KeyRange<S>,
        direction: Direction,
        initial: A,
        mut fold: impl FnMut(&mut A, &S, &K) -> ControlFlow<()> + Send + 'static,
    ) -> Result<A, Abort> {
        let (database, tx) = self.arrival();
        let mut sum = initial;
        let index = database.index_of(index);
        index.scan_keys(tx, (range.low, range.high), direction, |secondary, key| {
            fold(&mut sum, secondary, key)
        })?;
        Ok(sum)
    }

    #[inline(always)]
    fn map<A: Data, B: Data>(&mut self, value: A, compute: impl FnOnce(A) -> B + Send + 'static) -> B {
        compute(value)
    }

    #[inline(always)]
    fn zip<A: Data, B: Data>(&mut self, first: A, second: B) -> (A, B) {
        (first, second)
    }

    #[inline(always)]
    fn force<T: Data>(&mut self, value: T) -> Result<T, Abort> {
        Ok(value)
    }

    #[inline(always)]
    fn require(&mut self, holds: bool) -> Result<(), Abort> {
        if holds { Ok(()) } else { Err(Abort::rollback()) }
    }

    #[inline(always)]
    fn rollback(&mut self) -> Abort {
        Abort::rollback()
    }
}

impl<'w, P: Protocol> Eager<'_, 'w, P> {
    pub(super) fn transaction(&mut self) -> &mut Transaction<'w, P> {
        self.tx
    }

    pub(crate) fn table_name<K: Key, R: Value>(&self, table: TableRef<K, R>) -> String {
        self.database.table_of(table).name().to_owned()
    }

    /// The table of an index, the index's name, and whether its entries never change.
    pub(crate) fn index_place<S: Key, K: Key, R: Value>(
        &self,
        index: IndexRef<S, K, R>,
    ) -> (String, String, bool) {
        let index = self.database.index_of(index);
        (index.table_name(), index.name().to_owned(), index.is_immutable())
    }

    /// The column groups of a table's rows, one bit each.
    #[inline]
    pub(crate) fn groups<K: Key, R: Value>(&self, table: TableRef<K, R>) -> u32 {
        self.database.table_of(table).groups()
    }

    /// The column groups of some columns.
    #[inline]
    pub(crate) fn groups_of<K: Key, R: Value>(&self, table: TableRef<K, R>, columns: impl Columns<R>) -> u32 {
        self.database.table_of(table).groups_of(columns)
    }

    /// Checks that nobody is about to publish changes to the keys of a mark.
    pub(crate) fn check_mark(&mut self, place: usize) -> Result<(), Abort> {
        self.database.marks().map_or(Ok(()), |marks| marks.check(self.tx, place))
    }

    /// The kind of [`commute`](Context::commute) on a table: a change at the commit, or an update.
    #[inline]
    pub(crate) fn kind_of_commuting<K: Key, R: Value>(&self, table: TableRef<K, R>) -> OperationKind {
        kind_of(self.database.table_of(table).commutes())
    }

    /// The same of [`commute_columns`](Context::commute_columns).
    #[inline]
    pub(crate) fn kind_of_commuting_on<K: Key, R: Value>(
        &self,
        table: TableRef<K, R>,
        columns: impl Columns<R>,
    ) -> OperationKind {
        kind_of(self.database.table_of(table).commutes_on(columns))
    }

    /// True if a change of the table may roll its transaction back.
    pub(crate) fn may_refuse_changes<K: Key, R: Value>(&self, table: TableRef<K, R>) -> bool {
        self.database.table_of(table).may_refuse_changes()
    }

    pub(crate) fn is_immutable<K: Key, R: Value>(&self, table: TableRef<K, R>) -> bool {
        self.database.table_of(table).is_immutable()
    }
}

fn kind_of(commutes: bool) -> OperationKind {
    if commutes { OperationKind::Commutative } else { OperationKind::Write }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use hotrow_core::Engine;
    use hotrow_protocols::Occ;
    use std::cell::Cell;

    thread_local! {
        static CALLS: Cell<u32> = const { Cell::new(0) };
    }

    /// Returns the result of an operation, and asserts that the hook was called once before it.
    fn hooked<O>(operation: Result<O, Abort>) -> O {
        assert_eq!(CALLS.take(), 1);
        operation.expect("no other transaction conflicts")
    }

    #[test]
    fn the_hook_is_called_once_before_every_operation() {
        let engine = Engine::<Occ>::new();
        let database = Database::on(&engine);
        let mut builder = database.table::<u64, u64>("numbers");
        let index = builder.secondary("halves", |_, row| row / 2);
        let table = builder.create().unwrap();
        let (table, index) = (table.reference(), index.reference());
        database.before_operations(|| CALLS.set(CALLS.get() + 1));
        let mut worker = engine.worker().unwrap();
        let committed = worker.transact(|tx| {
            let cx = &mut Eager::new(&database, tx);
            cx.prefetch(table, [1, 2].into_iter());
            assert!(CALLS.take() == 0, "a prefetch is only a hint");
            assert!(hooked(cx.insert(table, 1, 10)));
            assert!(hooked(cx.insert_grouped(table, 0, 2, 20)));
            assert!(hooked(cx.replace(table, 1, 11)));
            assert_eq!(hooked(cx.read(table, 1, |row| *row)), Some(11));
            assert_eq!(hooked(cx.update(table, 1, 5, |row, more| *row += more)), Some(()));
            hooked(cx.commute(table, 1, 4, |row, more| *row += more));
            let all = KeyRange::from(0..=9);
            let sum = |sum: &mut u64, _: &u64, row: &u64| {
                *sum += row;
                ControlFlow::Continue(())
            };
            assert_eq!(hooked(cx.scan(table, all, Direction::Ascending, 0, sum)), 40);
            let tens = KeyRange::from(10..=10);
            assert_eq!(hooked(cx.scan_index(index, tens, Direction::Ascending, 0, sum)), 3);
            assert!(hooked(cx.delete(table, 2)));
            let add = |sum: &mut u64, row: &mut u64, more: u64| *sum += *row + more;
            assert_eq!(hooked(cx.update_each(table, Some(1), 5, 0, add)), 25);
            assert_eq!(hooked(cx.take_first(table, 0, KeyRange::from(0..=9))), Some(1));
            Ok(())
        });
        committed.expect("no other transaction conflicts");
        assert!(CALLS.take() == 0, "no call before the commit");
    }
}

//! The eager context: each operation runs at once.

use crate::database::{Database, IndexRef, TableRef};
use crate::index::Direction;
use crate::key::Key;
use crate::procedure::{Context, Data, KeyRange};
use hotrow_core::{Abort, Protocol, Transaction, Value};
use hotrow_sync::thread;
use std::ops::ControlFlow;
use std::time::Duration;

/// Runs each operation at once, in one attempt at a transaction. Values are plain values, so a procedure
/// compiles to the code that one would have written by hand.
///
/// In an interactive database ([`Database::set_think_time`]) each operation arrives only after a delay.
pub struct Eager<'a, 'w, P: Protocol> {
    database: &'a Database<P>,
    tx: &'a mut Transaction<'w, P>,
}

impl<'a, 'w, P: Protocol> Eager<'a, 'w, P> {
    /// A context for an attempt in progress: procedures and closures mix freely.
    pub fn new(database: &'a Database<P>, tx: &'a mut Transaction<'w, P>) -> Self {
        Self { database, tx }
    }

    /// Waits until the next operation arrives.
    #[inline(always)]
    fn arrival(&self) {
        let think = self.database.think_time();
        if !think.is_zero() {
            delay(think);
        }
    }
}

/// Kept out of line, so that a database without delays pays for one comparison.
#[cold]
#[inline(never)]
fn delay(think: Duration) {
    thread::sleep(think);
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
        self.database.table(table).prefetch(self.tx, keys);
    }

    #[inline(always)]
    fn read<K: Key, R: Value, O: Data>(
        &mut self,
        table: TableRef<K, R>,
        key: K,
        look: impl FnOnce(&R) -> O + Send + 'static,
    ) -> Result<Option<O>, Abort> {
        self.arrival();
        self.database.table(table).read(self.tx, &key, look)
    }

    #[inline(always)]
    fn update<K: Key, R: Value, I: Data, O: Data>(
        &mut self,
        table: TableRef<K, R>,
        key: K,
        input: I,
        change: impl FnOnce(&mut R, I) -> O + Send + 'static,
    ) -> Result<Option<O>, Abort> {
        self.arrival();
        self.database.table(table).update(self.tx, &key, |row| change(row, input))
    }

    #[inline(always)]
    fn replace<K: Key, R: Value>(&mut self, table: TableRef<K, R>, key: K, row: R) -> Result<bool, Abort> {
        self.database.table(table).replace(self.tx, &key, row)
    }

    #[inline(always)]
    fn commute<K: Key, R: Value, I: Data>(
        &mut self,
        table: TableRef<K, R>,
        key: K,
        input: I,
        change: impl FnOnce(&mut R, I) + Send + 'static,
    ) -> Result<(), Abort> {
        self.arrival();
        self.database.table(table).update(self.tx, &key, |row| change(row, input)).map(|_| ())
    }

    #[inline(always)]
    fn insert<K: Key, R: Value>(&mut self, table: TableRef<K, R>, key: K, row: R) -> Result<bool, Abort> {
        self.arrival();
        self.database.table(table).insert(self.tx, key, row)
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
        self.arrival();
        self.database.table(table).delete(self.tx, &key)
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
        self.arrival();
        let mut sum = initial;
        let range = (range.low, range.high);
        self.database.table(table).scan(self.tx, range, direction, |key, row| fold(&mut sum, key, row))?;
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
        self.arrival();
        let mut sum = initial;
        let index = self.database.secondary(index);
        index.scan_keys(self.tx, (range.low, range.high), direction, |secondary, key| {
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

impl<P: Protocol> Eager<'_, '_, P> {
    pub(crate) fn table_name<K: Key, R: Value>(&self, table: TableRef<K, R>) -> String {
        self.database.table(table).name().to_owned()
    }

    pub(crate) fn index_name<S: Key, K: Key, R: Value>(&self, index: IndexRef<S, K, R>) -> String {
        self.database.secondary(index).name().to_owned()
    }

    pub(crate) fn is_fixed<K: Key, R: Value>(&self, table: TableRef<K, R>) -> bool {
        self.database.table(table).is_fixed()
    }
}

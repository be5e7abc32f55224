//! The deferred context: records operations and runs them when the transaction commits.

use super::Eager;
use crate::database::{Database, IndexRef, TableRef};
use crate::index::Direction;
use crate::key::Key;
use crate::procedure::{Context, Data, KeyRange};
use hotrow_core::deferred::Results;
use hotrow_core::{Abort, Deferred, Input, Protocol, Transaction, Value};
use std::ops::ControlFlow;

/// Defers each operation whose row is known, under a protocol that [defers](Protocol::Deferral) (drp §5.1).
///
/// An operation whose key is not known yet waits for it, and lines up later than the others. A scan and
/// [`force`](Context::force) first run all operations recorded so far, which makes the transaction wild (drp §6.2). A
/// value known now stays a plain value, so that computing with it records nothing.
pub struct Deferring<'a, 'w, P: Protocol> {
    eager: Eager<'a, 'w, P>,
}

impl<'a, 'w, P: Protocol> Deferring<'a, 'w, P> {
    /// A context for an attempt in progress.
    pub fn new(database: &'a Database<P>, tx: &'a mut Transaction<'w, P>) -> Self {
        Self { eager: Eager::new(database, tx) }
    }

    /// Converts a value into a deferred one, whether it is known now or not.
    pub(crate) fn defer<T: Data>(&mut self, value: Later<T>) -> Deferred<T> {
        value.into_deferred(self.eager.transaction())
    }
}

/// A value that is known now, or will be when the transaction commits.
#[derive(Debug, Clone)]
pub enum Later<T> {
    /// Known now.
    Known(T),
    /// Known at the commit.
    Deferred(Deferred<T>),
}

impl<T: Data> Later<T> {
    /// Converts the value into a deferred one, whether it is known now or not.
    pub(super) fn into_deferred<P: Protocol>(self, tx: &mut Transaction<'_, P>) -> Deferred<T> {
        match self {
            Later::Known(value) => tx.known(value),
            Later::Deferred(deferred) => deferred,
        }
    }
}

impl<T: Data> Input for Later<T> {
    type Value = T;

    fn get(&self, results: &Results) -> Option<T> {
        match self {
            Later::Known(value) => Some(value.clone()),
            Later::Deferred(deferred) => deferred.get(results),
        }
    }

    fn is_known(&self, results: &Results) -> bool {
        match self {
            Later::Known(_) => true,
            Later::Deferred(deferred) => deferred.is_known(results),
        }
    }

    fn belongs_to(&self, results: &Results) -> bool {
        match self {
            Later::Known(_) => true,
            Later::Deferred(deferred) => deferred.belongs_to(results),
        }
    }

    fn each_slot(&self, visit: &mut dyn FnMut(u32)) {
        if let Later::Deferred(deferred) = self {
            deferred.each_slot(visit);
        }
    }
}

impl<P: Protocol> Context for Deferring<'_, '_, P> {
    type Val<T: Data> = Later<T>;
    type Stop = Abort;

    fn value<T: Data>(&mut self, value: T) -> Later<T> {
        Later::Known(value)
    }

    fn prefetch<K: Key, R: Value>(&mut self, table: TableRef<K, R>, keys: impl Iterator<Item = K> + Clone) {
        self.eager.prefetch(table, keys);
    }

    fn read<K: Key, R: Value, O: Data>(
        &mut self,
        table: TableRef<K, R>,
        key: Later<K>,
        look: impl FnOnce(&R) -> O + Send + 'static,
    ) -> Result<Later<Option<O>>, Abort> {
        if self.eager.is_immutable(table) {
            let key = self.force(key)?;
            return self.eager.read(table, key, look).map(Later::Known);
        }
        let (database, tx) = self.eager.arrival();
        let read =
            database.table(table).when_known(tx, key, |table, tx, key| table.defer_read(tx, &key, look));
        read.map(Later::Deferred)
    }

    fn update<K: Key, R: Value, I: Data, O: Data>(
        &mut self,
        table: TableRef<K, R>,
        key: Later<K>,
        input: Later<I>,
        change: impl FnOnce(&mut R, I) -> O + Send + 'static,
    ) -> Result<Later<Option<O>>, Abort> {
        let (database, tx) = self.eager.arrival();
        let updated = database
            .table(table)
            .when_known(tx, key, |table, tx, key| table.defer_update(tx, &key, input, change));
        updated.map(Later::Deferred)
    }

    fn replace<K: Key, R: Value>(
        &mut self,
        table: TableRef<K, R>,
        key: Later<K>,
        row: Later<R>,
    ) -> Result<Later<bool>, Abort> {
        let (database, tx) = self.eager.arrival();
        let replaced =
            database.table(table).when_known(tx, key, |table, tx, key| table.defer_replace(tx, &key, row));
        replaced.map(Later::Deferred)
    }

    fn commute<K: Key, R: Value, I: Data>(
        &mut self,
        table: TableRef<K, R>,
        key: Later<K>,
        input: Later<I>,
        change: impl FnOnce(&mut R, I) + Send + 'static,
    ) -> Result<(), Abort> {
        self.update(table, key, input, change).map(|_| ())
    }

    fn insert<K: Key, R: Value>(
        &mut self,
        table: TableRef<K, R>,
        key: Later<K>,
        row: Later<R>,
    ) -> Result<Later<bool>, Abort> {
        let (database, tx) = self.eager.arrival();
        database.table(table).defer_insert(tx, key, row).map(Later::Deferred)
    }

    fn insert_grouped<K: Key, R: Value>(
        &mut self,
        table: TableRef<K, R>,
        group: u64,
        key: Later<K>,
        row: Later<R>,
    ) -> Result<Later<bool>, Abort> {
        let (database, tx) = self.eager.arrival();
        database.table(table).defer_insert_grouped(tx, group, key, row).map(Later::Deferred)
    }

    fn delete<K: Key, R: Value>(
        &mut self,
        table: TableRef<K, R>,
        key: Later<K>,
    ) -> Result<Later<bool>, Abort> {
        let (database, tx) = self.eager.arrival();
        let deleted =
            database.table(table).when_known(tx, key, |table, tx, key| table.defer_delete(tx, &key));
        deleted.map(Later::Deferred)
    }

    fn take_first<K: Key, R: Value>(
        &mut self,
        table: TableRef<K, R>,
        group: u64,
        range: Later<KeyRange<K>>,
    ) -> Result<Later<Option<K>>, Abort> {
        let KeyRange { low, high } = self.force(range)?;
        let (database, tx) = self.eager.arrival();
        database.table(table).defer_take_first(tx, group, (low, high)).map(Later::Deferred)
    }

    fn update_each<Keys, K: Key, R: Value, I: Data, A: Data>(
        &mut self,
        table: TableRef<K, R>,
        keys: Later<Keys>,
        input: Later<I>,
        initial: A,
        change: impl Fn(&mut A, &mut R, I) + Clone + Send + 'static,
    ) -> Result<Later<A>, Abort>
    where
        Keys: Data + IntoIterator<Item = K>,
    {
        let (database, tx) = self.eager.arrival();
        database.table(table).defer_update_each(tx, keys, input, initial, change).map(Later::Deferred)
    }

    fn scan<K: Key, R: Value, A: Data>(
        &mut self,
        table: TableRef<K, R>,
        range: Later<KeyRange<K>>,
        direction: Direction,
        initial: A,
        fold: impl FnMut(&mut A, &K, &R) -> ControlFlow<()> + Send + 'static,
    ) -> Result<Later<A>, Abort> {
        let range = self.force(range)?;
        self.eager.scan(table, range, direction, initial, fold).map(Later::Known)
    }

    fn scan_index<S: Key, K: Key, R: Value, A: Data>(
        &mut self,
        index: IndexRef<S, K, R>,
        range: Later<KeyRange<S>>,
        direction: Direction,
        initial: A,
        fold: impl FnMut(&mut A, &S, &K) -> ControlFlow<()> + Send + 'static,
    ) -> Result<Later<A>, Abort> {
        let range = self.force(range)?;
        self.eager.scan_index(index, range, direction, initial, fold).map(Later::Known)
    }

    fn map<A: Data, B: Data>(
        &mut self,
        value: Later<A>,
        compute: impl FnOnce(A) -> B + Send + 'static,
    ) -> Later<B> {
        match value {
            Later::Known(value) => Later::Known(compute(value)),
            Later::Deferred(deferred) => {
                Later::Deferred(self.eager.transaction().compute_later(deferred, compute))
            }
        }
    }

    fn zip<A: Data, B: Data>(&mut self, first: Later<A>, second: Later<B>) -> Later<(A, B)> {
        match (first, second) {
            (Later::Known(first), Later::Known(second)) => Later::Known((first, second)),
            both => Later::Deferred(self.eager.transaction().compute_later(both, |both| both)),
        }
    }

    fn force<T: Data>(&mut self, value: Later<T>) -> Result<T, Abort> {
        match value {
            Later::Known(value) => Ok(value),
            Later::Deferred(deferred) => self.eager.transaction().force(deferred),
        }
    }

    fn require(&mut self, holds: Later<bool>) -> Result<(), Abort> {
        match holds {
            Later::Known(holds) => self.eager.require(holds),
            Later::Deferred(holds) => self.eager.transaction().require(holds),
        }
    }

    fn rollback(&mut self) -> Abort {
        self.eager.rollback()
    }
}

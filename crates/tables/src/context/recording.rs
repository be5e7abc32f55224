//! The recording contexts: values may be known later, and an executor decides when operations run.

use super::executor::Executor;
use super::{Eager, InOrder, Stealable};
use crate::database::Database;
use crate::index::Direction;
use crate::key::Key;
use crate::procedure::{Context, Data, KeyRange};
use crate::reference::{IndexRef, TableRef};
use hotrow_core::operations::Results;
use hotrow_core::{Abort, Columns, ContextAccess, Deferred, Input, Protocol, Transaction, Value};
use std::marker::PhantomData;
use std::ops::ControlFlow;

/// Records operations as a graph ([`hotrow_core::operations`]), which its executor runs: [`InOrder`] or [`Stealable`].
///
/// A value known now stays a plain value, so that computing with it records nothing.
pub struct Recording<'a, 'w, P: Protocol, E> {
    eager: Eager<'a, 'w, P>,
    executor: PhantomData<E>,
}

/// The context of protocols that [defer](Protocol::Deferral) operations.
pub type Deferring<'a, 'w, P> = Recording<'a, 'w, P, InOrder>;

/// The context of protocols that let others [steal](Protocol::Stealing) operations.
pub type Graph<'a, 'w, P> = Recording<'a, 'w, P, Stealable>;

impl<'a, 'w, P: Protocol> Deferring<'a, 'w, P> {
    /// A context for an attempt in progress.
    pub fn new(database: &'a Database<P>, tx: &'a mut Transaction<'w, P>) -> Self {
        Self::sole_user(database, tx)
    }
}

impl<'a, 'w, P: Protocol, E: Executor<P>> Recording<'a, 'w, P, E> {
    /// A context for an attempt in progress. It must be the attempt's only user, if operations are stealable: they run
    /// by the commit at the latest, and closures do not wait for them.
    pub(crate) fn sole_user(database: &'a Database<P>, tx: &'a mut Transaction<'w, P>) -> Self {
        Self { eager: Eager::new(database, tx), executor: PhantomData }
    }

    /// Converts a value into a deferred one, whether it is known now or not.
    pub(crate) fn defer<T: Data>(&mut self, value: Later<T>) -> Deferred<T> {
        match value {
            Later::Known(value) => self.eager.transaction().known(value),
            Later::Deferred(deferred) => deferred,
        }
    }

    /// Computes a value that is not known now. If the attempt cannot go on, it never is, and the next operation fails.
    #[inline]
    fn compute_later<I: Input<Value: Data> + Send, O: Data>(
        &mut self,
        inputs: I,
        compute: impl FnOnce(I::Value) -> O + Send + 'static,
    ) -> Later<O> {
        let tx = self.eager.transaction();
        Later::Deferred(match E::compute(tx, inputs, move |values| Ok(compute(values))) {
            Ok(deferred) => deferred,
            Err(_) => tx.unknown(),
        })
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
    /// Returns the value now, running recorded operations if necessary.
    #[inline(always)]
    pub(super) fn force<P: Protocol>(self, tx: &mut Transaction<'_, P>) -> Result<T, Abort> {
        match self {
            Later::Known(value) => Ok(value),
            Later::Deferred(deferred) => tx.force(deferred),
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

impl<P: Protocol, E: Executor<P>> Context for Recording<'_, '_, P, E> {
    type Val<T: Data> = Later<T>;
    type Stop = Abort;

    #[inline(always)]
    fn value<T: Data>(&mut self, value: T) -> Later<T> {
        Later::Known(value)
    }

    #[inline(always)]
    fn prefetch<K: Key, R: Value>(&mut self, table: TableRef<K, R>, keys: impl Iterator<Item = K> + Clone) {
        self.eager.prefetch(table, keys);
    }

    #[inline]
    fn prefetch_columns<K: Key, R: Value>(
        &mut self,
        table: TableRef<K, R>,
        keys: impl Iterator<Item = K> + Clone,
        columns: impl Columns<R>,
    ) {
        self.eager.prefetch_columns(table, keys, columns);
    }

    #[inline]
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
        E::read(&mut self.eager, table, key, look)
    }

    #[inline]
    fn read_columns<K: Key, R: Value, C>(
        &mut self,
        table: TableRef<K, R>,
        key: Later<K>,
        columns: C,
    ) -> Result<Later<Option<C::Values>>, Abort>
    where
        C: Columns<R, Values: Data> + Send + 'static,
    {
        if self.eager.is_immutable(table) {
            let key = self.force(key)?;
            return self.eager.read_columns(table, key, columns).map(Later::Known);
        }
        E::read_columns(&mut self.eager, table, key, columns)
    }

    #[inline]
    fn update_columns<K: Key, R: Value, C, I: Data, O: Data>(
        &mut self,
        table: TableRef<K, R>,
        key: Later<K>,
        columns: C,
        input: Later<I>,
        change: impl FnOnce(&mut C::Values, I) -> O + Send + 'static,
    ) -> Result<Later<Option<O>>, Abort>
    where
        C: Columns<R, Values: Data> + Send + 'static,
    {
        E::update_columns(&mut self.eager, table, key, columns, input, change)
    }

    #[inline]
    fn commute_columns<K: Key, R: Value, C, I: Data>(
        &mut self,
        table: TableRef<K, R>,
        key: Later<K>,
        columns: C,
        input: Later<I>,
        change: impl Fn(&mut C::Values, I) + Send + 'static,
    ) -> Result<(), Abort>
    where
        C: Columns<R, Values: Data> + Send + 'static,
    {
        self.update_columns(table, key, columns, input, change).map(drop)
    }

    fn commute_columns_each<Keys, K: Key, R: Value, C, I: Data>(
        &mut self,
        table: TableRef<K, R>,
        keys: Later<Keys>,
        columns: C,
        input: Later<I>,
        change: impl Fn(&mut C::Values, I) + Clone + Send + 'static,
    ) -> Result<(), Abort>
    where
        Keys: Data + IntoIterator<Item = K>,
        C: Columns<R, Values: Data> + Send + 'static,
    {
        E::commute_columns_each(&mut self.eager, table, keys, columns, input, change)
    }

    #[inline]
    fn update<K: Key, R: Value, I: Data, O: Data>(
        &mut self,
        table: TableRef<K, R>,
        key: Later<K>,
        input: Later<I>,
        change: impl FnOnce(&mut R, I) -> O + Send + 'static,
    ) -> Result<Later<Option<O>>, Abort> {
        E::update(&mut self.eager, table, key, input, change)
    }

    fn replace<K: Key, R: Value>(
        &mut self,
        table: TableRef<K, R>,
        key: Later<K>,
        row: Later<R>,
    ) -> Result<Later<bool>, Abort> {
        let replaced = self.update(table, key, row, |old, row| *old = row)?;
        Ok(self.map(replaced, |replaced| replaced.is_some()))
    }

    #[inline]
    fn commute<K: Key, R: Value, I: Data>(
        &mut self,
        table: TableRef<K, R>,
        key: Later<K>,
        input: Later<I>,
        change: impl Fn(&mut R, I) + Send + 'static,
    ) -> Result<(), Abort> {
        self.update(table, key, input, change).map(|_| ())
    }

    #[inline]
    fn insert<K: Key, R: Value>(
        &mut self,
        table: TableRef<K, R>,
        key: Later<K>,
        row: Later<R>,
    ) -> Result<Later<bool>, Abort> {
        E::insert(&mut self.eager, table, None, key, row)
    }

    #[inline]
    fn insert_grouped<K: Key, R: Value>(
        &mut self,
        table: TableRef<K, R>,
        group: u64,
        key: Later<K>,
        row: Later<R>,
    ) -> Result<Later<bool>, Abort> {
        E::insert(&mut self.eager, table, Some(group), key, row)
    }

    fn delete<K: Key, R: Value>(
        &mut self,
        table: TableRef<K, R>,
        key: Later<K>,
    ) -> Result<Later<bool>, Abort> {
        E::delete(&mut self.eager, table, key)
    }

    fn take_first<K: Key, R: Value>(
        &mut self,
        table: TableRef<K, R>,
        group: u64,
        range: Later<KeyRange<K>>,
    ) -> Result<Later<Option<K>>, Abort> {
        let range = self.force(range)?;
        E::take_first(&mut self.eager, table, group, range)
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
        E::update_each(&mut self.eager, table, keys, input, initial, change)
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
        E::settle(self.eager.transaction())?;
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
        E::settle(self.eager.transaction())?;
        self.eager.scan_index(index, range, direction, initial, fold).map(Later::Known)
    }

    #[inline(always)]
    fn map<A: Data, B: Data>(
        &mut self,
        value: Later<A>,
        compute: impl FnOnce(A) -> B + Send + 'static,
    ) -> Later<B> {
        match value {
            Later::Known(value) => Later::Known(compute(value)),
            Later::Deferred(deferred) => self.compute_later(deferred, compute),
        }
    }

    #[inline(always)]
    fn zip<A: Data, B: Data>(&mut self, first: Later<A>, second: Later<B>) -> Later<(A, B)> {
        // Match one after the other: making a pair of both before the match cost fifteen instructions an operation.
        let both = match first {
            Later::Known(first) => match second {
                Later::Known(second) => return Later::Known((first, second)),
                second => (Later::Known(first), second),
            },
            first => (first, second),
        };
        self.compute_later(both, |both| both)
    }

    #[inline(always)]
    fn force<T: Data>(&mut self, value: Later<T>) -> Result<T, Abort> {
        value.force(self.eager.transaction())
    }

    #[inline]
    fn require(&mut self, holds: Later<bool>) -> Result<(), Abort> {
        match holds {
            Later::Known(holds) => self.eager.require(holds),
            Later::Deferred(holds) => {
                let check = |holds| if holds { Ok(()) } else { Err(Abort::rollback()) };
                E::compute(self.eager.transaction(), holds, check).map(|_| ())
            }
        }
    }

    fn rollback(&mut self) -> Abort {
        self.eager.rollback()
    }
}

//! The graph context: runs operations at once until the first conflict, and then queues them for other workers to
//! run.

use super::{Eager, Later};
use crate::database::{Database, IndexRef, TableRef};
use crate::index::Direction;
use crate::key::Key;
use crate::procedure::{Context, Data, KeyRange};
use hotrow_core::{Abort, Deferred, Protocol, Transaction, Value};
use std::ops::ControlFlow;

/// Runs operations at once until one meets a lock that is not free, or another transaction waits for this one. From
/// then on it queues them (*draws* them), under a protocol that lets others [steal](Protocol::Stealing) operations
/// (stealdb §3). So workers share a transaction exactly where it conflicts; elsewhere it runs as in the [eager](Eager) context.
///
/// The dependencies are those of the procedure's own values. Some operations first run everything queued so far, and
/// then run at once: an operation whose key is not known yet, one that takes the first row of a group, a scan, and
/// [`force`](Context::force). Operations after them are queued again. The key of an insertion need not be known.
pub struct Graph<'a, 'w, P: Protocol> {
    eager: Eager<'a, 'w, P>,
}

const ONCE: &str = "an operation that would block has not used its closure";

impl<'a, 'w, P: Protocol> Graph<'a, 'w, P> {
    /// A context for an attempt in progress. It must be the attempt's only user, because queued operations run by the
    /// commit at the latest.
    pub(crate) fn new(database: &'a Database<P>, tx: &'a mut Transaction<'w, P>) -> Self {
        Self { eager: Eager::new(database, tx) }
    }

    /// Converts a value into a deferred one, whether it is known now or not.
    pub(crate) fn defer<T: Data>(&mut self, value: Later<T>) -> Deferred<T> {
        value.into_deferred(self.eager.transaction())
    }

    /// Runs all queued operations, for an operation that must see all of their effects.
    fn settle(&mut self) -> Result<&mut Eager<'a, 'w, P>, Abort> {
        self.eager.transaction().run_graph()?;
        Ok(&mut self.eager)
    }
}

impl<P: Protocol> Context for Graph<'_, '_, P> {
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
    fn read<K: Key, R: Value, O: Data>(
        &mut self,
        table: TableRef<K, R>,
        key: Later<K>,
        look: impl FnOnce(&R) -> O + Send + 'static,
    ) -> Result<Later<Option<O>>, Abort> {
        let key = self.force(key)?;
        if self.eager.is_immutable(table) {
            return self.eager.read(table, key, look).map(Later::Known);
        }
        let (database, tx) = self.eager.arrival();
        let table = database.table(table);
        let mut look = Some(look);
        if !tx.draws()
            && let Some(output) =
                tx.try_at_once(|tx| table.read(tx, &key, |row| look.take().expect(ONCE)(row)))?
        {
            return Ok(Later::Known(output));
        }
        table.shared.draw_read(tx, key, look.expect(ONCE)).map(Later::Deferred)
    }

    #[inline]
    fn update<K: Key, R: Value, I: Data, O: Data>(
        &mut self,
        table: TableRef<K, R>,
        key: Later<K>,
        input: Later<I>,
        change: impl FnOnce(&mut R, I) -> O + Send + 'static,
    ) -> Result<Later<Option<O>>, Abort> {
        let key = self.force(key)?;
        let (database, tx) = self.eager.arrival();
        let table = database.table(table);
        let input = match input {
            Later::Known(input) if !tx.draws() => {
                let mut work = Some((change, input));
                let updated = tx.try_at_once(|tx| {
                    table.update(tx, &key, |row| {
                        let (change, input) = work.take().expect(ONCE);
                        change(row, input)
                    })
                })?;
                if let Some(output) = updated {
                    return Ok(Later::Known(output));
                }
                let (change, input) = work.expect(ONCE);
                let drawn = table.shared.draw_update(tx, key, Later::Known(input), change);
                return drawn.map(Later::Deferred);
            }
            input => input,
        };
        table.shared.draw_update(tx, key, input, change).map(Later::Deferred)
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
        change: impl FnOnce(&mut R, I) + Send + 'static,
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
        let (database, tx) = self.eager.arrival();
        let table = database.table(table);
        match (key, row) {
            (Later::Known(key), Later::Known(row)) if !tx.draws() => {
                table.insert(tx, key, row).map(Later::Known)
            }
            (key, row) => {
                let known = if let Later::Known(key) = &key { Some(key.clone()) } else { None };
                table.shared.draw_insert(tx, known.as_ref(), (key, row)).map(Later::Deferred)
            }
        }
    }

    #[inline]
    fn insert_grouped<K: Key, R: Value>(
        &mut self,
        table: TableRef<K, R>,
        _group: u64,
        key: Later<K>,
        row: Later<R>,
    ) -> Result<Later<bool>, Abort> {
        self.insert(table, key, row)
    }

    fn delete<K: Key, R: Value>(
        &mut self,
        table: TableRef<K, R>,
        key: Later<K>,
    ) -> Result<Later<bool>, Abort> {
        let key = self.force(key)?;
        let (database, tx) = self.eager.arrival();
        let table = database.table(table);
        if tx.draws() {
            table.shared.draw_delete(tx, key).map(Later::Deferred)
        } else {
            table.delete(tx, &key).map(Later::Known)
        }
    }

    fn take_first<K: Key, R: Value>(
        &mut self,
        table: TableRef<K, R>,
        group: u64,
        range: Later<KeyRange<K>>,
    ) -> Result<Later<Option<K>>, Abort> {
        let range = self.force(range)?;
        self.settle()?.take_first(table, group, range).map(Later::Known)
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
        let keys = self.force(keys)?;
        let mut sum = Later::Known(initial);
        for key in keys {
            let (database, tx) = self.eager.arrival();
            let table = database.table(table);
            if let (Later::Known(sum), Later::Known(input), false) = (&mut sum, &input, tx.draws()) {
                let updated =
                    tx.try_at_once(|tx| table.update(tx, &key, |row| change(sum, row, input.clone())))?;
                if updated.is_some() {
                    continue;
                }
            }
            let inputs = (sum, input.clone());
            sum = Later::Deferred(table.shared.draw_update_and(tx, key, inputs, change.clone())?);
        }
        Ok(sum)
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
        self.settle()?.scan(table, range, direction, initial, fold).map(Later::Known)
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
        self.settle()?.scan_index(index, range, direction, initial, fold).map(Later::Known)
    }

    #[inline(always)]
    fn map<A: Data, B: Data>(
        &mut self,
        value: Later<A>,
        compute: impl FnOnce(A) -> B + Send + 'static,
    ) -> Later<B> {
        match value {
            Later::Known(value) => Later::Known(compute(value)),
            Later::Deferred(deferred) => {
                let tx = self.eager.transaction();
                // SAFETY: the captures of the computation are `Send`, and its values are `Send` and `Sync`.
                Later::Deferred(unsafe { tx.draw_computation_later(deferred, compute) })
            }
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
        let tx = self.eager.transaction();
        // SAFETY: as in `map`.
        Later::Deferred(unsafe { tx.draw_computation_later(both, |both| both) })
    }

    #[inline(always)]
    fn force<T: Data>(&mut self, value: Later<T>) -> Result<T, Abort> {
        match value {
            Later::Known(value) => Ok(value),
            Later::Deferred(deferred) => self.eager.transaction().force(deferred),
        }
    }

    #[inline]
    fn require(&mut self, holds: Later<bool>) -> Result<(), Abort> {
        match holds {
            Later::Known(holds) => self.eager.require(holds),
            Later::Deferred(holds) => {
                let check = |holds| if holds { Ok(()) } else { Err(Abort::rollback()) };
                // SAFETY: the computation uses Boolean values only.
                unsafe { self.eager.transaction().draw_computation(holds, check) }.map(|_| ())
            }
        }
    }

    fn rollback(&mut self) -> Abort {
        self.eager.rollback()
    }
}

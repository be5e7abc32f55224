//! The executor of stealable operations: at once until the first conflict, and then with the help of waiting workers.

use super::executor::Executor;
use super::{Eager, Later};
use crate::enqueue::ONCE;
use crate::key::Key;
use crate::procedure::{Context, Data, KeyRange};
use crate::reference::TableRef;
use hotrow_core::{Abort, Columns, ContextAccess, Deferred, Input, Protocol, Transaction, Value};

/// Runs operations at once until one meets a lock that is not free, or another transaction waits for this one. From
/// then on it enqueues them, under a protocol that lets others [steal](Protocol::Stealing) operations (stealdb §3). So
/// workers share a transaction exactly where it conflicts; elsewhere it runs as in the [eager](Eager) context.
///
/// The dependencies are those of the procedure's own values. Some operations first run everything enqueued so far, and
/// then run at once: an operation whose key is not known yet, one that takes the first row of a group, a scan, and
/// [`force`](Context::force). Operations after them are enqueued again. The key of an insertion need not be known.
#[derive(Debug)]
pub enum Stealable {}

impl<P: Protocol> Executor<P> for Stealable {
    #[inline]
    fn read<K: Key, R: Value, O: Data>(
        eager: &mut Eager<'_, '_, P>,
        table: TableRef<K, R>,
        key: Later<K>,
        look: impl FnOnce(&R) -> O + Send + 'static,
    ) -> Result<Later<Option<O>>, Abort> {
        let key = key.force(eager.transaction())?;
        let (database, tx) = eager.arrival();
        let table = database.table_of(table);
        let mut look = Some(look);
        if !tx.is_enqueuing()
            && let Some(output) =
                tx.try_at_once(|tx| table.read(tx, &key, |row| look.take().expect(ONCE)(row)))?
        {
            return Ok(Later::Known(output));
        }
        table.shared.enqueue_read(tx, key, look.expect(ONCE)).map(Later::Deferred)
    }

    #[inline]
    fn update<K: Key, R: Value, I: Data, O: Data>(
        eager: &mut Eager<'_, '_, P>,
        table: TableRef<K, R>,
        key: Later<K>,
        input: Later<I>,
        change: impl FnOnce(&mut R, I) -> O + Send + 'static,
    ) -> Result<Later<Option<O>>, Abort> {
        let key = key.force(eager.transaction())?;
        let (database, tx) = eager.arrival();
        let table = database.table_of(table);
        let input = match input {
            Later::Known(input) if !tx.is_enqueuing() => {
                let mut work = Some((change, input));
                let updated = tx.try_at_once(|tx| {
                    table.update_if_present(tx, &key, |row| {
                        let (change, input) = work.take().expect(ONCE);
                        change(row, input)
                    })
                })?;
                if let Some(output) = updated {
                    return Ok(Later::Known(output));
                }
                let (change, input) = work.expect(ONCE);
                let enqueued = table.shared.enqueue_update(tx, key, Later::Known(input), change);
                return enqueued.map(Later::Deferred);
            }
            input => input,
        };
        table.shared.enqueue_update(tx, key, input, change).map(Later::Deferred)
    }

    #[inline]
    fn read_columns<K: Key, R: Value, C>(
        eager: &mut Eager<'_, '_, P>,
        table: TableRef<K, R>,
        key: Later<K>,
        columns: C,
    ) -> Result<Later<Option<C::Values>>, Abort>
    where
        C: Columns<R, Values: Data> + Send + 'static,
    {
        let key = key.force(eager.transaction())?;
        let (database, tx) = eager.arrival();
        let table = database.table_of(table);
        if !tx.is_enqueuing()
            && let Some(output) = tx.try_at_once(|tx| table.read_columns(tx, &key, columns))?
        {
            return Ok(Later::Known(output));
        }
        table.shared.enqueue_read_columns(tx, key, columns).map(Later::Deferred)
    }

    #[inline]
    fn update_columns<K: Key, R: Value, C, I: Data, O: Data>(
        eager: &mut Eager<'_, '_, P>,
        table: TableRef<K, R>,
        key: Later<K>,
        columns: C,
        input: Later<I>,
        change: impl FnOnce(&mut C::Values, I) -> O + Send + 'static,
    ) -> Result<Later<Option<O>>, Abort>
    where
        C: Columns<R, Values: Data> + Send + 'static,
    {
        let key = key.force(eager.transaction())?;
        let (database, tx) = eager.arrival();
        let table = database.table_of(table);
        let input = match input {
            Later::Known(input) if !tx.is_enqueuing() => {
                let mut work = Some((change, input));
                let updated = tx.try_at_once(|tx| {
                    table.update_columns_if_present(tx, &key, columns, |values| {
                        let (change, input) = work.take().expect(ONCE);
                        change(values, input)
                    })
                })?;
                if let Some(output) = updated {
                    return Ok(Later::Known(output));
                }
                let (change, input) = work.expect(ONCE);
                let input = Later::Known(input);
                let enqueued = table.shared.enqueue_update_columns(tx, key, columns, input, change);
                return enqueued.map(Later::Deferred);
            }
            input => input,
        };
        table.shared.enqueue_update_columns(tx, key, columns, input, change).map(Later::Deferred)
    }

    fn commute_columns_each<Keys, K: Key, R: Value, C, I: Data>(
        eager: &mut Eager<'_, '_, P>,
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
        let keys = keys.force(eager.transaction())?;
        for key in keys {
            let change = change.clone();
            Self::update_columns(eager, table, Later::Known(key), columns, input.clone(), change)?;
        }
        Ok(())
    }

    #[inline]
    fn insert<K: Key, R: Value>(
        eager: &mut Eager<'_, '_, P>,
        table: TableRef<K, R>,
        _group: Option<u64>,
        key: Later<K>,
        row: Later<R>,
    ) -> Result<Later<bool>, Abort> {
        let (database, tx) = eager.arrival();
        let table = database.table_of(table);
        match (key, row) {
            (Later::Known(key), Later::Known(row)) if !tx.is_enqueuing() => {
                table.insert_if_absent(tx, key, row).map(Later::Known)
            }
            (key, row) => {
                let known = if let Later::Known(key) = &key { Some(key.clone()) } else { None };
                table.shared.enqueue_insert(tx, known.as_ref(), (key, row)).map(Later::Deferred)
            }
        }
    }

    fn delete<K: Key, R: Value>(
        eager: &mut Eager<'_, '_, P>,
        table: TableRef<K, R>,
        key: Later<K>,
    ) -> Result<Later<bool>, Abort> {
        let key = key.force(eager.transaction())?;
        let (database, tx) = eager.arrival();
        let table = database.table_of(table);
        if tx.is_enqueuing() {
            table.shared.enqueue_delete(tx, key).map(Later::Deferred)
        } else {
            table.delete(tx, &key).map(Later::Known)
        }
    }

    fn take_first<K: Key, R: Value>(
        eager: &mut Eager<'_, '_, P>,
        table: TableRef<K, R>,
        group: u64,
        range: KeyRange<K>,
    ) -> Result<Later<Option<K>>, Abort> {
        Self::settle(eager.transaction())?;
        eager.take_first(table, group, range).map(Later::Known)
    }

    fn update_each<Keys, K: Key, R: Value, I: Data, A: Data>(
        eager: &mut Eager<'_, '_, P>,
        table: TableRef<K, R>,
        keys: Later<Keys>,
        input: Later<I>,
        initial: A,
        change: impl Fn(&mut A, &mut R, I) + Clone + Send + 'static,
    ) -> Result<Later<A>, Abort>
    where
        Keys: Data + IntoIterator<Item = K>,
    {
        let keys = keys.force(eager.transaction())?;
        let mut sum = Later::Known(initial);
        for key in keys {
            let (database, tx) = eager.arrival();
            let table = database.table_of(table);
            if let (Later::Known(sum), Later::Known(input), false) = (&mut sum, &input, tx.is_enqueuing()) {
                let updated = tx.try_at_once(|tx| {
                    table.update_if_present(tx, &key, |row| change(sum, row, input.clone()))
                })?;
                if updated.is_some() {
                    continue;
                }
            }
            let inputs = (sum, input.clone());
            sum = Later::Deferred(table.shared.enqueue_fold(tx, key, inputs, change.clone())?);
        }
        Ok(sum)
    }

    #[cold]
    #[inline(never)]
    fn compute<I: Input<Value: Data> + Send, O: Data>(
        tx: &mut Transaction<'_, P>,
        inputs: I,
        compute: impl FnOnce(I::Value) -> Result<O, Abort> + Send + 'static,
    ) -> Result<Deferred<O>, Abort> {
        // SAFETY: the captures of the computation and its inputs are `Send`, and its values are `Send` and `Sync`.
        unsafe { tx.enqueue_computation(inputs, compute) }
    }

    #[inline]
    fn settle(tx: &mut Transaction<'_, P>) -> Result<(), Abort> {
        tx.run_graph()
    }
}

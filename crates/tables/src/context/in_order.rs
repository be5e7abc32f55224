//! The executor of deferred operations: in order, when the transaction commits.

use super::executor::Executor;
use super::{Eager, Later};
use crate::key::Key;
use crate::procedure::{Data, KeyRange};
use crate::reference::TableRef;
use hotrow_core::{Abort, Columns, ContextAccess, Deferred, Input, Protocol, Transaction, Value};

/// Defers each operation whose row is known, under a protocol that [defers](Protocol::Deferral) (drp §5.1).
///
/// An operation whose key is not known yet waits for it, and lines up later than the others. A scan and
/// [`force`](crate::Context::force) first run all operations recorded so far, which makes the transaction wild (drp
/// §6.2).
#[derive(Debug)]
pub enum InOrder {}

impl<P: Protocol> Executor<P> for InOrder {
    fn read<K: Key, R: Value, O: Data>(
        eager: &mut Eager<'_, '_, P>,
        table: TableRef<K, R>,
        key: Later<K>,
        look: impl FnOnce(&R) -> O + Send + 'static,
    ) -> Result<Later<Option<O>>, Abort> {
        let (database, tx) = eager.arrival();
        let read =
            database.table_of(table).when_known(tx, key, |table, tx, key| table.defer_read(tx, &key, look));
        read.map(Later::Deferred)
    }

    fn update<K: Key, R: Value, I: Data, O: Data>(
        eager: &mut Eager<'_, '_, P>,
        table: TableRef<K, R>,
        key: Later<K>,
        input: Later<I>,
        change: impl FnOnce(&mut R, I) -> O + Send + 'static,
    ) -> Result<Later<Option<O>>, Abort> {
        let (database, tx) = eager.arrival();
        let updated = database
            .table_of(table)
            .when_known(tx, key, |table, tx, key| table.defer_update(tx, &key, input, change));
        updated.map(Later::Deferred)
    }

    fn read_columns<K: Key, R: Value, C>(
        eager: &mut Eager<'_, '_, P>,
        table: TableRef<K, R>,
        key: Later<K>,
        columns: C,
    ) -> Result<Later<Option<C::Values>>, Abort>
    where
        C: Columns<R, Values: Data> + Send + 'static,
    {
        let (database, tx) = eager.arrival();
        let read = database
            .table_of(table)
            .when_known(tx, key, move |table, tx, key| table.defer_read_columns(tx, &key, columns));
        read.map(Later::Deferred)
    }

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
        let (database, tx) = eager.arrival();
        let updated = database.table_of(table).when_known(tx, key, move |table, tx, key| {
            table.defer_update_columns(tx, &key, columns, input, change)
        });
        updated.map(Later::Deferred)
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
        let (database, tx) = eager.arrival();
        database.table_of(table).when_known(tx, keys, move |table, tx, keys| {
            for key in keys {
                table.defer_update_columns(tx, &key, columns, input.clone(), change.clone())?;
            }
            Ok(tx.known(()))
        })?;
        Ok(())
    }

    fn insert<K: Key, R: Value>(
        eager: &mut Eager<'_, '_, P>,
        table: TableRef<K, R>,
        group: Option<u64>,
        key: Later<K>,
        row: Later<R>,
    ) -> Result<Later<bool>, Abort> {
        let (database, tx) = eager.arrival();
        database.table_of(table).shared.defer_insert(tx, group, key, row).map(Later::Deferred)
    }

    fn delete<K: Key, R: Value>(
        eager: &mut Eager<'_, '_, P>,
        table: TableRef<K, R>,
        key: Later<K>,
    ) -> Result<Later<bool>, Abort> {
        let (database, tx) = eager.arrival();
        let deleted =
            database.table_of(table).when_known(tx, key, |table, tx, key| table.defer_delete(tx, &key));
        deleted.map(Later::Deferred)
    }

    fn take_first<K: Key, R: Value>(
        eager: &mut Eager<'_, '_, P>,
        table: TableRef<K, R>,
        group: u64,
        range: KeyRange<K>,
    ) -> Result<Later<Option<K>>, Abort> {
        let (database, tx) = eager.arrival();
        database.table_of(table).defer_take_first(tx, group, (range.low, range.high)).map(Later::Deferred)
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
        let (database, tx) = eager.arrival();
        database.table_of(table).defer_update_each(tx, keys, input, initial, change).map(Later::Deferred)
    }

    fn compute<I: Input<Value: Data> + Send, O: Data>(
        tx: &mut Transaction<'_, P>,
        inputs: I,
        compute: impl FnOnce(I::Value) -> Result<O, Abort> + Send + 'static,
    ) -> Result<Deferred<O>, Abort> {
        tx.try_compute(inputs, compute)
    }

    fn settle(_tx: &mut Transaction<'_, P>) -> Result<(), Abort> {
        // An operation that is not deferred settles what it could see, itself.
        Ok(())
    }
}

//! The executors of recorded operations: the part in which the recording contexts differ.

use super::{Eager, Later};
use crate::key::Key;
use crate::procedure::{Data, KeyRange};
use crate::reference::TableRef;
use hotrow_core::{Abort, Columns, Deferred, Input, Protocol, Transaction, Value};

/// Records operations in its own way, or runs them. The meaning of the operations is that of
/// [`Context`](crate::Context); each calls [`Eager::arrival`] once for every row, or once if it is recorded as one.
pub trait Executor<P: Protocol> {
    /// [`Context::read`](crate::Context::read), of a table that is not immutable.
    fn read<K: Key, R: Value, O: Data>(
        eager: &mut Eager<'_, '_, P>,
        table: TableRef<K, R>,
        key: Later<K>,
        look: impl FnOnce(&R) -> O + Send + 'static,
    ) -> Result<Later<Option<O>>, Abort>;

    /// [`Context::update`](crate::Context::update).
    fn update<K: Key, R: Value, I: Data, O: Data>(
        eager: &mut Eager<'_, '_, P>,
        table: TableRef<K, R>,
        key: Later<K>,
        input: Later<I>,
        change: impl FnOnce(&mut R, I) -> O + Send + 'static,
    ) -> Result<Later<Option<O>>, Abort>;

    /// [`Context::read_columns`](crate::Context::read_columns), of a table that is not immutable.
    fn read_columns<K: Key, R: Value, C>(
        eager: &mut Eager<'_, '_, P>,
        table: TableRef<K, R>,
        key: Later<K>,
        columns: C,
    ) -> Result<Later<Option<C::Values>>, Abort>
    where
        C: Columns<R, Values: Data> + Send + 'static;

    /// [`Context::update_columns`](crate::Context::update_columns).
    fn update_columns<K: Key, R: Value, C, I: Data, O: Data>(
        eager: &mut Eager<'_, '_, P>,
        table: TableRef<K, R>,
        key: Later<K>,
        columns: C,
        input: Later<I>,
        change: impl FnOnce(&mut C::Values, I) -> O + Send + 'static,
    ) -> Result<Later<Option<O>>, Abort>
    where
        C: Columns<R, Values: Data> + Send + 'static;

    /// [`Context::commute_columns_each`](crate::Context::commute_columns_each).
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
        C: Columns<R, Values: Data> + Send + 'static;

    /// [`Context::insert`](crate::Context::insert), or [`Context::insert_grouped`](crate::Context::insert_grouped) with
    /// a group.
    fn insert<K: Key, R: Value>(
        eager: &mut Eager<'_, '_, P>,
        table: TableRef<K, R>,
        group: Option<u64>,
        key: Later<K>,
        row: Later<R>,
    ) -> Result<Later<bool>, Abort>;

    /// [`Context::delete`](crate::Context::delete).
    fn delete<K: Key, R: Value>(
        eager: &mut Eager<'_, '_, P>,
        table: TableRef<K, R>,
        key: Later<K>,
    ) -> Result<Later<bool>, Abort>;

    /// [`Context::take_first`](crate::Context::take_first), with a range that is known.
    fn take_first<K: Key, R: Value>(
        eager: &mut Eager<'_, '_, P>,
        table: TableRef<K, R>,
        group: u64,
        range: KeyRange<K>,
    ) -> Result<Later<Option<K>>, Abort>;

    /// [`Context::update_each`](crate::Context::update_each).
    fn update_each<Keys, K: Key, R: Value, I: Data, A: Data>(
        eager: &mut Eager<'_, '_, P>,
        table: TableRef<K, R>,
        keys: Later<Keys>,
        input: Later<I>,
        initial: A,
        change: impl Fn(&mut A, &mut R, I) + Clone + Send + 'static,
    ) -> Result<Later<A>, Abort>
    where
        Keys: Data + IntoIterator<Item = K>;

    /// Records a computation. Its error is the procedure's.
    fn compute<I: Input<Value: Data> + Send, O: Data>(
        tx: &mut Transaction<'_, P>,
        inputs: I,
        compute: impl FnOnce(I::Value) -> Result<O, Abort> + Send + 'static,
    ) -> Result<Deferred<O>, Abort>;

    /// Runs all recorded operations that a scan could see.
    fn settle(tx: &mut Transaction<'_, P>) -> Result<(), Abort>;
}

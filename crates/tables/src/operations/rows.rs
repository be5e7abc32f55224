//! Operations by which rows come and go.

use super::{Held, Later, Operation, OperationKind, RowAccess};
use crate::data::KeyRange;
use crate::key::{Key, KeyBounds};
use crate::storage::Shared;
use hotrow_core::graph::By;
use hotrow_core::{Abort, Deferred, Input, Protocol, Transaction, Value};

/// Inserts its input as a row. The output is false if the key exists.
///
/// Only the owner of a transaction runs it: the keys that one transaction inserts are mostly neighbours. If several workers inserted
/// them, their leaf would move from one worker's cache to the next.
#[derive(Debug, Clone, Copy)]
pub struct Insert {
    /// The group of the row, for which deferred insertions line up. The key need not be known then.
    pub group: Option<u64>,
}

impl<K: Key, R: Value> Operation<K, R, R> for Insert {
    type Target = K;
    type Output = bool;
    const BY: Option<By> = Some(By::Owner);

    fn kind<P: Protocol>(&self, _table: &Shared<K, R, P>) -> OperationKind {
        OperationKind::Insert
    }

    fn group(&self) -> Option<u64> {
        self.group
    }

    #[inline(always)]
    fn run(held: impl Held<Self, R>, rows: &mut impl RowAccess<K, R>, key: K, (): ()) -> Result<bool, Abort> {
        rows.insert(key, || held.take().1)
    }

    fn line_up<P: Protocol>(
        self,
        table: &Shared<K, R, P>,
        tx: &mut Transaction<'_, P>,
        key: K,
        _passed: Later<()>,
        row: impl Input<Value = R>,
    ) -> Result<Deferred<bool>, Abort> {
        table.defer_insert(tx, self.group, Later::Known(key), row)
    }

    fn defer<P: Protocol>(
        self,
        table: &Shared<K, R, P>,
        tx: &mut Transaction<'_, P>,
        key: impl Input<Value = K>,
        _passed: Later<()>,
        row: impl Input<Value = R>,
    ) -> Result<Deferred<bool>, Abort> {
        table.defer_insert(tx, self.group, key, row)
    }
}

/// Deletes a row. The output is false if it is missing.
#[derive(Debug, Clone, Copy)]
pub struct Delete;

impl<K: Key, R: Value> Operation<K, R> for Delete {
    type Target = K;
    type Output = bool;
    const BY: Option<By> = Some(By::Owner);

    fn kind<P: Protocol>(&self, _table: &Shared<K, R, P>) -> OperationKind {
        OperationKind::Delete
    }

    #[inline(always)]
    fn run(
        _held: impl Held<Self, ()>,
        rows: &mut impl RowAccess<K, R>,
        key: K,
        (): (),
    ) -> Result<bool, Abort> {
        rows.delete(&key)
    }

    fn line_up<P: Protocol>(
        self,
        table: &Shared<K, R, P>,
        tx: &mut Transaction<'_, P>,
        key: K,
        _passed: Later<()>,
        _input: impl Input<Value = ()>,
    ) -> Result<Deferred<bool>, Abort> {
        table.line_up_to_delete(tx, &key)
    }
}

/// Deletes the first row of a range within a group. The output is its key; `None` if there is no such row.
#[derive(Debug, Clone, Copy)]
pub struct TakeFirst {
    /// The group.
    pub group: u64,
}

impl<K: Key, R: Value> Operation<K, R> for TakeFirst {
    type Target = KeyRange<K>;
    type Output = Option<K>;
    const BY: Option<By> = None;

    fn kind<P: Protocol>(&self, _table: &Shared<K, R, P>) -> OperationKind {
        OperationKind::Delete
    }

    fn group(&self) -> Option<u64> {
        Some(self.group)
    }

    fn found(taken: &Option<K>) -> Option<&K> {
        taken.as_ref()
    }

    #[inline(always)]
    fn run(
        _held: impl Held<Self, ()>,
        rows: &mut impl RowAccess<K, R>,
        range: KeyRange<K>,
        (): (),
    ) -> Result<Option<K>, Abort> {
        rows.take_first(range)
    }

    fn line_up<P: Protocol>(
        self,
        table: &Shared<K, R, P>,
        tx: &mut Transaction<'_, P>,
        range: KeyRange<K>,
        _passed: Later<()>,
        _input: impl Input<Value = ()>,
    ) -> Result<Deferred<Option<K>>, Abort> {
        table.line_up_to_take_first(tx, self.group, (range.low, range.high).images())
    }
}

//! Operations that read the row of a key.

use super::{Held, Later, Operation, OperationKind};
use crate::key::Key;
use crate::storage::Shared;
use hotrow_core::graph::By;
use hotrow_core::{Abort, Columns, Deferred, Input, Protocol, Transaction, Value};
use std::convert::Infallible;

/// Looks at a row. The output is what `look` returns; `None` if the row is missing.
#[derive(Debug, Clone)]
pub struct Read<F>(pub F);

impl<K: Key, R: Value, O: 'static, F: FnOnce(&R) -> O + 'static> Operation<K, R> for Read<F> {
    type Target = K;
    type Output = Option<O>;
    const BY: Option<By> = Some(By::Anybody);

    #[inline(always)]
    fn kind<P: Protocol>(&self, _table: &Shared<K, R, P>) -> OperationKind {
        OperationKind::Read
    }

    #[inline(always)]
    fn run<P: Protocol>(
        held: impl Held<Self, ()>,
        table: &Shared<K, R, P>,
        tx: &mut Transaction<'_, P>,
        key: K,
        (): (),
    ) -> Result<Option<O>, Abort> {
        table.read(tx, &key, |row| held.take().0.0(row))
    }

    fn line_up<P: Protocol>(
        self,
        table: &Shared<K, R, P>,
        tx: &mut Transaction<'_, P>,
        key: K,
        _passed: Later<()>,
        _input: impl Input<Value = ()>,
    ) -> Result<Deferred<Option<O>>, Abort> {
        if table.reads_at_once(tx)? {
            let output = Self::run((self, ()), table, tx, key, ())?;
            return Ok(tx.known(output));
        }
        let nowhere = |_: &_, columns: Infallible| match columns {};
        table.line_up_to_read(tx, &key, table.place_of_row(), self.0, nowhere)
    }
}

/// Reads some columns of a row. The output is their values; `None` if the row is missing.
#[derive(Debug, Clone)]
pub struct ReadColumns<C>(pub C);

impl<K: Key, R: Value, C: Columns<R, Values: 'static> + 'static> Operation<K, R> for ReadColumns<C> {
    type Target = K;
    type Output = Option<C::Values>;
    const BY: Option<By> = Some(By::Anybody);

    #[inline(always)]
    fn kind<P: Protocol>(&self, _table: &Shared<K, R, P>) -> OperationKind {
        OperationKind::Read
    }

    #[inline(always)]
    fn groups<P: Protocol>(&self, table: &Shared<K, R, P>) -> u32 {
        table.groups_apart_of(self.0)
    }

    #[inline(always)]
    fn run<P: Protocol>(
        held: impl Held<Self, ()>,
        table: &Shared<K, R, P>,
        tx: &mut Transaction<'_, P>,
        key: K,
        (): (),
    ) -> Result<Option<C::Values>, Abort> {
        table.read_columns(tx, &key, held.operation().0)
    }

    fn line_up<P: Protocol>(
        self,
        table: &Shared<K, R, P>,
        tx: &mut Transaction<'_, P>,
        key: K,
        _passed: Later<()>,
        _input: impl Input<Value = ()>,
    ) -> Result<Deferred<Option<C::Values>>, Abort> {
        let columns = self.0;
        if table.reads_at_once(tx)? {
            let output = table.read_columns(tx, &key, columns)?;
            return Ok(tx.known(output));
        }
        let of_part = |part: &_, columns: C| Shared::<K, R, P>::values_in(part, columns);
        table.line_up_to_read(tx, &key, table.place_of(columns), move |row| columns.of(row), of_part)
    }
}

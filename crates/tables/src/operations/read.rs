//! Operations that read the row of a key.

use super::{Held, Later, Local, Operation, OperationKind, RowAccess};
use crate::key::Key;
use crate::storage::Shared;
use hotrow_core::graph::By;
use hotrow_core::{Abort, Deferred, Fields, Input, Protocol, Transaction, Value};

/// Looks at a row, or at some columns of it. The output is what the second field returns; `None` if the row is missing.
#[derive(Debug, Clone)]
pub struct Read<C, F>(pub C, pub F);

impl<K: Key, R: Value, C, O: 'static, F> Operation<K, R> for Read<C, F>
where
    C: Fields<R> + 'static,
    F: FnOnce(&C::Values) -> O + 'static,
{
    type Target = K;
    type Output = Option<O>;
    const BY: Option<By> = Some(By::Anybody);
    const ONLY_READS: bool = true;

    #[inline(always)]
    fn kind<P: Protocol>(&self, _table: &Shared<K, R, P>) -> OperationKind {
        OperationKind::Read
    }

    #[inline(always)]
    fn groups<P: Protocol>(&self, table: &Shared<K, R, P>) -> u32 {
        table.segments_of(self.0)
    }

    #[inline(always)]
    fn run(
        held: impl Held<Self, ()>,
        rows: &mut impl RowAccess<K, R>,
        key: K,
        (): (),
    ) -> Result<Option<O>, Abort> {
        let fields = held.operation().0;
        rows.read(&key, fields, |values| held.take().0.1(values))
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
            let output = Self::run((self, ()), &mut Local::new(table, tx), key, ())?;
            return Ok(tx.known(output));
        }
        table.line_up_to_read(tx, &key, self.0, self.1)
    }
}

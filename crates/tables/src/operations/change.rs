//! Operations that change the row of a key, or columns of it: at the key, and at the turn of a deferred one.

use super::{Held, Later, Operation, OperationKind, RowAccess};
use crate::key::Key;
use crate::storage::Shared;
use hotrow_core::graph::By;
use hotrow_core::{Abort, Deferred, Fields, Input, Protocol, Transaction, Value};

/// A change of fields of a row, with an input of type `I` and a value of type `A` that the change of one row passes on to that of the next.
pub trait RowChange<R: Value, I: 'static, A: 'static>: Sized + 'static {
    /// The fields.
    type Fields: Fields<R> + 'static;
    /// What the change returns.
    type Changed: 'static;
    /// The output of the operation.
    type Output: 'static;

    /// The fields that it changes.
    fn fields(&self) -> Self::Fields;

    /// Changes them.
    fn change(
        self,
        values: &mut <Self::Fields as Fields<R>>::Values,
        passed: &mut A,
        input: I,
    ) -> Self::Changed;

    /// The output; `changed` is `None` if the row is missing.
    fn output(passed: A, changed: Option<Self::Changed>) -> Self::Output;

    /// As [`Operation::kind`].
    #[doc(hidden)]
    #[inline]
    fn kind<K: Key, P: Protocol>(&self, _table: &Shared<K, R, P>) -> OperationKind {
        OperationKind::Write
    }

    /// As [`Operation::run`].
    #[doc(hidden)]
    #[inline(always)]
    fn run<K: Key>(
        held: impl Held<Self, I>,
        rows: &mut impl RowAccess<K, R>,
        key: &K,
        passed: A,
    ) -> Result<Self::Output, Abort> {
        change(rows, key, held, passed)
    }

    /// As [`Operation::run_in_piece`].
    #[doc(hidden)]
    #[inline(always)]
    fn run_in_piece<K: Key>(
        _commutes: bool,
        held: impl Held<Self, I>,
        rows: &mut impl RowAccess<K, R>,
        key: &K,
        passed: A,
    ) -> Result<Self::Output, Abort> {
        Self::run(held, rows, key, passed)
    }
}

/// The operation that makes a change of a row.
#[derive(Debug, Clone)]
pub struct Change<C>(pub C);

/// A change, held as the operation that makes it.
struct HeldChange<H>(H);

impl<C, I, H: Held<Change<C>, I>> Held<C, I> for HeldChange<H> {
    #[inline(always)]
    fn operation(&self) -> &C {
        &self.0.operation().0
    }

    #[inline(always)]
    fn take(self) -> (C, I) {
        let (change, input) = self.0.take();
        (change.0, input)
    }
}

impl<K, R, I, A, C> Operation<K, R, I, A> for Change<C>
where
    K: Key,
    R: Value,
    I: 'static,
    A: Clone + 'static,
    C: RowChange<R, I, A>,
{
    type Target = K;
    type Output = C::Output;
    const BY: Option<By> = Some(By::Anybody);

    #[inline]
    fn kind<P: Protocol>(&self, table: &Shared<K, R, P>) -> OperationKind {
        self.0.kind(table)
    }

    #[inline]
    fn groups<P: Protocol>(&self, table: &Shared<K, R, P>) -> u32 {
        table.segments_of(self.0.fields())
    }

    #[inline(always)]
    fn run(
        held: impl Held<Self, I>,
        rows: &mut impl RowAccess<K, R>,
        key: K,
        passed: A,
    ) -> Result<C::Output, Abort> {
        C::run(HeldChange(held), rows, &key, passed)
    }

    #[inline(always)]
    fn run_in_piece(
        commutes: bool,
        held: impl Held<Self, I>,
        rows: &mut impl RowAccess<K, R>,
        key: K,
        passed: A,
    ) -> Result<C::Output, Abort> {
        C::run_in_piece(commutes, HeldChange(held), rows, &key, passed)
    }

    #[inline(always)]
    fn run_recorded(
        held: impl Held<Self, I>,
        rows: &mut impl RowAccess<K, R>,
        key: K,
        passed: A,
    ) -> Result<C::Output, Abort> {
        change(rows, &key, HeldChange(held), passed)
    }

    fn line_up<P: Protocol>(
        self,
        table: &Shared<K, R, P>,
        tx: &mut Transaction<'_, P>,
        key: K,
        passed: Later<A>,
        input: impl Input<Value = I>,
    ) -> Result<Deferred<C::Output>, Abort> {
        table.line_up_to_change(tx, &key, self.0, passed, input)
    }
}

/// Makes the change of an operation, and returns its output.
#[inline(always)]
pub(super) fn change<K: Key, R: Value, I: 'static, A: 'static, C: RowChange<R, I, A>>(
    rows: &mut impl RowAccess<K, R>,
    key: &K,
    held: impl Held<C, I>,
    mut passed: A,
) -> Result<C::Output, Abort> {
    let fields = held.operation().fields();
    let changed = rows.update(key, fields, |values| {
        let (change, input) = held.take();
        change.change(values, &mut passed, input)
    })?;
    Ok(C::output(passed, changed))
}

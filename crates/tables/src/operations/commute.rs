//! Changes of rows that commute with each other.
//!
//! Run at once, they are [changes at the commit](crate::Table::apply). Contexts that record operations run them as updates.

use super::{Held, OperationKind, RowChange};
use crate::commit_time::Apply;
use crate::key::Key;
use crate::storage::Shared;
use hotrow_core::{
    Abort, Addend, Addition, Column, CommitTimeChange, Fields, Protocol, Transaction, Value, always,
};

fn kind_of(commutes: bool) -> OperationKind {
    if commutes { OperationKind::Commutative } else { OperationKind::Write }
}

/// Changes a row, or some columns of it. A missing row changes nothing.
#[derive(Debug, Clone)]
pub struct Commute<C, F>(pub C, pub F);

impl<R: Value, I: Clone + Send + 'static, C, F> RowChange<R, I, ()> for Commute<C, F>
where
    C: Fields<R> + Send + 'static,
    F: Fn(&mut C::Values, I) + Send + 'static,
{
    type Fields = C;
    type Changed = ();
    type Output = ();

    #[inline(always)]
    fn fields(&self) -> C {
        self.0
    }

    #[inline(always)]
    fn change(self, values: &mut C::Values, (): &mut (), input: I) {
        self.1(values, input);
    }

    fn output((): (), _changed: Option<()>) {}

    #[inline]
    fn kind<K: Key, P: Protocol>(&self, table: &Shared<K, R, P>) -> OperationKind {
        kind_of(table.commutes_on(self.0))
    }

    #[inline(always)]
    fn run<K: Key, P: Protocol>(
        held: impl Held<Self, I>,
        table: &Shared<K, R, P>,
        tx: &mut Transaction<'_, P>,
        key: &K,
        (): (),
    ) -> Result<(), Abort> {
        let (Self(fields, change), input) = held.take();
        let change = move |values: &mut C::Values| change(values, input.clone());
        table.change_at_commit(tx, key, Apply(fields, always(change))).map(drop)
    }

    #[inline]
    fn run_in_piece<K: Key, P: Protocol>(
        commutes: bool,
        held: impl Held<Self, I>,
        table: &Shared<K, R, P>,
        tx: &mut Transaction<'_, P>,
        key: &K,
        (): (),
    ) -> Result<(), Abort> {
        if commutes { Self::run(held, table, tx, key, ()) } else { table.change(tx, key, held, ()) }
    }
}

/// Adds its input to a column of a row. A missing row changes nothing.
///
/// A sum that leaves the column's range rolls the transaction back if the operation runs at once; elsewhere it wraps around.
#[derive(Debug)]
pub struct Add<R, F>(pub Column<R, F>);

impl<R, F> Clone for Add<R, F> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<R, F> Copy for Add<R, F> {}

/// Adds without a check.
fn add_wrapping<F: Addend>(value: &mut F, amount: F) {
    let wrapped = Addition::new(Column::whole(), amount).wrapping().change(value);
    debug_assert!(wrapped.is_ok(), "one that wraps around never fails");
}

impl<R: Value, F: Addend + Send + 'static> RowChange<R, F, ()> for Add<R, F> {
    type Fields = Column<R, F>;
    type Changed = ();
    type Output = ();

    #[inline(always)]
    fn fields(&self) -> Column<R, F> {
        self.0
    }

    #[inline]
    fn change(self, value: &mut F, (): &mut (), amount: F) {
        add_wrapping(value, amount);
    }

    fn output((): (), _changed: Option<()>) {}

    #[inline]
    fn kind<K: Key, P: Protocol>(&self, table: &Shared<K, R, P>) -> OperationKind {
        kind_of(table.commutes_on(self.0))
    }

    #[inline(always)]
    fn run<K: Key, P: Protocol>(
        held: impl Held<Self, F>,
        table: &Shared<K, R, P>,
        tx: &mut Transaction<'_, P>,
        key: &K,
        (): (),
    ) -> Result<(), Abort> {
        let (Self(column), amount) = held.take();
        table.change_at_commit(tx, key, Addition::new(column, amount)).map(drop)
    }

    #[inline]
    fn run_in_piece<K: Key, P: Protocol>(
        commutes: bool,
        held: impl Held<Self, F>,
        table: &Shared<K, R, P>,
        tx: &mut Transaction<'_, P>,
        key: &K,
        (): (),
    ) -> Result<(), Abort> {
        if !commutes {
            return table.change(tx, key, held, ());
        }
        let (Self(column), amount) = held.take();
        table.change_at_commit(tx, key, Addition::new(column, amount).wrapping()).map(drop)
    }
}

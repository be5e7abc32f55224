//! Changes of rows that commute with each other.
//!
//! Run at once, they are [changes at the commit](crate::Table::apply). Contexts that record operations run them as updates.

use super::{Held, OperationKind, RowChange};
use crate::companions::{Place, change_columns, change_part};
use crate::key::Key;
use crate::record::WordsOf;
use crate::storage::Shared;
use hotrow_core::column_groups::Part;
use hotrow_core::{
    Abort, Addend, Addition, Applied, Column, Columns, CommitTimeChange, Protocol, Transaction, Value,
};
use std::convert::Infallible;

fn kind_of(commutes: bool) -> OperationKind {
    if commutes { OperationKind::Commutative } else { OperationKind::Write }
}

/// Changes a row. A missing row changes nothing.
#[derive(Debug, Clone)]
pub struct Commute<F>(pub F);

impl<R: Value, I: Clone + Send + 'static, F> RowChange<R, I, ()> for Commute<F>
where
    F: Fn(&mut R, I) + Send + 'static,
{
    type Columns = Infallible;
    type Changed = ();
    type Output = ();

    #[inline(always)]
    fn place<'t, K: Key, P: Protocol>(&self, table: &'t Shared<K, R, P>) -> Place<'t, K, R, P, Infallible> {
        table.place_of_row()
    }

    #[inline(always)]
    fn change(self, row: &mut R, (): &mut (), input: I) {
        self.0(row, input);
    }

    fn change_part(self, columns: Infallible, _: &mut Part<WordsOf<R>>, (): &mut (), _: I) {
        match columns {}
    }

    fn output((): (), _changed: Option<()>) {}

    #[inline]
    fn kind<K: Key, P: Protocol>(&self, table: &Shared<K, R, P>) -> OperationKind {
        kind_of(table.commutes())
    }

    #[inline(always)]
    fn run<K: Key, P: Protocol>(
        held: impl Held<Self, I>,
        table: &Shared<K, R, P>,
        tx: &mut Transaction<'_, P>,
        key: &K,
        (): (),
    ) -> Result<(), Abort> {
        let (Self(change), input) = held.take();
        table.change_at_commit(tx, key, Applied(move |row: &mut R| change(row, input.clone()))).map(drop)
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

/// Changes some columns of a row. A missing row changes nothing.
#[derive(Debug, Clone)]
pub struct CommuteColumns<C, F>(pub C, pub F);

impl<R: Value, I: Clone + Send + 'static, C, F> RowChange<R, I, ()> for CommuteColumns<C, F>
where
    C: Columns<R> + Send + 'static,
    F: Fn(&mut C::Values, I) + Send + 'static,
{
    type Columns = C;
    type Changed = ();
    type Output = ();

    #[inline(always)]
    fn place<'t, K: Key, P: Protocol>(&self, table: &'t Shared<K, R, P>) -> Place<'t, K, R, P, C> {
        table.place_of(self.0)
    }

    #[inline(always)]
    fn change(self, row: &mut R, (): &mut (), input: I) {
        change_columns(row, self.0, |values| self.1(values, input));
    }

    #[inline(always)]
    fn change_part(self, columns: C, part: &mut Part<WordsOf<R>>, (): &mut (), input: I) {
        change_part::<R, C, ()>(part, columns, |values| self.1(values, input));
    }

    fn output((): (), _changed: Option<()>) {}

    #[inline]
    fn kind<K: Key, P: Protocol>(&self, table: &Shared<K, R, P>) -> OperationKind {
        kind_of(table.commutes_on(self.0))
    }

    #[inline]
    fn groups<K: Key, P: Protocol>(&self, table: &Shared<K, R, P>) -> u32 {
        table.groups_apart_of(self.0)
    }

    #[inline(always)]
    fn run<K: Key, P: Protocol>(
        held: impl Held<Self, I>,
        table: &Shared<K, R, P>,
        tx: &mut Transaction<'_, P>,
        key: &K,
        (): (),
    ) -> Result<(), Abort> {
        let (Self(columns, change), input) = held.take();
        let change = move |values: &mut C::Values| change(values, input.clone());
        table.change_columns_at_commit(tx, key, columns, change).map(drop)
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
    type Columns = Column<R, F>;
    type Changed = ();
    type Output = ();

    #[inline(always)]
    fn place<'t, K: Key, P: Protocol>(&self, table: &'t Shared<K, R, P>) -> Place<'t, K, R, P, Column<R, F>> {
        table.place_of(self.0)
    }

    #[inline]
    fn change(self, row: &mut R, (): &mut (), amount: F) {
        change_columns(row, self.0, |value| add_wrapping(value, amount));
    }

    #[inline]
    fn change_part(self, column: Column<R, F>, part: &mut Part<WordsOf<R>>, (): &mut (), amount: F) {
        change_part::<R, _, ()>(part, column, |value| add_wrapping(value, amount));
    }

    fn output((): (), _changed: Option<()>) {}

    #[inline]
    fn kind<K: Key, P: Protocol>(&self, table: &Shared<K, R, P>) -> OperationKind {
        kind_of(table.commutes_on(self.0))
    }

    #[inline]
    fn groups<K: Key, P: Protocol>(&self, table: &Shared<K, R, P>) -> u32 {
        table.groups_apart_of(self.0)
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
        table.add(tx, key, Addition::new(column, amount)).map(drop)
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
        table.add(tx, key, Addition::new(column, amount).wrapping()).map(drop)
    }
}

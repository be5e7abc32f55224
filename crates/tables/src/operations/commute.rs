//! Changes of rows that commute with each other.
//!
//! Run at once, they are [changes at the commit](crate::Table::apply). Contexts that record operations run them as updates.

use super::change::change;
use super::{Held, OperationKind, RowAccess, RowChange};
use crate::key::Key;
use crate::storage::Shared;
use hotrow_core::{Abort, Addend, Addition, Column, CommitTimeChange, Fields, Protocol, Value};

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
    fn run<K: Key>(
        held: impl Held<Self, I>,
        rows: &mut impl RowAccess<K, R>,
        key: &K,
        (): (),
    ) -> Result<(), Abort> {
        let fields = held.operation().0;
        rows.commute(key, fields, || {
            let (Self(_, change), input) = held.take();
            move |values: &mut C::Values| change(values, input.clone())
        })
    }

    #[inline]
    fn run_in_piece<K: Key>(
        commutes: bool,
        held: impl Held<Self, I>,
        rows: &mut impl RowAccess<K, R>,
        key: &K,
        (): (),
    ) -> Result<(), Abort> {
        if commutes { Self::run(held, rows, key, ()) } else { change(rows, key, held, ()) }
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
    fn run<K: Key>(
        held: impl Held<Self, F>,
        rows: &mut impl RowAccess<K, R>,
        key: &K,
        (): (),
    ) -> Result<(), Abort> {
        let column = held.operation().0;
        rows.add(key, column, || held.take().1, false)
    }

    #[inline]
    fn run_in_piece<K: Key>(
        commutes: bool,
        held: impl Held<Self, F>,
        rows: &mut impl RowAccess<K, R>,
        key: &K,
        (): (),
    ) -> Result<(), Abort> {
        if !commutes {
            return change(rows, key, held, ());
        }
        let column = held.operation().0;
        rows.add(key, column, || held.take().1, true)
    }
}

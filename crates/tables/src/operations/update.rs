//! Changes of rows that depend on their old values, and replacements.

use super::{Held, OperationKind, RowChange};
use crate::companions::{Place, change_columns, change_part};
use crate::key::Key;
use crate::record::WordsOf;
use crate::storage::Shared;
use hotrow_core::column_groups::Part;
use hotrow_core::{Abort, Columns, Protocol, Transaction, Value};
use std::convert::Infallible;

/// Changes a row. The output is what the change returns; `None` if the row is missing.
#[derive(Debug, Clone)]
pub struct Update<F>(pub F);

impl<R: Value, I: 'static, O: 'static, F> RowChange<R, I, ()> for Update<F>
where
    F: FnOnce(&mut R, I) -> O + 'static,
{
    type Columns = Infallible;
    type Changed = O;
    type Output = Option<O>;

    #[inline(always)]
    fn place<'t, K: Key, P: Protocol>(&self, table: &'t Shared<K, R, P>) -> Place<'t, K, R, P, Infallible> {
        table.place_of_row()
    }

    #[inline(always)]
    fn change(self, row: &mut R, (): &mut (), input: I) -> O {
        self.0(row, input)
    }

    fn change_part(self, columns: Infallible, _: &mut Part<WordsOf<R>>, (): &mut (), _: I) -> O {
        match columns {}
    }

    #[inline(always)]
    fn output((): (), changed: Option<O>) -> Option<O> {
        changed
    }
}

/// Changes some columns of a row. The output is what the change returns; `None` if the row is missing.
#[derive(Debug, Clone)]
pub struct UpdateColumns<C, F>(pub C, pub F);

impl<R: Value, I: 'static, O: 'static, C, F> RowChange<R, I, ()> for UpdateColumns<C, F>
where
    C: Columns<R> + 'static,
    F: FnOnce(&mut C::Values, I) -> O + 'static,
{
    type Columns = C;
    type Changed = O;
    type Output = Option<O>;

    #[inline(always)]
    fn place<'t, K: Key, P: Protocol>(&self, table: &'t Shared<K, R, P>) -> Place<'t, K, R, P, C> {
        table.place_of(self.0)
    }

    #[inline(always)]
    fn change(self, row: &mut R, (): &mut (), input: I) -> O {
        change_columns(row, self.0, |values| self.1(values, input))
    }

    #[inline(always)]
    fn change_part(self, columns: C, part: &mut Part<WordsOf<R>>, (): &mut (), input: I) -> O {
        change_part::<R, C, O>(part, columns, |values| self.1(values, input))
    }

    #[inline(always)]
    fn output((): (), changed: Option<O>) -> Option<O> {
        changed
    }

    #[inline(always)]
    fn groups<K: Key, P: Protocol>(&self, table: &Shared<K, R, P>) -> u32 {
        table.groups_apart_of(self.0)
    }
}

/// Changes a row, and a value that it passes on. A missing row changes nothing.
#[derive(Debug, Clone)]
pub struct Fold<F>(pub F);

impl<R: Value, I: 'static, A: 'static, F> RowChange<R, I, A> for Fold<F>
where
    F: Fn(&mut A, &mut R, I) + 'static,
{
    type Columns = Infallible;
    type Changed = ();
    type Output = A;

    #[inline(always)]
    fn place<'t, K: Key, P: Protocol>(&self, table: &'t Shared<K, R, P>) -> Place<'t, K, R, P, Infallible> {
        table.place_of_row()
    }

    #[inline(always)]
    fn change(self, row: &mut R, passed: &mut A, input: I) {
        self.0(passed, row, input);
    }

    fn change_part(self, columns: Infallible, _: &mut Part<WordsOf<R>>, _: &mut A, _: I) {
        match columns {}
    }

    #[inline(always)]
    fn output(passed: A, _changed: Option<()>) -> A {
        passed
    }
}

/// Replaces a row by its input, without reading it. The output is false if the row is missing.
#[derive(Debug, Clone, Copy)]
pub struct Replace;

impl<R: Value> RowChange<R, R, ()> for Replace {
    type Columns = Infallible;
    type Changed = ();
    type Output = bool;

    #[inline(always)]
    fn place<'t, K: Key, P: Protocol>(&self, table: &'t Shared<K, R, P>) -> Place<'t, K, R, P, Infallible> {
        table.place_of_row()
    }

    fn change(self, row: &mut R, (): &mut (), input: R) {
        *row = input;
    }

    fn change_part(self, columns: Infallible, _: &mut Part<WordsOf<R>>, (): &mut (), _: R) {
        match columns {}
    }

    fn output((): (), changed: Option<()>) -> bool {
        changed.is_some()
    }

    #[inline]
    fn kind<K: Key, P: Protocol>(&self, _table: &Shared<K, R, P>) -> OperationKind {
        OperationKind::Replace
    }

    #[inline(always)]
    fn run<K: Key, P: Protocol>(
        held: impl Held<Self, R>,
        table: &Shared<K, R, P>,
        tx: &mut Transaction<'_, P>,
        key: &K,
        (): (),
    ) -> Result<bool, Abort> {
        table.replace(tx, key, held.take().1)
    }
}

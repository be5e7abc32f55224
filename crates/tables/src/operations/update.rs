//! Changes of rows that depend on their old values, and replacements.

use super::{Held, OperationKind, RowAccess, RowChange};
use crate::key::Key;
use crate::storage::Shared;
use hotrow_core::{Abort, Fields, Protocol, Value, Whole};

/// Changes a row, or some columns of it. The output is what the change returns; `None` if the row is missing.
#[derive(Debug, Clone)]
pub struct Update<C, F>(pub C, pub F);

impl<R: Value, I: 'static, O: 'static, C, F> RowChange<R, I, ()> for Update<C, F>
where
    C: Fields<R> + 'static,
    F: FnOnce(&mut C::Values, I) -> O + 'static,
{
    type Fields = C;
    type Changed = O;
    type Output = Option<O>;

    #[inline(always)]
    fn fields(&self) -> C {
        self.0
    }

    #[inline(always)]
    fn change(self, values: &mut C::Values, (): &mut (), input: I) -> O {
        self.1(values, input)
    }

    #[inline(always)]
    fn output((): (), changed: Option<O>) -> Option<O> {
        changed
    }
}

/// Changes a row, and a value that it passes on. A missing row changes nothing.
#[derive(Debug, Clone)]
pub struct Fold<F>(pub F);

impl<R: Value, I: 'static, A: 'static, F> RowChange<R, I, A> for Fold<F>
where
    F: Fn(&mut A, &mut R, I) + 'static,
{
    type Fields = Whole;
    type Changed = ();
    type Output = A;

    #[inline(always)]
    fn fields(&self) -> Whole {
        Whole
    }

    #[inline(always)]
    fn change(self, row: &mut R, passed: &mut A, input: I) {
        self.0(passed, row, input);
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
    type Fields = Whole;
    type Changed = ();
    type Output = bool;

    #[inline(always)]
    fn fields(&self) -> Whole {
        Whole
    }

    fn change(self, row: &mut R, (): &mut (), input: R) {
        *row = input;
    }

    fn output((): (), changed: Option<()>) -> bool {
        changed.is_some()
    }

    #[inline]
    fn kind<K: Key, P: Protocol>(&self, _table: &Shared<K, R, P>) -> OperationKind {
        OperationKind::Replace
    }

    #[inline(always)]
    fn run<K: Key>(
        held: impl Held<Self, R>,
        rows: &mut impl RowAccess<K, R>,
        key: &K,
        (): (),
    ) -> Result<bool, Abort> {
        rows.replace(key, || held.take().1)
    }
}

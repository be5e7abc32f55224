//! Operations that change the row of a key, or columns of it: at the key, and at the turn of a deferred one.

use super::{Held, Later, ONCE, Operation, OperationKind};
use crate::companions::Place;
use crate::key::Key;
use crate::record::WordsOf;
use crate::storage::Shared;
use hotrow_core::column_groups::Part;
use hotrow_core::graph::By;
use hotrow_core::{Abort, Deferred, Input, Protocol, Transaction, Value};

/// A change of a row, with an input of type `I` and a value of type `A` that the change of one row passes on to that of the next.
pub trait RowChange<R: Value, I: 'static, A: 'static>: Sized + 'static {
    /// The columns, if they may be those of a part.
    type Columns: Copy + 'static;
    /// What the change returns.
    type Changed: 'static;
    /// The output of the operation.
    type Output: 'static;

    /// The segments that it touches.
    #[doc(hidden)]
    fn place<'t, K: Key, P: Protocol>(&self, table: &'t Shared<K, R, P>)
    -> Place<'t, K, R, P, Self::Columns>;

    /// Changes the row.
    fn change(self, row: &mut R, passed: &mut A, input: I) -> Self::Changed;

    /// Changes the part to which the columns belong.
    #[doc(hidden)]
    fn change_part(
        self,
        columns: Self::Columns,
        part: &mut Part<WordsOf<R>>,
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

    /// As [`Operation::groups`].
    #[doc(hidden)]
    #[inline]
    fn groups<K: Key, P: Protocol>(&self, table: &Shared<K, R, P>) -> u32 {
        table.groups_apart()
    }

    /// As [`Operation::run`].
    #[doc(hidden)]
    #[inline(always)]
    fn run<K: Key, P: Protocol>(
        held: impl Held<Self, I>,
        table: &Shared<K, R, P>,
        tx: &mut Transaction<'_, P>,
        key: &K,
        passed: A,
    ) -> Result<Self::Output, Abort> {
        table.change(tx, key, held, passed)
    }

    /// As [`Operation::run_in_piece`].
    #[doc(hidden)]
    #[inline(always)]
    fn run_in_piece<K: Key, P: Protocol>(
        _commutes: bool,
        held: impl Held<Self, I>,
        table: &Shared<K, R, P>,
        tx: &mut Transaction<'_, P>,
        key: &K,
        passed: A,
    ) -> Result<Self::Output, Abort> {
        Self::run(held, table, tx, key, passed)
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
        self.0.groups(table)
    }

    #[inline(always)]
    fn run<P: Protocol>(
        held: impl Held<Self, I>,
        table: &Shared<K, R, P>,
        tx: &mut Transaction<'_, P>,
        key: K,
        passed: A,
    ) -> Result<C::Output, Abort> {
        C::run(HeldChange(held), table, tx, &key, passed)
    }

    #[inline(always)]
    fn run_in_piece<P: Protocol>(
        commutes: bool,
        held: impl Held<Self, I>,
        table: &Shared<K, R, P>,
        tx: &mut Transaction<'_, P>,
        key: K,
        passed: A,
    ) -> Result<C::Output, Abort> {
        C::run_in_piece(commutes, HeldChange(held), table, tx, &key, passed)
    }

    #[inline(always)]
    fn run_recorded<P: Protocol>(
        held: impl Held<Self, I>,
        table: &Shared<K, R, P>,
        tx: &mut Transaction<'_, P>,
        key: K,
        passed: A,
    ) -> Result<C::Output, Abort> {
        table.change(tx, &key, HeldChange(held), passed)
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

impl<K: Key, R: Value, P: Protocol> Shared<K, R, P> {
    /// Makes the change of an operation, and returns its output.
    #[inline]
    pub(crate) fn change<I: 'static, A: 'static, C: RowChange<R, I, A>>(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &K,
        held: impl Held<C, I>,
        mut passed: A,
    ) -> Result<C::Output, Abort> {
        if const { !Self::HAS_GROUPS } {
            let changed = self.update_main(tx, key, |row| change_held(held, row, &mut passed))?;
            return Ok(C::output(passed, changed));
        }
        let place = held.operation().place(self);
        let changed = match place {
            Place::Main => self.update_main(tx, key, |row| change_held(held, row, &mut passed))?,
            Place::Several(_) => self.update(tx, key, |row| change_held(held, row, &mut passed))?,
            Place::Part(split, group, columns) => {
                let tx = self.enter_to_write(tx)?;
                let mut held = Some(held);
                self.on_part(tx, key, group, |tx, segment, _| {
                    Self::update_part(tx, split, segment, |part| {
                        let (change, input) = held.take().expect(ONCE).take();
                        change.change_part(columns, part, &mut passed, input)
                    })
                })?
            }
        };
        Ok(C::output(passed, changed))
    }
}

/// Changes a row as an operation says that is held until now.
#[inline(always)]
fn change_held<R: Value, I: 'static, A: 'static, C: RowChange<R, I, A>>(
    held: impl Held<C, I>,
    row: &mut R,
    passed: &mut A,
) -> C::Changed {
    let (change, input) = held.take();
    change.change(row, passed, input)
}

//! Operations as values: what a procedure does to a table, apart from who does it and when.
//!
//! An [`Operation`] has a target (a key, or a range of keys), an input, an output, the columns that it touches, a kind for traces, and
//! its execution on a table: at once, and deferred. Targets, inputs and outputs are plain data, and an operation knows nothing of
//! procedures. Their contexts (crate `hotrow-procedures`) interpret operations and know none by name.
//!
//! They run on any [`RowAccess`] to rows: a table of this process, or rows that are elsewhere.
//!
//! | file | operations |
//! |---|---|
//! | `read.rs` | [`Read`] |
//! | `update.rs` | [`Update`], [`Fold`], [`Replace`] |
//! | `commute.rs` | [`Commute`], [`Add`] |
//! | `rows.rs` | [`Insert`], [`Delete`], [`TakeFirst`] |
//!
//! An operation that changes the row of a key is a [`RowChange`]: the fields that it changes (all of the row, or some columns), the change,
//! and the output. How such a change runs at a key, and at the turns of the segments that have the fields, is written once (`change.rs`).
//!
//! A new operation is a type in one of these files, and a method of `Operations`, which is beside the contexts, by which procedures apply it.

mod access;
mod change;
mod commute;
mod kind;
mod later;
mod read;
mod rows;
mod update;

#[doc(hidden)]
pub use access::Local;
pub use access::RowAccess;
pub use change::{Change, RowChange};
pub use commute::{Add, Commute};
pub use kind::OperationKind;
pub use later::Later;
pub use read::Read;
pub use rows::{Delete, Insert, TakeFirst};
pub use update::{Fold, Replace, Update};

use crate::data::{Data, KeyRange};
use crate::key::Key;
use crate::storage::Shared;
use hotrow_core::graph::By;
use hotrow_core::{Abort, Deferred, Input, Protocol, Transaction, Value, Whole};

/// Message of a panic that cannot happen.
#[doc(hidden)]
pub const ONCE: &str = "an operation that would block has not used its closure";

/// True if values that are passed on are empty, so that no operation has to wait for the one before.
#[doc(hidden)]
pub const fn are_empty<A>() -> bool {
    size_of::<A>() == 0
}

/// An operation on the rows of a table whose keys are of type `K`.
///
/// `I` is the input. Of operations that are applied to several keys, one after the other, each may pass a value of type `A` on to the
/// next, which is then the output.
pub trait Operation<K: Key, R: Value, I: 'static = (), A: 'static = ()>: Sized + 'static {
    /// The key or the range.
    type Target: Target<K>;
    /// The result.
    type Output: 'static;

    /// The workers that may run the operation when it has been enqueued for others to [steal](Protocol::Stealing). `None` for one that
    /// looks at a range: it runs at once, after everything that was enqueued before.
    const BY: Option<By>;

    /// True if the operation changes nothing, whatever the table.
    const ONLY_READS: bool = false;

    /// The kind, for traces.
    #[doc(hidden)]
    fn kind<P: Protocol>(&self, table: &Shared<K, R, P>) -> OperationKind;

    /// The column groups that it touches, one bit each.
    #[doc(hidden)]
    #[inline]
    fn groups<P: Protocol>(&self, table: &Shared<K, R, P>) -> u32 {
        table.segments_of(Whole)
    }

    /// The group of rows that it names.
    fn group(&self) -> Option<u64> {
        None
    }

    /// The key that it has found, if its target is a range.
    fn found(_output: &Self::Output) -> Option<&K> {
        None
    }

    /// Runs the operation at once, on rows wherever they are.
    #[doc(hidden)]
    fn run(
        held: impl Held<Self, I>,
        rows: &mut impl RowAccess<K, R>,
        target: Self::Target,
        passed: A,
    ) -> Result<Self::Output, Abort>;

    /// As [`run`](Self::run), in a piece of a transaction, where it may be too late for a rollback: it does not fail. Unless
    /// `commutes`, it reads the row that it changes.
    #[doc(hidden)]
    #[inline(always)]
    fn run_in_piece(
        _commutes: bool,
        held: impl Held<Self, I>,
        rows: &mut impl RowAccess<K, R>,
        target: Self::Target,
        passed: A,
    ) -> Result<Self::Output, Abort> {
        Self::run(held, rows, target, passed)
    }

    /// As [`run`](Self::run), of an operation that was recorded, or will be if it would block: it reads the row that it changes, and
    /// leaves `held` as it is until it has it.
    #[doc(hidden)]
    #[inline(always)]
    fn run_recorded(
        held: impl Held<Self, I>,
        rows: &mut impl RowAccess<K, R>,
        target: Self::Target,
        passed: A,
    ) -> Result<Self::Output, Abort> {
        Self::run(held, rows, target, passed)
    }

    /// Defers the operation, in an attempt that defers: lines up for the segments that it touches, and runs it at their turns.
    #[doc(hidden)]
    fn line_up<P: Protocol>(
        self,
        table: &Shared<K, R, P>,
        tx: &mut Transaction<'_, P>,
        target: Self::Target,
        passed: Later<A>,
        input: impl Input<Value = I>,
    ) -> Result<Deferred<Self::Output>, Abort>;

    /// Defers the operation until its target is known, and then lines up.
    #[doc(hidden)]
    #[inline]
    fn defer<P: Protocol>(
        self,
        table: &Shared<K, R, P>,
        tx: &mut Transaction<'_, P>,
        target: impl Input<Value = Self::Target>,
        passed: Later<A>,
        input: impl Input<Value = I>,
    ) -> Result<Deferred<Self::Output>, Abort>
    where
        A: Clone,
        Self::Output: Clone,
    {
        table.when_known(tx, target, move |table, tx, target| table.defer(tx, self, target, passed, input))
    }
}

/// The rows that an operation names.
pub trait Target<K>: Data {
    /// True if it is a range.
    const IS_RANGE: bool;

    /// The key; `None` for a range.
    fn key(&self) -> Option<&K>;

    /// The target as traces show it.
    fn text(&self) -> String;
}

impl<K: Key> Target<K> for K {
    const IS_RANGE: bool = false;

    #[inline(always)]
    fn key(&self) -> Option<&K> {
        Some(self)
    }

    fn text(&self) -> String {
        format!("{self:?}")
    }
}

impl<K: Key> Target<K> for KeyRange<K> {
    const IS_RANGE: bool = true;

    #[inline(always)]
    fn key(&self) -> Option<&K> {
        None
    }

    fn text(&self) -> String {
        self.to_string()
    }
}

/// An operation with its input, until its row has been found. One that finds no row, or would block, leaves it as it is.
#[doc(hidden)]
pub trait Held<O, I> {
    /// The operation.
    fn operation(&self) -> &O;

    /// Hands out both.
    fn take(self) -> (O, I);
}

impl<O, I> Held<O, I> for (O, I) {
    #[inline(always)]
    fn operation(&self) -> &O {
        &self.0
    }

    #[inline(always)]
    fn take(self) -> (O, I) {
        self
    }
}

impl<O, I> Held<O, I> for &mut Option<(O, I)> {
    #[inline]
    fn operation(&self) -> &O {
        &self.as_ref().expect(ONCE).0
    }

    #[inline]
    fn take(self) -> (O, I) {
        self.take().expect(ONCE)
    }
}

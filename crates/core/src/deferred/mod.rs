//! Deferred operations: what is done with values that are not known yet (drp §5.1).
//!
//! A transaction that wants to add one to a counter need not know the counter now. Under a protocol that
//! [defers](crate::Protocol::DEFERS) it says what is to be done, as an *intention*: a closure, with the segment that
//! it touches and the earlier results that it needs. The commit takes a place in line on all these segments first and
//! runs the intentions afterwards, when nothing can go wrong any more. What an intention will return is a
//! [`Deferred`] value, which may be an input of other intentions and is read when the transaction has committed.
//!
//! Under every other protocol a deferred operation runs at once, and its result is known at once. So transactions are
//! written once, whichever protocol they run under.
//!
//! # Rules
//!
//! - An intention runs at most once in an attempt, after those whose results it needs.
//! - Operations on one key take effect in the order in which they were recorded, whatever they wait for (`order.rs`).
//!   Others run in any order.
//! - An operation whose segment is found by earlier ones is recorded [late](crate::Transaction::defer_late): the attempt
//!   lines up in stages.
//! - [`Transaction::force`](crate::Transaction::force), an operation that is not deferred on a segment with
//!   intentions, and one that looks at an index to which something is to be added, run all that has been recorded so
//!   far at once. The attempt then depends on what it has read: it is *wild* (drp §4).
//! - An intention that panics ends its transaction with [`Error::Panicked`](crate::Error::Panicked), under every
//!   protocol. Nothing of the transaction has happened then.
//! - An intention never sees the transaction: it gets values and returns one. What it must not do is start another
//!   transaction, as anywhere in a body.
//!
//! # Where they live
//!
//! Closures, inputs and results are in the attempt's arena: no heap call each. A [`Deferred`] names its place by
//! number, and by a stamp that no other attempt has, so one that outlives its transaction is refused and never
//! followed.

mod expression;
mod inputs;
mod intention;
mod late;
mod order;
mod recording;
mod running;
#[cfg(all(test, not(loom)))]
mod tests;

pub use expression::{And, DividedBy, Minus, Or, Plus, Remainder, Times};
pub use expression::{AtLeast, AtMost, Differs, Equals, GreaterThan, LessThan};
pub use expression::{Binary, Constant, Expression, Map, Operand, Operator};
pub use inputs::{Input, Results};
pub(crate) use intention::Intentions;

use std::fmt;
use std::marker::PhantomData;

/// What a deferred operation is going to do with its segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Look at it.
    Read,
    /// Change it.
    Write,
}

/// A value that is known when the transaction has committed, or as soon as it is forced.
///
/// It belongs to the attempt that made it; in any other it is
/// [`Misuse::ForeignDeferred`](crate::Misuse::ForeignDeferred).
pub struct Deferred<T> {
    stamp: u64,
    slot: u32,
    value: PhantomData<fn() -> T>,
}

impl<T> Clone for Deferred<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Deferred<T> {}

impl<T> fmt::Debug for Deferred<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Deferred").field("number", &self.slot).finish_non_exhaustive()
    }
}

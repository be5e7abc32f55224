//! A source of numbers that is outside of the transactions' conflicts.

use hotrow_core::{Engine, ObjectMeta, Protocol, Transaction};
use hotrow_sync::atomic::{AtomicU64, Ordering};
use std::fmt;

/// A source of numbers, for the keys of new rows, say. No two transactions get the same one.
///
/// Drawing a number is one atomic addition. It never waits, never aborts, and makes no transaction depend on another
/// one; a row that held the next number would make each inserter wait for the one before it. The price is order:
///
/// - *Gaps.* A number is not given back. One that a transaction has drawn is lost if the transaction rolls back, and one
///   that an attempt has drawn if the attempt is aborted, because the next attempt draws another one.
/// - *No order of commits.* A transaction with a smaller number may commit after one with a larger number. Use a
///   [`TCounter`](crate::TCounter) or a row if numbers must be without gaps, or in the order of commits.
///
/// ```
/// use hotrow_core::{Abort, Engine};
/// use hotrow_objects::{Sequence, TBox};
/// use hotrow_protocols::Occ;
///
/// let engine = Engine::<Occ>::new();
/// let numbers = Sequence::starting_at(&engine, "order numbers", 1_000);
/// let newest = TBox::new(&engine, 0);
/// let order = || engine.transact(|tx| {
///     let number = numbers.next(tx);
///     newest.set(tx, number)?;
///     Ok(number)
/// });
/// assert_eq!(order()?, 1_000);
/// assert!(engine.transact(|tx| Err::<(), _>(Abort::because(format!("without order {}", numbers.next(tx))))).is_err());
/// assert_eq!(order()?, 1_002);
/// # Ok::<(), hotrow_core::Error>(())
/// ```
///
/// Behind 2⁶⁴ − 1 it begins again at 0.
// Numbers are drawn by all threads: a cache line of its own keeps that from slowing its neighbours down.
#[repr(align(128))]
pub struct Sequence {
    next: AtomicU64,
    meta: ObjectMeta,
}

impl fmt::Debug for Sequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sequence").field("name", &self.name()).finish_non_exhaustive()
    }
}

impl Sequence {
    /// A sequence whose first number is `first`.
    pub fn starting_at<P: Protocol>(engine: &Engine<P>, name: impl Into<String>, first: u64) -> Self {
        Self { next: AtomicU64::new(first), meta: ObjectMeta::new(engine.id(), name) }
    }

    /// The sequence's name.
    pub fn name(&self) -> &str {
        self.meta.name()
    }

    /// Draws the next number: one that no other call has returned or will return.
    #[inline]
    pub fn next<P: Protocol>(&self, _tx: &Transaction<'_, P>) -> u64 {
        // Relaxed: only uniqueness matters. Of two calls one of which happens before the other, the later one returns the
        // larger number, because all changes of one word have one order.
        self.next.fetch_add(1, Ordering::Relaxed)
    }
}

//! A source of numbers that is outside of the transactions' conflicts.

use hotrow_core::{Engine, ObjectMeta, Protocol, Transaction};
use hotrow_sync::atomic::{AtomicU64, Ordering};
use hotrow_sync::{Mutex, lock};
use std::fmt;

/// The numbers that are reserved at once.
const BLOCK: u64 = 1 << 10;

/// The numbers before the end of a block at which the next one is reserved, so that its reservation is on the device long before a number of
/// it is drawn.
const AHEAD: u64 = BLOCK / 2;

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
/// One that a [database](https://docs.rs/hotrow) keeps reserves its numbers in blocks of 1,024: numbers that were reserved and not drawn when the
/// process ended are further gaps. Of all transactions that survive a crash no two have drawn the same number.
///
/// Behind 2⁶⁴ − 1 it begins again at 0.
// Numbers are drawn by all threads: a cache line of its own keeps that from slowing its neighbours down.
#[repr(align(128))]
pub struct Sequence {
    next: AtomicU64,
    /// The numbers before this one are reserved.
    limit: AtomicU64,
    reserve: Option<Mutex<Reserve>>,
    meta: ObjectMeta,
}

/// Logs that all numbers below one are drawn. It waits for nobody, and no commit that begins when it has returned is recovered without it.
pub type Reserve = Box<dyn FnMut(u64) + Send>;

impl fmt::Debug for Sequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sequence").field("name", &self.name()).finish_non_exhaustive()
    }
}

impl Sequence {
    /// A sequence whose first number is `first`.
    pub fn starting_at<P: Protocol>(engine: &Engine<P>, name: impl Into<String>, first: u64) -> Self {
        let (next, limit) = (AtomicU64::new(first), AtomicU64::new(0));
        Self { next, limit, reserve: None, meta: ObjectMeta::new(engine.id(), name) }
    }

    /// A sequence that reserves its numbers: all below `first` are reserved.
    pub fn reserving<P: Protocol>(
        engine: &Engine<P>,
        name: impl Into<String>,
        first: u64,
        reserve: Reserve,
    ) -> Self {
        let reserve = Some(Mutex::new(reserve));
        Self { limit: AtomicU64::new(first), reserve, ..Self::starting_at(engine, name, first) }
    }

    /// The number up to which all are reserved.
    pub fn reserved(&self) -> u64 {
        // Acquire: pairs with the release in `extend`.
        self.limit.load(Ordering::Acquire)
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
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        if let Some(reserve) = &self.reserve
            && self.left(number) < AHEAD as i64
        {
            self.extend(reserve, number);
        }
        number
    }

    /// How many numbers are reserved behind one; negative if it is not itself. The end of all numbers does not matter: the distance counts.
    fn left(&self, number: u64) -> i64 {
        self.reserved().wrapping_sub(number) as i64 - 1
    }

    /// Reserves the next block behind a number that was drawn.
    #[cold]
    fn extend(&self, reserve: &Mutex<Reserve>, number: u64) {
        let mut reserve = lock(reserve);
        if self.left(number) < AHEAD as i64 {
            let limit = number.wrapping_add(BLOCK);
            reserve(limit);
            // Release: pairs with the acquire in `reserved`, so that whoever draws a number below the limit commits after the reservation.
            self.limit.store(limit, Ordering::Release);
        }
    }
}

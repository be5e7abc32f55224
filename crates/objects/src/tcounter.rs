//! A counter whose increments commute and whose tests are predicates (sto §4.2 `TCounter`): the operations. The datatype is in
//! `counting.rs`.

use crate::counting::{Counter, add, get, is_between, set};
use hotrow_core::operations::Operand;
use hotrow_core::{Abort, Access, CommutingSegment, Deferred, Engine, LogSegment, Protocol, Transaction};
use hotrow_protocols::Occ;
use std::fmt;

/// A transactional 64-bit counter. A transaction whose additions would leave its range rolls back with
/// [`Overflow`](hotrow_core::Overflow).
pub struct TCounter<P: Protocol = Occ> {
    segment: CommutingSegment<Counter, P>,
}

impl<P: Protocol> fmt::Debug for TCounter<P> {
    /// Shows the name only: the content is for transactions.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TCounter").field("name", &self.segment.name()).finish_non_exhaustive()
    }
}

impl<P: Protocol> TCounter<P> {
    /// A counter that starts at `value`.
    pub fn new(engine: &Engine<P>, value: i64) -> Self {
        Self::named(engine, "counter", value)
    }

    /// A counter with a name, for errors and conflict reports.
    pub fn named(engine: &Engine<P>, name: impl Into<String>, value: i64) -> Self {
        Self { segment: CommutingSegment::new(engine, name, Counter, value) }
    }

    /// Logs all that commits change from now on, as [`CommutingSegment::logged`](hotrow_core::CommutingSegment::logged) does. A database makes its objects
    /// so.
    ///
    /// # Panics
    ///
    /// If it is logged.
    #[must_use]
    pub fn logged(self, log: LogSegment<i64>) -> Self {
        Self { segment: self.segment.logged(log) }
    }

    /// Adds `amount` (which may be negative) without reading the counter, so that transactions that only increment
    /// never abort each other.
    ///
    /// # Errors
    ///
    /// [`Abort`] when the attempt cannot go on; pass it up with `?`.
    #[inline]
    pub fn add(&self, tx: &mut Transaction<'_, P>, amount: i64) -> Result<(), Abort> {
        add(self.segment.enter(tx)?, amount)
    }

    /// Sets the counter without reading it.
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add).
    pub fn set(&self, tx: &mut Transaction<'_, P>, value: i64) -> Result<(), Abort> {
        set(self.segment.enter(tx)?, value)
    }

    /// Returns the exact value. Any concurrent change of the counter is then a conflict: prefer a test.
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add).
    pub fn get(&self, tx: &mut Transaction<'_, P>) -> Result<i64, Abort> {
        get(self.segment.enter(tx)?)
    }

    /// True if the counter is at least `bound`.
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add).
    pub fn is_at_least(&self, tx: &mut Transaction<'_, P>, bound: i64) -> Result<bool, Abort> {
        self.is_between(tx, bound, i64::MAX)
    }

    /// True if the counter is at most `bound`.
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add).
    pub fn is_at_most(&self, tx: &mut Transaction<'_, P>, bound: i64) -> Result<bool, Abort> {
        self.is_between(tx, i64::MIN, bound)
    }

    /// True if the counter is in `low..=high`.
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add).
    pub fn is_between(&self, tx: &mut Transaction<'_, P>, low: i64, high: i64) -> Result<bool, Abort> {
        is_between(self.segment.enter(tx)?, low, high)
    }

    /// Adds an amount when the transaction commits. The amount may become known only then. The operation neither
    /// causes an abort nor makes the transaction [wild](hotrow_core::deferred).
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add).
    #[inline]
    pub fn defer_add(&self, tx: &mut Transaction<'_, P>, amount: impl Operand<i64>) -> Result<(), Abort> {
        self.segment.enter(tx)?.defer(Access::Write, amount.into_input(), add)?;
        Ok(())
    }

    /// Sets the counter when the transaction commits. The value may become known only then.
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add).
    pub fn defer_set(&self, tx: &mut Transaction<'_, P>, value: impl Operand<i64>) -> Result<(), Abort> {
        self.segment.enter(tx)?.defer(Access::Write, value.into_input(), set)?;
        Ok(())
    }

    /// Reads the exact value when the transaction commits. The result may be an input of operations deferred later.
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add).
    pub fn defer_get(&self, tx: &mut Transaction<'_, P>) -> Result<Deferred<i64>, Abort> {
        self.segment.enter(tx)?.defer(Access::Read, (), |counter, ()| get(counter))
    }

    /// Sets the counter's rank: its position in the order in which transactions acquire the segments of their
    /// deferred operations (*line up*; [`ObjectMeta::set_rank`](hotrow_core::ObjectMeta::set_rank)).
    pub fn set_rank(&mut self, rank: u16) {
        self.segment.set_rank(rank);
    }
}

//! A counter whose increments commute and whose tests are predicates (sto §3.5, §4.2 `TCounter`).
//!
//! # Avoiding conflicts
//!
//! An increment does not read the counter. It adds to a delta, which the commit applies under the segment's lock. Two
//! transactions that only increment serialize on that lock but never abort each other.
//!
//! A test (`is_at_least(1)`) is a predicate: its outcome depends only on the side of a bound on which the value lies.
//! The condition is a range `[low, high]`: the values *of the counter itself*, without the attempt's own delta, for
//! which every test so far has the same outcome. The commit checks that the value is in this range. For example, a
//! false test, ten increments, and the same test true keep `[-9, 0]`, which is necessary and sufficient (the example
//! of sto §3.5).
//!
//! An exact [`TCounter::get`] depends on the value itself, like any read.
//!
//! [`TCounters`] are counters side by side: as an object of its own each lies in memory of its own.

use crate::range::Range;
use hotrow_core::operations::Operand;
use hotrow_core::{
    Abort, Access, Commuting, CommutingAccess, CommutingArray, CommutingSegment, Deferred, Engine,
    LogSegment, Protocol, Segments, Transaction,
};
use hotrow_protocols::Occ;
use std::fmt;

/// A transactional 64-bit counter. A transaction whose additions would leave its range rolls back with
/// [`Overflow`](hotrow_core::Overflow).
pub struct TCounter<P: Protocol = Occ> {
    segment: CommutingSegment<Counter, P>,
}

/// The datatype.
struct Counter;

/// The pending change of a counter.
#[derive(Debug, Clone, Copy, Default)]
struct Change {
    /// The value set, if any; `delta` is added to it.
    set: Option<i64>,
    /// The sum of the increments.
    delta: i64,
    /// True if the sum itself has left the range.
    overflows: bool,
}

impl Change {
    fn applied_to(self, base: i64) -> i64 {
        self.set.unwrap_or(base).wrapping_add(self.delta)
    }

    /// Returns the value if the attempt has set it.
    #[inline]
    fn known(&self) -> Option<i64> {
        self.set.map(|_| self.applied_to(0))
    }
}

impl Commuting for Counter {
    type Value = i64;
    type Change = Change;
    type Condition = Range;

    fn holds(&self, condition: &Range, _: Option<&Change>, value: &i64) -> bool {
        condition.contains(*value)
    }

    const FITS: Option<fn(&Change, &i64) -> bool> = Some(|change, value| {
        !change.overflows && change.set.unwrap_or(*value).checked_add(change.delta).is_some()
    });

    fn apply(&self, change: Change, value: &mut i64) {
        *value = change.applied_to(*value);
    }
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

/// An array of [counters](TCounter), which conflict each on its own. They lie side by side, so that those that are used together
/// are found together. An index out of bounds ends the transaction with `Misuse::OutOfBounds`.
///
/// ```
/// use hotrow_core::Engine;
/// use hotrow_objects::TCounters;
/// use hotrow_protocols::Occ;
///
/// let engine = Engine::<Occ>::new();
/// let free = TCounters::new(&engine, [3, 0]);
/// let is_reserved = engine.transact(|tx| {
///     let is_free = free.is_at_least(tx, 0, 1)?;
///     if is_free {
///         free.add(tx, 0, -1)?;
///     }
///     Ok(is_free && !free.is_at_least(tx, 1, 1)?)
/// })?;
/// assert!(is_reserved);
/// # Ok::<(), hotrow_core::Error>(())
/// ```
pub struct TCounters<P: Protocol = Occ> {
    segments: CommutingArray<Counter, P>,
}

impl<P: Protocol> fmt::Debug for TCounters<P> {
    /// Shows the name and the length only: the content is for transactions.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, length) = (self.segments.name(), self.len());
        f.debug_struct("TCounters").field("name", &name).field("len", &length).finish_non_exhaustive()
    }
}

impl<P: Protocol> TCounters<P> {
    /// Counters that start at `values`.
    pub fn new(engine: &Engine<P>, values: impl IntoIterator<Item = i64>) -> Self {
        Self::named(engine, "counters", values)
    }

    /// Counters with a name, for errors and conflict reports.
    pub fn named(engine: &Engine<P>, name: impl Into<String>, values: impl IntoIterator<Item = i64>) -> Self {
        Self { segments: CommutingArray::new(engine, name, Counter, values) }
    }

    /// The number of counters.
    pub fn len(&self) -> usize {
        self.segments.len()
    }

    /// True if there are no counters.
    pub fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// Adds `amount` to a counter, as [`TCounter::add`].
    ///
    /// # Errors
    ///
    /// [`Abort`] when the attempt cannot go on; pass it up with `?`.
    #[inline]
    pub fn add(&self, tx: &mut Transaction<'_, P>, index: usize, amount: i64) -> Result<(), Abort> {
        add(self.segments.enter(tx, index)?, amount)
    }

    /// Sets a counter without reading it.
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add).
    pub fn set(&self, tx: &mut Transaction<'_, P>, index: usize, value: i64) -> Result<(), Abort> {
        set(self.segments.enter(tx, index)?, value)
    }

    /// Returns the exact value of a counter. Any concurrent change of it is then a conflict: prefer a test.
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add).
    #[inline]
    pub fn get(&self, tx: &mut Transaction<'_, P>, index: usize) -> Result<i64, Abort> {
        get(self.segments.enter(tx, index)?)
    }

    /// True if a counter is at least `bound`.
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add).
    #[inline]
    pub fn is_at_least(&self, tx: &mut Transaction<'_, P>, index: usize, bound: i64) -> Result<bool, Abort> {
        self.is_between(tx, index, bound, i64::MAX)
    }

    /// True if a counter is in `low..=high`.
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add).
    #[inline]
    pub fn is_between(
        &self,
        tx: &mut Transaction<'_, P>,
        index: usize,
        low: i64,
        high: i64,
    ) -> Result<bool, Abort> {
        is_between(self.segments.enter(tx, index)?, low, high)
    }

    /// Adds an amount to a counter when the transaction commits, as [`TCounter::defer_add`].
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add).
    #[inline]
    pub fn defer_add(
        &self,
        tx: &mut Transaction<'_, P>,
        index: usize,
        amount: impl Operand<i64>,
    ) -> Result<(), Abort> {
        self.segments.enter(tx, index)?.defer(Access::Write, amount.into_input(), add)?;
        Ok(())
    }

    /// Sets the rank of the counters, as [`TCounter::set_rank`]. Among each other they go by their index.
    pub fn set_rank(&mut self, rank: u16) {
        self.segments.set_rank(rank);
    }
}

/// A counter that a transaction has entered, alone or among others.
type Entered<'t, 'w, P, S> = CommutingAccess<'t, 'w, Counter, P, S>;

#[inline]
fn add<P: Protocol, S: Segments<P, Value = i64>>(
    counter: Entered<'_, '_, P, S>,
    amount: i64,
) -> Result<(), Abort> {
    counter.change(|change| {
        let (delta, overflows) = change.delta.overflowing_add(amount);
        (change.delta, change.overflows) = (delta, change.overflows | overflows);
    })
}

fn set<P: Protocol, S: Segments<P, Value = i64>>(
    counter: Entered<'_, '_, P, S>,
    value: i64,
) -> Result<(), Abort> {
    counter.change(|change| *change = Change { set: Some(value), ..Change::default() })
}

/// Reads the value unless the attempt has set it, so that it depends on nobody else.
fn get<P: Protocol, S: Segments<P, Value = i64>>(counter: Entered<'_, '_, P, S>) -> Result<i64, Abort> {
    counter.read_unless_known(Change::known, |seen| {
        seen.change.copied().unwrap_or_default().applied_to(*seen.value)
    })
}

/// As [`get`], a test of the value.
#[inline]
fn is_between<P: Protocol, S: Segments<P, Value = i64>>(
    counter: Entered<'_, '_, P, S>,
    low: i64,
    high: i64,
) -> Result<bool, Abort> {
    let wanted = Range { low, high };
    counter.test_unless_known(
        |change| change.known().map(|value| wanted.contains(value)),
        |seen| (*seen.value, seen.change.map_or(0, |change| change.delta)),
        |(base, delta), condition| condition.test(base, delta, wanted),
    )
}

//! Counters, one alone or several side by side: increments commute, and tests are predicates. The datatype is in `counting.rs`.

use crate::counting::{Change, Counter};
use crate::range::Range;
use hotrow_core::operations::Operand;
use hotrow_core::{
    Abort, Access, CommutingArray, CommutingSegment, Deferred, Engine, LogSegment, Protocol, Transaction,
};
use hotrow_protocols::Occ;
use std::fmt;

/// A transactional 64-bit counter (sto §4.2). A transaction whose additions would leave its range rolls back with
/// [`Overflow`](hotrow_core::Overflow).
pub struct TCounter<P: Protocol = Occ> {
    segment: CommutingSegment<Counter, P>,
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

impl<P: Protocol> fmt::Debug for TCounter<P> {
    /// Shows the name only: the content is for transactions.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TCounter").field("name", &self.segment.name()).finish_non_exhaustive()
    }
}

impl<P: Protocol> fmt::Debug for TCounters<P> {
    /// Shows the name and the length only: the content is for transactions.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, length) = (self.segments.name(), self.len());
        f.debug_struct("TCounters").field("name", &name).field("len", &length).finish_non_exhaustive()
    }
}

impl<P: Protocol> TCounter<P> {
    /// A counter that starts at `value`.
    pub fn new(engine: &Engine<P>, value: i64) -> Self {
        Self::named(engine, "counter", value)
    }

    /// A counter with a name, for errors and conflict reports.
    pub fn named(engine: &Engine<P>, name: impl Into<String>, value: i64) -> Self {
        Self { segment: CommutingSegment::of(engine, name, Counter, value) }
    }
}

impl<P: Protocol> TCounters<P> {
    /// Counters that start at `values`.
    pub fn new(engine: &Engine<P>, values: impl IntoIterator<Item = i64>) -> Self {
        Self::named(engine, "counters", values)
    }

    /// Counters with a name, for errors and conflict reports.
    pub fn named(engine: &Engine<P>, name: impl Into<String>, values: impl IntoIterator<Item = i64>) -> Self {
        Self { segments: CommutingArray::of(engine, name, Counter, values) }
    }

    /// The number of counters.
    pub fn len(&self) -> usize {
        self.segments.len()
    }

    /// True if there are no counters.
    pub fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }
}

/// Gives counters their operations. `$segments` is the field with the segments, of which `$index` tells one from the others if there are
/// several.
macro_rules! counter_operations {
    ($object:ident, $segments:ident $(, $index:ident)?) => {
        impl<P: Protocol> $object<P> {
            /// Adds `amount` (which may be negative) without reading the counter, so that transactions that only increment
            /// never abort each other.
            ///
            /// # Errors
            ///
            /// [`Abort`] when the attempt cannot go on; pass it up with `?`.
            #[inline]
            pub fn add(&self, tx: &mut Transaction<'_, P>, $($index: usize,)? amount: i64) -> Result<(), Abort> {
                self.$segments.enter(tx $(, $index)?)?.change(|change| change.add(amount))
            }

            /// Sets the counter without reading it.
            ///
            /// # Errors
            ///
            /// As [`add`](Self::add).
            pub fn set(&self, tx: &mut Transaction<'_, P>, $($index: usize,)? value: i64) -> Result<(), Abort> {
                self.$segments.enter(tx $(, $index)?)?.change(|change| change.set(value))
            }

            /// Returns the exact value. Any concurrent change of the counter is then a conflict: prefer a test.
            ///
            /// # Errors
            ///
            /// As [`add`](Self::add).
            #[inline]
            pub fn get(&self, tx: &mut Transaction<'_, P> $(, $index: usize)?) -> Result<i64, Abort> {
                self.$segments.enter(tx $(, $index)?)?.read_unless_known(Change::known, Change::value)
            }

            /// True if the counter is at least `bound`.
            ///
            /// # Errors
            ///
            /// As [`add`](Self::add).
            #[inline]
            pub fn is_at_least(
                &self,
                tx: &mut Transaction<'_, P>,
                $($index: usize,)?
                bound: i64,
            ) -> Result<bool, Abort> {
                self.is_between(tx, $($index,)? bound, i64::MAX)
            }

            /// True if the counter is at most `bound`.
            ///
            /// # Errors
            ///
            /// As [`add`](Self::add).
            #[inline]
            pub fn is_at_most(
                &self,
                tx: &mut Transaction<'_, P>,
                $($index: usize,)?
                bound: i64,
            ) -> Result<bool, Abort> {
                self.is_between(tx, $($index,)? i64::MIN, bound)
            }

            /// True if the counter is in `low..=high`.
            ///
            /// # Errors
            ///
            /// As [`add`](Self::add).
            #[inline]
            pub fn is_between(
                &self,
                tx: &mut Transaction<'_, P>,
                $($index: usize,)?
                low: i64,
                high: i64,
            ) -> Result<bool, Abort> {
                let wanted = Range { low, high };
                self.$segments.enter(tx $(, $index)?)?.test_unless_known(
                    |change| change.known().map(|value| wanted.contains(value)),
                    |seen| (*seen.value, seen.change.map_or(0, |change| change.delta)),
                    |(base, delta), condition| condition.test(base, delta, wanted),
                )
            }

            /// Adds an amount when the transaction commits. The amount may become known only then. The operation neither
            /// causes an abort nor makes the transaction [wild](hotrow_core::deferred).
            ///
            /// # Errors
            ///
            /// As [`add`](Self::add).
            #[inline]
            pub fn defer_add(
                &self,
                tx: &mut Transaction<'_, P>,
                $($index: usize,)?
                amount: impl Operand<i64>,
            ) -> Result<(), Abort> {
                self.$segments
                    .enter(tx $(, $index)?)?
                    .defer(Access::Write, amount.into_input(), |counter, amount| {
                        counter.change(|change| change.add(amount))
                    })
                    .map(drop)
            }

            /// Sets the counter when the transaction commits. The value may become known only then.
            ///
            /// # Errors
            ///
            /// As [`add`](Self::add).
            pub fn defer_set(
                &self,
                tx: &mut Transaction<'_, P>,
                $($index: usize,)?
                value: impl Operand<i64>,
            ) -> Result<(), Abort> {
                self.$segments
                    .enter(tx $(, $index)?)?
                    .defer(Access::Write, value.into_input(), |counter, value| {
                        counter.change(|change| change.set(value))
                    })
                    .map(drop)
            }

            /// Reads the exact value when the transaction commits. The result may be an input of operations deferred later.
            ///
            /// # Errors
            ///
            /// As [`add`](Self::add).
            pub fn defer_get(&self, tx: &mut Transaction<'_, P> $(, $index: usize)?) -> Result<Deferred<i64>, Abort> {
                self.$segments.enter(tx $(, $index)?)?.defer(Access::Read, (), |counter, ()| {
                    counter.read_unless_known(Change::known, Change::value)
                })
            }

            /// Logs all that commits change from now on, as [`SegmentObject::logged`](hotrow_core::SegmentObject::logged) does. A
            /// database makes its objects so.
            ///
            /// # Panics
            ///
            /// If it is logged.
            #[must_use]
            pub fn logged(self, log: LogSegment<i64>) -> Self {
                Self { $segments: self.$segments.logged(log) }
            }

            /// Sets the rank: the position in the order in which transactions acquire the segments of their deferred operations
            /// (*line up*; [`ObjectMeta::set_rank`](hotrow_core::ObjectMeta::set_rank)). Counters side by side go by their index.
            pub fn set_rank(&mut self, rank: u16) {
                self.$segments.set_rank(rank);
            }
        }
    };
}

counter_operations!(TCounter, segment);
counter_operations!(TCounters, segments, index);

//! What counters do to their segments: an increment commutes with others, and a test is a predicate (sto §3.5, §4.2 `TCounter`).
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
//! An exact `get` depends on the value itself, like any read.

use crate::range::Range;
use hotrow_core::{Commuting, Seen};

/// The datatype.
pub(crate) struct Counter;

/// The pending change of a counter.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Change {
    /// The value set, if any; `delta` is added to it.
    set: Option<i64>,
    /// The sum of the increments.
    pub(crate) delta: i64,
    /// True if the sum itself has left the range.
    overflows: bool,
}

impl Change {
    #[inline]
    pub(crate) fn add(&mut self, amount: i64) {
        let (delta, overflows) = self.delta.overflowing_add(amount);
        (self.delta, self.overflows) = (delta, self.overflows | overflows);
    }

    pub(crate) fn set(&mut self, value: i64) {
        *self = Self { set: Some(value), ..Self::default() };
    }

    fn applied_to(self, base: i64) -> i64 {
        self.set.unwrap_or(base).wrapping_add(self.delta)
    }

    /// Returns the value if the attempt has set it, so that it depends on nobody else.
    #[inline]
    pub(crate) fn known(&self) -> Option<i64> {
        self.set.map(|_| self.applied_to(0))
    }

    /// Returns the value with the attempt's own change.
    pub(crate) fn value(seen: Seen<'_, Counter>) -> i64 {
        seen.change.copied().unwrap_or_default().applied_to(*seen.value)
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

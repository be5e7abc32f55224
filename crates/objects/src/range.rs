//! Conditions that are ranges of numbers.

/// The numbers from `low` to `high`, both included: those for which all tests of an attempt so far have the same outcome. The
/// default is all numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Range {
    pub(crate) low: i64,
    pub(crate) high: i64,
}

impl Default for Range {
    fn default() -> Self {
        Self { low: i64::MIN, high: i64::MAX }
    }
}

impl Range {
    #[inline]
    pub(crate) fn contains(&self, value: i64) -> bool {
        self.low <= value && value <= self.high
    }

    /// True if no number is too small.
    pub(crate) fn is_unbounded_below(&self) -> bool {
        self.low == i64::MIN
    }

    /// True if `base` with the attempt's own `delta` is in the range `wanted`. The range becomes that of the bases for which
    /// this test has the same outcome, too.
    pub(crate) fn test(&mut self, base: i64, delta: i64, wanted: Range) -> bool {
        let Some(value) = base.checked_add(delta) else {
            // The value with the delta wraps around, so the values on one side of a bound are no single range: depend on
            // the value itself.
            self.narrow(base, base);
            return wanted.contains(base.wrapping_add(delta));
        };
        let holds = wanted.contains(value);
        // The values with the same outcome of this test, on the side of the bound on which the value lies now.
        let (least, most) = if holds {
            (wanted.low, wanted.high)
        } else if value < wanted.low {
            (i64::MIN, wanted.low - 1)
        } else {
            (wanted.high + 1, i64::MAX)
        };
        // The range is of the base itself, so the attempt's own delta shifts the bounds. Shifting the ends of the
        // type's range excludes the values that would wrap around with the delta.
        self.narrow(least.saturating_sub(delta), most.saturating_sub(delta));
        holds
    }

    /// Returns the number of elements, on which the attempt depends exactly then: `base` of them with the attempt's own `delta`.
    pub(crate) fn exactly(&mut self, base: i64, delta: i64) -> usize {
        self.narrow(base, base);
        // Negative: the attempt cannot commit.
        (base + delta).max(0) as usize
    }

    /// True if there are no elements: a [test](Self::test) of their number.
    pub(crate) fn test_empty(&mut self, base: i64, delta: i64) -> bool {
        self.test(base, delta, Self { low: i64::MIN, high: 0 })
    }

    pub(crate) fn narrow(&mut self, low: i64, high: i64) {
        *self = Self { low: self.low.max(low), high: self.high.min(high) };
    }
}

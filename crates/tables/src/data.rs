//! Plain data, and ranges of keys, as they flow through procedures and their operations.

use std::fmt;
use std::ops::{Bound, RangeInclusive};

/// Data that may flow through a procedure: results of operations, keys, rows.
pub trait Data: Clone + Send + Sync + 'static {}
impl<T: Clone + Send + Sync + 'static> Data for T {}

/// A range of keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRange<K> {
    /// The lower bound.
    pub low: Bound<K>,
    /// The upper bound.
    pub high: Bound<K>,
}

impl<K> From<RangeInclusive<K>> for KeyRange<K> {
    fn from(range: RangeInclusive<K>) -> Self {
        let (low, high) = range.into_inner();
        Self { low: Bound::Included(low), high: Bound::Included(high) }
    }
}

impl<K> From<std::ops::Range<K>> for KeyRange<K> {
    fn from(range: std::ops::Range<K>) -> Self {
        Self { low: Bound::Included(range.start), high: Bound::Excluded(range.end) }
    }
}

impl<K: fmt::Debug> fmt::Display for KeyRange<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.low {
            Bound::Included(key) => write!(f, "{key:?}..")?,
            Bound::Excluded(key) => write!(f, "after {key:?}..")?,
            Bound::Unbounded => write!(f, "..")?,
        }
        match &self.high {
            Bound::Included(key) => write!(f, "={key:?}"),
            Bound::Excluded(key) => write!(f, "{key:?}"),
            Bound::Unbounded => Ok(()),
        }
    }
}

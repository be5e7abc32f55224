//! The values under stress, and the digest of a transaction's reads.

use hotrow::{Deferred, Value};
use std::cell::Cell;
use std::rc::Rc;

/// An inline value that shows a torn read: `complement` is computed from `value`. As a row it has three segments, so that a row
/// whose segments are of different moments is torn, too; the last one is also changed alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Value)]
#[value(inline)]
pub(super) struct Inline {
    pub(super) value: u64,
    #[value(group = "complement")]
    pub(super) complement: [u64; 3],
    #[value(group = "count")]
    pub(super) count: u64,
}

impl Inline {
    pub(super) fn new(value: u64) -> Self {
        Self { value, complement: [!value; 3], count: 0 }
    }

    fn is_whole(&self) -> bool {
        self.complement == [!self.value; 3]
    }

    /// Returns the value; `None` if it is torn.
    pub(super) fn whole_or_torn(&self) -> Option<u64> {
        self.is_whole().then_some(self.value)
    }

    /// Returns the value, for an intention. A panic in an intention becomes the transaction's error.
    pub(super) fn whole(&self) -> u64 {
        assert!(self.is_whole(), "a mixture of two values: {self:?}");
        self.value
    }
}

/// A boxed value that shows a torn read; it owns memory on the heap.
#[derive(Debug, Clone, PartialEq, Eq, Value)]
pub(super) struct Boxed {
    pub(super) value: u64,
    copies: Vec<u64>,
}

impl Boxed {
    pub(super) fn new(value: u64) -> Self {
        Self { value, copies: vec![value; 2] }
    }

    fn is_whole(&self) -> bool {
        self.copies == [self.value; 2]
    }

    /// Returns the value; `None` if it is torn.
    pub(super) fn whole_or_torn(&self) -> Option<u64> {
        self.is_whole().then_some(self.value)
    }

    /// Returns the value, as [`Inline::whole`] does.
    pub(super) fn whole(&self) -> u64 {
        assert!(self.is_whole(), "a mixture of two values: {self:?}");
        self.value
    }

    /// Returns the row's key in the secondary index.
    pub(super) fn group(&self) -> u32 {
        (self.value % u64::from(GROUPS)) as u32
    }
}

/// Number of different keys in the secondary index.
pub(super) const GROUPS: u32 = 3;

/// State of one transaction: its reads, and the deferred results that later operations use.
#[derive(Debug, Default)]
pub(super) struct ReadDigest {
    /// Digest of all reads; later writes of the transaction are computed from it.
    pub(super) sum: u64,
    /// Number of torn values, in all attempts.
    pub(super) torn: u64,
    /// Digest of the deferred results; `None` if no operation was deferred.
    pub(super) later: Option<Deferred<u64>>,
    /// Result of the last operation deferred on a box, an element or the queue; the keys of later operations come
    /// from it.
    pub(super) source: Option<Deferred<u64>>,
    /// True if the attempt has found twins different, and asked for a rollback.
    pub(super) different: Rc<Cell<bool>>,
}

impl ReadDigest {
    pub(super) fn inline(&mut self, value: &Inline) {
        self.number(value.value);
        self.torn += u64::from(!value.is_whole());
    }

    pub(super) fn boxed(&mut self, value: &Boxed) {
        self.number(value.value);
        self.torn += u64::from(!value.is_whole());
    }

    pub(super) fn number(&mut self, value: u64) {
        self.sum = self.sum.wrapping_mul(31).wrapping_add(value);
    }
}
